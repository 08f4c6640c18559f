# SPDX-License-Identifier: Apache-2.0
# A client that takes little processor time: one keep-alive connection, each request
# in one write, answers parsed only to find their end.
#
#   my $client = BenchHttp->new($port);
#   my $answer = $client->call(request('POST', '/threads', '{}'));
#   drive([ map { BenchHttp->new($port) } 1 .. 16 ], sub { next request });
package BenchHttp;
use strict;
use warnings;
use Carp qw(croak);
use Exporter 'import';
use IO::Socket::INET;

our @EXPORT_OK = qw(request drive wait_readable);

my $TIMEOUT_SEC = 60;

# The bytes of a request.
sub request {
    my ($method, $path, $body) = @_;
    my $head = "$method $path HTTP/1.1\r\nHost: localhost\r\n";
    return "$head\r\n" if !defined $body;
    return "${head}Content-Type: application/json\r\nContent-Length: "
        . length($body) . "\r\n\r\n$body";
}

sub new {
    my ($class, $port) = @_;
    my $self = bless { port => $port, bytes => '' }, $class;
    $self->connect;
    return $self;
}

sub connect {
    my ($self) = @_;
    $self->{socket} = IO::Socket::INET->new(
        PeerAddr => "127.0.0.1:$self->{port}",
        Timeout  => 10,
    ) // croak "no connection: $!";
    return;
}

sub send {
    my ($self, $bytes) = @_;
    $self->connect if !$self->{socket};
    syswrite($self->{socket}, $bytes) == length $bytes or croak "send: $!";
    return;
}

# Reads once; returns the answer if it is complete.
sub receive {
    my ($self) = @_;
    sysread $self->{socket}, $self->{bytes}, 262_144, length $self->{bytes}
        or croak "cut answer: $self->{bytes}";
    return $self->take_answer;
}

sub take_answer {
    my ($self) = @_;
    my $head = index $self->{bytes}, "\r\n\r\n";
    return if $head < 0 || !$self->is_complete($head + 4);
    my ($status) = $self->{bytes} =~ m{\AHTTP/1\.1 (\d+)};
    my $answer = { status => $status, bytes => $self->{bytes},
        body_at => $head + 4 };
    $self->{socket} = undef
        if substr($self->{bytes}, 0, $head) =~ /^Connection: close/mi;
    $self->{bytes} = '';
    return $answer;
}

# The next request is sent after the answer, so bytes that end like the last
# chunk are the last chunk.
sub is_complete {
    my ($self, $body_at) = @_;
    my $head = substr $self->{bytes}, 0, $body_at;
    return length $self->{bytes} >= $body_at + $1
        if $head =~ /^Content-Length: (\d+)/mi;
    return $self->{bytes} =~ /\r\n0\r\n\r\n\z/
        if $head =~ /^Transfer-Encoding: chunked/mi;
    return $head =~ m{\AHTTP/1\.1 (?:204|304)};
}

# Sends a request and returns its answer. $on_event is called when the first event
# of a stream was read, or the first one of this name.
sub call {
    my ($self, $bytes, $on_event, $name) = @_;
    $name //= qr/\w+/;
    my $event = qr/^event: $name\r?\n.*?^data: .*?\r?\n\r?\n/ms;
    $self->send($bytes);
    while (1) {
        my $answer = $self->receive;
        if ($on_event && ($answer ? $answer->{bytes} : $self->{bytes}) =~ $event) {
            $on_event->();
            undef $on_event;
        }
        return $answer if $answer;
    }
}

# Keeps one request pending on each client. next->($index, $answer) gives the
# bytes of the client's next request, undef when it has none; the answer is
# undef the first time.
sub drive {
    my ($clients, $next) = @_;
    my %index_of;
    my $proceed = sub {
        my ($index, $answer) = @_;
        my $bytes = $next->($index, $answer);
        return if !defined $bytes;
        $clients->[$index]->send($bytes);
        $index_of{ fileno $clients->[$index]{socket} } = $index;
    };
    $proceed->($_, undef) for 0 .. $#{$clients};
    while (%index_of) {
        for my $fd (wait_readable(keys %index_of)) {
            my $index = $index_of{$fd};
            my $answer = $clients->[$index]->receive or next;
            delete $index_of{$fd};
            $proceed->($index, $answer);
        }
    }
    return;
}

sub wait_readable {
    my (@fds) = @_;
    my $set = '';
    vec($set, $_, 1) = 1 for @fds;
    select($set, undef, undef, $TIMEOUT_SEC) > 0
        or croak "no answer in $TIMEOUT_SEC s";
    return grep { vec $set, $_, 1 } @fds;
}

1;
