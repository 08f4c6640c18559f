# SPDX-License-Identifier: Apache-2.0
# Accounts on a platform host: sign-up, keys, usage, the audit log; which key may do what.
use strict;
use warnings;
use AgentTest::ApiKey;
use AgentTest::Client qw(parse_response read_to_end);
use AgentTest::Conf qw(location one_child);
use AgentTest::Database;
use AgentTest::Env qw(slurp);
use AgentTest::Postgres;
use AgentTest::Routes;
use AgentTest::Server;
use Cpanel::JSON::XS;
use Digest::SHA qw(sha256_hex);
use Test::More;

my $UNKNOWN = '0' x 22;
my $KEY = qr/\Aag1_local_(sk|pt|dk)_([0-9A-Za-z]{22})_([0-9A-Za-z]{43})_[0-9A-Za-z]{6}\z/;

# A separate cluster, which this test stops.
my $postgres = AgentTest::Postgres->new;
local $ENV{PGHOST} = $postgres->host;
# One child: it counts the sign-ups of an address.
my $server = AgentTest::Server->new(database => $postgres->conninfo, config => join '', one_child(20), <<'CONF',
LoadModule authn_core_module "${MODULES}/mod_authn_core.so"
LoadModule remoteip_module "${MODULES}/mod_remoteip.so"
RemoteIPHeader X-Forwarded-For
RemoteIPInternalProxy 127.0.0.1
AgentEgressAddress 198.51.100.1 198.51.100.8/29
AgentEgressAddress 2001:db8::1 2001:db8::2 203.0.113.9 until=2028-02-29
AgentIngressAddress 203.0.113.10
AgentIngressAddress 203.0.113.9 until=2027-01-31
AgentAddressSerial 2026112901
CONF
    location('/', 'SetHandler agent-platform'),
    qq(<Location "/v1">\nAgentSignUp On\n</Location>\n),
    location('/default'),
    location('/invited', 'AgentSignUp Invitation'),
    location('/off', 'AgentSignUp Off'),
    location('/typed', 'AuthType AgentKey', 'AuthzSendForbiddenOnFailure On', 'Require agent-scope admin'),
    location('/agents', 'SetHandler agent', 'AuthType AgentKey', 'Require agent-scope read'));
# PostgreSQL logs the statements of the server with their parameters.
sql("alter role agent set log_statement = 'all'");
$server->start;

# A client of a loopback address of its own: sign-ups and refused keys are counted by address.
my $addresses = 1;
sub new_client {
    return AgentTest::Client->new(url => $server->url, local_address => '127.0.0.' . ++$addresses);
}
my $client = new_client();

sub with { return { 'x-api-key' => $_[0] } }

# ask('GET', '/auth', $key, $body)
sub ask {
    my ($method, $path, $key, $body) = @_;
    my %headers = (Host => 'localhost', Connection => 'close');
    $headers{'x-api-key'} = $key if defined $key;
    my $text = defined $body ? encode_json($body) : '';
    $headers{'Content-Length'} = length $text if defined $body;
    return parse_response($client->exchange("$method $path HTTP/1.1\r\n"
        . join('', map { "$_: $headers{$_}\r\n" } sort keys %headers) . "\r\n$text"));
}

