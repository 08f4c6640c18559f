# SPDX-License-Identifier: Apache-2.0
# A report of marks that takes longer than a heartbeat may take: two calls for a partition with a
# mark, each for 0.3 seconds.
use strict;
use warnings;
use AgentTest::Wait;
use RateLimitTest;
use GroupTest;
use GroupTest::SlowReports;
use Test::More;

my $redis = GroupTest::Redis->new;
my $slow = GroupTest::SlowReports->new($redis->{port});
my $region = GroupTest->new(hosts => 1, store => $redis, port => $slow->{port}, rules => <<'CONF')->start;
RateLimitRule ten  =/ten  key=api-key us=10/10
RateLimitRule hour =/hour key=api-key us=7/1h
CONF

wait_for('four admissions', sub { $region->send(0, '/hour', 'key'); @{ $region->{log}{'/hour key'} // [] } >= 4 });
$redis->run('FLUSHALL');
$region->settle;
pass 'the report is accepted, and the epoch complete';
wait_for('a grant', sub { $region->send(0, '/hour', 'other') });
$region->send(0, '/hour', 'key') for 1 .. 12;
cmp_ok scalar @{ $region->{log}{'/hour key'} }, '<=', 7, 'a new store has the reported marks: never more than N';

done_testing;
