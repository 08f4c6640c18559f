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
my $key = "'$AgentSQL::ACCOUNT', '$thread'";

# A thread whose checkpoints each have 100 values, most of them those of the one before.
$session->query("insert into agent.threads (account_id, thread_id, created_at, updated_at) values ($key, now(), now())");
$session->query("insert into agent.checkpoints (account_id, thread_id, checkpoint_id, run_id, channels, next, tasks, metadata, state_bytes, created_at)
    select $key, gen_random_uuid(), gen_random_uuid(), array[row('messages', true, array(
        select md5('v' || n + k)::uuid from generate_series(1, $REFERENCES) k))::agent.channel_value], '[]', '[]', '{}', 2, now()
    from generate_series(1, $CHECKPOINTS) n");
$session->query("insert into agent.checkpoint_blobs (account_id, thread_id, digest, content)
    select $key, md5('v' || n)::uuid, '1' from generate_series(2, $CHECKPOINTS + $REFERENCES) n");
$session->query("insert into agent.checkpoint_blobs (account_id, thread_id, digest, content)
    select $key, md5('orphan' || n)::uuid, '1' from generate_series(1, $ORPHANS) n");
$session->query("insert into agent.blob_sweeps (account_id, thread_id, due_at) values ($key, now())");
$session->query('analyze agent.checkpoints, agent.checkpoint_blobs');

my $backend = $session->value('select pg_backend_pid()');
my $cpu = cpu_sec($backend);
is $session->value('select agent.sweep_blobs()'), 1, 'a long thread is swept';
$cpu = cpu_sec($backend) - $cpu;

# Each value against each reference were 120 million comparisons.
my $sorted = $CHECKPOINTS * $REFERENCES;
cmp_ok $cpu, '<', 0.5 + 5e-6 * $sorted, 'its work grows with the references, not with their product with the unreferenced values'
    or diag "processor time: $cpu s";
is $session->value("select count(*) from agent.checkpoint_blobs where thread_id = '$thread'"),
    $CHECKPOINTS + $REFERENCES - 1, 'values that a checkpoint references are kept, all others deleted';

# Stored in a few kilobytes each.
my $other = AgentSQL::uuid();
my $other_key = "'$AgentSQL::ACCOUNT', '$other'";
$session->query("insert into agent.threads (account_id, thread_id, created_at, updated_at) values ($other_key, now(), now())");
$session->query("insert into agent.checkpoints (account_id, thread_id, checkpoint_id, run_id, channels, next, tasks, metadata, state_bytes, created_at)
    select $other_key, gen_random_uuid(), gen_random_uuid(), array[row('list', true,
        array_fill(md5('same')::uuid, array[50000]))::agent.channel_value], '[]', '[]', '{}', 2, now()
    from generate_series(1, 50) n");
$session->query("insert into agent.blob_sweeps (account_id, thread_id, due_at) values ($other_key, now())");
is $session->value('select agent.sweep_blobs()'), 1, 'a thread with 2.5 million references is examined';
is $session->value("select due_at > now() + interval '23 hours' from agent.blob_sweeps where thread_id = '$other'"), 't',
    'a thread with more than 2 million references is postponed, however well they compress';

# ---- events ----

my $play = AgentSQL::Play->new($session);

# A final run with so many events.
sub run_with_events {
    my ($in, $count) = @_;
    my $run = $play->run($in);
    $play->api('cancel_run', $in, $run, 'interrupt');
    $session->query("insert into agent.run_events (account_id, bucket, run_id, seq, epoch, event, data)
        select account_id, events_bucket, run_id, 1000 + n, 1, 'custom', '{}'
          from agent.runs, generate_series(1, $count) n where run_id = '$run'");
    return $run;
}

sub count_events { return $session->value("select count(*) from agent.run_events where run_id = '$_[0]'") }

$session->query('delete from agent.run_events');
my $chat = $play->thread;
my ($small, $large, $last) = map { run_with_events($chat, $_) } 100, 60_000, 1;
my $its_thread = $play->thread;
my $rolled_back = run_with_events($its_thread, 20_000);
is +($play->api('delete_run', $its_thread, $rolled_back))[0], 'ok', 'a run with 20,000 events is deleted';
cmp_ok count_events($rolled_back), '>=', 4000, 'with at most 16,000 of its events';
is +($play->api('delete_thread', $chat))[0], 'ok', 'a thread with 60,000 events is deleted';
is count_events($small), 0, 'with the events of its first run';
cmp_ok count_events($large), '>=', 44_000, 'with at most 16,000 in total';
is count_events($last), 1, 'and none of a later run';
is $session->value('select count(*) from agent.event_sweeps'), 3, 'three runs have events to be swept';

# Text that does not compress.
my $long_thread = $play->thread;
my $long = run_with_events($long_thread, 40);
$session->query("update agent.run_events set data = to_json((select string_agg(md5(random()::text), '') from generate_series(1, 32000)))
    where run_id = '$long' and seq > 1000");
is +($play->api('delete_thread', $long_thread))[0], 'ok', 'a thread with 40 MB of events is deleted';
cmp_ok count_events($long), '>=', 24, 'with at most 16 MB of them';

my $before = $session->value('select count(*) from agent.run_events');
is $session->value('select agent.sweep_events()'), 1, 'a sweep finds a run';
cmp_ok $before - $session->value('select count(*) from agent.run_events'), '<=', 32_000, 'it deletes at most 32,000 events';
1 while $session->value('select agent.sweep_events()');
is $session->value('select count(*) from agent.run_events'), 0, 'further sweeps delete the rest';
is $session->value('select count(*) from agent.event_sweeps'), 0, 'then no run is left to sweep';

done_testing;
