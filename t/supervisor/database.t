# SPDX-License-Identifier: Apache-2.0
# The database is down, loses results, or refuses the output of a run.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Env qw(slurp);
use AgentTest::Process qw(is_alive);
use AgentTest::Wait;
use Test::More;
use TestProxy;
use TestSupervisor;

my $pg = start_cluster();
my $TERMINATE = "select count(pg_terminate_backend(pid)) from pg_stat_activity "
    . "where application_name = 'agent supervisor'";

sub is_up { return eval { local $SIG{__WARN__} = sub { }; sql('select 1') } }

sub recoveries {
    my @ready = slurp($pg->host . '/postgres.log') =~ /ready to accept connections/g;
    return scalar @ready;
}

# Kills the supervisor's backend, which restarts the server, and waits for the
# end of the recovery: just after the kill connections still succeed.
sub crash_database {
    my $backend = wait_for('the supervisor to be connected', sub {
        sql("select pid from pg_stat_activity where application_name = 'agent supervisor' limit 1")
    });
    my $before = recoveries();
    kill KILL => $backend;
    wait_for('the end of the recovery', sub { recoveries() > $before });
    return;
}

subtest 'terminated backends: no run and no event is lost' => sub {
    my $sv = TestSupervisor->start($pg, slots => 50);
    $sv->wait_ready;
    my $cut = 0;
    for my $round (1 .. 20) {
        create_runs(100, { do => 'stream', count => 20 });
        $sv->wake;
        $cut += wait_for('the supervisor to be connected', sub { sql($TERMINATE) });
    }
    cmp_ok $cut, '>=', 20, "$cut connections were cut";
    wait_for('all runs to end', sub { sql('select count(*) from agent.run_queue') == 0 }, 300);
    is sql("select count(*) from agent.runs where status = 'success'"), 2000, 'all succeed';
    is sql("select count(*) from (select run_id from agent.run_events group by run_id "
        . "having count(*) filter (where event = 'custom') < 20 "
        . "or max(seq) + 1 <> count(*) or min(seq) <> 0) x"), 0, 'no event is lost, no number is left out';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

for my $part (qw(request answer)) {
    subtest "the $part of each kind of statement is lost once: the run continues" => sub {
        my $proxy = TestProxy->new($pg);
        my $sv = TestSupervisor->start($pg, conninfo => $proxy->conninfo, lease_sec => 12,
            timing_ms => fast_timing());
        $sv->wait_ready;
        for my $function (qw(save_batch claim_runs notify_runs renew_worker check_leases)) {
            my ($gate, $run) = (make_gate());
            $proxy->lose($part, $function, sub {
                $run = create_run({ do => 'gate', path => $gate });
                $sv->wake;
            });
            wait_for("a lost $part of $function not to stop the run", sub { events_of($run) >= 2 });
            open_gate($gate);
            wait_status($run, 'success');
        }
        my $run;
        $proxy->lose($part, 'save_batch', sub { $run = create_run({ do => 'step' }); $sv->wake });
        wait_status($run, 'success');
        is scalar(events_of($run)), 2, 'a batch is sent again';
        $proxy->lose($part, 'release_runs', sub { $run = create_run({ do => 'exit', once => 1 }); $sv->wake });
        wait_status($run, 'success');
        is sql("select count(*) from agent.run_queue"), 0, 'no run is left in the queue';
        is $sv->stop, 0, 'the supervisor exits with status 0';
    };
}

subtest 'a lost result of a claim: runs execute, also one that sends output all the time' => sub {
    my $proxy = TestProxy->new($pg);
    # No pings: the runner reads nothing.
    my $sv = TestSupervisor->start($pg, conninfo => $proxy->conninfo,
        timing_ms => { ping_interval => 3_600_000, kill => 1000 });
    $sv->wait_ready;
    my $talker = create_run({ do => 'stream', count => 2_000_000_000, once => 1 });
    $sv->wake;
    wait_for('its output', sub { sql("select count(*) from (select from agent.run_events "
        . "where run_id = '$talker' limit 100) x") == 100 });
    my $run;
    $proxy->lose('answer', 'claim_runs', sub { $run = create_run({ do => 'noop' }); $sv->wake });
    wait_status($run, 'success');
    wait_status($talker, 'success');
    is sql("select attempts from agent.usage_events where run_id = '$talker'"), 1, 'its loss is not counted';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a lost notification is sent again' => sub {
    my $proxy = TestProxy->new($pg);
    my $sv = TestSupervisor->start($pg, conninfo => $proxy->conninfo);
    $sv->wait_ready;
    my $listener = start_listener();
    my $run;
    $proxy->lose('request', 'notify_runs', sub { $run = create_run({ do => 'noop' }); $sv->wake });
    wait_for('the notification', sub { listen_once($listener) =~ /$run/ });
    pass 'the waiter is notified';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a run survives a short outage of the database' => sub {
    my $sv = TestSupervisor->start($pg, lease_sec => 120);
    $sv->wait_ready;
    my $gate = make_gate();
    my $run = create_run({ do => 'gate', path => $gate });
    $sv->wake;
    wait_for('it to run', sub { events_of($run) == 2 });
    $pg->stop('fast');
    $sv->wait_log(qr/AGT0311/);
    open_gate($gate);
    $sv->wait_log(qr/AGT0310/);
    $pg->start;
    wait_for('the database', \&is_up);
    wait_status($run, 'success');
    is sql("select attempts from agent.usage_events where run_id = '$run'"), 1, 'at its first attempt';
    like $sv->log_text, qr/AGT0312/, 'the log says when it was back';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'without a renewal runners are stopped, then killed' => sub {
    my $sv = TestSupervisor->start($pg, timing_ms => { renew => 200, stop => 3000, kill => 4000 });
    $sv->wait_ready;
    my $run = create_run({ do => 'hang', once => 1 });
    $sv->wake;
    wait_for('it to run', sub { events_of($run) == 2 });
    my ($runner) = $sv->runner_pids;
    $pg->stop('fast');
    $sv->wait_log(qr/AGT0323/);
    wait_for('the runner to be stopped', sub { AgentTest::Process::stat_of($runner)->{state} =~ /[TZX]/ });
    $sv->wait_log(qr/AGT0324/);
    wait_for('the runner to be killed', sub { !is_alive($runner) });
    $pg->start;
    wait_for('the database', \&is_up);
    wait_status($run, 'success');
    is sql("select attempts from agent.usage_events where run_id = '$run'"), 1, 'the loss is not counted';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'stopped runners continue after a renewal in time' => sub {
    # Stopped soon, killed only after longer than the test takes.
    my $sv = TestSupervisor->start($pg, lease_sec => 120, timing_ms => { renew => 200, stop => 4000 });
    $sv->wait_ready;
    my $gate = make_gate();
    my $run = create_run({ do => 'gate', path => $gate });
    $sv->wake;
    wait_for('it to run', sub { events_of($run) == 2 });
    # A worker of another host, whose lease ends while the database is down.
    my $other = sql("select agent.register_worker('elsewhere', 'boot', 1, 1, 10, 0, '{agent}')");
    $pg->stop('fast');
    $sv->wait_log(qr/AGT0323/);
    $pg->start;
    $sv->wait_log(qr/AGT0325/);
    is sql("select agent.renew_worker($other, 3600, false)"), 'ok', 'others have the time to renew theirs';
    open_gate($gate);
    wait_status($run, 'success');
    is sql("select attempts from agent.usage_events where run_id = '$run'"), 1, 'at its first attempt';
    is $sv->stop, 0, 'the supervisor exits with status 0';
    sql("delete from agent.workers where worker_id = $other");
};

subtest 'crashes of the database lose no run' => sub {
    my $sv = TestSupervisor->start($pg, lease_sec => 60);
    $sv->wait_ready;
    for my $round (1 .. 5) {
        create_runs(50, { do => 'stream', count => 5 });
        $sv->wake;
        crash_database();
    }
    wait_for('all runs to end', sub { is_up() && sql('select count(*) from agent.run_queue') == 0 }, 300);
    is sql("select count(*) from agent.runs where status <> 'success'"), 0, 'all runs succeed';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a claim that a crash has undone: the run is executed once, under the next epoch' => sub {
    my $sv = TestSupervisor->start($pg);
    $sv->wait_ready;
    my $run = create_run({ do => 'stuck', once => 1 });
    $sv->wake;
    wait_for('it to run', sub { events_of($run) == 2 });
    # As after the crash: ready again, with the epoch of before the claim.
    sql("update agent.run_queue set state = 'ready', worker_id = null, epoch = epoch - 1, attempts = 0, "
        . "ready_seq = nextval('agent.run_ready_seq') where run_id = '$run'");
    $sv->wake;
    wait_status($run, 'success');
    is sql("select epoch from agent.usage_events where run_id = '$run'"), 2,
        'the run is executed under the next epoch';
    unlike $sv->log_text, qr/AGT033[12]/, 'the runner was not killed';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a run whose output cannot be stored ends in error, others of its batch do not' => sub {
    sql("alter table agent.run_events add constraint test check (data not like '%unstorable%')");
    my $sv = TestSupervisor->start($pg);
    $sv->wait_ready;
    my $gate = make_gate();
    my @good = create_each(5, { do => 'gate', path => $gate });
    my $bad = create_run({ do => 'gate', path => $gate, bytes => -1 });
    $sv->wake;
    wait_events('all to run', 2, @good, $bad);

    # While one statement waits for this lock, ends of other runs share a batch.
    open my $lock, '|-', 'psql', '-Xq' or die "psql: $!\n";
    print {$lock} "begin; lock table agent.run_events in share mode;\n";
    $lock->flush;
    my $waiting = "select count(*) from pg_locks where relation = 'agent.run_events'::regclass and ";
    wait_for('the lock', sub { sql("$waiting granted and mode = 'ShareLock'") });
    my $first = create_run({ do => 'noop' });
    $sv->wake;
    wait_for('a statement to wait for it', sub { sql("$waiting not granted") });
    open_gate($gate);
    wait_for('the runner to pass the gate', sub { runner_is_idle($sv) });
    close $lock or die "psql failed\n";

    wait_status($bad, 'error');
    wait_all_final('success', @good, $first);
    is sql("select error->>'error' from agent.runs where run_id = '$bad'"), 'invalid_output', 'with its reason';
    is_deeply [ map { $_->[0] } events_of($bad) ], [qw(metadata custom error)], 'its last event is the error';
    like $sv->log_text, qr/AGT0344: a batch of \d+ runs was refused/, 'it shared a batch';
    unlike $sv->log_text, qr/AGT033[12]/, 'the runner was not killed';
    is $sv->stop, 0, 'the supervisor exits with status 0';
    sql('alter table agent.run_events drop constraint test');
};

# The runner closes its end of a gate when the run has ended.
sub runner_is_idle {
    my ($sv) = @_;
    my ($runner) = $sv->runner_pids;
    return !grep { (readlink($_) // '') =~ m{/gate\z} } glob "/proc/$runner/fd/*";
}

subtest "the role's own limits do not apply to the supervisor" => sub {
    sql("alter role agent in database agent set statement_timeout = '100ms'");
    sql('alter role agent in database agent set synchronous_commit = off');
    sql('create function public.take_longer() returns trigger language plpgsql as '
        . "'begin perform pg_sleep(0.3); return null; end'");
    sql('create trigger take_longer after insert on agent.run_events for each statement '
        . 'execute function public.take_longer()');
    my $sv = TestSupervisor->start($pg);
    $sv->wait_ready;
    my $run = create_run({ do => 'step' });
    $sv->wake;
    wait_status($run, 'success');
    unlike $sv->log_text, qr/AGT0313/, 'no statement takes too long';
    sql($TERMINATE);
    $sv->wait_log(qr/AGT0312/);
    is_deeply [ $sv->log_text =~ /AGT0316: (.*)/g ], [ 'a crash of the database may lose runs that '
        . 'were acknowledged: fsync = off, full_page_writes = off, synchronous_commit = off' ],
        'unsafe settings are logged once';
    is $sv->stop, 0, 'the supervisor exits with status 0';
    sql('drop trigger take_longer on agent.run_events');
    sql('drop function public.take_longer()');
    sql('alter role agent in database agent reset all');
};

subtest 'a database without the schema is reported' => sub {
    sql('create database empty');
    (my $conninfo = $pg->conninfo) =~ s/dbname=agent/dbname=empty/;
    my $sv = TestSupervisor->start($pg, conninfo => $conninfo);
    $sv->wait_log(qr/AGT0313: list_node_workers failed: .*agent/);
    is $sv->stop, 0, 'the supervisor goes on trying';
};

done_testing;
