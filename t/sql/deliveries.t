# SPDX-License-Identifier: Apache-2.0
# Delivery of webhooks: claims, results, retries, webhooks that are given up.
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

subtest 'each claim returns the same body, with the time of sending' => sub {
    my $run = $play->ended_run;
    my @bodies;
    for my $attempt (1, 2) {
        $play->at("2040-01-01T00:00:0${attempt}Z");
        my ($delivery) = $play->claim_webhooks($worker);
        is_deeply [ @{$delivery}[ 0 .. 3 ] ], [ $AgentSQL::DEPLOYMENT, $run, $attempt, $AgentSQL::Outbox::URL ];
        push @bodies, AgentSQL::decode($delivery->[4]);
        is delete $bodies[-1]{webhook_sent_at}, "2040-01-01T00:00:0$attempt.000000+00:00";
        $session->query('update agent.webhook_outbox set due_at = agent.now()');
    }
    is_deeply $bodies[1], $bodies[0];
    $session->query('delete from agent.webhook_outbox');
    $session->query('reset agent.now');
};

subtest 'a claimed webhook cannot be claimed again until its lease ends' => sub {
    $play->at('2040-01-01T00:00:00Z');
    my $run = $play->ended_run;
    my $other = $play->worker;
    is scalar $play->claim_webhooks($worker), 1;
    is scalar $play->claim_webhooks($_), 0 for $worker, $other;
    $play->at('2040-01-01T00:00:29Z');
    is scalar $play->claim_webhooks($other), 0, 'the lease holds after 29 s';
    $play->at('2040-01-01T00:00:31Z');
    my ($delivery) = $play->claim_webhooks($other);
    is $delivery->[2], 2, 'the second attempt begins after 31 s';
    is_deeply [ $play->save_webhooks($worker, AgentSQL::Outbox::result([ $AgentSQL::DEPLOYMENT, $run, 1 ], 'failed')) ], [ [ $run, 'gone', '' ] ],
        'the former holder cannot fail it';
    is_deeply [ $play->save_webhooks($worker, AgentSQL::Outbox::result([ $AgentSQL::DEPLOYMENT, $run, 2 ], 'refused')) ], [ [ $run, 'gone', '' ] ],
        'the former holder cannot fail the attempt of another worker';
    is [ $play->outbox ]->[0]{worker_id}, $other;
    is_deeply [ $play->save_webhooks($worker, AgentSQL::Outbox::result([ $AgentSQL::DEPLOYMENT, $run, 1 ], 'delivered')) ],
        [ [ $run, 'delivered', '' ] ],
        'the former holder can report the delivery';
    is_deeply [ $play->save_webhooks($other, AgentSQL::Outbox::result($delivery, 'failed')) ], [ [ $run, 'gone', '' ] ];
    is_deeply [ $play->outbox ], [];
    $session->query('reset agent.now');
};

subtest 'two concurrent claims share the due webhooks, and neither waits' => sub {
    my %runs = map { $play->ended_run => 1 } 1 .. 10;
    my @sessions = map { $db->session } 1, 2;
    my @workers = map { $play->worker } 1, 2;
    my @got;
    for my $i (0, 1) {
        $sessions[$i]->query('begin');
        push @got, map { $_->[1] } $sessions[$i]->query(
            "select * from agent.claim_webhooks($workers[$i], 6, 64, 1000000, 30, '{}', 0, 0)");
        is scalar @got, $i ? 10 : 6;
    }
    $_->query('commit') for @sessions;
    is_deeply [ sort @got ], [ sort keys %runs ], 'each webhook is claimed once';
    $session->query('delete from agent.webhook_outbox');
};

subtest 'a claim ends with the body that reaches half of max_bytes, for one receiver' => sub {
    $play->ended_run for 1 .. 4;
    my $bytes = $session->value('select min(body_bytes) from agent.webhook_outbox');
    is scalar $play->claim_webhooks($worker, max_bytes => 4 * $bytes - 2), 2;
    is scalar $play->claim_webhooks($play->worker, max_bytes => 1), 1, 'at least one';
    is scalar $play->claim_webhooks($play->worker, max_bytes => 0), 0, 'a claim of 0 bytes gets no webhook';
    is scalar $play->claim_webhooks($play->worker, limit => 1), 1;
    $session->query('delete from agent.webhook_outbox');
};

