# SPDX-License-Identifier: Apache-2.0
# The cost of an action for the processes of a server: peak memory and processor
# time, read from the kernel; and a bystander whose requests and runs must be
# served at the same time.
#
#   my $cost = cost_of([ httpd_children() ], sub { $client->post(...) });
#   cmp_ok($cost->{peak_bytes}, '<', 4 * length $body, '...');
#   served_beside($client, 20, 'others are served beside it', sub { ... });
package AgentTest::Cost;
use strict;
use warnings;
use Carp qw(croak);
use AgentTest::Env qw(slurp is_sanitized);
use Exporter 'import';
use IO::Handle;
use IO::Select;
use List::Util qw(sum0);
use POSIX qw(sysconf _SC_CLK_TCK);
use Test::Builder;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

our @EXPORT = qw(cost_of resident_bytes cpu_sec served_beside serve_one
    memory_scale);

my $TICKS = sysconf(_SC_CLK_TCK);
# Calls of an action after which a bystander that was never served fails the test.
my $MOST_CALLS = 1000;

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

# User and system time of the processes and of the children that they have reaped:
# a process that has ended counts as its parent's.
sub cpu_sec {
    my (@pids) = @_;
    my $ticks = 0;
    for my $pid (@pids) {
        my ($fields) = slurp("/proc/$pid/stat") =~ /\)\s+(.*)/s;
        $ticks += $_ // 0 for (split ' ', $fields // '')[ 11 .. 14 ];
    }
    return $ticks / $TICKS;
}

# Resets the peaks where the kernel permits it; elsewhere an older, higher peak
# makes a bound stricter, never weaker.
sub reset_peak {
    my ($pid) = @_;
    open my $file, '>', "/proc/$pid/clear_refs" or return;
    print {$file} 5;
    close $file;
    return;
}

# cost_of(\@pids, sub { ... }): {peak_bytes}, the sum over the processes of each
# peak less the resident memory before; {cpu_sec}; {result} of the sub. A process
# that ends during the sub fails the caller's test.
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

# served_beside($client, $least, $title, sub { ... }): a test. Another client
# makes requests and runs, one after the other, for the duration of the sub. All
# of them must succeed, and at least $least must begin and end during the sub,
# which is called again if it is too short for that. A request that is answered
# after the sub has returned does not count. t/bench measures their latency.
sub served_beside {
    my ($client, $least, $title, $action) = @_;
    my $test = Test::Builder->new;
    my $bystander = start_bystander($client);
    my @spans;
    my $died = !eval {
        # The first request ends before the sub begins.
        read_requests($bystander, 1);
        for (1 .. $MOST_CALLS) {
            my $begin = clock_gettime(CLOCK_MONOTONIC);
            $action->();
            push @spans, [ $begin, clock_gettime(CLOCK_MONOTONIC) ];
            read_requests($bystander, 0);
            last if count_within($bystander, @spans) >= $least;
        }
        1;
    } && $@;
    end_bystander($bystander);
    die $died if $died;
    my @failed = map { $_->{error} || () } @{ $bystander->{requests} };
    my $within = count_within($bystander, @spans);
    return $test->ok(!@failed && $within >= $least, $title)
        || $test->diag("$within of $least requests were served during the action",
            map { "\n$_" } @failed);
}

# The bystander's requests within one of the time spans.
sub count_within {
    my ($bystander, @spans) = @_;
    return scalar grep {
        my $request = $_;
        grep { $request->{begin} >= $_->[0] && $request->{end} <= $_->[1] }
            @spans
    } @{ $bystander->{requests} };
}

# A process that makes requests until its pipe is closed, and writes a line
# about each: its start, its end and its error.
sub start_bystander {
    my ($client) = @_;
    pipe my $read_end, my $write_end or croak "pipe: $!";
    my $pid = open(my $lines, '-|') // croak "fork: $!";
    if (!$pid) {
        close $write_end;
        STDOUT->autoflush;
        while (!IO::Select->new($read_end)->can_read(0)) {
            my $begin = clock_gettime(CLOCK_MONOTONIC);
            my $error = eval { serve_one($client); 1 } ? '' : $@ =~ s/\s+/ /gr;
            printf "%.6f %.6f %s\n", $begin, clock_gettime(CLOCK_MONOTONIC),
                substr $error, 0, 1000;
        }
        # Not exit: the parent's servers are not ours to stop.
        POSIX::_exit(0);
    }
    return { lines => $lines, pipe => $write_end, read => '', requests => [] };
}

# Reads reports until there are $least, then those already in the pipe.
sub read_requests {
    my ($bystander, $least) = @_;
    my $lines = $bystander->{lines};
    my $requests = $bystander->{requests};
    while (@{$requests} < $least || IO::Select->new($lines)->can_read(0)) {
        sysread $lines, $bystander->{read}, 65_536, length $bystander->{read}
            or croak 'the bystander has ended';
        while ($bystander->{read} =~ s/\A(\S+) (\S+) (.*)\n//) {
            push @{$requests}, { begin => $1, end => $2, error => $3 };
        }
    }
    return;
}

sub end_bystander {
    my ($bystander) = @_;
    close $bystander->{pipe};
    eval { read_requests($bystander, 1 + @{ $bystander->{requests} }) while 1 };
    close $bystander->{lines};
    return;
}

# An ordinary request and run; dies unless both succeed.
sub serve_one {
    my ($client) = @_;
    my $ok = $client->get('/ok');
    croak "GET /ok was answered $ok->{status}: $ok->{body}" if $ok->{status} != 200;
    my $run = $client->start_run('hello');
    $client->join_run($run);
    my $status = $client->get_run($run)->{status};
    croak "a run ended as $status" if $status ne 'success';
    return;
}

1;
