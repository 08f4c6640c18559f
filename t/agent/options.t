# SPDX-License-Identifier: Apache-2.0
# What a run may be asked besides its input, from the request to the runner and
# back: after_seconds, if_not_exists, on_completion, stream_subgraphs.
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

subtest 'after_seconds' => sub {
    my $thread = $client->create_thread->{thread_id};
    my $later = $client->create_run($thread, 'later', after_seconds => 3600);
    my $behind = $client->create_run($thread, 'behind it', multitask_strategy => 'enqueue');
    my $other = $client->start_run('now');
    $client->join_run($other);
    is status($later), 'pending', 'a run with after_seconds waits while others execute';
    is $client->get("/threads/$thread")->{json}{status}, 'busy', 'its thread is busy';
    is status($behind), 'pending', 'so what is behind it waits too';
    sql("update agent.run_queue set not_before = now() where run_id = '$later->{run_id}'");
    is $client->join_run($later)->{messages}[0]{content}, 'later', 'when its time has come it executes';
    $client->join_run($behind);
    is status($behind), 'success', 'and so does what was behind it';
    is $client->post('/runs/wait', body('soon', after_seconds => 0.3))->{json}{messages}[0]{content}, 'soon',
        'a wait waits for that as well';
    my $never = $client->start_run('never', after_seconds => 3600);
    $client->post(AgentTest::Client::run_path($never) . '/cancel');
    is status($never), 'interrupted', 'a run that waits for its time can be cancelled';
};

subtest 'if_not_exists' => sub {
    for my $how ('', '/wait', '/stream') {
        my $id = fresh_id();
        is $client->post("/threads/$id/runs$how", body('hello'))->{json}{code}, 'thread_not_found',
            "runs$how needs a thread";
        is $client->post("/threads/$id/runs$how", body('hello', if_not_exists => 'reject'))->{status}, 404,
            'also with if_not_exists reject';
        is $client->get("/threads/$id")->{status}, 404, 'and makes none';
        is $client->post("/threads/$id/runs$how", body('hello', if_not_exists => 'create'))->{status}, 200,
            'with if_not_exists create it does';
        is $client->get("/threads/$id")->{json}{thread_id}, $id, 'under the id that was asked for';
        my ($run) = @{ $client->get("/threads/$id/runs")->{json} };
        $client->join_run($run);
        is $client->post("/threads/$id/runs", body('again', if_not_exists => 'create'))->{status}, 200,
            'and takes one that is there';
    }
};

subtest 'on_completion' => sub {
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
        'a thread that is to go stays for two minutes';
    sql("update agent.thread_expiries set expires_at = now() where thread_id in ($list)");
    wait_for('them to go', sub { sql("select count(*) from agent.threads where thread_id in ($list)") == 0 });
    pass 'then it is deleted';
    is_deeply [ map { $client->get("/threads/$_")->{status} } @{ $threads{keep} } ], [ (200) x 3 ],
        'one that is kept stays';
};

subtest 'stream_subgraphs' => sub {
    my $thread = $client->create_thread->{thread_id};
    my $stream = $client->post("/threads/$thread/runs/stream", body('hello', stream_subgraphs => Cpanel::JSON::XS::true));
    is $stream->{status}, 200, 'is taken';
    is_deeply [ grep { /\|/ } $stream->{body} =~ /^event: (.*)$/mg ], [], 'and changes nothing for a graph without subgraphs';
    my ($run) = @{ $client->get("/threads/$thread/runs")->{json} };
    is_deeply $run->{kwargs}{subgraphs}, Cpanel::JSON::XS::true, 'the record shows it';
};

done_testing;
