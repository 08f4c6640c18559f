# SPDX-License-Identifier: Apache-2.0
# The state with pending writes: at the end of a run that stops in a step with parallel nodes, the runners of both
# languages send what get_state of the library shows, by difference from the checkpoint.
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

my ($UPDATE, $PENDING) = map { my $digit = $_; join '-', map { $digit x $_ } 8, 4, 4, 4, 12 } 0, 'f';

my %file_of = (python => [ 'pending.py', <<'PYTHON' ], javascript => [ 'pending.mjs', <<'JAVASCRIPT' ]);
import asyncio
import operator
from typing import Annotated, TypedDict

from langgraph.config import get_store
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

class State(TypedDict, total=False):
    log: Annotated[list, operator.add]
    other: dict
    turns: int
    text: Annotated[str, lambda _, written: written * 9_000_000]

async def add(state: State):
    return {"log": [{"by": "add"}]}

async def grow(state: State):
    return {"log": [{"by": "grow"}], "text": "x"}

async def ask(state: State):
    return {"log": [{"by": interrupt("ask")}]}

async def tell(state: State):
    return {"log": [{"by": interrupt("tell")}]}

def make(**nodes):
    builder = StateGraph(State)
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(START, name)
    return builder.compile()

# One ends when the store has answered, and the other one asks.
async def wait(state: State):
    await get_store().aget(("gate",), "open")
    return {"log": [{"by": "wait"}]}

gated = make(wait=wait, ask=ask)

asked = []

async def question(state: State):
    asked.append(True)
    return {"log": [{"by": interrupt("question")}]}

async def fail(state: State):
    while not asked:
        await asyncio.sleep(0)
    asked.clear()
    for _ in range(state["turns"]):
        await asyncio.sleep(0)
    raise ValueError("fails")

held = []

# Asks, and when it is executed again for its answer it does not end.
async def hold(state: State):
    held.append(True)
    if len(held) > 1:
        await asyncio.Event().wait()
    return {"log": [{"by": interrupt("held")}]}

async def refuse(state: State):
    raise ValueError(interrupt("refused"))

fan = make(add=add, ask=ask, tell=tell)
aborted = make(refuse=refuse, deep=make(hold=hold))

async def left(state: State):
    return {"log": [{"by": "left"}], "turns": 1}

async def right(state: State):
    return {"log": [{"by": "right"}], "turns": 2}

clash = make(left=left, right=right)
failing = make(ask=ask, deep=make(question=question), fail=fail)
long = make(grow=grow, ask=ask)
both = make(ask=ask, tell=tell)
PYTHON
import { Annotation, interrupt, START, StateGraph } from '@langchain/langgraph';

const State = Annotation.Root({
    log: Annotation({ reducer: (left, right) => left.concat(right), default: () => [] }),
    other: Annotation(),
    turns: Annotation(),
    text: Annotation({ reducer: (_, written) => written.repeat(9_000_000), default: () => '' }),
});
const add = async () => ({ log: [{ by: 'add' }] });
const grow = async () => ({ log: [{ by: 'grow' }], text: 'x' });
const ask = async () => ({ log: [{ by: interrupt('ask') }] });
const tell = async () => ({ log: [{ by: interrupt('tell') }] });

function make(nodes) {
    const builder = new StateGraph(State);
    for (const [name, node] of Object.entries(nodes)) {
        builder.addNode(name, node).addEdge(START, name);
    }
    return builder.compile();
}

const asked = [];

async function question() {
    asked.push(true);
    return { log: [{ by: interrupt('question') }] };
}

async function fail({ turns }) {
    while (asked.length === 0) {
        await null;
        await new Promise((resolve) => { setImmediate(resolve); });
    }
    asked.length = 0;
    for (let turn = 0; turn < turns * 4; turn += 1) {
        await null;
    }
    throw new TypeError('fails');
}

const held = [];

// Asks, and when it is executed again for its answer it does not end.
async function hold() {
    held.push(true);
    if (held.length > 1) {
        await new Promise(() => {});
    }
    return { log: [{ by: interrupt('held') }] };
}

// One ends when the store has answered, and the other one asks.
async function wait(state, config) {
    await config.store.get(['gate'], 'open');
    return { log: [{ by: 'wait' }] };
}

async function refuse() {
    throw new TypeError(interrupt('refused'));
}

export const fan = make({ add, ask, tell });
export const aborted = make({ refuse, deep: make({ hold }) });
export const clash = make({
    left: async () => ({ log: [{ by: 'left' }], turns: 1 }), right: async () => ({ log: [{ by: 'right' }], turns: 2 }) });
export const failing = make({ ask, deep: make({ question }), fail });
export const gated = make({ wait, ask });
export const long = make({ grow, ask });
export const both = make({ ask, tell });
JAVASCRIPT

