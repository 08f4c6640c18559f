# SPDX-License-Identifier: Apache-2.0
# The graph: checkpoints, steps, breakpoints, commands, and going on after a
# breakpoint or a lost runner.
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
    is scalar @all, 5, 'a run over three nodes writes five checkpoints';
    is_deeply [ map { $_->{metadata}{step} } @all ], [ -1 .. 3 ], 'steps count from -1';
    is_deeply [ map { $_->{metadata}{source} } @all ], [ 'input', ('loop') x 4 ], 'sources';
    is_deeply [ map { $_->{next} } @all ],
        [ ['__start__'], ['agent'], ['tools'], ['agent'], [] ], 'next';
    is_deeply [ map { [ map { $_->{name} } @{ $_->{tasks} } ] } @all ],
        [ map { $_->{next} } @all ], 'one task for each next node';
    is_deeply [ map { $_->{parent} } @all ],
        [ undef, map { $_->{checkpoint_id} } @all[ 0 .. 3 ] ], 'each names its parent';
    my @ids = map { $_->{checkpoint_id} } @all;
    is_deeply [ sort @ids ], \@ids, 'ids sort in the order of the checkpoints';
    like $_, qr/\A[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\z/,
        "$_ is a UUID of version 7" for @ids;
    is_deeply $all[0]{metadata}{writes}, { __start__ => $input }, 'the input is written by __start__';
    is_deeply $all[0]{values}, { messages => [] }, '... and not yet in the state';
    is $all[1]{metadata}{writes}, undef, 'applying it writes nothing';
    my @messages = messages_of(@lines);
    is_deeply [ map { $_->{metadata}{writes} } @all[ 2 .. 4 ] ],
        [ { agent => { messages => [ $messages[1] ] } },
          { tools => { messages => [ $messages[2] ] } },
          { agent => { messages => [ $messages[3] ] } } ],
        'writes hold the messages of each node';
    is_deeply [ map { scalar @{ $_->{values}{messages} } } @all ], [ 0 .. 4 ],
        'the state grows by one message a step';
    is_deeply [ sort keys %{ $all[1]{tasks}[0] } ],
        [qw(checkpoint error id interrupts name path result state)], 'a task has all fields';
    is_deeply $all[0]{metadata}{parents}, {}, 'parents';
    is $_->{opaque}, undef, 'opaque is null' for @all;
    is_deeply $lines[-1], { type => 'end', run_id => $start->{run_id}, epoch => 1,
        status => 'success', error => undef, ' text' => $lines[-1]{' text'} }, 'end';

    my @next = run(continue_from(@lines), input => human('Thanks'));
    is_deeply [ map { $_->{metadata}{step} } checkpoints(@next) ], [ 4, 5, 6 ],
        'the next run goes on counting';
    is +(checkpoints(@next))[0]{parent}, $ids[-1], '... from the last checkpoint';
    is types_of(@next), 'human ai tool ai human ai', '... with the whole conversation';
}
{
    my @lines = run(graph_id => 'plain', input => human($TOOL));
    is types_of(@lines), 'human ai tool ai', 'a tool that is not there is answered';
    my ($tool) = grep { $_->{type} eq 'tool' } messages_of(@lines);
    is $tool->{status}, 'error', '... with an error';
    like $tool->{content}, qr/no tool clock.*tools are: none/, '... that says so';
}
{
    # A clock that was set back: the parent's id is from the year 10889.
    my $parent = 'ffffffff-fffe-7fff-8000-000000000000';
    my @lines = run(input => human('x'), checkpoint => {
        checkpoint_id => $parent, step => 1, next => [] });
    my @ids = map { $_->{checkpoint_id} } checkpoints(@lines);
    is_deeply [ map { substr $_, 0, 18 } @ids ],
        [qw(ffffffff-ffff-7000 ffffffff-ffff-7001 ffffffff-ffff-7002)],
        'a checkpoint never sorts before its parent';
}

# --- Limits ------------------------------------------------------------------

