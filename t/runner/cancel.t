# SPDX-License-Identifier: Apache-2.0
# Cancel: a run ends at once, and its partial results are saved.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use ModelServer;
use RunnerTest qw(graph human script messages_of last_message lines_of events_of
    continue_from start_line);
use Test::More;

my $server = ModelServer->new;
my $runner = RunnerTest->new(graphs => {
    agent => graph(tools => [ { name => 'clock', kind => 'builtin' }, $server->tool('hang') ]),
    map { $_ => graph(model => $server->model($_),
        tools => [ $server->tool('weather'), $server->tool('hang') ]) } qw(anthropic openai) });

# Starts a run, waits for a line that meets the condition, if any, and cancels it;
# returns all its lines.
sub cancel_when {
    my ($condition, %fields) = @_;
    my $start = start_line(%fields);
    my $cancel = { type => 'cancel', run_id => $start->{run_id}, epoch => $start->{epoch} };
    $runner->send($start, $condition ? () : $cancel);
    my @lines = $condition ? $runner->lines_until($condition) : ();
    $runner->send($cancel) if $condition;
    return @lines, $runner->lines_of_run($start->{run_id});
}

sub is_streaming {
    my ($line) = @_;
    return ($line->{event} // '') eq 'messages' && $line->{data}[0]{content} =~ /\S/;
}

# Tests the lines of a run that was cancelled during an answer.
sub is_partial {
    my ($title, @lines) = @_;
    is $lines[-1]{status}, 'interrupted', "$title: the status is interrupted";
    is $lines[-1]{error}, undef, "$title: there is no error";
    my $message = last_message(@lines);
    my $streamed = join '', map { $_->[0]{content} } events_of('messages', @lines);
    is $message->{type}, 'ai', "$title: the state has the partial message";
    ok length $message->{content}, "$title: the partial message has text";
    is $message->{content}, $streamed, "$title: the text is the streamed text";
    is $message->{response_metadata}{stop_reason}, 'interrupted', "$title: stop_reason is interrupted";
    ok $message->{response_metadata}{interrupted}, "$title: response_metadata.interrupted is true";
    is_deeply $message->{tool_calls}, [], "$title: the partial message has no tool calls";
    my ($last) = reverse lines_of('checkpoint', @lines);
    is_deeply $last->{next}, [], "$title: no node follows";
    is_deeply $last->{metadata}{writes}, { agent => { messages => [$message] } },
        "$title: the checkpoint has the message as its write";
    return $message;
}

# --- The demo model ----------------------------------------------------------

{
    my @lines = cancel_when(\&is_streaming, input => human('sleep 60000'),
        stream_modes => [qw(values updates messages-tuple)]);
    my $message = is_partial('demo', @lines);
    is $message->{usage_metadata}{output_tokens}, scalar(() = $message->{content} =~ /\S+/g),
        'demo: usage counts the streamed words';
    my $run_id = $lines[0]{run_id};
    my %same = (continue_from(@lines), run_id => $run_id, epoch => 2,
        stream_modes => ['messages-tuple']);
    $same{checkpoint}{run_id} = $run_id;
    my @again = cancel_when(\&is_streaming, %same);
    is_deeply [ map { $_->{type} } messages_of(@again) ], [qw(human ai)],
        'restart: the model is called again after a drain during an answer';
    isnt last_message(@again)->{id}, $message->{id}, 'restart: the partial message is replaced';
    my @next = $runner->run(continue_from(@lines), input => human('Hello'));
    is_deeply [ map { $_->{type} } messages_of(@next) ], [qw(human ai human ai)],
        'cancel: the next run continues after a partial message';
}
{
    my @lines = cancel_when(undef, input => human('sleep 60000'));
    is $lines[-1]{status}, 'interrupted', 'cancel: a run may be cancelled before it begins';
    is_deeply [ map { $_->{type} } messages_of(@lines) ], ['human'], 'cancel: a run that has not begun has its input in the state';
    is_deeply +(lines_of('checkpoint', @lines))[-1]{next}, ['agent'], 'cancel: after a run that has not begun the next node is agent';
}
{
    my $start = start_line(input => human('sleep 200'));
    $runner->send($start, { type => 'cancel', run_id => $start->{run_id}, epoch => 7 });
    my @lines = $runner->lines_of_run($start->{run_id});
    is $lines[-1]{status}, 'success', 'cancel: another epoch is ignored';
}
{
    my $start = start_line(input => { messages => [5] });
    $runner->send($start, { type => 'cancel', run_id => $start->{run_id}, epoch => 1 });
    my @lines = $runner->lines_of_run($start->{run_id});
    is $lines[-1]{status}, 'error', 'cancel: a run with an invalid input ends with status error';
}

# --- stop ---------------------------------------------------------------------

sub stop_line {
    my ($start) = @_;
    return { type => 'stop', reason => 'drain', deadline_ms => 60_000, run_id => $start->{run_id},
        epoch => $start->{epoch} };
}

{
    # After a long line the runner executes runs before it reads the next one.
    my $start = start_line(graph_id => 'openai', stream_modes => [qw(updates events)],
        input => script(tools => [ { name => 'weather', args => { city => 'Rome' } } ]),
        context => { pad => 'x' x 300_000 });
    $runner->send($start, stop_line($start));
    my @lines = $runner->lines_of_run($start->{run_id});
    is $lines[-1]{status}, 'drained', 'stop: the run ends as drained';
    is $lines[-1]{error}, undef, 'stop: a run that stops has no error';
    my ($last) = reverse lines_of('checkpoint', @lines);
    cmp_ok scalar @{ $last->{next} }, '==', 1, 'stop: its last checkpoint has the next node';
    my %again = (continue_from(@lines), graph_id => 'openai', run_id => $start->{run_id}, epoch => 2, input => undef);
    $again{checkpoint}{run_id} = $start->{run_id};
    my @rest = $runner->run(%again);
    is $rest[-1]{status}, 'success', 'stop: the run continues from its last checkpoint';
    is_deeply [ map { $_->{type} } messages_of(@rest) ], [qw(human ai tool ai)],
        'stop: no node is executed twice';
}
{
    my $start = start_line(input => human('sleep 1000 and then some'));
    $runner->send($start);
    my @lines = $runner->lines_until(sub { "@{ $_[0]{next} || [] }" eq 'agent' });
    $runner->send(stop_line($start));
    push @lines, $runner->lines_of_run($start->{run_id});
    is last_message(@lines)->{response_metadata}{interrupted}, undef,
        'stop: the node that executes is completed';
    is $lines[-1]{status}, 'success', 'stop: a run whose last node executes ends with success';
}
{
    my $start = start_line(input => human('Hello'));
    $runner->send($start, stop_line($start));
    my @lines = $runner->lines_of_run($start->{run_id});
    is_deeply [ map { $_->{type} } @lines ], ['end'], 'stop: a run that has not begun sends nothing';
    is $lines[-1]{status}, 'drained', 'stop: a run that has not begun ends as drained';
}
{
    my $start = start_line(input => human('sleep 100'));
    $runner->send($start, { %{ stop_line($start) }, epoch => 7 });
    my @lines = $runner->lines_of_run($start->{run_id});
    is $lines[-1]{status}, 'success', 'stop: another epoch is ignored';
    $runner->send(stop_line($start));
    is +($runner->run(input => human('Hello')))[-1]{status}, 'success', 'stop: a run that has ended is ignored';
}

# --- Models over HTTP --------------------------------------------------------

for my $vendor (qw(anthropic openai)) {
    my @lines = cancel_when(\&is_streaming, graph_id => $vendor,
        input => script(key => "text-$vendor", text => 'one two three four', hang_after => 2),
        stream_modes => [qw(values updates messages-tuple)]);
    my $message = is_partial($vendor, @lines);
    like 'one two', qr/\A\Q$message->{content}\E/, "$vendor: the partial text is the beginning of the answer";
    ok $server->closed("text-$vendor")->{is_aborted}, "$vendor: the connection is closed";
    my @next = $runner->run(continue_from(@lines), graph_id => $vendor,
        input => script(text => 'fine'));
    is last_message(@next)->{content}, 'fine', "$vendor: accepts a thread with a partial message";

    @lines = cancel_when(sub { ($_[0]{event} // '') eq 'values' }, graph_id => $vendor,
        input => script(key => "silent-$vendor", hang_after => 0));
    is_deeply [ map { $_->{type} } messages_of(@lines) ], ['human'],
        "$vendor: without text there is no partial message";
    is $lines[-1]{status}, 'interrupted', "$vendor: without text the status is interrupted";

    my $is_calling = sub {
        return ($_[0]{event} // '') eq 'messages' && @{ $_[0]{data}[0]{tool_call_chunks} };
    };
    @lines = cancel_when($is_calling, graph_id => $vendor, stream_modes => ['messages-tuple'],
        input => script(text => 'So:', hang_after => 4, tools => [ { name => 'weather',
            args => { city => 'Rome' } } ]));
    my $half = last_message(@lines);
    is $half->{content}, 'So:', "$vendor: the text before a partial call is kept";
    is_deeply [ @{$half}{qw(tool_calls invalid_tool_calls)} ], [ [], [] ], "$vendor: a partial call is not in the message";

    my $is_calling_tool = sub {
        return "@{ $_[0]{next} || [] }" eq 'tools' && $server->seen("tool-$vendor");
    };
    @lines = cancel_when($is_calling_tool, graph_id => $vendor,
        input => script(tools => [ { name => 'clock' }, { name => 'hang',
            args => { key => "tool-$vendor" } } ]));
    is_deeply [ map { $_->{type} } messages_of(@lines) ], [qw(human ai tool)],
        "$vendor: the result of a tool that is done is kept";
    is_deeply +(lines_of('checkpoint', @lines))[-1]{next}, ['tools'], "$vendor: the node tools is next for the other calls";
    ok $server->closed("tool-$vendor")->{is_aborted}, "$vendor: the connection to the tool is closed";
    @next = $runner->run(continue_from(@lines), graph_id => $vendor,
        input => script(text => 'fine'));
    is $next[-1]{status}, 'success', "$vendor: accepts a thread with a call without a result";
}
{
    my @lines = cancel_when(sub { $_[0]{type} eq 'event' }, graph_id => 'openai',
        input => script(key => 'later', failures => [ { status => 429,
            headers => { 'retry-after' => '30' } } ]));
    is $lines[-1]{status}, 'interrupted', 'cancel: a run that waits for a retry ends at once';
}

done_testing;
