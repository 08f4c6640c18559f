# SPDX-License-Identifier: Apache-2.0
# Idempotency keys of run creation.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Play;

my $db = AgentSQL->new;
my $play = AgentSQL::Play->new($db->session);
my $thread = $play->thread;

subtest 'a repeated request returns the stored run, also while the thread is busy' => sub {
    my ($code, $body, $run) = $play->try_run($thread, strategy => 'reject', key => 'k1', hash => 'h1');
    is $code, 'ok';
    my ($again, $same) = $play->try_run($thread, strategy => 'reject', key => 'k1', hash => 'h1');
    is $again, 'ok';
    is $same, $body;
    is scalar @{ $play->body('list_runs', $thread, 10, 0, undef, undef) }, 1, 'the thread has one run';
};

subtest 'another request with the same key is refused' => sub {
    is +($play->try_run($thread, key => 'k1', hash => 'h2'))[0], 'idempotency_mismatch', 'a known key with another body is refused';
    is +($play->try_run($play->thread, key => 'k1', hash => 'h1'))[0], 'idempotency_mismatch', 'a known key on another thread is refused';
};

subtest 'requests without a key are never the same' => sub {
    my $other = $play->thread;
    isnt $play->run($other), $play->run($other);
};

subtest 'two concurrent requests with one key create one run' => sub {
    my $busy = $play->thread;
    my @sessions = map { $db->session } 1, 2;
    my @runs = map { AgentSQL::uuid() } 1, 2;
    my $sql = sub {
        "select code, body::json ->> 'run_id' from agent.create_run('$AgentSQL::DEPLOYMENT', '$busy', '$_[0]',
         '$AgentSQL::ASSISTANT', 'agent', '{agent}', 'reject', null, 'k2', 'h', '{}')";
    };
    $sessions[0]->query('begin');
    is_deeply [ $sessions[0]->query($sql->($runs[0])) ], [ [ 'ok', $runs[0] ] ];
    $sessions[1]->send($sql->($runs[1]));
    ok $sessions[1]->waits_for($sessions[0]), 'the second request waits for the first';
    $sessions[0]->query('commit');
    is $sessions[1]->receive, "ok\x1f$runs[0]", 'the second request returns the run of the first';
};

subtest 'a repeated request for a thread whose deletion has begun is refused' => sub {
    my $deleted = $play->thread;
    is +($play->try_run($deleted, key => 'k3', hash => 'h'))[0], 'ok';
    $play->session->query("update agent.threads set is_deleted = true where thread_id = '$deleted'");
    is +($play->try_run($deleted, key => 'k3', hash => 'h'))[0], 'thread_not_found', 'its run is not returned';
    is +($play->try_run($play->thread, key => 'k3', hash => 'h'))[0], 'idempotency_mismatch', 'its key is taken until the thread is deleted';
};

done_testing;
