# SPDX-License-Identifier: Apache-2.0
# Every Perl file compiles without a warning, under strict.
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use AgentTest::Source;
use Test::More;

chdir root() or die root() . ": $!\n";
for my $file (source_files()) {
    next if $file !~ /\.(?:pl|pm|t|PL)\z/ && slurp($file) !~ /\A#!.*\bperl\b/;
    # A folder's own modules; those below a lib have full names.
    my ($folder) = $file =~ m{\A(.*?/lib)/} ? $1 : $file =~ m{(.*)/};
    my $output = qx($^X -It/lib -I$folder -wc $file 2>&1);
    is $output, "$file syntax OK\n", "$file compiles without a warning";
    like slurp($file), qr/^use strict;\nuse warnings;/m, "$file is strict";
}

done_testing;
