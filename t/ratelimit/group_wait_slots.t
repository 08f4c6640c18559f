# SPDX-License-Identifier: Apache-2.0
# How many requests wait for a slow store at once, if each process of httpd has one thread.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Wait;
use GroupTest::Redis;
use IO::Select;
use IO::Socket::INET;
use RateLimitTest;
use Test::More;

# Of 12 processes (t/conf/ratelimit.conf).
my $SLOTS = 3;
# Two for each process: the first ones wait briefly, and the store is slow for the others.
my $CLIENTS = 24;

# Without an answer the store is away after half a second.
my $redis = GroupTest::Redis->new;
my $server = RateLimitTest->new(defines => ['PREFORK'], config => <<"CONF");
RateLimitRule ten =/ten key=api-key us=10/10
RateLimitRegion us
RateLimitStore redis://127.0.0.1:$redis->{port}
RateLimitStoreHosts 1
RateLimitStoreTimeout 450ms
RedirectMatch 204 ^/ten
<Location /limits>
    SetHandler ratelimit-status
</Location>
CONF
$server->start;

sub wait_for_grant {
    wait_for('a grant', sub { $server->ask('GET', '/ten', { 'x-api-key' => next_key() })->{status} != 429 });
    return;
}

# One request of each address, at the same time.
sub send_requests {
    my (@addresses) = @_;
    my @sockets = map { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $server->{port}) // die "no connection: $!\n" } @addresses;
    syswrite $sockets[$_], $server->request_text('GET', '/ten',
        { 'x-api-key' => next_key(), 'X-Forwarded-For' => $addresses[$_], Connection => 'close' }) for 0 .. $#sockets;
    return @sockets;
}

# Takes answers until so many are outstanding. A process is used until its client has closed the
# connection.
sub take_answers {
    my ($left, @sockets) = @_;
    my $select = IO::Select->new(@sockets);
    while ($select->count > $left) {
        for my $socket ($select->can_read) {
            AgentTest::Client::read_to_end($socket);
            $select->remove($socket);
            close $socket;
        }
    }
    return $select->handles;
}

sub count_of { return $server->ask('GET', '/limits')->{json}{regions}[0]{store}{ $_[0] } }

# Sends requests of the addresses while the store does not answer, and of another one once some were
# decided at once and all are answered that have no slot; how many of the others, with this one, wait
# until they are late, and how many do not wait.
sub send_while_stopped {
    my ($another, @addresses) = @_;
    wait_for_grant();
    my $before = count_of('busy');
    kill STOP => $redis->pid;
    my @left = take_answers($SLOTS, send_requests(@addresses));
    my ($late, $busy) = map { count_of($_) } qw(late busy);
    take_answers(0, @left, send_requests(@{$another}));
    my @counts = (count_of('late') - $late, count_of('busy') - $busy);
    kill CONT => $redis->pid;
    return $busy > $before ? "@counts" : 'all have waited';
}

wait_for('as many requests that wait as there are slots', sub { send_while_stopped([], map { next_address() } 1 .. $CLIENTS) eq "$SLOTS 0" });
pass 'with prefork a quarter of the processes waits for a slow store';

wait_for('a request of another client that waits', sub { send_while_stopped([ next_address() ], (next_address()) x $CLIENTS) eq "$SLOTS 0" });
pass 'with prefork one client does not take all slots';

done_testing;
