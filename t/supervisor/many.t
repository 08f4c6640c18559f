# SPDX-License-Identifier: Apache-2.0
# Many supervisors on one database; many runs through one supervisor.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Env qw(is_sanitized);
use AgentTest::Wait;
use List::Util qw(max min);
use Test::More;
use TestSupervisor;

my $pg = start_cluster();

sub wait_empty {
    my ($seconds) = @_;
    return wait_for('all runs to end', sub { poll('select count(*) from agent.run_queue') == 0 }, $seconds);
}

subtest 'many supervisors: each run is executed once' => sub {
    my @all = map { TestSupervisor->start($pg, node => "node-$_", slots => 20) } 1 .. 10;
    $_->wait_ready for @all;
    # As many runs as the ten supervisors have slots.
    my $gate = make_gate();
    my $held = create_runs(200, { do => 'gate', path => $gate });
    $_->wake for @all;
    wait_for('all slots to be taken', sub { poll('select count(distinct run_id) from agent.run_events where seq = 1') == $held });
    is sql('select count(distinct worker_id) from agent.run_queue'), 10, 'many supervisors: each of the ten executes runs';
    open_gate($gate);
    create_runs(1000, { do => 'step' }) for 1 .. 2;
    $_->wake for @all;
    # One supervisor is killed while runs execute.
    wait_for('some runs to end', sub { poll('select count(*) from agent.usage_events') > 300 });
    $all[0]->stop('KILL');
    $all[0]->launch;
    $all[0]{ended} = 0;
    wait_empty(300);
    is sql("select count(*) from agent.runs where status = 'success'"), 2200, 'all runs succeed';
    is sql('select count(*) from agent.usage_events'), 2200, 'each run ends once';
    is sql("select count(*) from (select run_id from agent.run_events group by run_id "
        . "having max(seq) + 1 <> count(*)) x"), 0, 'no event number is missing or used twice';
    is $_->stop, 0, 'the supervisor exits with status 0' for @all;
};

subtest 'the memory of the supervisor does not grow over 20,000 runs' => sub {
    # A sanitizer keeps what was freed: its memory shows no leak.
    my $rounds = is_sanitized() ? 1 : 20;
    my $sv = TestSupervisor->start($pg);
    $sv->wait_ready;
    my @kb;
    for my $round (1 .. $rounds) {
        create_runs(1000, { do => 'step' });
        $sv->wake;
        wait_empty(300);
        push @kb, $sv->memory;
    }
    note "private memory after each 1,000 runs: @kb KB";
    # The first rounds fill the free lists. A round may need more memory than
    # others, 200 KB of which are kept; a leak shows in all later rounds. There are
    # 10,000 runs between the first quarter and the last one.
    my ($first, $last) = (max(@kb[ 0 .. @kb / 4 ]), min(@kb[ -@kb / 4 .. -1 ]));
    cmp_ok $last, '<=', $first + 384, 'private memory grows by less than 40 bytes a run' if !is_sanitized();
    is sql("select count(*) from agent.runs where status <> 'success'"), 0, 'all runs succeed';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

done_testing;
