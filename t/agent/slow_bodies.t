# SPDX-License-Identifier: Apache-2.0
# Request bodies that arrive slowly: they hold no thread and little memory,
# whatever their encoding and wherever they pause.
use strict;
use warnings;
use AgentTest::Client qw(parse_response read_to_end read_until run_body);
use AgentTest::Cost;
use AgentTest::Database;
use AgentTest::Process qw(count_descriptors descendants_of httpd_children);
use AgentTest::Server;
use AgentTest::Tls;
use AgentTest::Wait;
use Cpanel::JSON::XS;
use IO::Compress::Gzip qw(gzip);
use IO::Select;
use IPC::Open2 qw(open2);
use POSIX ();
use Socket qw(SOL_SOCKET SO_LINGER);
use Test::More;

my $CONTINUE = qr{\AHTTP/1\.1 100 Continue\r\n\r\n\z};
my $MANY_CONNECTIONS = 'AsyncRequestWorkerFactor 400';
# Only the test of these limits may depend on time.
my @PATIENT = ('Timeout 600', 'RequestReadTimeout body=600');

sub start_patient { return AgentTest::Server->start_with_client(@PATIENT, @_) }

sub head {
    my ($method, $path, @headers) = @_;
    return join("\r\n", "$method $path HTTP/1.1", 'Host: localhost', @headers) . "\r\n\r\n";
}

# The connection of a request for whose body the server waits: it has sent 100
# Continue.
sub begin_waiting {
    my ($client, $method, $path, @headers) = @_;
    return ask_to_wait($client->connection, $method, $path, @headers);
}

sub ask_to_wait {
    my ($socket, $method, $path, @headers) = @_;
    syswrite $socket, head($method, $path, 'Expect: 100-continue', @headers);
    return $socket if read_until($socket, qr/\r\n\r\n/) =~ $CONTINUE;
    return;
}

