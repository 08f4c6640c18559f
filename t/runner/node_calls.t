# SPDX-License-Identifier: Apache-2.0
# The runner for JavaScript: the calls update and describe.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cpanel::JSON::XS;
use NodeApplication qw(runner);
use RunnerTest qw(new_uuid lines_of);
use Test::More;

my $runner = runner(typed => './typed.ts:graph', map { $_ => "./graphs.mjs:$_" } qw(steps asks nested factory costly));

# Calls an operation; returns its lines.
sub call {
    my ($op, $arguments, %fields) = @_;
    my $call = { type => 'call', run_id => new_uuid(), epoch => 1, attempt => 1, op => $op, thread_id => undef,
        graph_id => 'steps', arguments => $arguments, config => {}, context => {}, checkpoint => undef, %fields };
    $runner->send($call);
    return $runner->lines_of_run($call->{run_id});
}

sub value_of { return $_[-1]{status} eq 'success' ? $_[-1]{value} : $_[-1]{error} }

# --- update ----------------------------------------------------------------------

my $thread = new_uuid();
my @lines = $runner->run(graph_id => 'steps', thread_id => $thread, input => { count => 1 }, interrupt_before => ['second']);
my ($head) = reverse lines_of('checkpoint', @lines);
@lines = call('update', { supersteps => [ [ { values => { count => 5 }, as_node => 'first' } ] ] }, $runner->next_run($thread));
my @checkpoints = lines_of('checkpoint', @lines);
is scalar @checkpoints, 1, 'update: one checkpoint for a superstep';
is $checkpoints[0]{parent}, $head->{checkpoint_id}, 'update: it follows the thread\'s';
is_deeply [ @{ $checkpoints[0] }{qw(values next)} ], [ { count => 7, names => [ { name => 'first' } ] }, ['second'] ],
    'update: it has the new state and the next node';
is_deeply $checkpoints[0]{metadata}, { source => 'update', step => 2, writes => { first => { count => 5 } }, parents => {} },
    'update: its metadata say what was written';
is_deeply [ lines_of('event', @lines) ], [], 'update: there are no events';
@lines = $runner->run(graph_id => 'steps', $runner->next_run($thread));
is +(reverse lines_of('checkpoint', @lines))[0]{values}{count}, 17, 'update: a run continues it';

$thread = new_uuid();
@lines = call('update', { supersteps => [
    [ { values => { count => 1 }, as_node => '__input__' } ],
    [ { values => { count => 2 }, as_node => 'first' } ],
    [ { command => { update => { count => 3 } }, as_node => 'second' } ] ] }, thread_id => $thread);
@checkpoints = lines_of('checkpoint', @lines);
is_deeply [ map { [ $_->{metadata}{source}, $_->{values}{count}, $_->{next} ] } @checkpoints ],
    [ [ 'input', 0, ['__start__'] ], [ 'update', 2, ['second'] ], [ 'update', 5, [] ] ],
    'update: several supersteps, from the input to the end';
is_deeply [ map { $_->{parent} } @checkpoints ], [ undef, map { $_->{checkpoint_id} } @checkpoints[ 0, 1 ] ],
    'update: the parent of each superstep\'s checkpoint is the one before';
@lines = call('update', { supersteps => [ [ { values => undef, as_node => '__copy__' } ] ] }, $runner->next_run($thread));
is_deeply [ map { @{$_}{qw(parent)}, $_->{metadata}{source} } lines_of('checkpoint', @lines) ],
    [ $checkpoints[-1]{checkpoint_id}, 'fork' ], 'update: a copy has the source fork, and the original as its parent';
@lines = call('update', { supersteps => [ [ { values => {}, as_node => 'nobody' } ] ] }, $runner->next_run($thread));
is_deeply value_of(@lines), { error => 'InvalidUpdateError', message => 'Node "nobody" does not exist' }, 'update: an unknown node is an error';

# --- describe --------------------------------------------------------------------

is value_of(call('describe', { what => 'schemas' }, graph_id => 'typed'))->{state_schema}{properties}{count}{type}, 'number',
    'describe: schemas';
is_deeply [ map { $_->{id} } @{ value_of(call('describe', { what => 'graph', xray => \1 }, graph_id => 'nested'))->{nodes} } ],
    [qw(__start__ before middle:inner:deep middle:inner:deeper __end__)], 'describe: a drawing with all subgraphs';
is_deeply [ map { $_->{id} } @{ value_of(call('describe', { what => 'graph', xray => \0 }, graph_id => 'nested'))->{nodes} } ],
    [qw(__start__ before middle __end__)], 'describe: a drawing without them';
is_deeply value_of(call('describe', { what => 'subgraphs', namespace => undef, recurse => \0 }, graph_id => 'nested')), { middle => {} },
    'describe: subgraphs of the first level';
is_deeply value_of(call('describe', { what => 'subgraphs', namespace => undef, recurse => \1 }, graph_id => 'nested')),
    { middle => {}, 'middle|inner' => {} }, 'describe: all subgraphs';
is_deeply value_of(call('describe', { what => 'subgraphs', namespace => 'middle|inner', recurse => \0 }, graph_id => 'nested')),
    { 'middle|inner' => {} }, 'describe: one subgraph';
is_deeply [ map { $runner->{ready}{graphs}{$_}{has_subgraphs} ? 1 : 0 } qw(steps nested) ], [ 0, 1 ], 'ready: the report names graphs with subgraphs';
is_deeply [ map { $runner->{ready}{graphs}{$_}{factory} ? 1 : 0 } qw(steps factory) ], [ 0, 1 ], 'ready: the report names graphs that are made for each run';

# --- factories -------------------------------------------------------------------

ok $runner->{ready}{graphs}{costly}{drawing}, 'factory: for the report it has no executionRuntime';
@lines = $runner->run(graph_id => 'costly', thread_id => $thread = new_uuid(), context => { user => 'u' }, input => { count => 1 });
is_deeply +(reverse lines_of('checkpoint', @lines))[0]{values}{answer}, { user => 'u' }, 'factory: for a run it has one, with the context';
my @costly = (graph_id => 'costly', context => { user => 'u' });
for my $case ([ describe => { what => 'schemas' }, @costly ], [ describe => { what => 'graph', xray => \0 }, @costly ],
    [ update => { supersteps => [ [ { values => { count => 5 }, as_node => 'made' } ] ] }, @costly, $runner->next_run($thread) ]) {
    @lines = call(@{$case});
    is_deeply [ @{ $lines[-1] }{qw(status error)} ], [ 'success', undef ], "factory: for a call $case->[0] it has none";
}

is value_of(call('nothing', {}))->{error}, 'UnknownOperationError', 'call: an unknown operation';

done_testing;
