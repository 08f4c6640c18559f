# SPDX-License-Identifier: Apache-2.0
# The events of a run: framing, order, modes, reconnection.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Gate;
use AgentTest::Server;
use Cpanel::JSON::XS;
use Test::More;

my $gate = AgentTest::Gate->new;
my $server = AgentTest::Server->new(
    config => AgentTest::Server::shared_config() . $gate->graph);
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

sub path { return AgentTest::Client::run_path($_[0]) }

# The events of a body: { event, data, id } each.
sub events {
    my ($body) = @_;
    return map {
        my %event = /^(event|data|id): (.*)$/mg;
        $event{data} = Cpanel::JSON::XS->new->utf8->allow_nonref->decode($event{data});
        \%event;
    } grep { /^event:/m } split /\n\n/, $body;
}

my $thread = $client->create_thread->{thread_id};
my $answer = $client->post("/threads/$thread/runs/stream", {
    assistant_id => 'agent',
    input        => { messages => [ { role => 'user', content => 'use clock {}' } ] },
    stream_mode  => [qw(values updates messages-tuple)],
});
is $answer->{status}, 200, 'create and stream: the response is 200';
is $answer->{headers}{'content-type'}, 'text/event-stream',
    'create and stream: Content-Type is text/event-stream';
my ($run_id) = $answer->{headers}{'content-location'}
    =~ m{\A/threads/$thread/runs/([0-9a-f-]{36})\z};
ok $run_id, 'create and stream: Content-Location is the path of the run';
is $answer->{headers}{location}, "/threads/$thread/runs/$run_id/stream",
    'create and stream: Location is the path of the stream';

my @events = events($answer->{body});
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

my $replayed = $client->get(path($run) . '/stream');
is_deeply [ events($replayed->{body}) ], \@events,
    'stream: a finished run is replayed in full';
my $after = $client->get(path($run) . '/stream', undef, { 'Last-Event-ID' => 3 });
is_deeply [ events($after->{body}) ], [ @events[ 4 .. $#events ] ],
    'stream: Last-Event-ID N continues after event N';
is_deeply [ events($client->get(path($run) . '/stream', undef,
    { 'Last-Event-ID' => '-1' })->{body}) ], \@events, 'stream: Last-Event-ID -1 replays all events';
is $client->get(path($run) . '/stream', undef, { 'Last-Event-ID' => $_ })
    ->{status}, 400, "stream: Last-Event-ID $_ is 400"
    for ('x', '-2', '1.5', '99999999999999', '1,2');

subtest 'stream: the events of a running run are sent as they occur' => sub {
    my $live = $client->create_run($thread, 'use gate {}',
        assistant_id => 'gated', stream_mode => ['messages-tuple']);
    my $socket = $client->begin('GET', path($live) . '/stream');
    my $seen = AgentTest::Client::read_until($socket, qr/event: messages/);
    is $client->get_run($live)->{status}, 'pending',
        'events arrive while the run is pending';
    $gate->wait_calls(1);
    $gate->open;
    $seen .= AgentTest::Client::read_to_end($socket);
    my $body = AgentTest::Client::parse_response($seen)->{body};
    is_deeply [ map { $_->{id} } events($body) ],
        [ 0 .. scalar(events($body)) - 1 ], 'no event is missing at the end';
    is $client->get_run($live)->{status}, 'success',
        'the stream ends when the run succeeds';
};

subtest 'stream: the stream of a failed run ends with an error event' => sub {
    my $failed = $client->start_run('fail');
    my @all = events($client->get(path($failed) . '/stream')->{body});
    is $all[-1]{event}, 'error', 'the last event is error';
    ok length $all[-1]{data}{$_}, "the error event has $_" for qw(error message);
};

subtest 'stream: a removed run ends its stream' => sub {
    my %remove = (
        'rolled back' => sub { $client->post(path($_[0]) . '/cancel?action=rollback') },
        'deleted with its thread' => sub { $client->delete("/threads/$_[0]{thread_id}") },
    );
    my %live = map { $_ => $client->create_run(
        $client->create_thread->{thread_id}, 'sleep 600000') } sort keys %remove;
    my %stream = map { $_ => $client->begin('GET', path($live{$_}) . '/stream') } keys %live;
    # A heartbeat follows the last event so far.
    AgentTest::Client::read_until($_, qr/: heartbeat/) for values %stream;
    for my $how (sort keys %remove) {
        $remove{$how}->($live{$how});
        my $rest = AgentTest::Client::read_to_end($stream{$how});
        like $rest, qr/0\r\n\r\n\z/, "the stream of a run that is $how ends cleanly";
        # A notification ends it; every sixth heartbeat polls for lost ones.
        cmp_ok scalar(() = $rest =~ /: heartbeat/g), '<', 3, 'the stream ends within three heartbeats';
    }
};

subtest 'HEAD: streams and joins respond with headers alone' => sub {
    my $there = $client->create_thread->{thread_id};
    my $live = $client->create_run($there, 'sleep 600000');
    for my $what (path($live) . '/stream', path($live) . '/join', "/threads/$there/stream") {
        my $socket = $client->connection;
        syswrite $socket, "HEAD $what HTTP/1.1\r\nHost: localhost\r\n\r\n";
        like AgentTest::Client::read_until($socket, qr/\r\n\r\n\z/), qr{\AHTTP/1.1 200},
            "HEAD $what is 200";
        syswrite $socket, "GET /ok HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        like AgentTest::Client::read_to_end($socket), qr/"ok":true/, 'the connection serves another request after HEAD';
    }
    $client->post(path($live) . '/cancel');
};

is $client->get("/threads/$thread/runs/01890000-0000-7000-8000-000000000000/stream")
    ->{status}, 404, 'stream: an unknown run is 404';

undef $server;
done_testing;