# A runner with the newest packages, or for 'python 1.0' with the oldest.
sub runner_in {
    my ($name, %options) = @_;
    my ($language, $version) = split / /, $name;
    my ($interpreter, $program) = runner_of($language);
    my ($file, $text) = @{ $file_of{$language} };
    my %graphs = map { $_ => "./$file:$_" } qw(fan long both failing aborted clash gated);
    return ApplicationTest->new(command => [ $version ? python($version) : $interpreter, $program ], graphs => \%graphs,
        directory => folder_of($language, { graphs => \%graphs }, $file => $text), %options);
}

# [checkpoint, values, next] of each state with pending writes.
sub pending { return [ map { [ $_->{checkpoint_id}, @{ $_->{task} }{qw(values next)} ] } grep { $_->{task}{id} eq $PENDING } lines_of('task', @_) ] }

# The id of the interrupt of each node.
sub ids_of {
    my @tasks = ((map { $_->{task} } lines_of('task', @_)), map { @{ $_->{tasks} } } lines_of('checkpoint', @_));
    return map { $_->{value} => $_->{id} } map { @{ $_->{interrupts} // [] } } @tasks;
}

# The lines of a run that is to stop in the step in which a node asks.
sub stopped_run {
    my ($language) = @_;
    my ($runner, $start);
    $runner = runner_in($language, store => sub {
        my ($request) = @_;
        $runner->send({ type => 'stop', %{$start}{qw(run_id epoch)}, reason => 'drain', deadline_ms => 60_000 });
        return $runner->reply_to($request, $request->{id}, { ok => \1, result => { results => [undef] }, cursor => undef });
    });
    $start = start_line(graph_id => 'gated', input => { log => [] });
    $runner->send($start);
    return $runner->lines_of_run($start->{run_id});
}

# The tasks of the root graph that the state shows, by id.
sub shown_tasks {
    my ($runner, $thread, @lines) = @_;
    my $records = $runner->records->thread($thread);
    my %of = map { $_->{id} => $_ } @{ $records->{checkpoints}{ $records->{head} }{tasks} };
    $of{ $_->{task}{id} } = $_->{task} for grep { $_->{checkpoint_id} eq $records->{head} } lines_of('task', @lines);
    return %of;
}

# The tasks of the root graph whose questions are stored, and those whose questions the state shows.
sub stored_and_shown {
    my ($runner, $thread, @lines) = @_;
    my %of = shown_tasks($runner, $thread, @lines);
    my %stored;
    for my $line (lines_of('put_writes', @lines)) {
        next if ($line->{ns} // '') ne '';
        $stored{ $line->{task_id} } = 1 if grep { $_->[1] eq '__interrupt__' } @{ $line->{writes} };
    }
    return ([ sort keys %stored ], [ sort grep { @{ $of{$_}{interrupts} // [] } } keys %of ]);
}

for my $language ('python', 'python 1.0', 'javascript') {
    for my $durability (qw(async exit)) {
        my $title = "$language, durability $durability";
        my $runner = runner_in($language);
        my $thread = new_uuid();
        my %input = (log => [ map { { by => "client $_" } } 1 .. 3 ], other => { n => 1 });
        my @lines = $runner->run(graph_id => 'fan', durability => $durability, input => \%input, $runner->next_run($thread));
        my $head = $runner->records->thread($thread)->{head};
        my %items = (add => { by => 'add' }, ask => { by => 'yes' });
        my $pending = pending(@lines);
        is_deeply [ map { [ $_->[0], $_->[1]{log}, $_->[2] ] } @{$pending} ],
            [ [ $head, { '$list' => { keep => 3, items => [ $items{add} ] } }, [ 'ask', 'tell' ] ] ],
            "$title: the end of a run has the writes of the node that has ended, by difference" or diag explain $pending;
        is $lines[-1]{status}, 'success', "$title: the run stops at the interrupts";
        my @all = @lines;
        my %id_of = ids_of(@lines);
        @lines = $runner->run(graph_id => 'fan', durability => $durability, command => { resume => { $id_of{ask} => 'yes' } },
            $runner->next_run($thread));
        is_deeply [ map { [ $_->[0], $_->[1]{log}, $_->[2] ] } @{ pending(@lines) } ],
            [ [ $head, { '$list' => { keep => 3, items => [ @items{qw(add ask)} ] } }, ['tell'] ] ],
            "$title: that of the next run has those of both nodes" or diag explain pending(@lines);
        push @all, @lines;
        push @all, $runner->run(graph_id => 'fan', durability => $durability, command => undef, $runner->next_run($thread));
        my %task_of = shown_tasks($runner, $thread, @all);
        is_deeply [ map { $_->{value} } map { @{ $_->{interrupts} // [] } } values %task_of ], ['tell'],
            "$title: where one of two questions is answered, the state shows the other one only";
        is_deeply [ sort map { $_->{by} } map { @{ ($_->{result} // {})->{log} // [] } } values %task_of ], [ 'add', 'yes' ],
            "$title: the state has the results of the nodes that have ended" or diag explain \%task_of;
        @lines = $runner->run(graph_id => 'fan', durability => $durability, command => { resume => 'no' }, $runner->next_run($thread));
        is_deeply pending(@lines), [], "$title: a run that completes the step has none";
        is scalar @{ $runner->records->thread($thread)->{checkpoints}{ $runner->records->thread($thread)->{head} }{values}{log} }, 6,
            "$title: its state has the writes of all nodes";
    }

    my $runner = runner_in($language);
    my @lines = $runner->run(graph_id => 'both', input => { log => [] });
    my ($thread, %stopped) = (new_uuid(), graph_id => 'fan');
    my %id_of = ids_of($runner->run(%stopped, input => { log => [ map { { by => $_ } } 1 .. 3 ], other => { n => 1 } }, $runner->next_run($thread)));
    for my $command ({ update => { other => { n => 2 } }, resume => { $id_of{ask} => 'yes' } }, undef) {
        my @after = $runner->run(%stopped, command => $command, $runner->next_run($thread));
        is_deeply pending(@after)->[0][1]{log}, { '$list' => { keep => 3, items => [ { by => 'add' }, { by => 'yes' } ] } },
            "$language: after the update of another channel a list is sent by difference" or diag explain pending(@after);
        is_deeply pending(@after)->[0][1]{other}, { n => 2 }, "$language: the state has the update";
    }
    my @last = $runner->run(%stopped, command => { update => { log => [] }, resume => { $id_of{tell} => 'no' } }, $runner->next_run($thread));
    my ($update) = map { $_->{task}{values} } grep { $_->{task}{id} eq $UPDATE } lines_of('task', @last);
    is_deeply $update->{other}, { n => 2 }, "$language: a command with another update shows the earlier one too" or diag explain $update;
    is_deeply pending(@lines), [],
        "$language: where no node has ended the state is that of the checkpoint";
    my $exited = new_uuid();
    $runner->run(graph_id => 'both', input => { log => [ { by => 'input' } ] }, $runner->next_run($exited));
    $runner->run(graph_id => 'both', durability => 'exit', command => { update => { log => [ { by => 'client' } ] }, goto => 'ask' },
        $runner->next_run($exited));
    @lines = $runner->run(graph_id => 'both', command => { goto => 'tell' }, $runner->next_run($exited));
    my $read = [ map { $_->{by} } @{ $runner->records->thread($exited)->{checkpoints}{ $runner->records->thread($exited)->{head} }{values}{log} } ];
    is_deeply $read, $language eq 'javascript' ? [qw(input client)] : ['input'],
        "$language: after an update with durability exit, the next checkpoint has it once" or diag explain \@lines;
    my $cut = new_uuid();
    @lines = $runner->run(graph_id => 'aborted', input => { log => [] }, $runner->next_run($cut));
    my %asked = ids_of(@lines);
    push @lines, $runner->run(graph_id => 'aborted', command => { resume => { $asked{refused} => 'no' } }, $runner->next_run($cut));
    is $lines[-1]{status}, 'error', "$language: a node fails with its answer, while a subgraph is executed that waits for its own";
    my %latest = map { $_->{task}{id} => $_->{task} } grep { ($_->{ns} // '') eq '' } lines_of('task', @lines);
    is_deeply [ map { $_->{value} } map { @{ $_->{interrupts} // [] } } values %latest ], ['held'], "$language: the state shows the question that still waits"
        or diag explain [ map { $_->{' text'} } lines_of('task', @lines) ];
    @lines = $runner->run(graph_id => 'clash', durability => 'exit', input => { log => [] });
    my ($put, $clash) = map { (lines_of($_, @lines))[-1] } qw(put checkpoint);
    is_deeply [ $lines[-1]{error}{error}, $clash->{checkpoint_id}, scalar @{ $clash->{values}{log} } ],
        [ 'InvalidUpdateError', $put->{checkpoint_id}, scalar @{ $put->{channels}{log}{list}{items} } ],
        "$language: where two nodes have written one channel, the state is what the library has saved" or diag explain [ $put, $clash ];
    @lines = stopped_run($language);
    is $lines[-1]{status}, 'success', "$language: a run that is to stop in the step in which a node asks ends at the question";
    is_deeply [ map { $_->[2] } @{ pending(@lines) } ], [ ['ask'] ], "$language: its state has the writes of the node that has ended";
    my ($most, $wrong) = (0, undef);
    for my $turns (0 .. 60) {
        my $failed = new_uuid();
        my @failed = $runner->run(graph_id => 'failing', input => { log => [], turns => $turns }, $runner->next_run($failed));
        my ($stored, $shown) = stored_and_shown($runner, $failed, @failed);
        $most = @{$stored} if @{$stored} > $most;
        $wrong //= $turns if "@{$stored}" ne "@{$shown}";
    }
    is $most, 2, "$language: both nodes have asked before a third one fails";
    is $wrong, undef, "$language: whenever it fails, the state shows the questions that are stored";
    @lines = $runner->run(graph_id => 'long', stream_modes => [], input => { log => [] });
    is_deeply [ $lines[-1]{status}, pending(@lines) ], [ 'success', [] ], "$language: a run whose pending writes are longer than a line ends as it would without them"
        or diag explain $lines[-1];
}

done_testing;
