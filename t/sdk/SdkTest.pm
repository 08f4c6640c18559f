# SPDX-License-Identifier: Apache-2.0
# Shared by the tests with published SDKs: the SDKs, installed below .build with
# the versions and checksums of the lock files; a server with a database of its
# own; a proxy that cuts connections; and scripts that print TAP.
#
#   my $sdk = SdkTest->new;
#   $sdk->run_script(node => 'javascript.mjs', $sdk->node_modules);
package SdkTest;
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Env qw(build_dir is_root root slurp write_file);
use AgentTest::Packages qw(install_once install_npm make_venv);
use AgentTest::Postgres;
use AgentTest::Server;
use AgentTest::Wait;
use File::Copy qw(copy);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use IO::Handle;
use POSIX ();
use Test::More;

my $HERE = root() . '/t/sdk';
my $INSTALLED = root() . '/.build/sdk';
# The folder that `agentctl build` makes.
my $BUILT = '.agent';

# --- The SDKs -----------------------------------------------------------------

sub command {
    my (@words) = @_;
    my $pid = open my $from, '-|';
    die "fork: $!\n" if !defined $pid;
    if (!$pid) {
        open STDIN,  '<',  '/dev/null';
        open STDERR, '>&', \*STDOUT;
        exec { $words[0] } @words or POSIX::_exit(127);
    }
    my $output = do { local $/; <$from> } // '';
    close $from or die "@words failed:\n$output";
    return $output;
}

# The folder that has @langchain/langgraph-sdk and esbuild.
sub node_modules {
    return install_once("$INSTALLED/node", ["$HERE/package-lock.json"], sub { install_npm($HERE, $_[0]) }) . '/node_modules';
}

# A Python that has langgraph_sdk.
sub python {
    my $list = "$HERE/requirements.txt";
    return install_once("$INSTALLED/python", [$list], sub { make_venv($_[0], $list) }) . '/bin/python';
}

# --- Applications -------------------------------------------------------------

my $EXAMPLES = root() . '/conf/quickstart/examples';

# The folder of an example, with its packages: 'python' or 'javascript'.
sub application {
    my ($language) = @_;
    my $folder = $language eq 'python' ? python_application() : node_application();
    command('cp', '-R', "$EXAMPLES/$language/.", $folder);
    return $folder;
}

# The packages of the runner's tests, where `agentctl build` installs them.
sub python_application {
    my $list = root() . '/t/runner/fixtures/python.txt';
    return install_once("$INSTALLED/application-python", [ $list, __FILE__ ], sub {
        # It sets this variable for the runners of its tests.
        local $ENV{PYTHONPYCACHEPREFIX} = '';
        require AgentTest::Applications;
        my ($venv) = AgentTest::Applications::python() =~ m{\A(.*)/bin/python\z};
        make_path("$_[0]/$BUILT");
        symlink $venv, "$_[0]/$BUILT/venv" or die "symlink: $!\n";
    });
}

# A folder with the packages of a list where `agentctl build` installs them.
sub python_packages {
    my ($name, $list) = @_;
    return install_once("$INSTALLED/$name-python", [$list], sub { make_venv("$_[0]/$BUILT/venv", $list) });
}

# The packages of the example, and the tsx of the runner among them.
sub node_application {
    return install_once("$INSTALLED/application-javascript", ["$EXAMPLES/javascript/package-lock.json"], sub {
        my ($new) = @_;
        install_npm("$EXAMPLES/javascript", $new);
        install_npm(root() . '/mod_agent/runners/node', "$new/$BUILT/tsx");
        command('cp', '-R', "$new/$BUILT/tsx/node_modules/.", "$new/node_modules");
    });
}

# A new folder with links to what is installed in another one.
sub folder_beside {
    my ($packages) = @_;
    my $folder = tempdir('agent-test-XXXXXX', TMPDIR => 1, CLEANUP => 1);
    chmod 0755, $folder;
    link_packages($packages, $folder);
    return $folder;
}

sub link_packages {
    my ($packages, $folder) = @_;
    symlink "$packages/$_", "$folder/$_" for grep { -e "$packages/$_" } $BUILT, 'node_modules';
    return;
}

# with_graph('python', 'store_graph.py', 'notes'): a folder of an application with the
# graph of a file of this folder, beside the packages of the example of the language.
# (folder, those packages)
sub with_graph {
    my ($language, $file, $graph) = @_;
    my $packages = application($language);
    my $folder = folder_beside($packages);
    copy("$HERE/$file", $folder) or die "$file: $!\n";
    my ($name) = $file =~ m{([^/]+)\z};
    write_file("$folder/langgraph.json", qq({"dependencies":["."],"graphs":{"$graph":"./$name:graph"}}));
    return ($folder, $packages);
}

