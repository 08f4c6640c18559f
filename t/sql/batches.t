# SPDX-License-Identifier: Apache-2.0
# Batches: events, checkpoints, ends; repetition; content addressing.
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

sub leased { return $play->leased($worker, @_) }

subtest 'events come back in order, after a cursor, as the exact text of the runner' => sub {
    my $claim = leased($play->thread);
    my ($thread, $run) = @$claim{qw(thread_id run_id)};
    my $data = '{"b" : 1.10,  "a":[ ]}';
    my $item = qq({"d":"$AgentSQL::DEPLOYMENT","r":"$run","e":1,"s":%d,"type":"event","event":"%s","data":%s});
    $session->query("select * from public.save_items($worker, '["
            . join(',', sprintf($item, 0, 'metadata', '{}'), sprintf($item, 1, 'custom', $data), sprintf($item, 2, 'custom', 'null'))
            . "]')");
    is_deeply [ $play->events($thread, $run) ], [ [ 0, 'metadata', '{}' ], [ 1, 'custom', $data ], [ 2, 'custom', 'null' ] ];
    my $string = '"\\u0041\\/ \\\\ \\n"';
    $session->query("select * from public.save_items($worker, '[" . sprintf($item, 3, 'custom', $string) . "]')");
    is_deeply [ $play->events($thread, $run, 2) ], [ [ 3, 'custom', $string ] ], 'a string with escapes';
    is_deeply [ map { $_->[0] } $play->events($thread, $run, 0) ], [ 1 .. 3 ];
    is_deeply [ $play->events($thread, $run, 3) ], [];
    is_deeply [ map { $_->[0] } $session->query(
        "select * from agent.read_events('$AgentSQL::DEPLOYMENT', '$thread', '$run', -1, 2)") ], [ 0, 1 ], 'limited';
};

