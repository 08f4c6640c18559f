# SPDX-License-Identifier: Apache-2.0
# Runs that misuse credit delay neither other runners nor small output.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Wait;
use File::Temp qw(tempfile);
use Test::More;
use TestSupervisor;

my $pg = start_cluster();

# A supervisor executes its runner from a descriptor. Perl would read that
# itself, from where the runner before it has stopped; a shell opens it again.
sub make_runner {
    open my $in, '<', "$FindBin::Bin/rude_runner.pl" or die "rude_runner.pl: $!\n";
    my $program = join '', <$in>;
    my ($out, $path) = tempfile(UNLINK => 1);
    print {$out} "#!/bin/sh\nexec perl - <<'PERL'\n${program}PERL\n";
    close $out or die "$path: $!\n";
    chmod 0755, $path or die "$path: $!\n";
    return $path;
}

my $runner = make_runner();

# Credit of which nobody else needs the memory does not lapse.
my $PATIENT = { %{ fast_timing() }, ping_timeout => 15_000, credit => 3_600_000 };

sub start_supervisor {
    my (%args) = @_;
    my $sv = TestSupervisor->start($pg, lease_sec => 60, runner => $runner,
        timing_ms => { %{ fast_timing() }, ping_timeout => 15_000 }, %args);
    $sv->wait_ready;
    return $sv;
}

# Runs that have begun.
sub start_runs {
    my ($sv, $input, $count) = @_;
    my @runs = create_each($count // 1, $input);
    my $list = join ', ', map { "'$_'" } @runs;
    $sv->wake;
    wait_for('all to run', sub { @runs == sql("select count(*) from agent.run_events where seq = 1 and run_id in ($list)") });
    return @runs;
}

sub stop_supervisor {
    my ($sv) = @_;
    kill KILL => $sv->pid;
    sql('delete from agent.run_queue');
    return;
}

subtest 'a run that requests credit again before it has read go ends its runner' => sub {
    my $sv = start_supervisor();
    my $run = create_run({ do => 'ask_twice', once => 1 });
    $sv->wake;
    wait_status($run, 'success');
    ok $sv->wait_log(qr/AGT0332: .*a run asked again before it read go/), 'the log says what was wrong';
    stop_supervisor($sv);
};

subtest 'a runner that sends a pong without a ping is ended' => sub {
    my $sv = start_supervisor();
    my $run = create_run({ do => 'pong', once => 1 });
    $sv->wake;
    wait_status($run, 'success');
    ok $sv->wait_log(qr/AGT0332: .*a pong without a ping/), 'the log says what was wrong';
    stop_supervisor($sv);
};

subtest 'runs that request credit and send nothing do not delay a line of 70 KB' => sub {
    my $sv = start_supervisor(runners => 2, timing_ms => $PATIENT);
    start_runs($sv, { do => 'ask' }, 100);
    my $run = create_run({ do => 'say' });
    $sv->wake;
    wait_status($run, 'success');
    unlike $sv->log_text, qr/AGT0354/, 'no runner had to wait';
    stop_supervisor($sv);
};

# Of that many runners, all of them ready.
sub start_crowd {
    my ($runners, %args) = @_;
    my $sv = start_supervisor(runners => $runners, %args);
    wait_for('all runners', sub { $runners == (() = $sv->log_text =~ /AGT0330/g) });
    return $sv;
}

subtest 'a runner sends a line of 8 MB while eight others keep credit for all memory' => sub {
    my $sv = start_crowd(9, timing_ms => $PATIENT);
    my @silent;
    for (1 .. 8) {
        # Each goes to a runner that has none.
        push @silent, start_runs($sv, { do => 'reserve' });
        wait_events('its credit', 2, $silent[-1]);
    }
    my $large = create_run({ do => 'say_large' });
    $sv->wake;
    wait_status($large, 'success');
    is scalar(grep { status_of($_) eq 'pending' } @silent), 8, 'the others are silent still';
    unlike $sv->log_text, qr/AGT0354/, 'no runner had to wait';
    stop_supervisor($sv);
};

subtest 'seven runners that do not read do not delay a start line of 7 MB of an eighth' => sub {
    my $sv = start_crowd(8, runner => program('fake_runner'), lease_sec => 240,
        timing_ms => { %{ fast_timing() }, ping_timeout => 240_000 });
    my $gate = make_gate();
    my ($first) = start_runs($sv, { do => 'gate', path => $gate });
    my $pid = (events_of($first))[1][1]{pid};
    my @stopped = grep { $_ != $pid } $sv->runner_pids;
    kill STOP => @stopped;
    # Each goes to the runner that has fewest.
    my @large = create_each(7, { do => 'noop' }, pad => 7_200_000);
    $sv->wake;
    wait_events('their start lines', 1, @large);
    open_gate($gate);
    wait_status($first, 'success');
    my $last = create_run({ do => 'noop' }, pad => 7_200_000);
    $sv->wake;
    my $has_ended = eval { wait_final($last) };
    is $has_ended, 'success', 'the run of the eighth ends';
    is scalar(grep { status_of($_) eq 'pending' } @large), 7, 'the others have not started';
    kill CONT => @stopped;
    wait_all_final('success', @large);
    stop_supervisor($sv);
};

subtest 'a run that waits for its own output holds no line of another run' => sub {
    my $sv = start_supervisor();
    my ($waiting) = start_runs($sv, { do => 'say_and_ask' });
    open my $lock, '|-', 'psql', '-Xq', '-o', '/dev/null' or die "psql: $!\n";
    print {$lock} "begin; select /* for update */ from agent.run_queue where run_id = '$waiting' for update;\n";
    $lock->flush;
    wait_for('the lock', sub {
        sql("select count(*) from pg_stat_activity where state = 'idle in transaction' and query like '%for update%'");
    });
    start_runs($sv, { do => 'prompt' });
    wait_for('its line to wait for the lock', sub {
        sql("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%save_batch%'");
    });
    create_run({ do => 'say_unasked' });
    $sv->wake;
    my ($small) = start_runs($sv, { do => 'noop' });
    wait_status($small, 'success');
    unlike $sv->log_text, qr/AGT0354/, 'its runner is read all the time';
    close $lock or die "psql failed\n";
    stop_supervisor($sv);
};

done_testing;
