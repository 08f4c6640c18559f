# SPDX-License-Identifier: Apache-2.0
# API keys as a server looks them up: valid, expired, revoked, of closed accounts; their use; those of requests that wait.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;

my $DEFAULT = '00000000-0000-0000-0000-00000000000a';
my $NOON = '2030-06-01T12:00:00Z';
my $db = AgentSQL->new('-v', "app_role=$AgentSQL::APP");
my $owner = $db->session;
my $session = $db->session($AgentSQL::APP);

sub at { $_->query("set agent.now = '$_[0]'") for $owner, $session; return }

my $keys = 0;

# The id of a new key, with other columns.
sub key {
    my (%column) = @_;
    my $id = sprintf '%022d', ++$keys;
    %column = (key_id => $id, account_id => $DEFAULT, digest => '\x' . '0f' x 32, kind => 'service', name => 'n', scopes => ['run'],
        created_at => '2030-01-01T00:00:00Z', %column);
    $owner->query('insert into agent.api_keys (' . join(', ', sort keys %column) . ') values ('
        . join(', ', map { AgentSQL::Session::literal($column{$_}) } sort keys %column) . ')');
    return $id;
}

# (code, object) of find_api_key.
sub find {
    my ($code, $body) = $session->call('find_api_key', $_[0]);
    return ($code, $body eq '' ? undef : AgentSQL::decode($body));
}

sub code { return (find($_[0]))[0] }

sub account {
    my $id = AgentSQL::uuid();
    $owner->call('create_account', $id, 'Shop');
    return $id;
}

at($NOON);

subtest 'a valid key is found with its digest, account and scopes' => sub {
    is_deeply [ find(key(scopes => [ 'read', 'run' ])) ], [ 'ok', { digest => '0f' x 32, account_id => $DEFAULT, kind => 'service', user_id => undef,
        deployment_id => undef, deployment => undef, region => 'local', scopes => [ 'read', 'run' ], expires_in_ms => undef, is_used => Cpanel::JSON::XS::false } ];
    my $account = account();
    my $shop = $owner->value("select agent.ensure_deployment('shop', '$account')");
    my (undef, $body) = find(key(account_id => $account, kind => 'personal', user_id => 'ann', deployment_id => $shop,
        expires_at => '2030-06-01T12:00:01.5Z'));
    is_deeply [ @{$body}{qw(account_id kind user_id deployment_id deployment expires_in_ms)} ], [ $account, 'personal', 'ann', $shop, 'shop', 1500 ];
};

subtest 'a key that is unknown, revoked, expired or of a closed account: the answer is the same' => sub {
    my $account = account();
    my $closed = key(account_id => $account);
    is code($closed), 'ok';
    $owner->call('close_account', $account);
    my %unknown = (
        'unknown'             => 'x' x 22,
        'not the form of one' => "'; drop table agent.api_keys; --",
        'empty'               => '',
        'revoked'             => key(revoked_at => '2030-06-01T11:00:00Z'),
        'revoked in future'   => key(revoked_at => '2031-01-01T00:00:00Z'),
        'expired'             => key(expires_at => $NOON),
        'of a closed account' => $closed,
    );
    is_deeply [ find($unknown{$_}) ], [ 'unknown_key', undef ], $_ for sort keys %unknown;
};

subtest 'keys that were revoked 90 days ago are deleted' => sub {
    my $old = key(created_at => '2020-01-01T00:00:00Z', revoked_at => '2020-01-02T00:00:00Z');
    my $young = key(created_at => '2020-01-01T00:00:00Z', revoked_at => $owner->value("select clock_timestamp() - interval '89 days'"));
    my $valid = key(created_at => '2020-01-01T00:00:00Z');
    is $session->value('select agent.sweep_api_keys()'), 1;
    is $session->value('select agent.sweep_api_keys()'), 0;
    is_deeply [ map { $owner->value("select count(*) from agent.api_keys where key_id = '$_'") } $old, $young, $valid ], [ 0, 1, 1 ];
    is_deeply [ $session->error("delete from agent.api_keys where key_id = '$young'") ], ['42501'], 'a server deletes no other one';
};

