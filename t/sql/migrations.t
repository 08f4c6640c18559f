# SPDX-License-Identifier: Apache-2.0
# Migrations, installation and the rules that every object of the schema keeps.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use POSIX ();
use Test::More;
use AgentSQL;
use AgentSQL::Play;
use AgentTest::Wait;

my $db = AgentSQL->new_empty;
my @migrations = sort map { s{.*/|\.up\.sql$}{}gr } glob "$AgentSQL::ROOT/sql/migrations/[0-9]*.up.sql";

sub apply {
    my ($direction, @names) = @_;
    for my $name (@names) {
        my ($status, $output) = $db->file("sql/migrations/$name.$direction.sql", '-1', '-q');
        die "$name $direction: $output" if $status != 0;
    }
    return;
}

subtest 'up, down and up again give the same schema as up' => sub {
    my $empty = $db->dump;
    apply('up', @migrations);
    my $first = $db->dump;
    isnt $first, $empty;
    apply('down', reverse @migrations);
    is $db->dump, $empty, 'down leaves nothing';
    apply('up', @migrations);
    is $db->dump, $first;
    apply('down', reverse @migrations);
};

subtest 'each single migration can be undone' => sub {
    for my $n (0 .. $#migrations) {
        my $before = $db->dump;
        apply('up', $migrations[$n]);
        my $after = $db->dump;
        apply('down', $migrations[$n]);
        is $db->dump, $before, $migrations[$n];
        apply('up', $migrations[$n]);
        is $db->dump, $after;
    }
    apply('down', reverse @migrations);
};

subtest 'an installation names its migrations, and a second one changes nothing' => sub {
    my ($status, $output) = $db->file('sql/install.sql');
    is $status, 0 or diag $output;
    like $output, qr/^agent: migration $_$/m, $_ for @migrations;
    like $output, qr/^agent: schema version ${\ scalar @migrations}$/m;
    my $dump = $db->dump;
    ($status, $output) = $db->file('sql/install.sql');
    is $status, 0;
    unlike $output, qr/migration/, 'a second installation applies no migration';
    is $db->dump, $dump;
};

subtest 'an installation over an older version applies the missing migrations' => sub {
    $db->file('sql/uninstall.sql');
    apply('up', @migrations[ 0 .. 3 ]);
    my ($status, $output) = $db->file('sql/install.sql');
    is $status, 0 or diag $output;
    unlike $output, qr/migration $migrations[3]$/m;
    like $output, qr/migration $migrations[4]$/m;
};

subtest 'the version is the number of the last migration' => sub {
    my $session = $db->session;
    is $session->value('select agent.schema_version()'), scalar @migrations;
    is $migrations[$_], (sprintf '%04d', $_ + 1) . substr($migrations[$_], 4) for 0 .. $#migrations;
    is_deeply [ map { $_->[0] } $session->query('select name from agent.schema_version order by version') ],
        [ map { substr $_, 5 } @migrations ];
    $session->close;
};

subtest 'a schema newer than the files is refused' => sub {
    my $session = $db->session;
    $session->query("insert into agent.schema_version (version, name) values (9999, 'future')");
    my ($status, $output) = $db->file('sql/install.sql');
    isnt $status, 0;
    like $output, qr/newer than these files/;
    $session->query('delete from agent.schema_version where version = 9999');
    $session->close;
};

subtest 'an installation that fails changes nothing' => sub {
    my $other = AgentSQL->new_empty;
    my $empty = $other->dump;
    my $session = $other->session;
    my ($status) = $other->file('sql/install.sql', '-v', 'app_role=no_such_role');
    isnt $status, 0;
    is $other->dump, $empty;
    $session->close;
};

