# SPDX-License-Identifier: Apache-2.0
# Options of a run, from the request to the runner and back: after_seconds,
# if_not_exists, on_completion, stream_subgraphs.
use strict;
use warnings;
use AgentTest::Client qw(run_body run_path);
use AgentTest::Database;
use AgentTest::Wait;
use Test::More;

my $client = AgentTest::Client->new;
my $fresh = sprintf '01890000-0000-7000-9000-%08x', $$;

sub status { return $client->get_run($_[0])->{status} }
sub fresh_id { return $fresh . sprintf '%04x', ++our $count }

subtest 'after_seconds: a run is executed after its delay' => sub {
    my $thread = $client->new_thread;
    my $later = $client->create_run($thread, 'later', after_seconds => 3600);
    my $queued = $client->create_run($thread, 'after it', multitask_strategy => 'enqueue');
    my $other = $client->start_run('now');
    $client->join_run($other);
    is status($later), 'pending', 'after_seconds: a delayed run stays pending while others execute';
    is $client->get("/threads/$thread")->{json}{status}, 'busy', 'after_seconds: the thread of a delayed run is busy';
    is status($queued), 'pending', 'after_seconds: a run queued after a delayed run stays pending';
    sql("update agent.run_queue set not_before = now() where run_id = '$later->{run_id}'");
    is $client->join_run($later)->{messages}[0]{content}, 'later', 'after_seconds: a delayed run is executed when its delay is over';
    $client->join_run($queued);
    is status($queued), 'success', 'after_seconds: a run queued after a delayed run is executed after it';
    is $client->post('/runs/wait', run_body('soon', after_seconds => 0.3))->{json}{messages}[0]{content}, 'soon',
        'after_seconds: runs/wait waits for a delayed run';
    my $never = $client->start_run('never', after_seconds => 3600);
    $client->post(run_path($never) . '/cancel');
    is status($never), 'interrupted', 'after_seconds: a delayed run can be cancelled';
};

subtest 'if_not_exists: runs on threads that do not exist' => sub {
    for my $how ('', '/wait', '/stream') {
        my $id = fresh_id();
        is $client->post("/threads/$id/runs$how", run_body('hello'))->{json}{code}, 'thread_not_found',
            "if_not_exists: runs$how of an unknown thread is thread_not_found";
        is $client->post("/threads/$id/runs$how", run_body('hello', if_not_exists => 'reject'))->{status}, 404,
            qq(if_not_exists: runs$how with "reject" is 404);
        is $client->get("/threads/$id")->{status}, 404, "if_not_exists: a refused runs$how creates no thread";
        is $client->post("/threads/$id/runs$how", run_body('hello', if_not_exists => 'create'))->{status}, 200,
            qq(if_not_exists: runs$how with "create" is 200);
        is $client->get("/threads/$id")->{json}{thread_id}, $id, "if_not_exists: the thread that runs$how creates has the id of the path";
        my ($run) = @{ $client->get("/threads/$id/runs")->{json} };
        $client->join_run($run);
        is $client->post("/threads/$id/runs", run_body('again', if_not_exists => 'create'))->{status}, 200,
            'if_not_exists: "create" accepts an existing thread';
    }
};

subtest 'on_completion: the thread of a stateless run is kept or deleted' => sub {
    my %threads;
    for my $how ('', '/wait', '/stream') {
        for my $what ('delete', 'keep', undef) {
            my $answer = $client->post("/runs$how", run_body('hello', on_completion => $what));
            is $answer->{status}, 200, "on_completion: runs$how accepts " . ($what // 'null');
            my ($run) = $answer->{headers}{'content-location'} =~ m{([^/]+)\z};
            $client->get("/runs/$run/join");
            push @{ $threads{ $what // 'delete' } }, sql("select thread_id from agent.runs where run_id = '$run'");
        }
    }
    my $list = join ',', map { literal($_) } @{ $threads{delete} };
    is sql("select count(*) from agent.thread_expiries e join agent.runs r using (deployment_id, thread_id)
        where thread_id in ($list)
        and e.expires_at between r.finished_at + interval '2 minutes' and now() + interval '2 minutes'"), 6,
        'on_completion: with "delete", the thread expires two minutes after its run';
    sql("update agent.thread_expiries set expires_at = now() where thread_id in ($list)");
    wait_for('the threads to be deleted', sub { poll("select count(*) from agent.threads where thread_id in ($list)") == 0 });
    pass 'on_completion: an expired thread is deleted';
    is_deeply [ map { $client->get("/threads/$_")->{status} } @{ $threads{keep} } ], [ (200) x 3 ],
        'on_completion: with "keep", the thread still exists';
};

subtest 'stream_subgraphs: accepted and stored' => sub {
    my $thread = $client->new_thread;
    my $stream = $client->post("/threads/$thread/runs/stream", run_body('hello', stream_subgraphs => Cpanel::JSON::XS::true));
    is $stream->{status}, 200, 'stream_subgraphs: a run with it is accepted';
    is_deeply [ grep { /\|/ } $stream->{body} =~ /^event: (.*)$/mg ], [], 'stream_subgraphs: a graph without subgraphs sends no event of one';
    my ($run) = @{ $client->get("/threads/$thread/runs")->{json} };
    is_deeply $run->{kwargs}{subgraphs}, Cpanel::JSON::XS::true, 'stream_subgraphs: the record has kwargs.subgraphs';
};

done_testing;
