# SPDX-License-Identifier: Apache-2.0
# A langgraph.json that is broken or hostile: httpd does not start, and says which file
# and member; a running httpd refuses the restart and goes on with the last one.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Env qw(build_dir is_root root slurp write_file);
use AgentTest::Process qw(httpd_children);
use AgentTest::Server;
use AgentTest::Wait;
use Cpanel::JSON::XS qw(encode_json);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use POSIX qw(mkfifo);
use Test::More;

my $dir = tempdir('/tmp/agent-test-manifest.XXXXXX', CLEANUP => 1);
chmod 0755, $dir or die "$dir: $!\n";
make_path("$dir/lib/runners/node", "$dir/shop", "$dir/other");
symlink build_dir() . '/agent-runner', "$dir/lib/agent-runner" or die "symlink: $!\n";
my $script = slurp(root() . '/t/agent/application_runner.pl');
write_file("$dir/lib/runners/$_", $script) for qw(python node/main.mjs);
my $file = "$dir/shop/langgraph.json";
my $BASE = qq(AgentRunner "$dir/lib/agent-runner"\nAgentPythonProgram /usr/bin/perl\nAgentApplication shop $dir/shop\n);
my $checker = AgentTest::Server->new(config => $BASE);

sub graphs { my (%more) = @_; return encode_json({ graphs => { counter => './counter.py:graph' }, %more }) }

sub refused {
    my ($what, $pattern) = @_;
    my ($ok, $output) = $checker->check_config;
    ok !$ok, "broken: $what stops httpd at start";
    like $output, $pattern, "broken: the message of $what names the file, and where it is wrong";
    return;
}

# A process of the file's owner that has a write lease on it; undef if none is granted.
sub hold_lease {
    my ($path) = @_;
    my ($F_SETLEASE, $F_WRLCK) = (1024, 1);
    chown((getpwnam 'nobody')[ 2, 3 ], $path) if is_root();
    pipe my $from, my $to or die "pipe: $!\n";
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        $SIG{IO} = 'IGNORE';
        $> = getpwnam 'nobody' if is_root();
        open my $lease, '+<', $path or POSIX::_exit(1);
        fcntl $lease, $F_SETLEASE, $F_WRLCK or POSIX::_exit(1);
        syswrite $to, 'x';
        sleep 120;
        POSIX::_exit(0);
    }
    close $to;
    return $pid if sysread $from, my $byte, 1;
    waitpid $pid, 0;
    return;
}

my $named = qr{AgentApplication shop: expected .*\Q$file\E}s;
for my $case (
    [ 'a file of 300 KB', graphs(x => 'x' x 300_000), qr{of less than 256 KB, got '\Q$file\E' \(File too large} ],
    [ 'a nesting of 100,000 levels', '[' x 100_000, qr{\Q$file\E, got line 1, column 129: it is nested deeper than 128 levels} ],
    [ 'a number of 100,000 digits', '{"graphs": ' . '1' x 100_000 . '}', qr{\Q$file\E, got line 1, column \d+: it contains a number of more than 40 digits} ],
    [ 'the character U+0000', qq({"graphs": {"a\\u0000b": "./a.py:g"}}), qr{\Q$file\E, got line 1, column \d+: it contains the character U\+0000} ],
    [ 'a file of zeros', "\0" x 1000, $named ],
    [ 'an empty file', '', qr{\Q$file\E, got an empty file} ],
    [ 'graphs that are a list', '{"graphs": []}', qr{expected an object with 1 to 200 graphs as graphs in \Q$file\E, got array} ],
    [ 'a graph that is a number', '{"graphs": {"a": 7}}', qr{expected FILE:NAME as graphs\.a in \Q$file\E, got int} ],
    [ 'dependencies that are a text', graphs(dependencies => '.'), qr{expected a list of texts as dependencies in \Q$file\E, got string} ],
    [ 'env that is a number', graphs(env => 1), qr{expected a file name, .* as env in \Q$file\E, got int} ],
    [ 'serde that is a list', graphs(checkpointer => { serde => [] }), qr{expected an object as checkpointer\.serde in \Q$file\E, got array} ],
) {
    my ($what, $text, $pattern) = @{$case};
    write_file($file, $text);
    refused($what, $pattern);
}
unlink $file or die "unlink: $!\n";
for my $case (
    [ 'no file', sub { 1 }, qr{got '\Q$file\E' \(No such file} ],
    [ 'a FIFO', sub { mkfifo($file, 0644) }, qr{expected a readable regular file .*got '\Q$file\E' \(Invalid argument} ],
    [ 'a link to a device', sub { symlink '/dev/zero', $file }, qr{got '\Q$file\E' \(Invalid argument} ],
    [ 'a link to itself', sub { symlink $file, $file }, qr{got '\Q$file\E' \(Too many levels} ],
    [ 'a link to a file of the kernel', sub { symlink '/sys/kernel/uevent_seqnum', $file }, qr{got '\Q$file\E' \(Invalid argument} ],
    [ 'a directory', sub { mkdir $file }, qr{got '\Q$file\E' \(Is a directory} ],
) {
    my ($what, $make, $pattern) = @{$case};
    $make->() or die "$what: $!\n";
    refused($what, $pattern);
    -d $file && !-l $file ? rmdir $file : unlink $file;
}
write_file($file, graphs());
SKIP: {
    my $holder = hold_lease($file) or skip 'no lease is granted here', 3;
    my $began = time;
    refused('a file that its owner holds a lease on', qr{got '\Q$file\E' \(a process holds a lease on it});
    cmp_ok time - $began, '<', 20, 'broken: the owner of the file cannot hold httpd with it';
    kill 'KILL', $holder;
    waitpid $holder, 0;
}
chmod 0, $file or die "chmod: $!\n";
refused('a file that the user of its runners cannot read', is_root() ? qr{AGT0447: AgentApplication shop: expected a directory and file .*got '\S*langgraph\.json' \(Permission}
    : qr{got '\Q$file\E' \(Permission});
chmod 0644, $file or die "chmod: $!\n";

# ---- at a restart ----
my $server = AgentTest::Server->new(config => $BASE . <<'CONF');
<Location "/">
    SetHandler agent
</Location>
CONF
$server->start;
my $client = AgentTest::Client->new(url => $server->url);
wait_for('the runner', sub { $server->error_log =~ m{runner \d+ of pool default/shop is ready} });
my @children = httpd_children($server->httpd_pid);
write_file($file, '{"graphs": {"counter": 5}}');
my ($status, $output) = $server->graceful;
isnt $status, 0, 'restart: httpd refuses one with a broken file';
like $output, qr{expected FILE:NAME as graphs\.counter in \Q$file\E, got int}, 'restart: it says why';
is_deeply [ httpd_children($server->httpd_pid) ], \@children, 'restart: no child was replaced';
is $client->join_run($client->start_run('x', assistant_id => 'counter'))->{report}{directory}, "$dir/shop", 'restart: the application is served as before';
write_file($file, '{"graphs": {"counter": "./counter.py:graph", "second": "./second.py:graph"}}');
is +($server->graceful)[0], 0, 'restart: a file that was repaired is taken';
wait_for('the second graph', sub { @{ $client->post('/assistants/search', { graph_id => 'second' })->{json} || [] } });
is $client->join_run($client->start_run('x', assistant_id => 'second'))->{report}{graphs}{second}{path}, './second.py:graph', 'restart: its new graph is served';
undef $server;
undef $checker;
done_testing;
