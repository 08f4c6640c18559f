# SPDX-License-Identifier: Apache-2.0
# Compiles files as `perl -wc` does, each in a process of its own:
#   perl -wc -MAgentTest::CompileEach - RESULTS FOLDER FILE FOLDER FILE ...
# The messages about file N are in RESULTS/N; FOLDER is searched for its modules too.
# perl reads its program, from standard input, only after this module was imported: a
# process that the import forks reads a file there and finds the largest modules
# loaded. They were most of the work.
package AgentTest::CompileEach;
use strict;
use warnings;
use Cpanel::JSON::XS ();
use File::Temp       ();
use Test::More       ();

sub import {
    my ($results, @rest) = @ARGV;
    my $failed = 0;
    for (my $number = 0; my ($folder, $file) = splice @rest, 0, 2; $number++) {
        my $pid = fork // die "fork: $!\n";
        return read_program("$results/$number", $folder, $file) if !$pid;
        waitpid $pid, 0;
        $failed = 1 if $?;
    }
    # It would say that no program, which it has not read, is right.
    close STDERR;
    exit $failed;
}

# The program and its messages.
sub read_program {
    my ($result, $folder, $file) = @_;
    open STDIN, '<', $file or die "$file: $!\n";
    open STDOUT, '>', $result or die "$result: $!\n";
    open STDERR, '>&', \*STDOUT or die "$result: $!\n";
    $0 = $file;
    @ARGV = ();
    unshift @INC, 't/lib', $folder;
    return;
}

1;