subtest 'an upgrade waits for a concurrent one' => sub {
    my $other = $db->session;
    $other->query('begin');
    $other->query('lock table agent.schema_version in share row exclusive mode');
    my $pid = open(my $upgrade, '-|') // die "fork: $!\n";
    if (!$pid) {
        my ($status, $output) = $db->file('sql/install.sql');
        syswrite STDOUT, $output;
        POSIX::_exit($status);
    }
    wait_for('the upgrade to wait', sub {
        $other->value("select count(*) from pg_locks where relation = 'agent.schema_version'::regclass and not granted")
    });
    $other->query('commit');
    my $output = do { local $/; <$upgrade> };
    ok close $upgrade, 'it succeeds' or diag $output;
    $other->close;
};

subtest 'the installed functions are those of the files' => sub {
    my $session = $db->session;
    my @files = sort map { s{.*/|\.sql$}{}gr } glob "$AgentSQL::ROOT/sql/functions/*/*/*.sql";
    is_deeply [ map { $_->[0] } $session->query("select proname from pg_proc
        where pronamespace = 'agent'::regnamespace group by proname order by proname collate \"C\"") ], \@files;
    $session->close;
};

subtest 'every function file has a header, and a search path of its own or its callers\'' => sub {
    for my $file (glob "$AgentSQL::ROOT/sql/functions/*/*/*.sql") {
        open my $in, '<', $file or die "$file: $!";
        my $text = do { local $/; <$in> };
        my $name = $file =~ s{.*/}{}r;
        ok $text =~ /\A-- SPDX-License-Identifier: Apache-2\.0\n/
            && $text =~ /^-- Returns: /m
            && $text =~ /^-- Locks:   /m
            && ($file =~ m{/inline/} || ($file =~ m{/internal/} && $text =~ /^-- No SET clause: /m)
                ? $text =~ /^-- No SET clause: /m && $text !~ /\bset search_path\b/
                : $text =~ /\bset search_path = (?:''|pg_catalog, pg_temp)(?= |$)/m)
            && 1 == (() = $text =~ /^create or replace function /mg), $name;
    }
};

