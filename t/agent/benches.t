# SPDX-License-Identifier: Apache-2.0
# The benches work: each part runs with little load and prints its figures. The
# figures themselves mean nothing here.
use strict;
use warnings;
use AgentTest::Env qw(is_sanitized root);
use Test::More;

plan skip_all => 'the benches measure the release build' if is_sanitized();

# Part -> a row of its table. Left out: `first`, which needs a JavaScript server,
# `hosts`, which waits for a lease, and `hostile`, which takes minutes.
my %ROW = (
    latency    => 'create -> join of a one-step run, p50',
    throughput => 'runs finished, created over 16 connections',
    rates      => '`GET /threads/{id}/state`, 32 connections | >= 0.32 of pgbench',
    keys       => '`GET /threads/{id}` with an API key, 32 connections | >= 0.97 of that without one',
    waiting    => 'waking one of 90, p50',
    memory     => 'two httpd children after',
    pools      => '3 pools, one with runs: runs finished',
    restart    => 'kill of a runner of built-in graphs -> next attempt of its only run',
    shares     => 'creation -> start of a run of one of 3 accounts',
    streams    => '10 streams, events delivered',
);

local $ENV{BENCH} = 'smoke';
my @parts = sort keys %ROW;
my $output = qx('@{[ root() ]}/t/bench/bench.pl' @parts 2>&1);
is $?, 0, 'bench: each part succeeds' or diag $output;
like $output, qr/^\| \Q$ROW{$_}\E/m, "bench: $_ prints its figures" for @parts;

# Of the database alone, with a cluster of its own.
$output = qx('@{[ root() ]}/t/bench/chats.pl' 20 2>&1);
is $?, 0, 'bench: chats succeed' or diag $output;
like $output, qr/^\| turns \| 20 \|$/m, 'bench: chats print their figures';

# Of applications, whose packages come from registries.
SKIP: {
    $output = qx('@{[ root() ]}/t/bench/applications.pl' runs chats streams processes 2>&1);
    skip "no packages: $output", 6 if $? && $output !~ /^measuring/m;
    is $?, 0, 'bench: applications succeed' or diag $output;
    like $output, qr/^\| create -> join p50 .*^\| bytes stored by a turn/ms, 'bench: applications print their figures';
    like $output, qr/^\| \d+ streams of a graph in Python, an event a second each: delivered \| \d+ of \d+, 0 streams cut \|$/m, 'bench: streams of applications print their figures';
    like $output, qr/^\| a node of 50 ms in $_: runs a second with 4 processes/m, "bench: processes in $_ print their figures" for qw(python javascript);
    my $ratio = qr/^\| \.\.\. ratio of the two \(aim 1\.7\) \| [\d.]+ \| [\d.]+ \|/m;
    like $output, qr/^\| \.\.\. in turns with the bare library .*?$ratio.*^\| \.\.\. alone on its pipes .*?$ratio/ms,
        'bench: runners beside the bare library, in the server and alone on their pipes';
}

done_testing;
