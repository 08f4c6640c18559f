# SPDX-License-Identifier: Apache-2.0
# POST /threads/{thread_id}/copy: the record, runs of the copy, copies that take long or do not end.
use strict;
use warnings;
use AgentTest::ApiKey;
use AgentTest::Client qw(read_until run_path);
use AgentTest::Conf qw(location);
use AgentTest::Database;
use AgentTest::Gate;
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my $UNKNOWN = '01890000-0000-7000-8000-000000000000';
my $gate = AgentTest::Gate->new;
my ($server, $client) = AgentTest::Server->start_with_client($gate->graph, 'AgentMaxWaitersPerAddress 2',
    'LoadModule authn_core_module "${MODULES}/mod_authn_core.so"',
    location('/keyed', 'AuthType AgentKey', 'Require agent-scope run'));

sub copy_of {
    my ($thread) = @_;
    my $answer = $client->post("/threads/$thread/copy");
    is $answer->{status}, 200, 'copy thread: the answer is 200';
    return $answer->{json};
}

# A thread with many checkpoints, which is copied in several pieces.
sub long_thread {
    my $thread = $client->new_thread;
    $client->join_run($client->create_run($thread, 'hello'));
    sql("insert into agent.checkpoints (deployment_id, thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, run_id, channels, next, tasks,
            metadata, state_bytes, created_at)
        select t.deployment_id, t.thread_id, '', md5(t.thread_id::text || n)::uuid,
            case when n = 1 then t.head_checkpoint_id else md5(t.thread_id::text || n - 1)::uuid end, t.head_run_id, c.channels,
            '[]', '[]', '{}', c.state_bytes, now()
          from agent.threads t join agent.checkpoints c on c.thread_id = t.thread_id and c.checkpoint_id = t.head_checkpoint_id,
               generate_series(1, 4000) n where t.thread_id = '$thread';
        update agent.checkpoints c set channels = array(select row(v.name, v.length, v.bytes, v.list_ids, v.ends, null, v.content)::agent.channel_value
            from unnest(c.channels) v) where c.thread_id = '$thread' and c.checkpoint_id = any (array(
                select md5('$thread' || n)::uuid from generate_series(1, 4000) n));
        update agent.threads set head_checkpoint_id = md5('$thread' || 4000)::uuid where thread_id = '$thread'");
    return $thread;
}

sub under_way { return sql('select count(*) from agent.thread_copies') }
sub checkpoints_of { return sql("select count(*) from agent.checkpoints where thread_id = '$_[0]'") }

my $thread = $client->create_thread(metadata => { topic => 'x' })->{thread_id};
$client->join_run($client->create_run($thread, 'use clock {}'));
my $source = $client->get("/threads/$thread")->{json};

subtest 'copy thread: the copy has the state under the same checkpoint ids, and its own id in the metadata' => sub {
    my $copy = copy_of($thread);
    isnt $copy->{thread_id}, $thread;
    is_deeply $copy->{metadata}, { %{ $source->{metadata} }, thread_id => $copy->{thread_id} };
    is_deeply $copy->{values}, $source->{values};
    is_deeply $client->get("/threads/$copy->{thread_id}")->{json}, $copy;
    my ($old, $new) = map { $client->get_state($_) } $thread, $copy->{thread_id};
    is $new->{checkpoint_id}, $old->{checkpoint_id};
    is $new->{checkpoint}{thread_id}, $copy->{thread_id};
    is $new->{metadata}{thread_id}, $copy->{thread_id};
    is $new->{metadata}{run_id}, $old->{metadata}{run_id};
    is_deeply $client->get("/threads/$copy->{thread_id}/runs")->{json}, [], 'copy thread: runs are not copied';
    is_deeply $client->get("/threads/$copy->{thread_id}/state/$old->{parent_checkpoint_id}")->{json}{values},
        $client->get("/threads/$thread/state/$old->{parent_checkpoint_id}")->{json}{values};
};

subtest 'copy thread: copy and original go on by themselves' => sub {
    my $copy = copy_of($thread)->{thread_id};
    $client->join_run($client->create_run($copy, 'to the copy'));
    $client->join_run($client->create_run($thread, 'to the original'));
    my @texts = map { [ map { $_->{content} } grep { $_->{type} eq 'human' } @{ $client->get_state($_)->{values}{messages} } ] } $thread, $copy;
    is_deeply \@texts, [ [ 'use clock {}', 'to the original' ], [ 'use clock {}', 'to the copy' ] ];
    is $client->delete("/threads/$thread")->{status}, 204;
    is_deeply [ map { $_->{content} } grep { $_->{type} eq 'human' } @{ $client->get_state($copy)->{values}{messages} } ], $texts[1];
};

