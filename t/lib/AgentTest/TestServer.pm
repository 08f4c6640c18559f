# SPDX-License-Identifier: Apache-2.0
# Apache::Test's server object. The stock one sends a request to check that httpd
# is up, and reads the distribution's configuration first; this one connects to the
# port.
package AgentTest::TestServer;
use strict;
use warnings;
use parent 'Apache::TestServer';

use AgentTest::Wait;
use IO::Socket::INET;

sub wait_till_is_up {
    my ($self, $seconds) = @_;
    my $address = $self->{name};
    return eval {
        wait_for('httpd to listen',
            sub { IO::Socket::INET->new(PeerAddr => $address) }, $seconds);
    } ? 1 : 0;
}

1;
