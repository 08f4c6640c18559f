# SPDX-License-Identifier: Apache-2.0
# The start of the runners of both languages: factories that wait for ever, code that
# blocks, folders that cannot be used. They start together, as some
# wait for a limit.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Env qw(root write_file);
use Cpanel::JSON::XS qw(encode_json);
use File::Temp qw(tempdir);
use NodeApplication;
use PythonRunner qw(python);
use RunnerTest;
use Test::More;

local $ENV{PYTHONPYCACHEPREFIX} = root() . '/.build/runner-packages/pycache';
my %program = (
    python     => [ python(), root() . '/mod_agent/runners/python' ],
    javascript => [ 'node', NodeApplication::program() ],
);
my $modules = NodeApplication::application('node') . '/node_modules';

# A runner of a folder with these files, to which `hello` was sent.
sub begin {
    my ($language, $manifest, %files) = @_;
    my $folder = tempdir('/tmp/agent-test-start.XXXXXX', CLEANUP => 1);
    write_file("$folder/langgraph.json", encode_json($manifest));
    write_file("$folder/$_", $files{$_}) for keys %files;
    symlink $modules, "$folder/node_modules" or die "symlink: $!\n" if $language eq 'javascript';
    my $runner = RunnerTest->new(command => $program{$language}, directory => $folder);
    $runner->send({ type => 'hello', protocol => 2, application => { name => 'test', directory => $folder },
        graphs => { map { $_ => { kind => 'langgraph', path => $manifest->{graphs}{$_}, description => undef } } keys %{ $manifest->{graphs} } } });
    return $runner;
}

my $PYTHON = <<'PY';
import asyncio, threading
from langgraph.graph import START, MessagesState, StateGraph
good = StateGraph(MessagesState).add_node("a", lambda state: {}).add_edge(START, "a").compile()
async def waits():
    await asyncio.Event().wait()
async def ignores():
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
def leaves(): exit(3)
def blocks(): threading.Event().wait()
PY
my @python_waiting = map { "w$_" } 1 .. 4;
my $waiting = begin('python', { graphs => { good => './g.py:good', ignores => './g.py:ignores', leaves => './g.py:leaves',
        map { $_ => './g.py:waits' } @python_waiting } }, 'g.py' => $PYTHON);
my %blocked = (
    'python import' => [ qr/^the import of graph bad blocks the process since \d+ s$/m,
        begin('python', { graphs => { bad => './b.py:graph' } }, 'b.py' => "import threading\nthreading.Event().wait()\n") ],
    'python factory' => [ qr/^the factory of graph bad blocks the process since \d+ s$/m,
        begin('python', { graphs => { bad => './g.py:blocks' } }, 'g.py' => $PYTHON) ],
    'javascript import' => [ qr/^an import blocks the process since \d+ s, of the graph bad$/m,
        begin('javascript', { graphs => { bad => './b.mjs:graph' } },
            'b.mjs' => "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);\nexport const graph = 1;\n") ],
);
my $good = { graphs => { good => './g.py:good' } };
my %unusable = (
    'python: .env is not UTF-8' => [ qr/^agent runner: env: \.env: .*utf-8/m, begin('python', { %{$good}, env => '.env' }, '.env' => "A=\xe9\n") ],
    'python: a variable without a name' => [ qr/^agent runner: env: '': /m, begin('python', { %{$good}, env => { '' => 'x' } }) ],
    'python: a variable whose name has a =' => [ qr/^agent runner: env: 'A=B': /m, begin('python', { %{$good}, env => { 'A=B' => 'x' } }) ],
    'python: dependencies is not a list' => [ qr/^agent runner: langgraph\.json: TypeError: /m, begin('python', { %{$good}, dependencies => 5 }) ],
    'python: checkpointer is not an object' => [ qr/^agent runner: langgraph\.json: AttributeError: /m, begin('python', { %{$good}, checkpointer => 'x' }) ],
    'javascript: the package of the library is not JSON' => [ qr/^protocol: hello: .*JSON/m, do {
        my $folder = tempdir('/tmp/agent-test-start.XXXXXX', CLEANUP => 1);
        mkdir "$folder/$_" or die "$folder/$_: $!\n" for 'node_modules', 'node_modules/@langchain', 'node_modules/@langchain/langgraph';
        write_file("$folder/node_modules/\@langchain/langgraph/package.json", '{');
        write_file("$folder/langgraph.json", '{"graphs":{"g":"./g.mjs:g"}}');
        my $runner = RunnerTest->new(command => $program{javascript}, directory => $folder);
        $runner->send({ type => 'hello', protocol => 2, graphs => { g => { kind => 'langgraph', path => './g.mjs:g', description => undef } } });
        $runner;
    } ],
);

# ---- Folders that cannot be used ----
for my $what (sort keys %unusable) {
    my ($line, $runner) = @{ $unusable{$what} };
    is $runner->finish >> 8, 2, "$what: the runner ends";
    like $runner->log_text, $line, "$what: the log has the reason";
    is scalar(() = $runner->log_text =~ /^.+$/mg), 1, "$what: in one line";
}

# ---- Code that blocks ----
for my $what (sort keys %blocked) {
    my ($line, $runner) = @{ $blocked{$what} };
    $runner->wait_for_io while $runner->log_text !~ $line;
    pass "$what: the log names the graph that blocks the process";
}

# ---- Graphs that wait ----
my $ready = $waiting->expect('ready')->{graphs};
ok $ready->{good}{schemas}, 'python: a graph is ready beside others that wait';
is_deeply [ map { $ready->{$_}{error}{error} } @python_waiting, 'ignores', 'leaves' ],
    [ ('TimeoutError') x (@python_waiting + 1), 'SystemExit' ], 'python: factories that wait for ever, or exit, have an error';
done_testing;
