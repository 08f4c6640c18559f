# SPDX-License-Identifier: Apache-2.0
# The call update: what it changes in the state, which node follows, what is
# refused; calls beside runs.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cpanel::JSON::XS;
use RunnerTest qw(graph human messages_of lines_of continue_from new_uuid start_line);
use Test::More;

my $runner = RunnerTest->new(graphs => { agent => graph() });

# The line of a call.
sub call_line {
    my ($arguments, %fields) = @_;
    $arguments = { supersteps => [ [$arguments] ] } if !grep { exists $arguments->{$_} } qw(supersteps what ns);
    return {
        type => 'call', op => 'update', run_id => new_uuid(), epoch => 1, attempt => 1, thread_id => new_uuid(),
        graph_id => 'agent', arguments => $arguments, config => {}, checkpoint => undef, %fields };
}

# The lines that answer a call.
sub call {
    my $line = call_line(@_);
    $runner->send($line);
    return $runner->lines_of_run($line->{run_id});
}

# [checkpoint, end] of a call that succeeds, the end of any other.
sub update {
    my (@lines) = call(@_);
    return $lines[0] if @lines == 1;
    is_deeply [ map { $_->{type} } @lines ], [qw(checkpoint end)], 'update: one checkpoint, no events';
    is $lines[1]{status}, 'success';
    return $lines[0];
}

sub contents { return [ map { $_->{content} } @{ $_[0]{values}{messages} } ] }

sub error_of { my ($end) = @_; return "$end->{status} $end->{error}{error}" }

my @chat = $runner->run(input => human('Hello'));
my @stopped = $runner->run(input => human('use clock {}'), interrupt_before => ['tools']);
my %after_chat = continue_from(@chat);
my ($question, $answer) = messages_of(@chat);

{
    my $new = update({ values => human('More'), as_node => 'agent' }, %after_chat);
    is_deeply contents($new), [ 'Hello', $answer->{content}, 'More' ], 'update: a message without an id is appended';
    is $new->{parent}, $after_chat{checkpoint}{checkpoint_id}, 'update: the parent is the checkpoint of the call';
    is_deeply [ @{ $new->{metadata} }{qw(source step)} ], [ 'update', $after_chat{checkpoint}{step} + 1 ], 'update: source and step';
    is_deeply $new->{metadata}{writes}, { agent => human('More') }, 'update: the values are the write of the node';
    is_deeply $new->{next}, [], 'update: after an answer of the agent the graph ends';
    ok $new->{values}{messages}[-1]{id}, 'update: the message has an id';
}
{
    my $new = update({ values => { messages => [ { %{$answer}, content => 'edited' } ] } }, %after_chat);
    is_deeply contents($new), [ 'Hello', 'edited' ], 'update: a message with an id that the state has replaces it';
    $new = update({ values => { messages => [ { type => 'remove', id => $answer->{id} } ] } }, %after_chat);
    is_deeply contents($new), ['Hello'], 'update: remove removes a message';
    $new = update({ values => [ [ messages => human('Pair')->{messages} ] ] }, %after_chat);
    is $new->{values}{messages}[-1]{content}, 'Pair', 'update: values may be pairs of a channel and its value';
    $new = update({ values => [ [ messages => human('One')->{messages} ], [ messages => { role => 'user', content => 'Two' } ] ] },
        %after_chat);
    is_deeply [ @{ contents($new) }[ -2, -1 ] ], [qw(One Two)], 'update: all pairs of a channel are applied, in order';
    $new = update({ values => { messages => { role => 'user', content => 'One' } } }, %after_chat);
    is $new->{values}{messages}[-1]{content}, 'One', 'update: one message needs no array';
}

