# SPDX-License-Identifier: Apache-2.0
# The cost of pools without work: runs of one deployment, alone and beside others
# whose runners wait; and the first run after the runners of a deployment ended
# for lack of runs.
package BenchPools;
use strict;
use warnings;
use AgentTest::Wait;
use BenchHttp;
use BenchRates qw(median);
use BenchRuns qw(create_and_join make_threads measure_throughput timed_ms);
use BenchServer;
use Exporter 'import';

our @EXPORT_OK = qw(measure_pools);

# The pool that is measured is that of `default`.
my $IDLE = "AgentRunnerIdleTime 1s\n";
# No listener serves them: they only have runners.
my $HOST = <<'CONF';
<VirtualHost *:1>
    AgentDeployment other-NUMBER
    <AgentGraph agent>
        AgentModel demo
    </AgentGraph>
</VirtualHost>
CONF
# Runs before the first one that is measured.
my $WARM_UP = 10;

# {pools, of => {1 => {cpu, rate}, POOLS => ...}, cold => [milliseconds, sorted],
# warm => ...}. cpu: the supervisor's microseconds for each run, one run after the
# other; rate: runs finished in a second, created over 16 connections.
sub measure_pools {
    my (undef, $plan) = @_;
    my @counts = (1, $plan->{pools});
    my %server = map { $_ => start($_) } @counts;
    my (%rounds, %result);
    for (1 .. $plan->{pools_rounds}) {
        push @{ $rounds{$_} }, measure_round($server{$_}, $plan) for @counts;
        @counts = reverse @counts;
    }
    $_->stop for values %server;
    return {
        pools => $plan->{pools},
        of => { map { $_ => summary(@{ $rounds{$_} }) } @counts },
        starts($plan),
    };
}

sub start {
    my ($pools) = @_;
    my $server = BenchServer->new(config => BenchServer::default_config()
        . join '', map { $HOST =~ s/NUMBER/$_/r } 2 .. $pools);
    wait_for('the reports of all runners', sub {
        $server->sql('select count(*) from agent.graphs') == $pools
    }, 60);
    return $server;
}

sub measure_round {
    my ($server, $plan) = @_;
    my $client = BenchHttp->new($server->port);
    my @threads = make_threads($server, $plan->{pools_runs} + $WARM_UP);
    create_and_join($client, $_) for splice @threads, 0, $WARM_UP;
    my $before = $server->cpu;
    create_and_join($client, $_) for @threads;
    my $cpu = $server->cpu_usec_each($before, scalar @threads);
    my $load = measure_throughput($server, { %{$plan}, warm_up_sec => 0.5,
        throughput_sec => $plan->{pools_sec},
        throughput_threads => 3_000 * (1 + $plan->{pools_sec}) });
    return { cpu => $cpu->{supervisor}, database => $cpu->{postgres},
        rate => $load->{rate}, load_cpu => $load->{cpu}{supervisor} };
}

sub summary {
    my (@rounds) = @_;
    return { map { my $name = $_; ($name => median(map { $_->{$name} } @rounds)) }
        keys %{ $rounds[0] } };
}

# Create -> join of a run whose pool has no runner, and of the next one.
sub starts {
    my ($plan) = @_;
    my $server = BenchServer->new(config => BenchServer::default_config() . $IDLE);
    my $client = BenchHttp->new($server->port);
    my %times;
    for my $thread (make_threads($server, $plan->{pools_starts})) {
        wait_for('the runner to end',
            sub { !@{ $server->processes->{runner} } });
        push @{ $times{$_} }, timed_ms(sub { create_and_join($client, $thread) })
            for qw(cold warm);
    }
    $server->stop;
    return map { $_ => [ sort { $a <=> $b } @{ $times{$_} } ] } keys %times;
}

1;
