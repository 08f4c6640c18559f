# SPDX-License-Identifier: Apache-2.0
# The states of a run that was cancelled or has failed: each that was stored is shown, so
# that the thread goes on from the last one; those that its nodes have written too.
use strict;
use warnings;
use AgentTest::Applications qw(folder_of python runner_of);
use AgentTest::Env qw(is_sanitized is_counted);
use FindBin;
use lib $FindBin::Bin;
use ApplicationTest;
use RunnerTest qw(start_line lines_of new_uuid);
use Test::More;
use Time::HiRes qw(sleep);

plan skip_all => 'the runners of applications have no such build' if is_sanitized() || is_counted();

my %file_of = (python => [ 'own.py', <<'PYTHON' ], javascript => [ 'own.mjs', <<'JAVASCRIPT' ]);
import asyncio
import operator
from typing import Annotated, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph

class State(TypedDict, total=False):
    names: Annotated[list, operator.add]
    count: int
    # Written as one character.
    text: Annotated[str, lambda _, written: written * (9_000_000 if written == "y" else 100_000)]
    longest: int
    is_long: bool
    then: str

async def write(state: State, config: RunnableConfig):
    own = {"configurable": {name: config["configurable"][name] for name in ("thread_id", "__pregel_checkpointer")}}
    for number in range(state.get("count", 0)):
        await own_graph.aupdate_state(own, {"names": [number]} | ({"text": "y" if number == state.get("longest") else "x"} if state.get("is_long") else {}), as_node="write")
    if state.get("then") == "fail":
        raise ValueError("failed")
    return {"names": ["end"]}

async def tell(state: State):
    writer = get_stream_writer()
    for _ in range(60):
        writer("x" * 10_000)
    await asyncio.sleep(60)

def make(**nodes):
    builder = StateGraph(State)
    for name, node in nodes.items():
        builder.add_node(name, node)
    names = [START, *nodes, END]
    for pair in zip(names, names[1:]):
        builder.add_edge(*pair)
    return builder.compile()

own_graph = make(write=write, last=lambda state: {"names": ["last"]})
teller = make(first=lambda state: {"names": ["first"]}, tell=tell)
PYTHON
import { Annotation, END, START, StateGraph } from '@langchain/langgraph';

const names = Annotation({ reducer: (a, b) => a.concat(b), default: () => [] });
// Written as one character.
const text = Annotation({ reducer: (_, written) => written.repeat(written === 'y' ? 9_000_000 : 100_000), default: () => '' });
const State = Annotation.Root({ names, text, is_long: Annotation(), longest: Annotation(), count: Annotation(), then: Annotation() });

async function write(state, { configurable: { thread_id, __pregel_checkpointer } }) {
    for (let number = 0; number < state.count; number += 1) {
        const own = { names: [number], ...(state.is_long ? { text: number === state.longest ? 'y' : 'x' } : {}) };
        await own_graph.updateState({ configurable: { thread_id, __pregel_checkpointer } }, own, 'write');
    }
    if (state.then === 'fail') {
        throw new TypeError('failed');
    }
    return { names: ['end'] };
}

async function tell(state, config) {
    for (let number = 0; number < 60; number += 1) {
        config.writer('x'.repeat(10_000));
    }
    await new Promise((resolve) => { setTimeout(resolve, 60_000); });
    return {};
}

function make(nodes) {
    const builder = new StateGraph(State);
    const names = Object.keys(nodes);
    names.forEach((name) => builder.addNode(name, nodes[name]));
    [START, ...names].forEach((name, index) => builder.addEdge(name, names[index] ?? END));
    return builder.compile();
}

export const own_graph = make({ write, last: async () => ({ names: ['last'] }) });
export const teller = make({ first: async () => ({ names: ['first'] }), tell });
JAVASCRIPT

