# SPDX-License-Identifier: Apache-2.0
# A line, or a start line, whose statement crashes PostgreSQL each time, or has too little memory, and crashes that it did not cause.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Env qw(slurp);
use AgentTest::Wait;
use Test::More;
use TestLarge;
use TestSupervisor;

my $pg = start_cluster();
my @runner = (runner => scripted_runner('request_runner.pl'));

# The value that a statement returns; none while the database is down.
sub ask_if_up {
    my ($statement) = @_;
    return eval { local $SIG{__WARN__} = sub { }; sql($statement) };
}

sub recoveries { return scalar(() = slurp($pg->host . '/postgres.log') =~ /ready to accept connections/g) }

# Has the database execute a statement for each line of more than that many bytes.
sub execute_at_lines {
    my ($bytes, $statement) = @_;
    sql('create or replace function public.at_long_line() returns trigger language plpgsql security definer as $f$ begin '
        . "if length(new.data) > $bytes then $statement; end if; return new; end \$f\$");
    return sql('create or replace trigger at_long_line before insert on agent.run_events for each row execute function public.at_long_line()');
}

sub execute_at_long_lines {
    my ($statement) = @_;
    return execute_at_lines(50_000, $statement);
}

# The supervisor needs the warning of a crash.
sql(q{do $do$ begin execute format('alter database %I set client_min_messages = error', current_database()); end $do$});

