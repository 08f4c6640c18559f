# SPDX-License-Identifier: Apache-2.0
# The applications of this folder, and runs of them that wait until the test goes on.
#
#   my $run = start_job($client, 'jobs', 'wait');
#   wait_for('the node', sub { executed($run) eq 'first second' });
#   release($run);
package FaultyJob;
use strict;
use warnings;
use AgentTest::Applications qw(folder_of);
use AgentTest::Env qw(root slurp write_file);
use AgentTest::Wait;
use Exporter 'import';
use Fcntl qw(O_NONBLOCK O_WRONLY);
use File::Temp qw(tempdir);
use POSIX qw(mkfifo);

our @EXPORT_OK = qw(application start_job release executed);

my $FOLDER = root() . '/t/agent/faulty';
my %SUFFIX = (python => 'py', javascript => 'mjs');

# application('python', 'graph', NAME => what of the module): a folder with these graphs.
sub application {
    my ($language, $module, %graphs) = @_;
    my $suffix = $SUFFIX{$language};
    return folder_of($language,
        { dependencies => ['.'], graphs => { map { $_ => "./$module.$suffix:$graphs{$_}" } keys %graphs } },
        map { ("$_.$suffix" => slurp("$FOLDER/$_.$suffix")) } $module, 'job');
}

my $logs;
my $count = 0;

# Starts a run of a graph that does that: the run, with its input.
sub start_job {
    my ($client, $graph, $do, %more) = @_;
    if (!$logs) {
        $logs = tempdir('/tmp/agent-test-jobs.XXXXXX', CLEANUP => 1);
        chmod 0777, $logs or die "$logs: $!\n";
    }
    my $log = write_file("$logs/" . ++$count, '');
    my %input = (do => $do, log => $log, gate => "$log-gate");
    mkfifo($input{gate}, 0666) or die "$input{gate}: $!\n";
    chmod 0666, $log, $input{gate} or die "$log: $!\n";
    return { %{ $client->start_run(undef, assistant_id => $graph, input => \%input, %more) }, %input };
}

# Waits until a run waits, and lets it continue.
sub release {
    my ($run) = @_;
    my $gate;
    wait_for('the run to wait', sub { sysopen $gate, $run->{gate}, O_WRONLY | O_NONBLOCK });
    return close $gate;
}

# The nodes that it has executed, in order.
sub executed { my ($run) = @_; return join ' ', split /\n/, slurp($run->{log}) }

1;
