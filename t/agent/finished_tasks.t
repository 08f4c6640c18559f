# SPDX-License-Identifier: Apache-2.0
# Of two parallel nodes one has ended when the other one fails, asks, is cancelled or is lost with its
# process: the thread goes on without executing the first one again, in both languages.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../runner";
use AgentTest::Applications qw(folder_of python);
use AgentTest::Client qw(run_path);
use AgentTest::Database qw(sql poll);
use AgentTest::Env qw(build_dir slurp write_file);
use AgentTest::Server;
use AgentTest::Wait;
use Fcntl qw(O_NONBLOCK O_WRONLY);
use File::Temp qw(tempdir);
use POSIX qw(mkfifo);
use Test::More;

my %FILE = (python => 'graph.py', javascript => 'graph.mjs');

# The runner's user enters them.
sub open_to_all { my ($dir) = @_; chmod 0755, $dir or die "$dir: $!\n"; return $dir }

my %folder = map {
    my $file = $FILE{$_};
    ($_ => open_to_all(folder_of($_, { dependencies => ['.'], graphs => { "$_-fan" => "./$file:fan", "$_-outer" => "./$file:outer" } },
        $file => slurp("$FindBin::Bin/parallel/$file"))))
} sort keys %FILE;
my $logs = tempdir('/tmp/agent-test-parallel.XXXXXX', CLEANUP => 1);
chmod 0777, $logs or die "$logs: $!\n";
my $applications = join "\n", map { "AgentApplication $_ $folder{$_}" } sort keys %folder;
my $server = AgentTest::Server->new(config => <<"CONF");
AgentRunner "@{[ build_dir() ]}/agent-runner"
AgentPythonProgram "${\ python() }"
<Location "/">
    SetHandler agent
</Location>
$applications
CONF
$server->start;
my $client = AgentTest::Client->new(url => $server->url);
my $count = 0;

# Starts a run whose node b does that the first time, and waits until the result of a is stored.
sub begin {
    my ($graph, $do) = @_;
    my $log = write_file("$logs/" . ++$count, '');
    my %input = (do => $do, log => $log, gate => "$log-gate");
    mkfifo($input{gate}, 0666) or die "$input{gate}: $!\n";
    chmod 0666, $log, $input{gate} or die "$log: $!\n";
    my $run = $client->start_run(undef, assistant_id => $graph, input => \%input);
    wait_for('b to begin', sub { "@{[ executed($log) ]}" =~ /\bb\b/ });
    wait_for('the writes of a', sub {
        poll("select count(*) from agent.checkpoint_writes where thread_id = '$run->{thread_id}' and channel = 'done'") > 0 });
    return { %{$run}, %input };
}

# The nodes that were executed, in the order of their names.
sub executed { my ($log) = @_; return sort split /\n/, slurp($log) }

sub release {
    my ($run) = @_;
    my $gate;
    wait_for('b to wait', sub { sysopen $gate, $run->{gate}, O_WRONLY | O_NONBLOCK });
    return close $gate;
}

sub check {
    my ($title, $graph, $run, $values) = @_;
    is join(' ', sort @{ $values->{done} // [] }), 'a b c', "$title: the state has the results of all nodes" or diag explain $values;
    is join(' ', executed($run->{log})), $graph =~ /outer/ ? 'a b b before c' : 'a b b c', "$title: the one that has ended is not executed again";
    return;
}

# Of the thread of the run.
my %STATUS = (fail => 'error', ask => 'interrupted', wait => 'interrupted');
for my $graph (map { my $language = $_; map { "$language-$_" } qw(fan outer) } sort keys %FILE) {
    my $lost = begin($graph, 'die');
    release($lost);
    my $values = $client->join_run($lost);
    is $client->get_run($lost)->{status}, 'success', "$graph: a run whose process is killed goes on";
    check("$graph: a node is killed beside one that has ended", $graph, $lost, $values);
    for my $do (sort keys %STATUS) {
        my $title = "$graph: a node does '$do' beside one that has ended";
        my $run = begin($graph, $do);
        release($run) if $do eq 'fail';
        $client->post(run_path($run) . '/cancel?wait=1', {}) if $do eq 'wait';
        $client->join_run($run);
        is $client->get("/threads/$run->{thread_id}")->{json}{status}, $STATUS{$do}, "$title: the thread has the status $STATUS{$do}";
        my %next = $do eq 'ask' ? (command => { resume => 'b' }) : (input => undef);
        my $answer = $client->post("/threads/$run->{thread_id}/runs/wait", { assistant_id => $graph, %next });
        check($title, $graph, $run, $answer->{json});
    }
}
undef $server;
done_testing;
