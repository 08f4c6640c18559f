# SPDX-License-Identifier: Apache-2.0
# Webhooks: requests, outcomes, lost processes and statements.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Receiver;
use AgentTest::Wait;
use Cpanel::JSON::XS;
use Test::More;
use TestProxy;
use TestSupervisor;
use TestWebhook;

my $pg = start_cluster();

behaviour 'request: method, headers, signature, body' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $sv = start_sender($pg);
    my $run = hooked_run($sv, $receiver->url('/hook/x?token=s3cret&y=%20'), { do => 'step' });
    wait_delivered($run);
    my ($request) = $receiver->requests;
    is $request->{method}, 'POST', 'the method is POST';
    is $request->{path}, '/hook/x?token=s3cret&y=%20', 'path and query are those of the URL';
    my %headers = %{ $request->{headers} };
    is $headers{'content-type'}, 'application/json', 'Content-Type is application/json';
    is $headers{'webhook-id'}, $run, 'webhook-id is the id of the run';
    like $headers{'user-agent'}, qr/\Amod_agent/, 'User-Agent names mod_agent';
    cmp_ok abs($headers{'webhook-timestamp'} - time), '<', 60, 'webhook-timestamp is the time of sending';
    is $headers{'webhook-signature'}, signature_of($request), 'webhook-signature is HMAC-SHA256 over id, time and body';
    is $headers{expect}, undef, 'there is no Expect';
    my $body = decode_json($request->{body});
    is $body->{run_id}, $run, 'the body has the id of the run';
    is $body->{status}, 'success', 'the body has the status of the run';
    is $body->{error}, undef, 'the body of a successful run has no error';
    is ref $body->{values}, 'HASH', 'the body has the values of the run';
    like $body->{$_}, qr/\A\d{4}-\d\d-\d\dT[\d:.]+\+00:00\z/, "the body has $_"
        for qw(run_started_at run_ended_at webhook_sent_at created_at);
    is $sv->stop, 0, 'the supervisor exits with status 0';
    unlike $sv->log_text, qr/s3cret/, 'the query of the URL is not logged';
};

behaviour 'request: without a key it is not signed' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $sv = start_sender($pg, { key => undef });
    wait_delivered(hooked_run($sv, $receiver->url));
    my ($request) = $receiver->requests;
    ok !exists $request->{headers}{'webhook-signature'}, 'there is no webhook-signature';
    $sv->stop;
};

behaviour 'a failed attempt is repeated under the same id' => sub {
    my $receiver = AgentTest::Receiver->new(500, 200);
    my $sv = start_sender($pg);
    my $run = hooked_run($sv, $receiver->url);
    wait_delivered($run);
    my @requests = $receiver->requests;
    is scalar @requests, 2, 'there are two attempts';
    is $_->{headers}{'webhook-id'}, $run, 'each attempt has the same webhook-id' for @requests;
    is $_->{headers}{'webhook-signature'}, signature_of($_), 'each attempt is signed' for @requests;
    my @bodies = map { decode_json($_->{body}) } @requests;
    my @sent = map { delete $_->{webhook_sent_at} } @bodies;
    is_deeply $bodies[1], $bodies[0], 'each attempt has the same body, apart from the time of sending';
    cmp_ok $sent[0], 'lt', $sent[1], 'the time of sending is that of the attempt';
    $sv->stop;
};

behaviour '408, 425, 429 and 5xx are tried again, other statuses are not' => sub {
    my $sv = start_sender($pg);
    for my $status (408, 425, 429, 500, 502, 503, 599) {
        my $receiver = AgentTest::Receiver->new($status);
        wait_failed(hooked_run($sv, $receiver->url), qr/\Astatus $status\z/);
    }
    for my $status (400, 401, 404, 410, 499) {
        my $receiver = AgentTest::Receiver->new($status);
        wait_dead(hooked_run($sv, $receiver->url), qr/\Astatus $status\z/);
        is scalar $receiver->requests, 1, "status $status: there is one attempt";
    }
    for my $status (201, 202, 204, 299) {
        my $receiver = AgentTest::Receiver->new($status);
        wait_delivered(hooked_run($sv, $receiver->url));
    }
    $sv->stop;
};

