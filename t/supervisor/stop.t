# SPDX-License-Identifier: Apache-2.0
# The ways to end a supervisor.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Env qw(slurp);
use AgentTest::Process qw(descendants_of is_alive);
use AgentTest::Wait;
use File::Path qw(remove_tree);
use IO::Handle;
use Test::More;
use TestSupervisor;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

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

# Starts a supervisor with a run and makes it leave: the supervisor, the run, its
# exit status, its processes, and the time. Repeated when the machine stalls
# during the final writes (AGT0353).
sub start_and_leave {
    my ($leave, $config) = @_;
    for my $try (1 .. 10) {
        my ($sv, $run) = start_with_run({ do => 'hang' }, $config ? $config->() : ());
        my @family = ($sv->spawner_pid, $sv->runner_pids);
        my $begun = clock_gettime(CLOCK_MONOTONIC);
        $leave->($sv);
        my $status = $sv->wait_exit;
        my $sec = clock_gettime(CLOCK_MONOTONIC) - $begun;
        return ($sv, $run, $status, \@family, $sec) if $sv->log_text !~ /AGT0353/;
        sql('delete from agent.run_queue');
    }
    die "the database never answered in time\n";
}

sub wait_gone {
    my ($title, @pids) = @_;
    wait_for("@pids to end", sub { !grep { is_alive($_) } @pids });
    return pass $title;
}

sub queue_row {
    my ($run) = @_;
    return sql("select state || ' ' || attempts from agent.run_queue where run_id = '$run'") // '';
}

subtest 'SIGUSR1: runs finish, no others are claimed' => sub {
    my $gate = make_gate();
    my ($sv, $run) = start_with_run({ do => 'gate', path => $gate }, runners => 2);
    wait_for('both runners', sub { 2 == (() = $sv->log_text =~ /AGT0330/g) });
    $sv->signal('USR1');
    $sv->wait_log(qr/AGT0331: runner \d+ ended \(exit status 0\) with 0 runs/);
    wait_for('the worker to be draining', sub {
        sql("select count(*) from agent.workers where state = 'draining'") == 1;
    });
    my $late = create_run({ do => 'noop' });
    $sv->wake;
    open_gate($gate);
    is $sv->wait_exit, 0, 'it ends when the run has';
    is status_of($run), 'success', 'the run is finished';
    is queue_row($late), 'ready 0', 'no other run was claimed';
    is sql("select count(*) from agent.workers where state <> 'dead'"), 0, 'the worker has left';
    sql("delete from agent.run_queue");
};

subtest 'drain: after its time runs stop at a checkpoint and are released' => sub {
    my ($sv, $run) = start_with_run({ do => 'hang', once => 1 }, drain_timeout_ms => 200);
    $sv->signal('USR1');
    is $sv->wait_exit, 0, 'it ends';
    is queue_row($run), 'ready 0', 'the run is ready again, the attempt is not counted';
    is sql("select count(*) from agent.checkpoints where run_id = '$run'"), 1, 'its checkpoint is saved';
    my $next = TestSupervisor->start($pg);
    wait_for('the next supervisor to take it', sub { events_of($run) >= 3 });
    $next->stop;
    sql("delete from agent.run_queue");
};

subtest 'drain: a run that does not stop does not delay the end' => sub {
    my ($sv, $run) = start_with_run({ do => 'stuck' }, drain_timeout_ms => 100, timing_ms => fast_timing());
    $sv->signal('USR1');
    is $sv->wait_exit, 0, 'it ends';
    is queue_row($run), 'ready 0', 'the run is ready again, the attempt is not counted';
    sql("delete from agent.run_queue");
};

for my $signal (qw(TERM INT)) {
    subtest "SIG$signal: runs are released at once" => sub {
        my ($sv, $run, $status, $family) = start_and_leave(sub { $_[0]->signal($signal) });
        is $status, 0, 'it ends';
        is queue_row($run), 'ready 0', 'the run is ready again, the attempt is not counted';
        wait_gone('the runner is gone', @{$family});
        sql("delete from agent.run_queue");
    };
}

subtest 'end of the parent: runs are released at once' => sub {
    my ($read, $write);
    my ($sv, $run, $status, $family, $sec) = start_and_leave(sub { close $write }, sub {
        pipe $read, $write or die "pipe: $!\n";
        return life_pipe => [ $read, $write ];
    });
    is $status, 0, 'it ends';
    # Not when the run or the time for a drain has ended.
    cmp_ok $sec, '<', 120, 'before the run, or a drain, has ended';
    note sprintf 'after %.0f ms', 1000 * $sec;
    wait_gone('with its runners', @{$family});
    is queue_row($run), 'ready 0', 'the run is ready again, the attempt is not counted';
    sql("delete from agent.run_queue");
};

subtest 'end of the parent: noticed while another process has its pipe open' => sub {
    pipe my $read, my $write or die "pipe: $!\n";
    pipe my $reader, my $writer or die "pipe: $!\n";
    my $parent = fork // die "fork: $!\n";
    if (!$parent) {
        my $sv = TestSupervisor->start($pg, life_pipe => [ $read, $write ]);
        $sv->wait_ready;
        $writer->autoflush;
        print {$writer} $sv->pid, ' ', $sv->{dir}, "\n";
        sleep 1 while 1;
    }
    my ($pid, $dir) = split ' ', readline $reader;
    my @family = ($pid, descendants_of($pid));
    cmp_ok scalar(@family), '>=', 3, 'supervisor, spawner and runner are there';
    kill KILL => $parent;
    waitpid $parent, 0;
    wait_gone('they end', @family);
    like slurp("$dir/log"), qr/AGT0352.*the parent has ended/, 'the log says why';
    remove_tree($dir);
};

subtest 'end of the parent: the supervisor ends without the database' => sub {
    pipe my $read, my $write or die "pipe: $!\n";
    my ($sv, $run) = start_with_run({ do => 'hang' }, life_pipe => [ $read, $write ]);
    my @family = ($sv->spawner_pid, $sv->runner_pids);
    $pg->stop('immediate');
    close $write;
    is $sv->wait_exit, 0, 'it ends';
    wait_gone('with its runners', @family);
    like $sv->log_text, qr/AGT0353/, 'the log says that the runs were not released';
    $pg->start;
    wait_for('the database', sub { eval { sql('select 1') } });
    sql("delete from agent.run_queue");
};

subtest 'a missing runner: the supervisor exits with status 2' => sub {
    my $sv = TestSupervisor->start($pg, runner => '/nowhere/agent-runner');
    is $sv->wait_exit >> 8, 2, 'the supervisor does not start';
    like $sv->log_text, qr{AGT0303: .*/nowhere/agent-runner.*No such file}, 'the log says why';
};

done_testing;
