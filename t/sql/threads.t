# SPDX-License-Identifier: Apache-2.0
# Threads: creation, reading, deletion.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Play;

my $db = AgentSQL->new;
my $play = AgentSQL::Play->new($db->session);
subtest 'a new thread is idle and empty, with the fields of the API' => sub {
    my $id = AgentSQL::uuid();
    my ($code, $body) = $play->session->call('create_thread', $AgentSQL::DEPLOYMENT, $id, 'raise', '{}');
    is $code, 'ok';
    my $record = AgentSQL::decode($body);
    is_deeply [ sort keys %$record ],
        [ sort qw(thread_id created_at updated_at metadata status config values state_updated_at interrupts) ];
    is $record->{thread_id}, $id;
    is $record->{status}, 'idle';
    is_deeply $record->{$_}, {}, "$_ is an empty object" for qw(metadata config interrupts);
    is $record->{values}, undef;
    like $record->{$_}, qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00$/, $_ for qw(created_at updated_at);
    my (undef, $same) = $play->session->call('get_thread', $AgentSQL::DEPLOYMENT, $id);
    is $same, $body, 'get_thread shows the same text';
};

subtest 'metadata of the request is stored' => sub {
    my $thread = $play->thread(metadata => { a => { b => 1 } }, unknown => 1);
    is_deeply $play->body('get_thread', $thread)->{metadata}, { a => { b => 1 } };
};

subtest 'an id that is taken is refused; with do_nothing the existing thread is returned' => sub {
    my $thread = $play->thread(metadata => { first => 1 });
    my @again = ($thread, 'raise', '{"metadata":{"second":1}}');
    is +($play->api('create_thread', @again))[0], 'thread_exists';
    $again[1] = 'do_nothing';
    is_deeply $play->body('create_thread', @again)->{metadata}, { first => 1 };
};

subtest 'metadata are merged' => sub {
    my $session = $play->session;
    my $thread = $play->thread(metadata => { a => 1, b => { c => 1 } });
    my $update = sub { return $play->api('update_thread', $thread, AgentSQL::encode({ metadata => $_[0] })) };
    my ($code, $record) = $update->({ b => 2, d => undef });
    is_deeply [ $code, $record->{metadata} ], [ 'ok', { a => 1, b => 2, d => undef } ], 'members replace those of the thread';
    is_deeply $play->body('get_thread', $thread), $record, 'the result is the record';
    is_deeply +($play->api('update_thread', $thread, '{}'))[1]{metadata}, $record->{metadata}, 'without metadata nothing is changed';
    is_deeply +($update->(undef))[1]{metadata}, $record->{metadata}, 'null is the same';
    is +($update->({ map { ("k$_" => 1) } 1 .. 61 }))[0], 'ok', '64 members';
    is_deeply [ $update->({ e => 1 }) ], [ 'invalid_value', '/metadata: expected at most 64 keys, those of the thread included.' ],
        'one more is refused';
    is +($update->({ graph_id => 'agent', a => 3 }))[0], 'ok', 'those of the server do not count';
    is $session->value("select metadata ->> 'a' from agent.threads where thread_id = '$thread'"), 3, 'a member is changed at the limit';
    is +($play->api('update_thread', AgentSQL::uuid(), '{}'))[0], 'thread_not_found', 'an unknown thread';
};

subtest 'an unknown thread is thread_not_found' => sub {
    my $id = AgentSQL::uuid();
    is +($play->api('get_thread', $id))[0], 'thread_not_found';
    is +($play->api('get_state', $id, undef))[0], 'thread_not_found';
    is +($play->api('delete_thread', $id))[0], 'thread_not_found';
};

subtest 'a deleted thread leaves no row but usage' => sub {
    my $worker = $play->worker;
    my $thread = $play->thread;
    $play->run($thread);
    my ($claim) = $play->claim($worker);
    $play->save($worker,
        AgentSQL::Play::event($claim, 0, 'metadata', {}),
        AgentSQL::Play::checkpoint($claim, messages => [1]),
        AgentSQL::Play::finish($claim));
    $play->run($thread);
    is +($play->api('delete_thread', $thread))[0], 'ok';
    for my $table (qw(threads runs run_queue checkpoints checkpoint_items)) {
        is $play->session->value("select count(*) from agent.$table where thread_id = '$thread'"), 0, $table;
    }
    is $play->session->value("select count(*) from agent.run_events where run_id = '$claim->{run_id}'"), 0,
        'run_events';
    is $play->session->value("select count(*) from agent.usage_events where thread_id = '$thread'"), 1,
        'usage_events';
    is +($play->api('get_thread', $thread))[0], 'thread_not_found';
};

subtest 'a deletion that somebody else completed leaves the thread that was created again' => sub {
    my $thread = $play->thread;
    $play->run($thread);
    is_deeply [ ($play->api('delete_thread', $thread, 'true'))[0, 1] ], [ 'ok', '' ], 'the next piece finds nothing to delete';
    is +($play->api('get_thread', $thread))[0], 'ok', 'the thread is left';
    is $play->session->value("select count(*) from agent.run_queue where thread_id = '$thread'"), 1, 'a thread that was created again keeps its run';
    is +($play->api('delete_thread', $thread))[0], 'ok', 'the thread can be deleted again';
};

