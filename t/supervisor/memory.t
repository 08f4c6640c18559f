# SPDX-License-Identifier: Apache-2.0
# The memory limit of a runner: allocations, and resident memory.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Env qw(build_dir is_sanitized);
use AgentTest::Wait;
use Test::More;
use TestSupervisor;

use constant MB => 1024 * 1024;

my $pg = start_cluster();

subtest 'a runner that allocates more than AgentRunnerMemory logs that and exits' => sub {
    plan skip_all => 'a sanitizer takes more than any limit' if is_sanitized();
    my $sv = TestSupervisor->start($pg, runner => build_dir() . '/agent-runner',
        runner_memory => 20 * MB, timing_ms => fast_timing(),
        graphs => { agent => { kind => 'builtin', model => { provider => 'demo' } } });
    $sv->wait_ready;
    my $large = create_run({ messages => [ { role => 'user', content => [ ('a') x 25_000 ] } ] });
    $sv->wake;
    wait_status($large, 'error');
    is error_of($large), 'RunGivenUpError', 'the run that needs the memory ends in error after its attempts';
    like run_field($large, "error->>'message'"), qr/ the runner process ran out of memory\.\z/, 'its error names the memory';
    like $sv->log_text, qr/AGT0347: .*out of memory: \d+ bytes more .* of 20 MB \(AgentRunnerMemory\)/,
        'the runner logs that it is out of memory';
    like $sv->log_text, qr/AGT0331: runner \d+ ended \(exit status 71\)/, 'the runner exits with status 71';
    my $small = create_run({ messages => [ { role => 'user', content => 'Hello' } ] });
    $sv->wake;
    wait_status($small, 'success');
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a runner whose resident memory is above the limit is killed' => sub {
    my $sv = TestSupervisor->start($pg, node => 'node-2', runner_memory => 64 * MB,
        timing_ms => fast_timing());
    $sv->wait_ready;
    my $run = create_run({ do => 'share', once => 1, bytes => (is_sanitized() ? 300 : 80) * MB });
    $sv->wake;
    $sv->wait_log(qr/AGT0386: runner \d+ takes more memory than the 64 MB of AgentRunnerMemory/);
    wait_status($run, 'success');
    is attempts_of($run), 2, 'the attempt of its run is counted, and the run is executed again';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'without AgentRunnerMemory no runner is killed for its memory' => sub {
    my $sv = TestSupervisor->start($pg, node => 'node-3', timing_ms => fast_timing());
    $sv->wait_ready;
    my $run = create_run({ do => 'share', bytes => 80 * MB });
    $sv->wake;
    wait_for('the run to begin', sub { events_of($run) >= 1 });
    my ($runner) = $sv->runner_pids;
    wait_for('the runner to have 80 MB', sub {
        my ($kb) = `cat /proc/$runner/status` =~ /^VmRSS:\s+(\d+)/m;
        return $kb > 80 * 1024;
    });
    unlike $sv->log_text, qr/AGT0386/, 'the runner is not killed';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

done_testing;
