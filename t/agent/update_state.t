# SPDX-License-Identifier: Apache-2.0
# POST /threads/{thread_id}/state: updates of the state, what is refused, and
# requests whose graph does not answer in time.
use strict;
use warnings;
use AgentTest::Client qw(read_to_end);
use AgentTest::Database;
use AgentTest::Gate;
use AgentTest::Process;
use AgentTest::Server;
use AgentTest::Wait;
use Cpanel::JSON::XS;
use Test::More;

my $gate = AgentTest::Gate->new;
my $server = AgentTest::Server->new(config => AgentTest::Server::shared_config() . $gate->graph
        . "AgentRunnerSlots 2\nAgentCallTimeout 60s\nAgentDrainTimeout 0\n");
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

sub path { return "/threads/$_[0]/state" }
sub update { my ($thread, %body) = @_; return $client->post(path($thread), \%body) }
sub messages { my ($text) = @_; return { messages => [ { role => 'user', content => $text } ] } }
sub contents { return [ map { $_->{content} } @{ $client->get_state($_[0])->{values}{messages} } ] }
sub thread_status { return $client->get("/threads/$_[0]")->{json}{status} }

# A thread after one run.
sub chat {
    my $run = $client->create_run($client->new_thread, $_[0] // 'Hello');
    $client->join_run($run);
    return $run->{thread_id};
}

subtest 'state: an update appends messages and returns the new checkpoint' => sub {
    my $thread = chat();
    my $before = $client->get_state($thread);
    my $answer = $client->post(path($thread), { values => messages('More') }, { 'x-user-id' => 'ann' });
    is $answer->{status}, 200, 'an update is answered 200';
    my $state = $client->get_state($thread);
    is_deeply $answer->{json}{checkpoint}, { thread_id => $thread, checkpoint_ns => '',
        checkpoint_id => $state->{checkpoint_id}, checkpoint_map => undef }, 'checkpoint is that of the new state';
    is_deeply $answer->{json}{configurable}, { thread_id => $thread, checkpoint_ns => '', checkpoint_id => $state->{checkpoint_id} },
        'configurable is that of the new state';
    is $state->{parent_checkpoint_id}, $before->{checkpoint_id}, 'the parent is the state before';
    is_deeply contents($thread), [ (map { $_->{content} } @{ $before->{values}{messages} }), 'More' ],
        'the new messages follow those before';
    is_deeply [ @{ $state->{metadata} }{qw(source step graph_id thread_id user_id)} ],
        [ 'update', $before->{metadata}{step} + 1, 'agent', $thread, 'ann' ], 'metadata';
    is_deeply $state->{next}, [], 'as the agent, which wrote last, nothing is next';
    is thread_status($thread), 'idle', 'the thread is idle after an update as the last node';
    is scalar @{ $client->get("/threads/$thread/runs")->{json} }, 1, 'an update is not a run';
};

subtest 'state: an update with as_node makes a node next, and a run continues there' => sub {
    my $thread = chat();
    is update($thread, values => messages('Again'), as_node => '__start__')->{status}, 200,
        'an update as __start__ is answered 200';
    is_deeply $client->get_state($thread)->{next}, ['agent'], 'the node after as_node is next';
    is thread_status($thread), 'interrupted', 'the thread is interrupted when a node is next';
    $client->join_run($client->create_run($thread, undef));
    is $client->get_state($thread)->{values}{messages}[-2]{content}, 'Again', 'the agent answers it';
    is $client->get_state($thread)->{values}{messages}[-1]{type}, 'ai', "the agent's answer is the last message";
};

subtest 'state: an update replaces a message by its id, and null values copy the state' => sub {
    my $thread = chat();
    my $message = $client->get_state($thread)->{values}{messages}[0];
    is update($thread, values => { messages => [ { %{$message}, content => 'edited' } ] })->{status}, 200,
        'the update of a message is answered 200';
    is contents($thread)->[0], 'edited', 'the message with the id is replaced';
    my $before = $client->get_state($thread);
    is update($thread, values => undef)->{status}, 200, 'an update with null values is answered 200';
    my $after = $client->get_state($thread);
    is_deeply $after->{values}, $before->{values}, 'null values leave the values as they were';
    is $after->{parent_checkpoint_id}, $before->{checkpoint_id}, 'null values make a new checkpoint';
};

subtest 'state: an update continues the checkpoint that it names' => sub {
    my $thread = chat('First');
    my $old = $client->get_state($thread)->{checkpoint};
    $client->join_run($client->create_run($thread, 'Second'));
    for my $name ([ checkpoint_id => $old->{checkpoint_id} ], [ checkpoint => $old ],
        [ checkpoint => { checkpoint_id => $old->{checkpoint_id} } ]) {
        is update($thread, values => messages('Fork'), @{$name})->{status}, 200, $name->[0];
        my $state = $client->get_state($thread);
        is $state->{parent_checkpoint_id}, $old->{checkpoint_id}, "the new state continues the named checkpoint ($name->[0])";
        is_deeply [ map { $_->{content} } grep { $_->{type} eq 'human' } @{ $state->{values}{messages} } ], [ 'First', 'Fork' ],
            "the new state has no messages of later checkpoints ($name->[0])";
    }
};

subtest 'state: a thread that was created for a graph can be updated before its first run' => sub {
    my $thread = $client->create_thread(metadata => { graph_id => 'agent' })->{thread_id};
    is update($thread, values => messages('First'))->{status}, 200, 'a thread without a run is updated';
    is_deeply contents($thread), ['First'], 'the first state has the messages of the update';
    is_deeply $client->get_state($thread)->{next}, ['agent'], 'the agent is next after the first update';
};

subtest 'state: updates that are refused change nothing' => sub {
    my $thread = chat();
    my $before = $client->get_state($thread);
    my $other = chat();
    my $missing = '01990000-0000-7000-8000-000000000000';
    my $check = sub {
        my ($title, $answer, $status, $code, $detail) = @_;
        is $answer->{status}, $status, "$title: $status";
        is $answer->{json}{code}, $code, "$title: $code";
        like $answer->{json}{detail}, $detail, $title if $detail;
    };
    $check->('an unknown thread', update($missing, values => {}), 404, 'thread_not_found');
    my $new = $client->new_thread;
    $check->('a thread without a graph', update($new, values => {}), 400, 'no_graph',
        qr/\AThread $new has no graph ID: create a run first, or set graph_id in its metadata\.\z/);
    $check->('a graph that nobody executes', update($client->create_thread(metadata => { graph_id => 'x' })->{thread_id}, values => {}),
        404, 'graph_not_found');
    $check->('an unknown node', update($thread, values => {}, as_node => 'nope'), 422, 'update_refused',
        qr/\AInvalidUpdateError: as_node: .*"nope"/);
    $check->('values without a role', update($thread, values => { messages => [ {} ] }), 422, 'update_refused');
    $check->('values that are a text', update($thread, values => 'x'), 422, 'invalid_value', qr{\A/values: expected an object or an array});
    $check->('a node that is not a text', update($thread, as_node => 1), 422, 'invalid_value', qr{\A/as_node: });
    $check->('a checkpoint that is not an id', update($thread, checkpoint_id => 'x'), 422, 'invalid_value');
    $check->('an unknown checkpoint', update($thread, checkpoint_id => $missing), 404, 'checkpoint_not_found');
    $check->('two checkpoints', update($thread, checkpoint_id => $missing, checkpoint => $before->{checkpoint}), 422, 'invalid_value');
    $check->('a checkpoint of another thread', update($thread, checkpoint => $client->get_state($other)->{checkpoint}), 422, 'invalid_value');
    $check->('a namespace that the thread does not have', update($thread, checkpoint => { checkpoint_ns => 'x' }), 404, 'checkpoint_not_found');
    is_deeply $client->get_state($thread), $before, 'the state is as before';
    is thread_status($thread), 'idle', 'the thread is idle after refused updates';
};

subtest 'state: a busy thread cannot be updated' => sub {
    my $run = $client->create_run($client->new_thread, 'use gate {}', assistant_id => 'gated');
    $gate->wait_calls(1);
    my $answer = update($run->{thread_id}, values => {});
    is_deeply [ $answer->{status}, $answer->{json}{detail}, $answer->{json}{code} ], [ 409, 'Thread is busy', 'thread_busy' ],
        'an update of a busy thread is 409 thread_busy';
    $gate->open;
    $client->join_run($run);
    is update($run->{thread_id}, values => messages('Now'))->{status}, 200, 'an update after the end of the run is answered 200';
};

subtest 'state: updates of many threads at once are all answered' => sub {
    my @threads = map { $client->create_thread(metadata => { graph_id => 'agent' })->{thread_id} } 1 .. 40;
    my @sockets = map { $client->begin('POST', path($_), { values => messages("for $_") }) } @threads;
    is scalar(grep { $client->finish($_)->{status} == 200 } @sockets), 40, 'each of 40 concurrent updates is answered 200';
    is_deeply [ map { contents($_)->[0] } @threads ], [ map { "for $_" } @threads ], 'each of 40 threads has its own update';
};

subtest 'state: of concurrent updates of one thread each is applied or refused' => sub {
    my $thread = $client->create_thread(metadata => { graph_id => 'agent' })->{thread_id};
    my @sockets = map { $client->begin('POST', path($thread), { values => messages("no $_") }) } 1 .. 20;
    my %count;
    $count{ $client->finish($_)->{status} }++ for @sockets;
    is $count{200} + ($count{409} // 0), 20, 'concurrent updates are answered 200 or 409';
    is scalar @{ contents($thread) }, $count{200}, 'concurrent updates: all that were answered 200 are in the state';
};

subtest 'state: a client that disconnects leaves the thread usable' => sub {
    my ($runner) = runner_pids($server->httpd_pid);
    my $thread = chat();
    kill STOP => $runner;
    my $socket = $client->begin('POST', path($thread), { values => messages('unread') });
    wait_for('the call', sub { thread_status($thread) eq 'busy' });
    close $socket;
    kill CONT => $runner;
    wait_for('its end', sub { thread_status($thread) eq 'idle' });
    is contents($thread)->[-1], 'unread', 'the update was applied';
};

subtest 'state: the deletion of its thread ends an update' => sub {
    my ($runner) = runner_pids($server->httpd_pid);
    my $thread = chat();
    kill STOP => $runner;
    my $socket = $client->begin('POST', path($thread), { values => {} });
    wait_for('the call', sub { thread_status($thread) eq 'busy' });
    is $client->delete("/threads/$thread")->{status}, 204, 'a thread with an update that executes is deleted';
    is $client->finish($socket)->{json}{code}, 'thread_not_found', 'the update of a deleted thread is answered thread_not_found';
    kill CONT => $runner;
};

subtest 'state: a run that is created during an update continues the new state' => sub {
    my ($runner) = runner_pids($server->httpd_pid);
    my $thread = chat();
    kill STOP => $runner;
    my $socket = $client->begin('POST', path($thread), { values => messages('Updated') });
    wait_for('the call', sub { thread_status($thread) eq 'busy' });
    is $client->post("/threads/$thread/runs", AgentTest::Client::run_body('x', multitask_strategy => 'reject'))->{status}, 409,
        'with reject it is refused';
    my $run = $client->create_run($thread, 'Then', multitask_strategy => 'interrupt');
    kill CONT => $runner;
    is $client->finish($socket)->{status}, 200, 'with interrupt it does not end the update';
    is_deeply [ grep { /Updated|Then/ } map { $_->{content} } grep { $_->{type} eq 'human' } @{ $client->join_run($run)->{messages} } ],
        [ 'Updated', 'Then' ], 'the run continues the state of the update';
};

subtest 'state: an update whose runner is killed is applied once, by the next one' => sub {
    my ($runner) = runner_pids($server->httpd_pid);
    my $thread = chat();
    kill STOP => $runner;
    my $socket = $client->begin('POST', path($thread), { values => messages('Once') });
    wait_for('the call to be claimed', sub { poll("select count(*) from agent.run_queue where thread_id = '$thread' and state = 'leased'") });
    kill KILL => $runner;
    is $client->finish($socket)->{status}, 200, 'an update whose runner is killed is answered 200';
    is scalar(grep { $_ eq 'Once' } @{ contents($thread) }), 1, 'the update is applied once';
};

subtest 'state: a server that stops ends an update, which changes nothing' => sub {
    my ($runner) = runner_pids($server->httpd_pid);
    my $thread = chat();
    kill STOP => $runner;
    my $socket = $client->begin('POST', path($thread), { values => messages('lost') });
    wait_for('the call', sub { thread_status($thread) eq 'busy' });
    $server->graceful;
    my $answer = $client->finish($socket);
    is_deeply [ $answer->{status}, $answer->{json}{code} ], [ 503, 'shutting_down' ],
        'an update of a server that stops is 503 shutting_down';
    is thread_status($thread), 'idle', 'the thread is idle after the server has stopped';
    isnt contents($thread)->[-1], 'lost', 'the update of a server that stops is not applied';
    wait_for('the new runner', sub { update($thread, values => messages('next'))->{status} == 200 });
};

# ---- time, with threads that wait ----

$server->stop;
$server = AgentTest::Server->new(config => AgentTest::Server::shared_config() . $gate->graph
        . "AgentRunnerSlots 1\nAgentCallTimeout 60s\nAgentMaxWaitersPerAddress 0\nAgentParking Off\n"
        . qq(<Location "/">\nAgentCallTimeout 1\n</Location>\n));
$server->start;
$client = AgentTest::Client->new(url => $server->url);

subtest 'state: without a free runner an update ends with 503 after AgentCallTimeout' => sub {
    my $thread = chat();
    my $run = $client->create_run($client->new_thread, 'use gate {}', assistant_id => 'gated');
    $gate->wait_calls(1);
    my $answer = update($thread, values => messages('late'));
    is_deeply [ $answer->{status}, $answer->{json} ], [ 503, { code => 'no_runner',
        detail => 'No runner was free to answer within 1 s; nothing was changed.' } ],
        'an update without a free runner is 503 no_runner';
    like $server->error_log, qr/AGT0102: POST \S+: no_runner: No runner was free to answer within 1 s; nothing was changed\.$/m,
        'the error log has its code once, and the detail';
    is thread_status($thread), 'idle', 'the thread is idle after no runner was free';
    $gate->open;
    $client->join_run($run);
    isnt contents($thread)->[-1], 'late', 'an update without a free runner is not applied later';
    is update($thread, values => messages('in time'))->{status}, 200, 'the next update is answered 200';
};

subtest 'state: a graph that does not answer is 504 after AgentCallTimeout' => sub {
    my $thread = chat();
    my ($runner) = runner_pids($server->httpd_pid);
    kill STOP => $runner;
    my $answer = update($thread, values => messages('late'));
    is_deeply [ $answer->{status}, $answer->{json} ], [ 504, { code => 'call_timeout',
        detail => 'The graph did not answer within 1 s; nothing was changed.' } ],
        'an update that the graph does not answer is 504 call_timeout';
    is thread_status($thread), 'idle', 'the thread is idle after the time is over';
    kill CONT => $runner;
    wait_for('the runner to serve the next one', sub { update($thread, values => messages('in time'))->{status} == 200 });
    is_deeply [ grep { /time|late/ } @{ contents($thread) } ], ['in time'], 'an update whose result comes too late is not stored';
};

subtest 'state: without a supervisor an update ends too' => sub {
    my $thread = chat();
    kill STOP => my $supervisor = supervisor_pid($server->httpd_pid);
    my $answer = update($thread, values => messages('late'));
    is $answer->{status}, 503, 'an update without a supervisor is answered 503';
    is $answer->{json}{code}, 'no_runner', 'an update without a supervisor ends with no_runner';
    kill CONT => $supervisor;
    is thread_status($thread), 'idle', 'the thread is idle without a supervisor';
};

is sql("select count(*) from agent.run_queue where op is not null"), 0, 'state: no call is left';
done_testing;
