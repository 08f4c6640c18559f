# SPDX-License-Identifier: Apache-2.0
# Processor time and memory of processes, from /proc.
package BenchProcess;
use strict;
use warnings;
use AgentTest::Env qw(slurp);
use Exporter 'import';
use POSIX qw(sysconf _SC_CLK_TCK);

our @EXPORT_OK = qw(child_pids cpu_sec memory_kb);

my $TICKS = sysconf(_SC_CLK_TCK);

# Children, with those that have ended but are not reaped yet.
sub child_pids {
    my ($parent) = @_;
    return grep { slurp("/proc/$_/stat") =~ /\)\s+\S\s+$parent\s/ }
        map { m{(\d+)} } glob '/proc/[0-9]*';
}

# User and system time of these processes and of the children they have
# reaped: a server process that has ended counts through its parent.
sub cpu_sec {
    my (@pids) = @_;
    my $ticks = 0;
    for my $pid (@pids) {
        my ($fields) = slurp("/proc/$pid/stat") =~ /\)\s+(.*)/s;
        my @times = (split ' ', $fields // '')[ 11 .. 14 ];
        $ticks += $_ // 0 for @times;
    }
    return $ticks / $TICKS;
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
