# SPDX-License-Identifier: Apache-2.0
# Every source has a test: the table of files in its folder's README names, in
# the row of the source, a test that exists. Covered folders stand in @FOLDERS.
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use AgentTest::Source;
use Test::More;

my @FOLDERS = map { "mod_ratelimit_regional/$_" } qw(status decision config rules counter);

# Source => the tests in t/ that its row names.
sub tests_of {
    my ($folder) = @_;
    my %tests;
    for my $row (grep { /\A\|/ } split /\n/, slurp(root() . "/$folder/README.md")) {
        my @names = $row =~ /`([\w.\/]+)`/g;
        my @tests = grep { m{/} && -f root() . "/t/$_" } @names;
        $tests{$_} = [@tests] for grep { !m{/} } @names;
    }
    return %tests;
}

for my $folder (@FOLDERS) {
    my %tests = tests_of($folder);
    my @sources = map { m{([^/]+)\z} } source_files(qr{\A\Q$folder\E/[^/]+\.c\z});
    is join(' ', grep { !@{ $tests{$_} // [] } } @sources), '',
        "$folder: its README names an existing test for every source";
}

done_testing;
