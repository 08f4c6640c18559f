# SPDX-License-Identifier: Apache-2.0
# The outbox of webhooks: the row of an ended run.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Outbox;

my $db = AgentSQL->new;
my $session = $db->session;
my $play = AgentSQL::Outbox->new($session);
my $worker = $play->worker;

subtest 'the webhook of a successful run has the record, its times and its values' => sub {
    my $thread = $play->thread;
    my $run = $play->run_with_webhook($thread);
    my ($claim) = $play->claim($worker);
    is_deeply [ $play->outbox ], [], 'a run has no row in the outbox before its end';
    $play->save($worker, AgentSQL::Play::checkpoint($claim, messages => [ 'question', 'answer' ]),
        AgentSQL::Play::finish($claim));
    my $row = $play->only_row($run);
    is $row->{url}, $AgentSQL::Outbox::URL;
    is $row->{thread_id}, $thread;
    is $row->{deployment_id}, $AgentSQL::DEPLOYMENT;
    my $record = $play->body('get_run', $thread, $run);
    my %body = %{ $row->{body} };
    is_deeply [ map { $_->{content} } @{ (delete $body{values})->{messages} } ], [ 'question', 'answer' ];
    like delete $body{run_started_at}, qr/\A\d{4}-\d\d-\d\dT[\d:.]+\+00:00\z/;
    is delete $body{run_ended_at}, $record->{updated_at};
    is_deeply \%body, $record, 'the other members of the body are those of the run record';
    is $body{status}, 'success';
    is $body{error}, undef;
};

subtest 'the webhook of a failed run has its error' => sub {
    for my $status (qw(error timeout)) {
        my $run = $play->run_with_webhook($play->thread);
        my ($claim) = $play->claim($worker);
        $play->save($worker, AgentSQL::Play::finish($claim, $status, { error => 'Kind', message => 'why' }));
        my $body = $play->only_row($run)->{body};
        is $body->{status}, $status;
        is_deeply $body->{error}, { error => 'Kind', message => 'why' };
        is $body->{values}, undef, 'the webhook of a run without a checkpoint has no values';
    }
};

subtest 'the webhook of a run cancelled before its start has no start time' => sub {
    my $thread = $play->thread;
    my $run = $play->run_with_webhook($thread);
    $play->cancel($thread, $run, 'interrupt');
    my $body = $play->only_row($run)->{body};
    is $body->{status}, 'interrupted';
    is $body->{run_started_at}, undef;
};

subtest 'the webhook of a run cancelled while leased has its last values' => sub {
    my $thread = $play->thread;
    my $run = $play->run_with_webhook($thread);
    my ($claim) = $play->claim($worker);
    $play->save($worker, AgentSQL::Play::checkpoint($claim, messages => ['half']));
    $play->cancel($thread, $run, 'interrupt');
    $play->save($worker, AgentSQL::Play::finish($claim, 'interrupted'));
    my $body = $play->only_row($run)->{body};
    is $body->{status}, 'interrupted';
    is $body->{values}{messages}[0]{content}, 'half';
};

subtest 'a run interrupted by another one has a webhook, ready or leased' => sub {
    my $thread = $play->thread;
    my $waiting = $play->run_with_webhook($thread);
    my $next = $play->run($thread, strategy => 'interrupt');
    is $play->only_row($waiting)->{body}{status}, 'interrupted', 'ready';
    $play->cancel($thread, $next, 'interrupt');

    my $run = $play->run_with_webhook($thread);
    my ($claim) = $play->claim($worker);
    $next = $play->run($thread, strategy => 'interrupt');
    is_deeply [ $play->outbox ], [], 'a leased run has no row until its worker has stopped';
    $play->save($worker, AgentSQL::Play::finish($claim, 'interrupted'));
    is $play->only_row($run)->{body}{status}, 'interrupted', 'leased';
    $play->cancel($thread, $next, 'interrupt');
};

subtest 'the webhook of a run that was rolled back has rolled_back' => sub {
    my $thread = $play->thread;
    my $run = $play->run_with_webhook($thread);
    $play->cancel($thread, $run, 'rollback');
    is $play->status($thread, $run), 'run_not_found';
    my $body = $play->only_row($run)->{body};
    is $body->{status}, 'interrupted', 'ready';
    ok $body->{rolled_back};
    is $body->{values}, undef;
    like $body->{run_ended_at}, qr/\A\d{4}/;
    is $body->{kwargs}{input}{a}, 1;

    $run = $play->run_with_webhook($thread);
    my ($claim) = $play->claim($worker);
    $play->save($worker, AgentSQL::Play::checkpoint($claim, messages => ['half']));
    my $next = $play->run($thread, strategy => 'rollback');
    $play->save($worker, AgentSQL::Play::finish($claim));
    $body = $play->only_row($run)->{body};
    is $body->{status}, 'interrupted', 'leased, whatever status its worker reports';
    is $body->{values}, undef;
    like $body->{run_started_at}, qr/\A\d{4}/;
    $play->cancel($thread, $next, 'interrupt');
};

