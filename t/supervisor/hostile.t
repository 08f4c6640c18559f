# SPDX-License-Identifier: Apache-2.0
# Runners that misbehave: they lose their runs, the supervisor goes on.
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
    subtest "a runner that does '$action'" => sub {
        my $run = create_run({ do => $action, once => 1 });
        $sv->wake;
        wait_status($run, 'success');
        is sql("select attempts from agent.usage_events where run_id = '$run'"), 2,
            'the second attempt, by another runner, succeeds';
        ok $sv->wait_log($message), 'the log says what was wrong';
    };
    return;
}

expect_retry(garbage     => qr/AGT0332: .*is not JSON/);
expect_retry(wrong_run   => qr/AGT0332: .*a run that it does not execute/);
expect_retry(wrong_epoch => qr/AGT0332: .*a run that it does not execute/);
expect_retry(flood       => qr/AGT0332: .*more than 8 MiB/);
expect_retry(exit        => qr/AGT0331: runner \d+ ended \(exit status 0\)/);
expect_retry(abort       => qr/AGT0331: runner \d+ ended \(signal 6\)/);
expect_retry(close       => qr/AGT0331: runner \d+ ended \(signal 9\)/);
expect_retry(mute        => qr/AGT0335: runner \d+ does not answer/);

subtest 'a line after the end of a run replaces its runner' => sub {
    my $before = length $sv->log_text;
    my $run = create_run({ do => 'after_end' });
    $sv->wake;
    wait_status($run, 'success');
    wait_for('the runner to be replaced', sub {
        substr($sv->log_text, $before) =~ /a run that it does not execute.*\n(?:.*\n)*.*AGT0330/;
    });
    is scalar(events_of($run)), 1, 'the line is not stored';
};

subtest 'a runner cannot set the members of the supervisor' => sub {
    my $gate = make_gate();
    my $other = create_run({ do => 'gate', path => $gate });
    $sv->wake;
    wait_for('the other run to begin', sub { events_of($other) >= 2 });
    my $before = events_of($other);
    my $run = create_run({ do => 'imitate', other => $other });
    $sv->wake;
    wait_status($run, 'success');
    is_deeply [ map { $_->[0] } events_of($run) ], [ 'metadata', 'custom' ], 'the event is one of its own run';
    is_deeply +(events_of($run))[-1][1], { a => 1, s => 2 }, 'its own members are stored';
    is scalar(events_of($other)), $before, 'the other run has no event of it';
    open_gate($gate);
    wait_status($other, 'success');
};

subtest 'a run that kills its runner ends as poison at the third attempt' => sub {
    my $gate = make_gate();
    my $poison = create_run({ do => 'abort' });
    $sv->wake;
    wait_status($poison, 'error');
    is sql("select error->>'error' from agent.runs where run_id = '$poison'"), 'poison', 'as poison';
    my $after = create_run({ do => 'noop' });
    $sv->wake;
    wait_status($after, 'success');
};

subtest 'a run that kills its runner each time costs the runs beside it no attempt' => sub {
    my $gate = make_gate();
    my @others = create_each(20, { do => 'gate', path => $gate });
    $sv->wake;
    wait_events('the others to run', 2, @others);
    my $poison = create_run({ do => 'abort' });
    $sv->wake;
    wait_status($poison, 'error');
    is sql("select error->>'error' from agent.runs where run_id = '$poison'"), 'poison', 'as poison';
    is sql("select attempts from agent.usage_events where run_id = '$poison'"), 3,
        'after three attempts at which it was alone';
    like $sv->log_text, qr/AGT0374: runner \d+ ended with 21 runs: they are tried again, at most 6 together/,
        'it was searched in groups before';
    wait_for('the others to run again', sub {
        sql("select count(*) from agent.run_queue where state = 'leased' and attempts = 1") == @others;
    });
    my $new = create_run({ do => 'report' });
    $sv->wake;
    wait_status($new, 'success');
    wait_for('all of them to hold the gate', sub { !grep { (events_of($_))[-1][0] ne 'custom' } @others });
    open_gate($gate);
    wait_all_final('success', @others);
    is sql("select max(attempts) from agent.usage_events where run_id in ('" . join("', '", @others) . "')"), 1,
        'all others end at their first attempt';
};

# Makes suspects: runs that are to be tried alone.
sub make_suspects {
    my ($graph, $count, $input) = @_;
    my @runs = create_each($count, $input, graph => $graph);
    sql("update agent.run_queue set max_shared = 1 where graph_id = '$graph' and state = 'ready'");
    return @runs;
}

