# SPDX-License-Identifier: Apache-2.0
# Checkpoints of subgraphs: runs that start from them, updates that change their states.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Play;
use Cpanel::JSON::XS ();

my $session = AgentSQL->new->session;
my $play = AgentSQL::Play->new($session);
my $deployment = $play->deployment;
my $worker = $play->worker;
$session->query("select agent.save_graphs('$deployment', '[{\"graph_id\":\"agent\",\"assistant_id\":\"$AgentSQL::ASSISTANT\"}]')");

my ($INNER, $DEEP) = ('inner:1', 'inner:1|deep:2');

# A thread whose run waits in a subgraph: its id, the run, and the checkpoints of the root graph, of the subgraph (two)
# and of one below it.
sub waiting {
    my $thread = $play->thread;
    my $claim = $play->leased($worker, $thread);
    my ($root, $first, $second, $deep) = map { AgentSQL::uuid() } 1 .. 4;
    my %inner = (ns => $INNER, parents => { '' => $root }, format => 'python');
    $play->save($worker,
        AgentSQL::Play::checkpoint($claim, id => $root, messages => ['Hello'], next => ['inner'], format => 'python'),
        AgentSQL::Play::checkpoint($claim, %inner, id => $first, messages => ['one'], next => ['two']),
        AgentSQL::Play::checkpoint($claim, %inner, id => $second, parent => $first, messages => [ 'one', 'two' ], next => ['ask']),
        AgentSQL::Play::checkpoint($claim, ns => $DEEP, id => $deep, messages => ['deep'], next => ['x'], format => 'python',
            parents => { '' => $root, $INNER => $first, other => $first, "$INNER|" => 'no id' }),
        AgentSQL::Play::finish($claim));
    return { thread => $thread, run => $claim->{run_id}, root => $root, first => $first, second => $second, deep => $deep };
}

# The start message of a run with these members; its claim.
sub start {
    my ($thread, %request) = @_;
    my $claim = $play->leased($worker, $thread, request => \%request);
    return (AgentSQL::decode($claim->{start}), $claim);
}

sub update {
    my ($thread, %request) = @_;
    my $call = AgentSQL::uuid();
    return ($play->api('update_state', $thread, $call, 'u1', 10, AgentSQL::encode({ values => {}, %request })), $call);
}

# The claim of an update, and its message.
sub updating {
    my ($code, undef, $call) = update(@_);
    is $code, 'ok', 'the update is accepted';
    my ($claim) = grep { $_->{run_id} eq $call } $play->claim($worker);
    return ($claim, AgentSQL::decode($claim->{start}));
}

