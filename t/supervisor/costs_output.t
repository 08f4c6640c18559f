# SPDX-License-Identifier: Apache-2.0
# Runs that send megabytes while the database stores nothing: their cost to the
# supervisor is limited, and other runs execute beside them.
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

# The input of a run that sends 7 MB when the gate is opened.
sub large_output { my ($gate, %more) = @_; return { do => 'gate', path => $gate, bytes => 7_000_000, %more } }

subtest 'runs end while output of megabytes of others waits for a lock' => sub {
    my $sv = TestSupervisor->start($pg, lease_sec => 240, timing_ms => patient_timing());
    $sv->wait_ready;
    my $gate = make_gate();
    my @large = $sv->start_runs(6, large_output($gate));
    my $lock = hold_output($gate, @large);
    my $cost = cost_of([ $sv->pid ], sub {
        for (1 .. 3) {
            my $small = create_run({ do => 'stream' });
            $sv->wake;
            wait_status($small, 'success');
        }
    });
    is_linear($cost, 6 * 7 * $MB, 'the supervisor does not spin while output waits');
    is scalar(grep { status_of($_) eq 'pending' } @large), 6, 'the runs with large output have not ended yet';
    release_lock($lock);
    wait_all_final('success', @large);
    is scalar(grep { length sql("select data from agent.run_events where run_id = '$_' and seq = 2") != 7_000_002 } @large),
        0, 'their output is stored whole';
    unlike $sv->log_text, qr/AGT0345|AGT0354/, 'the runner is always read';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'while a run waits for credit, other runs of its runner continue' => sub {
    my $sv = TestSupervisor->start($pg, lease_sec => 240, timing_ms => { %{ patient_timing() }, cancel_grace => 1000 });
    $sv->wait_ready;
    my ($gate, $last_gate) = (make_gate(), make_gate());
    my $waiting = $sv->start_run(large_output($last_gate));
    my @large = $sv->start_runs(11, large_output($gate));
    my $before = resident_bytes($sv->pid);
    my $cost = cost_of([ $sv->pid ], sub {
        my $lock = hold_output($gate, @large);
        # The others have requested more than there is: this one waits.
        open_gate($last_gate);
        for (1 .. 3) {
            my $small = create_run({ do => 'stream' });
            $sv->wake;
            wait_status($small, 'success');
        }
        $sv->cancel($waiting);
        wait_status($waiting, 'interrupted');
        release_lock($lock);
        wait_all_final('success', @large);
    });
    unlike $sv->log_text, qr/AGT0345|AGT0354/, 'the runner is always read';
    is attempts_of(@large), 1, 'each run ends at its first attempt';
    cmp_ok(($before + $cost->{peak_bytes}) / $MB, '<', 192 * memory_scale(), 'the supervisor has only a part of the output in memory');
    is_linear($cost, @large * 7 * $MB, 'processor time is linear in the bytes of the output');
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a runner that sends 512 KB of a run without credit is not read until some of it is saved' => sub {
    my $sv = TestSupervisor->start($pg, lease_sec => 240, timing_ms => patient_timing());
    $sv->wait_ready;
    my $gate = make_gate();
    my $run = $sv->start_run({ do => 'gate', path => $gate, count => 10_000 });
    my $lock = hold_output($gate, $run);
    $sv->wait_log(qr/AGT0354: \d+ KB of output wait for the database, credit for \d+ KB is granted: runner \d+ sent a line for which/);
    release_lock($lock);
    wait_status($run, 'success');
    is sql("select count(*) from agent.run_events where run_id = '$run' and event = 'custom'"), 10_001,
        'all events are saved at the end';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a runner is not read while 16 MB of short lines of its deployment wait for the database' => sub {
    my $sv = TestSupervisor->start($pg, lease_sec => 240, timing_ms => patient_timing());
    $sv->wait_ready;
    my $gate = make_gate();
    # 450 KB of each run, less than the 512 KB of one run that hold its runner.
    my @runs = $sv->start_runs(80, { do => 'gate', path => $gate, count => 4000 });
    my $before = resident_bytes($sv->pid);
    my $cost = cost_of([ $sv->pid ], sub {
        my $lock = hold_output($gate, @runs);
        $sv->wait_log(qr/AGT0354: 1[56]\d{3} KB of output wait for the database/);
        release_lock($lock);
        wait_all_final('success', @runs);
    });
    cmp_ok(($before + $cost->{peak_bytes}) / $MB, '<', 192 * memory_scale(), 'the supervisor has only a part of the output in memory');
    is sql('select count(*) from agent.run_events where run_id in (' . quoted(@runs) . ") and event = 'custom'"),
        @runs * 4001, 'all events are saved at the end';
    unlike $sv->log_text, qr/AGT0345/, 'runners of other deployments are read';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

# The runs that execute on the runner of this one.
sub runs_beside {
    my ($run) = @_;
    my $pid = "(data::json)->>'pid'";
    return sql("select run_id from agent.run_events where seq = 1 and $pid = "
        . "(select $pid from agent.run_events where seq = 1 and run_id = '$run')");
}

subtest 'a runner that sends long lines without credit is not read until there is room' => sub {
    my $sv = TestSupervisor->start($pg, runners => 2, lease_sec => 240,
        timing_ms => { %{ patient_timing() }, cancel_grace => 10_000 });
    $sv->wait_ready;
    $sv->wait_runners(2);
    # Each run goes to the runner that has fewer. Only those with the held one
    # send large output.
    my ($held, $stuck) = map { $sv->start_run({ do => $_ }) } qw(hang stuck);
    my @gates = map { make_gate() } 1 .. 22;
    my @runs = create_all(map { [ large_output($_, without_credit => 1) ] } @gates);
    my %gate_of;
    @gate_of{@runs} = @gates;
    $sv->wake;
    wait_events('all runs to begin', 2, @runs);
    my @beside = runs_beside($held);
    my @large = grep { $gate_of{$_} } @beside;
    is_deeply [ scalar @large, scalar grep { $_ eq $stuck } @beside ], [ 11, 0 ], 'one of two runners sends the large output';
    my $before = resident_bytes($sv->pid);
    my $cost = cost_of([ $sv->pid ], sub {
        my $lock = hold_output($gate_of{ $large[0] }, @large);
        open_gate($gate_of{$_}) for @large[ 1 .. $#large ];
        $sv->wait_log(qr/AGT0354: \d{4,5} KB of output wait for the database/);
        $sv->cancel($held, $stuck);
        $sv->wait_log(qr/AGT0342: runner \d+ did not end run $stuck/);
        release_lock($lock);
        wait_all_final('success', @large);
        wait_all_final('interrupted', $held, $stuck);
    });
    unlike $sv->log_text, qr/AGT0342: runner \d+ did not end run $held/,
        'the time to cancel a run does not end while its runner is not read';
    is attempts_of(@large), 1, 'each run ends at its first attempt';
    my $peak = ($before + $cost->{peak_bytes}) / $MB;
    cmp_ok $peak, '<', 192 * memory_scale(), 'the supervisor has only a part of the output in memory';
    is_linear($cost, @large * 7 * $MB, 'processor time is linear in the bytes of the output');
    note sprintf 'peak %.0f MB', $peak;
    is $sv->stop, 0, 'the supervisor exits with status 0';
    sql('delete from agent.run_queue');
};

done_testing;
