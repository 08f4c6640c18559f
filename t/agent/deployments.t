# SPDX-License-Identifier: Apache-2.0
# Deployments: two virtual hosts of one httpd serve two deployments with a graph of
# the same name. Each route is tried in both with the ids of the other one's objects,
# and with a thread that both have. A new route needs a row here.
use strict;
use warnings;
use AgentTest::Client qw(read_until run_body run_path);
use AgentTest::Database;
use AgentTest::Env qw(free_port write_file);
use AgentTest::Receiver;
use AgentTest::Routes;
use AgentTest::Server;
use AgentTest::Wait;
use Cpanel::JSON::XS;
use Digest::SHA qw(hmac_sha256);
use File::Temp qw(tempdir);
use MIME::Base64 qw(encode_base64);
use Test::More;

my $port = free_port();
my $dir = tempdir(CLEANUP => 1);
my %secret = (shop => 'for all that have none, 32 bytes', desk => 'the one of the second deployment');
write_file("$dir/$_", 'whsec_', encode_base64($secret{$_}, ''), "\n") for keys %secret;
my $server = AgentTest::Server->new(config => <<"CONF");
AgentRunner "\${BUILD_DIR}/agent-runner"
AgentMaxWaitersPerAddress 0
AgentWebhookSecretFile "$dir/shop"
AgentWebhookHeader X-Team all
AgentWebhookHeader X-Place here
AgentWebhookAllow 127.0.0.1
AgentWebhookPorts 1024-65535
AgentDeployment shop
<AgentGraph agent>
    AgentModel demo
    AgentTool clock builtin
</AgentGraph>
<AgentGraph till>
    AgentModel demo
</AgentGraph>
<Location "/">
    SetHandler agent
</Location>
<Location "/late">
    AgentPrefix /late
    AgentDeployment late
</Location>
Listen 127.0.0.1:$port
<VirtualHost 127.0.0.1:$port>
    AgentDeployment desk
    AgentWebhookSecretFile "$dir/desk"
    AgentWebhookHeader X-Team desk
    <AgentGraph agent>
        AgentModel demo
        AgentTool calculator builtin
    </AgentGraph>
    <AgentGraph drawer>
        AgentModel demo
    </AgentGraph>
</VirtualHost>
CONF
$server->start;
my $shop = AgentTest::Client->new(url => $server->url);
my $desk = AgentTest::Client->new(url => "http://127.0.0.1:$port");

my %name = ($shop => 'shop', $desk => 'desk');
my %own_tool = ($shop => 'clock', $desk => 'calculator');
my %own_graph = ($shop => 'till', $desk => 'drawer');

# ---- the objects of each ----
my $input = run_body('hello');

sub objects_of {
    my ($client) = @_;
    wait_for_graphs($name{$client}, 2);
    my $key = { 'Idempotency-Key' => $own_graph{$client} };
    my $done = $client->start_run('My tools?');
    is $client->join_run($done)->{messages}[0]{content}, 'My tools?', 'deployments: a run is executed';
    my $active = $client->start_run('sleep 600000');
    my $stateless = $client->post('/runs', run_body('hello', on_completion => 'keep'), $key)->{json};
    $client->get("/runs/$stateless->{run_id}/join");
    wait_for('the run that goes on', sub { $client->get_state($active->{thread_id})->{values}{messages} });
    $client->request('PUT', '/store/items', { namespace => ['both'], key => 'k', value => { of => $own_graph{$client} } });
    # One of a client, and a thread whose last run it is.
    my $made = $client->post('/assistants', { graph_id => 'agent', name => 'made' })->{json};
    my $by_made = $client->start_run('hello', assistant_id => $made->{assistant_id});
    $client->join_run($by_made);
    return {
        client => $client, key => $key, done => $done, active => $active, stateless => $stateless, made => $made, by_made => $by_made,
        assistant => $client->post('/assistants/search', { graph_id => $own_graph{$client} })->{json}[0]{assistant_id},
        id => { thread_id => $done->{thread_id}, run_id => $done->{run_id}, assistant_id => $made->{assistant_id},
            checkpoint_id => $client->get_state($done->{thread_id})->{checkpoint}{checkpoint_id}, namespace => 'x' },
    };
}

# All that its clients can see of these threads.
sub threads_of {
    my ($client, @threads) = @_;
    return Cpanel::JSON::XS->new->canonical->encode(
        [ map { my $thread = $_; map { $client->get("/threads/$thread$_")->{json} } '', '/state', '/runs' } @threads ]);
}