subtest 'the time of a batch is that of its execution' => sub {
    my ($row) = $session->query("select agent.elapsed_usec(t, '0'), agent.elapsed_usec(t, '1 s')
        from (select clock_timestamp() as t offset 0) x cross join lateral pg_sleep(0.01)");
    cmp_ok $row->[0], '>=', 10_000, 'in microseconds';
    cmp_ok $row->[1], '<', $row->[0] - 900_000, 'without the time of its locks';
};

# A pipeline begins it with the statement before: then the parameters are sent.
subtest 'the time of a batch does not depend on the age of its transaction' => sub {
    my $claim = leased($play->thread);
    my $item = qq({"d":"$AgentSQL::DEPLOYMENT","r":"$claim->{run_id}","e":1,"s":0,"type":"event","event":"custom","data":1});
    my ($row) = $session->query("begin; select pg_sleep(0.1);
        select s.elapsed_usec, 1000000 * extract(epoch from clock_timestamp() - b.started)
          from (select clock_timestamp() as started, x from public.make_batch('[$item]') x offset 0) b
         cross join lateral public.save_columns($worker, b.x) s; commit");
    cmp_ok $row->[0], '>', 0, 'in microseconds';
    cmp_ok $row->[0], '<', $row->[1], 'it is less than the time that passed';
    $play->save($worker, AgentSQL::Play::finish($claim));
};

subtest 'members of the runner cannot override those of the supervisor, which come last' => sub {
    my ($claim, $other) = map { leased($play->thread) } 1, 2;
    my $id = AgentSQL::uuid();
    my $hostile = qq("d":["x",{"r":1}],"r":"$other->{run_id}","e":7);
    my $message = qq("type":"put_writes","ns":"","checkpoint_id":"$id","task_id":"t","task_path":"","writes":[]);
    my $ours = qq("d":"$AgentSQL::DEPLOYMENT","r":"$claim->{run_id}","e":1);
    my ($record) = $session->query("select (r).run_id, (r).epoch from unnest(agent.parse_records('[{$hostile,$message,$ours}]')) r");
    is_deeply $record, [ $claim->{run_id}, 1 ];
    my ($task) = $session->query("select (t).run_id, (t).epoch from unnest(agent.parse_task_reports(
        '[{$hostile,\"type\":\"task\",\"checkpoint_id\":\"$id\",\"task\":{\"id\":\"t\"},$ours}]')) t");
    is_deeply $task, [ $claim->{run_id}, 1 ];
    $play->save($worker, map { AgentSQL::Play::finish($_) } $claim, $other);
};

subtest 'a batch tells whether a run that waited for one of its is ready' => sub {
    for my $end ({}, { cancel => 'rollback' }) {
        my $claim = leased($play->thread);
        my $other = leased($play->thread);
        my $next = $play->run($claim->{thread_id}, strategy => 'enqueue');
        if ($end->{cancel}) {
            $session->query("update agent.run_queue set cancel = 'rollback' where run_id = '$claim->{run_id}'");
        }
        my $save = sub {
            my $items = AgentSQL::encode([ map { AgentSQL::Play::finish($_) } @_ ]);
            return sort map { $_->[3] } $session->query("select * from public.save_items($worker, '$items')");
        };
        is_deeply [ $save->($other) ], ['f'], 'nothing waits for the run';
        is_deeply [ $save->($claim) ], ['t'], 'the next run of the thread is ready';
        my ($last) = $play->claim($worker);
        is $last->{run_id}, $next, 'the next run of the thread is claimed';
        is_deeply [ $save->($last) ], ['f'], 'none is left';
    }
};

subtest 'a values event shows the values of its checkpoint and does not store them again' => sub {
    my $claim = leased($play->thread);
    my $id = AgentSQL::uuid();
    $play->save($worker,
        AgentSQL::Play::checkpoint($claim, id => $id, messages => ['stored once']),
        AgentSQL::Play::values_event($claim, 0, $id));
    my ($event) = $play->events($claim->{thread_id}, $claim->{run_id});
    is $event->[1], 'values';
    is_deeply AgentSQL::decode($event->[2]), { messages => [ AgentSQL::Play::human('stored once') ] };
    is $session->value("select count(*) from agent.run_events where data like '%stored once%'"), 0;
};

subtest 'an event contains the values of its checkpoint where its path leads' => sub {
    my $claim = leased($play->thread);
    my ($id, $empty) = (AgentSQL::uuid(), AgentSQL::uuid());
    my $values = '{"messages":[{"n":1.10,"text":"stored once"},2],"k\"ey":"\\\\1 \u00e9"}';
    my @cases = (
        [ checkpoints => ['values'], '{"config":{"a" : 1},"values":null,"next":[]}', '{"config":{"a" : 1},"values":VALUES,"next":[]}' ],
        [ debug => [qw(payload values)], '{"step":1,"payload":{"a":"\u0001","values":null},"z":1}',
            '{"step":1,"payload":{"a":"\u0001","values":VALUES},"z":1}' ],
        [ values => [], '{"__interrupt__":[],"b":{"values":1}}', '{VALUES,"__interrupt__":[],"b":{"values":1}}' ],
        [ values => [], '{}', 'VALUES' ],
        [ deep => [ 'a' .. 'h' ], '{"a":{"b":{"c":{"d":{"e":{"f":{"g":{"h":1}}}}}}}}', '{"a":{"b":{"c":{"d":{"e":{"f":{"g":{"h":VALUES}}}}}}}}' ]);
    my @items = (AgentSQL::encode(AgentSQL::Play::checkpoint($claim, id => $id, values => {})) =~ s/"values":\{\}/"values":$values/r,
        AgentSQL::encode(AgentSQL::Play::checkpoint($claim, id => $empty, parent => $id, values => {})));
    for my $checkpoint ($id, $empty) {
        for my $case (@cases) {
            my ($name, $path, $data) = @$case;
            my $item = AgentSQL::Play::item($claim, s => @items - 2, type => 'event', event => $name, checkpoint_id => $checkpoint, path => $path);
            push @items, AgentSQL::encode($item) =~ s/\}\z/,"data":$data}/r;
        }
    }
    is_deeply [ $session->query("select * from public.save_items($worker, " . AgentSQL::Session::literal('[' . join(',', @items) . ']') . ')') ],
        [ [ $claim->{run_id}, 'saved', 'f', 'f' ] ];
    my @want = map { my $whole = $_;
        map { [ $_->[0], $_->[3] =~ s/\{VALUES(,?)/$whole eq '{}' ? '{' : substr($whole, 0, -1) . $1/er =~ s/VALUES/$whole/r ] } @cases } $values, '{}';
    is_deeply [ map { [ @$_[ 1, 2 ] ] } $play->events(@$claim{qw(thread_id run_id)}) ], \@want;
    is $session->value("select count(*) from agent.run_events where run_id = '$claim->{run_id}' and data like '%stored once%'"), 0,
        'the values are stored once';
    is $play->body('find_checkpoint_event', @$claim{qw(thread_id run_id)}, $id), 3, 'a stream begins after the event that is the values';
    is_deeply [ $session->query("select seq, event from agent.read_updates(array['$AgentSQL::DEPLOYMENT']::uuid[], array['$claim->{run_id}']::uuid[],
        '{-1}', 2)") ], [ [ 0, '' ], [ 1, '' ], [ 2, '' ] ], 'read_updates leaves them to read_events';
    $session->query("delete from agent.checkpoints where thread_id = '$claim->{thread_id}'");
    is_deeply [ map { $_->[2] } ($play->events(@$claim{qw(thread_id run_id)}))[ 0, 2, 3 ] ],
        [ '{"config":{"a" : 1},"values":null,"next":[]}', $cases[2][2], $cases[4][3] =~ s/VALUES/null/r ],
        'without the checkpoint they are null, and an event that is nothing else is left out';
};

subtest 'an event whose path leads to no member, or to two, ends its run' => sub {
    for my $case ([ ['x'], '{"values":1}' ], [ ['a'], '[1]' ], [ [], '1' ], [ [qw(a b)], '{"a":null}' ], [ ['a'], '{"a":1,"a":2}' ],
        [ [ ('a') x 9 ], '{"a":' x 9 . '1' . '}' x 9 ]) {
        my ($path, $data) = @$case;
        my $claim = leased($play->thread);
        my $item = AgentSQL::encode(AgentSQL::Play::item($claim, s => 0, type => 'event', event => 'x', checkpoint_id => AgentSQL::uuid(), path => $path))
            =~ s/\}\z/,"data":$data}/r;
        is $session->error("select * from public.save_items($worker, '[$item]')"), '22023', $data;
        $play->save($worker, AgentSQL::Play::finish($claim));
    }
};

