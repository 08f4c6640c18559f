# SPDX-License-Identifier: Apache-2.0
# A database that is down, loses results or refuses the output of a run.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Env qw(slurp);
use AgentTest::Process qw(is_alive);
use AgentTest::Wait;
use Test::More;
use TestLarge;
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
    note "$cut connections were terminated";
    wait_for('all runs to end', sub { sql('select count(*) from agent.run_queue') == 0 }, 300);
    is sql("select count(*) from agent.runs where status = 'success'"), 2000, 'all runs succeed';
    is sql("select count(*) from (select run_id from agent.run_events group by run_id "
        . "having count(*) filter (where event = 'custom') < 20 "
        . "or max(seq) + 1 <> count(*) or min(seq) <> 0) x"), 0, 'no event is lost, and no event number is left out';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

for my $part (qw(request result)) {
    subtest "the $part of a statement is lost: its run continues" => sub {
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
            wait_for("the run whose $part of $function was lost", sub { events_of($run) >= 2 });
            open_gate($gate);
            wait_status($run, 'success');
        }
        my $run;
        $proxy->lose($part, 'save_batch', sub { $run = create_run({ do => 'step' }); $sv->wake });
        wait_status($run, 'success');
        is scalar(events_of($run)), 2, 'a lost batch is sent again';
        $proxy->lose($part, 'release_runs', sub { $run = create_run({ do => 'exit', once => 1 }); $sv->wake });
        wait_status($run, 'success');
        is sql("select count(*) from agent.run_queue"), 0, 'a lost release is sent again';
        is $sv->stop, 0, 'the supervisor exits with status 0';
    };
}