# Many webhooks that are due for one receiver, the longest due first.
sub fill_outbox {
    my ($count, $url, $due, %more) = @_;
    my $deployment = $more{deployment} // $AgentSQL::DEPLOYMENT;
    my $bytes = $more{bytes} // 2;
    return $session->query("insert into agent.webhook_outbox "
        . "(deployment_id, run_id, thread_id, url, body, body_bytes, due_at, created_at) "
        . "select '$deployment', gen_random_uuid(), gen_random_uuid(), '$url', '{}', $bytes, "
        . "agent.now() - interval '$due' + n * interval '1 microsecond', agent.now() from generate_series(1, $count) n");
}

sub claimed_urls {
    my %urls;
    $urls{ $_->[3] }++ for @_;
    return \%urls;
}

subtest 'a receiver gets half of the slots that other receivers do not hold' => sub {
    fill_outbox(500, 'https://slow.example/a', '1 hour');
    is scalar $play->claim_webhooks($worker, free => 64), 32, 'half of all';
    is scalar $play->claim_webhooks($worker, free => 32), 0, 'a receiver that holds half of the slots gets no more';
    is scalar $play->claim_webhooks($worker, free => 40), 4, 'a receiver gets more when slots become free';
    is scalar $play->claim_webhooks($worker, free => 40), 2;
    fill_outbox(500, 'https://slow.example:8443/a', '30 minutes');
    is_deeply claimed_urls($play->claim_webhooks($worker, free => 28)), { 'https://slow.example:8443/a' => 14 },
        'another port is another receiver';
    fill_outbox(1, 'https://quick.example/', '1 second');
    is_deeply claimed_urls($play->claim_webhooks($worker, free => 14)), { 'https://quick.example/' => 1 },
        'a backlog of others does not delay a receiver';
    is scalar $play->claim_webhooks($play->worker, free => 1, limit => 1), 1, 'the last slot is used too';
    $session->query('delete from agent.webhook_outbox');
};

my $GUEST = '00000000-0000-0000-0000-000000000002';
my %guaranteed = (deployments => [ $AgentSQL::DEPLOYMENT, $GUEST ], guaranteed => 16, guaranteed_bytes => 1000);

sub claimed_of {
    my %count;
    $count{ $_->[0] eq $GUEST ? 'guest' : 'own' }++ for @_;
    return \%count;
}

subtest 'a deployment leaves the others what is guaranteed to them' => sub {
    my ($free, $held) = (64, 0);
    fill_outbox(100, "https://silent$_.example/", '1 hour') for 1 .. 12;
    while (my @rows = $play->claim_webhooks($worker, %guaranteed, free => $free, limit => 16)) {
        $free -= @rows;
        $held += @rows;
    }
    is $held, 48, 'one that takes all it can get holds all but the part of the other';
    fill_outbox(100, "https://guest$_.example/", '1 minute', deployment => $GUEST) for 1 .. 12;
    $held = 0;
    while (my @rows = $play->claim_webhooks($worker, %guaranteed, free => $free, limit => 16)) {
        $free -= @rows;
        $held += grep { $_->[0] eq $GUEST } @rows;
    }
    is $held, 16, 'the other gets its part';
    is $free, 0, 'all slots are used';
    $session->query('delete from agent.webhook_outbox');
};

subtest 'bytes of bodies are guaranteed to a deployment as slots are' => sub {
    my ($left, $held) = (4000, 0);
    fill_outbox(100, "https://silent$_.example/", '1 hour', bytes => 100) for 1 .. 12;
    while (my @rows = $play->claim_webhooks($worker, %guaranteed, guaranteed => 0, max_bytes => $left)) {
        $left -= 100 * @rows;
        $held += @rows;
    }
    is $held, 30, 'one that takes all it can get leaves 1000 bytes of 4000';
    fill_outbox(1, 'https://guest.example/', '1 minute', deployment => $GUEST, bytes => 5000);
    is_deeply claimed_of($play->claim_webhooks($worker, %guaranteed, max_bytes => $left)), { guest => 1 },
        'a body that is larger than the part is delivered';
    fill_outbox(1, 'https://other.example/', '1 minute', deployment => $GUEST, bytes => 5000);
    is_deeply claimed_of($play->claim_webhooks($worker, %guaranteed, max_bytes => $left - 5000)), {}, 'one at a time';
    $session->query('delete from agent.webhook_outbox');
};

