# SPDX-License-Identifier: Apache-2.0
# Quarantine: runs whose runner died while it executed several. They execute on a
# limited number of quarantine runners, with pauses after failed starts.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Wait;
use File::Temp qw(tempdir);
use Test::More;
use TestSupervisor;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my $pg = start_cluster();

# A runner that exits at once while the file `broken` exists; only the first one
# that finds the file starts.
sub make_runner {
    my $dir = tempdir('/tmp/agent-test-runner.XXXXXX', CLEANUP => 1);
    my $program = program('fake_runner');
    open my $script, '>', "$dir/runner" or die "$dir: $!";
    print {$script} <<"SH";
#!/bin/sh
[ -e $dir/broken ] && ! mkdir $dir/taken 2>/dev/null && exit 1
exec $program "\$@"
SH
    close $script or die "$dir: $!";
    chmod 0755, "$dir/runner";
    chmod 0777, $dir;
    return $dir;
}

sub break_runner {
    my ($dir) = @_;
    open my $file, '>', "$dir/broken" or die "$dir: $!";
    return close $file;
}

sub repair_runner {
    my ($dir) = @_;
    return unlink "$dir/broken";
}

subtest 'quarantine runners: the pauses after failed starts double' => sub {
    my $dir = make_runner();
    my $sv = TestSupervisor->start($pg, node => 'node-1', runner => "$dir/runner", graphs => { broken => {} },
        timing_ms => fast_timing());
    $sv->wait_ready;
    my $gate = make_gate();
    my @others = $sv->start_runs(8, { do => 'gate', path => $gate }, graph => 'broken');
    my $count_ends = sub { return scalar(() = $sv->log_text =~ /AGT0331/g) };
    # The next ordinary runner starts, quarantine runners do not.
    break_runner($dir);
    my $began = clock_gettime(CLOCK_MONOTONIC);
    my $poison = create_run({ do => 'abort' }, graph => 'broken');
    $sv->wake;
    $sv->wait_log(qr/AGT0337: 4 runners in a row/);
    pass 'a quarantine runner that ends without a run is a failed start';
    my $plain = create_run({ do => 'noop' }, graph => 'broken');
    $sv->wake;
    wait_status($plain, 'success');
    # The seventh is the ordinary runner that died with all runs.
    wait_for('six quarantine runners to end', sub { $count_ends->() >= 7 });
    cmp_ok clock_gettime(CLOCK_MONOTONIC) - $began, '>=', 0.1 + 0.2 + 0.4 + 0.8 + 1.6,
        'the pauses between failed starts double';
    is sql("select max(attempts) from agent.run_queue where graph_id = 'broken'"), 0, 'a failed start counts as no attempt';
    repair_runner($dir);
    wait_status($poison, 'error');
    open_gate($gate);
    wait_all_final('success', @others);
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

# Creates quarantined runs that may share a runner with $max_shared.
sub make_quarantined {
    my ($graph, $count, $max_shared, $input) = @_;
    my @runs = create_each($count, $input, graph => $graph);
    sql("update agent.run_queue set max_shared = $max_shared where run_id in (" . quoted(@runs) . ')');
    return @runs;
}

# "epoch attempts" of those of the runs that have ended.
sub ended {
    my (@runs) = @_;
    my @ended = sql("select epoch, attempts from agent.usage_events where run_id in (" . quoted(@runs) . ')');
    return @ended;
}

# A run that is asked to stop sends a checkpoint; at its next attempt it ends.
subtest 'each quarantined run is executed, however long others take' => sub {
    my $gate = make_gate();
    my @long = make_quarantined('full', 20, 1, { do => 'gate', path => $gate });
    my ($short) = make_quarantined('full', 1, 25, { do => 'noop' });
    my $sv = TestSupervisor->start($pg, node => 'node-2', graphs => { full => {} },
        timing_ms => { %{ fast_timing() }, quarantine => 500 });
    wait_status($short, 'success');
    $sv->wait_log(qr/AGT0388: runner \d+ has executed 1 quarantined runs long enough/);
    wait_events('all other quarantined runs to be executed', 2, @long);
    wait_for('five runs that have passed quarantine to end', sub { ended(@long) >= 5 });
    is_deeply [ grep { $_ ne "2\t1" } ended(@long) ], [], 'quarantine that a run has passed counts as no attempt';
    cmp_ok scalar($sv->runner_pids), '<=', 1 + 16, 'there are at most 16 quarantine runners';
    open_gate($gate);
    wait_all_final('success', @long);
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'quarantined runs keep their runners to the end while no others wait' => sub {
    my $gate = make_gate();
    my @long = make_quarantined('calm', 3, 1, { do => 'gate', path => $gate });
    my $sv = TestSupervisor->start($pg, node => 'node-3', graphs => { calm => {} },
        timing_ms => { %{ fast_timing() }, quarantine => 1 });
    wait_events('all runs to begin', 2, @long);
    # The end of quarantine is checked each second.
    wait_status((make_quarantined('calm', 1, 1, { do => 'noop' }))[0], 'success') for 1 .. 3;
    wait_for('the runners of the ended quarantined runs to end', sub { $sv->runner_pids == 1 + @long });
    open_gate($gate);
    wait_all_final('success', @long);
    is_deeply [ ended(@long) ], [ ("1\t1") x 3 ], 'each run ends under its first lease';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'quarantine takes longer for a run that has passed it before' => sub {
    my $gate = make_gate();
    my @long = make_quarantined('again', 16, 1, { do => 'gate', path => $gate });
    sql("update agent.run_queue set quarantines_passed = 7 where graph_id = 'again' and run_id <> '$long[9]'");
    my $sv = TestSupervisor->start($pg, node => 'node-4', graphs => { again => {} },
        timing_ms => { %{ fast_timing() }, quarantine => 500 });
    wait_events('all runs to begin', 2, @long);
    wait_status($long[9], 'success');
    is_deeply [ ended(@long) ], ["2\t1"], 'a run that never passed quarantine passes first';
    wait_status((make_quarantined('again', 1, 1, { do => 'noop' }))[0], 'success');
    open_gate($gate);
    wait_all_final('success', @long);
    is_deeply [ sort { $a cmp $b } ended(@long) ], [ ("1\t1") x 15, "2\t1" ], 'runs that passed quarantine before keep their runners';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'at most AgentRunners runners are drained at the same time' => sub {
    my $sv = TestSupervisor->start($pg, node => 'node-5', graphs => { left => {} },
        timing_ms => { %{ fast_timing() }, cancel_grace => 200, drain_grace => 600_000 });
    my $gate = make_gate();
    my @long;
    for my $round (1 .. 3) {
        $sv->wait_runners($round);
        my ($run, $stuck) = map { create_run({ do => $_, path => $gate }, graph => 'left') } qw(gate stuck);
        $sv->wake;
        wait_events('both runs to begin', 2, $run, $stuck);
        cmp_ok scalar(my @pids = $sv->runner_pids), '<=', 2, 'one runner executes and at most one is drained';
        $sv->cancel($stuck);
        wait_status($stuck, 'interrupted');
        push @long, $run;
    }
    $sv->wait_runners(4);
    cmp_ok scalar(my @pids = $sv->runner_pids), '<=', 2, 'there are no more runners after the last round';
    wait_for('the first run to continue on another runner', sub { poll("select epoch from agent.run_queue where run_id = '$long[0]'") > 1 });
    wait_for('all runs to be leased', sub { poll("select count(*) from agent.run_queue where graph_id = 'left' and state = 'leased'") == 3 });
    wait_for('all runs to wait for the gate', sub { !grep { (events_of($_))[-1][0] ne 'custom' } @long });
    open_gate($gate);
    wait_all_final('success', @long);
    is_deeply [ grep { !/\t1$/ } ended(@long) ], [], 'runs of a runner that is replaced lose no attempt';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

done_testing;
