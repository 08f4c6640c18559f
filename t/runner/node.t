# SPDX-License-Identifier: Apache-2.0
# The runner for JavaScript: messages, runs, checkpoints, interrupts.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Env qw(slurp);
use Cpanel::JSON::XS;
use File::Temp qw(tempdir);
use NodeApplication qw(application runner program);
use POSIX ();
use RecordStore;
use RunnerTest qw(start_line new_uuid lines_of lists_of events_of metadata_of_events);
use Test::More;

local $ENV{TMPDIR} = my $temporary = tempdir(CLEANUP => 1);
my $runner = runner(
    records => RecordStore->new(parts => 2), broken => './broken.mjs:graph', absent => './graphs.mjs:absent',
    common => './common.cjs:graph', agent => './agent.mjs:agent', typed => './typed.ts:graph',
    map { $_ => "./graphs.mjs:$_" } qw(steps asks chat writer revives nested fans act loop leaves factory messages keeps remembers leaves_calls));
my $reports = $runner->{ready}{graphs};

sub last_checkpoint {
    my (@lines) = @_;
    return (grep { !length $_->{ns} } lines_of('checkpoint', @lines))[-1];
}

# Of the runner's process, user's and system's.
sub processor_seconds {
    my @fields = split ' ', slurp('/proc/' . $runner->pid . '/stat');
    return ($fields[13] + $fields[14]) / POSIX::sysconf(POSIX::_SC_CLK_TCK());
}

sub end_of { return $_[-1]{status} . ($_[-1]{error} ? " $_[-1]{error}{error}: $_[-1]{error}{message}" : '') }

# --- ready ---------------------------------------------------------------------

is_deeply [ map { $_->{id} } @{ $reports->{steps}{drawing}{nodes} } ], [qw(__start__ first second __end__)],
    'ready: a compiled graph has a drawing';
ok $reports->{asks}{drawing}, 'ready: a StateGraph is compiled';
ok $reports->{common}{drawing}, 'ready: a graph of a CommonJS module is loaded';
is $reports->{typed}{schemas}{state_schema}{properties}{count}{type}, 'number',
    'ready: a graph in TypeScript has the JSON schema of its zod schema';
is_deeply [ glob "$temporary/tsx*" ], [], 'ready: compiled code is not kept where another user may have put some';
is_deeply $reports->{broken}{error}, { error => 'TypeError', message => 'broken at import' },
    'ready: a graph that cannot be imported has the error';
like $reports->{absent}{error}{message}, qr/has no export "absent"/, 'ready: a missing export is named';
like $reports->{messages}{error}{message}, qr/neither a graph nor a function/, 'ready: an export that is not a graph is an error';
is $runner->{ready}{runtime}{library_version}, '1.7.3', 'ready: it has the version of the application\'s library';

# --- runs ----------------------------------------------------------------------

my $thread = new_uuid();
my @lines = $runner->run(graph_id => 'steps', thread_id => $thread, input => { count => 5 },
    stream_modes => [qw(values updates tasks checkpoints debug)]);
is end_of(@lines), 'success', 'run: it ends with success';
is_deeply [ map { $_->{values} } lines_of('checkpoint', @lines) ],
    [ { count => 0, names => [] }, { count => 5, names => [] }, { count => 6, names => [ { name => 'first' } ] },
        { count => 16, names => [ { name => 'first' }, { name => 'second' } ] } ],
    'checkpoints: each step has the whole state';
is_deeply [ map { $_->{metadata}{step} } lines_of('checkpoint', @lines) ], [ -1, 0, 1, 2 ],
    'checkpoints: the first one precedes the input';
is_deeply [ map { $_->{next} } lines_of('checkpoint', @lines) ], [ ['__start__'], ['first'], ['second'], [] ],
    'checkpoints: each names the next nodes';
is_deeply last_checkpoint(@lines)->{sent}{names}, { '$list' => { keep => 1, items => [ { name => 'second' } ] } },
    'checkpoints: a list is sent as a difference';
