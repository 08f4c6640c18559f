# SPDX-License-Identifier: Apache-2.0
# clang-tidy with the checks of .clang-tidy. One file at a time: version 14
# takes every va_list of the later ones for uninitialized.
use strict;
use warnings;
use AgentTest::Lint;

lint_each('clang-tidy --quiet', '-- -std=gnu11 ' . compiler_flags());
