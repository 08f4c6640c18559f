# SPDX-License-Identifier: Apache-2.0
# Runners that are replaced after a number of runs, at an amount of memory, or because they ask for it: no run is lost or waits for a process.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Env qw(is_sanitized root write_file);
use AgentTest::Wait;
use File::Temp qw(tempdir);
use Test::More;
use TestSupervisor;

use constant MB => 1024 * 1024;

my $pg = start_cluster();

sub supervisor {
    my (%config) = @_;
    my $sv = TestSupervisor->start($pg, node => 'recycle', timing_ms => fast_timing(), %config);
    $sv->wait_ready;
    return $sv;
}

# The process that executed, or executes, a run of `do` => `report` or `gate`.
sub pid_of { return (events_of($_[0]))[1][1]{pid} }

# The number of processes that were started, and of those that have ended.
sub started { my ($sv) = @_; return scalar(() = $sv->log_text =~ /AGT0330/g) }
sub ended   { my ($sv) = @_; return scalar(() = $sv->log_text =~ /AGT0331/g) }

subtest 'a runner is replaced after its number of runs, and completes those that it executes' => sub {
    my $sv = supervisor(runner_max_runs => 3);
    my ($gate, $own) = (make_gate(), make_gate());
    my ($old) = $sv->runner_pids;
    my @held = ($sv->start_run({ do => 'gate', path => $gate }), $sv->start_run({ do => 'gate', path => $gate }));
    is $sv->runner_pids, 1, 'number of runs: before it is reached there is one runner';
    my $third = $sv->start_run({ do => 'gate', path => $own });
    is pid_of($third), $old, 'number of runs: a runner executes as many as its limit says';
    $sv->wait_runners(2);
    like $sv->log_text, qr/AGT0358: runner $old of pool default is replaced after 3 runs/, 'number of runs: the log says why a runner is replaced';
    wait_for('it to get no more runs', sub { pid_of($sv->start_run({ do => 'report' })) != $old });
    is sql("select count(*) from agent.run_queue where state = 'leased' and epoch = 1 and run_id in (" . quoted(@held, $third) . ')'),
        3, 'number of runs: those of a runner that is replaced go on';
    open_gate($_) for $gate, $own;
    wait_all_final('success', @held, $third);
    is attempts_of(@held, $third), 1, 'number of runs: those of a runner that is replaced are executed once';
    wait_for('it to end', sub { !grep { $_ == $old } $sv->runner_pids });
    unlike $sv->log_text, qr/AGT0337|AGT0374/, 'number of runs: the end of a runner that is replaced is not a failure';
    is $sv->stop, 0, 'number of runs: the supervisor exits with status 0';
};

subtest 'a runner that asks for it is replaced, and completes those that it executes' => sub {
    my $sv = supervisor();
    my $gate = make_gate();
    my ($old) = $sv->runner_pids;
    my $held = $sv->start_run({ do => 'gate', path => $gate, spent => 1 });
    $sv->wait_log(qr/AGT0358: runner $old of pool default is replaced after 1 runs/);
    wait_for('it to get no more runs', sub { pid_of($sv->start_run({ do => 'report' })) != $old });
    is run_field($held, 'finished_at is null'), 't', 'request: a run of the runner that asked goes on';
    open_gate($gate);
    wait_status($held, 'success');
    is attempts_of($held), 1, 'request: a run of the runner that asked is executed once';
    wait_for('it to end', sub { !grep { $_ == $old } $sv->runner_pids });
    is $sv->stop, 0, 'request: the supervisor exits with status 0';
};

subtest 'runs are executed while every runner is replaced after one run' => sub {
    my $sv = supervisor(runner_max_runs => 1, runners => 2);
    $sv->wait_runners(2);
    my @runs;
    # Until each of the first two and two of their replacements have ended.
    while (ended($sv) < 4) {
        my @some = create_each(3, { do => 'noop' });
        $sv->wake;
        wait_final($_) for @some;
        push @runs, @some;
    }
    is sql("select string_agg(distinct status, ' ') from agent.runs where run_id in (" . quoted(@runs) . ')'), 'success', 'every run: all end with success';
    is attempts_of(@runs), 1, 'every run: none is executed twice';
    unlike $sv->log_text, qr/AGT0337/, 'every run: the next runner is started without a pause';
    is $sv->stop, 0, 'every run: the supervisor exits with status 0';
};

subtest 'of several runners one is replaced at a time' => sub {
    my $sv = supervisor(runner_max_runs => 1, runners => 3);
    $sv->wait_runners(3);
    my $gate = make_gate();
    my @runs = $sv->start_runs(3, { do => 'gate', path => $gate });
    my %pids = map { pid_of($_) => 1 } @runs;
    is keys %pids, 3, 'several runners: each has reached its bound';
    # Replacements have executed none.
    $sv->wait_runners(6);
    my @lines = $sv->log_text =~ /AGT(0330|0358)/g;
    is "@lines", '0330 0330 0330 0358 0330 0358 0330 0358 0330', 'several runners: the next one waits until the replacement before it is ready';
    open_gate($gate);
    wait_all_final('success', @runs);
    is attempts_of(@runs), 1, 'several runners: their runs are executed once';
    wait_for('the old ones to end', sub { !grep { $pids{$_} } $sv->runner_pids });
    is $sv->stop, 0, 'several runners: the supervisor exits with status 0';
};

