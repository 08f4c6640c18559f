# SPDX-License-Identifier: Apache-2.0
# Calls: leased, fenced and saved like runs; one result each; no half of an update.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Play;

my $db = AgentSQL->new;
my $session = $db->session;
my $play = AgentSQL::Play->new($session);
my $deployment = $play->deployment;
my $worker = $play->worker;
my $other = $play->worker(node => 'other', pid => 2);
$session->query("select agent.save_graphs('$deployment', '[{\"graph_id\":\"agent\",\"assistant_id\":\"$AgentSQL::ASSISTANT\"}]')");

sub human { return AgentSQL::Play::human(@_) }

# A thread whose last run left these messages; [thread_id, checkpoint_id].
sub chat {
    my (@messages) = @_;
    my $thread = $play->thread;
    my $claim = $play->leased($worker, $thread);
    my $id = AgentSQL::uuid();
    $play->save($worker, AgentSQL::Play::checkpoint($claim, id => $id, messages => \@messages), AgentSQL::Play::finish($claim));
    return ($thread, $id);
}

# (code, body, call_id)
sub update {
    my ($thread, %with) = @_;
    my $call = AgentSQL::uuid();
    my @result = $play->api('update_state', $thread, $call, $with{user} // 'u1', $with{seconds} // 10,
        AgentSQL::encode($with{request} // { values => { messages => [] } }));
    return (@result, $call);
}

sub result { return $play->api('join_call', @_) }

# The checkpoint of an update of the state.
sub saved {
    my ($claim, $parent, @messages) = @_;
    return AgentSQL::Play::checkpoint($claim, id => AgentSQL::uuid(), parent => $parent, source => 'update', step => 2,
        next => ['agent'], messages => \@messages);
}

sub sweep { return $session->value('select agent.sweep_calls()') }

sub at { return $session->query("set agent.now = '" . $session->value("select now() + interval '$_[0]'") . "'") }

sub only_call { return (grep { $_->{op} } $play->claim($_[0] // $worker))[0] }

subtest 'a call is claimed like a run and saves a checkpoint of the thread' => sub {
    my ($thread, $head) = chat('Hello');
    my ($code, undef, $call) = update($thread, request => { values => { messages => ['x'] }, as_node => 'agent' });
    is $code, 'ok', 'an update is accepted';
    is $session->extra, "$thread $call", 'the thread and the call have changed';
    is $play->thread_status($thread), 'busy', 'the thread of an accepted update is busy';
    is +(result($thread, $call))[0], 'waiting', 'an accepted update has no result yet';
    my ($claim) = only_call();
    my $message = AgentSQL::decode($claim->{start});
    is_deeply [ @$message{qw(type run_id epoch op thread_id graph_id)} ], [ 'call', $call, 1, 'update', $thread, 'agent' ],
        'the message names the call, its operation, thread and graph';
    is_deeply $message->{arguments}, { supersteps => [ [ { values => { messages => ['x'] }, as_node => 'agent' } ] ] },
        'the message has the arguments of the update';
    is $message->{config}{configurable}{user_id}, 'u1', 'the message has the user of the update';
    is $message->{checkpoint}{checkpoint_id}, $head, 'it starts from the head of the thread';
    cmp_ok $claim->{start_bytes}, '>=', length $claim->{start}, 'its length is reported';
    cmp_ok $claim->{state_bytes}, '>', 0, 'the length of the state is reported';
    my $measured = sub { $session->value("select agent.measure_state('$claim->{deployment_id}', '$call', '$thread', '$_[0]')") };
    is $measured->('update'), $claim->{state_bytes}, 'measure_state says the length of a message that is not composed';
    is $measured->('describe'), 0, 'a description reads no state';
    my $new = saved($claim, $head, 'Hello', 'Updated');
    is_deeply $play->save($worker, $new, AgentSQL::Play::finish($claim)), { $call => [ 'saved', 't' ] },
        'the checkpoint and the end of the call are saved';
    my $body = (result($thread, $call))[1];
    is $body->{checkpoint}{checkpoint_id}, $new->{checkpoint_id}, 'the result names the checkpoint';
    is $body->{configurable}{checkpoint_id}, $new->{checkpoint_id}, 'configurable of the result names the checkpoint';
    is_deeply $play->messages($thread), [ 'Hello', 'Updated' ], 'the state of the thread is that of the checkpoint';
    is $play->thread_status($thread), 'interrupted', 'a node is next';
    my $state = $play->body('get_state', $thread, undef);
    is_deeply [ @{ $state->{metadata} }{qw(source step graph_id thread_id user_id assistant_id)} ],
        [ 'update', 2, 'agent', $thread, 'u1', $AgentSQL::ASSISTANT ], 'the metadata are those of an update by its user';
    ok !exists $state->{metadata}{run_id}, 'no run wrote it';
    is $state->{parent_checkpoint_id}, $head, 'the parent of the new state is the head before';
    is $session->value("select arguments from agent.calls where call_id = '$call'"), '{}', 'its values are not kept';
    is $session->value("select count(*) from agent.runs where run_id = '$call'"), 0, 'a call is not a run';
    is $session->value("select count(*) from agent.usage_events where run_id = '$call'"), 0, 'a call is not billed';
    is_deeply $play->save($worker, $new, AgentSQL::Play::finish($claim)), { $call => [ 'saved', 't' ] },
        'the batch may be repeated';
    is_deeply $play->save($other, AgentSQL::Play::finish($claim)), { $call => [ 'fenced', 'f' ] },
        'another worker did not end it';
};

subtest 'compose_starts has the message of a call too' => sub {
    my ($thread) = chat('Hello');
    my (undef, undef, $call) = update($thread);
    my ($claim) = $play->claim($worker, max_bytes => 0);
    is $claim->{start}, undef, 'a message over the limit of a claim is not composed by it';
    my $items = AgentSQL::encode([ AgentSQL::Play::item($claim) ]);
    my ($row) = $session->query("select * from agent.compose_starts($worker, '$items')");
    is AgentSQL::decode($row->[2])->{type}, 'call', 'compose_starts composes the message of the call';
    $play->api('end_call', $thread, $call);
};

subtest 'a call on a busy thread is refused' => sub {
    my ($thread) = chat('Hello');
    $play->run($thread);
    is_deeply [ (update($thread))[ 0, 1 ] ], [ 'thread_busy', 'Thread is busy' ], 'a run executes';
    $play->finish_all($worker);
    my (undef, undef, $call) = update($thread);
    is +(update($thread))[0], 'thread_busy', 'another call executes';
    is +($play->try_run($thread, strategy => 'reject'))[0], 'thread_busy', 'a run with strategy reject too';
    $play->api('end_call', $thread, $call);
};

subtest 'runs that are created during a call wait for it, whatever their strategy' => sub {
    my ($thread, $head) = chat('Hello');
    my (undef, undef, $call) = update($thread);
    my ($claim) = only_call();
    my @runs = map { $play->run($thread, strategy => $_) } qw(enqueue interrupt rollback);
    is $play->queue($call)->{cancel}, undef, 'the call is not cancelled';
    is $play->queue($runs[2])->{state}, 'blocked', 'a run that is created during a call is blocked';
    is_deeply [ map { $play->status($thread, $_) } @runs[ 0, 1 ] ], [ 'interrupted', 'run_not_found' ],
        'they end the runs that wait before them';
    is +($play->api('cancel_runs_by_status', 'running', 'interrupt', 'ffffffff-ffff-ffff-ffff-ffffffffffff'))[0],
        'run_not_found', 'a call is not one of the runs that are cancelled by their status';
    $play->save($worker, saved($claim, $head, 'Hello', 'Updated'), AgentSQL::Play::finish($claim));
    is $play->queue($runs[2])->{state}, 'ready', 'the run is ready once the call has ended';
    is $play->thread_status($thread), 'busy', 'the thread stays busy for the run';
    my ($next) = $play->claim($worker);
    is_deeply [ map { $_->{content} } @{ $play->start_values($next)->{messages} } ], [ 'Hello', 'Updated' ],
        'the run continues with the new state';
    $play->save($worker, AgentSQL::Play::finish($next));
};

subtest 'the end of a thread has no run while a call is active' => sub {
    my ($thread) = chat('Hello');
    my (undef, undef, $call) = update($thread);
    my ($row) = $session->query("select * from agent.find_thread_end('$deployment', '$thread')");
    is_deeply $row, [ 'ok', '3--1', '' ], 'find_thread_end returns no run for the call';
    $play->api('end_call', $thread, $call);
};

subtest 'an update is refused without its thread, graph or checkpoint' => sub {
    is +(update(AgentSQL::uuid()))[0], 'thread_not_found', 'an unknown thread cannot be updated';
    my $thread = $play->thread;
    is_deeply [ (update($thread))[ 0, 1 ] ], [ 'no_graph',
        "Thread $thread has no graph ID: create a run first, or set graph_id in its metadata." ], 'a thread without a graph';
    is +(update($play->thread(metadata => { graph_id => 'nobody' })))[0], 'graph_not_found', 'a graph that nobody executes';
    my ($named) = $play->thread(metadata => { graph_id => 'agent' });
    my ($code, undef, $call) = update($named);
    is $code, 'ok', 'a thread that was created for a graph needs no run';
    my $claim = only_call();
    is AgentSQL::decode($claim->{start})->{checkpoint}, undef, 'its state is empty';
    $play->save($worker, saved($claim, undef, 'First'), AgentSQL::Play::finish($claim));
    is_deeply $play->messages($named), ['First'], 'the first state of the thread is that of the update';
    my ($chat) = chat('Hello');
    is +(update($chat, request => { checkpoint_id => AgentSQL::uuid() }))[0], 'checkpoint_not_found',
        'a call cannot continue an unknown checkpoint';
};

subtest 'a call may continue an earlier checkpoint' => sub {
    my ($thread, $old) = chat('Hello');
    my $claim = $play->leased($worker, $thread);
    $play->save($worker, AgentSQL::Play::checkpoint($claim, id => AgentSQL::uuid(), parent => $old, messages => [ 'Hello', 'later' ]),
        AgentSQL::Play::finish($claim));
    my (undef, undef, $call) = update($thread, request => { values => {}, checkpoint => { checkpoint_id => $old } });
    my $fork = only_call();
    is AgentSQL::decode($fork->{start})->{checkpoint}{checkpoint_id}, $old,
        'the message names the checkpoint that the update continues';
    $play->save($worker, saved($fork, $old, 'Hello', 'forked'), AgentSQL::Play::finish($fork));
    is_deeply $play->messages($thread), [ 'Hello', 'forked' ], 'the new state continues the earlier checkpoint';
};

subtest 'a refused update leaves the thread as it was' => sub {
    my ($thread, $head) = chat('Hello');
    my $failed = $play->leased($worker, $thread);
    $play->save($worker, AgentSQL::Play::finish($failed, 'error', { error => 'E', message => 'm' }));
    is $play->thread_status($thread), 'error', 'the thread has status error before the update';
    my (undef, undef, $call) = update($thread);
    my $claim = only_call();
    my $half = saved($claim, $head, 'Hello', 'half');
    $play->save($worker, $half);
    is_deeply $play->messages($thread), [ 'Hello', 'half' ], 'a checkpoint of a call that executes is the state of the thread';
    is_deeply $play->save($worker, AgentSQL::Play::finish($claim, 'error', { error => 'InvalidUpdateError', message => 'x' x 9000 })),
        { $call => [ 'saved', 't' ] }, 'the refusal of the graph ends the call';
    my ($code, $text) = result($thread, $call);
    is $code, 'update_refused', 'the call was refused';
    like $text, qr/\AInvalidUpdateError: x+\z/, 'the text is that of the graph';
    is length $text, 20 + 2000, 'the text of a refusal is cut';
    is_deeply $play->messages($thread), ['Hello'], 'the checkpoint that it saved is deleted';
    is +($play->api('get_state', $thread, $half->{checkpoint_id}))[0], 'checkpoint_not_found',
        'the checkpoint of a refused update cannot be read';
    is $play->thread_status($thread), 'error', 'the thread has its status again';
};

subtest 'writes of an update stay apart from the writes of the last run' => sub {
    my $thread = $play->thread;
    my $claim = $play->leased($worker, $thread);
    my ($head, $step) = (AgentSQL::uuid(), AgentSQL::uuid());
    my ($old, @old) = AgentSQL::Play::blob($claim, 'old');
    $play->save($worker, @old, AgentSQL::Play::checkpoint($claim, id => $head, messages => ['Hello']), AgentSQL::Play::put($claim, id => $step),
        AgentSQL::Play::put_writes($claim, id => $step, writes => [ [ -1, 'e', $old ] ]), AgentSQL::Play::finish($claim));
    my $writes = sub {
        my ($row) = $session->query("select body from agent.read_checkpoint('$deployment', '$thread', '{\"checkpoint_id\":\"$step\"}', null, 100000)");
        return [ map { $_->[3] } @{ AgentSQL::decode($row->[0])->{writes} } ];
    };
    is_deeply $writes->(), [$old], 'the write of the run is the last one before the update';
    update($thread);
    my $call = only_call();
    my ($new, @new) = AgentSQL::Play::blob($call, 'new');
    $play->save($worker, @new, saved($call, $head, 'Hello', 'half'), AgentSQL::Play::put_writes($call, id => $step, writes => [ [ -1, 'e', $new ] ]));
    is_deeply $writes->(), [$new], 'the write of the update replaces that of the run';
    $play->save($worker, AgentSQL::Play::finish($call, 'error', { error => 'E', message => 'm' }));
    is_deeply $writes->(), [$old], 'the run wrote it, and the call is undone';
};

# A thread that a call creates: [code, body, thread, call].
sub create {
    my (%request) = @_;
    my ($thread, $call) = ($request{thread_id} // AgentSQL::uuid(), AgentSQL::uuid());
    my @result = $play->api('create_thread_state', $thread, $call, 'u1', $request{if_exists} // 'raise', 10,
        AgentSQL::encode({ metadata => { graph_id => 'agent', x => 1 }, supersteps => [ map { { updates => $_ } } [ { values => { messages => ['a'] }, as_node => '__input__' } ],
            [ { values => { messages => ['a'] }, as_node => '__start__' }, { command => { update => {} } } ] ], %request }));
    return (@result, $thread, $call);
}

subtest 'a thread is created with the state that its graph makes of supersteps' => sub {
    my ($code, $body, $thread, $call) = create();
    is $code, 'ok', 'the thread is created';
    is $session->extra, "$thread $call", 'the thread and the call have changed';
    is $play->thread_status($thread), 'busy', 'it is busy until its state is made';
    my $claim = only_call();
    my $message = AgentSQL::decode($claim->{start});
    is_deeply $message->{arguments}, { supersteps => [ [ { values => { messages => ['a'] }, as_node => '__input__' } ],
        [ { values => { messages => ['a'] }, as_node => '__start__' }, { command => { update => {} } } ] ] },
        'the runner has the updates of the supersteps';
    is $message->{checkpoint}, undef, 'it begins without a state';
    my @states = (saved($claim, undef, 'a'));
    push @states, saved($claim, $states[0]{checkpoint_id}, 'a', 'b');
    $play->save($worker, @states, AgentSQL::Play::finish($claim));
    ($code, $body) = result($thread, $call);
    is_deeply [ $code, @$body{qw(thread_id status)}, [ map { $_->{content} } @{ $body->{values}{messages} } ] ],
        [ 'ok', $thread, 'interrupted', [qw(a b)] ], 'the result is the record of the thread with its values';
    my $history = $play->body('get_history', $thread, '{}');
    is_deeply [ map { $_->{metadata}{user_id} } @$history ], [ 'u1', 'u1' ], 'each superstep has the metadata of an update';
    is +(create(thread_id => $thread))[0], 'thread_exists', 'an id that is taken';
    ($code, $body) = create(thread_id => $thread, if_exists => 'do_nothing');
    is_deeply [ $code, $body->{thread_id} ], [ 'ok', $thread ], 'do_nothing returns the thread as it is';
    is $session->extra // '', '', 'do_nothing makes no call';
    ($code, $body) = create(metadata => {});
    is $code, 'no_graph', 'supersteps need a graph';
    like $body, qr/ has no graph ID: supersteps need graph_id in its metadata\.\z/, 'supersteps: the error says where it is set';
    my ($wrong, undef, $none) = create(metadata => { graph_id => 'nobody' });
    is $wrong, 'graph_not_found', 'a graph that nobody executes';
    is +($play->api('get_thread', $none))[0], 'thread_not_found', 'supersteps of an unserved graph leave no thread';
};

subtest 'a thread whose supersteps fail is not created' => sub {
    my (undef, undef, $thread, $call) = create();
    my $claim = only_call();
    $play->save($worker, saved($claim, undef, 'a'), AgentSQL::Play::finish($claim, 'error', { error => 'E', message => 'm' }));
    is_deeply [ result($thread, $call) ], [ 'update_refused', 'E: m' ], 'the result is the refusal';
    is +($play->api('get_thread', $thread))[0], 'thread_not_found', 'the thread is deleted';
    (undef, undef, $thread, $call) = create();
    is +($play->api('end_call', $thread, $call))[0], 'no_runner', 'one whose time is over';
    is +($play->api('get_thread', $thread))[0], 'thread_not_found', 'is deleted too';
    (undef, undef, $thread, $call) = create();
    my $run = $play->run($thread);
    $play->api('end_call', $thread, $call);
    is $play->queue($run)->{state}, 'ready', 'one that a run waits on is kept for it';
    $play->finish_all($worker);
};

subtest 'an error that the server gives a call is not a refusal of its graph, whatever its name' => sub {
    my ($thread, $head) = chat('Hello');
    my %failure = (error => 'StateUnavailableError', message => 'm');
    my (undef, undef, $call) = update($thread);
    $play->save($worker, { %{ AgentSQL::Play::finish(only_call(), 'error', \%failure) }, f => 1 });
    is_deeply [ result($thread, $call) ], [ 'call_failed', 'm' ], 'the server ended it';
    (undef, undef, $call) = update($thread);
    my $claim = only_call();
    $play->save($worker, saved($claim, $head, 'Hello', 'Updated'),
        { %{ AgentSQL::Play::finish($claim, 'error', \%failure) }, f => 1 });
    is +(result($thread, $call))[0], 'ok', 'a call that was saved has succeeded';
};

subtest 'a runner cannot make its refusal look like an error of the server' => sub {
    for my $word (qw(worker_lost call_timeout no_runner poison)) {
        my ($thread, $head) = chat('Hello');
        my (undef, undef, $call) = update($thread);
        my $claim = only_call();
        $play->save($worker, saved($claim, $head, 'Hello', 'half'),
            { %{ AgentSQL::Play::finish($claim, 'error', { error => $word, message => 'm' }) }, f => 0 });
        is_deeply [ result($thread, $call) ], [ 'update_refused', "$word: m" ],
            "an error $word of the runner is a refusal of the graph";
        is_deeply $play->messages($thread), ['Hello'], 'its checkpoint is deleted';
    }
};

subtest 'a call that ends without a checkpoint has failed' => sub {
    for my $status (qw(success interrupted)) {
        my ($thread) = chat('Hello');
        my (undef, undef, $call) = update($thread);
        $play->save($worker, AgentSQL::Play::finish(only_call(), $status));
        is +(result($thread, $call))[0], 'call_failed', $status;
        is $play->thread_status($thread), 'idle', "a thread is idle after a call that ended $status without a checkpoint";
    }
};

subtest 'a call that was not answered in time ends, and its worker is fenced' => sub {
    my ($thread, $head) = chat('Hello');
    my (undef, undef, $call) = update($thread, seconds => 2.5);
    my $claim = only_call();
    is_deeply [ $play->api('end_call', $thread, $call) ],
        [ 'call_timeout', 'The graph did not answer within 2.5 s; nothing was changed.' ],
        'the end of the time names the seconds that the graph had';
    is_deeply $play->check($worker, $claim), { $call => 'lost' }, 'the worker has lost a call that was not answered in time';
    is_deeply $play->save($worker, saved($claim, $head, 'Hello', 'late'), AgentSQL::Play::finish($claim)),
        { $call => [ 'fenced', 'f' ] }, 'the late answer of the worker is fenced';
    is_deeply $play->messages($thread), ['Hello'], 'a late answer changes no state';
    is $play->thread_status($thread), 'idle', 'the thread is idle after the time is over';
    is +($play->api('end_call', $thread, $call))[0], 'call_timeout', 'it ends once';
};

subtest 'a call that no runner had ends with another word' => sub {
    my ($thread) = chat('Hello');
    my (undef, undef, $call) = update($thread);
    is_deeply [ $play->api('end_call', $thread, $call) ],
        [ 'no_runner', 'No runner was free to answer within 10 s; nothing was changed.' ],
        'the end names the seconds that no runner was free';
    is_deeply [ $play->claim($worker) ], [], 'a call that has ended is not claimed';
};

subtest 'a call that was saved has succeeded, whatever follows' => sub {
    my $made = sub {
        my ($thread, $head) = chat('Hello');
        my (undef, undef, $call) = update($thread);
        my $claim = only_call();
        $play->save($worker, saved($claim, $head, 'Hello', 'Updated'));
        return ($thread, $call, $claim);
    };
    my ($thread, $call, $claim) = $made->();
    is +($play->api('end_call', $thread, $call))[0], 'ok', 'its time is over';
    ($thread, $call, $claim) = $made->();
    is_deeply $play->release($worker, 'true', $claim), { $call => 'success' }, 'its runner is lost';
    is +(result($thread, $call))[0], 'ok', 'a saved call whose runner is lost has the result ok';
    is_deeply [ $play->claim($worker) ], [], 'it is not executed again';
    ($thread, $call, $claim) = $made->();
    my ($row) = $session->query("select * from agent.fail_run($worker, '$deployment', '$call', 1, 'OutputTimeoutError', 'm')");
    is $row->[2], 'error', 'an end that cannot be saved ends the queue row with status error';
    is +(result($thread, $call))[0], 'ok', 'its end could not be saved';
};

subtest 'a call whose runner is lost is executed again, and fails after the third loss' => sub {
    my ($thread) = chat('Hello');
    my (undef, undef, $call) = update($thread);
    for my $attempt (1 .. 3) {
        my ($claim) = $play->claim($worker);
        is AgentSQL::decode($claim->{start})->{attempt}, $attempt, "attempt $attempt is numbered in its message";
        is_deeply $play->release($worker, 'true', $claim), { $call => $attempt < 3 ? 'requeued' : 'error' },
            "the loss of attempt $attempt requeues the call, or ends it after the third";
        at(10 * $attempt . ' seconds');
    }
    $session->query('reset agent.now');
    my ($code, $text) = result($thread, $call);
    is $code, 'call_failed', 'a call that lost three runners has failed';
    like $text, qr/given up after 3 attempts/, 'the text says how many attempts were made';
    is $play->thread_status($thread), 'idle', 'the thread is idle after the failed call';
};

subtest 'the death of a worker releases its calls' => sub {
    my $dying = $play->worker(node => 'dying', pid => 3);
    my ($thread, $head) = chat('Hello');
    my (undef, undef, $call) = update($thread);
    ok only_call($dying), 'the worker that dies has claimed the call';
    my ($row) = $session->query("select * from agent.mark_worker_dead($dying, true, 100)");
    is_deeply $row, [ $call, $thread, 'requeued' ], 'the call of the dead worker is requeued';
    my ($claim) = $play->claim($worker);
    is $claim->{epoch}, 2, 'the call is claimed again in the next epoch';
    $play->save($worker, saved($claim, $head, 'Hello', 'again'), AgentSQL::Play::finish($claim));
    is_deeply $play->messages($thread), [ 'Hello', 'again' ], 'the second attempt saves the state';
};

subtest 'the deletion of a thread ends its call' => sub {
    my ($thread) = chat('Hello');
    my (undef, undef, $call) = update($thread);
    my $claim = only_call();
    $play->api('delete_thread', $thread);
    is $session->extra, "$thread $call", 'the deletion changes the thread and the call';
    is +(result($thread, $call))[0], 'thread_not_found', 'the call has no result without its thread';
    is +($play->api('end_call', $thread, $call))[0], 'thread_not_found', 'the call cannot be ended without its thread';
    is_deeply $play->check($worker, $claim), { $call => 'lost' }, 'the worker has lost the call of a deleted thread';
};

subtest 'the deletion of a run keeps the updates that continue its state' => sub {
    my ($thread, $head) = chat('Hello');
    my $run = $play->body('list_runs', $thread, 10, 0, undef, undef)->[0]{run_id};
    update($thread);
    my $claim = only_call();
    $play->save($worker, saved($claim, $head, 'Hello', 'Updated'), AgentSQL::Play::finish($claim));
    is +($play->api('delete_run', $thread, $run))[0], 'ok', 'the run whose state was updated is deleted';
    is_deeply $play->messages($thread), [ 'Hello', 'Updated' ], 'the state of the update stays without the run before it';
};

subtest 'a rollback of a run restores the update before it' => sub {
    my ($thread, $head) = chat('Hello');
    update($thread);
    my $claim = only_call();
    my $new = saved($claim, $head, 'Hello', 'Updated');
    $play->save($worker, $new, AgentSQL::Play::finish($claim));
    my $next = $play->leased($worker, $thread);
    $play->save($worker, AgentSQL::Play::checkpoint($next, id => AgentSQL::uuid(), parent => $new->{checkpoint_id}, messages => [ 'Hello', 'Updated', 'more' ]));
    $session->call('cancel_run', $deployment, $thread, $next->{run_id}, 'rollback');
    $play->save($worker, AgentSQL::Play::finish($next, 'interrupted'));
    is_deeply $play->messages($thread), [ 'Hello', 'Updated' ], 'the state is that of the update again';
};

subtest 'overdue calls are ended, and old records are deleted' => sub {
    $session->query('delete from agent.calls');
    my ($thread) = chat('Hello');
    my ($deleted) = chat('Hello');
    my (undef, undef, $late) = update($thread);
    update($deleted);
    $play->api('delete_thread', $deleted);
    my $after = sub {
        $session->query("set agent.now = '" . $session->value("select max(deadline_at) + interval '$_[0]' from agent.calls") . "'");
    };
    $after->('-1 second');
    is sweep(), 0, 'no call is ended before its deadline';
    $after->('6 seconds');
    1 while sweep();
    is +(result($thread, $late))[0], 'no_runner', 'a call that no runner claimed before its deadline ends with no_runner';
    is $play->thread_status($thread), 'idle', 'the thread of an overdue call is idle';
    is $session->value("select count(*) from agent.calls where thread_id = '$deleted'"), 0, 'the one of the deleted thread is gone';
    $after->('2 minutes');
    1 while sweep();
    is $session->value('select count(*) from agent.calls'), 0, 'the record of a call is deleted two minutes after its deadline';
    $session->query('reset agent.now');
};

subtest 'results that together are large are deleted in turns' => sub {
    update((chat('Hello'))[0]) for 1 .. 3;
    $session->query("update agent.calls set code = 'ok', body = repeat('x', 3000000), finished_at = agent.now() - interval '2 minutes'");
    is_deeply [ map { sweep() } 1 .. 4 ], [ 1, 1, 1, 0 ];
};

subtest 'runs and calls of one batch do not affect each other' => sub {
    my ($thread, $head) = chat('Hello');
    my ($chat) = chat('Hello');
    my (undef, undef, $call) = update($thread);
    my $run = $play->run($chat);
    my %claim = map { $_->{run_id} => $_ } $play->claim($worker);
    is_deeply $play->save($worker,
        AgentSQL::Play::event($claim{$run}, 0, 'metadata', {}),
        saved($claim{$call}, $head, 'Hello', 'Updated'),
        AgentSQL::Play::finish($claim{$run}, 'error', { error => 'E', message => 'm' }),
        AgentSQL::Play::finish($claim{$call})),
        { $run => [ 'saved', 't' ], $call => [ 'saved', 't' ] }, 'the run and the call of one batch are saved and have ended';
    is $play->thread_status($chat), 'error', 'a run that fails beside a call leaves its own thread in status error';
    is $play->thread_status($thread), 'interrupted', 'a call that succeeds beside a failed run leaves its thread interrupted';
    is +(result($thread, $call))[0], 'ok', 'a call that is saved beside a failed run has succeeded';
};

is $session->value('select count(*) from agent.run_events e where exists (select from agent.calls c where c.call_id = e.run_id)'), 0,
    'no call has events';

done_testing;
