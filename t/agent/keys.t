# SPDX-License-Identifier: Apache-2.0
# API keys: AuthType AgentKey, Require agent-..., and what the handler demands itself of
# a deployment that belongs to an account.
use strict;
use warnings;
use AgentTest::ApiKey;
use AgentTest::Client qw(parse_response read_to_end read_until run_body);
use AgentTest::Conf qw(demo_graph key_location location one_child);
use AgentTest::Database;
use AgentTest::Env qw(free_port write_file);
use AgentTest::Postgres;
use AgentTest::Routes;
use AgentTest::Server;
use AgentTest::Wait;
use File::Path qw(make_path);
use Test::More;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my $BUILT_IN = '00000000-0000-0000-0000-00000000000a';
my $UUID = '01900000-0000-7000-8000-000000000000';

sub require_all { return ('<RequireAll>', @_, '</RequireAll>') }

# A separate cluster, which this test stops.
my $postgres = AgentTest::Postgres->new;
local $ENV{PGHOST} = $postgres->host;
my ($shop, $other, $leaver) = map { create_account() } 1 .. 3;
my $platform = free_port();
# One child: what it has verified does not depend on which one is asked.
my $server = AgentTest::Server->new(database => $postgres->conninfo, config => join '', one_child(40), demo_graph(), <<"CONF",
LoadModule remoteip_module "\${MODULES}/mod_remoteip.so"
RemoteIPHeader X-Forwarded-For
RemoteIPInternalProxy 127.0.0.1
AgentDeployment shop account=$shop
Listen 127.0.0.1:$platform
<VirtualHost 127.0.0.1:$platform>
    <Location "/">
        SetHandler agent-platform
    </Location>
</VirtualHost>
CONF
    key_location('AuthName "the shop"', 'AuthzSendForbiddenOnFailure On', "Require agent-account $shop $other"),
    location('/granted', 'Require all granted'),
    location('/local', 'Require local'),
    location('/any', '<RequireAny>', 'Require local', "Require agent-account $shop", '</RequireAny>'),
    location('/either', '<RequireAny>', "Require agent-account $shop", 'Require local', '</RequireAny>'),
    location('/strict', 'AuthzSendForbiddenOnFailure Off', "Require agent-account $shop"),
    location('/untyped', 'AuthType None', 'Require all granted'),
    location('/desk', "AgentDeployment desk account=$shop"),
    location('/desk-only', "AgentDeployment desk account=$shop", 'Require agent-deployment desk'),
    location('/desk-own', "AgentDeployment desk account=$shop", 'Require agent-deployment'),
    location('/desk-any', "AgentDeployment desk account=$shop", '<RequireAny>', 'Require agent-deployment desk', 'Require agent-scope admin', '</RequireAny>'),
    location('/desk-scope', "AgentDeployment desk account=$shop", 'Require agent-scope deploy'),
    location('/leaver', "AgentDeployment till account=$leaver", "Require agent-account $leaver"),
    location('/nobody', "AgentDeployment shop account=$UUID"),
    location('/plain', 'AgentDeployment default', 'Require all granted'),
    location('/keyed', 'AgentDeployment default', 'Require agent-scope read run deploy admin'),
    location('/deployers', 'Require agent-scope deploy admin'),
    (map { location("/not-admins-$_", "AuthzSendForbiddenOnFailure $_", require_all('Require agent-scope read', 'Require not agent-scope admin')) } qw(On Off)),
    location('/misspelt', 'AuthType AgentKeys', 'Require agent-scope read'),
    location('/rewritten', 'RewriteEngine On', 'RewriteRule ^ - [F]', 'Require agent-scope read'),
    location('/denied-page', 'ErrorDocument 403 "Ask us."', require_all('Require agent-scope read', 'Require not agent-scope admin')),
    location('/file-deployers', 'SetHandler None', 'AuthzSendForbiddenOnFailure Off', 'Require agent-scope deploy', 'ErrorDocument 401 "Log in."'),
    (map { my ($path, $document) = @{$_}; location("/to-$path", 'Require agent-scope admin', map { "ErrorDocument $_ $document" } 401, 403) }
        [ 'ok', '/plain/ok' ], [ 'thread', "/plain/threads/$UUID" ]),
    location('/explained', 'SetHandler None', 'Require agent-scope deploy', 'ErrorDocument 403 "Ask for more."'),
    location('/paged', 'SetHandler None', 'Require agent-scope read', 'ErrorDocument 401 /document/page'),
    location('/document', 'SetHandler None', 'Require all granted'),
    location('/forbidden', 'SetHandler None', 'RewriteEngine On', 'RewriteRule ^ - [F]', '<RequireAny>', 'Require agent-scope deploy', 'Require agent-scope read', '</RequireAny>'),
    location('/desks', 'Require agent-deployment desk'),
    location('/shop-or-admin', '<RequireAny>', 'Require agent-deployment desk', 'Require agent-scope admin', '</RequireAny>'),
    location('/stalls', "AgentDeployment stall account=$shop", 'Require agent-deployment stall'),
    location('/stalls-open', "AgentDeployment stall account=$shop", 'Require all granted'),
    location('/text', 'Require agent-scope read', 'ErrorDocument 500 "A fault."'),
    location('/page', "Require agent-account $shop", 'ErrorDocument 500 /ok'),
    location('/both', 'Require agent-scope read', 'ErrorDocument 500 "A fault."', 'ErrorDocument 404 "Not here."'),
    'LoadModule rewrite_module "${MODULES}/mod_rewrite.so"' . "\n", "RewriteEngine On\nRewriteRule ^/strict/maintenance - [R=500]\n",
    (map { location("/to-$_", 'RewriteEngine On', "RewriteRule ^ /$_/threads/$UUID") } qw(untyped granted desk-only)),
    location('/files', 'SetHandler None'),
    location('/files-own', 'SetHandler None', "AgentDeployment desk account=$shop", 'Require agent-deployment'),
    'LoadModule include_module "${MODULES}/mod_include.so"' . "\n",
    location('/included', 'AgentDeployment default', 'Require agent-scope read run', 'Options +Includes', 'SetOutputFilter INCLUDES'),
    (map { location("/but-$_->[0]", 'SetHandler None', '<RequireAll>', "Require not agent-account $other", "Require $_->[1]", '</RequireAll>') }
        [ 'keyed', 'agent-scope read' ], [ 'granted', 'all granted' ]),
    (map { "<AuthzProviderAlias $_>\n</AuthzProviderAlias>\n" } "agent-account shops $shop", 'agent-scope deployers "deploy admin"', 'agent-deployment desks "desk stall"'),
    (map { location("/alias-$_->[0]", 'SetHandler None', "AgentDeployment desk account=$shop", $_->[1]) }
        [ 'account', 'Require shops' ], [ 'scope', 'Require deployers' ], [ 'deployment', 'Require desks' ]),
    location('/alias-api', "AgentDeployment desk account=$shop", 'Require desks'),
    location('/but-none', 'SetHandler None', require_all('Require agent-scope read', '<RequireNone>', "Require agent-account $other", '</RequireNone>')),
    (map { location("/no-admin-$_->[0]", 'SetHandler None', 'AuthzSendForbiddenOnFailure Off', require_all(@{ $_->[1] }, "Require agent-account $other")) }
        [ 'not', ['Require not agent-scope admin'] ], [ 'none', [ '<RequireNone>', 'Require agent-scope admin', 'Require agent-scope admin', '</RequireNone>' ] ]),
    location('/no-admin-page', 'SetHandler None', 'AuthzSendForbiddenOnFailure Off', 'ErrorDocument 401 "Log in."', require_all('Require not agent-scope admin', 'Require agent-scope read', "Require agent-account $other")),
    location('/twice', 'SetHandler None', 'AuthzSendForbiddenOnFailure Off',
        require_all('Require agent-scope read', '<RequireNone>', require_all('Require not agent-scope run', 'Require agent-deployment shop desk'), '</RequireNone>')),
    (map { location("/unread-$_->[0]", 'SetHandler None', 'AuthType None', @{ $_->[1] }) }
        [ 'account', [ require_all('Require all granted', "Require not agent-account $other") ] ], [ 'deployment', [ require_all('Require not agent-deployment', 'Require local') ] ],
        [ 'none', [ require_all('Require all granted', '<RequireNone>', 'Require agent-scope admin', '</RequireNone>') ] ],
        [ 'quoted', [ require_all('Require all granted', 'Require "not" "agent-scope" admin') ] ],
        [ 'any', [ '<RequireAny>', require_all('Require all granted', 'Require not agent-scope admin'), 'Require local', '</RequireAny>' ] ]),
    location('/to-alias', 'SetHandler None', 'RewriteEngine On', 'RewriteRule ^ /alias-account/x'));
