# SPDX-License-Identifier: Apache-2.0
# Webhooks through httpd: refusals when a run is created, and deliveries, also
# across restarts and crashes.
use strict;
use warnings;
use AgentTest::Client qw(run_body run_path);
use AgentTest::Database;
use AgentTest::Env qw(write_file);
use AgentTest::Process;
use AgentTest::Receiver;
use AgentTest::Server;
use AgentTest::Wait;
use Digest::SHA qw(hmac_sha256);
use File::Temp qw(tempdir);
use Cpanel::JSON::XS;
use MIME::Base64 qw(encode_base64);
use Test::More;

my $KEY = 'the key of this test, 32 bytes..';
my $dir = tempdir(CLEANUP => 1);
write_file("$dir/secret", 'whsec_', encode_base64($KEY, ''), "\n");

my $server = AgentTest::Server->new(config => AgentTest::Server::shared_config() . <<"CONF");
AgentWebhookSecretFile "$dir/secret"
AgentWebhookAllow 127.0.0.1
AgentWebhookDeny ::ffff:127.0.0.8 ::ffff:8.8.0.0/112
AgentWebhookPorts 80 443 1024-65535
AgentWebhookTimeout 5
CONF
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

sub wait_delivered {
    my ($run) = @_;
    return wait_for('the delivery', sub {
        poll("select count(*) from agent.runs where run_id = '$run->{run_id}' and finished_at is null") == 0
            && poll("select count(*) from agent.webhook_outbox where run_id = '$run->{run_id}'") == 0;
    });
}

subtest 'webhooks: a delivery has record, times and values, and is signed' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $run = $client->create_run($client->new_thread, 'tell me', webhook => $receiver->url('/hook?x=1'),
        metadata => { mine => 1 });
    my $values = $client->join_run($run);
    my ($request) = $receiver->wait_requests(1);
    my %headers = %{ $request->{headers} };
    my $body = decode_json($request->{body});
    is "$request->{method} $request->{path}", 'POST /hook?x=1', 'webhooks: a delivery is a POST to path and query';
    is $headers{'content-type'}, 'application/json', 'webhooks: Content-Type is application/json';
    like $headers{'user-agent'}, qr{\Amod_agent/\d}, 'webhooks: User-Agent is mod_agent';
    is $headers{'webhook-id'}, $run->{run_id}, 'webhooks: webhook-id is the id of the run';
    is $headers{'webhook-signature'}, 'v1,' . encode_base64(hmac_sha256(
        "$headers{'webhook-id'}.$headers{'webhook-timestamp'}.$request->{body}", $KEY), ''), 'webhooks: the signature covers id, time and body';
    is_deeply delete $body->{values}, $values, 'webhooks: values are the result of join';
    like delete $body->{$_}, qr/\A\d{4}-/, "webhooks: $_ is a time" for qw(run_started_at run_ended_at webhook_sent_at);
    is_deeply $body, $client->get_run($run), 'webhooks: the other members are the record of the run';
    wait_delivered($run);
};

subtest 'webhooks: a failed run is delivered with its error' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $run = $client->create_run($client->new_thread, 'fail', webhook => $receiver->url);
    my ($request) = $receiver->wait_requests(1);
    my $body = decode_json($request->{body});
    is $body->{status}, 'error', 'webhooks: the status of a failed run is error';
    is_deeply $body->{error}, $client->get_run($run)->{error}, 'webhooks: the error of a failed run is that of its record';
    ok $body->{error}{error} && $body->{error}{message}, 'webhooks: the error of a failed run has a name and a message';
    wait_delivered($run);
};

subtest 'webhooks: cancelled runs are delivered, executing or queued' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $thread = $client->new_thread;
    my $active = $client->create_run($thread, 'sleep 60000', webhook => $receiver->url('/active'));
    my $waiting = $client->create_run($thread, 'x', webhook => $receiver->url('/waiting'),
        multitask_strategy => 'enqueue');
    for my $run ($waiting, $active) {
        my $path = run_path($run) . '/cancel?wait=true';
        like $client->post($path)->{status}, qr/\A2/, 'webhooks: a run with a webhook can be cancelled';
    }
    $receiver->wait_requests(2);
    my %delivered = map { $_->{path} => decode_json($_->{body}) } $receiver->requests;
    is $delivered{'/waiting'}{status}, 'interrupted', 'webhooks: a cancelled queued run is delivered as interrupted';
    is $delivered{'/waiting'}{run_started_at}, undef, 'webhooks: a cancelled queued run has no start';
    is $delivered{'/active'}{status}, 'interrupted', 'webhooks: a cancelled executing run is delivered as interrupted';
    is $delivered{'/active'}{run_id}, $active->{run_id}, 'webhooks: a cancelled executing run is delivered with its id';
    wait_delivered($_) for $active, $waiting;
};

