# SPDX-License-Identifier: Apache-2.0
# Messages: the forms that clients send, the fields in the state, the reducer.
use strict;
use warnings;
use utf8;
use FindBin;
use lib $FindBin::Bin;
use Cpanel::JSON::XS;
use RunnerTest qw(graph human messages_of last_message run_graph lines_of);
use Test::More;

my $runner = RunnerTest->new(graphs => { agent => graph() });

# The messages of the first state with the input.
sub read_input {
    my ($messages, @fields) = @_;
    my @lines = $runner->run(input => { messages => $messages }, @fields);
    my @checkpoints = lines_of('checkpoint', @lines);
    return $checkpoints[1] ? @{ $checkpoints[1]{values}{messages} } : $lines[-1]{error};
}

my @COMMON = qw(additional_kwargs content example id name response_metadata type);
my %KEYS = (
    human  => [@COMMON],
    system => [@COMMON],
    ai     => [ sort @COMMON, qw(tool_calls invalid_tool_calls usage_metadata) ],
    tool   => [ sort @COMMON, qw(tool_call_id artifact status) ]);

sub has_all_fields {
    my ($message, $title) = @_;
    is_deeply [ sort keys %{$message} ], $KEYS{ $message->{type} }, "$title: the message has every field";
    like $message->{id}, qr/\S/, "$title: the message has an id";
    ok Cpanel::JSON::XS::is_bool($message->{example}), "$title: example is a boolean";
    is ref $message->{$_}, 'HASH', "$title: $_ is an object"
        for grep { exists $message->{$_} }
            qw(additional_kwargs response_metadata usage_metadata artifact);
    is ref $message->{$_}, 'ARRAY', "$title: $_ is an array"
        for grep { exists $message->{$_} } qw(tool_calls invalid_tool_calls);
    return;
}

# --- Forms -------------------------------------------------------------------

my %types = (user => 'human', human => 'human', ai => 'ai', assistant => 'ai',
    system => 'system', developer => 'system');
for my $given (sort keys %types) {
    for my $member (qw(role type)) {
        my ($message) = read_input([ { $member => $given, content => 'Grüße' } ]);
        is $message->{type}, $types{$given}, "$member $given: the type is $types{$given}";
        is $message->{content}, 'Grüße', "$member $given: the content is kept";
        has_all_fields($message, "$member $given");
    }
}
{
    my ($message) = read_input(
        [ { role => 'tool', content => 'rain', tool_call_id => 'c1', name => 'weather' } ]);
    has_all_fields($message, 'tool');
    is_deeply [ @{$message}{qw(tool_call_id name status artifact)} ],
        [ 'c1', 'weather', 'success', {} ], 'tool: has tool_call_id, name, status and artifact';
    ($message) = read_input([ { role => 'tool', content => '', tool_call_id => 'c1',
        status => 'error', artifact => { a => 1 } } ]);
    is_deeply [ @{$message}{qw(status artifact)} ], [ 'error', { a => 1 } ],
        'tool: status and artifact are kept';
}
for my $plain ('Hello', [ 'Hello', { type => 'human', content => 'you' } ]) {
    my @messages = read_input($plain);
    is $messages[0]{content}, 'Hello', 'messages: a plain string is a human message';
}
is scalar read_input({ role => 'user', content => 'Hello' }), 1, 'messages: a single message needs no array';
{
    my ($message) = read_input([ { lc => 1, type => 'constructor',
        id     => [ 'langchain_core', 'messages', 'AIMessage' ],
        kwargs => { content => 'Hi', id => 'm1', tool_calls => [
            { name => 'clock', args => {}, id => 'c1', type => 'tool_call' } ] } } ]);
    is_deeply [ @{$message}{qw(type content id)} ], [ 'ai', 'Hi', 'm1' ],
        'messages: a serialised message is read';
    is $message->{tool_calls}[0]{name}, 'clock', 'messages: a serialised message keeps its calls';
}
{
    my @blocks = ({ type => 'text', text => 'a' }, { type => 'image', source => { url => 'x' } });
    my ($message) = read_input([ { role => 'user', content => [ 'first', @blocks ] } ]);
    is_deeply $message->{content}, [ { type => 'text', text => 'first' }, @blocks ],
        'content: blocks are kept, a string among them becomes a block';
    ($message) = read_input([ { role => 'assistant', content => undef } ]);
    is $message->{content}, '', 'content: null is an empty string';
}
{
    my ($message) = read_input([ { role => 'assistant', content => 'x', tool_calls => [
        { id => 'c1', type => 'function', function => { name => 'clock', arguments => '{"a":1}' } },
        { id => 'c2', type => 'function', function => { name => 'clock', arguments => '{"a"' } } ] } ]);
    is_deeply $message->{tool_calls},
        [ { name => 'clock', args => { a => 1 }, id => 'c1', type => 'tool_call' } ],
        "calls: OpenAI's form is read";
    is_deeply [ @{ $message->{invalid_tool_calls}[0] }{qw(name args id type)} ],
        [ 'clock', '{"a"', 'c2', 'invalid_tool_call' ], "calls: malformed arguments in OpenAI's form are an invalid call";
}
{
    my ($message) = read_input([ { role => 'user', content => 'x', id => 'm1', name => 'Ann',
        example => Cpanel::JSON::XS::true, additional_kwargs => { a => 1 }, colour => 'red',
        response_metadata => { b => 2 } } ]);
    is_deeply [ @{$message}{qw(id name)} ], [ 'm1', 'Ann' ], 'fields: id and name are kept';
    ok $message->{example}, 'fields: example is kept';
    is_deeply $message->{additional_kwargs}, { a => 1, colour => 'red' },
        'fields: unknown members are moved to additional_kwargs';
    is_deeply $message->{response_metadata}, { b => 2 }, 'fields: response_metadata is kept';
}

