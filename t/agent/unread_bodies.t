# SPDX-License-Identifier: Apache-2.0
# A request that is refused for its key is answered before a byte of its body has arrived, wherever it is refused: in httpd's
# own checks, in those of this module, or in the handler.
use strict;
use warnings;
use AgentTest::ApiKey;
use AgentTest::Client qw(parse_response read_to_end);
use AgentTest::Conf qw(demo_graph key_location location one_child platform_location);
use AgentTest::Database;
use AgentTest::Postgres;
use AgentTest::Server;
use Test::More;

my $postgres = AgentTest::Postgres->new;
local $ENV{PGHOST} = $postgres->host;
my ($shop, $other) = map { create_account() } 1 .. 2;
my $server = AgentTest::Server->new(database => $postgres->conninfo, config => join '', one_child(8), demo_graph(), "AgentDeployment shop account=$shop\n",
    key_location("Require agent-account $shop"),
    location('/granted', 'Require all granted'),
    location('/forbidden', 'AuthzSendForbiddenOnFailure On', 'Require agent-scope deploy'),
    location('/strict', 'AuthzSendForbiddenOnFailure Off', 'Require agent-scope deploy'),
    location('/denied', 'AuthType None', 'Require all denied'),
    location('/files', 'SetHandler None', 'AuthzSendForbiddenOnFailure On', 'Require agent-scope deploy'),
    location('/strict-files', 'SetHandler None', 'AuthzSendForbiddenOnFailure Off', 'Require agent-scope deploy'),
    location('/other-files', 'SetHandler None', 'AuthzSendForbiddenOnFailure On', "Require agent-account $other"),
    platform_location());
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

my %key = (
    none    => undef,
    text    => 'text',
    reader  => create_key($shop, scopes => ['read']),
    other   => create_key($other),
    unknown => print_key('sk', random_digits(22), random_digits(43)),
    foreign => print_key('sk', random_digits(22), random_digits(43), 'mars'),
);
sql("select agent.ensure_deployment('shop', '$shop')");
$key{shop} = create_key($shop, kind => 'deployment', deployment => 'shop');

# "403 scope_required", read to the end of the connection.
sub outcome {
    my ($head) = @_;
    my $socket = $client->connection;
    syswrite $socket, $head;
    my $answer = parse_response(read_to_end($socket));
    is lc($answer->{headers}{connection} // ''), 'close', 'unread bodies: the connection is closed';
    return "$answer->{status} " . (ref $answer->{json} eq 'HASH' ? $answer->{json}{code} // '-' : '-');
}

for my $case (
    [ '/threads',             'none',    '401 unauthorized' ],
    [ '/threads',             'text',    '401 invalid_key' ],
    [ '/threads',             'unknown', '401 unknown_key' ],
    [ '/threads',             'reader',  '403 scope_required' ],
    [ '/threads',             'other',   '404 deployment_not_found' ],
    [ '/threads',             'foreign', '403 wrong_region' ],
    [ '/granted/threads',     'none',    '401 unauthorized' ],
    [ '/granted/threads',     'reader',  '403 scope_required' ],
    [ '/granted/threads',     'other',   '404 deployment_not_found' ],
    [ '/granted/threads',     'foreign', '403 wrong_region' ],
    [ '/forbidden/threads',   'none',    '401 unauthorized' ],
    [ '/forbidden/threads',   'reader',  '403 scope_required' ],
    [ '/strict/threads',      'reader',  '403 scope_required' ],
    [ '/denied/threads',      'none',    '403 forbidden' ],
    [ '/files/x',             'none',    '401 unauthorized' ],
    [ '/files/x',             'reader',  '403 scope_required' ],
    [ '/strict-files/x',      'reader',  '403 scope_required' ],
    [ '/other-files/x',       'reader',  '403 -' ],
    [ '/files/x',             'foreign', '403 wrong_region' ],
    [ '/platform/v1/account/keys', 'none', '401 unauthorized' ],
    [ '/platform/v1/account/keys', 'reader', '403 scope_required' ],
    [ '/platform/v1/account/keys', 'shop', '403 scope_required' ],
    [ '/platform/v1/accounts', 'foreign', '403 wrong_region' ],
    [ '/platform/nothing',    'none',    '404 not_found' ],
) {
    my ($path, $name, $expected) = @{$case};
    my $key = defined $key{$name} ? "x-api-key: $key{$name}\r\n" : '';
    for my $body ('Content-Length: 1000000', 'Content-Length: 50000000', 'Transfer-Encoding: chunked') {
        is outcome("POST $path HTTP/1.1\r\nHost: localhost\r\n${key}Content-Type: application/json\r\n$body\r\n\r\n"), $expected,
            "unread bodies: POST $path, key: $name, $body";
    }
}

# A route without data is served with any key as long as no body is announced.
for my $request ('POST /ok', 'GET /ok', 'GET /info', 'GET /platform/ok', 'GET /platform/info', 'GET /platform/', 'GET /platform/.well-known/agent-addresses') {
    my $head = "$request HTTP/1.1\r\nHost: localhost\r\nx-api-key: $key{foreign}\r\n";
    is outcome("$head$_\r\n\r\n"), '403 wrong_region', "unread bodies: $request, key: foreign, $_" for 'Content-Length: 1000000', 'Transfer-Encoding: chunked';
}

# Without a body the connection stays open for the next request.
for my $case ([ '/forbidden', 403 ], [ '/files', 403 ], [ '/denied', 403 ], [ '', 200 ]) {
    my ($path, $expected) = @{$case};
    my $socket = $client->connection;
    my $head = "Host: localhost\r\nx-api-key: $key{reader}\r\n";
    syswrite $socket, "GET $path/ok HTTP/1.1\r\n$head\r\nGET /ok HTTP/1.1\r\n${head}Connection: close\r\n\r\n";
    is_deeply [ read_to_end($socket) =~ m{HTTP/1\.1 (\d+) }g ], [ $expected, 200 ], "unread bodies: after GET $path/ok another request is served";
}

undef $server;
done_testing;
