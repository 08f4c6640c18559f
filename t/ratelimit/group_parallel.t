# SPDX-License-Identifier: Apache-2.0
# Parallel requests of one client, below its limit, while the store is quick.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Wait;
use GroupTest;
use GroupTest::Proxy;
use GroupTest::Redis;
use RateLimitTest;
use Test::More;

# Of prefork as many as there are processes, of event more than half of the threads (t/conf/ratelimit.conf).
my %PARALLEL = (event => 24, prefork => 12);

# All of them are sent before the first answer, which takes some milliseconds.
my $redis = GroupTest::Redis->new;
my $proxy = GroupTest::Proxy->new(ports => 1, to => $redis->{port});

for my $mpm (qw(event prefork)) {
    $redis->run('FLUSHALL');
    my $server = RateLimitTest->new(defines => [ $mpm eq 'prefork' ? 'PREFORK' : () ], config => <<"CONF");
RateLimitRule sixty =/ten key=api-key us=60/10
RateLimitRegion us
RateLimitStore redis://127.0.0.1:$proxy->{ports}[0]
RateLimitStoreHosts 1
RateLimitStoreTimeout 1s
RedirectMatch 204 ^/ten
CONF
    GroupTest->new(store => $redis, servers => [$server])->start;
    $proxy->set(0, 'later', 2);
    for my $keys ('one key', 'a key each') {
        # On a busy machine an answer may be late.
        wait_for("parallel requests with $keys that are all admitted ($mpm)", sub {
            $server->ask('GET', '/ten', { 'x-api-key' => next_key(), 'X-Forwarded-For' => next_address() });
            my $key = next_key();
            my @sockets = map { $server->connection } 1 .. $PARALLEL{$mpm};
            for my $socket (@sockets) {
                syswrite $socket, $server->request_text('GET', '/ten', { 'x-api-key' => $key, Connection => 'close' });
                $key = next_key() if $keys ne 'one key';
            }
            return !grep { !m{\AHTTP/1\.1 204} } AgentTest::Client::read_all(@sockets);
        });
        pass "parallel requests of one client with $keys, below the limit, are admitted ($mpm)";
    }
    $server->stop;
    $proxy->set(0, 'none');
}

done_testing;
