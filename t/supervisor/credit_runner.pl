#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# A runner whose runs misuse credit, as their input says: {"do": "request"}.
use strict;
use warnings;
use JSON::PP ();

my $LONG = 70_000;
my $json = JSON::PP->new->utf8;
my %runs;

my $text = '';

sub send_line { my ($message) = @_; $text .= $json->encode($message) . "\n"; return }
sub send_of { my ($run, %members) = @_; return send_line({ run_id => $run->{run_id}, epoch => $run->{epoch}, %members }) }
sub event { my ($run, $data) = @_; return send_of($run, type => 'event', event => 'custom', data => $data) }
sub want { my ($run, $bytes) = @_; return send_of($run, type => 'want', bytes => $bytes) }

# The lines that answer a message are written at once, so that the supervisor
# reads short ones together.
sub flush {
    while (length $text) {
        my $done = syswrite OUT, $text or exit 1;
        substr $text, 0, $done, '';
    }
    return;
}

sub end {
    my ($run) = @_;
    delete $runs{ $run->{run_id} };
    return send_of($run, type => 'end', status => 'success', error => undef);
}

my %actions = (
    # Requests credit for the longest line and does not send it.
    request => sub { want($_[0], 8 * 1024 * 1024) },
    # The same, and sends an event when it has the credit.
    reserve => sub { want($_[0], 8 * 1024 * 1024) },
    request_twice => sub { want($_[0], $LONG); want($_[0], $LONG) },
    # Pings are numbered from 1.
    pong => sub { send_line({ type => 'pong', id => 0 }) },
    send => sub { want($_[0], $LONG + 1000) },
    send_large => sub { want($_[0], 8 * 1024 * 1024) },
    send_without => sub { event($_[0], 'x' x $LONG); end($_[0]) },
    # Waits until `prompt` sends its lines.
    send_and_request => sub { },
    noop => sub { end($_[0]) },
    prompt => sub {
        for my $other (grep { $_->{input}{do} eq 'send_and_request' } values %runs) {
            event($other, 'x' x $LONG);
            want($other, 8 * 1024 * 1024);
        }
        end($_[0]);
    },
);

my %messages = (
    hello => sub { send_line({ type => 'ready', graphs => { map { $_ => {} } keys %{ $_[0]{graphs} } }, slots => 100 }) },
    ping => sub { send_line({ type => 'pong', id => $_[0]{id} }) },
    start => sub {
        my ($run) = @_;
        $runs{ $run->{run_id} } = $run;
        event($run, 'begun');
        my $action = $run->{input}{once} && $run->{attempt} > 1 ? 'noop' : $run->{input}{do};
        $actions{$action}->($run);
    },
    go => sub {
        my $run = $runs{ $_[0]{run_id} } or return;
        my $action = $run->{input}{do};
        event($run, 'reserved') if $action eq 'reserve';
        if ($action =~ /\Asend(_large)?\z/) {
            event($run, 'x' x ($1 ? 8_000_000 : $LONG));
            end($run);
        }
    },
    cancel => sub { end($runs{ $_[0]{run_id} }) if $runs{ $_[0]{run_id} } },
    drain => sub { },
);

open IN, '<&=', 3 or die "3: $!\n";
open OUT, '>&=', 4 or die "4: $!\n";
while (my $line = <IN>) {
    my $message = $json->decode($line);
    $messages{ $message->{type} }->($message);
    flush();
}