behaviour 'a redirect is not followed' => sub {
    my $canary = AgentTest::Receiver->new;
    my $sv = start_sender($pg);
    for my $status (301, 302, 303, 307, 308) {
        my $receiver = AgentTest::Receiver->new(
            { status => $status, headers => 'Location: ' . $canary->url('/stolen') . "\r\n" });
        wait_dead(hooked_run($sv, $receiver->url), qr/\Astatus $status: redirects are not followed\z/);
        is scalar $receiver->requests, 1, "status $status: there is one attempt";
    }
    is $canary->connections, 0, 'no connection to the target of a redirect is made';
    $sv->stop;
};

behaviour 'Retry-After, in seconds or as a date, delays the next attempt' => sub {
    my $date = 'Fri, 31 Dec 2099 23:59:59 GMT';
    my $sv = start_sender($pg);
    for my $case ([ 3600, 3600, 3600 ], [ $date, 21_600, 21_600 ], [ 'soon', 0, 2 ], [ 0, 0, 2 ]) {
        my ($value, $least, $most) = @$case;
        my $receiver = AgentTest::Receiver->new({ status => 503, headers => "Retry-After: $value\r\n" });
        my $run = hooked_run($sv, $receiver->url);
        wait_failed($run, qr/503/);
        my $wait = outbox($run, 'extract(epoch from due_at - created_at)');
        cmp_ok $wait, '>=', $least, "Retry-After: $value is the shortest delay";
        cmp_ok $wait, '<', $most + 60, "Retry-After: $value adds no further delay";
        sql("delete from agent.webhook_outbox where run_id = '$run'");
    }
    $sv->stop;
};

behaviour 'a receiver that never answers delays no other receiver' => sub {
    my $silent = AgentTest::Receiver->new({ hang => 1 }, 200);
    my $receiver = AgentTest::Receiver->new;
    my $sv = start_sender($pg, { timeout_ms => 4000 });
    my $run = hooked_run($sv, $silent->url);
    $silent->wait_requests(1);
    for (1 .. 5) {
        my $other = hooked_run($sv, $receiver->url);
        wait_for('another delivery', sub { !outbox($other, 'run_id') });
    }
    is scalar $receiver->requests, 5, 'the webhooks of the other receiver are delivered';
    wait_delivered($run);
    is scalar $silent->requests, 2, 'the second attempt to the silent receiver succeeds';
    $sv->stop;
};

behaviour 'the outcome follows from the status, even if the rest of the response is cut' => sub {
    my $lines = join '', map { "line $_ of a response that is not read\n" } 1 .. 10_000;
    my $sv = start_sender($pg, { timeout_ms => 1000 });
    my $headers = join '', map { "X-$_: " . 'y' x 80 . "\r\n" } 1 .. 2000;
    for my $answer ({ body => $lines }, { body => 'x' x 100, stall => 1 }, { headers => $headers }) {
        my $receiver = AgentTest::Receiver->new({ status => 200, %{$answer} });
        wait_delivered(hooked_run($sv, $receiver->url));
    }
    my $receiver = AgentTest::Receiver->new({ status => 500, body => $lines });
    wait_failed(hooked_run($sv, $receiver->url), qr/\Astatus 500\z/);
    $sv->stop;
};

# The buffers of the sockets hold a few megabytes more than the supervisor reads.
behaviour 'a response is read up to 64 KB, then its connection is closed' => sub {
    my $length = 64 * 1024 * 1024;
    my $receiver = AgentTest::Receiver->new({ status => 200, body => 'x' x $length });
    my $sv = start_sender($pg);
    wait_delivered(hooked_run($sv, $receiver->url));
    wait_for('the end of the response', sub { $receiver->sent });
    cmp_ok +($receiver->sent)[0], '<', $length / 2, 'most of the response is not read';
    $sv->stop;
};

