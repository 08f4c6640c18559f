# SPDX-License-Identifier: Apache-2.0
# Accounts, the region of the database, and the functions of operators for API keys.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;

my $DEFAULT = '00000000-0000-0000-0000-00000000000a';
my $db = AgentSQL->new('-v', 'region=eu', '-v', "operator_role=$AgentSQL::OPERATOR");
my $owner = $db->session;
my $session = $db->session($AgentSQL::OPERATOR);

# (code, body as data) of a function.
sub call {
    my ($name, @arguments) = @_;
    my ($code, $body) = $session->call($name, @arguments);
    return ($code, $body eq '' ? undef : $body =~ /\A[\[{]/ ? AgentSQL::decode($body) : $body);
}

sub code { return (call(@_))[0] }

sub account {
    my $id = AgentSQL::uuid();
    is code('create_account', $id, $_[0] // 'Shop'), 'ok';
    return $id;
}

my $keys = 0;
sub key_id { return sprintf '%022d', ++$keys }

my %KEY = (kind => 'service', name => 'n', user => undef, deployment => undef, scopes => ['run'], lifetime => undef);

# The result of create_api_key, with other arguments than those of %KEY.
sub create {
    my ($account, $id, %other) = @_;
    my %argument = (%KEY, digest => '\x' . 'ab' x 32, %other);
    return call('create_api_key', $id, $account, @argument{qw(digest kind name user deployment scopes lifetime)});
}

# The actions that are recorded for an account, the first one first.
sub audit {
    my ($account) = @_;
    return [ map { join ' ', @{$_} } $session->query("select actor, action, object from agent.audit_log
        where account_id = '$account' order by audit_id") ];
}

my $operator = 'operator ' . $session->value('select session_user');

subtest 'an account belongs to the region of its database' => sub {
    my $id = AgentSQL::uuid();
    my ($code, $body) = call('create_account', $id, 'Shop');
    is $code, 'ok';
    is_deeply { %{$body}, created_at => undef },
        { account_id => $id, name => 'Shop', home_region => 'eu', created_at => undef, closed_at => undef };
    is $owner->error("insert into agent.accounts (account_id, name, home_region) values (gen_random_uuid(), 'x', 'us')"), '23503',
        'one of another region cannot be inserted';
    is $owner->value("select home_region from agent.accounts where account_id = '$DEFAULT'"), 'eu', 'the built-in account too';
};

subtest 'display names of accounts need not differ, are not blank, and have no control characters' => sub {
    isnt account('Same'), account('Same');
    my $id = AgentSQL::uuid();
    is code('create_account', $id, $_), 'invalid_value', defined ? length . ' characters' : 'null' for '', undef, "a\nb", "a\x7f", "\x{9b}", 'x' x 201;
    is code('create_account', $id, $_), 'invalid_value', 'a name of blank characters is refused' for ' ', "  \x{a0}", "\x{2003}\x{200b}", "\x{3000}", "\x{feff}", "\x{3164}",
        "\x{2800} \x{115f}", "\x{e0020}";
    is code('create_account', $id, $_), 'invalid_value', 'a control character of text direction or lines' for "a\x{202e}b", "\x{2066}a\x{2069}", "a\x{2028}b";
    is $owner->value("select count(*) from agent.accounts where account_id = '$id'"), 0;
    is code('create_account', AgentSQL::uuid(), $_), 'ok', 'one character between white space' for " \x{416} ", "\x{a0}.", "\x{2800}x", "\x{1f469}\x{200d}\x{1f4bb}", "\x{5e9}\x{200f}.", "\x{2764}\x{fe0f}";
    is code('create_account', $id, "\x{416}" x 200), 'ok';
    is code('create_account', $id, 'again'), 'account_exists';
};

subtest 'each character that Unicode lets be invisible is blank, alone and with others, in all display names' => sub {
    my @blank = grep { chr =~ /[\p{White_Space}\p{Default_Ignorable_Code_Point}\x{2800}]/ } 1 .. 0xd7ff, 0xe000 .. 0x10ffff;
    for my $check ([ 'accounts_name_check', 'name' ], [ 'api_keys_name_check', 'name' ], [ 'api_keys_user_check', 'user_id' ]) {
        my ($name, $column) = @{$check};
        my $condition = $owner->value("select pg_get_constraintdef(oid) from pg_constraint where conname = '$name'") =~ s/\ACHECK//r;
        my $accepted = sub { $owner->value("select coalesce(string_agg(to_hex(n), ' ' order by n), 'none')
            from (select n, $_[0] as $column, 'personal' as kind from unnest(array[@{[ join ',', @blank ]}]) n) x where $condition") };
        is $accepted->('chr(n)'), 'none', "$name: alone";
        is $accepted->(q(' ' || chr(n) || U&'\\3164')), 'none', "$name: with others";
        cmp_ok length $accepted->(q('x' || chr(n))), '>', 4000, "$name: beside a visible one most are accepted";
    }
};

subtest 'accounts are listed in pages, in the order of their ids' => sub {
    my @made = map { account("list $_") } 1 .. 3;
    my (undef, $all) = call('list_accounts', undef, 1000);
    my @ids = map { $_->{account_id} } @{$all};
    is_deeply \@ids, [ sort @ids ];
    is_deeply [ map { $_->{account_id} } @{ (call('list_accounts', $made[0], 2))[1] } ], [ @made[ 1, 2 ] ];
    is_deeply +(call('list_accounts', $ids[-1], 2))[1], [], 'there is nothing after the last one';
};

subtest 'a closed account stays closed, and the built-in one stays open' => sub {
    my $id = account();
    my ($code, $body) = call('close_account', $id);
    is $code, 'ok';
    like $body->{closed_at}, qr/\A2\d{3}-/;
    is_deeply +(call('close_account', $id))[1], $body, 'a second call changes nothing';
    is_deeply audit($id), [ "$operator account.create $id", "$operator account.close $id" ], 'each action is recorded once';
    is code('close_account', AgentSQL::uuid()), 'account_not_found';
    is code('close_account', $DEFAULT), 'account_is_built_in';
    is $owner->error("update agent.accounts set closed_at = now() where account_id = '$DEFAULT'"), '23514';
    is +(create($id, key_id()))[0], 'account_closed', 'it gets no API key';
};

subtest 'a closed or unknown account has no deployments' => sub {
    my $id = account();
    my $shop = $owner->value("select agent.ensure_deployment('shop', '$id')");
    isnt $shop, '';
    is $owner->value("select agent.ensure_deployment('shop', '$id')"), $shop;
    isnt $owner->value("select agent.ensure_deployment('shop')"), $shop, 'the same name of another account is another deployment';
    is code('close_account', $id), 'ok';
    is $owner->value("select agent.ensure_deployment('shop', '$id') is null"), 't';
    is $owner->value("select agent.ensure_deployment('new', '$id') is null"), 't';
    is $owner->value("select agent.ensure_deployment('shop', gen_random_uuid()) is null"), 't';
};

subtest 'a new API key has what it was created with, and its record no digest' => sub {
    my ($account, $id) = (account(), key_id());
    my ($code, $body) = create($account, $id, kind => 'personal', name => 'laptop', user => 'ann', scopes => [ 'run', 'read' ], lifetime => '1 day');
    is $code, 'ok';
    my ($created, $expires) = delete @{$body}{qw(created_at expires_at)};
    is_deeply $body, { key_id => $id, region => 'eu', account_id => $account, kind => 'personal', name => 'laptop', user_id => 'ann', deployment_id => undef, deployment => undef,
        scopes => [ 'run', 'read' ], revoked_at => undef, last_used_at => undef };
    is $owner->value("select '$expires'::timestamptz - '$created'::timestamptz"), '1 day';
    is $owner->value("select digest from agent.api_keys where key_id = '$id'"), '\x' . 'ab' x 32;
    is_deeply audit($account), [ "$operator account.create $account", "$operator key.create $id" ];
    unlike $owner->value("select string_agg(detail::text, '') from agent.audit_log"), qr/abab/, 'the audit log has no digest';
};

subtest 'an API key of a deployment is for one of its own account' => sub {
    my ($mine, $other) = (account(), account());
    my $shop = $owner->value("select agent.ensure_deployment('shop', '$mine')");
    my ($code, $body) = create($mine, key_id(), kind => 'deployment', deployment => 'shop');
    is $code, 'ok';
    is $body->{deployment_id}, $shop;
    is_deeply [ create($other, key_id(), kind => 'deployment', deployment => 'shop') ],
        [ 'deployment_not_found', 'The account has no deployment shop. One exists once a server has served it.' ];
    is_deeply [ create($mine, key_id(), kind => 'deployment') ], [ 'invalid_value', '/deployment: expected a deployment for a key of kind deployment.' ], 'it names one';
    is $owner->error("update agent.api_keys set account_id = '$other' where key_id = '$body->{key_id}'"), '23503';
};

subtest 'an API key that is not in order is refused' => sub {
    my $account = account();
    my %wrong = (
        'a short id'             => [ 'key ID', id => '0' x 21 ],
        'an id of other letters' => [ 'key ID', id => '-' . '0' x 21 ],
        'another digest'         => [ 'digest', digest => '\xab' ],
        'another kind'           => [ 'kind', kind => 'master' ],
        'no name'                => [ 'name', name => '' ],
        'a personal one without a user' => [ 'user', kind => 'personal' ],
        'a user of another kind' => [ 'user', user => 'ann' ],
        'an empty user'          => [ 'user', kind => 'personal', user => '' ],
        'a blank user'           => [ 'user', kind => 'personal', user => " \x{200b}" ],
        'a blank name'           => [ 'name', name => "\x{3164}" ],
        'a user with a control character of text direction' => [ 'user', kind => 'personal', user => "a\x{202e}b" ],
        'no scope'               => [ 'scopes', scopes => [] ],
        'an unknown scope'       => [ 'scopes', scopes => [ 'run', 'all' ] ],
        'a scope twice'          => [ 'scopes', scopes => [ 'run', 'run' ] ],
        'an end before its time' => [ 'end', lifetime => '-1 s' ],
    );
    for my $title (sort keys %wrong) {
        my ($part, %other) = @{ $wrong{$title} };
        my ($code, $body) = create($account, delete $other{id} // key_id(), %other);
        is $code, 'invalid_value', $title;
        like $body, qr{\A(?=.*\b$part\b)(?:/\w+: e|E)xpected .*\.\z}, "$title: the reason is given";
    }
    is $owner->error("insert into agent.api_keys (key_id, account_id, digest, kind, name, scopes, created_at)
        values ('" . key_id() . "', '$account', sha256('x'), 'service', 'n', $_, now())"), '23514', $_
        for q('{{run},{read}}'), q('{NULL}'), q('{run,NULL}');
    is +(create(AgentSQL::uuid(), key_id()))[0], 'account_not_found';
    my $id = key_id();
    is +(create($account, $id))[0], 'ok';
    is +(create($account, $id))[0], 'key_exists';
    is scalar @{ (call('list_api_keys', $account, undef, 10))[1] }, 1, 'no other was created';
};

subtest 'the API keys of an account are listed in pages' => sub {
    my ($account, @ids) = (account(), map { key_id() } 1 .. 3);
    create($account, $_) for reverse @ids;
    create(account(), key_id());
    is_deeply [ map { $_->{key_id} } @{ (call('list_api_keys', $account, undef, 1000))[1] } ], \@ids;
    is_deeply [ map { $_->{key_id} } @{ (call('list_api_keys', $account, $ids[0], 1))[1] } ], [ $ids[1] ];
    is_deeply +(call('list_api_keys', $account, $ids[2], 1))[1], [];
    is code('list_api_keys', AgentSQL::uuid(), undef, 10), 'account_not_found';
};

subtest 'a revoked API key stays revoked' => sub {
    my ($account, $id) = (account(), key_id());
    create($account, $id);
    my ($code, $body) = call('revoke_api_key', $id);
    is $code, 'ok';
    like $body->{revoked_at}, qr/\A2\d{3}-/;
    is_deeply +(call('revoke_api_key', $id))[1], $body, 'a second call changes nothing';
    is scalar(grep { /key\.revoke/ } @{ audit($account) }), 1;
    is code('revoke_api_key', key_id()), 'key_not_found';
};

subtest 'a rotated API key is valid for the overlap, and the new one is like it' => sub {
    my ($account, $old, $new) = (account(), key_id(), key_id());
    create($account, $old, kind => 'personal', user => 'ann', name => 'laptop', scopes => ['read'], lifetime => '10 days');
    $owner->query("update agent.api_keys set last_used_at = date_trunc('hour', created_at) where key_id = '$old'");
    $session->query("set agent.now = '" . $owner->value("select now() + interval '1 day'") . "'");
    my ($code, $body) = call('rotate_api_key', $old, $new, '\x' . 'cd' x 32, '1 hour');
    is $code, 'ok';
    is_deeply [ @{$body}{qw(key_id account_id kind name user_id scopes revoked_at last_used_at)} ],
        [ $new, $account, 'personal', 'laptop', 'ann', ['read'], undef, undef ];
    is $owner->value("select '$body->{expires_at}'::timestamptz - '$body->{created_at}'::timestamptz"), '10 days', 'it has the lifetime of the old one';
    is $owner->value("select k.expires_at - '$body->{created_at}'::timestamptz from agent.api_keys k where key_id = '$old'"), '01:00:00';
    is $owner->value("select digest from agent.api_keys where key_id = '$new'"), '\x' . 'cd' x 32;
    like audit($account)->[-1], qr/ key\.rotate $new\z/;
    my $third = key_id();
    is code('rotate_api_key', $new, $third, '\x' . 'ef' x 32, '0'), 'ok';
    is code('rotate_api_key', $new, key_id(), '\x' . 'ef' x 32, '0'), 'key_revoked', 'without an overlap it is revoked at once';
    is code('rotate_api_key', $third, $old, '\x' . 'ef' x 32, '100 days'), 'key_exists', 'the id of the new one is free';
    is code('rotate_api_key', $third, key_id(), '\x' . 'ef' x 32, '100 days'), 'ok';
    is $owner->value("select expires_at - created_at from agent.api_keys where key_id = '$third'"), '10 days', 'an overlap makes no key valid for longer';
    is code('rotate_api_key', key_id(), key_id(), '\x' . 'ef' x 32, '1 hour'), 'key_not_found';
    $session->query("set agent.now = '" . $owner->value("select now() + interval '20 days'") . "'");
    is code('rotate_api_key', $third, key_id(), '\x' . 'ef' x 32, '1 hour'), 'key_revoked', 'one that has expired is not rotated';
    $session->query('reset agent.now');
};

subtest 'a key that is rotated again during its overlap gives the new key the whole lifetime' => sub {
    my $account = account();
    for my $lifetime (undef, '10 days') {
        for my $overlaps ([ '60 s', '1 hour' ], [ '1 hour', '60 s' ]) {
            my ($old, @new) = map { key_id() } 1 .. 4;
            create($account, $old, lifetime => $lifetime);
            is code('rotate_api_key', $old, $new[$_], '\x' . 'cd' x 32, $overlaps->[$_]), 'ok' for 0, 1;
            is code('rotate_api_key', $new[1], $new[2], '\x' . 'cd' x 32, '60 s'), 'ok', 'the new one is rotated too';
            is_deeply [ map { $owner->value("select coalesce(lifetime::text, 'none') from agent.api_keys where key_id = '$_'") } $old, @new ],
                [ ($lifetime // 'none') x 4 ];
            is_deeply [ map { $owner->value("select coalesce((expires_at - created_at)::text, 'never') from agent.api_keys where key_id = '$_'") } @new[ 0, 2 ] ],
                [ ($lifetime // 'never') x 2 ], ($lifetime // 'no end') . ": overlaps of @{$overlaps}";
            is $owner->value("select expires_at - created_at < '62 s' from agent.api_keys where key_id = '$old'"), 't', 'the old one ends with the shorter overlap';
        }
    }
};

subtest 'an action that fails is not recorded' => sub {
    my $before = $owner->value('select count(*) from agent.audit_log');
    my $id = account();
    $session->query('begin');
    is code('close_account', $id), 'ok';
    $session->query('rollback');
    is_deeply audit($id), ["$operator account.create $id"];
    is $owner->value('select count(*) from agent.audit_log'), $before + 1;
};

subtest 'the region of a database is one row, which nobody changes' => sub {
    is $owner->value('select agent.database_region()'), 'eu', 'a server reads it when it connects';
    is_deeply [ call('get_region') ], [ 'ok', { region => 'eu' } ], 'an operator reads it too';
    is $owner->value('select region from agent.region'), 'eu';
    is $owner->error("update agent.region set region = 'us'"), 'MA002', 'its owner cannot change it';
    is $owner->error('delete from agent.region'), 'MA002';
    is $owner->error('truncate agent.region cascade'), 'MA002';
    is $owner->error("insert into agent.region (region) values ('us')"), '23505';
    is $owner->error("insert into agent.region (region, is_only) values ('us', false)"), '23514';
    is $owner->error("insert into agent.region (region, is_only) values ('us', null)"), '23502';
};

subtest 'the first installation decides the region, and a later one must agree' => sub {
    my ($status, $output) = $db->file('sql/install.sql', '-v', 'region=eu');
    is $status, 0 or diag $output;
    is +($db->file('sql/install.sql'))[0], 0, 'it need not be named again';
    ($status, $output) = $db->file('sql/install.sql', '-v', 'region=us');
    isnt $status, 0;
    like $output, qr/this database belongs to region eu, not to us/;
    is $owner->value('select region from agent.region'), 'eu';
    my $other = AgentSQL->new_empty;
    for my $name ('EU', '1', '', 'x' x 17, 'e u') {
        ($status, $output) = $other->file('sql/install.sql', '-v', "region=$name");
        isnt $status, 0;
        like $output, qr/"\Q$name\E" is not the name of a region/;
    }
    is +($other->file('sql/install.sql'))[0], 0;
    my $there = $other->session;
    is $there->value('select region from agent.region'), 'local', 'without a name it is local';
    $there->close;
};

$_->close for $owner, $session;
done_testing;