is_deeply [ lists_of('names', @lines) ], [ [ 0, 1 ], [ 1, 1 ] ], 'checkpoints: a snapshot keeps the elements of a list, and adds the new one';
is_deeply [ map { $_->{checkpoint_id} } grep { $_->{event} eq 'values' } lines_of('event', @lines) ],
    [ map { $_->{checkpoint_id} } grep { $_->{metadata}{step} >= 0 } lines_of('checkpoint', @lines) ],
    'values: events refer to the checkpoints';
is_deeply [ events_of('updates', @lines) ], [ { first => { count => 1, names => [ { name => 'first' } ] } },
    { second => { count => 10, names => [ { name => 'second' } ] } } ], 'updates: each node has its update';
is_deeply [ map { $_->{values}{count} } events_of('checkpoints', @lines) ], [ 0, 5, 6, 16 ],
    'checkpoints: events have the values';
is_deeply [ map { $_->{type} } events_of('debug', @lines) ],
    [qw(checkpoint checkpoint task task_result checkpoint task task_result checkpoint)], 'debug: checkpoints and tasks';
is_deeply [ map { $_->{task}{result} } lines_of('task', @lines) ],
    [ { count => 1, names => [ { name => 'first' } ] }, { count => 10, names => [ { name => 'second' } ] } ],
    'task: the result of each node is reported';

@lines = $runner->run(graph_id => 'steps', $runner->next_run($thread), input => { count => 4 });
is last_checkpoint(@lines)->{values}{count}, 31, 'thread: the next run continues the state';
is_deeply [ map { $_->{sent}{names} } grep { $_->{metadata}{source} eq 'input' } lines_of('checkpoint', @lines) ],
    [ { '$same' => Cpanel::JSON::XS::true } ], 'thread: what the run has read is not sent again';
is_deeply [ lists_of('names', @lines) ], [ [ 2, 1 ], [ 3, 1 ] ], 'thread: snapshots keep the elements of runs before';
is scalar(grep { $_->{text} =~ /first|second/ } lines_of('blob', @lines)), 0, 'thread: elements that were read are not sent again';

is scalar(grep { $_->{op} eq 'blob.get' } $runner->requests_of($lines[-1]{run_id})), 1,
    'thread: elements that the last run has left are not read again';
@lines = $runner->run(graph_id => 'steps', $runner->next_run($thread), input => { count => 4 }, durability => 'sync');
is_deeply [ map { defined $_->{ack} } lines_of('put', @lines) ], [ (1) x 4 ], 'durability: with sync each checkpoint waits for its commit';
is_deeply [ map { $_->{name} } @{ last_checkpoint(@lines)->{values}{names} } ], [ (qw(first second)) x 3 ],
    'thread: a third run has the state of both';

$thread = new_uuid();
my @counts = map { last_checkpoint($runner->run(graph_id => 'remembers', input => {}, $runner->next_run($thread)))->{values}{answer} } 1 .. 3;
is_deeply \@counts, [ 1, 2, 3 ], 'thread: a subgraph with `checkpointer: true` that is served by itself too keeps its state';

@lines = $runner->run(graph_id => 'chat', input => { messages => [ { role => 'user', content => 'hi' } ] },
    stream_modes => [qw(values messages messages-tuple events)]);
is_deeply [ map { [ @{$_}{qw(type content)} ] } @{ last_checkpoint(@lines)->{values}{messages} } ],
    [ [ human => 'hi' ], [ ai => 'one two three' ] ], 'messages: they are flat';
is join('', map { $_->[0]{content} } events_of('messages', @lines)), 'one two three',
    'messages-tuple: the chunks make the message';
is +(events_of('messages/partial', @lines))[-1][0]{content}, 'one two three', 'messages: the last part is the whole message';
is_deeply [ map { map { $_->{content} } @{$_} } events_of('messages/complete', @lines) ], ['one two three'],
    "messages: each is complete once, except the client's";
