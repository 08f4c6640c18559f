# SPDX-License-Identifier: Apache-2.0
# Webhooks: requests, outcomes, and that none is lost.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Env qw(free_port);
use AgentTest::Receiver;
use AgentTest::Wait;
use Digest::SHA qw(hmac_sha256);
use File::Temp qw(tempdir);
use IO::Socket::INET;
use Cpanel::JSON::XS;
use MIME::Base64 qw(encode_base64);
use POSIX ();
use Test::More;
use TestProxy;
use TestSupervisor;

my $pg = start_cluster();
my $KEY = 'k' x 32;

# A supervisor that may call 127.0.0.1; more members of webhooks follow.
sub start_sender {
    my ($webhooks, %config) = @_;
    my $sv = TestSupervisor->start($pg, %config, webhooks => {
        allow => ['127.0.0.1'], ports => ['1-65535'], key => encode_base64($KEY, ''),
        timeout_ms => 30_000, %{ $webhooks // {} } });
    $sv->wait_ready;
    return $sv;
}

sub hooked_run {
    my ($sv, $url, $input, %more) = @_;
    my $run = create_run($input // { do => 'noop' }, webhook => $url, %more);
    $sv->wake;
    wait_final($run);
    return $run;
}

# A subtest that leaves nothing to be delivered by the next one's supervisor.
sub behaviour {
    my ($title, $code) = @_;
    return subtest $title => sub {
        $code->();
        sql('delete from agent.webhook_outbox');
    };
}

sub outbox {
    my ($run, $columns) = @_;
    return join ' ', sql("select $columns from agent.webhook_outbox where run_id = '$run'");
}

sub wait_delivered {
    my ($run) = @_;
    wait_final($run);
    wait_for("the webhook of $run to be delivered", sub { !outbox($run, 'run_id') });
    return pass 'it is delivered';
}

sub wait_dead {
    my ($run, $why) = @_;
    wait_for("the webhook of $run to be given up", sub { outbox($run, 'dead_at is not null') eq 't' });
    return like outbox($run, 'last_error'), $why, 'it is given up, and why is kept';
}

sub wait_failed {
    my ($run, $why) = @_;
    wait_for("the webhook of $run to fail", sub { outbox($run, 'last_error') });
    is outbox($run, 'dead_at is null'), 't', 'it will be tried again';
    return like outbox($run, 'last_error'), $why, 'why the attempt failed is kept';
}

sub signature_of {
    my ($request) = @_;
    my %headers = %{ $request->{headers} };
    my $signed = "$headers{'webhook-id'}.$headers{'webhook-timestamp'}.$request->{body}";
    return 'v1,' . encode_base64(hmac_sha256($signed, $KEY), '');
}

my $WAITING = "from pg_stat_activity where wait_event_type = 'Lock' and query like '%claim_webhooks%'";

# A session whose lock keeps a claim of deliveries waiting until it is closed.
sub hold_claims {
    my ($statement) = @_;
    open my $lock, '|-', 'psql', '-Xq', '-o', '/dev/null' or die "psql: $!\n";
    print {$lock} "begin; $statement;\n";
    $lock->flush;
    wait_for('the lock', sub { sql("select count(*) from pg_stat_activity "
        . "where state = 'idle in transaction' and application_name = 'psql'") });
    return $lock;
}

sub add_delivery {
    my ($url) = @_;
    return sql('insert into agent.webhook_outbox (account_id, run_id, thread_id, url, body, body_bytes, due_at, '
        . "created_at) select '$TestSupervisor::ACCOUNT', gen_random_uuid(), gen_random_uuid(), '$url', '{}', 2, "
        . 'now(), now()');
}

sub wait_claiming {
    return wait_for('the claim to wait', sub { sql("select count(*) $WAITING") });
}

behaviour 'request: method, headers, signature, body' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $sv = start_sender();
    my $run = hooked_run($sv, $receiver->url('/hook/x?token=s3cret&y=%20'), { do => 'step' });
    wait_delivered($run);
    my ($request) = $receiver->requests;
    is $request->{method}, 'POST';
    is $request->{path}, '/hook/x?token=s3cret&y=%20', 'the URL as it was given';
    my %headers = %{ $request->{headers} };
    is $headers{'content-type'}, 'application/json';
    is $headers{'webhook-id'}, $run, 'the id of the delivery is the run';
    like $headers{'user-agent'}, qr/\Amod_agent/;
    cmp_ok abs($headers{'webhook-timestamp'} - time), '<', 60, 'the time of sending';
    is $headers{'webhook-signature'}, signature_of($request), 'HMAC-SHA256 over id, time and body';
    is $headers{expect}, undef, 'no question before the body';
    my $body = decode_json($request->{body});
    is $body->{run_id}, $run;
    is $body->{status}, 'success';
    is $body->{error}, undef;
    is ref $body->{values}, 'HASH', 'the values that the run reached';
    like $body->{$_}, qr/\A\d{4}-\d\d-\d\dT[\d:.]+\+00:00\z/, $_
        for qw(run_started_at run_ended_at webhook_sent_at created_at);
    is $sv->stop, 0, 'the supervisor exits with status 0';
    unlike $sv->log_text, qr/s3cret/, 'the log does not show what may be a secret of the URL';
};

behaviour 'request: without a key it is not signed' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $sv = start_sender({ key => undef });
    wait_delivered(hooked_run($sv, $receiver->url));
    my ($request) = $receiver->requests;
    ok !exists $request->{headers}{'webhook-signature'};
    $sv->stop;
};

behaviour 'a failed attempt is repeated under the same id' => sub {
    my $receiver = AgentTest::Receiver->new(500, 200);
    my $sv = start_sender();
    my $run = hooked_run($sv, $receiver->url);
    wait_delivered($run);
    my @requests = $receiver->requests;
    is scalar @requests, 2, 'two attempts';
    is $_->{headers}{'webhook-id'}, $run, 'one id' for @requests;
    is $_->{headers}{'webhook-signature'}, signature_of($_), 'each is signed' for @requests;
    my @bodies = map { decode_json($_->{body}) } @requests;
    my @sent = map { delete $_->{webhook_sent_at} } @bodies;
    is_deeply $bodies[1], $bodies[0], 'one body';
    cmp_ok $sent[0], 'lt', $sent[1], 'but for the time of sending';
    $sv->stop;
};

behaviour '408, 425, 429 and 5xx are tried again, other statuses are not' => sub {
    my $sv = start_sender();
    for my $status (408, 425, 429, 500, 502, 503, 599) {
        my $receiver = AgentTest::Receiver->new($status);
        wait_failed(hooked_run($sv, $receiver->url), qr/\Astatus $status\z/);
    }
    for my $status (400, 401, 404, 410, 499) {
        my $receiver = AgentTest::Receiver->new($status);
        wait_dead(hooked_run($sv, $receiver->url), qr/\Astatus $status\z/);
        is scalar $receiver->requests, 1, 'one attempt';
    }
    for my $status (201, 202, 204, 299) {
        my $receiver = AgentTest::Receiver->new($status);
        wait_delivered(hooked_run($sv, $receiver->url));
    }
    $sv->stop;
};

behaviour 'a redirect is not followed' => sub {
    my $canary = AgentTest::Receiver->new;
    my $sv = start_sender();
    for my $status (301, 302, 303, 307, 308) {
        my $receiver = AgentTest::Receiver->new(
            { status => $status, headers => 'Location: ' . $canary->url('/stolen') . "\r\n" });
        wait_dead(hooked_run($sv, $receiver->url), qr/\Astatus $status: redirects are not followed\z/);
        is scalar $receiver->requests, 1;
    }
    is $canary->connections, 0, 'no connection reached the target of a redirect';
    $sv->stop;
};

behaviour 'Retry-After delays the next attempt, in seconds and as a date' => sub {
    my $date = 'Fri, 31 Dec 2099 23:59:59 GMT';
    my $sv = start_sender();
    for my $case ([ 3600, 3600, 3600 ], [ $date, 21_600, 21_600 ], [ 'soon', 0, 2 ], [ 0, 0, 2 ]) {
        my ($value, $least, $most) = @$case;
        my $receiver = AgentTest::Receiver->new({ status => 503, headers => "Retry-After: $value\r\n" });
        my $run = hooked_run($sv, $receiver->url);
        wait_failed($run, qr/503/);
        # From the claim on, which was a moment before the end.
        my $wait = outbox($run, 'extract(epoch from due_at - created_at)');
        cmp_ok $wait, '>=', $least, "Retry-After: $value";
        cmp_ok $wait, '<', $most + 60;
        sql("delete from agent.webhook_outbox where run_id = '$run'");
    }
    $sv->stop;
};

behaviour 'a receiver that never answers delays no other' => sub {
    my $silent = AgentTest::Receiver->new({ hang => 1 }, 200);
    my $receiver = AgentTest::Receiver->new;
    my $sv = start_sender({ timeout_ms => 4000 });
    my $run = hooked_run($sv, $silent->url);
    $silent->wait_requests(1);
    for (1 .. 5) {
        my $other = hooked_run($sv, $receiver->url);
        wait_for('another delivery', sub { !outbox($other, 'run_id') });
    }
    is scalar $receiver->requests, 5, 'runs and other deliveries go on';
    wait_delivered($run);
    is scalar $silent->requests, 2, 'at the second attempt';
    $sv->stop;
};

behaviour 'the status counts, even when the rest of the response is cut' => sub {
    my $lines = join '', map { "line $_ of a response that is not read\n" } 1 .. 10_000;
    my $sv = start_sender({ timeout_ms => 1000 });
    my $headers = join '', map { "X-$_: " . 'y' x 80 . "\r\n" } 1 .. 2000;
    for my $answer ({ body => $lines }, { body => 'x' x 100, stall => 1 }, { headers => $headers }) {
        my $receiver = AgentTest::Receiver->new({ status => 200, %{$answer} });
        wait_delivered(hooked_run($sv, $receiver->url));
    }
    my $receiver = AgentTest::Receiver->new({ status => 500, body => $lines });
    wait_failed(hooked_run($sv, $receiver->url), qr/\Astatus 500\z/);
    $sv->stop;
};

# The sockets' buffers take a few megabytes more than the supervisor reads.
behaviour 'a response is read up to 64 KB, then its connection is closed' => sub {
    my $length = 64 * 1024 * 1024;
    my $receiver = AgentTest::Receiver->new({ status => 200, body => 'x' x $length });
    my $sv = start_sender();
    wait_delivered(hooked_run($sv, $receiver->url));
    wait_for('the end of the response', sub { $receiver->sent });
    cmp_ok +($receiver->sent)[0], '<', $length / 2, 'the rest is not taken';
    $sv->stop;
};

behaviour 'responses that are not HTTP fail, 1xx is skipped' => sub {
    my $sv = start_sender({ timeout_ms => 1000 });
    my $odd = AgentTest::Receiver->new({ status => "200 \xff\x1b[31m\r\nX", headers => "\0bad\r\n" });
    my $run = hooked_run($sv, $odd->url);
    wait_for('an end', sub { !outbox($run, 'run_id') || outbox($run, 'last_error') });
    pass 'an odd response head is accepted';
    my $early = AgentTest::Receiver->new({ status => 103, stall => 1 });
    wait_failed(hooked_run($sv, $early->url), qr/\Ano answer in time\z/);
    $sv->stop;
};

behaviour 'a receiver that is down gets the delivery once it is up' => sub {
    my $receiver = AgentTest::Receiver->new;
    $receiver->stop;
    my $sv = start_sender();
    my $run = hooked_run($sv, $receiver->url);
    wait_failed($run, qr/connect/i);
    $receiver->start;
    wait_delivered($run);
    is [ $receiver->requests ]->[0]{headers}{'webhook-id'}, $run;
    $sv->stop;
};

behaviour 'a host name that does not resolve is tried again' => sub {
    my $sv = start_sender();
    wait_failed(hooked_run($sv, 'http://nobody.test/'), qr/resolve/i);
    $sv->stop;
};

behaviour 'kill -9 during a delivery: the next supervisor repeats it' => sub {
    my $receiver = AgentTest::Receiver->new({ hang => 1 }, 200);
    my $sv = start_sender();
    my $run = hooked_run($sv, $receiver->url);
    $receiver->wait_requests(1);
    $sv->signal('KILL');
    $sv->wait_exit;
    is outbox($run, 'attempts'), 1;
    my $next = start_sender();
    wait_delivered($run);
    my @requests = $receiver->requests;
    is scalar @requests, 2, 'its successor delivers it, not waiting for the lease';
    is $_->{headers}{'webhook-id'}, $run, 'under the same id' for @requests;
    $next->stop;
};

behaviour 'a worker that is declared dead while it claims deliveries claims again under its next id' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $sv = start_sender({}, lease_sec => 8);
    my $lock = hold_claims('lock table agent.webhook_outbox in access exclusive mode');
    wait_claiming();
    sql("update agent.workers set state = 'dead', dead_at = now() where state = 'live'");
    $sv->wait_log(qr/AGT0322/);
    # The claim under the first id must not take the delivery.
    sql("select pg_terminate_backend(pid, 10000) $WAITING");
    close $lock or die "psql failed\n";
    add_delivery($receiver->url);
    wait_for('the delivery', sub { $receiver->requests });
    wait_for('its end', sub { sql('select count(*) from agent.webhook_outbox') == 0 });
    pass 'no run had to end for it';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

behaviour 'SIGTERM: a delivery is due again at once' => sub {
    my $receiver = AgentTest::Receiver->new({ hang => 1 }, 200);
    my $sv = start_sender({ timeout_ms => 60_000 });
    my $run = hooked_run($sv, $receiver->url);
    $receiver->wait_requests(1);
    is $sv->stop, 0, 'the supervisor exits with status 0';
    is outbox($run, 'worker_id is null and due_at <= now()'), 't';
    my $next = start_sender();
    wait_delivered($run);
    $next->stop;
};

behaviour 'drain: deliveries end, none begins' => sub {
    my $receiver = AgentTest::Receiver->new({ hang => 1 });
    my $sv = start_sender({ timeout_ms => 1000 });
    my $run = hooked_run($sv, $receiver->url);
    $receiver->wait_requests(1);
    $sv->signal('USR1');
    $sv->wait_log(qr/AGT0350/);
    my $late = create_run({ do => 'noop' }, webhook => $receiver->url);
    sql("select code from agent.cancel_run('$TestSupervisor::ACCOUNT', "
        . "(select thread_id from agent.runs where run_id = '$late'), '$late', 'interrupt')");
    is $sv->wait_exit, 0, 'the supervisor exits with status 0';
    is outbox($run, 'last_error'), 'no answer in time', 'what was under way has ended';
    is outbox($late, 'attempts'), 0, 'what came later has not begun';
    sql('delete from agent.webhook_outbox');
};

behaviour 'drain: deliveries that are claimed as it begins are released' => sub {
    my $receiver = AgentTest::Receiver->new({ hang => 1 });
    my $sv = start_sender({ timeout_ms => 300_000 }, lease_sec => 40);
    my $gate = make_gate();
    my $run = create_run({ do => 'gate', path => $gate });
    $sv->wake;
    wait_for('a run that keeps the drain waiting', sub { events_of($run) >= 2 });
    my $lock = hold_claims('select from agent.workers for update');
    add_delivery($receiver->url);
    wait_claiming();
    $sv->signal('USR1');
    $sv->wait_log(qr/AGT0350/);
    close $lock or die "psql failed\n";
    open_gate($gate);
    is $sv->wait_exit, 0, 'the supervisor exits with status 0';
    unlike $sv->log_text, qr/AGT0353/, 'it leaves nothing undone';
    is sql('select worker_id is null and due_at <= now() from agent.webhook_outbox'), 't', 'the delivery is due';
    is $receiver->connections, 0, 'no connection is made';
};

behaviour 'receivers that never answer leave slots for others' => sub {
    my @hanging = map { AgentTest::Receiver->new({ hang => 1 }) } 1 .. 3;
    my $good = AgentTest::Receiver->new;
    # No attempt ends by itself.
    my $sv = start_sender({ timeout_ms => 300_000 });
    sql("insert into agent.webhook_outbox (account_id, run_id, thread_id, url, body, body_bytes, due_at, created_at) "
        . "select '$TestSupervisor::ACCOUNT', gen_random_uuid(), gen_random_uuid(), '" . $_->url . "', '{}', 2, "
        . "now() - interval '1 hour', now() from generate_series(1, 100)") for @hanging;
    $sv->wake('C');
    my $held = 'select count(*) from agent.webhook_outbox where worker_id is not null';
    wait_for('them to hold most places', sub { sql($held) > 40 });
    wait_delivered(hooked_run($sv, $good->url)) for 1 .. 20;
    cmp_ok sql($held), '<', 64, 'they never take all slots';
    is $sv->stop, 0, 'the supervisor exits with status 0';
};

behaviour 'cancelled and rolled back runs are delivered too, soon' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $sv = start_sender({}, graphs => { other => { kind => 'builtin' } });
    for my $action (qw(interrupt rollback)) {
        my $run = create_run({ do => 'noop' }, webhook => $receiver->url);
        sql("select code from agent.cancel_run('$TestSupervisor::ACCOUNT', "
            . "(select thread_id from agent.runs where run_id = '$run'), '$run', '$action')");
        $sv->wake('C');
        wait_for('the delivery', sub { grep { $_->{headers}{'webhook-id'} eq $run } $receiver->requests });
        pass $action;
    }
    wait_for('both to be saved', sub { sql('select count(*) from agent.webhook_outbox') == 0 });
    $sv->stop;
};

# A command that executes another one in a network of its own, in which the host
# has the address; empty where we may not make one.
sub within_network {
    my ($address) = @_;
    my @within = ('unshare', '-n', 'sh', '-c',
        "ip link set lo up && ip address add $address dev lo && exec \"\$@\"", 'sh');
    return system('unshare -n ip link >/dev/null 2>&1') == 0 ? @within : ();
}

behaviour 'addresses: this host is denied by its public address too' => sub {
    my @within = within_network('8.8.8.8/32');
    plan skip_all => 'no network of our own without being root' if !@within;
    my $sv = start_sender({}, within => \@within);
    wait_dead(hooked_run($sv, 'http://8.8.8.8:1/'), qr/\Arefused: expected a URL whose host this server may call/);
    wait_dead(hooked_run($sv, 'http://a.8-8-8-8.test:1/'), qr/\Arefused: the address 8\.8\.8\.8 may not be called/);
    $sv->stop;
    # In an empty network the attempt itself fails, and is repeated.
    $sv = start_sender({ allow => ['8.8.8.8'] }, within => \@within);
    wait_failed(hooked_run($sv, 'http://8.8.8.8:1/'), qr/connect/i);
    $sv->stop;
};

behaviour 'addresses: deny wins over allow' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $sv = start_sender({ allow => ['127.0.0.0/8', 'localhost'], deny => ['127.0.0.1'] });
    for my $host ('127.0.0.1', 'localhost') {
        wait_dead(hooked_run($sv, "http://$host:" . $receiver->port . '/'), qr/\Arefused: /);
    }
    is $receiver->connections, 0, 'no connection is made';
    $sv->stop;
};

