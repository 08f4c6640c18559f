# SPDX-License-Identifier: Apache-2.0
# gcc's static analyzer.
use strict;
use warnings;
use AgentTest::Lint;

lint_each('gcc -std=gnu11 -O1 -Wall -Werror -fanalyzer -c -o /dev/null',
    compiler_flags());
