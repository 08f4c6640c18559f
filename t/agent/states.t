# SPDX-License-Identifier: Apache-2.0
# The states of runs, row by row of the published table, and the four
# multitask strategies.
use strict;
use warnings;
use AgentTest::Client qw(read_until run_path);
use AgentTest::Gate;
use AgentTest::Server;
use Test::More;

my $gate = AgentTest::Gate->new;
my $server = AgentTest::Server->new(
    config => AgentTest::Server::shared_config() . $gate->graph);
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

sub run_status { return $client->get_run($_[0])->{status} }
sub contents {
    my ($thread) = @_;
    return map { $_->{content} }
        @{ $client->get_state($thread)->{values}{messages} };
}

subtest 'states: a run is pending until it ends in success' => sub {
    my $thread = $client->new_thread;
    my $run = $client->create_run($thread, 'one two three');
    is $run->{status}, 'pending', 'states: a new run is pending';
    $client->join_run($run);
    is run_status($run), 'success', 'states: an executed run is success';
    my ($human, $ai) = contents($thread);
    is $human, 'one two three', 'states: after a run, the state has its input';
    ok length $ai, 'states: after a run, the state has its answer';
    is $client->get("/threads/$thread")->{json}{status}, 'idle',
        'states: after a run, the thread is idle';
};

subtest 'strategies: reject refuses the second run' => sub {
    my $thread = $client->new_thread;
    my $first = $client->create_run($thread, 'use gate {}', assistant_id => 'gated');
    my $refused = $client->post("/threads/$thread/runs",
        { assistant_id => 'agent', multitask_strategy => 'reject' });
    is $refused->{status}, 409, 'reject: the second run is 409';
    like $refused->{json}{detail}, qr/already running a task/, 'reject: the detail names the reason';
    is scalar @{ $client->get("/threads/$thread/runs")->{json} }, 1,
        'reject: no second run is created';
    is run_status($first), 'pending', 'reject: the first run stays pending';
    $gate->wait_calls(1);
    $gate->open;
    $client->join_run($first);
    is run_status($first), 'success', 'reject: the first run ends in success';
    my $default = $client->create_run($thread, 'now it is free');
    is $default->{status}, 'pending', 'reject: the thread accepts a run after the first has ended';
    $client->join_run($default);
};

subtest 'strategies: interrupt stops the active run and keeps its partial answer' => sub {
    my $thread = $client->new_thread;
    my $first = $client->create_run($thread, 'sleep 60000',
        stream_mode => ['messages-tuple']);
    # Only a run that has sent words has a partial answer.
    my $stream = $client->begin('GET',
        run_path($first) . '/stream');
    read_until($stream, qr/(?:event: messages.*?){2}/s);
    my $second = $client->create_run($thread, 'what now',
        multitask_strategy => 'interrupt');
    is $second->{status}, 'pending', 'interrupt: the second run is accepted';
    $client->join_run($second);
    is run_status($second), 'success', 'interrupt: the second run succeeds';
    is run_status($first), 'interrupted', 'interrupt: the first run is interrupted';
    is $client->get_run($first)->{run_id}, $first->{run_id},
        'interrupt: the first run can still be read';
    my @contents = contents($thread);
    is $contents[0], 'sleep 60000', 'interrupt: the state begins with the input of the first run';
    is $contents[-2], 'what now', 'interrupt: the input of the second run is last but one';
    ok length $contents[-1], 'interrupt: the answer of the second run is last';
    is scalar @contents, 4, 'interrupt: the state has four messages';
    ok length $contents[1], 'interrupt: the state has the partial answer of the first run';
};

subtest 'strategies: interrupt also stops runs in the queue' => sub {
    my $thread = $client->new_thread;
    my @runs = ($client->create_run($thread, 'sleep 60000'));
    push @runs, $client->create_run($thread, 'queued',
        multitask_strategy => 'enqueue');
    push @runs, $client->create_run($thread, 'last',
        multitask_strategy => 'interrupt');
    $client->join_run($runs[2]);
    is_deeply [ map { run_status($_) } @runs ],
        [qw(interrupted interrupted success)], 'interrupt: queued runs are interrupted as well';
};

subtest 'strategies: rollback removes the active run and its state' => sub {
    my $thread = $client->new_thread;
    $client->join_run($client->create_run($thread, 'before'));
    my @before = contents($thread);
    my $first = $client->create_run($thread, 'sleep 60000');
    my $second = $client->create_run($thread, 'after',
        multitask_strategy => 'rollback');
    $client->join_run($second);
    is $client->get(run_path($first))->{status}, 404,
        'rollback: the first run is 404';
    my @after = contents($thread);
    is_deeply [ @after[ 0 .. $#before ] ], \@before, 'rollback: the state before the first run is unchanged';
    is $after[ @before ], 'after', 'rollback: the input of the second run follows the state before the first';
};

subtest 'strategies: enqueue executes runs in the order of creation' => sub {
    my $thread = $client->new_thread;
    my @runs = map {
        $client->create_run($thread, "number $_", multitask_strategy => 'enqueue')
    } 1 .. 5;
    $client->join_run($runs[4]);
    is_deeply [ map { run_status($_) } @runs ], [ ('success') x 5 ],
        'enqueue: all runs succeed';
    is_deeply [ grep { /\Anumber/ } contents($thread) ],
        [ map { "number $_" } 1 .. 5 ], 'enqueue: the inputs are in the order of creation';
};

subtest 'states: a failed run ends in error with a message' => sub {
    my $thread = $client->new_thread;
    my $run = $client->create_run($thread, 'fail');
    my $joined = $client->join_run($run);
    ok length $joined->{__error__}{error}, 'states: join of a failed run returns the error';
    ok length $joined->{__error__}{message}, 'states: join of a failed run returns the message';
    my $read = $client->get_run($run);
    is $read->{status}, 'error', 'states: the status of a failed run is error';
    is $read->{error}{message}, $joined->{__error__}{message},
        'states: the record of a failed run has the message';
    is $client->get("/threads/$thread")->{json}{status}, 'error',
        'states: the status of the thread of a failed run is error';
    my $tasks = $client->get_state($thread)->{tasks};
    like $tasks->[0]{error}, qr/\Q$joined->{__error__}{message}\E/,
        'states: the state of the thread has the message in the failed task';
    $client->join_run($client->create_run($thread, 'again'));
    is $client->get("/threads/$thread")->{json}{status}, 'idle',
        'states: the thread is idle after a later run succeeds';
};

undef $server;
done_testing;
