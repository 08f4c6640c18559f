# SPDX-License-Identifier: Apache-2.0
# Memory that large requests and answers have taken goes back to the system.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Cost;
use AgentTest::Env ();
use AgentTest::Process qw(httpd_children);
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

plan skip_all => 'a sanitizer keeps what was freed' if AgentTest::Env::is_sanitized();

my $THREADS = 16;

# One child, so that it has all of it; many threads, for what each may keep.
my $server = AgentTest::Server->new(config => AgentTest::Server::shared_config() . <<"CONF");
StartServers 1
ServerLimit 3
ThreadsPerChild $THREADS
ThreadLimit $THREADS
MinSpareThreads 1
MaxSpareThreads $THREADS
MaxRequestWorkers $THREADS
CONF
$server->start;
my $client = AgentTest::Client->new(url => $server->url);
my @children = httpd_children($server->httpd_pid);
is scalar @children, 1, 'one child has all the requests';

# All at once, so that each takes a thread of its own; how many were answered 200.
sub together {
    my ($method, $path, $body) = @_;
    my @sockets = map { $client->begin($method, $path, $body) } 1 .. $THREADS;
    return scalar grep { AgentTest::Client::read_to_end($_) =~ m{\AHTTP/1\.1 200} } @sockets;
}

my $thread = $client->create_thread->{thread_id};
my $runs = "/threads/$thread/runs";
sub run_of {
    my ($bytes) = @_;
    return { assistant_id => 'agent', after_seconds => 3600, multitask_strategy => 'enqueue',
        input => { messages => [ { role => 'user', content => 'x' x $bytes } ] } };
}

# Every thread, and every connection to the database, has worked.
together('POST', '/threads', {}) for 1 .. 20;
together('GET', "$runs?limit=10") for 1 .. 20;
my $before = resident_bytes(@children);

sub is_returned {
    my ($what) = @_;
    my $after = 0;
    eval {
        wait_for('memory to come back', sub {
            $after = resident_bytes(@children);
            return $after < 1.2 * $before;
        });
    };
    cmp_ok $after, '<', 1.2 * $before, "memory of $what comes back";
    return;
}

is together('POST', '/threads', ' ' x 4_000_000), $THREADS, 'large bodies that say nothing';
is_returned('large bodies that say nothing');
my $many = '{"x":[' . join(',', ('"' . 'a' x 90 . '"') x 40_000) . ']}';
is together('POST', '/threads', $many), $THREADS, 'large bodies of many values';
is_returned('large bodies of many values');
is $client->post($runs, run_of(3_900_000))->{status}, 200, 'a large run' for 1 .. 4;
is_returned('large runs');
is together('GET', "$runs?limit=4"), $THREADS, 'large answers';
is_returned('large answers');

done_testing;
