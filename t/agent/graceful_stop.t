# SPDX-License-Identifier: Apache-2.0
# httpd -k graceful-stop: runs end, no run begins.
use strict;
use warnings;
use AgentTest::Client qw(read_to_end read_until run_path);
use AgentTest::Database;
use AgentTest::Gate;
use AgentTest::Postgres;
use AgentTest::Process;
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

my $gate;

# ($server, $client, $run): a server with a run that executes until the gate is
# opened; more lines of configuration.
sub start_with_run {
    my (@lines) = @_;
    $gate = AgentTest::Gate->new;
    my $server = AgentTest::Server->new(
        config => join "\n", AgentTest::Server::shared_config(), $gate->graph, @lines, '');
    $server->start;
    my $client = AgentTest::Client->new(url => $server->url);
    my $run = $client->create_run($client->new_thread, 'use gate {}', assistant_id => 'gated');
    $gate->wait_calls(1);
    return ($server, $client, $run);
}

# Waits until the supervisor of the server begins to drain.
sub graceful_stop {
    my ($server) = @_;
    my $parent = $server->httpd_pid;
    my @all = ($parent, descendants_of($parent));
    $server->control('-k', 'graceful-stop');
    wait_for('the supervisor to drain', sub { $server->error_log =~ /AGT0350/ });
    return @all;
}

sub wait_end {
    my (@all) = @_;
    return wait_for('httpd to end', sub { !grep { is_alive($_) } @all });
}

sub run_row {
    my ($run) = @_;
    return sql("select status from agent.runs where run_id = '$run->{run_id}'") // '';
}

subtest 'graceful stop: a run ends before httpd does' => sub {
    my ($server, $client, $run) = start_with_run();
    my $join = $client->begin('GET', run_path($run) . '/join');
    read_until($join, qr/\r\n\r\n/);
    my $next = $client->create_run($run->{thread_id}, 'after it', multitask_strategy => 'enqueue');
    my @all = graceful_stop($server);
    wait_for('the worker to be draining', sub {
        poll("select count(*) from agent.workers where state = 'draining'") == 1;
    });
    $gate->open;
    like read_to_end($join), qr/"messages".*\r\n0\r\n\r\n\z/s,
        'graceful stop: a join receives the values of its run';
    wait_end(@all);
    is run_row($run), 'success', 'graceful stop: a run that was executing succeeds';
    is sql("select attempts from agent.run_queue where run_id = '$next->{run_id}'"), 0,
        'graceful stop: a run that becomes ready is not claimed';
};

undef $gate;
subtest 'graceful stop: SIGTERM ends it' => sub {
    my ($server, $client, $run) = start_with_run();
    my @all = graceful_stop($server);
    kill TERM => $all[0];
    wait_end(@all);
    is run_row($run), 'pending', 'graceful stop: a run that SIGTERM stops is not lost';
    is sql("select state || ' ' || attempts from agent.run_queue where run_id = '$run->{run_id}'"), 'ready 0',
        'graceful stop: a run that SIGTERM stops is requeued, and the attempt is not counted';
    $gate->open;
};

subtest 'graceful stop: GracefulShutdownTimeout limits the wait' => sub {
    my ($server, $client, $run) = start_with_run('GracefulShutdownTimeout 1');
    wait_end(graceful_stop($server));
    is sql("select state from agent.run_queue where run_id = '$run->{run_id}'"), 'ready',
        'graceful stop: a run that GracefulShutdownTimeout stops is requeued';
    $gate->open;
};

subtest 'graceful stop: another host executes the next runs' => sub {
    my ($server, $client, $run) = start_with_run();
    my $next = $client->create_run($run->{thread_id}, 'after it', multitask_strategy => 'enqueue');
    my @all = graceful_stop($server);
    my $other = AgentTest::Server->new(
        database => AgentTest::Postgres->shared->conninfo('agent', $ENV{PGDATABASE}));
    $other->start;
    my $at_other = AgentTest::Client->new(url => $other->url);
    my $newer = $at_other->start_run('newer');
    $at_other->join_run($newer);
    is run_row($newer), 'success', 'graceful stop: a new run is executed by another host';
    is run_row($run), 'pending', 'graceful stop: the old run continues while another host executes a new one';
    $gate->open;
    wait_end(@all);
    $at_other->join_run($next);
    is_deeply [ run_row($run), run_row($next) ], [ ('success') x 2 ],
        'graceful stop: another host executes the next run of the thread';
};

done_testing;