{
    my @lines = run(graph_id => 'two', input => human($TOOL));
    is_deeply [ @{ $lines[-1]{error} }{qw(error)} ], ['GraphRecursionError'],
        'too many steps end in GraphRecursionError';
    is $lines[-1]{status}, 'error', '... status error';
    is types_of(@lines), 'human ai tool', 'what was done stays';
    is_deeply [ events_of('error', @lines) ], [ $lines[-1]{error} ], 'the stream has the error';
    my @next = run(continue_from(@lines), graph_id => 'two');
    is types_of(@next), 'human ai tool ai', 'another run can go on from there';
    @lines = run(graph_id => 'two', input => human('Hello'));
    is $lines[-1]{status}, 'success', 'as many steps as allowed are no error';
    @lines = run(input => human($TOOL), config => { recursion_limit => 1 });
    is $lines[-1]{error}{error}, 'GraphRecursionError', "a run's own lower limit holds";
    @lines = run(graph_id => 'two', input => human($TOOL), config => { recursion_limit => 99 });
    is $lines[-1]{error}{error}, 'GraphRecursionError', '... a higher one does not';
}

# --- Nothing to do -----------------------------------------------------------

{
    my @lines = run();
    is $lines[-1]{error}{error}, 'EmptyInputError', 'no input and no checkpoint is an error';
    my @first = run(input => human('Hello'));
    @lines = run(continue_from(@first));
    is $lines[-1]{status}, 'success', 'no input after the end is a success';
    is scalar checkpoints(@lines), 0, '... that changes nothing';
    is_deeply [ map { $_->{checkpoint_id} } grep { $_->{event} eq 'values' } lines_of('event', @lines) ],
        [ (checkpoints(@first))[-1]{checkpoint_id} ], '... and shows the values';
    @lines = run(input => {});
    is types_of(@lines), 'ai', 'an empty input runs the graph';
    @lines = run(continue_from(@first), input => {});
    is types_of(@lines), 'human ai ai', '... on what is there';
}

# --- Breakpoints -------------------------------------------------------------

my @modes = (stream_modes => [qw(values updates)]);
for my $names (['tools'], ['agent', 'tools'], '*') {
    my $title = 'interrupt_before ' . encode_json([$names]);
    my @lines = run(input => human($TOOL), interrupt_before => $names, @modes);
    is $lines[-1]{status}, 'interrupted', "$title stops the run";
    my $wanted = ref $names && @{$names} == 1 ? 'tools' : 'agent';
    is_deeply +(checkpoints(@lines))[-1]{next}, [$wanted], "... before $wanted";
    is_deeply +(events_of('updates', @lines))[-1], { __interrupt__ => [] }, '... updates say so';
    my $values = (events_of('values', @lines))[-1];
    is_deeply $values, { %{ (checkpoints(@lines))[-1]{values} }, __interrupt__ => [] },
        '... and the last values';
}
{
    my @lines = run(input => human($TOOL), interrupt_before => ['tools']);
    my @next = run(continue_from(@lines), interrupt_before => ['tools']);
    is $next[-1]{status}, 'success', 'without input the run goes on behind the breakpoint';
    is types_of(@next), 'human ai tool ai', '... to its end';
    is_deeply [ map { $_->{metadata}{step} } checkpoints(@next) ], [ 2, 3 ],
        '... without an input checkpoint';
    my @other = run(continue_from(@lines), input => human('No, thanks'));
    is types_of(@other), 'human ai human ai', 'with input it takes another way';
}
{
    my @lines = run(input => human($TOOL), interrupt_after => ['agent'], @modes);
    is $lines[-1]{status}, 'interrupted', 'interrupt_after stops the run';
    is_deeply +(checkpoints(@lines))[-1]{next}, ['tools'], '... after the node';
    my @next = run(continue_from(@lines), interrupt_after => ['tools']);
    is_deeply +(checkpoints(@next))[-1]{next}, ['agent'], '... also the next one';
    @next = run(continue_from(@next), interrupt_after => [ 'tools', 'agent' ]);
    is $next[-1]{status}, 'success', 'after the last node there is nothing to stop';
    my @others = ('__start__', '__end__', 'nobody', 5);
    @lines = run(input => human('Hello'), interrupt_before => \@others, interrupt_after => \@others);
    is $lines[-1]{status}, 'success', 'names of other nodes mean nothing';
    @lines = run(input => human('Hello'), interrupt_before => ['agent'], stream_modes => []);
    is scalar lines_of('event', @lines), 0, 'without stream modes a breakpoint makes no event';
}

# --- A lost runner -----------------------------------------------------------

