# SPDX-License-Identifier: Apache-2.0
# An application in Python through httpd: runs, interrupts, state, updates,
# subgraphs, errors, the store, with its records in PostgreSQL.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../runner";
use AgentTest::Applications qw(serve_applications);
use AgentTest::Client;
use AgentTest::Database;
use AgentTest::Env qw(slurp write_file);
use AgentTest::Server;
use AgentTest::Wait;
use Cpanel::JSON::XS;
use File::Copy qw(copy);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use PythonRunner qw(application);
use Test::More;

my $dir = tempdir('/tmp/agent-test-python.XXXXXX', CLEANUP => 1);
chmod 0755, $dir or die "$dir: $!\n";
for my $name (qw(basic.py faults.py broken.py agent.py)) {
    copy(application() . "/$name", "$dir/$name") or die "$name: $!\n";
}
write_file("$dir/langgraph.json", <<'JSON');
{"dependencies": ["."], "env": {"GREETING": "hello"}, "graphs": {
    "counter": {"path": "./basic.py:counter", "description": "counts"}, "chat": "./basic.py:chat",
    "family": "./basic.py:family", "approve": "./basic.py:approve", "notes": "./basic.py:notes", "lost": "./agent.py:lost",
    "faulty": "./faults.py:faulty", "waiter": "./faults.py:waiter", "broken": "./broken.py:graph"}}
JSON

my $server = AgentTest::Server->new(config => serve_applications(team => $dir));
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

sub expect_200 { my ($answer) = @_; return AgentTest::Client::expect_200('a request', $answer) }

# The values that a run of a thread leaves.
sub run_to_end {
    my ($thread, $graph, %body) = @_;
    return expect_200($client->post("/threads/$thread/runs/wait", { assistant_id => $graph, %body }));
}

