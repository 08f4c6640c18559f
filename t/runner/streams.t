# SPDX-License-Identifier: Apache-2.0
# The events of each stream mode: those that were requested, and no others.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cpanel::JSON::XS;
use ModelServer;
use RunnerTest qw(graph human script messages_of last_message lines_of events_of continue_from);
use Test::More;

my $server = ModelServer->new;
my $runner = RunnerTest->new(graphs => {
    agent => graph(),
    model => graph(model => $server->model('anthropic'), tools => [ $server->tool('weather') ]) });

my $TOOL = human('use clock {}');

# The names of the events, repetitions in a row once.
sub names {
    my @names = map { $_->{event} } lines_of('event', @_);
    my $last = '';
    return join ' ', grep { $_ ne $last && (($last = $_) || 1) } @names;
}

sub ids_of { return map { $_->{checkpoint_id} } lines_of('checkpoint', @_) }

my %wanted = (
    values            => 'values',
    updates           => 'updates',
    messages          => 'messages/metadata messages/partial messages/complete messages/metadata '
        . 'messages/complete messages/metadata messages/partial messages/complete',
    'messages-tuple'  => 'messages',
    tasks             => 'tasks',
    checkpoints       => 'checkpoints',
    debug             => 'debug',
    custom            => '',
    events            => 'events',
    tools             => 'tools',
    lifecycle         => '',
);
for my $mode (sort keys %wanted) {
    my @lines = $runner->run(input => $TOOL, stream_modes => [$mode]);
    is names(@lines), $wanted{$mode}, "mode $mode: no events of other modes are sent";
    is $lines[-1]{status}, 'success', "mode $mode: the run ends with success";
}
is names($runner->run(input => $TOOL, stream_modes => [])), '', 'no mode: there are no events';
is names($runner->run(input => human('fail'), stream_modes => [])), 'error',
    'no mode: an error is sent';
is names($runner->run(input => $TOOL, stream_modes => [ 'updates', 'values', 'nonsense' ])),
    'values updates values updates values updates values', 'several modes: the events of each are sent';

# --- values and updates ------------------------------------------------------

