# SPDX-License-Identifier: Apache-2.0
# The states of runs and threads, row by row.
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

sub leased { return $play->leased($worker, @_) }

subtest 'a created run is pending and its record is returned at once' => sub {
    my $thread = $play->thread;
    my ($code, $body, $run) = $play->try_run($thread);
    is $code, 'ok';
    is AgentSQL::decode($body)->{status}, 'pending';
    is AgentSQL::decode($body)->{run_id}, $run;
    is $play->thread_status($thread), 'busy';
};

subtest 'a leased run is pending in the API' => sub {
    my $claim = leased($play->thread);
    is $play->status($claim->{thread_id}, $claim->{run_id}), 'pending';
};

subtest 'a run that finishes executing is success and the state holds its messages' => sub {
    my $claim = leased($play->thread);
    $play->save($worker,
        AgentSQL::Play::checkpoint($claim, messages => [ 'question', 'answer' ]),
        AgentSQL::Play::finish($claim));
    is $play->status($claim->{thread_id}, $claim->{run_id}), 'success';
    is_deeply $play->messages($claim->{thread_id}), [ 'question', 'answer' ];
    is $play->thread_status($claim->{thread_id}), 'idle';
};

subtest 'an active prior run becomes interrupted by a new run with interrupt, stays readable, keeps its output' => sub {
    my $claim = leased($play->thread);
    my $thread = $claim->{thread_id};
    my $next = $play->run($thread, strategy => 'interrupt');
    is_deeply $play->check($worker, $claim), { $claim->{run_id} => 'cancel' }, 'the worker of the run sees the cancel';
    $play->save($worker,
        AgentSQL::Play::checkpoint($claim, messages => [ 'first', 'partial' ]),
        AgentSQL::Play::finish($claim, 'interrupted'));
    is $play->status($thread, $claim->{run_id}), 'interrupted';
    is_deeply $play->messages($thread), [ 'first', 'partial' ], 'partial output stays in the state';
    my ($second) = $play->claim($worker);
    is $second->{run_id}, $next, 'the new run executes';
    is_deeply [ map { $_->{content} } @{ $play->start_values($second)->{messages} } ], [ 'first', 'partial' ],
        'after the partial data';
    $play->save($worker,
        AgentSQL::Play::checkpoint($second, messages => [ 'first', 'partial', 'second', 'answer' ]),
        AgentSQL::Play::finish($second));
    is_deeply $play->messages($thread), [ 'first', 'partial', 'second', 'answer' ];
    is $play->status($thread, $next), 'success';
};

subtest 'a run with reject on a busy thread is refused, and the active run continues' => sub {
    my $claim = leased($play->thread);
    my $thread = $claim->{thread_id};
    is +($play->try_run($thread, strategy => 'reject'))[0], 'thread_busy';
    is scalar @{ $play->body('list_runs', $thread, 10, 0, undef, undef) }, 1;
    is_deeply $play->check($worker, $claim), {}, 'the worker sees no cancel';
    $play->save($worker, AgentSQL::Play::finish($claim));
    is $play->status($thread, $claim->{run_id}), 'success';
    is +($play->try_run($thread, strategy => 'reject'))[0], 'ok', 'the thread accepts runs again';
    $play->save($worker, map { AgentSQL::Play::finish($_) } $play->claim($worker));
};

subtest 'a run that raises is error, and so is its thread' => sub {
    my $claim = leased($play->thread);
    $play->save($worker, AgentSQL::Play::finish($claim, 'error', { error => 'ModelError', message => 'refused' }));
    is $play->status($claim->{thread_id}, $claim->{run_id}), 'error';
    is $play->thread_status($claim->{thread_id}), 'error';
    my $run = $play->body('get_run', $claim->{thread_id}, $claim->{run_id});
    is_deeply $run->{error}, { error => 'ModelError', message => 'refused' }, 'the record has the error';
};

