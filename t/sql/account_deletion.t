# SPDX-License-Identifier: Apache-2.0
# The deletion of an account: everything of it, in short pieces, counted, and nothing of another one.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Play;
use AgentTest::Wait;

my $db = AgentSQL->new('-v', "app_role=$AgentSQL::APP", '-v', "operator_role=$AgentSQL::OPERATOR");
my $owner = $db->session;
my $session = $db->session($AgentSQL::APP);
my $operator = $db->session($AgentSQL::OPERATOR);

# A deployment with runs that have ended, one that waits, one that a worker executes, items, an assistant and a webhook.
sub fill {
    my ($deployment) = @_;
    my $play = AgentSQL::Play->new($session, deployment => $deployment);
    my $worker = $play->worker;
    my $thread = $play->thread(metadata => { a => 'b' });
    for my $number (1, 2) {
        $play->run($thread);
        my ($claim) = $play->claim($worker);
        my ($digest, $blob) = AgentSQL::Play::blob($claim, '1');
        my $id = AgentSQL::uuid();
        $play->save($worker, AgentSQL::Play::event($claim, 0, 'custom', 1), $blob, AgentSQL::Play::put($claim, id => $id, channels => { x => $digest }),
            AgentSQL::Play::put_writes($claim, id => $id, writes => [ [ 0, 'x', $digest ] ]), AgentSQL::Play::finish($claim));
    }
    $play->run($play->thread);
    $play->claim($worker);
    $play->run($thread) for 1 .. 3;
    is +($play->api('put_item', AgentSQL::encode({ namespace => ['a'], key => "k$_", value => { x => 1 } }), undef))[0], 'ok' for 1 .. 30;
    $owner->query("insert into agent.webhook_outbox (run_id, deployment_id, thread_id, url, body, body_bytes, due_at, created_at, dead_at, last_error)
        select gen_random_uuid(), '$deployment', gen_random_uuid(), 'http://x/', '{}', 2, now(), now(), dead, 'x' from unnest(array[null, now()]) dead");
    return;
}

sub account {
    my $account = AgentSQL::uuid();
    my $key = substr($account =~ tr/-//dr, 0, 22);
    is +($session->call('sign_up', '{"name":"Shop"}', undef, $account, $key, '\x' . 'ab' x 32))[0], 'ok';
    fill($owner->value("select agent.ensure_deployment('$_', '$account')")) for 'desk', 'shop';
    return ($account, $key);
}

my @TABLES = map { $_->[0] } $owner->query("select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'deployment_id'
    where c.relnamespace = 'agent'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition and c.relname not in ('account_deletions', 'api_keys') order by 1");

# The rows of an account by table.
sub rows {
    my (@deployments) = @_;
    my $all = join ', ', map { "'$_'" } @deployments;
    my %count = map { $_ => $owner->value("select count(*) from agent.$_ where deployment_id in ($all)") } @TABLES;
    return { map { $_ => $count{$_} } grep { $count{$_} } keys %count };
}

sub deployments { return map { $_->[0] } $owner->query("select deployment_id from agent.deployments where account_id = '$_[0]'") }

sub deletion { return AgentSQL::decode($owner->value("select agent.render_deletion(d) from agent.account_deletions d where account_id = '$_[0]'")) }

my $DIGEST = '\x' . 'cd' x 32;
my ($account, $key) = account();
my ($other) = account();
my @deployments = deployments($account);
my @others = deployments($other);
my $before = rows(@deployments);
my $untouched = rows(@others);
my $id = AgentSQL::uuid();

sub request { return $session->call('delete_own_account', $_[0], AgentSQL::encode({ confirm => $_[1] }), $_[2] // $id, $DIGEST, 14, 35) }

subtest 'every table with data of a deployment is deleted' => sub {
    my %deleted = map { $_->[0] => 1 } $owner->query('select distinct name from agent.list_deleted_tables()');
    is join(' ', grep { !$deleted{$_} && !/\A(?:deployments|runs|run_queue|threads)\z/ } @TABLES), '';
    cmp_ok scalar keys %{$before}, '>', 12, 'most of them have rows';
};

subtest 'a deletion needs the id of the account, and a key that manages it' => sub {
    is +(request($key, $other))[0], 'invalid_value';
    is +(request($key, undef))[0], 'invalid_value';
    is +(request('x' x 22, $account))[0], 'unknown_key';
    is $owner->value("select closed_at from agent.accounts where account_id = '$account'"), undef;
    is +($operator->call('delete_account', '00000000-0000-0000-0000-00000000000a', AgentSQL::uuid(), undef, undef))[0], 'account_is_built_in';
    is +($operator->call('delete_account', AgentSQL::uuid(), AgentSQL::uuid(), undef, undef))[0], 'account_not_found';
};

subtest 'the deletion of an account closes it at once' => sub {
    my ($code, $body) = request($key, $account);
    my $record = AgentSQL::decode($body);
    is_deeply [ $code, @{$record}{qw(account_id status finished_at backups_expire_at requested_by)} ], [ 'ok', $account, 'deleting', undef, undef, "key $key" ];
    is +($session->call('find_api_key', $key))[0], 'unknown_key';
    is $owner->value("select agent.ensure_deployment('shop', '$account')"), undef;
    is_deeply [ request($key, $account) ], [ 'ok', $body ], 'a request whose result was lost may be repeated';
    is_deeply [ request($key, $account, AgentSQL::uuid()) ], [ 'ok', $body ], 'a client that chose the deletion token may repeat its request';
    is_deeply +(map { AgentSQL::decode($_)->{deletion_id} } ($session->call('get_deletion', $DIGEST))[1]), $id, 'its record can be read without a key';
    is +($session->call('get_deletion', '\x' . 'ce' x 32))[0], 'deletion_not_found';
};

subtest 'a request may be repeated with the deletion token that its client chose, and the token is of one account' => sub {
    my ($mine, $mine_key) = account();
    my $digest = '\x' . 'da' x 32;
    my $ask = sub { return $session->call('delete_own_account', $_[0], AgentSQL::encode({ confirm => $_[1] }), AgentSQL::uuid(), $_[2], undef, undef) };
    is_deeply [ $ask->($mine_key, $mine, $DIGEST) ], [ 'invalid_value', 'x-deletion-token: expected a text that was not sent for another account.' ];
    is $owner->value("select closed_at from agent.accounts where account_id = '$mine'"), undef, 'a refused request deletes nothing';
    cmp_ok $owner->value("select count(*) from agent.run_queue q join agent.deployments d using (deployment_id) where d.account_id = '$mine'"), '>', 0;
    my ($code, $body) = $ask->($mine_key, $mine, $digest);
    is $code, 'ok';
    is_deeply [ $ask->($mine_key, $mine, $digest) ], [ 'ok', $body ], 'repeated';
    is +($ask->($mine_key, $mine, '\x' . 'db' x 32))[0], 'unknown_key', 'with another text';
    $owner->query("delete from agent.account_deletions where account_id = '$mine'");
};

subtest 'requests of the same moment with the same text: the account of one is deleted, and its own get the record' => sub {
    my ($mine, $mine_key) = account();
    my ($second, $second_key) = account();
    my @others = map { $db->session($AgentSQL::APP) } 1, 2;
    my $call = sub {
        return qq(select code || ' ' || body from agent.delete_own_account('$_[0]', '{"confirm":"$_[1]"}', '@{[ AgentSQL::uuid() ]}', '\\x@{[ 'de' x 32 ]}', null, null));
    };
    $session->query('begin');
    my $first = $session->value($call->($mine_key, $mine));
    my @waiting = map { $_->value('select pg_backend_pid()') } @others;
    $others[0]->send($call->($mine_key, $mine));
    $others[1]->send($call->($second_key, $second));
    wait_for('both to wait', sub { $owner->value("select cardinality(pg_blocking_pids($waiting[0])) > 0 and cardinality(pg_blocking_pids($waiting[1])) > 0") eq 't' });
    $session->query('commit');
    like $first, qr/\Aok /;
    is $others[0]->receive, $first, 'of the same account';
    is $others[1]->receive, 'invalid_value x-deletion-token: expected a text that was not sent for another account.', 'of another one';
    is $owner->value("select closed_at from agent.accounts where account_id = '$second'"), undef, 'the other account stays open';
    $owner->query("delete from agent.account_deletions where account_id = '$mine'");
};

subtest 'how long logs and backups are kept is checked for customers and operators' => sub {
    my ($mine, $mine_key) = account();
    my @wrong = ('invalid_value', 'Logs and backups are kept from 0 to 3650 days.');
    my $play = AgentSQL::Play->new($session, deployment => $session->value("select agent.ensure_deployment('kept', '$mine')"));
    $play->stateless;
    is_deeply [ $session->call('delete_own_account', $mine_key, AgentSQL::encode({ confirm => $mine }), AgentSQL::uuid(), '\x' . 'dc' x 32, -1, undef) ], \@wrong;
    is $owner->value("select count(*) from agent.run_queue where deployment_id = '" . $play->deployment . "'"), 1, 'a refusal ends no run';
    is_deeply [ $operator->call('delete_account', $mine, AgentSQL::uuid(), undef, 3651) ], \@wrong;
    is $owner->value("select closed_at from agent.accounts where account_id = '$mine'"), undef, 'the account stays open';
};

subtest 'the deletion of an account ends waiting and running runs' => sub {
    is $owner->value("select count(*) from agent.run_queue where deployment_id in ('$deployments[0]', '$deployments[1]')"), 0;
    is $session->value("select agent.save_graphs('$deployments[0]', '[]')"), 0, 'graphs are not stored again';
};

subtest 'a deletion that fails holds up no other one' => sub {
    $owner->query(q{create function public.refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$});
    $owner->query(qq{create trigger refuse before delete on agent.store_items for each row when (old.deployment_id = '$deployments[0]') execute function public.refuse()});
    my $failed;
    for (1 .. 200) {
        last if !$session->value('select agent.sweep_accounts()');
        $failed = $owner->value("select due_at > now() + interval '9 minutes' from agent.account_deletions where account_id = '$account'");
        last if $failed eq 't';
    }
    is $failed, 't', 'it is tried again later';
    is $owner->value("select count(*) from agent.store_items where deployment_id = '$deployments[0]'"), 30, 'nothing of the piece is done';
    is $session->value('select agent.sweep_accounts()'), 0, 'it is not the next one';
    $owner->query('drop trigger refuse on agent.store_items');
    $owner->query("update agent.account_deletions set due_at = now() where account_id = '$account'");
};

subtest 'pieces are short, and any session goes on' => sub {
    $owner->query("insert into agent.usage_events (deployment_id, run_id, thread_id, assistant_id, graph_id, status, attempts, epoch, created_at, finished_at)
        select '$deployments[0]', gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'agent', 'success', 1, 1, now(), now() from generate_series(1, 40000)");
    $before->{usage_events} += 40000;
    my $pieces = 0;
    for (1 .. 1000) {
        # Each in a session of its own: what was done is in the table only.
        my $next = $db->session($AgentSQL::APP);
        my $done = $next->value('select agent.sweep_accounts()');
        $next->close;
        last if !$done;
        $pieces++;
    }
    cmp_ok $pieces, '>', 2;
    is_deeply rows(@deployments), { deployments => 2 }, 'all but the deployments';
    is deletion($account)->{status}, 'deleting';
};

subtest 'an hour later, the rows that were written during this are deleted, and the deletion ends' => sub {
    $owner->query("insert into agent.threads (deployment_id, thread_id, created_at, updated_at) values ('$deployments[1]', gen_random_uuid(), now(), now())");
    $_->query("set agent.now = '" . $owner->value("select clock_timestamp() + interval '59 minutes'") . q(')) for $session;
    is $session->value('select agent.sweep_accounts()'), 0;
    $session->query("set agent.now = '" . $owner->value("select clock_timestamp() + interval '61 minutes'") . q('));
    1 while $session->value('select agent.sweep_accounts()');
    is_deeply rows(@deployments), {};
    my $record = deletion($account);
    is $record->{status}, 'deleted';
    my %expected = (%{$before}, threads => $before->{threads} + 1, api_keys => 1);
    my %deleted = %{ $record->{rows} };
    delete @deleted{ grep { !$deleted{$_} } keys %deleted };
    is_deeply \%deleted, \%expected, 'the numbers are those of the rows';
    is_deeply [ sort keys %{$record} ], [qw(account_id backups_expire_at deletion_id finished_at logs_expire_at requested_at requested_by rows status)],
        'it has no member that is not measured';
    is $owner->value("select ('$record->{backups_expire_at}'::timestamptz - '$record->{finished_at}'::timestamptz)::text"), '35 days';
    is $owner->value("select ('$record->{logs_expire_at}'::timestamptz - '$record->{finished_at}'::timestamptz)::text"), '14 days';
};

subtest 'the record of a deletion and its usage have no name' => sub {
    is_deeply [ $owner->query("select name, closed_at is not null from agent.accounts where account_id = '$account'") ], [ [ 'deleted', 't' ] ];
    is $owner->value("select count(*) from agent.audit_log where account_id = '$account' and detail::text <> '{}'"), 0;
    is_deeply [ map { $_->[0] } $owner->query("select action from agent.audit_log where account_id = '$account' order by audit_id") ],
        [ 'account.create', 'key.create', ('deployment.open') x 2, 'account.close', 'account.delete', 'account.deleted' ];
    is $owner->value("select count(*) from agent.api_keys where account_id = '$account'"), 0;
};

subtest 'nothing of another account has changed' => sub {
    is_deeply rows(@others), $untouched;
    is $owner->value("select name from agent.accounts where account_id = '$other'"), 'Shop';
    is $owner->value("select count(*) from agent.audit_log where account_id = '$other' and detail::text <> '{}'"), 4;
    is $owner->value("select count(*) from agent.api_keys where account_id = '$other'"), 1;
};

subtest 'operators delete accounts and list the deletions' => sub {
    my ($code, $body) = $operator->call('delete_account', $other, AgentSQL::uuid(), undef, undef);
    is $code, 'ok';
    is_deeply [ ($operator->call('delete_account', $other, AgentSQL::uuid(), undef, undef))[1] ], [$body], 'a second deletion is the first one';
    my $days = sub { return join ' ', map { @{$_} } $owner->query("select log_days, backup_days from agent.account_deletions where account_id = '$other'") };
    is +($operator->call('delete_account', $other, AgentSQL::uuid(), 36501, undef))[0], 'invalid_value', 'a second one with a time that is too long';
    is +($operator->call('delete_account', $other, AgentSQL::uuid(), 14, undef))[0], 'ok', 'a second one adds the time of the logs';
    is +($operator->call('delete_account', $other, AgentSQL::uuid(), 14, 35))[0], 'ok', 'a third one adds that of the backups';
    is $days->(), '14 35', 'the record has both';
    is_deeply [ $operator->call('delete_account', $other, AgentSQL::uuid(), $_->[0], $_->[1]) ],
        [ 'invalid_value', 'The deletion has begun with other times: logs are kept for 14 days, backups for 35.' ], "other times are refused: @{$_}"
        for [ 15, 35 ], [ 14, 36 ];
    is $days->(), '14 35', 'a refusal changes none';
    is +($operator->call('delete_account', $other, AgentSQL::uuid(), 14, 35))[0], 'ok', 'the same times once more';
    my $by = 'operator ' . $operator->value('select session_user');
    is_deeply [ $owner->query("select actor, object from agent.audit_log where account_id = '$other' and action = 'deletion.change'") ],
        [ ([ $by, AgentSQL::decode($body)->{deletion_id} ]) x 2 ], 'the audit log says who stored each time, and has no entry of the other calls';
    my ($all) = map { AgentSQL::decode($_) } ($operator->call('list_deletions', undef, 10))[1];
    is_deeply [ sort map { $_->{account_id} } @{$all} ], [ sort $account, $other ];
    ($all) = map { AgentSQL::decode($_) } ($operator->call('list_deletions', $all->[0]{deletion_id}, 10))[1];
    is scalar @{$all}, 1, 'page by page';
    is $operator->error('update agent.account_deletions set due_at = now()'), '42501';
    is $session->error('update agent.account_deletions set due_at = now()'), '42501', 'a server changes none past its functions';
};

subtest 'a thread that another transaction holds is deleted later' => sub {
    my $late = $db->session($AgentSQL::APP);
    $owner->query('begin');
    $owner->query("select from agent.threads where deployment_id = '$others[0]' order by thread_id limit 1 for update");
    for (1 .. 200) { last if !$late->value('select agent.sweep_accounts()') }
    cmp_ok $owner->value("select count(*) from agent.threads where deployment_id = '$others[0]'"), '>', 0;
    $owner->query('commit');
    $late->query("set agent.now = '" . $owner->value("select clock_timestamp() + interval '2 hours'") . q('));
    for (1 .. 2000) { last if !$late->value('select agent.sweep_accounts()') }
    $late->query("set agent.now = '" . $owner->value("select clock_timestamp() + interval '4 hours'") . q('));
    for (1 .. 2000) { last if !$late->value('select agent.sweep_accounts()') }
    is deletion($other)->{status}, 'deleted';
    is_deeply rows(@others), {};
    $late->close;
};

subtest 'rows that come after their step keep the deployments only until the failed piece is tried again' => sub {
    my ($mine) = account();
    my ($one) = my @all = deployments($mine);
    is +($operator->call('delete_account', $mine, AgentSQL::uuid(), undef, undef))[0], 'ok';
    my $late = $db->session($AgentSQL::APP);
    my $now = $owner->value('select clock_timestamp()');
    my $sweep = sub {
        $late->query("set agent.now = '" . $owner->value("select timestamptz '$now' + interval '$_[0]'") . q('));
        for (1 .. 2000) { last if !$late->value("select agent.sweep_accounts('$mine')") }
        return deletion($mine)->{status};
    };
    is $sweep->('1 s'), 'deleting';
    # The last piece of the last pass is next.
    $owner->query("update agent.account_deletions set step = 1000, deployment_id = null, pass_at = due_at where account_id = '$mine'");
    $owner->query("insert into agent.graphs (deployment_id, graph_id, reported_at) values ('$one', 'late', now())");
    is $sweep->('62 minutes'), 'deleting', 'the graph keeps its deployment';
    is $sweep->('80 minutes'), 'deleted';
    is_deeply rows(@all), {};
    $late->close;
};

subtest 'a count of which a writer holds a row is deleted later' => sub {
    my ($held) = account();
    my ($late, $writer) = map { $db->session($AgentSQL::APP) } 1 .. 2;
    $owner->query("insert into agent.account_counts (account_id, name, shard, value, counted_at)
        select '$held', n, s, 0, '-infinity' from unnest('{threads,webhooks}'::text[]) n, generate_series(-1, 17) s");
    is +($operator->call('delete_account', $held, AgentSQL::uuid(), undef, undef))[0], 'ok';
    $writer->query('begin');
    $writer->query("select from agent.account_counts where account_id = '$held' and shard = 7 and name = 'threads' for update");
    $late->query("set lock_timeout = '5s'");
    my $now = $owner->value('select clock_timestamp()');
    my $sweep = sub {
        $late->query("set agent.now = '" . $owner->value("select timestamptz '$now' + interval '$_[0]'") . q('));
        for (1 .. 200) { last if !$late->value('select agent.sweep_accounts()') }
    };
    $sweep->($_) for '1 minute', '2 minutes';
    is $owner->value("select string_agg(name || ' ' || shard, ',' order by shard) from agent.account_counts where account_id = '$held'"),
        'threads -1,threads 7', 'the others are deleted';
    isnt deletion($held)->{status}, 'deleted';
    $writer->query('commit');
    $sweep->($_) for '3 minutes', '2 hours';
    is deletion($held)->{status}, 'deleted';
    is $owner->value("select count(*) from agent.account_counts where account_id = '$held'"), 0;
    $_->close for $late, $writer;
};

subtest 'a statement deletes at most 4 MB, whatever came before, and one row' => sub {
    my $mine = AgentSQL::uuid();
    $operator->call('create_account', $mine, 'Large');
    my $deployment = $owner->value("select agent.ensure_deployment('large', '$mine')");
    $owner->query('alter table agent.store_items alter value set storage external');
    $owner->query('alter table agent.run_events alter data set storage external');
    # Small ones first, so that a statement deletes many.
    $owner->query("insert into agent.store_items (deployment_id, namespace, key, value, value_bytes, created_at, updated_at)
        select '$deployment', array['a'], lpad(n::text, 6, '0'), '{}', 2, now(), now() from generate_series(1, 3000) n");
    $owner->query("insert into agent.store_items (deployment_id, namespace, key, value, value_bytes, created_at, updated_at)
        select '$deployment', array['b'], n::text, to_jsonb(repeat('x', 1000000)), 1000000, now(), now() from generate_series(1, 40) n");
    $owner->query("insert into agent.run_events (deployment_id, bucket, run_id, seq, epoch, event, data)
        select '$deployment', current_date, '$mine', n, 1, 'custom', case when n <= 3000 then '1' else to_json(repeat('x', 1000000))::text end
          from generate_series(1, 3040) n");
    $owner->query('create table deleted (at bigint generated always as identity, bytes bigint)');
    $owner->query('grant all on deleted to public');
    $owner->query(q{create function public.note() returns trigger language plpgsql as $$ begin
        insert into public.deleted (bytes) select coalesce(sum(octet_length(to_jsonb(o)::text)), 0) from old o; return null; end $$});
    for my $table ([ 'store_items', 'namespace, key' ], [ 'run_events', 'bucket, run_id, seq' ]) {
        $owner->query("create trigger note after delete on agent.$table->[0] referencing old table as old for each statement execute function public.note()");
        $owner->query('truncate deleted');
        is_deeply [ $owner->query("select * from agent.delete_account_rows('$deployment', '$table->[0]', '$table->[1]', '', clock_timestamp() + interval '1 minute')") ],
            [ [ 3040, 't' ] ], "$table->[0]: all rows";
        cmp_ok $owner->value('select max(bytes) from deleted'), '<', 4_500_000, "$table->[0]: bytes of a statement";
        cmp_ok $owner->value('select count(*) from deleted'), '<', 25, "$table->[0]: many small rows together";
    }
    my $thread = AgentSQL::uuid();
    $owner->query("insert into agent.threads (deployment_id, thread_id, created_at, updated_at) values ('$deployment', '$thread', now(), now())");
    $owner->query('alter table agent.runs alter input set storage external');
    $owner->query("insert into agent.runs (deployment_id, run_id, thread_id, thread_seq, assistant_id, graph_id, multitask_strategy, metadata, config, input,
            stream_mode, stream_subgraphs, stream_resumable, events_bucket, created_at, updated_at)
        select '$deployment', gen_random_uuid(), '$thread', n, '$AgentSQL::ASSISTANT', 'agent', 'enqueue', '{}', '{}', to_json(repeat('x', 1000000)), '[]', false,
            false, current_date, now(), now() from generate_series(1, 30) n");
    $owner->query('create trigger note after delete on agent.runs referencing old table as old for each statement execute function public.note()');
    $owner->query('truncate deleted');
    is_deeply [ $owner->query("select runs, threads, is_done from agent.delete_account_threads('$deployment', clock_timestamp() + interval '1 minute')") ],
        [ [ 30, 1, 't' ] ], 'runs: all, with their thread';
    cmp_ok $owner->value('select max(bytes) from deleted'), '<', 4_500_000, 'runs: bytes of a statement';
    $owner->query("drop trigger note on agent.$_") for qw(store_items run_events runs);
    # An item that is longer than all of that.
    $owner->query("insert into agent.store_items (deployment_id, namespace, key, value, value_bytes, created_at, updated_at)
        values ('$deployment', array['a'], 'k', to_jsonb(repeat('x', 7000000)), 1, now(), now())");
    is_deeply [ $owner->query("select * from agent.delete_account_rows('$deployment', 'store_items', 'namespace, key', '', now())") ], [ [ 1, 't' ] ];
};

$_->close for $owner, $session, $operator;
done_testing;
