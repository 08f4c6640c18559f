# SPDX-License-Identifier: Apache-2.0
# Runs whose lines the database stores slowly: how many of them are stored at once.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Env qw(slurp);
use AgentTest::Wait;
use List::Util qw(max);
use Test::More;
use TestLarge;
use TestSupervisor;

my $pg = start_cluster();
my @runner = (runner => scripted_runner('request_runner.pl'));

# Has the database take that long for each event of runs that write.
sub slow_down {
    my ($sec) = @_;
    sql("create or replace function public.slow() returns trigger language plpgsql as 'begin "
        . "if length(new.data) > 5000 then perform pg_sleep($sec); end if; return new; end'");
    return sql('create or replace trigger slow before insert on agent.run_events for each row execute function public.slow()');
}

# Of the transactions that have stored lines of the run, how many each, most first.
sub lines_at_once {
    my ($run) = @_;
    return sql("select count(*) n from agent.run_events where run_id = '$run' and length(data) > 5000 group by xmin order by n desc");
}

# Runs of others that read their state, one after another.
sub read_beside {
    my ($run) = @_;
    my @read = create_large_runs(3, 1, { do => 'read' }, bytes => 200);
    return wait_all_final('success', @read);
}

subtest 'no request of another run waits for a long line that the database cannot store yet' => sub {
    my $sv = TestSupervisor->start($pg, @runner, lease_sec => 240, timing_ms => patient_timing());
    $sv->wait_ready;
    sql("create or replace function public.slow() returns trigger language plpgsql as 'begin "
        . "if length(new.data) > 5000 then perform pg_advisory_xact_lock(1); end if; return new; end'");
    sql('create or replace trigger slow before insert on agent.run_events for each row execute function public.slow()');
    my $lock = hold_lock('select pg_advisory_lock(1)');
    my $run = $sv->start_run({ do => 'write', lengths => [70_000] });
    wait_blocked('save_batch');
    read_beside($run);
    wait_status($sv->start_run({ do => 'store', ops => [ { op => 'put', namespace => ['t'], key => 'k', value => {} } ] }), 'success');
    is status_of($run), 'pending', 'a state is read, and the store is written, while the line waits';
    release_lock($lock);
    wait_status($run, 'success');
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

my @SHORT = (7000) x 60;

subtest 'a run whose long lines are slow to save has few of them saved at once' => sub {
    my $sv = TestSupervisor->start($pg, @runner, lease_sec => 240, timing_ms => patient_timing());
    $sv->wait_ready;
    slow_down(0.1);
    my $run = $sv->start_run({ do => 'write', lengths => [ 70_000, @SHORT[ 1 .. 50 ] ] });
    read_beside($run);
    wait_status($run, 'success');
    my @lines = lines_at_once($run);
    cmp_ok max(@lines), '<=', 8, 'a statement takes about as long as 250 ms';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a run whose short lines are slow to save no longer shares batches' => sub {
    my $sv = TestSupervisor->start($pg, @runner, lease_sec => 240, timing_ms => patient_timing());
    $sv->wait_ready;
    slow_down(0.1);
    my $run = $sv->start_run({ do => 'write', lengths => \@SHORT });
    read_beside($run);
    wait_status($run, 'success');
    my ($first, @lines) = lines_at_once($run);
    cmp_ok $first, '<', 40, 'a shared batch has 256 KB';
    cmp_ok max(@lines), '<=', 8, 'the others are dedicated and measured';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'runs share batches while each commit is slow' => sub {
    my $sv = TestSupervisor->start($pg, @runner, lease_sec => 240, timing_ms => patient_timing());
    $sv->wait_ready;
    sql('drop trigger slow on agent.run_events');
    sql("create function public.commit_slowly() returns trigger language plpgsql as 'begin "
        . "if current_setting(''test.slept'', true) is distinct from ''yes'' then perform pg_sleep(0.5), set_config(''test.slept'', ''yes'', true); end if; "
        . "return null; end'");
    sql('create constraint trigger commits_slowly after insert on agent.run_events deferrable initially deferred '
        . 'for each row execute function public.commit_slowly()');
    my @runs = create_each(2, { do => 'write', lengths => \@SHORT });
    $sv->wake;
    wait_all_final('success', @runs);
    my @lines = map { scalar(() = lines_at_once($_)) } @runs;
    cmp_ok max(@lines), '<=', 4, 'lines of 420 KB are saved in few statements';
    sql('drop trigger commits_slowly on agent.run_events');
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

for my $lock ([ 'the table of events', sub { 'lock table agent.run_events in exclusive mode' } ],
    [ 'a thread', sub { "select from agent.threads t join agent.runs r using (thread_id) where r.run_id = '$_[0]' for update of t" } ]) {
    my ($what, $statement) = @{$lock};
    subtest "a shared batch that waits for the lock of $what makes no run slow" => sub {
        my $sv = TestSupervisor->start($pg, @runner, lease_sec => 240, timing_ms => patient_timing());
        $sv->wait_ready;
        my ($run, $other) = map { create_run({ do => 'write', lengths => $_ }) } [10], \@SHORT;
        my $held = hold_lock($statement->($run));
        $sv->wake;
        wait_for('a batch to wait for longer than a quick one takes', sub {
            poll("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%agent.save_batch(%' "
                . "and clock_timestamp() - query_start > '0.5 s'")
        });
        release_lock($held);
        wait_all_final('success', $run, $other);
        is sql("select count(*) from pg_stat_activity where application_name = 'agent supervisor' and query like '%agent.database_region()%'"), 1,
            'the output connection has sent nothing after the first statement of its session';
        is $sv->stop, 0, 'the supervisor exits with status 0';
    };
}

subtest 'a lock of the row of a run delays no other run' => sub {
    my $sv = TestSupervisor->start($pg, @runner, timing_ms => { %{ fast_timing() }, statement => 1000 });
    $sv->wait_ready;
    my ($locked, $other) = map { create_run({ do => 'write', lengths => [10] }) } 1 .. 2;
    my $held = hold_lock("select from agent.threads t join agent.runs r using (thread_id) where r.run_id = '$locked' for update of t");
    $sv->wake;
    wait_status($other, 'success');
    is status_of($locked), 'pending', 'the run whose row is locked waits';
    wait_status($sv->start_run({ do => 'write', lengths => [10] }), 'success');
    release_lock($held);
    wait_status($locked, 'success');
    is attempts_of($locked), 1, 'it ends at its first attempt';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a run all of whose lines together take longer than a statement may is saved in parts' => sub {
    my $sv = TestSupervisor->start($pg, @runner, lease_sec => 20, timing_ms => { %{ fast_timing() }, statement => 1000 });
    $sv->wait_ready;
    slow_down(0.6);
    my $run = $sv->start_run({ do => 'write', lengths => [ 70_000, @SHORT[ 1 .. 9 ] ] });
    wait_status($run, 'success', 180);
    like $sv->log_text, qr/AGT0313: save_batch failed: 57014/, 'a statement took too long';
    is attempts_of($run), 1, 'it ends at its first attempt';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a statement of several lines ends after a second, a line alone is stored though it takes longer' => sub {
    my $sv = TestSupervisor->start($pg, @runner, timing_ms => fast_timing());
    $sv->wait_ready;
    slow_down(0.4);
    my $run = $sv->start_run({ do => 'write', lengths => [ 70_000, @SHORT[ 1 .. 9 ] ] });
    wait_status($run, 'success', 180);
    cmp_ok max(lines_at_once($run)), '<=', 2, 'three of these lines take longer';
    slow_down(1.5);
    $run = $sv->start_run({ do => 'write', lengths => [70_000] });
    wait_status($run, 'success', 180);
    is attempts_of($run), 1, 'it ends at its first attempt';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

# How often PostgreSQL has cancelled a statement of a supervisor that waited for a lock.
sub lock_timeouts { return scalar(() = slurp($pg->host . '/postgres.log') =~ /due to lock timeout/g) }

subtest 'neither a lock nor lost connections end a run whose output waits' => sub {
    my $sv = TestSupervisor->start($pg, @runner, timing_ms => { %{ fast_timing() }, statement => 1000 });
    $sv->wait_ready;
    sql('drop trigger slow on agent.run_events');
    my $lock = hold_lock('lock table agent.run_events in exclusive mode');
    my $before = lock_timeouts();
    my $run = create_run({ do => 'write', lengths => [70_000] });
    $sv->wake;
    wait_for('more time-outs than a run may have', sub { lock_timeouts() > $before + 4 });
    my %lost;
    wait_for('more losses than a run may have', sub {
        my @pids = sql("select pid from pg_stat_activity where wait_event_type = 'Lock' and query like '%agent.save_batch(%'");
        sql("select pg_terminate_backend($_)") for @pids;
        return keys %{ { %lost = (%lost, map { $_ => 1 } @pids) } } > 4;
    });
    release_lock($lock);
    wait_status($run, 'success');
    is attempts_of($run), 1, 'it ends at its first attempt';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

done_testing;