subtest 'a run that exceeds its time is timeout, and its thread is in error' => sub {
    my $claim = leased($play->thread);
    $play->save($worker, AgentSQL::Play::finish($claim, 'timeout'));
    is $play->status($claim->{thread_id}, $claim->{run_id}), 'timeout';
    is $play->thread_status($claim->{thread_id}), 'error';
    ok $play->body('get_run', $claim->{thread_id}, $claim->{run_id})->{error}{message}, 'the error has a message';
};

# The claim of a run whose last checkpoint has a next node.
sub stopped {
    my ($thread) = @_;
    my $claim = leased($thread);
    $play->save($worker, AgentSQL::Play::checkpoint($claim, messages => ['question'], next => ['tools']));
    return $claim;
}

subtest 'a run that stops at a breakpoint is success, and its thread interrupted' => sub {
    my $thread = $play->thread;
    my $claim = stopped($thread);
    $play->save($worker, AgentSQL::Play::finish($claim));
    is $play->status($thread, $claim->{run_id}), 'success';
    is $play->thread_status($thread), 'interrupted';
    my $next = leased($thread);
    is $play->thread_status($thread), 'busy', 'while the next run executes, the thread is busy';
    $play->save($worker, AgentSQL::Play::checkpoint($next, messages => [ 'question', 'answer' ]),
        AgentSQL::Play::finish($next));
    is $play->status($thread, $next->{run_id}), 'success';
    is $play->thread_status($thread), 'idle', 'after a run to the end of the graph, it is idle';
};

subtest 'a run without a cancel is success when its runner reports interrupted' => sub {
    my $claim = stopped($play->thread);
    $play->save($worker, AgentSQL::Play::finish($claim, 'interrupted'));
    is $play->status($claim->{thread_id}, $claim->{run_id}), 'success';
    is $play->thread_status($claim->{thread_id}), 'interrupted';
};

subtest 'a run that is cancelled before a breakpoint is interrupted' => sub {
    my $claim = stopped($play->thread);
    $play->api('cancel_run', @$claim{qw(thread_id run_id)}, 'interrupt');
    $play->save($worker, AgentSQL::Play::finish($claim, 'interrupted'));
    is $play->status($claim->{thread_id}, $claim->{run_id}), 'interrupted';
    is $play->thread_status($claim->{thread_id}), 'interrupted', 'its thread has a next node';
};

subtest 'a run that fails after a step is error, and so is its thread' => sub {
    my $claim = stopped($play->thread);
    $play->save($worker, AgentSQL::Play::finish($claim, 'error', { error => 'ModelError', message => 'refused' }));
    is $play->status($claim->{thread_id}, $claim->{run_id}), 'error';
    is $play->thread_status($claim->{thread_id}), 'error';
};

subtest 'a thread stays busy from one run to the next' => sub {
    my $claim = leased($play->thread);
    $play->run($claim->{thread_id});
    $play->save($worker, AgentSQL::Play::finish($claim));
    is $play->thread_status($claim->{thread_id}), 'busy';
    $play->save($worker, map { AgentSQL::Play::finish($_) } $play->claim($worker));
    is $play->thread_status($claim->{thread_id}), 'idle';
};

subtest 'a final status never changes' => sub {
    my $claim = leased($play->thread);
    $play->save($worker, AgentSQL::Play::finish($claim));
    for my $status (qw(pending error interrupted timeout)) {
        my $finished = $status eq 'pending' ? ', finished_at = null, last_event_seq = null' : '';
        is $play->session->error(
            "update agent.runs set status = '$status'$finished where run_id = '$claim->{run_id}'"), 'MA001',
            "to $status";
    }
    is $play->session->error(
        "update agent.runs set finished_at = now() where run_id = '$claim->{run_id}'"), 'MA001', 'finished_at never changes';
    is $play->session->error(
        "update agent.runs set metadata = '{}' where run_id = '$claim->{run_id}'"), '', 'other columns of a final run may change';
};

done_testing;
