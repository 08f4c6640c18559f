# SPDX-License-Identifier: Apache-2.0
# Limits of what accounts keep: threads, webhooks and stored bytes, their counts, and what makes room.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use lib "$FindBin::Bin/../lib";
use Test::More;
use AgentSQL;
use AgentSQL::Accounts qw(use_accounts account deployment limit kept_count counted_anew count_all measured measure);
use AgentSQL::Outbox;
use AgentTest::Cost;

my $db = AgentSQL->new('-v', "operator_role=$AgentSQL::OPERATOR");
my ($session, $other) = map { $db->session } 1, 2;
use_accounts($session, $db->session($AgentSQL::OPERATOR));
my $worker = AgentSQL::Play->new($session)->worker;
my $backend = $session->value('select pg_backend_pid()');

# (code, body, thread_id)
sub try_thread {
    my ($client, $id, $if_exists) = @_;
    $id //= AgentSQL::uuid();
    return ($client->api('create_thread', $id, $if_exists // 'raise', '{}'), $id);
}

# (code, body) of a copy, with all of its pieces.
sub try_copy {
    my ($client, $thread) = @_;
    my $copy = AgentSQL::uuid();
    for (my $continued = 'false';; $continued = 'true') {
        my @result = $client->api('copy_thread', $thread, $copy, $continued, undef);
        return @result if $result[1] ne 'more';
    }
}

# The count of a name, and what it should be.
sub count_is {
    my ($account, $name, $count, $title) = @_;
    is kept_count($account, $name), $count, "counted: $title";
    is counted_anew($account, $name), $count, $title;
    return;
}

my @FULL = ('limit_exceeded', 'threads 3');

subtest 'an account gets no more threads than its limit, in all of its deployments, and a deletion makes room' => sub {
    my ($account, $shop) = account();
    my ($stranger, $other_shop) = account();
    my $desk = deployment($account, 'desk');
    my $first = $shop->thread;
    limit($account, threads => 3);
    my $second = $desk->thread;
    count_is($account, threads => 2, 'a thread of before the limit counts');
    my $third = (try_thread($shop))[-1];
    is_deeply [ (try_thread($_))[ 0, 1 ] ], \@FULL for $shop, $desk;
    is +(try_thread($shop, $third, 'do_nothing'))[0], 'ok', 'a thread that exists is returned at the limit';
    is +(try_thread($shop, $third))[0], 'thread_exists';
    is_deeply [ (try_thread($desk, $third))[ 0, 1 ] ], \@FULL, 'a thread with an id that another deployment uses is a new one';
    is +(try_thread($other_shop))[0], 'ok', 'other accounts have threads of their own';
    is_deeply [ try_copy($shop, $third) ], \@FULL, 'a copy';
    my @made = $shop->api('create_thread_state', AgentSQL::uuid(), AgentSQL::uuid(), 'u1', 'raise', 10,
        '{"metadata":{"graph_id":"agent"},"supersteps":[{"updates":[{}]}]}');
    is_deeply [ @made[ 0, 1 ] ], \@FULL, 'a thread with supersteps';
    is_deeply [ ($shop->try_batch({ assistant_id => $AgentSQL::ASSISTANT }))[ 0, 1 ] ], \@FULL, 'the threads of a batch';
    is_deeply [ ($shop->try_stateless)[ 0, 1 ] ], \@FULL, 'the thread of a stateless run';
    is_deeply [ ($shop->try_run(AgentSQL::uuid(), request => { if_not_exists => 'create' }))[ 0, 1 ] ], \@FULL, 'a thread that a run creates';
    is +($shop->try_run($third, request => { if_not_exists => 'create' }))[0], 'ok', 'a run on a thread that exists is created at the limit';
    $shop->finish_all($worker);
    count_is($account, threads => 3, 'what is refused is not counted');
    is +($desk->api('delete_thread', $second))[0], 'ok';
    count_is($account, threads => 2, 'a deleted thread does not count');
    is_deeply [ try_copy($shop, $third) ], [ 'ok', '' ], 'a copy takes the room of a deleted thread';
    count_is($account, threads => 3, 'a copy counts');
    is +($shop->api('delete_thread', $third))[0], 'ok';
    is +($shop->try_run(AgentSQL::uuid(), request => { if_not_exists => 'create' }))[0], 'ok';
    count_is($account, threads => 3, 'as does a thread that a run creates');
    limit($account, threads => undef);
    is +(try_thread($shop))[0], 'ok', 'without a limit any number';
};

subtest 'the threads of stateless runs count until they are deleted, all of a batch or none' => sub {
    my ($account, $shop) = account();
    limit($account, threads => 3);
    my @two = ({ assistant_id => $AgentSQL::ASSISTANT }) x 2;
    is +($shop->try_batch(@two))[0], 'ok';
    is_deeply [ ($shop->try_batch(@two))[ 0, 1 ] ], \@FULL;
    count_is($account, threads => 2, 'a batch');
    is +($shop->try_stateless)[0], 'ok';
    count_is($account, threads => 3, 'the thread of a stateless run counts');
    $shop->finish_all($worker);
    $session->query("update agent.thread_expiries set expires_at = '-infinity'");
    1 while $session->query('select * from agent.expire_threads()');
    count_is($account, threads => 0, 'their threads have expired');
};

subtest 'a thread whose graph nobody executes is not counted' => sub {
    my ($account, $shop) = account();
    limit($account, threads => 3);
    my @made = $shop->api('create_thread_state', AgentSQL::uuid(), AgentSQL::uuid(), 'u1', 'raise', 10,
        '{"metadata":{"graph_id":"none"},"supersteps":[{"updates":[{}]}]}');
    is $made[0], 'graph_not_found';
    count_is($account, threads => 0, 'it does not exist');
};

subtest 'a request that is refused after the check of the limit leaves the count of threads as it was' => sub {
    my ($account, $shop) = account();
    limit($account, threads => 3);
    count_is($account, threads => 1, 'one') if $shop->thread;
    my $checkpoint = AgentSQL::uuid();
    my @long = (metadata => { map { ($_ => 'x' x 2000) } 1 .. 40 });
    is +($shop->try_run(AgentSQL::uuid(), request => { if_not_exists => 'create', checkpoint_id => $checkpoint }))[0], 'checkpoint_not_found' for 1 .. 5;
    is +($shop->try_batch({ assistant_id => $AgentSQL::ASSISTANT }, { assistant_id => $AgentSQL::ASSISTANT, @long }))[0], 'invalid_value' for 1 .. 5;
    count_is($account, threads => 1, 'refused requests leave the count at one');
    is +(try_thread($shop))[0], 'ok';
};

subtest 'creations of threads do not wait for each other at their count' => sub {
    my ($account, $shop) = account();
    limit($account, threads => 100);
    $shop->thread;
    my @sessions = map { $db->session } 1 .. 4;
    for my $concurrent (@sessions) {
        $concurrent->query("set lock_timeout = '10s'");
        $concurrent->query('begin');
        AgentSQL::Play->new($concurrent, deployment => $shop->deployment)->thread;
    }
    $_->query('commit') for @sessions;
    count_is($account, threads => 5, 'all');
};

# Threads of a client's deployment that nothing has counted.
sub insert_threads {
    my ($client, $threads) = @_;
    $session->query("insert into agent.threads (deployment_id, thread_id, created_at, updated_at)
        select '@{[ $client->deployment ]}', gen_random_uuid(), now(), now() from generate_series(1, $threads)");
    return;
}

# Row -1 of the count of threads of an account: value, threads found so far, whether a count is under way.
sub progress {
    my ($account) = @_;
    return [ @{ ($session->query("select value, sum_value, at_thread_id is not null from agent.account_counts
        where account_id = '$account' and name = 'threads' and shard = -1"))[0] } ];
}

# One minute and a bit later for the counts of these accounts.
sub make_due {
    my (@accounts) = @_;
    $session->query("update agent.account_counts set counted_at = agent.now() - interval '70 s' where account_id = '$_'") for @accounts;
    return;
}

subtest 'threads are counted anew, and a first count stops early and is continued' => sub {
    my ($account, $shop) = account();
    my $desk = deployment($account, 'desk');
    limit($account, threads => 1000);
    $shop->thread for 1 .. 2;
    $session->query("update agent.account_counts set value = value + 9 where account_id = '$account' and shard = 3");
    count_all();
    count_is($account, threads => 2, 'a wrong count is corrected');
    insert_threads($_, 15_000) for $shop, $desk;
    make_due($account);
    count_all();
    count_is($account, threads => 30_002, 'rows that nothing has counted');
    limit($account, threads => undef);
    make_due($account);
    count_all();
    limit($account, threads => 1000);
    is +(try_thread($shop))[0], 'limit_exceeded';
    is_deeply progress($account), [ 20_000, 20_000, 't' ], 'a first count stops at 20,000';
    is +($shop->api('delete_thread', $session->value("select thread_id from agent.threads where deployment_id = '@{[ $desk->deployment ]}' limit 1")))[0],
        'thread_not_found', 'of another deployment';
    is +($desk->api('delete_thread', $session->value("select at_thread_id from agent.account_counts where account_id = '$account' and shard = -1")))[0],
        $desk->deployment gt $shop->deployment ? 'ok' : 'thread_not_found', 'the thread where it goes on may be deleted';
    count_all();
    is_deeply [ @{ progress($account) }[ 1, 2 ] ], [ 0, 'f' ];
    my $left = counted_anew($account, 'threads');
    count_is($account, threads => $left, 'the second count has all threads');
};

subtest 'an account with many threads is counted in pieces, and takes turns with the others' => sub {
    my ($large, $shop) = account();
    my ($small, $other_shop) = account();
    limit($_, threads => 1_000_000) for $large, $small;
    $_->thread for $shop, $other_shop;
    count_all();
    insert_threads($shop, 300_000);
    insert_threads($other_shop, 3);
    make_due($large, $small);
    $session->query("update agent.account_counts set counted_at = counted_at - interval '1 s' where account_id = '$large'");
    my ($calls, $longest, $after) = (0, 0);
    for (my $more = 1; $more;) {
        my $began = cpu_sec($backend);
        $more = $session->value('select agent.count_accounts()');
        my $took = cpu_sec($backend) - $began;
        $longest = $took if $took > $longest;
        $calls++ if $more;
        $after //= $calls if $session->value("select sum(value) from agent.account_counts where account_id = '$small'") == 4;
        if ($calls == 1) {
            my ($value, $sum, $is_going_on) = @{ progress($large) };
            ok $is_going_on eq 't' && $sum >= 20_000, "the first call has found $sum threads";
            $session->query("select agent.add_to_count('$large', 'threads', 5)");
            insert_threads($shop, 5);
        }
    }
    cmp_ok $calls, '>=', 3, "calls: $calls";
    cmp_ok $longest, '<', 1, "the longest one took $longest s of processor time";
    cmp_ok $after, '<=', 2, "the other account was counted by call $after";
    my $count = $session->value("select sum(value) from agent.account_counts where account_id = '$large'");
    ok $count >= 300_001 && $count <= 300_006, "what is created during the count may be missed: $count of 300,006";
    make_due($large);
    count_all();
    count_is($large, threads => 300_006, 'the next count has all threads');
    $session->query("delete from agent.threads where deployment_id = '@{[ $shop->deployment ]}'");
    limit($_, threads => undef) for $large, $small;
};

# Runs the code while a function of the schema fails for an account; $condition: of its parameters.
sub while_failing {
    my ($function, $condition, $code) = @_;
    my $definition = $session->value("select pg_get_functiondef('agent.$function'::regproc)");
    $session->query($definition =~ s/\nbegin\n/\nbegin\n    if $condition then raise 'cannot be read'; end if;\n/r);
    $session->query('set client_min_messages = error');
    $code->();
    $session->query('reset client_min_messages');
    $session->query($definition);
    return;
}

subtest 'an account that cannot be counted does not hold up the others' => sub {
    my ($broken, $shop) = account();
    my ($sound, $other_shop) = account();
    for my $name (qw(threads webhooks queued_runs)) {
        limit($_, $name => 100) for $broken, $sound;
        $_->stateless(webhook => $AgentSQL::Outbox::URL) for $shop, $other_shop;
        count_all();
        $session->query("update agent.account_counts set value = value + 5 where name = '$name' and shard = 0");
        make_due($broken, $sound);
        $session->query("update agent.account_counts set counted_at = counted_at - interval '1 s' where account_id = '$broken'");
        my $of = sub { return kept_count($_[0], $name) };
        my ($wrong, $before) = map { $of->($_) } $broken, $sound;
        while_failing('count_account', "p_account_id = '$broken'", sub {
            cmp_ok $session->value('select agent.count_accounts()'), '>=', 1;
            count_all();
            is $of->($broken), $wrong, "$name: its count stays";
            is $of->($sound), $before - 5, 'the count of the other account is corrected';
            make_due($sound);
            cmp_ok $session->value('select agent.count_accounts()'), '>=', 1;
            is $session->value("select count(*) from agent.account_counts where counted_at < agent.now() - interval '1 minute' and shard = -1
                and account_id = '$broken'"), 0, 'it is tried again a minute later';
        });
        make_due($broken);
        count_all();
        is $of->($broken), $wrong - 5, 'the account is counted a minute later';
        limit($_, $name => undef) for $broken, $sound;
    }
};

subtest 'an account whose running runs cannot be counted does not hold up the others' => sub {
    my ($broken, $shop) = account();
    my ($sound, $other_shop) = account();
    limit($_, running_runs => 100) for $broken, $sound;
    $_->stateless for $shop, $other_shop;
    $shop->claim($worker, deployments => [ $shop->deployment, $other_shop->deployment ], accounts => [ $broken, $sound ], limit => 10);
    my $of = sub { return kept_count($_[0], 'running_runs') };
    count_all();
    is $of->($_), 1 for $broken, $sound;
    $session->query("update agent.account_counts set value = value + 5 where name = 'running_runs' and shard = 0");
    make_due($broken, $sound);
    while_failing('compare_counts', "'$broken' = any (p_account_ids)", sub {
        cmp_ok $session->value('select agent.count_accounts()'), '>=', 1;
        count_all();
        is $of->($broken), 6, 'its count stays';
        is $of->($sound), 1, 'the count of the other account is corrected';
        is $session->value("select count(*) from agent.account_counts where counted_at < agent.now() - interval '1 minute' and shard = -1
            and account_id = '$broken'"), 0, 'it is tried again a minute later';
    });
    make_due($broken);
    count_all();
    is $of->($broken), 1, 'the account is counted a minute later';
    $_->finish_all($worker) for $shop, $other_shop;
    limit($_, running_runs => undef) for $broken, $sound;
};

subtest 'runs with a webhook are refused while the account has as many deliveries as its limit' => sub {
    my ($account, $shop) = account();
    my ($stranger, $other_shop) = account();
    limit($account, webhooks => 2);
    my @hook = ({ assistant_id => $AgentSQL::ASSISTANT, webhook => $AgentSQL::Outbox::URL });
    is_deeply [ ($shop->try_batch((@hook) x 3))[ 0, 1 ] ], [ 'limit_exceeded', 'webhooks 2' ], 'a batch is created as a whole';
    is +($shop->try_batch((@hook) x 2))[0], 'ok';
    count_is($account, webhooks => 0, 'a run that has not ended has no delivery');
    $shop->finish_all($worker);
    count_is($account, webhooks => 2, 'each end of a run makes one');
    is_deeply [ ($shop->try_batch(@hook))[ 0, 1 ] ], [ 'limit_exceeded', 'webhooks 2' ];
    my %hook = (request => { webhook => $AgentSQL::Outbox::URL });
    is_deeply [ ($shop->try_stateless(%hook))[ 0, 1 ] ], [ 'limit_exceeded', 'webhooks 2' ], 'a stateless run';
    is_deeply [ ($shop->try_run($shop->thread, %hook))[ 0, 1 ] ], [ 'limit_exceeded', 'webhooks 2' ], 'a run on a thread';
    is +($shop->try_batch({ assistant_id => $AgentSQL::ASSISTANT }))[0], 'ok', 'a run without one';
    is +($other_shop->try_batch(@hook))[0], 'ok', 'another account';

    my ($first, $second) = grep { $_->[0] eq $shop->deployment } $shop->claim_webhooks($worker);
    $shop->save_webhooks($worker, AgentSQL::Outbox::result($first, 'delivered'), AgentSQL::Outbox::result($second, 'failed'));
    count_is($account, webhooks => 1, 'one is delivered, the other one will be tried again');
    $session->query('update agent.webhook_outbox set due_at = agent.now()');
    ($second) = grep { $_->[0] eq $shop->deployment } $shop->claim_webhooks($worker);
    $shop->save_webhooks($worker, AgentSQL::Outbox::result($second, 'refused'));
    count_is($account, webhooks => 0, 'one that is given up is no longer delivered');
    $shop->save_webhooks($worker, AgentSQL::Outbox::result($second, 'delivered'));
    count_is($account, webhooks => 0, 'whatever a late worker reports');
    is +($shop->try_batch(@hook))[0], 'ok';
};

my $ITEM = AgentSQL::encode({ namespace => ['n'], key => 'k', value => { text => join '', map { chr 33 + rand 90 } 1 .. 100_000 } });

subtest 'an account that has stored as many bytes as its limit stores no more by requests, until it has deleted some' => sub {
    my ($account, $shop) = account();
    my $thread = $shop->thread;
    limit($account, stored_bytes => 50_000);
    is +($shop->api('put_item', $ITEM))[0], 'ok';
    my $bytes = measure($account);
    ok $bytes > 90_000 && $bytes < 200_000, "$bytes bytes";
    my @full = ('limit_exceeded', 'stored_bytes 50000');
    my %refused = (
        create_thread => [ AgentSQL::uuid(), 'raise', '{}' ], copy_thread => [ $thread, AgentSQL::uuid(), 'false', undef ],
        update_thread => [ $thread, '{"metadata":{"a":1}}' ], put_item => [$ITEM],
        update_state => [ $thread, AgentSQL::uuid(), 'u1', 10, '{"values":{}}' ],
        create_assistant => [ AgentSQL::uuid(), ['agent'], '{"graph_id":"agent"}' ],
        update_assistant => [ $AgentSQL::ASSISTANT, ['agent'], '{"metadata":{"a":1}}' ],
        create_thread_state => [ AgentSQL::uuid(), AgentSQL::uuid(), 'u1', 'raise', 10, '{"metadata":{"graph_id":"agent"},"supersteps":[]}' ],
    );
    is_deeply [ ($shop->api($_, @{ $refused{$_} }))[ 0, 1 ] ], \@full, $_ for sort keys %refused;
    is_deeply [ ($shop->try_run($thread))[ 0, 1 ] ], \@full, 'create_run';
    is_deeply [ ($shop->try_stateless)[ 0, 1 ] ], \@full, 'create_stateless_run';
    is_deeply [ ($shop->try_batch({ assistant_id => $AgentSQL::ASSISTANT }))[ 0, 1 ] ], \@full, 'create_stateless_runs';
    is +($shop->api('get_thread', $thread))[0], 'ok', 'what it has can be read';
    is +($shop->api('update_thread', $thread, '{"ttl":60}'))[0], 'ok', 'a ttl alone makes it go';
    is +($shop->api('delete_item', '{"namespace":["n"],"key":"k"}'))[0], 'ok', 'an item can be deleted at the limit';
    cmp_ok measure($account), '<', 10_000;
    is +($shop->try_run($thread))[0], 'ok', 'an account with room creates runs';
    limit($account, stored_bytes => 0);
    is +($shop->api('put_item', $ITEM))[0], 'limit_exceeded', 'a limit of 0 permits nothing';
    limit($account, stored_bytes => undef);
    is +($shop->api('put_item', $ITEM))[0], 'ok', 'without a limit any number';
    1 while $session->value('select agent.measure_accounts()');
    is $session->value('select count(*) from agent.account_measures'), 0, 'a measure ends with its limit';
};

subtest 'runs that execute when the account reaches its limit of stored bytes end in an error that says so' => sub {
    my ($account, $shop) = account();
    my ($stranger, $other_shop) = account();
    limit($account, stored_bytes => 1000);
    my $by = $shop->worker;
    my $claim = $shop->leased($by, my $thread = $shop->thread);
    my $theirs = $other_shop->leased($by, $other_shop->thread);
    is $session->value("select count(*) from agent.end_full_runs($by)"), 0, 'nothing is due before';
    $shop->save($by, AgentSQL::Play::checkpoint($claim, messages => [ 'x' x 2000 ]));
    cmp_ok measure($account), '>=', 1000;
    is_deeply [ map { @{$_} } $session->query("select run_id, thread_id from agent.end_full_runs($by)") ], [ $claim->{run_id}, $thread ];
    is $session->value("select count(*) from agent.end_full_runs($by)"), 0;
    my $run = $shop->body('get_run', $thread, $claim->{run_id});
    is $run->{status}, 'error';
    my $error = AgentSQL::decode($session->value("select error from agent.runs where run_id = '$claim->{run_id}'"));
    is $error->{error}, 'StoredBytesExceededError';
    like $error->{message}, qr/AgentLimit stored_bytes/;
    is_deeply $shop->messages($thread), [ 'x' x 2000 ], 'what it has saved stays';
    is $session->value("select worker_id from agent.run_queue where run_id = '$theirs->{run_id}'"), $by, 'the run of another account continues';
    limit($account, stored_bytes => undef);
};

subtest 'queued runs of an account that has stored as many bytes as it may wait until there is room' => sub {
    my ($account, $shop) = account();
    my ($stranger, $other_shop) = account();
    my $claim = sub {
        my (@with) = @_;
        return scalar grep { defined $_->{run_id} } $shop->claim($worker, deployments => [ $shop->deployment, $other_shop->deployment ],
            accounts => [ $account, $stranger ], limit => 10, @with);
    };
    limit($account, stored_bytes => 50_000);
    is +($shop->api('put_item', $ITEM))[0], 'ok';
    $_->stateless for $shop, $other_shop;
    measure($account);
    is $claim->(), 1, 'the run of the other account is claimed';
    is $session->value("select string_agg(state, ',') from agent.run_queue where deployment_id = '@{[ $shop->deployment ]}'"), 'ready';
    $session->query("update agent.run_queue set max_shared = 1 where state = 'ready' and deployment_id = '@{[ $shop->deployment ]}'");
    is $claim->(quarantined => 10), 0, 'a quarantined run waits too';
    is scalar(grep { defined } map { $_->{run_id} } $shop->claim($worker, deployments => [ $shop->deployment ], accounts => [$account], limit => 10,
        quarantined => 10)), 0, 'with one pool';
    # Its graph is known, by a report that does not say all.
    $session->query("update agent.workers set deployment_ids = deployment_ids || '@{[ $shop->deployment ]}'::uuid,
        graph_ids = graph_ids || 'agent'::text where worker_id = $worker");
    $session->query("update agent.graphs set factory = true where deployment_id = '@{[ $shop->deployment ]}'");
    my $assistant = $session->value("select assistant_id from agent.assistants where deployment_id = '@{[ $shop->deployment ]}' limit 1");
    # Calls with the same arguments would be one.
    for my $pools ('two pools', 'one pool') {
        my $what = $pools eq 'one pool' ? 'graph' : 'schemas';
        is +($shop->api('describe_graph', $assistant, my $call = AgentSQL::uuid(), 10, qq({"what":"$what"})))[0], 'ok';
        my @claimed = $pools eq 'one pool'
            ? $shop->claim($worker, deployments => [ $shop->deployment ], accounts => [$account], limit => 10)
            : $shop->claim($worker, deployments => [ $shop->deployment, $other_shop->deployment ], accounts => [ $account, $stranger ], limit => 10);
        is join(',', grep { defined } map { $_->{run_id} } @claimed), $call, "$pools: a call that describes its graph is claimed";
    }
    $session->query("update agent.run_queue set max_shared = null where state = 'ready'");
    is +($shop->api('delete_item', '{"namespace":["n"],"key":"k"}'))[0], 'ok';
    measure($account);
    is $claim->(), 1, 'queued runs are claimed when there is room';
    limit($account, stored_bytes => undef);
    $_->finish_all($worker) for $shop, $other_shop;
};

subtest 'a piece of a measure is read in the order of an index, that of the runs of one thread too' => sub {
    my $id = AgentSQL::uuid();
    my @tables = $session->query('select name, keys from agent.list_exported_tables() where is_of_deployment');
    cmp_ok scalar @tables, '>', 5;
    $session->query('begin');
    $session->query("set local enable_$_ = off") for qw(seqscan bitmapscan hashjoin mergejoin sort);
    for (@tables) {
        my ($name, $keys) = @{$_};
        my $after = $name eq 'runs' ? "array['$id', '7']" : 'null';
        my $text = $session->value("select agent.compose_measure('$name', '$keys', $after, 5000)");
        my $plan = join "\n", map { $_->[0] } $session->query('explain ' . ($text =~ s/\$1/'$id'/gr));
        unlike $plan, qr/->\s+(?:Incremental )?Sort\b/, $name;
    }
    $session->query('rollback');
};

subtest 'a measure counts the rows of all tables with data of deployments, in pieces of a bounded length' => sub {
    my ($account, $shop) = account();
    my $desk = deployment($account, 'desk');
    limit($account, stored_bytes => 1_000_000_000);
    for my $client ($shop, $desk) {
        my $claim = $client->leased($worker, $client->thread);
        $client->save($worker, AgentSQL::Play::checkpoint($claim, messages => ['one']), AgentSQL::Play::finish($claim));
    }
    my $before = measure($account);
    # 12,000 runs in one thread, 6,000 threads without one, 12,000 events, each of a row of known length.
    my ($thread, $id) = ($shop->thread, $shop->deployment);
    $session->query($_) for split /;\n/, <<"SQL";
insert into agent.runs (deployment_id, run_id, thread_id, thread_seq, assistant_id, graph_id, status, multitask_strategy, metadata, config, stream_mode,
    stream_subgraphs, stream_resumable, events_bucket, created_at, updated_at, finished_at, last_event_seq)
select '$id', gen_random_uuid(), '$thread', n, '$AgentSQL::ASSISTANT', 'agent', 'success', 'enqueue', '{}', '{}', '[]', false, false, current_date, now(), now(), now(), 1
from generate_series(1, 12000) n;
insert into agent.threads (deployment_id, thread_id, created_at, updated_at) select '$id', gen_random_uuid(), now(), now() from generate_series(1, 6000);
insert into agent.run_events (deployment_id, bucket, run_id, seq, epoch, event, data)
select '$id', current_date, gen_random_uuid(), 1, 1, 'custom', repeat('x', 1000) from generate_series(1, 12000)
SQL
    my $stored = $session->value(<<"SQL");
select (select sum(pg_column_size(r)) from agent.runs r where deployment_id = '$id' and thread_id = '$thread') + (select sum(pg_column_size(t)) from agent.threads t
    where deployment_id = '$id' and run_seq = 0) + (select sum(pg_column_size(e)) from agent.run_events e where deployment_id = '$id' and event = 'custom')
SQL
    my $found = measure($account) - $before;
    cmp_ok abs($found - $stored) / $stored, '<', 0.2, "$found bytes are found of $stored";
    $session->query("update agent.account_measures set due_at = now() where account_id = '$account'");
    my ($calls, $longest) = (0, 0);
    for (my $more = 1; $more; $calls++) {
        my $began = cpu_sec($backend);
        $more = $session->value('select agent.measure_accounts()');
        my $took = cpu_sec($backend) - $began;
        $longest = $took if $took > $longest;
    }
    cmp_ok $longest, '<', 1, "the longest of $calls calls took $longest s of processor time";
    is measured($account) - $before, $found, 'a second measure finds the same';
    cmp_ok $session->value("select extract(epoch from due_at - now()) from agent.account_measures where account_id = '$account'"), '>', 50, 'the next one follows a minute later';
    limit($account, stored_bytes => undef);
};

# On a busy machine a call may not get through the accounts of earlier tests in its 50 ms.
sub measure_only {
    my (@accounts) = @_;
    $session->query("delete from agent.account_measures where account_id <> all ('{@{[ join ',', @accounts ]}}')");
    return;
}

# A call goes on for 50 ms, which on a busy machine may not be enough for one thread.
sub measure_to_end {
    my ($account) = @_;
    my $is_done = "select measured_at = agent.now() and began_at is null from agent.account_measures where account_id = '$account'";
    for (1 .. 100) {
        is $session->value('select agent.measure_accounts()'), 1, 'an account had a turn';
        return if ($session->value($is_done) // '') eq 't';
    }
    return fail('the measure ends');
}

subtest 'accounts that are due take turns, so that a large one does not hold up the others' => sub {
    my ($large, $shop) = account();
    my ($small, $other_shop) = account();
    limit($_, stored_bytes => 1_000_000_000) for $large, $small;
    $_->thread for $shop, $other_shop;
    insert_threads($shop, 100_000);
    measure_only($large, $small);
    $session->query("update agent.account_measures set due_at = now() - case account_id when '$large' then interval '2 s' else interval '1 s' end");
    my ($calls, $after) = (0);
    while ($session->value('select agent.measure_accounts()')) {
        $calls++;
        $after //= $calls if $session->value("select bytes > 0 from agent.account_measures where account_id = '$small'") eq 't';
        last if $session->value("select bytes > 0 from agent.account_measures where account_id = '$large'") eq 't';
    }
    cmp_ok $calls, '>=', 2, "turns of the large one: $calls";
    cmp_ok $after, '<=', 2, "the small one is measured by call $after";
    $session->query("delete from agent.threads where deployment_id = '@{[ $shop->deployment ]}'");
    limit($_, stored_bytes => undef) for $large, $small;
};

subtest 'the next measure follows a minute after the last one, or after ten times as long as that took' => sub {
    my ($account, $shop) = account();
    limit($account, stored_bytes => 1_000_000_000);
    $shop->thread;
    measure_only($account);
    my $due_sec = sub { return int $session->value("select extract(epoch from due_at - agent.now()) from agent.account_measures where account_id = '$account'") };
    $session->query("set agent.now = '2027-06-01T12:00:00Z'");
    $session->query("update agent.account_measures set due_at = agent.now() where account_id = '$account'");
    measure_to_end($account);
    is $due_sec->(), 60;
    is $session->value('select agent.measure_accounts()'), 0, 'nothing is due before';
    $session->query("update agent.account_measures set due_at = agent.now(), began_at = agent.now() - interval '30 s' where account_id = '$account'");
    measure_to_end($account);
    is $due_sec->(), 300, 'of 30 s';
    $session->query('reset agent.now');
    limit($account, stored_bytes => undef);
};

subtest 'an account that was measured in the future, since the clock went back, is due' => sub {
    my ($account, $shop) = account();
    limit($account, stored_bytes => 1_000_000_000);
    $shop->thread;
    measure_only($account);
    $session->query("set agent.now = '2027-06-01T14:00:00Z'");
    1 while $session->value('select agent.measure_accounts()');
    $session->query("set agent.now = '2027-06-01T12:00:00Z'");
    measure_to_end($account);
    is $session->value('select agent.measure_accounts()'), 0, 'once';
    is $session->value("select measured_at = agent.now() and due_at = agent.now() + interval '1 minute' from agent.account_measures
        where account_id = '$account'"), 't';
    $session->query("update agent.account_measures set (due_at, measured_at, began_at) = ('2027-06-01T14:00:00Z'::timestamptz, '2027-06-01T14:00:00Z',
        '2027-06-01T14:00:00Z'), sum_bytes = 7 where account_id = '$account'");
    measure_to_end($account);
    is $session->value("select began_at is null and due_at = agent.now() + interval '1 minute' from agent.account_measures where account_id = '$account'"), 't';
    $session->query('reset agent.now');
    limit($account, stored_bytes => undef);
};

subtest 'an account that cannot be measured does not hold up the others' => sub {
    my ($broken, $shop) = account();
    my ($sound, $other_shop) = account();
    limit($_, stored_bytes => 1_000_000_000) for $broken, $sound;
    $_->thread for $shop, $other_shop;
    $session->query("update agent.account_measures set bytes = 77, due_at = now() - case account_id when '$broken' then interval '2 s' else interval '1 s' end");
    while_failing('measure_rows', "p_measure.account_id = '$broken'", sub {
        1 while $session->value('select agent.measure_accounts()');
        cmp_ok measured($sound), '>', 77;
        is measured($broken), 77, 'what was measured last stays';
        is $session->value("select round(extract(epoch from due_at - now())) between 55 and 60 and began_at is null
            from agent.account_measures where account_id = '$broken'"), 't', 'the measure is tried again a minute later';
    });
    cmp_ok measure($broken), '>', 77;
    limit($_, stored_bytes => undef) for $broken, $sound;
};

done_testing;
