# SPDX-License-Identifier: Apache-2.0
# /assistants: system assistants and those of clients, and the schemas and drawings that runners report.
use strict;
use warnings;
use AgentTest::Client qw(run_path);
use AgentTest::Env qw(slurp write_file);
use AgentTest::Postgres;
use AgentTest::Server;
use AgentTest::Wait;
use File::Temp qw(tempdir);
use Test::More;

my $AGENT = 'fe096781-5601-53d2-b2f6-0d3403f7e9ca';
my $client = AgentTest::Client->new;

sub search { return $client->post('/assistants/search', {@_}) }

wait_for('the runners to report', sub { $client->get("/assistants/$AGENT/graph")->{json}{nodes}[0] });

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

subtest 'schemas: the runner\'s report is returned' => sub {
    my $schemas = $client->get("/assistants/$AGENT/schemas")->{json};
    is $schemas->{graph_id}, 'agent', 'schemas: graph_id is the name of the graph';
    is $schemas->{input_schema}{properties}{messages}{type}, 'array', 'schemas: the input has messages';
    is_deeply [ sort keys %$schemas ],
        [qw(config_schema context_schema graph_id input_schema output_schema state_schema)], 'schemas: all members are there';
};

subtest 'graph: the runner\'s drawing is returned' => sub {
    my $graph = $client->get('/assistants/agent/graph')->{json};
    is_deeply [ map { $_->{id} } @{ $graph->{nodes} } ], [qw(__start__ agent tools __end__)], 'graph: all nodes are there';
    is_deeply $graph->{edges}[0], { source => '__start__', target => 'agent', conditional => Cpanel::JSON::XS::false },
        'graph: an edge has source, target and conditional';
    is $client->get("/assistants/$AGENT/graph?xray=$_")->{status}, 200, "graph: xray may be $_" for qw(true false 2);
    my $deep = $client->get("/assistants/$AGENT/graph?xray=deep");
    is "$deep->{status} $deep->{json}{detail}", '422 Query parameter xray: expected true, false or a whole number from 0 to 1000.', 'graph: another xray is 422';
};

subtest 'subgraphs: a built-in graph has none' => sub {
    is_deeply $client->get("/assistants/$AGENT/subgraphs$_")->{json}, {}, "subgraphs: GET .../subgraphs$_ is empty"
        for '', '?recurse=true', '/a%7Cb';
    is $client->get("/assistants/$AGENT/subgraphs?recurse=deep")->{status}, 422, 'subgraphs: recurse is a flag';
};

subtest 'search assistants: each graph has one' => sub {
    my $found = search(metadata => { created_by => 'system' }, sort_by => 'name', sort_order => 'asc', limit => 1000);
    is $found->{status}, 200, 'search assistants: the status is 200';
    is scalar(grep { $_->{name} eq 'agent' } @{ $found->{json} }), 1, 'search assistants: the graph agent has one assistant';
    is_deeply search(graph_id => 'agent')->{json}, [ $client->get('/assistants/agent')->{json} ],
        'search assistants: graph_id selects the assistants of a graph';
    is_deeply search(name => 'AGEN', graph_id => 'agent', select => [qw(name version)])->{json}, [ { name => 'agent', version => 1 } ],
        'search assistants: name is a part of the name, select names the members';
    is_deeply search(graph_id => 'none')->{json}, [], 'search assistants: none is an empty list';
};

