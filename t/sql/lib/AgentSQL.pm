# SPDX-License-Identifier: Apache-2.0
# A scratch database with the schema installed, and psql sessions to it. Uses core modules only.
# The cluster is the one that PGHOST, PGPORT and PGUSER name; t/sql/with-cluster makes one.
package AgentSQL;

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use Cpanel::JSON::XS ();
use Time::HiRes ();
use AgentSQL::Session;

our $ROOT = abs_path(dirname(__FILE__) . '/../../..');
our $OWNER = 'agent_test_owner';
our $APP = 'agent_test_app';
our $OPERATOR = 'agent_test_operator';
our $DEPLOYMENT = '00000000-0000-0000-0000-000000000001';
our $ASSISTANT = 'fe096781-5601-53d2-b2f6-0d3403f7e9ca';

my $JSON = Cpanel::JSON::XS->new->canonical->allow_nonref;
my @databases;
my $counter = 0;

my $bindir;

sub bindir {
    chomp($bindir //= `pg_config --bindir`);
    return $bindir;
}

# (exit status, output) of a program, run with additions to the environment.
sub run {
    my ($env, @command) = @_;
    local %ENV = (%ENV, %$env);
    open(my $pipe, '-|', 'sh', '-c', 'exec "$@" 2>&1', 'sh', @command)
        or die "$command[0]: $!";
    local $/;
    my $output = <$pipe>;
    close $pipe;
    return ($? >> 8, defined $output ? $output : '');
}

sub admin {
    my ($sql, $database) = @_;
    my ($status, $output) = run(
        {}, bindir() . '/psql', '-XAtq', '-v', 'ON_ERROR_STOP=1',
        '-d', $database || $ENV{PGDATABASE} || 'postgres', '-c', $sql);
    die "$sql: $output" if $status != 0;
    chomp $output;
    return $output;
}

# A database without the schema, owned by a role without other privileges.
sub new_empty {
    my ($class) = @_;
    my $name = "agent_test_$$" . '_' . ++$counter;
    for my $role ($OWNER, $APP, $OPERATOR) {
        admin("do \$\$ begin create role $role; exception when duplicate_object or unique_violation then end \$\$");
    }
    admin("create database $name owner $OWNER");
    push @databases, $name;
    return bless { name => $name, pid => $$ }, $class;
}

sub new {
    my ($class, @arguments) = @_;
    my $self = $class->new_empty;
    my ($status, $output) = $self->file('sql/install.sql', @arguments);
    die "install: $output" if $status != 0;
    ($status, $output) = $self->file('t/sql/lib/save_items.sql', '-q');
    die "save_items: $output" if $status != 0;
    return $self;
}

sub env {
    my ($self, $role) = @_;
    return { PGDATABASE => $self->{name}, PGOPTIONS => '-c role=' . ($role || $OWNER) };
}

# Runs a file of the repository with psql, as the owner: "set role" would leave the session a superuser's.
sub file {
    my ($self, $path, @arguments) = @_;
    return $self->file_as($OWNER, $path, @arguments);
}

sub file_as {
    my ($self, $role, $path, @arguments) = @_;
    return $self->file_as_superuser($path, @arguments, '-c', "set session authorization $role");
}

# The same as a superuser, who runs the tests.
sub file_as_superuser {
    my ($self, $path, @arguments) = @_;
    return run({ PGDATABASE => $self->{name} }, bindir() . '/psql', '-X', '-v', 'ON_ERROR_STOP=1',
        @arguments, '-f', "$ROOT/$path");
}

sub dump {
    my ($self) = @_;
    my ($status, $output) = run({}, bindir() . '/pg_dump', '-s', '-d', $self->{name});
    die "pg_dump: $output" if $status != 0;
    # pg_dump of newer minor releases prints a random token here.
    $output =~ s/^\\(un)?restrict .*\n//mg;
    return $output;
}

sub session {
    my ($self, $role) = @_;
    return AgentSQL::Session->new($self->env($role));
}

# UUIDv7, in the order of their making.
sub uuid {
    my $n = ++$counter;
    return sprintf('%08x-%04x-7%03x-8%03x-%04x%08x',
        map({ ($_ >> 16) & 0xffffffff, $_ & 0xffff } int(Time::HiRes::time() * 1000)),
        ($n >> 12) & 0xfff, $n & 0xfff, $$ & 0xffff, int(rand(0xffffffff)));
}

sub encode { return $JSON->encode($_[0]) }
sub decode { return $JSON->decode($_[0]) }

END {
    my $status = $?;
    my $list = join ' ', @databases;
    for my $name (@databases) {
        last if !$list;
        eval { admin("drop database if exists $name with (force)") };
    }
    $? = $status;
}

1;
