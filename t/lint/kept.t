# SPDX-License-Identifier: Apache-2.0
# A checker whose results are kept between two runs hides no finding.
use strict;
use warnings;
use AgentTest::Env qw(slurp write_file);
use AgentTest::Lint;
use File::Temp qw(tempdir);
use POSIX ();
use Test::More;

my $dir = tempdir(CLEANUP => 1);
my ($source, $kept) = ("$dir/a.c", "$dir/kept");
write_file("$dir/a.h", "#define A 1\n");
write_file($source, qq(#include "a.h"\nint a = A;\n));

# In processes of their own, since one reads each file once.
sub in_process {
    my ($action) = @_;
    my $pid = fork // die "fork: $!\n";
    POSIX::_exit($action->() ? 0 : 1) if $pid == 0;
    waitpid $pid, 0;
    return $? == 0;
}

# The compiler itself as a checker, with this macro defined.
sub has_finding {
    my ($macro) = @_;
    return in_process(sub { AgentTest::Lint::check($source, $kept, 'key', "$dir/output",
        checker => "gcc -Werror=undef -D$macro -c -o /dev/null", compiler => 'gcc', flags => "-I$dir") });
}

sub is_kept { my ($key) = @_; return in_process(sub { AgentTest::Lint::is_unchanged($kept, $key // 'key') }) }

ok !is_kept(), 'lint: a file that was never checked is checked';
ok has_finding('a=1'), 'lint: a finding is reported';
ok !is_kept(), 'lint: a file with a finding is checked again';
ok !has_finding('B'), 'lint: a file without a finding has none';
ok is_kept(), 'lint: a file without a finding is not checked again';
ok !is_kept('other'), 'lint: a file is checked again with another checker';
for my $file ($source, "$dir/a.h") {
    my $text = slurp($file);
    write_file($file, "$text\n");
    ok !is_kept(), 'lint: a file is checked again after ' . ($file eq $source ? 'it' : 'a header') . ' has changed';
    write_file($file, $text);
    ok is_kept(), 'lint: a file is not checked again if ' . ($file eq $source ? 'it' : 'its header') . ' has the same text again';
}

done_testing;
