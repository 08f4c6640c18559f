# SPDX-License-Identifier: Apache-2.0
# Events with large values, which are read and sent in parts: several clients at
# once, clients that do not read, streams that are resumed, and what ends one in
# the middle of an event.
use strict;
use warnings;
use AgentTest::Client qw(parse_response read_all read_events run_path unchunk);
use AgentTest::Cost;
use AgentTest::Database qw(sql);
use AgentTest::Process qw(httpd_children);
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

my $TEXT = 2_600_000;
my $READERS = 12;
my @MODES = qw(values checkpoints updates);

my ($server, $client, $child, $thread, $run);

sub start {
    my (@directives) = @_;
    undef $server;
    ($server, $client) = AgentTest::Server->start_with_client('AsyncRequestWorkerFactor 400', @directives);
    ($child) = httpd_children($server->httpd_pid);
    $thread = $client->new_thread;
    for my $text ('x' x $TEXT, 'x' x $TEXT, 'short') {
        $run = $client->create_run($thread, $text, stream_mode => \@MODES);
        $client->get(run_path($run) . '/join');
    }
    return;
}

# Requests a stream; after: Last-Event-ID, bytes: of the receive buffer.
sub ask {
    my ($path, %with) = @_;
    return $client->begin('GET', $path, undef, last_event_id => $with{after}, receive_bytes => $with{bytes});
}

# Reads what a stream has at first, and more up to a number of bytes.
sub read_bytes {
    my ($socket, $bytes) = @_;
    my $read = '';
    while (length $read < $bytes) {
        sysread $socket, $read, 65_536, length $read or last;
    }
    return $read;
}

sub is_complete { return $_[0] =~ /\r\n0\r\n\r\n\z/ }

sub events_in { return read_events(parse_response($_[0])->{body}) }

