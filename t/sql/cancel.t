# SPDX-License-Identifier: Apache-2.0
# Cancelling runs.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Play;

my $db = AgentSQL->new;
my $play = AgentSQL::Play->new($db->session);
my $worker = $play->worker;

sub cancel { return $play->session->call('cancel_run', $AgentSQL::DEPLOYMENT, @_) }

subtest 'cancelling a ready run ends it at once' => sub {
    my $thread = $play->thread;
    my $run = $play->run($thread);
    is +(cancel($thread, $run, 'interrupt'))[0], 'ok';
    is $play->status($thread, $run), 'interrupted';
    is $play->thread_status($thread), 'idle';
    is $play->queue($run), undef;
    is_deeply [ $play->claim($worker) ], [], 'a cancelled run cannot be claimed';
};

subtest 'cancelling a blocked run does not affect the active one' => sub {
    my $thread = $play->thread;
    my @runs = map { $play->run($thread) } 1, 2;
    is +(cancel($thread, $runs[1], 'interrupt'))[0], 'ok';
    is $play->status($thread, $runs[1]), 'interrupted';
    is $play->thread_status($thread), 'busy';
    is $play->queue($runs[0])->{state}, 'ready';
    cancel($thread, $runs[0], 'interrupt');
};

subtest 'cancelling the active run promotes the next one' => sub {
    my $thread = $play->thread;
    my @runs = map { $play->run($thread) } 1, 2;
    cancel($thread, $runs[0], 'interrupt');
    is $play->queue($runs[1])->{state}, 'ready';
    is $play->thread_status($thread), 'busy';
    cancel($thread, $runs[1], 'interrupt');
};

subtest 'cancelling a leased run sets its cancel flag, and the run ends when its worker reports the end' => sub {
    my $thread = $play->thread;
    my $run = $play->run($thread);
    my ($claim) = $play->claim($worker);
    is +(cancel($thread, $run, 'interrupt'))[0], 'ok';
    is $play->session->extra, '', 'no run is reported as changed';
    is $play->status($thread, $run), 'pending';
    is_deeply $play->check($worker, $claim), { $run => 'cancel' };
    $play->save($worker, AgentSQL::Play::finish($claim, 'interrupted'));
    is $play->status($thread, $run), 'interrupted';
};

subtest 'cancelling a final run changes nothing and takes no lock' => sub {
    my $thread = $play->thread;
    my $run = $play->run($thread);
    cancel($thread, $run, 'interrupt');
    my $session = $play->session;
    $session->query('begin');
    is +(cancel($thread, $run, 'rollback'))[0], 'run_finished';
    is $session->value('select pg_current_xact_id_if_assigned() is null'), 't';
    $session->query('commit');
    is $play->status($thread, $run), 'interrupted';
    is +(cancel($thread, AgentSQL::uuid(), 'interrupt'))[0], 'run_not_found';
};

subtest 'rollback of a ready run deletes it at once' => sub {
    my $thread = $play->thread;
    my @runs = map { $play->run($thread) } 1, 2;
    is +(cancel($thread, $runs[0], 'rollback'))[0], 'ok';
    is $play->status($thread, $runs[0]), 'run_not_found';
    is $play->queue($runs[1])->{state}, 'ready', 'the next run is ready';
    cancel($thread, $runs[1], 'rollback');
    is $play->thread_status($thread), 'idle';
};

subtest 'a rollback is not weakened by a later interrupt' => sub {
    my $thread = $play->thread;
    my $run = $play->run($thread);
    my ($claim) = $play->claim($worker);
    cancel($thread, $run, 'rollback');
    cancel($thread, $run, 'interrupt');
    $play->save($worker, AgentSQL::Play::finish($claim, 'interrupted'));
    is $play->status($thread, $run), 'run_not_found';
};

subtest 'a cancelled run whose worker is lost is not retried' => sub {
    for my $case ([ 'interrupt', 'interrupted', 'interrupted' ], [ 'rollback', 'rolled_back', 'run_not_found' ]) {
        my ($action, $outcome, $status) = @$case;
        my $thread = $play->thread;
        my $run = $play->run($thread);
        my ($claim) = $play->claim($worker);
        cancel($thread, $run, $action);
        is_deeply $play->release($worker, 'true', $claim), { $run => $outcome }, $action;
        is $play->status($thread, $run), $status;
        is_deeply [ $play->claim($worker) ], [];
    }
};

sub reason_of { return $play->body('get_run', @_)->{cancel_reason} }

subtest 'the record of a cancelled run says why it was cancelled' => sub {
    my $api = 'api: a request cancelled the run';
    for my $case ([ undef, $api ], [ 'the user left', 'the user left' ], [ 'taken', 'taken: its input was given to another run' ]) {
        my ($given, $reason) = @$case;
        my $thread = $play->thread;
        my $run = $play->run($thread);
        is reason_of($thread, $run), undef, 'no reason before the cancel';
        cancel($thread, $run, 'interrupt', $given);
        is reason_of($thread, $run), $reason, 'a waiting run';

        $run = $play->run($thread);
        my ($claim) = $play->claim($worker);
        cancel($thread, $run, 'interrupt', $given);
        cancel($thread, $run, 'interrupt', 'later');
        is reason_of($thread, $run), undef, 'a run has no reason before its end';
        $play->save($worker, AgentSQL::Play::finish($claim, 'interrupted'));
        is reason_of($thread, $run), $reason, 'an executing run keeps the first reason';
    }
    my $thread = $play->thread;
    my @runs = map { $play->run($thread) } 1, 2;
    my ($claim) = $play->claim($worker);
    $play->session->call('cancel_runs', $AgentSQL::DEPLOYMENT, $thread, '{' . join(',', @runs) . '}', 'interrupt');
    $play->save($worker, AgentSQL::Play::finish($claim, 'interrupted'));
    is reason_of($thread, $_), $api, 'one of many' for @runs;
};

subtest 'a cancelled run that ends in another way has no reason' => sub {
    my $thread = $play->thread;
    my $run = $play->run($thread);
    my ($claim) = $play->claim($worker);
    cancel($thread, $run, 'interrupt');
    $play->save($worker, AgentSQL::Play::finish($claim, 'success'));
    is $play->status($thread, $run), 'success';
    is reason_of($thread, $run), undef;
};

subtest 'a cancelled run whose worker is lost has the reason of the cancel' => sub {
    my $thread = $play->thread;
    my $run = $play->run($thread);
    my ($claim) = $play->claim($worker);
    cancel($thread, $run, 'interrupt', 'no more');
    $play->release($worker, 'true', $claim);
    is reason_of($thread, $run), 'no more';
};

done_testing;
