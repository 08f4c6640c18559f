# SPDX-License-Identifier: Apache-2.0
# AgentLimit: the error of a request that would exceed a limit of its account, and what it changes.
use strict;
use warnings;
use AgentTest::ApiKey;
use AgentTest::Client qw(read_until run_body);
use AgentTest::Conf qw(one_child);
use AgentTest::Database;
use AgentTest::Gate;
use AgentTest::Postgres;
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

my $postgres = AgentTest::Postgres->new;
local $ENV{PGHOST} = $postgres->host;
my $shop = create_account();
my $gate = AgentTest::Gate->new;
# The limits of waiting requests are those of one child.
my $server = AgentTest::Server->new(database => $postgres->conninfo, config => join '', one_child(40), $gate->graph, <<"CONF");
AgentRunner "\${BUILD_DIR}/agent-runner"
AgentMaxWaitersPerAddress 0
AgentLimit queued_runs 3
AgentLimit queued_runs 1000 account=$shop
AgentLimit keys 1 account=$shop
AgentLimit running_runs 2
AgentLimit waiting_requests 0
AgentLimit streams 1
<Location "/">
    SetHandler agent
    Require all granted
</Location>
CONF
$server->start;
my $client = AgentTest::Client->new(url => $server->url);
wait_for('the limits to be stored', sub { poll('select count(*) from agent.account_limits') == 4 });

sub refusal {
    my ($response) = @_;
    return [ $response->{status}, @{ $response->{json} }{qw(code limit value)}, $response->{headers}{'retry-after'} ];
}

subtest 'limits: a server stores those of the schema' => sub {
    is sql('select string_agg(account_id || name || value, $$ $$ order by account_id, name) from agent.account_limits'),
        "00000000-0000-0000-0000-000000000000queued_runs3 00000000-0000-0000-0000-000000000000running_runs2 ${shop}keys1 ${shop}queued_runs1000";
};

subtest 'limits: one run more than the limit is 429 with the limit, and changes nothing' => sub {
    my @runs = map { $client->start_run('use gate {}', assistant_id => 'gated') } 1 .. 3;
    $gate->wait_calls(2);
    is sql("select count(*) from agent.run_queue where state = 'ready'"), 1, 'one more than may execute is ready';
    my $thread = $client->new_thread;
    my $refused = $client->post("/threads/$thread/runs", run_body('hello', assistant_id => 'gated'));
    is_deeply refusal($refused), [ 429, 'limit_exceeded', 'queued_runs', 3, 5 ];
    is $refused->{json}{detail},
        'The account may have at most 3 unfinished runs. The operator of the server raises this limit with AgentLimit queued_runs.';
    is $client->get("/threads/$thread")->{json}{status}, 'idle';
    is_deeply refusal($client->post('/runs', run_body('hello', assistant_id => 'gated'))), [ 429, 'limit_exceeded', 'queued_runs', 3, 5 ];
    is_deeply refusal($client->post('/runs/batch', [ run_body('hello', assistant_id => 'gated') ])), [ 429, 'limit_exceeded', 'queued_runs', 3, 5 ];
    is sql('select count(*) from agent.runs'), 3;
    $gate->open;
    $gate->wait_calls(1);
    $gate->open;
    wait_for('the runs to end', sub { poll('select count(*) from agent.run_queue') == 0 });
    is $client->post("/threads/$thread/runs", run_body('hello', assistant_id => 'gated'))->{status}, 200, 'a run is created when others have ended';
    wait_for('the run to end', sub { poll('select count(*) from agent.run_queue') == 0 });
};

subtest 'limits: one stream more than the limit is refused, and a request to wait' => sub {
    my $thread = $client->new_thread;
    my $open = $client->begin(GET => "/threads/$thread/stream");
    read_until($open, qr/\r\n\r\n/);
    is_deeply refusal($client->get("/threads/$thread/stream")), [ 429, 'limit_exceeded', 'streams', 1, 5 ];
    my $path = "/threads/$thread/runs";
    is_deeply refusal($client->post("$path/stream", run_body('hello'))), [ 429, 'limit_exceeded', 'streams', 1, 5 ];
    is_deeply refusal($client->post("$path/wait", run_body('hello'))), [ 429, 'limit_exceeded', 'waiting_requests', 0, undef ];
    is $client->get($path)->{body}, '[]', 'a refused request creates no run';
    close $open;
    ok wait_for('the stream to end', sub {
        my $next = $client->begin(GET => "/threads/$thread/stream");
        return read_until($next, qr/\r\n\r\n/) =~ m{\AHTTP/1.1 200};
    }), 'the end of a stream makes room for another one';
};

