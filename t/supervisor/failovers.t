# SPDX-License-Identifier: Apache-2.0
# Failovers that undo the last commits about a run which a supervisor executes:
# each lets the run continue from what is left, under another lease.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Wait;
use Test::More;
use TestLarge;
use TestProxy;
use TestSupervisor;

my $pg = start_cluster();

my @TABLES = qw(threads runs run_queue run_events usage_events checkpoints checkpoint_items checkpoint_snapshots
    checkpoint_writes checkpoint_blobs checkpoint_tasks);

sub columns_of {
    return sql("select string_agg(attname, ', ' order by attnum) from pg_attribute
        where attrelid = 'agent.$_[0]'::regclass and attnum > 0 and not attisdropped and attgenerated = ''");
}

# Returns what gives the database the rows about runs that it has now, as a failover does to a standby that got nothing
# later.
sub remember {
    my %columns = map { $_ => scalar columns_of($_) } @TABLES;
    sql("create table public.kept_$_ as select $columns{$_} from agent.$_") for @TABLES;
    return sub {
        # Without the trigger that refuses changes of a final run.
        sql(join '; ', 'begin', 'set local session_replication_role = replica',
            map({ ("delete from agent.$_", "insert into agent.$_ ($columns{$_}) select * from public.kept_$_",
                "drop table public.kept_$_") } @TABLES), 'commit');
    };
}

my $ID = '0190a1b2-0000-6000-8000-000000000001';
my @members = (checkpoint_id => $ID, parent => undef, metadata => { source => 'loop', step => 0 });
my %batches = (
    event => [ [ event => { second => 1 } ] ],
    checkpoint => [ [ send => @members, type => 'checkpoint', values => { messages => [ { type => 'ai', content => 'x' } ] }, next => [], tasks => [] ] ],
    record => [ [ send => @members, type => 'put', ns => '', checkpoint => { v => 4 }, channels => {} ] ],
    task => [ [ send => type => 'task', checkpoint_id => $ID, task => { id => 'x', name => 'y' } ] ],
);

sub start_supervisor {
    my (%args) = @_;
    my $sv = TestSupervisor->start($pg, lease_sec => 60, runner => scripted_runner('record_runner.pl'),
        timing_ms => patient_timing(), %args);
    $sv->wait_ready;
    return $sv;
}

# A run that waits at a gate, sends the batch, and waits at another gate.
sub start_between {
    my ($sv, $gates, @batch) = @_;
    my @steps = ([ event => { first => 1 } ], [ gate => $gates->[0] ], @batch, [ gate => $gates->[1] ], [ event => { last => 1 } ]);
    my $run = $sv->start_run({ first => \@steps });
    wait_events('its first event', 3, $run);
    return $run;
}

# Its numbered batches and its events; less than 0 when it has ended.
sub count_saved {
    return sql("select coalesce(max(q.batch_no + (select count(*) from agent.run_events e where e.run_id = q.run_id)), -1)
        from agent.run_queue q where q.run_id = '$_[0]'");
}

sub wait_batch {
    my ($run, $before) = @_;
    return wait_for('the next batch', sub { count_saved($run) > $before });
}

# Lets the run, which begins again, pass both gates, and checks how it ends.
sub end_again {
    my ($sv, $run, $gates, %expected) = @_;
    $sv->wait_log(qr/AGT0379.*$run/);
    open_gate($_) for @{$gates};
    wait_status($run, 'success');
    my @data = map { keys %{ $_->[1] } } grep { ref $_->[1] && $_->[0] eq 'custom' } events_of($run);
    is_deeply \@data, $expected{events}, 'each number of an event is there';
    is sql("select concat_ws(' ', epoch, attempts) from agent.usage_events where run_id = '$run'"), '2 1',
        'the run is executed under another lease, and the attempt is not counted';
    like $sv->log_text, qr/AGT0343.*$run/, 'the log says that the lease is lost';
    is sql("select count(*) from agent.run_queue"), 0, 'no run is left';
    return;
}

for my $kind (sort keys %batches) {
    subtest "a failover undoes a batch with $kind: the run is executed again from what is left" => sub {
        my $sv = start_supervisor();
        my @gates = (make_gate(), make_gate());
        my $run = start_between($sv, \@gates, @{ $batches{$kind} });
        my $before = count_saved($run);
        my $undo = remember();
        open_gate($gates[0]);
        wait_batch($run, $before);
        $undo->();
        open_gate($gates[1]);
        end_again($sv, $run, \@gates, events => [ 'first', 'first', $kind eq 'event' ? 'second' : (), 'last' ]);
        is sql("select count(*) from agent.checkpoints c join agent.runs r using (thread_id) where r.run_id = '$run'"),
            $kind eq 'checkpoint' ? 1 : 0, 'the checkpoint is stored once';
        is $sv->stop, 0, 'the supervisor exits with status 0';
    };
}

subtest 'a failover undoes all output of a run: it is executed again' => sub {
    my $sv = start_supervisor();
    my @gates = (make_gate(), make_gate());
    my $run = start_between($sv, \@gates);
    sql("delete from agent.run_events where run_id = '$run'");
    sql("update agent.run_queue set batch_no = 0 where run_id = '$run'");
    open_gate($_) for @gates;
    end_again($sv, $run, \@gates, events => [ 'first', 'last' ]);
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a failover undoes a whole run with its claim: it is executed again under the same epoch' => sub {
    my $sv = start_supervisor();
    my $run = create_run({ first => [ @{ $batches{checkpoint} }, [ event => { last => 1 } ] ] });
    my $undo = remember();
    $sv->wake;
    wait_status($run, 'success');
    $undo->();
    $sv->wake;
    wait_status($run, 'success');
    is scalar(events_of($run)), 3, 'each number of an event is there';
    is sql("select concat_ws(' ', epoch, attempts) from agent.usage_events where run_id = '$run'"), '1 1', 'it is executed once';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

subtest 'a failover undoes nothing of a run: it continues under its lease' => sub {
    my $sv = start_supervisor();
    my @gates = (make_gate(), make_gate());
    my $run = start_between($sv, \@gates, @{ $batches{checkpoint} });
    my $before = count_saved($run);
    open_gate($gates[0]);
    wait_batch($run, $before);
    my $undo = remember();
    $undo->();
    sql("select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'agent supervisor'");
    open_gate($gates[1]);
    wait_status($run, 'success');
    is sql("select epoch from agent.usage_events where run_id = '$run'"), 1, 'the lease is the first one';
    unlike $sv->log_text, qr/AGT0343|AGT0379/, 'no lease is lost';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

for my $part (qw(request result)) {
    subtest "the $part of each batch of a run is lost: each is saved once" => sub {
        my $proxy = TestProxy->new($pg);
        my $sv = start_supervisor(conninfo => $proxy->conninfo);
        my @gates = map { make_gate() } 0 .. 4;
        my @kinds = (sort(keys %batches), 'event');
        my $run = $sv->start_run({ first => [ [ event => { first => 1 } ],
            map({ ([ gate => $gates[$_] ], @{ $batches{ $kinds[$_] } }) } 0 .. $#gates) ] });
        wait_events('its first event', 3, $run);
        for my $gate (@gates) {
            my $before = count_saved($run);
            $proxy->lose($part, 'save_batch', sub { open_gate($gate) });
            wait_for('the batch', sub { my $now = count_saved($run); $now > $before || $now < 0 });
        }
        wait_status($run, 'success');
        is scalar(events_of($run)), 5, 'each number of an event is there';
        is sql("select epoch from agent.usage_events where run_id = '$run'"), 1, 'the lease is the first one';
        unlike $sv->log_text, qr/AGT0343|AGT0379/, 'no lease is lost';
        is $sv->stop, 0, 'the supervisor exits with status 0';
    };
}

done_testing;
