# SPDX-License-Identifier: Apache-2.0
# Sweeps of values that no checkpoint refers to.
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

done_testing;
