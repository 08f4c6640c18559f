# SPDX-License-Identifier: Apache-2.0
# What an action costs the processes of a server: peak memory and processor
# time, read from the kernel; and a bystander whose requests and runs must be
# served while it is under way.
#
#   my $cost = cost_of([ httpd_children() ], sub { $client->post(...) });
#   cmp_ok($cost->{peak_bytes}, '<', 4 * length $body, '...');
#   my $served = beside($client, 20, sub { ... });
package AgentTest::Cost;
use strict;
use warnings;
use Carp qw(croak);
use AgentTest::Env qw(slurp is_sanitized);
use Exporter 'import';
use List::Util qw(sum0);
use POSIX qw(sysconf _SC_CLK_TCK);

our @EXPORT = qw(cost_of resident_bytes cpu_sec beside memory_scale);

my $TICKS = sysconf(_SC_CLK_TCK);

# Shadow memory and quarantine: a sanitizer's build may use so many times the
# bytes that the bounds of the tests are stated for.
sub memory_scale { return is_sanitized() ? 4 : 1 }

sub status_bytes {
    my ($pid, $field) = @_;
    my ($kb) = slurp("/proc/$pid/status") =~ /^$field:\s+(\d+) kB/m;
    return 1024 * ($kb // 0);
}

sub resident_bytes {
    my (@pids) = @_;
    return sum0(map { status_bytes($_, 'VmRSS') } @pids);
}

# User and system time. A process that has ended counts no more: name its
# parent too, which has it once it was reaped.
sub cpu_sec {
    my (@pids) = @_;
    my $ticks = 0;
    for my $pid (@pids) {
        my ($fields) = slurp("/proc/$pid/stat") =~ /\)\s+(.*)/s;
        $ticks += $_ // 0 for (split ' ', $fields // '')[ 11 .. 14 ];
    }
    return $ticks / $TICKS;
}

# Peaks begin anew where the kernel lets us; elsewhere an older, higher peak
# makes a bound harder to keep, never easier.
sub reset_peak {
    my ($pid) = @_;
    open my $file, '>', "/proc/$pid/clear_refs" or return;
    print {$file} 5;
    close $file;
    return;
}

# cost_of(\@pids, sub { ... }): {peak_bytes}, the sum over the processes of how
# far each peak rose above what was resident before; {cpu_sec}; {result} of the
# sub. A process that ends in between is a failure of the caller's test.
sub cost_of {
    my ($pids, $action) = @_;
    croak 'cost_of: no processes' if !@{$pids};
    reset_peak($_) for @{$pids};
    my %resident = map { $_ => resident_bytes($_) } @{$pids};
    my $cpu = cpu_sec(@{$pids});
    my $result = $action->();
    my $peak = 0;
    for my $pid (@{$pids}) {
        my $high = status_bytes($pid, 'VmHWM');
        croak "process $pid has ended" if !$high;
        $peak += $high - $resident{$pid} if $high > $resident{$pid};
    }
    return { peak_bytes => $peak, cpu_sec => cpu_sec(@{$pids}) - $cpu,
        result => $result };
}

# beside($client, $count, sub { ... }): somebody else makes $count requests and
# runs, one after the other, while the sub is under way; returns how many of
# them were served right. How fast is measured in t/bench.
sub beside {
    my ($client, $count, $action) = @_;
    my $pid = open(my $reader, '-|') // croak "fork: $!";
    if (!$pid) {
        my $served = 0;
        for (1 .. $count) {
            $served += eval { serve_one($client) } ? 1 : 0;
        }
        print $served;
        close STDOUT;
        # Not exit: the parent's servers are not ours to stop.
        POSIX::_exit(0);
    }
    my $died = !eval { $action->(); 1 } && $@;
    my $served = <$reader>;
    close $reader;
    croak $died if $died;
    return $served // 0;
}

sub serve_one {
    my ($client) = @_;
    return 0 if $client->get('/ok')->{status} != 200;
    my $run = $client->start_run('hello');
    $client->join_run($run);
    return $client->get_run($run)->{status} eq 'success';
}

1;
