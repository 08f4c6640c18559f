# SPDX-License-Identifier: Apache-2.0
# A command in an attempt that follows a lost one: what that has stored is not given again. A value of `resume` answers
# one question, not the next one of its node, which nobody has seen; an update is applied once.
use strict;
use warnings;
use AgentTest::Applications qw(folder_of python runner_of);
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

my $UPDATE = join '-', map { '0' x $_ } 8, 4, 4, 4, 12;

my %file_of = (python => [ 'repeat.py', <<'PYTHON' ], javascript => [ 'repeat.mjs', <<'JAVASCRIPT' ]);
import asyncio
import operator
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

class State(TypedDict, total=False):
    log: Annotated[list, operator.add]
    big: str
    n: int

async def add(state: State):
    return {"log": ["add"]}

async def twice(state: State):
    return {"log": [f"{interrupt('first')} {interrupt('second')}"]}

async def once(state: State):
    return {"log": [interrupt("once")]}

async def later(state: State):
    return {"log": [interrupt("later")]}

async def thrice(state: State):
    return {"log": [f"{interrupt('first')} {interrupt('second')} {interrupt('third')}"]}

async def patient(state: State):
    for _ in range(100):
        await asyncio.sleep(0)
    return {"log": [interrupt("patient")]}

def make(*nodes, **more):
    builder = StateGraph(State)
    for name, node in more.items():
        builder.add_node(name, node)
    for name in nodes:
        builder.add_edge(START, name)
    return builder

one = make("add", "twice", add=add, twice=twice).compile()
fan = make("add", "twice", "once", add=add, twice=twice, once=once).compile()
# The questions are those of a subgraph: the second one of the same node, and of the node that follows.
inner = make("add", "inner", add=add, inner=make("twice", twice=twice).compile()).compile()
chain = make("once", once=once, later=later).add_edge("once", "later").compile()
outer = make("add", "inner", add=add, inner=chain).compile()
three = make("add", "thrice", add=add, thrice=thrice).compile()
pair = make("add", "inner", add=add, inner=make("twice", "patient", twice=twice, patient=patient).compile()).compile()
story = make("inner", inner=make("twice", twice=twice, later=later).add_edge("twice", "later").compile()).compile()
hop = make("once", once=once, add=add).add_edge("once", "add").compile()
PYTHON
import { Annotation, interrupt, START, StateGraph } from '@langchain/langgraph';

const State = Annotation.Root({
    log: Annotation({ reducer: (left, right) => left.concat(right), default: () => [] }), big: Annotation(), n: Annotation(),
});
const add = async () => ({ log: ['add'] });
const twice = async () => ({ log: [`${interrupt('first')} ${interrupt('second')}`] });
const once = async () => ({ log: [interrupt('once')] });
const later = async () => ({ log: [interrupt('later')] });
const thrice = async () => ({ log: [`${interrupt('first')} ${interrupt('second')} ${interrupt('third')}`] });

async function patient() {
    for (let turn = 0; turn < 100; turn += 1) {
        await new Promise((resolve) => { setImmediate(resolve); });
    }
    return { log: [interrupt('patient')] };
}

function make(first, nodes) {
    const builder = new StateGraph(State);
    Object.entries(nodes).forEach(([name, node]) => builder.addNode(name, node));
    first.forEach((name) => builder.addEdge(START, name));
    return builder;
}

export const one = make(['add', 'twice'], { add, twice }).compile();
export const fan = make(['add', 'twice', 'once'], { add, twice, once }).compile();
// The questions are those of a subgraph: the second one of the same node, and of the node that follows.
export const inner = make(['add', 'inner'], { add, inner: make(['twice'], { twice }).compile() }).compile();
const chain = make(['once'], { once, later }).addEdge('once', 'later').compile();
export const outer = make(['add', 'inner'], { add, inner: chain }).compile();
export const three = make(['add', 'thrice'], { add, thrice }).compile();
export const pair = make(['add', 'inner'], { add, inner: make(['twice', 'patient'], { twice, patient }).compile() }).compile();
export const story = make(['inner'], { inner: make(['twice'], { twice, later }).addEdge('twice', 'later').compile() }).compile();
export const hop = make(['once'], { once, add }).addEdge('once', 'add').compile();
JAVASCRIPT

