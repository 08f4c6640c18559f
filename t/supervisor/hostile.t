# SPDX-License-Identifier: Apache-2.0
# Runners that misbehave lose their runs; the supervisor and other runs continue.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Wait;
use Test::More;
use TestSupervisor;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my $pg = start_cluster();
my $sv = TestSupervisor->start($pg, timing_ms => fast_timing(), run_timeout_ms => 3_600_000);
$sv->wait_ready;

sub expect_retry {
    my ($action, $message) = @_;
    subtest "a runner that misbehaves ($action) is replaced, its run is executed again" => sub {
        my $run = create_run({ do => $action, once => 1 });
        $sv->wake;
        wait_status($run, 'success');
        is attempts_of($run), 2, 'the run succeeds at its second attempt';
        ok $sv->wait_log($message), 'the reason is logged';
    };
    return;
}

expect_retry(garbage     => qr/AGT0332: .*is not JSON/);
expect_retry(wrong_run   => qr/AGT0332: .*a run that it does not execute/);
expect_retry(wrong_epoch => qr/AGT0332: .*a run that it does not execute/);
expect_retry(drained     => qr/AGT0332: .*a run ended as drained that was not to stop/);
expect_retry(flood       => qr/AGT0332: .*more than 8 MiB/);
expect_retry(ready_again => qr/AGT0332: .*it sent ready twice/);
expect_retry(bad_pong    => qr/AGT0332: .*its line has no valid id/);
expect_retry(exit        => qr/AGT0331: runner \d+ ended \(exit status 0\)/);
expect_retry(abort       => qr/AGT0331: runner \d+ ended \(signal 6\)/);
expect_retry(close       => qr/AGT0331: runner \d+ ended \(signal 9\)/);
expect_retry(mute        => qr/AGT0335: runner \d+ does not answer/);

subtest 'a runner that is busy for longer than it may be is replaced, its run is executed again' => sub {
    my $busy = TestSupervisor->start($pg, node => 'node-busy', graphs => { busy => {} }, runner_busy_ms => 2000,
        timing_ms => fast_timing());
    my $run = create_run({ do => 'hang', busy_ms => 2001, once => 1 }, graph => 'busy');
    wait_status($run, 'success');
    is attempts_of($run), 2, 'the run succeeds at its second attempt';
    like $busy->log_text, qr/AGT0366: runner \d+ has executed no other run for 2 s/, 'the reason is logged';
    $busy->stop;
};

subtest 'a runner that sends a line after the end of a run is replaced' => sub {
    my $before = length $sv->log_text;
    my $run = create_run({ do => 'after_end' });
    $sv->wake;
    wait_status($run, 'success');
    wait_for('the runner to be replaced', sub {
        substr($sv->log_text, $before) =~ /a run that it does not execute.*\n(?:.*\n)*.*AGT0330/;
    });
    is scalar(events_of($run)), 1, 'a line after the end of a run is not stored';
};

subtest 'a runner cannot set the members that the supervisor adds to a line' => sub {
    my $gate = make_gate();
    my $other = $sv->start_run({ do => 'gate', path => $gate });
    my $before = events_of($other);
    my $run = create_run({ do => 'imitate', other => $other });
    $sv->wake;
    wait_status($run, 'success');
    is_deeply [ map { $_->[0] } events_of($run) ], [ 'metadata', 'custom' ], 'the event belongs to the run that sent it';
    is_deeply +(events_of($run))[-1][1], { d => 1, s => 2 }, 'members of the same names are stored in the data of the event';
    is scalar(events_of($other)), $before, 'the run that the line names in its place has no new event';
    open_gate($gate);
    wait_status($other, 'success');
};

subtest 'a run that always kills its runner ends in error after three attempts' => sub {
    my $poison = create_run({ do => 'abort' });
    $sv->wake;
    wait_status($poison, 'error');
    is error_of($poison), 'RunGivenUpError', 'the error of the run is RunGivenUpError';
    is attempts_of($poison), 3, 'the run has three attempts';
    my $after = create_run({ do => 'noop' });
    $sv->wake;
    wait_status($after, 'success');
};

