# SPDX-License-Identifier: Apache-2.0
# Sends the diagnostics of a Perl test, and its last error, to standard output,
# beside its results, where AgentTest::Harness finds them. A test that a signal
# ends stops the servers that it has started.
package AgentTest::Diagnostics;
use strict;
use warnings;
use Test::Builder;

my $builder = Test::Builder->new;
$builder->failure_output($builder->output);

$SIG{__DIE__} = sub {
    my ($message) = @_;
    return if $^S || ref $message;
    print {*STDOUT} map { "# $_\n" } split /\n/, $message;
};

# A process that the test forks ends as it would have without this.
my $owner = $$;
$SIG{$_} = \&end_test for qw(INT TERM HUP);

sub end_test {
    my ($signal) = @_;
    exit 130 if $$ == $owner;
    $SIG{$signal} = 'DEFAULT';
    return kill $signal => $$;
}

1;
