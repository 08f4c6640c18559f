# SPDX-License-Identifier: Apache-2.0
# The four multitask strategies on a busy thread.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Play;

my $db = AgentSQL->new;
my $play = AgentSQL::Play->new($db->session);
my $worker = $play->worker;

# A thread with one executing run that saved a state, and two blocked ones.
sub busy_thread {
    my $thread = $play->thread;
    my @runs = map { $play->run($thread) } 1 .. 3;
    my ($claim) = $play->claim($worker);
    my $head = AgentSQL::uuid();
    $play->save($worker, AgentSQL::Play::checkpoint($claim, id => $head, messages => ['partial']));
    return ($thread, $claim, $head, @runs);
}

subtest 'reject is refused while a run executes, is ready or is blocked' => sub {
    my $thread = $play->thread;
    $play->run($thread);
    is +($play->try_run($thread, strategy => 'reject'))[0], 'thread_busy', 'ready';
    my ($claim) = $play->claim($worker);
    is +($play->try_run($thread, strategy => 'reject'))[0], 'thread_busy', 'executing';
    $play->run($thread);
    $play->save($worker, AgentSQL::Play::finish($claim));
    is +($play->try_run($thread, strategy => 'reject'))[0], 'thread_busy', 'the next run is ready';
    $play->finish_all($worker);
};

subtest 'a refused creation assigns no transaction id' => sub {
    my $thread = $play->thread;
    $play->run($thread);
    my $session = $play->session;
    $session->query('begin');
    is +($play->try_run($thread, strategy => 'reject'))[0], 'thread_busy';
    is $session->value('select pg_current_xact_id_if_assigned() is null'), 't';
    $session->query('commit');
    $play->finish_all($worker);
};

subtest 'enqueue runs after all earlier runs, in the order of creation' => sub {
    my ($thread, $claim, undef, @runs) = busy_thread();
    my @order = ($claim->{run_id});
    while ($claim) {
        is_deeply [ $play->claim($worker) ], [], 'one run of a thread is active';
        $play->save($worker, AgentSQL::Play::finish($claim));
        ($claim) = $play->claim($worker);
        push @order, $claim->{run_id} if $claim;
    }
    is_deeply \@order, \@runs;
};

subtest 'interrupt ends blocked runs at once, cancels the leased one, and runs next' => sub {
    my ($thread, $claim, undef, @runs) = busy_thread();
    my $new = $play->run($thread, strategy => 'interrupt');
    is $play->status($thread, $runs[0]), 'pending', 'the leased run ends when its worker reports the end';
    is $play->status($thread, $_), 'interrupted' for @runs[1, 2];
    is $play->body('get_run', $thread, $_)->{cancel_reason}, "superseded: by run $new", 'why' for @runs[1, 2];
    is $play->queue($new)->{state}, 'blocked', 'the new run waits for the leased one';
    $play->save($worker, AgentSQL::Play::finish($claim, 'interrupted'));
    is $play->status($thread, $runs[0]), 'interrupted';
    is $play->body('get_run', $thread, $runs[0])->{cancel_reason}, "superseded: by run $new", 'why';
    is +($play->claim($worker))[0]{run_id}, $new;
    $play->finish_all($worker);
};

subtest 'interrupt of a ready run makes the new run ready at once' => sub {
    my $thread = $play->thread;
    my $old = $play->run($thread);
    my $new = $play->run($thread, strategy => 'interrupt');
    is $play->status($thread, $old), 'interrupted';
    is $play->queue($new)->{state}, 'ready';
    is $play->thread_status($thread), 'busy';
    $play->finish_all($worker);
};

subtest 'an executing run that succeeds before it sees the interrupt stays a success' => sub {
    my ($thread, $claim) = busy_thread();
    $play->run($thread, strategy => 'interrupt');
    $play->save($worker, AgentSQL::Play::finish($claim, 'success'));
    is $play->status($thread, $claim->{run_id}), 'success';
    $play->finish_all($worker);
};

subtest 'an executing run that fails after it was interrupted is interrupted, without an error' => sub {
    my ($thread, $claim) = busy_thread();
    $play->run($thread, strategy => 'interrupt');
    $play->save($worker, AgentSQL::Play::finish($claim, 'error', { error => 'E', message => 'm' }));
    my $run = $play->body('get_run', $thread, $claim->{run_id});
    is $run->{status}, 'interrupted';
    is $run->{error}, undef;
    $play->finish_all($worker);
};

