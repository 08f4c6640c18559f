# SPDX-License-Identifier: Apache-2.0
# The API behind proxies, caches and filters.
use strict;
use warnings;
use AgentTest::Client qw(read_to_end read_until run_path);
use AgentTest::Nginx;
use AgentTest::Server;
use Compress::Zlib qw(memGzip);
use Errno qw(ECONNRESET);
use Test::More;

# The connection of an HTTP/1.0 client, and the response up to the pattern.
sub begin_1_0 {
    my ($client, $path, $pattern) = @_;
    my $socket = $client->connection;
    syswrite $socket, "GET $path HTTP/1.0\r\n\r\n";
    return ($socket, read_until($socket, $pattern));
}

# Reads to the end of the connection; whether it was closed or reset.
sub read_end {
    my ($socket) = @_;
    my $length;
    do { $length = sysread $socket, my $bytes, 65_536 } while $length;
    return defined $length ? 'closed' : $! == ECONNRESET ? 'reset' : "$!";
}

for my $parking (qw(On Off)) {
    subtest "intermediaries: an HTTP/1.0 client, such as nginx, can tell a cut from an end, AgentParking $parking" => sub {
        my ($server, $client) = AgentTest::Server->start_with_client("AgentParking $parking");
        my $run = $client->start_run('sleep 600000');
        my ($cut) = begin_1_0($client, run_path($run) . '/stream', qr/event: values/);
        $server->graceful;
        is read_end($cut), 'reset', "intermediaries: a stream that is cut over HTTP/1.0 ends with a reset, AgentParking $parking";
        my ($whole) = begin_1_0($client, run_path($run) . '/stream', qr/event: values/);
        $client->post(run_path($run) . '/cancel');
        is read_end($whole), 'closed', "intermediaries: a stream that ends over HTTP/1.0 is closed, AgentParking $parking";
    };
}

subtest 'intermediaries: long responses disable the buffers of nginx' => sub {
    my ($server, $client) = AgentTest::Server->start_with_client();
    my $run = $client->start_run('sleep 600000');
    for my $what (qw(stream join)) {
        my ($socket, $head) = begin_1_0($client, run_path($run) . "/$what", qr/\r\n\r\n/);
        like $head, qr/^X-Accel-Buffering: no\r$/m, "intermediaries: a $what has X-Accel-Buffering: no";
    }
    $client->post(run_path($run) . '/cancel');
};

subtest 'intermediaries: nginx forwards events, and clients that disconnect' => sub {
    my ($server, $client) = AgentTest::Server->start_with_client();
    my $nginx = AgentTest::Nginx->new($server->url);
    my $through = AgentTest::Client->new(url => $nginx->url);
    my $run = $client->start_run('sleep 600000');
    my $join = $through->begin('GET', run_path($run) . '/join');
    my $stream = $through->begin('GET', run_path($run) . '/stream');
    like read_until($stream, qr/event: values/), qr/event: metadata/,
        'intermediaries: nginx forwards events while their run executes';
    read_until($join, qr/\r\n\r\n/);
    $client->post(run_path($run) . '/cancel');
    like read_to_end($join), qr/"messages"/, 'intermediaries: nginx forwards the response of a join';
    for my $what (qw(join stream)) {
        $run = $client->start_run('sleep 600000');
        my $left = $through->begin('GET', run_path($run) . "/$what?cancel_on_disconnect=true");
        read_until($left, qr/\r\n\r\n/);
        close $left;
        $client->join_run($run);
        is $client->get_run($run)->{status}, 'interrupted',
            "intermediaries: a client of a $what that disconnects from nginx is noticed";
    }
};

subtest 'intermediaries: mod_cache stores no response of the API' => sub {
    my ($server, $client) = AgentTest::Server->start_with_client(
        'LoadModule cache_module "${MODULES}/mod_cache.so"',
        'LoadModule cache_disk_module "${MODULES}/mod_cache_disk.so"',
        'CacheRoot "${DIR}/sanitizer"', 'CacheEnable disk /',
        'CacheIgnoreNoLastMod On');
    my $run = $client->start_run('sleep 600000');
    is $client->get_run($run)->{status}, 'pending', 'intermediaries: mod_cache forwards the status of a run';
    $client->post(run_path($run) . '/cancel');
    $client->join_run($run);
    is $client->get_run($run)->{status}, 'interrupted', 'intermediaries: mod_cache forwards the status of a run that has changed';
};

subtest 'intermediaries: mod_deflate decompresses bodies' => sub {
    my ($server, $client) = AgentTest::Server->start_with_client(
        'LoadModule filter_module "${MODULES}/mod_filter.so"',
        'LoadModule deflate_module "${MODULES}/mod_deflate.so"',
        '<Location "/">', 'SetInputFilter DEFLATE', '</Location>');
    my $create = sub {
        my ($body) = @_;
        return $client->post('/threads', $body, { 'Content-Encoding' => 'gzip' });
    };
    my $thread = $create->(memGzip('{"metadata":{"packed":true}}'));
    is $thread->{status}, 200, 'intermediaries: a compressed body is accepted with mod_deflate';
    ok $thread->{json}{metadata}{packed}, 'intermediaries: a compressed body is decompressed by mod_deflate';
    is $create->(substr memGzip('{"metadata":{}}'), 0, 20)->{status}, 400,
        'intermediaries: a truncated compressed body is answered 400';
    # mod_deflate itself refuses a body with a high compression ratio.
    my $hex = join '', map { sprintf '%08x', int rand 2**32 } 1 .. 600_000;
    is $create->(memGzip($hex))->{status}, 413,
        'intermediaries: a body that decompresses beyond AgentMaxBody is answered 413';
};

done_testing;
