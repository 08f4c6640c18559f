# SPDX-License-Identifier: Apache-2.0
# The formats of the two APIs: requests, and answers in pieces of any size.
use strict;
use warnings;
use utf8;
use FindBin;
use lib $FindBin::Bin;
use Cpanel::JSON::XS;
use ModelServer;
use RunnerTest qw(graph human script messages_of last_message lines_of events_of continue_from);
use Test::More;

my $server = ModelServer->new;
my @VENDORS = qw(anthropic openai);
my $PROMPT = 'You are a test. Grüße!';

sub graph_of {
    my ($vendor, %fields) = @_;
    return graph(model => $server->model($vendor), system_prompt => $PROMPT,
        tools => [ $server->tool('weather'), { name => 'calculator', kind => 'builtin' } ], %fields);
}

my $runner = RunnerTest->new(graphs => {
    (map { $_ => graph_of($_) } @VENDORS),
    (map { ("$_-bare" => graph_of($_, system_prompt => undef, tools => [],
        model => $server->model($_, max_tokens => 0))) } @VENDORS) });

sub run { return $runner->run(@_) }

# The last call that the server has received.
sub last_call { return $server->get('/log')->[-1] }

my $TEXT = qq(Grüße, 世界 \x{1F30D}\n"quoted" \\ and\ttabs \x{2028} end);
my $ARGS = { city => "Zürich \x{1F3D4}", deep => { list => [ 1, 2.5, undef ], quote => 'a"b\\c' } };

