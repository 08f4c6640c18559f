# SPDX-License-Identifier: Apache-2.0
# Many clients in one process, each with a keep-alive connection: their answers,
# and the requests that the server answered by closing the connection.
#
#   my $crowd = AgentTest::Crowd->new($client);
#   my $member = $crowd->add(sub { my ($answer) = @_; return $next_request });
#   $crowd->ask($member, AgentTest::Crowd::request('GET', '/ok'));
#   $crowd->run(sub { $crowd->{answered} >= 100 });
#
# A member's sub gets each answer ({status, headers, body, json}) and returns
# the bytes of its next request, or undef to stay idle. {lost}: requests that
# ended with the connection instead of an answer, or found it closed; such a
# member stays idle.
package AgentTest::Crowd;
use strict;
use warnings;
use AgentTest::Client;
use Carp qw(croak);
use IO::Poll qw(POLLIN POLLHUP POLLERR);
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my $LIMIT_SEC = 300;
# Next requests in flight at most: with more than httpd's threads, less those that
# take turns of waiting requests, httpd itself closes kept connections.
my $NEXT_MAX = 30;

sub new {
    my ($class, $client) = @_;
    return bless { client => $client, poll => IO::Poll->new, answered => 0,
        lost => 0, members => {}, next => [], in_flight => 0 }, $class;
}

sub request {
    my ($method, $path, $body) = @_;
    my $length = defined $body ? 'Content-Length: ' . length($body) . "\r\n" : '';
    return "$method $path HTTP/1.1\r\nHost: localhost\r\n$length\r\n" . ($body // '');
}

sub add {
    my ($self, $on_answer) = @_;
    my $socket = $self->{client}->connection;
    $socket->blocking(0);
    my $member = { socket => $socket, seen => '', on_answer => $on_answer, asks => 0 };
    $self->{members}{ fileno $socket } = $member;
    $self->{poll}->mask($socket => POLLIN);
    return $member;
}

sub ask {
    my ($self, $member, $bytes) = @_;
    local $SIG{PIPE} = 'IGNORE';
    $member->{asks} = 1;
    # A request on a closed connection is lost too: the reader sees the end.
    syswrite $member->{socket}, $bytes;
    return;
}

# The length of the first answer; undef while it is incomplete.
sub answer_length {
    my ($seen) = @_;
    my $head = index $seen, "\r\n\r\n";
    return if $head < 0;
    if (substr($seen, 0, $head) =~ /^Transfer-Encoding: chunked/mi) {
        my $end = index $seen, "\r\n0\r\n\r\n", $head;
        return $end < 0 ? undef : $end + 7;
    }
    my ($length) = substr($seen, 0, $head) =~ /^Content-Length: (\d+)/mi;
    my $all = $head + 4 + ($length // 0);
    return length $seen < $all ? undef : $all;
}

sub end_member {
    my ($self, $member) = @_;
    $self->{lost}++ if $member->{asks};
    $self->end_request($member);
    $member->{closed} = 1;
    $self->{poll}->remove($member->{socket});
    delete $self->{members}{ fileno $member->{socket} };
    close $member->{socket};
    return;
}

sub read_member {
    my ($self, $member) = @_;
    my $count = sysread $member->{socket}, $member->{seen}, 65_536, length $member->{seen};
    return if !defined $count && $!{EAGAIN};
    return $self->end_member($member) if !$count;
    while (defined(my $length = answer_length($member->{seen}))) {
        my $answer = AgentTest::Client::parse_response(
            substr $member->{seen}, 0, $length, '');
        $self->{answered}++;
        $self->end_request($member);
        my $next = $member->{on_answer}->($answer);
        push @{ $self->{next} }, [ $member, $next ] if defined $next;
    }
    $self->ask_next;
    return;
}

sub end_request {
    my ($self, $member) = @_;
    $member->{asks} = 0;
    $self->{in_flight}-- if delete $member->{is_next};
    return;
}

# In the order of their answers.
sub ask_next {
    my ($self) = @_;
    while ($self->{in_flight} < $NEXT_MAX && @{ $self->{next} }) {
        my ($member, $bytes) = @{ shift @{ $self->{next} } };
        # The server closed the connection before the request could be sent.
        $self->{lost}++ if $member->{closed};
        next if $member->{closed};
        $self->{in_flight}++;
        $member->{is_next} = 1;
        $self->ask($member, $bytes);
    }
    return;
}

# Serves all members until the sub returns true.
sub run {
    my ($self, $is_done) = @_;
    my $end = clock_gettime(CLOCK_MONOTONIC) + $LIMIT_SEC;
    while (!$is_done->()) {
        croak "the crowd was not answered: $self->{answered} answers, $self->{lost} lost"
            if clock_gettime(CLOCK_MONOTONIC) > $end;
        $self->{poll}->poll(1);
        for my $socket ($self->{poll}->handles(POLLIN | POLLHUP | POLLERR)) {
            my $member = $self->{members}{ fileno $socket };
            $self->read_member($member) if $member;
        }
    }
    return;
}

1;
