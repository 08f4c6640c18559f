# SPDX-License-Identifier: Apache-2.0
# C files look as clang-format leaves them.
use strict;
use warnings;
use AgentTest::Env qw(root);
use AgentTest::Source;
use Test::More;

chdir root() or die root() . ": $!\n";
for my $file (source_files(qr/\.[ch]\z/)) {
    my ($first) = grep { /^\d/ } qx(clang-format $file | diff $file -);
    chomp($first //= '');
    is $first, '', "$file is formatted (make -f Makefile.apxs format)";
}

done_testing;
