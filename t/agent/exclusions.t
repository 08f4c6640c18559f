# SPDX-License-Identifier: Apache-2.0
# `Require not agent-...` and <RequireNone> where requests have no key: users of another
# AuthType, and nobody.
use strict;
use warnings;
use AgentTest::ApiKey;
use AgentTest::Client;
use AgentTest::Conf qw(demo_graph key_location location);
use AgentTest::Env qw(write_file);
use AgentTest::Postgres;
use AgentTest::Server;
use AgentTest::Tls;
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use Test::More;

my $postgres = AgentTest::Postgres->new;
local $ENV{PGHOST} = $postgres->host;
my ($kept, $banned) = map { create_account() } 1, 2;
my %key = (kept => create_key($kept), banned => create_key($banned));

my $dir = tempdir('/tmp/agent-test-exclusions.XXXXXX', CLEANUP => 1);
chmod 0755, $dir or die "$dir: $!\n";
# The password is "secret".
write_file("$dir/users", "carol:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n");
make_path("$dir/open");
write_file("$dir/open/.htaccess", "<RequireAll>\nRequire all granted\nRequire not shared\n</RequireAll>\n");
write_file("$dir/open/x", 'text');
write_file("$dir/user.lua", "function set(r)\nr.user = 'carol'\nreturn apache2.DECLINED\nend\n");

my @BASIC = ('AuthType Basic', 'AuthName "users"', 'AuthBasicProvider file', qq(AuthUserFile "$dir/users"));
my @MIXED = (q(<If "-n req('x-api-key')">), 'AuthType AgentKey', '</If>', '<Else>', @BASIC, '</Else>');
# A user without a name.
my @ANONYMOUS = ('AuthType Basic', 'AuthName "guests"', 'AuthBasicProvider anon', 'Anonymous *', 'Anonymous_NoUserID On', 'Anonymous_MustGiveEmail Off');
my $EXCLUSION = "Require not agent-account $banned";

sub files { my ($path, $lines, @requires) = @_; return location($path, 'SetHandler None', @{$lines}, '<RequireAll>', @requires, '</RequireAll>') }
sub none { return ('<RequireNone>', "Require $_[0]", '</RequireNone>') }

my $tls = AgentTest::Tls->new;
my $server = AgentTest::Server->new(database => $postgres->conninfo, config => join '', demo_graph(), key_location('AuthMerging And', 'Require all granted'),
    (map { qq(LoadModule ${_}_module "\${MODULES}/mod_$_.so"\n) } qw(alias authn_anon authn_file auth_basic authz_user lua)),
    "<AuthzProviderAlias agent-account shared $banned>\n</AuthzProviderAlias>\n",
    files('/mixed/line', \@MIXED, 'Require valid-user', $EXCLUSION),
    files('/mixed/none', \@MIXED, 'Require valid-user', none("agent-account $banned")),
    files('/mixed/deep', \@MIXED, '<RequireAny>', 'Require user carol', 'Require agent-scope read', '</RequireAny>', '<RequireAll>', $EXCLUSION, 'Require all granted', '</RequireAll>'),
    files('/typeless', ['AuthType None'], 'Require valid-user', $EXCLUSION),
    files('/anonymous', \@ANONYMOUS, 'Require valid-user', $EXCLUSION),
    files('/alone/line', \@BASIC, 'Require all granted', $EXCLUSION),
    files('/alone/mixed', \@MIXED, 'Require local', $EXCLUSION),
    files('/key/line', ['AuthType AgentKey'], 'Require valid-user', $EXCLUSION),
    location('/key/user', 'SetHandler None', 'AuthType AgentKey', 'Require valid-user'),
    (map { location("/lua$_", 'SetHandler None', 'AuthType AgentKey', 'Require valid-user', qq(LuaHookAccessChecker "$dir/user.lua" set $_)) } qw(early late)),
    (map { "$_\n" } $tls->lines($tls->create_client('dora'), 'SSLUserName SSL_CLIENT_S_DN_CN')),
    location('/shared', 'SetHandler None', @BASIC, 'Require shared'),
    qq(Alias "/open" "$dir/open"\n), location('/open', 'SetHandler None', @BASIC), qq(<Directory "$dir/open">\nAllowOverride AuthConfig\n</Directory>\n));
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

my %SENT = (
    none         => undef,
    carol        => { Authorization => 'Basic Y2Fyb2w6c2VjcmV0' },
    'carol, with a wrong password' => { Authorization => 'Basic Y2Fyb2w6YQ==' },
    'a user without a name' => { Authorization => 'Basic Og==' },
    (map { ("a $_ key" => { 'x-api-key' => $key{$_} }) } keys %key),
);

sub status { my ($path, $who) = @_; return $client->get("$path/x", undef, $SENT{$who})->{status} }

subtest 'Require not agent-account beside a line that demands a user admits the users of another AuthType' => sub {
    my %expected = (none => 401, carol => 404, 'carol, with a wrong password' => 401, 'a kept key' => 404, 'a banned key' => 401);
    for my $path (map { "/mixed/$_" } qw(line none deep)) {
        is status($path, $_), $expected{$_}, "$path: $_" for sort keys %expected;
    }
    like $client->get('/mixed/line/x')->{headers}{'www-authenticate'}, qr/\ABasic /, 'a request without any is asked for a password';
    is status('/anonymous', $_->[0]), $_->[1], "a user without a name is not known to be another one: $_->[0]" for [ 'carol', 404 ], [ 'a user without a name', 401 ];
    is status('/typeless', 'carol'), 500, 'where a user is demanded and there is no AuthType, httpd refuses its configuration';
};

subtest 'Require not agent-account where nothing demands a user, and no key is read, denies everybody' => sub {
    is status('/alone/line', $_), 403, "/alone/line: $_" for sort keys %SENT;
    is status('/alone/mixed', $_), 403, "/alone/mixed: $_" for qw(none carol);
};

subtest 'AuthType AgentKey asks for a key where a client certificate has set the user' => sub {
    my $certified = AgentTest::Client->new(url => $tls->url, tls => $tls->client);
    for my $who ('none', 'a kept key', 'a banned key') {
        for my $path (qw(/key/line /key/user)) {
            is $certified->get("$path/x", undef, $SENT{$who})->{status}, status($path, $who), "$path: $who: the same as without a certificate";
        }
    }
    is_deeply [ map { status($_->[0], $_->[1]) } [ '/key/line', 'none' ], [ '/key/line', 'a kept key' ], [ '/key/line', 'a banned key' ], [ '/key/user', 'none' ] ],
        [ 401, 404, 401, 401 ], 'the key decides';
};

subtest 'AuthType AgentKey asks for a key where an access checker of mod_lua has set the user' => sub {
    for my $path (qw(/luaearly /lualate)) {
        is status($path, 'none'), 401, "$path: none";
        is status($path, 'a kept key'), 404, "$path: a kept key";
    }
};

subtest 'an <AuthzProviderAlias> that a .htaccess names with not: it goes on to admit nobody elsewhere, and excludes nobody there' => sub {
    is status('/shared', $_), 401, "without not it admits nobody: $_" for 'none', 'carol', 'a banned key';
    is status('/open', $_), 200, "with not, in the .htaccess, it excludes nobody: $_" for 'none', 'carol', 'a banned key';
};

done_testing;
