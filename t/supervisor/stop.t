# SPDX-License-Identifier: Apache-2.0
# The end of a supervisor: signals, drain, the end of its parent.
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

my $pg = start_cluster();

sub start_with_run {
    my ($input, %config) = @_;
    my $sv = TestSupervisor->start($pg, %config);
    $sv->wait_ready;
    return ($sv, $sv->start_run($input));
}

# Starts a supervisor with a run and calls $stop, which makes it end. Returns the
# supervisor, the run, the exit status and the other processes. Repeated when the
# machine stalls during the final writes (AGT0353).
sub start_and_stop {
    my ($stop, $config, $input) = @_;
    for my $try (1 .. 10) {
        my ($sv, $run) = start_with_run($input ? $input->() : { do => 'hang' }, $config ? $config->() : ());
        my @processes = ($sv->spawner_pid, $sv->runner_pids);
        $stop->($sv);
        my $status = $sv->wait_exit;
        return ($sv, $run, $status, \@processes) if $sv->log_text !~ /AGT0353/;
        sql('delete from agent.run_queue');
    }
    die "the final writes never ended in time\n";
}

sub wait_gone {
    my ($title, @pids) = @_;
    wait_for("@pids to end", sub { !grep { is_alive($_) } @pids });
    return pass $title;
}

# "state attempts" of a run in the queue.
sub queue_row {
    my ($run) = @_;
    return sql("select state || ' ' || attempts from agent.run_queue where run_id = '$run'") // '';
}

subtest 'SIGUSR1: runs finish, and no other run is claimed' => sub {
    my $gate = make_gate();
    my ($sv, $run) = start_with_run({ do => 'gate', path => $gate }, runners => 2);
    $sv->wait_runners(2);
    $sv->signal('USR1');
    $sv->wait_log(qr/AGT0331: runner \d+ ended \(exit status 0\) with 0 runs/);
    wait_for('the worker to be draining', sub {
        sql("select count(*) from agent.workers where state = 'draining'") == 1;
    });
    my $late = create_run({ do => 'noop' });
    $sv->wake;
    open_gate($gate);
    is $sv->wait_exit, 0, 'the supervisor exits with status 0';
    my %levels = map { $_ => 1 } $sv->log_text =~ / (\d+) AGT0331:/g;
    is_deeply \%levels, { 6 => 1 }, 'the runners were asked to end: their ends are logged with level info';
    is status_of($run), 'success', 'the run ends before the supervisor';
    is queue_row($late), 'ready 0', 'a run that becomes ready during a drain is not claimed';
    is sql("select count(*) from agent.workers where state <> 'dead'"), 0, 'the worker is deregistered';
    sql("delete from agent.run_queue");
};

subtest 'drain: after AgentDrainTimeout runs stop at a checkpoint and are released' => sub {
    my ($sv, $run) = start_with_run({ do => 'hang', once => 1 }, drain_timeout_ms => 200);
    $sv->signal('USR1');
    is $sv->wait_exit, 0, 'the supervisor exits with status 0';
    is queue_row($run), 'ready 0', 'the run is ready again, the attempt is not counted';
    is sql("select count(*) from agent.checkpoints where run_id = '$run'"), 1, 'the checkpoint of the run is saved';
    my $next = TestSupervisor->start($pg);
    wait_for('the next supervisor to execute the run', sub { events_of($run) >= 3 });
    $next->stop;
    sql("delete from agent.run_queue");
};

subtest 'drain: a run that stops at a checkpoint is released once its output is saved' => sub {
    my ($sv, $run) = start_with_run({ do => 'hang', once => 1, drains => 1 }, drain_timeout_ms => 3000);
    $sv->signal('USR1');
    is $sv->wait_exit, 0, 'the supervisor exits with status 0';
    is queue_row($run), 'ready 0', 'the run is ready again, the attempt is not counted';
    is sql("select count(*) from agent.checkpoints where run_id = '$run'"), 1, 'the checkpoint of the run is saved';
    my $stop = (events_of($run))[-1][1];
    is_deeply [ @{$stop}{qw(type run_id reason)} ], [ 'stop', $run, 'drain' ], 'the run is asked to stop';
    cmp_ok $stop->{deadline_ms}, '<=', 1000, 'the deadline is at most a third of AgentDrainTimeout';
    cmp_ok $stop->{deadline_ms}, '>=', 0, 'the deadline is not in the past';
    my $next = TestSupervisor->start($pg);
    wait_status($run, 'success');
    is attempts_of($run), 1, 'the run ends elsewhere at its first counted attempt';
    $next->stop;
};

subtest 'drain: a run that is cancelled while it is to stop is interrupted' => sub {
    my ($sv, $run) = start_with_run({ do => 'hang', drains => 1 }, drain_timeout_ms => 3000);
    # The supervisor learns of the cancel only after the end.
    sql("update agent.run_queue set cancel = 'interrupt' where run_id = '$run'");
    $sv->signal('USR1');
    is $sv->wait_exit, 0, 'the supervisor exits with status 0';
    is status_of($run), 'interrupted', 'the cancel decides';
};

subtest 'drain: a run that does not stop is released' => sub {
    my ($sv, $run) = start_with_run({ do => 'stuck' }, drain_timeout_ms => 100, timing_ms => fast_timing());
    $sv->signal('USR1');
    is $sv->wait_exit, 0, 'the supervisor exits with status 0';
    is queue_row($run), 'ready 0', 'the run is ready again, the attempt is not counted';
    sql("delete from agent.run_queue");
};

