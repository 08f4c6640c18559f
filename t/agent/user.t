# SPDX-License-Identifier: Apache-2.0
# The user of a run: that of a key, of another AuthType, or of x-user-id.
use strict;
use warnings;
use AgentTest::ApiKey;
use AgentTest::Client qw(parse_response read_to_end run_body);
use AgentTest::Conf qw(demo_graph key_location location);
use AgentTest::Env qw(free_port write_file);
use AgentTest::Postgres;
use AgentTest::Server;
use AgentTest::Tls;
use Digest::MD5 qw(md5_hex);
use File::Temp qw(tempdir);
use IO::Socket::IP;
use Test::More;

my ($port, $behind, $dual) = map { free_port() } 1 .. 3;
# The host has IPv6.
my $has_v6 = IO::Socket::IP->new(Listen => 1, LocalHost => '::1');
my $postgres = AgentTest::Postgres->new;
local $ENV{PGHOST} = $postgres->host;
my $account = create_account();
my $dir = tempdir('/tmp/agent-test-users.XXXXXX', CLEANUP => 1);
chmod 0755, $dir or die "$dir: $!\n";
# The password is "secret".
write_file("$dir/users", "carol:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n");
write_file("$dir/digests", 'carol:users:' . md5_hex('carol:users:secret') . "\n");
my $tls = AgentTest::Tls->new;
my @tls = $tls->lines($tls->create_client('dora'), 'SSLUserName SSL_CLIENT_S_DN_CN', 'AgentDeployment open', 'AgentTrustUserHeader 127.0.0.2',
    '<Location "/">', 'AuthType None', 'Require all granted', '</Location>',
    '<Location "/keys">', 'AgentPrefix /keys', 'AuthType AgentKey', '<RequireAny>', 'Require ssl-verify-client', 'Require agent-scope run', '</RequireAny>', '</Location>');
my $server = AgentTest::Server->new(database => $postgres->conninfo, config => join '', demo_graph(),
    key_location("Require agent-account $account", 'AgentTrustUserHeader 127.0.0.2 192.0.2.0/24'), <<"CONF", map { "$_\n" } @tls);
LoadModule authn_file_module "\${MODULES}/mod_authn_file.so"
LoadModule auth_basic_module "\${MODULES}/mod_auth_basic.so"
LoadModule auth_digest_module "\${MODULES}/mod_auth_digest.so"
LoadModule authz_user_module "\${MODULES}/mod_authz_user.so"
LoadModule remoteip_module "\${MODULES}/mod_remoteip.so"
RemoteIPHeader X-Forwarded-For
RemoteIPInternalProxy 127.0.0.1 127.0.0.2
AgentConfigurableHeaders *
AgentDeployment shop account=$account
Listen 127.0.0.1:$port
<VirtualHost 127.0.0.1:$port>
    AgentDeployment open
    <AgentGraph agent>
        AgentModel demo
    </AgentGraph>
    <Location "/">
        Require all granted
    </Location>
    <Location "/basic">
        AgentPrefix /basic
        AuthType Basic
        AuthName "users"
        AuthUserFile "$dir/users"
        Require valid-user
    </Location>
    <Location "/digest">
        AgentPrefix /digest
        AuthType Digest
        AuthName "users"
        AuthUserFile "$dir/digests"
        Require valid-user
    </Location>
</VirtualHost>
# Behind a proxy that announces the address of its client.
Listen 127.0.0.1:$behind
<VirtualHost 127.0.0.1:$behind>
    RemoteIPProxyProtocol On
</VirtualHost>
@{[ $has_v6 ? "Listen [::]:$dual" : '' ]}
CONF
$server->start;
my ($near, $proxy) = map { AgentTest::Client->new(url => $server->url, local_address => $_) } '127.0.0.1', '127.0.0.2';
# Of the second host.
my ($near_open, $proxy_open) = map { AgentTest::Client->new(url => "http://127.0.0.1:$port", local_address => $_) } '127.0.0.1', '127.0.0.2';