subtest 'values come back as the exact text of the runner, whatever their type' => sub {
    my $claim = leased($play->thread);
    my $values = '{"messages":[{"b" : 1.10},{"a":1},{"b" : 1.10}],"empty":[],"n":12345678901234567890,'
        . '"o":{"x": [1, 2]},"z":null,"s":"a\u00e9\"","t":true,"l":[[1],null,"x",2.50],"k\"ey":1}';
    my $id = AgentSQL::uuid();
    my $text = AgentSQL::encode([ AgentSQL::Play::checkpoint($claim, id => $id, values => {}) ]);
    $text =~ s/"values":\{\}/"values":$values/;
    $session->query("select * from public.save_items($worker, " . AgentSQL::Session::literal($text) . ')');
    $play->save($worker, AgentSQL::Play::finish($claim));
    is +($play->join($claim->{thread_id}, $claim->{run_id}))[1], $values;
};

subtest 'a checkpoint without values is an empty object' => sub {
    my $claim = leased($play->thread);
    $play->save($worker, AgentSQL::Play::checkpoint($claim, values => {}), AgentSQL::Play::finish($claim));
    is +($play->join($claim->{thread_id}, $claim->{run_id}))[1], '{}';
};

subtest 'a chat of 200 messages over 20 checkpoints stores each message once' => sub {
    my $claim = leased($play->thread);
    my (@messages, $parent);
    for my $step (1 .. 20) {
        push @messages, map { "message $step.$_" } 1 .. 10;
        my $id = AgentSQL::uuid();
        $play->save($worker,
            AgentSQL::Play::checkpoint($claim, id => $id, parent => $parent, messages => \@messages, step => $step));
        $parent = $id;
    }
    is $session->value("select count(*) from agent.checkpoint_items where thread_id = '$claim->{thread_id}'"), 200;
    is_deeply $play->messages($claim->{thread_id}), \@messages, 'all messages are read back in order';
    $play->save($worker, AgentSQL::Play::finish($claim));
};

