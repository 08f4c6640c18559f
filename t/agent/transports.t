# SPDX-License-Identifier: Apache-2.0
# Waiting over TLS, HTTP/2 and with compression; and descriptors and slots after a
# storm of clients.
use strict;
use warnings;
use AgentTest::Client qw(read_until run_path);
use AgentTest::Gate;
use AgentTest::Process qw(count_descriptors descendants_of);
use AgentTest::Server;
use AgentTest::Tls;
use AgentTest::Wait;
use IO::Select;
use Test::More;

srand($ENV{AGENT_TEST_SEED} // 20_110);

# curl in the background: a handle for its output.
sub curl {
    my (@words) = @_;
    open my $output, '-|', 'curl', '-sSN', '--max-time', 120, @words
        or die "curl: $!\n";
    return $output;
}

sub read_all { my ($output) = @_; local $/ = undef; return scalar <$output> }

subtest 'transports: requests wait over TLS without a thread' => sub {
    my $tls = AgentTest::Tls->new;
    my $gate = AgentTest::Gate->new;
    my ($server, $client) = AgentTest::Server->start_with_client($tls->lines, $gate->graph);
    my $run = $client->start_run('use gate {}', assistant_id => 'gated');
    my $url = $tls->url . run_path($run);
    my @joins = map { curl('-k', '--http1.1', "$url/join", "$url/join") } 1 .. 12;
    my $stream = curl('-k', '--http1.1', "$url/stream");
    read_until($stream, qr/event: metadata/);
    is $client->get('/ok')->{status}, 200, 'transports: other requests are answered while 12 joins wait over TLS';
    # Each waits after its first heartbeat.
    my @begun = map { read_until($_, qr/\n/) } @joins;
    $gate->wait_calls(1);
    $gate->open;
    my @ends = map { shift(@begun) . read_all($_) } @joins;
    is scalar(grep { /\A\n+\{"messages".*\}\{"messages"/s } @ends), 12,
        'transports: joins wait over TLS, and their connections serve another request';
    like read_all($stream), qr/event: values/, 'transports: a stream over TLS reaches the end of its run';

    my $left = $client->start_run('sleep 600000');
    my $pid = open my $gone, '-|', 'curl', '-skN', '--http1.1',
        $tls->url . run_path($left) . '/stream?cancel_on_disconnect=1'
        or die "curl: $!\n";
    read_until($gone, qr/event: metadata/);
    kill KILL => $pid;
    close $gone;
    $client->join_run($left);
    is $client->get_run($left)->{status}, 'interrupted', 'transports: a client that disconnects from TLS is noticed';
};

subtest 'transports: compressed responses wait' => sub {
    my ($server, $client) = AgentTest::Server->start_with_client(
        'LoadModule filter_module "${MODULES}/mod_filter.so"',
        'LoadModule deflate_module "${MODULES}/mod_deflate.so"',
        'AddOutputFilterByType DEFLATE text/event-stream application/json');
    my $run = $client->start_run('sleep 600000');
    my $stream = curl('--compressed', $server->url . run_path($run) . '/stream');
    my $join = curl('--compressed', $server->url . run_path($run) . '/join');
    like read_until($stream, qr/event: values/), qr/event: metadata/,
        'transports: compression does not delay events';
    $client->post(run_path($run) . '/cancel');
    like read_all($join), qr/\{"messages"/, 'transports: a join is compressed';
    read_all($stream);
};

subtest 'transports: the shipped configuration does not offer HTTP/2' => sub {
    my $tls = AgentTest::Tls->new;
    my ($server) = AgentTest::Server->start_with_client($tls->lines,
        # The first line counts: limits.conf is included before.
        'LoadModule http2_module "${MODULES}/mod_http2.so"', 'Protocols h2 http/1.1');
    open my $out, '-|', qw(curl -sk --http2 -o /dev/null -w), '%{http_version} %{http_code}',
        $tls->url . '/ok' or die "curl: $!\n";
    is read_all($out), '1.1 200', 'transports: with the shipped configuration, a TLS client that offers HTTP/2 gets HTTP/1.1';
};

subtest 'transports: requests wait over HTTP/2' => sub {
    my ($server, $client) = AgentTest::Server->start_with_client(
        'LoadModule http2_module "${MODULES}/mod_http2.so"', 'Protocols h2c http/1.1');
    my $run = $client->start_run('sleep 600000');
    my $url = $server->url . run_path($run);
    my $stream = curl('--http2-prior-knowledge', '-i', "$url/stream");
    my $join = curl('--http2-prior-knowledge', "$url/join?cancel_on_disconnect=true");
    like read_until($stream, qr/event: metadata/), qr{\AHTTP/2 200},
        'transports: streams are served over HTTP/2';
    is $client->get('/ok')->{status}, 200, 'transports: other requests are answered while HTTP/2 streams wait';
    $client->post(run_path($run) . '/cancel');
    like read_all($join), qr/\{"messages"/, 'transports: joins are served over HTTP/2';
    read_all($stream);
    ok close($stream), 'transports: streams over HTTP/2 end properly';

    my $other = $client->start_run('sleep 600000');
    my $cut = curl('--http2-prior-knowledge', $server->url . run_path($other) . '/stream');
    read_until($cut, qr/event: metadata/);
    $server->graceful;
    read_all($cut);
    close $cut;
    # 0: complete; 28: curl's own time limit.
    unlike $? >> 8, qr/\A(?:0|28)\z/, 'transports: a graceful restart cuts streams over HTTP/2, so that clients reconnect';
};

# One step of the storm: a client connects, or one of them disconnects.
sub storm_step {
    my ($client, $runs, $open) = @_;
    if (@{$open} > 150 || (@{$open} && rand() < 0.4)) {
        my ($socket) = splice @{$open}, int rand @{$open}, 1;
        syswrite $socket, "GET /ok HTTP/1.1\r\nHost: localhost\r\n\r\n" if rand() < 0.2;
        $socket->shutdown(1) if rand() < 0.3;
        sysread $socket, my $bytes, 500 if rand() < 0.5 && IO::Select->new($socket)->can_read(0);
        close $socket;
        return;
    }
    my $run = $runs->[ rand @{$runs} ];
    my $socket = $client->connection;
    my $what = rand() < 0.5 ? 'join' : 'stream';
    syswrite $socket, 'GET ' . run_path($run) . "/$what HTTP/1.1\r\nHost: localhost\r\n\r\n"
        . (rand() < 0.2 ? "GET /info HTTP/1.1\r\nHost: localhost\r\n\r\n" : '');
    push @{$open}, $socket;
    return;
}

# The connection of a join that waits; undef when there was no free slot.
sub begin_join {
    my ($client, $run) = @_;
    my $socket = $client->begin('GET', run_path($run) . '/join');
    return read_until($socket, qr/\r\n\r\n/) =~ m{\AHTTP/1.1 200} ? $socket : undef;
}

subtest 'transports: a storm of clients leaves no descriptor or slot in use' => sub {
    local $SIG{PIPE} = 'IGNORE';
    my ($server, $client) = AgentTest::Server->start_with_client('AgentMaxWaiters 200');
    # After a run the supervisor and its runner have started.
    $client->join_run($client->start_run('hello'));
    my $before = count_descriptors(descendants_of($server->httpd_pid));
    my (@open, @runs);
    for my $round (1 .. 12) {
        push @runs, map { $client->start_run('sleep ' . int rand 2500) } 1 .. 4;
        storm_step($client, \@runs, \@open) for 1 .. 250;
    }
    close $_ for splice @open;
    # More connections to the database may stay, but none of the clients'.
    wait_for('the last connections to end', sub {
        count_descriptors(descendants_of($server->httpd_pid)) <= $before + 16 });
    pass 'transports: a storm of clients leaves no descriptor open';
    my $run = $client->start_run('sleep 600000');
    # Some of the clients may not have left yet.
    my @joins = map { wait_for("slot $_", sub { begin_join($client, $run) }) } 1 .. 200;
    pass 'transports: all slots are free after a storm of clients';
    my $next = $client->get(run_path($run) . '/join');
    is $next->{status}, 503, 'transports: a join beyond AgentMaxWaiters is answered 503';
    $client->post(run_path($run) . '/cancel');
    close $_ for @joins;
};

done_testing;
