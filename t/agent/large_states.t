# SPDX-License-Identifier: Apache-2.0
# Large states, which are read and sent in parts: several clients at once, the
# memory that this takes, and what ends a response before its last part.
use strict;
use warnings;
use AgentTest::Client qw(read_all run_path);
use AgentTest::Cost;
use AgentTest::Database qw(sql);
use AgentTest::Process qw(httpd_children);
use AgentTest::Server;
use Cpanel::JSON::XS;
use Test::More;

# A client's message, in each of several runs.
my $TEXT = 2_600_000;
my $RUNS = 3;
# All responses together exceed the budget of a child.
my $READERS = 12;
my $json = Cpanel::JSON::XS->new->utf8;

my ($server, $client, $child, %path);

sub start {
    my (@directives) = @_;
    undef $server;
    ($server, $client) = AgentTest::Server->start_with_client('AsyncRequestWorkerFactor 400', @directives);
    ($child) = httpd_children($server->httpd_pid);
    return;
}

# A thread with a state of 8 MB.
sub make_state {
    my $thread = $client->new_thread;
    my $run;
    for (1 .. $RUNS) {
        $run = $client->create_run($thread, 'x' x $TEXT);
        $client->get(run_path($run) . '/join');
    }
    %path = (thread => "/threads/$thread", state => "/threads/$thread/state", join => run_path($run) . '/join');
    return $thread;
}

sub ask {
    my ($what, $receive_bytes) = @_;
    return $client->begin('GET', $path{$what}, undef, receive_bytes => $receive_bytes);
}

