# SPDX-License-Identifier: Apache-2.0
# Sweeps of values that no checkpoint refers to, and of events of deleted runs.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use lib "$FindBin::Bin/../lib";
use Test::More;
use AgentSQL;
use AgentSQL::Play;
use AgentTest::Cost;

my ($CHECKPOINTS, $REFERENCES, $ORPHANS) = (3000, 100, 400);
my $session = AgentSQL::Play->new(AgentSQL->new->session)->session;
my $thread = AgentSQL::uuid();
my $key = "'$AgentSQL::DEPLOYMENT', '$thread'";

# A thread whose checkpoints each have 100 values, most of them those of the one before.
$session->query("insert into agent.threads (deployment_id, thread_id, created_at, updated_at) values ($key, now(), now())");
$session->query("insert into agent.checkpoints (deployment_id, thread_id, checkpoint_id, run_id, channels, next, tasks, metadata, state_bytes, created_at)
    select $key, gen_random_uuid(), gen_random_uuid(), array[row('messages', true, array(
        select md5('v' || n + k)::uuid from generate_series(1, $REFERENCES) k))::agent.channel_value], '[]', '[]', '{}', 2, now()
    from generate_series(1, $CHECKPOINTS) n");
$session->query("insert into agent.checkpoint_blobs (deployment_id, thread_id, digest, content)
    select $key, md5('v' || n)::uuid, '1' from generate_series(2, $CHECKPOINTS + $REFERENCES) n");
$session->query("insert into agent.checkpoint_blobs (deployment_id, thread_id, digest, content)
    select $key, md5('orphan' || n)::uuid, '1' from generate_series(1, $ORPHANS) n");
$session->query("insert into agent.blob_sweeps (deployment_id, thread_id, due_at) values ($key, now())");
$session->query('analyze agent.checkpoints, agent.checkpoint_blobs');

subtest 'sweep_blobs deletes the values of a thread that no checkpoint references' => sub {
    my $backend = $session->value('select pg_backend_pid()');
    my $cpu = cpu_sec($backend);
    is $session->value('select agent.sweep_blobs()'), 1, 'a thread is swept';
    $cpu = cpu_sec($backend) - $cpu;
    is $session->value("select count(*) from agent.checkpoint_blobs where thread_id = '$thread'"),
        $CHECKPOINTS + $REFERENCES - 1, 'all referenced values are kept, all others deleted';
    # Comparing each value with each reference would take 120 million comparisons.
    cmp_ok $cpu, '<', 0.5 + 5e-6 * $CHECKPOINTS * $REFERENCES, 'the work grows with the references alone'
        or diag "processor time: $cpu s";
};

subtest 'sweep_blobs postpones a thread with more than 2 million references, however well they compress' => sub {
    my $other = AgentSQL::uuid();
    my $other_key = "'$AgentSQL::DEPLOYMENT', '$other'";
    $session->query("insert into agent.threads (deployment_id, thread_id, created_at, updated_at) values ($other_key, now(), now())");
    # Stored in a few kilobytes each.
    $session->query("insert into agent.checkpoints (deployment_id, thread_id, checkpoint_id, run_id, channels, next, tasks, metadata, state_bytes, created_at)
        select $other_key, gen_random_uuid(), gen_random_uuid(), array[row('list', true,
            array_fill(md5('same')::uuid, array[50000]))::agent.channel_value], '[]', '[]', '{}', 2, now()
        from generate_series(1, 50) n");
    $session->query("insert into agent.blob_sweeps (deployment_id, thread_id, due_at) values ($other_key, now())");
    is $session->value('select agent.sweep_blobs()'), 1, 'a thread is examined';
    is $session->value("select due_at > now() + interval '23 hours' from agent.blob_sweeps where thread_id = '$other'"), 't';
};

# ---- events ----

my $play = AgentSQL::Play->new($session);

# A final run with that many events.
sub run_with_events {
    my ($in, $count) = @_;
    my $run = $play->run($in);
    $play->api('cancel_run', $in, $run, 'interrupt');
    $session->query("insert into agent.run_events (deployment_id, bucket, run_id, seq, epoch, event, data)
        select deployment_id, events_bucket, run_id, 1000 + n, 1, 'custom', '{}'
          from agent.runs, generate_series(1, $count) n where run_id = '$run'");
    return $run;
}

sub count_events { return $session->value("select count(*) from agent.run_events where run_id = '$_[0]'") }

$session->query('delete from agent.run_events');

subtest 'the deletion of a run deletes at most 16,000 of its events' => sub {
    my $in = $play->thread;
    my $run = run_with_events($in, 20_000);
    is +($play->api('delete_run', $in, $run))[0], 'ok';
    cmp_ok count_events($run), '>=', 4000;
};

subtest 'the deletion of a thread deletes at most 16,000 events in total' => sub {
    my $in = $play->thread;
    my ($small, $large, $last) = map { run_with_events($in, $_) } 100, 60_000, 1;
    is +($play->api('delete_thread', $in))[0], 'ok';
    is count_events($small), 0, 'all events of the first run are deleted';
    cmp_ok count_events($large), '>=', 44_000, 'a part of the events of the second run is deleted';
    is count_events($last), 1, 'no event of the last run is deleted';
};

subtest 'the deletion of a thread deletes at most 16 MB of events' => sub {
    my $in = $play->thread;
    my $run = run_with_events($in, 40);
    # A megabyte each, of text that does not compress.
    $session->query("update agent.run_events set data = to_json((select string_agg(md5(random()::text), '') from generate_series(1, 32000)))
        where run_id = '$run'");
    is +($play->api('delete_thread', $in))[0], 'ok';
    cmp_ok count_events($run), '>=', 24;
};

subtest 'sweep_events deletes the events that were left, at most 32,000 in a call' => sub {
    is $session->value('select count(*) from agent.event_sweeps'), 4, 'four runs have events left';
    my $before = $session->value('select count(*) from agent.run_events');
    is $session->value('select agent.sweep_events()'), 1;
    cmp_ok $before - $session->value('select count(*) from agent.run_events'), '<=', 32_000, 'one call deletes at most 32,000 events';
    1 while $session->value('select agent.sweep_events()');
    is $session->value('select count(*) from agent.run_events'), 0, 'further calls delete the rest';
    is $session->value('select count(*) from agent.event_sweeps'), 0, 'no run is left to sweep';
};

done_testing;
