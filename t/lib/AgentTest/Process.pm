# SPDX-License-Identifier: Apache-2.0
# The processes of the server under test, found in /proc by their parents.
package AgentTest::Process;
use strict;
use warnings;
use AgentTest::Env qw(slurp);
use AgentTest::Wait;
use Exporter 'import';

our @EXPORT = qw(httpd_pid httpd_children supervisor_pid runner_pids
    children_of descendants_of is_alive count_descriptors kill_and_replace);

sub httpd_pid {
    my ($file) = @_;
    my ($pid) = slurp($file // $ENV{AGENT_TEST_PID_FILE}) =~ /\A(\d+)/;
    return $pid;
}

# fields of /proc/PID/stat from the state on; the name before may hold spaces
sub stat_of {
    my ($pid) = @_;
    my ($fields) = slurp("/proc/$pid/stat") =~ /\)\s+(.*)/s;
    my ($state, $parent, $group, $started)
        = (split ' ', $fields // '')[0, 1, 2, 19];
    return { state => $state // 'X', parent => $parent // 0,
        group => $group // 0, started => $started // 0 };
}

# A process that has ended and was not reaped yet is not alive once its last
# thread has closed its files.
sub is_alive {
    my ($pid) = @_;
    my $status = slurp("/proc/$pid/status");
    return 0 if !length $status;
    return $status !~ /^State:\s+Z.*^Threads:\s+1$/ms;
}

sub children_of {
    my ($pid) = @_;
    # The parent first: most are not its children, and conditions repeat this.
    return grep { stat_of($_)->{parent} == $pid && is_alive($_) }
        map { m{(\d+)} } glob '/proc/[0-9]*';
}

# httpd's own children stay in their parent's process group ...
sub httpd_children {
    my ($parent) = @_;
    $parent //= httpd_pid();
    my $group = stat_of($parent)->{group};
    return grep { stat_of($_)->{group} == $group } children_of($parent);
}

# ... the supervisor leads one of its own. Newest first after a restart.
sub supervisor_pid {
    my ($parent) = @_;
    my ($pid) = sort { stat_of($b)->{started} <=> stat_of($a)->{started} }
        grep { stat_of($_)->{group} == $_ } children_of($parent // httpd_pid());
    return $pid;
}

# Runners may be started by a helper of the supervisor.
sub runner_pids {
    my ($parent) = @_;
    my $supervisor = supervisor_pid($parent) or return;
    return grep { slurp("/proc/$_/cmdline") =~ /\Aagent-runner\0/ }
        descendants_of($supervisor);
}

# In one pass over /proc: the time does not grow with the number of processes
# that the result has.
sub descendants_of {
    my ($pid) = @_;
    my %children;
    push @{ $children{ stat_of($_)->{parent} } }, $_ for map { m{(\d+)} } glob '/proc/[0-9]*';
    my @found = @{ delete $children{$pid} // [] };
    for (my $i = 0; $i < @found; $i++) {
        push @found, @{ delete $children{ $found[$i] } // [] };
    }
    return grep { is_alive($_) } @found;
}

# The number of open descriptors of the processes.
sub count_descriptors {
    my (@pids) = @_;
    my @open = map { glob "/proc/$_/fd/*" } @pids;
    return scalar @open;
}

# kill_and_replace('what', sub { pid of it now }): kill -9, then waits until
# the sub names another living process; returns that.
sub kill_and_replace {
    my ($what, $find, $seconds) = @_;
    my $old = wait_for("$what to run", $find, $seconds);
    kill KILL => $old;
    return wait_for("$what to be started again", sub {
        my $new = $find->();
        return $new && $new != $old && is_alive($new) ? $new : 0;
    }, $seconds);
}

1;
