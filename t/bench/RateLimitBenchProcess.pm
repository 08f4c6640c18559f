# SPDX-License-Identifier: Apache-2.0
# A compared server: a process on the processors of the servers, with a folder and a
# port of its own. Parent of the classes of servers.
#
#   my $self = RateLimitBenchProcess::make($class, start_sec => 10, end_signal => 'TERM');
#   $self->run(\%environment, @command); $self->wait_for_port;
#   $self->port; $self->stop;
package RateLimitBenchProcess;
use strict;
use warnings;
use AgentTest::Env qw(free_port slurp);
use Exporter 'import';
use File::Temp qw(tempdir);
use IO::Socket::INET;
use POSIX ();
use Time::HiRes qw(sleep);

our @EXPORT_OK = qw(server_cpus client_cpus);

# Servers have one half of the processors and clients the other (taskset):
# contention would vary more than the measured differences.
my $CPUS = qx(nproc);
sub server_cpus { return $CPUS > 1 ? '0-' . (int($CPUS / 2) - 1) : '0' }
sub client_cpus { return $CPUS > 1 ? int($CPUS / 2) . '-' . ($CPUS - 1) : '0' }

sub make {
    my ($class, %args) = @_;
    my $dir = tempdir('/tmp/ratelimit-bench.XXXXXX', CLEANUP => 1);
    chmod 0755, $dir or die "$dir: $!\n";
    return bless { %args, dir => $dir, port => free_port(), owner => $$ }, $class;
}

sub port { return $_[0]{port} }

sub run {
    my ($self, $environment, @command) = @_;
    $self->{pid} = fork // die "fork: $!\n";
    return if $self->{pid};
    $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);
    @ENV{ keys %{$environment} } = values %{$environment};
    # Its output goes to a file: the report is on stdout.
    open STDOUT, '>', "$self->{dir}/output";
    open STDERR, '>&', \*STDOUT;
    { exec 'taskset', '-c', server_cpus(), @command }
    POSIX::_exit(127);
}

sub wait_for_port {
    my ($self) = @_;
    for (1 .. $self->{start_sec} * 20) {
        sleep 0.05;
        $self->give_up('has ended') if waitpid($self->{pid}, POSIX::WNOHANG()) == $self->{pid};
        return if IO::Socket::INET->new(PeerAddr => "127.0.0.1:$self->{port}");
    }
    return $self->give_up('does not listen');
}

sub give_up {
    my ($self, $what) = @_;
    die "a server $what: " . join('', map { slurp("$self->{dir}/$_") } qw(output error_log)) . "\n";
}

sub stop {
    my ($self) = @_;
    return if $self->{owner} != $$ || !$self->{pid};
    kill $self->{end_signal} => $self->{pid};
    waitpid delete $self->{pid}, 0;
    return;
}

sub DESTROY {
    my ($self) = @_;
    local ($?, $@, $!);
    $self->stop;
    return;
}

1;
