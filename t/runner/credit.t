# SPDX-License-Identifier: Apache-2.0
# Flow control: a run requests credit before a long line and after each 256 KiB;
# other runs continue.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Cost;
use Cpanel::JSON::XS;
use HostileServer;
use ModelServer;
use RunnerTest qw(graph human script start_line lines_of messages_of events_of);
use Test::More;

my %graphs = (agent => graph());

# Starts a run with a state of 200 KB; returns its runner and its first `want`.
sub start_large {
    my ($text) = @_;
    my $runner = RunnerTest->new(graphs => \%graphs);
    $runner->withhold_credit;
    my @messages = map { { role => 'user', content => 'x' x 1000 } } 1 .. 200;
    my $start = start_line(input => { messages => [ @messages, { role => 'user', content => $text } ] });
    $runner->send($start);
    my $want = $runner->expect('want');
    is $want->{run_id}, $start->{run_id}, 'want: a run requests credit before its first long line';
    return ($runner, $want);
}

# Grants credit whenever the run requests it; returns the number of requests and
# the other lines of the run, up to its end.
sub take_rest {
    my ($runner, $want) = @_;
    my ($requests, @lines) = (1);
    $runner->give_credit($want);
    while (my $line = $runner->line) {
        if ($line->{type} eq 'want') {
            $requests++;
            $runner->give_credit($line);
            next;
        }
        push @lines, $line;
        return ($requests, @lines) if $line->{type} eq 'end';
    }
    die "the runner ended too early\n";
}

{
    my ($runner, $want) = start_large('Hello');
    for (1 .. 3) {
        my @lines = $runner->run(input => human('Hello'));
        is $lines[-1]{status}, 'success', 'want: a run with short lines continues while another one waits';
        is scalar(grep { $_->{type} eq 'want' } @lines), 0, 'want: short lines need no credit';
    }
    $runner->send({ type => 'go', run_id => $want->{run_id}, epoch => 2 }, { type => 'ping', id => 1 });
    is $runner->expect('pong')->{id}, 1, 'go: another epoch is ignored';
    my ($requests, @lines) = take_rest($runner, $want);
    is $requests, 2, 'want: credit is requested for each long line';
    is $lines[-1]{status}, 'success', 'want: a run with long lines ends with success';
    is join(' ', map { $_->{type} eq 'event' ? $_->{event} : $_->{type} } @lines),
        'checkpoint checkpoint values checkpoint values end', 'go: the lines of a run keep their order';
    is scalar(messages_of(@lines)), 202, 'go: the state has all messages';
    $runner->close_input;
    is $runner->finish, 0, 'end of file: a runner whose long lines waited for credit exits with 0';
}

{
    my ($runner, $want) = start_large('sleep 60000');
    $runner->send({ type => 'cancel', run_id => $want->{run_id}, epoch => 1 }, { type => 'drain' });
    my (undef, @lines) = take_rest($runner, $want);
    is $lines[-1]{status}, 'interrupted', 'cancel: a run that waits for credit ends once it is granted';
    is scalar(messages_of(@lines)), 201, 'cancel: the input of a run that waits for credit is in the state';
    is $runner->finish, 0, 'drain: a runner exits once the waiting run has ended';
}

{
    my $server = ModelServer->new;
    my $runner = RunnerTest->new(graphs => { %graphs, model => graph(model => $server->model('anthropic')) });
    $runner->withhold_credit;
    my $start = start_line(graph_id => 'model', stream_modes => ['messages-tuple'],
        input => script(deltas => ['word '], times => 3000));
    $runner->send($start);
    my @first = $runner->lines_until(sub { $_[0]{type} eq 'want' });
    my $want = pop @first;
    my $bytes = 0;
    $bytes += 1 + length $_->{' text'} for @first;
    cmp_ok $bytes, '>', 128 * 1024, 'want: the first short lines need no credit';
    cmp_ok $bytes, '<=', 256 * 1024 + 1, 'want: credit is requested before more than 256 KiB are sent';
    my @lines = $runner->run(input => human('Hello'));
    is $lines[-1]{status}, 'success', 'want: other runs continue while a run waits';
    my ($requests, @rest) = take_rest($runner, $want);
    cmp_ok $requests, '>', 3, 'want: credit is requested after each 256 KiB';
    is $rest[-1]{status}, 'success', 'want: a run with many short lines ends with success';
    is join('', map { $_->[0]{content} } events_of('messages', @first, @rest)), 'word ' x 3000,
        'go: the events of a run keep their order';
    $runner->close_input;
    is $runner->finish, 0, 'end of file: a runner whose runs waited for credit exits with 0';
}

