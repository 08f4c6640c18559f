# SPDX-License-Identifier: Apache-2.0
# The start of the runners of both languages: graphs that wait for ever at their import
# or in their factory, end the process, or block it, folders that cannot be used. They
# start together, as some wait for a limit.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Applications qw(check_folder folder_of runner_of);
use Cpanel::JSON::XS qw(decode_json);
use PythonRunner;
use RunnerTest qw(start_line);
use Test::More;

my %program = map { $_ => [ runner_of($_) ] } qw(python javascript);

# The output of --check of a folder.
sub check_node {
    my $folder = folder_of('javascript', @_);
    open my $output, '-|', "cd '$folder' && exec @{ $program{javascript} } --check 2>/dev/null" or die "sh: $!\n";
    return $output;
}

# A runner of a folder with these files, to which `hello` was sent; failed: of hello.
sub begin {
    my ($language, $manifest, %files) = @_;
    my $failed = delete $files{failed};
    my $folder = folder_of($language, $manifest, %files);
    my $runner = RunnerTest->new(command => $program{$language}, directory => $folder);
    $runner->send({ type => 'hello', protocol => 2, application => { name => 'test', directory => $folder },
        graphs => { map { $_ => { kind => 'langgraph', path => $manifest->{graphs}{$_}, description => undef } } keys %{ $manifest->{graphs} } },
        failed => $failed });
    return $runner;
}

my @OLD_NODE = ('node_modules/@langchain/langgraph/package.json' => '{"name":"@langchain/langgraph","version":"0.2.74"}');

# A runner, or a check, of an application in Python with these files on the path, before those of the environment.
sub with_packages {
    my ($packages, $how, $manifest, %files) = @_;
    local $ENV{PYTHONPATH} = folder_of('python', undef, %{$packages});
    return $how eq 'begin' ? begin('python', $manifest, %files) : check_folder('python', folder_of('python', $manifest, %files));
}

# The metadata of an older library.
my @OLD_LANGGRAPH = { 'langgraph-0.2.60.dist-info/METADATA' => "Metadata-Version: 2.1\nName: langgraph\nVersion: 0.2.60\n" };
my @OLD_PYTHON = { 'sitecustomize.py' => "import sys\nsys.version_info = (3, 10, 12, 'final', 0)\n" };
# With it no run can begin.
my @NO_TASKS = { 'sitecustomize.py' => <<'PY' };
import asyncio
class Task(asyncio.Task):
    def __init__(self, coro, *, loop=None, name=None):
        super().__init__(coro, loop=loop, name=name)
asyncio.Task = Task
PY

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
def cancelled(): raise asyncio.CancelledError()
async def interrupted(): raise KeyboardInterrupt()
def blocks(): threading.Event().wait()
PY
my $NODE = <<'JS';
import { Annotation, START, StateGraph } from '@langchain/langgraph';
import { z } from 'zod';
const graph = (state) => new StateGraph(state).addNode('a', () => ({})).addEdge(START, 'a').compile();
export const good = graph(Annotation.Root({ count: Annotation() }));
export const vast = graph(z.object({ text: z.string().describe('x'.repeat(1100000)) }));
export const waits = () => new Promise(() => {});
export const promised = new Promise(() => {});
Promise.reject(Object.create(null));
JS
my %node_files = ('package.json' => '{"type":"module"}', 'g.mjs' => $NODE,
    'i.mjs' => "await new Promise(() => {});\nexport const graph = 1;\n",
    'e.mjs' => "import { exit } from 'node:process';\nexit(3);\nexport const graph = 1;\n",
    map { $_ => "export { good } from './g.mjs';\n" } qw(t.ts o.ts));
my $node_runner = begin('javascript', { graphs => { good => './g.mjs:good', vast => './g.mjs:vast', waits => './g.mjs:waits',
        promised => './g.mjs:promised', imports => './i.mjs:graph', exits => './e.mjs:graph', typed => './t.ts:good',
        other => './o.ts:good', __proto__ => './g.mjs:good' } }, %node_files);
