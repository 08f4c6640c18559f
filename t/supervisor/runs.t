# SPDX-License-Identifier: Apache-2.0
# Runs are claimed, executed and written.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Env qw(is_root slurp);
use AgentTest::Wait;
use Cpanel::JSON::XS;
use Test::More;
use TestSupervisor;

my $pg = start_cluster();
my $sv = TestSupervisor->start($pg, slots => 500);
$sv->wait_ready;

subtest 'a run is executed: events, checkpoint, end' => sub {
    my $run = create_run({ do => 'step' });
    $sv->wake;
    wait_status($run, 'success');
    is_deeply [ events_of($run) ],
        [ [ metadata => { run_id => $run, attempt => 1 } ], [ values => { done => Cpanel::JSON::XS::true } ] ],
        'its events begin with metadata';
    is run_field($run, 'last_event_seq'), 1, 'the number of its last event is stored';
    is sql("select count(*) from agent.checkpoints where run_id = '$run'"), 1, 'its checkpoint is saved';
    is sql("select count(*) from agent.run_queue"), 0, 'the queue is empty';
};

subtest 'a run is claimed without a datagram' => sub {
    my $run = create_run({ do => 'noop' });
    wait_status($run, 'success');
};

subtest 'the runner has five descriptors, another user, nothing inherited' => sub {
    my $run = create_run({ do => 'report' });
    $sv->wake;
    wait_final($run);
    my $report = (events_of($run))[1][1];
    is_deeply [ sort @{ $report->{fds} } ], [ 0 .. 4 ], 'descriptors 0 to 4';
    is_deeply [ sort @{ $report->{env} } ],
        [ sort qw(LANG PATH), defined $ENV{TZ} ? 'TZ' : () ], 'three variables at most';
    is $report->{no_new_privs}, 1, 'no new privileges';
    is $report->{core}, 0, 'no core file';
    is $report->{cwd_is_root}, 1, 'its directory is /';
    my ($runner) = $sv->runner_pids;
    is_deeply [ sort map { m{(\d+)\z} } glob "/proc/$runner/fd/*" ], [ 0 .. 4 ], '/proc shows the same';
    if (is_root()) {
        is $report->{uid}, scalar getpwnam('nobody'), 'the user of runners';
        is $report->{groups}, 0, 'no supplementary groups';
        my ($uid) = slurp('/proc/' . $sv->pid . '/status') =~ /^Uid:\t(\d+)/m;
        is $uid, scalar getpwnam('www-data'), 'the supervisor has dropped root';
    }
};

subtest 'runs of one thread execute one after the other, in order' => sub {
    my $gate = make_gate();
    my $first = create_run({ do => 'gate', path => $gate });
    my $thread = run_field($first, 'thread_id');
    my @next = create_each(3, { do => 'noop' }, thread => $thread, strategy => 'enqueue');
    $sv->wake;
    wait_for('the first run to start', sub { events_of($first) == 2 });
    is status_of($next[0]), 'pending', 'the second waits';
    open_gate($gate);
    wait_all_final('success', $first, @next);
    my @order = sql("select run_id from agent.runs where thread_id = '$thread' order by finished_at, thread_seq");
    is_deeply \@order, [ $first, @next ], 'in the order of their creation';
};

subtest 'a runner executes 500 runs at once' => sub {
    my $gate = make_gate();
    sql("alter system set track_functions = 'pl'");
    sql('select pg_reload_conf()');
    is create_runs(500, { do => 'gate', path => $gate }), 500, 'made';
    $sv->wake;
    wait_for('all to run', sub {
        sql("select count(*) from agent.run_events where event = 'custom' and data like '%pid%'") >= 501;
    });
    is sql("select count(*) from agent.run_queue where state = 'leased'"), 500, 'all are executed at the same time';
    open_gate($gate);
    wait_for('all to end', sub { sql('select count(*) from agent.run_queue') == 0 });
    is sql("select count(*) from agent.runs where status <> 'success'"), 0, 'all succeed';
    is sql('select max(attempts) from agent.usage_events'), 1, 'at the first attempt';
    for my $function (qw(claim_runs save_batch)) {
        my $calls = "select coalesce(sum(calls), 0) from pg_stat_user_functions where funcname = '$function'";
        wait_for("statistics of $function", sub { sql($calls) > 0 });
        cmp_ok sql($calls), '<', 250, "in batches: $function";
    }
};

subtest 'many events keep their order and lose none' => sub {
    my $run = create_run({ do => 'stream', count => 5000 });
    $sv->wake;
    wait_status($run, 'success');
    my @tokens = map { $_->[1]{token} } grep { $_->[0] eq 'custom' } events_of($run);
    is_deeply \@tokens, [ 0 .. 4999 ], '5,000 events';
};

