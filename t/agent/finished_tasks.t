# SPDX-License-Identifier: Apache-2.0
# Of two parallel nodes one has ended when the other one fails, asks, is cancelled or is lost with its
# process: the state has its update, and the thread goes on without executing it again, in both languages.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/faulty";
use AgentTest::Applications qw(serve_applications);
use AgentTest::Client qw(run_path);
use AgentTest::Database qw(poll);
use AgentTest::Server;
use AgentTest::Wait;
use FaultyJob qw(application start_job release executed);
use Test::More;

my @LANGUAGES = qw(javascript python);
my %folder = map { $_ => application($_, 'parallel', "$_-fan" => 'fan', "$_-outer" => 'outer') } @LANGUAGES;
my $server = AgentTest::Server->new(config => serve_applications(%folder));
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

# Starts a run whose node b does that the first time, and waits until the result of a is stored.
sub begin {
    my ($graph, $do) = @_;
    my $run = start_job($client, $graph, $do);
    wait_for('b to begin', sub { executed($run) =~ /\bb\b/ });
    wait_for('the writes of a', sub {
        poll("select count(*) from agent.checkpoint_writes where thread_id = '$run->{thread_id}' and channel = 'done'") > 0 });
    return $run;
}

sub check {
    my ($title, $graph, $run, $values) = @_;
    is join(' ', sort @{ $values->{done} // [] }), 'a b c', "$title: the state has the results of all nodes" or diag explain $values;
    is join(' ', sort split / /, executed($run)), $graph =~ /outer/ ? 'a b b before c' : 'a b b c', "$title: the one that has ended is not executed again";
    return;
}

sub state_of {
    my ($run, @at) = @_;
    my $state = $client->get(join '/', "/threads/$run->{thread_id}/state", @at)->{json};
    return [ $state->{values}{done} // [], [ sort @{ $state->{next} } ], $state->{checkpoint_id} ];
}

# As get_state of the libraries: of a step of the root graph that has not ended.
sub check_state {
    my ($title, $graph, $run) = @_;
    my $now = state_of($run);
    is_deeply [ @$now[ 0, 1 ] ], $graph =~ /outer/ ? [ [], ['inner'] ] : [ ['a'], ['b'] ], "$title: the state has its update, and the other one as next";
    is_deeply [ @{ state_of($run, $now->[2]) }[ 0, 1 ] ], [ [], $graph =~ /outer/ ? ['inner'] : [ 'a', 'b' ] ],
        "$title: the checkpoint is that before the step";
    return;
}

# Of the thread of the run.
my %STATUS = (fail => 'error', ask => 'interrupted', wait => 'interrupted');
for my $graph (map { my $language = $_; map { "$language-$_" } qw(fan outer) } @LANGUAGES) {
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
        check_state($title, $graph, $run);
        my %next = $do eq 'ask' ? (command => { resume => 'b' }) : (input => undef);
        my $answer = $client->post("/threads/$run->{thread_id}/runs/wait", { assistant_id => $graph, %next });
        check($title, $graph, $run, $answer->{json});
    }
}
undef $server;
done_testing;
