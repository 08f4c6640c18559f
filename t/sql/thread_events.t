# SPDX-License-Identifier: Apache-2.0
# Streams of a run and of a thread: the rows of each poll, and that no cursor ever misses or repeats
# anything, whatever happens to the runs.
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
my $worker = $play->worker;

sub event { return AgentSQL::Play::event(@_) }
sub finish { return AgentSQL::Play::finish(@_) }
sub say { my ($claim, @numbers) = @_; return $play->save($worker, map { event($claim, $_, 'custom', $_) } @numbers) }

sub leased { return $play->leased($worker, @_) }

# A reader of a thread: each poll returns the new rows as short texts, run numbers from the ids.
sub reader {
    my ($thread, $at, %with) = @_;
    return sub {
        my @seen;
        for my $row ($play->thread_events($thread, $at, %with)) {
            my ($id, $run, $event, $data, $status) = @$row;
            my ($was) = $at =~ /^(\d+)/;
            $at = $id;
            push @seen, $event ne '' ? "$event $id" : $status ne '' ? "end $was $status" : ();
        }
        return \@seen;
    };
}

subtest 'a poll of a run returns its events, and its end when it is final' => sub {
    my $thread = $play->thread;
    my $claim = leased($thread);
    my $run = $claim->{run_id};
    is_deeply [ $play->poll($thread, $run, -1) ], [], 'no rows before the first event';
    say($claim, 0, 1);
    is_deeply [ $play->poll($thread, $run, -1) ],
        [ [ 0, 'custom', 0, '', 'f' ], [ 1, 'custom', 1, '', 'f' ] ];
    is_deeply [ $play->poll($thread, $run, 1) ], [];
    $play->save($worker, event($claim, 2, 'custom', 2), finish($claim));
    is_deeply [ $play->poll($thread, $run, 1) ],
        [ [ 2, 'custom', 2, '', 'f' ], [ 2, '', '', 'success', 'f' ] ];
    is_deeply [ $play->poll($thread, $run, 2) ], [ [ 2, '', '', 'success', 'f' ] ], 'a repeated poll returns the end again';
    is_deeply [ $play->poll($thread, AgentSQL::uuid(), -1) ], [ [ '', '', '', '', 'f' ] ], 'an unknown run has no number';
    is_deeply [ $play->poll($play->thread, $run, -1) ], [ [ '', '', '', '', 'f' ] ], 'a run of another thread has no number';
};

subtest 'a poll returns the end of a run only after the commit of its final status' => sub {
    my $reader = AgentSQL::Play->new($db->session);
    for my $status (qw(success error interrupted)) {
        my $thread = $play->thread;
        my $claim = leased($thread);
        my $run = $claim->{run_id};
        say($claim, 0);
        $play->api('cancel_run', $thread, $run, 'interrupt') if $status eq 'interrupted';
        $play->save($worker, event($claim, 1, 'error', { error => 'E', message => 'm' }));
        is_deeply [ $reader->poll($thread, $run, 1) ], [], "$status: the last event is not the end";
        $session->query('begin');
        $play->save($worker, finish($claim, $status));
        is_deeply [ $reader->poll($thread, $run, 1) ], [], "$status: no end before the commit";
        is_deeply [ map { $_->[4] } $reader->thread_events($thread, '1-1') ], [], "$status: no end in the thread's stream";
        is +($reader->join($thread, $run))[0], 'waiting', "$status: a join waits";
        is $reader->status($thread, $run), 'pending';
        $session->query('commit');
        is_deeply [ map { $_->[3] } $reader->poll($thread, $run, 1) ], [$status], "$status: the end after it";
        is $reader->status($thread, $run), $status;
    }
};

subtest 'a stream may begin after the values of a checkpoint' => sub {
    my $thread = $play->thread;
    my $claim = leased($thread);
    my @ids = map { AgentSQL::uuid() } 1 .. 3;
    my $event_of = sub { return $play->body('find_checkpoint_event', $thread, $claim->{run_id}, $_[0]) };
    $play->save($worker, event($claim, 0, 'metadata', {}),
        (map { (AgentSQL::Play::checkpoint($claim, id => $ids[$_], messages => [$_]),
            AgentSQL::Play::values_event($claim, $_ + 1, $ids[$_])) } 0, 1),
        AgentSQL::Play::checkpoint($claim, id => $ids[2], messages => [2]), event($claim, 3, 'custom', 1));
    is_deeply [ map { $event_of->($_) } @ids ], [ 1, 2, -1 ], 'the number of its event, -1 for none';
    is $event_of->(AgentSQL::uuid()), -1, 'an unknown checkpoint has no event';
    is +($play->api('find_checkpoint_event', $play->thread, $claim->{run_id}, $ids[0]))[0], 'run_not_found',
        'a run of another thread is not found';
    $play->save($worker, finish($claim));
};

