# SPDX-License-Identifier: Apache-2.0
# 100 runs at once, a supervisor that does not read, and the memory of 4,000 runs.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Wait;
use Cpanel::JSON::XS;
use ModelServer;
use RunnerTest qw(graph human script start_line messages_of last_message lines_of events_of
    is_sanitized);
use Test::More;

my $server = ModelServer->new;
my %graphs = (
    agent => graph(),
    model => graph(model => $server->model('openai'), tools => [ $server->tool('weather') ]));

sub memory_kb {
    my ($runner) = @_;
    open my $in, '<', "/proc/${\$runner->pid}/status" or die "status: $!\n";
    my ($kb) = map { /^VmRSS:\s+(\d+)/ ? $1 : () } <$in>;
    return $kb;
}

# --- 100 runs at once --------------------------------------------------------

{
    my $runner = RunnerTest->new(graphs => \%graphs);
    my @starts = map { start_line(input => human("sleep 500 number $_")) } 1 .. 100;
    my @runs = $runner->run_all(@starts);
    is_deeply [ map { $_->[-1]{status} } @runs ], [ ('success') x 100 ], '100 runs of 500 ms end with success';
    ok !(grep { (messages_of(@{ $runs[$_] }))[0]{content} ne "sleep 500 number ${\($_ + 1)}" } 0 .. 99),
        '100 runs of 500 ms have their own messages';

    @starts = map { start_line(graph_id => 'model', stream_modes => [qw(values messages-tuple)],
        input => script(text => "answer $_ " . join(' ', 1 .. 50), split => 100, tools => [
            { name => 'weather', args => { city => "city $_" } } ])) } 1 .. 100;
    @runs = $runner->run_all(@starts);
    is_deeply [ map { $_->[-1]{status} } @runs ], [ ('success') x 100 ],
        '100 runs with a model and a tool end with success';
    ok !(grep { last_message(@{ $runs[$_] })->{content} !~ /city ${\($_ + 1)}"/ } 0 .. 99),
        '100 runs with a model and a tool have their own answers';

    @starts = map { start_line(graph_id => 'model', input => script(hang_after => 0)) } 1 .. 100;
    $runner->send(@starts);
    my %begun;
    $runner->lines_until(sub {
        $begun{ $_[0]{run_id} } = 1 if ($_[0]{event} // '') eq 'values';
        return keys %begun == @starts;
    });
    $runner->send(map { { type => 'cancel', run_id => $_->{run_id}, epoch => 1 } } @starts);
    my %ends;
    $runner->lines_until(sub {
        $ends{ $_[0]{run_id} } = $_[0]{status} if $_[0]{type} eq 'end';
        return keys %ends == @starts;
    });
    is_deeply [ values %ends ], [ ('interrupted') x 100 ], '100 runs wait for their models at the same time';
    $runner->send({ type => 'drain' });
    is $runner->finish, 0, 'drain: the runner is idle after 100 cancelled runs';
}

# --- A supervisor that does not read -----------------------------------------

# Bytes in the pipe that the runner has not read; FIONREAD.
sub unread {
    my ($runner) = @_;
    my $count = pack 'i', 0;
    ioctl $runner->{out}, 0x541B, $count or die "FIONREAD: $!\n";
    return unpack 'i', $count;
}

sub is_asleep {
    my ($runner) = @_;
    open my $in, '<', "/proc/${\$runner->pid}/status" or die "status: $!\n";
    return scalar grep { /^State:\s+S/ } <$in>;
}

# Writes to the runner, without reading, until it stops; returns the bytes that it
# has not read. A runner that sleeps with unread input waits for its output to be
# read.
sub stop_by_writing {
    my ($runner, $bytes) = @_;
    wait_for('the runner to stop', sub {
        if (unread($runner) == 0) {
            $bytes = encode_json({ type => 'ping', id => 1 }) . "\n" if !length $bytes;
            my $written = syswrite $runner->{out}, $bytes;
            substr $bytes, 0, $written // 0, '';
        }
        return is_asleep($runner) && unread($runner) > 0;
    });
    return $bytes;
}

# Runs with many times the output that the runner may buffer.
for my $graph (qw(agent model)) {
    my $runner = RunnerTest->new(graphs => \%graphs);
    my @starts = map { start_line(graph_id => $graph, stream_modes => [qw(messages-tuple values)],
        input => $graph eq 'model' ? script(deltas => ['word '], times => 4000)
            : human('use clock {} ' x 100)) } 1 .. 40;
    $runner->run_all(start_line(input => human('Hello')));
    my $before = memory_kb($runner);
    # Without reading: the runner buffers the output beyond the pipe.
    my $rest = stop_by_writing($runner, join '', map { encode_json($_) . "\n" } @starts);
    my $grown = memory_kb($runner) - $before;
    my $limit = (is_sanitized() ? 60 : 20) * 1024;
    cmp_ok $grown, '<', $limit, "$graph: a runner whose output is not read stops ($grown KB more)";
    my ($ends, $bytes) = $runner->ends_of($rest, scalar @starts);
    is_deeply [ map { $_->{status} } values %{$ends} ], [ ('success') x @starts ],
        "$graph: a runner that has stopped continues when it is read";
    cmp_ok $bytes, '>', 12 * 1024 * 1024, "$graph: the output that was not read is complete";
}

# --- Memory ------------------------------------------------------------------

{
    my $runner = RunnerTest->new(graphs => \%graphs);
    # States of the same threads replace each other.
    my @threads = map { RunnerTest::new_uuid() } 1 .. 100;
    my $round = sub {
        my @starts = (
            (map { start_line(input => human('use clock {}'), stream_modes => [qw(values updates)]) } 1 .. 90),
            (map { start_line(graph_id => 'model', input => script(text => 'one two')) } 1 .. 10));
        @starts = map { { %{ $starts[$_] }, thread_id => $threads[$_] } } 0 .. $#starts;
        $runner->ends_of(join('', map { encode_json($_) . "\n" } @starts), scalar @starts);
    };
    $round->() for 1 .. 10;
    my $before = memory_kb($runner);
    $round->() for 1 .. 30;
    my $grown = memory_kb($runner) - $before;
  SKIP: {
        # AddressSanitizer keeps freed memory for a while.
        skip 'AddressSanitizer frees late', 1 if is_sanitized();
        cmp_ok $grown, '<', 2000, "memory: 3,000 runs after 1,000 need no more ($grown KB)";
    }
    $runner->close_input;
    is $runner->finish, 0, 'memory: the runner exits with 0 after 4,000 runs';
}

done_testing;
