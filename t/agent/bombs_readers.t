# SPDX-License-Identifier: Apache-2.0
# Clients that ask for large answers and do not read them: what they cost the
# child, and who notices.
use strict;
use warnings;
use AgentTest::Client;
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
# What a child may hold for all of them (200 MB if it held what they asked for),
# and beside it what each of its four threads has on its way: the result of
# libpq, the buffer that it came in, and the event that is made of it.
my $BUDGET  = 64 << 20;
my $ON_WAY  = 4 * 3 * $EVENT;
# Some five times what all of them take.
my $CPU_SEC = 4 * memory_scale();

sub path { return AgentTest::Client::run_path($_[0]) }

# Asks, and leaves the answer in the smallest buffer there is.
sub stall {
    my ($client, $path) = @_;
    my $socket = $client->connection;
    setsockopt $socket, SOL_SOCKET, SO_RCVBUF, pack 'i', 4096;
    syswrite $socket, "GET $path HTTP/1.1\r\nHost: localhost\r\n\r\n";
    return $socket;
}

sub count_cut {
    my ($server) = @_;
    return scalar(() = $server->error_log =~ /AGT0721/g);
}

# The kernel takes little of each answer. While no thread is idle httpd accepts
# no more connections than the factor has room for.
my ($server, $client) = AgentTest::Server->start_with_client('SendBufferSize 16384',
    'AsyncRequestWorkerFactor 400');
my $thread = $client->create_thread->{thread_id};
my $run;
for (1 .. 2) {
    $run = $client->create_run($thread, 'x' x $TEXT);
    $client->join_run($run);
}
my ($child) = httpd_children($server->httpd_pid);

# Until the budget has been used up, so that most of them were cut; or until the
# child holds more than it may.
sub stall_all {
    my ($path, $most) = @_;
    my $cut = count_cut($server);
    my @stalled = map { stall($client, $path) } 1 .. $READERS;
    for my $count (1 .. $READERS - $BUDGET / $EVENT - 5) {
        wait_for("$count to be cut", sub {
            count_cut($server) - $cut >= $count || resident_bytes($child) > $most });
    }
    return @stalled;
}

for my $what (qw(stream join)) {
    subtest "a hundred clients that do not read the large answer of a $what" => sub {
        my $path = path($run) . "/$what";
        my $whole = $client->get($path)->{body};
        cmp_ok length $whole, '>=', $EVENT, 'is large';
        my $before = resident_bytes($child);
        my $most = memory_scale() * ($BUDGET + $ON_WAY);
        my (@stalled, $read);
        my $cost = cost_of([$child], sub {
            served_beside($client, 10, 'others are served while they come', sub {
                close $_ for @stalled;
                @stalled = stall_all($path, $before + $most);
            });
            served_beside($client, 10, 'and while they do not read', sub {
                $read = $client->get($path)->{body} for 1 .. 5;
            });
        });
        note sprintf 'peak of the child: %.0f MB, %.2f s',
            $cost->{peak_bytes} / 1e6, $cost->{cpu_sec};
        cmp_ok $cost->{peak_bytes}, '<', $most,
            'cost the child no more than its budget for all of them';
        cmp_ok $cost->{cpu_sec}, '<', $CPU_SEC, 'and no more time than to send it';
        ok $read eq $whole, 'who reads gets everything, like before';
        close $_ for @stalled;
      SKIP: {
            skip 'a sanitizer keeps what was freed', 1 if is_sanitized();
            wait_for('the memory to be given back', sub {
                resident_bytes($child) < 1.5 * $before + $EVENT });
            pass 'and the memory is given back when they have left';
        }
    };
}

undef $server;
done_testing;