sub runner_in {
    my ($language, $records) = @_;
    my ($name, $version) = split / /, $language;
    my ($interpreter, $program) = runner_of($name);
    my ($file, $text) = @{ $file_of{$name} };
    my %graphs = map { $_ => "./$file:$_" } qw(one fan inner outer three pair story hop);
    return LostRunner->new(command => [ $version ? python($version) : $interpreter, $program ], graphs => \%graphs,
        directory => folder_of($name, { graphs => \%graphs }, $file => $text), records => $records);
}

# value -> id of the questions that the lines show.
sub questions {
    my @tasks = ((map { $_->{task} } lines_of('task', @_)), map { @{ $_->{tasks} } } lines_of('checkpoint', @_));
    return { map { $_->{value} => $_->{id} } map { @{ $_->{interrupts} // [] } } @tasks };
}

# The values that the lines show for the update of a command.
sub update_of { return (map { $_->{task}{values} } grep { $_->{task}{id} eq $UPDATE } lines_of('task', @_))[-1] }

# The channels that a node has written, if a line stores that.
sub writes_of_node {
    my ($line) = @_;
    my @writes = $line->{type} eq 'put_writes' && $line->{task_path} ne '' ? @{ $line->{writes} } : ();
    return { map { $_->[1] => 1 } @writes };
}

# Whether a line stores the answers of a node.
sub is_answer { my ($line) = @_; return writes_of_node($line)->{__resume__} }

# Whether a line stores what a node of the root graph has written or asked.
sub is_end { my ($line) = @_; return $line->{type} eq 'put_writes' && ($line->{ns} // '') eq '' && $line->{task_path} ne '' }

# Whether a line stores the next question of a node which has been answered.
sub is_next_question { my ($line) = @_; return is_answer($line) && writes_of_node($line)->{__interrupt__} }

# A function of a line: whether a subgraph has stored a question and, in either order, the checkpoint to which it belongs.
sub question {
    my ($asks, %put) = ('');
    return sub {
        my ($line) = @_;
        $put{ $line->{checkpoint_id} } = 1 if $line->{type} eq 'put';
        $asks = $line->{checkpoint_id} if $line->{ns} && writes_of_node($line)->{__interrupt__};
        return $put{$asks};
    };
}

# Whether a line stores a checkpoint of a subgraph; with durability exit its question is stored after that.
sub is_below { my ($line) = @_; return $line->{type} eq 'put' && $line->{ns} }

# Whether a line stores the command.
sub is_command { my ($line) = @_; return $line->{type} eq 'put_writes' && $line->{task_id} eq $UPDATE }

# A command may be a function of the ids of the questions.
sub command_of {
    my ($command, @lines) = @_;
    return ref $command eq 'CODE' ? $command->(questions(@lines)) : $command;
}

# Begins a thread whose graph asks, and gives it commands. Returns its runner, its id and the lines of the last run.
sub begin {
    my ($language, $graph, @commands) = @_;
    my $runner = runner_in($language);
    my $thread = new_uuid();
    my @lines = $runner->run(graph_id => $graph, $runner->next_run($thread), input => { log => ['input'], n => 1 });
    @lines = $runner->run(graph_id => $graph, $runner->next_run($thread), command => command_of($_, @lines)) for @commands;
    return ($runner, $thread, @lines);
}

# The command, which undef is none, is given to a thread that waits, its process is lost after a line, and another one
# repeats the run. Returns the runner, the thread and the lines of the second attempt. more: durability; earlier: commands of
# the runs before it; lost: receives the lines of the first attempt.
sub repeat {
    my ($language, $graph, $last, $command, %more) = @_;
    my %run = (graph_id => $graph, durability => $more{durability} // 'async');
    my ($runner, $thread, @asked) = begin($language, $graph, @{ $more{earlier} // [] });
    $runner->{last} = $last;
    my $start = start_line(%run, $runner->next_run($thread), command => command_of($command, @asked));
    $runner->send($start);
    my @before = $runner->lines_until($last);
    @{ $more{lost} // [] } = @before;
    my $records = $runner->records;
    undef $runner;
    $runner = runner_in($language, $records);
    my %next = $runner->next_run($thread);
    # As the server does for a run that has put a checkpoint.
    my %rest = ($next{checkpoint}{run_id} // '') eq $start->{run_id} ? (%next, command => undef) : ();
    my @lines = $runner->run(%{$start}, %rest, attempt => 2, epoch => 2, answered => $records->has_answered($thread, $start->{run_id}) ? \1 : \0);
    is $lines[-1]{status}, 'success', "$language, $graph: the repeated run succeeds" or diag explain $lines[-1]{error};
    return ($runner, $thread, @lines);
}

# The lines of a run with a command that is not lost.
sub whole_run {
    my ($language, $graph, $command) = @_;
    my $runner = runner_in($language);
    my $thread = new_uuid();
    $runner->run(graph_id => $graph, $runner->next_run($thread), input => { log => ['input'], n => 1 });
    return $runner->run(graph_id => $graph, $runner->next_run($thread), command => $command);
}

# The state of the last checkpoint of the thread.
sub head {
    my ($runner, $thread) = @_;
    my $stored = $runner->records->thread($thread);
    return $stored->{checkpoints}{ $stored->{head} };
}

sub answer {
    my ($runner, $thread, $graph, $resume) = @_;
    my @lines = $runner->run(graph_id => $graph, $runner->next_run($thread), command => { resume => $resume });
    is $lines[-1]{status}, 'success', "$graph: the answer is taken" or diag explain $lines[-1]{error};
    # A subgraph returns the input once more.
    return [ sort grep { $_ ne 'input' } @{ head($runner, $thread)->{values}{log} } ];
}

# A run that is lost after its first checkpoint, which has its input in a channel; the server gives the input again.
sub check_input {
    my ($language) = @_;
    my $runner = runner_in($language);
    my $start = start_line(graph_id => 'hop', thread_id => new_uuid(), input => { log => ['input'], n => 1 });
    $runner->{last} = sub { $_[0]{type} eq 'checkpoint' };
    $runner->send($start);
    my @lines = $runner->lines_until($runner->{last});
    my $records = $runner->records;
    undef $runner;
    $runner = runner_in($language, $records);
    push @lines, $runner->run(%{$start}, $runner->next_run($start->{thread_id}), attempt => 2, epoch => 2);
    is_deeply [ map { $_->{metadata}{step} } lines_of('checkpoint', @lines) ], [ -1, 0 ], "$language: a repeated attempt saves the checkpoint before the input once";
    is_deeply head($runner, $start->{thread_id})->{values}, { log => ['input'], n => 1 }, "$language: a repeated attempt takes its input once";
    return;
}

for my $language ('python', 'python 1.0', 'javascript') {
    check_input($language);
    for my $graph (qw(one inner)) {
        my $by_id = sub { return { resume => { $_[0]{first} => 'yes' } } };
        for my $case ([ 'one value' => { resume => 'yes' } ], [ 'a value for an id' => $by_id ],
            [ 'a value, an update' => { resume => 'yes', update => { log => ['U'], n => 7 } } ])
        {
            my ($title, $command) = ("$language, $graph, $case->[0]", $case->[1]);
            my ($runner, $thread, @lines) = repeat($language, $graph, \&is_answer, $command, lost => \my @lost);
            ok questions(@lines)->{second}, "$title: the second question is still open" or diag explain [ map { $_->{' text'} } @lines ];
            my @updated = $title =~ /update/ ? 'U' : ();
            my %answer = map { $_ => 'no' } questions(@lines)->{second};
            is_deeply answer($runner, $thread, $graph, \%answer), [ sort 'add', 'yes no', @updated ], "$title: the next run answers it";
            next if $graph ne 'one' || !@updated;
            is_deeply update_of(@lines), { log => [ 'input', 'U' ], n => 7 }, "$title: the state shows the update";
            is_deeply update_of(@lost), { log => [ 'input', 'U' ], n => 7 }, "$title: so it did before the process was lost";
            is head($runner, $thread)->{values}{n}, 7, "$title: a channel with one value has it";
        }
    }

    my ($runner, $thread, @lines);
    for my $case ([ async => \&is_answer ], [ exit => question() ], [ exit => \&is_below, ', before the question is stored' ]) {
        my ($durability, $last, $when) = @{$case};
        my $title = "$language, durability $durability" . ($when // '');
        ($runner, $thread, @lines) = repeat($language, 'outer', $last, { resume => 'yes' }, durability => $durability);
        ok questions(@lines)->{later}, "$title: the question of the next node of a subgraph is still open";
        is_deeply answer($runner, $thread, 'outer', 'no'), [ sort qw(add no yes) ], "$title: the next run answers it"
            or diag explain head($runner, $thread)->{values};
    }

    for my $update (undef, { log => ['U'], n => 7 }) {
        my $title = "$language, durability exit" . ($update ? ', an update' : '');
        ($runner, $thread, @lines) = repeat($language, 'inner', \&is_answer, { resume => 'yes', update => $update }, durability => 'exit');
        ok questions(@lines)->{second}, "$title: the second question of a subgraph is still open";
        my %answer = map { $_ => 'no' } questions(@lines)->{second};
        is_deeply answer($runner, $thread, 'inner', \%answer), [ sort 'add', 'yes no', $update ? 'U' : () ], "$title: the next run answers it";
    }

    for my $durability (qw(async exit)) {
        my $title = "$language, durability $durability: an answer that an earlier run has left";
        my %lost = (durability => $durability, earlier => [ { resume => 'yes' } ]);
        ($runner, $thread, @lines) = repeat($language, 'three', \&is_next_question, undef, %lost);
        ok questions(@lines)->{third}, "$title is not given to a question of a repeated attempt";
        is_deeply answer($runner, $thread, 'three', 'no'), [ 'add', 'yes yes no' ], "$title is that of the question before it";
        ($runner, $thread, @lines) = repeat($language, 'story', question(), undef, %lost);
        ok questions(@lines)->{later}, "$title is not given to the next node of a subgraph in a repeated attempt";
        is_deeply answer($runner, $thread, 'story', 'no'), [ 'no', 'yes yes' ], "$title: the next run answers that";
        next if $language =~ /python/;
        # The library for Python gives it to that question in the first attempt.
        ($runner, $thread, @lines) = repeat($language, 'story', question(), sub { return { resume => { $_[0]{second} => 'too' } } }, %lost);
        ok questions(@lines)->{later}, "$title, and one by id: the question of the next node is still open";
    }

    my $update = { log => ['U'], n => 7 };
    my %case_of = (
        'an update' => [ 'one', { update => $update } ],
        'a goto and an update' => [ 'one', { goto => 'add', update => $update } ],
        'an answer by id and an update' => [ 'three', sub { return { resume => { $_[0]{second} => 'too' }, update => $update } } ]);
    for my $kind (sort keys %case_of) {
        my ($graph, $command) = @{ $case_of{$kind} };
        my $title = "$language, $kind: an answer that an earlier run has left";
        my (undef, undef, @once) = begin($language, $graph, { resume => 'yes' }, $command);
        ($runner, $thread, @lines) = repeat($language, $graph, \&is_command, $command, earlier => [ { resume => 'yes' } ]);
        is_deeply [ keys %{ questions(@lines) } ], [ keys %{ questions(@once) } ], "$title is not given to a question of a repeated attempt";
        is scalar @{ head($runner, $thread)->{next} }, 2, "$title: the step is not complete";
    }

    # The command of an earlier run is stored with the checkpoint, that of the repeated run is not.
    ($runner, $thread) = begin($language, 'three', { resume => 'yes' });
    @lines = $runner->run(graph_id => 'three', $runner->next_run($thread), attempt => 2, epoch => 2, command => { resume => 'too', update => { n => 8 } });
    ok questions(@lines)->{third}, "$language: an answer that the lost attempt has not stored is given by the repeated one";
    is_deeply answer($runner, $thread, 'three', 'no'), [ 'add', 'yes too no' ], "$language: the answers of both runs are used";
    # The library for JavaScript drops the update of a command when another one follows.
    is head($runner, $thread)->{values}{n}, 8, "$language: an update that the lost attempt has not stored is applied by the repeated one"
        if $language ne 'javascript';

    my $both = sub { my ($ids) = @_; return { resume => { $ids->{first} => 'yes', $ids->{once} => 'done' } } };
    ($runner, $thread, @lines) = repeat($language, 'fan', \&is_next_question, $both);
    ok questions(@lines)->{second}, "$language: of two answers by id that of a node with another question is used once";
    is_deeply answer($runner, $thread, 'fan', 'no'), [ sort 'add', 'yes no', 'done' ], "$language: the other one is not lost";

    my $two = sub { my ($ids) = @_; return { resume => { $ids->{first} => 'yes', $ids->{patient} => 'done' } } };
    ($runner, $thread, @lines) = repeat($language, 'pair', \&is_next_question, $two);
    is_deeply [ sort keys %{ questions(@lines) } ], ['second'], "$language: of two answers by id for a subgraph one is used once";
    is_deeply answer($runner, $thread, 'pair', 'no'), [ sort 'add', 'yes no', 'done' ], "$language: the next run answers the question that is left";

    for my $command ({ goto => 'add' }, { goto => 'add', update => { log => ['U'], n => 7 } }) {
        my $title = "$language: a repeated goto" . ($command->{update} ? ' with an update' : '');
        my @once = begin($language, 'one', $command);
        ($runner, $thread, @lines) = repeat($language, 'one', \&is_command, $command);
        is_deeply head($runner, $thread)->{values}, head(@once)->{values}, "$title leaves the state that one without a loss leaves";
    }

    ($runner, $thread, @lines) = repeat($language, 'one', \&is_end, { update => { log => ['U'], n => 7 }, goto => 'add' }, lost => \my @lost);
    is_deeply update_of(@lost), { log => [ 'input', 'U' ], n => 7 }, "$language: the state shows an update with goto before a node has ended";
    is_deeply update_of(@lost, @lines), { log => [ 'input', 'U' ], n => 7 }, "$language: the state shows the update with goto when the run has ended";
    my ($first, $last) = (grep { $_->{id} eq $UPDATE } map { $_->{task} }
        lines_of('task', whole_run($language, 'hop', { update => { log => ['U'] }, goto => 'add' })))[ 0, -1 ];
    is_deeply $first->{next}, $last->{next}, "$language: the nodes after an update with goto are those that the state has when the run has ended";
    @lines = $runner->run(graph_id => 'one', $runner->next_run($thread), input => undef);
    is $lines[-1]{status}, 'success', "$language: a thread whose update was repeated can be used" or diag explain $lines[-1]{error};

    # The library for JavaScript drops the update of a command when another one follows.
    next if $language eq 'javascript';
    ($runner, $thread) = begin($language, 'three', { resume => 'yes', update => { log => ['U'], n => 7 } });
    @lines = $runner->run(graph_id => 'three', durability => 'exit', $runner->next_run($thread), command => { resume => 'too' });
    is $lines[-1]{status}, 'success', "$language: an answer with durability exit follows one with an update" or diag explain $lines[-1]{error};
    is_deeply answer($runner, $thread, 'three', 'no'), [ sort 'add', 'yes too no', 'U' ], "$language: the update is applied once";
}

done_testing;
