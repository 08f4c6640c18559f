# SPDX-License-Identifier: Apache-2.0
# Statements that always take too long because of one run end that run, no other.
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

# A statement is cancelled after a second.
my @short_statements = (lease_sec => 20, timing_ms => { %{ fast_timing() }, statement => 1000 });

# Makes every rollback take longer than that.
sub break_rollback {
    sql('alter function agent.discard_run(uuid, uuid, uuid, bigint) rename to discard_run_kept');
    return sql('create function agent.discard_run(uuid, uuid, uuid, bigint) returns void language plpgsql as '
        . "'begin perform pg_sleep(3600); end'");
}

sub mend_rollback {
    sql('drop function agent.discard_run(uuid, uuid, uuid, bigint)');
    return sql('alter function agent.discard_run_kept(uuid, uuid, uuid, bigint) rename to discard_run');
}

# Has the database refuse to give any run back to the queue.
my $REQUEUE_TYPES = 'agent.run_queue, boolean, smallint';

sub break_release {
    sql("alter function agent.requeue_run($REQUEUE_TYPES) rename to requeue_run_kept");
    return sql("create function agent.requeue_run($REQUEUE_TYPES) returns void language plpgsql as 'begin raise ''no''; end'");
}

sub mend_release {
    sql("drop function agent.requeue_run($REQUEUE_TYPES)");
    return sql("alter function agent.requeue_run_kept($REQUEUE_TYPES) rename to requeue_run");
}

# Has the start line of one run do what the statement does.
my $START_TYPES = 'uuid, uuid, uuid, text, integer, smallint';

sub break_start {
    my ($run, $statement) = @_;
    sql("alter function agent.compose_start($START_TYPES) rename to compose_start_kept");
    return sql("create function agent.compose_start(a uuid, r uuid, t uuid, g text, e integer, n smallint) "
        . 'returns table (start text, state_bytes bigint) language plpgsql as '
        . "'begin if r = ''$run'' then $statement; end if; "
        . "return query select * from agent.compose_start_kept(a, r, t, g, e, n); end'");
}

sub mend_start {
    sql("drop function agent.compose_start($START_TYPES)");
    return sql("alter function agent.compose_start_kept($START_TYPES) rename to compose_start");
}

sub roll_back {
    my ($run) = @_;
    my $thread = run_field($run, 'thread_id');
    return is sql("select code from agent.cancel_run('$TestSupervisor::DEPLOYMENT', '$thread', '$run', 'rollback')"),
        'ok', 'the rollback is accepted';
}

subtest 'a run whose rollback always takes too long ends in error, no other run does' => sub {
    my $sv = TestSupervisor->start($pg, @short_statements);
    $sv->wait_ready;
    my ($run, $other) = $sv->start_runs(2, { do => 'hang' });
    break_rollback();
    roll_back($run);
    my @small;
    my $cost = cost_of([ $sv->pid ], sub {
        $sv->wake('C');
        for (1 .. 3) {
            push @small, create_run({ do => 'step' });
            $sv->wake;
            wait_status($small[-1], 'success');
        }
        wait_status($run, 'error', 180);
    });
    is_linear($cost, 0, 'the supervisor does not spin while the rollback waits');
    is error_of($run), 'OutputTimeoutError', 'the error of the run is OutputTimeoutError';
    cmp_ok last_end(@small), '<', last_end($run), 'runs that were created later end before it';
    is status_of($other), 'pending', 'another run of the runner continues';
    is sql("select attempts from agent.run_queue where run_id = '$other'"), 1, 'the other run is at its first attempt';
    mend_rollback();
    is $sv->stop, 0, 'the supervisor exits with status 0';
    sql('delete from agent.run_queue');
};