subtest 'deployments take turns, the one that holds the fewest slots first' => sub {
    fill_outbox(100, 'https://silent.example/', '1 hour');
    is scalar $play->claim_webhooks($worker, limit => 1), 1;
    fill_outbox(100, 'https://guest.example/', '1 minute', deployment => $GUEST);
    is_deeply claimed_of($play->claim_webhooks($worker, limit => 1)), { guest => 1 };
    is_deeply claimed_of($play->claim_webhooks($worker, limit => 10)), { own => 5, guest => 5 }, 'each gets half of a claim';
    fill_outbox(1, 'https://third.example/', '1 second', deployment => '00000000-0000-0000-0000-000000000003');
    is scalar $play->claim_webhooks($worker, limit => 10), 10, 'others get what a deployment does not need of its part';
    $session->query('delete from agent.webhook_outbox');

    fill_outbox(100, 'https://silent.example/', '1 hour');
    is scalar $play->claim_webhooks($worker, limit => 40), 40, 'one deployment holds 40 slots';
    fill_outbox(100, 'https://guest.example/', '1 minute', deployment => $GUEST);
    # In random order all of them would be of one deployment with a probability of 1e-12.
    is_deeply claimed_of(map { $play->claim_webhooks($worker, limit => 1) } 1 .. 40), { guest => 40 },
        'a deployment that holds fewer slots than another is first in each claim, until it holds as many';
    $session->query('delete from agent.webhook_outbox');
};

subtest 'a receiver of one deployment does not delay the same one of another' => sub {
    fill_outbox(100, 'https://hooks.example/', '1 hour');
    is scalar $play->claim_webhooks($worker, free => 64, %guaranteed), 24, 'half of what its deployment may hold';
    fill_outbox(2, 'https://hooks.example/', '1 minute', deployment => $GUEST);
    is_deeply claimed_of($play->claim_webhooks($worker, free => 40, limit => 4, %guaranteed)), { guest => 2 };
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
    is_deeply claimed_urls($play->claim_webhooks($worker, limit => 10)), { 'https://a.example/early' => 10 };
    $session->query('delete from agent.webhook_outbox');
};

subtest 'each receiver is sometimes the first' => sub {
    my @urls = map { "https://r$_.example/" } 1 .. 5;
    fill_outbox(100, $_, '1 hour') for @urls;
    my %seen;
    until (keys %seen == @urls) {
        my ($delivery) = $play->claim_webhooks($worker, limit => 1);
        $seen{ $delivery->[3] }++;
        $session->query("update agent.webhook_outbox set worker_id = null, attempts = 0, due_at = created_at");
    }
    pass 'every receiver was first once';
    $session->query('delete from agent.webhook_outbox');
};

subtest 'a claim finds due webhooks beside 20,000 receivers without any' => sub {
    $session->query("insert into agent.webhook_outbox "
        . "(deployment_id, run_id, thread_id, url, body, body_bytes, due_at, created_at) "
        . "select '$AgentSQL::DEPLOYMENT', gen_random_uuid(), gen_random_uuid(), 'https://down.example:' || n || '/', "
        . "'{}', 2, agent.now() + interval '1 hour', agent.now() from generate_series(1, 20000) n");
    fill_outbox(3, 'https://up.example/', '1 minute');
    $session->query('begin');
    my $read = "select coalesce(idx_tup_fetch, 0) + seq_tup_read from pg_stat_xact_user_tables "
        . "where relid = 'agent.webhook_outbox'::regclass";
    my $before = $session->value($read);
    is_deeply claimed_urls($play->claim_webhooks($worker)), { 'https://up.example/' => 3 };
    my $rows = $session->value($read) - $before;
    $session->query('commit');
    cmp_ok $rows, '<', 5000, "$rows rows read";
    $session->query('delete from agent.webhook_outbox');
};

