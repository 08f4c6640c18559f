# SPDX-License-Identifier: Apache-2.0
# Drives the runner for JavaScript: ApplicationTest with graphs of t/runner/fixtures/node.
package NodeApplication;
use strict;
use warnings;
use AgentTest::Applications qw(node_application runner_of);
use AgentTest::Env qw(is_sanitized is_counted);
use ApplicationTest;
use Test::More;
use parent 'Exporter';

our @EXPORT_OK = qw(application runner program);

# Nothing of the runner is compiled: one build is enough for the tests that drive it.
sub import {
    my ($class, @names) = @_;
    plan skip_all => 'the runner for JavaScript has no such build'
        if (is_sanitized() || is_counted()) && grep { $_ ne 'application' } @names;
    return $class->export_to_level(1, $class, @names);
}

# The runner's program.
sub program { return (runner_of('javascript'))[1] }

sub application { return node_application(@_) }

# A runner of these graphs: runner(NAME => 'file:export', ...); with `fixtures` another folder,
# with `records` other records, with `store` another store.
sub runner {
    my (%graphs) = @_;
    my $directory = application(delete $graphs{fixtures} // 'node');
    my $arguments = delete $graphs{arguments};
    my ($records, $store) = delete @graphs{qw(records store)};
    return ApplicationTest->new(command => [ runner_of('javascript'), @{ $arguments || [] } ],
        directory => $directory, graphs => \%graphs, records => $records, store => $store);
}

1;
