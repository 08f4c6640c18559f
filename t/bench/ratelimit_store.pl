#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Measures what one limit for several hosts costs: httpd with a store against the same
# hosts that count by themselves, on two and on four of one machine; calls to the
# store, and its processor time; the time of a decision with a store of 1 ms; and
# Envoy's rate limit service with a Redis under the same load. Prints one Markdown
# table, a row as soon as it is known.
#   t/bench/ratelimit_store.pl                some ten minutes
#   BENCH=quick t/bench/ratelimit_store.pl    four
# As in ratelimit.pl only ratios count: a figure is the median of the ratios of
# alternating rounds, followed by their middle half.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;
use BenchHttp;
use BenchRates qw(median);
use BenchReport ();
use BenchRuns qw(at);
use IO::Socket::INET;
use RateLimitBench qw(begin_bench httpd_version processors);
use RateLimitBenchEnvoy;
use RateLimitBenchLoad qw(run_wrk);
use RateLimitBenchRegion;
use RateLimitBenchWindow qw(most_admitted);
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC sleep);

my %PLANS = (
    full  => { hosts => [ 2, 4 ], ours => 15, envoy => 5, warm_up_sec => 3, requests => 3000, echoes => 2_000_000, has_envoy => 1 },
    quick => { hosts => [ 2, 4 ], ours => 5, envoy => 3, warm_up_sec => 2, requests => 1000, echoes => 1_000_000, has_envoy => 1 },
    smoke => { hosts => [2], ours => 1, envoy => 1, warm_up_sec => 1, requests => 50, echoes => 1000 },
);
my $ROUND_SEC = 1;
my $CONNECTIONS = 32;
my $IDLE_SEC = 4;
my $DELAY_MS = 1;
# Without an idle processor a request waits for one longer than the default, 5 ms.
my $TIMEOUT = '50ms';
# In one write; its replies fit into a socket.
my $ECHOES = 1000;

# The deciding rules are default-api, with an override that is never reached, repos-api and
# default-api.
my @CASES = (
    { name => 'one key', path => '/one', keys => 1, key => '0000000000', aim => 0.95, descriptor => 'one' },
    { name => '100,000 keys', path => '/repos', keys => 100_000, aim => 0.70, descriptor => 'repos' },
    { name => 'each request a new key', path => '/new', keys => 0, aim => 0.40, descriptor => 'new' },
);
my $CALLS_AIM = 0.02;

my ($plan, $run) = begin_bench(%PLANS);
my @notes;
print about(), "\n\n", BenchReport::table([ qw(figure aim measured) ]);
for my $hosts (@{ $plan->{hosts} }) {
    measure_hosts($hosts);
}
measure_delay();
measure_window();
print "\n", map { "$_\n" } @notes;

sub print_row { print '| ', join(' | ', @_), " |\n"; return }

sub progress { print {*STDERR} "measuring @_ ...\n"; return }

sub measure_hosts {
    my ($hosts) = @_;
    progress("$hosts hosts");
    my %region = map { $_ => RateLimitBenchRegion->new($_, $hosts, timeout => $TIMEOUT) } qw(local store);
    print_idle($hosts, $region{store});
    print_case($hosts, $_, \%region) for @CASES;
    print_echo($region{store}) if $hosts == $plan->{hosts}[-1];
    $_->stop for values %region;
    print_envoy($hosts) if $plan->{has_envoy};
    return;
}

# --- With and without the store -----------------------------------------------------

# An exchange of each partition several times a second: beside the rounds of the local
# table too.
sub print_idle {
    my ($hosts, $region) = @_;
    my $round = count_round($region, sub { sleep $IDLE_SEC; return {} });
    print_row("$hosts hosts with a store, without requests", '',
        sprintf '%.0f calls a second; processor time of all hosts %.1f ms, of the store %.1f ms a second',
        $round->{calls} / $IDLE_SEC, 1000 * $round->{cpu} / $IDLE_SEC, 1000 * $round->{store_cpu} / $IDLE_SEC);
    $region->{idle_calls} = $round->{calls} / $IDLE_SEC;
    return;
}

# Runs the sub, and adds the calls to the store and the seconds of processor time.
sub count_round {
    my ($region, $run) = @_;
    my $read = sub { return ($region->cpu, $region->store_cpu, $region->{redis} ? $region->calls : 0) };
    my @before = $read->();
    my $round = $run->();
    my @after = $read->();
    @{$round}{qw(cpu store_cpu calls)} = map { $after[$_] - $before[$_] } 0 .. $#after;
    return $round;
}