subtest 'a worker that is not live claims no webhook' => sub {
    $play->ended_run;
    my $dead = $play->worker;
    $session->query("select agent.mark_worker_dead($dead, true, 100)");
    is scalar $play->claim_webhooks($_), 0 for $dead, 0;
    my $draining = $play->worker;
    $session->query("select agent.renew_worker($draining, 20, true)");
    is scalar $play->claim_webhooks($draining), 0, 'a draining worker claims no webhook';
    is scalar $play->claim_webhooks($worker), 1;
    $session->query('delete from agent.webhook_outbox');
};

subtest 'marking a worker dead makes its webhooks due' => sub {
    my $run = $play->ended_run;
    my $lost = $play->worker;
    is scalar $play->claim_webhooks($lost), 1;
    is scalar $play->claim_webhooks($worker), 0;
    $session->query("select agent.mark_worker_dead($lost, true, 100)");
    my ($delivery) = $play->claim_webhooks($worker);
    is $delivery->[1], $run;
    is $delivery->[2], 2;
    is_deeply [ $play->save_webhooks($worker, AgentSQL::Outbox::result($delivery, 'delivered')) ], [ [ $run, 'delivered', '' ] ];
};

subtest 'mark_worker_dead does not wait for a result that is being saved' => sub {
    my $lost = $play->worker;
    $play->ended_run;
    my ($delivery) = $play->claim_webhooks($lost);
    my $other = $db->session;
    $other->query('begin');
    $other->query(sprintf "select * from agent.save_webhooks(%d, %s)", $lost,
        AgentSQL::Session::literal(AgentSQL::encode([ AgentSQL::Outbox::result($delivery, 'failed') ])));
    $session->query("select agent.mark_worker_dead($lost, true, 100)");
    $other->query('commit');
    is [ $play->outbox ]->[0]{last_error}, 'status 500';
    $session->query('delete from agent.webhook_outbox');
};

subtest 'failed attempts are repeated over 23 hours, then the webhook is given up' => sub {
    my $run = $play->ended_run;
    my @delays = (1, 5, 25, 125, 625, 3125, 15625, 21600, 21600, 21600);
    my $sum = 0;
    for my $attempt (1 .. 10) {
        $play->at("2050-01-01T00:00:00Z");
        $session->query('update agent.webhook_outbox set due_at = agent.now()');
        my ($delivery) = $play->claim_webhooks($worker);
        is $delivery->[2], $attempt;
        my ($row) = $play->save_webhooks($worker, AgentSQL::Outbox::result($delivery, 'failed'));
        is $row->[1], 'again';
        my $wait = $session->value('select extract(epoch from due_at - agent.now()) from agent.webhook_outbox');
        cmp_ok abs($wait / $delays[ $attempt - 1 ] - 1), '<=', 0.2001, "$delays[$attempt - 1] s +-20 % after attempt $attempt";
        cmp_ok abs($row->[2] - $wait), '<=', 1, 'next_sec is the delay';
        is [ $play->outbox ]->[0]{last_error}, 'status 500';
        $sum += $delays[ $attempt - 1 ];
    }
    cmp_ok $sum / 3600, '>', 23;
    cmp_ok $sum / 3600, '<', 24;
    $session->query('update agent.webhook_outbox set due_at = agent.now()');
    my ($delivery) = $play->claim_webhooks($worker);
    is_deeply [ $play->save_webhooks($worker, AgentSQL::Outbox::result($delivery, 'failed', t => 'last error')) ], [ [ $run, 'dead', '' ] ];
    is scalar $play->claim_webhooks($worker), 0;
    my ($row) = $play->outbox;
    is $row->{attempts}, 11;
    is $row->{last_error}, 'last error', 'the row is kept, with the last error';
    is $session->value("select dead_at = '2050-01-01T00:00:00Z' from agent.webhook_outbox"), 't';
    $session->query('delete from agent.webhook_outbox');
    $session->query('reset agent.now');
};

