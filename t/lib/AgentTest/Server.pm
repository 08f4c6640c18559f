# SPDX-License-Identifier: Apache-2.0
# A new httpd, for a test that needs another configuration than that of the
# shared one, or that breaks its database or processes:
#
#   my $server = AgentTest::Server->new(config => $lines);   # text after
#   my ($ok, $output) = $server->check_config;               # t/conf/httpd.conf
#   $server->start;
#   my $client = AgentTest::Client->new(url => $server->url);
#
# database => a connection string. Without it the server gets a database of its
# own in the shared cluster, so that no other server executes its runs; after
# start() sql() of AgentTest::Database queries it.
# Destroying the object stops the server and fails the test if a child crashed
# or a sanitizer reported: undef it before done_testing.
package AgentTest::Server;
use strict;
use warnings;
use AgentTest::Conf qw(write_conf);
use AgentTest::Client;
use AgentTest::Env qw(httpd free_port root build_dir is_sanitized slurp variant);
use AgentTest::Postgres;
use AgentTest::Process qw(descendants_of is_alive);
use AgentTest::Wait;
use File::Copy qw(copy);
use File::Path qw(make_path remove_tree);
use File::Temp qw(tempdir);
use IO::Socket::INET;
use List::Util qw(sum0);
use Test::Builder;

# The program of every test server: httpd, or the wrapper that preloads a
# sanitizer into httpd only. Sanitizers write to AGENT_TEST_LOGS.
sub program {
    return httpd() if !is_sanitized();
    $ENV{AGENT_TEST_HTTPD} = httpd();
    $ENV{AGENT_TEST_RUNTIME} //= runtime();
    return root() . '/t/lib/httpd-sanitized.sh';
}

sub runtime {
    my $name = variant() eq 'tsan' ? 'libtsan.so' : 'libasan.so';
    chomp(my $path = qx(gcc -print-file-name=$name));
    die "gcc has no $name\n" if $path eq $name || !$path;
    return $path;
}

sub new {
    my ($class, %args) = @_;
    my $dir = tempdir('/tmp/agent-test-httpd.XXXXXX', CLEANUP => 0);
    chmod 0755, $dir or die "$dir: $!\n";
    my $self = bless { dir => $dir, port => free_port(), pid => $$ }, $class;
    # Another server of this cluster may have had the port.
    $self->{own_database} = join '_', 'agent', $self->{port}, $$, time if !$args{database};
    $self->{conf} = write_conf(
        dir      => $dir,
        port     => $self->{port},
        database => $args{database}
            // AgentTest::Postgres->shared->conninfo('agent',
                $self->{own_database}),
        config   => $args{config} // shared_config(),
    );
    return $self;
}

# A started server with one child of four threads, so that a test notices a
# request that holds one; more lines after the shared configuration.
my $SMALL = <<'CONF';
StartServers 1
ServerLimit 3
ThreadsPerChild 4
ThreadLimit 4
MinSpareThreads 1
MaxSpareThreads 4
MaxRequestWorkers 4
CONF

sub start_small {
    my ($class, @lines) = @_;
    my $self = $class->new(
        config => join '', shared_config(), $SMALL, map { "$_\n" } @lines);
    $self->start;
    return $self;
}

# ($server, $client): the same, with a client for it.
sub start_with_client {
    my ($class, @lines) = @_;
    my $self = $class->start_small(@lines);
    return ($self, AgentTest::Client->new(url => $self->url));
}

sub shared_config { return slurp(root() . '/t/conf/agent.conf') }

sub url       { return "http://127.0.0.1:$_[0]{port}" }
sub error_log { return slurp("$_[0]{dir}/logs/error_log") }
sub pid_file  { return "$_[0]{dir}/logs/httpd.pid" }
sub httpd_pid { return AgentTest::Process::httpd_pid($_[0]->pid_file) }

# Runs httpd with these arguments; returns its exit status and output.
sub control {
    my ($self, @words) = @_;
    my $log = "$self->{dir}/logs/control";
    local $ENV{AGENT_TEST_LOGS} = sanitizer_logs($self->{dir});
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        open STDIN,  '<', '/dev/null';
        open STDOUT, '>', $log;
        open STDERR, '>&', \*STDOUT;
        exec program(), '-f', $self->{conf}, @words or CORE::exit(127);
    }
    waitpid $pid, 0;
    return ($?, slurp($log));
}

