# SPDX-License-Identifier: Apache-2.0
# Supervisors that send webhooks, and the outbox.
package TestWebhook;
use strict;
use warnings;
use AgentTest::Database;
use AgentTest::Wait;
use Digest::SHA qw(hmac_sha256);
use Exporter 'import';
use MIME::Base64 qw(encode_base64);
use Test::More;
use TestSupervisor;

our @EXPORT = qw(start_sender hooked_run behaviour outbox wait_delivered wait_dead wait_failed signature_of
    add_delivery);

my $KEY = 'k' x 32;

# start_sender($cluster, { members of webhooks }, members of the configuration):
# a supervisor that may call 127.0.0.1.
sub start_sender {
    my ($pg, $webhooks, %config) = @_;
    my $sv = TestSupervisor->start($pg, %config, webhooks => {
        allow => ['127.0.0.1'], ports => ['1-65535'], key => encode_base64($KEY, ''),
        timeout_ms => 30_000, %{ $webhooks // {} } });
    $sv->wait_ready;
    return $sv;
}

# Creates a run with that webhook and waits for its end.
sub hooked_run {
    my ($sv, $url, $input, %more) = @_;
    my $run = create_run($input // { do => 'noop' }, webhook => $url, %more);
    $sv->wake;
    wait_final($run);
    return $run;
}

# A subtest that leaves no webhook for the supervisor of the next one.
sub behaviour {
    my ($title, $code) = @_;
    return subtest $title => sub {
        $code->();
        sql('delete from agent.webhook_outbox');
    };
}

# Columns of the webhook of a run; empty when it has none.
sub outbox {
    my ($run, $columns) = @_;
    return join ' ', poll("select $columns from agent.webhook_outbox where run_id = '$run'");
}

sub wait_delivered {
    my ($run) = @_;
    wait_final($run);
    wait_for("the webhook of $run to be delivered", sub { !outbox($run, 'run_id') });
    return pass 'the webhook is delivered';
}

sub wait_dead {
    my ($run, $why) = @_;
    wait_for("the webhook of $run to be given up", sub { outbox($run, 'dead_at is not null') eq 't' });
    return like outbox($run, 'last_error'), $why, 'the webhook is given up, and the reason is stored';
}

sub wait_failed {
    my ($run, $why) = @_;
    wait_for("the webhook of $run to fail", sub { outbox($run, 'last_error') });
    is outbox($run, 'dead_at is null'), 't', 'the webhook is not given up';
    return like outbox($run, 'last_error'), $why, 'the reason of the failure is stored';
}

# The signature that a request must have.
sub signature_of {
    my ($request) = @_;
    my %headers = %{ $request->{headers} };
    my $signed = "$headers{'webhook-id'}.$headers{'webhook-timestamp'}.$request->{body}";
    return 'v1,' . encode_base64(hmac_sha256($signed, $KEY), '');
}

# add_delivery($url, deployment => $id, count => 1, bytes => 2): adds due webhooks without runs.
sub add_delivery {
    my ($url, %more) = @_;
    my $deployment = $more{deployment} // $TestSupervisor::DEPLOYMENT;
    return sql('insert into agent.webhook_outbox (deployment_id, run_id, thread_id, url, body, body_bytes, due_at, created_at) '
        . "select '$deployment', gen_random_uuid(), gen_random_uuid(), '$url', '{' || repeat(' ', " . (($more{bytes} // 2) - 2)
        . ") || '}', " . ($more{bytes} // 2) . ', now(), now() from generate_series(1, ' . ($more{count} // 1) . ')');
}

1;