# --- Refusals ----------------------------------------------------------------

my @refusals = (
    [ [5], qr{messages/0: a message is} ],
    [ [ { content => 'x' } ], qr{messages/0/role: expected .* not nothing} ],
    [ [ 'fine', { role => 'martian', content => 'x' } ], qr{messages/1/role: .*"martian"} ],
    [ [ { role => 'user', content => 5 } ], qr{messages/0/content: expected a string} ],
    [ [ { role => 'user', content => [ {} ] } ], qr{messages/0/content/0: a content block} ],
    [ [ { role => 'tool', content => 'x' } ], qr{messages/0/tool_call_id} ],
    [ [ { role => 'ai', content => 'x', tool_calls => [ { args => {} } ] } ],
        qr{messages/0/tool_calls} ],
    [ [ { role => 'ai', content => 'x', tool_calls => [ { name => 'a', args => 5 } ] } ],
        qr{messages/0/tool_calls} ],
    [ [ { type => 'remove' } ], qr{messages/0/id} ],
    [ [ { type => 'remove', id => 'nobody' } ], qr{no message with the id "nobody"} ],
);
for my $case (@refusals) {
    my ($given, $reason) = @{$case};
    my @lines = $runner->run(input => { messages => $given });
    is $lines[-1]{status}, 'error', encode_json($given) . ' is refused: status error';
    is $lines[-1]{error}{error}, 'InvalidUpdateError', 'invalid messages: the error is InvalidUpdateError';
    like $lines[-1]{error}{message}, $reason, 'invalid messages: the error has the path';
    is scalar lines_of('checkpoint', @lines), 0, 'invalid messages: no checkpoint is sent';
}
for my $input (5, 'Hello', [], Cpanel::JSON::XS::true) {
    my @lines = $runner->run(input => $input);
    like $lines[-1]{error}{message}, qr/input of graph agent is an object/,
        encode_json([$input]) . ' is not a valid input';
}
{
    my $deep = 'x';
    $deep = [$deep] for 1 .. 111;
    my @lines = $runner->run(input => { other => $deep });
    like $lines[-1]{error}{message}, qr/deeper than 110 levels/, 'input: more than 110 levels are refused';
    $deep = $deep->[0][0];
    @lines = $runner->run(input => { other => $deep }, stream_modes => ['debug']);
    is $lines[-1]{status}, 'success', 'input: 109 levels are accepted';
}

# --- The reducer -------------------------------------------------------------

