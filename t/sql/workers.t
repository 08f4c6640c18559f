# SPDX-License-Identifier: Apache-2.0
# Workers: registration, leases, death, sweeping, draining.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Play;

my $db = AgentSQL->new;
my $play = AgentSQL::Play->new($db->session);
my $session = $play->session;

# How many runs they released.
sub mark_dead { return scalar $session->query("select * from agent.mark_worker_dead($_[0], $_[1], 100)") }

# How many runs of the workers it found.
sub sweep {
    my $released = 0;
    $released += mark_dead($_->[0], 'true') for $session->query('select agent.sweep_workers(5)');
    return $released;
}

sub finish_all {
    $session->query("update agent.run_queue set not_before = null where state = 'ready'");
    return $play->finish_all($play->worker);
}

subtest 'the id of a worker is the time of its registration in microseconds, so that no restored backup repeats it' => sub {
    my $now = '(extract(epoch from clock_timestamp()) * 1000000)::bigint';
    my $before = $session->value("select $now");
    my @ids = map { $play->worker } 1 .. 2;
    my $after = $session->value("select $now");
    cmp_ok $ids[0], '>=', $before;
    cmp_ok $ids[1], '>', $ids[0];
    cmp_ok $ids[1], '<=', $after;
};

subtest 'list_node_workers returns the workers of a host that are not marked dead' => sub {
    my @mine = map { $play->worker(node => 'a', pid => $_, pid_start => 7) } 11, 12;
    $play->worker(node => 'b');
    is_deeply [ $session->query("select * from agent.list_node_workers('a')") ],
        [ [ $mine[0], 'boot', 11, 7 ], [ $mine[1], 'boot', 12, 7 ] ];
    mark_dead($mine[0], 'true');
    is_deeply [ map { $_->[0] } $session->query("select * from agent.list_node_workers('a')") ], [ $mine[1] ];
};

subtest 'a renewal extends the lease by the database\'s clock' => sub {
    my $worker = $play->worker;
    $session->query("set agent.now = '2030-01-01T00:00:00Z'");
    is $session->value("select agent.renew_worker($worker, 20, false)"), 'ok';
    is $session->value("select lease_until = '2030-01-01T00:00:20Z' from agent.workers where worker_id = $worker"), 't';
    $session->query('reset agent.now');
};

subtest 'a dead worker is fenced: it can neither renew nor claim' => sub {
    my $worker = $play->worker;
    my $run = $play->run($play->thread);
    mark_dead($worker, 'true');
    is $session->value("select agent.renew_worker($worker, 20, false)"), 'fenced';
    is_deeply [ $play->claim($worker) ], [];
    is $session->value('select agent.renew_worker(0, 20, false)'), 'fenced', 'an unknown worker is fenced';
    is_deeply [ $play->claim(0) ], [];
    finish_all();
};

subtest 'a draining worker keeps its runs and claims no new ones' => sub {
    my $worker = $play->worker;
    my $run = $play->run($play->thread);
    my ($claim) = $play->claim($worker);
    is $session->value("select agent.renew_worker($worker, 20, true)"), 'ok';
    $play->run($play->thread);
    is_deeply [ $play->claim($worker) ], [];
    is $session->value("select agent.renew_worker($worker, 20, false)"), 'ok';
    is_deeply [ $play->claim($worker) ], [], 'draining is final';
    is_deeply $play->save($worker, AgentSQL::Play::finish($claim)), { $run => [ 'saved', 't' ] };
    finish_all();
};

subtest 'mark_worker_dead releases the runs of the worker, counted or not' => sub {
    for my $counted (qw(true false)) {
        my $worker = $play->worker;
        my @runs = map { $play->run($play->thread) } 1 .. 3;
        $play->claim($worker);
        is mark_dead($worker, $counted), 3;
        is_deeply [ $session->query("select distinct state, attempts, not_before is null from agent.run_queue") ],
            [ [ 'ready', $counted eq 'true' ? 1 : 0, 't' ] ], "counted $counted";
        finish_all();
    }
};

subtest 'mark_worker_dead releases runs up to its limit and can be called again' => sub {
    my $worker = $play->worker;
    $play->run($play->thread) for 1 .. 205;
    is scalar $play->claim($worker, limit => 300), 205;
    is_deeply [ map { mark_dead($worker, 'true') } 1 .. 4 ], [ 100, 100, 5, 0 ];
    finish_all();
};

