# SPDX-License-Identifier: Apache-2.0
# An application in JavaScript through httpd: the example shop of the quick start and
# graphs of t/runner/fixtures/node, with the real runner and database.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../runner";
use AgentTest::Client;
use AgentTest::Database;
use AgentTest::Env qw(build_dir root slurp write_file);
use AgentTest::Server;
use AgentTest::Wait;
use Cpanel::JSON::XS;
use File::Copy qw(copy);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use NodeApplication qw(application);
use Test::More;

# The example, with the packages of the fixture, which has the same versions.
my $dir = tempdir('/tmp/agent-test-node.XXXXXX', CLEANUP => 1);
chmod 0755, $dir or die "$dir: $!\n";
my $fixture = application('node');
my $example = root() . '/conf/quickstart/examples/javascript';
make_path("$dir/shop/src");
copy($_, "$dir/shop") or die "$_: $!\n" for map { "$example/$_" } qw(langgraph.json package.json);
copy($_, "$dir/shop/src") or die "$_: $!\n" for glob "$example/src/*";
symlink "$fixture/node_modules", "$dir/shop/node_modules" or die "symlink: $!\n";

my $server = AgentTest::Server->new(config => <<"CONF");
AgentRunner "${\ build_dir() }/agent-runner"
AgentApplication shop $dir/shop
AgentApplication fixture $fixture
<Location "/">
    SetHandler agent
</Location>
CONF
$server->start;
my $client = AgentTest::Client->new(url => $server->url);
wait_for('the runners', sub { (() = $server->error_log =~ /runner \d+ of pool default\/\w+ is ready/g) >= 2 });

sub texts_of { return [ map { "$_->{type}: $_->{content}" } @{ $_[0]{messages} } ] }

# --- The example -----------------------------------------------------------------

my $thread = $client->new_thread;
my $run = $client->create_run($thread, 'price of a kettle', assistant_id => 'shop');
my $values = $client->join_run($run);
is texts_of($values)->[0], 'human: price of a kettle', 'application: the state has the input';
like texts_of($values)->[-1], qr/\Aai: .*\d+ EUR/, 'application: the model answers with the result of a tool, from its environment';
$run = $client->create_run($thread, 'order 2 cups', assistant_id => 'shop');
$client->join_run($run);
my $state = $client->get_state($thread);
is_deeply $state->{next}, ['tools'], 'application: an interrupt stops the run';
like $state->{tasks}[0]{interrupts}[0]{value}{question}, qr/Order 2 x cup/, 'application: the state has what it asks';
is $client->get("/threads/$thread")->{json}{status}, 'interrupted', 'application: the thread is interrupted';
my $asked = $state->{tasks}[0]{interrupts}[0]{id};
my %strict = (assistant_id => 'shop', strict_resume => Cpanel::JSON::XS::true());
$values = $client->post("/threads/$thread/runs/wait", { %strict, command => { resume => { '0' x 32 => 'yes' } } })->{json};
is_deeply $values->{__error__}, { error => 'UnknownInterruptError', message => 'Unknown or already-consumed interrupt: ' . '0' x 32 },
    'application: with strict_resume, an answer to no interrupt is an error';
