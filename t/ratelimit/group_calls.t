# SPDX-License-Identifier: Apache-2.0
# The cost of a call at the store, with many hosts.
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use GroupTest::Redis;
use Test::More;
use Time::HiRes qw(time);

my ($NEW, $STAYED) = (1, 8);
my $redis = GroupTest::Redis->new;
my ($sha) = $redis->run('SCRIPT', 'LOAD', slurp(root() . '/mod_ratelimit_regional/protocol/grant.lua')) =~ /([0-9a-f]{40})/;

# A call of one of the hosts; the reply.
sub call {
    my ($hosts, $kind, $host, $epoch, $flags, @items) = @_;
    return $redis->run('EVALSHA', $sha, 1, 'rlr:{0}', $kind, sprintf('host%012d', $host), $epoch, 9e15, $hosts, 3_600_000, $flags, -1, 0, 0,
        'name', @items);
}

# Hosts that join an empty store; the epoch.
sub join_all {
    my ($hosts) = @_;
    $redis->run('FLUSHALL');
    my ($epoch) = call($hosts, 'hello', 0, '', $NEW) =~ /\r\n([0-9a-f]{16})\r\n/;
    for my $host (0 .. $hosts - 1) {
        call($hosts, 'heartbeat', $host, $epoch, $NEW) =~ /\A\*1\r\n\*\d+\r\n\$2\r\nok\r\n/ or die "host $host does not join\n";
    }
    return $epoch;
}

sub reads {
    my ($reads) = $redis->run('INFO', 'commandstats') =~ /cmdstat_hget:calls=(\d+)/;
    return $reads // 0;
}

# Of a few calls with as many new keys, each reserved by all hosts, the shortest one in seconds.
sub shortest_call {
    my ($hosts, $keys) = @_;
    my ($epoch, $shortest, $next) = (join_all($hosts), undef, 0);
    for (1 .. 20) {
        my @items = map { (sprintf('key%013d', $next++), 1000, 10, 1, 1, $next, 0, 0) } 1 .. $keys;
        my $began = time;
        call($hosts, 'heartbeat', 0, $epoch, $STAYED, @items);
        my $seconds = time - $began;
        $shortest = $seconds if !defined $shortest || $seconds < $shortest;
    }
    return $shortest;
}

my ($hosts, $began, $before) = (500, time, reads());
join_all($hosts);
# Once a second the state of all members is summed up for operators.
my $sums = int(time - $began) + 2;
my $joins = reads() - $before - $sums * $hosts;
cmp_ok $joins, '<=', 8 * $hosts, 'a host that joins 499 others reads a few fields, and not all members';

my ($few, $many) = (shortest_call(4, 64), shortest_call($hosts, 64));
cmp_ok $many, '<', 15 * $few, 'a call with 64 keys takes hardly longer while the shares of 500 hosts are reserved than with those of 4'
    or diag "$few s, $many s";

done_testing;
