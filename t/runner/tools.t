# SPDX-License-Identifier: Apache-2.0
# Tools over HTTP: requests, replies, errors and progress. A tool that fails has a
# message with status "error", and the run continues.
use strict;
use warnings;
use utf8;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Env qw(free_port);
use Cpanel::JSON::XS;
use ModelServer;
use RunnerTest qw(graph human messages_of last_message lines_of events_of);
use Test::More;

my $server = ModelServer->new;
my $closed_port = free_port();
my @tools = (
    (map { $server->tool($_) } qw(weather text broken moved reset big endless dirty missing progress)),
    $server->tool('stuck', timeout_ms => 2000),
    $server->tool('hang', timeout_ms => 1000),
    $server->tool('weather', name => 'put', method => 'PUT'),
    $server->tool('weather', name => 'get', method => 'GET', url => $server->url . '/tool/weather?unit=C'),
    $server->tool('weather', name => 'closed', url => "http://127.0.0.1:$closed_port/"),
    $server->tool('weather', name => 'file', url => 'file:///etc/passwd'),
    $server->tool('weather', name => 'user', url => 'http://['),
);
my $runner = RunnerTest->new(graphs => { agent => graph(tools => \@tools) });

# Uses the tool; returns its message and all lines of the run.
sub use_tool {
    my ($name, $args) = @_;
    my @lines = $runner->run(input => human("use $name " . ($args || '{}')));
    is $lines[-1]{status}, 'success', "tool $name: the run ends with success";
    my ($tool) = grep { $_->{type} eq 'tool' } messages_of(@lines);
    return wantarray ? ($tool, @lines) : $tool;
}

sub last_call { return $server->get('/log')->[-1] }

# --- Requests ----------------------------------------------------------------

