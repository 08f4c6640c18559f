# SPDX-License-Identifier: Apache-2.0
# Platform hosts: SetHandler agent-platform, with the limiter in front.
use strict;
use warnings;
use AgentTest::Client qw(parse_response read_to_end read_until);
use AgentTest::Database;
use AgentTest::Env qw(build_dir free_port is_root modules_dir root slurp write_file);
use AgentTest::Server;
use Cpanel::JSON::XS;
use Test::More;

my $UUID = '01900000-0000-7000-8000-000000000000';
my $RUN = encode_json({ assistant_id => 'agent', input => { messages => 'hello' } });

# Two names of one server: platform.test in region eu, agent.test.
my $server = AgentTest::Server->new(config => AgentTest::Server::shared_config() . <<'CONF');
Timeout 600
RequestReadTimeout body=600
LoadModule ratelimit_regional_module "${BUILD_DIR}/mod_ratelimit_regional.so"
Include "${ROOT}/conf/ratelimit_regional.conf"
RateLimitEngine Off
<VirtualHost 127.0.0.1:${PORT}>
    ServerName agent.test
</VirtualHost>
<VirtualHost 127.0.0.1:${PORT}>
    ServerName platform.test
    RateLimitEngine On
    RateLimitRegion eu
    <Location "/">
        SetHandler agent-platform
        AgentAllowOrigin https://app.example.com
        AgentMaxBody 8K
    </Location>
    <Location "/mounted">
        AgentPrefix /mounted
    </Location>
    <Location "/closed">
        Require all denied
    </Location>
</VirtualHost>
CONF
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

