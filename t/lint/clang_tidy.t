# SPDX-License-Identifier: Apache-2.0
# clang-tidy with the checks of .clang-tidy, and clang's warnings, which gcc gives in
# the build: both in one pass over a file. One file at a time: version 14 takes every
# va_list of the later ones for uninitialized.
use strict;
use warnings;
use AgentTest::Lint;

# The steps that the analyzer makes through a function, by default 225,000, are most of
# the time: 75,000 take nearly twice that of 30,000. In a quarter of the files 25,000
# steps leave out 29 of each thousand blocks of code, and 75,000 steps 27 (clang's
# checker debug.Stats).
my $DEPTH = '-Xclang -analyzer-config -Xclang max-nodes=30000';

my $flags = join ' ', '-std=gnu11', warning_flags(), compiler_flags();
lint_each(checker => 'clang-tidy --quiet', compiler => 'clang', flags => $flags,
    after => "-- $flags $DEPTH", config => ['.clang-tidy']);
