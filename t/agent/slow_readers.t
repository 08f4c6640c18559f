# SPDX-License-Identifier: Apache-2.0
# Clients that read only a part of a large response: the child holds the rest, up
# to its budget for all clients.
use strict;
use warnings;
use AgentTest::Client qw(run_path);
use AgentTest::Cost;
use AgentTest::Process qw(httpd_children);
use AgentTest::Server;
use AgentTest::Wait;
use IO::Handle;
use IO::Select;
use Socket qw(SOL_SOCKET SO_RCVBUF);
use Test::More;

my $READERS = 80;
my $TEXT    = 2_600_000;
# The budget of a child, and the memory of its threads and connections.
my $BUDGET = 64 * 1024 * 1024;
my $KEPT   = 48 * 1024 * 1024;

my ($server, $client, $thread, $run, $child);

# Starts a server with a thread of $count runs and their messages of 2.6 MB.
sub serve {
    my ($count, @lines) = @_;
    undef $server;
    ($server, $client) = AgentTest::Server->start_with_client(@lines);
    ($child) = httpd_children($server->httpd_pid);
    $thread = $client->new_thread;
    for (1 .. $count) {
        $run = $client->create_run($thread, 'x' x $TEXT);
        fetch(run_path($run) . '/join');
    }
    return;
}

serve(2, 'AsyncRequestWorkerFactor 400');

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

my %path = (stream => run_path($run) . '/stream', join => run_path($run) . '/join',
    state => "/threads/$thread/state", list => "/threads/$thread/runs");
for my $what (qw(list)) {
    subtest "slow readers: unread responses of a $what take at most the budget" => sub {
        my $path = $path{$what};
        fetch($path);
        my ($before, $cut) = (resident_bytes($child), count_cut());
        my @stalled = map { stall($path) } 1 .. $READERS;
        wait_for('the budget to be full', sub { count_cut() - $cut >= $READERS / 5 });
        cmp_ok resident_bytes($child) - $before, '<', memory_scale() * ($BUDGET + $KEPT),
            "slow readers: the child holds no more than its budget for unread responses of a $what";
        is $client->get('/ok')->{status}, 200, "slow readers: other requests are served beside unread responses of a $what";
    };
}

