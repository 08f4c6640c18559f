# SPDX-License-Identifier: Apache-2.0
# Four hosts with a store behind a proxy that disturbs, and clients that send bursts to all of
# them: never an eleventh request in any 10 s. t/bench/group_faults.pl has all faults, and
# for longer.
use strict;
use warnings;
use GroupTest::Faults;
use Test::More;

my $faults = GroupTest::Faults->new;
my $admitted = 0;
for my $name ('none', 'connections are cut', 'answers end in their middle', 'answers come twice', 'answers are lost',
    'one host after the other is cut off, packets come later', 'the store is emptied (FLUSHALL)', 'kill -9 of children of httpd') {
    my $result = $faults->run($name, 4);
    cmp_ok $result->{most}, '<=', 10, "at most 10 in any 10 s: $name" or diag explain $result;
    $admitted += $result->{admitted};
}
my $result = $faults->run('keys are evicted (allkeys-lru)', 4);
cmp_ok $result->{most}, '<=', 10, 'at most 10 in any 10 s: keys are evicted (allkeys-lru)' or diag explain $result;
cmp_ok $result->{evicted}, '>', 0, 'keys of the region were evicted';
cmp_ok $admitted, '>', 10, 'requests were admitted in between';

done_testing;
