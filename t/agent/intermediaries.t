# SPDX-License-Identifier: Apache-2.0
# What proxies, caches and filters between a client and the API make of it.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Nginx;
use AgentTest::Server;
use Compress::Zlib qw(memGzip);
use Errno qw(ECONNRESET);
use Test::More;

sub path { return AgentTest::Client::run_path($_[0]) }

# The head of an answer, as an HTTP/1.0 client or a proxy asks for it.
sub begin_1_0 {
    my ($client, $path, $pattern) = @_;
    my $socket = $client->connection;
    syswrite $socket, "GET $path HTTP/1.0\r\n\r\n";
    return ($socket, AgentTest::Client::read_until($socket, $pattern));
}

# How a connection ends, after whatever is still in it.
sub read_end {
    my ($socket) = @_;
    my $length;
    do { $length = sysread $socket, my $bytes, 65_536 } while $length;
    return defined $length ? 'closed' : $! == ECONNRESET ? 'reset' : "$!";
}

for my $parking (qw(On Off)) {
    subtest "HTTP/1.0, which nginx speaks to servers, AgentParking $parking" => sub {
        my ($server, $client) = AgentTest::Server->start_with_client("AgentParking $parking");
        my $run = $client->start_run('sleep 600000');
        my ($cut) = begin_1_0($client, path($run) . '/stream', qr/event: values/);
        $server->graceful;
        is read_end($cut), 'reset', 'a stream that is cut does not look like one that has ended';
        my ($whole) = begin_1_0($client, path($run) . '/stream', qr/event: values/);
        $client->post(path($run) . '/cancel');
        is read_end($whole), 'closed', 'one that has ended does';
    };
}

subtest 'a proxy that collects what it is sent' => sub {
    my ($server, $client) = AgentTest::Server->start_with_client();
    my $run = $client->start_run('sleep 600000');
    for my $what (qw(stream join)) {
        my ($socket, $head) = begin_1_0($client, path($run) . "/$what", qr/\r\n\r\n/);
        like $head, qr/^X-Accel-Buffering: no\r$/m, "is asked to pass a $what on at once";
    }
    $client->post(path($run) . '/cancel');
};

subtest 'nginx, as it comes' => sub {
    my ($server, $client) = AgentTest::Server->start_with_client();
    my $nginx = AgentTest::Nginx->new($server->url);
    my $through = AgentTest::Client->new(url => $nginx->url);
    my $run = $client->start_run('sleep 600000');
    my $join = $through->begin('GET', path($run) . '/join');
    my $stream = $through->begin('GET', path($run) . '/stream');
    like AgentTest::Client::read_until($stream, qr/event: values/), qr/event: metadata/,
        'passes events on while their run goes on';
    AgentTest::Client::read_until($join, qr/\r\n\r\n/);
    $client->post(path($run) . '/cancel');
    like AgentTest::Client::read_to_end($join), qr/"messages"/, 'and the answer of a join';
    for my $what (qw(join stream)) {
        $run = $client->start_run('sleep 600000');
        my $left = $through->begin('GET', path($run) . "/$what?cancel_on_disconnect=true");
        AgentTest::Client::read_until($left, qr/\r\n\r\n/);
        close $left;
        $client->join_run($run);
        is $client->get_run($run)->{status}, 'interrupted',
            "tells the server when the client of a $what has left";
    }
};

subtest 'a cache that keeps what nobody forbade to keep' => sub {
    my ($server, $client) = AgentTest::Server->start_with_client(
        'LoadModule cache_module "${MODULES}/mod_cache.so"',
        'LoadModule cache_disk_module "${MODULES}/mod_cache_disk.so"',
        'CacheRoot "${DIR}/sanitizer"', 'CacheEnable disk /',
        'CacheIgnoreNoLastMod On');
    my $run = $client->start_run('sleep 600000');
    is $client->get_run($run)->{status}, 'pending', 'a run is seen as it is';
    $client->post(path($run) . '/cancel');
    $client->join_run($run);
    is $client->get_run($run)->{status}, 'interrupted', 'also after it has changed';
};

subtest 'a filter that unpacks bodies' => sub {
    my ($server, $client) = AgentTest::Server->start_with_client(
        'LoadModule filter_module "${MODULES}/mod_filter.so"',
        'LoadModule deflate_module "${MODULES}/mod_deflate.so"',
        '<Location "/">', 'SetInputFilter DEFLATE', '</Location>');
    my $create = sub {
        my ($body) = @_;
        return $client->post('/threads', $body, { 'Content-Encoding' => 'gzip' });
    };
    my $thread = $create->(memGzip('{"metadata":{"packed":true}}'));
    is $thread->{status}, 200, 'is let do its work';
    ok $thread->{json}{metadata}{packed}, 'and what it made of the body is read';
    is $create->(substr memGzip('{"metadata":{}}'), 0, 20)->{status}, 400,
        'a body that it cannot unpack is 400';
    # mod_deflate itself refuses what shrinks too well.
    my $hex = join '', map { sprintf '%08x', int rand 2**32 } 1 .. 600_000;
    is $create->(memGzip($hex))->{status}, 413,
        'one that becomes larger than AgentMaxBody is 413';
};

done_testing;
