# SPDX-License-Identifier: Apache-2.0
# ttl of threads, AgentThreadTTL and AgentStoreTTL.
use strict;
use warnings;
use AgentTest::Client qw(run_body);
use AgentTest::Database;
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

my $server = AgentTest::Server->new(config => AgentTest::Server::shared_config() . "AgentThreadTTL 90min\nAgentStoreTTL 2h\n"
    . "<Location /short>\nAgentPrefix /short\nAgentThreadTTL 90s\n</Location>\n"
    . "<Location /off>\nAgentPrefix /off\nAgentThreadTTL Off\n</Location>\n"
    . "<Location /inherits>\nAgentPrefix /inherits\n</Location>\n");
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

sub create { my ($body, $prefix) = @_; return $client->post(($prefix // '') . '/threads', $body // {}) }
sub read_thread { return $client->get("/threads/$_[0]?include=ttl")->{json} }
sub minutes { my $ttl = read_thread($_[0])->{ttl}; return $ttl && $ttl->{ttl_minutes} }

subtest 'a thread has the ttl of the location that it is created in' => sub {
    my $thread = create()->{json}{thread_id};
    my $ttl = read_thread($thread)->{ttl};
    is_deeply [ sort keys %{$ttl} ], [qw(expires_at strategy ttl_minutes)], 'include=ttl: the record shows it';
    is $ttl->{strategy}, 'delete', 'include=ttl: the strategy is delete';
    is $ttl->{ttl_minutes}, 90, 'AgentThreadTTL: it is in minutes';
    is sql("select expires_at = created_at + interval '90 minutes' from agent.threads join agent.thread_expiries using (deployment_id, thread_id)
        where thread_id = '$thread'"), 't', 'AgentThreadTTL: its time begins with the creation';
    ok !exists $client->get("/threads/$thread")->{json}{ttl}, 'include: without it the record has no ttl';
    is minutes(create({}, '/inherits')->{json}{thread_id}), 90, 'AgentThreadTTL: a location inherits it';
    is minutes(create({}, '/short')->{json}{thread_id}), 1.5, 'AgentThreadTTL: a location has its own';
    is minutes(create({}, '/off')->{json}{thread_id}), undef, 'AgentThreadTTL: a location switches it off';
};

subtest 'the ttl of a request counts, as the SDKs send it and as a number' => sub {
    is minutes(create({ ttl => $_ }, '/off')->{json}{thread_id}), 5, 'ttl' for 5, { ttl => 5, strategy => 'delete' }, { ttl => 5 };
    my $thread = create({ ttl => 5 })->{json}{thread_id};
    is minutes($thread), 5, 'ttl: it is stronger than AgentThreadTTL';
    is $client->request('PATCH', "/threads/$thread", { ttl => { ttl => 7, strategy => 'delete' } })->{status}, 200, 'ttl: an update is accepted';
    is minutes($thread), 7, 'ttl: an update replaces it';
    for my $none (undef, { ttl => undef }) {
        my $exempt = create()->{json}{thread_id};
        is minutes($exempt), 90, 'ttl: a thread that has AgentThreadTTL';
        is $client->request('PATCH', "/threads/$exempt", { ttl => $none })->{status}, 200, 'ttl null: an update is accepted';
        is minutes($exempt), undef, 'ttl null: an update exempts the thread from AgentThreadTTL';
        is minutes(create({ ttl => $none })->{json}{thread_id}), 90, 'ttl null: a new thread has AgentThreadTTL';
    }
    my $copy = $client->post("/threads/$thread/copy", {})->{json}{thread_id};
    is minutes($copy), 7, 'ttl: a copy has it too';
};

subtest 'threads that requests create for runs and states have AgentThreadTTL' => sub {
    my $id = sprintf '01890000-0000-7000-9000-%012x', $$;
    my $run = $client->post("/short/threads/$id/runs", run_body('hello', if_not_exists => 'create'))->{json};
    $client->join_run($run);
    is minutes($id), 1.5, 'if_not_exists: the thread has it';
    my $kept = $client->post('/short/runs', run_body('hello', on_completion => 'keep'))->{json};
    is minutes($kept->{thread_id}), 1.5, 'on_completion "keep": the thread has it';
    my ($batched) = @{ $client->post('/short/runs/batch', [ run_body('hello', on_completion => 'keep') ])->{json} };
    is minutes($batched->{thread_id}), 1.5, 'batch: the thread has it';
    is minutes($client->post('/short/runs', run_body('hello'))->{json}{thread_id}), undef, 'a temporary thread has none';
    my $made = create({ metadata => { graph_id => 'agent' },
        supersteps => [ { updates => [ { values => { messages => [] }, as_node => '__input__' } ] } ] }, '/short');
    is $made->{status}, 200, 'supersteps: the thread is created' or diag $made->{body};
    is minutes($made->{json}{thread_id}), 1.5, 'supersteps: the thread has it';
};

subtest 'an expired thread is deleted, and one with activity is not' => sub {
    my ($expired, $kept) = map { create({ ttl => 60 })->{json}{thread_id} } 1, 2;
    sql("update agent.thread_expiries set expires_at = now() where thread_id in ('$expired', '$kept')");
    my $run = $client->create_run($kept, 'hello', after_seconds => 3600);
    wait_for('the deletion', sub { $client->get("/threads/$expired")->{status} == 404 });
    is $client->get("/threads/$kept")->{json}{status}, 'busy', 'ttl: a thread with an unfinished run is kept';
    $client->post("/threads/$kept/runs/$run->{run_id}/cancel?wait=true");
    is sql("select expires_at > now() + interval '59 minutes' from agent.thread_expiries where thread_id = '$kept'"), 't',
        'ttl: its time begins again with the end of the run';
};

subtest 'an item of the store that is put without a ttl has AgentStoreTTL' => sub {
    my %item = (namespace => ['ttl'], value => {});
    is $client->request('PUT', '/store/items', { %item, key => 'default' })->{status}, 204, 'AgentStoreTTL: an item is put';
    $client->request('PUT', '/off/store/items', { %item, key => 'location' });
    $client->request('PUT', '/store/items', { %item, key => 'own', ttl => 5 });
    is_deeply { map { split /\t/ } sql('select key, ttl from agent.store_items order by key') },
        { default => '02:00:00', location => '02:00:00', own => '00:05:00' }, 'AgentStoreTTL: the ttl of the put is stronger';
};

done_testing;
