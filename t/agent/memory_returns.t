# SPDX-License-Identifier: Apache-2.0
# The memory of large requests and responses is returned to the system.
use strict;
use warnings;
use AgentTest::Client qw(read_to_end run_body run_path);
use AgentTest::Cost;
use AgentTest::Env ();
use AgentTest::Process qw(httpd_children);
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

plan skip_all => 'a sanitizer keeps what was freed' if AgentTest::Env::is_sanitized();

my $THREADS = 16;

# One child for all requests; many threads, as each may keep memory.
my $server = AgentTest::Server->new(config => AgentTest::Server::shared_config() . <<"CONF");
StartServers 1
ServerLimit 3
ThreadsPerChild $THREADS
ThreadLimit $THREADS
MinSpareThreads 1
MaxSpareThreads $THREADS
MaxRequestWorkers $THREADS
AgentDBQueryTimeout 60s
CONF
$server->start;
my $client = AgentTest::Client->new(url => $server->url);
my @children = httpd_children($server->httpd_pid);
is scalar @children, 1, 'memory: one child receives all requests';

# Sends requests at the same time, one for each thread; returns the number of
# answers 200.
sub together {
    my ($method, $path, $body) = @_;
    my @sockets = map { $client->begin($method, $path, $body) } 1 .. $THREADS;
    return scalar grep { read_to_end($_) =~ m{\AHTTP/1\.1 200} } @sockets;
}

my $thread = $client->new_thread;
my $runs = "/threads/$thread/runs";
sub large_run {
    my ($bytes) = @_;
    return run_body('x' x $bytes, after_seconds => 3600, multitask_strategy => 'enqueue');
}

# Warms up every thread and every connection to the database.
together('POST', '/threads', {}) for 1 .. 20;
together('GET', "$runs?limit=10") for 1 .. 20;
my $before = resident_bytes(@children);

sub is_returned {
    my ($what) = @_;
    my $after = 0;
    eval {
        wait_for('memory to be returned', sub {
            $after = resident_bytes(@children);
            return $after < 1.2 * $before;
        });
    };
    cmp_ok $after, '<', 1.2 * $before, "memory: the memory of $what is returned";
    return;
}

is together('POST', '/threads', ' ' x 4_000_000), $THREADS, 'memory: large bodies of white space are answered';
is_returned('large bodies of white space');
my $many = '{"x":[' . join(',', ('"' . 'a' x 90 . '"') x 40_000) . ']}';
is together('POST', '/threads', $many), $THREADS, 'memory: large bodies with many values are answered';
is_returned('large bodies with many values');
is $client->post($runs, large_run(3_900_000))->{status}, 200, "memory: large run $_ is accepted" for 1 .. 4;
is_returned('large runs');
is together('GET', "$runs?limit=4"), $THREADS, 'memory: requests with large responses are answered';
is_returned('large responses');

# Each of many connections that are open at the same time may keep MaxMemFree.
my $READERS = 100;
undef $server;
($server, $client) = AgentTest::Server->start_with_client('StartServers 1', 'ServerLimit 1', 'ThreadLimit 64',
    'ThreadsPerChild 64', 'MaxSpareThreads 64', 'MaxRequestWorkers 64', 'AsyncRequestWorkerFactor 160',
    'MaxMemFree 128', 'DBDMax 16', 'AgentDBQueryTimeout 60s');
@children = httpd_children($server->httpd_pid);
my $run = $client->create_run($client->new_thread, 'x' x 3_000_000);
$client->join_run($run);
my $stream = run_path($run) . '/stream';

# Connections with a request each, after $bytes of each response were received.
sub connect_all {
    my ($path, $bytes) = @_;
    my @sockets = map { $client->connection } 1 .. $READERS;
    syswrite $_, "GET $path HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: -1\r\n\r\n" for @sockets;
    for my $socket (@sockets) {
        my $left = $bytes;
        # Some are cut: all responses together exceed the budget of a child.
        while ($left > 0 && (my $read = sysread $socket, my $part, $left)) { $left -= $read }
    }
    return @sockets;
}

my @small = connect_all('/threads/' . $client->new_thread, 100);
@small = ();
$before = resident_bytes(@children);
my @large = connect_all($stream, 100_000);
@large = ();
is_returned('responses that are not read');

done_testing;
