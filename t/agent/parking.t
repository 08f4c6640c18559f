# SPDX-License-Identifier: Apache-2.0
# Requests that wait hold no thread: there may be more of them than threads. How
# their connections end, and how requests wait where parking is impossible.
use strict;
use warnings;
use AgentTest::Client qw(parse_response read_to_end read_until run_body run_path);
use AgentTest::Cost;
use AgentTest::Database;
use AgentTest::Gate;
use AgentTest::Process qw(httpd_children);
use AgentTest::Server;
use AgentTest::Wait;
use Socket qw(SOL_SOCKET SO_LINGER SO_RCVBUF);
use Test::More;

subtest 'parking: more requests may wait than there are threads' => sub {
    my ($server, $client) = AgentTest::Server->start_with_client();
    my $run = $client->start_run('sleep 600000');
    my @joins = map { $client->begin('GET', run_path($run) . '/join') } 1 .. 100;
    my @streams = map { $client->begin('GET', run_path($run) . '/stream') } 1 .. 100;
    read_until($_, qr/\r\n\r\n/) for @joins;
    # The run has begun: one that never began would leave no values.
    read_until($_, qr/event: metadata/) for @streams;
    is $client->get('/ok')->{status}, 200, 'parking: other requests are answered while 200 wait';
    is $client->post(run_path($run) . '/cancel')->{status}, 202,
        'parking: the run that 200 requests wait for can be cancelled';
    my @ends = map { read_to_end($_) } @joins, @streams;
    is scalar(grep { /(?:\A|\n)0\r\n\r\n\z/ } @ends), 200, 'parking: all waiting requests are answered';
    is scalar(grep { /"messages"/ } @ends[0 .. 99]), 100, 'parking: all joins receive the values';
};

subtest 'parking: the connection of a join serves the next request' => sub {
    my ($server, $client) = AgentTest::Server->start_with_client();
    my $run = $client->start_run('sleep 300');
    my $socket = $client->connection;
    my $join = 'GET ' . run_path($run) . "/join HTTP/1.1\r\nHost: localhost\r\n\r\n";
    syswrite $socket, $join;
    my $first = read_until($socket, qr/\r\n0\r\n\r\n/);
    like $first, qr/"messages"/, 'parking: a join on a persistent connection receives the values';
    syswrite $socket, "GET /ok HTTP/1.1\r\nHost: localhost\r\n\r\n";
    like read_until($socket, qr/"ok":true/), qr/\AHTTP\/1.1 200/, 'parking: the request after a join is answered on the same connection';

    my $other = $client->start_run('sleep 300');
    syswrite $socket, 'GET ' . run_path($other) . "/join HTTP/1.1\r\nHost: localhost\r\n\r\n"
        . "GET /info HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    my $both = read_to_end($socket);
    like $both, qr/"messages".*"server":"mod_agent"/s,
        'parking: a request that was pipelined after a join is answered';
};

subtest 'parking: clients that disconnect are noticed' => sub {
    my ($server, $client) = AgentTest::Server->start_with_client();
    for my $case (
        [ 'join', 'GET', sub { run_path($_[0]) . '/join?cancel_on_disconnect=1' } ],
        [ 'stream', 'GET', sub { run_path($_[0]) . '/stream?cancel_on_disconnect=true' } ],
    ) {
        my ($what, $method, $make) = @{$case};
        my $run = $client->start_run('sleep 600000');
        my $socket = $client->begin($method, $make->($run));
        read_until($socket, qr/\r\n\r\n/);
        close $socket;
        $client->join_run($run);
        is $client->get_run($run)->{status}, 'interrupted',
            "parking: a client that disconnects cancels the run of a $what with cancel_on_disconnect";
    }
    for my $what (qw(wait stream)) {
        my $thread = $client->new_thread;
        my $socket = $client->begin('POST', "/threads/$thread/runs/$what",
            run_body('sleep 600000', on_disconnect => 'cancel'));
        my ($id) = read_until($socket, qr/\r\n\r\n/)
            =~ m{^Content-Location: \S+/([0-9a-f-]+)\r}m;
        close $socket;
        my $run = { thread_id => $thread, run_id => $id };
        $client->join_run($run);
        is $client->get_run($run)->{status}, 'interrupted',
            "parking: a client that disconnects cancels the run of a $what with on_disconnect";
    }
    my $run = $client->start_run('sleep 600000');
    my $gone = $client->begin('GET', run_path($run) . '/join');
    my $stays = $client->begin('GET', run_path($run) . '/join?cancel_on_disconnect=0');
    read_until($_, qr/\r\n\r\n/) for $gone, $stays;
    close $gone;
    close $stays;
    my $stream = $client->begin('GET', run_path($run) . '/stream');
    read_until($stream, qr/: heartbeat/);
    is $client->get_run($run)->{status}, 'pending', 'parking: a client that disconnects leaves other runs alone';
    $client->post(run_path($run) . '/cancel?wait=1');
};