subtest 'a poll is cut off at its limit and reports more' => sub {
    my $thread = $play->thread;
    my $claim = leased($thread);
    $play->save($worker, (map { event($claim, $_, 'custom', $_) } 0 .. 4), finish($claim));
    my @rows = $play->poll($thread, $claim->{run_id}, -1, limit => 2);
    is_deeply [ map { [ @$_[ 0, 4 ] ] } @rows ], [ [ 0, 'f' ], [ 1, 't' ] ];
    is_deeply [ map { $_->[0] } $play->poll($thread, $claim->{run_id}, 1, limit => 10) ], [ 2, 3, 4, 4 ];
};

subtest 'a poll is cut off near 64 KB of data' => sub {
    my $thread = $play->thread;
    my $claim = leased($thread);
    $play->save($worker, (map { event($claim, $_, 'custom', 'x' x 25_000) } 0 .. 4), finish($claim));
    my @rows = $play->poll($thread, $claim->{run_id}, -1);
    is_deeply [ map { [ @$_[ 0, 4 ] ] } @rows ], [ [ 0, 'f' ], [ 1, 'f' ], [ 2, 't' ] ];
    my @again = $play->thread_events($thread, '1--1');
    is_deeply [ map { [ @$_[ 0, 6 ] ] } @again ], [ [ '1-0', 'f' ], [ '1-1', 'f' ], [ '1-2', 't' ] ], 'a poll of a thread returns the same rows';
};

subtest 'events that were not requested move the cursor only' => sub {
    my $thread = $play->thread;
    my $claim = leased($thread);
    my $run = $claim->{run_id};
    $play->save($worker, event($claim, 0, 'metadata', {}), map { event($claim, $_, 'custom', $_) } 1 .. 3);
    is_deeply [ map { [ @$_[ 0, 1 ] ] } $play->poll($thread, $run, -1, events => ['metadata']) ],
        [ [ 0, 'metadata' ], [ 3, '' ] ];
    is_deeply [ $play->poll($thread, $run, 3, events => ['metadata']) ], [];
    is_deeply [ map { [ @$_[ 0, 1, 4 ] ] } $play->poll($thread, $run, 0, events => [], limit => 2) ],
        [ [ 2, '', 't' ] ], 'the limit counts events read';
    $play->save($worker, finish($claim));
    is_deeply [ map { [ @$_[ 0, 3 ] ] } $play->poll($thread, $run, 3, events => []) ], [ [ 3, 'success' ] ];
};

subtest 'a thread shows its runs in order, each with its end' => sub {
    my $thread = $play->thread;
    my $read = reader($thread, '1--1');
    is_deeply $read->(), [], 'a thread without runs has no rows';
    my $first = leased($thread);
    is_deeply $read->(), [], 'a run without events has no rows';
    say($first, 0, 1);
    is_deeply $read->(), [ 'custom 1-0', 'custom 1-1' ];
    my $blocked = $play->run($thread);
    is_deeply $read->(), [], 'a run that waits shows nothing';
    $play->save($worker, event($first, 2, 'custom', 2), finish($first, 'error'));
    is_deeply $read->(), [ 'custom 1-2', 'end 1 error' ];
    is_deeply $read->(), [], 'once';
    my ($second) = $play->claim($worker);
    say($second, 0);
    is_deeply $read->(), ['custom 2-0'];
    $play->save($worker, finish($second));
    my $third = leased($thread);
    say($third, 0);
    is_deeply $read->(), [ 'end 2 success', 'custom 3-0' ];
    is_deeply reader($thread, '0--1')->(),
        [ 'custom 1-0', 'custom 1-1', 'custom 1-2', 'end 1 error', 'custom 2-0', 'end 2 success', 'custom 3-0' ],
        'from the oldest event: all rows';
    is_deeply reader($thread, '1-1')->(), [ 'custom 1-2', 'end 1 error', 'custom 2-0', 'end 2 success', 'custom 3-0' ],
        'after any id: the rows after it';
    is_deeply reader($thread, '2--1', limit => 1)->(), ['custom 2-0'], 'limited';
};

