# SPDX-License-Identifier: Apache-2.0
# Regions: a database of another region is not served, a key of another region is refused
# before the body is read, and the page on which a person chooses a region.
use strict;
use warnings;
use AgentTest::ApiKey;
use AgentTest::Client qw(parse_response read_to_end run_body);
use AgentTest::Database;
use AgentTest::Env qw(root slurp);
use AgentTest::Postgres;
use AgentTest::Process qw(is_alive);
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

my $UUID = '01900000-0000-7000-8000-000000000000';

# A separate cluster, which this test stops; its database is one of region eu.
my $postgres = AgentTest::Postgres->new;
local $ENV{PGHOST} = $postgres->host;

# The database is then one that was restored from a dump of that region.
sub set_region {
    my ($name) = @_;
    return sql("set session_replication_role = replica; update agent.region set region = '$name';
        update agent.accounts set home_region = '$name'");
}
set_region('eu');

my $URLS = <<'CONF';
AgentRegionURL us https://us.example.com https://us.api.example.com https://us.beacon.example.com
AgentRegionURL eu https://eu.example.com https://eu.api.example.com https://eu.beacon.example.com
CONF

sub new_server {
    my (@lines) = @_;
    return AgentTest::Server->new(database => $postgres->conninfo,
        config => join '', AgentTest::Server::shared_config(), map { "$_\n" } @lines);
}

# "403 wrong_region"
sub outcome {
    my ($answer) = @_;
    return "$answer->{status} " . (ref $answer->{json} eq 'HASH' ? $answer->{json}{code} // '-' : '-');
}

subtest 'start: httpd does not start with a database of another region' => sub {
    my $agent = new_server('AgentRegion us');
    my $platform = AgentTest::Server->new(database => $postgres->conninfo,
        config => qq(AgentRegion us\n<Location "/">\nSetHandler agent-platform\n</Location>\n));
    my $default = new_server();
    for my $case ([ 'with graphs', $agent, 'us' ], [ 'without graphs', $platform, 'us' ], [ 'without AgentRegion', $default, 'local' ]) {
        my ($what, $server, $region) = @{$case};
        my ($status) = $server->control('-k', 'start');
        isnt $status, 0, "start: $what, httpd fails";
        like $server->error_log, qr/AGT0412: httpd does not start: the database belongs to region eu, this server to region $region \(AgentRegion\)/,
            "start: $what, the log says why";
        ok !$server->httpd_pid, "start: $what, no httpd is left";
    }
    my ($is_valid) = $agent->check_config;
    ok $is_valid, 'start: the configuration itself is valid';
};

my $account = create_account();

subtest 'start: a Require of an account that the database does not have is warned of' => sub {
    my $with = new_server('AgentRegion eu', $URLS, 'LoadModule authn_core_module "${MODULES}/mod_authn_core.so"',
        '<Location "/keys">', 'AuthType AgentKey', "Require agent-account $account $UUID", '</Location>',
        '<Location "/many">', 'AuthType AgentKey', "Require agent-account $account @{[ map { substr($UUID, 0, -1) . $_ } 1 .. 6 ]}", '</Location>',
        '<Location "/others">', 'AuthType AgentKey', '<RequireAll>', "Require not agent-account \U$UUID", 'Require agent-scope read', '</RequireAll>', '</Location>',
        (map { ("<AuthzProviderAlias agent-account $_>", '</AuthzProviderAlias>') } "named $UUID", qq(both "$account $UUID"), "known $account"));
    $with->start;
    is_deeply [ $with->error_log =~ /AGT0458: Require agent-account: expected accounts of this region, got (.+) at \S+httpd\.conf:\d+: no key belongs to (?:it|them)$/mg ],
        [ "'$UUID'", join(', ', map { "'" . substr($UUID, 0, -1) . "$_'" } 1 .. 3) . ' and 3 more', "'\U$UUID'", ("'$UUID'") x 2 ],
        'start: each line and each alias that names some, once, and no account that exists';
};

subtest 'start: an AgentLimit of an account that the database does not have is warned of' => sub {
    my $with = new_server('AgentRegion eu', $URLS, "AgentLimit keys 5 account=$account", "AgentLimit streams 5 account=$UUID", "AgentLimit queued_runs none account=$UUID", 'AgentLimit threads 5');
    $with->start;
    is_deeply [ $with->error_log =~ /AGT0459: AgentLimit: expected an account of this region, got '(\S+)' at \S+httpd\.conf:\d+: /g ], [ ("account=$UUID") x 2 ],
        'start: each line that names it, and no account that exists';
};

subtest 'wrong region: the access log skips the request before an internal redirect, also on a server without regions' => sub {
    set_region('local');
    my $with = new_server('LoadModule authn_core_module "${MODULES}/mod_authn_core.so"', 'LoadModule rewrite_module "${MODULES}/mod_rewrite.so"',
        'CustomLog "${DIR}/logs/access_log" "%U" env=!agent_wrong_region',
        '<Location "/keys">', 'AgentPrefix /keys', 'AuthType AgentKey', 'Require agent-scope read', '</Location>',
        '<Location "/moved">', 'SetHandler None', 'RewriteEngine On', "RewriteRule ^ /keys/threads/$UUID", '</Location>');
    $with->start;
    my $to = AgentTest::Client->new(url => $with->url);
    is outcome($to->get('/moved/x', undef, { 'x-api-key' => print_key('sk', random_digits(22), random_digits(43), 'us') })), '403 wrong_region', 'wrong region: after a redirect';
    $to->get('/moved/last-one');
    wait_for('the line of the last request', sub { slurp("$with->{dir}/logs/access_log") =~ /last-one/ });
    is slurp("$with->{dir}/logs/access_log"), "/moved/last-one\n", 'wrong region: the line of the first request is skipped';
    undef $with;
    set_region('eu');
};

my $server = new_server('AgentRegion eu', $URLS, 'LogLevel warn agent:debug',
    'LoadModule authn_core_module "${MODULES}/mod_authn_core.so"',
    'CustomLog "${DIR}/logs/all_requests" "%U %{agent_wrong_region}e"',
    'CustomLog "${DIR}/logs/access_log" "%h %r" env=!agent_wrong_region',
    '<Location "/keys">', 'AgentPrefix /keys', "AgentDeployment shop account=$account", 'AuthType AgentKey', 'Require agent-account ' . $account, '</Location>',
    '<Location "/granted">', 'AgentPrefix /granted', "AgentDeployment shop account=$account", 'AuthType AgentKey', 'Require all granted', '</Location>',
    '<Location "/platform">', 'AgentPrefix /platform', 'SetHandler agent-platform', '</Location>',
    '<Location "/files">', 'SetHandler None', 'AuthType AgentKey', 'Require agent-scope read', '</Location>',
    '<Location "/open">', 'SetHandler None', '</Location>', 'LoadModule alias_module "${MODULES}/mod_alias.so"',
    'Redirect /moved http://elsewhere.example/', '<Location "/keys/moved">', 'Redirect /keys/moved http://elsewhere.example/', '</Location>',
    '<Location "/denied">', 'Require all denied', '</Location>');
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

subtest 'regions: GET /info of both APIs has the region' => sub {
    is $client->get('/info')->{json}{region}, 'eu', 'regions: of an agent server';
    my $info = $client->get('/platform/info')->{json};
    is_deeply [ @{$info}{qw(region web_url api_url beacon_url)} ],
        [ 'eu', 'https://eu.example.com', 'https://eu.api.example.com', 'https://eu.beacon.example.com' ],
        'regions: that of a platform host has its addresses too';
};

# ---- keys of other regions ----

my ($id, $secret) = (random_digits(22), random_digits(43));
my $foreign = print_key('sk', $id, $secret, 'us');
my $own = create_key($account);
sub with { return { 'x-api-key' => $_[0] } }

# A request whose body is announced and never sent.
sub announce {
    my ($path, $key, $of) = @_;
    my $socket = ($of // $client)->connection;
    syswrite $socket, "POST $path HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        . "x-api-key: $key\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n";
    return parse_response(read_to_end($socket));
}

subtest 'wrong region: a key of another region is refused before the body is read' => sub {
    for my $path (qw(/keys/threads /granted/threads /threads /platform/runs /keys/nothing /files/x /open/x /denied/threads
        /threads/x%2fy /platform/v1/%2fx /x%00y /moved/x)) {
        my $answer = announce($path, $foreign);
        is $answer->{status}, 403, "wrong region: $path";
        is_deeply $answer->{json}, { detail => 'This key belongs to region us, whose API is https://us.api.example.com.', code => 'wrong_region', home_region => 'us',
            api_url => 'https://us.api.example.com', beacon_url => 'https://us.beacon.example.com' }, "wrong region: $path, the body names the home";
        is_deeply [ map { lc $_ } @{ $answer->{headers} }{qw(x-agent-home-region link connection)} ],
            [ 'us', '<https://us.api.example.com>; rel="alternate"', 'close' ], "wrong region: $path, so do the headers";
    }
    is outcome($client->get('/threads', undef, { Authorization => "Bearer $foreign" })), '403 wrong_region', 'wrong region: as a Bearer token';
    for my $headers ([ 'another token', $foreign, 'Bearer a.b.c' ], [ 'in the other header', 'sk-other', "Bearer $foreign" ],
        [ 'second in a list', "sk-other, $foreign" ], [ 'twice', "$foreign,$foreign" ],
        [ 'a key of this region', $own, "Bearer $foreign" ], [ 'a key of this region, and a word after it', $own, "Bearer $foreign x" ])
    {
        for my $path (qw(/threads /keys/threads)) {
            my ($beside, $key, $bearer) = @{$headers};
            is outcome($client->post($path, {}, { 'x-api-key' => $key, $bearer ? (Authorization => $bearer) : () })), '403 wrong_region',
                "wrong region: $path, beside other words: $beside";
        }
    }
    is outcome($client->post('/platform/v1/accounts', { name => 'x' }, with($foreign))), '403 wrong_region', 'wrong region: a sign-up needs no key, but has data';
    is $client->get($_, undef, with($foreign))->{status}, 200, "wrong region: $_, a route without data, needs no key"
        for qw(/ok /info /platform/ok /platform/info /platform/);
    is outcome($client->get("/keys/threads/$UUID", undef, with($own))), '404 thread_not_found', 'wrong region: a key of this region is admitted';
    is outcome($client->get("/threads/$UUID", undef, with($own))), '404 thread_not_found', 'wrong region: also where none is required';
};

subtest 'wrong region: the connection is closed, also of a request without a body whose client would keep it' => sub {
    for my $path ("/threads/$UUID", "/keys/threads/$UUID", '/platform/auth', '/files/x', '/open/x', '/moved/x', '/keys/moved/x', '/nothing', '/platform/nothing') {
        my $socket = $client->connection;
        syswrite $socket, "GET $path HTTP/1.1\r\nHost: localhost\r\nx-api-key: $foreign\r\n\r\n";
        my $answer = parse_response(read_to_end($socket));
        is outcome($answer), '403 wrong_region', "wrong region: GET $path";
        is lc($answer->{headers}{connection} // ''), 'close', "wrong region: GET $path, the connection is closed";
    }
};

subtest 'wrong region: a key of an unknown region is an unknown key' => sub {
    my $get = sub { $client->get("/keys/threads/$UUID", undef, with($_[0])) };
    my $unknown = $get->(print_key('sk', random_digits(22), random_digits(43), 'eu'));
    my $elsewhere = $get->(print_key('sk', random_digits(22), random_digits(43), 'mars'));
    is outcome($elsewhere), '401 unknown_key', 'wrong region: of no AgentRegionURL';
    is $elsewhere->{body}, $unknown->{body}, 'wrong region: the answer is that to an unknown key';
    is $elsewhere->{headers}{'x-agent-home-region'}, undef, 'wrong region: no header names it';
    is outcome($get->(print_key('sk', key_id($own, 3), key_id($own, 4), 'mars'))), '401 unknown_key', 'wrong region: a valid key under another name';
    is outcome($client->get("/threads/$UUID", undef, with(print_key('sk', $id, $secret, 'mars')))), '404 thread_not_found',
        'wrong region: where no key is required it is any text';
};

subtest 'wrong region: no failure is counted' => sub {
    my $guesser = AgentTest::Client->new(url => $server->url, local_address => '127.0.0.9');
    my %seen;
    $seen{ outcome($guesser->get("/keys/threads/$UUID", undef, with($foreign))) }++ for 1 .. 50;
    is_deeply \%seen, { '403 wrong_region' => 50 }, 'wrong region: 50 requests';
    is outcome($guesser->get("/keys/threads/$UUID", undef, with($own))), '404 thread_not_found', 'wrong region: a key of this region is tried';
};

subtest 'wrong region: nothing of the request is logged but key ID and region' => sub {
    my $canary = 'canary-of-the-request';
    announce("/keys/threads/$canary?q=$canary", $foreign);
    is outcome($client->get("$_/$canary?q=$canary", undef, { %{ with($foreign) }, Referer => "http://$canary.example/" })), '403 wrong_region', "wrong region: $_, a path that httpd would refuse itself"
        for '/..', '/%2e%2e', '/a//../..', '/x%zz', '/%';
    like $client->exchange("GET /info?q=$canary HTTP/1.1\r\nHost: $canary.example\r\nx-api-key: $foreign\r\nReferer: http://$canary.example/\r\nConnection: close\r\n\r\n"),
        qr{\AHTTP/1\.1 421 .*misdirected_request}s, 'wrong region: a route without data is refused for another reason';
    $client->get('/threads/seen');
    my ($all, $access) = map { my $log = "$server->{dir}/logs/$_"; wait_for("a line of $log", sub { slurp($log) =~ m{/threads/seen} }); slurp($log) }
        qw(all_requests access_log);
    like $all, qr{^/keys/threads/$canary us$}m, 'wrong region: the variable agent_wrong_region has the region';
    unlike $access, qr/$canary/, 'wrong region: an access log with env=!agent_wrong_region skips it';
    my $log = $server->error_log;
    like $log, qr/\] AGT0105: wrong_region: key $id of region us$/m, 'wrong region: the error log has key ID and region';
    like $log, qr/\] AGT0105: misdirected_request: a key of another region$/m, 'wrong region: of another refusal the code';
    unlike $log, qr/$canary|\Q$secret\E/, 'wrong region: the error log has nothing else of the request';
    unlike +(join '', grep { /AGT0105/ } split /^/, $log), qr/\[client /, 'wrong region: not the address either';
};

# Each LogFormat, CustomLog and LogLevel of the quick start, mod_agent/PLATFORM.md and conf/, as they are but for their files. Of conf/ they are comments.
subtest 'wrong region: the logs of the shipped configuration have nothing of it' => sub {
    my @lines = map { slurp(root() . "/$_") =~ /^#?\s*((?:LogFormat|CustomLog|LogLevel)\s+\S.*)$/mg } qw(conf/quickstart/httpd.conf mod_agent/PLATFORM.md conf/agent.conf);
    my @logs;
    for (@lines) {
        next if !/\ACustomLog/;
        push @logs, 'shipped_' . @logs;
        s{\A(CustomLog\s+)\S+}{$1"\${DIR}/logs/$logs[-1]"};
    }
    cmp_ok scalar @logs, '>=', 3, 'access logs: those of the quick start, of PLATFORM.md and of the reference';
    is scalar(grep { /\ALogLevel .*\bcore:error\b/ } @lines), 3, 'error logs: the quick start, PLATFORM.md and the reference omit the lines of StrictHostCheck';
    # The format of this name is Debian's and httpd's own configuration's.
    my $shipped = new_server('AgentRegion eu', $URLS, 'LogFormat "%h %l %u %t \"%r\" %>s %O \"%{Referer}i\" \"%{User-Agent}i\"" combined', @lines,
        '<Location "/platform">', 'AgentPrefix /platform', 'SetHandler agent-platform', '</Location>', 'LimitRequestFieldSize 200',
        'StrictHostCheck On',
        'LoadModule ratelimit_regional_module "${BUILD_DIR}/mod_ratelimit_regional.so"', 'RateLimitRegion eu',
        map { "RateLimitRule $_ /limited/$_ key=$_ eu=1/1h" } qw(api-key ip));
    $shipped->start;
    my $to = AgentTest::Client->new(url => $shipped->url);
    my @paths = ('/threads', '/platform/v1/account', '/nothing', '/platform/ok');
    for my $path (@paths) {
        is announce("$path?q=skipped", $foreign, $to)->{status}, 403, "access logs: $path is refused";
    }
    # httpd refuses these while it reads them, after it has read the key.
    my $sent = "x-api-key: $foreign\r\nConnection: close\r\nReferer: http://skipped.example/";
    my @unread = (
        [ 'a malformed header', 400, 'GET', "Host: localhost\r\n$sent\r\nmalformed" ],
        [ 'a malformed header, after another key', 400, 'GET', "Host: localhost\r\nx-api-key: other\r\n$sent\r\nmalformed" ],
        [ 'a malformed header, after other credentials', 400, 'GET',
            "Host: localhost\r\nx-api-key: other\r\nAuthorization: Basic eA==\r\nAuthorization: Bearer $foreign\r\nReferer: http://skipped.example/\r\nConnection: close\r\nmalformed" ],
        [ 'no Host', 400, 'GET', $sent ],
        [ 'an invalid Host', 400, 'GET', "Host: a b\r\n$sent" ],
        [ 'the Host of another server', 400, 'GET', "Host: other.example\r\n$sent" ],
        [ 'an invalid Content-Length', 400, 'POST', "Host: localhost\r\n$sent\r\nContent-Length: abc" ],
        [ 'an unknown Transfer-Encoding', 400, 'POST', "Host: localhost\r\n$sent\r\nTransfer-Encoding: gzip" ],
        [ 'an unknown Expect', 417, 'POST', "Host: localhost\r\n$sent\r\nExpect: skipped" ],
        [ 'a header that is too long', 400, 'GET', "Host: localhost\r\n$sent\r\nx-long: " . 'x' x 300 ],
    );
    for my $case (@unread) {
        my ($title, $status, $method, $headers) = @{$case};
        like $to->exchange("$method /threads/skipped?q=skipped HTTP/1.1\r\n$headers\r\n\r\n"), qr{\AHTTP/1\.1 $status }, "access logs: $title is refused";
    }
    # The limiter decides before the key is refused.
    my $limited = sub {
        my ($rule, $header) = @_;
        return join ' ', map { $to->exchange("GET /limited/$rule?q=skipped HTTP/1.1\r\nHost: localhost\r\n$header\r\nReferer: http://skipped.example/\r\nConnection: close\r\n\r\n")
            =~ m{\AHTTP/1\.1 (\d+)} } 1, 2;
    };
    is $limited->('api-key', "x-api-key: $foreign"), '403 429', 'access logs: the second request of a key is over the limit';
    is $limited->('ip', "Authorization: Bearer $foreign"), '403 429', 'access logs: so is that of an address';
    unlike $shipped->error_log, qr/skipped|\Q$secret/, 'access logs: the error log has nothing of such requests';
    $to->exchange("GET /limited/api-key HTTP/1.1\r\nHost: localhost\r\nx-api-key: $own\r\nConnection: close\r\n\r\n") for 1, 2;
    my @refused = map { s/\A.*\bRLR0201: /RLR0201: /r } my @raw = grep { /RLR0201/ } split /\n/, $shipped->error_log;
    is_deeply [ map { s/\A(.*region eu, )(.*?)(?::[0-9a-f]+)?: limit .*/$1$2/r } @refused ], [ (map { "RLR0201: refused: rule $_, region eu, a key of another region" } qw(api-key ip)),
        'RLR0201: refused: rule api-key, region eu, api-key sha256' ], 'access logs: the limiter has no digest of such a key, nor an address';
    is_deeply [ map { /\[client / ? 'address' : 'none' } @raw ], [ 'none', 'none', 'address' ], 'access logs: only that of a client of this region';
    $to->get('/threads/last-one');
    for my $log (map { "$shipped->{dir}/logs/$_" } @logs) {
        wait_for("a line of $log", sub { slurp($log) =~ /last-one/ });
        unlike slurp($log), qr/skipped/, 'access logs: a request with a key of another region is in none';
    }
};

subtest 'wrong region: AgentWrongRegion 403, 421 and 307' => sub {
    for my $case ([ 403, undef ], [ 421, undef ], [ 307, 'https://us.api.example.com' ]) {
        my ($status, $base) = @{$case};
        my $with = new_server('AgentRegion eu', $URLS, "AgentWrongRegion $status", 'LoadModule authn_core_module "${MODULES}/mod_authn_core.so"',
            '<Location "/keys">', 'AgentPrefix /keys', 'AuthType AgentKey', 'Require agent-scope read', '</Location>',
            '<Location "/platform">', 'AgentPrefix /platform', 'SetHandler agent-platform', '</Location>',
            (map { "LoadModule ${_}_module \"\${MODULES}/mod_$_.so\"" } qw(alias rewrite dir proxy proxy_http auth_basic authn_file authz_user)),
            '<Location "/users">', 'AgentPrefix /users', 'SetHandler agent-platform', 'AuthType Basic', 'AuthName "users"', 'AuthUserFile none', 'Require valid-user', 'ErrorDocument 401 /document', '</Location>',
            '<Location "/routes">', 'AgentPrefix /routes', 'SetHandler agent-platform', 'RewriteEngine On', 'RewriteCond %{QUERY_STRING} forbid', 'RewriteRule info$ - [F]',
            'RewriteCond %{QUERY_STRING} fail', 'RewriteRule info$ - [R=500]', 'RewriteRule info$ /nothing', 'RewriteRule ok$ http://127.0.0.1:${PORT}/ok [P]', '</Location>',
            (map { my ($path, $document) = @{$_}; ("<Location \"/$path\">", "AgentPrefix /$path", 'SetHandler agent-platform', 'RewriteEngine On', 'RewriteRule info$ - [F]', "ErrorDocument 403 $document", '</Location>') }
                [ 'own', '/own/info' ], [ 'healthy', '/healthy/ok' ]),
            '<VirtualHost *>', 'ServerName platform.example.com', 'Redirect /moved http://elsewhere.example/', '<Location "/keys/moved">', 'Redirect /keys/moved http://elsewhere.example/', '</Location>',
            # The document would be read from another server, with the key.
            (map { "ErrorDocument $_ /document" } qw(403 421 500)),
            'ErrorDocument 302 /document', 'RewriteEngine On', 'RewriteCond %{QUERY_STRING} move', 'RewriteRule ^/routes/info http://elsewhere.example/ [R]', 'RewriteRule ^/document http://127.0.0.1:${PORT}/ok [P]', 'RewriteRule ^/forbidden/ - [F]', 'RewriteRule ^/rewritten/ http://elsewhere.example/ [R]', '</VirtualHost>',
            'LoadModule headers_module "${MODULES}/mod_headers.so"', '<VirtualHost *>', 'ServerName early.example.com', "RequestHeader set x-api-key $own early", '</VirtualHost>',
            '<VirtualHost *>', 'ServerName shop.example.com', '<Location "/">', 'SetHandler agent', '</Location>', '</VirtualHost>');
        $with->start;
        my $to = AgentTest::Client->new(url => $with->url);
        for my $path ("/threads/a%2Db%0d%0ac?x=%20&y=1", "/keys/threads/$UUID?limit=1", '/moved/x', '/keys/moved/x', '/forbidden/x', '/rewritten/x', '/x%2fy', '/x%00', '/x%zz',
            '/../x', '/nothing', '//v1/account?x=1', '//platform/v1/account', '//a:x/v1/account') {
            my $answer = announce($path, $foreign, $to);
            is outcome($answer), "$status wrong_region", "wrong region: $status for $path";
            is $answer->{json}{home_region}, 'us', "wrong region: $status has the body";
            is $answer->{headers}{location}, defined $base ? $base . $path : undef, "wrong region: the Location of $status";
            is lc $answer->{headers}{connection}, 'close', "wrong region: $status closes the connection";
        }
        for my $path (qw(/routes/info /routes/ok /routes/info?move)) {
            my $answer = $to->get($path, undef, with($foreign));
            is outcome($answer), "$status wrong_region", "wrong region: $status for $path, a route without data that a RewriteRule of its location takes";
            is $answer->{headers}{location}, defined $base ? $base . $path : undef, "wrong region: $path, the Location of $status";
        }
        is $to->get($_)->{status}, m{info} ? 404 : 200, "wrong region: $_ without a key is rewritten" for qw(/routes/info /routes/ok);
        for my $path (qw(/routes/info?forbid /routes/info?fail /own/info /healthy/info /users/info)) {
            my $refused = $to->get($path, undef, with($foreign));
            is outcome($refused), "$status wrong_region", "wrong region: $status for $path, a route without data that a RewriteRule refuses, and whose ErrorDocument is another request";
            is $refused->{headers}{location}, defined $base ? $base . $path : undef, "wrong region: $path: the Location of $status is that of the request, not of the document";
            is $refused->{headers}{'www-authenticate'}, undef, "wrong region: $path asks for no password";
            is $refused->{json}{home_region}, 'us', 'wrong region: such an answer has the body of the refusal, and no other';
            unlike $refused->{body}, qr/"ok"/, 'wrong region: the document of such an error is not read, neither from another server nor from a route without data';
        }
        is outcome(parse_response($to->exchange("GET /keys/threads/$UUID HTTP/1.1\r\nHost: early.example.com\r\nx-api-key: $foreign\r\nConnection: close\r\n\r\n"))), '404 deployment_not_found',
            'wrong region: the key counts that a module has set in place of the one that was sent';
        is $to->get('/routes/', undef, with($foreign))->{status}, 200, 'wrong region: a route that no RewriteRule takes needs no key';
        my $shop = parse_response($to->exchange("GET /threads/$UUID HTTP/1.1\r\nHost: shop.example.com\r\nx-api-key: $foreign\r\n\r\n"));
        is outcome($shop), ($status == 307 ? 403 : $status) . ' wrong_region', "wrong region: $status from the host of a deployment";
        is_deeply [ @{ $shop->{headers} }{qw(location link x-agent-home-region)} ], [ undef, undef, 'us' ],
            'wrong region: the host of a deployment names no address with the same paths';
        is $shop->{json}{detail}, 'This key belongs to region us: use the address of your deployment there. The platform host of that region is https://us.api.example.com.',
            'wrong region: the host of a deployment, the detail';
        is $shop->{json}{api_url}, 'https://us.api.example.com', 'wrong region: the host of a deployment, the address of the platform host';
    }
};

subtest 'wrong region: without AgentRegionURL the answer has no URL' => sub {
    my $bare = new_server('AgentRegion eu', 'AgentWrongRegion 307');
    $bare->start;
    my $to = AgentTest::Client->new(url => $bare->url);
    my $answer = announce('/threads', print_key('sk', $id, $secret, 'mars'), $to);
    is_deeply $answer->{json}, { detail => 'This key belongs to region mars.', code => 'wrong_region', home_region => 'mars' }, 'wrong region: the body';
    is $answer->{status}, 403, 'wrong region: without a URL the request is not redirected';
    is_deeply [ @{ $answer->{headers} }{qw(link location x-agent-home-region)} ], [ undef, undef, 'mars' ], 'wrong region: the headers';
    like $to->get('/info')->{json}{region}, qr/\Aeu\z/, 'wrong region: the server serves';
    my $plain = new_server('AgentRegion eu', map({ s/ \S+beacon\S+//gr } $URLS), '<Location "/platform">', 'AgentPrefix /platform', 'SetHandler agent-platform', '</Location>');
    $plain->start;
    $to = AgentTest::Client->new(url => $plain->url);
    is announce('/threads', $foreign, $to)->{json}{beacon_url}, undef, 'wrong region: without the address of a beacon the body has none';
    is_deeply [ sort keys %{ $to->get('/platform/info')->{json} } ], [qw(api_url region server version web_url)], 'regions: without the address of a beacon GET /info has none';
    unlike $to->get('/platform/')->{body}, qr/beacon/, 'page: without the address of a beacon the page has none';
};

# ---- the page of the regions ----

subtest 'GET / of a platform host: a page lists the regions' => sub {
    my $answer = $client->get('/platform/');
    is "$answer->{status} $answer->{headers}{'content-type'}", '200 text/html; charset=utf-8', 'page: it is HTML';
    is_deeply [ $answer->{body} =~ m{<a href="([^"]*)">(\w+)</a>}g ], [ 'https://us.example.com', 'us', 'https://eu.example.com', 'eu' ],
        'page: the web address of each region';
    is_deeply [ $answer->{body} =~ m{<code>(.*?)</code>}g ], [ map { ("https://$_.api.example.com", "https://$_.beacon.example.com") } qw(us eu) ],
        'page: the addresses of its API and its beacon';
    like $answer->{body}, qr{eu</a> \(this site\)}, 'page: the region of the site is marked';
    unlike $answer->{body}, qr/<script|\bon\w+=|src=/i, 'page: no script, and nothing of other addresses';
    like $answer->{headers}{'content-security-policy'}, qr/default-src 'none'/, 'page: Content-Security-Policy';
    is $answer->{headers}{'cache-control'}, 'public, max-age=300', 'page: it may be cached';
    my $other = AgentTest::Client->new(url => $server->url, local_address => '127.0.0.7');
    is $other->get('/platform/')->{body}, $answer->{body}, 'page: it does not depend on the address of the client';
    is outcome($client->request('POST', '/platform/', '{}')), '405 method_not_allowed', 'page: other methods are 405';
    like $client->exchange("HEAD /platform/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"), qr{\AHTTP/1\.1 200 .*\r\n\r\n\z}s, 'page: HEAD';
};

# ---- databases of other regions ----

# Ends all backends of other sessions.
sub end_backends {
    my @pids = sql('select pid from (select pid from pg_stat_activity where pid <> pg_backend_pid()
        and datname = current_database() offset 0) b where pg_terminate_backend(pid)');
    wait_for('the backends to end', sub { !grep { is_alive($_) } @pids });
    return;
}

sub check_refused {
    my ($of, $title) = @_;
    my $to = AgentTest::Client->new(url => $of->url);
    my $answer = $to->get("/threads/$UUID");
    is outcome($answer), '503 region_mismatch', "$title: requests are 503";
    is $answer->{headers}{'retry-after'}, 1, "$title: with Retry-After";
    is outcome($to->get('/ok?check_db=1')), '503 region_mismatch', "$title: GET /ok?check_db=1 too";
    is outcome($to->get('/ok')), '200 -', "$title: GET /ok is 200";
    wait_for('AGT0318', sub { $of->error_log =~ /AGT0318: the database belongs to region us, this host to region eu \(AgentRegion\)/ });
    pass "$title: the supervisor refuses it";
    like $of->error_log, qr/AGT0102: GET \S+: region_mismatch: the database belongs to region us, this server to region eu/, "$title: the log says why";
    return;
}

# A run of the server is executed.
sub check_served {
    my ($of, $title) = @_;
    my $to = AgentTest::Client->new(url => $of->url);
    wait_for('requests to be served', sub { $to->get("/threads/$UUID")->{status} == 404 });
    my $thread = $to->new_thread;
    is $to->join_run($to->create_run($thread, 'hello'))->{messages}[0]{content}, 'hello', "$title: runs are executed";
    return;
}

subtest 'restored: a running server refuses a database of another region until the regions agree' => sub {
    check_served($server, 'restored, before');
    set_region('us');
    end_backends();
    check_refused($server, 'restored');
    set_region('eu');
    check_served($server, 'restored, then corrected');
};

sub replace_find_api_key {
    my ($member) = @_;
    my ($text) = sql(q{select encode(convert_to(pg_get_functiondef('agent.find_api_key'::regproc), 'UTF8'), 'hex')});
    $text = pack 'H*', $text;
    (my $changed = $text) =~ s/'region', .*?,\n/'region', '$member',\n/s or die "find_api_key has no region\n";
    sql($changed);
    return $text;
}

subtest 'a key whose account is of another region is not admitted: 503, never 401' => sub {
    my $text = replace_find_api_key('us');
    my $second = create_key($account);
    my $ask = sub { outcome($client->get("/keys/threads/$UUID", undef, with($second))) };
    is $ask->(), '503 region_mismatch', 'accounts: a record of another region is 503 region_mismatch';
    sql($text);
    is $ask->(), '404 thread_not_found', 'accounts: a record of this region is admitted';
};

subtest 'started without a database: it is checked when it can be reached' => sub {
    undef $server;
    set_region('us');
    sql('delete from agent.workers');
    $postgres->stop('fast');
    my $late = new_server('AgentRegion eu');
    $late->start;
    my $sent = AgentTest::Client->new(url => $late->url)->get('/ok?check_db=1', undef, with($foreign));
    is $sent->{status}, 503, 'late: a key of another region, a route that needs the database';
    is_deeply [ map { s/\A.*(?=\[client)|\A.*\] (?=AGT0102)//r =~ s/(database_\w+: ).*/$1/r } grep { /AGT0102/ } split /\n/, $late->error_log ], [ 'AGT0102: database_unavailable: ' ],
        'late: the log has neither its path nor its address';
    $postgres->start;
    check_refused($late, 'late');
    is sql('select count(*) from agent.workers'), 0, 'late: no worker is registered';
    $late->graceful;
    check_refused($late, 'late, after a graceful restart');
    set_region('eu');
    check_served($late, 'late, then corrected');
};

undef $server;
done_testing;
