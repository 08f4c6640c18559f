# SPDX-License-Identifier: Apache-2.0
# DELETE /v1/account: a customer deletes an account whose runs execute, while another one goes on; the supervisor is killed during this.
use strict;
use warnings;
use AgentTest::ApiKey;
use AgentTest::Client qw(run_body);
use AgentTest::Conf qw(key_location location platform_location);
use AgentTest::Database;
use AgentTest::Gate;
use AgentTest::Postgres;
use AgentTest::Process qw(supervisor_pid);
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

my $postgres = AgentTest::Postgres->new;
local $ENV{PGHOST} = $postgres->host;
my ($shop, $desk) = map { create_account() } 1, 2;
my $gate = AgentTest::Gate->new;
my $server = AgentTest::Server->new(database => $postgres->conninfo, config => join '', $gate->graph, key_location('AuthzSendForbiddenOnFailure On', "Require agent-account $shop $desk"),
    location('/desk', "AgentDeployment desk account=$desk"), platform_location(), <<"CONF");
AgentRunner "\${BUILD_DIR}/agent-runner"
AgentBackupRetention 35
AgentDeployment shop account=$shop
CONF
$server->start;
my $client = AgentTest::Client->new(url => $server->url);
my $key = create_key($shop);
my $other = create_key($desk);

sub ask {
    my ($by, $method, $path, $body, %headers) = @_;
    return $client->request($method, $path, $body, { (defined $by ? ('x-api-key' => $by) : ()), %headers });
}

sub count_rows { return sql("select count(*) from agent.$_[1] x join agent.deployments d using (deployment_id) where d.account_id = '$_[0]'") }

my $created = ask($key, 'POST', '/threads', {});
my $thread = $created->{json}{thread_id} // die "$created->{status} $created->{body}";
is ask($key, 'POST', "/threads/$thread/runs", run_body('use gate {}', assistant_id => 'gated', multitask_strategy => 'enqueue'))->{status}, 200, 'a run' for 1 .. 2;
for my $item (1 .. 500) {
    ask($_, 'PUT', ($_ eq $key ? '' : '/desk') . '/store/items', { namespace => ['a'], key => "k$item", value => { x => 1 } }) for $key, $other;
}
ask($other, 'POST', '/desk/threads', {});
$gate->wait_calls(1);
my %others = map { $_ => count_rows($desk, $_) } qw(threads store_items);
my $token;

subtest 'account deletion: it needs the id of the account, and a key with the scope admin' => sub {
    my $refused = ask($key, 'DELETE', '/platform/v1/account', { confirm => $desk });
    is $refused->{status}, 422, 'another id';
    is $refused->{json}{detail}, '/confirm: expected the id of the account, a UUID: GET /v1/account returns it as account_id.', 'its error says where the id is';
    is ask($key, 'DELETE', '/platform/v1/account', { confirm => 'yes' })->{json}{detail}, '/confirm: expected the id of the account, a UUID.', 'another word';
    is ask($key, 'DELETE', '/platform/v1/account', {})->{status}, 422, 'no id';
    is ask(create_key($shop, scopes => ['run']), 'DELETE', '/platform/v1/account', { confirm => $shop })->{status}, 403, 'another scope';
    is ask($key, 'DELETE', '/platform/v1/account', { confirm => $shop }, 'x-deletion-token' => $_)->{status}, 422, 'a token that can be guessed, or has other characters'
        for 'x' x 31, '"' x 32;
    is ask($key, 'GET', "/threads/$thread")->{status}, 200, 'nothing was deleted';
};

subtest 'account deletion: keys and runs end at once, and the record can be read without a key' => sub {
    my $answer = ask($key, 'DELETE', '/platform/v1/account', { confirm => $shop });
    is $answer->{status}, 202, 'DELETE /v1/account is accepted';
    $token = $answer->{json}{token};
    like $token, qr/\Adel1_[0-9A-Za-z]{43}\z/, 'DELETE /v1/account: the response has a deletion token';
    is count_rows($shop, 'run_queue'), 0, 'no run is left in the queue';
    ok wait_for('the key to be refused', sub { ask($key, 'GET', "/threads/$thread")->{status} == 401 }), 'the key is no longer valid';
    is ask(undef, 'GET', '/platform/v1/account/deletion', undef, 'x-deletion-token' => $token)->{json}{status}, 'deleting', 'the record';
    is ask(undef, 'GET', '/platform/v1/account/deletion', undef, 'x-deletion-token' => "${token}x")->{status}, 404, 'another text';
    for my $wrong (undef, 'x' x 31, 'x' x 129, "$token, $token") {
        my $refused = ask(undef, 'GET', '/platform/v1/account/deletion', undef, defined $wrong ? ('x-deletion-token' => $wrong) : ());
        is "$refused->{status} $refused->{json}{detail}", '422 x-deletion-token: expected 32 to 128 letters, digits, _ and -.', $wrong // 'no text';
    }
    my $foreign = ask(print_key('sk', random_digits(22), random_digits(43), 'mars'), 'GET', '/platform/v1/account/deletion', undef, 'x-deletion-token' => $token);
    is "$foreign->{status} $foreign->{json}{code}", '403 wrong_region', 'a key of another region is refused, though none is needed';
};

subtest 'account deletion: it goes on when its supervisor is killed' => sub {
    kill 'KILL', supervisor_pid($server->httpd_pid);
    sql("update agent.account_deletions set requested_at = requested_at - interval '2 hours', pass_at = pass_at - interval '1 hour', due_at = now()");
    my $record;
    ok wait_for('the deletion to end', sub {
        $record = ask(undef, 'GET', '/platform/v1/account/deletion', undef, 'x-deletion-token' => $token)->{json};
        return $record->{status} eq 'deleted';
    }), 'another supervisor ends the deletion';
    is_deeply [ @{ $record->{rows} }{qw(runs threads store_items run_queue)} ], [ 2, 1, 500, 2 ], 'the numbers of rows';
    ok $record->{backups_expire_at}, 'the record says when backups expire';
    is $record->{logs_expire_at}, undef, 'logs: not known';
    is sql("select count(*) from agent.deployments where account_id = '$shop'"), 0, 'no deployment is left';
};

subtest 'account deletion: nothing of another account has changed' => sub {
    is count_rows($desk, $_), $others{$_}, $_ for sort keys %others;
    is ask($other, 'GET', '/desk/store/items?namespace=a&key=k1')->{status}, 200, 'the key of another account opens its deployment';
};

subtest 'account deletion: the client chooses the token, so that a lost response loses nothing' => sub {
    my %chosen = ('x-deletion-token' => 'chosen-by-the_client' x 2);
    my $record = sub { return ask(undef, 'GET', '/platform/v1/account/deletion', undef, %chosen) };
    is $record->()->{status}, 404, 'before the request';
    my $lost = ask($other, 'DELETE', '/platform/v1/account', { confirm => $desk }, %chosen);
    is_deeply [ $lost->{status}, $lost->{json}{token} ], [ 202, $chosen{'x-deletion-token'} ];
    is $record->()->{json}{deletion_id}, $lost->{json}{deletion_id}, 'the record, after it';
};

done_testing;
