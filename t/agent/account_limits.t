# SPDX-License-Identifier: Apache-2.0
# AgentLimit for what an account keeps in the database, through httpd.
use strict;
use warnings;
use AgentTest::Client qw(run_body);
use AgentTest::Database;
use AgentTest::Postgres;
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

my $postgres = AgentTest::Postgres->new;
local $ENV{PGHOST} = $postgres->host;

sub new_server {
    my ($limits) = @_;
    return AgentTest::Server->new(database => $postgres->conninfo, config => <<"CONF");
AgentRunner "\${BUILD_DIR}/agent-runner"
$limits
AgentDeployment shop
<AgentGraph agent>
    AgentModel demo
</AgentGraph>
<Location "/">
    SetHandler agent
    Require all granted
</Location>
<Location "/desk">
    AgentPrefix /desk
    AgentDeployment desk
</Location>
CONF
}

# The limit that a response names.
sub refusal {
    my ($response) = @_;
    return [ $response->{status}, @{ $response->{json} }{qw(code limit value)}, $response->{headers}{'retry-after'} ];
}

subtest 'limits: a deployment over the limit is not served, and the log says so at start' => sub {
    # The built-in one counts.
    my $server = new_server('AgentLimit deployments 1');
    $server->start;
    my $client = AgentTest::Client->new(url => $server->url);
    my $text = 'The account may have at most 1 deployments. The operator of the server raises this limit with AgentLimit deployments.';
    like $server->error_log, qr/AGT0455: AgentDeployment $_ is not served: \Q$text\E/, "$_: the log of httpd" for 'shop', 'desk';
    wait_for('the supervisor', sub { $server->error_log =~ /AGT0320/ });
    like $server->error_log, qr/AGT0328: deployment shop is not served: /, 'the log of the supervisor names the limit';
    is_deeply refusal($client->get('/threads/018f2d6e-7c4b-7abc-9def-000000000001')), [ 429, 'limit_exceeded', 'deployments', 1, undef ];
    my $refused = $client->post('/desk/threads', {});
    is_deeply refusal($refused), [ 429, 'limit_exceeded', 'deployments', 1, undef ];
    is $refused->{json}{detail}, $text;
    is sql('select count(*) from agent.deployments'), 1, 'a deployment above the limit is not created';
    $server->stop;
};

subtest 'limits: with a higher one it is served, and those that exist stay' => sub {
    my $server = new_server('AgentLimit deployments 2');
    $server->start;
    my $client = AgentTest::Client->new(url => $server->url);
    is_deeply [ $server->error_log =~ /AGT0455: AgentDeployment (\w+)/g ], ['desk'], 'in the order of httpd.conf';
    is $client->post('/threads', {})->{status}, 200;
    is $client->post('/desk/threads', {})->{status}, 429;
    $server->stop;
    $server = new_server('AgentLimit deployments 0');
    $server->start;
    $client = AgentTest::Client->new(url => $server->url);
    is $client->post('/runs/wait', run_body('hello'))->{status}, 200;
    $server->stop;
};

my $server = new_server("AgentLimit deployments none\nAgentLimit threads 2\nAgentLimit webhooks 0");
$server->start;
my $client = AgentTest::Client->new(url => $server->url);
wait_for('the limits', sub { poll(q{select count(*) from agent.account_limits where name in ('threads', 'webhooks')}) == 2 });
sql('update agent.thread_expiries set expires_at = now()');
wait_for('the threads of other tests to be deleted', sub { poll('select count(*) from agent.threads') == 1 });

