# SPDX-License-Identifier: Apache-2.0
# Calls: what a runner's answers become, and how calls end whose runner or
# supervisor is hostile, silent or lost.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Wait;
use Cpanel::JSON::XS;
use Test::More;
use TestSupervisor;

my $DEPLOYMENT = '00000000-0000-0000-0000-000000000001';
my $pg = start_cluster();

sub start_supervisor {
    my (%with) = @_;
    my $sv = TestSupervisor->start($pg, runner => scripted_runner('call_runner.pl'), timing_ms => fast_timing(), %with);
    $sv->wait_ready;
    wait_for('the graph to be reported', sub { poll("select count(*) from agent.graphs where graph_id = 'agent'") });
    return $sv;
}

my $sv = start_supervisor();

# A call on a thread, on a new one by default: [thread, call].
sub call {
    my ($values, %with) = @_;
    my ($thread, $call) = ($with{thread} // uuid(), uuid());
    sql("select code from agent.create_thread('$DEPLOYMENT', '$thread', 'raise', '{\"metadata\":{\"graph_id\":\"agent\"}}')")
        if !$with{thread};
    my $request = literal(encode_json({ values => $values, as_node => 'agent' }));
    my $code = sql("begin; select code from agent.update_state('$DEPLOYMENT', '$thread', '$call', 'u1', " . ($with{seconds} // 600)
            . ", $request); "
            . ($with{arguments} ? "update agent.calls set arguments = " . literal(encode_json($with{arguments})) . " where call_id = '$call'; " : '')
            . 'commit');
    die "update_state: $code\n" if $code ne 'ok';
    $sv->wake;
    return [ $thread, $call ];
}

# A call that changes nothing, of a thread or of none.
sub ask {
    my ($op, $values, $thread) = @_;
    my $call = uuid();
    $thread //= $call;
    my ($arguments, $config) = map { literal(encode_json($_)) } { what => 'graph' }, { configurable => $values };
    sql("insert into agent.calls (deployment_id, call_id, thread_id, graph_id, op, arguments, config, created_at, deadline_at) "
        . "values ('$DEPLOYMENT', '$call', '$thread', 'agent', '$op', $arguments, $config, now(), now() + interval '10 min'); "
        . 'insert into agent.run_queue (deployment_id, run_id, thread_id, thread_seq, graph_id, state, ready_seq, events_bucket, op) '
        . "values ('$DEPLOYMENT', '$call', '$thread', 0, 'agent', 'ready', nextval('agent.run_ready_seq'), current_date, '$op')");
    $sv->wake;
    return [ $thread, $call ];
}

sub column { my ($call, $name) = @_; return sql("select $name from agent.calls where call_id = '$call->[1]'") }

sub result_of {
    my ($call) = @_;
    wait_for('the call to end', sub { column($call, 'finished_at is not null') eq 't' });
    return column($call, 'code');
}

sub messages_of {
    my ($call) = @_;
    my $body = sql("select body from agent.get_state('$DEPLOYMENT', '$call->[0]', null)");
    return [ map { $_->{content} } @{ decode_json($body)->{values}{messages} // [] } ];
}

sub thread_status { my ($call) = @_; return sql("select status from agent.threads where thread_id = '$call->[0]'") }

sub attempts { my ($call) = @_; return scalar(() = $sv->log_text =~ /call $call->[1] \w+ attempt/g) }

sub end_call {
    my ($call) = @_;
    my $code = sql("select code from agent.end_call('$DEPLOYMENT', '$call->[0]', '$call->[1]')");
    $sv->wake('C');
    return $code;
}

subtest 'a call is answered with a checkpoint, and listeners are told' => sub {
    my $listener = start_listener();
    my $call = call({ do => 'save' });
    is result_of($call), 'ok', 'a call that saved its state succeeds';
    is_deeply messages_of($call), ['saved'], 'the state is that of the call';
    wait_for('the notification', sub { listen_once($listener) =~ /$call->[1]/ });
    is sql("select count(*) from agent.run_events where run_id = '$call->[1]'"), 0, 'it has no events';
    ok $sv->wait_log(qr/call $call->[1] save attempt 1 as_node agent/), 'the runner gets the arguments';
};

subtest 'a call reads the state as a run does' => sub {
    my $call = call({ do => 'save' });
    result_of($call);
    my $next = call({ do => 'read' }, thread => $call->[0]);
    is result_of($next), 'ok', 'a call that reads the state succeeds';
    is_deeply messages_of($next), [ 'saved', 'more' ], 'a call that read the state continues it';
};

subtest 'an update that the graph refuses is undone' => sub {
    my $call = call({ do => 'refuse' });
    is result_of($call), 'update_refused', 'a call that the graph refuses ends with update_refused';
    is column($call, 'body'), 'InvalidUpdateError: no such node', 'the result has the error of the graph';
    ok $sv->wait_log(qr/AGT0349: call \Q$call->[1]\E ended in error: .*no such node/), 'the log names the call';
    is thread_status($call), 'idle', 'a thread is idle after a refused call';
    is result_of(call({ do => 'nothing' })), 'call_failed', 'an end without a checkpoint is a failure';
};

subtest 'the outcome does not depend on the name that a runner gives its error' => sub {
    my $call = call({ do => 'pretend' });
    is result_of($call), 'update_refused', 'an error of the runner is a refusal, whatever its name';
    is column($call, 'body'), 'worker_lost: m', 'the result has the error as the runner named it';
    is_deeply messages_of($call), [], 'its checkpoint is deleted';
    is result_of(call({ do => 'invalid' })), 'call_failed', 'output that cannot be stored is not a refusal of the graph';
};

subtest 'a call that ends as interrupted has succeeded if it was saved' => sub {
    my $call = call({ do => 'saved_interrupted' });
    is result_of($call), 'ok', 'a call that ends as interrupted has succeeded if it was saved';
    is_deeply messages_of($call), ['saved'], 'the state has what it saved';
    is result_of(call({ do => 'interrupted' })), 'call_failed', 'one that was not saved has failed';
};

subtest 'an answer of many checkpoints or of 8 MB is one state' => sub {
    is_deeply [ map { my $call = call({ do => 'many' }); result_of($call), messages_of($call)->[-1] } 1 ], [ 'ok', 200 ],
        'a call of 200 checkpoints has the state of the last one';
    my $call = call({ do => 'large' });
    is result_of($call), 'ok', 'a call whose state has 8 MB succeeds';
    is length messages_of($call)->[0], 8_200_000, 'the state of 8 MB is stored whole';
    $call = call({ do => 'long_error' });
    is result_of($call), 'update_refused', 'a call with a long error is refused';
    cmp_ok sql("select octet_length(body) from agent.calls where call_id = '$call->[1]'"), '<', 2200, 'the text of an error is cut';
};

subtest 'a call that changes nothing is answered with its value' => sub {
    my $call = ask(describe => { do => 'value' });
    is result_of($call), 'ok', 'a call of no thread is answered';
    is_deeply decode_json(column($call, 'body')),
        { got => { what => 'graph' }, config => { configurable => { do => 'value' } }, context => {} },
        'its result is the value, and the runner has its arguments, config and context';
    my $thread = call({ do => 'save' });
    result_of($thread);
    my $busy = call({ do => 'silent' }, thread => $thread->[0]);
    is result_of(ask(describe => { do => 'value' }, $thread->[0])), 'ok', 'a describe does not wait for what executes on a thread';
    is thread_status($thread), 'busy', 'a describe leaves the status of a thread';
    end_call($busy);
    is_deeply messages_of($thread), ['saved'], 'a describe changes no state';
    is result_of(ask(describe => { do => 'null' })), 'call_failed', 'a describe whose value is null has failed';
    is result_of(ask(describe => { do => 'nothing' })), 'call_failed', 'a describe without a value has failed';
    $call = ask(describe => { do => 'refuse' });
    is result_of($call), 'call_refused', 'an error of the graph is a refusal';
    is column($call, 'body'), 'InvalidUpdateError: no such node', 'the refusal has the error of the graph';
    $call = ask(describe => { do => 'large_value' });
    is result_of($call), 'ok', 'a value of 8 MB is answered';
    is sql("select octet_length(body) from agent.calls where call_id = '$call->[1]'"), 8_200_002, 'the value of 8 MB is whole';
};

subtest 'of supersteps all are saved or none' => sub {
    my $thread = call({ do => 'save' });
    result_of($thread);
    my $steps = sub {
        my ($do) = @_;
        my $call = call({ do => 'silent' }, thread => $thread->[0], seconds => 600,
            arguments => { supersteps => [ [ { values => { do => $do } } ], [ { values => {} } ] ] });
        return $call;
    };
    is result_of($steps->('many')), 'ok', 'supersteps that are saved succeed';
    is messages_of($thread)->[-1], 200, 'the state is that of the last superstep';
    my $call = $steps->('half');
    wait_for('its checkpoint', sub { messages_of($thread)->[-1] eq 'half' });
    is end_call($call), 'call_timeout', 'supersteps whose time is over have failed';
    is messages_of($thread)->[-1], 200, 'supersteps whose time is over are undone';
    $call = $steps->('saved_exit');
    wait_for('its checkpoint', sub { messages_of($thread)->[-1] eq 'saved' });
    kill KILL => $sv->runner_pids;
    is result_of($call), 'call_failed', 'supersteps that lose their runner have failed';
    is messages_of($thread)->[-1], 200, 'supersteps that lose their runner are undone';
};

for my $case ([ value => 'update_value' => 'with a value' ], [ checkpoint => 'output' => 'output of a call that changes nothing' ],
    [ record => 'record' => 'output of a call that changes nothing' ]) {
    my ($what, $action, $message) = @{$case};
    subtest "a runner that sends a $what where it may not is replaced, the call is executed again" => sub {
        my $values = { do => $action, once => 1 };
        my $call = $action eq 'update_value' ? call($values) : ask(describe => $values);
        is result_of($call), 'ok', "$what: the call succeeds at last";
        ok $sv->wait_log(qr/AGT0332: .*$message/), "$what: the reason is logged";
    };
}

for my $case ([ event => 'an event of a call' ], [ other => 'a run that it does not execute' ],
    [ epoch => 'a run that it does not execute' ]) {
    my ($action, $message) = @{$case};
    subtest "a runner that breaks the protocol ($action) is replaced, the call is executed again" => sub {
        my $call = call({ do => $action, once => 1 });
        is result_of($call), 'ok', "$action: the call succeeds at last";
        is attempts($call), 2, "$action: the call is executed twice";
        ok $sv->wait_log(qr/AGT0332: .*$message/), 'the reason is logged';
        is sql("select count(*) from agent.run_events where run_id = '$call->[1]'"), 0, 'the event is not stored';
    };
}

subtest 'a runner that answers twice is replaced, the first answer counts' => sub {
    my $before = length $sv->log_text;
    my $call = call({ do => 'twice' });
    is result_of($call), 'ok', 'a call that was answered twice has succeeded';
    wait_for('the breach', sub { substr($sv->log_text, $before) =~ /AGT0332: .*a run that it does not execute/ });
    is_deeply messages_of($call), ['once'], 'the second answer changes no state';
};

subtest 'a call whose runner is lost is executed again' => sub {
    my $call = call({ do => 'exit', once => 1 });
    is result_of($call), 'ok', 'a call whose runner exited succeeds at last';
    is attempts($call), 2, 'a call whose runner exited is executed twice';
};

subtest 'a call that always loses its runner fails, and the thread is as before' => sub {
    my $call = call({ do => 'exit' });
    is result_of($call), 'call_failed', 'a call that always loses its runner fails';
    is attempts($call), 3, 'a call that always loses its runner is executed three times';
    is thread_status($call), 'idle', 'a thread is idle after a call that lost its runners';
};

subtest 'a call that was saved before its runner was lost is not executed again' => sub {
    my $call = call({ do => 'saved_exit' });
    wait_for('its checkpoint', sub { @{ messages_of($call) } });
    kill KILL => $sv->runner_pids;
    is result_of($call), 'ok', 'a saved call whose runner is lost has succeeded';
    is attempts($call), 1, 'a saved call whose runner is lost is executed once';
};

subtest 'a call whose time is over ends, and its runner is told' => sub {
    my $call = call({ do => 'silent' });
    wait_for('the runner to have it', sub { attempts($call) });
    is end_call($call), 'call_timeout', 'a silent call ends when its time is over';
    is thread_status($call), 'idle', 'a thread is idle after a silent call';
    ok $sv->wait_log(qr/AGT0343: the lease of run $call->[1] .*is lost/), 'the runner of a silent call is told';
    my $next = call({ do => 'save' }, thread => $call->[0]);
    is result_of($next), 'ok', 'the thread serves the next call';
};

subtest 'a runner that ignores the cancel of a call is replaced' => sub {
    my $call = call({ do => 'stuck' });
    wait_for('the runner to have it', sub { attempts($call) });
    is end_call($call), 'call_timeout', 'a call that is stuck ends when its time is over';
    ok $sv->wait_log(qr/AGT0342: .*did not end run $call->[1]/), 'the runner that ignores the cancel is reported';
    is result_of(call({ do => 'save' })), 'ok', 'others are served';
};

subtest 'a call that was saved and never ends has succeeded when its time is over' => sub {
    my $call = call({ do => 'half' });
    wait_for('its checkpoint', sub { @{ messages_of($call) } });
    is end_call($call), 'ok', 'a call that saved its state has succeeded when its time is over';
    is_deeply messages_of($call), ['half'], 'the state that the call saved is kept';
};

subtest 'silent calls take the slots of their own pool only until their time is over' => sub {
    my @silent = map { call({ do => 'silent' }) } 1 .. 2;
    wait_for('the runner to have them', sub { attempts($_) }) for @silent;
    my $waiting = call({ do => 'save' });
    is end_call($_), 'call_timeout', 'a silent call of a full pool ends when its time is over' for @silent;
    is result_of($waiting), 'ok', 'a waiting call gets the slot of a silent one';
};

subtest 'the deletion of the thread of a call frees its slot' => sub {
    my $call = call({ do => 'silent' });
    wait_for('the runner to have it', sub { attempts($call) });
    is sql("select code from agent.delete_thread('$DEPLOYMENT', '$call->[0]')"), 'ok', 'a thread with a silent call is deleted';
    $sv->wake('C');
    ok $sv->wait_log(qr/AGT0343: the lease of run $call->[1]/), 'the runner is told that the call is gone';
};

subtest 'a call whose checkpoint is deleted before it begins fails, and the state is as before' => sub {
    my $first = call({ do => 'save' });
    result_of($first);
    my $named = sql("select head_checkpoint_id from agent.threads where thread_id = '$first->[0]'");
    my $call = uuid();
    my $request = literal(encode_json({ values => { do => 'save' }, as_node => 'agent', checkpoint_id => $named }));
    # As a deletion of the run that saved it, before the call can begin.
    my ($code) = sql("begin; select code from agent.update_state('$DEPLOYMENT', '$first->[0]', '$call', 'u1', 600, $request); "
        . "delete from agent.checkpoints where thread_id = '$first->[0]' and checkpoint_id = '$named'; commit");
    is $code, 'ok', 'the call is recorded';
    $sv->wake;
    isnt result_of([ $first->[0], $call ]), 'ok', 'it fails';
    is sql("select count(*) from agent.checkpoints where run_id = '$call'"), 0, 'it saves nothing';
};

subtest 'a call that no request ends is swept' => sub {
    my $call = call({ do => 'silent' });
    wait_for('the runner to have it', sub { attempts($call) });
    sql("update agent.calls set deadline_at = now() - interval '1 min' where call_id = '$call->[1]'");
    is result_of($call), 'call_timeout', 'a call whose deadline has passed is ended without a request';
    is thread_status($call), 'idle', 'a thread is idle after a call that was swept';
};

subtest 'a call of a supervisor that was killed is executed by the next one' => sub {
    my $call = call({ do => 'silent', once => 1 });
    wait_for('the runner to have it', sub { attempts($call) });
    $sv->signal('KILL');
    $sv->wait_exit;
    $sv = start_supervisor();
    is result_of($call), 'ok', 'a call of a killed supervisor succeeds with the next one';
    is thread_status($call), 'idle', 'a thread is idle after the call of a killed supervisor';
};

subtest 'a drain hands a call over' => sub {
    my $call = call({ do => 'silent', once => 1 });
    wait_for('the runner to have it', sub { attempts($call) });
    is $sv->stop, 0, 'a supervisor that drains a call exits with status 0';
    is column($call, 'finished_at is null'), 't', 'it goes on';
    $sv = start_supervisor();
    is result_of($call), 'ok', 'a drained call succeeds with the next supervisor';
};

is sql('select count(*) from agent.run_queue'), 0, 'no queue row is left';
done_testing;
