# SPDX-License-Identifier: Apache-2.0
# kill -9 of a runner, of the supervisor, of a child; restart of the server.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Gate;
use AgentTest::Process;
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

my $gate = AgentTest::Gate->new;
my $server = AgentTest::Server->new(
    config => AgentTest::Server::shared_config() . $gate->graph);
$server->start;
my $client = AgentTest::Client->new(url => $server->url);
my $parent = $server->httpd_pid;

sub path { return AgentTest::Client::run_path($_[0]) }
sub new_thread { return $client->create_thread->{thread_id} }

# A run that goes on until the gate is opened.
sub gated_run {
    my $run = $client->create_run(new_thread(), 'use gate {}', assistant_id => 'gated');
    $gate->wait_calls(1);
    return $run;
}

# How often a finished run was begun: each attempt has its metadata event.
sub attempts {
    my ($run) = @_;
    return scalar(() = $client->get(path($run) . '/stream')->{body}
            =~ /^event: metadata$/mg);
}

subtest 'the runs of a runner that is killed go on with others' => sub {
    my @runs = map {
        $client->create_run(new_thread(), 'use gate {}', assistant_id => 'gated')
    } 1 .. 5;
    $gate->wait_calls(5);
    my ($old) = runner_pids($parent);
    ok $old, 'a runner executes them';
    kill KILL => $old;
    $gate->open;
    $gate->wait_calls(5);
    $gate->open;
    $client->join_run($_) for @runs;
    is_deeply [ map { $client->get_run($_)->{status} } @runs ],
        [ ('success') x 5 ], 'all succeed in the end';
    is_deeply [ map { attempts($_) } @runs ], [ (2) x 5 ],
        'each was begun twice';
    my ($new) = runner_pids($parent);
    isnt $new, $old, 'another runner has taken its place';
};

subtest 'a supervisor that is killed is replaced and its runs go on' => sub {
    my $run = gated_run();
    my @runners = runner_pids($parent);
    my $old = supervisor_pid($parent);
    kill KILL => $old;
    wait_for('its runners to end', sub { !grep { is_alive($_) } @runners });
    pass 'its runners end with it';
    $gate->open;
    $gate->wait_calls(1);
    $gate->open;
    $client->join_run($run);
    is $client->get_run($run)->{status}, 'success', 'the run succeeds';
    isnt supervisor_pid($parent), $old, 'under another supervisor';
};

subtest 'a child that is killed during a join cuts it, not the run' => sub {
    my $run = gated_run();
    my $socket = $client->begin('GET', path($run) . '/join');
    AgentTest::Client::read_until($socket, qr/\r\n\r\n/);
    kill KILL => $_ for httpd_children($parent);
    my $rest = AgentTest::Client::read_to_end($socket);
    unlike $rest, qr/0\r\n\r\n\z/, 'the join ends without an end';
    wait_for('new children', sub {
        eval { $client->get('/ok')->{status} == 200 } });
    $gate->open;
    $client->join_run($run);
    is $client->get_run($run)->{status}, 'success', 'the run succeeds';
};

subtest 'a graceful restart lets runs and joins finish' => sub {
    my $run = gated_run();
    my $socket = $client->begin('GET', path($run) . '/join');
    AgentTest::Client::read_until($socket, qr/\r\n\r\n/);
    my $old = supervisor_pid($parent);
    $server->graceful;
    wait_for('a new supervisor', sub {
        my $new = supervisor_pid($parent);
        $new && $new != $old;
    });
    my $meanwhile = $client->create_run(new_thread(), 'meanwhile');
    $client->join_run($meanwhile);
    is $client->get_run($run)->{status}, 'pending',
        'new runs execute while the old one goes on';
    $gate->open;
    like AgentTest::Client::read_to_end($socket), qr/"messages".*\r\n0\r\n\r\n\z/s,
        'the join ends with its values';
    is $client->get_run($run)->{status}, 'success', 'the run succeeds';
    is attempts($run), 1, 'in its first attempt';
    wait_for('the old supervisor to end', sub { !is_alive($old) });
    pass 'then the old supervisor ends';
};

subtest 'what was there before a stop is there after a start' => sub {
    my $thread = new_thread();
    $client->join_run($client->create_run($thread, 'remember'));
    my $state = $client->get_state($thread);
    my $run = gated_run();
    my $waiting = $client->create_run($run->{thread_id}, 'after it',
        multitask_strategy => 'enqueue');
    $server->stop;
    $server->start;
    is_deeply $client->get_state($thread), $state, 'the state of a thread';
    $gate->open;
    $gate->wait_calls(1);
    $gate->open;
    $client->join_run($waiting);
    is $client->get_run($run)->{status}, 'success',
        'a run that was executing is finished';
    is $client->get_run($waiting)->{status}, 'success',
        'so is one that was waiting';
};

subtest 'a parent that is killed takes the supervisor with it' => sub {
    my $killed = $server->httpd_pid;
    my @all = (supervisor_pid($killed), runner_pids($killed));
    my @children = httpd_children($killed);
    kill KILL => $killed;
    wait_for('supervisor and runners to end', sub { !grep { is_alive($_) } @all });
    pass 'supervisor and runners end by themselves';
    # httpd's orphaned children keep the port until they are ended.
    kill KILL => @children;
    wait_for('the children to end', sub { !grep { is_alive($_) } @children });
    unlink $server->pid_file;
};

undef $server;
done_testing;
