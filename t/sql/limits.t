# SPDX-License-Identifier: Apache-2.0
# Limits of accounts: keys, unfinished and executing runs, what is counted, and the errors of the counts; turns of accounts.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Accounts qw(use_accounts account deployment kept_count counted_anew count_all);
use AgentSQL::Play;

my $db = AgentSQL->new('-v', "operator_role=$AgentSQL::OPERATOR");
my ($session, $other) = map { $db->session } 1, 2;
my $operator = $db->session($AgentSQL::OPERATOR);
use_accounts($session, $operator);
my $any = AgentSQL::Play->new($session);
my $worker = $any->worker;

# Sets limits as a server does that was started so many ms ago; each is [ account or undef, name, value ]. The lines about
# those that it replaced.
sub configure {
    my ($server, $age_ms, @limits) = @_;
    return [ map { $_->[0] } $session->query(q{select coalesce(replaced, 'not stored') from agent.set_limits(} . AgentSQL::Session::literal(AgentSQL::encode(
        [ map { { account_id => $_->[0], name => $_->[1], value => $_->[2] } } @limits ])) . ", '$server', $age_ms)") ];
}

# These limits, and no others.
sub limit {
    my (@limits) = @_;
    my %given = map { ($_->[0] // '') . $_->[1] => 1 } @limits;
    my @others = grep { !$given{ ($_->[0] // '') . $_->[1] } } map { [ $_->[0] =~ /\A[0-]+\z/ ? undef : $_->[0], $_->[1], undef ] }
        $session->query('select account_id, name from agent.account_limits');
    configure(AgentSQL::uuid(), 0, @limits, @others);
    return;
}

# Counts accounts anew that are due: how many.
sub count_accounts { return $session->value('select agent.count_accounts()') }

my $keys = 0;

# The result of create_api_key.
sub create_key {
    my ($account, $lifetime) = @_;
    return $operator->call('create_api_key', sprintf('%022d', ++$keys), $account, '\x' . 'ab' x 32, 'service', 'n', undef, undef, ['run'], $lifetime);
}

# Table scans of, and rows read by a statement, in all tables of the schema; a row counts for each index entry that was
# followed.
sub rows_read {
    my ($sql) = @_;
    my $counters = 'select sum(seq_scan), sum(coalesce(idx_tup_fetch, 0) + seq_tup_read) from pg_stat_xact_user_tables where schemaname = \'agent\'';
    $session->query('begin');
    my ($before) = $session->query($counters);
    $session->query($sql);
    my ($after) = $session->query($counters);
    $session->query('commit');
    return map { $after->[$_] - $before->[$_] } 0, 1;
}

# The count of a name, null for one that is not counted, and what it should be.
sub counts {
    my ($account, $name) = @_;
    return [ kept_count($account, $name), counted_anew($account, $name) ];
}

sub rest_is_right {
    my ($account, $count, $title) = @_;
    is_deeply counts($account, 'queued_runs'), [ $count, $count ], $title;
    return;
}

subtest 'an account gets no more valid API keys than its limit' => sub {
    my ($account) = account();
    limit([ $account, 'keys', 2 ]);
    is +(create_key($account))[0], 'ok' for 1, 2;
    is_deeply [ create_key($account) ], [ 'limit_exceeded', 'keys 2' ];
    is $session->value("select count(*) from agent.api_keys where account_id = '$account'"), 2;
    my $old = sprintf '%022d', $keys - 1;
    $operator->call('revoke_api_key', $old);
    is +(create_key($account, '1 hour'))[0], 'ok', 'a key that is revoked does not count';
    is +(create_key($account))[0], 'limit_exceeded';
    $_->query("set agent.now = '" . (gmtime() =~ /(\d{4})$/ ? $1 + 1 : die) . "-01-01T00:00:00Z'") for $session, $operator;
    is +(create_key($account))[0], 'ok', 'a key that has expired does not count';
    $_->query('reset agent.now') for $session, $operator;
    limit([ $account, 'keys', 4 ]);
    is +(create_key($account))[0], 'ok', 'a higher limit permits more';
    limit();
    is +(create_key($account))[0], 'ok', 'without a limit any number';
};

subtest 'a key may be rotated at the limit, but once' => sub {
    my ($account) = account();
    limit([ $account, 'keys', 1 ]);
    create_key($account);
    my $old = sprintf '%022d', $keys;
    my $rotate = sub { return ($operator->call('rotate_api_key', $old, sprintf('%022d', ++$keys), '\x' . 'cd' x 32, '1 hour'))[0] };
    is $rotate->(), 'ok';
    is $rotate->(), 'limit_exceeded';
};

subtest 'concurrent creations of keys do not exceed the limit' => sub {
    my ($account) = account();
    limit([ $account, 'keys', 1 ]);
    $operator->query('begin');
    is +(create_key($account))[0], 'ok';
    my $id = sprintf '%022d', ++$keys;
    $other->send("select code from agent.create_api_key('$id', '$account', '\\x" . 'ab' x 32 . "', 'service', 'n', null, null, '{run}', null)");
    ok $other->waits_for($operator), 'the second one waits for the first';
    $operator->query('commit');
    is $other->receive, 'limit_exceeded';
};

subtest 'the limit of all accounts holds for each without its own, a limit of 0 permits nothing' => sub {
    my ($mine, $own) = map { (account())[0] } 1, 2;
    limit([ undef, 'keys', 1 ], [ $own, 'keys', 0 ]);
    is_deeply [ create_key($own) ], [ 'limit_exceeded', 'keys 0' ];
    is +(create_key($mine))[0], 'ok';
    is_deeply [ create_key($mine) ], [ 'limit_exceeded', 'keys 1' ];
};

subtest 'an account gets no more deployments than its limit, and keeps those that it has' => sub {
    my ($account) = account();
    my $open = sub { return $session->value("select agent.ensure_deployment('$_[0]', '$account')") };
    my $use = sub { return $session->call('declare_deployment', $_[0], $_[1] // $account) };
    limit([ $account, 'deployments', 2 ]);
    my $desk = $open->('desk');
    ok $desk;
    is $open->('till'), undef;
    is_deeply [ $use->('till') ], [ 'limit_exceeded', 'deployments 2' ];
    is $session->value("select count(*) from agent.deployments where account_id = '$account'"), 2;
    is_deeply [ $use->('desk') ], [ 'ok', $desk ], 'a deployment that exists is served at the limit';
    limit([ $account, 'deployments', 0 ]);
    is_deeply [ $use->('desk') ], [ 'ok', $desk ], 'a deployment that exists is served beyond the limit';
    is +($use->('desk', AgentSQL::uuid()))[0], 'deployment_not_found', 'an account that does not exist';
    limit([ undef, 'deployments', 3 ]);
    is +($use->('till'))[0], 'ok', 'a higher limit permits more';
    limit();
    is +($use->('fourth'))[0], 'ok', 'without a limit any number';
};

subtest 'concurrent creations of deployments do not exceed the limit' => sub {
    my ($account) = account();
    limit([ $account, 'deployments', 2 ]);
    $_->query('begin') for $session, $other;
    ok $session->value("select agent.ensure_deployment('desk', '$account')");
    $other->send("select coalesce(agent.ensure_deployment('till', '$account')::text, 'none')");
    ok $other->waits_for($session), 'the second one waits for the first';
    $session->query('commit');
    is $other->receive, 'none';
    $other->query('rollback');
    limit();
};

subtest 'a deployment that two servers create at the same time counts once' => sub {
    my ($account) = account();
    limit([ $account, 'deployments', 2 ]);
    $session->query('begin');
    my $desk = $session->value("select agent.ensure_deployment('desk', '$account')");
    $other->send("select coalesce(agent.ensure_deployment('desk', '$account')::text, 'none')");
    ok $other->waits_for($session), 'the second server waits for the first';
    $session->query('commit');
    is $other->receive, $desk;
    limit();
};

subtest 'an account has no more unfinished runs than its limit, in all of its deployments' => sub {
    my ($account, $shop) = account();
    my ($stranger, $other_shop) = account();
    my $second = deployment($account, 'second');
    my $thread = $shop->thread;
    $shop->run($thread);
    limit([ $account, 'queued_runs', 4 ]);
    $shop->run($thread);
    $second->run($second->thread);
    rest_is_right($account, 3, 'a run of before the limit counts');
    is_deeply [ ($shop->try_batch({ assistant_id => $AgentSQL::ASSISTANT }, { assistant_id => $AgentSQL::ASSISTANT }))[ 0, 1 ] ],
        [ 'limit_exceeded', 'queued_runs 4' ], 'a batch is created as a whole';
    is +($shop->try_stateless)[0], 'ok';
    is_deeply [ ($shop->try_stateless)[ 0, 1 ] ], [ 'limit_exceeded', 'queued_runs 4' ];
    is_deeply [ ($second->try_run($second->thread))[ 0, 1 ] ], [ 'limit_exceeded', 'queued_runs 4' ];
    my $new = AgentSQL::uuid();
    is +($shop->try_run($new, request => { if_not_exists => 'create' }))[0], 'limit_exceeded';
    is +($shop->api('get_thread', $new))[0], 'thread_not_found', 'a run that is refused creates no thread';
    is +($other_shop->try_run($other_shop->thread))[0], 'ok', 'other accounts have runs of their own';
    rest_is_right($account, 4, 'what is refused is not counted');
};

subtest 'each end of a run is counted, whatever ends it' => sub {
    my ($account, $shop) = account();
    limit([ $account, 'queued_runs', 100 ]);
    my @threads = map { $shop->thread } 1 .. 6;
    my %run = map { $_ => $shop->run($_) } @threads;
    rest_is_right($account, 6, 'created');
    $shop->save($worker, map { AgentSQL::Play::finish($_) } $shop->claim($worker, limit => 1));
    rest_is_right($account, 5, 'success');
    $shop->api('cancel_run', $threads[1], $run{ $threads[1] }, 'interrupt');
    rest_is_right($account, 4, 'cancelled');
    $shop->api('cancel_run', $threads[2], $run{ $threads[2] }, 'rollback');
    rest_is_right($account, 3, 'rolled back');
    $shop->run($threads[3]);
    rest_is_right($account, 4, 'blocked');
    $shop->api('delete_thread', $threads[3]);
    rest_is_right($account, 2, 'its thread is deleted');
    $shop->run($threads[4], strategy => 'interrupt');
    rest_is_right($account, 2, 'superseded');
    $shop->finish_all($worker);
    rest_is_right($account, 0, 'all');
};

subtest 'updates of states are bounded as unfinished runs are' => sub {
    my ($account, $shop) = account();
    $session->query("update agent.workers set deployment_ids = deployment_ids || '@{[ $shop->deployment ]}'::uuid, graph_ids = graph_ids || 'agent'::text
        where worker_id = $worker");
    my @threads = map { $shop->thread(metadata => { graph_id => 'agent' }) } 1 .. 3;
    my $call = AgentSQL::uuid();
    my $update = sub { return $shop->api('update_state', $_[0], $_[1] // AgentSQL::uuid(), 'u1', 10, '{"values":{}}') };
    my $create = sub {
        return $shop->api('create_thread_state', $_[0], AgentSQL::uuid(), 'u1', 'raise', 10, '{"metadata":{"graph_id":"agent"},"supersteps":[{"updates":[{}]}]}');
    };
    is +($update->($threads[0], $call))[0], 'ok';
    limit([ $account, 'queued_runs', 2 ]);
    is +($update->($threads[1]))[0], 'ok';
    rest_is_right($account, 2, 'one of before the limit counts');
    is_deeply [ ($update->($threads[2]))[ 0, 1 ] ], [ 'limit_exceeded', 'queued_runs 2' ], 'update_state';
    my $new = AgentSQL::uuid();
    is_deeply [ ($create->($new))[ 0, 1 ] ], [ 'limit_exceeded', 'queued_runs 2' ], 'create_thread_state';
    is +($shop->api('get_thread', $new))[0], 'thread_not_found', 'a refused update creates no thread';
    is +($shop->try_run($threads[2]))[0], 'limit_exceeded', 'a run';
    $shop->api('delete_thread', $threads[1]);
    rest_is_right($account, 1, 'the run of a deleted thread has ended');
    is +($create->($new))[0], 'ok';
    rest_is_right($account, 2, 'a thread with supersteps');
    $shop->api('end_call', $threads[0], $call);
    rest_is_right($account, 1, 'the request has waited for long enough');
    $shop->api('delete_thread', $new);
    rest_is_right($account, 0, 'all have ended');
};

subtest 'runs of a transaction that is rolled back are not counted' => sub {
    my ($account, $shop) = account();
    limit([ $account, 'queued_runs', 10 ]);
    $shop->run($shop->thread);
    $session->query('begin');
    $shop->run($shop->thread);
    $session->query('rollback');
    rest_is_right($account, 1, 'one');
};

subtest 'writers of a count do not wait for each other' => sub {
    my ($account, $shop) = account();
    limit([ $account, 'queued_runs', 100 ]);
    $shop->run($shop->thread);
    my @sessions = map { $db->session } 1 .. 4;
    for my $concurrent (@sessions) {
        $concurrent->query("set lock_timeout = '10s'");
        $concurrent->query('begin');
        AgentSQL::Play->new($concurrent, deployment => $shop->deployment)->stateless;
    }
    is $session->value("select count(distinct shard) from agent.account_counts where account_id = '$account' and shard >= 0"), 16;
    $_->query('commit') for @sessions;
    is $session->value("select count(*) from agent.account_counts where account_id = '$account' and shard >= 0 and value <> 0"), 4, 'each has changed another row';
    rest_is_right($account, 5, 'the sum is right');
};

subtest 'a count that is wrong is corrected within a minute' => sub {
    my ($account, $shop) = account();
    limit([ $account, 'queued_runs', 3 ]);
    $shop->run($shop->thread);
    count_all();
    $session->query("update agent.account_counts set value = 7 where account_id = '$account' and shard = 5");
    is +($shop->try_run($shop->thread))[0], 'limit_exceeded';
    is count_accounts(), 0, 'it was counted within this minute';
    $session->query("update agent.account_counts set counted_at = counted_at - interval '61 s' where account_id = '$account'");
    is count_accounts(), 1;
    rest_is_right($account, 1, 'counted');
    is +($shop->try_run($shop->thread))[0], 'ok';
};

subtest 'writers do not wait while an account is counted, nor does the count miss what they do during it' => sub {
    my ($account, $shop) = account();
    limit([ $account, 'queued_runs', 100 ]);
    $shop->run($shop->thread);
    count_all();
    my @writers = map { $db->session } 1, 2;
    my ($before, $during) = map { AgentSQL::Play->new($_, deployment => $shop->deployment) } @writers;
    $_->query("set lock_timeout = '10s'") for @writers, $other;
    $writers[0]->query('begin');
    $before->stateless;
    $session->query("update agent.account_counts set value = value + 7, counted_at = '-infinity' where account_id = '$account' and shard = -1");
    $other->query('begin');
    is $other->value('select agent.count_accounts()'), 1;
    $writers[1]->query('begin');
    $during->stateless for 1, 2;
    $writers[1]->query('commit');
    $other->query('commit');
    rest_is_right($account, 3, 'those that had not ended are not seen twice');
    $writers[0]->query('commit');
    rest_is_right($account, 4, 'runs that end during the count are not missed');
};

subtest 'all accounts are counted in a time that grows with their runs, by indexes, in transactions of a bounded length' => sub {
    my ($accounts, $runs) = (500, 20);
    limit([ undef, 'queued_runs', 1000 ], [ undef, 'running_runs', 1000 ]);
    my ($worker_id) = $any->worker;
    $session->query($_) for split /;\n/, <<"SQL";
create temporary table shops as select md5('account' || n)::uuid as account_id, md5('shop' || n)::uuid as deployment_id from generate_series(1, $accounts) n;
insert into agent.accounts (account_id, name, home_region) select account_id, 'n', 'local' from shops;
insert into agent.deployments (deployment_id, account_id, name) select deployment_id, account_id, 'n' from shops;
insert into agent.run_queue (deployment_id, run_id, thread_id, thread_seq, graph_id, state, ready_seq, worker_id, events_bucket)
select deployment_id, gen_random_uuid(), gen_random_uuid(), 1, 'agent', case when n > 2 then 'ready' else 'leased' end, n,
    case when n <= 2 then $worker_id end, current_date
from shops cross join generate_series(1, $runs) n;
analyze agent.run_queue;
select agent.begin_counts(array(select account_id from shops), name) from unnest('{queued_runs,running_runs}'::text[]) name;
update agent.account_counts set value = value + 1 where shard = 3 and account_id in (select account_id from shops)
SQL
    my ($calls, $rows, $most) = (0, 0, 0);
    while (my ($scans, $read) = rows_read('select agent.count_accounts()')) {
        is $scans, 0, 'no table is scanned';
        $calls++;
        $rows += $read;
        $most = $read if $read > $most;
        last if $session->value("select count(*) from agent.account_counts where shard = -1 and counted_at = '-infinity'") == 0;
    }
    is $session->value(<<'SQL' =~ s/\s+/ /gr), "$accounts,$accounts", 'each count is right';
select (select count(*) from (select from agent.account_counts where name = 'queued_runs' and account_id in (select account_id from shops)
    group by account_id having sum(value) = 20) x) || ',' || (select count(*) from (select from agent.account_counts where name = 'running_runs'
    and account_id in (select account_id from shops) group by account_id having sum(value) = 2) x)
SQL
    # A run is read twice (index, row), a count has 17 rows, each read for its sum and for the choice.
    cmp_ok $rows, '<=', $accounts * (2 * $runs + 2 * 6 * 20), "rows read for $accounts accounts in $calls calls: $rows";
    cmp_ok $most, '<=', $rows / 5, "rows read by the longest call: $most";
    $session->query('drop table shops');
    $session->query("delete from agent.run_queue where graph_id = 'agent' and run_id not in (select run_id from agent.runs)");
    limit();
};

subtest 'a count ends with its limit' => sub {
    my ($account, $shop) = account();
    limit([ $account, 'queued_runs', 3 ]);
    $shop->run($shop->thread);
    limit();
    $session->query("update agent.account_counts set counted_at = agent.now() - interval '61 s' where shard = -1");
    count_all();
    is $session->value('select count(*) from agent.account_counts'), 0;
    is $session->value('select count(*) from agent.account_limits where value is not null'), 0;
    is +($shop->try_run($shop->thread))[0], 'ok';
};

subtest 'a count is corrected within a minute, also after the clock of the database went back' => sub {
    my ($account, $shop) = account();
    limit([ $account, 'queued_runs', 9 ]);
    $shop->run($shop->thread);
    my $stored = sub { return $session->value("select sum(value) from agent.account_counts where account_id = '$account'") };
    $session->query("set agent.now = '2027-06-01T14:00:00Z'");
    cmp_ok count_accounts(), '>=', 1;
    is count_accounts(), 0;
    $session->query("update agent.account_counts set value = value + 5 where account_id = '$account' and shard = 3");
    is $stored->(), 6;
    $session->query("set agent.now = '2027-06-01T12:00:00Z'");
    is count_accounts(), 1;
    is $stored->(), 1;
    is count_accounts(), 0;
    $session->query('reset agent.now');
    $session->query("set agent.now = '2027-06-01T12:01:01Z'");
    is count_accounts(), 1, 'the account is counted again after a minute';
    $session->query('reset agent.now');
    limit();
};

subtest 'a limit is that of the server that was started last' => sub {
    my ($account) = account();
    my $of = sub { return $session->value("select agent.find_limit('$account', 'keys')") };
    my @servers = map { AgentSQL::uuid() } 1 .. 8;
    my $replaced = sub { my ($number, $age_sec, @limits) = @_; return configure($servers[$number], $age_sec * 1000, @limits) };
    $session->query('delete from agent.account_limits');
    is_deeply $replaced->(0, 3600, [ undef, 'keys', 5 ], [ $account, 'queued_runs', 7 ]), [];
    is $of->(), 5;
    is_deeply $replaced->(0, 3600, [ undef, 'keys', 5 ], [ $account, 'queued_runs', 7 ]), [], 'its children say the same';
    is_deeply $replaced->(1, 1800, [ undef, 'keys', 6 ]), ['keys 6 replaces 5'];
    is $of->(), 6;
    is $session->value("select agent.find_limit('$account', 'queued_runs')"), 7, 'a limit that a server does not name stays';
    is_deeply $replaced->(0, 3600, [ undef, 'keys', 5 ]), [], 'a new connection of the first one';
    is $of->(), 6;
    is_deeply $replaced->(2, 900, [ $account, 'keys', undef ]), [];
    is $of->(), undef, 'none';
    is_deeply $replaced->(3, 800, [ $account, 'keys', 1 ]), ["keys 1 account=$account replaces none"];
    is_deeply $replaced->(4, 700, [ $account, 'keys', undef ]), ["keys none account=$account replaces 1"];
    $session->query('begin read only');
    is_deeply $replaced->(5, 0, [ undef, 'keys', 9 ]), ['not stored'], 'a database that accepts no writes stores nothing, and says so';
    $session->query('commit');
    $session->query('delete from agent.account_limits');
};

subtest 'limits that others have locked are not waited for' => sub {
    my ($owner, $server) = map { $db->session } 1, 2;
    my $store = "select * from agent.set_limits('[{\"name\": \"keys\", \"value\": 3}]', '" . AgentSQL::uuid() . "', 0)";
    # With the settings of the supervisor's connections: nothing but the statement's time is limited.
    $server->query("set lock_timeout = 0; set statement_timeout = '20s'");
    for my $mode ('share row exclusive', 'access exclusive') {
        $owner->query($_) for 'begin', "lock table agent.account_limits in $mode mode";
        is $server->error($store), '55P03', $mode;
        is $server->value('show lock_timeout'), '0', 'other statements wait as before';
        $owner->query('rollback');
    }
    is $server->error($store), '', 'they are stored later';
    $session->query('delete from agent.account_limits');
};

subtest 'the most recently started server wins, whatever the clocks of the database and its hosts said before' => sub {
    my @servers = map { AgentSQL::uuid() } 1 .. 3;
    my $now = '2027-06-01T12:00:00Z';
    # The time of the database, and how long ago each of the servers was started.
    my $at = sub { my ($clock) = @_; $session->query("set agent.now = '$clock'"); return };
    my $store = sub { my ($number, $age_sec) = @_; return configure($servers[$number], $age_sec * 1000, [ undef, 'keys', $number ]) };
    my $value = sub { return $session->value("select value from agent.account_limits where name = 'keys'") };
    $session->query('delete from agent.account_limits');
    $at->('2027-06-01T14:00:00Z');
    $store->(0, 60);
    $store->(1, 30);
    $at->($now);
    is_deeply $store->(2, 0), ['keys 2 replaces 1'], 'a new server, after the clock went back';
    $store->($_, 90 - 30 * $_) for 0, 1, 2, 0, 1;
    is $value->(), 2, 'the limit of the new server stays';
    $at->('2027-06-01T14:00:00Z');
    $store->($_, 7290 - 30 * $_) for 0, 1;
    $store->($_, 7290 - 30 * $_) for 2, 0, 1;
    is $value->(), 2, 'after the clock went forward, when it has told its age again';
    is $session->value("select count(*) from agent.account_limits where configured_at > agent.now()"), 0;
    $session->query('reset agent.now');
    $session->query('delete from agent.account_limits');
};

subtest 'a statement of a server that arrives late does not make it a later one' => sub {
    my ($first, $second) = map { AgentSQL::uuid() } 1, 2;
    $session->query('delete from agent.account_limits');
    # Started 10 s before the second one; this says 1 s.
    configure($first, 1_000, [ undef, 'keys', 1 ]);
    is_deeply configure($second, 2_000, [ undef, 'keys', 2 ]), [], 'for a moment';
    is_deeply configure($first, 12_000, [ undef, 'keys', 1 ]), [], 'the next statement of the first server changes nothing';
    is_deeply configure($second, 2_000, [ undef, 'keys', 2 ]), ['keys 2 replaces 1'];
    $session->query('delete from agent.account_limits');
};

# The deployments of what is claimed for these, each [ account, client ]; with as in AgentSQL::Play::claim.
sub claim_for {
    my ($with, @pools) = @_;
    return [ $any->claim($worker, deployments => [ map { $_->[1]->deployment } @pools ], accounts => [ map { $_->[0] } @pools ], %{$with}) ];
}

# How many of them are of each.
sub shares {
    my ($claims, @pools) = @_;
    my %count;
    $count{ $_->{deployment_id} }++ for @{$claims};
    return [ map { $count{ $_->[1]->deployment } // 0 } @pools ];
}

sub running_is {
    my ($account, $count, $title) = @_;
    is_deeply counts($account, 'running_runs'), [ $count, $count ], $title;
    return;
}

subtest 'claim_runs: accounts take turns, however many deployments they have' => sub {
    limit();
    my ($large, $first) = account();
    my ($small, $shop) = account();
    my @pools = ([ $large, $first ], (map { [ $large, deployment($large, "d$_") ] } 1 .. 3), [ $small, $shop ]);
    for my $pool (@pools) {
        $pool->[1]->stateless for 1 .. 3;
    }
    is_deeply shares(claim_for({ limit => 10, most => 6 }, @pools), @pools), [ 1, 1, 1, 0, 3 ], 'half of them are for the other account';
    is_deeply shares(claim_for({ limit => 10, most => 50 }, @pools), @pools), [ 2, 2, 2, 3, 0 ], 'a claim with room takes all';
};

subtest 'claim_runs: a claim for many pools locks no more runs than it takes' => sub {
    my ($account, $first) = account();
    my @pools = ([ $account, $first ], map { [ $account, deployment($account, "d$_") ] } 1 .. 19);
    for my $pool (@pools) {
        $pool->[1]->stateless for 1 .. 5;
    }
    $session->query('begin');
    is scalar @{ claim_for({ limit => 5, most => 7 }, @pools) }, 7;
    my $ids = join ',', map { "'" . $_->[1]->deployment . "'" } @pools;
    is $other->value("select count(*) from (select from agent.run_queue where deployment_id in ($ids) for update skip locked) x"), 93;
    my $concurrent = AgentSQL::Play->new($other, deployment => $first->deployment);
    is scalar @{ [ $concurrent->claim($worker, deployments => [ map { $_->[1]->deployment } @pools ], accounts => [ ($account) x @pools ], limit => 5, most => 50) ] },
        50, 'a concurrent claim takes the next ones';
    $session->query('commit');
    $any->finish_all($worker);
};

subtest 'claim_runs: accounts take turns for quarantined runs too' => sub {
    my ($large, $first) = account();
    my ($small, $shop) = account();
    my @pools = ([ $large, $first ], (map { [ $large, deployment($large, "d$_") ] } 1 .. 3), [ $small, $shop ]);
    for my $pool (@pools) {
        $pool->[1]->stateless for 1 .. 3;
        $session->query("update agent.run_queue set max_shared = 1 where state = 'ready' and deployment_id = '@{[ $pool->[1]->deployment ]}'");
    }
    is_deeply shares(claim_for({ limit => 0, most => 6 }, @pools), @pools), [ 1, 1, 1, 0, 3 ];
    is_deeply shares(claim_for({ limit => 0, most => 50 }, @pools), @pools), [ 2, 2, 2, 3, 0 ];
};

subtest 'claim_runs: an account executes no more runs than its limit, the others stay ready' => sub {
    my ($mine, $shop) = account();
    my ($stranger, $other_shop) = account();
    my $second = deployment($mine, 'second');
    my @pools = ([ $mine, $shop ], [ $mine, $second ], [ $stranger, $other_shop ]);
    limit([ $mine, 'running_runs', 3 ]);
    for my $client ($shop, $second, $other_shop) {
        $client->stateless for 1 .. 4;
    }
    my $claims = claim_for({ limit => 10 }, @pools);
    is_deeply shares($claims, @pools), [ 2, 1, 4 ], 'its deployments take turns';
    running_is($mine, 3, 'they are counted');
    is_deeply claim_for({ limit => 10 }, @pools), [], 'at the limit there are none';
    my ($done, $lost) = grep { $_->{deployment_id} eq $shop->deployment } @{$claims};
    $shop->save($worker, AgentSQL::Play::finish($done));
    running_is($mine, 2, 'one has ended');
    is_deeply shares(claim_for({ limit => 10 }, @pools), @pools), [ 1, 0, 0 ], 'one more run is claimed';
    $shop->release($worker, 'false', $lost);
    running_is($mine, 2, 'one was lost and is ready again');
    $second->api('delete_thread', $_->{thread_id}) for grep { $_->{deployment_id} eq $second->deployment } @{$claims};
    running_is($mine, 1, 'the thread of one is deleted');
    limit([ $mine, 'running_runs', 0 ]);
    is_deeply claim_for({ limit => 10 }, @pools), [], 'with a limit of 0 none';
    limit();
    is scalar @{ claim_for({ limit => 10 }, @pools) }, 5, 'without a limit all';
};

subtest 'claim_runs: of an account with a limit the deployment that executes the fewest is first' => sub {
    my ($mine, $long) = account();
    my $short = deployment($mine, 'short');
    my @pools = ([ $mine, $long ], [ $mine, $short ]);
    $long->stateless for 1 .. 5;
    $short->stateless for 1 .. 2;
    limit([ $mine, 'running_runs', 5 ]);
    is_deeply shares(claim_for({ limit => 10, most => 3, running => [ 0, 0 ] }, [ $mine, $long ]), @pools), [ 3, 0 ];
    is_deeply shares(claim_for({ limit => 10, running => [ 3, 0 ] }, @pools), @pools), [ 0, 2 ], 'the runs that have waited for longest are not first';
    limit();
    $any->finish_all($worker);
};

subtest 'claim_runs: no run of an account is claimed once it is closed, and nothing is counted for it' => sub {
    for my $with ([], [ [ undef, 'running_runs', 9 ], [ undef, 'queued_runs', 9 ] ]) {
        limit();
        my ($mine, $shop) = account();
        my ($stranger, $other_shop) = account();
        my @pools = ([ $mine, $shop ], [ $stranger, $other_shop ]);
        $_->stateless for $shop, $other_shop;
        my $thread = $shop->thread;
        limit(@{$with});
        $operator->call('close_account', $mine);
        is_deeply claim_for({ limit => 10 }, [ $mine, $shop ]), [], 'of one pool';
        is_deeply shares(claim_for({ limit => 10 }, @pools), @pools), [ 0, 1 ], 'of two';
        is_deeply claim_for({ limits => [-1] }, [ $mine, $shop ]), [], 'no runner starts for the account';
        $other_shop->stateless;
        $session->query("update agent.run_queue set max_shared = 1 where state = 'ready'");
        is_deeply claim_for({ limit => 10, quarantined => 10 }, [ $mine, $shop ]), [], 'of one pool, a quarantined run';
        is_deeply shares(claim_for({ limit => 10, quarantined => 10 }, @pools), @pools), [ 0, 1 ], 'of two, a quarantined run';
        # A request that was admitted before.
        is +($shop->try_run($thread))[0], 'ok', 'a run is created';
        is $session->value("select count(*) from agent.account_counts where account_id = '$mine'"), 0;
        claim_for({ limit => 10 }, [ $mine, $shop ]) for 1 .. 2;
        is $session->value("select string_agg(distinct status || ' ' || (error ->> 'error'), ',') from agent.runs where deployment_id = '"
            . $shop->deployment . "'"), 'error AccountClosedError', 'its runs end';
        is $session->value("select count(*) from agent.run_queue where deployment_id = '" . $shop->deployment . "'"), 0, 'each of them';
        is $session->value("select f from agent.find_free_runs(array['$mine', gen_random_uuid(), '$mine']::uuid[]) f"), '("{0,0,0}","{closed,closed,closed}")';
        $any->finish_all($worker);
    }
    limit();
};

subtest 'claim_runs: an account is looked up once, however many pools it has' => sub {
    $session->query("insert into agent.accounts (account_id, name, home_region) select md5('many' || n)::uuid, 'a', 'local' from generate_series(1, 500) n");
    my $pools = q(array(select md5('many' || (n % 500 + 1))::uuid from generate_series(0, 49999) n));
    limit([ undef, 'running_runs', 7 ]);
    $session->query("select agent.find_free_runs($pools)");
    my ($scans, $rows) = rows_read("select agent.find_free_runs($pools)");
    # The limits, and of each account its row, its limit and 17 counts.
    cmp_ok $rows, '<', 500 * 20 + 10, "rows ($rows)";
    $session->query("set statement_timeout = '10s'");
    is $session->value("select count(*) from agent.find_free_runs($pools) a, unnest(a.free) f where f = 7"), 50_000, 'a limit for each pool';
    $session->query('reset statement_timeout');
    is $session->value("select f from agent.find_free_runs(array[md5('many2')::uuid, null, md5('many1')::uuid] || array(select md5('many' || n)::uuid
        from generate_series(3, 4) n)) f"), '("{7,0,7,7,7}","{NULL,closed,NULL,NULL,NULL}")', 'in the order of the pools';
    limit();
    $session->query("delete from agent.accounts where name = 'a'");
};

subtest 'claim_runs: the backlog of an account at its limit is neither locked nor read' => sub {
    my ($mine, $shop) = account();
    limit([ $mine, 'running_runs', 1 ]);
    $shop->stateless for 1 .. 30;
    is scalar @{ claim_for({ limit => 10 }, [ $mine, $shop ]) }, 1;
    $session->query('begin');
    is_deeply claim_for({ limit => 10 }, [ $mine, $shop ]), [];
    is_deeply claim_for({ limits => [-1] }, [ $mine, $shop ]), [], 'a pool without runners is not reported to have a ready run';
    is $other->value("select count(*) from (select from agent.run_queue where state = 'ready' and deployment_id = '@{[ $shop->deployment ]}' for update nowait) x"), 29;
    $session->query('rollback');
    limit();
    is_deeply [ map { $_->{run_id} } @{ claim_for({ limits => [-1] }, [ $mine, $shop ]) } ], [undef], 'without the limit it is';
};

done_testing;
