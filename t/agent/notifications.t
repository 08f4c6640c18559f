# SPDX-License-Identifier: Apache-2.0
# Notifications on channel agent_runs: every change of a run that waiters must see
# is notified, including changes that no worker makes.
use strict;
use warnings;
use AgentTest::Client;
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
    my $thread = $client->create_thread->{thread_id};
    my $first = $client->create_run($thread, 'sleep 60000');
    my $second = $client->create_run($thread, 'never', multitask_strategy => 'enqueue');
    is_notified($thread, $first->{run_id});
    return ($thread, $first, $second);
}

sub cancel {
    my ($run, $how) = @_;
    return $client->post(AgentTest::Client::run_path($run) . "/cancel?$how");
}

my ($thread, $first, $second) = busy_thread();
pass 'notifications: saved events are notified for the run and its thread';
begin();
cancel($second, 'action=interrupt');
ok is_notified($thread, $second->{run_id}), 'notifications: a run that is cancelled before it begins';
my $third = $client->create_run($thread, 'never', multitask_strategy => 'enqueue');
begin();
cancel($third, 'action=rollback');
ok is_notified($thread, $third->{run_id}), 'notifications: a run that is rolled back before it begins';
my $fourth = $client->create_run($thread, 'never', multitask_strategy => 'enqueue');
begin();
my $fifth = $client->create_run($thread, 'sleep 60000', multitask_strategy => 'interrupt');
ok is_notified($thread, $fourth->{run_id}), 'notifications: an enqueued run that a new run interrupts';
ok is_notified($thread, $first->{run_id}, $fifth->{run_id}), 'notifications: the executing run that a new run interrupts';
my $sixth = $client->create_run($thread, 'never', multitask_strategy => 'enqueue');
begin();
$client->create_run($thread, 'never', multitask_strategy => 'rollback');
ok is_notified($thread, $fifth->{run_id}, $sixth->{run_id}), 'notifications: runs that a new run rolls back';

begin();
is $client->delete(AgentTest::Client::run_path($first))->{status}, 204;
ok is_notified($thread, $first->{run_id}), 'notifications: a run that is deleted';
my ($other, @runs) = busy_thread();
begin();
is $client->delete("/threads/$other")->{status}, 204;
ok is_notified($other, map { $_->{run_id} } @runs), 'notifications: unfinished runs of a thread that is deleted';

my $many = $client->create_thread->{thread_id};
my @blocked = map { $client->create_run($many, 'sleep 60000', multitask_strategy => 'enqueue')->{run_id} } 1 .. 150;
begin();
is $client->delete("/threads/$many")->{status}, 204;
ok is_notified($many, @blocked), 'notifications: 150 unfinished runs of a thread that is deleted';

my $stateless = $client->post('/runs', { assistant_id => 'agent',
    input => { messages => [ { role => 'user', content => 'hello' } ] } })->{json};
ok is_notified(@$stateless{qw(run_id thread_id)}), 'notifications: a stateless run is notified with the id of its internal thread';

done_testing;
