#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Four hosts with one store at 10 per 10 s and 10 per 2 s, through faults, and clients that send
# bursts to all of them: prints a table of the most requests that were admitted in any interval of
# a rule, how many were refused wrongly, and how many hosts that were cut off have admitted by their
# shares. A host is cut off for at least as long as it takes to admit shares of both rules.
#
#   t/bench/group_faults.pl [SECONDS of each fault] [local|closed...]
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;
use BenchReport ();
use GroupTest::Faults;
use List::Util qw(max);
use Test::More ();

$| = 1;
my ($seconds, @failures) = @ARGV;
$seconds //= 40;
@failures = ('local', 'closed') if !@failures;
# The hosts report crashes as failed tests.
Test::More->builder->no_ending(1);

my $worst = 0;
my (@evicted, @wrong_shares);
my %is_cut = map { $_ => 1 } GroupTest::Faults->names_of_cuts;
for my $failure (@failures) {
    print "\n`RateLimitStoreFailure $failure`\n\n",
        BenchReport::table([ 'fault', 'most in any interval', 'wrongly refused of all requests', 'admitted', 'by shares of hosts without the store, 10 s + 2 s' ]);
    for my $store ('server', 'sentinel', 'cluster') {
        my $faults = GroupTest::Faults->new(failure => $failure, store => $store);
        for my $name (GroupTest::Faults->names($store)) {
            my $result = $faults->run($name, $is_cut{$name} ? max($seconds, GroupTest::Faults->cut_sec(10)) : $seconds);
            print_row($name, $result, $is_cut{$name});
            push @wrong_shares, "$failure: $name" if $is_cut{$name} && grep { $failure eq 'closed' xor $_ == 0 } values %{ $result->{shares} };
            $worst = $result->{most} if $result->{most} > $worst;
            push @evicted, $result->{evicted} if $name =~ /evicted/;
        }
    }
}
print "\nKeys of the region that the store has evicted: ", join(', ', @evicted), ".\n",
    $worst > 10 ? "An eleventh request was admitted.\n" : "Never an eleventh request.\n",
    map { "Hosts without the store admitted no request of a rule with `local`, or some with `closed`: $_\n" } @wrong_shares;
exit($worst > 10 || @wrong_shares || grep { !$_ } @evicted);

sub print_row {
    my ($name, $result, $is_cut) = @_;
    my @counts = map { BenchReport::thousands($_) } @{$result}{qw(wrongful requests admitted)};
    print "| $name | $result->{most} | $counts[0] of $counts[1] | $counts[2] | ", $is_cut ? join(' + ', @{ $result->{shares} }{qw(/ten /two)}) : '', " |\n";
    return;
}
