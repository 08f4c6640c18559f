# SPDX-License-Identifier: Apache-2.0
# Runs a checker over each C file and makes its words one test's diagnosis.
package AgentTest::Lint;
use strict;
use warnings;
use AgentTest::Env qw(root);
use AgentTest::Source;
use Exporter 'import';
use Test::More;

our @EXPORT = qw(lint_each compiler_flags warning_flags);

# What the Makefile compiles with.
sub compiler_flags { return make_says('print-flags') }
sub warning_flags  { return make_says('print-warnings') }

sub make_says {
    my ($target) = @_;
    my $words = qx(cd '@{[root()]}' && make -s -f Makefile.apxs $target);
    chomp $words;
    return $words;
}

# lint_each('gcc -c -o /dev/null', 'flags after the file')
sub lint_each {
    my ($command, $after) = @_;
    chdir root() or die root() . ": $!\n";
    for my $file (source_files(qr{\Amod_agent/.*\.c\z})) {
        my $words = qx($command $file $after 2>&1);
        my $is_clean = $? == 0;
        ok $is_clean, $file;
        diag $words if !$is_clean;
    }
    done_testing;
    return;
}

1;
