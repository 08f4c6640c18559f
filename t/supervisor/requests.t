# SPDX-License-Identifier: Apache-2.0
# Requests of runners: the parts of a state, what is refused, what ends a runner,
# and that other runners' runs continue.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Cost;
use AgentTest::Database;
use AgentTest::Wait;
use Test::More;
use TestLarge;
use TestSupervisor;

my $pg = start_cluster();

sub start_supervisor {
    my (%args) = @_;
    my $sv = TestSupervisor->start($pg, lease_sec => 60, runner => scripted_runner('request_runner.pl'),
        timing_ms => patient_timing(), %args);
    $sv->wait_ready;
    return $sv;
}

my $sv = start_supervisor(store_ttl_ms => 3_600_000);

# The data of the events of a run that has ended.
sub replies_of {
    my ($run) = @_;
    $sv->wake;
    wait_status($run, 'success');
    my (undef, undef, @events) = events_of($run);
    return map { $_->[1] } @events;
}

subtest 'state.get: a small state is one part' => sub {
    my ($reply, @more) = replies_of(create_large_runs(1, 2, { do => 'read' }, bytes => 200));
    is_deeply [ @{$reply}{qw(id part more)} ], [ 1, { messages => 2 }, 0 ], 'it has all elements and no cursor';
    is_deeply \@more, [], 'nothing follows';
};

