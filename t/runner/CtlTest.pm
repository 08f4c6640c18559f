# SPDX-License-Identifier: Apache-2.0
# Folders of applications for agentctl, and a fake interpreter for Python and JavaScript
# that logs its arguments.
package CtlTest;
use strict;
use warnings;
use AgentTest::Env qw(build_dir is_root server_user slurp write_file);
use Cpanel::JSON::XS;
use Exporter 'import';
use File::Path qw(make_path);
use File::Temp qw(tempdir);

our @EXPORT_OK = qw($top $interpreter $program application build build_python);

our $program = build_dir() . '/agentctl';
our $top = tempdir('/tmp/agent-test-ctl.XXXXXX', CLEANUP => 1);
chmod 0755, $top;
my $user = server_user();
my ($uid, $gid) = (getpwnam $user)[ 2, 3 ];
my $number = 0;

# An interpreter: a version, virtual environments, installations and reports. Writes
# its arguments, user and environment to ./said.
our $interpreter = "$top/interpreter";
write_file($interpreter, <<'SH');
#!/bin/sh
test -d .agent && out=.agent || out=..
printf '%s|%s\n' "$(id -u)" "$*" >>$out/said
pwd >>$out/folders
cut -d" " -f6 /proc/self/stat >>$out/session
env >>$out/environment
case "$*" in
--version) echo "v$(cat version)" ;;
-c*version_info*) cat version ;;
-c*copytree*) for last; do :; done; mkdir -p "$last"; cp pyproject.toml "$last/" ;;
"-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
"-m pip "*) test ! -e no_packages ;;
*" --check") cat report; exit "$(cat status)" ;;
esac
SH
chmod 0755, $interpreter;
# The npm beside it does nothing else.
symlink 'interpreter', "$top/npm" or die "npm: $!\n";
make_path("$top/runners/$_") for qw(node python);
write_file("$top/runners/node/$_", '{}') for qw(main.mjs package.json package-lock.json);

# A folder with these files, of the server's user.
sub application {
    my ($manifest, %files) = @_;
    my $directory = "$top/application" . $number++;
    make_path("$directory/.agent");
    %files = (
        version => 311, status => 0,
        report => '{"type":"ready","graphs":{"g":{"description":"the text","schemas":{"input_schema":{"properties":{"messages":{},"user":{}}},"output_schema":{"properties":{"messages":{}}},"context_schema":null}}}}',
        'langgraph.json' => ref $manifest ? encode_json({ graphs => { g => './g.py:graph' }, %{$manifest} }) : $manifest,
        %files);
    write_file("$directory/$_", $files{$_}) for keys %files;
    chown $uid, $gid, $directory, "$directory/.agent", glob "$directory/*" if is_root();
    return $directory;
}

# {status, output, said, environment, folders}: both outputs together, the lines of the
# interpreter, its environment, and its working directories.
sub build {
    my ($directory, @options) = @_;
    my $command = join ' ', map { "'$_'" } $program, 'build', '--runners', "$top/runners", @options, $directory;
    my $output = qx($command 2>&1);
    my $status = $? >> 8;
    return { status => $status, output => $output, map { $_ => -e "$directory/.agent/$_" ? slurp("$directory/.agent/$_") : '' } qw(said environment folders) };
}

sub build_python { my ($directory, @options) = @_; return build($directory, '--python', $interpreter, @options) }

1;
