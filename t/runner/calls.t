# SPDX-License-Identifier: Apache-2.0
# The calls update and describe, and records with `ack`: the same answers by the runners of both languages.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Applications qw(check_folder folder_of runner_of);
use ApplicationTest;
use PythonRunner ();
use RecordStore;
use RunnerTest qw(new_uuid lines_of start_line);
use Test::More;

my %FILE = (python => 'g.py', javascript => 'g.mjs');
my %SOURCE = (python => <<'PY', javascript => <<'JS');
import asyncio
import operator
from typing import Annotated, Any

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    n: int
    names: Annotated[list[str], operator.add]


def graph_of(**nodes: Any) -> Any:
    graph = StateGraph(State)
    for name, node in nodes.items():
        graph.add_node(name, node).add_edge(START, name)
    return graph.compile()


async def act(state: State) -> Any:
    return {"names": ["x"]}


leaf = graph_of(act=act)
nested = graph_of(a=graph_of(b=graph_of(c=leaf)), ab=graph_of(d=leaf))

fans = (
    StateGraph(State)
    .add_node("plan", lambda state: {})
    .add_node("work", leaf)
    .add_edge(START, "plan")
    .add_conditional_edges("plan", lambda state: [Send("work", {"names": []})] * state["n"], ["work"])
    .compile()
)


async def wait_briefly(state: State) -> Any:
    for _ in range(state["n"]):
        try:
            await asyncio.wait_for(leaf.ainvoke({"names": []}), 0.05)
        except TimeoutError:
            pass
    get_stream_writer()("all given up")
    return {}


impatient = graph_of(waits=wait_briefly)


def tenant(config: RunnableConfig) -> Any:
    return graph_of(**{config["configurable"]["tenant"]: leaf})
PY
import { Annotation, Send, START, StateGraph } from '@langchain/langgraph';

const State = Annotation.Root({ n: Annotation(), names: Annotation({ reducer: (a, b) => a.concat(b), default: () => [] }) });
const graphOf = (nodes) => Object.entries(nodes).reduce(
    (graph, [name, node]) => graph.addNode(name, node).addEdge(START, name), new StateGraph(State)).compile();
const leaf = graphOf({ act: async () => ({ names: ['x'] }) });
export { leaf };
export const nested = graphOf({ a: graphOf({ b: graphOf({ c: leaf }) }), ab: graphOf({ d: leaf }) });
export const fans = new StateGraph(State)
    .addNode('plan', () => ({}))
    .addNode('work', leaf)
    .addEdge(START, 'plan')
    .addConditionalEdges('plan', ({ n }) => Array.from({ length: n }, () => new Send('work', { names: [] })), ['work'])
    .compile();
const waitBriefly = async ({ n }, config) => {
    for (let count = 0; count < n; count += 1) {
        await Promise.race([leaf.invoke({ names: [] }), new Promise((resolve) => { setTimeout(resolve, 50); })]);
    }
    config.writer('all given up');
    return {};
};
export const impatient = graphOf({ waits: waitBriefly });
export const tenant = (config) => graphOf({ [config.configurable.tenant.toLowerCase()]: leaf });
JS
my @GRAPHS = qw(leaf nested fans impatient tenant);

sub paths_of { my ($language) = @_; return { map { $_ => "./$FILE{$language}:$_" } @GRAPHS } }

sub folder { my ($language) = @_; return folder_of($language, { graphs => paths_of($language) }, $FILE{$language} => $SOURCE{$language}) }

# The lines of a call.
sub call {
    my ($runner, $op, $graph, $arguments, %fields) = @_;
    my $call = { type => 'call', run_id => new_uuid(), epoch => 1, attempt => 1, op => $op, thread_id => undef,
        graph_id => $graph, arguments => $arguments, config => {}, context => {}, checkpoint => undef, %fields };
    $runner->send($call);
    return $runner->lines_of_run($call->{run_id});
}

# The value of a call that describes a graph.
sub described {
    my ($runner, $graph, $arguments, %fields) = @_;
    my $end = (call($runner, 'describe', $graph, $arguments, %fields))[-1];
    return $end->{value} // $end->{error};
}

# [namespace, whether with recurse, the namespaces that are found]
my @subgraphs = (
    [ undef, 0, [qw(a ab)] ],
    [ undef, 1, [qw(a ab ab|d a|b a|b|c)] ],
    [ 'a', 0, ['a'] ],
    [ 'a', 1, [qw(a a|b a|b|c)] ],
    [ 'a|b', 0, ['a|b'] ],
    [ 'a|b', 1, [qw(a|b a|b|c)] ],
    [ 'a|b|c', 1, ['a|b|c'] ],
    [ 'a|d', 1, [] ],
    [ 'b', 1, [] ],
);

# [what, updates, the state after them]
my @updates = (
    [ 'an object', [ { values => { names => ['y'] }, as_node => 'act' } ], [qw(x y)] ],
    [ 'pairs', [ { values => [ [ names => ['y'] ], [ names => ['z'] ] ], as_node => 'act' } ], [qw(x y z)] ],
    [ 'no pairs', [ { values => [], as_node => 'act' } ], ['x'] ],
    [ 'a command with pairs', [ { command => { update => [ [ names => ['y'] ], [ names => ['z'] ] ] }, as_node => 'act' } ], [qw(x y z)] ],
);

