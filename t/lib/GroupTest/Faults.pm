# SPDX-License-Identifier: Apache-2.0
# Faults of hosts, of the network and of the store, under clients that send to all hosts:
#
#   my $faults = GroupTest::Faults->new(failure => 'local');
#   my $result = $faults->run('answers are lost', $seconds)
#   # {requests, admitted, wrongful, most}: `most` of the whole run so far; shares, admissions of
#   # hosts that were cut off, by their shares, for each path; and evicted, the keys of the region that the
#   # store has evicted
#   GroupTest::Faults->names, ->names_of_cuts
#   GroupTest::Faults->cut_sec($interval)     # until a host that is cut off admits its share, and T
package GroupTest::Faults;
use strict;
use warnings;

use AgentTest::Process;
use AgentTest::Wait;
use List::Util qw(max);
use RateLimitTest;
use GroupTest;
use GroupTest::Cluster;
use GroupTest::OldRedis;
use GroupTest::Proxy;
use GroupTest::Redis;
use GroupTest::Sentinel;
use GroupTest::Traffic;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my $HOSTS = 4;
# 10 requests in each; the shares of the shorter one are admitted in shorter faults.
my %INTERVALS = ('/ten' => 10, '/two' => 2);
# Longer than any fault: what ends the use of a share is the answer of the store.
my $SHARE_SEC = 300;
# Until a call that was sent before a host was cut off has an answer, or none that is used.
my $IN_FLIGHT_SEC = 1;
# Data of others in the store, twice as much as fits.
my ($OTHERS, $OTHER_BYTES) = (40, 100_000);

# With a third value: hosts are cut off for all of the time.
my @FAULTS = (
    [ 'none'                                     => sub { return } ],
    [ 'calls and answers up to 0.8 s late'       => sub { $_[0]->disturb('delay', 800) } ],
    [ 'connections are cut'                      => sub { $_[0]->disturb('cut', 5) } ],
    [ 'answers end in their middle'              => sub { $_[0]->disturb('half', 5) } ],
    [ 'answers come twice'                       => sub { $_[0]->disturb('repeat', 5) } ],
    [ 'answers are lost'                         => sub { $_[0]->disturb('lose', 5) } ],
    [ 'one host after the other is cut off, packets come later' => sub { $_[0]->one_by_one('hold') } ],
    [ 'one host after the other has a black hole' => sub { $_[0]->one_by_one('hole') } ],
    [ 'one host is cut off'                      => sub { $_[0]->cut_off('hold', 0) }, 1 ],
    [ 'all hosts are cut off'                    => sub { $_[0]->cut_off('hold', 0 .. $HOSTS - 1) }, 1 ],
    [ 'kill -9 of the store, which starts again' => sub { $_[0]->kill_store } ],
    [ 'kill -9 of the store, which is away'      => sub { $_[0]->stop_store }, 1 ],
    [ 'the store is emptied (FLUSHALL)'          => sub { $_[0]->repeat(sub { $_[0]{redis}->run('FLUSHALL') }) } ],
    [ 'keys are evicted (allkeys-lru)'           => sub { $_[0]->evict } ],
    [ 'the password changes, and is set back'    => sub { $_[0]->change_password } ],
    [ 'an old version in its place'              => sub { $_[0]->put_old } ],
    [ 'kill -9 of children of httpd'             => sub { $_[0]->repeat(\&kill_child) } ],
    [ 'kill -9 of a host, which starts again'    => sub { $_[0]->kill_host } ],
);

# Of another store.
my %FAULTS_OF = (
    server => \@FAULTS,
    sentinel => [
        [ 'Sentinel: the primary is killed, failover' => sub { $_[0]->fail_over } ],
    ],
    cluster => [
        [ 'Cluster: slots move' => sub { $_[0]->move_slots } ],
        [ 'Cluster: a primary is killed, failover' => sub { $_[0]->kill_node } ],
    ],
);

