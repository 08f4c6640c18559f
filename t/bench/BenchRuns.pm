# SPDX-License-Identifier: Apache-2.0
# Runs of the demo model through HTTP: latency from create to join, and runs
# finished per second under constant load.
package BenchRuns;
use strict;
use warnings;
use AgentTest::Wait;
use BenchHttp qw(request drive);
use Exporter 'import';
use Time::HiRes qw(time);

our @EXPORT_OK = qw(measure_latency measure_throughput at call_200
    create_and_join make_threads one_step_run timed_ms);

my $DEPLOYMENT = '00000000-0000-0000-0000-000000000001';
# One step of the graph, without tools or delays.
my $RUN = '{"assistant_id":"agent","input":{"messages":'
    . '[{"role":"user","content":"hello"}]}}';
my $CONNECTIONS = 16;
# Unfinished runs at which the clients pause: otherwise the queue would grow, and
# the figure would depend on the duration.
my $MAX_UNFINISHED = 500;
my $POLL_SEC = 0.1;

# --- Latency ----------------------------------------------------------------------

# Milliseconds: {p50, p99, max} of create -> join, {floor} of GET /ok,
# which includes the client, the network and httpd, but no database.
sub measure_latency {
    my ($server, $plan) = @_;
    my $client = BenchHttp->new($server->port);
    my @threads = make_threads($server, $plan->{latency_runs} + 50);
    create_and_join($client, $_) for splice @threads, 0, 50;
    my @floor = map { timed_ms(sub { call_200($client, request('GET', '/ok')) }) }
        1 .. @threads;
    my @times = map {
        my $thread = $_;
        timed_ms(sub { create_and_join($client, $thread) })
    } @threads;
    my @sorted = sort { $a <=> $b } @times;
    return {
        count => scalar @sorted,
        p50 => at(0.50, @sorted), p99 => at(0.99, @sorted),
        max => $sorted[-1],
        floor => at(0.50, sort { $a <=> $b } @floor),
    };
}

sub at { my ($part, @sorted) = @_; return $sorted[ int $part * $#sorted ] }

sub timed_ms {
    my ($work) = @_;
    my $start = time;
    $work->();
    return 1000 * (time - $start);
}

sub create_and_join {
    my ($client, $thread) = @_;
    my $made = call_200($client, request('POST', "/threads/$thread/runs", $RUN));
    my ($run) = $made->{bytes} =~ /"run_id"\s*:\s*"([0-9a-f-]{36})"/;
    my $joined = call_200($client,
        request('GET', "/threads/$thread/runs/$run/join"));
    die "a run failed: $joined->{bytes}\n"
        if $joined->{bytes} !~ /"type"\s*:\s*"ai"/;
    return $joined;
}

sub one_step_run { return $RUN }

sub call_200 {
    my ($client, $bytes) = @_;
    my $answer = $client->call($bytes);
    die "not 200: $answer->{bytes}\n" if $answer->{status} != 200;
    return $answer;
}

# Created in SQL, since threads are not measured here. Ids begin with the time,
# as the module's do.
sub make_threads {
    my ($server, $count) = @_;
    my $time = sprintf '%012x', 1000 * time;
    my $begin = substr($time, 0, 8) . '-' . substr $time, 8;
    my $ids = $server->sql(<<"SQL");
with made as materialized (
    select ('$begin-7' || lpad(to_hex(n >> 16), 3, '0') || '-8'
            || lpad(to_hex(n & 4095), 3, '0') || '-'
            || lpad(to_hex(n), 12, '0'))::uuid as id
      from generate_series(1, $count) n),
created as materialized (
    select id, (agent.create_thread('$DEPLOYMENT', id, 'raise', '{}')).code
      from made)
select string_agg(id::text, ' ' order by id) from created where code = 'ok'
SQL
    my @ids = split ' ', $ids;
    die 'only ' . @ids . " threads were made\n" if @ids != $count;
    return @ids;
}

# --- Throughput --------------------------------------------------------------------

# {rate, cpu}: runs per second that became final while 16 connections created
# one run after the other, each on another thread.
sub measure_throughput {
    my ($server, $plan) = @_;
    my @threads = make_threads($server, $plan->{throughput_threads});
    my @clients = map { BenchHttp->new($server->port) } 1 .. $CONNECTIONS;
    my $begin_at = time + $plan->{warm_up_sec};
    my $end_at = $begin_at + $plan->{throughput_sec};
    my ($polled_at, $start, $end) = (0);
    drive(\@clients, sub {
        my ($index, $answer) = @_;
        die "not 200: $answer->{bytes}\n" if $answer && $answer->{status} != 200;
        my $now = time;
        if ($now > $polled_at + $POLL_SEC) {
            wait_unfinished($server, $MAX_UNFINISHED);
            $polled_at = time;
        }
        $start //= progress($server) if $now >= $begin_at;
        $end //= progress($server) if $now >= $end_at || !@threads;
        return $end ? undef
            : request('POST', '/threads/' . shift(@threads) . '/runs', $RUN);
    });
    my $runs = $end->{count} - ($start // die "too few threads\n")->{count};
    my $cpu = $server->cpu_usec_each($start->{cpu}, $runs);
    wait_unfinished($server, 0);
    check_success($server);
    return { rate => $runs / ($end->{at} - $start->{at}), cpu => $cpu };
}

sub progress {
    my ($server) = @_;
    my ($count, $at) = split /\|/, $server->sql('select count(*), '
        . 'extract(epoch from clock_timestamp()) from agent.runs '
        . "where status <> 'pending'");
    return { count => $count, at => $at, cpu => $server->cpu };
}

sub wait_unfinished {
    my ($server, $max) = @_;
    wait_for("at most $max unfinished runs", sub {
        $server->sql('select count(*) from agent.run_queue') <= $max
    }, 60);
    return;
}

# Runs that fail do not count as finished.
sub check_success {
    my ($server) = @_;
    my $failed = $server->sql(
        "select count(*) from agent.runs where status <> 'success'");
    die "$failed runs failed\n" if $failed;
    return;
}

1;
