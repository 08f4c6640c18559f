# SPDX-License-Identifier: Apache-2.0
# Credit: runs that misuse it delay neither other runners nor small output.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Wait;
use File::Temp;
use Test::More;
use TestSupervisor;

my $pg = start_cluster();

my $runner = scripted_runner('credit_runner.pl');

# Credit lapses only when another runner needs the room.
my $PATIENT = { %{ fast_timing() }, ping_timeout => 15_000, credit => 3_600_000 };

sub start_supervisor {
    my (%args) = @_;
    my $sv = TestSupervisor->start($pg, lease_sec => 60, runner => $runner,
        timing_ms => { %{ fast_timing() }, ping_timeout => 15_000 }, %args);
    $sv->wait_ready;
    return $sv;
}

# Kills the supervisor: its runs would not end.
sub stop_supervisor {
    my ($sv) = @_;
    kill KILL => $sv->pid;
    sql('delete from agent.run_queue');
    return;
}

subtest 'credit: a run that requests it again before it read go ends its runner' => sub {
    my $sv = start_supervisor();
    my $run = create_run({ do => 'request_twice', once => 1 });
    $sv->wake;
    wait_status($run, 'success');
    ok $sv->wait_log(qr/AGT0332: .*a run requested credit again before it read go/), 'the breach is logged';
    stop_supervisor($sv);
};

subtest 'pong: a runner that sends one without a ping is killed' => sub {
    my $sv = start_supervisor();
    my $run = create_run({ do => 'pong', once => 1 });
    $sv->wake;
    wait_status($run, 'success');
    ok $sv->wait_log(qr/AGT0332: .*a pong without a ping/), 'the breach is logged';
    stop_supervisor($sv);
};

subtest 'credit: runs that request it and send nothing do not delay a line of 70 KB of another runner' => sub {
    my $sv = start_supervisor(runners => 2, timing_ms => $PATIENT);
    $sv->start_runs(100, { do => 'request' });
    my $run = create_run({ do => 'send' });
    $sv->wake;
    wait_status($run, 'success');
    unlike $sv->log_text, qr/AGT0354/, 'every runner is always read';
    stop_supervisor($sv);
};

# A supervisor with $runners runners, all of them ready.
sub start_with_runners {
    my ($runners, %args) = @_;
    my $sv = start_supervisor(runners => $runners, %args);
    $sv->wait_runners($runners);
    return $sv;
}

subtest 'credit: a runner sends a line of 8 MB while four others hold credit for all room of their deployment' => sub {
    my $sv = start_with_runners(5, timing_ms => $PATIENT);
    my @silent;
    for (1 .. 4) {
        # Each run goes to a runner that has none.
        push @silent, $sv->start_run({ do => 'reserve' });
        wait_events('its credit', 3, $silent[-1]);
    }
    my $large = create_run({ do => 'send_large' });
    $sv->wake;
    wait_status($large, 'success');
    is scalar(grep { status_of($_) eq 'pending' } @silent), 4, 'the four runs with credit have not ended';
    unlike $sv->log_text, qr/AGT0354/, 'every runner is always read';
    stop_supervisor($sv);
};

subtest 'start: seven runners that do not read do not delay a line of 7 MB to an eighth' => sub {
    my $sv = start_with_runners(8, runner => program('fake_runner'), lease_sec => 240,
        timing_ms => { %{ fast_timing() }, ping_timeout => 240_000 });
    my $gate = make_gate();
    my $first = $sv->start_run({ do => 'gate', path => $gate });
    my $pid = (events_of($first))[1][1]{pid};
    my @stopped = grep { $_ != $pid } $sv->runner_pids;
    kill STOP => @stopped;
    # Each run goes to a runner that has none.
    my @large = create_each(7, { do => 'noop' }, pad => 7_200_000);
    $sv->wake;
    wait_events('their start lines', 1, @large);
    open_gate($gate);
    wait_status($first, 'success');
    my $last = create_run({ do => 'noop' }, pad => 7_200_000);
    $sv->wake;
    wait_status($last, 'success');
    is scalar(grep { status_of($_) eq 'pending' } @large), 7, 'the runs of the seven runners have not ended';
    kill CONT => @stopped;
    wait_all_final('success', @large);
    stop_supervisor($sv);
};

subtest 'credit: a run that waits for its own output holds no line of another run' => sub {
    my $sv = start_supervisor();
    my $waiting = $sv->start_run({ do => 'send_and_request' });
    my $lock = hold_lock("select from agent.run_queue where run_id = '$waiting' for update");
    $sv->start_run({ do => 'prompt' });
    wait_blocked('save_batch');
    create_run({ do => 'send_without' });
    $sv->wake;
    my $small = $sv->start_run({ do => 'noop' });
    wait_status($small, 'success');
    unlike $sv->log_text, qr/AGT0354/, 'the runner is always read';
    release_lock($lock);
    stop_supervisor($sv);
};

subtest 'a run sends 100 KB while eight runs of another deployment send, without credit, more than there is room for' => sub {
    my $flood = sql("select agent.ensure_deployment('flood')");
    # A run whose output is locked delays others by one attempt, of 4 s.
    my $sv = TestSupervisor->start($pg, lease_sec => 240, graphs => { agent => {}, 'flood/agent' => {} }, runners => 9,
        pools => { flood => { runner => scripted_runner('hostile_runner.pl'), slots => 1 } },
        timing_ms => { ping_interval => 3_600_000, statement => 2000 });
    $sv->wait_runners(2);
    my $file = File::Temp->new(DIR => '/tmp');
    print {$file} '{"type":"event","run_id":"@RUN@","epoch":@EPOCH@,"event":"custom","data":"' . 'x' x 1_000_000 . qq("}\n);
    close $file;
    chmod 0644, "$file";
    # Each sends the lines of the file when its gate is opened.
    my @gates = map { make_gate() } 1 .. 8;
    my @hostile = create_all(map { [ { path => $_, odd => "$file", times => 20 }, deployment => $flood ] } @gates);
    $sv->wake;
    wait_events('the runs to begin', 1, @hostile);
    my $lock = hold_lock('select from agent.run_queue where run_id in (' . quoted(@hostile) . ') for update');
    open_gate($_) for @gates;
    $sv->wait_log(qr/AGT0354/);
    my $run = create_run({ do => 'stream', bytes => 100_000 });
    $sv->wake;
    wait_status($run, 'success');
    unlike $sv->log_text, qr/AGT0341/, 'it has not waited until output of the eight runs was given up';
    release_lock($lock);
    stop_supervisor($sv);
};

done_testing;
