# SPDX-License-Identifier: Apache-2.0
# A proxy before a Redis that holds each report of marks for 0.3 seconds:
#
#   my $slow = GroupTest::SlowReports->new($redis->{port}); $slow->{port}
package GroupTest::SlowReports;
use strict;
use warnings;

use AgentTest::Child;
use Carp qw(croak);
use IO::Select;
use IO::Socket::INET;
use Time::HiRes qw(sleep);

my $DELAY_SEC = 0.3;

sub new {
    my ($class, $port) = @_;
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 64) // croak "listen: $@";
    my $child = AgentTest::Child->serve($listener, sub { forward($_[0], $port) });
    return bless { port => $listener->sockport, child => $child }, $class;
}

# Until one side closes. Reports are sent one at a time.
sub forward {
    my ($client, $port) = @_;
    my $redis = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") // return;
    my $select = IO::Select->new($client, $redis);
    while (my @ready = $select->can_read) {
        for my $from (@ready) {
            sysread $from, my ($bytes), 65_536 or return;
            sleep $DELAY_SEC if $from == $client && $bytes =~ /\r\nreport\r\n/;
            my $to = $from == $client ? $redis : $client;
            while (length $bytes) {
                my $written = syswrite($to, $bytes) // return;
                substr $bytes, 0, $written, '';
            }
        }
    }
    return;
}

1;
