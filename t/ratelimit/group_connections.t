# SPDX-License-Identifier: Apache-2.0
# The connections of idle processes, each of one thread, end while the store goes on.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Wait;
use GroupTest;
use GroupTest::Redis;
use RateLimitTest;
use Test::More;

my $PROCESSES = 12;

my $redis = GroupTest::Redis->new;
my $server = RateLimitTest->new(defines => ['PREFORK'], config => <<"CONF");
RateLimitRule ten =/ten key=api-key us=10/10
RateLimitRegion us
RateLimitStore redis://127.0.0.1:$redis->{port}
RateLimitStoreHosts 1
RateLimitStoreTimeout 1s
RateLimitStoreFailure closed
RedirectMatch 204 ^/ten
<Location /limits>
    SetHandler ratelimit-status
</Location>
CONF
my $region = GroupTest->new(store => $redis, servers => [$server])->start;

# Sends requests to all processes at once; how many are refused.
sub send_all {
    my @sockets = map { $server->connection } 1 .. $PROCESSES;
    syswrite $_, $server->request_text('GET', '/ten', { 'x-api-key' => next_key(), Connection => 'close' }) for @sockets;
    return scalar grep { AgentTest::Client::read_to_end($_) =~ m{\AHTTP/1\.1 429} } @sockets;
}

sub count_of { return $server->ask('GET', '/limits')->{json}{regions}[0]{store}{ $_[0] } }

# One more is that of the question.
wait_for(
    'connections of all processes',
    sub { send_all(); return ($redis->run('INFO', 'clients') =~ /connected_clients:(\d+)/)[0] > $PROCESSES });
my $away = count_of('away');
my $refused = 0;
for (1 .. 5) {
    $redis->run(qw(CLIENT KILL TYPE normal SKIPME yes));
    $refused += send_all();
}
is count_of('away'), $away, 'after the store has closed its connections each request is decided by it' or diag "$refused refused";

done_testing;
