# SPDX-License-Identifier: Apache-2.0
# Installation and removal beside other roles: nothing that such a role owns runs in the session of the
# administrator.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;

my $OTHER = "agent_test_other_$$";
my $ROLE = "agent_test_schema_$$";
my @ARGUMENTS = ('-v', "owner_role=$ROLE", '-v', "operator_role=$AgentSQL::OPERATOR");
my @SCRIPTS = qw(sql/uninstall.sql sql/install.sql);

# Runs SQL as the other role.
sub as_other {
    my ($db, @sql) = @_;
    return AgentSQL::admin(join(';', "set session authorization $OTHER", @sql), $db->{name});
}

# A database in which the other role may create schemas. The function other.run() is the code that must not
# run; a sequence counts its calls even when they are rolled back.
sub shared_database {
    my $db = AgentSQL->new_empty;
    AgentSQL::admin("grant create on database $db->{name} to $OTHER");
    as_other($db, 'create schema other', 'grant usage on schema other to public',
        'create sequence other.calls', 'grant usage on sequence other.calls to public',
        q{create function other.run() returns integer language plpgsql as
            $$ begin return nextval('other.calls'); end $$},
        q{create function other.fire() returns trigger language plpgsql as
            $$ begin perform other.run(); return new; end $$});
    return $db;
}