sub steps { return [ map { $_->{node} // $_ } @{ $_[0]{steps} } ] }

# --- Runs ---------------------------------------------------------------------

my $thread = $client->new_thread;
my $values = run_to_end($thread, 'counter', input => { n => 1, steps => [] });
is_deeply $values, { n => 4, steps => [ { node => 'add_one' }, { node => 'double' } ] }, 'a run of an application returns its values';
$values = run_to_end($thread, 'counter', input => { n => 10 });
is_deeply [ $values->{n}, steps($values) ], [ 22, [ qw(add_one double) x 2 ] ], 'the next run goes on from the state';

my $state = $client->get_state($thread);
is $state->{values}{n}, 22, 'the state of the thread is that of the last step';
my $before = expect_200($client->get("/threads/$thread/state/$state->{parent_checkpoint}{checkpoint_id}"));
is_deeply [ $before->{values}{n}, $before->{next} ], [ 11, ['double'] ], 'the state before has the node that was next';
is_deeply $before->{tasks}[0]{result}, { n => 22, steps => [ { node => 'double' } ] }, 'the state before the last step has the result of its task';
is_deeply $state->{metadata}{writes}, { double => { n => 22, steps => [ { node => 'double' } ] } }, 'the metadata of the last step have it by node';
is_deeply [ map { $_->{metadata}{writes}{__start__} // () } @{ expect_200($client->get("/threads/$thread/history")) } ],
    [ { n => 10 }, { n => 1, steps => [] } ], 'the metadata of the first step of each run have its input';

# --- Interrupts ----------------------------------------------------------------

my $asks = $client->new_thread;
$values = run_to_end($asks, 'approve', input => { n => 0, steps => [] });
is $values->{__interrupt__}[0]{value}{question}, 'How many?', 'an interrupt is in the values';
$state = $client->get_state($asks);
is_deeply $state->{next}, ['ask'], 'the node that asks is next';
is $state->{tasks}[0]{interrupts}[0]{value}{question}, 'How many?', 'the task that asks has the interrupt';
my $asked = $state->{tasks}[0]{interrupts}[0]{id};
my %strict = (strict_resume => Cpanel::JSON::XS::true());
$values = run_to_end($asks, 'approve', command => { resume => { '0' x 32 => 1 } }, %strict);
is_deeply $values->{__error__}, { error => 'UnknownInterruptError', message => 'Unknown or already-consumed interrupt: ' . '0' x 32 },
    'with strict_resume, an answer to no interrupt is an error';
my $after = $client->get_state($asks);
is_deeply [ @{$after}{qw(checkpoint_id next)}, $after->{tasks}[0]{interrupts}[0]{id} ], [ @{$state}{qw(checkpoint_id next)}, $asked ],
    'with strict_resume, an answer to no interrupt leaves the thread as it was';
$values = run_to_end($asks, 'approve', command => { resume => { $asked => 7 } }, %strict);
is_deeply [ $values->{n}, $values->{steps}[-1] ], [ 7, { used => 7 } ], 'a command resumes the run';

# --- Commands with an update ------------------------------------------------------
# The library keeps it as writes to the checkpoint from which the run was started.

my $ADDED = { added => 'by a command' };

sub shown { my ($shown) = @_; return [ $shown->{n}, @{ $shown->{steps} } ] }
sub history_of { my ($of) = @_; return [ map { shown($_->{values}) } grep { "@{ $_->{next} }" ne '__start__' } @{ expect_200($client->get("/threads/$of/history")) } ] }

for my $durability (qw(async exit)) {
    my $title = "durability $durability: ";
    my $commanded = $client->new_thread;
    run_to_end($commanded, 'approve', input => { n => 0, steps => [] });
    $values = run_to_end($commanded, 'approve', command => { update => { n => 3, steps => [$ADDED] } }, durability => $durability);
    my $expected = [ 3, { node => 'propose' }, $ADDED ];
    is_deeply shown($values), $expected, "${title}a run whose command has an update returns it, though it stops before the next step";
    my $now = $client->get_state($commanded);
    is_deeply shown($now->{values}), $expected, "${title}the state has the update";
    is_deeply [ $now->{next}, $now->{tasks}[0]{interrupts}[0]{value}{question} ], [ ['ask'], 'How many?' ], "${title}beside the interrupt";
    is_deeply shown($client->get("/threads/$commanded")->{json}{values}), $expected, "${title}the values of the thread have it";
    my $copy = $client->post("/threads/$commanded/copy")->{json}{thread_id};
    for my $of ($commanded, $copy) {
        is_deeply history_of($of)->[0], $expected, $title . ($of eq $copy ? 'a copy has it' : 'the history has it');
        $values = run_to_end($of, 'approve', command => { resume => 7 });
        is_deeply shown($values), [ 7, { node => 'propose' }, $ADDED, { node => 'ask' }, { used => 7 } ], "${title}the next run goes on from there";
        is_deeply history_of($of)->[2], $expected, "${title}afterwards the history still has it";
    }

    # At the end of the graph.
    my $run = expect_200($client->post("/threads/$copy/runs", { assistant_id => 'approve', command => { update => { n => 9 }, goto => 'use' } }));
    is_deeply shown($client->join_run($run))->[-1], { used => 9 }, "${title}a node to which a command goes sees its update";
    is_deeply [ map { $_->[0] } @{ history_of($copy) } ], [ 9, 9, 7, 3, 0 ], "${title}the step before it shows the update"
        or diag explain history_of($copy);
    $client->delete("/threads/$copy/runs/$run->{run_id}");
    is_deeply [ map { $_->[0] } @{ history_of($copy) } ], [ 7, 7, 3, 0 ], "${title}not after the run was deleted";
}

# --- Updates, forks ---------------------------------------------------------------

my $updated = expect_200($client->post("/threads/$thread/state",
    { values => { n => 100 }, as_node => 'add_one' }));
ok $updated->{checkpoint}{checkpoint_id}, 'the state is updated';
$values = run_to_end($thread, 'counter', input => undef);
is $values->{n}, 200, 'a run goes on from the update';

# --- Subgraphs, errors -------------------------------------------------------------

my $family = $client->new_thread;
$values = run_to_end($family, 'family', input => { n => 1, steps => [] });
is $values->{n}, 101, 'a subgraph has its own checkpoints';
like expect_200($client->post('/runs/wait', { assistant_id => 'faulty', input => { do => 'raise' } }))->{__error__}{error},
    qr/LookupError/, 'the error of a node is the error of the run';

$values = run_to_end($client->new_thread, 'notes', input => { n => 3, steps => [] });
is_deeply $values->{steps}[0], { value => { n => 3 }, found => ['last'], names => [ [ 'notes', 'shared' ] ] },
    'a graph reads and writes the store';

# --- Earlier checkpoints --------------------------------------------------------------

my $again = expect_200($client->post("/threads/$asks/runs/wait",
    { assistant_id => 'approve', checkpoint_id => $state->{checkpoint}{checkpoint_id}, input => undef }));
is $again->{__interrupt__}[0]{value}{question}, 'How many?', 'a run goes back to an earlier checkpoint';
$values = run_to_end($asks, 'approve', command => { resume => 8 });
is_deeply $values->{steps}, [ { node => 'propose' }, { node => 'ask' }, { used => 8 } ], 'the branch goes on from there';

# --- Assistants -------------------------------------------------------------------------

my ($assistant) = @{ expect_200($client->post('/assistants/search', { graph_id => 'family' })) };
my $drawing = expect_200($client->get("/assistants/$assistant->{assistant_id}/graph?xray=true"));
ok +(grep { $_->{id} =~ /inner_step/ } @{ $drawing->{nodes} }), 'the drawing of an assistant has its subgraphs';
is_deeply [ keys %{ expect_200($client->get("/assistants/$assistant->{assistant_id}/subgraphs")) } ], ['child'],
    'the subgraphs of an assistant';

# --- The loss of a runner ------------------------------------------------------------------

my $notes = "$dir/notes/of_lost";
make_path("$dir/notes");
chmod 0777, "$dir/notes" or die "$dir/notes: $!\n";
my $run = $client->create_run($client->new_thread, undef, assistant_id => 'lost', input => { items => [], path => $notes });
my $process;
wait_for('the slow node', sub { ($process) = slurp($notes) =~ /process (\d+)/ });
wait_for('the result of the other', sub {
    grep { $_->{name} eq 'quick' && $_->{result} } @{ $client->get_state($run->{thread_id})->{tasks} || [] };
});
kill 'KILL', $process;
is $client->join_run($run)->{n}, 2, 'a run goes on after the loss of its runner';
is_deeply [ grep { !/process/ } split /\n/, slurp($notes) ], [qw(quick slow slow)], 'tasks that had ended are not executed again';

# --- Durability ------------------------------------------------------------------------------

# Its slow node does not block again.
my $synced = write_file("$dir/notes/of_sync", "slow\n");
chmod 0666, $synced or die "$synced: $!\n";
my $lock = AgentTest::Database::hold_lock('lock table agent.checkpoint_snapshots in share mode');
$run = $client->create_run($client->new_thread, undef, assistant_id => 'lost', durability => 'sync',
    input => { items => [], path => $synced });
wait_for('a checkpoint that cannot be saved', sub {
    AgentTest::Database::sql("select count(*) from pg_locks where relation = 'agent.checkpoint_snapshots'::regclass and not granted") > 0;
});
is slurp($synced), "slow\n", 'with durability sync no node begins before the checkpoint before it is saved';
close $lock;
is $client->join_run($run)->{n}, 2, 'the run continues when the checkpoint is saved';

undef $server;
done_testing;