# A runner with the newest packages, or for 'python 1.0' with the oldest.
sub runner_in {
    my ($language, $version) = split / /, $_[0];
    my ($interpreter, $program) = runner_of($language);
    my ($file, $text) = @{ $file_of{$language} };
    my %graphs = map { $_ => "./$file:$_" } qw(own_graph teller);
    return ApplicationTest->new(command => [ $version ? python($version) : $interpreter, $program ], graphs => \%graphs,
        directory => folder_of($language, { graphs => \%graphs }, $file => $text));
}

# Executes a run that is cancelled at a line for which `when` is true, and read and answered
# a little later; then answers each request after `delay` seconds. Returns its lines.
sub cancelled_run {
    my ($runner, $fields, $when, $delay) = @_;
    my $start = start_line(%{$fields});
    $runner->send($start);
    my (@lines, $is_cancelled);
    until (@lines && $lines[-1]{type} eq 'end') {
        push @lines, my $line = $runner->line;
        if (!$is_cancelled && $when->($line, @lines)) {
            $runner->send({ type => 'cancel', run_id => $start->{run_id}, epoch => $start->{epoch} });
            $is_cancelled = 1;
            sleep 0.1;
        }
        $runner->give_credit($line) if $line->{type} eq 'want' && $runner->{is_withholding};
        next if $line->{type} ne 'request';
        sleep $delay // 0 if $is_cancelled;
        $runner->send_raw($runner->answer($line));
    }
    ok $is_cancelled, 'the run is cancelled';
    return @lines;
}

