# SPDX-License-Identifier: Apache-2.0
# Runners that send lines by the thousand, odd ones and then a breach of the protocol: each is ended, the supervisor and
# an honest run continue. AGENT_TEST_LONG=1 (make faults-long) sends a million lines, each breach with each message.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Env qw(is_sanitized);
use AgentTest::Wait;
use File::Temp qw(tempdir);
use HostileLines qw(odd_lines refused_line breaches);
use List::Util qw(max min);
use Test::More;
use TestSupervisor;

use constant POOLS => 20;
# How often a runner sends all odd lines: more than the supervisor keeps of a run.
use constant TIMES => $ENV{AGENT_TEST_LONG} ? 20 : 14;

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

# The arguments of create_run for a run that sends these lines.
sub hostile_run {
    my ($deployment, $times, @lines) = @_;
    my $path = "$dir/" . ++$files;
    open my $file, '>:raw', $path or die "$path: $!";
    print {$file} map { "$_\n" } @lines;
    close $file or die "$path: $!";
    return [ { path => $path, times => $times }, deployment => $ids{$deployment} ];
}

my @odd = odd_lines();
my @events = odd_lines('event');
my $sent = 0;

# The database refuses the first line: the others are about a run that the
# runner has lost.
sub lose_and_break { $sent += TIMES * @odd; return hostile_run($_[0], TIMES, refused_line(), @odd, $_[1]) }

sub store_and_break { $sent += @events; return hostile_run($_[0], 1, @events, $_[1]) }

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
note "$sent lines, $total runners; private memory of the supervisor: @kb KB";

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
open_gate($gate);
wait_status($honest, 'success');
is attempts_of($honest), 1, 'an honest run beside them ends at its first attempt';
is $sv->stop, 0, 'the supervisor exits with status 0';

done_testing;
