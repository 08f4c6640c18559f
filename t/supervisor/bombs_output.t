# SPDX-License-Identifier: Apache-2.0
# Runs that send megabytes while the database takes none: their cost to the
# supervisor is bounded, and others are executed beside them.
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

sub talker { my ($gate, %more) = @_; return { do => 'gate', path => $gate, bytes => 7_000_000, %more } }

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
        for (1 .. 3) {
            my $small = create_run({ do => 'stream' });
            $sv->wake;
            wait_status($small, 'success');
        }
    });
    is_linear($cost, 6 * 7 * $MB, 'the supervisor waits, it does not spin');
    is scalar(grep { status_of($_) eq 'pending' } @large), 6, 'the others are not saved yet';
    close $lock or die "psql failed\n";
    wait_all_final('success', @large);
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
    my @large = start_talkers($sv, 11, $gate);
    my $before = resident_bytes($sv->pid);
    my $cost = cost_of([ $sv->pid ], sub {
        my $lock = lock_out($gate, @large);
        # The others have asked for more than there is: this one waits.
        open_gate($last_gate);
        for (1 .. 3) {
            my $small = create_run({ do => 'stream' });
            $sv->wake;
            wait_status($small, 'success');
        }
        cancel($sv, $waiting);
        wait_status($waiting, 'interrupted');
        close $lock or die "psql failed\n";
        wait_all_final('success', @large);
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
        wait_all_final('success', @runs);
    });
    cmp_ok(($before + $cost->{peak_bytes}) / $MB, '<', 192 * memory_scale(), 'the supervisor has a part of it in memory');
    is sql('select count(*) from agent.run_events where run_id in (' . quoted(@runs) . ") and event = 'custom'"),
        @runs * 2001, 'all of it is saved';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

# The runs of a run's runner.
sub beside {
    my ($run) = @_;
    my $pid = "(data::json)->>'pid'";
    return sql("select run_id from agent.run_events where seq = 1 and $pid = "
        . "(select $pid from agent.run_events where seq = 1 and run_id = '$run')");
}

subtest 'a runner that sends long lines without credit is not read until there is room' => sub {
    my $sv = TestSupervisor->start($pg, runners => 2, lease_sec => 240,
        timing_ms => { %{ patient_timing() }, cancel_grace => 10_000 });
    $sv->wait_ready;
    wait_for('both runners', sub { 2 == (() = $sv->log_text =~ /AGT0330/g) });
    # Each goes to the runner that has fewer.
    my ($held, $ignorant) = map { start_run($sv, { do => $_ }) } qw(hang stuck);
    # The large ones are those of the first runner: only their gates are opened.
    my @gates = map { make_gate() } 1 .. 22;
    my @runs = create_all(map { [ talker($_, unasked => 1) ] } @gates);
    my %gate_of;
    @gate_of{@runs} = @gates;
    $sv->wake;
    wait_running(@runs);
    my @large = grep { $gate_of{$_} } beside($held);
    is_deeply [ scalar @large, scalar grep { $_ eq $ignorant } beside($held) ], [ 11, 0 ], 'one runner has the large output';
    my $before = resident_bytes($sv->pid);
    my $cost = cost_of([ $sv->pid ], sub {
        my $lock = lock_out($gate_of{ $large[0] }, @large);
        open_gate($gate_of{$_}) for @large[ 1 .. $#large ];
        $sv->wait_log(qr/AGT0354: \d{4,5} KB of output wait for the database/);
        cancel($sv, $held, $ignorant);
        $sv->wait_log(qr/AGT0342: runner \d+ did not end run $ignorant/);
        close $lock or die "psql failed\n";
        wait_all_final('success', @large);
        wait_all_final('interrupted', $held, $ignorant);
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

done_testing;
