# SPDX-License-Identifier: Apache-2.0
# A store that does not answer in time.
use strict;
use warnings;
use AgentTest::Wait;
use GroupTest::Proxy;
use GroupTest::Redis;
use RateLimitTest;
use Test::More;
use Time::HiRes qw(time);

my $redis = GroupTest::Redis->new;

sub start {
    my ($more) = @_;
    $redis->run('FLUSHALL');
    my $server = RateLimitTest->new(config => <<"CONF" . $more);
RateLimitRule ten =/ten key=api-key us=10/1
RateLimitRule day =/day key=api-key us=10/1d
RateLimitRegion us
RateLimitStore redis://127.0.0.1:$redis->{port}
RateLimitStoreHosts 1
<Location /limits>
    SetHandler ratelimit-status
</Location>
CONF
    $server->start;
    return $server;
}

sub status_of { return $_[0]->ask('GET', '/ten', { 'x-api-key' => next_key() })->{status} }

# How many requests were decided in this way.
sub count_of { return $_[0]->ask('GET', '/limits')->{json}{regions}[0]{store}{ $_[1] } }

# Stops the store for as long as the sub takes, when it grants.
sub while_stopped {
    my ($server, $work) = @_;
    wait_for('a grant', sub { status_of($server) != 429 });
    kill STOP => $redis->pid;
    $work->();
    kill CONT => $redis->pid;
    return;
}

# --- How long ---------------------------------------------------------------------------------

# The shortest of some waits: on a busy machine any of them may be long.
my $server = start('');
my ($shortest, $seen) = (1, 0);
wait_for('five requests that the store is too late for', sub {
    my $before = count_of($server, 'late');
    my $sec;
    while_stopped($server, sub {
        my $began = time;
        status_of($server);
        $sec = time - $began;
    });
    return 0 if count_of($server, 'late') == $before;
    $shortest = $sec if $sec < $shortest;
    return ++$seen == 5;
});
cmp_ok $shortest, '<', 0.3, 'by default a request does not wait for half a second, after which the store is away';
$server->stop;

# --- How many ---------------------------------------------------------------------------------

# More requests than threads: once the store is slow as many as may wait do, and the others are decided
# at once.
$server = start("RateLimitStoreTimeout 1s\n");
wait_for('a request that does not wait', sub {
    while_stopped($server, sub {
        my @sockets = map { $server->connection } 1 .. 100;
        syswrite $_, $server->request_text('GET', '/ten', { 'x-api-key' => next_key(), Connection => 'close' }) for @sockets;
        AgentTest::Client::read_to_end($_) for @sockets;
    });
    return count_of($server, 'busy') > 0;
});
pass 'not all threads of a child wait for the store';

# With its slot an address pays for what the store keeps.
sub keys_of { return $_[0]->ask('GET', '/limits')->{json}{store}{table_keys} }

wait_for('the end of all keys', sub { keys_of($server) == 0 });
my $waited = 0;
wait_for('20 requests that do not wait', sub {
    my $before = count_of($server, 'busy');
    while_stopped($server, sub {
        my @sockets = map { $server->connection } 1 .. 100;
        syswrite $_, $server->request_text('GET', '/day', { 'x-api-key' => next_key(), Connection => 'close' }) for @sockets;
        AgentTest::Client::read_to_end($_) for @sockets;
    });
    my $busy = count_of($server, 'busy') - $before;
    $waited += 100 - $busy;
    return $busy >= 20;
});
# Those of other requests end after a second.
wait_for('keys of the requests that waited only', sub { keys_of($server) <= $waited });
pass 'a key of which the store was not asked, since as many waited as may, has no slot';

# --- Too far away -------------------------------------------------------------------------------

$server->stop;
my $proxy = GroupTest::Proxy->new(ports => 1, to => $redis->{port});
$server = start("RateLimitStore redis://127.0.0.1:$proxy->{ports}[0]\n");
wait_for('a membership', sub { $server->ask('GET', '/limits')->{json}{store}{state} eq 'member' });
$proxy->set(0, 'later', 15);
wait_for('a longer round trip', sub {
    status_of($server);
    return $server->ask('GET', '/limits')->{json}{store}{recent_round_trip_us} > 20_000;
});
cmp_ok $server->ask('GET', '/limits')->{json}{store}{advised_timeout_ms}, '>', 60, 'the page has a timeout that a store far away needs';
like $server->ask('GET', '/limits?format=html')->{body}, qr/round trip to the store took \d+\.\d ms of late.* 5 ms.*Set RateLimitStoreTimeout to \d+ms/s,
    'the HTML page warns of a timeout that is too short';
like $server->ask('GET', '/limits?format=prometheus')->{body}, qr/^ratelimit_store_advised_timeout_milliseconds\{\S+\} [1-9]/m,
    'metrics have the timeout';
wait_for('the log', sub {
    status_of($server);
    return $server->error_log =~ /RLR0123: .*; a round trip took \d+\.\d ms of late: too long for 5 ms, set RateLimitStoreTimeout to \d+ms/;
});
pass 'the log says how long a round trip takes, and the timeout that it needs';

done_testing;