subtest 'suspects: no more are claimed than runners can be started for them' => sub {
    my $gate = make_gate();
    my @first = make_suspects('many', 16, { do => 'gate', path => $gate });
    my @suspects = (@first, make_suspects('many', 24, { do => 'noop' }));
    my @runs = create_each(5, { do => 'noop' }, graph => 'many');
    my $many = TestSupervisor->start($pg, node => 'node-5', graphs => { many => {} },
        timing_ms => { %{ fast_timing() }, trial => 600_000 });
    wait_all_final('success', @runs);
    pass 'ordinary runs go on beside them';
    my $held = "select count(*) from agent.run_queue where graph_id = 'many' and state = 'leased'";
    wait_for('16 of them to run', sub { sql($held) == 16 && !grep { events_of($_) < 2 } @first });
    wait_status(create_run({ do => 'noop' }, graph => 'many'), 'success') for 1 .. 3;
    is sql($held), 16, 'the others wait in the queue';
    open_gate($gate);
    wait_all_final('success', @suspects);
    is sql("select max(epoch) from agent.usage_events where run_id in ('" . join("', '", @suspects) . "')"), 1,
        'each is claimed once';
    is $many->stop, 0, 'the supervisor exits with status 0';
};

subtest 'suspects: one is executed while ordinary runs have all slots' => sub {
    my $full = TestSupervisor->start($pg, node => 'node-6', graphs => { full => {} }, slots => 1, timing_ms => fast_timing());
    $full->wait_ready;
    my $gate = make_gate();
    my ($long, $next) = create_each(2, { do => 'gate', path => $gate }, graph => 'full');
    wait_for('the only slot to be taken', sub { events_of($long) >= 2 });
    sql("update agent.run_queue set max_shared = 1 where run_id = '$next'");
    wait_for('the other one to run beside it', sub { events_of($next) >= 2 });
    open_gate($gate);
    wait_all_final('success', $long, $next);
    is $full->stop, 0, 'the supervisor exits with status 0';
};

subtest 'standard error: a flood is limited, the run goes on' => sub {
    my $began = clock_gettime(CLOCK_MONOTONIC);
    my $run = create_run({ do => 'stderr', count => 20_000 });
    $sv->wake;
    wait_status($run, 'success');
    $sv->wait_log(qr/AGT0348: runner \d+: \d+ more lines were not logged/);
    my @lines = $sv->log_text =~ /^(.*AGT0347: .*)$/mg;
    # 100 of a runner in ten seconds, in addition to those of earlier runners.
    my $sec = clock_gettime(CLOCK_MONOTONIC) - $began;
    cmp_ok scalar @lines, '<=', 300 + 10 * $sec, 'few lines are logged';
    is scalar(grep { length > 8300 } @lines), 0, 'none is longer than 8 KB';
    unlike $sv->log_text, qr/\033/, 'no control character passes';
};

subtest 'standard error: a long line is cut at 8 KB' => sub {
    my $run;
    # The lines of the flood count for the rest of their ten seconds.
    ok wait_for('a line of 8 KB', sub {
        $run = create_run({ do => 'stderr', count => 0 });
        $sv->wake;
        wait_final($run);
        $sv->log_text =~ /AGT0347: runner \d+ \(\w.*\): 0{7999,8000}$/m;
    }), 'and logged';
    ok $sv->wait_log(qr/AGT0347: runner \d+: run \Q$run\E: says so$/m),
        'a line that names its run is logged as it is';
};

subtest 'a run that exceeds its time limit ends as timeout' => sub {
    my $slow = TestSupervisor->start($pg, node => 'node-2', graphs => { slow => {} },
        run_timeout_ms => 1000, timing_ms => fast_timing());
    $slow->wait_ready;
    my $hang = create_run({ do => 'hang' }, graph => 'slow');
    my $stuck = create_run({ do => 'stuck' }, graph => 'slow');
    $slow->wake;
    wait_status($hang, 'timeout');
    wait_status($stuck, 'timeout');
    is sql("select error->>'error' from agent.runs where run_id = '$stuck'"), 'TimeoutError', 'with its reason';
    is +(events_of($stuck))[-1][0], 'error', 'its last event is the error';
    $slow->wait_log(qr/AGT0338: runner \d+ gets no more runs/);
    # The next one may be ready before it has ended, or after.
    $slow->wait_log(qr/AGT0331: /);
    $slow->wait_log(qr/AGT0330: (?:.*\n)*.*AGT0330: /);
    is $slow->stop, 0, 'the supervisor exits with status 0';
};

subtest 'runners that cannot start are started after growing pauses' => sub {
    my $bad = TestSupervisor->start($pg, node => 'node-3', graphs => { bad => { start => 'exit' } });
    $bad->wait_log(qr/AGT0337: 4 runners in a row/);
    is $bad->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a runner that never says ready gets no runs and is replaced' => sub {
    my $bad = TestSupervisor->start($pg, node => 'node-4', graphs => { bad => { start => 'never_ready' } },
        timing_ms => { ready_timeout => 200 });
    $bad->wait_log(qr/AGT0333: runner \d+ did not become ready in time/);
    is $bad->stop, 0, 'the supervisor exits with status 0';
};

is $sv->stop, 0, 'the supervisor exits with status 0';

done_testing;
