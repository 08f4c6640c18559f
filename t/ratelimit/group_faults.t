# SPDX-License-Identifier: Apache-2.0
# Four hosts with a store behind a proxy that disturbs, and clients that send bursts to all of
# them: never an eleventh request in any 10 s, or in any 2 s, also of hosts that have been cut off
# for so long that they admit their shares. t/bench/group_faults.pl has all faults, and
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
    cmp_ok $result->{most}, '<=', 10, "at most 10 in any interval: $name" or diag explain $result;
    $admitted += $result->{admitted};
}
my $result = $faults->run('keys are evicted (allkeys-lru)', 4);
cmp_ok $result->{most}, '<=', 10, 'at most 10 in any interval: keys are evicted (allkeys-lru)' or diag explain $result;
cmp_ok $result->{evicted}, '>', 0, 'keys of the region were evicted';
cmp_ok $admitted, '>', 10, 'requests were admitted in between';

for my $name ('one host is cut off', 'all hosts are cut off') {
    $result = $faults->run($name, GroupTest::Faults->cut_sec(2));
    cmp_ok $result->{most}, '<=', 10, "at most 10 in any interval: $name, and admits its share" or diag explain $result;
    cmp_ok $result->{shares}{'/two'}, '>', 0, "hosts without the store have admitted by their shares: $name";
}

done_testing;
