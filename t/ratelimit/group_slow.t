# SPDX-License-Identifier: Apache-2.0
# A store that does not answer in time.
use strict;
use warnings;
use AgentTest::Wait;
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

# More requests than threads: as many as may wait do, and the others are decided at once.
$server = start("RateLimitStoreTimeout 1s\n");
wait_for('a request that does not wait', sub {
    while_stopped($server, sub {
        my @sockets = map { $server->connection } 1 .. 40;
        syswrite $_, $server->request_text('GET', '/ten', { 'x-api-key' => next_key(), Connection => 'close' }) for @sockets;
        AgentTest::Client::read_to_end($_) for @sockets;
    });
    return count_of($server, 'busy') > 0;
});
pass 'not all threads of a child wait for the store';

done_testing;
