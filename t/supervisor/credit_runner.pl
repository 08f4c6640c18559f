#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# A runner whose runs misuse credit, as their input says: {"do": "request"}.
use strict;
use warnings;
use ScriptedRunner;

my $LONG = 70_000;

sub want { my ($run, $bytes) = @_; return send_of($run, type => 'want', bytes => $bytes) }

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
    send_without => sub { event($_[0], 'x' x $LONG); end_run($_[0]) },
    # Waits until `prompt` sends its lines.
    send_and_request => sub { },
    noop => sub { end_run($_[0]) },
    prompt => sub {
        for my $other (grep { $_->{input}{do} eq 'send_and_request' } runs()) {
            event($other, 'x' x $LONG);
            want($other, 8 * 1024 * 1024);
        }
        end_run($_[0]);
    },
);

serve(
    start => sub { act($_[0], \%actions) },
    go => sub {
        my $run = run_of($_[0]) or return;
        my $action = $run->{input}{do};
        event($run, 'reserved') if $action eq 'reserve';
        if ($action =~ /\Asend(_large)?\z/) {
            event($run, 'x' x ($1 ? 8_000_000 : $LONG));
            end_run($run);
        }
    },
);