# The next response with Content-Length.
sub read_answer {
    my ($socket) = @_;
    my $seen = '';
    $seen .= read_until($socket, qr/./s) while $seen !~ /\r\n\r\n/;
    my ($length) = $seen =~ /^Content-Length: (\d+)/m;
    my $end = index($seen, "\r\n\r\n") + 4 + ($length // 0);
    $seen .= read_until($socket, qr/./s) while length $seen < $end;
    return parse_response($seen);
}

# Forks a process that sends 60 bytes ten times a second on each socket.
sub trickle {
    my (@sockets) = @_;
    my $pid = fork // die "fork: $!\n";
    return $pid if $pid;
    local $SIG{PIPE} = 'IGNORE';
    while (1) {
        syswrite $_, ' ' x 60 for @sockets;
        select undef, undef, undef, 0.1;
    }
    POSIX::_exit(0);
}

# The only child of the server finds the text on all sockets in one poll.
sub send_at_once {
    my ($server, $text, @sockets) = @_;
    my ($child) = httpd_children($server->httpd_pid);
    local $SIG{PIPE} = 'IGNORE';
    kill STOP => $child;
    syswrite $_, $text for @sockets;
    kill CONT => $child;
    wait_for('the server to read all data', sub { !$server->count_unread });
    return;
}

subtest 'slow bodies: 300 clients that send 600 bytes a second hold no thread' => sub {
    my ($server, $client) = start_patient($MANY_CONNECTIONS, 'AgentMaxWaiters 600');
    $client->join_run($client->start_run('hello'));
    my $before = count_descriptors(descendants_of($server->httpd_pid));
    my @paths = ('/threads', '/runs/wait', '/ok', '/nowhere');
    for my $round (1, 2) {
        my @slow = map { begin_waiting($client, 'POST', $paths[ $_ % @paths ],
            'Content-Length: 4000000') } 1 .. 300;
        is scalar @slow, 300, "slow bodies: 300 bodies wait in a child with four threads, round $round";
        my $pid = trickle(@slow);
        is scalar(grep { eval { serve_one($client); 1 } || diag $@ } 1 .. 20), 20,
            "slow bodies: other requests and runs are served beside 300 slow bodies, round $round";
        kill KILL => $pid;
        waitpid $pid, 0;
        close $_ for @slow;
        wait_for('the last connections to end', sub {
            count_descriptors(descendants_of($server->httpd_pid)) <= $before + 16 });
        pass "slow bodies: no descriptor stays open when 300 clients have disconnected, round $round";
    }
};

subtest 'slow bodies: parts of many bodies that arrive at once leave threads to others' => sub {
    # A thread becomes idle after the next client has got one: on a busy machine all four
    # of a smaller child may be about to.
    my ($server, $client) = start_patient($MANY_CONNECTIONS, 'AgentMaxWaiters 600',
        map { "$_ 8" } qw(ThreadLimit ThreadsPerChild MaxSpareThreads MaxRequestWorkers));
    my @slow = map { begin_waiting($client, 'POST', '/threads', 'Content-Length: 4000000') } 1 .. 300;
    my $idle = $client->connection;
    local $SIG{PIPE} = 'IGNORE';
    my $answered = grep {
        send_at_once($server, ' ' x 60, @slow);
        syswrite $idle, head('GET', '/ok');
        eval { read_answer($idle)->{status} == 200 };
    } 1 .. 20;
    is $answered, 20, 'slow bodies: parts of 300 bodies that arrive at once close no idle connection';
    syswrite $_, ' ' x (4_000_000 - 20 * 60 - 2) . '{}' for @slow[ 0, 299 ];
    is scalar(grep { read_answer($_)->{status} == 200 } @slow[ 0, 299 ]), 2,
        'slow bodies: bodies whose parts arrived at once are received';
};

subtest 'slow bodies: without a free slot, the client that has been silent for longest loses its slot' => sub {
    my ($server, $client) = start_patient('AgentMaxWaiters 4');
    my @slow = map { begin_waiting($client, 'POST', '/threads', 'Content-Length: 2') } 1 .. 3;
    is scalar @slow, 3, 'slow bodies: a third slow client gets a slot';
    my $refused = parse_response(read_to_end($slow[0]));
    is $refused->{status}, 503, 'slow bodies: the client that has been silent for longest is answered 503';
    is $refused->{json}{code}, 'too_many_waiters', 'slow bodies: the code for a client that loses its slot is too_many_waiters';
    is $refused->{headers}{'retry-after'}, 1, 'slow bodies: a client that loses its slot gets Retry-After';
    syswrite $_, '{}' for @slow[ 1, 2 ];
    is scalar(grep { read_answer($_)->{status} == 200 } @slow[ 1, 2 ]), 2,
        'slow bodies: clients that keep their slots are answered';
};

subtest 'slow bodies: the address with the most slots loses one first' => sub {
    my ($server, $client) = start_patient('AgentMaxWaiters 8');
    my $wait_from = sub { ask_to_wait($client->connection(LocalAddr => $_[0]),
        'POST', '/threads', 'Content-Length: 2') };
    my $other = $wait_from->('127.0.0.2');
    my @slow = map { $wait_from->('127.0.0.1') } 1 .. 12;
    my $late = $wait_from->('127.0.0.3');
    syswrite $_, '{}' for $other, $late;
    is read_answer($other)->{status}, 200,
        'slow bodies: an address keeps its only slot while another one asks for many';
    is read_answer($late)->{status}, 200, 'slow bodies: a new address gets a slot';
    is scalar(grep { read_answer($_)->{status} == 503 } @slow[ 0 .. 9 ]), 10,
        'slow bodies: the address with the most slots loses one for each further request';
    syswrite $_, '{}' for @slow[ 10, 11 ];
    is scalar(grep { read_answer($_)->{status} == 200 } @slow[ 10, 11 ]), 2,
        'slow bodies: the newest clients of the address with the most slots keep theirs';
};

# Begins a body of 4 MB; its buffer has that size after 2.5 MB were received.
my ($LARGE, $PART) = (4_194_304, 2_500_000);

sub begin_large {
    my ($server, $client) = @_;
    my $socket = begin_waiting($client, 'POST', '/threads', "Content-Length: $LARGE");
    send_part($server, $socket, $PART);
    return $socket;
}

sub send_part {
    my ($server, $socket, $bytes) = @_;
    return send_text($server, $socket, ' ' x $bytes);
}

# To one client after the other: httpd stops accepting while all its threads are
# busy, and may resume only with its next event, which Timeout 600 puts off.
sub send_in_turn {
    my ($server, $sockets, @texts) = @_;
    send_text($server, $sockets->[$_], $texts[ $_ % @texts ]) for 0 .. $#{$sockets};
    return;
}

sub send_text {
    my ($server, $socket, $text) = @_;
    syswrite $socket, $text;
    wait_for('the server to read all data', sub { !$server->count_unread });
    return;
}

sub end_large {
    my ($socket, $sent) = @_;
    syswrite $socket, ' ' x ($LARGE - $sent - 2) . '{}';
    return read_answer($socket)->{status};
}

subtest 'slow bodies: without memory, the body that has paused for longest is cut' => sub {
    my ($server, $client) = start_patient($MANY_CONNECTIONS);
    my @stopped = map { begin_large($server, $client) } 1 .. 4;
    is $client->post('/threads', ' ' x 1_000_000)->{status}, 200,
        'slow bodies: a body of 1 MB is received while paused ones use all memory for bodies';
    my $cut = read_answer(shift @stopped);
    is $cut->{status}, 408, 'slow bodies: the body that has paused for longest is refused with 408';
    is $cut->{json}{code}, 'request_timeout', 'slow bodies: the code for a paused body that is cut is request_timeout';
    like $cut->{json}{detail}, qr/memory/, 'slow bodies: the detail for a paused body that is cut names memory';
    is $client->post('/threads', ' ' x 4_000_000)->{status}, 200, 'slow bodies: a body of 4 MB is received while paused ones use all memory for bodies';
    is scalar(grep { end_large($_, $PART) == 200 } @stopped), 3,
        'slow bodies: paused bodies that were not cut are received when they continue';

    my $cost = cost_of([ httpd_children($server->httpd_pid) ], sub {
        @stopped = map { begin_large($server, $client) } 1 .. 40 });
    cmp_ok $cost->{peak_bytes}, '<', memory_scale() * 32 * 1_048_576,
        'slow bodies: the memory of 40 paused bodies is bounded';
    is scalar(grep { read_answer($_)->{status} == 408 } @stopped[ 0 .. 35 ]), 36,
        'slow bodies: the oldest of 40 paused bodies are cut';
    is scalar(grep { end_large($_, $PART) == 200 } @stopped[ 36 .. 39 ]), 4,
        'slow bodies: the newest of 40 paused bodies are received';
};

subtest 'slow bodies: a steady body is not cut' => sub {
    my ($server, $client) = start_patient($MANY_CONNECTIONS);
    my @stopped = map { begin_large($server, $client) } 1 .. 3;
    my $steady = begin_large($server, $client);
    my $sent = $PART;
    for (1 .. 6) {
        send_part($server, $steady, 1000);
        $sent += 1000;
        push @stopped, begin_large($server, $client);
    }
    is scalar(grep { read_answer($_)->{status} == 408 } @stopped[ 0 .. 5 ]), 6,
        'slow bodies: paused bodies are cut before a steady one';
    is end_large($steady, $sent), 200, 'slow bodies: a steady body is received';
};

subtest 'slow bodies: the connection serves further requests' => sub {
    my ($server, $client) = start_patient();
    my $socket = begin_waiting($client, 'POST', '/threads', 'Content-Length: 2');
    syswrite $socket, '{';
    syswrite $socket, '}' . head('GET', '/info');
    my $first = read_until($socket, qr/"server":"mod_agent"/);
    like $first, qr{\AHTTP/1\.1 200.*"thread_id".*HTTP/1\.1 200}s,
        'slow bodies: a request that was pipelined after a slow body is answered';
    syswrite $socket, head('POST', '/threads', 'Content-Length: 2', 'Expect: 100-continue');
    like read_until($socket, qr/\r\n\r\n/), $CONTINUE, 'slow bodies: a second body on the connection may be slow';
    syswrite $socket, '{}';
    is read_answer($socket)->{status}, 200, 'slow bodies: a second slow body on the connection is received';
    syswrite $socket, head('POST', '/threads', 'Content-Length: 2', 'Expect: 100-continue')
        . '{}';
    my $answer = read_answer($socket);
    is $answer->{status}, 200, 'slow bodies: a body that does not wait for 100 Continue is received';
    isnt $answer->{headers}{connection}, 'close', 'slow bodies: the connection of a body that does not wait for 100 Continue is kept';
};

subtest 'slow bodies: a slow body can create a run and wait for it' => sub {
    my ($server, $client) = start_patient();
    my $body = encode_json(run_body('hello'));
    for my $what (qw(wait stream)) {
        my @sockets = map { begin_waiting($client, 'POST', "/runs/$what", 'Connection: close',
            'Content-Length: ' . length $body) } 1 .. 8;
        is scalar @sockets, 8, "slow bodies: eight $what requests wait for their bodies in four threads";
        syswrite $_, substr $body, 0, 40 for @sockets;
        syswrite $_, substr $body, 40 for @sockets;
        my @ends = map { read_to_end($_) } @sockets;
        # In one piece if the run had ended at the first look.
        my @others = grep { !/"messages".*(?:\r\n0\r\n\r\n|\})\z/s } @ends;
        is scalar @others, 0, "slow bodies: a $what with a slow body receives the values of its run"
            or diag join "\n", @others, $server->error_log;
    }
};