sub load_region {
    my ($region, $case, $sec) = @_;
    my $round = count_round($region, sub { run_wrk(ports => $region->ports, sec => $sec, connections => $CONNECTIONS, case => $case) });
    $round->{admitted} = $round->{count} - $round->{failed};
    $round->{rate} *= $round->{admitted} / $round->{count};
    die "$case->{name}: no request was admitted:\n$round->{output}" if $round->{admitted} <= 0 || $round->{errors} > 0.01 * $round->{count};
    return $round;
}

sub print_case {
    my ($hosts, $case, $region) = @_;
    progress("$hosts hosts, $case->{name}");
    my %case = %{$case};
    delete $case{descriptor};
    my @sides = qw(local store);
    load_region($region->{$_}, \%case, $plan->{warm_up_sec}) for @sides;
    my %rounds;
    for (1 .. $plan->{ours}) {
        push @{ $rounds{$_} }, load_region($region->{$_}, \%case, $ROUND_SEC) for @sides;
        @sides = reverse @sides;
    }
    my ($with, $without) = @rounds{qw(store local)};
    my @ratios = sort { $a <=> $b } map { $with->[$_]{rate} / $without->[$_]{rate} } 0 .. $#{$with};
    print_row("$hosts hosts, $case->{name}: with the store / without", sprintf('>= %.2f', $case->{aim}),
        sprintf('**%.2f** (%.2f to %.2f); %s', median(@ratios), @ratios[ @ratios / 4, 3 * @ratios / 4 ],
            join ' against ', map { describe($_) } $with, $without));
    my $calls = median(map { $_->{calls} / $_->{admitted} } @{$with});
    my $own = median(map { ($_->{calls} - $region->{store}{idle_calls} * $ROUND_SEC) / $_->{admitted} } @{$with});
    print_row("$hosts hosts, $case->{name}: calls to the store for each admitted request", $case->{keys} == 1 ? "<= $CALLS_AIM" : '',
        sprintf '**%.4f**, without those of a region without requests %.4f', $calls, $own < 0 ? 0 : $own);
    return;
}

sub describe {
    my ($rounds) = @_;
    my $each = sub { my ($field) = @_; return 1e6 * median(map { $_->{$field} / $_->{count} } @{$rounds}) };
    my $refused = median(map { 100 * $_->{failed} / $_->{count} } @{$rounds});
    return BenchReport::thousands(median(map { $_->{rate} } @{$rounds})) . '/s (' . sprintf('%.1f us', $each->('cpu'))
        . ($each->('store_cpu') ? sprintf(', the store %.1f us', $each->('store_cpu')) : '')
        . ($refused >= 0.005 ? sprintf(', %.2f %% refused', $refused) : '') . ')';
}

# --- The numbering of calls -----------------------------------------------------------

# Each call is sent with an ECHO of its number: a third of the words, and one reply more.
sub print_echo {
    my ($region) = @_;
    progress('ECHO');
    my $case = { %{ $CASES[2] }, descriptor => undef };
    my $round = load_region($region, $case, 2 * $ROUND_SEC);
    my $redis = $region->{redis};
    my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$redis->{port}") // die "no connection: $!\n";
    my $text = join '', map { "*2\r\n\$4\r\nECHO\r\n\$6\r\n" . (100_000 + $_) . "\r\n" } 1 .. $ECHOES;
    my $answer_bytes = $ECHOES * length "\$6\r\n100000\r\n";
    my $before = $region->store_cpu;
    for (1 .. $plan->{echoes} / $ECHOES) {
        syswrite $socket, $text;
        my $left = $answer_bytes;
        while ($left > 0) {
            $left -= sysread($socket, my $bytes, $left) || die "the store has closed the connection\n";
        }
    }
    my $each = ($region->store_cpu - $before) / $plan->{echoes};
    my $call = $round->{store_cpu} / $round->{calls};
    print_row('the number of a call (ECHO): processor time of the store', '', sprintf '%.2f us of %.1f us for a call', 1e6 * $each, 1e6 * $call);
    return;
}

# --- A slow store ---------------------------------------------------------------------