my $checked = check_node({ graphs => { good => './g.mjs:good', imports => './i.mjs:graph' } }, %node_files);
my @python_waiting = map { "w$_" } 1 .. 4;
my $python_runner = begin('python', { graphs => { good => './g.py:good', ignores => './g.py:ignores', (map { $_ => "./g.py:$_" } qw(leaves cancelled interrupted)),
        map { $_ => './g.py:waits' } @python_waiting } }, 'g.py' => $PYTHON);
my %blocked = (
    'python import' => [ qr/^the import of graph bad has blocked the process for \d+ s$/m,
        begin('python', { graphs => { bad => './b.py:graph' } }, 'b.py' => "import threading\nthreading.Event().wait()\n") ],
    'python factory' => [ qr/^the factory of graph bad has blocked the process for \d+ s$/m,
        begin('python', { graphs => { bad => './g.py:blocks' } }, 'g.py' => $PYTHON) ],
    'javascript import' => [ qr/^an import has blocked the process for \d+ s, of the graph bad$/m,
        begin('javascript', { graphs => { bad => './b.mjs:graph' } },
            'b.mjs' => "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);\nexport const graph = 1;\n") ],
);
my %failed = (failed => { bad => { error => 'GraphImportError', message => 'it has ended a process' } });
my %warned = (
    python => begin('python', { graphs => { good => './g.py:good', slow => './s.py:good', bad => './b.py:graph' } }, %failed,
        'g.py' => $PYTHON, 's.py' => $PYTHON, 'b.py' => "import os\nos._exit(3)\n"),
    javascript => begin('javascript', { graphs => { good => './g.mjs:good', slow => './s.mjs:good', bad => './b.mjs:graph' } }, %failed, %node_files,
        's.mjs' => "await new Promise((resolve) => setTimeout(resolve, 1500));\nexport { good } from './g.mjs';\n", 'b.mjs' => "process.reallyExit(3);\n"));
