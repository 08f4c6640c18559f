# SPDX-License-Identifier: Apache-2.0
# C files look as clang-format leaves them.
use strict;
use warnings;
use AgentTest::Env qw(root);
use AgentTest::Source;
use Test::More;

chdir root() or die root() . ": $!\n";
# One process for all files: it starts slower than it formats.
my @files = source_files(qr/\.[ch]\z/);
open my $format, '-|', "clang-format --dry-run @files 2>&1" or die "clang-format: $!\n";
my @places = grep { /: warning: / } <$format>;
close $format or push @places, "clang-format failed\n";
is join('', @places), '', 'every C file is formatted (make -f Makefile.apxs format)';

done_testing;
