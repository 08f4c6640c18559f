# SPDX-License-Identifier: Apache-2.0
# The time to check a key tells nothing of the secret or of the stored digest: no branch and no address depends on them.
# memcheck finds those that do; secret_branches.c marks the bytes.
use strict;
use warnings;
use AgentTest::Env qw(build_dir is_counted is_sanitized);
use Test::More;

# Other builds only compare: sanitizers and counts have branches of their own.
my $IS_CHECKED = !is_sanitized() && !is_counted();
my $FOUND = 9;

# (the exit status, what it prints)
sub compare {
    my ($how) = @_;
    my @tool = $IS_CHECKED ? (qw(valgrind -q --log-file=/dev/null), "--error-exitcode=$FOUND") : ();
    open my $out, '-|', @tool, build_dir() . '/unit/secret_branches', $how or die "valgrind: $!\n";
    my $answers = do { local $/ = undef; <$out> };
    close $out;
    return ($? >> 8, $answers);
}

my $EXPECTED = '1' . '0' x 32 . "\n";
is_deeply [ compare('key') ], [ 0, $EXPECTED ], 'keys: the secret and its digest are compared without a branch that depends on them';
is_deeply [ compare('early') ], [ $IS_CHECKED ? $FOUND : 0, $EXPECTED ], 'memcheck finds the branches of a comparison that ends at the first difference';
done_testing;
