# SPDX-License-Identifier: Apache-2.0
# Plans must not depend on statistics: queue tables are analysed while they are empty and used while
# they are full. A session plans with statistics of the one state and is measured in the other.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Play;

my @TABLES = qw(assistants threads runs run_queue calls run_events_default checkpoints checkpoint_items usage_events
    checkpoint_snapshots checkpoint_writes checkpoint_blobs blob_sweeps item_sweeps inherited_items thread_expiries webhook_outbox
    store_items api_keys);
my $deployment = $AgentSQL::DEPLOYMENT;
# A thread with 4,000 checkpoints and snapshots, each of which adds an element to a list.
my $LONG = '00000000-0000-7000-8000-00000000cafe';

# 20,000 blocked runs in two threads, 4,000 ready ones, and the traces of 10,000 that ended.
my $LOAD = <<"SQL";
insert into agent.threads (deployment_id, thread_id, status, active_run_id, created_at, updated_at)
select '$deployment', md5('t' || n)::uuid, 'busy', md5('r' || n)::uuid, now(), now() from generate_series(1, 4002) n;
insert into agent.runs (deployment_id, run_id, thread_id, thread_seq, assistant_id, graph_id, multitask_strategy,
    metadata, config, webhook, stream_mode, stream_subgraphs, stream_resumable, events_bucket, created_at, updated_at)
select '$deployment', md5('r' || n)::uuid, md5('t' || least(n, 4001 + n % 2))::uuid, n, '$AgentSQL::ASSISTANT',
    'agent', 'enqueue', '{}', '{"metadata": {}}', 'http://x/', '["values"]', false, false, current_date, now(), now()
from generate_series(1, 24000) n;
insert into agent.run_queue (deployment_id, run_id, thread_id, thread_seq, graph_id, state, ready_seq, events_bucket)
select '$deployment', md5('r' || n)::uuid, md5('t' || least(n, 4001 + n % 2))::uuid, n, 'agent',
    case when n <= 4000 then 'ready' else 'blocked' end, case when n <= 4000 then n end, current_date
from generate_series(1, 24000) n;
insert into agent.run_events (deployment_id, bucket, run_id, seq, epoch, event, data)
select '$deployment', current_date, md5('e' || n)::uuid, 0, 1, 'custom', '1' from generate_series(1, 10000) n;
insert into agent.checkpoints (deployment_id, thread_id, checkpoint_ns, checkpoint_id, run_id, channels, next, tasks, metadata, state_bytes, created_at)
select '$deployment', md5('t' || n)::uuid, '', md5('c' || n)::uuid, md5('e' || n)::uuid, '{}', '[]', '[]', '{}', 2, now()
from generate_series(1, 4000) n;
insert into agent.checkpoint_items (deployment_id, thread_id, list_id, position, elements, end_bytes, content)
select '$deployment', md5('t' || n)::uuid, 1000000000 + n, 0, 1, 2, '1' from generate_series(1, 4000) n;
insert into agent.threads (deployment_id, thread_id, head_checkpoint_id, head_run_id, created_at, updated_at)
select '$deployment', '$LONG', md5('l4000')::uuid, md5('l4000')::uuid, now(), now()
    on conflict (deployment_id, thread_id) do update set head_checkpoint_id = excluded.head_checkpoint_id;
insert into agent.checkpoints (deployment_id, thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, run_id, channels, next, tasks,
    metadata, state_bytes, created_at)
select '$deployment', '$LONG', '', md5('l' || n)::uuid, md5('l' || n - 1)::uuid, md5('l' || n)::uuid,
    array[row('messages', n, 2 * n, '{1}', array[n], n - 1, null)::agent.channel_value], '[]', '[]', '{}', 2 * n, now()
from generate_series(1, 4000) n;
insert into agent.checkpoint_items (deployment_id, thread_id, list_id, position, elements, end_bytes, content)
select '$deployment', '$LONG', 1, n, 1, 2 * n, '1' from generate_series(0, 3999) n;
insert into agent.checkpoint_snapshots (deployment_id, thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, run_id,
    channels, checkpoint, metadata, created_at)
