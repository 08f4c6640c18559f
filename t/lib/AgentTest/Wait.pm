# SPDX-License-Identifier: Apache-2.0
# Waiting for what a test caused, instead of sleeping and hoping.
package AgentTest::Wait;
use strict;
use warnings;
use Carp qw(croak);
use Exporter 'import';
use List::Util qw(min);
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC usleep);

our @EXPORT = qw(wait_for);

# Between two polls, doubled up to the second: a condition often starts psql,
# which would take a core from what it waits for.
my $FIRST_PAUSE_USEC = 5_000;
my $LAST_PAUSE_USEC  = 40_000;
# Ends a test that hangs; no test passes or fails by how long something takes.
my $LIMIT_SEC = 120;

# wait_for('what it is', sub { ... } [, seconds]): returns the first true
# value of the sub; croaks with what it was waiting for when time is up.
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