subtest 'copy thread: a busy thread is copied as it is, and its copy is not busy' => sub {
    my $busy = $client->new_thread;
    $client->join_run($client->create_run($busy, 'first'));
    my $run = $client->create_run($busy, 'use gate {}', assistant_id => 'gated');
    $gate->wait_calls(1);
    my $copy = copy_of($busy);
    is $client->get("/threads/$busy")->{json}{status}, 'busy';
    isnt $copy->{status}, 'busy';
    is $copy->{values}{messages}[0]{content}, 'first';
    $client->post(run_path($run) . '/cancel?wait=true');
};

subtest 'copy thread: a missing thread is 409' => sub {
    my $answer = $client->post("/threads/$UNKNOWN/copy");
    is $answer->{status}, 409;
    is $answer->{json}{code}, 'source_not_found';
    is $client->post('/threads/x/copy')->{status}, 404, 'copy thread: an id that is not a UUID is 404';
    is $client->get("/threads/$UNKNOWN/copy")->{status}, 405;
};

my $long = long_thread();
subtest 'copy thread: a long one is copied in pieces' => sub {
    my $copy = copy_of($long);
    is checkpoints_of($copy->{thread_id}), checkpoints_of($long);
    is under_way(), 0;
};

# A copy whose second piece waits for a lock: (connection, the lock, the copy's id).
sub held_copy {
    my ($key, @headers) = @_;
    my $gate = hold_lock("create function agent.hold() returns trigger language plpgsql as \$\$ begin
            perform pg_advisory_xact_lock_shared(16); return new; end \$\$;
        create trigger hold before update of next_checkpoint_id on agent.thread_copies for each row
            when (old.next_checkpoint_id <> old.head_checkpoint_id) execute function agent.hold();
        commit; begin; select pg_advisory_xact_lock(16)");
    my $connection = $key ? $client->connection : $client->begin('POST', "/threads/$long/copy");
    syswrite $connection, join "\r\n", "POST /keyed/threads/$long/copy HTTP/1.1", 'Host: localhost', "x-api-key: $key", @headers, '', '' if $key;
    my $copy = wait_for('the second piece', sub {
        poll("select c.thread_id from agent.thread_copies c
            where exists (select from pg_locks where locktype = 'advisory' and not granted)") });
    return ($connection, $gate, $copy);
}
sub let_go {
    my ($gate) = @_;
    close $gate;
    sql('drop function agent.hold() cascade');
    return;
}

subtest 'copy thread: a copy is invisible until it is complete' => sub {
    my ($connection, $lock, $copy) = held_copy();
    cmp_ok checkpoints_of($copy), '>', 0;
    is $client->get("/threads/$copy")->{status}, 404;
    is $client->get("/threads/$copy/state")->{status}, 404;
    let_go($lock);
    is $client->finish($connection)->{json}{thread_id}, $copy;
};

subtest 'copy thread: runs that are deleted during the copy let it begin again' => sub {
    my $last = $client->create_run($long, 'one more');
    $client->join_run($last);
    my ($connection, $lock, $copy) = held_copy();
    is $client->delete(run_path($last))->{status}, 204;
    let_go($lock);
    my $answer = $client->finish($connection);
    is $answer->{status}, 200;
    isnt $answer->{json}{thread_id}, $copy;
    is $client->get_state($answer->{json}{thread_id})->{checkpoint_id}, $client->get_state($long)->{checkpoint_id};
    ok wait_for('the supervisor to sweep the first attempt', sub { checkpoints_of($copy) == 0 && under_way() == 0 });
};

subtest 'copy thread: what is left of a copy whose client disconnected is swept' => sub {
    my ($connection, $lock, $copy) = held_copy();
    close $connection;
    let_go($lock);
    ok wait_for('the supervisor to sweep the copy', sub { checkpoints_of($copy) == 0 && under_way() == 0 });
    is $client->get("/threads/$copy")->{status}, 404;
};

# The thread that ends requests with their keys fails here: requests that write do not rely on it.
my $find_invalid_keys = pack 'H*', sql(q{select encode(convert_to(pg_get_functiondef('agent.find_invalid_keys'::regproc), 'UTF8'), 'hex')});
sub break_ends_of_keys {
    sql(q{create or replace function agent.find_invalid_keys(p_key_ids text[]) returns table (key_id text) language plpgsql
        as 'begin raise exception using errcode = ''57014''; end'});
    return;
}

subtest 'prune: each thread needs a key that was verified less than 2 s ago' => sub {
    break_ends_of_keys();
    my @threads = map { $client->new_thread } 1 .. 3;
    my $gate = hold_lock("create function agent.hold() returns trigger language plpgsql as \$\$ begin
            perform pg_advisory_xact_lock_shared(16); return old; end \$\$;
        create trigger hold before delete on agent.threads for each row
            when (old.thread_id = '$threads[1]') execute function agent.hold();
        commit; begin; select pg_advisory_xact_lock(16)");
    my $key = create_key('00000000-0000-0000-0000-00000000000a');
    my $body = '{"thread_ids":["' . join('","', @threads) . '"]}';
    my $connection = $client->connection;
    syswrite $connection, "POST /keyed/threads/prune HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nx-api-key: $key\r\nContent-Type: application/json\r\n"
        . 'Content-Length: ' . length($body) . "\r\n\r\n$body";
    wait_for('the second thread', sub { poll("select true where exists (select from pg_locks where locktype = 'advisory' and not granted)") });
    revoke_key($key);
    my $begun = clock_gettime(CLOCK_MONOTONIC);
    wait_for('the time to pass', sub { clock_gettime(CLOCK_MONOTONIC) > $begun + 2 });
    let_go($gate);
    my $answer = $client->finish($connection);
    is "$answer->{status} $answer->{json}{code}", '401 unknown_key';
    is_deeply [ map { $client->get("/threads/$_")->{status} } @threads ], [ 404, 404, 200 ], 'prune: the thread that was begun is deleted, and no other';
    sql($find_invalid_keys);
};

subtest 'copy thread: each piece needs a key that was verified less than 2 s ago' => sub {
    break_ends_of_keys();
    my $key = create_key('00000000-0000-0000-0000-00000000000a');
    my ($connection, $lock, $copy) = held_copy($key);
    revoke_key($key);
    my $begun = clock_gettime(CLOCK_MONOTONIC);
    wait_for('the time to pass', sub { clock_gettime(CLOCK_MONOTONIC) > $begun + 2 });
    let_go($lock);
    my $answer = $client->finish($connection);
    is "$answer->{status} $answer->{json}{code}", '401 unknown_key';
    is $answer->{headers}{connection}, 'close', 'copy thread: the connection is closed';
    is $client->get("/threads/$copy")->{status}, 404, 'copy thread: there is none';
    sql($find_invalid_keys);
    ok wait_for('the supervisor to sweep the copy', sub { checkpoints_of($copy) == 0 && under_way() == 0 });
};

subtest 'copy thread: one whose key ends while it waits for its next piece is given up' => sub {
    my $key = create_key('00000000-0000-0000-0000-00000000000a');
    my ($connection, $lock, $copy) = held_copy($key);
    revoke_key($key);
    wait_for('the end of the key', sub { $client->get("/keyed/threads/$long", undef, { 'x-api-key' => $key })->{status} == 401 });
    let_go($lock);
    is $client->finish($connection)->{json}{code}, 'unknown_key';
    is sql("select count(*) from agent.thread_copies where thread_id = '$copy' and expires_at > now()"), 0, 'copy thread: it is swept at once';
    ok wait_for('the supervisor to sweep the copy', sub { checkpoints_of($copy) == 0 && under_way() == 0 });
};

subtest 'copy thread: one address copies as many threads at once as AgentMaxWaitersPerAddress allows' => sub {
    my @streams = map { $client->begin('GET', "/threads/$long/stream") } 1 .. 2;
    read_until($_, qr/\r\n\r\n/) for @streams;
    my $answer = $client->post("/threads/$long/copy");
    is $answer->{json}{code}, 'too_many_waiters_per_address';
    is under_way(), 0, 'copy thread: a refused copy leaves nothing';
    close $_ for @streams;
};

# The last one with keys: the address is refused keys for a while afterwards.
subtest 'copy thread: wrong keys of others at its address do not end it' => sub {
    my ($connection, $lock, $copy) = held_copy(create_key('00000000-0000-0000-0000-00000000000a'), 'Connection: close');
    my $begun = clock_gettime(CLOCK_MONOTONIC);
    wait_for('the limit of wrong keys', sub {
        my $key = print_key('sk', random_digits(22), random_digits(43));
        return $client->get("/keyed/threads/$long", undef, { 'x-api-key' => $key })->{status} == 429;
    });
    wait_for('the time to pass', sub { clock_gettime(CLOCK_MONOTONIC) > $begun + 2 });
    let_go($lock);
    is $client->finish($connection)->{status}, 200;
    is $client->get("/threads/$copy")->{status}, 200, 'copy thread: it is complete';
};

undef $server;
done_testing;
