# SPDX-License-Identifier: Apache-2.0
# How many requests wait for the store at once, if each process of httpd has one thread.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Wait;
use GroupTest::Redis;
use IO::Socket::INET;
use RateLimitTest;
use Test::More;

my $CLIENTS = 8;

my $redis = GroupTest::Redis->new;
my $server = RateLimitTest->new(defines => ['PREFORK'], config => <<"CONF");
RateLimitRule ten =/ten key=api-key us=10/10
RateLimitRegion us
RateLimitStore redis://127.0.0.1:$redis->{port}
RateLimitStoreHosts 1
RateLimitStoreTimeout 1s
RedirectMatch 204 ^/ten
<Location /limits>
    SetHandler ratelimit-status
</Location>
CONF
$server->start;
wait_for('a grant', sub { $server->ask('GET', '/ten', { 'x-api-key' => next_key() })->{status} != 429 });

# One request of each address at a time, while the store does not answer.
sub send_all {
    my (@addresses) = @_;
    my @sockets = map { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $server->{port}) // die "no connection: $!\n" } @addresses;
    kill STOP => $redis->pid;
    syswrite $sockets[$_], $server->request_text('GET', '/ten',
        { 'x-api-key' => next_key(), 'X-Forwarded-For' => $addresses[$_], Connection => 'close' }) for 0 .. $#sockets;
    AgentTest::Client::read_until($_, qr/\r\n\r\n/) for @sockets;
    kill CONT => $redis->pid;
    wait_for('a grant', sub { $server->ask('GET', '/ten', { 'x-api-key' => next_key() })->{status} != 429 });
    return;
}

sub busy { return $server->ask('GET', '/limits')->{json}{regions}[0]{store}{busy} }

my $before = busy();
wait_for('requests that do not wait', sub { send_all(map { "192.0.2.$_" } 1 .. $CLIENTS); busy() > $before });
pass 'with prefork a quarter of the processes waits for the store';
$before = busy();
wait_for('requests of one client that do not wait', sub { send_all(('192.0.2.1') x 3); busy() > $before });
pass 'with prefork one client does not take all slots';

done_testing;