start();
my $path = run_path($run) . '/stream';
my ($answer) = read_all(ask($path));
ok is_complete($answer), 'large events: a stream with them is complete';
my @events = events_in($answer);
undef $answer;
is_deeply [ map { $_->{id} } @events ], [ 0 .. $#events ], 'large events: their ids have no gap';
my $state = $client->get_state($thread);
my @shown = grep { $_->{event} eq 'values' } @events;
is_deeply $shown[-1]{data}, $state->{values}, 'large events: the last values are those of the state';
my ($checkpoint) = reverse grep { $_->{event} eq 'checkpoints' } @events;
is_deeply $checkpoint->{data}{values}, $state->{values}, 'large events: values in the middle of an event';
is_deeply $checkpoint->{data}{next}, [], 'large events: what follows the values is there';
cmp_ok scalar(@shown), '>', 1, 'large events: several in one stream';
is_deeply $client->join_run($run), $state->{values}, 'large events: a join has the same values';
my $count = @events;
my $last = $shown[-1]{id};
@events = @shown = ();

my $filtered = parse_response((read_all(ask("$path?stream_mode=updates")))[0]);
is_deeply [ grep { !/\A(?:metadata|updates)\z/ } map { $_->{event} } read_events($filtered->{body}) ], [],
    'large events: modes that a client does not request are left out';

subtest "large events: $READERS clients that read at once" => sub {
    my @answers;
    my $cost = cost_of([$child], sub { @answers = read_all(map { ask($path, after => $last - 1) } 1 .. $READERS) });
    is scalar(grep { is_complete($_) } @answers), $READERS, 'large events: all clients receive the whole';
    my ($first) = events_in($answers[-1]);
    is_deeply $first->{data}, $state->{values}, 'large events: each of them the same values';
    note sprintf 'peak of the child: %.1f MB', $cost->{peak_bytes} / 1e6;
    cmp_ok $cost->{peak_bytes}, '<', memory_scale() * (24 << 20), 'large events: a child has a part of each';
};

subtest 'large events: clients do not read' => sub {
    my @stalled;
    my $cost = cost_of([$child], sub {
        for (1 .. 60) {
            push @stalled, ask($path, after => $last - 1, bytes => 4096);
            sysread $stalled[-1], my $byte, 1;
        }
    });
    note sprintf 'peak of the child: %.1f MB', $cost->{peak_bytes} / 1e6;
    cmp_ok $cost->{peak_bytes}, '<', memory_scale() * (48 << 20), 'large events: a client that does not read takes the memory of a part';
    unlike $server->error_log, qr/AGT0202/, 'large events: none of them is cut';
    ok is_complete((read_all(ask($path, after => $last - 1)))[0]), 'large events: a stream is read beside clients that do not read';
};

subtest 'large events: a client leaves in the middle of an event' => sub {
    my $socket = ask($path, after => $last - 2, bytes => 65_536);
    my $begin = unchunk((split /\r\n\r\n/, read_bytes($socket, 1_000_000), 2)[1]);
    close $socket;
    my @complete = map { $_->{id} } read_events($begin);
    my @rest = events_in((read_all(ask($path, after => $complete[-1] // $last - 2)))[0]);
    is $rest[-1]{id}, $count - 1, 'large events: a stream that is resumed is complete';
    my ($again) = grep { $_->{id} == $last } @rest;
    is_deeply $again->{data}, $state->{values}, 'large events: the event that was cut is sent again, whole';
};

subtest 'large events: the stream of a thread sends them whole' => sub {
    my $socket = ask("/threads/$thread/stream?stream_mode=state_update&stream_mode=lifecycle", after => '-');
    my $read = '';
    sysread $socket, $read, 1_000_000, length $read while 3 > (() = $read =~ /^event: run_done$/mg) || $read !~ /run_done\ndata: [^\n]*\nid: [^\n]*\n\n/;
    my @all = read_events(unchunk((split /\r\n\r\n/, $read, 2)[1]));
    is_deeply [ map { $_->{event} } @all ], [ (qw(metadata state_update run_done)) x 3 ], 'large events: states come between the start and the end of runs';
    is_deeply $all[-2]{data}, $state, 'large events: the state after a run';
    $socket = ask("/threads/$thread/stream", after => '2--1');
    $read = '';
    sysread $socket, $read, 1_000_000, length $read while 2 > (() = $read =~ /^event: run_done$/mg);
    my ($values) = reverse grep { $_->{event} eq 'values' } read_events(unchunk((split /\r\n\r\n/, $read, 2)[1]));
    is_deeply $values->{data}, $state->{values}, 'large events: values in the stream of a thread';
};

subtest 'large events: of a run that executes' => sub {
    my $body = AgentTest::Client::run_body('more', stream_mode => \@MODES);
    my @live = read_events($client->post("/threads/$thread/runs/stream", $body)->{body});
    is_deeply [ map { $_->{id} } @live ], [ 0 .. $#live ], 'large events: the stream of a new run has no gap';
    my ($values) = reverse grep { $_->{event} eq 'values' } @live;
    is scalar @{ $values->{data}{messages} }, 8, 'large events: its values are whole';
};

subtest 'large events: the thread is deleted' => sub {
    my $socket = ask($path, after => $last - 1, bytes => 16_384);
    sysread $socket, my $byte, 1;
    is $client->delete("/threads/$thread")->{status}, 204;
    my ($rest) = read_all($socket);
    ok !is_complete($rest), 'large events: a stream whose thread is deleted in the middle of an event ends incomplete';
    wait_for('the reason', sub { $server->error_log =~ /AGT\d+.*checkpoint/i });
    pass 'large events: the reason is logged';
    is $client->get($path)->{status}, 404, 'large events: a stream of a deleted run';
};

subtest 'large events: dropped by the retention' => sub {
    start('AgentParking Off');
    sql("drop table $_") for sql('select distinct tableoid::regclass from agent.run_events');
    my @gap = events_in((read_all(ask(run_path($run) . '/stream', after => 0)))[0]);
    is_deeply [ map { $_->{event} } @gap ], [qw(gap values)], 'large events: a state in a gap';
    is_deeply $gap[1]{data}, $client->get_state($thread)->{values}, 'large events: it is whole, also where threads block for requests that wait';
    is_deeply [ events_in((read_all(ask(run_path($run) . '/stream', after => $gap[1]{id})))[0]) ], [], 'large events: the gap is sent once';
};

undef $server;
done_testing;
