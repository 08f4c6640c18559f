# SPDX-License-Identifier: Apache-2.0
# Stores that answer, but cannot write: to the hosts they are away.
use strict;
use warnings;
use AgentTest::Wait;
use File::Path qw(remove_tree);
use RateLimitTest;
use GroupTest;
use Test::More;

# How a store comes to refuse writes, and how that ends.
my %faults = (
    'NOREPLICAS: too few replicas' => [
        sub { $_[0]->run('CONFIG', 'SET', 'min-replicas-to-write', 1) },
        sub { $_[0]->run('CONFIG', 'SET', 'min-replicas-to-write', 0) },
    ],
    'OOM: no memory' => [ sub { $_[0]->run('CONFIG', 'SET', 'maxmemory', 100_000) }, sub { $_[0]->run('CONFIG', 'SET', 'maxmemory', 0) } ],
    'MISCONF: the last snapshot has failed' => [
        sub {
            my ($redis) = @_;
            $redis->run('CONFIG', 'SET', 'save', '3600 1');
            remove_tree($redis->{dir});
            $redis->run('BGSAVE');
            wait_for('a snapshot that fails', sub { $redis->run('INFO', 'persistence') =~ /rdb_last_bgsave_status:err/ });
        },
        sub { $_[0]->run('CONFIG', 'SET', 'stop-writes-on-bgsave-error', 'no') },
    ],
    'READONLY: a replica' => [ sub { $_[0]->run('REPLICAOF', '127.0.0.1', 1) }, sub { $_[0]->run('REPLICAOF', 'NO', 'ONE') } ],
);

my %regions = map { $_ => GroupTest->new(hosts => 1, rules => "RateLimitRule ten =/ten key=api-key us=10/1\n")->start } sort keys %faults;
for my $fault (sort keys %faults) {
    $faults{$fault}[0]->($regions{$fault}{redis});
}
for my $fault (sort keys %faults) {
    my $host = $regions{$fault}{hosts}[0];
    wait_for("the share of the host: $fault", sub { $host->ask('GET', '/ten', { 'x-api-key' => next_key() })->{status} != 429 });
    pass "$fault: the host admits its share";
    # A server that becomes a replica closes the connection first.
    my ($word) = $fault =~ /\A(\w+)/;
    like $host->error_log, qr/RLR0115: the store does not answer: .*\b(?:$word|closed)\b/, "$fault: the log says so";
    unlike $host->error_log, qr/RLR0116/, "$fault: the log does not say that the store answers";
    $faults{$fault}[1]->($regions{$fault}{redis});
}
for my $fault (sort keys %faults) {
    my $host = $regions{$fault}{hosts}[0];
    wait_for('the store', sub { $host->error_log =~ /RLR0116/ });
    $regions{$fault}->wait_for_grants;
    pass "$fault: the store grants again when it can write";
}

done_testing;
