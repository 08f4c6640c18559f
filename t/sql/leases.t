# SPDX-License-Identifier: Apache-2.0
# Claiming runs, leases, the fence, release and retry.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Play;

my $db = AgentSQL->new;
my $play = AgentSQL::Play->new($db->session);
my $worker = $play->worker;

# Moves a lease from one worker to another.
sub steal {
    my ($claim, $from, $to) = @_;
    $play->release($from, 'false', $claim);
    my ($stolen) = grep { $_->{run_id} eq $claim->{run_id} } $play->claim($to);
    return $stolen;
}

subtest 'runs are claimed in the order in which they became ready, up to the limit' => sub {
    my @runs = map { $play->run($play->thread) } 1 .. 5;
    is_deeply [ map { $_->{run_id} } $play->claim($worker, limit => 2) ], [ @runs[0, 1] ];
    is_deeply [ map { $_->{run_id} } $play->claim($worker, limit => 9) ], [ @runs[2 .. 4] ];
    is_deeply [ $play->claim($worker) ], [];
};

subtest 'a worker gets runs of its graphs only, the longest ready first across graphs' => sub {
    my %graph = (shop => '15e14de9-4afb-5a11-8afe-59e1e9ce4e4a', agent => $AgentSQL::ASSISTANT);
    my @runs = map { $play->run($play->thread, graph => $_, assistant => $graph{$_}, graphs => [ keys %graph ]) } qw(agent shop agent shop);
    is_deeply [ map { $_->{run_id} } $play->claim($worker, graphs => '{shop}', limit => 1) ], [ $runs[1] ];
    is_deeply [ map { $_->{run_id} } $play->claim($worker, graphs => '{shop,agent}', limit => 2) ], [ @runs[0, 2] ];
    is_deeply [ map { $_->{graph_id} } $play->claim($worker, graphs => '{agent,shop}') ], ['shop'];
};

subtest 'the low-water mark hides runs below it' => sub {
    my $run = $play->run($play->thread);
    my $ready_seq = $play->queue($run)->{ready_seq};
    is_deeply [ $play->claim($worker, min => $ready_seq) ], [];
    my ($claim) = $play->claim($worker, min => $ready_seq - 1);
    is $claim->{ready_seq}, $ready_seq;
};

subtest 'a claim composes start messages up to its bytes, compose_starts the others' => sub {
    my $other = $play->worker;
    my ($small, $large) = map { $play->thread } 1 .. 2;
    my @next = ($play->run($large, request => { input => 'x' x 5000 }), $play->run($small));
    my %claims = map { $_->{run_id} => $_ } $play->claim($other, max_bytes => 4000);
    like $claims{ $next[1] }{start}, qr/"type" : "start"/, 'the claim composes the small one';
    is $claims{ $next[0] }{start}, undef, 'the claim does not compose the large one';
    cmp_ok $claims{ $next[0] }{start_bytes}, '>', 5000, 'the claim reports the length of the large one';
    cmp_ok $claims{ $next[0] }{start_bytes}, '<', 8000, 'the reported length is close';
    my $items = AgentSQL::encode([ map { AgentSQL::Play::item($_) } values %claims ]);
    my %starts = map { $_->[0] => $_ } $play->session->query("select * from agent.compose_starts($other, '$items')");
    is scalar keys %starts, 2, 'compose_starts has both';
    is_deeply AgentSQL::decode($starts{ $next[1] }[2]), AgentSQL::decode($claims{ $next[1] }{start}), 'compose_starts and claim_runs compose the same message';
    like $starts{ $next[0] }[2], qr/x{5000}/;
    is $starts{ $next[0] }[1], $claims{ $next[0] }{epoch};
    is_deeply [ $play->session->query("select * from agent.compose_starts($worker, '$items')") ], [],
        'compose_starts has none for another worker';
    $play->save($other, map { AgentSQL::Play::finish($_) } values %claims);
};

subtest 'a quarantined run is claimed only by a worker with room for one' => sub {
    my $other = $play->worker;
    my $run = $play->run($play->thread);
    my ($claim) = $play->claim($other);
    my $items = AgentSQL::encode([ AgentSQL::Play::item($claim) ]);
    is_deeply [ $play->session->query("select outcome from agent.release_runs($other, '$items', false, 'x', 25::smallint)") ],
        [ ['requeued'] ];
    is_deeply [ $play->claim($other, quarantined => 0) ], [];
    ($claim) = $play->claim($other);
    is_deeply [ @{$claim}{qw(run_id max_shared attempt)} ], [ $run, 25, 1 ], 'the claim reports the limit; the attempt was not counted';
    $play->release($other, 'true', $claim);
    is $play->queue($run)->{max_shared}, 25, 'the limit is kept until another one is given';
    $play->session->query('update agent.run_queue set not_before = null');
    ($claim) = $play->claim($other);
    is $claim->{quarantines_passed}, 0, 'quarantines_passed counts no release with a limit';
    $items = AgentSQL::encode([ AgentSQL::Play::item($claim) ]);
    $play->session->query("select outcome from agent.release_runs($other, '$items', false, 'x', (-1)::smallint)");
    ($claim) = $play->claim($other, quarantined => 0);
    is_deeply [ @{$claim}{qw(run_id max_shared quarantines_passed)} ], [ $run, undef, 1 ],
        'a release with -1 removes the limit, which is counted';
    $play->save($other, AgentSQL::Play::finish($claim));
};

