# SPDX-License-Identifier: Apache-2.0
# The Python runner: lines that violate the protocol are not sent, and lines that it
# requires are.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Env qw(root);
use PythonRunner qw(in_all_versions python);
use RunnerTest qw(lines_of);
use Test::More;

in_all_versions(sub {
    my ($runner, $version) = @_;
    my @tiny = $runner->run(graph_id => 'faulty', input => { do => 'tiny numbers' }, stream_modes => ['custom']);
    is $tiny[-1]{status}, 'success', 'tiny numbers: the run succeeds';
    my ($event) = lines_of('event', @tiny);
    like $event->{' text'}, qr/"data":\[0,0,1e-308,-1\.5e-308,"5e-324",\{"1e-310":1\.5e\+?308\},\{"7":0\}\]/,
        'tiny numbers: those beyond an exponent of 308 are 0, texts stay';

    my @quoted = $runner->run(graph_id => 'quoted', input => { do => 'x' });
    is "$quoted[-1]{status} $quoted[-1]{error}{error}", 'error NotRenderedError', 'names with quotes: the run ends with an error';
    is scalar(grep { ($_->{ns} // '') ne '' } lines_of('put', @quoted)), 0, 'names with quotes: nothing is put';

    my $refused = $runner->start_of('broken', input => {});
    $runner->send($refused, { type => 'drain' });
    is +($runner->lines_of_run($refused->{run_id}))[-1]{status}, 'error', 'drain: a run that was refused ends before the process does';
    is $runner->finish, 0, 'drain: the process ends after its last run';
});

# The lines that wait without credit when a run is cancelled.
my $program = <<'END';
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from python.repeat import Repeat
from python import blobs, known, records
from python.cache import Cache
from python.checkpoints import Checkpoints
from python.output import Output
from python.recent import keep_newest
from python.records import delta_groups

class Wire:
    def is_full(self): return False
    def write(self, line): print(line.decode(), end="")

class Open:
    def send(self, *line): pass
    async def room(self): pass

class Plain:
    def dumps_typed(self, value): return "plain", repr(value).encode()

def size(items): return sum(map(len, (items._newer, items._older))) if hasattr(items, "_newer") else len(items)

async def main():
    output = Output(Wire(), "r", 1, 1 << 20)
    output.send("event", [("event", b'"updates"'), ("data", b'"%s"' % (b"x" * 70000))])
    output.send("event", [("event", b'"updates"'), ("data", b"2")])
    output.send("event", [("event", b'"values"'), ("data", b"3")])
    output.send("event", [("event", b'"values"'), ("checkpoint_id", b'"four"')])
    output.send("event", [("event", b'"values"'), ("data", b"{}"), ("checkpoint_id", b'"five"'), ("path", b"[]")])
    output.send("event", [("event", b'"error"'), ("data", b'"six"')])
    output.cancel()
    output.take_go()
    for op, length in ("checkpoint.list", 4097), ("store", (4 << 20) + 1):
        task = asyncio.ensure_future(output.request(op, b"x" * length))
        await asyncio.sleep(0)
        print("request:", op, type(task.exception()).__name__ if task.done() else "waits")
        task.cancel()
    print("groups:", [len(names) for names in delta_groups("", ["x" * 100] * 64)], len(delta_groups("", ["x"] * 65)))

    checkpoints = Checkpoints(output, None, {})
    for number in range(300):
        checkpoints.capture("", str(number), str(number - 1), {"small": number}, {"small": None})
    counts = [len(checkpoints._captured)]
    for number in range(300, 310):
        checkpoints.capture("", str(number), str(number - 1), {"large": str(number) * 1_000_000}, {"large": None})
    print("put:", *counts, len(checkpoints._captured), sum(found.length for found in checkpoints._captured.values()) == checkpoints._captured_bytes)
    last = {}
    for number in range(300):
        keep_newest(last, f"n:{number}", number)
    counts = [len(last)]
    keep_newest(last, "", 1)
    keep_newest(last, "n", 1)
    print("namespaces:", *counts, sorted(last))

    known.CHECKPOINTS_MAX = blobs.DIGESTS_MAX = 10
    values = blobs.Blobs(Open(), 1 << 20, Cache())
    of_run = records.Records(Open(), values, None, True, Repeat("", False))
    for number in range(400):
        await of_run.put(f"n:{number}", str(number), None, {}, {}, {"a": [number, "x"]}, ["a"], Plain())
        values.note([f"read {number}"])
    print("records:", size(of_run.known._put) <= 20, not of_run.known.unshown(), size(values._known) <= 20,
          [of_run.known.has_put("n:%d" % number, str(number)) for number in (0, 395, 399)], "read 399" in values._known)

asyncio.run(main())
END
open my $output, '-|', python(), '-c', $program, root() . '/mod_agent/runners' or die "python: $!\n";
my @printed = <$output>;
close $output;
is_deeply [ map { /^request: (.*)/ } @printed ], [ 'checkpoint.list ValueError', 'store ValueError' ],
    'requests: arguments that are too long are not sent';
is_deeply [ map { /^groups: (.*)/ } @printed ], ['[37, 27] 2'], 'requests: names of delta channels are divided';
is_deeply [ map { /^put: (.*)/ } @printed ], ['256 2 True'], 'checkpoints that were put and not sent: at most 256, of 8 MiB, are kept';
is_deeply [ map { /^namespaces: (.*)/ } @printed ], [q(256 ['', 'n'])], 'namespaces: at most 256 are kept, those of tasks until the next step of the root';
is_deeply [ map { /^records: (.*)/ } @printed ], ['True True True [False, True, True] True'],
    'records: those that were sent or read last are known';
my @sent = grep { /"event"/ } @printed;
is_deeply [ map { /"(four|five|six)"/ ? $1 : 'other' } grep { !/x{9}/ } @sent ], [qw(four five six)],
    'cancel: `error` and `values` of a checkpoint are sent, other events that wait are not' or diag map { substr $_, 0, 200 } @sent;

# Values whose text costs more than others.
$program = <<'END';
import resource, sys
sys.path.insert(0, sys.argv[1])
from python import jsontext, store_ops

def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

long = {"text": "[" * 200 + '\\"' * 2_000_000, "tiny": 1e-310, "quoted": '1e-310 \\\\" 1e-311', "after": -2.5e-320}
before = peak()
text = jsontext.dumps(long)
store_ops.jsonb_bytes(text)
print("memory:", (peak() - before) // 1024)
print("end:", text[text.index(b'"tiny"'):].decode())
calls = []
plain = jsontext._plain
jsontext._plain = lambda *args: calls.append(args) or plain(*args)
for value in [r"\u0000"], [r"\\u0000"], ["\\\0"], ["\\\\\0"]:
    text = jsontext.dumps(value)
    print("nul:", len(calls), text.decode())
    calls.clear()
END
open $output, '-|', python(), '-c', $program, root() . '/mod_agent/runners' or die "python: $!\n";
@printed = <$output>;
close $output;
my ($memory) = map { /^memory: (\d+)/ } @printed;
cmp_ok $memory // 1e9, '<', 100, 'long strings: their characters take no memory each';
is_deeply [ map { /^end: (.*)/ } @printed ], ['"tiny":0,"quoted":"1e-310 \\\\\\\\\\" 1e-311","after":0}'],
    'tiny numbers: they are found beside strings with escapes';
is_deeply [ map { /^nul: (.*)/ } @printed ],
    [ '0 ["\\\\u0000"]', '0 ["\\\\\\\\u0000"]', "2 [\"\\\\\x{ef}\x{bf}\x{bd}\"]", "2 [\"\\\\\\\\\x{ef}\x{bf}\x{bd}\"]" ],
    'U+0000: the text of its escape is encoded as any other';

# Members of configurable that events do not have.
$program = <<'END';
import enum, sys, time
sys.path.insert(0, sys.argv[1])
from python.metadata import Metadata

config = {"configurable": {f"m{n}": "v" for n in range(100_000)}, "metadata": {}}
metadata, event = Metadata(lambda: config), {"thread_id": "t", "m1": "v", "m99999": "v"}
print(sorted(metadata.bounded(event)))

class Long(str, enum.Enum):
    TEXT = "x" * 20_000

copied = {"long": Long.TEXT, "short": "v"}
print(sorted(Metadata(lambda: {"configurable": copied, "metadata": {}}).bounded(copied)))
before = time.process_time()
for _ in range(500):
    metadata.bounded(event)
print(time.process_time() - before)
END
open $output, '-|', python(), '-c', $program, root() . '/mod_agent/runners' or die "python: $!\n";
chomp(my ($kept, $kept_of_enum, $seconds) = <$output>);
close $output;
is $kept, q(['m1', 'thread_id']), 'metadata: copied members beyond 16 KB are left out';
cmp_ok $seconds // 1e9, '<', 0.5, 'metadata: an event costs no more for members of configurable that it does not have'
    or diag "$seconds s for 500 events";
is $kept_of_enum, q(['short']), 'metadata: a member of an Enum of texts is as long as its value';

# The lines of a node are written before another one executes; where none does, they wait for those that follow.
$program = <<'END';
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from python import blobs
from python.cache import Cache
from python.records import Records
from python.repeat import Repeat

class Output:
    def __init__(self): self.is_hasty = False
    def send(self, *line): pass
    def hasten(self): self.is_hasty = True
    async def room(self): pass

class Plain:
    def dumps_typed(self, value): return "plain", repr(value).encode()

async def is_hasty(tasks, writes, following=(), may_wait=True):
    output = Output()
    of_run = Records(output, blobs.Blobs(output, 1 << 20, Cache()), None, True, Repeat("", False))
    of_run.begin_step([{"id": task} for task in tasks], may_wait)
    for task, index in writes:
        await of_run.put_writes("", "0" * 8 + "-0000" * 3 + "-" + "0" * 12, task, "~__pregel_pull, " + task, [(index, "a", 1)], Plain())
    was_hasty = output.is_hasty
    of_run.begin_step([{"id": task} for task in following], may_wait)
    return was_hasty, output.is_hasty

async def main():
    print("end", *await is_hasty(["a"], [("a", 0)]))
    print("next", *await is_hasty(["a"], [("a", 0)], ["b"]))
    print("input", *await is_hasty(["__start__"], [("__start__", 0)], ["b"]))
    print("beside", *await is_hasty(["a", "b"], [("a", 0)]))
    print("inside", *await is_hasty(["a"], [("inner", 0)]))
    print("error", *await is_hasty(["a"], [("a", -1)]))
    print("factory", *await is_hasty(["a"], [("a", 0)], may_wait=False))

asyncio.run(main())
END
open $output, '-|', python(), '-c', $program, root() . '/mod_agent/runners' or die "python: $!\n";
chomp(@printed = <$output>);
close $output;
is_deeply \@printed, [ 'end False False', 'next False True', 'input False False', map { "$_ True True" } qw(beside inside error factory) ],
    'output of a node is written at once if other code may execute before the next checkpoint, and then before the next node';

# The pipe to the supervisor: which lines are written together.
$program = <<'END';
import asyncio, os, sys, types
sys.path.insert(0, sys.argv[1])
from python import wire

now = 0.0
def clock(): return now
wire.time = types.SimpleNamespace(monotonic=clock)

async def turns(pipe, count, seconds=0):
    global now
    for number in range(count):
        pipe.write(b"%d\n" % number)
        now += seconds
        await asyncio.sleep(0)

async def main():
    written = []
    wire.os.write = lambda fd, data: written.append(bytes(data)) or len(data)
    pipe = wire.Wire(loop, turns_of_loop, None, None, None)
    for most, seconds, has_haste in (60, 0, False), (0.002, 0.003, False), (60, 0, True):
        written.clear()
        wire.WAIT_SECONDS = most
        await turns(pipe, 1)
        if has_haste:
            pipe.hasten()
        await turns(pipe, 3, seconds)
        # The loop waits.
        await asyncio.sleep(0.01)
        print(*(lines.decode().replace("\n", "") for lines in written))

input_, output = os.pipe()
os.dup2(input_, 3)
os.dup2(output, 4)
turns_of_loop = wire.Turns(clock)
loop = asyncio.SelectorEventLoop(turns_of_loop)
loop.run_until_complete(main())
END
open $output, '-|', python(), '-c', $program, root() . '/mod_agent/runners' or die "python: $!\n";
chomp(@printed = <$output>);
close $output;
is_deeply \@printed, [ '0012', '00 1 2', '00 12' ],
    'pipe: lines are written together while turns of the loop follow, for some ms, and at the end of a turn in haste';

# The pipe from the supervisor, while code blocks the loop.
$program = <<'END';
import asyncio, json, os, sys, threading, time
sys.path.insert(0, sys.argv[1])
from python import wire

taken, pongs = [], []

def send(*messages):
    os.write(supervisor_in, b"".join(json.dumps(message).encode() + b"\n" for message in messages))

def next_pong():
    pongs.append(json.loads(os.read(supervisor_out, 4096)))

async def main():
    wire.Wire(loop, turns_of_loop, lambda message: taken.append(message["type"]), print, None).start()
    send({"type": "ping", "id": 1}, {"type": "a"})
    await asyncio.sleep(0.05)
    next_pong()
    send({"type": "b"}, {"type": "ping", "id": 2})
    # The loop does not turn before the answer.
    next_pong()
    send({"type": "c"}, {"type": "ping", "id": 3})
    next_pong()
    send({"type": "d"})
    print(*taken)
    await asyncio.sleep(0.05)
    print(*taken)
    print(*(pong["id"] for pong in pongs), pongs[0]["busy_ms"] < 500, pongs[1]["busy_ms"] >= 500)

input_, supervisor_in = os.pipe()
supervisor_out, output = os.pipe()
for number, fd in (103, input_), (104, output), (105, supervisor_in), (106, supervisor_out):
    os.dup2(fd, number)
supervisor_in, supervisor_out = 105, 106
os.dup2(103, 3)
os.dup2(104, 4)
turns_of_loop = wire.Turns()
loop = asyncio.SelectorEventLoop(turns_of_loop)
loop.run_until_complete(main())
sys.stdout.flush()
os._exit(0)
END
open $output, '-|', python(), '-c', $program, root() . '/mod_agent/runners' or die "python: $!\n";
chomp(@printed = <$output>);
close $output;
is_deeply \@printed, [ 'a', 'a b c d', '1 2 3 True True' ], 'pipe: ping is answered while code blocks the loop; it takes all messages in their order';

# A pipe that code of a graph closes, after the thread that reads it has looked for that.
$program = <<'END';
import os, sys
sys.path.insert(0, sys.argv[1])
from python import wire

class End(BaseException):
    pass

def end(reason):
    raise End(reason)

def read_in_thread(pipe):
    pipe._watch = pipe._read
    pipe._serve()

for number, fd in zip((103, 105, 104), (*os.pipe(), os.open(os.devnull, os.O_WRONLY))):
    os.dup2(fd, number)
    os.close(fd)
for what in ["closed", "replaced", "has ended"]:
    if what == "has ended":
        os.close(105)
    for read in [wire.Wire._read_on_loop, read_in_thread]:
        os.dup2(103, 3)
        os.dup2(104, 4)
        pipe = wire.Wire(None, wire.Turns(), None, end, None)
        if what == "closed":
            os.close(3)
        if what == "replaced":
            os.dup2(os.open(os.devnull, os.O_RDONLY), 3)
        try:
            read(pipe)
        except End as reason:
            print(what, *reason.args)
END
open $output, '-|', python(), '-c', $program, root() . '/mod_agent/runners' or die "python: $!\n";
chomp(@printed = <$output>);
close $output;
is_deeply \@printed, [ ('closed descriptor 3 is closed') x 2, ('replaced descriptor 3 is closed') x 2, ('has ended None') x 2 ],
    'pipe: that a graph has closed it is the reason of the end, in the loop and in the thread';

done_testing;