is $client->get_state($thread)->{tasks}[0]{interrupts}[0]{id}, $asked, 'application: the thread stays as it was, and asks';
$values = $client->join_run($client->create_run($thread, undef, %strict, command => { resume => { $asked => 'yes' } }));
is scalar @{ $values->{messages} }, 8, 'application: the next run goes on with the conversation';
like texts_of($values)->[-1], qr/\Aai: \S/, 'application: the answer reached the tool';
# The report of the runner is saved beside its first runs.
my $graph;
wait_for('the report of the runner', sub { $graph = $client->get('/assistants/shop/graph')->{json}; return @{ $graph->{nodes} // [] } });
is_deeply [ map { $_->{id} } @{ $graph->{nodes} } ], [qw(__start__ agent tools __end__)], 'application: the assistant has a drawing';

# --- State operations --------------------------------------------------------------

$thread = $client->new_thread;
my %steps = (assistant_id => 'steps');
is $client->join_run($client->create_run($thread, undef, %steps, input => { count => 1 }))->{count}, 12, 'application: a graph without messages';
my $update = $client->post("/threads/$thread/state", { values => { count => 100 }, as_node => 'first' });
is $update->{status}, 200, 'application: the state can be updated';
is_deeply [ @{ $client->get_state($thread) }{qw(next)}, $client->get_state($thread)->{values}{count} ], [ ['second'], 112 ],
    'application: as a node';
is_deeply [ map { $_->{metadata}{writes} } @{ $client->post("/threads/$thread/history", {})->{json} }[ 0, 1, -1 ] ],
    [ { first => { count => 100 } }, { second => { count => 10, names => [ { name => 'second' } ] } }, { __start__ => { count => 1 } } ], 'application: each state names what was written, by node';
is $client->join_run($client->create_run($thread, undef, %steps, input => undef))->{count}, 122, 'application: a run goes on after the update';

$thread = $client->new_thread;
my @history;
my $stream = $client->post("/threads/$thread/runs/stream", { assistant_id => 'nested', input => { count => 1 },
    stream_mode => [ 'values', 'updates' ], stream_subgraphs => \1 });
like $stream->{body}, qr/^event: updates\|middle:[-\w]+\r?$/m, 'application: subgraphs stream with their namespace'
    or diag $stream->{body};
is $client->join_run($client->create_run($thread, undef, assistant_id => 'nested', command => { resume => 'x' }))->{answer}, 'x',
    'application: a subgraph in a subgraph gets the answer';

my $stopped = $client->new_thread;
$client->join_run($client->create_run($stopped, undef, assistant_id => 'nested', input => { count => 1 }, durability => 'exit'));
my $inner = $client->get("/threads/$stopped/state?subgraphs=true")->{json}{tasks}[0]{state};
is_deeply [ $inner->{next}, $inner->{tasks}[0]{interrupts}[0]{value} ], [ ['inner'], 'deep?' ],
    'application: with durability exit a subgraph that stops has a state';
is_deeply $client->post("/threads/$stopped/state/checkpoint", { checkpoint => $inner->{checkpoint} })->{json}{next}, ['inner'],
    'application: clients read the state of a stopped subgraph by its checkpoint too';

$run = $client->create_run($client->new_thread, undef, assistant_id => 'act', input => { answer => 'fail' });
$client->get("/threads/$run->{thread_id}/runs/$run->{run_id}/join");
is $client->get_run($run)->{status}, 'error', 'application: an error of a node is that of the run';

$run = $client->create_run($client->new_thread, undef, assistant_id => 'act', input => { answer => 'store' });
is_deeply $client->join_run($run)->{answer}, { item => { name => 'red' }, found => 1, names => [ [qw(users a)] ] },
    'application: a node uses the store';
is_deeply $client->get('/store/items?namespace=users.a&key=color')->{json}{value}, { name => 'red' }, 'application: clients read its items';
@history = @{ $client->post("/threads/$thread/history", { limit => 100 })->{json} };
is_deeply [ $history[0]{next}, $history[0]{values}{answer} ], [ [], 'x' ], 'application: the history begins with the last checkpoint';
is $history[-1]{metadata}{source}, 'input', 'application: the history ends with the checkpoint before the input';

# --- Cancel ---------------------------------------------------------

$thread = $client->new_thread;
$run = $client->create_run($thread, undef, assistant_id => 'act', input => { answer => 'ignore' });
wait_for('the node', sub { $server->error_log =~ /run $run->{run_id}: waiting/ });
is $client->post("/threads/$thread/runs/$run->{run_id}/cancel?wait=1", {})->{status}, 204, 'application: a run that ignores its signal is cancelled';
is $client->get_run($run)->{status}, 'interrupted', 'application: the status of a cancelled run is interrupted';

# --- A runner that is lost --------------------------------------------------------

my $notes = write_file("$dir/notes", '');
chmod 0666, $notes or die "$notes: $!\n";
$thread = $client->new_thread;
$run = $client->create_run($thread, undef, assistant_id => 'lost', input => { answer => $notes });
wait_for('the slow node', sub { slurp($notes) =~ /slow/ });
wait_for('the result of the other', sub {
    grep { $_->{name} eq 'quick' && $_->{result} } @{ $client->get_state($thread)->{tasks} || [] };
});
my ($process) = slurp($notes) =~ /slow (\d+)/;
kill 'KILL', $process;
is $client->join_run($run)->{count}, 11, 'application: a run goes on after the loss of its runner';
is_deeply [ slurp($notes) =~ /^(\w+)/gm ], [qw(quick slow slow)], 'application: tasks that had ended are not executed again';
# --- Durability -------------------------------------------------------------------

# Its slow node does not block again.
write_file($notes, "slow\n");
my $lock = AgentTest::Database::hold_lock('lock table agent.checkpoint_snapshots in share mode');
$run = $client->create_run($client->new_thread, undef, assistant_id => 'lost', durability => 'sync', input => { answer => $notes });
wait_for('a checkpoint that cannot be saved', sub {
    AgentTest::Database::sql("select count(*) from pg_locks where relation = 'agent.checkpoint_snapshots'::regclass and not granted") > 0;
});
is slurp($notes), "slow\n", 'application: with durability sync no node begins before the checkpoint before it is saved';
close $lock;
is $client->join_run($run)->{count}, 11, 'application: then the run goes on';
unlike $server->error_log, qr/breach|protocol/i, 'application: the runner keeps to the protocol';
undef $server;

# --- A Node that is too old ------------------------------------------------------

chomp(my $real = qx(node -p process.execPath));
write_file("$dir/old.cjs", "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '18.20.4' } });\n");
my $old = write_file("$dir/old-node", qq(#!/bin/sh\nexec '$real' --require '$dir/old.cjs' "\$\@"\n));
chmod 0755, $old or die "$old: $!\n";
$server = AgentTest::Server->new(config => <<"CONF");
AgentRunner "${\ build_dir() }/agent-runner"
AgentApplication shop $dir/shop
AgentNodeProgram $old
<AgentGraph agent>
    AgentModel demo
</AgentGraph>
<Location "/">
    SetHandler agent
</Location>
CONF
$server->start;
$client = AgentTest::Client->new(url => $server->url);
wait_for('the end of its runner', sub { $server->error_log =~ /AGT0331: runner \d+ ended/ });
like $server->error_log, qr/Node 18\.20\.4 \(\S+\) is too old: 20 or newer is needed \(AgentNodeProgram/, 'application: a Node that is too old is named in the log';
unlike $server->error_log, qr/SyntaxError|file:\/\//, 'application: without a stack trace';
is $client->join_run($client->start_run('hello'))->{messages}[0]{content}, 'hello', 'application: other graphs are served';
undef $server;

# --- A Node older than node_version -------------------------------------------------

my $manifest = decode_json(slurp("$dir/shop/langgraph.json"));
write_file("$dir/shop/langgraph.json", encode_json({ %{$manifest}, node_version => '99' }));
$server = AgentTest::Server->new(config => <<"CONF");
AgentRunner "${\ build_dir() }/agent-runner"
AgentApplication shop $dir/shop
<Location "/">
    SetHandler agent
</Location>
CONF
$server->start;
$client = AgentTest::Client->new(url => $server->url);
$run = $client->create_run($client->new_thread, undef, assistant_id => (sort keys %{ $manifest->{graphs} })[0], input => {});
is $client->join_run($run)->{__error__}{error}, 'RunnerStartError', 'application: with a Node older than node_version a run of its graph ends in error';
like $server->error_log, qr/Node \S+ \(\S+\) is too old: 99 or newer is needed by node_version of langgraph\.json/,
    'application: a Node older than node_version is named in the log';
undef $server;
done_testing;