subtest 'quarantined runs and other runs are claimed up to separate limits' => sub {
    my $other = $play->worker;
    my @quarantined = map { $play->run($play->thread) } 1 .. 5;
    $play->session->query('update agent.run_queue set max_shared = 1');
    my @runs = map { $play->run($play->thread) } 1 .. 4;
    my $claimed = sub { [ map { $_->{run_id} } $play->claim($other, @_) ] };
    is_deeply $claimed->(limit => 1, quarantined => 0), [ $runs[0] ], 'quarantined runs do not delay other runs';
    is_deeply $claimed->(limit => 0, quarantined => 2), [ @quarantined[ 0, 1 ] ], 'other runs do not delay quarantined runs';
    is_deeply [ sort @{ $claimed->(limit => 2, quarantined => 1) } ], [ sort @runs[ 1, 2 ], $quarantined[2] ], 'one claim returns quarantined runs and other runs';
    is_deeply $claimed->(limit => 0, quarantined => 0), [];
    is_deeply [ sort @{ $claimed->() } ], [ sort $runs[3], @quarantined[ 3, 4 ] ], 'no run is left';
    $play->session->query("select * from agent.mark_worker_dead($other, false, 100)");
    $play->finish_all($worker);
};

subtest 'fail_run ends a run in error, also a cancelled one' => sub {
    my $other = $play->worker;
    my $thread = $play->thread;
    my ($run) = ($play->run($thread));
    my ($claim) = $play->claim($other);
    $play->save($other, AgentSQL::Play::checkpoint($claim, messages => ['kept']));
    is +($play->api('cancel_run', $thread, $run, 'rollback'))[0], 'ok';
    my $stranger = $play->worker;
    is_deeply [ $play->session->query("select * from agent.fail_run($stranger, null, null, null, 'x', 'y')") ], [],
        'another worker cannot end the run';
    is_deeply [ $play->session->query("select * from agent.fail_run($other, null, null, null, 'x', 'y')") ],
        [ [ $run, $thread, 'error' ] ];
    is_deeply $play->body('get_run', $thread, $run)->{error}, { error => 'x', message => 'y' };
    is_deeply $play->messages($thread), ['kept'], 'the checkpoints of the run are kept';
};

subtest 'two workers never claim the same run' => sub {
    my @runs = map { $play->run($play->thread) } 1 .. 4;
    my $other = $db->session;
    $other->query('begin');
    my @first = $other->query("select run_id from agent.claim_runs($worker, '{00000000-0000-0000-0000-000000000001}', '{agent}', '{0}', '{1}', '{2}', '{16}', 50, 1000000)");
    my @second = $play->claim($play->worker, limit => 4);
    $other->query('commit');
    is_deeply [ map { $_->[0] } @first ], [ @runs[0, 1] ];
    is_deeply [ map { $_->{run_id} } @second ], [ @runs[2, 3] ], 'neither claim waits for the other';
};

subtest 'the reported length of a start message is that of its state' => sub {
    my $other = $play->worker;
    my $thread = $play->thread;
    # The checkpoints of a thread, small ones and a large one in between.
    my %id = map { $_ => AgentSQL::uuid() } my @sizes = (10, 20_000, 3000);
    for my $size (@sizes) {
        $play->run($thread);
        my ($claim) = $play->claim($other);
        $play->save($other, AgentSQL::Play::checkpoint($claim, id => $id{$size}, messages => [ 'x' x $size ]),
            AgentSQL::Play::finish($claim));
    }
    my $agree = sub {
        my ($size, $why) = @_;
        my ($bare) = $play->claim($other, max_bytes => 0);
        is $bare->{start}, undef, "$why: a claim that composes nothing";
        cmp_ok abs($bare->{state_bytes} - $size), '<', 200, "$why: the length of the state is reported";
        $play->release($other, 'false', $bare);
        my ($claim) = $play->claim($other);
        my $start = AgentSQL::decode($claim->{start});
        is length $play->start_values($claim)->{messages}[0]{content}, $size, "$why: the run starts from it";
        cmp_ok abs($claim->{start_bytes} - length $claim->{start}), '<', 1500, "$why: the length of the line is reported";
        cmp_ok abs($claim->{state_bytes} - $size), '<', 200, "$why: the length of the state is reported";
        is $start->{checkpoint}{bytes}, $claim->{state_bytes}, "$why: the line has it";
        return $claim;
    };
    $play->run($thread);
    my $claim = $agree->(3000, 'the head');
    $play->save($other, AgentSQL::Play::finish($claim));
    $play->run($thread, request => { checkpoint => { checkpoint_id => $id{20_000} } });
    $claim = $agree->(20_000, 'the requested checkpoint');
    $play->save($other, AgentSQL::Play::checkpoint($claim, messages => [ 'x' x 7000 ]));
    $play->release($other, 'false', $claim);
    $claim = $agree->(7000, 'the last checkpoint of the previous attempt');
    $play->save($other, AgentSQL::Play::finish($claim));
};