subtest 'a run that always kills its runner costs the runs beside it no attempt' => sub {
    my $gate = make_gate();
    my @others = $sv->start_runs(20, { do => 'gate', path => $gate });
    my $poison = create_run({ do => 'abort' });
    $sv->wake;
    wait_status($poison, 'error');
    is error_of($poison), 'RunGivenUpError', 'the error of the run is RunGivenUpError';
    is attempts_of($poison), 3, 'three attempts are counted, at which the run was alone';
    like $sv->log_text, qr/AGT0374: runner \d+ ended with 21 runs: they are tried again, at most 6 together/,
        'the runs are tried in smaller groups before';
    wait_for('the others to run again', sub {
        poll("select count(*) from agent.run_queue where state = 'leased' and attempts = 1") == @others;
    });
    my $new = create_run({ do => 'report' });
    $sv->wake;
    wait_status($new, 'success');
    wait_for('all of them to hold the gate', sub { !grep { (events_of($_))[-1][0] ne 'custom' } @others });
    open_gate($gate);
    wait_all_final('success', @others);
    is attempts_of(@others), 1, 'the other runs end at their first attempt';
};

# Creates quarantined runs, each to be executed alone.
sub make_quarantined {
    my ($graph, $count, $input) = @_;
    my @runs = create_each($count, $input, graph => $graph);
    sql("update agent.run_queue set max_shared = 1 where graph_id = '$graph' and state = 'ready'");
    return @runs;
}

subtest 'quarantined runs: at most 16 are claimed, a runner for each' => sub {
    my $gate = make_gate();
    my @first = make_quarantined('many', 16, { do => 'gate', path => $gate });
    my @quarantined = (@first, make_quarantined('many', 24, { do => 'noop' }));
    my @runs = create_each(5, { do => 'noop' }, graph => 'many');
    my $many = TestSupervisor->start($pg, node => 'node-5', graphs => { many => {} },
        timing_ms => { %{ fast_timing() }, quarantine => 600_000 });
    wait_all_final('success', @runs);
    pass 'ordinary runs execute beside quarantined runs';
    my $held = "select count(*) from agent.run_queue where graph_id = 'many' and state = 'leased'";
    wait_for('16 quarantined runs to execute', sub { poll($held) == 16 && !grep { events_of($_) < 2 } @first });
    wait_status(create_run({ do => 'noop' }, graph => 'many'), 'success') for 1 .. 3;
    is sql($held), 16, 'the other quarantined runs wait in the queue';
    open_gate($gate);
    wait_all_final('success', @quarantined);
    is sql('select max(epoch) from agent.usage_events where run_id in (' . quoted(@quarantined) . ')'), 1,
        'each quarantined run is claimed once';
    is $many->stop, 0, 'the supervisor exits with status 0';
};

subtest 'quarantined runs execute while ordinary runs have all slots' => sub {
    my $full = TestSupervisor->start($pg, node => 'node-6', graphs => { full => {} }, slots => 1, timing_ms => fast_timing());
    $full->wait_ready;
    my $gate = make_gate();
    my ($long, $next) = create_each(2, { do => 'gate', path => $gate }, graph => 'full');
    wait_for('the only slot to be taken', sub { events_of($long) >= 2 });
    sql("update agent.run_queue set max_shared = 1 where run_id = '$next'");
    wait_for('the quarantined run to begin', sub { events_of($next) >= 2 });
    open_gate($gate);
    wait_all_final('success', $long, $next);
    is $full->stop, 0, 'the supervisor exits with status 0';
};

