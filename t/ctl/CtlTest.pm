# SPDX-License-Identifier: Apache-2.0
# Folders of applications for agentctl, programs in place of those of the machine, and
# a fake interpreter for Python and JavaScript that logs its arguments.
package CtlTest;
use strict;
use warnings;
use AgentTest::Env qw(build_dir is_root server_user slurp write_file);
use Cpanel::JSON::XS;
use Exporter 'import';
use File::Basename qw(dirname);
use File::Find qw(find);
use File::Path qw(make_path);
use File::Temp qw(tempdir);

our @EXPORT_OK = qw($top $interpreter $program folder own as_owner link_tools shell_program application build build_python);

our $program = build_dir() . '/agentctl';
our $top = tempdir('/tmp/agent-test-ctl.XXXXXX', CLEANUP => 1);
chmod 0755, $top;
# Folders to which others write are not those of their owner only.
umask 0022;
my ($uid, $gid) = (getpwnam server_user())[ 2, 3 ];
my $number = 0;

# Gives these files to the user who builds.
sub own {
    my (@paths) = @_;
    chown $uid, $gid, @paths if is_root();
    return;
}

# The beginning of a command that the user executes.
sub as_owner { return is_root() ? 'runuser -u ' . server_user() . ' --' : '' }

# A new folder of the user with these files; one whose name ends with / is a folder.
sub folder {
    my (%files) = @_;
    my $folder = "$top/application" . $number++;
    make_path($folder);
    for my $name (keys %files) {
        make_path(dirname("$folder/$name/x")) if $name =~ m{/\z};
        make_path(dirname("$folder/$name"));
        write_file("$folder/$name", $files{$name}) if $name !~ m{/\z};
    }
    find(sub { own($_) }, $folder);
    return $folder;
}

# A program that is a shell script.
sub shell_program {
    my ($path, $text) = @_;
    make_path(dirname($path));
    write_file($path, "#!/bin/sh\n$text");
    chmod 0755, $path or die "$path: $!\n";
    return $path;
}

# The folder $top/tools, with tools of the machine and nothing else, for PATH.
sub link_tools {
    my (@tools) = @_;
    make_path("$top/tools");
    for my $tool (@tools) {
        my ($found) = grep { -x } map { "$_/$tool" } qw(/usr/bin /bin);
        symlink $found, "$top/tools/$tool" or die "$tool: $!\n";
    }
    return "$top/tools";
}

# An interpreter: a version, virtual environments, installations and reports. Writes
# its arguments, user and environment to ./said.
our $interpreter = shell_program("$top/interpreter", <<'SH');
test -d .agent && out=.agent || out=..
printf '%s|%s\n' "$(id -u)" "$*" >>$out/said
pwd >>$out/folders
id -G >>$out/groups
cut -d" " -f6 /proc/self/stat >>$out/session
env >>$out/environment
case "$*" in
--version) echo "v$(cat version)" ;;
-c*version_info*) cat version ;;
-c*copytree*) for last; do :; done; mkdir -p "$last"; cp pyproject.toml "$last/" ;;
"-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
"-m pip "*) test ! -e no_packages ;;
*" --check") ulimit -d >memory; cat report; test ! -e hangs || exec sleep 86400; exit "$(cat status)" ;;
esac
SH
# The npm beside it does nothing else.
symlink 'interpreter', "$top/npm" or die "npm: $!\n";
make_path("$top/runners/$_") for qw(node python);
write_file("$top/runners/node/$_", '{}') for qw(main.mjs package.json package-lock.json);

# A folder with these files, for that interpreter.
sub application {
    my ($manifest, %files) = @_;
    return folder(
        '.agent/' => '', version => 311, status => 0,
        report => '{"type":"ready","graphs":{"g":{"description":"the text","schemas":{"input_schema":{"properties":{"messages":{},"user":{}}},"output_schema":{"properties":{"messages":{}}},"context_schema":null}}}}',
        'langgraph.json' => ref $manifest ? encode_json({ graphs => { g => './g.py:graph' }, %{$manifest} }) : $manifest,
        %files);
}

# {status, output, said, environment, folders, groups}: both outputs together, the lines of
# the interpreter, its environment, its working directories, and its groups.
sub build {
    my ($directory, @options) = @_;
    my $command = join ' ', map { "'$_'" } $program, 'build', '--runners', "$top/runners", @options, $directory;
    my $output = qx($command 2>&1);
    my $status = $? >> 8;
    return { status => $status, output => $output, map { $_ => -e "$directory/.agent/$_" ? slurp("$directory/.agent/$_") : '' } qw(said environment folders groups) };
}

sub build_python { my ($directory, @options) = @_; return build($directory, '--python', $interpreter, @options) }

1;
