# SPDX-License-Identifier: Apache-2.0
# DELETE of threads, runs and assistants that takes more than one piece: what it holds, and what becomes of it when its client
# leaves.
use strict;
use warnings;
use AgentTest::Client qw(read_until);
use AgentTest::Database;
use AgentTest::Gate;
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

my $gate = AgentTest::Gate->new;
# A child with four threads.
my ($server, $client) = AgentTest::Server->start_with_client($gate->graph, 'AgentMaxWaitersPerAddress 12');

# A thread that is deleted in several pieces.
sub long_thread {
    my $thread = $client->new_thread;
    sql("insert into agent.checkpoints (deployment_id, thread_id, checkpoint_ns, checkpoint_id, channels, next, tasks, metadata, state_bytes, created_at)
        select deployment_id, thread_id, '', md5(thread_id::text || n)::uuid, '{}', '[]', '[]', '{}', 2, now()
          from agent.threads, generate_series(1, 3000) n where thread_id = '$thread'");
    return $thread;
}

sub rows_of { return sql("select count(*) from agent.checkpoints where thread_id = '$_[0]'") }
sub is_stored { return sql("select count(*) from agent.threads where thread_id = '$_[0]'") }

# The second pieces of all deletions wait until let_go().
sub hold_deletions {
    return hold_lock("create function agent.hold() returns trigger language plpgsql as \$\$ begin
            perform pg_advisory_xact_lock_shared(17); return new; end \$\$;
        create trigger hold before update of state_deletions on agent.threads for each row
            when (old.state_deletions > 0) execute function agent.hold();
        commit; begin; select pg_advisory_xact_lock(17)");
}

sub wait_held {
    wait_for('a second piece', sub { poll("select count(*) from pg_locks where locktype = 'advisory' and not granted") });
    return;
}

sub let_go {
    my ($lock) = @_;
    close $lock;
    sql('drop function agent.hold() cascade');
    return;
}

subtest 'delete thread: a long one is deleted as a whole' => sub {
    my $thread = long_thread();
    is $client->delete("/threads/$thread")->{status}, 204;
    is $client->get("/threads/$thread")->{status}, 404;
    is rows_of($thread), 0, 'delete thread: nothing is left';
};

subtest 'delete thread: many deletions that take long hold a part of the threads' => sub {
    my @threads = map { long_thread() } 1 .. 8;
    my $lock = hold_deletions();
    my @connections = map { $client->begin('DELETE', "/threads/$_") } @threads;
    wait_held();
    wait_for('all first pieces', sub {
        poll('select count(*) from agent.threads where state_deletions > 0') == @threads });
    is $client->get('/info')->{status}, 200, 'delete thread: other requests are served';
    let_go($lock);
    is $client->finish($_)->{status}, 204 for @connections;
    is $client->get("/threads/$_")->{status}, 404 for @threads;
};

subtest 'delete thread: after its first piece a thread does not exist for clients' => sub {
    my $thread = long_thread();
    my $lock = hold_deletions();
    my $connection = $client->begin('DELETE', "/threads/$thread");
    wait_held();
    my $run = { assistant_id => 'gated', input => {} };
    is $client->post("/threads/$thread/runs", $run)->{status}, 404, 'run of a deleted thread: refused';
    is $client->post("/threads/$thread/runs", { %{$run}, if_not_exists => 'create' })->{status}, 409,
        'run that creates its thread: refused until the deleted one is gone';
    is $client->post("/threads/$thread/state", { values => {} })->{status}, 404, 'update of a deleted thread: refused';
    is $client->post("/threads/$thread/copy")->{status}, 409, 'copy of a deleted thread: refused';
    is $client->get("/threads/$thread$_")->{status}, 404, "deleted thread: GET $_" for '', '/state', '/runs', '/stream';
    for my $strategy (qw(raise do_nothing)) {
        my $body = { thread_id => $thread, if_exists => $strategy };
        is $client->post('/threads', $body)->{status}, 409, "thread with the same id: refused, if_exists $strategy";
    }
    let_go($lock);
    is $client->finish($connection)->{status}, 204;
    wait_for('the rest to be deleted', sub { !is_stored($thread) });
    is $client->post('/threads', { thread_id => $thread })->{status}, 200, 'thread with the same id: created';
};

subtest 'delete thread: the server deletes the rest when the client disconnects' => sub {
    my $thread = long_thread();
    my $lock = hold_deletions();
    my $connection = $client->begin('DELETE', "/threads/$thread");
    wait_held();
    close $connection;
    let_go($lock);
    ok wait_for('the thread to be deleted', sub { !is_stored($thread) });
    is rows_of($thread), 0;
};

subtest 'delete thread: the server deletes the rest of a long one when too many requests wait' => sub {
    my ($thread, $small, $long) = ($client->new_thread, $client->new_thread, long_thread());
    my @streams = map { $client->begin('GET', "/threads/$thread/stream") } 1 .. 12;
    read_until($_, qr/\r\n\r\n/) for @streams;
    is $client->delete("/threads/$small")->{status}, 204, 'delete thread: one that is deleted at once does not wait';
    is $client->delete("/threads/$long")->{status}, 204, 'delete thread: a long one is deleted for clients';
    is $client->get("/threads/$long")->{status}, 404;
    ok wait_for('the server to delete the rest', sub { !is_stored($long) });
    close $_ for @streams;
};

# A thread with a run whose 9,000 checkpoints lead from that of another run to the head: (thread, run, the first head). Its deletion
# takes three pieces.
sub thread_with_long_run {
    my $thread = $client->new_thread;
    my @runs = map { $client->create_run($thread, "hello $_", multitask_strategy => 'enqueue')->{run_id} } 1, 2;
    is $client->get("/threads/$thread/runs/$runs[1]/join")->{status}, 200;
    my $head = sql("select c.checkpoint_id from agent.checkpoints c where c.thread_id = '$thread' and c.run_id = '$runs[0]'
        and exists (select from agent.checkpoints x where x.thread_id = '$thread' and x.run_id = '$runs[1]'
                       and x.parent_checkpoint_id = c.checkpoint_id)");
    my $id = "md5('$runs[1]' || n)::uuid";
    sql("insert into agent.checkpoints (deployment_id, thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, run_id, channels, next,
                tasks, metadata, state_bytes, created_at)
        select deployment_id, thread_id, '', $id, case n when 1 then head_checkpoint_id else ${\($id =~ s/\|\| n/|| n - 1/r)} end, head_run_id,
               '{}', '[]', '[]', '{}', 2, now()
          from agent.threads, generate_series(1, 9000) n where thread_id = '$thread'");
    sql("update agent.threads set head_checkpoint_id = ${\($id =~ s/\bn\b/9000/r)} where thread_id = '$thread'");
    return ($thread, $runs[1], $head);
}

sub head_of { return $client->get("/threads/$_[0]/state")->{json}{checkpoint}{checkpoint_id} }

# Deletions of runs do not get beyond their first pieces until the lock is let go: their calls return the same cursor.
sub hold_ways {
    return hold_lock("alter function agent.skip_checkpoints(uuid, uuid, uuid, uuid, text, bigint) rename to pass_checkpoints;
        create sequence agent.held;
        create function agent.skip_checkpoints(p1 uuid, p2 uuid, p3 uuid, p4 uuid, p5 text, p6 bigint,
            out checkpoint_id uuid, out cursor text, out steps bigint) language plpgsql security definer as \$\$ begin
            if p5 is not null and not pg_try_advisory_xact_lock_shared(17) then
                perform nextval('agent.held'); cursor := p5; steps := 0; return; end if;
            select p.* into checkpoint_id, cursor, steps from agent.pass_checkpoints(p1, p2, p3, p4, p5, p6) p; end \$\$;
        commit; begin; select pg_advisory_xact_lock(17)");
}

sub wait_second_piece { wait_for('a second piece', sub { poll('select is_called from agent.held') eq 't' }); return }

# When no call executes: one between the two functions would find neither.
sub restore_ways {
    sql('drop function agent.skip_checkpoints(uuid, uuid, uuid, uuid, text, bigint); drop sequence agent.held;
        alter function agent.pass_checkpoints(uuid, uuid, uuid, uuid, text, bigint) rename to skip_checkpoints');
    return;
}

subtest 'delete run: one with many checkpoints exists until the state before it is found' => sub {
    my ($thread, $run, $head) = thread_with_long_run();
    my $last = head_of($thread);
    isnt $last, $head;
    my $lock = hold_ways();
    my $connection = $client->begin('DELETE', "/threads/$thread/runs/$run");
    wait_second_piece();
    is $client->get("/threads/$thread/runs/$run")->{status}, 200, 'delete run: it exists';
    is head_of($thread), $last, 'delete run: the state is its last one';
    close $lock;
    is $client->finish($connection)->{status}, 204;
    is $client->get("/threads/$thread/runs/$run")->{status}, 404;
    is head_of($thread), $head, 'delete run: then the state is the one before it';
    ok wait_for('the server to delete its checkpoints', sub { poll("select count(*) from agent.checkpoints where run_id = '$run'") == 0 });
    restore_ways();
};

subtest 'delete run: one with many checkpoints stays as it was when too many requests wait' => sub {
    my ($thread, $run, $head) = thread_with_long_run();
    my $last = head_of($thread);
    my @streams = map { $client->begin('GET', "/threads/$thread/stream") } 1 .. 12;
    read_until($_, qr/\r\n\r\n/) for @streams;
    is $client->delete("/threads/$thread/runs/$run")->{status}, 503, 'delete run: refused';
    is $client->get("/threads/$thread/runs/$run")->{status}, 200;
    is head_of($thread), $last, 'delete run: the run and its state stay';
    close $_ for @streams;
    ok wait_for('the streams to be gone', sub { $client->delete("/threads/$thread/runs/$run")->{status} == 204 });
    is head_of($thread), $head;
};

subtest 'delete run: its thread may be deleted at the same time' => sub {
    my ($thread, $run) = thread_with_long_run();
    my $lock = hold_ways();
    my $connection = $client->begin('DELETE', "/threads/$thread/runs/$run");
    wait_second_piece();
    is $client->delete("/threads/$thread")->{status}, 204;
    is $client->finish($connection)->{status}, 404, 'delete run: the run is not found';
    close $lock;
    restore_ways();
    is $client->get("/threads/$thread")->{status}, 404;
    is rows_of($thread), 0;
};

subtest 'delete assistant: with threads, one after the other, and its runs end' => sub {
    my $id = $client->post('/assistants', { graph_id => 'gated' })->{json}{assistant_id};
    my @runs = map { $client->create_run($client->new_thread, 'use gate {}', assistant_id => $id) } 1 .. 3;
    my $long = long_thread();
    sql("update agent.threads set assistant_id = '$id' where thread_id = '$long'");
    my $lock = hold_deletions();
    my $connection = $client->begin('DELETE', "/assistants/$id?delete_threads=true");
    wait_held();
    is $client->get("/assistants/$id")->{status}, 200, 'delete assistant: it goes last';
    let_go($lock);
    is $client->finish($connection)->{status}, 204;
    is $client->get("/assistants/$id")->{status}, 404;
    is $client->get("/threads/$_")->{status}, 404 for $long, map { $_->{thread_id} } @runs;
    is rows_of($long), 0;
};

undef $server;
done_testing;
