# SPDX-License-Identifier: Apache-2.0
# Receives webhooks on 127.0.0.1, sends the given answers and logs the requests:
#
#   my $receiver = AgentTest::Receiver->new(500, 200);   # the last one repeats
#   ... webhook => $receiver->url('/x')
#   my ($first) = $receiver->wait_requests(1);
#   $first->{method}, {path}, {headers}{'webhook-id'}, {body}, {connection}
#
# An answer is a status or a hash: status, headers (text with line ends), body,
# hang (the request is read and never answered), stall (nothing follows the
# head), keep (the connection stays).
package AgentTest::Receiver;
use strict;
use warnings;
use AgentTest::Env qw(free_port slurp);
use AgentTest::Wait;
use Carp qw(croak);
use File::Temp qw(tempfile);
use IO::Select;
use IO::Socket::INET;
use Cpanel::JSON::XS;
use POSIX ();

sub new {
    my ($class, @answers) = @_;
    my (undef, $log) = tempfile('/tmp/agent-test-hooks.XXXXXX');
    my $self = bless { log => $log, owner => $$ }, $class;
    return $self->start(@answers);
}

sub port { return $_[0]{port} }
sub url  { my ($self, $path) = @_; return "http://127.0.0.1:$self->{port}" . ($path // '/') }

# Listens, after a stop on the same port again.
sub start {
    my ($self, @answers) = @_;
    my $listener = IO::Socket::INET->new(Listen => 64, LocalAddr => '127.0.0.1',
        LocalPort => $self->{port} //= free_port(), ReuseAddr => 1) or croak "listen: $!";
    $self->{pid} = fork // croak "fork: $!";
    if (!$self->{pid}) {
        # Not exit: this process must not clean up after the test.
        eval { serve($listener, $self->{log}, @answers ? @answers : 200) };
        warn $@ if $@;
        POSIX::_exit(0);
    }
    return $self;
}

sub stop {
    my ($self) = @_;
    if ($self->{pid}) {
        kill KILL => $self->{pid};
        waitpid delete $self->{pid}, 0;
    }
    return;
}

# All requests so far.
sub requests { return grep { $_->{method} } $_[0]->log_lines }

# The number of connections.
sub connections { return scalar grep { $_->{connection} && !$_->{method} } $_[0]->log_lines }

# The number of bytes of each answer that were written.
sub sent { return map { $_->{sent} // () } $_[0]->log_lines }

# Without a line that is being written.
sub log_lines {
    my ($self) = @_;
    return map { decode_json($_) } slurp($self->{log}) =~ /^(.*)\n/mg;
}

sub wait_requests {
    my ($self, $count, $seconds) = @_;
    wait_for("$count requests", sub { $self->requests >= $count }, $seconds);
    return $self->requests;
}

# ---- the process that listens ----

sub serve {
    my ($listener, $log, @answers) = @_;
    my $select = IO::Select->new($listener);
    my (%bytes, %number, $connections);
    local $SIG{PIPE} = 'IGNORE';
    while (my @ready = $select->can_read) {
        for my $socket (@ready) {
            if ($socket == $listener) {
                my $client = $listener->accept or next;
                $select->add($client);
                $bytes{$client} = '';
                $number{$client} = ++$connections;
                log_line($log, { connection => $connections });
                next;
            }
            if (!sysread $socket, $bytes{$socket}, 65_536, length $bytes{$socket}) {
                $select->remove($socket);
                close $socket;
                next;
            }
            my $request = parse($bytes{$socket}) or next;
            $bytes{$socket} = '';
            $request->{connection} = $number{$socket};
            log_line($log, $request);
            my $answer = @answers > 1 ? shift @answers : $answers[0];
            $answer = { status => $answer } if !ref $answer;
            next if $answer->{hang};
            log_line($log, { sent => reply($socket, $answer) });
            if (!$answer->{keep} && !$answer->{stall}) {
                $select->remove($socket);
                close $socket;
            }
        }
    }
    return;
}

# A complete request.
sub parse {
    my ($bytes) = @_;
    my ($head, $body) = $bytes =~ /\A(.*?)\r\n\r\n(.*)\z/s or return;
    my ($first, @lines) = split /\r\n/, $head;
    my %headers = map { /\A([^:]+):\s*(.*)\z/ ? (lc $1 => $2) : () } @lines;
    return if length $body < ($headers{'content-length'} // 0);
    my ($method, $path) = split / /, $first;
    return { method => $method, path => $path, headers => \%headers, body => $body };
}

# The body is kept as bytes: each is one character of the JSON text.
sub log_line {
    my ($log, $request) = @_;
    open my $out, '>>', $log or die "$log: $!\n";
    print {$out} encode_json($request), "\n";
    close $out or die "$log: $!\n";
    return;
}

# Returns the bytes that were written.
sub reply {
    my ($socket, $answer) = @_;
    my $sent = 0;
    my $body = $answer->{body} // '';
    my $bytes = "HTTP/1.1 $answer->{status} Said\r\nContent-Length: " . length($body) . "\r\n"
        . ($answer->{keep} ? '' : "Connection: close\r\n") . ($answer->{headers} // '')
        . "\r\n" . ($answer->{stall} ? '' : $body);
    while ($sent < length $bytes) {
        $sent += syswrite($socket, $bytes, length($bytes) - $sent, $sent) || last;
    }
    return $sent;
}

sub DESTROY {
    my ($self) = @_;
    return if $self->{owner} != $$;
    local ($?, $@, $!);
    $self->stop;
    unlink $self->{log};
    return;
}

1;
