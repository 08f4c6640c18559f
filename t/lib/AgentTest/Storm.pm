# SPDX-License-Identifier: Apache-2.0
# Many connections that send a request at the same moment, again and again: for
# races between requests.
#
#   my $storm = AgentTest::Storm->new($client, 32);
#   my @statuses = $storm->round('POST', $path, $body);
package AgentTest::Storm;
use strict;
use warnings;
use Carp qw(croak);

sub new {
    my ($class, $client, $count) = @_;
    my @sockets = map { $client->connection } 1 .. $count;
    return bless { client => $client, sockets => \@sockets }, $class;
}

# Sends the same request on every connection, then reads every answer's status.
sub round {
    my ($self, $method, $path, $body) = @_;
    my $bytes = "$method $path HTTP/1.1\r\nHost: $self->{client}{address}\r\n"
        . 'Content-Length: ' . length($body) . "\r\n\r\n$body";
    for my $socket (@{ $self->{sockets} }) {
        if (!$socket) {
            $socket = $self->{client}->connection;
        }
        syswrite($socket, $bytes) == length $bytes or croak "send: $!";
    }
    return map { $self->read_status($_) } 0 .. $#{ $self->{sockets} };
}

sub read_status {
    my ($self, $index) = @_;
    my $socket = $self->{sockets}[$index];
    my $answer = '';
    my ($head, $length);
    local $SIG{ALRM} = sub { croak "no answer, so far: $answer" };
    alarm 120;
    while (1) {
        sysread $socket, $answer, 65_536, length $answer
            or croak "cut answer: $answer";
        $head = index $answer, "\r\n\r\n";
        next if $head < 0;
        ($length) = $answer =~ /^Content-Length: (\d+)/mi;
        last if length $answer >= $head + 4 + ($length // 0);
    }
    alarm 0;
    # httpd ends a connection from time to time: the next round gets a new one.
    if ($answer =~ /^Connection: close/mi) {
        $self->{sockets}[$index] = undef;
    }
    my ($status) = $answer =~ m{\AHTTP/1\.1 (\d+)};
    return $status;
}

1;