subtest 'a runner is replaced when its memory is above a bound' => sub {
    my $size = is_sanitized() ? 300 : 80;
    my $sv = supervisor(runner_recycle_memory => 64 * MB, runner_memory => 1024 * MB);
    my ($old) = $sv->runner_pids;
    my $run = create_run({ do => 'share', bytes => $size * MB });
    $sv->wake;
    $sv->wait_log(qr/AGT0358: runner $old of pool default is replaced after 1 runs, with \d+ MB/);
    $sv->wait_runners(2);
    wait_for('it to get no more runs', sub { pid_of($sv->start_run({ do => 'report' })) != $old });
    is run_field($run, 'finished_at is null'), 't', 'memory: the run that took it goes on';
    $sv->cancel($run);
    wait_status($run, 'interrupted');
    wait_for('it to end', sub { !grep { $_ == $old } $sv->runner_pids });
    is $sv->stop, 0, 'memory: the supervisor exits with status 0';
};

subtest 'a runner that left and does not end a run is killed, though others of its runs go on' => sub {
    my $sv = supervisor(runner_max_runs => 2);
    my $gate = make_gate();
    my ($old) = $sv->runner_pids;
    my $other = $sv->start_run({ do => 'gate', path => $gate });
    my $stuck = $sv->start_run({ do => 'stuck' });
    wait_for('it to get no more runs', sub { pid_of($sv->start_run({ do => 'report' })) != $old });
    $sv->cancel($stuck);
    wait_status($stuck, 'interrupted');
    $sv->wait_log(qr/AGT0342: runner $old did not end run $stuck/);
    wait_for('the other run to go on in another runner', sub { events_of($other) >= 4 });
    isnt +(events_of($other))[3][1]{pid}, $old, 'killed runner: its other run goes on in another runner';
    open_gate($gate);
    wait_status($other, 'success');
    is attempts_of($other), 1, 'killed runner: the attempt of its other run is not counted';
    is $sv->stop, 0, 'killed runner: the supervisor exits with status 0';
};

subtest 'of two runners that are drained, the one that does not end a run makes room' => sub {
    my $sv = supervisor(runner_max_runs => 3);
    my $gate = make_gate();
    # Three each, so that the other one gets the next runs even before the first one is drained.
    my ($kept) = my @kept = $sv->start_runs(3, { do => 'gate', path => $gate });
    wait_for('another one to get the runs', sub { pid_of($sv->start_run({ do => 'report' })) != pid_of($kept) });
    my $stuck = $sv->start_run({ do => 'stuck' });
    my $beside = $sv->start_run({ do => 'gate', path => $gate });
    is pid_of($beside), pid_of($stuck), 'two that are drained: one executes the run that does not end, and another one';
    isnt pid_of($stuck), pid_of($kept), 'two that are drained: the other one does not execute the run that does not end';
    $sv->cancel($stuck);
    wait_status($stuck, 'interrupted');
    isnt pid_of($sv->start_run({ do => 'report' })), pid_of($_), 'two that are drained: a third runner is started' for $kept, $stuck;
    wait_for('the run beside it to go on', sub { events_of($beside) >= 4 });
    open_gate($gate);
    wait_all_final('success', @kept, $beside);
    is sql("select string_agg(distinct epoch::text, ' ') from agent.usage_events where run_id in (" . quoted(@kept) . ')'), 1, 'two that are drained: the runs of the one that ends its runs go on';
    is sql("select epoch from agent.usage_events where run_id = '$beside'"), 2, 'two that are drained: the run beside the one that does not end goes on elsewhere';
    is $sv->stop, 0, 'two that are drained: the supervisor exits with status 0';
};

subtest 'a runner whose replacement does not start goes on' => sub {
    plan skip_all => 'a sanitizer is preloaded' if is_sanitized();
    my $dir = tempdir(CLEANUP => 1);
    my ($library, $refused) = map { "$dir/$_" } qw(refuse_fork.so refused);
    system($ENV{CC} // 'cc', qw(-shared -fPIC -o), $library, root() . '/t/agent/refuse_fork.c') == 0 or die "refuse_fork.c: $?\n";
    my $sv = supervisor(runner_max_runs => 1, uid => -1, within => [ 'env', "LD_PRELOAD=$library", "AGENT_TEST_REFUSE_FORK=$refused" ]);
    write_file($refused);
    my ($old) = $sv->runner_pids;
    wait_status($sv->start_run({ do => 'report' }), 'success');
    $sv->wait_log(qr/AGT0358.*AGT0336: the spawner could not start a runner/s);
    is pid_of($sv->start_run({ do => 'report' })), $old, 'no replacement: the runner executes the next runs';
    unlink $refused or die "$refused: $!\n";
    wait_for('it to get no more runs', sub { pid_of($sv->start_run({ do => 'report' })) != $old });
    is $sv->stop, 0, 'no replacement: the supervisor exits with status 0';
};

done_testing;
