# SPDX-License-Identifier: Apache-2.0
# Reloads of hosts with a store: the lines of the store removed and put back, another address, and
# another table while the store is away.
use strict;
use warnings;
use AgentTest::Env qw(slurp);
use AgentTest::Process;
use AgentTest::Wait;
use RateLimitTest;
use GroupTest;
use GroupTest::Redis;
use IO::Socket::INET;
use Test::More;

my $rules = "RateLimitRegion us\nRateLimitRule ten =/ten key=api-key us=10/10\n";
my $region = GroupTest->new(hosts => 2, rules => "RateLimitRule ten =/ten key=api-key us=10/10\n")->start;
my ($host, $other) = @{ $region->{hosts} };
my $store = <<"CONF";
RateLimitStore redis://127.0.0.1:$region->{redis}{port}
RateLimitStoreHosts 2
RateLimitStoreTimeout 1s
CONF

# Returns the children of before.
sub reload {
    my ($server, $config) = @_;
    my @old = httpd_children($server->httpd_pid);
    my %old = map { $_ => 1 } @old;
    $server->configure($config);
    my ($status, $output) = $server->control('-k', 'graceful');
    $status == 0 or BAIL_OUT $output;
    # Those of before accept no connection once new ones have begun.
    wait_for('new children', sub { 2 <= grep { !$old{$_} } httpd_children($server->httpd_pid) });
    return @old;
}

sub wait_for_end {
    my ($server, @old) = @_;
    my %old = map { $_ => 1 } @old;
    wait_for('the end of the children of before', sub { !grep { $old{$_} } httpd_children($server->httpd_pid) });
    return;
}

# --- The lines of the store ----------------------------------------------------------

# As if the epoch had begun, and the hosts had sent their last heartbeats, three hours ago.
my $LONG_AGO = <<'LUA';
local epoch = cmsgpack.unpack(redis.call('HGET', KEYS[1], 'm'))
epoch.start, epoch.back = epoch.start - 10800000, epoch.back - 10800000
redis.call('HSET', KEYS[1], 'm', cmsgpack.pack(epoch), 'last', redis.call('HGET', KEYS[1], 'last') - 10800000)
for i = 0, 1 do
    local member = cmsgpack.unpack(redis.call('HGET', KEYS[1], 'm' .. i))
    member[2], member[3] = member[2] - 10800000, member[3] - 10800000
    redis.call('HSET', KEYS[1], 'm' .. i, cmsgpack.pack(member))
end
return 1
LUA

# The longest time for which a host has to wait before a share is its own, in any partition.
my $WAITS = <<'LUA';
local epoch, time, most = cmsgpack.unpack(redis.call('HGET', KEYS[1], 'm')), redis.call('TIME'), 0
for i = 0, 1 do
    local member = cmsgpack.unpack(redis.call('HGET', KEYS[1], 'm' .. i))
    most = math.max(most, member[3] - time[1] * 1000)
end
return { epoch.share_ms, most > 1000 and 1 or 0 }
LUA

sub reload_both {
    my ($config) = @_;
    wait_for_end($_, reload($_, $config)) for $host, $other;
    return;
}

reload_both($rules);
is scalar(grep { $region->send(0, '/ten', 'back') } 1 .. 12), 10, 'without the lines of the store a host admits N by itself';
reload_both($rules . $store);
$region->settle;
my @admitted = map { my $key = "again$_"; scalar grep { $region->send($_ % 2, '/ten', $key) } 1 .. 12 } 1 .. 4;
is_deeply \@admitted, [ 10, 10, 10, 10 ], 'hosts whose lines are put back continue as members';

reload_both($rules);
$region->{redis}->run('EVAL', $LONG_AGO, 1, "rlr:{$_}") for 0 .. 15;
reload_both($rules . $store . "RateLimitStoreShareTime 30m\n");
$region->settle;
is_deeply [ map { ($region->{redis}->run('EVAL', $WAITS, 1, "rlr:{$_}") // '') =~ /:(\d+)\r\n:(\d+)/ } 0 .. 15 ],
    [ map { (1800000, 0) } 0 .. 15 ], 'lines that are put back with another RateLimitStoreShareTime make new members without a wait';
$region->wait_for_grants;

# --- Another store -------------------------------------------------------------------

# Whether a child has accepted the connection: until then the socket has no file.
sub is_accepted {
    my ($socket) = @_;
    my $ends = sprintf ':%04X [0-9A-F]+:%04X', $socket->peerport, $socket->sockport;
    return slurp('/proc/net/tcp') =~ /$ends 01 (?:\S+ +){5}(\d+)/ && $1 > 0;
}

# Returns connections of which the children have the first half of a request.
sub begin_requests {
    my ($server, $count) = @_;
    my @sockets = map {
        my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$server->{port}") // BAIL_OUT "connect: $@";
        syswrite $socket, "GET /ten HTTP/1.1\r\nHost: localhost\r\n";
        wait_for('a child that accepts it', sub { is_accepted($socket) });
        $socket;
    } 1 .. $count;
    return @sockets;
}

my $next = GroupTest::Redis->new;
my @held = map { begin_requests($_, 1) } $host, $other;
(my $elsewhere = $store) =~ s/:$region->{redis}{port}/:$next->{port}/;
my %old = map { $_->{port} => [ reload($_, "$rules${elsewhere}RateLimitStoreShareTime 30m\n") ] } $host, $other;
my $is_old = sub {
    my ($server) = @_;
    my %is_running = map { $_ => 1 } httpd_children($server->httpd_pid);
    return scalar grep { $is_running{$_} } @{ $old{ $server->{port} } };
};
my $former = $region->{redis};
$region->{redis} = $next;
$region->settle;
my $key = 0;
wait_for('admissions of all partitions', sub { 64 == grep { $region->send($_ % 2, '/ten', 'elsewhere' . $key++) } 1 .. 64 });
ok $is_old->($_), 'with another address the host admits while children of the former one have requests' for $host, $other;
close $_ for @held;
for my $server ($host, $other) {
    wait_for('the end of the children of before', sub { !$is_old->($server) });
}

# --- Another table -------------------------------------------------------------------

$former->stop;
$next->stop;
wait_for('the share of a host', sub { $region->send(0, '/ten', 'probe') });
# A request of which the children of before have the first half.
my @halves = begin_requests($host, 8);
my @old = reload($host, "RateLimitTable 131072\n$rules${elsewhere}RateLimitStoreShareTime 30m\n");
my $admitted = 0;
for my $socket (@halves) {
    my $answer = '';
    syswrite $socket, "X-Api-Key: half\r\nConnection: close\r\n\r\n";
    while ($answer !~ /\n/ && sysread $socket, $answer, 4096, length $answer) { }
    $admitted += $answer =~ m{\AHTTP/1\.1 (?!429)};
}
is $admitted, 0, 'children with the table of before admit nothing of the share';
wait_for('the share of the host', sub { $region->send(0, '/ten', 'half') });
$region->send(0, '/ten', 'half') for 1 .. 8;
cmp_ok $region->most('/ten', 'half', 10), '<=', 5, 'children with another table admit the share once';

done_testing;
