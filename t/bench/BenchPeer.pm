# SPDX-License-Identifier: Apache-2.0
# The open-source JavaScript server of t/bench/peer, in memory on a port of its
# own.
#
#   my $peer = BenchPeer->new($answer);    # dies with the reason if it cannot run
#   $peer->port; $peer->version;           # its end stops it
package BenchPeer;
use strict;
use warnings;
use AgentTest::Env qw(is_root root server_user slurp write_file);
use File::Copy qw(copy);
use File::Path qw(make_path remove_tree);
use File::Temp qw(tempdir);
use POSIX ();

my $SOURCE = root() . '/t/bench/peer';
my $INSTALLED = root() . '/.build/peer';
my @FILES = qw(package.json package-lock.json graph.mjs server.mjs);

sub new {
    my ($class, $answer) = @_;
    install();
    my $folder = tempdir('/tmp/agent-bench-peer.XXXXXX', CLEANUP => 1);
    chown((getpwnam server_user())[ 2, 3 ], $folder) if is_root();
    my $pid = open(my $out, '-|') // die "fork: $!\n";
    run($folder, $answer) if !$pid;
    my $self = bless { pid => $pid, out => $out, owner => $$ }, $class;
    my $line = readline($out) // '';
    ($self->{port}) = $line =~ /\Aport (\d+)$/
        or die 'the peer does not start: ', $line, slurp("$folder/errors");
    return $self;
}

sub port { return $_[0]{port} }

sub version {
    my ($version) = slurp("$SOURCE/package.json")
        =~ m{"\@langchain/langgraph-api": "([^"]+)"};
    return $version;
}

sub DESTROY {
    my ($self) = @_;
    return if $self->{owner} != $$;
    local ($?, $!);
    kill TERM => $self->{pid};
    close $self->{out};
    return;
}

# Once for each lock file. Not npm ci, which needs locks of optional packages for
# platforms for which none are published.
sub install {
    my $wanted = slurp("$SOURCE/package-lock.json");
    if (slurp("$INSTALLED/installed") ne $wanted) {
        remove_tree($INSTALLED);
        make_path($INSTALLED);
        copy_files();
        my $output = qx(npm install --no-save --ignore-scripts --no-audit --no-fund \\
            --prefix $INSTALLED 2>&1);
        die "npm does not install the peer: $output\n" if $?;
        write_file("$INSTALLED/installed", $wanted);
    }
    copy_files();
    return;
}

sub copy_files {
    for my $file (@FILES) {
        copy("$SOURCE/$file", "$INSTALLED/$file") or die "$file: $!\n";
    }
    return;
}

# The new process, without tracing and without the caller's account variables.
sub run {
    my ($folder, $answer) = @_;
    become(server_user()) if is_root();
    delete @ENV{ grep { /\ALANG(?:SMITH|CHAIN|GRAPH)_/ } keys %ENV };
    @ENV{qw(PEER_ANSWER HOME LOG_LEVEL NODE_ENV LANGSMITH_TRACING DO_NOT_TRACK)}
        = ($answer, $folder, 'error', 'production', 'false', '1');
    open STDIN,  '<', '/dev/null';
    open STDERR, '>', "$folder/errors";
    exec 'node', "$INSTALLED/server.mjs", $folder or POSIX::_exit(127);
}

sub become {
    my ($name) = @_;
    my ($user, $group) = (getpwnam $name)[ 2, 3 ];
    $) = "$group $group";
    POSIX::setgid($group);
    POSIX::setuid($user) or POSIX::_exit(127);
    return;
}

1;
