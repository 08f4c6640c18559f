# SPDX-License-Identifier: Apache-2.0
# Webhooks through httpd: what is refused when a run is created, what a
# receiver gets, and what restarts and crashes do to it.
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

subtest 'a run that succeeds tells its record, its times and its values, signed' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $run = $client->create_run(new_thread(), 'tell me', webhook => $receiver->url('/hook?x=1'),
        metadata => { mine => 1 });
    my $values = $client->join_run($run);
    my ($request) = $receiver->wait_requests(1);
    my %headers = %{ $request->{headers} };
    my $body = decode_json($request->{body});
    is "$request->{method} $request->{path}", 'POST /hook?x=1';
    is $headers{'content-type'}, 'application/json';
    like $headers{'user-agent'}, qr{\Amod_agent/\d};
    is $headers{'webhook-id'}, $run->{run_id};
    is $headers{'webhook-signature'}, 'v1,' . encode_base64(hmac_sha256(
        "$headers{'webhook-id'}.$headers{'webhook-timestamp'}.$request->{body}", $KEY), ''), 'signature';
    is_deeply delete $body->{values}, $values, 'the values that join answers';
    like delete $body->{$_}, qr/\A\d{4}-/, $_ for qw(run_started_at run_ended_at webhook_sent_at);
    is_deeply $body, $client->get_run($run), 'the record that can be read';
    wait_delivered($run);
};

subtest 'a run that fails tells why' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $run = $client->create_run(new_thread(), 'fail', webhook => $receiver->url);
    my ($request) = $receiver->wait_requests(1);
    my $body = decode_json($request->{body});
    is $body->{status}, 'error';
    is_deeply $body->{error}, $client->get_run($run)->{error};
    ok $body->{error}{error} && $body->{error}{message}, 'error and message';
    wait_delivered($run);
};

subtest 'a run that is cancelled tells it soon, also before it began' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $thread = new_thread();
    my $active = $client->create_run($thread, 'sleep 60000', webhook => $receiver->url('/active'));
    my $waiting = $client->create_run($thread, 'x', webhook => $receiver->url('/waiting'),
        multitask_strategy => 'enqueue');
    for my $run ($waiting, $active) {
        my $path = AgentTest::Client::run_path($run) . '/cancel?wait=true';
        like $client->post($path)->{status}, qr/\A2/, 'cancelled';
    }
    $receiver->wait_requests(2);
    my %told = map { $_->{path} => decode_json($_->{body}) } $receiver->requests;
    is $told{'/waiting'}{status}, 'interrupted';
    is $told{'/waiting'}{run_started_at}, undef;
    is $told{'/active'}{status}, 'interrupted';
    is $told{'/active'}{run_id}, $active->{run_id};
    wait_delivered($_) for $active, $waiting;
};

subtest 'a run without a thread tells no values' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $answer = $client->post('/runs', { assistant_id => 'agent', webhook => $receiver->url,
        input => { messages => [ { role => 'user', content => 'hello' } ] } });
    is $answer->{status}, 200;
    my ($request) = $receiver->wait_requests(1);
    my $body = decode_json($request->{body});
    is $body->{status}, 'success';
    ok !exists $body->{values};
    wait_delivered($answer->{json});
};

subtest 'deleting the thread at once does not take the delivery back' => sub {
    my $receiver = AgentTest::Receiver->new(500, 200);
    my $run = $client->create_run(new_thread(), 'hello', webhook => $receiver->url);
    $client->join_run($run);
    $receiver->wait_requests(1);
    is $client->delete("/threads/$run->{thread_id}")->{status}, 204;
    my @requests = $receiver->wait_requests(2);
    ok decode_json($requests[1]{body})->{values}{messages}, 'with its values';
    is $requests[1]{headers}{'webhook-id'}, $requests[0]{headers}{'webhook-id'};
};