behaviour 'an invalid response head does no harm, 1xx is not a final status' => sub {
    my $sv = start_sender($pg, { timeout_ms => 1000 });
    my $odd = AgentTest::Receiver->new({ status => "200 \xff\x1b[31m\r\nX", headers => "\0bad\r\n" });
    my $run = hooked_run($sv, $odd->url);
    wait_for('the end of an attempt', sub { !outbox($run, 'run_id') || outbox($run, 'last_error') });
    pass 'an invalid response head ends the attempt';
    my $early = AgentTest::Receiver->new({ status => 103, stall => 1 });
    wait_failed(hooked_run($sv, $early->url), qr/\Ano answer in time\z/);
    $sv->stop;
};

behaviour 'a receiver that was down gets its webhook once it is up' => sub {
    my $receiver = AgentTest::Receiver->new;
    $receiver->stop;
    my $sv = start_sender($pg);
    my $run = hooked_run($sv, $receiver->url);
    wait_failed($run, qr/connect/i);
    $receiver->start;
    wait_delivered($run);
    is [ $receiver->requests ]->[0]{headers}{'webhook-id'}, $run, 'webhook-id is the id of the run';
    $sv->stop;
};

behaviour 'a host name that does not resolve is tried again' => sub {
    my $sv = start_sender($pg);
    wait_failed(hooked_run($sv, 'http://nobody.test/'), qr/resolve/i);
    $sv->stop;
};

behaviour 'kill -9 during a delivery: the next supervisor repeats it' => sub {
    my $receiver = AgentTest::Receiver->new({ hang => 1 }, 200);
    my $sv = start_sender($pg);
    my $run = hooked_run($sv, $receiver->url);
    $receiver->wait_requests(1);
    $sv->signal('KILL');
    $sv->wait_exit;
    is outbox($run, 'attempts'), 1, 'one attempt was begun';
    my $next = start_sender($pg);
    wait_delivered($run);
    my @requests = $receiver->requests;
    is scalar @requests, 2, 'the next supervisor repeats the attempt before its lease ends';
    is $_->{headers}{'webhook-id'}, $run, 'each attempt has the same webhook-id' for @requests;
    $next->stop;
};

behaviour 'a worker that is declared dead during a claim of webhooks claims them again under its next id' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $sv = start_sender($pg, {}, lease_sec => 8);
    my $lock = hold_lock('lock table agent.webhook_outbox in access exclusive mode');
    wait_blocked('claim_webhooks');
    sql("update agent.workers set state = 'dead', dead_at = now() where state = 'live'");
    $sv->wait_log(qr/AGT0322/);
    # The claim under the first id must not take the delivery.
    sql('select pg_terminate_backend(pid, 10000) from pg_stat_activity '
        . "where wait_event_type = 'Lock' and query like '%claim_webhooks%'");
    release_lock($lock);
    add_delivery($receiver->url);
    wait_for('the delivery', sub { $receiver->requests });
    wait_for('the outcome to be saved', sub { poll('select count(*) from agent.webhook_outbox') == 0 });
    pass 'the webhook is delivered though no run ends';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

behaviour 'SIGTERM: webhooks that are being sent are due again at once' => sub {
    my $receiver = AgentTest::Receiver->new({ hang => 1 }, 200);
    my $sv = start_sender($pg, { timeout_ms => 60_000 });
    my $run = hooked_run($sv, $receiver->url);
    $receiver->wait_requests(1);
    is $sv->stop, 0, 'the supervisor exits with status 0';
    is outbox($run, 'worker_id is null and due_at <= now()'), 't', 'the webhook is due';
    my $next = start_sender($pg);
    wait_delivered($run);
    $next->stop;
};

behaviour 'drain: deliveries end, no other is begun' => sub {
    my $receiver = AgentTest::Receiver->new({ hang => 1 });
    my $sv = start_sender($pg, { timeout_ms => 1000 });
    my $run = hooked_run($sv, $receiver->url);
    $receiver->wait_requests(1);
    $sv->signal('USR1');
    $sv->wait_log(qr/AGT0350/);
    my $late = create_run({ do => 'noop' }, webhook => $receiver->url);
    sql("select code from agent.cancel_run('$TestSupervisor::DEPLOYMENT', "
        . "(select thread_id from agent.runs where run_id = '$late'), '$late', 'interrupt')");
    is $sv->wait_exit, 0, 'the supervisor exits with status 0';
    is outbox($run, 'last_error'), 'no answer in time', 'the attempt in progress has ended';
    is outbox($late, 'attempts'), 0, 'a webhook that was added later is not sent';
};

