# SPDX-License-Identifier: Apache-2.0
# Breakpoints in an attempt that follows a lost one: it stops at those that the run has reached, which no client has
# approved, and passes those that a client has. A run that is to stop between steps ends at a breakpoint. A resume that is strict passes none either.
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

# A runner whose process is lost, for each run after one of its lines: nothing of what follows arrives.
package LostRunner {
    use parent -norequire, 'ApplicationTest';

    sub take_line {
        my ($self, $line) = @_;
        my $run_id = $line->{run_id} // '';
        return if $self->{is_lost}{$run_id};
        $self->SUPER::take_line($line);
        $self->{is_lost}{$run_id} = 1 if $self->{last}{$run_id} && $self->{last}{$run_id}->($line);
        return;
    }
}

my $UPDATE = join '-', map { '0' x $_ } 8, 4, 4, 4, 12;

my %file_of = (python => [ 'reached.py', <<'PYTHON' ], javascript => [ 'reached.mjs', <<'JAVASCRIPT' ]);
import asyncio
import operator
from typing import Annotated, TypedDict

from langgraph.config import get_store
from langgraph.graph import START, StateGraph
from langgraph.types import Send, interrupt

class State(TypedDict, total=False):
    log: Annotated[list, operator.add]

async def wait(state: State):
    await get_store().aget(("gate",), "open")
    return {"log": ["plan"]}

begun_left = asyncio.Event()

async def left(state: State):
    await get_store().aget(("gate",), "open")
    begun_left.set()
    return {"log": ["left"]}

async def right(state: State):
    await begun_left.wait()
    await get_store().aget(("gate",), "late")
    return {"log": ["right"]}

async def ask(state: State):
    return {"log": [interrupt("ask")]}

def writes(name):
    async def node(state: State):
        return {"log": [name]}
    return node

def chain(first="plan", node=None):
    builder = StateGraph(State)
    builder.add_node(first, node or writes(first))
    builder.add_node("danger", writes("danger"))
    builder.add_node("last", writes("last"))
    builder.add_edge(first, "danger")
    builder.add_edge("danger", "last")
    return builder

def begun(first="plan", node=None):
    return chain(first, node).add_edge(START, first)

def around(inner):
    builder = StateGraph(State)
    builder.add_node("ready", writes("ready"))
    builder.add_node("inner", inner)
    builder.add_edge(START, "ready")
    builder.add_edge("ready", "inner")
    return builder.compile()

plain = begun().compile()
before = begun().compile(interrupt_before=["danger"])
after = begun().compile(interrupt_after=["plan"])
sent = chain().add_conditional_edges(START, lambda state: [Send("plan", state)], ["plan"]).compile()
inner_before = around(before)
inner_after = around(after)
gated = begun(node=wait).compile()
fan = StateGraph(State).add_node("ready", writes("ready")).add_node("inner", before).add_edge(START, "ready").add_edge(START, "inner").compile()
asks = begun("ask", ask).compile()
sides = (StateGraph(State).add_node("left", begun("plan", left).compile())
    .add_node("right", begun("plan", right).compile(interrupt_before=["danger"])).add_edge(START, "left").add_edge(START, "right").compile())
PYTHON
import { Annotation, interrupt, Send, START, StateGraph } from '@langchain/langgraph';

const State = Annotation.Root({ log: Annotation({ reducer: (left, right) => left.concat(right), default: () => [] }) });
const wait = async (state, config) => {
    await config.store.get(['gate'], 'open');
    return { log: ['plan'] };
};
let beginLeft;
const begunLeft = new Promise((resolve) => { beginLeft = resolve; });
const left = async (state, config) => {
    await config.store.get(['gate'], 'open');
    beginLeft();
    return { log: ['left'] };
};
const right = async (state, config) => {
    await begunLeft;
    await config.store.get(['gate'], 'late');
    return { log: ['right'] };
};
const ask = async () => ({ log: [interrupt('ask')] });
const writes = (name) => async () => ({ log: [name] });

