# SPDX-License-Identifier: Apache-2.0
# Faults of applications in Python and in JavaScript, through httpd: their runs end
# with a reason or go on from their last checkpoint, and no other run is held up.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/faulty";
use AgentTest::Applications qw(application_lines serve_applications);
use AgentTest::Client qw(run_path);
use AgentTest::Database qw(sql);
use AgentTest::Env qw(free_port);
use AgentTest::Server;
use AgentTest::Wait;
use FaultyJob qw(application start_job release executed);
use Test::More;

my @LANGUAGES = qw(python javascript);
my %EXPORT = (wide => 'wide', jobs => 'graph', long => 'long', absent => 'nothing');
my %TOO_LONG = (python => 'too_long', javascript => 'tooLong');

my %folder = map {
    my $language = $_;
    ($language => application($language, 'graph', "$language-too_long" => $TOO_LONG{$language}, map { ("$language-$_" => $EXPORT{$_}) } keys %EXPORT))
} @LANGUAGES;
my $applications = application_lines(%folder);
my @ports = (free_port(), free_port());
my $server = AgentTest::Server->new(config => serve_applications(%folder) . <<"CONF");
AgentRunnerMemory 512M
Listen 127.0.0.1:$ports[0]
<VirtualHost 127.0.0.1:$ports[0]>
    AgentDeployment limited
    AgentRunTimeout 2s
    $applications
</VirtualHost>
Listen 127.0.0.1:$ports[1]
<VirtualHost 127.0.0.1:$ports[1]>
    AgentDeployment strict
    AgentRunnerBusyTimeout 1s
    $applications
</VirtualHost>
CONF
$server->start;
my ($client, $limited, $strict) = map { AgentTest::Client->new(url => $_) } $server->url, map { "http://127.0.0.1:$_" } @ports;

wait_for('the runners', sub {
    my %ready = map { $_ => 1 } $server->error_log =~ /runner \d+ of pool (\S+) is ready/g;
    return keys %ready == 3 * @LANGUAGES;
});

# Starts a run of a language's application that does that.
sub job {
    my ($language, $do, %more) = @_;
    my $at = delete $more{at} // $client;
    my $graph = delete $more{graph} // 'jobs';
    return { %{ start_job($at, "$language-$graph", $do, %more) }, at => $at, language => $language };
}

# A run whose second node waits until it is released: the step before is saved.
sub waiting_job {
    my ($language, $do, %more) = @_;
    my $run = job($language, $do, %more);
    wait_for('its second node', sub { executed($run) eq 'first second' && "@{ $run->{at}->get_state($run->{thread_id})->{next} }" eq 'second' });
    return $run;
}

# A run in each language that waits beside others, and may be executed again when its
# process is lost.
sub bystanders {
    my (%more) = @_;
    my %runs = map { $_ => waiting_job($_, 'wait', %more) } @LANGUAGES;
    sql("update agent.run_queue set max_attempts = 5 where run_id = '$_->{run_id}'") for values %runs;
    return \%runs;
}

sub check_bystanders {
    my ($runs, $what) = @_;
    for my $language (@LANGUAGES) {
        release($runs->{$language});
        my $result = result_of($runs->{$language});
        is $result->{status}, 'success', "$language: a run beside one that $what goes on" or diag $result->{error};
        is_deeply $result->{values}{done}, [qw(first second)], "$language: its state is complete";
        like executed($runs->{$language}), qr/\Afirst second( second)*\z/, "$language: its node that has finished is not repeated";
    }
    return;
}

# Its result, when it has ended: its status, its error and its message, its values.
sub result_of {
    my ($run) = @_;
    my $values = $run->{at}->join_run($run);
    my $error = $values->{__error__};
    return { status => $run->{at}->get_run($run)->{status}, error => $error ? "$error->{error}: $error->{message}" : '', values => $values };
}