{
    my $server = ModelServer->new;
    my $runner = RunnerTest->new(graphs => { agent => graph(tools => [ $server->tool('progress') ]) });
    $runner->withhold_credit;
    my $args = Cpanel::JSON::XS->new->encode({ lines => [ ('{"custom":1}') x 4000, '{"result":"done"}' ] });
    my $start = start_line(input => human("use progress $args"), stream_modes => ['custom']);
    $runner->send($start);
    # The lines with the input are long: their credit is granted.
    my $is_custom;
    my @custom = $runner->lines_until(sub {
        $is_custom ||= ($_[0]{event} // '') eq 'custom';
        return 1 if $_[0]{type} eq 'want' && $is_custom;
        $runner->give_credit($_[0]) if $_[0]{type} eq 'want';
        return 0;
    });
    cmp_ok $custom[-1]{bytes}, '<', 32 * 1024, 'progress: a tool is not read while its run waits for credit';
    my ($requests, @rest) = take_rest($runner, $custom[-1]);
    is scalar(events_of('custom', @custom, @rest)), 4000, 'progress: all events of a tool that waited are sent';
    is $rest[-1]{status}, 'success', 'progress: a run that waited for credit ends with success';
}

# The end of the time-out of another call is the event that ends the wait.
{
    my $server = ModelServer->new;
    my $runner = RunnerTest->new(graphs => {
        agent => graph(tools => [ map { $server->tool($_, timeout_ms => 2000) } qw(progress hang) ]) });
    $runner->withhold_credit;
    my $args = Cpanel::JSON::XS->new->encode({ lines => [ ('{"custom":1}') x 4000, '{"result":"done"}' ] });
    my $start = start_line(input => human("use progress $args"), stream_modes => ['custom']);
    $runner->send($start);
    my $is_custom;
    my @first = $runner->lines_until(sub {
        $is_custom ||= ($_[0]{event} // '') eq 'custom';
        return 1 if $_[0]{type} eq 'want' && $is_custom;
        $runner->give_credit($_[0]) if $_[0]{type} eq 'want';
        return 0;
    });
    my @other = $runner->run(input => human('use hang {}'));
    like((grep { $_->{type} eq 'tool' } messages_of(@other))[0]{content}, qr/did not answer within 2000 ms/,
        'time-out: a call ends while another run waits for credit');
    my (undef, @rest) = take_rest($runner, $first[-1]);
    my ($answer) = grep { $_->{type} eq 'tool' } messages_of(@first, @rest);
    is_deeply [ @{$answer}{qw(status content)} ], [ 'success', 'done' ],
        'time-out: the wait of a run for credit does not count';
}

{
    my $runner = RunnerTest->new(graphs => \%graphs);
    $runner->withhold_credit;
    my @modes = qw(values updates messages tasks checkpoints debug events);
    my $small;
    my $cost = cost_of([ $runner->pid ], sub {
        $runner->send(map { start_line(input => human('x' x 600_000), stream_modes => \@modes) } 1 .. 60);
        $runner->expect('want') for 1 .. 3;
        ($small) = reverse $runner->run(input => human('Hello'));
    });
    is $small->{status}, 'success', 'backlog: a small run continues while 60 of 600 KB wait';
    cmp_ok $cost->{peak_bytes}, '<', memory_scale() * 200 * 1024 * 1024,
        'backlog: most of the large runs have not produced their lines';
    for my $count (20, 60) {
        my @messages = map { { role => $_ % 2 ? 'user' : 'assistant', content => "message $_" } } 1 .. $count;
        my ($end) = reverse $runner->run(input => { messages => \@messages });
        is $end->{status}, 'success', "backlog: a chat of $count messages continues while 60 runs of 600 KB wait";
    }
    my $begun;
    my $letters = cost_of([ $runner->pid ], sub {
        $runner->send(map { start_line(input => { messages => [ ('a') x 14_000 ] }, stream_modes => \@modes) } 1 .. 30);
        ($begun) = reverse $runner->run(input => human('Hello'));
    });
    is $begun->{status}, 'success', 'backlog: a small run continues while short inputs of many elements wait';
    cmp_ok $letters->{peak_bytes}, '<', memory_scale() * 100 * 1024 * 1024,
        'backlog: a short input that becomes a large state waits';
}

{
    my $runner = RunnerTest->new(graphs => \%graphs);
    $runner->withhold_credit;
    my @modes = qw(values updates messages tasks checkpoints debug events);
    my @starts = map { start_line(input => human('x' x 600_000), stream_modes => \@modes) } 1 .. 12;
    $runner->send(@starts);
    my %first;
    $runner->lines_until(sub {
        my ($line) = @_;
        $first{ $line->{run_id} }++ if $line->{type} eq 'want';
        $runner->give_credit($line) if $line->{type} eq 'want';
        return $line->{type} eq 'end';
    });
    is scalar(keys %first), 12, 'backlog: every large run has begun when the first one ends';
}

# A run with 60 results of 66 KB, of which none is sent.
{
    my $server = HostileServer->new;
    my $runner = RunnerTest->new(graphs => { agent => graph(tools => [ $server->tool('page') ]) });
    $runner->withhold_credit;
    my $start = start_line(input => human('use page {} ' x 60),
        stream_modes => [qw(values updates messages tasks checkpoints debug events)]);
    $runner->send($start);
    $runner->lines_until(sub {
        my ($line) = @_;
        $runner->give_credit($line) if $line->{type} eq 'want';
        return ($line->{event} // '') eq 'events' && $line->{data}{event} eq 'on_tool_start';
    });
    $server->wait_requests(60);
    my @due;
    for my $id (1 .. 20) {
        $runner->send({ type => 'ping', id => $id });
        push @due, grep { $_->{type} eq 'want' }
            $runner->lines_until(sub { $_[0]{type} eq 'pong' && $_[0]{id} == $id });
    }
    $runner->send({ type => 'cancel', run_id => $start->{run_id}, epoch => 1 });
    $runner->give_credit($_) for @due;
    my $requests = 0;
    my @lines = $runner->lines_until(sub {
        my ($line) = @_;
        return 1 if $line->{type} eq 'end';
        $requests++ if $line->{type} eq 'want';
        $runner->give_credit($line) if $line->{type} eq 'want';
        return 0;
    });
    cmp_ok $requests, '<=', 4, 'cancel: a run requests no credit for events that were not requested before';
    is $lines[-1]{status}, 'interrupted', 'cancel: a run whose backlog is dropped is interrupted';
    cmp_ok scalar(messages_of(@lines)), '>', 40, 'cancel: the results of tools are in the state';
    my ($last) = reverse lines_of('checkpoint', @lines);
    my ($values) = reverse grep { ($_->{event} // '') eq 'values' } @lines;
    is $values->{checkpoint_id}, $last->{checkpoint_id}, 'cancel: the last event values names the last checkpoint';
}

done_testing;
