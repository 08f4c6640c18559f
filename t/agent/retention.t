# SPDX-License-Identifier: Apache-2.0
# Streams of events that the retention has dropped: `gap` and the state replace
# them. On a separate database, whose partitions are dropped.
use strict;
use warnings;
use AgentTest::Client qw(read_events run_path);
use AgentTest::Database;
use AgentTest::Server;
use Test::More;

my $server = AgentTest::Server->new;
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

sub stream {
    my ($run, $after, $query) = @_;
    my $answer = $client->get(run_path($run) . '/stream' . ($query // ''),
        undef, { defined $after ? ('Last-Event-ID' => $after) : () });
    return read_events($answer->{body});
}

my $thread = $client->new_thread;
my $run = $client->create_run($thread, 'hello');
my $values = $client->join_run($run);
my $failed = $client->create_run($thread, 'fail');
$client->join_run($failed);
my @whole = stream($run);
# Its state exceeds what a turn sends.
my $large = $client->new_thread;
$client->join_run($client->create_run($large, $_)) for 'x' x 150_000, 'fail';
my $last = $whole[-1]{id};

# As the supervisor does when AgentEventRetention is over.
my @partitions = sql('select distinct tableoid::regclass from agent.run_events');
sql("drop table $_") for @partitions;

my @rest = stream($run, 0);
is_deeply [ map { $_->{event} } @rest ], [qw(gap values)],
    'gap: dropped events are replaced by gap and the state';
is_deeply $rest[0]{data}, { run_id => $run->{run_id}, after => 0, last => $last + 0 },
    'gap: the event names the dropped range';
is_deeply $rest[1]{data}, $values, 'gap: values are the final state of the run';
is_deeply [ map { $_->{id} } @rest ], [ 0, $last ], 'gap: only the last event has the last id';
is_deeply [ stream($run, $last) ], [], 'gap: after the last id there is no event';
is_deeply [ map { $_->{event} } stream($run, undef, '?stream_mode=updates') ], [qw(gap values)],
    'gap: the events are sent in any stream_mode';
my @failure = stream($failed);
is_deeply [ map { $_->{event} } grep { $_->{event} ne 'values' } @failure ], [qw(gap error)],
    'gap: a failed run has its error event';
my $socket = $client->connection;
syswrite $socket, "GET /threads/$large/stream HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: 2-0\r\n\r\n";
my $sent = '';
sysread $socket, $sent, 65_536, length $sent while $sent !~ /^event: run_done/m && 3 > (() = $sent =~ /^event: gap/mg);
is_deeply [ $sent =~ /^event: (.*)$/mg ], [qw(gap values error run_done)], 'gap: in the stream of a thread a large state is sent once';
is_deeply $client->join_run($run), $values, 'gap: join returns the values without events';

undef $server;
done_testing;
