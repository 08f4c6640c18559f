# SPDX-License-Identifier: Apache-2.0
# Children, processor time and memory of processes, from /proc.
package BenchProcess;
use strict;
use warnings;
use AgentTest::Env qw(slurp);
use Exporter 'import';
use List::Util qw(sum0);

our @EXPORT_OK = qw(child_pids cpu_ms memory_kb);

# Children, with those that have ended but are not reaped yet.
sub child_pids {
    my ($parent) = @_;
    return grep { slurp("/proc/$_/stat") =~ /\)\s+\S\s+$parent\s/ }
        map { m{(\d+)} } glob '/proc/[0-9]*';
}

# Milliseconds of processor time of all threads so far: of one turn of a chat the ticks
# of /proc/PID/stat would be too few.
sub cpu_ms {
    my (@pids) = @_;
    return sum0(map { (split ' ', slurp($_))[0] } map { glob "/proc/$_/task/*/schedstat" } @pids) / 1e6;
}

# Pss divides shared pages among their users; private pages have one user.
sub memory_kb {
    my (@pids) = @_;
    my %sum = (pss => 0, private => 0);
    for my $pid (@pids) {
        my $rollup = slurp("/proc/$pid/smaps_rollup");
        die "/proc/$pid/smaps_rollup cannot be read\n" if $rollup !~ /^Pss:/m;
        my %kb = $rollup =~ /^(\w+):\s+(\d+) kB/mg;
        $sum{pss} += $kb{Pss};
        $sum{private} += $kb{Private_Clean} + $kb{Private_Dirty};
    }
    return \%sum;
}

1;
