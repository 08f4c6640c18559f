# SPDX-License-Identifier: Apache-2.0
# Prune: the checkpoints and snapshots of a thread that it keeps, and its pieces.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use lib "$FindBin::Bin/../lib";
use Test::More;
use AgentSQL;
use AgentSQL::Play;
use AgentSQL::Records qw(list leased finish value_of saved count_of read_part tuple_of values_of orphans sweep set_deletion_bytes prune left_of);

my (undef, $play, $worker) = AgentSQL::Records::start();
my $session = $play->session;

sub delta_of {
    my ($thread, $id, @names) = @_;
    my (%found, $cursor);
    do {
        (my $code, my $body, $cursor) = read_part('read_delta', $thread, { ns => '', checkpoint_id => $id, channels => \@names }, $cursor);
        die "read_delta: $code" if $code ne 'ok';
        for my $name (@names) {
            unshift @{ $found{$name}{writes} }, @{ $body->{$name}{writes} };
            push @{ $found{$name}{seed} }, $body->{$name}{seed} if $body->{$name}{seed};
        }
    } while (defined $cursor);
    return \%found;
}

# A chain of snapshots with a checkpoint and a write each; `log` has a value in every $snapshots-th one. Returns their ids.
sub chain {
    my ($claim, $count, $snapshots, %with) = @_;
    my @ids;
    for my $step (0 .. $count - 1) {
        my $has_value = $snapshots && $step % $snapshots == 0;
        my $id = AgentSQL::uuid();
        my @batch;
        my %values = (list => list($step, value_of($claim, \@batch, "e$step")), $has_value ? (log => value_of($claim, \@batch, "log $step")) : $snapshots ? (log => undef) : ());
        push @batch, AgentSQL::Play::put($claim, %with, id => $id, parent => $ids[-1], channels => \%values,
            checkpoint => { v => 4, channel_versions => { list => $step + 1, $snapshots ? (log => $step + 1) : () } },
            metadata => { source => 'loop', step => $step, $snapshots && !$has_value ? (counters_since_delta_snapshot => { log => [ 1, 1 ], never => [ 0, 9 ] }) : () });
        push @batch, AgentSQL::Play::put_writes($claim, %with, id => $id, writes => [ [ 0, 'log', value_of($claim, \@batch, "w$step") ] ]);
        push @batch, AgentSQL::Play::checkpoint($claim, %with, id => $id, parent => $ids[-1],
            values => { list => { '$list' => { keep => $step, items => ["e$step"] } } }, next => ['n'], tasks => [ { id => 'task', name => 'n' } ]);
        push @batch, AgentSQL::Play::task($claim, $id, { id => 'task', result => 'r' x 100 }, %with);
        @batch = ((grep { $_->{type} eq 'blob' } @batch), grep { $_->{type} ne 'blob' } @batch);
        $play->save($worker, @batch);
        push @ids, $id;
    }
    return @ids;
}

