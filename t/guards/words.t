# SPDX-License-Identifier: Apache-2.0
# Phrases that the project does not use in any tracked file: private words, and
# constructions that have to be read twice. To add one: a line in @PHRASES with the
# word to use instead, once the tree is free of it.
use strict;
use warnings;
use AgentTest::Env qw(root);
use AgentTest::Source;
use re qw(regexp_pattern);
use Test::More;

# A pattern, without regard to case, and what to write instead.
my @PHRASES = (
    [ qr/\bsigns? of life\b/i,          'heartbeat' ],
    [ qr/\bnobody (?:is|was) told\b/i,  'without a notification' ],
    [ qr/\btold of\b/i,                 'notified of' ],
    [ qr/\bnews\b|_news_|_news\b/i,     'updates, notifications' ],
    [ qr/\bhear(?:s|d)?\b/i,            'receive, be notified' ],
    [ qr/\bdeaf\b/i,                    'needs reset, without a LISTEN connection' ],
    [ qr/\bfarewell\b|\bgood-bye\b/i,   'server-initiated close' ],
    [ qr/\blast words\b/i,              'final writes' ],
    [ qr/\bcomplain(?:t|s|ts|ed)?\b/i,  'log, model error' ],
    [ qr/\bjournal\b/i,                 'log' ],
    [ qr/\bbury\b|\bburi(?:al|ed|es)\b/i, 'mark dead, reap' ],
    [ qr/\bbrakes?\b/i,                 'new-key limit' ],
    [ qr/\bverdicts?\b/i,               'decision, result' ],
    [ qr/\bdeeds?\b/i,                  'action' ],
    [ qr/\bmeanwhile\b/i,               'at the same time, during this' ],
    [ qr/\bany more\b/i,                'no longer' ],
    [ qr/\bany longer\b/i,            'no longer' ],
    [ qr/\bseen to\b/i,                 'handled, done' ],
    [ qr/\bwhoever\b/i,                 'the noun: client, caller, worker' ],
    [ qr/\bvisible ASCII\b/i,           'printable ASCII characters' ],
    [ qr/\bbehind (?:it|them|an? (?!(?:TLS )?(?:reverse )?prox)|the (?!limiter\b|proxy\b))/i,
                                        'after (behind: only a proxy or the limiter)' ],
    [ qr{(?:^|[.!?:]\s|/\*|//|\*|\#|--)\s*What (?!(?:is|does|do|if|are)\b[^.\n]*\?)},
                                        'a noun with its clause: "the bytes that ..."' ],
    [ qr/\b(?:is|are|was|were) no (?!longer\b)(?<!there is no )(?<!there are no )(?<!there was no )(?<!there were no )/i,
                                        'is not a, is not' ],
    [ qr/\bso many of\b|\bof so many\b/i, 'the number of' ],
    [ qr/\bjudges?\b/i,                 'the window or counter that decides' ],
    [ qr/\brecalls?\b/i,                'cache' ],
    [ qr/\bwould say so\b/i,            'the verb: warns, fails' ],
    [ qr/\bless exceptions\b/i,         'except for' ],
    [ qr/\bheld_back\b|\bhold_back\b|\blet_in\b/, 'refused, admitted' ],
    [ qr/(?:->|\.)allowed\b|decision=\\?"allowed/, 'admitted (in the limiter)' ],
    [ qr/"places"|_places\b/,           'slots' ],
    [ qr/\b(?:a|one) look\b/i,         'query, poll, scan' ],
    [ qr/\bbehind (?:all|others)\b/i,   'after all others, at the end' ],
    [ qr/\bso many (?:runs|bytes|ids)\b/i, 'the number of' ],
    [ qr/\b(?:describe|find)_origin\b/, 'metadata' ],
    [ qr/\bagent_pool_t\b/,             'agent_db_pool_t' ],
    [ qr/\bagent_(?:runner|worker|drain)_(?:leave|retire)\b|_(?:runner|worker|mode)_(?:leaving|left)\b|leave_?if_?drained/i,
                                        'drain (a runner), stop (the supervisor), deregister (a worker)' ],
    [ qr/\bagent_waits?_t\b/,           'agent_waiter_registry_t, agent_wake_reason_t' ],
    [ qr/(?<![a-z])suspect(?:s|ed)?(?![a-z])/i, 'quarantined run' ],
    [ qr/\btrials?\b|_trials?\b|\btimes_cleared\b/i, 'quarantine; quarantines_passed' ],
    [ qr/\b(?:is_hopeless|is_patient|is_spent|has_overflown)\b|_hurry\b/, 'the condition: has_exhausted_retries, wants_replacement' ],
    [ qr/\btext that reads\b/i,        'deletion token' ],
    [ qr/\bis obeyed\b/i,              'wins, applies' ],
    [ qr/\bbegins? the time\b/i,       'restarts the time to live' ],
    [ qr/\bspawner_origin\b/,          'spawn_params' ],
    [ qr/(?<![a-z])lanes?(?![a-z])/i, 'dedicated batch' ],
    [ qr/\bis_in_doubt\b|\bdoubt_until\b|\bagent_database_facts_t\b/, 'agent_session_info_t' ],
    [ qr/\bctl_say_|\bagent_invitation_/, 'ctl_output_, agent_new_key_' ],
    [ qr/_vouch|vouch_|\bvouch|\bis_unclean\b|\brlr_question_t\b/i, 'attest, has_used_share, pending request' ],
    [ qr/\bagent_pace_|\bAGENT_PACE_|\bAGENT_BACKLOG_WEIGHT\b|\bagent_batch_weigh\b/, 'agent_batch_size_, cost' ],
    [ qr/\broom_taken\b|_take_room\b|\bbegin_turn\b/, 'reserve, begin_iteration' ],
    [ qr/(?:run|part|item)->is_dead\b|\bdrop_if_dead\b|\bagent_batch_(?:drop|forget|cut)\b/, 'is_discarded, remove, discard, split' ],
    [ qr/\bagent_fair_queue_(?:enter|leave)\b/, 'insert, remove' ],
    [ qr/\b(?:second|third) connection\b/i, 'control, bulk or output connection' ],
    [ qr{(?:^|[.!?:]\s|/\*|//|\*|\#|--)\s*(?:One that|Those that|That of)\b}, 'the noun: "a run that ..."' ],
);

# Files that may have a phrase, with the reason.
my @EXCEPTIONS = (
    # This list.
    qr{\At/guards/words\.t\z},
    # The text of the licence.
    qr{\ALICENSE\z},
);

sub is_excepted {
    my ($file) = @_;
    return grep { $file =~ $_ } @EXCEPTIONS;
}

# The phrase for a whole text in lower case, or as it is: most files have few phrases,
# and each line by itself takes ten times the processor time.
sub in_texts {
    my ($phrase) = @_;
    my ($pattern, $flags) = regexp_pattern($phrase);
    return { phrase => $phrase, whole => qr/$pattern/m } if $flags !~ /i/;
    die "$phrase has a class in upper case\n" if $pattern =~ /\\[A-Z]/;
    return { phrase => $phrase, whole => qr/\L$pattern\E/m, is_lower => 1 };
}

my @in_texts = map { in_texts($_->[0]) } @PHRASES;
my %found = map { $_->[0] => [] } @PHRASES;
for my $file (source_files()) {
    next if is_excepted($file) || !-T root() . "/$file";
    my $before = '';
    my @lines = map {
        my ($number, $line) = @{$_};
        # A phrase may begin at the end of a line; the marks of comments are no part of it.
        my $text = $line =~ s{\A\s*(?:\*/?|/\*|//|\#|--)?\s*}{}r;
        my $pair = { number => $number, line => $line, before => $before, text => $text, both => "$before $text" };
        $before = $text;
        $pair;
    } numbered_lines($file);
    my $whole = join "\n", map { @{$_}{qw(line both)} } @lines;
    my $lower = lc $whole;
    for my $phrase (map { $_->{phrase} } grep { ($_->{is_lower} ? $lower : $whole) =~ $_->{whole} } @in_texts) {
        push @{ $found{$phrase} }, map { "$file:$_->{number}: $_->{line}" }
            grep { $_->{line} =~ $phrase || $_->{both} =~ $phrase && $_->{before} !~ $phrase && $_->{text} !~ $phrase } @lines;
    }
}

for (@PHRASES) {
    my ($phrase, $instead) = @{$_};
    is join("\n", @{ $found{$phrase} }), '', "no file has $phrase: write \"$instead\"";
}

done_testing;
