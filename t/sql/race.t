# SPDX-License-Identifier: Apache-2.0
# Concurrent creations on one thread.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Program;

my $race = AgentSQL::Program->build('race.c');
my $db = AgentSQL->new;
my $session = $db->session;

# Threads whose number of active and of unfinished runs is not as expected.
sub wrong_threads {
    my ($unfinished) = @_;
    return $session->value("select count(*) from agent.threads t
        cross join lateral (select count(*) filter (where q.state in ('ready', 'leased')) as active, count(*) as unfinished
            from agent.run_queue q where q.deployment_id = t.deployment_id and q.thread_id = t.thread_id) x
        where x.active <> 1 or x.unfinished <> $unfinished or t.status <> 'busy'");
}

sub clear { return $session->query('delete from agent.run_queue; delete from agent.runs; delete from agent.threads') }

sub rounds { return $ENV{AGENT_RACE_ROUNDS} || $_[0] }

subtest 'of 32 creations with reject at once exactly one succeeds and 31 are refused, in each of 1,000 rounds' => sub {
    my $rounds = rounds(1000);
    my ($status, $output) = $race->run($db, 'reject', $rounds, 32);
    is $status, 0;
    is $output, "$rounds x ok=1 thread_busy=31\n";
    is wrong_threads(1), 0;
    is $session->value('select count(*) from agent.runs'), $rounds, 'a rejected creation inserts no run';
    clear();
};

subtest 'of 32 creations with enqueue at once all succeed, one is active, the order is the one of creation' => sub {
    my ($status, $output) = $race->run($db, 'enqueue', 50, 32);
    is $output, "50 x ok=32\n";
    is wrong_threads(32), 0;
    is $session->value("select count(*) from (select thread_id, count(distinct thread_seq) as n, min(thread_seq) as low,
        max(thread_seq) as high from agent.runs group by thread_id) x where n <> 32 or low <> 1 or high <> 32"), 0,
        'numbered without gap';
    is $session->value("select count(*) from agent.run_queue where state = 'ready' and thread_seq <> 1"), 0;
    clear();
};

for my $case ([ 'interrupt', 32 ], [ 'rollback', 1 ]) {
    my ($strategy, $stored) = @$case;
    subtest "of 32 creations with $strategy at once all succeed and one run is left" => sub {
        my ($status, $output) = $race->run($db, $strategy, 50, 32);
        is $output, "50 x ok=32\n";
        is wrong_threads(1), 0;
        is $session->value('select count(*) from agent.runs'), 50 * $stored;
        clear();
    };
}

done_testing;
