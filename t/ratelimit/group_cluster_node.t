# SPDX-License-Identifier: Apache-2.0
# A node of a Redis Cluster that is away, without a replica: the partitions of the others.
use strict;
use warnings;
use AgentTest::Wait;
use RateLimitTest;
use GroupTest;
use GroupTest::Cluster;
use Test::More;

my $cluster = GroupTest::Cluster->new;
# With this interval no host ever has a share: what is admitted is admitted by the store.
my $region = GroupTest->new(hosts => 2, store => $cluster, url => $cluster->url, rules => <<'CONF')->start;
RateLimitRule ten  =/ten  key=api-key us=10/10
RateLimitRule hour =/hour key=api-key us=60/1h
CONF

my @keys = map { "key$_" } 1 .. 24;
my $rounds = 6;

# How many requests of each key are admitted.
sub send_all {
    my %admitted;
    for my $round (1 .. $rounds) {
        $admitted{$_} += $region->send($round % 2, '/hour', $_) for @keys;
    }
    return \%admitted;
}

sub count_with {
    my ($admitted, $times) = @_;
    return scalar grep { $_ == $times } values %{$admitted};
}

is count_with(send_all(), $rounds), @keys, 'all nodes answer: all requests are admitted';
$cluster->{nodes}[1]->stop;
my $admitted = send_all();
cmp_ok count_with($admitted, 0), '>', 0, 'a node is away: requests for its partitions are refused';
cmp_ok count_with($admitted, $rounds), '>', 0, 'requests in between for the partitions of other nodes are admitted';
is count_with($admitted, 0) + count_with($admitted, $rounds), @keys, 'no key is refused once and admitted once';
ok $cluster->{nodes}[1]->start, 'the node starts';
for my $host (0, 1) {
    wait_for('an admission of each key', sub { $region->send($host, '/hour', "late$_") }) for 1 .. 24;
}
pass 'the node is back: its partitions are admitted again';

done_testing;
