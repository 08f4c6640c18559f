# SPDX-License-Identifier: Apache-2.0
# A deployment whose output the database refuses, or crashes at: runs of another one beside it.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Env qw(slurp);
use AgentTest::Wait;
use Test::More;
use TestLarge;
use TestSupervisor;

my $pg = start_cluster();
my @DESK = (deployment => sql("select agent.ensure_deployment('desk')"));

# The supervisor needs the warning of a crash.
sql(q{do $do$ begin execute format('alter database %I set client_min_messages = error', current_database()); end $do$});

# Has the database execute a statement for each line of the deployment of more than 500 bytes.
sub execute_at_lines {
    my ($statement) = @_;
    sql('create or replace function public.at_line() returns trigger language plpgsql security definer as $f$ begin '
        . "if length(new.data) > 500 then $statement; end if; return new; end \$f\$");
    return sql('create or replace trigger at_line before insert on agent.run_events for each row execute function public.at_line()');
}

sub supervisor {
    my $sv = TestSupervisor->start($pg, node => 'faulty', graphs => { agent => {}, 'desk/agent' => {} }, lease_sec => 120,
        timing_ms => patient_timing());
    wait_for('the graphs to be known', sub { poll('select count(*) from agent.graphs') == 2 });
    $sv->wait_runners(2);
    return $sv;
}

sub counted { my ($sv, $id) = @_; return scalar(() = $sv->log_text =~ /$id/g) }

subtest 'lines that the database refuses fail three times together with those of other deployments' => sub {
    my $sv = supervisor();
    execute_at_lines(q{raise exception 'refused'});
    my $gate = make_gate();
    my $other = create_run({ do => 'gate', path => $gate });
    $sv->wake;
    for (1 .. 5) {
        my $run = create_run({ do => 'stream', count => 1, bytes => 700 }, @DESK);
        $sv->wake;
        wait_status($run, 'error');
    }
    is counted($sv, 'AGT0344'), 3, 'three batches are split';
    like $sv->log_text, qr/AGT0390: output of deployment $DESK[1] is saved apart from that of others for 30 s: the database refused it/, 'the log names the deployment';
    open_gate($gate);
    wait_status($other, 'success');
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

sub recoveries { return scalar(() = slurp($pg->host . '/postgres.log') =~ /ready to accept connections/g) }

# The value that the code returns; none while the database is down.
sub if_up {
    my ($code) = @_;
    return eval { local @SIG{qw(__WARN__ __DIE__)} = (sub { }, 'DEFAULT'); $code->() };
}

# Each of its lines crashes it five times: one right after another they would leave no time for others.
subtest 'new runs of a deployment end while those of another one crash the database with each line' => sub {
    my $sv = supervisor();
    execute_at_lines(q{execute $c$copy (select 1) to program 'kill -KILL $PPID'$c$});
    my $before = recoveries();
    create_each(50, { do => 'stream', count => 1, bytes => 700 }, @DESK);
    $sv->wake;
    for (1 .. 6) {
        my $run;
        wait_for('the database to take a run', sub { $run = if_up(sub { create_run({ do => 'noop' }) }) }, 180);
        $sv->wake;
        wait_for('it to end', sub { if_up(sub { sql("select status from agent.runs where run_id = '$run'") eq 'success' }) }, 180);
    }
    pass 'six runs, one after another, succeed';
    cmp_ok recoveries() - $before, '<=', 12, 'the database crashed twelve times at most';
    wait_for('the lines to be harmless', sub { if_up(sub { sql('drop trigger at_line on agent.run_events'); 1 }) }, 180);
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

done_testing;
