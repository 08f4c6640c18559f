# SPDX-License-Identifier: Apache-2.0
# A host that dies with all its processes: the time until the runs that it executed
# begin their next attempt on another one, as clients of that one see it.
package BenchHosts;
use strict;
use warnings;
use AgentTest::Process;
use AgentTest::Server;
use AgentTest::Wait;
use BenchHttp;
use BenchRestart qw(start_run read_attempt cancel_all);
use BenchRuns qw(make_threads);
use BenchServer ();
use Exporter 'import';
use Time::HiRes qw(time);

our @EXPORT_OK = qw(measure_hosts);

my $RUNS = 10;

# The sorted milliseconds from the death to the event `metadata` of the next
# attempt having been read, for each run.
sub measure_hosts {
    my ($server, $plan) = @_;
    my @times = map { kill_host($server) } 1 .. $plan->{host_kills};
    return [ sort { $a <=> $b } @times ];
}

sub kill_host {
    my ($server) = @_;
    my ($survivor) = @{ $server->processes->{supervisor} };
    my $other = AgentTest::Server->new(database => $server->conninfo,
        config => AgentTest::Server::shared_config() . BenchServer::default_config());
    $other->start;
    my $worker_id = wait_for('the other host', sub {
        $server->sql("select coalesce(max(worker_id), 0) from agent.workers where state = 'live' and pid <> $survivor");
    });
    my @threads = make_threads($server, $RUNS);
    my @clients = map { BenchHttp->new($server->port) } @threads;
    # Stopped, the survivor leaves all of them to the other one.
    kill STOP => $survivor;
    start_run($clients[$_], $threads[$_]) for 0 .. $#threads;
    read_attempt(1, @clients);
    kill CONT => $survivor;
    # Of a worker of this host the survivor would find at once that its process has ended.
    $server->sql("update agent.workers set node_name = 'elsewhere' where worker_id = $worker_id returning 1");
    my @processes = ($other->httpd_pid, AgentTest::Process::descendants_of($other->httpd_pid));
    kill KILL => @processes;
    my $died_at = time;
    my @read_at = read_attempt(2, @clients);
    cancel_all($server);
    return map { 1000 * ($_ - $died_at) } @read_at;
}

1;