# library('python'): a copy of an application of t/sdk/library, whose packages are
# installed once: those of langchain and deepagents too. (folder, its packages)
sub library {
    my ($language) = @_;
    my $source = "$HERE/library/$language";
    my $packages = $language eq 'python' ? python_packages('library', "$source/requirements.txt")
        : install_once("$INSTALLED/library-javascript", ["$source/package-lock.json"], sub { install_npm($source, $_[0]) });
    my $folder = folder_beside($packages);
    command('cp', '-R', "$source/.", $folder);
    return ($folder, $packages);
}

# --- agentctl build -----------------------------------------------------------

# The packages of the lists of wheels for pip.
sub wheels {
    my @lists = ("$HERE/../runner/fixtures/python.txt", "$HERE/build-system.txt");
    return install_once("$INSTALLED/wheels", \@lists, sub {
        command(python(), qw(-m pip download --quiet --disable-pip-version-check --no-deps --require-hashes
            --only-binary :all: --dest), $_[0], map { ('-r', $_) } @lists);
    });
}

# Those of the example and the runner, in a cache of npm.
sub npm_cache {
    my @sources = ("$EXAMPLES/javascript", root() . '/mod_agent/runners/node');
    return install_once("$INSTALLED/npm-cache", [ map { "$_/package-lock.json" } @sources ], sub {
        for my $source (@sources) {
            my $folder = tempdir(CLEANUP => 1);
            command('cp', "$source/package.json", "$source/package-lock.json", $folder);
            command('npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', $folder, '--cache', "$_[0]/cache");
        }
    });
}

# A new folder with agentctl, the runners, and the packages, fetched from the registries
# once. (folder, undef), or (undef, why) if no registry answers.
sub workshop {
    my @packages = eval { (wheels(), npm_cache() . '/cache') };
    return (undef, 'no registry of packages answers: ' . substr $@ =~ s/\s+/ /gr, 0, 300) if !@packages;
    my $top = tempdir('/tmp/agent-test-built.XXXXXX', CLEANUP => 1);
    chmod 0755, $top;
    # The user who builds may not be able to enter the checkout.
    command('cp', '-R', @packages, build_dir() . '/agentctl', build_dir() . '/runners', $top);
    return ($top, undef);
}

# Builds the folder $language of a workshop as the user who owns it: (status, output).
sub build {
    my ($top, $language) = @_;
    my $user = is_root() ? 'nobody' : getpwuid $>;
    command('chown', '-R', $user, "$top/cache", "$top/$language") if is_root();
    local @ENV{qw(PIP_NO_INDEX PIP_FIND_LINKS PIP_NO_CACHE_DIR npm_config_cache npm_config_offline)} = (1, "$top/wheels", 1, "$top/cache", 'true');
    local $ENV{PATH} = (node() =~ s{/[^/]+\z}{}r) . ':/usr/bin:/bin';
    my $mask = umask 0022;
    my $output = qx('$top/agentctl' build --runners '$top/runners' '$top/$language' 2>&1);
    umask $mask;
    return ($?, $output);
}

# The path of Node: that of its own, not a link to a version manager.
sub node { return command('node', '-p', 'process.execPath') =~ s/\s+\z//r }

# Whether the user of runners may enter the folder.
sub is_readable {
    my ($folder) = @_;
    my (undef, undef, $user) = is_root() ? getpwnam('nobody') : (0, 0, $>);
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        POSIX::_exit(POSIX::setuid($user) && -r $folder && -x _ ? 0 : 1);
    }
    waitpid $pid, 0;
    return $? == 0;
}

# --- The server ---------------------------------------------------------------

# The API again, below a prefix.
my $MOUNTED = <<'CONF';
<Location "/mounted">
    AgentPrefix /mounted
</Location>
CONF

# A thread for each connection of all scenarios, which are played at once: httpd
# closes idle connections while a child has no free thread, and a request that
# crosses the close is lost.
my $THREADS = <<'CONF';
ThreadLimit 160
ThreadsPerChild 160
MaxRequestWorkers 320
MaxSpareThreads 320
CONF

