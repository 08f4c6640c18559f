# SPDX-License-Identifier: Apache-2.0
# Run records: creation, reading, listing, deletion.
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

subtest 'a run record has the fields of the API in their order' => sub {
    my $thread = $play->thread;
    my ($code, $body, $run) = $play->try_run($thread,
        request => '{"input": {"messages": [{"role": "user", "content": "hi"}]}}');
    my $record = AgentSQL::decode($body);
    is_deeply [ $body =~ /(?:^\{|, )"(run_id|thread_id|assistant_id|created_at|updated_at|metadata|status|kwargs|multitask_strategy|error)" : /g ],
        [qw(run_id thread_id assistant_id created_at updated_at metadata status kwargs multitask_strategy error)];
    is_deeply [ sort keys %{ $record->{kwargs} } ],
        [ sort qw(input config webhook temporary stream_mode feedback_keys interrupt_after interrupt_before
            command context subgraphs resumable durability) ];
    like $record->{$_}, qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00$/, $_ for qw(created_at updated_at);
    is $record->{assistant_id}, $AgentSQL::ASSISTANT;
    is_deeply $record->{kwargs}{config}{configurable}, {
        run_id => $run, user_id => '', graph_id => 'agent', thread_id => $thread,
        assistant_id => $AgentSQL::ASSISTANT, checkpoint_id => undef,
    };
    is $record->{kwargs}{config}{metadata}{created_by}, 'system';
    is_deeply $record->{kwargs}{stream_mode}, ['values'];
    ok !$record->{kwargs}{temporary};
    is $record->{kwargs}{$_}, undef, "$_ is null"
        for qw(webhook feedback_keys interrupt_after interrupt_before command);
    is_deeply $record->{metadata}, {};
    my ($again, $same) = $play->session->call('get_run', $AgentSQL::DEPLOYMENT, $thread, $run);
    is $same, $body, 'get_run shows the same text';
};

subtest 'input keeps the exact text of the client' => sub {
    my $input = '{"b":1.10, "a" : 1e2,"b": [ ],"\u00e9":12345678901234567890}';
    my ($code, $body) = $play->try_run($play->thread, request => "{\"input\":$input}");
    is index($body, $input) >= 0, 1;
};

subtest 'a command without a value is none' => sub {
    for my $empty ('{}', 'null', '{"resume": null}', '{"update": { }, "goto": [ ], "resume": null}', '{"update": [], "goto": ""}') {
        my ($code, $body) = $play->try_run($play->thread, request => qq({"command": $empty}));
        is AgentSQL::decode($body)->{kwargs}{command}, undef, $empty;
    }
    for my $given ('{"resume": ""}', '{"resume": false}', '{"resume": {}}', '{"update": {"a": null}}', '{"update": [["a", 1]]}', '{"goto": "a"}') {
        my ($code, $body) = $play->try_run($play->thread, request => qq({"command": $given}));
        ok index($body, $given) >= 0, $given;
    }
};

subtest 'timestamps are in UTC with six digits whatever the session\'s time zone' => sub {
    my $session = $play->session;
    my $thread = $play->thread;
    $session->query("set timezone = 'Asia/Kolkata'");
    $session->query("set agent.now = '2024-08-30T23:07:38.242730Z'");
    my $run = $play->run($thread);
    $session->query('reset agent.now');
    is $play->body('get_run', $thread, $run)->{created_at}, '2024-08-30T23:07:38.242730+00:00';
    $session->query('reset timezone');
};

subtest 'request fields arrive in the record and in the start message' => sub {
    my $thread = $play->thread;
    $play->session->query("delete from agent.run_queue where state = 'ready'");
    my $run = $play->run($thread, user => 'u1', strategy => 'interrupt', request => {
        input => { x => 1 }, command => { resume => 1 }, metadata => { m => 1 },
        config => { tags => ['t'], recursion_limit => 7, configurable => { run_id => 'forged', user_id => 'forged', own => 2 } },
        context => { c => 1 }, webhook => 'http://x/', interrupt_before => ['tools'], interrupt_after => '*',
        stream_mode => [ 'updates', 'custom' ], stream_subgraphs => Cpanel::JSON::XS::true,
        stream_resumable => Cpanel::JSON::XS::true, feedback_keys => ['k'], durability => 'sync',
    });
    my $kwargs = $play->body('get_run', $thread, $run)->{kwargs};
    is $kwargs->{config}{configurable}{run_id}, $run, 'ids cannot be forged';
    is $kwargs->{config}{configurable}{own}, 2;
    is $kwargs->{config}{configurable}{user_id}, 'u1';
    is_deeply $kwargs->{config}{tags}, ['t'];
    is $kwargs->{config}{recursion_limit}, 7;
    is $kwargs->{config}{metadata}{m}, 1, 'run metadata is merged into config.metadata';
    is $kwargs->{webhook}, 'http://x/';
    is_deeply $kwargs->{feedback_keys}, ['k'];
    is $kwargs->{durability}, 'sync';
    ok $kwargs->{subgraphs} && $kwargs->{resumable};
    is $play->body('get_run', $thread, $run)->{multitask_strategy}, 'interrupt';

    my ($claim) = $play->claim($worker);
    my $start = AgentSQL::decode($claim->{start});
    is_deeply $start->{input}, { x => 1 };
    is_deeply $start->{command}, { resume => 1 };
    is_deeply $start->{context}, { c => 1 };
    is_deeply $start->{stream_modes}, [ 'updates', 'custom' ];
    is_deeply $start->{interrupt_before}, ['tools'];
    is $start->{interrupt_after}, '*';
    is_deeply $start->{config}, $kwargs->{config};
    is $start->{checkpoint}, undef;
    unlike $claim->{start}, qr/[\r\n]/, 'the start message is one line';
};

subtest 'without a user a run may name one in its configuration' => sub {
    my $thread = $play->thread;
    my $run = $play->run($thread, request => { config => { configurable => { user_id => 'theirs' } } });
    is $play->body('get_run', $thread, $run)->{kwargs}{config}{configurable}{user_id}, 'theirs';
};

subtest 'headers of the request are members of config.configurable, over those of the body' => sub {
    my %headers = ('x-tenant' => 'acme', 'user-agent' => 'a "b"', user_id => 'h', thread_id => 'h', run_id => 'h', assistant_id => 'h',
        graph_id => 'h', checkpoint_id => 'h', checkpoint_ns => 'h', checkpoint_map => 'h', langgraph_auth_user_id => 'ann');
    my %with = (headers => AgentSQL::encode(\%headers), request => { config => { configurable => { 'x-tenant' => 'body', own => 1,
        langgraph_auth_user_id => 'eve', langgraph_auth_permissions => ['admin'] } } });
    my $thread = $play->thread;
    my $run = $play->run($thread, %with);
    for my $configurable ($play->body('get_run', $thread, $run)->{kwargs}{config}{configurable},
        AgentSQL::decode(($play->try_stateless(%with))[1])->{kwargs}{config}{configurable}) {
        is_deeply { map { $_ => $configurable->{$_} } 'x-tenant', 'user-agent', 'own' }, { 'x-tenant' => 'acme', 'user-agent' => 'a "b"', own => 1 };
        is_deeply [ grep { ($configurable->{$_} // '') eq 'h' } sort keys %{$configurable} ], [], 'they are never identifiers or users';
        is $configurable->{user_id}, '', 'the user is that of x-user-id only';
        is_deeply { map { $_ => $configurable->{$_} } grep { /\Alanggraph_auth_/ } keys %{$configurable} }, { langgraph_auth_user_id => 'ann' },
            'the authenticated user is what the server says, never the client';
    }
};

subtest 'a stream mode given as a string becomes an array' => sub {
    my $thread = $play->thread;
    my $run = $play->run($thread, request => { stream_mode => 'messages' });
    is_deeply $play->body('get_run', $thread, $run)->{kwargs}{stream_mode}, ['messages'];
};

subtest 'a start message has no line break even when the input has' => sub {
    my $thread = $play->thread;
    $play->session->query("delete from agent.run_queue where state = 'ready'");
    $play->run($thread, request => "{\"input\":\r\n{\"a\":\n1}}");
    my ($claim) = $play->claim($worker);
    unlike $claim->{start}, qr/[\r\n]/;
    is AgentSQL::decode($claim->{start})->{input}{a}, 1;
};

subtest 'config, context and metadata of the assistant are the base of those of the run' => sub {
    my $id = AgentSQL::uuid();
    $play->session->query("insert into agent.assistants
        (deployment_id, assistant_id, graph_id, name, config, context, metadata, created_at, updated_at)
        values ('$AgentSQL::DEPLOYMENT', '$id', 'agent', 'mine',
        '{\"tags\": [\"base\"], \"configurable\": {\"a\": 1, \"b\": 1}}', '{\"c\": 1, \"d\": 1}', '{\"e\": 1}', now(), now())");
    my $thread = $play->thread(metadata => { t => 1 });
    my $run = $play->run($thread, assistant => $id, graph => undef,
        request => { config => { configurable => { b => 2 } }, context => { d => 2 }, metadata => { r => 1 } });
    my $kwargs = $play->body('get_run', $thread, $run)->{kwargs};
    is_deeply $kwargs->{config}{tags}, ['base'];
    is $kwargs->{config}{configurable}{a}, 1;
    is $kwargs->{config}{configurable}{b}, 2;
    is_deeply $kwargs->{context}, { c => 1, d => 2 };
    is $kwargs->{config}{metadata}{$_}, 1, "metadata $_" for qw(e t r);
};

subtest 'the metadata and tags of a run have at most 16 KB, those of its config, assistant and thread included' => sub {
    my $id = AgentSQL::uuid();
    my $of = sub { return { map { ("$_[0]$_" => 'x' x 500) } 1 .. 7 } };
    $play->session->query("insert into agent.assistants
        (deployment_id, assistant_id, graph_id, name, config, context, metadata, created_at, updated_at)
        values ('$AgentSQL::DEPLOYMENT', '$id', 'agent', 'long', '" . AgentSQL::encode({ metadata => $of->('a') }) . "', '{}', '"
            . AgentSQL::encode($of->('b')) . "', now(), now())");
    my $thread = $play->thread(metadata => $of->('t'));
    my $try = sub {
        my (%request) = @_;
        my ($code, $body, $run) = $play->try_run($thread, assistant => $id, graph => undef, request => \%request);
        $play->session->query("delete from agent.run_queue where run_id = '$run'");
        return ($code, $body);
    };
    is +($try->(metadata => $of->('r')))[0], 'ok', 'four times 3.5 KB are admitted';
    my ($code, $body) = $try->(metadata => $of->('r'), config => { metadata => $of->('c') });
    is $code, 'invalid_value', 'five times 3.5 KB are not';
    like $body, qr{\A/metadata: expected at most 16384 bytes of metadata and tags}, 'the error tells the limit';
    is +($try->(metadata => $of->('r'), config => { tags => [ 'x' x 4000 ] }))[0], 'invalid_value', 'tags count too';
    is +($try->(config => { tags => [ 'x' x 1000 ], configurable => { long => 'x' x 20_000 } }))[0], 'ok',
        'other members of a config do not';
};

subtest 'null for metadata or configurable counts as absent' => sub {
    my $session = $play->session;
    my $thread = AgentSQL::uuid();
    my ($code, $body) = $play->api('create_thread', $thread, 'raise', '{"metadata": null}');
    is_deeply $body->{metadata}, {}, 'metadata of a thread';
    my $run = $play->run($thread, request => '{"metadata": null, "config": {"metadata": null, "configurable": null}}');
    my $config = $play->body('get_run', $thread, $run)->{kwargs}{config};
    is $config->{metadata}{graph_id}, 'agent', 'metadata of a run';
    is $config->{configurable}{run_id}, $run;
    is $play->body('get_thread', $thread)->{metadata}{graph_id}, 'agent';
    $session->query("delete from agent.run_queue where run_id = '$run'");
};

subtest 'an unknown assistant is assistant_not_found, one of a graph that is not served graph_not_found' => sub {
    my $thread = $play->thread;
    is +($play->try_run($thread, assistant => AgentSQL::uuid(), graph => undef))[0], 'assistant_not_found';
    $play->session->query('begin');
    $play->session->query("update agent.workers set state = 'dead', dead_at = agent.now(), lease_until = agent.now() - interval '2 hours' where state <> 'dead'");
    is +($play->try_run($thread, graph => undef, graphs => ['other']))[0], 'graph_not_found';
    $play->session->query('rollback');
    is +($play->try_run($thread, graph => undef, graphs => ['other']))[0], 'ok', 'one that another host executes';
    is +($play->try_run($play->thread, graph => undef, graphs => [ 'other', 'agent' ]))[0], 'ok', 'one of this host';
};

subtest 'the first run of a graph that no runner has reported creates its system assistant' => sub {
    my $id = '15e14de9-4afb-5a11-8afe-59e1e9ce4e4a';
    my $thread = $play->thread;
    $play->run($thread, assistant => $id, graph => 'shop', graphs => ['shop']);
    is_deeply [ $play->session->query("select graph_id, name, version, metadata ->> 'created_by'
        from agent.assistants where assistant_id = '$id'") ], [ [ 'shop', 'shop', 1, 'system' ] ];
};

subtest 'a run on an unknown thread is thread_not_found, unless if_not_exists is create' => sub {
    my $thread = AgentSQL::uuid();
    is +($play->try_run($thread))[0], 'thread_not_found';
    is +($play->try_run($thread, request => { if_not_exists => 'reject' }))[0], 'thread_not_found';
    is +($play->try_run($thread, strategy => 'reject', request => { if_not_exists => 'create' }))[0], 'ok';
    is $play->thread_status($thread), 'busy';
};

subtest 'an unknown checkpoint is checkpoint_not_found, in both forms' => sub {
    my $thread = $play->thread;
    my $id = AgentSQL::uuid();
    is +($play->try_run($thread, request => { checkpoint_id => $id }))[0], 'checkpoint_not_found';
    is +($play->try_run($thread, request => { checkpoint => { checkpoint_id => $id } }))[0], 'checkpoint_not_found';
    is $play->thread_status($thread), 'idle', 'the thread is unchanged';
};

subtest 'a run marks its thread with graph and assistant' => sub {
    my $thread = $play->thread(metadata => { own => 1 });
    $play->run($thread);
    is_deeply $play->body('get_thread', $thread)->{metadata},
        { own => 1, graph_id => 'agent', assistant_id => $AgentSQL::ASSISTANT };
};

subtest 'after_seconds delays the run' => sub {
    my $session = $play->session;
    $session->query("delete from agent.run_queue where state = 'ready'");
    my $thread = $play->thread;
    $session->query("set agent.now = '2030-01-01T00:00:00Z'");
    my $later = $play->run($thread, request => { after_seconds => 1.5 });
    my $other = $play->run($play->thread);
    is_deeply [ map { $_->{run_id} } $play->claim($worker) ], [$other];
    is $play->status($thread, $later), 'pending';
    $session->query("set agent.now = '2030-01-01T00:00:01.6Z'");
    my ($claim) = $play->claim($worker, min => 1_000_000_000);
    is $claim, undef, 'a low-water mark above every number hides it';
    my $mark = $session->value("select max(ready_seq) - 1 from agent.run_queue where state = 'ready'");
    ($claim) = $play->claim($worker, min => $mark);
    is $claim->{run_id}, $later, 'a due run gets a number above all marks';
    $session->query('reset agent.now');
};

subtest 'runs are listed newest first, by page, by status, by member' => sub {
    my $session = $play->session;
    $session->query("delete from agent.run_queue where state = 'ready'");
    my $thread = $play->thread;
    is_deeply $play->body('list_runs', $thread, 10, 0, undef, undef), [], 'empty array for none';
    my @runs = map { $play->run($thread) } 1 .. 4;
    my ($claim) = $play->claim($worker);
    $play->save($worker, AgentSQL::Play::finish($claim));
    my $ids = sub { [ map { $_->{run_id} } @{ $play->body('list_runs', $thread, @_) } ] };
    is_deeply $ids->(10, 0, undef, undef), [ reverse @runs ];
    is_deeply $ids->(2, 1, undef, undef), [ @runs[2, 1] ];
    is_deeply $ids->(10, 0, 'success', undef), [ $runs[0] ];
    is_deeply $ids->(10, 0, 'pending', undef), [ reverse @runs[1 .. 3] ];
    my ($code, $body) = $session->call('list_runs', $AgentSQL::DEPLOYMENT, $thread, 1, 0, undef, [ 'status', 'run_id' ]);
    is_deeply AgentSQL::decode($body), [ { run_id => $runs[3], status => 'pending' } ];
    is +($play->api('list_runs', AgentSQL::uuid(), 10, 0, undef, undef))[0], 'thread_not_found';
};

subtest 'runs that are larger than asked for are not read' => sub {
    my $session = $play->session;
    my $thread = $play->thread;
    my @runs = map { $play->run($thread) } 1 .. 2;
    my %read = (
        list => sub { $session->call('list_runs', $AgentSQL::DEPLOYMENT, $thread, 10, 0, undef, undef, @_) },
        get  => sub { $session->call('get_run', $AgentSQL::DEPLOYMENT, $thread, $runs[1], @_) },
    );
    my $is_read = sub { my ($code, $body) = $read{$_[0]}->($_[1]); return $code eq 'ok' ? length $body : $code };
    my $set = sub { $session->query("update agent.runs set input = to_json($_[0]::text) where run_id = '$runs[1]'") };
    cmp_ok $is_read->('list', 100_000), '>', 500, 'small ones are read';
    is $is_read->('list', 500), 0, 'two records of more than 500 bytes';
    is $session->value("select next is null from agent.list_runs('$AgentSQL::DEPLOYMENT', '$thread', 1, 0, null, null, 10)"), 't', 'without a next page';
    $set->("(select string_agg(md5(n::text), '') from generate_series(1, 4000) n)");
    is $is_read->($_, 100_000), 0, "$_: one of 128,000 bytes" for sort keys %read;
    cmp_ok $is_read->($_, 200_000), '>', 128_000, "$_: a limit that is not exceeded" for sort keys %read;
    cmp_ok $is_read->($_, undef), '>', 128_000, "$_: no limit" for sort keys %read;
    my $count = sub { $session->value("select coalesce(sum(idx_scan), 0) from pg_stat_xact_all_tables where relid in
        (select reltoastrelid from pg_class where oid = 'agent.runs'::regclass)") };
    my $fetches = sub {
        my ($what, $limit) = @_;
        $session->query('begin');
        my $before = $count->();
        $read{$what}->($limit);
        my $after = $count->();
        $session->query('rollback');
        return $after - $before;
    };
    is $fetches->($_, 100_000), 0, "$_: what is stored apart is not fetched" for sort keys %read;
    cmp_ok $fetches->($_, undef), '>', 0, "$_: the count of fetches is right" for sort keys %read;
    $set->("repeat('a', 4000000)");
    is $fetches->($_, 262_144), 0, "$_: a compressed one of 4 MB is not fetched" for sort keys %read;
    $set->("repeat('a', 400000)");
    is $is_read->('list', 262_144), 0, 'a compressed one of 400,000 bytes';
};

subtest 'a run does not write the metadata of its thread again' => sub {
    my $session = $play->session;
    my $thread = $play->thread;
    $session->query("update agent.threads set metadata = jsonb_build_object('large',
        (select string_agg(md5(n::text), '') from generate_series(1, 400) n)) where thread_id = '$thread'");
    my $written = sub {
        my $count = sub { $session->value("select sum(n_tup_ins) from pg_stat_xact_all_tables where relid in
            (select reltoastrelid from pg_class where oid = 'agent.threads'::regclass)") };
        $session->query('begin');
        my $before = $count->();
        $play->run($thread);
        my $after = $count->();
        $session->query('commit');
        return $after - $before;
    };
    cmp_ok $written->(), '>', 0, 'the first run adds its graph and its assistant';
    is $written->(), 0, 'the second one has the same';
};

subtest 'a large list is read in parts' => sub {
    my $session = $play->session;
    my $thread = $play->thread;
    my @runs = reverse map { $play->run($thread) } 1 .. 5;
    my ($code, $keys) = $session->call('list_runs', $AgentSQL::DEPLOYMENT, $thread, 10, 0, undef, undef, undef, 'true');
    is $keys, '{' . join(',', @runs) . '}', 'its keys are the ids of the runs, newest first';
    my $part = sub { $session->call('read_page', $AgentSQL::DEPLOYMENT, $_[0], $thread, $_[1] // $keys, @_[ 2 .. 5 ]) };
    my $bytes = length +($part->('runs', "{$runs[0]}", undef, undef, '1.0', 1))[1];
    my ($cursor, @parts) = '1.0';
    while ($cursor ne '') {
        push @parts, ($part->('runs', undef, undef, undef, $cursor, 2 * $bytes))[1];
        $cursor = $session->extra;
        $session->query("delete from agent.runs where run_id = '$runs[3]'") if @parts == 1;
    }
    cmp_ok scalar @parts, '>', 1, 'there are several';
    cmp_ok length $parts[0], '<', 4 * $bytes, 'a part has the bytes asked for and a record more';
    is_deeply [ map { $_->{run_id} } @{ AgentSQL::decode('[' . join('', @parts) . ']') } ], [ @runs[ 0 .. 2, 4 ] ],
        'together they are the list without a run that was deleted since';
    is_deeply AgentSQL::decode(($part->('runs', "{$runs[0]}", '{status}', undef, '1.0', 1))[1]), { status => 'pending' }, 'of selected members';
    is_deeply [ $part->('runs', "{$runs[3]}", undef, undef, '1.0', 1) ], [ 'ok', '' ], 'of none';
    is +($part->('run', "{$runs[3]}", undef, undef, '1.0', 1))[0], 'run_not_found', 'a single run must exist';
};

subtest 'the page of a large list is chosen by the lengths of its records' => sub {
    my $session = $play->session;
    my $thread = $play->thread;
    my @runs = reverse map { $play->run($thread) } 1 .. 6;
    my $set = sub { $session->query("update agent.runs set input = to_json($_[0]::text) where thread_id = '$thread'") };
    my $list = sub { $session->call('list_runs', $AgentSQL::DEPLOYMENT, $thread, 10, 0, undef, undef, undef, 'true') };
    for my $text (q{repeat('a', 5000000)}, q{(select string_agg(md5(n::text), '') from generate_series(1, 156250) n)}) {
        $set->($text);
        my (undef, $keys) = $list->();
        is $session->extra, 3, 'three of 5 MB';
        is $keys, '{' . join(',', @runs[ 0 .. 2 ]) . '}', 'the first three';
    }
};

subtest 'a run is found under its own thread only' => sub {
    my $run = $play->run($play->thread);
    my $other = $play->thread;
    for my $function (qw(get_run join_run delete_run)) {
        is +($play->api($function, $other, $run))[0], 'run_not_found', $function;
    }
    is +($play->api('cancel_run', $other, $run, 'interrupt'))[0], 'run_not_found', 'cancel_run';
    is_deeply [ $play->events($other, $run) ], [], 'read_events';
};

subtest 'deleting a run that is not finished is refused' => sub {
    my $thread = $play->thread;
    my $run = $play->run($thread);
    is +($play->api('delete_run', $thread, $run))[0], 'run_active';
    is $play->status($thread, $run), 'pending';
    is +($play->api('delete_run', $thread, AgentSQL::uuid()))[0], 'run_not_found';
};

subtest 'deleting a run deletes its events and checkpoints, and resets the head to the previous checkpoint' => sub {
    my $session = $play->session;
    $session->query("delete from agent.run_queue where state = 'ready'");
    my $thread = $play->thread;
    my (@ids, @claims);
    for my $n (0 .. 2) {
        $play->run($thread);
        my ($claim) = $play->claim($worker);
        push @claims, $claim;
        push @ids, AgentSQL::uuid(), AgentSQL::uuid();
        $play->save($worker,
            AgentSQL::Play::event($claim, 0, 'metadata', {}),
            AgentSQL::Play::checkpoint($claim, id => $ids[-2], parent => $n ? $ids[-3] : undef,
                messages => [ 0 .. $n * 2 ]),
            AgentSQL::Play::checkpoint($claim, id => $ids[-1], parent => $ids[-2], messages => [ 0 .. $n * 2 + 1 ],
                next => $n == 1 ? ['tools'] : []),
            AgentSQL::Play::finish($claim));
    }
    is +($play->api('delete_run', $thread, $claims[0]{run_id}))[0], 'ok', 'an old run';
    is_deeply $play->messages($thread), [ 0 .. 5 ], 'the head is unchanged';
    is $play->body('get_state', $thread, $ids[2])->{parent_checkpoint_id}, undef,
        'the next run is attached to the remaining ancestor';
    is +($play->api('get_state', $thread, $ids[0]))[0], 'checkpoint_not_found';
    is_deeply [ $play->events($thread, $claims[0]{run_id}) ], [];

    is +($play->api('delete_run', $thread, $claims[2]{run_id}))[0], 'ok', 'the last run can be deleted';
    is_deeply $play->messages($thread), [ 0 .. 3 ];
    is $play->body('get_state', $thread, undef)->{checkpoint_id}, $ids[3];
    is $play->thread_status($thread), 'interrupted', 'the status follows the state';
    is $session->value("select count(*) from agent.checkpoint_items where thread_id = '$thread'"), 4,
        'elements that no other checkpoint contains are deleted';
    is $session->value('select agent.sweep_state()'), 0, 'nothing is left to sweep';
    is +($play->api('delete_run', $thread, $claims[2]{run_id}))[0], 'run_not_found', 'twice';

    is +($play->api('delete_run', $thread, $claims[1]{run_id}))[0], 'ok', 'the only run';
    is_deeply $play->body('get_state', $thread, undef)->{values}, {};
    is $play->thread_status($thread), 'idle';
};

subtest 'deleting a run in the middle keeps the chain of checkpoints connected' => sub {
    my $session = $play->session;
    $session->query("delete from agent.run_queue where state = 'ready'");
    my $thread = $play->thread;
    my (@ids, @runs);
    for my $n (0 .. 2) {
        push @runs, $play->run($thread);
        my ($claim) = $play->claim($worker);
        push @ids, AgentSQL::uuid(), AgentSQL::uuid();
        $play->save($worker,
            AgentSQL::Play::checkpoint($claim, id => $ids[-2], parent => $n ? $ids[-3] : undef),
            AgentSQL::Play::checkpoint($claim, id => $ids[-1], parent => $ids[-2]),
            AgentSQL::Play::finish($claim));
    }
    $play->api('delete_run', $thread, $runs[1]);
    is $play->body('get_state', $thread, $ids[4])->{parent_checkpoint_id}, $ids[1];
};

subtest 'a run with a cycle of checkpoints can be deleted' => sub {
    my $session = $play->session;
    $session->query("delete from agent.run_queue where state = 'ready'");
    my $thread = $play->thread;
    my @ids = map { AgentSQL::uuid() } 1 .. 3;
    my @runs = map { $play->run($thread) } 1, 2;
    my ($claim) = $play->claim($worker);
    $play->save($worker,
        AgentSQL::Play::checkpoint($claim, id => $ids[0], parent => $ids[1]),
        AgentSQL::Play::checkpoint($claim, id => $ids[1], parent => $ids[0]),
        AgentSQL::Play::finish($claim));
    ($claim) = $play->claim($worker);
    $play->save($worker,
        AgentSQL::Play::checkpoint($claim, id => $ids[2], parent => $ids[1], messages => ['a']),
        AgentSQL::Play::finish($claim));
    # An endless recursion would otherwise fill the disk.
    $session->query("set statement_timeout = '1min'");
    is +($play->api('delete_run', $thread, $_))[0], 'ok' for @runs;
    $session->query('reset statement_timeout');
    is_deeply $play->messages($thread), [];
};

subtest 'a feedback key is encoded whatever standard_conforming_strings is' => sub {
    my $other = $db->session;
    $other->query('set standard_conforming_strings = off');
    is $other->value("select agent.compose_feedback('https://x/{key}', gen_random_uuid(), '[\"a b\"]') ->> 'a b'"),
        'https://x/a%20b';
    $other->close;
};

done_testing;
