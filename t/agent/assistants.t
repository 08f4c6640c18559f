# SPDX-License-Identifier: Apache-2.0
# /assistants: system assistants, and the schemas and drawings that runners report.
use strict;
use warnings;
use AgentTest::Client qw(run_path);
use AgentTest::Postgres;
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

my $AGENT = 'fe096781-5601-53d2-b2f6-0d3403f7e9ca';
my $client = AgentTest::Client->new;

sub search { return $client->post('/assistants/search', {@_}) }

wait_for('the runners to report', sub { $client->get("/assistants/$AGENT")->{status} == 200 });

subtest 'get assistant: the system assistant of a graph exists without a run' => sub {
    my $got = $client->get("/assistants/$AGENT");
    my %record = %{ $got->{json} };
    like delete $record{$_}, qr/^\d{4}-\d\d-\d\dT[\d:.]+\+00:00$/, "get assistant: $_ is a time" for qw(created_at updated_at);
    is_deeply \%record, { assistant_id => $AGENT, graph_id => 'agent', name => 'agent', description => undef,
        version => 1, config => {}, context => {}, metadata => { created_by => 'system' } },
        'get assistant: the record of a system assistant';
    is_deeply $client->get('/assistants/agent')->{json}, $got->{json}, 'get assistant: the name of a graph stands for its system assistant';
    is_deeply $client->get('/assistants/' . uc $AGENT)->{json}, $got->{json}, 'get assistant: ids are accepted in upper case';
};

subtest 'get assistant: an unknown assistant is 404' => sub {
    for my $path (map { my $id = $_; map { "/assistants/$id$_" } '', qw(/graph /schemas /subgraphs) }
        '01890000-0000-7000-8000-000000000000', 'nobody', '%22%20') {
        my $none = $client->get($path);
        is $none->{status}, 404, "get assistant: GET $path is 404";
        is $none->{json}{code}, 'assistant_not_found', "get assistant: the code of GET $path is assistant_not_found";
    }
};

subtest 'schemas: those that the runner reported' => sub {
    my $schemas = $client->get("/assistants/$AGENT/schemas")->{json};
    is $schemas->{graph_id}, 'agent', 'schemas: graph_id is the name of the graph';
    is $schemas->{input_schema}{properties}{messages}{type}, 'array', 'schemas: the input has messages';
    is_deeply [ sort keys %$schemas ],
        [qw(config_schema context_schema graph_id input_schema output_schema state_schema)], 'schemas: all members are there';
};

subtest 'graph: the drawing that the runner reported' => sub {
    my $graph = $client->get('/assistants/agent/graph')->{json};
    is_deeply [ map { $_->{id} } @{ $graph->{nodes} } ], [qw(__start__ agent tools __end__)], 'graph: all nodes are there';
    is_deeply $graph->{edges}[0], { source => '__start__', target => 'agent', conditional => Cpanel::JSON::XS::false },
        'graph: an edge has source, target and conditional';
    is $client->get("/assistants/$AGENT/graph?xray=$_")->{status}, 200, "graph: xray may be $_" for qw(true false 2);
    is $client->get("/assistants/$AGENT/graph?xray=deep")->{status}, 422, 'graph: another xray is 422';
};

subtest 'subgraphs: a built-in graph has none' => sub {
    is_deeply $client->get("/assistants/$AGENT/subgraphs$_")->{json}, {}, "subgraphs: GET .../subgraphs$_ is empty"
        for '', '?recurse=true', '/a%7Cb';
    is $client->get("/assistants/$AGENT/subgraphs?recurse=deep")->{status}, 422, 'subgraphs: recurse is a flag';
};

subtest 'search assistants: one for each graph' => sub {
    my $found = search(metadata => { created_by => 'system' }, sort_by => 'name', sort_order => 'asc', limit => 1000);
    is $found->{status}, 200, 'search assistants: the status is 200';
    is scalar(grep { $_->{name} eq 'agent' } @{ $found->{json} }), 1, 'search assistants: the graph agent has one assistant';
    is_deeply search(graph_id => 'agent')->{json}, [ $client->get('/assistants/agent')->{json} ],
        'search assistants: graph_id selects the assistants of a graph';
    is_deeply search(name => 'AGEN', graph_id => 'agent', select => [qw(name version)])->{json}, [ { name => 'agent', version => 1 } ],
        'search assistants: name is a part of the name, select names the members';
    is_deeply search(graph_id => 'none')->{json}, [], 'search assistants: none is an empty list';
};

subtest 'search assistants: pages' => sub {
    my $page = search(limit => 1, graph_id => 'agent');
    is $page->{headers}{'x-pagination-next'}, undef, 'search assistants: the last page has no X-Pagination-Next';
    is_deeply search(offset => 1, graph_id => 'agent')->{json}, [], 'search assistants: offset skips records';
};

subtest 'search assistants: wrong members are 422' => sub {
    for my $case ([ limit => 0 ], [ limit => 1001 ], [ offset => -1 ], [ sort_by => 'x' ], [ sort_order => 'up' ],
        [ select => ['x'] ], [ graph_id => 7 ], [ metadata => [] ], [ limit => 1.5 ]) {
        my $refused = search(@$case);
        is $refused->{status}, 422, "search assistants: a wrong $case->[0] is 422";
        like $refused->{json}{detail}, qr{^/$case->[0]}, "search assistants: the detail points at $case->[0]";
    }
};

subtest 'removed graph: its assistant and threads stay readable, new runs are refused' => sub {
    my ($before, $to) = AgentTest::Server->start_with_client("<AgentGraph gone>\nAgentModel demo\n</AgentGraph>");
    my $run = $to->create_run($to->new_thread, 'hello', assistant_id => 'gone');
    is $to->get(run_path($run) . '/join')->{status}, 200, 'removed graph: a run is executed while it is configured';
    wait_for('the runner to report', sub { $to->get('/assistants/gone/graph')->{json}{nodes}[0] });
    $before->stop;
    my $after = AgentTest::Server->new(database => AgentTest::Postgres->shared->conninfo('agent', $ENV{PGDATABASE}));
    $after->start;
    $to = AgentTest::Client->new(url => $after->url);
    # Its supervisor has registered when it has executed a run.
    $to->get(run_path($to->start_run('hello')) . '/join');
    is $to->get("/assistants/gone$_")->{status}, 200, "removed graph: GET /assistants/gone$_ is 200" for '', qw(/graph /schemas);
    is scalar @{ $to->get_state($run->{thread_id})->{values}{messages} }, 2, 'removed graph: the state of its thread is readable';
    for my $id ('gone', $run->{assistant_id}) {
        my $refused = $to->post("/threads/$run->{thread_id}/runs", { assistant_id => $id, input => {} });
        is $refused->{status}, 404, "removed graph: a run of $id is refused";
        like $refused->{json}{detail}, qr/^No assistant found for "$id"/, "removed graph: the detail names $id";
    }
    undef $after;
    undef $before;
};

done_testing;