# new(config => lines, on_ready => sub { ... }, has_graph => 0): the lines come after the
# shared server's, which has a built-in graph `agent`, unless it shall have none.
sub new {
    my ($class, %args) = @_;
    my $postgres = AgentTest::Postgres->new;
    my $shared = AgentTest::Server::shared_config();
    $shared =~ s{^<AgentGraph .*?^</AgentGraph>\n}{}ms if !($args{has_graph} // 1);
    my $server = AgentTest::Server->new(
        database => $postgres->conninfo,
        config   => join '', $shared, $THREADS, $MOUNTED, $args{config} // '');
    $server->start;
    return bless { postgres => $postgres, server => $server,
        on_ready => $args{on_ready} }, $class;
}

# A server with applications, whose graphs can be run: serve({ name => folder }, [graphs],
# config => further lines)
sub serve {
    my ($class, $applications, $graphs, %args) = @_;
    my $self = $class->new(%args, config => join '', (map { "AgentApplication $_ $applications->{$_}\n" } sort keys %{$applications}),
        'AgentNodeProgram "' . node() . "\"\n", $args{config} // '');
    $self->wait_reports(@{$graphs});
    return $self;
}

sub wait_reports {
    my ($self, @graphs) = @_;
    for my $graph (@graphs) {
        wait_for("the report of $graph", sub { @{ $self->client->get("/assistants/$graph/graph")->{json}{nodes} // [] } });
    }
    return;
}

sub url    { return $_[0]{server}->url }
sub server { return $_[0]{server} }
sub client { return AgentTest::Client->new(url => $_[0]->url) }

# The end of a test: stops the server, whose log is checked.
sub finish {
    my ($self) = @_;
    delete @{$self}{qw(on_ready server)};
    done_testing;
    return;
}

# --- Scripts ------------------------------------------------------------------

# run_script(interpreter => file, arguments): each line of its TAP becomes a
# test of this file. It gets the addresses of the server and of a proxy
# (cut-proxy.mjs) as AGENT_TEST_URL and AGENT_TEST_PROXY. When it prints "ready",
# on_ready() is called.
sub run_script {
    my ($self, $interpreter, $file, @arguments) = @_;
    my $proxy = Proxy->new($self->url);
    local $ENV{AGENT_TEST_URL} = $self->url;
    local $ENV{AGENT_TEST_PROXY} = $proxy->url;
    local $ENV{PYTHONPYCACHEPREFIX} = "$INSTALLED/pycache";
    local $ENV{PYTHONDONTWRITEBYTECODE};
    delete $ENV{PYTHONDONTWRITEBYTECODE};
    # The tests must not use a key of the caller's environment.
    local @ENV{qw(LANGGRAPH_API_KEY LANGSMITH_API_KEY LANGCHAIN_API_KEY)};
    delete @ENV{qw(LANGGRAPH_API_KEY LANGSMITH_API_KEY LANGCHAIN_API_KEY)};
    open my $tap, '-|', $interpreter, "$HERE/$file", @arguments
        or die "$interpreter: $!\n";
    my $planned;
    my $played = 0;
    while (my $line = <$tap>) {
        $planned = $1 if $line =~ /\A1\.\.(\d+)$/;
        if ($line =~ /\A(not )?ok \d+ - (.*)/) {
            $played++;
            ok !$1, $2;
        }
        elsif ($line eq "ready\n") {
            $self->{on_ready}->();
        }
        elsif ($line =~ /\A# (.*)/) {
            diag $1;
        }
    }
    close $tap;
    is $?, 0, "$file ends with status 0";
    is $played, $planned, "$file prints the result of each test";
    return;
}

package Proxy;    ## no critic (Modules::ProhibitMultiplePackages)

sub new {
    my ($class, $target) = @_;
    pipe my $their_in, my $stop or die "pipe: $!\n";
    pipe my $out, my $their_out or die "pipe: $!\n";
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        open STDIN,  '<&', $their_in  or POSIX::_exit(1);
        open STDOUT, '>&', $their_out or POSIX::_exit(1);
        close $_ for $stop, $out;
        exec 'node', "$HERE/cut-proxy.mjs", $target or POSIX::_exit(127);
    }
    close $_ for $their_in, $their_out;
    my $url = <$out> // die "the proxy did not start\n";
    chomp $url;
    return bless { url => $url, pid => $pid, stop => $stop, owner => $$ }, $class;
}

sub url { return $_[0]{url} }

# It ends when its stdin ends, also when this process dies.
sub DESTROY {
    my ($self) = @_;
    return if $$ != $self->{owner};
    local $?;
    close $self->{stop};
    waitpid $self->{pid}, 0;
    return;
}

1;
