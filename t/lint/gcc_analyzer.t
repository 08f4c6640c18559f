# SPDX-License-Identifier: Apache-2.0
# gcc's static analyzer.
use strict;
use warnings;
use AgentTest::Lint;

lint_each(checker => 'gcc -std=gnu11 -O1 -Wall -Werror -fanalyzer -c -o /dev/null',
    compiler => 'gcc -std=gnu11 -O1', flags => compiler_flags());
