# SPDX-License-Identifier: Apache-2.0
# Reading: thread state, join, the end of a stream.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Play;

my $db = AgentSQL->new;
my $session = $db->session;
my $play = AgentSQL::Play->new($session);
my $deployment = $play->deployment;
my $worker = $play->worker;

sub leased { return $play->leased($worker, @_) }

subtest 'a thread without checkpoints has an empty state with all fields' => sub {
    my $state = $play->body('get_state', $play->thread, undef);
    is_deeply $state, {
        values => {}, next => [], tasks => [], metadata => {}, created_at => undef, checkpoint_id => undef,
        parent_checkpoint_id => undef, checkpoint => undef, parent_checkpoint => undef, interrupts => [],
    };
};

subtest 'a state has the members of the API, in its old and new form' => sub {
    my $thread = $play->thread(metadata => { t => 1 });
    my $claim = leased($thread, user => 'u1', request => { metadata => { r => 1, step => 'forged' } });
    my @ids = map { AgentSQL::uuid() } 1, 2;
    $play->save($worker,
        AgentSQL::Play::checkpoint($claim, id => $ids[0], messages => ['q'], source => 'input', step => -1),
        AgentSQL::Play::checkpoint($claim, id => $ids[1], parent => $ids[0], messages => [ 'q', 'a' ], step => 0,
            next => ['tools'], tasks => [ { id => 't1', name => 'tools', error => undef, interrupts => [] } ],
            writes => { agent => { messages => ['a'] } }));
    my ($code, $body) = $play->session->call('get_state', $AgentSQL::DEPLOYMENT, $thread, undef);
    my $state = AgentSQL::decode($body);
    is_deeply $state->{values}, { messages => [ map { AgentSQL::Play::human($_) } 'q', 'a' ] };
    is_deeply $state->{next}, ['tools'];
    is $state->{tasks}[0]{id}, 't1';
    is_deeply $state->{metadata}, {
        source => 'loop', step => 0, writes => { agent => { messages => ['a'] } }, parents => {},
        run_id => $claim->{run_id}, user_id => 'u1', graph_id => 'agent', thread_id => $thread,
        created_by => 'system', assistant_id => $AgentSQL::ASSISTANT, t => 1, r => 1,
    }, 'metadata of the run, of the thread and of the step; the step\'s own cannot be forged';
    like $state->{created_at}, qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00$/;
    is $state->{checkpoint_id}, $ids[1];
    is $state->{parent_checkpoint_id}, $ids[0];
    is_deeply $state->{checkpoint},
        { thread_id => $thread, checkpoint_ns => '', checkpoint_id => $ids[1], checkpoint_map => undef };
    is $state->{parent_checkpoint}{checkpoint_id}, $ids[0];
    like $body, qr/, "interrupts" : \[.*\], "values" : \{"messages":\[.*\]\}\}\z/, 'values come last';

    my $older = $play->body('get_state', $thread, $ids[0]);
    is_deeply $older->{values}, { messages => [ AgentSQL::Play::human('q') ] }, 'an older state is found by its checkpoint';
    is $older->{parent_checkpoint}, undef;
    is +($play->api('get_state', $thread, AgentSQL::uuid()))[0], 'checkpoint_not_found';
    $play->save($worker, AgentSQL::Play::finish($claim));
};

# A thread with checkpoints of the root graph and of a subgraph; [thread, root ids, ids of the subgraph].
sub with_subgraph {
    my $claim = leased($play->thread);
    my @root = map { AgentSQL::uuid() } 1 .. 3;
    my @below = map { AgentSQL::uuid() } 1, 2;
    my $item = sub {
        my ($id, $parent, $ns, $step) = @_;
        return AgentSQL::Play::checkpoint($claim, id => $id, parent => $parent, ns => $ns, step => $step,
            writes => { agent => { step => $step } }, messages => [ map { "$ns$_" } 0 .. $step ]);
    };
    $play->save($worker, $item->($root[0], undef, '', 0), $item->($root[1], $root[0], '', 1), $item->($root[2], $root[1], '', 2),
        $item->($below[0], undef, 'a.b:1', 0), $item->($below[1], $below[0], 'a.b:1', 1), AgentSQL::Play::finish($claim));
    return ($claim->{thread_id}, \@root, \@below);
}

subtest 'a state of a subgraph is found by its namespace' => sub {
    my ($thread, $root, $below) = with_subgraph();
    my $at = sub { return $play->api('get_state', $thread, undef, undef, AgentSQL::encode({ checkpoint => {@_} })) };
    my ($code, $state) = $at->(checkpoint_ns => 'a.b:1');
    is_deeply [ map { $state->{$_}{checkpoint_id} } qw(checkpoint parent_checkpoint) ], [ reverse @$below ],
        'a state of a subgraph without an id is the last one of its namespace';
    is $state->{checkpoint}{checkpoint_ns}, 'a.b:1', 'the reference names the namespace';
    is_deeply [ map { $_->{content} } @{ $state->{values}{messages} } ], [qw(a.b:10 a.b:11)], 'the values are those of the subgraph';
    is +($at->(checkpoint_ns => 'a.b:1', checkpoint_id => $below->[0]))[1]{checkpoint_id}, $below->[0], 'an id selects one of them';
    is +($at->(checkpoint_ns => 'a.b:1', checkpoint_map => { 'a.b:1' => $below->[0] }))[1]{checkpoint_id}, $below->[0],
        'checkpoint_map may have the id';
    is +($at->())[1]{checkpoint_id}, $root->[2], 'a state without a namespace is the head';
    is +($at->(checkpoint_id => $root->[0]))[1]{checkpoint_id}, $root->[0], 'an id of the root graph';
    is +($at->(@$_))[0], 'checkpoint_not_found', "no checkpoint is found: @$_"
        for [ checkpoint_ns => 'x' ], [ checkpoint_id => $below->[0] ], [ checkpoint_ns => 'a.b:1', checkpoint_id => $root->[0] ];
    # In parts.
    my @row = $session->query("select body, cursor from agent.get_state('$deployment', '$thread', null, 10, '{\"checkpoint\":{\"checkpoint_ns\":\"a.b:1\"}}')");
    my ($text, $cursor) = @{ $row[0] };
    my $parts = '';
    while (length $cursor) {
        my ($part) = $session->query("select code, body, cursor from agent.read_values('$deployment', '$thread', '$cursor', 20)");
        is $part->[0], 'ok', 'a part of the values of a subgraph is read';
        $parts .= $part->[1];
        $cursor = $part->[2];
    }
    $text =~ s/\x01/$parts/;
    is_deeply AgentSQL::decode($text), $state, 'the parts are the values of the subgraph';
};

subtest 'a state without names is its value alone' => sub {
    for my $value ('abab', [ map { "element $_" } 1 .. 9 ], { a => 1, b => [ 2, 3 ] }, 5, undef) {
        my $shown = AgentSQL::encode($value);
        my ($thread, $id, $next) = ($play->thread, AgentSQL::uuid(), AgentSQL::uuid());
        my $claim = leased($thread);
        $play->save($worker, AgentSQL::Play::checkpoint($claim, id => $id, values => { __root__ => $value }), AgentSQL::Play::finish($claim));
        is_deeply $play->body('get_state', $thread, undef)->{values}, $value, "get_state: $shown";
        is_deeply $play->body('get_thread', $thread)->{values}, $value, "get_thread: $shown";
        is_deeply +($play->api('join_run', $thread, $claim->{run_id}))[1], $value // 'null', "join_run: $shown";
        my $in_parts = sub {
            my ($text, $cursor, $query) = @_;
            my $parts = '';
            while (length $cursor) {
                my ($part) = $session->query($query->($cursor));
                $parts .= $part->[0];
                $cursor = $part->[1];
            }
            return AgentSQL::decode($text =~ s/\x01/$parts/r . ($text =~ /\x01/ ? '' : $parts));
        };
        my $row = ($session->query("select body, cursor from agent.get_state('$deployment', '$thread', null, 1)"))[0];
        is_deeply $in_parts->(@$row, sub { "select body, cursor from agent.read_values('$deployment', '$thread', '$_[0]', 9)" })->{values},
            $value, "in parts: $shown";
        is_deeply $in_parts->('', '1.0', sub {
            "select body, cursor from agent.read_page('$deployment', 'threads', null, '{$thread}', '{}', '{}', '$_[0]', 9)" })->{values},
            $value, "as a record of a list: $shown";
        $claim = leased($thread);
        $play->save($worker, AgentSQL::Play::checkpoint($claim, id => $next, parent => $id, values => { __root__ => $value }, next => ['a'],
            tasks => [ { id => 't', name => 'a', interrupts => [ { id => 'i', value => 1 } ] } ]), AgentSQL::Play::finish($claim));
        is_deeply +($play->api('join_run', $thread, $claim->{run_id}))[1]->{__interrupt__}, [ { id => 'i', value => 1 } ],
            "an interrupt takes its place: $shown";
    }
};

