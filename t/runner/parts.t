# SPDX-License-Identifier: Apache-2.0
# Parts of the runners of applications alone: their limits, which no application can see
# from outside. parts.py, process_parts.py and parts.mjs have the cases; those of breakpoints
# in repeated attempts are one list for both languages, breakpoint_cases.json.
use strict;
use warnings;
use AgentTest::Applications qw(python);
use AgentTest::Env qw(is_counted is_sanitized);
use FindBin;
use Test::More;

plan skip_all => 'the runners of applications have no such build' if is_sanitized() || is_counted();

for my $case ((map { [ python(), "$_.py" ] } qw(parts process_parts breakpoint_cases)), map { [ 'node', "$_.mjs" ] } qw(parts breakpoint_cases)) {
    my ($program, $file) = @{$case};
    open my $output, '-|', $program, "$FindBin::Bin/$file" or die "$program: $!\n";
    my ($planned, $played) = (0, 0);
    while (my $line = <$output>) {
        $planned = $1 if $line =~ /\A1\.\.(\d+)$/;
        diag $1 if $line =~ /\A# (.*)/;
        if ($line =~ /\A(not )?ok \d+ - (.*)/) {
            $played++;
            ok !$1, $2;
        }
    }
    close $output;
    is $?, 0, "$file ends with status 0";
    is $played, $planned, "$file prints the result of each case";
}
done_testing;
