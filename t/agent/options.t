# SPDX-License-Identifier: Apache-2.0
# Options of a run, from the request to the runner and back: after_seconds,
# if_not_exists, on_completion, stream_subgraphs.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Database;
use AgentTest::Wait;
use Test::More;

my $client = AgentTest::Client->new;
my $fresh = sprintf '01890000-0000-7000-9000-%08x', $$;

sub body {
    my ($text, %more) = @_;
    return { assistant_id => 'agent', %more,
        input => { messages => [ { role => 'user', content => $text } ] } };
}

sub status { return $client->get_run($_[0])->{status} }
sub fresh_id { return $fresh . sprintf '%04x', ++our $count }

subtest 'after_seconds: a run is executed after its delay' => sub {
    my $thread = $client->create_thread->{thread_id};
    my $later = $client->create_run($thread, 'later', after_seconds => 3600);
    my $queued = $client->create_run($thread, 'after it', multitask_strategy => 'enqueue');
    my $other = $client->start_run('now');
    $client->join_run($other);
    is status($later), 'pending', 'a delayed run stays pending while others execute';
    is $client->get("/threads/$thread")->{json}{status}, 'busy', 'the thread of a delayed run is busy';
    is status($queued), 'pending', 'a run queued after a delayed run stays pending';
    sql("update agent.run_queue set not_before = now() where run_id = '$later->{run_id}'");
    is $client->join_run($later)->{messages}[0]{content}, 'later', 'a delayed run executes when its time has come';
    $client->join_run($queued);
    is status($queued), 'success', 'the run queued after it executes then';
    is $client->post('/runs/wait', body('soon', after_seconds => 0.3))->{json}{messages}[0]{content}, 'soon',
        'runs/wait waits for a delayed run';
    my $never = $client->start_run('never', after_seconds => 3600);
    $client->post(AgentTest::Client::run_path($never) . '/cancel');
    is status($never), 'interrupted', 'a delayed run can be cancelled';
};

subtest 'if_not_exists: runs on threads that do not exist' => sub {
    for my $how ('', '/wait', '/stream') {
        my $id = fresh_id();
        is $client->post("/threads/$id/runs$how", body('hello'))->{json}{code}, 'thread_not_found',
            "runs$how: an unknown thread is thread_not_found";
        is $client->post("/threads/$id/runs$how", body('hello', if_not_exists => 'reject'))->{status}, 404,
            'runs$how: if_not_exists "reject" is 404';
        is $client->get("/threads/$id")->{status}, 404, 'runs$how: a refused run creates no thread';
        is $client->post("/threads/$id/runs$how", body('hello', if_not_exists => 'create'))->{status}, 200,
            'runs$how: if_not_exists "create" is 200';
        is $client->get("/threads/$id")->{json}{thread_id}, $id, 'runs$how: the created thread has the id of the path';
        my ($run) = @{ $client->get("/threads/$id/runs")->{json} };
        $client->join_run($run);
        is $client->post("/threads/$id/runs", body('again', if_not_exists => 'create'))->{status}, 200,
            'runs$how: if_not_exists "create" accepts an existing thread';
    }
};

subtest 'on_completion: the thread of a stateless run is kept or deleted' => sub {
    my %threads;
    for my $how ('', '/wait', '/stream') {
        for my $what ('delete', 'keep', undef) {
            my $answer = $client->post("/runs$how", body('hello', on_completion => $what));
            is $answer->{status}, 200, "runs$how with on_completion " . ($what // 'null');
            my ($run) = $answer->{headers}{'content-location'} =~ m{([^/]+)\z};
            $client->get("/runs/$run/join");
            push @{ $threads{ $what // 'delete' } }, sql("select thread_id from agent.runs where run_id = '$run'");
        }
    }
    my $list = join ',', map { literal($_) } @{ $threads{delete} };
    is sql("select count(*) from agent.thread_expiries e join agent.runs r using (account_id, thread_id)
        where thread_id in ($list)
        and e.expires_at between r.finished_at + interval '2 minutes' and now() + interval '2 minutes'"), 6,
        'a thread to delete expires two minutes after its run';
    sql("update agent.thread_expiries set expires_at = now() where thread_id in ($list)");
    wait_for('them to go', sub { sql("select count(*) from agent.threads where thread_id in ($list)") == 0 });
    pass 'an expired thread is deleted';
    is_deeply [ map { $client->get("/threads/$_")->{status} } @{ $threads{keep} } ], [ (200) x 3 ],
        'a kept thread still exists';
};

subtest 'stream_subgraphs: accepted and stored' => sub {
    my $thread = $client->create_thread->{thread_id};
    my $stream = $client->post("/threads/$thread/runs/stream", body('hello', stream_subgraphs => Cpanel::JSON::XS::true));
    is $stream->{status}, 200, 'stream_subgraphs is accepted';
    is_deeply [ grep { /\|/ } $stream->{body} =~ /^event: (.*)$/mg ], [], 'a graph without subgraphs sends no event of a subgraph';
    my ($run) = @{ $client->get("/threads/$thread/runs")->{json} };
    is_deeply $run->{kwargs}{subgraphs}, Cpanel::JSON::XS::true, 'the record has kwargs.subgraphs';
};

done_testing;