sub snapshot {
    my ($objects) = @_;
    my $client = $objects->{client};
    return Cpanel::JSON::XS->new->canonical->encode([ $client->post("/assistants/$objects->{made}{assistant_id}/versions", {})->{json},
        $client->post('/assistants/search', {})->{json}, $client->get('/store/items?namespace=both&key=k')->{json} ])
        . threads_of($client, map { $objects->{$_}{thread_id} } qw(done active stateless by_made));
}

# ---- the routes, tried with the objects of the other one ----
my $unseen = sub { is $_[0]{status}, 404, $_[1] };
# The thread of a run is looked up first; the run found in it has a path.
my $unseen_run = sub {
    my ($answer, $what) = @_;
    is $answer->{headers}{'content-location'}, undef, "$what finds no thread of the run";
    return $unseen->($answer, $what);
};
my $allowed = sub { is $_[0]{status}, 200, $_[1] };

# Route => [body, check].
sub rows_for {
    my ($me, $other) = @_;
    my ($done, $active, $made) = @$other{qw(done active made)};
    my @own = sort map { $_->{graph_id} } @{ $me->post('/assistants/search', {})->{json} };
    my $own_graph = sub {
        my ($answer, $what) = @_;
        unlike $answer->{body}, qr/$own_tool{ $other->{client} }/, "$what executes no graph of the other deployment";
        return $allowed->($answer, $what);
    };
    return (
        # The id is free; the assistant is deleted again.
        'POST /assistants' => [ { assistant_id => $made->{assistant_id}, graph_id => 'agent', if_exists => 'do_nothing', name => 'own' }, sub {
            my ($answer, $what) = @_;
            is $answer->{json}{name}, 'own', "$what creates an assistant with an id of the other deployment";
            is $me->delete("/assistants/$made->{assistant_id}?delete_threads=true")->{status}, 204, "$what creates one that can be deleted";
            is $me->post('/assistants', { graph_id => $own_graph{ $other->{client} } })->{status}, 404, "$what finds no graph of the other deployment";
        } ],
        'POST /assistants/count' => [ {}, sub { is $_[0]{json}, @own, "$_[1] counts the own ones only" } ],
        'PATCH /assistants/{assistant_id}'         => [ {}, $unseen ],
        'DELETE /assistants/{assistant_id}'        => [ undef, $unseen ],
        'POST /assistants/{assistant_id}/versions' => [ {}, $unseen ],
        'POST /assistants/{assistant_id}/latest'   => [ { version => 1 }, $unseen ],
        'POST /assistants/search' => [ {}, sub {
            is_deeply [ sort map { $_->{graph_id} } @{ $_[0]{json} } ], \@own, "$_[1] finds the own graphs only";
        } ],
        'GET /assistants/{assistant_id}'           => [ undef, $unseen ],
        'GET /assistants/{assistant_id}/graph'     => [ undef, $unseen ],
        'GET /assistants/{assistant_id}/schemas'   => [ undef, $unseen ],
        'GET /assistants/{assistant_id}/subgraphs' => [ undef, $unseen ],
        'GET /assistants/{assistant_id}/subgraphs/{namespace}' => [ undef, $unseen ],
        # The id is free; the thread is deleted again.
        'POST /threads' => [ { thread_id => $done->{thread_id}, metadata => { own => 1 } }, sub {
            my ($answer, $what) = @_;
            is_deeply $answer->{json}{metadata}, { own => 1 }, "$what creates a thread with an id of the other deployment";
            is $me->post('/threads', { thread_id => $done->{thread_id}, if_exists => 'do_nothing' })->{json}{metadata}{own}, 1,
                "$what with do_nothing returns the own thread";
            is_deeply $me->get_state($done->{thread_id})->{values}, {}, "$what creates a thread without the other one's state";
            is $me->get(run_path($done))->{status}, 404, "$what creates a thread without the other one's runs";
            is $me->delete("/threads/$done->{thread_id}")->{status}, 204, "$what creates a thread that can be deleted";
        } ],
        'POST /threads/search' => [ { ids => [ $done->{thread_id} ] }, sub {
            my ($answer, $what) = @_;
            is_deeply $answer->{json}, [], "$what finds no thread of the other deployment";
            for my $filter ({}, { metadata => {} }, { metadata => { graph_id => 'agent' } }, { status => 'busy' }) {
                unlike $me->post('/threads/search', { %$filter, limit => 1000 })->{body}, qr/$done->{thread_id}|$active->{thread_id}/,
                    "$what by @{[ encode_json($filter) ]} finds no thread of the other deployment";
            }
        } ],
        'POST /threads/count' => [ { ids => [ $done->{thread_id} ] }, sub { is $_[0]{json}, 0, "$_[1] counts the own ones only" } ],
        'POST /threads/prune' => [ { thread_ids => [ $done->{thread_id} ] }, sub {
            is_deeply $_[0]{json}, { pruned_count => 0 }, "$_[1] deletes no thread of the other deployment";
        } ],
        'GET /threads/{thread_id}'                        => [ undef, $unseen ],
        'PATCH /threads/{thread_id}'                      => [ { metadata => { x => 1 } }, $unseen ],
        'DELETE /threads/{thread_id}'                     => [ undef, $unseen ],
        'POST /threads/{thread_id}/copy' => [ undef, sub {
            is $_[0]{status}, 409, $_[1];
            is $_[0]{json}{code}, 'source_not_found', "$_[1] finds nothing to copy";
        } ],
        'GET /threads/{thread_id}/storage'                => [ undef, $unseen ],
        'GET /threads/{thread_id}/stream'                 => [ undef, $unseen ],
        'GET /threads/{thread_id}/state'                  => [ undef, $unseen ],
        'POST /threads/{thread_id}/state'                 => [ { values => { messages => [] } }, $unseen ],
        'GET /threads/{thread_id}/state/{checkpoint_id}'  => [ undef, $unseen ],
        'POST /threads/{thread_id}/state/checkpoint'      => [ { checkpoint => {} }, $unseen ],
        'GET /threads/{thread_id}/history'                => [ undef, $unseen ],
        'POST /threads/{thread_id}/history'               => [ {}, $unseen ],
        'GET /threads/{thread_id}/runs'                   => [ undef, $unseen ],
        'POST /threads/{thread_id}/runs'                  => [ $input, $unseen ],
        'POST /threads/{thread_id}/runs/wait'             => [ $input, $unseen ],
        'POST /threads/{thread_id}/runs/stream'           => [ $input, $unseen ],
        'GET /threads/{thread_id}/runs/{run_id}'          => [ undef, $unseen ],
        'DELETE /threads/{thread_id}/runs/{run_id}'       => [ undef, $unseen ],
        'GET /threads/{thread_id}/runs/{run_id}/join'     => [ undef, $unseen ],
        'GET /threads/{thread_id}/runs/{run_id}/stream'   => [ undef, $unseen ],
        'POST /threads/{thread_id}/runs/{run_id}/cancel'  => [ undef, $unseen ],
        # The Idempotency-Key is the same as in the other deployment.
        'POST /runs' => [ $input, sub {
            my ($answer, $what) = @_;
            isnt $answer->{json}{run_id}, $other->{stateless}->{run_id}, "$what: an idempotency key of the other deployment is free";
            return $own_graph->($answer, $what);
        } ],
        'POST /runs/batch'  => [ [$input], $own_graph ],
        'POST /runs/wait'   => [ $input, $own_graph ],
        'POST /runs/stream' => [ $input, $own_graph ],
        'POST /runs/cancel' => [ { thread_id => $active->{thread_id}, run_ids => [ $active->{run_id} ] }, sub {
            my ($answer, $what) = @_;
            is $answer->{status}, 404, "$what by id";
            my $own = $me->start_run('sleep 600000');
            is $me->post('/runs/cancel', { status => 'all' })->{status}, 204, "$what by status";
            is $me->get(run_path($own) . '/join')->{status}, 200, "$what by status cancels the own run";
        } ],
        'GET /runs/{run_id}/join'   => [ undef, $unseen_run ],
        'GET /runs/{run_id}/stream' => [ undef, $unseen_run ],
        # Both have an item of this name; the own one is deleted again.
        'PUT /store/items' => [ { namespace => ['both'], key => 'k', value => { own => 1 } }, sub {
            my ($answer, $what) = @_;
            is $answer->{status}, 204, $what;
            is_deeply $me->get('/store/items?namespace=both&key=k')->{json}{value}, { own => 1 }, "$what changes the own item";
            is $me->delete('/store/items', { namespace => ['both'], key => 'k' })->{status}, 204, "$what: the own item can be deleted";
        } ],
        'GET /store/items' => [ undef, sub {
            is $me->get('/store/items?namespace=both&key=k')->{body}, 'null', "$_[1] finds no item of the other deployment";
        } ],
        'DELETE /store/items' => [ { namespace => ['both'], key => 'k' }, sub { is $_[0]{status}, 204, $_[1] } ],
        'POST /store/items/search' => [ {}, sub { is_deeply $_[0]{json}, { items => [] }, "$_[1] finds no item of the other deployment" } ],
        'POST /store/namespaces' => [ {}, sub { is_deeply $_[0]{json}, { namespaces => [] }, "$_[1] finds none of the other deployment" } ],
        'GET /ok'                   => [ undef, $allowed ],
        'GET /info'                 => [ undef, $allowed ],
    );
}

