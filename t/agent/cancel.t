# SPDX-License-Identifier: Apache-2.0
# POST .../cancel: interrupt and rollback, with and without wait.
use strict;
use warnings;
use AgentTest::Client qw(run_path);
use AgentTest::Wait;
use Test::More;

my $client = AgentTest::Client->new;

my $thread = $client->new_thread;
my $run = $client->create_run($thread, 'sleep 60000');
# Only a run that has begun leaves a state to resume from.
wait_for('the run to execute',
    sub { @{ $client->get_state($thread)->{next} || [] } });
my $cancelled = $client->post(run_path($run) . '/cancel');
is $cancelled->{status}, 202, 'cancel: an active run is 202';
is $cancelled->{body}, '', 'cancel: the response has no body';
$client->join_run($run);
is $client->get_run($run)->{status}, 'interrupted', 'cancel: the run becomes interrupted';
is $client->get("/threads/$thread")->{json}{status}, 'interrupted',
    'cancel: the thread becomes interrupted, so that a run without input can resume';

my $waited = $client->create_run($thread, 'sleep 60000');
is $client->post(run_path($waited) . '/cancel?wait=true')->{status}, 204,
    'cancel: wait=true is 204';
is $client->get_run($waited)->{status}, 'interrupted',
    'cancel: wait=true responds after the run has ended';

is $client->get_run($run)->{cancel_reason}, 'api: a request cancelled the run', 'cancel: the record says why the run was stopped';
my $explained = $client->create_run($thread, 'sleep 60000');
is $client->get_run($explained)->{cancel_reason}, undef, 'cancel: the reason is null for a run that was not cancelled';
$client->post(run_path($explained) . '/cancel?wait=1&reason=no%20longer%20needed');
is $client->get_run($explained)->{cancel_reason}, 'no longer needed', 'cancel: reason is the cancel_reason of the record';
is_deeply $client->get("/threads/$thread/runs?select=cancel_reason&limit=1")->{json}, [ { cancel_reason => 'no longer needed' } ],
    'cancel: a list of runs may select cancel_reason';
for my $case ([ 'reason=' . 'x' x 257, 'at most 256 bytes' ],
    [ 'reason=taken&action=rollback', 'none with action=rollback, which deletes the run' ]) {
    my ($query, $expected) = @$case;
    my $refused = $client->post(run_path($explained) . "/cancel?$query");
    is $refused->{status}, 422, "cancel: a reason that is not $expected is 422";
    is $refused->{json}{detail}, "Query parameter reason: expected $expected.", 'cancel: the detail says what is expected of a reason';
}

my $again = $client->post(run_path($waited) . '/cancel');
is $again->{status}, 409, 'cancel: a finished run is 409';
is $again->{json}{code}, 'run_finished', 'cancel: the code for a finished run is run_finished';
is $client->get_run($waited)->{status}, 'interrupted',
    'cancel: a finished run keeps its status';

my $before = $client->get_state($thread)->{checkpoint_id};
my $rolled = $client->create_run($thread, 'sleep 60000');
is $client->post(run_path($rolled) . '/cancel?action=rollback&wait=1')->{status},
    204, 'cancel: action=rollback is accepted';
is $client->get(run_path($rolled))->{status}, 404, 'cancel: rollback removes the run';
is $client->get_state($thread)->{checkpoint_id}, $before,
    'cancel: rollback restores the state before the run';

my $first = $client->create_run($thread, 'sleep 60000');
my $queued = $client->create_run($thread, 'never',
    multitask_strategy => 'enqueue');
is $client->post(run_path($queued) . '/cancel?wait=1')->{status}, 204,
    'cancel: a queued run is cancelled';
is $client->get_run($queued)->{status}, 'interrupted', 'cancel: a queued run becomes interrupted';
is $client->get_run($first)->{status}, 'pending', 'cancel: the run before a queued one stays pending';
$client->post(run_path($first) . '/cancel?wait=1');

is $client->post(run_path($run) . '/cancel?action=explode')->{status}, 422,
    'cancel: an unknown action is 422';
is $client->post(run_path($run) . '/cancel?wait=perhaps')->{status}, 422,
    'cancel: a wait that is not a boolean is 422';
is $client->post("/threads/$thread/runs/01890000-0000-7000-8000-000000000000"
        . '/cancel')->{status}, 404, 'cancel: an unknown run is 404';

done_testing;
