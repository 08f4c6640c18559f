# SPDX-License-Identifier: Apache-2.0
# The graph: checkpoints, steps, breakpoints, commands, and continuing after a
# breakpoint or the loss of a runner.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cpanel::JSON::XS;
use RunnerTest qw(graph human messages_of last_message lines_of events_of
    continue_from new_uuid start_line);
use Test::More;

my $TOOL = 'use clock {}';
my %graphs = (agent => graph(), two => graph(max_steps => 2), plain => graph(tools => []));
my $runner = RunnerTest->new(graphs => {%graphs});

sub run { return $runner->run(@_) }

sub checkpoints { return lines_of('checkpoint', @_) }

sub types_of {
    return join ' ', map { $_->{type} } messages_of(@_);
}

# --- Checkpoints -------------------------------------------------------------

{
    my $input = { messages => [ { role => 'user', content => $TOOL } ], more => [ 1, 2 ] };
    my $start = start_line(input => $input);
    $runner->send($start);
    my @lines = $runner->lines_of_run($start->{run_id});
    my @all = checkpoints(@lines);
    is scalar @all, 5, 'checkpoints: a run of three nodes has five';
    is_deeply [ map { $_->{metadata}{step} } @all ], [ -1 .. 3 ], 'checkpoints: steps count from -1';
    is_deeply [ map { $_->{metadata}{source} } @all ], [ 'input', ('loop') x 4 ], 'checkpoints: the first source is input, then loop';
    is_deeply [ map { $_->{next} } @all ],
        [ ['__start__'], ['agent'], ['tools'], ['agent'], [] ], 'checkpoints: next is the node to execute';
    is_deeply [ map { [ map { $_->{name} } @{ $_->{tasks} } ] } @all ],
        [ map { $_->{next} } @all ], 'checkpoints: there is a task for each next node';
    is_deeply [ map { $_->{parent} } @all ],
        [ undef, map { $_->{checkpoint_id} } @all[ 0 .. 3 ] ], 'checkpoints: each one names its parent';
    my @ids = map { $_->{checkpoint_id} } @all;
    is_deeply [ sort @ids ], \@ids, 'checkpoints: ids sort in their order';
    like $_, qr/\A[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\z/,
        'checkpoints: an id is a UUID of version 7' for @ids;
    is_deeply $all[0]{metadata}{writes}, { __start__ => $input }, 'checkpoints: the input is the write of __start__';
    is_deeply $all[0]{values}, { messages => [] }, 'checkpoints: the first state is without the input';
    is $all[1]{metadata}{writes}, undef, 'checkpoints: applying the input has no writes';
    my @messages = messages_of(@lines);
    is_deeply [ map { $_->{metadata}{writes} } @all[ 2 .. 4 ] ],
        [ { agent => { messages => [ $messages[1] ] } },
          { tools => { messages => [ $messages[2] ] } },
          { agent => { messages => [ $messages[3] ] } } ],
        'checkpoints: writes are the messages of each node';
    is_deeply [ map { scalar @{ $_->{values}{messages} } } @all ], [ 0 .. 4 ],
        'checkpoints: the state grows by one message a step';
    is_deeply [ sort keys %{ $all[1]{tasks}[0] } ],
        [qw(checkpoint error id interrupts name path result state)], 'checkpoints: a task has all fields';
    is_deeply $all[0]{metadata}{parents}, {}, 'checkpoints: parents is an empty object';
    is $_->{format}, undef, 'checkpoints: of no format: the values suffice' for @all;
    is_deeply $lines[-1], { type => 'end', run_id => $start->{run_id}, epoch => 1,
        status => 'success', error => undef, ' text' => $lines[-1]{' text'} }, 'end: has status and error';

    my @next = run(continue_from(@lines), input => human('Thanks'));
    is_deeply [ map { $_->{metadata}{step} } checkpoints(@next) ], [ 4, 5, 6 ],
        'next run: the steps continue';
    is +(checkpoints(@next))[0]{parent}, $ids[-1], 'next run: the parent is the last checkpoint';
    is types_of(@next), 'human ai tool ai human ai', 'next run: the state has the whole conversation';
}
{
    my @lines = run(graph_id => 'plain', input => human($TOOL));
    is types_of(@lines), 'human ai tool ai', 'unknown tool: the call has a result';
    my ($tool) = grep { $_->{type} eq 'tool' } messages_of(@lines);
    is $tool->{status}, 'error', 'unknown tool: the result is an error';
    like $tool->{content}, qr/no tool clock.*tools are: none/, 'unknown tool: the result lists the tools';
}
{
    # The clock was set back: the id of the parent is from the year 10889.
    my $parent = 'ffffffff-fffe-7fff-8000-000000000000';
    my @lines = run(input => human('x'), checkpoint => {
        checkpoint_id => $parent, step => 1, next => [] });
    my @ids = map { $_->{checkpoint_id} } checkpoints(@lines);
    is_deeply [ map { substr $_, 0, 18 } @ids ],
        [qw(ffffffff-ffff-7000 ffffffff-ffff-7001 ffffffff-ffff-7002)],
        'checkpoints: an id sorts after its parent even after the clock was set back';
}

# --- Limits ------------------------------------------------------------------

{
    my @lines = run(graph_id => 'two', input => human($TOOL));
    is_deeply [ @{ $lines[-1]{error} }{qw(error)} ], ['GraphRecursionError'],
        'limit: too many steps end in GraphRecursionError';
    is $lines[-1]{status}, 'error', 'limit: too many steps end with status error';
    is types_of(@lines), 'human ai tool', 'limit: the executed steps stay in the state';
    is_deeply [ events_of('error', @lines) ], [ $lines[-1]{error} ], 'limit: the stream has the error';
    my @next = run(continue_from(@lines), graph_id => 'two');
    is types_of(@next), 'human ai tool ai', 'limit: another run continues the thread';
    @lines = run(graph_id => 'two', input => human('Hello'));
    is $lines[-1]{status}, 'success', 'limit: a run of exactly the allowed steps ends with success';
    @lines = run(input => human($TOOL), config => { recursion_limit => 1 });
    is $lines[-1]{error}{error}, 'GraphRecursionError', 'recursion_limit: a lower limit of the run applies';
    @lines = run(graph_id => 'two', input => human($TOOL), config => { recursion_limit => 99 });
    is $lines[-1]{error}{error}, 'GraphRecursionError', 'recursion_limit: a higher limit of the run is ignored';
}

# --- Nothing to do -----------------------------------------------------------

{
    my @lines = run();
    is $lines[-1]{error}{error}, 'EmptyInputError', 'no input: without a checkpoint it is an error';
    my @first = run(input => human('Hello'));
    @lines = run(continue_from(@first));
    is $lines[-1]{status}, 'success', 'no input: at the end of the graph it is a success';
    is scalar checkpoints(@lines), 0, 'no input: at the end of the graph there is no checkpoint';
    is_deeply [ map { $_->{checkpoint_id} } grep { $_->{event} eq 'values' } lines_of('event', @lines) ],
        [ (checkpoints(@first))[-1]{checkpoint_id} ], 'no input: at the end of the graph values are sent';
    @lines = run(input => {});
    is types_of(@lines), 'ai', 'input: {} executes the graph';
    @lines = run(continue_from(@first), input => {});
    is types_of(@lines), 'human ai ai', 'input: {} executes the graph on the thread';
}

# --- Breakpoints -------------------------------------------------------------

my @modes = (stream_modes => [qw(values updates)]);
for my $names (['tools'], ['agent', 'tools'], '*') {
    my $title = 'interrupt_before ' . encode_json([$names]);
    my @lines = run(input => human($TOOL), interrupt_before => $names, @modes);
    is $lines[-1]{status}, 'success', "$title: the status is success";
    my $wanted = ref $names && @{$names} == 1 ? 'tools' : 'agent';
    is_deeply +(checkpoints(@lines))[-1]{next}, [$wanted], "$title: the next node is $wanted";
    is_deeply +(events_of('updates', @lines))[-1], { __interrupt__ => [] }, "$title: updates have __interrupt__";
    my $values = (events_of('values', @lines))[-1];
    is_deeply $values, { %{ (checkpoints(@lines))[-1]{values} }, __interrupt__ => [] },
        "$title: the last values have __interrupt__";
}
{
    my @lines = run(input => human($TOOL), interrupt_before => ['tools']);
    my @next = run(continue_from(@lines), interrupt_before => ['tools']);
    is $next[-1]{status}, 'success', 'breakpoint: a run without input ends in success';
    is types_of(@next), 'human ai tool ai', 'breakpoint: a run without input reaches the end';
    is_deeply [ map { $_->{metadata}{step} } checkpoints(@next) ], [ 2, 3 ],
        'breakpoint: a run without input has no input checkpoint';
    my @other = run(continue_from(@lines), input => human('No, thanks'));
    is types_of(@other), 'human ai human ai', 'breakpoint: a run with input begins with the agent';
}
{
    my @lines = run(input => human($TOOL), interrupt_after => ['agent'], @modes);
    is $lines[-1]{status}, 'success', 'interrupt_after: the status is success';
    is_deeply +(checkpoints(@lines))[-1]{next}, ['tools'], 'interrupt_after: the run stops after the node';
    my @next = run(continue_from(@lines), interrupt_after => ['tools']);
    is_deeply +(checkpoints(@next))[-1]{next}, ['agent'], 'interrupt_after: the next run stops after its node';
    @next = run(continue_from(@next), interrupt_after => [ 'tools', 'agent' ]);
    is_deeply +(checkpoints(@next))[-1]{next}, [], 'interrupt_after: has no effect after the last node';
    my @others = ('__start__', '__end__', 'nobody', 5);
    @lines = run(input => human('Hello'), interrupt_before => \@others, interrupt_after => \@others);
    is_deeply +(checkpoints(@lines))[-1]{next}, [], 'breakpoints: names of other nodes are ignored';
    @lines = run(input => human('Hello'), interrupt_before => ['agent'], stream_modes => []);
    is scalar lines_of('event', @lines), 0, 'breakpoints: without stream modes there is no event';
}

# --- Restart -----------------------------------------------------------------

{
    my @lines = run(input => human($TOOL));
    my @all = checkpoints(@lines);
    for my $count (2 .. 5) {
        my @saved = @all[ 0 .. $count - 1 ];
        my @retry = run(continue_from(@saved), attempt => 2, epoch => 2);
        is $retry[-1]{status}, 'success', "restart: after $count checkpoints the run ends with success";
        is types_of(@saved, @retry), 'human ai tool ai', "restart: after $count checkpoints no step is executed twice";
        is scalar checkpoints(@retry), 5 - $count, "restart: after $count checkpoints only the missing ones are sent";
        is $retry[-1]{epoch}, 2, "restart: after $count checkpoints the lines have the new epoch";
    }
    my @lost = run(continue_from($all[0]), attempt => 2);
    is $lost[-1]{error}{error}, 'EmptyInputError', 'restart: after the input checkpoint alone the input is required';
    @lost = run(continue_from($all[0]), command => { resume => 1 });
    is $lost[-1]{error}{error}, 'EmptyInputError', 'restart: a command does not replace the input';
    my @retry = run(continue_from($all[0]), attempt => 2, input => human($TOOL));
    is types_of(@retry), 'human ai tool ai', 'restart: after the input checkpoint alone the input is applied again';
    is scalar checkpoints(@retry), $#all, 'restart: the input checkpoint is not sent again';
    my %same = (continue_from($all[0]), attempt => 2, epoch => 2, input => human($TOOL));
    $same{checkpoint}{run_id} = new_uuid();
    is scalar checkpoints(run(%same, run_id => $same{checkpoint}{run_id})), $#all,
        'restart: the input checkpoint of the same run is not sent again';
    is scalar checkpoints(run(%same)), @all,
        'restart: after the input checkpoint of another run the new one is sent';
}
{
    my @lines = run(input => human($TOOL), interrupt_before => ['tools']);
    my %same = (continue_from(@lines), interrupt_before => ['tools'], attempt => 2);
    my @retry = run(%same);
    is $retry[-1]{status}, 'success', 'restart: a run at its breakpoint ends in success';
    is scalar checkpoints(@retry), 0, 'restart: a run at its breakpoint executes no step';
    my $run_id = new_uuid();
    $same{checkpoint} = { %{ $same{checkpoint} }, run_id => $run_id };
    @retry = run(%same, run_id => $run_id);
    is scalar checkpoints(@retry), 0, 'restart: a run stops again if it wrote the checkpoint';
    @retry = run(%same);
    is_deeply +(checkpoints(@retry))[-1]{next}, [], 'restart: a run continues if another run wrote the checkpoint';
    @lines = run(input => human($TOOL), interrupt_after => ['agent']);
    @retry = run(continue_from(@lines), interrupt_after => ['agent'], attempt => 2);
    is scalar checkpoints(@retry), 0, 'restart: a run stops again at interrupt_after';
}

# --- Commands ----------------------------------------------------------------

for my $command ({ goto => 'tools' }, { update => { messages => [] } }) {
    my ($title) = keys %{$command};
    my %stop = (interrupt_before => ['tools']);
    my %first = continue_from(run(input => human($TOOL), %stop));
    my @lines = run(%first, %stop, command => $command);
    my ($saved) = checkpoints(@lines);
    is_deeply [ $saved->{metadata}{source}, $saved->{next} ], [ 'input', ['tools'] ], "command: $title makes a checkpoint before the next node";
    is_deeply +(checkpoints(@lines))[-1]{next}, [], "command: $title passes the breakpoint at which the thread waits";
    my $run_id = new_uuid();
    my %retry = (continue_from($saved), %stop, run_id => $run_id, attempt => 2, epoch => 2);
    @{ $retry{checkpoint} }{qw(run_id source)} = ($run_id, 'input');
    is_deeply +(checkpoints(run(%retry)))[-1]{next}, [], "command: $title passes it in the next attempt too";
}
{
    my @first = run(input => human($TOOL), interrupt_before => ['tools']);
    my @lines = run(continue_from(@first), command => { resume => 'yes' });
    is types_of(@lines), 'human ai tool ai', 'command: resume continues';
    my ($b, $a) = ('b' x 32, 'a' x 32);
    for my $case ([ {}, 'The resume map names no interrupt' ], [ { $b => 1, $a => 2 }, "Unknown or already-consumed interrupt: $a" ]) {
        my ($resume, $message) = @{$case};
        @lines = run(continue_from(@first), strict_resume => \1, command => { resume => $resume });
        is_deeply $lines[-1]{error}, { error => 'UnknownInterruptError', message => $message },
            'command: with strict_resume, ' . encode_json($resume) . ' is refused';
        is scalar checkpoints(@lines), 0, 'command: a refused resume leaves the state as it was';
        @lines = run(continue_from(@first), command => { resume => $resume });
        is types_of(@lines), 'human ai tool ai', 'command: without strict_resume, ' . encode_json($resume) . ' continues';
    }
    for my $resume ('yes', { $a => 1, answer => 2 }, [ {} ]) {
        @lines = run(continue_from(@first), strict_resume => \1, command => { resume => $resume });
        is types_of(@lines), 'human ai tool ai', 'command: with strict_resume, the value ' . encode_json([$resume]) . ' continues at a breakpoint';
    }
    @lines = run(continue_from(@first), command => { goto => '__end__' });
    is_deeply +(checkpoints(@lines))[-1]{next}, [], 'command: goto __end__ ends the run';
    is $lines[-1]{status}, 'success', 'command: goto __end__ is a success';
    for my $goto ('agent', ['agent'], { node => 'agent' }) {
        @lines = run(continue_from(@first), command => { goto => $goto });
        is types_of(@lines), 'human ai ai tool ai', 'command: goto executes ' . encode_json([$goto]);
    }
    my $update = { messages => [ { role => 'user', content => 'And now?' } ] };
    for my $form ($update, [ [ messages => $update->{messages} ] ]) {
        @lines = run(continue_from(@first), command => { update => $form, goto => 'agent' });
        is types_of(@lines), 'human ai human ai', 'command: update changes the state';
    }
    my ($call) = @{ (messages_of(@first))[1]{tool_calls} };
    @lines = run(continue_from(@first), command => { update => { messages => [
        { role => 'tool', content => 'noon', tool_call_id => $call->{id} } ] } });
    is types_of(@lines), 'human ai tool ai', 'command: a call whose result the client gives is not executed';
    like last_message(@lines)->{content}, qr/noon/, "command: the model reads the client's result";
    for my $goto ('nowhere', [ 'agent', 'tools' ], 5) {
        @lines = run(continue_from(@first), command => { goto => $goto });
        like $lines[-1]{error}{message}, qr{command/goto}, 'command: refuses goto ' . encode_json([$goto]);
    }
    @lines = run(command => { update => human('Hello'), goto => 'agent' });
    is types_of(@lines), 'human ai', 'command: needs no checkpoint';
}
{
    my @lines = run(checkpoint => { checkpoint_id => new_uuid(), step => 1, next => ['planner'] });
    like $lines[-1]{error}{message}, qr/node "planner", which graph agent does not have/,
        'another graph: a thread that stopped there cannot be continued without input';
    @lines = run(input => human('Hello'),
        checkpoint => { checkpoint_id => new_uuid(), step => 1, next => ['planner'] });
    is $lines[-1]{status}, 'success', 'another graph: a thread that stopped there continues with input';
}

# --- Reports about tasks -----------------------------------------------------

{
    my @lines = $runner->run(input => human('fail'));
    my ($last) = reverse checkpoints(@lines);
    my @tasks = lines_of('task', @lines);
    is scalar @tasks, 1, 'tasks: a failed node is reported';
    is $tasks[0]{checkpoint_id}, $last->{checkpoint_id}, 'tasks: the report names the checkpoint before the node';
    is $tasks[0]{task}{id}, $last->{tasks}[0]{id}, 'tasks: the report names the task of that checkpoint';
    is $tasks[0]{task}{error}, $lines[-1]{error}{message}, 'tasks: the report has the error';
    is $lines[-1]{type}, 'end', 'tasks: the report comes before the end';
    is +(lines_of('task', $runner->run(continue_from(@lines))))[0]{task}{error}, $tasks[0]{task}{error},
        'tasks: a run that continues reports the error of the task again';
}
{
    my @lines = $runner->run(input => human('use clock {}'), interrupt_before => ['tools']);
    is scalar lines_of('task', @lines), 0, 'tasks: a node that succeeds is not reported';
    my @rest = $runner->run(continue_from(@lines));
    is_deeply [ map { $_->{task}{error} } lines_of('task', @rest) ], [undef],
        'tasks: a run that continues reports that its first node has succeeded';
    is +(lines_of('task', @rest))[0]{task}{id}, (reverse checkpoints(@lines))[0]{tasks}[0]{id},
        'tasks: the report names the task at which the earlier run stopped';
}

done_testing;
