# SPDX-License-Identifier: Apache-2.0
# Sweeps of elements that no checkpoint contains, and of events of deleted runs.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use lib "$FindBin::Bin/../lib";
use Test::More;
use AgentSQL;
use AgentSQL::Play;

my $db = AgentSQL->new;
my $session = AgentSQL::Play->new($db->session)->session;

# ---- elements of lists ----

# Elements of a list that no checkpoint contains, from some position on.
sub list_to_sweep {
    my ($list, $rows, $first, $content) = @_;
    my $thread = AgentSQL::uuid();
    my $key = "'$AgentSQL::DEPLOYMENT', '$thread'";
    $session->query("insert into agent.checkpoint_items (deployment_id, thread_id, list_id, position, elements, end_bytes, content)
        select $key, $list, n, 1, n, $content from generate_series(0, $rows - 1) n");
    $session->query("insert into agent.item_sweeps (deployment_id, thread_id, list_id, first) values ($key, $list, $first)");
    return $thread;
}

sub positions {
    my ($row) = $session->query("select count(*), max(position) from agent.checkpoint_items where thread_id = '$_[0]'");
    return @$row;
}

subtest 'sweep_state deletes the end of a list, at most 4,000 rows in a call, the last ones first' => sub {
    my $thread = list_to_sweep(1, 40_000, 5, q('1'));
    is $session->value('select agent.sweep_state()'), 1;
    my ($count, $last) = positions($thread);
    cmp_ok $count, '>=', 36_000, "$count are left";
    is $last, $count - 1, 'the rows that are left have no gap';
    1 while $session->value('select agent.sweep_state()');
    is_deeply [ positions($thread) ], [ 5, 4 ], 'the beginning of the list is kept';
    is $session->value('select count(*) from agent.item_sweeps'), 0;
};

subtest 'sweep_state deletes at most 4 MB in a call' => sub {
    # A megabyte each, of text that does not compress.
    my $thread = list_to_sweep(2, 40, 0, q((select string_agg(md5(random()::text), '') from generate_series(1, 32000))));
    is $session->value('select agent.sweep_state()'), 1;
    cmp_ok +(positions($thread))[0], '>=', 35;
    1 while $session->value('select agent.sweep_state()');
    is +(positions($thread))[0], 0;
};

subtest 'remains of one thread, however much is added to them, do not delay the sweep of others' => sub {
    my $play = AgentSQL::Play->new($session);
    # The one that always has ten rows is the first by id.
    my ($first, $victim) = sort $play->thread, $play->thread;
    my $key = "'@{[ $play->deployment ]}', '$first'";
    my %add = (
        run_sweeps => "(deployment_id, thread_id, run_id) select $key, lpad(n::text, 32, '0')::uuid",
        write_sweeps => "(deployment_id, thread_id, checkpoint_ns, checkpoint_id, deletions)
            select $key, '', lpad(n::text, 32, '0')::uuid, 1",
        item_sweeps => "(deployment_id, thread_id, list_id, first) select $key, n, 0",
    );
    my %key_of = (%add, blob_sweeps => "(deployment_id, thread_id, due_at) select $key, now()");
    for my $kind (sort keys %add) {
        my $fill = "insert into agent.$kind $add{$kind} from generate_series(1, 10) n on conflict do nothing";
        $session->query($fill);
        for my $other (sort keys %key_of) {
            my $insert = $key_of{$other} =~ s/\Q$key\E/'@{[ $play->deployment ]}', '$victim'/r;
            $session->query("insert into agent.$other $insert from generate_series(11, 11) n");
        }
        my @left = sort keys %key_of;
        # Ten rows of one kind, and four of others.
        for (1 .. 14) {
            $session->value('select agent.sweep_state()');
            $session->query($fill);
            @left = grep { $session->value("select count(*) from agent.$_ where thread_id = '$victim'") } @left;
            last if !@left;
        }
        is "@left", '', "each row has its turn after those that have waited longer, beside a thread that always has ten rows in $kind";
        $session->query("delete from agent.$_") for keys %key_of;
    }
};

subtest 'two sweeps do not wait for each other, nor a deletion for a sweep' => sub {
    my $thread = list_to_sweep(3, 10, 0, q('1'));
    my $other = AgentSQL::Play->new($db->session)->session;
    $session->query('begin');
    is $session->value('select agent.sweep_state()'), 1;
    is $other->value('select agent.sweep_state()'), 0, 'the list is taken';
    is $other->value("select agent.delete_items('$AgentSQL::DEPLOYMENT', '$thread', 1000000)"), 1_000_000;
    $session->query('commit');
    is +(positions($thread))[0], 0;
};

subtest 'two sweeps at the same time take different threads' => sub {
    my $play = AgentSQL::Play->new($session);
    my ($first, $second) = map { $play->thread } 1, 2;
    my $other = AgentSQL::Play->new($db->session)->session;
    my %row = (
        run_sweeps => '(deployment_id, thread_id, run_id) select %s, gen_random_uuid()',
        write_sweeps => "(deployment_id, thread_id, checkpoint_ns, checkpoint_id, deletions) select %s, '', gen_random_uuid(), 1",
        item_sweeps => '(deployment_id, thread_id, list_id, first, is_snapshot) select %s, 1, 0, true',
        blob_sweeps => '(deployment_id, thread_id, due_at) select %s, now()',
    );
    for my $kind (sort keys %row) {
        for my $thread ($first, $second) {
            $session->query("insert into agent.$kind " . sprintf $row{$kind}, "'@{[ $play->deployment ]}', '$thread'");
        }
        $session->query('begin');
        is $session->value('select agent.sweep_state()'), 1, "one of two rows in $kind is swept";
        is $other->value('select agent.sweep_state()'), 1, "the other row in $kind is swept at the same time";
        $session->query('commit');
        is $session->value("select count(*) from agent.$kind"), 0, "two sweeps at the same time leave no row in $kind";
    }
    $other->close;
};

subtest 'a thread with more unused blobs than one sweep deletes waits after others' => sub {
    my $play = AgentSQL::Play->new($session);
    my ($long, $short) = map { $play->thread } 1, 2;
    for ([ $long, 3000, 2 ], [ $short, 1, 1 ]) {
        my ($thread, $count, $seconds) = @$_;
        my $key = "'@{[ $play->deployment ]}', '$thread'";
        $session->query("insert into agent.checkpoint_blobs (deployment_id, thread_id, digest, part, parts, stored_parts, uses, type, is_text, content)
            select $key, gen_random_uuid(), 0, 1, 1, 0, 'json', true, '1' from generate_series(1, $count)");
        $session->query("insert into agent.blob_sweeps (deployment_id, thread_id, due_at) select $key, now() - interval '$seconds s'");
    }
    my $blobs = sub { return $session->value("select count(*) from agent.checkpoint_blobs where thread_id = '$_[0]'") };
    $session->value('select agent.sweep_state()') for 1, 2;
    is $blobs->($short), 0, 'a sweep of blobs takes the thread that has waited longest, not the one of the sweep before';
    cmp_ok $blobs->($long), '>', 1000, 'a sweep leaves blobs of a thread with 3,000 to later ones';
    1 while $session->value('select agent.sweep_state()');
    is $blobs->($long), 0, 'later sweeps delete all blobs of the thread with 3,000';
};

# ---- events ----

my $play = AgentSQL::Play->new($session);

# A final run with $count events.
sub run_with_events {
    my ($in, $count) = @_;
    my $run = $play->run($in);
    $play->api('cancel_run', $in, $run, 'interrupt');
    $session->query("insert into agent.run_events (deployment_id, bucket, run_id, seq, epoch, event, data)
        select deployment_id, events_bucket, run_id, 1000 + n, 1, 'custom', '{}'
          from agent.runs, generate_series(1, $count) n where run_id = '$run'");
    return $run;
}

sub count_events { return $session->value("select count(*) from agent.run_events where run_id = '$_[0]'") }

$session->query('delete from agent.run_events');

subtest 'the deletion of a run deletes at most 4,000 of its events' => sub {
    my $in = $play->thread;
    my $run = run_with_events($in, 20_000);
    is +($play->api('delete_run', $in, $run))[0], 'ok';
    cmp_ok count_events($run), '>=', 16_000;
};

subtest 'one piece of the deletion of a thread deletes at most 4,000 events' => sub {
    my $in = $play->thread;
    my ($small, $large, $last) = map { run_with_events($in, $_) } 100, 30_000, 1;
    is_deeply [ $play->api('delete_thread', $in) ], [ 'ok', 'more' ];
    is count_events($small), 0, 'all events of the first run are deleted';
    cmp_ok count_events($large), '>=', 26_000, 'a part of the events of the second run is deleted';
    is count_events($last), 1, 'no event of the last run is deleted';
    is +($play->api('get_thread', $in))[0], 'thread_not_found', 'for clients the thread does not exist';
    is $session->value("select count(*) from agent.expire_threads() t where t = '$in'"), 1, 'expiry completes the deletion';
    is +($play->api('get_thread', $in))[0], 'thread_not_found';
    is_deeply [ $play->api('delete_thread', $in, 'true') ], [ 'ok', '' ], 'for its caller the deletion has succeeded';
};

subtest 'one piece of the deletion of a thread deletes at most 4 MB of events' => sub {
    my $in = $play->thread;
    my $run = run_with_events($in, 40);
    # A megabyte each, of text that does not compress.
    $session->query("update agent.run_events set data = to_json((select string_agg(md5(random()::text), '') from generate_series(1, 32000)))
        where run_id = '$run'");
    is +($play->api('delete_thread', $in))[0], 'ok';
    cmp_ok count_events($run), '>=', 36;
};

# The rows of a thread in the tables whose rows its deletion counts.
sub count_rows {
    my ($in) = @_;
    my %rows;
    $rows{$_} = $session->value("select count(*) from agent.$_ where thread_id = '$in'") for qw(runs checkpoints checkpoint_items);
    return \%rows;
}

subtest 'the deletion of a long chat is many short transactions, and leaves no row' => sub {
    my $in = $play->thread;
    my $worker = $play->worker;
    my $active = $play->leased($worker, $in);
    my $waiting = $play->run($in);
    $session->query("insert into agent.runs (deployment_id, run_id, thread_id, thread_seq, assistant_id, graph_id, status,
        multitask_strategy, metadata, config, stream_mode, stream_subgraphs, stream_resumable, events_bucket, last_event_seq, created_at, updated_at, finished_at)
        select '$AgentSQL::DEPLOYMENT', gen_random_uuid(), '$in', 1000 + n, '$AgentSQL::ASSISTANT', 'agent', 'success', 'enqueue', '{}',
            '{}', '[]', false, false, current_date, -1, now(), now(), now() from generate_series(1, 3000) n");
    $session->query("insert into agent.checkpoints (deployment_id, thread_id, checkpoint_ns, checkpoint_id, run_id, channels, next, tasks, metadata, state_bytes, created_at)
        select '$AgentSQL::DEPLOYMENT', '$in', '', gen_random_uuid(), gen_random_uuid(), '{}', '[]', '[]', '{}', 0, now() from generate_series(1, 4000)");
    $session->query("insert into agent.checkpoint_items (deployment_id, thread_id, list_id, position, elements, end_bytes, content)
        select '$AgentSQL::DEPLOYMENT', '$in', n % 3, n, 1, n, '1' from generate_series(1, 9000) n");
    my ($calls, $before) = (0, count_rows($in));
    my ($code, $body) = $play->api('delete_thread', $in);
    is $session->extra, "$in $active->{run_id} $waiting", 'the first one ends the unfinished runs';
    for ($calls = 1; $body eq 'more'; $calls++) {
        my $after = count_rows($in);
        my %deleted = map { $_ => $before->{$_} - $after->{$_} } keys %$after;
        cmp_ok 2 * $deleted{runs} + 3 * $deleted{checkpoints} + $deleted{checkpoint_items}, '<=', 4100,
            join ' ', map { "$_ $deleted{$_}" } sort keys %deleted;
        $before = $after;
        ($code, $body) = $play->api('delete_thread', $in, 'true');
    }
    cmp_ok $calls, '>=', 6;
    is_deeply count_rows($in), { runs => 0, checkpoints => 0, checkpoint_items => 0 };
    is +($play->api('get_thread', $in))[0], 'thread_not_found';
    is $session->value("select count(*) from agent.thread_expiries where thread_id = '$in'"), 0;
};

subtest 'one piece of the deletion of a thread ends at most 501 runs' => sub {
    my $in = $play->thread;
    $play->run($in);
    $session->query("do \$\$ begin for n in 1 .. 1500 loop perform agent.create_run('$AgentSQL::DEPLOYMENT', '$in', gen_random_uuid(),
        '$AgentSQL::ASSISTANT', 'agent', '{agent}', 'enqueue', null, null, null, '{}'); end loop; end \$\$");
    my $queued = sub { $session->value("select count(*) from agent.run_queue where thread_id = '$in'") };
    is_deeply [ $play->api('delete_thread', $in) ], [ 'ok', 'more' ];
    is scalar(split / /, $session->extra), 502, 'the thread and the runs that it ended';
    is $queued->(), 1000, 'the others are left';
    is +($play->try_run($in))[0], 'thread_not_found', 'none of them begins, since the thread does not exist';
    my ($code, $more) = $play->api('delete_thread', $in, 'true');
    ($code, $more) = $play->api('delete_thread', $in, 'true') while $more;
    is $queued->(), 0, 'further pieces end them';
    is $session->value("select count(*) from agent.runs where thread_id = '$in'"), 0;
};

subtest 'one piece of the deletion of a thread deletes at most 4 MB of requests' => sub {
    my $in = $play->thread;
    my @runs = map { run_with_events($in, 0) } 1 .. 12;
    # A megabyte each, of text that does not compress.
    $session->query("update agent.runs set input = to_json((select string_agg(md5(random()::text), '') from generate_series(1, 32000)))
        where thread_id = '$in'");
    is_deeply [ $play->api('delete_thread', $in) ], [ 'ok', 'more' ];
    cmp_ok $session->value("select count(*) from agent.runs where thread_id = '$in'"), '>=', 7;
    for my $call ([ 'get_run', $runs[11] ], [ 'join_run', $runs[11] ], [ 'find_checkpoint_event', $runs[11], AgentSQL::uuid() ],
        [ 'cancel_run', $runs[11], 'interrupt' ], [ 'cancel_runs', [ $runs[11] ], 'interrupt' ], [ 'delete_run', $runs[11] ]) {
        my ($name, @with) = @$call;
        is +($play->api($name, $in, @with))[0], 'run_not_found', "$name: for clients the runs that are left do not exist either";
    }
    is +($play->api('find_run_thread', $runs[11]))[0], 'run_not_found';
    is +($play->poll($in, $runs[11], -1))[0][0], '', 'events of runs of a deleted thread cannot be read';
    1 while ($play->api('delete_thread', $in, 'true'))[1];
};

subtest 'sweep_events deletes the events that were left, at most 4,000 in a call' => sub {
    is $session->value('select count(*) from agent.event_sweeps'), 3, 'three runs have events left';
    my $before = $session->value('select count(*) from agent.run_events');
    is $session->value('select agent.sweep_events()'), 1;
    cmp_ok $before - $session->value('select count(*) from agent.run_events'), '<=', 4000, 'one call deletes at most 4,000 events';
    1 while $session->value('select agent.sweep_events()');
    is $session->value('select count(*) from agent.run_events'), 0, 'further calls delete the rest';
    is $session->value('select count(*) from agent.event_sweeps'), 0, 'no run is left to sweep';
};

subtest 'an event of more than 4 MB is deleted' => sub {
    my $in = $play->thread;
    my $run = run_with_events($in, 2);
    $session->query("update agent.run_events set data = to_json((select string_agg(md5(random()::text), '') from generate_series(1, 150000)))
        where run_id = '$run'");
    is +($play->api('delete_run', $in, $run))[0], 'ok';
    is count_events($run), 1, 'the deletion of a run leaves an event of more than 4 MB to the sweep';
    is $session->value('select agent.sweep_events()'), 1, 'a sweep deletes an event of more than 4 MB';
    is count_events($run), 0;
    is $session->value('select agent.sweep_events()'), 0, 'once';
};

subtest 'tasks of a deleted run, and events of several megabytes, are deleted in pieces to the last' => sub {
    my $in = $play->thread;
    my $run = run_with_events($in, 3);
    my $long = "(select string_agg(md5(random()::text), '') from generate_series(1, 160000))";
    $session->query("update agent.run_events set data = to_json($long) where run_id = '$run'");
    $session->query("insert into agent.checkpoint_tasks (deployment_id, thread_id, checkpoint_id, task_id, run_id, checkpoint_ns, task, saved_at)
        select '$AgentSQL::DEPLOYMENT', '$in', gen_random_uuid(), n, '$run', '', case when n <= 2 then $long else '{}' end, now()
          from generate_series(1, 5000) n");
    my $count = sub { return $session->value("select count(*) from agent.checkpoint_tasks where run_id = '$run'") };
    is +($play->api('delete_run', $in, $run))[0], 'ok';
    cmp_ok $count->(), '>=', 3000, 'the deletion of a run deletes a part of its tasks';
    my $calls = 0;
    while ($session->value('select agent.sweep_events()')) {
        last if ++$calls > 50;
    }
    cmp_ok $calls, '<=', 20, 'the sweeps end';
    is $count->() + count_events($run), 0, 'tasks and events are deleted';
    is $session->value('select count(*) from agent.event_sweeps'), 0, 'no run is left to sweep';
};

done_testing;
