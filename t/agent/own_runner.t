# SPDX-License-Identifier: Apache-2.0
# The runner that is the example of PROTOCOL.md, as AgentRunner of a server.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Conf qw(location);
use AgentTest::Env qw(root slurp write_file);
use AgentTest::Server;
use Cpanel::JSON::XS;
use File::Temp qw(tempdir);
use Test::More;

my $dir = tempdir('/tmp/agent-test-runner.XXXXXX', CLEANUP => 1);
chmod 0755, $dir or die "$dir: $!\n";
my ($text) = slurp(root() . '/mod_agent/runners/PROTOCOL.md') =~ /\n## Using a runner of your own\n.*?\n```python\n(.*?)^```/ms;
chmod 0755, write_file("$dir/lengths", $text) or die "$dir: $!\n";
my $server = AgentTest::Server->new(config => qq(AgentRunner "$dir/lengths"\n<AgentGraph lengths>\n    AgentModel demo\n</AgentGraph>\n)
    . location('/', 'SetHandler agent'));
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

my $thread = $client->new_thread;
for my $count (1, 2) {
    my $run = $client->create_run($thread, undef, assistant_id => 'lengths', input => { messages => [ ('x') x $count ] });
    is_deeply $client->join_run($run), { count => $count, told => Cpanel::JSON::XS::true }, "example: run $count of a thread ends with its state";
    like $client->get("/threads/$thread/runs/$run->{run_id}/stream")->{body}, qr/^event: values\r?\ndata: \{"count": ?$count, ?"told": ?true\}/m,
        "example: run $count streams it";
}
my $history = $client->get("/threads/$thread/history")->{json};
is_deeply [ map { [ @{ $_->{values} }{qw(count told)}, $_->{metadata}{step}, @{ $_->{next} } ] } @{$history} ],
    [ map { my ($count, $step) = @{$_}; [ $count, Cpanel::JSON::XS::true, $step ], [ $count, undef, $step - 1, 'tell' ], [ undef, undef, $step - 2, '__start__' ] }
        [ 2, 4 ], [ 1, 1 ] ], 'example: the history has the states of both';
is $history->[0]{parent_checkpoint_id} // $history->[0]{parent_checkpoint}{checkpoint_id}, $history->[1]{checkpoint_id} // $history->[1]{checkpoint}{checkpoint_id},
    'example: each state has its parent';
like $client->post("/threads/$thread/state", { values => { count => 5 } })->{json}{detail}, qr/UnknownOperationError: update/, 'example: an update is refused';
unlike $server->error_log, qr/AGT0331|AGT0332|AGT0347/, 'example: its process neither ends nor writes to the log';
undef $server;
done_testing;
