# SPDX-License-Identifier: Apache-2.0
# clang-tidy with the checks of .clang-tidy, and clang's warnings, which gcc gives in
# the build: both in one pass over a file. One file at a time: version 14 takes every
# va_list of the later ones for uninitialized.
use strict;
use warnings;
use AgentTest::Lint;

# A third of the paths through a function that the analyzer follows by default: the
# others took two thirds of the time.
my $DEPTH = '-Xclang -analyzer-config -Xclang max-nodes=75000';

my $flags = join ' ', '-std=gnu11', warning_flags(), compiler_flags();
lint_each(checker => 'clang-tidy --quiet', compiler => 'clang', flags => $flags,
    after => "-- $flags $DEPTH", config => ['.clang-tidy']);
