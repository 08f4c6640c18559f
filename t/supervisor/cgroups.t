# SPDX-License-Identifier: Apache-2.0
# The cgroups (v2) of pools: each pool with a runner has one, which limits all its processes and is removed
# after its last runner. Needs a cgroup v2 file system in which the user of the tests can make directories.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Cgroup;
use AgentTest::Env qw(slurp write_file);
use AgentTest::Process qw(is_alive);
use AgentTest::Wait;
use Test::More;
use TestSupervisor;

my $cgroup = AgentTest::Cgroup->new or plan skip_all => AgentTest::Cgroup::why_not();
my $dir = $cgroup->dir;
my $pg = start_cluster();
my @DESK = (deployment => sql("select agent.ensure_deployment('desk')"));

sub supervisor {
    my (%config) = @_;
    # Runs of the subtest before.
    sql('delete from agent.run_queue');
    my $sv = TestSupervisor->start($pg, node => 'cgroups', cgroup => $dir, timing_ms => fast_timing(),
        graphs => { agent => {}, 'desk/agent' => {} }, %config);
    $sv->wait_runners(2);
    return $sv;
}

sub data_of { return (events_of($_[0]))[1][1] }

subtest 'the processes of each pool are in a cgroup of their own' => sub {
    my $sv = supervisor();
    my $run = $sv->start_run({ do => 'child' });
    my $desk = $sv->start_run({ do => 'hang' }, @DESK);
    my $spawner = $sv->spawner_pid;
    like $cgroup->of(data_of($run)->{pid}), qr/\Aagent-$spawner-\d-default\z/, 'cgroups: a process that a runner has started is in that of its pool';
    like $cgroup->of(data_of($desk)->{pid}), qr/\Aagent-$spawner-\d-desk\z/, 'cgroups: a runner of another pool is in another one';
    is $cgroup->of($spawner), undef, 'cgroups: the spawner is in none of the pools';
    is $cgroup->of($sv->pid), undef, 'cgroups: the supervisor is in none of the pools';
    is $sv->stop, 0, 'cgroups: the supervisor exits with status 0';
    is_deeply [ $cgroup->children ], [], 'cgroups: all are removed when the supervisor ends';
    unlike $sv->log_text, qr/AGT0357/, 'cgroups: no failure is logged';
};

subtest 'a pool without a process has no cgroup, and what its runners left is killed' => sub {
    my $sv = supervisor(pools => { default => { runner_idle_ms => 1000 } });
    my $run = $sv->start_run({ do => 'child', session => 1 });
    my $left = data_of($run)->{pid};
    my $name = $cgroup->of($left);
    kill KILL => (grep { $cgroup->of($_) eq $name } $sv->runner_pids)[0];
    $sv->cancel($run);
    wait_final($run);
    wait_for('the process that a runner left to end', sub { !is_alive($left) });
    wait_for('the cgroup to be removed', sub { !grep { $_ eq $name } $cgroup->children });
    is scalar(() = $cgroup->children), 1, 'cgroups: that of a pool with a runner stays when another one is removed';
    wait_status(create_run({ do => 'noop' }), 'success');
    unlike $sv->log_text, qr/AGT0357/, 'cgroups: the next run of a pool without one makes it again';
    is $sv->stop, 0, 'cgroups: the supervisor exits with status 0';
};

subtest 'cgroups of a spawner that was killed are removed at the next start' => sub {
    my $sv = supervisor();
    my $run = $sv->start_run({ do => 'child', session => 1 });
    my $left = data_of($run)->{pid};
    kill KILL => $sv->spawner_pid;
    $sv->wait_exit;
    is scalar(() = $cgroup->children), 2, 'killed spawner: its cgroups stay';
    is supervisor()->stop, 0, 'killed spawner: the next supervisor starts and ends';
    wait_for('the process that a runner left to end', sub { !is_alive($left) });
    # It may have ended after that start.
    my $next = supervisor();
    my $spawner = $next->spawner_pid;
    is_deeply [ grep { !/\Aagent-$spawner-/ } $cgroup->children ], [], 'killed spawner: the next supervisor removes the cgroups without processes';
    is $next->stop, 0, 'cgroups: the supervisor exits with status 0';
};

subtest 'runs are executed where no cgroup can be made' => sub {
    write_file("$dir/cgroup.max.descendants", '0');
    my $sv = supervisor();
    wait_all_final('success', create_run({ do => 'noop' }), create_run({ do => 'noop' }, @DESK));
    ok $sv->wait_log(qr/AGT0357: runner \d+ could not be moved into the cgroup of pool $_: /), "no cgroup: the failure to make one of $_ is logged" for qw(default desk);
    is_deeply [ $cgroup->children ], [], 'no cgroup: none is left';
    write_file("$dir/cgroup.max.descendants", 'max');
    kill KILL => $sv->runner_pids;
    $sv->wait_runners(4);
    is scalar(() = $cgroup->children), 2, 'no cgroup: later runners have one again';
    is $sv->stop, 0, 'cgroups: the supervisor exits with status 0';
};

subtest 'a cgroup limits the pool' => sub {
    plan skip_all => "the cgroup v2 of this machine has no controller memory, pids, cpu, but '@{[ $cgroup->controllers ]}'"
        if 3 != grep { /\A(?:memory|pids|cpu)\z/ } $cgroup->controllers;
    $cgroup->enable(qw(memory pids cpu));
    my $sv = supervisor(cgroup_memory => 1 << 30, pools => { desk => { cgroup_processes => 500, cgroup_cpu_percent => 150 } });
    my %limits;
    for my $name ($cgroup->children) {
        $limits{ $name =~ s/.*-//r } = [ map { slurp("$dir/$name/$_") =~ s/\n\z//r } qw(memory.max pids.max cpu.max) ];
    }
    is_deeply \%limits, { default => [ 1 << 30, 'max', 'max 100000' ], desk => [ 1 << 30, 500, '150000 100000' ] },
        'limits: a cgroup has the values of its deployment';
    is $sv->stop, 0, 'cgroups: the supervisor exits with status 0';
};

undef $cgroup;
done_testing;