# "401 unknown_key"
sub outcome {
    my ($answer) = @_;
    return "$answer->{status} " . (ref $answer->{json} eq 'HASH' ? $answer->{json}{code} // '-' : '-');
}

my $first = $client->post('/v1/accounts', { name => 'Shop' });
my ($account, $key) = @{ $first->{json} }{qw(account_id key)};
my $other = new_client()->post('/v1/accounts', { name => 'Other' })->{json};

subtest 'sign-up: POST /v1/accounts returns the first key, once' => sub {
    is outcome($first), '200 -', 'sign-up: it is 200';
    my (undef, $id, $secret) = $key =~ $KEY or fail "sign-up: not a key: $key";
    is $first->{json}{key_id}, $id, 'sign-up: the key has the id of the record';
    is $first->{json}{account}{name}, 'Shop', 'sign-up: the account is in it';
    is $first->{headers}{'cache-control'}, 'no-store', 'sign-up: no cache keeps it';
    is sql("select encode(digest, 'hex') from agent.api_keys where key_id = '$id'"), sha256_hex($secret), 'sign-up: the database has a digest';
    is $client->get('/auth', undef, with($key))->{json}{key_id}, $id, 'sign-up: the key is valid';
    my @wrong = map { outcome($client->post('/v1/accounts', $_)) } {}, { name => undef }, { name => '' }, { name => 1 }, { name => "a\nb" },
        { name => "\t" }, { name => '  ' }, [];
    is_deeply \@wrong, [ ('422 invalid_value') x 8 ], 'sign-up: a body without a valid name is 422';
    like $client->post('/v1/accounts', { name => '  ' })->{json}{detail}, qr{\A/name: expected }, 'sign-up: the answer to a blank name has its pointer';
};

subtest 'sign-up: AgentSignUp decides who may' => sub {
    is outcome($client->post("/$_/v1/accounts", { name => 'x' })), '403 sign_up_off', "sign-up: $_" for qw(off default);
    my $text = 'inv1_' . 'a' x 43;
    sql("insert into agent.invitations (invitation_id, digest, created_by, created_at, expires_at)
        values (gen_random_uuid(), decode('@{[ sha256_hex($text) ]}', 'hex'), 'x', now(), now() + interval '1 day')");
    my $to = new_client();
    is outcome($to->post('/invited/v1/accounts', $_)), '403 invitation_not_valid', 'sign-up: Invitation, and ' . encode_json($_)
        for { name => 'x' }, { name => 'x', invitation => 'x' }, { name => 'x', invitation => $text . 'a' };
    is outcome($to->post('/invited/v1/accounts', { name => 'x', invitation => $text })), '200 -', 'sign-up: a valid invitation';
    is outcome($to->post('/invited/v1/accounts', { name => 'x', invitation => $text })), '403 invitation_not_valid', 'sign-up: an invitation is valid once';
    my $log = slurp($postgres->host . '/postgres.log');
    like $log, qr/agent\.sign_up.*@{[ sha256_hex($text) ]}/s, 'sign-up: PostgreSQL has logged the digest of the invitation';
    is index($log, $text), -1, 'sign-up: PostgreSQL was not sent the invitation';
    is index($log, key_id($key, 4)), -1, 'sign-up: PostgreSQL was not sent the secret of a key';
};

subtest 'sign-up: requests of an address are limited' => sub {
    my $to = new_client();
    is outcome($to->post('/invited/v1/accounts', { name => 'x', invitation => 'x' })), '403 invitation_not_valid', 'sign-up: ten of an address are tried'
        for 1 .. 10;
    my $answer = $to->post('/v1/accounts', { name => 'x' });
    is outcome($answer), '429 too_many_sign_ups', 'sign-up: the next one is refused';
    cmp_ok $answer->{headers}{'retry-after'}, '>', 500, 'sign-up: the refusal names the time to try again';
    is outcome($to->get('/auth', undef, with($key))), '200 -', 'sign-up: other requests of the address are served';
    is outcome(new_client()->post('/v1/accounts', { name => 'y' })), '200 -', 'sign-up: other addresses too';
    my $proxy = AgentTest::Client->new(url => $server->url);
    my $from = sub { return outcome($proxy->post('/invited/v1/accounts', { name => 'x', invitation => 'x' }, { 'X-Forwarded-For' => $_[0] })) };
    is $from->("2001:db8::$_"), '403 invitation_not_valid', 'sign-up: ten of addresses of one IPv6 /64 are tried' for 1 .. 10;
    is $from->('2001:db8::ffff:1'), '429 too_many_sign_ups', 'sign-up: the next one of any of its addresses is refused';
    is $from->('2001:db8:0:1::1'), '403 invitation_not_valid', 'sign-up: one of another /64 is tried';
};

subtest 'GET /auth: any key says whose it is' => sub {
    my $answer = $client->get('/auth', undef, with($key))->{json};
    is_deeply $answer, { account_id => $account, account_name => 'Shop', region => 'local', key_id => $first->{json}{key_id}, key_name => 'first key',
        kind => 'service', user_id => undef, scopes => [qw(read run deploy admin)], deployment => undef, expires_at => undef }, 'GET /auth: the response has the members of a key';
    is outcome($client->get('/auth', undef, { Authorization => "Bearer $key" })), '200 -', 'GET /auth: also as a Bearer token';
    is outcome($client->get('/auth', undef, with(create_key($account, scopes => [$_])))), '200 -', "GET /auth: a key with the scope $_"
        for qw(read run deploy admin);
};

subtest 'platform accounts: an account is read, renamed, closed' => sub {
    my $mine = new_client()->post('/v1/accounts', { name => 'Mine' })->{json}{key};
    is ask('GET', '/v1/account', $mine)->{json}{name}, 'Mine', 'GET /v1/account: the account of the key';
    is ask('PATCH', '/v1/account', $mine, { name => 'Yours' })->{json}{name}, 'Yours', 'PATCH /v1/account: renames it';
    like ask('PATCH', '/v1/account', $mine, { name => ' ' })->{json}{detail}, qr{\A/name: expected }, 'PATCH /v1/account: the answer to a blank name has its pointer';
    is outcome(ask('PATCH', '/v1/account', $mine, { closed => 'yes' })), '422 invalid_value', 'PATCH /v1/account: closed is true or false';
    ok ask('PATCH', '/v1/account', $mine, { closed => Cpanel::JSON::XS::true })->{json}{closed_at}, 'PATCH /v1/account: closes it';
    is outcome(ask('PATCH', '/v1/account', $mine, { name => 'Again' })), '401 unknown_key', 'PATCH /v1/account: a closed account stays as it is';
};

subtest 'platform accounts: keys are created, listed, rotated, revoked' => sub {
    my $made = ask('POST', '/v1/account/keys', $key, { name => 'laptop', kind => 'personal', user_id => 'ann', scopes => ['read'], expires_in_sec => 3600 });
    is outcome($made), '200 -', 'POST /v1/account/keys: it is 200';
    like $made->{json}{key}, qr/\Aag1_local_pt_/, 'POST /v1/account/keys: the key is in it';
    is outcome($client->get('/agents/threads/01900000-0000-7000-8000-000000000000', undef, with($made->{json}{key}))), '404 deployment_not_found',
        'POST /v1/account/keys: the key authenticates its account';
    my %bad = (
        'no name'         => {},
        'a blank name'    => { name => ' ' },
        'another kind'    => { name => 'x', kind => 'root' },
        'a misspelt member' => { name => 'x', scope => ['read'] },
        'another scope'   => { name => 'x', scopes => ['all'] },
        'no list'         => { name => 'x', scopes => 'read' },
        'no scope'        => { name => 'x', scopes => [] },
        'a scope twice'   => { name => 'x', scopes => [qw(read read)] },
        'a user of no personal key' => { name => 'x', user_id => 'ann' },
        'a time of 0'     => { name => 'x', expires_in_sec => 0 },
    );
    is outcome(ask('POST', '/v1/account/keys', $key, $bad{$_})), '422 invalid_value', "POST /v1/account/keys: $_" for sort keys %bad;
    for my $case ([ '/name', name => ' ' ], [ '/scopes', scopes => [] ], [ '/scopes', scopes => [qw(read read)] ], [ '/user_id', kind => 'personal', user_id => ' ' ],
        [ '/user_id', kind => 'personal' ], [ '/user_id', user_id => 'ann' ], [ '/deployment', kind => 'deployment' ]) {
        my ($pointer, @members) = @{$case};
        like ask('POST', '/v1/account/keys', $key, { name => 'x', @members })->{json}{detail}, qr/\A$pointer: expected /,
            "POST /v1/account/keys: the answer to @members names $pointer";
    }
    is outcome(ask('POST', '/v1/account/keys', $key, { name => 'x', deployment => 'none' })), '404 deployment_not_found', 'POST /v1/account/keys: an unknown deployment';
    my $rotated = ask('POST', "/v1/account/keys/$made->{json}{key_id}/rotate", $key, { overlap_sec => 0 });
    is $rotated->{json}{user_id}, 'ann', 'POST .../rotate: the new key is of the same user';
    is outcome(ask('POST', "/v1/account/keys/$made->{json}{key_id}/rotate", $key, {})), '409 key_revoked', 'POST .../rotate: the old one is no longer valid';
    my ($listed) = grep { $_->{key_id} eq $rotated->{json}{key_id} } @{ ask('GET', '/v1/account/keys', $key)->{json} };
    ok $listed && !exists $listed->{key}, 'GET /v1/account/keys: no key is shown again';
    my (@ids, $next);
    do {
        my $page = ask('GET', '/v1/account/keys?limit=2' . (defined $next ? "&after=$next" : ''), $key);
        push @ids, map { $_->{key_id} } @{ $page->{json} };
        $next = $page->{headers}{'x-pagination-next'};
    } while (defined $next);
    is_deeply \@ids, [ sql("select key_id from agent.api_keys where account_id = '$account' order by 1") ], 'GET /v1/account/keys: page by page';
    ok ask('DELETE', "/v1/account/keys/$rotated->{json}{key_id}", $key)->{json}{revoked_at}, 'DELETE: the record of the key that is revoked';
    is outcome(ask('GET', "/v1/account/keys?limit=$_", $key)), '422 invalid_value', "GET /v1/account/keys: limit=$_" for 0, 1001, 'x';
};

subtest 'platform accounts: the keys of others and keys that do not exist have the same answer' => sub {
    for my $operation ([ 'DELETE', '' ], [ 'POST', '/rotate' ]) {
        my ($method, $end) = @{$operation};
        my %answers = map { $_ => ask($method, "/v1/account/keys/$_$end", $key, {}) } $other->{key_id}, $UNKNOWN, 'x', '%27', $other->{key};
        is join(' ', map { outcome($_) } values %answers), join(' ', ('404 key_not_found') x 5), "$method .../keys/{key_id}$end: 404";
        is scalar(keys %{ { map { $_->{body} => 1 } values %answers } }), 1, "$method .../keys/{key_id}$end: with the same body";
    }
    is outcome($client->get('/auth', undef, with($other->{key}))), '200 -', "platform accounts: another account's key stays valid";
};

subtest 'platform accounts: usage' => sub {
    my $shop = sql("select agent.ensure_deployment('shop', '$account')");
    sql("insert into agent.usage_events (deployment_id, run_id, thread_id, assistant_id, graph_id, status, attempts, epoch, created_at, started_at, finished_at)
        select '$shop', gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'agent', 'success', 1, 1, t, t, t from (values (timestamptz '2030-06-01T12:00:00Z')) v (t)");
    my $period = 'start=2030-06-01T00:00:00Z&end=2030-06-03T00:00:00Z';
    is_deeply [ map { $_->{runs} } @{ ask('GET', "/v1/account/usage?$period", $key)->{json} } ], [ 1, 0 ], 'GET /v1/account/usage: by the day';
    is scalar @{ ask('GET', "/v1/account/usage?unit=hour&$period", $key)->{json} }, 48, 'GET /v1/account/usage: by the hour';
    is_deeply [ map { $_->{runs} } @{ ask('GET', "/v1/account/usage?$period", $other->{key})->{json} } ], [ 0, 0 ], "GET /v1/account/usage: not another account's";
    my $page = ask('GET', '/v1/account/usage?unit=hour&start=2030-01-01&end=2030-06-01', $key);
    is $page->{headers}{'x-pagination-next'}, '2030-02-01T00:00:00.000000+00:00', 'GET /v1/account/usage: the start of the next page';
    is outcome(ask('GET', "/v1/account/usage?$_", $key)), '422 invalid_value', "GET /v1/account/usage: $_" for 'unit=week', 'start=x', 'end=infinity', 'start=yesterday',
        'start=' . 'x' x 41;
    like ask('GET', '/v1/account/usage?start=yesterday', $key)->{json}{detail}, qr/start and end: expected a day such as \d{4}-\d\d-\d\d/,
        'GET /v1/account/usage: the error says which form is expected';
};

subtest 'platform accounts: the audit log' => sub {
    my $log = ask('GET', '/v1/account/audit', $key)->{json};
    is "$log->[-1]{actor} $log->[-1]{action}", 'sign-up account.create', 'GET /v1/account/audit: from the sign-up on';
    is "$log->[0]{actor} $log->[0]{action}", 'system deployment.open', 'GET /v1/account/audit: the last action first';
    my ($by_key) = grep { $_->{actor} ne 'system' } @{$log};
    is $by_key->{actor}, "key $first->{json}{key_id}", 'GET /v1/account/audit: with the key that did it';
    my $page = ask('GET', '/v1/account/audit?limit=1', $key);
    my $rest = ask('GET', "/v1/account/audit?before=$page->{headers}{'x-pagination-next'}", $key);
    is_deeply [ @{ $page->{json} }, @{ $rest->{json} } ], $log, 'GET /v1/account/audit: page by page';
    is outcome(ask('GET', "/v1/account/audit?before=$_", $key)), '422 invalid_value', "GET /v1/account/audit: before=$_" for 'x', '-1', '9' x 19;
    unlike slurp($postgres->host . '/postgres.log'), qr/out of range for type bigint/, 'GET /v1/account/audit: PostgreSQL is asked for no position that it would refuse, and log';
    ok index(encode_json($log), (split /_/, $key)[4]) < 0, 'GET /v1/account/audit: without secrets';
};

subtest 'platform accounts: each route needs a key with its scope' => sub {
    sql("select agent.ensure_deployment('shop', '$account')");
    my %with = map { $_ => create_key($account, scopes => [$_]) } qw(read run deploy admin);
    my $bound = create_key($account, deployment => 'shop');
    my %scopes = scopes('platform');
    is_deeply [ sort map { $_->{name} } routes('platform') ], [ sort keys %scopes ], 'there are no other routes';
    for my $name (grep { $scopes{$_} ne 'none' } sort keys %scopes) {
        my ($method, $path) = split / /, $name;
        my $scope = $scopes{$name};
        $path =~ s/\{key_id\}/$UNKNOWN/;
        my $answer = ask($method, $path, undef, $method eq 'GET' ? undef : []);
        is outcome($answer), '401 unauthorized', "$method $path without a key";
        is $answer->{headers}{'www-authenticate'}, 'Bearer realm="agent"', "$method $path without a key has the challenge";
        for my $granted (sort keys %with) {
            my $is_granted = $scope eq 'any' || $scope eq $granted;
            # A body that is not an object: nothing is changed.
            my $status = outcome(ask($method, $path, $with{$granted}, $method eq 'GET' ? undef : []));
            $is_granted ? unlike($status, qr/\A40[13]/, "$method $path with $granted") : is($status, '403 scope_required', "$method $path with $granted");
        }
        is outcome(ask($method, $path, $bound, $method eq 'GET' ? undef : [])), $scope eq 'any' ? '200 -' : '403 scope_required',
            "$method $path with a key of a deployment";
    }
};

subtest 'platform accounts: a key is refused before the body is read' => sub {
    my $socket = $client->connection;
    syswrite $socket, "POST /v1/account/keys HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000\r\n\r\n";
    is outcome(parse_response(read_to_end($socket))), '401 unauthorized', 'platform accounts: without a byte of it';
};

subtest 'bodies: what the host does not have is answered before the body, which has at most 64 KB' => sub {
    my $admin = create_key(create_account());
    # The outcome of a request whose body does not arrive, and its Connection.
    my $send = sub {
        my ($request, $framing, $body) = @_;
        my $socket = $client->connection;
        syswrite $socket, "$request HTTP/1.1\r\nHost: localhost\r\nx-api-key: $admin\r\n$framing\r\n\r\n" . ($body // '');
        my $answer = parse_response(read_to_end($socket));
        return outcome($answer) . " $answer->{headers}{connection}";
    };
    my $large = 'Content-Length: 4000000';
    is $send->('POST /nothing', $large), '404 not_found close', 'bodies: an unknown path';
    is $send->('PUT /v1/account', $large), '405 method_not_allowed close', 'bodies: an unknown method';
    is $send->('OPTIONS /nothing', 'Transfer-Encoding: chunked'), '404 not_found close', 'bodies: chunked, to an unknown path';
    is $send->('POST /v1/account/keys', $large), '413 body_too_large close', 'bodies: one that is announced as too large';
    is $send->('POST /v1/account/keys', 'Content-Length: 65537'), '413 body_too_large close', 'bodies: by one byte';
    is $send->('POST /v1/account/keys', 'Transfer-Encoding: chunked', sprintf("%x\r\n%s\r\n", 65_537, ' ' x 65_537)), '413 body_too_large close',
        'bodies: one that becomes too large';
    my $fits = encode_json({ name => 'fits' });
    is outcome(parse_response($client->exchange("POST /v1/account/keys HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nx-api-key: $admin\r\n"
        . "Content-Length: 65536\r\n\r\n" . $fits . ' ' x (65_536 - length $fits)))), '200 -', 'bodies: one of 64 KB';
};

subtest 'platform accounts: Require and AuthType apply beside it' => sub {
    is outcome(ask('GET', '/typed/auth', create_key($account, scopes => ['read']))), '403 scope_required', 'platform accounts: a Require that does not admit the key';
    is outcome(ask('GET', '/typed/auth', $key)), '200 -', 'platform accounts: one that does';
    is outcome(ask('GET', '/nothing', undef)), '404 not_found', 'platform accounts: a path that does not exist needs no key';
    is outcome(ask('PUT', '/v1/account', undef)), '405 method_not_allowed', 'platform accounts: a method that a path does not have needs no key';
};

subtest 'GET /.well-known/agent-addresses: without a key' => sub {
    is_deeply ask('GET', '/.well-known/agent-addresses')->{json}, { region => 'local', serial => 2026112901,
        ingress => [qw(203.0.113.10 203.0.113.9)], egress => [qw(198.51.100.1 198.51.100.8/29 2001:db8::1 2001:db8::2 203.0.113.9)],
        not_after => { ingress => { '203.0.113.9' => '2027-01-31' }, egress => { map { $_ => '2028-02-29' } qw(2001:db8::1 2001:db8::2 203.0.113.9) } } },
        'GET /.well-known/agent-addresses: the response has both lists of addresses';
};

subtest 'platform accounts: a database that is down is 503' => sub {
    my $fresh = create_key($account);
    $postgres->stop;
    is outcome(ask('GET', '/auth', $fresh)), '503 database_unavailable', 'platform accounts: for keys';
    is outcome(new_client()->post('/v1/accounts', { name => 'x' })), '503 database_unavailable', 'platform accounts: for sign-ups';
};

done_testing;
