# SPDX-License-Identifier: Apache-2.0
# Records of a graph's library: snapshots, writes and blobs, saved in batches, read by workers, deleted with their runs.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use lib "$FindBin::Bin/../lib";
use MIME::Base64 qw(encode_base64);
use Test::More;
use AgentSQL;
use AgentSQL::Play;
use AgentSQL::Records
    qw(list leased finish value_of saved count_of read_part tuple_of blobs_of values_of orphans sweep set_deletion_bytes prune left_of);

my ($db, $play, $worker) = AgentSQL::Records::start();
my $session = $play->session;
# The last subtest makes random chats; a failure names the seed.
my $SEED = srand($ENV{AGENT_SEED} // 11);

# The SQLSTATE of a batch.
sub refused {
    my (@items) = @_;
    my $text = AgentSQL::Session::literal(ref $items[0] ? AgentSQL::encode(\@items) : $items[0]);
    return $session->error("select * from public.save_items($worker, $text)");
}
subtest 'a snapshot stores what it adds to its parent, and is read whole' => sub {
    my $claim = leased();
    my $thread = $claim->{thread_id};
    my $first = saved($claim, undef, values => { messages => [ 0, 'm1', 'm2' ], note => 'n1', none => undef },
        checkpoint => { v => 4, channel_versions => { messages => '1' } }, metadata => { source => 'input', step => -1 });
    is count_of('checkpoint_blobs', $thread), 3, 'each value of a snapshot is a blob';
    is count_of('checkpoint_items', $thread), 2, 'each element of a list is an item';
    my $second = saved($claim, $first, values => { messages => [ 2, 'm3' ] });
    is count_of('checkpoint_items', $thread), 3, 'a child stores only the elements that it adds';
    my $third = saved($claim, $second, values => { note => 'n2', more => 'm1' });
    is_deeply values_of($thread, $first), { messages => [qw(m1 m2)], note => 'n1', none => undef },
        'the first snapshot has its own values';
    is_deeply values_of($thread, $second), { messages => [qw(m1 m2 m3)], note => 'n1', none => undef },
        'a channel that is not named is that of the parent';
    is_deeply values_of($thread, $third), { messages => [qw(m1 m2 m3)], note => 'n2', none => undef, more => 'm1' },
        'the third snapshot has its own values and those of its ancestors';
    is count_of('checkpoint_blobs', $thread), 5, 'a value is stored once';
    is_deeply tuple_of($thread, '', $first)->{tuple}, { ns => '', checkpoint_id => $first, parent => undef,
        run_id => $claim->{run_id}, checkpoint => { v => 4, channel_versions => { messages => '1' } },
        metadata => { source => 'input', step => -1 } }, 'the tuple has what the snapshot was saved with';
    is tuple_of($thread, '', $second)->{tuple}{parent}, $first, 'the tuple of a child names its parent';
    is orphans($thread), 0, 'no row of the snapshots is unused';
    finish($claim);
};

subtest 'a fork keeps elements of a parent that is not the newest' => sub {
    my $claim = leased();
    my $thread = $claim->{thread_id};
    my $first = saved($claim, undef, values => { messages => [ 0, map { "m$_" } 1 .. 600 ] });
    my $second = saved($claim, $first, values => { messages => [ 600, 'a' ] });
    my $fork = saved($claim, $first, values => { messages => [ 600, 'b' ] });
    my $cut = saved($claim, $second, values => { messages => [ 300, 'c' ] });
    my $shorter = saved($claim, $cut, values => { messages => [ 299 ] });
    my @first = map { "m$_" } 1 .. 600;
    my %expected = ($first => [@first], $second => [ @first, 'a' ], $fork => [ @first, 'b' ], $cut => [ @first[ 0 .. 299 ], 'c' ],
        $shorter => [ @first[ 0 .. 298 ] ]);
    for my $bytes (100, 20_000, 1_000_000) {
        is_deeply values_of($thread, $_, '', $bytes), { messages => $expected{$_} } for $first, $second, $fork, $cut, $shorter;
    }
    is orphans($thread), 0, 'no row of the forks is unused';
    finish($claim);
};

subtest 'a batch of records can be repeated' => sub {
    my $claim = leased();
    my $thread = $claim->{thread_id};
    my ($first, $second) = map { AgentSQL::uuid() } 1, 2;
    my @batch;
    my ($one, $two, $three) = map { value_of($claim, \@batch, $_) } qw(one two three);
    push @batch, AgentSQL::Play::put($claim, id => $first, channels => { messages => list(0, $one), x => $two }),
        AgentSQL::Play::put_writes($claim, id => $first, writes => [ [ 0, 'messages', list(0, $three) ], [ -1, 'error', $two ], [ 1, 'x', undef ] ]),
        AgentSQL::Play::put($claim, id => $second, parent => $first, channels => { messages => list(1, $three) });
    my $count = sub { return join ' ', map { count_of($_, $thread) } qw(checkpoint_snapshots checkpoint_items checkpoint_writes checkpoint_blobs) };
    $play->save($worker, @batch);
    is $count->(), '2 3 3 3', 'the batch stores two snapshots and their rows';
    $play->save($worker, @batch, $batch[3]) for 1, 2;
    is $count->(), '2 3 3 3', 'a repeated batch stores nothing more';
    is orphans($thread), 0, 'uses are counted once';
    is_deeply [ map { values_of($thread, $_)->{messages} } $first, $second ], [ ['one'], [qw(one three)] ],
        'a repeated batch leaves the values as they were';
    finish($claim);
};

# The writes as checkpoint.get has them: each with the run that wrote it.
sub written_by { my ($claim, @writes) = @_; return map { [ @{$_}, $claim->{run_id} ] } @writes }

subtest 'the first write of an idx counts, of a negative idx the last one' => sub {
    my $claim = leased();
    my $thread = $claim->{thread_id};
    my $id = saved($claim, undef);
    my @batch;
    my %digest = map { ($_ => value_of($claim, \@batch, $_)) } qw(a b c d);
    $play->save($worker, @batch,
        AgentSQL::Play::put_writes($claim, id => $id, task => 't2', path => '~p', writes => [ [ 1, 'x', $digest{a} ], [ 0, 'y', undef ], [ -3, 'i', $digest{b} ] ]),
        AgentSQL::Play::put_writes($claim, id => $id, task => 't1', writes => [ [ 0, 'x', list(0, @digest{qw(a b)}) ], [ 0, 'x', $digest{d} ], [ -1, 'e', $digest{a} ], [ -1, 'e', $digest{b} ] ]));
    $play->save($worker, AgentSQL::Play::put_writes($claim, id => $id, task => 't2', writes => [ [ 1, 'x', $digest{c} ], [ -3, 'i', $digest{c} ] ]));
    is_deeply tuple_of($thread, '', $id)->{writes}, [ written_by($claim,
        [ 't1', -1, 'e', $digest{b}, '' ], [ 't1', 0, 'x', list(0, @digest{qw(a b)}), '' ],
        [ 't2', -3, 'i', $digest{c}, '' ], [ 't2', 0, 'y', undef, '~p' ], [ 't2', 1, 'x', $digest{a}, '~p' ]) ],
        'writes are ordered by task and idx, one for each idx';
    is orphans($thread), 0, 'no row of the writes is unused';
    finish($claim);
    sweep();
    is count_of('checkpoint_blobs', $thread), 3, 'the value of a write that does not count is swept';
};

subtest 'the deletion of a run restores the writes that it replaced' => sub {
    my $thread = $play->thread;
    my $first = leased($thread);
    my $id = saved($first, undef);
    my @batch;
    my ($old, $done) = map { value_of($first, \@batch, $_) } qw(old done);
    $play->save($worker, @batch, AgentSQL::Play::put_writes($first, id => $id, writes => [ [ -3, 'i', $old ], [ 0, 'x', $done ] ]));
    finish($first);
    my $second = leased($thread);
    my @more;
    my $new = value_of($second, \@more, 'new');
    $play->save($worker, @more, AgentSQL::Play::put_writes($second, id => $id, writes => [ [ -3, 'i', $new ], [ 0, 'x', $new ], [ -4, 'r', $new ] ]));
    is_deeply tuple_of($thread, '', $id)->{writes}, [
        written_by($second, [ 'task', -4, 'r', $new, '' ], [ 'task', -3, 'i', $new, '' ]), written_by($first, [ 'task', 0, 'x', $done, '' ]) ],
        'the write of a negative idx replaces that of the first run, others do not';
    is +($play->api('cancel_run', $thread, $second->{run_id}, 'rollback'))[0], 'ok', 'the second run is rolled back';
    finish($second);
    is $play->status($thread, $second->{run_id}), 'run_not_found', 'the run that was rolled back is gone';
    is_deeply tuple_of($thread, '', $id)->{writes}, [ written_by($first, [ 'task', -3, 'i', $old, '' ], [ 'task', 0, 'x', $done, '' ]) ],
        'the writes of the first run are as before';
    sweep();
    is count_of('checkpoint_blobs', $thread), 2, 'the blobs of the first run are left';
};

subtest 'the writes of a snapshot are limited, those of all tasks and runs together' => sub {
    my $thread = $play->thread;
    my $claim = leased($thread);
    my ($id, $other) = map { saved($claim, undef, values => { x => 'x' }) } 1, 2;
    my $digest = AgentSQL::Play::digest('json', 'x');
    my $writes = sub { return AgentSQL::Play::put_writes($_[0], id => $_[1], task => $_[2], writes => $_[3]) };
    my $nulls = sub { return [ map { [ $_, 'x', undef ] } 1 .. $_[0] ] };
    $play->save($worker, $writes->($claim, $id, 'a', $nulls->(40_000)));
    $play->save($worker, $writes->($claim, $id, 'b', [ [ 0, 'x', list(0, ($digest) x 25_535) ] ]), $writes->($claim, $other, 'b', $nulls->(30_000)));
    like refused($writes->($claim, $id, 'c', $nulls->(2))), qr/\A22/, 'one more than 65,536 values';
    $play->save($worker, $writes->($claim, $id, 'c', $nulls->(1)));
    $play->save($worker, $writes->($claim, $id, 'a', $nulls->(40_000)));
    finish($claim);
    my $next = leased($thread);
    like refused($writes->($next, $id, 'a', [ [ -1, 'x', undef ] ])), qr/\A22/, 'those of another run count';
    $play->save($worker, $writes->($next, $other, 'a', [ [ -1, 'x', undef ] ]));
    finish($next);
};

subtest 'namespaces have their own snapshots' => sub {
    my $claim = leased();
    my $thread = $claim->{thread_id};
    my $id = AgentSQL::uuid();
    saved($claim, undef, id => $id, values => { x => 'root' });
    saved($claim, undef, id => $id, ns => 'sub:1', values => { x => 'sub' });
    my $next = saved($claim, $id, ns => 'sub:1', values => { y => 'next' });
    is_deeply values_of($thread, $id), { x => 'root' }, 'the root namespace has its own snapshot';
    is_deeply values_of($thread, $id, 'sub:1'), { x => 'sub' }, 'a namespace has a snapshot of the same id';
    is_deeply values_of($thread, undef, 'sub:1'), { x => 'sub', y => 'next' }, 'without an id the newest';
    is tuple_of($thread, '', undef)->{tuple}{checkpoint_id}, $id,
        'the newest snapshot of the root is not that of another namespace';
    is scalar(tuple_of($thread, 'other', undef)), undef, 'no snapshot is null';
    is scalar(tuple_of($thread, '', $next)), undef, 'a snapshot is not found in another namespace';
    is_deeply $play->messages($thread), [], 'a snapshot is not a state';
    # Indexes have room for the longest names, which cannot be compressed.
    my ($ns, $task) = map { join '', map { chr 33 + int rand 90 } 1 .. $_ } 2048, 128;
    my $long = saved($claim, undef, ns => $ns, values => { x => 'long' });
    $play->save($worker, AgentSQL::Play::put_writes($claim, ns => $ns, id => $long, task => $task, path => 'x' x 1024, writes => [ [ 0, 'x', undef ] ]));
    is_deeply tuple_of($thread, $ns, $long)->{writes}, [ written_by($claim, [ $task, 0, 'x', undef, 'x' x 1024 ]) ],
        'the longest namespace, task and path are read as they were written';
    finish($claim);
};

subtest 'a blob in parts is whole when the last part has come' => sub {
    my $claim = leased();
    my $thread = $claim->{thread_id};
    my $bytes = join '', map { chr($_ % 256) } 1 .. 100_000;
    my $digest = AgentSQL::Play::digest('msgpack', $bytes);
    my $part = sub {
        my ($n, $parts, $content, %more) = @_;
        return AgentSQL::Play::item($claim, type => 'blob', digest => $digest, value_type => 'msgpack', part => $n, parts => $parts,
            base64 => encode_base64($content, ''), %more);
    };
    my @parts = map { $part->($_, 4, substr $bytes, 25_000 * $_, 25_000) } 0 .. 3;
    my $put = AgentSQL::Play::put($claim, channels => { x => $digest });
    $play->save($worker, $_) for $part->(0, 2, 'an attempt that was lost'), @parts[ 0, 0, 1, 2, 1 ];
    like refused($put), qr/\A22/, 'a value of which a part is missing cannot be named';
    is +(read_part('read_blobs', $thread, { digests => [$digest] }))[0], 'blob_not_found',
        'a value of which a part is missing cannot be read';
    like refused($part->(1, 5, 'x')), qr/\A22/, 'a part of another number of parts';
    like refused($part->(3, 4, 'x', value_type => 'json')), qr/\A22/, 'a part of another type';
    $play->save($worker, @parts, $put);
    $play->save($worker, @parts[ 2, 3 ], $part->(0, 9, 'x'), $part->(0, 1, 'x'));
    for my $size (1, 60_000, 1_000_000) {
        my ($text, $count) = blobs_of($thread, [ $digest, $digest ], $size);
        is $text->{$digest}, $bytes x 2, "parts of $size bytes";
    }
    is +(blobs_of($thread, [$digest], 1))[1], 4, 'each part of a blob is an answer when one byte is asked for';
    finish($claim);
    is +($play->api('delete_run', $thread, $claim->{run_id}))[0], 'ok', 'the run of the blob is deleted';
    sweep();
    is count_of('checkpoint_blobs', $thread), 0, 'all of them are deleted together';
    my $other = leased($thread);
    like refused(AgentSQL::Play::item($other, type => 'blob', digest => $digest, value_type => 'json', part => 1, parts => 2, text => 'x')),
        qr/\A22/, 'a part without the first one';
    $play->save($worker, AgentSQL::Play::item($other, type => 'blob', digest => $digest, value_type => 'json', part => 0, parts => 2, text => 'x'));
    sweep();
    is count_of('checkpoint_blobs', $thread), 1, 'an executing run may send the others';
    finish($other);
    sweep();
    is count_of('checkpoint_blobs', $thread), 0, 'parts that never come leave nothing';
};

subtest 'a record that is not in the notation ends its own run, and a batch of others is saved' => sub {
    my $claim = leased();
    my $thread = $claim->{thread_id};
    my $id = saved($claim, undef, values => { l => [ 0, 'a', 'b' ], v => 'v' });
    my @known = map { AgentSQL::Play::digest('json', $_) } qw(a b v);
    my $other = leased();
    my $foreign = saved($other, undef, values => { f => 'foreign' });
    my $unknown = AgentSQL::Play::digest('json', 'foreign');
    my $blob = sub { return AgentSQL::Play::item($claim, type => 'blob', digest => $known[0], value_type => 'json', @_) };
    my $put = sub { return AgentSQL::Play::put($claim, parent => $id, @_) };
    my $writes = sub { return AgentSQL::Play::put_writes($claim, id => $id, writes => [@_]) };
    my @bad = (
        $blob->(text => "a\0b"), $blob->(base64 => '%%%'), $blob->(base64 => 'QQ'), $blob->(), $blob->(text => 'a', base64 => 'QQ=='),
        $blob->(text => 'a', digest => 'no uuid'), $blob->(text => 'a', digest => undef), $blob->(text => 'a', value_type => ''),
        $blob->(text => 'a', value_type => undef), $blob->(text => 'a', value_type => 'x' x 33), $blob->(text => 'a', part => 1),
        $blob->(text => 'a', part => -1), $blob->(text => 'a', part => 'x'), $blob->(text => 'a', part => 0, parts => 0),
        $blob->(text => 'a', part => 0, parts => 17), $blob->(text => 'a', part => 0, parts => 99_999_999_999),
        $put->(channels => { x => $unknown }), $put->(channels => { x => 'no uuid' }), $put->(channels => { x => 1 }),
        $put->(channels => { x => list(0, $unknown) }), $put->(channels => { x => list(1, $known[0]) }),
        $put->(channels => { l => list(3) }), $put->(channels => { l => list(-1) }), $put->(channels => { l => list('1') }),
        $put->(channels => { l => list(1.5) }), $put->(channels => { v => list(1) }), $put->(channels => { l => list(1, undef) }),
        $put->(channels => { l => list(1, [ $known[0] ]) }), $put->(channels => { l => { list => { keep => 1 } } }),
        $put->(channels => { l => { list => { items => [] } } }), $put->(channels => { l => {} }), $put->(channels => { l => [] }),
        $put->(channels => [ 'a' ]), $put->(channels => { "a\0" => undef }), $put->(parent => AgentSQL::uuid()),
        $put->(parent => $foreign), $put->(parent => 'x'), $put->(id => 'x'), $put->(checkpoint => [ 1 ]),
        $put->(checkpoint => { a => "\0" }), $put->(metadata => { a => "\0" }), $put->(metadata => [ 1 ]), $put->(ns => 'x' x 2049),
        $put->(ns => "a\0"), $put->(ns => 'other'), $put->(channels => { map { ("channel $_" => undef) } 1 .. 1025 }),
        $put->(checkpoint => { x => 'x' x 1_048_576 }), $put->(metadata => { x => 'x' x 1_048_576 }),
        $put->(checkpoint => { x => 'x' x 600_000 }, metadata => { x => 'x' x 600_000 }), $put->(metadata => { x => [ (1e300) x 4000 ] }),
        $put->(channels => { 'x' x 66_000 => undef }), $put->(channels => { x => list(0, ($known[0]) x 65_537) }),
        $put->(channels => { map { ($_ => list(0, ($known[0]) x 40_000)) } 1, 2 }), $writes->(map { [ $_, 'x', undef ] } 1 .. 65_537),
        $writes->(map { [ $_, 'x', list(0, ($known[0]) x 40_000) ] } 1, 2),
        $writes->([ 0, 'x', $unknown ]), $writes->([ 0, 'x' ]), $writes->([ 0, 'x', undef, 1 ]), $writes->([ 'a', 'x', undef ]),
        $writes->([ 1.5, 'x', undef ]), $writes->([ 99_999_999_999, 'x', undef ]), $writes->([ 0, 1, undef ]), $writes->(1),
        $writes->({}), $writes->([ 0, 'x', list(1, $known[0]) ]), $writes->([ 0, "\0", undef ]),
        AgentSQL::Play::put_writes($claim, id => $id, writes => {}), AgentSQL::Play::put_writes($claim, id => $id, task => '', writes => []),
        AgentSQL::Play::put_writes($claim, id => $id, task => 'x' x 129, writes => []), AgentSQL::Play::put_writes($claim, id => undef, writes => []),
        AgentSQL::Play::put_writes($claim, id => $id, path => 'x' x 1025, writes => []),
    );
    for my $bad (@bad) {
        like refused($bad), qr/\A(?:22|MA012)/, substr AgentSQL::encode({ %$bad, map { ($_ => 0) } qw(d r e) }), 0, 150;
    }
    my $twice = AgentSQL::encode([ $put->(channels => {}) ]) =~ s/"channels":\{\}/"channels":{"a":null,"a":null}/r;
    like refused($twice), qr/\A22/, 'a channel that is named twice';
    my $same = AgentSQL::uuid();
    like refused($put->(id => $same, parent => $same)), qr/\A22/, 'a snapshot that is its own parent';
    is count_of('checkpoint_snapshots', $thread), 1, 'no snapshot of a refused batch is stored';
    is count_of('checkpoint_blobs', $thread), 3, 'no blob of a refused batch is stored';
    is orphans($thread), 0, 'no row of a refused batch is unused';
    is_deeply values_of($thread, $id), { l => [qw(a b)], v => 'v' }, 'the values are as before the refused batches';
    finish($claim, $other);
};

subtest 'checkpoint.list shows the newest first, by namespace, filter and position' => sub {
    my $claim = leased();
    my $thread = $claim->{thread_id};
    my (%id, $parent);
    for my $n (1 .. 30) {
        $parent = $id{$n} = saved($claim, $parent, metadata => { step => $n, even => $n % 2 ? \0 : \1, tags => ['x' x 100],
                $n == 7 ? (o => { a => 1, b => 2 }, l => [ 1, 2 ]) : () });
    }
    $id{sub} = saved($claim, undef, ns => 'sub', metadata => { step => 99 });
    my $list = sub {
        my ($bytes, %args) = @_;
        my (@steps, $parts);
        while (1) {
            my (undef, $body) = read_part('read_checkpoints', $thread, \%args, undef, $bytes);
            push @steps, map { $_->{metadata}{step} } @{ $body->{tuples} };
            $parts++;
            $args{after} = $body->{next} // last;
        }
        return "@steps";
    };
    for my $bytes (100, 3000, 1_000_000) {
        is $list->($bytes, ns => ''), join(' ', reverse 1 .. 30), "parts of $bytes bytes";
        is $list->($bytes, ns => undef), join(' ', 99, reverse 1 .. 30), 'of all namespaces';
        is $list->($bytes, ns => 'sub'), 99, "$bytes bytes: a namespace lists its only snapshot";
        is $list->($bytes, ns => '', before => $id{4}), '3 2 1',
            "$bytes bytes: a namespace lists the snapshots before another one";
        is $list->($bytes, before => $id{4}), '3 2 1', "$bytes bytes: all namespaces list the snapshots before another one";
        is $list->($bytes, ns => '', filter => { even => \1 }, before => $id{10}), '8 6 4 2',
            "$bytes bytes: a filter selects snapshots by their metadata";
    }
    is $list->(1_000_000, ns => '', filter => { step => 7, tags => ['x' x 100], o => { b => 2, a => 1 } }), 7, 'a filter has objects and arrays';
    is $list->(1_000_000, ns => '', filter => $_), '', 'which are equal as a whole: ' . AgentSQL::encode($_)
        for { o => { a => 1 } }, { l => [1] }, { l => [ 2, 1 ] }, { tags => [] }, { step => [7] }, { none => undef };
    is $list->(1_000_000, ns => '', limit => 2), '30 29', 'a list has at most limit snapshots, newest first';
    is $list->(1_000_000, ns => '', limit => 0), '', 'a list of limit 0 is empty';
    is $list->(1_000_000, ns => 'none'), '', 'the list of an unknown namespace is empty';
    for my $bad ({ before => 'x' }, { filter => 1 }, { filter => 'x' }, { limit => 'x' }, { limit => -1 }, { after => { ns => '', checkpoint_id => 'x' } }) {
        like $session->error(sprintf("select agent.read_checkpoints('%s', '%s', '%s', null, 1000)", $play->deployment, $thread,
            AgentSQL::encode($bad))), qr/\A22/, AgentSQL::encode($bad);
    }
    finish($claim);
};

subtest 'checkpoint.list without a limit has all snapshots, however small' => sub {
    my $claim = leased();
    my $thread = $claim->{thread_id};
    my @steps = 1 .. 2001;
    for my $from (grep { $_ % 100 == 1 } @steps) {
        $play->save($worker, map { AgentSQL::Play::put($claim, id => AgentSQL::uuid(), metadata => { step => $_ }) }
            grep { $_ >= $from && $_ < $from + 100 } @steps);
    }
    for my $limit (undef, 1500) {
        my ($parts, @found, $after) = (0);
        do {
            my (undef, $body) = read_part('read_checkpoints', $thread,
                { ns => '', after => $after, limit => defined $limit ? $limit - @found : undef }, undef, 10_000_000);
            push @found, map { $_->{metadata}{step} } @{ $body->{tuples} };
            $after = $body->{next};
            $parts++;
        } while ($after && @found < ($limit // @steps + 1));
        my $wanted = $limit // @steps;
        is "@found", "@{[ (reverse @steps)[ 0 .. $wanted - 1 ] ]}", "the newest $wanted";
        is $parts, $limit ? 2 : 3, "in parts of 1,000";
    }
    finish($claim);
};

subtest 'a part of checkpoint.list compares 16 MB of metadata' => sub {
    my $claim = leased();
    my $thread = $claim->{thread_id};
    my $parent;
    $parent = saved($claim, $parent, metadata => { step => $_, text => 'x' x 900_000 }) for 1 .. 24;
    my (@found, %args);
    for my $part (1, 2) {
        my (undef, $body) = read_part('read_checkpoints', $thread, { ns => '', filter => { step => 1 }, %args }, undef, 1_000_000);
        push @found, map { $_->{metadata}{step} } @{ $body->{tuples} };
        is defined $body->{next}, $part == 1, "part $part of 2";
        is scalar @found, $part - 1, 'the second part alone has the snapshot';
        $args{after} = $body->{next};
    }
    finish($claim);
};

subtest 'checkpoint.delta shows the writes since the nearest ancestor with a value' => sub {
    my $claim = leased();
    my $thread = $claim->{thread_id};
    my ($parent, @ids, @batch);
    my @digest = map { value_of($claim, \@batch, "write $_") } 0 .. 1200;
    $play->save($worker, splice @batch, 0, 300) while @batch;
    for my $n (0 .. 1200) {
        my %values = $n == 2 ? (d => 'seed', other => undef) : (d => undef, $n == 0 ? (other => 'early', l => [ 0, 'a', 'b' ]) : ());
        $parent = saved($claim, $parent, values => \%values);
        push @ids, $parent;
        push @batch, AgentSQL::Play::put_writes($claim, id => $parent, task => 'b', path => '~1', writes => [ [ 0, 'd', $digest[$n] ] ]),
            AgentSQL::Play::put_writes($claim, id => $parent, task => 'a', path => '~2', writes => [ [ 0, 'x', undef ], [ 1, 'd', undef ] ]);
        $play->save($worker, splice @batch) if @batch > 50;
    }
    $play->save($worker, @batch);
    my $delta = sub {
        my ($id, $bytes, @channels) = @_;
        my ($cursor, $parts, %got);
        do {
            (my $code, my $body, $cursor) = read_part('read_delta', $thread, { ns => '', checkpoint_id => $id, channels => \@channels }, $cursor, $bytes);
            die "read_delta: $code" if $code ne 'ok';
            for my $name (@channels) {
                my $seed = $body->{$name}{seed};
                if (ref $seed && $got{$name}{seed}) {
                    my $items = $got{$name}{seed}{list}{items};
                    die "a seed continues at $seed->{list}{keep}" if $seed->{list}{keep} != @$items;
                    push @$items, @{ $seed->{list}{items} };
                } elsif (defined $seed) {
                    $got{$name}{seed} = $seed;
                }
                unshift @{ $got{$name}{writes} }, @{ $body->{$name}{writes} };
            }
            $parts++;
        } while (defined $cursor);
        return wantarray ? (\%got, $parts) : \%got;
    };
    my $expected = sub { return [ map { ([ 'b', $digest[$_], '~1', 0 ], [ 'a', undef, '~2', 1 ]) } @_ ] };
    my $seed = AgentSQL::Play::digest('json', 'seed');
    is_deeply scalar $delta->($ids[5], 1_000_000, 'd'), { d => { seed => $seed, writes => $expected->(2 .. 4) } },
        'those of the ancestor with the value too, and none of the snapshot itself';
    is_deeply scalar $delta->($ids[2], 1_000_000, 'd'), { d => { writes => $expected->(0, 1) } }, 'no ancestor has a value';
    is_deeply scalar $delta->($ids[0], 1_000_000, 'd'), { d => { writes => [] } }, 'the first snapshot has no writes before it';
    is_deeply scalar $delta->(AgentSQL::uuid(), 1_000_000, 'd'), { d => { writes => [] } },
        'an unknown snapshot has no writes before it';
    is_deeply scalar $delta->($ids[2], 1_000_000, 'other', 'd', 'l'), {
        other => { seed => AgentSQL::Play::digest('json', 'early'), writes => [] }, d => { writes => $expected->(0, 1) },
        l => { seed => list(0, map { AgentSQL::Play::digest('json', $_) } qw(a b)), writes => [] } }, 'channels by themselves';
    for my $bytes (5000, 1_000_000) {
        my ($got, $parts) = $delta->($ids[1200], $bytes, 'none', 'd');
        is_deeply $got->{d}, { seed => $seed, writes => $expected->(2 .. 1199) }, "in parts of $bytes bytes";
        cmp_ok $parts, '>', 2, "$parts parts";
    }
    my $from = saved($claim, undef, values => { map { ("l$_" => [ 0, map { "m$_" } 1 .. 900 * $_ ]) } 1, 2 });
    $play->save($worker, AgentSQL::Play::put_writes($claim, id => $from, writes => [ map { [ $_, 'l' . (1 + $_ % 2), undef ] } 0 .. 499 ]));
    my $last = saved($claim, $from);
    for my $bytes (1, 5000, 1_000_000) {
        my ($got, $parts) = $delta->($last, $bytes, 'l2', 'l1');
        is_deeply $got, { map {
            my $n = $_;
            ("l$n" => { seed => list(0, map { AgentSQL::Play::digest('json', "m$_") } 1 .. 900 * $n),
                writes => [ map { [ 'task', undef, '', $_ ] } grep { $_ % 2 == $n - 1 } 0 .. 499 ] })
        } 1, 2 }, "the writes and the lists of one ancestor in $parts parts";
        cmp_ok $parts, '>', 10, 'each of them divided' if $bytes < 10_000;
    }
    for my $cursor ('x', "$ids[0].1", "$ids[0].111.w0", "$ids[0].0x.w0", "$ids[0].11.x0", "$ids[0].11.w", "$ids[0].11.w1234567890") {
        is +(read_part('read_delta', $thread, { checkpoint_id => $ids[9], channels => [qw(a b)] }, $cursor))[0], 'invalid_cursor',
            "read_delta refuses the cursor $cursor";
    }
    finish($claim);
};

subtest 'the work of a part of checkpoint.delta is bounded, also where nothing is found' => sub {
    my $claim = leased();
    my ($thread, $deployment) = ($claim->{thread_id}, $play->deployment);
    my $id = sub { return sprintf '00000000-0000-7000-8000-%012d', $_[0] };
    $session->query("
        insert into agent.checkpoint_snapshots (
            deployment_id, thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, run_id, channels, checkpoint, metadata, created_at)
        select '$deployment', '$thread', '', ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid,
               case when n > 1 then ('00000000-0000-7000-8000-' || lpad((n - 1)::text, 12, '0'))::uuid end, '$claim->{run_id}', v.channels,
               '{}', '{}', now()
          from generate_series(1, 200) n, (
                select array_agg(row('c' || c, null, 0, null, null, null, 'null')::agent.channel_value) as channels
                  from generate_series(1, 1024) c) v");
    my ($cursor, $parts) = (undef, 0);
    do {
        my ($code, $body);
        ($code, $body, $cursor) = read_part('read_delta', $thread, { checkpoint_id => $id->(200), channels => [ map { "c$_" } 1 .. 64 ] }, $cursor);
        $parts++;
        is_deeply [ $code, $body ], [ 'ok', { map { ("c$_" => { writes => [] }) } 1 .. 64 } ],
            '64 channels without writes are one answer';
    } while (defined $cursor);
    is $parts, 10, '20,000 channels a part';
    # A snapshot without channels, with many writes.
    $session->query("
        insert into agent.checkpoint_writes (
            deployment_id, thread_id, checkpoint_ns, checkpoint_id, task_id, idx, run_seq, run_id, task_path, channel, digests, is_list)
        select '$deployment', '$thread', '', '@{[ $id->(1) ]}', 'task', n, 1, '$claim->{run_id}', '', 'other', '{}', false
          from generate_series(1, 20000) n");
    $session->query("update agent.checkpoint_snapshots set channels = '{}' where thread_id = '$thread'");
    $session->query("update agent.checkpoint_writes set checkpoint_id = '@{[ $id->(150) ]}' where thread_id = '$thread'");
    ($cursor) = (read_part('read_delta', $thread, { checkpoint_id => $id->(200), channels => ['c1'] }))[2];
    is $cursor, $id->(149) . '.1.w0', 'writes to other channels count too';
    $session->query("delete from agent.checkpoint_writes where thread_id = '$thread'");
    finish($claim);
};

subtest 'a long tuple is a part of its own' => sub {
    my $claim = leased();
    my $thread = $claim->{thread_id};
    my $id = saved($claim, undef, checkpoint => { x => 'x' x 600_000 }, metadata => { x => 'x' x 400_000 },
        values => { l => [ 0, map { "m$_" } 1 .. 3000 ] });
    my ($got, $parts) = tuple_of($thread, '', $id, 1_000_000);
    is $parts, 2, 'a snapshot of 600,000 bytes and a list are read in two parts';
    is length $got->{tuple}{checkpoint}{x}, 600_000, 'the metadata of the snapshot are read whole';
    is @{ $got->{channels}{l} }, 3000, 'the list of the snapshot is read whole';
    is_deeply [ sort keys %{ (read_part('read_checkpoint', $thread, { checkpoint_id => $id }, undef, 1_000_000))[1] } ], ['tuple'],
        'the first part has the tuple alone';
    finish($claim);
};

subtest 'an attempt continues the checkpoint of its start, not one that a lost attempt put later' => sub {
    my $thread = $play->thread;
    my $claim = $play->leased($worker, $thread, request => { input => { x => 1 } });
    my $last = sub { my $tuple = tuple_of($thread, '', undef); return $tuple && $tuple->{tuple}{checkpoint_id} };
    my $start = sub { return AgentSQL::decode($claim->{start}) };
    # The attempts come back after delays, which are not waited for.
    my $lose = sub {
        is $session->value(sprintf "select outcome from agent.release_runs($worker, '%s', false, 'x', null)",
            AgentSQL::encode([ { d => $play->deployment, r => $claim->{run_id}, e => $claim->{epoch} } ])), 'requeued';
        ($claim) = $play->claim($worker);
    };
    my $input = saved($claim, undef, values => { x => 'input' });
    is $last->(), $input, 'the last snapshot of an attempt is the one that it put';
    $lose->();
    is $start->()->{checkpoint}, undef, 'the second attempt continues no checkpoint';
    isnt $start->()->{input}, undef, 'it gets the input again';
    is $last->(), undef, 'a snapshot that a lost attempt put after the input is not the last one';
    my $first = saved($claim, undef, values => { x => 'again' });
    $play->save($worker, AgentSQL::Play::checkpoint($claim, id => $first, messages => ['Hello']));
    my @batch;
    my $done = value_of($claim, \@batch, 'done');
    $play->save($worker, @batch, AgentSQL::Play::put_writes($claim, id => $first, writes => [ [ 0, 'x', $done ] ]));
    my $second = saved($claim, $first, values => { x => 'second' });
    is $last->(), $second, 'the last snapshot is the newest that the current attempt put';
    $lose->();
    is $start->()->{checkpoint}{checkpoint_id}, $first, 'the third attempt continues the head';
    is $start->()->{input}, undef, 'the third attempt does not get the input again';
    is $last->(), $first, 'after a lost attempt the last snapshot is that of the head';
    is_deeply tuple_of($thread, '', undef)->{writes}, [ written_by($claim, [ 'task', 0, 'x', $done, '' ]) ], 'a task that has ended is not executed again';
    my $third = saved($claim, $first, values => { x => 'third' });
    is $last->(), $third, 'the last snapshot is the one that the third attempt put';
    saved($claim, undef, ns => 'sub', values => { x => 'x' });
    $lose->();
    isnt tuple_of($thread, 'sub', undef), undef, 'a subgraph goes on with its own';
    finish($claim);
    is $last->(), $first, 'the next run does not continue a snapshot of a lost attempt, but that of the head';
    my $next = leased($thread);
    is $last->(), $first, 'the last snapshot stays that of the head while the next run executes';
    finish($next);
    is +($play->api('delete_run', $thread, $claim->{run_id}))[0], 'ok', 'the run is deleted';
    is $last->(), undef, 'a deleted run leaves no last snapshot';
    sweep();
    is join(' ', map { count_of($_, $thread) } qw(checkpoint_snapshots checkpoint_writes checkpoint_blobs)), '0 0 0', 'it is deleted with its run';
};

subtest 'cursors that no part gave are refused' => sub {
    my $claim = leased();
    my $id = saved($claim, undef, values => { x => 'x' });
    my $thread = $claim->{thread_id};
    for my $cursor ('', 'x', "$id.c.0", "$id.x.0", "$id.w.x", AgentSQL::uuid() . '.w.0', "$id.w.1234567890") {
        is +(read_part('read_checkpoint', $thread, {}, $cursor))[0], 'invalid_cursor', "read_checkpoint: $cursor";
    }
    for my $cursor ('', 'x', '0', '1.0', '0.9', '1234567.0', '-1.0') {
        is +(read_part('read_blobs', $thread, { digests => [ AgentSQL::Play::digest('json', 'x') ] }, $cursor))[0], 'invalid_cursor', "read_blobs: $cursor";
    }
    finish($claim);
};

# ---- deletion ----

subtest 'an executing run begins again when it may continue a snapshot of a deleted run' => sub {
    my $thread = $play->thread;
    my ($old, $last) = map { my $claim = leased($thread); saved($claim, undef, ns => $_, values => { x => $_ }); finish($claim); $claim } qw(sub sub);
    my $claim = leased($thread);
    my $root = AgentSQL::uuid();
    $play->save($worker, AgentSQL::Play::checkpoint($claim, id => $root, messages => ['Hello']));
    is +($play->api('delete_run', $thread, $old->{run_id}))[0], 'ok', 'an earlier run of the namespace is deleted';
    is_deeply $play->save($worker, AgentSQL::Play::put($claim, id => $root)), { $claim->{run_id} => [ 'saved', 'f' ] },
        'the snapshot of another run is the last one';
    is +($play->api('delete_run', $thread, $last->{run_id}))[0], 'ok', 'the run of the last snapshot is deleted';
    is_deeply $play->save($worker, AgentSQL::Play::put($claim, ns => 'sub')), { $claim->{run_id} => [ 'fenced', 'f' ] },
        'the executing run is fenced when its snapshot may have a deleted parent';
    my ($again) = $play->claim($worker);
    is "@$again{qw(run_id attempt)}", "$claim->{run_id} 1", 'the attempt does not count';
    is AgentSQL::decode($again->{start})->{checkpoint}{checkpoint_id}, $root, 'it goes on from its own state';
    saved($again, undef, ns => 'sub', values => { x => 'x' });
    finish($again);
};

subtest 'an executing run goes on when a run is deleted whose tasks it does not continue' => sub {
    my $thread = $play->thread;
    my ($old, $head) = map { AgentSQL::uuid() } 1, 2;
    my $run = sub {
        my ($root, $ns, $parents) = @_;
        my $claim = leased($thread);
        $play->save($worker, AgentSQL::Play::checkpoint($claim, id => $root, messages => ['Hello'])) if $root;
        $play->save($worker, AgentSQL::Play::put($claim, ns => $ns, metadata => { source => 'loop', $parents ? (parents => $parents) : () })) if $ns;
        finish($claim);
        return $claim->{run_id};
    };
    my $first = $run->($old, 'node:1', { '' => $old });
    my $second = $run->($head);
    my $task = $run->(undef, 'node:2', { '' => $head });
    my $nested = $run->(undef, 'node:1|inner:3', { '' => $old, 'node:1' => $old });
    my $unknown = $run->(undef, 'node:4', undef);
    my $shared = $run->(undef, 'node', { '' => $old });
    my $claim = leased($thread);
    for ([ 0, $first ], [ 0, $nested ], [ 1, $task ], [ 1, $unknown ], [ 1, $shared ], [ 1, $second ]) {
        my ($begins_again, $deleted) = @$_;
        is +($play->api('delete_run', $thread, $deleted))[0], 'ok';
        is $session->extra, join(' ', $thread, $deleted, ($claim->{run_id}) x $begins_again);
        ($claim) = $play->claim($worker) if $begins_again;
    }
    finish($claim);
    is $play->status($thread, $claim->{run_id}), 'success';
};

subtest 'blobs that a deleted run shares with another stay' => sub {
    my $thread = $play->thread;
    my $first = leased($thread);
    my $a = saved($first, undef, values => { messages => [ 0, 'm1', 'm2' ], x => 'shared' });
    finish($first);
    my $second = leased($thread);
    my $b = saved($second, $a, values => { messages => [ 2, 'm3' ], y => 'm1' });
    finish($second);
    my $third = leased($thread);
    my $c = saved($third, $b, values => { messages => [ 3, 'm4' ], x => 'm2' });
    my $d = saved($third, $a, values => { messages => [ 1, 'm3', 'm5' ] });
    is +($play->api('cancel_run', $thread, $third->{run_id}, 'rollback'))[0], 'ok', 'the third run is rolled back';
    is orphans($thread), 0, 'the rollback leaves no unused row';
    finish($third);
    is scalar(tuple_of($thread, '', $c)), undef, 'a run that is rolled back leaves no snapshot';
    is tuple_of($thread, '', undef)->{tuple}{checkpoint_id}, $b, 'the newest snapshot is that of the second run';
    is orphans($thread), 0, 'the end of the rolled back run leaves no unused row';
    sweep();
    is count_of('checkpoint_blobs', $thread), 4, 'its blobs go, unless others use them';
    is_deeply values_of($thread, $b), { messages => [qw(m1 m2 m3)], x => 'shared', y => 'm1' },
        'the values of the second run are kept';
    is +($play->api('delete_run', $thread, $first->{run_id}))[0], 'ok', 'the first run is deleted';
    sweep();
    is_deeply values_of($thread, $b), { messages => [qw(m1 m2 m3)], x => 'shared', y => 'm1' }, 'the values of the second run are kept without the parent';
    is tuple_of($thread, '', $b)->{tuple}{parent}, undef, 'a snapshot whose parent is deleted names none';
    is +($play->api('delete_run', $thread, $second->{run_id}))[0], 'ok', 'the second run is deleted';
    sweep();
    is join(' ', map { count_of($_, $thread) } qw(checkpoint_snapshots checkpoint_items checkpoint_writes checkpoint_blobs inherited_items item_sweeps blob_sweeps)),
        '0 0 0 0 0 0 0', 'nothing is left';
};

subtest 'the writes of other runs to a deleted snapshot are deleted with it' => sub {
    my $thread = $play->thread;
    my $first = leased($thread);
    my $a = saved($first, undef, values => { x => 'a' });
    finish($first);
    my $second = leased($thread);
    my @batch;
    my $w = value_of($second, \@batch, 'w');
    $play->save($worker, @batch, AgentSQL::Play::put_writes($second, id => $a, writes => [ [ 0, 'x', $w ] ]),
        AgentSQL::Play::put_writes($second, id => AgentSQL::uuid(), writes => [ [ 0, 'x', $w ] ]));
    my $b = saved($second, $a, values => { x => 'b' });
    finish($second);
    is +($play->api('delete_run', $thread, $first->{run_id}))[0], 'ok', 'the run of the first snapshot is deleted';
    is count_of('checkpoint_writes', $thread), 1, 'one to a snapshot that never came stays with its run';
    is orphans($thread), 0, 'the deletion of the first run leaves no unused row';
    is +($play->api('delete_run', $thread, $second->{run_id}))[0], 'ok', 'the run of the writes is deleted';
    sweep();
    is count_of('checkpoint_writes', $thread) + count_of('checkpoint_blobs', $thread), 0,
        'writes and blobs are gone with the last run';
};

subtest 'writes of a deleted run that are too many for one statement are swept, and nothing reads them' => sub {
    for my $how (qw(deletion rollback)) {
        my $thread = $play->thread;
        my $first = leased($thread);
        my @batch;
        my @digests = map { value_of($first, \@batch, "value $_") } 1 .. 3;
        $play->save($worker, @batch);
        my $a = saved($first, undef, values => { x => 'a' });
        $play->save($worker, AgentSQL::Play::put_writes($first, id => $a, writes => [ [ 0, 'x', $digests[0] ] ]));
        finish($first);
        my $second = leased($thread);
        my $b = saved($second, $a, values => { x => 'b' });
        # To the snapshot of another run, its own one and one that never came.
        my @to = ($a, $b, AgentSQL::uuid());
        $play->save($worker, AgentSQL::Play::put_writes($second, id => $to[$_], writes => [ map { [ $_, 'x', $digests[1] ] } 0 .. 1999 ])) for 0 .. 2;
        is scalar @{ tuple_of($thread, '', $a)->{writes} }, 2000, "$how: the second run replaces the write of the first";
        if ($how eq 'rollback') {
            is +($play->api('cancel_run', $thread, $second->{run_id}, 'rollback'))[0], 'ok', 'the second run is rolled back';
            finish($second);
            is $play->status($thread, $second->{run_id}), 'run_not_found', 'the run that was rolled back is gone';
        } else {
            finish($second);
            is +($play->api('delete_run', $thread, $second->{run_id}))[0], 'ok', 'the second run is deleted';
        }
        my $left = count_of('checkpoint_writes', $thread);
        cmp_ok $left, '>', 4000, "the $how deletes a bounded part";
        is orphans($thread), 0, "$how: the rows that are left have their uses";
        my $tuple = tuple_of($thread, '', $a);
        is_deeply $tuple->{writes}, [ written_by($first, [ 'task', 0, 'x', $digests[0], '' ]) ], 'no read finds writes of a deleted run';
        my $third = leased($thread);
        $play->save($worker, AgentSQL::Play::put_writes($third, id => $a, task => 'u', writes => [ [ 0, 'x', list(0, ($digests[2]) x 65_535) ] ]));
        finish($third);
        is +($play->api('delete_run', $thread, $third->{run_id}))[0], 'ok', 'writes of a deleted run do not count towards the limit, and a write of 65,535 values is deleted in parts';
        my $sweeps = 0;
        $sweeps++ while $sweeps < 50 && $session->value('select agent.sweep_state()') && count_of('run_sweeps', $thread);
        cmp_ok $sweeps, '>', 15, "in $sweeps pieces";
        sweep();
        is join(' ', map { count_of($_, $thread) } qw(checkpoint_writes run_sweeps checkpoint_snapshots checkpoint_blobs blob_sweeps)), '1 0 1 2 0', 'to the last';
        is orphans($thread), 0, "$how: the sweeps leave no unused row";
        is_deeply scalar(tuple_of($thread, '', $a)), $tuple, "$how: the sweeps leave the snapshot as it was";
        my $copy = AgentSQL::uuid();
        is +($play->api('copy_thread', $thread, $copy, 'false', undef))[0], 'ok', 'a thread is copied after the sweeps';
        is count_of('checkpoint_writes', $copy), 1, 'the copy has the write that is left';
    }
};

subtest 'checkpoints and snapshots of a deleted run that are too many for one statement are swept, and nothing finds them' => sub {
    for my $how (qw(deletion rollback)) {
        my $thread = $play->thread;
        my $first = leased($thread);
        my $root = AgentSQL::uuid();
        $play->save($worker, AgentSQL::Play::checkpoint($first, id => $root, values => { n => 0 }));
        my $a = saved($first, undef, id => $root, values => { messages => [ 0, 'm0' ] });
        finish($first);
        my $second = leased($thread);
        my ($last, @batch, @ids) = ($a);
        for my $n (1 .. 1500) {
            push @ids, AgentSQL::uuid();
            push @batch, AgentSQL::Play::put($second, id => $ids[-1], parent => $last,
                channels => { messages => list($n, value_of($second, \@batch, "m$n")) }),
                AgentSQL::Play::checkpoint($second, id => $ids[-1], parent => $last, values => { n => $n });
            $last = $ids[-1];
            $play->save($worker, splice @batch) if $n % 300 == 0;
        }
        my $nested = saved($second, undef, ns => 'node', values => { x => 'nested' });
        my ($fork, $cursor);
        my $delta = sub { return (read_part('read_delta', $thread, { checkpoint_id => $_[0], channels => ['messages'] }, @_[ 1, 2 ]))[ 0 .. 2 ] };
        if ($how eq 'rollback') {
            is +($play->api('cancel_run', $thread, $second->{run_id}, 'rollback'))[0], 'ok', 'the run is rolled back';
            finish($second);
            is $play->status($thread, $second->{run_id}), 'run_not_found', 'it no longer exists';
        } else {
            finish($second);
            my $third = leased($thread);
            $fork = saved($third, $ids[699], values => { messages => [ 701, 'fork' ] });
            $play->save($worker, AgentSQL::Play::put_writes($third, id => $ids[699], writes => [ [ 0, 'messages', undef ] ]));
            finish($third);
            $cursor = ($delta->($fork, undef, 1))[2];
            is $cursor, "$ids[699].1.s0", 'a delta of which the writes were read, and not the seed';
            is +($play->api('delete_run', $thread, $second->{run_id}))[0], 'ok', 'the run is deleted';
        }
        my $state = $play->body('get_state', $thread, undef);
        is_deeply [ @$state{qw(checkpoint_id values)} ], [ $root, { n => 0 } ], "$how: the head is that of the first run";
        cmp_ok count_of('checkpoint_snapshots', $thread), '>', 500, "$how: a part of the snapshots is left";
        cmp_ok count_of('checkpoints', $thread), '>', 500, "$how: a part of the checkpoints is left";

        my $values = { messages => $fork ? [ (map { "m$_" } 0 .. 700), 'fork' ] : ['m0'] };
        is tuple_of($thread, '', undef)->{tuple}{checkpoint_id}, $a, 'the last snapshot is not one of a deleted run';
        is scalar(tuple_of($thread, $_->[0], $_->[1])), undef, 'no read finds them' for [ '', $ids[1400] ], [ 'node', undef ], [ 'node', $nested ];
        is_deeply [ map { $_->{checkpoint_id} } @{ (read_part('read_checkpoints', $thread, {}))[1]{tuples} } ], [ $fork // (), $a ],
            'a list has no snapshot of a deleted run';
        is_deeply [ $delta->($ids[1400]) ], [ 'ok', { messages => { writes => [] } }, undef ], 'a delta does not begin at a snapshot of a deleted run';
        my @delta = ('ok', { messages => { seed => list(0, AgentSQL::Play::digest('json', 'm0')), writes => [] } }, undef);
        if ($fork) {
            is_deeply [ $delta->($fork, $_) ], \@delta, 'a delta has no writes and no value of a deleted run' for undef, "$ids[699].1.w0";
            is +($delta->($fork, $cursor))[0], 'invalid_cursor', 'a delta does not continue within a snapshot of a deleted run';
        }
        is +($play->api('get_state', $thread, $ids[1400]))[0], 'checkpoint_not_found', 'a client cannot read a checkpoint of a deleted run';
        is +($play->try_run($thread, request => { checkpoint_id => $ids[1400] }))[0], 'checkpoint_not_found', 'a new run cannot start from a checkpoint of a deleted run';
        is +($play->api('copy_thread', $thread, AgentSQL::uuid(), 'false', undef))[0], 'waiting', 'a copy first deletes a piece of the deleted run';
        my $next = leased($thread);
        # Which are deleted first depends on where the rows are.
        my $left = $session->value("select s.checkpoint_id from agent.checkpoint_snapshots s join agent.checkpoints c
            using (thread_id, checkpoint_ns, checkpoint_id, run_id) where thread_id = '$thread' and run_id = '$second->{run_id}' limit 1");
        is refused(AgentSQL::Play::put($next, id => $left, channels => {})), '22023', 'a put with the id of a deleted snapshot is refused';
        is refused(AgentSQL::Play::put($next, parent => $left, channels => {})), '22023', 'a put that continues a deleted snapshot is refused';
        is refused(AgentSQL::Play::checkpoint($next, id => $left, values => { n => 1 })), '22023', 'a checkpoint with the id of a deleted one is refused';
        finish($next);

        $session->query('begin');
        is $session->value('select agent.sweep_state()'), 1, 'a sweep that is not committed';
        my $other = $db->session;
        is $other->value('select agent.sweep_state()'), 0, 'a sweep does not wait for another one';
        $other->close;
        $session->query('rollback');
        my ($pieces, @wrong) = (0);
        while (count_of('run_sweeps', $thread)) {
            my $before = count_of('checkpoint_snapshots', $thread) + count_of('checkpoints', $thread);
            $session->value('select agent.sweep_state()') or last;
            $pieces++;
            my $deleted = $before - count_of('checkpoint_snapshots', $thread) - count_of('checkpoints', $thread);
            push @wrong, "$pieces: $deleted rows" if $deleted > 700;
            push @wrong, "$pieces: delta" if $fork && AgentSQL::encode([ $delta->($fork) ]) ne AgentSQL::encode(\@delta);
            push @wrong, "$pieces: values" if AgentSQL::encode(values_of($thread, $fork // $a)) ne AgentSQL::encode($values);
        }
        is "@wrong", '', "$how: each of $pieces pieces is small and leaves the values of the others";
        cmp_ok $pieces, '>', 2, 'the sweep of a deleted run takes more than two pieces';
        sweep();
        is join(' ', map { count_of($_, $thread) } qw(checkpoints checkpoint_snapshots run_sweeps item_sweeps)),
            join(' ', 1, $fork ? 2 : 1, 0, 0), "$how: nothing of the run is left";
        is orphans($thread), 0, "$how: the sweeps leave no unused row";
        is tuple_of($thread, '', $fork)->{tuple}{parent}, $a, 'its child continues the nearest remaining ancestor' if $fork;
        is +($delta->($fork, $_))[0], 'invalid_cursor', "a delta does not go on at $_" for $fork ? ($cursor, "$ids[699].1.w0") : ();
        is count_of('inherited_items', $thread), $fork ? 1 : 0, 'the nearest remaining ancestor inherits the elements that the child contains';
    }
};

subtest 'one piece of the deletion of a run deletes at most 4 MB of its snapshots and checkpoints' => sub {
    for my $case ([ checkpoint_snapshots => qw(checkpoint metadata) ], [ checkpoints => qw(next tasks metadata) ]) {
        my ($table, @columns) = @$case;
        for my $column (@columns) {
            my $claim = leased();
            my $thread = $claim->{thread_id};
            my @ids = map { AgentSQL::uuid() } 1 .. 8;
            $play->save($worker, map { (AgentSQL::Play::put($claim, id => $_), AgentSQL::Play::checkpoint($claim, id => $_, values => {})) } @ids);
            finish($claim);
            # A megabyte each, of text that does not compress.
            $session->query("update agent.$table set $column = json_build_array((select string_agg(md5(random()::text), '')
                from generate_series(1, 32000))) where thread_id = '$thread'");
            is +($play->api('delete_run', $thread, $claim->{run_id}))[0], 'ok', "a run with a long $column of $table is deleted";
            is count_of($table, $thread), 4, 'one piece deletes half of the rows';
            sweep();
            is count_of('checkpoint_snapshots', $thread) + count_of('checkpoints', $thread), 0, 'sweeps delete the others';
        }
    }
};

subtest 'a run that continues a deleted one is deleted too, to the head before both' => sub {
    my $thread = $play->thread;
    my @heads = map { AgentSQL::uuid() } 1 .. 3;
    my @runs;
    set_deletion_bytes(13_000);
    for my $n (0 .. 2) {
        my $claim = leased($thread);
        my $parent = $n ? $heads[ $n - 1 ] : undef;
        for my $id ((map { AgentSQL::uuid() } 1 .. 5), $heads[$n]) {
            $play->save($worker, AgentSQL::Play::checkpoint($claim, id => $id, parent => $parent, values => { n => $n }));
            $parent = $id;
        }
        finish($claim);
        push @runs, $claim->{run_id};
    }
    is +($play->api('delete_run', $thread, $runs[1]))[0], 'ok', 'the second run is deleted, all but a few checkpoints';
    is +($play->api('delete_run', $thread, $runs[2]))[0], 'ok', 'the third run is deleted';
    is $play->body('get_state', $thread, undef)->{checkpoint_id}, $heads[0], 'the head is that of the first run';
    sweep();
    is count_of('checkpoints', $thread), 6, 'its checkpoints are kept';
    set_deletion_bytes(4_000_000);
};

subtest 'writes that are put again to a deleted snapshot stay' => sub {
    my $thread = $play->thread;
    my $first = leased($thread);
    my $a = saved($first, undef, values => { x => 'a' });
    finish($first);
    my $second = leased($thread);
    my @batch;
    my ($old, $new) = map { value_of($second, \@batch, $_) } qw(old new);
    $play->save($worker, @batch, AgentSQL::Play::put_writes($second, id => $a, writes => [ map { [ $_, 'x', $old ] } -1 .. 1999 ]));
    is +($play->api('delete_run', $thread, $first->{run_id}))[0], 'ok', 'the run of the snapshot is deleted';
    cmp_ok count_of('checkpoint_writes', $thread), '>', 500, 'more writes to it than one statement deletes';
    my ($again) = $play->claim($worker);
    is $again->{run_id}, $second->{run_id}, 'the run that wrote them begins again';
    my $left = 0 + $session->value("select max(idx) from agent.checkpoint_writes where thread_id = '$thread'");
    $play->save($worker, AgentSQL::Play::put($again, id => $a, channels => {}));
    is_deeply tuple_of($thread, '', $a)->{writes}, [], 'the writes to the deleted snapshot are none of a new one with its id';
    $play->save($worker, AgentSQL::Play::put_writes($again, id => $a, writes => [ map { [ $_, 'y', $new ] } -1, $left, 5000 ]));
    my $writes = [ written_by($again, map { [ 'task', $_, 'y', $new, '' ] } -1, $left, 5000) ];
    is_deeply tuple_of($thread, '', $a)->{writes}, $writes, 'writes that are put again are those of the new snapshot';
    finish($again);
    sweep();
    is_deeply tuple_of($thread, '', $a)->{writes}, $writes, 'sweeps leave the writes that were put again';
    is join(' ', map { count_of($_, $thread) } qw(checkpoint_writes write_sweeps checkpoint_blobs)), '3 0 1', 'sweeps delete the writes to the deleted snapshot';
    is orphans($thread), 0, 'the sweeps leave no unused row';
};

subtest 'writes are counted by one scan of the deleted runs, whatever their number' => sub {
    my $thread = $play->thread;
    my $claim = leased($thread);
    my $a = saved($claim, undef, values => { x => 'a' });
    my @batch;
    my $digest = value_of($claim, \@batch, 'w');
    $play->save($worker, @batch);
    $session->query("insert into agent.run_sweeps (deployment_id, thread_id, run_id)
        select '@{[ $play->deployment ]}', '$thread', gen_random_uuid() from generate_series(1, 100)");
    $session->query('begin');
    my $scans = sub { $session->value("select sum(pg_stat_get_xact_numscans(indexrelid)) from pg_index where indrelid = 'agent.run_sweeps'::regclass") };
    my $before = $scans->();
    $play->save($worker, AgentSQL::Play::put_writes($claim, id => $a, writes => [ map { [ $_, 'x', $digest ] } 0 .. 1999 ]));
    cmp_ok $scans->() - $before, '<=', 3, 'of 2,000 writes';
    $before = $scans->();
    is scalar @{ tuple_of($thread, '', $a)->{writes} }, 2000, 'all are read';
    cmp_ok $scans->() - $before, '<=', 6, 'by a few looks too';
    $session->query('commit');
    $session->query("delete from agent.run_sweeps where thread_id = '$thread'");
    finish($claim);
};

subtest 'sweep_blobs deletes at most 1,400 blobs in a call' => sub {
    my $thread = $play->thread;
    my $claim = leased($thread);
    for my $part (0 .. 3) {
        my @batch;
        value_of($claim, \@batch, "unused $part $_") for 1 .. 1000;
        $play->save($worker, @batch);
    }
    finish($claim);
    $session->query("set agent.now = '" . $session->value("select now() + interval '1 day'") . "'");
    is $session->value('select agent.sweep_state()'), 1, 'a sweep';
    cmp_ok count_of('checkpoint_blobs', $thread), '>=', 2600, 'deletes a part of 4,000 blobs';
    1 while $session->value('select agent.sweep_state()');
    $session->query('reset agent.now');
    is count_of('checkpoint_blobs', $thread), 0, 'further ones delete the rest';
};

subtest 'blobs that no put names are swept when the thread has no run' => sub {
    my $thread = $play->thread;
    my $claim = leased($thread);
    my @batch;
    value_of($claim, \@batch, "unused $_") for 1 .. 3;
    $play->save($worker, @batch);
    is sweep(), 1, 'the thread is examined';
    is count_of('checkpoint_blobs', $thread), 3, 'its run may name them yet';
    my $id = saved($claim, undef, values => { x => 'unused 1' });
    finish($claim);
    sweep();
    is count_of('checkpoint_blobs', $thread), 1, 'blobs that no snapshot names are swept after the run';
    is_deeply values_of($thread, $id), { x => 'unused 1' }, 'the blob that a snapshot names is kept';
    is count_of('blob_sweeps', $thread), 0, 'no sweep of blobs is left to do';
};

subtest 'a sweep beside a batch neither waits nor deletes what the batch names' => sub {
    my $thread = $play->thread;
    my $first = leased($thread);
    my @batch;
    my $digest = value_of($first, \@batch, 'sent early');
    $play->save($worker, @batch);
    my $parent = saved($first, undef, values => { messages => [ 0, map { "m$_" } 1 .. 5000 ] });
    finish($first);
    my $second = leased($thread);
    my $other = $db->session;
    $other->query("set agent.now = '" . $session->value("select now() + interval '1 day'") . "'");
    $session->query('begin');
    my $id = saved($second, $parent, values => { messages => [ 0, 'm1' ] }, id => AgentSQL::uuid());
    $play->save($worker, AgentSQL::Play::put($second, parent => $id, channels => { x => $digest }), AgentSQL::Play::finish($second));
    is $other->value('select agent.sweep_state()'), 0, 'the thread is passed over';
    $session->query('commit');
    is $other->value("select uses from agent.checkpoint_blobs where digest = '$digest' and thread_id = '$thread'"), 1,
        'the snapshots of the batch count as one use of the blob';
    is +($play->api('delete_run', $thread, $first->{run_id}))[0], 'ok', 'the first run is deleted';
    cmp_ok count_of('item_sweeps', $thread), '>', 0, 'elements of the deleted run are left to the sweeps';
    my $third = leased($thread);
    $session->query('begin');
    $play->save($worker, AgentSQL::Play::put($third, parent => $id, channels => { x => $digest }), AgentSQL::Play::finish($third));
    is $other->value('select agent.sweep_state()'), 0, 'a list of snapshots too, since its deletion counts uses';
    $session->query('commit');
    1 while $other->value('select agent.sweep_state()');
    is orphans($thread), 0, 'the sweeps leave no unused row';
    is_deeply values_of($thread, undef), { messages => ['m1'], x => 'sent early' }, 'the values of the batches are kept';
    is count_of('checkpoint_blobs', $thread), 2, 'the blobs of the values are left';
    $other->close;
};

subtest 'a thread with records is deleted in pieces, and leaves nothing' => sub {
    my $thread = $play->thread;
    my $claim = leased($thread);
    my ($parent, @batch);
    for my $n (1 .. 1500) {
        my $id = AgentSQL::uuid();
        my $digest = value_of($claim, \@batch, "message $n " . 'x' x 500);
        push @batch, AgentSQL::Play::put($claim, id => $id, parent => $parent, channels => { messages => list($n - 1, $digest) }),
            AgentSQL::Play::put_writes($claim, id => $id, writes => [ [ 0, 'messages', $digest ] ]);
        $parent = $id;
        $play->save($worker, splice @batch) if @batch >= 300;
    }
    $play->save($worker, @batch, AgentSQL::Play::finish($claim));
    is_deeply [ scalar @{ values_of($thread, $parent)->{messages} }, orphans($thread) ], [ 1500, 0 ],
        'the thread has 1,500 messages and no unused row';
    my $pieces = 0;
    my $more;
    do {
        (my $code, $more) = $play->api('delete_thread', $thread, $pieces ? 'true' : 'false');
        is $code, 'ok', "piece $pieces of the deletion succeeds";
        $pieces++;
    } while ($more);
    cmp_ok $pieces, '>', 2, "$pieces pieces";
    is join(' ', map { count_of($_, $thread) } qw(threads checkpoint_snapshots checkpoint_items checkpoint_writes checkpoint_blobs blob_sweeps)), '0 0 0 0 0 0',
        'no row of the thread is left';
};

subtest 'elements of a deleted run that are too many for one statement are swept, and the uses with them' => sub {
    my $thread = $play->thread;
    my $first = leased($thread);
    my $a = saved($first, undef, values => { messages => [ 0, 'm0' ] });
    finish($first);
    my $second = leased($thread);
    my $parent = $a;
    for my $n (0 .. 4) {
        $parent = saved($second, $parent, values => { messages => [ 1 + 1000 * $n, map { "m$_" } 1000 * $n + 1 .. 1000 * $n + 1000 ] });
    }
    finish($second);
    is +($play->api('delete_run', $thread, $second->{run_id}))[0], 'ok', 'the run of 5,000 elements is deleted';
    cmp_ok count_of('item_sweeps', $thread), '>', 0, 'elements are left';
    cmp_ok sweep(), '>', 2, 'the elements are swept in several pieces';
    is_deeply [ map { count_of($_, $thread) } qw(checkpoint_items checkpoint_blobs item_sweeps blob_sweeps) ], [ 1, 1, 0, 0 ],
        'one element and its blob are left';
    is orphans($thread), 0, 'the sweeps leave no unused row';
    is_deeply values_of($thread, $a), { messages => ['m0'] }, 'the first run keeps its value';
};
subtest 'random chats with forks, writes and deletions keep all values, and no other row' => sub {
    for my $round (1 .. 6) {
        my $thread = $play->thread;
        my (%state, %run);
        # In every second round a statement deletes one or two snapshots, so that deletions overlap.
        my $bytes = $round % 2 ? 4_000_000 : 13_000;
        set_deletion_bytes($bytes);
        for my $turn (1 .. 30) {
            if (rand() < 0.35 && %run) {
                my $run = (sort keys %run)[ rand keys %run ];
                is +($play->api('delete_run', $thread, $run))[0], 'ok',
                    "round $round, turn $turn: a run is deleted" or diag "seed $SEED, round $round, turn $turn";
                delete $state{$_} for @{ delete $run{$run} };
                sweep() if rand() < 0.5;
                $session->value('select agent.sweep_state()') for 1 .. rand 4;
            } else {
                my @known = sort keys %state;
                my $parent = @known && rand() < 0.9 ? $known[ rand() < 0.6 ? -1 : rand @known ] : undef;
                my $claim = leased($thread);
                my @batch;
                for my $step (1 .. 1 + rand 4) {
                    my $id = AgentSQL::uuid();
                    my $new = { %{ $parent ? $state{$parent} : {} } };
                    my %sent;
                    for my $name (grep { rand() < 0.7 } qw(a b)) {
                        my @list = @{ $new->{$name} // [] };
                        my $keep = rand() < 0.7 ? @list : int rand(@list + 1);
                        my @added = map { rand() < 0.3 ? "word $_" : "$turn $step $_" } 1 .. rand 4;
                        $new->{$name} = [ @list[ 0 .. $keep - 1 ], @added ];
                        $sent{$name} = list($keep, map { value_of($claim, \@batch, $_) } @added);
                    }
                    if (rand() < 0.5) {
                        $new->{text} = rand() < 0.2 ? undef : 'text ' . int rand 6;
                        $sent{text} = defined $new->{text} ? value_of($claim, \@batch, $new->{text}) : undef;
                    }
                    push @batch, AgentSQL::Play::put($claim, id => $id, parent => $parent, channels => \%sent);
                    push @batch, AgentSQL::Play::put_writes($claim, id => $parent // $id, task => 'task ' . int rand 2,
                        writes => [ map { [ $_, 'a', value_of($claim, \@batch, 'write ' . int rand 9) ] } -1, 0 ]) if rand() < 0.5;
                    $state{$id} = $new;
                    push @{ $run{ $claim->{run_id} } }, $id;
                    $parent = $id if rand() < 0.9;
                }
                # Blobs come before the records that name them, perhaps in an earlier batch.
                @batch = ((grep { $_->{type} eq 'blob' } @batch), grep { $_->{type} ne 'blob' } @batch);
                $play->save($worker, splice @batch, 0, 1 + rand 3) while @batch;
                finish($claim);
            }
            if ($turn % 6 == 0) {
                my @wrong = grep { AgentSQL::encode(values_of($thread, $_, '', 300)) ne AgentSQL::encode($state{$_}) } sort keys %state;
                is "@wrong", '', "seed $SEED, round $round, turn $turn: all values are as saved";
                sweep() if $bytes < 4_000_000;
            }
            is orphans($thread), 0, "seed $SEED, round $round, turn $turn: no other row" if $bytes == 4_000_000 || $turn % 6 == 0;
        }
        sweep();
        is $session->value("select count(*) from agent.checkpoint_blobs where thread_id = '$thread' and uses = 0"), 0, 'no blob without a use is left';
        my ($last) = reverse sort keys %state or next;
        prune($thread);
        is_deeply left_of('checkpoint_snapshots', $thread), [$last], "seed $SEED, round $round: prune leaves the last snapshot";
        is_deeply values_of($thread, $last), $state{$last}, "seed $SEED, round $round: with its values";
        sweep();
        is orphans($thread), 0, "seed $SEED, round $round: there is no other row";
    }
};

done_testing;
