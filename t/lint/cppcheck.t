# SPDX-License-Identifier: Apache-2.0
# cppcheck. It reads APR's headers, since it takes their macros for functions
# otherwise; findings in them are suppressed. So are varFuncNullUB, because a NULL
# ends APR's argument lists, and two checks with false positives for which the
# analyzers of gcc and clang are exact: uninitvar, returnDanglingLifetime.
use strict;
use warnings;
use AgentTest::Env qw(root);
use Test::More;

chdir root() or die root() . ": $!\n";
my $includes = join ' ', map { qx($_) =~ s/\s+\z//r }
    'apr-1-config --includes', 'echo -I$(apxs -q INCLUDEDIR)';
my $output = qx(cppcheck --quiet --std=c11 -DLINUX -D_GNU_SOURCE -Imod_agent \\
    $includes --enable=warning,performance,portability --error-exitcode=1 \\
    --suppress='*:/usr/include/*' --suppress=varFuncNullUB --suppress=uninitvar \\
    --suppress=returnDanglingLifetime -j2 mod_agent mod_ratelimit_regional 2>&1);
is $?, 0, 'cppcheck finds nothing' or diag $output;

done_testing;
