# SPDX-License-Identifier: Apache-2.0
# Suspects: runs whose runner died while it executed several. Each is tried on
# a runner of its own kind, in a bounded number of processes, with pauses.
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

# A runner that ends at once while the file `broken` is there, but for the
# first one that finds it.
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

subtest 'runners for suspects that cannot start are tried less and less often' => sub {
    my $dir = make_runner();
    my $sv = TestSupervisor->start($pg, node => 'node-1', runner => "$dir/runner", graphs => { broken => {} },
        timing_ms => fast_timing());
    $sv->wait_ready;
    my $gate = make_gate();
    my @others = map { create_run({ do => 'gate', path => $gate }, graph => 'broken') } 1 .. 8;
    $sv->wake;
    wait_for('the others to run', sub { !grep { events_of($_) < 2 } @others });
    my $count_ends = sub { return scalar(() = $sv->log_text =~ /AGT0331/g) };
    # The next ordinary runner starts, those for suspects do not.
    break_runner($dir);
    my $began = clock_gettime(CLOCK_MONOTONIC);
    my $poison = create_run({ do => 'abort' }, graph => 'broken');
    $sv->wake;
    $sv->wait_log(qr/AGT0337: 4 runners in a row/);
    pass 'a failure is counted where no run was begun';
    my $plain = create_run({ do => 'noop' }, graph => 'broken');
    $sv->wake;
    wait_status($plain, 'success');
    # Beside the one that died with all of them.
    wait_for('six of them to end', sub { $count_ends->() >= 7 });
    cmp_ok clock_gettime(CLOCK_MONOTONIC) - $began, '>=', 0.1 + 0.2 + 0.4 + 0.8 + 1.6,
        'the pauses between them double';
    is sql("select max(attempts) from agent.run_queue where graph_id = 'broken'"), 0, 'nothing of it counts as an attempt';
    repair_runner($dir);
    wait_status($poison, 'error');
    open_gate($gate);
    wait_status($_, 'success') for @others;
    is $sv->stop, 0, 'the supervisor is well';
};

done_testing;
