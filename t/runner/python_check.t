# SPDX-License-Identifier: Apache-2.0
# The Python runner's --check: reports about the graphs of a folder, and its exit status.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Applications qw(check_folder folder_of);
use PythonRunner qw(application);
use Test::More;

my $check = check_folder('python', application());
is $check->{status}, 1, 'check: the status is 1 when a graph cannot be used';
is $check->{type}, 'ready', 'check: the last line of the output is ready';
like $check->{lines}, qr/^\{"type":"importing","graph_id":"broken"\}$/m, 'check: the graph that is being imported is named before';
is $check->{graphs}{broken}{error}{error}, 'RuntimeError', 'check: it has the error of a graph';
ok $check->{graphs}{counter}{schemas}{input_schema}, 'check: it has the schemas of a graph';
like $check->{errors}, qr/graph broken cannot be loaded: RuntimeError/, 'check: the log says which graph and why';

my $graph = "from langgraph.graph import START, MessagesState, StateGraph\nprint('loading')\n"
    . "graph = StateGraph(MessagesState).add_node('a', lambda state: {}).add_edge(START, 'a')\n";
my $good = folder_of('python', { graphs => { a => { path => './output.py:graph', description => 'The text' } } }, 'output.py' => $graph);
$check = check_folder('python', $good);
is $check->{status}, 0, 'check: the status is 0 when all graphs can be used';
is $check->{graphs}{a}{description}, 'The text', 'check: the description is that of langgraph.json';
like $check->{errors}, qr/^loading$/m, 'check: prints of the application go to standard error';

# A state of 200 fields whose schema has some 400 kB: those of input and output are as long.
my $wide = "import pydantic\n$graph" =~ s/MessagesState\)/State)/r =~ s/^graph = /State = pydantic.create_model('State', **{f'field_{n}_' + 'x' * 900: (int, 0) for n in range(200)})\ngraph = /mr;
$check = check_folder('python', folder_of('python', { graphs => { a => './wide.py:graph' } }, 'wide.py' => $wide));
is $check->{status}, 0, 'check: a graph with long schemas can be used';
is_deeply [ sort grep { /schema/ } keys %{ $check->{graphs}{a}{schemas} } ], [qw(config_schema input_schema)],
    'check: its report has those schemas that fit together';
like $check->{errors}, qr/graph a: its output_schema is left out: \d+ bytes, more than \d+/, 'check: the log says which are left out';

# Of the standard library: pydantic refuses it before Python 3.12.
my $typed = <<'PY';
from typing import Annotated, Generic, NotRequired, TypedDict, TypeVar
import operator
from langgraph.graph import START, StateGraph
Kind = TypeVar('Kind')
class Place(TypedDict, Generic[Kind]):
    city: str
    kind: Kind
class Base(TypedDict):
    count: Annotated[int, operator.add]
class State(Base, total=False):
    place: Place[int]
class Context(TypedDict):
    user: str
    age: NotRequired[int]
graph = StateGraph(State, context_schema=Context).add_node('a', lambda state: {}).add_edge(START, 'a')
PY
for my $class ('typing', 'typing_extensions') {
    my $text = $class eq 'typing' ? $typed : $typed =~ s/, TypedDict//r =~ s/^/from typing_extensions import TypedDict\n/r;
    my $found = check_folder('python', folder_of('python', { graphs => { a => './typed.py:graph' } }, 'typed.py' => $text));
    unlike $found->{errors}, qr{schema}, "check: the log says nothing about a state of $class.TypedDict";
    $check = $found, next if $class eq 'typing';
    is_deeply $check->{graphs}{a}{schemas}, $found->{graphs}{a}{schemas}, 'check: the schemas of both classes are the same';
    is_deeply [ sort keys %{ $found->{graphs}{a}{schemas}{state_schema}{properties} } ], [qw(count place)], 'check: they have the keys of base classes';
    is_deeply $found->{graphs}{a}{schemas}{context_schema}{required}, ['user'], 'check: they say which keys are required';
}

$check = check_folder('python', folder_of('python', { graphs => { a => './output.py:graph', b => './bad.py:graph' } },
    'output.py' => "import threading\nthreading.Thread(target=threading.Event().wait).start()\n$graph",
    'bad.py' => "class Silent(Exception):\n    def __str__(self):\n        raise SystemExit\nraise Silent\n"));
is $check->{status}, 1, 'check: threads of a module do not hold it up';
is_deeply $check->{graphs}{b}{error}, { error => 'Silent', message => './bad.py:graph: <Silent>' },
    'check: the error of a module that has no text';

for (
    [ 'no langgraph.json', undef, qr/No such file/ ],
    [ 'no JSON', '{', qr/langgraph\.json: / ],
    [ 'no graphs', '{"dependencies": []}', qr/no object `graphs`/ ],
    [ 'a graph without a path', '{"graphs": {"a": 7}}', qr/graph a: neither a path/ ],
    [ 'no file of env', '{"graphs": {}, "env": "none"}', qr/env: none: No such file/ ],
) {
    my ($what, $manifest, $reason) = @{$_};
    $check = check_folder('python', folder_of('python', $manifest));
    is $check->{status}, 2, "check: the status is 2 with $what";
    like $check->{errors}, $reason, "check: the log says that there is $what";
}

$check = check_folder('python', $good, 'python3');
is $check->{status}, 2, 'check: the status is 2 without LangGraph';
like $check->{errors}, qr/no LangGraph can be imported by \S+python3\S*: \w+ is missing; run `agentctl build \Q$good\E`/,
    'check: the log names what is missing, the application and the remedy';

done_testing;
