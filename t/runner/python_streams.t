# SPDX-License-Identifier: Apache-2.0
# The Python runner: the events of each stream mode, and the call update.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PythonRunner qw(in_all_versions);
use RunnerTest qw(lines_of events_of metadata_of_events new_uuid);
use Test::More;

in_all_versions(sub {
    my ($runner, $version) = @_;
    my $stream = sub {
        my ($graph, $input, @modes) = @_;
        return $runner->run(graph_id => $graph, input => $input, stream_modes => \@modes, stream_subgraphs => \1);
    };
    my $names = sub { return map { $_->{event} } lines_of('event', @_) };
    my $human = { messages => [ { role => 'user', content => 'Hello' } ] };

    # --- Messages ----------------------------------------------------------------

    my @lines = $stream->('chat', $human, 'messages-tuple');
    is join('', map { $_->[0]{content} } events_of('messages', @lines)), 'one two three',
        'messages-tuple: the texts of the chunks make the message';
    is +(events_of('messages', @lines))[0][1]{langgraph_node}, 'answer', 'messages-tuple: the metadata name the node';
    is_deeply [ map { "$_->{type} $_->{content}" } @{ (lines_of('checkpoint', @lines))[-1]{values}{messages} } ],
        [ 'human Hello', 'ai one two three' ], 'messages: the state has them flat';

    @lines = $stream->('chat', $human, 'messages');
    my ($first) = events_of('messages/metadata', @lines);
    is_deeply [ keys %{$first} ], ['ai-1'], 'messages: the metadata come first, by the id of the message';
    my @texts = map { $_->[0]{content} } events_of('messages/partial', @lines);
    is_deeply [ grep { index($texts[$_], $texts[ $_ - 1 ]) != 0 } 1 .. $#texts ], [],
        'messages: each piece comes with those before it';
    is +(events_of('messages/partial', @lines))[-1][0]{content}, 'one two three', 'messages: the last one is whole';
    is +(events_of('messages/partial', @lines))[-1][0]{type}, 'ai', 'messages: a partial message has the type of a message';

    my $words = '"' . 'word ' x 2998 . '"';
    for my $kind (qw(text args)) {
        @lines = $stream->('writer', { messages => [ { role => 'user', content => $kind } ] }, 'messages');
        my $bytes = 0;
        $bytes += length $_->{' text'} for lines_of('event', @lines);
        cmp_ok $bytes, '<', 150 * length $words, "messages: bytes are linear in the length of a message, $kind";
        my $last = (events_of('messages/complete', @lines))[-1][0];
        is $kind eq 'text' ? $last->{content} : ($last->{invalid_tool_calls}[0] // $last->{tool_calls}[0])->{args}, $words,
            "messages: one that the node drops is complete at the end, $kind";
    }

    # The newest library copies `model` of configurable into the metadata, the oldest each string.
    my %long = (model => 'm' x 20_000, x => 'x' x 20_000);
    my %config = (config => { configurable => { %long, user_id => 'u' }, metadata => { mine => 'y' x 9000 } }, context => { size => 's' x 20_000 });
    @lines = $runner->run(graph_id => 'chat', input => $human, stream_modes => [qw(messages messages-tuple events)], %config);
    my @repeated = metadata_of_events(@lines);
    is_deeply [ grep { $_->{model} || $_->{x} || $_->{size} } @repeated ], [],
        'metadata: long members of configurable and context are not repeated with each token';
    is_deeply [ grep { length $_->{mine} != 9000 || !$_->{thread_id} } @repeated ], [], 'metadata: the ids and the client\'s own members are repeated with each token';
    is $repeated[0]{langgraph_node}, 'answer', 'metadata: the library\'s members are repeated with each token';
    @lines = $runner->run(graph_id => 'chat', input => $human, stream_modes => ['messages-tuple'],
        config => { configurable => { model => 'm' x 6000, map { $_ => $_ x 5000 } qw(x y z) } });
    my ($few) = metadata_of_events(@lines);
    is_deeply [ map { length($few->{$_} // '') } qw(model x y z) ], $version eq 'newest' ? [ 6000, 0, 0, 0 ] : [ 6000, 5000, 5000, 0 ],
        'metadata: of several copied members the longest beside model are left out, until 16 KB are left';
    @lines = $runner->run(graph_id => 'counter', input => { n => 1, steps => [] }, context => { size => 's' x 200_000 },
        config => { configurable => { pad => 'p' x 200_000, user_id => 'u' } });
    my @put = lines_of('put', @lines);
    cmp_ok $#put, '>', 1, 'metadata: the library puts a checkpoint for each step';
    my $stored = 0;
    $stored += length $_->{' text'} for @put, lines_of('checkpoint', @lines);
    cmp_ok $stored, '<', 20_000, 'metadata: long members of configurable and context are not repeated with each checkpoint';
    is_deeply [ grep { $_->{metadata}{user_id} ne 'u' } @put ], [], 'metadata: each checkpoint has the short members of configurable';

    # --- Values ------------------------------------------------------------------

    @lines = $stream->('counter', { n => 1, steps => [] }, qw(checkpoints debug tasks custom));
    my @checkpoints = lines_of('checkpoint', @lines);
    my @shown = events_of('checkpoints', @lines);
    is_deeply [ map { $_->{values}{n} } @shown ], [ undef, 1, 2, 4 ], 'checkpoints: each checkpoint has an event';
    is_deeply [ map { $_->{checkpoint}{checkpoint_id} } @shown ], [ map { $_->{checkpoint_id} } @checkpoints ],
        'checkpoints: an event has the id of its checkpoint';
    is_deeply [ map { defined $_->{parent_checkpoint} ? $_->{parent_checkpoint}{checkpoint_id} : undef } @shown ],
        [ map { $_->{parent} } @checkpoints ], 'checkpoints: an event has the id of the parent of its checkpoint';
    my @debug = events_of('debug', @lines);
    is_deeply [ map { $_->{payload}{values}{n} } grep { $_->{type} eq 'checkpoint' } @debug ], [ undef, 1, 2, 4 ],
        'debug: the events have the checkpoints';
    is scalar(grep { $_->{type} eq 'task_result' } @debug), scalar(grep { exists $_->{result} } events_of('tasks', @lines)),
        'debug: the events have the results of tasks';
    is_deeply [ map { $_->{name} } grep { exists $_->{input} && $_->{name} ne '__start__' } events_of('tasks', @lines) ],
        [qw(add_one double)], 'tasks: an event at the start of each';
    is_deeply [ events_of('custom', @lines) ], [ { doubles => 2 } ], 'custom: an event has what a node writes with the stream writer';

    @lines = $stream->('breaks_off', $human, 'messages');
    is $lines[-1]{error}{message}, 'broken off', 'messages: the node of a message fails';
    is_deeply [ grep { m{messages/} } $names->(@lines) ], [qw(messages/metadata messages/partial)],
        'messages: one of a task that fails is not complete';

    # --- Events, subgraphs ---------------------------------------------------------

    @lines = $stream->('chat', $human, qw(events values));
    my @events = events_of('events', @lines);
    my ($run) = grep { $_->{event} eq 'on_chain_start' } @events;
    is $run->{run_id}, $lines[-1]{run_id}, 'events: the graph\'s own have the id of the run';
    ok +(grep { $_->{event} eq 'on_chat_model_stream' } @events), 'events: a model call has on_chat_model_stream';
    is scalar(grep { $_->{event} eq 'values' } lines_of('event', @lines)), 2, 'events: the events of other modes are sent beside them';

    @lines = $stream->('family', { n => 1, steps => [] }, qw(lifecycle updates values));
    my ($child) = grep { defined $_->{ns} } lines_of('checkpoint', @lines);
    is_deeply [ map { $_->{data}{event} } grep { $_->{event} eq "lifecycle|$child->{ns}" } lines_of('event', @lines) ],
        [qw(started completed)], 'lifecycle: the begin and the end of a subgraph';
    my %ends = (asks_inside => ['started|', 'interrupted|'], fails_inside => [ 'started|', 'failed|nothing to find' ],
        calls_twice => [ ('started|') x 2, ('completed|') x 2 ]);
    for my $graph (sort keys %ends) {
        my @told = map { $_->{data} } grep { $_->{event} =~ /\Alifecycle/ } lines_of('event', $stream->($graph, { n => 1, steps => [] }, 'lifecycle'));
        is_deeply [ map { "$_->{event}|" . ($_->{error} // '') } @told ], $ends{$graph}, "lifecycle: the subgraphs of $graph begin and end";
        is_deeply [ map { scalar @{ $_->{namespace} } } @told ], [ 1, $graph eq 'calls_twice' ? (2, 1, 2) : 1 ], "lifecycle: those of $graph have their namespaces";
    }
    ok +(grep { $_ eq "values|$child->{ns}" } $names->(@lines)), 'values: those of a subgraph have its name';
    is_deeply [ $names->($stream->('counter', { n => 1, steps => [] })) ], [], 'no mode: no events';

    # --- Tools ---------------------------------------------------------------------------

    @lines = $stream->('react', $human, qw(tools values));
    is_deeply [ map { "$_->{type} $_->{content}" } @{ (lines_of('checkpoint', @lines))[-1]{values}{messages} } ],
        [ 'human Hello', 'ai ', 'tool 5', 'ai It is 5.' ], 'tools: an agent calls one and answers';
    is_deeply [ map { $_->{event} } events_of('tools', @lines) ], $version eq 'newest' ? [qw(on_tool_start on_tool_end)] : [],
        'tools: the events of the call, where the library has them';
    is_deeply [ map { [ @{$_}{qw(toolCallId name)} ] } events_of('tools', @lines) ],
        $version eq 'newest' ? [ ([ 'call-1', 'add' ]) x 2 ] : [], 'tools: each names the call and the tool';

    # --- The call update -------------------------------------------------------------

    my $start = $runner->start_of('counter', input => { n => 1, steps => [] });
    $runner->send($start);
    @lines = $runner->lines_of_run($start->{run_id});
    my $head = (lines_of('checkpoint', @lines))[-1]{checkpoint_id};
    my $call = sub {
        my ($updates, %fields) = @_;
        my $arguments = ref $updates eq 'ARRAY' ? { supersteps => $updates } : $updates;
        my $line = { type => 'call', op => 'update', context => {}, run_id => new_uuid(), epoch => 1, attempt => 1, graph_id => 'counter',
            arguments => $arguments, config => {}, $runner->next_run($start->{thread_id}, $head), %fields };
        $runner->send($line);
        return $runner->lines_of_run($line->{run_id});
    };
    my @update = $call->([ [ { values => { n => 30, steps => [ { by => 'a client' } ] }, as_node => 'add_one' } ] ]);
    is $update[-1]{status}, 'success', 'update: the call ends with success';
    my ($after) = lines_of('checkpoint', @update);
    is_deeply $after->{next}, ['double'], 'update: the node after as_node is next';
    is $after->{parent}, (lines_of('checkpoint', @lines))[-1]{checkpoint_id}, 'update: its parent is the head';
    is $after->{metadata}{source}, 'update', 'update: the source of the checkpoint is update';
    is_deeply [ $after->{values}{n}, scalar @{ $after->{values}{steps} } ], [ 30, 3 ], 'update: reducers apply';
    my @further = $runner->run(graph_id => 'counter', input => undef, $runner->next_run($start->{thread_id}));
    is +(lines_of('checkpoint', @further))[-1]{values}{n}, 60, 'update: a run goes on from it';
    @update = $call->([ [ { values => [ [ n => 8 ] ], as_node => 'double' } ] ]);
    is +(lines_of('checkpoint', @update))[-1]{values}{n}, 8, 'update: values may be pairs of channel and value';
    @update = $call->([ [ { values => { n => 5 }, as_node => '__input__' } ], [ { values => { n => 6 }, as_node => 'add_one' } ],
        [ { command => { update => { n => 7 } }, as_node => 'double' } ] ]);
    is_deeply [ map { "$_->{metadata}{source} $_->{metadata}{step} @{ $_->{next} }" } lines_of('checkpoint', @update) ],
        [ 'input 3 __start__', 'update 4 double', 'update 5 ' ], 'update: a checkpoint for each superstep';
    is_deeply [ map { $_->{parent} } lines_of('checkpoint', @update) ],
        [ map { $_->{checkpoint_id} } (lines_of('checkpoint', @lines))[-1], (lines_of('checkpoint', @update))[ 0, 1 ] ],
        'update: each names the one before as its parent';
    @update = $call->([ [ { values => undef, as_node => '__copy__' } ] ]);
    is +(lines_of('checkpoint', @update))[-1]{metadata}{source}, 'fork', 'update: the source of a copy is fork';
    is +(lines_of('checkpoint', @update))[-1]{parent}, (lines_of('checkpoint', @lines))[-1]{checkpoint_id},
        'update: the parent of a copy is the original';
    @update = $call->([ [ { values => { n => 1 }, as_node => 'nobody' } ] ]);
    is $update[-1]{error}{error}, 'InvalidUpdateError', 'update: an unknown node is the library\'s error';
    @update = $call->({}, op => 'embed');
    is $update[-1]{error}{error}, 'UnknownOperationError', 'call: an unknown operation ends with an error';

    # --- The call describe -----------------------------------------------------

    my $describe = sub {
        my ($graph, %arguments) = @_;
        my ($end) = $call->({ xray => \0, namespace => undef, recurse => \0, %arguments }, op => 'describe', graph_id => $graph,
            thread_id => undef, checkpoint => undef);
        return $end->{value} // $end->{error};
    };
    is_deeply [ sort keys %{ $describe->('counter', what => 'schemas')->{input_schema}{properties} } ], [qw(n steps)],
        'describe: `schemas` returns the schemas of the graph';
    is scalar @{ $describe->('family', what => 'graph')->{nodes} }, 3, 'describe: `graph` returns the nodes of the drawing';
    ok +(grep { $_->{id} =~ /inner_step/ } @{ $describe->('family', what => 'graph', xray => \1)->{nodes} }),
        'describe: with xray the drawing has the nodes of subgraphs';
    my $subgraphs = $describe->('family', what => 'subgraphs');
    is_deeply [ keys %{$subgraphs} ], ['child'], 'describe: `subgraphs` returns subgraphs by their namespace';
    ok $subgraphs->{child}{state_schema}, 'describe: a subgraph has its schemas';
    is_deeply [ map { $runner->{ready}{graphs}{$_}{has_subgraphs} } qw(family counter) ], [ 1, 0 ],
        'ready: the report names graphs with subgraphs';
    is_deeply [ map { $runner->{ready}{graphs}{$_}{factory} } qw(made counter) ], [ 1, 0 ], 'ready: the report names graphs that functions make';
});

done_testing;