subtest 'slow bodies: chunked bodies may pause anywhere' => sub {
    my ($server, $client) = start_patient();
    my @stopped = map { begin_waiting($client, 'POST', '/threads',
        'Transfer-Encoding: chunked') } 1 .. 12;
    # Three clients pause at each of them.
    my @starts = ("2\r\n{}\r\n0", "2\r\n{}\r\n000;a=b\r\n", "2\r\n{}\r\n0\r\nX-A: b\r\n",
        "1\r\n{\r\n1\r\n}");
    my @rests = ("\r\n\r\n", "\r\n", "X-B: c\r\n\r\n", "\r\n0\r\n\r\n");
    send_in_turn($server, \@stopped, @starts);
    is $client->get('/ok')->{status}, 200, 'slow bodies: chunked bodies that pause anywhere hold no thread';
    syswrite $stopped[$_], $rests[ $_ % 4 ] for 0 .. $#stopped;
    is scalar(grep { read_answer($_)->{status} == 200 } @stopped), 12,
        'slow bodies: chunked bodies that paused anywhere are received';

    my $bytes = head('POST', '/threads', 'Transfer-Encoding: chunked')
        . "1;x=\"y\"\r\n{\r\n01\r\n}\r\n00\r\nA: b\r\nC: d\r\n\r\n" . head('GET', '/info');
    my $socket = $client->connection;
    for my $byte (split //, $bytes) {
        syswrite $socket, $byte;
        $client->get('/ok');
    }
    like read_until($socket, qr/"server":"mod_agent"/),
        qr{\AHTTP/1\.1 200.*"thread_id".*HTTP/1\.1 200}s,
        'slow bodies: a chunked body with trailers and a pipelined request arrive byte by byte';
    my $endless = begin_waiting($client, 'POST', '/threads', 'Transfer-Encoding: chunked');
    syswrite $endless, "0\r\n" . ("X-A: b\r\n" x 4000);
    is read_answer($endless)->{status}, 400, 'slow bodies: endless trailers are refused with 400';
    my $large = begin_waiting($client, 'POST', '/threads', 'Transfer-Encoding: chunked');
    syswrite $large, sprintf "%x\r\n%s", 4_194_304, ' ' x 4_194_304;
    syswrite $large, "\r\n1\r\n \r\n";
    is read_answer($large)->{status}, 413, 'slow bodies: a chunked body larger than AgentMaxBody is refused with 413';
};

