# SPDX-License-Identifier: Apache-2.0
# States that a node itself writes to its thread, through the library: the history has
# each, with its values, as it has the steps of the graph.
use strict;
use warnings;
use AgentTest::Database qw(sql);
use AgentTest::Wait;
use FindBin;
use lib $FindBin::Bin;
use SdkTest;
use Test::More;

my %file_of = (python => 'own_states.py', javascript => 'own_states.mjs');
my %folder_of;
for my $language (sort keys %file_of) {
    ($folder_of{$language}, my $packages) = SdkTest::with_graph($language, $file_of{$language}, "$language-own");
    plan skip_all => "the user of runners may not read $packages" if !SdkTest::is_readable($packages);
}
my $sdk = SdkTest->serve(\%folder_of, [ map { "$_-own" } sort keys %file_of ]);
my $client = $sdk->client;
local @ENV{qw(PGHOST PGUSER PGDATABASE)} = ($sdk->{postgres}->host, qw(agent agent));

# The states of a thread, the oldest first: [source, names, next].
sub states_of {
    my ($thread) = @_;
    my $history = $client->get("/threads/$thread/history?limit=100")->{json};
    return [ map { [ $_->{metadata}{source}, $_->{values}{names}, $_->{next} ] } reverse @{$history} ];
}

for my $language (sort keys %file_of) {
    my $run = sub {
        my ($thread, %more) = @_;
        return $client->post("/threads/$thread/runs/wait", { assistant_id => "$language-own", input => { names => ['in'] }, %more })->{json};
    };
    my $thread = $client->new_thread;
    is_deeply $run->($thread)->{names}, [qw(in write last)], "$language: a run goes on from its own step, not from what a node wrote";
    is_deeply states_of($thread), [
        [ 'input', [], ['__start__'] ], [ 'loop', ['in'], ['write'] ], [ 'update', [qw(in own)], ['last'] ],
        [ 'loop', [qw(in write)], ['last'] ], [ 'loop', [qw(in write last)], [] ] ],
        "$language: the history has what a node wrote beside the steps";
    $thread = $client->new_thread;
    $run->($thread, durability => 'exit');
    is_deeply states_of($thread), [ [ 'update', ['own'], ['last'] ], [ 'loop', [qw(in write last)], [] ] ],
        "$language: with durability exit too";
    $thread = $client->new_thread;
    $run->($thread, interrupt_after => ['write']);
    is_deeply [ map { $_->[0] } @{ states_of($thread) } ], [qw(input loop update loop)], "$language: at a breakpoint too";
    is_deeply $client->get_state($thread)->{next}, ['last'], "$language: the state is that of the step";
    is_deeply $run->($thread, input => undef)->{names}, [qw(in write last)], "$language: from which the next run goes on";
    for my $durability (qw(async sync exit)) {
        $thread = $client->new_thread;
        $run->($thread, input => { names => ['in'], n => 13 }, durability => $durability);
        is $client->get("/threads/$thread")->{json}{status}, 'error', "$language, durability $durability: a node fails after it has written a state";
        my $state = $client->get_state($thread);
        # With `exit` the library has put nothing before.
        is_deeply [ @{$state}{qw(next)}, $state->{values}{names} ], [ ['last'], [ $durability eq 'exit' ? () : 'in', 'own' ] ],
            "$language, durability $durability: what the node wrote is the state of the thread";
        is_deeply $run->($thread, input => undef)->{names}, [ @{ $state->{values}{names} }, 'last' ],
            "$language, durability $durability: from which the next run goes on";
    }
    for my $durability (qw(async sync exit)) {
        $thread = $client->new_thread;
        my $body = { assistant_id => "$language-own", input => { names => ['in'], n => 15 }, durability => $durability };
        my $id = $client->post("/threads/$thread/runs", $body)->{json}{run_id};
        wait_for('the state that the node writes', sub {
            sql("select count(*) from agent.checkpoint_snapshots where thread_id = '$thread' and metadata->>'source' = 'update'") });
        $client->post("/threads/$thread/runs/$id/cancel?wait=true");
        is_deeply $client->get_state($thread)->{values}{names}, [ $durability eq 'exit' ? () : 'in', 'own' ],
            "$language, durability $durability: what a node wrote before its run was cancelled is the state of the thread";
        is $client->get("/threads/$thread/runs/$id")->{json}{status}, 'interrupted', "$language, durability $durability: the run was cancelled";
    }
    $thread = $client->new_thread;
    is $run->($thread, input => { names => ['in'], n => 14 })->{__error__}{message}, 'thirteen',
        "$language: a node fails after it has written a state that no line can have: the error is that of the node";
    $client->delete("/threads/$thread");
}
# The rule of these: each state that a library has put can be seen, so that none must be rendered later.
is sql('select count(*) from agent.checkpoint_snapshots s where not exists (select from agent.checkpoints c '
    . "where (c.deployment_id, c.thread_id, c.checkpoint_id) = (s.deployment_id, s.thread_id, s.checkpoint_id))"), 0,
    'each checkpoint of the libraries has its rendered state';
$sdk->finish;
