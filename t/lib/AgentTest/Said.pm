# SPDX-License-Identifier: Apache-2.0
# Sends the diagnostics of a Perl test, and its last error, to standard output,
# beside its results, where AgentTest::Harness finds them.
package AgentTest::Said;
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

1;