subtest 'webhooks that failed together are not repeated together' => sub {
    $play->ended_run for 1 .. 30;
    my @claimed = $play->claim_webhooks($worker);
    $play->save_webhooks($worker, map { AgentSQL::Outbox::result($_, 'failed') } @claimed);
    cmp_ok $session->value('select count(distinct due_at) from agent.webhook_outbox'), '>', 25;
    $session->query('delete from agent.webhook_outbox');
};

subtest 'the receiver may ask for a longer delay, up to 6 hours, not for a shorter one' => sub {
    $play->at('2050-01-01T00:00:00Z');
    for my $case ([ 60, 60, 60 ], [ 100_000, 21600, 21600 ], [ 0, 0.8, 1.2 ]) {
        my ($asked, $least, $most) = @$case;
        $play->ended_run;
        my ($delivery) = $play->claim_webhooks($worker);
        $play->save_webhooks($worker, AgentSQL::Outbox::result($delivery, 'failed', s => $asked));
        my $wait = $session->value('select extract(epoch from due_at - agent.now()) from agent.webhook_outbox');
        cmp_ok $wait, '>=', $least, "asked for $asked";
        cmp_ok $wait, '<=', $most;
        $session->query('delete from agent.webhook_outbox');
    }
    $session->query('reset agent.now');
};

subtest 'a refused webhook is given up at once, also when the result is saved twice' => sub {
    my $run = $play->ended_run;
    my ($delivery) = $play->claim_webhooks($worker);
    is_deeply [ $play->save_webhooks($worker, AgentSQL::Outbox::result($delivery, 'refused', s => 5)) ], [ [ $run, 'dead', '' ] ];
    is_deeply [ $play->save_webhooks($worker, AgentSQL::Outbox::result($delivery, 'refused')) ], [ [ $run, 'gone', '' ] ];
    is scalar $play->claim_webhooks($worker), 0;
    $session->query('delete from agent.webhook_outbox');
};

subtest 'a webhook whose last attempt is lost is given up' => sub {
    my $run = $play->ended_run;
    $session->query("update agent.webhook_outbox set attempts = 10, last_error = 'status 500'");
    my $lost = $play->worker;
    is [ $play->claim_webhooks($lost) ]->[0][2], 11;
    $session->query("select agent.mark_worker_dead($lost, true, 100)");
    is scalar $play->claim_webhooks($worker), 0;
    is [ $play->outbox ]->[0]{last_error}, 'status 500; lost during the last attempt';
    ok [ $play->outbox ]->[0]{dead_at};
    $session->query('delete from agent.webhook_outbox');
};

subtest 'webhooks that were given up are kept for the retention time' => sub {
    $play->at('2050-01-01T00:00:00Z');
    my @runs = map { $play->ended_run } 1 .. 3;
    my @claimed = $play->claim_webhooks($worker, limit => 2);
    $play->save_webhooks($worker, AgentSQL::Outbox::result($claimed[0], 'refused'));
    $play->at('2050-01-02T00:00:00Z');
    $play->save_webhooks($worker, AgentSQL::Outbox::result($claimed[1], 'refused'));
    $play->at('2050-01-03T00:00:01Z');
    is $session->value("select agent.sweep_webhooks('2 days')"), 1;
    is_deeply [ sort map { $_->{run_id} } $play->outbox ], [ sort grep { $_ ne $claimed[0][1] } @runs ];
    is $session->value("select agent.sweep_webhooks('2 days')"), 0;
    $session->query('delete from agent.webhook_outbox');
    $session->query('reset agent.now');
};

subtest 'the same run id in two deployments is two webhooks' => sub {
    my $run = $play->ended_run;
    $session->query("insert into agent.webhook_outbox select '$GUEST', run_id, thread_id, url, body, body_bytes,
        attempts, worker_id, due_at, created_at, last_error, dead_at from agent.webhook_outbox");
    my @claimed = $play->claim_webhooks($worker);
    is scalar @claimed, 2;
    my ($theirs) = grep { $_->[0] eq $GUEST } @claimed;
    is_deeply [ $play->save_webhooks($worker, AgentSQL::Outbox::result($theirs, 'delivered')) ], [ [ $run, 'delivered', '' ] ];
    $play->only_row($run);
};

done_testing;
