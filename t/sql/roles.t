# SPDX-License-Identifier: Apache-2.0
# The role of a server: its privileges suffice, and it has no others.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Play;

my $db = AgentSQL->new('-v', "app_role=$AgentSQL::APP", '-v', "operator_role=$AgentSQL::OPERATOR");
my $session = $db->session($AgentSQL::APP);
my $play = AgentSQL::Play->new($session);

# The privileges of a role on single columns.
sub columns_of {
    my ($role) = @_;
    return map { join '', @{$_} } $db->session->query("select format('%s.%s %s', c.relname, a.attname,
            case x.privilege_type when 'UPDATE' then 'w' else x.privilege_type end)
        from pg_class c join pg_attribute a on a.attrelid = c.oid, aclexplode(a.attacl) x
        where c.relnamespace = 'agent'::regnamespace and x.grantee = '$role'::regrole order by 1");
}

subtest 'a server role can call the functions of server and supervisor' => sub {
    is $session->value('select current_user'), $AgentSQL::APP;
    is $session->value('select agent.schema_version() > 0'), 't';
    my $worker = $play->worker;
    my $thread = $play->thread;
    my $run = $play->run($thread, key => 'k', hash => 'h');
    my ($claim) = $play->claim($worker);
    $play->save($worker,
        AgentSQL::Play::event($claim, 0, 'custom', 1),
        AgentSQL::Play::checkpoint($claim, messages => [1]),
        AgentSQL::Play::finish($claim));
    is $play->status($thread, $run), 'success';
    is scalar $play->events($thread, $run), 1;
    is_deeply $play->body('join_run', $thread, $run)->{messages}[0]{content}, 1;
    my $second = $play->run($thread);
    my $third = $play->run($thread, strategy => 'rollback');
    ($claim) = $play->claim($worker);
    is_deeply $play->release($worker, 'true', $claim), { $third => 'requeued' };
    is +($play->api('cancel_run', $thread, $third, 'rollback'))[0], 'ok';
    is +($play->api('delete_run', $thread, $run))[0], 'ok';
    is $session->value("select agent.renew_worker($worker, 20, false)"), 'ok';
    is $session->value('select count(*) from agent.sweep_workers(5)'), 0;
    is $session->value("select count(*) from agent.mark_worker_dead($worker, true, 100)"), 0;
    is +($play->api('delete_thread', $thread))[0], 'ok';
    is $session->value('select agent.sweep_api_keys()'), 0;
    is $session->value(q(select count(*) from agent.set_limits('[{"name":"queued_runs","value":null}]', gen_random_uuid(), 1))), 0;
    is $session->value('select agent.count_accounts()'), 0;
    $session->query("select agent.notify_runs(array['$run'])");
};

subtest 'a server role can write the records of a library, and read and delete them' => sub {
    my $worker = $play->worker;
    my $claim = $play->leased($worker, $play->thread);
    my ($digest, $blob) = AgentSQL::Play::blob($claim, '1');
    my $id = AgentSQL::uuid();
    $play->save($worker, $blob, AgentSQL::Play::put($claim, id => $id, channels => { x => $digest }),
        AgentSQL::Play::put_writes($claim, id => $id, writes => [ [ 0, 'x', $digest ] ]), AgentSQL::Play::finish($claim));
    is $play->body('read_checkpoint', $claim->{thread_id}, '{}', undef, 1000)->{channels}{x}, $digest;
    is $play->body('read_blobs', $claim->{thread_id}, qq({"digests":["$digest"]}), undef, 1000)->{blobs}[0]{text}, '1';
    is +($play->api('delete_run', @$claim{qw(thread_id run_id)}))[0], 'ok';
    is $session->value('select agent.sweep_state()'), 0;
    is +($play->api('delete_thread', $claim->{thread_id}))[0], 'ok';
    $session->query("select agent.mark_worker_dead($worker, true, 100)");
};

