# SPDX-License-Identifier: Apache-2.0
# The Python runner: its graphs, runs from start to end, checkpoints, interrupts,
# with the newest and the oldest LangGraph.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cpanel::JSON::XS;
use PythonRunner qw(in_all_versions);
use RunnerTest qw(lines_of lists_of events_of new_uuid);
use Test::More;

my $OPTIONS = { stream_modes => [qw(values updates)] };

sub steps_of { my ($values) = @_; return join ' ', map { join ' ', %{$_} } @{ $values->{steps} } }

in_all_versions(sub {
    my ($runner, $version) = @_;

    # --- ready -------------------------------------------------------------------

    my $graphs = $runner->{ready}{graphs};
    is_deeply [ sort grep { $graphs->{$_}{error} } keys %{$graphs} ], [qw(broken leaves no_attribute no_graph)],
        'ready: a graph that cannot be loaded has an error, the others have none';
    is $graphs->{broken}{error}{error}, 'RuntimeError', 'ready: the error is that of the module';
    is $graphs->{leaves}{error}{error}, 'SystemExit', 'ready: a module that exits does not end the runner';
    is_deeply [ map { $_->{id} } @{ $graphs->{counter}{drawing}{nodes} } ], [qw(__start__ add_one double __end__)],
        'ready: a drawing has the nodes';
    is_deeply [ sort keys %{ $graphs->{counter}{schemas}{state_schema}{properties} } ], [qw(n steps)],
        'ready: the schema of the state has its channels';
    is $runner->{ready}{runtime}{library}, 'langgraph', 'ready: the runtime names the library';

    # --- A run -------------------------------------------------------------------

    my $start = $runner->start_of('counter', input => { n => 1, steps => [] }, %{$OPTIONS});
    $runner->send($start);
    my @lines = $runner->lines_of_run($start->{run_id});
    my @checkpoints = lines_of('checkpoint', @lines);
    is_deeply [ map { $_->{next} } @checkpoints ], [ ['__start__'], ['add_one'], ['double'], [] ],
        'run: a checkpoint for each step';
    is_deeply [ map { $_->{metadata}{step} } @checkpoints ], [ -1 .. 2 ], 'run: steps count from -1';
    is_deeply $checkpoints[-1]{values}, { n => 4, steps => [ { node => 'add_one' }, { node => 'double' } ] },
        'run: the last checkpoint has the state';
    is_deeply $checkpoints[-1]{sent}{steps}, { '$list' => { keep => 1, items => [ { node => 'double' } ] } },
        'run: of a list only the new elements are sent';
    is_deeply [ lists_of('steps', @lines) ], [ [ 0, 1 ], [ 1, 1 ] ], 'run: a snapshot keeps the elements of a list, and adds the new one';
    is_deeply [ map { $_->{checkpoint_id} } grep { $_->{event} eq 'values' } lines_of('event', @lines) ],
        [ map { $_->{checkpoint_id} } @checkpoints[ 1 .. 3 ] ], 'run: events values name their checkpoint';
    is_deeply [ events_of('updates', @lines) ], [ map { { $_->[0] => { n => $_->[1], steps => [ { node => $_->[0] } ] } } }
        [ add_one => 2 ], [ double => 4 ] ], 'run: updates are those of the nodes';
    my %results = map { $_->{task}{id} => $_->{task}{result} } lines_of('task', @lines);
    is_deeply $results{ $checkpoints[1]{tasks}[0]{id} }, { n => 2, steps => [ { node => 'add_one' } ] },
        'run: the result of a task is reported';
    is $lines[-1]{status}, 'success', 'run: it ends with success';
    like $runner->log_text, qr/^run $start->{run_id}: add_one gets 1$/m, 'run: prints are logged with its id';

    # --- The next run of the thread ------------------------------------------------

    my %next = $runner->next_run($start->{thread_id});
    my @second = $runner->run(graph_id => 'counter', input => { n => 10 }, %next);
    is_deeply [ map { $_->{values}{n} } lines_of('checkpoint', @second) ], [ 4, 10, 11, 22 ],
        'next run: it goes on from the state';
    is steps_of((lines_of('checkpoint', @second))[-1]{values}), 'node add_one node double node add_one node double',
        'next run: it appends to the lists of the state';
    is_deeply [ map { $_->{sent}{steps} } lines_of('checkpoint', @second) ],
        [ ({ '$same' => Cpanel::JSON::XS::true }) x 2,
          map { { '$list' => { keep => $_->[0], items => [ { node => $_->[1] } ] } } } [ 2, 'add_one' ], [ 3, 'double' ] ],
        'next run: only what it adds is sent';
    is_deeply [ lists_of('steps', @second) ], [ [ 2, 1 ], [ 3, 1 ] ], 'next run: snapshots keep the elements of runs before';

    # --- Another runner --------------------------------------------------------------

    my $other = PythonRunner->new(version => $version eq 'newest' ? undef : $version, records => $runner->records,
        graphs => ['counter']);
    my @third = $other->run(graph_id => 'counter', input => { n => 0 }, $runner->next_run($start->{thread_id}));
    is scalar @{ (lines_of('checkpoint', @third))[-1]{values}{steps} }, 6, 'other runner: it reads the state from its values';
    is +(lines_of('checkpoint', @third))[0]{sent}{steps}{'$same'}, 1, 'other runner: it does not send the state again';

    # --- Objects that a node mutates -----------------------------------------------------

    my $change_start = $runner->start_of('in_place', input => { seen => [] });
    $runner->send($change_start);
    my @changed = $runner->lines_of_run($change_start->{run_id});
    my $change = (lines_of('checkpoint', @changed))[-1]{values};
    ok $change->{plan}{steps}[0]{done}, 'mutated object: the state has the change';
    is $change->{notes}[0]{content}[0]{text}, 'changed', 'mutated object: a message in the state has the change';
    my $reader = PythonRunner->new(version => $version eq 'newest' ? undef : $version, records => $runner->records,
        graphs => ['in_place']);
    my @read = $reader->run(graph_id => 'in_place', input => { seen => [] }, $runner->next_run($change_start->{thread_id}));
    is_deeply +(lines_of('checkpoint', @read))[-1]{values}{seen}, [ Cpanel::JSON::XS::true, 'changed' ],
        'mutated object: another runner reads the change';

    # A subgraph executes ahead of the stream.
    my $early = sub { return map { $_->{values}{plan}{steps}[0]{done} } grep { "@{ $_->{next} }" eq 'change' } lines_of('checkpoint', @_) };
    my @inside = $runner->run(graph_id => 'in_place_inside', input => { seen => [] });
    is_deeply [ $early->(@inside) ], [Cpanel::JSON::XS::false], 'mutated object in a subgraph: the previous checkpoint does not have the change';

    # --- Branches and subgraphs --------------------------------------------------------

    my @fan = $runner->run(graph_id => 'fan', input => { n => 20, steps => [] });
    is_deeply [ map { $_->{work} } @{ (lines_of('checkpoint', @fan))[-1]{values}{steps} } ], [ 0 .. 19 ],
        'Send: the branches are applied in their order';

    my @family = $runner->run(graph_id => 'family', input => { n => 1, steps => [] }, stream_subgraphs => \1, %{$OPTIONS});
    my ($child) = grep { defined $_->{ns} } lines_of('checkpoint', @family);
    like $child->{ns}, qr/\Achild:[0-9a-f-]{36}\z/, 'subgraph: its checkpoints have its namespace';
    my ($task) = map { @{ $_->{tasks} } } grep { "@{ $_->{next} }" eq 'child' } lines_of('checkpoint', @family);
    is $task->{checkpoint}{checkpoint_ns}, $child->{ns}, 'subgraph: the task of the parent names the namespace';
    ok +(grep { $_->{event} eq "updates|$child->{ns}" } lines_of('event', @family)),
        'subgraph: events have the namespace in their name';
    @family = $runner->run(graph_id => 'family', input => { n => 1, steps => [] }, %{$OPTIONS});
    ok !(grep { $_->{event} =~ /\|/ } lines_of('event', @family)), 'subgraph: no events of it unless requested';
    is +(lines_of('checkpoint', @family))[-1]{values}{n}, 101, 'subgraph: its result is in the state';

    my @blocking = $runner->run(graph_id => 'blocking_family', input => { n => 1, steps => [] });
    is $blocking[-1]{status}, 'success', 'subgraph in a thread: the blocking form works';
    ok +(grep { defined $_->{ns} } lines_of('checkpoint', @blocking)), 'subgraph in a thread: it has checkpoints';

    my @own_loop = $runner->run(graph_id => 'own_loop', input => { n => 1, steps => [] });
    is_deeply +(lines_of('checkpoint', @own_loop))[-1]{values}, { n => 101, steps => [ { listed => 2 } ] },
        'subgraph in a thread: the async form works on a loop of the thread';
    ok +(grep { defined $_->{ns} } lines_of('checkpoint', @own_loop)), 'subgraph in a thread: on a loop of the thread it has checkpoints';

    # --- Interrupts ---------------------------------------------------------------------

    my $ask = $runner->start_of('approve', input => { n => 0, steps => [] }, %{$OPTIONS});
    $runner->send($ask);
    my @asked = $runner->lines_of_run($ask->{run_id});
    is $asked[-1]{status}, 'success', 'interrupt: the run ends with success';
    my ($last) = reverse lines_of('checkpoint', @asked);
    is_deeply $last->{next}, ['ask'], 'interrupt: the node is next';
    my ($waits) = grep { @{ $_->{task}{interrupts} } } lines_of('task', @asked);
    is $waits->{task}{id}, $last->{tasks}[0]{id}, 'interrupt: the task of the last checkpoint has it';
    is_deeply $waits->{task}{interrupts}[0]{value}, { question => 'How many?' }, 'interrupt: its value is shown';
    my $asked = $waits->{task}{interrupts}[0]{id};
    my $old = { error => 'StrictResumeError', message => "langgraph $runner->{ready}{runtime}{library_version} of the application does not know "
            . 'strict_resume: install a newer version, or leave it out' };
    for my $case ([ {}, 'The resume map names no interrupt' ],
        [ { $asked => 5, '0' x 32 => 6 }, 'Unknown or already-consumed interrupt: ' . '0' x 32 ]) {
        my @refused = $runner->run(graph_id => 'approve', command => { resume => $case->[0] }, strict_resume => \1,
            $runner->next_run($ask->{thread_id}), %{$OPTIONS});
        is_deeply $refused[-1]{error}, $version eq 'newest' ? { error => 'UnknownInterruptError', message => $case->[1] } : $old,
            'strict_resume: an answer to no interrupt is an error';
        is scalar(lines_of('checkpoint', @refused)), 0, 'strict_resume: it leaves the thread as it was';
    }
    my @resumed = $runner->run(graph_id => 'approve', command => { resume => $version eq 'newest' ? { $asked => 5 } : 5 },
        strict_resume => $version eq 'newest' ? \1 : \0, $runner->next_run($ask->{thread_id}), %{$OPTIONS});
    my ($shown) = reverse grep { $_->{event} eq 'values' } lines_of('event', @asked);
    is_deeply [ $shown->{checkpoint_id}, $shown->{path}, $shown->{data}{steps} ],
        [ $last->{checkpoint_id}, [], [ { node => 'propose' } ] ], 'interrupt: the values are shown once more, by their checkpoint'
        if $version eq 'newest';
    my ($first_values) = grep { $_->{event} eq 'values' } lines_of('event', @resumed);
    is $first_values->{checkpoint_id}, $last->{checkpoint_id}, 'interrupt: the first values of the next run are those of its checkpoint';
    is steps_of((lines_of('checkpoint', @resumed))[-1]{values}), 'node propose node ask used 5',
        'interrupt: the run that answers it goes on';
    is +(lines_of('checkpoint', @resumed))[0]{parent}, $last->{checkpoint_id},
        'interrupt: the checkpoint at which it stopped is not sent again';
    my ($done) = grep { $_->{checkpoint_id} eq $last->{checkpoint_id} } lines_of('task', @resumed);
    is_deeply $done->{task}{interrupts}, [], 'interrupt: its task is reported again, without it';

    my @stopped = $runner->run(graph_id => 'counter', input => { n => 1, steps => [] }, interrupt_before => ['double'], %{$OPTIONS});
    is_deeply +(lines_of('checkpoint', @stopped))[-1]{next}, ['double'], 'breakpoint: the run stops before the node';
    ok +(grep { exists $_->{__interrupt__} } events_of('updates', @stopped)), 'breakpoint: the stream has __interrupt__';
    @stopped = $runner->run(graph_id => 'counter', input => { n => 1, steps => [] }, interrupt_after => '*');
    is_deeply +(lines_of('checkpoint', @stopped))[-1]{next}, ['double'], 'breakpoint: interrupt_after `*` stops the run after its first node';

    # --- Earlier checkpoints -----------------------------------------------------------------

    # From the checkpoint with that number of a run's: the head of the thread is a later one.
    my $from = sub {
        my ($number, $run_lines, @fields) = @_;
        my $checkpoint = (lines_of('checkpoint', @{$run_lines}))[$number];
        return $runner->run(graph_id => 'counter', @fields, $runner->next_run($start->{thread_id}, $checkpoint->{checkpoint_id}));
    };
    my @branch = $from->(2, \@lines, input => undef);
    is_deeply [ map { "$_->{metadata}{source} $_->{values}{n}" } lines_of('checkpoint', @branch) ],
        [ ('fork 2') x ($version eq 'newest'), 'loop 4' ], 'earlier checkpoint: its node is executed again, on a copy where the library makes one';
    is +(lines_of('checkpoint', @branch))[0]{parent}, $checkpoints[2]{checkpoint_id}, 'earlier checkpoint: it is the parent';
    my @twice = map { (lines_of('put', $from->(2, \@lines, input => undef)))[-1]{checkpoint}{channel_versions}{n} } 1, 2;
    isnt $twice[0], $twice[1], 'earlier checkpoint: the same step of two branches has other versions of the channels';
    @branch = $from->(3, \@lines, input => { n => 7 });
    is +(lines_of('checkpoint', @branch))[0]{parent}, $checkpoints[3]{checkpoint_id}, 'earlier checkpoint: input goes on from it';
    is scalar @{ (lines_of('checkpoint', @branch))[-1]{values}{steps} }, 4, 'earlier checkpoint: the run has its state';
    my $first_id = $checkpoints[1]{checkpoint_id};
    my $named = { configurable => { checkpoint_id => $first_id } };
    @branch = $from->(1, \@lines, input => undef, attempt => 2, config => $named);
    is +(lines_of('checkpoint', @branch))[0]{parent}, $first_id, 'earlier checkpoint: a second attempt starts from it if the first has saved nothing';
    my @again = $runner->run(graph_id => 'counter', input => undef, attempt => 2, config => $named, $runner->next_run($start->{thread_id}));
    is scalar(lines_of('checkpoint', @again)), 0, 'earlier checkpoint: a second attempt goes on from what the first has saved';
    for my $case ([ 'a graph in JavaScript', 'javascript' ], [ 'a built-in graph', undef ], [ 'another runner', 'other' ]) {
        my ($writer, $format) = @{$case};
        for my $attempt (1, 2) {
            my %next = $runner->next_run($start->{thread_id});
            my @foreign = $runner->run(graph_id => 'counter', input => { n => 1 }, attempt => $attempt, %next,
                checkpoint => { %{ $next{checkpoint} }, format => $format });
            is_deeply [ @{ $foreign[-1]{error} }{qw(error message)}, scalar lines_of('checkpoint', @foreign) ],
                [ 'ForeignStateError', "$writer has saved the state of the thread, which no graph in Python can continue", 0 ],
                "format: attempt $attempt does not continue the state that $writer has saved";
        }
    }

    # --- Commands, limits, context --------------------------------------------------------

    my @went = $runner->run(graph_id => 'counter', command => { update => { n => 50 }, goto => 'double' },
        $runner->next_run($start->{thread_id}));
    is +(lines_of('checkpoint', @went))[-1]{values}{n}, 100, 'command: it updates the state and goes to a node';
    my @endless = $runner->run(graph_id => 'endless', input => { n => 0 }, config => { recursion_limit => 5 });
    is $endless[-1]{error}{error}, 'GraphRecursionError', 'recursion limit: the error has its name';
    is_deeply [ map { $_->{error} } events_of('error', @endless) ], ['GraphRecursionError'],
        'recursion limit: the stream ends with the error';
    my @context = $runner->run(graph_id => 'faulty', input => { do => 'context' },
        config => { configurable => { color => 'red', __pregel_task_id => 'x' } }, context => { size => 1, langgraph_auth_user_id => 'x' });
    my %seen = map { $_ => 1 } @{ (lines_of('checkpoint', @context))[-1]{values}{result} };
    ok $seen{color} && $seen{size} && $seen{thread_id}, 'config: the client\'s values and the ids reach the node';
    ok !$seen{langgraph_auth_user_id}, 'config: no authenticated user is taken from a context';
    my @user = $runner->run(graph_id => 'faulty', input => { do => 'user' }, config => { configurable => {
        langgraph_auth_user_id => 'ann', langgraph_auth_user => { identity => 'ann', permissions => ['run'] } } });
    is_deeply +(lines_of('checkpoint', @user))[-1]{values}{result}, [ 'ann', ['run'], 'ann', Cpanel::JSON::XS::true, 'ann', Cpanel::JSON::XS::false ],
        'config: the user that the server has authenticated reaches the node, and the library';
    for my $members (256, 257) {
        @context = $runner->run(graph_id => 'faulty', input => { do => 'context' }, context => { map { ("m$_" => 1) } 1 .. $members });
        is scalar(grep { /\Am\d/ } @{ (lines_of('checkpoint', @context))[-1]{values}{result} }), $members == 256 ? 256 : 0,
            "config: a context of $members members is " . ($members == 256 ? 'in configurable too' : 'not in configurable');
    }
    is $context[-1]{status}, 'success', 'config: the library\'s own names are not taken from clients';

    # --- Durability -------------------------------------------------------------------------

    my @exit = $runner->run(graph_id => 'counter', input => { n => 1, steps => [] }, durability => 'exit', %{$OPTIONS});
    is scalar(lines_of('put', @exit)), 1, 'durability exit: one checkpoint is put';
    is_deeply [ map { $_->{values}{n} } lines_of('checkpoint', @exit) ], [4], 'durability exit: that checkpoint is shown';
    is_deeply [ map { $_->{n} } events_of('values', @exit) ], [ 1, 2, 4 ], 'durability exit: events have the values of each step';
    my @sync = $runner->run(graph_id => 'counter', input => { n => 1, steps => [] }, durability => 'sync');
    is scalar(grep { defined $_->{ack} } lines_of('put', @sync)), 4, 'durability sync: each put is acknowledged';
    is $sync[-1]{status}, 'success', 'durability sync: the run succeeds';
    @exit = $runner->run(graph_id => 'approve', input => { n => 0, steps => [] }, durability => 'exit');
    ok +(grep { @{ $_->{task}{interrupts} } } lines_of('task', @exit)), 'durability exit: an interrupt is shown';

    # --- Sizes ---------------------------------------------------------------------------------

    my @deep = $runner->run(graph_id => 'deep', input => { n => 0 });
    is +(lines_of('checkpoint', @deep))[-1]{values}{n}, 1, 'ten levels of subgraphs';
    my %levels = map { ($_->{ns} // '') => 1 } lines_of('checkpoint', @deep);
    is scalar keys %levels, 10, 'ten levels of subgraphs: each has checkpoints';
    my @many = $runner->run(graph_id => 'fan', input => { n => 200, steps => [] });
    is scalar @{ (lines_of('checkpoint', @many))[-1]{values}{steps} }, 200, '200 branches at once';
    my $big = $runner->start_of('large', input => { n => 6000 });
    $runner->send($big);
    my @big = $runner->lines_of_run($big->{run_id});
    is scalar @{ (lines_of('checkpoint', @big))[-1]{values}{items} }, 6000, 'a state of 6 MB';
    is +(lines_of('checkpoint', @big))[-1]{values}{data}, 'AP8gYnl0ZXM=', 'bytes are shown in base64';
    @big = $runner->run(graph_id => 'large', input => { n => 1 }, $runner->next_run($big->{thread_id}));
    is +(lines_of('checkpoint', @big))[-1]{sent}{items}{'$list'}{keep}, 6000, 'a state of 6 MB: the next run sends what it adds';

    # --- How graphs are made ------------------------------------------------------------------

    my %made = (made => ' plain', made_async => ' later', made_in_context => ' in context', uncompiled => ' uncompiled',
        packaged => ' packaged', made_with_config => ' given');
    for my $name (sort keys %made) {
        my @run = $runner->run(graph_id => $name, input => { text => 'x' }, config => { configurable => { suffix => 'given' } });
        is +(lines_of('checkpoint', @run))[-1]{values}{text}, "x$made{$name}", "$name: the graph is made and runs";
    }
    like $runner->log_text, qr/context begins\n(?:.*\n)*?.*context ends/, 'made_in_context: the context lasts as long as the run';
    my @sequence = $runner->run(graph_id => 'sequence', input => 'ab', %{$OPTIONS});
    is $sequence[-1]{status}, 'success', 'functional API: it runs';
    is_deeply +(lines_of('checkpoint', @sequence))[-1]{values}, { __root__ => 'abab' }, 'functional API: its value is shown';

    # --- The end ---------------------------------------------------------------------------------

    $runner->send({ type => 'drain' });
    is $runner->finish, 0, 'drain: the runner exits with status 0';
});

done_testing;