behaviour 'addresses: private ones are denied' => sub {
    my $canary = AgentTest::Receiver->new;
    my $port = $canary->port;
    my $sv = start_sender({ allow => [] });
    # Whatever accepted the run: it may have been another server's rule.
    for my $host (qw(127.0.0.1 localhost 2130706433 0x7f.1 127.1 0 0.0.0.0 [::1] [::ffff:127.0.0.1])) {
        wait_dead(hooked_run($sv, "http://$host:$port/"), qr/\Arefused: expected a URL whose host this server may call\z/);
    }
    for my $host (qw(a.127-0-0-1.test a.127-8-8-8.test a.10-0-0-1.test a.169-254-169-254.test a.0-0-0-0.test
        a.100-64-0-1.test 127-0-0-1.10-0-0-1.192-168-0-1.test)) {
        my ($first) = reverse map { tr/-/./r } $host =~ /(\d+-\d+-\d+-\d+)/g;
        wait_dead(hooked_run($sv, "http://$host:$port/"),
            qr/\Arefused: the address \Q$first\E may not be called \(AgentWebhookAllow\)\z/);
    }
    is $canary->connections, 0, 'no connection is made';
    $sv->stop;
};

behaviour 'addresses: an allowed host may have any, and only its allowed ones are used' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $port = $receiver->port;
    my $sv = start_sender({ allow => ['mine.127-0-0-1.test'] });
    wait_delivered(hooked_run($sv, "http://MINE.127-0-0-1.test:$port/"));
    wait_dead(hooked_run($sv, "http://not.127-0-0-1.test:$port/"), qr/127\.0\.0\.1 may not be called/);
    is $receiver->connections, 1;
    $sv->stop;
    $sv = start_sender({ allow => ['127.0.0.0/8'] });
    wait_delivered(hooked_run($sv, "http://a.10-0-0-1.127-0-0-1.test:$port/"));
    is $receiver->connections, 2;
    $sv->stop;
};

