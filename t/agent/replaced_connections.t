# SPDX-License-Identifier: Apache-2.0
# A connection with large buffers is replaced by a new one. While PostgreSQL does
# not answer new connections one request waits, not all, and while it refuses them
# the old ones stay in use.
use strict;
use warnings;
use AgentTest::Client qw(run_body);
use AgentTest::Cost;
use AgentTest::Database;
use AgentTest::Env qw(is_sanitized);
use AgentTest::Postgres;
use AgentTest::Process qw(httpd_children);
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

# Reads available bytes; returns the number of complete answers.
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

my $thread = $client->new_thread;
my $runs = "/threads/$thread/runs";
is $client->post($runs, run_body('x' x 900_000, after_seconds => 3600))->{status}, 200,
    'connections: a run of 900 KB is accepted';

kill STOP => $postgres->postmaster_pid;
my ($select, $text) = together("$runs?limit=1");
my $ended = eval {
    wait_for('all answers but one', sub { count_ended($select, $text) >= $READS - 1 });
    1;
};
ok $ended, 'connections: one large read at most waits for a new connection';
is $client->get("/threads/$thread")->{status}, 200, 'connections: small reads do not wait for a new connection';
kill CONT => $postgres->postmaster_pid;
wait_for('the last answer', sub { count_ended($select, $text) == $READS });
pass 'connections: all large reads are answered when PostgreSQL answers again';

# Sends $READS requests at once; whether all responses are 200.
sub read_together {
    my ($path) = @_;
    my ($reads, $answers) = together($path);
    wait_for('all responses', sub { count_ended($reads, $answers); !$reads->count });
    return $READS == grep { /\AHTTP\/1\.1 200/ } values %{$answers};
}

subtest 'connections: a connection that could not be replaced is replaced by a later query' => sub {
    plan skip_all => 'a sanitizer keeps what was freed' if is_sanitized();
    my @children = httpd_children($server->httpd_pid);
    is scalar @children, 1, 'connections: one child has all connections';
    read_together("/threads/$thread") for 1 .. 20;
    my $before = resident_bytes(@children);
    $client->post($runs, run_body('x' x 3_900_000, after_seconds => 3600, multitask_strategy => 'enqueue'))
        for 1 .. 2;
    local @ENV{qw(PGHOST PGUSER PGDATABASE)} = ($postgres->host, 'postgres', 'agent');
    sql('alter role agent connection limit 1');
    ok read_together("$runs?limit=10"), "connections: large reads are answered while PostgreSQL refuses new ones, round $_"
        for 1 .. 3;
    cmp_ok resident_bytes(@children), '>', 2 * $before, 'connections: connections that could not be replaced keep their buffers';
    sql('alter role agent connection limit -1');
    my $returned = eval {
        wait_for('memory to be returned', sub {
            read_together("/threads/$thread");
            return resident_bytes(@children) < 1.2 * $before;
        });
    };
    ok $returned, 'connections: the memory is returned once later queries have replaced them';
};

done_testing;