for my $what (qw(join state stream)) {
    subtest "slow readers: unread responses of a $what take the memory of a part each" => sub {
        fetch($path{$what});
        my ($before, $cut) = (resident_bytes($child), count_cut());
        my @stalled = map { stall($path{$what}) } 1 .. $READERS;
        sysread $_, my $byte, 1 for @stalled;
        cmp_ok resident_bytes($child) - $before, '<', memory_scale() * $KEPT,
            "slow readers: the child holds a part of each unread response of a $what";
        is count_cut(), $cut, "slow readers: eighty clients that do not read a $what are not cut";
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

# Sends the requests at once and reads the beginning of the first response. With
# a receive buffer of fixed size, at most some 300 KB are in the kernel.
sub pipeline {
    my ($count, $request) = @_;
    my $socket = $client->connection;
    setsockopt $socket, SOL_SOCKET, SO_RCVBUF, pack 'i', 65_536;
    $socket->blocking(0);
    syswrite $socket, "$request HTTP/1.1\r\nHost: localhost\r\n\r\n" x $count;
    $socket->blocking(1);
    sysread $socket, my $begin, 1;
    return $socket;
}

my %unread = (
    'a state of 5 MB'    => sub { pipeline(1,      "GET $path{state}") },
    '2,000 small states' => sub { pipeline(2_000,  'GET /threads/' . small_thread() . '/state') },
    '20,000 refusals'    => sub { pipeline(20_000, 'GET /threads/x') },
);

sub small_thread {
    my $small = $client->new_thread;
    $client->join_run($client->create_run($small, 'x' x 20_000));
    return $small;
}

for my $what (sort keys %unread) {
    subtest "slow readers: clients that do not read $what hold no thread" => sub {
        my @stalled = map { $unread{$what}->() } 1 .. 8;
        is $client->get('/ok')->{status}, 200, "slow readers: other requests are served while eight clients do not read $what";
    };
}

# The only child finds all sockets writable in one poll. A tenth of a response is
# read at most.
sub drain_at_once {
    my (@sockets) = @_;
    kill STOP => $child;
    for my $socket (@sockets) {
        $socket->blocking(0);
        1 while sysread $socket, my $part, 1_048_576;
        $socket->blocking(1);
    }
    kill CONT => $child;
    wait_for('the next part of each response', sub {
        !grep { !IO::Select->new($_)->can_read(0) } @sockets });
    return;
}

# With fewer than eight threads an eighth is one, and the threads that are just
# becoming idle are as many as the others.
subtest 'slow readers: clients that read at once leave threads to others' => sub {
    # A round takes longer than the default of KeepAliveTimeout on a busy machine.
    serve(2, 'AsyncRequestWorkerFactor 400', 'KeepAliveTimeout 600', map { "$_ 8" } qw(ThreadLimit
        ThreadsPerChild MaxSpareThreads MaxRequestWorkers));
    my %large = (join => run_path($run) . '/join', state => "/threads/$thread/state");
    for my $what (sort keys %large) {
        my @stalled = map { pipeline(1, "GET $large{$what}") } 1 .. 20;
        my $idle = $client->connection;
        my $answered = grep {
            drain_at_once(@stalled);
            syswrite $idle, "GET /ok HTTP/1.1\r\nHost: localhost\r\n\r\n";
            sysread $idle, my $answer, 4096;
        } 1 .. 3;
        is $answered, 3, "slow readers: twenty clients that read a $what at once close no idle connection";
    }
};

# Reads most of the response and then stalls; the response's text stays in memory.
sub stall_near_end {
    my ($path, $length) = @_;
    my $socket = $client->connection;
    setsockopt $socket, SOL_SOCKET, SO_RCVBUF, pack 'i', 16_384;
    syswrite $socket, "GET $path HTTP/1.1\r\nHost: localhost\r\n\r\n";
    my $left = $length - 300_000;
    while ($left > 0) {
        my $count = sysread($socket, my $part, $left < 65_536 ? $left : 65_536) or last;
        $left -= $count;
    }
    return $socket;
}

subtest 'slow readers: responses of which a part is unread take at most the budget' => sub {
    serve(1, 'AsyncRequestWorkerFactor 400', 'SendBufferSize 16384', 'Timeout 600');
    my $path = "/threads/$thread/state";
    my $length = length fetch($path);
    my $before = resident_bytes($child);
    my @stalled = map { stall_near_end($path, $length) } 1 .. 100;
    cmp_ok resident_bytes($child) - $before, '<', memory_scale() * ($BUDGET + $KEPT),
        'slow readers: the child holds no more than its budget for responses whose last part is unread';
};

# Connections that httpd has: those that it has closed belong to no file.
sub open_connections { return scalar grep { $_->[9] > 0 } @{ $server->connections->{server} } }

# The text of a state that is sent as a whole is freed with the request, while the core
# filter still has a part of it: httpd has given the client up.
subtest 'slow readers: clients that are given up end no child' => sub {
    serve(0, 'Timeout 1', 'SendBufferSize 16384');
    my $small = $client->new_thread;
    $client->join_run($client->create_run($small, 'x' x 200_000));
    my $before = open_connections();
    my @stalled = map { stall("/threads/$small/state") } 1 .. 8;
    sysread $_, my $begin, 1 for @stalled;
    wait_for('the end of their connections', sub { open_connections() <= $before });
    is_deeply [ httpd_children($server->httpd_pid) ], [$child], 'slow readers: the child lives when clients have been given up';
};

subtest 'slow readers: a client that reads slowly but steadily is not cut' => sub {
    serve(2, 'Timeout 1');
    my $socket = $client->connection;
    setsockopt $socket, SOL_SOCKET, SO_RCVBUF, pack 'i', 65_536;
    syswrite $socket, 'GET ' . run_path($run)
        . "/join HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    my ($head, $body) = split /\r\n\r\n/, read_steadily($socket, 5), 2;
    cmp_ok length $body, '>', 2 * $TEXT, 'slow readers: the response is larger than the socket buffers';
    # After a heartbeat, on a busy machine, it is chunked.
    my ($length) = $head =~ /^Content-Length: (\d+)/m;
    ok $length ? length $body == $length : $body =~ /\r\n0\r\n\r\n\z/,
        'slow readers: a steady client receives the whole response';
};

undef $server;
done_testing;
