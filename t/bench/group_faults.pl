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
use lib "$FindBin::Bin/../lib", $FindBin::Bin;
use BenchReport ();
use GroupTest::Faults;
use Test::More ();

$| = 1;
my ($seconds, @failures) = @ARGV;
$seconds //= 40;
@failures = ('local', 'closed') if !@failures;
# The hosts report crashes as failed tests.
Test::More->builder->no_ending(1);

my $worst = 0;
my @evicted;
for my $failure (@failures) {
    print "\n`RateLimitStoreFailure $failure`\n\n",
        BenchReport::table([ 'fault', 'most in any 10 s', 'wrongly refused of all requests', 'admitted' ]);
    for my $store ('server', 'sentinel', 'cluster') {
        my $faults = GroupTest::Faults->new(failure => $failure, store => $store);
        for my $name (GroupTest::Faults->names($store)) {
            my $result = $faults->run($name, $seconds);
            print_row($name, $result);
            $worst = $result->{most} if $result->{most} > $worst;
            push @evicted, $result->{evicted} if $name =~ /evicted/;
        }
    }
}
print "\nKeys of the region that the store has evicted: ", join(', ', @evicted), ".\n",
    $worst > 10 ? "An eleventh request was admitted.\n" : "Never an eleventh request.\n";
exit($worst > 10 || grep { !$_ } @evicted);

sub print_row {
    my ($name, $result) = @_;
    my @counts = map { BenchReport::thousands($_) } @{$result}{qw(wrongful requests admitted)};
    print "| $name | $result->{most} | $counts[0] of $counts[1] | $counts[2] |\n";
    return;
}
