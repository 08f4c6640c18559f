# SPDX-License-Identifier: Apache-2.0
# GET /threads/{thread_id}/stream: all runs of a thread, one after the other.
use strict;
use warnings;
use AgentTest::Client qw(read_events read_to_end read_until run_path unchunk);
use Test::More;

my $client = AgentTest::Client->new;
my $UNKNOWN = '01890000-0000-7000-8000-000000000000';

# A stream that is read event by event.
sub open_stream {
    my ($thread, $query, $after) = @_;
    my $socket = $client->connection;
    syswrite $socket, "GET /threads/$thread/stream$query HTTP/1.1\r\nHost: localhost\r\n"
        . (defined $after ? "Last-Event-ID: $after\r\n" : '') . "\r\n";
    my $stream = { socket => $socket, bytes => '' };
    fill($stream) while $stream->{bytes} !~ s{\A(HTTP/1.1 200.*?\r\n\r\n)}{}s;
    $stream->{head} = $1;
    return $stream;
}

sub fill {
    my ($stream) = @_;
    local $SIG{ALRM} = sub { die "no further event after: $stream->{bytes}\n" };
    alarm 120;
    my $read = sysread $stream->{socket}, $stream->{bytes}, 65_536,
        length $stream->{bytes};
    alarm 0;
    die "the stream has ended: $stream->{bytes}\n" if !$read;
    return;
}

# The events up to the first of that name.
sub read_to {
    my ($stream, $name) = @_;
    my @events;
    while (1) {
        my @all = read_events(unchunk($stream->{bytes}));
        my $taken = $stream->{taken} // 0;
        for my $i ($taken .. $#all) {
            push @events, $all[$i];
            if ($all[$i]{event} eq $name) {
                $stream->{taken} = $i + 1;
                return @events;
            }
        }
        @events = ();
        fill($stream);
    }
}

sub names { return [ map { $_->{event} } @_ ] }

my $thread = $client->new_thread;
my $stream = open_stream($thread, '');
like $stream->{head}, qr{^Content-Type: text/event-stream\r}m, 'thread stream: Content-Type is text/event-stream';
like $stream->{head}, qr{^Location: /threads/$thread/stream\r}m,
    'thread stream: Location is the path of the stream';
my $first = $client->create_run($thread, 'one', stream_mode => [qw(values updates)]);
my @events = read_to($stream, 'run_done');
is $events[0]{event}, 'metadata', 'thread stream: a later run begins with metadata';
is $events[0]{data}{run_id}, $first->{run_id}, 'thread stream: metadata names the run';
is_deeply [ sort keys %{ { map { $_->{event} => 1 } @events } } ],
    [qw(metadata run_done updates values)], 'thread stream: all events of the run are sent';
is_deeply $events[-1]{data}, { run_id => $first->{run_id}, thread_id => $thread,
    status => 'success' }, 'thread stream: run_done has the final status';

my $second = $client->create_run($thread, 'two');
my $third = $client->create_run($thread, 'three', multitask_strategy => 'enqueue');
push @events, read_to($stream, 'run_done'), read_to($stream, 'run_done');
is_deeply [ map { $_->{data}{run_id} } grep { $_->{event} eq 'run_done' } @events ],
    [ map { $_->{run_id} } $first, $second, $third ],
    'thread stream: further runs follow in the order of creation';

my $replay = open_stream($thread, '', '-');
my @again = map { read_to($replay, 'run_done') } 1 .. 3;
is_deeply \@again, \@events, 'thread stream: Last-Event-ID - replays all stored events';
for my $i (0, int(@events / 2), $#events - 1) {
    my $rest = open_stream($thread, '', $events[$i]{id});
    my @rest;
    push @rest, read_to($rest, 'run_done') while @rest < $#events - $i;
    is_deeply \@rest, [ @events[ $i + 1 .. $#events ] ],
        "thread stream: Last-Event-ID of event $i continues after it";
}

subtest 'thread stream: stream_mode selects events' => sub {
    my $there = $client->new_thread;
    my $life = open_stream($there, '?stream_mode=lifecycle');
    my $states = open_stream($there, '?stream_modes=state_update');
    my $both = open_stream($there, '?stream_mode=state_update&stream_mode=lifecycle');
    my $run = $client->create_run($there, 'use clock {}');
    is_deeply names(read_to($life, 'run_done')), [qw(metadata run_done)],
        'thread stream: stream_mode lifecycle has the start and the end of each run';
    my ($update) = read_to($states, 'state_update');
    is_deeply $update->{data}, $client->get_state($there),
        'thread stream: stream_mode state_update has the state after each run';
    is_deeply names(read_to($both, 'run_done')), [qw(metadata state_update run_done)],
        'thread stream: several values of stream_mode can be combined';
    is $client->get("/threads/$there/stream?stream_mode=all")->{status}, 422,
        'thread stream: an unknown stream_mode is 422';
};

subtest 'thread stream: a stream opened while a run executes has the new events' => sub {
    my $there = $client->new_thread;
    my $run = $client->create_run($there, 'sleep 60000', stream_mode => ['messages-tuple']);
    my $before = $client->begin('GET', run_path($run) . '/stream');
    read_until($before, qr/event: messages/);
    my $late = open_stream($there, '');
    my @seen = read_to($late, 'messages');
    is_deeply $seen[0]{data}, { run_id => $run->{run_id} },
        'thread stream: while a run executes, the first event is its metadata';
    is_deeply names(@seen), [qw(metadata messages)], 'thread stream: while a run executes, its new events follow';
    $client->post(run_path($run) . '/cancel');
    my @rest = read_to($late, 'run_done');
    is $rest[-1]{data}{status}, 'interrupted', 'thread stream: run_done has the final status of a cancelled run';
};

subtest 'thread stream: run_done has the status deleted for a run that is rolled back' => sub {
    my $there = $client->new_thread;
    my $life = open_stream($there, '?stream_mode=lifecycle');
    my $run = $client->create_run($there, 'sleep 600000');
    read_to($life, 'metadata');
    $client->post(run_path($run) . '/cancel?action=rollback');
    my ($done) = read_to($life, 'run_done');
    is_deeply $done->{data}, { run_id => $run->{run_id}, thread_id => $there,
        status => 'deleted' }, 'thread stream: run_done has the status deleted after a rollback';
};

subtest 'thread stream: the stream of a deleted thread ends' => sub {
    my $there = $client->new_thread;
    my $gone = $client->begin('GET', "/threads/$there/stream");
    my $head = read_until($gone, qr/\r\n\r\n/);
    is $client->delete("/threads/$there")->{status}, 204, 'thread stream: the thread can be deleted while it is streamed';
    like $head . read_to_end($gone), qr/\r\n0\r\n\r\n\z/, 'thread stream: the stream of a deleted thread ends cleanly';
};

is $client->get("/threads/$UNKNOWN/stream")->{status}, 404, 'thread stream: an unknown thread is 404';
is $client->get("/threads/$thread/stream", undef, { 'Last-Event-ID' => $_ })->{status},
    400, "thread stream: Last-Event-ID $_ is 400"
    for ('x', '1', '1-x', '-1', '1-2-3', '99999999999999999999-1');

done_testing;
