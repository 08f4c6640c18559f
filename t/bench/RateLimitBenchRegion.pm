# SPDX-License-Identifier: Apache-2.0
# The hosts of a region on one machine:
#
#   my $region = RateLimitBenchRegion->new('store', 4);     # with one store
#   # 'local': each with its own table; 'envoy': Envoy's services with one Redis
#   # delay_ms => before the store, there and back; timeout => RateLimitStoreTimeout
#   $region->ports; $region->cpu; $region->store_cpu; $region->calls; $region->stop
#   $region->stats     # sums of the status pages: how requests were decided
#
# The store has the processors of the clients: it is another machine's, and its
# time is shown apart.
package RateLimitBenchRegion;
use strict;
use warnings;
use AgentTest::Cost qw(cpu_sec);
use GroupTest;
use GroupTest::Proxy;
use GroupTest::Redis;
use List::Util qw(sum0);
use POSIX qw(fmod);
use RateLimitBenchEnvoy;
use RateLimitBenchProcess qw(client_cpus);
use RateLimitBenchServer;
use Time::HiRes qw(time);

my %START = (local => \&start_local, store => \&start_store, envoy => \&start_envoy);

sub new {
    my ($class, $kind, $hosts, %args) = @_;
    my $self = bless { kind => $kind, count => $hosts, %args }, $class;
    $START{$kind}->($self);
    return $self;
}

sub start_local {
    my ($self) = @_;
    $self->{servers} = [ map { RateLimitBenchServer->new('limited') } 1 .. $self->{count} ];
    return;
}

sub start_redis {
    my ($self) = @_;
    $self->{redis} = GroupTest::Redis->new;
    my ($cpus, $pid) = (client_cpus(), $self->{redis}->pid);
    qx(taskset -a -p -c $cpus $pid);
    return $self->{redis}{port};
}

# Admits from the beginning, as if all hosts had been there for longer than an interval.
sub start_store {
    my ($self) = @_;
    my $port = $self->start_redis;
    if ($self->{delay_ms}) {
        $self->{proxy} = GroupTest::Proxy->new(ports => 1, to => $port);
        $self->{proxy}->set_all('later', $self->{delay_ms} / 2);
        ($port) = @{ $self->{proxy}{ports} };
    }
    my $lines = "RateLimitStore redis://127.0.0.1:$port\nRateLimitStoreHosts $self->{count}\n"
        . ($self->{timeout} ? "RateLimitStoreTimeout $self->{timeout}\n" : '');
    $self->{servers} = [ map { RateLimitBenchServer->new('limited', $lines) } 1 .. $self->{count} ];
    my $group = GroupTest->new(store => $self->{redis}, servers => $self->{servers});
    $group->settle;
    $group->age;
    return;
}

sub start_envoy {
    my ($self) = @_;
    my $port = $self->start_redis;
    $self->{servers} = [ map { RateLimitBenchEnvoy->new($port) } 1 .. $self->{count} ];
    return;
}

sub ports { return [ map { $_->port } @{ $_[0]{servers} } ] }
sub cpu   { return sum0(map { $_->cpu } @{ $_[0]{servers} }) }

sub store_cpu { return $_[0]{redis} ? cpu_sec($_[0]{redis}->pid) : 0 }

# Calls of the script, or of Envoy's commands, so far.
sub calls {
    my ($self) = @_;
    my %calls = (($self->{redis}->run('INFO', 'commandstats') // '') =~ /^cmdstat_(\w+):calls=(\d+)/mg);
    return $calls{evalsha} // $calls{incrby} // 0;
}

# --- For RateLimitBenchWindow -------------------------------------------------------

sub window_request {
    my ($self, $pattern) = @_;
    return $self->{servers}[0]->window_request($pattern) if $self->{kind} ne 'envoy';
    my $body = qq({"domain":"bench","descriptors":[{"entries":[{"key":"$self->{unit}","value":"$pattern"}]}]});
    return "POST /json HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " . length($body) . "\r\n\r\n$body";
}

# Its windows of a minute begin with the clock's: 10 s after the clients begin.
sub window_delay {
    my ($self) = @_;
    return $self->{kind} eq 'envoy' ? 60 - fmod(time + 10, 60) : 0;
}

sub stop {
    my ($self) = @_;
    $_->stop for @{ $self->{servers} };
    $self->{redis}->stop if $self->{redis};
    delete $self->{proxy};
    return;
}

1;
