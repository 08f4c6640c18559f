# SPDX-License-Identifier: Apache-2.0
# GET /threads/{thread_id}/state: the state and its messages, field by field.
use strict;
use warnings;
use AgentTest::Client;
use Cpanel::JSON::XS;
use Test::More;

my $client = AgentTest::Client->new;
my $TIME = qr/\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00\z/;
my $UUID = qr/\A[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\z/;
my $thread = $client->new_thread;

my $empty = $client->get_state($thread);
is_deeply $empty->{values}, {}, 'state: a new thread has empty values';
is_deeply $empty->{next},   [], 'state: a new thread has an empty next';
is_deeply $empty->{tasks},  [], 'state: a new thread has no tasks';

my $run = $client->create_run($thread, 'use clock {}');
my $joined = $client->join_run($run);
my $state = $client->get_state($thread);

is_deeply $joined, $state->{values}, 'state: values are what join returns';
is_deeply $state->{next},  [], 'state: next is empty after a run';
is_deeply $state->{tasks}, [], 'state: tasks is empty after a run';
like $state->{created_at}, $TIME, 'state: created_at is ISO 8601';
like $state->{checkpoint_id}, $UUID, 'state: checkpoint_id is a UUID';
like $state->{parent_checkpoint_id}, $UUID,
    'state: parent_checkpoint_id is a UUID';
isnt $state->{parent_checkpoint_id}, $state->{checkpoint_id},
    'state: parent_checkpoint_id differs from checkpoint_id';
is_deeply $state->{checkpoint}, {
    thread_id => $thread, checkpoint_ns => '',
    checkpoint_id => $state->{checkpoint_id}, checkpoint_map => undef,
}, 'state: checkpoint names thread and checkpoint';
is_deeply $state->{interrupts}, [], 'state: interrupts is empty after a run';

my $metadata = $state->{metadata};
is $metadata->{step}, 3, 'state: metadata.step counts the steps';
is $metadata->{run_id}, $run->{run_id}, 'state: metadata.run_id is the run';
is $metadata->{source}, 'loop', 'state: metadata.source is loop';
is $metadata->{user_id}, '', 'state: metadata.user_id is empty without x-user-id';
is $metadata->{graph_id}, 'agent', 'state: metadata.graph_id is the graph';
is $metadata->{thread_id}, $thread, 'state: metadata.thread_id is the thread';
ok length $metadata->{created_by}, 'state: metadata.created_by is set';
is $metadata->{assistant_id}, $run->{assistant_id}, 'state: metadata.assistant_id is the assistant';
is_deeply [ keys %{ $metadata->{writes} } ], ['agent'],
    'state: metadata.writes is keyed by the node of the step';
my @messages = @{ $state->{values}{messages} };
is_deeply $metadata->{writes}{agent}{messages}, [ $messages[-1] ],
    'state: metadata.writes has the messages of the step';

is_deeply [ map { $_->{type} } @messages ], [qw(human ai tool ai)],
    'state: a tool call gives human, ai, tool and ai messages';
my ($human, $call, $tool, $answer) = @messages;
my %ids = map { $_->{id} => 1 } @messages;
is scalar keys %ids, 4, 'messages: each message has an id';

is $human->{content}, 'use clock {}', 'messages: human: content is the text of the input';
for my $message (@messages) {
    my $type = $message->{type};
    is ref $message->{additional_kwargs}, 'HASH',
        "messages: $type: additional_kwargs is an object";
    is ref $message->{response_metadata}, 'HASH',
        "messages: $type: response_metadata is an object";
    ok exists $message->{name}, "messages: $type: name is present";
}
ok Cpanel::JSON::XS::is_bool($_->{example}), "messages: $_->{type}: example is a boolean"
    for $human, $call, $answer;

for my $ai ($call, $answer) {
    is ref $ai->{tool_calls}, 'ARRAY', 'messages: ai: tool_calls is an array';
    is_deeply $ai->{invalid_tool_calls}, [], 'messages: ai: invalid_tool_calls is empty';
    ok exists $ai->{response_metadata}{$_}, "messages: ai: response_metadata.$_ is present"
        for qw(stop_reason stop_sequence);
    my $usage = $ai->{usage_metadata};
    ok $usage->{input_tokens} > 0, 'messages: ai: usage_metadata.input_tokens is positive';
    ok $usage->{output_tokens} > 0, 'messages: ai: usage_metadata.output_tokens is positive';
    is $usage->{total_tokens}, $usage->{input_tokens} + $usage->{output_tokens},
        'messages: ai: usage_metadata.total_tokens is the sum';
}
my ($asked) = @{ $call->{tool_calls} };
is $asked->{name}, 'clock', 'messages: tool call: name is the tool';
is_deeply $asked->{args}, {}, 'messages: tool call: args is an object';
is $asked->{type}, 'tool_call', 'messages: tool call: type is tool_call';
ok length $asked->{id}, 'messages: tool call: id is set';

is $tool->{tool_call_id}, $asked->{id}, 'messages: tool: tool_call_id is the id of the call';
is $tool->{name}, 'clock', 'messages: tool: name is the tool';
is $tool->{status}, 'success', 'messages: tool: status is success';
ok exists $tool->{artifact}, 'messages: tool: artifact is present';
like $tool->{content}, qr/\d{4}-\d\d-\d\d/, 'messages: tool: content is the result';
my ($time) = $tool->{content} =~ /(\d\d:\d\d:\d\d)/ or die "no time: $tool->{content}\n";
like $answer->{content}, qr/\Q$time\E/, 'messages: the answer contains the result of the tool';

my $at = $client->get("/threads/$thread/state/$state->{parent_checkpoint_id}");
is $at->{status}, 200, 'state at a checkpoint: an earlier checkpoint is 200';
is scalar @{ $at->{json}{values}{messages} }, 3, 'state at a checkpoint: values are those of that step';
is_deeply $at->{json}{next}, ['agent'], 'state at a checkpoint: next is that of that step';

# All checkpoints back to the input.
my ($id, @steps, @sources) = ($state->{checkpoint_id});
while (defined $id) {
    my $snapshot = $client->get("/threads/$thread/state/$id")->{json};
    unshift @steps, $snapshot->{metadata}{step};
    unshift @sources, $snapshot->{metadata}{source};
    $id = $snapshot->{parent_checkpoint_id};
}
is_deeply \@steps, [ -1 .. 3 ], 'state at a checkpoint: a run of three steps has five checkpoints';
is_deeply \@sources, [qw(input loop loop loop loop)],
    'state at a checkpoint: the first checkpoint is the input';

my $record = $client->get("/threads/$thread")->{json};
is_deeply $record->{values}, $state->{values},
    'get thread: values are those of the state';

is $client->get("/threads/$thread/state/01890000-0000-7000-8000-000000000000")
    ->{json}{code}, 'checkpoint_not_found', 'state at a checkpoint: an unknown checkpoint is checkpoint_not_found';
is $client->get('/threads/01890000-0000-7000-8000-000000000000/state')
    ->{json}{code}, 'thread_not_found', 'state: an unknown thread is thread_not_found';
is $client->get("/threads/$thread/state?subgraphs=maybe")->{status}, 422,
    'state: subgraphs must be a boolean';
is $client->get("/threads/$thread/state?subgraphs=true")->{status}, 200,
    'state: subgraphs=true is accepted';

$client->join_run($client->create_run($thread, 'and now'));
is scalar @{ $client->get_state($thread)->{values}{messages} }, 6,
    'state: a second run appends its messages';

done_testing;
