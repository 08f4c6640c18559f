# SPDX-License-Identifier: Apache-2.0
# The export of an account: all of its rows, in parts, and none of another account.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Play;

my $db = AgentSQL->new('-v', "app_role=$AgentSQL::APP");
my $owner = $db->session;
my $session = $db->session($AgentSQL::APP);

# An account with two deployments, which have a thread with two runs, a store item and an assistant each.
sub account {
    my $account = AgentSQL::uuid();
    my ($code) = $session->call('sign_up', '{"name":"Shop"}', undef, $account, substr($account =~ tr/-//dr, 0, 22), '\x' . 'ab' x 32);
    is $code, 'ok';
    for my $name ('shop', 'desk') {
        my $deployment = $owner->value("select agent.ensure_deployment('$name', '$account')");
        my $play = AgentSQL::Play->new($session, deployment => $deployment);
        my $worker = $play->worker;
        my $thread = $play->thread(metadata => { a => 'b' });
        for my $number (1, 2) {
            $play->run($thread, request => qq({"input":\n{"text":"line\\nend $number"}\r}));
            my ($claim) = $play->claim($worker);
            my ($digest, $blob) = AgentSQL::Play::blob($claim, '1');
            my $id = AgentSQL::uuid();
            $play->save($worker, AgentSQL::Play::event($claim, 0, 'custom', 1), $blob, AgentSQL::Play::put($claim, id => $id, channels => { x => $digest }),
                AgentSQL::Play::put_writes($claim, id => $id, writes => [ [ 0, 'x', $digest ] ]), AgentSQL::Play::finish($claim));
        }
        $play->run($play->thread);
        is +($play->api('put_item', AgentSQL::encode({ namespace => [ 'a', "$_" ], key => "k'$_", value => { x => 1 } }), undef))[0], 'ok' for 1 .. 3;
        $session->query("select agent.mark_worker_dead($worker, true, 100)");
    }
    return $account;
}

# The lines of an export in parts of $bytes, and the number of the parts.
sub export {
    my ($account, $bytes) = @_;
    my ($cursor, $parts, $text) = (undef, 0, '');
    do {
        my ($code, $body) = $session->call('export_account', $account, $cursor, $bytes);
        die $code if $code ne 'ok';
        $cursor = $session->extra;
        $text .= "$body\n" if length $body;
        $parts++;
    } while (length($cursor // ''));
    return ([ grep { /\S/ } split /\n/, $text ], $parts);
}

my ($account, $other) = (account(), account());
my ($lines, $parts) = export($account, 1_000_000);

subtest 'an export has each row of an account once, and none of another one' => sub {
    my %count;
    my @rows = map { AgentSQL::decode($_) } @{$lines};
    $count{ $_->{table} }++ for @rows;
    my @deployments = map { $_->[0] } $owner->query("select deployment_id from agent.deployments where account_id = '$account'");
    my $all = join ', ', map { "'$_'" } @deployments;
    for my $table ($owner->query('select name, is_of_deployment from agent.list_exported_tables() order by number')) {
        my ($name, $is_of_deployment) = @{$table};
        is $count{$name} // 0, $owner->value("select count(*) from agent.$name where "
            . ($is_of_deployment eq 't' ? "deployment_id in ($all)" : "account_id = '$account'")), $name;
    }
    cmp_ok scalar keys %count, '>', 10, 'most tables have rows';
    ok !(grep { index($_, $other) >= 0 } @{$lines}), 'no row names another account';
    ok !(grep { exists $_->{row}{digest} } grep { $_->{table} eq 'api_keys' } @rows), 'keys have no digest';
    my ($run) = map { $_->{row} } grep { $_->{table} eq 'runs' } @rows;
    like AgentSQL::encode($run), qr/line\\nend 1/, 'line ends of a string are kept, those between members are spaces';
};

subtest 'the beginning of an export is recorded, if its key is valid' => sub {
    my $key = $owner->value("select key_id from agent.api_keys where account_id = '$account'");
    my $export = AgentSQL::uuid();
    is +($session->call('begin_export', $key, $export))[0], 'ok' for 1 .. 2;
    is $owner->value("select string_agg(actor, ',') from agent.audit_log where account_id = '$account' and action = 'account.export'"), "key $key", 'once, also when the call is repeated';
    is +($session->call('begin_export', $key, AgentSQL::uuid()))[0], 'ok', 'another export';
    is $owner->value("select count(*) from agent.audit_log where account_id = '$account' and action = 'account.export'"), 2;
    is +($session->call('begin_export', 'x' x 22, $export))[0], 'unknown_key';
    $owner->query("delete from agent.audit_log where action = 'account.export'");
};

subtest 'the parts of an export are those rows in the same order' => sub {
    is $parts, 1;
    for my $bytes (1, 700, 5000) {
        my ($same, $count) = export($account, $bytes);
        is_deeply $same, $lines, "$bytes bytes";
        cmp_ok $count, '>', 1;
    }
    is +(export($account, 1))[1], @{$lines} + 1, 'one row, and nothing after the last one';
};

subtest 'an export visits at most 50 tables in a part' => sub {
    $owner->query("select agent.ensure_deployment('d' || n, '$account') from generate_series(1, 20) n");
    my ($all, $count) = export($account, 1_000_000);
    is $count, int((4 + 22 * 14) / 50) + 1;
    is @{$all}, @{$lines} + 2 * 20, 'the deployments, and who opened them';
};

subtest 'a part examines at most 1,000 rows, with threads that have no run' => sub {
    my $empty = AgentSQL::uuid();
    $owner->call('create_account', $empty, 'Threads');
    my $deployment = $owner->value("select agent.ensure_deployment('many', '$empty')");
    $owner->query("insert into agent.threads (deployment_id, thread_id, created_at, updated_at)
        select '$deployment', md5(n::text)::uuid, now(), now() from generate_series(1, 2500) n");
    my ($all, $count) = export($empty, 1_000_000_000);
    is scalar(grep { AgentSQL::decode($_)->{table} eq 'threads' } @{$all}), 2500, 'each thread once';
    is $count, 6, 'three parts with threads, then three that look for their runs';
};

subtest 'a part reads the rows that it returns, however long the rest of a table is' => sub {
    my $large = AgentSQL::uuid();
    $owner->call('create_account', $large, 'Long thread');
    my $deployment = $owner->value("select agent.ensure_deployment('long', '$large')");
    my ($n, $thread) = (5000, AgentSQL::uuid());
    $owner->query("insert into agent.threads (deployment_id, thread_id, created_at, updated_at) values ('$deployment', '$thread', now(), now())");
    $owner->query("insert into agent.runs (deployment_id, run_id, thread_id, thread_seq, assistant_id, graph_id, multitask_strategy, metadata, config,
            stream_mode, stream_subgraphs, stream_resumable, events_bucket, created_at, updated_at)
        select '$deployment', md5('r' || n)::uuid, '$thread', n, '$AgentSQL::ASSISTANT', 'agent', 'enqueue', '{}', '{}', '[]', false, false,
            current_date, now(), now() from generate_series(1, $n) n");
    $owner->query("insert into agent.run_events (deployment_id, bucket, run_id, seq, epoch, event, data)
        select '$deployment', current_date - n % 3, md5('r' || n % 10)::uuid, n, 1, 'custom', '1' from generate_series(1, $n) n");
    $owner->query("insert into agent.checkpoints (deployment_id, thread_id, checkpoint_ns, checkpoint_id, run_id, channels, next, tasks, metadata,
            state_bytes, created_at)
        select '$deployment', '$thread', '', md5('c' || n)::uuid, md5('r' || n)::uuid, '{}', '[]', '[]', '{}', 2, now() from generate_series(1, $n) n");
    $owner->query("insert into agent.checkpoint_items (deployment_id, thread_id, list_id, position, elements, end_bytes, content)
        select '$deployment', '$thread', 1, n, 1, 2 * n, '1' from generate_series(1, $n) n");
    $owner->query("insert into agent.checkpoint_blobs (deployment_id, thread_id, digest, part, parts, stored_parts, uses, type, is_text, content)
        select '$deployment', '$thread', md5('b' || n)::uuid, 0, 1, 1, 2, 'json', true, '1' from generate_series(1, $n) n");
    $owner->query("insert into agent.store_items (deployment_id, namespace, key, value, value_bytes, created_at, updated_at)
        select '$deployment', array['n', (n % 20)::text], n::text, '{}', 2, now(), now() from generate_series(1, $n) n");
    $owner->query("insert into agent.usage_events (deployment_id, run_id, thread_id, assistant_id, graph_id, status, attempts, epoch, created_at,
            finished_at)
        select '$deployment', md5('r' || n)::uuid, '$thread', '$AgentSQL::ASSISTANT', 'agent', 'success', 1, 1, now(), now()
        from generate_series(1, $n) n");
    my ($cursor, @parts, %lines);
    my $reads = "select coalesce(sum(seq_tup_read + idx_tup_fetch), 0) from pg_stat_xact_user_tables where schemaname = 'agent'";
    do {
        $session->query('begin');
        my $before = $session->value($reads);
        my (undef, $body) = $session->call('export_account', $large, $cursor, 200_000);
        $cursor = $session->extra;
        my @rows = map { AgentSQL::decode($_) } split /\n/, $body;
        $lines{ $_->{table} }{ $_->{row}{thread_seq} // AgentSQL::encode($_->{row}) }++ for @rows;
        push @parts, [ $session->value($reads) - $before - @rows, scalar @rows, $rows[0]{table} // 'nothing' ];
        $session->query('commit');
    } while (length($cursor // ''));
    cmp_ok scalar @parts, '>', 40, 'many parts';
    # Of `runs` the thread, of `run_events` the first row of each partition.
    my ($worst) = sort { $b->[0] <=> $a->[0] } @parts;
    cmp_ok $worst->[0], '<', 60, "rows beside those of the part, at most ($worst->[1] of $worst->[2])";
    is scalar(keys %{ $lines{$_} }), $n, "$_: each row once"
        for qw(runs run_events checkpoints checkpoint_items checkpoint_blobs store_items usage_events);
};

subtest 'every table is exported, or said not to be' => sub {
    my %not = map { $_ => 1 } qw(region schema_version invitations account_limits account_counts account_measures account_deletions workers run_queue calls thread_expiries webhook_outbox inherited_items item_sweeps copied_runs
        thread_copies copy_lists copy_blobs blob_sweeps event_sweeps run_sweeps write_sweeps);
    my %exported = map { $_->[0] => 1 } $owner->query('select name from agent.list_exported_tables()');
    my @tables = map { $_->[0] } $owner->query("select c.relname from pg_class c where c.relnamespace = 'agent'::regnamespace
        and c.relkind in ('r', 'p') and not c.relispartition order by 1");
    is join(' ', grep { !$exported{$_} && !$not{$_} } @tables), '';
};

$_->close for $owner, $session;
done_testing;
