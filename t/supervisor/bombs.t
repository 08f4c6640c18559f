# SPDX-License-Identifier: Apache-2.0
# Runs that are large or slow, each of them legal: their cost to the supervisor
# is bounded, and others are executed beside them.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Cost;
use AgentTest::Database;
use AgentTest::Env qw(build_dir is_sanitized);
use AgentTest::Wait;
use List::Util qw(max);
use Test::More;
use TestSupervisor;

my $MB = 1024 * 1024;
my $pg = start_cluster();

# Threads whose state has so many messages of 10 KB, with one run each. With
# chat => 1 they are those of a conversation, $bytes long each; other arguments
# are those of create_run.
sub create_large_runs {
    my ($count, $messages, $input, %args) = @_;
    my $bytes = delete $args{bytes} // 10_000;
    my $content = !delete $args{chat} ? "to_json(repeat('x', $bytes) || n)::text"
        : "json_build_object('type', 'human', 'content', repeat('x', $bytes - 150), 'id', n::text, 'name', null, "
        . "'additional_kwargs', '{}'::json, 'response_metadata', '{}'::json, 'example', false)::text";
    my @threads = map { uuid() } 1 .. $count;
    create_thread($_) for @threads;
    my $list = join ', ', map { "('$_'::uuid)" } @threads;
    sql(<<"SQL");
        with k (thread_id) as (values $list),
        b as (
            insert into agent.checkpoint_blobs (account_id, thread_id, digest, content)
            select '$TestSupervisor::ACCOUNT', k.thread_id, agent.digest_text(c.content), c.content
              from k
             cross join lateral (
                    select $content as content
                      from generate_series(1, $messages) n
                   ) c
            returning thread_id, digest
        ),
        c as (
            insert into agent.checkpoints (account_id, thread_id, checkpoint_id, run_id, channels, next, tasks,
                metadata, state_bytes, created_at)
            select '$TestSupervisor::ACCOUNT', b.thread_id, b.thread_id, b.thread_id,
                   array[row('messages', true, array_agg(b.digest))::agent.channel_value],
                   '[]', '[]', '{}', $messages * $bytes, now()
              from b
             group by b.thread_id
            returning thread_id
        )
        update agent.threads t
           set head_checkpoint_id = c.thread_id, head_run_id = c.thread_id
          from c
         where t.thread_id = c.thread_id
SQL
    return map { create_run($input, %args, thread => $_) } @threads;
}

# Their runners have megabytes to write, or to read, before they answer a ping.
# Used with a lease of 240 s, so that no statement times out while a test locks
# rows: a busy machine takes long to write 32 MB.
sub patient_timing { return { %{ fast_timing() }, ping_timeout => 60_000 } }

# At most a second, and 50 ns for each byte: five times the usual, since other
# processes share the caches.
sub is_linear {
    my ($cost, $bytes, $title) = @_;
    note sprintf 'processor %.2f s', $cost->{cpu_sec};
    return cmp_ok $cost->{cpu_sec}, '<', (1 + 50e-9 * $bytes) * memory_scale(), $title;
}

sub quoted { return join ', ', map { "'$_'" } @_ }

# When the last of them ended, in seconds.
sub last_end {
    return sql('select extract(epoch from max(finished_at)) from agent.runs where run_id in (' . quoted(@_) . ')');
}

sub wait_all {
    my ($status, @runs) = @_;
    wait_for('all to end', sub {
        sql('select count(*) from agent.runs where finished_at is not null and run_id in (' . quoted(@runs) . ')') == @runs;
    }, 600);
    return is sql("select count(*) from agent.runs where status = '$status' and run_id in (" . quoted(@runs) . ')'),
        scalar @runs, "all end as $status";
}