ok +(grep { $_->{event} eq 'on_chat_model_stream' } events_of('events', @lines)), 'events: the model\'s tokens are there';

my $words = '"' . 'word ' x 2998 . '"';
for my $kind (qw(text args)) {
    @lines = $runner->run(graph_id => 'writer', input => { messages => [ { role => 'user', content => $kind } ] },
        stream_modes => ['messages']);
    my $bytes = 0;
    $bytes += length $_->{' text'} for lines_of('event', @lines);
    cmp_ok $bytes, '<', 150 * length $words, "messages: bytes are linear in the length of a message, $kind";
    my $last = (events_of('messages/complete', @lines))[-1][0];
    is $kind eq 'text' ? $last->{content} : $last->{tool_call_chunks}[0]{args}, $words,
        "messages: one that the node drops is complete at the end, $kind";
}

my %long = (config => { configurable => { model => 'm' x 20_000, x => 'x' x 20_000 }, metadata => { mine => 'y' x 9000 } },
    context => { size => 's' x 20_000 }, stream_modes => [qw(messages messages-tuple events)]);
@lines = $runner->run(graph_id => 'chat', input => { messages => [ { role => 'user', content => 'hi' } ] }, %long);
my @repeated = metadata_of_events(@lines);
is_deeply [ grep { $_->{model} } @repeated ], [], 'metadata: a long model of configurable is not repeated with each token';
is_deeply [ grep { length $_->{mine} != 9000 || !$_->{thread_id} } @repeated ], [], 'metadata: the ids and the client\'s own members are repeated with each token';
is $repeated[0]{langgraph_node}, 'agent', 'metadata: the library\'s members are repeated with each token';
@lines = $runner->run(graph_id => 'chat', input => { messages => [ { role => 'user', content => 'hi' } ] }, stream_modes => ['messages-tuple'],
    config => { configurable => { model => 'm' x 6000, map { $_ => $_ x 20_000 } qw(x y z) } });
is length +(metadata_of_events(@lines))[0]{model}, 6000, 'metadata: members that the library does not copy do not count';

# --- values of the library -----------------------------------------------------

my $start = start_line(graph_id => 'revives', input => { answer => 'make' }, stream_modes => []);
$runner->send($start);
is end_of($runner->lines_of_run($start->{run_id})), 'success',
    'values: the library saves 1,000,000 numbers and what JSON does not have';
my $before = processor_seconds();
@lines = $runner->run(graph_id => 'revives', $runner->next_run($start->{thread_id}), input => { count => 1 }, stream_modes => []);
is last_checkpoint(@lines)->{values}{answer}, '1000000' . ' true' x 10, 'values: all are read as they were';
cmp_ok processor_seconds() - $before, '<', 1.5, 'values: numbers are read as plain JSON';

# --- interrupts, breakpoints, commands -----------------------------------------

$thread = new_uuid();
@lines = $runner->run(graph_id => 'asks', thread_id => $thread, input => { count => 1 }, stream_modes => [qw(values updates)]);
is end_of(@lines), 'success', 'interrupt: the run ends with success';
is_deeply last_checkpoint(@lines)->{next}, ['ask'], 'interrupt: the node is next';
my ($task) = lines_of('task', @lines);
is_deeply $task->{task}{interrupts}[0]{value}, { question => 'go on?' }, 'interrupt: the task has it';
my ($update) = events_of('updates', @lines);
is_deeply $update->{__interrupt__}, $task->{task}{interrupts}, 'interrupt: updates have it';
my ($last) = reverse events_of('values', @lines);
is_deeply [ sort keys %{$last} ], [qw(__interrupt__ count names)], 'interrupt: values have it beside the state';
my ($asked) = map { $_->{id} } @{ $task->{task}{interrupts} };
for my $case ([ {}, 'The resume map names no interrupt' ], [ { $asked => 'yes', '0' x 32 => 'no' }, 'Unknown or already-consumed interrupt: ' . '0' x 32 ]) {
    @lines = $runner->run(graph_id => 'asks', $runner->next_run($thread), strict_resume => Cpanel::JSON::XS::true, command => { resume => $case->[0] });
    is_deeply $lines[-1]{error}, { error => 'UnknownInterruptError', message => $case->[1] }, 'strict_resume: an answer to no interrupt is an error';
    is scalar(lines_of('checkpoint', @lines)), 0, 'strict_resume: it leaves the thread as it was';
}
@lines = $runner->run(graph_id => 'asks', $runner->next_run($thread), strict_resume => Cpanel::JSON::XS::true, command => { resume => { $asked => 'yes' } });
is_deeply last_checkpoint(@lines)->{values}, { count => 1, names => [ { name => 'yes' } ], answer => 'yes' },
    'interrupt: a run with resume goes on';
