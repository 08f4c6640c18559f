# SPDX-License-Identifier: Apache-2.0
# The demo model: what its answers depend on and how a prompt steers it.
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
like $hello->{content}, qr/demo model/, 'an answer says what it is';
like $hello->{content}, qr/"Hello there" \(2 words\)/, '... and what was said';
is answer('Hello there')->{content}, $hello->{content}, 'the same prompt has the same answer';
isnt answer('Hello you')->{content}, $hello->{content}, 'another prompt has another answer';
isnt answer('Hello there', graph_id => 'kind')->{content}, $hello->{content},
    'another system prompt has another answer';
like answer('x', graph_id => 'kind')->{content}, qr/"Be very kind\."/, '... that tells it';
unlike answer('x', graph_id => 'plain')->{content}, qr/use clock/, 'without tools it offers none';
like answer('')->{content}, qr/nothing yet/, 'an empty prompt has an answer';
is_deeply [ @{ $hello->{response_metadata} }{qw(model_name model_provider stop_reason)} ],
    [qw(demo demo end_turn)], 'response_metadata';
{
    my @first = run(input => human('My name is Ann.'));
    my $second = last_message(run(continue_from(@first), input => human('Who am I?')));
    like $second->{content}, qr/number 2.*"My name is Ann\."/, 'it remembers the thread';
}

sub words { return scalar(() = shift =~ /\S+/g) }

{
    my $usage = $hello->{usage_metadata};
    is $usage->{input_tokens}, 2, 'input tokens are the words of the prompt';
    is $usage->{output_tokens}, words($hello->{content}), 'output tokens are the words of the answer';
    is answer('Hello there', graph_id => 'kind')->{usage_metadata}{input_tokens}, 5,
        '... with those of the system prompt';
}
{
    my @lines = run(input => human('Grüße aus Zürich'), stream_modes => ['messages-tuple']);
    my @chunks = map { $_->[0]{content} } events_of('messages', @lines);
    is join('', @chunks), last_message(@lines)->{content}, 'the tokens make up the answer';
    is pop @chunks, '', '... the last chunk has no text';
    is scalar @chunks, last_message(@lines)->{usage_metadata}{output_tokens}, '... one word each';
    ok !(grep { words($_) != 1 } @chunks), '... none more';
}

# --- sleep -------------------------------------------------------------------

{
    my $began = clock_gettime(CLOCK_MONOTONIC);
    my @lines = run(input => human('Please sleep 400 now'), stream_modes => ['messages-tuple']);
    my $taken = clock_gettime(CLOCK_MONOTONIC) - $began;
    cmp_ok $taken, '>=', 0.4, 'sleep 400 takes 400 ms';
    like last_message(@lines)->{content}, qr/400 ms/, '... and says so';
    is $lines[-1]{status}, 'success', '... and ends well';
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
    is $lines[-1]{status}, 'interrupted', 'the words are spread over the time';
    like answer('I want to sleep well')->{content}, qr/no thoughts/, 'sleep without a number is a word';
}

# --- use ---------------------------------------------------------------------

{
    my @lines = run(input => human('What time is it? use clock {}'));
    my ($tool) = tools(@lines);
    like $tool->{content}, qr/\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00\z/, 'the clock tells the time';
    like last_message(@lines)->{content}, qr/clock answered: \Q$tool->{content}\E/,
        'the answer has the result';
}
{
    my @lines = run(input => human('use calculator {"expression": "(1 + 2) * 3"} and use clock {}'));
    is_deeply [ map { $_->{name} } tools(@lines) ], [qw(calculator clock)], 'several tools at once';
    is +(tools(@lines))[0]{content}, '9', 'arguments arrive';
    is scalar @{ (messages_of(@lines))[1]{tool_calls} }, 2, 'they are calls of one message';
}
{
    my @lines = run(input => human('use clock {"a": "}{", "b": {"c": 1}} ok'));
    is_deeply +(messages_of(@lines))[1]{tool_calls}[0]{args}, { a => '}{', b => { c => 1 } },
        'braces inside texts do not end the arguments';
    @lines = run(input => human('use nothing {}'));
    is +(tools(@lines))[0]{status}, 'error', 'a tool that does not exist answers with an error';
    like last_message(@lines)->{content}, qr/tool nothing failed: There is no tool nothing/,
        '... which the model reads';
    @lines = run(input => human('use clock {"a": '));
    my $asking = (messages_of(@lines))[1];
    is_deeply $asking->{tool_calls}, [], 'malformed arguments are no call';
    is_deeply [ @{ $asking->{invalid_tool_calls}[0] }{qw(name args type)} ],
        [ 'clock', '{"a": ', 'invalid_tool_call' ], '... but an invalid call';
    is +(tools(@lines))[0]{status}, 'error', '... answered with an error';
    like +(tools(@lines))[0]{content}, qr/not a JSON object: \{"a": /, '... that shows them';
    is $lines[-1]{status}, 'success', '... and the run goes on';
    my $deep = '{"a":' x 65 . '1' . '}' x 65;
    @lines = run(input => human("use clock $deep"));
    is +(tools(@lines))[0]{status}, 'error', 'arguments of 65 levels are refused';
    like answer('I use soap')->{content}, qr/no thoughts/, 'use without braces is a word';
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
    '0x10' => qr/operator/, 'inf' => qr/expected a number/, '9^999' => qr/no number/,
    '1e999' => qr/no number/, 'system(1)' => qr/expected a number/, '1.2.3' => qr/expected a number/,
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
    like $result->{content}, $wrong{$expression}, '... and says why';
}
is +(tools(run(input => human('use calculator {}'))))[0]{status}, 'error',
    'calculator without an expression';

# --- fail --------------------------------------------------------------------

for my $text ('fail', ' FAIL now, please') {
    my @lines = run(input => human($text));
    is $lines[-1]{status}, 'error', "'$text' ends the run in error";
    like $lines[-1]{error}{message}, qr/demo model failed/, '... which a person understands';
    is_deeply [ events_of('error', @lines) ], [ $lines[-1]{error} ], '... also in the stream';
    is_deeply [ map { $_->{type} } messages_of(@lines) ], ['human'], '... and the input stays';
    is_deeply +(lines_of('checkpoint', @lines))[-1]{next}, ['agent'], '... to go on from';
}
is answer('Why did it fail?')->{type}, 'ai', 'fail inside a message is a word';
is answer('failure')->{type}, 'ai', '... and so is a longer one';
$runner->close_input;
$runner->finish;
like $runner->log_text, qr/^run [0-9a-f-]{36}: DemoError: The demo model failed/m,
    'the log has the error with the id of the run';

done_testing;
