# SPDX-License-Identifier: Apache-2.0
# The directives of runners: a deployment has those of the virtual host that declares
# its graphs, and the main server's where the host has none.
use strict;
use warnings;
use AgentTest::Cgroup;
use AgentTest::Client;
use AgentTest::Env qw(free_port is_root is_sanitized slurp);
use AgentTest::Process qw(runner_pids);
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

my ($shop, $desk) = (free_port(), free_port());
my ($shared_user, $own_user) = is_root() ? map { "AgentRunnerUser $_" } qw(nobody daemon) : ('', '');
my $cgroup = AgentTest::Cgroup->new;
my $has_cgroup = $cgroup ? 'AgentRunnerCgroup ' . $cgroup->dir : '';
my $server = AgentTest::Server->new(config => <<"CONF");
AgentRunner "\${BUILD_DIR}/agent-runner"
AgentRunnerFiles 200
AgentRunnerMemory 256M
AgentRunnerSlots 7
$has_cgroup
$shared_user
<Location "/">
    SetHandler agent
</Location>
Listen 127.0.0.1:$shop
<VirtualHost 127.0.0.1:$shop>
    AgentDeployment shop
    AgentRunners 2
    AgentRunnerSlots 3
    AgentRunnerFiles 100
    AgentRunnerMemory 512M
    AgentRunnerProcesses 5000
    AgentRunTimeout 1
    $own_user
    <AgentGraph agent>
        AgentModel demo
    </AgentGraph>
</VirtualHost>
Listen 127.0.0.1:$desk
<VirtualHost 127.0.0.1:$desk>
    AgentDeployment desk
    AgentRunnerIdleTime 1s
    <AgentGraph agent>
        AgentModel demo
    </AgentGraph>
</VirtualHost>
CONF
$server->start;

# Runners that became ready: [pid, slots] of each.
sub ready {
    my ($deployment) = @_;
    my $log = $server->error_log;
    my @runners;
    while ($log =~ /runner (\d+) of pool $deployment is ready for (\d+) runs/g) {
        push @runners, [ $1, $2 ];
    }
    return @runners;
}

sub limit_of {
    my ($pid, $name) = @_;
    return (slurp("/proc/$pid/limits") =~ /^\Q$name\E\s+(\S+)/m)[0];
}

# Of a process of each; that of desk ends when it is idle.
wait_for('the runners', sub { ready('shop') == 2 && ready('desk') == 1 });
is_deeply [ map { $_->[1] } ready('shop') ], [ 3, 3 ], 'pools: AgentRunners and AgentRunnerSlots are those of the host';
is ((ready('desk'))[0][1], 7, 'pools: a host without AgentRunnerSlots has those of the main server');
my $pid = (ready('shop'))[0][0];
is limit_of($pid, 'Max open files'), 100, 'pools: AgentRunnerFiles is that of the host';
is limit_of($pid, 'Max processes'), 5000, 'pools: AgentRunnerProcesses is that of the host';

my $client = AgentTest::Client->new(url => "http://127.0.0.1:$desk");
wait_for('the runner to end', sub { 2 == runner_pids($server->httpd_pid) });
like $server->error_log, qr/AGT0356: the runners of pool desk end/, 'pools: a deployment has no process after its AgentRunnerIdleTime';
my $active = $client->start_run('sleep 600000');
wait_for('its next runner', sub { ready('desk') == 2 });
pass 'pools: its next run starts a process';
my $other = (ready('desk'))[1][0];
is limit_of($other, 'Max open files'), 200, 'pools: a host without AgentRunnerFiles has that of the main server';
isnt limit_of($other, 'Max processes'), 5000, 'pools: a directive of one host has no effect on another';

SKIP: {
    skip AgentTest::Cgroup::why_not(), 2 if !$cgroup;
    like $cgroup->of($pid), qr/\Aagent-\d+-\d+-shop\z/, 'pools: runners are in the cgroup of their deployment';
    like $cgroup->of($other), qr/\Aagent-\d+-\d+-desk\z/, 'pools: runners of another deployment are in another one';
}

SKIP: {
    skip 'sanitizers reserve more memory', 2 if is_sanitized();
    is limit_of($pid, 'Max data size'), 512 << 20, 'pools: AgentRunnerMemory is that of the host';
    is limit_of($other, 'Max data size'), 256 << 20, 'pools: a host without AgentRunnerMemory has that of the main server';
}

SKIP: {
    skip 'runners have a user of their own where httpd is started by root', 2 if !is_root();
    my ($own, $shared) = map { (slurp("/proc/$_/status") =~ /^Uid:\s+(\d+)/m)[0] } $pid, $other;
    is $own, scalar getpwnam('daemon'), 'pools: AgentRunnerUser is that of the host';
    is $shared, scalar getpwnam('nobody'), 'pools: a host without AgentRunnerUser has that of the main server';
}

my $brief = AgentTest::Client->new(url => "http://127.0.0.1:$shop");
my $timed = $brief->create_run($brief->new_thread, 'sleep 600000');
wait_for('its time limit', sub { $brief->get_run($timed)->{status} eq 'timeout' });
pass 'pools: AgentRunTimeout is that of the host';
isnt $client->get_run($active)->{status}, 'timeout', 'pools: a host without AgentRunTimeout has that of the main server';

$client->post("/threads/$active->{thread_id}/runs/$active->{run_id}/cancel?wait=true");
undef $server;
is_deeply [ $cgroup->children ], [], 'pools: cgroups are removed when the server ends' if $cgroup;
undef $cgroup;
done_testing;