behaviour 'addresses: other ports are denied' => sub {
    my $canary = AgentTest::Receiver->new;
    my $sv = start_sender({ ports => [ 80, '8000-8001' ] });
    wait_dead(hooked_run($sv, $canary->url), qr/expected a URL with one of the ports 80, 8000-8001\z/);
    is $canary->connections, 0;
    $sv->stop;
};

behaviour 'a proxy of the environment is not used' => sub {
    my $proxy = AgentTest::Receiver->new;
    my $receiver = AgentTest::Receiver->new;
    local @ENV{qw(http_proxy https_proxy all_proxy ALL_PROXY)} = ($proxy->url) x 4;
    my $sv = start_sender();
    wait_delivered(hooked_run($sv, $receiver->url));
    is $proxy->connections, 0;
    $sv->stop;
};

behaviour 'an untrusted certificate is refused' => sub {
    my $dir = tempdir('/tmp/agent-test-tls.XXXXXX', CLEANUP => 1);
    my $port = free_port();
    my @key = ('-keyout', "$dir/key", '-out', "$dir/certificate");
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        open STDIN, '<', '/dev/null';
        open $_, '>', "$dir/output" for \*STDOUT, \*STDERR;
        system(qw(openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=mine.127-0-0-1.test), @key) == 0
            and exec qw(openssl s_server -www -accept), "127.0.0.1:$port", '-key', "$dir/key",
            '-cert', "$dir/certificate";
        POSIX::_exit(127);
    }
    wait_for('a TLS server', sub { IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") });
    my $sv = start_sender();
    wait_failed(hooked_run($sv, "https://mine.127-0-0-1.test:$port/"), qr/certificate/i);
    $sv->stop;
    kill KILL => $pid;
    waitpid $pid, 0;
};

behaviour 'a large body arrives complete' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $sv = start_sender();
    my $run = hooked_run($sv, $receiver->url, { do => 'noop' }, pad => 3_000_000);
    wait_delivered($run);
    my ($request) = $receiver->requests;
    is length decode_json($request->{body})->{kwargs}{input}{pad}, 3_000_000;
    is $request->{headers}{'webhook-signature'}, signature_of($request);
    $sv->stop;
};