sub state { return (values => { messages => [@_] }) }

my @old = map { { type => 'human', content => $_, id => $_ } } qw(a b c);
is_deeply [ map { $_->{content} } read_input([ { role => 'user', content => 'd' } ], state(@old)) ],
    [qw(a b c d)], 'reducer: messages are appended';
is_deeply [ map { $_->{content} } read_input(
    [ { role => 'user', content => 'B', id => 'b' }, 'd' ], state(@old)) ],
    [qw(a B c d)], 'reducer: a message with a known id replaces the other';
is_deeply [ map { $_->{content} } read_input(
    [ { type => 'remove', id => 'a' }, { type => 'remove', id => 'c' } ], state(@old)) ],
    ['b'], 'reducer: remove removes messages';
is_deeply [ map { $_->{content} } read_input(
    [ 'x', { type => 'remove', id => '__remove_all__' }, 'y' ], state(@old)) ],
    ['y'], 'reducer: __remove_all__ removes all before it';
is_deeply [ map { $_->{content} } read_input(
    [ { type => 'remove', id => 'b' }, { role => 'user', content => 'B', id => 'b' } ],
    state(@old)) ],
    [qw(a B c)], 'reducer: a removed and added message keeps its position';
is_deeply [ map { $_->{content} } read_input(
    [ { role => 'user', content => '1', id => 'x' }, { role => 'user', content => '2', id => 'x' } ]) ],
    ['2'], 'reducer: of two new messages with one id the last is kept';
{
    my ($message) = read_input([], values => { messages => [ { role => 'user', content => 'old' } ] });
    has_all_fields($message, 'a message of another graph');
    my @lines = $runner->run(input => human('x'), values => { messages => 'text' });
    like $lines[-1]{error}{message}, qr/not a list/, 'state: messages that are not a list are an error';
    @lines = $runner->run(input => human('x'), values => { other => { a => 1 } });
    is_deeply((lines_of('checkpoint', @lines))[-1]{values}{other}, { a => 1 },
        'state: other channels are kept');
}
{
    my @ids = map { $_->{id} } read_input([ 'a', 'a' ]);
    isnt $ids[0], $ids[1], 'messages: each one without an id gets another id';
}

# --- A run -------------------------------------------------------------------

{
    my @lines = $runner->run(input => human('use clock {}'));
    my @messages = messages_of(@lines);
    is_deeply [ map { $_->{type} } @messages ], [qw(human ai tool ai)], 'run with a tool: the state has human, ai, tool and ai messages';
    has_all_fields($_, "run: $_->{type}") for @messages;
    my ($human, $asking, $tool, $answer) = @messages;
    is_deeply [ map { $_->{type} } @{ $asking->{content} } ], [qw(text tool_use)],
        'run with a tool: content of a message with a call has blocks';
    my $call = $asking->{tool_calls}[0];
    is_deeply [ sort keys %{$call} ], [qw(args id name type)], 'run with a tool: a call has name, args, id and type';
    is $asking->{content}[1]{id}, $call->{id}, 'run with a tool: the block and the call have the same id';
    is $tool->{tool_call_id}, $call->{id}, 'run with a tool: the tool message has the id of the call';
    is_deeply [ @{$tool}{qw(name status)} ], [ 'clock', 'success' ], 'run with a tool: the tool message has name and status';
    is $asking->{response_metadata}{stop_reason}, 'tool_use', 'run with a tool: stop_reason is tool_use';
    is $answer->{response_metadata}{stop_reason}, 'end_turn', 'run with a tool: stop_reason of the last answer is end_turn';
    ok exists $answer->{response_metadata}{stop_sequence}, 'run with a tool: stop_sequence is present';
    my $usage = $answer->{usage_metadata};
    is_deeply [ sort keys %{$usage} ], [qw(input_tokens output_tokens total_tokens)],
        'usage_metadata has three counts';
    is $usage->{total_tokens}, $usage->{input_tokens} + $usage->{output_tokens}, 'usage_metadata: the total is the sum';
    is scalar keys %{ { map { $_->{id} => 1 } @messages } }, 4, 'run with a tool: all ids differ';
}

done_testing;
