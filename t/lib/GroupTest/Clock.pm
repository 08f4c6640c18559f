# SPDX-License-Identifier: Apache-2.0
# A proxy before a Redis whose clock it sets: the script of the hosts reads the time of the
# server and adds what the server keeps under the name `shift`.
#
#   my $clock = GroupTest::Clock->new($redis); $clock->{port}
#   $clock->set(11_000)     # milliseconds ahead
package GroupTest::Clock;
use strict;
use warnings;

use AgentTest::Child;
use Carp qw(croak);
use IO::Select;
use IO::Socket::INET;

my $TIME = 'local now = clock[1] * 1000 + math.floor(clock[2] / 1000)';

sub new {
    my ($class, $redis) = @_;
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 64) // croak "listen: $@";
    my $child = AgentTest::Child->serve($listener, sub { forward($_[0], $redis->{port}) });
    return bless { port => $listener->sockport, child => $child, redis => $redis }, $class;
}

sub set {
    my ($self, $ms) = @_;
    ($self->{redis}->run('SET', 'shift', $ms) // '') =~ /OK/ or croak 'Redis does not answer';
    return;
}

# Until one side closes. The host sends the script before all calls, and waits for its reply.
sub forward {
    my ($client, $port) = @_;
    my $redis = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") // return;
    my $select = IO::Select->new($client, $redis);
    my $loading = '';
    while (my @ready = $select->can_read) {
        for my $from (@ready) {
            sysread $from, my ($bytes), 65_536 or return;
            if ($from == $client && ($loading ne '' || $bytes =~ /\r\nSCRIPT\r\n/)) {
                $bytes = change_script($loading .= $bytes) // next;
                $loading = '';
            }
            my $to = $from == $client ? $redis : $client;
            while (length $bytes) {
                my $written = syswrite($to, $bytes) // return;
                substr $bytes, 0, $written, '';
            }
        }
    }
    return;
}

# The bytes of SCRIPT LOAD with another clock; undef: they are not all there.
sub change_script {
    my ($bytes) = @_;
    my ($head, $length, $script) = $bytes =~ /\A(.*\r\nLOAD\r\n)\$(\d+)\r\n(.*)\z/s or return;
    return if length $script < $length + 2;
    $script =~ s/\Q$TIME\E/$TIME + (redis.call('GET', 'shift') or 0)/ or croak 'the script has no clock';
    return $head . '$' . (length($script) - 2) . "\r\n$script";
}

1;