subtest 'a supervisor that is killed while it delivers' => sub {
    my $receiver = AgentTest::Receiver->new({ hang => 1 }, 200);
    my $run = $client->create_run(new_thread(), 'hello', webhook => $receiver->url);
    $receiver->wait_requests(1);
    kill KILL => supervisor_pid($server->httpd_pid);
    my @requests = $receiver->wait_requests(2);
    is $_->{headers}{'webhook-id'}, $run->{run_id}, 'the next one delivers it under the same id' for @requests;
    wait_delivered($run);
};

subtest 'a graceful restart while it is delivered' => sub {
    my $receiver = AgentTest::Receiver->new({ hang => 1 }, 200);
    my $run = $client->create_run(new_thread(), 'hello', webhook => $receiver->url);
    $receiver->wait_requests(1);
    my $old = supervisor_pid($server->httpd_pid);
    $server->graceful;
    wait_delivered($run);
    is scalar $receiver->requests, 2, 'the attempt under way ends, the next one succeeds';
    wait_for('the old supervisor to end', sub { !is_alive($old) });
};

subtest 'a URL that cannot be called is refused with the reason, and no run is made' => sub {
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
            is $answer->{status}, 422, "$path " . substr $url, 0, 40;
            like $answer->{json}{code}, qr/\A(?:invalid_value|webhook_not_allowed)\z/;
            like $answer->{json}{detail}, qr{\A/webhook: expected .*$why.*\.\z};
        }
    }
    for my $denied ('http://127.0.0.8/', 'http://8.8.4.4/', 'http://[::ffff:8.8.4.4]/') {
        my $answer = $client->post("/threads/$thread/runs", { assistant_id => 'agent', webhook => $denied });
        is $answer->{status}, 422, "$denied is denied by the IPv6 form of its block";
        like $server->error_log, qr{AGT0731: POST \S+: webhook_not_allowed: /webhook: .* \(AgentWebhookDeny\)},
            'the log says by which directive';
    }
    is $client->post("/threads/$thread/runs", { assistant_id => 'agent', webhook => 5 })->{status}, 422, 'no string';
    is_deeply $client->get("/threads/$thread/runs")->{json}, [];
};

subtest 'the log tells of deliveries, not of secrets' => sub {
    my $receiver = AgentTest::Receiver->new(404);
    my $run = $client->create_run(new_thread(), 'hello', webhook => $receiver->url('/token-in-the-path?k=1'));
    wait_for('the line', sub { $server->error_log =~ /AGT0362: webhook of run $run->{run_id} given up/ });
    like $server->error_log, qr/AGT0360: webhook of run \S+ delivered to 127\.0\.0\.1 at attempt 1/;
    like $server->error_log, qr/\[agent:warn\].* AGT0361: webhook of run \S+ not delivered to 127\.0\.0\.1/,
        'a first attempt that fails is a warning';
    unlike $server->error_log, qr/token-in-the-path/, 'the path of a URL is not shown';
    my $encoded = encode_base64($KEY, '');
    unlike $server->error_log, qr/\Q$KEY\E|\Q$encoded\E/, 'nor the key';
};

undef $server;

subtest 'with AgentWebhooks Off a webhook is refused, and none is delivered' => sub {
    my $off = AgentTest::Server->new(config => AgentTest::Server::shared_config() . "AgentWebhooks Off\n");
    $off->start;
    my $other = AgentTest::Client->new(url => $off->url);
    my $answer = $other->post('/runs', { assistant_id => 'agent', webhook => 'https://example.com/' });
    is $answer->{status}, 422;
    is $answer->{json}{detail}, '/webhook: expected none: this server does not deliver webhooks.';
    is $other->post('/runs', { assistant_id => 'agent' })->{status}, 200, 'a run without one is not';
    is $other->post('/runs', { assistant_id => 'agent', webhook => undef })->{status}, 200, 'nor one with null';
    undef $off;
};

done_testing;
