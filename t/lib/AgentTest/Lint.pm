# SPDX-License-Identifier: Apache-2.0
# Runs a checker over the modules' C files; its output about a file is the
# diagnosis of one test.
package AgentTest::Lint;
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use AgentTest::Source;
use Exporter 'import';
use File::Temp qw(tempdir);
use Test::More;

our @EXPORT = qw(lint_each compiler_flags warning_flags);

# The compiler flags of the Makefile.
sub compiler_flags { return make_output('print-flags') }
sub warning_flags  { return make_output('print-warnings') }

sub make_output {
    my ($target) = @_;
    my $words = qx(cd '@{[root()]}' && make -s -f Makefile.apxs $target);
    chomp $words;
    return $words;
}

# lint_each('gcc -c -o /dev/null', 'flags after the file'): a test for each file,
# in the order in which they end, one at a time on each processor.
sub lint_each {
    my ($command, $after) = @_;
    chdir root() or die root() . ": $!\n";
    chomp(my $jobs = qx(nproc));
    my $folder = tempdir(CLEANUP => 1);
    my %running;
    for my $file (source_files(qr{\Amod_\w+/.*\.c\z})) {
        end_one($folder, \%running) if keys %running >= $jobs;
        my $pid = fork // die "fork: $!\n";
        exec "exec $command $file $after >$folder/$$ 2>&1" if $pid == 0;
        $running{$pid} = $file;
    }
    end_one($folder, \%running) while %running;
    done_testing;
    return;
}

sub end_one {
    my ($folder, $running) = @_;
    my $pid = wait;
    ok $? == 0, delete($running->{$pid}) . ' has no finding' or diag slurp("$folder/$pid");
    return;
}

1;
