# SPDX-License-Identifier: Apache-2.0
# agentctl build, with a fake interpreter that logs its arguments.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Env qw(is_root is_sanitized server_user slurp write_file);
use Cpanel::JSON::XS;
use CtlTest qw($top $interpreter $program application as_owner build build_python folder shell_program);
use File::Copy qw(copy);
use File::Path qw(make_path);
use Test::More;

my $user = server_user();
my $uid = getpwnam $user;

# The session of this process.
sub getsid { return (slurp('/proc/self/stat') =~ /\) \S+ \d+ \d+ (\d+)/)[0] }

my $directory = application({ dependencies => ['.', './tools', './plain', 'pydantic>=2'], python_version => '3.11' },
    'pyproject.toml' => '');
make_path("$directory/$_") for qw(tools plain);
write_file("$directory/tools/requirements.txt", '');
my $built = build_python($directory);
is $built->{status}, 0, 'build: an application in Python is built' or diag $built->{output};
like $built->{said}, qr/^$uid\|-m venv \.agent\/venv$/m, 'build: it makes a virtual environment, as the owner of the folder';
like $built->{said}, qr/^$uid\|-m pip install .*--no-input -e \. -r \.\/tools\/requirements\.txt pydantic>=2$/m,
    'build: it installs packages, requirements of folders, and those that langgraph.json names';
like $built->{said}, qr/^$uid\|-m compileall /m, 'build: it compiles the sources';
like $built->{said}, qr/^$uid\|\Q$top\E\/runners\/python --check$/m, 'build: the runner imports the graphs';
like $built->{output}, qr/^graph g \(\.\/g\.py:graph\): the text\n    input messages, user; output messages\n(?!    )/m,
    'build: it prints each graph with its description and the properties of its schemas';
like build($directory, '--schemas')->{output}, qr/^graph g .*\n    input_schema \{"properties":\{"messages":\{\},"user":\{\}\}\}\n    output_schema /m,
    'build: --schemas prints the whole schemas';
my $many = build_python(application({}, report => encode_json({ graphs => { g => { schemas => {
    input_schema => { properties => { map { sprintf('%02d', $_) . "\x{e9}" x 30 => {} } 1 .. 30 } },
    output_schema => { properties => [] }, context_schema => { properties => {} } } } } })))->{output};
like $many, qr/^    input (?:[0-9]{2}(?:\xc3\xa9){19}\.\.\., ){11}[0-9]{2}(?:\xc3\xa9){19}\.\.\. and 18 more$/m,
    'build: few and short names of a schema are printed';
like $built->{output}, qr/^AgentApplication application0 "\Q$directory\E"$/m, 'build: it prints the directive of the application';

my $before = () = $built->{said} =~ /-m venv/g;
my $after = () = build_python($directory)->{said} =~ /-m venv/g;
is $after, $before + 1, 'build: an interpreter that is given makes the virtual environment again';
my $again = () = build($directory)->{said} =~ /-m venv/g;
is $again, $after, 'build: otherwise the one that is there is used';

for my $case ([ '3.12', 1, qr/\.agent\/venv\/bin\/python is Python 3\.11, and 3\.12 is needed: remove \.agent\/venv/ ],
    [ '3.10', 0, qr/python_version 3\.10; this is 3\.11/ ]) {
    my ($version, $status, $pattern) = @{$case};
    write_file("$directory/langgraph.json", encode_json({ graphs => { g => './g.py:graph' }, python_version => $version }));
    my $changed = build($directory);
    is $changed->{status}, $status, "build: a virtual environment that is there, and python_version $version: status $status";
    like $changed->{output}, $pattern, 'build: the message has both versions';
}

