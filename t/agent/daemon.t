# SPDX-License-Identifier: Apache-2.0
# The start and the end of the supervisor beside httpd's parent.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Env qw(root slurp write_file is_sanitized);
use AgentTest::Process;
use AgentTest::Server;
use AgentTest::Wait;
use File::Temp qw(tempdir);
use Test::More;

my $dir = tempdir('/tmp/agent-test-daemon.XXXXXX', CLEANUP => 1);
chmod 0755, $dir or die "$dir: $!\n";

# The open files of a process, from descriptor 3 on.
sub open_files {
    my ($pid) = @_;
    return grep { defined } map { readlink } grep { !m{/[0-2]\z} } glob "/proc/$pid/fd/*";
}

subtest 'daemon: a piped logger inherits nothing from the supervisor' => sub {
    my $lines = "$dir/log";
    my $server = AgentTest::Server->new(config => AgentTest::Server::shared_config()
            . qq(ErrorLog "|/usr/bin/tee -a $lines"\n));
    $server->start;
    my $client = AgentTest::Client->new(url => $server->url);
    $client->join_run($client->start_run('hello'));
    my $parent = $server->httpd_pid;
    my $loggers = sub { grep { slurp("/proc/$_/cmdline") =~ /\Q$lines\E/ } children_of($parent) };
    my $old = supervisor_pid($parent);
    my ($logger) = $loggers->();
    ok $logger, 'daemon: httpd starts a piped logger';
    $server->graceful;
    wait_for('another logger and supervisor', sub {
        !is_alive($logger) && (supervisor_pid($parent) // $old) != $old && $loggers->()
    });
    ($logger) = $loggers->();
    # The supervisor inherited these from the parent and closed the others.
    my %held = map { $_ => 1 } grep { /\A(?:pipe|socket):/ } open_files(supervisor_pid($parent));
    cmp_ok scalar keys %held, '>', 1, 'daemon: the supervisor has pipes and sockets';
    is_deeply [ grep { $held{$_} } open_files($logger) ], [], 'daemon: a piped logger inherits no descriptor of the supervisor';

    $client->join_run($client->start_run('hello'));
    my @all = ($parent, descendants_of($parent));
    my @executing = (supervisor_pid($parent), runner_pids($parent));
    cmp_ok scalar(@executing), '>=', 2, 'daemon: a supervisor and a runner execute runs';
    kill KILL => $parent, httpd_children($parent);
    wait_for('all processes that httpd had started to end', sub { !grep { is_alive($_) } @all });
    pass 'daemon: supervisor, spawner, runners and logger end when httpd is killed';
    unlink $server->pid_file;
};

sub build_refuse_fork {
    my $library = "$dir/refuse_fork.so";
    system($ENV{CC} // 'cc', qw(-shared -fPIC -Wall -Werror -o), $library,
        root() . '/t/agent/refuse_fork.c') == 0 or die "refuse_fork.c: $?\n";
    return $library;
}

subtest 'daemon: a supervisor that cannot be forked is forked later' => sub {
    plan skip_all => 'httpd is preloaded with a sanitizer' if is_sanitized();
    local $ENV{LD_PRELOAD} = build_refuse_fork();
    local $ENV{AGENT_TEST_REFUSE_FORK} = my $refused = "$dir/refused";
    my $server = AgentTest::Server->new;
    $server->start;
    delete $ENV{LD_PRELOAD};
    my $client = AgentTest::Client->new(url => $server->url);
    my $parent = $server->httpd_pid;
    my $refuse = sub { write_file($refused) };
    my $failures = sub { scalar(() = $server->error_log =~ /AGT0402/g) };

    my $old = wait_for('the supervisor', sub { supervisor_pid($parent) });
    $refuse->();
    kill KILL => $old;
    wait_for('an attempt to fail', $failures);
    my $run = $client->start_run('hello');
    is $client->get_run($run)->{status}, 'pending', 'daemon: runs are accepted while the supervisor cannot be forked';
    unlink $refused;
    $client->join_run($run);
    is $client->get_run($run)->{status}, 'success', 'daemon: runs execute after the supervisor was forked';

    my $before = $failures->();
    $refuse->();
    kill KILL => supervisor_pid($parent);
    wait_for('another attempt to fail', sub { $failures->() > $before });
    # The children cannot be forked either: the MPM waits 10 s between attempts.
    $server->graceful;
    wait_for('an attempt of the next generation',
        sub { $server->error_log =~ /AH00493.*AGT0402/s });
    unlink $refused;
    $run = wait_for('a child', sub { eval { $client->start_run('hello') } });
    $client->join_run($run);
    is $client->get_run($run)->{status}, 'success', 'daemon: a supervisor that cannot be forked at a restart is forked later';
    ok !-e "$refused.group", 'daemon: the process group is never signalled';
};

done_testing;