subtest 'the worker of a run whose thread was deleted is fenced' => sub {
    my $worker = $play->worker;
    my $thread = $play->thread;
    $play->run($thread);
    my ($claim) = $play->claim($worker);
    is +($play->api('delete_thread', $thread))[0], 'ok';
    is_deeply $play->check($worker, $claim), { $claim->{run_id} => 'lost' };
    is_deeply $play->save($worker,
        AgentSQL::Play::event($claim, 0, 'metadata', {}),
        AgentSQL::Play::checkpoint($claim),
        AgentSQL::Play::finish($claim)), { $claim->{run_id} => [ 'fenced', 'f' ] };
    is $play->session->value("select count(*) from agent.checkpoints where thread_id = '$thread'"), 0;
    is_deeply $play->release($worker, 'true', $claim), { $claim->{run_id} => 'gone' };
};

# A search among the threads with that member of metadata: the ids, then next and total.
sub search {
    my ($kind, %request) = @_;
    my ($row) = $play->session->query("select body, next, total from agent.search_threads('$AgentSQL::DEPLOYMENT', '"
        . AgentSQL::encode({ metadata => { kind => $kind }, %request }) . "')");
    return ([ map { $_->{thread_id} } @{ AgentSQL::decode($row->[0]) } ], @{$row}[ 1, 2 ]);
}

sub count {
    my ($kind, %request) = @_;
    return $play->body('count_threads', AgentSQL::encode({ metadata => { kind => $kind }, %request }));
}

subtest 'search_threads returns those that were changed last first, in pages' => sub {
    my @threads = map {
        $play->session->query("set agent.now = '2031-01-01T0$_:00:00Z'");
        $play->thread(metadata => { kind => 'page' });
    } 1 .. 3;
    $play->session->query("set agent.now = '2031-01-01T04:00:00Z'");
    $play->api('update_thread', $threads[0], '{"metadata":{"more":1}}');
    is_deeply [ search('page') ], [ [ @threads[ 0, 2, 1 ] ], '', 3 ];
    is_deeply [ search('page', limit => 2) ], [ [ @threads[ 0, 2 ] ], 2, 3 ], 'next is the offset of the next page';
    is_deeply [ search('page', limit => 2, offset => 2) ], [ [ $threads[1] ], '', 3 ], 'the last page has none';
    is_deeply +(search('page', sort_order => 'asc'))[0], [ @threads[ 1, 2, 0 ] ], 'ascending';
    is_deeply +(search('page', sort_by => 'created_at'))[0], [ reverse @threads ], 'sorted by creation';
    is_deeply +(search('page', sort_by => 'thread_id', sort_order => 'asc'))[0], [ sort @threads ], 'sorted by id';
    is_deeply +(search('page', sort_by => 'state_updated_at'))[0], [ sort @threads ], 'equal ones are sorted by id';
};

subtest 'search_threads finds by metadata, ids and status' => sub {
    my ($red, $blue) = map { $play->thread(metadata => { kind => 'find', color => $_, tags => [ 'a', $_ ] }) } qw(red blue);
    my $nested = $play->thread(metadata => { kind => 'find', in => { deep => { a => 1 } } });
    my $run = $play->run($blue);
    my $is = sub {
        my ($title, $ids, @request) = @_;
        my ($found) = search('find', @request);
        is_deeply [ sort @$found ], [ sort @$ids ], $title;
        is count('find', @request), @$ids, "$title: the count";
        return;
    };
    $is->('members that the metadata contains', [$red], metadata => { color => 'red' , kind => 'find' });
    $is->('elements too', [$blue], metadata => { kind => 'find', tags => ['blue'] });
    $is->('the status', [$blue], status => 'busy');
    $is->('ids', [$red], ids => [ $red, AgentSQL::uuid() ]);
    $is->('all of the conditions', [], ids => [$red], status => 'busy');
    $is->('excluded ones', [ $red, $nested ], exclude_metadata => { color => 'blue' });
    $is->('several of them', [$nested], exclude_metadata => [ { color => 'blue' }, { tags => ['red'] } ]);
    $is->('null is not a condition', [ $red, $blue, $nested ], map { $_ => undef } qw(ids status exclude_metadata));
    $is->('an empty object', [$nested], metadata => { kind => 'find', in => {} });
    $is->('empty ones only', [$nested], metadata => { in => { deep => {} } });
    $is->('an empty array', [ $red, $blue ], metadata => { tags => [] });
    $is->('an empty array, and ids', [$red], metadata => { tags => [] }, ids => [ $red, $nested ]);
    $play->api('delete_thread', $_) for $red, $nested;
    $is->('a deleted thread is not found', [$blue]);
};