# The configurable of a new run; path: of the API.
sub configurable_of {
    my ($client, $headers, %with) = @_;
    my $path = $with{path} // '';
    my $answer = $client->post("$path/runs", run_body('hello', config => { configurable => $with{configurable} // {} }), $headers);
    return $answer->{json}{kwargs}{config}{configurable} // "$answer->{status} $answer->{body}";
}

# The members in which graphs find an authenticated user.
sub identity_of {
    my ($user, @scopes) = @_;
    return {
        user_id                    => $user,
        langgraph_auth_user_id     => $user,
        langgraph_auth_permissions => [@scopes],
        langgraph_auth_user        => { identity => $user, display_name => $user, is_authenticated => Cpanel::JSON::XS::true,
            permissions => [@scopes] },
    };
}

sub is_user {
    my ($configurable, $expected, $title) = @_;
    return fail("$title: $configurable") if !ref $configurable;
    my %found = map { $_ => $configurable->{$_} } grep { /\A(?:user_id|langgraph_auth_.*)\z/ } keys %{$configurable};
    is_deeply \%found, $expected, $title;
    return;
}

# Claims of a client.
my %claims = (user_id => 'eve', langgraph_auth_user_id => 'eve', langgraph_auth_permissions => ['admin'],
    langgraph_auth_user => { identity => 'eve' });

my $personal = create_key($account, kind => 'personal', user => "Ann \x{c3}\x{a9}", scopes => ['run']);
my $service = create_key($account, scopes => [qw(run read)]);
my $ann = "Ann \x{e9}";

subtest 'user: that of a personal key, whatever the client says' => sub {
    my %key = ('x-api-key' => $personal);
    is_user(configurable_of($near, \%key), identity_of($ann, 'run'), 'user: that of the key');
    is_user(configurable_of($near, { %key, 'x-user-id' => 'eve', 'langgraph_auth_user_id' => 'eve' }, configurable => \%claims),
        identity_of($ann, 'run'), 'user: not that of headers or of the body');
    is_user(configurable_of($proxy, { %key, 'x-user-id' => 'bob' }), identity_of($ann, 'run'), 'user: not that of a trusted proxy');
};

subtest 'user: the key id of another key, or that of a trusted proxy' => sub {
    my %key = ('x-api-key' => $service);
    my $id = key_id($service);
    is_user(configurable_of($near, { %key, 'x-user-id' => 'eve' }, configurable => \%claims), identity_of($id, 'read', 'run'), 'user: the key id');
    is_user(configurable_of($proxy, \%key), identity_of($id, 'read', 'run'), 'user: the key id, if the proxy says nothing');
    is_user(configurable_of($proxy, { %key, 'x-user-id' => 'bob' }), identity_of('bob', 'read', 'run'), 'user: that of the proxy');
    SKIP: {
        skip 'no IPv6 here', 2 if !$has_v6;
        my ($near_dual, $proxy_dual) = map { AgentTest::Client->new(url => "http://127.0.0.1:$dual", local_address => $_) } '127.0.0.1', '127.0.0.2';
        is_user(configurable_of($proxy_dual, { %key, 'x-user-id' => 'bob' }), identity_of('bob', 'read', 'run'),
            'user: that of the proxy, on a socket of both families');
        is_user(configurable_of($near_dual, { %key, 'x-user-id' => 'eve' }), identity_of($id, 'read', 'run'),
            'user: the key id, on a socket of both families');
    }
    is_user(configurable_of($near, { %key, 'x-user-id' => 'eve', 'X-Forwarded-For' => '127.0.0.2' }), identity_of($id, 'read', 'run'),
        'user: a proxy is the peer of the connection, not an address of mod_remoteip');
    is_user(configurable_of($proxy, { %key, 'x-user-id' => 'bob', 'X-Forwarded-For' => '203.0.113.9' }), identity_of('bob', 'read', 'run'),
        'user: a proxy stays trusted when mod_remoteip takes the address of its client for that of the request');
    my $socket = $near->connection(PeerAddr => "127.0.0.1:$behind");
    my $body = Cpanel::JSON::XS->new->encode(run_body('hello'));
    syswrite $socket, "PROXY TCP4 127.0.0.2 127.0.0.1 1 2\r\n" . join "\r\n", 'POST /runs HTTP/1.1', 'Host: localhost', 'Connection: close',
        "x-api-key: $service", 'x-user-id: eve', 'Content-Type: application/json', 'Content-Length: ' . length $body, '', $body;
    is_user(parse_response(read_to_end($socket))->{json}{kwargs}{config}{configurable}, identity_of($id, 'read', 'run'),
        'user: an address of the PROXY protocol is not that of a trusted proxy');
    is $proxy->post('/runs', run_body('hello'), { %key, 'x-user-id' => 'a b' })->{status}, 400, 'user: an invalid x-user-id of a trusted proxy is 400';
};

subtest 'user: a run without authentication has the user of x-user-id, and no identity' => sub {
    is_user(configurable_of($near_open, { 'x-user-id' => 'dan' }, configurable => \%claims), { user_id => 'dan' }, 'user: that of x-user-id');
    is_user(configurable_of($near_open, {}, configurable => \%claims), { user_id => 'eve' }, 'user: without it the word of the client');
};

subtest 'user: the user of another AuthType is that of the run' => sub {
    my %basic = (Authorization => 'Basic Y2Fyb2w6c2VjcmV0');
    is_user(configurable_of($near_open, { %basic, 'x-user-id' => 'eve' }, path => '/basic', configurable => \%claims), identity_of('carol'),
        'user: that of mod_auth_basic');
    is_user(configurable_of($proxy_open, { %basic, 'x-user-id' => 'bob' }, path => '/basic'), identity_of('bob'), 'user: that of a trusted proxy');
    my $batch = $near_open->post('/basic/runs/batch', [ run_body('hello') ], \%basic)->{json};
    is_user($batch->[0]{kwargs}{config}{configurable}, identity_of('carol'), 'user: of the runs of a batch too');
};

# The header of a client that answers the challenge.
sub digest_header {
    my ($challenge, $password) = @_;
    my ($nonce) = $challenge =~ /nonce="([^"]*)"/;
    my $response = md5_hex(join ':', md5_hex("carol:users:$password"), $nonce, '00000001', 'abc', 'auth', md5_hex('POST:/digest/runs'));
    return qq(Digest username="carol", realm="users", nonce="$nonce", uri="/digest/runs", qop=auth, nc=00000001, cnonce="abc", response="$response");
}

subtest 'user: the user of mod_auth_digest is that of the run' => sub {
    my $challenge = sub { $near_open->post('/digest/runs', run_body('hello'))->{headers}{'www-authenticate'} };
    is_user(configurable_of($near_open, { Authorization => digest_header($challenge->(), 'secret'), 'x-user-id' => 'eve' }, path => '/digest',
        configurable => \%claims), identity_of('carol'), 'user: whatever the client says');
    is_user(configurable_of($proxy_open, { Authorization => digest_header($challenge->(), 'secret'), 'x-user-id' => 'bob' }, path => '/digest'),
        identity_of('bob'), 'user: that of a trusted proxy');
    my $wrong = $near_open->post('/digest/runs', run_body('hello'), { Authorization => digest_header($challenge->(), 'guess'), 'x-user-id' => 'carol' });
    is "$wrong->{status} $wrong->{json}{code}", '401 unauthorized', 'user: another password is 401, in the body of the API';
};

subtest 'user: the user of a client certificate is that of the run' => sub {
    my ($near_tls, $proxy_tls) = map { AgentTest::Client->new(url => $tls->url, local_address => $_, tls => $tls->client) } '127.0.0.1', '127.0.0.2';
    is_user(configurable_of($near_tls, { 'x-user-id' => 'eve' }, configurable => \%claims), identity_of('dora'), 'user: whatever the client says');
    is_user(configurable_of($near_tls, { 'x-user-id' => 'eve', 'X-Forwarded-For' => '127.0.0.2' }), identity_of('dora'), 'user: also with mod_remoteip');
    is_user(configurable_of($proxy_tls, { 'x-user-id' => 'bob' }), identity_of('bob'), 'user: that of a trusted proxy');
    is_user(configurable_of($near_tls, { 'x-user-id' => 'eve' }, path => '/keys'), identity_of('dora'), 'user: also where AuthType AgentKey is chosen, and Require admits without a key');
    my $none = AgentTest::Client->new(url => $tls->url, tls => { SSL_verify_mode => 0 });
    ok !eval { $none->post('/runs', run_body('hello'), { 'x-user-id' => 'dora' }) }, 'user: without a certificate there is no answer';
};

undef $server;
done_testing;
