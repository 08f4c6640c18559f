# SPDX-License-Identifier: Apache-2.0
# The runner for JavaScript: errors, cancel, drain, blocking nodes, credit, the log.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Applications qw(runner_of);
use AgentTest::Env qw(root write_file);
use NodeApplication qw(runner);
use RunnerTest qw(start_line new_uuid lines_of events_of);
use File::Temp qw(tempdir);
use Test::More;
use Time::HiRes qw(sleep);

my @names = qw(steps act loop asks kinds mutates quoted named0 channel0 bare0 holds);
my $runner = runner(map { $_ => "./graphs.mjs:$_" } @names);

sub last_checkpoint { return (grep { !length $_->{ns} } lines_of('checkpoint', @_))[-1] }

sub act { return $runner->run(graph_id => 'act', input => { answer => shift }, @_) }

# Starts an act and waits until it has printed a word.
sub start_act {
    my ($name, $word) = @_;
    my $start = start_line(graph_id => 'act', input => { answer => $name });
    $runner->send($start);
    $runner->wait_for_io while $runner->log_text !~ /^run $start->{run_id}: $word$/m;
    return $start;
}

# --- Errors ----------------------------------------------------------------------

my @lines = act('fail');
is_deeply $lines[-1]{error}, { error => 'RangeError', message => 'out of range' }, 'error: the run ends with its name and message';
is_deeply [ events_of('error', @lines) ], [ $lines[-1]{error} ], 'error: an event has it';
is +(lines_of('task', @lines))[-1]{task}{error}, 'RangeError: out of range', 'error: the task has it';
like $runner->log_text, qr/^run $lines[-1]{run_id}: RangeError: out of range\n.*^run $lines[-1]{run_id}: +at /ms,
    'error: the log has the stack';
@lines = act('fail', durability => 'exit');
is_deeply [ map { [ $_->{next}, $_->{tasks}[0]{error} ] } lines_of('checkpoint', @lines) ], [ [ ['act'], 'RangeError: out of range' ] ],
    'error: a run with durability exit has its last checkpoint';
@lines = $runner->run(graph_id => 'loop', input => { count => 1 }, config => { recursion_limit => 3 });
is $lines[-1]{error}{error}, 'GraphRecursionError', 'error: the recursion limit';
is last_checkpoint(@lines)->{values}{count}, 4, 'error: all steps before it are saved';
# The stream comes later than the steps of the library.
@lines = $runner->run(graph_id => 'loop', input => { count => 0 }, config => { recursion_limit => 40 },
    stream_modes => [qw(events values)]);
my @ids = map { $_->{checkpoint_id} } lines_of('checkpoint', @lines);
my %once = map { $_ => 1 } @ids;
is_deeply \@ids, [ sort keys %once ], 'events: each checkpoint is sent once, in order';
@lines = $runner->run(graph_id => 'loop', input => { count => 0 }, config => { recursion_limit => 4, tags => ['langsmith:hidden'] },
    stream_modes => [qw(events values)]);
cmp_ok scalar(events_of('values', @lines)), '>=', 4, 'events: a run whose tags hide it streams its values';
is_deeply [ events_of('events', @lines) ], [], 'events: its events are hidden';
is_deeply +(act('nul'))[-1]{error}, { error => 'Error', message => "a\x{fffd}b\x{fffd}" }, 'error: U+0000 and unpaired surrogates are replaced';
is +(act('cut'))[-1]{error}{message}, 'x' x 1998 . "\x{fffd}\x{2026}", 'error: a pair of surrogates that the limit parts too';
is +(act('bare'))[-1]{error}{message}, 'an error without a message', 'error: an object without a prototype ends the run';
is_deeply +(act('parts'))[-1]{error}, { error => 'Error', message => 'odd' }, 'error: a thrown object whose name and message are not strings ends the run';
@lines = act('bigint');
like "$lines[-1]{error}{error} $lines[-1]{error}{message}", qr/\ANotRenderedError .*BigInt/, 'error: a value that JSON cannot hold';
@lines = act('counts', stream_modes => ['events']);
is $lines[-1]{status}, 'success', 'events: a value that JSON cannot hold does not end the run';
is_deeply [ map { $_->{data}{output} } grep { $_->{event} eq 'on_chain_end' && $_->{name} eq 'RunnableLambda' } events_of('events', @lines) ],
    [ { big => '10' } ], 'events: they have its text';
