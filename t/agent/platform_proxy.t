# SPDX-License-Identifier: Apache-2.0
# A platform host whose other paths are another service's, as mod_agent/PLATFORM.md configures it: ProxyPass to a
# real backend, the limiter in front of all of it.
use strict;
use warnings;
use AgentTest::ApiKey;
use AgentTest::Client qw(parse_response read_to_end);
use AgentTest::Conf qw(location);
use AgentTest::Database;
use AgentTest::Env qw(root slurp);
use AgentTest::Receiver;
use AgentTest::Routes;
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

my $UUID = '01900000-0000-7000-8000-000000000000';
my ($lines) = slurp(root() . '/mod_agent/PLATFORM.md') =~ m{^ *```apache\n((?:(?!```).)*?^ *ProxyPass .*?)^ *```$}ms or die "no ProxyPass in PLATFORM.md\n";
$lines =~ s{^( *)(?=ProxyPass /deployments/ !$)}{$1ProxyPass /deployments/elsewhere/ http://127.0.0.1:1/\n$1}m or die "/deployments/ is not the platform's in PLATFORM.md\n";

my $backend = AgentTest::Receiver->new({ status => 200, headers => "Content-Type: application/json\r\n", body => '{"by":"backend"}' });
my $server = AgentTest::Server->new(config => join '', map { s{/usr/lib/apache2/modules/}{\${MODULES}/}gr =~ s{http://127\.0\.0\.1:\d+}{'http://127.0.0.1:' . $backend->port}ger }
    <<'CONF', location('/', 'SetHandler agent-platform', 'Require all granted'), $lines, <<'CONF',
LoadModule authn_core_module "${MODULES}/mod_authn_core.so"
LoadModule headers_module "${MODULES}/mod_headers.so"
LoadModule ratelimit_regional_module "${BUILD_DIR}/mod_ratelimit_regional.so"
Include "${ROOT}/conf/ratelimit_regional.conf"
RateLimitRegion eu
CONF
<Proxy "*">
    RequestHeader set x-through "the platform host"
</Proxy>
CONF
);
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

# Of an address of its own: those without a key are counted by it.
my $addresses = 1;
sub ask {
    my ($what, $headers, $body) = @_;
    my %headers = (Host => 'localhost', Connection => 'close', %{ $headers // {} });
    $headers{'Content-Length'} = length $body if defined $body;
    my $socket = $client->connection(LocalAddr => '127.0.0.' . ($headers ? 2 : ++$addresses + 2));
    syswrite $socket, "$what HTTP/1.1\r\n" . join('', map { "$_: $headers{$_}\r\n" } sort keys %headers) . "\r\n" . ($body // '');
    return parse_response(read_to_end($socket));
}

sub is_proxied { my ($answer) = @_; return ref $answer->{json} eq 'HASH' && ($answer->{json}{by} // '') eq 'backend' }

# "rule quota left"
sub limit_of {
    my ($answer) = @_;
    my ($rule, $quota) = ($answer->{headers}{'ratelimit-policy'} // '') =~ /\A"([^"]+)";q=(\d+)/ or return 'none';
    my ($left) = $answer->{headers}{ratelimit} =~ /;r=(\d+)/;
    return "$rule $quota $left";
}

# [rule, key, quota], ... of conf/ratelimit_regional.conf, as region eu has them.
my @rules = slurp(root() . '/conf/ratelimit_regional.conf') =~ /^RateLimitRule (\S+) .*\bkey=(\S+) .*\beu=(\d+)\//mg;
my %rules;
while (my ($rule, $key, $quota) = splice @rules, 0, 3) {
    $rules{$rule} = { key => $key, quota => $quota };
}

subtest 'proxied paths: each of the table is limited by its rule, and served by the backend' => sub {
    my @rows = (
        [ 'auth-api',        'GET /auth' ],
        [ 'auth-user',       'GET /auth' ],
        [ 'repos-api',       'GET /repos' ],
        [ 'repos-user',      'GET /repos' ],
        [ 'commits-api',     'GET /commits' ],
        [ 'commits-user',    'GET /commits' ],
        [ 'run-create',      'POST /runs' ],
        [ 'runs-batch',      'POST /runs/batch' ],
        [ 'runs-multipart',  'POST /runs/multipart' ],
        [ 'run-query-api',   'POST /runs/query' ],
        [ 'run-query-user',  'POST /runs/query' ],
        [ 'runs-stats',      'GET /runs/stats' ],
        [ 'run-lookup',      "GET /runs/$UUID" ],
        [ 'run-lookup',      "GET /api/v1/runs/$UUID" ],
        [ 'run-update',      "PATCH /runs/$UUID" ],
        [ 'otel-traces',     'POST /otel/v1/traces' ],
        [ 'charts-api',      'POST /a/charts/preview' ],
        [ 'charts-user',     'POST /a/charts/preview' ],
        [ 'examples',        'GET /a/examples' ],
        [ 'feedback',        'POST /feedback' ],
        [ 'deletion-api',    'DELETE /sessions' ],
        [ 'deletion-api',    'POST /a/trigger' ],
        [ 'deletion-user',   'DELETE /sessions' ],
        [ 'deletion-user',   'POST /a/trigger' ],
        [ 'generate-api',    'POST /generate' ],
        [ 'generate-user',   'POST /generate' ],
        [ 'beacon',          'POST /v1/beacon' ],
        [ 'ip-high',         'POST /x/v1/metadata/submit' ],
        [ 'ip-high',         'OPTIONS /x' ],
        [ 'public-download', 'GET /public/download/x' ],
        [ 'default-api',     'GET /anything' ],
        [ 'default-api',     'GET /v1/accountant' ],
        [ 'default-user',    'GET /anything' ],
        [ 'public',          'GET /anything' ],
    );
    is_deeply [ sort keys %{ { map { $_->[0] => 1 } @rows } } ], [ sort keys %rules ], 'proxied paths: these are all rules of the table';
    is scalar(keys %rules), 29, 'proxied paths: the table has 29';
    my $valid = create_key(create_account());
    my $number = 0;
    my %counted;
    for my $row (@rows) {
        my ($rule, $what) = @{$row};
        my ($key, $quota) = @{ $rules{$rule} }{qw(key quota)};
        $number++;
        # Each has an API key or a user of its own; one key is valid, for what needs one. Without both the address is new.
        my %headers = $key eq 'user+ip' ? ('x-user-id' => "user-$number") : ('x-api-key' => "key-$number");
        if ($what =~ m{ /repos\z}) {
            %headers = $key eq 'user+ip' ? (%headers, Authorization => "Bearer $valid") : ('x-api-key' => $valid);
        }
        my $answer = ask($what, $rule eq 'public' ? undef : \%headers, $what =~ /\AP/ ? '{}' : undef);
        is is_proxied($answer) ? 1 : 0, $what =~ m{ /auth\z} ? 0 : 1, "proxied paths: $what is the backend's, but for /auth" or diag $answer->{status}, $answer->{body};
        is limit_of($answer), "$rule $quota " . ($quota - ++$counted{ $key eq 'ip' ? $rule : $number }), "proxied paths: $what is counted by the rule $rule";
    }
    is_deeply [ map { "$_->{method} $_->{path}" } $backend->requests ], [ grep { !m{ /auth\z} } map { $_->[1] } @rows ], 'proxied paths: the backend got each of them once';
};

subtest 'proxied paths: a request beyond the quota is refused before the backend' => sub {
    my $before = () = $backend->requests;
    my @answers = map { ask('POST /runs/query', { 'x-api-key' => 'many' }, '{}') } 1 .. 17;
    is scalar(grep { is_proxied($_) } @answers[ 0 .. 14 ]), 15, 'refused: not those of the quota';
    for my $answer (@answers[ 15, 16 ]) {
        is $answer->{status}, 429, 'refused: then 429';
        is $answer->{headers}{'content-type'}, 'application/problem+json', 'refused: with the body of the limiter';
        like $answer->{headers}{'retry-after'}, qr/\A(?:[1-9]|1[01])\z/, 'refused: Retry-After';
        is limit_of($answer), 'run-query-api 15 0', 'refused: the rule and what is left';
    }
    is scalar(() = $backend->requests), $before + 15, 'refused: the backend got no more';
};

subtest 'proxied paths: the backend gets the request as it is but for the key, once' => sub {
    my $body = join '', map { chr(32 + $_ % 90) } 1 .. 300_000;
    my $before = () = $backend->requests;
    is ask('POST /runs/multipart?a=b%2Fc', { 'x-api-key' => 'k', 'Content-Type' => 'text/x' }, $body)->{status}, 200, 'request: the response of the backend is served';
    my @got = ($backend->requests)[ $before .. $before + 1 ];
    is $got[1], undef, 'request: the backend got one';
    ok $got[0]{body} eq $body, 'request: the backend got the whole body';
    is_deeply [ $got[0]{path}, @{ $got[0]{headers} }{qw(x-api-key content-type)} ], [ '/runs/multipart?a=b%2Fc', undef, 'text/x' ],
        'request: query and headers, but not the key';
    is $got[0]{headers}{'x-through'}, 'the platform host', 'request: with what <Proxy> adds';
};

subtest 'proxied paths: the backend gets no key as a Bearer token, and the credentials of its own users' => sub {
    my $key = create_key(create_account());
    my $sent = sub { ask(@_); return (($backend->requests)[-1])->{headers} };
    is $sent->('GET /anything', { Authorization => "Bearer $key" })->{authorization}, undef, 'bearer: where no key is needed';
    is $sent->('GET /repos', { Authorization => "Bearer $key" })->{authorization}, undef, 'bearer: where a key is needed';
    my $both = $sent->('GET /repos', { Authorization => "Bearer $key", 'x-api-key' => $key });
    is_deeply [ @{$both}{qw(authorization x-api-key)} ], [ undef, undef ], 'bearer: both headers';
    is $sent->('GET /anything', { Authorization => "$_$key" })->{authorization}, undef, "bearer: the key after '$_'" for '', "Token\t", 'Basic YTpi, Bearer ', 'Basic YTpi,';
    is $sent->('GET /anything', { Authorization => $_ })->{authorization}, $_, "bearer: $_ is left" for 'Basic YTpi', 'Bearer of.the.service', 'Bearer of.theag1_service.x';
};

subtest "proxied paths: the platform's own routes are not" => sub {
    my $before = () = $backend->requests;
    my $key = create_key(create_account());
    for my $route (routes('platform')) {
        my $what = $route->{name} =~ s/\{key_id\}/x/r;
        my $answer = ask($what, { 'x-api-key' => $key }, $what =~ /\AP/ ? '{}' : undef);
        ok !is_proxied($answer) && $answer->{status} != 404 || $what =~ m{/deletion|keys/x}, "own routes: $what is the platform's";
        ok !is_proxied(ask($what =~ s/\A\w+/PUT/r, undef, '{}')), "own routes: so are other methods of $route->{path}";
    }
    is ask('GET /auth', { 'x-api-key' => $key })->{json}{key_id}, key_id($key), 'own routes: /auth verifies the key';
    is_deeply [ sort keys %{ ask('GET /info')->{json} } ], [qw(region server version)], 'own routes: /info is that of a platform host';
    is scalar(() = $backend->requests), $before, 'own routes: the backend got none';
};

subtest 'proxied paths: AuthType AgentKey decides before the backend' => sub {
    my $before = () = $backend->requests;
    my %key = map { $_ => create_key(create_account(), scopes => [$_]) } qw(read admin);
    my $none = ask('GET /repos');
    is "$none->{status} $none->{json}{code}", '401 unauthorized', 'keys: none is 401, in the body of the API';
    is ask('GET /repos', { 'x-api-key' => 'text' })->{json}{code}, 'invalid_key', 'keys: another text';
    my $unscoped = ask('GET /repos', { 'x-api-key' => $key{admin} });
    is "$unscoped->{status} $unscoped->{json}{code}", '403 scope_required', 'keys: one without the scope, in the body of the API';
    is $unscoped->{headers}{'www-authenticate'}, undef, 'keys: a valid key is not asked for another one';
    my $foreign = ask('POST /repos', { 'x-api-key' => print_key('sk', random_digits(22), random_digits(43), 'mars'), 'Content-Length' => 1000 });
    is "$foreign->{status} $foreign->{json}{code}", '403 wrong_region', 'keys: one of another region, before the body is read';
    is scalar(() = $backend->requests), $before, 'keys: the backend got none of them';
    ok is_proxied(ask('GET /repos', { 'x-api-key' => $key{read} })), 'keys: a valid one is let through';
};

subtest 'proxied paths: a deployment may be served by another host' => sub {
    my $before = () = $backend->requests;
    ok is_proxied(ask('GET /deployments/elsewhere/ok')), 'deployments: a path of ProxyPass is not a name without a deployment';
    is +(ask('GET /deployments/nowhere/ok'))->{status}, 401, 'deployments: any other name is';
    is scalar(() = $backend->requests), $before + 1, 'deployments: the backend got the first only';
};

subtest 'the limiter counts the key that the authentication verifies' => sub {
    my ($key, $other) = map { create_key(create_account()) } 1, 2;
    my $of = sub {
        my ($headers) = @_;
        my $answer = ask('GET /auth', $headers);
        return join ' ', $answer->{json}{key_id} // $answer->{json}{code}, limit_of($answer) =~ /(\S+) \S+ (\d+)\z/;
    };
    # "key-id rule left"; the rule and what is left for a new key.
    my ($rule, $left) = (split / /, $of->({ 'x-api-key' => $key }))[ 1, 2 ];
    my $expect = sub { my ($of_key, $less) = @_; return join ' ', key_id($of_key), $rule, $left - $less };
    is $of->({ 'x-api-key' => $key }), $expect->($key, 1), 'same key: a second request of it';
    is $of->({ 'x-api-key' => $other }), $expect->($other, 0), 'same key: another key of the same address has a count of its own';
    is $of->({ 'x-api-key' => $key, Authorization => 'Basic YTpi' }), $expect->($key, 2), 'same key: x-api-key decides, beside another scheme';
    is $of->({ 'x-api-key' => $key, Authorization => "Bearer $key" }), $expect->($key, 3), 'same key: in both headers it is counted once';
    is +(split / /, $of->({ 'x-api-key' => $key, Authorization => "Bearer $other" }))[0], 'invalid_key', 'same key: different keys are refused';
    is $of->({ 'x-api-key' => $key }), $expect->($key, 5), 'same key: a request with different keys is counted for x-api-key';
    is $of->({ 'x-api-key' => $other }), $expect->($other, 1), 'same key: a request with different keys is not counted for the other one';
    my ($id, $public) = split / /, $of->({ Authorization => "Bearer $key" });
    is "$id $public", key_id($key) . ' public', 'same key: as a Bearer token alone it is verified, and counted by address';
};

subtest 'proxied paths: a key of another region is refused on each of them, before the body is read' => sub {
    my $before = () = $backend->requests;
    my $foreign = print_key('sk', random_digits(22), random_digits(43), 'mars');
    for my $what ('POST /feedback', 'POST /runs', 'PUT /%61nything?x=1', 'PATCH /v1/accountant', 'OPTIONS /x', 'GET /anything') {
        for my $headers ({ 'x-api-key' => $foreign }, { Authorization => "Bearer $foreign" }) {
            # The client would keep the connection, and those without a body leave nothing on it.
            my $answer = ask($what, { %{$headers}, Connection => 'keep-alive', $what =~ /\AP/ ? ('Content-Length' => 1000) : () });
            is "$answer->{status} $answer->{json}{code} $answer->{json}{home_region}", '403 wrong_region mars', "foreign: $what, @{[ keys %{$headers} ]}";
            is lc $answer->{headers}{connection}, 'close', "foreign: $what, the connection is closed";
        }
    }
    is scalar(() = $backend->requests), $before, 'foreign: the backend got none of them';
    ok is_proxied(ask('POST /feedback', { 'x-api-key' => print_key('sk', random_digits(22), random_digits(43)) }, '{}')), 'foreign: one of this region is let through';
};

subtest 'proxied paths: while the backend is down they are 502 or 503 as JSON, and the platform is served' => sub {
    $backend->stop;
    my $answer = ask('POST /feedback', { 'x-api-key' => 'k' }, '{}');
    like $answer->{status}, qr/\A50[23]\z/, 'down: an error of a gateway';
    ok $answer->{json}{code}, 'down: in the body of the API' or diag $answer->{body};
    is ask('GET /ok')->{status}, 200, 'down: GET /ok is 200';
};

undef $server;
done_testing;
