# SPDX-License-Identifier: Apache-2.0
# Models that stream without a pause: their runs wait for the database, and other
# runs do not wait for them.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Cost;
use AgentTest::Database;
use AgentTest::Env qw(root write_file);
use AgentTest::Server;
use File::Temp qw(tempdir);
use Test::More;

use lib root() . '/t/runner';
use ModelServer;
use RunnerTest qw(script);

my $RUNS   = 4;
my $PIECES = 25_000;

my $models = ModelServer->new;
my $model = $models->model('anthropic');
my $dir = tempdir(CLEANUP => 1);
write_file("$dir/key", "$model->{key}\n");

my ($server, $client) = AgentTest::Server->start_with_client('<AgentGraph fast>',
    'AgentModel anthropic:test', "AgentModelURL $model->{url}", "AgentModelKeyFile $dir/key", '</AgentGraph>');

sub start_fast {
    my $thread = $client->new_thread;
    return $client->post("/threads/$thread/runs", { assistant_id => 'fast',
        input => script(deltas => ['a '], times => $PIECES), stream_mode => [ 'messages-tuple', 'events' ] })->{json};
}

# Only the first call of the sub counts: a bystander that had to wait for the
# streams would still be served at the start of each call.
my @runs;
served_beside($client, 40, 'models: other requests and runs are served while runs stream at full speed', sub {
    die "others were not served\n" if @runs;
    my @begun = map { start_fast() } 1 .. $RUNS;
    $client->join_run($_) for @begun;
    push @runs, @begun;
});
is scalar(grep { $client->get_run($_)->{status} eq 'success' } @runs), scalar @runs, 'models: runs that stream at full speed succeed';
my $events = sql('select min(c) from (select count(*) c from agent.run_events where run_id in ('
    . join(', ', map { "'$_->{run_id}'" } @runs) . ') group by run_id) s');
cmp_ok $events, '>', 2 * $PIECES, 'models: runs that stream at full speed keep all events';

undef $server;
done_testing;
