# SPDX-License-Identifier: Apache-2.0
# clang-tidy with the checks of .clang-tidy, and clang's warnings, which gcc gives in
# the build: both in one pass over a file. One file at a time: version 14 takes every
# va_list of the later ones for uninitialized.
use strict;
use warnings;
use AgentTest::Lint;

lint_each('clang-tidy --quiet', join ' ', '-- -std=gnu11', warning_flags(), compiler_flags());
