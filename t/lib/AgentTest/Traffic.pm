# SPDX-License-Identifier: Apache-2.0
# The bytes that cross the loopback interface for a port, captured while the object lives:
#
#   my $traffic = AgentTest::Traffic->new($port);    # undef where this user may not
#   ... $traffic->stop; $traffic->sent, $traffic->received    # of the side that has the port
#
#   AgentTest::Traffic::isolate();                            # first of all: a network namespace of its own
#   my $rest = AgentTest::Traffic->new_without(@ports);       # all packets of the namespace but those of the ports
#   ... $rest->stop; $rest->sent
package AgentTest::Traffic;
use strict;
use warnings;
use AgentTest::Env qw(slurp);
use AgentTest::Wait;
use File::Temp qw(tempdir);
use IO::Handle;
use POSIX ();
use Socket qw(AF_INET SOCK_DGRAM SOCK_RAW SOL_SOCKET SO_RCVBUF);

my ($AF_PACKET, $ETH_P_ALL, $ETH_P_IP, $SO_RCVBUFFORCE) = (17, 0x0003, 0x0800, 33);
my ($SIOCSIFFLAGS, $IFF_UP) = (0x8914, 1);
my $ISOLATED = 'AGENT_TEST_NETWORK_NAMESPACE';

# Executes the test again in a network namespace with nothing but a loopback interface; true there. False where the user
# may make none: the test goes on in the machine's.
sub isolate {
    if (!$ENV{$ISOLATED}) {
        system('unshare -n true 2>/dev/null') == 0 or return 0;
        local $ENV{$ISOLATED} = 1;
        my @modules = $INC{'AgentTest/Diagnostics.pm'} ? '-MAgentTest::Diagnostics' : ();
        exec 'unshare', '-n', $^X, (map { "-I$_" } @INC), @modules, $0, @ARGV or die "unshare: $!\n";
    }
    socket my $socket, AF_INET, SOCK_DGRAM, 0 or die "socket: $!\n";
    ioctl $socket, $SIOCSIFFLAGS, pack 'a16 s x14', 'lo', $IFF_UP or die "lo: $!\n";
    return 1;
}

sub new { my ($class, $port) = @_; return $class->start($ETH_P_IP, sub { capture(@_, $port) }) }

sub new_without { my ($class, @ports) = @_; return $class->start($ETH_P_ALL, sub { capture_rest(@_, @ports) }) }

sub start {
    my ($class, $protocol, $capture) = @_;
    socket my $socket, $AF_PACKET, SOCK_RAW, unpack('S', pack 'n', $protocol) or return;
    setsockopt $socket, SOL_SOCKET, $_, pack 'i', 64 << 20 for SO_RCVBUF, $SO_RCVBUFFORCE;
    my $self = bless { dir => tempdir('/tmp/agent-test-traffic.XXXXXX', CLEANUP => 1), owner => $$ }, $class;
    $self->{pid} = fork // die "fork: $!\n";
    if (!$self->{pid}) {
        eval { $capture->($socket, $self->{dir}) };
        warn $@ if $@;
        POSIX::_exit(0);
    }
    wait_for('the capture to begin', sub { -e "$self->{dir}/received" });
    return $self;
}

# Calls handle($packet) until this process gets SIGTERM.
sub each_packet {
    my ($socket, $handle) = @_;
    my $ends = 0;
    local $SIG{TERM} = sub { $ends = 1 };
    while (!$ends) {
        my $packet;
        defined recv $socket, $packet, 70_000, 0 or next;
        $handle->($packet);
    }
    return;
}

sub open_files {
    my ($dir) = @_;
    return map { open my $file, '>', "$dir/$_" or die "$dir/$_: $!\n"; $file->autoflush; $file } qw(sent received);
}

# The ports of a packet of TCP over IPv4, and where its TCP header begins; none for another one.
sub read_ports {
    my ($packet) = @_;
    # Ethernet, IPv4 of any header length, TCP.
    return if length $packet < 54 || unpack('n', substr $packet, 12, 2) != $ETH_P_IP || ord(substr $packet, 23, 1) != 6;
    my $tcp = 14 + 4 * (ord(substr $packet, 14, 1) & 15);
    return (unpack('nn', substr $packet, $tcp, 4), $tcp);
}

# Each packet is seen twice on the loopback interface, which does not matter here.
sub capture {
    my ($socket, $dir, $port) = @_;
    my @files = open_files($dir);
    each_packet($socket, sub {
        my ($from, $to, $tcp) = read_ports($_[0]) or return;
        my $file = $from == $port ? $files[0] : $to == $port ? $files[1] : return;
        print {$file} substr $_[0], $tcp + 4 * (ord(substr $_[0], $tcp + 12, 1) >> 4);
    });
    return;
}

# Whole packets, of any protocol.
sub capture_rest {
    my ($socket, $dir, @ports) = @_;
    my ($file) = open_files($dir);
    my %is_left_out = map { $_ => 1 } @ports;
    each_packet($socket, sub {
        my ($from, $to) = read_ports($_[0]);
        print {$file} $_[0] if !defined $from || !($is_left_out{$from} || $is_left_out{$to});
    });
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
