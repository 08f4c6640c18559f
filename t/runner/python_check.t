# SPDX-License-Identifier: Apache-2.0
# The Python runner's --check: reports about the graphs of a folder, and its exit status.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Env qw(root write_file);
use Cpanel::JSON::XS qw(decode_json);
use File::Temp qw(tempdir);
use PythonRunner qw(python application);
use Test::More;

my $runner = root() . '/mod_agent/runners/python';
local $ENV{PYTHONPYCACHEPREFIX} = root() . '/.build/runner-packages/pycache';

# (status, standard output, standard error)
sub check {
    my ($folder, $python) = @_;
    my $errors = tempdir(CLEANUP => 1) . '/errors';
    my $output = qx(cd '$folder' && '$python' '$runner' --check 2>'$errors');
    open my $file, '<', $errors or die "$errors: $!\n";
    return ($? >> 8, $output, do { local $/; <$file> });
}

sub folder_with {
    my (%files) = @_;
    my $folder = tempdir(CLEANUP => 1);
    write_file("$folder/$_", $files{$_}) for keys %files;
    return $folder;
}

my ($status, $output, $errors) = check(application(), python());
is $status, 1, 'check: the status is 1 when a graph cannot be used';
my $ready = decode_json($output);
is $ready->{type}, 'ready', 'check: the output is a line ready';
is $ready->{graphs}{broken}{error}{error}, 'RuntimeError', 'check: it has the error of a graph';
ok $ready->{graphs}{counter}{schemas}{input_schema}, 'check: it has the schemas of a graph';
like $errors, qr/graph broken cannot be loaded: RuntimeError/, 'check: the log says which graph and why';

my $graph = "from langgraph.graph import START, MessagesState, StateGraph\nprint('loading')\n"
    . "graph = StateGraph(MessagesState).add_node('a', lambda state: {}).add_edge(START, 'a')\n";
my $good = folder_with('langgraph.json' => '{"graphs": {"a": {"path": "./lane.py:graph", "description": "The text"}}}',
    'lane.py' => $graph);
($status, $output, $errors) = check($good, python());
is $status, 0, 'check: the status is 0 when all graphs can be used';
is decode_json($output)->{graphs}{a}{description}, 'The text', 'check: the description is that of langgraph.json';
like $errors, qr/^loading$/m, 'check: prints of the application go to standard error';

my $lasting = folder_with('langgraph.json' => '{"graphs": {"a": "./lane.py:graph", "b": "./bad.py:graph"}}',
    'lane.py' => "import threading\nthreading.Thread(target=threading.Event().wait).start()\n$graph",
    'bad.py' => "class Silent(Exception):\n    def __str__(self):\n        raise SystemExit\nraise Silent\n");
($status, $output, $errors) = check($lasting, python());
is $status, 1, 'check: threads of a module do not hold it up';
is_deeply decode_json($output)->{graphs}{b}{error}, { error => 'Silent', message => './bad.py:graph: <Silent>' },
    'check: the error of a module that has no text';

for (
    [ 'no langgraph.json', {}, qr/No such file/ ],
    [ 'no JSON', { 'langgraph.json' => '{' }, qr/langgraph\.json: / ],
    [ 'no graphs', { 'langgraph.json' => '{"dependencies": []}' }, qr/no object `graphs`/ ],
    [ 'a graph without a path', { 'langgraph.json' => '{"graphs": {"a": 7}}' }, qr/graph a: neither a path/ ],
    [ 'no file of env', { 'langgraph.json' => '{"graphs": {}, "env": "none"}' }, qr/env: none: No such file/ ],
) {
    my ($what, $files, $reason) = @{$_};
    ($status, $output, $errors) = check(folder_with(%{$files}), python());
    is $status, 2, "check: the status is 2 with $what";
    like $errors, $reason, "check: the log says that there is $what";
}

($status, $output, $errors) = check($good, 'python3');
is $status, 2, 'check: the status is 2 without LangGraph';
like $errors, qr/no LangGraph can be imported by \S+python3\S*: \w+ is missing; run `agentctl build \Q$good\E`/,
    'check: the log names what is missing, the application and the remedy';

done_testing;
