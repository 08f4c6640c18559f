# SPDX-License-Identifier: Apache-2.0
# A proxy between hosts and the store, with a port and a fault for each host:
#
#   my $proxy = GroupTest::Proxy->new(ports => 4, to => $redis->{port});
#   $proxy->{ports}[0]
#   $proxy->set(0, 'delay', 800)    # bytes of both directions arrive up to 0.8 s late
#   'later', 0.5    they arrive 0.5 ms later
#   'cut', 5       5 % of what arrives closes the connection, unforwarded
#   'half', 5      5 % of the answers end in their middle, with the connection
#   'repeat', 5    5 % of the answers come twice
#   'lose', 5      5 % of the answers do not come
#   'hold'         nothing passes, and all of it later
#   'hole'         nothing passes
#   'refuse'       connections are closed at once
#   'to', $port    another store
#   'none'
# The calls return when the fault is in effect.
package GroupTest::Proxy;
use strict;
use warnings;

use AgentTest::Child;
use Carp qw(croak);
use IO::Socket::INET;
use IO::Select;
use Socket qw(AF_UNIX SOCK_STREAM PF_UNSPEC);
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my $BYTES = 65_536;

sub new {
    my ($class, %args) = @_;
    my @listeners = map { IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 64) // croak "listen: $@" } 1 .. $args{ports};
    socketpair my $control, my $mine, AF_UNIX, SOCK_STREAM, PF_UNSPEC or croak "socketpair: $!";
    my $child = AgentTest::Child->new(sub {
        close $control;
        local $SIG{PIPE} = 'IGNORE';
        my @sides = map { { listener => $_, to => $args{to}, fault => 'none', value => 0 } } @listeners;
        GroupTest::Proxy::Loop->new($mine, @sides)->run;
    });
    close $mine;
    return bless { ports => [ map { $_->sockport } @listeners ], control => $control, child => $child }, $class;
}

