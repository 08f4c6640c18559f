# SPDX-License-Identifier: Apache-2.0
# Guarantees of both runners for graphs as the libraries document them: factories and their contexts, a graph's own
# store and recursion limit, the serializer, events that are hidden.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Applications qw(folder_of node_application python runner_of);
use ApplicationTest;
use PythonRunner ();
use RecordStore;
use RunnerTest qw(new_uuid lines_of events_of);
use Test::More;

my %FILE = (python => 'g.py', javascript => 'g.mjs');
my %SOURCE = (python => <<'PY', javascript => <<'JS');
import contextlib
from typing import Any

from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore, GetOp, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from points import Point, Size
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    n: int
    kinds: list[str]
    point: Any
    size: Any


def graph_of(node: Any, name: str = "node") -> Any:
    return StateGraph(State).add_node(name, node).add_edge(START, name)


uses = 0


@contextlib.asynccontextmanager
async def managed(config: RunnableConfig) -> Any:
    global uses
    uses += 1
    try:
        yield graph_of(lambda state: {"n": uses}).compile()
    finally:
        uses -= 1


def by_access(config: RunnableConfig, runtime: Any) -> Any:
    return graph_of(lambda state: {"n": 1}, runtime.access_context).compile()


async def keep(state: State, *, store: BaseStore) -> Any:
    await store.aput(("own",), "k", {"n": 1})
    return {"n": 1}


own_store = graph_of(keep).compile(store=InMemoryStore())

async def page(state: State, *, store: BaseStore) -> Any:
    await store.abatch([PutOp(("page", f"n{i:04}"), "k", {"i": i}) for i in range(2500)])
    kinds = []
    for limit, offset in [(1000, 0), (1001, 0), (2300, 100), (9000, 0), (0, 0)]:
        items = [item.value["i"] for item in await store.asearch(("page",), limit=limit, offset=offset)]
        names = [int(labels[1][1:]) for labels in await store.alist_namespaces(prefix=("page",), limit=limit, offset=offset)]
        expected = list(range(offset, min(offset + limit, 2500)))
        kinds.append(f"{items == expected} {names == expected} {len(items)}")
    item = GetOp(("page", "n0007"), "k")
    found = await store.abatch([SearchOp(("page",), limit=1500), item, SearchOp(("page",), limit=2000, offset=1000), item])
    return {"kinds": [*kinds, " ".join(str(one.value["i"] if hasattr(one, "value") else len(one)) for one in found)]}


pages = graph_of(page).compile()

limited = (
    StateGraph(State)
    .add_node("node", lambda state: {"n": state["n"] + 1})
    .add_edge(START, "node")
    .add_conditional_edges("node", lambda state: "node" if state["n"] < 8 else "__end__")
    .compile()
    .with_config(recursion_limit=3)
)


async def delete(state: State, config: RunnableConfig) -> Any:
    await config["configurable"]["__pregel_checkpointer"].adelete_thread(config["configurable"]["thread_id"])
    return {}


deletes = graph_of(delete).compile()


async def call(state: State, config: RunnableConfig) -> Any:
    await RunnableLambda(lambda text: text, name="shown").ainvoke("x", config)
    hidden = RunnableLambda(lambda text: text, name="secret").with_config(tags=["langsmith:hidden"])
    await hidden.ainvoke("x", config)
    return {"n": 1}


hides = graph_of(call).compile()


def points(state: State) -> Any:
    if "point" not in state:
        return {"point": Point(1), "size": Size(2)}
    return {"kinds": [type(state[name]).__name__ for name in ("point", "size")]}


typed = graph_of(points).compile()
PY
import { RunnableLambda } from '@langchain/core/runnables';
import { Annotation, InMemoryStore, START, StateGraph } from '@langchain/langgraph';

const State = Annotation.Root({ n: Annotation(), kinds: Annotation() });
const graphOf = (node, name = 'node') => new StateGraph(State).addNode(name, node).addEdge(START, name);

export const byAccess = (config, { accessContext }) => graphOf(() => ({ n: 1 }), accessContext).compile();

export const ownStore = graphOf(async (state, { store }) => {
    await store.put(['own'], 'k', { n: 1 });
    return { n: 1 };
}).compile({ store: new InMemoryStore() });

