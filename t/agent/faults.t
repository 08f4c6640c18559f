# SPDX-License-Identifier: Apache-2.0
# kill -9 of a runner, the supervisor, a child and httpd; restarts of the server.
use strict;
use warnings;
use AgentTest::Client qw(read_to_end read_until run_path);
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

# A run that executes until the gate is opened.
sub gated_run {
    my $run = $client->create_run($client->new_thread, 'use gate {}', assistant_id => 'gated');
    $gate->wait_calls(1);
    return $run;
}

# The number of attempts of a finished run: each has an event metadata.
sub attempts {
    my ($run) = @_;
    return scalar(() = $client->get(run_path($run) . '/stream')->{body}
            =~ /^event: metadata$/mg);
}

subtest 'faults: a command is given once, and passes its breakpoint in the next attempt too' => sub {
    my %stop = (assistant_id => 'gated', interrupt_before => ['tools']);
    for my $command ({ resume => 'yes' }, { resume => 'yes', update => { messages => [] } }, { goto => 'tools' }) {
        my $title = join ', ', sort keys %{$command};
        my $thread = $client->new_thread;
        $client->join_run($client->create_run($thread, 'use gate {}', %stop));
        my $run = $client->create_run($thread, undef, input => undef, command => $command, %stop);
        $gate->wait_calls(1);
        kill KILL => runner_pids($parent);
        $gate->open;
        $gate->wait_calls(1);
        $gate->open;
        $client->join_run($run);
        is $client->get_run($run)->{status}, 'success', "faults: the run with $title succeeds";
        is join(' ', map { $_->{type} } @{ $client->get_state($thread)->{values}{messages} }), 'human ai tool ai',
            "faults: the run with $title has executed the tool, and each node once";
    }
};

subtest 'faults: the runs of a killed runner are executed again' => sub {
    my @runs = map {
        $client->create_run($client->new_thread, 'use gate {}', assistant_id => 'gated')
    } 1 .. 5;
    $gate->wait_calls(5);
    my ($old) = runner_pids($parent);
    ok $old, 'faults: a runner executes five runs';
    kill KILL => $old;
    $gate->open;
    $gate->wait_calls(5);
    $gate->open;
    $client->join_run($_) for @runs;
    is_deeply [ map { $client->get_run($_)->{status} } @runs ],
        [ ('success') x 5 ], 'faults: the runs of a killed runner succeed';
    is_deeply [ map { attempts($_) } @runs ], [ (2) x 5 ],
        'faults: the runs of a killed runner have two attempts';
    my ($new) = runner_pids($parent);
    ok $new && $new != $old, 'faults: a killed runner is replaced';
};

subtest 'faults: the run of a killed supervisor is executed again' => sub {
    my $run = gated_run();
    my @runners = runner_pids($parent);
    my $old = supervisor_pid($parent);
    kill KILL => $old;
    wait_for('the runners to end', sub { !grep { is_alive($_) } @runners });
    pass 'faults: the runners of a killed supervisor end';
    $gate->open;
    $gate->wait_calls(1);
    $gate->open;
    $client->join_run($run);
    is $client->get_run($run)->{status}, 'success', 'faults: the run of a killed supervisor succeeds';
    my $new = supervisor_pid($parent);
    ok $new && $new != $old, 'faults: a killed supervisor is replaced';
};

subtest 'faults: a killed child cuts its joins, not their runs' => sub {
    my $run = gated_run();
    my $socket = $client->begin('GET', run_path($run) . '/join');
    read_until($socket, qr/\r\n\r\n/);
    kill KILL => $_ for httpd_children($parent);
    my $rest = read_to_end($socket);
    unlike $rest, qr/0\r\n\r\n\z/, 'faults: the join of a killed child is cut';
    wait_for('new children', sub {
        eval { $client->get('/ok')->{status} == 200 } });
    $gate->open;
    $client->join_run($run);
    is $client->get_run($run)->{status}, 'success', 'faults: a run succeeds after a child with its join was killed';
};

subtest 'faults: a graceful restart does not interrupt runs' => sub {
    my $run = gated_run();
    my $socket = $client->begin('GET', run_path($run) . '/join');
    read_until($socket, qr/\r\n\r\n/);
    my $old = supervisor_pid($parent);
    $server->graceful;
    wait_for('a new supervisor', sub {
        my $new = supervisor_pid($parent);
        $new && $new != $old;
    });
    my $newer = $client->create_run($client->new_thread, 'newer');
    $client->join_run($newer);
    is $client->get_run($run)->{status}, 'pending',
        'faults: a new run executes while the old one continues';
    $gate->open;
    like read_to_end($socket), qr/"messages".*\r\n0\r\n\r\n\z/s,
        'faults: a join receives its values after a graceful restart';
    is $client->get_run($run)->{status}, 'success', 'faults: a run that was executing at a graceful restart succeeds';
    is attempts($run), 1, 'faults: a run that was executing at a graceful restart needs one attempt';
    wait_for('the old supervisor to end', sub { !is_alive($old) });
    pass 'faults: the old supervisor ends after its last run';
};

subtest 'faults: runs that a stop interrupts are executed after the start' => sub {
    my $thread = $client->new_thread;
    $client->join_run($client->create_run($thread, 'remember'));
    my $state = $client->get_state($thread);
    my $run = gated_run();
    my $waiting = $client->create_run($run->{thread_id}, 'after it',
        multitask_strategy => 'enqueue');
    $server->stop;
    $server->start;
    is_deeply $client->get_state($thread), $state, 'faults: the state of a thread survives a stop';
    $gate->open;
    $gate->wait_calls(1);
    $gate->open;
    $client->join_run($waiting);
    is $client->get_run($run)->{status}, 'success',
        'faults: a run that was executing at a stop succeeds after the start';
    is $client->get_run($waiting)->{status}, 'success',
        'faults: a run that was enqueued at a stop succeeds after the start';
};

subtest 'faults: supervisor and runners end when httpd is killed' => sub {
    my $killed = $server->httpd_pid;
    my @all = (supervisor_pid($killed), runner_pids($killed));
    my @children = httpd_children($killed);
    kill KILL => $killed;
    wait_for('supervisor and runners to end', sub { !grep { is_alive($_) } @all });
    pass 'faults: supervisor and runners end when httpd is killed';
    # httpd's orphaned children keep the port until they are ended.
    kill KILL => @children;
    wait_for('the children to end', sub { !grep { is_alive($_) } @children });
    unlink $server->pid_file;
};

undef $server;
done_testing;