subtest 'small elements of an array are stored in rows of at most 128 and 2 KB, longer ones alone' => sub {
    my $claim = leased($play->thread);
    my %values = (numbers => [ 1 .. 10_000 ], mixed => [ 'x' x 5000, 1 .. 1000 ], longer => [ map { 'x' x 61 . $_ } 1 .. 3 ]);
    $play->save($worker, AgentSQL::Play::checkpoint($claim, values => \%values), AgentSQL::Play::finish($claim));
    is_deeply [ map { $_->[0] } $session->query(
        "select elements from agent.checkpoint_items where thread_id = '$claim->{thread_id}' order by list_id, position") ],
        [ 1, 1, 1, 1, (128) x 7, 104, (128) x 78, 16 ];
    is $session->value("select max(length(content)) from agent.checkpoint_items where thread_id = '$claim->{thread_id}' and elements > 1"),
        639, 'a row of several elements is short';
    is_deeply AgentSQL::decode(($play->join($claim->{thread_id}, $claim->{run_id}))[1]), \%values, 'all values are read back unchanged';
};

subtest 'two threads with the same message do not share it' => sub {
    my @threads = map { $play->thread } 1, 2;
    for my $thread (@threads) {
        my $claim = leased($thread);
        $play->save($worker, AgentSQL::Play::checkpoint($claim, messages => ['same']), AgentSQL::Play::finish($claim));
    }
    $play->api('delete_thread', $threads[0]);
    is_deeply $play->messages($threads[1]), ['same'];
};

subtest 'the last checkpoint of a batch becomes the state of the thread' => sub {
    my $claim = leased($play->thread);
    my @ids = map { AgentSQL::uuid() } 1 .. 3;
    $play->save($worker, map { AgentSQL::Play::checkpoint($claim, id => $ids[$_], messages => [$_]) } 0 .. 2);
    is $play->body('get_state', $claim->{thread_id}, undef)->{checkpoint_id}, $ids[2];
    is_deeply $play->messages($claim->{thread_id}), [2];
    $play->save($worker, AgentSQL::Play::finish($claim));
};

subtest 'a whole batch can be repeated, before and after the run ended' => sub {
    my $claim = leased($play->thread);
    my ($thread, $run) = @$claim{qw(thread_id run_id)};
    my @ids = map { AgentSQL::uuid() } 1, 2;
    my @first = (
        AgentSQL::Play::event($claim, 0, 'metadata', {}),
        AgentSQL::Play::checkpoint($claim, id => $ids[0], messages => [1]));
    my @second = (
        AgentSQL::Play::checkpoint($claim, id => $ids[1], parent => $ids[0], messages => [ 1, 2 ]),
        AgentSQL::Play::event($claim, 1, 'custom', 1),
        AgentSQL::Play::finish($claim));
    is_deeply $play->save($worker, @first), { $run => [ 'saved', 'f' ] } for 1, 2;
    is_deeply $play->save($worker, @second), { $run => [ 'saved', 't' ] } for 1, 2;
    is_deeply [ map { $_->[0] } $play->events($thread, $run) ], [ 0, 1 ];
    is_deeply $play->messages($thread), [ 1, 2 ];
    is $session->value("select count(*) from agent.checkpoints where thread_id = '$thread'"), 2;
    is $session->value("select count(*) from agent.usage_events where run_id = '$run'"), 1;
    is_deeply $play->save($worker, @first), { $run => [ 'saved', 't' ] }, 'an older batch can be repeated after the end of the run';
    is_deeply $play->messages($thread), [ 1, 2 ], 'an older batch that is repeated does not move the head back';
};

