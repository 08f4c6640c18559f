# SPDX-License-Identifier: Apache-2.0
# Latency of a run for its client: the first event of POST .../runs/stream, the
# end of that stream, and create -> join. Alternating rounds measure this server
# and the JavaScript one with the same input and answer, one request after the
# other on one connection. The JavaScript server has fewer runs: it polls.
package BenchFirst;
use strict;
use warnings;
use BenchHttp qw(request);
use BenchPeer;
use BenchRuns qw(call_200 create_and_join one_step_run timed_ms);
use Exporter 'import';
use Time::HiRes qw(time);

our @EXPORT_OK = qw(measure_first);

my $WARM_UP = 5;

# {ours, peer}: milliseconds, sorted: {first, stream, join}; {version} of the
# peer, or {skipped}: the reason for which there is none.
sub measure_first {
    my ($server, $plan) = @_;
    my $peer = eval { BenchPeer->new(read_answer($server->port)) };
    my $why = $@;
    my %port = (ours => $server->port, $peer ? (peer => $peer->port) : ());
    my @sides = sort keys %port;
    measure_round($port{$_}, $WARM_UP) for @sides;
    my %times;
    for my $round (1 .. $plan->{rounds}) {
        for my $side ($round % 2 ? @sides : reverse @sides) {
            my $round_of = measure_round($port{$side}, $plan->{first_runs}{$side});
            push @{ $times{$side}{$_} }, @{ $round_of->{$_} }
                for keys %{$round_of};
        }
    }
    for my $of (values %times) {
        $of->{$_} = [ sort { $a <=> $b } @{ $of->{$_} } ] for keys %{$of};
    }
    return { %times, $peer ? (version => $peer->version)
        : (skipped => one_line($why)) };
}

# The answer of the demo model, for the graph of the peer.
sub read_answer {
    my ($port) = @_;
    my $client = BenchHttp->new($port);
    my $joined = create_and_join($client, make_thread($client));
    my ($answer) = $joined->{bytes}
        =~ /"type"\s*:\s*"ai"[^{}]*"content"\s*:\s*"((?:[^"\\]|\\.)*)"/
        or die "no answer: $joined->{bytes}\n";
    $answer =~ s/\\(.)/$1/g;
    return $answer;
}

# A connection for each round: Node.js closes those that were idle for 5 s.
sub measure_round {
    my ($port, $count) = @_;
    my $client = BenchHttp->new($port);
    my %times;
    for (1 .. $count) {
        my $streamed = stream_run($client, make_thread($client));
        push @{ $times{$_} }, $streamed->{$_} for qw(first stream);
        my $thread = make_thread($client);
        push @{ $times{join} },
            timed_ms(sub { create_and_join($client, $thread) });
    }
    return \%times;
}

sub make_thread {
    my ($client) = @_;
    my $made = call_200($client, request('POST', '/threads', '{}'));
    my ($thread) = $made->{bytes} =~ /"thread_id"\s*:\s*"([0-9a-f-]{36})"/
        or die "no thread: $made->{bytes}\n";
    return $thread;
}

sub stream_run {
    my ($client, $thread) = @_;
    my $begin = time;
    my $first_at;
    my $answer = $client->call(
        request('POST', "/threads/$thread/runs/stream", one_step_run()),
        sub { $first_at = time });
    my $end = time;
    die "not a stream of a run: $answer->{bytes}\n"
        if $answer->{status} != 200 || $answer->{bytes} !~ /"type"\s*:\s*"ai"/;
    return { first => 1000 * ($first_at - $begin),
        stream => 1000 * ($end - $begin) };
}

sub one_line {
    my ($text) = @_;
    $text =~ s/\s+/ /g;
    return substr $text, 0, 200;
}

1;
