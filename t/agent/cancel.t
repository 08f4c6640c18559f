# SPDX-License-Identifier: Apache-2.0
# POST .../cancel: interrupt and rollback, waiting or not.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Wait;
use Test::More;

my $client = AgentTest::Client->new;

sub path { return AgentTest::Client::run_path($_[0]) }
sub new_thread { return $client->create_thread->{thread_id} }

my $thread = new_thread();
my $run = $client->create_run($thread, 'sleep 60000');
# Executing: a run that never began leaves nothing to go on with.
wait_for('the run to execute',
    sub { @{ $client->get_state($thread)->{next} || [] } });
my $cancelled = $client->post(path($run) . '/cancel');
is $cancelled->{status}, 202, 'a cancel is accepted';
is $cancelled->{body}, '', 'without a body';
$client->join_run($run);
is $client->get_run($run)->{status}, 'interrupted', 'the run is interrupted';
is $client->get("/threads/$thread")->{json}{status}, 'interrupted',
    'so is its thread: a run without input would go on where it stopped';

my $waited = $client->create_run($thread, 'sleep 60000');
is $client->post(path($waited) . '/cancel?wait=true')->{status}, 204,
    'a cancel that waits answers 204';
is $client->get_run($waited)->{status}, 'interrupted',
    'when the run has ended';

my $again = $client->post(path($waited) . '/cancel');
is $again->{status}, 409, 'a finished run cannot be cancelled';
is $again->{json}{code}, 'run_finished', 'with its code';
is $client->get_run($waited)->{status}, 'interrupted',
    'and keeps its final status';

my $before = $client->get_state($thread)->{checkpoint_id};
my $rolled = $client->create_run($thread, 'sleep 60000');
is $client->post(path($rolled) . '/cancel?action=rollback&wait=1')->{status},
    204, 'rollback is an action';
is $client->get(path($rolled))->{status}, 404, 'the run is gone';
is $client->get_state($thread)->{checkpoint_id}, $before,
    'and the state is what it was before';

my $first = $client->create_run($thread, 'sleep 60000');
my $queued = $client->create_run($thread, 'never',
    multitask_strategy => 'enqueue');
is $client->post(path($queued) . '/cancel?wait=1')->{status}, 204,
    'a run in the queue is cancelled at once';
is $client->get_run($queued)->{status}, 'interrupted', 'and interrupted';
is $client->get_run($first)->{status}, 'pending', 'the one before it goes on';
$client->post(path($first) . '/cancel?wait=1');

is $client->post(path($run) . '/cancel?action=explode')->{status}, 422,
    'an unknown action is refused';
is $client->post(path($run) . '/cancel?wait=perhaps')->{status}, 422,
    'so is a wait that is no boolean';
is $client->post("/threads/$thread/runs/01890000-0000-7000-8000-000000000000"
        . '/cancel')->{status}, 404, 'an unknown run is 404';

done_testing;