const label = (i) => `n${String(i).padStart(4, '0')}`;
export const pages = graphOf(async (state, { store: { store } }) => {
    await store.batch(Array.from({ length: 2500 }, (_, i) => ({ namespace: ['page', label(i)], key: 'k', value: { i } })));
    const kinds = [];
    const areEqual = (found, from) => found.every((number, i) => number === from + i);
    for (const [limit, offset] of [[1000, 0], [1001, 0], [2300, 100], [9000, 0], [0, 0]]) {
        const items = (await store.search(['page'], { limit, offset })).map(({ value }) => value.i);
        const names = (await store.listNamespaces({ prefix: ['page'], limit, offset })).map(([, name]) => Number(name.slice(1)));
        const count = Math.min(limit, 2500 - offset);
        const isRight = (found) => (found.length === count && areEqual(found, offset) ? 'True' : 'False');
        kinds.push(`${isRight(items)} ${isRight(names)} ${items.length}`);
    }
    const item = { namespace: ['page', 'n0007'], key: 'k' };
    const search = (limit, offset) => ({ namespacePrefix: ['page'], limit, offset });
    const found = await store.batch([search(1500, 0), item, search(2000, 1000), item]);
    return { kinds: [...kinds, found.map((one) => one.value?.i ?? one.length).join(' ')] };
}).compile();

export const limited = graphOf(({ n }) => ({ n: n + 1 }))
    .addConditionalEdges('node', ({ n }) => (n < 8 ? 'node' : '__end__'))
    .compile().withConfig({ recursionLimit: 3 });

export const deletes = graphOf(async (state, { configurable }) => {
    await configurable.__pregel_checkpointer.deleteThread(configurable.thread_id);
    return {};
}).compile();

export const hides = graphOf(async (state, config) => {
    await RunnableLambda.from((text) => text).withConfig({ runName: 'shown' }).invoke('x', config);
    await RunnableLambda.from((text) => text).withConfig({ runName: 'secret', tags: ['langsmith:hidden'] }).invoke('x', config);
    return { n: 1 };
}).compile();
JS
my $POINTS = "from dataclasses import dataclass\n\n\n\@dataclass\nclass Point:\n    x: int\n\n\n\@dataclass\nclass Size:\n    y: int\n";
my %EXPORT = (python => { map { $_ => $_ } qw(managed by_access own_store pages limited deletes hides typed) },
    javascript => { by_access => 'byAccess', own_store => 'ownStore', map { $_ => $_ } qw(pages limited deletes hides) });

# A runner of the graphs of a language, with its newest packages, or for 'python 1.0' with
# the oldest; manifest: more members of langgraph.json.
sub runner {
    my ($packages, $manifest, %more) = @_;
    my ($language, $version) = split / /, $packages;
    my %graphs = map { $_ => "./$FILE{$language}:$EXPORT{$language}{$_}" } keys %{ $EXPORT{$language} };
    my $folder = folder_of($language, { dependencies => ['.'], graphs => \%graphs, %{$manifest} },
        $FILE{$language} => $SOURCE{$language}, $language eq 'python' ? ('points.py' => $POINTS) : ());
    my @command = runner_of($language);
    if ($version && $language eq 'python') {
        $command[0] = python($version);
    }
    elsif ($version) {
        unlink "$folder/node_modules" or die "$folder/node_modules: $!\n";
        symlink node_application("node-$version") . '/node_modules', "$folder/node_modules" or die "symlink: $!\n";
    }
    return ApplicationTest->new(command => \@command, directory => $folder, graphs => \%graphs, %more);
}

sub last_values { return (lines_of('checkpoint', @_))[-1]{values} }

# The purposes with which a factory is called.
sub check_access {
    my ($runner, $language, $ready) = @_;
    my $start = RunnerTest::start_line(graph_id => 'by_access', input => { n => 0 });
    $runner->send($start);
    my ($first) = grep { @{ $_->{next} } && $_->{next}[0] ne '__start__' } lines_of('checkpoint', $runner->lines_of_run($start->{run_id}));
    is_deeply $first->{next}, ['threads.create_run'], "$language: a factory is called with the purpose of a run";
    my $call = { type => 'call', run_id => new_uuid(), epoch => 1, attempt => 1, op => 'update', graph_id => 'by_access', config => {}, context => {},
        $runner->next_run($start->{thread_id}), arguments => { supersteps => [ [ { values => { n => 5 }, as_node => 'threads.update' } ] ] } };
    $runner->send($call);
    my @updated = $runner->lines_of_run($call->{run_id});
    is $updated[-1]{status}, 'success', "$language: a factory is called with the purpose of an update" or diag explain $updated[-1];
    is_deeply [ map { $_->{id} } grep { $_->{id} !~ /\A__/ } @{ $ready->{drawing}{nodes} } ], ['assistants.read'],
        "$language: a factory is called with the purpose of a report";
    return;
}