subtest 'polls with a small limit return every row once' => sub {
    my $thread = $play->thread;
    for (1 .. 3) {
        my $claim = leased($thread);
        $play->save($worker, (map { event($claim, $_, 'custom', $_) } 0 .. 2), finish($claim));
    }
    my $all = reader($thread, '0--1')->();
    for my $limit (1 .. 5) {
        my $read = reader($thread, '0--1', limit => $limit);
        my @seen;
        while (my @more = @{ $read->() }) { push @seen, @more }
        is_deeply \@seen, $all, "limit $limit";
    }
};

subtest 'the end of a run names its last checkpoint' => sub {
    my $thread = $play->thread;
    my $claim = leased($thread);
    my $id = AgentSQL::uuid();
    $play->save($worker, AgentSQL::Play::checkpoint($claim, id => $id, messages => ['a']), finish($claim));
    my $bare = leased($thread);
    $play->save($worker, finish($bare));
    is_deeply [ map { [ @$_[ 1, 4, 5 ] ] } $play->thread_events($thread) ],
        [ [ $claim->{run_id}, 'success', $id ], [ $bare->{run_id}, 'success', '' ] ];
};

subtest 'a run that was cancelled while blocked is shown after the earlier run has ended' => sub {
    my $thread = $play->thread;
    my $read = reader($thread, '1--1');
    my $first = leased($thread);
    say($first, 0);
    my $waiting = $play->run($thread);
    my $third = $play->run($thread, strategy => 'interrupt');
    is $play->status($thread, $waiting), 'interrupted';
    is_deeply $read->(), ['custom 1-0'], 'run 2 has ended, run 1 has not';
    $play->save($worker, event($first, 1, 'custom', 1), finish($first, 'interrupted'));
    is_deeply $read->(), [ 'custom 1-1', 'end 1 interrupted', 'end 2 interrupted' ];
    my ($claim) = $play->claim($worker);
    $play->save($worker, event($claim, 0, 'custom', 0), finish($claim));
    is_deeply $read->(), [ 'custom 3-0', 'end 3 success' ];
};

subtest 'a run that is rolled back is reported as deleted to readers of some of its events only' => sub {
    my $thread = $play->thread;
    my ($inside, $before) = map { reader($thread, '1--1') } 1, 2;
    my $first = leased($thread);
    say($first, 0);
    is_deeply $inside->(), ['custom 1-0'];
    my $second = $play->run($thread, strategy => 'rollback');
    say($first, 1);
    is_deeply $inside->(), ['custom 1-1'], 'the run continues until its worker stops';
    $play->save($worker, finish($first, 'interrupted'));
    is $play->status($thread, $first->{run_id}), 'run_not_found';
    is_deeply $inside->(), ['end 1 deleted'];
    is_deeply $inside->(), [], 'once';
    is_deeply $before->(), [];
    my ($claim) = $play->claim($worker);
    say($claim, 0);
    is_deeply $_->(), ['custom 2-0'] for $inside, $before;
    $play->api('cancel_run', $thread, $claim->{run_id}, 'rollback');
    $play->save($worker, finish($claim, 'interrupted'));
    is_deeply $_->(), ['end 2 deleted'], 'a deleted run is reported when no run follows' for $inside, $before;
    my $third = leased($thread);
    say($third, 0);
    is_deeply $_->(), ['custom 3-0'] for $inside, $before;
    $play->save($worker, finish($third));
};

subtest 'a deleted final run is skipped' => sub {
    my $thread = $play->thread;
    my @claims = map { my $claim = leased($thread); $play->save($worker, event($claim, 0, 'custom', 0), finish($claim)); $claim } 1 .. 3;
    $play->api('delete_run', $thread, $claims[1]{run_id});
    is_deeply reader($thread, '1-0')->(), [ 'end 1 success', 'custom 3-0', 'end 3 success' ];
    is_deeply reader($thread, '2-0')->(), [ 'end 2 deleted', 'custom 3-0', 'end 3 success' ];
    is_deeply reader($thread, '2--1')->(), [ 'custom 3-0', 'end 3 success' ];
};

subtest 'the modes of a thread stream select events' => sub {
    my $thread = $play->thread;
    my $lifecycle = reader($thread, '1--1', events => ['metadata']);
    my $ends = reader($thread, '1--1', events => []);
    my $claim = leased($thread);
    $play->save($worker, event($claim, 0, 'metadata', {}), event($claim, 1, 'custom', 1));
    is_deeply $lifecycle->(), ['metadata 1-0'];
    is_deeply $ends->(), [];
    $play->save($worker, event($claim, 2, 'custom', 2), finish($claim));
    is_deeply $_->(), ['end 1 success'] for $lifecycle, $ends;
};