behaviour 'drain: webhooks that a claim in flight returns are released' => sub {
    my $receiver = AgentTest::Receiver->new({ hang => 1 });
    my $sv = start_sender($pg, { timeout_ms => 300_000 }, lease_sec => 40);
    my $gate = make_gate();
    # The drain waits for this run.
    my $run = $sv->start_run({ do => 'gate', path => $gate });
    my $lock = hold_lock('select from agent.workers for update');
    add_delivery($receiver->url);
    wait_blocked('claim_webhooks');
    $sv->signal('USR1');
    $sv->wait_log(qr/AGT0350/);
    release_lock($lock);
    open_gate($gate);
    is $sv->wait_exit, 0, 'the supervisor exits with status 0';
    unlike $sv->log_text, qr/AGT0353/, 'the final writes succeed';
    is sql('select worker_id is null and due_at <= now() from agent.webhook_outbox'), 't', 'the webhook is due';
    is $receiver->connections, 0, 'no connection is made';
};

behaviour 'receivers that never answer leave slots for other receivers' => sub {
    my @hanging = map { AgentTest::Receiver->new({ hang => 1 }) } 1 .. 3;
    my $good = AgentTest::Receiver->new;
    # No attempt ends within this test.
    my $sv = start_sender($pg, { timeout_ms => 300_000 });
    sql("insert into agent.webhook_outbox (deployment_id, run_id, thread_id, url, body, body_bytes, due_at, created_at) "
        . "select '$TestSupervisor::DEPLOYMENT', gen_random_uuid(), gen_random_uuid(), '" . $_->url . "', '{}', 2, "
        . "now() - interval '1 hour', now() from generate_series(1, 100)") for @hanging;
    $sv->wake('C');
    my $held = 'select count(*) from agent.webhook_outbox where worker_id is not null';
    wait_for('them to hold most slots', sub { poll($held) > 40 });
    wait_delivered(hooked_run($sv, $good->url)) for 1 .. 20;
    cmp_ok sql($held), '<', 64, 'receivers that never answer do not hold all slots';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

# Slots, then bytes of bodies; the guest may have three quarters of them, or half if its runners are on another host.
for my $case ([ 'many webhooks', 'count(*)', 48, count => 100 ],
    [ 'large webhooks', 'coalesce(sum(body_bytes), 0)', 12 * 1024 * 1024, count => 10, bytes => 3_000_000 ],
    [ 'many webhooks of another host', 'count(*)', 32, count => 100, elsewhere => 1 ])
{
    my ($what, $sum, $part, %add) = @$case;
    my @graphs = delete $add{elsewhere} ? 'agent' : qw(agent guest/agent);
    behaviour "$what of a deployment whose receivers never answer do not delay those of another" => sub {
        my @hanging = map { AgentTest::Receiver->new({ hang => 1 }) } 1 .. 10;
        my $good = AgentTest::Receiver->new;
        my $guest = sql("select agent.ensure_deployment('guest')");
        # No attempt ends within this test.
        my $sv = start_sender($pg, { timeout_ms => 300_000 }, graphs => { map { $_ => { kind => 'builtin' } } @graphs });
        add_delivery($_->url, deployment => $guest, %add) for @hanging;
        $sv->wake('C');
        my $held = "select $sum from agent.webhook_outbox where worker_id is not null";
        wait_for('them to hold all they can get', sub { poll($held) >= $part });
        wait_delivered(hooked_run($sv, $good->url)) for 1 .. 20;
        cmp_ok sql("$held and deployment_id = '$guest'"), '<', $part + ($add{bytes} // 1),
            'a deployment leaves the other what is guaranteed to it';
        is $sv->stop, 0, 'the supervisor exits with status 0';
    };
}

behaviour 'webhooks of runs that are cancelled or rolled back are delivered at once' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $sv = start_sender($pg, {}, graphs => { other => { kind => 'builtin' } });
    for my $action (qw(interrupt rollback)) {
        my $run = create_run({ do => 'noop' }, webhook => $receiver->url);
        sql("select code from agent.cancel_run('$TestSupervisor::DEPLOYMENT', "
            . "(select thread_id from agent.runs where run_id = '$run'), '$run', '$action')");
        $sv->wake('C');
        wait_for('the delivery', sub { grep { $_->{headers}{'webhook-id'} eq $run } $receiver->requests });
        pass "the webhook of a run is delivered after $action";
    }
    wait_for('both outcomes to be saved', sub { poll('select count(*) from agent.webhook_outbox') == 0 });
    $sv->stop;
};

behaviour 'a large body arrives complete' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $sv = start_sender($pg);
    my $run = hooked_run($sv, $receiver->url, { do => 'noop' }, pad => 3_000_000);
    wait_delivered($run);
    my ($request) = $receiver->requests;
    is length decode_json($request->{body})->{kwargs}{input}{pad}, 3_000_000, 'the body has 3 MB';
    is $request->{headers}{'webhook-signature'}, signature_of($request), 'the large body is signed';
    $sv->stop;
};

