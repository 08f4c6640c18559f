# SPDX-License-Identifier: Apache-2.0
# A runner that is killed: the time until its runs begin their next attempt, as
# the clients that stream them see it. A run that was alone loses an attempt; of
# several each is quarantined and continues on a quarantine runner.
package BenchRestart;
use strict;
use warnings;
use AgentTest::Wait;
use BenchHttp qw(request wait_readable);
use BenchRuns qw(make_threads);
use Exporter 'import';
use Time::HiRes qw(time usleep);

our @EXPORT_OK = qw(measure_restart start_run read_attempt cancel_all);

my $TOGETHER = 10;
# A runner that ends within a second of its start has failed to start: the next
# one is delayed.
my $LIFE_USEC = 1_100_000;
my $RUN = '{"assistant_id":"agent","input":{"messages":'
    . '[{"role":"user","content":"sleep 600000"}]},"stream_mode":["messages"]}';

# {alone, together}: sorted milliseconds from the kill to the event `metadata` of
# the next attempt having been read, for each run.
sub measure_restart {
    my ($server, $plan) = @_;
    my %times;
    for my $kill (1 .. $plan->{kills}) {
        push @{ $times{alone} }, kill_runner($server, 1);
        push @{ $times{together} }, kill_runner($server, $TOGETHER);
    }
    return { map { $_ => [ sort { $a <=> $b } @{ $times{$_} } ] } keys %times };
}

sub kill_runner {
    my ($server, $count) = @_;
    my $runner = wait_for('one runner', sub {
        my @runners = @{ $server->processes->{runner} };
        return @runners == 1 && $runners[0];
    });
    usleep($LIFE_USEC);
    my @threads = make_threads($server, $count);
    my @clients = map { BenchHttp->new($server->port) } @threads;
    start_run($clients[$_], $threads[$_]) for 0 .. $#threads;
    read_attempt(1, @clients);
    kill KILL => $runner or die "kill $runner: $!\n";
    my $killed_at = time;
    my @read_at = read_attempt(2, @clients);
    cancel_all($server);
    return map { 1000 * ($_ - $killed_at) } @read_at;
}

# Sends the request for a run that does not end, and for its stream.
sub start_run {
    my ($client, $thread) = @_;
    $client->send(request('POST', "/threads/$thread/runs/stream", $RUN));
    return;
}

# When each client had read the event `metadata` of that attempt.
sub read_attempt {
    my ($attempt, @clients) = @_;
    my %client_of = map { fileno $_->{socket} => $_ } @clients;
    my @read_at;
    while (%client_of) {
        for my $fd (wait_readable(keys %client_of)) {
            my $client = $client_of{$fd};
            die "a stream ended: $client->{bytes}\n" if $client->receive;
            next if $attempt > (() = $client->{bytes} =~ /^event: metadata\r?$/mg);
            push @read_at, time;
            delete $client_of{$fd};
        }
    }
    return @read_at;
}

sub cancel_all {
    my ($server) = @_;
    my $answer = BenchHttp->new($server->port)->call(
        request('POST', '/runs/cancel', '{"status":"all"}'));
    die "not 204: $answer->{bytes}\n" if $answer->{status} != 204;
    wait_for('all runs to end', sub {
        $server->sql('select count(*) from agent.run_queue') == 0
    });
    return;
}

1;
