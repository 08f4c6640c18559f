# SPDX-License-Identifier: Apache-2.0
# Assistants that clients create: versions, limits, deletion, and what their runs take from them.
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
my $deployment = $AgentSQL::DEPLOYMENT;
# The system assistant of the graph agent.
my $system = $AgentSQL::ASSISTANT;
$session->query("select agent.save_graphs('$deployment', '[{\"graph_id\":\"agent\",\"assistant_id\":\"$system\"}]')");

# (code, body) of a creation.
sub try_create {
    my ($id, %request) = @_;
    return $play->api('create_assistant', $id, ['agent'], AgentSQL::encode({ graph_id => 'agent', %request }));
}

# The id of a new one.
sub create {
    my (%request) = @_;
    my $id = AgentSQL::uuid();
    my ($code, $body) = try_create($id, %request);
    die "create_assistant: $code $body" if $code ne 'ok';
    return $id;
}

sub update {
    my ($id, %request) = @_;
    return $play->api('update_assistant', $id, ['agent'], AgentSQL::encode(\%request));
}

sub record { return $play->body('get_assistant', $_[0]) }

sub versions {
    my ($id, %request) = @_;
    return $play->body('list_assistant_versions', $id, AgentSQL::encode(\%request));
}

sub numbers { return join ' ', map { $_->{version} } @{ versions(@_) } }

sub run_of {
    my ($thread, $assistant, %with) = @_;
    return $play->run($thread, assistant => $assistant, graph => undef, %with);
}

sub remove {
    my ($id, $with_threads, $before) = @_;
    return $play->api('delete_assistant', $id, $with_threads ? 'true' : 'false', $before);
}

sub status_of {
    my ($code, $thread) = $play->api('get_thread', $_[0]);
    return $code eq 'ok' ? $thread->{status} : 'none';
}

# All calls of a deletion with threads: the last code, and the ids that changed.
sub remove_with_threads {
    my ($id) = @_;
    my ($code, $before, @changed);
    do {
        ($code, $before) = remove($id, 1, $before);
        push @changed, split / /, $session->extra;
    } while ($code eq 'waiting');
    return ($code, @changed);
}

subtest 'a new assistant is version 1' => sub {
    $session->query("set agent.now = '2030-01-01T12:00:00Z'");
    my $id = AgentSQL::uuid();
    my %given = (name => 'mine', description => 'd', config => { tags => ['x'] }, context => { c => 1 }, metadata => { m => 1 });
    my ($code, $body) = try_create($id, %given);
    is $code, 'ok';
    my $time = '2030-01-01T12:00:00.000000+00:00';
    my %record = (assistant_id => $id, graph_id => 'agent', version => 1, created_at => $time, %given);
    is_deeply $body, { %record, updated_at => $time };
    is_deeply record($id), $body;
    is_deeply versions($id), [ \%record ];
    $session->query('reset agent.now');
};

subtest 'members of a new assistant have defaults' => sub {
    is record(create())->{name}, 'Untitled';
    is record(create(name => ''))->{name}, 'agent', 'an empty name becomes that of the graph';
    my $record = record(create(config => undef, context => undef, metadata => undef, description => undef));
    is_deeply [ @{$record}{qw(config context metadata description)} ], [ {}, {}, {}, undef ], 'null is the same as none';
};

subtest 'an assistant of a graph that no server executes is graph_not_found' => sub {
    is +(try_create(AgentSQL::uuid(), graph_id => 'other'))[0], 'graph_not_found';
    my $id = create();
    is +(update($id, graph_id => 'other'))[0], 'graph_not_found';
    is +($play->api('update_assistant', $id, [ 'agent', 'other' ], '{"graph_id":"other"}'))[0], 'ok',
        'a graph of the own server that is not reported yet';
    is record($id)->{graph_id}, 'other';
    is +(update($id, name => 'x'))[0], 'ok', 'an update of other members';
};

subtest 'an id that is taken is assistant_exists, unless if_exists is do_nothing' => sub {
    my $id = create(name => 'first');
    is +(try_create($id))[0], 'assistant_exists';
    is +(try_create($id, if_exists => 'raise'))[0], 'assistant_exists';
    my ($code, $body) = try_create($id, if_exists => 'do_nothing', name => 'second', graph_id => 'other');
    is_deeply [ $code, $body->{name}, $body->{version} ], [ 'ok', 'first', 1 ];
};

