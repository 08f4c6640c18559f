# SPDX-License-Identifier: Apache-2.0
# Clients that ask for large events and do not read them: what they cost the
# child, and who notices.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Cost;
use AgentTest::Process qw(httpd_children);
use AgentTest::Server;
use AgentTest::Wait;
use IO::Handle;
use Socket qw(SOL_SOCKET SO_RCVBUF);
use Test::More;

my $READERS = 80;
my $TEXT    = 2_600_000;
# What a child may hold for all of them; and for events on their way from
# PostgreSQL: each of 16 database connections has a buffer of up to 16 MB, which
# it keeps, and the result that was in it.
my $BUDGET = 64 * 1024 * 1024;
my $ON_WAY = 16 * 24 * 1024 * 1024;
my $KEPT   = 16 * 16 * 1024 * 1024;

my $FRAME = <<'CONF';
LogLevel agent:info
StartServers 1
ServerLimit 3
ThreadsPerChild 16
ThreadLimit 16
MinSpareThreads 1
MaxSpareThreads 16
MaxRequestWorkers 16
CONF

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

my $server = AgentTest::Server->new(config => AgentTest::Server::shared_config() . $FRAME);
$server->start;
my $client = AgentTest::Client->new(url => $server->url);
my $thread = $client->create_thread->{thread_id};
my $run;
for (1 .. 2) {
    $run = $client->create_run($thread, 'x' x $TEXT);
    $client->join_run($run);
}
my ($child) = httpd_children($server->httpd_pid);

for my $what (qw(stream join)) {
    subtest "readers: large answers of a $what that nobody reads" => sub {
        my $whole = $client->get(path($run) . "/$what")->{body};
        cmp_ok length $whole, '>', 2 * $TEXT, 'are large';
        my $before = resident_bytes($child);
        my $cut_before = count_cut($server);
        my (@stalled, $read, $served);
        my $cost = cost_of([$child], sub {
            $served = beside($client, 10, sub {
                @stalled = map { stall($client, path($run) . "/$what") } 1 .. $READERS;
                # The kernel's buffers take up to 4 MB of each.
                wait_for('many of them to be cut', sub {
                    count_cut($server) - $cut_before >= $READERS / 4 });
                $read = $client->get(path($run) . "/$what")->{body};
            });
        });
        cmp_ok $cost->{peak_bytes}, '<', memory_scale() * ($BUDGET + $ON_WAY),
            'cost the child no more than its budget for all of them';
        is $served, 10, 'somebody else is served';
        ok $read eq $whole, 'who reads gets everything, like before';
        close $_ for @stalled;
        wait_for('the memory to be given back', sub {
            resident_bytes($child) < $before + memory_scale() * $KEPT });
        pass 'and the memory is given back when they have left';
    };
}

undef $server;
done_testing;
