# SPDX-License-Identifier: Apache-2.0
# The programs that agentctl build executes, which are the application's: what they
# have of the caller, and how they end.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Env qw(is_root slurp);
use AgentTest::Process qw(descendants_of is_alive);
use AgentTest::Wait;
use CtlTest qw($top $program folder shell_program);
use Fcntl qw(F_SETFD);
use POSIX qw(mkfifo WNOHANG);
use Test::More;

# An interpreter that executes ./pip when packages are installed, and ./check when
# graphs are imported.
my $interpreter = shell_program("$top/scripted", <<'SH');
case "$*" in
-c*version_info*) echo 311 ;;
"-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
"-m pip "*) if test -e pip; then . ./pip; fi ;;
*" --check") if test -e check; then . ./check; fi; echo '{"type":"ready","graphs":{"g":{}}}' ;;
esac
SH

sub application {
    my (%scripts) = @_;
    return folder('.agent/' => '', 'langgraph.json' => '{"graphs":{"g":"./g.py:graph"},"dependencies":["x"]}', %scripts);
}

# Begins a build; both its outputs go to ./output. The caller's third descriptor is a
# file of its own, which programs inherit.
sub begin {
    my ($directory) = @_;
    open my $own, '>', "$top/own" or die "$top/own: $!";
    my $pid = fork // die "fork: $!";
    return $pid if $pid;
    fcntl $own, F_SETFD, 0 or die "fcntl: $!";
    open STDOUT, '>', "$directory/output" or die "output: $!";
    open STDERR, '>&', \*STDOUT or die "stderr: $!";
    exec $program, 'build', '--runners', "$top/runners", '--python', $interpreter, $directory or die "exec: $!";
}

sub end_of { my ($pid) = @_; waitpid $pid, 0; return $? >> 8 }

sub said { my ($directory, $name) = @_; return -e "$directory/.agent/$name" ? slurp("$directory/.agent/$name") : '' }

my $list = "for fd in /proc/\$\$/fd/*; do readlink \$fd; done >>.agent/descriptors\n";
my $title = 'printf "\033]0;title\007\302\233x\n" >&2' . "\n";
my $directory = application(pip => $list . $title, check => $list . $title);
is end_of(begin($directory)), 0, 'programs: the build succeeds';
my @descriptors = grep { !m{^/dev/null$|^pipe:|\.agent/descriptors$|/(?:pip|check|python|scripted)$} }
    split /\n/, said($directory, 'descriptors');
is_deeply \@descriptors, [], 'programs: they inherit no descriptor of the caller, not even that of its terminal';
for my $case ([ 'output', slurp("$directory/output") ], [ 'log of installers', said($directory, 'build.log') ]) {
    my ($name, $text) = @{$case};
    is scalar(() = $text =~ /\?\]0;title\?\?\?x/g), 1, "programs: control characters on standard error are replaced: $name";
    unlike $text, qr/[\033\007\233]/, "programs: control characters on standard error are left out: $name";
}

# ---- their output ----
my $loud = "for i in 1 2 3; do echo installs \$i; echo warns \$i >&2; done\n";
$directory = application(pip => $loud);
is end_of(begin($directory)), 0, 'programs: a build with an installer that prints succeeds';
my $output = slurp("$directory/output");
unlike $output, qr/installs|warns/, 'programs: the output of an installer is not printed';
like $output, qr/^==> Building \Q$directory\E; installers write to its \.agent\/build\.log$/m, 'programs: the log is named';
is said($directory, 'build.log'), join('', map { "installs $_\nwarns $_\n" } 1 .. 3), 'programs: the log has the whole output';
$directory = application(pip => $loud . 'printf "\033[2K" >>.agent/build.log; exit 1');
is end_of(begin($directory)), 1, 'programs: an installer that fails fails the build';
$output = slurp("$directory/output");
like $output, qr/^installs 1\nwarns 1\ninstalls 2\nwarns 2\ninstalls 3\nwarns 3\n/m, 'programs: the whole output of an installer that fails is printed';
unlike $output, qr/\033/, 'programs: not the control characters that it has written to the log';
unlink "$directory/pip" or die "pip: $!\n";
is end_of(begin($directory)), 0, 'programs: the folder can be built again';
is said($directory, 'build.log'), '', 'programs: the log is of the last build';