subtest 'the audit log is kept for its retention, and for 30 days at least' => sub {
    my $account = account();
    $owner->query("insert into agent.audit_log (account_id, at, actor, action, object)
        select '$account', clock_timestamp() - days * interval '1 day' - interval '1 hour', 'x', 'test.old', 'o' from unnest('{29,30,399,400}'::integer[]) days");
    my $count = sub { return $owner->value("select count(*) from agent.audit_log where action = 'test.old'") };
    is $session->value("select agent.sweep_audit_log('400 days')"), 1;
    is $count->(), 3;
    $session->query("set agent.now = '2100-01-01T00:00:00Z'");
    is $session->value("select agent.sweep_audit_log('0 days')"), 2, 'whatever a session says of the time and the retention';
    is $count->(), 1;
    at($NOON);
    $owner->query("insert into agent.audit_log (account_id, at, actor, action, object)
        select '$account', '2020-01-01', 'x', 'test.old', 'o' from generate_series(1, 1500)");
    is_deeply [ map { $session->value("select agent.sweep_audit_log('400 days')") } 1 .. 3 ], [ 1000, 500, 0 ], 'in pieces';
};

subtest 'the case of a key id counts' => sub {
    my $id = key(key_id => 'a' x 22);
    is code('a' x 22), 'ok';
    is code('A' x 22), 'unknown_key';
};

subtest 'a key that has expired stays invalid when the clock goes back' => sub {
    my $id = key(expires_at => '2030-06-01T13:00:00Z');
    is code($id), 'ok';
    at('2030-06-01T13:00:00Z');
    is code($id), 'unknown_key', 'it is valid until its end only';
    at($NOON);
    is code($id), 'unknown_key';
    is_deeply [ $owner->query("select actor, action, at from agent.audit_log where object = '$id'") ],
        [ [ 'system', 'key.expire', '2030-06-01 13:00:00+00' ] ], 'it is recorded once';
};

subtest 'a sweep does the same for keys that nobody looks up' => sub {
    at('2030-06-01T13:00:00Z');
    $session->value('select agent.sweep_api_keys()');
    my @ids = map { key(expires_at => '2030-06-01T14:00:00Z') } 1 .. 2;
    my $valid = key(expires_at => '2030-06-01T16:00:00Z');
    at('2030-06-01T15:00:00Z');
    is $session->value('select agent.sweep_api_keys()'), 2;
    is $session->value('select agent.sweep_api_keys()'), 0;
    at($NOON);
    is code($_), 'unknown_key' for @ids;
    is code($valid), 'ok';
    is $owner->value("select count(*) from agent.audit_log where action = 'key.expire' and object in ('$ids[0]', '$ids[1]')"), 2;
};

subtest 'a database that accepts no writes still knows which keys are valid' => sub {
    my ($valid, $expired) = (key(), key(expires_at => $NOON));
    $session->query('begin read only');
    is code($valid), 'ok';
    is code($expired), 'unknown_key';
    $session->query('commit');
    is code($expired), 'unknown_key';
};

subtest 'the use of a key is recorded once an hour' => sub {
    my $id = key();
    my $used = sub { return $owner->value("select to_char(last_used_at at time zone 'UTC', 'HH24:MI:SS') from agent.api_keys where key_id = '$id'") };
    at('2030-06-01T12:34:56Z');
    $_->query("set timezone = 'Asia/Kolkata'") for $owner, $session;
    ok !(find($id))[1]{is_used};
    is +($session->call('use_api_key', $id))[0], 'ok';
    is $used->(), '12:00:00', 'to the hour, in a time zone of half hours too';
    ok +(find($id))[1]{is_used};
    at('2030-06-01T12:59:59Z');
    ok +(find($id))[1]{is_used};
    my $version = $owner->value("select xmin from agent.api_keys where key_id = '$id'");
    is +($session->call('use_api_key', $id))[0], 'ok';
    is $owner->value("select xmin from agent.api_keys where key_id = '$id'"), $version, 'a second call writes nothing';
    at('2030-06-01T13:00:00Z');
    ok !(find($id))[1]{is_used};
    is +($session->call('use_api_key', $id))[0], 'ok';
    is $used->(), '13:00:00';
    at($NOON);
    is +($session->call('use_api_key', $id))[0], 'ok';
    is $used->(), '13:00:00', 'a clock that goes back changes nothing';
    is +($session->call('use_api_key', 'x' x 22))[0], 'ok', 'a key that does not exist has no use';
    $_->query("set timezone = 'UTC'") for $owner, $session;
};

subtest 'the keys of requests that wait: those that are no longer valid' => sub {
    my ($open, $closed) = (account(), account());
    my %key = (
        valid   => key(),
        later   => key(account_id => $open, expires_at => '2030-06-01T12:00:00.001Z'),
        expired => key(expires_at => $NOON),
        revoked => key(revoked_at => $NOON),
        closed  => key(account_id => $closed),
        unknown => 'x' x 22,
    );
    $owner->call('close_account', $closed);
    my %name = reverse %key;
    my $ended = sub { [ sort map { $name{ $_->[0] } } $session->query("select key_id from agent.find_invalid_keys('{" . join(',', @_) . "}')") ] };
    is_deeply $ended->(values %key), [qw(closed expired revoked unknown)];
    is_deeply $ended->(), [], 'of none, none';
};

subtest 'two servers that find an expired key at the same time record it once' => sub {
    my $id = key(expires_at => $NOON);
    my $other = $db->session($AgentSQL::APP);
    $other->query("set agent.now = '$NOON'");
    $session->query('begin');
    is code($id), 'unknown_key';
    $other->send("select code from agent.find_api_key('$id')");
    ok $other->waits_for($session), 'the second server waits for the first';
    $session->query('commit');
    is $other->receive, 'unknown_key';
    is $owner->value("select count(*) from agent.audit_log where object = '$id'"), 1;
    $other->close;
};

$_->close for $owner, $session;
done_testing;