subtest 'drain: the final writes may take the rest of AgentDrainTimeout' => sub {
    my $sv = TestSupervisor->start($pg);
    $sv->wait_ready;
    my $lock = hold_lock('select from agent.workers for update');
    $sv->signal('USR1');
    $sv->wait_log(qr/AGT0352: stopping \(drained\)/);
    # Longer than the 5 s that final writes have in any case.
    print {$lock} "select pg_sleep(5.5);\ncommit;\n";
    close $lock;
    is $sv->wait_exit, 0, 'the supervisor exits with status 0';
    unlike $sv->log_text, qr/AGT0353/, 'the supervisor waits for the database';
    is sql("select count(*) from agent.workers where state <> 'dead'"), 0, 'the worker is deregistered';
};

subtest 'drain: SIGTERM ends the wait for a database that does not answer' => sub {
    my $sv = TestSupervisor->start($pg);
    $sv->wait_ready;
    my $lock = hold_lock('select from agent.workers for update');
    $sv->signal('USR1');
    $sv->wait_log(qr/AGT0352: stopping \(drained\)/);
    $sv->signal('TERM');
    is $sv->wait_exit, 0, 'the supervisor exits with status 0';
    like $sv->log_text, qr/AGT0353/, 'the missing answer is logged';
    close $lock;
};

for my $signal (qw(TERM INT)) {
    subtest "SIG$signal: runs are released at once" => sub {
        my ($sv, $run, $status, $processes) = start_and_stop(sub { $_[0]->signal($signal) });
        is $status, 0, 'the supervisor exits with status 0';
        is queue_row($run), 'ready 0', 'the run is ready again, the attempt is not counted';
        wait_gone('the spawner and the runner end', @{$processes});
        sql("delete from agent.run_queue");
    };
}

# Whether one of the processes has the file open.
sub has_open {
    my ($path, @pids) = @_;
    return scalar grep { (readlink $_ // '') eq $path } map { glob "/proc/$_/fd/*" } @pids;
}

# The signal arrives before the output, so that it is handled first.
subtest 'SIGTERM: a run whose end is in the pipe of its runner is not executed again' => sub {
    my $gate;
    my ($sv, $run, $status) = start_and_stop(sub {
        my ($supervisor) = @_;
        my @runners = $supervisor->runner_pids;
        $supervisor->signal('STOP');
        wait_for('the supervisor to be stopped', sub { AgentTest::Process::stat_of($supervisor->pid)->{state} eq 'T' });
        $supervisor->signal('TERM');
        open_gate($gate);
        wait_for('the runner to have written the end', sub { !has_open($gate, @runners) });
        $supervisor->signal('CONT');
    }, undef, sub { return { do => 'gate', path => $gate = make_gate() } });
    is $status, 0, 'the supervisor exits with status 0';
    is status_of($run), 'success', 'the end is stored';
    is attempts_of($run), 1, 'it is the end of the first attempt';
    is queue_row($run), '', 'no other supervisor executes the run';
};

subtest 'end of the parent: runs are released at once' => sub {
    my ($read, $write);
    my ($sv, $run, $status, $processes) = start_and_stop(sub { close $write }, sub {
        pipe $read, $write or die "pipe: $!\n";
        return life_pipe => [ $read, $write ];
    });
    is $status, 0, 'the supervisor exits with status 0';
    unlike $sv->log_text, qr/AGT0350/, 'the supervisor does not drain';
    like $sv->log_text, qr/AGT0352: .*, within 2000 ms$/m, 'it waits for the database for 2 s at most';
    wait_gone('the spawner and the runner end', @{$processes});
    is queue_row($run), 'ready 0', 'the run is ready again, the attempt is not counted';
    sql("delete from agent.run_queue");
};

subtest 'end of the parent: it is noticed while another process has the pipe open' => sub {
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
    my @processes = ($pid, descendants_of($pid));
    cmp_ok scalar(@processes), '>=', 3, 'there are a supervisor, a spawner and a runner';
    kill KILL => $parent;
    waitpid $parent, 0;
    wait_gone('supervisor, spawner and runner end', @processes);
    like slurp("$dir/log"), qr/AGT0352.*the parent has ended/, 'the end of the parent is logged';
    remove_tree($dir);
};

subtest 'end of the parent: the supervisor does not wait for a database that is down' => sub {
    pipe my $read, my $write or die "pipe: $!\n";
    my ($sv, $run) = start_with_run({ do => 'hang' }, life_pipe => [ $read, $write ]);
    my @processes = ($sv->spawner_pid, $sv->runner_pids);
    $pg->stop('immediate');
    close $write;
    is $sv->wait_exit, 0, 'the supervisor exits with status 0';
    wait_gone('the spawner and the runner end', @processes);
    like $sv->log_text, qr/AGT0353/, 'the missing release of the runs is logged';
    $pg->start;
    wait_for('the database', sub { eval { sql('select 1') } });
    sql("delete from agent.run_queue");
};

subtest 'a missing runner: the supervisor exits with status 2' => sub {
    my $sv = TestSupervisor->start($pg, runner => '/nowhere/agent-runner');
    is $sv->wait_exit >> 8, 2, 'the exit status is 2';
    like $sv->log_text, qr{AGT0303: .*/nowhere/agent-runner.*No such file}, 'the missing program is logged';
};

# epoll takes no files.
subtest 'a descriptor that cannot be watched: the supervisor ends, to be started again' => sub {
    open my $file, '<', "$FindBin::Bin/$FindBin::Script" or die "$FindBin::Script: $!";
    my $sv = TestSupervisor->start($pg, life_pipe => [$file]);
    is $sv->wait_exit >> 8, 1, 'the supervisor exits with status 1';
    like $sv->log_text, qr/AGT0368/, 'the log says why';
};

done_testing;