sub names { return map { $_->[0] } @{ $FAULTS_OF{ $_[1] // 'server' } } }

sub names_of_cuts { return map { $_->[0] } grep { $_->[2] } @FAULTS }

# W + T, rounded up, and a second in which requests come.
sub cut_sec { return 2 * $_[1] + 8 }

# store => 'server', 'sentinel' or 'cluster'; failure => RateLimitStoreFailure
sub new {
    my ($class, %args) = @_;
    my $kind = $args{store} // 'server';
    my $self = bless { faults => $FAULTS_OF{$kind} }, $class;
    my %store = $kind eq 'sentinel' ? $self->start_sentinel : $kind eq 'cluster' ? $self->start_cluster : $self->start_server;
    my $failure = $args{failure} // 'local';
    $self->{region} = GroupTest->new(hosts => $HOSTS, %store, rules => <<"CONF")->start;
RateLimitRule ten =/ten key=api-key us=10/10
RateLimitRule two =/two key=api-key us=10/2
RateLimitStoreFailure $failure
RateLimitStoreShareTime ${SHARE_SEC}s
CONF
    $self->{traffic} = GroupTest::Traffic->new(ports => [ map { $_->{port} } @{ $self->{region}{hosts} } ],
        limit => 10, intervals => \%INTERVALS);
    return $self;
}

sub start_server {
    my ($self) = @_;
    $self->{redis} = GroupTest::Redis->new;
    $self->{proxy} = GroupTest::Proxy->new(ports => $HOSTS, to => $self->{redis}{port});
    return (store => $self->{redis}, ports => $self->{proxy}{ports});
}

sub start_sentinel {
    my ($self) = @_;
    my @fast = ('--repl-diskless-sync-delay', 0);
    $self->{redis} = GroupTest::Redis->new(options => \@fast);
    $self->{replica} = GroupTest::Redis->new(options => [ @fast, '--replicaof', "127.0.0.1 $self->{redis}{port}" ]);
    $self->wait_for_replica;
    $self->{sentinel} = GroupTest::Sentinel->new(primary => $self->{redis});
    return (store => $self->{redis}, url => $self->{sentinel}->url);
}

sub wait_for_replica {
    my ($self) = @_;
    wait_for('the replica', sub { ($self->{replica}->run('INFO', 'replication') // '') =~ /master_link_status:up/ });
    return;
}

sub start_cluster {
    my ($self) = @_;
    $self->{cluster} = GroupTest::Cluster->new;
    return (store => $self->{cluster}, url => $self->{cluster}->url);
}

# The fault lasts for as many seconds, and some that it may take; then the region recovers
# for half as long.
sub run {
    my ($self, $name, $seconds) = @_;
    my ($fault) = grep { $_->[0] eq $name } @{ $self->{faults} };
    $self->{seconds} = $seconds;
    $self->{evicted} = 0;
    $self->{cuts} = [];
    $self->{traffic}->start;
    $fault->[1]->($self);
    $self->pause($name eq 'none' ? 1 : 0.5);
    $self->{traffic}->stop;
    my $log = $self->{traffic}->log;
    return { requests => scalar @{$log}, admitted => scalar(grep { $_->{admitted} } @{$log}), shares => $self->count_shares($log),
        wrongful => $self->{traffic}->wrongful($log), most => $self->{traffic}->most, evicted => $self->{evicted} };
}

# Limits up to 64 have no leases: a host that is cut off admits by its share or not at all.
sub count_shares {
    my ($self, $log) = @_;
    my %count = map { $_ => 0 } keys %INTERVALS;
    for my $cut (@{ $self->{cuts} }) {
        my ($host, $from, $to) = @{$cut};
        $count{ $_->{path} }++
            for grep { $_->{admitted} && $_->{host} == $host && $_->{before} >= $from + $IN_FLIGHT_SEC && $_->{after} <= $to } @{$log};
    }
    return \%count;
}

# A part of the fault's time, under load: the interval is under test.
sub pause {
    my ($self, $part) = @_;
    wait_ms(1000 * $self->{seconds} * $part);
    return;
}

sub disturb {
    my ($self, $fault, $value) = @_;
    $self->{proxy}->set_all($fault, $value);
    $self->pause(1);
    $self->{proxy}->set_all('none');
    return;
}

# Records that the hosts had no store during the action.
sub without_store {
    my ($self, $action, @hosts) = @_;
    my $from = clock_gettime(CLOCK_MONOTONIC);
    $action->();
    my $to = clock_gettime(CLOCK_MONOTONIC);
    push @{ $self->{cuts} }, map { [ $_, $from, $to ] } @hosts;
    return;
}

sub cut_off {
    my ($self, $fault, @hosts) = @_;
    $self->{proxy}->set($_, $fault) for @hosts;
    $self->without_store(sub { $self->pause(1) }, @hosts);
    $self->{proxy}->set($_, 'none') for @hosts;
    return;
}

sub stop_store {
    my ($self) = @_;
    $self->{redis}->stop;
    $self->without_store(sub { $self->pause(1) }, 0 .. $HOSTS - 1);
    $self->{redis}->start;
    return;
}

sub one_by_one {
    my ($self, $fault) = @_;
    for my $host (0 .. $HOSTS - 1) {
        $self->{proxy}->set($host, $fault);
        $self->pause(1 / $HOSTS);
        $self->{proxy}->set($host, 'none');
    }
    return;
}

sub repeat {
    my ($self, $action) = @_;
    for (1 .. 4) {
        $action->($self);
        $self->pause(1 / 4);
    }
    return;
}

sub kill_store {
    my ($self) = @_;
    $self->repeat(sub { $self->{redis}->stop; $self->{redis}->start });
    return;
}

# More data than fits, of others. The time of the last use has steps of a second, by which
# these keys are as old as those of the region: of both, some are evicted.
sub evict {
    my ($self) = @_;
    my $redis = $self->{redis};
    my $evicted = $redis->watch_evictions;
    my ($used) = ($redis->run('INFO', 'memory') // '') =~ /^used_memory:(\d+)/m;
    $redis->run('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
    $redis->run('CONFIG', 'SET', 'maxmemory', $used + $OTHER_BYTES * $OTHERS / 2);
    $self->repeat(sub {
        $redis->run('EVAL', q(for i = 1, ARGV[1] do redis.call('SET', 'other' .. i, string.rep('x', ARGV[2])) end return 1), 0,
            $OTHERS, $OTHER_BYTES);
    });
    $redis->run('CONFIG', 'SET', 'maxmemory', '0');
    $self->{evicted} = grep { /\Arlr:/ } $evicted->();
    return;
}

sub change_password {
    my ($self) = @_;
    $self->{redis}->run('CONFIG', 'SET', 'requirepass', 'another');
    $self->{proxy}->set_all('refuse');
    $self->{proxy}->set_all('none');
    $self->pause(1);
    local $self->{redis}{password} = 'another';
    $self->{redis}->run('CONFIG', 'SET', 'requirepass', '');
    return;
}

sub put_old {
    my ($self) = @_;
    my $old = GroupTest::OldRedis->new('6.0.16');
    $self->{proxy}->set_all('to', $old->{port});
    $self->pause(1);
    $self->{proxy}->set_all('to', $self->{redis}{port});
    return;
}

sub kill_child {
    my ($self) = @_;
    for my $host (@{ $self->{region}{hosts} }) {
        my ($child) = AgentTest::Process::httpd_children($host->httpd_pid);
        kill 'KILL', $child if $child;
    }
    return;
}

# The former primary comes back as a replica.
sub fail_over {
    my ($self) = @_;
    $self->{redis}->stop;
    $self->{sentinel}->wait_for_primary($self->{replica});
    @{$self}{qw(redis replica)} = @{$self}{qw(replica redis)};
    $self->pause(1);
    $self->{replica}->start;
    $self->{replica}->run('REPLICAOF', '127.0.0.1', $self->{redis}{port});
    $self->wait_for_replica;
    return;
}

sub move_slots {
    my ($self) = @_;
    $self->repeat(sub {
        for my $partition (map { "rlr:{$_}" } 0 .. 15) {
            my ($to) = grep { $_ != $self->{cluster}->owner($partition) } @{ $self->{cluster}{nodes} }[1, 2];
            $self->{cluster}->begin_move($partition, $to)->();
        }
    });
    return;
}

sub kill_node {
    my ($self) = @_;
    my ($first) = @{ $self->{cluster}{nodes} };
    $self->{cluster}->begin_move($_, $first)->() for grep { $self->{cluster}->owner($_) != $first } map { "rlr:{$_}" } 0 .. 15;
    $self->pause(1 / 2);
    $first->stop;
    $self->pause(1);
    return;
}

# A host is all of its processes.
sub kill_host {
    my ($self) = @_;
    my $host = $self->{region}{hosts}[0];
    my $parent = $host->httpd_pid;
    my @all = ($parent, AgentTest::Process::httpd_children($parent));
    kill 'KILL', @all;
    wait_for('the end of the host', sub { !grep { AgentTest::Process::is_alive($_) } @all });
    # httpd would not start beside a process of that number, even one that has ended.
    unlink $host->pid_file;
    $host->start;
    $self->pause(1);
    return;
}

1;