subtest 'a server role has its privileges on every table, and no others' => sub {
    # Tables that it may not change, or not delete.
    my %fewer = (accounts => 'ar', region => 'r', schema_version => 'r', api_keys => 'ar', invitations => 'r', deployments => 'ar', usage_events => 'ar', audit_log => 'ar',
        account_deletions => 'ar');
    my @rows = $db->session->query("select c.relname, (
            select string_agg(case a.privilege_type when 'SELECT' then 'r' when 'INSERT' then 'a' when 'UPDATE' then 'w'
                       when 'DELETE' then 'd' else a.privilege_type end, '' order by a.privilege_type)
              from aclexplode(c.relacl) a where a.grantee = '$AgentSQL::APP'::regrole)
        from pg_class c where c.relnamespace = 'agent'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition");
    cmp_ok scalar @rows, '>', 20;
    for my $row (@rows) {
        my ($table, $privileges) = @$row;
        is join('', sort split //, $privileges), $fewer{$table} // 'adrw', $table;
    }
    is_deeply [ columns_of($AgentSQL::APP) ], [ 'accounts.closed_at w', 'accounts.name w', 'api_keys.expires_at w', 'api_keys.last_used_at w',
        'api_keys.revoked_at w', 'invitations.account_id w', 'invitations.used_at w' ], 'of API keys it may change the use and the end';
    is $session->value("select count(*) from pg_class c, aclexplode(c.relacl) a where c.relnamespace = 'agent'::regnamespace
        and a.grantee not in (c.relowner, '$AgentSQL::APP'::regrole, '$AgentSQL::OPERATOR'::regrole)"), 0,
        'no other role has any';
};

subtest 'the role of operators has its privileges on accounts and API keys, and no others' => sub {
    is_deeply [ map { "@{$_}" } $db->session->query("select c.relname, string_agg(a.privilege_type, ',' order by a.privilege_type)
        from pg_class c, aclexplode(c.relacl) a where c.relnamespace = 'agent'::regnamespace and a.grantee = '$AgentSQL::OPERATOR'::regrole
        group by 1 order by 1") ],
        [ 'account_deletions INSERT,SELECT', 'account_limits SELECT', 'accounts INSERT,SELECT', 'api_keys INSERT,SELECT', 'audit_log INSERT,SELECT', 'deployments SELECT',
          'invitations INSERT,SELECT', 'region SELECT', 'schema_version SELECT' ];
    is_deeply [ columns_of($AgentSQL::OPERATOR) ], [ 'account_deletions.backup_days w', 'account_deletions.log_days w', 'accounts.closed_at w',
        'api_keys.expires_at w', 'api_keys.revoked_at w', 'invitations.revoked_at w', 'invitations.revoked_by w' ];
};

subtest 'the role of operators calls the functions of operators, and that of a server calls none of them' => sub {
    my @operator = map { s{.*/|\.sql$}{}gr } glob "$AgentSQL::ROOT/sql/functions/operator/*/*.sql";
    my @rows = $db->session->query("select p.proname, has_function_privilege('$AgentSQL::APP', p.oid, 'execute'),
        has_function_privilege('$AgentSQL::OPERATOR', p.oid, 'execute') from pg_proc p where p.pronamespace = 'agent'::regnamespace order by 1");
    is_deeply [ map { $_->[0] } grep { $_->[1] eq 'f' } @rows ], \@operator;
    is_deeply [ map { $_->[0] } grep { $_->[2] eq 't' } @rows ],
        [ sort @operator, qw(add_api_key begin_account_deletion built_in_account check_actions check_key_limit database_region describe_check end_account end_api_key find_limit insert_account insert_api_key lock_key_account
            now read_api_keys record_audit render_account render_api_key render_deletion render_invitation render_limit render_operator render_time replace_api_key schema_version) ],
        'beside those that they call';
    my $operator = $db->session($AgentSQL::OPERATOR);
    is $operator->value('select agent.schema_version() > 0'), 't';
    is $operator->error('select count(*) from agent.threads'), '42501', 'an operator cannot read threads';
    is $operator->error("select * from agent.get_thread('$AgentSQL::DEPLOYMENT', gen_random_uuid())"), '42501';
    is $operator->error('delete from agent.api_keys'), '42501';
    is $operator->error('delete from agent.audit_log'), '42501', 'an operator cannot change the audit log';
    my ($revoked, $valid, $taken) = map { AgentSQL::uuid() } 1 .. 3;
    my $digest = '0' x 63;
    is +($operator->call('create_invitation', $_->[0], "\\x$digest$_->[1]", '1 day'))[0], 'ok' for [ $valid, 1 ], [ $revoked, 2 ], [ $taken, 3 ];
    is $session->value("update agent.invitations set used_at = now(), account_id = '00000000-0000-0000-0000-00000000000a' where invitation_id = '$taken' returning 1"), 1,
        'a server uses an invitation';
    is $session->error("update agent.invitations set $_ where invitation_id = '$taken'"), 'MA004', "a server cannot set $_ of an invitation that is used"
        for 'used_at = null, account_id = null', "used_at = used_at - interval '1 day'", 'account_id = gen_random_uuid()';
    is +($operator->call('revoke_invitation', $revoked, undef))[0], 'ok';
    is $operator->error("update agent.invitations set $_ where invitation_id = '$revoked'"), 'MA004', "an operator cannot set $_ of an invitation that is revoked"
        for 'revoked_at = null, revoked_by = null', "revoked_at = revoked_at - interval '1 day'", "revoked_by = 'x'";
    is $operator->value("update agent.invitations set revoked_at = now(), revoked_by = 'x' where invitation_id = '$valid' returning 1"), 1, 'the update of another one is a revocation';
    my ($ended, $used) = map { $_ x 22 } 'E', 'U';
    is +($operator->call('create_api_key', $_, '00000000-0000-0000-0000-00000000000a', "\\x${digest}0", 'service', 'n', undef, undef, '{run}', undef))[0], 'ok' for $ended, $used;
    is +($operator->call('revoke_api_key', $ended))[0], 'ok';
    for my $role ([ 'an operator', $operator ], [ 'a server', $session ]) {
        my ($who, $of) = @{$role};
        is $of->error("update agent.api_keys set $_ where key_id = '$ended'"), 'MA004', "$who cannot set $_ of a key that is revoked"
            for 'revoked_at = null', "revoked_at = revoked_at + interval '1 day'";
    }
    is $session->value("update agent.api_keys set last_used_at = date_trunc('hour', now(), 'UTC') where key_id = '$ended' returning 1"), 1, 'the use of a key that is revoked is recorded';
    is $operator->value("update agent.api_keys set revoked_at = now() where key_id = '$used' returning 1"), 1, 'the update of another one is a revocation';
    my ($closed, $open) = map { AgentSQL::uuid() } 1, 2;
    is +($operator->call('create_account', $_, 'x'))[0], 'ok' for $closed, $open;
    is +($operator->call('close_account', $closed))[0], 'ok' for 1, 2;
    is +($operator->call('create_api_key', 'X' x 22, $open, "\\x${digest}1", 'service', 'n', undef, undef, '{run}', '1 day'))[0], 'ok';
    for my $role ([ 'an operator', $operator ], [ 'a server', $session ]) {
        my ($who, $of) = @{$role};
        is $of->error("update agent.accounts set closed_at = $_ where account_id = '$closed'"), 'MA004', "$who cannot set closed_at of an account that is closed to $_"
            for 'null', "closed_at + interval '1 day'";
        is $of->error("update agent.api_keys set expires_at = $_ where key_id = '" . 'X' x 22 . q(')), 'MA004', "$who cannot set expires_at of a key to $_"
            for 'null', "expires_at + interval '1 second'", "'infinity'";
        is $of->value("update agent.api_keys set expires_at = expires_at - interval '1 hour' where key_id = '" . 'X' x 22 . q(' returning 1)), 1, "$who can let a key expire earlier";
        is $of->value("update agent.api_keys set expires_at = expires_at where key_id = '" . 'X' x 22 . q(' returning 1)), 1, "$who can write the expiry that a key has";
    }
    is $session->value("update agent.accounts set name = 'y' where account_id = '$closed' returning 1"), 1, 'the name of an account that is closed can change';
    is $operator->value("update agent.accounts set closed_at = now() where account_id = '$open' returning 1"), 1, 'the update of another one is its end';
    is $session->error("select * from agent.create_account(gen_random_uuid(), 'x')"), '42501';
    $operator->close;
};

subtest 'a role that is both operator and another one is refused' => sub {
    my $refused = sub {
        my ($pattern, @roles) = @_;
        my ($status, $output) = $db->file('sql/install.sql', map { ('-v', $_) } @roles);
        isnt $status, 0;
        like $output, $pattern;
    };
    my @roles = ("app_role=$AgentSQL::APP", "operator_role=$AgentSQL::OPERATOR");
    $refused->(qr/operator_role $AgentSQL::OWNER may become the owner/, 'operator_role=' . $AgentSQL::OWNER);
    $refused->(qr/operator_role $AgentSQL::APP may become app_role/, $roles[0], 'operator_role=' . $AgentSQL::APP);
    my $superuser = AgentSQL::admin('select current_user');
    $refused->(qr/operator_role $superuser is a superuser/, "operator_role=$superuser");
    # Roles of this test, since those of other files are in use.
    my ($app, $operator) = map { "agent_test_${_}_$$" } qw(server operator);
    AgentSQL::admin("create role $_") for $app, $operator;
    @roles = ("app_role=$app", "operator_role=$operator");
    AgentSQL::admin("grant $operator to $app");
    $refused->(qr/app_role $app may become operator_role $operator/, @roles);
    AgentSQL::admin("revoke $operator from $app; grant $app to $operator");
    $refused->(qr/operator_role $operator may become app_role $app/, @roles);
    AgentSQL::admin("drop role $_") for $app, $operator;
};

subtest 'a server role can deliver webhooks' => sub {
    my $worker = $play->worker;
    my $thread = $play->thread;
    my $run = $play->run($thread, request => { webhook => 'https://example.com/' });
    is +($play->api('cancel_run', $thread, $run, 'interrupt'))[0], 'ok';
    is [ $session->query("select * from agent.claim_webhooks($worker, 1, 1, 1, 30, '{}', 0, 0)") ]->[0][1], $run;
    my $result = AgentSQL::encode([ { d => $AgentSQL::DEPLOYMENT, r => $run, n => 1, o => 'delivered' } ]);
    is [ $session->query("select * from agent.save_webhooks($worker, '$result')") ]->[0][1], 'delivered';
    is $session->value("select agent.sweep_webhooks('1 day')"), 0;
    $session->query("select agent.mark_worker_dead($worker, true, 100)");
};

subtest 'a server role can call maintain_partitions, although it owns no table' => sub {
    $session->query("set agent.now = '2040-01-01T00:00:00Z'");
    cmp_ok $session->value("select agent.maintain_partitions('2 days')"), '>', 0;
    my $worker = $play->worker;
    my $thread = $play->thread;
    my $run = $play->run($thread);
    my ($claim) = $play->claim($worker);
    $play->save($worker, AgentSQL::Play::event($claim, 0, 'custom', 1), AgentSQL::Play::finish($claim));
    is scalar $play->events($thread, $run), 1, 'a server role can write to new partitions';
    $session->query('reset agent.now');
};

subtest 'a server role cannot change the schema, whose a key is, deployments or usage' => sub {
    for my $sql (
        'create table agent.x (i integer)', 'drop table agent.threads', 'alter table agent.runs add x integer',
        'truncate agent.threads', 'drop trigger runs_final_status on agent.runs',
        'alter table agent.runs disable trigger all', 'drop function agent.now()',
        "update agent.accounts set account_id = gen_random_uuid()", "update agent.accounts set home_region = 'us'", 'delete from agent.accounts',
        "update agent.api_keys set digest = ''", "update agent.api_keys set scopes = '{admin}'", 'update agent.api_keys set account_id = account_id',
        'delete from agent.api_keys', "update agent.invitations set expires_at = now()", 'delete from agent.invitations',
        "update agent.region set region = 'eu'", 'delete from agent.audit_log', "update agent.audit_log set actor = 'x'",
        "update agent.deployments set name = 'x'", 'delete from agent.deployments',
        'delete from agent.usage_events', "update agent.usage_events set status = 'success'",
        "insert into agent.schema_version (version, name) values (99, 'x')",
    ) {
        is $session->error($sql), '42501', $sql;
    }
};

subtest 'another role has no privilege' => sub {
    my $name = "agent_test_other_$$";
    AgentSQL::admin("create role $name");
    my $other = $db->session($name);
    is $other->error('select agent.schema_version()'), '42501';
    is $other->error('select count(*) from agent.threads'), '42501';
    AgentSQL::admin("grant usage on schema agent to $name", $db->{name});
    is $other->error("select agent.maintain_partitions('1 day')"), '42501', 'another role may call no function, even with usage on the schema';
    AgentSQL::admin("revoke usage on schema agent from $name", $db->{name});
    $other->close;
    AgentSQL::admin("drop role $name");
};

done_testing;
