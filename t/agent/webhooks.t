# SPDX-License-Identifier: Apache-2.0
# Webhooks through httpd: refusals when a run is created, deliveries, and their
# survival of restarts and crashes.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Database;
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
open my $secret, '>', "$dir/secret" or die "$dir: $!\n";
print {$secret} 'whsec_', encode_base64($KEY, ''), "\n";
close $secret or die "$dir: $!\n";

my $server = AgentTest::Server->new(config => AgentTest::Server::shared_config() . <<"CONF");
AgentWebhookSecretFile "$dir/secret"
AgentWebhookAllow 127.0.0.1
AgentWebhookDeny ::ffff:127.0.0.8 ::ffff:8.8.0.0/112
AgentWebhookPorts 80 443 1024-65535
AgentWebhookTimeout 5
CONF
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

sub new_thread { return $client->create_thread->{thread_id} }

sub wait_delivered {
    my ($run) = @_;
    return wait_for('the delivery', sub {
        sql("select count(*) from agent.runs where run_id = '$run->{run_id}' and finished_at is null") == 0
            && sql("select count(*) from agent.webhook_outbox where run_id = '$run->{run_id}'") == 0;
    });
}

subtest 'webhooks: a delivery has record, times and values, and is signed' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $run = $client->create_run(new_thread(), 'tell me', webhook => $receiver->url('/hook?x=1'),
        metadata => { mine => 1 });
    my $values = $client->join_run($run);
    my ($request) = $receiver->wait_requests(1);
    my %headers = %{ $request->{headers} };
    my $body = decode_json($request->{body});
    is "$request->{method} $request->{path}", 'POST /hook?x=1', 'the request is a POST of path and query';
    is $headers{'content-type'}, 'application/json', 'Content-Type is application/json';
    like $headers{'user-agent'}, qr{\Amod_agent/\d}, 'User-Agent is mod_agent';
    is $headers{'webhook-id'}, $run->{run_id}, 'webhook-id is the id of the run';
    is $headers{'webhook-signature'}, 'v1,' . encode_base64(hmac_sha256(
        "$headers{'webhook-id'}.$headers{'webhook-timestamp'}.$request->{body}", $KEY), ''), 'the signature covers id, time and body';
    is_deeply delete $body->{values}, $values, 'values are what join returns';
    like delete $body->{$_}, qr/\A\d{4}-/, "$_ is a time" for qw(run_started_at run_ended_at webhook_sent_at);
    is_deeply $body, $client->get_run($run), 'the rest is the record of the run';
    wait_delivered($run);
};

subtest 'webhooks: a failed run is delivered with its error' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $run = $client->create_run(new_thread(), 'fail', webhook => $receiver->url);
    my ($request) = $receiver->wait_requests(1);
    my $body = decode_json($request->{body});
    is $body->{status}, 'error', 'the status is error';
    is_deeply $body->{error}, $client->get_run($run)->{error}, 'the error is that of the run';
    ok $body->{error}{error} && $body->{error}{message}, 'the error has a name and a message';
    wait_delivered($run);
};

subtest 'webhooks: cancelled runs are delivered, executing or queued' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $thread = new_thread();
    my $active = $client->create_run($thread, 'sleep 60000', webhook => $receiver->url('/active'));
    my $waiting = $client->create_run($thread, 'x', webhook => $receiver->url('/waiting'),
        multitask_strategy => 'enqueue');
    for my $run ($waiting, $active) {
        my $path = AgentTest::Client::run_path($run) . '/cancel?wait=true';
        like $client->post($path)->{status}, qr/\A2/, 'the cancel is accepted';
    }
    $receiver->wait_requests(2);
    my %delivered = map { $_->{path} => decode_json($_->{body}) } $receiver->requests;
    is $delivered{'/waiting'}{status}, 'interrupted', 'the queued run is delivered as interrupted';
    is $delivered{'/waiting'}{run_started_at}, undef, 'the queued run has no start';
    is $delivered{'/active'}{status}, 'interrupted', 'the executing run is delivered as interrupted';
    is $delivered{'/active'}{run_id}, $active->{run_id}, 'the executing run is delivered with its id';
    wait_delivered($_) for $active, $waiting;
};

subtest 'webhooks: a stateless run is delivered without values' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $answer = $client->post('/runs', { assistant_id => 'agent', webhook => $receiver->url,
        input => { messages => [ { role => 'user', content => 'hello' } ] } });
    is $answer->{status}, 200, 'the run is created';
    my ($request) = $receiver->wait_requests(1);
    my $body = decode_json($request->{body});
    is $body->{status}, 'success', 'the status is success';
    ok !exists $body->{values}, 'the delivery has no values';
    wait_delivered($answer->{json});
};

