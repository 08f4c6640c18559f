# SPDX-License-Identifier: Apache-2.0
# Many waiting requests that are woken at the same time must not use all threads:
# httpd without an idle thread closes keep-alive connections.
use strict;
use warnings;
use AgentTest::Client qw(read_until run_path);
use AgentTest::Crowd;
use AgentTest::Database;
use AgentTest::Nginx;
use AgentTest::Postgres;
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

my $WAITERS = 500;
my $OTHERS  = 30;

my $FRAME = <<'CONF';
StartServers 1
ServerLimit 3
ThreadsPerChild 64
ThreadLimit 64
MinSpareThreads 1
MaxSpareThreads 64
MaxRequestWorkers 64
CONF

# Clients that join the run and then send another request on the same connection;
# @{$second} receives the answers to that. Returns the members.
sub add_waiters {
    my ($crowd, $run, $second) = @_;
    my @members;
    for (1 .. $WAITERS) {
        my $answers = 0;
        my $member = $crowd->add(sub {
            my ($answer) = @_;
            push @{$second}, $answer if ++$answers == 2;
            return $answers == 1 && $answer->{status} == 200
                ? AgentTest::Crowd::request('GET', '/info') : undef;
        });
        $crowd->ask($member, AgentTest::Crowd::request('GET', run_path($run) . '/join'));
        push @members, $member;
    }
    # The head of each answer.
    $crowd->run(sub { !grep { $_->{seen} !~ /\r\n\r\n/ } values %{ $crowd->{members} } });
    return @members;
}

# Clients that send requests until $$stops. A proxy answers 502 when httpd has
# closed a connection with a request in flight: that request is lost as well.
sub add_others {
    my ($crowd, $request, $served, $stops) = @_;
    for (1 .. $OTHERS) {
        my $member = $crowd->add(sub {
            my ($answer) = @_;
            ${$served}++ if $answer->{status} == 200;
            $crowd->{lost}++ if $answer->{status} != 200;
            return ${$stops} ? undef : $request;
        });
        $crowd->ask($member, $request);
    }
    return;
}

# The crowd's requests go to $entry->($server), the test's own to the server.
sub wake_all {
    my ($entry) = @_;
    my $server = AgentTest::Server->new(
        config => AgentTest::Server::shared_config() . $FRAME);
    $server->start;
    my $client = AgentTest::Client->new(url => $server->url);
    my $run = $client->start_run('sleep 600000');
    my $proxy = $entry->($server);
    my $crowd = AgentTest::Crowd->new(AgentTest::Client->new(url => $proxy->url));
    my ($served, $stops, @second) = (0, 0);
    add_waiters($crowd, $run, \@second);
    # The others are in the same process, so that all are served in one loop.
    add_others($crowd, AgentTest::Crowd::request('POST', '/threads', '{}'),
        \$served, \$stops);
    $crowd->run(sub { $served >= 10 * $OTHERS });
    $client->post(run_path($run) . '/cancel');
    $crowd->run(sub { @second + $crowd->{lost} >= $WAITERS });
    my $before = $served;
    $crowd->run(sub { $served >= $before + 10 * $OTHERS || $crowd->{lost} });
    $stops = 1;
    $crowd->run(sub { !grep { $_->{asks} } values %{ $crowd->{members} } });
    is $crowd->{lost}, 0, 'wake-ups: no other request is lost while 500 waiters are woken';
    is scalar(grep { $_->{status} == 200 } @second), $WAITERS,
        'wake-ups: the next request of each woken client is answered';
    is scalar(keys %{ $crowd->{members} }), $WAITERS + $OTHERS,
        'wake-ups: all connections are kept while 500 waiters are woken';
    return;
}

subtest 'wake-ups: waking 500 clients closes no connection' => sub {
    wake_all(sub { return $_[0] });
};

subtest 'wake-ups: waking 500 clients behind nginx closes no connection' => sub {
    # With fewer connections kept, it closes the others when their waits end, and
    # each close takes a thread.
    wake_all(sub { return AgentTest::Nginx->new($_[0]->url, kept => $WAITERS + $OTHERS) });
};

subtest 'wake-ups: polling while PostgreSQL is down closes no connection' => sub {
    my $postgres = AgentTest::Postgres->new;
    local $ENV{PGHOST} = $postgres->host;
    my $server = AgentTest::Server->new(database => $postgres->conninfo,
        config => AgentTest::Server::shared_config() . $FRAME);
    $server->start;
    my $client = AgentTest::Client->new(url => $server->url);
    my $run = $client->start_run('sleep 600000');
    my $crowd = AgentTest::Crowd->new($client);
    my ($served, $stops, @second) = (0, 0);
    my @waiters = add_waiters($crowd, $run, \@second);
    add_others($crowd, AgentTest::Crowd::request('GET', '/ok'), \$served, \$stops);
    $postgres->stop;
    my $has_noticed = sub { $server->error_log =~ /AGT0201/ };
    $crowd->run(sub { $crowd->{lost} || ($served >= 100 * $OTHERS && $has_noticed->()) });
    # From one heartbeat to the next each of them polls several times.
    for (1 .. 2) {
        my %length = map { $_ => length $_->{seen} } @waiters;
        $crowd->run(sub {
            $crowd->{lost} || !grep { length $_->{seen} == $length{$_} } @waiters;
        });
    }
    is $crowd->{lost}, 0, 'wake-ups: no request is lost while 500 waiters poll';
    $postgres->start;
    wait_for('the database', sub { $client->get('/threads/' . $run->{thread_id})->{status} == 200 });
    $client->post(run_path($run) . '/cancel');
    $crowd->run(sub { @second + $crowd->{lost} >= $WAITERS });
    $stops = 1;
    $crowd->run(sub { !grep { $_->{asks} } values %{ $crowd->{members} } });
    is $crowd->{lost}, 0, 'wake-ups: no request is lost when PostgreSQL is back and the run ends';
    is scalar(grep { $_->{status} == 200 } @second), $WAITERS, 'wake-ups: all waiters are answered when PostgreSQL is back';
    is scalar(keys %{ $crowd->{members} }), $WAITERS + $OTHERS, 'wake-ups: all connections are kept while PostgreSQL is down';
};

# Otherwise waiters would get this thread for their turns, and its connection would
# be closed with the idle ones.
subtest 'wake-ups: a thread that continues a request counts as busy' => sub {
    my ($server, $client) = AgentTest::Server->start_with_client(
        'LoadModule status_module "${MODULES}/mod_status.so"',
        "<Location /server-status>\nSetHandler server-status\n</Location>");
    my $lock = hold_lock('lock table agent.threads');
    my $socket = $client->connection;
    syswrite $socket, AgentTest::Crowd::request('GET', '/ok');
    read_until($socket, qr/\r\n\r\n.*ok/s);
    syswrite $socket, "POST /threads HTTP/1.1\r\nHost: localhost\r\n"
        . "Content-Length: 2\r\nExpect: 100-continue\r\n\r\n";
    read_until($socket, qr/100 Continue\r\n\r\n/);
    syswrite $socket, '{}';
    wait_for('the request to wait for the lock', sub {
        poll(q{select count(*) from pg_stat_activity where wait_event_type = 'Lock'});
    });
    # Including the thread of this request.
    like $client->get('/server-status?auto')->{body}, qr/^BusyWorkers: 2$/m,
        'wake-ups: a thread that continues a request counts as busy in the scoreboard';
    close $lock;
    like read_until($socket, qr/thread_id/), qr{HTTP/1\.1 200},
        'wake-ups: a request is answered after its body has arrived';
};

done_testing;