subtest 'search_threads shows the records of get_thread, or some members' => sub {
    my $thread = $play->thread(metadata => { kind => 'record' });
    my $request = { metadata => { kind => 'record' } };
    is_deeply $play->body('search_threads', AgentSQL::encode($request)), [ $play->body('get_thread', $thread) ];
    is_deeply $play->body('search_threads', AgentSQL::encode({ %$request, select => [ 'thread_id', 'values' ] })),
        [ { thread_id => $thread, values => undef } ];
};

subtest 'threads of stateless runs are not found' => sub {
    $play->session->query("update agent.threads set temporary = true where thread_id = '" . $play->thread(metadata => { kind => 'hidden' }) . "'");
    is_deeply [ search('hidden') ], [ [], '', 0 ];
    is count('hidden'), 0;
};

subtest 'a page of more than p_max_bytes is not composed; one chosen among more than 10,000 threads waits for its turn' => sub {
    my $session = $play->session;
    $play->thread(metadata => { kind => 'long', text => 'x' x 400 });
    my $is_left = sub {
        my ($function, $bytes, %request) = @_;
        return $session->value("select body is null from agent.$function('$AgentSQL::DEPLOYMENT', '" . AgentSQL::encode(\%request) . "', $bytes)");
    };
    my %long = (metadata => { kind => 'long' });
    is_deeply [ map { $is_left->('search_threads', $_, %long) } 300, 3000 ], [ 't', 'f' ];
    $session->query("insert into agent.threads (deployment_id, thread_id, metadata, created_at, updated_at)
        select '$AgentSQL::DEPLOYMENT', gen_random_uuid(), '{\"kind\": \"long\"}', agent.now(), agent.now() from generate_series(1, 10000)");
    is $is_left->('search_threads', 30_000), 't', 'those of an hour are sorted';
    is $is_left->('search_threads', 30_000, limit => 1, sort_order => 'asc'), 'f', 'the first hour has few';
    $session->query("set agent.now = '2031-01-01T05:00:00Z'");
    my @last = reverse map { $play->thread } 1 .. 2;
    $session->query("update agent.threads set updated_at = updated_at + interval '1 minute' where thread_id = '$last[0]'");
    is $is_left->('search_threads', 30_000, limit => 1), 'f', 'the last ones are found by an index';
    is_deeply [ map { $_->{thread_id} } @{ $play->body('search_threads', '{"limit": 2}') } ], \@last, 'in their order';
    is $is_left->('search_threads', 30_000, %{$_}), 't', AgentSQL::encode($_) . ' is in an hour with many' for { limit => 2 }, { limit => 1, offset => 1 };
    is $is_left->('search_threads', 30_000, offset => 9_999), 't', 'a page that ends beyond the 10,000th';
    is_deeply [ map { $is_left->('search_threads', 30_000, %{$_}) } \%long, { status => 'idle' }, { sort_by => 'created_at' } ], [ ('t') x 3 ];
    is_deeply [ map { $is_left->('search_threads', $_, %long) } 'null' ], ['f'], 'a search without a limit of bytes is composed';
    is +(search('long'))[2], '', 'its total is not counted';
    is_deeply [ map { $is_left->('count_threads', $_, %long) } 1, 'null' ], [ 't', 'f' ], 'a count without a limit of bytes is made at once';
    is count('long'), 10_001;
    is $is_left->($_, 30_000, metadata => { kind => 'find' }), 'f', "$_: metadata of scalars limits them" for qw(search_threads count_threads);
    for my $metadata ({ in => {} }, { kind => ['long'] }, { kind => 'long', in => {} }, { in => { deep => [] } }) {
        is $is_left->($_, 30_000, metadata => $metadata), 't', "$_: " . AgentSQL::encode($metadata) . ' does not' for qw(search_threads count_threads);
    }
    # As in the functions.
    $session->query("set $_ = off") for qw(enable_seqscan enable_sort);
    my $cost = join "\n", map { @$_ } $session->query("explain select t.* from
        agent.find_threads('$AgentSQL::DEPLOYMENT', null, null, null, null) t order by t.updated_hour desc, t.updated_at desc limit 11");
    like $cost, qr/Index Scan Backward using threads_updated/, 'the order of the last change is that of an index';
    like join("\n", map { @$_ } $session->query("explain select count(*) from
        agent.find_threads('$AgentSQL::DEPLOYMENT', null, '{\"kind\": \"find\"}', null, null) t")), qr/on threads_metadata/, 'metadata is found by an index';
    for my $metadata ('{"in": {}}', '{"in": []}', '{"in": {"deep": [[], {}]}}') {
        my $plan = join "\n", map { @$_ } $session->query("explain select count(*) from
            agent.find_threads('$AgentSQL::DEPLOYMENT', null, '$metadata', null, null) t");
        like $plan, qr/Index Cond: \(deployment_id = /, "$metadata, of which it has no key, is looked for in the deployment";
        unlike $plan, qr/threads_metadata/, 'the index of all deployments is not scanned for metadata without a key';
    }
};

done_testing;
