# SPDX-License-Identifier: Apache-2.0
# A platform host on a server without graphs and without agent servers, the only one of its database.
use strict;
use warnings;
use AgentTest::ApiKey;
use AgentTest::Client;
use AgentTest::Conf qw(location);
use AgentTest::Database;
use AgentTest::Process qw(descendants_of is_alive);
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

# Neither the program of runners nor their cgroup is needed.
my $server = AgentTest::Server->new(
    config => qq(AgentRunner /none/agent-runner\nAgentRunnerCgroup /none/cgroup\n) . location('/', 'SetHandler "agent-platform"', 'Require all granted'));
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

subtest 'platform host alone: the deletion of an account ends' => sub {
    my $account = create_account();
    my $key = create_key($account);
    my $shop = sql("select agent.ensure_deployment('shop', '$account')");
    sql("insert into agent.store_items (deployment_id, namespace, key, value, value_bytes, created_at, updated_at) values ('$shop', '{a}', 'k', '1', 1, now(), now())");
    my $answer = $client->request('DELETE', '/v1/account', { confirm => $account }, { 'x-api-key' => $key });
    is $answer->{status}, 202, 'DELETE /v1/account is accepted';
    my $read = sub { return $client->request('GET', '/v1/account/deletion', undef, { 'x-deletion-token' => $answer->{json}{token} })->{json} };
    # The last pass is an hour later.
    ok wait_for('the first pass', sub { sql('select count(*) from agent.account_deletions where pass_at > requested_at') == 1 }), 'the data are deleted';
    is sql("select count(*) from agent.store_items where deployment_id = '$shop'"), 0, 'no row is left';
    sql("update agent.account_deletions set requested_at = requested_at - interval '2 hours', pass_at = now(), due_at = now()");
    ok wait_for('the deletion to end', sub { $read->()->{status} eq 'deleted' }), 'its record says so';
    is $read->()->{rows}{store_items}, 1, 'the number of rows';
};

subtest 'platform host alone: the supervisor ends in a graceful stop' => sub {
    my $parent = $server->httpd_pid;
    my @all = ($parent, descendants_of($parent));
    $server->control('-k', 'graceful-stop');
    ok wait_for('httpd to end', sub { !grep { is_alive($_) } @all }), 'with httpd and all processes';
    like $server->error_log, qr/AGT0302/, 'it has ended by itself';
};

undef $server;
done_testing;
