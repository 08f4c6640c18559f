# SPDX-License-Identifier: Apache-2.0
# The checkpointer of the runner for JavaScript, through httpd and PostgreSQL: the library's
# public suite, and the history of delta channels beside that of the library's own saver.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../runner", "$FindBin::Bin/checkpointers";
use CheckpointerTest qw(results_of);
use NodeApplication qw(application);
use Test::More;

# It skips one of them for the library's own saver.
my $TESTS = 718;

binmode Test::More->builder->$_, ':encoding(UTF-8)' for qw(output failure_output);
my $packages = application('node');
my @results = results_of(files => [qw(validation.mjs held.mjs)], settings => { node_version => '20' },
    links => { map { $_ => "$packages/$_" } qw(package.json node_modules) });
my %count;
for my $result (@results) {
    next if $result->{state} eq 'skip';
    is $result->{state}, 'pass', $result->{name} or diag $result->{message};
    $count{ $result->{name} =~ /\Adelta / ? 'delta' : 'suite' }++;
}
is $count{suite}, $TESTS, 'all tests of the public suite are there';
is $count{delta}, 20, 'history of delta channels has 20 tests';
done_testing;
