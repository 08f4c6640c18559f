# SPDX-License-Identifier: Apache-2.0
# GET /v1/account/export: in parts, as the client reads.
use strict;
use warnings;
use AgentTest::ApiKey;
use AgentTest::Client qw(parse_response read_to_end read_until);
use AgentTest::Conf qw(one_child);
use AgentTest::Database;
use AgentTest::Server;
use Cpanel::JSON::XS;
use Test::More;

# A server without graphs and without agent servers, with four threads.
my $CONF = one_child(4) . <<'CONF';
AgentMaxWaitersPerAddress 0
AgentLimit streams 12
<Location "/">
    SetHandler agent-platform
</Location>
CONF
my $server = AgentTest::Server->new(config => "Timeout 600\n$CONF");
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

my $ITEMS = 3000;

sub create_items {
    my ($owner) = @_;
    my $shop = sql("select agent.ensure_deployment('shop', '$owner')");
    # 30 MB, which do not compress.
    sql("insert into agent.store_items (deployment_id, namespace, key, value, value_bytes, created_at, updated_at)
        select '$shop', '{a}', 'k' || n, to_jsonb((select string_agg(md5(random()::text), '') from generate_series(1, 320 + 0 * n))), 10240, now(), now()
          from generate_series(1, $ITEMS) n");
    return;
}

my ($account, $other) = map { create_account() } 1, 2;
my $key = create_key($account);
create_items($_) for $account, $other;

sub request_text {
    my ($method) = @_;
    return "$method /v1/account/export HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nx-api-key: $key\r\n\r\n";
}

subtest 'export: it has the rows of the account as lines of JSON' => sub {
    my $answer = parse_response($client->exchange(request_text('GET')));
    is $answer->{status}, 200, 'export: the status is 200';
    is $answer->{headers}{'content-type'}, 'application/x-ndjson', 'export: the type is that of lines of JSON';
    my @rows = map { decode_json($_) } split /\n/, $answer->{body};
    is scalar(grep { $_->{table} eq 'store_items' } @rows), $ITEMS, 'export: all rows of a table';
    is $rows[0]{row}{account_id}, $account, 'export: the account first';
    ok index($answer->{body}, $other) < 0, 'export: nothing of another account';
    my $head = $client->exchange(request_text('HEAD'));
    like $head, qr{\AHTTP/1\.1 200 .*\r\n\r\n\z}s, 'export: HEAD has no body';
    is_deeply [ sql("select actor, action from agent.audit_log where account_id = '$account' and action = 'account.export'") ],
        [ 'key ' . key_id($key) . "\taccount.export" ], 'export: the audit log has it, and not the HEAD';
};

subtest 'export: clients that do not read hold no thread and no connection' => sub {
    my @sockets = map { my $socket = $client->connection; syswrite $socket, request_text('GET'); read_until($socket, qr/\r\n\r\n/); $socket } 1 .. 12;
    is $client->get('/auth', undef, { 'x-api-key' => $key })->{status}, 200, 'export: three times as many as there are threads';
    like $client->exchange(request_text('GET')), qr{\AHTTP/1\.1 429 .*"limit":"streams"}s, 'export: one more than AgentLimit streams';
    close $_ for @sockets;
};

subtest 'export: a server that stops ends it so that the client sees that it is incomplete' => sub {
    my $socket = $client->connection;
    syswrite $socket, request_text('GET');
    read_until($socket, qr/\r\n\r\n/);
    $server->stop;
    my $rest = read_to_end($socket);
    unlike $rest, qr/\r\n0\r\n\r\n\z/, 'export: the last chunk is missing';
};

subtest 'export: a part that takes too long three times ends it' => sub {
    # Heartbeats, the pauses between attempts, are half of it.
    $server = AgentTest::Server->new(config => "Timeout 2\nAgentDBQueryTimeout 500\n$CONF");
    $server->start;
    $client = AgentTest::Client->new(url => $server->url);
    $account = create_account();
    $key = create_key($account);
    create_items($account);
    my $definition = join "\n", sql("select pg_get_functiondef('agent.export_account(uuid, text, bigint)'::regprocedure)");
    sql($definition =~ s/code := 'ok';/if p_cursor is not null then perform pg_catalog.pg_sleep(60); end if; code := 'ok';/r);
    my $answer = $client->exchange(request_text('GET'));
    sql($definition);
    like $answer, qr{\AHTTP/1\.1 200 }, 'export: the first part was sent';
    unlike $answer, qr/\r\n0\r\n\r\n\z/, 'export: the last chunk is missing';
    like $server->error_log, qr/database_timeout|statement timeout/, 'export: the cause is logged';
};

done_testing;