sub is_complete {
    my ($head, $body) = split /\r\n\r\n/, $_[0], 2;
    my ($length) = ($head // '') =~ /^Content-Length: (\d+)/mi;
    return $length ? $length == length $body : $_[0] =~ /\r\n0\r\n\r\n\z/;
}

# The messages of an answer: their types and lengths.
sub messages {
    my ($what, $answer) = @_;
    my $body = $json->decode(AgentTest::Client::parse_response($answer)->{body});
    my $values = $what eq 'join' ? $body : $body->{values};
    return [ map { "$_->{type} " . length $_->{content} } @{ $values->{messages} } ];
}

start();
my $thread = make_state();
for my $what (sort keys %path) {
    subtest "large states: $READERS clients that read a $what at once" => sub {
        my @answers;
        my $cost = cost_of([$child], sub { @answers = read_all(map { ask($what) } 1 .. $READERS) });
        is scalar(grep { is_complete($_) } @answers), $READERS, "large states: all clients that read a $what receive the whole";
        my $messages = messages($what, $answers[0]);
        is scalar(grep { /\Ahuman $TEXT\z/ } @$messages), $RUNS, "large states: a $what in parts is JSON with all messages";
        unlike $server->error_log, qr/AGT0202/, "large states: no client that reads a $what is cut";
        note sprintf 'peak of the child: %.1f MB', $cost->{peak_bytes} / 1e6;
        # A part of each, and libpq's buffers.
        cmp_ok $cost->{peak_bytes}, '<', memory_scale() * (24 << 20), "large states: a child that sends a $what to several clients takes little memory";
    };
}

subtest 'large states: a client does not read' => sub {
    my @stalled;
    my $cost = cost_of([$child], sub {
        for (1 .. 60) {
            push @stalled, ask('state', 4096);
            sysread $stalled[-1], my $byte, 1;
        }
    });
    note sprintf 'peak of the child: %.1f MB', $cost->{peak_bytes} / 1e6;
    cmp_ok $cost->{peak_bytes}, '<', memory_scale() * (48 << 20), 'large states: a client that does not read takes the memory of a part';
    ok is_complete((read_all(ask('state')))[0]), 'large states: a state is read beside clients that do not read';
};

for my $what (sort keys %path) {
    subtest "large states: the client of a $what closes its sending side" => sub {
        my $socket = ask($what, 65_536);
        sysread $socket, my $byte, 1;
        shutdown $socket, 1;
        my ($answer) = read_all($socket);
        # A response that ended early may look complete but for its text.
        my $messages = eval { messages($what, "$byte$answer") } // [];
        is scalar(grep { /\Ahuman $TEXT\z/ } @$messages), $RUNS, "large states: a client that closes its sending side receives the whole $what";
    };
}

# Most of them wait for their first turn when the child sees both.
subtest 'large states: clients of a join close their sending side at once' => sub {
    kill STOP => $child;
    my @sockets = map { ask('join') } 1 .. 12;
    shutdown $_, 1 for @sockets;
    kill CONT => $child;
    is scalar(grep { is_complete((read_all($_))[0]) } @sockets), 12,
        'large states: clients that close their sending side before their turn receive the whole join';
};

subtest 'large states: a thread is copied' => sub {
    my ($answer) = read_all($client->begin('POST', "/threads/$thread/copy", ''));
    is scalar(grep { /\Ahuman $TEXT\z/ } @{ messages('copy', $answer) }), $RUNS, 'large states: the record of a copy has all messages';
    like $answer =~ s/\r\n\r\n.*//sr, qr/^Transfer-Encoding: chunked/mi, 'large states: the record of a copy is sent in parts';
};

subtest 'large states: a function of the database does not return the mark' => sub {
    my $definition = join "\n", sql("select pg_get_functiondef('agent.append_values(json, text)'::regprocedure)");
    sql($definition =~ s/coalesce\(p_values, 'null'\)/'{}'/r);
    is $client->get($path{$_})->{status}, 500, "large states: a $_ without the mark" for qw(state thread);
    my $copy = $client->request('POST', "/threads/$thread/copy");
    is $copy->{status}, 500, 'large states: the record of a copy without the mark';
    sql($definition);
    like $server->error_log, qr/no mark for the values/, 'large states: the cause is logged';
    is_deeply [ httpd_children($server->httpd_pid) ], [$child], 'large states: the child goes on';
    ok is_complete((read_all(ask('state')))[0]), 'large states: the child still sends states';
};

subtest 'large states: the thread is deleted' => sub {
    my $socket = ask('state', 16_384);
    sysread $socket, my $byte, 1;
    is $client->request('DELETE', "/threads/$thread")->{status}, 204;
    my ($answer) = read_all($socket);
    ok !is_complete($answer), 'large states: a response whose thread is deleted ends incomplete';
    is $client->get($path{state})->{status}, 404, 'large states: a deleted thread has no state';
};

subtest 'large states: the server is restarted' => sub {
    make_state();
    my $socket = ask('state', 16_384);
    sysread $socket, my $byte, 1;
    $server->graceful;
    my ($answer) = read_all($socket);
    ok is_complete($answer), 'large states: a graceful restart completes responses';
};

subtest 'large states: no more requests may wait' => sub {
    start('AgentMaxWaiters 2');
    my $small = $client->new_thread;
    make_state();
    my @waiting = map { my $socket = $client->connection;
        syswrite $socket, "GET /threads/$small/stream HTTP/1.1\r\nHost: localhost\r\n\r\n";
        sysread $socket, my $byte, 1;
        $socket } 1 .. 2;
    for my $what (sort keys %path) {
        my $answer = $client->get($path{$what});
        is $answer->{status}, 503, "large states: a $what is refused when it may not wait";
        ok $answer->{headers}{'retry-after'}, "large states: the refusal of a $what has Retry-After";
    }
    is $client->get("/threads/$small/state")->{status}, 200, 'large states: a small state is sent when no request may wait';
};

subtest 'large states: threads block for requests that wait' => sub {
    start('AgentParking Off');
    make_state();
    ok is_complete((read_all(ask('state')))[0]), 'large states: a state is sent whole without parking';
};

subtest 'large states: a part takes too long three times' => sub {
    # Heartbeats, the pauses between attempts, are half of Timeout.
    start('Timeout 2', 'AgentDBQueryTimeout 500');
    make_state();
    my $definition = join "\n", sql("select pg_get_functiondef('agent.read_values(uuid, uuid, text, integer)'::regprocedure)");
    sql($definition =~ s/(v_channels := agent\.find_shown_channels)/if split_part(p_cursor, '.', 4) <> '0' then perform pg_catalog.pg_sleep(60); end if; $1/r);
    my ($answer) = read_all(ask('state'));
    sql($definition);
    like $answer, qr{\AHTTP/1\.1 200 }, 'large states: the first part was sent';
    ok !is_complete($answer), 'large states: a response whose next part always takes too long ends incomplete';
    like $server->error_log, qr/database_timeout/, 'large states: the cause is logged';
};

undef $server;
done_testing;
