# SPDX-License-Identifier: Apache-2.0
# Where an attempt that follows a lost one goes on: at an earlier checkpoint than the thread's last one, in a subgraph that
# keeps its state, in a step of which tasks have ended before, and at a breakpoint of a graph that a function calls.
use strict;
use warnings;
use AgentTest::Applications qw(folder_of node_application python runner_of);
use AgentTest::Env qw(is_sanitized is_counted);
use FindBin;
use lib $FindBin::Bin;
use ApplicationTest;
use RunnerTest qw(start_line lines_of new_uuid);
use Test::More;

plan skip_all => 'the runners of applications have no such build' if is_sanitized() || is_counted();

# A runner whose process is lost after a line: nothing of what follows arrives.
package LostRunner {
    use parent -norequire, 'ApplicationTest';

    sub take_line {
        my ($self, $line) = @_;
        return if $self->{is_lost};
        $self->SUPER::take_line($line);
        $self->{is_lost} = $self->{last} && $self->{last}->($line);
        return;
    }
}

my %file_of = (python => [ 'starts.py', <<'PYTHON' ], javascript => [ 'starts.mjs', <<'JAVASCRIPT' ]);
import operator
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

class State(TypedDict, total=False):
    log: Annotated[list, operator.add]
    text: str

class Memory(TypedDict, total=False):
    text: str
    out: str

async def add(state: State):
    return {"log": ["add"]}

async def twice(state: State):
    return {"log": [f"{interrupt('first')} {interrupt('second')}"]}

async def ask(state: State):
    return {"log": [interrupt("ask")]}

async def other(state: State):
    return {"log": [interrupt("other")]}

async def pay(state: Memory):
    return {"out": interrupt("pay for " + state["text"])}

def make(**nodes):
    builder = StateGraph(State)
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(START, name)
    return builder

memory = StateGraph(Memory).add_node("pay", pay).add_edge(START, "pay").compile(checkpointer=True)

async def call(state: State):
    return {"log": ["paid " + (await memory.ainvoke({"text": state["text"]}))["out"]]}

# The function names another graph before.
async def call_second(state: State):
    await BOXES["first"].ainvoke({"log": []})
    return {"log": (await BOXES["second"].ainvoke({"log": []}))["log"]}

steps = StateGraph(State).add_sequence([("plan", add), ("danger", add)]).add_edge(START, "plan")
BOXES = {"first": steps.compile(), "second": steps.compile(interrupt_after=["plan"])}
second = make(ready=add).add_node("call", call_second).add_edge("ready", "call").compile()

one = make(add=add, twice=twice).compile()
two = make(ask=ask, other=other).compile()
keep = make(ready=add).add_node("call", call).add_edge("ready", "call").compile()
# It stops before its next node in each of the first runs.
inner = StateGraph(State).add_sequence([(name, add) for name in "abcd"]).add_edge(START, "a").compile(interrupt_before=["b", "c", "d"])
fan = make(ask=ask, inner=inner).compile()
PYTHON
import { Annotation, interrupt, START, StateGraph } from '@langchain/langgraph';

const State = Annotation.Root({
    log: Annotation({ reducer: (left, right) => left.concat(right), default: () => [] }), text: Annotation(),
});
const Memory = Annotation.Root({ text: Annotation(), out: Annotation() });
const add = async () => ({ log: ['add'] });
const twice = async () => ({ log: [`${interrupt('first')} ${interrupt('second')}`] });
const ask = async () => ({ log: [interrupt('ask')] });
const other = async () => ({ log: [interrupt('other')] });

function make(nodes) {
    const builder = new StateGraph(State);
    Object.entries(nodes).forEach(([name, node]) => builder.addNode(name, node).addEdge(START, name));
    return builder;
}

const memory = new StateGraph(Memory).addNode('pay', async ({ text }) => ({ out: interrupt(`pay for ${text}`) }))
    .addEdge(START, 'pay').compile({ checkpointer: true });
const call = async ({ text }, config) => ({ log: [`paid ${(await memory.invoke({ text }, config)).out}`] });

// The function names another graph before.
const steps = make({ plan: add }).addNode('danger', add).addEdge('plan', 'danger');
const boxes = { first: steps.compile(), second: steps.compile({ interruptAfter: ['plan'] }) };
async function callSecond(state, config) {
    await boxes.first.invoke({ log: [] }, config);
    return { log: (await boxes.second.invoke({ log: [] }, config)).log };
}
export const second = make({ ready: add }).addNode('call', callSecond).addEdge('ready', 'call').compile();

export const one = make({ add, twice }).compile();
export const two = make({ ask, other }).compile();
export const keep = make({ ready: add }).addNode('call', call).addEdge('ready', 'call').compile();
// It stops before its next node in each of the first runs.
const inner = make({ a: add }).addNode('b', add).addNode('c', add).addNode('d', add).addEdge('a', 'b').addEdge('b', 'c').addEdge('c', 'd')
    .compile({ interruptBefore: ['b', 'c', 'd'] });
