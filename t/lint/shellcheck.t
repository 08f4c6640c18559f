# SPDX-License-Identifier: Apache-2.0
# shellcheck for every shell script.
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use AgentTest::Source;
use Test::More;

chdir root() or die root() . ": $!\n";
for my $file (source_files()) {
    next if $file !~ /\.(?:ba)?sh\z/ && slurp($file) !~ m{\A#!\S*(?:/| )(?:ba)?sh\b};
    my $output = qx(shellcheck -x -P SCRIPTDIR $file 2>&1);
    is $?, 0, "$file has no finding of shellcheck" or diag $output;
}

done_testing;
