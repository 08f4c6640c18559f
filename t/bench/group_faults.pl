#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Four hosts with one store at 10 per 10 s, through faults, and clients that send bursts to all of
# them: prints a table of the most requests that were admitted in any 10 s, and how many were
# refused wrongly.
#
#   t/bench/group_faults.pl [SECONDS of each fault] [local|closed...]
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use GroupTest::Faults;
use Test::More ();

$| = 1;
my ($seconds, @failures) = @ARGV;
$seconds //= 40;
# The hosts report crashes as failed tests.
Test::More->builder->no_ending(1);

my $worst = 0;
for my $failure (@failures ? @failures : ('local', 'closed')) {
    print "\n`RateLimitStoreFailure $failure`\n\n| fault | requests | admitted | most in any 10 s | wrongly refused |\n|---|---|---|---|---|\n";
    for my $store ('server', 'sentinel', 'cluster') {
        my $faults = GroupTest::Faults->new(failure => $failure, store => $store);
        for my $name (GroupTest::Faults->names($store)) {
            my $result = $faults->run($name, $seconds);
            printf "| %s | %d | %d | %d | %d (%.1f %%) |\n", $name, @{$result}{qw(requests admitted most wrongful)},
                100 * $result->{wrongful} / ($result->{requests} || 1);
            $worst = $result->{most} if $result->{most} > $worst;
        }
    }
}
print "\n", $worst > 10 ? "An eleventh request was admitted.\n" : "Never an eleventh request.\n";
exit($worst > 10);
