# SPDX-License-Identifier: Apache-2.0
# Streams of what the retention has dropped: an event says so, and the state
# stands for what is gone. On a database of its own, whose days are moved.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Database;
use AgentTest::Server;
use Cpanel::JSON::XS;
use Test::More;

my $server = AgentTest::Server->new;
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

sub events {
    my ($body) = @_;
    return map {
        my %event = /^(event|data|id): (.*)$/mg;
        $event{data} = Cpanel::JSON::XS->new->utf8->allow_nonref->decode($event{data});
        \%event;
    } grep { /^event:/m } split /\n\n/, $body;
}

sub stream {
    my ($run, $after, $query) = @_;
    my $answer = $client->get(AgentTest::Client::run_path($run) . '/stream' . ($query // ''),
        undef, { defined $after ? ('Last-Event-ID' => $after) : () });
    return events($answer->{body});
}

my $thread = $client->create_thread->{thread_id};
my $run = $client->create_run($thread, 'hello');
my $values = $client->join_run($run);
my $failed = $client->create_run($thread, 'fail');
$client->join_run($failed);
my @whole = stream($run);
my $last = $whole[-1]{id};

# What maintenance does when the day of these runs is over.
my @partitions = sql('select distinct tableoid::regclass from agent.run_events');
sql("drop table $_") for @partitions;

my @rest = stream($run, 0);
is_deeply [ map { $_->{event} } @rest ], [qw(gap values)],
    'a stream taken up after the retention has an event gap, then the state';
is_deeply $rest[0]{data}, { run_id => $run->{run_id}, after => 0, last => $last + 0 },
    'the gap says from where to where';
is_deeply $rest[1]{data}, $values, 'the state is the one that the run has left';
is_deeply [ map { $_->{id} } @rest ], [ 0, $last ], 'only what comes last has the last id';
is_deeply [ stream($run, $last) ], [], 'nothing is missing behind it';
is_deeply [ map { $_->{event} } stream($run, undef, '?stream_mode=updates') ], [qw(gap values)],
    'whatever mode was asked for';
my @failure = stream($failed);
is_deeply [ map { $_->{event} } grep { $_->{event} ne 'values' } @failure ], [qw(gap error)],
    'how a run failed is shown too';
is_deeply $client->join_run($run), $values, 'join needs no events';

undef $server;
done_testing;