subtest 'prune keeps the last checkpoint of each namespace, with its values and writes' => sub {
    my $claim = leased();
    my $thread = $claim->{thread_id};
    my @root = chain($claim, 6);
    my @inner = chain($claim, 3, undef, ns => 'inner:1');
    # A branch that is not the head, though its id is greater.
    my $fork = saved($claim, $root[2], values => { list => [ 1, 'fork' ] });
    finish($claim);
    my $state = $play->body('get_state', $thread, undef);
    is prune($thread), 1, 'a short thread is pruned in one piece';
    is_deeply left_of('checkpoints', $thread), [ $root[-1] ], 'the head is left of the checkpoints';
    is_deeply left_of('checkpoint_snapshots', $thread), [ $root[-1] ], 'prune keeps the snapshot of the head';
    is_deeply left_of($_, $thread, 'inner:1'), [ $inner[-1] ], "the last one of a namespace is left in $_" for qw(checkpoints checkpoint_snapshots);
    my $after = $play->body('get_state', $thread, undef);
    is $after->{parent_checkpoint}, undef, 'the head has no parent then';
    delete @{$_}{qw(parent_checkpoint parent_checkpoint_id)} for $state, $after;
    is_deeply $after, $state, 'the state is the same otherwise, with the report about its task';
    is_deeply values_of($thread, $root[-1])->{list}, [ map { "e$_" } 0 .. 5 ], 'the snapshot has its values';
    is scalar @{ tuple_of($thread, '', $root[-1])->{writes} }, 1, 'prune keeps the writes of the last snapshot';
    sweep();
    is count_of('checkpoint_writes', $thread), 2, 'prune deletes the writes to other snapshots';
    is count_of('checkpoint_tasks', $thread), 2, 'prune deletes the reports about tasks of other checkpoints';
    is orphans($thread), 0, 'no other row is left';
    my $next = leased($thread);
    my $id = saved($next, $root[-1], values => { list => [ 6, 'more' ] });
    is_deeply values_of($thread, $id)->{list}, [ (map { "e$_" } 0 .. 5), 'more' ], 'a run continues the head of a pruned thread';
    is +($play->api('prune_thread', $thread, undef))[0], 'thread_busy', 'a thread with an unfinished run is not pruned';
    finish($next);
    is +($play->api('prune_thread', AgentSQL::uuid(), undef))[0], 'thread_not_found', 'a thread that does not exist is not pruned';
};

subtest 'prune keeps the ancestors from which a channel that is stored as writes is composed' => sub {
    my $claim = leased();
    my $thread = $claim->{thread_id};
    my @ids = chain($claim, 10, 4);
    finish($claim);
    my $delta = delta_of($thread, $ids[-1], 'log');
    is scalar @{ $delta->{log}{writes} }, 1, 'the last snapshot follows one with the value';
    prune($thread);
    is_deeply left_of('checkpoint_snapshots', $thread), [ @ids[ 8, 9 ] ], 'prune keeps a snapshot without a value and its ancestor with the value';
    is_deeply delta_of($thread, $ids[-1], 'log'), $delta, 'the delta is the same';
    is_deeply left_of('checkpoints', $thread), [ $ids[9] ], 'prune keeps no checkpoint but the head';
    sweep();
    is orphans($thread), 0, 'no other row is left';

    $claim = leased();
    $thread = $claim->{thread_id};
    @ids = chain($claim, 7, 100);
    # Without a value at all: as after the first snapshots of a graph.
    finish($claim);
    prune($thread);
    is_deeply left_of('checkpoint_snapshots', $thread), \@ids, 'prune keeps all ancestors of a channel that never had a value';
};