for my $language ('python', 'python 1.0', 'javascript', 'javascript 1.0') {
    my $runner = runner($language, {});
    my $ready = $runner->{ready}{graphs};
    is_deeply [ grep { $ready->{$_}{error} } sort keys %{$ready} ], [], "$language: all graphs are ready";

    if ($language eq 'python 1.0') {
        # The langgraph-sdk of that time has no runtime for factories.
        my $end = ($runner->run(graph_id => 'by_access', input => { n => 0 }))[-1];
        is_deeply $end->{error}, { error => 'ImportError', message => 'a factory with a runtime needs a langgraph-sdk that has ServerRuntime' },
            "$language: a run of a factory with a runtime says which package it needs";
    }
    else {
        check_access($runner, $language, $ready->{by_access});
    }

    my $start = RunnerTest::start_line(graph_id => 'own_store', input => { n => 0 });
    $runner->send($start);
    is +($runner->lines_of_run($start->{run_id}))[-1]{status}, 'success', "$language: a graph that was compiled with a store of its own";
    is_deeply [ map { $_->{op} } grep { $_->{op} eq 'store' } $runner->requests_of($start->{run_id}) ], ['store'], "$language: uses the server's";

    my @found = @{ last_values($runner->run(graph_id => 'pages', input => { n => 0 }))->{kinds} };
    is pop @found, '1500 7 1500 7', "$language: searches of more than 1,000 items beside other operations";
    is_deeply \@found, [ map { "True True $_" } 1000, 1001, 2300, 2500, 0 ], "$language: searches and lists of more than 1,000 results have each of them once, in order";

    my @run = $runner->run(graph_id => 'limited', input => { n => 0 });
    is $run[-1]{error}{error}, 'GraphRecursionError', "$language: a graph's own recursion limit holds";
    @run = $runner->run(graph_id => 'limited', input => { n => 0 }, config => { recursion_limit => 20 });
    is $run[-1]{status}, 'success', "$language: a client's replaces it";

    @run = $runner->run(graph_id => 'deletes', input => { n => 0 });
    is_deeply [ $run[-1]{status}, $run[-1]{error}{error} ], [ 'error', 'NotImplementedError' ], "$language: a node cannot delete threads";

    @run = $runner->run(graph_id => 'hides', input => { n => 0 }, stream_modes => ['events']);
    my %names = map { $_->{name} => 1 } events_of('events', @run);
    ok $names{shown}, "$language: events have what a node calls";
    ok !$names{secret}, "$language: what is tagged as hidden is left out";
}

# --- Python alone ---------------------------------------------------------------

my $python = runner('python', {});
for my $use (1, 2) {
    is last_values($python->run(graph_id => 'managed', input => { n => 0 }))->{n}, 1, "python: use $use of a context manager: it is open while nodes are executed, and closed after the run";
}
for my $case ([ 'without', {}, [qw(Point Size)] ],
    [ 'with', { checkpointer => { serde => { allowed_msgpack_modules => [ [ 'points', 'Point' ] ] } } }, [qw(Point dict)] ]) {
    my ($title, $manifest, $kinds) = @{$case};
    my $records = RecordStore->new;
    my $thread = new_uuid();
    my @kinds;
    # The second one has not encoded the values itself.
    for my $number (1, 2) {
        my $runner = runner('python', $manifest, records => $records);
        my @lines = $runner->run(graph_id => 'typed', input => { n => $number }, $runner->next_run($thread));
        is $lines[-1]{status}, 'success', "python: $title a list of types of checkpoints: run $number";
        @kinds = @{ last_values(@lines)->{kinds} // [] };
    }
    is_deeply \@kinds, $kinds, "python: $title checkpointer.serde.allowed_msgpack_modules: the types that the next process reads";
}

done_testing;
