# SPDX-License-Identifier: Apache-2.0
# Runs of graphs of one node, in each language, beside the JavaScript server and the bare
# libraries.
package BenchApplicationRuns;
use strict;
use warnings;
use AgentTest::Cost qw(cpu_sec);
use BenchApplicationPipes qw(measure_alone);
use BenchApplications qw(serve start_ms runner_pids new_thread run_body create_and_join @LANGUAGES $ANSWER);
use BenchHttp qw(drive request);
use BenchPeer;
use BenchProcess qw(memory_kb);
use BenchRuns qw(at make_threads timed_ms);
use Exporter 'import';
use Time::HiRes qw(time);

our @EXPORT_OK = qw(measure_runs);

my $CONNECTIONS = 16;

# Milliseconds until the first event of a streamed run, or the first one of this name.
sub first_event {
    my ($client, $body, $name) = @_;
    my ($thread, $begin, $first) = (new_thread($client), time);
    my $streamed = $client->call(request('POST', "/threads/$thread/runs/stream", $body), sub { $first = time }, $name);
    $first or die "a stream failed: $streamed->{bytes}\n";
    return 1000 * ($first - $begin);
}

# The same until the first part of a message that a chat model sends.
sub first_token {
    my ($client, $graph) = @_;
    return first_event($client, run_body($graph) =~ s/\}\z/,"stream_mode":["messages-tuple"]}/r, 'messages');
}

# Adds to the times of a side: {join, first, token, cpu}.
sub measure_side {
    my ($times, $side, $count) = @_;
    my $client = BenchHttp->new($side->{port});
    my @runners = $side->{name} eq 'peer' ? () : runner_pids($side->{name});
    my $cpu = cpu_sec(@runners);
    for (1 .. $count) {
        my $thread = new_thread($client);
        push @{ $times->{join} }, timed_ms(sub { create_and_join($client, $thread, $side->{graph}) });
    }
    push @{ $times->{cpu} }, 1000 * (cpu_sec(@runners) - $cpu) / $count if @runners;
    for (1 .. $count / 5) {
        push @{ $times->{first} }, first_event($client, run_body($side->{graph}));
        push @{ $times->{token} }, first_token($client, $side->{chat});
    }
    return;
}

# Runs per second of connections that each wait for their run.
sub rate {
    my ($server, $side, $seconds) = @_;
    my @threads = make_threads($server, 500 * $seconds);
    my ($begin, $count, $end) = (time, 0, time + $seconds);
    drive([ map { BenchHttp->new($side->{port}) } 1 .. $CONNECTIONS ], sub {
        my (undef, $answer) = @_;
        $count++ if $answer;
        return undef if time > $end || !@threads;
        return request('POST', '/threads/' . shift(@threads) . '/runs/wait', run_body($side->{graph}));
    });
    return $count / (time - $begin);
}

# A row's figures, the languages' first; `-` where one does not apply.
sub row {
    my ($title, $format, @values) = @_;
    return "| $title | " . join(' | ', map { defined $_ ? sprintf $format, $_ : '-' } @values) . " |\n";
}

# Adds to the figures of a language.
sub measure_without_server {
    my ($figure, $application, $language, $plan) = @_;
    my $alone = measure_alone($application, $language, $plan->{alone_rounds}, $plan->{runs});
    $figure->{alone} = $alone->{runner};
    $figure->{ratio} = $alone->{runner} / $alone->{bare};
    $figure->{ratio_in_server} = $figure->{cpu} / $alone->{bare};
    $figure->{start} = start_ms($application);
    return;
}

# The table.
sub measure_runs {
    my ($applications, $plan) = @_;
    my $server = serve($applications);
    my $peer = eval { BenchPeer->new($ANSWER) };
    warn "no peer: $@" if !$peer;
    my @sides = ((map { { name => $_, graph => $_, chat => "$_-chat", port => $server->port } } @LANGUAGES),
        $peer ? { name => 'peer', graph => 'agent', chat => 'chat', port => $peer->port } : ());
    measure_side({}, $_, $plan->{warm_up}) for @sides;
    my %times;
    for my $round (1 .. $plan->{rounds}) {
        measure_side($times{ $_->{name} } //= {}, $_, $_->{name} eq 'peer' ? $plan->{peer_runs} : $plan->{runs})
            for $round % 2 ? @sides : reverse @sides;
    }
    my @figures = map {
        my $of = $times{ $_->{name} };
        my %sorted = map { $_ => [ sort { $a <=> $b } @{ $of->{$_} } ] } keys %{$of};
        { p50 => at(0.5, @{ $sorted{join} }), p99 => at(0.99, @{ $sorted{join} }), first => at(0.5, @{ $sorted{first} }), token => at(0.5, @{ $sorted{token} }),
            cpu => $sorted{cpu} ? at(0.5, @{ $sorted{cpu} }) : undef };
    } @sides;
    for my $number (0 .. $#LANGUAGES) {
        my ($figure, $side) = ($figures[$number], $sides[$number]);
        $figure->{rate} = rate($server, $side, $plan->{rate_sec});
        $figure->{memory} = memory_kb(runner_pids($side->{name}))->{pss} / 1024;
    }
    my @heads = ('', 'Python', 'JavaScript', $peer ? '`@langchain/langgraph-api` ' . $peer->version . ', in memory' : ());
    $server->stop;
    undef $peer;
    measure_without_server($figures[$_], $applications->{ $LANGUAGES[$_] }, $LANGUAGES[$_], $plan) for 0 .. $#LANGUAGES;
    return join '', '| ', join(' | ', @heads), " |\n|", '---|' x @heads, "\n",
        row('create -> join p50 (aim 8 ms)', '%.1f ms', map { $_->{p50} } @figures),
        row('p99 (aim 20 ms)', '%.1f ms', map { $_->{p99} } @figures),
        row('first event of a stream, p50', '%.1f ms', map { $_->{first} } @figures),
        row('first part of a chat model, p50', '%.1f ms', map { $_->{token} } @figures),
        row("runs a second, $CONNECTIONS connections", '%.0f', map { $_->{rate} } @figures),
        row('processor time of the runner, a run', '%.2f ms', map { $_->{cpu} } @figures),
        row('the same alone on its pipes', '%.2f ms', map { $_->{alone} } @figures),
        row('... to that of the bare library, alone too (aim 1.7)', '%.2f', map { $_->{ratio} } @figures),
        row('... in the server to that of the bare library alone', '%.2f', map { $_->{ratio_in_server} } @figures),
        row('memory of the runner', '%.0f MB', map { $_->{memory} } @figures),
        row('start of the runner until its graphs are imported', '%.0f ms', map { $_->{start} } @figures);
}

1;
