# SPDX-License-Identifier: Apache-2.0
# AgentConfigurableHeaders: request headers in config.configurable of runs.
use strict;
use warnings;
use AgentTest::Client qw(run_body);
use AgentTest::Server;
use Test::More;

my $server = AgentTest::Server->new(config => AgentTest::Server::shared_config()
    . "AgentConfigurableHeaders X-* user-agent !x-secret*\n"
    . "<Location /exact>\nAgentPrefix /exact\nAgentConfigurableHeaders * authorization x-api-key\n</Location>\n"
    . "<Location /none>\nAgentPrefix /none\nAgentConfigurableHeaders None\n</Location>\n");
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

my %HEADERS = ('X-Tenant' => 'acme', 'X-Secret-Key' => 's', 'X-API-Key' => 'k', Authorization => 'Bearer t', Cookie => 'c=1',
    'User-Agent' => 'test "1"', 'X-User-Id' => 'anna', 'Proxy-Authorization' => 'Basic p', 'Accept-Language' => 'de');

sub send_run { my ($path, $headers, @members) = @_; return $client->post($path, run_body('hello', @members), $headers) }

# config.configurable of a new run.
sub configurable { return send_run(@_)->{json}{kwargs}{config}{configurable} }

# The members besides identifiers.
sub headers_of {
    my ($configurable) = @_;
    return { map { $_ => $configurable->{$_} } grep { !/\A(?:checkpoint_id|\w+_id)\z/ } keys %{$configurable} };
}

my %selected = ('x-tenant' => 'acme', 'user-agent' => 'test "1"', 'x-user-id' => 'anna');
is_deeply headers_of(configurable('/runs', \%HEADERS)), \%selected,
    'a run has the headers that the patterns select, under their names in lower case';
my $thread = $client->new_thread;
is_deeply headers_of(configurable("/threads/$thread/runs", \%HEADERS)), \%selected, 'a run of a thread has them too';
my ($batched) = @{ $client->post('/runs/batch', [ run_body('hello') ], \%HEADERS)->{json} };
is_deeply headers_of($batched->{kwargs}{config}{configurable}), \%selected, 'runs of a batch have them too';
is_deeply headers_of(configurable('/none/runs', \%HEADERS)), {}, 'None: runs of the location have none';

my $exact = headers_of(configurable('/exact/runs', \%HEADERS));
is_deeply [ @{$exact}{qw(authorization x-api-key accept-language)} ], [ 'Bearer t', 'k', 'de' ], 'credentials are selected by their whole names';
is_deeply [ grep { exists $exact->{$_} } 'cookie', 'proxy-authorization' ], [], 'credentials are not selected by a pattern with *';

my $over = configurable('/runs', \%HEADERS, config => { configurable => { 'x-tenant' => 'forged', own => 1 } });
is_deeply [ @{$over}{qw(x-tenant own)} ], [ 'acme', 1 ], 'a header replaces the member of the body, other members stay';

my %forged = map { $_ => 'forged' } qw(user_id thread_id run_id assistant_id graph_id checkpoint_ns langgraph_auth_user);
is_deeply [ grep { ($_ // '') eq 'forged' } values %{ configurable('/exact/runs', { %HEADERS, %forged }) } ], [],
    'a header is never an identifier or a user';

my $many = send_run('/runs', { map { ("x-$_" => 1) } 1 .. 65 });
is_deeply [ $many->{status}, $many->{json}{code} ], [ 431, 'request_header_fields_too_large' ], 'more than 64 headers are 431';
is send_run('/none/runs', { map { ("x-$_" => 1) } 1 .. 65 })->{status}, 200, 'headers that are not selected do not count';
is send_run('/runs', { map { ("x-$_" => 'v' x 4094) } 1 .. 2 })->{status}, 431, 'more than 8 KB are 431';
is send_run('/runs', { map { ("x-$_" => 'v' x 4000) } 1 .. 2 })->{status}, 200, 'up to 8 KB are accepted';

# As bytes: the client sends no others than ASCII.
sub send_name {
    my ($name) = @_;
    my $body = '{"assistant_id":"agent","input":{"messages":[]}}';
    return $client->exchange("POST /runs HTTP/1.1\r\nHost: $client->{address}\r\nConnection: close\r\nContent-Type: application/json\r\n"
        . 'Content-Length: ' . length($body) . "\r\nX-Name: $name\r\n\r\n$body");
}
like send_name("M\xfcller"), qr{\AHTTP/1\.1 400 .*Header x-name: expected UTF-8\.}s, 'a value that is not UTF-8 is 400';
like send_name("M\xc3\xbcller"), qr{\AHTTP/1\.1 200 .*"x-name": "M\xc3\xbcller"}s, 'a value in UTF-8 is taken';

done_testing;