subtest 'a run that lost its runner or worker too often has a webhook' => sub {
    for my $how (qw(release_runs mark_worker_dead)) {
        my $thread = $play->thread;
        my $run = $play->run_with_webhook($thread);
        for my $attempt (1 .. 3) {
            is_deeply [ $play->outbox ], [], "no row before attempt $attempt";
            $session->query('update agent.run_queue set not_before = null');
            my $by = $play->worker;
            my ($claim) = $play->claim($by);
            $how eq 'release_runs' ? $play->release($by, 'true', $claim)
                : $session->query("select agent.mark_worker_dead($by, true, 100)");
        }
        my $body = $play->only_row($run)->{body};
        is $body->{status}, 'error';
        is $body->{error}{error}, $how eq 'release_runs' ? 'RunGivenUpError' : 'WorkerLostError';
    }
};

subtest 'a cancelled run whose worker was lost has a webhook' => sub {
    for my $action (qw(interrupt rollback)) {
        my $thread = $play->thread;
        my $run = $play->run_with_webhook($thread);
        my ($claim) = $play->claim($worker);
        $play->cancel($thread, $run, $action);
        $play->release($worker, 'true', $claim);
        is $play->only_row($run)->{body}{status}, 'interrupted', $action;
    }
};

subtest 'a webhook omits values of more than 1 MiB' => sub {
    my $thread = $play->thread;
    my $run = $play->run_with_webhook($thread);
    my ($claim) = $play->claim($worker);
    $play->save($worker, AgentSQL::Play::checkpoint($claim, messages => [ 'x' x 1_048_600 ]),
        AgentSQL::Play::finish($claim));
    my $body = $play->only_row($run)->{body};
    is $body->{values}, undef, 'values is null';
    ok $body->{values_omitted}, 'values_omitted is true';
};

subtest 'the webhook of a stateless run has no values and survives the thread' => sub {
    my ($thread, $run) = $play->stateless(webhook => $AgentSQL::Outbox::URL);
    my ($claim) = $play->claim($worker);
    $play->save($worker, AgentSQL::Play::checkpoint($claim, messages => ['x']), AgentSQL::Play::finish($claim));
    $play->at('2100-01-01T00:00:00Z');
    is $session->value('select count(*) from agent.expire_threads()'), 1;
    my ($delivery) = $play->claim_webhooks($worker);
    my $body = AgentSQL::decode($delivery->[4]);
    is $body->{status}, 'success';
    ok $body->{kwargs}{temporary};
    ok !exists $body->{values};
    $session->query('reset agent.now');
    $play->only_row($run);
};

subtest 'a run without a webhook inserts no row' => sub {
    my $thread = $play->thread;
    $play->run($thread);
    my ($claim) = $play->claim($worker);
    $play->save($worker, AgentSQL::Play::finish($claim));
    $play->cancel($thread, $play->run($thread), $_) for qw(interrupt rollback);
    is_deeply [ $play->outbox ], [];
};

subtest 'each run of a batch inserts its own row' => sub {
    my %runs = map { $play->run_with_webhook($play->thread) => 1 } 1 .. 20;
    my @claims = $play->claim($worker);
    my @batch = map { AgentSQL::Play::finish($_) } @claims;
    $play->save($worker, @batch) for 1, 2;
    is_deeply [ sort map { $_->{run_id} } $play->outbox ], [ sort keys %runs ], 'one row per run, also when the batch is repeated';
    $session->query('delete from agent.webhook_outbox');
};

subtest 'an end that is not committed inserts no row' => sub {
    my $thread = $play->thread;
    my $run = $play->run_with_webhook($thread);
    $session->query('begin');
    $play->cancel($thread, $run, 'interrupt');
    is scalar $play->outbox, 1, 'visible in its transaction';
    $session->query('rollback');
    is_deeply [ $play->outbox ], [];
    is $play->status($thread, $run), 'pending';
    $play->cancel($thread, $run, 'interrupt');
    $play->only_row($run);
};

subtest 'the deletion of run and thread keeps the webhook' => sub {
    my $thread = $play->thread;
    my $run = $play->run_with_webhook($thread);
    my ($claim) = $play->claim($worker);
    $play->save($worker, AgentSQL::Play::checkpoint($claim, messages => ['kept']), AgentSQL::Play::finish($claim));
    is +($play->api('delete_run', $thread, $run))[0], 'ok';
    is +($play->api('delete_thread', $thread))[0], 'ok';
    my ($delivery) = $play->claim_webhooks($worker);
    is AgentSQL::decode($delivery->[4])->{values}{messages}[0]{content}, 'kept';
    $play->only_row($run);
};

done_testing;