# httpd -t: (true if the configuration is accepted, httpd's output)
sub check_config {
    my ($self) = @_;
    my ($status, $output) = $self->control('-t');
    return ($status == 0, $output);
}

sub start {
    my ($self) = @_;
    if ($self->{own_database}) {
        AgentTest::Postgres->shared->make_database($self->{own_database})
            if !$self->{has_database}++;
        $ENV{PGDATABASE} = $self->{own_database};
    }
    my ($status, $output) = $self->control('-k', 'start');
    die "httpd did not start: $output", $self->error_log if $status;
    wait_for('httpd to listen', sub {
        IO::Socket::INET->new(PeerAddr => "127.0.0.1:$self->{port}")
    });
    # It listens before it writes its pid, and writes that before it has children.
    wait_for('httpd to write its pid', sub { $self->httpd_pid });
    wait_for('httpd to have a child',
        sub { AgentTest::Process::httpd_children($self->httpd_pid) });
    return;
}

sub graceful { my ($self) = @_; return $self->control('-k', 'graceful') }

# Rows of /proc/net/tcp: [number, local address, remote address, state, bytes
# "sent but not received:received but not read", ...].
sub connections {
    my ($self) = @_;
    my $address = sprintf '0100007F:%04X', $self->{port};
    my @rows = map { [split] } split /\n/, slurp('/proc/net/tcp');
    return { server => [ grep { $_->[1] eq $address && $_->[3] ne '0A' } @rows ],
        clients => [ grep { $_->[2] eq $address } @rows ] };
}

# Connections that a client has closed and httpd has not: CLOSE_WAIT.
sub count_abandoned {
    my ($self) = @_;
    return scalar grep { $_->[3] eq '08' } @{ $self->connections->{server} };
}

# Bytes that clients have sent and httpd has not read. Read twice: bytes in
# flight at the first reading may have arrived at the second.
sub count_unread {
    my ($self) = @_;
    my $sent = sum0(map { hex((split /:/, $_->[4])[0]) } @{ $self->connections->{clients} });
    return $sent
        + sum0(map { hex((split /:/, $_->[4])[1]) } @{ $self->connections->{server} });
}

# Waits for the parent and all its processes. httpd's event MPM may crash when it
# is stopped while connections end (also without any module), so they get up to
# five seconds to end first.
sub stop {
    my ($self) = @_;
    my $parent = $self->httpd_pid or return;
    eval { wait_for('httpd to close abandoned connections', sub { !$self->count_abandoned }, 5) };
    my @all = ($parent, descendants_of($parent));
    kill TERM => $parent;
    wait_for('httpd to end', sub { !grep { is_alive($_) } @all });
    return;
}

# --- Crashes and sanitizer reports in the logs ------------------------------------

# A folder that every user of the server may write to.
sub sanitizer_logs {
    my ($dir) = @_;
    my $logs = "$dir/sanitizer";
    if (!-d $logs) {
        mkdir $logs or die "$logs: $!\n";
        chmod 01777, $logs or die "$logs: $!\n";
    }
    return $logs;
}

# Lines about a crash or a sanitizer's report. Tests do kill processes, so a
# killed child does not count.
sub findings {
    my ($dir) = @_;
    my @lines = grep {
        /exit signal (?!Killed|Terminated)/
            || /(?:Address|Leak|Thread|UndefinedBehavior)Sanitizer/
            || /runtime error:/
    } split /^/, slurp("$dir/logs/error_log");
    return @lines, map { slurp($_) } glob "$dir/sanitizer/*";
}

# The folder that keeps the log of a server whose test failed.
sub keep_log {
    my ($self) = @_;
    my $kept = build_dir() . '/logs';
    make_path($kept);
    my $file = "$kept/" . ($0 =~ s{.*/}{}r) . ".$self->{port}.error_log";
    copy("$self->{dir}/logs/error_log", $file);
    warn "Log of the server: $file\n";
    return;
}

sub DESTROY {
    my ($self) = @_;
    return if $self->{pid} != $$;
    local ($@, $!, $?);
    eval { $self->stop; 1 } or warn $@;
    my $test = Test::Builder->new;
    my @findings = findings($self->{dir});
    if (@findings) {
        $test->ok(0, 'no crash and no finding of a sanitizer');
        $test->diag(@findings);
    }
    $self->keep_log if !$test->is_passing || ${^GLOBAL_PHASE} eq 'DESTRUCT';
    remove_tree($self->{dir});
    return;
}

1;
