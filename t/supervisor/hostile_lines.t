# SPDX-License-Identifier: Apache-2.0
# Runners that send lines by the thousand, odd ones and then a breach of the protocol: each is ended, the supervisor and
# an honest run continue. Others send one line each that differs from a valid one in a member. AGENT_TEST_LONG=1 (make
# faults-long) sends a million lines, each breach with each message, and all of these forms.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Env qw(is_sanitized);
use AgentTest::Wait;
use File::Temp qw(tempdir);
use HostileLines qw(odd_lines refused_line breaches forms sequences);
use List::Util qw(max min);
use Test::More;
use TestSupervisor;

use constant POOLS => $ENV{AGENT_TEST_LONG} ? 80 : 20;
# How often a runner sends all odd lines.
use constant TIMES => $ENV{AGENT_TEST_LONG} ? 2 : 1;
# The suite takes each 61st form: a prime, unlike the number of forms of a member.
use constant STEP => $ENV{AGENT_TEST_LONG} ? 1 : 61;

my $pg = start_cluster();
my %ids = map { ("h$_" => sql("select agent.open_deployment('h$_')")) } 1 .. POOLS;
my @names = sort keys %ids;
my $dir = tempdir('/tmp/agent-test-lines.XXXXXX', CLEANUP => 1);
chmod 0755, $dir or die "$dir: $!";

my $sv = TestSupervisor->start($pg,
    graphs => { agent => {}, map { ("$_/agent" => {}) } @names },
    pools => { map { $_ => { runner => scripted_runner('hostile_runner.pl'), slots => 1 } } @names },
    # Runners do not answer while they attack.
    timing_ms => { %{ fast_timing() }, ping_interval => 3_600_000, cancel_grace => 600_000 });
$sv->wait_runners(1 + POOLS);

sub count_breaches { return scalar(() = $sv->log_text =~ /AGT0332/g) }

my $files = 0;
my ($sent, %distinct) = (0);

sub lines_file {
    my (@lines) = @_;
    my $path = "$dir/" . ++$files;
    open my $file, '>:raw', $path or die "$path: $!";
    print {$file} map { "$_\n" } @lines;
    close $file or die "$path: $!";
    $distinct{$_} = 1 for @lines;
    return $path;
}

# The arguments of create_run for a run that sends these lines.
sub hostile_run {
    my ($deployment, $lines, %how) = @_;
    $sent += @{$lines};
    return [ { path => lines_file(@{$lines}), %how }, deployment => $ids{$deployment} ];
}

my @odd = odd_lines();
my $odd = lines_file(@odd);
my @events = odd_lines('event');

# The database refuses the first line: the others are about a run that the
# runner has lost.
sub lose_and_break {
    my ($deployment, $breach) = @_;
    $sent += TIMES * @odd;
    return hostile_run($deployment, [ refused_line(), $breach ], odd => $odd, times => TIMES, breach => \1);
}

sub store_and_break { return hostile_run($_[0], [ @events, $_[1] ], breach => \1) }

my $gate = make_gate();
my $honest = $sv->start_run({ do => 'gate', path => $gate, count => 1000 });
my @left = breaches($ENV{AGENT_TEST_LONG});
my ($total, @expected, @kb) = (0);
while (my @wave = splice @left, 0, POOLS) {
    my $kept = int((@wave + 3) / 4);
    my @runs = create_all(map { $_ < $kept ? store_and_break($names[$_], $wave[$_][0]) : lose_and_break($names[$_], $wave[$_][0]) }
        0 .. $#wave);
    $sv->wake;
    $total += @wave;
    push @expected, map { $_->[1] } @wave;
    wait_for("$total runners to be ended", sub { count_breaches() >= $total });
    wait_all_final('success', @runs[ 0 .. $kept - 1 ]);
    wait_all_final('error', @runs[ $kept .. $#runs ]) if $kept < @runs;
    wait_status(create_run({ do => 'noop' }), 'success');
    push @kb, $sv->memory;
}
is count_breaches(), $total, 'each runner that breaks the protocol is ended, and logged once';
my @reasons = $sv->log_text =~ /AGT0332: runner \d+ broke the protocol \((.*?)\): it is killed/g;
my @unlogged;
for my $reason (@expected) {
    my ($at) = grep { $reasons[$_] =~ $reason } 0 .. $#reasons;
    if (defined $at) { splice @reasons, $at, 1 }
    else             { push @unlogged, $reason }
}
is "@unlogged @reasons", ' ', 'the log names the reason of each';

SKIP: {
    skip 'a sanitizer keeps freed memory', 1 if is_sanitized();
    my ($first, $last) = (max(@kb[ 0 .. @kb / 3 ]), min(@kb[ -@kb / 3 .. -1 ]));
    cmp_ok $last, '<', $first + 2048, 'the memory of the supervisor does not grow';
}

# Whether a run has been executed twice: its runner was ended.
sub broken_of {
    my (@runs) = @_;
    my %attempts = map { split /\t/ } sql('select run_id, attempts from agent.usage_events where run_id in (' . quoted(@runs) . ')');
    return map { ($attempts{$_} // 0) > 1 ? 1 : 0 } @runs;
}

sub wait_all_over {
    my (@runs) = @_;
    my $list = quoted(@runs);
    return wait_for('all runs to be final', sub {
        poll("select count(*) from agent.runs where finished_at is not null and run_id in ($list)") == @runs;
    }, 600);
}

my @all = forms();
my @forms = map { $all[ $_ * STEP ] } 0 .. $#all / STEP;
my (@runs, @broken);
for (my $from = 0; $from < @forms; $from += 1000) {
    my $to = min($from + 999, $#forms);
    @runs = create_all(map { hostile_run($names[ $_ % POOLS ], [ $forms[$_][0] ], is_end => $forms[$_][2] ? \1 : \0) } $from .. $to);
    $sv->wake;
    wait_all_over(@runs);
    push @broken, broken_of(@runs);
}
my @other = grep { defined $forms[$_][1] && $broken[$_] != $forms[$_][1] } 0 .. $#forms;
is_deeply [ map { ($broken[$_] ? 'ended: ' : 'taken: ') . substr $forms[$_][0], 0, 300 } @other ], [],
    'a line that differs in a member ends its runner or is taken, as the protocol says';
my $ended = grep { $_ } @broken;
cmp_ok $ended, '>', @forms / 2, 'most forms are breaches';
cmp_ok $ended, '<', @forms, 'some forms are none';

# One of each runner: a breach after the end of a run would count for the next one.
my @sequences = sequences();
@runs = create_all(map { hostile_run($names[$_], $sequences[$_][0], is_end => $sequences[$_][1] ? \1 : \0) } 0 .. $#sequences);
$sv->wake;
wait_all_over(@runs);
pass 'runs whose lines have a wrong order end';
note "$sent lines, ", scalar keys %distinct, " distinct ones, $total runners and $ended more of ", scalar @forms, ' forms of ', scalar @all,
    "; private memory of the supervisor: @kb KB";

open_gate($gate);
wait_status($honest, 'success');
is attempts_of($honest), 1, 'an honest run beside them ends at its first attempt';
is $sv->stop, 0, 'the supervisor exits with status 0';

done_testing;