subtest 'slow bodies: chunks take at most three times their size' => sub {
    my ($server, $client) = start_patient();
    $client->post('/threads', {});
    for my $size (1_048_576, 4_194_304) {
        for my $chunk (1, $size) {
            my $cost = cost_of([ httpd_children($server->httpd_pid) ], sub {
                my $socket = $client->connection;
                my $rest = ' ' x ($size - 2) . '[]';
                syswrite $socket, head('POST', '/threads', 'Connection: close',
                    'Transfer-Encoding: chunked');
                while (length $rest) {
                    my $piece = substr $rest, 0, 10_000 * $chunk, '';
                    my $bytes = $piece =~ s/(.{$chunk})/sprintf "%x\r\n%s\r\n", length $1, $1/gers
                        if $chunk == 1;
                    syswrite $socket, $bytes // sprintf "%x\r\n%s\r\n", length $piece, $piece;
                }
                syswrite $socket, "0\r\n\r\n";
                return parse_response(
                    read_to_end($socket));
            });
            is $cost->{result}{status}, 422, "slow bodies: $size bytes in chunks of $chunk are read to the end";
            cmp_ok $cost->{peak_bytes}, '<', memory_scale() * (3 * $size + 1_048_576),
                "slow bodies: $size bytes in chunks of $chunk take at most three times their size";
        }
    }
};