subtest 'a batch of events of which some are stored adds the others' => sub {
    my @claims = map { leased($play->thread) } 1 .. 3;
    my @events = map { my $claim = $_; map { AgentSQL::Play::event($claim, $_, 'custom', $_) } 0 .. 2 } @claims;
    my %saved = map { $_->{run_id} => [ 'saved', 'f' ] } @claims;
    $play->save($worker, @events[ 0, 3 .. 5 ]);
    is_deeply $play->save($worker, @events), \%saved for 1, 2;
    is_deeply [ $play->events(@$_{qw(thread_id run_id)}) ], [ map { [ $_, 'custom', $_ ] } 0 .. 2 ] for @claims;
    $play->save($worker, map { AgentSQL::Play::finish($_) } @claims);
    is_deeply $play->save($worker, @events), { map { $_->{run_id} => [ 'saved', 't' ] } @claims }, 'the batch can be repeated after the end of the runs';
};

subtest 'a batch of events only skips a run whose lease is lost and saves the others' => sub {
    my @claims = map { leased($play->thread) } 1 .. 3;
    $play->release($worker, 'false', $claims[1]);
    my %outcome = map { $claims[$_]{run_id} => [ $_ == 1 ? 'fenced' : 'saved', 'f' ] } 0 .. 2;
    is_deeply $play->save($worker, map { AgentSQL::Play::event($_, 0, 'custom', 1) } @claims), \%outcome;
    is_deeply [ map { scalar $play->events(@$_{qw(thread_id run_id)}) } @claims ], [ 1, 0, 1 ];
    is_deeply $play->save($worker, AgentSQL::Play::event($claims[1], 0, 'custom', 1)),
        { $claims[1]{run_id} => [ 'fenced', 'f' ] }, 'a batch of events without a held lease is fenced';
    $play->save($worker, map { AgentSQL::Play::finish($_) } @claims[ 0, 2 ]);
    $play->save($worker, map { AgentSQL::Play::finish($_) } $play->claim($worker));
};

subtest 'a checkpoint that is sent twice is saved once, in one batch or in two' => sub {
    for my $batches (1, 2) {
        my $claim = leased($play->thread);
        my $thread = $claim->{thread_id};
        my @ids = map { AgentSQL::uuid() } 1 .. 3;
        my ($first, $second, $third) = map {
            AgentSQL::Play::checkpoint($claim, id => $ids[$_], parent => $_ ? $ids[ $_ - 1 ] : undef, messages => [ 1 .. $_ + 1 ])
        } 0 .. 2;
        my @items = ($first, $second, AgentSQL::Play::checkpoint($claim, id => $ids[0], messages => ['other']), $first, $second, $third);
        $play->save($worker, @$_) for $batches == 1 ? \@items : ([ @items[ 0, 1 ] ], [ @items[ 2 .. 5 ] ]);
        is_deeply $play->messages($thread), [ 1 .. 3 ];
        is $session->value("select count(*) from agent.checkpoints where thread_id = '$thread'"), 3;
        is $session->value("select count(*) from agent.checkpoint_items where thread_id = '$thread'"), 3, 'its elements are stored once';
        is_deeply [ map { $_->{content} } @{ $play->body('get_state', $thread, $ids[0])->{values}{messages} } ], [1], 'the first one counts';
        my $ns = 'node:00000000-0000-0000-0000-000000000001';
        $play->save($worker, map { AgentSQL::Play::checkpoint($claim, id => $ids[0], ns => $_, messages => [1]) } $ns, $ns, '');
        is $session->value("select count(*) from agent.checkpoints where thread_id = '$thread'"), 4, 'another namespace has its own';
        $play->save($worker, AgentSQL::Play::finish($claim));
    }
};

subtest 'a repeated checkpoint does not move the head back' => sub {
    my $claim = leased($play->thread);
    my @items = map { AgentSQL::Play::checkpoint($claim, messages => [$_]) } 1, 2;
    $play->save($worker, $_) for @items, $items[0];
    is_deeply $play->messages($claim->{thread_id}), [2];
    $play->save($worker, AgentSQL::Play::finish($claim));
};

