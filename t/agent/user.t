# SPDX-License-Identifier: Apache-2.0
# The user of a run: that of a key, of another AuthType, or of x-user-id.
use strict;
use warnings;
use AgentTest::ApiKey;
use AgentTest::Client qw(run_body);
use AgentTest::Env qw(free_port write_file);
use AgentTest::Postgres;
use AgentTest::Server;
use File::Temp qw(tempdir);
use Test::More;

my $port = free_port();
my $postgres = AgentTest::Postgres->new;
local $ENV{PGHOST} = $postgres->host;
my $account = create_account();
my $dir = tempdir('/tmp/agent-test-users.XXXXXX', CLEANUP => 1);
chmod 0755, $dir or die "$dir: $!\n";
# The password is "secret".
write_file("$dir/users", "carol:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n");
my $server = AgentTest::Server->new(database => $postgres->conninfo, config => <<"CONF");
LoadModule authn_core_module "\${MODULES}/mod_authn_core.so"
LoadModule authn_file_module "\${MODULES}/mod_authn_file.so"
LoadModule auth_basic_module "\${MODULES}/mod_auth_basic.so"
LoadModule authz_user_module "\${MODULES}/mod_authz_user.so"
LoadModule remoteip_module "\${MODULES}/mod_remoteip.so"
RemoteIPHeader X-Forwarded-For
RemoteIPInternalProxy 127.0.0.1
AgentRunner "\${BUILD_DIR}/agent-runner"
AgentMaxWaitersPerAddress 0
AgentConfigurableHeaders *
AgentDeployment shop account=$account
<AgentGraph agent>
    AgentModel demo
</AgentGraph>
<Location "/">
    SetHandler agent
    AuthType AgentKey
    Require agent-account $account
    AgentTrustUserHeader 127.0.0.2 192.0.2.0/24
</Location>
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
</VirtualHost>
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
    is_user(configurable_of($near, { %key, 'x-user-id' => 'eve', 'X-Forwarded-For' => '127.0.0.2' }), identity_of($id, 'read', 'run'),
        'user: a proxy is the peer of the connection, not an address of mod_remoteip');
    is $proxy->post('/runs', run_body('hello'), { %key, 'x-user-id' => 'a b' })->{status}, 400, 'user: an invalid x-user-id of a trusted proxy is 400';
};

subtest 'user: without authentication that of x-user-id, and no identity' => sub {
    is_user(configurable_of($near_open, { 'x-user-id' => 'dan' }, configurable => \%claims), { user_id => 'dan' }, 'user: that of x-user-id');
    is_user(configurable_of($near_open, {}, configurable => \%claims), { user_id => 'eve' }, 'user: without it the word of the client');
};

subtest 'user: that of another AuthType' => sub {
    my %basic = (Authorization => 'Basic Y2Fyb2w6c2VjcmV0');
    is_user(configurable_of($near_open, { %basic, 'x-user-id' => 'eve' }, path => '/basic', configurable => \%claims), identity_of('carol'),
        'user: that of mod_auth_basic');
    is_user(configurable_of($proxy_open, { %basic, 'x-user-id' => 'bob' }, path => '/basic'), identity_of('bob'), 'user: that of a trusted proxy');
    my $batch = $near_open->post('/basic/runs/batch', [ run_body('hello') ], \%basic)->{json};
    is_user($batch->[0]{kwargs}{config}{configurable}, identity_of('carol'), 'user: of the runs of a batch too');
};

undef $server;
done_testing;