subtest 'rollback deletes every unfinished run and restores the previous state' => sub {
    my $thread = $play->thread;
    $play->run($thread);
    my ($first) = $play->claim($worker);
    my $base = AgentSQL::uuid();
    $play->save($worker,
        AgentSQL::Play::checkpoint($first, id => $base, messages => ['kept']),
        AgentSQL::Play::finish($first));

    my @old = map { $play->run($thread) } 1, 2;
    my ($claim) = $play->claim($worker);
    $play->save($worker,
        AgentSQL::Play::event($claim, 0, 'metadata', {}),
        AgentSQL::Play::checkpoint($claim, parent => $base, messages => [ 'kept', 'discarded' ]));
    is_deeply $play->messages($thread), [ 'kept', 'discarded' ];

    my $new = $play->run($thread, strategy => 'rollback');
    is $play->status($thread, $old[1]), 'run_not_found', 'a blocked run is deleted at once';
    is $play->status($thread, $old[0]), 'pending', 'the leased one when its worker stops';
    my $saved = $play->save($worker,
        AgentSQL::Play::checkpoint($claim, messages => [ 'kept', 'discarded', 'more' ]),
        AgentSQL::Play::finish($claim, 'success'));
    is_deeply $saved->{ $claim->{run_id} }, [ 'saved', 't' ], 'rollback wins over success';
    is $play->status($thread, $old[0]), 'run_not_found';
    is +($play->join($thread, $old[0]))[0], 'run_not_found', 'join of a rolled back run is run_not_found';
    is_deeply $play->messages($thread), ['kept'], 'the head is restored';
    is $play->body('get_state', $thread, undef)->{checkpoint_id}, $base;
    is_deeply [ $play->events($thread, $old[0]) ], [], 'the events of a rolled back run are deleted';
    is $play->session->value(
        "select count(*) from agent.checkpoint_items where content like '%discarded%'"), 0, 'the values of a rolled back run are deleted';
    is $play->session->value("select status from agent.usage_events where run_id = '$old[0]'"), 'rolled_back',
        'the usage of a rolled back run is kept';

    my ($next) = $play->claim($worker);
    is $next->{run_id}, $new;
    is AgentSQL::decode($next->{start})->{checkpoint}{checkpoint_id}, $base, 'the new run starts from the restored head';
    $play->finish_all($worker);
};

subtest 'rollback of a run that forked from an older checkpoint restores the head, not the fork point' => sub {
    my $thread = $play->thread;
    my @ids = map { AgentSQL::uuid() } 1, 2;
    $play->run($thread);
    my ($first) = $play->claim($worker);
    $play->save($worker,
        AgentSQL::Play::checkpoint($first, id => $ids[0], messages => ['a']),
        AgentSQL::Play::checkpoint($first, id => $ids[1], parent => $ids[0], messages => [ 'a', 'b' ]),
        AgentSQL::Play::finish($first));
    $play->run($thread, request => { checkpoint_id => $ids[0] });
    my ($fork) = $play->claim($worker);
    my $start = AgentSQL::decode($fork->{start});
    is $start->{checkpoint}{checkpoint_id}, $ids[0], 'the run starts from the checkpoint that it named';
    is $start->{config}{configurable}{checkpoint_id}, $ids[0];
    $play->save($worker, AgentSQL::Play::checkpoint($fork, parent => $ids[0], messages => [ 'a', 'c' ]));
    $play->api('cancel_run', $thread, $fork->{run_id}, 'rollback');
    $play->save($worker, AgentSQL::Play::finish($fork, 'interrupted'));
    is_deeply $play->messages($thread), [ 'a', 'b' ];
};

subtest 'rollback restores the nearest remaining checkpoint when the previous run was deleted' => sub {
    my $thread = $play->thread;
    my (@runs, @ids);
    for my $message ('a', 'b') {
        push @runs, $play->run($thread);
        push @ids, AgentSQL::uuid();
        my ($claim) = $play->claim($worker);
        $play->save($worker,
            AgentSQL::Play::checkpoint($claim, id => $ids[-1], parent => $ids[-2], messages => [$message]),
            AgentSQL::Play::finish($claim));
    }
    $play->run($thread);
    my ($claim) = $play->claim($worker);
    $play->save($worker, AgentSQL::Play::checkpoint($claim, parent => $ids[1], messages => ['c']));
    is +($play->api('delete_run', $thread, $runs[1]))[0], 'ok';
    is_deeply $play->messages($thread), ['c'], 'the current state is unchanged';
    $play->api('cancel_run', $thread, $claim->{run_id}, 'rollback');
    $play->save($worker, AgentSQL::Play::finish($claim, 'interrupted'));
    is_deeply $play->messages($thread), ['a'];
    is $play->body('get_state', $thread, undef)->{checkpoint_id}, $ids[0];
};