{
    local @ENV{qw(SECRET PIP_INDEX_URL HTTPS_PROXY)} = qw(secret http://packages http://proxy);
    my $clean = application({});
    build_python($clean);
    my $environment = slurp("$clean/.agent/environment");
    unlike $environment, qr/secret/, 'build: the environment of the caller is not passed on';
    like $environment, qr/^PIP_INDEX_URL=http:\/\/packages$/m, 'build: the addresses of packages are passed on';
    like $environment, qr/^HTTPS_PROXY=http:\/\/proxy$/m, 'build: the addresses of proxies are passed on';
}

# ---- errors ----
my $failed = build_python(application({}, status => 1, report => "noise\n"
    . '{"graphs":{"g":{"error":{"error":"ModuleNotFoundError","message":"No module named x"}}}}' . "\n"));
is $failed->{status}, 1, 'build: a graph that does not import fails the build';
like $failed->{output}, qr/^agentctl: graph g \(\.\/g\.py:graph\): ModuleNotFoundError: No module named x$/m,
    'build: graph, file and exception are named, whatever else was written before';
unlike $failed->{output}, qr/AgentApplication/, 'build: no directive is printed after an error';
for my $case (
    [ 'a runner that reports nothing', {}, { report => '', status => 0 }, 1, qr/the runner reported no graphs/ ],
    [ 'a runner that reports no JSON', {}, { report => '{"graphs":', status => 0 }, 1, qr/the runner reported no graphs/ ],
    [ 'packages that cannot be installed', { dependencies => ['x'] }, { no_packages => 1 }, 1, qr/could not be installed/ ],
    [ 'a folder that does not exist', { dependencies => [ '.', './nope' ] }, {}, 1, qr/^agentctl: langgraph\.json: \.\/nope: No such file or directory$/m ],
    [ 'an option as dependency', { dependencies => ['--index-url=http://evil'] }, {}, 1, qr/expected folders and requirements.*--index-url/ ],
    [ 'dependencies that are not a list', { dependencies => {} }, {}, 2, qr/expected a list of texts as dependencies/ ],
    [ 'a Python that is too old', { python_version => '3.12' }, {}, 1, qr/is Python 3\.11, and 3\.12 is needed/ ],
    [ 'a Python older than the runner wants', {}, { version => 310 }, 1, qr/is Python 3\.10, and 3\.11 is needed/ ],
    [ 'such a Python as python_version', { python_version => '3.10' }, { version => 310 }, 1, qr/is Python 3\.10, and 3\.11 is needed/ ],
    [ 'no graphs', { graphs => {} }, {}, 2, qr/expected an object with 1 to 200 graphs as graphs/ ],
    [ 'auth', { auth => { path => './auth.py:auth' } }, {}, 2, qr/expected no auth, unless --ignore-auth says/ ],
    [ 'a langgraph.json that is not JSON', '{', {}, 2, qr/expected JSON.*line 1/ ],
) {
    my ($title, $manifest, $files, $status, $expected) = @{$case};
    my $got = build_python(application($manifest, %{$files}));
    is $got->{status}, $status, "build: $title: status $status";
    like $got->{output}, $expected, "build: $title: the message says what was expected";
}
for my $case (
    [ 'says that it imports the graph' => 'g', qr/^agentctl: graph g \(\.\/g\.py:graph\): its import did not end \(/m ],
    [ 'has imported them'              => undef, qr/^agentctl: the runner reported no graphs \(status -1\)$/m ],
    [ 'names another graph'            => 'x', qr/^agentctl: the runner reported no graphs \(status -1\)$/m ],
) {
    my ($title, $graph, $expected) = @{$case};
    my $got = build_python(application({}, hangs => 1, report => encode_json({ type => 'x' }) . "\n"
        . qq({"type":"importing","graph_id":"g"}\n{"type":"importing","graph_id":@{[ $graph ? qq("$graph") : 'null' ]}}\n)), '--timeout', '1s');
    is $got->{status}, 1, "build: an import that does not end, and $title: the build fails";
    like $got->{output}, $expected, "build: an import that does not end, and $title: the message says so";
    like $got->{output}, qr/took too long/, "build: an import that does not end, and $title: the cause is named";
}
my $ended = build_python(application({}, status => 1, report => qq({"type":"importing","graph_id":"g"}\n)));
like $ended->{output}, qr/^agentctl: graph g .* its import did not end \(status 1;/m, 'build: a graph whose import ends the program is named';
SKIP: {
    skip 'no limits under sanitizers', 3 if is_sanitized();
    for my $case ([ 1_048_576 ], [ 65_536 => '--memory', '64M' ], [ 2_097_152 => '--memory', '2G' ]) {
        my ($kb, @options) = @{$case};
        my $folder = application({});
        build_python($folder, @options);
        is slurp("$folder/memory"), "$kb\n", "build: the import may have $kb KB of memory";
    }
}
for my $option (qw(--memory=1T --memory=63M --memory=64 --memory=1025G --memory=1Gx --memory= --timeout=0s --timeout=86401s --timeout=25h --timeout=300 --timeout=500ms --timeout=)) {
    my $got = build_python(application({}), split /=/, $option, 2);
    is $got->{status}, 2, "build: $option is refused";
    like $got->{output}, qr/^agentctl: --\w+: expected .*, got '.*'$/m, "build: $option: the message says what was expected";
}
is build_python(application({ auth => {} }), '--ignore-auth')->{status}, 0, 'build: --ignore-auth builds an application with auth';
like build_python(application({ auth => {} }), '--ignore-auth')->{output}, qr/^AgentApplication \S+ \S+ ignore-auth$/m,
    'build: with --ignore-auth the directive has ignore-auth';
like build_python(application({ python_version => '3.10' }))->{output}, qr/python_version 3\.10; this is 3\.11/,
    'build: a newer Python than that of langgraph.json is a warning';
like build(application({}), '--python', "$top/nothing")->{output}, qr/\Q$top\E\/nothing could not be executed/,
    'build: an interpreter that is not there is named';

like build_python(application({}, report => '{"graphs":{"other":{}}}'))->{output}, qr/^graph other \(not in langgraph\.json\)$/m,
    'build: a graph that only the report has is printed as such';

# ---- the record ----
my $recorded = application({ graphs => { 'a b' => './g.py:graph' }, http => { disable_store => \1, mount_prefix => '/x' } },
    report => qq(noise\n{"graphs":{"a b":{"description":"AgentRunnerUser root"}}}));
my $record = qx('$program' build --json --runners '$top/runners' --python '$interpreter' '$recorded' 2>'$top/errors');
my $folder_name = $recorded =~ s{.*/}{}r;
is_deeply decode_json($record), { name => $folder_name, graphs => ['a b'], directives => [ qq(AgentApplication $folder_name "$recorded"),
    'AgentPrefix /x', '<LocationMatch "^/x/store(/|$)">', '    Require all denied', '</LocationMatch>' ] },
    'build: --json prints one object with the name, the graphs and the lines for httpd.conf';
like slurp("$top/errors"), qr/^==> Importing.*^graph a b .*^AgentPrefix \/x$/ms, 'build: with --json all else is on standard error';
my $unbuilt = application({}, status => 1);
is qx('$program' build --json --runners '$top/runners' --python '$interpreter' '$unbuilt' 2>'$top/errors'), '', 'build: --json prints nothing after an error';

# ---- runners ----
my $away = application({});
my $without = build($away, '--python', $interpreter, '--runners', "$top/nothing");
is $without->{status}, 2, 'runners: status 2 where there are none';
like $without->{output}, qr/^agentctl: \Q$top\E\/nothing\/python: No such file or directory: give --runners FOLDER/m, 'runners: the message names the option';
ok !-e "$away/.agent/said", 'runners: nothing is installed';

# ---- members that belong into httpd.conf ----
my $served = build_python(application({
    http => { cors => { allow_origins => [ 'https://a.example', 'https://b.example' ] }, mount_prefix => '/shop', app => './x.py:app' },
    store => { index => {} }, webhooks => { url => { allowed_ports => [ 443, 8443 ] } } }));
like $served->{output}, qr/^AgentPrefix \/shop\nAgentAllowOrigin https:\/\/a\.example https:\/\/b\.example\nAgentWebhookPorts 443 8443$/m,
    'build: members with a meaning for httpd are printed as directives';
like $served->{output}, qr/warning: langgraph\.json: \Q$_\E has no effect/, "build: $_ has no effect, and a warning" for qw(http.app store.index);

my $evil = build_python(application({ http => { mount_prefix => "/x\nLoadModule own /srv/own.so" },
    webhooks => { url => { allowed_ports => [ 443, '80"', "1\n2" ] } } },
    report => '{"graphs":{"g":{"description":"\\u001b[2Kclean\\u009b2K","schemas":{"input_schema":{"title":"\\u001b[2K"}}}}}'));
unlike $evil->{output}, qr/^LoadModule|AgentPrefix \/x|AgentWebhookPorts 443/m, 'build: a text that is not one word does not become a directive';
like $evil->{output}, qr/warning: langgraph\.json: http\.mount_prefix is left out/, 'build: a text that is not one word is left out with a warning';
unlike $evil->{output}, qr/[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]/, 'build: no control characters of the application are printed';
like $evil->{output}, qr/\?\[2Kclean\?/, 'build: control characters of the application are replaced by question marks';

# ---- uv ----
# A uv that makes the environment with the fake interpreter. Not as root, whose PATH agentctl does not use.
shell_program("$top/with_uv/uv", <<"SH");
printf '%s\n' "\$*" >>.agent/uv
case "\$*" in "venv "*) mkdir -p .agent/venv/bin; cp '$interpreter' .agent/venv/bin/python ;; esac
SH
copy($program, "$top/with_uv/agentctl") or die "agentctl: $!\n";
chmod 0755, "$top/with_uv/agentctl" or die "agentctl: $!\n";
for my $case (
    [ 'no python_version'   => {},                           311, 0, qr/-p >=3\.11 / ],
    [ 'python_version 3.10' => { python_version => '3.10' }, 311, 0, qr/-p >=3\.11 / ],
    [ 'python_version 3.12' => { python_version => '3.12' }, 312, 0, qr/-p 3\.12 / ],
    [ 'a Python 3.10 that is given' => {}, 310, 1, qr{-p /usr/bin/python3}, '--python', '/usr/bin/python3' ],
) {
    my ($title, $manifest, $version, $status, $asked, @options) = @{$case};
    my $folder = application($manifest, version => $version);
    my $command = join ' ', map { "'$_'" } "$top/with_uv/agentctl", 'build', '--runners', "$top/runners", @options, $folder;
    my $output = qx(@{[as_owner()]} /usr/bin/env PATH='$top/with_uv:/usr/bin:/bin' $command 2>&1);
    is $? >> 8, $status, "uv: $title: status $status" or diag $output;
    like slurp("$folder/.agent/uv"), $asked, "uv: $title: uv gets the version that is needed, or the program";
    like $output, qr/is Python 3\.10, and 3\.11 is needed: give another --python, or none$/m, "uv: $title: the message says what is needed" if $status;
}

# ---- JavaScript ----
my $lock = encode_json({ name => 'a', lockfileVersion => 3, requires => \1, packages => { '' => { name => 'a' } } });
my %node = (version => '22.1.0', 'package.json' => '{"name":"a"}');
my $script = build(application({ graphs => { g => './g.mjs:graph' } }, %node, 'package-lock.json' => $lock), '--node', $interpreter);
is $script->{status}, 0, 'build: an application in JavaScript is built' or diag $script->{output};
like $script->{output}, qr/with npm by package-lock\.json/, 'build: packages are installed by the lock file';
like $script->{said}, qr/^$uid\|\Q$top\E\/runners\/node\/main\.mjs --check$/m, 'build: its runner imports the graphs';
like $script->{output}, qr/^AgentNodeProgram "\Q$interpreter\E"$/m, 'build: the program that was given is printed as directive';
like build(application({ graphs => { g => './g.mjs:graph' } }, %node), '--node', $interpreter)->{output},
    qr/there is no lock file/, 'build: without a lock file it warns';
for my $case ([ '@langchain/langgraph-checkpoint', '1.1.3', '1.1.5', 'executes code that is in a state' ],
    [ '@langchain/core', '1.0.6', '1.1.8', 'loads variables of the environment that a state names' ]) {
    my ($package, $old, $fixed, $effect) = @{$case};
    for my $version ($old, $fixed, '1.10.0') {
        my $output = build(application({ graphs => { g => './g.mjs:graph' } }, %node, 'package-lock.json' => $lock,
            "node_modules/$package/package.json" => encode_json({ version => $version })), '--node', $interpreter)->{output};
        my @warnings = $output =~ /warning: \Q$package\E (.*)/g;
        is_deeply \@warnings, $version eq $old ? ["$old $effect: use $fixed or newer"] : [],
            "build: $package $version: a warning of insecure versions only";
    }
}
my %yarn = ('yarn.lock' => "# This file is generated by running \"yarn install\"\n\n__metadata:\n  version: 8\n");
my %named = ('package.json' => '{"name":"a","packageManager":"yarn@4.5.0+sha224.abc"}');
for my $case ([ 'yarn.lock', %node, %yarn ], [ 'the packageManager of package.json', %node, %named ],
    [ 'the packageManager of package.json', %node, %named, 'yarn.lock' => "# yarn lockfile v1\n" ]) {
    my ($subject, %files) = @{$case};
    my $project = application({ graphs => { g => './g.mjs:graph' } }, %files);
    my $refused = build($project, '--node', $interpreter);
    is $refused->{status}, 1, "yarn 2: with $subject it fails";
    like $refused->{output}, qr/^agentctl: \Q$subject\E is of yarn 2 or newer, and only yarn 1 is supported: add the lock file of npm/m,
        "yarn 2: the message has $subject and what to do";
    unlike $refused->{output}, qr/Installing/, "yarn 2: with $subject nothing is installed";
}
is build(application({ graphs => { g => './g.mjs:graph' } }, %node, %named, %yarn, 'package-lock.json' => $lock), '--node', $interpreter)->{status},
    0, 'yarn 2: a project with a lock file of npm too is built by that one';
like build(application({ graphs => { g => './g.mjs:graph' } }, version => '20.0.0'), '--node', $interpreter)->{output},
    qr/has no package\.json/, 'build: without package.json it fails';
like build(application({ graphs => { g => './g.mjs:graph' }, node_version => '24' }, %node), '--node', $interpreter)->{output},
    qr/is Node 22, and 24 is needed/, 'build: a Node that is too old is refused';

# ---- rights ----
my $unreadable = application({ env => '.env' }, '.env' => '', '.env.example' => '');
my $of_root = application({});
my $foreign = application({});
{
    my $copied = "$top/agentctl-of-all";
    copy($program, $copied) or die "agentctl: $!\n";
    chmod 0755, $copied;
    my $name = getpwuid $uid;
    my $refused = sub {
        my ($folder) = @_;
        return scalar qx(@{[as_owner()]} '$copied' build --runners '$top/runners' --python '$interpreter' '$folder' 2>&1);
    };
    chmod 0000, "$unreadable/.env";
    is $refused->($unreadable), "agentctl: langgraph.json: env: .env: Permission denied: user $name, and that of the runners, must be able to read it (chgrp, chmod 640)\n",
        'rights: of an env that cannot be read it is said who must read it';
    chmod 0555, "$foreign/.agent";
    my $owner = is_root() ? 'root' : $name;
    chown 0, 0, "$foreign/.agent" if is_root();
    is $refused->($foreign), "agentctl: $foreign/.agent/build.lock: Permission denied: what an earlier build made belongs to $owner: remove $foreign/.agent,"
        . " or give it to $name (chown -R)\n", 'rights: what a build of another user has made is named, with its owner and the remedy';
    chmod 0755, "$foreign/.agent";
    system('rm', '-r', "$of_root/.agent");
    chmod 0555, $of_root;
    chown 0, 0, $of_root if is_root();
    is $refused->($of_root), "agentctl: $of_root: Permission denied: it belongs to $owner, and $name may not write to it: build it as its owner,"
        . " or as root with --user $name\n", 'rights: a folder to which the user may not write is named, with its owner and the remedy';
    chmod 0755, $of_root;
}

# ---- users ----
SKIP: {
    skip 'only root can become another user', 27 if !is_root();
    my $terminal = application({}, report => '{"graphs":{"g":{}}}');
    build_python($terminal);
    isnt +(slurp("$terminal/.agent/session") =~ /^(\d+)/)[0], getsid(), 'users: what root starts has a session of its own, without its terminal';
    my $own = application({ dependencies => ['.'] }, 'pyproject.toml' => '');
    system('rm', '-r', "$own/.agent");
    chown 0, 0, $own, glob "$own/*";
    like build_python($own)->{output}, qr/^agentctl: \Q$own\E belongs to root, and nothing is installed as root: give --user NAME/m,
        'users: nothing is installed as root';
    ok !-e "$own/.agent", 'users: nothing is executed as root';
    # Groups of root, which the user does not have.
    my $groups = $);
    $) = '0 0 4';    ## no critic (Variables::RequireLocalizedPunctuationVars)
    my $given = build_python($own, '--user', $user);
    $) = $groups;    ## no critic (Variables::RequireLocalizedPunctuationVars)
    is_deeply { map { $_ => 1 } split /\n/, $given->{groups} }, { qx(id -G $user) =~ s/\n//r => 1 }, 'users: it has the groups of that user alone';
    is $given->{status}, 0, 'users: a folder of root is built by another user' or diag $given->{output};
    like $given->{said}, qr/^$uid\|-m pip install .* \.\/\.agent\/source\/\d+$/m,
        'users: a package in it is installed from a copy';
    like $given->{output}, qr/^==> \. is installed from a copy: build again after each change of it$/m, 'users: the output says that it is a copy';
    unlike $given->{said}, qr/^0\|/m, 'users: root executes nothing';
    my $secret = application({});
    system('rm', '-r', "$secret/.agent");
    chown 0, 0, $secret, glob "$secret/*";
    my $users = folder();
    chown $uid, -1, $users;
    symlink $secret, "$users/link" or die "link: $!\n";
    make_path("$users/of_root");
    symlink $secret, "$top/link" or die "link: $!\n";
    for my $path ("$users/link", "$users/of_root", "$top/link") {
        my $chosen = build_python($path, '--user', $user);
        like $chosen->{output}, qr/^agentctl: \S+ belongs to root, and so must every directory above it; give its path without links$/m,
            "users: a folder of root is refused if somebody else may have chosen it: $path";
        ok !-e "$path/.agent", 'users: nothing is created in it';
    }
    my $folder = application({});
    symlink $folder, "$users/application" or die "link: $!\n";
    my $theirs = folder('above/' => '');
    chown 1, 1, "$theirs/above";
    rename application({}), "$theirs/above/application" or die "rename: $!\n";
    for my $path ("$users/application", "$theirs/above/application") {
        my $chosen = build_python($path);
        like $chosen->{output}, qr/^agentctl: \S+ belongs to \Q$user\E, but others may have led to it, by a link or a directory above it: give --user NAME$/m,
            "users: the owner is not taken for the user if somebody else may have led there: $path";
        is $chosen->{said}, '', 'users: nothing is executed';
        is build_python($path, '--user', $user)->{status}, 0, 'users: a user who is given is taken';
    }
    my $mode = 0755;
    for my $bits (0020, 0002) {
        chmod $mode | $bits, $folder;
        like build_python($folder)->{output}, qr/^agentctl: \Q$folder\E belongs to \Q$user\E, but others can write to it: give --user NAME$/m,
            sprintf 'users: the owner is not taken for the user if others can write to the folder: mode %o', $mode | $bits;
    }
    chmod $mode, $folder;
    for my $bits (0, 01002) {
        my $home = folder('a/' => '');
        chmod $mode | $bits, $home;
        rename application({}), "$home/a/application" or die "rename: $!\n";
        is build_python("$home/a/application")->{status}, 0,
            sprintf 'users: the owner is, below folders of the same user, mode %o', $mode | $bits;
    }
    my $owner = getpwuid 1;
    for my $case ([ $owner, 1 ], [ 'user 54321', 54_321 ]) {
        my ($name, $id) = @{$case};
        chown $id, $id, $own;
        is build_python($own, '--user', $user)->{output}, "agentctl: $own belongs to $name, neither to $user nor to root alone: build it as its owner,"
            . " without --user, or give it to root (chown -R root $own)\n", "users: a folder of somebody else is refused, and both ways out are named: $name";
    }
    chown 0, 0, $own;
    chmod 0775, $own;
    is build_python($own, '--user', $user)->{output}, "agentctl: $own belongs to root, but others can write to it: chmod go-w $own\n",
        'users: a folder of root to which others write is refused, with the remedy';
}
{
    # Who cannot become another user, or does not have to.
    my $other = $user eq 'daemon' ? 'bin' : 'daemon';
    copy($program, "$top/agentctl") or die "agentctl: $!\n";
    chmod 0755, "$top/agentctl";
    my $mine = application({});
    my $output = qx(@{[as_owner()]} '$top/agentctl' build --runners '$top/runners' --python '$interpreter' --user $other '$mine' 2>&1);
    is $? >> 8, 1, 'users: another user than root builds as no third one';
    is $output, "agentctl: only root can build as $other\n", 'users: the refusal says that only root can build as another user';
    ok !-e "$mine/.agent/said", 'users: a refused user executes nothing';
}
is build(application({}), '--user', 'root')->{output},
    "agentctl: nothing is installed as root: give --user NAME, the user of its runners (AgentRunnerUser)\n",
    'users: nobody builds as root, whose ever the folder is';
like build(application({}), '--user', 'no-such-user')->{output}, qr/there is no user no-such-user: create it \(useradd --system\)$/m, 'users: an unknown user is refused';

# ---- usage ----
for my $arguments ('', 'make .', 'build', 'build . .', 'build --wrong .') {
    my $output = qx('$program' $arguments 2>&1);
    is $? >> 8, 2, "usage: 'agentctl $arguments' has status 2";
    like $output, qr/^usage: agentctl build/m, "usage: 'agentctl $arguments' prints how to use it";
}
like qx('$program' --help), qr/\Ausage: /, 'usage: --help prints how to use it';
like qx('$program' build '$top/nothing' 2>&1), qr/nothing: No such file/, 'usage: a folder that is not there is named';

my $twice = build_python(application('{"graphs": {"a": "./a.py:g", "b": "./b.py:g", "a": "./c.py:g"}}'));
is $twice->{status}, 2, 'graphs: two of one name are refused';
like $twice->{output}, qr{^agentctl: .*/graphs/a: it is a duplicate key}m, 'graphs: the error names the graph';

done_testing;