subtest 'a line of almost 8 MiB is an event like any other' => sub {
    my $run = create_run({ do => 'stream', bytes => 8 * 1024 * 1024 - 500 });
    $sv->wake;
    wait_status($run, 'success');
    is sql("select length(data) from agent.run_events where run_id = '$run' and seq = 1"),
        8 * 1024 * 1024 - 500 + 2, 'whole';
};

subtest 'a run that is too large for the protocol ends in error' => sub {
    my $run = create_run({ do => 'noop' }, pad => 8 * 1024 * 1024);
    my $fits = create_run({ do => 'noop' }, pad => 8 * 1024 * 1024 - 2000);
    $sv->wake;
    wait_status($run, 'error');
    is sql("select error->>'error' from agent.runs where run_id = '$run'"), 'state_too_large', 'with its reason';
    wait_status($fits, 'success');
};

subtest 'a run whose tree would take all memory of a runner ends in error' => sub {
    my $run = create_run({ do => 'noop' }, objects => 600_000);
    $sv->wake;
    wait_status($run, 'error');
    is sql("select error->>'error' from agent.runs where run_id = '$run'"), 'state_too_large', 'with its reason';
    unlike $sv->log_text, qr/AGT0331/, 'no runner ends';
};

subtest 'a run whose start line would break the protocol ends in error' => sub {
    my $thread = uuid();
    # As in rows that were not made by a request.
    sql("select code from agent.create_thread('$TestSupervisor::ACCOUNT', '$thread', 'raise', "
        . q('{"metadata": {"n\"o": 1e400}}') . ')');
    my $refused = create_run({ do => 'noop' }, thread => $thread);
    $sv->wake;
    wait_status($refused, 'error');
    is sql("select error->>'error' from agent.runs where run_id = '$refused'"), 'invalid_start',
        'does not reach the runner';
    like sql("select error->>'message' from agent.runs where run_id = '$refused'"), qr{/config/metadata/n.+"o contains a number},
        'its error says where';
    unlike $sv->log_text, qr/AGT0331/, 'no runner ends';
};

subtest 'notifications: every run that ends, and its thread' => sub {
    my $listener = start_listener();
    create_runs(300, { do => 'noop' });
    # Some may have ended already.
    my $last = sql("select string_agg(run_id::text, ' ') from ("
        . 'select run_id from agent.runs order by created_at desc limit 300) r');
    $sv->wake;
    wait_for('all to end', sub { sql('select count(*) from agent.run_queue') == 0 });
    wait_for('notification of each', sub {
        my $payload = listen_once($listener);
        !grep { index($payload, $_) < 0 } split ' ', $last;
    });
    pass 'all 300';
    my ($run) = split ' ', $last;
    my $thread = run_field($run, 'thread_id');
    wait_for('notification of its thread', sub { index(listen_once($listener), $thread) >= 0 });
    pass 'and of its thread';
};

subtest 'notifications: ids in a datagram are relayed' => sub {
    my $listener = start_listener();
    my @ids = map { uuid() } 1 .. 100;
    $sv->wake('N' . join ' ', 'nonsense', @ids[ 0 .. 98 ], "'; drop");
    $sv->wake("N$ids[99]");
    wait_for('all of it', sub {
        my $payload = listen_once($listener);
        !grep { index($payload, $_) < 0 } @ids;
    });
    pass 'every id';
    unlike listen_once($listener), qr/nonsense|drop/, 'and no invalid id';
};

subtest 'expired threads are deleted' => sub {
    my @threads = map { uuid() } 1 .. 30;
    my $listener = start_listener();
    sql("insert into agent.threads (account_id, thread_id, temporary, created_at, updated_at)
            select '$TestSupervisor::ACCOUNT', t, true, now(), now() from unnest('{@{[ join ',', @threads ]}}'::uuid[]) t;
         insert into agent.thread_expiries select account_id, thread_id, now() from agent.threads where temporary");
    my $other = TestSupervisor->start($pg);
    wait_for('all to be gone', sub { sql('select count(*) from agent.threads where temporary') == 0 });
    wait_for('notification of each', sub {
        my $payload = listen_once($listener);
        !grep { index($payload, $_) < 0 } @threads;
    });
    pass 'in more than one statement';
    is $other->stop, 0;
};

is $sv->stop, 0, 'the supervisor exits with status 0';
unlike $sv->log_text, qr/AGT03(?:1[1-5]|2[2-6]|3[2-9]|4[1-5])/, 'the supervisor logs no fault while runs succeed';

done_testing;