subtest 'prune works in pieces, and the thread is consistent after each' => sub {
    my $claim = leased();
    my $thread = $claim->{thread_id};
    my @ids = chain($claim, 40, 5);
    # Continued by many.
    my @forks = map { saved($claim, $ids[3], values => { list => [ 4, "f$_" ] }) } 1 .. 30;
    finish($claim);
    my $delta = delta_of($thread, $ids[-1], 'log');
    set_deletion_bytes(40_000);
    my $wrong = 0;
    my $calls = prune($thread, sub {
        $wrong++ if AgentSQL::encode(values_of($thread, $ids[-1])->{list}) ne AgentSQL::encode([ map { "e$_" } 0 .. 39 ]);
        $wrong++ if AgentSQL::encode(delta_of($thread, $ids[-1], 'log')) ne AgentSQL::encode($delta);
    });
    cmp_ok $calls, '>', 10, 'the pieces are small';
    is $wrong, 0, 'after each the last snapshot has its values and its delta';
    is_deeply left_of('checkpoint_snapshots', $thread), [ @ids[ 35 .. 39 ] ], 'at the end only what is needed is left';
    is_deeply left_of('checkpoints', $thread), [ $ids[39] ], 'prune in pieces keeps no checkpoint but the head';
    sweep();
    is orphans($thread), 0, 'no other row is left';

    # A run of which the deletion is not complete, and a copy that is under way.
    $claim = leased();
    $thread = $claim->{thread_id};
    @ids = chain($claim, 5);
    finish($claim);
    my $deleted = leased($thread);
    saved($deleted, $ids[-1], values => { list => [ 5, map { "d$_" } 1 .. 30 ] }) for 1 .. 20;
    finish($deleted);
    $play->api('delete_run', $thread, $deleted->{run_id});
    cmp_ok count_of('run_sweeps', $thread), '>', 0, 'something is left of a deleted run';
    prune($thread);
    is count_of('run_sweeps', $thread), 0, 'prune first deletes what a deleted run has left';
    is_deeply left_of('checkpoint_snapshots', $thread), [ $ids[-1] ], 'prune beside a deleted run keeps the snapshot of the head';

    # The head moves back between two pieces, to one that the next piece would delete.
    $claim = leased();
    $thread = $claim->{thread_id};
    @ids = chain($claim, 12);
    finish($claim);
    my $last = leased($thread);
    my $head = saved($last, $ids[-1], values => { list => [ 12, 'last' ] });
    $play->save($worker, AgentSQL::Play::checkpoint($last, id => $head, parent => $ids[-1],
        values => { list => { '$list' => { keep => 12, items => ['last'] } } }));
    finish($last);
    my $head_of = sub { $session->value("select head_checkpoint_id from agent.threads where thread_id = '$thread'") };
    is $head_of->(), $head, 'a run has moved the head';
    my $is_moved;
    prune($thread, sub { $is_moved++ or $play->api('delete_run', $thread, $last->{run_id}) });
    my $left = $head_of->();
    isnt $left, $head, 'a run is deleted between two pieces: its checkpoint is no longer the head';
    is_deeply left_of('checkpoints', $thread), [$left], 'prune keeps the head that the deletion of a run has set';
    is +$play->body('get_state', $thread, undef)->{checkpoint}{checkpoint_id}, $left, 'its state can be read';
    set_deletion_bytes(4_000_000);
};
# As ids of hosts whose clocks differ can be.
subtest 'prune keeps a parent with a greater id, from which the head is composed' => sub {
    my $claim = leased();
    my $thread = $claim->{thread_id};
    my ($head, $parent) = map { AgentSQL::uuid() } 1, 2;
    saved($claim, undef, id => $parent, values => { log => 'seed' });
    saved($claim, $parent, id => $head, values => { log => undef },
        checkpoint => { v => 4, channel_versions => { log => 2 } }, metadata => { counters_since_delta_snapshot => { log => [ 1, 1 ] } });
    $play->save($worker, AgentSQL::Play::checkpoint($claim, id => $head, values => {}));
    finish($claim);
    my $delta = delta_of($thread, $head, 'log');
    is_deeply $delta->{log}{seed}, [ AgentSQL::Play::digest('json', 'seed') ], 'the head has the value of its parent';
    prune($thread);
    is_deeply left_of('checkpoint_snapshots', $thread), [ $head, $parent ], 'prune keeps the head, and its parent of a greater id';
    is_deeply delta_of($thread, $head, 'log'), $delta, 'the head that prune keeps still has the value of its parent of a greater id';
};

# Only a hostile runner has this many children that prune keeps.
subtest 'prune keeps a snapshot with more remaining children than fit into a tenth of a deletion' => sub {
    set_deletion_bytes(40_000);
    # Two of them fit.
    for my $count (2, 3) {
        my $claim = leased();
        my $thread = $claim->{thread_id};
        my @low = map { AgentSQL::uuid() } 1 .. $count;
        my $parent = saved($claim, undef);
        my @kids = map { saved($claim, $parent) } 1 .. $count;
        saved($claim, $kids[$_], id => $low[$_]) for 0 .. $#low;
        my $last = saved($claim, undef);
        finish($claim);
        prune($thread);
        is_deeply left_of('checkpoint_snapshots', $thread), [ $count > 2 ? $parent : (), @kids, $last ],
            "prune @{[ $count > 2 ? 'keeps' : 'deletes' ]} a snapshot with $count remaining children when two fit";
    }
    set_deletion_bytes(4_000_000);
};

done_testing;