const chain = (first = 'plan', node = writes(first)) => new StateGraph(State)
    .addNode(first, node).addNode('danger', writes('danger')).addNode('last', writes('last'))
    .addEdge(first, 'danger').addEdge('danger', 'last');
const begun = (first, node) => chain(first, node).addEdge(START, first ?? 'plan');
const around = (inner) => new StateGraph(State)
    .addNode('ready', writes('ready')).addNode('inner', inner).addEdge(START, 'ready').addEdge('ready', 'inner').compile();

export const plain = begun().compile();
export const before = begun().compile({ interruptBefore: ['danger'] });
export const after = begun().compile({ interruptAfter: ['plan'] });
export const sent = chain().addConditionalEdges(START, (state) => [new Send('plan', state)], ['plan']).compile();
export const inner_before = around(before);
export const inner_after = around(after);
export const gated = begun('plan', wait).compile();
export const fan = new StateGraph(State).addNode('ready', writes('ready')).addNode('inner', before)
    .addEdge(START, 'ready').addEdge(START, 'inner').compile();
export const asks = begun('ask', ask).compile();
export const sides = new StateGraph(State).addNode('left', begun('plan', left).compile())
    .addNode('right', begun('plan', right).compile({ interruptBefore: ['danger'] })).addEdge(START, 'left').addEdge(START, 'right').compile();
JAVASCRIPT

my @GRAPHS = qw(plain before after sent inner_before inner_after gated fan asks sides);

sub runner_in {
    my ($language, %options) = @_;
    my ($name, $version) = split / /, $language;
    my ($interpreter, $program) = runner_of($name);
    my ($file, $text) = @{ $file_of{$name} };
    my %graphs = map { $_ => "./$file:$_" } @GRAPHS;
    my $folder = folder_of($name, { graphs => \%graphs }, $file => $text);
    if ($language eq 'javascript 1.0') {
        unlink "$folder/node_modules" or die "unlink: $!\n";
        symlink node_application('node-1.0') . '/node_modules', "$folder/node_modules" or die "symlink: $!\n";
    }
    return LostRunner->new(command => [ $language eq 'python 1.0' ? python($version) : $interpreter, $program ],
        graphs => \%graphs, directory => $folder, %options);
}

