# SPDX-License-Identifier: Apache-2.0
# Counts of accounts beside each other: no writer waits at one, whatever the order in which it changes several.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use lib "$FindBin::Bin/../lib";
use Test::More;
use AgentSQL;
use AgentTest::Wait;
use AgentSQL::Outbox;

my $db = AgentSQL->new('-v', "operator_role=$AgentSQL::OPERATOR");
my $session = $db->session;
my $operator = $db->session($AgentSQL::OPERATOR);
my $worker = AgentSQL::Play->new($session)->worker;
my @NAMES = qw(queued_runs running_runs threads webhooks);

# The limits of an account; undef removes them.
sub limit {
    my ($account, $value) = @_;
    my $limits = AgentSQL::encode([ map { { account_id => $account, name => $_, value => $value } } @NAMES ]);
    $session->query('select * from agent.set_limits(' . AgentSQL::Session::literal($limits) . ', \'' . AgentSQL::uuid() . '\', 0)');
    return;
}

# An account with limits and a deployment: (id, id of the deployment, its client).
sub account {
    my $account = AgentSQL::uuid();
    $operator->call('create_account', $account, 'Shop');
    my $id = $session->value("select agent.ensure_deployment('shop', '$account')");
    $session->query("select agent.save_graphs('$id', '[{\"graph_id\":\"agent\",\"assistant_id\":\"$AgentSQL::ASSISTANT\"}]')");
    # A worker executes its graph, so that calls are queued.
    $session->query("update agent.workers set deployment_ids = deployment_ids || '$id'::uuid, graph_ids = graph_ids || 'agent'::text
        where worker_id = $worker");
    limit($account, 1000);
    return ($account, $id, AgentSQL::Outbox->new($session, deployment => $id));
}

sub sum_of {
    my ($account, $name) = @_;
    return $session->value("select sum(value) from agent.account_counts where account_id = '$account' and name = '$name'");
}

sub counts_are {
    my ($account, %counts) = @_;
    is sum_of($account, $_), $counts{$_}, "$_: $counts{$_}" for sort keys %counts;
    is $session->value("select value from agent.count_next_threads('$account', null, null, 1000000)"), $counts{threads}, 'counted anew: threads';
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
    my ($account, $id, $shop) = account();
    # Each count has its rows, and the first 16 of them are held.
    $shop->stateless(webhook => $AgentSQL::Outbox::URL);
    $shop->finish_all($worker);
    $session->query("select agent.begin_counts(array['$account'::uuid], name) from unnest('{@{[ join ',', @NAMES ]}}'::text[]) name");
    my %before = map { $_ => sum_of($account, $_) } qw(queued_runs threads);
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
    1 while $session->value('select agent.count_accounts()');
    is $session->value("select count(*) from agent.account_counts where account_id = '$account' and shard > 15"), 0, 'which do not stay';
    counts_are($account, map { $_ => $before{$_} + 5 } qw(queued_runs threads));
    $shop->finish_all($worker);
    limit($account, undef);
};

subtest 'a row of a backend that goes on is not taken away' => sub {
    my ($account, $id, $shop) = account();
    $shop->thread;
    my ($holder, $in) = map { $db->session } 1 .. 2;
    begin($_) for $holder, $in;
    $holder->query("select from agent.account_counts where account_id = '$account' and shard between 0 and 15 for update");
    my $client = AgentSQL::Play->new($in, deployment => $id);
    $client->thread for 1 .. 2;
    $session->query("update agent.account_counts set counted_at = '-infinity' where account_id = '$account' and shard = -1");
    1 while $session->value('select agent.count_accounts()');
    $in->query('commit');
    begin($in);
    $client->thread;
    1 while $session->value('select agent.count_accounts()');
    $_->query('commit') for $in, $holder;
    counts_are($account, threads => 4);
    limit($account, undef);
};

subtest 'a count that another transaction begins is left to it' => sub {
    my ($account, $id, $shop) = account();
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
    1 while $session->value('select agent.count_accounts()');
    counts_are($account, threads => 4);
    $shop->finish_all($worker);
    limit($account, undef);
};

subtest 'a limit that is removed while writers change several counts: they end, and no count is left' => sub {
    my ($account, $id, $shop) = account();
    $shop->stateless;
    my $in = $db->session;
    begin($in);
    my $client = AgentSQL::Play->new($in, deployment => $id);
    is +($client->api('create_thread', AgentSQL::uuid(), 'raise', '{}'))[0], 'ok';
    my $remover = $db->session;
    my $limits = AgentSQL::encode([ map { { account_id => $account, name => $_, value => undef } } @NAMES ]);
    $remover->send('select * from agent.set_limits(' . AgentSQL::Session::literal($limits) . ", '" . AgentSQL::uuid() . "', 0)");
    wait_for('the removal to wait', sub { $session->value("select count(*) from pg_locks where not granted and relation = 'agent.account_counts'::regclass") });
    is +($client->try_stateless)[0], 'ok', 'another count, while the removal waits';
    $in->query('commit');
    $remover->receive;
    is $session->value("select count(*) from agent.account_counts where account_id = '$account'"), 0;
    $shop->finish_all($worker);
};

done_testing;
