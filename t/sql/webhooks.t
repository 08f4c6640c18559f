# SPDX-License-Identifier: Apache-2.0
# The outbox of webhooks: the row of an ended run, and its delivery by workers.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Play;

my $URL = 'https://hooks.example.com/x?y=1';
my $db = AgentSQL->new;
my $session = $db->session;
my $play = AgentSQL::Play->new($session);
my $worker = $play->worker;

sub hooked_run {
    my ($thread, %more) = @_;
    return $play->run($thread, request => { input => { a => 1 }, webhook => $URL }, %more);
}

# Rows of the outbox as hashes.
sub outbox {
    return map { AgentSQL::decode($_->[0]) }
        $session->query('select row_to_json(o) from agent.webhook_outbox o order by created_at, run_id');
}

# Removes the only row; its body decoded.
sub only_row {
    my ($run) = @_;
    my @rows = outbox();
    is scalar @rows, 1, 'one row';
    is $rows[0]{run_id}, $run, 'of this run';
    $session->query('delete from agent.webhook_outbox');
    return { %{ $rows[0] }, body => AgentSQL::decode($rows[0]{body}) };
}

sub cancel { return $play->session->call('cancel_run', $AgentSQL::ACCOUNT, @_) }

# A claimed delivery is [account, run, attempt, url, body].
sub claim {
    my ($by, %with) = @_;
    return $session->query(sprintf 'select * from agent.claim_webhooks(%d, %d, %d, %d, 30) order by run_id',
        $by, $with{limit} // 50, $with{room} // 100, $with{max_bytes} // 1_000_000);
}

sub result {
    my ($delivery, $outcome, %more) = @_;
    return { a => $delivery->[0], r => $delivery->[1], n => $delivery->[2] + 0, o => $outcome,
        t => 'status 500', s => undef, %more };
}

# [run, outcome, next_sec] of each.
sub save {
    my ($by, @results) = @_;
    my $items = AgentSQL::Session::literal(AgentSQL::encode(\@results));
    return $session->query("select * from agent.save_webhooks($by, $items)");
}

sub at { return $session->query("set agent.now = '$_[0]'") }

# A run that has ended, with its row in the outbox.
sub ended_run {
    my $thread = $play->thread;
    my $run = hooked_run($thread);
    cancel($thread, $run, 'interrupt');
    return $run;
}

# ---- the row of an ended run ----

subtest 'the webhook of a successful run has the record, its times and its values' => sub {
    my $thread = $play->thread;
    my $run = hooked_run($thread);
    my ($claim) = $play->claim($worker);
    is_deeply [ outbox() ], [], 'no row before the end';
    $play->save($worker, AgentSQL::Play::checkpoint($claim, messages => [ 'question', 'answer' ]),
        AgentSQL::Play::finish($claim));
    my $row = only_row($run);
    is $row->{url}, $URL;
    is $row->{thread_id}, $thread;
    is $row->{account_id}, $AgentSQL::ACCOUNT;
    my $record = $play->body('get_run', $thread, $run);
    my %body = %{ $row->{body} };
    is_deeply [ map { $_->{content} } @{ (delete $body{values})->{messages} } ], [ 'question', 'answer' ];
    like delete $body{run_started_at}, qr/\A\d{4}-\d\d-\d\dT[\d:.]+\+00:00\z/;
    is delete $body{run_ended_at}, $record->{updated_at};
    is_deeply \%body, $record, 'the rest is the run as the API shows it';
    is $body{status}, 'success';
    is $body{error}, undef;
};

subtest 'the webhook of a failed run has its error' => sub {
    for my $status (qw(error timeout)) {
        my $run = hooked_run($play->thread);
        my ($claim) = $play->claim($worker);
        $play->save($worker, AgentSQL::Play::finish($claim, $status, { error => 'Kind', message => 'why' }));
        my $body = only_row($run)->{body};
        is $body->{status}, $status;
        is_deeply $body->{error}, { error => 'Kind', message => 'why' };
        is $body->{values}, undef, 'no values';
    }
};

subtest 'the webhook of a run cancelled before its start has no start time' => sub {
    my $thread = $play->thread;
    my $run = hooked_run($thread);
    cancel($thread, $run, 'interrupt');
    my $body = only_row($run)->{body};
    is $body->{status}, 'interrupted';
    is $body->{run_started_at}, undef;
};

subtest 'the webhook of a run cancelled while leased has its last values' => sub {
    my $thread = $play->thread;
    my $run = hooked_run($thread);
    my ($claim) = $play->claim($worker);
    $play->save($worker, AgentSQL::Play::checkpoint($claim, messages => ['half']));
    cancel($thread, $run, 'interrupt');
    $play->save($worker, AgentSQL::Play::finish($claim, 'interrupted'));
    my $body = only_row($run)->{body};
    is $body->{status}, 'interrupted';
    is $body->{values}{messages}[0]{content}, 'half';
};

subtest 'a run interrupted by another one has a webhook, ready or leased' => sub {
    my $thread = $play->thread;
    my $waiting = hooked_run($thread);
    my $next = $play->run($thread, strategy => 'interrupt');
    is only_row($waiting)->{body}{status}, 'interrupted', 'ready';
    cancel($thread, $next, 'interrupt');

    my $run = hooked_run($thread);
    my ($claim) = $play->claim($worker);
    $next = $play->run($thread, strategy => 'interrupt');
    is_deeply [ outbox() ], [], 'no row until its worker has stopped';
    $play->save($worker, AgentSQL::Play::finish($claim, 'interrupted'));
    is only_row($run)->{body}{status}, 'interrupted', 'leased';
    cancel($thread, $next, 'interrupt');
};

subtest 'the webhook of a run that was rolled back has rolled_back' => sub {
    my $thread = $play->thread;
    my $run = hooked_run($thread);
    cancel($thread, $run, 'rollback');
    is $play->status($thread, $run), 'run_not_found';
    my $body = only_row($run)->{body};
    is $body->{status}, 'interrupted', 'ready';
    ok $body->{rolled_back};
    is $body->{values}, undef;
    like $body->{run_ended_at}, qr/\A\d{4}/;
    is $body->{kwargs}{input}{a}, 1;

    $run = hooked_run($thread);
    my ($claim) = $play->claim($worker);
    $play->save($worker, AgentSQL::Play::checkpoint($claim, messages => ['half']));
    my $next = $play->run($thread, strategy => 'rollback');
    $play->save($worker, AgentSQL::Play::finish($claim));
    $body = only_row($run)->{body};
    is $body->{status}, 'interrupted', 'leased, whatever status its worker reports';
    is $body->{values}, undef;
    like $body->{run_started_at}, qr/\A\d{4}/;
    cancel($thread, $next, 'interrupt');
};

subtest 'a run that lost its runner or worker too often has a webhook' => sub {
    for my $how (qw(release_runs mark_worker_dead)) {
        my $thread = $play->thread;
        my $run = hooked_run($thread);
        for my $attempt (1 .. 3) {
            is_deeply [ outbox() ], [], "no row before attempt $attempt";
            $session->query('update agent.run_queue set not_before = null');
            my $by = $play->worker;
            my ($claim) = $play->claim($by);
            $how eq 'release_runs' ? $play->release($by, 'true', $claim)
                : $session->query("select agent.mark_worker_dead($by, true, 100)");
        }
        my $body = only_row($run)->{body};
        is $body->{status}, 'error';
        is $body->{error}{error}, $how eq 'release_runs' ? 'poison' : 'worker_lost';
    }
};

subtest 'a cancelled run whose worker was lost has a webhook' => sub {
    for my $action (qw(interrupt rollback)) {
        my $thread = $play->thread;
        my $run = hooked_run($thread);
        my ($claim) = $play->claim($worker);
        cancel($thread, $run, $action);
        $play->release($worker, 'true', $claim);
        is only_row($run)->{body}{status}, 'interrupted', $action;
    }
};

subtest 'a webhook omits values of more than 1 MiB' => sub {
    my $thread = $play->thread;
    my $run = hooked_run($thread);
    my ($claim) = $play->claim($worker);
    $play->save($worker, AgentSQL::Play::checkpoint($claim, messages => [ 'x' x 1_048_600 ]),
        AgentSQL::Play::finish($claim));
    my $body = only_row($run)->{body};
    is $body->{values}, undef, 'values is null';
    ok $body->{values_omitted}, 'values_omitted is true';
};

subtest 'the webhook of a stateless run has no values and survives the thread' => sub {
    my ($thread, $run) = $play->stateless(webhook => $URL);
    my ($claim) = $play->claim($worker);
    $play->save($worker, AgentSQL::Play::checkpoint($claim, messages => ['x']), AgentSQL::Play::finish($claim));
    at('2100-01-01T00:00:00Z');
    is $session->value('select count(*) from agent.expire_threads()'), 1;
    my ($delivery) = claim($worker);
    my $body = AgentSQL::decode($delivery->[4]);
    is $body->{status}, 'success';
    ok $body->{kwargs}{temporary};
    ok !exists $body->{values};
    $session->query('reset agent.now');
    only_row($run);
};

subtest 'a run without a webhook inserts no row' => sub {
    my $thread = $play->thread;
    $play->run($thread);
    my ($claim) = $play->claim($worker);
    $play->save($worker, AgentSQL::Play::finish($claim));
    cancel($thread, $play->run($thread), $_) for qw(interrupt rollback);
    is_deeply [ outbox() ], [];
};

subtest 'each run of a batch inserts its own row' => sub {
    my %runs = map { hooked_run($play->thread) => 1 } 1 .. 20;
    my @claims = $play->claim($worker);
    my @batch = map { AgentSQL::Play::finish($_) } @claims;
    $play->save($worker, @batch) for 1, 2;
    is_deeply [ sort map { $_->{run_id} } outbox() ], [ sort keys %runs ], 'one row per run, also when the batch is repeated';
    $session->query('delete from agent.webhook_outbox');
};

subtest 'an end that is not committed inserts no row' => sub {
    my $thread = $play->thread;
    my $run = hooked_run($thread);
    $session->query('begin');
    cancel($thread, $run, 'interrupt');
    is scalar outbox(), 1, 'visible in its transaction';
    $session->query('rollback');
    is_deeply [ outbox() ], [];
    is $play->status($thread, $run), 'pending';
    cancel($thread, $run, 'interrupt');
    only_row($run);
};

subtest 'the deletion of run and thread keeps the webhook' => sub {
    my $thread = $play->thread;
    my $run = hooked_run($thread);
    my ($claim) = $play->claim($worker);
    $play->save($worker, AgentSQL::Play::checkpoint($claim, messages => ['kept']), AgentSQL::Play::finish($claim));
    is +($play->api('delete_run', $thread, $run))[0], 'ok';
    is +($play->api('delete_thread', $thread))[0], 'ok';
    my ($delivery) = claim($worker);
    is AgentSQL::decode($delivery->[4])->{values}{messages}[0]{content}, 'kept';
    only_row($run);
};

# ---- delivery ----

subtest 'each claim returns the same body, with the time of sending' => sub {
    my $run = ended_run();
    my @bodies;
    for my $attempt (1, 2) {
        at("2040-01-01T00:00:0${attempt}Z");
        my ($delivery) = claim($worker);
        is_deeply [ @{$delivery}[ 0 .. 3 ] ], [ $AgentSQL::ACCOUNT, $run, $attempt, $URL ];
        push @bodies, AgentSQL::decode($delivery->[4]);
        is delete $bodies[-1]{webhook_sent_at}, "2040-01-01T00:00:0$attempt.000000+00:00";
        $session->query('update agent.webhook_outbox set due_at = agent.now()');
    }
    is_deeply $bodies[1], $bodies[0];
    $session->query('delete from agent.webhook_outbox');
    $session->query('reset agent.now');
};

subtest 'a claimed webhook cannot be claimed again until its lease ends' => sub {
    at('2040-01-01T00:00:00Z');
    my $run = ended_run();
    my $other = $play->worker;
    is scalar claim($worker), 1;
    is scalar claim($_), 0 for $worker, $other;
    at('2040-01-01T00:00:29Z');
    is scalar claim($other), 0, 'the lease holds after 29 s';
    at('2040-01-01T00:00:31Z');
    my ($delivery) = claim($other);
    is $delivery->[2], 2, 'the second attempt begins after 31 s';
    is_deeply [ save($worker, result([ $AgentSQL::ACCOUNT, $run, 1 ], 'failed')) ], [ [ $run, 'gone', '' ] ],
        'the former holder cannot fail it';
    is_deeply [ save($worker, result([ $AgentSQL::ACCOUNT, $run, 2 ], 'refused')) ], [ [ $run, 'gone', '' ] ],
        'the former holder cannot fail the attempt of another worker';
    is [ outbox() ]->[0]{worker_id}, $other;
    is_deeply [ save($worker, result([ $AgentSQL::ACCOUNT, $run, 1 ], 'delivered')) ], [ [ $run, 'delivered', '' ] ],
        'the former holder can report the delivery';
    is_deeply [ save($other, result($delivery, 'failed')) ], [ [ $run, 'gone', '' ] ];
    is_deeply [ outbox() ], [];
    $session->query('reset agent.now');
};

subtest 'two concurrent claims share the due webhooks, and neither waits' => sub {
    my %runs = map { ended_run() => 1 } 1 .. 10;
    my @sessions = map { $db->session } 1, 2;
    my @workers = map { $play->worker } 1, 2;
    my @got;
    for my $i (0, 1) {
        $sessions[$i]->query('begin');
        push @got, map { $_->[1] } $sessions[$i]->query(
            "select * from agent.claim_webhooks($workers[$i], 6, 64, 1000000, 30)");
        is scalar @got, $i ? 10 : 6;
    }
    $_->query('commit') for @sessions;
    is_deeply [ sort @got ], [ sort keys %runs ], 'each webhook once';
    $session->query('delete from agent.webhook_outbox');
};

subtest 'a claim ends with the body that reaches max_bytes' => sub {
    ended_run() for 1 .. 4;
    my $bytes = $session->value('select min(body_bytes) from agent.webhook_outbox');
    is scalar claim($worker, max_bytes => 2 * $bytes), 2;
    is scalar claim($worker, max_bytes => 1), 1, 'at least one';
    is scalar claim($worker, max_bytes => 0), 0, 'none with 0 bytes';
    is scalar claim($worker, limit => 1), 1;
    $session->query('delete from agent.webhook_outbox');
};

# Many webhooks that are due for one receiver, the longest due first.
sub fill_outbox {
    my ($count, $url, $due) = @_;
    return $session->query("insert into agent.webhook_outbox "
        . "(account_id, run_id, thread_id, url, body, body_bytes, due_at, created_at) "
        . "select '$AgentSQL::ACCOUNT', gen_random_uuid(), gen_random_uuid(), '$url', '{}', 2, "
        . "agent.now() - interval '$due' + n * interval '1 microsecond', agent.now() from generate_series(1, $count) n");
}

sub claimed_urls {
    my %urls;
    $urls{ $_->[3] }++ for @_;
    return \%urls;
}

subtest 'a receiver gets half of the room that it does not hold' => sub {
    fill_outbox(500, 'https://slow.example/a', '1 hour');
    is scalar claim($worker, room => 64), 32, 'half of all';
    is scalar claim($worker, room => 32), 0, 'none while it holds half';
    is scalar claim($worker, room => 40), 4, 'more when room grows';
    is scalar claim($worker, room => 40), 2;
    fill_outbox(500, 'https://slow.example:8443/a', '30 minutes');
    is_deeply claimed_urls(claim($worker, room => 28)), { 'https://slow.example:8443/a' => 14 },
        'another port is another receiver';
    fill_outbox(1, 'https://quick.example/', '1 second');
    is_deeply claimed_urls(claim($worker, room => 14)), { 'https://quick.example/' => 1 },
        'a backlog of others does not delay a receiver';
    is scalar claim($play->worker, room => 1, limit => 1), 1, 'the last slot is given too';
    $session->query('delete from agent.webhook_outbox');
};

subtest 'a receiver is the host and port of a URL, however it is written' => sub {
    fill_outbox(1, "$_", '1 minute')
        for 'https://hooks.example/a', 'HTTPS://HOOKS.example/b?c', 'https://u:p@w@hooks.example#d', 'https://hooks.example?/@x';
    is $session->value('select count(distinct receiver) from agent.webhook_outbox'), 1;
    $session->query('delete from agent.webhook_outbox');
};

subtest 'the longest due webhooks of a receiver come first' => sub {
    fill_outbox(10, 'https://a.example/late', '1 minute');
    fill_outbox(10, 'https://a.example/early', '1 hour');
    is_deeply claimed_urls(claim($worker, limit => 10)), { 'https://a.example/early' => 10 };
    $session->query('delete from agent.webhook_outbox');
};

subtest 'each receiver is sometimes the first' => sub {
    my @urls = map { "https://r$_.example/" } 1 .. 5;
    fill_outbox(100, $_, '1 hour') for @urls;
    my %seen;
    until (keys %seen == @urls) {
        my ($delivery) = claim($worker, limit => 1);
        $seen{ $delivery->[3] }++;
        $session->query("update agent.webhook_outbox set worker_id = null, attempts = 0, due_at = created_at");
    }
    pass 'every receiver was first once';
    $session->query('delete from agent.webhook_outbox');
};

subtest 'a claim finds due webhooks beside 20,000 receivers without any' => sub {
    $session->query("insert into agent.webhook_outbox "
        . "(account_id, run_id, thread_id, url, body, body_bytes, due_at, created_at) "
        . "select '$AgentSQL::ACCOUNT', gen_random_uuid(), gen_random_uuid(), 'https://down.example:' || n || '/', "
        . "'{}', 2, agent.now() + interval '1 hour', agent.now() from generate_series(1, 20000) n");
    fill_outbox(3, 'https://up.example/', '1 minute');
    $session->query('begin');
    my $read = "select coalesce(idx_tup_fetch, 0) + seq_tup_read from pg_stat_xact_user_tables "
        . "where relid = 'agent.webhook_outbox'::regclass";
    my $before = $session->value($read);
    is_deeply claimed_urls(claim($worker)), { 'https://up.example/' => 3 };
    my $rows = $session->value($read) - $before;
    $session->query('commit');
    cmp_ok $rows, '<', 5000, "$rows rows read";
    $session->query('delete from agent.webhook_outbox');
};

subtest 'a worker that is not live claims no webhook' => sub {
    ended_run();
    my $dead = $play->worker;
    $session->query("select agent.mark_worker_dead($dead, true, 100)");
    is scalar claim($_), 0 for $dead, 0;
    my $draining = $play->worker;
    $session->query("select agent.renew_worker($draining, 20, true)");
    is scalar claim($draining), 0, 'a draining worker claims no webhook';
    is scalar claim($worker), 1;
    $session->query('delete from agent.webhook_outbox');
};

subtest 'marking a worker dead makes its webhooks due' => sub {
    my $run = ended_run();
    my $lost = $play->worker;
    is scalar claim($lost), 1;
    is scalar claim($worker), 0;
    $session->query("select agent.mark_worker_dead($lost, true, 100)");
    my ($delivery) = claim($worker);
    is $delivery->[1], $run;
    is $delivery->[2], 2;
    is_deeply [ save($worker, result($delivery, 'delivered')) ], [ [ $run, 'delivered', '' ] ];
};

subtest 'mark_worker_dead does not wait for a result that is being saved' => sub {
    my $lost = $play->worker;
    ended_run();
    my ($delivery) = claim($lost);
    my $other = $db->session;
    $other->query('begin');
    $other->query(sprintf "select * from agent.save_webhooks(%d, %s)", $lost,
        AgentSQL::Session::literal(AgentSQL::encode([ result($delivery, 'failed') ])));
    $session->query("select agent.mark_worker_dead($lost, true, 100)");
    $other->query('commit');
    is [ outbox() ]->[0]{last_error}, 'status 500';
    $session->query('delete from agent.webhook_outbox');
};

subtest 'failed attempts are repeated over 23 hours, then the webhook is given up' => sub {
    my $run = ended_run();
    my @delays = (1, 5, 25, 125, 625, 3125, 15625, 21600, 21600, 21600);
    my $sum = 0;
    for my $attempt (1 .. 10) {
        at("2050-01-01T00:00:00Z");
        $session->query('update agent.webhook_outbox set due_at = agent.now()');
        my ($delivery) = claim($worker);
        is $delivery->[2], $attempt;
        my ($row) = save($worker, result($delivery, 'failed'));
        is $row->[1], 'again';
        my $wait = $session->value('select extract(epoch from due_at - agent.now()) from agent.webhook_outbox');
        cmp_ok abs($wait / $delays[ $attempt - 1 ] - 1), '<=', 0.2001, "$delays[$attempt - 1] s +-20 % after attempt $attempt";
        cmp_ok abs($row->[2] - $wait), '<=', 1, 'next_sec is the delay';
        is [ outbox() ]->[0]{last_error}, 'status 500';
        $sum += $delays[ $attempt - 1 ];
    }
    cmp_ok $sum / 3600, '>', 23;
    cmp_ok $sum / 3600, '<', 24;
    $session->query('update agent.webhook_outbox set due_at = agent.now()');
    my ($delivery) = claim($worker);
    is_deeply [ save($worker, result($delivery, 'failed', t => 'last error')) ], [ [ $run, 'dead', '' ] ];
    is scalar claim($worker), 0;
    my ($row) = outbox();
    is $row->{attempts}, 11;
    is $row->{last_error}, 'last error', 'the row is kept, with the last error';
    is $session->value("select dead_at = '2050-01-01T00:00:00Z' from agent.webhook_outbox"), 't';
    $session->query('delete from agent.webhook_outbox');
    $session->query('reset agent.now');
};

subtest 'webhooks that failed together are not repeated together' => sub {
    ended_run() for 1 .. 30;
    my @claimed = claim($worker);
    save($worker, map { result($_, 'failed') } @claimed);
    cmp_ok $session->value('select count(distinct due_at) from agent.webhook_outbox'), '>', 25;
    $session->query('delete from agent.webhook_outbox');
};

subtest 'the receiver may ask for a longer delay, up to 6 hours, not for a shorter one' => sub {
    at('2050-01-01T00:00:00Z');
    for my $case ([ 60, 60, 60 ], [ 100_000, 21600, 21600 ], [ 0, 0.8, 1.2 ]) {
        my ($asked, $least, $most) = @$case;
        ended_run();
        my ($delivery) = claim($worker);
        save($worker, result($delivery, 'failed', s => $asked));
        my $wait = $session->value('select extract(epoch from due_at - agent.now()) from agent.webhook_outbox');
        cmp_ok $wait, '>=', $least, "asked for $asked";
        cmp_ok $wait, '<=', $most;
        $session->query('delete from agent.webhook_outbox');
    }
    $session->query('reset agent.now');
};

subtest 'a refused webhook is given up at once, also when the result is saved twice' => sub {
    my $run = ended_run();
    my ($delivery) = claim($worker);
    is_deeply [ save($worker, result($delivery, 'refused', s => 5)) ], [ [ $run, 'dead', '' ] ];
    is_deeply [ save($worker, result($delivery, 'refused')) ], [ [ $run, 'gone', '' ] ];
    is scalar claim($worker), 0;
    $session->query('delete from agent.webhook_outbox');
};

subtest 'a webhook whose last attempt is lost is given up' => sub {
    my $run = ended_run();
    $session->query("update agent.webhook_outbox set attempts = 10, last_error = 'status 500'");
    my $lost = $play->worker;
    is [ claim($lost) ]->[0][2], 11;
    $session->query("select agent.mark_worker_dead($lost, true, 100)");
    is scalar claim($worker), 0;
    is [ outbox() ]->[0]{last_error}, 'status 500; lost during the last attempt';
    ok [ outbox() ]->[0]{dead_at};
    $session->query('delete from agent.webhook_outbox');
};

subtest 'webhooks that were given up are kept for the retention time' => sub {
    at('2050-01-01T00:00:00Z');
    my @runs = map { ended_run() } 1 .. 3;
    my @claimed = claim($worker, limit => 2);
    save($worker, result($claimed[0], 'refused'));
    at('2050-01-02T00:00:00Z');
    save($worker, result($claimed[1], 'refused'));
    at('2050-01-03T00:00:01Z');
    is $session->value("select agent.sweep_webhooks('2 days')"), 1;
    is_deeply [ sort map { $_->{run_id} } outbox() ], [ sort grep { $_ ne $claimed[0][1] } @runs ];
    is $session->value("select agent.sweep_webhooks('2 days')"), 0;
    $session->query('delete from agent.webhook_outbox');
    $session->query('reset agent.now');
};

subtest 'the same run id in two accounts is two webhooks' => sub {
    my $run = ended_run();
    my $guest = '00000000-0000-0000-0000-000000000002';
    $session->query("insert into agent.webhook_outbox select '$guest', run_id, thread_id, url, body, body_bytes,
        attempts, worker_id, due_at, created_at, last_error, dead_at from agent.webhook_outbox");
    my @claimed = claim($worker);
    is scalar @claimed, 2;
    my ($theirs) = grep { $_->[0] eq $guest } @claimed;
    is_deeply [ save($worker, result($theirs, 'delivered')) ], [ [ $run, 'delivered', '' ] ];
    only_row($run);
};

done_testing;
