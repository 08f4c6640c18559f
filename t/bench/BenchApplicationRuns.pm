# SPDX-License-Identifier: Apache-2.0
# Runs of graphs of one node, in each language, beside the JavaScript server and the bare
# libraries.
package BenchApplicationRuns;
use strict;
use warnings;
use AgentTest::Cost qw(cpu_sec);
use BenchApplicationBare;
use BenchApplicationPipes qw(measure_alone);
use BenchProcess qw(cpu_ms);
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

# {runner, bare}: milliseconds of processor time of a run in the server, and of one of the
# bare library. They take turns, so that both find the caches as httpd, PostgreSQL and the
# client leave them, and the same other load. Before, the bare library gets warm too.
sub measure_in_turns {
    my ($application, $side, $count) = @_;
    my $client = BenchHttp->new($side->{port});
    my $bare = BenchApplicationBare->new($application);
    $bare->execute for 1 .. $count;
    my %pids = (runner => [ runner_pids($side->{name}) ], bare => [ $bare->pid ]);
    my %begin = map { $_ => cpu_ms(@{ $pids{$_} }) } keys %pids;
    for (1 .. $count) {
        create_and_join($client, new_thread($client), $side->{graph});
        $bare->execute;
    }
    my %times = map { $_ => (cpu_ms(@{ $pids{$_} }) - $begin{$_}) / $count } keys %pids;
    $bare->stop;
    return \%times;
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

# The rows of times of the languages: {runner, bare} each; undef where they do not apply.
sub rows_of_cost {
    my ($title, @times) = @_;
    return join '',
        row("... $title", '%.2f ms', map { $_ && $_->{runner} } @times),
        row('... of the bare library then', '%.2f ms', map { $_ && $_->{bare} } @times),
        row('... ratio of the two (aim 1.7)', '%.2f', map { $_ && $_->{runner} / $_->{bare} } @times);
}

# Adds to the figures of a language.
sub measure_without_server {
    my ($figure, $application, $language, $plan) = @_;
    my $alone = measure_alone($application, $language, $plan->{alone_rounds}, $plan->{runs});
    $figure->{alone} = $alone;
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
        # The round with the median ratio.
        $figure->{turns} = (sort { $a->{runner} / $a->{bare} <=> $b->{runner} / $b->{bare} }
            map { measure_in_turns($applications->{ $side->{name} }, $side, $plan->{runs}) } 1 .. $plan->{rounds})[ $plan->{rounds} / 2 ];
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
        rows_of_cost('in turns with the bare library', map { $_->{turns} } @figures),
        rows_of_cost('alone on its pipes', map { $_->{alone} } @figures),
        row('memory of the runner', '%.0f MB', map { $_->{memory} } @figures),
        row('start of the runner until its graphs are imported', '%.0f ms', map { $_->{start} } @figures);
}

1;
