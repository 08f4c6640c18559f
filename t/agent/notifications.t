# SPDX-License-Identifier: Apache-2.0
# Whoever waits for a run or a thread is told of every change that it must see,
# also of those that no worker makes.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Database;
use AgentTest::Wait;
use Test::More;

my $client = AgentTest::Client->new;
my $listener = start_listener();

# What was told before now is no news of what is caused next.
my ($heard, $marks) = (0, 0);
sub begin {
    my $mark = 'mark ' . ++$marks;
    print { $listener->{psql} } "select '$mark';\n";
    return $heard = wait_for($mark, sub {
        my $all = listen_once($listener);
        $all =~ /^$mark$/m && length $all;
    });
}

# True once all ids have been told since begin().
sub told {
    my (@ids) = @_;
    return wait_for("news of @ids", sub {
        my $all = substr listen_once($listener), $heard;
        !grep { index($all, $_) < 0 } @ids;
    });
}

# A thread whose first run executes, and whose second one waits for it.
sub busy_thread {
    my $thread = $client->create_thread->{thread_id};
    my $first = $client->create_run($thread, 'sleep 60000');
    my $second = $client->create_run($thread, 'never', multitask_strategy => 'enqueue');
    told($thread, $first->{run_id});
    return ($thread, $first, $second);
}

sub cancel {
    my ($run, $how) = @_;
    return $client->post(AgentTest::Client::run_path($run) . "/cancel?$how");
}

my ($thread, $first, $second) = busy_thread();
pass 'saved events are news of the run and of its thread';
begin();
cancel($second, 'action=interrupt');
ok told($thread, $second->{run_id}), 'so is a run that was cancelled before it began';
my $third = $client->create_run($thread, 'never', multitask_strategy => 'enqueue');
begin();
cancel($third, 'action=rollback');
ok told($thread, $third->{run_id}), 'or rolled back';
my $fourth = $client->create_run($thread, 'never', multitask_strategy => 'enqueue');
begin();
my $fifth = $client->create_run($thread, 'sleep 60000', multitask_strategy => 'interrupt');
ok told($thread, $fourth->{run_id}), 'one that gave way to another run';
ok told($thread, $first->{run_id}, $fifth->{run_id}), 'and the one that was stopped for it';
my $sixth = $client->create_run($thread, 'never', multitask_strategy => 'enqueue');
begin();
$client->create_run($thread, 'never', multitask_strategy => 'rollback');
ok told($thread, $fifth->{run_id}, $sixth->{run_id}), 'those that were rolled back for it';

begin();
is $client->delete(AgentTest::Client::run_path($first))->{status}, 204;
ok told($thread, $first->{run_id}), 'a run that was deleted';
my ($other, @runs) = busy_thread();
begin();
is $client->delete("/threads/$other")->{status}, 204;
ok told($other, map { $_->{run_id} } @runs), 'and all that was not final on a thread that was deleted';

my $many = $client->create_thread->{thread_id};
my @blocked = map { $client->create_run($many, 'sleep 60000', multitask_strategy => 'enqueue')->{run_id} } 1 .. 150;
begin();
is $client->delete("/threads/$many")->{status}, 204;
ok told($many, @blocked), 'however many they are';

my $stateless = $client->post('/runs', { assistant_id => 'agent',
    input => { messages => [ { role => 'user', content => 'hello' } ] } })->{json};
ok told(@$stateless{qw(run_id thread_id)}), 'a run without a thread has one here too';

done_testing;
