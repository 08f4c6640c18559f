# SPDX-License-Identifier: Apache-2.0
# Faults of an application in Python, served through httpd: its runs end or go on
# from their last checkpoint, and another application is not held up.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Env qw(build_dir root write_file);
use AgentTest::Postgres;
use AgentTest::Server;
use AgentTest::Wait;
use File::Copy qw(copy);
use File::Temp qw(tempdir);
use FindBin;
use lib $FindBin::Bin;
use SdkTest;
use Test::More;

# With the packages of the example.
my $shop = SdkTest::application('python');
plan skip_all => "the user of runners may not read $shop" if !SdkTest::is_readable($shop);
my $dir = tempdir('/tmp/agent-test-faults.XXXXXX', CLEANUP => 1);
mkdir "$dir/$_" or die "$dir/$_: $!\n" for '.agent', 'logs';
symlink "$shop/.agent/venv", "$dir/.agent/venv" or die "symlink: $!\n";
copy("$FindBin::Bin/faulty/$_", $dir) or die "$_: $!\n" for qw(graph.py langgraph.json);
chmod 0755, $dir or die "$dir: $!\n";
chmod 0777, "$dir/logs" or die "$dir/logs: $!\n";

my $postgres = AgentTest::Postgres->new;
my $server = AgentTest::Server->new(database => $postgres->conninfo, config => <<"CONF");
AgentRunner "@{[build_dir()]}/agent-runner"
AgentRunnerBusyTimeout 2s
AgentRunnerMemory 512M
<Location "/">
    SetHandler agent
</Location>
AgentApplication faulty $dir
AgentApplication shop $shop
CONF
$server->start;
my $client = AgentTest::Client->new(url => $server->url);
my $count = 0;

sub ready { my ($name) = @_; return scalar(() = $server->error_log =~ /runner \d+ of deployment default\/$name is ready/g) }
wait_for('the runners', sub { ready('faulty') && ready('shop') });

# Starts a run with that fault.
sub job {
    my ($do) = @_;
    my $log = write_file("$dir/logs/" . ++$count, '');
    chmod 0666, $log or die "$log: $!\n";
    my $run = $client->start_run(undef, assistant_id => 'jobs', input => { do => $do, log => $log });
    return { %{$run}, log => $log };
}

# The nodes that it executed, in order.
sub executed {
    my ($run) = @_;
    return join ' ', split /\n/, AgentTest::Env::slurp($run->{log});
}

sub ended {
    my ($run) = @_;
    $client->get("/threads/$run->{thread_id}/runs/$run->{run_id}/join");
    return $client->get_run($run)->{status};
}

sub ask { return $client->join_run($client->start_run('price of a cup', assistant_id => 'shop'))->{messages}[-1]{content} }

my $waiting = job('wait');
wait_for('its second node', sub { executed($waiting) eq 'first second' });

my $killed = job('die once');
is ended($killed), 'success', 'faults: a run whose process is killed goes on';
is executed($killed), 'first second second', 'faults: from its last checkpoint, a node that has finished is not repeated';
is_deeply $client->get_state($killed->{thread_id})->{values}{done}, [qw(first second)], 'faults: its state is complete';
wait_for('the other run', sub { executed($waiting) eq 'first second second' });
pass 'faults: another run of the process goes on too, from its last checkpoint';

for my $do ('leave', 'close the pipe', 'block', 'allocate') {
    my $run = job($do);
    is ask(), 'A cup is 7 EUR.', "faults: a run that shall $do does not hold up another application";
    is ended($run), 'error', "faults: a run that shall $do ends in error";
    like executed($run), qr/\Afirst(?: second)+\z/, "faults: a run that shall $do repeats no node that has finished";
    is ended(job('nothing')), 'success', "faults: after a run that shall $do the application serves others";
}
is ended(job('change directory')), 'success', 'faults: a run may change the directory';
is ended($client->start_run(undef, assistant_id => 'absent', input => {})), 'error', 'faults: a run of a graph that cannot be imported ends in error';
is $client->get_run($waiting)->{status}, 'pending', 'faults: a run that waits is not ended by the faults of others';
$client->post("/threads/$waiting->{thread_id}/runs/$waiting->{run_id}/cancel?wait=true");
is $client->get_run($waiting)->{status}, 'interrupted', 'faults: it can be cancelled';
undef $server;
done_testing;
