# SPDX-License-Identifier: Apache-2.0
# GET /assistants/{assistant_id}/schemas, /graph and /subgraphs of a graph that a
# runner did not report in full: its code is asked. The runner is a script that
# answers as the assistant's config says.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Database;
use AgentTest::Env qw(root);
use AgentTest::Process qw(httpd_children);
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

my ($server, $client) = AgentTest::Server->start_with_client('AgentRunner "' . root() . '/t/supervisor/call_runner.pl"',
    'AgentCallTimeout 60s', 'AgentDrainTimeout 0');
wait_for('the runner to report', sub { poll("select count(*) from agent.graphs where graph_id = 'agent'") });

# The id of an assistant whose runner does that.
sub assistant {
    my ($do, %with) = @_;
    return $client->post('/assistants', { graph_id => 'agent', config => { configurable => { do => $do } }, %with })->{json}{assistant_id};
}

my $id = assistant('value', context => { c => 1 }, metadata => { m => 1 });

subtest 'descriptions: the graph receives the arguments of the request' => sub {
    my %false = map { $_ => Cpanel::JSON::XS::false } qw(xray recurse);
    for my $case (
        [ 'graph?xray=true', { what => 'graph', xray => Cpanel::JSON::XS::true } ],
        [ 'graph?xray=3', { what => 'graph', xray => 3 } ],
        [ 'subgraphs', { what => 'subgraphs', namespace => undef, recurse => $false{recurse} } ],
        [ 'subgraphs?recurse=true', { what => 'subgraphs', namespace => undef, recurse => Cpanel::JSON::XS::true } ],
        [ 'subgraphs/a%7Cb%22', { what => 'subgraphs', namespace => 'a|b"', recurse => $false{recurse} } ]) {
        my ($path, $arguments) = @{$case};
        my $answer = $client->get("/assistants/$id/$path");
        is $answer->{status}, 200, "descriptions: GET $path is answered";
        is_deeply $answer->{json}{got}, $arguments, "descriptions: the arguments of GET $path";
        is_deeply [ @{ $answer->{json} }{qw(context)}, @{ $answer->{json}{config} }{qw(metadata)} ],
            [ { c => 1 }, { m => 1 } ], "descriptions: the runner has the assistant's context and metadata for GET $path";
    }
    is $client->get("/assistants/$id/subgraphs/%FF")->{status}, 400, 'descriptions: a namespace that is not UTF-8 is 400';
};

subtest 'descriptions: the same request is answered without the runner for a minute' => sub {
    my $count = sub { return sql("select count(*) from agent.calls where op = 'describe'") };
    my $before = $count->();
    is $client->get("/assistants/$id/graph?xray=true")->{status}, 200, 'descriptions: a request that was answered before' for 1 .. 3;
    is $count->(), $before, 'descriptions: a request that was answered before is not a call';
    $client->request('PATCH', "/assistants/$id", {});
    $client->get("/assistants/$id/graph?xray=true");
    is $count->(), $before + 1, 'descriptions: a new version of the assistant is asked again';
};

subtest 'descriptions: what was reported needs no call' => sub {
    my $before = sql('select count(*) from agent.calls');
    is $client->get("/assistants/$id/$_")->{status}, 200, "descriptions: GET $_" for qw(schemas graph graph?xray=false graph?xray=0);
    is sql('select count(*) from agent.calls'), $before, 'descriptions: schemas and a plain drawing are not calls';
};

subtest 'descriptions: a graph that fails, and a runner that does not answer' => sub {
    my $answer = $client->get('/assistants/' . assistant('refuse') . '/subgraphs');
    is_deeply [ $answer->{status}, @{ $answer->{json} }{qw(code detail)} ],
        [ 422, 'call_refused', 'InvalidUpdateError: no such node' ], 'descriptions: the error of the graph is 422';
    is $client->get('/assistants/' . assistant('nothing') . '/subgraphs')->{json}{code}, 'call_failed',
        'descriptions: an end without a value is call_failed';
    $answer = $client->get('/assistants/' . assistant('large_value') . '/subgraphs');
    is length $answer->{json}, 8_200_000, 'descriptions: a value of 8 MB is sent whole';
    my $large = assistant('large_value', name => 'twice');
    is length $client->get("/assistants/$large/subgraphs")->{json}, 8_200_000, 'descriptions: a large value is sent when it was asked'
        for 1, 2;
    # They wait for their first turn when the child sees both.
    my ($child) = httpd_children($server->httpd_pid);
    kill STOP => $child;
    my @half_closed = map { $client->begin('GET', "/assistants/$large/subgraphs") } 1 .. 6;
    shutdown $_, 1 for @half_closed;
    kill CONT => $child;
    is_deeply [ map { length($client->finish($_)->{json} // '') } @half_closed ], [ (8_200_000) x 6 ],
        'descriptions: clients that close their sending side before their turn receive one that is there';
    my @sockets = map { $client->begin('GET', '/assistants/' . assistant('silent') . '/subgraphs') } 1, 2;
    wait_for('the runner to have them', sub { poll("select count(*) from agent.run_queue where op = 'describe' and state = 'leased'") == 2 });
    $server->graceful;
    is_deeply [ map { $client->finish($_)->{json}{code} } @sockets ], [ ('shutting_down') x 2 ],
        'descriptions: a server that stops ends them';
};

done_testing;
