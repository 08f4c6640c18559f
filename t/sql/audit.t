# SPDX-License-Identifier: Apache-2.0
# The audit log: each action that changes an account, its keys, deployments or limits, by whomever, is recorded once,
# in its transaction.
use strict;
use warnings;

use File::Find qw(find);
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;

my $DIGEST = '\x' . 'ab' x 32;
my $db = AgentSQL->new('-v', "app_role=$AgentSQL::APP", '-v', "operator_role=$AgentSQL::OPERATOR");
my $owner = $db->session;
my ($server, $operator) = map { $db->session($_) } $AgentSQL::APP, $AgentSQL::OPERATOR;
my $person = 'operator ' . $operator->value('select session_user');
my %seen;
my $keys = 0;
sub key_id { return sprintf '%022d', ++$keys }

# Rows of an account's log since the last call.
my $last = 0;
sub recorded {
    my ($account) = @_;
    my @rows = $owner->query("select audit_id, actor, action, object, detail from agent.audit_log
        where account_id = '$account' and audit_id > $last order by audit_id");
    $last = $rows[-1][0] if @rows;
    $seen{ $_->[2] } = 1 for @rows;
    return [ map { [ @{$_}[ 1 .. 3 ], AgentSQL::decode($_->[4]) ] } @rows ];
}

sub must { my ($session, @call) = @_; my ($code, $body) = $session->call(@call); is $code, 'ok', $call[0] or diag $body; return $body }

my ($account, $by_operator) = map { AgentSQL::uuid() } 1, 2;
my $key = key_id();

subtest 'accounts: who creates, renames, exports and closes them' => sub {
    must($server, 'sign_up', '{"name":"Shop"}', undef, $account, $key, $DIGEST);
    my $rows = recorded($account);
    is_deeply [ map { "$_->[0] $_->[1] $_->[2]" } @{$rows} ], [ "sign-up account.create $account", "sign-up key.create $key" ];
    must($server, 'update_account', $key, '{"name":"Till"}');
    is_deeply recorded($account), [ [ "key $key", 'account.rename', $account, { name => 'Till' } ] ];
    my $export = AgentSQL::uuid();
    must($server, 'begin_export', $key, $export) for 1, 2;
    is_deeply recorded($account), [ [ "key $key", 'account.export', $export, {} ] ], 'an export once, though its beginning is repeated';
    must($operator, 'create_account', $by_operator, 'Desk');
    is_deeply recorded($by_operator), [ [ $person, 'account.create', $by_operator, { name => 'Desk' } ] ];
    must($operator, 'close_account', $by_operator) for 1, 2;
    is_deeply recorded($by_operator), [ [ $person, 'account.close', $by_operator, {} ] ], 'the second close is not recorded';
};

subtest 'accounts: a name that stays is not recorded' => sub {
    must($server, 'update_account', $key, '{"name":"Till"}') for 1, 2;
    must($server, 'update_account', $key, '{}');
    is_deeply recorded($account), [];
};

subtest 'keys: who creates, rotates and revokes them, and which have expired' => sub {
    my ($made, $rotated, $short) = map { key_id() } 1 .. 3;
    must($server, 'create_account_key', $key, '{"name":"n","scopes":["read"]}', $made, $DIGEST);
    my ($row) = @{ recorded($account) };
    is_deeply [ @{$row}[ 0 .. 2 ] ], [ "key $key", 'key.create', $made ];
    must($server, 'rotate_account_key', $key, $made, '{}', $rotated, $DIGEST);
    ($row) = @{ recorded($account) };
    is_deeply [ @{$row}[ 0 .. 2 ] ], [ "key $key", 'key.rotate', $rotated ];
    must($server, 'revoke_account_key', $key, $rotated) for 1, 2;
    is_deeply recorded($account), [ [ "key $key", 'key.revoke', $rotated, {} ] ];
    must($operator, 'create_api_key', $short, $account, $DIGEST, 'service', 'n', undef, undef, ['run'], '1 s');
    $server->query("set agent.now = '" . $owner->value("select clock_timestamp() + interval '2 s'") . q('));
    $server->value("select agent.expire_api_keys('{$short}')");
    $server->query('reset agent.now');
    is_deeply [ map { [ @{$_}[ 0 .. 2 ] ] } @{ recorded($account) } ], [ [ $person, 'key.create', $short ], [ 'system', 'key.expire', $short ] ];
};

subtest 'an account whose keys have done 1,000 recorded actions within a day creates, rotates, renames and exports nothing more' => sub {
    my ($busy, $by) = (AgentSQL::uuid(), key_id());
    must($server, 'sign_up', '{"name":"Busy"}', undef, $busy, $by, $DIGEST);
    my ($code, $body, $made) = ('ok');
    # The client's loop.
    while ($code eq 'ok' && $keys < 3000) {
        ($code, $body) = $server->call('create_account_key', $by, '{"name":"n"}', $made = key_id(), $DIGEST);
        $server->call('revoke_account_key', $by, $made) if $code eq 'ok';
    }
    is $code, 'too_many_actions';
    like $body, qr/1000 actions within a day/;
    my $rows = sub { return $owner->value("select count(*) from agent.audit_log where account_id = '$busy' and actor like 'key %'") };
    is $rows->(), 1000, 'the rows of its keys in the log';
    cmp_ok $owner->value("select count(*) from agent.api_keys where account_id = '$busy'"), '<=', 501, 'the keys of the account are bounded: the first one, and one for two actions';
    is +($server->call('rotate_account_key', $by, $by, '{}', key_id(), $DIGEST))[0], 'too_many_actions', 'rotate_account_key';
    is +($server->call('update_account', $by, '{"name":"Other"}'))[0], 'too_many_actions', 'update_account';
    is +($server->call('begin_export', $by, AgentSQL::uuid()))[0], 'too_many_actions', 'begin_export';
    is $rows->(), 1000;
    must($server, 'update_account', $by, '{"name":"Busy"}');
    must($operator, 'create_api_key', my $given = key_id(), $busy, $DIGEST, 'service', 'n', undef, undef, ['run'], undef);
    must($server, 'revoke_account_key', $by, $given);
    $server->query("set agent.now = '" . $owner->value("select clock_timestamp() - interval '1 h'") . q('));
    is +($server->call('update_account', $by, '{"name":"Earlier"}'))[0], 'ok', 'actions of the future do not count after the clock went back';
    $server->query("set agent.now = '" . $owner->value("select clock_timestamp() + interval '25 h'") . q('));
    is +($server->call('update_account', $by, '{"name":"Other"}'))[0], 'ok', 'a day later it may again';
    $server->query('reset agent.now');
    must($server, 'update_account', $by, '{"closed":true}');
};

subtest 'the last 1,000 actions of the keys of an account count, however many there were before' => sub {
    my ($old, $by) = (AgentSQL::uuid(), key_id());
    must($server, 'sign_up', '{"name":"Old"}', undef, $old, $by, $DIGEST);
    my $add = sub {
        $owner->query("insert into agent.audit_log (account_id, at, actor, action, object)
            select '$old', clock_timestamp() - interval '$_[0]', 'key $by', 'key.create', 'x' from generate_series(1, 1000)");
    };
    $add->('2 days');
    is +($server->call('update_account', $by, '{"name":"Older"}'))[0], 'ok', 'those of two days ago do not count';
    $add->('1 hour');
    is +($server->call('create_account_key', $by, '{"name":"n"}', key_id(), $DIGEST))[0], 'too_many_actions';
};

subtest 'deployments: the first server that has one opens it' => sub {
    my ($id) = map { $server->value("select agent.ensure_deployment('shop', '$account')") } 1, 2;
    is_deeply recorded($account), [ [ 'system', 'deployment.open', $id, { name => 'shop' } ] ], 'once';
    my $other = AgentSQL::uuid();
    must($operator, 'create_account', $other, 'Other');
    recorded($other);
    my $moved = $server->value("select agent.ensure_deployment('shop', '$other')");
    isnt $moved, $id, 'the deployment of another account has another id';
    is_deeply recorded($other), [ [ 'system', 'deployment.open', $moved, { name => 'shop' } ] ], 'the log of its account has the deployment';
    is_deeply recorded($account), [], 'the log of the first account does not have it';
    $server->query('begin');
    $server->value("select agent.ensure_deployment('undone', '$account')");
    $server->query('rollback');
    is_deeply recorded($account), [], 'a transaction that fails records nothing';
};

# Of a server that was started so many ms ago; each limit: [ account or undef, name, value ].
sub set_limits {
    my ($age_ms, @limits) = @_;
    $server->query('select * from agent.set_limits(' . AgentSQL::Session::literal(AgentSQL::encode(
        [ map { { account_id => $_->[0], name => $_->[1], value => $_->[2] } } @limits ])) . ", '@{[ AgentSQL::uuid() ]}', $age_ms)");
    return recorded($account);
}

subtest 'limits: a server that has another one' => sub {
    is_deeply set_limits(90_000, [ $account, 'keys', 5 ]), [ [ 'system', 'limit.set', 'keys', { value => 5, replaced => undef } ] ], 'the first one';
    is_deeply set_limits(80_000, [ $account, 'keys', 5 ]), [], 'the same one again';
    is_deeply set_limits(60_000, [ $account, 'keys', 7 ]), [ [ 'system', 'limit.set', 'keys', { value => 7, replaced => 5 } ] ], 'another value is recorded';
    is_deeply set_limits(75_000, [ $account, 'keys', 9 ]), [], 'one of a server that was started before';
    is_deeply set_limits(40_000, [ $account, 'keys', undef ]), [ [ 'system', 'limit.set', 'keys', { value => undef, replaced => 7 } ] ], 'none';
    is_deeply set_limits(20_000, [ undef, 'keys', 3 ], [ AgentSQL::uuid(), 'keys', 3 ]), [], 'those of all accounts and of none are in no log';
};

subtest 'accounts: who deletes them' => sub {
    must($operator, 'delete_account', $account, AgentSQL::uuid(), undef, undef);
    is_deeply [ map { [ @{$_}[ 0, 1 ] ] } @{ recorded($account) } ], [ [ $person, 'account.close' ], [ $person, 'account.delete' ] ];
    1 while $server->value('select agent.sweep_accounts()');
    $server->query("set agent.now = '" . $owner->value("select clock_timestamp() + interval '61 minutes'") . q('));
    1 while $server->value('select agent.sweep_accounts()');
    is_deeply [ map { $_->[1] } @{ recorded($account) } ], ['account.deleted'];
};

subtest 'no function records another action' => sub {
    my %named;
    find({ no_chdir => 1, wanted => sub {
        return if !/\.sql\z/;
        open my $file, '<', $_ or die "$_: $!\n";
        local $/;
        $named{$_} = 1 for <$file> =~ /'((?:account|key|deployment|limit|invitation)\.[a-z_]+)'/g;
    } }, "$FindBin::Bin/../../sql/functions");
    is_deeply [ sort keys %seen ], [ sort keys %named ], 'each of these was seen here';
};

done_testing;