subtest 'a stream may begin at the end of the thread' => sub {
    my $thread = $play->thread;
    my $end = sub { my ($code, $body) = $session->call('find_thread_end', $AgentSQL::DEPLOYMENT, $thread); return ($body, $session->extra) };
    is_deeply [ $end->() ], [ '1--1', '' ], 'the end of a thread without runs';
    my $first = leased($thread);
    is_deeply [ $end->() ], [ '1--1', $first->{run_id} ], 'the end before the first event';
    say($first, 0, 1);
    $play->run($thread);
    is_deeply [ $end->() ], [ '1-1', $first->{run_id} ], 'the end within a run';
    $play->save($worker, event($first, 2, 'custom', 2), finish($first));
    my ($second) = $play->claim($worker);
    is_deeply [ $end->() ], [ '2--1', $second->{run_id} ];
    $play->save($worker, event($second, 0, 'custom', 0), finish($second));
    is_deeply [ $end->() ], [ '3--1', '' ], 'the end after the last run';
    is_deeply reader($thread, ($end->())[0])->(), [];
};

subtest 'a cursor beyond the last run counts as the end' => sub {
    my $thread = $play->thread;
    my $claim = leased($thread);
    $play->save($worker, event($claim, 0, 'custom', 0), finish($claim));
    my $read = reader($thread, '99-5');
    is_deeply $read->(), [];
    $claim = leased($thread);
    say($claim, 0);
    is_deeply $read->(), ['custom 2-0'], 'the reader misses no later event';
    $play->save($worker, finish($claim));
};

