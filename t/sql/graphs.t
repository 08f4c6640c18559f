# SPDX-License-Identifier: Apache-2.0
# Graphs that runners report, their system assistants, and which of them accept runs.
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
my %SHOP = (graph_id => 'shop', assistant_id => '15e14de9-4afb-5a11-8afe-59e1e9ce4e4a');
my %AGENT = (graph_id => 'agent', assistant_id => $AgentSQL::ASSISTANT);

sub at { return $session->query("set agent.now = '2030-01-01T$_[0]Z'") }

sub report {
    my (@graphs) = @_;
    return $session->value("select agent.save_graphs('$AgentSQL::DEPLOYMENT', "
        . AgentSQL::Session::literal(AgentSQL::encode(\@graphs)) . ')');
}

sub stored {
    my ($column, $graph) = @_;
    return $session->value("select $column from agent.graphs where graph_id = '$graph'");
}

sub register {
    my ($node, @graphs) = @_;
    my $list = join ',', map { qq("$_") } @graphs;
    return $session->value("select worker_id from agent.register_worker('$node', 'boot', 1, 1, 10, 20,
        array_fill('default'::text, array[cardinality('{$list}'::text[])]), '{$list}') limit 1");
}

sub search {
    my (%request) = @_;
    my $known = delete $request{known} // [qw(agent shop)];
    my ($code, $body) = $session->call('search_assistants', $AgentSQL::DEPLOYMENT, $known, AgentSQL::encode(\%request));
    return (AgentSQL::decode($body), $session->extra);
}

sub names { return join ' ', map { $_->{name} } @{ (search(@_))[0] } }

at('12:00:00');

subtest 'a graph that is reported for the first time is stored with its system assistant' => sub {
    is report({ %SHOP, description => 'sells', schemas => { input_schema => { type => 'object' } },
        drawing => { nodes => [], edges => [] }, runtime => { language => 'c' } }), 1;
    is stored('description', 'shop'), 'sells';
    is stored("runtime ->> 'language'", 'shop'), 'c';
    is_deeply $play->body('get_assistant', $SHOP{assistant_id}), {
        assistant_id => $SHOP{assistant_id}, graph_id => 'shop', name => 'shop', description => 'sells',
        version => 1, config => {}, context => {}, metadata => { created_by => 'system' },
        created_at => '2030-01-01T12:00:00.000000+00:00', updated_at => '2030-01-01T12:00:00.000000+00:00' };
};

subtest 'a report that is stored already writes nothing' => sub {
    at('12:00:01');
    my $same = { %SHOP, description => 'sells', schemas => { input_schema => { type => 'object' } },
        drawing => { nodes => [], edges => [] }, runtime => { language => 'c' } };
    my $before = stored('xmin', 'shop');
    is report($same), 0;
    is stored('xmin', 'shop'), $before, 'the row has the transaction that wrote it first';
};

subtest 'a report of another worker is written once, and stays the content of its time' => sub {
    my $same = AgentSQL::Session::literal(AgentSQL::encode([ { %SHOP, description => 'sells', schemas => { input_schema => { type => 'object' } },
        drawing => { nodes => [], edges => [] }, runtime => { language => 'c' } } ]));
    my $save = sub { return $session->value("select agent.save_graphs('$AgentSQL::DEPLOYMENT', $same, $_[0])") };
    my $before = stored('reported_at', 'shop');
    is_deeply [ map { [ $save->($_), stored('worker_id', 'shop') ] } 7, 7, 8, 'null' ], [ [ 1, 7 ], [ 0, 7 ], [ 1, 8 ], [ 0, 8 ] ];
    is stored('reported_at', 'shop'), $before, 'it is not new';
};

subtest 'a changed report replaces the stored one' => sub {
    at('12:00:02');
    is report({ %SHOP, error => { error => 'ImportError', message => 'no' } }), 1;
    is stored("schemas is null and drawing is null and description is null", 'shop'), 't';
    is stored("error ->> 'message'", 'shop'), 'no';
    is stored('reported_at', 'shop'), stored("'2030-01-01T12:00:02Z'::timestamptz", 'shop');
    is report(\%SHOP), 1;
    is stored('error is null', 'shop'), 't', 'a graph that can be loaded again has no error';
};

