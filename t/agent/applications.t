# SPDX-License-Identifier: Apache-2.0
# AgentApplication: applications of two deployments and built-in graphs, each with
# runners of its own program, folder, user and environment; errors at the start.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Env qw(build_dir free_port is_root root slurp write_file);
use AgentTest::Process qw(supervisor_pid);
use AgentTest::Server;
use AgentTest::Wait;
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use Test::More;

my $dir = tempdir('/tmp/agent-test-applications.XXXXXX', CLEANUP => 1);
chmod 0755, $dir or die "$dir: $!\n";

# A folder with a langgraph.json; its path.
sub application {
    my ($name, $text) = @_;
    make_path("$dir/$name");
    write_file("$dir/$name/langgraph.json", $text);
    return "$dir/$name";
}

# The runners of both languages are one script, which Perl executes: the folder
# `runners` is beside AgentRunner.
make_path("$dir/lib/runners/node", "$dir/empty");
symlink build_dir() . '/agent-runner', "$dir/lib/agent-runner" or die "symlink: $!\n";
my $script = slurp(root() . '/t/agent/application_runner.pl');
my @runner = map { write_file("$dir/lib/runners/$_", $script) } qw(python node/main.mjs);
# An interpreter that is a script itself.
my $node = write_file("$dir/node", qq(#!/bin/sh\nexec /usr/bin/perl "\$@"\n));
chmod 0755, $node or die "$node: $!\n";

my $tools = application('tools', <<'JSON');
{"dependencies": ["."], "env": ".env", "graphs": {
    "counter": {"path": "./counter.py:graph", "description": "counts"},
    "Deep Research": "pkg.research:make"}}
JSON
my $broken = application('broken', '{"graphs": {"never": "./never.py:graph"}}');
write_file("$broken/broken", '');
my $shop = application('shop', '{"node_version": "20", "graphs": {"counter": "./src/agent.ts:graph"}}');
# The Python of its own is Perl.
my $own = application('own', '{"graphs": {"own": "./own.py:graph"}}');
make_path("$own/.agent/venv/bin");
symlink '/usr/bin/perl', "$own/.agent/venv/bin/python" or die "symlink: $!\n";

my $apart = application('apart', '{"graphs": {"apart": "./apart.py:graph"}}');

my $port = free_port();
my ($shared_user, $own_user) = is_root() ? map { "AgentRunnerUser $_" } qw(nobody daemon) : ('', '');
my $BASE = qq(AgentRunner "$dir/lib/agent-runner"\nAgentPythonProgram /usr/bin/perl\n);
local $ENV{SECRET_OF_HTTPD} = 'x';
my $server = AgentTest::Server->new(config => <<"CONF");
$BASE
$shared_user
<AgentGraph agent>
    AgentModel demo
</AgentGraph>
AgentApplication tools $tools/
AgentApplication broken $broken
AgentApplication own $own
<Location "/">
    SetHandler agent
</Location>
Listen 127.0.0.1:$port
<VirtualHost 127.0.0.1:$port>
    AgentDeployment shop
    AgentNodeProgram "$node"
    AgentRunners 2
    AgentRunnerSlots 3
    $own_user
    AgentApplication tools $shop
</VirtualHost>
<VirtualHost 127.0.0.1:$port>
    ServerName apart.invalid
    $own_user
    AgentApplication apart $apart
</VirtualHost>
CONF
$server->start;
my $client = AgentTest::Client->new(url => $server->url);
my $other = AgentTest::Client->new(url => "http://127.0.0.1:$port");

sub ready { my ($name) = @_; return scalar(() = $server->error_log =~ /runner \d+ of pool \Q$name\E is ready/g) }
sub report_of { my ($of, $graph) = @_; return $of->join_run($of->start_run('x', assistant_id => $graph))->{report} }

wait_for('the runners', sub { ready('default') == 1 && ready('default/tools') == 1 && ready('shop/tools') == 2 });
pass 'applications: each has its own runners, as many as its host says';
like $server->error_log, qr{runner \d+ of pool shop/tools is ready for 3 runs}, 'applications: AgentRunnerSlots is that of the host';

sub assistants_of { return map { $_->{graph_id} => $_->{description} } @{ $_[0]->post('/assistants/search', {})->{json} } }
wait_for('the reports', sub { my %found = assistants_of($client); exists $found{'Deep Research'} && defined $found{counter} });
is {assistants_of($client)}->{counter}, 'counts', 'applications: each graph has an assistant, with its description';

my $report = report_of($client, 'counter');
is_deeply $report->{application}, { name => 'tools', directory => $tools }, 'applications: hello names the application and its directory';
is_deeply $report->{graphs}, {
    counter => { kind => 'langgraph', path => './counter.py:graph', description => 'counts' },
    'Deep Research' => { kind => 'langgraph', path => 'pkg.research:make', description => undef },
}, 'applications: hello has the graphs of langgraph.json and no others';
is $report->{directory}, $tools, 'applications: the working directory is that of the application';
is $report->{program}, '/usr/bin/perl', 'applications: AgentPythonProgram executes Python, by its path';
is_deeply $report->{arguments}, [ $runner[0] ], 'applications: the argument of Python is the runner of its language';
is_deeply [ grep { !/\A(?:PATH|LANG|TZ|HOME)\z/ } keys %{ $report->{environment} } ], [], 'applications: a runner has no variable of httpd';
is_deeply $report, { %{ report_of($client, 'Deep Research') } }, 'applications: graphs of an application have the same runner';

my $shopping = report_of($other, 'counter');
is_deeply $shopping->{graphs}, { counter => { kind => 'langgraph', path => './src/agent.ts:graph', description => undef } },
    'applications: an application of another deployment has its own graphs';
is $shopping->{directory}, $shop, 'applications: an application of another deployment has its own directory';
is_deeply $shopping->{arguments}, [ $runner[1] ], 'applications: JavaScript has its own runner, and AgentNodeProgram may be a script';
is report_of($client, 'own')->{program}, "$own/.agent/venv/bin/python", 'applications: the virtual environment of an application comes first';

SKIP: {
    skip 'runners have a user of their own where httpd is started by root', 4 if !is_root();
    is $report->{user}, scalar getpwnam('nobody'), 'applications: AgentRunnerUser is that of the main server';
    is $shopping->{user}, scalar getpwnam('daemon'), 'applications: a virtual host has its own AgentRunnerUser';
    is report_of($client, 'apart')->{user}, scalar getpwnam('daemon'),
        'applications: so has an application of the same deployment that another virtual host declares';
    is $report->{environment}{HOME}, $tools, 'applications: HOME is the directory for a user without a home';
}

is $client->join_run($client->start_run('hello'))->{messages}[0]{content}, 'hello', 'applications: a built-in graph of the deployment is served beside them';
is $other->post('/runs', { assistant_id => 'agent', input => {} })->{status}, 404, 'applications: the other deployment does not have it';
is $other->post('/runs', { assistant_id => 'own', input => {} })->{status}, 404, 'applications: the other deployment does not have the applications of the first';
wait_for('the failures of the broken one', sub { $server->error_log =~ /AGT0331: runner \d+ ended/ });
my $waiting = $client->start_run('x', assistant_id => 'never');
is report_of($client, 'counter')->{directory}, $tools, 'applications: one whose runners end does not stop the others';
# Its runs wait while it is started again, and end with the fifth failure.
is $client->join_run($waiting)->{__error__}{error}, 'RunnerStartError', 'applications: a run of one whose runners end is not executed';

# The program of one is replaced by a file that its user may not read, or by none
# where all have the same user. The next supervisor starts without it.
my $secret = write_file("$dir/secret", "#!/bin/sh\necho executed\n");
chmod 0700, $secret or die "$secret: $!\n";
unlink "$own/.agent/venv/bin/python" or die "unlink: $!\n";
symlink is_root() ? $secret : "$dir/none", "$own/.agent/venv/bin/python" or die "symlink: $!\n";
kill 'KILL', supervisor_pid($server->httpd_pid);
wait_for('its refusal', sub { $server->error_log =~ m{AGT0336: the spawner could not start a runner of pool default/own} });
unlike $server->error_log, qr{cannot start|executed}, 'applications: a program is opened with the rights of the user of its runners';
is report_of($client, 'counter')->{directory}, $tools, 'applications: one whose program cannot be opened does not stop the others';
undef $server;

# ---- errors ----

# Whether httpd -t accepts the lines, and its output.
sub check {
    my (@lines) = @_;
    return AgentTest::Server->new(config => join "\n", @lines, '')->check_config;
}

sub refused {
    my ($what, $pattern, @lines) = @_;
    my ($ok, $output) = check(@lines);
    ok !$ok, "applications: $what is refused";
    like $output, $pattern, "applications: the error of $what says so";
    return;
}

sub executable {
    my ($file) = @_;
    chmod 0755, write_file($file, '') or die "$file: $!\n";
    return $file;
}

my $demo = "<AgentGraph counter>\nAgentModel demo\n</AgentGraph>";
application('odd', "{\n\"graphs\": [\n}");
application('twice', qq({"graphs": {"a": "a.py:g",\n"b": "b.py:g",\n"a": "c.py:g"}}));
refused('a missing directory', qr{line \d+ of .*AgentApplication x: expected a directory, got '$dir/none' \(No such file}s,
    $BASE, "AgentApplication x $dir/none");
refused('a file in place of a directory', qr{expected a directory, got '$node' \(not a directory\)}, $BASE, "AgentApplication x $node");
refused('a directory without langgraph.json', qr{expected a readable regular file .* got '$dir/empty/langgraph\.json' \(No such file},
    $BASE, "AgentApplication x $dir/empty");
refused('a langgraph.json that is not JSON', qr{expected JSON in $dir/odd/langgraph\.json, got line 3, column \d+: it is not JSON}, $BASE, "AgentApplication x $dir/odd");
refused('a langgraph.json with two graphs of a name', qr{expected JSON in $dir/twice/langgraph\.json, got line 3, /graphs/a: it is a duplicate key},
    $BASE, "AgentApplication x $dir/twice");
refused('a name with a slash', qr{AgentApplication: expected a name of letters.*got 'a/b'}, $BASE, "AgentApplication a/b $tools");
refused('an unknown third argument', qr{AgentApplication x: expected ignore-auth or nothing.*got 'now'}, $BASE, "AgentApplication x $tools now");
refused('a graph of two applications', qr{AgentApplication: expected each name once in a deployment, got 'counter' of 'default' at \S+:(\d+) and at \S+:(?!\1:)\d+: rename one},
    $BASE, "AgentApplication x $tools", "AgentApplication y $shop", "AgentNodeProgram $node");
refused('a graph that is built-in too', qr{AgentApplication: expected each name once .*'counter'}, $BASE, $demo, "AgentApplication x $tools");
refused('a name of two applications', qr{expected each name of an application once in a deployment, got 'x'},
    $BASE, "AgentApplication x $tools", "AgentApplication x $own");
refused('an application in <AgentGraph>', qr{AgentApplication: expected outside of <AgentGraph>},
    $BASE, "<AgentGraph agent>\nAgentModel demo\nAgentApplication x $tools\n</AgentGraph>");
refused('an application in <Location>', qr{AgentApplication not allowed}, $BASE, "<Location />\nAgentApplication x $tools\n</Location>");
refused('a program that does not exist', qr{AGT0447: AgentApplication x: expected a program that the user \S+ may use, got '/nowhere/python' of AgentPythonProgram \(No such},
    $BASE, "AgentApplication x $tools", 'AgentPythonProgram /nowhere/python');
refused('a program that is a folder', qr{AGT0447: AgentApplication x: .* got '/usr/lib' of AgentPythonProgram \(Is a directory\)},
    $BASE, "AgentApplication x $tools", 'AgentPythonProgram /usr/lib');
refused('a missing runner', qr{AGT0447: AgentApplication x: expected a runner .* got '$dir/runners/python' \(No such},
    $BASE, 'AgentRunner ' . executable("$dir/agent-runner"), "AgentApplication x $tools");
my ($has_applications) = check($BASE, "AgentApplication x $tools", "<VirtualHost *:1>\nAgentDeployment shop", "AgentApplication x $tools\n</VirtualHost>");
ok $has_applications, 'applications: two deployments may have the same application';

SKIP: {
    skip 'root may read every directory', 4 if !is_root();
    my $closed = application('closed', '{"graphs": {"a": "./a.py:g"}}');
    chmod 0700, $closed or die "$closed: $!\n";
    refused('a directory that the user of its runners cannot read', qr{AGT0447: AgentApplication x: expected a directory .* nobody may use, got '$closed' \(Permission},
        $BASE, "AgentApplication x $closed");
    refused('a program that the user of its runners cannot read', qr{AGT0447: .*expected a program .* got '$secret' of Agent\w+ \(Permission},
        $BASE, "AgentApplication x $tools", "AgentPythonProgram $secret");
}
done_testing;