export const fan = make({ ask, inner }).compile();
JAVASCRIPT

sub runner_in {
    my ($language, $records) = @_;
    my ($name, $version) = split / /, $language;
    my ($interpreter, $program) = runner_of($name);
    my ($file, $text) = @{ $file_of{$name} };
    my %graphs = map { $_ => "./$file:$_" } qw(one two keep fan second);
    my $folder = folder_of($name, { graphs => \%graphs }, $file => $text);
    if ($version && $name eq 'javascript') {
        unlink "$folder/node_modules" or die "$folder: $!\n";
        symlink node_application("node-$version") . '/node_modules', "$folder/node_modules" or die "symlink: $!\n";
    }
    return LostRunner->new(command => [ $version && $name eq 'python' ? python($version) : $interpreter, $program ], graphs => \%graphs,
        directory => $folder, records => $records // RecordStore->new);
}

# value -> id of the questions that the lines show.
sub questions {
    my @tasks = ((map { $_->{task} } lines_of('task', @_)), map { @{ $_->{tasks} } } lines_of('checkpoint', @_));
    return { map { $_->{value} => $_->{id} } map { @{ $_->{interrupts} // [] } } @tasks };
}

# Whether a line stores what a task has written to a channel.
sub writes_to {
    my ($line, $channel) = @_;
    return $line->{type} eq 'put_writes' && $line->{task_id} =~ /[^0-]/ && grep { $_->[1] eq $channel } @{ $line->{writes} };
}

# Whether a line stores the command, or a question.
sub is_command { my ($line) = @_; return $line->{type} eq 'put_writes' && $line->{task_id} !~ /[^0-]/ }
sub is_question { my ($line) = @_; return writes_to($line, '__interrupt__') }

# The runner executes a run until a line, and is lost; the next one repeats the run. Returns that, and the lines of both
# attempts. more: members of the second `start`.
sub repeat {
    my ($runner, $language, $last, $start, %more) = @_;
    $runner->{last} = $last;
    $runner->send($start);
    my @before = $runner->lines_until($last);
    my $records = $runner->records;
    undef $_[0];
    undef $runner;
    $runner = runner_in($language, $records);
    my %next = $runner->next_run($start->{thread_id});
    # As the server does for a run that has put a checkpoint.
    my %rest = ($next{checkpoint}{run_id} // '') eq $start->{run_id} ? (%next, command => undef, input => undef) : ();
    my $is_answered = $records->has_answered($start->{thread_id}, $start->{run_id});
    my @lines = $runner->run(%{$start}, %rest, attempt => 2, epoch => 2, answered => $is_answered ? \1 : \0, %more);
    is $lines[-1]{status}, 'success', "$language: the repeated run succeeds" or diag explain $lines[-1]{error};
    return ($runner, \@before, \@lines);
}

sub head {
    my ($runner, $thread) = @_;
    my $stored = $runner->records->thread($thread);
    return $stored->{checkpoints}{ $stored->{head} };
}

for my $language ('python', 'python 1.0', 'javascript', 'javascript 1.0') {
    # A command at an earlier checkpoint, after which the thread has gone on.
    for my $case ([ 'one value' => { resume => 'yes' } ], [ 'a value, an update' => { resume => 'yes', update => { text => 'U' } } ],
        [ 'a value for an id' => undef ])
    {
        for my $lost ([ 'the command' => \&is_command ], [ 'the next question' => \&is_question ]) {
            my ($kind, $command) = @{$case};
            my ($what, $last) = @{$lost};
            # The library for Python does not store values for ids.
            next if !$command && $what eq 'the command';
            my $title = "$language, an earlier checkpoint, $kind, lost behind $what";
            my $runner = runner_in($language);
            my @asked = $runner->run(graph_id => 'one', thread_id => my $thread = new_uuid(), input => { log => ['a'] });
            my $earlier = $runner->records->thread($thread)->{head};
            $runner->run(graph_id => 'one', $runner->next_run($thread), input => { log => ['b'] });
            my $newest = $runner->records->thread($thread)->{head};
            $command //= { resume => { questions(@asked)->{first} => 'yes' } };
            my $start = start_line(graph_id => 'one', $runner->next_run($thread, $earlier), command => $command,
                config => { configurable => { checkpoint_id => $earlier } });
            ($runner, undef, my $lines) = repeat($runner, $language, $last, $start);
            is_deeply [ keys %{ questions(@{$lines}) } ], ['second'], "$title: the second question is open" or diag explain questions(@{$lines});
            is $runner->records->thread($thread)->{head}, $newest, "$title: the thread's last checkpoint is the same";
        }
    }

    # The thread's last checkpoint, which the client names. An attempt that a drain or another run's fault has ended is not counted.
    my $runner = runner_in($language);
    $runner->run(graph_id => 'one', thread_id => my $thread = new_uuid(), input => { log => ['a'] });
    my %named = (config => { configurable => { checkpoint_id => $runner->records->thread($thread)->{head} } }, command => { resume => 'yes' });
    my $start = start_line(graph_id => 'one', $runner->next_run($thread), %named);
    ($runner, undef, my $lines) = repeat($runner, $language, \&is_question, $start, attempt => 1);
    is_deeply [ keys %{ questions(@{$lines}) } ], ['second'], "$language, the last checkpoint, named: the second question is open";

    # A subgraph that keeps its state has a checkpoint of the run before.
    $runner = runner_in($language);
    $thread = new_uuid();
    $runner->run(graph_id => 'keep', thread_id => $thread, input => { text => 'A' });
    $runner->run(graph_id => 'keep', $runner->next_run($thread), command => { resume => 'yes' });
    is_deeply head($runner, $thread)->{values}{log}, [ 'add', 'paid yes' ], "$language: the first run has asked its question";
    $start = start_line(graph_id => 'keep', $runner->next_run($thread), input => { text => 'B' });
    my $is_before_call = sub { my ($line) = @_; return $line->{type} eq 'checkpoint' && ($line->{next}[0] // '') eq 'call' };
    ($runner, undef, $lines) = repeat($runner, $language, $is_before_call, $start);
    is_deeply [ keys %{ questions(@{$lines}) } ], ['pay for B'], "$language: a repeated attempt executes a subgraph that keeps its state";
    $start = start_line(graph_id => 'keep', $runner->next_run($thread), command => { resume => 'no' });
    ($runner) = repeat($runner, $language, sub { $_[0]{ns} && writes_to($_[0], 'out') }, $start);
    is_deeply head($runner, $thread)->{values}{log}, [ 'add', 'paid yes', 'add', 'paid no' ],
        "$language: what it was given goes on where the lost attempt was";

    # A breakpoint after a node of the second graph that a function calls.
    $runner = runner_in($language);
    my $is_behind = sub { $_[0]{type} eq 'put' && $_[0]{ns} =~ /\Acall:[^|]+\|1\z/ && $_[0]{metadata}{step} == 1 };
    $start = start_line(graph_id => 'second', thread_id => $thread = new_uuid(), input => { log => [] });
    ($runner, undef, $lines) = repeat($runner, $language, $is_behind, $start);
    my $title = "$language, a breakpoint after a node of a graph that a function calls";
    is_deeply head($runner, $thread)->{next}, ['call'], "$title: the repeated attempt stops at it";
    # The oldest libraries store what they have read once more.
    is_deeply [ grep { writes_to($_, 'log') } @{$lines} ], [], "$title: the repeated attempt executes no node" if $language !~ /1[.]0/;
    $runner->run(graph_id => 'second', $runner->next_run($thread), input => undef);
    is_deeply head($runner, $thread)->{values}{log}, [ ('add') x 3 ], "$title: the next run passes it";

    # A question was answered and the node has ended, which no line has shown.
    $runner = runner_in($language);
    my @asked = $runner->run(graph_id => 'two', thread_id => $thread = new_uuid(), input => { log => [] });
    $start = start_line(graph_id => 'two', $runner->next_run($thread), command => { resume => { questions(@asked)->{ask} => 'yes' } });
    ($runner, my $before, $lines) = repeat($runner, $language, sub { writes_to($_[0], 'log') }, $start);
    my %shown = map { $_->{id} => $_ } map { $_->{task} } lines_of('task', @{$before}, @{$lines});
    my ($task) = grep { $_->{name} eq 'ask' } @{ head($runner, $thread)->{tasks} };
    is_deeply $shown{ $task->{id} }{interrupts}, [], "$language: a question that was answered in the lost attempt is not open"
        or diag explain \%shown;
    # The states of the oldest library for JavaScript have no results.
    is_deeply $shown{ $task->{id} }{result}, { log => ['yes'] }, "$language: its task has its result" if $language ne 'javascript 1.0';

    # An update to a step of which an earlier run has completed a node.
    $runner = runner_in($language);
    @asked = $runner->run(graph_id => 'fan', thread_id => $thread = new_uuid(), input => { log => ['in'] });
    $runner->run(graph_id => 'fan', $runner->next_run($thread), command => { resume => { questions(@asked)->{ask} => 'yes' } });
    $start = start_line(graph_id => 'fan', $runner->next_run($thread), command => { update => { log => ['U'] } });
    ($runner, undef, $lines) = repeat($runner, $language, \&is_command, $start);
    next if $language =~ /javascript/;
    my ($pending) = grep { $_->{id} !~ /[^f-]/ } map { $_->{task} } lines_of('task', @{$lines});
    is_deeply $pending->{next}, ['inner'], "$language: the state with a repeated update has the result of an earlier run's node"
        or diag explain $lines;
}

done_testing;