subtest 'slow bodies: bodies may pause over TLS' => sub {
    my $tls = AgentTest::Tls->new;
    my ($server, $client) = start_patient($tls->lines);
    my $end = ' ' x 50_000 . '{}';
    my @clients;
    for my $version (('-tls1_2', '-tls1_3') x 4) {
        my $pid = open2(my $from, my $to, 'openssl', 's_client', '-quiet', $version,
            '-connect', '127.0.0.1:' . $tls->port, '-verify_quiet');
        $to->autoflush;
        print {$to} head('POST', '/threads', 'Expect: 100-continue',
            'Content-Length: ' . (60_000 + length $end));
        read_until($from, qr/100 Continue\r\n\r\n/);
        print {$to} ' ' x 60_000;
        push @clients, [ $pid, $from, $to ];
    }
    is $client->get('/ok')->{status}, 200, 'slow bodies: bodies that pause over TLS hold no thread';
    # The next request is in the same record as the end of the body.
    print { $_->[2] } $end . head('GET', '/info') for @clients;
    is scalar(grep { read_until($_->[1], qr/"server":"mod_agent"/)
        =~ m{\AHTTP/1\.1 200.*"thread_id".*HTTP/1\.1 200}s } @clients), 8,
        'slow bodies: the end of a body and a request in one TLS record are read';
    for (@clients) {
        my ($pid, undef, $to) = @{$_};
        close $to;
        kill TERM => $pid;
        waitpid $pid, 0;
    }
};

subtest 'slow bodies: compressed bodies may pause' => sub {
    my ($server, $client) = start_patient(
        'LoadModule deflate_module "${MODULES}/mod_deflate.so"',
        '<Location "/">', 'SetInputFilter DEFLATE', '</Location>');
    my $text = '{"x":"' . join('', map { chr 97 + rand 26 } 1 .. 100_000) . '"}';
    gzip(\$text, \my $packed) or die;
    my @slow = map { begin_waiting($client, 'POST', '/threads', 'Content-Encoding: gzip',
        $_ ? 'Transfer-Encoding: chunked' : 'Content-Length: ' . length $packed) } (0, 1) x 4;
    my $begin = substr $packed, 0, 1;
    send_in_turn($server, \@slow, $begin, "1\r\n$begin\r\n");
    is $client->get('/ok')->{status}, 200, 'slow bodies: compressed bodies that pause hold no thread';
    my $rest = substr($packed, 1) =~ s/(.)/1\r\n$1\r\n/gsr . "0\r\n\r\n";
    syswrite $slow[$_], $_ % 2 ? $rest : substr $packed, 1 for 0 .. 7;
    is scalar(grep { read_answer($_)->{status} == 200 } @slow), 8,
        'slow bodies: compressed bodies in pieces of one byte are received';
};

subtest 'slow bodies: Timeout and RequestReadTimeout limit them' => sub {
    my ($server, $client) = AgentTest::Server->start_with_client('Timeout 2',
        'RequestReadTimeout body=1-2,MinRate=1000');
    my $silent = begin_waiting($client, 'POST', '/threads', 'Content-Length: 100');
    my $answer = parse_response(read_to_end($silent));
    is $answer->{status}, 408, 'slow bodies: a client that is silent for the time of Timeout is answered 408';
    is $answer->{json}{code}, 'request_timeout', 'slow bodies: the code for a client that is silent for Timeout is request_timeout';
    my $steady = begin_waiting($client, 'POST', '/threads', 'Content-Length: 100000');
    local $SIG{PIPE} = 'IGNORE';
    # mod_reqtimeout checks the rate when bytes arrive.
    wait_for('the answer', sub {
        syswrite $steady, ' ';
        return IO::Select->new($steady)->can_read(0.1);
    });
    is read_answer($steady)->{status}, 408, 'slow bodies: a client slower than RequestReadTimeout is answered 408';
    my $next = begin_waiting($client, 'POST', '/threads', 'Content-Length: 2');
    ok $next, 'slow bodies: a slot is free after clients were answered 408';
};