subtest 'an assistant that exists is kept as it is' => sub {
    $session->query("update agent.assistants set name = 'mine' where graph_id = 'shop'");
    report({ %SHOP, description => 'new' });
    is $play->body('get_assistant', $SHOP{assistant_id})->{name}, 'mine';
    $session->query("update agent.assistants set name = 'shop' where graph_id = 'shop'");
};

subtest 'two supervisors may report the same graphs in any order at the same time' => sub {
    my $other = $db->session;
    my @graphs = map { { graph_id => "g$_", assistant_id => AgentSQL::uuid() } } 10 .. 29;
    my $call = sub { "select agent.save_graphs('$AgentSQL::DEPLOYMENT', "
        . AgentSQL::Session::literal(AgentSQL::encode([@_])) . ')' };
    $session->query('begin');
    is $session->value($call->($graphs[0])), 1;
    $other->send($call->(reverse @graphs));
    ok $other->waits_for($session), 'the second one waits for the first, and holds no other graph';
    is $session->value($call->(@graphs)), 19;
    $session->query('commit');
    is $other->receive, 0, 'the second one writes nothing';
    is $session->value("select count(*) from agent.assistants where graph_id like 'g%'"), 20;
    $session->query("delete from agent.assistants where graph_id like 'g%'; delete from agent.graphs where graph_id like 'g%'");
};

# The stored answer to a question about the graph of an assistant.
sub describe { my ($assistant, $what) = @_; return $play->api('describe_graph', $assistant, AgentSQL::uuid(), 10, qq({"what":"$what"})) }

subtest 'describe_graph returns the reported schemas, null for those that are missing' => sub {
    report({ %SHOP, schemas => { input_schema => { type => 'object' }, other => 1 } });
    is_deeply +(describe($SHOP{assistant_id}, 'schemas'))[1], { graph_id => 'shop', input_schema => { type => 'object' },
        map { $_ . '_schema' => undef } qw(output state config context) };
    is +(describe(AgentSQL::uuid(), 'schemas'))[0], 'assistant_not_found';
};

subtest 'describe_graph returns the reported drawing, without nodes when there is none' => sub {
    is_deeply +(describe($SHOP{assistant_id}, 'graph'))[1], { nodes => [], edges => [] };
    report({ %SHOP, drawing => { nodes => [ { id => 'a' } ], edges => [] } });
    is_deeply +(describe($SHOP{assistant_id}, 'graph'))[1], { nodes => [ { id => 'a' } ], edges => [] };
    is +(describe(AgentSQL::uuid(), 'graph'))[0], 'assistant_not_found';
};