subtest 'limits: one thread more than the limit is 429, and a deletion makes room' => sub {
    my @full = (429, 'limit_exceeded', 'threads', 2, undef);
    my $thread = $client->new_thread;
    my $refused = $client->post('/threads', {});
    is_deeply refusal($refused), \@full;
    is $refused->{json}{detail}, 'The account may have at most 2 threads. The operator of the server raises this limit with AgentLimit threads.';
    is_deeply refusal($client->post("/threads/$thread/copy")), \@full, 'a copy';
    is_deeply refusal($client->post('/threads', { metadata => { graph_id => 'agent' }, supersteps => [ { updates => [ { values => {} } ] } ] })), \@full,
        'with supersteps';
    is_deeply refusal($client->post('/runs/batch', [ run_body('hello') ])), \@full, 'a batch';
    is_deeply refusal($client->post('/runs', run_body('hello'))), \@full, 'a stateless run';
    is_deeply refusal($client->post('/threads/018f2d6e-7c4b-7abc-9def-000000000002/runs', run_body('hello', if_not_exists => 'create'))), \@full,
        'a thread that a run creates';
    is $client->post('/threads', { thread_id => $thread, if_exists => 'do_nothing' })->{status}, 200, 'an existing thread is returned at the limit';
    is $client->delete("/threads/$thread")->{status}, 204;
    is $client->post('/threads', {})->{status}, 200;
    is_deeply refusal($client->post('/threads', {})), \@full;
};

subtest 'limits: a run whose webhook would exceed the limit is 429' => sub {
    sql("delete from agent.threads");
    sql("update agent.account_counts set value = 0 where name = 'threads'");
    my $refused = $client->post('/runs/batch', [ run_body('hello', webhook => 'https://example.com/') ]);
    is_deeply refusal($refused), [ 429, 'limit_exceeded', 'webhooks', 0, undef ];
    is_deeply refusal($client->post('/runs', run_body('hello', webhook => 'https://example.com/'))), [ 429, 'limit_exceeded', 'webhooks', 0, undef ];
    is $refused->{json}{detail},
        'The account may have at most 0 webhooks to deliver. The operator of the server raises this limit with AgentLimit webhooks.';
};

subtest 'limits: beyond the limit of stored bytes requests that store are 413, a run ends in this error, and reads go on' => sub {
    sql('delete from agent.threads');
    $server->stop;
    my $full = new_server("AgentLimit threads none\nAgentLimit webhooks none\nAgentLimit stored_bytes 50K");
    $full->start;
    my $of = AgentTest::Client->new(url => $full->url);
    wait_for('the limit', sub { poll(q{select count(*) from agent.account_limits where name = 'stored_bytes'}) == 1 });
    my $thread = $of->new_thread;
    my $run = $of->post("/threads/$thread/runs", run_body('sleep 600000'))->{json}{run_id};
    my $item = { namespace => ['n'], key => 'k', value => { text => join '', map { chr 97 + rand 26 } 1 .. 100_000 } };
    is $of->request('PUT', '/store/items', $item)->{status}, 204;
    sql('update agent.account_measures set due_at = now()');
    wait_for('a measure', sub { poll('select coalesce(max(bytes), 0) from agent.account_measures') > 51_200 });
    my $refused = $of->request('PUT', '/store/items', $item);
    is_deeply refusal($refused), [ 413, 'stored_bytes_exceeded', 'stored_bytes', 51_200, undef ];
    is $refused->{json}{detail},
        'The account may have at most 51200 stored bytes. The operator of the server raises this limit with AgentLimit stored_bytes.';
    is $of->post('/threads', {})->{status}, 413;
    is $of->post('/runs', run_body('hello'))->{status}, 413;
    is $of->post("/threads/$thread/runs", run_body('hello', multitask_strategy => 'enqueue'))->{status}, 413;
    is $of->get("/threads/$thread/runs/$run/join")->{status}, 200, 'the end of the run is reported to those that wait';
    is $of->get("/threads/$thread/runs/$run")->{json}{status}, 'error';
    like sql("select error from agent.runs where run_id = '$run'"), qr/"StoredBytesExceededError".*AgentLimit stored_bytes/;
    wait_for('the runner to be asked to stop it', sub { $full->error_log =~ /AGT0343: the lease of run $run/ });
    is $of->delete('/store/items', { namespace => ['n'], key => 'k' })->{status}, 204;
    sql('update agent.account_measures set due_at = now()');
    wait_for('a measure', sub { poll('select bytes from agent.account_measures') < 51_200 });
    is $of->post('/runs/wait', run_body('hello'))->{status}, 200, 'an account that has deleted something may store again';
    $full->stop;
};

done_testing;
