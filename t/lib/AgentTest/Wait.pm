# SPDX-License-Identifier: Apache-2.0
# Waiting for an event, instead of sleeping.
package AgentTest::Wait;
use strict;
use warnings;
use Carp qw(croak);
use Exporter 'import';
use List::Util qw(min);
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC usleep);

our @EXPORT = qw(wait_for);

# The pauses between polls, doubled from the first to the last: a condition often
# starts psql, which would take processor time from the event.
my $FIRST_PAUSE_USEC = 5_000;
my $LAST_PAUSE_USEC  = 40_000;
# Ends a test that hangs; no test depends on how long an event takes.
my $LIMIT_SEC = 120;

# wait_for('the event', sub { ... } [, seconds]): returns the first true value of
# the sub; croaks with the name of the event when time is up.
sub wait_for {
    my ($what, $condition, $seconds) = @_;
    my $end = clock_gettime(CLOCK_MONOTONIC) + ($seconds // $LIMIT_SEC);
    my $pause = $FIRST_PAUSE_USEC;
    while (1) {
        my $value = $condition->();
        return $value if $value;
        croak "gave up waiting for $what"
            if clock_gettime(CLOCK_MONOTONIC) > $end;
        usleep($pause);
        $pause = min(2 * $pause, $LAST_PAUSE_USEC);
    }
}

1;
