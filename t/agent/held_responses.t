# SPDX-License-Identifier: Apache-2.0
# Responses that are held for their clients, in the cases that end them in another
# way: the request may not wait, an output filter keeps all of it until its end,
# the budget of the child is full.
use strict;
use warnings;
use AgentTest::Client qw(run_path);
use AgentTest::Process qw(httpd_children);
use AgentTest::Server;
use Test::More;

my $TEXT = 2_600_000;
# Of the 64 MB for unread responses.
my $LARGE = 2 * $TEXT;

my ($server, $client, $child, $path, $length);

# A server with a thread whose state has 10 MB, as a join, a state and a list of runs
# with 5 MB.
sub start {
    my (@directives) = @_;
    undef $server;
    ($server, $client) = AgentTest::Server->start_with_client('AsyncRequestWorkerFactor 400',
        'SendBufferSize 16384', @directives);
    my $thread = $client->new_thread;
    my $run;
    for (1 .. 2) {
        $run = $client->create_run($thread, 'x' x $TEXT);
        $client->exchange('GET ' . run_path($run)
            . "/join HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    }
    $path = { join => run_path($run) . '/join', state => "/threads/$thread/state",
        stream => "/threads/$thread/stream", list => "/threads/$thread/runs" };
    ($child) = httpd_children($server->httpd_pid);
    return;
}

# Sends a request and reads a byte of its response. With these buffers the kernel
# holds less than 64 KB.
sub begin {
    my ($what) = @_;
    my $socket = $client->begin('GET', $path->{$what}, undef, receive_bytes => 16_384);
    sysread $socket, my $byte, 1;
    return $socket;
}

# Reads as many bytes, or all; returns how many there were.
sub read_bytes {
    my ($socket, $most) = @_;
    my $count = 0;
    while (!defined $most || $count < $most) {
        my $size = sysread($socket, my $part, 65_536) or last;
        $count += $size;
    }
    return $count;
}

subtest 'held responses: a request that may not wait' => sub {
    start('AgentMaxWaiters 2');
    my @waiting = map { begin('stream') } 1 .. 2;
    like $client->exchange("GET $path->{stream} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
        qr{\AHTTP/1\.1 503 }, 'held responses: the child accepts no request that waits';
    like $client->exchange("GET $path->{join} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
        qr{\AHTTP/1\.1 503 .*^Retry-After: }ms, 'held responses: a join of large values that may not wait is refused';
    like $client->exchange("GET $path->{list} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
        qr{\AHTTP/1\.1 503 .*^Retry-After: }ms, 'held responses: a large list that may not wait is refused';
    is_deeply [ httpd_children($server->httpd_pid) ], [$child], 'held responses: the child lives after requests that may not wait';
};

subtest 'held responses: an output filter that keeps a response until its end' => sub {
    start('LoadModule buffer_module /usr/lib/apache2/modules/mod_buffer.so', 'SetOutputFilter BUFFER');
    for my $what (qw(state join list)) {
        my @unread = map { begin($what) } 1 .. 8;
        is $client->get('/ok')->{status}, 200, "held responses: eight clients that do not read a $what of a filter hold no thread";
        cmp_ok read_bytes($unread[0]), '>', $LARGE, "held responses: a $what of a filter is sent whole";
    }
};

subtest 'held responses: lists that together are larger than a child may hold' => sub {
    start();
    my $steady = begin('list');
    my $read = 1;
    my @unread;
    for (1 .. 20) {
        push @unread, begin('list');
        # More than the kernel holds: the server has to send some of it for that.
        $read += read_bytes($steady, 200_000);
    }
    unlike $server->error_log, qr/AGT0202/, 'held responses: nobody is cut, since a list is composed as its client reads';
    $read += read_bytes($steady);
    cmp_ok $read, '>', $LARGE, 'held responses: a client that reads steadily gets the whole list';
};

undef $server;
done_testing;