subtest 'the result of a claim is lost: new runs execute though another run never pauses its output' => sub {
    my $proxy = TestProxy->new($pg);
    # No pings: the runner of that run reads nothing.
    my $sv = TestSupervisor->start($pg, conninfo => $proxy->conninfo, runners => 2, slots => 1,
        timing_ms => { ping_interval => 3_600_000 });
    $sv->wait_runners(2);
    my $talker = create_run({ do => 'stream', count => 2_000_000_000, once => 1 });
    $sv->wake;
    wait_for('its output', sub { sql("select count(*) from (select from agent.run_events "
        . "where run_id = '$talker' limit 100) x") == 100 });
    my $run;
    $proxy->lose('result', 'claim_runs', sub { $run = create_run({ do => 'noop', name => 'of a lost claim' }); $sv->wake },
        'of a lost claim');
    wait_status($run, 'success');
    is sql("select epoch from agent.usage_events where run_id = '$run'"), 2, 'the run of the lost claim is given back';
    is sql("select concat_ws(' ', state, epoch) from agent.run_queue where run_id = '$talker'"), 'leased 1',
        'the run that never pauses continues under its lease';
    kill KILL => $sv->runner_pids;
    wait_status($talker, 'success');
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

# A supervisor behind the proxy.
sub start_behind {
    my ($proxy) = @_;
    my $sv = TestSupervisor->start($pg, conninfo => $proxy->conninfo, lease_sec => 12, timing_ms => patient_timing());
    $sv->wait_ready;
    return $sv;
}

# Loses the result of a claim, and waits for the ends of its run and of a later one.
sub execute_after_loss {
    my ($sv, $proxy) = @_;
    my $lost;
    $proxy->lose('result', 'claim_runs', sub { $lost = create_run({ do => 'noop', name => 'of a lost claim' }); $sv->wake },
        'of a lost claim');
    my $run = create_run({ do => 'noop' });
    $sv->wake;
    $sv->wait_log(qr/AGT0379.*$lost/);
    return wait_status($run, 'success') && wait_status($lost, 'success');
}

subtest 'the result of a claim is lost: new runs execute while output of another run lacks memory' => sub {
    my $proxy = TestProxy->new($pg);
    sql('create function public.at_line() returns trigger language plpgsql as $f$ begin if length(new.data) > 600 then '
        . q{raise exception using errcode = '53200', message = 'out of memory'; end if; return new; end $f$});
    sql('create trigger at_line before insert on agent.run_events for each row execute function public.at_line()');
    my $sv = start_behind($proxy);
    my $writer = $sv->start_run({ do => 'stream', count => 1, bytes => 700 });
    $sv->wait_log(qr/AGT0378/);
    ok execute_after_loss($sv, $proxy), 'the run of the lost claim ends, and a new one';
    is status_of($writer), 'pending', 'the run whose output is not saved has not ended';
    sql('drop trigger at_line on agent.run_events');
    wait_status($writer, 'success');
    is attempts_of($writer), 1, 'later it ends at its first attempt';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'the result of a claim is lost: new runs execute while another run is locked' => sub {
    my $proxy = TestProxy->new($pg);
    my $sv = start_behind($proxy);
    my $gate = make_gate();
    my $writer = $sv->start_run({ do => 'gate', path => $gate, once => 1 });
    wait_events('its first event', 1, $writer);
    my $lock = hold_lock("select from agent.run_queue where run_id = '$writer' for update");
    open_gate($gate);
    $sv->wait_log(qr/AGT0313: save_batch failed: 55P03/);
    ok execute_after_loss($sv, $proxy), 'the run of the lost claim ends, and a new one';
    is status_of($writer), 'pending', 'the locked run has not ended';
    release_lock($lock);
    wait_status($writer, 'success');
    is attempts_of($writer), 1, 'later it ends at its first attempt';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

for my $part (qw(request result)) {
    subtest "the $part of a report about graphs is lost: it is sent again" => sub {
        my $proxy = TestProxy->new($pg);
        my $sv;
        $proxy->lose($part, 'save_graphs', sub {
            $sv = TestSupervisor->start($pg, node => 'node-2', conninfo => $proxy->conninfo, graphs => { "lost-$part" => {} });
        });
        ok wait_for('the graph to be stored', sub { sql("select count(*) from agent.graphs where graph_id = 'lost-$part'") }),
            'the graph is stored';
        is $sv->stop, 0, 'the supervisor exits with status 0';
    };
}

for my $part (qw(request result)) {
    subtest "the $part of a report about a program that does not start is lost: it is sent again" => sub {
        my $proxy = TestProxy->new($pg);
        my $sv;
        $proxy->lose($part, 'report_failing_graphs', sub {
            $sv = TestSupervisor->start($pg, node => 'node-2', conninfo => $proxy->conninfo, graphs => { "broken-$part" => { start => 'exit' } });
        });
        my $run = create_run({ do => 'noop' }, graph => "broken-$part");
        wait_status($run, 'error');
        is error_of($run), 'RunnerStartError', 'a run of the graph ends';
        is $sv->stop, 0, 'the supervisor exits with status 0';
    };
}

# Of those of the webhooks, webhooks.t. Sweeps change nothing here when a result is lost: they are sent again.
for my $part (qw(request result)) {
    subtest "the $part of a registration is lost: it is sent again" => sub {
        my $proxy = TestProxy->new($pg);
        my $sv;
        for my $function (qw(list_node_workers register_worker)) {
            $proxy->lose($part, $function, sub {
                $sv = TestSupervisor->start($pg, node => "registers-$part", conninfo => $proxy->conninfo);
            });
            $sv->wait_ready;
            is $sv->stop, 0, "the supervisor registers without the $part of $function";
        }
    };

    subtest "the $part of a long start line, or of a long line of output, is lost: its run continues" => sub {
        my $proxy = TestProxy->new($pg);
        my $sv = TestSupervisor->start($pg, conninfo => $proxy->conninfo);
        $sv->wait_ready;
        my $run;
        $proxy->lose($part, 'compose_starts', sub { $run = create_run({ do => 'noop' }, pad => 2_000_000); $sv->wake });
        wait_status($run, 'success');
        is attempts_of($run), 1, 'a run without the result of a statement is executed at its first attempt';
        my $gate = make_gate();
        $run = $sv->start_run({ do => 'gate', path => $gate, bytes => 100_000 });
        $proxy->lose($part, 'save_batch', sub { open_gate($gate) });
        wait_status($run, 'success');
        is scalar(events_of($run)), 3, 'output is stored once when the result of its statement is lost';
        is $sv->stop, 0, 'the supervisor exits with status 0';
    };

    subtest "the $part of an answer is lost: the run gets it" => sub {
        my $proxy = TestProxy->new($pg);
        my $sv = TestSupervisor->start($pg, conninfo => $proxy->conninfo, runner => scripted_runner('request_runner.pl'));
        $sv->wait_ready;
        my @ops = ({ op => 'put', namespace => ['t'], key => "lost-$part", value => { n => 1 } });
        my $run;
        $proxy->lose($part, 'use_store', sub { $run = create_run({ do => 'store', ops => \@ops }); $sv->wake });
        wait_status($run, 'success');
        is attempts_of($run), 1, 'a run without the result of a statement is executed at its first attempt';
        my ($reader) = create_large_runs(1, 4, { do => 'read' }, bytes => 900_000);
        $proxy->lose($part, 'read_state', sub { $sv->wake });
        wait_status($reader, 'success');
        is attempts_of($reader), 1, 'a run without the result of a part of its state is executed at its first attempt';
        my (undef, undef, @events) = events_of($reader);
        is_deeply [ map { $_->[1]{part}{messages} } @events ], [ (1) x 4 ], 'a run that reads its state gets each part once, in order';
        is $sv->stop, 0, 'the supervisor exits with status 0';
    };

    subtest "the $part of the end of a worker is lost: it is sent again" => sub {
        my $proxy = TestProxy->new($pg);
        my $sv = TestSupervisor->start($pg, node => "ends-$part", conninfo => $proxy->conninfo, drain_timeout_ms => 60_000);
        $sv->wait_ready;
        $proxy->lose($part, $_, sub { }) for qw(sweep_workers sweep_workers);
        $proxy->lose($part, 'mark_worker_dead', sub { $sv->signal('USR1') });
        is $sv->wait_exit, 0, 'the supervisor exits with status 0';
        is sql("select count(*) from agent.workers where state <> 'dead' and node_name = 'ends-$part'"), 0, 'the worker is marked dead';
    };
}

subtest 'the request of a notification is lost: it is sent again' => sub {
    my $proxy = TestProxy->new($pg);
    my $sv = TestSupervisor->start($pg, conninfo => $proxy->conninfo);
    $sv->wait_ready;
    my $listener = start_listener();
    my $run;
    $proxy->lose('request', 'notify_runs', sub { $run = create_run({ do => 'noop' }); $sv->wake });
    wait_for('the notification', sub { listen_once($listener) =~ /$run/ });
    pass 'the listener is notified';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

# Replaces a function by one that calls it and then does something, the first time; returns what undoes that.
sub amend {
    my ($name, $types, $names, $returns, $call, $then) = @_;
    sql('create sequence public.calls');
    sql('grant usage on sequence public.calls to public');
    sql("alter function agent.$name($types) rename to kept");
    sql("create function agent.$name($names) returns $returns language plpgsql as "
        . "'begin $call if nextval(''public.calls'') = 1 then $then end if; end'");
    return sub {
        sql("drop function agent.$name($types)");
        sql("alter function agent.kept($types) rename to $name");
        sql('drop sequence public.calls');
    };
}

subtest 'a statement is prepared once on a connection' => sub {
    sql("alter system set log_statement = 'all'");
    sql('select pg_reload_conf()');
    my $sv = TestSupervisor->start($pg);
    $sv->wait_ready;
    my $executed = sub { return scalar(() = slurp($pg->host . '/postgres.log') =~ /execute agent_save_batch: /g) };
    my $before = $executed->();
    for (1 .. 3) {
        my $run = create_run({ do => 'noop' });
        $sv->wake;
        wait_status($run, 'success');
    }
    cmp_ok $executed->() - $before, '>=', 3, 'the prepared statement is executed';
    is $sv->stop, 0, 'the supervisor exits with status 0';
    sql('alter system reset log_statement');
    sql('select pg_reload_conf()');
};

my @stale = (
    [ 'a notification has removed the prepared statements of its session', qr/26000/, sub {
        return amend('notify_runs', 'text[]', 'p_ids text[]', 'void', 'perform agent.kept(p_ids);', 'deallocate all;')
    } ],
    [ 'a batch has removed the prepared statements of its session', qr/26000.*agent_notify_runs/, sub {
        my ($types, $params, $names) = map { sql("select $_ from pg_proc where proname = 'save_batch'") }
            'oidvectortypes(proargtypes)', 'pg_get_function_arguments(oid)', "array_to_string(proargnames[1:pronargs], ', ')";
        return amend('save_batch', $types, $params, 'table (run_id uuid, outcome text, finished boolean, promoted boolean, elapsed_usec bigint)',
            "return query select * from agent.kept($names);", 'deallocate all;')
    } ],
    [ 'a function returns another type than before', qr/0A000/, sub {
        sql('alter function agent.notify_runs(text[]) rename to kept');
        sql("create function agent.notify_runs(p_ids text[]) returns integer language plpgsql as "
            . "'begin perform agent.kept(p_ids); return 1; end'");
        return sub {
            sql('drop function agent.notify_runs(text[])');
            sql('alter function agent.kept(text[]) rename to notify_runs');
        };
    } ],
);
subtest 'a claim whose function returns another type than before ends no runner' => sub {
    my $sv = TestSupervisor->start($pg, lease_sec => 12, timing_ms => fast_timing());
    $sv->wait_ready;
    my $gate = make_gate();
    my $long = $sv->start_run({ do => 'gate', path => $gate });
    my $source = join "\n", sql("select replace(pg_get_functiondef(oid), 'quarantines_passed smallint', 'quarantines_passed integer') from pg_proc "
        . "where proname = 'claim_runs'");
    my ($types) = sql("select pg_get_function_identity_arguments(oid) from pg_proc where proname = 'claim_runs'");
    sql("alter function agent.claim_runs($types) rename to kept");
    sql($source =~ s/q\.quarantines_passed,/q.quarantines_passed::integer,/r =~ s/null::smallint, null::smallint/null::smallint, null::integer/r);
    my $run = create_run({ do => 'noop' });
    $sv->wake;
    wait_status($run, 'success');
    open_gate($gate);
    wait_status($long, 'success');
    is attempts_of($run, $long), 1, 'each run ends at its first attempt';
    like $sv->log_text, qr/AGT0311.*0A000/, 'the connection is replaced';
    unlike $sv->log_text, qr/AGT0331|AGT0379/, 'the claim is not taken for lost, and no runner ends';
    is $sv->stop, 0, 'the supervisor exits with status 0';
    sql("drop function agent.claim_runs($types)");
    sql("alter function agent.kept($types) rename to claim_runs");
};

for my $case (@stale) {
    my ($title, $reason, $change) = @{$case};
    subtest "$title: its runs continue and no notification is lost" => sub {
        my $sv = TestSupervisor->start($pg);
        $sv->wait_ready;
        my $end = sub {
            my $listener = start_listener();
            my $run = create_run({ do => 'noop' });
            $sv->wake;
            wait_status($run, 'success');
            wait_for('the notification', sub { listen_once($listener) =~ /$run/ });
            return $run;
        };
        $end->();
        my $undo = $change->();
        is attempts_of(map { $end->() } 1 .. 3), 1, 'the runs end at their first attempt, and are notified';
        $sv->wait_log(qr/AGT0311.*$reason/);
        is $sv->stop, 0, 'the supervisor exits with status 0';
        $undo->();
    };
}

subtest 'a run survives a short outage of the database' => sub {
    my $sv = TestSupervisor->start($pg, lease_sec => 120);
    $sv->wait_ready;
    my $gate = make_gate();
    my $run = $sv->start_run({ do => 'gate', path => $gate });
    $pg->stop('fast');
    $sv->wait_log(qr/AGT0311/);
    open_gate($gate);
    $sv->wait_log(qr/AGT0310/);
    $pg->start;
    wait_for('the database', \&is_up);
    wait_status($run, 'success');
    is attempts_of($run), 1, 'the run ends at its first attempt';
    like $sv->log_text, qr/AGT0312/, 'the new connection is logged';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'runners are stopped, then killed, while the lease is not renewed' => sub {
    my $sv = TestSupervisor->start($pg, timing_ms => { renew => 200, stop => 3000, kill => 4000 });
    $sv->wait_ready;
    my $run = $sv->start_run({ do => 'hang', once => 1 });
    my ($runner) = $sv->runner_pids;
    $pg->stop('fast');
    $sv->wait_log(qr/AGT0323/);
    wait_for('the runner to be stopped', sub { AgentTest::Process::stat_of($runner)->{state} =~ /[TZX]/ });
    $sv->wait_log(qr/AGT0324/);
    wait_for('the runner to be killed', sub { !is_alive($runner) });
    $pg->start;
    wait_for('the database', \&is_up);
    wait_status($run, 'success');
    is attempts_of($run), 1, 'the attempt is not counted';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'stopped runners continue after a renewal in time' => sub {
    # Runners are stopped soon, but not killed within this test.
    my $sv = TestSupervisor->start($pg, lease_sec => 120, timing_ms => { renew => 200, stop => 4000 });
    $sv->wait_ready;
    my $gate = make_gate();
    my $run = $sv->start_run({ do => 'gate', path => $gate });
    # A worker of another host, whose lease ends while the database is down.
    my $other = sql("select worker_id from agent.register_worker('elsewhere', 'boot', 1, 1, 10, 0, '{default}', '{agent}')");
    $pg->stop('fast');
    $sv->wait_log(qr/AGT0323/);
    $pg->start;
    $sv->wait_log(qr/AGT0325/);
    is sql("select agent.renew_worker($other, 3600, false)"), 'ok', 'a worker whose lease ended during the outage can still renew it';
    open_gate($gate);
    wait_status($run, 'success');
    is attempts_of($run), 1, 'the run ends at its first attempt';
    is $sv->stop, 0, 'the supervisor exits with status 0';
    sql("delete from agent.workers where worker_id = $other");
};

subtest 'crashes of the database lose no run' => sub {
    my $sv = TestSupervisor->start($pg, lease_sec => 60);
    $sv->wait_ready;
    my $begun = sql('select clock_timestamp()');
    for my $round (1 .. 5) {
        create_runs(50, { do => 'stream', count => 5 });
        $sv->wake;
        crash_database();
    }
    wait_for('all runs to end', sub { is_up() && sql('select count(*) from agent.run_queue') == 0 }, 300);
    is sql("select coalesce(string_agg(concat_ws(' ', run_id, status, error), ', '), '') from agent.runs
        where status <> 'success' and created_at >= '$begun'") // '', '', 'all runs succeed';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

# As after a failover to a standby that did not have them: ready again, with the epoch from before the claim.
sub undo_claims {
    my (@runs) = @_;
    return sql("update agent.run_queue set state = 'ready', worker_id = null, epoch = epoch - 1, attempts = 0, "
        . "ready_seq = nextval('agent.run_ready_seq') where run_id in (" . quoted(@runs) . ')');
}

subtest 'a failover of the database undoes a claim: the run is executed under the next epoch' => sub {
    my $sv = TestSupervisor->start($pg);
    $sv->wait_ready;
    my $run = $sv->start_run({ do => 'hang', once => 1 });
    undo_claims($run);
    $sv->wake;
    wait_status($run, 'success');
    is sql("select epoch from agent.usage_events where run_id = '$run'"), 2,
        'the epoch is the next one';
    unlike $sv->log_text, qr/AGT033[12]/, 'the runner is not killed';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

# The rest of their output waits when they are claimed again.
subtest 'a failover undoes the claims and events of runs that end while the database is away: they are executed again' => sub {
    my $proxy = TestProxy->new($pg);
    my $sv = TestSupervisor->start($pg, conninfo => $proxy->conninfo, lease_sec => 120);
    $sv->wait_ready;
    my $gate = make_gate();
    my @runs = $sv->start_runs(8, { do => 'gate', path => $gate, count => 19 });
    my $list = quoted(@runs);
    $proxy->refuse;
    open_gate($gate);
    wait_for('the runs to end', sub { runner_is_idle($sv) });
    wait_for('the end of the connections', sub {
        sql("select count(*) from pg_stat_activity where application_name = 'agent supervisor'") == 0
    });
    undo_claims(@runs);
    sql("delete from agent.run_events where run_id in ($list)");
    $proxy->admit;
    wait_for('each run to begin, or to end with the rest of its output', sub {
        sql("select count(*) from agent.runs r where run_id in ($list) and (finished_at is not null
            or exists (select from agent.run_events e where e.run_id = r.run_id and e.event = 'custom'))") == @runs
    });
    is sql("select count(*) from agent.runs where run_id in ($list) and finished_at is not null"), 0, 'none has ended' or return;
    open_gate($gate);
    wait_all_final('success', @runs);
    is_deeply [ map { [ map { $_->[0] } events_of($_) ] } @runs ], [ ([ 'metadata', ('custom') x 20 ]) x 8 ], 'each has all its events';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

# Returns what gives a run back the rows that it has now, as a failover does to a standby that got nothing later.
sub remember {
    my ($run) = @_;
    my $thread = sql("select thread_id from agent.runs where run_id = '$run'");
    my @tables = qw(runs run_queue run_events);
    sql("create table public.kept_$_ as select * from agent.$_ where run_id = '$run'") for @tables;
    return sub {
        # Without the trigger that refuses changes of a final run.
        sql(join '; ', 'begin', 'set local session_replication_role = replica',
            map({ ("delete from agent.$_ where run_id = '$run'", "insert into agent.$_ select * from public.kept_$_") } @tables),
            "delete from agent.usage_events where run_id = '$run'",
            "update agent.threads set status = 'busy', active_run_id = '$run' where thread_id = '$thread'",
            map({ ("drop table public.kept_$_") } @tables), 'commit');
    };
}

# Waits until a run has begun again, which has this many events then, lets it end, and checks how it did.
sub end_again {
    my ($sv, $run, $gate, %expected) = @_;
    wait_events('the run to begin again', $expected{events}, $run);
    open_gate($gate);
    wait_status($run, 'success');
    is scalar(events_of($run)), $expected{events}, 'no number of an event is left out';
    is sql("select concat_ws(' ', epoch, attempts) from agent.usage_events where run_id = '$run'"), "$expected{epoch} 1",
        'the run is executed under another lease, and the attempt is not counted';
    like $sv->log_text, qr/AGT0379.*$run/, 'the supervisor says so';
    return;
}

for my $case ([ 'and the connections are lost', 20, 1 ], [ 'beside connections that live', 8, 0 ]) {
    my ($title, $lease_sec, $is_lost) = @{$case};
    subtest "a failover undoes the end of a run $title: it is executed again" => sub {
        my $sv = TestSupervisor->start($pg, lease_sec => $lease_sec);
        $sv->wait_ready;
        my $gate = make_gate();
        my $run = $sv->start_run({ do => 'gate', path => $gate });
        my $undo = remember($run);
        open_gate($gate);
        wait_status($run, 'success');
        $undo->();
        sql($TERMINATE) if $is_lost;
        end_again($sv, $run, $gate, events => 4, epoch => 2);
        is $sv->stop, 0, 'the supervisor exits with status 0';
    };
}

subtest 'a failover undoes the events of a run that continues: it is executed again, without a gap' => sub {
    my $sv = TestSupervisor->start($pg);
    $sv->wait_ready;
    my $gate = make_gate();
    my $run = $sv->start_run({ do => 'gate', path => $gate });
    sql("delete from agent.run_events where run_id = '$run'");
    sql("update agent.run_queue set batch_no = 0 where run_id = '$run'");
    open_gate($gate);
    end_again($sv, $run, $gate, events => 2, epoch => 2);
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a run whose output cannot be stored ends in error, other runs of its batch do not' => sub {
    sql("alter table agent.run_events add constraint test check (data not like '%unstorable%')");
    my $sv = TestSupervisor->start($pg);
    $sv->wait_ready;
    my $gate = make_gate();
    my @good = $sv->start_runs(5, { do => 'gate', path => $gate });
    my $bad = $sv->start_run({ do => 'gate', path => $gate, bytes => -1 });

    # A supervisor that was stopped reads the ends of all runs at once: they share a batch.
    $sv->signal('STOP');
    open_gate($gate);
    wait_for('the runs to pass the gate', sub { runner_is_idle($sv) });
    $sv->signal('CONT');

    wait_status($bad, 'error');
    wait_all_final('success', @good);
    is error_of($bad), 'InvalidOutputError', 'the error of the run is InvalidOutputError';
    is_deeply [ map { $_->[0] } events_of($bad) ], [qw(metadata custom error)], 'the last event of the run is the error';
    like +(events_of($bad))[-1][1]{message}, qr/error log says why \(AGT0313\)/, 'the error of the run names the message of the error log';
    like $sv->log_text, qr/AGT0313: save_batch failed: .*violates check constraint/, 'the error log says why the database refused';
    like $sv->log_text, qr/AGT0344: a batch of \d+ runs was not saved/, 'the refused batch had several runs';
    unlike $sv->log_text, qr/AGT033[12]/, 'the runner is not killed';
    is $sv->stop, 0, 'the supervisor exits with status 0';
    sql('alter table agent.run_events drop constraint test');
};

# The runner closes its end of a gate when the run has ended.
sub runner_is_idle {
    my ($sv) = @_;
    my ($runner) = $sv->runner_pids;
    return !grep { (readlink($_) // '') =~ m{/gate\z} } glob "/proc/$runner/fd/*";
}

subtest 'a supervisor has three connections, also without long lines' => sub {
    my $sv = TestSupervisor->start($pg);
    $sv->wait_ready;
    wait_status($sv->start_run({ do => 'step' }), 'success');
    ok wait_for('three connections', sub { sql("select count(*) from pg_stat_activity where application_name = 'agent supervisor'") == 3 }),
        'the supervisor opens the third one';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest "settings of the role do not apply to the supervisor" => sub {
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
    unlike $sv->log_text, qr/AGT0313/, 'the statement_timeout of the role ends no statement';
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

subtest 'connections that the database has no room for are warned of at the first connection' => sub {
    my ($max, $reserved) = map { sql("show $_") } qw(max_connections superuser_reserved_connections);
    my $room = $max - $reserved;
    my %sizes = (enough => $room - 3, 'too many' => $room - 2);
    for my $title (sort keys %sizes) {
        my $sv = TestSupervisor->start($pg, children => 1, child_connections => $sizes{$title});
        $sv->wait_ready;
        sql($TERMINATE);
        $sv->wait_log(qr/AGT0312/);
        is_deeply [ $sv->log_text =~ /AGT0317: (.*)/g ], $title eq 'enough' ? [] : [
            "max_connections: expected room for the @{[$room + 1]} connections that this httpd may open (1 children "
            . "with @{[$room - 2]} each, of which 1 listens, and 3 of the supervisor), got $room: lower DBDMax, or raise max_connections" ],
            "connections: $title";
        is $sv->stop, 0, "connections: $title: the supervisor exits with status 0";
    }
};

subtest 'a database of another region: nothing is claimed' => sub {
    sql('delete from agent.workers');
    my $run = create_run({ do => 'noop' });
    my $sv = TestSupervisor->start($pg, region => 'eu');
    $sv->wait_log(qr/AGT0318: the database belongs to region local, this host to region eu \(AgentRegion\): its runs are not executed/);
    is sql('select count(*) from agent.workers'), 0, 'no worker is registered';
    is $sv->stop, 0, 'the supervisor exits with status 0';
    is sql("select status from agent.runs where run_id = '$run'"), 'pending', 'a run stays pending';
    $sv = TestSupervisor->start($pg, region => 'local');
    wait_status($run, 'success');
    pass 'a supervisor of the region of the database executes it';
    is $sv->stop, 0, 'the second supervisor exits with status 0';
};

subtest 'a database without the schema is logged, and the supervisor continues to try' => sub {
    sql('create database empty');
    (my $conninfo = $pg->conninfo) =~ s/dbname=agent/dbname=empty/;
    my $sv = TestSupervisor->start($pg, conninfo => $conninfo);
    $sv->wait_log(qr/AGT0310: cannot connect to the database: 3F000: .*agent/);
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

done_testing;
