# SPDX-License-Identifier: Apache-2.0
# Notifications on channel agent_runs: every change of a run that waiters must see
# is notified, including changes that no worker makes.
use strict;
use warnings;
use AgentTest::Client qw(run_body run_path);
use AgentTest::Database;
use AgentTest::Wait;
use Test::More;

my $client = AgentTest::Client->new;
my $listener = start_listener();

# Only notifications after this count.
my ($notified, $marks) = (0, 0);
sub begin {
    my $mark = 'mark ' . ++$marks;
    print { $listener->{psql} } "select '$mark';\n";
    return $notified = wait_for($mark, sub {
        my $all = listen_once($listener);
        $all =~ /^$mark$/m && length $all;
    });
}

# True once all ids have been notified since begin().
sub is_notified {
    my (@ids) = @_;
    return wait_for("notifications of @ids", sub {
        my $all = substr listen_once($listener), $notified;
        !grep { index($all, $_) < 0 } @ids;
    });
}

# A thread with a run that executes and a second one that waits for it.
sub busy_thread {
    my $thread = $client->new_thread;
    my $first = $client->create_run($thread, 'sleep 60000');
    my $second = $client->create_run($thread, 'never', multitask_strategy => 'enqueue');
    is_notified($thread, $first->{run_id});
    return ($thread, $first, $second);
}

sub cancel {
    my ($run, $how) = @_;
    return $client->post(run_path($run) . "/cancel?$how");
}

my ($thread, $first, $second) = busy_thread();
pass 'notifications: saved events are notified for the run and its thread';
begin();
cancel($second, 'action=interrupt');
ok is_notified($thread, $second->{run_id}), 'notifications: a cancel of a run that has not begun is notified';
my $third = $client->create_run($thread, 'never', multitask_strategy => 'enqueue');
begin();
cancel($third, 'action=rollback');
ok is_notified($thread, $third->{run_id}), 'notifications: a rollback of a run that has not begun is notified';
my $fourth = $client->create_run($thread, 'never', multitask_strategy => 'enqueue');
begin();
my $fifth = $client->create_run($thread, 'sleep 60000', multitask_strategy => 'interrupt');
ok is_notified($thread, $fourth->{run_id}), 'notifications: the end of an enqueued run that a new run interrupts is notified';
ok is_notified($thread, $first->{run_id}, $fifth->{run_id}), 'notifications: the end of an executing run that a new run interrupts is notified';
my $sixth = $client->create_run($thread, 'never', multitask_strategy => 'enqueue');
begin();
$client->create_run($thread, 'never', multitask_strategy => 'rollback');
ok is_notified($thread, $fifth->{run_id}, $sixth->{run_id}), 'notifications: the end of runs that a new run rolls back is notified';

begin();
is $client->delete(run_path($first))->{status}, 204, 'notifications: an interrupted run can be deleted';
ok is_notified($thread, $first->{run_id}), 'notifications: the deletion of a run is notified';
my ($other, @runs) = busy_thread();
begin();
is $client->delete("/threads/$other")->{status}, 204, 'notifications: a thread with unfinished runs can be deleted';
ok is_notified($other, map { $_->{run_id} } @runs), 'notifications: the deletion of a thread is notified for its unfinished runs';

my $many = $client->new_thread;
my @blocked = map { $client->create_run($many, 'sleep 60000', multitask_strategy => 'enqueue')->{run_id} } 1 .. 150;
begin();
is $client->delete("/threads/$many")->{status}, 204, 'notifications: a thread with 150 unfinished runs can be deleted';
ok is_notified($many, @blocked), 'notifications: the deletion of a thread is notified for all of 150 unfinished runs';

my $stateless = $client->post('/runs', run_body('hello'))->{json};
ok is_notified(@$stateless{qw(run_id thread_id)}), 'notifications: a stateless run is notified with the id of its internal thread';

done_testing;