subtest 'a repeated batch whose run was rolled back is saved, not fenced' => sub {
    my $claim = leased($play->thread);
    $play->api('cancel_run', @$claim{qw(thread_id run_id)}, 'rollback');
    is_deeply $play->save($worker, AgentSQL::Play::finish($claim)), { $claim->{run_id} => [ 'saved', 't' ] } for 1, 2;
};

subtest 'one call saves runs of many threads and deployments' => sub {
    my $other = AgentSQL::uuid();
    $session->query("insert into agent.deployments (deployment_id, account_id, name)
        select '$other', account_id, 'other' from agent.accounts");
    my $guest = AgentSQL::Play->new($session, deployment => $other);
    my @threads = ((map { $play->thread } 1 .. 3), $guest->thread);
    $play->run($_) for @threads[0 .. 2];
    $guest->run($threads[3]);
    my @claims = $play->claim($worker, deployments => [ $play->deployment, $other ]);
    is scalar(grep { $_->[0] eq 'saved' && $_->[1] eq 't' } values %{ $play->save($worker, map { (
        AgentSQL::Play::event($_, 0, 'metadata', {}),
        AgentSQL::Play::checkpoint($_, messages => [ $_->{thread_id} ]),
        AgentSQL::Play::finish($_)) } @claims) }), 4;
    is_deeply $play->messages($_), [$_] for @threads[0 .. 2];
    is_deeply $guest->messages($threads[3]), [ $threads[3] ];
    is_deeply $play->save($worker), {}, 'an empty batch has no result';
};

subtest 'the end of a run promotes the next run of its thread and of no other' => sub {
    my @threads = map { $play->thread } 1, 2;
    my @runs = map { my $thread = $_; map { $play->run($thread) } 1, 2 } @threads;
    my %claim = map { $_->{run_id} => $_ } $play->claim($worker);
    $play->save($worker, AgentSQL::Play::finish($claim{ $runs[0] }));
    is $play->queue($runs[1])->{state}, 'ready';
    is $play->queue($runs[3])->{state}, 'blocked';
    $play->save($worker, AgentSQL::Play::finish($claim{ $runs[2] }));
    $play->save($worker, map { AgentSQL::Play::finish($_) } $play->claim($worker));
};

subtest 'usage has one row per ended run, with the status of the record' => sub {
    my @cases = ([ 'success', undef ], [ 'error', { error => 'E', message => 'm' } ], [ 'interrupted', undef ], [ 'timeout', undef ]);
    for my $case (@cases) {
        my $claim = leased($play->thread);
        $play->api('cancel_run', @$claim{qw(thread_id run_id)}, 'interrupt') if $case->[0] eq 'interrupted';
        $play->save($worker, AgentSQL::Play::finish($claim, @$case));
        is_deeply [ $session->query("select status, attempts, epoch, worker_id, started_at is not null
            from agent.usage_events where run_id = '$claim->{run_id}'") ], [ [ $case->[0], 1, 1, $worker, 't' ] ];
    }
    is $session->value('select count(*) from agent.usage_events u join agent.runs r using (deployment_id, run_id)
        where u.status <> r.status or u.finished_at <> r.finished_at'), 0;
    is $session->value('select count(*) from agent.runs r where r.finished_at is not null and not exists (
        select from agent.usage_events u where u.run_id = r.run_id)'), 0;
};

subtest 'a value that does not fit its type fails the whole batch' => sub {
    my @claims = map { leased($play->thread) } 1, 2;
    my $good = AgentSQL::Play::event($claims[0], 0, 'custom', 1);
    my $bad = AgentSQL::Play::checkpoint($claims[1], id => 'no uuid');
    my $text = AgentSQL::Session::literal(AgentSQL::encode([ $good, $bad ]));
    is $session->error("select * from public.save_items($worker, $text)"), '22P02';
    is_deeply [ $play->events($claims[0]{thread_id}, $claims[0]{run_id}) ], [], 'no item of the batch is stored';
    is_deeply $play->save($worker, $good), { $claims[0]{run_id} => [ 'saved', 'f' ] }, 'run by run the good ones pass';
};

done_testing;
