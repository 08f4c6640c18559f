# SPDX-License-Identifier: Apache-2.0
# The role that owns the schema: its attributes, and that no other role gets its rights.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;

my $ROLE = "agent_test_schema_$$";
my @ARGUMENTS = ('-v', "owner_role=$ROLE", '-v', "app_role=$AgentSQL::APP", '-v', "operator_role=$AgentSQL::OPERATOR");

# Objects of the schema that another role owns, as text.
sub owned_by_others {
    my ($db, $owner) = @_;
    return AgentSQL::admin(<<"END", $db->{name});
        select nspname from pg_namespace where nspname = 'agent' and nspowner <> '$owner'::regrole
        union all
        select relname from pg_class where relnamespace = 'agent'::regnamespace and relowner <> '$owner'::regrole
        union all
        select proname from pg_proc where pronamespace = 'agent'::regnamespace and proowner <> '$owner'::regrole
        union all
        select typname from pg_type where typnamespace = 'agent'::regnamespace and typowner <> '$owner'::regrole
END
}

sub install_as_superuser {
    my ($db, @arguments) = @_;
    my ($status, $output) = $db->file_as_superuser('sql/install.sql', @arguments);
    is $status, 0 or diag $output;
    return;
}

subtest 'a superuser installs for a role without login and without rights in the cluster' => sub {
    my $db = AgentSQL->new_empty;
    install_as_superuser($db, @ARGUMENTS);
    is owned_by_others($db, $ROLE), '', 'the role owns everything in the schema';
    is AgentSQL::admin("select rolsuper or rolcanlogin or rolcreaterole or rolcreatedb or rolbypassrls or rolreplication
        from pg_roles where rolname = '$ROLE'"), 'f';
    is AgentSQL::admin("select has_database_privilege('$ROLE', '$db->{name}', 'create')"), 'f',
        'the role cannot create another schema';
    install_as_superuser($db, @ARGUMENTS);
    is owned_by_others($db, $ROLE), '', 'a second installation changes no owner';

    my $app = $db->session($AgentSQL::APP);
    is $app->value("select agent.maintain_partitions('100 years')"), 0, 'a server can work with it';
    is AgentSQL::admin("select pg_has_role('$AgentSQL::APP', '$ROLE', 'member')"), 'f',
        'a server cannot become the owner';
    $app->close;

    my ($status, $output) = $db->file_as_superuser('sql/uninstall.sql', @ARGUMENTS);
    is $status, 0 or diag $output;
    is AgentSQL::admin("select to_regnamespace('agent') is null", $db->{name}), 't';
};

subtest 'the default owner is agent_owner' => sub {
    my @new = grep { AgentSQL::admin("select to_regrole('$_') is null") eq 't' } qw(agent_owner agent_operator);
    my $db = AgentSQL->new_empty;
    install_as_superuser($db);
    is owned_by_others($db, 'agent_owner'), '';
    $db->file_as_superuser('sql/uninstall.sql');
    AgentSQL::admin("drop role $_") for @new;
};

subtest 'a plain role that installs is the owner' => sub {
    my $db = AgentSQL->new('-v', "app_role=$AgentSQL::APP");
    is owned_by_others($db, $AgentSQL::OWNER), '';
};

subtest 'an installation by a superuser takes over objects of superusers' => sub {
    my $db = AgentSQL->new_empty;
    my ($migration) = glob "$AgentSQL::ROOT/sql/migrations/0001_*.up.sql";
    $db->file_as_superuser($migration =~ s{.*/sql/}{sql/}r, '-1');
    AgentSQL::admin(q{create procedure agent.p() language sql as 'select 1'}, $db->{name});
    install_as_superuser($db, @ARGUMENTS);
    is owned_by_others($db, $ROLE), '';
    my ($status, $output) = $db->file_as_superuser('sql/uninstall.sql', @ARGUMENTS);
    is $status, 0 or diag $output;
    is AgentSQL::admin("select to_regnamespace('agent') is null", $db->{name}), 't';
};

subtest 'a superuser cannot own the schema, and the owner cannot be the role of a server' => sub {
    my $db = AgentSQL->new_empty;
    my $superuser = AgentSQL::admin('select current_user');
    my ($status, $output) = $db->file_as_superuser('sql/install.sql', '-v', "owner_role=$superuser");
    isnt $status, 0;
    like $output, qr/cannot own the schema/;
    for my $role ($superuser, $ROLE) {
        ($status, $output) = $db->file_as_superuser('sql/install.sql', '-v', "owner_role=$ROLE", '-v', "app_role=$role");
        isnt $status, 0;
        like $output, qr/may become the owner/, $role;
    }
};

my $db = AgentSQL->new('-v', "app_role=$AgentSQL::APP");
my $app = $db->session($AgentSQL::APP);

subtest 'in the database of a server no role may create schemas or temporary objects' => sub {
    is $app->error('create temporary table t (i integer)'), '42501';
    is $app->error('create schema s'), '42501';
};

my $day = 0;
# Objects with which the role of a server could hide names that the security
# definer function uses. Each of them calls evil().
my %FRONT = (
    'a table of the catalog' => q{create temp view pg_class as
        select c.oid, pg_temp.evil(c.relname::text)::name as relname from pg_catalog.pg_class c},
    'another one' => q{create temp view pg_inherits as
        select i.inhrelid, i.inhparent, pg_temp.evil('') from pg_catalog.pg_inherits i},
    'a table of the schema' => q{create temp view run_queue as select pg_temp.evil('')},
    map({ ("the type $_" => "create domain pg_temp.$_ as pg_catalog.$_ check (pg_temp.evil('') is not null)") }
        qw(text date int4 interval regclass)),
);

subtest 'code in temporary objects of a caller does not run as the owner' => sub {
    AgentSQL::admin("grant temporary on database $db->{name} to $AgentSQL::APP");
    for my $name (sort keys %FRONT) {
        my $caller = $db->session($AgentSQL::APP);
        $caller->query(q{create function pg_temp.evil(p text) returns text language plpgsql as
            $$ begin perform set_config('agent_test.ran_as', current_user, false); return p; end $$});
        $caller->query($FRONT{$name});
        $caller->query("grant select on $1 to public") if $FRONT{$name} =~ /temp view (\w+)/;
        $caller->query("set agent.now = '2041-01-0" . ++$day . "T00:00:00Z'");
        is $caller->error("select agent.maintain_partitions('100 years')"), '', $name;
        isnt $caller->value("select current_setting('agent_test.ran_as', true)"), $AgentSQL::OWNER;
        $caller->close;
    }
    AgentSQL::admin("revoke temporary on database $db->{name} from $AgentSQL::APP");
};

subtest 'a server cannot have events dropped before they are a day old' => sub {
    for my $retention (qw('-1_days' '0' '23:59:59' null)) {
        my $text = $retention =~ tr/_/ /r;
        is $app->error("select agent.maintain_partitions($text)"), '22023', $text;
    }
    is $app->error("select agent.maintain_partitions('1 day')"), '';
};

subtest 'functions that run as the owner search pg_temp last' => sub {
    my $session = $db->session;
    my %function = map { $_->[0] => { definer => $_->[1] eq 't', config => $_->[2], body => $_->[3] } } $session->query(
        "select proname, prosecdef, coalesce(array_to_string(proconfig, ';'), ''), prosrc from pg_proc
          where pronamespace = 'agent'::regnamespace");
    my @open = grep { $function{$_}{definer} } sort keys %function;
    cmp_ok scalar @open, '>', 0;
    my %seen;
    while (defined(my $name = shift @open)) {
        next if $seen{$name}++;
        my $config = $function{$name}{config};
        # A function without a path has its caller's.
        ok $config =~ /(?:\A|;)search_path=pg_catalog, pg_temp(?:;|\z)/
            || $config !~ /search_path/ && !$function{$name}{definer}, $name;
        push @open, grep { $function{$_} } $function{$name}{body} =~ /\bagent\.(\w+)\(/g;
    }
    is_deeply [ map { $_->[0] } $session->query("select distinct r.rolname from pg_proc p join pg_roles r on r.oid = p.proowner
        where p.prosecdef and p.pronamespace = 'agent'::regnamespace and r.rolsuper") ], [], 'the owner of security definer functions is not a superuser';
    $session->close;
};

$app->close;
AgentSQL::admin("drop role $ROLE");
done_testing;
