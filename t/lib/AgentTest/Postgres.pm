# SPDX-License-Identifier: Apache-2.0
# A private PostgreSQL cluster for tests: socket only, no fsync, removed with the
# object. Only the process that created it stops it, because tests fork.
package AgentTest::Postgres;
use strict;
use warnings;
use AgentTest::Database qw(psql);
use AgentTest::Env qw(root server_user slurp write_file);
use Digest::SHA qw(sha256_hex);
use Fcntl qw(LOCK_EX);
use File::Path qw(make_path remove_tree);
use File::Temp qw(tempdir);

my $SCRIPT = root() . '/conf/quickstart/postgres.sh';
my $OPTIONS = join ' ', map { "-c $_" } qw(fsync=off full_page_writes=off
    max_connections=300 track_commit_timestamp=on);

# The cluster that t/TEST.PL started, seen from a test; it is not ended here.
sub shared {
    my ($class) = @_;
    return bless { dir => $ENV{PGHOST}, pid => 0 }, $class;
}

# The database that others are copied from: an installation takes twenty times the
# processor time of a copy.
my $INSTALLED = 'agent_installed';

# A running cluster with the schema installed in database agent, unless schema => 0.
sub new {
    my ($class, %args) = @_;
    my $dir = tempdir('/tmp/agent-test-pg.XXXXXX', CLEANUP => 0);
    chmod 0755, $dir or die "$dir: $!\n";
    my $self = bless { dir => $dir, pid => $$ }, $class;
    my $has_schema = $args{schema} // 1;
    $self->copy_data(installed_data()) if $has_schema;
    $self->start;
    $self->make_database('agent') if $has_schema;
    return $self;
}

# The data of a stopped cluster with database $INSTALLED. It is in the build folder, and
# made anew when the schema or what makes a cluster has changed.
sub installed_data {
    my $folder = root() . '/.build/cluster';
    my @made_of = map { slurp($_) } $SCRIPT, __FILE__, sort glob root() . '/sql/{,*/,*/*/,*/*/*/}*.sql';
    my $wanted = sha256_hex(join "\0", $>, server_user(), @made_of);
    make_path(root() . '/.build');
    open my $lock, '>', "$folder.lock" or die "$folder.lock: $!\n";
    flock $lock, LOCK_EX or die "$folder.lock: $!\n";
    return "$folder/data" if slurp("$folder/installed") eq $wanted;
    remove_tree($folder);
    make_path($folder);
    my $cluster = __PACKAGE__->new(schema => 0);
    $cluster->command('database', $cluster->host, $INSTALLED);
    $cluster->stop;
    $cluster->execute('cp', '-a', $cluster->host . '/data', $folder);
    write_file("$folder/installed", $wanted);
    return "$folder/data";
}

sub copy_data {
    my ($self, $data) = @_;
    $self->execute('cp', '-a', $data, $self->{dir});
    # PostgreSQL's user makes its socket and its log beside the data.
    return $self->execute('chown', "--reference=$data", $self->{dir});
}

# The directory of the socket, for PGHOST.
sub host { return $_[0]{dir} }

sub conninfo {
    my ($self, $role, $database) = @_;
    $role     //= 'agent';
    $database //= 'agent';
    return "host=$self->{dir} user=$role dbname=$database connect_timeout=30";
}

sub start {
    my ($self) = @_;
    local $ENV{SERVER_USER}     = server_user();
    local $ENV{CLUSTER_OPTIONS} = $OPTIONS;
    return $self->command('start', $self->{dir});
}

# smart, fast or immediate
sub stop {
    my ($self, $mode) = @_;
    return $self->command('stop', $self->{dir}, $mode || 'fast');
}

# Words of postgres.sh.
sub command {
    my ($self, @words) = @_;
    return $self->execute($SCRIPT, @words);
}

sub execute {
    my ($self, @words) = @_;
    my $log = "$self->{dir}/script.$$.log";
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        # They may name another cluster.
        delete @ENV{qw(PGHOST PGUSER PGDATABASE)};
        open STDIN,  '<', '/dev/null';
        open STDOUT, '>', $log;
        open STDERR, '>&', \*STDOUT;
        exec @words or CORE::exit(127);
    }
    waitpid $pid, 0;
    die "PostgreSQL: @words failed:\n", slurp($log),
        slurp("$self->{dir}/postgres.log") if $?;
    return;
}

# A database with the schema, in this cluster, which was made with the schema. A copy
# does not have the privileges of its original: sql/restrict.sql's.
sub make_database {
    my ($self, $name) = @_;
    return $self->execute(psql(), qw(-X -q -v ON_ERROR_STOP=1), '-d',
        "host=$self->{dir} user=postgres dbname=postgres", '-c',
        "create database $name template $INSTALLED", '-c',
        "revoke create, temporary on database $name from public");
}

# The running server's main process.
sub postmaster_pid {
    my ($self) = @_;
    my ($pid) = slurp("$self->{dir}/data/postmaster.pid") =~ /\A(\d+)/;
    return $pid;
}

sub DESTROY {
    my ($self) = @_;
    return if $self->{pid} != $$;
    local ($?, $@, $!);
    eval { $self->stop('immediate') };
    remove_tree($self->{dir});
    return;
}

1;