subtest 'a state has the members that are selected' => sub {
    my ($thread, $root) = with_subgraph();
    my $select = sub { return $play->body('get_state', $thread, undef, undef, AgentSQL::encode({ select => $_[0] })) };
    is_deeply $select->('next'), { next => [] }, 'one word';
    is_deeply [ sort keys %{ $select->([ 'values', 'checkpoint_id' ]) } ], [qw(checkpoint_id values)], 'a list of words';
    is_deeply $select->(['values']), { values => { messages => [ map { AgentSQL::Play::human($_) } 0 .. 2 ] } }, 'the values alone';
    is_deeply $select->([]), $play->body('get_state', $thread, undef), 'an empty list is all';
};

subtest 'only so many namespaces are looked for' => sub {
    my ($thread) = with_subgraph();
    my $call = sub {
        return ($session->query("select json_array_length(s.tasks), s.left_bytes from agent.add_subgraphs('$deployment', '$thread', '', (
            select json_agg(json_build_object('checkpoint', json_build_object('checkpoint_ns', 'none' || n)))
              from generate_series(1, $_[0]) n), 16777216, 10) s"))[0];
    };
    cmp_ok $call->(100)->[1], '>', 0;
    is_deeply $call->(20_000), [ 20_000, -1 ], 'states beyond them are left out, as beyond their bytes';
};

