# SPDX-License-Identifier: Apache-2.0
# What a test written in Perl says of its failures, and what it died of, goes
# to standard output, beside its results: there AgentTest::Harness finds it.
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