# The answer of httpd as a client sees it: one after the other, from each host in turn.
sub measure_delay {
    progress("a store of $DELAY_MS ms");
    my $hosts = 2;
    my %region = (local => RateLimitBenchRegion->new('local', $hosts), store => RateLimitBenchRegion->new('store', $hosts, delay_ms => $DELAY_MS));
    for my $case (@CASES[ 0, 2 ]) {
        my %times;
        for my $side (qw(local store local store)) {
            push @{ $times{$side} }, ask_in_turn($region{$side}, $case);
        }
        my %late = map { $_ => scalar(grep { $_->{status} == 429 } @{ $times{$_} }) } keys %times;
        my %ms = map { $_ => [ sort { $a <=> $b } map { $_->{ms} } @{ $times{$_} } ] } keys %times;
        print_row("a store of $DELAY_MS ms, $case->{name}: a response, p50 / p99 of " . @{ $ms{store} }, '',
            sprintf('**%.2f / %.2f ms**; without the store %.2f / %.2f ms; %d of %d came too late for RateLimitStoreTimeout (5 ms)',
                (map { at($_, @{ $ms{store} }) } 0.50, 0.99), (map { at($_, @{ $ms{local} }) } 0.50, 0.99), $late{store}, scalar @{ $ms{store} }));
    }
    $_->stop for values %region;
    return;
}

my $next_new = 0;

sub ask_in_turn {
    my ($region, $case) = @_;
    my @clients = map { BenchHttp->new($_) } @{ $region->ports };
    my @times;
    for my $i (1 .. $plan->{requests} / 2) {
        my $key = $case->{key} // 'slow' . $next_new++;
        my $address = join '.', 10, 1, $i >> 8, $i & 255;
        my $text = "GET $case->{path} HTTP/1.1\r\nHost: localhost\r\nx-api-key: lsv2_pt_bench_$key\r\nx-client-ip: $address\r\n\r\n";
        my $sent = clock_gettime(CLOCK_MONOTONIC);
        my $status = $clients[0]->call($text)->{status};
        push @times, { ms => 1000 * (clock_gettime(CLOCK_MONOTONIC) - $sent), status => $status };
        push @clients, shift @clients;
    }
    return @times;
}

# --- Envoy ------------------------------------------------------------------------------

sub print_envoy {
    my ($hosts) = @_;
    progress("Envoy's service, $hosts of them");
    my $region = eval { RateLimitBenchRegion->new('envoy', $hosts) };
    if (!$region) {
        my ($why) = $@ =~ /(\S[^\n]*)/;
        push @notes, "Without Envoy's service: $why";
        $plan->{has_envoy} = 0;
        return;
    }
    for my $case (@CASES) {
        my %case = (%{$case}, path => '/json');
        load_region($region, \%case, $plan->{warm_up_sec});
        my @rounds = map { load_region($region, \%case, $ROUND_SEC) } 1 .. $plan->{envoy};
        print_row("$hosts of Envoy's service, $case->{name}", '', describe(\@rounds) . sprintf '; %.2f calls to Redis for each request',
            median(map { $_->{calls} / $_->{count} } @rounds));
    }
    $region->stop;
    return;
}

# --- Exactness ---------------------------------------------------------------------------

sub measure_window {
    progress('the most admitted in 10 s');
    my $hosts = $plan->{hosts}[-1];
    my %asked = ("this module, $hosts hosts with a store, 10/10" => RateLimitBenchRegion->new('store', $hosts));
    if ($plan->{has_envoy}) {
        $asked{"$hosts of Envoy's service, $_"} = RateLimitBenchRegion->new('envoy', $hosts, unit => (split ' ', $_)[-1])
            for '1 a second', '10 a minute';
    }
    my $most = most_admitted(\%asked);
    print_row("most admitted in any 10 s: $_", /this module/ ? '<= 10' : '',
        "**$most->{$_}{border}** bursts at a window's border, **$most->{$_}{trickle}** burst and trickle")
        for reverse sort keys %asked;
    $_->stop for values %asked;
    return;
}

sub about {
    my ($redis) = qx(redis-server --version) =~ /v=(\S+)/;
    return processors() . ' cores, half of them for the servers, half for wrk and the store; httpd ' . httpd_version()
        . " (event), Redis $redis, Envoy's service "
        . RateLimitBenchEnvoy->version . "; $plan->{ours} alternating rounds of $ROUND_SEC s, $CONNECTIONS connections; "
        . "$run.";
}
