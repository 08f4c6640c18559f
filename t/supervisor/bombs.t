# SPDX-License-Identifier: Apache-2.0
# Runs that start from large states, or send large requests: their cost to the
# supervisor is bounded, and others are executed beside them.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Cost;
use AgentTest::Database;
use AgentTest::Env qw(build_dir is_sanitized);
use AgentTest::Wait;
use Test::More;
use TestLarge;
use TestSupervisor;

my $pg = start_cluster();

subtest 'runs with states of 7 MB start one after the other, and small runs beside them' => sub {
    # 84 MB: more than the supervisor may have in memory.
    my @large = create_large_runs(12, 700, { do => 'noop' });
    my $sv = TestSupervisor->start($pg, lease_sec => 20, timing_ms => fast_timing());
    $sv->wait_ready;
    my $before = resident_bytes($sv->pid);
    my @small;
    my $cost = cost_of([ $sv->pid ], sub {
        for (1 .. 3) {
            push @small, create_run({ do => 'noop' });
            $sv->wake;
            wait_final($small[-1], 120);
        }
        wait_all_final('success', @large, @small);
    });
    cmp_ok last_end(@small), '<', last_end(@large), 'small runs that come later end before the last large one';
    is sql('select max(attempts) from agent.usage_events'), 1, 'each at its first attempt';
    unlike $sv->log_text, qr/AGT0315/, 'no claim is lost';
    my $peak = ($before + $cost->{peak_bytes}) / $MB;
    cmp_ok $peak, '<', 76 * memory_scale(), 'the supervisor has only a part of them in memory';
    is_linear($cost, @large * 7 * $MB, 'each byte is copied and scanned a few times');
    note sprintf 'peak %.0f MB', $peak;
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

sub count_given {
    my (@runs) = @_;
    return sql('select count(distinct run_id) from agent.run_events where run_id in (' . quoted(@runs) . ')');
}

subtest 'large runs wait until others of their runner have ended, small ones start' => sub {
    # 4 x 7 MB are below a sixteenth of 512 MB, 5 are above it.
    my @large = create_large_runs(10, 700, { do => 'hang' });
    my $sv = TestSupervisor->start($pg, lease_sec => 240, timing_ms => patient_timing(), runner_memory => 512 * $MB);
    $sv->wait_ready;
    wait_for('the first to run', sub { count_given(@large) >= 4 });
    my $cost = cost_of([ $sv->pid ], sub {
        for (1 .. 3) {
            my $small = create_run({ do => 'noop' });
            $sv->wake;
            wait_status($small, 'success');
        }
    });
    is_linear($cost, 7 * $MB, 'the supervisor waits, it does not spin');
    my $given = count_given(@large);
    cmp_ok $given, '<', 6, 'the runner has a sixteenth of its memory of them';
    my @first = sql('select distinct run_id from agent.run_events where run_id in (' . quoted(@large) . ')');
    cancel($sv, @first);
    wait_for('others to take their place', sub { count_given(@large) >= 2 * $given });
    is count_given(@large), 2 * $given, 'as many others start after them';
    cancel($sv, @large);
    wait_all_final('interrupted', @large);
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
    wait_all_final('success', @large);
    is sql('select max(attempts) from agent.usage_events where run_id in (' . quoted(@large) . ')'), 1,
        'each at its first attempt';
    unlike $sv->log_text, qr/AGT0331/, 'the runner lives';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'small runs end while requests of 20,000 messages each are executed' => sub {
    my ($runs, $count) = is_sanitized() ? (20, 5_000) : (8, 20_000);
    my @large = create_each($runs, { messages => [] });
    sql("update agent.runs set input = (select json_build_object('messages', json_agg(json_build_object("
        . "'role', 'user', 'content', 'a'))) from generate_series(1, $count)) where run_id in (" . quoted(@large) . ')');
    my $sv = TestSupervisor->start($pg, lease_sec => 240, timing_ms => patient_timing(),
        runner => build_dir() . '/agent-runner',
        graphs => { agent => { kind => 'builtin', model => { provider => 'demo' } } });
    $sv->wait_ready;
    wait_for('one to be saved', sub { sql('select count(*) from agent.checkpoints where run_id in (' . quoted(@large) . ')') });
    my @small = create_each(5, { messages => [ { role => 'user', content => 'a' } ] });
    $sv->wake;
    wait_all_final('success', @small, @large);
    cmp_ok last_end(@small), '<', last_end(@large), 'small runs do not wait for the last large one';
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
        wait_all_final('interrupted', @large);
    });
    is_linear($cost, @large * 7 * $MB, 'each byte is copied and scanned a few times');
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

done_testing;
