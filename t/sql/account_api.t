# SPDX-License-Identifier: Apache-2.0
# Accounts as their customers manage them through a platform host.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;

my $DEFAULT = '00000000-0000-0000-0000-00000000000a';
my $DIGEST = '\x' . 'ab' x 32;
my $db = AgentSQL->new('-v', 'region=eu', '-v', "app_role=$AgentSQL::APP", '-v', "operator_role=$AgentSQL::OPERATOR");
my $owner = $db->session;
my $operator = $db->session($AgentSQL::OPERATOR);
my $session = $db->session($AgentSQL::APP);

# (code, body as data, next) of a function.
sub call {
    my ($name, @arguments) = @_;
    my ($code, $body) = $session->call($name, @arguments);
    my $next = $session->extra;
    return ($code, $body eq '' ? undef : $body =~ /\A[\[{]/ ? AgentSQL::decode($body) : $body, length($next // '') ? $next : undef);
}

sub code { return (call(@_))[0] }

my $NAME_REASON = '/name: expected from 1 to 200 characters, not only blank ones, and no control characters, of lines or of text direction.';

my $keys = 0;
sub key_id { return sprintf '%022d', ++$keys }

# The ids of a new account and of its first key.
sub account {
    my ($account, $key) = (AgentSQL::uuid(), key_id());
    is code('sign_up', '{"name":"Shop"}', undef, $account, $key, $DIGEST), 'ok';
    return ($account, $key);
}

# The id of another key of the account of a key.
sub key {
    my ($by, %request) = @_;
    my $id = key_id();
    is code('create_account_key', $by, AgentSQL::encode({ name => 'n', %request }), $id, $DIGEST), 'ok';
    return $id;
}

sub audit {
    my ($account) = @_;
    return [ map { join ' ', @{$_} } $owner->query("select actor, action, object from agent.audit_log
        where account_id = '$account' order by audit_id") ];
}

subtest 'a sign-up creates an account with a key of all scopes' => sub {
    my ($account, $key) = (AgentSQL::uuid(), key_id());
    my ($code, $body) = call('sign_up', '{"name":"Caf\u00e9"}', undef, $account, $key, $DIGEST);
    is $code, 'ok';
    is_deeply { %{$body}, created_at => undef, account => { %{ $body->{account} }, created_at => undef } },
        { key_id => $key, region => 'eu', account_id => $account, kind => 'service', name => 'first key', user_id => undef, deployment_id => undef, deployment => undef,
          scopes => [qw(read run deploy admin)], created_at => undef, expires_at => undef, revoked_at => undef, last_used_at => undef,
          account => { account_id => $account, name => "Caf\x{e9}", home_region => 'eu', created_at => undef, closed_at => undef } };
    is_deeply audit($account), [ "sign-up account.create $account", "sign-up key.create $key" ];
    is code('sign_up', '{"name":"again"}', undef, $account, key_id(), $DIGEST), 'account_exists';
    is join(' ', (call('sign_up', AgentSQL::encode({ name => $_ }), undef, AgentSQL::uuid(), key_id(), $DIGEST))[0, 1]), "invalid_value $NAME_REASON"
        for "a\nb", 'x' x 201, undef;
};

subtest 'an invitation creates one account, until it expires' => sub {
    my @digests = map { '\x' . sprintf('%02x', $_) x 32 } 1 .. 3;
    is +($operator->call('create_invitation', AgentSQL::uuid(), $digests[0], '1 day'))[0], 'ok';
    is +($operator->call('create_invitation', AgentSQL::uuid(), $digests[0], '1 day'))[0], 'invitation_exists';
    is +($operator->call('create_invitation', AgentSQL::uuid(), $digests[1], '-1 s'))[0], 'invalid_value';
    is +($operator->call('create_invitation', AgentSQL::uuid(), '\x00', '1 s'))[0], 'invalid_value';
    $owner->query("insert into agent.invitations (invitation_id, digest, created_by, created_at, expires_at)
        values (gen_random_uuid(), '$digests[1]', 'x', now() - interval '2 s', now() - interval '1 s')");
    my $by = sub { return code('sign_up', '{"name":"x"}', $_[0], $_[1] // AgentSQL::uuid(), key_id(), $DIGEST) };
    is $by->($digests[1]), 'invitation_not_valid', 'one that has expired';
    is $by->($digests[2]), 'invitation_not_valid', 'one that does not exist';
    is code('sign_up', '{"name":"a\u0001"}', $digests[0], AgentSQL::uuid(), key_id(), $DIGEST), 'invalid_value';
    my $account = AgentSQL::uuid();
    is $by->($digests[0], $account), 'ok', 'one whose account was refused is not used';
    is $by->($digests[0]), 'invitation_not_valid', 'one that was used';
    is $owner->value("select account_id from agent.invitations where digest = '$digests[0]' and used_at is not null"), $account;
    is $owner->value("select l.detail ->> 'invitation_id' = i.invitation_id::text from agent.audit_log l join agent.invitations i using (account_id)
        where l.action = 'account.create'"), 't', 'the audit log names it';
};

subtest 'an invitation that is revoked creates no account, and one that has created an account is not revoked' => sub {
    my @digests = map { '\x' . sprintf('%02x', $_) x 32 } 11 .. 13;
    my @ids = map { AgentSQL::uuid() } @digests;
    is +($operator->call('create_invitation', $ids[$_], $digests[$_], '1 day'))[0], 'ok' for 0 .. 2;
    my $by = sub { return code('sign_up', '{"name":"x"}', $digests[ $_[0] ], AgentSQL::uuid(), key_id(), $DIGEST) };
    my ($code, $body) = $operator->call('revoke_invitation', $ids[0], undef);
    is $code, 'ok';
    is +($operator->call('revoke_invitation', $ids[0], undef))[1], $body, 'a second revocation changes nothing';
    is +($operator->call('revoke_invitation', undef, $digests[1]))[0], 'ok', 'by its digest';
    is $by->($_), 'invitation_not_valid' for 0, 1;
    is $by->(2), 'ok';
    is +($operator->call('revoke_invitation', $ids[2], undef))[0], 'invitation_used';
    is +($operator->call('revoke_invitation', @{$_}))[0], 'invitation_not_found' for [ AgentSQL::uuid(), undef ], [ undef, '\x00' ], [ undef, undef ];
    my $list = sub { return AgentSQL::decode(($operator->call('list_invitations', @_))[1]) };
    is_deeply [ map { $_->{invitation_id} } grep { my $id = $_->{invitation_id}; grep { $_ eq $id } @ids } @{ $list->(undef, 1000) } ], [ sort @ids ];
    my ($first, $second) = @{ $list->(undef, 1000) };
    is_deeply $list->($first->{invitation_id}, 1), [$second], 'a page after an id';
};

subtest 'a revocation waits for a sign-up with the invitation' => sub {
    my ($digest, $id) = ('\x' . '0e' x 32, AgentSQL::uuid());
    is +($operator->call('create_invitation', $id, $digest, '1 day'))[0], 'ok';
    my $other = $db->session($AgentSQL::OPERATOR);
    $session->query('begin');
    is code('sign_up', '{"name":"x"}', $digest, AgentSQL::uuid(), key_id(), $DIGEST), 'ok';
    $other->send("select code from agent.revoke_invitation('$id', null)");
    ok $other->waits_for($session), 'the revocation waits';
    $session->query('commit');
    is $other->receive, 'invitation_used';
    $other->close;
};

subtest 'two sign-ups with one invitation at the same time: one account' => sub {
    my $digest = '\x' . 'cd' x 32;
    is +($operator->call('create_invitation', AgentSQL::uuid(), $digest, '1 day'))[0], 'ok';
    my $other = $db->session($AgentSQL::APP);
    $session->query('begin');
    is code('sign_up', '{"name":"x"}', $digest, AgentSQL::uuid(), key_id(), $DIGEST), 'ok';
    $other->send("select code from agent.sign_up('{\"name\":\"y\"}', '$digest', gen_random_uuid(), '@{[ key_id() ]}', '$DIGEST')");
    ok $other->waits_for($session), 'the second one waits for the first';
    $session->query('commit');
    is $other->receive, 'invitation_not_valid';
    $other->close;
};

subtest 'a key says whose it is' => sub {
    my ($account, $key) = account();
    $owner->query("select agent.ensure_deployment('shop', '$account')");
    my $bound = key($key, kind => 'deployment', deployment => 'shop', scopes => ['run']);
    is_deeply +(call('describe_api_key', $bound))[1], { account_id => $account, account_name => 'Shop', region => 'eu', key_id => $bound, key_name => 'n',
        kind => 'deployment', user_id => undef, scopes => ['run'], deployment => 'shop', expires_at => undef };
    is +(call('describe_api_key', $key))[1]{deployment}, undef;
    is code('describe_api_key', 'x' x 22), 'unknown_key';
};

subtest 'an account is read, renamed and closed by its key' => sub {
    my ($account, $key) = account();
    is +(call('get_account', $account))[1]{name}, 'Shop';
    is code('get_account', AgentSQL::uuid()), 'account_not_found';
    is +(call('update_account', $key, '{"name":"Store"}'))[1]{name}, 'Store';
    is join(' ', (call('update_account', $key, qq({"name":"$_"})))[0, 1]), "invalid_value $NAME_REASON" for 'a\u0007', '  ', '\u2003';
    $owner->query(q{alter table agent.accounts add constraint accounts_later_check check (name <> 'Later')});
    $owner->query(q{comment on constraint accounts_later_check on agent.accounts is 'Not Later.'});
    is join(' ', (call('update_account', $key, '{"name":"Later"}'))[0, 1]), 'invalid_value Not Later.', 'the reason is that of the check that failed';
    is join(' ', (call('sign_up', '{"name":"Later"}', undef, AgentSQL::uuid(), key_id(), $DIGEST))[0, 1]), 'invalid_value Not Later.', 'of a sign-up too';
    $owner->query('alter table agent.accounts drop constraint accounts_later_check');
    is +(call('update_account', $key, '{"closed":false}'))[1]{closed_at}, undef;
    like +(call('update_account', $key, '{"closed":true}'))[1]{closed_at}, qr/\A2\d{3}-/;
    is code('update_account', $key, '{"name":"Again"}'), 'unknown_key', 'a key of a closed account changes nothing';
    is_deeply [ @{ audit($account) }[ 2 .. 3 ] ], [ "key $key account.rename $account", "key $key account.close $account" ];
    my $built_in = key_id();
    is +($operator->call('create_api_key', $built_in, $DEFAULT, $DIGEST, 'service', 'n', undef, undef, ['admin'], undef))[0], 'ok';
    is code('update_account', $built_in, '{"closed":true}'), 'account_is_built_in';
    my $name = (call('get_account', $DEFAULT))[1]{name};
    is code('update_account', $built_in, '{"name":"Renamed","closed":true}'), 'account_is_built_in';
    is +(call('get_account', $DEFAULT))[1]{name}, $name, 'it is not renamed either';
};

subtest 'a new key has what the request says' => sub {
    my ($account, $key) = account();
    my ($code, $body) = call('create_account_key', $key, '{"name":"laptop","kind":"personal","user_id":"ann","scopes":["run"],"expires_in_sec":60}', key_id(), $DIGEST);
    is $code, 'ok';
    is_deeply [ @{$body}{qw(account_id name kind user_id scopes)} ], [ $account, 'laptop', 'personal', 'ann', ['run'] ];
    is $owner->value("select '$body->{expires_at}'::timestamptz - '$body->{created_at}'::timestamptz"), '00:01:00';
    is_deeply +(call('create_account_key', $key, '{"name":"n"}', key_id(), $DIGEST))[1]{scopes}, [ 'read', 'run' ], 'read and run without scopes';
    is code('create_account_key', $key, '{"name":"n","deployment":"none"}', key_id(), $DIGEST), 'deployment_not_found';
    is code('create_account_key', $key, '{"name":"n","kind":"personal"}', key_id(), $DIGEST), 'invalid_value';
    is code('create_account_key', $key, '{"name":" \u00a0"}', key_id(), $DIGEST), 'invalid_value', 'a blank name';
    is audit($account)->[2], "key $key key.create $body->{key_id}", 'the audit log has the key that made it';
};

subtest 'a key that is not valid, is for a deployment or does not grant admin changes nothing' => sub {
    my ($account, $key) = account();
    $owner->query("select agent.ensure_deployment('shop', '$account')");
    my %actor = (
        'unknown'          => 'x' x 22,
        'no admin'         => key($key, scopes => [qw(read run deploy)]),
        'of a deployment'  => key($key, scopes => ['admin'], deployment => 'shop'),
        'revoked'          => key($key, scopes => ['admin']),
        'expired'          => key($key, scopes => ['admin'], expires_in_sec => 60),
    );
    is code('revoke_account_key', $key, $actor{revoked}), 'ok';
    $owner->query("update agent.api_keys set created_at = now() - interval '2 h', expires_at = now() - interval '1 h' where key_id = '$actor{expired}'");
    my $before = audit($account);
    for my $title (sort keys %actor) {
        my $by = $actor{$title};
        is code('update_account', $by, '{"name":"x"}'), 'unknown_key', "$title: rename";
        is code('create_account_key', $by, '{"name":"x"}', key_id(), $DIGEST), 'unknown_key', "$title: create";
        is code('rotate_account_key', $by, $key, '{}', key_id(), $DIGEST), 'unknown_key', "$title: rotate";
        is code('revoke_account_key', $by, $key), 'unknown_key', "$title: revoke";
    }
    is_deeply audit($account), $before;
};

subtest 'keys of another account and keys that do not exist: the answer is the same' => sub {
    my (undef, $mine) = account();
    my (undef, $theirs) = account();
    for my $id ($theirs, 'x' x 22, '', "'") {
        is_deeply [ call('revoke_account_key', $mine, $id) ], [ 'key_not_found', undef, undef ];
        is_deeply [ call('rotate_account_key', $mine, $id, '{}', key_id(), $DIGEST) ], [ 'key_not_found', undef, undef ];
    }
    is +(call('describe_api_key', $theirs))[0], 'ok';
    is $owner->value("select revoked_at is null from agent.api_keys where key_id = '$theirs'"), 't';
};

subtest 'a key is rotated with an overlap, and revoked, also by itself' => sub {
    my ($account, $key) = account();
    my $next = key_id();
    is +(call('rotate_account_key', $key, $key, '{"overlap_sec":60}', $next, $DIGEST))[1]{key_id}, $next;
    is $owner->value("select round(extract(epoch from expires_at - now())) between 50 and 60 from agent.api_keys where key_id = '$key'"), 't';
    my $third = key_id();
    is code('rotate_account_key', $key, $next, '{}', $third, $DIGEST), 'ok';
    is $owner->value("select round(extract(epoch from expires_at - now()) / 3600) from agent.api_keys where key_id = '$next'"), 24, 'a day without overlap_sec';
    like +(call('revoke_account_key', $third, $third))[1]{revoked_at}, qr/\A2/;
    is code('revoke_account_key', $third, $key), 'unknown_key', 'it can do nothing more';
    is code('revoke_account_key', $key, $third), 'ok', 'a second revocation changes nothing';
    is code('rotate_account_key', $key, $third, '{}', key_id(), $DIGEST), 'key_revoked';
    is_deeply [ map { s/\Akey \S+ //r } @{ audit($account) }[ 2 .. 4 ] ], [ "key.rotate $next", "key.rotate $third", "key.revoke $third" ];
};

subtest 'a client that has lost the new key rotates the old one again, and gets a key with the whole lifetime' => sub {
    my ($account, $never) = account();
    my $limited = key($never, expires_in_sec => 86400);
    for my $case ([ $never, undef ], [ $limited, '1 day' ]) {
        my ($old, $lifetime) = @{$case};
        for my $overlap (60, 3600) {
            my ($code, $key) = call('rotate_account_key', $never, $old, AgentSQL::encode({ overlap_sec => $overlap }), key_id(), $DIGEST);
            is $code, 'ok';
            is $owner->value("select expires_at - created_at from agent.api_keys where key_id = '$key->{key_id}'") // '', $lifetime // '', "overlap $overlap";
        }
    }
    is $owner->value("select max(expires_at) - max(created_at) < '62 s' from agent.api_keys where key_id in ('$never', '$limited')"), 't', 'the second rotation does not prolong the overlap';
};

subtest 'a key that is revoked at the same time makes no other one' => sub {
    my ($account, $key) = account();
    my $other = $db->session($AgentSQL::APP);
    $session->query('begin');
    is code('revoke_account_key', $key, $key), 'ok';
    $other->send("select code from agent.create_account_key('$key', '{\"name\":\"x\"}', '@{[ key_id() ]}', '$DIGEST')");
    ok $other->waits_for($session), 'the creation waits for the revocation';
    $session->query('commit');
    is $other->receive, 'unknown_key';
    is $owner->value("select count(*) from agent.api_keys where account_id = '$account'"), 1;
    $other->close;
};

subtest 'keys and the audit log are listed in pages' => sub {
    my ($account, $key) = account();
    my @ids = ($key, map { key($key) } 1 .. 2);
    my ($code, $body, $next) = call('list_account_keys', $account, undef, 2);
    is_deeply [ $code, $next, map { $_->{key_id} } @{$body} ], [ 'ok', $ids[1], @ids[ 0, 1 ] ];
    ok !exists $body->[0]{digest};
    (undef, $body, $next) = call('list_account_keys', $account, $next, 2);
    is_deeply [ $next, map { $_->{key_id} } @{$body} ], [ undef, $ids[2] ];
    (undef, $body, $next) = call('list_audit_log', $account, undef, 3);
    is_deeply [ map { "$_->{action} $_->{object}" } @{$body} ], [ "key.create $ids[2]", "key.create $ids[1]", "key.create $ids[0]" ], 'the last action first';
    is_deeply $body->[0]{detail}, { kind => 'service', name => 'n', scopes => [ 'read', 'run' ] };
    (undef, $body, $next) = call('list_audit_log', $account, $next, 3);
    is_deeply [ $next, map { "$_->{actor} $_->{action}" } @{$body} ], [ undef, 'sign-up account.create' ];
    is_deeply [ call('list_audit_log', AgentSQL::uuid(), undef, 3) ], [ 'ok', [], undef ];
};

# A run of a deployment that ended at a time, after 2.5 s.
sub used {
    my ($deployment, $time, $status) = @_;
    $owner->query("insert into agent.usage_events (deployment_id, run_id, thread_id, assistant_id, graph_id, status, attempts, epoch, created_at, started_at, finished_at)
        values ('$deployment', gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'agent', '$status', 1, 1, '$time', '$time'::timestamptz - interval '2.5 s', '$time')");
    return;
}

subtest 'usage is summed by the hour and the day in which runs ended' => sub {
    my ($account) = account();
    my ($other) = account();
    my ($shop, $desk) = map { $owner->value("select agent.ensure_deployment('$_', '$account')") } 'shop', 'desk';
    my $foreign = $owner->value("select agent.ensure_deployment('shop', '$other')");
    used($shop, '2030-06-01T00:00:00Z', 'success');
    used($desk, '2030-06-01T01:30:00Z', 'error');
    used($shop, '2030-06-02T00:00:00Z', 'timeout');
    used($foreign, '2030-06-01T01:00:00Z', 'success');
    $session->query("set timezone = 'America/New_York'");
    my @period = ('2030-06-01T00:00:00Z', '2030-06-02T00:00:00Z');
    my ($code, $body, $next) = call('get_usage', $account, 'day', @period, undef);
    is_deeply [ $code, $next, $body ], [ 'ok', undef, [ { start => '2030-06-01T00:00:00.000000+00:00', runs => 2, success => 1, interrupted => 0, error => 1,
        timeout => 0, rolled_back => 0, run_seconds => 5 } ] ], 'a day of UTC, up to its end';
    (undef, $body) = call('get_usage', $account, 'hour', @period, undef);
    is_deeply [ map { $_->{runs} } @{$body} ], [ 1, 1, (0) x 22 ], 'hours without a run too';
    (undef, $body) = call('get_usage', $account, 'day', @period, 'desk');
    is $body->[0]{runs}, 1, 'of one deployment';
    is +(call('get_usage', $account, 'day', @period, 'none'))[1][0]{runs}, 0;
    is +(call('get_usage', AgentSQL::uuid(), 'day', @period, undef))[1][0]{runs}, 0;
    is scalar @{ (call('get_usage', $account, 'day', undef, undef, undef))[1] }, 31, 'the last 30 days by default';
    is scalar @{ (call('get_usage', $account, 'hour', undef, undef, undef))[1] }, 25;
    ($code, $body, $next) = call('get_usage', $account, 'hour', '2030-01-01T00:00:00Z', '2030-06-01T00:00:00Z', undef);
    is_deeply [ scalar @{$body}, $next ], [ 744, '2030-02-01T00:00:00.000000+00:00' ], 'a page has 744 sums';
    is_deeply +(call('get_usage', $account, 'day', reverse(@period), undef))[1], [];
    is code('get_usage', $account, 'day', @{$_}, undef), 'invalid_value', "$_->[0] to $_->[1]"
        for [ 'x', $period[1] ], [ $period[0], 'infinity' ], [ '-infinity', $period[1] ], [ '0001-01-01', $period[1] ],
            [ '2030-13-01', $period[1] ], [ $period[0], '290000-01-01' ], [ 'yesterday', $period[1] ], [ $period[0], 'now' ],
            [ '01/02/2030', $period[1] ], [ '2030-02-30', $period[1] ], [ "2030-01-01\n", $period[1] ], [ '', $period[1] ];
    for my $same ([ '2030-06-01', '2030-06-02' ], [ '2030-06-01 00:00', '2030-06-01T24:00:00Z' ], [ '2030-06-01T02:00:00.0+02:00', '2030-06-01T19:00-0500' ]) {
        (undef, $body) = call('get_usage', $account, 'day', @{$same}, undef);
        is $body->[0]{runs}, 2, "$same->[0] to $same->[1]: of UTC without a zone";
    }
};

subtest 'a page of usage ends early when it has examined many runs' => sub {
    my ($account) = account();
    my $shop = $owner->value("select agent.ensure_deployment('shop', '$account')");
    $owner->query("insert into agent.usage_events (deployment_id, run_id, thread_id, assistant_id, graph_id, status, attempts, epoch, created_at, started_at, finished_at)
        select '$shop', gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'agent', 'success', 1, 1, t, t, t
          from generate_series(1, 300000) n, lateral (select timestamptz '2030-06-01T00:00:00Z' + n * interval '0.5 s') x (t)");
    my (undef, $body, $next) = call('get_usage', $account, 'hour', '2030-06-01T00:00:00Z', '2030-06-03T00:00:00Z', undef);
    is scalar @{$body}, 28;
    (undef, my $rest) = call('get_usage', $account, 'hour', $next, '2030-06-03T00:00:00Z', undef);
    my $runs = 0;
    $runs += $_->{runs} for @{$body}, @{$rest};
    is $runs, 300000, 'the next one goes on where it ended';
};

subtest 'an hour with many runs is divided, under one start' => sub {
    my ($account) = account();
    my $shop = $owner->value("select agent.ensure_deployment('shop', '$account')");
    # The last 1,000 end at one moment.
    $owner->query("insert into agent.usage_events (deployment_id, run_id, thread_id, assistant_id, graph_id, status, attempts, epoch, created_at, started_at, finished_at)
        select '$shop', gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'agent', 'success', 1, 1, t, t, t
          from generate_series(1, 300000) n, lateral (select timestamptz '2030-06-01T00:00:00Z' + least(n, 299000) * interval '1 ms') x (t)");
    my ($next, $runs, $pages, %starts) = ('2030-06-01T00:00:00Z', 0, 0);
    while (defined $next) {
        (undef, my $body, $next) = call('get_usage', $account, 'hour', $next, '2030-06-01T02:00:00Z', undef);
        $pages++;
        $runs += $_->{runs} for @{$body};
        $starts{ $_->{start} }++ for @{$body};
    }
    is_deeply [ $runs, $pages, \%starts ], [ 300000, 2, { '2030-06-01T00:00:00.000000+00:00' => 2, '2030-06-01T01:00:00.000000+00:00' => 1 } ];
    my $other = $owner->value("select agent.ensure_deployment('desk', '$account')");
    used($other, '2030-06-01T00:00:00Z', 'error');
    (undef, my $body) = call('get_usage', $account, 'hour', '2030-06-01T00:00:00Z', '2030-06-01T01:00:00Z', undef);
    is $body->[0]{error}, 1, 'a deployment with few runs is complete up to that time';
};

$_->close for $owner, $operator, $session;
done_testing;
