# SPDX-License-Identifier: Apache-2.0
# Copies of threads: what they contain, in pieces, beside writes and deletions of the thread that is copied.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use lib "$FindBin::Bin/../lib";
use Test::More;
use AgentSQL;
use AgentSQL::Play;

my $db = AgentSQL->new;
my $play = AgentSQL::Play->new($db->session);
my $session = $play->session;
my $worker = $play->worker;
# Random chats are made; a failure names the seed.
my $SEED = srand($ENV{AGENT_SEED} // 7);
my @TABLES = qw(checkpoints checkpoint_items inherited_items copied_runs copy_lists checkpoint_snapshots checkpoint_writes
    checkpoint_blobs copy_blobs);

sub human { return AgentSQL::Play::human($_[0]) }

sub list {
    my ($keep, @items) = @_;
    return { '$list' => { keep => $keep, items => \@items } };
}

# A run with checkpoints of these values: (run_id, checkpoint_ids).
sub run_steps {
    my ($in, $parent, @steps) = @_;
    my $claim = $play->leased($worker, $in, request => { config => { metadata => { team => 'red' } } });
    my @ids;
    for my $values (@steps) {
        push @ids, AgentSQL::uuid();
        $play->save($worker, AgentSQL::Play::checkpoint($claim, id => $ids[-1], parent => $parent, values => $values));
        $parent = $ids[-1];
    }
    $play->save($worker, AgentSQL::Play::finish($claim));
    return ($claim->{run_id}, @ids);
}

# Calls once: (code, body).
sub piece {
    my ($source, $copy, $continued) = @_;
    return $play->api('copy_thread', $source, $copy, $continued ? 'true' : 'false', undef);
}

# A whole copy: (code, number of calls); between is called after each piece but the last.
sub copied {
    my ($source, $copy, $between) = @_;
    for (my $calls = 1;; $calls++) {
        my ($code, $body) = piece($source, $copy, $calls > 1);
        return ($code, $calls) if $body ne 'more';
        $between->($calls) if $between;
    }
}

sub copy_of {
    my ($source) = @_;
    my $copy = AgentSQL::uuid();
    my ($code) = copied($source, $copy);
    die "copy_thread: $code" if $code ne 'ok';
    return $copy;
}

sub state_of {
    my ($in, $id) = @_;
    my $state = $play->body('get_state', $in, $id);
    # The only members that name the thread.
    for my $reference ($state->{metadata}, $state->{checkpoint}, $state->{parent_checkpoint} // ()) {
        is delete $reference->{thread_id}, $in, 'a state names its own thread' if exists $reference->{thread_id};
    }
    return $state;
}

# The states from the head to the first one.
sub chain {
    my ($in) = @_;
    my @states;
    for (my $id; !@states || defined $id; $id = $states[-1]{parent_checkpoint_id}) {
        push @states, state_of($in, $id);
        die 'the chain does not end' if @states > 1000;
    }
    return \@states;
}

sub rows {
    my ($in) = @_;
    return { map { my $table = $_; ($table => $session->value("select count(*) from agent.$table where thread_id = '$in'")) } @TABLES };
}
my $NOTHING = { map { $_ => 0 } @TABLES };

# Stored elements of states of a thread that no checkpoint contains.
sub orphans {
    my ($in) = @_;
    return $session->value("select count(*) from agent.checkpoint_items i where thread_id = '$in' and not is_digests and not exists (
        select from agent.checkpoints c, unnest(c.channels) v, unnest(v.list_ids, v.ends) s (list_id, until)
         where c.thread_id = i.thread_id and s.list_id = i.list_id and i.position < s.until)");
}

# A chat of many turns, written at once: a run and two checkpoints for each turn, each with one message more.
sub long_chat {
    my ($turns) = @_;
    my $in = $play->thread;
    my $key = "'$AgentSQL::DEPLOYMENT', '$in'";
    my $id = sub { "md5('$in' || $_[0])::uuid" };
    my $list = $session->value("select nextval('agent.checkpoint_list_seq')");
    $session->query("insert into agent.runs (deployment_id, run_id, thread_id, thread_seq, assistant_id, graph_id, status,
        multitask_strategy, metadata, config, stream_mode, stream_subgraphs, stream_resumable, events_bucket, last_event_seq,
        created_at, updated_at, finished_at)
        select '$AgentSQL::DEPLOYMENT', md5('$in' || 'r' || n)::uuid, '$in', n, '$AgentSQL::ASSISTANT', 'agent', 'success', 'enqueue', '{}',
            '{\"metadata\":{}}', '[]', false, false, current_date, -1, now(), now(), now() from generate_series(1, $turns) n");
    $session->query("insert into agent.checkpoints (deployment_id, thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, run_id, channels,
        next, tasks, metadata, state_bytes, created_at)
        select $key, '', @{[ $id->('n') ]}, case when n > 1 then @{[ $id->('(n - 1)') ]} end, md5('$in' || 'r' || (n + 1) / 2)::uuid,
            array[row('messages', n, 400 * n, array[$list], array[n], n - 1, null)::agent.channel_value], '[]', '[]',
            '{\"source\":\"loop\",\"step\":1,\"writes\":null,\"parents\":{}}', 400 * n, now()
          from generate_series(1, 2 * $turns) n");
    $session->query("insert into agent.checkpoint_items (deployment_id, thread_id, list_id, position, elements, end_bytes, content)
        select $key, $list, n - 1, 1, 400 * n, to_json(repeat(md5(n::text), 12))::text from generate_series(1, 2 * $turns) n");
    my $head = $session->value('select ' . $id->(2 * $turns));
    $session->query("update agent.threads set run_seq = $turns, head_checkpoint_id = '$head', head_run_id = md5('$in' || 'r' || $turns)::uuid
        where thread_id = '$in'");
    return ($in, $head);
}

subtest 'a copy first deletes the remains of deleted runs' => sub {
    my $in = $play->thread;
    my $bytes = $session->value('select agent.deletion_bytes()');
    my $limit = sub {
        $session->query("create or replace function agent.deletion_bytes() returns bigint language sql immutable parallel safe as 'select ${_[0]}::bigint'");
    };
    my (undef, @first) = run_steps($in, undef, map { { n => $_ } } 1 .. 3);
    my ($middle, @steps) = run_steps($in, $first[-1], map { { n => $_ } } 4 .. 12);
    my (undef, @last) = run_steps($in, $steps[-1], map { { n => $_ } } 13 .. 15);
    $limit->(13_000);
    is +($play->api('delete_run', $in, $middle))[0], 'ok';
    my $copy = AgentSQL::uuid();
    my ($code, $waiting) = ('', 0);
    $waiting++ while ($code = (piece($in, $copy, 0))[0]) eq 'waiting' && $waiting < 50;
    $limit->($bytes);
    cmp_ok $waiting, '>', 2, 'in pieces';
    is $code, 'ok', 'the copy is made when nothing is left of the deleted run';
    is $session->value("select count(*) from agent.run_sweeps where thread_id = '$in'"), 0, 'nothing is left of the run';
    is_deeply [ map { $_->{checkpoint_id} } @{ chain($copy) } ], [ reverse @first, @last ], 'the copy has the other checkpoints';
    is +(copied($in, AgentSQL::uuid()))[0], 'ok', 'a second copy has the other checkpoints';
};

subtest 'a copy has the metadata and its id, the states under the same ids, and no runs' => sub {
    my $in = $play->thread(metadata => { topic => 'x' });
    my ($run, @ids) = run_steps($in, undef, { messages => [ human(1) ], note => 'y' x 300 },
        { messages => list(1, human(2)), note => { '$same' => \1 } });
    run_steps($in, $ids[-1], { messages => list(2, human(3)) });
    my $copy = AgentSQL::uuid();
    is_deeply [ piece($in, $copy) ], [ 'ok', '' ];
    my $record = $play->body('get_thread', $copy);
    is $record->{thread_id}, $copy;
    is $record->{status}, 'idle';
    is_deeply $record->{metadata}, { %{ $play->body('get_thread', $in)->{metadata} }, thread_id => $copy };
    is_deeply $record->{values}, $play->body('get_thread', $in)->{values};
    is_deeply chain($copy), chain($in);
    is chain($copy)->[-1]{metadata}{run_id}, $run;
    is_deeply $play->body('list_runs', $copy, 10, 0, undef, undef), [];
    my $before = chain($copy);
    is +($play->api('delete_thread', $in))[0], 'ok';
    is_deeply chain($copy), $before, 'a copy does not depend on the thread that was copied';
    is_deeply chain(copy_of($copy)), $before, 'a copy can be copied';
};

subtest 'a copy goes on where the thread stood, and each has runs of its own' => sub {
    my $in = $play->thread;
    my (undef, $a, $b) = run_steps($in, undef, { messages => [ human(1) ] }, { messages => list(1, human(2)) });
    my $copy = copy_of($in);
    my ($run, $c) = run_steps($copy, $b, { messages => list(2, human('copy')) });
    my (undef, $d) = run_steps($in, $b, { messages => list(2, human('source')) });
    run_steps($copy, $a, { messages => list(1, human('fork')) });
    is_deeply $play->messages($in), [ 1, 2, 'source' ];
    is_deeply $play->messages($copy), [ 1, 'fork' ], 'an earlier checkpoint can be continued';
    is_deeply [ map { $_->{content} } @{ state_of($copy, $c)->{values}{messages} } ], [ 1, 2, 'copy' ];
    is +($play->api('get_state', $copy, $d))[0], 'checkpoint_not_found';
    is +($play->api('delete_run', $copy, $run))[0], 'ok';
    is_deeply $play->messages($copy), [ 1, 'fork' ];
    is orphans($copy), 0;
    is +($play->api('delete_thread', $copy))[0], 'ok';
    is_deeply rows($copy), $NOTHING, 'a copy is deleted as a whole';
    is_deeply $play->messages($in), [ 1, 2, 'source' ], 'the thread that was copied stays';
};

subtest 'a deleted run of the copied thread leaves the copy as it is' => sub {
    my $in = $play->thread;
    my (undef, $a) = run_steps($in, undef, { messages => [ human(1) ] });
    my ($run, $b) = run_steps($in, $a, { messages => list(1, human(2)) });
    my $copy = copy_of($in);
    my $before = chain($copy);
    is +($play->api('delete_run', $in, $run))[0], 'ok';
    is_deeply $play->messages($in), [1];
    is_deeply chain($copy), $before;
    is +($play->api('delete_run', $copy, $run))[0], 'run_not_found', 'it is not a run of the copy';
};

subtest 'an interrupted thread has an interrupted copy; a failed one shows its error' => sub {
    my $in = $play->thread;
    my $claim = $play->leased($worker, $in);
    $play->save($worker, AgentSQL::Play::checkpoint($claim, messages => [1], next => ['tools']), AgentSQL::Play::finish($claim));
    is $play->thread_status(copy_of($in)), 'interrupted';
    my $other = $play->thread;
    $claim = $play->leased($worker, $other);
    my $id = AgentSQL::uuid();
    $play->save($worker,
        AgentSQL::Play::checkpoint($claim, id => $id, messages => [1], next => ['agent'], tasks => [ { id => 't', name => 'agent' } ]),
        AgentSQL::Play::task($claim, $id, { id => 't', error => 'it broke' }),
        AgentSQL::Play::finish($claim, 'error', { error => 'Boom', message => 'it broke' }));
    my $copy = copy_of($other);
    is state_of($copy, undef)->{tasks}[0]{error}, 'it broke';
    is_deeply chain($copy), chain($other);
    my $empty = $play->thread(metadata => { a => 1 });
    is_deeply $play->body('get_state', copy_of($empty), undef)->{values}, {}, 'a thread without a state has a copy without one';
};

subtest 'a thread that does not exist cannot be copied' => sub {
    my $copy = AgentSQL::uuid();
    is +(piece(AgentSQL::uuid(), $copy))[0], 'source_not_found';
    is +(piece($play->thread, $copy, 1))[0], 'thread_changed', 'a copy that did not begin is not continued';
    is $session->value("select count(*) from agent.thread_copies where thread_id = '$copy'"), 0;
};

subtest 'a long chat is copied in bounded pieces, invisible until the last; the head is the one at its beginning' => sub {
    my ($in, $head) = long_chat(2500);
    my $copy = AgentSQL::uuid();
    my $before = rows($copy);
    my $parent = $head;
    my ($code, $calls) = copied($in, $copy, sub {
        my $after = rows($copy);
        my %new = map { $_ => $after->{$_} - $before->{$_} } @TABLES;
        cmp_ok 3 * $new{checkpoints} + $new{checkpoint_items} + $new{copied_runs}, '<=', 4100, "3 x $new{checkpoints} + $new{checkpoint_items}";
        $before = $after;
        is +($play->api($_, $copy))[0], 'thread_not_found', "$_ does not see it"
            for qw(get_thread find_thread_end);
        is +($play->api('get_state', $copy, undef))[0], 'thread_not_found', 'get_state does not see it';
        is +($play->try_run($copy))[0], 'thread_not_found', 'a run cannot be created on it';
        (undef, $parent) = run_steps($in, $parent, { messages => list(5000, human('later')) }) if $_[0] <= 3;
    });
    is $code, 'ok';
    cmp_ok $calls, '>=', 5;
    is $session->value("select head_checkpoint_id from agent.threads where thread_id = '$copy'"), $head;
    is_deeply rows($copy), { %{$NOTHING}, checkpoints => 5000, checkpoint_items => 5000, copied_runs => 2500 };
    my $values = $play->body('get_thread', $copy)->{values};
    is scalar @{ $values->{messages} }, 5000;
    is_deeply $values, $play->body('get_state', $in, $head)->{values};
    is orphans($copy), 0;
    is $session->value("select count(*) from agent.thread_copies"), 0;
};

subtest 'long lists of next nodes count, in a copy and in the deletion of a thread' => sub {
    my $in = $play->thread;
    run_steps($in, undef, map { { n => $_ } } 1 .. 8);
    my $count = sub { return $session->value("select count(*) from agent.checkpoints where thread_id = '$_[0]'") };
    # A megabyte each, of text that does not compress.
    $session->query("update agent.checkpoints set next = json_build_array((select string_agg(md5(random()::text), '')
        from generate_series(1, 32000))) where thread_id = '$in'");
    my $copy = AgentSQL::uuid();
    is_deeply [ piece($in, $copy) ], [ 'ok', 'more' ], 'a copy of eight megabytes is begun';
    is $count->($copy), 4, 'a piece copies four of eight';
    is_deeply [ $play->api('delete_thread', $in) ], [ 'ok', 'more' ], 'a deletion of eight megabytes is begun';
    is $count->($in), 4, 'a piece deletes four of eight';
    1 while ($play->api('delete_thread', $in, 'true'))[1];
    is +(piece($in, $copy, 1))[0], 'thread_changed', 'the copy ends';
};

subtest 'a copy that meets a deletion ends, and is swept' => sub {
    my %deletes = (
        'of a run' => sub { $play->api('delete_run', $_[0], $session->value("select md5('$_[0]' || 'r1')::uuid")) },
        'of the thread' => sub { $play->api('delete_thread', $_[0]) },
        'of the thread, with another one in its place' => sub {
            my ($continued, $body) = ('false', 'more');
            while ($body eq 'more') {
                (undef, $body) = $play->api('delete_thread', $_[0], $continued);
                $continued = 'true';
            }
            $play->api('create_thread', $_[0], 'raise', '{}');
        },
    );
    for my $what (sort keys %deletes) {
        my ($in) = long_chat(1000);
        my $copy = AgentSQL::uuid();
        is_deeply [ piece($in, $copy) ], [ 'ok', 'more' ];
        $deletes{$what}->($in);
        is +(piece($in, $copy, 1))[0], 'thread_changed', "a deletion $what";
        is +($play->api('get_thread', $copy))[0], 'thread_not_found';
        my $sweeps = 0;
        $sweeps++ while $session->value('select agent.sweep_copies()');
        cmp_ok $sweeps, '>=', 1;
        is_deeply rows($copy), $NOTHING;
        is +(piece($in, $copy, 1))[0], 'thread_changed', 'a swept copy is not continued';
    }
};

subtest 'a rollback ends a copy as well' => sub {
    my ($in, $head) = long_chat(1000);
    my $claim = $play->leased($worker, $in);
    my $copy = AgentSQL::uuid();
    is +(piece($in, $copy))[0], 'ok';
    $play->api('cancel_run', $in, $claim->{run_id}, 'rollback');
    $play->save($worker, AgentSQL::Play::finish($claim));
    is $play->status($in, $claim->{run_id}), 'run_not_found';
    is +(piece($in, $copy, 1))[0], 'thread_changed';
    1 while $session->value('select agent.sweep_copies()');
    is_deeply rows($copy), $NOTHING;
};

subtest 'a copy whose server died is swept after two minutes, in bounded pieces; one that goes on is not' => sub {
    my ($in) = long_chat(1500);
    my ($copy, $live) = map { AgentSQL::uuid() } 1, 2;
    piece($in, $copy);
    piece($in, $live);
    piece($in, $copy, 1);
    is $session->value('select agent.sweep_copies()'), 0;
    my $wait = sub { $session->query("set agent.now = '" . $session->value("select now() + interval '$_[0] seconds'") . "'") };
    $wait->(60);
    is +(piece($in, $live, 1))[0], 'ok';
    $wait->(121);
    my $other = $db->session;
    $session->query('begin');
    is $session->value('select agent.sweep_copies()'), 1;
    is $other->value('select agent.sweep_copies()'), 0, 'two sweeps do not wait for each other';
    $session->query('commit');
    my $left = rows($copy);
    cmp_ok $left->{checkpoints}, '>', 0, "$left->{checkpoints} are left";
    is +(piece($in, $copy, 1))[0], 'thread_changed', 'it cannot go on between two pieces of the sweep';
    1 while $session->value('select agent.sweep_copies()');
    is_deeply rows($copy), $NOTHING;
    my ($code) = ('ok');
    ($code) = piece($in, $live, 1) while $code eq 'ok' && $session->value("select count(*) from agent.thread_copies");
    is $code, 'ok';
    is scalar @{ $play->body('get_state', $live, undef)->{values}{messages} }, 3000;
    $session->query('reset agent.now');
};

subtest 'checkpoints of subgraphs are copied, each namespace up to the newest one of that time' => sub {
    my $in = $play->thread;
    my $claim = $play->leased($worker, $in);
    my %saved;
    my $save = sub {
        my ($ns, $id, $parent, @texts) = @_;
        $play->save($worker, AgentSQL::Play::checkpoint($claim, ns => $ns, id => $id, parent => $parent, messages => [@texts]));
    };
    my @ids = sort map { AgentSQL::uuid() } 1 .. 4;
    $save->('', $ids[0], undef, 1);
    $save->($_, $ids[0], undef, $_) for 'a', 'b:1', 'b:2';
    $save->('a', $ids[1], $ids[0], 'a', 2);
    my $copy = AgentSQL::uuid();
    $session->query("set agent.now = '" . $session->value('select clock_timestamp()') . "'");
    $session->query('begin');
    $session->query("insert into agent.thread_copies select '$AgentSQL::DEPLOYMENT', '$copy', thread_id, created_at, state_deletions, null,
        metadata, config, head_checkpoint_id, head_run_id, head_has_next, '', head_checkpoint_id, '', null, run_seq, agent.now(), agent.now() + interval '2 minutes'
          from agent.threads where thread_id = '$in'");
    $session->query('commit');
    $session->query("set agent.now = '" . $session->value("select agent.now() + interval '1 second'") . "'");
    $save->('a', $ids[2], $ids[1], 'a', 2, 3);
    $save->('c', $ids[3], undef, 4);
    is_deeply [ piece($in, $copy, 1) ], [ 'ok', '' ];
    $session->query('reset agent.now');
    my $kept = sub {
        return join ' ', map { "$_->[0]$_->[1]" } $session->query("select checkpoint_ns || '/', array_position('{" . join(',', @ids) . "}', checkpoint_id)
            from agent.checkpoints where thread_id = '$_[0]' order by checkpoint_ns, checkpoint_id");
    };
    is $kept->($copy), '/1 a/1 a/2 b:1/1 b:2/1';
    is orphans($copy), 0;
    is $session->value("select count(*) from agent.checkpoint_items where thread_id = '$copy'"), 5;
    $play->save($worker, AgentSQL::Play::finish($claim));
};

subtest 'a copy ends whatever ids a runner has sent' => sub {
    my $in = $play->thread;
    my $claim = $play->leased($worker, $in);
    my $smallest = '00000000-0000-0000-0000-000000000000';
    my %id = ('' => AgentSQL::uuid(), map { $_ => $smallest } qw(a b));
    $play->save($worker, AgentSQL::Play::checkpoint($claim, ns => $_, id => $id{$_}, messages => [1])) for sort keys %id;
    $play->save($worker, AgentSQL::Play::finish($claim));
    my $copy = AgentSQL::uuid();
    is_deeply [ piece($in, $copy, 0) ], [ 'ok', '' ];
    is rows($copy)->{checkpoints}, 3, 'the checkpoints of all namespaces';
};

# The snapshots of a thread with their writes, as the library reads them, without the ids of the thread.
sub snapshots_of {
    my ($in, @ids) = @_;
    return [ map { my $id = $_; [ map { $session->value("select body from agent.$_('$AgentSQL::DEPLOYMENT', '$in',
        '{\"ns\":\"\",\"checkpoint_id\":\"$id\"}', null, 100000000)") } 'read_checkpoint' ] } @ids ];
}

# Blobs of a thread whose count of uses is wrong, or whose use is not stored.
sub wrong_uses {
    my ($in) = @_;
    return $session->value("select count(*) from (
        select d.digest, count(*) as uses from agent.checkpoint_items i cross join lateral agent.split_digests(i.content) d
         where i.thread_id = '$in' and i.is_digests group by 1) x
        full join (select digest, uses from agent.checkpoint_blobs where thread_id = '$in' and part = 0) b using (digest)
        left join (select d.digest, count(*) as uses from agent.checkpoint_writes w cross join lateral unnest(w.digests) d (digest)
         where w.thread_id = '$in' group by 1) w using (digest)
        where coalesce(x.uses, 0) + coalesce(w.uses, 0) is distinct from b.uses");
}

subtest 'a copy has the records of the library: snapshots, writes and blobs, with their uses' => sub {
    my $in = $play->thread;
    my $claim = $play->leased($worker, $in);
    my @ids = sort map { AgentSQL::uuid() } 1 .. 4;
    my (@batch, @digests);
    my $value = sub {
        my ($digest, $item) = AgentSQL::Play::blob($claim, $_[0]);
        push @batch, $item;
        return $digest;
    };
    my $put = sub {
        my ($n, $parent, %channels) = @_;
        push @batch, AgentSQL::Play::put($claim, id => $ids[$n], parent => defined $parent ? $ids[$parent] : undef, channels => \%channels);
        $play->save($worker, splice @batch);
    };
    $put->(0, undef, messages => { list => { keep => 0, items => [ map { $value->(qq("$_")) } 1 .. 600 ] } }, note => $value->('"long"'));
    $put->(1, 0, messages => { list => { keep => 600, items => [ $value->('"601"'), $value->('"1"') ] } });
    $put->(2, 1, messages => { list => { keep => 300, items => [ $value->('"fork"') ] } }, note => undef);
    $put->(3, 1, note => $value->('"other"'));
    push @batch, AgentSQL::Play::put_writes($claim, id => $ids[2], writes => [ [ 0, 'messages', $value->('"written"') ], [ -1, '__error__', $value->('"long"') ] ]);
    $play->save($worker, splice(@batch), AgentSQL::Play::checkpoint($claim, id => $ids[2], messages => ['shown']), AgentSQL::Play::finish($claim));
    my $expected = snapshots_of($in, @ids[ 2, 1, 0 ]);
    # A run that is created while the thread is copied; a run of the copy gets its number.
    $session->query("insert into agent.checkpoint_writes select deployment_id, thread_id, '', '$ids[2]', 't', 7, run_seq + 1, null, '', 'later', '{}', false
        from agent.threads where thread_id = '$in'");
    my $copy = copy_of($in);
    is_deeply snapshots_of($copy, @ids[ 2, 1, 0 ]), $expected, 'those up to the one of the head, without the writes of later runs';
    is rows($copy)->{$_}, { checkpoint_snapshots => 3, checkpoint_writes => 2, copy_blobs => 0, copy_lists => 0 }->{$_}, $_
        for qw(checkpoint_snapshots checkpoint_writes copy_blobs copy_lists);
    is wrong_uses($copy), 0;
    is $session->value("select count(*) from agent.checkpoint_blobs a join agent.checkpoint_blobs b using (digest, part, parts, stored_parts, type, is_text, content)
        where a.thread_id = '$in' and b.thread_id = '$copy'"), rows($copy)->{checkpoint_blobs}, 'the blobs are the same';
    is +($play->api('delete_thread', $in))[0], 'ok';
    # A run of the copy goes on, and is deleted.
    my $next = $play->leased($worker, $copy);
    my ($digest, $blob) = AgentSQL::Play::blob($next, '"new"');
    my $new = AgentSQL::uuid();
    $play->save($worker, $blob, AgentSQL::Play::put($next, id => $new, parent => $ids[2],
        channels => { messages => { list => { keep => 301, items => [$digest] } } }),
        AgentSQL::Play::put_writes($next, id => $ids[2], writes => [ [ -1, '__error__', $digest ] ]), AgentSQL::Play::finish($next));
    is wrong_uses($copy), 0;
    my $before = snapshots_of($copy, @ids[ 1, 0 ]);
    is +($play->api('delete_run', $copy, $next->{run_id}))[0], 'ok';
    is wrong_uses($copy), 0;
    is_deeply snapshots_of($copy, @ids[ 1, 0 ]), $before;
    is +($play->api('delete_thread', $copy))[0], 'ok';
    is_deeply rows($copy), $NOTHING;
};

subtest 'a copy has no elements of branches that it does not contain' => sub {
    my $in = $play->thread;
    my (undef, $base) = run_steps($in, undef, { messages => [ human(0) ] });
    my ($run, $long) = run_steps($in, $base, { messages => list(1, map { human($_) } 1 .. 9) });
    run_steps($in, $long, { messages => list(10, human('other')) });
    run_steps($in, $long, { messages => list(3, human('head')) });
    my $claim = $play->leased($worker, $in);
    my @ids = sort map { AgentSQL::uuid() } 1 .. 3;
    my (@digests, @blobs);
    ($digests[$_], $blobs[$_]) = AgentSQL::Play::blob($claim, $_) for 0 .. 599;
    my $put = sub {
        my ($in_run, $id, $parent, $keep, @add) = @_;
        $play->save($worker, AgentSQL::Play::put($in_run, id => $id, parent => $parent, channels => { messages => { list => { keep => $keep, items => \@add } } }));
    };
    $play->save($worker, @blobs);
    $put->($claim, $ids[0], undef, 0, @digests);
    $play->save($worker, AgentSQL::Play::finish($claim));
    my $next = $play->leased($worker, $in);
    $put->($next, $ids[1], $ids[0], 600, $digests[0]);
    $put->($next, $ids[2], $ids[0], 10, $digests[0]);
    $play->save($worker, AgentSQL::Play::finish($next));
    is +($play->api('delete_run', $in, $_))[0], 'ok' for $run, $claim->{run_id};
    my $copy = copy_of($in);
    is_deeply $play->messages($copy), [ 0 .. 2, 'head' ];
    is orphans($copy), 0, 'of states';
    is wrong_uses($copy), 0;
    is $session->value("select sum(elements) from agent.checkpoint_items where thread_id = '$copy' and is_digests"), 257, 'of snapshots: one row of those that the deleted run stored';
    my (undef, $next_head) = run_steps($copy, state_of($copy, undef)->{checkpoint}{checkpoint_id}, { messages => list(4, human('more')) });
    is_deeply $play->messages(copy_of($copy)), [ 0 .. 2, 'head', 'more' ], 'a copy of a copy has the same messages';
    is orphans($copy), 0;
};

subtest 'a copy has no tasks of runs that began after it' => sub {
    my ($in, $head) = long_chat(1500);
    my $first = $session->value("select md5('$in' || 1)::uuid");
    $session->query("update agent.checkpoints set tasks = '[{\"id\":\"t\",\"name\":\"agent\"}]' where thread_id = '$in' and checkpoint_id = '$first'");
    my $before = state_of($in, $first)->{tasks};
    my $copy = AgentSQL::uuid();
    is +(copied($in, $copy, sub {
        return if $_[0] > 1;
        my $claim = $play->leased($worker, $in, request => { checkpoint => { checkpoint_id => $first } });
        $play->save($worker, AgentSQL::Play::task($claim, $first, { id => 't', error => 'later' }), AgentSQL::Play::finish($claim));
    }))[0], 'ok';
    is state_of($in, $first)->{tasks}[0]{error}, 'later';
    is_deeply state_of($copy, $first)->{tasks}, $before;
};

subtest 'blobs of many parts and many blobs are copied in bounded pieces' => sub {
    my ($in) = long_chat(1);
    my $key = "'$AgentSQL::DEPLOYMENT', '$in'";
    $session->query("insert into agent.checkpoint_blobs (deployment_id, thread_id, digest, part, parts, stored_parts, uses, type, is_text, content)
        select $key, md5('d' || n)::uuid, p, case p when 0 then 3 end, case p when 0 then 3 end, case p when 0 then 1 end, 'bytes', false,
            (select string_agg(uuid_send(gen_random_uuid()), '') from generate_series(1, 30000))
          from generate_series(1, 6) n, generate_series(0, 2) p");
    $session->query("insert into agent.checkpoint_snapshots select deployment_id, thread_id, '', checkpoint_id, null, run_id, '{}', '{}', '{}', now()
        from agent.checkpoints where thread_id = '$in'");
    $session->query("insert into agent.checkpoint_writes select $key, '', head_checkpoint_id, 't', n, 1, null, '', 'c', array[md5('d' || n)::uuid], false
        from agent.threads, generate_series(1, 6) n where thread_id = '$in'");
    my $copy = AgentSQL::uuid();
    my $before = 0;
    my ($code, $calls) = copied($in, $copy, sub {
        my $after = rows($copy)->{checkpoint_blobs};
        cmp_ok $after - $before, '<=', 9;
        $before = $after;
    });
    is $code, 'ok';
    cmp_ok $calls, '>=', 2;
    is rows($copy)->{checkpoint_blobs}, 18;
    is wrong_uses($copy), 0;
    my $gone = AgentSQL::uuid();
    $session->query("delete from agent.checkpoint_blobs where thread_id = '$in' and digest = md5('d3')::uuid");
    is +(copied($in, $gone))[0], 'thread_changed', 'a blob that was swept ends the copy';
};

subtest 'a chain whose beginning is missing, or that returns to itself has an end in the copy' => sub {
    my $in = $play->thread;
    my (undef, $a, $b) = run_steps($in, undef, { messages => [ human(1) ] }, { messages => list(1, human(2)) });
    $session->query("update agent.checkpoints set parent_checkpoint_id = '$b' where checkpoint_id = '$a'");
    my $copy = AgentSQL::uuid();
    is +(copied($in, $copy))[0], 'ok';
    is_deeply $play->messages($copy), [ 1, 2 ];
    is rows($copy)->{checkpoints}, 2;
    $session->query("update agent.checkpoints set parent_checkpoint_id = '$in' where checkpoint_id = '$a' and thread_id = '$in'");
    is rows(copy_of($in))->{checkpoints}, 2;
};

subtest 'random chats with forks and deletions: a copy has the states before its head, and lives on by itself' => sub {
    for my $round (1 .. 4) {
        my $in = $play->thread;
        my (%length, %run);
        for my $turn (1 .. 40) {
            if (rand() < 0.3 && %run) {
                my $run = (sort keys %run)[ rand keys %run ];
                is +($play->api('delete_run', $in, $run))[0], 'ok';
                delete @length{ @{ delete $run{$run} } };
            } else {
                my @known = sort keys %length;
                my $parent = @known && rand() < 0.9 ? $known[ rand() < 0.6 ? -1 : rand @known ] : undef;
                my $kept = $parent ? int rand(1 + $length{$parent}) : 0;
                $kept = $length{$parent} if $parent && rand() < 0.7;
                my @steps = map { [ map { rand() < 0.2 ? $_ : human("$turn $_") } 1 .. rand 4 ] } 1 .. 1 + rand 3;
                my @values = ({ text => 'x' x rand 300, a => list($kept, @{ $steps[0] }) });
                my @lengths = ($kept + @{ $steps[0] });
                for my $added (@steps[ 1 .. $#steps ]) {
                    push @values, { text => { '$same' => \1 }, a => list($lengths[-1], @{$added}) };
                    push @lengths, $lengths[-1] + @{$added};
                }
                my ($run, @ids) = run_steps($in, $parent, @values);
                @length{@ids} = @lengths;
                $run{$run} = \@ids;
            }
            next if $turn % 4;
            my $copy = copy_of($in);
            my $chain = chain($in);
            is_deeply chain($copy), $chain, "seed $SEED, round $round, turn $turn: the states are the same";
            next if !defined $chain->[0]{checkpoint_id};
            # The copy is continued at a random checkpoint, and the new run is deleted.
            my $at = $chain->[ rand @{$chain} ];
            my $keep = int rand(1 + @{ $at->{values}{a} });
            my ($run, $new) = run_steps($copy, $at->{checkpoint_id}, { a => list($keep, human('new')) });
            is_deeply state_of($copy, $new)->{values}{a}, [ @{ $at->{values}{a} }[ 0 .. $keep - 1 ], human('new') ];
            $play->api('delete_run', $copy, $run);
            1 while $session->value('select agent.sweep_state()');
            is_deeply state_of($copy, $_->{checkpoint_id}), $_, 'the others are the same' for @{$chain};
        }
    }
};

subtest 'copies of a deployment do not keep those of others from their turn' => sub {
    my $rows = sub {
        my ($deployment, $count) = @_;
        $session->query("insert into agent.thread_copies (deployment_id, thread_id, source_id, source_created_at, state_deletions, metadata, config,
                head_has_next, run_seq, started_at, expires_at)
            select '$deployment', gen_random_uuid(), gen_random_uuid(), now(), 0, '{}', '{}', false, 0, now(), now() from generate_series(1, $count)");
    };
    my @many = ('00000000-0000-0000-0000-000000000001', 'ffffffff-ffff-ffff-ffff-ffffffffffff');
    my @few = ('00000000-0000-0000-0000-000000000002', '80000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-fffffffffffe');
    $rows->($_, 1000) for @many;
    $rows->($_, 1) for @few;
    my $left = sub { $session->value('select count(*) from agent.thread_copies where deployment_id = any (\'{' . join(',', @_) . '}\')') };
    my $sweeps = 0;
    $sweeps++ while $left->(@few) && $session->value('select agent.sweep_copies()');
    cmp_ok $left->(@many), '>', 0, "all turns but these were taken first: $sweeps sweeps";
    is $left->($_) > 500, 1, 'no deployment has most turns' for @many;
    1 while $session->value('select agent.sweep_copies()');
    is $left->(@many, @few), 0, 'nothing is left';
};

done_testing;