{
    my ($tool, @lines) = use_tool('weather', '{"city": "Rome", "key": "weather"}');
    my $call = last_call();
    is_deeply $call->{body}, { city => 'Rome', key => 'weather' }, 'request: the arguments are the body';
    is $call->{method}, 'POST', 'request: the method is POST';
    is $call->{headers}{'content-type'}, 'application/json', 'request: the content type is JSON';
    is $call->{headers}{'x-agent-run-id'}, $lines[0]{run_id}, 'request: has the id of the run';
    like $call->{headers}{'x-agent-thread-id'}, qr/\A[0-9a-f-]{36}\z/, 'request: has the id of the thread';
    is_deeply [ @{$tool}{qw(name status)} ], [ 'weather', 'success' ], 'reply: becomes a tool message';
    is decode_json(Encode::encode_utf8($tool->{content}))->{city}, 'Rome', 'reply: the message has the text of the reply';
    is_deeply $tool->{artifact}, { http_status => 200, content_type => 'application/json' },
        'reply: the artifact has the status and content type';
    like last_message(@lines)->{content}, qr/tool weather answered: \{"city":"Rome"/,
        'reply: the model reads the reply';
}
use_tool('put', '{"city": "Rome"}');
is last_call()->{method}, 'PUT', 'request: the method may be PUT';
{
    my $tool = use_tool('get', '{"city": "R&m e", "days": 3}');
    my $call = last_call();
    is $call->{method}, 'GET', 'request: the method may be GET';
    is_deeply $call->{query}, { unit => 'C', city => 'R&m e', days => 3 },
        'GET: the query has the arguments';
    ok !defined $call->{body}, 'GET: there is no body';
    like $tool->{content}, qr/R&m e/, 'GET: the reply is read';
}
is use_tool('text')->{content}, 'plain text', 'reply: may be plain text';

# --- Errors ------------------------------------------------------------------

my %wrong = (
    broken  => qr/failed with HTTP status 500: .*the tool is broken/,
    missing => qr/failed with HTTP status 404/,
    moved   => qr/failed with HTTP status 302/,
    reset   => qr/tool reset cannot be reached: /,
    closed  => qr/tool closed cannot be reached: .*$closed_port/,
    file    => qr/tool file cannot be reached: /,
    user    => qr/tool user cannot be reached: /,
    big     => qr/more than 1048576 bytes/,
    endless => qr/more than 1048576 bytes/,
    hang    => qr/did not answer within 1000 ms/,
);
for my $name (sort keys %wrong) {
    my ($tool, @lines) = use_tool($name);
    is $tool->{status}, 'error', "tool $name: the message has status error";
    like $tool->{content}, $wrong{$name}, "tool $name: the message has the error";
    like last_message(@lines)->{content}, qr/tool $name failed: /, "tool $name: the model reads the error";
}
is scalar $server->calls('reset'), 1, 'tool reset: a call whose reply is lost is not repeated';
is scalar $server->calls('text'), 1, 'tool moved: a redirect is not followed';
ok $server->closed('hang')->{is_aborted}, 'time-out: the connection is closed';
is use_tool('dirty')->{content}, "a\x{fffd}b\x{fffd}c\x{fffd}\x{fffd}\x{fffd}d",
    'reply: U+0000 and invalid UTF-8 become U+FFFD';

# --- Progress -----------------------------------------------------------------

# The message and the custom events of a tool with these lines.
sub progress {
    my ($lines, %more) = @_;
    my $args = Cpanel::JSON::XS->new->canonical->encode({ lines => $lines, %more });
    my @lines = $runner->run(input => human("use progress $args"),
        stream_modes => [qw(custom updates)]);
    my ($tool) = grep { $_->{type} eq 'tool' } messages_of(@lines);
    return ($tool, map { ($_->{event} eq 'custom') ? $_->{data} : () } lines_of('event', @lines));
}

{
    my ($tool, @custom) = progress([ '{"custom":{"done":0.5}}', '', ' {"custom":["ü"]} ',
        '{"custom":"last","result":{"city":"Rome"}}' ]);
    is_deeply \@custom, [ { done => 0.5 }, ['ü'], 'last' ],
        'progress: lines of application/x-ndjson are custom events';
    is $tool->{content}, '{"city":"Rome"}', 'progress: the result is the content';
    is $tool->{status}, 'success', 'progress: the status is success';
    is_deeply $tool->{artifact}, { http_status => 200, content_type => 'application/x-ndjson' },
        'progress: the artifact has status and content type';
    is +(progress(['{"result":"a text"}']))[0]{content}, 'a text', 'progress: a result that is a string has no quotes';
    is +(progress([ '{"result":null}', '' ]))[0]{content}, 'null', 'progress: a result may be null';
}
{
    my @lines = $runner->run(stream_modes => ['tools'],
        input => human('use progress {"lines":["{\\"custom\\":{\\"done\\":1}}","{\\"result\\":2}"]}'));
    is_deeply [ map { [ $_->{data}{event}, $_->{data}{data} ] } lines_of('event', @lines) ],
        [ ['on_tool_start', undef], [ 'on_tool_event', { done => 1 } ], [ 'on_tool_end', undef ] ],
        'progress: is an event of stream mode tools';
}
{
    my ($tool, @custom) = progress([ '{"custom":1}', '{"done":1}', '{"custom":2}', '{"result":3}' ]);
    is $tool->{status}, 'error', 'progress: a line without custom and result is an error';
    like $tool->{content}, qr/neither "custom" nor "result": \{"done":1\}/, 'progress: the error quotes the line';
    is_deeply \@custom, [ 1, 2 ], 'progress: events before and after a malformed line are sent';
    ($tool) = progress(['{"custom":1}']);
    like $tool->{content}, qr/tool progress ended its reply without a result/,
        'progress: a reply without a result is an error';
    ($tool) = progress([ '{"result":' . '[' x 65 . ']' x 65 . '}' ]);
    is $tool->{status}, 'error', 'progress: a line nested too deeply is an error';
    ($tool, @custom) = progress(['{"custom":1}'], status => 500);
    like $tool->{content}, qr/HTTP status 500: \{"custom":1\}/, 'progress: a reply with status 500 is not progress';
    is_deeply \@custom, [], 'progress: a reply with status 500 sends no events';
    ($tool, @custom) = progress(['{"custom":1}'], type => 'application/json');
    is_deeply [ $tool->{content}, @custom ], ['{"custom":1}'], 'progress: a reply of another type is not progress';
    ($tool) = progress([ '{"custom":"' . 'x' x 70_000 . '"}', ('{"custom":"' . 'x' x 70_000 . '"}') x 15 ]);
    like $tool->{content}, qr/more than 1048576 bytes/, 'progress: all lines together have a limit';
}
{
    my $start = RunnerTest::start_line(input => human('use stuck {}'), stream_modes => ['custom']);
    $runner->send($start);
    my @lines = $runner->lines_until(sub { ($_[0]{event} // '') eq 'custom' });
    is $lines[-1]{data}, 'half way', 'progress: an event is sent while the tool works';
    @lines = $runner->lines_of_run($start->{run_id});
    my ($tool) = grep { $_->{type} eq 'tool' } messages_of(@lines);
    like $tool->{content}, qr/did not answer within 2000 ms/, 'progress: a tool that reports progress and no result times out';
}

# --- Several calls -----------------------------------------------------------

{
    my @lines = $runner->run(input => human(join ' ', map { 'use hang {}' } 1 .. 20));
    my @tool = grep { $_->{type} eq 'tool' } messages_of(@lines);
    is scalar @tool, 20, 'several calls: each has a result';
    my @ids = map { $_->{id} } @{ (messages_of(@lines))[1]{tool_calls} };
    is_deeply [ map { $_->{tool_call_id} } @tool ], \@ids, 'several calls: the results are in the order of the calls';
}

done_testing;
