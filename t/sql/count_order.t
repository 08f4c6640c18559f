# SPDX-License-Identifier: Apache-2.0
# Counts of accounts beside each other: no writer waits at one, whatever the order in which it changes several.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use lib "$FindBin::Bin/../lib";
use Test::More;
use AgentSQL;
use AgentSQL::Accounts qw(use_accounts account limit kept_count counted_anew count_all);
use AgentSQL::Outbox;
use AgentTest::Wait;

my $db = AgentSQL->new('-v', "operator_role=$AgentSQL::OPERATOR");
my $session = $db->session;
use_accounts($session, $db->session($AgentSQL::OPERATOR));
my $worker = AgentSQL::Outbox->new($session)->worker;
my @NAMES = qw(queued_runs running_runs threads webhooks);

# Sets all of its limits; undef removes them.
sub limits {
    my ($account, $value) = @_;
    return limit($account, map { $_ => $value } @NAMES);
}

# An account with limits and a deployment: (id, id of the deployment, its client).
sub limited_account {
    my ($account, $client) = account();
    my $id = $client->deployment;
    # A worker executes its graph, so that calls are queued.
    $session->query("update agent.workers set deployment_ids = deployment_ids || '$id'::uuid, graph_ids = graph_ids || 'agent'::text
        where worker_id = $worker");
    limits($account, 1000);
    return ($account, $id, $client);
}

sub counts_are {
    my ($account, %counts) = @_;
    is kept_count($account, $_), $counts{$_}, "$_: $counts{$_}" for sort keys %counts;
    is counted_anew($account, 'threads'), $counts{threads}, 'counted anew: threads';
    return;
}

# Each count, or those of an account, has its turns.
sub age {
    my ($account) = @_;
    $session->query("update agent.account_counts set counted_at = '-infinity' where shard = -1" . ($account ? " and account_id = '$account'" : ''));
    count_all();
    return;
}

sub begin {
    my ($in) = @_;
    $in->query($_) for "set lock_timeout = '10s'", 'begin';
    return;
}

# Changes of several counts, each by a client of its own session.
my %CHANGES = (
    'create a run with its thread' => sub { return ($_[0]->try_run(AgentSQL::uuid(), request => { if_not_exists => 'create' }))[0] },
    'create a thread with supersteps' => sub {
        return ($_[0]->api('create_thread_state', AgentSQL::uuid(), AgentSQL::uuid(), 'u1', 'raise', 10,
            '{"metadata":{"graph_id":"agent"},"supersteps":[{"updates":[{}]}]}'))[0];
    },
    'create a stateless run' => sub { return ($_[0]->try_stateless)[0] },
    'create a batch' => sub { return ($_[0]->try_batch(({ assistant_id => $AgentSQL::ASSISTANT }) x 2))[0] },
);

subtest 'no writer of several counts waits for another one, though all rows of the counts are held' => sub {
    my ($account, $id, $shop) = limited_account();
    # Each count has its rows, and the first 16 of them are held.
    $shop->stateless(webhook => $AgentSQL::Outbox::URL);
    $shop->finish_all($worker);
    $session->query("select agent.begin_counts(array['$account'::uuid], name) from unnest('{@{[ join ',', @NAMES ]}}'::text[]) name");
    my %before = map { $_ => kept_count($account, $_) } qw(queued_runs threads);
    my $holder = $db->session;
    begin($holder);
    $holder->query("select from agent.account_counts where account_id = '$account' and shard between 0 and 15 for update");
    my @open;
    for my $what (sort keys %CHANGES) {
        my $in = $db->session;
        begin($in);
        is $CHANGES{$what}->(AgentSQL::Play->new($in, deployment => $id)), 'ok', $what;
        push @open, $in;
    }
    $_->query('commit') for @open, $holder;
    # 1 + 1 + 1 + 2 of both.
    counts_are($account, map { $_ => $before{$_} + 5 } qw(queued_runs threads));
    cmp_ok $session->value("select count(*) from agent.account_counts where account_id = '$account' and shard > 15"), '>=', 4, 'each has rows of its own';
    $session->query("update agent.account_counts set counted_at = '-infinity' where account_id = '$account' and shard = -1");
    count_all();
    is $session->value("select count(*) from agent.account_counts where account_id = '$account' and shard > 15"), 0, 'no row of a writer stays';
    counts_are($account, map { $_ => $before{$_} + 5 } qw(queued_runs threads));
    $shop->finish_all($worker);
    limits($account, undef);
};

subtest 'a row of a backend that goes on is not taken away' => sub {
    my ($account, $id, $shop) = limited_account();
    $shop->thread;
    my ($holder, $in) = map { $db->session } 1 .. 2;
    begin($_) for $holder, $in;
    $holder->query("select from agent.account_counts where account_id = '$account' and shard between 0 and 15 for update");
    my $client = AgentSQL::Play->new($in, deployment => $id);
    $client->thread for 1 .. 2;
    $session->query("update agent.account_counts set counted_at = '-infinity' where account_id = '$account' and shard = -1");
    count_all();
    $in->query('commit');
    begin($in);
    $client->thread;
    count_all();
    $_->query('commit') for $in, $holder;
    counts_are($account, threads => 4);
    limits($account, undef);
};

subtest 'a count that another transaction begins is left to it' => sub {
    my ($account, $id, $shop) = limited_account();
    my @sessions = map { $db->session } 1 .. 2;
    begin($_) for @sessions;
    my @clients = map { AgentSQL::Play->new($_, deployment => $id) } @sessions;
    # Each would wait for the other one: the first begins with threads, the second one with runs.
    is +($clients[0]->api('create_thread', AgentSQL::uuid(), 'raise', '{}'))[0], 'ok';
    is +($clients[1]->try_run(AgentSQL::uuid(), request => { if_not_exists => 'create' }))[0], 'ok';
    is +($clients[0]->try_run(AgentSQL::uuid(), request => { if_not_exists => 'create' }))[0], 'ok';
    is +($clients[1]->api('create_thread', AgentSQL::uuid(), 'raise', '{}'))[0], 'ok';
    $_->query('commit') for @sessions;
    $session->query("update agent.account_counts set counted_at = '-infinity' where account_id = '$account' and shard = -1");
    count_all();
    counts_are($account, threads => 4);
    $shop->finish_all($worker);
    limits($account, undef);
};

subtest 'a row of a backend that is being taken away holds up nobody' => sub {
    my ($account, $id, $shop) = limited_account();
    $shop->thread;
    my ($holder, $in, $folder) = map { $db->session } 1 .. 3;
    my $client = AgentSQL::Play->new($in, deployment => $id);
    my $hold = sub {
        begin($holder);
        $holder->query("select from agent.account_counts where account_id = '$account' and shard between 0 and 15 for update");
    };
    $hold->();
    $client->thread;
    $holder->query('commit');
    $session->query("update agent.account_counts set counted_at = '-infinity' where account_id = '$account' and shard = -1");
    begin($folder);
    1 while $folder->value('select agent.count_accounts()');
    $hold->();
    $in->query("set lock_timeout = '5s'");
    is eval { ($client->api('create_thread', AgentSQL::uuid(), 'raise', '{}'))[0] } // $@, 'ok', 'a writer has another row' for 1 .. 2;
    $_->query('commit') for $folder, $holder;
    counts_are($account, threads => 4);
    age($account);
    is $session->value("select count(*) from agent.account_counts where account_id = '$account' and shard > 15"), 0, 'no row of a writer stays';
    counts_are($account, threads => 4);
    limits($account, undef);
};

subtest 'a limit that is removed while writers change counts: nobody waits, and no count is left' => sub {
    my ($account, $id, $shop) = limited_account();
    my ($other, undef, $other_shop) = limited_account();
    $_->stateless for $shop, $other_shop;
    my ($in, $holder, $own) = map { $db->session } 1 .. 3;
    begin($_) for $in, $holder, $own;
    my $client = AgentSQL::Play->new($in, deployment => $id);
    is +($client->api('create_thread', AgentSQL::uuid(), 'raise', '{}'))[0], 'ok';
    # All of its rows are held, so that one more writer makes its own.
    $holder->query("select from agent.account_counts where account_id = '$account' and name = 'threads' and shard between 0 and 15
        for update skip locked");
    is +(AgentSQL::Play->new($own, deployment => $id)->api('create_thread', AgentSQL::uuid(), 'raise', '{}'))[0], 'ok', 'with a row of its own';
    $session->query("set lock_timeout = '5s'");
    limits($account, undef);
    age($account);
    is +($client->try_stateless)[0], 'ok', 'a writer of another count goes on';
    is +($other_shop->try_stateless)[0], 'ok', 'a writer of another account goes on';
    cmp_ok $session->value("select count(*) from agent.account_counts where account_id = '$account'"), '>', 0, 'what writers hold is left';
    is +($shop->api('create_thread', AgentSQL::uuid(), 'raise', '{}'))[0], 'ok', 'a writer of this count goes on';
    $_->query('commit') for $own, $in, $holder;
    count_all();
    is $session->value("select count(*) from agent.account_counts where account_id = '$account'"), 0, 'no row is left when the writers have ended';
    is $session->value("select count(distinct name) from agent.account_counts where account_id = '$other'"), 2, 'the other account has its counts';
    limits($other, undef);
    $session->query('reset lock_timeout');
    $_->finish_all($worker) for $shop, $other_shop;
};

subtest 'a limit that is set again while its count ends' => sub {
    my ($account, $id, $shop) = limited_account();
    $shop->thread for 1 .. 3;
    my $holder = $db->session;
    begin($holder);
    $holder->query("select from agent.account_counts where account_id = '$account' and name = 'threads' and shard = 5 for update");
    limits($account, undef);
    age($account);
    limits($account, 4);
    is +($shop->api('create_thread', AgentSQL::uuid(), 'raise', '{}'))[0], 'ok', 'the fourth one';
    is +($shop->api('create_thread', AgentSQL::uuid(), 'raise', '{}'))[0], 'limit_exceeded';
    $holder->query('commit');
    count_all();
    is +($shop->api('create_thread', AgentSQL::uuid(), 'raise', '{}'))[0], 'limit_exceeded', 'with a new count';
    counts_are($account, threads => 4);
    limits($account, undef);
};

subtest 'a limit that is removed and set again before its count ends: the count has what began in between' => sub {
    my ($account, $id, $shop) = limited_account();
    $shop->stateless;
    $session->query("select agent.begin_counts(array['$account'::uuid], name) from unnest('{@{[ join ',', @NAMES ]}}'::text[]) name");
    limits($account, undef);
    $shop->stateless;
    my @claims = $shop->claim($worker, deployments => [$id], accounts => [$account]);
    is scalar @claims, 2, 'both runs begin';
    limits($account, 1000);
    counts_are($account, queued_runs => 2, running_runs => 2, threads => 2);
    # Rows of limits that an operator has deleted.
    $session->query('delete from agent.account_limits');
    $shop->save($worker, map { AgentSQL::Play::finish($_) } @claims);
    my $thread = $shop->thread;
    $shop->stateless;
    $shop->try_batch({ assistant_id => $AgentSQL::ASSISTANT });
    $shop->try_run(AgentSQL::uuid(), request => { if_not_exists => 'create' });
    counts_are($account, queued_runs => 3, running_runs => 0, threads => 6);
    $shop->api('delete_thread', $thread);
    counts_are($account, queued_runs => 3, running_runs => 0, threads => 5);
    limits($account, undef);
    age($account);
    $shop->finish_all($worker);
};

subtest 'a removal beside many counts is short, and they end in pieces' => sub {
    my ($account) = limited_account();
    age();
    $session->query("insert into agent.account_counts (account_id, name, shard, value, counted_at)
        select md5(g::text)::uuid, n, s, 0, '-infinity'
          from generate_series(1, 300) g, unnest('{@{[ join ',', @NAMES ]}}'::text[]) n, generate_series(-1, 15) s");
    limits($account, undef);
    is $session->value('select count(*) from agent.account_counts'), 300 * 4 * 17, 'the removal itself reads none';
    my ($most, $before) = (0, 300 * 4 * 17);
    while ($session->value('select agent.count_accounts()')) {
        my $left = $session->value('select count(*) from agent.account_counts');
        $most = $before - $left if $before - $left > $most;
        $before = $left;
    }
    is $before, 0, 'nothing is counted';
    is $most, 100 * 17, 'at most 100 of them in a call';
};

subtest 'deletions of counts beside writers' => sub {
    my ($account, $id, $shop) = limited_account();
    $shop->stateless;
    my ($deleter, $in, $holder) = map { $db->session } 1 .. 3;
    my $client = AgentSQL::Play->new($in, deployment => $id);
    my $delete = sub { return $_[0]->value("select bool_and(agent.delete_count('$account', n)) from unnest('{@{[ join ',', @NAMES ]}}'::text[]) n") };
    begin($deleter);
    is $delete->($deleter), 't';
    $in->query("set lock_timeout = '5s'");
    is +($client->api('create_thread', AgentSQL::uuid(), 'raise', '{}'))[0], 'ok', 'a writer beside a deletion';
    $deleter->query('commit');
    is $session->value("select count(*) from agent.account_counts where account_id = '$account'"), 0, 'leaves no row';
    $shop->stateless;
    begin($_) for $in, $holder;
    $holder->query("select from agent.account_counts where account_id = '$account' and shard between 0 and 15 for update");
    is +($client->try_stateless)[0], 'ok', 'a writer that inserts rows';
    $session->query("set lock_timeout = '5s'");
    is $delete->($session), 'f', 'a writer holds the counts';
    $_->query('commit') for $in, $holder;
    is $delete->($session), 't', 'the counts are deleted when the writer has ended';
    is $session->value("select count(*) from agent.account_counts where account_id = '$account'"), 0;
    limits($account, undef);
    $shop->finish_all($worker);
    $session->query('reset lock_timeout');
};

subtest 'a limit holds while the account is held' => sub {
    my ($account, $id, $shop) = limited_account();
    my $holder = $db->session;
    limits($account, undef);
    age($account);
    $shop->thread for 1 .. 5;
    $shop->stateless;
    $shop->claim($worker, deployments => [$id], accounts => [$account], limit => 1);
    limits($account, 2);
    begin($holder);
    $holder->query("select from agent.accounts where account_id = '$account' for no key update");
    is +($shop->api('create_thread', AgentSQL::uuid(), 'raise', '{}'))[0], 'limit_exceeded', 'threads';
    $session->query("update agent.account_limits set value = 100 where account_id = '$account' and name = 'threads'");
    is +($shop->try_stateless)[0], 'ok', 'the second run';
    is +($shop->try_stateless)[0], 'limit_exceeded', 'the third one';
    is $session->value("select (agent.find_free_runs(array['$account'::uuid])).free"), '{1}', 'one of them is running';
    $holder->query('commit');
    is $session->value("select count(*) from agent.account_counts where account_id = '$account'"), 0;
    limits($account, undef);
    $shop->finish_all($worker);
};

subtest 'an end of runs holds no row of a count that it does not change' => sub {
    my ($account, $id, $shop) = limited_account();
    $shop->stateless;
    $session->query("select agent.begin_counts(array['$account'::uuid], 'running_runs')");
    my $in = $db->session;
    begin($in);
    $in->query("select agent.count_ended_runs(array(select q from agent.run_queue q where q.deployment_id = '$id'))");
    for my $name (qw(queued_runs running_runs)) {
        is $session->value("select count(*) from (select from agent.account_counts where account_id = '$account' and name = '$name'
            for update skip locked) x"), $name eq 'queued_runs' ? 16 : 17, $name;
    }
    $in->query('rollback');
    $shop->finish_all($worker);
    limits($account, undef);
};

done_testing;