subtest 'runs with states of 7 MB start one after the other, and small runs beside them' => sub {
    # 140 MB: more than the supervisor may have in memory.
    my @large = create_large_runs(20, 700, { do => 'noop' });
    my $sv = TestSupervisor->start($pg, lease_sec => 20, timing_ms => fast_timing());
    $sv->wait_ready;
    my $before = resident_bytes($sv->pid);
    my @small;
    my $cost = cost_of([ $sv->pid ], sub {
        for (1 .. 5) {
            push @small, create_run({ do => 'noop' });
            $sv->wake;
            wait_final($small[-1], 120);
        }
        wait_all('success', @large, @small);
    });
    cmp_ok last_end(@small), '<', last_end(@large), 'small runs that come later end before the last large one';
    is sql('select max(attempts) from agent.usage_events'), 1, 'each at its first attempt';
    unlike $sv->log_text, qr/AGT0315/, 'no claim is lost';
    my $peak = ($before + $cost->{peak_bytes}) / $MB;
    cmp_ok $peak, '<', 128 * memory_scale(), 'the supervisor has only a part of them in memory';
    is_linear($cost, @large * 7 * $MB, 'each byte is copied and scanned a few times');
    note sprintf 'peak %.0f MB', $peak;
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

sub count_given {
    my (@runs) = @_;
    return sql('select count(distinct run_id) from agent.run_events where run_id in (' . quoted(@runs) . ')');
}

sub cancel {
    my ($sv, @runs) = @_;
    sql("select code from agent.cancel_run('$TestSupervisor::ACCOUNT', '" . run_field($_, 'thread_id')
        . "', '$_', 'interrupt')") for @runs;
    return $sv->wake('C');
}

subtest 'large runs wait until others of their runner have ended, small ones start' => sub {
    # 8 x 7 MB are below a sixteenth of 1 GB, 10 are above it.
    my @large = create_large_runs(18, 700, { do => 'hang' });
    my $sv = TestSupervisor->start($pg, lease_sec => 240, timing_ms => patient_timing());
    $sv->wait_ready;
    wait_for('the first to run', sub { count_given(@large) >= 8 });
    my $cost = cost_of([ $sv->pid ], sub {
        for (1 .. 3) {
            my $small = create_run({ do => 'noop' });
            $sv->wake;
            wait_status($small, 'success');
        }
    });
    is_linear($cost, 7 * $MB, 'the supervisor waits, it does not spin');
    my $given = count_given(@large);
    cmp_ok $given, '<', 10, 'the runner has a sixteenth of its memory of them';
    my @first = sql('select distinct run_id from agent.run_events where run_id in (' . quoted(@large) . ')');
    cancel($sv, @first);
    wait_for('others to take their place', sub { count_given(@large) >= 2 * $given });
    is count_given(@large), 2 * $given, 'as many others start after them';
    cancel($sv, @large);
    wait_all('interrupted', @large);
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a built-in runner of 96 MB executes seven states of 7 MB at once' => sub {
    my $input = { messages => [ { role => 'user', content => 'sleep 500' } ] };
    my @large = create_large_runs(is_sanitized() ? 4 : 7, 400, $input, chat => 1, bytes => 17_700,
        request => { durability => 'exit', stream_mode => ['updates'] });
    my $sv = TestSupervisor->start($pg, lease_sec => 240, timing_ms => patient_timing(),
        runner => build_dir() . '/agent-runner', runner_memory => 96 * $MB,
        graphs => { agent => { kind => 'builtin', model => { provider => 'demo' } } });
    $sv->wait_ready;
    wait_all('success', @large);
    is sql('select max(attempts) from agent.usage_events where run_id in (' . quoted(@large) . ')'), 1,
        'each at its first attempt';
    unlike $sv->log_text, qr/AGT0331/, 'the runner lives';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'small runs end while requests of 20,000 messages each are executed' => sub {
    # So many that some are left after the small runs.
    my ($runs, $count) = is_sanitized() ? (40, 5_000) : (16, 20_000);
    my @large = create_each($runs, { messages => [] });
    sql("update agent.runs set input = (select json_build_object('messages', json_agg(json_build_object("
        . "'role', 'user', 'content', 'a'))) from generate_series(1, $count)) where run_id in (" . quoted(@large) . ')');
    my $sv = TestSupervisor->start($pg, lease_sec => 240, timing_ms => patient_timing(),
        runner => build_dir() . '/agent-runner',
        graphs => { agent => { kind => 'builtin', model => { provider => 'demo' } } });
    $sv->wait_ready;
    wait_for('one to be saved', sub { sql('select count(*) from agent.checkpoints where run_id in (' . quoted(@large) . ')') });
    for (1 .. 5) {
        my $small = create_run({ messages => [ { role => 'user', content => 'a' } ] });
        $sv->wake;
        wait_status($small, 'success');
    }
    cmp_ok sql('select count(*) from agent.runs where finished_at is null and run_id in (' . quoted(@large) . ')'), '>', 0,
        'small runs do not wait for the last large one';
    wait_all('success', @large);
    unlike $sv->log_text, qr/AGT0345|AGT0354/, 'the runner is read all the time';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'cancel: all runs can be cancelled while large ones are claimed' => sub {
    my @large = create_large_runs(8, 700, { do => 'hang' });
    my $sv = TestSupervisor->start($pg, lease_sec => 20, timing_ms => fast_timing());
    $sv->wait_ready;
    wait_for('the first to be claimed', sub { sql("select count(*) from agent.run_queue where state = 'leased'") });
    # With the limit of the server: more is answered 503.
    my $cost = cost_of([ $sv->pid ], sub {
        is sql("set lock_timeout = '2s'; select code from agent.cancel_runs_by_status("
            . "'$TestSupervisor::ACCOUNT', 'all', 'interrupt', 'ffffffff-ffff-ffff-ffff-ffffffffffff')"),
            'ok', 'is accepted';
        $sv->wake('C');
        wait_all('interrupted', @large);
    });
    is_linear($cost, @large * 7 * $MB, 'each byte is copied and scanned a few times');
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

# The runs send 7 MB each, which cannot be saved until the lock is closed.
sub lock_out {
    my ($gate, @runs) = @_;
    open my $lock, '|-', 'psql', '-Xq', '-o', '/dev/null' or die "psql: $!\n";
    # The comment: pg_stat_activity shows only the first kilobyte of a query.
    print {$lock} 'begin; select /* for update */ from agent.run_queue where run_id in (' . quoted(@runs) . ") for update;\n";
    $lock->flush;
    wait_for('the lock', sub {
        sql("select count(*) from pg_stat_activity where state = 'idle in transaction' and query like '%for update%'");
    });
    open_gate($gate);
    wait_for('the first to wait for it', sub {
        sql("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%save_batch%'");
    });
    return $lock;
}

sub wait_running {
    my (@runs) = @_;
    return wait_for('all to run', sub {
        @runs == sql('select count(*) from agent.run_events where seq = 1 and run_id in (' . quoted(@runs) . ')');
    });
}

sub talker { my ($gate, %more) = @_; return { do => 'gate', path => $gate, bytes => 7_000_000, %more } }

sub start_run {
    my ($sv, $input) = @_;
    my $run = create_run($input);
    $sv->wake;
    wait_running($run);
    return $run;
}

sub start_talkers {
    my ($sv, $count, $gate) = @_;
    my @runs = create_each($count, talker($gate));
    $sv->wake;
    wait_running(@runs);
    return @runs;
}

subtest 'runs continue while 42 MB of output of others wait for a lock' => sub {
    my $sv = TestSupervisor->start($pg, lease_sec => 240, timing_ms => patient_timing());
    $sv->wait_ready;
    my $gate = make_gate();
    my @large = start_talkers($sv, 6, $gate);
    my $lock = lock_out($gate, @large);
    my $cost = cost_of([ $sv->pid ], sub {
        for (1 .. 5) {
            my $small = create_run({ do => 'stream' });
            $sv->wake;
            wait_status($small, 'success');
        }
    });
    is_linear($cost, 6 * 7 * $MB, 'the supervisor waits, it does not spin');
    is scalar(grep { status_of($_) eq 'pending' } @large), 6, 'the others are not saved yet';
    close $lock or die "psql failed\n";
    wait_all('success', @large);
    is scalar(grep { length sql("select data from agent.run_events where run_id = '$_' and seq = 2") != 7_000_002 } @large),
        0, 'nothing of them is lost';
    unlike $sv->log_text, qr/AGT0345|AGT0354/, 'no runner had to wait';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a run waits for credit before it sends a long line, and others of its runner continue' => sub {
    my $sv = TestSupervisor->start($pg, lease_sec => 240, timing_ms => { %{ patient_timing() }, cancel_grace => 1000 });
    $sv->wait_ready;
    my ($gate, $last_gate) = (make_gate(), make_gate());
    my $waiting = start_run($sv, talker($last_gate));
    my @large = start_talkers($sv, 15, $gate);
    my $before = resident_bytes($sv->pid);
    my $cost = cost_of([ $sv->pid ], sub {
        my $lock = lock_out($gate, @large);
        # The others have asked for more than there is: this one waits.
        open_gate($last_gate);
        for (1 .. 10) {
            my $small = create_run({ do => 'stream' });
            $sv->wake;
            wait_status($small, 'success');
        }
        cancel($sv, $waiting);
        wait_status($waiting, 'interrupted');
        close $lock or die "psql failed\n";
        wait_all('success', @large);
    });
    unlike $sv->log_text, qr/AGT0345|AGT0354/, 'its runner is read all the time';
    is sql('select max(attempts) from agent.usage_events where run_id in (' . quoted(@large) . ')'), 1,
        'each at its first attempt';
    cmp_ok(($before + $cost->{peak_bytes}) / $MB, '<', 192 * memory_scale(), 'the supervisor has a part of it in memory');
    is_linear($cost, @large * 7 * $MB, 'each byte is copied and scanned a few times');
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a runner that sends much of a run without credit is not read until some of it is saved' => sub {
    my $sv = TestSupervisor->start($pg, lease_sec => 240, timing_ms => patient_timing());
    $sv->wait_ready;
    my $gate = make_gate();
    my $run = start_run($sv, { do => 'gate', path => $gate, count => 10_000 });
    my $lock = lock_out($gate, $run);
    $sv->wait_log(qr/AGT0354: \d+ KB of output wait for the database, credit for \d+ KB is given: runner \d+ sent a line for which/);
    close $lock or die "psql failed\n";
    wait_status($run, 'success');
    is sql("select count(*) from agent.run_events where run_id = '$run' and event = 'custom'"), 10_001,
        'all of it is saved then';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'no runner is read while 32 MB of short lines wait for the database' => sub {
    my $sv = TestSupervisor->start($pg, lease_sec => 240, timing_ms => patient_timing());
    $sv->wait_ready;
    my $gate = make_gate();
    # 480 KB of each as they are saved: less than the 512 KB that stop a runner.
    my @runs = create_each(80, { do => 'gate', path => $gate, count => 2000 });
    $sv->wake;
    wait_running(@runs);
    my $before = resident_bytes($sv->pid);
    my $cost = cost_of([ $sv->pid ], sub {
        my $lock = lock_out($gate, @runs);
        $sv->wait_log(qr/AGT0345: 3\d MB of output wait for the database/);
        close $lock or die "psql failed\n";
        wait_all('success', @runs);
    });
    cmp_ok(($before + $cost->{peak_bytes}) / $MB, '<', 192 * memory_scale(), 'the supervisor has a part of it in memory');
    is sql('select count(*) from agent.run_events where run_id in (' . quoted(@runs) . ") and event = 'custom'"),
        @runs * 2001, 'all of it is saved';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

sub count_runners {
    my (@runs) = @_;
    my %pids = map { ((events_of($_))[1][1]{pid} => 1) } @runs;
    return scalar keys %pids;
}

subtest 'a runner that sends long lines without credit is not read until there is room' => sub {
    my $sv = TestSupervisor->start($pg, runners => 2, lease_sec => 240,
        timing_ms => { %{ patient_timing() }, cancel_grace => 10_000 });
    $sv->wait_ready;
    wait_for('both runners', sub { 2 == (() = $sv->log_text =~ /AGT0330/g) });
    my $gate = make_gate();
    # Each goes to the runner that has fewer: the large ones come to the first.
    my ($held, $ignorant) = map { start_run($sv, { do => $_ }) } qw(hang stuck);
    my (@large, @beside);
    for (1 .. 11) {
        push @large, start_run($sv, talker($gate, unasked => 1));
        push @beside, start_run($sv, { do => 'hang' });
    }
    is_deeply [ count_runners($held, @large), count_runners($ignorant, @beside), count_runners($held, $ignorant) ],
        [ 1, 1, 2 ], 'one runner has the large output';
    my $before = resident_bytes($sv->pid);
    my $cost = cost_of([ $sv->pid ], sub {
        my $lock = lock_out($gate, @large);
        $sv->wait_log(qr/AGT0354: \d{4,5} KB of output wait for the database/);
        cancel($sv, $held, $ignorant);
        $sv->wait_log(qr/AGT0342: runner \d+ did not end run $ignorant/);
        close $lock or die "psql failed\n";
        wait_all('success', @large);
        wait_all('interrupted', $held, $ignorant);
    });
    unlike $sv->log_text, qr/AGT0342: runner \d+ did not end run $held/,
        'a cancel waits as long as its runner is not read';
    is sql('select max(attempts) from agent.usage_events where run_id in (' . quoted(@large) . ')'), 1,
        'each at its first attempt';
    my $peak = ($before + $cost->{peak_bytes}) / $MB;
    cmp_ok $peak, '<', 192 * memory_scale(), 'the supervisor has a part of it in memory';
    is_linear($cost, @large * 7 * $MB, 'each byte is copied and scanned a few times');
    note sprintf 'peak %.0f MB', $peak;
    is $sv->stop, 0, 'the supervisor exits with status 0';
    sql('delete from agent.run_queue');
};

# Statements that always take too long are given up soon.
my @short_statements = (lease_sec => 20, timing_ms => { %{ fast_timing() }, statement => 1000 });

# Makes every rollback take longer than a statement may.
sub break_rollback {
    sql('alter function agent.discard_run(uuid, uuid, uuid) rename to discard_run_kept');
    return sql('create function agent.discard_run(uuid, uuid, uuid) returns uuid language plpgsql as '
        . "'begin perform pg_sleep(3600); return null; end'");
}

sub mend_rollback {
    sql('drop function agent.discard_run(uuid, uuid, uuid)');
    return sql('alter function agent.discard_run_kept(uuid, uuid, uuid) rename to discard_run');
}

my $START_TYPES = 'uuid, uuid, uuid, text, integer, smallint';

sub break_start {
    my ($run) = @_;
    sql("alter function agent.compose_start($START_TYPES) rename to compose_start_kept");
    return sql("create function agent.compose_start(a uuid, r uuid, t uuid, g text, e integer, n smallint) "
        . 'returns table (start text) language plpgsql as '
        . "'begin if r = ''$run'' then perform pg_sleep(3600); end if; "
        . "return query select * from agent.compose_start_kept(a, r, t, g, e, n); end'");
}

sub mend_start {
    sql("drop function agent.compose_start($START_TYPES)");
    return sql("alter function agent.compose_start_kept($START_TYPES) rename to compose_start");
}

sub roll_back {
    my ($run) = @_;
    my $thread = run_field($run, 'thread_id');
    return is sql("select code from agent.cancel_run('$TestSupervisor::ACCOUNT', '$thread', '$run', 'rollback')"),
        'ok', 'its rollback is asked for';
}

subtest 'a rollback that always takes too long ends its own run in error, no other' => sub {
    my $sv = TestSupervisor->start($pg, @short_statements);
    $sv->wait_ready;
    my $run = start_run($sv, { do => 'hang' });
    my $other = start_run($sv, { do => 'hang' });
    break_rollback();
    roll_back($run);
    my @small;
    my $cost = cost_of([ $sv->pid ], sub {
        $sv->wake('C');
        for (1 .. 5) {
            push @small, create_run({ do => 'step' });
            $sv->wake;
            wait_status($small[-1], 'success');
        }
        wait_status($run, 'error', 180);
    });
    is_linear($cost, 0, 'the supervisor waits, it does not spin');
    is run_field($run, "error->>'error'"), 'output_timeout', 'which says why';
    cmp_ok last_end(@small), '<', last_end($run), 'others end before it';
    is status_of($other), 'pending', 'another run continues';
    is sql("select attempts from agent.run_queue where run_id = '$other'"), 1, 'at its first attempt';
    mend_rollback();
    is $sv->stop, 0, 'the supervisor exits with status 0';
    sql('delete from agent.run_queue');
};

subtest 'a state that always takes too long to read ends its own run in error, no other' => sub {
    my ($slow, @others) = create_large_runs(3, 150, { do => 'noop' });
    break_start($slow);
    my $sv = TestSupervisor->start($pg, @short_statements);
    $sv->wait_ready;
    wait_status($_, 'success', 60) for @others;
    wait_status($slow, 'error', 180);
    is run_field($slow, "error->>'error'"), 'start_timeout', 'which says why';
    mend_start();
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'the next supervisor of a host executes runs though one of its predecessor cannot be released' => sub {
    my $sv = TestSupervisor->start($pg, @short_statements);
    $sv->wait_ready;
    my $run = start_run($sv, { do => 'hang' });
    break_rollback();
    $sv->stop('KILL');
    roll_back($run);
    $sv->launch;
    $sv->{ended} = 0;
    my $small = create_run({ do => 'noop' });
    wait_status($small, 'success');
    wait_status($run, 'error', 180);
    is run_field($run, "error->>'error'"), 'release_timeout', 'the run that cannot be released ends in error';
    cmp_ok last_end($small), '<', last_end($run), 'after runs that came later';
    like $sv->log_text, qr/AGT0373: a run of worker \d+ could not be released in time/, 'the log says so';
    mend_rollback();
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

done_testing;
