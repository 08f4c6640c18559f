# SPDX-License-Identifier: Apache-2.0
# Load by wrk, one process for each of the servers, all at the same time.
#
#   my $round = run_wrk(ports => \@ports, sec => 1, connections => 32,
#       case => { path => '/one', keys => 1, key => 'name' });
#   # {count, rate, failed, output}: requests, of them answered with an error
#   my @outputs = run_tools([ 'taskset', ... ], ...);
#
# keys => 0: each request has a new key; descriptor => that of Envoy's service,
# instead of a path.
package RateLimitBenchLoad;
use strict;
use warnings;
use Exporter 'import';
use List::Util qw(sum0);
use POSIX ();
use RateLimitBenchProcess qw(client_cpus);

our @EXPORT_OK = qw(run_wrk run_tools);

# Each key is new once; no server gets more requests in a round.
my $NEW_KEYS = 1_000_000;
my $next_key = $NEW_KEYS;
my %running;

sub run_wrk {
    my (%args) = @_;
    my $case = $args{case};
    my @commands = map {
        my %env = (BENCH_PATH => $case->{path}, BENCH_KEYS => $case->{keys}, BENCH_FIRST => $next_key,
            BENCH_NAME => $case->{key}, BENCH_DESCRIPTOR => $case->{descriptor});
        $next_key += $NEW_KEYS if !$case->{keys};
        [ 'env', (map { "$_=$env{$_}" } grep { defined $env{$_} } sort keys %env),
            'taskset', '-c', client_cpus(), 'wrk', '-t', 1, '-c', int($args{connections} / @{ $args{ports} }), '-d', "$args{sec}s",
            '-s', 't/bench/ratelimit_keys.lua', "http://127.0.0.1:$_$case->{path}" ]
    } @{ $args{ports} };
    my @rounds = map { parse($_) } run_tools(@commands);
    return { output => join('', map { $_->{output} } @rounds),
        map { my $field = $_; $field => sum0(map { $_->{$field} } @rounds) } qw(count rate failed errors) };
}

sub parse {
    my ($output) = @_;
    my ($count) = $output =~ /(\d+) requests in/ or die "wrk:\n$output";
    my ($rate) = $output =~ m{Requests/sec:\s+([\d.]+)};
    my ($failed) = $output =~ /Non-2xx or 3xx responses: (\d+)/;
    my ($errors) = $output =~ /Socket errors: (.*)/;
    return { output => $output, count => $count, rate => $rate, failed => $failed // 0, errors => sum0(($errors // '') =~ /(\d+)/g) };
}

# Runs the commands at the same time; returns what they print.
sub run_tools {
    my (@commands) = @_;
    my @tools = map { start_tool($_) } @commands;
    my @outputs;
    for my $tool (@tools) {
        my $output = do { local $/; readline $tool->{out} };
        my $ended = close $tool->{out};
        delete $running{ $tool->{pid} };
        die "@{ $tool->{command} }:\n$output" if !$ended;
        push @outputs, $output;
    }
    return @outputs;
}

sub start_tool {
    my ($command) = @_;
    my $pid = open(my $out, '-|') // die "fork: $!\n";
    if (!$pid) {
        open STDERR, '>&', \*STDOUT;
        { exec { $command->[0] } @{$command} }
        POSIX::_exit(127);
    }
    $running{$pid} = $$;
    return { pid => $pid, out => $out, command => $command };
}

END {
    my $status = $?;
    kill TERM => grep { $running{$_} == $$ } keys %running;
    $? = $status;
}

1;