# ---- their environment ----
{
    local @ENV{qw(PIP_INDEX_URL UV_PUBLISH_TOKEN)} = qw(http://user:password@packages token);
    $directory = application(map { $_ => "env >.agent/$_.env\n" } qw(pip check));
    is end_of(begin($directory)), 0, 'programs: the build with addresses of packages succeeds';
    like said($directory, 'pip.env'), qr/^PIP_INDEX_URL=/m, 'programs: an installation knows where packages are';
    unlike said($directory, 'pip.env'), qr/^UV_PUBLISH_TOKEN=/m, 'programs: it has no token to publish with';
    unlike said($directory, 'check.env'), qr/^PIP_INDEX_URL=/m, 'programs: the import of graphs does not know it';
}

# ---- their privileges ----
$directory = application(map { $_ => "grep NoNewPrivs /proc/self/status >.agent/$_.privileges\n" } qw(pip check));
is end_of(begin($directory)), 0, 'programs: the build with programs that read their status succeeds';
is said($directory, "$_.privileges"), "NoNewPrivs:\t1\n", "programs: none gets the privileges of a setuid program: $_" for qw(pip check);

# ---- their end ----
# A child of the program's group, a daemon in a session of its own, and what that has left in another one.
sub left_by {
    my ($name) = @_;
    return "sleep 1000 &\necho \$! >>.agent/$name.left\n"
        . "setsid sh -c 'setsid sleep 1000 & echo \$! \$\$ >>.agent/$name.left; exec sleep 1000' &\n"
        . "until test \$(wc -w <.agent/$name.left) = 3; do sleep 0.01; done\n";
}
$directory = application(map { $_ => left_by($_) } qw(pip check));
is end_of(begin($directory)), 0, 'programs: the build does not wait for processes that they leave';
for my $name (qw(pip check)) {
    my @left = said($directory, "$name.left") =~ /(\d+)/g;
    is scalar @left, 3, "programs: $name has left some";
    is scalar(grep { is_alive($_) } @left), 0, "programs: those of $name have ended, also the daemons";
}

for my $name (qw(pip check)) {
    $directory = application($name => left_by($name) . "echo \$\$ >.agent/$name; exec sleep 1000\n");
    my $pid = begin($directory);
    wait_for("$name", sub { said($directory, $name) =~ /\n/ });
    is end_of(begin($directory)), 1, 'programs: a second build of the folder is refused';
    like slurp("$directory/output"), qr/another build of it is running/, 'programs: the message says why';
    kill INT => $pid;
    is end_of($pid), 130, 'programs: SIGINT ends the build';
    my @processes = "$name $name.left" =~ /(\S+)/g;
    is scalar(grep { is_alive($_) } map { said($directory, $_) =~ /(\d+)/g } @processes), 0,
        "programs: SIGINT ends what is executed ($name), and the daemons that it left";
    unlink "$directory/$name";
    is end_of(begin($directory)), 0, 'programs: the folder can be built after that';
}

# Also of one that does not end.
sub end_soon {
    my ($pid) = @_;
    my $ended = eval { wait_for('the end of the build', sub { waitpid $pid, WNOHANG }, 20) };
    my $status = $?;
    kill KILL => $pid, descendants_of($pid) if !$ended;
    return $ended ? $status >> 8 : 'it has not ended';
}

sub count_alive { my ($name) = @_; return scalar grep { is_alive($_) } said($directory, $name) =~ /(\d+)/g }

SKIP: {
    skip 'only as root the build is a process of its own', 9 if !is_root();
    $directory = application(check => left_by('check') . 'kill -KILL $PPID; sleep 1' . "\n");
    is end_of(begin($directory)), 1, 'programs: a build that a signal ends fails';
    like slurp("$directory/output"), qr/^agentctl: the build was ended by a signal: Killed$/m, 'programs: the message names the signal';
    is count_alive('check.left'), 0, 'programs: nothing that it has executed is left, daemons neither';
    $directory = application(check => left_by('check') . 'kill -STOP $PPID; exec sleep 1000' . "\n");
    is end_soon(begin($directory)), 1, 'programs: a build that the application stops is ended';
    like slurp("$directory/output"), qr/^agentctl: the build was killed: a signal had stopped it: Stopped \(signal\)$/m,
        'programs: the message names the signal that stopped the build';
    is count_alive('check.left'), 0, 'programs: nothing that it has executed is left';

    # Its output waits for a reader.
    $directory = application(check => "echo \$\$ >.agent/check.left; yes >&2\n");
    mkfifo("$directory/output", oct 600) or die "output: $!\n";
    open my $reader, '+<', "$directory/output" or die "output: $!\n";
    vec(my $bits = '', fileno $reader, 1) = 1;
    my $pid = begin($directory);
    wait_for('a full pipe', sub { !select undef, my $ready = $bits, undef, 0 });
    kill INT => $pid;
    # The first one has arrived.
    wait_for('the signal', sub { slurp("/proc/$pid/status") =~ /^ShdPnd:\s+0+$/m });
    kill INT => $pid;
    ok eval { wait_for('the end of what it executes', sub { !descendants_of($pid) }, 20) }, 'programs: a second signal ends a build that does not end at the first';
    sysread $reader, my $read, 65536;
    is end_soon($pid), 1, 'programs: a build that a second signal ends fails';
    is count_alive('check.left'), 0, 'programs: nothing that it has executed is left';
    close $reader;
}

done_testing;
