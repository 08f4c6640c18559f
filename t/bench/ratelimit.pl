#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Measures what the limiter costs: httpd bare against httpd with the whole
# table, beside nginx with and without limit_req and mod_qos, and how exactly
# each of them limits. Prints one Markdown table, a row as soon as it is known.
#   t/bench/ratelimit.pl                about ten minutes
#   BENCH=quick t/bench/ratelimit.pl    three; to compare with an earlier run
# Only ratios count: rounds of all servers alternate, and a figure is the median
# of the rounds' ratios, followed by their middle half. Rounds are short and many,
# because the speed of the machine varies.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;
use AgentTest::Env qw(build_dir);
use BenchRates qw(median);
use BenchReport ();
use RateLimitBench qw(begin_bench httpd_version processors);
use RateLimitBenchLoad qw(run_wrk run_tools);
use RateLimitBenchServer;
use RateLimitBenchWindow qw(most_admitted);

my %PLANS = (
    full  => { ours => 31, others => 5, round_sec => 1, warm_up_sec => 4 },
    quick => { ours => 7,  others => 3, round_sec => 1, warm_up_sec => 2 },
);
my $CONNECTIONS = 32;
# Rates with failures are discarded; requests in flight at the end may be missing.
my $SLACK = 0.01;

# The cases. The deciding rule is default-api, or repos-api for 100,000 keys: its
# interval is so long that all of them stay live.
my @CASES = (
    { name => 'one key', path => '/one', keys => 1, aim => 0.97 },
    { name => '100,000 keys', path => '/repos', keys => 100_000, aim => 0.95 },
    { name => 'each request a new key', path => '/new', keys => 0, aim => 0.90 },
);
# With and without: the first is divided by the second.
my %PAIRS = (
    ours   => [ [ 'limited', 'bare', 'httpd, whole table / bare' ] ],
    others => [
        [ 'nginx_limited', 'nginx', 'nginx, limit_req / bare' ],
        [ 'qos', 'bare', 'httpd, mod_qos / bare' ],
    ],
);
# All refused: the paths with the server's own refusal and with the limiter's.
my %REFUSED = (
    ours   => [ 'bare', 'limited', '/window', 'httpd, all refused / `Redirect 429`' ],
    others => [ 'nginx', 'nginx_limited', '/refused',
        'nginx, all refused by limit_req / `return 429`' ],
);
my %WINDOW = (limited => 'mod_ratelimit_regional, 10/10',
    nginx_limited => 'nginx limit_req, rate=1r/s burst=9 nodelay',
    qos => 'mod_qos, QS_ClientEventLimitCount 10 10');

my ($plan, $run) = begin_bench(%PLANS);
my (%servers, @notes);
print about(), "\n\n";
print BenchReport::table([ qw(figure aim measured) ]);
# First, before a server runs.
print_rows(decision_rows());
start_servers();
for my $whose (qw(ours others)) {
    print_rows(case_rows($_, $whose)) for @CASES;
    print_rows(refused_rows($whose, @{ $REFUSED{$whose} }));
}
print_rows(window_rows());
print "\n", map { "$_\n" } @notes;

END {
    my $status = $?;
    $_->stop for values %servers;
    $? = $status;
}

sub print_rows {
    print map { '| ' . join(' | ', @{$_}) . " |\n" } @_;
    return;
}

sub start_servers {
    $servers{$_} = RateLimitBenchServer->new($_) for qw(bare limited);
    for my $kind (qw(nginx nginx_limited qos)) {
        next if eval { $servers{$kind} = RateLimitBenchServer->new($kind); 1 };
        my ($why) = $@ =~ /(\S[^\n]*)/;
        push @notes, "Without $kind: $why";
    }
    return;
}

# --- With and without -------------------------------------------------------------

sub case_rows {
    my ($case, $whose) = @_;
    my @pairs = grep { $servers{ $_->[0] } } @{ $PAIRS{$whose} };
    my %kinds = map { $_ => 1 } map { @{$_}[ 0, 1 ] } @pairs;
    my $result = measure($whose, $case, map { [ $_, $case, 200 ] } sort keys %kinds);
    return map { ratio_row($case, $result, @{$_}) }
        grep { $result->{ $_->[0] } && $result->{ $_->[1] } } @pairs;
}

sub ratio_row {
    my ($case, $result, $with, $without, $name) = @_;
    my $aim = $with eq 'limited' ? sprintf '>= %.2f', $case->{aim} : '';
    return [ "$name: $case->{name}", $aim,
        ratio_text($result, $with, $without) ];
}

