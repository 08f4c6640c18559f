#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Measures an agent server against its own database and prints one block of
# Markdown.
#   t/bench/bench.pl                    everything, some 25 minutes
#   t/bench/bench.pl rates latency      some of the parts that @PARTS names
# BENCH=quick does less of everything (three minutes); its figures are to be
# compared with an earlier run, and not for the README. BENCH=smoke shows only
# that each part works.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;
use AgentTest::Env qw(root);
use BenchFirst qw(measure_first);
use BenchHostile qw(measure_hostile);
use BenchHosts qw(measure_hosts);
use BenchKeys qw(measure_keys);
use BenchMemory qw(measure_memory);
use BenchPools qw(measure_pools);
use BenchRates qw(measure_rates);
use BenchReport qw(print_report);
use BenchRestart qw(measure_restart);
use BenchRuns qw(measure_latency measure_throughput);
use BenchServer;
use BenchShares qw(measure_shares);
use BenchStreams qw(measure_streams);
use BenchWaiting qw(measure_waiting);

my %PLANS = (
    full => {
        rounds => 5, round_sec => 6, keys_rounds => 40, keys_sec => 1,
        latency_runs => 2000, first_runs => { ours => 200, peer => 10 },
        warm_up_sec => 3, throughput_sec => 20, throughput_threads => 100_000,
        waiters => 5000, wakes => 500, waiting_rounds => 9, waiting_sec => 3,
        memory_requests => [ 1_000, 50_000, 200_000, 400_000 ],
        streams => 1000, streams_sec => 20, kills => 30, host_kills => 5,
        pools => 60, pools_rounds => 5, pools_runs => 500, pools_sec => 5, pools_starts => 30,
        shares_accounts => 50, shares_pools => 50, shares_deployments => 1_000, shares_queued => 100_000, shares_rounds => 20,
        hostile_rounds => 5, hostile_runs => 100, hostile_return_sec => 60,
    },
    quick => {
        rounds => 3, round_sec => 2, keys_rounds => 10, keys_sec => 1,
        latency_runs => 500, first_runs => { ours => 100, peer => 5 },
        warm_up_sec => 1, throughput_sec => 6, throughput_threads => 30_000,
        waiters => 5000, wakes => 200, waiting_rounds => 3, waiting_sec => 2,
        memory_requests => [ 1_000, 5_000, 20_000 ],
        streams => 200, streams_sec => 5, kills => 10, host_kills => 1,
        pools => 60, pools_rounds => 3, pools_runs => 200, pools_sec => 2, pools_starts => 10,
        shares_accounts => 50, shares_pools => 50, shares_deployments => 1_000, shares_queued => 100_000, shares_rounds => 6,
        hostile_rounds => 3, hostile_runs => 40, hostile_return_sec => 60,
    },
    smoke => {
        rounds => 1, round_sec => 1, keys_rounds => 2, keys_sec => 1,
        latency_runs => 20, first_runs => { ours => 5, peer => 1 },
        warm_up_sec => 0, throughput_sec => 1, throughput_threads => 5_000,
        waiters => 100, wakes => 10, waiting_rounds => 1, waiting_sec => 1,
        # Too few for 100 waiters and 10 more: fewer have to be parked.
        waiting_files => 1_100,
        memory_requests => [ 100, 200, 300 ],
        streams => 10, streams_sec => 3, kills => 1, host_kills => 1,
        pools => 3, pools_rounds => 1, pools_runs => 10, pools_sec => 1, pools_starts => 1,
        shares_accounts => 3, shares_pools => 3, shares_deployments => 5, shares_queued => 2_000, shares_rounds => 2,
        hostile_rounds => 1, hostile_runs => 3, hostile_return_sec => 1,
    },
);
# Latency first, while the tables are small.
my @PARTS = (
    [ latency    => \&measure_latency ],
    [ first      => \&measure_first ],
    [ throughput => \&measure_throughput ],
    [ rates      => \&measure_rates ],
    [ keys       => \&measure_keys ],
    [ waiting    => \&measure_waiting ],
    [ memory     => \&measure_memory ],
    [ restart    => \&measure_restart ],
    [ hosts      => \&measure_hosts ],
    [ pools      => \&measure_pools ],
    [ shares     => \&measure_shares ],
    [ streams    => \&measure_streams ],
    [ hostile    => \&measure_hostile ],
);

my %asked = map { $_ => 1 } @ARGV ? @ARGV : map { $_->[0] } @PARTS;
my %known = map { $_->[0] => 1 } @PARTS;
my @unknown = grep { !$known{$_} } sort keys %asked;
die "unknown: @unknown; the parts are: @{[ sort keys %known ]}\n" if @unknown;
my $mode = $ENV{BENCH} // 'full';
my $plan = $PLANS{$mode} // die "BENCH=$mode: expected full, quick or smoke\n";

$| = 1;
chdir root() or die root() . ": $!\n";
$ENV{AGENT_TEST_VARIANT} = 'release';
delete @ENV{ grep { /\APG|\A(?:ANTHROPIC|OPENAI)_/ } keys %ENV };
$SIG{$_} = sub { exit 1 } for qw(INT TERM HUP);
$SIG{PIPE} = 'IGNORE';

my $load = load();
my $server = BenchServer->new;
my (%result, @failed);
for my $part (grep { $asked{ $_->[0] } } @PARTS) {
    my ($name, $measure) = @{$part};
    print {*STDERR} "measuring $name ...\n";
    # A part that fails does not discard the figures of the others.
    eval { $result{$name} = $measure->($server, $plan); 1 } or push @failed, "$name: $@";
}
my $about = about($server, $load);
$server->stop;
print_report($about, \%result);
push @failed, map { "beside $_->{title}: $_->{failed}" }
    grep { $_->{failed} } @{ $result{hostile} // [] };
die map { "failed: $_" } @failed if @failed;

END { $server->stop if $server }

# The load average of the last minute.
sub load {
    open my $in, '<', '/proc/loadavg' or return 0;
    return (split ' ', readline $in)[0];
}

sub about {
    my ($measured, $load_before) = @_;
    my $versions = $measured->versions;
    chomp(my $cores = qx(nproc));
    return "$cores cores, shared by httpd, PostgreSQL and the load generators; "
        . "httpd $versions->{httpd}, PostgreSQL $versions->{postgres} "
        . "(fsync and full_page_writes on, otherwise as installed); "
        . "$mode run of t/bench/bench.pl; load before it $load_before.";
}
