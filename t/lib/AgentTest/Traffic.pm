# SPDX-License-Identifier: Apache-2.0
# The bytes that cross the loopback interface for a port, captured while the object lives:
#
#   my $traffic = AgentTest::Traffic->new($port);    # undef where this user may not
#   ... $traffic->stop; $traffic->sent, $traffic->received    # of the side that has the port
package AgentTest::Traffic;
use strict;
use warnings;
use AgentTest::Env qw(slurp);
use AgentTest::Wait;
use File::Temp qw(tempdir);
use IO::Handle;
use POSIX ();
use Socket qw(SOCK_RAW SOL_SOCKET SO_RCVBUF);

my ($AF_PACKET, $ETH_P_IP, $SO_RCVBUFFORCE) = (17, 0x0800, 33);

sub new {
    my ($class, $port) = @_;
    socket my $socket, $AF_PACKET, SOCK_RAW, unpack('S', pack 'n', $ETH_P_IP) or return;
    setsockopt $socket, SOL_SOCKET, $_, pack 'i', 64 << 20 for SO_RCVBUF, $SO_RCVBUFFORCE;
    my $self = bless { dir => tempdir('/tmp/agent-test-traffic.XXXXXX', CLEANUP => 1), owner => $$ }, $class;
    $self->{pid} = fork // die "fork: $!\n";
    if (!$self->{pid}) {
        eval { capture($socket, $port, $self->{dir}) };
        warn $@ if $@;
        POSIX::_exit(0);
    }
    wait_for('the capture to begin', sub { -e "$self->{dir}/received" });
    return $self;
}

# Each packet is seen twice on the loopback interface, which does not matter here.
sub capture {
    my ($socket, $port, $dir) = @_;
    my @files = map { open my $file, '>', "$dir/$_" or die "$dir/$_: $!\n"; $file->autoflush; $file } qw(sent received);
    my $ends = 0;
    local $SIG{TERM} = sub { $ends = 1 };
    while (!$ends) {
        defined recv $socket, my $packet, 70_000, 0 or next;
        # Ethernet, IPv4 of any header length, TCP.
        next if length $packet < 54 || ord(substr $packet, 23, 1) != 6;
        my $tcp = 14 + 4 * (ord(substr $packet, 14, 1) & 15);
        my ($from, $to) = unpack 'nn', substr $packet, $tcp, 4;
        my $file = $from == $port ? $files[0] : $to == $port ? $files[1] : next;
        print {$file} substr $packet, $tcp + 4 * (ord(substr $packet, $tcp + 12, 1) >> 4);
    }
    return;
}

sub stop {
    my ($self) = @_;
    my $pid = delete $self->{pid} or return;
    kill TERM => $pid;
    waitpid $pid, 0;
    return;
}

sub sent     { return slurp("$_[0]{dir}/sent") }
sub received { return slurp("$_[0]{dir}/received") }

sub DESTROY {
    my ($self) = @_;
    local $?;
    $self->stop if $self->{owner} == $$;
    return;
}

1;