# The ids of the stored checkpoints and snapshots of the subgraph, newest first.
sub stored {
    my ($thread) = @_;
    return [ map { $_->[0] } $session->query(
        "select checkpoint_id from agent.checkpoints where thread_id = '$thread' and checkpoint_ns = '$INNER'
         union select checkpoint_id from agent.checkpoint_snapshots where thread_id = '$thread' and checkpoint_ns = '$INNER'
         order by 1 desc") ];
}

subtest 'a run starts from the checkpoint of a subgraph that its request names' => sub {
    my $at = waiting();
    my %named = (checkpoint_ns => $INNER, checkpoint_id => $at->{first});
    my ($start, $claim) = start($at->{thread}, checkpoint => \%named);
    is $start->{checkpoint}{checkpoint_id}, $at->{root}, 'the root graph starts from the checkpoint that has the task';
    is_deeply $start->{checkpoint_map}, { $INNER => $at->{first} }, 'the subgraph from the one of the request';
    my $shown = $play->body('get_run', $at->{thread}, $claim->{run_id})->{kwargs}{config}{configurable};
    is_deeply { map { $_ => $shown->{$_} } grep { /^checkpoint_/ } keys %$shown }, \%named, 'the record shows what was sent';
    cmp_ok $claim->{start_bytes}, '>=', length $claim->{start}, 'its length is reported';
    $play->save($worker, AgentSQL::Play::finish($claim));

    ($start, $claim) = start($at->{thread}, config => { configurable => \%named });
    is_deeply $start->{checkpoint_map}, { $INNER => $at->{first} }, 'configurable can name it too';
    $play->save($worker, AgentSQL::Play::finish($claim));
    ($start, $claim) = start($at->{thread}, checkpoint => { checkpoint_ns => $INNER });
    is_deeply $start->{checkpoint_map}, { $INNER => $at->{second} }, 'a namespace alone is its last checkpoint';
    $play->save($worker, AgentSQL::Play::finish($claim));
    ($start, $claim) = start($at->{thread}, checkpoint => { checkpoint_ns => $DEEP, checkpoint_id => $at->{deep} });
    is_deeply $start->{checkpoint_map}, { $INNER => $at->{first}, $DEEP => $at->{deep} },
        'the graphs above a subgraph start from the checkpoints during which it was saved, and no others do';
    $play->save($worker, AgentSQL::Play::finish($claim));
    my %map = ('' => $at->{root}, $INNER => $at->{second}, $DEEP => $at->{deep});
    ($start, $claim) = start($at->{thread}, checkpoint => { checkpoint_ns => $DEEP, checkpoint_map => \%map });
    is_deeply $start->{checkpoint_map}, { $INNER => $at->{second}, $DEEP => $at->{deep} }, 'a run starts from the checkpoints of checkpoint_map';
    is_deeply $play->body('get_run', $at->{thread}, $claim->{run_id})->{kwargs}{config}{configurable}{checkpoint_map}, \%map,
        'the record of the run shows checkpoint_map';
    $play->save($worker, AgentSQL::Play::finish($claim));
    ($start, $claim) = start($at->{thread}, checkpoint_id => $at->{root});
    is $start->{checkpoint_map}, undef, 'a checkpoint of the root graph has no map';
    $play->save($worker, AgentSQL::Play::finish($claim));
};

subtest 'a subgraph with a memory of its own is found by the namespace that its task names' => sub {
    my $thread = $play->thread;
    my $claim = $play->leased($worker, $thread);
    my ($root, $own) = map { AgentSQL::uuid() } 1 .. 2;
    my $named = 'outer:9|keep:1';
    $play->save($worker,
        AgentSQL::Play::checkpoint($claim, id => $root, messages => ['Hello'], next => ['outer'], format => 'python',
            tasks => [ { id => '9', name => 'outer', checkpoint => { checkpoint_ns => $named } } ]),
        AgentSQL::Play::checkpoint($claim, ns => 'outer|keep', id => $own, messages => ['kept'], next => ['ask'], format => 'python',
            parents => { '' => $root }),
        AgentSQL::Play::finish($claim));
    for my $ns ($named, 'outer|keep', 'outer:9|1|keep:1') {
        my ($code, $state) = $play->api('get_state', $thread, undef, undef, AgentSQL::encode({ checkpoint => { checkpoint_ns => $ns } }));
        is $code eq 'ok' && $state->{checkpoint}{checkpoint_id}, $own, "its state at $ns";
        my ($code_of_history, $history) = $play->api('get_history', $thread, AgentSQL::encode({ checkpoint => { checkpoint_ns => $ns } }));
        is_deeply [ map { $_->{checkpoint}{checkpoint_id} } @{$history} ], [$own], "its history at $ns";
        is((update($thread, checkpoint => { checkpoint_ns => $ns }, values => {}))[0], 'ok', "an update at $ns");
        $session->query("update agent.threads set status = 'interrupted', active_run_id = null where thread_id = '$thread'");
        $session->query("delete from agent.run_queue where thread_id = '$thread'");
    }
    my $state = $play->body('get_state', $thread, undef, undef, AgentSQL::encode({ subgraphs => Cpanel::JSON::XS::true() }));
    is $state->{tasks}[0]{state}{checkpoint}{checkpoint_id}, $own, 'its state is in the task';
    is(($play->api('get_state', $thread, undef, undef, AgentSQL::encode({ checkpoint => { checkpoint_ns => 'other:1' } })))[0],
        'checkpoint_not_found', 'a namespace that is not stored under either name is not found');
};

subtest 'a checkpoint that is not in the namespace is not found' => sub {
    my $at = waiting();
    my $unknown = AgentSQL::uuid();
    for my $place ({ checkpoint_ns => 'inner:9' }, { checkpoint_ns => $INNER, checkpoint_id => $at->{root} },
        { checkpoint_id => $at->{first} }, { checkpoint_ns => $INNER, checkpoint_map => { $INNER => $unknown } },
        { checkpoint_id => $at->{root}, checkpoint_map => { $INNER => $unknown } },
        { checkpoint_id => $at->{root}, checkpoint_map => { 'inner:9' => $at->{first} } })
    {
        my $text = AgentSQL::encode($place);
        is +($play->try_run($at->{thread}, request => { checkpoint => $place }))[0], 'checkpoint_not_found', "a run from $text";
        is +(update($at->{thread}, checkpoint => $place))[0], 'checkpoint_not_found', "an update at $text";
    }
    $session->query("delete from agent.checkpoints where thread_id = '$at->{thread}' and checkpoint_id = '$at->{root}'");
    is +($play->try_run($at->{thread}, request => { checkpoint => { checkpoint_ns => $INNER } }))[0], 'checkpoint_not_found',
        'a run from a subgraph of a checkpoint that was deleted';
    is +(update(waiting()->{thread}, checkpoint => { checkpoint_ns => $INNER, checkpoint_id => $at->{first} }))[0],
        'checkpoint_not_found', 'a checkpoint of another thread';
};

subtest 'a retry starts from the subgraph until a step was saved' => sub {
    my $at = waiting();
    my ($start, $claim) = start($at->{thread}, checkpoint => { checkpoint_ns => $INNER, checkpoint_id => $at->{first} });
    my $parent = $at->{root};
    for my $case ([ undef, 1 ], [ 'fork', 1 ], [ 'loop', 0 ]) {
        my ($source, $has_map) = @$case;
        if ($source) {
            my $saved = AgentSQL::Play::checkpoint($claim, parent => $parent, source => $source, next => ['inner']);
            $play->save($worker, $saved);
            $parent = $saved->{checkpoint_id};
        }
        $play->release($worker, 'false', $claim);
        ($claim) = grep { $_->{run_id} eq $claim->{run_id} } $play->claim($worker);
        my $message = AgentSQL::decode($claim->{start});
        is $message->{checkpoint}{checkpoint_id}, $parent, 'the retry starts from the last checkpoint after ' . ($source // 'none');
        is_deeply $message->{checkpoint_map}, $has_map ? $start->{checkpoint_map} : undef,
            'and ' . ($has_map ? 'from' : 'not from') . ' that of the subgraph';
    }
    $play->save($worker, AgentSQL::Play::finish($claim));
};

subtest 'an update changes the state of a subgraph' => sub {
    my $at = waiting();
    my ($claim, $message) = updating($at->{thread}, checkpoint => { checkpoint_ns => $INNER });
    is_deeply [ $message->{ns}, @{ $message->{checkpoint} }{qw(checkpoint_id next format)} ],
        [ $INNER, $at->{second}, ['ask'], 'python' ], 'the message names the namespace and its last checkpoint';
    cmp_ok $claim->{state_bytes}, '>', 0, 'the length of its state is reported';
    my $new = AgentSQL::Play::checkpoint($claim, ns => $INNER, parent => $at->{second}, source => 'update', next => ['ask'],
        messages => [qw(one two edited)], parents => { '' => $at->{root} });
    $play->save($worker, $new, AgentSQL::Play::finish($claim));
    my $id = $new->{checkpoint_id};
    my %map = ('' => $at->{root}, $INNER => $id);
    my $body = ($play->api('join_call', $at->{thread}, $claim->{run_id}))[1];
    is_deeply $body->{checkpoint},
        { thread_id => $at->{thread}, checkpoint_ns => $INNER, checkpoint_id => $id, checkpoint_map => \%map },
        'the result names the checkpoint of the subgraph and those above';
    is_deeply $body->{configurable}, $body->{checkpoint}, 'configurable names the same checkpoints';
    my $state = $play->body('get_state', $at->{thread}, undef, undef, AgentSQL::encode({ checkpoint => { checkpoint_ns => $INNER } }));
    is_deeply [ map { $_->{content} } @{ $state->{values}{messages} } ], [qw(one two edited)], 'the state of the subgraph is changed';
    is $state->{metadata}{user_id}, 'u1', 'by the user of the request';
    is $play->body('get_state', $at->{thread}, undef)->{checkpoint_id}, $at->{root}, 'the state of the thread is not changed';
    is $play->thread_status($at->{thread}), 'interrupted', 'the thread waits as before';
};

subtest 'a refused update of a subgraph leaves nothing' => sub {
    my $at = waiting();
    my ($claim) = updating($at->{thread}, checkpoint => { checkpoint_ns => $INNER, checkpoint_id => $at->{first} });
    my $before = stored($at->{thread});
    $play->save($worker, AgentSQL::Play::put($claim, ns => $INNER), AgentSQL::Play::finish($claim, 'error', { error => 'E', message => 'm' }));
    is +($play->api('join_call', $at->{thread}, $claim->{run_id}))[0], 'update_refused', 'it is refused';
    is_deeply stored($at->{thread}), $before, 'what its library has put is deleted';
    is $play->body('get_state', $at->{thread}, undef)->{checkpoint_id}, $at->{root}, 'the state of the thread stays';
};

subtest 'an update of a subgraph that was saved has succeeded, whatever follows' => sub {
    my $at = waiting();
    my ($claim) = updating($at->{thread}, checkpoint => { checkpoint_ns => $INNER });
    $play->save($worker, AgentSQL::Play::checkpoint($claim, ns => $INNER, parent => $at->{second}, next => ['ask']));
    is_deeply $play->release($worker, 'true', $claim), { $claim->{run_id} => 'success' }, 'its runner is lost';
    is +($play->api('join_call', $at->{thread}, $claim->{run_id}))[0], 'ok', 'the client gets the result';
};

subtest 'the deletion of a run begins again what starts from a checkpoint of a subgraph that it saved' => sub {
    my %from = (checkpoint => { checkpoint_ns => $INNER });
    for my $case ([ 'a run', sub { (start(@_, %from))[1] } ], [ 'an update', sub { (updating(@_, %from))[0] } ]) {
        my ($what, $begin) = @$case;
        my $at = waiting();
        my $other = $play->leased($worker, $at->{thread});
        my $head = AgentSQL::Play::checkpoint($other, parent => $at->{root}, next => ['inner'], format => 'python');
        $play->save($worker, $head, AgentSQL::Play::finish($other));
        my $claim = $begin->($at->{thread});
        $play->save($worker, AgentSQL::Play::checkpoint($claim, parent => $at->{root}, source => 'fork')) if !$claim->{op};
        is +($play->api('delete_run', $at->{thread}, $at->{run}))[0], 'ok', 'the run is deleted';
        is $session->extra, "$at->{thread} $at->{run} $claim->{run_id}", "$what begins again";
        my ($again) = grep { $_->{run_id} eq $claim->{run_id} } $play->claim($worker);
        is_deeply AgentSQL::decode($again->{start})->{checkpoint}, { deleted => Cpanel::JSON::XS::true },
            'its message says that the checkpoint was deleted';
        $play->save($worker, AgentSQL::Play::finish($again));
    }
};

done_testing;
