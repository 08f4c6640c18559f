# SPDX-License-Identifier: Apache-2.0
# Hosts that find the store through Sentinel, and its failovers.
use strict;
use warnings;
use AgentTest::Env qw(slurp);
use AgentTest::Wait;
use RateLimitTest;
use GroupTest;
use GroupTest::Sentinel;
use Test::More;

my $first = GroupTest::Redis->new(options => [ '--repl-diskless-sync-delay', 0 ]);
my $second = GroupTest::Redis->new(options => [ '--replica-read-only', 'no', '--repl-diskless-sync-delay', 0,
    '--replicaof', "127.0.0.1 $first->{port}" ]);
wait_for('the replica', sub { ($second->run('INFO', 'replication') // '') =~ /master_link_status:up/ });
my $sentinel = GroupTest::Sentinel->new(primary => $first);
my $region = GroupTest->new(hosts => 2, store => $first, url => $sentinel->url, rules => <<'CONF')->start;
RateLimitRule ten  =/ten  key=api-key us=10/10
RateLimitRule hour =/hour key=api-key us=7/1h
CONF
pass 'the store is found through Sentinel';

# Until as many requests of the key were admitted in total.
sub admit {
    my ($key, $total) = @_;
    my $log = $region->{log};
    wait_for("$total admissions", sub {
        $region->send($_, '/hour', $key) for 0, 1;
        return @{ $log->{"/hour $key"} // [] } >= $total;
    });
    return;
}

# --- The primary dies --------------------------------------------------------------

admit('key', 4);
$region->settle;
# The replica as it would be without the last writes: it has no admission.
$second->run('EVAL', <<'LUA', 0);
for partition = 0, 15 do
    local name = 'rlr:{' .. partition .. '}'
    for _, field in ipairs(redis.call('HKEYS', name)) do
        if #field == 16 then redis.call('HDEL', name, field) end
    end
end
LUA
$first->stop;
$sentinel->wait_for_primary($second);
$region->{redis} = $second;
$region->settle;
admit('key', 7);
$region->send($_ % 2, '/hour', 'key') for 1 .. 20;
is scalar @{ $region->{log}{'/hour key'} }, 7,
    'after a failover to a replica without the last writes the hosts report them: exactly N admissions';

# --- A failover that an operator orders ----------------------------------------------

$first->start;
$first->run('REPLICAOF', '127.0.0.1', $second->{port});
wait_for('the replica', sub { ($first->run('INFO', 'replication') // '') =~ /master_link_status:up/ });
wait_for('Sentinel to accept the failover', sub { ($sentinel->run(0, 'SENTINEL', 'FAILOVER', 'region') // '') =~ /OK/ });
$sentinel->wait_for_primary($first);
$region->{redis} = $first;
$region->settle;
$region->send($_ % 2, '/hour', 'key') for 1 .. 20;
is scalar @{ $region->{log}{'/hour key'} }, 7, 'hosts leave a primary that has become a replica, and no admission is forgotten';

# --- Sentinels ---------------------------------------------------------------------

$sentinel->stop(0);
$region->settle;
pass 'two of three Sentinels are enough';
$region->{hosts}[1]->stop;
like slurp($region->{hosts}[1]->dir . '/logs/error_log'), qr/RLR0120: left the store/, 'a host that stops finds the primary, and leaves it';
$sentinel->stop(1);
wait_for('the log', sub { slurp($region->{hosts}[0]->dir . '/logs/error_log') =~ /RLR0115: .*not more than half of the Sentinels name one primary/ });
pass 'one of three is not: a partition may have left the host with the former primary';

done_testing;
