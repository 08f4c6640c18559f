# SPDX-License-Identifier: Apache-2.0
# Pools: each deployment has runners of its own, which know its graphs only; its runs take no slots of another
# deployment, and a runner that dies takes none of its runs with it.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Env qw(build_dir is_sanitized root write_file);
use AgentTest::Process ();
use AgentTest::Wait;
use File::Temp qw(tempdir);
use Test::More;
use TestSupervisor;

my $pg = start_cluster();
my @DESK = (deployment => sql("select agent.ensure_deployment('desk')"));

sub supervisor {
    my (%config) = @_;
    # Runs of the subtest before.
    sql('delete from agent.run_queue');
    my $graphs = { agent => { key => 'of-default' }, only => {}, 'desk/agent' => { key => 'of-desk' } };
    my $sv = TestSupervisor->start($pg, node => 'pools', graphs => $graphs, timing_ms => fast_timing(), %config);
    wait_for('the graphs to be known', sub { poll('select count(*) from agent.graphs') == 3 });
    $sv->wait_runners(2);
    return $sv;
}

# The data of a run's first event of the graph.
sub data_of { return (events_of($_[0]))[1][1] }

subtest 'a runner is told the graphs and keys of its own deployment only' => sub {
    my $sv = supervisor();
    my $default = create_run({ do => 'graphs' });
    my $desk = create_run({ do => 'graphs' }, @DESK);
    $sv->wake;
    wait_all_final('success', $default, $desk);
    is_deeply data_of($default), { agent => { key => 'of-default' }, only => {} }, 'one runner knows the graphs of default';
    is_deeply data_of($desk), { agent => { key => 'of-desk' } }, 'the other one knows that of desk';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a deployment whose slots are all taken delays no other one' => sub {
    my ($gate, $own) = (make_gate(), make_gate());
    my $sv = supervisor(slots => 2, pools => { desk => { slots => 3 } });
    my $leased = "select count(*) from agent.run_queue where state = 'leased'";
    my @busy = create_each(60, { do => 'gate', path => $gate });
    $sv->wake;
    wait_for('its slots to be taken', sub { poll($leased) == 2 });
    my @desk = create_each(4, { do => 'gate', path => $own }, @DESK);
    $sv->wake;
    wait_events('the runs of the other one to begin', 2, @desk[0 .. 2]);
    is sql($leased), 5, 'each has the slots that it is configured for';
    open_gate($own);
    wait_for('its last run to begin', sub { events_of($desk[3]) >= 2 });
    open_gate($own);
    wait_all_final('success', @desk);
    wait_all_final('success', create_each(20, { do => 'noop' }, @DESK));
    is sql($leased), 2, 'the first one still has its own slots';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'the death of a runner affects no run of another deployment' => sub {
    my $sv = supervisor();
    my $default = $sv->start_run({ do => 'hang' });
    my $desk = $sv->start_run({ do => 'hang' }, @DESK);
    isnt data_of($desk)->{pid}, data_of($default)->{pid}, 'two processes execute the runs';
    kill KILL => data_of($default)->{pid};
    wait_for('the run to be executed again', sub { 2 == poll("select epoch from agent.run_queue where run_id = '$default'") });
    $sv->wait_runners(3);
    wait_events('the second attempt to begin', 4, $default);
    is sql("select epoch || ' ' || state from agent.run_queue where run_id = '$desk'"), '1 leased', 'the run of the other one goes on';
    is scalar(events_of($desk)), 2, 'it is not interrupted';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'runners that cannot be started are logged for each deployment' => sub {
    plan skip_all => 'a sanitizer is preloaded' if is_sanitized();
    my $dir = tempdir(CLEANUP => 1);
    my ($library, $refused) = map { "$dir/$_" } qw(refuse_fork.so refused);
    system($ENV{CC} // 'cc', qw(-shared -fPIC -o), $library, root() . '/t/agent/refuse_fork.c') == 0 or die "refuse_fork.c: $?\n";
    my $sv = supervisor(within => [ 'env', "LD_PRELOAD=$library", "AGENT_TEST_REFUSE_FORK=$refused" ],
        # The user of the test may lower its limits.
        uid => -1);
    my $end_runners = sub { kill KILL => $sv->runner_pids };
    write_file($refused);
    $end_runners->();
    ok $sv->wait_log(qr/AGT0336: the spawner could not start a runner of pool $_: /), "a runner of $_ that the spawner refuses is logged" for qw(default desk);
    unlink $refused;
    wait_for('its replacement', sub { $sv->runner_pids == 2 });
    my $limit_files = sub { system('prlimit', '--pid', $sv->pid, "--nofile=$_[0]:") == 0 or die "prlimit: $?\n" };
    # Its open ones stay open.
    $limit_files->(3);
    $end_runners->();
    ok $sv->wait_log(qr/AGT0334: a runner of pool $_ could not be started: /), "a runner of $_ for which the supervisor has no descriptors is logged"
        for qw(default desk);
    $limit_files->(1024);
    wait_for('its replacement', sub { $sv->runner_pids == 2 });
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a runner is refused at once if the spawner has too few descriptors for it' => sub {
    plan skip_all => 'a sanitizer is preloaded' if is_sanitized();
    my $sv = supervisor(uid => -1, graphs => { 'desk/agent' => {} }, runners => 2);
    my $spawner = $sv->spawner_pid;
    my $descriptors = sub { scalar(() = glob "/proc/$spawner/fd/*") };
    my $limit_files = sub { system('prlimit', '--pid', $spawner, "--nofile=$_[0]:") == 0 or die "prlimit: $?\n" };
    my $before = $descriptors->();
    $limit_files->($before + 1);
    kill KILL => ($sv->runner_pids)[0];
    ok $sv->wait_log(qr/AGT0336: the spawner could not start a runner of pool desk: /), 'it answers a request of which it got one of three';
    wait_for('it to close the one', sub { $descriptors->() == $before });
    $limit_files->(1024);
    wait_for('its replacement', sub { $sv->runner_pids == 2 });
    wait_all_final('success', create_run({ do => 'noop' }, @DESK));
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a deployment whose runners cannot start delays no other one' => sub {
    my $sv = TestSupervisor->start($pg, node => 'pools', timing_ms => fast_timing(),
        graphs => { agent => { start => 'exit' }, 'desk/agent' => {} });
    $sv->wait_log(qr/AGT0337: 4 runners in a row ended .*\(pool \S/);
    wait_all_final('success', create_each(3, { do => 'noop' }, @DESK));
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'the log names each pool whose runners end at their start' => sub {
    my $sv = TestSupervisor->start($pg, node => 'pools', timing_ms => fast_timing(),
        graphs => { agent => { start => 'exit' }, 'desk/agent' => { start => 'exit' } });
    for my $pool (qw(default desk)) {
        ok $sv->wait_log(qr/AGT0337: \d+ runners in a row ended right after their start \(pool $pool\)/), "the failures of $pool";
        like $sv->log_text, qr/AGT0331: runner \d+ ended \(.*\) with 0 runs \(pool $pool\)/, "the end of a runner of $pool";
        like $sv->log_text, qr/AGT0347: runner \d+ \(pool $pool, 0 runs\): cannot start/, "its output";
    }
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'runners of a deployment without runs end, and its next run starts them again' => sub {
    my $sv = supervisor(runners => 2, pools => { default => { runner_idle_ms => 1000 }, desk => { runner_idle_ms => 3000 } });
    $sv->wait_runners(4);
    my $desk = $sv->start_run({ do => 'hang' }, @DESK);
    $sv->wait_log(qr/AGT0356/);
    wait_for('its processes to end', sub { 2 == $sv->runner_pids });
    ok scalar(grep { $_ == data_of($desk)->{pid} } $sv->runner_pids), 'the runners of the other one go on';
    my $run = $sv->start_run({ do => 'hang' });
    is sql("select epoch from agent.run_queue where run_id = '$run'"), 1, 'the run was claimed once, when a runner was ready';
    $sv->wait_runners(6);
    is scalar($sv->runner_pids), 4, 'it has all its processes again';
    # The other one's idle time is longer.
    $sv->cancel($desk);
    wait_for('the processes of the other one to end', sub { 2 == $sv->runner_pids });
    ok scalar(grep { $_ == data_of($run)->{pid} } $sv->runner_pids), 'runners do not end while one executes a run';
    unlike $sv->log_text, qr/AGT0331.*signal|AGT0337/, 'the end of runners is not a failure';
    $sv->cancel($run);
    wait_status($run, 'interrupted');
    wait_for('all processes to end', sub { 0 == $sv->runner_pids });
    wait_all_final('success', create_run({ do => 'noop' }), create_run({ do => 'noop' }, @DESK));
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'each deployment has its own limits, folder and environment' => sub {
    my $sv = supervisor(runner_files => 200, pools => { desk => { runner_files => 100, runner_processes => 5000,
        directory => '/tmp', environment => ['DESK_MODE=test'] } });
    my $default = create_run({ do => 'report' });
    my $desk = create_run({ do => 'report' }, @DESK);
    $sv->wake;
    wait_all_final('success', $default, $desk);
    my ($shared, $own) = map { data_of($_) } $default, $desk;
    is $shared->{files}, 200, 'open files of a runner are limited';
    is $own->{files}, 100, 'they are limited for each deployment';
    is $own->{processes}, 5000, 'processes of its user are limited';
    isnt $shared->{processes}, 5000, 'without the setting they are not';
    is_deeply [ $shared->{cwd_is_root}, $own->{cwd_is_root} ], [ 1, 0 ], 'a runner works in the folder of its deployment';
    ok scalar(grep { $_ eq 'DESK_MODE' } @{ $own->{env} }), 'a runner has the variables of its deployment';
    ok !grep({ $_ eq 'DESK_MODE' } @{ $shared->{env} }), 'it has none of another deployment';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'deployments may have different programs' => sub {
    my $model = { provider => 'demo', name => undef, url => undef, key => undef, timeout_ms => 1000, max_tokens => 0 };
    my $sv = TestSupervisor->start($pg, node => 'pools', timing_ms => fast_timing(),
        pools => { desk => { runner => build_dir() . '/agent-runner' } },
        graphs => { agent => {}, 'desk/agent' => { kind => 'builtin', model => $model, system_prompt => undef,
            max_steps => 5, tools => [] } });
    $sv->wait_runners(2);
    my $scripted = create_run({ do => 'noop' });
    my $builtin = create_run({ messages => [ { role => 'user', content => 'Hello' } ] }, @DESK);
    $sv->wake;
    wait_all_final('success', $scripted, $builtin);
    my $language = "select runtime ->> 'language' from agent.graphs where deployment_id = '$DESK[1]'";
    wait_for('the report of the built-in program', sub { poll($language) eq 'C' });
    pass 'the built-in program executed the run of one';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'quarantined runs and delayed runs start the runners of a deployment again, too' => sub {
    my $sv = supervisor(pools => { default => { runner_idle_ms => 1000 } });
    wait_for('its process to end', sub { 1 == $sv->runner_pids });
    my $late = create_run({ do => 'noop' }, request => { after_seconds => 1 });
    wait_status($late, 'success');
    wait_for('its process to end again', sub { 1 == $sv->runner_pids });
    my $quarantined = create_run({ do => 'noop' }, request => { after_seconds => 3600 });
    sql("update agent.run_queue set max_shared = 1, not_before = null where run_id = '$quarantined'");
    wait_status($quarantined, 'success');
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

# Records which deployments each claim asks for.
sub record_claims {
    sql('create table agent.claims (claim_id serial, deployment_ids uuid[])');
    wrap_function('claim_runs', 'insert into agent.claims (deployment_ids) select array(select distinct unnest($2))');
    return;
}

my $FOR_DESK = "select count(*) from agent.claims where deployment_ids = array['$DESK[1]'::uuid]";

# Stops the supervisor, sends it datagrams for the deployment, and continues it.
sub wake_often {
    my ($sv, $count) = @_;
    $sv->signal('STOP');
    wait_for('the supervisor to be stopped', sub { AgentTest::Process::stat_of($sv->pid)->{state} eq 'T' });
    my $claims = sql('select count(*) from agent.claims');
    $sv->wake("R$DESK[1]") for 1 .. $count;
    $sv->signal('CONT');
    wait_for('claims', sub { poll('select count(*) from agent.claims') > $claims + 1 });
    return;
}

subtest 'a wake-up of a deployment makes a claim for its runs only' => sub {
    record_claims();
    my $sv = supervisor();
    # The claims when each of the runners became ready are over then.
    wait_for('a claim for all', sub { poll('select count(*) from agent.claims where cardinality(deployment_ids) = 2') > 0 });
    sql('delete from agent.claims');
    wait_for('claims', sub { $sv->wake("R$DESK[1]"); poll($FOR_DESK) > 0 || poll('select count(*) from agent.claims') > 30 });
    cmp_ok sql($FOR_DESK), '>', 0, 'a claim asks for its runs only';
    wait_all_final('success', create_run({ do => 'noop' }), create_run({ do => 'noop' }, @DESK));
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'after many wake-ups without a pause, of which some may be lost, runs of all deployments are claimed' => sub {
    my $sv = supervisor();
    wake_often($sv, 1);
    sql('delete from agent.claims');
    wake_often($sv, 8) for 1 .. 5;
    is sql($FOR_DESK), 0, 'no claim is for the runs of one only';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

done_testing;
