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
use AgentTest::Env qw(is_root root slurp write_file);
use AgentTest::Postgres;
use AgentTest::Server;
use Digest::SHA qw(sha256_hex);
use Fcntl qw(LOCK_EX);
use File::Copy qw(copy);
use File::Path qw(make_path remove_tree);
use File::Temp qw(tempdir);
use IO::Handle;
use POSIX ();
use Test::More;

my $HERE = root() . '/t/sdk';
my $INSTALLED = root() . '/.build/sdk';

# --- The SDKs -----------------------------------------------------------------

# install('node', 'package-lock.json', sub { ... }): calls the sub with an empty
# folder, unless it was called for the same lock file before; returns the folder.
sub install {
    my ($name, $lock_file, $install) = @_;
    my $folder = "$INSTALLED/$name";
    my $wanted = sha256_hex(slurp("$HERE/$lock_file"));
    make_path($INSTALLED);
    open my $lock, '>', "$folder.lock" or die "$folder.lock: $!\n";
    flock $lock, LOCK_EX or die "$folder.lock: $!\n";
    return $folder if slurp("$folder/installed") eq $wanted;
    remove_tree($folder);
    make_path($folder);
    $install->($folder);
    write_file("$folder/installed", $wanted);
    return $folder;
}

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
    my $folder = install('node', 'package-lock.json', sub {
        my ($new) = @_;
        for my $file (qw(package.json package-lock.json)) {
            copy("$HERE/$file", "$new/$file") or die "$file: $!\n";
        }
        command(qw(npm ci --ignore-scripts --no-audit --no-fund --prefix), $new);
    });
    return "$folder/node_modules";
}

# A Python that has langgraph_sdk.
sub python {
    my $folder = install('python', 'requirements.txt', sub {
        my ($new) = @_;
        command(qw(python3 -m venv), $new);
        command("$new/bin/python", qw(-m pip install --quiet --no-compile),
            qw(--disable-pip-version-check --no-deps --require-hashes --only-binary :all:),
            '-r', "$HERE/requirements.txt");
    });
    return "$folder/bin/python";
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

# With the Python of the system: one in a home is not for the user of runners.
sub python_application {
    return install('application-python', '../runner/fixtures/python.txt', sub {
        my ($new) = @_;
        command(qw(/usr/bin/python3 -m venv), "$new/.agent/venv");
        command("$new/.agent/venv/bin/python", qw(-m pip install --quiet --no-compile),
            qw(--disable-pip-version-check --no-deps --require-hashes --only-binary :all:),
            '-r', "$HERE/../runner/fixtures/python.txt");
    });
}

# The packages of the example, and the tsx of the runner among them.
sub node_application {
    return install('application-javascript', '../../conf/quickstart/examples/javascript/package-lock.json', sub {
        my ($new) = @_;
        my %folders = ($new => "$EXAMPLES/javascript", "$new/.agent/tsx" => root() . '/mod_agent/runners/node');
        for my $target (sort keys %folders) {
            make_path($target);
            for my $file (qw(package.json package-lock.json)) {
                copy("$folders{$target}/$file", "$target/$file") or die "$file: $!\n";
            }
            command(qw(npm ci --ignore-scripts --no-audit --no-fund --prefix), $target);
        }
        command('cp', '-R', "$new/.agent/tsx/node_modules/.", "$new/node_modules");
    });
}

# with_graph('python', 'store_graph.py', 'notes'): a folder of an application with the
# graph of a file of this folder, beside the packages of the example of the language.
# (folder, those packages)
sub with_graph {
    my ($language, $file, $graph) = @_;
    my $packages = application($language);
    my $folder = tempdir('agent-test-XXXXXX', TMPDIR => 1, CLEANUP => 1);
    chmod 0755, $folder;
    symlink "$packages/$_", "$folder/$_" for grep { -e "$packages/$_" } qw(.agent node_modules);
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
    my $packages = $language eq 'python' ? library_of_python($source) : library_of_node($source);
    my $folder = tempdir('agent-test-XXXXXX', TMPDIR => 1, CLEANUP => 1);
    chmod 0755, $folder;
    symlink "$packages/$_", "$folder/$_" for grep { -e "$packages/$_" } qw(.agent node_modules);
    command('cp', '-R', "$source/.", $folder);
    return ($folder, $packages);
}

sub library_of_python {
    my ($source) = @_;
    return install('library-python', 'library/python/requirements.txt', sub {
        my ($new) = @_;
        command(qw(/usr/bin/python3 -m venv), "$new/.agent/venv");
        command("$new/.agent/venv/bin/python", qw(-m pip install --quiet --no-compile),
            qw(--disable-pip-version-check --no-deps --require-hashes --only-binary :all:),
            '-r', "$source/requirements.txt");
    });
}

sub library_of_node {
    my ($source) = @_;
    return install('library-javascript', 'library/javascript/package-lock.json', sub {
        my ($new) = @_;
        for my $file (qw(package.json package-lock.json)) {
            copy("$source/$file", "$new/$file") or die "$file: $!\n";
        }
        command(qw(npm ci --ignore-scripts --no-audit --no-fund --prefix), $new);
    });
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

# new(config => lines, on_ready => sub { ... }): the lines come after the shared
# server's.
sub new {
    my ($class, %args) = @_;
    my $postgres = AgentTest::Postgres->new;
    my $server = AgentTest::Server->new(
        database => $postgres->conninfo,
        config   => join '',
            AgentTest::Server::shared_config(), $THREADS, $MOUNTED, $args{config} // '');
    $server->start;
    return bless { postgres => $postgres, server => $server,
        on_ready => $args{on_ready} }, $class;
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