subtest 'of two creations with one id at the same time, one finds the other' => sub {
    my $other = $db->session;
    my $id = AgentSQL::uuid();
    my $call = sub { "select code from agent.create_assistant('$deployment', '$id', '{agent}', '{\"graph_id\":\"agent\",\"if_exists\":\"$_[0]\"}')" };
    for my $case ([ raise => 'assistant_exists' ], [ do_nothing => 'ok' ]) {
        $id = AgentSQL::uuid();
        $session->query('begin');
        is $session->value($call->('raise')), 'ok';
        $other->send($call->($case->[0]));
        ok $other->waits_for($session), "$case->[0]: the second one waits for the first";
        $session->query('commit');
        is $other->receive, $case->[1], $case->[0];
        is numbers($id), '1';
    }
    $other->close;
};

subtest 'an update makes a version, merges metadata and replaces other members' => sub {
    my $id = create(name => 'a', description => 'd', config => { tags => ['a'] }, context => { a => 1 }, metadata => { a => 1, b => 1 });
    my ($code, $body) = update($id, config => { tags => ['b'] }, context => { b => 1 }, metadata => { b => 2, c => 3 });
    is $code, 'ok';
    is_deeply [ @{$body}{qw(version name description config context metadata)} ],
        [ 2, 'a', 'd', { tags => ['b'] }, { b => 1 }, { a => 1, b => 2, c => 3 } ];
    is_deeply record($id), $body;
    is +(update($id))[1]{version}, 3, 'an update without members makes a version';
    is_deeply [ map { $_->{config}{tags}[0] } @{ versions($id) } ], [qw(b b a)], 'earlier versions keep what they were';
    is +(update(AgentSQL::uuid()))[0], 'assistant_not_found';
};

subtest 'two updates at the same time make two versions' => sub {
    my $other = $db->session;
    my $id = create();
    my $call = sub { "select code from agent.update_assistant('$deployment', '$id', '{agent}', '{\"metadata\":{\"$_[0]\":1}}')" };
    $session->query('begin');
    is $session->value($call->('a')), 'ok';
    $other->send($call->('b'));
    ok $other->waits_for($session), 'the second one waits for the first';
    $session->query('commit');
    is $other->receive, 'ok';
    is numbers($id), '3 2 1';
    is_deeply record($id)->{metadata}, { a => 1, b => 1 };
    $other->close;
};

subtest 'an assistant can be set to an earlier version' => sub {
    my $id = create(name => 'one', metadata => { a => 1 });
    update($id, name => 'two', metadata => { b => 1 }, description => 'd');
    my ($code, $body) = $play->api('set_assistant_version', $id, 1);
    is_deeply [ $code, @{$body}{qw(version name metadata description)} ], [ 'ok', 1, 'one', { a => 1 }, undef ];
    is_deeply record($id), $body;
    is numbers($id), '2 1', 'no version is made or lost';
    my %first = (name => 'first', description => 'one', context => { c => 1 }, metadata => { m => 1 },
        config => { tags => ['a'], configurable => { x => 1 } });
    my $other = create(%first);
    my $before = record($other);
    update($other, name => 'second', description => 'two', context => { c => 2 }, metadata => { m => 2 },
        config => { tags => ['b'], configurable => { x => 2 } });
    $body = ($play->api('set_assistant_version', $other, 1))[1];
    is_deeply { map { $_ => $body->{$_} } keys %first }, \%first, 'each member is that of the version';
    is_deeply { %{ record($other) }, updated_at => undef }, { %{$before}, updated_at => undef }, 'the assistant is what it was';
    is +(update($id))[1]{version}, 3, 'the next update has a new number';
    is record($id)->{name}, 'one', 'an update changes the current version, not the newest one';
    is +($play->api('set_assistant_version', $id, 4))[0], 'version_not_found';
    is +($play->api('set_assistant_version', AgentSQL::uuid(), 1))[0], 'assistant_not_found';
};

subtest 'versions are listed in pages, and by their metadata' => sub {
    my $id = create(metadata => { v => 1 });
    update($id, metadata => { v => $_ }) for 2 .. 12;
    is numbers($id), join(' ', reverse 3 .. 12), 'ten by default';
    is $session->extra, 10, 'next is the offset of the next page';
    is numbers($id, limit => 2, offset => 10), '2 1';
    is $session->extra, '', 'the last page has no next one';
    is numbers($id, metadata => { v => 7 }), '7';
    is numbers($id, metadata => { v => 99 }), '';
    is +($play->api('list_assistant_versions', AgentSQL::uuid(), '{}'))[0], 'assistant_not_found';
};