is_deeply [ map { $_->{' text'} } grep { defined $_->{data} } lines_of('event', @lines) ], [], 'interrupt: the values of a resumed run refer to checkpoints';

$thread = new_uuid();
@lines = $runner->run(graph_id => 'steps', thread_id => $thread, input => { count => 1 }, interrupt_before => ['second'],
    stream_modes => [qw(values updates)]);
is_deeply last_checkpoint(@lines)->{next}, ['second'], 'breakpoint: interrupt_before stops the run before the node';
is_deeply [ events_of('updates', @lines) ]->[-1], { __interrupt__ => [] }, 'breakpoint: updates say so';
@lines = $runner->run(graph_id => 'steps', $runner->next_run($thread));
is last_checkpoint(@lines)->{values}{count}, 12, 'breakpoint: a run without input goes on';

$thread = new_uuid();
@lines = $runner->run(graph_id => 'steps', thread_id => $thread, input => { count => 1 }, interrupt_after => '*');
is_deeply [ last_checkpoint(@lines)->{next}, last_checkpoint(@lines)->{values}{count} ], [ ['second'], 2 ],
    'breakpoint: after each node its checkpoint is there, with the next node';

$thread = new_uuid();
@lines = $runner->run(graph_id => 'steps', thread_id => $thread, input => { count => 1 });
my ($fork) = grep { $_->{metadata}{step} == 1 } lines_of('checkpoint', @lines);
my $version = (lines_of('put', @lines))[-1]{checkpoint}{channel_versions}{count};
@lines = $runner->run(graph_id => 'steps', $runner->next_run($thread, $fork->{checkpoint_id}));
is last_checkpoint(@lines)->{values}{count}, 12, 'fork: a run continues an earlier checkpoint';
is +(lines_of('checkpoint', @lines))[0]{parent}, $fork->{checkpoint_id}, 'fork: its checkpoints follow that one';
isnt +(lines_of('put', @lines))[-1]{checkpoint}{channel_versions}{count}, $version,
    'fork: the same step of another branch has other versions of the channels';

@lines = $runner->run(graph_id => 'steps', thread_id => new_uuid(), command => { update => { count => 3 }, goto => 'second' });
is last_checkpoint(@lines)->{values}{count}, 13, 'command: update and goto';
@lines = $runner->run(graph_id => 'act', input => { answer => 'goto' });
is_deeply [ map { $_->{name} } @{ last_checkpoint(@lines)->{values}{names} } ], [qw(goto other)], 'command: one that a node returns goes to its target';
@lines = $runner->run(graph_id => 'leaves', input => { count => 1 }, stream_modes => ['values']);
is_deeply [ events_of('command', @lines) ],
    [ { graph => '__parent__', update => { count => 5 }, resume => undef, goto => [ 'second', { node => 'third', arg => { n => 1 } } ] } ],
    'command: one to the parent of the root graph is an event';
