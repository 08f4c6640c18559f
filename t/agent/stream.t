# SPDX-License-Identifier: Apache-2.0
# The events of a run: framing, order, modes, reconnection.
use strict;
use warnings;
use AgentTest::Client qw(parse_response read_events read_to_end read_until run_body run_path);
use AgentTest::Gate;
use AgentTest::Server;
use Test::More;

my $gate = AgentTest::Gate->new;
my $server = AgentTest::Server->new(
    config => AgentTest::Server::shared_config() . $gate->graph);
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

my $thread = $client->new_thread;
my $answer = $client->post("/threads/$thread/runs/stream",
    run_body('use clock {}', stream_mode => [qw(values updates messages-tuple)]));
is $answer->{status}, 200, 'create and stream: the response is 200';
is $answer->{headers}{'content-type'}, 'text/event-stream',
    'create and stream: Content-Type is text/event-stream';
my ($run_id) = $answer->{headers}{'content-location'}
    =~ m{\A/threads/$thread/runs/([0-9a-f-]{36})\z};
ok $run_id, 'create and stream: Content-Location is the path of the run';
is $answer->{headers}{location}, "/threads/$thread/runs/$run_id/stream",
    'create and stream: Location is the path of the stream';

my @events = read_events($answer->{body});
is $events[0]{event}, 'metadata', 'stream: the first event is metadata';
is_deeply $events[0]{data}, { run_id => $run_id, attempt => 1 },
    'stream: metadata has the run and the attempt';
is_deeply [ map { $_->{id} } @events ], [ 0 .. $#events ],
    'stream: ids count from 0 without a gap';
my %kinds = map { $_->{event} => 1 } @events;
is_deeply [ sort keys %kinds ], [qw(messages metadata updates values)],
    'stream: only events of the requested modes are sent';
my @updates = grep { $_->{event} eq 'updates' } @events;
is_deeply [ map { keys %{ $_->{data} } } @updates ], [qw(agent tools agent)],
    'stream: updates has one event per node';
my $run = { thread_id => $thread, run_id => $run_id };
my ($last) = reverse grep { $_->{event} eq 'values' } @events;
is_deeply $last->{data}, $client->join_run($run),
    'stream: the last values event has the final values';
my @words = map { $_->{data}[0]{content} } grep { $_->{event} eq 'messages' } @events;
my $text = join '', map { ref ? map { $_->{text} // '' } @$_ : $_ } @words;
my $said = $last->{data}{messages}[-1]{content};
ok @words > 3, 'stream: messages-tuple has an event per piece of the answer';
like $text, qr/\Q$said\E/, 'stream: the pieces together are the final message';

my $replayed = $client->get(run_path($run) . '/stream');
is_deeply [ read_events($replayed->{body}) ], \@events,
    'stream: a finished run is replayed in full';
my $after = $client->get(run_path($run) . '/stream', undef, { 'Last-Event-ID' => 3 });
is_deeply [ read_events($after->{body}) ], [ @events[ 4 .. $#events ] ],
    'stream: Last-Event-ID N continues after event N';
is_deeply [ read_events($client->get(run_path($run) . '/stream', undef,
    { 'Last-Event-ID' => '-1' })->{body}) ], \@events, 'stream: Last-Event-ID -1 replays all events';
is $client->get(run_path($run) . '/stream', undef, { 'Last-Event-ID' => $_ })
    ->{status}, 400, "stream: Last-Event-ID $_ is 400"
    for ('x', '-2', '1.5', '99999999999999', '1,2');

my $before = $client->get_state($thread)->{parent_checkpoint_id};
my @values = grep { $events[$_]{event} eq 'values' } 0 .. $#events;
is_deeply [ read_events($client->get(run_path($run) . "/stream?checkpoint_id=$before")->{body}) ],
    [ @events[ $values[-2] + 1 .. $#events ] ],
    'stream: checkpoint_id begins after the values of the checkpoint';
is_deeply [ read_events($client->get(run_path($run) . "/stream?checkpoint_id=$run_id")->{body}) ],
    \@events, 'stream: the checkpoint_id of another run has no effect';
is $client->get(run_path($run) . '/stream?checkpoint_id=x')->{status}, 422,
    'stream: checkpoint_id must be a UUID';

subtest 'stream: the events of a running run are sent as they occur' => sub {
    my $live = $client->create_run($thread, 'use gate {}',
        assistant_id => 'gated', stream_mode => ['messages-tuple']);
    my $socket = $client->begin('GET', run_path($live) . '/stream');
    my $seen = read_until($socket, qr/event: messages/);
    is $client->get_run($live)->{status}, 'pending',
        'stream: events arrive while the run is pending';
    $gate->wait_calls(1);
    $gate->open;
    $seen .= read_to_end($socket);
    my $body = parse_response($seen)->{body};
    is_deeply [ map { $_->{id} } read_events($body) ],
        [ 0 .. scalar(read_events($body)) - 1 ], 'stream: no event of a running run is missing at the end';
    is $client->get_run($live)->{status}, 'success',
        'stream: the stream of a running run ends when it succeeds';
};

subtest 'stream: the stream of a failed run ends with an error event' => sub {
    my $failed = $client->start_run('fail');
    my @all = read_events($client->get(run_path($failed) . '/stream')->{body});
    is $all[-1]{event}, 'error', 'stream: the last event of a failed run is error';
    ok length $all[-1]{data}{$_}, "stream: the error event has $_" for qw(error message);
};

subtest 'stream: a removed run ends its stream' => sub {
    my %remove = (
        'rolled back' => sub { $client->post(run_path($_[0]) . '/cancel?action=rollback') },
        'deleted with its thread' => sub { $client->delete("/threads/$_[0]{thread_id}") },
    );
    for my $how (sort keys %remove) {
        my $live = $client->start_run('sleep 600000');
        my $stream = $client->begin('GET', run_path($live) . '/stream');
        # A heartbeat follows the last event so far.
        read_until($stream, qr/: heartbeat/);
        $remove{$how}->($live);
        my $rest = read_to_end($stream);
        like $rest, qr/0\r\n\r\n\z/, "stream: the stream of a run that is $how ends cleanly";
        # Without the notification, the sixth heartbeat would end it.
        cmp_ok scalar(() = $rest =~ /: heartbeat/g), '<', 5,
            "stream: a notification ends the stream of a run that is $how";
    }
};

subtest 'HEAD: streams and joins respond with headers alone' => sub {
    my $there = $client->new_thread;
    my $live = $client->create_run($there, 'sleep 600000');
    for my $what (run_path($live) . '/stream', run_path($live) . '/join', "/threads/$there/stream") {
        my $socket = $client->connection;
        syswrite $socket, "HEAD $what HTTP/1.1\r\nHost: localhost\r\n\r\n";
        like read_until($socket, qr/\r\n\r\n\z/), qr{\AHTTP/1.1 200},
            "HEAD: $what is 200";
        syswrite $socket, "GET /ok HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        like read_to_end($socket), qr/"ok":true/, "HEAD: the connection serves another request after $what";
    }
    $client->post(run_path($live) . '/cancel');
};

is $client->get("/threads/$thread/runs/01890000-0000-7000-8000-000000000000/stream")
    ->{status}, 404, 'stream: an unknown run is 404';

undef $server;
done_testing;