$server->start;
make_path("$server->{dir}/htdocs/document");
write_file("$server->{dir}/htdocs/document/page", 'The page.');

# A client of a loopback address of its own: refused keys are counted by address.
my $addresses = 1;
sub new_client {
    return AgentTest::Client->new(url => $server->url, local_address => '127.0.0.' . ++$addresses);
}
my $client = new_client();

sub with { return { 'x-api-key' => $_[0] } }

# "401 unknown_key"
sub outcome {
    my ($answer) = @_;
    return "$answer->{status} " . (ref $answer->{json} eq 'HASH' ? $answer->{json}{code} // '-' : '-');
}

# The outcome of a request for a thread that does not exist.
sub try_key { return outcome($client->get(($_[1] // '') . "/threads/$UUID", undef, with($_[0]))) }

my $ADMITTED = '404 thread_not_found';
my $key = create_key($shop);
my $foreign = create_key($other);

subtest 'keys: a key of the account is admitted, in either header' => sub {
    is try_key($key), $ADMITTED, 'keys: x-api-key';
    my @cases = (
        [ { 'Authorization' => "Bearer $key" }, $ADMITTED, 'Authorization: Bearer' ],
        [ { 'x-api-key' => $key, 'Authorization' => "bearer $key" }, $ADMITTED, 'both, and the same' ],
        [ { 'x-api-key' => $key, 'Authorization' => 'Basic YTpi' }, $ADMITTED, 'another scheme beside x-api-key' ],
        [ { 'x-api-key' => $key, 'Authorization' => "Bearer $foreign" }, '401 invalid_key', 'both, and different' ],
        [ { 'x-api-key' => '', 'Authorization' => "Bearer $key" }, '401 invalid_key', 'an empty x-api-key beside a token' ],
        [ { 'x-api-key' => [ $key, $key ] }, '401 invalid_key', 'x-api-key twice' ],
        [ { 'Authorization' => 'Bearer' }, '401 invalid_key', 'an empty token' ],
        [ { 'x-api-key' => $key . '0' x 4000 }, '401 invalid_key', 'a key of 4 KB' ],
        [ { 'Authorization' => 'Basic YTpi' }, '401 unauthorized', 'another scheme alone' ],
        [ {}, '401 unauthorized', 'none' ],
    );
    for my $case (@cases) {
        my ($headers, $expected, $what) = @{$case};
        is outcome($client->get("/threads/$UUID", undef, $headers)), $expected, "keys: $what";
    }
};

subtest 'keys: a 401 has the challenge, the body of the API, and is sent before the body is read' => sub {
    for my $path ('', '/granted') {
        my $socket = $client->connection;
        syswrite $socket, "POST $path/threads HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n";
        my $answer = parse_response(read_to_end($socket));
        is outcome($answer), '401 unauthorized', "keys: $path/threads without a byte of the body";
        is $answer->{headers}{'www-authenticate'}, 'Bearer realm="the shop"', "keys: $path/threads has the challenge";
        like $answer->{headers}{'content-type'}, qr{^application/json}, "keys: $path/threads is JSON";
    }
    is $client->get($_)->{headers}{'www-authenticate'}, 'Bearer realm="the shop"', "keys: $_ has the challenge, on a host without a platform"
        for '/files/deployments/x/y', '/a/deployments/b/threads/x';
    is(AgentTest::Client->new(url => "http://127.0.0.1:$platform")->get('/files/deployments/x/y')->{headers}{'www-authenticate'}, 'Bearer realm="agent"',
        'keys: on a host with a platform the realm of such a path is not shown');
    my $answer = $client->get('/files/x');
    is outcome($answer), '401 unauthorized', 'keys: a location of another handler has the same body';
    is $answer->{headers}{'www-authenticate'}, 'Bearer realm="the shop"', 'keys: a location of another handler has the challenge';
    is $client->get('/files/x', undef, with($key))->{status}, 404, 'keys: a location of another handler is served with a key';
};

# Each has the form of a key and a correct checksum, unless it says otherwise.
sub forged_keys {
    my ($id, $secret) = map { key_id($key, $_) } 3, 4;
    my $wrong = $secret;
    $wrong =~ tr/0-9A-Za-z/1-9A-Za-z0/;
    return (
        [ 'text',                  '401 invalid_key', 'another text' ],
        [ substr($key, 0, -1),     '401 invalid_key', 'a key that was cut' ],
        [ $key =~ s/sk_\K(.)/$1 eq 'a' ? 'b' : 'a'/er, '401 invalid_key', 'a changed character' ],
        [ print_key('sk', random_digits(22), $secret),  '401 unknown_key', 'an unknown id' ],
        [ print_key('sk', $id, "0" . substr $wrong, 1), '401 unknown_key', 'a wrong secret' ],
        [ print_key('pt', $id, $secret),                '401 unknown_key', 'another kind' ],
    );
}

subtest 'keys: malformed and unknown keys are refused, and all unknown ones alike' => sub {
    my %bodies;
    for my $case (forged_keys()) {
        my ($text, $expected, $what) = @{$case};
        my $answer = $client->get("/threads/$UUID", undef, with($text));
        is outcome($answer), $expected, "keys: $what";
        $bodies{ $answer->{body} } = 1 if $answer->{json}{code} eq 'unknown_key';
    }
    is scalar keys %bodies, 1, 'keys: an unknown id, a wrong secret and another kind have the same answer';
};

# A key that was admitted before it expires, within 1.5 s; on a busy machine some expire before the first request.
sub expiring_key {
    my $expiring;
    wait_for('a key to be admitted before it expires', sub { try_key($expiring = create_key($shop, lifetime => '1500 ms')) eq $ADMITTED });
    return $expiring;
}

sub now { return clock_gettime(CLOCK_MONOTONIC) }
sub wait_until { my ($time) = @_; return wait_for('the time to pass', sub { now() >= $time }) }

subtest 'keys: a revocation takes effect within 2 s, an expiry at once' => sub {
    my $revoked = create_key($shop);
    is try_key($revoked), $ADMITTED, 'keys: it is admitted before';
    revoke_key($revoked);
    wait_until(now() + 2);
    is try_key($revoked), '401 unknown_key', 'keys: a revoked key is refused after 2 s';
    my $expiring = expiring_key();
    my ($id) = key_id($expiring);
    wait_for('the key to expire', sub { poll("select expires_at < clock_timestamp() from agent.api_keys where key_id = '$id'") eq 't' });
    is try_key($expiring), '401 unknown_key', 'keys: an expired key is refused, though it was verified less than 2 s ago';
    is sql("select revoked_at is not null from agent.api_keys where key_id = '$id'"), 't',
        'keys: it stays refused when the clock goes back';
};

subtest 'keys: one that expires while the body of its request arrives is refused' => sub {
    my ($expiring, $socket);
    # The server asks for the body once it has admitted the key.
    wait_for('a request to be admitted before its key expires', sub {
        $expiring = create_key($shop, lifetime => '1500 ms');
        $socket = $client->connection;
        syswrite $socket, "POST /granted/threads HTTP/1.1\r\nHost: localhost\r\nx-api-key: $expiring\r\nContent-Type: application/json\r\n"
            . "Content-Length: 2\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n";
        return read_until($socket, qr/\r\n\r\n/) =~ m{\AHTTP/1\.1 100 };
    });
    my ($id) = key_id($expiring);
    syswrite $socket, '{';
    wait_for('the key to expire', sub { poll("select expires_at < clock_timestamp() from agent.api_keys where key_id = '$id'") eq 't' });
    syswrite $socket, '}';
    is outcome(parse_response(read_to_end($socket))), '401 unknown_key', 'keys: as at any other time after its expiry';
};

subtest 'keys: those of a closed account are refused within 2 s' => sub {
    my $last = create_key($leaver);
    is try_key($last, '/leaver'), $ADMITTED, 'keys: the account is open';
    close_account($leaver);
    wait_until(now() + 2);
    is try_key($last, '/leaver'), '401 unknown_key', 'keys: the account is closed';
};

subtest 'keys: the use of a key is recorded, by the hour' => sub {
    my $used = create_key($shop);
    my $hour = sub { sql("select coalesce(last_used_at = date_trunc('hour', clock_timestamp(), 'UTC'), false) from agent.api_keys
        where key_id = '" . key_id($used) . q(')) };
    is $hour->(), 'f', 'keys: a new key was not used';
    try_key($used);
    is $hour->(), 't', 'keys: it has the hour of its use';
};

# ---- whatever Require says ----

subtest 'keys: a deployment of an account needs a key of it, whatever Require permits' => sub {
    for my $path (qw(/granted /local /any /either)) {
        is outcome($client->get("$path/threads/$UUID")), '401 unauthorized', "keys: $path without a key";
        is outcome($client->post("$path/nothing", {})), '401 unauthorized', "keys: $path without a key, an unknown path";
        is outcome($client->get("$path/ok")), '200 -', "keys: $path/ok needs none";
        is try_key($key, $path), $ADMITTED, "keys: $path with a key";
        is try_key($foreign, $path), '404 deployment_not_found', "keys: $path with a key of another account";
        is try_key(print_key('sk', random_digits(22), random_digits(43)), $path), '401 unknown_key', "keys: $path with an unknown key";
    }
    is try_key($key, '/untyped'), '401 unauthorized', 'keys: without AuthType AgentKey no key is admitted';
    like $client->get("/untyped/threads/$UUID", undef, with($key))->{json}{detail}, qr/does not read API keys \(AuthType AgentKey\)/,
        'keys: without AuthType AgentKey the answer to a key names the directive';
    like $client->get("/untyped/threads/$UUID")->{json}{detail}, qr/\AAn API key is required/, 'keys: without AuthType AgentKey a request without a key is told to send one';
};

subtest 'keys: an internal redirect into another location is verified there again' => sub {
    is outcome($client->get('/to-granted/', undef, with($key))), $ADMITTED, 'redirect: to one with AuthType AgentKey, with a key';
    is outcome($client->get('/to-granted/')), '401 unauthorized', 'redirect: without one';
    is outcome($client->get('/to-untyped/', undef, with($key))), '401 unauthorized', 'redirect: where no AuthType admits keys, the key of before opens nothing';
    my $of_shop = create_key($shop, kind => 'deployment', deployment => 'shop');
    is outcome($client->get('/to-desk-only/', undef, with($of_shop))), '404 deployment_not_found', 'redirect: to another deployment, with a key of the one before';
};

subtest 'keys: a subrequest has the key of its request' => sub {
    my $reader = create_key($BUILT_IN, scopes => [qw(read)]);
    my $runner = create_key($BUILT_IN, scopes => [qw(run)]);
    my $thread = $client->post('/keyed/threads', { metadata => { is => 'included' } }, with($runner))->{json}{thread_id};
    my $page = { metadata => { page => "<!--#include virtual='/included/threads/$thread' -->" } };
    my $made = $client->post('/included/threads', $page, with($runner));
    like $made->{body}, qr/"code":"scope_required"/, 'subrequests: a key without their scope is refused';
    unlike $made->{body}, qr/"is"\s*:\s*"included"/, 'subrequests: nothing is shown to it';
    my ($id) = $made->{body} =~ /"thread_id"\s*:\s*"([^"]+)"/;
    like $client->get("/included/threads/$id", undef, with($reader))->{body}, qr/"is"\s*:\s*"included"/, 'subrequests: a key with their scope is admitted';
};

subtest 'keys: a deployment of another account, and one that does not exist, answer the same' => sub {
    my ($theirs, $none) = map { $client->get("$_/threads/$UUID", undef, with($foreign)) } '/granted', '/nobody';
    is outcome($theirs), '404 deployment_not_found', 'keys: that of another account';
    is $none->{body}, $theirs->{body}, 'keys: one that does not exist';
    is sql("select count(*) from agent.deployments where account_id in ('$other', '$UUID')"), '0', 'keys: a deployment of another account, or of none, is not created';
};

subtest 'keys: an ErrorDocument of httpd does not take the place of this answer' => sub {
    my $plain = $client->get("/granted/threads/$UUID", undef, with($foreign));
    for my $path (qw(/text /page /both)) {
        my $answer = $client->get("$path/threads/$UUID", undef, with($foreign));
        is outcome($answer), '404 deployment_not_found', "keys: $path";
        is $answer->{body}, $plain->{body}, "keys: $path, the body";
        is $answer->{headers}{'content-type'}, $plain->{headers}{'content-type'}, "keys: $path, its type";
        is try_key($key, $path), $ADMITTED, "keys: $path with a key of the account";
    }
};

subtest 'keys: a key for one deployment opens no other' => sub {
    is try_key($key, '/desk'), $ADMITTED, 'keys: a key of all deployments creates it';
    my $of_desk = create_key($shop, kind => 'deployment', deployment => 'desk');
    is try_key($of_desk, '/desk'), $ADMITTED, 'keys: a key of one deployment is admitted to it';
    my $answer = $client->get("/threads/$UUID", undef, with($of_desk));
    is outcome($answer), '404 deployment_not_found', 'keys: another deployment of its account';
    is try_key($of_desk, '/desks'), '404 deployment_not_found', 'Require agent-deployment: its own name; the handler demands the deployment';
    is try_key($key, '/desks'), $ADMITTED, 'Require agent-deployment: a key of all deployments';
    is try_key($foreign, '/desks'), '404 deployment_not_found', 'Require agent-deployment: a key of another account';
};

subtest 'Require agent-...: a key of another deployment of the account gets the answer of one that does not exist' => sub {
    my %of = map { $_ => create_key($shop, kind => 'deployment', deployment => $_) } qw(shop desk);
    my $none = $client->get("/nobody/threads/$UUID", undef, with($foreign));
    for my $path (qw(/desk /desk-only /desk-any /desk-scope)) {
        for my $asked ("threads/$UUID", 'nothing', 'ok') {
            my $answer = $client->get("$path/$asked", undef, with($of{shop}));
            is outcome($answer), '404 deployment_not_found', "Require agent-...: $path/$asked";
            is $answer->{body}, $none->{body}, "Require agent-...: $path/$asked, the body";
        }
    }
    is try_key($of{desk}, $_), $ADMITTED, "Require agent-...: $_, its own deployment" for qw(/desk-only /desk-any /desk-scope);
    # A deployment that the key may see, and a Require that it does not meet.
    is try_key($of{shop}, '/desks'), '403 forbidden', 'Require agent-deployment: its own deployment, where another one is named';
    is try_key($of{desk}, '/desk-own'), $ADMITTED, 'Require agent-deployment without words: a key of the location\'s deployment';
    is try_key($key, '/desk-own'), $ADMITTED, 'Require agent-deployment without words: a key of all deployments';
    is try_key($_, '/desk-own'), '404 deployment_not_found', 'Require agent-deployment without words: any other key' for $of{shop}, $foreign;
    is outcome($client->get("/desk-own/threads/$UUID")), '401 unauthorized', 'Require agent-deployment without words: no key';
    is outcome($client->get('/files-own/x', undef, with($_->[0]))), $_->[1], 'Require agent-deployment without words: where another handler serves the location'
        for [ $of{desk}, '404 -' ], [ $of{shop}, '403 -' ], [ create_key($other), '403 -' ];
    is try_key($of{shop}, '/shop-or-admin'), $ADMITTED, 'Require agent-deployment: another Require may grant what it denies';
};

subtest 'Require not agent-account excludes beside a line that demands a key, and nobody beside one that demands none' => sub {
    my ($excluded, $kept) = map { create_key($_) } $other, $shop;
    is outcome($client->get('/but-keyed/x', undef, with($excluded))), '403 -', 'Require not: a key of the account';
    is outcome($client->get('/but-keyed/x', undef, with($kept))), '404 -', 'Require not: a key of another one';
    is outcome($client->get('/but-granted/x', undef, with($excluded))), '404 -', 'Require not: beside Require all granted';
    is outcome($client->get('/but-none/x', undef, $_->[0])), $_->[1], "<RequireNone>: $_->[2]"
        for [ with($excluded), '403 -', 'a key of the account' ], [ with($kept), '404 -', 'a key of another one' ], [ undef, '401 unauthorized', 'no key' ];
};

subtest 'Require of an <AuthzProviderAlias>: as of its provider' => sub {
    my ($excluded, $kept) = map { create_key($_) } $other, $shop;
    my $reader = create_key($shop, scopes => ['read']);
    my $of_shop = create_key($shop, kind => 'deployment', deployment => 'shop');
    my $try = sub { my ($path, $of) = @_; return outcome($client->get("$path/x", undef, defined $of ? with($of) : undef)) };
    for my $case ([ 'account', $excluded, '403 -' ], [ 'scope', $reader, '403 scope_required' ], [ 'deployment', $of_shop, '403 -' ]) {
        my ($name, $denied, $expected) = @{$case};
        is $try->("/alias-$name", $kept), '404 -', "an alias of agent-$name: a key that it admits";
        is $try->("/alias-$name", $denied), $expected, "an alias of agent-$name: one that it denies";
        is $try->("/alias-$name"), '401 unauthorized', "an alias of agent-$name: no key";
    }
    is try_key($kept, '/alias-api'), $ADMITTED, 'an alias before the API: a key of the deployment';
    is try_key($of_shop, '/alias-api'), '404 deployment_not_found', 'an alias before the API: a key of another deployment';
    is $try->('/to-alias', $kept), '404 -', 'an alias after an internal redirect: a key that it admits';
    is $try->('/to-alias', $excluded), '403 -', 'an alias after an internal redirect: one that it denies';
};

subtest 'Require not agent-...: where no AuthType reads keys, it excludes everybody' => sub {
    for my $path (map { "/unread-$_" } qw(account deployment none quoted)) {
        is outcome($client->get("$path/x", undef, $_)), '403 -', "$path: " . (defined $_ ? 'a key' : 'no key') for undef, with($key);
    }
    is outcome($client->get('/unread-any/x')), '404 -', 'Require not: another line of a <RequireAny> admits a request';
};

subtest 'the answer of an API to a verified key that a Require denies says so' => sub {
    my ($reader, $admin) = map { create_key($shop, scopes => $_) } ['read'], [qw(read admin)];
    my $try = sub { my ($path, $headers) = @_; return $client->get("$path/threads/$UUID", undef, $headers) };
    for my $case ([ '/not-admins-On', 403, 'forbidden' ], [ '/not-admins-Off', 401, 'unauthorized' ]) {
        my ($path, $status, $code) = @{$case};
        is outcome($try->($path, with($reader))), $ADMITTED, "$path: a key that is not excluded";
        my $answer = $try->($path, with($admin));
        is_deeply [ $answer->{status}, $answer->{json} ], [ $status, { detail => 'This API key is not admitted here (Require).', code => $code } ], "$path: one that is";
        unlike $try->($path)->{json}{detail}, qr/not admitted/, "$path: no key";
    }
    is $try->('/denied-page', with($admin))->{body}, 'Ask us.', 'an ErrorDocument 403 is sent';
    is_deeply $try->('/rewritten', with($reader))->{json}, { detail => 'Forbidden', code => 'forbidden' }, 'a 403 of another module is its own';
};

subtest 'keys: a response to an ErrorDocument of an API has the status of the refused request' => sub {
    my $to = new_client();
    my $reader = create_key($shop, scopes => ['read']);
    my %document = ('/to-ok' => '{"ok":true}', '/to-thread' => 'thread_not_found');
    for my $path (sort keys %document) {
        for my $case ([ 401, {} ], [ 401, with('abc') ], [ 403, with($reader) ]) {
            my ($status, $headers) = @{$case};
            for my $method (qw(GET HEAD POST DELETE)) {
                my $answer = $to->request($method, "$path/runs/$UUID", undef, $headers);
                my $title = join ' ', 'keys:', $status, $method, $path, keys %{$headers};
                is $answer->{status}, $status, $title;
                like $answer->{body} // '', $method eq 'HEAD' ? qr/\A\z/ : qr/\Q$document{$path}\E/, "$title: the body is that of the document";
                is defined $answer->{headers}{'www-authenticate'}, $status == 401, "$title: the challenge";
            }
        }
    }
};

subtest 'Require agent-scope: 403 scope_required only for a line whose scope would admit the key' => sub {
    my %of = map { my ($account, @scopes) = @{$_}; ("@scopes of $account" => create_key($account, scopes => \@scopes)) } map { ([ $shop, @{$_} ], [ $other, @{$_} ]) } ['read'], [qw(read run)], [qw(read admin)];
    my $try = sub { my ($path, $scopes, $account) = @_; return $client->get("$path/x", undef, with($of{"$scopes of $account"})) };
    for my $path (qw(/no-admin-not /no-admin-none)) {
        is outcome($try->($path, 'read', $other)), '404 -', "$path: a key of the account without the scope";
        is outcome($try->($path, 'read admin', $other)), '401 -', "$path: one with it";
        is outcome($try->($path, 'read', $shop)), '401 -', "$path: one of another account";
    }
    my $answer = $try->('/no-admin-page', 'read', $shop);
    is "$answer->{status} $answer->{body}", '401 Log in.', 'a line with not has denied the scope, and another one the account: the ErrorDocument is that of the location';
    is outcome($try->('/twice', 'read', $shop)), '403 scope_required', 'a line with not in a <RequireNone> demands its scope';
    is outcome($try->('/twice', 'read run', $shop)), '404 -', 'a line with not in a <RequireNone> admits a key with its scope';
};

# To read the deployment would create it where it is missing, and take longer than for none.
subtest 'a key of another deployment is refused before the one of the location is read' => sub {
    my $of_desk = create_key($shop, kind => 'deployment', deployment => 'desk');
    my ($text) = sql(q{select encode(convert_to(pg_get_functiondef('agent.ensure_deployment'::regproc), 'UTF8'), 'hex')});
    my $function = pack 'H*', $text;
    my $broken = $function =~ s/^begin$/begin raise exception using errcode = '57P03';/mr;
    isnt $broken, $function, 'keys: the function fails';
    sql($broken);
    is try_key($of_desk, $_), '404 deployment_not_found', "keys: the answer is 404, $_" for qw(/stalls /stalls-open);
    sql($function);
};

subtest 'keys: the built-in account is open where no key is required' => sub {
    my $own = create_key($BUILT_IN, scopes => ['read']);
    is outcome($client->get("/plain/threads/$UUID")), $ADMITTED, 'keys: without a key';
    is try_key('anything', '/plain'), $ADMITTED, 'keys: with any text as the key';
    is outcome($client->get("/keyed/threads/$UUID")), '401 unauthorized', 'keys: without a key, where one is required';
    is try_key($own, '/keyed'), $ADMITTED, 'keys: with a key of the built-in account';
    is outcome($client->post('/keyed/threads', {}, with($own))), '403 scope_required', 'keys: its scopes are enforced';
    is try_key($key, '/keyed'), '404 deployment_not_found', 'keys: with a key of another account';
};

subtest 'Require agent-scope and agent-account deny other keys' => sub {
    my $runner = create_key($shop, scopes => [qw(read run)]);
    is try_key($runner, '/deployers'), '403 scope_required', 'Require agent-scope: a key without one of the scopes';
    is try_key(create_key($shop, scopes => [qw(read admin)]), '/deployers'), $ADMITTED, 'Require agent-scope: a key with one of them';
    my $answer = $client->get('/file-deployers/x', undef, with($runner));
    is outcome($answer), '403 scope_required', 'Require agent-scope: a location of another handler, without AuthzSendForbiddenOnFailure';
    is $answer->{headers}{'www-authenticate'}, undef, 'Require agent-scope: a valid key is not asked for another one';
    is $client->get('/file-deployers/x')->{body}, 'Log in.', 'Require agent-scope: an ErrorDocument 401 is for requests without a valid key';
    is $client->get('/paged/x')->{body}, 'The page.', 'Require agent-scope: an ErrorDocument 401 may be another request';
    is $client->get('/explained/x', undef, with($runner))->{body}, 'Ask for more.', 'Require agent-scope: an ErrorDocument 403 is sent with AuthzSendForbiddenOnFailure On';
    is outcome($client->get('/forbidden/x', undef, with($runner))), '403 -', 'Require agent-scope: a 403 of another module is its own, though a first line has denied the key';
    my $built_in = create_key($BUILT_IN);
    is try_key($_->[0], $_->[1]), '404 deployment_not_found', "Require agent-account: a key of another account, $_->[1]" for [ $built_in, '' ], [ $foreign, '/strict' ];
    is outcome($client->get('/files/x', undef, with($built_in))), '403 -', 'Require agent-account: a key of another account, where no deployment is served';
    my $id = key_id($foreign);
    unlike $server->error_log, qr/:error\].*user $id: authorization failure/, 'Require agent-account: httpd logs no error of it';
    is outcome($client->get("/deployers/threads/$UUID")), '401 unauthorized', 'Require agent-scope: without a key httpd asks for one';
};

subtest 'an API with an AuthType that no module has: 500, and the error log says why' => sub {
    my $expected = { detail => 'The server could not authorize the request: its error log says why.', code => 'internal' };
    for my $headers (undef, with($key)) {
        my $answer = $client->get('/misspelt/ok', undef, $headers);
        is_deeply [ $answer->{status}, $answer->{json} ], [ 500, $expected ], $headers ? 'a key' : 'no key';
    }
    like $server->error_log, qr/AH01796/, 'the line of httpd';
};

subtest 'a 500 of another module, before authorization, is not a failure of authorization' => sub {
    my $answer = $client->get('/strict/maintenance', undef, with($key));
    is_deeply [ $answer->{status}, $answer->{json} ], [ 500, { detail => 'Internal Server Error', code => 'internal' } ];
};

# ---- scopes ----

subtest 'scopes: each route is served with its scope, and with no other' => sub {
    my @scopes = qw(read run deploy admin);
    my %key_with = map { $_ => create_key($shop, scopes => [$_]) } @scopes;
    my %scopes = scopes('server');
    is_deeply [ sort map { $_->{name} } routes('server') ], [ sort keys %scopes ], 'scopes: there are no other routes';
    for my $name (grep { $scopes{$_} ne 'none' } sort keys %scopes) {
        my ($method, $path) = split / /, $name;
        my $needed = $scopes{$name};
        my $url = $path =~ s/\{namespace\}/x/r =~ s/\{\w+\}/$UUID/gr;
        my $body = $method eq 'GET' ? undef : {};
        my %seen = map { $_ => $client->request($method, $url, $body, with($key_with{$_})) } @scopes;
        is_deeply [ grep { outcome($seen{$_}) ne '403 scope_required' } @scopes ], [$needed], "scopes: $method $path needs $needed";
        unlike $seen{$needed}{status}, qr/\A(?:401|403|5..)\z/, "scopes: $method $path is served with it";
        like $seen{ $needed eq 'admin' ? 'read' : 'admin' }{json}{detail}, qr/'$needed'/, "scopes: $method $path names it";
    }
    my ($read, $deploy) = @key_with{qw(read deploy)};
    is outcome($client->get("/threads/$UUID/runs/$UUID/join?cancel_on_disconnect=true", undef, with($read))), '403 scope_required',
        'scopes: a GET that would cancel a run needs run';
    is outcome($client->delete("/assistants/$UUID?delete_threads=true", undef, with($deploy))), '403 scope_required',
        'scopes: the deletion of an assistant with its threads needs run';
    is $client->get($_, undef, with($key_with{admin}))->{status}, 200, "scopes: $_ needs none" for qw(/ok /info);
};

# ---- a run ----

subtest 'keys: the runs of a deployment of an account are executed' => sub {
    my $thread = $client->post('/threads', {}, with($key))->{json}{thread_id};
    my $run = $client->post("/threads/$thread/runs", run_body('hello'), with($key))->{json};
    my $joined = $client->get("/threads/$thread/runs/$run->{run_id}/join", undef, with($key))->{json};
    is $joined->{messages}[0]{content}, 'hello', 'keys: the run has ended';
    is sql("select account_id from agent.threads join agent.deployments using (deployment_id) where thread_id = '$thread'"), $shop,
        'keys: its thread belongs to the account';
};

# ---- many keys, and a database that is down ----

subtest 'keys: 20 refused keys in 10 s, then 429 for keys of this address that are not known' => sub {
    my $guesser = new_client();
    my $ask = sub { $guesser->get("/threads/$UUID", undef, with($_[0])) };
    is outcome($ask->('text')), '401 invalid_key', 'failures: a key without a checksum costs no query' for 1 .. 30;
    is outcome($ask->(print_key('sk', random_digits(22), random_digits(43)))), '401 unknown_key', 'failures: a refused key' for 1 .. 20;
    my $begun = now();
    try_key($key);
    is outcome($ask->($key)), $ADMITTED, 'failures: a key that was verified less than 2 s ago is admitted';
    my $new = create_key($shop);
    my $refused = $ask->($new);
    is outcome($refused), '429 too_many_failures', 'failures: another one is not';
    like $refused->{headers}{'retry-after'}, qr/\A(?:[1-9]|10)\z/, 'failures: Retry-After';
    is try_key($new), $ADMITTED, 'failures: it is admitted from another address';
    wait_until($begun + 10.1);
    is outcome($ask->($new)), $ADMITTED, 'failures: after 10 s any key is tried';
};

subtest 'keys: refused keys of an IPv6 client are counted by its /64' => sub {
    my $proxy = AgentTest::Client->new(url => $server->url);
    my $from = sub {
        my %headers = ('X-Forwarded-For' => $_[0], 'x-api-key' => print_key('sk', random_digits(22), random_digits(43)));
        return outcome($proxy->get("/threads/$UUID", undef, \%headers));
    };
    is $from->("2001:db8::$_"), '401 unknown_key', 'failures: 20 of addresses of one /64' for 1 .. 20;
    is $from->('2001:db8::ffff:1'), '429 too_many_failures', 'failures: the next one of any of its addresses';
    is $from->('2001:db8:0:1::1'), '401 unknown_key', 'failures: one of another /64';
};

subtest 'keys: forged keys are never admitted, and never an internal error' => sub {
    my %seen;
    for my $address (1 .. 20) {
        my $forger = new_client();
        for (1 .. 100) {
            my $forged = print_key((qw(sk pt dk))[ rand 3 ], random_digits(22), random_digits(43));
            $forged =~ s/.\z/0/ if rand() < 0.5;
            my $headers = rand() < 0.5 ? with($forged) : { Authorization => "Bearer $forged" };
            $seen{ outcome($forger->get("/threads/$UUID", undef, $headers)) }++;
        }
    }
    is join(' ', grep { !/\A(?:401 (?:invalid|unknown)_key|429 too_many_failures)\z/ } sort keys %seen), '', 'keys: forged ones are 401 or 429';
    is scalar keys %seen, 3, 'keys: the answers are of all three kinds';
};

subtest 'keys: while the database is down a verified key is good for its 2 s, then 503, never 401' => sub {
    my $ask = sub { outcome($client->get('/threads/none', undef, with($key))) };
    is $ask->(), '404 not_found', 'database: a request that needs no data';
    my $begun = now();
    $postgres->stop('immediate');
    # The stop may have taken longer.
    my $seen = $ask->();
    my $is_early = now() < $begun + 2;
    is $seen, '404 not_found', 'database: it is served while the key is known' if $is_early;
    wait_until($begun + 2);
    is $ask->(), '503 database_unavailable', 'database: then it is 503' for 1 .. 3;
    is outcome($client->get("/granted/threads/$UUID", undef, with($key))), '503 database_unavailable', 'database: also in the handler';
    is outcome($client->get('/threads/none')), '401 unauthorized', 'database: no key is 401';
    $postgres->start;
    wait_for('a key to be admitted again', sub { $ask->() eq '404 not_found' });
    pass 'database: keys are admitted again';
};

is scalar(grep { /\Q@{[ key_id($key, 4) ]}\E/ } split /\n/, $server->error_log), 0, 'keys: no log line has the secret of a key';

undef $server;
done_testing;
