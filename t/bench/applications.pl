#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Measures LangGraph applications with a graph of one node, in each language, beside
# the JavaScript server and the bare libraries. Prints one block of Markdown.
#   t/bench/applications.pl [RUNS]     of each round; default 300
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;
use AgentTest::Cost qw(cpu_sec);
use AgentTest::Env qw(build_dir root slurp);
use AgentTest::Wait;
use BenchApplications qw(prepare bare_ms start_ms);
use BenchHttp qw(drive request);
use BenchPeer;
use BenchProcess qw(memory_kb);
use BenchRuns qw(at call_200 make_threads timed_ms);
use BenchServer;
use Time::HiRes qw(time);

my $RUNS = shift // 300;
my $ROUNDS = 3;
my $WARM_UP = 50;
my $CONNECTIONS = 16;
my $ANSWER = 'You said: hello';
my @LANGUAGES = qw(python javascript);

delete @ENV{ grep { /\APG/ } keys %ENV };
$SIG{$_} = sub { exit 1 } for qw(INT TERM HUP);

sub body { return qq({"assistant_id":"$_[0]","input":{"messages":[{"role":"user","content":"hello"}]}}) }

my %application = map { $_ => prepare($_) } @LANGUAGES;
my $server = BenchServer->new(config => BenchServer::default_config()
    . join('', map { "AgentApplication $_ $application{$_}{directory}\n" } @LANGUAGES)
    . "AgentNodeProgram $application{javascript}{program}\n");
my $peer = eval { BenchPeer->new($ANSWER) };
warn "no peer: $@" if !$peer;

my %port = ((map { $_ => $server->port } @LANGUAGES), $peer ? (peer => $peer->port) : ());
my %graph = ((map { $_ => $_ } @LANGUAGES), peer => 'agent');
for my $language (@LANGUAGES) {
    my $client = BenchHttp->new($server->port);
    wait_for("the report of $language", sub {
        call_200($client, request('POST', '/assistants/search', qq({"graph_id":"$language"})))->{bytes} =~ /assistant_id/ });
}

sub new_thread {
    my ($client) = @_;
    return call_200($client, request('POST', '/threads', '{}'))->{bytes} =~ /"thread_id"\s*:\s*"([0-9a-f-]{36})"/
        ? $1 : die "no thread\n";
}

sub create_and_join {
    my ($client, $thread, $body) = @_;
    my ($run) = call_200($client, request('POST', "/threads/$thread/runs", $body))->{bytes} =~ /"run_id"\s*:\s*"([0-9a-f-]{36})"/;
    my $joined = call_200($client, request('GET', "/threads/$thread/runs/$run/join"))->{bytes};
    $joined =~ /\Q$ANSWER\E/ or die "a run failed: $joined\n";
    return;
}

# Milliseconds until the first event of a streamed run.
sub first_event {
    my ($client, $thread, $body) = @_;
    my ($begin, $first) = (time);
    my $streamed = $client->call(request('POST', "/threads/$thread/runs/stream", $body), sub { $first //= time });
    $streamed->{bytes} =~ /\Q$ANSWER\E/ or die "a stream failed: $streamed->{bytes}\n";
    return 1000 * ($first - $begin);
}

# The processes that execute runs of the language.
sub runner_pids {
    my ($language) = @_;
    my $program = build_dir() . '/runners/' . ($language eq 'python' ? 'python' : 'node/main.mjs');
    return grep { slurp("/proc/$_/cmdline") =~ /\0\Q$program\E\0/ } map { m{(\d+)} } glob '/proc/[0-9]*';
}

my %times;
sub measure_latency {
    my ($side, $count) = @_;
    my $client = BenchHttp->new($port{$side});
    my $body = body($graph{$side});
    my @before = $side eq 'peer' ? () : runner_pids($side);
    my $cpu = cpu_sec(@before);
    for (1 .. $count) {
        my $thread = new_thread($client);
        push @{ $times{$side}{join} }, timed_ms(sub { create_and_join($client, $thread, $body) });
    }
    push @{ $times{$side}{cpu} }, 1000 * (cpu_sec(@before) - $cpu) / $count if @before;
    push @{ $times{$side}{first} }, first_event($client, new_thread($client), $body) for 1 .. $count / 5;
    return;
}

# Runs per second of 16 connections, each of which waits for its run.
sub measure_rate {
    my ($side) = @_;
    my @threads = make_threads($server, 20 * $RUNS);
    my ($begin, $count, $end) = (time, 0, time + 10);
    drive([ map { BenchHttp->new($port{$side}) } 1 .. $CONNECTIONS ], sub {
        my (undef, $answer) = @_;
        $count++ if $answer;
        return undef if time > $end || !@threads;
        return request('POST', '/threads/' . shift(@threads) . '/runs/wait', body($graph{$side}));
    });
    return $count / (time - $begin);
}

my @sides = sort keys %port;
measure_latency($_, $WARM_UP) for @sides;
%times = ();
for my $round (1 .. $ROUNDS) {
    measure_latency($_, $_ eq 'peer' ? 10 : $RUNS) for $round % 2 ? @sides : reverse @sides;
}
my %figures;
for my $side (@sides) {
    my %sorted = map { $_ => [ sort { $a <=> $b } @{ $times{$side}{$_} } ] } keys %{ $times{$side} };
    $figures{$side} = { p50 => at(0.5, @{ $sorted{join} }), p99 => at(0.99, @{ $sorted{join} }), first => at(0.5, @{ $sorted{first} }),
        cpu => $sorted{cpu} ? at(0.5, @{ $sorted{cpu} }) : undef };
}
for my $language (@LANGUAGES) {
    my $figure = $figures{$language};
    $figure->{rate} = measure_rate($language);
    $figure->{bare} = bare_ms($application{$language}, 5 * $RUNS);
    $figure->{memory} = memory_kb(runner_pids($language))->{pss} / 1024;
    $figure->{start} = start_ms($application{$language});
}
$server->stop;

# A column for each side; `-` where a figure does not apply.
sub row {
    my ($title, $format, $of) = @_;
    return "| $title | " . join(' | ', map { my $value = $of->($figures{$_}); defined $value ? sprintf $format, $value : '-' }
        @LANGUAGES, $peer ? 'peer' : ()) . " |\n";
}

my @heads = ('', 'Python', 'JavaScript', $peer ? '`@langchain/langgraph-api` ' . $peer->version . ', in memory' : ());
print '| ', join(' | ', @heads), " |\n|", '---|' x @heads, "\n",
    row('create -> join p50 (aim 8 ms)', '%.1f ms', sub { $_[0]{p50} }),
    row('p99 (aim 20 ms)', '%.1f ms', sub { $_[0]{p99} }),
    row('first event of a stream, p50', '%.1f ms', sub { $_[0]{first} }),
    row("runs a second, $CONNECTIONS connections", '%.0f', sub { $_[0]{rate} }),
    row('processor time of the runner, a run', '%.2f ms', sub { $_[0]{cpu} }),
    row('the same to that of the bare library (aim 1.7)', '%.2f', sub { $_[0]{cpu} && $_[0]{bare} ? $_[0]{cpu} / $_[0]{bare} : undef }),
    row('memory of the runner', '%.0f MB', sub { $_[0]{memory} }),
    row('start of the runner until its graphs are imported', '%.0f ms', sub { $_[0]{start} });