my $unable = with_packages(@NO_TASKS, 'begin', { graphs => { good => './g.py:good' } }, 'g.py' => $PYTHON);
# [what, env, the reason, files]
my $NAME = 'a name is not empty, and has no =, U+0000 and unpaired surrogates';
my $KIND = 'expected a string or a number';
my $RANGE = 'expected a number from 0.0001 to 999999999999999, or a string';
my @env = (
    [ 'a file that is not UTF-8', '.env', '.env: it is not UTF-8', '.env' => "A=\xe9\n" ],
    [ 'a name that is empty', { '' => 'x' }, qq("": $NAME) ],
    [ 'a name with =', { 'P=Q' => 'x' }, qq("P=Q": $NAME) ],
    [ 'a value with U+0000', { A => "a\0b" }, '"A": a value has no U+0000 and no unpaired surrogates' ],
    [ 'true', { A => \1 }, qq("A": $KIND) ],
    [ 'null', { A => undef }, qq("A": $KIND) ],
    [ 'a list', { A => ['x'] }, qq("A": $KIND) ],
    [ 'an object', { A => {} }, qq("A": $KIND) ],
    [ 'a large number', { A => 1e15 }, qq("A": $RANGE) ],
    [ 'a small number', { A => 0.00001 }, qq("A": $RANGE) ],
);
my $good = { graphs => { good => './g.py:good' } };
my %unusable = (
    (map {
        my $runner = RunnerTest->new(command => $program{$_}, directory => folder_of($_, $good));
        $runner->send({ type => 'hello', protocol => 3, graphs => {} });
        ("$_: another version of the protocol" => [ qr/the server speaks version 3$/m, $runner ])
    } qw(python javascript)),
    (map {
        my ($language, $graphs, @files) = @{$_};
        map {
            my ($what, $env, $reason, %more) = @{$_};
            ("$language: env: $what" => [ qr{^(?:agent runner: )?/\S+/langgraph\.json: env: \Q$reason\E$}m,
                begin($language, { graphs => $graphs, env => $env }, @files, %more) ])
        } @env;
    } ([ 'python', $good->{graphs} ], [ 'javascript', { good => './g.mjs:good' } ])),
    'python: dependencies is not a list' => [ qr/^agent runner: langgraph\.json: TypeError: /m, begin('python', { %{$good}, dependencies => 5 }) ],
    'python: checkpointer is not an object' => [ qr/^agent runner: langgraph\.json: AttributeError: /m, begin('python', { %{$good}, checkpointer => 'x' }) ],
    'javascript: the package of the library is not JSON' => [ qr/^the application cannot be used: .*JSON/m,
        begin('javascript', { graphs => { g => './g.mjs:g' } }, 'node_modules/@langchain/langgraph/package.json' => '{') ],
    'python: langgraph before 1.0' => [ qr{^agent runner: langgraph 0\.2\.60 is too old: 1\.0 or newer is needed \(dependencies of /\S+/langgraph\.json; },
        with_packages(@OLD_LANGGRAPH, 'begin', { graphs => { g => './g.py:g' } }) ],
    'python: Python before 3.11' => [ qr{^agent runner: /\S+ is Python 3\.10, and 3\.11 or newer is needed \(remove /\S+/\.agent/venv; then `agentctl build`\)$}m,
        with_packages(@OLD_PYTHON, 'begin', $good) ],
    'javascript: langgraph before 1.0' => [ qr{^the application cannot be used: \@langchain/langgraph 0\.2\.74 \(/\S+/node_modules/\S+\) is too old: 1\.0 or newer is needed \(}m,
        begin('javascript', { graphs => { g => './g.mjs:g' } }, @OLD_NODE) ],
);
for my $language (qw(python javascript)) {
    my $manifest = { graphs => { g => $language eq 'python' ? './g.py:g' : './g.mjs:g' } };
    my $check = $language eq 'python' ? with_packages(@OLD_LANGGRAPH, 'check_folder', $manifest) : check_folder($language, folder_of($language, $manifest, @OLD_NODE));
    is $check->{status}, 2, "$language: langgraph before 1.0: --check ends with 2";
    like $check->{errors}, qr/\A.*langgraph 0\.2\.\d+ .*is too old: 1\.0 or newer is needed .*\n\z/, "$language: langgraph before 1.0: --check says so in one line";
}

is with_packages(@OLD_PYTHON, 'check_folder', $good)->{status}, 2, 'python: Python before 3.11: --check ends with 2';

# ---- Messages that cannot be handled ----
$unable->expect('ready');
$unable->send(start_line(graph_id => 'good', input => {}));
is $unable->finish >> 8, 2, 'python: a run that cannot begin ends the process, as the run would have no end';
like $unable->log_text, qr/^agent runner: TypeError: /m, 'python: a run that cannot begin: the log has the error';

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

# ---- Graphs that have failed ----
for my $language (sort keys %warned) {
    my $runner = $warned{$language};
    my $ready = $runner->expect('ready')->{graphs};
    is_deeply $ready->{bad}{error}, $failed{failed}{bad}, "$language: a graph that hello says has failed is reported with that error, and not imported";
    ok $ready->{$_}{drawing}, "$language: the graph $_ is ready beside it" for qw(good slow);
    my @names = grep { defined } @{ $runner->{importing} };
    is_deeply { map { $_ => 1 } @names }, { good => 1, slow => 1 }, "$language: each graph is named before its code is executed";
    is $runner->{importing}[-1], undef, "$language: at last none is";
}
# While one waits, the next one is not named: an end of the process would be that of the first one.
my @order = map { $_ // '' } @{ $warned{javascript}{importing} };
my ($slow) = grep { $order[$_] eq 'slow' } 0 .. $#order;
is $order[ $slow + 1 ], '', 'javascript: after a start that has failed graphs are imported strictly one after another';

# ---- Graphs that wait ----
my $ready = $python_runner->expect('ready')->{graphs};
ok $ready->{good}{schemas}, 'python: a graph is ready beside others that wait';
is_deeply [ map { $ready->{$_}{error}{error} } @python_waiting, qw(ignores leaves cancelled interrupted) ],
    [ ('TimeoutError') x (@python_waiting + 1), qw(SystemExit CancelledError KeyboardInterrupt) ],
    'python: factories that wait for ever, exit, or raise what ends a process or a task, have an error';
$ready = $node_runner->expect('ready')->{graphs};
ok $ready->{$_}{drawing}, "javascript: the graph $_ is ready beside others that wait" for qw(good typed other __proto__);
is_deeply { map { $_ => $ready->{$_}{error} } qw(imports promised waits exits) }, {
    imports  => { error => 'TimeoutError', message => 'the import of ./i.mjs:graph has not ended after 10 s of waiting' },
    promised => { error => 'TimeoutError', message => 'the import of ./g.mjs:promised has not ended after 10 s of waiting' },
    waits    => { error => 'TimeoutError', message => 'the factory of ./g.mjs:waits has not ended after 10 s of waiting' },
    exits    => { error => 'ProcessExitError', message => 'code of the application called process.exit(3)' },
}, 'javascript: graphs that wait for ever, or exit, have an error';
for my $name (qw(imports promised waits)) {
    like $node_runner->log_text, qr/^graph $name: TimeoutError: the \w+ of /m, "javascript: the log names the graph $name";
}
is_deeply [ @{ $ready->{vast} }{qw(schemas error)} ], [ undef, undef ], 'javascript: a schema that is longer than a report is left out';
like $node_runner->log_text, qr/^graph vast: its schemas are left out: \d+ bytes, more than 500000$/m, 'javascript: the log says so';
like $node_runner->log_text, qr/^an error that nothing handles: an error without a message$/m,
    'javascript: a rejection that nothing handles does not end the process';
my $report = decode_json((<$checked>)[-1]);
close $checked and die "--check has found no error\n";
is $? >> 8, 1, 'javascript: the status of --check is 1 with a graph that waits';
is_deeply [ $report->{graphs}{good}{error}, $report->{graphs}{imports}{error}{error} ], [ undef, 'TimeoutError' ],
    'javascript: the report of --check has the error of a graph that waits';

# ---- The clock of imports ----
my $module = $program{javascript}[1] =~ s/main\.mjs\z/load.mjs/r;
my $script = <<"END";
import { Clock } from '$module';
const spent = { idle: 0, cpu: 0, reads: 0 };
const clock = new Clock(() => ({ ...spent }));
const never = new Promise(() => {});
const isOpen = async (promise) => await Promise.race([promise, new Promise((resolve) => setImmediate(resolve, 'open'))]) === 'open';
const limit = clock.within(never, 'spent', 100);
// Neither the time in which others compute, nor more than a tick at once.
clock.tick();
spent.idle += 90000;
clock.tick();
console.log(await isOpen(limit));
spent.idle += 40;
clock.tick();
console.log(await isOpen(limit));
spent.cpu += 20;
clock.tick();
console.log(await isOpen(limit));
console.log(await clock.within(Promise.resolve('in time'), 'still', 0));
// A thread that compiles, a read of the disk, and neither.
const still = clock.within(never, 'still', 40);
for (const [cpu, reads] of [[25, 0], [0, 8], [1, 0]]) {
    spent.idle += 50;
    spent.cpu += cpu;
    spent.reads += reads;
    clock.tick();
    console.log(await isOpen(still));
}
clock.stop();
END
open my $node, '-|', 'node', '--input-type=module', '-e', $script or die "node: $!\n";
is join('', <$node>), "true\ntrue\nfalse\nin time\ntrue\ntrue\nfalse\n",
    'javascript: limits of imports count idle and processor time of the process, not that of others, and imports that work are not overtaken';
close $node or diag "node ended with $?";
done_testing;
