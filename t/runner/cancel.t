# SPDX-License-Identifier: Apache-2.0
# Cancelling: at once, with what there was kept.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use ModelServer;
use RunnerTest qw(graph human script messages_of last_message lines_of events_of
    continue_from start_line);
use Test::More;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my $server = ModelServer->new;
my $runner = RunnerTest->new(graphs => {
    agent => graph(tools => [ { name => 'clock', kind => 'builtin' }, $server->tool('hang') ]),
    map { $_ => graph(model => $server->model($_),
        tools => [ $server->tool('weather'), $server->tool('hang') ]) } qw(anthropic openai) });

# Starts a run, waits for the line that the condition accepts, if any, cancels;
# returns all its lines.
sub cancel_when {
    my ($condition, %fields) = @_;
    my $start = start_line(%fields);
    my $cancel = { type => 'cancel', run_id => $start->{run_id}, epoch => $start->{epoch} };
    $runner->send($start, $condition ? () : $cancel);
    my @lines = $condition ? $runner->lines_until($condition) : ();
    my $began = clock_gettime(CLOCK_MONOTONIC);
    $runner->send($cancel) if $condition;
    push @lines, $runner->lines_of_run($start->{run_id});
    # All that a run waits for here lasts half a minute or longer.
    cmp_ok clock_gettime(CLOCK_MONOTONIC) - $began, '<', 25, 'it ends at once';
    return @lines;
}

