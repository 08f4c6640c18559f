# SPDX-License-Identifier: Apache-2.0
# "Running a platform" of the README: its two examples of httpd.conf, in a region, up to a customer's first run.
use strict;
use warnings;
use AgentTest::Client qw(parse_response read_to_end run_body);
use AgentTest::Database;
use AgentTest::Env qw(root slurp);
use AgentTest::Postgres;
use AgentTest::Server;
use AgentTest::Wait;
use Cpanel::JSON::XS;
use Digest::SHA qw(sha256_hex);
use Test::More;

my ($section) = slurp(root() . '/README.md') =~ /^## Running a platform\n(.*?)^## /ms;
my ($platform, $deployment) = $section =~ /^ *```apache\n(.*?)^ *```$/msg;

# The README's lines, with the files and the port of the test.
sub conf_of {
    my ($text) = @_;
    $text =~ s{/usr/lib/apache2/modules/mod_ratelimit_regional\.so}{"\${BUILD_DIR}/mod_ratelimit_regional.so"};
    $text =~ s{/usr/lib/apache2/modules/}{\${MODULES}/}g;
    $text =~ s{/usr/local/share/mod_agent/conf/}{root() . '/conf/'}e;
    $text =~ s{\$\{APACHE_LOG_DIR\}/access\.log}{"\${DIR}/logs/access_log"};
    $text =~ s{^ *SSL.*\n}{}mg;
    $text =~ s{\*:443}{*:\${PORT}}g;
    $text =~ s{^ *AgentApplication .*\n}{<AgentGraph agent>\nAgentModel demo\n</AgentGraph>\n}m;
    return $text;
}

my $postgres = AgentTest::Postgres->new;
local $ENV{PGHOST} = $postgres->host;
sql("set session_replication_role = replica; update agent.region set region = 'eu'; update agent.accounts set home_region = 'eu'");

sub start {
    my (@parts) = @_;
    my $server = AgentTest::Server->new(database => $postgres->conninfo,
        config => qq(AgentRunner "\${BUILD_DIR}/agent-runner"\n) . join "\n", map { conf_of($_) } @parts);
    $server->start;
    return ($server, AgentTest::Client->new(url => $server->url));
}

sub ask {
    my ($client, $method, $host, $path, $body, %headers) = @_;
    my $text = defined $body ? encode_json($body) : '';
    my $socket = $client->connection;
    syswrite $socket, join("\r\n", "$method $path HTTP/1.1", "Host: $host", 'Connection: close', 'Content-Type: application/json',
        'Content-Length: ' . length $text, (map { "$_: $headers{$_}" } keys %headers), '', $text);
    return parse_response(read_to_end($socket));
}

my ($server, $client) = start($platform);
my $host = 'eu.api.example.com';
is ask($client, 'GET', $host, '/info')->{json}{region}, 'eu', 'platform: /info names the region';
is ask($client, 'GET', $host, '/auth')->{status}, 401, 'platform: anybody may ask, and needs a key';
my $text = 'inv1_' . 'a' x 43;
sql("insert into agent.invitations (invitation_id, digest, created_by, created_at, expires_at)
    values (gen_random_uuid(), decode('@{[ sha256_hex($text) ]}', 'hex'), 'x', now(), now() + interval '1 day')");
my $created = ask($client, 'POST', $host, '/v1/accounts', { name => 'Shop', invitation => $text });
is $created->{status}, 200, 'platform: an invitation creates an account' or diag $created->{body};
my $key = $created->{json}{key};
my ($account) = $created->{body} =~ /"account_id" *: *"([0-9a-f-]{36})"/;
undef $server;

$deployment =~ s/\bID\b/$account/g;
($server, $client) = start($platform, $deployment);
my $shop = 'shop.eu.example.com';
is ask($client, 'POST', $shop, '/threads', {})->{status}, 401, 'deployment: it is closed without a key';
my $answer;
wait_for('the graph', sub {
    $answer = ask($client, 'POST', $shop, '/runs/wait', run_body('hello'), 'x-api-key' => $key);
    return $answer->{status} != 404;
});
is $answer->{status}, 200, 'deployment: the key of the customer creates a run';
like $answer->{body}, qr/You said \\"hello\\"/, 'deployment: it is executed';

done_testing;