for my $language (qw(python javascript)) {
    my $folder = folder($language);
    my $runner = ApplicationTest->new(command => [ runner_of($language) ], directory => $folder,
        records => RecordStore->new, graphs => paths_of($language));

    for my $case (@updates) {
        my ($what, $updates, $names) = @{$case};
        my $thread = new_uuid();
        $runner->run(graph_id => 'leaf', thread_id => $thread, input => { n => 1 });
        my @lines = call($runner, 'update', 'leaf', { supersteps => [$updates] }, $runner->next_run($thread));
        my ($checkpoint) = lines_of('checkpoint', @lines);
        is_deeply [ @{ $lines[-1] }{qw(status error)}, $checkpoint->{values}{names} ], [ 'success', undef, $names ], "$language: update: $what";
        my ($update) = @{$updates};
        is_deeply $checkpoint->{metadata}{writes}, { act => $update->{values} // $update->{command}{update} },
            "$language: update: $what: the metadata have it as writes";
    }

    is_deeply described($runner, 'nested', { what => 'nonsense' }), { error => 'ValueError', message => 'a graph has no "nonsense"' },
        "$language: describe: what a graph does not have";
    for my $case (@subgraphs) {
        my ($namespace, $recurse, $found) = @{$case};
        my $value = described($runner, 'nested', { what => 'subgraphs', namespace => $namespace, recurse => $recurse ? \1 : \0 });
        is_deeply [ sort keys %{$value} ], $found,
            "$language: describe: subgraphs of " . ($namespace // 'the graph') . ($recurse ? ' and below' : '');
    }

    my $report = $runner->{ready}{graphs}{tenant};
    is_deeply [ @{$report}{qw(error factory)} ], [ undef, Cpanel::JSON::XS::true() ],
        "$language: factory: one that fails without a client's configuration is not an error";
    like $runner->log_text, qr/^graph tenant: its factory fails without a client's configuration: (?:Key|Type)Error: /m, "$language: factory: the log says that it has failed";
    my @config = (config => { configurable => { tenant => 'acme' } });
    is_deeply [ map { $_->{id} } grep { $_->{id} !~ /\A__/ } @{ described($runner, 'tenant', { what => 'graph', xray => \0 }, @config)->{nodes} } ],
        ['acme'], "$language: factory: its drawing is made with the configuration of the call";
    is_deeply [ keys %{ described($runner, 'tenant', { what => 'subgraphs', namespace => undef, recurse => \0 }, @config) } ],
        ['acme'], "$language: factory: so are its subgraphs";
    is ref described($runner, 'tenant', { what => 'schemas' }, @config), 'HASH', "$language: factory: and its schemas";
    is +($runner->run(graph_id => 'tenant', input => { n => 1 }, @config))[-1]{status}, 'success', "$language: factory: runs are executed";
    my $checked = check_folder($language, $folder);
    is_deeply [ $checked->{status}, $checked->{graphs}{tenant}{error} ], [ 0, undef ], "$language: factory: the folder can be used";

    my @lines = $runner->run(graph_id => 'fans', input => { n => 40 }, durability => 'sync');
    is $lines[-1]{status}, 'success', "$language: durability sync: parallel subgraphs have at most 16 records that are not acknowledged";
    is scalar(grep { defined $_->{ack} && $_->{ns} } lines_of('put', @lines)), 120, "$language: durability sync: all of their checkpoints have been";
    $runner->withhold_acks;
    my $start = start_line(graph_id => 'fans', input => { n => 40 }, durability => 'sync');
    my $open = 0;
    $runner->send($start);
    $runner->lines_until(sub {
        $open++ if defined $_[0]{ack};
        # Those of the root graph, before which no subgraph begins.
        $runner->acknowledge($_[0]) if defined $_[0]{ack} && !$_[0]{ns} && $open--;
        return $open == 16;
    });
    $runner->send({ type => 'cancel', run_id => $start->{run_id}, epoch => 1 });
    is +($runner->lines_of_run($start->{run_id}))[-1]{status}, 'interrupted',
        "$language: durability sync: a cancelled run waits for no acknowledgement, and has no more of them open";
    $start = start_line(graph_id => 'impatient', input => { n => 24 }, durability => 'sync', stream_modes => ['custom']);
    my @open;
    $runner->send($start);
    $runner->lines_until(sub {
        my ($line) = @_;
        if (defined $line->{ack} && !$line->{ns}) { $runner->acknowledge($line) }
        elsif (defined $line->{ack}) { push @open, $line }
        # In JavaScript the stream waits for the records of subgraphs.
        return ($line->{event} // '') eq 'custom' || ($language eq 'javascript' && @open == 16);
    });
    cmp_ok scalar @open, '<=', 16, "$language: durability sync: a node that does not wait for its subgraphs has at most 16 open records too";
    $runner->{is_withholding_acks} = 0;
    $runner->acknowledge($_) for @open;
    is +($runner->lines_of_run($start->{run_id}))[-1]{status}, 'success', "$language: durability sync: its run ends when they are acknowledged";
    $runner->send({ type => 'drain' });
    is $runner->finish, 0, "$language: the runner goes on after all of them";
}
done_testing;