subtest 'webhooks: deleting the thread does not cancel the delivery' => sub {
    my $receiver = AgentTest::Receiver->new(500, 200);
    my $run = $client->create_run(new_thread(), 'hello', webhook => $receiver->url);
    $client->join_run($run);
    $receiver->wait_requests(1);
    is $client->delete("/threads/$run->{thread_id}")->{status}, 204, 'the thread is deleted';
    my @requests = $receiver->wait_requests(2);
    ok decode_json($requests[1]{body})->{values}{messages}, 'the second attempt has the values';
    is $requests[1]{headers}{'webhook-id'}, $requests[0]{headers}{'webhook-id'},
        'both attempts have the same webhook-id';
};

subtest 'webhooks: a delivery survives the death of its supervisor' => sub {
    my $receiver = AgentTest::Receiver->new({ hang => 1 }, 200);
    my $run = $client->create_run(new_thread(), 'hello', webhook => $receiver->url);
    $receiver->wait_requests(1);
    kill KILL => supervisor_pid($server->httpd_pid);
    my @requests = $receiver->wait_requests(2);
    is $_->{headers}{'webhook-id'}, $run->{run_id}, 'the next supervisor delivers it under the same webhook-id' for @requests;
    wait_delivered($run);
};

subtest 'webhooks: a delivery survives a graceful restart' => sub {
    my $receiver = AgentTest::Receiver->new({ hang => 1 }, 200);
    my $run = $client->create_run(new_thread(), 'hello', webhook => $receiver->url);
    $receiver->wait_requests(1);
    my $old = supervisor_pid($server->httpd_pid);
    $server->graceful;
    wait_delivered($run);
    is scalar $receiver->requests, 2, 'the attempt under way ends and the next one succeeds';
    wait_for('the old supervisor to end', sub { !is_alive($old) });
};

subtest 'webhooks: a URL that the server may not call is refused' => sub {
    my $thread = new_thread();
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
            my $title = "$path with " . substr $url, 0, 40;
            is $answer->{status}, 422, "$title is 422";
            like $answer->{json}{code}, qr/\A(?:invalid_value|webhook_not_allowed)\z/, "$title: the code";
            like $answer->{json}{detail}, qr{\A/webhook: expected .*$why.*\.\z}, "$title: the reason";
        }
    }
    for my $denied ('http://127.0.0.8/', 'http://8.8.4.4/', 'http://[::ffff:8.8.4.4]/') {
        my $answer = $client->post("/threads/$thread/runs", { assistant_id => 'agent', webhook => $denied });
        is $answer->{status}, 422, "$denied is denied by the IPv6 form of its block";
        like $server->error_log, qr{AGT0104: POST \S+: webhook_not_allowed: /webhook: .* \(AgentWebhookDeny\)},
            "the log names the directive that denies $denied";
    }
    is $client->post("/threads/$thread/runs", { assistant_id => 'agent', webhook => 5 })->{status}, 422, 'a webhook that is not a string is 422';
    is_deeply $client->get("/threads/$thread/runs")->{json}, [], 'no run is created';
};

subtest 'webhooks: the log names deliveries, without secrets' => sub {
    my $receiver = AgentTest::Receiver->new(404);
    my $run = $client->create_run(new_thread(), 'hello', webhook => $receiver->url('/token-in-the-path?k=1'));
    wait_for('the line', sub { $server->error_log =~ /AGT0362: webhook of run $run->{run_id} given up/ });
    like $server->error_log, qr/AGT0360: webhook of run \S+ delivered to 127\.0\.0\.1 at attempt 1/,
        'a delivery is logged with its host';
    like $server->error_log, qr/\[agent:warn\].* AGT0361: webhook of run \S+ not delivered to 127\.0\.0\.1/,
        'a failed first attempt is logged as a warning';
    unlike $server->error_log, qr/token-in-the-path/, 'the log does not contain the path of the URL';
    my $encoded = encode_base64($KEY, '');
    unlike $server->error_log, qr/\Q$KEY\E|\Q$encoded\E/, 'the log does not contain the key';
};

undef $server;

subtest 'webhooks: AgentWebhooks Off refuses them' => sub {
    my $off = AgentTest::Server->new(config => AgentTest::Server::shared_config() . "AgentWebhooks Off\n");
    $off->start;
    my $other = AgentTest::Client->new(url => $off->url);
    my $answer = $other->post('/runs', { assistant_id => 'agent', webhook => 'https://example.com/' });
    is $answer->{status}, 422, 'a webhook is 422';
    is $answer->{json}{detail}, '/webhook: expected none: this server does not deliver webhooks.',
        'the detail names the reason';
    is $other->post('/runs', { assistant_id => 'agent' })->{status}, 200, 'a run without a webhook is accepted';
    is $other->post('/runs', { assistant_id => 'agent', webhook => undef })->{status}, 200, 'a webhook of null is accepted';
    undef $off;
};

done_testing;