behaviour 'connections are kept for the next delivery' => sub {
    my $receiver = AgentTest::Receiver->new({ status => 200, keep => 1, body => 'thanks' });
    my $sv = start_sender();
    wait_delivered(hooked_run($sv, $receiver->url)) for 1 .. 3;
    is $receiver->connections, 1;
    $sv->stop;
};

behaviour 'many deliveries of two supervisors arrive once each' => sub {
    my $receiver = AgentTest::Receiver->new({ status => 200, keep => 1 });
    my @svs = map { start_sender({}, node => "host-$_") } 1, 2;
    my @runs = create_each(150, { do => 'noop' }, webhook => $receiver->url);
    $_->wake for @svs;
    wait_for('all to be delivered', sub {
        sql("select count(*) from agent.runs where finished_at is null") == 0
            && sql('select count(*) from agent.webhook_outbox') == 0;
    });
    my @got = map { $_->{headers}{'webhook-id'} } $receiver->requests;
    is_deeply [ sort @got ], [ sort @runs ];
    $_->stop for @svs;
};

for my $part (qw(request answer)) {
    behaviour "the $part of a statement is lost" => sub {
        my $proxy = TestProxy->new($pg);
        my $receiver = AgentTest::Receiver->new;
        my $sv = start_sender({}, conninfo => $proxy->conninfo);
        my $run;
        $proxy->lose($part, 'claim_webhooks', sub { $run = hooked_run($sv, $receiver->url) });
        # Claimed without anybody who knows of it: until the lease is over.
        sql("update agent.webhook_outbox set due_at = now() where run_id = '$run'")
            if $part eq 'answer';
        wait_delivered($run);
        is scalar $receiver->requests, 1, 'of the claim';
        $proxy->lose($part, 'save_webhooks', sub { $run = hooked_run($sv, $receiver->url) });
        wait_delivered($run);
        is scalar $receiver->requests, 2, 'of the end: it is saved again, not delivered again';
        $sv->stop;
    };
}

behaviour 'a supervisor without webhooks claims none' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $sv = TestSupervisor->start($pg);
    $sv->wait_ready;
    my $run = hooked_run($sv, $receiver->url);
    my $other = start_sender({}, node => 'host-2');
    wait_delivered($run);
    unlike $sv->log_text, qr/AGT036/;
    $_->stop for $sv, $other;
};

behaviour 'given up deliveries are deleted after the retention time' => sub {
    my $sv = start_sender({}, retention_days => 1);
    my $receiver = AgentTest::Receiver->new(404);
    my $run = hooked_run($sv, $receiver->url);
    wait_dead($run, qr/404/);
    sql("update agent.webhook_outbox set dead_at = dead_at - interval '25 hours' where run_id = '$run'");
    $sv->stop;
    my $next = start_sender({}, retention_days => 1);
    wait_for('it to be forgotten', sub { !outbox($run, 'run_id') });
    pass 'its row is gone';
    $next->stop;
};

done_testing;
