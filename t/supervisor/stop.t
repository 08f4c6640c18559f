# SPDX-License-Identifier: Apache-2.0
# The ways to end a supervisor.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Process qw(is_alive);
use AgentTest::Wait;
use Test::More;
use TestSupervisor;
use Time::HiRes qw(time);

my $pg = start_cluster();

sub start_with_run {
    my ($input, %config) = @_;
    my $sv = TestSupervisor->start($pg, %config);
    $sv->wait_ready;
    my $run = create_run($input);
    $sv->wake;
    wait_for('it to run', sub { events_of($run) == 2 });
    return ($sv, $run);
}

sub queue_row {
    my ($run) = @_;
    return sql("select state || ' ' || attempts from agent.run_queue where run_id = '$run'") // '';
}

subtest 'SIGUSR1 lets runs finish' => sub {
    my $gate = make_gate();
    my ($sv, $run) = start_with_run({ do => 'gate', path => $gate }, runners => 2);
    wait_for('both runners', sub { 2 == (() = $sv->log_text =~ /AGT0330/g) });
    $sv->signal('USR1');
    $sv->wait_log(qr/AGT0331: runner \d+ ended \(exit status 0\) with 0 runs/);
    wait_for('the worker to be draining', sub {
        sql('select count(*) from agent.workers where state = 2') == 1;
    });
    my $late = create_run({ do => 'noop' });
    $sv->wake;
    open_gate($gate);
    is $sv->wait_exit, 0, 'it ends when the run has';
    is status_of($run), 'success', 'the run is finished';
    is queue_row($late), '1 0', 'no other run was claimed';
    is sql('select count(*) from agent.workers where state <> 3'), 0, 'the worker has left';
    sql("delete from agent.run_queue");
};

subtest 'after the drain time runs stop at a checkpoint and are given back' => sub {
    my ($sv, $run) = start_with_run({ do => 'hang', once => 1 }, drain_timeout_ms => 200);
    $sv->signal('USR1');
    is $sv->wait_exit, 0, 'it ends';
    is queue_row($run), '1 0', 'the run is ready again, the attempt is not counted';
    is sql("select count(*) from agent.checkpoints where run_id = '$run'"), 1, 'its checkpoint is saved';
    my $next = TestSupervisor->start($pg);
    wait_for('the next supervisor to take it', sub { events_of($run) >= 3 });
    $next->stop;
    sql("delete from agent.run_queue");
};

subtest 'a run that does not stop does not hold the drain up' => sub {
    my ($sv, $run) = start_with_run({ do => 'stuck' }, drain_timeout_ms => 100, timing_ms => fast_timing());
    $sv->signal('USR1');
    is $sv->wait_exit, 0, 'it ends';
    is queue_row($run), '1 0', 'the run is ready again, the attempt is not counted';
    sql("delete from agent.run_queue");
};

for my $signal (qw(TERM INT)) {
    subtest "SIG$signal gives runs back at once" => sub {
        my ($sv, $run) = start_with_run({ do => 'hang' });
        my @runners = $sv->runner_pids;
        is $sv->stop($signal), 0, 'it ends';
        is queue_row($run), '1 0', 'the run is ready again, the attempt is not counted';
        ok !(grep { is_alive($_) } @runners), 'the runner is gone';
        sql("delete from agent.run_queue");
    };
}

subtest 'the end of the parent' => sub {
    pipe my $read, my $write or die "pipe: $!\n";
    my ($sv, $run) = start_with_run({ do => 'hang' }, life_pipe => [ $read, $write ]);
    my @family = ($sv->spawner_pid, $sv->runner_pids);
    close $write;
    my $begun = time;
    is $sv->wait_exit, 0, 'it ends';
    cmp_ok time - $begun, '<', 5, 'soon';
    note sprintf 'after %.0f ms', 1000 * (time - $begun);
    ok !(grep { is_alive($_) } @family), 'with its runners';
    is queue_row($run), '1 0', 'the run is ready again, the attempt is not counted';
    sql("delete from agent.run_queue");
};

subtest 'the end of the parent while the database is down' => sub {
    pipe my $read, my $write or die "pipe: $!\n";
    my ($sv, $run) = start_with_run({ do => 'hang' }, life_pipe => [ $read, $write ]);
    my @family = ($sv->spawner_pid, $sv->runner_pids);
    $pg->stop('immediate');
    close $write;
    is $sv->wait_exit, 0, 'it ends all the same';
    ok !(grep { is_alive($_) } @family), 'with its runners';
    like $sv->log_text, qr/AGT0353/, 'the log says that the runs were not released';
    $pg->start;
    wait_for('the database', sub { eval { sql('select 1') } });
    sql("delete from agent.run_queue");
};

subtest 'a runner that is missing' => sub {
    my $sv = TestSupervisor->start($pg, runner => '/nowhere/agent-runner');
    is $sv->wait_exit >> 8, 2, 'the supervisor does not start';
    like $sv->log_text, qr{AGT0303: .*/nowhere/agent-runner.*No such file}, 'the log says why';
};

done_testing;