behaviour 'a connection is kept for the next webhook of its receiver' => sub {
    my $receiver = AgentTest::Receiver->new({ status => 200, keep => 1, body => 'thanks' });
    my $sv = start_sender($pg);
    wait_delivered(hooked_run($sv, $receiver->url)) for 1 .. 3;
    is $receiver->connections, 1, 'one connection is made';
    $sv->stop;
};

behaviour 'two supervisors deliver each of many webhooks once' => sub {
    my $receiver = AgentTest::Receiver->new({ status => 200, keep => 1 });
    my @svs = map { start_sender($pg, {}, node => "host-$_") } 1, 2;
    my @runs = create_each(150, { do => 'noop' }, webhook => $receiver->url);
    $_->wake for @svs;
    wait_for('all to be delivered', sub {
        poll("select count(*) from agent.runs where finished_at is null") == 0
            && poll('select count(*) from agent.webhook_outbox') == 0;
    });
    my @got = map { $_->{headers}{'webhook-id'} } $receiver->requests;
    is_deeply [ sort @got ], [ sort @runs ], 'each webhook arrives once';
    $_->stop for @svs;
};

for my $part (qw(request result)) {
    behaviour "the $part of a statement is lost: webhooks are delivered once" => sub {
        my $proxy = TestProxy->new($pg);
        my $receiver = AgentTest::Receiver->new;
        my $sv = start_sender($pg, {}, conninfo => $proxy->conninfo);
        my $run;
        $proxy->lose($part, 'claim_webhooks', sub { $run = hooked_run($sv, $receiver->url) },
            $part eq 'result' ? $receiver->url : ());
        # The claim was committed, unknown to the worker: due again after the lease.
        sql("update agent.webhook_outbox set due_at = now() where run_id = '$run'")
            if $part eq 'result';
        wait_delivered($run);
        is scalar $receiver->requests, 1, 'a webhook whose claim was lost is delivered once';
        $proxy->lose($part, 'save_webhooks', sub { $run = hooked_run($sv, $receiver->url) });
        wait_delivered($run);
        is scalar $receiver->requests, 2, 'a webhook whose outcome was lost is not delivered again';
        $sv->stop;
    };
}

behaviour 'a supervisor without webhooks does not claim any' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $sv = TestSupervisor->start($pg);
    $sv->wait_ready;
    my $run = hooked_run($sv, $receiver->url);
    my $other = start_sender($pg, {}, node => 'host-2');
    wait_delivered($run);
    unlike $sv->log_text, qr/AGT036/, 'the supervisor without webhooks logs nothing about them';
    $_->stop for $sv, $other;
};

behaviour 'webhooks that were given up are deleted after the retention time' => sub {
    my $sv = start_sender($pg, {}, retention_days => 1);
    my $receiver = AgentTest::Receiver->new(404);
    my $run = hooked_run($sv, $receiver->url);
    wait_dead($run, qr/404/);
    sql("update agent.webhook_outbox set dead_at = dead_at - interval '25 hours' where run_id = '$run'");
    $sv->stop;
    my $next = start_sender($pg, {}, retention_days => 1);
    wait_for('the row to be deleted', sub { !outbox($run, 'run_id') });
    pass 'the row is deleted';
    $next->stop;
};

done_testing;
