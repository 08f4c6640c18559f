# SPDX-License-Identifier: Apache-2.0
# Cancelling many runs at once: by their ids and by status, while others write.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Play;

my $db = AgentSQL->new;
my $session = $db->session;
my $play = AgentSQL::Play->new($session);
my $worker = $play->worker;
my $LAST = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

sub by_ids { my ($thread, $action, @runs) = @_; return $play->api('cancel_runs', $thread, \@runs, $action) }
sub by_status { my ($status, $action, $before) = @_; return $play->api('cancel_runs_by_status', $status, $action, $before || $LAST) }
sub changed { return [ sort split / /, $session->extra // '' ] }
sub queued { return $session->value('select count(*) from agent.run_queue') }

subtest 'runs of a thread are cancelled by their ids' => sub {
    my $thread = $play->thread;
    my @runs = map { $play->run($thread) } 1 .. 4;
    my ($claim) = $play->claim($worker);
    is +(by_ids($thread, 'interrupt', @runs[ 0, 2, 3 ], AgentSQL::uuid()))[0], 'ok';
    is_deeply changed(), [ sort $thread, @runs[ 2, 3 ] ], 'blocked runs end at once';
    is_deeply [ map { $play->status($thread, $_) } @runs ], [qw(pending pending interrupted interrupted)];
    is_deeply $play->check($worker, $claim), { $runs[0] => 'cancel' }, 'the leased run gets the cancel flag';
    $play->save($worker, AgentSQL::Play::finish($claim, 'interrupted'));
    is $play->queue($runs[1])->{state}, 'ready', 'the blocked run that was not named is next';
    is +(by_ids($thread, 'interrupt', @runs[ 0, 2 ]))[0], 'ok', 'final runs are unchanged';
    is_deeply changed(), [];
    $play->finish_all($worker);
};

subtest 'run_not_found when none of the runs exists' => sub {
    my ($thread, $other) = map { $play->thread } 1, 2;
    my $run = $play->run($other);
    is +(by_ids($thread, 'interrupt', $run, AgentSQL::uuid()))[0], 'run_not_found', 'run_not_found for a run of another thread';
    is $play->status($other, $run), 'pending';
    $play->finish_all($worker);
    is +(by_status('all', 'interrupt'))[0], 'run_not_found', 'run_not_found for a status without runs';
};

subtest 'a call takes ids of 4 MB of requests' => sub {
    for my $case ([ 'interrupt', 2_000_000, 2 ], [ 'rollback', 1_950_000, 2 ]) {
        my ($action, $bytes, $most) = @$case;
        my $thread = $play->thread;
        my ($first, @runs) = map { $play->run($thread, request => { input => 'x' x $bytes }) } 1 .. 4;
        my @newest = reverse @runs;
        my $unknown = AgentSQL::uuid();
        is_deeply [ by_ids($thread, $action, @newest[ 0, 0, 1, 2 ]) ], [ 'ok', $most ], "$action: two of 2 MB, each counted as often as it is named";
        is_deeply changed(), [ sort $thread, $newest[0] ], 'the named run ends once';
        is_deeply [ by_ids($thread, $action, $unknown, @newest) ], [ 'ok', 4 ], 'runs that do not exist or have ended are not counted';
        is queued(), 1;
        is_deeply [ by_ids($thread, $action, $unknown, $first, $unknown) ], [ 'ok', 3 ], 'all ids are taken when they are less';
        is queued(), 0;
    }
};

subtest 'rollback deletes the runs and promotes none of them' => sub {
    my $thread = $play->thread;
    my @runs = map { $play->run($thread) } 1 .. 3;
    is +(by_ids($thread, 'rollback', @runs))[0], 'ok';
    is_deeply changed(), [ sort $thread, @runs ];
    is_deeply [ map { $play->status($thread, $_) } @runs ], [ ('run_not_found') x 3 ];
    is $play->thread_status($thread), 'idle';
};

subtest 'the status selects runs that are not leased, leased ones, or both' => sub {
    for my $case ([ 'pending', 2 ], [ 'running', 2 ], [ 'all', 4 ]) {
        my ($status, $count) = @$case;
        my @threads = map { $play->thread } 1, 2;
        my %runs = map { my $thread = $_; $thread => [ map { $play->run($thread) } 1, 2 ] } @threads;
        $play->claim($worker);
        is +(by_status($status, 'interrupt'))[0], 'ok', $status;
        is $session->value("select count(*) from agent.run_queue where cancel = 'interrupt'"), $status eq 'pending' ? 0 : 2, 'leased runs have the cancel flag';
        is queued(), $status eq 'running' ? 4 : 2, 'the cancelled runs have left the queue';
        $session->query("select agent.delete_thread('$AgentSQL::DEPLOYMENT', '$_')") for @threads;
    }
};

subtest 'runs of a status are cancelled in batches, newest first' => sub {
    my @threads = map { $play->thread } 1 .. 130;
    my @runs = map { my $thread = $_; map { $play->run($thread) } 1, 2 } @threads;
    my ($before, @batches);
    while (1) {
        my ($code, $body) = by_status('all', 'rollback', $before);
        last if $code ne 'ok';
        $before = $body;
        push @batches, scalar grep { my $run = $_; grep { $_ eq $run } @runs } @{ changed() };
        is $session->value('select count(*) from agent.threads where active_run_id is not null and active_run_id <> all (\'{' . join(',', map { $runs[ 2 * $_ ] } 0 .. 129) . '}\')'), 0,
            'no second run became active';
    }
    is_deeply \@batches, [ (40) x 6, 20 ];
    is queued(), 0;
    is $session->value("select count(*) from agent.threads where status = 'busy'"), 0;
};

subtest 'a run created after the first batch is not cancelled' => sub {
    my $old = $play->run($play->thread);
    my (undef, $before) = by_status('all', 'interrupt');
    my $new = $play->run(my $thread = $play->thread);
    is +(by_status('all', 'interrupt', $before))[0], 'run_not_found';
    is $play->status($thread, $new), 'pending';
    $play->finish_all($worker);
};

# Each part has two sessions, with transactions like the server's.
subtest 'concurrent writers do not deadlock, and every run ends' => sub {
    my @threads = map { $play->thread } 1 .. 6;
    my $list = "'{" . join(',', @threads) . "}'::uuid[]";
    my $deployment = "'$AgentSQL::DEPLOYMENT'";
    my $rounds = 150;
    my %parts = (
        create => "perform agent.create_run($deployment, ($list)[1 + random() * 5], gen_random_uuid(), '$AgentSQL::ASSISTANT', 'agent',
            '{agent}', ('{enqueue,enqueue,interrupt,rollback}'::text[])[1 + random() * 3], null, null, null, '{}');",
        by_status => "perform agent.cancel_runs_by_status($deployment, ('{pending,running,all}'::text[])[1 + random() * 2],
            ('{interrupt,rollback}'::text[])[1 + random()], '$LAST');",
        by_ids => "perform agent.cancel_runs($deployment, t.id, array(select run_id from agent.runs r where r.thread_id = t.id
            order by random() limit 5), ('{interrupt,rollback}'::text[])[1 + random()]) from (select ($list)[1 + random() * 5] as id) t;",
        claim => "perform agent.claim_runs($worker, '{00000000-0000-0000-0000-000000000001}', '{agent}', '{0}', '{1}', '{3}', '{16}', 50, 1000000);",
        finish => "perform public.save_items($worker, (select coalesce(json_agg(json_build_object('d', deployment_id, 'r', run_id, 'e', epoch,
            's', null, 'type', 'end', 'status', 'success')), '[]') from (select * from agent.run_queue
            where state = 'leased' order by random() limit 4) q));",
        release => "perform agent.release_runs($worker, (select coalesce(json_agg(json_build_object('d', deployment_id, 'r', run_id, 'e', epoch)), '[]')
            from (select * from agent.run_queue where state = 'leased' order by random() limit 1) q), false, 'x', null);",
    );
    my @sessions = map { my $part = $_; map { [ $part, $db->session ] } 1, 2 } sort keys %parts;
    for (@sessions) {
        my ($part, $own) = @$_;
        $own->send("do \$do\$ begin for i in 1 .. $rounds loop $parts{$part} commit; end loop; end \$do\$");
    }
    is $_->[1]->receive, '', $_->[0] for @sessions;
    $session->query("update agent.run_queue set not_before = null where state = 'ready'");
    $play->finish_all($worker);
    $play->save($worker, map { AgentSQL::Play::finish($_) } map { AgentSQL::decode($_->[0]) }
        $session->query("select row_to_json(q) from agent.run_queue q where state = 'leased'"));
    $play->finish_all($worker);
    is queued(), 0, 'the queue is empty';
    is $session->value("select count(*) from agent.threads where status = 'busy' and thread_id = any($list)"), 0;
    is $session->value('select count(*) from agent.runs where finished_at is null'), 0;
};

done_testing;