subtest 'a first attempt starts with the input, epoch 1, attempt 1 and events from 0' => sub {
    my $thread = $play->thread;
    $play->run($thread, request => { input => 'x' });
    my ($claim) = $play->claim($worker);
    is $claim->{epoch}, 1;
    is $claim->{attempt}, 1;
    is $claim->{last_event_seq}, -1;
    is AgentSQL::decode($claim->{start})->{input}, 'x';
    ok !AgentSQL::decode($claim->{start})->{stream_subgraphs};
    is AgentSQL::decode($claim->{start})->{durability}, undef;
    $play->finish_all($worker);
};

subtest 'the start message has the stream modes and the durability of the request' => sub {
    $play->run($play->thread, request => { stream_mode => [ 'updates', 'custom' ], stream_subgraphs => \1, durability => 'exit' });
    my ($claim) = $play->claim($worker);
    my $start = AgentSQL::decode($claim->{start});
    is_deeply $start->{stream_modes}, [ 'updates', 'custom' ];
    ok $start->{stream_subgraphs};
    is $start->{durability}, 'exit';
    $play->finish_all($worker);
};

subtest 'a resume is strict until the run has written to the checkpoint from which it starts' => sub {
    my $thread = $play->thread;
    $play->run($thread, request => { input => 'x' });
    my ($first) = $play->claim($worker);
    ok !AgentSQL::decode($first->{start})->{strict_resume}, 'a resume is not strict by itself';
    my $head = AgentSQL::uuid();
    my %stops = (id => $head, messages => []);
    $play->save($worker, AgentSQL::Play::put($first, id => $head), AgentSQL::Play::checkpoint($first, %stops),
        AgentSQL::Play::put_writes($first, id => $head, writes => [ [ -3, '__interrupt__', undef ] ]), AgentSQL::Play::finish($first));
    my $run = $play->run($thread, request => { command => { resume => 1 }, strict_resume => \1 });
    my ($claim) = $play->claim($worker);
    ok AgentSQL::decode($claim->{start})->{strict_resume}, 'the first attempt';
    $play->release($worker, 'true', $claim);
    ($claim) = $play->claim($worker);
    ok AgentSQL::decode($claim->{start})->{strict_resume}, 'an attempt after one that has written nothing';
    ok !AgentSQL::decode($claim->{start})->{answered}, 'its answer was not used';
    $play->save($worker, AgentSQL::Play::put_writes($claim, id => $head, writes => [ [ -4, '__resume__', undef ] ]));
    $play->session->query("update agent.run_queue set attempts = 1");
    $play->release($worker, 'true', $claim);
    ($claim) = $play->claim($worker);
    is $claim->{run_id}, $run;
    my $start = AgentSQL::decode($claim->{start});
    is_deeply [ $start->{command}{resume}, $start->{strict_resume} ? 1 : 0 ], [ 1, 0 ], 'an attempt after one that has written';
    ok $start->{answered}, 'an attempt after one in which a task has stored its answers';
    $play->finish_all($worker);
};

subtest 'an answer that an earlier run has left may have been used too' => sub {
    for my $write ([ -4, '__resume__', undef ], [ -3, '__interrupt__', undef ]) {
        my $thread = $play->thread;
        $play->run($thread, request => { input => 'x' });
        my ($claim) = $play->claim($worker);
        my $head = AgentSQL::uuid();
        $play->save($worker, AgentSQL::Play::put($claim, id => $head), AgentSQL::Play::checkpoint($claim, id => $head, messages => []),
            AgentSQL::Play::finish($claim));
        $play->run($thread, request => { input => undef });
        ($claim) = $play->claim($worker);
        $play->save($worker, AgentSQL::Play::put_writes($claim, id => $head, writes => [$write]));
        $play->release($worker, 'true', $claim);
        ($claim) = $play->claim($worker);
        ok AgentSQL::decode($claim->{start})->{answered}, "an attempt of a run without a command, after one that has stored $write->[1]";
        $play->finish_all($worker);
    }
};

