# SPDX-License-Identifier: Apache-2.0
# POST, GET and DELETE /threads: the record field by field, ids, metadata.
use strict;
use warnings;
use AgentTest::Client qw(run_path);
use AgentTest::Database;
use Cpanel::JSON::XS;
use Test::More;

my $client = AgentTest::Client->new;
my $UUID = qr/\A[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\z/;
my $TIME = qr/\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00\z/;
my $UNKNOWN = '01890000-0000-7000-8000-000000000000';

my $created = $client->post('/threads', {});
is $created->{status}, 200, 'create thread: an empty object is accepted';
my $thread = $created->{json};
like $thread->{thread_id}, $UUID, 'create thread: thread_id is a UUID';
like $thread->{$_}, $TIME, "create thread: $_ is ISO 8601 with a UTC offset"
    for qw(created_at updated_at);
is_deeply $thread->{metadata}, {}, 'create thread: metadata is an empty object by default';
is_deeply $thread->{config}, {}, 'create thread: config is an empty object';
is $thread->{status}, 'idle', 'create thread: status is idle';
ok exists $thread->{values} && !defined $thread->{values},
    'create thread: values is null';

is $client->post('/threads')->{status}, 200, 'create thread: the body may be empty';
is $client->post('/threads', '{}', { 'Content-Type' => 'text/plain' })->{status},
    200, 'create thread: any Content-Type is accepted';

my $read = $client->get("/threads/$thread->{thread_id}");
is $read->{status}, 200, 'get thread: a thread is 200';
is_deeply $read->{json}, $thread, 'get thread: the record is that of its creation';
is $client->get("/threads/\U$thread->{thread_id}")->{status}, 200,
    'get thread: the id may be in upper case';

my $given = $client->post('/threads', {
    thread_id => '018F2D6E-7C4B-7ABC-9DEF-' . sprintf('%012X', $$),
    metadata  => { purpose => 'test', nested => { a => [ 1, 2 ] } },
});
is $given->{status}, 200, 'create thread: the client may choose thread_id';
is $given->{json}{thread_id},
    '018f2d6e-7c4b-7abc-9def-' . sprintf('%012x', $$),
    'create thread: thread_id is stored in lower case';
is_deeply $given->{json}{metadata},
    { purpose => 'test', nested => { a => [ 1, 2 ] } },
    'create thread: metadata is stored';

my $again = $client->post('/threads',
    { thread_id => $given->{json}{thread_id} });
is $again->{status}, 409, 'create thread: an existing thread_id is 409';
is $again->{json}{code}, 'thread_exists', 'create thread: the code for an existing thread_id is thread_exists';
my $same = $client->post('/threads', {
    thread_id => $given->{json}{thread_id},
    if_exists => 'do_nothing',
});
is $same->{status}, 200, 'create thread: if_exists "do_nothing" accepts an existing thread_id';
is_deeply $same->{json}{metadata}, $given->{json}{metadata},
    'create thread: if_exists "do_nothing" returns the existing thread';

{
    my $path = "/threads/$given->{json}{thread_id}";
    my $update = sub { my ($body, %headers) = @_; return $client->request('PATCH', $path, $body, \%headers) };
    my $changed = $update->({ metadata => { purpose => 'changed', more => 1 } });
    is $changed->{status}, 200, 'update thread: an update is answered 200';
    is_deeply $changed->{json}{metadata}, { purpose => 'changed', nested => { a => [ 1, 2 ] }, more => 1 }, 'update thread: metadata is merged';
    is_deeply $client->get($path)->{json}, $changed->{json}, 'update thread: the response is the record';
    my $empty = $update->({ metadata => { more => 2 } }, Prefer => 'return=minimal');
    is_deeply [ $empty->{status}, $empty->{body} // '' ], [ 204, '' ], 'update thread: with return=minimal it is answered 204';
    is $client->get($path)->{json}{metadata}{more}, 2, 'update thread: with return=minimal it is applied';
    is $update->({})->{status}, 200, 'update thread: a body without metadata is accepted';
    is $update->({ metadata => [] })->{status}, 422, 'update thread: metadata that is not an object is 422';
    is $update->({ ttl => { ttl => 5, strategy => 'delete' } })->{status}, 200, 'update thread: ttl is accepted';
    is $client->get("$path?include=ttl")->{json}{ttl}{ttl_minutes}, 5, 'get thread: include=ttl shows the ttl';
    is $update->({ ttl => 'x' })->{status}, 422, 'update thread: a wrong ttl is 422';
    is $update->({ metadata => { map { ("k$_" => 1) } 1 .. 64 } })->{json}{code}, 'invalid_value', 'update thread: more than 64 members are 422';
    is $client->request('PATCH', "/threads/$UNKNOWN", {})->{json}{code}, 'thread_not_found', 'update thread: an unknown thread is 404';
}

is $client->delete("/threads/$thread->{thread_id}")->{status}, 204,
    'delete thread: a thread is deleted with 204';
my $gone = $client->get("/threads/$thread->{thread_id}");
is $gone->{status}, 404, 'get thread: a deleted thread is 404';
is_deeply [ sort keys %{ $gone->{json} } ], [qw(code detail)],
    'get thread: an error has detail and code';
is $client->delete("/threads/$thread->{thread_id}")->{status}, 404,
    'delete thread: a second delete is 404';
is $client->get("/threads/$UNKNOWN")->{status}, 404, 'get thread: an unknown thread is 404';

my $busy = $client->create_thread;
my $run = $client->create_run($busy->{thread_id}, 'sleep 60000');
is $client->get("/threads/$busy->{thread_id}")->{json}{status}, 'busy',
    'get thread: status is busy while a run is active';
is $client->delete("/threads/$busy->{thread_id}")->{status}, 204,
    'delete thread: a thread with an active run can be deleted';
is $client->get(run_path($run))->{status}, 404,
    'delete thread: its runs are deleted with it';

# More than one transaction deletes.
my $long = $client->new_thread;
sql("insert into agent.checkpoint_items (deployment_id, thread_id, list_id, position, elements, end_bytes, content)
    select deployment_id, thread_id, 1, n, 1, n, '1' from agent.threads, generate_series(0, 9999) n where thread_id = '$long'");
is $client->delete("/threads/$long")->{status}, 204, 'delete thread: a long one is deleted with 204';
is sql("select count(*) from agent.checkpoint_items where thread_id = '$long'"), 0, 'delete thread: in as many pieces as it needs';
is $client->get("/threads/$long")->{status}, 404, 'delete thread: the thread is gone with the last piece';

# --- Search -------------------------------------------------------------------

{
    my @ids = map { $client->create_thread(metadata => { topic => "search-$$", number => $_ })->{thread_id} } 1 .. 3;
    my %about = (metadata => { topic => "search-$$" });
    my $found = $client->post('/threads/search', {%about});
    is $found->{status}, 200, 'search threads: a search is answered 200';
    is_deeply [ map { $_->{thread_id} } @{ $found->{json} } ], [ reverse @ids ], 'search threads: the last changed is first';
    is $found->{headers}{'x-pagination-total'}, 3, 'search threads: X-Pagination-Total has the number of all';
    is_deeply $found->{json}[0], $client->get("/threads/$ids[2]")->{json}, 'search threads: it has the records of the threads';
    my $page = $client->post('/threads/search', { %about, limit => 2, sort_by => 'created_at', sort_order => 'asc', select => ['metadata'] });
    is_deeply $page->{json}, [ map { { metadata => { topic => "search-$$", number => $_ } } } 1, 2 ], 'search threads: select limits the members';
    is $page->{headers}{'x-pagination-next'}, 2, 'search threads: X-Pagination-Next has the offset of the next page';
    is_deeply [ map { $_->{thread_id} } @{ $client->post('/threads/search', { %about, ids => [ $ids[1] ], status => 'idle' })->{json} } ],
        [ $ids[1] ], 'search threads: ids and a status limit it further';
    is_deeply [ @{ $client->post('/threads/count', {%about}) }{qw(status body)} ], [ 200, '3' ], 'count threads: the number is the body';
    $client->join_run($client->create_run($ids[0], 'Hello'));
    my ($record) = @{ $client->post('/threads/search', {%about})->{json} };
    is_deeply [ $record->{thread_id}, scalar @{ $record->{values}{messages} } ], [ $ids[0], 2 ], 'search threads: a run changes its thread';
    for (sort { $a->[0] cmp $b->[0] } [ '/values', values => { a => 1 } ], [ '/extract', extract => { a => 'values.b' } ], [ '/status', status => 'x' ],
        [ '/ids/0', ids => ['x'] ], [ '/limit', limit => 0 ], [ '/sort_by', sort_by => 'x' ], [ '/select/0', select => ['x'] ],
        [ '/metadata', metadata => 1 ], [ '/exclude_metadata/0', exclude_metadata => [1] ],
        [ '/metadata', metadata => { map { $_ => [ (1) x 40 ] } qw(a b) } ], [ '/exclude_metadata', exclude_metadata => 1 ],
        [ '/exclude_metadata', exclude_metadata => [ { a => [ (1) x 65 ] } ] ])
    {
        my ($pointer, %body) = @$_;
        my $answer = $client->post('/threads/search', \%body);
        is $answer->{status}, 422, "search threads: $pointer is refused";
        like $answer->{json}{detail}, qr{\A\Q$pointer\E: }, "search threads: the detail names $pointer";
    }
    is $client->post('/threads/count', { %about, metadata => { text => 'x' x 70_000 } })->{status}, 413, 'count threads: a long body is refused';
}

# --- Storage ------------------------------------------------------------------

{
    my $id = $client->new_thread;
    $client->join_run($client->create_run($id, 'Hello'));
    my $storage = $client->get("/threads/$id/storage");
    is $storage->{status}, 200, 'storage: a thread is 200';
    is $storage->{json}{checkpoints}{count}, 3, 'storage: it has the number of checkpoints';
    cmp_ok $storage->{json}{channel_values}{by_channel}{messages}{bytes}, '>', 100, 'storage: it has the bytes of each channel';
    my $bytes = $storage->{json}{total_bytes};
    sql("insert into agent.checkpoint_items (deployment_id, thread_id, list_id, position, elements, end_bytes, content)
        select deployment_id, thread_id, 1, n, 1, n, '1' from agent.threads, generate_series(0, 10000) n where thread_id = '$id'");
    cmp_ok $client->get("/threads/$id/storage")->{json}{total_bytes}, '>', $bytes - 1, 'storage: that of a large thread is found in a turn';
    is $client->get("/threads/$UNKNOWN/storage")->{status}, 404, 'storage: an unknown thread is 404';
}

# --- Prune --------------------------------------------------------------------

{
    my ($kept, $large, @small) = map { $client->new_thread } 1 .. 4;
    sql("insert into agent.checkpoint_items (deployment_id, thread_id, list_id, position, elements, end_bytes, content)
        select deployment_id, thread_id, 1, n, 1, n, '1' from agent.threads, generate_series(0, 9999) n where thread_id = '$large'");
    my $pruned = $client->post('/threads/prune', { thread_ids => [ $small[0], $UNKNOWN, $large, uc $small[1] ] });
    is_deeply [ @{$pruned}{qw(status json)} ], [ 200, { pruned_count => 3 } ], 'prune threads: the answer is the number of those that existed';
    is $client->get("/threads/$_")->{status}, 404, 'prune threads: a thread is deleted' for $large, @small;
    is sql("select count(*) from agent.checkpoint_items where thread_id = '$large'"), 0, 'prune threads: a large one in as many pieces as it needs';
    is $client->get("/threads/$kept")->{status}, 200, 'prune threads: others stay';
    is $client->post('/threads/prune', { thread_ids => [$kept], strategy => 'all' })->{status}, 422,
        'prune threads: a strategy that does not exist is refused';
    is $client->post('/threads/prune', $_)->{status}, 422, 'prune threads: ids are required' for {}, { thread_ids => [] };

    my %of_first = (assistant_id => 'agent', input => { messages => [ { role => 'user', content => 'Hello' } ] }, stream_mode => ['values']);
    my $ask_first = sub { return $client->request('POST', "/threads/$kept/runs/wait", \%of_first, { 'Idempotency-Key' => "prune-$$" }) };
    my $of_first = $ask_first->();
    my ($oldest) = @{ $client->get("/threads/$kept/runs")->{json} };
    my $first = $client->join_run($client->create_run($kept, 'Again'));
    my $state = $client->get_state($kept);
    # A run that has not begun.
    my $busy = $client->new_thread;
    my $waiting = $client->create_run($busy, 'Hello', after_seconds => 3600);
    $pruned = $client->post('/threads/prune', { thread_ids => [ $kept, $busy, $UNKNOWN ], strategy => 'keep_latest' });
    is_deeply [ @{$pruned}{qw(status json)} ], [ 200, { pruned_count => 1 } ],
        'prune threads: keep_latest passes over threads with unfinished runs';
    is scalar @{ $client->get("/threads/$kept/history?limit=100")->{json} }, 1, 'prune threads: keep_latest leaves one checkpoint';
    is_deeply $client->get_state($kept)->{values}, $state->{values}, 'prune threads: keep_latest leaves the state';
    my $oldest_path = "/threads/$kept/runs/$oldest->{run_id}";
    is scalar @{ $of_first->{json}{messages} }, 2, 'prune threads: the first run had its own values';
    is $client->get("$oldest_path/join")->{body}, 'null', 'prune threads: the join of a run whose states are deleted is null, not the state of another run';
    is $ask_first->()->{body}, 'null', 'prune threads: so is its wait when it is repeated';
    my $stream = $client->get("$oldest_path/stream")->{body};
    like $stream, qr/^event: metadata$/m, 'prune threads: the stream of a run whose states are deleted has its other events';
    unlike $stream, qr/^event: values$/m, 'prune threads: the stream of a run whose states are deleted has no values';
    my $next = $client->join_run($client->create_run($kept, 'Once more'));
    is @{ $next->{messages} }, @{ $first->{messages} } + 2, 'prune threads: the next run goes on from it';
    $client->post("/threads/$busy/runs/$waiting->{run_id}/cancel", {});
}

done_testing;
