# SPDX-License-Identifier: Apache-2.0
# The runner for JavaScript with the oldest version of the library that it supports.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cpanel::JSON::XS;
use NodeApplication qw(runner);
use RunnerTest qw(start_line new_uuid lines_of events_of metadata_of_events);
use Test::More;

my $runner = runner(fixtures => 'node-1.0', common => './common.cjs:graph',
    map { $_ => "./graphs.mjs:$_" } qw(steps asks chat nested fans act loop leaves));

sub last_checkpoint { return (grep { !length $_->{ns} } lines_of('checkpoint', @_))[-1] }

is $runner->{ready}{runtime}{library_version}, '1.0.0', 'version: ready has the version of the library';
is_deeply [ grep { $_->{error} } values %{ $runner->{ready}{graphs} } ], [], 'version: all graphs are loaded';

my $thread = new_uuid();
my @lines = $runner->run(graph_id => 'steps', thread_id => $thread, input => { count => 5 }, stream_modes => [qw(values updates tasks)]);
is_deeply [ map { $_->{values}{count} } lines_of('checkpoint', @lines) ], [ 0, 5, 6, 16 ], 'version: each step has a checkpoint';
is_deeply [ map { $_->{checkpoint_id} } grep { $_->{event} eq 'values' } lines_of('event', @lines) ],
    [ map { $_->{checkpoint_id} } grep { $_->{metadata}{step} >= 0 } lines_of('checkpoint', @lines) ],
    'version: values refer to the checkpoints';
@lines = $runner->run(graph_id => 'steps', $runner->next_run($thread), input => { count => 4 });
is last_checkpoint(@lines)->{values}{count}, 31, 'version: the next run continues the state';

@lines = $runner->run(graph_id => 'leaves', input => { count => 1 }, stream_modes => ['values']);
is_deeply [ events_of('command', @lines) ],
    [ { graph => '__parent__', update => { count => 5 }, resume => undef, goto => [ 'second', { node => 'third', arg => { n => 1 } } ] } ],
    'version: one to the parent of the root graph is an event';
is_deeply [ $lines[-1]{status}, map { $_->{task}{error} } lines_of('task', @lines) ], [ 'success', undef ], 'version: the run ends with success, without an error of its task';
is last_checkpoint(@lines)->{values}{count}, 1, 'version: the update is that of the caller';

@lines = $runner->run(graph_id => 'chat', input => { messages => [ { role => 'user', content => 'hi' } ] },
    stream_modes => [qw(values messages messages-tuple)]);
is join('', map { $_->[0]{content} } events_of('messages', @lines)), 'one two three', 'version: tokens are streamed';

# This version copies each string of configurable into the metadata.
my @chat = (graph_id => 'chat', input => { messages => [ { role => 'user', content => 'hi' } ] });
@lines = $runner->run(@chat, stream_modes => [qw(messages messages-tuple events)], context => { size => 's' x 20_000 },
    config => { configurable => { x => 'x' x 20_000, e => 'e' x 20_000, user_id => 'u' }, metadata => { mine => 'y' x 9000, e => '' } });
my @repeated = metadata_of_events(@lines);
is_deeply [ grep { $_->{x} || $_->{e} || $_->{size} } @repeated ], [],
    'version: long members of configurable and context are not repeated with each token';
