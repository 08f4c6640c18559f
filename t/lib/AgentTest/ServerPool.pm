# SPDX-License-Identifier: Apache-2.0
# The servers of t/agent in a suite that runs several files at the same time:
# a pool holds as many as files may run, each an httpd with a cluster of its
# own that t/TEST.PL starts. t/agent/with-server runs a file on a free one.
#   DIR/N/lock    held by the file that uses server N
#   DIR/N/ready   NAME=value lines: the environment of its tests
#   DIR/N/failed  exists if a file that used it failed: its logs are kept
package AgentTest::ServerPool;
use strict;
use warnings;
use AgentTest::Env qw(root slurp write_file);
use AgentTest::Wait;
use Fcntl qw(LOCK_EX LOCK_NB);
use File::Path qw(make_path remove_tree);
use File::Temp qw(tempdir);

my @NAMES = qw(PGHOST PGUSER PGDATABASE PERL5LIB AGENT_TEST_DATABASE AGENT_TEST_URL
    AGENT_TEST_PID_FILE AGENT_TEST_ERROR_LOG AGENT_TEST_LOGS);

# Starts $size servers of AGENT_TEST_VARIANT and does not wait for them.
sub new {
    my ($class, $size) = @_;
    my $dir = tempdir('/tmp/agent-test-pool.XXXXXX', CLEANUP => 0);
    my $self = bless { dir => $dir, pid => $$, servers => [] }, $class;
    for my $slot (map { "$dir/$_" } 1 .. $size) {
        make_path($slot);
        push @{ $self->{servers} }, start($slot);
    }
    return $self;
}

sub dir { return $_[0]{dir} }

# The server runs until its standard input ends.
sub start {
    my ($slot) = @_;
    pipe my $input, my $pipe or die "pipe: $!\n";
    my $pid = fork // die "fork: $!\n";
    return { pid => $pid, pipe => $pipe } if $pid;
    open STDIN, '<&', $input or die "STDIN: $!\n";
    open STDOUT, '>', "$slot/output" or die "$slot/output: $!\n";
    open STDERR, '>&', \*STDOUT or die "STDOUT: $!\n";
    $ENV{AGENT_TEST_SLOT} = $slot;
    exec $^X, root() . '/t/TEST.PL' or CORE::exit(127);
}

# In a server's process: lets tests use it, and returns when all have ended. True
# if all of them passed.
sub serve {
    my ($slot) = @_;
    write_file("$slot/new", map { "$_=$ENV{$_}\n" } @NAMES);
    rename "$slot/new", "$slot/ready" or die "$slot/ready: $!\n";
    1 while <STDIN>;
    return !-e "$slot/failed";
}

# The slot of a server that no other file uses, and the lock that holds it.
sub take {
    my ($dir) = @_;
    my ($slot, $lock);
    wait_for('a server that is not in use', sub {
        for my $candidate (glob "$dir/*") {
            open $lock, '>', "$candidate/lock" or die "$candidate/lock: $!\n";
            return $slot = $candidate if flock $lock, LOCK_EX | LOCK_NB;
        }
        return 0;
    });
    eval { wait_for('the server to start', sub { -e "$slot/ready" }); 1 }
        or die $@, slurp("$slot/output");
    return ($slot, $lock);
}

# Stops the servers of pools, all at the same time: each takes seconds in which it
# waits. It reports crashes to the tally.
sub stop {
    my (@pools) = @_;
    my @servers = map { splice @{ $_->{servers} } } @pools;
    close $_->{pipe} for @servers;
    waitpid $_->{pid}, 0 for @servers;
    return;
}

sub DESTROY {
    my ($self) = @_;
    return if $self->{pid} != $$;
    local ($?, $!);
    $self->stop;
    remove_tree($self->{dir});
    return;
}

1;