is_deeply [ $lines[-1]{status}, map { $_->{task}{error} } lines_of('task', @lines) ], [ 'success', undef ], 'command: the run ends with success, without an error of its task';
is last_checkpoint(@lines)->{values}{count}, 1, 'command: the update is that of the caller';

# --- subgraphs, branches ---------------------------------------------------------

$thread = new_uuid();
@lines = $runner->run(graph_id => 'nested', thread_id => $thread, input => { count => 1 },
    stream_modes => [qw(values updates lifecycle)], stream_subgraphs => Cpanel::JSON::XS::true);
is_deeply last_checkpoint(@lines)->{next}, ['middle'], 'subgraph: the run stops in it';
my @deep = grep { $_->{ns} =~ /\Amiddle:[-\w]+\|inner:[-\w]+\z/ } lines_of('checkpoint', @lines);
is_deeply [ map { $_->{next} } @deep ], [ ['__start__'], ['deep'] ], 'subgraph: its checkpoints have its namespace';
ok +(grep { $_->{event} =~ /\Avalues\|middle:[-\w]+\|inner:/ } lines_of('event', @lines)), 'subgraph: its events have its namespace';
is_deeply [ map { $_->{data}{event} } grep { $_->{event} =~ /\Alifecycle/ } lines_of('event', @lines) ],
    [qw(started started interrupted interrupted)], 'lifecycle: subgraphs begin and stop';