# Of one run in each language at once. Beside those that end their process another one
# waits; beside those that end alone %beside does. Where runs may not wait another one is
# executed at the same time.
sub test_fault {
    my ($what, $do, $status, $error, %more) = @_;
    my $waiting = delete $more{ends_process} ? bystanders() : undef;
    my %runs = map { $_ => job($_, $do, %more) } grep { ref $error ne 'HASH' || $error->{$_} } @LANGUAGES;
    if ($more{at}) {
        is result_of(job($_, 'nothing', %more))->{status}, 'success', "$_: a run beside one that $what goes on" for sort keys %runs;
    }
    for my $language (sort keys %runs) {
        my $run = $runs{$language};
        my $result = result_of($run);
        my $pattern = ref $error eq 'HASH' ? $error->{$language} : $error;
        my $title = "$language: a run that $what ends with $status";
        is $result->{status}, $status, $title;
        like $result->{error}, $pattern, "$title, its error says why" if $pattern;
        my $logged = qr/run $run->{run_id} (?:released: error|ended in error|\(attempt 1\) exceeded its time limit)/;
        wait_for('the log', sub { $server->error_log =~ $logged }) if $status ne 'success';
    }
    check_bystanders($waiting, $what) if $waiting;
    return;
}

# --- A process that is lost -----------------------------------------------------

my %waiting = map { $_ => waiting_job($_, 'wait') } @LANGUAGES;
my %lost = map { $_ => waiting_job($_, 'die once') } @LANGUAGES;
release($_) for values %lost;
for my $language (@LANGUAGES) {
    my $result = result_of($lost{$language});
    is $result->{status}, 'success', "$language: a run whose process is killed goes on";
    is executed($lost{$language}), 'first second second', "$language: from its last checkpoint, a node that has finished is not repeated";
    is_deeply $result->{values}{done}, [qw(first second)], "$language: its state is complete";
    wait_for('the other run', sub { executed($waiting{$language}) eq 'first second second' });
    release($waiting{$language});
    is result_of($waiting{$language})->{status}, 'success', "$language: another run of the process goes on too";
}

# --- Runs that end their process ------------------------------------------------

# One attempt is enough from here on.
sql('alter table agent.run_queue alter max_attempts set default 1');
my $ENDED = qr/\ARunGivenUpError: .* the runner process ended unexpectedly/;
# The limit of its data segment, or that of its resident memory, whichever it reaches first. In
# Python the process may live a little longer, and the next run ends it.
my $memory = qr/\AMemoryError|\ARunGivenUpError: .* the runner (?:took more memory than it may|process ran out of memory|process ended unexpectedly)/;
test_fault('allocates without end', 'allocate', 'error', $memory, ends_process => 1);
test_fault('ends its process', 'leave', 'error', $memory, ends_process => 1);
test_fault('ends its process', 'leave', 'error', $ENDED, ends_process => 1);
test_fault('kills its process', 'crash', 'error', $ENDED, ends_process => 1);
test_fault('closes the pipe', 'close the pipe', 'error', $ENDED, ends_process => 1);
test_fault('closes the input and waits', 'close the input', 'error', $ENDED, ends_process => 1);
test_fault('closes both pipes', 'close both pipes', 'error', $ENDED, ends_process => 1);
for my $how ('exit status 3', 'signal 11') {
    like $server->error_log, qr/AGT0331: runner \d+ ended \($how\) with 1 runs/, "the log says how a process ended: $how";
}

# --- Runs that end alone --------------------------------------------------------