sub is_streaming {
    my ($line) = @_;
    return ($line->{event} // '') eq 'messages' && $line->{data}[0]{content} =~ /\S/;
}

# What all partial answers have in common.
sub keeps_partial {
    my ($title, @lines) = @_;
    is $lines[-1]{status}, 'interrupted', "$title: the run is interrupted";
    is $lines[-1]{error}, undef, '... which is no error';
    my $message = last_message(@lines);
    my $streamed = join '', map { $_->[0]{content} } events_of('messages', @lines);
    is $message->{type}, 'ai', '... the partial message is in the state';
    ok length $message->{content}, '... with text';
    is $message->{content}, $streamed, '... exactly the text that had streamed';
    is $message->{response_metadata}{stop_reason}, 'interrupted', '... stop_reason interrupted';
    ok $message->{response_metadata}{interrupted}, '... and says so';
    is_deeply $message->{tool_calls}, [], '... it asks for no tool';
    my ($last) = reverse lines_of('checkpoint', @lines);
    is_deeply $last->{next}, [], '... nothing is left to do';
    is_deeply $last->{metadata}{writes}, { agent => { messages => [$message] } },
        '... the node wrote it';
    return $message;
}

# --- The demo model ----------------------------------------------------------

{
    my @lines = cancel_when(\&is_streaming, input => human('sleep 60000'),
        stream_modes => [qw(values updates messages-tuple)]);
    my $message = keeps_partial('demo', @lines);
    is $message->{usage_metadata}{output_tokens}, scalar(() = $message->{content} =~ /\S+/g),
        'the words that were said are counted';
    my $run_id = $lines[0]{run_id};
    my %same = (continue_from(@lines), run_id => $run_id, epoch => 2,
        stream_modes => ['messages-tuple']);
    $same{checkpoint}{run_id} = $run_id;
    my @again = cancel_when(\&is_streaming, %same);
    is_deeply [ map { $_->{type} } messages_of(@again) ], [qw(human ai)],
        'the same run, when it goes on after a drain, asks the model again';
    isnt last_message(@again)->{id}, $message->{id}, '... and forgets the partial message';
    my @next = $runner->run(continue_from(@lines), input => human('Hello'));
    is_deeply [ map { $_->{type} } messages_of(@next) ], [qw(human ai human ai)],
        'the next run goes on after the partial data';
}
{
    my @lines = cancel_when(undef, input => human('sleep 60000'));
    is $lines[-1]{status}, 'interrupted', 'a run can be cancelled before it has begun';
    is_deeply [ map { $_->{type} } messages_of(@lines) ], ['human'], '... its input stays';
    is_deeply +(lines_of('checkpoint', @lines))[-1]{next}, ['agent'], '... and can be continued';
}
{
    my $start = start_line(input => human('sleep 200'));
    $runner->send($start, { type => 'cancel', run_id => $start->{run_id}, epoch => 7 });
    my @lines = $runner->lines_of_run($start->{run_id});
    is $lines[-1]{status}, 'success', 'a cancel of another epoch means nothing';
}
{
    my $start = start_line(input => { messages => [5] });
    $runner->send($start, { type => 'cancel', run_id => $start->{run_id}, epoch => 1 });
    my @lines = $runner->lines_of_run($start->{run_id});
    is $lines[-1]{status}, 'error', 'a run that cannot begin is an error, cancelled or not';
}

# --- Models over HTTP --------------------------------------------------------

for my $vendor (qw(anthropic openai)) {
    my @lines = cancel_when(\&is_streaming, graph_id => $vendor,
        input => script(key => "text-$vendor", text => 'one two three four', hang_after => 2),
        stream_modes => [qw(values updates messages-tuple)]);
    my $message = keeps_partial($vendor, @lines);
    like 'one two', qr/\A\Q$message->{content}\E/, 'the text is the beginning of the answer';
    ok $server->closed("text-$vendor")->{is_aborted}, "$vendor: the connection was dropped";
    my @next = $runner->run(continue_from(@lines), graph_id => $vendor,
        input => script(text => 'fine'));
    is last_message(@next)->{content}, 'fine', "$vendor: accepts the thread with a partial message";

    @lines = cancel_when(sub { ($_[0]{event} // '') eq 'values' }, graph_id => $vendor,
        input => script(key => "silent-$vendor", hang_after => 0));
    is_deeply [ map { $_->{type} } messages_of(@lines) ], ['human'],
        "$vendor: without text there is no message";
    is $lines[-1]{status}, 'interrupted', '... but an interrupted run';

    my $is_calling = sub {
        return ($_[0]{event} // '') eq 'messages' && @{ $_[0]{data}[0]{tool_call_chunks} };
    };
    @lines = cancel_when($is_calling, graph_id => $vendor, stream_modes => ['messages-tuple'],
        input => script(text => 'So:', hang_after => 4, tools => [ { name => 'weather',
            args => { city => 'Rome' } } ]));
    my $half = last_message(@lines);
    is $half->{content}, 'So:', "$vendor: the text before half a call is kept";
    is_deeply [ @{$half}{qw(tool_calls invalid_tool_calls)} ], [ [], [] ], '... the call is not';

    my $is_calling_tool = sub {
        return "@{ $_[0]{next} || [] }" eq 'tools' && $server->seen("tool-$vendor");
    };
    @lines = cancel_when($is_calling_tool, graph_id => $vendor,
        input => script(tools => [ { name => 'clock' }, { name => 'hang',
            args => { key => "tool-$vendor" } } ]));
    is_deeply [ map { $_->{type} } messages_of(@lines) ], [qw(human ai tool)],
        "$vendor: a tool that has answered is kept";
    is_deeply +(lines_of('checkpoint', @lines))[-1]{next}, ['tools'], '... the others are still to do';
    ok $server->closed("tool-$vendor")->{is_aborted}, '... the connection to the tool was dropped';
    @next = $runner->run(continue_from(@lines), graph_id => $vendor,
        input => script(text => 'fine'));
    is $next[-1]{status}, 'success', "$vendor: accepts a history with a call without a result";
}
{
    my @lines = cancel_when(sub { $_[0]{type} eq 'event' }, graph_id => 'openai',
        input => script(key => 'later', failures => [ { status => 429,
            headers => { 'retry-after' => '30' } } ]));
    is $lines[-1]{status}, 'interrupted', 'a run that waits for the next attempt is cancelled at once';
}

done_testing;