select '$deployment', '$LONG', '', md5('l' || n)::uuid, md5('l' || n - 1)::uuid, md5('l' || n)::uuid,
    array[row('messages', n, 39 * n, '{2}', array[n], n - 1, null)::agent.channel_value], '{}', '{}', now()
from generate_series(1, 4000) n;
insert into agent.checkpoint_items (deployment_id, thread_id, list_id, position, elements, end_bytes, is_digests, content)
select '$deployment', '$LONG', 2, n, 1, 39 * (n + 1), true, to_json(md5('b' || n)::uuid) from generate_series(0, 3999) n;
insert into agent.checkpoint_blobs (deployment_id, thread_id, digest, part, parts, stored_parts, uses, type, is_text, content)
select '$deployment', '$LONG', md5('b' || n)::uuid, 0, 1, 1, 2, 'json', true, '1' from generate_series(0, 3999) n;
insert into agent.checkpoint_writes (deployment_id, thread_id, checkpoint_ns, checkpoint_id, task_id, idx, run_seq, run_id,
    task_path, channel, digests, is_list)
select '$deployment', '$LONG', '', md5('l' || n)::uuid, 'task', 0, n, md5('l' || n)::uuid, '', 'messages', array[md5('b' || n - 1)::uuid], true
from generate_series(1, 4000) n;
insert into agent.store_items (deployment_id, namespace, key, value, value_bytes, ttl, expires_at, created_at, updated_at)
select '$deployment', array['n', (n % 2000)::text], n::text, '{"n": 1}', 8, interval '1 hour', now() + interval '1 hour', now(), now()
from generate_series(1, 20000) n;
insert into agent.accounts (account_id, name, home_region)
select md5('a' || n)::uuid, 'a', 'local' from generate_series(1, 4000) n on conflict do nothing;
insert into agent.api_keys (key_id, account_id, digest, kind, name, scopes, created_at, expires_at)
select lpad(n::text, 22, '0'), md5('a' || (n % 4000 + 1))::uuid, sha256('x'), 'service', 'k', '{run}', now(), now() + interval '2 hours'
from generate_series(1, 20000) n;
insert into agent.thread_expiries (deployment_id, thread_id, expires_at)
select '$deployment', md5('x' || n)::uuid, now() + interval '1 hour' from generate_series(1, 4000) n;
insert into agent.usage_events (deployment_id, run_id, thread_id, assistant_id, graph_id, status, attempts, epoch,
    created_at, finished_at)
select '$deployment', md5('e' || n)::uuid, md5('t' || n)::uuid, '$AgentSQL::ASSISTANT', 'agent', 'success', 1, 1, now(), now()
from generate_series(1, 10000) n;
insert into agent.calls (deployment_id, call_id, thread_id, graph_id, op, arguments, config, thread_status, code, created_at,
    deadline_at, finished_at)
select '$deployment', md5('k' || n)::uuid, md5('t' || n)::uuid, 'agent', 'update', '{}', '{}', 'idle',
    case when n % 2 = 0 then 'ok' end, now(), now() + interval '1 hour', case when n % 2 = 0 then now() end
from generate_series(1, 4000) n;
insert into agent.webhook_outbox (deployment_id, run_id, thread_id, url, body, body_bytes, attempts, due_at, created_at,
    last_error, dead_at, worker_id)
select '$deployment', md5('e' || n)::uuid, md5('t' || n)::uuid, 'http://x/', '{}', 2, 1,
    now() + case n % 100 when 0 then '-1 minute' else '1 hour' end::interval, now(), 'why',
    case n % 10 when 1 then now() end, case n % 10 when 2 then 1000000 end
from generate_series(1, 10000) n;
SQL

