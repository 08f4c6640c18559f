# SPDX-License-Identifier: Apache-2.0
# Folders of applications for the runners of both languages, with the packages of
# t/runner/fixtures, the lines of httpd.conf that serve them, and the reports that the
# runners make about them.
package AgentTest::Applications;
use strict;
use warnings;
use AgentTest::Conf qw(location);
use AgentTest::Env qw(build_dir root slurp write_file);
use AgentTest::Packages qw(install_once install_npm make_venv);
use Cpanel::JSON::XS qw(decode_json encode_json);
use Exporter 'import';
use File::Basename qw(basename dirname);
use File::Copy qw(copy);
use File::Path qw(make_path);
use File::Temp qw(tempdir);

our @EXPORT_OK = qw(python node_application runner_of folder_of application_lines serve_applications check_folder);

my $FIXTURES = root() . '/t/runner/fixtures';
my $RUNNERS = root() . '/mod_agent/runners';

# Nothing is compiled into the tree, and nothing twice: a start of the runner takes two
# thirds of its time to compile packages.
$ENV{PYTHONPYCACHEPREFIX} //= root() . '/.build/runner-packages/pycache';
delete $ENV{PYTHONDONTWRITEBYTECODE};

# python('1.0'): a Python with the oldest packages; python(): with the newest.
sub python {
    my ($version) = @_;
    my $name = defined $version ? "python-$version" : 'python';
    my $list = "$FIXTURES/$name.txt";
    return install_once(root() . "/.build/runner-packages/$name", [$list], sub { make_venv($_[0], $list) }) . '/bin/python';
}

# A folder of fixtures in JavaScript, 'node' or 'node-1.0', with its packages; one with
# other versions has the graphs of fixtures/node.
sub node_application {
    my ($name) = @_;
    my $source = "$FIXTURES/$name";
    my @files = sort glob "$source/*";
    push @files, map { "$FIXTURES/node/$_" } qw(graphs.mjs common.cjs langgraph.json) if $name ne 'node';
    my $packages = install_once(root() . "/.build/applications/$name.packages", ["$source/package-lock.json"],
        sub { install_npm($source, $_[0]) });
    return install_once(root() . "/.build/applications/$name", \@files, sub {
        my ($folder) = @_;
        for my $file (@files) {
            copy($file, $folder) or die "$file: $!\n";
        }
        symlink '../' . basename($packages) . '/node_modules', "$folder/node_modules" or die "symlink: $!\n";
    });
}

# The command of the runner of a language, 'python' or 'javascript'.
sub runner_of {
    my ($language) = @_;
    return $language eq 'python' ? (python(), "$RUNNERS/python") : ('node', "$RUNNERS/node/main.mjs");
}

# A new folder with langgraph.json, an object or its text, and these files, which the
# runner's user may read; one in JavaScript has the packages of the fixtures.
sub folder_of {
    my ($language, $manifest, %files) = @_;
    my $folder = tempdir('/tmp/agent-test-application.XXXXXX', CLEANUP => 1);
    chmod 0755, $folder or die "$folder: $!\n";
    $files{'langgraph.json'} = ref $manifest ? encode_json($manifest) : $manifest if defined $manifest;
    for my $name (keys %files) {
        make_path(dirname("$folder/$name"));
        write_file("$folder/$name", $files{$name});
    }
    if ($language eq 'javascript' && !-e "$folder/node_modules") {
        symlink node_application('node') . '/node_modules', "$folder/node_modules" or die "symlink: $!\n";
    }
    return $folder;
}

# Lines of httpd.conf: application_lines(NAME => folder, ...).
sub application_lines {
    my (%folders) = @_;
    return join '', map { "AgentApplication $_ $folders{$_}\n" } sort keys %folders;
}

# Those of a server that executes them and has their API at /.
sub serve_applications {
    my (%folders) = @_;
    return join '', 'AgentRunner "' . build_dir() . qq(/agent-runner"\n), 'AgentPythonProgram "' . python() . qq("\n),
        application_lines(%folders), location('/', 'SetHandler agent');
}

# The runner's --check of a folder: {status, errors, type, graphs}; program: another
# interpreter.
sub check_folder {
    my ($language, $folder, $program) = @_;
    my ($own, $runner) = runner_of($language);
    my $errors = tempdir(CLEANUP => 1) . '/errors';
    my $output = qx(cd '$folder' && '@{[ $program // $own ]}' '$runner' --check 2>'$errors');
    my $status = $? >> 8;
    my ($line) = $output =~ /(.*)\n\z/;
    my $ready = defined $line && $line =~ /"ready"/ ? decode_json($line) : {};
    return { status => $status, errors => slurp($errors), lines => $output, type => $ready->{type}, graphs => $ready->{graphs} // {} };
}

1;
