# SPDX-License-Identifier: Apache-2.0
# A connection with large buffers is replaced by a new one. While PostgreSQL
# accepts no new connections that holds up one request, not all.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Postgres;
use AgentTest::Server;
use AgentTest::Wait;
use IO::Select;
use Test::More;

my $READS = 8;
my $THREADS = 2 * $READS;

my $postgres = AgentTest::Postgres->new;
my $server = AgentTest::Server->new(
    database => 'host=' . $postgres->host . ' user=agent dbname=agent connect_timeout=600',
    config => AgentTest::Server::shared_config() . <<"CONF");
StartServers 1
ServerLimit 2
ThreadsPerChild $THREADS
ThreadLimit $THREADS
MinSpareThreads 1
MaxSpareThreads $THREADS
MaxRequestWorkers $THREADS
# From the start: none can be added while PostgreSQL is stopped.
DBDMin $THREADS
DBDKeep $THREADS
DBDMax $THREADS
CONF
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

sub together {
    my ($path) = @_;
    my $select = IO::Select->new(map { $client->begin('GET', $path) } 1 .. $READS);
    return ($select, {});
}

# Reads what has come; how many answers are complete.
sub count_ended {
    my ($select, $text) = @_;
    while (my @ready = $select->can_read(0)) {
        for my $socket (@ready) {
            next if sysread $socket, $text->{$socket}, 1 << 20, length($text->{$socket} // '');
            $select->remove($socket);
        }
    }
    my %open = map { ("$_" => 1) } $select->handles;
    return grep { !$open{$_} && $text->{$_} =~ /\AHTTP\/1\.1 200/ } keys %{$text};
}

my $thread = $client->create_thread->{thread_id};
my $runs = "/threads/$thread/runs";
is $client->post($runs, { assistant_id => 'agent', after_seconds => 3600,
    input => { messages => [ { role => 'user', content => 'x' x 900_000 } ] } })->{status}, 200,
    'a run of 900 KB';

kill STOP => $postgres->postmaster_pid;
my ($select, $text) = together("$runs?limit=1");
my $ended = eval {
    wait_for('all answers but one', sub { count_ended($select, $text) >= $READS - 1 });
    1;
};
ok $ended, 'one large read at most waits for a new connection';
is $client->get("/threads/$thread")->{status}, 200, 'small reads do not wait';
kill CONT => $postgres->postmaster_pid;
wait_for('the last answer', sub { count_ended($select, $text) == $READS });
pass 'all large reads are answered';

done_testing;
