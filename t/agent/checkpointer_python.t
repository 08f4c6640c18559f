# SPDX-License-Identifier: Apache-2.0
# The checkpointer of the runner in Python, through httpd and PostgreSQL: LangGraph's public
# conformance suite, and the history of delta channels beside that of LangGraph's own saver.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../runner", "$FindBin::Bin/checkpointers";
use CheckpointerTest qw(results_of);
use PythonRunner qw(python);
use Test::More;

my @results = results_of(files => [qw(conformance.py held.py)], directives => 'AgentPythonProgram "' . python() . '"');
for my $result (@results) {
    ok !defined $result->{reason}, $result->{name} or diag $result->{reason};
}
my %tests = (async => 81, blocking => 53);
for my $form (sort keys %tests) {
    my @of = grep { $_->{name} =~ /\A$form: / } @results;
    my $delta = grep { $_->{name} =~ /\A$form: delta:/ } @of;
    is @of - $delta, $tests{$form}, "$form: the conformance suite has $tests{$form} tests";
    is $delta, 22, "$form: history of delta channels has 22 tests";
}
done_testing;
