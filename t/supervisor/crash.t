# SPDX-License-Identifier: Apache-2.0
# Killed processes: other ones soon execute their runs.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Env qw(slurp);
use AgentTest::Process qw(is_alive children_of);
use AgentTest::Wait;
use Test::More;
use TestSupervisor;

my $pg = start_cluster();

sub pipes_of {
    my ($pid) = @_;
    return scalar grep { (readlink($_) // '') =~ /^pipe:/ } glob "/proc/$pid/fd/*";
}

subtest 'kill -9 of a runner: other runners execute its runs' => sub {
    my $sv = TestSupervisor->start($pg, runners => 2);
    $sv->wait_ready;
    $sv->wait_runners(2);
    my $gate = make_gate();
    my @runs = $sv->start_runs(4, { do => 'gate', path => $gate });
    my ($victim) = map { $_->[1]{pid} } grep { $_->[0] eq 'custom' } events_of($runs[0]);
    my @lost = grep { (events_of($_))[1][1]{pid} == $victim } @runs;
    cmp_ok scalar @lost, '<', 4, 'each runner executes some of the runs';
    kill KILL => $victim;
    wait_for('its runs to be ready again', sub {
        poll("select count(*) from agent.run_queue where state = 'ready' or epoch > 1") == @lost;
    });
    wait_events('the lost runs to begin again', 4, @lost);
    open_gate($gate);
    wait_all_final('success', @runs);
    my %attempts = map { split /\t/ } sql('select run_id, attempts from agent.usage_events');
    is_deeply [ map { $attempts{$_} } @lost ], [ map { @lost > 1 ? 1 : 2 } @lost ],
        'an attempt is counted only for a run that was alone on the runner';
    is scalar(grep { $_ == 1 } @attempts{ grep { my $run = $_; !grep { $_ eq $run } @lost } @runs }), 4 - @lost,
        'no attempt is counted for the runs of the other runner';
    is_deeply [ map { $_->[0] } events_of($lost[0]) ], [qw(metadata custom metadata custom)],
        'each attempt begins with metadata, and event numbers continue';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'kill -9 of a runner: runs that were claimed for its slots are requeued' => sub {
    my $sv = TestSupervisor->start($pg, runners => 2, slots => 2, lease_sec => 240);
    $sv->wait_ready;
    $sv->wait_runners(2);
    # The claim waits for this lock.
    my $lock = hold_lock('select from agent.workers for update');
    my $gate = make_gate();
    my @runs = create_each(4, { do => 'gate', path => $gate });
    $sv->wake;
    wait_blocked('claim_runs');
    my ($victim, $other) = $sv->runner_pids;
    my ($spawner, $pipes) = ($sv->spawner_pid, pipes_of($sv->pid));
    # A stopped spawner starts no other runner.
    kill STOP => $spawner;
    kill KILL => $victim;
    wait_for('the supervisor to request another one', sub { pipes_of($sv->pid) > $pipes });
    release_lock($lock);
    wait_for('the runs without a slot to be released', sub { 2 == (() = $sv->log_text =~ /AGT0346.*requeued/g) });
    kill CONT => $spawner;
    wait_events('all runs to begin', 2, @runs);
    my %runs_of;
    $runs_of{ (events_of($_))[1][1]{pid} }++ for @runs;
    is $runs_of{$other}, 2, 'the other runner gets no more runs than it has slots';
    open_gate($gate);
    wait_all_final('success', @runs);
    is attempts_of(@runs), 1, 'each run ends at its first attempt';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'runs do not wait for a killed runner whose end is not reported' => sub {
    my $sv = TestSupervisor->start($pg, runners => 2);
    $sv->wait_ready;
    $sv->wait_runners(2);
    my $run = $sv->start_run({ do => 'hang', once => 1 });
    my $spawner = $sv->spawner_pid;
    kill STOP => $spawner;
    kill KILL => (events_of($run))[1][1]{pid};
    wait_status($run, 'success');
    is attempts_of($run), 2, 'the run succeeds at its second attempt, on the other runner';
    kill CONT => $spawner;
    $sv->wait_log(qr/AGT0331/);
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'kill -9 of the supervisor: its processes end, the next supervisor executes its runs' => sub {
    # A lease that does not expire: only the next supervisor of the host can
    # release the run.
    my $sv = TestSupervisor->start($pg, lease_sec => 600);
    $sv->wait_ready;
    my $run = $sv->start_run({ do => 'child', once => 1 });
    my @processes = ($sv->spawner_pid, $sv->runner_pids, (events_of($run))[1][1]{pid});
    is scalar @processes, 3, 'there are a spawner, a runner and a process that the runner started';
    $sv->stop('KILL');
    wait_for('all processes to end', sub { !grep { is_alive($_) } @processes });
    is sql('select state from agent.run_queue'), 'leased', 'the run is still leased';
    $sv->launch;
    $sv->{ended} = 0;
    $sv->wait_log(qr/AGT0321: worker \d+ of this host/);
    wait_status($run, 'success');
    is attempts_of($run), 2, 'the run succeeds at its second attempt';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'kill -9 of the supervisor: another host executes its runs when the lease has ended' => sub {
    my %lease = (lease_sec => 4, timing_ms => fast_timing());
    my $lost = TestSupervisor->start($pg, %lease, node => 'lost');
    $lost->wait_ready;
    my $gate = make_gate();
    my $run = $lost->start_run({ do => 'gate', path => $gate });
    my $worker = sql("select worker_id from agent.run_queue where run_id = '$run'");
    my $left = TestSupervisor->start($pg, %lease, node => 'left');
    $left->wait_ready;
    $lost->stop('KILL');
    wait_events('the run to begin again', 4, $run);
    is sql("select state || ' ' || (dead_at >= lease_until + interval '5 seconds') from agent.workers where worker_id = $worker"), 'dead true',
        'the worker of the killed one is dead 5 s after its lease has ended, and not before';
    open_gate($gate);
    wait_status($run, 'success');
    is attempts_of($run), 2, 'the run succeeds at its second attempt';
    is $left->stop, 0, 'the supervisor exits with status 0';
};

subtest 'processes that a runner started end with it' => sub {
    my $sv = TestSupervisor->start($pg);
    $sv->wait_ready;
    my $run = $sv->start_run({ do => 'child', once => 1 });
    my $child = (events_of($run))[1][1]{pid};
    kill KILL => $sv->runner_pids;
    wait_for('the child of the runner to end', sub { !is_alive($child) });
    wait_status($run, 'success');
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'processes with a session of their own end with the runner that started them, and with no other' => sub {
    my $sv = TestSupervisor->start($pg, runners => 2, slots => 1);
    $sv->wait_ready;
    $sv->wait_runners(2);
    my %left = map { $_->{runner} => $_->{pid} } map { (events_of($sv->start_run({ do => 'child', daemon => 1 })))[1][1] } 1, 2;
    my @runners = sort keys %left;
    is scalar @runners, 2, 'each runner has started a process, whose parent has ended';
    my @parents = map { slurp("/proc/$_/stat") =~ /\) \S+ (\d+)/ } values %left;
    is_deeply \@parents, [ ($sv->spawner_pid) x 2 ], 'the spawner has adopted both';
    kill KILL => $runners[0];
    wait_for('the process of the runner to end', sub { !is_alive($left{ $runners[0] }) });
    ok is_alive($left{ $runners[1] }), 'the process of the other runner goes on';
    is $sv->stop, 0, 'the supervisor exits with status 0';
    ok !is_alive($left{ $runners[1] }), 'it has ended when the supervisor has';
    sql('delete from agent.run_queue');
};

subtest 'a process that claims to be of another runner, by the limits that it can lower, ends with its own' => sub {
    my $sv = TestSupervisor->start($pg, runners => 2, slots => 1);
    $sv->wait_ready;
    $sv->wait_runners(2);
    my %locks_of = map { $_ => slurp("/proc/$_/limits") =~ /^Max file locks\s+(\d+)/m } $sv->runner_pids;
    my ($older, $newer) = sort { $locks_of{$a} <=> $locks_of{$b} } keys %locks_of;
    my %input = (do => 'child', daemon => 1, locks => $locks_of{$older});
    my %left = map { $_->{runner} => $_->{pid} } map { (events_of($sv->start_run(\%input)))[1][1] } 1, 2;
    is slurp("/proc/$left{$newer}/limits") =~ /^Max file locks\s+(\d+)/m && $1, $locks_of{$older}, 'it has a limit of the other one';
    kill KILL => $newer;
    wait_for('the process to end', sub { !is_alive($left{$newer}) });
    ok is_alive($left{$older}), 'the process of the other runner goes on';
    is $sv->stop, 0, 'the supervisor exits with status 0';
    sql('delete from agent.run_queue');
};

subtest 'kill -9 of the spawner: the supervisor exits with status 1, runs are released' => sub {
    my ($sv, $run);
    # Repeated when the machine stalls during the final writes (AGT0353).
    for my $try (1 .. 10) {
        sql('delete from agent.run_queue');
        $sv = TestSupervisor->start($pg);
        $sv->wait_ready;
        $run = $sv->start_run({ do => 'hang' });
        my @runners = $sv->runner_pids;
        kill KILL => $sv->spawner_pid;
        is $sv->wait_exit >> 8, 1, 'the supervisor exits with status 1';
        wait_for('the runner to end', sub { !grep { is_alive($_) } @runners });
        last if $sv->log_text !~ /AGT0353/;
    }
    is sql("select state || ' ' || attempts from agent.run_queue where run_id = '$run'"), 'ready 0',
        'the run is ready again, the attempt is not counted';
    like $sv->log_text, qr/AGT0305/, 'the end of the spawner is logged';
};

subtest 'a supervisor does not mark a living worker of its host dead' => sub {
    my $one = TestSupervisor->start($pg);
    $one->wait_ready;
    my $two = TestSupervisor->start($pg);
    $two->wait_ready;
    unlike $two->log_text, qr/AGT0321/, 'no worker is marked dead';
    is $_->stop, 0, 'the supervisor exits with status 0' for $one, $two;
};

subtest 'two machines of one name do not mark each other dead in turn' => sub {
    my $sv = TestSupervisor->start($pg);
    $sv->wait_ready;
    my $own = sql("select max(worker_id) from agent.workers where state = 'live'");
    my $twin = sql("select worker_id from agent.register_worker('node-1', 'another boot', 1, 1, 10, 600, '{default}', '{agent}')");
    # As the other one does, which takes this worker for a dead predecessor.
    sql("select agent.mark_worker_dead($own, true, 100)");
    $sv->wait_log(qr/AGT0322/);
    $sv->wait_log(qr/AGT0320.*AGT0320/s);
    is sql("select state from agent.workers where worker_id = $twin"), 'live', 'the worker of the other machine is not marked dead';
    like $sv->log_text, qr/AGT0327: worker $twin is of another machine/, 'the log names the other worker';
    is $sv->stop, 0, 'the supervisor exits with status 0';
    sql("delete from agent.workers where worker_id = $twin");
};

subtest 'a worker that was declared dead stops at once and registers again' => sub {
    my $sv = TestSupervisor->start($pg, lease_sec => 8);
    $sv->wait_ready;
    sql('delete from agent.run_queue');
    my $run = $sv->start_run({ do => 'hang', once => 1 });
    my ($runner) = $sv->runner_pids;
    sql("select agent.mark_worker_dead(max(worker_id), true, 100) from agent.workers where state = 'live'");
    $sv->wait_log(qr/AGT0322/);
    wait_for('its runner to end', sub { !is_alive($runner) });
    wait_status($run, 'success');
    is sql("select count(distinct epoch) from agent.run_events where run_id = '$run'"), 2, 'the run is executed again under a new lease';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'runs that end because their worker was lost are notified' => sub {
    my $listener = start_listener();
    my $lost = sql("select worker_id from agent.register_worker('elsewhere', 'boot', 1, 1, 10, -60, '{default}', '{agent}')");
    my $run = create_run({ do => 'noop' });
    my $thread = run_field($run, 'thread_id');
    sql("select count(*) from agent.claim_runs($lost, '{00000000-0000-0000-0000-000000000001}', '{agent}', '{0}', '{1}', '{1}', '{16}', 50, 1000000)");
    sql("select code from agent.cancel_run('$TestSupervisor::DEPLOYMENT', '$thread', '$run', 'interrupt')");
    my $sv = TestSupervisor->start($pg);
    wait_status($run, 'interrupted');
    wait_for('notifications of run and thread', sub { my $ids = listen_once($listener); $ids =~ /$run/ && $ids =~ /$thread/ });
    pass 'the run and its thread are notified';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

done_testing;
