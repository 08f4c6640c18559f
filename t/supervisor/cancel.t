# SPDX-License-Identifier: Apache-2.0
# Runs that are cancelled, or whose thread or state is deleted, while they execute.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Wait;
use Test::More;
use TestSupervisor;

my $pg = start_cluster();
my $sv = TestSupervisor->start($pg, timing_ms => fast_timing());
$sv->wait_ready;
my $deployment = $TestSupervisor::DEPLOYMENT;

sub cancel_run {
    my ($run, $action) = @_;
    my $thread = run_field($run, 'thread_id');
    my $code = sql("select code from agent.cancel_run('$deployment', '$thread', '$run', '$action')");
    $sv->wake('C');
    return $code;
}

subtest 'cancel: a run ends as interrupted and keeps its checkpoints' => sub {
    my $run = $sv->start_run({ do => 'hang' });
    is cancel_run($run, 'interrupt'), 'ok', 'the cancellation is accepted';
    wait_status($run, 'interrupted');
    is sql("select count(*) from agent.checkpoints where run_id = '$run'"), 1, 'the checkpoint of the cancelled run is kept';
};

subtest 'a cancel takes effect although its datagram is lost' => sub {
    my $run = $sv->start_run({ do => 'hang' });
    my $thread = run_field($run, 'thread_id');
    sql("select code from agent.cancel_run('$deployment', '$thread', '$run', 'interrupt')");
    wait_status($run, 'interrupted');
};

subtest 'cancel: the action rollback deletes the run' => sub {
    my $run = $sv->start_run({ do => 'hang' });
    is cancel_run($run, 'rollback'), 'ok', 'the rollback is accepted';
    wait_for('the run to be gone', sub { poll("select count(*) from agent.runs where run_id = '$run'") == 0 });
    pass 'the run is deleted';
};

subtest 'cancel: the runner of a run that ignores it is replaced' => sub {
    my $run = $sv->start_run({ do => 'stuck' });
    my $other = $sv->start_run({ do => 'hang' });
    cancel_run($run, 'interrupt');
    wait_status($run, 'interrupted');
    $sv->wait_log(qr/AGT0342: runner \d+ did not end run $run/);
    is sql("select count(*) from agent.run_queue where run_id = '$run'"), 0, 'the cancelled run is not attempted again';
    wait_for('the other run to continue on another runner', sub { events_of($other) >= 3 });
    is sql("select attempts from agent.run_queue where run_id = '$other'"), 1,
        'the attempt of the other run is not counted';
    cancel_run($other, 'interrupt');
    wait_status($other, 'interrupted');
};

subtest 'cancel: a run whose runner dies is not attempted again' => sub {
    my $run = $sv->start_run({ do => 'stuck' });
    my ($pid) = map { $_->[1]{pid} } (events_of($run))[1];
    cancel_run($run, 'interrupt');
    kill KILL => $pid;
    wait_status($run, 'interrupted');
    is attempts_of($run), 1, 'the cancelled run has one attempt';
};

subtest 'strategy interrupt: a new run interrupts the one that executes' => sub {
    my $run = $sv->start_run({ do => 'hang' });
    my $next = create_run({ do => 'noop' }, thread => run_field($run, 'thread_id'), strategy => 'interrupt');
    $sv->wake('C');
    wait_status($run, 'interrupted');
    wait_status($next, 'success');
};

subtest 'delete thread: its run ends, its runner continues' => sub {
    my $run = $sv->start_run({ do => 'hang' });
    my $thread = run_field($run, 'thread_id');
    my $before = $sv->log_text;
    is sql("select code from agent.delete_thread('$deployment', '$thread')"), 'ok', 'the thread is deleted';
    $sv->wake('C');
    $sv->wait_log(qr/AGT0343: the lease of run $run .* is lost/);
    my $after = create_run({ do => 'noop' });
    $sv->wake;
    wait_status($after, 'success');
    unlike substr($sv->log_text, length $before), qr/AGT033[12]/, 'the runner is not killed';
    is sql("select count(*) from agent.run_events where run_id = '$run'"), 0, 'no event of the run is left';
};

# A run that has ended, with a checkpoint, and the next one of its thread, which executes.
sub start_second {
    my $first = create_run({ do => 'step' });
    $sv->wake;
    wait_status($first, 'success');
    return ($first, $sv->start_run({ do => 'hang', once => 1 }, thread => run_field($first, 'thread_id')));
}

sub delete_run {
    my ($run) = @_;
    my $thread = run_field($run, 'thread_id');
    my $code = sql("select code from agent.delete_run('$deployment', '$thread', '$run')");
    $sv->wake;
    return $code;
}

subtest 'delete run: the next run, which continues its state, begins again when its runner has ended it' => sub {
    my $other = $sv->start_run({ do => 'hang' });
    my ($first, $next) = start_second();
    my $before = $sv->log_text;
    is delete_run($first), 'ok', 'the run is deleted';
    wait_status($next, 'success');
    is sql("select epoch from agent.usage_events where run_id = '$next'"), 2, 'the next run was leased again';
    is sql("select epoch from agent.run_queue where run_id = '$other'"), 1, 'a run of the same runner continues';
    unlike substr($sv->log_text, length $before), qr/AGT033[12]/, 'no runner ends';
    $sv->cancel($other);
    wait_status($other, 'interrupted');
};

subtest 'delete run: a run that was to start from its checkpoint ends in error' => sub {
    my ($first, $active) = start_second();
    my $thread = run_field($first, 'thread_id');
    my $named = sql("select head_checkpoint_id from agent.threads where thread_id = '$thread'");
    my $waiting = create_run({ do => 'step' }, thread => $thread, strategy => 'enqueue',
        request => { checkpoint_id => $named });
    is delete_run($first), 'ok', 'the run is deleted';
    wait_status($active, 'success');
    wait_status($waiting, 'error');
    is error_of($waiting), 'StateUnavailableError', 'its error has the name';
    is sql("select count(*) from agent.checkpoints where run_id = '$waiting'"), 0, 'it does not change the state';
};

is $sv->stop, 0, 'the supervisor exits with status 0';

done_testing;