# A call whose arguments are columns, so that nothing is a constant. A function that is not inlined
# is a call in the plan; the function would be parsed and planned by each statement.
subtest 'the planner inlines the functions of inline/' => sub {
    my $session = $db->session;
    for my $name (map { s{.*/|\.sql$}{}gr } glob "$AgentSQL::ROOT/sql/functions/inline/*/*.sql") {
        my ($row) = $session->query("select p.proretset or p.proargmodes is not null, p.pronargs,
                (select string_agg(format('c%s %s', a.n, replace(a.type::regtype::text, 'anyelement', 'text')), ', ')
                   from unnest(p.proargtypes) with ordinality a (type, n))
            from pg_proc p where p.pronamespace = 'agent'::regnamespace and p.proname = '$name'");
        my ($is_table, $count, $columns) = @$row;
        my $call = "agent.$name(" . join(', ', map { "a.c$_" } 1 .. $count) . ')';
        $session->query('create temporary table a (' . ($columns // '') . ')');
        my $plan = join "\n", map { $_->[0] } $session->query('explain (verbose, costs off) '
            . ($is_table eq 't' ? "select r.* from a cross join lateral $call r" : "select $call from a"));
        unlike $plan, qr/\bagent\.$name\(/, $name;
        $session->query('drop table a');
    }
    $session->close;
};

subtest 'every migration has a header in both directions' => sub {
    for my $name (@migrations) {
        for my $direction (qw(up down)) {
            my $file = "$AgentSQL::ROOT/sql/migrations/$name.$direction.sql";
            open my $in, '<', $file or die "$file: $!";
            my $text = do { local $/; <$in> };
            ok !(grep { $text !~ /^-- $_: /m } qw(Purpose Affects Locks Breaking))
                && $text =~ /^set local lock_timeout/m, "$name.$direction";
        }
    }
};

my $session = $db->session;

sub names { return [ map { $_->[0] } $session->query($_[0]) ] }

is_deeply names("select c.oid::regclass from pg_class c where c.relnamespace = 'agent'::regnamespace
    and c.relkind in ('r', 'p', 'S') and obj_description(c.oid, 'pg_class') is null
    and c.relname not like '%\\_seq'"), [], 'every table has a comment';
is_deeply names("select a.attrelid::regclass || '.' || a.attname from pg_attribute a join pg_class c on c.oid = a.attrelid
    where c.relnamespace = 'agent'::regnamespace and c.relkind in ('r', 'p', 'c') and a.attnum > 0 and not a.attisdropped
    and not c.relispartition and col_description(a.attrelid, a.attnum) is null"), [], 'every column has a comment';
is_deeply names("select p.oid::regprocedure from pg_proc p where p.pronamespace = 'agent'::regnamespace
    and obj_description(p.oid, 'pg_proc') is null"), [], 'every function has a comment';
is_deeply names("select i.indexrelid::regclass from pg_index i join pg_class c on c.oid = i.indrelid
    where c.relnamespace = 'agent'::regnamespace and not i.indisprimary and not c.relispartition
    and obj_description(i.indexrelid, 'pg_class') is null
    and not exists (select from pg_constraint k where k.conindid = i.indexrelid)"), [], 'every index has a comment';
is_deeply names("select t.oid::regtype from pg_type t join pg_class c on c.oid = t.typrelid
    where t.typnamespace = 'agent'::regnamespace and c.relkind = 'c' and obj_description(t.oid, 'pg_type') is null"), [],
    'every type has a comment';
# Tables of the whole database or of accounts.
my $PLATFORM = q('workers', 'schema_version', 'region', 'accounts', 'account_limits', 'account_counts', 'account_measures', 'account_deletions', 'api_keys', 'audit_log', 'invitations');
is_deeply names("select c.oid::regclass from pg_class c where c.relnamespace = 'agent'::regnamespace
    and c.relkind in ('r', 'p') and c.relname not in ($PLATFORM)
    and not exists (select from pg_attribute a where a.attrelid = c.oid and a.attnum = 1 and a.attname = 'deployment_id'
    and a.attnotnull)"), [], 'every table of deployment data begins with deployment_id';
is_deeply names("select i.indrelid::regclass from pg_index i join pg_class c on c.oid = i.indrelid
    where c.relnamespace = 'agent'::regnamespace and i.indisunique and c.relname not in ($PLATFORM)
    and not 1 = any (i.indkey::smallint[]) and i.indexrelid <> 'agent.deployments_name_key'::regclass"), [],
    'every unique key contains deployment_id';
is_deeply names("select k.conname from pg_constraint k join pg_class c on c.oid = k.conrelid
    where k.connamespace = 'agent'::regnamespace and not c.relispartition
    and (k.conname !~ ('^' || c.relname || '_') or k.conname ~ '[0-9]\$')"), [],
    'every constraint has an explicit name';
is_deeply names("select p.oid::regprocedure from pg_proc p where p.pronamespace = 'agent'::regnamespace
    and p.prosecdef order by p.proname"), ['agent.delete_revoked_keys()', 'agent.maintain_partitions(interval)', 'agent.sweep_accounts(uuid)', 'agent.sweep_audit_log(interval)'],
    'few functions are security definer';

$session->close;

subtest 'uninstalling drops everything, also triggers and functions that the files do not have' => sub {
    my $empty = AgentSQL->new_empty->dump;
    my $earlier = $db->session;
    $earlier->query($_) for 'create function agent.refuse_earlier() returns trigger language plpgsql as $$ begin return null; end $$',
        map { "create trigger \"of an earlier version\" before update on agent.$_ for each row execute function agent.refuse_earlier()" } qw(api_keys run_events);
    $earlier->close;
    my ($status, $output) = $db->file('sql/uninstall.sql');
    is $status, 0 or diag $output;
    is $db->dump, $empty;
    ($status) = $db->file('sql/uninstall.sql');
    is $status, 0, 'uninstalling an empty database succeeds';
};

done_testing;
