# SPDX-License-Identifier: Apache-2.0
# A host without graphs serves the runs that other hosts execute.
use strict;
use warnings;
use AgentTest::Client qw(run_path);
use AgentTest::Database;
use AgentTest::Postgres;
use AgentTest::Process qw(supervisor_pid);
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

my $executing = AgentTest::Server->new;
$executing->start;
my $serving = AgentTest::Server->new(
    database => AgentTest::Postgres->shared->conninfo('agent', $ENV{PGDATABASE}),
    config   => qq(AgentNode serving\n<Location "/">\nSetHandler agent\n</Location>\n));
$serving->start;
my $other = AgentTest::Client->new(url => $executing->url);
my $client = AgentTest::Client->new(url => $serving->url);

ok wait_for('its supervisor', sub { supervisor_pid($serving->httpd_pid) }),
    'serving: a host without graphs has a supervisor';
ok wait_for('it to register', sub { sql("select count(*) from agent.workers where node_name = 'serving' and state = 'live' and graph_ids = '{}'") == 1 }),
    'serving: the supervisor of a host without graphs registers without graphs';
is $client->get($_)->{status}, 200, "serving: a host without graphs answers $_" for qw(/ok /ok?check_db=1 /info);

my $run = $other->start_run('hello');
my $joined = $client->get(run_path($run) . '/join');
is $joined->{status}, 200, 'serving: a run that another host executes can be joined';
is $client->get_run($run)->{status}, 'success', 'serving: a run of another host can be read';
is_deeply $client->get_state($run->{thread_id}), $other->get_state($run->{thread_id}),
    'serving: the state of a thread can be read';

wait_for('the other host to report its graphs', sub { $client->get('/assistants/agent/schemas')->{json}{input_schema} });
my $created = $client->start_run('hello');
is $client->get(run_path($created) . '/join')->{status}, 200, 'serving: a run of a graph that only another host declares is executed there';
is $client->post('/runs/wait', { assistant_id => $created->{assistant_id}, input => { messages => [] } })->{status}, 200,
    'serving: the id of its assistant names the graph too';
is_deeply $client->get("/assistants/agent$_")->{json}, $other->get("/assistants/agent$_")->{json},
    "serving: /assistants/agent$_ is that of the other host" for '', qw(/schemas /graph /subgraphs);
my $refused = $client->post("/threads/$run->{thread_id}/runs", { assistant_id => 'nobody', input => {} });
is $refused->{status}, 404, 'serving: a run of a graph that no host declares is refused';
is $refused->{json}{detail}, 'No assistant found for "nobody". Make sure the assistant ID is for a valid assistant or'
    . ' a valid graph ID.', 'serving: the detail names the graph';

undef $serving;
undef $executing;
done_testing;
