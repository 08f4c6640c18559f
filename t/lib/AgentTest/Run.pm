# SPDX-License-Identifier: Apache-2.0
# Apache::Test as this project needs it. The stock runner refuses root (and then
# reports success), inherits the distribution's modules, listens on every address,
# logs at trace8 and writes into the tree. This one runs as any user, from a
# checkout that other users cannot enter, several times at once: all its files are
# in a new folder under /tmp.
# AGENT_TEST_SLOT: it runs no tests, but is the server of that slot of a pool.
package AgentTest::Run;
use strict;
use warnings;
use parent 'Apache::TestRun';

use AgentTest::TestConfig;
use AgentTest::Env qw(variant build_dir free_port server_user);
use AgentTest::Harness qw(run_group print_failed add_to_tally);
use AgentTest::Postgres;
use AgentTest::Server;
use AgentTest::ServerPool;
use File::Copy qw(copy);
use File::Path qw(make_path remove_tree);
use File::Temp qw(tempdir);

# No core files: the error log shows crashes, and Apache::Test would start this
# program again to get them.
$ENV{APACHE_TEST_ULIMIT_SET} = 1;

# The runner of this process; the END block stops it.
my ($current, $owner);

sub getopts {
    my ($self, $argv) = @_;
    ($current, $owner) = ($self, $$);
    $SIG{$_} = sub { CORE::exit(1) } for qw(TERM HUP PIPE);
    my $dir = $self->{dir} = tempdir('/tmp/agent-test.XXXXXX', CLEANUP => 0);
    chmod 0755, $dir or die "$dir: $!\n";
    $self->SUPER::getopts($argv);
    # Always a fresh configuration, never a cached one.
    delete $self->{conf_opts}{thaw};
    %{ $self->{conf_opts} } = (
        %{ $self->{conf_opts} },
        save         => 1,
        httpd        => AgentTest::Server::program(),
        port         => free_port(),
        servername   => '127.0.0.1',
        user         => server_user(),
        serverroot   => $dir,
        documentroot => "$dir/htdocs",
        t_logs       => "$dir/logs",
    );
    return;
}

# The parent may be root: the children are not.
sub check_runtime_user { return 1 }

sub pre_configure {
    my ($self) = @_;
    my $port = $self->{conf_opts}{port};
    my $dir  = $self->{dir};
    $self->{postgres} = AgentTest::Postgres->new;
    $ENV{PGHOST}              = $self->{postgres}->host;
    $ENV{PGUSER}              = 'postgres';
    $ENV{PGDATABASE}          = 'agent';
    $ENV{AGENT_TEST_DATABASE} = $self->{postgres}->conninfo;
    $ENV{AGENT_TEST_URL}      = "http://127.0.0.1:$port";
    $ENV{AGENT_TEST_PID_FILE} = "$dir/logs/httpd.pid";
    $ENV{AGENT_TEST_ERROR_LOG} = "$dir/logs/error_log";
    remove_tree(build_dir() . '/logs') if !$ENV{AGENT_TEST_SLOT};
    $ENV{AGENT_TEST_LOGS}     = AgentTest::Server::sanitizer_logs($dir);
    # Where Apache::TestRequest finds the configuration it was saved to.
    $ENV{PERL5LIB} = join ':', $dir, $ENV{PERL5LIB} // ();
    return;
}

sub new_test_config {
    my ($self) = @_;
    return AgentTest::TestConfig->new($self->{conf_opts});
}

sub run_tests {
    my ($self) = @_;
    if (my $slot = $ENV{AGENT_TEST_SLOT}) {
        $self->{passed} = AgentTest::ServerPool::serve($slot);
        return;
    }
    my @tests = @{ $self->{tests} };
    @tests = sort glob 't/agent/*.t' if !@tests;
    $self->{passed} = run_group(
        tests   => \@tests,
        verbose => $self->{opts}{verbose},
    );
    return;
}

sub stop {
    my ($self) = @_;
    $self->stop_server;
    my @findings = AgentTest::Server::findings($self->{dir});
    if (@findings) {
        print_failed(variant() . ' server of t/agent', @findings);
        add_to_tally(0, 1);
        $self->{passed} = 0;
    }
    CORE::exit($self->{passed} ? 0 : 1);
}

# The output of the stop must not follow the group's Result line.
sub stop_server {
    my ($self) = @_;
    silently(sub { $self->{server}->stop }) if $self->{server};
    return;
}

sub silently {
    my ($sub) = @_;
    open my $out, '>&', \*STDOUT or die "STDOUT: $!\n";
    open my $err, '>&', \*STDERR or die "STDERR: $!\n";
    open STDOUT, '>', '/dev/null' or die "/dev/null: $!\n";
    open STDERR, '>', '/dev/null' or die "/dev/null: $!\n";
    $sub->();
    open STDOUT, '>&', $out or die "STDOUT: $!\n";
    open STDERR, '>&', $err or die "STDERR: $!\n";
    return;
}

sub keep_logs {
    my ($self) = @_;
    my ($number) = ($ENV{AGENT_TEST_SLOT} // '') =~ m{/(\d+)\z};
    my $kept = build_dir() . '/logs' . ($number ? "/server-$number" : '');
    make_path($kept);
    copy($_, $kept) for glob "$self->{dir}/logs/*_log";
    copy($self->{postgres}->host . '/postgres.log', $kept)
        if $self->{postgres};
    print {*STDERR} "Logs of the servers: $kept\n";
    return;
}

END {
    if ($current && $owner == $$) {
        my $status = $?;
        $current->stop_server;
        $current->keep_logs if !$current->{passed};
        delete $current->{postgres};
        remove_tree($current->{dir});
        $? = $status;
    }
}

1;
