# SPDX-License-Identifier: Apache-2.0
# Sentinels that watch a Redis as the primary `region`:
#
#   my $sentinel = GroupTest::Sentinel->new(primary => $redis, count => 3);
#   $sentinel->url; $sentinel->run(0, @words); $sentinel->stop(0)
#   $sentinel->wait_for_primary($redis)  # until more than half name it
package GroupTest::Sentinel;
use strict;
use warnings;

use AgentTest::Env qw(free_port write_file);
use AgentTest::Wait;
use File::Temp qw(tempdir);
use GroupTest::Redis;

sub new {
    my ($class, %args) = @_;
    my $self = bless { servers => [] }, $class;
    my $count = $args{count} // 3;
    my $quorum = int($count / 2) + 1;
    for (1 .. $count) {
        my $dir = tempdir('/tmp/agent-test-sentinel.XXXXXX', CLEANUP => 1);
        my $file = write_file("$dir/sentinel.conf", <<"CONF");
sentinel monitor region 127.0.0.1 $args{primary}{port} $quorum
sentinel down-after-milliseconds region 1000
sentinel failover-timeout region 3000
CONF
        push @{ $self->{servers} }, GroupTest::Redis->new(config => $file, dir => $dir, options => ['--sentinel']);
    }
    my $others = $count - 1;
    # They elect one of them for a failover only once they know each other and the replica.
    wait_for('Sentinels to find each other', sub {
        my @replies = map { $_->run('SENTINEL', 'MASTER', 'region') // '' } @{ $self->{servers} };
        return !grep { !/num-other-sentinels\r\n\$\d+\r\n$others\r\n/ || !/num-slaves\r\n\$\d+\r\n1\r\n/ } @replies;
    });
    return $self;
}

sub url {
    my ($self) = @_;
    return 'redis+sentinel://' . join(',', map { "127.0.0.1:$_->{port}" } @{ $self->{servers} }) . '/region';
}

sub run {
    my ($self, $index, @words) = @_;
    return $self->{servers}[$index]->run(@words);
}

sub stop {
    my ($self, $index) = @_;
    $self->{servers}[$index]->stop;
    return;
}

sub wait_for_primary {
    my ($self, $redis) = @_;
    wait_for('the Sentinels to name the primary', sub {
        my @named = grep { ($_->run('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'region') // '') =~ /\r\n$redis->{port}\r\n/ } @{ $self->{servers} };
        return @named > @{ $self->{servers} } / 2;
    });
    return;
}

1;