subtest 'describe_graph answers with the report where it says all, else by a call' => sub {
    my $describe = sub {
        my ($assistant, %arguments) = @_;
        my $call = AgentSQL::uuid();
        my ($code, $body) = $play->api('describe_graph', $assistant, $call, 10, AgentSQL::encode(\%arguments));
        return ($code, ref $body ? $body : undef, $session->extra, $call);
    };
    my $is_stored = sub { my ($body) = (&$describe)[1]; return $body };
    my %deep = (what => 'graph', xray => \1);
    my $worker = register('describing', 'shop');
    report({ %SHOP, schemas => { input_schema => {} }, drawing => { nodes => [ { id => 'a' } ], edges => [] }, has_subgraphs => \0 });
    my $id = $SHOP{assistant_id};
    is_deeply $is_stored->($id, %deep)->{nodes}, [ { id => 'a' } ], 'a graph without subgraphs has one drawing';
    is_deeply $is_stored->($id, what => 'subgraphs', namespace => undef, recurse => \1), {}, 'a graph without subgraphs is stored as having none';
    report({ %SHOP, schemas => { input_schema => {} }, drawing => { nodes => [ { id => 'a' } ], edges => [] } });
    is_deeply $is_stored->($id, what => 'graph', xray => \0)->{nodes}, [ { id => 'a' } ], 'a drawing without subgraphs is stored';
    is_deeply $is_stored->($id, what => 'graph', xray => 0)->{nodes}, [ { id => 'a' } ], 'depth 0 is the same';
    is_deeply $is_stored->($id, what => 'schemas')->{input_schema}, {}, 'schemas are stored';
    is +($describe->(AgentSQL::uuid(), %deep))[0], 'assistant_not_found', 'an unknown assistant';

    my $made = AgentSQL::uuid();
    $play->api('create_assistant', $made, ['shop'], AgentSQL::encode({ graph_id => 'shop', config => { tags => ['t'],
        configurable => { model => 'm' } }, context => { c => 1 }, metadata => { x => 1 } }));
    my ($code, $body, $changed, $call) = $describe->($made, %deep);
    is_deeply [ $code, $body, $changed ], [ 'ok', undef, "$call $call" ], 'a drawing with subgraphs is a call of no thread';
    is +($play->api('join_call', $call, $call))[0], 'waiting', 'it can be waited for';
    my ($claim) = $play->claim($worker, graphs => '{shop}');
    is $claim->{op}, 'describe', 'it is claimed';
    my $start = AgentSQL::decode($claim->{start});
    is_deeply [ @$start{qw(type run_id op thread_id graph_id arguments context checkpoint)} ],
        [ 'call', $call, 'describe', undef, 'shop', { what => 'graph', xray => Cpanel::JSON::XS::true }, { c => 1 }, undef ],
        'the message has the arguments, and no thread';
    is_deeply $start->{config}, { tags => ['t'], metadata => { x => 1 },
        configurable => { model => 'm', graph_id => 'shop', assistant_id => $made } }, 'the call has the config of the assistant';
    is +($describe->($made, %deep))[2], "$call $call", 'the same request waits for the call that is under way';
    is +($play->api('end_call', $call, $call))[0], 'call_timeout', 'a request that waits no longer';
    is +($play->api('join_call', $call, $call))[0], 'waiting', 'the others wait for it';
    my $value = { nodes => [ { id => 'deep' } ], edges => [] };
    $play->save($worker, { %{ AgentSQL::Play::finish($claim) }, value => $value });
    is_deeply [ $play->api('join_call', $call, $call) ], [ 'ok', $value ], 'its result is the value';
    is_deeply +($describe->($made, %deep))[1], $value, 'the same request is answered with it';
    is +($describe->($made, what => 'graph', xray => 1))[1], undef, 'another request is not answered with it';
    is +($describe->($id, %deep))[1], undef, 'the same request for another assistant is a call of its own';
    $play->api('update_assistant', $made, ['shop'], '{}');
    is +($describe->($made, %deep))[1], undef, 'the same request for another version is a call of its own';
    is +($play->api('set_assistant_version', $made, 1))[0], 'ok';
    is_deeply +($describe->($made, %deep))[1], $value, 'the version has its own';
    my %reported = (%SHOP, schemas => { input_schema => {} }, drawing => { nodes => [ { id => 'a' } ], edges => [] });
    $session->query("set agent.now = '" . $session->value("select agent.now() + interval '1 second'") . "'");
    report(\%reported);
    is_deeply +($describe->($made, %deep))[1], $value, 'an equal report of another runner changes nothing';
    report({ %reported, drawing => { nodes => [ { id => 'b' } ], edges => [] } });
    is +($describe->($made, %deep))[1], undef, 'the graph is asked again once a runner has reported another one';
    my $create = sub { return $play->api('create_assistant', $_[0], ['shop'], '{"graph_id":"shop"}') };
    my $again = AgentSQL::uuid();
    $create->($again);
    my $first = ($describe->($again, %deep))[3];
    $play->api('delete_assistant', $again, 'false', undef);
    $session->query("set agent.now = '" . $session->value("select agent.now() + interval '1 second'") . "'");
    $create->($again);
    isnt +($describe->($again, %deep))[2], "$first $first", 'an assistant created again has a call of its own';
    $play->api('delete_assistant', $again, 'false', undef);
    at('12:02:00');
    is +($describe->($made, %deep))[1], undef, 'it is forgotten after a minute';

    report({ %SHOP, factory => \1, schemas => { input_schema => {} } });
    (undef, $body, undef, $call) = $describe->($made, what => 'schemas');
    is $body, undef, 'schemas of a factory are a call';
    ($claim) = grep { $_->{run_id} eq $call } $play->claim($worker, graphs => '{shop}');
    $play->save($worker, { %{ AgentSQL::Play::finish($claim) }, value => { input_schema => { a => 1 }, other => 1 } });
    is_deeply +($play->api('join_call', $call, $call))[1], { graph_id => 'shop', input_schema => { a => 1 },
        map { $_ => undef } qw(output_schema state_schema config_schema context_schema) }, 'the response has the members of the API';
    report({ %SHOP, factory => \1, error => { error => 'E', message => 'm' } });
    is_deeply $is_stored->($made, what => 'subgraphs'), {}, 'a graph that could not be loaded has no code to ask';
    report({%SHOP});
    at('15:00:00');
    $session->query("update agent.workers set state = 'dead', dead_at = agent.now()");
    is +($describe->($made, what => 'subgraphs'))[0], 'graph_not_found', 'a graph that no supervisor executes';
    report({ %SHOP, drawing => { nodes => [ { id => 'a' } ], edges => [] } });
    $play->api('delete_assistant', $made, 'false', undef);
    at('12:00:00');
};

