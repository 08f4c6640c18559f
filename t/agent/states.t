# SPDX-License-Identifier: Apache-2.0
# The states of runs, row by row of the published table, and the four
# multitask strategies.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Gate;
use AgentTest::Server;
use Test::More;

my $gate = AgentTest::Gate->new;
my $server = AgentTest::Server->new(
    config => AgentTest::Server::shared_config() . $gate->graph);
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

sub run_status { return $client->get_run($_[0])->{status} }
sub new_thread { return $client->create_thread->{thread_id} }

sub contents {
    my ($thread) = @_;
    return map { $_->{content} }
        @{ $client->get_state($thread)->{values}{messages} };
}

subtest 'a new run is pending and ends in success' => sub {
    my $thread = new_thread();
    my $run = $client->create_run($thread, 'one two three');
    is $run->{status}, 'pending', 'pending at once';
    $client->join_run($run);
    is run_status($run), 'success', 'success once it has executed';
    my ($human, $ai) = contents($thread);
    is $human, 'one two three', 'the thread state holds its input';
    ok length $ai, 'and its answer';
    is $client->get("/threads/$thread")->{json}{status}, 'idle',
        'the thread is idle again';
};

subtest 'reject leaves the active run alone' => sub {
    my $thread = new_thread();
    my $first = $client->create_run($thread, 'use gate {}', assistant_id => 'gated');
    my $refused = $client->post("/threads/$thread/runs",
        { assistant_id => 'agent', multitask_strategy => 'reject' });
    is $refused->{status}, 409, 'the second run is refused with 409';
    like $refused->{json}{detail}, qr/already running a task/, 'and told why';
    is scalar @{ $client->get("/threads/$thread/runs")->{json} }, 1,
        'no run was made';
    is run_status($first), 'pending', 'the first goes on';
    $gate->wait_calls(1);
    $gate->open;
    $client->join_run($first);
    is run_status($first), 'success', 'to its end';
    my $default = $client->create_run($thread, 'now it is free');
    is $default->{status}, 'pending', 'then the thread accepts runs again';
    $client->join_run($default);
};

subtest 'interrupt stops the first run and keeps what it had said' => sub {
    my $thread = new_thread();
    my $first = $client->create_run($thread, 'sleep 60000',
        stream_mode => ['messages-tuple']);
    # Its first words must have been said for there to be something to keep.
    my $stream = $client->begin('GET',
        AgentTest::Client::run_path($first) . '/stream');
    AgentTest::Client::read_until($stream, qr/(?:event: messages.*?){2}/s);
    my $second = $client->create_run($thread, 'what now',
        multitask_strategy => 'interrupt');
    is $second->{status}, 'pending', 'the new run is accepted';
    $client->join_run($second);
    is run_status($second), 'success', 'and executes';
    is run_status($first), 'interrupted', 'the first is interrupted';
    is $client->get_run($first)->{run_id}, $first->{run_id},
        'and stays readable';
    my @contents = contents($thread);
    is $contents[0], 'sleep 60000', 'the state begins with the first input';
    is $contents[-2], 'what now', 'the second input comes after it';
    ok length $contents[-1], 'and its answer is last';
    is scalar @contents, 4, 'the partial answer of the first stands between';
    ok length $contents[1], 'with the words it had said';
};

subtest 'interrupt also concerns a run that waits in the queue' => sub {
    my $thread = new_thread();
    my @runs = ($client->create_run($thread, 'sleep 60000'));
    push @runs, $client->create_run($thread, 'queued',
        multitask_strategy => 'enqueue');
    push @runs, $client->create_run($thread, 'last',
        multitask_strategy => 'interrupt');
    $client->join_run($runs[2]);
    is_deeply [ map { run_status($_) } @runs ],
        [qw(interrupted interrupted success)], 'all before it are interrupted';
};

subtest 'rollback removes the first run and its state' => sub {
    my $thread = new_thread();
    $client->join_run($client->create_run($thread, 'before'));
    my @before = contents($thread);
    my $first = $client->create_run($thread, 'sleep 60000');
    my $second = $client->create_run($thread, 'after',
        multitask_strategy => 'rollback');
    $client->join_run($second);
    is $client->get(AgentTest::Client::run_path($first))->{status}, 404,
        'the first run is gone';
    my @after = contents($thread);
    is_deeply [ @after[ 0 .. $#before ] ], \@before, 'what was before it stays';
    is $after[ @before ], 'after', 'the second follows that directly';
};

subtest 'enqueue runs one after the other, in the order of creation' => sub {
    my $thread = new_thread();
    my @runs = map {
        $client->create_run($thread, "number $_", multitask_strategy => 'enqueue')
    } 1 .. 5;
    $client->join_run($runs[4]);
    is_deeply [ map { run_status($_) } @runs ], [ ('success') x 5 ],
        'all of them succeed';
    is_deeply [ grep { /\Anumber/ } contents($thread) ],
        [ map { "number $_" } 1 .. 5 ], 'in order';
};

subtest 'a run that fails ends in error and says why' => sub {
    my $thread = new_thread();
    my $run = $client->create_run($thread, 'fail');
    my $joined = $client->join_run($run);
    ok length $joined->{__error__}{error}, 'join names the error';
    ok length $joined->{__error__}{message}, 'and its message';
    my $read = $client->get_run($run);
    is $read->{status}, 'error', 'the run is in error';
    is $read->{error}{message}, $joined->{__error__}{message},
        'the record has the message';
    is $client->get("/threads/$thread")->{json}{status}, 'error',
        'so is the thread';
    my $tasks = $client->get_state($thread)->{tasks};
    like $tasks->[0]{error}, qr/\Q$joined->{__error__}{message}\E/,
        'the state shows it with the task that failed';
    $client->join_run($client->create_run($thread, 'again'));
    is $client->get("/threads/$thread")->{json}{status}, 'idle',
        'a later run heals the thread';
};

undef $server;
done_testing;
