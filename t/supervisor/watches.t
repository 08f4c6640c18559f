# SPDX-License-Identifier: Apache-2.0
# Descriptors that the kernel refuses to watch: fs.epoll.max_user_watches counts those of all processes of the user, so that
# a runner of the supervisor's user could use them up.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Env qw(is_sanitized root write_file);
use AgentTest::Receiver;
use AgentTest::Wait;
use File::Temp qw(tempdir);
use Test::More;
use TestSupervisor;
use TestWebhook;

plan skip_all => 'a sanitizer is preloaded' if is_sanitized();

my $pg = start_cluster();
my $dir = tempdir(CLEANUP => 1);
chmod 0755, $dir;
my ($library, $failing) = map { "$dir/$_" } qw(fail_epoll.so failing);
system($ENV{CC} // 'cc', qw(-shared -fPIC -o), $library, root() . '/t/supervisor/fail_epoll.c') == 0 or die "fail_epoll.c: $?\n";

my @PRELOAD = (within => [ 'env', "LD_PRELOAD=$library", "AGENT_TEST_FAIL_EPOLL=$failing" ]);

sub supervisor { return TestSupervisor->start($pg, @PRELOAD, @_) }

# Renames, so that no call reads half of it.
sub fail_epoll {
    write_file("$failing.new", $_[0]);
    return rename("$failing.new", $failing) || die "$failing: $!\n";
}

sub end_connections {
    return sql("select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'agent supervisor'");
}

# Its supervisor neither ended nor lost anything else.
sub is_unharmed {
    my ($sv, $run, $gate) = @_;
    open_gate($gate);
    wait_status($run, 'success');
    is attempts_of($run), 1, 'the run that was executed during this has one attempt';
    is $sv->stop, 0, 'the supervisor exits with status 0';
    return unlike $sv->log_text, qr/AGT0368/, 'the supervisor did not end by itself';
}

subtest 'a runner whose pipes cannot be watched is not started, and tried again later' => sub {
    my $sv = supervisor(runners => 2);
    $sv->wait_runners(2);
    my $gate = make_gate();
    my $run = $sv->start_run({ do => 'gate', path => $gate });
    my ($executing) = map { $_->[1]{pid} } grep { ref $_->[1] && $_->[1]{pid} } events_of($run);
    fail_epoll('add pipe');
    kill KILL => grep { $_ != $executing } $sv->runner_pids;
    ok $sv->wait_log(qr/AGT0334: a runner of pool default could not be started: .*No space/), 'the reason is logged';
    is_deeply [ $sv->runner_pids ], [$executing], 'no process is started';
    unlink $failing;
    $sv->wait_runners(3);
    wait_status(create_run({ do => 'noop' }), 'success');
    is_unharmed($sv, $run, $gate);
};

for my $case ([ 'add socket', 'No space' ], [ 'change socket', 'Bad file descriptor' ]) {
    my ($what, $reason) = @{$case};
    subtest "a connection to the database whose socket cannot be watched is made again ($what)" => sub {
        my $sv = supervisor();
        $sv->wait_ready;
        my $gate = make_gate();
        my $run = $sv->start_run({ do => 'gate', path => $gate });
        fail_epoll($what);
        end_connections();
        ok $sv->wait_log(qr/AGT0310: cannot connect to the database: its socket cannot be watched: $reason/), 'the reason is logged';
        unlink $failing;
        $sv->wait_log(qr/AGT0312/);
        is_unharmed($sv, $run, $gate);
    };
}

behaviour 'a webhook whose socket cannot be watched is tried again' => sub {
    my $receiver = AgentTest::Receiver->new(200);
    my $sv = start_sender($pg, {}, @PRELOAD);
    my $gate = make_gate();
    my $other = $sv->start_run({ do => 'gate', path => $gate });
    fail_epoll('add socket');
    my $run = hooked_run($sv, $receiver->url);
    wait_failed($run, qr/\Aits socket cannot be watched: No space/);
    unlink $failing;
    wait_delivered($run);
    is_unharmed($sv, $other, $gate);
};

done_testing;
