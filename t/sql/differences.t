# SPDX-License-Identifier: Apache-2.0
# Values of checkpoints as differences from those of the parent: how they are sent, stored, read and deleted.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use lib "$FindBin::Bin/../lib";
use Digest::SHA ();
use List::Util qw(max min sum);
use Test::More;
use AgentSQL;
use AgentTest::Env qw(slurp);
use AgentSQL::Play;

my $db = AgentSQL->new;
my $play = AgentSQL::Play->new($db->session);
my $session = $play->session;
my $worker = $play->worker;
# One subtest makes random chats, with a seed for each round from this one on; a failure names it.
my $SEED = $ENV{AGENT_SEED} // 7;

sub human { return AgentSQL::Play::human($_[0]) }

sub list {
    my ($keep, @items) = @_;
    return { '$list' => { keep => $keep, items => \@items } };
}
my $SAME = { '$same' => \1 };

# Saves a checkpoint of a leased run and returns its id.
sub saved {
    my ($claim, $parent, %values) = @_;
    my $id = AgentSQL::uuid();
    $play->save($worker, AgentSQL::Play::checkpoint($claim, id => $id, parent => $parent, values => \%values));
    return $id;
}

sub values_of { return $play->body('get_state', $_[0], $_[1])->{values} }

sub items {
    my ($thread) = @_;
    return $session->value("select count(*) from agent.checkpoint_items where thread_id = '$thread'");
}

# Stored elements of a thread that no checkpoint contains.
sub orphans {
    my ($thread) = @_;
    return $session->value("select count(*) from agent.checkpoint_items i where thread_id = '$thread' and not exists (
        select from agent.checkpoints c, unnest(c.channels) v, unnest(v.list_ids, v.ends) s (list_id, until)
         where c.thread_id = i.thread_id and s.list_id = i.list_id and i.position < s.until)");
}

