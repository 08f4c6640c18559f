# SPDX-License-Identifier: Apache-2.0
# Runs are claimed and executed, their output is stored and announced.
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
count_calls($_) for qw(claim_runs save_batch);
my $sv = TestSupervisor->start($pg, slots => 500);
$sv->wait_ready;

subtest 'a run is executed: its events, checkpoint and end are stored' => sub {
    my $run = create_run({ do => 'step' });
    $sv->wake;
    wait_status($run, 'success');
    is_deeply [ events_of($run) ],
        [ [ metadata => { run_id => $run, attempt => 1 } ], [ values => { done => Cpanel::JSON::XS::true } ] ],
        'the first event of a run is metadata';
    is run_field($run, 'last_event_seq'), 1, 'the number of the last event is stored';
    is sql("select count(*) from agent.checkpoints where run_id = '$run'"), 1, 'the checkpoint is stored';
    is sql("select count(*) from agent.run_queue"), 0, 'the run has left the queue';
};

subtest 'a run is claimed without a datagram' => sub {
    my $run = create_run({ do => 'noop' });
    wait_status($run, 'success');
};

subtest 'a runner inherits five descriptors, three variables and no rights' => sub {
    my $run = create_run({ do => 'report' });
    $sv->wake;
    wait_final($run);
    my $report = (events_of($run))[1][1];
    is_deeply [ sort @{ $report->{fds} } ], [ 0 .. 4 ], 'a runner has descriptors 0 to 4';
    is_deeply [ sort @{ $report->{env} } ],
        [ sort qw(LANG PATH), defined $ENV{TZ} ? 'TZ' : () ], 'the environment is LANG, PATH and perhaps TZ';
    is $report->{no_new_privs}, 1, 'no_new_privs is set';
    is $report->{core}, 0, 'no core file is written';
    is $report->{cwd_is_root}, 1, 'the working directory is /';
    my ($runner) = $sv->runner_pids;
    is_deeply [ sort map { m{(\d+)\z} } glob "/proc/$runner/fd/*" ], [ 0 .. 4 ], '/proc shows descriptors 0 to 4';
    if (is_root()) {
        is $report->{uid}, scalar getpwnam('nobody'), 'a runner has a user of its own';
        is $report->{groups}, 0, 'a runner has no supplementary groups';
        my ($uid) = slurp('/proc/' . $sv->pid . '/status') =~ /^Uid:\t(\d+)/m;
        is $uid, scalar getpwnam('www-data'), 'the supervisor has dropped root';
    }
};

subtest 'runs of one thread execute one after the other, in the order of their creation' => sub {
    my $gate = make_gate();
    my $first = $sv->start_run({ do => 'gate', path => $gate });
    my $thread = run_field($first, 'thread_id');
    my @next = create_each(3, { do => 'noop' }, thread => $thread, strategy => 'enqueue');
    $sv->wake;
    is status_of($next[0]), 'pending', 'the second run waits';
    open_gate($gate);
    wait_all_final('success', $first, @next);
    my @order = sql("select run_id from agent.runs where thread_id = '$thread' order by finished_at, thread_seq");
    is_deeply \@order, [ $first, @next ], 'the runs end in the order of their creation';
};

subtest 'a runner executes 500 runs at once' => sub {
    my $gate = make_gate();
    my %before = map { $_ => calls_of($_) } qw(claim_runs save_batch);
    is create_runs(500, { do => 'gate', path => $gate }), 500, '500 runs are created';
    $sv->wake;
    wait_for('all to run', sub {
        poll("select count(*) from agent.run_events where event = 'custom' and data like '%pid%'") >= 501;
    });
    is sql("select count(*) from agent.run_queue where state = 'leased'"), 500, 'all runs execute at the same time';
    open_gate($gate);
    wait_for('all to end', sub { poll('select count(*) from agent.run_queue') == 0 });
    is sql("select count(*) from agent.runs where status <> 'success'"), 0, 'all runs succeed';
    is sql('select max(attempts) from agent.usage_events'), 1, 'each run ends at its first attempt';
    for my $function (sort keys %before) {
        cmp_ok calls_of($function) - $before{$function}, '<', 250, "$function has several runs a call";
    }
};

subtest 'the end of a run causes a claim only when it has left a next run ready' => sub {
    my ($before, $began) = (calls_of('claim_runs'), time);
    for (1 .. 60) {
        my $run = create_run({ do => 'noop' });
        $sv->wake;
        wait_status($run, 'success');
    }
    # Beside those of the poll, at most one in 0.8 s.
    my $of_poll = (time - $began + 1) / 0.8;
    cmp_ok calls_of('claim_runs') - $before - $of_poll, '<', 90, 'a run takes one claim';
};