{
    my @lines = run(input => human($TOOL));
    my @all = checkpoints(@lines);
    for my $count (2 .. 5) {
        my @saved = @all[ 0 .. $count - 1 ];
        my @retry = run(continue_from(@saved), attempt => 2, epoch => 2);
        is $retry[-1]{status}, 'success', "a retry after $count checkpoints comes to the end";
        is types_of(@saved, @retry), 'human ai tool ai', '... with no step done twice';
        is scalar checkpoints(@retry), 5 - $count, '... and makes only what was missing';
        is $retry[-1]{epoch}, 2, '... under the new epoch';
    }
    my @lost = run(continue_from($all[0]), attempt => 2);
    is $lost[-1]{error}{error}, 'EmptyInputError', 'after the input alone it is needed once more';
    @lost = run(continue_from($all[0]), command => { resume => 1 });
    is $lost[-1]{error}{error}, 'EmptyInputError', '... also beside a command';
    my @retry = run(continue_from($all[0]), attempt => 2, input => human($TOOL));
    is types_of(@retry), 'human ai tool ai', 'a retry after the input alone brings the input again';
}
{
    my @lines = run(input => human($TOOL), interrupt_before => ['tools']);
    my %same = (continue_from(@lines), interrupt_before => ['tools'], attempt => 2);
    my @retry = run(%same);
    is $retry[-1]{status}, 'interrupted', 'a retry at a breakpoint stops there again';
    is scalar checkpoints(@retry), 0, '... without a step';
    my $run_id = new_uuid();
    $same{checkpoint} = { %{ $same{checkpoint} }, run_id => $run_id };
    @retry = run(%same, run_id => $run_id);
    is $retry[-1]{status}, 'interrupted', '... also when it is told who wrote the checkpoint';
    @retry = run(%same);
    is $retry[-1]{status}, 'success', '... but not when that was another run';
    @lines = run(input => human($TOOL), interrupt_after => ['agent']);
    @retry = run(continue_from(@lines), interrupt_after => ['agent'], attempt => 2);
    is $retry[-1]{status}, 'interrupted', 'interrupt_after holds in a retry';
}

# --- Commands ----------------------------------------------------------------

{
    my @first = run(input => human($TOOL), interrupt_before => ['tools']);
    my @lines = run(continue_from(@first), command => { resume => 'yes' });
    is types_of(@lines), 'human ai tool ai', 'resume goes on';
    @lines = run(continue_from(@first), command => { goto => '__end__' });
    is_deeply +(checkpoints(@lines))[-1]{next}, [], 'goto __end__ ends';
    is $lines[-1]{status}, 'success', '... with success';
    for my $goto ('agent', ['agent'], { node => 'agent' }) {
        @lines = run(continue_from(@first), command => { goto => $goto });
        is types_of(@lines), 'human ai ai tool ai', 'goto ' . encode_json([$goto]);
    }
    my $update = { messages => [ { role => 'user', content => 'And now?' } ] };
    for my $form ($update, [ [ messages => $update->{messages} ] ]) {
        @lines = run(continue_from(@first), command => { update => $form, goto => 'agent' });
        is types_of(@lines), 'human ai human ai', 'update changes the state';
    }
    my ($call) = @{ (messages_of(@first))[1]{tool_calls} };
    @lines = run(continue_from(@first), command => { update => { messages => [
        { role => 'tool', content => 'noon', tool_call_id => $call->{id} } ] } });
    is types_of(@lines), 'human ai tool ai', 'a result that a client gives is not asked for again';
    like last_message(@lines)->{content}, qr/noon/, '... and is used';
    for my $goto ('nowhere', [ 'agent', 'tools' ], 5) {
        @lines = run(continue_from(@first), command => { goto => $goto });
        like $lines[-1]{error}{message}, qr{command/goto}, 'no goto ' . encode_json([$goto]);
    }
    @lines = run(command => { update => human('Hello'), goto => 'agent' });
    is types_of(@lines), 'human ai', 'a command needs no checkpoint';
}
{
    my @lines = run(checkpoint => { checkpoint_id => new_uuid(), step => 1, next => ['planner'] });
    like $lines[-1]{error}{message}, qr/node "planner", which graph agent does not have/,
        'a thread that stopped in another graph cannot be continued';
    @lines = run(input => human('Hello'),
        checkpoint => { checkpoint_id => new_uuid(), step => 1, next => ['planner'] });
    is $lines[-1]{status}, 'success', '... but begin anew with input';
}

done_testing;