my @routes = map { $_->{name} } routes('server');
my %objects;
for my $case ([ $desk, $shop, 'the second' ], [ $shop, $desk, 'the first' ]) {
    my ($me, $them, $name) = @$case;
    my $other = $objects{$them} = objects_of($them);
    my $before = snapshot($other);
    my %rows = rows_for($me, $other);
    is_deeply [ sort keys %rows ], [ sort @routes ], 'deployments: each route has a row';
    for my $route (@routes) {
        my ($body, $check) = @{ $rows{$route} // next };
        my ($method, $path) = split / /, $route;
        my %with = %{ $other->{id} };
        # The run without a thread in its path.
        $with{run_id} = $other->{stateless}{run_id} if $path =~ m{\A/runs/};
        $path =~ s/\{(\w+)\}/$with{$1}/g;
        $check->($me->request($method, $path, $body, $route eq 'POST /runs' ? $other->{key} : undef), "deployments: $route of $name");
    }
    is snapshot($other), $before, 'deployments: the objects of the other one are unchanged';
    is $them->get_run($other->{active})->{status}, 'pending', 'deployments: a run of the other one goes on';
    is $them->post(run_path($other->{active}) . '/cancel?wait=true')->{status}, 204, 'deployments: the own run can be cancelled';
    is $me->post('/runs', run_body('hello', assistant_id => $_))->{status}, 404, "deployments: a run cannot name the other one's graph by $_"
        for $own_graph{$them}, $other->{assistant}, $other->{made}{assistant_id};
}

# ---- the routes, tried with a thread that both have, beside responses of the other one ----
# Clients choose the ids of threads, and notifications have ids only.
sub routes_of_a_thread {
    my ($me, $them) = @_;
    my $thread = $them->new_thread;
    $them->join_run($them->create_run($thread, 'of the other one'));
    my $active = $them->create_run($thread, 'sleep 600000');
    wait_for('the run of the other one', sub { @{ $them->get_state($thread)->{values}{messages} } == 3 });
    my @open = map { $them->begin('GET', $_) } "/threads/$thread/stream", map { run_path($active) . $_ } '/stream', '/join';
    my @seen = map { read_until($_, qr/\r\n\r\n/) } @open;
    my $before = threads_of($them, $thread);

    is $me->post('/threads', { thread_id => $thread })->{status}, 200, 'deployments: both have the thread';
    my %rows = rows_for($me, $objects{$them});
    for my $route ((grep { m{ /threads/\{thread_id\}.} } @routes), 'DELETE /threads/{thread_id}') {
        my ($method, $path) = split / /, $route;
        my %with = (thread_id => $thread);
        my $run = $me->create_run($thread, 'own');
        $me->join_run($run);
        @with{qw(run_id checkpoint_id)} = ($run->{run_id}, $me->get_state($thread)->{checkpoint_id});
        $path =~ s/\{(\w+)\}/$with{$1}/g;
        my $stream = $me->begin($method, $path, $rows{$route}[0]);
        my $answer = read_until($stream, qr/\r\n\r\n/);
        my ($status) = $answer =~ m{\AHTTP/1.1 (\d+)};
        # A run that has ended cannot be cancelled.
        is $status, $route =~ /cancel/ ? 409 : $method eq 'DELETE' ? 204 : 200, "deployments: $route of a thread that both have";
        $answer .= AgentTest::Client::read_to_end($stream) if $route ne 'GET /threads/{thread_id}/stream';
        close $stream;
        unlike $answer, qr/of the other one|$active->{run_id}/, "deployments: $route of a thread that both have shows the own one only";
        next if $method eq 'DELETE';
        wait_for('the own thread to be idle', sub { $me->get("/threads/$thread")->{json}{status} eq 'idle' });
    }
    is threads_of($them, $thread), $before, 'deployments: the thread of the other one is unchanged';
    is $them->post(run_path($active) . '/cancel?wait=true')->{status}, 204, 'deployments: the run of the other one has gone on';
    $seen[0] .= read_until($open[0], qr/run_done/);
    $seen[$_] .= AgentTest::Client::read_to_end($open[$_]) for 1, 2;
    my %runs = map { ($_ => 1) } map { /"run_id":\s*"([^"]+)"/g } @seen;
    is_deeply [ keys %runs ], [ $active->{run_id} ], 'deployments: open responses have the own run only';
    unlike "@seen", qr/"own"/, 'deployments: open responses have no value of the other one';
    close $_ for @open;
    return;
}
for my $case ([ $desk, $shop ], [ $shop, $desk ]) {
    my @case = @$case;
    subtest 'deployments: routes of a thread with the same id in both' => sub { routes_of_a_thread(@case) };
}

