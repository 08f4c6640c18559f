# SPDX-License-Identifier: Apache-2.0
# interrupt_before and interrupt_after: stop, read the state, resume.
use strict;
use warnings;
use AgentTest::Client qw(read_events read_until run_body run_path);
use AgentTest::Gate;
use AgentTest::Server;
use Test::More;

my $gate = AgentTest::Gate->new;
my $server = AgentTest::Server->new(config => AgentTest::Server::shared_config() . $gate->graph
    . qq(AgentFeedbackURL "https://f.example.com/{run_id}/{key}"\n));
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

sub run_status { return $client->get_run($_[0])->{status} }
sub thread_status { return $client->get("/threads/$_[0]")->{json}{status} }

# A thread whose run has stopped before its tool.
sub stopped_thread {
    my $thread = $client->new_thread;
    $client->join_run($client->create_run($thread, 'use clock {}', interrupt_before => ['tools']));
    return $thread;
}

sub types {
    my ($thread) = @_;
    return join ' ', map { $_->{type} }
        @{ $client->get_state($thread)->{values}{messages} };
}

for my $case ([ interrupt_before => 'tools' ], [ interrupt_after => 'agent' ]) {
    my ($when, $node) = @$case;
    my $thread = $client->new_thread;
    my $run = $client->create_run($thread, 'use clock {}', $when => [$node]);
    my $values = $client->join_run($run);
    ok !exists $values->{__interrupt__}, "$when: join returns the values without __interrupt__";
    is $client->get_run($run)->{status}, 'success', "$when: the run is success";
    is $client->get("/threads/$thread")->{json}{status}, 'interrupted',
        "$when: the thread is interrupted";
    is_deeply $client->get_state($thread)->{next}, ['tools'],
        "$when: next is the tools node";
    is types($thread), 'human ai', "$when: the tool has not been called";

    my $resumed = $client->create_run($thread, undef, input => undef);
    $client->join_run($resumed);
    is $client->get_run($resumed)->{status}, 'success',
        "$when: a run without input resumes";
    is types($thread), 'human ai tool ai', "$when: the resumed run calls the tool";
    is $client->get("/threads/$thread")->{json}{status}, 'idle',
        "$when: the thread is idle after the resumed run";
}

subtest 'breakpoint: a run with a command resumes' => sub {
    my $thread = stopped_thread();
    my $resumed = $client->create_run($thread, undef, input => undef, command => { resume => 'go on' });
    $client->join_run($resumed);
    is run_status($resumed), 'success', 'breakpoint: the run with a command is success';
    is types($thread), 'human ai tool ai', 'breakpoint: the run with a command calls the tool';
    is thread_status($thread), 'idle', 'breakpoint: the thread is idle after a run with a command';
};

subtest 'breakpoint: a run with reject is accepted after the breakpoint' => sub {
    my $thread = stopped_thread();
    my $next = $client->create_run($thread, 'hello', multitask_strategy => 'reject');
    $client->join_run($next);
    is run_status($next), 'success', 'breakpoint: the run with reject is success';
    is thread_status($thread), 'idle', 'breakpoint: the thread is idle after a run with input';
};

subtest 'breakpoint: a queued run begins after the breakpoint' => sub {
    my $thread = $client->new_thread;
    my $first = $client->create_run($thread, 'use clock {}', interrupt_before => ['tools']);
    my $second = $client->create_run($thread, undef, input => undef, multitask_strategy => 'enqueue');
    $client->join_run($second);
    is_deeply [ map { run_status($_) } $first, $second ], [qw(success success)],
        'breakpoint: both runs are success';
    is types($thread), 'human ai tool ai', 'breakpoint: the queued run without input resumes';
};

# A run that executes its tool after a breakpoint.
sub resumed_run {
    my $thread = $client->new_thread;
    my @gated = (assistant_id => 'gated');
    $client->join_run($client->create_run($thread, 'use gate {}', @gated, interrupt_before => ['tools']));
    my $run = $client->create_run($thread, undef, input => undef, @gated, interrupt_after => ['tools']);
    $gate->wait_calls(1);
    return $run;
}

subtest 'breakpoint: a run that is cancelled before the breakpoint is interrupted' => sub {
    my $run = resumed_run();
    is $client->post(run_path($run) . '/cancel?wait=true')->{status}, 204,
        'breakpoint: the run can be cancelled';
    is run_status($run), 'interrupted', 'breakpoint: the cancelled run is interrupted';
    is thread_status($run->{thread_id}), 'interrupted', 'breakpoint: the thread of the cancelled run is interrupted';
    ok !exists $client->join_run($run)->{__interrupt__}, 'breakpoint: join of the cancelled run has no __interrupt__';
    $gate->open;
};

subtest 'breakpoint: a run that another run stops before the breakpoint is interrupted' => sub {
    my $run = resumed_run();
    my $next = $client->create_run($run->{thread_id}, 'hello', multitask_strategy => 'interrupt');
    $client->join_run($next);
    is run_status($run), 'interrupted', 'breakpoint: the run that another run stops is interrupted';
    is run_status($next), 'success', 'breakpoint: the other run is success';
    is thread_status($run->{thread_id}), 'idle', 'breakpoint: the thread is idle after the other run';
    $gate->open;
};

subtest 'breakpoint: the stream of a thread has run_done with status success' => sub {
    my $thread = $client->new_thread;
    my $stream = $client->begin('GET', "/threads/$thread/stream?stream_mode=lifecycle");
    read_until($stream, qr/\r\n\r\n/);
    $client->create_run($thread, 'use clock {}', interrupt_before => ['tools']);
    like read_until($stream, qr/event: run_done.*?\n\n/s), qr/"status" *: *"success"/,
        'breakpoint: the status in run_done is success';
};

subtest 'breakpoint: a stateless run ends in success' => sub {
    my $waited = $client->post('/runs/wait', run_body('use clock {}', interrupt_before => ['tools']));
    is_deeply [ keys %{ $waited->{json} } ], ['messages'], 'breakpoint: wait of a stateless run returns the values without __interrupt__';
    my $run = $client->post('/runs', run_body('use clock {}', interrupt_before => ['tools'],
        on_completion => 'keep'))->{json};
    $client->join_run($run);
    is run_status($run), 'success', 'breakpoint: the stateless run is success';
    is thread_status($run->{thread_id}), 'interrupted', 'breakpoint: the thread that is kept is interrupted';
};

subtest 'breakpoint: a stream ends with the feedback of a success' => sub {
    my $stream = $client->post('/threads/' . $client->new_thread . '/runs/stream',
        run_body('use clock {}', interrupt_before => ['tools'], feedback_keys => ['k']));
    is_deeply [ map { $_->{event} } (read_events($stream->{body}))[-2, -1] ], [qw(values feedback)],
        'breakpoint: feedback follows the last values';
};

for my $member (qw(interrupt_before interrupt_after)) {
    like $client->post('/runs', run_body('hello', $member => $_))->{json}{detail}, qr{^/$member: expected "\*" or an array of strings}m,
        "breakpoint: $member is neither a word nor of another type" for 'ask', 5;
}

undef $server;
done_testing;
