# SPDX-License-Identifier: Apache-2.0
# The script of the store against the rules that the simulation uses: the same random calls, with
# a clock of their own, get the same replies.
use strict;
use warnings;
use AgentTest::Env qw(build_dir);
use GroupTest::Redis;
use Test::More;

my $redis = GroupTest::Redis->new(options => [ '--enable-debug-command', 'yes' ]);
my $program = build_dir() . '/bench/group_compare';
for my $seed (1 .. 4) {
    my $text = qx($program $redis->{port} $seed 10000);
    like $text, qr/^10000 of 10000 calls agree, [1-9]\d+ granted, [1-9]\d+ in complete epochs, [1-9]\d* left, [1-9]\d* refused, [1-9]\d* granted after .*, [1-9]\d* epochs ended/m,
        "the script grants the same as the simulated store (seed $seed)" or diag $text;
}

done_testing;
