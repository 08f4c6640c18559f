# SPDX-License-Identifier: Apache-2.0
# Runs with large states or requests: their cost to the supervisor is limited,
# and other runs execute beside them.
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

subtest 'small runs do not wait until all runs with states of 7 MB have read them' => sub {
    # 84 MB: more than the supervisor may have in memory.
    my @large = create_large_runs(12, 700, { do => 'read' });
    my $sv = TestSupervisor->start($pg, lease_sec => 20, timing_ms => fast_timing(),
        runner => scripted_runner('request_runner.pl'));
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
    cmp_ok last_end(@small), '<', last_end(@large), 'small runs that were created later end before the last large one';
    is attempts_of(@large, @small), 1, 'each run ends at its first attempt';
    unlike $sv->log_text, qr/AGT0379/, 'no claim is lost';
    my $peak = ($before + $cost->{peak_bytes}) / $MB;
    cmp_ok $peak, '<', 76 * memory_scale(), 'the supervisor has only a part of the states in memory';
    is_linear($cost, @large * 7 * $MB, 'processor time is linear in the bytes of the states');
    note sprintf 'peak %.0f MB', $peak;
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

# Those of the runs that a runner was given.
sub started {
    my (@runs) = @_;
    my @started = sql('select distinct run_id from agent.run_events where run_id in (' . quoted(@runs) . ')');
    return @started;
}

subtest 'large runs wait until others of their runner have ended, small ones do not' => sub {
    # 4 x 7 MB are below a sixteenth of 512 MB, 5 are above it.
    my @large = create_large_runs(10, 700, { do => 'hang' });
    my $sv = TestSupervisor->start($pg, lease_sec => 240, timing_ms => patient_timing(), runner_memory => 512 * $MB);
    $sv->wait_ready;
    wait_for('four large runs to start', sub { started(@large) >= 4 });
    my $cost = cost_of([ $sv->pid ], sub {
        for (1 .. 3) {
            my $small = create_run({ do => 'noop' });
            $sv->wake;
            wait_status($small, 'success');
        }
    });
    is_linear($cost, 7 * $MB, 'the supervisor does not spin while runs wait');
    my @first = started(@large);
    cmp_ok scalar @first, '<', 6, 'large start lines take at most a sixteenth of AgentRunnerMemory';
    $sv->cancel(@first);
    wait_for('others to start', sub { started(@large) >= 2 * @first });
    is scalar(my @second = started(@large)), 2 * @first, 'after the first large runs as many others start';
    $sv->cancel(@large);
    wait_all_final('interrupted', @large);
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a built-in runner with 96 MB executes seven runs with states of 7 MB at once' => sub {
    my $input = { messages => [ { role => 'user', content => 'sleep 500' } ] };
    my @large = create_large_runs(is_sanitized() ? 4 : 7, 400, $input, chat => 1, bytes => 17_700,
        request => { durability => 'exit', stream_mode => ['updates'] });
    my $sv = TestSupervisor->start($pg, lease_sec => 240, timing_ms => patient_timing(),
        runner => build_dir() . '/agent-runner', runner_memory => 96 * $MB,
        graphs => { agent => { kind => 'builtin', model => { provider => 'demo' } } });
    $sv->wait_ready;
    wait_all_final('success', @large);
    is attempts_of(@large), 1, 'each run ends at its first attempt';
    unlike $sv->log_text, qr/AGT0331/, 'the runner did not end';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'small runs do not wait for requests of 20,000 messages' => sub {
    my ($runs, $count) = is_sanitized() ? (20, 5_000) : (8, 20_000);
    my @large = create_each($runs, { messages => [] });
    sql("update agent.runs set input = (select json_build_object('messages', json_agg(json_build_object("
        . "'role', 'user', 'content', 'a'))) from generate_series(1, $count)) where run_id in (" . quoted(@large) . ')');
    my $sv = TestSupervisor->start($pg, lease_sec => 240, timing_ms => patient_timing(),
        runner => build_dir() . '/agent-runner',
        graphs => { agent => { kind => 'builtin', model => { provider => 'demo' } } });
    $sv->wait_ready;
    wait_for('a checkpoint of a large run', sub { poll('select count(*) from agent.checkpoints where run_id in (' . quoted(@large) . ')') });
    my @small = create_each(5, { messages => [ { role => 'user', content => 'a' } ] });
    $sv->wake;
    wait_all_final('success', @small, @large);
    cmp_ok last_end(@small), '<', last_end(@large), 'small runs end before the last large one';
    unlike $sv->log_text, qr/AGT0345|AGT0354/, 'the runner is always read';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'cancel: all runs can be cancelled while large runs are claimed' => sub {
    my @large = create_large_runs(8, 700, { do => 'hang' });
    my $sv = TestSupervisor->start($pg, lease_sec => 20, timing_ms => fast_timing());
    $sv->wait_ready;
    wait_for('the first run to be claimed', sub { poll("select count(*) from agent.run_queue where state = 'leased'") });
    # The lock_timeout of httpd's connections.
    my $cost = cost_of([ $sv->pid ], sub {
        is sql("set lock_timeout = '2s'; select code from agent.cancel_runs_by_status("
            . "'$TestSupervisor::DEPLOYMENT', 'all', 'interrupt', 'ffffffff-ffff-ffff-ffff-ffffffffffff')"),
            'ok', 'the cancellation does not wait for a lock';
        $sv->wake('C');
        wait_all_final('interrupted', @large);
    });
    is_linear($cost, @large * 7 * $MB, 'processor time is linear in the bytes of the states');
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

done_testing;
