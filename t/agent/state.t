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
my $thread = $client->create_thread->{thread_id};

my $empty = $client->get_state($thread);
is_deeply $empty->{values}, {}, 'a new thread has no values';
is_deeply $empty->{next},   [], 'nothing is next';
is_deeply $empty->{tasks},  [], 'nothing is pending';

my $run = $client->create_run($thread, 'use clock {}');
my $joined = $client->join_run($run);
my $state = $client->get_state($thread);

is_deeply $joined, $state->{values}, 'join answers the final values';
is_deeply $state->{next},  [], 'next is empty when nothing is left to execute';
is_deeply $state->{tasks}, [], 'tasks is empty when nothing is pending';
like $state->{created_at}, $TIME, 'created_at is ISO 8601';
like $state->{checkpoint_id}, $UUID, 'checkpoint_id identifies the snapshot';
like $state->{parent_checkpoint_id}, $UUID,
    'parent_checkpoint_id the one before';
isnt $state->{parent_checkpoint_id}, $state->{checkpoint_id},
    'which is another';
is_deeply $state->{checkpoint}, {
    thread_id => $thread, checkpoint_ns => '',
    checkpoint_id => $state->{checkpoint_id}, checkpoint_map => undef,
}, 'checkpoint is the same as an object';
is_deeply $state->{interrupts}, [], 'interrupts is empty';

my $metadata = $state->{metadata};
is $metadata->{step}, 3, 'metadata.step counts the steps';
is $metadata->{run_id}, $run->{run_id}, 'metadata.run_id';
is $metadata->{source}, 'loop', 'metadata.source';
is $metadata->{user_id}, '', 'metadata.user_id';
is $metadata->{graph_id}, 'agent', 'metadata.graph_id';
is $metadata->{thread_id}, $thread, 'metadata.thread_id';
ok length $metadata->{created_by}, 'metadata.created_by';
is $metadata->{assistant_id}, $run->{assistant_id}, 'metadata.assistant_id';
is_deeply [ keys %{ $metadata->{writes} } ], ['agent'],
    'metadata.writes is keyed by the node of the step';
my @messages = @{ $state->{values}{messages} };
is_deeply $metadata->{writes}{agent}{messages}, [ $messages[-1] ],
    'and holds the messages written in it';

is_deeply [ map { $_->{type} } @messages ], [qw(human ai tool ai)],
    'the messages are human, ai with a tool call, tool, ai';
my ($human, $call, $tool, $answer) = @messages;
my %ids = map { $_->{id} => 1 } @messages;
is scalar keys %ids, 4, 'every message has an id of its own';

is $human->{content}, 'use clock {}', 'the human message has its content';
for my $message (@messages) {
    my $type = $message->{type};
    is ref $message->{additional_kwargs}, 'HASH',
        "$type: additional_kwargs is an object";
    is ref $message->{response_metadata}, 'HASH',
        "$type: response_metadata is an object";
    ok exists $message->{name}, "$type: name is there";
}
ok Cpanel::JSON::XS::is_bool($_->{example}), "$_->{type}: example is a boolean"
    for $human, $call, $answer;

for my $ai ($call, $answer) {
    is ref $ai->{tool_calls}, 'ARRAY', 'ai: tool_calls is an array';
    is_deeply $ai->{invalid_tool_calls}, [], 'ai: invalid_tool_calls is empty';
    ok exists $ai->{response_metadata}{$_}, "ai: response_metadata.$_"
        for qw(stop_reason stop_sequence);
    my $usage = $ai->{usage_metadata};
    ok $usage->{input_tokens} > 0, 'ai: input_tokens is a number';
    ok $usage->{output_tokens} > 0, 'ai: output_tokens is a number';
    is $usage->{total_tokens}, $usage->{input_tokens} + $usage->{output_tokens},
        'ai: total_tokens is their sum';
}
my ($asked) = @{ $call->{tool_calls} };
is $asked->{name}, 'clock', 'the tool call names the tool';
is_deeply $asked->{args}, {}, 'has its arguments as an object';
is $asked->{type}, 'tool_call', 'has a type';
ok length $asked->{id}, 'and an id';

is $tool->{tool_call_id}, $asked->{id}, 'the tool message names the call';
is $tool->{name}, 'clock', 'and the tool';
is $tool->{status}, 'success', 'and how it went';
ok exists $tool->{artifact}, 'and its artifact';
like $tool->{content}, qr/\d{4}-\d\d-\d\d/, 'its content is the result';
my ($time) = $tool->{content} =~ /(\d\d:\d\d:\d\d)/;
like $answer->{content}, qr/\Q$time\E/, 'the answer uses the result'
    if $time;

my $at = $client->get("/threads/$thread/state/$state->{parent_checkpoint_id}");
is $at->{status}, 200, 'an earlier state can be read by its checkpoint';
is scalar @{ $at->{json}{values}{messages} }, 3, 'as it was then';
is_deeply $at->{json}{next}, ['agent'], 'with what was next then';

# Every snapshot back to the input.
my ($id, @steps, @sources) = ($state->{checkpoint_id});
while (defined $id) {
    my $snapshot = $client->get("/threads/$thread/state/$id")->{json};
    unshift @steps, $snapshot->{metadata}{step};
    unshift @sources, $snapshot->{metadata}{source};
    $id = $snapshot->{parent_checkpoint_id};
}
is_deeply \@steps, [ -1 .. 3 ], 'a run of three steps leaves five snapshots';
is_deeply \@sources, [qw(input loop loop loop loop)],
    'the first of them is the input';

my $record = $client->get("/threads/$thread")->{json};
is_deeply $record->{values}, $state->{values},
    'the thread record shows the same values';

is $client->get("/threads/$thread/state/01890000-0000-7000-8000-000000000000")
    ->{json}{code}, 'checkpoint_not_found', 'an unknown checkpoint is 404';
is $client->get('/threads/01890000-0000-7000-8000-000000000000/state')
    ->{json}{code}, 'thread_not_found', 'an unknown thread is 404';
is $client->get("/threads/$thread/state?subgraphs=maybe")->{status}, 422,
    'subgraphs must be a boolean';
is $client->get("/threads/$thread/state?subgraphs=true")->{status}, 200,
    'and may be given';

# A state goes on where it was.
$client->join_run($client->create_run($thread, 'and now'));
is scalar @{ $client->get_state($thread)->{values}{messages} }, 6,
    'a second run appends to the state';

done_testing;