subtest 'tasks show the states of their subgraphs' => sub {
    my $claim = leased($play->thread);
    my $thread = $claim->{thread_id};
    my $task = sub { my ($ns) = @_; return { id => "t$ns", name => 'x', interrupts => [], checkpoint => { checkpoint_ns => $ns }, state => undef } };
    my $save = sub {
        my ($ns, @below) = @_;
        my $id = AgentSQL::uuid();
        $play->save($worker, AgentSQL::Play::checkpoint($claim, id => $id, ns => $ns, messages => ["in $ns"],
            tasks => [ (map { $task->($_) } @below), { id => 'plain', name => 'p', checkpoint => undef } ]));
        return $id;
    };
    $save->('a:1|b:2');
    my $inner = $save->('a:1|b:2', 'a:1', 'x:9', 'a:1|b:2');
    my $middle = $save->('a:1', 'a:1|b:2');
    my $root = $save->('', 'a:1', 'gone:1');
    my $deep = sub { return $play->api('get_state', $thread, $_[0], $_[1], AgentSQL::encode({ subgraphs => \1, @_[ 2 .. $#_ ] })) };
    my $state = ($deep->(undef))[1];
    is_deeply [ map { $_->{id} } @{ $state->{tasks} } ], [qw(ta:1 tgone:1 plain)], 'the tasks keep their order';
    is_deeply [ map { $_->{state} } @{ $state->{tasks} }[ 1, 2 ] ], [ undef, undef ], 'one without a state has none';
    my $first = $state->{tasks}[0]{state};
    is_deeply [ $first->{checkpoint}{checkpoint_ns}, $first->{checkpoint_id} ], [ 'a:1', $middle ], 'a task has the state of its subgraph';
    is_deeply $first->{values}{messages}[0]{content}, 'in a:1', 'a task shows the values of the state of its subgraph';
    my $second = $first->{tasks}[0]{state};
    is $second->{checkpoint_id}, $inner, 'tasks of a subgraph show the last states of their own subgraphs';
    is_deeply [ map { $_->{state} } @{ $second->{tasks} } ], [ (undef) x 4 ], 'names that lead back are not followed';
    is_deeply +($deep->($root))[1], $state, 'a state at a checkpoint shows the same states of subgraphs';
    is_deeply +($deep->(undef, 100_000))[1], $state, 'a small state with subgraphs is composed at once';
    is +($deep->(undef, 600))[1] // '', '', 'a larger state with subgraphs is not composed at once';
    is +($deep->(undef, 10))[1] // '', '', 'a state whose own values are larger is not composed at once';
    is_deeply +($deep->(undef, undef, select => ['next']))[1], { next => [] }, 'select';
    ok !defined $play->body('get_state', $thread, undef)->{tasks}[0]{state}, 'without subgraphs a task has no state';
    $play->save($worker, AgentSQL::Play::finish($claim));
};

subtest 'the history of a thread has its checkpoints, newest first' => sub {
    my ($thread, $root, $below) = with_subgraph();
    my $history = sub { my (%request) = @_; return $play->api('get_history', $thread, AgentSQL::encode(\%request)) };
    my $ids = sub { return [ map { $_->{checkpoint_id} } @{ ($history->(@_))[1] } ] };
    is_deeply $ids->(), [ reverse @$root ], 'all of the root graph';
    is_deeply +($history->(limit => 1))[1], [ $play->body('get_state', $thread, undef) ], 'each is the state at that checkpoint';
    my $next = sub {
        my ($row) = $session->query("select coalesce(next, '') from agent.get_history('$deployment', '$thread', '{\"limit\":$_[0]}')");
        return $row->[0];
    };
    is_deeply $ids->(limit => 2), [ @$root[ 2, 1 ] ], 'limit';
    is $next->(2), $root->[1], 'where the next page begins';
    for my $before ($root->[1], { checkpoint_id => $root->[1] }, { configurable => { checkpoint_id => $root->[1] } }) {
        is_deeply $ids->(before => $before), [ $root->[0] ], 'before: ' . (ref $before ? join ' ', keys %$before : 'an id');
    }
    is $next->(3), undef, 'no page follows the last one';
    is_deeply $ids->(metadata => { step => 1 }), [ $root->[1] ], 'metadata of the checkpoint';
    is_deeply $ids->(metadata => { parents => {}, step => 1 }), $ids->(metadata => { step => 1 }), 'an object in the metadata';
    is_deeply $ids->(metadata => { step => [1] }), [], 'an array that none has';
    is_deeply $ids->(metadata => { writes => { agent => {} } }), [], 'an object is equal as a whole';
    is_deeply $ids->(metadata => { thread_id => $thread, step => 9 }), [], 'metadata that none has';
    is_deeply $ids->(checkpoint => { checkpoint_ns => 'a.b:1' }), [ reverse @$below ], 'of a subgraph';
    is_deeply $ids->(checkpoint => { checkpoint_id => $root->[0] }), [ $root->[0] ], 'of one checkpoint';
    is_deeply +($history->(select => ['next'], limit => 1))[1], [ { next => [] } ], 'select';
    is_deeply +($history->())[1], +($play->api('get_history', $thread, '{}', 100_000))[1], 'a small history is composed at once';
    is +($play->api('get_history', $thread, '{}', 300))[1] // '', '', 'a larger history is not composed at once';
    is_deeply +($play->api('get_history', $play->thread, '{}'))[1], [], 'a thread without checkpoints has none';
    is +($play->api('get_history', AgentSQL::uuid(), '{}'))[0], 'thread_not_found', 'an unknown thread';
};

subtest 'a page of the history ends after 10,000 checkpoints, or 16 MB of their metadata, that do not match' => sub {
    for my $case ([ 10_003, 1, 3 ], [ 23, 1_000_000, 7 ]) {
        my ($count, $bytes, $last) = @$case;
        my $thread = $play->thread;
        my $id = sub { return sprintf '00000000-0000-7000-8000-%012d', $_[0] };
        $session->query("insert into agent.checkpoints (deployment_id, thread_id, checkpoint_ns, checkpoint_id, channels, next, tasks, metadata,
            state_bytes, created_at)
            select '$deployment', '$thread', '', ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, '{}', '[]', '[]',
                json_build_object('step', n, 'text', repeat('x', $bytes)), 2, now()
            from generate_series(1, $count) n");
        my $page = sub {
            my $request = AgentSQL::Session::literal(AgentSQL::encode({ metadata => { step => 1 }, before => $_[0] }));
            my ($row) = $session->query("select code, body, next from agent.get_history('$deployment', '$thread', $request)");
            return ($row->[0], [ map { $_->{metadata}{step} } @{ AgentSQL::decode($row->[1]) } ], $row->[2]);
        };
        is_deeply [ $page->() ], [ 'ok', [], $id->($last) ], "a page without a match of $count checkpoints with $bytes bytes ends at checkpoint $last";
        is_deeply [ $page->($id->($last)) ], [ 'ok', [1], '' ], "the page after checkpoint $last of $count has the one that matches";
    }
};

subtest 'metadata of a state has each member once, whatever the runner sends' => sub {
    my $claim = leased($play->thread);
    my $item = AgentSQL::Play::checkpoint($claim);
    $item->{m}{metadata}{run_id} = 'forged';
    $play->save($worker, $item, AgentSQL::Play::finish($claim));
    my ($code, $body) = $play->session->call('get_state', $AgentSQL::DEPLOYMENT, $claim->{thread_id}, undef);
    is_deeply [ $body =~ /"run_id" : "([^"]*)"/g ], [ $claim->{run_id} ];
};

subtest 'state, thread and join show the interrupts of tasks' => sub {
    my $claim = leased($play->thread);
    my ($thread, $run) = @$claim{qw(thread_id run_id)};
    my $interrupt = { id => 'i1', value => 'sure?' };
    $play->save($worker,
        AgentSQL::Play::checkpoint($claim, messages => ['q'], next => ['ask'], tasks => [
            { id => 't1', name => 'ask', interrupts => [$interrupt] }, { id => 't2', name => 'other', interrupts => [] } ]),
        AgentSQL::Play::finish($claim));
    is_deeply $play->body('get_state', $thread, undef)->{interrupts}, [$interrupt];
    is_deeply $play->body('get_thread', $thread)->{interrupts}, { t1 => [$interrupt] };
    is_deeply $play->body('join_run', $thread, $run),
        { messages => [ AgentSQL::Play::human('q') ], __interrupt__ => [$interrupt] };
};

subtest 'join of a run at a static breakpoint has no __interrupt__' => sub {
    my $claim = leased($play->thread);
    $play->save($worker,
        AgentSQL::Play::checkpoint($claim, values => {}, next => ['tools']),
        AgentSQL::Play::finish($claim));
    is_deeply $play->body('join_run', @$claim{qw(thread_id run_id)}), {};
};

subtest 'join adds no __interrupt__ for a value that contains the word' => sub {
    my $claim = leased($play->thread);
    $play->save($worker,
        AgentSQL::Play::checkpoint($claim, messages => ['__interrupt__']),
        AgentSQL::Play::finish($claim));
    is_deeply $play->body('join_run', @$claim{qw(thread_id run_id)}),
        { messages => [ AgentSQL::Play::human('__interrupt__') ] };
};

subtest 'join of a cancelled run has no __interrupt__' => sub {
    my $claim = leased($play->thread);
    $play->api('cancel_run', @$claim{qw(thread_id run_id)}, 'interrupt');
    $play->save($worker,
        AgentSQL::Play::checkpoint($claim, messages => ['partial'], next => ['agent']),
        AgentSQL::Play::finish($claim, 'interrupted'));
    is_deeply $play->body('join_run', @$claim{qw(thread_id run_id)}), { messages => [ AgentSQL::Play::human('partial') ] };
};

subtest 'join returns waiting while the run is not final, and writes nothing' => sub {
    my $claim = leased($play->thread);
    my ($thread, $run) = @$claim{qw(thread_id run_id)};
    my $session = $play->session;
    $session->query('begin transaction read only');
    is +($play->join($thread, $run))[0], 'waiting';
    is_deeply [ $play->poll($thread, $run, -1) ], [];
    $session->query('commit');
    $play->save($worker, AgentSQL::Play::finish($claim));
    is_deeply [ $play->join($thread, $run) ], [ 'ok', 'null' ], 'a run without a state is null';
    is +($play->join($thread, AgentSQL::uuid()))[0], 'run_not_found';
};

subtest 'join of a run that saved no checkpoint shows the values of the thread' => sub {
    my $claim = leased(my $thread = $play->thread);
    my $waiting = $play->run($thread);
    $play->save($worker, AgentSQL::Play::checkpoint($claim, messages => ['kept']), AgentSQL::Play::finish($claim));
    $play->api('cancel_run', $thread, $waiting, 'interrupt');
    is_deeply $play->body('join_run', $thread, $waiting), { messages => [ AgentSQL::Play::human('kept') ] };
};

subtest 'join of a run whose checkpoints prune has deleted is null' => sub {
    my $thread = $play->thread;
    my @claims;
    for my $n (1, 2) {
        push @claims, leased($thread);
        $play->save($worker, AgentSQL::Play::checkpoint($claims[-1], messages => [$n]), AgentSQL::Play::finish($claims[-1]));
    }
    my $none = leased($thread);
    $play->save($worker, AgentSQL::Play::finish($none));
    is +($play->api('prune_thread', $thread, undef))[0], 'ok';
    is_deeply [ $play->join($thread, $claims[0]{run_id}) ], [ 'ok', 'null' ], 'join of a pruned run is null, not the values of another run';
    is_deeply $play->body('join_run', $thread, $_->{run_id}), { messages => [ AgentSQL::Play::human(2) ] } for $claims[1], $none;
};

subtest 'join of a failed run shows its error, whatever it saved' => sub {
    for my $status (qw(error timeout)) {
        my $claim = leased($play->thread);
        $play->save($worker, AgentSQL::Play::checkpoint($claim, messages => ['partial'], next => ['agent']),
            AgentSQL::Play::finish($claim, $status, { error => 'E', message => 'm' }));
        is_deeply $play->body('join_run', @$claim{qw(thread_id run_id)}), { __error__ => { error => 'E', message => 'm' } };
    }
};

subtest 'join shows the feedback addresses of a run that succeeded' => sub {
    my @with = (feedback => 'https://f/{run_id}/{key}', request => { feedback_keys => [ 'a', "\x{e9} /" ] });
    my $claim = leased($play->thread, @with);
    my $run = $claim->{run_id};
    $play->save($worker, AgentSQL::Play::checkpoint($claim, messages => ['x']), AgentSQL::Play::finish($claim));
    my $feedback = { a => "https://f/$run/a", "\x{e9} /" => "https://f/$run/%C3%A9%20%2F" };
    is_deeply $play->body('join_run', @$claim{qw(thread_id run_id)}),
        { messages => [ AgentSQL::Play::human('x') ], __feedback__ => $feedback };
    my @events = $play->events(@$claim{qw(thread_id run_id)});
    is_deeply [ map { [ @$_[ 0, 1 ] ] } @events ], [ [ 0, 'feedback' ] ], 'feedback is the last event of the run';
    is_deeply AgentSQL::decode($events[0][2]), $feedback;

    my $failed = leased($play->thread, @with);
    $play->save($worker, AgentSQL::Play::finish($failed, 'error'));
    is_deeply [ $play->events(@$failed{qw(thread_id run_id)}) ], [], 'a run that failed has no feedback event';
    my $plain = leased($play->thread, request => { feedback_keys => ['a'] });
    $play->save($worker, AgentSQL::Play::finish($plain));
    is_deeply [ $play->events(@$plain{qw(thread_id run_id)}) ], [], 'a run without a feedback URL has no feedback event';
    my $empty = leased($play->thread, feedback => 'https://f/{key}', request => { feedback_keys => [] });
    $play->save($worker, AgentSQL::Play::finish($empty));
    is_deeply [ $play->events(@$empty{qw(thread_id run_id)}) ], [], 'a run without feedback keys has no feedback event';
};

subtest 'the feedback event follows the events of the last batch, once' => sub {
    my $claim = leased($play->thread, feedback => 'https://f/{key}', request => { feedback_keys => ['a'] });
    my @last = (AgentSQL::Play::event($claim, 0, 'metadata', {}), AgentSQL::Play::event($claim, 1, 'custom', 1), AgentSQL::Play::finish($claim));
    $play->save($worker, @last);
    $play->save($worker, @last);
    is_deeply [ map { [ @$_[ 0, 1, 3 ] ] } $play->poll(@$claim{qw(thread_id run_id)}, -1) ],
        [ [ 0, 'metadata', '' ], [ 1, 'custom', '' ], [ 2, 'feedback', '' ], [ 2, '', 'success' ] ];
};

subtest 'join shows the state at the end of that run, not a later one' => sub {
    my $thread = $play->thread;
    my @claims;
    for my $n (1, 2) {
        push @claims, leased($thread);
        $play->save($worker, AgentSQL::Play::checkpoint($claims[-1], messages => [$n]), AgentSQL::Play::finish($claims[-1]));
    }
    is_deeply $play->body('join_run', $thread, $claims[0]{run_id}), { messages => [ AgentSQL::Play::human(1) ] };
};

subtest 'join shows the error of a failed run, the state that of its task' => sub {
    my $claim = leased($play->thread);
    my ($thread, $run) = @$claim{qw(thread_id run_id)};
    my $error = { error => 'ModelError', message => 'The model refused.' };
    my $id = AgentSQL::uuid();
    $play->save($worker,
        AgentSQL::Play::checkpoint($claim, id => $id, messages => ['q'], next => ['agent'],
            tasks => [ { id => 't1', name => 'agent', error => undef, interrupts => [] } ]),
        AgentSQL::Play::task($claim, $id, { id => 't1', name => 'agent', error => 'It refused.', interrupts => [] }),
        AgentSQL::Play::finish($claim, 'error', $error));
    is_deeply $play->body('join_run', $thread, $run), { __error__ => $error };
    is_deeply $play->body('get_state', $thread, undef)->{tasks},
        [ { id => 't1', name => 'agent', error => 'It refused.', interrupts => [] } ];
};

# A leased run with a checkpoint that has tasks of these ids; (claim, id of the checkpoint).
sub with_tasks {
    my ($thread, @ids) = @_;
    my $claim = leased($thread);
    my $id = AgentSQL::uuid();
    $play->save($worker, AgentSQL::Play::checkpoint($claim, id => $id, messages => ['q'], next => [ map { 'node' } @ids ],
        tasks => [ map { { id => $_, name => 'node', error => undef, interrupts => [], result => undef } } @ids ]));
    return ($claim, $id);
}

sub tasks_of { return $play->body('get_state', $_[0]{thread_id}, $_[1])->{tasks} }

subtest 'the state shows the results, errors and interrupts of tasks as they end' => sub {
    my ($claim, $id) = with_tasks($play->thread, 'a', 'b', 'c');
    my $interrupt = { id => 'i1', value => 'sure?' };
    is_deeply $play->save($worker, AgentSQL::Play::task($claim, $id, { id => 'b', result => { x => 1 } })),
        { $claim->{run_id} => [ 'saved', 'f' ] };
    is_deeply tasks_of($claim, $id)->[1],
        { id => 'b', name => 'node', error => undef, interrupts => [], result => { x => 1 } };
    $play->save($worker,
        AgentSQL::Play::task($claim, $id, { id => 'c', error => 'first' }),
        AgentSQL::Play::task($claim, $id, { id => 'c', interrupts => [$interrupt] }),
        AgentSQL::Play::task($claim, $id, { id => 'none', error => 'no such task' }),
        AgentSQL::Play::task($claim, AgentSQL::uuid(), { id => 'a', error => 'no such checkpoint' }),
        AgentSQL::Play::task($claim, $id, { id => 'a', error => 'another namespace' }, ns => 'sub'),
        AgentSQL::Play::finish($claim));
    is_deeply [ map { [ @$_{qw(id error interrupts result)} ] } @{ tasks_of($claim, $id) } ],
        [ [ 'a', undef, [], undef ], [ 'b', undef, [], { x => 1 } ], [ 'c', undef, [$interrupt], undef ] ],
        'the last report about a task counts; tasks that do not exist change nothing';
    is_deeply $play->body('get_state', $claim->{thread_id}, undef)->{interrupts}, [$interrupt];
    is_deeply $play->body('get_thread', $claim->{thread_id})->{interrupts}, { c => [$interrupt] };
    is_deeply $play->body('join_run', @$claim{qw(thread_id run_id)})->{__interrupt__}, [$interrupt];
};

# A report of the state with pending writes ('f'), or of the update of a command (0).
sub report {
    my ($digit, $claim, $id, %members) = @_;
    return AgentSQL::Play::task($claim, $id, { id => join('-', map { $digit x $_ } 8, 4, 4, 4, 12), %members });
}

sub shown { my ($thread, @at) = @_; my $state = $play->body('get_state', $thread, @at ? @at : undef); return [ @$state{qw(values next)} ] }

subtest 'the state without an id has the pending writes of its tasks, as the last run that stopped there reported them' => sub {
    my $thread = $play->thread;
    my $claim = leased($thread);
    my ($before, $id) = map { AgentSQL::uuid() } 1, 2;
    my $long = 'x' x 300;
    my $values = sub { return { log => $_[0], n => 1, long => $long, marked => { '$value' => { '$same' => \1 } } } };
    $play->save($worker,
        AgentSQL::Play::checkpoint($claim, id => $before, values => $values->([ 'a', $long ]), next => ['a']),
        AgentSQL::Play::checkpoint($claim, id => $id, parent => $before, next => [ 'b', 'c' ],
            values => { %{ $values->({ '$list' => { keep => 2, items => [ 'b', 'c' ] } }) }, long => { '$same' => \1 } }));
    my $old = { %{ $values->([ 'a', $long, 'b', 'c' ]) }, marked => { '$same' => Cpanel::JSON::XS::true() } };
    is_deeply shown($thread), [ $old, [ 'b', 'c' ] ], 'without a report it is the checkpoint';

    my %difference = (n => 2, long => { '$same' => \1 }, marked => { '$same' => \1 }, new => { '$value' => { '$same' => 7 } });
    my $expected = { %$old, n => 2, new => { '$same' => 7 } };
    for my $case ([ 3, ['d'], [ 'a', $long, 'b', 'd' ] ], [ 4, [ 'd', 'e' ], [ 'a', $long, 'b', 'c', 'd', 'e' ] ], [ 0, [], [] ],
        [ 99, ['d'], [ 'a', $long, 'b', 'c', 'd' ] ], [ 1, {}, ['a'] ], [ 'x', ['d'], ['d'] ])
    {
        my ($keep, $items, $list) = @$case;
        $play->save($worker, report('f', $claim, $id, next => ['c'],
            values => { %difference, log => { '$list' => { keep => $keep, items => $items } }, none => { '$same' => \1 } }));
        is_deeply shown($thread), [ { %$expected, log => $list }, ['c'] ], "a list that keeps $keep elements of the checkpoint";
    }
    $play->save($worker, report('f', $claim, $id, next => ['c'], values => { %difference, log => ['whole'] }), AgentSQL::Play::finish($claim));
    is_deeply shown($thread), [ { %$expected, log => ['whole'] }, ['c'] ], 'a list that is sent whole';
    is_deeply shown($thread, $id), [ $old, [ 'b', 'c' ] ], 'the state of the checkpoint with its id is as it was';
    is_deeply [ map { $_->{values}{n} } @{ $play->body('get_history', $thread, '{}') } ], [ 1, 1 ], 'the history is as it was';
    is $play->body('get_thread', $thread)->{values}{n}, 1, 'the values of the thread are as they were';
    my $copy = AgentSQL::uuid();
    $play->api('copy_thread', $thread, $copy, 'false', undef);
    is_deeply shown($copy), shown($thread), 'a copy has the pending writes';

    my $next = leased($thread);
    $play->save($worker, report(0, $next, $id, values => { n => 5 }));
    is_deeply shown($thread)->[0]{n}, 5, 'the update of a later command is shown instead';
    $play->save($worker, report(0, $next, $id, values => { n => 5 }, next => ['d']));
    is_deeply [ map { $_->{next} } @{ $play->body('get_history', $thread, '{}') } ], [ ['d'], ['a'] ], 'a command may show other nodes as next';
    $play->save($worker, report('f', $next, $id, next => [], values => { n => 6 }));
    is_deeply shown($thread), [ { n => 6 }, [] ], 'the update of a command is in the pending writes that its run reports';
    my $last = AgentSQL::uuid();
    $play->save($worker, AgentSQL::Play::checkpoint($next, id => $last, parent => $id, values => { n => 7 }, next => []),
        AgentSQL::Play::finish($next));
    is_deeply shown($thread), [ { n => 7 }, [] ], 'a later checkpoint has none';
    for my $odd ({ values => 7, next => [] }, { values => {}, next => 'c' }) {
        my $run = leased($thread);
        $play->save($worker, report('f', $run, $last, %$odd), AgentSQL::Play::finish($run));
        is_deeply shown($thread), [ { n => 7 }, [] ], 'a report in another form shows nothing';
    }
};

# The answer of a function of the API whose values are read in parts of at most $bytes: (answer, length of the first text).
sub in_parts {
    my ($bytes, $thread, $call) = @_;
    my ($text, $cursor) = @{ ($session->query($call))[0] };
    my ($length, $parts) = (length $text, '');
    while (length $cursor) {
        my ($part) = $session->query("select code, body, cursor from agent.read_values('$deployment', '$thread', '$cursor', $bytes)");
        die "read_values: $part->[0]" if $part->[0] ne 'ok';
        $parts .= $part->[1];
        $cursor = $part->[2];
    }
    return (AgentSQL::decode($text =~ s/\x01/$parts/r), $length);
}

sub state_in_parts { my ($bytes, $thread, $max) = @_; return in_parts($bytes, $thread, "select body, cursor from agent.get_state('$deployment', '$thread', null, $max)") }

subtest 'a state with an update of a command or pending writes is sent in parts, which are of one report' => sub {
    my $thread = $play->thread;
    my $claim = leased($thread);
    my $id = AgentSQL::uuid();
    my @log = map { "$_ é " . 'x' x (100 * $_) } 1 .. 9;
    $play->save($worker, AgentSQL::Play::checkpoint($claim, id => $id, next => ['a'],
        values => { log => \@log, other => ['o'], n => 1, long => 'y' x 5000, gone => 1 }));
    my $whole = $play->body('get_state', $thread, undef);
    for my $list ({ keep => 9, items => [ 'd', 'e' ] }, { keep => 4, items => ['d'] }, { keep => 0, items => ['d'] }, { keep => 9, items => [] },
        { keep => 0, items => [] }, { keep => 9 })
    {
        $play->save($worker, report('f', $claim, $id, next => ['b'], values => { log => { '$list' => $list }, n => { '$value' => 2 },
            other => ['o'], long => { '$same' => \1 }, new => { a => [ 1, 'é' ] }, absent => { '$list' => { keep => 1, items => [7] } } }));
        my $expected = { %$whole, next => ['b'], values => { n => 2, other => ['o'], long => 'y' x 5000, new => { a => [ 1, 'é' ] },
            absent => [7], log => [ @log[ 0 .. $list->{keep} - 1 ], @{ $list->{items} // [] } ] } };
        is_deeply $play->body('get_state', $thread, undef), $expected, 'whole: ' . AgentSQL::encode($list);
        is_deeply +(state_in_parts($_, $thread, 10))[0], $expected, "in parts of $_ bytes" for 1, 700, 100_000;
    }
    $play->save($worker, AgentSQL::Play::finish($claim));
    my $copy = AgentSQL::uuid();
    $play->api('copy_thread', $thread, $copy, 'false', undef);
    is_deeply +(state_in_parts(700, $copy, 10))[0]{values}, $play->body('get_state', $thread, undef)->{values}, 'the state of a copy is sent in parts too';

    my $next = leased($thread);
    $play->save($worker, report(0, $next, $id, values => { n => 5, log => ['l'] }));
    my $expected = { %{ $whole->{values} }, n => 5, log => ['l'] };
    is_deeply +(state_in_parts($_, $thread, 10))[0]{values}, $expected, "an update of a command, in parts of $_ bytes" for 1, 700;
    is_deeply +(in_parts(700, $thread, "select body, cursor from agent.get_state('$deployment', '$thread', '$id', 10)"))[0]{values}, $expected,
        'the state of a named checkpoint';
    my ($got, $length) = in_parts(700, $thread, "select body, cursor from agent.get_thread('$deployment', '$thread', 10)");
    is_deeply $got->{values}, $expected, 'the values of the thread';
    my ($list, $cursor) = ('', '1.0');
    while (length $cursor) {
        my ($part) = $session->query("select body, cursor from agent.read_page('$deployment', 'states', '$thread', '{$id}', null, '{}', '$cursor', 700)");
        $list .= $part->[0];
        $cursor = $part->[1];
    }
    is_deeply AgentSQL::decode("[$list]")->[0]{values}, $expected, 'the history';

    my ($first) = $session->query("select cursor from agent.get_state('$deployment', '$thread', null, 10)");
    my $read = sub { ($session->query("select code from agent.read_values('$deployment', '$thread', '$first->[0]', 10)"))[0][0] };
    is $read->(), 'ok';
    $session->query("set agent.now = '" . $session->value("select now() + interval '1 minute'") . "'");
    $play->save($worker, report(0, $next, $id, values => { n => 6 }));
    $session->query('reset agent.now');
    is $read->(), 'checkpoint_not_found', 'there is no further part of a report that was replaced';
    is_deeply +(state_in_parts(700, $thread, 10))[0]{values}{n}, 6;
    ($first) = $session->query("select cursor from agent.get_state('$deployment', '$thread', null, 10)");
    $play->save($worker, AgentSQL::Play::finish($next));
    $play->api('delete_run', $thread, $next->{run_id});
    is $read->(), 'checkpoint_not_found', 'there is no further part of a report whose run was deleted';
};

subtest 'a report takes no memory for values that are sent in parts; a long one is left out of values of more than 16 MB' => sub {
    for my $with_pending (0, 1) {
        my $thread = $play->thread;
        my $claim = leased($thread);
        my ($small, $id) = map { AgentSQL::uuid() } 1, 2;
        my $text = 'x' x 1_000_000;
        $play->save($worker, AgentSQL::Play::checkpoint($claim, id => $small, values => { log => [ ($text) x 2 ], n => 1 }, next => ['a']));
        my $save = sub {
            my ($at, %values) = @_;
            $values{log} = { '$list' => { keep => 99, items => [] } } if $with_pending;
            $play->save($worker, report($with_pending ? 'f' : 0, $claim, $at, $with_pending ? (next => ['b']) : (), values => \%values));
        };
        my $read = sub { state_in_parts(262_144, $thread, 262_144) };
        $save->($small, n => 2, more => 'z' x 300_000);
        my ($state, $length) = $read->();
        is_deeply [ $state->{values}{n}, scalar @{ $state->{values}{log} }, length $state->{values}{more} ], [ 2, 2, 300_000 ],
            'a long report is shown with values of less than 16 MB';
        $play->save($worker, AgentSQL::Play::checkpoint($claim, id => $id, parent => $small, values => { log => [ ($text) x 17 ], n => 1 }, next => ['a']));
        $save->($id, n => 2, more => 'z');
        ($state, $length) = $read->();
        is_deeply [ $state->{values}{n}, scalar @{ $state->{values}{log} }, $state->{values}{more} ], [ 2, 17, 'z' ];
        cmp_ok $length, '<', 2000, 'the first text of 17 MB has none of them';
        $save->($id, n => 2, more => 'z' x 300_000);
        ($state, $length) = $read->();
        is_deeply [ $state->{values}{n}, scalar @{ $state->{values}{log} }, $state->{next} ], [ 1, 17, ['a'] ],
            'a long report is left out of values of more than 16 MB';
        cmp_ok $length, '<', 2000;
        $play->save($worker, AgentSQL::Play::finish($claim));
    }
};

subtest 'a report with more channels than a checkpoint may have shows none of them' => sub {
    my $most = $session->value('select agent.most_channels()');
    for my $with_pending (0, 1) {
        my $thread = $play->thread;
        my $claim = leased($thread);
        my $id = AgentSQL::uuid();
        $play->save($worker, AgentSQL::Play::checkpoint($claim, id => $id, values => { n => 1, log => [ 'a', 'b' ] }, next => ['a']));
        my $save = sub {
            my ($more) = @_;
            my %values = (n => 2, log => { '$list' => { keep => 1, items => ['c'] } }, map({ ("same $_" => { '$same' => \1 }) } 1 .. $more));
            $values{log} = [ 'a', 'c' ] if !$with_pending;
            $play->save($worker, report($with_pending ? 'f' : 0, $claim, $id, next => ['b'], values => \%values));
            return [ map { ref ? [@$_] : $_ } @{ shown($thread)->[0] }{qw(n log)} ];
        };
        my $kind = $with_pending ? 'pending writes' : 'an update';
        is_deeply $save->($most - 2), [ 2, [ 'a', 'c' ] ], "$kind of as many channels";
        is_deeply $save->($most - 1), [ 1, [ 'a', 'b' ] ], "$kind of one more";
        is_deeply shown($thread)->[1], [ $with_pending ? 'a' : 'b' ], 'an update shows the nodes that it sends all the same';
        is_deeply $save->(0), [ 2, [ 'a', 'c' ] ], "a later report of $kind";
        $play->save($worker, AgentSQL::Play::finish($claim));
    }
};

subtest 'after a rollback or a deletion no state, history or copy shows what the run reported, however much of it is left to delete' => sub {
    my $session = $play->session;
    for my $case ([ 'its checkpoints', 'a rollback' ], [ 'its reports', 'a rollback' ], [ 'its checkpoints', 'a deletion' ]) {
        my ($left, $end) = @$case;
        my $thread = $play->thread;
        my ($base, $id) = with_tasks($thread, 'a');
        $play->save($worker, AgentSQL::Play::finish($base));
        my $seen = sub {
            my ($in) = @_;
            my ($history) = $play->body('get_history', $in, '{}')->[0];
            return [ @{ shown($in) }, map { @$_{qw(values next tasks)} } $history, $play->body('get_state', $in, $id) ];
        };
        my $before = $seen->($thread);

        my $claim = leased($thread);
        if ($left eq 'its checkpoints') {
            my $other = AgentSQL::uuid();
            $play->save($worker, AgentSQL::Play::checkpoint($claim, id => $other, parent => $id, values => { n => 4 }));
            $session->query("insert into agent.checkpoints (deployment_id, thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id,
                    run_id, channels, next, tasks, metadata, state_bytes, created_at)
                select deployment_id, thread_id, checkpoint_ns, gen_random_uuid(), checkpoint_id, run_id, channels, next, tasks, metadata,
                       state_bytes, created_at
                  from agent.checkpoints, generate_series(1, 1500)
                 where thread_id = '$thread' and checkpoint_id = '$other'");
        } else {
            $session->query("insert into agent.checkpoint_tasks (deployment_id, thread_id, checkpoint_id, task_id, run_id, checkpoint_ns,
                    task, saved_at)
                select '$AgentSQL::DEPLOYMENT', '$thread', '00000000-0000-0000-0000-000000000001', n, '$claim->{run_id}', '', '{}', now()
                  from generate_series(1, 3000) n");
        }
        $play->save($worker, report(0, $claim, $id, values => { n => 2 }), report('f', $claim, $id, values => { n => 3 }, next => ['x']),
            AgentSQL::Play::task($claim, $id, { id => 'a', result => 1 }));
        is_deeply [ @{ $seen->($thread) }[ 0, 1 ] ], [ { n => 3 }, ['x'] ], 'while the run exists its reports are shown' if $left ne 'its checkpoints';
        if ($end eq 'a rollback') {
            is +($play->api('cancel_run', $thread, $claim->{run_id}, 'rollback'))[0], 'ok';
            is_deeply $play->release($worker, 'false', $claim), { $claim->{run_id} => 'rolled_back' };
        } else {
            $play->save($worker, AgentSQL::Play::finish($claim));
            is +($play->api('delete_run', $thread, $claim->{run_id}))[0], 'ok';
        }
        cmp_ok $session->value("select count(*) from agent.checkpoint_tasks where run_id = '$claim->{run_id}' and checkpoint_id = '$id'"),
            '>', 0, "reports are left after $end";
        is_deeply $seen->($thread), $before, "the state is that before the run after $end that leaves $left";
        my $copy = AgentSQL::uuid();
        my ($code, $body) = ('', '');
        for (1 .. 50) {
            ($code, $body) = $play->api('copy_thread', $thread, $copy, $code eq 'ok' ? 'true' : 'false', undef);
            last if $code ne 'waiting' and not $body;
        }
        is $code, 'ok';
        is_deeply $seen->($copy), $before, 'the state of a copy is that before the run';
        1 while $session->value('select agent.sweep_state()') + $session->value('select agent.sweep_events()');
        is_deeply [ $seen->($thread), $seen->($copy) ], [ $before, $before ], 'both are when everything is deleted';
        is $session->value("select count(*) from agent.checkpoint_tasks where run_id = '$claim->{run_id}'"), 0;
    }
};

subtest 'a task of an earlier checkpoint has what the newest run said, until that run is deleted' => sub {
    my $thread = $play->thread;
    my ($first, $id) = with_tasks($thread, 'a');
    $play->save($worker, AgentSQL::Play::task($first, $id, { id => 'a', error => 'it failed' }),
        AgentSQL::Play::finish($first, 'error', { error => 'E', message => 'm' }));
    $play->session->query("set agent.now = '" . $play->session->value("select now() + interval '1 minute'") . "'");
    my $second = leased($thread);
    $play->save($worker, AgentSQL::Play::task($second, $id, { id => 'a', error => undef, result => 2 }),
        AgentSQL::Play::finish($second));
    $play->session->query('reset agent.now');
    is_deeply [ @{ tasks_of($first, $id)->[0] }{qw(error result)} ], [ undef, 2 ];
    is +($play->api('delete_run', $thread, $second->{run_id}))[0], 'ok';
    is_deeply [ @{ tasks_of($first, $id)->[0] }{qw(error result)} ], [ 'it failed', undef ];
    is +($play->api('delete_thread', $thread))[0], 'ok';
    is $play->session->value("select count(*) from agent.checkpoint_tasks where thread_id = '$thread'"), 0,
        'the deletion of a thread deletes its tasks';
};

subtest 'a task of a run that is no longer leased is not saved, a batch with tasks may be repeated' => sub {
    my ($claim, $id) = with_tasks($play->thread, 'a');
    my @batch = AgentSQL::Play::task($claim, $id, { id => 'a', error => 'E' });
    $play->save($worker, @batch) for 1, 2;
    is tasks_of($claim, $id)->[0]{error}, 'E';
    $play->release($worker, 'false', $claim);
    is_deeply $play->save($worker, AgentSQL::Play::task($claim, $id, { id => 'a', error => 'late' })),
        { $claim->{run_id} => [ 'fenced', 'f' ] };
    is tasks_of($claim, $id)->[0]{error}, 'E';
};

subtest 'tasks with members that no task has, twice or by the thousand, show each member once' => sub {
    my ($claim, $id) = with_tasks($play->thread, 'a');
    my $many = join ',', map { qq("k$_":1) } 1 .. 20_000;
    $play->save($worker, { %{ AgentSQL::Play::task($claim, $id, { id => 'a' }) } });
    $play->session->query("select * from public.save_items($worker, '[{\"type\":\"task\",\"d\":\"$claim->{deployment_id}\","
        . "\"r\":\"$claim->{run_id}\",\"e\":$claim->{epoch},\"checkpoint_id\":\"$id\","
        . "\"task\":{\"id\":\"a\",$many,\"name\":\"forged\",\"error\":\"E\"}}]')");
    is_deeply tasks_of($claim, $id), [ { id => 'a', name => 'node', error => 'E', interrupts => [], result => undef } ];
};

subtest 'reports about tasks of more than 16 MB are not shown beyond that' => sub {
    my ($claim, $id) = with_tasks($play->thread, 1 .. 5);
    $play->session->query("select * from public.save_items($worker, (select json_agg(json_build_object('type', 'task',
        'd', '$claim->{deployment_id}', 'r', '$claim->{run_id}', 'e', $claim->{epoch}, 'checkpoint_id', '$id',
        'task', json_build_object('id', n::text, 'error', repeat('x', 4000000)))) from generate_series(1, 5) n))");
    is_deeply [ map { length($_->{error} // '') } @{ tasks_of($claim, $id) } ], [ (4_000_000) x 3, 0, 0 ];
};

# A run that saves a checkpoint with these tasks, [id, node], and one after it, with the reports of the tasks in between; [its id, both checkpoints].
sub execute {
    my ($thread, $tasks, $results, %with) = @_;
    my $claim = leased($thread);
    my @ids = ($with{parent} || AgentSQL::uuid(), AgentSQL::uuid());
    my @all = map { { id => $_->[0], name => $_->[1], error => undef, interrupts => [], result => undef } } @{$tasks};
    $play->save($worker, AgentSQL::Play::checkpoint($claim, ns => $with{ns}, id => $ids[0], step => 3, next => [ map { $_->[1] } @{$tasks} ], tasks => \@all))
        if !$with{parent};
    $play->save($worker, (map { AgentSQL::Play::task($claim, $ids[0], { id => $_, result => $results->{$_}, error => undef }, ns => $with{ns}) } sort keys %{$results}),
        AgentSQL::Play::checkpoint($claim, ns => $with{ns}, id => $ids[1], parent => $ids[0], step => $with{step} // 4), AgentSQL::Play::finish($claim));
    return ($claim->{run_id}, @ids);
}

sub copy_of {
    my ($thread) = @_;
    my $copy = AgentSQL::uuid();
    my @piece = $play->api('copy_thread', $thread, $copy, 'false', undef);
    @piece = $play->api('copy_thread', $thread, $copy, 'true', undef) while "@piece" =~ /more/;
    is $piece[0], 'ok', 'the thread is copied';
    return $copy;
}

sub metadata_of { my ($thread, $id) = @_; return $play->body('get_state', $thread, $id)->{metadata} }

subtest 'the metadata of a checkpoint have what the tasks of its parent wrote, by node' => sub {
    my $thread = $play->thread;
    my ($run, $id, $next) = execute($thread, [ [ a => 'think' ], [ b => 'look' ], [ c => 'look' ], [ d => 'rest' ], [ e => 'bare' ], [ f => 'silent' ] ],
        { a => { messages => ['x'] }, b => { n => 1 }, c => { n => 2 }, d => {}, e => { __root__ => [7] } });
    my $writes = { think => { messages => ['x'] }, look => [ { n => 1 }, { n => 2 } ], rest => undef, bare => [7] };
    my $state = $play->body('get_state', $thread, $next);
    is_deeply $state->{metadata}{writes}, $writes,
        'several tasks of a node are an array, a node that wrote nothing has null, a value without a name is bare, a task without a report is not there';
    is_deeply [ map { $_->{metadata} } @{ $play->body('get_history', $thread, '{}') } ], [ $state->{metadata}, metadata_of($thread, $id) ], 'the history has the same';
    is metadata_of($thread, $id)->{writes}, undef, 'the checkpoint before has none: it is the first one';
    my $found = sub { [ map { $_->{checkpoint_id} } @{ $play->body('get_history', $thread, AgentSQL::encode({ metadata => { writes => $_[0] } })) } ] };
    is_deeply $found->($writes), [$next], 'a filter of the history finds it';
    is_deeply $found->({ think => undef }), [], 'another filter finds nothing';
    is_deeply $play->body('get_history', $thread, '{"select":["next"],"limit":1}'), [ { next => [] } ], 'none is shown without metadata';
};

subtest 'a checkpoint shows what the tasks of its own run wrote' => sub {
    my $thread = $play->thread;
    my (undef, $id, $first) = execute($thread, [ [ a => 'node' ], [ b => 'other' ] ], { a => { n => 1 }, b => { n => 5 } });
    # In the same moment, and in one after it: another run continues at the same checkpoint, of which it executes one task again.
    my (undef, undef, $second) = execute($thread, [], { a => { n => 2 } }, parent => $id);
    $session->query("set agent.now = '" . $session->value("select now() + interval '1 minute'") . "'");
    my (undef, undef, $third) = execute($thread, [], { a => { n => 3 } }, parent => $id);
    $session->query('reset agent.now');
    is_deeply [ map { metadata_of($thread, $_)->{writes} } $first, $second, $third ], [ map { { node => { n => $_ }, other => { n => 5 } } } 1 .. 3 ];
    my $copy = copy_of($thread);
    is_deeply metadata_of($copy, $third)->{writes}, { node => { n => 3 }, other => { n => 5 } }, 'in a copy of the thread too';
};

subtest 'a checkpoint of a subgraph shows what its nodes wrote' => sub {
    my $thread = $play->thread;
    my (undef, undef, $next) = execute($thread, [ [ a => 'inner' ] ], { a => { n => 1 } }, ns => 'outer:1');
    my ($code, $state) = $play->api('get_state', $thread, undef, undef, AgentSQL::encode({ checkpoint => { checkpoint_ns => 'outer:1' } }));
    is_deeply [ @{$state}{checkpoint_id}, $state->{metadata}{writes} ], [ $next, { inner => { n => 1 } } ];
};

subtest 'the first checkpoint of a run has its input as what was written' => sub {
    my $input = { messages => [ { role => 'user', content => 'q' } ] };
    my $thread = $play->thread;
    my $claim = leased($thread, request => { input => $input });
    my @ids = map { AgentSQL::uuid() } 1 .. 3;
    $play->save($worker, AgentSQL::Play::checkpoint($claim, id => $ids[0], source => 'input', step => -1, next => ['__start__'],
            tasks => [ { id => 's', name => '__start__', error => undef, interrupts => [], result => undef } ]),
        AgentSQL::Play::checkpoint($claim, id => $ids[1], parent => $ids[0], step => 0),
        AgentSQL::Play::checkpoint($claim, id => $ids[2], parent => $ids[1], source => 'input', step => 1), AgentSQL::Play::finish($claim));
    is_deeply [ map { metadata_of($thread, $_)->{writes} } @ids ], [ { __start__ => $input }, undef, undef ],
        'the one after it has none, and a state that the code of a graph has updated neither';
    my $copy = copy_of($thread);
    is_deeply metadata_of($copy, $ids[0])->{writes}, { __start__ => $input }, 'a copy of the thread has it too';
};

subtest 'nothing is shown as written that was not written in that step' => sub {
    my $thread = $play->thread;
    for my $case ([ 'steps in between were not saved' => { step => 5 } ], [ 'a step that is not a number' => { step => 'x' } ]) {
        my (undef, undef, $next) = execute($thread, [ [ a => 'node' ] ], { a => { n => 1 } }, %{ $case->[1] });
        is metadata_of($thread, $next)->{writes}, undef, $case->[0];
    }
};

subtest 'the results of tasks are shown as what they wrote up to 16 MB' => sub {
    my $claim = leased($play->thread);
    my @ids = map { AgentSQL::uuid() } 1, 2;
    $play->save($worker, AgentSQL::Play::checkpoint($claim, id => $ids[0], step => 0, next => ['node'], tasks => [ map { { id => $_, name => "node$_" } } 1 .. 5 ]));
    $play->session->query("select * from public.save_items($worker, (select json_agg(json_build_object('type', 'task',
        'd', '$claim->{deployment_id}', 'r', '$claim->{run_id}', 'e', $claim->{epoch}, 'checkpoint_id', '$ids[0]',
        'task', json_build_object('id', n::text, 'result', json_build_object('x', repeat('x', 4000000))))) from generate_series(1, 5) n))");
    $play->save($worker, AgentSQL::Play::checkpoint($claim, id => $ids[1], parent => $ids[0], step => 1), AgentSQL::Play::finish($claim));
    is_deeply [ sort keys %{ metadata_of($claim->{thread_id}, $ids[1])->{writes} } ], [qw(node1 node2 node3)];
};

subtest 'a thread record shows the values of its state' => sub {
    my $claim = leased($play->thread);
    $play->save($worker, AgentSQL::Play::checkpoint($claim, messages => ['q']), AgentSQL::Play::finish($claim));
    my $record = $play->body('get_thread', $claim->{thread_id});
    is_deeply $record->{values}, { messages => [ AgentSQL::Play::human('q') ] };
    ok $record->{state_updated_at};
};

subtest 'the end of a stream is known when the run is final, also after several attempts' => sub {
    my $claim = leased($play->thread);
    my ($thread, $run) = @$claim{qw(thread_id run_id)};
    $play->save($worker, map { AgentSQL::Play::event($claim, $_, 'custom', $_) } 0 .. 2);
    is_deeply [ $play->poll($thread, $run, 2) ], [];
    $play->release($worker, 'false', $claim);
    ($claim) = $play->claim($worker);
    $play->save($worker, AgentSQL::Play::event($claim, $claim->{last_event_seq} + 1, 'metadata', {}));
    $play->save($worker, AgentSQL::Play::finish($claim));
    is_deeply [ $play->poll($thread, $run, 3) ], [ [ 3, '', '', 'success', 'f' ] ];
    is_deeply [ map { $_->[0] } $play->events($thread, $run) ], [ 0 .. 3 ], 'events are numbered without gap and repeat';

    my $silent = leased($play->thread);
    $play->save($worker, AgentSQL::Play::finish($silent));
    is_deeply [ $play->poll(@$silent{qw(thread_id run_id)}, -1) ], [ [ -1, '', '', 'success', 'f' ] ],
        'a run without events';
};

subtest 'get_thread_storage tells the bytes of a state by channel' => sub {
    my $thread = $play->thread;
    my $nothing = { count => 0, bytes => 0 };
    is_deeply $play->body('get_thread_storage', $thread), { thread_id => $thread, total_bytes => 0, checkpoints => $nothing,
        channel_values => { %$nothing, by_channel => {}, by_channel_is_partial => AgentSQL::decode('false') }, pending_writes => $nothing }, 'nothing of a new thread';
    my $claim = leased($thread);
    my @ids = sort map { AgentSQL::uuid() } 1 .. 3;
    my $text = join '', map { int rand 10 } 1 .. 3000;
    $play->save($worker,
        AgentSQL::Play::checkpoint($claim, id => $ids[0], messages => [$text]),
        AgentSQL::Play::checkpoint($claim, id => $ids[1], parent => $ids[0], messages => [ $text, 'a' ]),
        AgentSQL::Play::checkpoint($claim, id => $ids[2], parent => $ids[1], messages => [ $text, 'a' ]));
    my $storage = $play->body('get_thread_storage', $thread);
    is $storage->{checkpoints}{count}, 3;
    is $storage->{channel_values}{by_channel}{messages}{versions}, 2, 'a checkpoint that leaves a channel as it was is not a version of it';
    cmp_ok $storage->{channel_values}{by_channel}{messages}{bytes}, '>', 1200;
    cmp_ok $storage->{channel_values}{by_channel}{messages}{bytes}, '<', 6000, 'the same value is not stored again';
    is $storage->{total_bytes}, $storage->{checkpoints}{bytes} + $storage->{channel_values}{bytes} + $storage->{pending_writes}{bytes};
    $session->query("insert into agent.checkpoint_blobs (deployment_id, thread_id, digest, part, parts, stored_parts, uses, type, is_text, content)
        select '$deployment', '$thread', gen_random_uuid(), 0, 1, 1, 1, 'json', true, '12345678' from generate_series(1, 10)");
    my $more = $play->body('get_thread_storage', $thread);
    is $more->{channel_values}{count}, $storage->{channel_values}{count} + 10, 'the values of a library count';
    cmp_ok $more->{total_bytes}, '>=', $storage->{total_bytes} + 80;
    is_deeply $more->{channel_values}{by_channel}, $storage->{channel_values}{by_channel}, 'in no channel';
    my $is_left = sub { return $session->value("select body is null from agent.get_thread_storage('$deployment', '$thread', $_[0])") };
    is_deeply [ map { $is_left->($_) } 1, 'null' ], [ 'f', 'f' ], 'of a short thread at once';
    $session->query("insert into agent.checkpoint_items (deployment_id, thread_id, list_id, position, elements, end_bytes, content)
        select '$deployment', '$thread', 1, n, 1, n, '1' from generate_series(0, 10000) n");
    is_deeply [ map { $is_left->($_) } 1, 'null' ], [ 't', 'f' ], 'of a long one in a turn';
    is +($play->api('get_thread_storage', AgentSQL::uuid()))[0], 'thread_not_found', 'of an unknown thread';
    $play->save($worker, AgentSQL::Play::finish($claim));
};

subtest 'get_thread_storage of a thread with many values tells the channels of the newest' => sub {
    my $thread = $play->thread;
    my $insert = sub {
        my ($first, $last, $channels) = @_;
        $session->query("insert into agent.checkpoints (deployment_id, thread_id, checkpoint_ns, checkpoint_id, channels, next, tasks, metadata,
            state_bytes, created_at)
            select '$deployment', '$thread', '', lpad(n::text, 32, '0')::uuid, array(
                select row('c' || c, null, 100, null, null, null, repeat('x', 100))::agent.channel_value from generate_series(1, $channels) c),
                '[]', '[]', '{}', 2, now()
            from generate_series($first, $last) n");
    };
    my $is_left = sub { return $session->value("select body is null from agent.get_thread_storage('$deployment', '$thread', 1)") };
    $insert->(1, 20, 20);
    is $is_left->(), 'f', 'of 400 values at once';
    $insert->(21, 125, 1000);
    is $is_left->(), 't', 'of 105,400 in a turn';
    my $values = $play->body('get_thread_storage', $thread)->{channel_values};
    is_deeply [ @$values{qw(count bytes)} ], [ 105_400, 10_540_000 ], 'all are in the sum';
    is_deeply $values->{by_channel}{c20}, { versions => 100, bytes => 10_000 }, 'the newest 100,000 by channel';
    ok $values->{by_channel_is_partial}, 'the list of channels is marked as partial';
};

done_testing;
