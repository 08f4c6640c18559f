# SPDX-License-Identifier: Apache-2.0
# Hosts that stop in order, and start again, one after the other: the region goes on at once.
use strict;
use warnings;
use AgentTest::Env qw(slurp write_file);
use AgentTest::Wait;
use RateLimitTest;
use GroupTest;
use IO::Socket::INET;
use POSIX ();
use Test::More;

my $region = GroupTest->new(hosts => 3, rules => <<'CONF')->start;
RateLimitRule ten   =/ten   key=api-key us=10/10
RateLimitRule hour  =/hour  key=api-key us=9/1h
RateLimitRule large =/large key=api-key us=960/1h
CONF
my @hosts = @{ $region->{hosts} };

# Waits until the host has admitted as many requests.
sub admit {
    my ($host, $path, $key, $count) = @_;
    my $admitted = 0;
    wait_for("$count admissions", sub { ($admitted += $region->send($host, $path, $key)) >= $count });
    return;
}

sub log_of { return slurp($_[0]->dir . '/logs/error_log') }

admit($_, '/hour', 'key', 1) for 0 .. 2;
admit(0, '/large', 'key', 4);

# --- One after the other ------------------------------------------------------------------

# With a share reserved the region would admit a third less, for an hour.
for my $host (0 .. 2) {
    $hosts[$host]->stop;
    admit(($host + 1) % 3, '/hour', 'key', 1);
    pass "host $host has stopped: another one admits at once";
    $hosts[$host]->start;
    admit($host, '/hour', 'key', 1);
    pass "host $host has started: it admits at once";
}
for my $host (0 .. 2) {
    like log_of($hosts[$host]), qr/RLR0120: left the store/, "the log of host $host says that it has left";
}
$region->send($_ % 3, '/hour', 'key') for 1 .. 9;
is scalar @{ $region->{log}{'/hour key'} }, 9, 'all hosts together admit N: requests before their stops are counted';

# --- All at once --------------------------------------------------------------------------

$_->stop for @hosts;
$_->start for @hosts;
# On a busy machine the store may grant what comes too late for its request.
my ($next, $all) = (0);
wait_for('N admissions of one key', sub {
    my $key = 'all' . $next++;
    $all = grep { $region->send($_ % 3, '/hour', $key) } 1 .. 24;
    return $all >= 9;
});
is $all, 9, 'after all hosts have stopped and started they admit N, and without a wait';
$region->send($_ % 3, '/hour', 'key') for 1 .. 6;
is scalar @{ $region->{log}{'/hour key'} }, 9, 'after all hosts have stopped and started nothing is forgotten';

# --- Fewer hosts --------------------------------------------------------------------------

$hosts[2]->stop;
admit(0, '/hour', 'fewer', 5);
admit(1, '/hour', 'fewer', 4);
pass 'two of three admit N, when the third has left';

# --- A single process ----------------------------------------------------------------------

my $runner = fork // die "fork: $!\n";
if ($runner == 0) {
    $hosts[2]->control('-X');
    POSIX::_exit(0);
}
wait_for('httpd -X to listen', sub { IO::Socket::INET->new(PeerAddr => "127.0.0.1:$hosts[2]{port}") });
admit(2, '/hour', 'single', 1);
$hosts[2]->stop;
waitpid $runner, 0;
unlink $hosts[2]->pid_file;
is scalar(() = log_of($hosts[2]) =~ /RLR0120/g), 4, 'httpd -X leaves the store too';
admit(0, '/hour', 'single', 4);
admit(1, '/hour', 'single', 4);
pass 'the others admit N, when httpd -X has left';

# --- Another number of hosts ----------------------------------------------------------------

$_->stop for @hosts[0, 1];
for my $host (@hosts[0, 1]) {
    write_file($host->{conf}, slurp($host->{conf}) =~ s/RateLimitStoreHosts 3/RateLimitStoreHosts 2/r);
    $host->start;
}
my $two = GroupTest->new(store => $region->{redis}, servers => [ @hosts[0, 1] ]);
$two->settle;
is $two->send(0, '/hour', 'changed'), 0, 'nothing is admitted at first after a change of RateLimitStoreHosts';
cmp_ok $two->{last}{headers}{'retry-after'}, '<=', 3601, 'the wait after a change of RateLimitStoreHosts is the interval';
$two->age;
admit(0, '/hour', 'changed', 5);
admit(1, '/hour', 'changed', 4);
pass 'all hosts have stopped and started with another RateLimitStoreHosts: they admit N after the interval';
unlike log_of($_), qr/RLR0121/, 'hosts that start after all others have left are not refused' for @hosts[0, 1];

# --- Without the store ---------------------------------------------------------------------

$region->{redis}->stop;
$hosts[1]->stop;
like log_of($hosts[1]), qr/RLR0119: left 0 of 16 partitions of the store: connect: .*; in the others the share of this host is reserved for 3660 s/,
    'a host that cannot leave says so, and what it costs';

done_testing;
