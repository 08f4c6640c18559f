# SPDX-License-Identifier: Apache-2.0
# A run asks for credit before a long line and after each 256 KiB; others do not
# wait for it.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Cost;
use Cpanel::JSON::XS;
use ModelServer;
use RunnerTest qw(graph human script start_line lines_of messages_of events_of);
use Test::More;

my %graphs = (agent => graph());

# A run whose state has 200 KB: its runner, and the `want` that waits for an answer.
sub start_large {
    my ($text) = @_;
    my $runner = RunnerTest->new(graphs => \%graphs);
    $runner->withhold_credit;
    my @messages = map { { role => 'user', content => 'x' x 1000 } } 1 .. 200;
    my $start = start_line(input => { messages => [ @messages, { role => 'user', content => $text } ] });
    $runner->send($start);
    my $want = $runner->expect('want');
    is $want->{run_id}, $start->{run_id}, 'a run asks for credit before its first long line';
    return ($runner, $want);
}

# Gives credit whenever the run asks; the other lines of the run, to its end.
sub hear {
    my ($runner, $want) = @_;
    my ($asked, @lines) = (1);
    $runner->give_credit($want);
    while (my $line = $runner->line) {
        if ($line->{type} eq 'want') {
            $asked++;
            $runner->give_credit($line);
            next;
        }
        push @lines, $line;
        return ($asked, @lines) if $line->{type} eq 'end';
    }
    die "the runner ended too early\n";
}

{
    my ($runner, $want) = start_large('Hello');
    for (1 .. 3) {
        my @lines = $runner->run(input => human('Hello'));
        is $lines[-1]{status}, 'success', 'a run with short lines goes on while another one waits';
        is scalar(grep { $_->{type} eq 'want' } @lines), 0, '... and does not ask for credit';
    }
    $runner->send({ type => 'go', run_id => $want->{run_id}, epoch => 2 }, { type => 'ping', id => 1 });
    is $runner->expect('pong')->{id}, 1, 'go under another epoch changes nothing';
    my ($asked, @lines) = hear($runner, $want);
    is $asked, 3, 'the run asks for each long line';
    is $lines[-1]{status}, 'success', '... and ends well';
    is join(' ', map { $_->{type} eq 'event' ? $_->{event} : $_->{type} } @lines),
        'checkpoint checkpoint values checkpoint values end', '... and all its lines come in order';
    is scalar(messages_of(@lines)), 202, '... with all its messages';
    $runner->close_input;
    is $runner->finish, 0, 'the runner ends';
}

{
    my ($runner, $want) = start_large('sleep 60000');
    $runner->send({ type => 'cancel', run_id => $want->{run_id}, epoch => 1 }, { type => 'drain' });
    my (undef, @lines) = hear($runner, $want);
    is $lines[-1]{status}, 'interrupted', 'a run that is cancelled while it waits for credit ends when it has it';
    is scalar(messages_of(@lines)), 201, '... and its input stays in the state';
    is $runner->finish, 0, 'a drained runner ends after that';
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
    cmp_ok $bytes, '>', 128 * 1024, 'a run sends its first short lines without credit';
    cmp_ok $bytes, '<=', 256 * 1024 + 1, '... and asks for it before it exceeds 256 KiB';
    my @lines = $runner->run(input => human('Hello'));
    is $lines[-1]{status}, 'success', '... and others go on while it waits';
    my ($asked, @rest) = hear($runner, $want);
    cmp_ok $asked, '>', 3, '... which happens again after each 256 KiB';
    is $rest[-1]{status}, 'success', '... and ends well';
    is join('', map { $_->[0]{content} } events_of('messages', @first, @rest)), 'word ' x 3000,
        '... and all its events come in order';
    $runner->close_input;
    is $runner->finish, 0, 'a runner whose runs waited for credit ends well';
}

{
    my $server = ModelServer->new;
    my $runner = RunnerTest->new(graphs => { agent => graph(tools => [ $server->tool('progress') ]) });
    $runner->withhold_credit;
    my $args = Cpanel::JSON::XS->new->encode({ lines => [ ('{"custom":1}') x 4000, '{"result":"done"}' ] });
    my $start = start_line(input => human("use progress $args"), stream_modes => ['custom']);
    $runner->send($start);
    # Lines with its input are long: they are let through.
    my $is_custom;
    my @custom = $runner->lines_until(sub {
        $is_custom ||= ($_[0]{event} // '') eq 'custom';
        return 1 if $_[0]{type} eq 'want' && $is_custom;
        $runner->give_credit($_[0]) if $_[0]{type} eq 'want';
        return 0;
    });
    cmp_ok $custom[-1]{bytes}, '<', 32 * 1024, 'a tool that says how far it is waits with its run';
    my ($asked, @rest) = hear($runner, $custom[-1]);
    is scalar(events_of('custom', @custom, @rest)), 4000, '... and loses nothing';
    is $rest[-1]{status}, 'success', '... before the run ends well';
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
    is $small->{status}, 'success', 'a small run goes on while sixty of 600 KB wait';
    cmp_ok $cost->{peak_bytes}, '<', memory_scale() * 200 * 1024 * 1024,
        '... most of which have not made their lines yet';
}

done_testing;