# A refusal by the limiter, against the cheapest refusal of httpd and nginx.
sub refused_rows {
    my ($whose, $without, $with, $path, $name) = @_;
    my $redirect = { name => 'redirect', path => '/redirect', keys => 1 };
    my $refused = { name => 'refused', path => $path, keys => 1, key => 'refused' };
    return if !$servers{$with};
    my $result = measure($whose, { name => 'all refused' },
        [ $without, $redirect, 429 ], [ $with, $refused, 429 ]);
    return if !$result->{$with} || !$result->{$without};
    return [ $name, $whose eq 'ours' ? '>= 1.00' : '',
        ratio_text($result, $with, $without) ];
}

# Rounds of all sides, in alternating order. A side is the kind of a server, the
# path and the expected status.
# {kind => [{rate, cpu}, ...]}
sub measure {
    my ($whose, $case, @sides) = @_;
    print {*STDERR} "measuring $case->{name} ...\n";
    @sides = grep { warm_up(@{$_}) } @sides;
    my %result;
    for (1 .. $plan->{$whose}) {
        push @{ $result{ $_->[0] } }, run_round($plan->{round_sec}, @{$_})
            for @sides;
        @sides = reverse @sides;
    }
    return \%result;
}

# Whether a server responds as expected; other limiters are skipped otherwise.
sub warm_up {
    my ($kind, $case, $status) = @_;
    return 1 if eval { run_round($plan->{warm_up_sec}, $kind, $case, $status); 1 };
    die $@ if $kind eq 'bare' || $kind eq 'limited';
    my ($why) = $@ =~ /([^\n]+)/;
    push @notes, "Without $why.";
    return 0;
}

sub ratio_text {
    my ($result, $with, $without) = @_;
    my ($x, $y) = @{$result}{ $with, $without };
    my @ratios = sort { $a <=> $b }
        map { $x->[$_]{rate} / $y->[$_]{rate} } 0 .. $#{$x};
    return sprintf '**%.2f** (%.2f to %.2f); %s/s against %s/s, '
        . 'processor time %.1f against %.1f us', median(@ratios),
        @ratios[ @ratios / 4, 3 * @ratios / 4 ],
        (map { my $side = $_; BenchReport::thousands(
            median(map { $_->{rate} } @{$side})) } $x, $y),
        map { my $side = $_; median(map { $_->{cpu} } @{$side}) } $x, $y;
}

# --- Load -------------------------------------------------------------------------

# Requests a second, and the server's processor time for each in microseconds.
sub run_round {
    my ($sec, $kind, $case, $status) = @_;
    my $server = $servers{$kind};
    my $before = $server->cpu;
    my $round = run_wrk(ports => $server->ports, sec => $sec, connections => $CONNECTIONS, case => $case);
    my $cpu = $server->cpu - $before;
    check_status($kind, $case, $round, $status);
    return { rate => $round->{rate}, cpu => 1e6 * $cpu / $round->{count} };
}

sub check_status {
    my ($kind, $case, $round, $status) = @_;
    my $wrong = $round->{errors} + ($status == 200 ? $round->{failed} : $round->{count} - $round->{failed});
    die "$kind, $case->{path}: $wrong of $round->{count} were not $status:\n$round->{output}"
        if !$round->{count} || $wrong > $SLACK * $round->{count};
    return;
}

# --- One decision, and exactness ---------------------------------------------------

sub decision_rows {
    print {*STDERR} "measuring one decision ...\n";
    my ($output) = run_tools([ build_dir() . '/bench/ratelimit_decision' ]);
    my %aim = ('admit, one key' => '< 100 ns', 'refuse, one key' => '< 100 ns');
    my @found = $output =~ /^((?:admit|refuse), .*?)\s{2,}([\d.]+)\s+([\d.]+)$/mg;
    my @decisions;
    while (my ($name, $best, $median) = splice @found, 0, 3) {
        push @decisions, [ "one decision: $name", $aim{$name} // '',
            "**$median ns**, best $best ns" ];
    }
    return @decisions;
}

sub window_rows {
    print {*STDERR} "measuring the most admitted in 10 s ...\n";
    my %asked = map { $_ => $servers{$_} } grep { $servers{$_} } keys %WINDOW;
    my $most = most_admitted(\%asked);
    return map {
        [ "most admitted in any 10 s: $WINDOW{$_}",
            $_ eq 'limited' ? '<= 10' : '',
            "**$most->{$_}{border}** bursts at a window's border, "
                . "**$most->{$_}{trickle}** burst and trickle" ]
    } grep { $most->{$_} } qw(limited nginx_limited qos);
}

sub about {
    my ($nginx) = qx(nginx -v 2>&1) =~ m{nginx/(\S+)};
    return processors() . ' cores, half of them for the servers, half for wrk; httpd ' . httpd_version() . ' (event), '
        . (defined $nginx ? "nginx $nginx, " : '')
        . "$plan->{ours} alternating rounds of $plan->{round_sec} s "
        . "($plan->{others} for others), "
        . "$CONNECTIONS connections; $run.";
}