# The thread of the other one is idle, so that nothing but its deployment keeps it from a change.
subtest 'deployments: updates of a thread that is idle in both leave the other one' => sub {
    my $thread = $desk->new_thread;
    $desk->join_run($desk->create_run($thread, 'of the other one'));
    my $before = threads_of($desk, $thread);
    my %updates = (supersteps => [ { updates => [ { values => { messages => [] }, as_node => '__input__' } ] } ]);
    is $shop->post('/threads', { thread_id => $thread, %updates })->{status}, 400, 'deployments: supersteps of a thread without a graph are refused';
    is threads_of($desk, $thread), $before, 'deployments: refused supersteps leave the thread of the other one';
    is $shop->post('/threads', { thread_id => $thread, %updates, metadata => { graph_id => 'agent' } })->{status}, 200,
        'deployments: supersteps make a thread with the id of another one';
    is threads_of($desk, $thread), $before, 'deployments: supersteps leave the thread of the other one';
    # Which makes its status that of the other one.
    $shop->join_run($shop->create_run($thread, 'own'));
    is $shop->post("/threads/$thread/state", { values => { messages => [] } })->{status}, 200, 'deployments: the own state is updated';
    is threads_of($desk, $thread), $before, 'deployments: an update of the state leaves the thread of the other one';
};

