# SPDX-License-Identifier: Apache-2.0
# clang compiles every file without a warning, as gcc does in the build.
use strict;
use warnings;
use AgentTest::Lint;

lint_each('clang -std=gnu11 -fsyntax-only ' . warning_flags(),
    compiler_flags());