{
    my @lines = $runner->run(input => $TOOL, stream_modes => [qw(values updates)]);
    my @events = grep { $_->{event} eq 'values' } lines_of('event', @lines);
    is_deeply [ map { $_->{checkpoint_id} } @events ], [ (ids_of(@lines))[ 1 .. 4 ] ],
        'values: an event names the checkpoint of each step except the input';
    my %seen;
    for my $line (@lines) {
        $seen{ $line->{checkpoint_id} } = 1 if $line->{type} eq 'checkpoint';
        ok $seen{ $line->{checkpoint_id} }, 'values: the checkpoint was sent before'
            if ($line->{event} // '') eq 'values';
    }
    my @messages = messages_of(@lines);
    is_deeply [ events_of('updates', @lines) ],
        [ { agent => { messages => [ $messages[1] ] } },
          { tools => { messages => [ $messages[2] ] } },
          { agent => { messages => [ $messages[3] ] } } ],
        'updates: an event has the messages of each node';
}

# --- messages ----------------------------------------------------------------

{
    my @lines = $runner->run(input => human('Hello'), stream_modes => ['messages'],
        config => { metadata => { colour => 'red', run_id => 'not this' } });
    my @messages = messages_of(@lines);
    my ($metadata) = events_of('messages/metadata', @lines);
    my $id = $messages[1]{id};
    is_deeply [ keys %{$metadata} ], [$id], 'messages/metadata: the key is the id of the message';
    my $about = $metadata->{$id}{metadata};
    is_deeply [ @{$about}{qw(langgraph_node langgraph_step graph_id ls_provider colour)} ],
        [ 'agent', 1, 'agent', 'demo', 'red' ], 'messages/metadata: has node, step, graph and model';
    is $about->{run_id}, $lines[0]{run_id}, "messages/metadata: a client cannot replace the run's id";
    my @partial = map { $_->[0] } events_of('messages/partial', @lines);
    is_deeply [ sort { $a <=> $b } map { length $_->{content} } @partial ],
        [ map { length $_->{content} } @partial ], 'messages/partial: the message grows';
    is_deeply [ grep { index $messages[1]{content}, $_->{content} } @partial ], [],
        'messages/partial: is the beginning of the message';
    is_deeply [ keys %{ { map { $_->{id} => 1 } @partial } } ], [$id], 'messages/partial: has the id of the message';
    is_deeply [ events_of('messages/complete', @lines) ], [ [ $messages[1] ] ],
        'messages/complete: is the message of the state';
}
{
    my $words = join ' ', ('word') x 3000;
    my @lines = $runner->run(graph_id => 'model', stream_modes => ['messages'],
        input => script(text => $words));
    my $bytes = 0;
    $bytes += length $_->{' text'} for lines_of('event', @lines);
    cmp_ok $bytes, '<', 60 * length $words, 'messages: bytes are linear in the length of the message';
    is +(events_of('messages/complete', @lines))[0][0]{content}, $words, 'messages/complete: has the whole of a long message';
}
{
    my @lines = $runner->run(graph_id => 'model', stream_modes => ['messages-tuple'],
        input => script(text => 'Let me see.', tools => [
            { name => 'weather', args => { city => 'Rome' } },
            { name => 'weather', args => { city => 'Oslo' } } ]));
    my @chunks = map { $_->[0] } events_of('messages', @lines);
    my @messages = messages_of(@lines);
    is_deeply [ map { $_->{id} } grep { $_->{type} eq 'tool' } @chunks ],
        [ map { $_->{id} } @messages[ 2, 3 ] ], 'messages-tuple: tool messages are complete';
    my (%text, %calls, %last);
    for my $chunk (grep { $_->{type} eq 'AIMessageChunk' } @chunks) {
        $text{ $chunk->{id} } .= $chunk->{content};
        $last{ $chunk->{id} } = $chunk;
        for my $part (@{ $chunk->{tool_call_chunks} }) {
            my $call = $calls{ $chunk->{id} }[ $part->{index} ] ||= {};
            $call->{$_} //= $part->{$_} for qw(id name);
            $call->{args} .= $part->{args};
        }
    }
    my ($asking, $answer) = @messages[ 1, 4 ];
    is $text{ $asking->{id} }, 'Let me see.', 'messages-tuple: chunks concatenate to the text';
    is_deeply [ map { [ @{$_}{qw(id name)}, decode_json($_->{args}) ] } @{ $calls{ $asking->{id} } } ],
        [ map { [ @{$_}{qw(id name args)} ] } @{ $asking->{tool_calls} } ],
        'messages-tuple: chunks concatenate to the calls';
    is_deeply $last{ $answer->{id} }{usage_metadata}, $answer->{usage_metadata},
        'messages-tuple: the last chunk has the usage';
    is_deeply $last{ $answer->{id} }{response_metadata}, $answer->{response_metadata},
        'messages-tuple: the last chunk has the response_metadata';
    is_deeply [ map { $_->[1]{langgraph_node} } events_of('messages', @lines) ],
        [ map { $_->{type} eq 'tool' ? 'tools' : 'agent' } @chunks ],
        'messages-tuple: the metadata has the node';
}

# --- tasks, checkpoints, debug -----------------------------------------------

{
    my @lines = $runner->run(input => $TOOL, stream_modes => [qw(tasks checkpoints)]);
    my @tasks = events_of('tasks', @lines);
    my @messages = messages_of(@lines);
    my @checkpoints = lines_of('checkpoint', @lines);
    is_deeply [ map { $_->{name} } @tasks ], [qw(agent agent tools tools agent agent)],
        'tasks: each node starts and ends';
    is_deeply [ map { $_->{id} } @tasks[ 0, 2, 4 ] ], [ map { $_->{id} } @tasks[ 1, 3, 5 ] ],
        'tasks: the start and the end have the same id';
    is_deeply [ map { $_->{id} } @tasks[ 0, 2, 4 ] ],
        [ map { $_->{tasks}[0]{id} } @checkpoints[ 1 .. 3 ] ], 'tasks: the id is that of the checkpoint';
    is_deeply $tasks[0]{input}, $checkpoints[1]{values}, 'tasks: the input is the state';
    is_deeply $tasks[0]{triggers}, ['branch:to:agent'], 'tasks: the start has the triggers';
    is_deeply $tasks[1]{result}, { messages => [ $messages[1] ] }, 'tasks: the end has the result';
    is $tasks[1]{error}, undef, 'tasks: the end has no error';
    my @states = events_of('checkpoints', @lines);
    is_deeply [ map { $_->{checkpoint}{checkpoint_id} } @states ], [ ids_of(@lines) ],
        'checkpoints: an event is sent for each checkpoint';
    is_deeply [ map { $_->{values} } @states ], [ map { $_->{values} } @checkpoints ],
        'checkpoints: the event has the values';
    is_deeply $states[1]{parent_checkpoint}{checkpoint_id}, $checkpoints[0]{checkpoint_id},
        'checkpoints: the event has the parent';
    is_deeply [ sort keys %{ $states[1] } ],
        [qw(checkpoint config metadata next parent_checkpoint parent_config tasks values)],
        'checkpoints: the event has all members';
    is $states[0]{parent_config}, undef, 'checkpoints: the first event has no parent';
}
{
    my @lines = $runner->run(input => human('fail'), stream_modes => ['tasks']);
    my (undef, $end) = events_of('tasks', @lines);
    is $end->{error}, $lines[-1]{error}{message}, 'tasks: a failed node has its error';
    is $end->{result}, undef, 'tasks: a failed node has no result';
}
{
    my @lines = $runner->run(input => $TOOL, stream_modes => ['debug']);
    my @debug = events_of('debug', @lines);
    is join(' ', map { $_->{type} } @debug),
        'checkpoint checkpoint' . ' task task_result checkpoint' x 3, 'debug: has checkpoints, tasks and results';
    like $_->{timestamp}, qr/\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00\z/, 'debug: has the time'
        for $debug[0];
    is_deeply [ map { $_->{step} } grep { $_->{type} eq 'checkpoint' } @debug ], [ -1 .. 3 ],
        'debug: has the step';
}

# --- custom -------------------------------------------------------------------

{
    my @lines = $runner->run(stream_modes => [qw(custom updates)],
        input => human('custom {"a": "}"} then custom {"b": [1, {"c": null}]} and use clock {}'));
    is_deeply [ events_of('custom', @lines) ], [ { a => '}' }, { b => [ 1, { c => undef } ] } ],
        'custom: each object is sent once';
    is names(@lines), 'custom updates', 'custom: is sent before the answer';
    @lines = $runner->run(stream_modes => ['custom'],
        input => human('custom made, custom {"open": 1, custom [1], custom'));
    is names(@lines), '', 'custom: without an object it is an ordinary word';
    is $lines[-1]{status}, 'success', 'custom: without an object the run ends with success';
    my $deep = '{"a":' x 65 . '1' . '}' x 65;
    is names($runner->run(stream_modes => ['custom'], input => human("custom $deep"))), '',
        'custom: more than 64 levels are not sent';
    is names($runner->run(stream_modes => ['values'], input => human('custom {"a": 1}'))), 'values',
        'custom: is not sent without its mode';
}

# --- events -------------------------------------------------------------------

# The event, the name and the members of the data of each.
sub outline {
    return map { join ' ', @{$_}{qw(event name)}, sort keys %{ $_->{data} } } @_;
}

{
    my @lines = $runner->run(input => $TOOL, stream_modes => ['events'],
        config => { tags => ['mine'], metadata => { colour => 'red' } });
    my @traced = events_of('events', @lines);
    my @messages = messages_of(@lines);
    my @agent = ('on_chain_start agent input', 'on_chat_model_start demo input',
        'on_chat_model_stream demo chunk', 'on_chat_model_end demo input output',
        'on_chain_stream agent chunk', 'on_chain_end agent input output');
    my $outline = join "\n", outline(@traced);
    $outline =~ s/(on_chat_model_stream .*)(\n\1)+/$1/g;
    is_deeply [ split /\n/, $outline ],
        [ 'on_chain_start agent input', @agent, 'on_chain_start tools input',
          'on_tool_start clock input', 'on_tool_end clock input output',
          'on_chain_stream tools chunk', 'on_chain_end tools input output', @agent,
          'on_chain_end agent output' ], 'events: graph, nodes, models and tools start and end';
    is_deeply [ grep { "@$_" ne 'data event metadata name parent_ids run_id tags' }
            map { [ sort keys %$_ ] } @traced ], [], 'events: each has all members';
    my ($graph, $node, $start) = @traced;
    is_deeply [ @{$graph}{qw(run_id parent_ids tags)} ], [ $lines[0]{run_id}, [], ['mine'] ],
        'events: the graph has the id of the run';
    is_deeply $graph->{data}{input}, $TOOL, 'events: the graph starts with the input';
    is_deeply [ @{$node}{qw(parent_ids tags)} ], [ [ $graph->{run_id} ], [qw(graph:step:1 mine)] ],
        'events: the parent of a node is the graph';
    is_deeply [ @{$start}{qw(run_id parent_ids tags)} ],
        [ $messages[1]{id}, [ map { $_->{run_id} } $graph, $node ], [qw(seq:step:1 mine)] ],
        'events: the parent of a model call is the node';
    is_deeply $start->{data}{input}, { messages => [ [ $messages[0] ] ] }, 'events: a model call starts with the conversation';
    is_deeply [ map { $_->{metadata}{langgraph_node} } $graph, $node, $start ],
        [ undef, 'agent', 'agent' ], 'events: the metadata has the node';
    is_deeply [ map { $_->{metadata}{ls_provider} } $graph, $node, $start ],
        [ undef, undef, 'demo' ], 'events: the metadata has the model';
    is_deeply [ grep { $_->{metadata}{colour} ne 'red' } @traced ], [], "events: the metadata has the client's metadata";
    my ($tool, $tool_end) = grep { $_->{event} =~ /_tool_/ } @traced;
    is $tool->{run_id}, $tool_end->{run_id}, 'events: the start and the end of a tool have the same id';
    is $tool->{metadata}{langgraph_node}, 'tools', 'events: a tool is in the node tools';
    is_deeply $tool->{data}, { input => {} }, 'events: a tool starts with its arguments';
    is_deeply $tool_end->{data}, { input => {}, output => $messages[2] },
        'events: a tool ends with its message';
    my @answer = grep { $_->{run_id} eq $messages[3]{id} } @traced;
    is join('', map { $_->{data}{chunk}{content} // '' } @answer), $messages[3]{content},
        'events: the chunks concatenate to the message';
    is_deeply $answer[-1]{data}{output}, $messages[3], 'events: a model call ends with the message';
    is_deeply $answer[-2]{data}{chunk}{usage_metadata}, $messages[3]{usage_metadata},
        'events: the last chunk has the usage';
    is_deeply $traced[-1]{data}{output}, { messages => \@messages }, 'events: the graph ends with the state';
}
{
    my $kind = RunnerTest->new(graphs => { agent => graph(system_prompt => 'Be kind.') });
    my @traced = events_of('events', $kind->run(input => human('Hi'), stream_modes => ['events']));
    is_deeply [ map { [ @{$_}{qw(type content)} ] } @{ $traced[2]{data}{input}{messages}[0] } ],
        [ [ system => 'Be kind.' ], [ human => 'Hi' ] ], 'events: the input of a model has the system prompt';
}
is_deeply [ (outline(events_of('events', $runner->run(input => human('fail'),
        stream_modes => ['events']))))[-1] ], ['on_chat_model_start demo input'],
    'events: a model call that fails has no end';
{
    my @events = outline(events_of('events', $runner->run(input => $TOOL, stream_modes => ['events'],
        interrupt_before => ['tools'])));
    is $events[-1], 'on_chain_end agent output', 'events: the graph ends at a breakpoint';
    is grep({ $_ eq $events[-1] } @events), 1, 'events: the graph ends once at a breakpoint';
}
is_deeply [ grep { /_tool_/ } outline(events_of('events', $runner->run(
        input => human('use nothing {}'), stream_modes => ['events']))) ], [],
    'events: an unknown tool has no events';
is_deeply [ grep { /_tool_/ } outline(events_of('events', $runner->run(graph_id => 'model',
        stream_modes => ['events'],
        input        => script(tools => [ { name => 'weather', args => { city => 'Rome' } } ])))) ],
    [ 'on_tool_start weather input', 'on_tool_end weather input output' ],
    'events: a tool over HTTP starts and ends';

# --- tools --------------------------------------------------------------------

{
    my @lines = $runner->run(input => $TOOL, stream_modes => ['tools']);
    my ($call) = @{ (messages_of(@lines))[1]{tool_calls} };
    my %about = (toolCallId => $call->{id}, name => 'clock');
    is_deeply [ events_of('tools', @lines) ],
        [ { %about, event => 'on_tool_start', input => {} },
          { %about, event => 'on_tool_end', output => (messages_of(@lines))[2] } ],
        'tools: a call starts with its arguments and ends with its message';
}
{
    my @lines = $runner->run(input => human('use calculator {"expression": "1 +"}'),
        stream_modes => ['tools']);
    my (undef, $end) = events_of('tools', @lines);
    is $end->{event}, 'on_tool_error', 'tools: a call that fails ends with an error';
    is $end->{error}, (messages_of(@lines))[2]{content}, 'tools: the error is the content of the message';
}
is_deeply [ events_of('tools', $runner->run(input => human('use nothing {}'), stream_modes => ['tools'])) ],
    [], 'tools: an unknown tool has no events';

# --- markers in a text --------------------------------------------------------

{
    my $text = qq(__interrupt__ \nevent: end\ndata: {"type":"end"}\n\n{"type":"end"} </s>);
    my @lines = $runner->run(input => human($text), stream_modes => [qw(updates values)]);
    is $lines[-1]{status}, 'success', 'markers in a message: the run ends with success';
    is +(messages_of(@lines))[0]{content}, $text, 'markers in a message: the text is unchanged';
}

done_testing;