subtest 'a run whose start line always takes too long to compose ends in error, no other run does' => sub {
    # Too long for a claim to compose.
    my ($slow, @others) = create_each(3, { do => 'noop' }, pad => 1_500_000);
    break_start($slow, 'perform pg_sleep(3600)');
    my $sv = TestSupervisor->start($pg, @short_statements);
    $sv->wait_ready;
    wait_status($_, 'success', 60) for @others;
    wait_status($slow, 'error', 180);
    is error_of($slow), 'StartTimeoutError', 'the error of the run is StartTimeoutError';
    like $sv->log_text, qr/AGT0371: the start of run $slow could not be composed: it took too long/, 'the log says why';
    mend_start();
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a run whose start line the database refuses to compose ends in error, which does not speak of time' => sub {
    my ($refused, $other) = create_each(2, { do => 'noop' }, pad => 1_500_000);
    break_start($refused, "raise ''no''");
    my $sv = TestSupervisor->start($pg, @short_statements);
    $sv->wait_ready;
    wait_status($other, 'success', 60);
    wait_status($refused, 'error', 180);
    is error_of($refused), 'StartFailedError', 'the error of the run is StartFailedError';
    like run_field($refused, "error->>'message'"), qr/refused .* \(AGT0313\)/, 'its message says where the cause is';
    like $sv->log_text, qr/AGT0371: the start of run $refused could not be composed: the database refused it/, 'the log says why the start line could not be composed';
    mend_start();
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a run whose start line is cancelled often while it is composed does not end' => sub {
    sql('create table public.slow as select 1; grant select on public.slow to public');
    my $run = create_run({ do => 'noop' }, pad => 1_500_000);
    break_start($run, 'perform pg_sleep(3600) where exists (select from public.slow)');
    my $sv = TestSupervisor->start($pg, lease_sec => 240, timing_ms => patient_timing());
    $sv->wait_ready;
    my %cancelled;
    wait_for('the end of the run', sub {
        my @found = sql(q{select pid, query_start from pg_stat_activity where wait_event = 'PgSleep' and query like '%agent.compose_starts(%'});
        for my $found (grep { !$cancelled{$_}++ } @found) {
            my ($pid) = split /\t/, $found;
            sql("select pg_cancel_backend($pid)");
        }
        sql('delete from public.slow') if keys %cancelled > 4;
        return status_of($run) ne 'pending';
    }, 180);
    is status_of($run), 'success', 'its status is success';
    is attempts_of($run), 1, 'it ends at its first attempt';
    mend_start();
    sql('drop table public.slow');
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a run of a dead worker that cannot be released ends in error, and delays no other' => sub {
    my $sv = TestSupervisor->start($pg, @short_statements);
    $sv->wait_ready;
    my $run = $sv->start_run({ do => 'hang' });
    break_rollback();
    $sv->stop('KILL');
    roll_back($run);
    $sv->launch;
    $sv->{ended} = 0;
    my $small = create_run({ do => 'noop' });
    wait_status($small, 'success');
    wait_status($run, 'error', 180);
    is error_of($run), 'ReleaseTimeoutError', 'the error of the run is ReleaseTimeoutError';
    cmp_ok last_end($small), '<', last_end($run), 'a run that was created later ends before it';
    like $sv->log_text, qr/AGT0373: a run of worker \d+ could not be released: it took too long;/, 'the log says why';
    mend_rollback();
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

# The death of its runner, or of its worker.
for my $case ([ AGT0372 => 'run \\S+' ], [ AGT0373 => 'a run of worker \\d+' ]) {
    my ($id, $what) = @{$case};
    subtest "a run that the database refuses to release ends in error, which does not speak of time ($id)" => sub {
        my $sv = TestSupervisor->start($pg, @short_statements);
        $sv->wait_ready;
        my $run = $sv->start_run({ do => 'hang' });
        break_release();
        if ($id eq 'AGT0373') {
            $sv->stop('KILL');
            $sv->launch;
            $sv->{ended} = 0;
        }
        else {
            kill KILL => $sv->runner_pids;
        }
        wait_status($run, 'error', 180);
        is error_of($run), 'ReleaseFailedError', 'the error of the run is ReleaseFailedError';
        like run_field($run, "error->>'message'"), qr/refused .* \(AGT0313\)/, 'its message says where the cause is';
        like $sv->log_text, qr/$id: $what could not be released: the database refused it;/, 'the log says why';
        mend_release();
        is $sv->stop, 0, 'the supervisor exits with status 0';
    };
}

done_testing;