subtest 'with durability exit a subgraph may have used an answer when it has stored its checkpoint only' => sub {
    for my $case ([ 'exit', 'below:1', 1 ], [ 'exit', '', 0 ], [ 'async', 'below:1', 0 ], [ undef, 'below:1', 0 ]) {
        my ($durability, $ns, $answered) = @{$case};
        my $thread = $play->thread;
        $play->run($thread, request => { input => 'x' });
        my ($claim) = $play->claim($worker);
        my $head = AgentSQL::uuid();
        $play->save($worker, AgentSQL::Play::put($claim, id => $head), AgentSQL::Play::checkpoint($claim, id => $head, messages => []),
            AgentSQL::Play::put($claim, id => AgentSQL::uuid(), ns => 'below:1'), AgentSQL::Play::finish($claim));
        $play->run($thread, request => { command => { resume => 1 }, durability => $durability });
        ($claim) = $play->claim($worker);
        $play->save($worker, AgentSQL::Play::put($claim, id => AgentSQL::uuid(), ns => $ns));
        $play->release($worker, 'true', $claim);
        ($claim) = $play->claim($worker);
        is AgentSQL::decode($claim->{start})->{answered} ? 1 : 0, $answered,
            'durability ' . ($durability // 'null') . ', a checkpoint of ' . ($ns || 'the root graph');
        $play->finish_all($worker);
    }
};

subtest 'a resume is not strict after a task of a subgraph has stored its answers' => sub {
    my $thread = $play->thread;
    $play->run($thread, request => { input => 'x' });
    my ($first) = $play->claim($worker);
    my ($head, $below) = (AgentSQL::uuid(), AgentSQL::uuid());
    $play->save($worker, AgentSQL::Play::put($first, id => $head), AgentSQL::Play::checkpoint($first, id => $head, messages => []),
        AgentSQL::Play::put($first, id => $below, ns => 'inner:task'), AgentSQL::Play::finish($first));
    $play->run($thread, request => { command => { resume => 1 }, strict_resume => \1 });
    my ($claim) = $play->claim($worker);
    $play->save($worker, AgentSQL::Play::put_writes($claim, id => $below, ns => 'inner:task', writes => [ [ -4, '__resume__', undef ] ]));
    $play->release($worker, 'true', $claim);
    ($claim) = $play->claim($worker);
    ok !AgentSQL::decode($claim->{start})->{strict_resume};
    $play->finish_all($worker);
};

subtest 'a retry continues from the last checkpoint of the run, without the input, and continues the numbers of events' => sub {
    my $thread = $play->thread;
    my $run = $play->run($thread, request => { input => 'x', command => { resume => 1 } });
    my ($claim) = $play->claim($worker);
    my $id = AgentSQL::uuid();
    $play->save($worker,
        AgentSQL::Play::event($claim, 0, 'metadata', {}),
        AgentSQL::Play::event($claim, 1, 'custom', 1),
        AgentSQL::Play::checkpoint($claim, id => $id, messages => ['x'], next => ['agent'], step => 0, format => 'python'));
    my $again = steal($claim, $worker, $worker);
    is $again->{epoch}, 2;
    is $again->{last_event_seq}, 1;
    my $start = AgentSQL::decode($again->{start});
    is $start->{input}, undef;
    is $start->{command}, undef;
    cmp_ok delete $start->{checkpoint}{bytes}, '>', 10;
    is_deeply $start->{checkpoint}, { checkpoint_id => $id, run_id => $run, source => 'loop', step => 0, next => ['agent'], format => 'python' };
    is_deeply $play->start_values($again), { messages => [ AgentSQL::Play::human('x') ] };
    $play->finish_all($worker);
};

subtest 'a retry of a run with only its input checkpoint has the input again' => sub {
    my $run = $play->run($play->thread, request => { input => 'x' });
    my ($claim) = $play->claim($worker);
    $play->save($worker, AgentSQL::Play::checkpoint($claim, next => ['__start__'], step => -1));
    my $start = AgentSQL::decode(steal($claim, $worker, $worker)->{start});
    is $start->{input}, 'x';
    is_deeply $start->{checkpoint}{next}, ['__start__'];
    is $start->{checkpoint}{run_id}, $run;
    $play->finish_all($worker);
};

subtest 'a retry of a run without a checkpoint has the input again' => sub {
    my $run = $play->run($play->thread, request => { input => 'x' });
    my ($claim) = $play->claim($worker);
    is AgentSQL::decode(steal($claim, $worker, $worker)->{start})->{input}, 'x';
};

subtest 'writes of a worker that lost its lease are not stored' => sub {
    my $thread = $play->thread;
    my $run = $play->run($thread);
    my ($claim) = $play->claim($worker);
    my $new = $play->worker;
    my $stolen = steal($claim, $worker, $new);
    my $late = $play->save($worker,
        AgentSQL::Play::event($claim, 0, 'custom', 'late'),
        AgentSQL::Play::checkpoint($claim, messages => ['late']),
        AgentSQL::Play::finish($claim, 'error', { error => 'late', message => 'late' }));
    is_deeply $late, { $run => [ 'fenced', 'f' ] };
    is_deeply [ $play->events($thread, $run) ], [];
    is_deeply $play->messages($thread), [];
    is $play->status($thread, $run), 'pending';
    is_deeply $play->check($worker, $claim), { $run => 'lost' };
    is_deeply $play->release($worker, 'true', $claim), { $run => 'gone' }, 'a worker that lost its lease cannot release the run';
    is_deeply $play->save($new, AgentSQL::Play::finish($stolen)), { $run => [ 'saved', 't' ] };
    is $play->status($thread, $run), 'success';
};

subtest 'the same worker with an old epoch is fenced as well' => sub {
    my $thread = $play->thread;
    my $run = $play->run($thread);
    my ($claim) = $play->claim($worker);
    my $again = steal($claim, $worker, $worker);
    is_deeply $play->save($worker,
        AgentSQL::Play::event($claim, 0, 'custom', 'late'),
        AgentSQL::Play::finish($claim)), { $run => [ 'fenced', 'f' ] };
    is_deeply [ $play->events($thread, $run) ], [];
    is $play->status($thread, $run), 'pending';
    is_deeply $play->save($worker, AgentSQL::Play::finish($again)), { $run => [ 'saved', 't' ] };
};

subtest 'a fenced run in a batch does not prevent the others from being saved' => sub {
    my @runs = map { $play->run($play->thread) } 1 .. 3;
    my %claim = map { $_->{run_id} => $_ } $play->claim($worker);
    steal($claim{ $runs[1] }, $worker, $play->worker);
    is_deeply $play->save($worker, map { AgentSQL::Play::finish($claim{$_}) } @runs),
        { $runs[0] => [ 'saved', 't' ], $runs[1] => [ 'fenced', 'f' ], $runs[2] => [ 'saved', 't' ] };
};

subtest 'a worker is fenced from a run that ended when its lease was released' => sub {
    my $thread = $play->thread;
    my $run = $play->run($thread);
    my ($claim) = $play->claim($worker);
    $play->api('cancel_run', $thread, $run, 'interrupt');
    is_deeply $play->release($worker, 'true', $claim), { $run => 'interrupted' };
    is_deeply $play->save($worker, AgentSQL::Play::finish($claim)), { $run => [ 'fenced', 'f' ] },
        'an end of a run that is already final is fenced';
    is $play->status($thread, $run), 'interrupted';
};

subtest 'a batch waits for a concurrent release of its lease' => sub {
    my $run = $play->run($play->thread);
    my ($claim) = $play->claim($worker);
    my @sessions = map { $db->session } 1, 2;
    my $item = AgentSQL::encode([ AgentSQL::Play::item($claim) ]);
    my $event = AgentSQL::encode([ AgentSQL::Play::event($claim, 0, 'custom', 1) ]);
    $sessions[0]->query('begin');
    $sessions[0]->query("select * from agent.release_runs($worker, '$item', false, 'x', null)");
    $sessions[1]->send("select outcome from public.save_items($worker, '$event')");
    ok $sessions[1]->waits_for($sessions[0]), 'the batch waits';
    $sessions[0]->query('commit');
    is $sessions[1]->receive, 'fenced', 'the lease is checked after the wait';
    $play->finish_all($worker);
};

subtest 'a run whose runner died is ready again at once, after its second loss in 5 seconds, then in 25, +-20 %' => sub {
    my $session = $play->session;
    my $thread = $play->thread;
    my $run = $play->run($thread);
    $session->query("update agent.run_queue set max_attempts = 9 where run_id = '$run'");
    $session->query("set agent.now = '2030-01-01T00:00:00Z'");
    for my $delay (0, 5, 25, 25) {
        my ($claim) = $play->claim($worker);
        my $before = $play->queue($run)->{ready_seq};
        is_deeply $play->release($worker, 'true', $claim), { $run => 'requeued' };
        cmp_ok $play->queue($run)->{ready_seq}, '>', $before, 'a released run gets a new number';
        is $play->status($thread, $run), 'pending';
        my $waits = $session->value(
            "select extract(epoch from not_before - agent.now()) from agent.run_queue where run_id = '$run'");
        if (!$delay) {
            is $waits, undef, 'at once';
            next;
        }
        ok $waits > $delay * 0.79 && $waits < $delay * 1.21, "about $delay s";
        is_deeply [ $play->claim($worker) ], [], 'a released run cannot be claimed before its delay';
        $session->query("update agent.run_queue set not_before = agent.now() where run_id = '$run'");
    }
    $play->finish_all($worker);
    $session->query('reset agent.now');
};

subtest 'a run that lost three runners ends in error with a message' => sub {
    my $thread = $play->thread;
    my $run = $play->run($thread);
    my $next = $play->run($thread);
    for my $outcome (qw(requeued requeued error)) {
        $play->session->query("update agent.run_queue set not_before = null where run_id = '$run'");
        my ($claim) = $play->claim($worker);
        is_deeply $play->release($worker, 'true', $claim), { $run => $outcome };
    }
    my $record = $play->body('get_run', $thread, $run);
    is $record->{status}, 'error';
    is_deeply $record->{error}, {
        error => 'RunGivenUpError',
        message => 'The run was given up after 3 attempts; at the last one its runner was killed.',
    };
    is $play->queue($next)->{state}, 'ready', 'the next run of the thread is ready';
    $play->finish_all($worker);
};

subtest 'an uncounted release makes the run ready at once, any number of times' => sub {
    my $run = $play->run($play->thread);
    for my $n (1 .. 5) {
        my ($claim) = $play->claim($worker);
        is $claim->{attempt}, 1;
        is $claim->{epoch}, $n;
        $play->release($worker, 'false', $claim);
    }
    $play->finish_all($worker);
};

subtest 'check_leases returns no row for a run that continues' => sub {
    $play->run($play->thread);
    my ($claim) = $play->claim($worker);
    is_deeply $play->check($worker, $claim), {};
    $play->finish_all($worker);
};

subtest 'check_leases returns leases that the worker does not name, if it asks for them' => sub {
    my $worker = $play->worker(node => 'unknown');
    my @claims = map { $play->leased($worker, $play->thread) } 1 .. 3;
    is_deeply $play->check($worker, @claims[ 0, 1 ]), {}, 'it does not';
    is_deeply [ $play->unknown($worker, @claims) ], [], 'it names all';
    is_deeply [ map { $_->{run_id} } $play->unknown($worker, @claims[ 0, 2 ]) ], [ $claims[1]{run_id} ];
    my ($unknown) = $play->unknown($worker, @claims[ 0, 2 ], { %{ $claims[1] }, epoch => 2 });
    is $unknown->{epoch}, 1, 'the worker names another epoch of the run';
    $play->release($worker, 'false', $unknown);
    is_deeply [ $play->unknown($worker, @claims[ 0, 2 ]) ], [], 'a run that was given back is not leased';
    $play->save($worker, map { AgentSQL::Play::finish($_) } @claims[ 0, 2 ]);
    $play->finish_all($worker);
};

# The items of a batch with this number.
sub numbered {
    my ($number, @items) = @_;
    return map { { %{$_}, b => $number } } @items;
}

sub event_seqs {
    my ($run) = @_;
    return map { $_->[0] } $play->session->query("select seq from agent.run_events where run_id = '$run' order by seq");
}

# A failover to a standby that did not have the last batches leaves a number, and what the batches before had.
sub undo_to {
    my ($claim, $number) = @_;
    return $play->session->query("update agent.run_queue set batch_no = $number where run_id = '$claim->{run_id}' returning 1");
}

sub stored {
    my ($claim) = @_;
    my ($run, $thread) = @{$claim}{qw(run_id thread_id)};
    return join ' ', map { scalar $play->session->value("select count(*) from agent.$_") } "run_events where run_id = '$run'",
        map { "$_ where thread_id = '$thread'" } qw(checkpoints checkpoint_snapshots checkpoint_blobs checkpoint_tasks);
}

# One item or more of each kind.
sub items_of {
    my ($claim, $seq) = @_;
    my $id = AgentSQL::uuid();
    my ($digest, $blob) = AgentSQL::Play::blob($claim, qq("$id"));
    return (
        event => [ AgentSQL::Play::event($claim, $seq, 'custom', 1) ],
        checkpoint => [ AgentSQL::Play::checkpoint($claim, id => $id, messages => ['new']) ],
        record => [ $blob, AgentSQL::Play::put($claim, id => $id, channels => { messages => $digest }) ],
        task => [ AgentSQL::Play::task($claim, $id, { id => 'x', name => 'y' }) ],
        end => [ AgentSQL::Play::finish($claim) ],
    );
}

# After that event.
sub after {
    my ($seq, @items) = @_;
    return map { { %{$_}, v => $seq } } @items;
}

sub task_of {
    my ($claim, $id) = @_;
    return AgentSQL::Play::task($claim, $claim->{run_id}, { id => $id, name => 'y' });
}

subtest 'a batch with more than events is saved if the one before it is stored, or this one is' => sub {
    my $saved = sub { my ($claim, $number) = @_;
        my ($outcome) = values %{ $play->save($worker, numbered($number, task_of($claim, $number))) };
        return $outcome->[0] };
    my $claim = $play->leased($worker, $play->thread);
    is $play->queue($claim->{run_id})->{batch_no}, 0, 'a claim begins with 0';
    is $saved->($claim, $_), 'saved', "batch $_" for 1 .. 3;
    is $play->queue($claim->{run_id})->{batch_no}, 3;
    is $saved->($claim, $_), 'fenced', "batch $_ after batch 3 is not saved" for 0 .. 2, 5, 6, 2_147_483_647;
    is stored($claim), '0 0 0 0 3';
    is $play->queue($claim->{run_id})->{batch_no}, 3, 'a batch that is not saved does not change the number';
    is $saved->($claim, $_), 'saved', "batch $_ after batch 3 is saved" for 3, 4;
    $play->release($worker, 'false', $claim);
    my ($again) = $play->claim($worker);
    is_deeply [ @{ $play->queue($claim->{run_id}) }{qw(epoch batch_no)} ], [ 2, 0 ], 'the next claim begins with 0 again';
    $play->save($worker, AgentSQL::Play::finish($again));
};

subtest 'a batch of events alone changes no queue row, and is saved if the event before it is stored' => sub {
    my $claim = $play->leased($worker, $play->thread);
    my $version = sub { $play->session->value("select concat_ws(' ', ctid, xmin, batch_no) from agent.run_queue where run_id = '$claim->{run_id}'") };
    my $saved = sub { my ($number, @seqs) = @_;
        my ($outcome) = values %{ $play->save($worker, numbered($number, map { AgentSQL::Play::event($claim, $_, 'custom', 1) } @seqs)) };
        return $outcome->[0] };
    my $before = $version->();
    is $saved->(1, @{$_}), 'saved', "events @{$_}" for [ 0, 1 ], [2], [2], [ 1, 2, 3 ];
    is $saved->(1, @{$_}), 'fenced', "events @{$_} after event 3 are not saved" for [5], [ 9, 10 ];
    is $saved->(2, 4), 'fenced', 'event 4 after a batch that is not stored is not saved';
    is $version->(), $before;
    is_deeply [ event_seqs($claim->{run_id}) ], [ 0 .. 3 ];
    is_deeply [ values %{ $play->save($worker, numbered(1, after($_->[0], task_of($claim, 'x')))) } ], [ [ $_->[1], 'f' ] ],
        "a batch with more, after event $_->[0]" for [ 4, 'fenced' ], [ 3, 'saved' ];
    is $play->queue($claim->{run_id})->{batch_no}, 1;
    is $saved->($_, 4), 'saved', "event 4, with number $_" for 1, 2;
    is $saved->(3, 5), 'fenced', 'event 5 after a batch that is not stored';
    is_deeply $play->save($worker, numbered(2, after($_->[0], AgentSQL::Play::finish($claim)))), { $claim->{run_id} => $_->[1] },
        "the end, after event $_->[0]" for [ 5, [ 'fenced', 'f' ] ], [ 4, [ 'saved', 't' ] ], [ 4, [ 'saved', 't' ] ];
};

for my $kind (qw(event checkpoint record task)) {
    subtest "a batch with $kind was undone: nothing that follows is saved, and the run is executed again, uncounted" => sub {
        my $worker = $play->worker(node => "undone-$kind");
        my $claim = $play->leased($worker, $play->thread);
        my $run = $claim->{run_id};
        my %items = items_of($claim, 1);
        my ($number, $seq) = $kind eq 'event' ? (1, 1) : (2, 0);
        $play->save($worker, numbered(1, AgentSQL::Play::event($claim, 0, 'custom', 1)));
        my $before = stored($claim);
        $play->session->query('begin');
        $play->save($worker, numbered(1, after(0, @{ $items{$kind} })));
        isnt stored($claim), $before, 'it was saved';
        $play->session->query('rollback');
        for my $next (sort keys %items) {
            my %others = items_of($claim, $seq + 1);
            is_deeply $play->save($worker, numbered($number, after($seq, @{ $others{$next} }))), { $run => [ 'fenced', 'f' ] }, "$next after it";
        }
        is stored($claim), $before;
        is_deeply [ map { $_->{run_id} } $play->unknown($worker) ], [$run], 'the worker learns of the lease';
        $play->release($worker, 'false', $claim);
        my ($again) = $play->claim($worker);
        is_deeply [ @{$again}{qw(run_id epoch attempt last_event_seq)} ], [ $run, 2, 1, 0 ];
        is_deeply $play->save($worker, numbered(1, AgentSQL::Play::finish($again))), { $run => [ 'saved', 't' ] };
    };
}

subtest 'of a batch of several runs only those are skipped whose batch before was undone' => sub {
    my @claims = map { $play->leased($worker, $play->thread) } 1 .. 4;
    $play->save($worker, map { numbered(1, AgentSQL::Play::event($_, 0, 'custom', 1), task_of($_, 'x')) } @claims);
    undo_to($claims[1], 0);
    $play->session->query("delete from agent.run_events where run_id = '$claims[3]{run_id}' returning 1");
    my @before = map { stored($_) } @claims;
    my @items = map { my %items = items_of($_, 1); numbered(2, map { @{ $items{$_} } } qw(event checkpoint record task end)) } @claims;
    is_deeply $play->save($worker, @items),
        { map { $claims[$_]{run_id} => $_ % 2 ? [ 'fenced', 'f' ] : [ 'saved', 't' ] } 0 .. 3 };
    is_deeply [ map { stored($_) } @claims[ 1, 3 ] ], [ @before[ 1, 3 ] ], 'nothing of these is saved';
    is_deeply [ map { stored($_) } @claims[ 0, 2 ] ], [ ('2 1 1 1 2') x 2 ], 'all of the others is';
    is_deeply $play->save($worker, @items),
        { map { $claims[$_]{run_id} => $_ % 2 ? [ 'fenced', 'f' ] : [ 'saved', 't' ] } 0 .. 3 }, 'the batch can be repeated';
    $play->release($worker, 'false', @claims[ 1, 3 ]);
    $play->finish_all($worker);
};

subtest 'a batch that is repeated in other parts adds what is missing' => sub {
    my $claim = $play->leased($worker, $play->thread);
    my $saved = { $claim->{run_id} => [ 'saved', 'f' ] };
    my @events = map { AgentSQL::Play::event($claim, $_, 'custom', $_) } 0 .. 5;
    my @checkpoints = map { AgentSQL::Play::checkpoint($claim, id => AgentSQL::uuid(), parent => undef, messages => ['new']) } 1;
    is_deeply $play->save($worker, numbered($_->[0], @{$_->[1]})), $saved
        for [ 1, [ @events[ 0, 1 ] ] ], [ 1, [ $events[0] ] ], [ 1, [ @events[ 1 .. 3 ] ] ],
        [ 1, [ $events[4], @checkpoints, $events[5] ] ], [ 1, [ $events[4] ] ], [ 1, [ after(4, @checkpoints) ] ], [ 2, [ $events[5] ] ];
    is_deeply [ event_seqs($claim->{run_id}) ], [ 0 .. 5 ];
    is_deeply $play->save($worker, numbered(2, after(5, AgentSQL::Play::finish($claim)))), { $claim->{run_id} => [ 'saved', 't' ] } for 1, 2;
};

subtest 'a batch waits for one of the same run on another connection, and follows it' => sub {
    my $claim = $play->leased($worker, $play->thread);
    my @sessions = map { $db->session } 1, 2;
    my %item = (task => sub { numbered($_[0], task_of($claim, $_[0])) },
        event => sub { numbered(5, AgentSQL::Play::event($claim, $_[0], 'custom', 1)) });
    my $statement = sub { "select outcome from public.save_items($worker, '" . AgentSQL::encode([ $item{ $_[0] }->($_[1]) ]) . "')" };
    for my $case ([ task => 1, 1, 'saved' ], [ task => 2, 3, 'saved' ], [ task => 4, 6, 'fenced' ], [ task => 4, 2, 'fenced' ],
        [ event => 0, 1, 'saved' ], [ event => 2, 4, 'fenced' ]) {
        my ($kind, $first, $second, $outcome) = @{$case};
        $sessions[0]->query('begin');
        $sessions[0]->query($statement->($kind, $first));
        $sessions[1]->send($statement->($kind, $second));
        ok $sessions[1]->waits_for($sessions[0]), "$kind $second waits for $kind $first";
        $sessions[0]->query('commit');
        is $sessions[1]->receive, $outcome, "$kind $second after $kind $first";
    }
    is stored($claim), '3 0 0 0 4';
    $play->save($worker, AgentSQL::Play::finish($claim));
};

# Answers are lost, batches are sent again in smaller parts, and failovers undo some.
subtest 'random failovers leave no gap' => sub {
    srand($ENV{AGENT_SEED} // 11);
    my ($repeats, $returns) = (0, 0);
    for my $round (1 .. 30) {
        my $claim = $play->leased($worker, $play->thread);
        my $session = $play->session;
        my @ids = map { AgentSQL::uuid() } 0 .. 11;
        my @queue = map { my $n = $_;
            (AgentSQL::Play::event($claim, $n, 'custom', 1),
                AgentSQL::Play::checkpoint($claim, id => $ids[$n], parent => $n ? $ids[ $n - 1 ] : undef, messages => [$n])) } 0 .. $#ids;
        my ($confirmed, $seq, $most) = (0, -1, 0);
        while (@queue) {
            my $size = 1 + int rand($most || (@queue < 4 ? @queue : 4));
            my @batch = @queue[ 0 .. $size - 1 ];
            my $has_event = $seq < 0 || grep { $_ == $seq } event_seqs($claim->{run_id});
            my $before = $play->queue($claim->{run_id})->{batch_no};
            my ($is_lost, $is_undone) = (rand() < 0.3, rand() < 0.1);
            $session->query('begin');
            my ($outcome) = values %{ $play->save($worker, numbered($confirmed + 1, $seq < 0 ? @batch : after($seq, @batch))) };
            $session->query($is_undone ? 'rollback' : 'commit');
            is $outcome->[0], $has_event && ($before == $confirmed || $before == $confirmed + 1) ? 'saved' : 'fenced', "round $round";
            $returns += $outcome->[0] eq 'fenced';
            last if $outcome->[0] eq 'fenced';
            $repeats += $is_lost;
            $most = $is_lost ? $size : 0;
            next if $is_lost;
            $confirmed++ if grep { $_->{type} ne 'event' } @batch;
            $seq += grep { $_->{type} eq 'event' } @batch;
            splice @queue, 0, $size;
        }
        my @seqs = event_seqs($claim->{run_id});
        is_deeply \@seqs, [ 0 .. $#seqs ], 'no event is missing';
        my $steps = $session->value("select count(*) from agent.checkpoints where thread_id = '$claim->{thread_id}'");
        is scalar(grep { $_ == @seqs - $steps } 0, 1), 1, 'no checkpoint is missing';
        $play->release($worker, 'false', $claim);
        $play->finish_all($worker);
    }
    cmp_ok $repeats * $returns, '>', 0, "$repeats batches were repeated, $returns runs were given back";
};

subtest 'a claim is on the disk when it is committed, so that no crash of the database undoes it' => sub {
    my $session = $play->session;
    $play->run($play->thread);
    $session->query('begin');
    my @claims = $play->claim($worker);
    is @claims, 1;
    my $claimed = $session->value('select pg_current_wal_insert_lsn()');
    $session->query('commit');
    is $session->value("select pg_current_wal_flush_lsn() > '$claimed'"), 't';
    $play->finish_all($worker);
};

done_testing;