# Whether the line reads a state that a node has written.
sub reads_own {
    my ($line, @lines) = @_;
    my %own = map { $_->{checkpoint_id} => 1 } grep { $_->{metadata}{source} eq 'update' } lines_of('put', @lines);
    return $line->{type} eq 'request' && $line->{op} eq 'checkpoint.get' && $own{ $line->{args}{checkpoint_id} // '' };
}

# Executes a run; the first state of its node that it reads is refused each time. Returns its lines.
sub failed_read {
    my ($runner, $fields) = @_;
    $runner->send(start_line(%{$fields}));
    my (@lines, $id);
    until (@lines && $lines[-1]{type} eq 'end') {
        push @lines, my $line = $runner->line;
        next if $line->{type} ne 'request';
        $id //= $line->{args}{checkpoint_id} if reads_own($line, @lines);
        my $is_refused = ($line->{args}{checkpoint_id} // '') eq ($id // 'none');
        $runner->send_raw($is_refused ? $runner->reply_to($line, $line->{id}, { ok => \0, error => { code => 'internal', message => 'no such state' } })
            : $runner->answer($line));
    }
    return @lines;
}

# Tests that each state of the root graph that was put is shown, and that the last one is the thread's.
sub all_are_shown {
    my ($title, @lines) = @_;
    my @put = sort map { $_->{checkpoint_id} } grep { ($_->{ns} // '') eq '' } lines_of('put', @lines);
    my @shown = map { $_->{checkpoint_id} } grep { ($_->{ns} // '') eq '' } lines_of('checkpoint', @lines);
    my %is_shown = map { $_ => 1 } @shown;
    is scalar(grep { !$is_shown{$_} } @put), 0, "$title: each state that was stored is shown";
    is $shown[-1], $put[-1], "$title: the last one is the state of the thread";
    return;
}

for my $language ('python', 'python 1.0', 'javascript') {
    # Runs with durability `exit`, each of which stores its last step alone.
    my $exits = runner_in($language);
    my $thread = new_uuid();
    my @ids;
    for my $n (0 .. 2) {
        my ($shown) = reverse lines_of('checkpoint', $exits->run(graph_id => 'own_graph', durability => 'exit', input => { names => ['in'] },
            $exits->next_run($thread)));
        is $shown->{parent}, $n ? $ids[-1] : undef, "$language, durability exit: the parent of the state of run $n is the state before it";
        push @ids, $shown->{checkpoint_id};
    }

    for my $durability (qw(async sync exit)) {
        my $runner = runner_in($language);
        $runner->withhold_state;
        my %fields = (graph_id => 'own_graph', durability => $durability, stream_modes => ['values']);
        my $title = "$language, durability $durability";
        my @lines = cancelled_run($runner, { %fields, input => { names => ['in'], count => 3 } }, \&reads_own);
        is $lines[-1]{status}, 'interrupted', "$title: a run is cancelled while a state of its node is read";
        all_are_shown("$title, cancel", @lines);

        # With `exit` the library saves its step after those that its node has written, though it is older: t/sdk/own_states.t.
        next if $durability eq 'exit';
        @lines = cancelled_run($runner, { %fields, input => { names => ['in'], count => 3, then => 'fail' } }, \&reads_own);
        is $lines[-1]{status}, 'error', "$title: a run that has failed ends with error, if it is cancelled while a state of its node is read";
        like $lines[-1]{error}{message}, qr/\Afailed\z/, "$title: its error is that of the node";
        all_are_shown("$title, failure and cancel", @lines);
    }

    my $runner = runner_in($language);
    $runner->withhold_credit;
    $runner->withhold_state;
    my (@lines, @put);
    @lines = cancelled_run($runner, { graph_id => 'teller', durability => 'exit', stream_modes => ['custom'], input => { names => ['in'] } },
        sub { $_[0]{type} eq 'want' });
    is_deeply [ map { $_->{values}{names} } (lines_of('checkpoint', @lines))[-1] // () ], [ [qw(in first)] ],
        "$language, durability exit: a run that is cancelled while it waits for credit has saved its last step";
    all_are_shown("$language, durability exit, credit", @lines);

    $runner = runner_in($language);
    $runner->withhold_credit;
    $runner->withhold_state;
    @lines = cancelled_run($runner, { graph_id => 'own_graph', input => { names => ['in'], count => 1, is_long => \1 } },
        sub { $_[0]{type} eq 'want' });
    # In JavaScript the run ends before that put is made.
    is scalar(grep { $_->{metadata}{source} eq 'update' } lines_of('put', @lines)), $language =~ /python/ ? 1 : 0,
        "$language: a run is cancelled while a state of its node waits for credit";
    all_are_shown("$language, own state, credit", @lines);

    # A state that no line can have, between two of others.
    $runner = runner_in($language);
    @lines = $runner->run(graph_id => 'own_graph', input => { names => ['in'], count => 4, is_long => \1, longest => 2 });
    is "$lines[-1]{status} $lines[-1]{error}{error}", 'error ValueTooLargeError', "$language: a state of its node is too large to be shown";
    is_deeply [ map { scalar @{ $_->{values}{names} } } grep { $_->{metadata}{source} eq 'update' } lines_of('checkpoint', @lines) ], [ 2, 3, 5 ],
        "$language: those before and after it are shown";

    # A state that the server does not return.
    $runner = runner_in($language);
    $runner->withhold_state;
    @lines = failed_read($runner, { graph_id => 'own_graph', input => { names => ['in'], count => 3 } });
    is "$lines[-1]{status} $lines[-1]{error}{message}", 'error no such state', "$language: a state of its node cannot be read";
    @put = sort map { $_->{checkpoint_id} } lines_of('put', @lines);
    is +(lines_of('checkpoint', @lines))[-1]{checkpoint_id}, $put[-1], "$language: the last state is shown all the same";

    for ([ 'exit', {} ], [ 'async', { then => 'fail' } ]) {
        my ($durability, $then) = @{$_};
        $runner = runner_in($language);
        $runner->withhold_state;
        my $input = { names => ['in'], count => 60, %{$then} };
        @lines = cancelled_run($runner, { graph_id => 'own_graph', input => $input, durability => $durability }, \&reads_own, 0.2);
        @put = sort map { $_->{checkpoint_id} } lines_of('put', @lines);
        my @shown = map { $_->{checkpoint_id} } lines_of('checkpoint', @lines);
        cmp_ok scalar @shown, '<', scalar @put, "$language, durability $durability: there is no time to show so many states after a cancel";
        is $shown[-1], $put[-1], "$language, durability $durability: the last one is shown";
        is $lines[-1]{status}, $then->{then} ? 'error' : 'interrupted', "$language, durability $durability: its end has the reason that came first";
    }
}

done_testing;