sub set {
    my ($self, $index, $fault, $value) = @_;
    syswrite $self->{control}, join(' ', $index, $fault, $value // 0) . "\n";
    sysread $self->{control}, my ($done), 1 or croak 'the proxy has ended';
    return;
}

sub set_all {
    my ($self, $fault, $value) = @_;
    $self->set($_, $fault, $value) for 0 .. $#{ $self->{ports} };
    return;
}

# The process. A stream is one direction of a connection: {from, to, side, is_answer, other,
# in: bytes that are not a whole answer yet, held: [[when, bytes], ...]}.
package GroupTest::Proxy::Loop;
use strict;
use warnings;

use IO::Socket::INET;
use IO::Select;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

sub new {
    my ($class, $control, @sides) = @_;
    my $self = bless { control => $control, sides => \@sides, streams => {}, select => IO::Select->new($control) }, $class;
    $self->{select}->add($_->{listener}) for @sides;
    return $self;
}

sub run {
    my ($self) = @_;
    my %side_of = map { fileno $_->{listener}, $_ } @{ $self->{sides} };
    while (1) {
        for my $ready ($self->{select}->can_read($self->next_due)) {
            my $number = fileno $ready // next;
            if ($ready == $self->{control}) {
                $self->obey or return;
            }
            elsif ($side_of{$number}) {
                $self->accept_one($side_of{$number});
            }
            elsif ($self->{streams}{$number}) {
                $self->read_from($self->{streams}{$number});
            }
        }
        $self->deliver;
    }
    return;
}

sub now { return clock_gettime(CLOCK_MONOTONIC) }

# Seconds until held bytes are due; undef: none are.
sub next_due {
    my ($self) = @_;
    my $next;
    for my $stream (values %{ $self->{streams} }) {
        next if !@{ $stream->{held} } || $stream->{side}{fault} eq 'hold';
        my $when = $stream->{held}[0][0];
        $next = $when if !defined $next || $when < $next;
    }
    return if !defined $next;
    my $left = $next - now();
    return $left > 0 ? $left : 0;
}

sub obey {
    my ($self) = @_;
    my $line = '';
    while ($line !~ /\n/) {
        sysread $self->{control}, $line, 1, length $line or return 0;
    }
    my ($index, $fault, $value) = split ' ', $line;
    my $side = $self->{sides}[$index];
    if ($fault eq 'to') {
        $side->{to} = $value;
        $fault = 'refuse';
    }
    # The bytes in a hole are lost, and their connections with them.
    if ($fault eq 'refuse' || $side->{fault} eq 'hole') {
        my @ended = grep { $_->{side} == $side } values %{ $self->{streams} };
        $self->close_stream($_) for @ended;
        $fault = 'none' if $line =~ / to /;
    }
    @{$side}{qw(fault value)} = ($fault, $value);
    syswrite $self->{control}, '.';
    return 1;
}

sub accept_one {
    my ($self, $side) = @_;
    my $host = $side->{listener}->accept // return;
    return if $side->{fault} eq 'refuse';
    my $store = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$side->{to}") // return;
    my $calls = { from => $host, to => $store, side => $side, is_answer => 0, in => '', held => [] };
    my $answers = { from => $store, to => $host, side => $side, is_answer => 1, in => '', held => [], other => $calls };
    $calls->{other} = $answers;
    for my $stream ($calls, $answers) {
        $self->{streams}{ fileno $stream->{from} } = $stream;
        $self->{select}->add($stream->{from});
    }
    return;
}

sub close_stream {
    my ($self, $stream) = @_;
    my @both = ($stream, $stream->{other} // ());
    for my $one (@both) {
        my $number = fileno($one->{from}) // next;
        delete $self->{streams}{$number};
        $self->{select}->remove($one->{from});
        close $one->{from};
        delete $one->{other};
    }
    return;
}

sub happens { return rand(100) < $_[0]{value} }

sub read_from {
    my ($self, $stream) = @_;
    my $side = $stream->{side};
    sysread $stream->{from}, my ($bytes), $BYTES or return $self->close_stream($stream);
    return if $side->{fault} eq 'hole';
    return $self->close_stream($stream) if $side->{fault} eq 'cut' && happens($side);
    if (!$stream->{is_answer} || $side->{fault} !~ /\A(?:half|repeat|lose)\z/ && $stream->{in} eq '') {
        return hold($stream, $bytes);
    }
    $stream->{in} .= $bytes;
    while (my $length = answer_length($stream->{in})) {
        my $answer = substr $stream->{in}, 0, $length, '';
        next if $side->{fault} eq 'lose' && happens($side);
        hold($stream, $answer) if $side->{fault} eq 'repeat' && happens($side);
        if ($side->{fault} eq 'half' && happens($side)) {
            hold($stream, substr $answer, 0, $length / 2);
            $self->deliver;
            return $self->close_stream($stream);
        }
        hold($stream, $answer);
    }
    return;
}

# In order: not before what came before.
sub hold {
    my ($stream, $bytes) = @_;
    my $side = $stream->{side};
    my $late_ms = $side->{fault} eq 'delay' ? rand $side->{value} : $side->{fault} eq 'later' ? $side->{value} : 0;
    my $when = now() + $late_ms / 1000;
    my $last = @{ $stream->{held} } ? $stream->{held}[-1][0] : 0;
    push @{ $stream->{held} }, [ $when > $last ? $when : $last, $bytes ];
    return;
}

sub deliver {
    my ($self) = @_;
    # A copy: streams may end.
    for my $stream (my @all = values %{ $self->{streams} }) {
        while (defined fileno $stream->{from} && @{ $stream->{held} } && $stream->{held}[0][0] <= now() && $stream->{side}{fault} ne 'hold') {
            my (undef, $bytes) = @{ shift @{ $stream->{held} } };
            while (length $bytes) {
                my $written = syswrite $stream->{to}, $bytes;
                if (!defined $written) {
                    $self->close_stream($stream);
                    last;
                }
                substr $bytes, 0, $written, '';
            }
        }
    }
    return;
}

# The length of the first answer, 0 if it is not complete.
sub answer_length {
    my ($text) = @_;
    my ($at, $left) = (0, 1);
    while ($left > 0) {
        my $end = index $text, "\r\n", $at;
        return 0 if $end < 0;
        my ($type, $number) = (substr($text, $at, 1), substr $text, $at + 1, $end - $at - 1);
        $at = $end + 2;
        $left--;
        $at += $number + 2 if $type eq '$' && $number >= 0;
        $left += $number if $type eq '*' && $number > 0;
        return 0 if $at > length $text;
    }
    return $at;
}

1;