subtest 'slow bodies: an incomplete body has no effect' => sub {
    my ($server, $client) = start_patient('AgentMaxWaiters 4');
    my $count = sql('select count(*) from agent.threads');
    for my $reset (0, 1) {
        my $gone = wait_for('a slot', sub { begin_waiting($client, 'POST', '/threads',
            'Transfer-Encoding: chunked') });
        syswrite $gone, "2\r\n{}\r\n";
        setsockopt $gone, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0 if $reset;
        close $gone;
    }
    wait_for('a free slot', sub { begin_waiting($client, 'POST', '/threads', 'Content-Length: 2') });
    is sql('select count(*) from agent.threads'), $count, 'slow bodies: an incomplete body has no effect';
};

subtest 'slow bodies: a graceful restart does not cut bodies' => sub {
    my ($server, $client) = start_patient();
    my @slow = map { begin_waiting($client, 'POST', '/threads', 'Content-Length: 2') } 1 .. 8;
    my ($old) = httpd_children($server->httpd_pid);
    $server->graceful;
    wait_for('the new generation', sub {
        grep { $_ != $old } httpd_children($server->httpd_pid) });
    is $client->get('/ok')->{status}, 200, 'slow bodies: other requests are served after a graceful restart';
    syswrite $_, '{}' for @slow;
    is scalar(grep { read_answer($_)->{status} == 200 } @slow), 8,
        'slow bodies: bodies that began before a graceful restart are received';
    wait_for('the old child to end', sub {
        !grep { $_ == $old } httpd_children($server->httpd_pid) });
    pass 'slow bodies: the old child ends when its last body was received';
};

subtest 'slow bodies: a stop cuts bodies' => sub {
    my ($server, $client) = start_patient();
    my @slow = map { begin_waiting($client, 'POST', '/threads', 'Content-Length: 2') } 1 .. 8;
    $server->stop;
    is read_to_end($slow[0]), '', 'slow bodies: a stop closes the connections of slow clients';
};

subtest 'slow bodies: without parking, slow bodies hold half of the threads' => sub {
    my ($server, $client) = start_patient('AgentParking Off');
    my @slow = map { begin_waiting($client, 'POST', '/threads', 'Content-Length: 2') } 1 .. 2;
    my $refused = $client->connection;
    syswrite $refused, head('POST', '/threads', 'Content-Length: 2');
    my $answer = read_answer($refused);
    is $answer->{status}, 503, 'slow bodies: without parking, one more slow body is refused with 503';
    is $answer->{json}{code}, 'too_many_waiters', 'slow bodies: without parking, the code for one more slow body is too_many_waiters';
    my $whole = $client->connection;
    syswrite $whole, head('POST', '/threads', 'Content-Length: 2') . '{}';
    is read_answer($whole)->{status}, 200, 'slow bodies: without parking, bodies that have arrived are received beside slow ones';
    syswrite $_, '{}' for @slow;
    is scalar(grep { read_answer($_)->{status} == 200 } @slow), 2, 'slow bodies: without parking, slow bodies are received';
    ok begin_waiting($client, 'POST', '/threads', 'Content-Length: 2'),
        'slow bodies: without parking, a thread is free for the next slow body';
};

# Forks a process that sends bodies of 4 MB in chunks of one byte.
sub send_tiny_chunks {
    my ($client) = @_;
    my $pid = fork // die "fork: $!\n";
    return $pid if $pid;
    local $SIG{PIPE} = 'IGNORE';
    my $chunks = "1\r\n \r\n" x 100_000;
    while (1) {
        my $socket = $client->connection;
        syswrite $socket, head('POST', '/threads', 'Transfer-Encoding: chunked');
        1 while syswrite $socket, $chunks;
    }
    POSIX::_exit(0);
}

subtest 'slow bodies: clients that send tiny chunks as fast as they can leave threads to others' => sub {
    my ($server, $client) = start_patient($MANY_CONNECTIONS);
    my @slow = map { begin_waiting($client, 'POST', '/threads', 'Content-Length: 2') } 1 .. 4;
    my @senders = map { send_tiny_chunks($client) } 1 .. 8;
    wait_for('the senders to be read', sub { $server->count_unread > 1_000_000 });
    my $served = 0;
    for my $slow (@slow) {
        $served += grep { eval { $client->get('/ok')->{status} == 200 } } 1 .. 5;
        syswrite $slow, '{}';
        $served += eval { read_answer($slow)->{status} == 200 } ? 1 : 0;
    }
    is $served, 24, 'slow bodies: other requests and bodies are served beside eight that send tiny chunks';
    kill KILL => @senders;
    waitpid $_, 0 for @senders;
};

done_testing;
