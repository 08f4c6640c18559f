# SPDX-License-Identifier: Apache-2.0
# Deployments: the data of one deployment can be neither read nor changed nor detected by another.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Play;

my $db = AgentSQL->new;
my $session = $db->session;
my $owner = AgentSQL::Play->new($session);
my $guest = AgentSQL::Play->new($session, deployment => '00000000-0000-0000-0000-000000000002');
$session->query("insert into agent.deployments (deployment_id, account_id, name)
    select '@{[ $guest->deployment ]}', account_id, 'guest' from agent.accounts");
my $worker = $owner->worker;
$session->query("select agent.save_graphs('@{[ $owner->deployment ]}', '[{\"graph_id\":\"agent\",\"assistant_id\":\"$AgentSQL::ASSISTANT\"}]')");

# An assistant of a client, and a thread whose last run is of it.
my $mine = AgentSQL::uuid();
$owner->api('create_assistant', $mine, ['agent'], '{"graph_id":"agent","name":"secret"}');
$owner->run($owner->thread, assistant => $mine, graph => undef);
$owner->claim($worker);

my $thread = $owner->thread(metadata => { secret => 1 });
my $run = $owner->run($thread, key => 'key', hash => 'hash', request => { input => 'secret' });
my ($claim) = $owner->claim($worker);
my $checkpoint = AgentSQL::uuid();
my ($digest, $blob) = AgentSQL::Play::blob($claim, '"secret"');
$owner->save($worker,
    AgentSQL::Play::event($claim, 0, 'custom', 'secret'),
    AgentSQL::Play::checkpoint($claim, id => $checkpoint, messages => ['secret']),
    $blob,
    AgentSQL::Play::put($claim, id => $checkpoint, channels => { secret => $digest }),
    AgentSQL::Play::put_writes($claim, id => $checkpoint, writes => [ [ 0, 'secret', $digest ] ]),
    AgentSQL::Play::task($claim, $checkpoint, { id => 'secret' }),
    AgentSQL::Play::finish($claim));
my $active = $owner->run($thread);
my ($leased) = $owner->claim($worker);
my ($idle, $called) = map { $owner->thread(metadata => { graph_id => 'agent' }) } 1, 2;
my $call = AgentSQL::uuid();
$owner->api('update_state', $called, $call, 'u1', 10, '{}');

$owner->api('put_item', '{"namespace":["a"],"key":"k","value":{"secret":1}}');

sub snapshot {
    my $rows = $owner->rows;
    return join "\n", map { "$_: $rows->{$_}" } sort keys %{$rows};
}
# A snapshot whose parent has writes.
my $next = AgentSQL::uuid();
$owner->save($worker, AgentSQL::Play::put($leased, id => $next, parent => $checkpoint));
is scalar @{ $owner->body('read_delta', $thread, qq({"checkpoint_id":"$next","channels":["secret"]}), undef, 1000)->{secret}{writes} }, 1;
my $before = snapshot();

# Function => [arguments after the deployment, expected code].
my %calls = (
    get_assistant => [ [$AgentSQL::ASSISTANT], 'assistant_not_found' ],
    refuse_assistant => [ [ $mine, undef ], 'assistant_not_found' ],
    describe_graph => [ [ $mine, $run, 10, '{"what":"graph","xray":true}' ], 'assistant_not_found' ],
    get_history => [ [ $thread, '{}' ], 'thread_not_found' ],
    update_assistant => [ [ $mine, ['agent'], '{}' ], 'assistant_not_found' ],
    list_assistant_versions => [ [ $mine, '{}' ], 'assistant_not_found' ],
    set_assistant_version => [ [ $mine, 1 ], 'assistant_not_found' ],
    delete_assistant => [ [ $mine, 'true', undef ], 'assistant_not_found' ],
    get_thread => [ [$thread], 'thread_not_found' ],
    update_thread => [ [ $thread, '{"metadata":{"x":1}}' ], 'thread_not_found' ],
    find_thread_end => [ [$thread], 'thread_not_found' ],
    delete_thread => [ [$thread], 'thread_not_found' ],
    copy_thread => [ [ $thread, $run, 'false', undef ], 'source_not_found' ],
    abandon_copy => [ [$run], 'ok' ],
    prune_thread => [ [ $thread, undef ], 'thread_not_found' ],
    get_run => [ [ $thread, $run ], 'run_not_found' ],
    list_runs => [ [ $thread, 10, 0, undef, undef ], 'thread_not_found' ],
    delete_run => [ [ $thread, $run ], 'run_not_found' ],
    cancel_runs => [ [ $thread, [ $run, $active ], 'rollback' ], 'run_not_found' ],
    cancel_runs_by_status => [ [ 'all', 'rollback', 'ffffffff-ffff-ffff-ffff-ffffffffffff' ], 'run_not_found' ],
    cancel_run => [ [ $thread, $active, 'rollback' ], 'run_not_found' ],
    join_run => [ [ $thread, $run ], 'run_not_found' ],
    update_state => [ [ $idle, $run, 'u1', 10, '{}' ], 'thread_not_found' ],
    join_call => [ [ $called, $call ], 'thread_not_found' ],
    end_call => [ [ $called, $call ], 'thread_not_found' ],
    get_state => [ [ $thread, undef ], 'thread_not_found' ],
    get_thread_storage => [ [$thread], 'thread_not_found' ],
    read_values => [ [ $thread, "$checkpoint.1.0.0", 1000 ], 'checkpoint_not_found' ],
    read_page => [ [ 'run', $thread, "{$run}", undef, undef, '1.0', 1000 ], 'run_not_found' ],
    read_state => [ [ $thread, $checkpoint, undef, 1000 ], 'checkpoint_not_found' ],
    find_run_thread => [ [$run], 'run_not_found' ],
    read_blobs => [ [ $thread, qq({"digests":["$digest"]}), undef, 1000 ], 'blob_not_found' ],
    find_checkpoint_event => [ [ $thread, $run, $checkpoint ], 'run_not_found' ],
    find_stored_run => [ [ $thread, 'key', 'hash' ], '' ],
);
for my $function (sort keys %calls) {
    my ($arguments, $code) = @{ $calls{$function} };
    is +($guest->api($function, @$arguments))[0], $code, "$function finds nothing of another deployment";
}
is +($guest->api('cancel_run', $thread, $run, 'interrupt'))[0], 'run_not_found', 'cancel_run, of a final run too';
is_deeply [ $guest->events($thread, $run) ], [], 'read_events finds nothing of another deployment';
is_deeply [ $guest->thread_events($thread) ], [ [ ('') x 6, 'f' ] ], 'read_thread_events finds no thread of another deployment';
is_deeply $guest->body('read_checkpoint', $thread, '{}', undef, 1000), { tuple => undef }, 'read_checkpoint finds nothing of another deployment';
is_deeply $guest->body('read_checkpoints', $thread, '{}', undef, 1000), { tuples => [], next => undef }, 'read_checkpoints finds nothing of another deployment';
is_deeply $guest->body('read_delta', $thread, qq({"checkpoint_id":"$next","channels":["secret"]}), undef, 1000), { secret => { writes => [] } },
    'read_delta finds nothing of another deployment';
is_deeply $guest->body('search_assistants', ['agent'], '{}'), [],
    'search_assistants finds nothing of another deployment';
is $guest->body('get_item', 'a', 'k', 'true'), 'null', 'get_item finds nothing of another deployment';
is_deeply $guest->body('search_items', '{}', undef), { items => [] }, 'search_items finds nothing of another deployment';
is_deeply $guest->body('list_namespaces', '{}'), { namespaces => [] }, 'list_namespaces finds nothing of another deployment';
is +($guest->api('put_item', '{"namespace":["a"],"key":"k","value":{"own":1}}'))[0], 'ok', 'put_item changes nothing of another deployment';
is +($guest->api('delete_item', '{"namespace":["a"],"key":"k"}'))[0], 'ok', 'delete_item deletes nothing of another deployment';
is_deeply $guest->body('search_threads', qq({"ids":["$thread"]})), [], 'search_threads finds nothing of another deployment';
is $guest->body('count_threads', qq({"ids":["$thread"]})), 0, 'count_threads finds nothing of another deployment';
is $guest->body('count_assistants', ['agent'], '{}'), 0, 'count_assistants finds nothing of another deployment';
is +($guest->try_run($guest->thread, assistant => $mine, graph => undef))[0], 'assistant_not_found', 'an assistant of another deployment accepts no run';
is +($guest->try_run($guest->thread, graphs => []))[0], 'assistant_not_found', 'a graph of another deployment accepts no run';
is +($guest->try_run($thread))[0], 'thread_not_found', 'create_run finds no thread of another deployment';

subtest 'an id that another deployment uses is free' => sub {
    is +($guest->api('create_thread', $thread, 'raise', '{}'))[0], 'ok';
    is +($guest->api('create_thread', $thread, 'do_nothing', '{"metadata":{"x":1}}'))[0], 'ok';
    is_deeply $guest->body('get_thread', $thread)->{metadata}, {}, 'do_nothing returns the thread of the own deployment';
    is_deeply $guest->body('get_state', $thread, undef)->{values}, {};
    is +($guest->api('get_state', $thread, $checkpoint))[0], 'checkpoint_not_found';
    is +($guest->try_run($thread, run => $run, key => 'key', hash => 'other', strategy => 'reject'))[0], 'ok',
        'the ids of runs and idempotency keys of another deployment are free';
    my ($own) = $guest->claim($worker);
    is $own->{deployment_id}, $guest->deployment;
    is AgentSQL::decode($own->{start})->{input}, undef;
    my $wrong = AgentSQL::encode([ AgentSQL::Play::put($own, channels => { x => $digest }) ]);
    like $session->error("select * from public.save_items($worker, '$wrong')"), qr/\A22/, 'a value of another deployment cannot be named';
    $guest->save($worker, AgentSQL::Play::checkpoint($own, id => $checkpoint, messages => ['mine']),
        AgentSQL::Play::put($own, id => $checkpoint),
        AgentSQL::Play::finish($own));
    is_deeply $guest->messages($thread), ['mine'];
    is +($guest->api('delete_thread', $thread))[0], 'ok';
};

subtest 'an id of an assistant of another deployment is free' => sub {
    is +($guest->api('create_assistant', $mine, ['agent'], '{"graph_id":"agent","if_exists":"do_nothing","name":"own"}'))[1]{name}, 'own';
    my $own = $guest->thread;
    $guest->run($own, assistant => $mine, graph => undef);
    is +($guest->api('delete_assistant', $mine, 'true', undef))[0], 'waiting';
    is +($guest->api('get_thread', $own))[0], 'thread_not_found', 'its threads are deleted with it';
    is +($guest->api('delete_assistant', $mine, 'true', undef))[0], 'ok';
    is $owner->body('get_assistant', $mine)->{name}, 'secret', 'the one of the other deployment stays';
};

subtest 'if_not_exists creates a thread in the deployment of the request' => sub {
    is +($guest->try_run($thread, request => { if_not_exists => 'create' }))[0], 'ok';
    is_deeply $guest->body('get_thread', $thread)->{metadata},
        { graph_id => 'agent', assistant_id => $AgentSQL::ASSISTANT };
    $guest->api('delete_thread', $thread);
};

subtest 'a stateless run is created in the deployment of the request' => sub {
    my ($code, undef, $new, $hidden) = $guest->try_stateless(key => 'key', hash => 'x');
    is $code, 'ok', 'the idempotency key of another deployment is free';
    is $guest->body('find_run_thread', $new), $hidden;
    is +($owner->api('find_run_thread', $new))[0], 'run_not_found';
    $guest->api('delete_thread', $hidden);
    my (undef, $body, $runs, $threads) = $guest->try_batch({}, {});
    is_deeply [ map { $guest->status($threads->[$_], $runs->[$_]) } 0, 1 ], [qw(pending pending)], 'a batch of stateless runs is created in the deployment of the request';
    is $owner->status($threads->[0], $runs->[0]), 'run_not_found';
    is +($guest->api('cancel_runs_by_status', 'all', 'rollback', 'ffffffff-ffff-ffff-ffff-ffffffffffff'))[0], 'ok',
        'a cancel by status finds runs of the own deployment only';
    $guest->api('delete_thread', $_) for @$threads;
};

subtest 'a lease named with another deployment is fenced' => sub {
    my $forged = { %$leased, deployment_id => $guest->deployment };
    is_deeply $guest->save($worker, AgentSQL::Play::finish($forged)), { $active => [ 'fenced', 'f' ] };
    is_deeply $guest->check($worker, $forged), { $active => 'lost' };
    is_deeply $guest->release($worker, 'true', $forged), { $active => 'gone' };
};

is snapshot(), $before, 'the data of the other deployment is unchanged';

subtest 'a search of the store counts and finds own items beside newer ones of another deployment' => sub {
    my ($theirs, $own) = map { AgentSQL::Play->new($session, deployment => $session->value("select agent.ensure_deployment('$_')")) } qw(many one);
    is +($own->api('put_item', '{"namespace":["b"],"key":"k","value":{"own":1}}'))[0], 'ok';
    $session->query("insert into agent.store_items
        select '@{[ $theirs->deployment ]}', array['b'], i::text, '{\"own\":0}', 9, null, null, agent.now() + interval '1 min', agent.now() + interval '1 min'
          from generate_series(1, 50001) i");
    my ($code, $found) = $own->api('search_items', '{"namespace_prefix":["b"],"limit":2}', undef);
    is $code, 'ok', 'those of another deployment are not examined';
    is_deeply [ map { $_->{value} } @{ $found->{items} } ], [ { own => 1 } ], 'they take no room of the limit';
    $session->query("delete from agent.store_items where deployment_id = '@{[ $theirs->deployment ]}'");
};

subtest 'ensure_deployment: the same name has the same id' => sub {
    my $id = $session->value("select agent.ensure_deployment('shop')");
    is $session->value("select agent.ensure_deployment('shop')"), $id, 'a second call returns it';
    isnt $session->value("select agent.ensure_deployment('desk')"), $id, 'another name has another id';
    is $session->value("select agent.ensure_deployment('default')"), $AgentSQL::DEPLOYMENT, 'default is built in';
    is $session->value("select count(*) from agent.deployments where name = 'shop'"), 1;
    $session->query('delete from agent.deployments where name = \'shop\'');
    is $session->value("select agent.ensure_deployment('shop')"), $id, 'a database without it derives the same id';
    is $session->error("select agent.ensure_deployment('Shop')"), '23514', 'another spelling is refused';
};

subtest 'ensure_deployment: two servers may create one at the same time' => sub {
    my $other = $db->session;
    $session->query('begin');
    my $id = $session->value("select agent.ensure_deployment('both')");
    $other->send("select agent.ensure_deployment('both')");
    ok $other->waits_for($session), 'the second server waits for the first';
    $session->query('commit');
    is $other->receive, $id;
    $other->close;
};

subtest 'a deployment of an account is named with the account' => sub {
    my $account = AgentSQL::uuid();
    $session->query("insert into agent.accounts (account_id, name, home_region) select '$account', 'Acme', region from agent.region");
    my $list = join ',', 'shop', "shop\@$account", 'shop@' . AgentSQL::uuid();
    my @ids = map { $_->[1] } $session->query("select * from agent.register_worker('accounts', 'boot', 1, 1, 10, 20, '{$list}', '{a,b,c}')");
    is $ids[0], $session->value("select agent.ensure_deployment('shop')"), 'register_worker: a name alone is of the built-in account';
    is $ids[1], $session->value("select agent.ensure_deployment('shop', '$account')"), 'register_worker: NAME@ACCOUNT is that of the account';
    isnt $ids[1], $ids[0], 'the accounts have one each';
    is $ids[2], '00000000-0000-0000-0000-000000000000', 'register_worker: of an account that does not exist it is the nil UUID';
    my $theirs = AgentSQL::Play->new($session, deployment => $ids[1]);
    $theirs->run($theirs->thread, request => { webhook => 'https://hooks.example/' });
    my ($run) = $theirs->claim($worker);
    $theirs->save($worker, AgentSQL::Play::finish($run));
    is $session->value("select deployment from agent.claim_webhooks($worker, 6, 64, 1000000, 30, '{}', 0, 0)"), "shop\@$account",
        'claim_webhooks: a delivery names it in the same way';
};

subtest 'claim_runs: deployments take turns' => sub {
    my @ids = map { $session->value("select agent.ensure_deployment('$_')") } qw(long short);
    my ($long, $short) = map { AgentSQL::Play->new($session, deployment => $_) } @ids;
    $long->run($long->thread) for 1 .. 5;
    $short->run($short->thread) for 1 .. 2;
    my %claimed;
    $claimed{ $_->{deployment_id} }++ for $short->claim($worker, deployments => \@ids, limit => 4);
    is_deeply \%claimed, { $ids[0] => 2, $ids[1] => 2 }, 'the one with fewer runs does not wait for the other one';
    is scalar $short->claim($worker), 0, 'a claim for one deployment gets no run of another';
    is scalar $long->claim($worker), 3;
};

subtest 'claim_runs: a pool gets runs for its own free slots only' => sub {
    my @ids = map { $session->value("select agent.ensure_deployment('$_')") } qw(long short);
    my ($long, $short) = map { AgentSQL::Play->new($session, deployment => $_) } @ids;
    $long->run($long->thread) for 1 .. 5;
    $short->run($short->thread) for 1 .. 2;
    my $claimed = sub {
        my %count;
        $count{ $_->{deployment_id} }++ for $short->claim($worker, deployments => \@ids, limits => [@_]);
        return [ map { $count{$_} // 0 } @ids ];
    };
    is_deeply $claimed->(0, 0), [ 0, 0 ], 'without a free slot there is no run';
    is_deeply $claimed->(1, 50), [ 1, 2 ], 'slots that a pool does not use are not for another one';
    is_deeply $claimed->(2, 50), [ 2, 0 ], 'a pool without free slots gets no slots of another one';
    is_deeply $claimed->(50, 0), [ 2, 0 ], 'the others are claimed when there are slots';
};

subtest 'claim_runs: the graphs of a pool share its free slots' => sub {
    my @clients = map { AgentSQL::Play->new($session, deployment => $session->value("select agent.ensure_deployment('$_')")) } qw(long short);
    my %graph = (shop => '15e14de9-4afb-5a11-8afe-59e1e9ce4e4a', agent => $AgentSQL::ASSISTANT);
    for my $client (@clients) {
        $client->run($client->thread, graph => $_, assistant => $graph{$_}, graphs => [ keys %graph ]) for (sort keys %graph) x 4;
    }
    my @ids = map { $_->deployment } @clients;
    my %claimed;
    $claimed{ $_->{deployment_id} }++
        for $clients[0]->claim($worker, deployments => \@ids, graphs => '{agent,shop}', limits => [ 2, 3 ]);
    is_deeply \%claimed, { $ids[0] => 2, $ids[1] => 3 };
};

subtest 'every function that takes a deployment was tried' => sub {
    my %covered = map { $_ => 1 } keys %calls, qw(create_thread create_thread_state create_run create_stateless_run create_stateless_runs read_events
        read_thread_events search_threads count_threads search_assistants count_assistants create_assistant read_checkpoint read_checkpoints read_delta
        put_item get_item delete_item search_items list_namespaces);
    my @api = map { $_->[0] } $session->query("select distinct p.proname from pg_proc p
        where p.pronamespace = 'agent'::regnamespace and p.proargnames[1] = 'p_deployment_id'
        and p.proargnames && '{code,seq,id}'::text[]");
    is_deeply [ grep { !$covered{$_} } @api ], [];
    cmp_ok scalar @api, '>', 10;
};

done_testing;