subtest '5,000 events of a run keep their order' => sub {
    my $run = create_run({ do => 'stream', count => 5000 });
    $sv->wake;
    wait_status($run, 'success');
    my @tokens = map { $_->[1]{token} } grep { $_->[0] eq 'custom' } events_of($run);
    is_deeply \@tokens, [ 0 .. 4999 ], 'no event is lost';
};

subtest 'an event may have almost 8 MiB' => sub {
    my $run = create_run({ do => 'stream', bytes => 8 * 1024 * 1024 - 500 });
    $sv->wake;
    wait_status($run, 'success');
    is sql("select length(data) from agent.run_events where run_id = '$run' and seq = 1"),
        8 * 1024 * 1024 - 500 + 2, 'the event is stored whole';
};

subtest 'a run whose start line is longer than 8 MiB ends in error' => sub {
    my $run = create_run({ do => 'noop' }, pad => 8 * 1024 * 1024);
    my $fits = create_run({ do => 'noop' }, pad => 8 * 1024 * 1024 - 2000);
    $sv->wake;
    wait_status($run, 'error');
    is error_of($run), 'StateTooLargeError', 'the error of the run is StateTooLargeError';
    wait_status($fits, 'success');
};

subtest 'a run whose state would take too much memory as a tree ends in error' => sub {
    my $run = create_run({ do => 'noop' }, objects => 600_000);
    $sv->wake;
    wait_status($run, 'error');
    is error_of($run), 'StateTooLargeError', 'the error of the run is StateTooLargeError';
    unlike $sv->log_text, qr/AGT0331/, 'the runner does not end';
};

subtest 'a run whose start line would break the protocol ends in error' => sub {
    my $thread = uuid();
    # No request can store this number.
    sql("select code from agent.create_thread('$TestSupervisor::DEPLOYMENT', '$thread', 'raise', "
        . q('{"metadata": {"n\"o": 1e400}}') . ')');
    my $refused = create_run({ do => 'noop' }, thread => $thread);
    $sv->wake;
    wait_status($refused, 'error');
    is error_of($refused), 'InvalidStartError', 'the error of the run is InvalidStartError';
    like run_field($refused, "error->>'message'"), qr{/config/metadata/n.+"o contains a number},
        'the message names the member';
    unlike $sv->log_text, qr/AGT0331/, 'the runner does not end';
};

subtest 'notifications: every run that ends is notified, and its thread' => sub {
    my $listener = start_listener();
    create_runs(300, { do => 'noop' });
    # The claim of each second may have ended some of them before this wake-up.
    my $last = sql("select string_agg(run_id::text, ' ') from ("
        . 'select run_id from agent.runs order by created_at desc limit 300) r');
    $sv->wake;
    wait_for('all to end', sub { poll('select count(*) from agent.run_queue') == 0 });
    wait_for('notification of each run', sub {
        my $payload = listen_once($listener);
        !grep { index($payload, $_) < 0 } split ' ', $last;
    });
    pass 'all 300 runs are notified';
    my ($run) = split ' ', $last;
    my $thread = run_field($run, 'thread_id');
    wait_for('notification of the thread', sub { index(listen_once($listener), $thread) >= 0 });
    pass 'the thread of a run is notified';
};

subtest 'notifications: the ids of a datagram are notified' => sub {
    my $listener = start_listener();
    my @ids = map { uuid() } 1 .. 100;
    my $deployment = uuid();
    $sv->wake("N$deployment " . join ' ', 'nonsense', @ids[ 0 .. 98 ], "'; drop");
    $sv->wake("N$deployment $ids[99]");
    $sv->wake('Nnonsense');
    wait_for('notification of each id', sub {
        my $payload = listen_once($listener);
        !grep { index($payload, $_) < 0 } @ids;
    });
    pass 'every id is notified';
    unlike listen_once($listener), qr/nonsense|drop/, 'an invalid id is not notified';
};

subtest 'expired threads are deleted and notified' => sub {
    my @threads = map { uuid() } 1 .. 30;
    my $listener = start_listener();
    sql("insert into agent.threads (deployment_id, thread_id, temporary, created_at, updated_at)
            select '$TestSupervisor::DEPLOYMENT', t, true, now(), now() from unnest('{@{[ join ',', @threads ]}}'::uuid[]) t;
         insert into agent.thread_expiries select deployment_id, thread_id, now() from agent.threads where temporary");
    my $other = TestSupervisor->start($pg);
    wait_for('all threads to be deleted', sub { poll('select count(*) from agent.threads where temporary') == 0 });
    wait_for('notification of each thread', sub {
        my $payload = listen_once($listener);
        !grep { index($payload, $_) < 0 } @threads;
    });
    pass 'all 30 threads are notified, in more than one statement';
    is $other->stop, 0, 'the supervisor exits with status 0';
};

is $sv->stop, 0, 'the supervisor exits with status 0';
unlike $sv->log_text, qr/AGT03(?:1[1-5]|2[2-6]|3[2-9]|4[1-5])/, 'no warning or error is logged while runs succeed';

done_testing;
