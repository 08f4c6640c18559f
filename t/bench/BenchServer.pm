# SPDX-License-Identifier: Apache-2.0
# The server that is measured: a cluster of its own, an httpd, its supervisor and
# runner, with room for the connections of the load generators.
#
#   my $server = BenchServer->new;              # config => other than default_config()
#                                               # prepare => sub { the database, by its conninfo }
#   $server->port; $server->url; $server->conninfo; $server->error_log;
#   $server->sql('select ...');
#   $server->stop;
package BenchServer;
use strict;
use warnings;
use AgentTest::Env qw(httpd slurp);
use AgentTest::Process ();
use AgentTest::Server;
use AgentTest::Wait;
use BenchPostgres;
use AgentTest::Cost qw(cpu_sec);
use BenchProcess qw(child_pids memory_kb);
use IPC::Open2 qw(open2);

# Differences from the tests' server: a fixed number of children, so that their
# memory can be compared, more threads than clients (httpd closes connections
# when all are busy), no access log, connections that stay open.
my $CONFIG = <<'CONF';
LogLevel warn agent:warn
StartServers 2
ServerLimit 2
ThreadsPerChild 40
MinSpareThreads 1
MaxSpareThreads 80
MaxRequestWorkers 80
MaxConnectionsPerChild 0
MaxKeepAliveRequests 0
DBDKeep 32
DBDMax 32
AgentMaxWaiters 32
AgentMaxWaitersPerAddress 0
CONF

sub default_config { return $CONFIG }

sub new {
    my ($class, %args) = @_;
    my $self = bless { pid => $$ }, $class;
    $self->{postgres} = BenchPostgres->new;
    $args{prepare}->($self->{postgres}->conninfo) if $args{prepare};
    $self->{httpd} = AgentTest::Server->new(
        database => $self->{postgres}->conninfo,
        config   => AgentTest::Server::shared_config()
            . ($args{config} // $CONFIG),
    );
    $self->{httpd}->start;
    $self->open_psql;
    return $self;
}

sub port      { return $_[0]{httpd}{port} }
sub url       { return $_[0]{httpd}->url }
sub conninfo  { return $_[0]{postgres}->conninfo }
sub error_log { return $_[0]{httpd}->error_log }

# httpd before the cluster, or it would log the loss.
sub stop {
    my ($self) = @_;
    return if $self->{pid} != $$;
    $self->close_psql;
    delete $self->{httpd};
    delete $self->{postgres};
    return;
}

sub DESTROY {
    my ($self) = @_;
    local ($?, $@, $!);
    $self->stop;
    return;
}

# --- Queries and processes ------------------------------------------------------

# One psql for all queries, which run while other things are measured.
sub open_psql {
    my ($self) = @_;
    my $pid = open2(my $out, my $in, qw(psql -X -q -A -t -v ON_ERROR_STOP=1),
        $self->{postgres}->conninfo('postgres'));
    $self->{psql} = { pid => $pid, in => $in, out => $out };
    return;
}

# Our exit status is not psql's.
sub close_psql {
    my ($self) = @_;
    my $psql = delete $self->{psql} // return;
    local $?;
    close $psql->{in};
    waitpid $psql->{pid}, 0;
    return;
}

# The single value of the statement.
sub sql {
    my ($self, $statement) = @_;
    my $psql = $self->{psql};
    print { $psql->{in} } "$statement;\n";
    $psql->{in}->flush;
    my $value = readline $psql->{out};
    die "psql ended on: $statement\n" if !defined $value;
    chomp $value;
    return $value;
}

# Process ids by role.
sub processes {
    my ($self) = @_;
    my $parent = $self->{httpd}->httpd_pid;
    my $postmaster = $self->{postgres}->postmaster_pid;
    return {
        httpd      => [ AgentTest::Process::httpd_children($parent) ],
        supervisor => [ AgentTest::Process::supervisor_pid($parent) ],
        runner     => [ AgentTest::Process::runner_pids($parent) ],
        postgres   => [ $postmaster,
            AgentTest::Process::children_of($postmaster) ],
    };
}

# Seconds of processor time so far, by role.
sub cpu {
    my ($self) = @_;
    my $of = $self->processes;
    return { map { $_ => cpu_sec(@{ $of->{$_} }) } keys %{$of} };
}

# The difference to an earlier cpu(), in microseconds for each of count.
sub cpu_usec_each {
    my ($self, $before, $count) = @_;
    my $now = $self->cpu;
    return { map { $_ => 1e6 * ($now->{$_} - $before->{$_}) / ($count || 1) }
        keys %{$now} };
}

# The current processes of PostgreSQL.
sub sessions {
    my ($self) = @_;
    return { map { $_ => 1 } child_pids($self->{postgres}->postmaster_pid) };
}

# Waits until newer processes have ended, so that their time counts as their
# parent's. Autovacuum is left out.
sub wait_for_sessions {
    my ($self, $before) = @_;
    my $postmaster = $self->{postgres}->postmaster_pid;
    wait_for('sessions to end', sub {
        !grep { !$before->{$_} && slurp("/proc/$_/cmdline") !~ /autovacuum/ }
            child_pids($postmaster)
    });
    return;
}

# {pss, private} in kB by role; the two children in sum.
sub memory {
    my ($self) = @_;
    my $of = $self->processes;
    return { map { $_ => memory_kb(@{ $of->{$_} }) }
        grep { $_ ne 'postgres' } keys %{$of} };
}

sub versions {
    my ($self) = @_;
    my ($apache) = qx(@{[ httpd() ]} -v) =~ m{Apache/(\S+)};
    my ($postgres) = $self->sql('show server_version') =~ /\A(\S+)/;
    return { httpd => $apache, postgres => $postgres };
}

1;