subtest 'webhooks: a run that stops at a breakpoint is delivered as success' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $thread = $client->new_thread;
    my $run = $client->create_run($thread, 'use clock {}', webhook => $receiver->url, interrupt_before => ['tools']);
    my ($request) = $receiver->wait_requests(1);
    my $body = decode_json($request->{body});
    is $body->{status}, 'success', 'webhooks: the status of a run that stops at a breakpoint is success';
    is scalar @{ $body->{values}{messages} }, 2, 'webhooks: the values of a run that stops at a breakpoint are its last values';
    is $client->get("/threads/$thread")->{json}{status}, 'interrupted',
        'webhooks: the thread is interrupted when the delivery arrives';
    wait_delivered($run);
};

subtest 'webhooks: a stateless run is delivered without values' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $answer = $client->post('/runs', run_body('hello', webhook => $receiver->url));
    is $answer->{status}, 200, 'webhooks: a stateless run may have a webhook';
    my ($request) = $receiver->wait_requests(1);
    my $body = decode_json($request->{body});
    is $body->{status}, 'success', 'webhooks: the status of a successful run is success';
    ok !exists $body->{values}, 'webhooks: the delivery of a stateless run has no values';
    wait_delivered($answer->{json});
};

subtest 'webhooks: deleting the thread does not cancel the delivery' => sub {
    my $receiver = AgentTest::Receiver->new(500, 200);
    my $run = $client->create_run($client->new_thread, 'hello', webhook => $receiver->url);
    $client->join_run($run);
    $receiver->wait_requests(1);
    is $client->delete("/threads/$run->{thread_id}")->{status}, 204, 'webhooks: a thread with an undelivered webhook can be deleted';
    my @requests = $receiver->wait_requests(2);
    ok decode_json($requests[1]{body})->{values}{messages}, 'webhooks: after its thread was deleted, the second attempt has the values';
    is $requests[1]{headers}{'webhook-id'}, $requests[0]{headers}{'webhook-id'},
        'webhooks: both attempts have the same webhook-id';
};

subtest 'webhooks: a delivery is repeated when its supervisor is killed' => sub {
    my $receiver = AgentTest::Receiver->new({ hang => 1 }, 200);
    my $run = $client->create_run($client->new_thread, 'hello', webhook => $receiver->url);
    $receiver->wait_requests(1);
    kill KILL => supervisor_pid($server->httpd_pid);
    my @requests = $receiver->wait_requests(2);
    is $_->{headers}{'webhook-id'}, $run->{run_id}, 'webhooks: the next supervisor repeats a delivery under the same webhook-id' for @requests;
    wait_delivered($run);
};

subtest 'webhooks: a graceful restart does not cut a delivery' => sub {
    my $receiver = AgentTest::Receiver->new({ hang => 1 }, 200);
    my $run = $client->create_run($client->new_thread, 'hello', webhook => $receiver->url);
    $receiver->wait_requests(1);
    my $old = supervisor_pid($server->httpd_pid);
    $server->graceful;
    wait_delivered($run);
    is scalar $receiver->requests, 2, 'webhooks: an attempt at a graceful restart ends, and the next one succeeds';
    wait_for('the old supervisor to end', sub { !is_alive($old) });
};

