# SPDX-License-Identifier: Apache-2.0
# The role of a server: its privileges suffice, and it has no others.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Play;

my $db = AgentSQL->new('-v', "app_role=$AgentSQL::APP");
my $session = $db->session($AgentSQL::APP);
my $play = AgentSQL::Play->new($session);

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
    $session->query("select agent.notify_runs(array['$run']::uuid[])");
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
    # Those that it may not change, or not delete.
    my %fewer = (accounts => 'r', schema_version => 'r', deployments => 'ar', usage_events => 'ar');
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
    is $session->value("select count(*) from pg_class c, aclexplode(c.relacl) a
        where c.relnamespace = 'agent'::regnamespace and a.grantee not in (c.relowner, '$AgentSQL::APP'::regrole)"), 0,
        'no other role has any';
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

subtest 'a server role cannot change the schema, accounts, deployments or usage' => sub {
    for my $sql (
        'create table agent.x (i integer)', 'drop table agent.threads', 'alter table agent.runs add x integer',
        'truncate agent.threads', 'drop trigger runs_final_status on agent.runs',
        'alter table agent.runs disable trigger all', 'drop function agent.now()',
        "insert into agent.accounts (account_id, name) values (gen_random_uuid(), 'x')",
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
