# SPDX-License-Identifier: Apache-2.0
# Graphs that runners report: they are stored once, and a runner gets runs of the graphs that it reported only.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Wait;
use File::Temp qw(tempdir);
use Test::More;
use TestSupervisor;

my $pg = start_cluster();
my %SHOWN = (description => 'talks', schemas => { input_schema => { type => 'object' } },
    drawing => { nodes => [ { id => 'a' } ], edges => [] });

sub supervisor {
    my ($node, $graphs, %config) = @_;
    return TestSupervisor->start($pg, node => $node, graphs => $graphs, timing_ms => fast_timing(), %config);
}

sub stored { return sql("select $_[1] from agent.graphs where graph_id = '$_[0]'") }

sub wait_stored {
    my ($graph, $condition) = @_;
    return wait_for("$graph to be stored", sub { (stored($graph, $condition // 'true') // '') eq 't' });
}

subtest 'reported graphs are stored with their system assistants' => sub {
    my $sv = supervisor('a', { shown => { ready => \%SHOWN }, bare => {} });
    wait_stored($_) for qw(shown bare);
    is stored('shown', 'description'), 'talks', 'the description is stored';
    is stored('shown', "schemas -> 'input_schema' ->> 'type'"), 'object', 'the schemas are stored';
    is stored('shown', "drawing -> 'nodes' -> 0 ->> 'id'"), 'a', 'the drawing is stored';
    is stored('shown', "runtime ->> 'language'"), 'c', 'the runtime of the runner is stored';
    is stored('bare', 'schemas is null and drawing is null'), 't', 'a graph without a description is stored too';
    is sql("select string_agg(name || ' ' || (metadata ->> 'created_by') || ' ' || version, ', ' order by name)
        from agent.assistants"), 'bare system 1, shown system 1', 'each has a system assistant';
    is sql("select assistant_id from agent.assistants where name = 'shown'"),
        sql("select assistant_id from agent.assistants where name = 'shown' and graph_id = 'shown'"), 'the assistant names its graph';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'the same report of a later supervisor changes only its worker, that of later runners nothing' => sub {
    my ($before, $worker) = map { stored('shown', $_) } qw(reported_at worker_id);
    my $sv = supervisor('a', { shown => { ready => \%SHOWN }, fresh => {} });
    wait_stored('shown', "worker_id > $worker");
    is stored('shown', 'reported_at'), $before, 'the report is the one of before';
    is $sv->stop, 0, 'the supervisor exits with status 0';
    $worker = stored('shown', 'worker_id');
    $sv = supervisor('a', { shown => { ready => \%SHOWN }, other => {} }, runners => 3);
    wait_stored('shown', "worker_id > $worker");
    $before = stored('shown', 'xmin');
    $sv->wait_runners(3);
    wait_stored('other');
    is stored('shown', 'xmin'), $before, 'the row is unchanged';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a changed report is stored' => sub {
    my $sv = supervisor('a', { shown => { ready => { error => { error => 'ImportError', message => 'no module' } } }, agent => {} });
    wait_stored('shown', 'error is not null');
    is stored('shown', "error ->> 'message'"), 'no module', 'the error of a graph that cannot be loaded is stored';
    my $run = create_run({ do => 'noop' }, graph => 'shown');
    $sv->wake;
    ok wait_final($run), 'its runs are given to the runner, which ends them';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'reports are stored again in a database that does not know the worker' => sub {
    my $sv = supervisor('a', { shown => { ready => \%SHOWN } });
    wait_stored('shown', 'drawing is not null');
    # As after the restoration of an older backup.
    sql('delete from agent.assistants; delete from agent.graphs; delete from agent.workers');
    wait_stored('shown');
    is sql("select count(*) from agent.assistants where name = 'shown'"), 1, 'the system assistant is made again';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'two supervisors on one database report at the same time' => sub {
    my %graphs = map { ("both$_" => { ready => \%SHOWN }) } 1 .. 20;
    my @sv = map { supervisor($_, \%graphs) } qw(a b);
    wait_stored("both$_") for 1 .. 20;
    $_->wait_ready for @sv;
    is sql("select count(*) from agent.assistants where name like 'both%'"), 20, 'each graph has one assistant';
    is $_->stop, 0, 'the supervisor exits with status 0' for @sv;
    unlike $_->log_text, qr/AGT0310|AGT0355/, 'no statement failed' for @sv;
};

subtest 'a runner gets runs of the graphs that it reported only' => sub {
    my $dir = tempdir(CLEANUP => 1);
    chmod 0777, $dir;
    my $gate = make_gate();
    my $sv = supervisor('a', { agent => {}, rare => { first => "$dir/rare" } }, runners => 2, slots => 2);
    $sv->wait_runners(2);
    my @rare = create_each(4, { do => 'gate', path => $gate }, graph => 'rare');
    my $held = 'select count(*) from agent.run_queue where graph_id = \'rare\' and state = \'leased\'';
    wait_for('two of them to execute', sub { poll($held) == 2 });
    my @agents = create_each(6, { do => 'noop' });
    wait_all_final('success', @agents);
    is sql($held), 2, 'the slots of the other runner stay free for other graphs';
    open_gate($gate);
    wait_for('the others to execute', sub { 2 == grep { status_of($_) eq 'pending' && events_of($_) >= 2 } @rare });
    open_gate($gate);
    wait_all_final('success', @rare);
    my %pids = map { ((events_of($_))[1][1]{pid} => 1) } @rare;
    is scalar keys %pids, 1, 'one runner executed all of them';
    kill KILL => keys %pids;
    $sv->wait_runners(3);
    my $waiting = create_run({ do => 'noop' }, graph => 'rare');
    wait_all_final('success', create_each(6, { do => 'noop' }));
    is sql("select epoch from agent.run_queue where run_id = '$waiting'"), 0, 'without a runner for it a run is not claimed';
    unlink "$dir/rare";
    kill KILL => ($sv->runner_pids)[0];
    wait_status($waiting, 'success');
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

my %import_of = (import_exits => 'the runner process ended unexpectedly', import_blocks => 'the runner did not become ready');
for my $start (sort keys %import_of) {
    subtest "a graph whose import ends its runner takes no other graph with it: $start" => sub {
        my %early = $start eq 'import_blocks' ? (timing_ms => { %{ fast_timing() }, ready_timeout => 1000 }) : ();
        my $sv = supervisor('a', { good => {}, bad => { start => $start }, worse => { start => $start } }, %early);
        ok $sv->wait_log(qr/AGT0376: runner \d+ of pool default ended while it imported graph bad \(\Q$import_of{$start}\E\): the graph is not imported again/), 'the log names the graph';
        wait_stored($_) for qw(good bad worse);
        is stored('good', 'error'), undef, 'another graph of its program is reported';
        for my $graph (qw(bad worse)) {
            is stored($graph, "error ->> 'error'"), 'GraphImportError', "the graph $graph is reported with an error";
            like stored($graph, "error ->> 'message'"), qr/\ATwo processes in a row have ended .*: \Q$import_of{$start}\E\. /, 'the error of the graph says why';
            my $run = create_run({ do => 'noop' }, graph => $graph);
            $sv->wake;
            wait_status($run, 'error');
        }
        wait_all_final('success', create_run({ do => 'noop' }, graph => 'good'));
        is scalar(() = $sv->log_text =~ /AGT0376/g), 4, 'each has ended two runners';
        kill KILL => $sv->runner_pids;
        $sv->wait_runners(2);
        wait_all_final('success', create_run({ do => 'noop' }, graph => 'good'));
        is scalar(() = $sv->log_text =~ /AGT0376/g), 4, 'later runners do not import it';
        is $sv->stop, 0, 'the supervisor exits with status 0';
        sql('delete from agent.assistants; delete from agent.graphs');
    };
}

subtest 'a graph whose import has ended two runners is imported again later, by each runner' => sub {
    my $dir = tempdir(CLEANUP => 1);
    chmod 0755, $dir;
    my $sv = supervisor('a', { good => {}, late => { start => 'import_exits', until => "$dir/repaired" } }, runners => 2,
        timing_ms => { %{ fast_timing() }, import_pause => 1000 });
    wait_for('its import to fail twice', sub { 2 <= (() = $sv->log_text =~ /AGT0376: .*: the graph is not imported again/g) });
    is stored('late', "error ->> 'error'"), 'GraphImportError', 'the graph is reported with an error';
    wait_all_final('success', create_run({ do => 'noop' }, graph => 'good'));
    open my $file, '>', "$dir/repaired" or die "$dir/repaired: $!\n";
    close $file;
    wait_stored('late', 'error is null');
    wait_for('both runners to have it', sub {
        my @runs = create_each(4, { do => 'noop' }, graph => 'late');
        wait_final($_) for @runs;
        return 4 == grep { status_of($_) eq 'success' } @runs;
    });
    pass 'its runs succeed in both runners';
    is $sv->stop, 0, 'the supervisor exits with status 0';
    sql('delete from agent.assistants; delete from agent.graphs');
};

subtest 'graphs whose imports fail for ever keep no other graph from being served' => sub {
    my $sv = supervisor('a', { good => {}, map { ("bad$_" => { start => 'import_exits' }) } 1, 2 },
        timing_ms => { %{ fast_timing() }, import_pause => 1 });
    wait_all_final('success', create_run({ do => 'noop' }, graph => 'good'));
    my ($served) = $sv->log_text =~ /AGT0330: runner (\d+)/;
    wait_for('their imports to fail again', sub { 6 <= (() = $sv->log_text =~ /AGT0376/g) });
    is scalar(() = $sv->log_text =~ /AGT0330/g), 1, 'the runner that serves the other graph is kept';
    kill KILL => $served;
    my $run = create_run({ do => 'noop' }, graph => 'good');
    $sv->wake;
    wait_status($run, 'success');
    is $sv->stop, 0, 'the supervisor exits with status 0';
    sql('delete from agent.assistants; delete from agent.graphs');
};

sub stored_failing { return poll("select count(*) from agent.workers where state = 'live' and failing_graph_ids = '{shared}'") }

subtest 'runs of a program that does not start end in error' => sub {
    my $sv = supervisor('a', { shared => { start => 'exit' } });
    my @early = create_each(2, { do => 'noop' }, graph => 'shared');
    wait_status($_, 'error') for @early;
    is error_of($early[0]), 'RunnerStartError', 'the error has a name';
    like run_field($early[0], "error->>'message'"), qr/\ANo process of the program of the graph starts \((?:exit status 3|the runner process ended unexpectedly)\)/, 'the error of the graph says why';
    ok $sv->wait_log(qr/AGT0377: run $early[0] ends in error: no runner of pool default starts/), 'the log names the run';
    my $quarantined = create_run({ do => 'noop' }, graph => 'shared', request => { after_seconds => 3600 });
    sql("update agent.run_queue set max_shared = 1, not_before = null where run_id = '$quarantined'");
    $sv->wake;
    wait_status($quarantined, 'error');
    is attempts_of($quarantined), 1, 'a quarantined run ends too, at its first attempt';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'runs of a program that does not start here wait for a worker where it does' => sub {
    my $gate = make_gate();
    my $works = supervisor('b', { shared => {} }, slots => 1);
    $works->wait_runners(1);
    my @runs = create_each(2, { do => 'gate', path => $gate }, graph => 'shared');
    $works->wake;
    count_calls('report_failing_graphs');
    my $fails = supervisor('a', { shared => { start => 'exit' } });
    wait_for('the graph to be reported twice', sub { calls_of('report_failing_graphs') >= 2 });
    is stored_failing(), 1, 'one worker has reported that it cannot execute the graph';
    for (1 .. 2) {
        wait_for('a run to execute', sub { grep { status_of($_) eq 'pending' && events_of($_) >= 2 } @runs });
        open_gate($gate);
        wait_for('it to end', sub { grep { status_of($_) ne 'pending' } @runs });
        @runs = grep { status_of($_) ne 'success' } @runs;
    }
    is scalar(@runs), 0, 'both runs succeed';
    is $works->stop, 0, 'the supervisor exits with status 0';
    my $late = create_run({ do => 'noop' }, graph => 'shared');
    wait_status($late, 'error');
    pass 'without that worker they end in error';
    is $fails->stop, 0, 'the supervisor exits with status 0';
};

subtest 'runs of a program that starts nowhere end in error' => sub {
    my @sv = map { supervisor($_, { shared => { start => 'exit' } }) } qw(a b);
    wait_for('both to report it', sub { stored_failing() == 2 });
    my $run = create_run({ do => 'noop' }, graph => 'shared');
    wait_status($run, 'error');
    pass 'the run ends';
    is $_->stop, 0, 'the supervisor exits with status 0' for @sv;
};

subtest 'a runner that reports no graph is logged, and gets no runs' => sub {
    my $sv = supervisor('a', { nothing => { absent => 1 }, never => { absent => 1 }, 'desk/never' => { absent => 1 } });
    ok $sv->wait_log(qr/AGT0367: runner \d+ of pool $_->[0] reported none of its $_->[1] graphs: it gets no runs/), "the log names the runner of $_->[0]"
        for [ default => 2 ], [ desk => 1 ];
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a run of any graph that a runner reported starts the runners of an idle pool' => sub {
    my $dir = tempdir(CLEANUP => 1);
    chmod 0777, $dir;
    my $sv = supervisor('a', { one => { first => "$dir/one" }, two => { others => "$dir/one" } }, runners => 2,
        pools => { default => { runner_idle_ms => 1000 } });
    my $ends = 0;
    for my $graph (qw(one two)) {
        $ends++;
        wait_for('all its processes to end', sub { $ends == (() = $sv->log_text =~ /AGT0356/g) && 0 == $sv->runner_pids });
        unlink "$dir/one";
        my $run = create_run({ do => 'noop' }, graph => $graph);
        $sv->wake;
        wait_status($run, 'success');
        pass "the run of graph $graph succeeds";
    }
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a quarantined run is not executed by a runner that did not report its graph' => sub {
    my $dir = tempdir(CLEANUP => 1);
    chmod 0777, $dir;
    my $sv = supervisor('a', { agent => {}, rare => { first => "$dir/rare" } });
    $sv->wait_runners(1);
    my $quarantined = create_run({ do => 'noop' }, graph => 'rare', request => { after_seconds => 3600 });
    sql("update agent.run_queue set max_shared = 1, not_before = null where run_id = '$quarantined'");
    $sv->wake;
    wait_status($quarantined, 'error');
    is attempts_of($quarantined), 3, 'it ends after three attempts';
    is scalar(events_of($quarantined)), 0, 'no runner was given the run';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

my %hostile = (
    'thousands of graphs' => [ { extra => 20_000 }, qr/AGT0332: .*a graph that hello does not name/ ],
    'a schema of 2 MB' => [ { pad => 2_000_000 }, qr/AGT0332: .*more than 1 MiB of a graph/ ],
    'a schema of 9 MB' => [ { pad => 9_000_000 }, qr/AGT0332: .*more than 8 MiB/ ],
    'a description of 5 KB' => [ { ready => { description => 'x' x 5000 } }, qr/AGT0332: .*a description of more than 4 KiB/ ],
    'a schema that is a text' => [ { ready => { schemas => { input_schema => 'x' } } }, qr/AGT0332: .*a member of another type/ ],
    'schemas in an array' => [ { ready => { schemas => [1] } }, qr/AGT0332: .*a member of another type/ ],
    'a graph that is a number' => [ { ready => 7 }, qr/AGT0332: .*without an object/ ],
);
for my $what (sort keys %hostile) {
    my ($graph, $message) = @{ $hostile{$what} };
    subtest "a runner that reports $what ends, the supervisor continues" => sub {
        my $sv = supervisor('h', { hostile => $graph });
        wait_for('three runners to be killed', sub { 3 <= (() = $sv->log_text =~ /$message/g) });
        pass 'another runner is started each time';
        cmp_ok $sv->memory, '<', 64 * 1024, 'the supervisor takes less than 64 MB';
        is stored('hostile', 'graph_id'), undef, 'nothing of it is stored';
        is $sv->stop, 0, 'the supervisor exits with status 0';
    };
}

subtest 'reports of 7 MB are stored in parts' => sub {
    my $sv = supervisor('l', { map { ("large$_" => { pad => 250_000 }) } 1 .. 30 });
    wait_for('all to be stored', sub { poll("select count(*) from agent.graphs where graph_id like 'large%'") == 30 });
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

done_testing;
