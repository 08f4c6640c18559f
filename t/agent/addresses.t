# SPDX-License-Identifier: Apache-2.0
# How many requests of one client may wait.
use strict;
use warnings;
use AgentTest::Client qw(read_until);
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

my ($server, $client) = AgentTest::Server->start_with_client(
    'AgentMaxWaitersPerAddress 3',
    'LoadModule remoteip_module "${MODULES}/mod_remoteip.so"',
    'RemoteIPHeader X-Forwarded-For',
    'RemoteIPInternalProxy 127.0.0.1');
my $thread = $client->new_thread;

# A stream of a client with this address; its connection, and the answer's head.
sub open_stream {
    my ($address) = @_;
    my $socket = $client->connection;
    syswrite $socket, "GET /threads/$thread/stream HTTP/1.1\r\nHost: localhost\r\n"
        . "X-Forwarded-For: $address\r\n\r\n";
    return ($socket, read_until($socket, qr/\r\n\r\n/));
}

my @open;
sub status_of {
    my ($address) = @_;
    my ($socket, $head) = open_stream($address);
    push @open, $socket;
    my ($status) = $head =~ m{\AHTTP/1.1 (\d+)};
    return $status;
}

is_deeply [ map { status_of('192.0.2.1') } 1 .. 4 ], [ 200, 200, 200, 503 ],
    'waiters: one address has AgentMaxWaitersPerAddress of them';
my (undef, $head) = open_stream('192.0.2.1');
like $head, qr/^Retry-After: \d+\r$/mi, 'waiters: the refusal has Retry-After';
is status_of('192.0.2.2'), 200, 'waiters: other addresses are served';
is_deeply [ map { status_of("2001:db8:0:1::$_") } 1 .. 4 ], [ 200, 200, 200, 503 ],
    'waiters: an IPv6 network of 64 bits is one address';
is status_of('2001:db8:0:2::1'), 200, 'waiters: the next IPv6 network is another address';

my $refused = $client->request('POST', "/threads/$thread/runs/wait",
    { assistant_id => 'agent', input => { messages => [] } },
    { 'X-Forwarded-For' => '192.0.2.1' });
is $refused->{json}{code}, 'too_many_waiters_per_address',
    'waiters: a request to create and join a run is refused too';
like $refused->{json}{detail}, qr/AgentMaxWaitersPerAddress/, 'waiters: the refusal names the limit';
like $server->error_log, qr/AGT0102: .*: AgentMaxWaitersPerAddress of 192\.0\.2\.1$/m,
    'waiters: the error log names the limit and the address, first without a count of suppressed lines';
is $client->get("/threads/$thread/runs")->{body}, '[]', 'waiters: a refused request creates no run';

close $open[0];
ok wait_for('a free slot', sub { status_of('192.0.2.1') == 200 }),
    'waiters: a client that disconnects frees its slot';

close $_ for @open;
undef $server;

# Without the directive, in the only child: [AgentMaxWaiters, requests that one
# address gets].
for my $case ([ 48, 12 ], [ 16, 8 ]) {
    my ($most, $expected) = @$case;
    @open = ();
    my $shared = AgentTest::Server->shared_config =~ s/^AgentMaxWaitersPerAddress .*\n//mr;
    $server = AgentTest::Server->new(config => $shared . "AgentMaxWaiters $most\n"
            . "StartServers 1\nMaxSpareThreads 40\nMaxRequestWorkers 40\n");
    $server->start;
    $client = AgentTest::Client->new(url => $server->url);
    $thread = $client->new_thread;
    my @statuses = map { status_of('192.0.2.1') } 1 .. $expected + 1;
    is_deeply \@statuses, [ (200) x $expected, 503 ],
        "waiters: one address gets $expected of $most by default";
    undef $server;
}

done_testing;