# ---- graphs ----
for my $case ([ $shop, 'clock', 'calculator' ], [ $desk, 'calculator', 'clock' ]) {
    my ($client, $own, $other) = @$case;
    my $run = $client->start_run("use $own {}");
    my $text = encode_json($client->join_run($run));
    like $text, qr/"name":"$own"/, "deployments: the graph agent has the tool $own in its deployment";
    is $client->get("/assistants/agent/schemas")->{json}{graph_id}, 'agent', "deployments: the graph with $own is reported";
}
is sql("select count(*) || ' ' || count(distinct deployment_id) from agent.graphs"), '4 2', 'deployments: graphs are stored for each';
is sql("select string_agg(name, ' ' order by name) from agent.deployments"), 'default desk shop',
    'deployments: those of httpd.conf are created';

# ---- a thread with the same id in both ----
# Clients choose the ids of threads, and notifications have ids only.
subtest 'deployments: a stream of a thread has no event of a thread with the same id in another one' => sub {
    my $thread = $shop->new_thread;
    is $desk->post('/threads', { thread_id => $thread })->{status}, 200, 'deployments: both have the thread';
    my $stream = $shop->begin('GET', "/threads/$thread/stream");
    my $seen = read_until($stream, qr/\r\n\r\n/);
    my $foreign = $desk->create_run($thread, 'to desk');
    $desk->join_run($foreign);
    my $own = $shop->create_run($thread, 'to shop');
    $shop->join_run($own);
    $seen .= read_until($stream, qr/run_done/);
    close $stream;
    like $seen, qr/to shop/, 'deployments: the stream has the events of the own run';
    unlike $seen, qr/to desk|$foreign->{run_id}/, 'deployments: the stream has none of the other run';
    is_deeply [ map { $_->{content} } grep { $_->{type} eq 'human' } @{ $_->[0]->get_state($thread)->{values}{messages} } ], [ $_->[1] ],
        'deployments: each thread has its own state' for [ $shop, 'to shop' ], [ $desk, 'to desk' ];
};

