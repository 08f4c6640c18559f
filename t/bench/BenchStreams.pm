# SPDX-License-Identifier: Apache-2.0
# Many streams at once: a runner writes events at a steady rate; they pass the
# supervisor, PostgreSQL and httpd to clients that stream one run each.
package BenchStreams;
use strict;
use warnings;
use AgentTest::Env qw(build_dir);
use AgentTest::Server;
use BenchPostgres;
use Exporter 'import';
use Cpanel::JSON::XS;

our @EXPORT_OK = qw(measure_streams run_streams);

my $EVERY_MS = 50;
# All runs are created at once; after that the load is even.
my $WARM_UP_MS = 3000;

# One child, so that all streams share its threads.
my $CONFIG = <<'CONF';
LogLevel warn agent:warn
StartServers 1
ServerLimit 3
ThreadsPerChild 64
MinSpareThreads 1
MaxSpareThreads 64
MaxRequestWorkers 64
AsyncRequestWorkerFactor 100
DBDKeep 16
DBDMax 16
AgentRunnerSlots 4000
CONF

# {streams, events, lost, rate, wanted, p50, p99, commits}: p50 and p99 are the
# milliseconds from the runner's write of an event to the client's read of it;
# commits are transactions of PostgreSQL per second.
sub measure_streams {
    my (undef, $plan) = @_;
    my $postgres = BenchPostgres->new;
    my $config = AgentTest::Server::shared_config()
        =~ s/^AgentRunner .*$/AgentRunner "\${BUILD_DIR}\/bench\/ticker"/mr
        =~ s/^AgentRunnerSlots .*$//mr;
    my $httpd = AgentTest::Server->new(database => $postgres->conninfo,
        config => $config . $CONFIG);
    $httpd->start;
    my $before = transactions($postgres);
    my $result = run_streams($httpd->{port}, 'agent', $plan, $EVERY_MS);
    my $after = transactions($postgres);
    undef $httpd;
    return { %{$result}, commits => ($after - $before) / $result->{seconds} };
}

# The same figures but commits, for a graph that is served on the port and writes an
# event each every_ms. config() is for its server.
sub run_streams {
    my ($port, $assistant, $plan, $every_ms) = @_;
    my $ticks = $plan->{streams_sec} * 1000 / $every_ms;
    my $count = $plan->{streams};
    my $line = qx(@{[ build_dir() ]}/bench/streams $port $assistant $count $ticks $every_ms $WARM_UP_MS);
    die "the load generator failed\n" if $?;
    my $result = Cpanel::JSON::XS->new->decode($line);
    return {
        %{$result},
        streams => $count,
        lost    => $count * $ticks - $result->{events},
        rate    => $result->{events} / $result->{seconds},
        wanted  => $count * 1000 / $every_ms,
    };
}

sub config { return $CONFIG }

sub transactions {
    my ($postgres) = @_;
    my $conninfo = $postgres->conninfo('postgres');
    my $count = qx(psql -XqAt -c "select sum(xact_commit) from pg_stat_database" "$conninfo");
    return $count + 0;
}

1;