subtest 'search assistants: limit and offset select a page' => sub {
    my $page = search(limit => 1, graph_id => 'agent');
    is $page->{headers}{'x-pagination-next'}, undef, 'search assistants: the last page has no X-Pagination-Next';
    is $page->{headers}{'x-pagination-total'}, 1, 'search assistants: X-Pagination-Total is the number on all pages';
    is search(limit => 1, offset => 5, metadata => { created_by => 'system' })->{headers}{'x-pagination-total'},
        $client->post('/assistants/count', { metadata => { created_by => 'system' } })->{json},
        'search assistants: X-Pagination-Total counts what the search finds, also on pages after the last one';
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

my %created;

sub create {
    my (%body) = @_;
    my $answer = $client->post('/assistants', { graph_id => 'agent', %body });
    is $answer->{status}, 200, 'create assistant: the status is 200';
    $created{ $answer->{json}{assistant_id} } = 1;
    return $answer->{json};
}

sub update {
    my ($id, %body) = @_;
    return $client->request('PATCH', "/assistants/$id", \%body);
}

subtest 'create assistant: an assistant has a graph and settings for its runs' => sub {
    my $made = create(name => 'mine', description => 'd', config => { tags => ['x'], recursion_limit => 9 }, context => { c => 1 },
        metadata => { m => 1 });
    like $made->{assistant_id}, qr/^[0-9a-f]{8}-[0-9a-f]{4}-7/, 'create assistant: it gets a UUIDv7';
    is_deeply [ @{$made}{qw(graph_id name description version config context metadata)} ],
        [ 'agent', 'mine', 'd', 1, { tags => ['x'], recursion_limit => 9 }, { c => 1 }, { m => 1 } ], 'create assistant: the record';
    is_deeply $client->get("/assistants/$made->{assistant_id}")->{json}, $made, 'create assistant: it can be read';
    is $client->get("/assistants/$made->{assistant_id}/schemas")->{json}{graph_id}, 'agent', 'create assistant: it has the schemas of its graph';
    is_deeply search(metadata => { m => 1 })->{json}, [$made], 'create assistant: it can be found';
    is $client->post('/assistants/count', { metadata => { m => 1 } })->{body}, '1', 'count assistants: the number alone';
    my $run = $client->start_run('hello', assistant_id => $made->{assistant_id});
    is_deeply [ @{ $run->{kwargs}{config} }{qw(tags recursion_limit)} ], [ ['x'], 9 ], 'create assistant: its runs have its config';
    is_deeply $run->{kwargs}{context}, { c => 1 }, 'create assistant: its runs have its context';
    is $run->{kwargs}{config}{metadata}{m}, 1, 'create assistant: its runs have its metadata';
    is $run->{kwargs}{config}{configurable}{assistant_id}, $made->{assistant_id}, 'create assistant: its runs name it';
    is $client->join_run($run)->{messages}[0]{content}, 'hello', 'create assistant: its runs are executed';
};

subtest 'create assistant: the client may choose the id' => sub {
    my $id = '018F2D6E-7C4B-7ABC-9DEF-0123456789A1';
    is create(assistant_id => $id)->{assistant_id}, lc $id, 'create assistant: the id is in lower case';
    my $again = $client->post('/assistants', { graph_id => 'agent', assistant_id => $id });
    is "$again->{status} $again->{json}{code}", '409 assistant_exists', 'create assistant: an id that is taken is 409';
    is create(assistant_id => $id, if_exists => 'do_nothing', name => 'other')->{name}, 'Untitled',
        'create assistant: with if_exists do_nothing the existing one is returned';
    is $client->delete("/assistants/$id")->{status}, 204, 'delete assistant: the status is 204';
    is $client->get("/assistants/$id")->{status}, 404, 'delete assistant: it is gone';
    is $client->delete("/assistants/$id")->{status}, 404, 'delete assistant: an unknown one is 404';
};

subtest 'create assistant: an unknown graph is 404' => sub {
    my $none = $client->post('/assistants', { graph_id => 'nobody' });
    is "$none->{status} $none->{json}{code}", '404 graph_not_found', 'create assistant: the code is graph_not_found';
    is update(create()->{assistant_id}, graph_id => 'nobody')->{status}, 404, 'update assistant: an unknown graph is 404';
};

subtest 'update assistant: each update makes a version' => sub {
    my $id = create(name => 'one', metadata => { a => 1 })->{assistant_id};
    my $updated = update($id, name => 'two', metadata => { b => 2 });
    is $updated->{status}, 200, 'update assistant: the status is 200';
    is_deeply [ @{ $updated->{json} }{qw(version name metadata)} ], [ 2, 'two', { a => 1, b => 2 } ],
        'update assistant: metadata is merged, other members are replaced';
    is $client->request('PATCH', "/assistants/$id")->{json}{version}, 3, 'update assistant: an update without a body makes a version';
    my $versions = $client->post("/assistants/$id/versions", { limit => 2 });
    is_deeply [ map { $_->{version} } @{ $versions->{json} } ], [ 3, 2 ], 'versions: the newest first';
    is $versions->{headers}{'x-pagination-next'}, 2, 'versions: X-Pagination-Next is the offset of the next page';
    my $first = $client->post("/assistants/$id/latest", { version => 1 });
    is_deeply [ $first->{status}, @{ $first->{json} }{qw(version name metadata)} ], [ 200, 1, 'one', { a => 1 } ],
        'set latest: the assistant is what it was in that version';
    is $client->post("/assistants/$id/latest?version=2")->{json}{name}, 'two', 'set latest: the version may be a parameter';
    is update($id)->{json}{version}, 4, 'update assistant: the number of a version is never used again';
    my $none = $client->post("/assistants/$id/latest", { version => 5 });
    is "$none->{status} $none->{json}{code}", '404 version_not_found', 'set latest: an unknown version is 404';
};

subtest 'system assistant: it can be updated, but neither deleted nor given another graph' => sub {
    is update('agent', description => 'talks')->{json}{description}, 'talks', 'system assistant: an update has its name or its id';
    for my $refused ($client->delete('/assistants/agent'), $client->delete("/assistants/$AGENT?delete_threads=true")) {
        is "$refused->{status} $refused->{json}{code}", '409 assistant_is_system', 'system assistant: a deletion is 409';
    }
    is $client->post("/assistants/agent/latest", { version => 1 })->{json}{description}, undef, 'system assistant: it has versions';
};

subtest 'delete assistant: delete_threads deletes threads with their runs too' => sub {
    my $id = create()->{assistant_id};
    my @runs = map { $client->start_run('sleep 600000', assistant_id => $id) } 1, 2;
    my $other = $client->start_run('hello');
    my $kept = create()->{assistant_id};
    my $of_kept = $client->start_run('hello', assistant_id => $kept);
    my $join = $client->begin('GET', run_path($runs[0]) . '/join');
    is $client->delete("/assistants/$id?delete_threads=true")->{status}, 204, 'delete assistant: the status is 204';
    is $client->get("/threads/$_->{thread_id}")->{status}, 404, 'delete assistant: a thread with a run that executes is deleted' for @runs;
    like $client->finish($join)->{body}, qr/not found/, 'delete assistant: a join of such a run ends';
    is $client->get("/threads/$other->{thread_id}")->{status}, 200, 'delete assistant: threads of other assistants stay';
    is $client->delete("/assistants/$kept?delete_threads=false")->{status}, 204, 'delete assistant: without threads';
    is $client->join_run($of_kept)->{messages}[0]{content}, 'hello', 'delete assistant: its runs go on';
    is $client->post('/runs', { assistant_id => $kept, input => {} })->{status}, 404, 'delete assistant: it accepts no more runs';
};

subtest 'assistants: wrong members and parameters are 422' => sub {
    my $id = create()->{assistant_id};
    my @both = ([ graph_id => 7 ], [ graph_id => '' ], [ graph_id => 'x' x 65 ], [ name => 1 ], [ name => 'x' x 513 ], [ description => [] ],
        [ description => 'x' x 4097 ], [ config => [] ], [ config => { tags => 'x' }, '/config/tags' ],
        [ config => { recursion_limit => 0 }, '/config/recursion_limit' ],
        [ config => { configurable => { checkpoint_id => '018f2d6e-7c4b-7abc-9def-0123456789a1' } }, '/config/configurable/checkpoint_id' ],
        [ config => { configurable => { x => 'x' x 65_536 } } ], [ context => 'x' ], [ context => { x => 'x' x 65_536 } ], [ metadata => [] ],
        [ metadata => { map { ("k$_" => 1) } 1 .. 65 } ], [ metadata => { k => 'x' x 600 } ]);
    my $refused = sub {
        my ($answer, $what, $pointer) = @_;
        is "$answer->{status} $answer->{json}{code}", '422 invalid_value', "assistants: $what is 422";
        like $answer->{json}{detail}, qr/^\Q$pointer\E/, "assistants: the detail of $what has its pointer";
    };
    for my $case (@both) {
        my ($member, $value, $pointer) = @$case;
        $pointer //= "/$member";
        $refused->($client->post('/assistants', { graph_id => 'agent', $member => $value }), "$member in a creation", $pointer);
        $refused->(update($id, $member => $value), "$member in an update", $pointer);
    }
    $refused->($client->post('/assistants', {}), 'a creation without graph_id', '/graph_id');
    $refused->($client->post('/assistants', { graph_id => 'agent', @$_ }), "$_->[0] in a creation", "/$_->[0]")
        for [ assistant_id => 'x' ], [ if_exists => 'update' ];
    $refused->($client->post("/assistants/$id/latest", {@$_}), 'a version that is not one', '/version')
        for [], [ version => 0 ], [ version => 2_147_483_648 ], [ version => '1' ], [ version => 1.5 ];
    $refused->($client->post("/assistants/$id/latest?version=0"), 'a parameter version of 0', 'Query parameter version');
    $refused->($client->post("/assistants/$id/versions", { limit => 0 }), 'a list of no versions', '/limit');
    $refused->($client->delete("/assistants/$id?delete_threads=maybe"), 'a delete_threads that is not a flag', 'Query parameter delete_threads');
    is $client->post("/assistants/$_/latest", { version => 1 })->{status}, 404, 'assistants: an unknown one is 404' for 'none', '018f2d6e-7c4b-7abc-9def-0123456789a2';
    is update('none')->{status}, 404, 'assistants: an update of an unknown one is 404';
    is $client->post('/assistants/none/versions', {})->{status}, 404, 'assistants: versions of an unknown one are 404';
    is $client->post('/assistants', 'x')->{status}, 400, 'assistants: a body that is not JSON is 400';
    is $client->post('/assistants', '{"graph_id":"agent","name":"\u0000"}')->{status}, 422, 'assistants: U+0000 is 422';
    is $client->get("/assistants/$id")->{json}{version}, 1, 'assistants: what is refused changes nothing';
};

subtest 'system assistants: they are there from the start, before a runner has reported' => sub {
    my $folder = tempdir('/tmp/agent-test-silent.XXXXXX', CLEANUP => 1);
    chmod 0755, $folder or die "$folder: $!\n";
    my $silent = write_file("$folder/runner", "#!/bin/sh\nexec sleep 60\n");
    chmod 0755, $silent or die "$silent: $!\n";
    my ($server, $to) = AgentTest::Server->start_with_client(qq(AgentRunner "$silent"), "<AgentGraph quiet>\nAgentModel demo\n</AgentGraph>");
    wait_for('the supervisor to register', sub { $server->error_log =~ /registered as worker/ });
    my $found = $to->post('/assistants/search', { graph_id => 'quiet' })->{json};
    is_deeply [ map { [ @{$_}{qw(name version description metadata)} ] } @{$found} ], [ [ 'quiet', 1, undef, { created_by => 'system' } ] ],
        'system assistants: a search finds that of a graph without a runner';
    my $other = AgentTest::Server->new(database => AgentTest::Postgres->shared->conninfo('agent', $ENV{PGDATABASE}));
    $other->start;
    is_deeply(AgentTest::Client->new(url => $other->url)->post('/assistants/search', { graph_id => 'quiet' })->{json}, $found,
        'system assistants: so it does on a host that does not declare the graph');
    $other->stop;
    is $to->get('/assistants/quiet')->{json}{assistant_id}, $found->[0]{assistant_id}, 'system assistants: its name stands for it';
    is_deeply $to->get('/assistants/quiet/schemas')->{json}{input_schema}, undef, 'system assistants: its schemas follow with the report';
    my $made = $to->post('/assistants', { graph_id => 'quiet', name => 'made' });
    is $made->{status}, 200, 'system assistants: a client can make another one of the graph';
    # The server serves other files too.
    $to->delete("/assistants/$made->{json}{assistant_id}");
};

# The server serves other files too.
$client->delete("/assistants/$_?delete_threads=true") for sort keys %created;

subtest 'removed graph: its assistant is not found but stays readable as its threads, new runs are refused, it comes back' => sub {
    my ($before, $to) = AgentTest::Server->start_with_client("<AgentGraph gone>\nAgentModel demo\n</AgentGraph>");
    my $run = $to->create_run($to->new_thread, 'hello', assistant_id => 'gone');
    is $to->get(run_path($run) . '/join')->{status}, 200, 'removed graph: a run is executed while it is configured';
    wait_for('the runner to report', sub { $to->get('/assistants/gone/graph')->{json}{nodes}[0] });
    my $made = $to->post('/assistants', { graph_id => 'gone', name => 'made' })->{json}{assistant_id};
    my %of_graph = (graph_id => 'gone', sort_by => 'name', sort_order => 'asc');
    my $names = sub { join ' ', map { $_->{name} } @{ $to->post('/assistants/search', \%of_graph)->{json} } };
    is $names->(), 'gone made', 'removed graph: a search finds its assistant while it is configured';
    $before->stop;
    my $start = sub {
        my $server = AgentTest::Server->new(database => AgentTest::Postgres->shared->conninfo('agent', $ENV{PGDATABASE}), @_);
        $server->start;
        $to = AgentTest::Client->new(url => $server->url);
        return $server;
    };
    my $after = $start->();
    # Its supervisor has registered when it has executed a run.
    $to->get(run_path($to->start_run('hello')) . '/join');
    is $names->(), 'made', "removed graph: a search finds only a client's assistant of it";
    is $to->post('/assistants/count', { graph_id => 'gone' })->{json}, 1, 'removed graph: a count too';
    is $to->get("/assistants/gone$_")->{status}, 200, "removed graph: GET /assistants/gone$_ is 200" for '', qw(/graph /schemas);
    is scalar @{ $to->get_state($run->{thread_id})->{values}{messages} }, 2, 'removed graph: the state of its thread is readable';
    for my $id ('gone', $run->{assistant_id}, $made) {
        my $refused = $to->post("/threads/$run->{thread_id}/runs", { assistant_id => $id, input => {} });
        is "$refused->{status} $refused->{json}{code}", '404 graph_not_found', "removed graph: a run of $id is refused";
        is $refused->{json}{detail}, qq(No assistant found for "$id": no host serves its graph "gone" now.),
            "removed graph: the detail names $id and the graph";
    }
    $after->stop;
    # The same host, without any graph.
    my $empty = $start->(config => qq(<Location "/">\nSetHandler agent\n</Location>\n));
    # Until then the supervisor before it may count as one that serves them, if it was ended in its last writes.
    wait_for('its supervisor to register', sub { $empty->error_log =~ /registered as worker/ });
    is $to->get('/assistants/agent')->{status}, 200, 'removed graph: assistants of a host without graphs are readable';
    is $to->post("/threads/$run->{thread_id}/runs", { assistant_id => 'agent', input => {} })->{status}, 404,
        'removed graph: a host that starts without graphs accepts no run of those that it had';
    $empty->stop;
    my $back = $start->(config => AgentTest::Server::shared_config() . "<AgentGraph gone>\nAgentModel demo\n</AgentGraph>\n");
    is $names->(), 'gone made', 'removed graph: a search finds its assistant when the graph is back';
    is scalar @{ $to->join_run($to->create_run($run->{thread_id}, 'again', assistant_id => $made))->{messages} }, 4,
        'removed graph: runs of its assistants go on with their threads';
    undef $back;
    undef $empty;
    undef $after;
    undef $before;
};

subtest 'removed graph: a graceful restart may remove all graphs' => sub {
    my ($server, $to) = AgentTest::Server->start_with_client;
    is $to->join_run($to->start_run('hello'))->{messages}[0]{content}, 'hello', 'removed graph: a run is executed before the restart';
    write_file($server->{conf}, slurp($server->{conf}) =~ s{<AgentGraph.*?</AgentGraph>\n}{}gsr);
    $server->graceful;
    wait_for('runs to be refused', sub {
        $to->post('/runs', { assistant_id => 'agent', input => {} })->{status} == 404;
    });
    pass 'removed graph: soon after a graceful restart without graphs no run is accepted';
    undef $server;
};

my $padded = { name => 'none', metadata => {}, padding => 'x' x 65_536 };
is $client->post("/assistants/$_", $padded)->{json}{code}, 'body_too_large', "assistants: the body of a $_ has at most 64 KB" for qw(search count);

done_testing;
