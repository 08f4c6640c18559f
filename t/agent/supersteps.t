# SPDX-License-Identifier: Apache-2.0
# POST /threads with supersteps: a thread is created with the state that its graph makes.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Database;
use AgentTest::Process;
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

my ($server, $client) = AgentTest::Server->start_with_client('AgentCallTimeout 60s', 'AgentDrainTimeout 0');
wait_for('the runner to report', sub { $client->get('/assistants/agent/graph')->{json}{nodes}[0] });

sub create { my ($supersteps, %with) = @_; return $client->post('/threads', { metadata => { graph_id => 'agent' }, supersteps => $supersteps, %with }) }
sub message { my ($type, $text) = @_; return { type => $type, content => $text, id => "id of $text" } }
sub step { my ($node, @messages) = @_; return { updates => [ { values => { messages => \@messages }, as_node => $node } ] } }

my @chat = (step(__input__ => message(human => 'Hello')), step(__start__ => message(human => 'Hello')), step(agent => message(ai => 'Hi')));

subtest 'supersteps: they make the states of a new thread' => sub {
    my $answer = create(\@chat);
    is $answer->{status}, 200, 'supersteps: the thread is created';
    my $thread = $answer->{json}{thread_id};
    is_deeply [ map { $_->{content} } @{ $answer->{json}{values}{messages} } ], [qw(Hello Hi)], 'supersteps: the record has the values';
    is $answer->{json}{status}, 'idle', 'supersteps: the thread is idle';
    is_deeply $client->get("/threads/$thread")->{json}, $answer->{json}, 'supersteps: the response is the record of the thread';
    my $history = $client->get("/threads/$thread/history")->{json};
    is_deeply [ map { [ $_->{metadata}{source}, $_->{metadata}{step}, $_->{next} ] } @{$history} ],
        [ [ 'update', 1, [] ], [ 'update', 0, ['agent'] ], [ 'input', -1, ['__start__'] ] ], 'supersteps: each is a state of the history';
    my $run = $client->create_run($thread, 'And now?');
    is_deeply [ map { $_->{content} } @{ $client->join_run($run)->{messages} }[ 0 .. 2 ] ], [qw(Hello Hi), 'And now?'],
        'supersteps: a run continues the state';
};

subtest 'supersteps: a history is replayed on another thread' => sub {
    my $thread = $client->new_thread;
    $client->join_run($client->create_run($thread, 'use clock {}'));
    my @states = reverse @{ $client->get("/threads/$thread/history?limit=100")->{json} };
    # As clients do: the input, then what each node wrote.
    my @steps = ({ updates => [ { values => $states[0]{metadata}{writes}{__start__}, as_node => '__input__' } ] },
        { updates => [ { values => $states[0]{metadata}{writes}{__start__}, as_node => '__start__' } ] },
        map { my $writes = $_->{metadata}{writes}; +{ updates => [ map { +{ values => $writes->{$_}, as_node => $_ } } keys %{$writes} ] } }
            @states[ 2 .. $#states ]);
    my $copy = create(\@steps)->{json}{thread_id};
    my @copied = reverse @{ $client->get("/threads/$copy/history?limit=100")->{json} };
    is_deeply [ map { $_->{next} } @copied ], [ map { $_->{next} } @states ], 'supersteps: the same nodes follow each state';
    is_deeply [ map { [ map { $_->{content} } @{ $_->{values}{messages} } ] } @copied ],
        [ map { [ map { $_->{content} } @{ $_->{values}{messages} } ] } @states ], 'supersteps: each state has the same messages';
};

subtest 'supersteps: all or none' => sub {
    my $id = '01890000-0000-7000-8000-0000000000aa';
    my $answer = create([ @chat, step(nope => message(ai => 'x')) ], thread_id => $id);
    is_deeply [ $answer->{status}, $answer->{json}{code} ], [ 422, 'update_refused' ], 'supersteps: a node that the graph does not have is 422';
    is $client->get("/threads/$id")->{status}, 404, 'supersteps: a thread whose supersteps are refused is not created';
    is create(\@chat, thread_id => $id)->{status}, 200, 'supersteps: its id is free';
    is create(\@chat, thread_id => $id)->{status}, 409, 'supersteps: an id that is taken is 409';
    my $again = create([ step(agent => message(ai => 'y')) ], thread_id => $id, if_exists => 'do_nothing');
    is_deeply $again->{json}, $client->get("/threads/$id")->{json}, 'supersteps: do_nothing returns the thread as it is';
    is create(\@chat, metadata => {})->{json}{code}, 'no_graph', 'supersteps: a thread without a graph is 400';
    is create(\@chat, metadata => { graph_id => 'x' })->{json}{code}, 'graph_not_found', 'supersteps: a graph that nobody executes is 404';
    is create([])->{json}{status}, 'idle', 'supersteps: an empty list makes no state';
};

subtest 'supersteps: wrong requests' => sub {
    for my $case ([ 'x', '' ], [ [1], '/0' ], [ [ {} ], '/0/updates' ], [ [ { updates => [] } ], '/0/updates' ],
        [ [ { updates => [ { values => 1 } ] } ], '/0/updates/0/values' ], [ [ { updates => [ { as_node => '' } ] } ], '/0/updates/0/as_node' ],
        [ [ { updates => [ { command => [] } ] } ], '/0/updates/0/command' ], [ [ ($chat[0]) x 1001 ], '' ]) {
        my $answer = create($case->[0]);
        is $answer->{status}, 422, "supersteps: wrong at $case->[1]: 422";
        like $answer->{json}{detail}, qr{\A/supersteps$case->[1]: }, "supersteps: the pointer $case->[1]";
    }
};

subtest 'supersteps: a thousand are applied in order' => sub {
    my $answer = create([ map { step(agent => message(ai => "number $_")) } 1 .. 1000 ]);
    is $answer->{status}, 200, 'supersteps: a thousand are applied';
    is scalar @{ $answer->{json}{values}{messages} }, 1000, 'supersteps: the state has what a thousand wrote';
};

subtest 'supersteps: a thread whose runner is lost, or whose server stops, is not created' => sub {
    my ($runner) = runner_pids($server->httpd_pid);
    my $id = '01890000-0000-7000-8000-0000000000ab';
    kill STOP => $runner;
    my $socket = $client->begin('POST', '/threads', { thread_id => $id, metadata => { graph_id => 'agent' }, supersteps => \@chat });
    wait_for('the call to be claimed', sub { poll("select count(*) from agent.run_queue where thread_id = '$id' and state = 'leased'") });
    kill KILL => $runner;
    is $client->finish($socket)->{status}, 200, 'supersteps: a call whose runner was lost before it began is executed by the next one';
    ($runner) = runner_pids($server->httpd_pid);
    kill STOP => $runner;
    $id =~ s/ab\z/ac/;
    $socket = $client->begin('POST', '/threads', { thread_id => $id, metadata => { graph_id => 'agent' }, supersteps => \@chat });
    wait_for('the call', sub { poll("select count(*) from agent.run_queue where thread_id = '$id'") });
    $server->graceful;
    is $client->finish($socket)->{json}{code}, 'shutting_down', 'supersteps: a server that stops ends the call';
    is sql("select count(*) from agent.threads where thread_id = '$id'"), 0, 'supersteps: the thread is not created';
};

done_testing;
