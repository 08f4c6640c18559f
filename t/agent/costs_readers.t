# SPDX-License-Identifier: Apache-2.0
# Clients that request large responses and do not read them: memory and time of
# the child, and other requests that it serves.
use strict;
use warnings;
use AgentTest::Client qw(run_path);
use AgentTest::Cost;
use AgentTest::Env qw(is_sanitized);
use AgentTest::Process qw(httpd_children);
use AgentTest::Server;
use AgentTest::Wait;
use Socket qw(SOL_SOCKET SO_RCVBUF);
use Test::More;

my $READERS = 100;
my $TEXT    = 1_000_000;
# An event has both messages of the run.
my $EVENT   = 2 * $TEXT;
# The budget of a child (all responses are 200 MB), and the memory of four threads:
# a result of libpq, its buffer, and the event made from it.
my $BUDGET  = 64 << 20;
my $ON_WAY  = 4 * 3 * $EVENT;
# About five times the measured time.
my $CPU_SEC = 4 * memory_scale();

# Sends the request and does not read, with the smallest receive buffer.
sub stall {
    my ($client, $path) = @_;
    my $socket = $client->connection;
    setsockopt $socket, SOL_SOCKET, SO_RCVBUF, pack 'i', 4096;
    syswrite $socket, "GET $path HTTP/1.1\r\nHost: localhost\r\n\r\n";
    return $socket;
}

sub count_cut {
    my ($server) = @_;
    return scalar(() = $server->error_log =~ /AGT0202/g);
}

# The kernel takes little of each answer. While no thread is idle httpd accepts
# no more connections than the factor has room for.
my ($server, $client) = AgentTest::Server->start_with_client('SendBufferSize 16384',
    'AsyncRequestWorkerFactor 400');
my $thread = $client->new_thread;
my $run;
for (1 .. 2) {
    $run = $client->create_run($thread, 'x' x $TEXT);
    $client->join_run($run);
}
my ($child) = httpd_children($server->httpd_pid);

# Returns when the budget is exhausted and many clients were cut, or when the
# child exceeds its limit. It holds one record of each list. A join or an event is
# sent in parts, which fit into the budget: then when all clients have received something.
sub stall_all {
    my ($path, $most) = @_;
    my $cut = count_cut($server);
    my @stalled = map { stall($client, $path) } 1 .. $READERS;
    if ($path !~ /runs\z/) {
        sysread $_, my $byte, 1 for @stalled;
        return @stalled;
    }
    for my $count (1 .. $READERS - $BUDGET / $TEXT - 15) {
        wait_for("$count to be cut", sub {
            count_cut($server) - $cut >= $count || resident_bytes($child) > $most });
    }
    return @stalled;
}

for my $what (qw(stream join list)) {
    subtest "unread responses: those of a hundred clients of a $what are limited" => sub {
        my $path = $what eq 'list' ? "/threads/$thread/runs" : run_path($run) . "/$what";
        my $whole = $client->get($path)->{body};
        cmp_ok length $whole, '>=', $EVENT, "unread responses: the response of a $what is large";
        my $before = resident_bytes($child);
        my $most = memory_scale() * ($BUDGET + $ON_WAY);
        my (@stalled, $read);
        my $cost = cost_of([$child], sub {
            served_beside($client, 10, "unread responses: other requests are served while clients of a $what connect", sub {
                close $_ for @stalled;
                @stalled = stall_all($path, $before + $most);
            });
            served_beside($client, 10, "unread responses: other requests are served while clients of a $what do not read", sub {
                $read = $client->get($path)->{body} for 1 .. 5;
            });
        });
        note sprintf 'peak of the child: %.0f MB, %.2f s',
            $cost->{peak_bytes} / 1e6, $cost->{cpu_sec};
        cmp_ok $cost->{peak_bytes}, '<', $most,
            "unread responses: the memory of a $what is limited by the budget of the child";
        cmp_ok $cost->{cpu_sec}, '<', $CPU_SEC, "unread responses: the processor time of a $what is limited";
        ok $read eq $whole, "unread responses: a client of a $what that reads receives the whole response";
        close $_ for @stalled;
      SKIP: {
            skip 'a sanitizer keeps what was freed', 1 if is_sanitized();
            wait_for('the memory to be returned', sub {
                resident_bytes($child) < 1.5 * $before + $EVENT });
            pass "unread responses: the memory of a $what is returned when clients have disconnected";
        }
    };
}

undef $server;
done_testing;