# The node that follows.
{
    my $calls = { messages => [ { role => 'assistant', content => '', tool_calls => [ { id => 'c1', name => 'clock', args => {} } ] } ] };
    for my $case ([ agent => $calls, 'tools' ], [ agent => human('x'), undef ], [ tools => human('x'), 'agent' ],
        [ __start__ => human('x'), 'agent' ]) {
        my ($node, $values, $next) = @{$case};
        my $new = update({ values => $values, as_node => $node }, %after_chat);
        is_deeply $new->{next}, [ $next // () ], "update: as $node, " . ($next ? "$next is next" : 'nothing is next');
        is_deeply [ map { $_->{name} } @{ $new->{tasks} } ], $new->{next}, 'update: there is a task for it';
    }
    my %stopped = continue_from(@stopped);
    my $new = update({ values => { messages => [] } }, %stopped);
    is_deeply $new->{next}, ['tools'], 'update: before the tools, the agent wrote last';
    is_deeply [ keys %{ $new->{metadata}{writes} } ], ['agent'], 'update: the node is guessed';
    is_deeply update({ values => { messages => [] } }, %after_chat)->{next}, [], 'update: after a run, the agent wrote last';
    $new = update({ values => undef, as_node => undef }, %stopped);
    is_deeply [ $new->{next}, contents($new) ], [ ['tools'], contents((lines_of('checkpoint', @stopped))[-1]) ],
        'update: without values and node the state is copied';
    is $new->{metadata}{writes}, undef, 'update: a copy has no writes';
    $new = update({ values => undef, as_node => '__end__' }, %stopped);
    is_deeply [ $new->{next}, contents($new) ], [ [], contents((lines_of('checkpoint', @stopped))[-1]) ],
        'update: as __end__, the pending node is dropped';
    $new = update({ values => undef, as_node => 'tools' }, %stopped);
    is_deeply $new->{next}, ['agent'], 'update: a node without values counts as executed';
}
{
    my $new = update({ values => human('First') });
    is_deeply [ contents($new), $new->{parent}, $new->{metadata}{step}, $new->{next} ], [ ['First'], undef, -1, ['agent'] ],
        'update: a thread without a state gets one, as from __start__';
    my %next = continue_from(call({ values => human('First') }));
    my @lines = $runner->run(%next);
    is +(messages_of(@lines))[0]{content}, 'First', 'update: a run without input continues from it';
    is scalar messages_of(@lines), 2;
}

# Supersteps.
{
    my $ask = { role => 'user', content => 'Hi', id => 'm1' };
    my $say = { role => 'assistant', content => 'Hello', id => 'm2' };
    my @lines = call({ supersteps => [
        [ { values => { messages => [$ask] }, as_node => '__input__' } ],
        [ { values => { messages => [$ask] }, as_node => '__start__' } ],
        [ { command => { update => { messages => [$say] } }, as_node => 'agent' } ],
        [ { values => undef, as_node => '__copy__' } ] ] });
    is_deeply [ map { $_->{type} } @lines ], [ ('checkpoint') x 4, 'end' ], 'update: each superstep makes a checkpoint';
    is_deeply [ map { $_->{metadata}{source} } @lines[ 0 .. 3 ] ], [qw(input update update fork)], 'update: the sources of the supersteps';
    is_deeply [ map { $_->{metadata}{step} } @lines[ 0 .. 3 ] ], [ -1 .. 2 ], 'update: each superstep is a step';
    is_deeply [ map { $_->{next} } @lines[ 0 .. 3 ] ], [ ['__start__'], ['agent'], [], [] ], 'update: what follows each superstep';
    is_deeply [ map { $_->{parent} } @lines[ 1 .. 3 ] ], [ map { $_->{checkpoint_id} } @lines[ 0 .. 2 ] ],
        'update: each superstep continues the one before';
    is_deeply $lines[0]{metadata}{writes}, { __start__ => { messages => [$ask] } }, 'update: the input is the write of __start__';
    is_deeply contents((call({ supersteps => [ [ { values => human('a'), as_node => 'agent' }, { values => human('b'), as_node => 'tools' } ] ] }))[0]),
        [qw(a b)], 'update: the updates of a superstep make one checkpoint';
    my $goto = update({ command => { update => human('x'), goto => 'tools' }, as_node => 'agent' });
    is_deeply [ contents($goto), $goto->{next} ], [ ['x'], ['tools'] ], 'update: goto of a command names the next node';
    my $line = call_line({ supersteps => [ [ { values => human('a') } ], [ { values => human('b'), as_node => 'nope' } ] ] });
    $runner->send($line);
    @lines = $runner->lines_of_run($line->{run_id});
    is_deeply [ map { $_->{type} } @lines ], [qw(checkpoint end)], 'update: a superstep that is refused sends nothing';
    is error_of($lines[-1]), 'error InvalidUpdateError', 'update: a superstep that is refused ends the call';
    for my $case ([ 'none' => [] ], [ 'an empty one' => [ [] ] ], [ 'a text' => 'x' ], [ 'a superstep that is an object' => [ {} ] ],
        [ 'two, one of them __end__' => [ [ { as_node => '__end__' }, { as_node => 'agent' } ] ] ],
        [ 'values beside a command' => [ [ { values => {}, command => {} } ] ] ],
        [ 'goto of a node that is not there' => [ [ { command => { goto => 'nope' } } ] ] ]) {
        is error_of((call({ supersteps => $case->[1] }))[-1]), 'error InvalidUpdateError', "update: supersteps: $case->[0]";
    }
}

# Calls that change nothing.
{
    my $value = sub {
        my ($op, $arguments) = @_;
        my (@lines) = call($arguments, op => $op, thread_id => undef);
        is_deeply [ map { "$_->{type} $_->{status}" } @lines ], ['end success'], "$op: its only line is the end";
        ok exists $lines[0]{value}, "$op: the end has a value";
        return $lines[0]{value};
    };
    my $ready = $runner->{ready}{graphs}{agent};
    is_deeply $value->(describe => { what => 'schemas' }), $ready->{schemas}, 'describe: the schemas are those of ready';
    is_deeply $value->(describe => { what => 'graph', xray => \1 }), $ready->{drawing}, 'describe: the drawing is that of ready';
    is_deeply $value->(describe => { what => 'subgraphs', recurse => \1 }), {}, 'describe: there are no subgraphs';
    is $ready->{has_subgraphs}, 0, 'ready: there are no subgraphs';
    is error_of((call({ what => 'x' }, op => 'describe'))[0]), 'error InvalidUpdateError', 'describe: an unknown part is refused';
    is error_of((call({ what => 'graph' }, op => 'describe', graph_id => 'other'))[0]), 'error GraphNotFound',
        'describe: an unknown graph is refused';
}

# --- Refused -----------------------------------------------------------------

{
    my %case = (
        'a node that the graph does not have' => [ { values => human('x'), as_node => 'nope' }, 'InvalidUpdateError' ],
        'values with __end__' => [ { values => human('x'), as_node => '__end__' }, 'InvalidUpdateError' ],
        'values that are not an object' => [ { values => 'x' }, 'InvalidUpdateError' ],
        'a value that is not a pair' => [ { values => [ 1, ['a'] ] }, 'InvalidUpdateError' ],
        'a pair of three' => [ { values => [ [ 'messages', [], 1 ] ] }, 'InvalidUpdateError' ],
        'a channel that is not a name' => [ { values => [ [ 1, [] ] ] }, 'InvalidUpdateError' ],
        'a message without a role' => [ { values => { messages => [ {} ] } }, 'InvalidUpdateError' ],
        'removing a message that is not there' => [ { values => { messages => [ { type => 'remove', id => 'no' } ] } }, 'InvalidUpdateError' ],
    );
    for my $title (sort keys %case) {
        my ($arguments, $error) = @{ $case{$title} };
        my @lines = call($arguments, %after_chat);
        is scalar @lines, 1, "update: $title is refused without a checkpoint or an event";
        is error_of($lines[0]), "error $error", "update: $title, the error";
    }
    is error_of(call({}, op => $_)), 'error UnknownOperationError', "update: the operation $_ is refused"
        for qw(other authenticate authorize embed http);
    is error_of(call({}, graph_id => 'other')), 'error GraphNotFound', 'update: an unknown graph is refused';
}
{
    my $thread = new_uuid();
    my @lines = call({ values => human('x' x 5_000_000) }, thread_id => $thread);
    @lines = call({ values => human('x' x 5_000_000) }, continue_from(@lines), thread_id => $thread) for 2 .. 7;
    is error_of($lines[-1]), 'error StateTooLargeError', 'update: a state beyond its limit is refused';
    is scalar @lines, 1, 'update: a state beyond its limit is not saved';
}

# --- Cancel, and runs at the same time ---------------------------------------

{
    $runner->withhold_state;
    my $line = call_line({ values => human('x') }, %after_chat, thread_id => new_uuid());
    $runner->send($line);
    my ($request) = $runner->lines_until(sub { $_[0]{type} eq 'request' });
    is $request->{op}, 'state.get', 'update: the state is requested';
    $runner->send({ type => 'cancel', run_id => $line->{run_id}, epoch => 1 });
    my @lines = $runner->lines_of_run($line->{run_id});
    is_deeply [ map { "$_->{type} $_->{status}" } @lines ], ['end interrupted'], 'cancel: a call that reads its state changes nothing';
    my @starts = map { start_line(input => human("sleep $_")) } 1 .. 20;
    my @calls = map { call_line({ values => human('x') }) } 1 .. 20;
    my @all = $runner->run_all(map { ($starts[$_], $calls[$_]) } 0 .. 19);
    is scalar(grep { $_->[-1]{status} eq 'success' } @all), 40, 'calls and runs are executed at the same time';
}

done_testing;
