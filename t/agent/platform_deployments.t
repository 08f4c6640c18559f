# SPDX-License-Identifier: Apache-2.0
# Deployments on a platform host, below /deployments/: to clients without
# access, a deployment that exists answers like one that does not.
use strict;
use warnings;
use AgentTest::ApiKey;
use AgentTest::Client qw(read_to_end);
use AgentTest::Conf qw(demo_graph location one_child);
use AgentTest::Database;
use AgentTest::Postgres;
use AgentTest::Server;
use AgentTest::Statements;
use Test::More;

my $UUID = '01900000-0000-7000-8000-000000000000';
my $shop = '018f2d6e-7c4b-7abc-9def-0000000000aa';

# A separate cluster, whose log has the statements.
my $postgres = AgentTest::Postgres->new;
local $ENV{PGHOST} = $postgres->host;
my $statements = AgentTest::Statements->new($postgres);
my $server = AgentTest::Server->new(database => $postgres->conninfo, config => join '', one_child(20), demo_graph(), <<"CONF",
LoadModule authn_core_module "\${MODULES}/mod_authn_core.so"
AgentDeployment demo account=$shop
CONF
    location('/', 'SetHandler agent-platform', 'Require all granted', 'AgentAllowOrigin https://app.example.com'),
    location('/deployments/demo', 'SetHandler agent', 'AuthType AgentKey', 'AuthName "the shop"', "Require agent-account $shop"),
    location('/mounted', 'ErrorDocument 404 "Not here."'),
    location('/mounted/deployments/demo', 'SetHandler agent', 'AuthType AgentKey', "Require agent-account $shop"));
$server->start;
create_account($shop);
sql("select agent.ensure_deployment('desk', '$shop')");
my $other = create_account();
my %key = (
    none    => undef,
    text    => 'text',
    unknown => print_key('sk', random_digits(22), random_digits(43)),
    foreign => create_key($other),
    another => create_key($shop, kind => 'deployment', deployment => 'desk'),
);
my $owner = create_key($shop);

my $client = AgentTest::Client->new(url => $server->url);
my $asked = 0;

# Every byte of the answer but its date.
sub ask {
    my ($prefix, $name, $what, $headers, $body) = @_;
    my ($method, $path) = split / /, $what;
    # Refused keys are counted by address.
    my $socket = $client->connection(LocalAddr => sprintf '127.0.%d.%d', 1 + $asked / 200, 2 + $asked++ % 200);
    my $length = defined $body ? 'Content-Length: ' . length($body) . "\r\n" : '';
    my $head = join '', map { "$_: $headers->{$_}\r\n" } grep { defined $headers->{$_} } sort keys %{$headers};
    syswrite $socket, "$method $prefix/deployments/$name$path HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n$head$length\r\n" . ($body // '');
    return read_to_end($socket) =~ s/^Date: .*\r\n//mr;
}

my %page = (Origin => 'https://app.example.com');
my @requests = (
    [ "GET /threads/$UUID" ], [ "HEAD /threads/$UUID" ], [ 'GET ' ], [ 'GET /' ], [ 'GET /ok' ], [ 'GET /info' ], [ 'GET /nothing' ],
    [ 'POST /threads', {}, '{}' ], [ 'POST /ok', {}, '{}' ], [ 'PURGE /threads' ], [ 'OPTIONS /threads' ], [ 'DELETE /threads', {}, '{}' ],
    [ 'POST /threads', { %page, 'Content-Type' => 'application/json' }, '{}' ],
    [ 'POST /threads', { Origin => 'https://evil.example' }, '{}' ],
    [ 'OPTIONS /threads', { %page, 'Access-Control-Request-Method' => 'POST' } ],
    [ "GET /threads/$UUID", { map { ("X-$_" => 'x' x 8000) } 1 .. 5 } ],
    [ 'GET /auth' ], [ 'GET /v1/account' ], [ 'GET /../demo/threads' ], [ 'GET /threads%2Fx' ],
);

for my $prefix ('', '/mounted') {
    for my $kind (sort keys %key) {
        subtest "platform hosts: a deployment that exists answers like another name, key: $kind, prefix: '$prefix'" => sub {
            for my $request (@requests) {
                my ($what, $headers, $body) = @{$request};
                my %headers = (%{ $headers // {} }, 'x-api-key' => $key{$kind});
                my $there = ask($prefix, 'demo', $what, \%headers, $body);
                my $title = join ' ', $what, grep { !/\AX-/ } sort keys %{ $headers // {} };
                is ask($prefix, 'none', $what, \%headers, $body), $there, "deployments: $title";
                my $expected = $kind =~ /none|text|unknown/ ? '401' : '404';
                like $there, qr{\AHTTP/1\.1 $expected }, "deployments: $title is $expected" if $what !~ m{\.\.|%2F|PURGE};
            }
        };
    }
}

subtest 'platform hosts: the owner of a deployment is told which names do not exist' => sub {
    my %with = ('x-api-key' => $owner);
    like ask('', 'demo', "GET /threads/$UUID", \%with), qr/"thread_not_found"/, 'deployments: its own is served';
    like ask('', $_, "GET /threads/$UUID", \%with), qr/"deployment_not_found"/, "deployments: $_ does not exist" for qw(none demo2 dem DEMO);
};

subtest 'platform hosts: other paths are those of the platform' => sub {
    for my $path (qw(/deployments /deployments/ /deploymentsx /x/deployments/demo /nothing)) {
        is $client->get($path)->{json}{code}, 'not_found', "deployments: $path needs no key";
    }
};

subtest 'platform hosts: a name that does not exist opens no deployment' => sub {
    is sql("select string_agg(name, ' ' order by name) from agent.deployments where account_id in ('$shop', '$other')"), 'demo desk',
        'deployments: those that are served, and that of the key';
};

subtest 'platform hosts: with a key of another account both execute the same statements' => sub {
    plan skip_all => 'PostgreSQL has no auto_explain here' if !$statements;
    my @texts = map { my $name = $_; [ $statements->of(sub { ask('', $name, "GET /threads/$UUID", { 'x-api-key' => $key{foreign} }) }) ] } qw(demo none);
    is_deeply $texts[1], $texts[0], 'deployments: for the one that exists, and for the other one';
    is_deeply $texts[0], [], 'deployments: none but those of the key';
};

undef $server;
done_testing;
