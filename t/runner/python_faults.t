# SPDX-License-Identifier: Apache-2.0
# The Python runner: cancel, stop, errors of graphs, values that JSON cannot hold,
# code that blocks, exits or forks, flow control, breaches of the supervisor.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cpanel::JSON::XS;
use File::Temp qw(tempdir);
use POSIX qw(mkfifo);
use PythonRunner qw(in_all_versions);
use RunnerTest qw(lines_of events_of new_uuid);
use Test::More;

my $CUSTOM = { stream_modes => ['custom'] };

in_all_versions(sub {
    my ($runner, $version) = @_;

    sub fault {
        my ($on, $do, %fields) = @_;
        return $on->run(graph_id => 'faulty', input => { do => $do }, %{$CUSTOM}, %fields);
    }
    my $result = sub { my $last = (lines_of('checkpoint', @_))[-1]; return $last->{values}{result} };
    my $error = sub { return "$_[-1]{status} " . ($_[-1]{error}{error} // '') };

    # --- Cancel, stop ------------------------------------------------------------

    # A run that waits in its second node.
    my $waiting = sub {
        my $start = $runner->start_of('waiter', input => {}, %{$CUSTOM});
        $runner->send($start);
        my @lines = $runner->lines_until(sub { $_[0]{type} eq 'event' && $_[0]{data} eq 'waiting' });
        return ($start, @lines);
    };
    my ($start, @begun) = $waiting->();
    $runner->send({ type => 'cancel', run_id => $start->{run_id}, epoch => 2 });
    $runner->send({ type => 'cancel', run_id => $start->{run_id}, epoch => 1 });
    my @rest = $runner->lines_of_run($start->{run_id});
    is $rest[-1]{status}, 'interrupted', 'cancel: the run ends as interrupted';
    is +(lines_of('checkpoint', @begun))[-1]{values}{n}, 1, 'cancel: the steps before it are saved';
    $runner->send({ type => $_, run_id => $start->{run_id}, epoch => 1 }) for qw(cancel stop go);
    is $result->(fault($runner, 'after')), 'after', 'cancel: messages about a run that has ended are ignored';

    my @starts = map { $runner->start_of('counter', input => { n => 1, steps => [] }) } 1 .. 20;
    my %ended = map { $_->{run_id} => 1 } @starts;
    $runner->send(map { ($_, { type => 'cancel', run_id => $_->{run_id}, epoch => 1 }) } @starts);
    $runner->lines_until(sub { delete $ended{ $_[0]{run_id} } if $_[0]{type} eq 'end'; return !%ended });
    pass 'cancel: runs that have not begun end too';

    my $gate = tempdir(CLEANUP => 1) . '/gate';
    mkfifo($gate, oct 600) or die "$gate: $!\n";
    my $stopped = $runner->start_of('pauser', input => { do => $gate }, %{$CUSTOM});
    $runner->send($stopped);
    $runner->lines_until(sub { $_[0]{type} eq 'event' });
    # Its node goes on when the runner has read the message.
    $runner->send({ type => 'stop', run_id => $stopped->{run_id}, epoch => 1, reason => 'drain', deadline_ms => 1000 },
        { type => 'ping', id => 60 });
    $runner->lines_until(sub { $_[0]{type} eq 'pong' });
    open my $opened, '>', $gate or die "$gate: $!\n";
    syswrite $opened, 'x';
    my @drained = $runner->lines_of_run($stopped->{run_id});
    is $drained[-1]{status}, 'drained', 'stop: the run ends as drained';
    is_deeply +(lines_of('checkpoint', @drained))[-1]{next}, ['before'], 'stop: its last checkpoint has a next node';
    my @continued = $runner->run(graph_id => 'pauser', input => undef, attempt => 2,
        $runner->next_run($stopped->{thread_id}));
    is +(lines_of('checkpoint', @continued))[-1]{values}{n}, 1, 'stop: another run goes on from it';

    # --- Errors of graphs ----------------------------------------------------------

    my @raised = fault($runner, 'raise');
    is_deeply $raised[-1]{error}, { error => 'LookupError', message => 'there is no such thing' }, 'error: it has the name of the exception';
    is_deeply [ events_of('error', @raised) ], [ $raised[-1]{error} ], 'error: it is the last event';
    my ($failed) = grep { defined $_->{task}{error} } lines_of('task', @raised);
    is $failed->{task}{error}, 'LookupError: there is no such thing', 'error: the task has it'
        if $version eq 'newest';
    like $runner->log_text, qr/^run $raised[-1]{run_id}: LookupError: there is no such thing$/m, 'error: the traceback is logged';
    is $error->(fault($runner, 'exit')), 'error SystemExit', 'exit(): it ends the run alone';
    is $error->(fault($runner, 'exit in thread')), 'error SystemExit', 'exit() in a thread: it ends the run alone';
    is $error->(fault($runner, 'cancelled')), 'error NodeCancelledError', 'error: a node that cancels itself'
        if $version eq 'newest';
    ($start) = $waiting->();
    my $all = $runner->start_of('faulty', input => { do => 'cancel all' });
    my %ends;
    $runner->send($all);
    $runner->lines_until(sub { $ends{ $_[0]{run_id} } = $_[0]{error} if $_[0]{type} eq 'end'; return keys %ends == 2 });
    is_deeply [ map { $ends{ $_->{run_id} } } $start, $all ], [ ({ error => 'CancelledError',
        message => 'code of the application has cancelled tasks of the run, or all tasks of the process' }) x 2 ],
        'error: a node that cancels all tasks ends the other runs with the reason';
    like $runner->log_text, qr/^run $all->{run_id}: code of this run cancels the tasks of run $start->{run_id}$/m,
        'error: the log has the run that cancels the tasks of others';
    is $error->($runner->run(graph_id => 'broken', input => {})), 'error RuntimeError', 'error: a graph that was not loaded';
    my @long = fault($runner, 'long name');
    is $long[-1]{error}{error}, 'Long' x 50, 'error: a long name is cut';
    is $error->(fault($runner, 'odd traceback')), 'error SyntaxError', 'error: an exception whose traceback cannot be formatted ends the run';
    is $result->(fault($runner, 'after')), 'after', 'errors: other runs go on';
    my @forgiving = $runner->run(graph_id => 'forgiving', input => { n => 0 });
    is_deeply [ map { "@{ $_->{next} }" } grep { !defined $_->{ns} } lines_of('checkpoint', @forgiving) ], [ '__start__', 'first', 'second', '' ],
        'errors: a node goes on after a subgraph that could not be saved, and so do the checkpoints';

    # --- Values ------------------------------------------------------------------------

    is $error->(fault($runner, 'strange value')), 'error NotRenderedError', 'values: one that cannot be stored ends the run';
    is $error->(fault($runner, 'strange event')), 'error NotRenderedError', 'values: an event that JSON cannot hold ends the run';
    is $error->(fault($runner, 'deep')), 'error NotRenderedError', 'values: an event of too many levels ends the run';
    my %large = ('large event' => 'an event "custom"', 'large value' => '(?:the result of a task|what a step changes in the state)');
    for my $do (sort keys %large) {
        my @large = fault($runner, $do);
        is $error->(@large), 'error ValueTooLargeError', "values: a $do, longer than a line, ends the run";
        like $large[-1]{error}{message}, qr/\A$large{$do} has 900\d{4} bytes in a line to the server, more than 8388608\z/,
            "values: the error of a $do names the limit";
        is_deeply [ events_of('error', @large) ], [ $large[-1]{error} ], "values: the event of a $do has it";
        like $runner->log_text, qr/^run $large[-1]{run_id}: .*ValueTooLargeError: $large{$do}/m, "values: the log says which run had a $do";
    }
    my @odd = fault($runner, 'odd texts');
    is_deeply [ events_of('custom', @odd) ], [ { nul => "a\x{fffd}b", surrogate => "\x{fffd}", nan => undef, 7 => 'number', large => '1' . '0' x 30 } ],
        'values: characters that PostgreSQL refuses are replaced';
    is $result->(@odd), "a\x{fffd}b", 'values: also in the state';

    my @numbers = fault($runner, 'numbers and addresses');
    is_deeply [ events_of('custom', @numbers) ], [ { price => 12.5, count => 3, none => undef, huge => undef, zone => 'UTC', host => '::1', array => [ 1.5, 2 ] } ],
        'values: decimals are numbers, arrays are arrays, addresses are texts';
    is $result->(@numbers), 12.5, 'values: also in the state';
    my @named = $runner->run(graph_id => 'named', input => {});
    is $named[-1]{status}, 'success', 'names: a node with a subgraph may have any printable character in its name';

    # --- Code that does what it should not ----------------------------------------------

    my @printed = fault($runner, 'print');
    my $prefix = "run $printed[-1]{run_id}: ";
    my ($first, @more) = map { s/\A\Q$prefix\E//r } grep { /\A\Q$prefix\E/ } split /\n/, $runner->log_text;
    is $first, 'a first line', 'prints: lines have the id of the run';
    is length(join '', grep { /\Ay+\z/ } @more), 20_000, 'prints: long lines are divided';
    is $more[-1], 'without an end', 'prints: the end is logged with the run';
    my @echo = fault($runner, 'print while printing');
    like $runner->log_text, qr/^run $echo[-1]{run_id}: in between\nrun $echo[-1]{run_id}: the text$/m, 'prints: a print may print';
    my @bytes = fault($runner, 'bytes');
    like $runner->log_text, qr/^run $bytes[-1]{run_id}: bytes \xc3\xa4$/m, 'prints: bytes written to sys.stdout.buffer are logged';
    is $result->(fault($runner, 'fork and return')), 2, 'fork: a child that returns from its node ends';
    is $result->(fault($runner, 'fork')), 7, 'fork: the child has no pipe to the supervisor';
    is_deeply $result->(fault($runner, 'collector')), [ Cpanel::JSON::XS::true, 10_000 ], 'garbage collection: its threshold is 10,000, and imported objects are frozen';
    is_deeply $result->(fault($runner, 'environment')), [ 'hello from langgraph.json', 'python' ],
        'environment: that of langgraph.json, in the folder of the application';
    is $error->(fault($runner, 'blocking call')), 'error InvalidStateError', 'blocking calls: refused on the loop';
    is $error->(fault($runner, 'other id')), 'error ValueError', 'checkpoints: a checkpoint_id that is not a UUID is an error of the node';
    is_deeply $result->(fault($runner, 'thread')), ['own'], 'threads: a node may have its own';

    # --- Code that blocks the loop -------------------------------------------------------

    my $pipe = tempdir(CLEANUP => 1) . '/pipe';
    mkfifo($pipe, oct 600) or die "$pipe: $!\n";
    my $blocks = $runner->start_of('blocker', input => { do => $pipe });
    $runner->send($blocks);
    open my $end, '>', $pipe or die "$pipe: $!\n";
    $runner->send({ type => 'ping', id => 71 });
    $runner->lines_until(sub { $_[0]{type} eq 'pong' && $_[0]{id} == 71 });
    # The loop owes a turn since that ping.
    my $busy = 0;
    for (my $id = 72; !$busy; $id++) {
        $runner->send({ type => 'ping', id => $id });
        $busy = ($runner->lines_until(sub { $_[0]{type} eq 'pong' }))[-1]{busy_ms};
    }
    cmp_ok $busy, '>', 0, 'blocking node: ping is answered, with the time for which the loop has not turned';
    syswrite $end, 'x';
    close $end;
    is +($runner->lines_of_run($blocks->{run_id}))[-1]{status}, 'success', 'blocking node: its run goes on when it returns';

    my $lingers = $runner->start_of('lingerer', input => { do => $pipe }, %{$CUSTOM});
    $runner->send($lingers);
    $runner->lines_until(sub { $_[0]{type} eq 'event' });
    open $end, '>', $pipe or die "$pipe: $!\n";
    $runner->send({ type => 'cancel', run_id => $lingers->{run_id}, epoch => 1 });
    is +($runner->lines_of_run($lingers->{run_id}))[-1]{status}, 'interrupted', 'thread of a cancelled run: the run ends without it';
    syswrite $end, 'x';
    close $end;
    $runner->wait_for_io while $runner->log_text !~ /^run $lingers->{run_id}: late: (\w+)$/m;
    like $runner->log_text, qr/late: RunEndedError/, 'thread of a cancelled run: it can save nothing afterwards';

    # --- Flow control ---------------------------------------------------------------------

    my @text = ({ text => 'x' x 50_000 }) x 20;
    my $large = $runner->start_of('counter', input => { n => 1, steps => \@text }, stream_modes => [qw(values updates)]);
    $runner->send($large);
    is +($runner->lines_of_run($large->{run_id}))[-1]{status}, 'success', 'credit: a run requests it for long output';
    my @more_large = $runner->run(graph_id => 'counter', input => { n => 1 }, $runner->next_run($large->{thread_id}));
    is scalar @{ (lines_of('checkpoint', @more_large))[-1]{values}{steps} }, 24, 'credit: the state is read in parts';
    cmp_ok length((lines_of('checkpoint', @more_large))[-1]{' text'}), '<', 2_000, 'credit: a step sends only what it adds to a long list';

    my $many = $runner->start_of('counter', input => { n => 1, steps => \@text });
    $runner->withhold_credit;
    $runner->send($many);
    $runner->lines_until(sub { $_[0]{type} eq 'want' });
    $runner->send({ type => 'cancel', run_id => $many->{run_id}, epoch => 1 });
    $runner->send({ type => 'go', run_id => $many->{run_id}, epoch => 1 });
    my $ended = $runner->lines_until(sub {
        $runner->give_credit($_[0]) if $_[0]{type} eq 'want';
        return $_[0]{type} eq 'end';
    });
    ok $ended, 'credit: a run that is cancelled while it waits ends';

    $runner->withhold_acks;
    my $sync = $runner->start_of('counter', input => { n => 1, steps => [] }, durability => 'sync');
    $runner->send($sync);
    $runner->lines_until(sub { $_[0]{type} eq 'put' && defined $_[0]{ack} });
    $runner->send({ type => 'cancel', run_id => $sync->{run_id}, epoch => 1 });
    my @ends = $runner->lines_until(sub { $runner->give_credit($_[0]) if $_[0]{type} eq 'want'; return $_[0]{type} eq 'end' });
    is $ends[-1]{status}, 'interrupted', 'cancel: a run ends without the acknowledgement of its records';

    # --- Breaches of the supervisor ----------------------------------------------------------

    $runner->send({ type => 'nonsense' });
    is $runner->finish >> 8, 2, 'breach: an unknown message ends the runner with status 2';
    like $runner->log_text, qr/unknown message: nonsense/, 'breach: the log says why';
});

{
    my $runner = PythonRunner->new(graphs => ['lingerer'], memory => 512 * 1024 * 1024);
    my $fifo = tempdir(CLEANUP => 1) . '/pipe';
    mkfifo $fifo, 0600 or die "mkfifo: $!\n";
    my @starts = map { $runner->start_of('lingerer', input => { do => $fifo }, %{$CUSTOM}) } 1 .. 100;
    my $waiting = 0;
    $runner->send(@starts);
    $runner->lines_until(sub { $waiting++ if $_[0]{type} eq 'event' && $_[0]{data} eq 'waiting'; return $waiting == @starts });
    pass 'threads: a hundred runs that block in threads take less than 512 MB of data';
    # Open until all have ended: a thread may open it long after its event.
    open my $pipe, '+<', $fifo or die "$fifo: $!\n";
    syswrite $pipe, 'x' x @starts;
    my @ends;
    $runner->lines_until(sub {
        push @ends, $_[0] if $_[0]{type} eq 'end';
        return @ends == @starts;
    });
    close $pipe;
    is scalar(@ends), 100, 'threads: a hundred runs that blocked in threads end';
}
{
    my $runner = PythonRunner->new(graphs => [qw(rewriter outer_rewriter)]);
    for my $graph (qw(rewriter outer_rewriter)) {
        my @lines = $runner->run(graph_id => $graph, input => { n => 0 }, config => { recursion_limit => 100 });
        my $count = (lines_of('checkpoint', @lines))[-1]{values}{document}{count};
        cmp_ok $count, '<', 20, "memory: $graph makes 40 documents, of which the process keeps the last ones";
    }
}
{
    my $runner = PythonRunner->new(graphs => ['faulty']);
    is +(fault($runner, 'closed stderr'))[-1]{error}{error}, 'LookupError', 'closed sys.stderr: the run ends';
    like $runner->log_text, qr/LookupError: there is no such thing/, 'closed sys.stderr: its error is logged';
    $runner->send($runner->start_of('faulty', input => { do => 'closed pipe' }));
    is $runner->finish >> 8, 2, 'closed pipe: the process ends';
    like $runner->log_text, qr/agent runner: descriptor 4 is closed/, 'closed pipe: the log says why';
}
for my $do ('closed input', 'replaced input') {
    my $runner = PythonRunner->new(graphs => ['faulty']);
    $runner->send($runner->start_of('faulty', input => { do => $do }));
    is $runner->finish >> 8, 2, "$do: the process ends";
    like $runner->log_text, qr/agent runner: descriptor 3 is closed/, "$do: the log says why";
}
{
    my $runner = PythonRunner->new(graphs => ['faulty']);
    fault($runner, 'no memory');
    $runner->send({ type => 'ping', id => 1 });
    is $runner->finish >> 8, 71, 'no memory for a message: the process ends with the status of that';
    $runner = PythonRunner->new(graphs => ['faulty']);
    $runner->send($runner->start_of('faulty', input => { do => 'no memory for lines' }));
    is $runner->finish >> 8, 71, 'no memory for lines: the process ends with the status of that';
}
{
    my $runner = PythonRunner->new(graphs => ['counter'], slots => 3);
    is $runner->{ready}{slots}, 3, '--slots: the number of runs at a time';
    $runner->close_input;
    is $runner->finish, 0, 'end of input: the runner exits';
}
{
    my $runner = PythonRunner->new(graphs => ['lingerer'], slots => 1);
    my $fifo = tempdir(CLEANUP => 1) . '/pipe';
    mkfifo $fifo, 0600 or die "mkfifo: $!\n";
    $runner->send(map { $runner->start_of('lingerer', input => { do => $fifo }) } 1, 2);
    is $runner->finish >> 8, 2, '--slots: a run beyond them ends the runner';
    like $runner->log_text, qr/^agent runner: a run that .* exceeds the slots/m, '--slots: the log says why';
}

done_testing;
