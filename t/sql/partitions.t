# SPDX-License-Identifier: Apache-2.0
# The day partitions of run_events.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Play;

sub utc_day { return AgentSQL::admin("select to_char(now() at time zone 'UTC', 'YYYYMMDD')") }

# Midnight may come while the schema is installed.
my $day_before = utc_day();
my $db = AgentSQL->new;
my $day_after = utc_day();
my $session = $db->session;
my $play = AgentSQL::Play->new($session);
my $worker = $play->worker;

sub today { return $session->query("set agent.now = '$_[0]T12:00:00Z'") }

sub partitions {
    return [ map { $_->[0] } $session->query("select relname from pg_inherits join pg_class c on c.oid = inhrelid
        where inhparent = 'agent.run_events'::regclass order by 1") ];
}

# A finished run of the day with one event.
sub run_of_the_day {
    my $thread = $play->thread;
    my $run = $play->run($thread);
    my ($claim) = $play->claim($worker);
    $play->save($worker, AgentSQL::Play::event($claim, 0, 'custom', 1), AgentSQL::Play::finish($claim));
    return ($thread, $run);
}

sub maintain { return $session->value("select agent.maintain_partitions('2 days')") }

subtest 'an installation has partitions for today and the next seven days' => sub {
    my $found = join ' ', @{ partitions() };
    my ($today) = grep { $found =~ /run_events_$_/ } $day_before, $day_after;
    my @days = map { $_->[0] } $session->query("select 'run_events_' || to_char(date '$today' + n, 'YYYYMMDD')
        from generate_series(0, 7) n");
    is $found, join(' ', @days, 'run_events_default'), 'the partitions are today, seven days and the default';
};

subtest 'maintenance keeps seven days ahead and can be repeated' => sub {
    today('2030-03-01');
    cmp_ok maintain(), '>=', 8;
    is maintain(), 0;
    today('2030-03-02');
    is maintain(), 1;
    is_deeply partitions(), [ (map { "run_events_203003$_" } qw(01 02 03 04 05 06 07 08 09)), 'run_events_default' ];
};

subtest 'events go into the partition of the day on which the run began' => sub {
    my ($thread, $run) = run_of_the_day();
    is $session->value("select tableoid::regclass from agent.run_events where run_id = '$run'"),
        'agent.run_events_20300302';
    is scalar $play->events($thread, $run), 1;
};

subtest 'days older than the retention are dropped, and with them their events' => sub {
    today('2030-03-03');
    my ($thread, $run) = run_of_the_day();
    today('2030-03-05');
    maintain();
    ok !grep({ $_ eq 'run_events_20300302' } @{ partitions() }), 'three days old';
    ok grep({ $_ eq 'run_events_20300303' } @{ partitions() }), 'two days old';
    is scalar $play->events($thread, $run), 1;
    is $play->status($thread, $run), 'success', 'records stay';
};

subtest 'a day to which an unfinished run writes is kept' => sub {
    my $thread = $play->thread;
    my $run = $play->run($thread);
    my ($claim) = $play->claim($worker);
    today('2030-03-12');
    maintain();
    ok grep({ $_ eq 'run_events_20300305' } @{ partitions() });
    $play->save($worker, AgentSQL::Play::event($claim, 0, 'custom', 1), AgentSQL::Play::finish($claim));
    is scalar $play->events($thread, $run), 1;
    maintain();
    ok !grep({ $_ eq 'run_events_20300305' } @{ partitions() }), 'the day is dropped after the end of the run';
};

subtest 'a waiting run keeps no partition, and writes to the day of its first claim' => sub {
    today('2030-04-01');
    maintain();
    my ($thread, $other) = map { $play->thread } 1, 2;
    my $delayed = $play->run($thread, request => { after_seconds => 30 * 86_400 });
    my $blocked = $play->run($thread, strategy => 'enqueue');
    today('2030-04-10');
    maintain();
    ok !grep({ $_ eq 'run_events_20300401' } @{ partitions() }), 'the day of its creation is dropped';

    today('2030-05-02');
    maintain();
    for my $run ($delayed, $blocked) {
        my ($claim) = $play->claim($worker);
        is $claim->{run_id}, $run;
        $play->save($worker, AgentSQL::Play::event($claim, 0, 'custom', 1));
        is $session->value("select tableoid::regclass from agent.run_events where run_id = '$run'"),
            'agent.run_events_20300502';
        is scalar $play->events($thread, $run), 1, 'the events of the run can be read';
        $play->save($worker, AgentSQL::Play::finish($claim));
        is $play->status($thread, $run), 'success';
    }
};

subtest 'a second attempt writes to the day of the first' => sub {
    today('2030-05-03');
    my $thread = $play->thread;
    my $run = $play->run($thread);
    my ($claim) = $play->claim($worker);
    $play->save($worker, AgentSQL::Play::event($claim, 0, 'custom', 1));
    $play->release($worker, 'false', $claim);
    today('2030-05-04');
    ($claim) = $play->claim($worker);
    is $claim->{last_event_seq}, 0, 'numbering continues';
    $play->save($worker, AgentSQL::Play::event($claim, 1, 'custom', 2), AgentSQL::Play::finish($claim));
    is scalar $play->events($thread, $run), 2;
    is $session->value("select count(distinct bucket) from agent.run_events where run_id = '$run'"), 1;
};

subtest 'events of a day without a partition are stored, and moved when it is created' => sub {
    today('2031-01-01');
    my ($thread, $run) = run_of_the_day();
    my $where = sub { $session->value("select tableoid::regclass from agent.run_events where run_id = '$run'") };
    is $where->(), 'agent.run_events_default';
    is scalar $play->events($thread, $run), 1;
    maintain();
    is $where->(), 'agent.run_events_20310101';
    is scalar $play->events($thread, $run), 1;
    is $session->value('select count(*) from agent.run_events_default'), 0;
};

subtest 'a lock that is not available is left to the next call' => sub {
    my $other = $db->session;
    $other->query('begin');
    $other->query('select count(*) from agent.run_events_default');
    today('2031-01-02');
    is maintain(), 0;
    $other->query('commit');
    is maintain(), 1;
};

subtest 'maintenance takes no advisory lock, which any role could hold' => sub {
    $session->query('begin');
    maintain();
    is $session->value("select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"), 0;
    $session->query('commit');
};

subtest 'two concurrent calls do not wait for each other' => sub {
    my $other = $db->session;
    $other->query('begin');
    $other->query("set local agent.now = '2031-01-03T00:00:00Z'");
    is $other->value("select agent.maintain_partitions('2 days')"), 1;
    today('2031-01-03');
    is maintain(), 0;
    $other->query('commit');
};

subtest 'a reader during maintenance does not deadlock with it' => sub {
    my ($reader, $other) = map { $db->session } 1, 2;
    # On a slow machine the call would otherwise give up.
    $session->query("alter function agent.maintain_partitions(interval) set lock_timeout = '1h'");
    $reader->query('begin');
    $reader->query('lock table only agent.run_events in access share mode');
    $other->query("set agent.now = '2031-01-12T12:00:00Z'");
    $other->send("select agent.maintain_partitions('2 days')");
    ok $other->waits_for($reader), 'maintenance waits for the reader';
    is $reader->error('select count(*) from agent.run_events'), '', 'the reader reads the default partition too';
    $reader->query('commit');
    cmp_ok $other->receive, '>', 9, 'days are created and dropped';
    $session->query("alter function agent.maintain_partitions(interval) set lock_timeout = '1s'");
};

subtest 'an installation drops no days, whatever the retention of the supervisors' => sub {
    $session->query("select agent.create_partition('run_events_20200101', '2020-01-01')");
    my ($status, $output) = $db->file('sql/install.sql');
    is $status, 0 or diag $output;
    ok grep({ $_ eq 'run_events_20200101' } @{ partitions() });
};

done_testing;