subtest 'state.get: a state longer than a line comes in parts of at most 1 MB' => sub {
    my @replies = replies_of(create_large_runs(1, 1000, { do => 'read' }));
    cmp_ok scalar @replies, '>=', 10, '10 MB are ten parts or more';
    is_deeply [ map { $_->{id} } @replies ], [ 1 .. @replies ], 'each answers its request';
    is_deeply [ map { $_->{more} } @replies ], [ (1) x $#replies, 0 ], 'the last one has no cursor';
    my $elements = 0;
    $elements += $_->{part}{messages} for @replies;
    is $elements, 1000, 'together they have all elements';
    is scalar(grep { $_->{length} > 1_001_000 } @replies), 0, 'none is longer than 1 MB';
};

subtest 'state.get: an element longer than a part is a part of its own' => sub {
    my @replies = replies_of(create_large_runs(1, 3, { do => 'read' }, bytes => 2_000_000));
    is_deeply [ map { $_->{part} } @replies ], [ ({ messages => 1 }) x 3 ], 'each long element is a part';
};

subtest 'state.get: a thread without a state has an empty one' => sub {
    my ($reply) = replies_of(create_run({ do => 'read' }));
    is_deeply [ @{$reply}{qw(part more)} ], [ {}, 0 ], 'the state has no channels';
};

subtest 'a request that cannot be answered is refused with a code' => sub {
    for my $case ([ unknown => 'unknown_op' ], [ cursor => 'invalid_cursor' ], [ again => 'invalid_cursor' ]) {
        my ($action, $code) = @{$case};
        my @replies = replies_of(create_large_runs(1, 2, { do => $action }, bytes => 200));
        is $replies[-1]{code}, $code, "$action: $code";
    }
};

# ---- the store ----

sub op_put { return { op => 'put', namespace => ['t'], key => $_[0], value => $_[1] // {} } }
sub op_get { return { op => 'get', namespace => ['t'], key => $_[0] } }

sub stored { return scalar sql("select coalesce(string_agg(key || ' ' || value_bytes / 1000, ',' order by key), '') from agent.store_items where namespace = '{t}'") }

subtest 'store: reads and puts of a run' => sub {
    my ($reply) = replies_of(create_run({ do => 'store', ops => [ op_put('a', { text => 'x' }), op_get('a'), { op => 'list' } ] }));
    is_deeply [ @{$reply}{qw(results more)} ], [ [ undef, undef, { namespaces => [] } ], 0 ], 'the reads precede the puts';
    is sql("select ttl from agent.store_items where key = 'a'"), '01:00:00', 'an item that is put without a ttl has that of the pool';
    ($reply) = replies_of(create_run({ do => 'store', ops => [ op_get('a'), { op => 'search', namespace_prefix => ['t'] }, { op => 'list' } ] }));
    is_deeply $reply->{results}, [ [ 'a', 1 ], { items => [ [ 'a', 1 ] ] }, { namespaces => [ ['t'] ] } ], 'another run reads the item';
};

subtest 'a request to the store may have long arguments, with and without credit' => sub {
    for my $action (qw(store store_without_credit)) {
        sql('delete from agent.store_items');
        my ($reply) = replies_of(create_run({ do => $action, fill => 1_000_000, ops => [ map { op_put($_) } qw(a b c d) ] }));
        is_deeply $reply->{results}, [ (undef) x 4 ], "$action: the puts are answered";
        is stored(), 'a 1000,b 1000,c 1000,d 1000', "$action: the items are stored";
    }
};

subtest 'store: a long result comes in parts, and the puts are executed with the last one' => sub {
    my @replies = replies_of(create_run({ do => 'store', ops => [ op_put('e'), { op => 'search', namespace_prefix => ['t'] }, op_get('a') ] }));
    is scalar @replies, 5, 'items of 1 MB are parts of their own';
    is_deeply [ map { $_->{more} } @replies ], [ 1, 1, 1, 1, 0 ], 'the last one has no cursor';
    is_deeply [ map { $_->[0] } map { ref $_ eq 'HASH' ? @{ $_->{items} } : $_ } map { grep { ref } @{ $_->{results} } } @replies ], [qw(a b c d a)],
        'together they have all items';
    like stored(), qr/,e 0/, 'the put was executed';
};

subtest 'store: a request that cannot be answered is refused with a code' => sub {
    my ($reply) = replies_of(create_run({ do => 'store', ops => [] }));
    is $reply->{code}, 'invalid_args', 'no operations: invalid_args';
    ($reply) = replies_of(create_run({ do => 'store', ops => [ op_put('f'), op_put('') ] }));
    is $reply->{code}, 'invalid_args', 'a put that is not valid: invalid_args';
    unlike stored(), qr/f/, 'no put of the request is executed';
    my $arguments = 'bigint, uuid, uuid, integer, json, text, integer, interval';
    for my $code (qw(run_taken too_many_items)) {
        sql("alter function agent.use_store($arguments) rename to use_store_kept; create function agent.use_store($arguments)
            returns table (code text, body text, cursor text) language sql as \$\$ select '$code', null, null \$\$");
        ($reply) = replies_of(create_run({ do => 'store', ops => [ op_get('a') ] }));
        is $reply->{code}, $code, $code;
        sql("drop function agent.use_store($arguments); alter function agent.use_store_kept($arguments) rename to use_store");
    }
};

sub expect_breach {
    my ($action, $message, %input) = @_;
    subtest "a runner whose run breaks the protocol ($action) is replaced, the run is executed again" => sub {
        my ($run) = create_large_runs(1, 2, { do => $action, once => 1, %input }, bytes => 200);
        $sv->wake;
        wait_status($run, 'success');
        is attempts_of($run), 2, 'the run succeeds at its second attempt';
        ok $sv->wait_log(qr/AGT0332: .*$message/), 'the reason is logged';
    };
    return;
}

expect_breach(twice          => 'a run sent a request before it read the last reply');
expect_breach(thousands      => 'a run sent a request before it read the last reply');
expect_breach(always_unknown => 'a run sent too many requests that were refused');
expect_breach(wrong_run      => 'a run that it does not execute');
expect_breach(wrong_epoch    => 'a run that it does not execute');
expect_breach(no_id          => 'its line has no valid id');
expect_breach(no_op          => 'its line has no valid op');
expect_breach(long_cursor    => 'its line has no valid cursor');
expect_breach(store          => 'its line has args of more than 4 MiB', fill => 1_100_000, ops => [ map { op_put($_) } qw(a b c d) ]);

# Calls agent.read_state by another body while the code runs.
sub with_body {
    my ($body, $code) = @_;
    my $arguments = 'uuid, uuid, uuid, text, integer';
    sql("alter function agent.read_state($arguments) rename to read_state_kept; "
        . "create function agent.read_state($arguments) returns table (code text, body text, cursor text) language plpgsql as "
        . "\$\$ begin $body end \$\$");
    $code->();
    sql("drop function agent.read_state($arguments); alter function agent.read_state_kept($arguments) rename to read_state");
    return;
}

subtest 'a state that the database cannot read is refused' => sub {
    with_body("raise exception 'no';", sub {
        my ($reply) = replies_of(create_large_runs(1, 2, { do => 'read' }, bytes => 200));
        is $reply->{code}, 'state_failed', 'the request is refused after three failures, with the code of a refusal';
        ok $sv->wait_log(qr/AGT0375: a request of run \S+ could not be answered: the database refused it;/), 'the log says why';
        like $sv->log_text, qr/AGT0313: read_parts failed: /, 'the log names the statement';
    });
    with_body(q(return query values ('ok', '{"values":{"a":', null), ('ok', null, null), ('ok', '}}', null);), sub {
        my ($reply) = replies_of(create_large_runs(1, 2, { do => 'read' }, bytes => 200));
        is $reply->{code}, 'state_unreadable', 'a row without text among others: state_unreadable';
    });
    for my $case ([ q('{"a":') => 'state_unreadable' ], [ 'null' => 'state_unreadable' ], [ q(repeat(' ', 8388608)) => 'state_too_large' ],
        [ q('{"a":[{}' || repeat(',{}', 600000) || ']}') => 'state_too_large' ]) {
        my ($part, $code) = @{$case};
        with_body("return query select 'ok', ($part)::text, null::text;", sub {
            my ($reply) = replies_of(create_large_runs(1, 2, { do => 'read' }, bytes => 200));
            is $reply->{code}, $code, "$part: $code";
        });
    }
};

subtest 'a reply is one line whatever the state' => sub {
    with_body(q(return query select 'ok', E'{"values":\\n{"a\\\\n":1\\n\\n}}\\n'::text, null::text;), sub {
        my ($reply) = replies_of(create_large_runs(1, 2, { do => 'read' }, bytes => 200));
        is_deeply $reply->{part}, { "a\n" => 1 }, 'line breaks between its tokens are not sent';
    });
};

subtest 'a run that is cancelled while it waits for a reply ends' => sub {
    my $lock = hold_lock('select pg_advisory_lock(1)');
    my $run;
    with_body(q(perform pg_advisory_xact_lock(1); return query select 'ok', '{"values":{}}', null::text;), sub {
        ($run) = create_large_runs(1, 2, { do => 'read' }, bytes => 200);
        $sv->wake;
        wait_blocked('read_state');
        $sv->cancel($run);
        wait_final($run);
        release_lock($lock);
        my ($reply) = replies_of(create_large_runs(1, 2, { do => 'read' }, bytes => 200));
        is_deeply $reply->{part}, {}, 'the next request is answered';
    });
    is scalar(events_of($run)), 2, 'the run gets no reply';
};

subtest 'a runner that does not read its replies delays no other runner' => sub {
    my $two = start_supervisor(runners => 2, node => 'node-2', graphs => { two => {} },
        timing_ms => { %{ patient_timing() }, ping_timeout => 3_600_000 });
    $two->wait_runners(2);
    my $mute = (create_large_runs(1, 1000, { do => 'mute' }, graph => 'two'))[0];
    wait_for('the mute run to begin', sub { events_of($mute) >= 2 });
    for my $number (1 .. 3) {
        my ($run) = create_large_runs(1, 300, { do => 'read' }, graph => 'two');
        $two->wake;
        wait_status($run, 'success');
        is attempts_of($run), 1, 'a run of the other runner reads its state';
    }
    kill KILL => $two->pid;
    sql('delete from agent.run_queue');
};

is $sv->stop, 0, 'the supervisor exits with status 0';

subtest 'store: 240 MB of arguments take a part of it in memory, and other runs execute' => sub {
    my $many = start_supervisor(lease_sec => 240);
    sql("delete from agent.store_items");
    sql("insert into agent.store_items select deployment_id, '{t}', 'lock', '{}', 2, null, null, now(), now() from agent.deployments");
    my $lock = hold_lock("select from agent.store_items where key = 'lock' for update");
    my $before = resident_bytes($many->pid);
    my @runs;
    my $cost = cost_of([ $many->pid ], sub {
        @runs = create_all(map { my $n = $_; [ { do => 'store', fill => 1_000_000, ops => [ map { op_put($_) } 'lock', map { "$n-$_" } 1 .. 3 ] } ] } 1 .. 60);
        $many->wake;
        wait_events('all runs to begin', 2, @runs);
        wait_blocked('use_store');
        my $small = create_run({ do => 'noop' });
        $many->wake;
        wait_status($small, 'success');
        release_lock($lock);
        wait_all_final('success', @runs);
    });
    is sql("select count(*) from agent.store_items where key like '%-%'"), 180, 'all items are stored';
    is attempts_of(@runs), 1, 'each run ends at its first attempt';
    cmp_ok(($before + $cost->{peak_bytes}) / $MB, '<', 192 * memory_scale(), 'the supervisor has only a part of the arguments in memory');
    is $many->stop, 0, 'the supervisor exits with status 0';
};

done_testing;