subtest 'a run lost with its worker three times ends in error WorkerLostError' => sub {
    my $thread = $play->thread;
    my $run = $play->run($thread);
    for (1 .. 3) {
        my $worker = $play->worker(node => 'host7');
        $session->query('update agent.run_queue set not_before = null');
        is scalar $play->claim($worker), 1;
        mark_dead($worker, 'true');
    }
    my $error = $play->body('get_run', $thread, $run)->{error};
    is $error->{error}, 'WorkerLostError';
    is $error->{message}, 'The run was given up after 3 attempts; at the last one the worker on host host7 was lost.';
};

subtest 'a sweep marks workers dead 5 seconds after their lease ended, not before' => sub {
    $session->query('delete from agent.workers');
    $session->query("set agent.now = '2030-01-01T00:00:00Z'");
    my $late = $play->worker(lease_sec => 10);
    my $live = $play->worker(lease_sec => 60);
    my $run = $play->run($play->thread);
    $play->claim($late);
    $session->query("set agent.now = '2030-01-01T00:00:14.9Z'");
    is sweep(), 0, 'at 4.9 s';
    is $session->value("select agent.renew_worker($live, 60, false)"), 'ok';
    $session->query("set agent.now = '2030-01-01T00:00:15.1Z'");
    is sweep(), 1, 'at 5.1 s';
    is $session->value("select agent.renew_worker($late, 10, false)"), 'fenced';
    is $session->value("select agent.renew_worker($live, 60, false)"), 'ok', 'others live';
    is $play->queue($run)->{state}, 'ready';
    $session->query('reset agent.now');
    finish_all();
};

subtest 'a late worker that was not marked dead keeps its runs' => sub {
    $session->query("set agent.now = '2030-01-01T00:00:00Z'");
    my $worker = $play->worker(lease_sec => 10);
    my $run = $play->run($play->thread);
    my ($claim) = $play->claim($worker);
    $session->query("set agent.now = '2030-01-01T01:00:00Z'");
    is $session->value("select agent.renew_worker($worker, 10, false)"), 'ok';
    is_deeply $play->save($worker, AgentSQL::Play::finish($claim)), { $run => [ 'saved', 't' ] };
    $session->query('reset agent.now');
};

subtest 'a worker that is marked dead again keeps the time of its death' => sub {
    my $worker = $play->worker;
    my $dead_at = "select dead_at from agent.workers where worker_id = $worker";
    $session->query("set agent.now = '2030-01-01T00:00:00Z'");
    mark_dead($worker, 'true');
    my $first = $session->value($dead_at);
    $session->query("set agent.now = '2030-01-01T00:00:01Z'");
    mark_dead($worker, 'true');
    is $session->value($dead_at), $first;
    $session->query('reset agent.now');
};

subtest 'sweeps release a large backlog in batches, also after an interrupted release' => sub {
    $session->query('delete from agent.workers');
    my $worker = $play->worker;
    $play->run($play->thread) for 1 .. 250;
    $play->claim($worker, limit => 300);
    mark_dead($worker, 'true');
    my @released;
    push @released, sweep() while !@released || $released[-1];
    is_deeply \@released, [ 100, 50, 0 ];
    finish_all();
};

subtest 'dead workers that still have runs are not deleted' => sub {
    my $worker = $play->worker;
    my $run = $play->run($play->thread);
    $play->claim($worker);
    $session->query("update agent.workers set state = 'dead', dead_at = agent.now() - interval '8 days' where worker_id = $worker");
    is_deeply [ map { $_->[0] } $session->query('select agent.sweep_workers(5)') ], [$worker], 'the caller is to release them';
    is $session->value("select count(*) from agent.workers where worker_id = $worker"), 1;
    is mark_dead($worker, 'true'), 1, 'the run is released';
    sweep();
    is $session->value("select count(*) from agent.workers where worker_id = $worker"), 0, 'the worker without runs is deleted';
    finish_all();
};

subtest 'dead workers are deleted after a week' => sub {
    my $worker = $play->worker;
    mark_dead($worker, 'true');
    sweep();
    is $session->value("select count(*) from agent.workers where worker_id = $worker"), 1;
    $session->query("update agent.workers set dead_at = dead_at - interval '8 days' where worker_id = $worker");
    sweep();
    is $session->value("select count(*) from agent.workers where worker_id = $worker"), 0;
};

done_testing;