subtest 'deployments: a webhook has the run, the values and the signature of its own one' => sub {
    my $thread = $shop->new_thread;
    $desk->post('/threads', { thread_id => $thread });
    for my $case ([ $shop, 'shop' ], [ $desk, 'desk' ]) {
        my ($client, $name) = @$case;
        my $text = "from $name";
        my $receiver = AgentTest::Receiver->new;
        my $run = $client->create_run($thread, $text, webhook => $receiver->url);
        my ($request) = $receiver->wait_requests(1);
        my $body = decode_json($request->{body});
        is $body->{run_id}, $run->{run_id}, 'deployments: a webhook names its run';
        is_deeply [ map { $_->{content} } grep { $_->{type} eq 'human' } @{ $body->{values}{messages} } ], [$text],
            'deployments: a webhook has the values of the own thread';
        my %headers = %{ $request->{headers} };
        is $headers{'webhook-signature'}, 'v1,' . encode_base64(hmac_sha256(
            "$headers{'webhook-id'}.$headers{'webhook-timestamp'}.$request->{body}", $secret{$name}), ''),
            'deployments: a webhook is signed with the secret of its deployment, or with that of the server';
        is_deeply [ @headers{qw(x-team x-place)} ], $name eq 'desk' ? [ 'desk', undef ] : [qw(all here)],
            'deployments: a webhook has the headers of its deployment, or those of the server';
    }
};

# ---- a deployment whose id is not known yet ----
{
    my $lock = hold_lock('lock table agent.deployments');
    is $shop->get('/late/ok')->{status}, 200, 'deployments: a route without data needs no id';
    is $shop->post('/late/threads', {})->{status}, 503, 'deployments: a request is answered 503 until the id is known';
    close $lock;
}
my $late = $shop->post('/late/threads', {});
is $late->{status}, 200, 'deployments: the id is read when the database answers';
is sql("select d.name from agent.threads t join agent.deployments d using (deployment_id)
    where t.thread_id = '$late->{json}{thread_id}'"), 'late', 'deployments: AgentDeployment of a location is honoured';
is $shop->get("/threads/$late->{json}{thread_id}")->{status}, 404, 'deployments: a location has its own data';

undef $server;

# ---- requests that wait, in the only child ----
$server = AgentTest::Server->new(config => AgentTest::Server::shared_config() . <<"CONF");
StartServers 1
MaxSpareThreads 40
MaxRequestWorkers 40
AgentMaxWaiters 8
AgentMaxWaitersPerAddress 0
Listen 127.0.0.1:$port
<VirtualHost 127.0.0.1:$port>
    AgentDeployment desk
</VirtualHost>
CONF
$server->start;
my @clients = map { AgentTest::Client->new(url => $_) } $server->url, "http://127.0.0.1:$port";
my @threads = map { $_->new_thread } @clients;
my @open;

sub status_of_stream {
    my ($number) = @_;
    push @open, $clients[$number]->begin('GET', "/threads/$threads[$number]/stream");
    return read_until($open[-1], qr/\r\n\r\n/) =~ m{\AHTTP/1.1 (\d+)} ? $1 : 0;
}

is_deeply [ map { status_of_stream(0) } 1 .. 7 ], [ (200) x 6, 503 ],
    'deployments: requests of one that wait leave the slots that are guaranteed to another';
is_deeply [ map { status_of_stream(1) } 1 .. 3 ], [ 200, 200, 503 ], 'deployments: the other one has its guaranteed slots';
is $clients[0]->post('/runs/wait', run_body('hello'))->{json}{code}, 'too_many_waiters',
    'deployments: a run to wait for is refused before it is created';
close $_ for @open;

# A request that waits for the rest of its body, of an address of its own.
my $address = 1;
sub begin_body {
    my ($number) = @_;
    my $socket = $clients[$number]->connection(LocalAddr => '127.0.0.' . ++$address);
    syswrite $socket, "POST /threads HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    like read_until($socket, qr/\r\n\r\n/), qr{\AHTTP/1.1 100 }, 'deployments: the body is waited for';
    return $socket;
}
my @bodies = map { begin_body(0) } 1 .. 4;
my $own = begin_body(1);
push @bodies, map { begin_body(0) } 1 .. 5;
syswrite $own, '{}';
is $clients[1]->finish($own)->{status}, 200, 'deployments: slow bodies of one leave the slots of another';
is $clients[0]->finish($bodies[0])->{status}, 503, 'deployments: the one with the most slow bodies loses one';
close $_ for @bodies;
undef $server;
done_testing;
