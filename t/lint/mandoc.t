# SPDX-License-Identifier: Apache-2.0
# mandoc for every manual page.
use strict;
use warnings;
use AgentTest::Env qw(root);
use AgentTest::Source;
use Test::More;

chdir root() or die root() . ": $!\n";
my @pages = source_files(qr/\.[1-8]\z/);
cmp_ok scalar @pages, '>', 0, 'there is a manual page';
for my $file (@pages) {
    # The other messages are about the style of a system's own pages.
    my $output = qx(mandoc -Tlint -Wwarning $file 2>&1);
    is $?, 0, "$file has no finding of mandoc" or diag $output;
}

done_testing;