for my $vendor (@VENDORS) {
    my %to = (graph_id => $vendor);

    # --- Text ----------------------------------------------------------------

    for my $split (0, 1, 2, 3, 5, 7, 64) {
        my @lines = run(%to, input => script(text => $TEXT, split => $split),
            stream_modes => ['messages-tuple']);
        is last_message(@lines)->{content}, $TEXT, "$vendor: text in pieces of $split bytes: the message has it";
        is join('', map { $_->[0]{content} } events_of('messages', @lines)), $TEXT,
            "$vendor: text in pieces of $split bytes: the chunks concatenate to it";
    }
    for my $end ("\r\n", "\r") {
        my @lines = run(%to, input => script(text => $TEXT, split => 1, line_end => $end));
        is last_message(@lines)->{content}, $TEXT, "$vendor: lines may end with CRLF or CR";
    }
    my @lines = run(%to, input => human('How are you?'));
    is last_message(@lines)->{content}, 'You said: How are you?', "$vendor: the answer is that of the server";
    isnt last_message(run(%to, input => human('Hello')))->{content}, last_message(@lines)->{content},
        "$vendor: another prompt has another answer";

    # --- Fields --------------------------------------------------------------

    @lines = run(%to, input => script(text => 'one two three'));
    my $message = last_message(@lines);
    is $message->{response_metadata}{stop_reason}, 'end_turn', "$vendor: the message has stop_reason";
    is $message->{response_metadata}{stop_sequence}, undef, "$vendor: the message has stop_sequence";
    is $message->{response_metadata}{model_name}, "$vendor-test", "$vendor: the message has model_name";
    like $message->{response_metadata}{id}, qr/\A(?:msg_|chatcmpl-)/, "$vendor: the message has the id of the response";
    my $usage = $message->{usage_metadata};
    is $usage->{output_tokens}, 3, "$vendor: the message has output_tokens";
    cmp_ok $usage->{input_tokens}, '>', 5, "$vendor: the message has input_tokens";
    is $usage->{total_tokens}, $usage->{input_tokens} + 3, "$vendor: the message has total_tokens";

    # --- Tools ---------------------------------------------------------------

    for my $split (0, 1, 3, 7) {
        @lines = run(%to, input => script(text => 'Let me see.', split => $split,
            arguments_size => 1, tools => [
                { name => 'weather', args => $ARGS },
                { name => 'calculator', args => { expression => '6*7' } } ]));
        my (undef, $asking, @rest) = messages_of(@lines);
        is_deeply [ map { $_->{args} } @{ $asking->{tool_calls} } ],
            [ $ARGS, { expression => '6*7' } ], "$vendor: arguments in pieces of $split bytes: the calls have them";
        is $asking->{response_metadata}{stop_reason}, 'tool_use', "$vendor: arguments in pieces of $split bytes: stop_reason is tool_use";
        is_deeply [ map { $_->{type} } @rest ], [qw(tool tool ai)], "$vendor: arguments in pieces of $split bytes: the tools are called";
        is $rest[1]{content}, '42', "$vendor: arguments in pieces of $split bytes: a built-in tool reads them";
        is decode_json(Encode::encode_utf8($rest[0]{content}))->{city}, $ARGS->{city},
            "$vendor: arguments in pieces of $split bytes: a tool over HTTP reads them";
        is $rest[2]{content}, "The tools said: $rest[0]{content} | 42", "$vendor: arguments in pieces of $split bytes: the model reads the results";
    }
    @lines = run(%to, input => script(text => '', tools => [ { name => 'calculator',
        raw => '{"expression": "1+' } ]));
    my (undef, $asking, $tool, $answer) = messages_of(@lines);
    is_deeply $asking->{tool_calls}, [], "$vendor: malformed arguments are not in tool_calls";
    is_deeply [ @{ $asking->{invalid_tool_calls}[0] }{qw(name args type)} ],
        [ 'calculator', '{"expression": "1+', 'invalid_tool_call' ], "$vendor: malformed arguments are in invalid_tool_calls";
    is $tool->{status}, 'error', "$vendor: malformed arguments have an error as their result";
    is $tool->{tool_call_id}, $asking->{invalid_tool_calls}[0]{id}, "$vendor: the error has the id of the invalid call";
    like $answer->{content}, qr/not a JSON object: \{"expression": "1\+/,
        "$vendor: the model reads the error";
    for my $raw ('[]', '"x"', '5', 'null', '{"a":1e400}', '{"a":NaN}', '{"a":1}x', '{"a":1,"a":2}') {
        @lines = run(%to, input => script(tools => [ { name => 'calculator', raw => $raw } ]));
        is scalar @{ (messages_of(@lines))[1]{invalid_tool_calls} }, 1, "$vendor: $raw is not an object of arguments";
        is $lines[-1]{status}, 'success', "$vendor: $raw as arguments does not fail the run";
    }
    @lines = run(%to, input => script(tools => [ { name => 'calculator', raw => '' } ]));
    is_deeply +(messages_of(@lines))[1]{tool_calls}[0]{args}, {}, "$vendor: no arguments are {}";

    # --- Invalid text ---------------------------------------------------------

    @lines = run(%to, input => human('script {"text": "a\\u0000b \\ud800 c \\udc00 d BADBYTE e\\ud801"}'));
    is last_message(@lines)->{content}, "a\x{fffd}b \x{fffd} c \x{fffd} d \x{fffd} e\x{fffd}",
        "$vendor: text: U+0000, unpaired surrogates and invalid bytes become U+FFFD";
    @lines = run(%to, input => human('script {"tools": [{"name": "weather", "raw": '
        . '"{\\"city\\": \\"a\\\\u0000b\\\\ud800\\"}"}]}'));
    is +(messages_of(@lines))[1]{tool_calls}[0]{args}{city}, "a\x{fffd}b\x{fffd}",
        "$vendor: arguments: U+0000 and unpaired surrogates become U+FFFD";

    # --- Requests ------------------------------------------------------------

    run(%to, input => human('Hello'));
    my $call = last_call();
    is $call->{headers}{'content-type'}, 'application/json', "$vendor: the request has Content-Type";
    is $call->{headers}{'user-agent'}, 'agent-runner', "$vendor: the request has User-Agent";
    is $call->{headers}{expect}, undef, "$vendor: the request has no Expect";
    ok $call->{body}{stream}, "$vendor: the request has stream";
    is scalar @{ $call->{body}{tools} }, 2, "$vendor: the request has the tools";
    run(graph_id => "$vendor-bare", input => human('Hello'));
    ok !exists last_call()->{body}{tools}, "$vendor: without tools the request has no member tools";

    # --- Histories -----------------------------------------------------------

    @lines = run(%to, input => script(tools => [ { name => 'weather' }, { name => 'weather' } ]),
        interrupt_before => ['tools']);
    my @next = run(continue_from(@lines), %to, input => human('Never mind'));
    is $next[-1]{status}, 'success', "$vendor: a history with calls that were never executed is accepted";
    like encode_json(last_call()->{body}{messages}), qr/run was interrupted before this tool/,
        "$vendor: the request has an error for a call that was never executed";
    is scalar(grep { $_->{type} eq 'tool' } messages_of(@next)), 0, "$vendor: the state has no error for a call that was never executed";
    my $calls = [ map { { name => "we ather$_", args => { a => $_ }, id => "id|$_", type => 'tool_call' } }
        1, 2 ];
    @lines = run(%to, input => { messages => [
        { role => 'system', content => 'Be brief.' },
        { role => 'user', content => [ { type => 'text', text => 'Look: ' },
            { type => 'image_url', image_url => { url => 'data:image/png;base64,AAAA' } },
            { type => 'image', source => { type => 'url', url => 'http://x/y.png' } } ] },
        { role => 'assistant', content => '', tool_calls => $calls },
        { role => 'tool', tool_call_id => 'id|1', content => 'fine' },
        { role => 'tool', tool_call_id => 'id|2', content => 'broken', status => 'error' },
        { role => 'assistant', content => [ { type => 'text', text => 'So.' } ] },
        { role => 'user', content => 'And now?' } ] });
    is last_message(@lines)->{content}, 'You said: And now?', "$vendor: a long history is accepted";
}

# --- Anthropic only ----------------------------------------------------------

{
    my $body = (grep { $_->{path} eq '/v1/messages' } @{ $server->get('/log') })[-1]{body};
    is_deeply $body->{system}, "$PROMPT\n\nBe brief.", 'anthropic: system messages are one prompt';
    is_deeply [ map { $_->{role} } @{ $body->{messages} } ],
        [qw(user assistant user assistant user)], 'anthropic: roles alternate';
    is_deeply $body->{messages}[0]{content}, [ { type => 'text', text => 'Look: ' },
        { type => 'image', source => { type => 'base64', media_type => 'image/png', data => 'AAAA' } },
        { type => 'image', source => { type => 'url', url => 'http://x/y.png' } } ],
        'anthropic: images are sent in its form';
    is_deeply $body->{messages}[1]{content},
        [ map { { type => 'tool_use', id => "id_$_", name => "we_ather$_", input => { a => $_ } } } 1, 2 ],
        'anthropic: calls are sent with valid names and ids';
    is_deeply $body->{messages}[2]{content}, [
        { type => 'tool_result', tool_use_id => 'id_1', content => 'fine' },
        { type => 'tool_result', tool_use_id => 'id_2', content => 'broken', is_error => Cpanel::JSON::XS::true } ],
        'anthropic: results are sent in its form';
    run(graph_id => 'anthropic', input => human('Hello'));
    my $call = last_call();
    is $call->{headers}{'x-api-key'}, 'test-key-anthropic', 'anthropic: the key is in x-api-key';
    is $call->{headers}{'anthropic-version'}, '2023-06-01', 'anthropic: the request has anthropic-version';
    is $call->{body}{max_tokens}, 1000, 'anthropic: the request has max_tokens';
    is_deeply [ sort keys %{ $call->{body}{tools}[0] } ], [qw(description input_schema name)],
        'anthropic: a tool is sent in its form';
    run(graph_id => 'anthropic-bare', input => human('Hello'));
    is last_call()->{body}{max_tokens}, 4096, 'anthropic: max_tokens has a default';
    ok !exists last_call()->{body}{system}, 'anthropic: without a prompt there is no member system';
    my $message = last_message(run(graph_id => 'anthropic',
        input => script(text => 'a', stop_reason => 'stop_sequence', stop_sequence => '##')));
    is_deeply [ @{ $message->{response_metadata} }{qw(stop_reason stop_sequence)} ],
        [ 'stop_sequence', '##' ], 'anthropic: the message has stop_reason and stop_sequence';
    my $cached = last_message(run(graph_id => 'anthropic',
        input => script(text => 'a', quirks => { cache_read => 1000 })));
    cmp_ok $cached->{usage_metadata}{input_tokens}, '>', 1000, 'anthropic: cached input is counted';
    my @blocks = @{ (messages_of(run(graph_id => 'anthropic',
        input => script(text => 'So:', tools => [ { name => 'weather', id => 'toolu_1' } ]))))[1]{content} };
    is_deeply \@blocks, [ { type => 'text', text => 'So:' },
        { type => 'tool_use', id => 'toolu_1', name => 'weather', input => {} } ],
        'anthropic: content of a message with a call has blocks';
}

# --- OpenAI only -------------------------------------------------------------

{
    my @calls = grep { $_->{path} eq '/v1/chat/completions' } @{ $server->get('/log') };
    my $messages = $calls[-1]{body}{messages};
    is_deeply $messages->[0], { role => 'system', content => $PROMPT }, 'openai: the system prompt is the first message';
    is_deeply [ map { $_->{role} } @{$messages} ],
        [qw(system system user assistant tool tool assistant user)], 'openai: the messages keep their roles and order';
    is_deeply [ map { $_->{type} } @{ $messages->[2]{content} } ], [qw(text image_url image_url)],
        'openai: images are sent in its form';
    is $messages->[3]{content}, undef, 'openai: content is null with calls and without text';
    is_deeply $messages->[3]{tool_calls}[0], { id => 'id_1', type => 'function',
        function => { name => 'we_ather1', arguments => '{"a":1}' } }, 'openai: a call is sent with a valid name and id';
    is_deeply $messages->[4], { role => 'tool', tool_call_id => 'id_1', content => 'fine' },
        'openai: a result is sent in its form';
    run(graph_id => 'openai', input => human('Hello'));
    my $call = last_call();
    is $call->{headers}{authorization}, 'Bearer test-key-openai', 'openai: the key is in Authorization';
    is_deeply $call->{body}{stream_options}, { include_usage => Cpanel::JSON::XS::true }, 'openai: the request asks for usage';
    is $call->{body}{max_tokens}, 1000, 'openai: the limit for a compatible server is max_tokens';
    is_deeply [ sort keys %{ $call->{body}{tools}[0]{function} } ], [qw(description name parameters)],
        'openai: a tool is sent in its form';
    run(graph_id => 'openai-bare', input => human('Hello'));
    ok !exists last_call()->{body}{max_tokens}, 'openai: without a limit there is no member max_tokens';
    my %stop = (stop => 'end_turn', length => 'max_tokens', content_filter => 'refusal', odd => 'odd');
    for my $reason (sort keys %stop) {
        my $message = last_message(run(graph_id => 'openai',
            input => script(text => 'a', stop_reason => $reason)));
        is_deeply [ @{ $message->{response_metadata} }{qw(finish_reason stop_reason)} ],
            [ $reason, $stop{$reason} ], "openai: finish_reason $reason becomes stop_reason $stop{$reason}";
    }
    my $tools = [ { name => 'weather', args => { city => 'a' } }, { name => 'weather', args => { city => 'b' } } ];
    for my $quirk (qw(no_index no_done no_usage null_choices)) {
        my @lines = run(graph_id => 'openai',
            input => script(text => '', tools => $tools, quirks => { $quirk => 1 }));
        is_deeply [ map { $_->{args}{city} } @{ (messages_of(@lines))[1]{tool_calls} } ], [qw(a b)],
            "openai: calls are read from a server with the quirk $quirk";
        is $lines[-1]{status}, 'success', "openai: a run with the quirk $quirk ends with success";
    }
}

done_testing;