is +(last_checkpoint(@lines)->{tasks}[0]{checkpoint}{checkpoint_ns} // ''), (split /\|/, $deep[0]{ns})[0],
    'subgraph: the task names the namespace';
@lines = $runner->run(graph_id => 'nested', $runner->next_run($thread), command => { resume => 'deep answer' });
is last_checkpoint(@lines)->{values}{answer}, 'deep answer', 'subgraph: the answer reaches it';
is_deeply [ grep { $_->{event} =~ /\|/ } lines_of('event', @lines) ], [], 'subgraph: its events are not sent unless requested';

$thread = new_uuid();
@lines = $runner->run(graph_id => 'nested', thread_id => $thread, input => { count => 1 }, durability => 'exit');
is_deeply [ map { [ $_->{ns} =~ s/:[-\w]+//gr, $_->{next} ] } lines_of('checkpoint', @lines) ],
    [ [ '', ['middle'] ], [ 'middle', ['inner'] ], [ 'middle|inner', ['deep'] ] ], 'durability exit: subgraphs that stop have a checkpoint';
is_deeply [ map { [ $_->{ns} =~ s/:[-\w]+//gr, $_->{task}{interrupts}[0]{value} ] } lines_of('task', @lines) ],
    [ [ 'middle', 'deep?' ], [ 'middle|inner', 'deep?' ] ], 'durability exit: the tasks of subgraphs that stop have the interrupt';
for my $durability (qw(exit async)) {
    @lines = $runner->run(graph_id => 'nested', $runner->next_run($thread), durability => $durability);
    is_deeply [ sort map { $_->{ns} =~ s/:[-\w]+//gr } lines_of('task', @lines) ], [ '', 'middle', 'middle|inner' ],
        "durability $durability: a run that stops at the same place again reports the tasks of all graphs";
}
@lines = $runner->run(graph_id => 'nested', $runner->next_run($thread), command => { resume => 'x' }, durability => 'exit');
is_deeply [ map { $_->{ns} } lines_of('checkpoint', @lines) ], [''], 'durability exit: subgraphs that have ended have none';

@lines = $runner->run(graph_id => 'fans', input => { count => 200 });
is scalar @{ last_checkpoint(@lines)->{values}{names} }, 200, 'Send: 200 parallel branches';

# --- configuration, factories, stores -----------------------------------------

@lines = $runner->run(graph_id => 'act', input => { answer => 'context' }, context => { langgraph_auth_user_id => 'u' },
    config => { configurable => { tenant => 't' } });
is_deeply last_checkpoint(@lines)->{values}{answer}, { context => { langgraph_auth_user_id => 'u' }, tenant => 't' },
    'config: context and configurable reach the node, but no authenticated user that a client names';
@lines = $runner->run(graph_id => 'act', input => { answer => 'context' }, config => { configurable => { langgraph_auth_user_id => 'ann' } });
is last_checkpoint(@lines)->{values}{answer}{user}, 'ann', 'config: the user that the server has authenticated reaches the node';
for my $members (256, 257) {
    my %context = (tenant => 'c', map { $_ => 'v' } 2 .. $members);
    @lines = $runner->run(graph_id => 'act', input => { answer => 'context' }, context => \%context);
    is_deeply last_checkpoint(@lines)->{values}{answer}, { context => \%context, $members == 256 ? (tenant => 'c') : () },
        "config: a context of $members members reaches the node" . ($members == 256 ? ', in configurable too' : ', not in configurable');
}
@lines = $runner->run(graph_id => 'act', input => { answer => 'context' }, context => { __pregel_stream => 'x' },
    config => { configurable => { tenant => 't', __pregel_checkpointer => 'x' } });
is $lines[-1]{status}, 'success', 'config: the library\'s own names are not taken from clients';
@lines = $runner->run(graph_id => 'factory', input => { count => 1 }, config => { configurable => { tenant => 'acme' } });
is last_checkpoint(@lines)->{values}{names}[0]{name}, 'acme', 'factory: it gets the configuration of the run';
for my $name (qw(common typed)) {
    @lines = $runner->run(graph_id => $name, input => { count => 7 });
    is last_checkpoint(@lines)->{values}{answer}, $name eq 'common' ? 'common' : 'red 7', "module: $name runs";
}
@lines = $runner->run(graph_id => 'act', input => { answer => 'store' });
is_deeply last_checkpoint(@lines)->{values}{answer}, { item => { name => 'red' }, found => 1, names => [ [qw(users a)] ] },
    'store: items are put, read, searched and listed';
@lines = $runner->run(graph_id => 'leaves_calls', input => {});
is end_of(@lines), 'success', 'context: a graph that code outside of the calls of its run invokes has its checkpoints and its store';
is last_checkpoint(@lines)->{values}{answer}, 'blue', 'context: its result comes back';
is last_checkpoint($runner->run(graph_id => 'agent', input => { messages => [ { role => 'user', content => 'add 2 3' } ] }))
    ->{values}{messages}[-1]{content}, 'sum: 5', 'createAgent: an agent with a tool runs';

$runner->send({ type => 'drain' });
is $runner->finish, 0, 'drain: the runner exits';
is $runner->log_text =~ s/^(?:graph (?:broken|absent|messages):| +at|run [-\w]+: (?:UnknownInterruptError| +at)|.* has blocked the process).*\n//gmr, '',
    'log: it has the errors of the graphs that cannot be loaded and those of refused resumes, nothing about 200 branches, and no others';

# --- --check -------------------------------------------------------------------

my $directory = application('node');
my $output = qx(cd '$directory' && node '${\ program() }' --check 2>/dev/null);
is $? >> 8, 1, 'check: the status is 1 when a graph cannot be used';
my ($importing, $ready_line) = $output =~ /\A(.*\n|)(.*)\n\z/s;
my $report = decode_json($ready_line);
like $importing, qr/^\{"type":"importing","graph_id":"broken"\}$/m, 'check: the graph that is being imported is named before';
is_deeply [ map { $report->{graphs}{$_}{error} ? "$_ fails" : $_ } sort keys %{ $report->{graphs} } ],
    [ 'act', 'broken fails', qw(lost nested steps typed) ], 'check: all graphs are imported';
is $report->{graphs}{typed}{description}, 'a graph in TypeScript', 'check: descriptions are those of langgraph.json';
system "cd / && node '${\ program() }' --check 2>/dev/null";
is $? >> 8, 2, 'check: without langgraph.json the status is 2';

done_testing;
