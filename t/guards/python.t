# SPDX-License-Identifier: Apache-2.0
# The Python runner: docstrings, types, lengths, imports that go one way, a test for each module.
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use AgentTest::Source;
use Test::More;

my $FOLDER = 'mod_agent/runners/python';
my @modules = source_files(qr{\A\Q$FOLDER\E/.*\.py\z});

chdir root() or die root() . ": $!\n";
open my $findings, '-|', 'python3', 't/guards/python_rules.py', @modules or die "python3: $!\n";
my @findings = <$findings>;
close $findings or die "python_rules.py failed\n";
is join('', @findings), '', 'modules have a docstring, types, short functions, few imports, no cycle';

my %is_tested;
for my $row (grep { /\A\|/ } split /\n/, slurp("$FOLDER/README.md")) {
    my @names = $row =~ /`([\w.\/]+)`/g;
    next if !grep { m{/} && -f "t/$_" } @names;
    $is_tested{$_} = 1 for grep { !m{/} } @names;
}
is join(' ', grep { !$is_tested{$_} } map { s{.*/}{}r } @modules), '', 'the README names an existing test for every module';

done_testing;
