# SPDX-License-Identifier: Apache-2.0
# Streams that are cut and resumed with Last-Event-ID have every event exactly
# once and in order, whatever cut them; and a join never returns before the final
# status can be read.
use strict;
use warnings;
use AgentTest::Client qw(run_path unchunk);
use AgentTest::Postgres;
use AgentTest::Server;
use Test::More;

# The same cuts each time, unless another seed is given.
srand($ENV{AGENT_TEST_SEED} // 20_110);

my @MODES = qw(values updates messages messages-tuple events tasks);

sub start_run {
    my ($client, $text) = @_;
    return $client->start_run($text, stream_mode => \@MODES);
}

# Removes the complete events from the text: [id, event, data] each.
sub take_events {
    my ($text) = @_;
    my @events;
    while ($$text =~ s/\A(.*?)\n\n//s) {
        my %event = $1 =~ /^(event|data|id): (.*)$/mg;
        push @events, [ @event{qw(id event data)} ] if defined $event{id};
    }
    return @events;
}

# Reads a stream after an event, at most $limit bytes (0 = to its end), and calls
# the sub when the first bytes were read: (true if it ended cleanly, the complete
# events).
sub read_stream {
    my ($client, $run, $after, $limit, $disturb) = @_;
    my $socket = eval { $client->connection } or return;
    local $SIG{PIPE} = 'IGNORE';
    syswrite $socket, 'GET ' . run_path($run) . "/stream HTTP/1.1\r\nHost: localhost\r\n"
        . "Connection: close\r\nLast-Event-ID: $after\r\n\r\n";
    my ($bytes, $head) = ('', '');
    local $SIG{ALRM} = sub { die "no end of a stream after event $after\n" };
    alarm 120;
    while (sysread $socket, $bytes, $limit || 65_536, length $bytes) {
        last if $limit && length $bytes >= $limit;
        $disturb->() if $disturb;
        undef $disturb;
    }
    alarm 0;
    return if $bytes !~ s{\A(HTTP/1.1 200 .*?\r\n\r\n)}{}s;
    my $ended = $bytes =~ /(?:\A|\r\n)0\r\n\r\n\z/;
    my $text = unchunk($bytes);
    return ($ended, take_events(\$text));
}

# Follows a run through cuts until its stream ends cleanly. $cut is called before
# each connection: it returns $limit and the sub for read_stream().
sub follow {
    my ($client, $run, $cut) = @_;
    my ($after, $cuts, @seen) = (-1, 0);
    while (1) {
        my ($ended, @events) = read_stream($client, $run, $after, $cut->());
        push @seen, @events;
        $after = $events[-1][0] if @events;
        return ($cuts, @seen) if $ended;
        $cuts++;
    }
}

sub whole_stream {
    my ($client, $run) = @_;
    my ($ended, @events) = read_stream($client, $run, -1, 0);
    die "the whole stream was cut\n" if !$ended;
    return @events;
}

sub check_follow {
    my ($client, $run, $seen, $title) = @_;
    my @whole = whole_stream($client, $run);
    is_deeply [ map { $_->[0] } @whole ], [ 0 .. $#whole ],
        "$title: ids count from 0 without a gap";
    is_deeply $seen, \@whole, "$title: each event is received once, in order";
    return;
}

subtest 'cuts: clients that are cut off 500 times see each event once' => sub {
    my $client = AgentTest::Client->new;
    my $total = 0;
    while ($total < 500) {
        my $run = start_run($client, 'sleep 2500');
        my ($cuts, @seen) = follow($client, $run, sub { 250 + int rand 1500 });
        check_follow($client, $run, \@seen, "cuts: a run with $cuts cuts");
        $total += $cuts;
    }
};

subtest 'cuts: a client that graceful restarts cut off sees each event once' => sub {
    my $server = AgentTest::Server->new;
    $server->start;
    my $client = AgentTest::Client->new(url => $server->url);
    my $restarts = 0;
    my $run = start_run($client, 'sleep 60000');
    my ($cuts, @seen) = follow($client, $run, sub {
        return (0, sub { $server->graceful }) if $restarts++ < 5;
        $client->post(run_path($run) . '/cancel');
        return 0;
    });
    cmp_ok $cuts, '>=', 5, 'cuts: each graceful restart cuts off the client';
    check_follow($client, $run, \@seen, 'cuts: a run that graceful restarts cut off');
};

subtest 'cuts: a client that restarts of PostgreSQL cut off sees each event once' => sub {
    my $postgres = AgentTest::Postgres->new;
    local $ENV{PGHOST} = $postgres->host;
    my $server = AgentTest::Server->new(database => $postgres->conninfo);
    $server->start;
    my $client = AgentTest::Client->new(url => $server->url);
    for my $how (qw(fast immediate)) {
        my $run = start_run($client, 'sleep 6000');
        my $connections = 0;
        my ($cuts, @seen) = follow($client, $run, sub {
            if (++$connections == 3 || $connections == 9) {
                $postgres->stop($how);
                $postgres->start;
            }
            return $connections < 20 ? 300 + int rand 4000 : 0;
        });
        check_follow($client, $run, \@seen, "cuts: a run with a stop of PostgreSQL that is $how");
        is $client->get_run($run)->{status}, 'success', "cuts: a run succeeds after stops of PostgreSQL that are $how";
    }
    undef $server;
};

subtest 'cuts: no join returns before the final status can be read' => sub {
    my $client = AgentTest::Client->new;
    my $early = 0;
    for my $n (1 .. 50) {
        my @runs = map { start_run($client, "run $n") } 1 .. 4;
        my @joins = map { [ $_, $client->begin('GET', run_path($_) . '/join') ] } @runs;
        for (@joins) {
            my ($run, $socket) = @{$_};
            $early++ if !$client->finish($socket)->{json}{messages}
                || $client->get_run($run)->{status} ne 'success';
        }
    }
    is $early, 0, 'cuts: none of 200 joins returns before the final status can be read';
};

done_testing;