subtest 'webhooks: a URL that the server may not call is refused' => sub {
    my $thread = $client->new_thread;
    my @cases = (
        [ '/relative',                     'absolute URL .* call this server itself' ],
        [ 'hooks.example.com/x',           'absolute URL' ],
        [ 'ftp://example.com/',            'http:// or https://' ],
        [ 'http://me:secret@example.com/', 'without user and password' ],
        [ 'http://example.com:22/',        'one of the ports 80, 443, 1024-65535' ],
        [ 'http://10.0.0.1/',              'whose host this server may call' ],
        [ 'http://2130706434/',            'whose host this server may call' ],
        [ 'http://[::1]/',                 'whose host this server may call' ],
        [ 'http://[::ffff:127.0.0.1]/',    'whose host this server may call' ],
        [ 'http://169.254.169.254/',       'whose host this server may call' ],
        [ "http://example.com/\x{e4}",     'printable ASCII' ],
        [ 'http://example.com/a b',        'printable ASCII' ],
        [ 'http://' . 'a' x 2048,          'at most 2048 bytes' ],
        [ 'http://[zz]/',                  'http:// or https://' ],
        [ '',                              'absolute URL' ],
    );
    for my $path ("/threads/$thread/runs", "/threads/$thread/runs/stream", '/runs') {
        for my $case (@cases) {
            my ($url, $why) = @$case;
            my $answer = $client->post($path, { assistant_id => 'agent', webhook => $url });
            my $title = "webhooks: $path with " . substr $url, 0, 40;
            is $answer->{status}, 422, "$title is 422";
            like $answer->{json}{code}, qr/\A(?:invalid_value|webhook_not_allowed)\z/, "$title: the code is that of a value or of a webhook";
            like $answer->{json}{detail}, qr{\A/webhook: expected .*$why.*\.\z}, "$title: the detail names the reason";
        }
    }
    for my $denied ('http://127.0.0.8/', 'http://8.8.4.4/', 'http://[::ffff:8.8.4.4]/') {
        my $answer = $client->post("/threads/$thread/runs", { assistant_id => 'agent', webhook => $denied });
        is $answer->{status}, 422, "webhooks: $denied is denied by the IPv6 form of its block";
        like $server->error_log, qr{AGT0104: POST \S+: webhook_not_allowed: /webhook: .* \(AgentWebhookDeny\)},
            "webhooks: the log names the directive that denies $denied";
    }
    is $client->post("/threads/$thread/runs", { assistant_id => 'agent', webhook => 5 })->{status}, 422, 'webhooks: a webhook that is not a string is 422';
    is_deeply $client->get("/threads/$thread/runs")->{json}, [], 'webhooks: a refused webhook creates no run';
};

subtest 'webhooks: the log names deliveries, without secrets' => sub {
    my $receiver = AgentTest::Receiver->new(404);
    my $run = $client->create_run($client->new_thread, 'hello', webhook => $receiver->url('/token-in-the-path?k=1'));
    wait_for('a line in the error log', sub { $server->error_log =~ /AGT0362: webhook of run $run->{run_id} given up/ });
    like $server->error_log, qr/AGT0360: webhook of run \S+ delivered to 127\.0\.0\.1 at attempt 1/,
        'webhooks: a delivery is logged with its host';
    like $server->error_log, qr/\[agent:warn\].* AGT0361: webhook of run \S+ not delivered to 127\.0\.0\.1/,
        'webhooks: a failed first attempt is logged as a warning';
    unlike $server->error_log, qr/token-in-the-path/, 'webhooks: the log does not contain the path of the URL';
    my $encoded = encode_base64($KEY, '');
    unlike $server->error_log, qr/\Q$KEY\E|\Q$encoded\E/, 'webhooks: the log does not contain the key';
};

undef $server;

subtest 'webhooks: AgentWebhooks Off refuses runs with a webhook' => sub {
    my $off = AgentTest::Server->new(config => AgentTest::Server::shared_config() . "AgentWebhooks Off\n");
    $off->start;
    my $other = AgentTest::Client->new(url => $off->url);
    my $answer = $other->post('/runs', { assistant_id => 'agent', webhook => 'https://example.com/' });
    is $answer->{status}, 422, 'webhooks: with AgentWebhooks Off, a run with a webhook is 422';
    is $answer->{json}{detail}, '/webhook: expected none: this server does not deliver webhooks.',
        'webhooks: with AgentWebhooks Off, the detail names the reason';
    is $other->post('/runs', { assistant_id => 'agent' })->{status}, 200, 'webhooks: with AgentWebhooks Off, a run without a webhook is accepted';
    is $other->post('/runs', { assistant_id => 'agent', webhook => undef })->{status}, 200, 'webhooks: with AgentWebhooks Off, null is accepted';
    undef $off;
};

done_testing;
