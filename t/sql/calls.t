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

sub only_call { return (grep { $_->{is_call} } $play->claim($_[0] // $worker))[0] }

subtest 'a call is claimed like a run and saves a checkpoint of the thread' => sub {
    my ($thread, $head) = chat('Hello');
    my ($code, undef, $call) = update($thread, request => { values => { messages => ['x'] }, as_node => 'agent' });
    is $code, 'ok';
    is $session->extra, "$thread $call", 'the thread and the call have changed';
    is $play->thread_status($thread), 'busy';
    is +(result($thread, $call))[0], 'waiting';
    my ($claim) = only_call();
    my $message = AgentSQL::decode($claim->{start});
    is_deeply [ @$message{qw(type run_id epoch op thread_id graph_id)} ], [ 'call', $call, 1, 'update', $thread, 'agent' ];
    is_deeply $message->{arguments}, { values => { messages => ['x'] }, as_node => 'agent' };
    is $message->{config}{configurable}{user_id}, 'u1';
    is $message->{checkpoint}{checkpoint_id}, $head, 'it starts from the head of the thread';
    cmp_ok $claim->{start_bytes}, '>=', length $claim->{start}, 'its length is reported';
    cmp_ok $claim->{state_bytes}, '>', 0, 'and that of the state';
    my $new = saved($claim, $head, 'Hello', 'Updated');
    is_deeply $play->save($worker, $new, AgentSQL::Play::finish($claim)), { $call => [ 'saved', 't' ] };
    my $body = (result($thread, $call))[1];
    is $body->{checkpoint}{checkpoint_id}, $new->{checkpoint_id}, 'the result names the checkpoint';
    is $body->{configurable}{checkpoint_id}, $new->{checkpoint_id};
    is_deeply $play->messages($thread), [ 'Hello', 'Updated' ];
    is $play->thread_status($thread), 'interrupted', 'a node is next';
    my $state = $play->body('get_state', $thread, undef);
    is_deeply [ @{ $state->{metadata} }{qw(source step graph_id thread_id user_id assistant_id)} ],
        [ 'update', 2, 'agent', $thread, 'u1', $AgentSQL::ASSISTANT ];
    ok !exists $state->{metadata}{run_id}, 'no run wrote it';
    is $state->{parent_checkpoint_id}, $head;
    is $session->value("select arguments from agent.calls where call_id = '$call'"), '{}', 'its values are not kept';
    is $session->value("select count(*) from agent.runs where run_id = '$call'"), 0, 'a call is not a run';
    is $session->value("select count(*) from agent.usage_events where run_id = '$call'"), 0, 'and is not billed as one';
    is_deeply $play->save($worker, $new, AgentSQL::Play::finish($claim)), { $call => [ 'saved', 't' ] },
        'the batch may be repeated';
    is_deeply $play->save($other, AgentSQL::Play::finish($claim)), { $call => [ 'fenced', 'f' ] },
        'another worker did not end it';
};

subtest 'compose_starts has the message of a call too' => sub {
    my ($thread) = chat('Hello');
    my (undef, undef, $call) = update($thread);
    my ($claim) = $play->claim($worker, max_bytes => 0);
    is $claim->{start}, undef;
    my $items = AgentSQL::encode([ AgentSQL::Play::item($claim) ]);
    my ($row) = $session->query("select * from agent.compose_starts($worker, '$items')");
    is AgentSQL::decode($row->[2])->{type}, 'call';
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
    is $play->queue($runs[2])->{state}, 'blocked';
    is_deeply [ map { $play->status($thread, $_) } @runs[ 0, 1 ] ], [ 'interrupted', 'run_not_found' ],
        'they end the runs that wait before them';
    is +($play->api('cancel_runs_by_status', 'running', 'interrupt', 'ffffffff-ffff-ffff-ffff-ffffffffffff'))[0],
        'run_not_found', 'a call is not one of the runs that are cancelled by their status';
    $play->save($worker, saved($claim, $head, 'Hello', 'Updated'), AgentSQL::Play::finish($claim));
    is $play->queue($runs[2])->{state}, 'ready';
    is $play->thread_status($thread), 'busy';
    my ($next) = $play->claim($worker);
    is_deeply [ map { $_->{content} } @{ $play->start_values($next)->{messages} } ], [ 'Hello', 'Updated' ],
        'the run continues with the new state';
    $play->save($worker, AgentSQL::Play::finish($next));
};

subtest 'the end of a thread has no run while a call is active' => sub {
    my ($thread) = chat('Hello');
    my (undef, undef, $call) = update($thread);
    my ($row) = $session->query("select * from agent.find_thread_end('$deployment', '$thread')");
    is_deeply $row, [ 'ok', '3--1', '' ];
    $play->api('end_call', $thread, $call);
};

subtest 'what a call needs before it is made' => sub {
    is +(update(AgentSQL::uuid()))[0], 'thread_not_found';
    my $thread = $play->thread;
    is_deeply [ (update($thread))[ 0, 1 ] ], [ 'no_graph', "Thread $thread has no graph ID" ], 'a thread without a graph';
    is +(update($play->thread(metadata => { graph_id => 'nobody' })))[0], 'graph_not_found', 'a graph that nobody executes';
    my ($named) = $play->thread(metadata => { graph_id => 'agent' });
    my ($code, undef, $call) = update($named);
    is $code, 'ok', 'a thread that was created for a graph needs no run';
    my $claim = only_call();
    is AgentSQL::decode($claim->{start})->{checkpoint}, undef, 'its state is empty';
    $play->save($worker, saved($claim, undef, 'First'), AgentSQL::Play::finish($claim));
    is_deeply $play->messages($named), ['First'];
    my ($chat) = chat('Hello');
    is +(update($chat, request => { checkpoint_id => AgentSQL::uuid() }))[0], 'checkpoint_not_found';
};

subtest 'a call may continue an earlier checkpoint' => sub {
    my ($thread, $old) = chat('Hello');
    my $claim = $play->leased($worker, $thread);
    $play->save($worker, AgentSQL::Play::checkpoint($claim, id => AgentSQL::uuid(), parent => $old, messages => [ 'Hello', 'later' ]),
        AgentSQL::Play::finish($claim));
    my (undef, undef, $call) = update($thread, request => { values => {}, checkpoint => { checkpoint_id => $old } });
    my $fork = only_call();
    is AgentSQL::decode($fork->{start})->{checkpoint}{checkpoint_id}, $old;
    $play->save($worker, saved($fork, $old, 'Hello', 'forked'), AgentSQL::Play::finish($fork));
    is_deeply $play->messages($thread), [ 'Hello', 'forked' ];
};

subtest 'a refused update leaves the thread as it was' => sub {
    my ($thread, $head) = chat('Hello');
    my $failed = $play->leased($worker, $thread);
    $play->save($worker, AgentSQL::Play::finish($failed, 'error', { error => 'E', message => 'm' }));
    is $play->thread_status($thread), 'error';
    my (undef, undef, $call) = update($thread);
    my $claim = only_call();
    my $half = saved($claim, $head, 'Hello', 'half');
    $play->save($worker, $half);
    is_deeply $play->messages($thread), [ 'Hello', 'half' ];
    is_deeply $play->save($worker, AgentSQL::Play::finish($claim, 'error', { error => 'InvalidUpdateError', message => 'x' x 9000 })),
        { $call => [ 'saved', 't' ] };
    my ($code, $text) = result($thread, $call);
    is $code, 'update_refused';
    like $text, qr/\AInvalidUpdateError: x+\z/, 'the text is that of the graph';
    is length $text, 20 + 2000, 'and is cut';
    is_deeply $play->messages($thread), ['Hello'], 'the checkpoint that it saved is deleted';
    is +($play->api('get_state', $thread, $half->{checkpoint_id}))[0], 'checkpoint_not_found';
    is $play->thread_status($thread), 'error', 'the thread has its status again';
};

subtest 'what an update writes stays apart from the writes of the last run' => sub {
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
    is_deeply $writes->(), [$old];
    update($thread);
    my $call = only_call();
    my ($new, @new) = AgentSQL::Play::blob($call, 'new');
    $play->save($worker, @new, saved($call, $head, 'Hello', 'half'), AgentSQL::Play::put_writes($call, id => $step, writes => [ [ -1, 'e', $new ] ]));
    is_deeply $writes->(), [$new];
    $play->save($worker, AgentSQL::Play::finish($call, 'error', { error => 'E', message => 'm' }));
    is_deeply $writes->(), [$old], 'the run wrote it, and the call is undone';
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
        is_deeply [ result($thread, $call) ], [ 'update_refused', "$word: m" ];
        is_deeply $play->messages($thread), ['Hello'], 'its checkpoint is deleted';
    }
};

subtest 'a call that ends without a checkpoint has failed' => sub {
    for my $status (qw(success interrupted)) {
        my ($thread) = chat('Hello');
        my (undef, undef, $call) = update($thread);
        $play->save($worker, AgentSQL::Play::finish(only_call(), $status));
        is +(result($thread, $call))[0], 'call_failed', $status;
        is $play->thread_status($thread), 'idle';
    }
};

subtest 'a call that was not answered in time ends, and its worker is fenced' => sub {
    my ($thread, $head) = chat('Hello');
    my (undef, undef, $call) = update($thread, seconds => 2.5);
    my $claim = only_call();
    is_deeply [ $play->api('end_call', $thread, $call) ],
        [ 'call_timeout', 'The graph did not answer within 2.5 s; nothing was changed.' ];
    is_deeply $play->check($worker, $claim), { $call => 'lost' };
    is_deeply $play->save($worker, saved($claim, $head, 'Hello', 'late'), AgentSQL::Play::finish($claim)),
        { $call => [ 'fenced', 'f' ] };
    is_deeply $play->messages($thread), ['Hello'];
    is $play->thread_status($thread), 'idle';
    is +($play->api('end_call', $thread, $call))[0], 'call_timeout', 'it ends once';
};

subtest 'a call that no runner had ends with another word' => sub {
    my ($thread) = chat('Hello');
    my (undef, undef, $call) = update($thread);
    is_deeply [ $play->api('end_call', $thread, $call) ],
        [ 'no_runner', 'No runner was free to answer within 10 s; nothing was changed.' ];
    is_deeply [ $play->claim($worker) ], [];
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
    is +(result($thread, $call))[0], 'ok';
    is_deeply [ $play->claim($worker) ], [], 'it is not executed again';
    ($thread, $call, $claim) = $made->();
    my ($row) = $session->query("select * from agent.fail_run($worker, '$deployment', '$call', 1, 'output_timeout', 'm')");
    is $row->[2], 'error';
    is +(result($thread, $call))[0], 'ok', 'its end could not be saved';
};

subtest 'a call whose runner is lost is executed again, and fails after the third loss' => sub {
    my ($thread) = chat('Hello');
    my (undef, undef, $call) = update($thread);
    for my $attempt (1 .. 3) {
        my ($claim) = $play->claim($worker);
        is AgentSQL::decode($claim->{start})->{attempt}, $attempt;
        is_deeply $play->release($worker, 'true', $claim), { $call => $attempt < 3 ? 'requeued' : 'error' };
        at(10 * $attempt . ' seconds');
    }
    $session->query('reset agent.now');
    my ($code, $text) = result($thread, $call);
    is $code, 'call_failed';
    like $text, qr/given up after 3 attempts/;
    is $play->thread_status($thread), 'idle';
};

subtest 'the death of a worker releases its calls' => sub {
    my $dying = $play->worker(node => 'dying', pid => 3);
    my ($thread, $head) = chat('Hello');
    my (undef, undef, $call) = update($thread);
    ok only_call($dying);
    my ($row) = $session->query("select * from agent.mark_worker_dead($dying, true, 100)");
    is_deeply $row, [ $call, $thread, 'requeued' ];
    my ($claim) = $play->claim($worker);
    is $claim->{epoch}, 2;
    $play->save($worker, saved($claim, $head, 'Hello', 'again'), AgentSQL::Play::finish($claim));
    is_deeply $play->messages($thread), [ 'Hello', 'again' ];
};

subtest 'the deletion of a thread ends its call' => sub {
    my ($thread) = chat('Hello');
    my (undef, undef, $call) = update($thread);
    my $claim = only_call();
    $play->api('delete_thread', $thread);
    is $session->extra, "$thread $call";
    is +(result($thread, $call))[0], 'thread_not_found';
    is +($play->api('end_call', $thread, $call))[0], 'thread_not_found';
    is_deeply $play->check($worker, $claim), { $call => 'lost' };
};

subtest 'the deletion of a run keeps the updates that continue its state' => sub {
    my ($thread, $head) = chat('Hello');
    my $run = $play->body('list_runs', $thread, 10, 0, undef, undef)->[0]{run_id};
    update($thread);
    my $claim = only_call();
    $play->save($worker, saved($claim, $head, 'Hello', 'Updated'), AgentSQL::Play::finish($claim));
    is +($play->api('delete_run', $thread, $run))[0], 'ok';
    is_deeply $play->messages($thread), [ 'Hello', 'Updated' ];
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
    is_deeply $play->messages($thread), [ 'Hello', 'Updated' ];
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
    is sweep(), 0, 'not before the deadline';
    $after->('6 seconds');
    1 while sweep();
    is +(result($thread, $late))[0], 'no_runner';
    is $play->thread_status($thread), 'idle';
    is $session->value("select count(*) from agent.calls where thread_id = '$deleted'"), 0, 'the one of the deleted thread is gone';
    $after->('2 minutes');
    1 while sweep();
    is $session->value('select count(*) from agent.calls'), 0;
    $session->query('reset agent.now');
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
        { $run => [ 'saved', 't' ], $call => [ 'saved', 't' ] };
    is $play->thread_status($chat), 'error';
    is $play->thread_status($thread), 'interrupted';
    is +(result($thread, $call))[0], 'ok';
};

is $session->value('select count(*) from agent.run_events e where exists (select from agent.calls c where c.call_id = e.run_id)'), 0,
    'no call has events';

done_testing;
