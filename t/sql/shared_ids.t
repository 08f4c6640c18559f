# SPDX-License-Identifier: Apache-2.0
# Threads of two deployments with the same id: all that is done to the one changes no row of the other.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Play;

my $db = AgentSQL->new;
my $session = $db->session;
my $owner = AgentSQL::Play->new($session);
my $guest = AgentSQL::Play->new($session, deployment => $session->value("select agent.ensure_deployment('guest')"));
my $worker = $session->value(
    "select min(worker_id) from agent.register_worker('node', 'boot', 1, 1, 10, 20, '{default,guest}', '{agent,agent}')");
$session->query("select agent.save_graphs('$_', '[{\"graph_id\":\"agent\",\"assistant_id\":\"$AgentSQL::ASSISTANT\"}]')")
    for map { $_->deployment } $owner, $guest;
my @SWEEPS = qw(sweep_state sweep_events sweep_copies sweep_calls expire_threads);

# A run with a row in each table of its thread: (checkpoint, run).
sub turn {
    my ($client, $thread, $parent) = @_;
    my $id = AgentSQL::uuid();
    $client->run($thread);
    my ($claim) = $client->claim($worker);
    my ($digest, $blob) = AgentSQL::Play::blob($claim, qq("$id"));
    $client->save($worker,
        AgentSQL::Play::event($claim, 0, 'custom', 'x'),
        AgentSQL::Play::checkpoint($claim, id => $id, messages => ["m$id"], parent => $parent),
        $blob,
        AgentSQL::Play::put($claim, id => $id, parent => $parent, channels => { a => $digest }),
        AgentSQL::Play::put_writes($claim, id => $id, writes => [ [ 0, 'a', $digest ] ]),
        AgentSQL::Play::task($claim, $id, { id => 't', result => 1 }),
        AgentSQL::Play::finish($claim));
    return ($id, $claim->{run_id});
}

sub turns {
    my ($client, $thread) = @_;
    my ($parent, @runs);
    for (1 .. 3) {
        ($parent, my $run) = turn($client, $thread, $parent);
        push @runs, $run;
    }
    return ($parent, @runs);
}

my ($busy, $idle) = map { $owner->thread(metadata => { graph_id => 'agent' }) } 1, 2;
turns($owner, $_) for $busy, $idle;
$owner->run($busy);
$owner->claim($worker);
$owner->run($busy) for 1, 2;

my $rows = $owner->rows;
like $rows->{$_}, qr/\A[1-9]/, "there are $_ of the other deployment"
    for qw(threads runs run_queue run_events checkpoints checkpoint_tasks checkpoint_items checkpoint_snapshots checkpoint_writes checkpoint_blobs);

# Executes a step, with its result.
sub changes_nothing {
    my ($title, $step) = @_;
    my @result = $step->();
    my $now = $owner->rows;
    is_deeply [ grep { $now->{$_} ne $rows->{$_} } sort keys %{$now} ], [], "$title changes nothing of the other deployment";
    $rows = $now;
    return @result;
}

sub succeeds {
    my ($function, @arguments) = @_;
    my ($code) = changes_nothing($function, sub { $guest->api($function, @arguments) });
    is $code, 'ok', $function;
    return;
}

sub sweep {
    changes_nothing($_, sub { $session->query("select agent.$_()") }) for @SWEEPS;
    return;
}

# A run with that strategy beside an active one and two that wait, and what ends them.
sub preempt {
    my ($thread, $parent, $strategy) = @_;
    my $active = $guest->run($thread);
    my ($claim) = $guest->claim($worker);
    my @waiting = map { $guest->run($thread) } 1, 2;
    my ($run) = changes_nothing("a run with $strategy beside an active one", sub { $guest->run($thread, strategy => $strategy) });
    changes_nothing("the end of the active one after $strategy", sub {
        $guest->save($worker, AgentSQL::Play::checkpoint($claim, messages => ['x'], parent => $parent), AgentSQL::Play::finish($claim));
    });
    changes_nothing('cancel_run', sub { $guest->api('cancel_run', $thread, $run, 'interrupt') });
    changes_nothing('cancel_runs', sub { $guest->api('cancel_runs', $thread, \@waiting, 'rollback') });
    changes_nothing('cancel_runs_by_status',
        sub { $guest->api('cancel_runs_by_status', 'all', 'interrupt', 'ffffffff-ffff-ffff-ffff-ffffffffffff') });
    changes_nothing('the end of all runs', sub { $guest->finish_all($worker) });
    is $guest->thread_status($thread), 'idle', "the own thread is idle after $strategy";
    return;
}

# A rollback of a run that has saved a checkpoint.
sub roll_back {
    my ($thread) = @_;
    my $before = $guest->messages($thread);
    my $run = $guest->run($thread);
    my ($claim) = $guest->claim($worker);
    $guest->save($worker, AgentSQL::Play::checkpoint($claim, messages => ['x']));
    is_deeply $guest->messages($thread), ['x'];
    $guest->api('cancel_run', $thread, $run, 'rollback');
    changes_nothing('a rollback', sub { $guest->save($worker, AgentSQL::Play::finish($claim)) });
    is_deeply $guest->messages($thread), $before, 'a rollback restores the state of the own thread';
    return;
}

sub update_state {
    my ($thread) = @_;
    my $call = AgentSQL::uuid();
    succeeds('update_state', $thread, $call, 'u1', 10, '{"values":{}}');
    my ($claim) = $guest->claim($worker);
    changes_nothing('the end of an update', sub {
        $guest->save($worker, AgentSQL::Play::checkpoint($claim, messages => ['u'], source => 'update'), AgentSQL::Play::finish($claim));
    });
    changes_nothing('join_call', sub { $guest->api('join_call', $thread, $call) });
    return;
}

for my $case ([ busy => $busy ], [ idle => $idle ]) {
    my ($name, $thread) = @{$case};
    subtest "beside a thread that is $name" => sub {
        succeeds('create_thread', $thread, 'raise', '{"metadata":{"graph_id":"agent"}}');
        my ($last, @runs) = changes_nothing('three runs', sub { turns($guest, $thread) });
        roll_back($thread);
        preempt($thread, $last, $_) for qw(enqueue interrupt rollback);
        succeeds('update_thread', $thread, '{"metadata":{"x":1}}');
        update_state($thread);
        succeeds('delete_run', $thread, $_) for @runs[ 1, 2 ];
        my $copy = AgentSQL::uuid();
        succeeds('copy_thread', $thread, $copy, 'false', undef);
        is_deeply $guest->messages($copy), $guest->messages($thread), 'a copy has the messages of the own thread';
        succeeds('prune_thread', $thread, undef);
        is scalar @{ $guest->body('get_history', $thread, '{}') }, 1, 'prune_thread keeps one checkpoint of the own thread';
        sweep();
        my $run = $guest->run($thread);
        my ($claim) = $guest->claim($worker);
        my ($released) = changes_nothing('release_runs', sub { $guest->release($worker, 'true', $claim) });
        is_deeply $released, { $run => 'requeued' };
        succeeds('delete_thread', $thread);
        sweep();
    };
}

done_testing;