subtest 'a run of a graph that another host executes is accepted' => sub {
    register('a', 'shop');
    is +($play->try_run($play->thread, assistant => $SHOP{assistant_id}, graph => 'shop', graphs => []))[0], 'ok', 'by its name';
    is +($play->try_run($play->thread, assistant => $SHOP{assistant_id}, graph => undef, graphs => []))[0], 'ok', 'by its id';
};

subtest 'a run of a graph that no runner has reported is refused on other hosts' => sub {
    my ($code, $body) = $play->try_run($play->thread, assistant => AgentSQL::uuid(), graph => 'none', graphs => ['agent']);
    is $code, 'assistant_not_found';
    is $body, 'No assistant found for "none". Make sure the assistant ID is for a valid assistant or a valid graph ID.';
    my $id = AgentSQL::uuid();
    like +($play->try_stateless(assistant => $id, graph => undef))[1], qr/^No assistant found for "$id"/;
};

subtest 'a host that restarts keeps its graphs for an hour' => sub {
    my $accepts = sub { ($play->try_run($play->thread, assistant => $SHOP{assistant_id}, graph => 'shop', graphs => []))[0] };
    $session->query("update agent.workers set state = 'dead', dead_at = agent.now()");
    is $accepts->(), 'ok', 'the supervisor has ended';
    at('12:59:00');
    is $accepts->(), 'ok';
    at('13:01:00');
    is $accepts->(), 'graph_not_found', 'an hour later';
    register('a', 'shop');
    is $accepts->(), 'ok', 'the host is back';
};

subtest 'a graph that was removed from all configurations keeps its assistant and accepts no runs' => sub {
    my $draining = $session->value('select max(worker_id) from agent.workers');
    my $accepts = sub { ($play->try_run($play->thread, assistant => $SHOP{assistant_id}, graph => 'shop', graphs => ['agent']))[0] };
    $session->query("update agent.workers set state = 'draining' where worker_id = $draining");
    is $accepts->(), 'ok', 'a supervisor that drains and has no successor yet';
    register('a', 'agent');
    is $accepts->(), 'graph_not_found', 'its successor has other graphs';
    my $other = register('b', 'shop');
    is $accepts->(), 'ok', 'another host has the graph';
    $session->query("delete from agent.workers where worker_id = $other");
    is $play->body('get_assistant', $SHOP{assistant_id})->{graph_id}, 'shop';
    is_deeply +(describe($SHOP{assistant_id}, 'graph'))[1]{nodes}, [ { id => 'a' } ];
};

subtest 'a host that starts without graphs accepts no runs of those that it had' => sub {
    my $accepts = sub { ($play->try_run($play->thread, assistant => $SHOP{assistant_id}, graph => 'shop', graphs => []))[0] };
    my $worker = register('c', 'shop');
    ok register('c'), 'a worker without graphs has an id';
    is $accepts->(), 'ok', 'a supervisor of that host is still live';
    $session->query("update agent.workers set state = 'draining' where worker_id = $worker");
    is $accepts->(), 'graph_not_found', 'it drains';
    $session->query("update agent.workers set state = 'dead', dead_at = agent.now() where worker_id = $worker");
    is $accepts->(), 'graph_not_found', 'it has ended';
    register('c', 'shop');
    is $accepts->(), 'ok', 'it has graphs again';
    $session->query("delete from agent.workers where node_name = 'c'");
};

