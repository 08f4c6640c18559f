# SPDX-License-Identifier: Apache-2.0
# The demo model: its answers, and the commands in a prompt. The built-in tools.
use strict;
use warnings;
use utf8;
use FindBin;
use lib $FindBin::Bin;
use RunnerTest qw(graph human messages_of last_message lines_of events_of continue_from);
use Test::More;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my $runner = RunnerTest->new(graphs => {
    agent => graph(),
    kind  => graph(system_prompt => 'Be very kind.'),
    plain => graph(tools => []) });

sub run { return $runner->run(@_) }

sub answer {
    my ($text, @fields) = @_;
    return last_message(run(input => human($text), @fields));
}

sub tools { return grep { $_->{type} eq 'tool' } messages_of(@_) }

my $hello = answer('Hello there');
like $hello->{content}, qr/demo model/, 'demo: the answer names the demo model';
like $hello->{content}, qr/"Hello there" \(2 words\)/, 'demo: the answer quotes the message';
is answer('Hello there')->{content}, $hello->{content}, 'demo: the same prompt has the same answer';
isnt answer('Hello you')->{content}, $hello->{content}, 'demo: another prompt has another answer';
isnt answer('Hello there', graph_id => 'kind')->{content}, $hello->{content},
    'demo: another system prompt has another answer';
like answer('x', graph_id => 'kind')->{content}, qr/"Be very kind\."/, 'demo: the answer quotes the system prompt';
unlike answer('x', graph_id => 'plain')->{content}, qr/use clock/, 'demo: the answer lists no tools when there are none';
like answer('')->{content}, qr/nothing yet/, 'demo: an empty prompt has an answer';
is_deeply [ @{ $hello->{response_metadata} }{qw(model_name model_provider stop_reason)} ],
    [qw(demo demo end_turn)], 'demo: response_metadata has model, provider and stop_reason';
{
    my @first = run(input => human('My name is Ann.'));
    my $second = last_message(run(continue_from(@first), input => human('Who am I?')));
    like $second->{content}, qr/number 2.*"My name is Ann\."/, 'demo: the answer quotes the previous message of the thread';
}

sub words { return scalar(() = shift =~ /\S+/g) }

{
    my $usage = $hello->{usage_metadata};
    is $usage->{input_tokens}, 2, 'usage: input tokens are the words of the prompt';
    is $usage->{output_tokens}, words($hello->{content}), 'usage: output tokens are the words of the answer';
    is answer('Hello there', graph_id => 'kind')->{usage_metadata}{input_tokens}, 5,
        'usage: input tokens include the system prompt';
}
{
    my @lines = run(input => human('Grüße aus Zürich'), stream_modes => ['messages-tuple']);
    my @chunks = map { $_->[0]{content} } events_of('messages', @lines);
    is join('', @chunks), last_message(@lines)->{content}, 'stream: the chunks concatenate to the answer';
    is pop @chunks, '', 'stream: the last chunk has no text';
    is scalar @chunks, last_message(@lines)->{usage_metadata}{output_tokens}, 'stream: there is a chunk for each output token';
    ok !(grep { words($_) != 1 } @chunks), 'stream: each chunk has one word';
}

# --- sleep -------------------------------------------------------------------

{
    my $began = clock_gettime(CLOCK_MONOTONIC);
    my @lines = run(input => human('Please sleep 400 now'), stream_modes => ['messages-tuple']);
    my $taken = clock_gettime(CLOCK_MONOTONIC) - $began;
    cmp_ok $taken, '>=', 0.4, 'sleep: 400 takes 400 ms';
    like last_message(@lines)->{content}, qr/400 ms/, 'sleep: the answer has the number';
    is $lines[-1]{status}, 'success', 'sleep: the run ends with success';
    my $start = RunnerTest::start_line(input => human('sleep 60000'),
        stream_modes => ['messages-tuple']);
    my $says_word = sub { $_[0]{type} eq 'event' };
    $runner->send($start);
    $runner->lines_until($says_word);
    $runner->send({ type => 'ping', id => 1 });
    $runner->lines_until(sub { $_[0]{type} eq 'pong' });
    $runner->lines_until($says_word);
    $runner->send({ type => 'cancel', run_id => $start->{run_id}, epoch => $start->{epoch} });
    @lines = $runner->lines_of_run($start->{run_id});
    is $lines[-1]{status}, 'interrupted', 'sleep: the words are distributed over the time';
    like answer('I want to sleep well')->{content}, qr/no thoughts/, 'sleep: without a number it is an ordinary word';
}

# --- use ---------------------------------------------------------------------