subtest 'a list of versions ends at 16 MB' => sub {
    my $id = create(config => { configurable => { x => 'x' x 65_000 } }, context => { x => 'x' x 65_000 });
    $session->query("select agent.update_assistant('$deployment', '$id', '{agent}', '{}') from generate_series(1, 199)");
    my $page = versions($id, limit => 1000);
    cmp_ok scalar @$page, '>', 100;
    cmp_ok scalar @$page, '<', 140;
    is $session->extra, scalar @$page, 'next is the offset of the rest';
};

subtest 'the newest 1,000 versions are kept' => sub {
    my $id = create(name => 'first');
    $session->query("select agent.update_assistant('$deployment', '$id', '{agent}', '{\"name\":\"later\"}') from generate_series(1, 1000)");
    is $session->value("select count(*) || ' ' || min(version) from agent.assistant_versions where assistant_id = '$id'"), '1000 2';
    is +($play->api('set_assistant_version', $id, 1))[0], 'version_not_found';
    is +($play->api('set_assistant_version', $id, 2))[1]{version}, 2;
};

subtest 'config and context have at most 64 KB as they are stored, metadata 64 keys' => sub {
    my $id = create(metadata => { map { ("a$_" => 1) } 1 .. 64 });
    for my $case (
        [ config => '{"config":{"configurable":{"x":"' . 'x' x 65_536 . '"}}}' ],
        [ context => '{"context":{"x":"' . 'x' x 65_536 . '"}}' ],
        [ config => '{"config":{"configurable":{"x":[' . join(',', ('1e300') x 300) . ']}}}' ],
        [ metadata => '{"metadata":{"b":1}}' ]) {
        my ($member, $request) = @$case;
        my ($code, $detail) = $play->api('update_assistant', $id, ['agent'], $request);
        is $code, 'invalid_value', $member;
        like $detail, qr{^/$member: expected at most};
        my $new = AgentSQL::uuid();
        next if $member eq 'metadata';
        $request =~ s/^\{/{"graph_id":"agent",/;
        is +($play->api('create_assistant', $new, ['agent'], $request))[0], 'invalid_value';
        is +($play->api('get_assistant', $new))[0], 'assistant_not_found', 'nothing was created';
    }
    is numbers($id), '1', 'a refused update makes no version';
    is +(update($id, metadata => { a1 => 2 }))[0], 'ok', 'a key that exists can be changed';
};

subtest 'a deployment has at most 10,000 assistants' => sub {
    my $id = create();
    $session->query("insert into agent.assistants (deployment_id, assistant_id, graph_id, name, created_at, updated_at)
        select '$deployment', gen_random_uuid(), 'agent', 'bulk', now(), now()
        from generate_series(1, 10000 - (select count(*) from agent.assistants where deployment_id = '$deployment'))");
    is +(try_create(AgentSQL::uuid()))[0], 'too_many_assistants';
    is +(try_create($id, if_exists => 'do_nothing'))[0], 'ok', 'one that exists is found';
    is +(update($id))[0], 'ok', 'an assistant can be updated when there are too many';
    is +(remove($id))[0], 'ok';
    create();
    $session->query("delete from agent.assistants where name = 'bulk'");
};

subtest 'count_assistants counts what a search finds' => sub {
    create(name => 'Counted One', metadata => { k => 1 });
    create(name => 'counted two', metadata => { k => 2 });
    my $count = sub { $play->body('count_assistants', ['agent'], AgentSQL::encode({@_})) };
    is $count->(name => 'COUNTED'), 2;
    is $count->(name => 'counted', metadata => { k => 2 }), 1;
    is $count->(graph_id => 'none'), 0;
    is $count->(graph_id => undef, metadata => undef), $session->value("select count(*) from agent.assistants");
    is scalar @{ $play->body('search_assistants', ['agent'], '{"name":"counted"}') }, 2;
};

subtest 'assistants that are larger than asked for are not read' => sub {
    my $id = create(name => 'sizeable', context => { x => join '', map { sprintf '%08x', rand 2**32 } 1 .. 4000 });
    create(name => 'sizeable') for 1 .. 2;
    my %read = (
        search_assistants       => [ ['agent'], '{"name":"sizeable"}' ],
        list_assistant_versions => [ $id, '{}' ],
    );
    my $length = sub { length +($session->call($_[0], $AgentSQL::DEPLOYMENT, @{ $read{ $_[0] } }, $_[1]))[1] };
    for my $function (sort keys %read) {
        is $length->($function, 20_000), 0, "$function: one of 32,000 bytes";
        cmp_ok $length->($function, $_), '>', 32_000, "$function: " . ($_ ? 'a limit that is not exceeded' : 'no limit') for 60_000, undef;
    }
    is $length->('search_assistants', 500), 0, 'three records of more than 500 bytes';
    my $fetches = sub {
        my ($function, $limit) = @_;
        $session->query('begin');
        my $count = "select coalesce(sum(idx_scan), 0) from pg_stat_xact_all_tables where relid in
            (select reltoastrelid from pg_class where oid in ('agent.assistants'::regclass, 'agent.assistant_versions'::regclass))";
        my $before = $session->value($count);
        $length->($function, $limit);
        my $after = $session->value($count);
        $session->query('rollback');
        return $after - $before;
    };
    is $fetches->($_, 20_000), 0, "$_: what is stored apart is not fetched" for sort keys %read;
    cmp_ok $fetches->($_, undef), '>', 0, "$_: the count of fetches is right" for sort keys %read;
};

subtest 'a system assistant has versions, keeps its graph and is not deleted' => sub {
    is numbers($system), '1';
    is +(update($system, name => 'Agent', config => { tags => ['t'] }))[1]{version}, 2;
    is +(update($system, graph_id => 'agent'))[0], 'ok', 'its own graph may be named';
    is +($play->api('update_assistant', $system, [ 'agent', 'other' ], '{"graph_id":"other"}'))[0], 'assistant_is_system';
    is +(remove($system, $_))[0], 'assistant_is_system', "with_threads $_" for 0, 1;
    is +($play->api('set_assistant_version', $system, 1))[1]{name}, 'agent';
};

subtest 'an assistant with the id of a graph becomes its system assistant when the graph is reported' => sub {
    my $id = '15e14de9-4afb-5a11-8afe-59e1e9ce4e4a';
    try_create($id, name => 'squatter', config => { tags => ['x'] });
    $session->query("select agent.save_graphs('$deployment', '[{\"graph_id\":\"shop\",\"assistant_id\":\"$id\"}]')");
    my $record = record($id);
    is_deeply [ @{$record}{qw(graph_id name version config metadata)} ], [ 'shop', 'shop', 2, {}, { created_by => 'system' } ];
    is numbers($id), '2 1';
    is +($play->api('set_assistant_version', $id, 1))[0], 'version_not_found', 'what it was before had another graph';
    is +(remove($id))[0], 'assistant_is_system';
};

subtest 'a system assistant has the description of the last report, until a client changes it' => sub {
    my $id = AgentSQL::uuid();
    my $report = sub {
        my $graphs = AgentSQL::encode([ { graph_id => 'kiosk', assistant_id => $id, description => $_[0] } ]);
        return $session->query("select agent.save_graphs('$deployment', '$graphs')");
    };
    $play->run($play->thread, assistant => $id, graph => 'kiosk', graphs => ['kiosk']);
    is record($id)->{description}, undef, 'its first run is earlier than the report';
    $report->('sells papers');
    is record($id)->{description}, 'sells papers';
    is_deeply [ map { $_->{description} } @{ versions($id) } ], ['sells papers'], 'its version too';
    is numbers($id), '1';
    $report->('sells books');
    is record($id)->{description}, 'sells books';
    update($id, description => 'of a client');
    $report->('sells pens');
    is record($id)->{description}, 'of a client';
};

subtest 'an assistant with the id of a graph becomes its system assistant at the first run of the graph' => sub {
    my $id = AgentSQL::uuid();
    try_create($id);
    $play->run($play->thread, assistant => $id, graph => 'till', graphs => ['till']);
    is record($id)->{graph_id}, 'till';
};

subtest 'a deletion takes the versions, and leaves threads and runs' => sub {
    my $id = create(config => { tags => ['kept'] });
    update($id);
    my $thread = $play->thread;
    my $run = run_of($thread, $id);
    is +(remove($id))[0], 'ok';
    is +($play->api('get_assistant', $id))[0], 'assistant_not_found';
    is $session->value("select count(*) from agent.assistant_versions where assistant_id = '$id'"), 0;
    is +($play->try_run($thread, assistant => $id, graph => undef))[0], 'assistant_not_found', 'it accepts no more runs';
    $session->query("delete from agent.run_queue where run_id <> '$run'");
    my ($claim) = $play->claim($worker);
    is_deeply AgentSQL::decode($claim->{start})->{config}{tags}, ['kept'], 'a run that was created before is executed';
    is +(remove($id))[0], 'assistant_not_found';
};

subtest 'a deletion with threads takes those whose last run is of the assistant' => sub {
    my ($id, $other) = map { create() } 1, 2;
    my ($own, $also, $elsewhere, $system_only, $unused) = map { $play->thread } 1 .. 5;
    my $run = run_of($own, $id);
    run_of($also, $other);
    run_of($also, $id);
    run_of($elsewhere, $id);
    run_of($elsewhere, $other);
    $play->run($system_only);
    my (undef, undef, $stateless_run, $stateless) = $play->try_stateless(assistant => $id, graph => undef);
    my ($code, @changed) = remove_with_threads($id);
    is $code, 'ok';
    is_deeply [ map { status_of($_) } $own, $also, $stateless ], [ ('none') x 3 ];
    is_deeply [ map { status_of($_) } $elsewhere, $system_only, $unused ], [qw(busy busy idle)];
    my %changed = map { $_ => 1 } @changed;
    is_deeply [ grep { !$changed{$_} } $own, $run, $also, $stateless, $stateless_run ], [], 'their ids are returned';
    is +($play->api('get_assistant', $id))[0], 'assistant_not_found';
};

subtest 'a deletion with threads leaves one that is deleted and created again while it waits' => sub {
    my $id = create();
    my ($first, $again) = sort map { $play->thread } 1, 2;
    $session->query("update agent.threads set assistant_id = '$id' where thread_id in ('$first', '$again')");
    my ($holder, $deleting) = map { $db->session } 1, 2;
    $holder->query('begin');
    $holder->query("select from agent.threads where thread_id = '$first' for update");
    $deleting->send("select code from agent.delete_assistant('$deployment', '$id', true, null)");
    ok $deleting->waits_for($holder), 'the deletion waits';
    is +($play->api('delete_thread', $again))[0], 'ok';
    is +($session->call('create_thread', $deployment, $again, 'raise', '{}'))[0], 'ok';
    $holder->query('commit');
    is $deleting->receive, 'waiting', 'the deletion goes on';
    is_deeply [ map { status_of($_) } $first, $again ], [qw(none idle)], 'the new thread is left';
    is +(remove($id))[0], 'ok';
    $_->close for $holder, $deleting;
};

subtest 'a deletion with threads leaves those that are created after its first call' => sub {
    my $id = create();
    $session->query("set agent.now = '2030-01-01T12:00:00Z'");
    my $old = $play->thread;
    run_of($old, $id);
    my ($code, $before) = remove($id, 1);
    is $code, 'waiting', 'the assistant follows in another transaction';
    $session->query("set agent.now = '2030-01-01T12:00:01Z'");
    my $new = $play->thread;
    run_of($new, $id);
    ($code, $before) = remove($id, 1, $before);
    is $code, 'ok';
    is status_of($new), 'busy';
    is status_of($old), 'none';
    $session->query('reset agent.now');
};

# An assistant and threads with a run of it that has ended.
sub create_with_idle_threads {
    my $id = create();
    for (1 .. 3) {
        my $thread = $play->thread;
        $play->api('cancel_run', $thread, run_of($thread, $id), 'interrupt');
    }
    return $id;
}

sub threads_of { return $session->value("select count(*) from agent.threads where assistant_id = '$_[0]'") }

subtest 'a deletion with threads locks queue rows of one thread in a transaction' => sub {
    my $id = create_with_idle_threads();
    is +(remove($id, 1))[0], 'waiting';
    is threads_of($id), 0, 'threads without an unfinished run are deleted together';
    run_of($play->thread, $id) for 1 .. 2;
    is +(remove($id, 1))[0], 'waiting';
    is threads_of($id), 1, 'one with an unfinished run is the last of its transaction';
    is +(remove_with_threads($id))[0], 'ok';
};

subtest 'a deletion with threads deletes one piece of large threads in a transaction' => sub {
    my $id = create();
    my @threads = sort map { $play->thread } 1 .. 2;
    for my $thread (@threads) {
        $play->api('cancel_run', $thread, run_of($thread, $id), 'interrupt') for 1 .. 3;
    }
    my $size = $session->value(q{select pg_get_functiondef('agent.deletion_bytes()'::regprocedure)});
    # Less than two runs count for.
    $session->query($size =~ s/select \d+\S*/select 3000/r);
    my $runs = sub { $session->value("select count(*) from agent.runs where thread_id = '$_[0]'") };
    is +(remove($id, 1))[0], 'waiting';
    cmp_ok $runs->($threads[0]), '>', 0, 'a rest of the first thread is left';
    is $runs->($threads[1]), 3, 'the second one is for another transaction';
    is +(remove_with_threads($id))[0], 'ok';
    is $runs->($_), 0 for @threads;
    is_deeply [ map { status_of($_) } @threads ], [qw(none none)];
    $session->query($size);
};

subtest 'a deletion with threads ends each transaction after 100 ms' => sub {
    my $id = create_with_idle_threads();
    $session->query(q{create function pg_temp.late() returns trigger language plpgsql as
        $$ begin perform pg_sleep(0.12); return old; end $$;
        create trigger late before delete on agent.threads for each row execute function pg_temp.late()});
    my ($code, $before) = remove($id, 1);
    is $code, 'waiting';
    is threads_of($id), 2, 'one thread, since it took longer';
    $session->query('drop trigger late on agent.threads');
    is +(remove_with_threads($id))[0], 'ok';
};

subtest 'a run takes config, context and metadata of the current version' => sub {
    my $id = create(config => { tags => ['one'], recursion_limit => 7, configurable => { a => 1, b => 1 }, metadata => { from => 'config', z => 1 } },
        context => { c => 1, d => 1 }, metadata => { from => 'assistant', e => 1 });
    my $thread = $play->thread;
    my $run = run_of($thread, $id, request => { config => { configurable => { b => 2 } }, context => { d => 2 }, metadata => { r => 1 } });
    my $kwargs = $play->body('get_run', $thread, $run)->{kwargs};
    is_deeply [ @{ $kwargs->{config} }{qw(tags recursion_limit)} ], [ ['one'], 7 ];
    is_deeply [ @{ $kwargs->{config}{configurable} }{qw(a b assistant_id)} ], [ 1, 2, $id ];
    is_deeply $kwargs->{context}, { c => 1, d => 2 };
    is_deeply [ @{ $kwargs->{config}{metadata} }{qw(from e r z)} ], [ 'assistant', 1, 1, 1 ];
    update($id, config => { tags => ['two'] });
    is_deeply $play->body('get_run', $thread, $run)->{kwargs}{config}{tags}, ['one'], 'a run keeps what it was created with';
    my $tags = sub {
        my $thread = $play->thread;
        return $play->body('get_run', $thread, run_of($thread, $id))->{kwargs}{config}{tags};
    };
    is_deeply $tags->(), ['two'];
    $play->api('set_assistant_version', $id, 1);
    is_deeply $tags->(), ['one'], 'after the first version was set';
};

subtest 'the settings of an assistant count as a part of the start message' => sub {
    my $id = create(context => { x => 'x' x 60_000 });
    my $bytes = sub { $session->value("select request_bytes from agent.run_queue where run_id = '" . run_of($play->thread, $_[0]) . "'") };
    my $plain = $bytes->($system);
    cmp_ok $bytes->($id), '>', $plain + 59_000;
};

subtest 'a batch whose runs would copy more than 16 MB of settings is refused as a whole' => sub {
    my $id = create(context => { x => 'x' x 60_000 });
    my $count = $session->value('select count(*) from agent.runs');
    my ($code, $body) = $play->try_batch(map { { assistant_id => $id } } 1 .. 300);
    is $code, 'invalid_value';
    like $body, qr/16777216 bytes of settings/;
    is $session->value('select count(*) from agent.runs'), $count;
    is +($play->try_batch(map { { assistant_id => $id } } 1 .. 100))[0], 'ok';
};

done_testing;