subtest 'search_assistants returns the newest first, in pages' => sub {
    at('13:10:00');
    report({ %AGENT, description => 'talks' });
    is names(), 'agent shop';
    is names(sort_order => 'asc'), 'shop agent';
    is names(sort_by => $_, sort_order => 'asc'), 'agent shop', "sorted by $_" for qw(name graph_id);
    my ($page, $next) = search(limit => 1);
    is_deeply [ (map { $_->{name} } @$page), $next ], [ 'agent', 1 ];
    ($page, $next) = search(limit => 1, offset => 1);
    is_deeply [ (map { $_->{name} } @$page), $next ], [ 'shop', '' ];
};

subtest 'search_assistants finds by graph, by a part of the name in any case and by metadata' => sub {
    is names(graph_id => 'shop'), 'shop';
    is names(name => 'HO'), 'shop';
    is names(name => '%'), '', 'a wildcard of LIKE is an ordinary character';
    is names(metadata => { created_by => 'system' }), 'agent shop';
    is names(metadata => { created_by => 'me' }), '';
};

subtest 'search_assistants selects members' => sub {
    my ($page) = search(limit => 1, select => ['name']);
    is_deeply $page, [ { name => 'agent' } ];
    ($page) = search(limit => 1, select => 'name');
    is_deeply $page, [ { name => 'agent' } ], 'a single word is a list of one';
    is_deeply +(search(select => [], metadata => undef, name => undef, limit => 1))[0][0]{version}, 1,
        'an empty list and null select all';
};

subtest 'search_assistants and count_assistants leave out system assistants of graphs that no host executes' => sub {
    at('13:20:00');
    $session->query('delete from agent.workers');
    my $found = sub {
        my (@known) = @_;
        my $names = names(known => \@known, sort_by => 'name', sort_order => 'asc');
        my $count = $play->body('count_assistants', \@known, '{}');
        is $count, scalar(split / /, $names), "of '$names' as many are counted";
        is $session->value("select total from agent.search_assistants('$AgentSQL::DEPLOYMENT', '{" . join(',', @known) . "}', '{}')"),
            $count, 'the total of a search is the count';
        return $names;
    };
    is $found->(), '', 'none is executed';
    is $found->('shop'), 'shop', 'one that the server of the request executes';
    my ($old, $other) = (register('a', 'agent', 'shop'), register('b', 'shop'));
    is $found->(), 'agent shop', 'those of other hosts';
    $session->query("update agent.workers set state = 'draining' where worker_id = $old");
    is $found->(), 'agent shop', 'of one that drains and has no successor yet';
    register('a', 'agent');
    is $found->(), 'agent shop', 'one that its successor has no longer, but another host';
    $session->query("update agent.workers set state = 'dead', dead_at = agent.now() where worker_id = $other");
    is $found->(), 'agent shop', 'the assistant of a host that restarts is found';
    at('14:21:00');
    is $found->(), 'agent', 'an hour later it is left out';
    my $own = AgentSQL::uuid();
    is +($play->api('create_assistant', $own, ['shop'], '{"graph_id":"shop","name":"mine"}'))[0], 'ok';
    is $found->(), 'agent mine', "a client's of the same graph is not";
    my $thread = $play->thread;
    my ($code, $body) = $play->try_run($thread, assistant => $own, graph => undef, graphs => ['agent']);
    is_deeply [ $code, $body ], [ 'graph_not_found', qq(No assistant found for "$own": no host serves its graph "shop" now.) ],
        'a run of an assistant whose graph is not served is refused';
    like +($play->try_run($thread, assistant => $SHOP{assistant_id}, graph => 'shop', graphs => ['agent']))[1],
        qr/^No assistant found for "shop": no host serves/, 'as one of the graph';
    is +($play->try_stateless(assistant => $own, graph => undef))[0], 'graph_not_found', 'a stateless run of it is refused';
    is +($play->api('get_thread', $thread))[0], 'ok', 'the thread stays';
    is +($play->api('get_assistant', $SHOP{assistant_id}))[0], 'ok', 'the assistant too';
    $play->api('update_assistant', $SHOP{assistant_id}, [], '{"description":"kept"}');
    register('b', 'shop');
    is $found->(), 'agent mine shop', 'it is found again when a host has the graph';
    is $play->body('get_assistant', $SHOP{assistant_id})->{description}, 'kept', 'as it was';
    is +($play->try_run($thread, assistant => $SHOP{assistant_id}, graph => 'shop', graphs => []))[0], 'ok', 'runs are accepted when a host has the graph again';
};