subtest 'a run ends in error when its line alone has crashed the database three times' => sub {
    my $sv = TestSupervisor->start($pg, @runner, lease_sec => 120, timing_ms => patient_timing());
    $sv->wait_ready;
    execute_at_long_lines(q{execute $c$copy (select 1) to program 'kill -KILL $PPID'$c$});
    my $before = recoveries();
    my $run = create_run({ do => 'write', lengths => [70_000] });
    $sv->wake;
    wait_for('the run to end', sub {
        ask_if_up("select count(*) from agent.runs where run_id = '$run' and status <> 'pending'")
    }, 180);
    is status_of($run), 'error', 'its status is error';
    like sql("select error from agent.runs where run_id = '$run'"), qr/InvalidOutputError.*crashed/s, 'its error has the reason';
    cmp_ok recoveries() - $before, '<=', 6, 'the database crashed at most six times';
    wait_status($sv->start_run({ do => 'read' }), 'success', 60);
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

# While it stores the shared batch, the lines of the run together, and the line alone three times;
# once more if no connection of the supervisor gets the notice of one.
subtest 'a short line among others crashes the database five or six times' => sub {
    my $sv = TestSupervisor->start($pg, lease_sec => 120, timing_ms => patient_timing());
    $sv->wait_ready;
    execute_at_lines(500, q{execute $c$copy (select 1) to program 'kill -KILL $PPID'$c$});
    my $gate = make_gate();
    my %input = (do => 'gate', path => $gate, count => 200);
    my @runs = create_all([ { %input, bytes => 700 } ], [ { %input, bytes => 100 } ]);
    $sv->wake;
    # Both have started, so that their output shares a batch.
    wait_for('their first events', sub { sql("select count(distinct run_id) = 2 from agent.run_events where event = 'custom' and run_id in (" . quoted(@runs) . ')') eq 't' });
    my $before = recoveries();
    open_gate($gate);
    for my $run (@runs) {
        wait_for('the end of a run', sub {
            ask_if_up("select count(*) from agent.runs where run_id = '$run' and status <> 'pending'")
        }, 180);
    }
    is status_of($runs[0]), 'error', 'its run ends in error';
    is status_of($runs[1]), 'success', 'a run that shared its batch succeeds';
    cmp_ok recoveries() - $before, '<=', 6, 'no crash more';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

# Each attempt ends the connection, of all runs at first.
subtest 'a run ends in error when its short line always ends the connection on which it is stored' => sub {
    my $sv = TestSupervisor->start($pg, lease_sec => 120, timing_ms => { %{ patient_timing() }, patience => 500 });
    $sv->wait_ready;
    execute_at_lines(500, 'perform pg_terminate_backend(pg_backend_pid()), pg_sleep(100)');
    my ($run, $other) = create_all([ { do => 'stream', count => 200, bytes => 700 } ], [ { do => 'stream', count => 200, bytes => 100 } ]);
    $sv->wake;
    wait_status($other, 'success', 180);
    wait_status($run, 'error', 180);
    is error_of($run), 'OutputTimeoutError', 'its error is OutputTimeoutError';
    is attempts_of($other), 1, 'another run ends at its first attempt';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

# A crash would undo a claim that is not on the disk: with this delay PostgreSQL does not write it there by itself.
subtest 'the first line after the claim of a run crashes the database five times at most' => sub {
    sql('alter system set wal_writer_delay = 10000');
    sql('alter system set wal_writer_flush_after = 100000');
    sql('select pg_reload_conf()');
    my $sv = TestSupervisor->start($pg, lease_sec => 120, timing_ms => patient_timing());
    $sv->wait_ready;
    execute_at_lines(0, q{if new.event = 'metadata' then execute $c$copy (select 1) to program 'kill -KILL $PPID'$c$; end if});
    my $before = recoveries();
    my $run = create_run({ do => 'hang' });
    $sv->wake;
    my $crashes;
    wait_for('the end of the run, or one crash more', sub {
        $crashes = recoveries() - $before;
        $crashes > 5 || ask_if_up("select count(*) from agent.runs where run_id = '$run' and status <> 'pending'");
    }, 180);
    cmp_ok $crashes, '<=', 5, 'no crash more';
    is status_of($run), 'error', 'its run ends in error';
    unlike $sv->log_text, qr/AGT0343/, 'no crash undoes the claim';
    sql('alter table agent.run_events disable trigger user');
    is $sv->stop, 0, 'the supervisor exits with status 0';
    sql("alter system reset $_") for qw(wal_writer_delay wal_writer_flush_after);
    sql('select pg_reload_conf()');
};

sub shortages { return scalar(() = slurp($pg->host . '/postgres.log') =~ /ERROR:  out of memory/g) }

subtest 'no run ends since the database lacked memory for most of its attempts' => sub {
    my $sv = TestSupervisor->start($pg, @runner, lease_sec => 240, timing_ms => patient_timing());
    $sv->wait_ready;
    execute_at_lines(0, q{if random() < 0.7 then raise exception using errcode = '53200', message = 'out of memory'; end if});
    my @runs = create_each(10, { do => 'write', lengths => [ (100) x 10 ] });
    my $seen = shortages();
    $sv->wake;
    wait_for('more failures than ten runs may have', sub { shortages() > $seen + 60 }, 180);
    execute_at_lines(0, 'null');
    wait_status($_, 'success', 120) for @runs;
    is_deeply [ map { attempts_of($_) } @runs ], [ (1) x 10 ], 'each of them ends at its first attempt';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a run ends in error when the database has lacked memory for its line alone for long, not for others of about its length' => sub {
    my $sv = TestSupervisor->start($pg, @runner, lease_sec => 120, timing_ms => { patience => 2000 });
    $sv->wait_ready;
    execute_at_lines(61_000, q{raise exception using errcode = '53200', message = 'out of memory'});
    my $run = create_run({ do => 'write', lengths => [ 100, 62_000, 100 ] });
    my $seen = shortages();
    $sv->wake;
    while (status_of($run) eq 'pending') {
        wait_for('the next attempt', sub { shortages() > $seen || status_of($run) ne 'pending' }, 90);
        $seen = shortages();
        wait_status($sv->start_run({ do => 'write', lengths => [60_000] }), 'success');
    }
    is status_of($run), 'error', 'its status is error';
    like sql("select error from agent.runs where run_id = '$run'"), qr/InvalidOutputError.*too little memory/s, 'its error has the reason';
    like $sv->log_text, qr/AGT0341: the database refused the output of run $run/, 'the log has the run';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'no run ends since another process of the database crashed while its line was stored' => sub {
    my $sv = TestSupervisor->start($pg, @runner, lease_sec => 240, timing_ms => patient_timing());
    $sv->wait_ready;
    execute_at_long_lines('perform pg_sleep(100) where exists (select from public.slow)');
    sql('create table public.slow as select 1');
    my $run = create_run({ do => 'write', lengths => [70_000] });
    $sv->wake;
    for my $round (1 .. 5) {
        wait_for('the line alone to be stored', sub {
            ask_if_up("select count(*) from pg_stat_activity where wait_event = 'PgSleep' and query like '%agent.save_batch(%' "
                . "and clock_timestamp() - query_start > '1.1 s'")
        }, 60);
        my $before = recoveries();
        kill KILL => sql("select pid from pg_stat_activity where backend_type = 'background writer'");
        wait_for('the end of the recovery', sub { recoveries() > $before });
    }
    wait_for('the line to be quick', sub { ask_if_up('with gone as (delete from public.slow returning 1) select count(*) from gone') });
    wait_for('the run to end', sub {
        ask_if_up("select count(*) from agent.runs where run_id = '$run' and status <> 'pending'")
    }, 180);
    is status_of($run), 'success', 'its status is success';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

# Start lines that are too long for a claim to compose: while the one table has a row it waits, while there is the other table it crashes.
sql('create table public.held (one integer); grant select on public.held to public');
wrap_function('compose_starts', 'while exists (select from public.held) loop perform pg_sleep(0.01); end loop; '
    . q{if to_regclass('public.crashing') is not null then execute $c$copy (select 1) to program 'kill -KILL $PPID'$c$; end if});

# Each crash ends the statement that composes the other one's start line.
subtest 'a line that crashes the database ends no run whose start line is composed at each crash' => sub {
    sql('insert into public.held values (1)');
    my ($run, $other) = create_all([ { do => 'write', lengths => [70_000] } ], [ { do => 'write', lengths => [100] }, pad => 2_000_000 ]);
    execute_at_long_lines("while exists (select from agent.runs where run_id = '$other' and status = 'pending') "
        . q{and not exists (select from pg_stat_activity where query like '%agent.compose_starts(%' and state = 'active') }
        . q{loop perform pg_stat_clear_snapshot(), pg_sleep(0.01); end loop; execute $c$copy (select 1) to program 'kill -KILL $PPID'$c$});
    my $before = recoveries();
    my $sv = TestSupervisor->start($pg, @runner, lease_sec => 240, timing_ms => patient_timing());
    wait_for('the run to end', sub {
        ask_if_up("select count(*) from agent.runs where run_id = '$run' and status <> 'pending'")
    }, 180);
    is status_of($run), 'error', 'the run of the line ends in error';
    cmp_ok recoveries() - $before, '>=', 3, 'the database crashed three times at least';
    wait_for('the start line to be composed', sub { ask_if_up('with gone as (delete from public.held returning 1) select count(*) from gone') });
    wait_status($other, 'success', 180);
    is attempts_of($other), 1, 'the other run ends at its first attempt';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a run ends in error when composing its start line has crashed the database three times' => sub {
    sql('create table public.crashing ()');
    my $before = recoveries();
    my $sv = TestSupervisor->start($pg, @runner, lease_sec => 240, timing_ms => patient_timing());
    my $run = create_run({ do => 'write', lengths => [100] }, pad => 2_000_000);
    my $crashes;
    wait_for('the end of the run, or more crashes than it may cause', sub {
        $crashes = recoveries() - $before;
        $crashes > 5 || ask_if_up("select count(*) from agent.runs where run_id = '$run' and status <> 'pending'");
    }, 180);
    is status_of($run), 'error', 'its status is error';
    is error_of($run), 'StartFailedError', 'its error is StartFailedError';
    cmp_ok $crashes, '<=', 5, 'no crash more';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

done_testing;
