# SPDX-License-Identifier: Apache-2.0
# The applications of t/bench/applications.pl: installed, served, and executed by the
# bare libraries.
package BenchApplications;
use strict;
use warnings;
use AgentTest::Env qw(build_dir root slurp);
use AgentTest::Wait;
use lib root() . '/t/sdk';
use BenchHttp qw(request);
use BenchRuns qw(call_200 timed_ms);
use BenchServer;
use Exporter 'import';
use File::Temp qw(tempdir);
use SdkTest;

our @EXPORT_OK = qw(prepare serve bare_ms start_ms runner_pids new_thread run_body create_and_join @LANGUAGES $ANSWER);

our @LANGUAGES = qw(python javascript);
our $ANSWER = 'You said: hello';

my $SOURCE = root() . '/t/bench/applications';

# {directory, program, runner, bare}: a copy that every user may read, with the packages
# of the tests' applications.
sub prepare {
    my ($language) = @_;
    my $packages = SdkTest::application($language);
    my $directory = tempdir('/tmp/agent-bench-application.XXXXXX', CLEANUP => 1);
    chmod 0755, $directory;
    system('cp', '-R', "$SOURCE/$language/.", $directory) == 0 or die "cp failed\n";
    my @links = $language eq 'python' ? ('.agent') : ('node_modules', 'package.json');
    symlink "$packages/$_", "$directory/$_" or die "symlink $_: $!\n" for @links;
    my %of = (
        python     => [ "$directory/.agent/venv/bin/python", 'python', 'bare.py' ],
        javascript => [ SdkTest::node(), 'node/main.mjs', 'bare.mjs' ],
    );
    my ($program, $runner, $bare) = @{ $of{$language} };
    return { directory => $directory, program => $program, runner => build_dir() . "/runners/$runner", bare => $bare };
}

# A server of applications (language -> one of prepare()), whose graphs can be run.
sub serve {
    my ($applications, $config) = @_;
    my $server = BenchServer->new(config => ($config // BenchServer::default_config())
        . join('', map { "AgentApplication $_ $applications->{$_}{directory}\n" } sort keys %{$applications})
        . ($applications->{javascript} ? "AgentNodeProgram $applications->{javascript}{program}\n" : ''));
    my $client = BenchHttp->new($server->port);
    for my $language (sort keys %{$applications}) {
        wait_for("the report of $language", sub {
            call_200($client, request('POST', '/assistants/search', qq({"graph_id":"$language"})))->{bytes} =~ /assistant_id/
                && call_200($client, request('GET', "/assistants/$language/graph"))->{bytes} =~ /"id"/ });
    }
    return $server;
}

# The processes that execute runs of the language.
sub runner_pids {
    my ($language) = @_;
    my $program = build_dir() . '/runners/' . ($language eq 'python' ? 'python' : 'node/main.mjs');
    return grep { slurp("/proc/$_/cmdline") =~ /\0\Q$program\E\0/ } map { m{(\d+)} } glob '/proc/[0-9]*';
}

# --- Runs ---------------------------------------------------------------------------

sub run_body { return qq({"assistant_id":"$_[0]","input":{"messages":[{"role":"user","content":"hello"}]}}) }

sub new_thread {
    my ($client) = @_;
    return call_200($client, request('POST', '/threads', '{}'))->{bytes} =~ /"thread_id"\s*:\s*"([0-9a-f-]{36})"/
        ? $1 : die "no thread\n";
}

sub create_and_join {
    my ($client, $thread, $graph) = @_;
    my ($run) = call_200($client, request('POST', "/threads/$thread/runs", run_body($graph)))->{bytes} =~ /"run_id"\s*:\s*"([0-9a-f-]{36})"/;
    my $joined = call_200($client, request('GET', "/threads/$thread/runs/$run/join"))->{bytes};
    $joined =~ /\Q$ANSWER\E/ or die "a run failed: $joined\n";
    return;
}

# --- Without a server ------------------------------------------------------------------

# Milliseconds of processor time in the bare library: of a run (`runs`, their number), or
# of the tenth and the last turn of a chat (`chat`, its turns).
sub bare_ms {
    my ($application, $what, $count) = @_;
    my $command = "cd '$application->{directory}' && '$application->{program}' $application->{bare} $what $count";
    my $output = qx($command);
    die "the bare library failed\n" if $?;
    return split ' ', $output;
}

# Milliseconds until a runner has imported its graphs: the median of five.
sub start_ms {
    my ($application) = @_;
    my $command = "cd '$application->{directory}' && '$application->{program}' '$application->{runner}' --check >/dev/null";
    my @times = sort { $a <=> $b } map { timed_ms(sub { system($command) == 0 or die "the runner failed\n" }) } 1 .. 5;
    return $times[2];
}

1;
