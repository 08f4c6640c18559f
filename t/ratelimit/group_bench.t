# SPDX-License-Identifier: Apache-2.0
# The bench of several hosts with one store works, with little load and without Envoy's
# service. The figures themselves mean nothing here, except for the last.
use strict;
use warnings;
use AgentTest::Env qw(is_sanitized root);
use Test::More;

plan skip_all => 'the bench measures the release build' if is_sanitized();

local $ENV{BENCH} = 'smoke';
my $output = qx('@{[ root() ]}/t/bench/ratelimit_store.pl' 2>&1);
is $?, 0, 'bench: succeeds' or diag $output;
for my $figure ('2 hosts with a store, without requests', '2 hosts, one key: with the store / without', '2 hosts, 100,000 keys: with the store / without',
    '2 hosts, each request a new key: calls to the store for each admitted request', 'the number of a call (ECHO): processor time of the store',
    'a store of 1 ms, each request a new key: a response, p50 / p99 of 50') {
    like $output, qr/^\| \Q$figure\E \| .*\d/m, "bench: prints a figure: $figure";
}
my ($border, $trickle) = $output =~ /^\| most admitted in any 10 s: this module, .*? \| <= 10 \| \*\*(\d+)\*\* .*? \*\*(\d+)\*\*/m;
cmp_ok $border // 11, '<=', 10, 'bench: two hosts admit 10 in any 10 s: bursts';
cmp_ok $trickle // 11, '<=', 10, 'bench: two hosts admit 10 in any 10 s: a burst, then a rate';

done_testing;
