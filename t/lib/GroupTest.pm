# SPDX-License-Identifier: Apache-2.0
# Hosts of a region: several httpd with one Redis, and an exact log of what they admit.
#
#   my $region = GroupTest->new(hosts => 4, rules => $lines, directives => $lines);
#   # store => a GroupTest::Redis or Cluster, port => of what is before it, ports => for each host,
#   # url => or its address; servers => hosts of that store that have been started otherwise
#   $region->start;                     # until the store grants admissions to each, or
#   $region->begin;                     # until all hosts are connected for the first time
#   $region->age;                       # as if that were longer ago than any interval
#   $region->send($host, $path, $key)   # 1 if admitted; logged
#   $region->most($key, $interval)      # admitted requests certainly in one interval
#   $region->{redis}->stop, ->start, ->run(@words)
package GroupTest;
use strict;
use warnings;

use AgentTest::Wait;
use RateLimitTest;
use GroupTest::Redis;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my $next_key = 0;

# Whether the epoch of a partition is complete, and all members were connected since
# ARGV[2], by the store's clock.
my $STATE = <<'LUA';
local epoch = redis.call('HGET', KEYS[1], 'm')
if not epoch or cmsgpack.unpack(epoch).complete ~= 1 then return 0 end
for member = 0, ARGV[1] - 1 do
    if cmsgpack.unpack(redis.call('HGET', KEYS[1], 'm' .. member))[2] <= tonumber(ARGV[2]) then return 0 end
end
return 1
LUA

# Sets the times at which the hosts got their numbers to 0.
my $AGE = <<'LUA';
local epoch = cmsgpack.unpack(redis.call('HGET', KEYS[1], 'm'))
epoch.known = 0
redis.call('HSET', KEYS[1], 'm', cmsgpack.pack(epoch))
for i = 0, ARGV[1] - 1 do
    local member = cmsgpack.unpack(redis.call('HGET', KEYS[1], 'm' .. i))
    member[5] = 0
    redis.call('HSET', KEYS[1], 'm' .. i, cmsgpack.pack(member))
end
return 1
LUA

my $TIME = q(local t = redis.call('TIME') return t[1] * 1000 + math.ceil(t[2] / 1000));

my @PARTITIONS = map { "rlr:{$_}" } 0 .. 15;

sub new {
    my ($class, %args) = @_;
    my $redis = $args{store} // GroupTest::Redis->new;
    # A busy machine answers late: a request may wait for a second.
    my $self = bless { redis => $redis, log => {}, hosts => [] }, $class;
    if ($args{servers}) {
        $self->{hosts} = $args{servers};
        return $self;
    }
    my $count = $args{hosts} // 4;
    for my $host (0 .. $count - 1) {
        my $port = $args{ports} ? $args{ports}[$host] : $args{port} // $redis->{port};
        my $url = $args{url} // "redis://127.0.0.1:$port";
        push @{ $self->{hosts} }, RateLimitTest->new(config => $args{rules} . <<"CONF" . ($args{directives} // ''));
RateLimitRegion us
RateLimitStore $url
RateLimitStoreHosts $count
RateLimitStoreTimeout 1s
CONF
    }
    return $self;
}

sub start {
    my ($self) = @_;
    $self->begin;
    $self->age;
    $self->wait_for_grants;
    return $self;
}

sub begin {
    my ($self) = @_;
    $_->start for @{ $self->{hosts} };
    $self->settle;
    return $self;
}

sub age {
    my ($self) = @_;
    $self->{redis}->run('EVAL', $AGE, 1, $_, scalar @{ $self->{hosts} }) for @PARTITIONS;
    # The hosts learn it from their next heartbeat.
    $self->settle;
    return;
}

# Until all hosts have been connected twice after all epochs were complete.
sub settle {
    my ($self) = @_;
    my $since = 0;
    for (1 .. 3) {
        for my $partition (@PARTITIONS) {
            wait_for('heartbeats of all hosts', sub {
                ($self->{redis}->run('EVAL', $STATE, 1, $partition, scalar @{ $self->{hosts} }, $since) // '') =~ /^:1/;
            });
        }
        # A cluster may be without the node of the key for a moment.
        $since = wait_for('the time of the store', sub {
            my ($ms) = ($self->{redis}->run('EVAL', $TIME, 1, $PARTITIONS[0]) // '') =~ /^:(\d+)/;
            return $ms;
        });
    }
    return;
}

sub wait_for_grants {
    my ($self, @hosts) = @_;
    for my $host (@hosts ? @hosts : @{ $self->{hosts} }) {
        wait_for('a grant of the store', sub {
            $host->ask('GET', '/ten', { 'x-api-key' => 'start' . $next_key++ })->{status} != 429;
        });
    }
    return;
}

# One request; with the times before and after it if it was admitted.
sub send {
    my ($self, $host, $path, $key) = @_;
    my $before = clock_gettime(CLOCK_MONOTONIC);
    my $answer = $self->{hosts}[$host]->ask('GET', $path, { 'x-api-key' => $key });
    my $admitted = $answer->{status} != 429;
    push @{ $self->{log}{"$path $key"} }, [ $before, clock_gettime(CLOCK_MONOTONIC) ] if $admitted;
    $self->{last} = $answer;
    return $admitted ? 1 : 0;
}

# The most requests of a key that were certainly admitted in one interval: sent and
# answered in it.
sub most {
    my ($self, $path, $key, $interval) = @_;
    my @log = sort { $a->[0] <=> $b->[0] } @{ $self->{log}{"$path $key"} // [] };
    my $most = 0;
    for my $first (@log) {
        my $count = grep { $_->[0] >= $first->[0] && $_->[1] < $first->[0] + $interval } @log;
        $most = $count if $count > $most;
    }
    return $most;
}

1;