{
    my @lines = run(input => human('What time is it? use clock {}'));
    my ($tool) = tools(@lines);
    like $tool->{content}, qr/\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00\z/, 'clock: the result is a time in UTC';
    like last_message(@lines)->{content}, qr/clock answered: \Q$tool->{content}\E/,
        'use: the answer has the result';
}
{
    my @lines = run(input => human('use calculator {"expression": "(1 + 2) * 3"} and use clock {}'));
    is_deeply [ map { $_->{name} } tools(@lines) ], [qw(calculator clock)], 'use: several commands call several tools';
    is +(tools(@lines))[0]{content}, '9', 'use: a tool gets its arguments';
    is scalar @{ (messages_of(@lines))[1]{tool_calls} }, 2, 'use: several commands make calls in one message';
}
{
    my @lines = run(input => human('use clock {"a": "}{", "b": {"c": 1}} ok'));
    is_deeply +(messages_of(@lines))[1]{tool_calls}[0]{args}, { a => '}{', b => { c => 1 } },
        'use: braces in strings do not end the arguments';
    @lines = run(input => human('use nothing {}'));
    is +(tools(@lines))[0]{status}, 'error', 'use: an unknown tool has an error as its result';
    like last_message(@lines)->{content}, qr/tool nothing failed: There is no tool nothing/,
        'use: the model reads the error of an unknown tool';
    @lines = run(input => human('use clock {"a": '));
    my $asking = (messages_of(@lines))[1];
    is_deeply $asking->{tool_calls}, [], 'use: malformed arguments are not in tool_calls';
    is_deeply [ @{ $asking->{invalid_tool_calls}[0] }{qw(name args type)} ],
        [ 'clock', '{"a": ', 'invalid_tool_call' ], 'use: malformed arguments are in invalid_tool_calls';
    is +(tools(@lines))[0]{status}, 'error', 'use: malformed arguments have an error as their result';
    like +(tools(@lines))[0]{content}, qr/not a JSON object: \{"a": /, 'use: the error quotes malformed arguments';
    is $lines[-1]{status}, 'success', 'use: malformed arguments do not fail the run';
    my $deep = '{"a":' x 65 . '1' . '}' x 65;
    @lines = run(input => human("use clock $deep"));
    is +(tools(@lines))[0]{status}, 'error', 'use: arguments of 65 levels are refused';
    like answer('I use soap')->{content}, qr/no thoughts/, 'use: without braces it is an ordinary word';
}

# --- calculator --------------------------------------------------------------

my %sums = (
    '1+2*3' => '7', '(1+2)*3' => '9', '2^3^2' => '512', '-2^2' => '-4', '2^-1' => '0.5',
    '7 % 4' => '3', '-7 % 4' => '-3', '1/3' => '0.333333333333333', '1.5e3*2' => '3000',
    '0.1+0.2' => '0.3', '--1' => '1', '0*-1' => '0', ' 12 ' => '12');
my %wrong = (
    '1/0' => qr/division by zero/, '1%0' => qr/division by zero/, '' => qr/expected a number/,
    '1+' => qr/expected a number at character 3/, '(1' => qr/expected "\)"/,
    '1 2' => qr/expected an operator/, '2^0.5' => qr/whole number/, '1.5%1' => qr/whole numbers/,
    '0x10' => qr/operator/, 'inf' => qr/expected a number/, '9^999' => qr/not a number/,
    '1e999' => qr/not a number/, 'system(1)' => qr/expected a number/, '1.2.3' => qr/expected a number/,
    '(' x 70 => qr/too many parentheses/, '1' x 70 => qr/too long/,
    '1+' x 600 => qr/longer than 1000/);

sub calculate {
    my ($expression) = @_;
    return (tools(run(input => human(
        'use calculator {"expression": "' . $expression . '"}'))))[0];
}

is calculate($_)->{content}, $sums{$_}, "calculator: $_" for sort keys %sums;
for my $expression (sort keys %wrong) {
    my $result = calculate($expression);
    is $result->{status}, 'error', 'calculator refuses ' . substr $expression, 0, 20;
    like $result->{content}, $wrong{$expression}, "calculator: the error of ${\substr $expression, 0, 20}";
}
is +(tools(run(input => human('use calculator {}'))))[0]{status}, 'error',
    'calculator: the expression is required';

# --- fail --------------------------------------------------------------------

for my $text ('fail', ' FAIL now, please') {
    my @lines = run(input => human($text));
    is $lines[-1]{status}, 'error', "fail: '$text' ends the run with status error";
    like $lines[-1]{error}{message}, qr/demo model failed/, "fail: '$text' has an error message";
    is_deeply [ events_of('error', @lines) ], [ $lines[-1]{error} ], "fail: the stream of '$text' has the error";
    is_deeply [ map { $_->{type} } messages_of(@lines) ], ['human'], "fail: the input of '$text' stays in the state";
    is_deeply +(lines_of('checkpoint', @lines))[-1]{next}, ['agent'], "fail: after '$text' the next node is agent";
}
is answer('Why did it fail?')->{type}, 'ai', 'fail: inside a message it is an ordinary word';
is answer('failure')->{type}, 'ai', 'fail: as a part of a word it has no effect';
$runner->close_input;
$runner->finish;
like $runner->log_text, qr/^run [0-9a-f-]{36}: DemoError: The demo model failed/m,
    'log: an error is logged with the id of the run';

done_testing;
