# SPDX-License-Identifier: Apache-2.0
# Two httpd on one database, as on two hosts: of one deployment they share everything,
# of different deployments nothing.
use strict;
use warnings;
use AgentTest::Client qw(run_path);
use AgentTest::Database;
use AgentTest::Gate;
use AgentTest::Postgres;
use AgentTest::Process qw(descendants_of is_alive);
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

my $gate = AgentTest::Gate->new;

# A host with the graphs `agent` and `gated`; the first one makes the database.
my $conninfo;
sub start_host {
    my ($name, $deployment) = @_;
    my $server = AgentTest::Server->new(
        ($conninfo ? (database => $conninfo) : ()),
        config => AgentTest::Server::shared_config() . $gate->graph . "AgentNode $name\nAgentDeployment $deployment\n");
    $server->start;
    $conninfo //= AgentTest::Postgres->shared->conninfo('agent', $ENV{PGDATABASE});
    return ($server, AgentTest::Client->new(url => $server->url));
}

sub wait_reported {
    my ($client) = @_;
    return wait_for('the graphs to be reported', sub { 2 == grep { $client->get("/assistants/$_/graph")->{json}{nodes}[0] } qw(agent gated) });
}

sub workers_of {
    return { map { split /\t/ } sql("select w.node_name, count(*) from agent.run_queue q join agent.workers w using (worker_id)
        where q.deployment_id = (select deployment_id from agent.deployments where name = '$_[0]') group by 1") };
}

my ($first, $a) = start_host('a', 'shop');
my ($second, $b) = start_host('b', 'shop');

subtest 'hosts: two of one deployment have the same system assistants' => sub {
    wait_reported($_) for $a, $b;
    my @found = map { $_->post('/assistants/search', { sort_by => 'name' })->{json} } $a, $b;
    is_deeply $found[0], $found[1], 'hosts: both find the same assistants';
    is scalar @{ $found[0] }, 2, 'hosts: each graph has one system assistant';
    is sql("select count(*) || ' ' || count(distinct deployment_id) from agent.graphs"), '2 1', 'hosts: their reports are stored once';
    is sql("select string_agg(name, ' ' order by name) from agent.deployments"), 'default shop', 'hosts: the deployment is created once';
};

subtest 'hosts: an assistant that one creates is known to the other at once' => sub {
    my $made = $a->post('/assistants', { graph_id => 'agent', config => { tags => ['a'] } })->{json};
    is_deeply $b->get("/assistants/$made->{assistant_id}")->{json}, $made, 'hosts: the other one has it';
    is $b->request('PATCH', "/assistants/$made->{assistant_id}", { config => { tags => ['b'] } })->{json}{version}, 2, 'hosts: it can change it';
    my $run = $a->start_run('hello', assistant_id => $made->{assistant_id});
    is_deeply $run->{kwargs}{config}{tags}, ['b'], 'hosts: new runs have the change';
    is $b->join_run($run)->{messages}[0]{content}, 'hello', 'hosts: its runs are executed';
    is $b->delete("/assistants/$made->{assistant_id}?delete_threads=true")->{status}, 204, 'hosts: it can be deleted with its threads';
    is $a->get("/threads/$run->{thread_id}")->{status}, 404, 'hosts: its threads are gone on both';
};

subtest 'hosts: a run is executed by either host, once, and can be joined through both' => sub {
    my @runs = map { ($_ % 2 ? $a : $b)->start_run('use gate {}', assistant_id => 'gated') } 1 .. 40;
    $gate->wait_calls(40);
    my $workers = workers_of('shop');
    is +($workers->{a} // 0) + ($workers->{b} // 0), 40, 'hosts: all are leased';
    my @waiting = map { $_->begin('GET', run_path($runs[0]) . '/join') } $a, $b;
    my $stream = $b->begin('GET', run_path($runs[1]) . '/stream');
    $gate->open;
    is $_->{status}, 200, 'hosts: a join through either host has the result' for map { $a->finish($_) } @waiting;
    like $a->finish($stream)->{body}, qr/event: values/, 'hosts: a stream through the other host has the events';
    is $b->join_run($_)->{messages}[0]{content}, 'use gate {}', 'hosts: each run ends' for @runs;
    is sql("select count(*) from agent.usage_events where attempts <> 1"), 0, 'hosts: no run took a second attempt';
};

subtest 'hosts: a cancel through one stops a run that the other executes' => sub {
    my @runs = map { $a->start_run('sleep 600000') } 1 .. 2;
    wait_for('both to execute', sub { poll("select count(*) from agent.run_queue where state = 'leased'") == 2 });
    is $b->post(run_path($_) . '/cancel?wait=true')->{status}, 204, 'hosts: the cancel is done' for @runs;
    is $a->get_run($_)->{status}, 'interrupted', 'hosts: the run is interrupted' for @runs;
};

subtest 'hosts: when one is stopped, the other executes its runs' => sub {
    my @runs = map { $b->start_run('sleep 1000') } 1 .. 6;
    $second->stop;
    is $a->join_run($_)->{messages}[0]{content}, 'sleep 1000', 'hosts: a run goes on' for @runs;
};

my ($third, $c) = start_host('c', 'desk');

subtest 'hosts: of another deployment, a host executes and shows its own runs only' => sub {
    wait_reported($c);
    my $run = $a->start_run('use gate {}', assistant_id => 'gated');
    my $other = $c->start_run('use gate {}', assistant_id => 'gated');
    $gate->wait_calls(2);
    is_deeply [ workers_of('shop'), workers_of('desk') ], [ { a => 1 }, { c => 1 } ], 'hosts: each executes the runs of its deployment';
    is $c->get(run_path($run))->{status}, 404, 'hosts: a run of the other deployment is not found';
    is $a->get(run_path($other) . '/join')->{status}, 404, 'hosts: it cannot be joined';
    is $c->post('/runs/cancel', { status => 'all' })->{status}, 204, 'hosts: a cancel of all runs';
    is $a->get_run($run)->{status}, 'pending', 'hosts: a cancel of all runs leaves those of another deployment';
    $gate->open;
    is $a->join_run($run)->{messages}[0]{content}, 'use gate {}', 'hosts: they go on';
    is scalar @{ $c->post('/assistants/search', {})->{json} }, 2, 'hosts: a graph of the same name is reported for each deployment';
    is sql("select count(*) from agent.graphs where graph_id = 'agent'"), 2, 'hosts: both reports are stored';
};

subtest 'hosts: without a host of the deployment its runs wait' => sub {
    $third->stop;
    my $waiting = sql("select deployment_id from agent.deployments where name = 'desk'");
    ok $waiting, 'hosts: the deployment stays';
    my ($again, $d) = start_host('d', 'desk');
    is $d->join_run($d->start_run('hello'))->{messages}[0]{content}, 'hello', 'hosts: a new host serves it';
    is sql("select deployment_id from agent.deployments where name = 'desk'"), $waiting, 'hosts: under the same id';
    undef $again;
};

# Every process at once, as when the machine loses its power.
sub kill_host {
    my ($server) = @_;
    my $parent = $server->httpd_pid;
    # It starts no others in the place of those that are killed.
    kill STOP => $parent;
    my @all = ($parent, descendants_of($parent));
    kill KILL => @all;
    wait_for('the processes to end', sub { !grep { is_alive($_) } @all });
    unlink $server->pid_file;
    return;
}

subtest 'hosts: when one is killed as a whole, the other goes on with its runs' => sub {
    my ($lost, $e) = start_host('e', 'pair');
    my $active = $e->new_thread;
    my @runs = ($e->create_run($active, 'use gate {}', assistant_id => 'gated'),
        $e->create_run($active, 'hello', multitask_strategy => 'enqueue'),
        map { $e->start_run('use gate {}', assistant_id => 'gated') } 1 .. 5);
    $gate->wait_calls(6);
    is workers_of('pair')->{e}, 6, 'hosts: the first one executes them';
    my ($left, $f) = start_host('f', 'pair');
    my @waiting = map { $f->begin('GET', run_path($_) . '/join') } @runs;
    my $stream = $f->begin('GET', run_path($runs[0]) . '/stream');
    kill_host($lost);
    # Its lease ends, without waiting for it.
    sql("update agent.workers set lease_until = now() - interval '6 seconds' where node_name = 'e'");
    $gate->wait_calls(12);
    is workers_of('pair')->{f}, 6, 'hosts: the second one executes them';
    $gate->open;
    my @values = map { $f->finish($_)->{json} } @waiting;
    is $_->{messages}[0]{content}, 'use gate {}', 'hosts: a join of the other host has the values' for @values[ 0, 1, 2 .. 6 ];
    my @begun = $f->finish($stream)->{body} =~ /^event: metadata
?$/mg;
    is scalar @begun, 2, 'hosts: a stream of the other host shows both attempts';
    is_deeply [ map { $f->get_run($_)->{status} } @runs ], [ ('success') x 7 ], 'hosts: all succeed, also one that was enqueued';
    is sql("select count(*) from agent.usage_events u join agent.deployments d using (deployment_id) where d.name = 'pair'"), 7, 'hosts: each ends once';
    undef $_ for $lost, $left;
};

undef $_ for $first, $second, $third;
done_testing;
