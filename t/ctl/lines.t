# SPDX-License-Identifier: Apache-2.0
# The line that agentctl build prints for a folder, in httpd: it names that folder,
# whatever its name has, or agentctl refuses the folder.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Env qw(build_dir root slurp write_file);
use AgentTest::Server;
use CtlTest qw($top application build_python);
use File::Path qw(make_path);
use Test::More;

make_path("$top/lib/runners/node");
symlink build_dir() . '/agent-runner', "$top/lib/agent-runner" or die "symlink: $!\n";
write_file("$top/lib/runners/$_", slurp(root() . '/t/agent/application_runner.pl')) for qw(python node/main.mjs);
my $base = qq(AgentRunner "$top/lib/agent-runner"\nAgentPythonProgram /usr/bin/perl\n);

# The result of a build in a folder of this name.
sub build_in {
    my ($name) = @_;
    my $directory = "$top/$name";
    rename application({}), $directory or die "$name: $!\n";
    return build_python($directory);
}

# With bytes of UTF-8, and of Latin-1.
for my $name ('two words', "b\xc3\xa4cker", "b\xe4cker", 'say "it"', 'back\\slash', 'end\\', '\\"both\\\\"', 'a$b{c}#d%e') {
    my $built = build_in($name);
    is $built->{status}, 0, "lines: a folder $name is built" or diag $built->{output};
    my ($line) = $built->{output} =~ /^(AgentApplication .*)$/m;
    my ($ok, $output) = AgentTest::Server->new(database => 'host=/nowhere', config => "$base$line\n")->check_config;
    ok $ok, "lines: httpd finds the folder $name by the line" or diag "$line\n$output";
}
for my $name ('a${PATH}b', "line\nLoadModule", "tab\tx") {
    my $built = build_in($name);
    is $built->{status}, 2, 'lines: a folder that no line can name is refused' or diag $built->{output};
    like $built->{output}, qr/^agentctl: expected a directory whose path has no \$\{ and no control characters/m, 'lines: the message says why';
    is $built->{said}, '', 'lines: nothing is installed in it';
}

done_testing;