# The same with the schema, installed by a superuser.
sub installed_database {
    my $db = shared_database();
    my ($status, $output) = $db->file_as_superuser('sql/install.sql', @ARGUMENTS);
    is $status, 0, 'the schema is installed' or diag $output;
    AgentSQL::admin("grant usage, create on schema agent to $OTHER;
        grant trigger, references on all tables in schema agent to $OTHER", $db->{name});
    return $db;
}

sub no_code_ran {
    my ($db, $name) = @_;
    is AgentSQL::admin('select is_called from other.calls', $db->{name}), 'f', "$name: no code of the other role runs";
    return;
}

sub is_refused {
    my ($db, $reason, $name, $run) = @_;
    $run //= sub { $db->file_as_superuser($_[0], @ARGUMENTS) };
    for my $script (@SCRIPTS) {
        my ($status, $output) = $run->($script);
        isnt $status, 0, "$name: $script refuses";
        like $output, $reason, "$name: $script names the role";
    }
    no_code_ran($db, $name);
    return;
}

sub remove {
    my ($db) = @_;
    AgentSQL::admin("drop database $db->{name} with (force)");
    return;
}

AgentSQL::admin("create role $OTHER");

# Objects of a schema that another role made before the installation.
my %SCHEMA = (
    'a view as schema_version' => ['create view agent.schema_version as select other.run() as version'],
    'a default of schema_version' => [
        'create table agent.schema_version (version integer, name text, applied_at integer default other.run())',
        'insert into agent.schema_version values (4, null, 0)' ],
    'a trigger on schema_version' => [
        'create table agent.schema_version (version integer, name text)',
        'insert into agent.schema_version select 4',
        'create trigger t before insert or delete on agent.schema_version for each row execute function other.fire()' ],
    'a policy of schema_version' => [
        'create table agent.schema_version (version integer, name text)',
        'alter table agent.schema_version enable row level security',
        'create policy p on agent.schema_version using (other.run() > 0)' ],
    'an empty schema' => [],
);

subtest 'a schema of another role is refused' => sub {
    for my $name (sort keys %SCHEMA) {
        my $db = shared_database();
        as_other($db, 'create schema agent', 'grant usage, create on schema agent to public', @{ $SCHEMA{$name} },
            $name =~ /schema_version/ ? 'grant all on agent.schema_version to public' : ());
        is_refused($db, qr/schema agent belongs to role $OTHER/, $name);
        is_refused($db, qr/schema agent belongs to role $OTHER/, "$name, plain role",
            sub { $db->file($_[0]) });
        remove($db);
    }
};

subtest 'a superuser cannot upgrade or remove the schema of a plain role' => sub {
    my $db = shared_database();
    my ($status, $output) = $db->file_as($OTHER, 'sql/install.sql');
    is $status, 0 or diag $output;
    as_other($db, 'alter table agent.schema_version rename to old_version',
        'create view agent.schema_version as select version + other.run() as version, name from agent.old_version');
    is_refused($db, qr/schema agent belongs to role $OTHER/, 'a replaced table');
    as_other($db, 'drop view agent.schema_version', 'alter table agent.old_version rename to schema_version');
    for my $script (reverse @SCRIPTS) {
        ($status, $output) = $db->file_as($OTHER, $script);
        is $status, 0, "the role itself can run $script" or diag $output;
    }
    remove($db);
};

# Objects that a role can add to the schema of another, given the privileges of installed_database(), with the
# object that the message names.
my %OBJECT = (
    'a view'      => [ 'create view agent.v as select 1 as x', 'view agent.v' ],
    'a table'     => [ 'create table agent.t (x integer)', 'table agent.t' ],
    'a function'  => [ q{create function agent.f() returns integer language sql as 'select 1'}, 'function agent.f()' ],
    'a procedure' => [ q{create procedure agent.p() language sql as 'select 1'}, 'function agent.p()' ],
    'a domain'    => [ 'create domain agent.d as integer check (other.run() > value)', 'function other.run()' ],
    'an operator' => [ 'create operator agent.= (function = pg_catalog.int48eq, leftarg = integer, rightarg = bigint)',
        'operator agent.=(integer,bigint)' ],
    'a trigger'   => [ 'create trigger t before insert or delete on agent.schema_version
        for each row execute function other.fire()', 'function other.fire()' ],
    'a foreign key' => [ 'create table other.t (id integer references agent.schema_version on delete cascade);
        create trigger t after delete on other.t for each row execute function other.fire()', 'table other.t' ],
);

subtest 'an object of another role in the schema is refused' => sub {
    for my $name (sort keys %OBJECT) {
        my ($create, $object) = @{ $OBJECT{$name} };
        my $db = installed_database();
        as_other($db, $create);
        as_other($db, 'insert into other.t select 5') if $name eq 'a foreign key';
        is_refused($db, qr/\Q$object\E belongs to role $OTHER/, $name);
        remove($db);
    }
};

subtest 'an extension that another role put into the schema is refused' => sub {
    my $db = installed_database();
    plan skip_all => 'hstore is not available'
        if AgentSQL::admin("select count(*) from pg_available_extensions where name = 'hstore'") eq '0';
    as_other($db, 'create extension hstore schema agent');
    is_refused($db, qr/extension hstore belongs to role $OTHER/, 'hstore');
    remove($db);
};

subtest 'objects of other roles outside of the schema are accepted' => sub {
    my $db = installed_database();
    as_other($db, 'alter default privileges in schema agent grant select on tables to public',
        'create view other.v as select other.run()');
    AgentSQL::admin("create publication p for table agent.runs; alter publication p owner to $OTHER", $db->{name});
    for my $script (reverse @SCRIPTS) {
        my ($status, $output) = $db->file_as_superuser($script, @ARGUMENTS);
        is $status, 0, $script or diag $output;
    }
    no_code_ran($db, 'outside');
    remove($db);
};

subtest 'functions in public that hide those of the catalog are not called' => sub {
    my $db = installed_database();
    AgentSQL::admin("grant usage, create on schema public to $OTHER", $db->{name});
    as_other($db,
        q{create function public.pg_advisory_xact_lock(integer) returns void language sql as 'select other.run()'},
        q{create function public.format(text, regprocedure) returns text language sql
            as 'select pg_catalog.format($1, $2 || left(other.run()::text, 0))'},
        q{create function public.max(integer) returns integer language sql as 'select other.run()'});
    for my $script (reverse @SCRIPTS) {
        my ($status, $output) = $db->file_as_superuser($script, @ARGUMENTS);
        is $status, 0, $script or diag $output;
    }
    no_code_ran($db, 'overloads');
    remove($db);
};

subtest 'the session of a superuser with another role is refused' => sub {
    my $db = shared_database();
    AgentSQL::admin("alter database $db->{name} owner to $OTHER");
    as_other($db, 'create schema agent', 'create view agent.schema_version as select other.run() as version',
        "alter database $db->{name} set role = $OTHER");
    my $run = sub { $db->file_as_superuser($_[0]) };
    is_refused($db, qr/superuser \S+ runs this as role $OTHER/, 'the role that the database sets', $run);
    remove($db);
};

subtest 'a role that others can become cannot own the schema' => sub {
    my $db = AgentSQL->new_empty;
    my $run = sub { $db->file_as_superuser($_[0], @ARGUMENTS) };
    AgentSQL::admin("drop role if exists $ROLE; create role $ROLE login");
    for my $script (@SCRIPTS) {
        my ($status, $output) = $run->($script);
        isnt $status, 0, "$script refuses";
        like $output, qr/role $ROLE can log in and cannot own the schema/, "$script: a role with login";
    }
    AgentSQL::admin("alter role $ROLE nologin; grant $ROLE to $OTHER");
    for my $script (@SCRIPTS) {
        my ($status, $output) = $run->($script);
        isnt $status, 0, "$script refuses";
        like $output, qr/role $ROLE has the member $OTHER and cannot own the schema/, "$script: a role with a member";
    }
    AgentSQL::admin("revoke $ROLE from $OTHER; grant $ROLE to current_user");
    for my $script (reverse @SCRIPTS) {
        my ($status, $output) = $run->($script);
        is $status, 0, "$script: a superuser may be a member" or diag $output;
    }
    remove($db);
};

AgentSQL::admin("drop role $ROLE; drop role $OTHER");
done_testing;