# A condition for the checkpoint of the root graph that a node follows.
sub at {
    my ($next) = @_;
    return sub {
        my ($line) = @_;
        return $line->{type} eq 'checkpoint' && ($line->{ns} // '') eq '' && "@{ $line->{next} }" eq $next;
    };
}

# The state of the last checkpoint of the thread.
sub head {
    my ($runner, $thread) = @_;
    my $stored = $runner->records->thread($thread);
    return $stored->{checkpoints}{ $stored->{head} };
}

# The nodes that the state has executed, and those that follow.
sub state_of {
    my ($runner, $thread) = @_;
    my $head = head($runner, $thread);
    return join(' ', @{ $head->{values}{log} }) . ' | ' . join ' ', @{ $head->{next} };
}

# A condition for the put of a step of the subgraph, once the checkpoint of its node is shown.
sub below {
    my ($step) = @_;
    my ($is_put, $is_shown);
    return sub {
        my ($line) = @_;
        $is_put ||= $line->{type} eq 'put' && $line->{ns} =~ /\Ainner:[^|]+\z/ && $line->{metadata}{step} == $step;
        $is_shown ||= at('inner')->($line);
        return $is_put && $is_shown;
    };
}

# The first attempt of a run, which is lost after a line; returns its message.
sub lose {
    my ($runner, $last, %run) = @_;
    my $start = start_line(%run, $runner->next_run($run{thread_id}));
    $runner->{last}{ $start->{run_id} } = $last;
    $runner->send($start);
    $runner->wait_for_io while !$runner->{is_lost}{ $start->{run_id} };
    return $start;
}

# The second attempt: its last line.
sub repeat {
    my ($runner, $start) = @_;
    my %next = $runner->next_run($start->{thread_id});
    # As the server does for a run that has put a checkpoint.
    my %rest = ($next{checkpoint}{run_id} // '') eq $start->{run_id} ? (command => undef, input => undef) : ();
    return ($runner->run(%{$start}, %next, %rest, attempt => 2, epoch => 2,
        answered => $runner->records->has_answered($start->{thread_id}, $start->{run_id}) ? \1 : \0))[-1];
}

my @BEFORE = (interrupt_before => ['danger']);
my @AFTER = (interrupt_after => ['plan']);

# Where the breakpoint is, the graph, the members of the run; after which line it is lost; the states after its second attempt and after the
# next run.
my @REACHED = (
    [ 'before a node', 'plain', [@BEFORE], sub { at('danger') }, 'plan | danger', 'plan danger last | ' ],
    [ 'before all nodes', 'plain', [ interrupt_before => '*' ], sub { at('plan') }, ' | plan', 'plan | danger' ],
    [ 'after a node', 'plain', [@AFTER], sub { at('danger') }, 'plan | danger', 'plan danger last | ' ],
    [ 'after all nodes', 'plain', [ interrupt_after => '*' ], sub { at('danger') }, 'plan | danger', 'plan danger | last' ],
    [ 'after a task of Send', 'sent', [@AFTER], sub { at('danger') }, 'plan | danger', 'plan danger last | ' ],
    [ 'before a node, of the graph', 'before', [], sub { at('danger') }, 'plan | danger', 'plan danger last | ' ],
    [ 'after a node, of the graph', 'after', [], sub { at('danger') }, 'plan | danger', 'plan danger last | ' ],
    [ 'before a node, durability exit', 'plain', [ @BEFORE, durability => 'exit' ], sub { at('danger') }, 'plan | danger', 'plan danger last | ' ],
    [ 'after a node, durability exit', 'plain', [ @AFTER, durability => 'exit' ], sub { at('danger') }, 'plan | danger', 'plan danger last | ' ],
    [ 'before a node of a subgraph', 'inner_before', [], sub { below(1) }, 'ready | inner', 'ready ready plan danger last | ' ],
    [ 'after a node of a subgraph', 'inner_after', [], sub { below(1) }, 'ready | inner', 'ready ready plan danger last | ' ],
    [ 'that the run has not reached', 'plain', [@BEFORE], sub { at('plan') }, 'plan | danger', 'plan danger last | ' ],
    [ 'before a node, and another one later', 'plain', [ interrupt_before => ['plan'], interrupt_after => ['danger'] ], sub { at('plan') },
        ' | plan', 'plan danger | last' ],
);

# The same of a run that goes on from a breakpoint where the one before it has stopped: the client has approved it.
my @APPROVED = (
    [ 'before it has put a checkpoint', 'plain', [@BEFORE], sub { sub { $_[0]{type} eq 'event' } }, 'plan danger last | ' ],
    [ 'after a checkpoint', 'plain', [@BEFORE], sub { at('last') }, 'plan danger last | ' ],
    [ 'of all nodes', 'plain', [ interrupt_before => '*' ], sub { sub { $_[0]{type} eq 'event' } }, 'plan | danger' ],
    [ 'in a subgraph', 'inner_before', [], sub { sub { $_[0]{type} eq 'put' && $_[0]{metadata}{step} == 2 } }, 'ready ready plan danger last | ' ],
    [ 'with an update', 'plain', [ @BEFORE, command => { update => { log => ['update'] } } ],
        sub { sub { $_[0]{type} eq 'checkpoint' || $_[0]{type} eq 'put_writes' && $_[0]{task_id} eq $UPDATE } }, 'plan update danger last | ' ],
    [ 'with an answer', 'asks', [ interrupt_before => ['ask'], command => { resume => 'yes' } ],
        sub { sub { $_[0]{type} eq 'put_writes' && $_[0]{task_id} eq $UPDATE } }, 'yes danger last | ' ],
);

sub check_reached {
    my ($runner, $title, $start, $reached, $ended) = @_;
    my $thread = $start->{thread_id};
    my $end = repeat($runner, $start);
    is $end->{status}, 'success', "$title: the repeated attempt ends with success" or diag explain $end->{error};
    is state_of($runner, $thread), $reached, "$title: the repeated attempt stops at it";
    ($end) = reverse $runner->run(%{$start}{qw(graph_id durability interrupt_before interrupt_after)}, $runner->next_run($thread));
    is $end->{status}, 'success', "$title: the next run goes on" or diag explain $end->{error};
    is state_of($runner, $thread), $ended, "$title: the next run passes it";
    my @snapshots = map { values %{$_} } values %{ $runner->records->thread($thread)->{snapshots} };
    is_deeply [ grep { exists $_->{checkpoint}{channel_versions}{__unseen__} } @snapshots ], [],
        "$title: the checkpoints are stored as the library has made them";
    return;
}

sub check_approved {
    my ($runner, $title, $start, $ended) = @_;
    my $end = repeat($runner, $start);
    is $end->{status}, 'success', "$title: the repeated attempt ends with success" or diag explain $end->{error};
    is state_of($runner, $start->{thread_id}), $ended, "$title: the repeated attempt passes it";
    return;
}

# A repeated attempt of a run whose lost one has stored nothing: its answer is for an interrupt that does not wait.
sub check_strict {
    my ($runner, $language) = @_;
    for ([ 'at a breakpoint', 'plain', 'plan | danger' ], [ 'at a question', 'asks', ' | ask' ]) {
        my ($place, $graph, $state) = @{$_};
        my %run = (graph_id => $graph, @BEFORE);
        my $thread = new_uuid();
        $runner->run(%run, thread_id => $thread, input => { log => [] });
        my ($end) = reverse $runner->run(%run, $runner->next_run($thread), attempt => 2, epoch => 2, strict_resume => \1,
            command => { resume => { 'a' x 32 => 'yes' } });
        is $end->{status}, 'error', "$language, strict_resume, $place: a repeated attempt with an answer to another interrupt fails";
        is state_of($runner, $thread), $state, "$language, strict_resume, $place: a repeated attempt with an answer to another interrupt executes nothing";
    }
    return;
}

# A condition for the end of a node beside a subgraph that has stopped at a breakpoint.
sub beside {
    my ($step, $is_put, $has_ended, $is_shown);
    return sub {
        my ($line) = @_;
        $step = $line->{checkpoint_id} if $line->{type} eq 'put' && $line->{ns} eq '' && $line->{metadata}{step} == 0;
        $is_put ||= $line->{type} eq 'put' && $line->{ns} =~ /\Ainner:[^|]+\z/ && $line->{metadata}{step} == 1;
        $has_ended ||= $line->{type} eq 'put_writes' && $line->{checkpoint_id} eq ($step // '') && grep { $_->[1] eq 'log' } @{ $line->{writes} };
        $is_shown ||= $line->{type} eq 'checkpoint' && ($line->{ns} // '') eq '' && @{ $line->{next} } == 2;
        return $is_put && $has_ended && $is_shown;
    };
}

# The second attempt writes nothing, and shows the state that the lost one has left.
sub check_beside {
    my ($runner, $language) = @_;
    my $start = lose($runner, beside(), graph_id => 'fan', thread_id => new_uuid(), input => { log => [] });
    my $records = $runner->records;
    $runner = runner_in($language, records => $records);
    my @lines = $runner->run(%{$start}, $runner->next_run($start->{thread_id}), input => undef, attempt => 2, epoch => 2);
    my ($pending) = map { $_->{task} } grep { $_->{task}{id} !~ /[^f-]/ } lines_of('task', @lines);
    is $lines[-1]{status}, 'success', "$language: beside a breakpoint of a subgraph the repeated attempt ends with success" or diag explain $lines[-1];
    is_deeply $pending->{next}, ['inner'], "$language: beside a breakpoint of a subgraph the state shows the end of the other node";
    return;
}

# A run that is to stop while the node before the breakpoint executes.
sub check_stopped {
    my ($language, @breakpoint) = @_;
    my $title = "$language, $breakpoint[0]";
    my ($runner, $start);
    $runner = runner_in($language, store => sub {
        my ($request) = @_;
        $runner->send({ type => 'stop', %{$start}{qw(run_id epoch)}, reason => 'drain', deadline_ms => 60_000 });
        return $runner->reply_to($request, $request->{id}, { ok => \1, result => { results => [undef] }, cursor => undef });
    });
    $start = start_line(graph_id => 'gated', input => { log => [] }, @breakpoint);
    $runner->send($start);
    my ($end) = reverse $runner->lines_of_run($start->{run_id});
    is $end->{status}, 'success', "$title: a run that is to stop ends at the breakpoint" or diag explain $end;
    is state_of($runner, $start->{thread_id}), 'plan | danger', "$title: a run that is to stop does not pass the breakpoint";
    return;
}

# A run that is to stop while the nodes of two parallel subgraphs execute: the one is drained, then the other one reaches a breakpoint.
sub check_sides {
    my ($language) = @_;
    my ($runner, $start, $late, $is_put);
    my $reply = sub {
        my ($request) = @_;
        my %result = (ok => \1, result => { results => [undef] }, cursor => undef);
        return $runner->send({ type => 'reply', %{$request}{qw(id run_id epoch)}, %result });
    };
    my $requests = 0;
    $runner = runner_in($language, store => sub {
        my ($request) = @_;
        if (!$requests++) {
            $runner->send({ type => 'stop', %{$start}{qw(run_id epoch)}, reason => 'drain', deadline_ms => 60_000 });
        }
        elsif (!$is_put) {
            $late = $request;
            return '';
        }
        $reply->($request);
        return '';
    });
    $start = start_line(graph_id => 'sides', input => { log => [] });
    $runner->{last}{ $start->{run_id} } = sub {
        my ($line) = @_;
        $is_put ||= $line->{type} eq 'put' && $line->{ns} =~ /\Aleft:/ && $line->{metadata}{step} == 1;
        $reply->($late) if $is_put && $late;
        $late = undef if $is_put;
        return 0;
    };
    $runner->send($start);
    my ($end) = reverse $runner->lines_of_run($start->{run_id});
    is $end->{status}, 'drained', "$language: a run of which one subgraph is drained and another one stops at a breakpoint is drained" or diag explain $end;
    is repeat($runner, $start)->{status}, 'success', "$language: the next attempt ends at the breakpoint";
    is_deeply head($runner, $start->{thread_id})->{next}, [ 'left', 'right' ], "$language: it does not pass the breakpoint";
    return;
}

for my $language ('python', 'python 1.0', 'javascript', 'javascript 1.0') {
    my $runner = runner_in($language);
    my @checks;
    for (@REACHED) {
        my ($case, $graph, $members, $last, @states) = @{$_};
        my $start = lose($runner, $last->(), graph_id => $graph, @{$members}, thread_id => new_uuid(), input => { log => [] });
        push @checks, sub { check_reached($_[0], "$language, a breakpoint $case", $start, @states) };
    }
    for (@APPROVED) {
        my ($case, $graph, $members, $last, $state) = @{$_};
        my %run = (graph_id => $graph, @{$members}, thread_id => new_uuid());
        my @first = $graph eq 'asks' ? (interrupt_before => undef) : ();
        $runner->run(%run, @first, command => undef, input => { log => [] });
        my $start = lose($runner, $last->(), %run);
        push @checks, sub { check_approved($_[0], "$language, an approved breakpoint, $case", $start, $state) };
    }
    my $records = $runner->records;
    undef $runner;
    $runner = runner_in($language, records => $records);
    $_->($runner) for @checks;
    check_strict($runner, $language);
    check_beside($runner, $language);
    undef $runner;
    check_stopped($language, @BEFORE);
    check_stopped($language, @AFTER);
    # The oldest libraries drain no subgraph.
    check_sides($language) if $language !~ /1[.]0/;
}

done_testing;