subtest 'standard error: at most 100 lines in 10 s are logged, the run continues' => sub {
    my $began = clock_gettime(CLOCK_MONOTONIC);
    my $run = create_run({ do => 'stderr', count => 20_000 });
    $sv->wake;
    wait_status($run, 'success');
    $sv->wait_log(qr/AGT0348: runner \d+: \d+ more lines were not logged, some of run $run$/m);
    my @lines = $sv->log_text =~ /^(.*AGT0347: .*)$/mg;
    # 100 lines of a runner in ten seconds, and those of earlier runners.
    my $sec = clock_gettime(CLOCK_MONOTONIC) - $began;
    cmp_ok scalar @lines, '<=', 300 + 10 * $sec, 'the number of logged lines is limited';
    is scalar(grep { length > 8300 } @lines), 0, 'no logged line is longer than 8 KB';
    unlike $sv->log_text, qr/\033/, 'control characters are not logged';
};

subtest 'standard error: a long line is cut at 8 KB' => sub {
    my $run;
    # Lines of the test above may count until their ten seconds have ended.
    ok wait_for('a line of 8 KB', sub {
        $run = create_run({ do => 'stderr', count => 0 });
        $sv->wake;
        wait_final($run);
        $sv->log_text =~ /AGT0347: runner \d+ \(pool default, \w.*\): 0{7999,8000}$/m;
    }), 'the first 8 KB of a long line are logged';
    ok $sv->wait_log(qr/AGT0347: runner \d+ \(pool default\): run \Q$run\E: says so$/m),
        'a line that names its run is logged unchanged';
};

subtest 'a run that exceeds its time limit ends with status timeout' => sub {
    my $slow = TestSupervisor->start($pg, node => 'node-2', graphs => { slow => {}, 'brief/slow' => {} },
        pools => { brief => { run_timeout_ms => 1000 } }, timing_ms => fast_timing());
    $slow->wait_ready;
    my $gate = make_gate();
    my $other = $slow->start_run({ do => 'gate', path => $gate }, graph => 'slow');
    my $brief = sql("select agent.ensure_deployment('brief')");
    my $hang = create_run({ do => 'hang' }, graph => 'slow', deployment => $brief);
    my $stuck = create_run({ do => 'stuck' }, graph => 'slow', deployment => $brief);
    $slow->wake;
    wait_status($hang, 'timeout');
    wait_status($stuck, 'timeout');
    is error_of($stuck), 'TimeoutError', 'the error of the run is TimeoutError';
    open_gate($gate);
    wait_status($other, 'success');
    is +(events_of($stuck))[-1][0], 'error', 'the last event of the run is the error';
    $slow->wait_log(qr/AGT0338: runner \d+ gets no more runs/);
    # The next runner may be ready before this one has ended, or after.
    $slow->wait_log(qr/AGT0331: /);
    $slow->wait_log(qr/AGT0330: (?:.*\n)*.*AGT0330: /);
    is $slow->stop, 0, 'the supervisor exits with status 0';
};

subtest 'runners that cannot start are started after growing pauses' => sub {
    my $began = clock_gettime(CLOCK_MONOTONIC);
    my $bad = TestSupervisor->start($pg, node => 'node-3', graphs => { bad => { start => 'exit' } });
    $bad->wait_log(qr/AGT0337: 4 runners in a row/);
    wait_for('six runners to end', sub { (() = $bad->log_text =~ /AGT0331/g) >= 6 });
    cmp_ok clock_gettime(CLOCK_MONOTONIC) - $began, '>=', 0.1 + 0.2 + 0.4 + 0.8 + 1.6,
        'the pauses between failed starts double';
    is $bad->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a runner that does not send ready in time is replaced' => sub {
    my $bad = TestSupervisor->start($pg, node => 'node-4', graphs => { bad => { start => 'never_ready' } },
        timing_ms => { ready_timeout => 200 });
    $bad->wait_log(qr/AGT0333: runner \d+ did not become ready in time/);
    is $bad->stop, 0, 'the supervisor exits with status 0';
};

is $sv->stop, 0, 'the supervisor exits with status 0';

done_testing;
