# SPDX-License-Identifier: Apache-2.0
# The log lines that say why the hosts of a region refuse more than the limit does.
use strict;
use warnings;
use AgentTest::Env qw(slurp);
use AgentTest::Process;
use AgentTest::Wait;
use RateLimitTest;
use GroupTest::Redis;
use Sys::Hostname qw(hostname);
use Test::More;

my $redis = GroupTest::Redis->new;

sub start {
    my ($hosts, $more) = @_;
    my $server = RateLimitTest->new(config => <<"CONF" . ($more // ''));
RateLimitRule ten =/ten key=api-key us=10/10
RateLimitRegion us
RateLimitStore redis://127.0.0.1:$redis->{port}
RateLimitStoreHosts $hosts
RateLimitStoreTimeout 20ms
CONF
    $server->start;
    return $server;
}

sub logged {
    my ($server, $pattern, $title) = @_;
    wait_for("$title: $pattern", sub { slurp($server->dir . '/logs/error_log') =~ $pattern });
    return pass $title;
}

sub status_of { return $_[0]->ask('GET', '/ten', { 'x-api-key' => $_[1] })->{status} }

# --- The store is slow ---------------------------------------------------------------------

my $alone = start(1);
wait_for('a grant', sub { status_of($alone, 'first') != 429 });
unlike slurp($alone->dir . '/logs/error_log'), qr/RLR0122/, 'the first start of all hosts does not log a warning';
kill STOP => $redis->pid;
is status_of($alone, 'second'), 429, 'a request that the store does not decide in time is refused';
logged($alone, qr/RLR0123: \d+ requests were refused without the store, which did not reply/, 'the log counts requests that the store did not decide in time');
kill CONT => $redis->pid;

# --- Too many hosts ------------------------------------------------------------------------

my $second = start(1);
logged($second, qr/RLR0121: the store refuses this host: as many hosts .*; this host has not been connected to it since its start: it has no share/,
    'the log of a host more than RateLimitStoreHosts says that it refuses all');
is status_of($second, 'third'), 429, 'a host more than RateLimitStoreHosts admits nothing';
wait_for('a grant', sub { status_of($alone, 'fourth') != 429 });
$alone->stop;
wait_for('a grant', sub { status_of($second, 'fifth') != 429 });
pass 'when another host leaves it takes part';
$second->stop;

# --- Hosts are missing ---------------------------------------------------------------------

$redis->run('FLUSHALL');
my @pair = start(2);
logged($pair[0], qr/RLR0122: 1 of 2 hosts are not connected to the store; it reserves the shares of/,
    'the first of two hosts says that another one is missing');
push @pair, start(2);
wait_for('a grant', sub { status_of($pair[0], 'pair') != 429 });
my $name = hostname() . "/127.0.0.1:$pair[1]{port}";
my $killed = $pair[1]->httpd_pid;
kill KILL => $killed, children_of($killed);
$pair[0]->stop;
$pair[0]->start;
logged($pair[0], qr/RLR0122: 1 of 2 hosts are not connected to the store \(names: \Q$name\E\); it reserves the shares of 1, for up to 36\d\d s/,
    'a host that is started says which one was killed, and until when its share is reserved');

# --- Another configuration -------------------------------------------------------------------

my $closed = start(2, "RateLimitStoreFailure closed\n");
logged($closed, qr/RLR0121: the store refuses this host: hosts with another RateLimitStoreHosts, RateLimitStoreShareTime or RateLimitStoreFailure use it;/,
    'the log of a host with another RateLimitStoreFailure names the directive');
$pair[0]->stop;
$redis->run('FLUSHALL');
logged($closed, qr/RLR0122: 1 of 2/, 'a host with another RateLimitStoreFailure takes part when the store has no data of the others');
$redis->stop;
$closed->stop;
logged($closed, qr/RLR0119: .* the share of this host is reserved for 118 s/, 'without a share of its own the number of a host is reserved for two minutes');

# --- Started without the store ---------------------------------------------------------------

my $late = start(2);
logged($late, qr/RLR0115: the store does not answer: connect: .*; this host has not been connected to it since its start: it has no share, and refuses all/,
    'the log of a host that is started while the store is away says that it refuses all');
is status_of($late, 'sixth'), 429, 'a host that is started while the store is away admits nothing';
my $open = start(2, "RateLimitStoreFailure open\n");
logged($open, qr/RLR0115: the store does not answer: .*; this host counts by itself/, 'with open it says that it counts by itself');
isnt status_of($open, 'sixth'), 429, 'with open a host that is started while the store is away counts by itself';

# --- A replica -------------------------------------------------------------------------------

my $primary = GroupTest::Redis->new;
$redis = GroupTest::Redis->new(options => [ '--replicaof', "127.0.0.1 $primary->{port}" ]);
wait_for('the replica', sub { ($redis->run('INFO', 'replication') // '') =~ /master_link_status:up/ });
my $reader = start(1, <<'CONF');
<Location /limits>
    SetHandler ratelimit-status
</Location>
CONF
logged($reader, qr/RLR0115: the store does not answer: script: READONLY /, 'the address of a replica is logged as such');
my $errors = sub { $reader->ask('GET', '/limits')->{json}{store}{errors} };
my $before = $errors->();
wait_for('further attempts', sub { $errors->() > $before + 2 });
unlike slurp($reader->dir . '/logs/error_log'), qr/RLR0116/, 'a replica does not count as a store that answers';
$redis->run('REPLICAOF', 'NO', 'ONE');
logged($reader, qr/RLR0116: the store answers/, 'a replica that becomes a primary is logged');

# --- Another server --------------------------------------------------------------------------

$redis = GroupTest::Redis->new(options => [ '--rename-command', 'SCRIPT', '' ]);
my $wrong = start(1);
logged($wrong, qr/RLR0115: the store does not answer: \w+: ERR unknown command 'SCRIPT'; /,
    'the log names the command that a server does not know, without its arguments');

done_testing;