@lines = act('deep');
is $lines[-1]{error}{error}, 'NotRenderedError', 'error: a state with too many levels';
my %huge = (huge => '(?:the result of a task|what a step changes in the state)', shout => 'an event "custom"');
for my $name (sort keys %huge) {
    @lines = act($name, stream_modes => ['custom']);
    is $lines[-1]{error}{error}, 'ValueTooLargeError', "error: $name, longer than a line";
    like $lines[-1]{error}{message}, qr/\A$huge{$name} has 900\d{4} bytes in a line to the server, more than 8388608\z/,
        "error: that of $name names the limit";
    is_deeply [ events_of('error', @lines) ], [ $lines[-1]{error} ], "error: the event of $name has it";
    like $runner->log_text, qr/^run $lines[-1]{run_id}: ValueTooLargeError: $huge{$name}/m, "error: the log says which run had $name";
}
is +(act('print'))[-1]{status}, 'success', 'error: other runs go on';
@lines = act('odd');
is_deeply last_checkpoint(@lines)->{values}{answer},
    { text => "a\x{fffd}b\x{fffd}", tiny => 0, when => '1970-01-01T00:00:00.000Z', nan => undef },
    'values: U+0000, unpaired surrogates and numbers that JSON cannot hold are replaced';
@lines = $runner->run(graph_id => 'quoted', input => { count => 1 });
like $lines[-1]{error}{message}, qr/a node with a subgraph has no quotes/, 'error: the name of a subgraph that lines cannot have';
is_deeply [ grep { ($_->{ns} // '') =~ /["\\\\]/ } @lines ], [], 'error: no line has it';
@lines = act('reject');
is $lines[-1]{status}, 'success', 'error: a rejection that nothing handles does not end the run';
like $runner->log_text, qr/^run $lines[-1]{run_id}: an error that nothing handles: Error: nobody waits/m, 'error: a rejection that nothing handles is logged';

like $runner->log_text, qr/^run $lines[-1]{run_id}: an error that nothing handles: an error without a message/m,
    'error: a rejection with an object without a prototype is logged';
for my $name (qw(exit late)) {
    @lines = act($name);
    is $lines[-1]{status}, $name eq 'exit' ? 'error' : 'success', "exit: $name, the runner goes on";
    my $status = $name eq 'exit' ? 3 : 4;
    like $runner->log_text, qr/^run $lines[-1]{run_id}: .*ProcessExitError: code of the application called process\.exit\($status\)$/m,
        "exit: the log has that of $name";
}
@lines = act('circle');
is_deeply last_checkpoint(@lines)->{values}, { answer => { self => '[Circular]' }, count => 0,
    names => [ { self => '[Circular]' } ] }, 'values: a value that contains itself is `[Circular]`';
@lines = act('proto');
like +(lines_of('checkpoint', @lines))[-1]{' text'}, qr/"answer":\{"__proto__":\{"a":1\}\}/, 'values: a member __proto__ is one as others';
for my $graph ([ named0 => 'branch:to:a\u0000b' ], [ channel0 => 'a\u0000b' ]) {
    @lines = $runner->run(graph_id => $graph->[0], input => { count => 1, "a\0b" => 1 });
    is $lines[-1]{error}{message}, qq(the name of a channel or node has no U+0000 and no unpaired surrogates: "$graph->[1]"),
        "names: one that lines cannot have ends the run of $graph->[0]";
}
@lines = $runner->run(graph_id => 'bare0', input => { count => 1 });
is_deeply last_checkpoint(@lines)->{values}, { "a\x{fffd}b" => 1 }, 'names: U+0000 in a member of a state without channels is replaced';

# --- The log ---------------------------------------------------------------------

@lines = act('print');
like $runner->log_text, qr/^run $lines[-1]{run_id}: printed$/m, 'log: a line of console.log has its run';
like $runner->log_text, qr/^run $lines[-1]{run_id}: two\nrun $lines[-1]{run_id}: lines$/m, 'log: each line of one write has its run';

@lines = act('shouts');
$runner->wait_for_io while $runner->log_text !~ /bytes of a write/;
like $runner->log_text, qr/^run $lines[-1]{run_id}: x+\nrun $lines[-1]{run_id}: 1951424 more bytes of a write were not logged$/m,
    'log: of one write at most 1 MB is kept';

# --- Cancel, drain ---------------------------------------------------------------

my $start = start_act('wait', 'waiting');
$runner->send({ type => 'cancel', run_id => $start->{run_id}, epoch => 1 });
@lines = $runner->lines_of_run($start->{run_id});
is $lines[-1]{status}, 'interrupted', 'cancel: a node gets the signal';
is_deeply [ events_of('error', @lines) ], [], 'cancel: there is no event error';
$start = start_act('ignore', 'waiting');
$runner->send({ type => 'cancel', run_id => $start->{run_id}, epoch => 2 },
    { type => 'cancel', run_id => $start->{run_id}, epoch => 1 });
is +($runner->lines_of_run($start->{run_id}))[-1]{status}, 'interrupted', 'cancel: a node that does not watch its signal is left';

$start = start_line(graph_id => 'loop', input => { count => 1 }, config => { recursion_limit => 100_000 });
$runner->send($start);
$runner->lines_until(sub { $_[0]{type} eq 'checkpoint' && $_[0]{metadata}{step} == 3 });
$runner->send({ type => 'stop', run_id => $start->{run_id}, epoch => 1, reason => 'drain', deadline_ms => 60_000 });
@lines = $runner->lines_of_run($start->{run_id});
is $lines[-1]{status}, 'drained', 'stop: the run ends after a step';
is_deeply last_checkpoint(@lines)->{next}, ['again'], 'stop: its last checkpoint names the next node';
my $head = last_checkpoint(@lines)->{checkpoint_id};
@lines = $runner->run(graph_id => 'loop', $runner->next_run($start->{thread_id}), config => { recursion_limit => 3 });
is +(lines_of('checkpoint', @lines))[0]{parent}, $head, 'stop: another run goes on from there';

# A lost attempt has saved the checkpoint before the input only.
$start = start_line(graph_id => 'steps', input => { count => 1 });
@lines = $runner->run(%{$start});
my ($first) = lines_of('checkpoint', @lines);
my $thread = $runner->records->thread($start->{thread_id});
$thread->{head} = $first->{checkpoint_id};
delete @{ $thread->{snapshots}{''} }{ grep { $_ ne $first->{checkpoint_id} } keys %{ $thread->{snapshots}{''} } };
@lines = $runner->run(%{$start}, $runner->next_run($start->{thread_id}), run_id => $start->{run_id}, attempt => 2);
is last_checkpoint(@lines)->{values}{count}, 12, 'restart: an attempt goes on from the checkpoint before the input';
is_deeply [ map { $_->{metadata}{step} } lines_of('checkpoint', @lines) ], [ 0, 1, 2 ], 'restart: that checkpoint is not sent again';

# --- Values --------------------------------------------------------------------------

@lines = $runner->run(graph_id => 'mutates', input => { count => 1 });
my ($put) = grep { $_->{metadata}{step} == 2 } lines_of('put', @lines);
is_deeply $put->{channels}{names}{list}{keep}, 0, 'values: an element that was changed deep inside is sent again';
is_deeply last_checkpoint(@lines)->{values}{names}, [ { name => 'new', done => { by => ['me'] } } ], 'values: a checkpoint shows an element that was changed deep inside';

# The next node has changed them before the library's stream shows the checkpoint.
sub numbers {
    my ($values) = @_;
    return [ $values->{large}{number}, $values->{many}[0]{number}, $values->{mixed}[1]{number},
        map { $values->{$_}{number} } qw(small __own branch:own) ];
}
@lines = $runner->run(graph_id => 'kinds', input => {}, stream_modes => ['values']);
is_deeply [ map { numbers($_->{values}) } grep { $_->{metadata}{step} > 0 } lines_of('checkpoint', @lines) ],
    [ [ (1) x 6 ], [ (2) x 6 ], [ (2) x 6 ] ], 'values: a checkpoint shows them as they were when it was put';
my %id_of = map { $_->{checkpoint_id} => 1 } lines_of('checkpoint', @lines);
is_deeply [ map { $id_of{ $_->{checkpoint_id} // '' } } grep { $_->{event} eq 'values' } lines_of('event', @lines) ], [ 1, 1 ],
    'values: events name the checkpoint that shows values as they were put';

my $bytes = new_uuid();
@lines = act('bytes', thread_id => $bytes);
is_deeply last_checkpoint(@lines)->{values}, { answer => 'AP8B', count => 0, names => [ { name => 'Bw==' } ] },
    'values: bytes are shown in base64';
@lines = act('kind', $runner->next_run($bytes));
is last_checkpoint(@lines)->{values}{answer}, 'Uint8Array', 'values: the next run has bytes';

for my $case ([ 'a graph in Python', 'python' ], [ 'a built-in graph', undef ], [ 'another runner', 'other' ]) {
    my ($writer, $format) = @{$case};
    my %next = $runner->next_run($bytes);
    @lines = act('kind', %next, checkpoint => { %{ $next{checkpoint} }, format => $format });
    is_deeply [ @{ $lines[-1]{error} }{qw(error message)}, scalar lines_of('checkpoint', @lines) ],
        [ 'ForeignStateError', "$writer has saved the state of the thread, which no graph in JavaScript can continue", 0 ],
        "format: the state that $writer has saved is not continued";
}

my $pile = new_uuid();
@lines = act('pile', thread_id => $pile);
is scalar @{ last_checkpoint(@lines)->{values}{names} }, 6000, 'values: a state of 6 MB';
my $sent = 0;
$sent += length $_->{' text'} for act('print', $runner->next_run($pile), stream_modes => [qw(values checkpoints)]);
cmp_ok $sent, '<', 100_000, 'values: the next run sends none of it';

# --- The store -----------------------------------------------------------------------

@lines = act('bounds');
my $answer = last_checkpoint(@lines)->{values}{answer};
is_deeply $answer->{item}, { text => 'found' }, 'store: U+0000 and unpaired surrogates are replaced in labels and keys';
is_deeply $answer->{told}, [
    'a value of the store is an object', 'a key of the store has 1 to 1024 bytes',
    'a filter is an object, its operators are $eq $ne $gt $gte $lt $lte',
    ('a filter has at most 32 conditions and 16384 bytes') x 2,
    'a value of the store has at most 1048576 bytes, and 4194304 with numbers written without exponents',
    'limit is an integer from 0 to 2147483647', ('done') x 3 ],
    'store: what the server would refuse is refused; a batch of 6 MB is put';
is_deeply [ @{$answer}{qw(items names)} ], [ 1100, 1050 ], 'store: more than 1,000 results are read in pages';

# --- Blocking, credit ------------------------------------------------------------

# Beside other load the lines may also be written because the loop happens to turn before the node: hardly each time.
my @held = map { held_lines() } 1 .. 10;

# The lines of a run that are written before its second node holds the process; it ends then.
sub held_lines {
    my $gate = tempdir(CLEANUP => 1) . '/gate';
    my $held = start_line(graph_id => 'holds', input => { answer => $gate });
    $runner->send($held);
    $runner->wait_for_io while $runner->log_text !~ /^run $held->{run_id}: holds$/m;
    # Another thread answers, after the lines that were written before.
    $runner->send({ type => 'ping', id => 6 });
    my @before = $runner->lines_until(sub { $_[0]{type} eq 'pong' });
    write_file($gate, '');
    push @before, ($runner->lines_of_run($held->{run_id}))[-1];
    return \@before;
}
is_deeply [ map { [ map { $_->{metadata}{step} } lines_of('put', @{$_}) ] } @held ], [ ([ -1, 0, 1 ]) x 10 ],
    'blocking: the step of a node is sent before the next node holds the process';
is_deeply [ map { scalar lines_of('put_writes', @{$_}) } @held ], [ (2) x 10 ], 'blocking: what the node has written too';
is_deeply [ map { $_->[-1]{status} } @held ], [ ('success') x 10 ], 'blocking: the runs go on';

$start = start_act('block', 'blocked');
$runner->send({ type => 'ping', id => 7 });
my $pong = $runner->expect_type('pong');
is $pong->{id}, 7, 'ping: it is answered while a node blocks';
# The runner looks every 500 ms whether its loop turns; the node blocks it for 1.5 s.
for (my $id = 8; $pong->{type} eq 'pong' && !$pong->{busy_ms}; $id++) {
    # Few lines: their bytes need no credit.
    sleep 0.02;
    $runner->send({ type => 'ping', id => $id });
    $pong = ($runner->lines_until(sub { $_[0]{type} eq 'pong' || $_[0]{type} eq 'end' }))[-1];
}
cmp_ok $pong->{busy_ms} // 0, '>', 0, 'ping: busy_ms is the time for which the node blocks the loop';
is +($runner->lines_of_run($start->{run_id}))[-1]{status}, 'success', 'ping: the run goes on';

@lines = act('large', stream_modes => [qw(values updates)]);
is length last_checkpoint(@lines)->{values}{answer}, 3_000_000, 'credit: a long line waits for it';
@lines = act('many', stream_modes => ['custom']);
is scalar(events_of('custom', @lines)), 500, 'credit: many events wait for it';
$runner->withhold_credit;
$start = start_line(graph_id => 'act', input => { answer => 'many' }, stream_modes => ['custom']);
$runner->send($start);
@lines = $runner->lines_until(sub { $_[0]{type} eq 'want' });
cmp_ok $lines[-1]{bytes}, '<=', 65_536, 'credit: several lines share it';
$runner->send({ type => 'cancel', run_id => $start->{run_id}, epoch => 1 });
$runner->give_credit($lines[-1]);
@lines = $runner->lines_of_run($start->{run_id});
is $lines[-1]{status}, 'interrupted', 'credit: a cancelled run ends after it has its credit';
cmp_ok scalar(events_of('custom', @lines)), '<', 200, 'credit: a cancelled run leaves out events';
$start = start_line(graph_id => 'act', input => { answer => 'large' }, stream_modes => [qw(values updates)]);
$runner->send($start);
my $pings = 0;
@lines = $runner->lines_until(sub {
    if ($_[0]{type} eq 'want') {
        # The line is longer than the pipe: one thread writes its beginning, another the rest.
        $runner->give_credit($_[0]);
        $runner->send({ type => 'ping', id => 100 + $pings++ }) for 1 .. 50;
    }
    return $_[0]{type} eq 'end';
});
is $lines[-1]{status}, 'success', 'ping: a long line is whole';
push @lines, $runner->expect_type('pong') while lines_of('pong', @lines) < $pings;
is_deeply [ map { $_->{id} } lines_of('pong', @lines) ], [ map { 100 + $_ } 0 .. $pings - 1 ], 'ping: each is answered beside long lines'
    or diag $pings;

# --- Records -------------------------------------------------------------------------

# The stream reaches a checkpoint whose put has failed, or one after it.
my $module = NodeApplication::program() =~ s/main\.mjs\z/records.mjs/r;
my $script = <<"END";
import { Records } from '$module';
import { Recent } from '${\ ($module =~ s/records/recent/r) }';
import { Output } from '${\ ($module =~ s/records/output/r) }';
const refuse = { dumpsTyped: () => { throw new TypeError('no'); } };
const records = new Records({ send() {}, post() {}, request() { throw new Error('asked'); } }, refuse,
    { thread_id: 't', checkpoint: {} }, false);
const [first, second] = ['0199a0b4-0000-7000-8000-000000000001', '0199a0b4-0000-7000-8000-000000000002'];
const later = records.known.waitForPut('', second);
const config = { configurable: { thread_id: 't' } };
await records.put(config, { id: first, channel_values: { a: 1 } }, {}, { a: 1 }).catch(() => {});
console.log([await records.known.waitForPut('', first), await later].join(' '));
// One whose line is too long, while puts wait for their commit.
const wire = { write() {}, post() {} };
const output = new Output(wire, { run_id: 'r', epoch: 1 }, { line: 1000, blob_part: 400 });
const encode = { dumpsTyped: async () => ['json', new TextEncoder().encode('1')] };
const waits = new Records(output, encode, { thread_id: 't' }, true);
const told = waits.known.waitForPut('', first);
await waits.put(config, { id: first, channel_values: {} }, { text: 'x'.repeat(1000) }, {}).catch(() => {});
console.log(await told);
// Ids of a long run.
const recent = new Recent(3);
for (let i = 0; i < 100; i += 1) {
    recent.add(`i\${i}`);
    recent.has('i0');
}
console.log(['i0', 'i1', 'i90', 'i97', 'i99'].map((id) => recent.has(id)).join(' '));
// Ids and filters that the graph has made.
const position = { configurable: { thread_id: 't', checkpoint_id: first } };
for (const task of ['', 'a\\0', 'x'.repeat(129), undefined]) {
    console.log(await records.putWrites(position, [], task).catch((error) => error.name));
}
console.log(await records.put(config, { id: '1', channel_values: {} }, {}, {}).catch((error) => error.name));
const asked = [];
const lists = new Records({ send() {}, post() {}, async request(op, args) {
    asked.push(args.filter);
    return { result: { tuples: [], next: null } };
} }, refuse, { thread_id: 't' }, false);
await lists.list(config, { filter: { name: 'a\\0' } }).next();
await new Records({ send: (type, members) => asked.push(members.writes), post() {}, partBytes: 9 }, encode, { thread_id: 't' }, false)
    .putWrites(position, [['valueOf', []], ['__error__', []]], 'task');
console.log(JSON.stringify(asked.pop().map(([index]) => index)) === '[0,-1]');
console.log(JSON.stringify(asked) === '[{"name":"a\\ufffd"}]');
for (const id of ['1', '0199a0b4-0000-7000-8000-00000000000g']) {
    const position = { configurable: { thread_id: 't', checkpoint_id: id } };
    const calls = [() => records.getTuple(position), () => records.putWrites(position, [], 'task'),
        () => records.list({ configurable: { thread_id: 't' } }, { before: position }).next()];
    for (const call of calls) {
        console.log(await call().catch((error) => error.name));
    }
}
// The list of a checkpoint that the configuration names.
const requests = [];
const tuple = { ns: '', checkpoint_id: first, parent: null, metadata: { step: 1, of: { a: 1 } }, checkpoint: { v: 4, channel_versions: {} } };
const stored = new Records({ send() {}, post() {}, async request(op) {
    requests.push(op);
    return { result: op === 'checkpoint.get' ? { tuple } : { tuples: [tuple], next: null }, cursor: null };
} }, refuse, { thread_id: 't', checkpoint: {} }, false);
for (const options of [{}, { filter: { of: { a: 1 } } }, { filter: { step: 2 } }, { limit: 0 }, { before: position }]) {
    let count = 0;
    for await (const { metadata } of stored.list(position, options)) {
        count += metadata.step;
    }
    console.log(`\${count} \${requests.splice(0).join()}`);
}
END
open my $node, '-|', 'node', '--input-type=module', '-e', $script or die "node: $!\n";
my @told = <$node>;
is $told[0], "false false\n", 'records: waiting for a put ends when a put of the namespace fails';
is $told[1], "false\n", 'records: waiting for a put ends when its line is too long, with durability sync';
is splice(@told, 2, 1), "true false false true true\n", 'records: of a long run the ids that were last added or found are kept';
is join('', @told[ 2 .. 6 ]), "ValueError\n" x 5, 'records: an invalid id of a task or a checkpoint is an error of the node';
is $told[7], "true\n", 'records: a channel may be called valueOf';
is $told[8], "true\n", 'records: U+0000 is replaced in a filter';
is join('', splice @told, 15), "1 checkpoint.get\n1 checkpoint.get\n0 checkpoint.get\n0 \n0 \n",
    'records: a list with a checkpoint_id reads that one only';
is join('', @told[ 9 .. $#told ]), "ValueError\n" x 6, 'records: a checkpoint_id that is not a UUID is an error of the node';
close $node or diag "node ended with $?";

# The lines that wait without credit when a run is cancelled.
my $cancels = <<"END";
import { Output } from '${\ (NodeApplication::program() =~ s/main\.mjs\z/output.mjs/r) }';
const wire = { write: (line) => console.log(line) };
const output = new Output(wire, { run_id: 'r', epoch: 1 }, { line: 1 << 20 });
output.send('event', { event: 'updates', data: 'x'.repeat(70000) });
output.send('event', { event: 'updates', data: 2 });
output.send('event', { event: 'values', data: 3 });
output.send('event', { event: 'values', checkpoint_id: 'four' });
output.send('checkpoint', { checkpoint_id: 'five' });
output.send('event', { event: 'error', data: 'six' });
output.cancel();
output.send('event', { event: 'updates', data: 7 });
output.send('event', { event: 'values', checkpoint_id: 'eight' });
output.send('event', { event: 'error', data: 'nine' });
output.takeGo();
END
open my $cancelled, '-|', 'node', '--input-type=module', '-e', $cancels or die "node: $!\n";
is_deeply [ map { /"(four|five|six|eight|nine)"/ ? $1 : 'other' } grep { !/x{9}|"want"/ } <$cancelled> ], [qw(four five six eight nine)],
    'cancel: checkpoints, `error` and `values` of a checkpoint are sent, other events that wait are not';
close $cancelled or diag "node ended with $?";

# Lines are written at once when code of the application may follow a checkpoint.
my $folder = NodeApplication::program() =~ s/main\.mjs\z//r;
my $follows = <<"END";
import { mayExecute } from '${folder}pace.mjs';
const triggers = { __start__: ['__start__'], 'branch:to:a': ['a'] };
const root = { configurable: { checkpoint_ns: '' } };
const tell = (values, from = triggers, config = root) => console.log(mayExecute(from, config, { channel_values: values }));
tell({ messages: [1], __start__: {} });
tell({ messages: [1] });
tell({});
tell({ 'branch:to:a': null });
tell({ __pregel_tasks: [1] });
tell({ __pregel_tasks: [] });
tell({ messages: [1], 'branch:to:b': 1 });
tell({ __start__: {} }, { __start__: ['own'] });
tell({ messages: [1] }, null);
tell({ messages: [1] }, {});
tell({ messages: [1] }, triggers, { configurable: { checkpoint_ns: 'a:1' } });
END
open my $followed, '-|', 'node', '--input-type=module', '-e', $follows or die "node: $!\n";
chomp(my @follows = <$followed>);
close $followed or diag "node ended with $?";
is "@follows", 'false false false true true false false true true true true',
    'lines: they are written at once if a channel with a value starts a node, and where that is not known';

# Parts of a value, of `hello.limits`.
my $parts = <<"END";
import { Blobs } from '${folder}blobs.mjs';
import { Output } from '${folder}output.mjs';
const encode = { dumpsTyped: async () => ['json', Buffer.from('"01234567\\u00e9"')] };
for (const limits of [{ line: 1 << 20, blob_part: 10 }, { line: 1020, blob_part: 1 << 20 }, { line: 1 << 20, blob_part: 1 << 20 }]) {
    const output = new Output({ write: (line) => console.log(JSON.parse(line).text.length) }, { run_id: 'r', epoch: 1 }, limits);
    await new Blobs(output, encode).reference('x');
}
END
open my $lengths, '-|', 'node', '--input-type=module', '-e', $parts or die "node: $!\n";
is join(' ', map { s/\n//r } <$lengths>), '9 2 9 2 11', 'values: a part is no longer than blob_part, nor with its escapes than a line';
close $lengths or diag "node ended with $?";

# A put of the root graph after those of more namespaces than are kept.
my $namespaces = <<"END";
import { Records } from '${folder}records.mjs';
const puts = [];
const output = { send: (type, members) => puts.push(members), post() {}, partBytes: 100 };
const encode = { dumpsTyped: async () => ['json', Buffer.from('1')] };
const records = new Records(output, encode, { thread_id: 't' }, false, () => {});
const put = (ns, number, parent) => records.put({ configurable: { thread_id: 't', checkpoint_ns: ns, checkpoint_id: parent } },
    { id: `0199a0b4-0000-7000-8000-\${String(number).padStart(12, '0')}`, channel_values: { a: 1 } }, {}, { a: 1 });
const { configurable } = await put('', 0);
for (let i = 1; i <= 300; i += 1) {
    await put(`n\${i}`, i);
}
await put('', 301, configurable.checkpoint_id);
console.log(JSON.stringify(puts.at(-1).channels));
END
open my $channels, '-|', 'node', '--input-type=module', '-e', $namespaces or die "node: $!\n";
is join('', <$channels>), "{}\n", 'records: after 300 namespaces a put of the root graph sends what differs';
close $channels or diag "node ended with $?";

# --- The end of the process ------------------------------------------------------

$runner->send({ type => 'drain' });
is $runner->finish, 0, 'drain: the runner exits with 0';
$runner = runner(steps => './graphs.mjs:steps');
$runner->close_input;
is $runner->finish, 0, 'end of input: the runner exits';
$runner = runner(steps => './graphs.mjs:steps');
$runner->send_raw("no JSON\n");
is $runner->finish >> 8, 2, 'breach: a line that is not JSON ends the runner';
like $runner->log_text, qr/^protocol: a line is not JSON: no JSON$/m, 'breach: a line that is not JSON is logged';
$runner = runner(act => './graphs.mjs:act');
$runner->send(start_line(graph_id => 'act', input => { answer => 'kill' }));
is $runner->finish >> 8, 3, 'exit: code outside of runs can end the process';
like $runner->log_text, qr/^the application ended the process with status 3$/m, 'exit: the end of the process by the application is logged';
for my $name ('close 3', 'close 4', 'replace 3') {
    $runner = runner(act => './graphs.mjs:act');
    $runner->send(start_line(graph_id => 'act', input => { answer => $name }));
    is $runner->finish >> 8, 2, "pipes: a node that does `$name` ends the process";
    like $runner->log_text, qr/^descriptor ${\ substr $name, -1} is closed: the process ends$/m, "pipes: the log says so after `$name`";
}
for my $case ([ 'standard output', 'close 1' ], [ 'standard error', 'close 2' ], [ undef, 'close 1 and 2' ]) {
    my ($stream, $name) = @{$case};
    $runner = runner(act => './graphs.mjs:act');
    @lines = map { (act($_))[-1] } $name, 'print';
    is_deeply [ map { $_->{status} } @lines ], [ ('success') x 2 ], "log: a node that does `$name` stops no run";
    next if !defined $stream;
    $runner->wait_for_io while $runner->log_text !~ /cannot be written/;
    like $runner->log_text, qr/^run $lines[0]{run_id}: $stream cannot be written: .*EBADF/m, "log: a line says that after `$name`, with the run";
}
$runner = runner(steps => './graphs.mjs:steps', arguments => [ '--slots', '1' ]);
is $runner->{ready}{slots}, 1, 'slots: --slots sets their number';
$runner = runner(act => './graphs.mjs:act', arguments => [ '--slots', '1' ]);
$runner->send(map { start_line(graph_id => 'act', input => { answer => 'ignore' }) } 1, 2);
$runner->close_input;
is $runner->finish >> 8, 2, 'slots: a run beyond them ends the runner';
like $runner->log_text, qr/^protocol: the run \S+ cannot start$/m, 'slots: the log says why';

# --- Mutated objects -----------------------------------------------------------------

# The old value is stored and shown if unchanged.mjs does not see the change.
my $unchanged = root() . '/mod_agent/runners/node/unchanged.mjs';
my $changes = <<"END";
import { encodedOf, remember, snapshotOf } from '$unchanged';
const changes = [
    [{ n: 0 }, (v) => { v.n = []; }], [{ n: [] }, (v) => { v.n = {}; }], [{ n: ['a'] }, (v) => { v.n = { 0: 'a' }; }],
    [{ n: null }, (v) => { v.n = Object.create(null); }], [{ n: 1 }, () => {}],
    [{ n: new URL('http://a/') }, (v) => { v.n.pathname = '/b'; }], [{ n: new Error('a') }, (v) => { v.n.message = 'b'; }]];
for (const [value, change] of changes) {
    remember(value, snapshotOf(value), 'digest', 1);
    change(value);
    console.log(encodedOf(value) === undefined ? 'changed' : 'known');
}
END
open my $output, '-|', 'node', '--input-type=module', '-e', $changes or die "node: $!\n";
is_deeply [ map { s/\n//r } <$output> ], [ ('changed') x 4, 'known', ('changed') x 2 ], 'values: an object that was mutated is encoded again';

# --- Descriptors ----------------------------------------------------------------------

sub pong {
    my ($of, $id) = @_;
    $of->send({ type => 'ping', id => $id });
    return ($of->lines_until(sub { $_[0]{type} eq 'pong' }))[-1];
}

my $few = ApplicationTest->new(command => [ '/usr/bin/prlimit', '--nofile=256', runner_of('javascript') ], directory => NodeApplication::application('node'),
    graphs => { act => './graphs.mjs:act' });
is +($few->run(graph_id => 'act', input => { answer => 'print' }))[-1]{status}, 'success', 'descriptors: a run leaves none open';
ok !pong($few, 1)->{spent}, 'descriptors: the process goes on';
@lines = $few->run(graph_id => 'act', input => { answer => 'leaves' });
is $lines[-1]{status}, 'success', 'descriptors: a run that leaves most of them open succeeds';
is pong($few, 2)->{spent}, Cpanel::JSON::XS::true(), 'descriptors: pong asks for another process then';
like $few->log_text, qr/almost all descriptors are in use at the end of run $lines[-1]{run_id} of graph act/, 'descriptors: the log names the run';

# --- Members of configurable that events do not have ---------------------------------

my $repeats = <<"END";
import { Metadata } from '${\ (NodeApplication::program() =~ s/main\.mjs\z/metadata.mjs/r) }';
const members = Object.fromEntries(Array.from({ length: 100_000 }, (_, n) => [`m\${n}`, 'v']));
const metadata = new Metadata(members, {});
const event = { thread_id: 't', m1: 'v', m99999: 'v' };
console.log(Object.keys(metadata.bounded(event)).join(' '));
const before = process.cpuUsage();
for (let i = 0; i < 500; i += 1) {
    metadata.bounded(event);
}
const { user, system } = process.cpuUsage(before);
console.log((user + system) / 1e6);
END
open my $bounded, '-|', 'node', '--input-type=module', '-e', $repeats or die "node: $!\n";
chomp(my ($kept, $seconds) = <$bounded>);
is $kept, 'thread_id m1', 'metadata: copied members beyond 16 KB are left out';
cmp_ok $seconds // 1e9, '<', 0.5, 'metadata: an event costs no more for members of configurable that it does not have'
    or diag "$seconds s for 500 events";
close $bounded or diag "node ended with $?";

done_testing;