# The life of 50 runs, used to make a session plan every statement, and to measure every statement.
sub life {
    my ($play, $worker, $measure) = @_;
    my $session = $play->session;
    my @claims = $measure->('claim_runs', sub { $play->claim($worker, limit => 50) });
    my $items = AgentSQL::encode([ map { AgentSQL::Play::item($_) } @claims ]);
    $measure->('compose_starts (many)', sub { $session->query("select * from agent.compose_starts($worker, '$items')") });
    my @batch = map { my $claim = $_; my $id = AgentSQL::uuid(); (
        AgentSQL::Play::event($claim, 0, 'metadata', {}),
        AgentSQL::Play::checkpoint($claim, id => $id, messages => [ 'question', 'answer' ]),
        AgentSQL::Play::values_event($claim, 1, $id),
    ) } @claims;
    my $middle = int(@claims / 2);
    $measure->('save_batch', sub { $play->save($worker, @batch) });
    my @more = map { AgentSQL::Play::event($_, 2, 'custom', 1) } @claims;
    $measure->('save_batch of more events', sub { $play->save($worker, @more) });
    $measure->('check_leases', sub { $play->check($worker, @claims) });
    $measure->('check_leases for unknown ones', sub { $play->unknown($worker, @claims[ 1 .. $#claims ]) });
    $measure->('save_batch with ends', sub { $play->save($worker, map { AgentSQL::Play::finish($_) } @claims[ 0 .. $middle ]) });
    $measure->('release_runs', sub { $play->release($worker, 'true', @claims[ $middle + 1 .. $#claims ]) });
    my ($thread, $run) = @{ $claims[0] }{qw(thread_id run_id)};
    $measure->($_->[0], sub { $play->api(@$_) }) for
        [ 'get_thread', $thread ], [ 'get_run', $thread, $run ], [ 'get_state', $thread, undef ],
        [ 'find_run_thread', $run ], [ 'join_run', $thread, $run ],
        [ 'list_runs', $thread, 1, 0, undef, undef ], [ 'read_page', 'runs', $thread, "{$run}", undef, undef, '1.0', 1000 ];
    $measure->('read_events', sub { $play->events($thread, $run) });
    $measure->('find_checkpoint_event', sub { $play->api('find_checkpoint_event', $thread, $run, AgentSQL::uuid()) });
    $measure->('read_events of a run whose events are gone', sub { $play->poll($thread, $run, -2) });
    my ($other) = $claims[-1]{thread_id};
    $measure->('find_thread_end', sub { $play->api('find_thread_end', $_) }) for $thread, $other;
    $measure->('read_thread_events', sub { $play->thread_events($thread, '1--1') });
    $measure->('read_thread_events from the oldest', sub { $play->thread_events($other) });
    $measure->('read_thread_events with nothing new', sub { $play->thread_events($other, '1-1') });
    my $new;
    $measure->('create_thread', sub { $new = $play->thread });
    my @created;
    for my $strategy (qw(reject enqueue interrupt rollback)) {
        $measure->("create_run $strategy", sub { push @created, $play->run($new, strategy => $strategy) });
    }
    my @stateless;
    $measure->('create_stateless_run', sub { @stateless = $play->stateless });
    my $batch;
    $measure->('create_stateless_runs (many)', sub { (undef, undef, $batch) = $play->try_batch(map { {} } 1 .. 50) });
    $measure->('cancel_runs (many)', sub { $play->api('cancel_runs', $new, [ @created, @$batch ], 'interrupt') });
    $measure->('cancel_runs_by_status (many)',
        sub { $play->api('cancel_runs_by_status', 'pending', 'interrupt', 'ffffffff-ffff-ffff-ffff-ffffffffffff') });
    $measure->('cancel_run of a temporary one', sub { $play->api('cancel_run', @stateless, 'interrupt') });
    $session->query("set agent.now = '" . $session->value("select now() + interval '3 minutes'") . "'");
    $measure->('expire_threads (many)', sub { $session->value('select agent.expire_threads()') });
    $session->query('reset agent.now');
    $measure->('cancel_run', sub { $play->api('cancel_run', $new, $created[-1], 'interrupt') });
    my @due = $measure->('claim_webhooks', sub {
        $session->query("select * from agent.claim_webhooks($worker, 20, 64, 1000000, 30, '{}', 0, 0)") });
    my $results = AgentSQL::encode([ map { {
        d => $_->[0], r => $_->[1], n => 1, o => 'failed', t => 'why' } } @due ]);
    $measure->('save_webhooks', sub { $session->query("select * from agent.save_webhooks($worker, '$results')") });
    $measure->('sweep_webhooks', sub { $session->query("select agent.sweep_webhooks('1 day')") });
    $measure->('release_webhooks', sub { $session->query("select agent.release_webhooks($worker)") });
    $measure->('delete_run', sub { $play->api('delete_run', $thread, $run) });
    $play->api('create_thread', $LONG, 'do_nothing', '{}');
    my $in_long = $play->run($LONG);
    $session->query("update agent.run_queue set ready_seq = 0 where run_id = '$in_long'");
    my ($long) = $play->claim($worker, min => -1, limit => 1);
    my ($first, $second) = map { AgentSQL::uuid() } 1, 2;
    my ($head) = $session->query("select head_checkpoint_id, coalesce((c.channels[1]).length, 0) from agent.threads t
        left join agent.checkpoints c on c.checkpoint_id = t.head_checkpoint_id where t.thread_id = '$LONG'");
    my @added = map { AgentSQL::Play::human($_) } 1, 2;
    $measure->('save_batch of a long chat', sub {
        $play->save($worker,
            AgentSQL::Play::checkpoint($long, id => $first, parent => $head->[0] || undef,
                values => { messages => { '$list' => { keep => 0 + $head->[1], items => [ $added[0] ] } } }),
            AgentSQL::Play::checkpoint($long, id => $second, parent => $first,
                values => { messages => { '$list' => { keep => $head->[1] + 1, items => [ $added[1] ] } } }));
    });
    $measure->('read_state of the end of a long chat', sub {
        $session->query("select * from agent.read_state('$deployment', '$LONG', '$second', '0.$head->[1]', 1000)");
    });
    # A library's snapshot: the head's messages and one more, with its writes.
    my ($snapshot) = $session->query("select checkpoint_id, (channels[1]).length from agent.checkpoint_snapshots
        where thread_id = '$LONG' and checkpoint_id = md5('l4000')::uuid");
    my ($digest, $blob) = AgentSQL::Play::blob($long, '"added"');
    my ($put, $then) = map { AgentSQL::uuid() } 1, 2;
    my ($id, $length) = @{ $snapshot // [ undef, 0 ] };
    my $known = $length ? $session->value("select md5('b7')::uuid") : $digest;
    $measure->('save_batch of records of a long chat', sub {
        $play->save($worker, $blob,
            AgentSQL::Play::put($long, id => $put, parent => $id, channels => { messages => { list => { keep => 0 + $length, items => [$digest] } } }),
            AgentSQL::Play::put_writes($long, id => $put, writes => [ [ -1, 'messages', $digest ], [ 0, 'messages', $known ] ]),
            AgentSQL::Play::put($long, id => $then, parent => $put, channels => { x => $known }));
    });
    my $read = sub {
        my ($function, %args) = @_;
        return $session->query(sprintf("select * from agent.%s('$deployment', '$LONG', '%s', %s, 1000000)", $function,
            AgentSQL::encode(\%args), $args{cursor} ? "'$args{cursor}'" : 'null'));
    };
    $measure->('read_checkpoint, the end of a long chat', sub { $read->('read_checkpoint', cursor => "$then.c.0.$length") });
    $measure->('read_checkpoint, the newest', sub { $read->('read_checkpoint', ns => 'none') });
    $measure->('read_checkpoints', sub { $read->('read_checkpoints', ns => '', limit => 5) });
    $measure->('read_delta (many)', sub { $read->('read_delta', checkpoint_id => $then, channels => ['x']) });
    $measure->('read_blobs', sub { $read->('read_blobs', digests => [ $digest, $known ]) });
    $measure->('save_batch with the end of a run of a long chat', sub { $play->save($worker, AgentSQL::Play::finish($long)) });
    $measure->('delete_run of a long chat', sub { $play->api('delete_run', $LONG, $long->{run_id}) });
    my $copy = AgentSQL::uuid();
    $measure->('copy_thread', sub { $play->api('copy_thread', $thread, $copy, 'false', undef) });
    $measure->('get_state of a copy', sub { $play->api('get_state', $copy, undef) });
    $play->api('copy_thread', $LONG, AgentSQL::uuid(), 'false', undef);
    $session->query("update agent.thread_copies set expires_at = '-infinity'");
    $measure->('sweep_copies (many)', sub { $session->query('select agent.sweep_copies()') });
    $session->query('delete from agent.thread_copies');
    $measure->('sweep_state', sub { $session->query('select agent.sweep_state()') });
    $session->query("set agent.now = '" . $session->value("select now() + interval '3 minutes'") . "'");
    $measure->('sweep_blobs', sub { $session->query('select agent.sweep_blobs()') });
    $session->query('reset agent.now');
    $measure->('sweep_events', sub { $session->query('select agent.sweep_events()') });
    my $dead = $play->worker;
    $play->run($play->thread) for 1 .. 2;
    my @held = $play->claim($dead, limit => 2);
    $measure->('fail_run', sub { $session->query("select * from agent.fail_run($dead, null, null, null, 'x', 'y')") });
    $measure->('mark_worker_dead', sub { $session->query("select * from agent.mark_worker_dead($dead, true, 100)") });
    $measure->('delete_thread', sub { $play->api('delete_thread', $new) });
    my $called = $play->thread(metadata => { graph_id => 'agent' });
    my @calls = map { AgentSQL::uuid() } 1, 2;
    my $update = sub { $play->api('update_state', $called, $_[0], 'u1', 10, '{"values":{}}') };
    is +($measure->('update_state', sub { $update->($calls[0]) }))[0], 'ok';
    $measure->('join_call', sub { $play->api('join_call', $called, $calls[0]) });
    $session->query("update agent.run_queue set ready_seq = 0 where run_id = '$calls[0]'");
    my ($claim) = $measure->('claim_runs of a call', sub { $play->claim($worker, min => -1, limit => 1) });
    $measure->('save_batch with the end of a call', sub {
        $play->save($worker, AgentSQL::Play::checkpoint($claim, messages => ['x']), AgentSQL::Play::finish($claim)) });
    $update->($calls[1]);
    $measure->('end_call', sub { $play->api('end_call', $called, $calls[1]) });
    $measure->('sweep_calls', sub { $session->value('select agent.sweep_calls()') });
    $measure->('update_thread', sub { $play->api('update_thread', $called, '{"metadata":{"x":1}}') });
    $measure->('get_history of a long chat', sub { $play->api('get_history', $LONG, '{"limit":5,"select":["next"]}') });
    my $asked = AgentSQL::uuid();
    my $describe = sub { $play->api('describe_graph', $AgentSQL::ASSISTANT, $_[0], 10, '{"what":"graph","xray":true}') };
    $measure->('describe_graph', sub { $describe->($asked) });
    $session->query("update agent.run_queue set ready_seq = 0 where run_id = '$asked'");
    my ($question) = $measure->('claim_runs of a call of no thread', sub { $play->claim($worker, min => -1, limit => 1) });
    $measure->('save_batch with the value of a call', sub {
        $play->save($worker, { %{ AgentSQL::Play::finish($question) }, value => { nodes => [] } }) });
    $measure->('describe_graph again', sub { $describe->(AgentSQL::uuid()) });
    my @made = map { AgentSQL::uuid() } 1, 2;
    $measure->('create_thread_state', sub { $play->api('create_thread_state', @made, 'u1', 'raise', 10,
        '{"metadata":{"graph_id":"agent"},"supersteps":[{"updates":[{}]}]}') });
    $measure->('end_call of a new thread', sub { $play->api('end_call', @made) });
    my $item = '{"namespace":["n","7"],"key":"new","value":{"n":2},"ttl":10}';
    $measure->('put_item', sub { $play->api('put_item', $item) }) for 1, 2;
    $measure->('get_item', sub { $play->api('get_item', 'n.7', 'new', 'true') });
    $measure->('search_items', sub { $play->api('search_items', '{"namespace_prefix":["n","7"],"filter":{"n":1},"limit":3}', undef) });
    $measure->('list_namespaces', sub { $play->api('list_namespaces', '{"prefix":["n"],"suffix":["*","*"],"limit":5}') });
    $measure->('use_store', sub {
        $session->query("select * from agent.use_store($worker, '$deployment', '$long->{run_id}', 1,
            '{\"ops\":[{\"op\":\"get\",\"namespace\":[\"n\",\"7\"],\"key\":\"new\"},{\"op\":\"search\",\"namespace_prefix\":[\"n\",\"8\"],\"limit\":2}]}', null, 1000)") });
    $measure->('delete_item', sub { $play->api('delete_item', $item) });
    # An account with limits, which are counted.
    my $account = '00000000-0000-0000-0000-00000000000a';
    $session->query("insert into agent.account_limits values ('$account', 'queued_runs', 1000000, '$account', now()), ('$account', 'running_runs', 0, '$account', now()),
        ('$account', 'threads', 1000000, '$account', now()), ('$account', 'webhooks', 1000000, '$account', now()),
        ('$account', 'stored_bytes', 1000000000000, '$account', now())");
    $session->value("select agent.read_count('$account', '$_')") for qw(queued_runs running_runs threads webhooks);
    my ($counted) = $measure->('create_thread of an account with limits', sub { $play->thread });
    $measure->('create_stateless_runs of an account with limits (many)', sub { $play->try_batch({ assistant_id => $AgentSQL::ASSISTANT, webhook => 'http://x/' }) });
    $measure->('put_item of an account with limits', sub { $play->api('put_item', $item) });
    my ($unfinished) = $measure->('create_run of an account with limits', sub { $play->run($counted) });
    $measure->('claim_runs of an account at its limit', sub { $play->claim($worker, limit => 50, accounts => [$account]) });
    $measure->('cancel_run of an account with limits', sub { $play->api('cancel_run', $counted, $unfinished, 'interrupt') });
    $measure->('count_accounts (many)', sub { $session->value('select agent.count_accounts()') }) for 1, 2;
    $measure->('delete_thread of an account with limits', sub { $play->api('delete_thread', $counted) });
    $measure->('end_full_runs', sub { $session->query("select * from agent.end_full_runs($worker)") });
    $measure->('measure_accounts', sub { $session->value('select agent.measure_accounts()') }) for 1, 2;
    $session->query("delete from agent.$_") for qw(account_limits account_counts account_measures);
    $measure->('find_api_key', sub { $session->call('find_api_key', sprintf '%022d', 7) });
    $measure->('find_invalid_keys', sub { $session->query("select * from agent.find_invalid_keys(array['" . sprintf('%022d', 7) . "', 'none'])") });
    $measure->('describe_api_key', sub { $session->call('describe_api_key', sprintf '%022d', 7) });
    my $owner = $session->value("select account_id from agent.api_keys where key_id = '" . sprintf('%022d', 7) . "'");
    $measure->('list_account_keys', sub { $session->call('list_account_keys', $owner, undef, 3) });
    $measure->('list_audit_log', sub { $session->call('list_audit_log', $owner, undef, 3) });
    $measure->('get_usage', sub { $session->call('get_usage', '00000000-0000-0000-0000-00000000000a', 'hour', '2020-01-01T00:00:00Z', '2020-01-01T03:00:00Z', undef) });
    $measure->('use_api_key', sub { $session->call('use_api_key', sprintf '%022d', 7) });
    $session->query("set agent.now = '" . $session->value("select now() + interval '59 minutes'") . "'");
    $measure->('sweep_store', sub { $session->value('select agent.sweep_store()') });
    $measure->('sweep_api_keys', sub { $session->value('select agent.sweep_api_keys()') });
    $measure->('sweep_accounts', sub { $session->value('select agent.sweep_accounts()') });
    $measure->('sweep_audit_log', sub { $session->value("select agent.sweep_audit_log('400 days')") });
    $session->query('reset agent.now');
    return scalar @claims;
}

sub quietly { return $_[1]->() }

# Table scans and rows read so far, counted in the open transaction and perhaps the ones before it.
# A row counts for every index entry that was followed, so that a scan shows whatever its kind.
sub counters {
    my ($session) = @_;
    my ($row) = $session->query('select sum(seq_scan), sum(coalesce(idx_tup_fetch, 0) + seq_tup_read)
        from pg_stat_xact_user_tables where schemaname = \'agent\' and relname <> \'workers\'');
    return @$row;
}

# The increase by one call.
sub rows_read {
    my ($session, $call) = @_;
    $session->query('begin');
    my @before = counters($session);
    my @result = $call->();
    my @after = counters($session);
    $session->query('commit');
    return ($after[0] - $before[0], $after[1] - $before[1], @result);
}

sub measured {
    my ($play, $worker) = @_;
    my (%scans, %rows);
    my $claimed = life($play, $worker, sub {
        my ($name, $call) = @_;
        ($scans{$name}, $rows{$name}, my @result) = rows_read($play->session, $call);
        return @result;
    });
    is $claimed, 50, '50 runs were claimed';
    for my $name (sort keys %rows) {
        is $scans{$name}, 0, "$name scans no table";
        # A measure reads for 50 ms.
        my $limit = $name =~ /measure_accounts/ ? 200_000 : $name =~ /many/ ? 2500 : $name =~ /claim|batch|release|check/ ? 600 : 60;
        cmp_ok $rows{$name}, '<=', $limit, "$name reads no more rows than it needs ($rows{$name})";
    }
    return;
}

sub prepared {
    my ($statistics) = @_;
    my $db = AgentSQL->new;
    my $session = $db->session;
    $session->query("select agent.save_graphs('$deployment', '[{\"graph_id\":\"agent\",\"assistant_id\":\"$AgentSQL::ASSISTANT\"}]')");
    $session->query("alter table agent.$_ set (autovacuum_enabled = off)") for @TABLES;
    if ($statistics eq 'empty') {
        $session->query("vacuum analyze agent.$_") for @TABLES;
    } elsif ($statistics eq 'emptied') {
        # Pages without rows: no rows at all, as far as the planner can see.
        my $play = AgentSQL::Play->new($session);
        my $worker = $play->worker;
        $play->run($play->thread);
        life($play, $worker, \&quietly);
        $session->query("delete from agent.$_") for @TABLES, 'run_events';
        $session->query("vacuum (analyze, truncate off) agent.$_") for @TABLES;
    } elsif ($statistics eq 'all blocked') {
        $session->query($_) for split /;\n/, $LOAD;
        $session->query("update agent.run_queue set state = 'blocked' where state = 'ready'");
        $session->query("analyze agent.$_") for @TABLES;
        $session->query("delete from agent.$_") for @TABLES, 'run_events';
    }
    return ($db, $session);
}

for my $statistics ('none', 'empty', 'emptied', 'all blocked') {
    my ($db, $session) = prepared($statistics);
    my $play = AgentSQL::Play->new($session);
    my $worker = $play->worker;
    $play->run($play->thread) for 1 .. 2;
    life($play, $worker, \&quietly);
    $session->query($_) for split /;\n/, $LOAD;
    subtest "statistics: $statistics; a session that planned before the load" => sub {
        measured($play, $worker);
    };
    my $other = AgentSQL::Play->new($db->session);
    subtest "statistics: $statistics; a session that plans after the load" => sub {
        measured($other, $other->worker);
    };
}

subtest 'the plan of a claim is index scans and a tid scan: no table scan, no hash join, no merge join' => sub {
    my ($db) = prepared('empty');
    my $session = $db->session('none');
    $session->query($_) for "load 'auto_explain'", 'set auto_explain.log_min_duration = 0',
        'set auto_explain.log_nested_statements = on', "set role $AgentSQL::OWNER";
    $session->query($_) for split /;\n/, $LOAD;
    my $worker = AgentSQL::Play->new($session)->worker;
    $session->query('set client_min_messages = log');
    my $ask = sub {
        my ($min_ready_seq) = @_;
        $session->send("select count(*) from agent.claim_runs($worker, '{00000000-0000-0000-0000-000000000001}', '{agent}', "
            . "'{$min_ready_seq}', '{1}', '{50}', '{16}', 50, 1000000)");
        return split /^LOG: /m, $session->receive;
    };
    # Quarantined runs are looked for where no other run is ready.
    my ($ready, $quarantined) = grep { /not exists \(\s*select from agent\.find_ready_graphs/ } $ask->('9' x 15);
    like $ready, qr/Index (?:Only )?Scan using run_queue_ready on run_queue/, 'the search for ready runs was logged';
    like $quarantined, qr/Index (?:Only )?Scan using run_queue_quarantined on run_queue/, 'quarantined runs are found by their own index';
    my @plans = $ask->(0);
    my $choice = sub { return join '', grep { /for no key update skip locked/ && /from agent\.run_queue c/ } @_ };
    my $rows = $choice->(@plans);
    like $rows, qr/Index (?:Only )?Scan using run_queue_ready on run_queue/, 'the choice of runs was logged';
    like $rows, qr/Index (?:Only )?Scan using run_queue_quarantined on run_queue/, 'quarantined runs are chosen by their own index';
    unlike $rows, qr/Subquery Scan on r.*\n(?:.*\n){1,3}.*Sort/, 'the queue is read in order';
    $session->send("select count(*) from agent.claim_runs($worker, array_fill('00000000-0000-0000-0000-000000000001'::uuid, '{2}'), '{agent,other}', '{0,0}',
        '{1,2}', '{5,5}', '{1,1}', 50, 1000000)" =~ s/\s+/ /gr);
    my @several = split /^LOG: /m, $session->receive;
    $rows = $choice->(@several);
    like $rows, qr/Index (?:Only )?Scan using run_queue_$_ on run_queue/, "the choice for several pools: $_" for qw(ready quarantined);
    unlike "@several", qr/Seq Scan on run|Hash(?!Aggregate)|Merge|Bitmap/, 'no table is scanned for several pools';
    my ($claim) = grep { /with claimed as/ } @plans;
    like $claim, qr/Update on run_queue/, 'the claim was logged';
    like $claim, qr/Tid Scan on run_queue/;
    like $claim, qr/Index Scan using runs_pkey on runs/;
    unlike "@plans", qr/Seq Scan on run|Hash|Merge|Bitmap|Function Scan on (?:agent\.)?find_ready/, 'no table is scanned';
};

subtest 'the values of a checkpoint are composed in order by nested loops, whatever the settings' => sub {
    my ($db) = prepared('empty');
    my $session = $db->session('none');
    $session->query($_) for split /;\n/, $LOAD;
    $session->query("set $_") for 'enable_nestloop = off', 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0',
        'min_parallel_table_scan_size = 0', 'min_parallel_index_scan_size = 0';
    my $plan = join "\n", map { $_->[0] } $session->query("explain (costs off)
        select v.content
          from agent.checkpoints c
         cross join lateral agent.compose_values(c.deployment_id, c.thread_id, c.channels) v
         where c.deployment_id = '$deployment' and c.thread_id = '$LONG' and c.checkpoint_ns = ''
           and c.checkpoint_id = md5('l3000')::uuid");
    like $plan, qr/Nested Loop\n.*Function Scan on unnest.*\n.*Append/, 'the channels in order';
    like $plan, qr/Nested Loop\n.*Function Scan on s\n.*Index Scan.* on checkpoint_items/, 'the segments of each in order';
    unlike $plan, qr/Hash Join|Merge Join|Gather|Parallel/;
};

done_testing;
