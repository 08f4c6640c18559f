# SPDX-License-Identifier: Apache-2.0
# A Redis server of a test, without persistence:
#
#   my $redis = GroupTest::Redis->new(password => 'secret', options => [...]);
#   # config => a file, dir => its folder
#   $redis->{port}; $redis->run('FLUSHALL'); $redis->stop; $redis->start; $redis->pid
#   my $evicted = $redis->watch_evictions; $evicted->()    # the names of keys since then
package GroupTest::Redis;
use strict;
use warnings;

use AgentTest::Env qw(free_port slurp);
use AgentTest::Wait;
use Carp qw(croak);
use File::Temp qw(tempdir);
use IO::Socket::INET;

sub new {
    my ($class, %args) = @_;
    my $self = bless { port => free_port(), owner => $$, password => $args{password},
        options => $args{options} // [], config => $args{config}, bus => $args{bus},
        dir => $args{dir} // tempdir('/tmp/agent-test-redis.XXXXXX', CLEANUP => 1) }, $class;
    $self->start;
    return $self;
}

sub start {
    my ($self) = @_;
    my @password = defined $self->{password} ? ('--requirepass', $self->{password}) : ();
    my $pid = fork // croak "fork: $!";
    if ($pid == 0) {
        open STDOUT, '>>', "$self->{dir}/log" and open STDERR, '>&', \*STDOUT;
        exec 'redis-server', (defined $self->{config} ? $self->{config} : ()), '--port', $self->{port}, '--bind', '127.0.0.1', '--save', '',
            '--appendonly', 'no', '--dir', $self->{dir}, @password, @{ $self->{options} };
        exit 127;
    }
    $self->{pid} = $pid;
    wait_for('Redis', sub { ($self->run('PING') // '') =~ /PONG|NOAUTH/ });
    return $self;
}

sub pid { return $_[0]{pid} }

# Sends a command; returns the bytes of a short reply, undef without a server.
sub run {
    my ($self, @words) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$self->{port}", Timeout => 5) // return;
    my @commands = ((defined $self->{password} ? [ 'AUTH', $self->{password} ] : ()), [@words]);
    my $reply;
    for my $command (@commands) {
        syswrite $socket, '*' . @{$command} . "\r\n" . join '', map { '$' . length($_) . "\r\n$_\r\n" } @{$command};
        $reply = '';
        sysread $socket, $reply, 65_536, length $reply or return while $reply !~ /\n/;
    }
    return $reply;
}

# The sub that is returned may be called once.
sub watch_evictions {
    my ($self) = @_;
    $self->run('CONFIG', 'SET', 'notify-keyspace-events', 'Ee');
    my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$self->{port}") // croak "no connection: $!";
    my $received = '';
    # The reply to PING comes after all notifications before it.
    my $read = sub {
        my ($command, $until) = @_;
        syswrite $socket, "$command\r\n";
        while ($received !~ $until) {
            sysread $socket, $received, 65_536, length $received or croak 'Redis has closed the connection';
        }
    };
    $read->('PSUBSCRIBE __keyevent@*__:evicted', qr/:1\r\n/);
    return sub {
        $read->('PING', qr/\r\npong\r\n/);
        return $received =~ /\r\n__keyevent\@\d+__:evicted\r\n\$\d+\r\n(\S+)\r\n/g;
    };
}

sub stop {
    my ($self, $signal) = @_;
    return if !$self->{pid};
    kill $signal // 'KILL', $self->{pid};
    waitpid $self->{pid}, 0;
    $self->{pid} = 0;
    return;
}

sub DESTROY {
    my ($self) = @_;
    return if $self->{owner} != $$;
    local ($?, $!, $@);
    $self->stop;
    return;
}

1;