my %beside = map { $_ => waiting_job($_, 'wait') } @LANGUAGES;
# First: after a hundred lines in 10 s, as of tracebacks, the log of a process has no others.
for my $language (@LANGUAGES) {
    my $leaver = job($language, 'change directory');
    is result_of($leaver)->{status}, 'success', "$language: a run that changes the directory ends with success";
    wait_for('the log', sub {
        $server->error_log =~ /run $leaver->{run_id}: graph $language-jobs has changed the working directory; it is the application's again/;
    });
    my $mask = result_of(job($language, 'name the mask'))->{values}{done};
    my $masker = job($language, 'change the mask');
    result_of($masker);
    wait_for('the log', sub {
        $server->error_log =~ /run $masker->{run_id}: graph $language-jobs has changed the mask of new files; it is the application's again/;
    });
    is_deeply result_of(job($language, 'name the mask'))->{values}{done}, $mask, "$language: the next run has the mask of new files of the application";
    is_deeply result_of(job($language, 'name the directory'))->{values}{done}, [ $folder{$language} ], "$language: the next run is in the application's again";
}
my %custom = (stream_mode => ['custom']);
test_fault('calls exit', 'exit', 'error', qr/\A(?:SystemExit: the node leaves|ProcessExitError: .*process\.exit\(3\))/);
test_fault('returns what JSON cannot hold', 'return an object', 'error', qr/\ANotRenderedError/);
test_fault('sends an event longer than a line', 'send a large event', 'error', qr/\AValueTooLargeError/, %custom);
test_fault('has a subgraph with a name of 2,100 bytes', 'nothing', 'error', qr/\ANotRenderedError/, graph => 'too_long', %custom);
test_fault('has a graph that cannot be imported', 'nothing', 'error', qr/nothing/, graph => 'absent');
my $length = length $server->error_log;
test_fault('prints a gigabyte', 'print', 'success');
wait_for('the log', sub { substr($server->error_log, $length) =~ /AGT0348: runner \d+: \d+ more lines were not logged, some of run \S+$/m });
cmp_ok length($server->error_log) - $length, '<', 2**24, 'of 2 GB that runs print the log has the beginning';
test_fault('catches signals', 'catch signals', 'success');
for my $language (@LANGUAGES) {
    is_deeply result_of(job($language, 'fork'))->{values}{done}, [7], "$language: a child that a run forks has no pipe to the server";
    for my $name ([ long => 'n' x 500 ], [ wide => "\xc3\xbc" x 600 ]) {
        my $answer = $client->post('/runs/stream', { assistant_id => "$language-$name->[0]",
            input => { log => $beside{$language}{log} }, stream_mode => ['updates'], stream_subgraphs => \1 });
        like $answer->{body}, qr/^event: updates\|$name->[1]:/m, "$language: an event may have a long name: $name->[0]";
    }
    like $server->error_log, qr/graph $language-absent.*nothing/, "$language: the log names a graph that cannot be imported";
    release($beside{$language});
    is result_of($beside{$language})->{status}, 'success', "$language: a run beside all these goes on";
    is executed($beside{$language}), 'first second first first', "$language: it was executed once";
}

# --- Runs that do not end -------------------------------------------------------

my $beside_blocks = bystanders(at => $strict);
my %blocks = map { $_ => job($_, 'block', at => $strict) } @LANGUAGES;
test_fault('loops for ever', 'loop', 'timeout', undef, at => $limited);
test_fault('loops for ever in a thread', 'block a thread', 'timeout', { python => qr// }, at => $limited);
for my $language (@LANGUAGES) {
    my $result = result_of($blocks{$language});
    is $result->{status}, 'error', "$language: a run that blocks its process ends with error";
    like $result->{error}, qr/busy with one run for too long/, "$language: its error says why";
    is result_of(job($language, 'nothing', at => $_))->{status}, 'success', "$language: afterwards others are executed" for $client, $strict;
}
check_bystanders($beside_blocks, 'blocks its process');
like $server->error_log, qr/AGT0366: runner \d+ has executed no other run for \d+ s: it is killed/, 'the log says which process was blocked';

# While a run blocks its process the runs of all others are executed: of the other language, and of other deployments.
for my $language (@LANGUAGES) {
    my ($other) = grep { $_ ne $language } @LANGUAGES;
    my $earlier = waiting_job($other, 'wait', at => $strict);
    my $block = job($language, 'block', at => $strict);
    wait_for('it to block', sub { executed($block) eq 'first second' });
    is result_of(job($other, 'nothing', at => $strict))->{status}, 'success', "$language: a run of another application is executed beside one that blocks";
    is result_of(job($language, 'nothing'))->{status}, 'success', "$language: a run of another deployment too";
    release($earlier);
    is result_of($earlier)->{status}, 'success', "$language: one that waits in another application goes on";
    is executed($earlier), 'first second', "$language: it is not executed again";
    like result_of($block)->{error}, qr/busy with one run for too long/, "$language: the one that blocks ends with its reason";
}

# Beside runs that do not end: one that began before them, and one that begins later.
for my $do ('loop', 'block a thread') {
    for my $language ($do eq 'loop' ? @LANGUAGES : 'python') {
        my $earlier = waiting_job($language, 'wait');
        my $endless = job($language, $do);
        wait_for('it to loop', sub { executed($endless) eq 'first second' });
        is result_of(job($language, 'nothing'))->{status}, 'success', "$language: a run that begins beside one that does '$do' is executed";
        release($earlier);
        is result_of($earlier)->{status}, 'success', "$language: a run that waits beside one that does '$do' goes on";
        is executed($earlier), 'first second', "$language: it is not executed again";
        is $client->get_run($endless)->{status}, 'pending', "$language: the one that does '$do' has not ended";
        $client->post(run_path($endless) . '/cancel?wait=1', {});
        is result_of($endless)->{status}, 'interrupted', "$language: the one that does '$do' can be cancelled";
    }
}
undef $server;
done_testing;
