# SPDX-License-Identifier: Apache-2.0
# Hosts with a Redis Cluster: redirections, slots that move under load, and a failover.
use strict;
use warnings;
use AgentTest::Env qw(slurp);
use AgentTest::Wait;
use RateLimitTest;
use GroupTest;
use GroupTest::Cluster;
use Test::More;

my $cluster = GroupTest::Cluster->new;
my $region = GroupTest->new(hosts => 2, store => $cluster, url => $cluster->url, rules => <<'CONF')->start;
RateLimitRule ten  =/ten  key=api-key us=10/10
RateLimitRule hour =/hour key=api-key us=7/1h
CONF
pass 'the partitions are found by redirections';

my @keys = map { "key$_" } 1 .. 24;

# Requests until as many of each key were admitted.
sub admit {
    my ($total) = @_;
    for my $key (@keys) {
        wait_for("$total admissions", sub {
            $region->send($_, '/hour', $key) for 0, 1;
            return @{ $region->{log}{"/hour $key"} // [] } >= $total;
        });
    }
    return;
}

sub admitted { return join ' ', map { scalar @{ $region->{log}{"/hour $_"} } } @keys }

# --- Slots move --------------------------------------------------------------------

admit(3);
$region->settle;
for my $partition (map { "rlr:{$_}" } 0 .. 15) {
    my ($to) = grep { $_ != $cluster->owner($partition) } @{ $cluster->{nodes} }[1, 2];
    my $end = $cluster->begin_move($partition, $to);
    # ASK, for requests and the calls of the hosts.
    $region->send($_ % 2, '/hour', $keys[$_]) for 0 .. 5;
    $end->();
    $region->send($_ % 2, '/hour', $keys[$_]) for 6 .. 11;
}
$region->settle;
admit(7);
$region->send($_ % 2, '/hour', $keys[ $_ % @keys ]) for 1 .. 4 * @keys;
is admitted(), join(' ', (7) x @keys), 'slots move during load: exactly N admissions of each key';

# --- A primary dies ----------------------------------------------------------------

$cluster->begin_move("rlr:{$_}", $cluster->{nodes}[0])->() for 0 .. 7;
$region->settle;
@keys = map { "late$_" } 1 .. 24;
admit(3);
$region->settle;
$cluster->{nodes}[0]->stop;
$region->settle;
admit(7);
$region->send($_ % 2, '/hour', $keys[ $_ % @keys ]) for 1 .. 4 * @keys;
is admitted(), join(' ', (7) x @keys), 'a primary dies, and its replica has its slots: exactly N admissions of each key';

# --- Hosts stop ----------------------------------------------------------------------

my @hosts = @{ $region->{hosts} };
sub log_of { return slurp($_[0]->dir . '/logs/error_log') }

$hosts[0]->stop;
like log_of($hosts[0]), qr/RLR0120: left the store/, 'a host leaves the partitions of all nodes, though one of the address is away';
wait_for('all admissions', sub { $region->send(1, '/hour', 'alone'); @{ $region->{log}{'/hour alone'} // [] } == 7 });
pass 'the other host admits N alone';
$cluster->{nodes}[2]->stop;
$hosts[1]->stop;
like log_of($hosts[1]), qr/RLR0119: left (?:[1-9]|1[0-5]) of 16 partitions of the store/, 'a node is away: a host leaves the partitions of the others';

done_testing;