subtest 'parking: requests may wait for longer than Timeout' => sub {
    my $gate = AgentTest::Gate->new;
    my ($server, $client) = AgentTest::Server->start_with_client('Timeout 4', $gate->graph);
    my $run = $client->start_run('use gate {}', assistant_id => 'gated');
    my $join = $client->begin('GET', run_path($run) . '/join');
    my $cancel_waits = $client->start_run('sleep 600000');
    # Heartbeats come at half of Timeout: the third is later than Timeout.
    my $seen = read_until($join, qr/\r\n\r\n(?:1\r\n\n\r\n){3}/);
    $gate->wait_calls(1);
    $gate->open;
    my $end = parse_response(
        $seen . read_to_end($join));
    like $end->{body}, qr/\A\n{3,}\{/, 'parking: heartbeats keep a join alive beyond Timeout';
    is $end->{json}{messages}[0]{content}, 'use gate {}', 'parking: a join receives the values after heartbeats';
    is $client->post(run_path($cancel_waits) . '/cancel?wait=1')->{status}, 204,
        'parking: a cancel with wait=1 sends nothing before the end of the run';
};

# Ends a run in the database without a notification.
sub end_silently {
    my ($run) = @_;
    sql("delete from agent.run_queue where run_id = '$run->{run_id}';"
        . "update agent.runs set status = 'success', finished_at = now(), last_event_seq = 0"
        . " where run_id = '$run->{run_id}'");
    return;
}

subtest 'parking: the end of a run is noticed without a notification' => sub {
    my ($server, $client) = AgentTest::Server->start_with_client('Timeout 2');
    my $run = $client->start_run('later', after_seconds => 3600);
    my %waits = map { $_ => $client->begin('GET', run_path($run) . "/$_") } qw(join stream);
    # From here on neither queries by itself before its sixth heartbeat.
    read_until($waits{join}, qr/\r\n\r\n(?:1\r\n\n\r\n)/);
    read_until($waits{stream}, qr/: heartbeat/);
    end_silently($run);
    my %seen = map { $_ => read_to_end($waits{$_}) } sort keys %waits;
    like $seen{$_}, qr/0\r\n\r\n\z/, "parking: a $_ notices the end of a run without a notification" for sort keys %waits;
};

subtest 'parking: clients that do not read hold no thread' => sub {
    my ($server, $client) = AgentTest::Server->start_with_client('SendBufferSize 65536');

    my $long = $client->start_run('x' x 400_000,
        stream_mode => [ 'values', 'checkpoints', 'debug' ]);
    $client->join_run($long);
    my @unread;
    for (1 .. 20) {
        my $socket = $client->connection;
        setsockopt $socket, SOL_SOCKET, SO_RCVBUF, 65_536;
        syswrite $socket, 'GET ' . run_path($long)
            . "/stream HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: -1\r\n\r\n";
        push @unread, $socket;
    }
    read_until($_, qr/event: metadata/) for @unread;
    is $client->get('/ok')->{status}, 200, 'parking: other requests are answered while 20 clients do not read';
    my $whole = parse_response(read_to_end(
        $client->begin('GET', run_path($long) . '/stream')));
    my @late = map { read_until($_, qr/\r\n0\r\n\r\n/) } @unread;
    my $size = length $whole->{body};
    cmp_ok $size, '>', 1_000_000, 'parking: the stream is larger than a megabyte';
    is scalar(grep { length > $size - 65_536 } @late), 20,
        'parking: clients that read late receive the whole stream';
};

# A connection on which a long stream has begun and is not read yet, and its run,
# which has ended.
sub begin_late_reader {
    my ($client) = @_;
    my $run = $client->start_run('x' x 400_000,
        stream_mode => [ 'values', 'checkpoints', 'debug' ]);
    $client->join_run($run);
    my $socket = $client->connection;
    setsockopt $socket, SOL_SOCKET, SO_RCVBUF, 65_536;
    syswrite $socket, 'GET ' . run_path($run)
        . "/stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    return ($socket, $run);
}

subtest 'parking: a client that reads late gets no heartbeat within the stream' => sub {
    my ($server, $client) = AgentTest::Server->start_with_client('SendBufferSize 65536');
    my ($late) = begin_late_reader($client);
    my $seen = read_until($late, qr/event: metadata/);
    # It began later: with its heartbeat, that of the other one is due as well.
    my $live = $client->start_run('sleep 600000');
    my $other = $client->begin('GET', run_path($live) . '/stream');
    read_until($other, qr/: heartbeat/);
    $seen .= read_to_end($late);
    is substr($seen, -7), "\r\n0\r\n\r\n", 'parking: a client that reads late receives the whole stream';
    is index($seen, ': heartbeat'), -1, 'parking: a client that reads late gets no heartbeat within the stream';
    $client->post(run_path($live) . '/cancel');
};

subtest 'parking: the stream of a deleted run is cut' => sub {
    my ($server, $client) = AgentTest::Server->start_with_client('SendBufferSize 65536');
    my ($late, $long) = begin_late_reader($client);
    read_until($late, qr/event: metadata/);
    is $client->delete(run_path($long))->{status}, 204, 'parking: a run can be deleted while it is streamed';
    isnt substr(read_to_end($late), -7), "\r\n0\r\n\r\n",
        'parking: the stream of a deleted run is cut';
};

subtest 'parking: the states of a long thread are not held in memory' => sub {
    my ($server, $client) = AgentTest::Server->start_with_client('SendBufferSize 65536');
    my $thread = $client->new_thread;
    for (1 .. 20) {
        $client->join_run($client->create_run($thread, 'x' x 100_000));
    }
    my @children = httpd_children($server->httpd_pid);
    my $before = resident_bytes(@children);
    my @unread;
    for (1 .. 4) {
        my $socket = $client->connection;
        setsockopt $socket, SOL_SOCKET, SO_RCVBUF, 65_536;
        syswrite $socket, "GET /threads/$thread/stream?stream_mode=state_update HTTP/1.1\r\n"
            . "Host: localhost\r\nLast-Event-ID: -\r\n\r\n";
        push @unread, $socket;
    }
    my ($seen) = map { read_until($_, qr/event: state_update/) } @unread;
    is $client->get('/ok')->{status}, 200, 'parking: other requests are answered while clients do not read the states of a thread';
    cmp_ok resident_bytes(@children) - $before, '<', 64 << 20, 'parking: the states of a thread are not held in memory for clients that do not read';
    $seen .= read_until($unread[0], qr/^id: 21--1$/m);
    is scalar(() = $seen =~ /^event: state_update/mg), 20, 'parking: a client that reads late receives all states of a thread';
};

subtest 'parking: a client that does not read for the time of Timeout is cut' => sub {
    my ($server, $client) = AgentTest::Server->start_with_client('SendBufferSize 65536', 'Timeout 2');
    my $run = $client->start_run('sleep 600000 ' . 'x' x 400_000,
        stream_mode => [ 'values', 'checkpoints', 'debug' ]);
    my $unread = $client->connection;
    setsockopt $unread, SOL_SOCKET, SO_RCVBUF, 65_536;
    syswrite $unread, 'GET ' . run_path($run)
        . "/stream?cancel_on_disconnect=1 HTTP/1.1\r\nHost: localhost\r\n\r\n";
    $client->join_run($run);
    is $client->get_run($run)->{status}, 'interrupted', 'parking: a client that does not read for the time of Timeout counts as disconnected';
    unlike read_to_end($unread), qr/\r\n0\r\n\r\n\z/,
        'parking: the stream of a client that does not read for the time of Timeout is cut';
};

subtest 'parking: a graceful restart cuts streams, not joins' => sub {
    my $gate = AgentTest::Gate->new;
    my ($server, $client) = AgentTest::Server->start_with_client($gate->graph);
    my $run = $client->start_run('use gate {}', assistant_id => 'gated');
    my $join = $client->begin('GET', run_path($run) . '/join');
    my $stream = $client->begin('GET', run_path($run) . '/stream');
    read_until($join, qr/\r\n\r\n/);
    read_until($stream, qr/event: metadata/);
    $server->graceful;
    my $cut = read_to_end($stream);
    unlike $cut, qr/\r\n0\r\n\r\n\z/,
        'parking: a graceful restart cuts streams, so that clients reconnect';
    wait_for('the new generation', sub {
        eval { $client->get('/ok')->{status} == 200 } });
    my $again = $client->begin('GET', run_path($run) . '/stream');
    like read_until($again, qr/event: metadata/), qr{\AHTTP/1.1 200},
        'parking: the new generation serves reconnected streams';
    $gate->wait_calls(1);
    $gate->open;
    like read_to_end($again), qr/event: values/, 'parking: a reconnected stream reaches the end of its run';
    my $end = read_to_end($join);
    like $end, qr/"messages".*\r\n0\r\n\r\n\z/s, 'parking: joins receive their values after a graceful restart';
};

subtest 'parking: without parking, half of the threads may wait' => sub {
    my ($server, $client) = AgentTest::Server->start_with_client('AgentParking Off');
    my $run = $client->start_run('sleep 600000');
    my @joins = map { $client->begin('GET', run_path($run) . '/join') } 1 .. 3;
    my @heads = map { read_until($_, qr/\r\n\r\n/) } @joins;
    is scalar(grep { m{\AHTTP/1.1 200} } @heads), 2,
        'parking: without parking, half of the threads may wait';
    is scalar(grep { m{\AHTTP/1.1 503} } @heads), 1, 'parking: without parking, a further request is answered 503';
    is $client->get('/ok')->{status}, 200, 'parking: without parking, other requests are answered while half of the threads wait';
    my $refused = $client->post('/runs/wait', { assistant_id => 'agent', input => {} });
    is $refused->{json}{code}, 'too_many_waiters',
        'parking: a request that may not wait creates no run';
    close $_ for @joins;
    my $next = wait_for('a free slot', sub {
        my $socket = $client->begin('GET', run_path($run) . '/join?cancel_on_disconnect=1');
        read_until($socket, qr/\r\n\r\n/) =~ m{\AHTTP/1.1 200} ? $socket : undef;
    });
    close $next;
    # A join might find no free slot yet.
    wait_for('the run to end', sub { $client->get_run($run)->{status} ne 'pending' });
    is $client->get_run($run)->{status}, 'interrupted',
        'parking: without parking, a client that disconnects is noticed';
};

for my $parking (qw(On Off)) {
    subtest "parking: a client that disconnects before its stream has begun, AgentParking $parking" => sub {
        my ($server, $client) = AgentTest::Server->start_with_client("AgentParking $parking");
        my $run = $client->start_run('sleep 60000');
        # The query for the first events of the stream waits for it.
        my $lock = hold_lock('lock table agent.runs');
        my $stream = $client->begin('GET', run_path($run) . '/stream?cancel_on_disconnect=1');
        wait_for('the query of the stream', sub {
            poll(q{select count(*) from pg_stat_activity
                where wait_event_type = 'Lock' and query like '%read_events%'});
        });
        # A reset: the next write to it fails at once.
        setsockopt $stream, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0;
        close $stream;
        close $lock;
        $client->join_run($run);
        is $client->get_run($run)->{status}, 'interrupted', "parking: a client that disconnects before its stream has begun is noticed, AgentParking $parking";
    };
}

subtest 'parking: insufficient settings of the MPM are warned of' => sub {
    my ($server, $client) = AgentTest::Server->start_with_client('AgentMaxWaiters 100000',
        'AsyncRequestWorkerFactor 3', 'ServerLimit 1');
    my $log = $server->error_log;
    like $log, qr/AGT0409: ServerLimit: expected at least 3 .*three times the 1 children\), got 1/,
        'parking: a small ServerLimit is warned of';
    chomp(my $files = qx(sh -c 'ulimit -n'));
    SKIP: {
        skip "$files open files are enough", 1 if $files !~ /\A\d{1,5}\z/;
        like $log, qr/AGT0410: AgentMaxWaiters: expected a limit of open files .* at least 600500,/,
            'parking: a small limit of open files is warned of';
    }
    like $log, qr/AGT0411: AgentMaxWaiters: expected an AsyncRequestWorkerFactor of at least 25000/,
        'parking: a small AsyncRequestWorkerFactor is warned of';
    undef $server;
    ($server, $client) = AgentTest::Server->start_with_client();
    unlike $server->error_log, qr/AGT04(?:09|10|11)/, 'parking: sufficient settings are not warned of';
};

done_testing;
