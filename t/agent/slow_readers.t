# SPDX-License-Identifier: Apache-2.0
# Clients that read only a part of a large response: the child holds the rest, up
# to its budget for all of them.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Cost;
use AgentTest::Process qw(httpd_children);
use AgentTest::Server;
use AgentTest::Wait;
use IO::Handle;
use Socket qw(SOL_SOCKET SO_RCVBUF);
use Test::More;

my $READERS = 80;
my $TEXT    = 2_600_000;
# The budget of a child, and the memory of its threads and connections.
my $BUDGET = 64 * 1024 * 1024;
my $KEPT   = 48 * 1024 * 1024;

my ($server, $client) = AgentTest::Server->start_with_client('AsyncRequestWorkerFactor 400');
my $thread = $client->create_thread->{thread_id};
my $run;
for (1 .. 2) {
    $run = $client->create_run($thread, 'x' x $TEXT);
    fetch(AgentTest::Client::run_path($run) . '/join');
}
my ($child) = httpd_children($server->httpd_pid);

# Reads the response without decoding it, which would take too long.
sub fetch {
    my ($path) = @_;
    return $client->exchange(
        "GET $path HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
}

# Sends the request and does not read, with the smallest receive buffer; the
# kernel's send buffer takes most of the response.
sub stall {
    my ($path) = @_;
    my $socket = $client->connection;
    setsockopt $socket, SOL_SOCKET, SO_RCVBUF, pack 'i', 4096;
    syswrite $socket, "GET $path HTTP/1.1\r\nHost: localhost\r\n\r\n";
    return $socket;
}

sub count_cut { return scalar(() = $server->error_log =~ /AGT0202/g) }

for my $what (qw(stream join)) {
    subtest "slow readers: a large $what" => sub {
        my $path = AgentTest::Client::run_path($run) . "/$what";
        fetch($path);
        my ($before, $cut) = (resident_bytes($child), count_cut());
        my @stalled = map { stall($path) } 1 .. $READERS;
        wait_for('the budget to be full', sub { count_cut() - $cut >= $READERS / 5 });
        cmp_ok resident_bytes($child) - $before, '<', memory_scale() * ($BUDGET + $KEPT),
            "slow readers: the child holds no more than its budget for unread responses of a $what";
        is $client->get('/ok')->{status}, 200, "slow readers: other requests are served beside unread responses of a $what";
    };
}

# Reads some 200 KB a second, for several times Timeout; then as fast as it can.
sub read_steadily {
    my ($socket, $seconds) = @_;
    my ($all, $slow_until) = ('', time + $seconds);
    while (sysread $socket, $all, 8192, length $all) {
        select undef, undef, undef, 0.04 if time < $slow_until;
    }
    return $all;
}

undef $server;

subtest 'slow readers: a client that reads slowly but steadily' => sub {
    ($server, $client) = AgentTest::Server->start_with_client('Timeout 1');
    $thread = $client->create_thread->{thread_id};
    for (1 .. 2) {
        $run = $client->create_run($thread, 'x' x $TEXT);
        fetch(AgentTest::Client::run_path($run) . '/join');
    }
    my $socket = $client->connection;
    setsockopt $socket, SOL_SOCKET, SO_RCVBUF, pack 'i', 65_536;
    syswrite $socket, 'GET ' . AgentTest::Client::run_path($run)
        . "/join HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    my ($head, $body) = split /\r\n\r\n/, read_steadily($socket, 5), 2;
    my ($length) = $head =~ /^Content-Length: (\d+)/m;
    cmp_ok $length, '>', 2 * $TEXT, 'slow readers: the response is larger than the socket buffers';
    is length $body, $length, 'slow readers: a steady client receives the whole response, in several times Timeout';
};

undef $server;
done_testing;