subtest 'limits: those of keys hold for operators too' => sub {
    my $create = sub { return sql("select code from agent.create_api_key('$_[0]', '$shop', decode(repeat('ab', 32), 'hex'), 'service', 'n', null, null, '{run}', null)") };
    is $create->('0' x 22), 'ok';
    is $create->('1' x 22), 'limit_exceeded';
};

# A host without graphs, which has these limits.
sub start_platform {
    my ($limits) = @_;
    my $host = AgentTest::Server->new(database => $postgres->conninfo, config => <<"CONF");
LoadModule authn_core_module "\${MODULES}/mod_authn_core.so"
$limits
<Location "/">
    SetHandler agent-platform
    Require all granted
</Location>
CONF
    $host->start;
    return $host;
}

sub stored {
    my ($name, $account) = @_;
    return sql("select coalesce(value::text, 'none') from agent.account_limits where name = '$name' and account_id = '$account'");
}

my $NIL = '00000000-0000-0000-0000-000000000000';
my $tools = create_account();
my $admin = create_key($tools, scopes => ['admin']);

sub ask_for_key {
    my ($host) = @_;
    my $of = AgentTest::Client->new(url => $host->url);
    return $of->post('/v1/account/keys', { kind => 'service', name => 'n', scopes => ['read'] }, { 'x-api-key' => $admin });
}

subtest 'limits: those of a host without graphs take effect, and others stay' => sub {
    my $host = start_platform('AgentLimit keys 2');
    wait_for('its limit', sub { stored('keys', $NIL) eq '2' });
    is ask_for_key($host)->{status}, 200;
    my $refused = ask_for_key($host);
    is_deeply refusal($refused), [ 429, 'limit_exceeded', 'keys', 2, undef ];
    is stored('queued_runs', $NIL), 3, 'a limit that it does not name is that of the other host';
    is stored('keys', $shop), 1;
    $server->graceful;
    wait_for('new children', sub { $client->get('/ok')->{status} == 200 });
    is stored('keys', $NIL), 2, 'a host that does not name this one leaves it';
    $host->stop;
};

subtest 'limits: that of the host that started last holds, and its log says what it replaces' => sub {
    my $host = start_platform("AgentLimit keys 3\nAgentLimit queued_runs none account=$shop");
    wait_for('its limits', sub { stored('keys', $NIL) eq '3' && stored('queued_runs', $shop) eq 'none' });
    like $host->error_log, qr/AGT0413: AgentLimit: keys 3 replaces 2 in the database/;
    is +(() = $host->error_log =~ /AGT0413/g), 2, 'the log has one line for each limit that is replaced';
    is ask_for_key($host)->{status}, 200;
    is ask_for_key($host)->{status}, 429;
    $host->stop;
    $host = start_platform('AgentLimit keys none');
    wait_for('its limit', sub { stored('keys', $NIL) eq 'none' });
    is ask_for_key($host)->{status}, 200, 'AgentLimit NAME none removes a limit';
    $host->stop;
};

subtest 'limits: a host that connects again is as old as its start, by the clock of the database' => sub {
    my $host = start_platform('AgentLimit keys 7');
    wait_for('its limit', sub { stored('keys', $NIL) eq '7' });
    my $between = sql('select clock_timestamp()');
    my $at = sub { return sql("select configured_at $_[0] from agent.account_limits where name = 'keys' and account_id = '$NIL'") };
    my $first = $at->('');
    # As a database that was restored.
    sql("delete from agent.account_limits where name = 'keys' and account_id = '$NIL'");
    sql('select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()');
    wait_for('its limit again', sub { ask_for_key($host); ($at->('is not null') // '') eq 't' });
    is $at->("< '$between'"), 't', 'the start that a limit stores was before the new connection';
    is $at->("between '$first'::timestamptz - interval '2 seconds' and '$first'::timestamptz + interval '2 seconds'"), 't', 'the start that a limit stores is that of the first connection';
    $host->stop;
};

subtest 'limits: the supervisor stores them too when it connects, though no request does' => sub {
    # As a database that was restored.
    sql("delete from agent.account_limits where name = 'running_runs'");
    sql(q{select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'agent supervisor'});
    ok wait_for('its limit again', sub { (poll("select value from agent.account_limits where name = 'running_runs'") // 0) == 2 });
};

undef $server;
done_testing;