subtest 'a supervisor that registers makes the system assistants of its graphs' => sub {
    my ($early, $late) = map { "01890000-0000-5000-8000-00000000000$_" } 1, 2;
    my $sql = "select agent.register_worker('early', 'boot', 1, 1, 10, 20, '{default,default,gone\@01890000-0000-7000-8000-0000000000ff}', "
        . "'{early,late,none}', '{%s,%s,01890000-0000-5000-8000-000000000003}')";
    $session->value(sprintf $sql, $early, $late) for 1, 2;
    my $record = $play->body('get_assistant', $early);
    is_deeply [ @{$record}{qw(graph_id name description version metadata)} ], [ 'early', 'early', undef, 1, { created_by => 'system' } ],
        'each graph has one, which a second start leaves';
    is names(graph_id => 'early', known => ['early']), 'early', 'a search finds it before a runner has reported the graph';
    is names(graph_id => 'early', known => []), 'early', 'on hosts that do not configure it too';
    my $accepts = sub { ($play->try_run($play->thread, assistant => $early, graph => 'early', graphs => []))[0] };
    is $accepts->(), 'ok', 'these accept runs of it, by its name';
    is +($play->api('create_assistant', AgentSQL::uuid(), [], '{"graph_id":"early"}'))[0], 'ok', 'assistants of the graph can be created';
    is_deeply +(describe($early, 'schemas'))[1]{input_schema}, undef, 'its schemas follow with the report';
    is report({ graph_id => 'early', assistant_id => $early, description => 'soon' }), 1;
    is $play->body('get_assistant', $early)->{description}, 'soon', 'its description follows with the report';
    $session->query("update agent.workers set state = 'dead', dead_at = agent.now() where node_name = 'early'");
    at('16:00:00');
    is names(graph_id => 'early', known => []), 'Untitled', "of an unserved graph a client's assistant is found, not the system's";
    is $session->value("select count(*) from agent.assistants where graph_id = 'none'"), 0, 'an account that does not exist has none';
};

subtest 'graphs that no runner of a worker executes wait for another live worker' => sub {
    at('18:00:00');
    my ($first, $second) = map { register($_, qw(agent shop)) } qw(c d);
    my $alone = sub {
        my ($worker, @graphs) = @_;
        return $session->value("select string_agg(graph_id, ' ' order by graph_id) from agent.report_failing_graphs($worker, "
            . "array_fill('$AgentSQL::DEPLOYMENT'::uuid, array[@{[ scalar @graphs ]}]), '{" . join(',', @graphs) . "}')");
    };
    is $alone->($first, qw(agent shop)), undef, 'one that executes them';
    is $alone->($second, 'shop'), 'shop', 'a worker that does not execute them is not waited for';
    is $alone->($first, qw(agent shop)), 'shop', 'each graph for itself';
    is $alone->($second), undef, 'a worker may execute its graphs again';
    is $alone->($first, 'shop'), undef, 'they wait for it then';
    $session->query("update agent.workers set state = 'draining' where worker_id = $second");
    is $alone->($first, 'shop'), 'shop', 'graphs do not wait for a worker that is drained';
    $session->query("update agent.workers set state = 'live' where worker_id = $second");
    at('18:01:00');
    is $alone->($first, 'shop'), 'shop', 'graphs do not wait for a worker whose lease has ended';
};

done_testing;