# request_text('platform.test', 'POST /runs', { 'x-api-key' => 'a' }, $body)
sub request_text {
    my ($host, $what, $headers, $body) = @_;
    my %headers = (Host => $host, Connection => 'close', %{ $headers // {} });
    $headers{'Content-Length'} = length $body if defined $body;
    return "$what HTTP/1.1\r\n" . join('', map { "$_: $headers{$_}\r\n" } sort keys %headers)
        . "\r\n" . ($body // '');
}

sub ask { return parse_response($client->exchange(request_text(@_))) }
sub platform { return ask('platform.test', @_) }

sub error_of {
    my ($answer) = @_;
    return "$answer->{status} " . (ref $answer->{json} eq 'HASH' ? $answer->{json}{code} // '' : '?');
}

# "rule quota left" as the limiter's headers have it.
sub limit_of {
    my ($answer) = @_;
    my ($policy, $limit) = map { $_ // '' } @{ $answer->{headers} }{qw(ratelimit-policy ratelimit)};
    my ($rule, $quota) = $policy =~ /\A"([^"]+)";q=(\d+)/ or return 'none';
    return "$rule $quota " . ($limit =~ /;r=(\d+)/ ? $1 : '?');
}

subtest 'platform hosts: /ok and /info are 200' => sub {
    is_deeply platform('GET /ok')->{json}, { ok => Cpanel::JSON::XS::true },
        'platform hosts: GET /ok returns {"ok":true}';
    is platform('GET /ok?check_db=1')->{status}, 200, 'platform hosts: GET /ok?check_db=1 checks the database';
    my $info = platform('GET /info');
    is_deeply [ sort keys %{ $info->{json} } ], [qw(region server version)],
        'platform hosts: GET /info has the version, the region and no flags of the deployment API';
    is limit_of($info) =~ s/ \d+\z//r, 'ip-high 2000', 'platform hosts: GET /info is counted by its rule';
    my $head = $client->exchange(request_text('platform.test', 'HEAD /info'));
    like $head, qr{\AHTTP/1\.1 200 .*\r\n\r\n\z}s, 'platform hosts: HEAD /info has no body';
    is platform('GET /mounted/info')->{status}, 200, 'platform hosts: AgentPrefix applies';
};

subtest 'platform hosts: what needs a key is 401 after the limiter has counted it' => sub {
    my @answers = map { platform('GET /auth', { 'x-api-key' => 'key-0' }) } 1, 2;
    is error_of($answers[0]), '401 invalid_key', 'platform hosts: GET /auth with another text is 401';
    is_deeply [ map { limit_of($_) } @answers ], [ map { "auth-api 2000 $_" } 1999, 1998 ], 'platform hosts: GET /auth is counted by its rule';
};

subtest 'platform hosts: all other paths are 404 after the limiter has counted them' => sub {
    my @requests = (
        [ 'POST /runs',            'run-create 2000' ],
        [ 'POST /runs/batch',      'runs-batch 2000' ],
        [ 'POST /runs/multipart',  'runs-multipart 6000' ],
        [ 'POST /runs/query',      'run-query-api 15' ],
        [ 'POST /runs/wait',       'default-api 1000' ],
        [ 'POST /runs/stream',     'default-api 1000' ],
        [ 'POST /runs/cancel',     'default-api 1000' ],
        [ 'GET /runs/stats',       'runs-stats 20' ],
        [ "GET /runs/$UUID",       'run-lookup 30' ],
        [ "GET /api/v1/runs/$UUID", 'run-lookup 30' ],
        [ "PATCH /runs/$UUID",     'run-update 2000' ],
        [ "GET /runs/$UUID/join",  'default-api 1000' ],
        [ 'POST /threads',         'default-api 1000' ],
        [ "GET /threads/$UUID",    'default-api 1000' ],
        [ "POST /threads/$UUID/runs", 'default-api 1000' ],
        [ 'GET /repos',            'repos-api 100' ],
        [ 'GET /commits',          'commits-api 2000' ],
        [ 'POST /generate',        'generate-api 30' ],
        [ 'POST /feedback',        'feedback 2000' ],
        [ 'DELETE /sessions',      'deletion-api 10' ],
        [ 'POST /otel/v1/traces',  'otel-traces 2000' ],
        [ 'GET /public/download',  'public-download 5000' ],
        [ 'POST /v1/beacon',       'beacon 2000' ],
    );
    my $number = 0;
    for my $request (@requests) {
        my ($what, $limit) = @{$request};
        $number++;
        my $body = $what =~ /\AP/ ? $RUN : undef;
        my @answers = map { platform($what, { 'x-api-key' => "key-$number" }, $body) } 1, 2;
        is error_of($answers[0]), '404 not_found', "platform hosts: $what is 404";
        is $answers[0]{json}{detail}, "This server has no $what.", "platform hosts: the detail of $what names it";
        my ($quota) = $limit =~ /(\d+)\z/;
        is_deeply [ map { limit_of($_) } @answers ], [ map { "$limit " . ($quota - $_) } 1, 2 ],
            "platform hosts: $what is counted by its rule";
    }
    is sql('select count(*) from agent.runs'), 0, 'platform hosts: POST /runs creates no run';
    is sql('select count(*) from agent.threads'), 0, 'platform hosts: POST /threads creates no thread';
    my @refused = map { platform('DELETE /sessions', { 'x-api-key' => 'deletes' }) } 1 .. 11;
    is $refused[9]{status}, 404, 'platform hosts: the last request of a quota reaches the routes';
    is $refused[10]{status}, 429, 'platform hosts: a request beyond the quota is refused by the limiter';
    is limit_of(platform('GET /x')) =~ s/ \d+\z//r, 'public 100', 'platform hosts: a request without a key is counted by its address';
};

subtest 'platform hosts: other methods are 405 with Allow' => sub {
    for my $path ('/ok', '/info', '/auth') {
        my $answer = platform("POST $path", {}, '{}');
        is error_of($answer), '405 method_not_allowed', "platform hosts: POST $path is 405";
        is $answer->{headers}{allow}, 'GET, HEAD, OPTIONS', "platform hosts: the 405 of POST $path has Allow";
        my $options = platform("OPTIONS $path");
        is "$options->{status} $options->{headers}{allow}", '204 GET, HEAD, OPTIONS',
            "platform hosts: OPTIONS $path is 204 with Allow";
    }
};

subtest 'platform hosts: pages of other origins are restricted' => sub {
    my %page = (Origin => 'https://app.example.com');
    my %json = ('Content-Type' => 'application/json');
    is error_of(platform('POST /runs', { Origin => 'https://evil.example', %json }, $RUN)),
        '403 cross_site_request', 'platform hosts: a POST of another origin is refused';
    is error_of(platform('POST /runs', { %page, 'Content-Type' => 'text/plain' }, $RUN)),
        '415 unsupported_media_type', "platform hosts: a page's body must be application/json";
    is error_of(platform('POST /runs', { %page, %json }, $RUN)), '404 not_found',
        'platform hosts: a POST of an allowed origin reaches the routes';
    my $preflight = platform('OPTIONS /runs', { %page, 'Access-Control-Request-Method' => 'POST' });
    is "$preflight->{status} $preflight->{headers}{'access-control-allow-origin'}",
        '204 https://app.example.com', 'platform hosts: the preflight of an allowed origin is 204';
    my $closed = platform('GET /closed', \%page);
    is error_of($closed), '403 forbidden', 'platform hosts: errors of httpd are JSON';
    is $closed->{headers}{'access-control-allow-origin'}, 'https://app.example.com',
        'platform hosts: errors of httpd have the CORS headers';
    is platform('GET /info', { Origin => 'https://evil.example' })->{headers}{'access-control-allow-origin'},
        undef, 'platform hosts: a GET of another origin has no CORS headers';
};

subtest 'platform hosts: bodies are limited as on agent servers' => sub {
    my $what = 'POST /v1/accounts';
    is error_of(platform($what, {}, 'x' x 8193)), '413 body_too_large', 'platform hosts: a body larger than AgentMaxBody is 413';
    is error_of(platform($what, { 'Transfer-Encoding' => 'gzip, chunked' })), '415 unsupported_encoding',
        'platform hosts: an unknown transfer coding is 415';
    my %outcome = ('POST /runs' => '404 not_found', 'POST /ok' => '405 method_not_allowed');
    is error_of(platform($_, {}, 'x' x 8193)), $outcome{$_}, "platform hosts: the body of one that does not exist does not matter: $_"
        for sort keys %outcome;
    is error_of(platform('GET /ok', { map { ("X-$_" => 'x' x 8000) } 1 .. 5 })),
        '431 request_header_fields_too_large', 'platform hosts: headers of more than 32 KB are 431';
};

subtest 'platform hosts: slow bodies hold no thread' => sub {
    my ($small, $other) = AgentTest::Server->start_with_client('<Location "/">',
        'SetHandler agent-platform', '</Location>', 'Timeout 600', 'RequestReadTimeout body=600');
    # Four times as many as the child has threads.
    my @slow = map {
        my $socket = $other->connection;
        syswrite $socket, "POST /v1/accounts HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
            . "Content-Length: 2\r\nConnection: close\r\n\r\n";
        read_until($socket, qr/\r\n\r\n/);
        $socket;
    } 1 .. 16;
    is $other->get('/ok')->{status}, 200, 'platform hosts: requests are served beside slow bodies';
    syswrite $_, '{}' for @slow;
    is scalar(grep { parse_response(read_to_end($_))->{status} == 403 } @slow), 16,
        'platform hosts: requests with slow bodies are answered when these are complete';
    for my $path ('/x', '/v1/account') {
        my $socket = $other->connection;
        syswrite $socket, "HEAD $path HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n";
        like read_to_end($socket), qr{\AHTTP/1\.1 40[14] .*^Connection: close\r\n}ms, "platform hosts: the body of HEAD $path is not waited for";
    }
};

subtest 'platform hosts: an agent server has none of their routes' => sub {
    my $info = ask('agent.test', 'GET /info');
    ok $info->{json}{flags}, "agent servers: GET /info is the deployment API's";
    is error_of(ask('agent.test', $_)), '404 not_found', "agent servers: $_ is 404"
        for 'GET /auth', 'POST /auth', 'GET /repos', 'GET /commits', 'POST /generate', 'POST /runs/query',
        'POST /runs/multipart', 'GET /runs/stats', 'POST /feedback', 'DELETE /sessions', 'POST /v1/beacon',
        'POST /otel/v1/traces', 'GET /public/download', 'GET /platform';
    is ask('agent.test', 'POST /runs', {}, $RUN)->{status}, 200, 'agent servers: POST /runs creates a run';
    is limit_of(ask('agent.test', 'POST /threads', {}, '{}')), 'none',
        'agent servers: the limits of a platform host do not apply';
};

# Takes mod_dbd's directives out of the server's configuration.
sub remove_database {
    my ($of) = @_;
    my $frame = slurp(root() . '/t/conf/httpd.conf') =~ s/^DBD.*\n//gmr;
    my $file = write_file("$of->{dir}/conf/frame.conf", $frame);
    write_file($of->{conf}, slurp($of->{conf}) =~ s{"\$\{ROOT\}/t/conf/httpd.conf"}{"$file"}r);
    return;
}

subtest 'platform hosts: a server without graphs serves them' => sub {
    for my $has_database (1, 0) {
        my $title = 'platform hosts: without graphs' . ($has_database ? '' : ' and a database');
        my $bare = AgentTest::Server->new(config => <<"CONF");
<Location "/">
    SetHandler agent-platform
</Location>
<Location "/agents">
    SetHandler agent
    AgentPrefix /agents
</Location>
CONF
        remove_database($bare) if !$has_database;
        my ($is_valid, $output) = $bare->check_config;
        ok $is_valid, "$title, the configuration is valid" or diag $output;
        $bare->start;
        my $to = AgentTest::Client->new(url => $bare->url);
        is $to->get('/ok')->{status}, 200, "$title, GET /ok is 200";
        is $to->get('/info')->{status}, 200, "$title, GET /info is 200";
        is error_of($to->post('/runs', $RUN)), '404 not_found', "$title, POST /runs is 404";
        is error_of($to->get('/ok?check_db=1')), $has_database ? '200 ' : '503 database_unavailable',
            "$title, GET /ok?check_db=1 tells whether there is one";
        is $to->get('/agents/ok')->{status}, $has_database ? 200 : 503,
            "$title, SetHandler agent serves if there is a database";
        $bare->graceful;
        is $to->get('/ok')->{status}, 200, "$title, GET /ok is 200 after a graceful restart";
    }
};

# The quick start's own configuration of both regions, without their databases.
subtest 'quick start: the ports of the regions are platform hosts' => sub {
    my %quick = map { $_ => AgentTest::Server->new } qw(us eu);
    my %ports = (PORT_US => free_port(), PORT_EU => $quick{eu}{port});
    for my $region ([ us => 1 ], [ eu => 20 ]) {
        my ($name, $quota) = @{$region};
        my $quick = $quick{$name};
        my %define = (ROOT => root(), RUN_DIR => $quick->{dir}, BUILD_DIR => build_dir(), MODULES => modules_dir(), MODEL => 'demo', %ports,
            PORT => $quick->{port}, REGION => $name, PLATFORM_PORT => $ports{ 'PORT_' . uc $name });
        write_file($quick->{conf}, (map { qq(Define $_ "$define{$_}"\n) } sort keys %define),
            is_root() ? "Define AS_ROOT\n" : (), map { qq(Include "\${ROOT}/conf/quickstart/$_.conf"\n) } 'httpd', $name eq 'us' ? 'agents' : ());
        symlink '../httpd.pid', $quick->pid_file or die $quick->pid_file . ": $!\n";
        $quick->start;
        my $to = AgentTest::Client->new(url => 'http://127.0.0.1:' . $define{PLATFORM_PORT});
        is $to->get('/ok')->{status}, 200, "quick start: region $name serves GET /ok";
        my $info = $to->get('/info')->{json};
        is_deeply [ @{$info}{qw(flags region)} ], [ undef, $name ], "quick start: region $name serves the platform's GET /info";
        my $run = $to->post('/runs', $RUN);
        is error_of($run), '404 not_found', "quick start: POST /runs in region $name is 404";
        my $stats = $to->get('/runs/stats', undef, { 'x-api-key' => 'a' });
        is limit_of($stats), "runs-stats $quota " . ($quota - 1), "quick start: region $name has its limits";
        is $to->get('/ratelimit-status?format=json')->{status}, 200, "quick start: region $name has the limiter's status page";
        is error_of($to->post('/v1/accounts', { name => 'x' })), '503 database_unavailable', "quick start: region $name has sign-up by invitation";
    }
    my $agent = AgentTest::Client->new(url => $quick{us}->url);
    my $info = $agent->get('/info');
    ok $info->{json}{flags}, "quick start: the agent server serves the deployment API's GET /info";
    is limit_of($info), 'none', 'quick start: the agent server is unlimited';
    is error_of($agent->post('/runs', $RUN)), '503 database_unavailable',
        'quick start: POST /runs on the agent server is a route of the deployment API';
    is $agent->get('/ratelimit-status?format=json')->{status}, 200, "quick start: the agent server has the limiter's status page";
};

done_testing;
