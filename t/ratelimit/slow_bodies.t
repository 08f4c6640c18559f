# SPDX-License-Identifier: Apache-2.0
# The bodies of refused requests that arrive slowly hold no threads.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Wait;
use IO::Socket::INET;
use RateLimitTest;
use Test::More;

my $THREADS = 16;
my $SLOW = 5 * $THREADS;

my $server = RateLimitTest->new(config => <<"CONF");
StartServers 1
ServerLimit 1
ThreadLimit $THREADS
ThreadsPerChild $THREADS
MinSpareThreads 1
MaxSpareThreads $THREADS
MaxRequestWorkers $THREADS
AsyncRequestWorkerFactor 100
Timeout 600
KeepAliveTimeout 600
RateLimitRegion us
RateLimitRule once /once key=ip us=1/3600
CONF
$server->put('once', "once\n");
$server->put('any', "any\n");
$server->start;
local $SIG{PIPE} = 'IGNORE';

sub connection {
    return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $server->{port})
        // die "no connection: $!\n";
}

sub head {
    my ($method, $path, @headers) = @_;
    return join("\r\n", "$method $path HTTP/1.1", 'Host: localhost', @headers) . "\r\n\r\n";
}

sub read_status {
    my ($socket) = @_;
    my ($status) = AgentTest::Client::read_until($socket, qr/\r\n\r\n/) =~ m{\AHTTP/1\.1 (\d+)};
    return $status;
}

is $server->ask('GET', '/once')->{status}, 200, 'slow bodies: the first request is admitted';

my @slow = map { connection() } 1 .. $SLOW;
syswrite $_, head('POST', '/once', 'Content-Length: 1000000') for @slow;
my @statuses = map {
    syswrite $_, ' ' for @slow;
    $server->ask('GET', '/any')->{status};
} 1 .. 20;
is_deeply \@statuses, [ (200) x 20 ], 'slow bodies: other requests are served beside refused ones whose bodies are slow';
is_deeply [ map { read_status($_) } @slow ], [ (429) x $SLOW ], 'slow bodies: each request whose body is slow gets its 429';

# The body arrives once httpd has read the head.
my $two_parts = connection();
syswrite $two_parts, head('POST', '/once', 'Content-Length: 4');
wait_for('httpd to read the head', sub { $server->ask('GET', '/any')->{status} == 200 });
syswrite $two_parts, 'body' . head('GET', '/any');
my $text = AgentTest::Client::read_until($two_parts, qr/any\n/);
is_deeply [ $text =~ m{^HTTP/1\.1 (\d+)}mg ], [ 429, 200 ],
    'a refused request whose body follows its head keeps its connection';

done_testing;