subtest 'interrupt and rollback end many waiting runs in several transactions, newest first' => sub {
    for my $strategy (qw(interrupt rollback)) {
        my ($thread, $claim) = busy_thread();
        my @runs = map { $play->run($thread) } 1 .. 250;
        my $new = AgentSQL::uuid();
        my $after = $strategy eq 'interrupt' ? 'interrupted' : 'run_not_found';
        my $most = $strategy eq 'rollback' ? 40 : 100;
        my ($first, $before) = $play->try_run($thread, run => $new, strategy => $strategy);
        is $first, 'waiting', "$strategy: the first one does not create the run";
        my %changed = map { $_ => 1 } split / /, $play->session->extra;
        is_deeply [ sort keys %changed ], [ sort $thread, @runs[ 250 - $most .. 249 ] ], "it ends the $most newest runs";
        is_deeply [ map { $play->status($thread, $_) } @runs[ 249 - $most, 250 - $most, 249 ], $new ],
            [ 'pending', $after, $after, 'run_not_found' ], 'no other run is ended';
        is $play->queue($claim->{run_id})->{cancel}, undef, 'the executing run goes on';
        my ($count, $code) = (1);
        do { ($code, $before) = $play->try_run($thread, run => $new, strategy => $strategy, before => $before); $count++ } while ($code eq 'waiting');
        is "$code $count", $strategy eq 'rollback' ? 'ok 7' : 'ok 3', 'further ones end the others, and the last one creates the run';
        is $play->queue($claim->{run_id})->{cancel}, $strategy, 'the last call cancels the executing run';
        is $play->session->value("select count(*) from agent.run_queue where thread_id = '$thread'"), 2, 'these two are left';
        $play->save($worker, AgentSQL::Play::finish($claim, 'interrupted'));
        is $play->queue($new)->{state}, 'ready', 'the new one is next';
        $play->finish_all($worker);
    }
};

subtest 'a transaction ends waiting runs of 4 MB of requests' => sub {
    my $thread = $play->thread;
    my ($first, @runs) = map { $play->run($thread, request => { input => 'x' x 1_000_000 }) } 1 .. 8;
    my ($code, $before) = $play->try_run($thread, strategy => 'interrupt');
    is $code, 'waiting', 'with eight of a megabyte';
    is $play->session->value("select count(*) from agent.run_queue where thread_id = '$thread'"), 4, 'four are left';
    is +($play->try_run($thread, strategy => 'interrupt', before => $before))[0], 'ok', 'the next call ends these';
    is $play->status($thread, $first), 'interrupted', 'the next call ends the run that was ready';
    $play->finish_all($worker);
};

subtest 'interrupt and rollback end the runs that existed at the first call, and none that others create later' => sub {
    my %large = (request => { input => 'x' x 2_000_000 });
    for my $strategy (qw(interrupt rollback)) {
        my $thread = $play->thread;
        $play->run($thread);
        my ($claim) = $play->claim($worker);
        my @old = map { $play->run($thread, %large) } 1 .. 5;
        my $new = AgentSQL::uuid();
        my (@later, $code, $before);
        for (1 .. 6) {
            ($code, $before) = $play->try_run($thread, run => $new, strategy => $strategy, before => $before);
            last if $code ne 'waiting';
            push @later, map { $play->run($thread, %large) } 1, 2;
        }
        is "$code " . @later, 'ok 4', "$strategy: the third call creates the run";
        is_deeply [ map { $play->status($thread, $_) } @old ], [ ($strategy eq 'interrupt' ? 'interrupted' : 'run_not_found') x 5 ],
            'the runs before it have ended';
        is $play->queue($claim->{run_id})->{cancel}, $strategy, 'the third call cancels the executing run';
        my @order;
        while ($claim) {
            $play->save($worker, AgentSQL::Play::finish($claim));
            ($claim) = $play->claim($worker);
            push @order, $claim->{run_id} if $claim;
        }
        is_deeply \@order, [ @later, $new ], 'runs that were created later execute before it';
    }
};

subtest 'an active run that was created later goes on' => sub {
    my $thread = $play->thread;
    $play->run($thread);
    my ($claim) = $play->claim($worker);
    my @old = map { $play->run($thread, request => { input => 'x' x 2_000_000 }) } 1 .. 3;
    my ($code, $before, $new) = $play->try_run($thread, strategy => 'interrupt');
    is $code, 'waiting';
    my $later = $play->run($thread);
    $play->save($worker, AgentSQL::Play::finish($claim));
    $play->api('cancel_run', $thread, $old[0], 'interrupt');
    is $play->queue($later)->{state}, 'ready', 'the runs before it have ended';
    is +($play->try_run($thread, run => $new, strategy => 'interrupt', before => $before))[0], 'ok';
    is $play->status($thread, $later), 'pending', 'it goes on';
    is $play->queue($new)->{state}, 'blocked', 'the new run waits for the later one';
    $play->finish_all($worker);
};

subtest 'a constraint prevents two active runs of a thread' => sub {
    my $thread = $play->thread;
    my @runs = map { $play->run($thread) } 1, 2;
    is $play->session->error(
        "update agent.run_queue set state = 'ready', ready_seq = 0 where run_id = '$runs[1]'"), '23505';
    $play->finish_all($worker);
};

done_testing;