is_deeply [ grep { length $_->{mine} != 9000 || $_->{user_id} ne 'u' || !$_->{thread_id} } @repeated ], [], 'version: other metadata are';
@lines = $runner->run(@chat, stream_modes => ['messages-tuple'], config => { configurable => { model => 'm' x 6000, map { $_ => $_ x 5000 } qw(x y z) } });
my ($few) = metadata_of_events(@lines);
is_deeply [ map { length($few->{$_} // '') } qw(model x y z) ], [ 6000, 5000, 5000, 0 ],
    'version: of several copied members the longest beside model are left out, until 16 KB are left';

$thread = new_uuid();
@lines = $runner->run(graph_id => 'asks', thread_id => $thread, input => { count => 1 });
is_deeply [ map { $_->{task}{interrupts}[0]{value} } lines_of('task', @lines) ], [ { question => 'go on?' } ], 'version: an interrupt is in its task';
@lines = $runner->run(graph_id => 'asks', $runner->next_run($thread), strict_resume => Cpanel::JSON::XS::true, command => { resume => 'yes' });
is_deeply $lines[-1]{error}, { error => 'StrictResumeError', message => '@langchain/langgraph 1.0.0 of the application does not know '
        . 'strict_resume: install a newer version, or leave it out' }, 'version: a resume that must be strict is refused, with a reason';
@lines = $runner->run(graph_id => 'asks', $runner->next_run($thread), strict_resume => Cpanel::JSON::XS::false, command => { resume => 'yes' });
is last_checkpoint(@lines)->{values}{answer}, 'yes', 'version: a run with resume goes on';

$thread = new_uuid();
@lines = $runner->run(graph_id => 'nested', thread_id => $thread, input => { count => 1 },
    stream_modes => [qw(values updates messages-tuple)], stream_subgraphs => Cpanel::JSON::XS::true);
ok +(grep { $_->{ns} =~ /\Amiddle:[-\w]+\|inner:/ } lines_of('checkpoint', @lines)), 'version: subgraphs have checkpoints';
@lines = $runner->run(graph_id => 'nested', $runner->next_run($thread), command => { resume => 'deep answer' });
is last_checkpoint(@lines)->{values}{answer}, 'deep answer', 'version: the answer reaches a subgraph';

@lines = $runner->run(graph_id => 'steps', thread_id => $thread = new_uuid(), input => { count => 1 }, interrupt_after => ['first']);
is_deeply last_checkpoint(@lines)->{next}, ['second'], 'version: a breakpoint after a node';
@lines = $runner->run(graph_id => 'steps', $runner->next_run($thread));
is last_checkpoint(@lines)->{values}{count}, 12, 'version: a run goes on after it';

@lines = $runner->run(graph_id => 'fans', input => { count => 50 });
is scalar @{ last_checkpoint(@lines)->{values}{names} }, 50, 'version: the results of parallel branches are in the state';
@lines = $runner->run(graph_id => 'act', input => { answer => 'fail' });
is_deeply $lines[-1]{error}, { error => 'RangeError', message => 'out of range' }, 'version: an error of a node ends the run';
@lines = $runner->run(graph_id => 'act', input => { answer => 'context' }, context => { user => 'u' });
is_deeply last_checkpoint(@lines)->{values}{answer}{context}, { user => 'u' }, 'version: a node gets the context';
@lines = $runner->run(graph_id => 'common', input => {}, durability => 'exit');
is scalar(lines_of('checkpoint', @lines)), 1, 'version: durability exit saves one checkpoint';
my %exit = (graph_id => 'nested', durability => 'exit');
my $stopped = new_uuid();
@lines = $runner->run(%exit, thread_id => $stopped, input => { count => 1 });
is scalar(lines_of('checkpoint', @lines)), 3, 'version: durability exit saves subgraphs that stop';
@lines = $runner->run(%exit, $runner->next_run($stopped));
is_deeply [ $lines[-1]{status}, lines_of('put', @lines) ], ['success'], 'version: a run that stops at the same place again puts no checkpoint';

my $sync = start_line(graph_id => 'steps', input => { count => 1 }, durability => 'sync', stream_modes => ['tasks']);
$runner->withhold_acks;
$runner->send($sync);
my @puts;
@lines = $runner->lines_until(sub { push @puts, $_[0] if defined $_[0]{ack}; return @puts == 1 });
push @lines, $runner->run(graph_id => 'steps', input => { count => 1 });
is_deeply [ grep { $_->{event} eq 'tasks' && $_->{data}{name} ne '__start__' } lines_of('event', @lines) ], [],
    'version: with durability sync no node begins before the checkpoint is committed';
$runner->acknowledge($_) for @puts;
@lines = $runner->lines_until(sub { $runner->acknowledge($_[0]) if defined $_[0]{ack}; return $_[0]{type} eq 'end' });
is $lines[-1]{status}, 'success', 'version: with durability sync the run goes on after the commit';
delete $runner->{is_withholding_acks};

my $start = start_line(graph_id => 'loop', input => { count => 1 }, config => { recursion_limit => 100_000 });
$runner->send($start);
$runner->lines_until(sub { $_[0]{type} eq 'checkpoint' && $_[0]{metadata}{step} == 3 });
$runner->send({ type => 'stop', run_id => $start->{run_id}, epoch => 1, reason => 'drain', deadline_ms => 60_000 });
@lines = $runner->lines_of_run($start->{run_id});
is $lines[-1]{status}, 'drained', 'version: a run is drained without the library\'s help';
@lines = $runner->run(graph_id => 'loop', $runner->next_run($start->{thread_id}), config => { recursion_limit => 3 });
is $lines[-1]{error}{error}, 'GraphRecursionError', 'version: another run goes on from there';

my $call = { type => 'call', run_id => new_uuid(), epoch => 1, attempt => 1, op => 'update', graph_id => 'steps', config => {},
    context => {}, $runner->next_run($thread), arguments => { supersteps => [ [ { values => { count => 5 }, as_node => 'first' } ] ] } };
$runner->send($call);
is last_checkpoint($runner->lines_of_run($call->{run_id}))->{values}{count}, 17, 'version: an update is applied';
done_testing;