subtest 'events dropped by retention are replaced by a gap event and the state' => sub {
    $session->query("set agent.now = '2030-03-01T12:00:00Z'");
    $session->query("select agent.maintain_partitions('2 days')");
    my $thread = $play->thread;
    my $good = leased($thread, request => { feedback_keys => ['k'] }, feedback => 'http://f/{run_id}/{key}');
    $play->save($worker, event($good, 0, 'custom', 0), event($good, 1, 'custom', 1),
        AgentSQL::Play::checkpoint($good, messages => ['kept']), finish($good));
    my $bad = leased($thread);
    $play->save($worker, event($bad, 0, 'custom', 0), finish($bad, 'error', { error => 'E', message => 'm' }));
    $session->query("set agent.now = '2030-03-09T12:00:00Z'");
    $session->query("select agent.maintain_partitions('2 days')");
    my $new = leased($thread);
    $play->save($worker, event($new, 0, 'custom', 0), finish($new));

    my @rows = $play->poll($thread, $good->{run_id}, 0);
    is_deeply [ map { [ @$_[ 0, 1, 3 ] ] } @rows ],
        [ [ 0, 'gap', '' ], [ 0, 'values', '' ], [ 2, 'feedback', '' ], [ 2, '', 'success' ] ],
        'the last event alone moves the cursor';
    is_deeply AgentSQL::decode($rows[0][2]), { run_id => $good->{run_id}, after => 0, last => 2 };
    is_deeply AgentSQL::decode($rows[1][2]), { messages => [ AgentSQL::Play::human('kept') ] };
    is_deeply AgentSQL::decode($rows[2][2]), { k => "http://f/$good->{run_id}/k" };
    is_deeply [ $play->poll($thread, $good->{run_id}, 2) ], [ [ 2, '', '', 'success', 'f' ] ], 'a cursor at the last event gets no gap event';
    is_deeply [ map { $_->[1] } $play->poll($thread, $good->{run_id}, -1, events => ['custom']) ],
        [ qw(gap values feedback), '' ], 'the gap is sent whichever events were requested';
    is_deeply [ map { [ @$_[ 1, 2 ] ] } grep { $_->[1] eq 'error' } $play->poll($thread, $bad->{run_id}, -1) ],
        [ [ 'error', '{"error":"E","message":"m"}' ] ];

    is_deeply reader($thread, '1-0')->(),
        [ 'gap 1-0', 'values 1-0', 'feedback 1-2', 'end 1 success', 'gap 2--1', 'error 2-0', 'end 2 error',
            'custom 3-0', 'end 3 success' ], 'a poll of a thread returns the same rows';
    is_deeply reader($thread, '0--1')->(), [ 'custom 3-0', 'end 3 success' ], 'from the oldest stored event';
    is_deeply [ map { [ @$_[ 0, 1 ], $_->[2] =~ s/\A[^.]+//r ] } $session->query("select id, data, cursor
        from agent.read_thread_events('$AgentSQL::DEPLOYMENT', '$thread', 1, 0, 10, null, 1) where event is distinct from 'gap'") ],
        [ [ '1-0', "{\x01}", '.1.0.0' ], [ '1-2', $rows[2][2], '' ], [ '2--1', '', '' ] ],
        'a large state in a gap is left out, and the rows end with its run';
    my $other = $play->thread;
    is_deeply reader($other, '0--1')->(), [];
    $session->query('reset agent.now');
};

subtest 'a thread that is deleted has no id' => sub {
    my $thread = $play->thread;
    $play->run($thread);
    $play->api('delete_thread', $thread);
    is_deeply [ $play->thread_events($thread) ], [ [ ('') x 6, 'f' ] ];
    is +($play->api('find_thread_end', $thread))[0], 'thread_not_found';
};

subtest 'a reader under load sees every event of every run once, in order' => sub {
    my $thread = $play->thread;
    my $read = reader($thread, '1--1');
    my (@seen, @written);
    srand(7);
    my $number = 0;
    for my $round (1 .. 60) {
        my $strategy = (qw(enqueue enqueue interrupt rollback))[ rand 4 ];
        $play->run($thread, strategy => $strategy);
        $number++;
        push @seen, @{ $read->() } if rand() < .5;
        while (my ($claim) = $play->claim($worker)) {
            my $own = $session->value("select thread_seq from agent.runs where run_id = '$claim->{run_id}'");
            for my $seq (0 .. rand 4) {
                say($claim, $seq);
                push @written, "$own-$seq";
                push @seen, @{ $read->() } if rand() < .5;
            }
            if (rand() < .3) {
                $play->api('cancel_run', $thread, $claim->{run_id}, rand() < .5 ? 'interrupt' : 'rollback');
            }
            if (rand() < .2) {
                $play->run($thread, strategy => 'enqueue');
            }
            $play->save($worker, finish($claim));
        }
    }
    push @seen, @{ $read->() };
    my @got = map { /^custom (.*)/ ? $1 : () } @seen;
    my %kept = map { $_ => 1 } map { "$_->[0]-$_->[1]" } $session->query("select r.thread_seq, e.seq from agent.runs r
        join agent.run_events e using (deployment_id, run_id) where r.thread_id = '$thread'");
    my %written = map { $_ => 1 } @written;
    my %got;
    $got{$_}++ for @got;
    is_deeply [ grep { !$got{$_} } sort keys %kept ], [], 'no stored event was missed';
    is_deeply [ grep { $got{$_} > 1 } keys %got ], [], 'no event was returned twice';
    is_deeply [ grep { !$written{$_} } keys %got ], [], 'no other event was returned';
    my @order = sort { my @a = split /-/, $a; my @b = split /-/, $b; $a[0] <=> $b[0] || $a[1] <=> $b[1] } @got;
    is_deeply \@got, \@order, 'in order';
    my @ends = map { /^end (\d+)/ ? $1 : () } @seen;
    my %ended;
    $ended{$_}++ for @ends;
    is_deeply [ grep { $ended{$_} > 1 } keys %ended ], [], 'no run ended twice';
    is_deeply [ grep { !$ended{$_} } map { $_->[0] } $session->query(
        "select thread_seq from agent.runs where thread_id = '$thread'") ], [], 'every stored run has ended';
};

subtest 'read_updates returns small events; for others a row without an event' => sub {
    my $thread = $play->thread;
    my $run = $play->run($thread);
    my ($claim) = $play->claim($worker);
    $play->save($worker,
        AgentSQL::Play::event($claim, 0, 'custom', 'x' x 16_000),
        AgentSQL::Play::event($claim, 1, 'custom', 'x' x 17_000));
    is_deeply [ $session->query("select seq, event, octet_length(data) from agent.read_updates(
            array['$AgentSQL::DEPLOYMENT']::uuid[], array['$run']::uuid[], array[-1], 100)") ],
        [ [ 0, 'custom', 16_002 ], [ 1, '', '' ] ];
    $play->save($worker, AgentSQL::Play::finish($claim));
};

done_testing;
