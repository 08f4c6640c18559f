# SPDX-License-Identifier: Apache-2.0
# Many runs of applications at once: streams of a graph in Python, and runs of a node
# that takes 50 ms, on one process and on four, each with one slot.
package BenchApplicationLoad;
use strict;
use warnings;
use BenchApplications qw(serve run_body @LANGUAGES);
use BenchHttp qw(drive request);
use BenchRuns qw(make_threads);
use BenchServer;
use BenchStreams qw(run_streams);
use Exporter 'import';
use Time::HiRes qw(time);

our @EXPORT_OK = qw(measure_streams measure_processes);

my $EVERY_MS = 1000;
my $PROCESSES = 4;

# The table.
sub measure_streams {
    my ($applications, $plan) = @_;
    my $server = serve({ python => $applications->{python} }, BenchStreams::config());
    my $of = run_streams($server->port, 'python-ticker', $plan, $EVERY_MS);
    $server->stop;
    my $name = "$of->{streams} streams of a graph in Python, an event a second each";
    return "| figure | measured |\n|---|---|\n"
        . sprintf("| %s: delivered | %d of %d, %d streams cut |\n", $name, $of->{events}, $of->{events} + $of->{lost}, $of->{cut})
        . sprintf("| ... from written to read | p50 %.0f ms, p99 %.0f ms |\n", $of->{p50}, $of->{p99});
}

# Runs a second of a graph whose node takes 50 ms; a process has one slot, so that the
# figure shows how runs spread over processes.
sub waiters_rate {
    my ($applications, $language, $processes, $seconds) = @_;
    my $server = serve({ $language => $applications->{$language} },
        BenchServer::default_config() . "AgentRunners $processes\nAgentRunnerSlots 1\n");
    my @threads = make_threads($server, 40 * $PROCESSES * $seconds);
    my ($begin, $end, $count) = (undef, undef, 0);
    drive([ map { BenchHttp->new($server->port) } 1 .. 4 * $PROCESSES ], sub {
        my (undef, $answer) = @_;
        # After the first runs all processes are there.
        if ($answer && !$begin) {
            ($begin, $end) = (time, time + $seconds);
        }
        elsif ($answer && time < $end) {
            $count++;
        }
        return undef if ($end && time > $end) || !@threads;
        return request('POST', '/threads/' . shift(@threads) . '/runs/wait', run_body("$language-waiter"));
    });
    $server->stop;
    return $count / $seconds;
}

# The table.
sub measure_processes {
    my ($applications, $plan) = @_;
    my @rows;
    for my $language (@LANGUAGES) {
        my ($one, $all) = map { waiters_rate($applications, $language, $_, $plan->{rate_sec}) } 1, $PROCESSES;
        push @rows, sprintf "| a node of 50 ms in %s: runs a second with %d processes, to one (aim 3.5) | %.2f (%.0f to %.0f) |\n",
            $language, $PROCESSES, $all / $one, $all, $one;
    }
    return join '', "| figure | measured |\n|---|---|\n", @rows;
}

1;