# Its checkpoints, as namespace and id.
sub checkpoints {
    my ($thread) = @_;
    return $session->value("select string_agg(checkpoint_ns || ' ' || checkpoint_id, ',' order by checkpoint_ns)
        from agent.checkpoints where thread_id = '$thread'");
}

# The members of values from a cursor on: (the members, number of parts).
sub read_members {
    my ($bytes, $thread, $cursor) = @_;
    my ($members, $parts) = ('', 0);
    while ($cursor ne '') {
        my ($code, $part) = $session->call('read_values', $AgentSQL::DEPLOYMENT, $thread, $cursor, $bytes);
        die "read_values: $code" if $code ne 'ok';
        $cursor = $session->extra;
        $members .= $part;
        $parts++;
    }
    return ($members, $parts);
}

# The answer of a function of the API that is sent in parts: (the answer, number of parts).
sub send_parts {
    my ($bytes, $thread, @call) = @_;
    my ($code, $answer) = $session->call(shift @call, $AgentSQL::DEPLOYMENT, $thread, @call, 0);
    is $code, 'ok';
    my ($members, $parts) = read_members($bytes, $thread, $session->extra);
    is $answer =~ s/\x01/$members/, 1, 'the place of the values is marked';
    return (AgentSQL::decode($answer), $parts);
}

# The next part of a state: (code, the part, the cursor after it, the lengths of its rows).
sub read_part {
    my ($thread, $checkpoint, $cursor, $bytes) = @_;
    my @rows = $session->query(sprintf("select * from agent.read_state('%s', '%s', '%s', %s, %d)",
        $AgentSQL::DEPLOYMENT, $thread, $checkpoint, AgentSQL::Session::literal($cursor), $bytes));
    return ($rows[0][0], join('', map { $_->[1] } @rows), $rows[-1][2] eq '' ? undef : $rows[-1][2], [ map { length $_->[1] } @rows ]);
}

# The parts of read_state, applied in order as a runner does: (the state, number of parts).
sub read_parts {
    my ($thread, $checkpoint, $bytes) = @_;
    my (%state, $cursor, $parts);
    do {
        (my $code, my $body, $cursor) = read_part($thread, $checkpoint, $cursor, $bytes);
        die "read_state: $code" if $code ne 'ok';
        my $values = AgentSQL::decode($body)->{values};
        for my $name (keys %$values) {
            my $value = $values->{$name};
            my ($kind) = ref $value eq 'HASH' && keys %$value == 1 ? keys %$value : '';
            if ($kind eq '$list') {
                die "a list continues at $value->{$kind}{keep}" if $value->{$kind}{keep} != @{ $state{$name} // [] };
                push @{ $state{$name} }, @{ $value->{$kind}{items} };
            } else {
                $state{$name} = $kind eq '$value' ? $value->{$kind} : $value;
            }
        }
        $parts++;
    } while (defined $cursor);
    return (\%state, $parts);
}

# Whether short parts of a checkpoint give its state.
sub has_parts {
    my ($thread, $id, $state) = @_;
    my ($parts) = eval { read_parts($thread, $id, 300) };
    return $parts && AgentSQL::encode($parts) eq AgentSQL::encode($state);
}

subtest 'a list sent as a difference keeps the elements of its parent, and stores only the others' => sub {
    my $claim = $play->leased($worker, $play->thread);
    my $thread = $claim->{thread_id};
    my $long = 'x' x 500;
    my $first = saved($claim, undef, messages => [ map { human($_) } 1 .. 3 ], note => $long, n => 1);
    is items($thread), 4;
    my $second = saved($claim, $first, messages => list(3, human(4), human(5)), note => $SAME, n => 2);
    is items($thread), 6, 'two elements more';
    is_deeply values_of($thread, $second), { messages => [ map { human($_) } 1 .. 5 ], note => $long, n => 2 };
    is_deeply values_of($thread, $first), { messages => [ map { human($_) } 1 .. 3 ], note => $long, n => 1 },
        'the parent is unchanged';
    my $third = saved($claim, $second, messages => list(5), n => $SAME);
    is items($thread), 6, 'a step that changes nothing stores no value';
    is_deeply values_of($thread, $third), { messages => [ map { human($_) } 1 .. 5 ], n => 2 },
        'a channel that is not named is not in the state';
    my $fourth = saved($claim, $third, n => $SAME, messages => $SAME, more => list(0, 1, 2), empty => list(0));
    is_deeply values_of($thread, $fourth), { messages => [ map { human($_) } 1 .. 5 ], n => 2, more => [ 1, 2 ], empty => [] },
        'channels may come in another order, and new ones begin';
    $play->save($worker, AgentSQL::Play::finish($claim));
};

subtest 'the steps of one batch build on each other' => sub {
    my $claim = $play->leased($worker, $play->thread);
    my @ids = map { AgentSQL::uuid() } 0 .. 5;
    my @steps = ({ messages => [] }, { messages => list(0, human(1)) }, { messages => list(1, human(2)) },
        { messages => list(1, human('two')) }, { messages => list(2, human(3)) }, { messages => list(1, human('other')) });
    my @parents = (undef, @ids[ 0 .. 3 ], $ids[2]);
    my @batch = map { AgentSQL::Play::checkpoint($claim, id => $ids[$_], parent => $parents[$_], values => $steps[$_]) } 0 .. 5;
    $play->save($worker, @batch) for 1, 2;
    is_deeply [ map { [ map { $_->{content} } @{ values_of($claim->{thread_id}, $_)->{messages} } ] } @ids ],
        [ [], [1], [ 1, 2 ], [ 1, 'two' ], [ 1, 'two', 3 ], [ 1, 'other' ] ];
    is orphans($claim->{thread_id}), 0, 'a repeated batch stores nothing again';
    $play->save($worker, AgentSQL::Play::finish($claim));
};

subtest 'a list sent whole that ends where its parent has a row of short elements has no other elements' => sub {
    my $claim = $play->leased($worker, $play->thread);
    my $parent = saved($claim, undef, messages => [ human(1), human(2) ]);
    # Each step is one row, whatever follows it.
    $parent = saved($claim, $parent, messages => list(2, 3 .. 5));
    $parent = saved($claim, $parent, messages => list(5, human(6)));
    for my $count (0 .. 6) {
        my @whole = (human(1), human(2), 3 .. 5, human(6))[ 0 .. $count - 1 ];
        my $id = saved($claim, $parent, messages => \@whole);
        is_deeply values_of($claim->{thread_id}, $id), { messages => \@whole }, "$count elements";
        my $next = saved($claim, $id, messages => list($count, human('next')));
        is_deeply +(read_parts($claim->{thread_id}, $next, 100))[0], { messages => [ @whole, human('next') ] },
            "$count elements, continued, in parts";
    }
    $play->save($worker, AgentSQL::Play::finish($claim));
};

subtest 'checkpoints of a subgraph have their own parents, and do not move the head' => sub {
    my $thread = $play->thread;
    my $claim = $play->leased($worker, $thread);
    my ($id, $next) = map { AgentSQL::uuid() } 1, 2;
    my $step = sub { return AgentSQL::Play::checkpoint($claim, %{ $_[0] }, values => $_[1]) };
    my @batch = ($step->({ id => $id }, { messages => [ human(1) ] }), $step->({ id => $id, ns => 'sub:1' }, { messages => [ human('a') ] }),
        $step->({ id => $next, parent => $id, ns => 'sub:1', next => ['tool'] }, { messages => list(1, human('b')) }));
    $play->save($worker, @batch) for 1, 2;
    is checkpoints($thread), " $id,sub:1 $id,sub:1 $next", 'one id may stand in several namespaces';
    is_deeply $play->messages($thread), [1];
    my $wrong = AgentSQL::encode([ $step->({ parent => $next }, { messages => list(2) }) ]);
    like $session->error("select * from public.save_items($worker, '$wrong')"), qr/\A22/, 'a parent of another namespace is not one';
    is +($play->api('get_state', $thread, $next))[0], 'checkpoint_not_found';
    $play->save($worker, AgentSQL::Play::finish($claim));
    is $play->thread_status($thread), 'idle', 'the next node of a subgraph does not interrupt the thread';
    my $second = $play->leased($worker, $thread);
    $play->save($worker, AgentSQL::Play::checkpoint($second, ns => 'sub:1', parent => $next, values => { messages => list(1, human('c')) }),
        AgentSQL::Play::finish($second));
    is +($play->api('delete_run', $thread, $claim->{run_id}))[0], 'ok';
    is items($thread), 2, 'elements that a remaining checkpoint of the subgraph contains stay';
    is +($play->api('delete_run', $thread, $second->{run_id}))[0], 'ok';
    is items($thread), 0;
    is $session->value("select count(*) from agent.inherited_items where thread_id = '$thread'"), 0;
};

subtest 'a checkpoint of no run is a state as any other' => sub {
    my $thread = $play->thread;
    my $claim = $play->leased($worker, $thread);
    my $id = saved($claim, undef, messages => [ human(1) ]);
    $play->save($worker, AgentSQL::Play::finish($claim));
    $session->query("update agent.checkpoints set run_id = null where thread_id = '$thread'");
    $session->query("update agent.threads set head_run_id = null where thread_id = '$thread'");
    is_deeply $play->body('get_state', $thread, undef)->{metadata},
        { source => 'loop', step => 1, writes => undef, parents => {}, thread_id => $thread };
    my $next = $play->leased($worker, $thread);
    my $start = AgentSQL::decode($next->{start});
    is_deeply [ @{ $start->{checkpoint} }{qw(checkpoint_id run_id)} ], [ $id, undef ];
    my $last = saved($next, $id, messages => list(1, human(2)));
    $play->save($worker, AgentSQL::Play::finish($next));
    is +($play->api('delete_run', $thread, $next->{run_id}))[0], 'ok';
    is_deeply $play->messages($thread), [1], 'the deletion of a later run keeps it';
};

subtest 'a value that looks like the notation is sent in $value and comes back as it is' => sub {
    my $claim = $play->leased($worker, $play->thread);
    my %values = (a => { '$list' => 1 }, b => { '$same' => \1 }, c => { '$value' => undef }, d => { '$value' => [1] },
        e => { '$list' => 1, x => 2 }, f => { x => { '$list' => 1 } }, g => [ { '$same' => \1 } ], h => { '$other' => 1 });
    my $id = saved($claim, undef, %values, map { ($_ => { '$value' => $values{$_} }) } qw(a b c d));
    is_deeply values_of($claim->{thread_id}, $id), AgentSQL::decode(AgentSQL::encode(\%values));
    is_deeply +(read_parts($claim->{thread_id}, $id, 1000))[0], AgentSQL::decode(AgentSQL::encode(\%values)),
        'a runner gets it in $value again';
    my $text = AgentSQL::encode([ AgentSQL::Play::checkpoint($claim, values => {}) ]);
    $text =~ s/"values":\{\}/"values":{"a": \n{ \t"\\u0024value" :  [1,  2]} }/;
    $session->query("select * from public.save_items($worker, " . AgentSQL::Session::literal($text) . ')');
    is_deeply values_of($claim->{thread_id}, undef), { a => [ 1, 2 ] }, 'escapes and spaces make no difference';
    $play->save($worker, AgentSQL::Play::finish($claim));
};

subtest 'a difference from something that the parent does not have is refused, and nothing of it is stored' => sub {
    my $claim = $play->leased($worker, $play->thread);
    my $thread = $claim->{thread_id};
    my $first = saved($claim, undef, messages => [ human(1) ], n => 1);
    my $other = $play->leased($worker, $play->thread);
    my $foreign = saved($other, undef, messages => [ map { human($_) } 1 .. 3 ]);
    my @bad = ([ $first, messages => list(2) ], [ $first, messages => list(-1) ], [ $first, messages => list(1.5) ],
        [ $first, messages => list('x') ], [ $first, messages => list(undef) ], [ $first, messages => list(99_999_999_999) ],
        [ $first, other => list(1) ], [ $first, other => $SAME ], [ $first, n => list(1) ], [ undef, messages => list(1) ],
        [ undef, messages => $SAME ], [ AgentSQL::uuid(), messages => list(1) ], [ $foreign, messages => list(3) ],
        [ $foreign, messages => $SAME ], [ $first, messages => { '$same' => \0 } ], [ $first, messages => { '$same' => undef } ],
        [ $first, messages => { '$list' => 1 } ], [ $first, messages => { '$list' => { keep => 1 } } ],
        [ $first, messages => { '$list' => { keep => 1, items => 1 } } ],
        [ $first, messages => { '$list' => { keep => 1, items => { a => 1 } } } ],
        [ $first, messages => { '$list' => { items => [] } } ]);
    for my $bad (@bad) {
        my ($parent, %values) = @$bad;
        my $items = AgentSQL::encode([ AgentSQL::Play::checkpoint($claim, parent => $parent, values => \%values) ]);
        like $session->error("select * from public.save_items($worker, '$items')"), qr/\A22/, AgentSQL::encode(\%values);
    }
    my ($most, $more) = map {
        AgentSQL::encode([ AgentSQL::Play::checkpoint($claim, values => { map { ("c$_" => 1) } 1 .. $_ }) ])
    } 1024, 1025;
    is $session->error("select * from public.save_items($worker, '$more')"), 'MA012', '1,025 channels';
    is $session->error("begin; select * from public.save_items($worker, '$most'); rollback"), '', '1,024 channels are saved';
    my ($longest, $longer) = map { AgentSQL::encode([ AgentSQL::Play::checkpoint($claim, values => { 'x' x 32_768 => 1, 'y' x $_ => 1 }) ]) } 32_768, 32_769;
    is $session->error("select * from public.save_items($worker, '$longer')"), 'MA012', 'names of more than 64 KB';
    is $session->error("begin; select * from public.save_items($worker, '$longest'); rollback"), '', 'names of 64 KB are saved';
    is $session->value("select count(*) from agent.checkpoints where thread_id = '$thread'"), 1;
    is items($thread), 1;
    $play->save($worker, AgentSQL::Play::finish($_)) for $claim, $other;
};

subtest 'a list that is sent whole is stored as the difference from its parent' => sub {
    my $claim = $play->leased($worker, $play->thread);
    my $thread = $claim->{thread_id};
    my @small = map { $_ * 7 } 1 .. 1000;
    my @lists = ([ map { human($_) } 1 .. 20 ], [ map { human($_) } 1 .. 21 ], [ map { human($_) } 1 .. 20, 'last' ],
        [ map { human($_) } 1 .. 10 ], [ map { human($_) } 1 .. 9, 'ten' .. 'ten', 11 .. 20 ], [], [ @small ], [ @small, 1 ],
        [ @small[ 0 .. 99 ] ]);
    # Rows that each stores: 128 short elements share one, a list of other short ones is stored anew, and a short segment
    # is copied.
    my @rows = (20, 1, 1, 0, 20, 0, 8, 1, 1);
    my ($parent, $count) = (undef, 0);
    for my $n (0 .. $#lists) {
        $parent = saved($claim, $parent, list => $lists[$n]);
        is items($thread) - $count, $rows[$n], "list $n stores $rows[$n] rows";
        $count = items($thread);
        is_deeply values_of($thread, $parent), { list => $lists[$n] };
    }
    is orphans($thread), 0;
    $play->save($worker, AgentSQL::Play::finish($claim));
};

# Pages of long values that a batch reads, of checkpoints and of elements.
sub long_reads {
    my ($claim, @items) = @_;
    my $count = "select coalesce(sum(idx_tup_fetch), 0) from pg_stat_xact_all_tables where relid in
        (select reltoastrelid from pg_class where oid in ('agent.checkpoints'::regclass, 'agent.checkpoint_items'::regclass))";
    $session->query('begin');
    my $before = $session->value($count);
    $play->save($worker, @items);
    my $after = $session->value($count);
    $session->query('rollback');
    return $after - $before;
}

# A text that is stored uncompressed.
sub noise { return join '', map { substr Digest::SHA::sha512_base64("$_[0] $_"), 0, 50 } 1 .. $_[1] / 50 }

subtest 'steps in a row that continue one checkpoint read its channels once, and are stored as one by one' => sub {
    my $claim = $play->leased($worker, $play->thread);
    my %many = map { (noise($_, 50) => $_) } 1 .. 1000;
    my @parents = map { saved($claim, undef, %many, l => [ 1, 2 ], m => [ human(1), human(2) ], n => $_) } 1, 2;
    my $step = sub { AgentSQL::Play::checkpoint($claim, parent => $parents[ $_[0] ], values => { n => 1 }) };
    my ($once, $other) = map { long_reads($claim, $step->($_)) } 0, 1;
    cmp_ok $once, '>', 10, 'the channels are long';
    is long_reads($claim, map { $step->(0) } 1 .. 20), $once, '20 in one batch';
    is long_reads($claim, $step->(0), map { $step->(1) } 1 .. 20), $once + $other, 'after one that continues another checkpoint';

    my @ids = map { AgentSQL::uuid() } 0 .. 7;
    my @values = ({ l => list(2, 3), m => list(2, human(3)) }, { l => list(2, 4), m => list(2, human('3b')) },
        { l => list(1, 5), m => list(1, human('2b')) }, { l => [ 1, 2, 6 ], m => [ human(1), human(2), human('3c') ] }, { l => $SAME, m => $SAME },
        { m => list(2), l => [] });
    my @batch = map { AgentSQL::Play::checkpoint($claim, id => $ids[$_], parent => $parents[0], values => $values[$_]) } 0 .. $#values;
    push @batch, AgentSQL::Play::checkpoint($claim, id => $ids[6], parent => $ids[5], values => { m => list(2, human(4)) });
    push @batch, AgentSQL::Play::checkpoint($claim, id => $ids[7], parent => $ids[5], values => { m => list(1, human(5)) });
    $play->save($worker, @batch);
    my $shown = sub { my $v = values_of($claim->{thread_id}, $_[0]); [ $v->{l}, [ map { $_->{content} } @{ $v->{m} } ] ] };
    is_deeply [ map { $shown->($_) } @ids ],
        [ [ [ 1 .. 3 ], [ 1 .. 3 ] ], [ [ 1, 2, 4 ], [ 1, 2, '3b' ] ], [ [ 1, 5 ], [ 1, '2b' ] ], [ [ 1, 2, 6 ], [ 1, 2, '3c' ] ],
          [ [ 1, 2 ], [ 1, 2 ] ], [ [], [ 1, 2 ] ], [ undef, [ 1, 2, 4 ] ], [ undef, [ 1, 5 ] ] ];
    is orphans($claim->{thread_id}), 0;
    $play->save($worker, AgentSQL::Play::finish($claim));
};

subtest 'a list that is sent whole is compared with no more of its parent than it has itself' => sub {
    my $claim = $play->leased($worker, $play->thread);
    my @long = map { noise($_, 100_000) } 1 .. 5;
    my $parent = saved($claim, undef, l => \@long);
    my $whole = sub { AgentSQL::Play::checkpoint($claim, parent => $parent, values => { l => \@_ }) };
    is long_reads($claim, $whole->(@$_)), 0, @$_ . ' short elements' for [ (0) x 5 ], [ 'y' x 70 ], [ ('y' x 70) x 10 ];
    my $one = long_reads($claim, $whole->($long[0]));
    cmp_ok $one, '>', 10, 'an element is long';
    is long_reads($claim, $whole->($long[1])), $one, 'another element of the same length';
    my $count = items($claim->{thread_id});
    saved($claim, $parent, l => [ @long[ 0 .. 2 ], 'other' ]);
    is items($claim->{thread_id}) - $count, 1, 'elements of the parent are not stored again';

    $parent = saved($claim, undef, l => [ map { human($_) } 1 .. 1000 ]);
    my $rows = "select coalesce(sum(idx_tup_fetch), 0) from pg_stat_xact_user_tables where relid = 'agent.checkpoint_items'::regclass";
    $session->query('begin');
    my $before = $session->value($rows);
    $play->save($worker, $whole->(human('other'), human(2)));
    cmp_ok $session->value($rows) - $before, '<', 10, 'of many elements as many as it has';
    $session->query('rollback');
    $play->save($worker, AgentSQL::Play::finish($claim));
};

subtest 'the notation of a value is read as the supervisor reads it' => sub {
    my $text = slurp("$AgentSQL::ROOT/t/unit/notation.txt");
    utf8::decode($text);
    my @cases = map { [ split /[|]/ ] } grep { !/^#/ } split /\n/, $text;
    cmp_ok scalar @cases, '>', 60;
    for my $case (@cases) {
        my ($value, @expected) = @$case;
        my ($got) = $session->query('select agent.is_notation(v), kind, keep, length, bytes, content, content = ' .
            AgentSQL::Session::literal($expected[5]) . '::text[] from (select ' . AgentSQL::Session::literal($value) .
            "::json v) v cross join lateral public.split_values(json_build_object('a', v))");
        my $content = splice @$got, 5, 1;
        is_deeply [ map { length $_ ? $_ : 'null' } @$got ], [ @expected[ 0 .. 4 ], 't' ], "$value: $content";
    }
};

subtest 'a long value is stored once while it does not change' => sub {
    my $claim = $play->leased($worker, $play->thread);
    my $thread = $claim->{thread_id};
    my ($parent, %value) = (undef, files => { map { ("file $_" => 'x' x 100) } 1 .. 20 });
    $parent = saved($claim, $parent, %value, n => $_) for 1 .. 5;
    is items($thread), 1;
    $parent = saved($claim, $parent, files => $SAME);
    $value{files}{'file 1'} = 'y' x 100;
    $parent = saved($claim, $parent, %value);
    is items($thread), 2, 'a value of the same length is compared';
    is_deeply values_of($thread, $parent), \%value;
    $play->save($worker, AgentSQL::Play::finish($claim));
};

subtest 'a state of more than 34 MiB is refused' => sub {
    my $claim = $play->leased($worker, $play->thread);
    my $text = 'x' x 8_900_000;
    my $parent = saved($claim, undef, a => [$text], b => $text);
    $parent = saved($claim, $parent, a => list(1, $text), b => $SAME);
    my $last = saved($claim, $parent, a => list(2, 'x' x 8_800_000), b => $SAME);
    my $items = AgentSQL::encode([ AgentSQL::Play::checkpoint($claim, parent => $last, values => { a => list(3, 'x' x 200_000), b => $SAME }) ]);
    is $session->error("select * from public.save_items($worker, '$items')"), 'MA011';
    is $play->body('get_state', $claim->{thread_id}, undef)->{checkpoint_id}, $last, 'the last one that was saved is the state';
    $play->save($worker, AgentSQL::Play::finish($claim));
};

subtest 'a list that is cut within short elements that were sent together keeps the others' => sub {
    my $claim = $play->leased($worker, $play->thread);
    my $thread = $claim->{thread_id};
    my $first = saved($claim, undef, l => [ 1 .. 9 ]);
    my $cut = saved($claim, $first, l => list(4));
    my $more = saved($claim, $cut, l => list(4, 'a', 'b'));
    my $fork = saved($claim, $first, l => list(4, 'c'));
    my $again = saved($claim, $more, l => list(5, 'd'));
    is_deeply [ map { values_of($thread, $_)->{l} } $first, $cut, $more, $fork, $again ],
        [ [ 1 .. 9 ], [ 1 .. 4 ], [ 1 .. 4, 'a', 'b' ], [ 1 .. 4, 'c' ], [ 1 .. 4, 'a', 'd' ] ];
    is_deeply +(read_parts($thread, $again, 1))[0], { l => [ 1 .. 4, 'a', 'd' ] };
    $play->save($worker, AgentSQL::Play::finish($claim));
};

subtest 'a chat whose every answer is generated twice has few segments' => sub {
    my $claim = $play->leased($worker, $play->thread);
    my $thread = $claim->{thread_id};
    my ($parent, @messages) = (saved($claim, undef, messages => []));
    my @batch;
    for my $turn (1 .. 600) {
        my $keep = @messages;
        push @messages, human("question $turn"), human("answer $turn");
        push @batch, AgentSQL::Play::checkpoint($claim, parent => $parent, values => { messages => list($keep, human('x')) });
        my $id = AgentSQL::uuid();
        push @batch, AgentSQL::Play::checkpoint($claim, id => $id, parent => $parent, values => { messages => list($keep, @messages[ -2, -1 ]) });
        $parent = $id;
    }
    $play->save($worker, splice @batch, 0, 50) while @batch;
    is_deeply values_of($thread, $parent)->{messages}, \@messages;
    my $segments = $session->value("select cardinality((channels[1]).ends) from agent.checkpoints where checkpoint_id = '$parent'");
    cmp_ok $segments, '<=', 16, "$segments segments";
    cmp_ok items($thread), '<', 12 * 1200, 'an element is copied a few times';
    $play->save($worker, AgentSQL::Play::finish($claim));
};

sub segments {
    return $session->value("select sum(cardinality(list_ids)) from agent.checkpoints, unnest(channels) where checkpoint_id = '$_[0]'");
}

# Continues a checkpoint whose lists have others continue them: the new one has those elements more.
sub forked {
    my ($claim, $parent, $keep, $element, @names) = @_;
    saved($claim, $parent, map { ($_ => list($keep, 0)) } @names);
    return saved($claim, $parent, map { ($_ => list($keep, $element)) } @names);
}

subtest 'lists whose forks add less and less have few segments' => sub {
    my $claim = $play->leased($worker, $play->thread);
    my @names = map { "list $_" } 1 .. 8;
    my $parent = saved($claim, undef, map { ($_ => ['x' x 400]) } @names);
    my $last;
    for my $count (1 .. 150) {
        ($last, $parent) = ($parent, forked($claim, $parent, $count, 'x' x (400 - 2 * $count), @names));
    }
    cmp_ok segments($parent), '<=', 12 * @names, segments($parent) . ' segments of ' . @names . ' lists';
    is_deeply values_of($claim->{thread_id}, $parent), { map { ($_ => [ map { 'x' x (400 - 2 * $_) } 0 .. 150 ]) } @names };
    my $size = "select pg_column_size(channels) from agent.checkpoints where checkpoint_id = ";
    my $same = saved($claim, $parent, map { ($_ => $SAME) } @names);
    cmp_ok $session->value("$size'$same'"), '<', 2000, 'a step that changes nothing stores little';
    $play->save($worker, AgentSQL::Play::finish($claim));
};

subtest 'of a list with many segments a fork copies what it may, and one that is sent whole has one again' => sub {
    my $claim = $play->leased($worker, $play->thread);
    my @long = ('x' x 26_000);
    my $parent = saved($claim, undef, l => \@long);
    my $turn = sub {
        my ($element) = @_;
        $parent = forked($claim, $parent, scalar @long, 1, 'l');
        $parent = saved($claim, $parent, l => list(@long + 1, $element));
        push @long, 1, $element;
    };
    $turn->('x' x 26_000) for 1 .. 32;
    is segments($parent), 33, 'one for each long element, of which none is copied';
    $turn->("$_" . 'y' x 2000) for 1 .. 15;
    cmp_ok segments($parent), '<=', 36, segments($parent) . ' segments after 15 forks more';
    is_deeply values_of($claim->{thread_id}, $parent)->{l}, \@long;
    my $whole = saved($claim, $parent, l => [ @long, 'end' ]);
    is segments($whole), 1;
    is_deeply values_of($claim->{thread_id}, $whole)->{l}, [ @long, 'end' ];
    $play->save($worker, AgentSQL::Play::finish($claim));
};

subtest 'a state with 2,048 segments of lists is refused one more, and continues with a list that is sent anew' => sub {
    my $claim = $play->leased($worker, $play->thread);
    my $thread = $claim->{thread_id};
    my @names = map { "list $_" } 1 .. 1023;
    my $parent = saved($claim, undef, map { ($_ => [ 'x' x 900 ]) } 'a', @names);
    $parent = forked($claim, $parent, 1, 'x' x 300, 'a', @names);
    is segments($parent), 2048;
    my %same = map { ($_ => $SAME) } @names;
    saved($claim, $parent, %same, a => list(2, 0));
    my $fork = AgentSQL::encode([ AgentSQL::Play::checkpoint($claim, parent => $parent, values => { %same, a => list(2, 1) }) ]);
    is $session->error("select * from public.save_items($worker, '$fork')"), 'MA013', 'one more is refused';
    my $anew = saved($claim, $parent, %same, a => list(0, 'x' x 900, 'x' x 300, 1));
    is segments($anew), 2047, 'a list that is sent anew has one';
    is_deeply values_of($thread, $anew)->{a}, [ 'x' x 900, 'x' x 300, 1 ];
    $play->save($worker, AgentSQL::Play::finish($claim));
};

# The rows of lists that are stored of a thread, and the bytes of their elements.
sub stored {
    my ($thread) = @_;
    return @{ ($session->query("select count(*), coalesce(sum(octet_length(content)), 0) from agent.checkpoint_items where thread_id = '$thread'"))[0] };
}

# Pages that a statement reads, as its plan counts them.
sub pages_of {
    my ($sql) = @_;
    my ($plan) = map { $_->[0] } $session->query("explain (analyze, buffers, costs off, timing off, summary off, format json) $sql");
    my $top = AgentSQL::decode($plan)->[0]{Plan};
    return $top->{'Shared Hit Blocks'} + $top->{'Shared Read Blocks'};
}

sub saving {
    my (@items) = @_;
    return "select * from public.save_items($worker, " . AgentSQL::Session::literal(AgentSQL::encode(\@items)) . ')';
}

# Saves steps that all continue one: (rows and bytes that they store, pages that they read). The least of a few times: a
# session reads the catalog at first, and again after a table was analyzed.
sub cost_of {
    my ($claim, @steps) = @_;
    my ($rows, $bytes, @pages);
    for (1 .. 4) {
        $session->query('begin');
        my @before = stored($claim->{thread_id});
        push @pages, pages_of(saving(@steps));
        my @after = stored($claim->{thread_id});
        ($rows, $bytes) = map { $after[$_] - $before[$_] } 0, 1;
        $session->query('rollback');
    }
    return ($rows, $bytes, min(@pages));
}

subtest 'a step stores and reads in proportion to what it sends, whatever the parent has' => sub {
    my $claim = $play->leased($worker, $play->thread);
    my %first = (
        'two short elements' => [ 1, 2 ], 'an element of 500 KB' => [ noise(1, 500_000), 2 ],
        '60,000 digits' => [ map { $_ % 10 } 1 .. 60_000 ], '20,000 short texts' => [ map { "text $_" } 1 .. 20_000 ],
        'a long element among short ones' => [ 1, 2, noise(2, 200_000), (3) x 10_000 ]);
    my %cost;
    for my $name (sort keys %first) {
        my $parent = saved($claim, undef, l => $first{$name});
        my $step = sub { AgentSQL::Play::checkpoint($claim, parent => $parent, values => { l => $_[0] }) };
        for my $how ([ 'keeps one', list(1) ], [ 'keeps one and adds one', list(1, 1) ], [ 'begins again', list(0, 1) ]) {
            $cost{$name}{ $how->[0] } = [ cost_of($claim, map { $step->($how->[1]) } 1 .. 20) ];
        }
    }
    for my $name (grep { $_ ne 'two short elements' } sort keys %first) {
        for my $how (sort keys %{ $cost{$name} }) {
            my ($rows, $bytes, $pages) = @{ $cost{$name}{$how} };
            my $least = $cost{'two short elements'}{$how};
            cmp_ok $rows, '<=', 40, "$name: 20 steps, each $how: $rows rows";
            cmp_ok $bytes, '<=', 200, "$name: 20 steps, each $how: $bytes bytes";
            # An element of 100 bytes or of 100 KB, a list of one row or of 2,000, which are deeper in the index.
            cmp_ok $pages, '<=', $least->[2] + 20 * 12, "$name: 20 steps, each $how: $pages pages instead of $least->[2]";
        }
    }
    $play->save($worker, AgentSQL::Play::finish($claim));
};

subtest 'the lists of a step copy together at most four times what it sends, and 24 KB' => sub {
    my $claim = $play->leased($worker, $play->thread);
    my @names = map { "list $_" } 1 .. 100;
    my $element = 'x' x 58;
    my $grow = sub { my ($keep, $count) = @_; return { map { ($_ => list($keep, ($element) x $count)) } @names } };
    # Each list ends with segments of 12, 4 elements and one, which a fork that adds one copies if it may.
    my ($keep, $parent) = (0, undef);
    for my $count (40, 12, 4, 1) {
        my $next = saved($claim, $parent, %{ $grow->($keep, $count) });
        saved($claim, $parent, %{ $grow->($keep, 1) }) if $keep;
        ($keep, $parent) = ($keep + $count, $next);
        saved($claim, $parent, %{ $grow->($keep, 1) });
    }
    my ($rows, $bytes) = cost_of($claim, AgentSQL::Play::checkpoint($claim, parent => $parent, values => $grow->($keep, 1)));
    my $copied = $bytes - @names * 60;
    cmp_ok $copied, '>', 0, 'some are copied';
    cmp_ok $copied, '<=', 24_576 + 4 * @names * 70, "$copied bytes are copied";
    $play->save($worker, AgentSQL::Play::finish($claim));
};

# The bytes that a step copies which keeps some of 400 elements, and adds others.
sub copied_by {
    my ($keep, $element, $added) = @_;
    my $claim = $play->leased($worker, $play->thread);
    my $thread = $claim->{thread_id};
    my $first = saved($claim, undef, l => [ map { $element } 1 .. 400 ]);
    my $before = (stored($thread))[1];
    my $fork = saved($claim, $first, l => list($keep, map { $element } 1 .. $added));
    is scalar @{ values_of($thread, $fork)->{l} }, $keep + $added, "a fork at element $keep has the elements that it keeps, and its own";
    $play->save($worker, AgentSQL::Play::finish($claim));
    return (stored($thread))[1] - $before - $added * length AgentSQL::encode($element);
}

subtest 'a fork of a list copies elements that are at most twice as long as those that it adds, with four times as many bytes at most and 24 KB' => sub {
    is copied_by(20, 'x' x 998, 10), 20 * 1000, 'twice as many elements as it adds';
    is copied_by(21, 'x' x 998, 10), 0, 'none of more elements';
    is copied_by(300, 'x' x 998, 300), 300 * 1000, 'many, when it sends as many';
};

subtest 'a cut list counts as the elements that it has' => sub {
    my $claim = $play->leased($worker, $play->thread);
    my $thread = $claim->{thread_id};
    my $bytes = sub { $session->value("select state_bytes from agent.checkpoints where checkpoint_id = '$_[0]'") };
    my $first = saved($claim, undef, l => [ 1 .. 300 ], m => [ 'x' x 500, 'y' x 500 ]);
    my $cut = saved($claim, $first, l => list(3), m => list(1));
    is $bytes->($cut), 6 + 503, 'a cut within a row of several elements';
    my $same = saved($claim, $cut, l => $SAME, m => $SAME);
    is $bytes->($same), 6 + 503;
    my $more = saved($claim, $cut, l => list(3, 4), m => list(1, 'z'));
    is $bytes->($more), 8 + 507, 'a continued list counts as its elements';
    is $bytes->(saved($claim, $more, l => list(2, 7), m => [])), 6, 'a list that is cut again counts as its elements';
    my $wide = saved($claim, $first, l => list(150), m => $SAME);
    my @before = stored($thread);
    my $whole = saved($claim, $wide, l => [ 1 .. 151 ], m => $SAME);
    is_deeply [ map { $_ - shift @before } stored($thread) ], [ 1, 3 ], 'a list that is sent whole after a cut stores one element more';
    is_deeply values_of($thread, $whole)->{l}, [ 1 .. 151 ];
    # Together more than 34 MiB before they are cut.
    my $long = 'x' x 7_000_000;
    my $parent;
    for my $n (1 .. 6) {
        $parent = saved($claim, $parent, (map { ("l$_" => list(1)) } 1 .. $n - 1), "l$n" => [ 1, $long ]);
    }
    is $bytes->($parent), 5 * 2 + 2 + 7_000_003, 'lists that were cut are not refused for what they had';
    $play->save($worker, AgentSQL::Play::finish($claim));
};

subtest 'read_state returns a state in parts of a given size, or of one element' => sub {
    my $claim = $play->leased($worker, $play->thread);
    my $thread = $claim->{thread_id};
    my %values = (messages => [ map { human("message $_" . 'x' x (37 * $_ % 900)) } 1 .. 60 ], none => [], text => 'y' x 2000,
        short => 1, numbers => [ 1 .. 300 ], "na\"me\n" => undef, big => [ 'z' x 10_000, 'q' x 10_000 ]);
    my $id = saved($claim, undef, %values);
    my %parts;
    for my $bytes (1, 500, 3000, 20_000, 1_000_000) {
        my ($state, $parts) = read_parts($thread, $id, $bytes);
        is_deeply $state, \%values, "parts of $bytes bytes";
        $parts{$bytes} = $parts;
    }
    is $parts{1_000_000}, 1;
    cmp_ok $parts{20_000}, '<=', 6;
    cmp_ok $parts{500}, '>', 50;
    is_deeply [ read_parts($thread, saved($claim, $id), 1) ], [ {}, 1 ], 'a state without channels is one part';
    for my $cursor ('', 'x', '1', '-1.0', '0.0.0', '99.0', '0.99999', '1234567890.0', '0.1 ', "0.0\n", '0.9999999999') {
        is $session->value(sprintf("select code from agent.read_state('%s', '%s', '%s', %s, 1000)", $AgentSQL::DEPLOYMENT,
            $thread, $id, AgentSQL::Session::literal($cursor))), 'invalid_cursor', "cursor '$cursor'";
    }
    for my $key ([ $thread, AgentSQL::uuid() ], [ AgentSQL::uuid(), $id ]) {
        is $session->value("select code from agent.read_state('$AgentSQL::DEPLOYMENT', '$key->[0]', '$key->[1]', null, 1000)"),
            'checkpoint_not_found';
    }
    $play->save($worker, AgentSQL::Play::finish($claim));
};

subtest 'large values are sent in parts: of a state, of a thread, of a join' => sub {
    my $thread = $play->thread(metadata => { values => [undef] });
    my $claim = $play->leased($worker, $thread, feedback => { key => 'https://x/' });
    my %values = (
        messages => [ map { human("\x{e9}" x (7 * $_)) } 1 .. 60 ], empty => [], numbers => [ 1 .. 5000 ],
        short => { a => 1 }, long => { text => "\x{20ac} " x 20_000 }, large => [ 'a', 'b' x 50_000, 'c' ],
        "\x{20ac}\"" => undef);
    my $first = saved($claim, undef, %values, messages => [ @{ $values{messages} }[ 0 .. 29 ], human('x') ]);
    my $id = saved($claim, $first, %values, messages => list(30, @{ $values{messages} }[ 30 .. 59 ]));
    is_deeply values_of($thread, undef), \%values;
    $play->save($worker, AgentSQL::Play::finish($claim));
    my $run = $claim->{run_id};
    my %parts;
    for my $bytes (1, 300, 4000, 60_000, 10_000_000) {
        (my $answer, $parts{$bytes}) = send_parts($bytes, $thread, 'get_state', undef);
        is_deeply $answer, $play->body('get_state', $thread, undef), "parts of $bytes bytes";
    }
    is $parts{10_000_000}, 1;
    cmp_ok $parts{60_000}, '<=', 9;
    cmp_ok $parts{300}, '>', 50;
    for my $call ([ 'get_state', $id ], ['get_thread'], [ 'join_run', $run ]) {
        is_deeply +(send_parts(4000, $thread, @$call))[0], $play->body(shift @$call, $thread, @$call);
    }
    my $cursor = "$id.1.0.0";
    my $read = sub { ($session->call('read_values', $AgentSQL::DEPLOYMENT, $thread, $cursor, 1000))[0] };
    is $read->(), 'ok';
    $play->api('delete_run', $thread, $run);
    is $read->(), 'checkpoint_not_found', 'a checkpoint that was deleted has no more parts';
};

# Limits what the session's backend may allocate from now on.
sub limit_memory {
    my ($backend, $bytes) = @_;
    my $pid = $backend->value('select pg_backend_pid()');
    my ($kb) = slurp("/proc/$pid/status") =~ /^VmData:\s+(\d+) kB/m;
    my $most = 1024 * $kb + $bytes;
    # Set by a process of the same user. It reads nothing, so it is sent nothing: it may have ended by then.
    AgentSQL::admin("copy (select where false) to program 'prlimit --pid=$pid --data=$most:'");
    return;
}

subtest 'large values take little memory of a backend' => sub {
    my $claim = $play->leased($worker, $play->thread);
    my ($thread, $run) = @$claim{qw(thread_id run_id)};
    my $text = 'x' x 4000;
    my $id = saved($claim, undef, messages => [ map { human("$_ $text") } 1 .. 5000 ]);
    $play->save($worker, AgentSQL::Play::values_event($claim, 0, $id), AgentSQL::Play::finish($claim));
    my $backend = $db->session;
    my $send = sub {
        my ($of, $most, @call) = @_;
        my ($bytes, $cursor) = (0, "$id.1.0.0");
        is +($backend->call(shift @call, $AgentSQL::DEPLOYMENT, $of, @call, $most))[0], 'ok';
        while ($cursor ne '') {
            $bytes += length +($backend->call('read_values', $AgentSQL::DEPLOYMENT, $thread, $cursor, 262_144))[1];
            $cursor = $backend->extra;
        }
        return $bytes;
    };
    my @calls = ([ 'get_state', undef ], ['get_thread'], [ 'join_run', $run ]);
    # With all code loaded and all plans made.
    $send->($thread, 262_144, @$_) for @calls;
    my $poll = "select data, cursor from agent.read_events('$AgentSQL::DEPLOYMENT', '$thread', '$run', -1, 1, null, 262144)";
    $backend->query($poll);
    limit_memory($backend, 8 << 20);
    is_deeply [ $backend->query($poll) ], [ [ "{\x01}", "$id.1.0.0" ] ], 'read_events: an event of 20 MB with 8 MB of memory, without its values';
    cmp_ok $send->($thread, 262_144, @$_), '>', 20_000_000, "$_->[0]: 20 MB with 8 MB of memory" for @calls;
    is $backend->error("select length(body) from agent.get_state('$AgentSQL::DEPLOYMENT', '$thread', null)"), '53200',
        'the whole state does not fit';
};

subtest 'members that a join adds follow large values' => sub {
    my $claim = $play->leased($worker, $play->thread);
    my $interrupt = { id => 'i1', value => 'sure?' };
    $play->save($worker,
        AgentSQL::Play::checkpoint($claim, values => { a => [ 1, 2 ] }, next => ['ask'],
            tasks => [ { id => 't1', name => 'ask', interrupts => [$interrupt] } ]),
        AgentSQL::Play::finish($claim));
    is_deeply +(send_parts(1, $claim->{thread_id}, 'join_run', $claim->{run_id}))[0],
        { a => [ 1, 2 ], __interrupt__ => [$interrupt] };
};

# Rows of read_events with values of more than $most bytes left out: seq, data, status, more, cursor.
sub poll_large {
    my ($claim, $after, $most, %with) = @_;
    return $session->query(sprintf "select seq, data, status, more, cursor from agent.read_events('%s', '%s', '%s', %d, 10, %s, %d)",
        $AgentSQL::DEPLOYMENT, @$claim{qw(thread_id run_id)}, $after, AgentSQL::Session::literal($with{events}), $most);
}

subtest 'events with large values: one row has a cursor, and the parts make the same event' => sub {
    my $claim = $play->leased($worker, $play->thread);
    my ($thread, $run) = @$claim{qw(thread_id run_id)};
    my $id = saved($claim, undef, messages => [ map { human($_) } 1 .. 9 ], note => 'x' x 200);
    my $placed = sub {
        my ($seq, $path, $data) = @_;
        return AgentSQL::Play::item($claim, s => $seq, type => 'event', event => 'checkpoints', checkpoint_id => $id, path => $path, data => $data);
    };
    $play->save($worker, AgentSQL::Play::event($claim, 0, 'custom', 0), AgentSQL::Play::values_event($claim, 1, $id),
        $placed->(2, ['values'], { values => undef, next => ['a'] }), $placed->(3, [], { __interrupt__ => [] }),
        AgentSQL::Play::event($claim, 4, 'custom', 4), AgentSQL::Play::finish($claim));
    my %whole = map { $_->[0] => $_->[2] } $play->events($thread, $run);
    is_deeply [ map { [ @$_[ 0, 3, 4 ] ] } poll_large($claim, -1, 100) ], [ [ 0, 'f', '' ], [ 1, 't', "$id.1.0.0" ] ],
        'the rows end with the first event that has large values';
    for my $seq (1 .. 3) {
        my ($row, @more) = poll_large($claim, $seq - 1, 100);
        is_deeply [ @$row[ 0, 3 ], scalar @more ], [ $seq, 't', 0 ];
        my ($members, $parts) = read_members(50, $thread, $row->[4]);
        cmp_ok $parts, '>', 9;
        is $row->[1] =~ s/\x01/$members/, 1;
        is $row->[1], $whole{$seq}, "event $seq is the same in parts";
    }
    is_deeply [ map { [ @$_[ 0, 2 .. 4 ] ] } poll_large($claim, 3, 100) ], [ [ 4, '', 'f', '' ], [ 4, 'success', 'f', '' ] ], 'the end follows';
    my ($bytes) = $session->value("select state_bytes from agent.checkpoints where checkpoint_id = '$id'");
    is scalar(grep { $_->[4] ne '' } poll_large($claim, -1, $bytes)), 0, 'values of the limit are in the event';
    is_deeply [ map { [ @$_[ 0, 4 ] ] } poll_large($claim, -1, 100, events => '{custom}') ], [ [ 0, '' ], [ 4, '' ], [ 4, '' ] ],
        'those of events that are not requested are not read';
    is_deeply [ $session->query("select id, status, more, cursor from agent.read_thread_events('$AgentSQL::DEPLOYMENT', '$thread', 1, 0, 10, null, 100)") ],
        [ [ '1-1', '', 't', "$id.1.0.0" ] ], 'the same in the stream of a thread';
};

subtest 'a part is as long as it may be, or hardly less, whatever the lengths of the elements' => sub {
    my $claim = $play->leased($worker, $play->thread);
    my $thread = $claim->{thread_id};
    my @messages = map { human("message $_" . 'x' x ($_ % 97 == 0 ? 150_000 : $_ < 400 ? 100 : rand 3000)) } 1 .. 900;
    my $parent = saved($claim, undef, messages => [ @messages[ 0 .. 599 ] ]);
    saved($claim, $parent, messages => list(600, human('other')));
    my $id = saved($claim, $parent, messages => list(500, @messages[ 500 .. 899 ]));
    my @bytes = map { length(AgentSQL::encode($_)) + 1 } @messages;
    for my $most (1000, 64_000, 200_000, 1_000_000) {
        my ($at, $longest, $cursor, @wrong) = (0, 0);
        do {
            (undef, my $body, $cursor, my $rows) = read_part($thread, $id, $cursor, $most);
            $longest = max($longest, @$rows);
            my $end = $at + @{ AgentSQL::decode($body)->{values}{messages}{'$list'}{items} };
            my $length = sum(@bytes[ $at .. $end - 1 ]);
            push @wrong, "$at .. $end" if $length > $most && $end - $at > 1
                || defined $cursor && $length + $bytes[$end] < $most / 16 * 15 - 100;
            $at = $end;
        } while (defined $cursor);
        is "@wrong", '', "parts of $most bytes";
        is $at, @messages;
        cmp_ok $longest, '<', 400_000, 'no row is as long as a part';
    }
    $session->value("delete from agent.checkpoint_items where thread_id = '$thread' and position between 100 and 300");
    my ($cursor, $parts);
    do { $cursor = (read_part($thread, $id, $cursor, 5000))[2] } while (defined $cursor && ++$parts < 1000);
    ok !defined $cursor, 'a reader comes to the end of a list of which rows are missing';
    $play->save($worker, AgentSQL::Play::finish($claim));
};

subtest 'a run starts from the state, whatever the segments' => sub {
    my $thread = $play->thread;
    my $claim = $play->leased($worker, $thread);
    my $first = saved($claim, undef, messages => [ map { human($_) } 1 .. 4 ]);
    my $second = saved($claim, $first, messages => list(4, human(5)));
    my $third = saved($claim, $first, messages => list(2, human('other')));
    $play->save($worker, AgentSQL::Play::finish($claim));
    my $next = $play->leased($worker, $thread);
    is_deeply $play->start_values($next), { messages => [ map { human($_) } 1, 2, 'other' ] };
    $play->save($worker, AgentSQL::Play::finish($next));
};

# ---- deletion ----

# A run of a thread that saves these steps, each [index of its parent or undef, values]: (run, ids).
sub run_steps {
    my ($thread, $parent, @values) = @_;
    my $claim = $play->leased($worker, $thread);
    my @ids;
    for my $values (@values) {
        push @ids, saved($claim, $parent, %$values);
        $parent = $ids[-1];
    }
    $play->save($worker, AgentSQL::Play::finish($claim));
    return ($claim->{run_id}, @ids);
}

subtest 'elements that a deleted run stored stay while another run contains them' => sub {
    my $thread = $play->thread;
    my ($first, $a) = run_steps($thread, undef, { messages => [ map { human($_) } 1, 2 ] });
    my ($second, $b) = run_steps($thread, $a, { messages => list(2, human(3), human(4)) });
    my ($third, $c) = run_steps($thread, $b, { messages => list(4, human(5)) });
    my ($fourth, $d) = run_steps($thread, $c, { messages => list(3, human('five')) });
    is +($play->api('delete_run', $thread, $second))[0], 'ok';
    is +($play->api('delete_run', $thread, $third))[0], 'ok';
    is_deeply [ map { $_->{content} } @{ values_of($thread, $d)->{messages} } ], [ 1, 2, 3, 'five' ];
    is orphans($thread), 0, 'the others are deleted';
    is items($thread), 4;
    is $play->body('get_state', $thread, $d)->{parent_checkpoint_id}, $a;
    is +($play->api('delete_run', $thread, $first))[0], 'ok';
    is_deeply [ map { $_->{content} } @{ values_of($thread, $d)->{messages} } ], [ 1, 2, 3, 'five' ], 'a state is whole after all its ancestors were deleted';
    is +($play->api('delete_run', $thread, $fourth))[0], 'ok';
    is items($thread), 0;
    is $session->value("select count(*) from agent.inherited_items where thread_id = '$thread'"), 0;
};

subtest 'an executing run begins again when the run with whose state it began is deleted' => sub {
    my $thread = $play->thread;
    my ($first, $a) = run_steps($thread, undef, { messages => [ human(1) ] });
    my ($second, $b) = run_steps($thread, $a, { messages => list(1, human(2)) });
    my $claim = $play->leased($worker, $thread);
    is +($play->api('delete_run', $thread, $second))[0], 'ok';
    is_deeply $play->save($worker, AgentSQL::Play::checkpoint($claim, parent => $b, values => { messages => list(2) })),
        { $claim->{run_id} => [ 'fenced', 'f' ] };
    my ($again) = $play->claim($worker);
    is "@$again{qw(run_id attempt)}", "$claim->{run_id} 1", 'the attempt does not count';
    is AgentSQL::decode($again->{start})->{checkpoint}{checkpoint_id}, $a;
    my $c = saved($again, $a, messages => list(1, human(3)));
    is +($play->api('delete_run', $thread, $first))[0], 'ok';
    my $d = saved($again, $c, messages => list(2, human(4)));
    is_deeply [ map { $_->{content} } @{ values_of($thread, $d)->{messages} } ], [ 1, 3, 4 ], 'one that has saved a state goes on';
    $play->save($worker, AgentSQL::Play::finish($again));
};

subtest 'a deletion that is too large for one statement is completed by sweeps, and none sees a gap' => sub {
    my $thread = $play->thread;
    my ($first, $a) = run_steps($thread, undef, { messages => [ human(1) ] });
    my ($second, $b) = run_steps($thread, $a, { messages => list(1, map { human("$_" . 'x' x 3000) } 1 .. 8000) });
    is +($play->api('delete_run', $thread, $second))[0], 'ok';
    my $left = items($thread);
    cmp_ok $left, '>', 1, "$left rows are left";
    my ($third, $c) = run_steps($thread, $a, { messages => list(1, human('two')) }, { messages => list(2, human('three')) });
    my $sweeps = 0;
    $sweeps++ while $session->value('select agent.sweep_state()');
    cmp_ok $sweeps, '>=', 1;
    is orphans($thread), 0;
    is items($thread), 4, 'the element that both have, twice, since a short segment is copied';
    is_deeply [ map { $_->{content} } @{ $play->body('get_state', $thread, undef)->{values}{messages} } ], [ 1, 'two', 'three' ];
};

sub set_deletion_bytes {
    my ($bytes) = @_;
    return $session->query("create or replace function agent.deletion_bytes() returns bigint language sql immutable parallel safe as 'select ${bytes}::bigint'");
}

# The deletion of a run in as many calls as it takes: (code, number of calls).
sub delete_run {
    my ($thread, $run) = @_;
    my ($code, $cursor, $calls) = ('waiting', undef, 0);
    while ($code eq 'waiting' && $calls < 100) {
        ($code, $cursor) = $play->api('delete_run', $thread, $run, $cursor);
        $calls++;
    }
    return ($code, $calls);
}

subtest 'random chats with forks and deletions keep all states, and no other element' => sub {
    for my $round (0 .. 7) {
        # The random numbers that other subtests take change nothing.
        my $seed = srand($SEED + $round);
        my $thread = $play->thread;
        my (%state, %run, %of);
        # In some rounds a statement deletes one or two checkpoints, so that deletions overlap, and passes 12 or 2.
        my $bytes = (4_000_000, 13_000, 2_500)[ $round % 3 ];
        set_deletion_bytes($bytes);
        for my $turn (1 .. 40) {
            if (rand() < 0.35 && %run) {
                my $run = (sort keys %run)[ rand keys %run ];
                is +(delete_run($thread, $run))[0], 'ok' or diag "seed $seed, turn $turn";
                delete $state{$_} for @{ delete $run{$run} };
                $session->value('select agent.sweep_state()') for 1 .. rand 4;
            } else {
                my @known = sort keys %state;
                my $parent = @known && rand() < 0.9 ? $known[ rand() < 0.6 ? -1 : rand @known ] : undef;
                my $claim = $play->leased($worker, $thread);
                my @batch;
                for my $step (1 .. 1 + rand 4) {
                    my $id = AgentSQL::uuid();
                    my $old = $parent ? $state{$parent} : {};
                    my (%new, %sent);
                    for my $name (qw(a b)) {
                        my @list = @{ $old->{$name} // [] };
                        my $keep = rand() < 0.7 ? @list : int rand(@list + 1);
                        my @added = map { rand() < 0.4 ? $_ : human("$turn $step $_") } 1 .. rand 4;
                        $new{$name} = [ @list[ 0 .. $keep - 1 ], @added ];
                        $sent{$name} = rand() < 0.4 ? $new{$name} : list($keep, @added);
                    }
                    $new{text} = rand() < 0.5 && $old->{text} || 'x' x rand 300;
                    $sent{text} = $old->{text} && $new{text} eq $old->{text} && rand() < 0.7 ? $SAME : $new{text};
                    push @batch, AgentSQL::Play::checkpoint($claim, id => $id, parent => $parent, values => \%sent);
                    $state{$id} = \%new;
                    push @{ $run{ $claim->{run_id} } }, $id;
                    $parent = $id if rand() < 0.9;
                }
                $play->save($worker, splice @batch, 0, 1 + rand 3) while @batch;
                $play->save($worker, AgentSQL::Play::finish($claim));
            }
            if ($turn % 8 == 0) {
                my @wrong = grep { AgentSQL::encode(values_of($thread, $_)) ne AgentSQL::encode($state{$_}) } sort keys %state;
                push @wrong, grep { !has_parts($thread, $_, $state{$_}) } sort keys %state;
                is "@wrong", '', "seed $seed, turn $turn: all states are as saved";
                1 while $session->value('select agent.sweep_state()');
            }
            is orphans($thread), 0, "seed $seed, turn $turn: no other element" if $bytes == 4_000_000 || $turn % 8 == 0;
        }
    }
};

# Checkpoints that continue one.
sub children {
    my ($thread, $id) = @_;
    return $session->value("select count(*) from agent.checkpoints where thread_id = '$thread' and parent_checkpoint_id = '$id'");
}

subtest 'a checkpoint that many continue is deleted in pieces, and each of them keeps its state' => sub {
    my $thread = $play->thread;
    my ($first, $a) = run_steps($thread, undef, { messages => [ human(1) ] });
    my ($second, $b) = run_steps($thread, $a, { messages => list(1, map { human("$_" . 'x' x 3000) } 2 .. 4) });
    my $claim = $play->leased($worker, $thread);
    my @forks = map { AgentSQL::uuid() } 1 .. 100;
    $play->save($worker, map { AgentSQL::Play::checkpoint($claim, id => $forks[$_], parent => $b,
        values => { messages => list(2 + $_ % 2, human("fork $_")) }) } 0 .. $#forks);
    $play->save($worker, AgentSQL::Play::finish($claim));
    # 11 of them in each piece.
    set_deletion_bytes(40_000);
    is +($play->api('delete_run', $thread, $second))[0], 'ok';
    my ($left, $pieces) = (scalar @forks, 0);
    while ($left) {
        my $now = children($thread, $b);
        ok $now < $left && $left - $now <= 11, "$now of $left are left" or last;
        ($left, $pieces) = ($now, $pieces + 1);
        is $session->value("select count(*) from agent.checkpoints where thread_id = '$thread'"), 102 - !$left, 'it is deleted last';
        is +($play->api('get_state', $thread, $b))[0], 'checkpoint_not_found', 'nothing reads it from the first piece on';
        my @texts = map { join ' ', map { substr $_->{content}, 0, 7 } @{ values_of($thread, $forks[$_])->{messages} } } 0, 99;
        is_deeply \@texts, [ '1 2xxxxxx fork 0', '1 2xxxxxx 3xxxxxx fork 99' ], 'all of them have their states';
        $session->value('select agent.sweep_state()') if $left;
    }
    cmp_ok $pieces, '>=', 9, "$pieces pieces";
    $pieces++ while $pieces < 100 && $session->value('select agent.sweep_state()');
    is children($thread, $a), 100, 'all of them continue its parent';
    my @wrong = grep { (join ' ', map { substr $_->{content}, 0, 7 } @{ values_of($thread, $forks[$_])->{messages} })
        ne join ' ', '1 2xxxxxx', ('3xxxxxx') x ($_ % 2), substr("fork $_", 0, 7) } 0 .. $#forks;
    is "@wrong", '', 'all of them have their states after the last piece';
    is orphans($thread), 0, 'no element is left that none of them contains';
    is $session->value("select count(*) from agent.run_sweeps where thread_id = '$thread'"), 0, 'nothing is left to sweep';
    set_deletion_bytes(4_000_000);
};

# A hostile runner can send these.
subtest 'checkpoints that are their own ancestors are deleted, whatever continues them' => sub {
    my $thread = $play->thread;
    my $claim = $play->leased($worker, $thread);
    my ($itself, $one, $two) = map { AgentSQL::uuid() } 1 .. 3;
    my @pairs = ([ $itself, $itself ], [ $one, $two ], [ $two, $one ]);
    $play->save($worker, map { AgentSQL::Play::checkpoint($claim, id => $_->[0], parent => $_->[1], values => { n => 1 }) } @pairs);
    $play->save($worker, AgentSQL::Play::finish($claim));
    my $other = $play->leased($worker, $thread);
    $play->save($worker, map { AgentSQL::Play::checkpoint($other, parent => $pairs[$_ % 3][0], values => { n => $_ }) } 1 .. 60);
    $play->save($worker, AgentSQL::Play::finish($other));
    set_deletion_bytes(13_000);
    is +($play->api('delete_run', $thread, $claim->{run_id}))[0], 'ok';
    my $pieces = 0;
    $pieces++ while $pieces < 200 && $session->value('select agent.sweep_state()');
    cmp_ok $pieces, '<', 200, "$pieces pieces";
    is $session->value("select count(*) from agent.checkpoints where thread_id = '$thread'"), 60, 'the others are left';
    is $session->value("select count(*) from agent.checkpoints c where thread_id = '$thread' and parent_checkpoint_id is not null
        and not exists (select from agent.checkpoints p where p.thread_id = c.thread_id and p.checkpoint_id = c.parent_checkpoint_id)"), 0,
        'none continues a deleted one';
    set_deletion_bytes(4_000_000);
};

# Runs of a thread, each with that number of checkpoints, which continue those of the run before: their ids and their last checkpoints.
sub run_chain {
    my ($thread, @counts) = @_;
    my (@runs, @heads);
    for my $count (@counts) {
        my ($run, @ids) = run_steps($thread, $heads[-1], map { { n => $_ } } 1 .. $count);
        push @runs, $run;
        push @heads, $ids[-1];
    }
    return (\@runs, \@heads);
}

sub head_of { return $session->value("select head_checkpoint_id from agent.threads where thread_id = '$_[0]'") }

subtest 'a run that saved the head is deleted when the one before is found, in calls of a bounded number of steps' => sub {
    my $thread = $play->thread;
    my ($runs, $heads) = run_chain($thread, 1, 100);
    # 12 checkpoints are passed, or one or two deleted.
    set_deletion_bytes(13_000);
    my ($code, $cursor) = $play->api('delete_run', $thread, $runs->[1]);
    my $calls = 1;
    while ($code eq 'waiting' && $calls < 20) {
        cmp_ok length $cursor, '<=', 140, 'the cursor is short';
        is head_of($thread), $heads->[1], 'the head stays until the run is found';
        is $play->status($thread, $runs->[1]), 'success', 'the run';
        ($code, $cursor) = $play->api('delete_run', $thread, $runs->[1], $cursor);
        $calls++;
    }
    is "$code $calls", 'ok 9', '12 in each of the first 8 calls, the others in the last';
    is head_of($thread), $heads->[0], 'after the last call the head is that of the run before';
    is $play->status($thread, $runs->[1]), 'run_not_found', 'after the last call the run does not exist';
    cmp_ok $session->value("select count(*) from agent.checkpoints where thread_id = '$thread'"), '>', 90, 'sweeps delete its checkpoints';
    1 while $session->value('select agent.sweep_state()');
    is $session->value("select count(*) from agent.checkpoints where thread_id = '$thread'"), 1, 'to the last';
    set_deletion_bytes(4_000_000);
};

subtest 'a deletion whose caller leaves before the head is found changes nothing' => sub {
    my $thread = $play->thread;
    my ($runs, $heads) = run_chain($thread, 1, 40);
    set_deletion_bytes(13_000);
    my $row = "select t::text from agent.threads t where thread_id = '$thread'";
    my $before = $session->value($row);
    my ($code, $cursor) = $play->api('delete_run', $thread, $runs->[1]);
    is $code, 'waiting';
    is $session->value($row), $before, 'the thread';
    is $session->value("select count(*) from agent.run_sweeps where thread_id = '$thread'"), 0, 'nothing is to be swept';
    is +(delete_run($thread, $runs->[1]))[0], 'ok', 'another call begins again';
    is +($play->api('delete_run', $thread, $runs->[1], $cursor))[0], 'run_not_found', 'the cursor of the first one finds no run';
    is head_of($thread), $heads->[0];
    set_deletion_bytes(4_000_000);
};

subtest 'a run that is claimed while the head is looked for' => sub {
    for my $how ('has saved nothing', 'has saved a state') {
        my $thread = $play->thread;
        my ($runs, $heads) = run_chain($thread, 1, 40);
        set_deletion_bytes(13_000);
        my ($code, $cursor) = $play->api('delete_run', $thread, $runs->[1]);
        my $claim = $play->leased($worker, $thread);
        my $saved = $how eq 'has saved a state' && saved($claim, $heads->[1], n => 'new');
        my $calls = 1;
        while ($code eq 'waiting' && $calls < 20) {
            ($code, $cursor) = $play->api('delete_run', $thread, $runs->[1], $cursor);
            $calls++;
        }
        is "$code $calls", 'ok 4', "$how: the calls go on where they were";
        is head_of($thread), $saved || $heads->[0], "$how: the head";
        my ($again) = $saved ? $claim : $play->claim($worker);
        is $again->{run_id}, $claim->{run_id}, "$how: begins again, if it began with the deleted state";
        is AgentSQL::decode($again->{start})->{checkpoint}{checkpoint_id}, $heads->[0], 'from the state before' if !$saved;
        is +($play->api('cancel_run', $thread, $claim->{run_id}, 'rollback'))[0], 'ok';
        $play->save($worker, AgentSQL::Play::finish($again));
        is head_of($thread), $heads->[0], "$how: its rollback restores the state before";
        set_deletion_bytes(4_000_000);
    }
};

subtest 'checkpoints that a sweep deletes while the head is looked for' => sub {
    my $thread = $play->thread;
    my ($runs, $heads) = run_chain($thread, 1, 30, 30);
    set_deletion_bytes(13_000);
    is +(delete_run($thread, $runs->[1]))[0], 'ok', 'a run is deleted, all but some of its checkpoints';
    my ($code, $cursor);
    ($code, $cursor) = $play->api('delete_run', $thread, $runs->[2], $cursor) for 1 .. 3;
    is $code, 'waiting';
    my ($place) = $cursor =~ /\A[^.]+\.([^.]+)/;
    is $session->value("select run_id from agent.checkpoints where thread_id = '$thread' and checkpoint_id = '$place'"), $runs->[1],
        'the cursor is at one of these';
    1 while $session->value('select agent.sweep_state()');
    is $session->value("select count(*) from agent.checkpoints where thread_id = '$thread'"), 31, 'sweeps delete it';
    my $calls = 0;
    while ($code eq 'waiting' && $calls < 20) {
        ($code, $cursor) = $play->api('delete_run', $thread, $runs->[2], $cursor);
        $calls++;
    }
    is "$code $calls", 'ok 3', 'the way begins again';
    is head_of($thread), $heads->[0], 'to the same head';
    set_deletion_bytes(4_000_000);
};

subtest 'a thread that is deleted, and created again, while the head is looked for' => sub {
    my $thread = $play->thread;
    my ($runs) = run_chain($thread, 1, 40);
    set_deletion_bytes(13_000);
    my ($code, $cursor) = $play->api('delete_run', $thread, $runs->[1]);
    is $code, 'waiting';
    is join(' ', ($play->api('delete_thread', $thread))[ 0, 1 ]), 'ok more', 'a piece of the thread is deleted';
    is +($play->api('delete_run', $thread, $runs->[1], $cursor))[0], 'run_not_found';
    1 while ($play->api('delete_thread', $thread, 'true'))[1];
    is +($play->api('create_thread', $thread, 'raise', '{}'))[0], 'ok';
    is +($play->api('delete_run', $thread, $runs->[1], $cursor))[0], 'run_not_found';
    is head_of($thread), undef, 'the new one is empty';
    set_deletion_bytes(4_000_000);
};

# A hostile runner can send these.
subtest 'a head that is its own ancestor is left for none, in calls of a bounded number of steps' => sub {
    # Also where the head is none of its circle, which begins after several calls.
    for ([ 1, 0 ], [ 2, 1 ], [ 40, 39 ], [ 120, 10 ]) {
        my ($length, $end) = @{$_};
        my $thread = $play->thread;
        my $claim = $play->leased($worker, $thread);
        my @ids = map { AgentSQL::uuid() } 1 .. $length;
        $play->save($worker, map { AgentSQL::Play::checkpoint($claim, id => $ids[$_], parent => $ids[ $_ ? $_ - 1 : $end ], values => { n => 1 }) } 0 .. $#ids);
        $play->save($worker, AgentSQL::Play::finish($claim));
        set_deletion_bytes(13_000);
        my ($code, $calls) = delete_run($thread, $claim->{run_id});
        is $code, 'ok', "$length checkpoints, $calls calls";
        cmp_ok $calls, '<=', 40;
        is head_of($thread), undef, 'there is no state';
        set_deletion_bytes(4_000_000);
        1 while $session->value('select agent.sweep_state()');
    }
};

done_testing;
