# SPDX-License-Identifier: Apache-2.0
# GET .../join: heartbeats until the run is final, then its values.
use strict;
use warnings;
use AgentTest::Client qw(parse_response read_to_end read_until run_path);
use AgentTest::Gate;
use AgentTest::Server;
use Test::More;

my $gate = AgentTest::Gate->new;
my $main = AgentTest::Server->new(
    config => AgentTest::Server::shared_config() . $gate->graph);
$main->start;
my $client = AgentTest::Client->new(url => $main->url);
my $UNKNOWN = '01890000-0000-7000-8000-000000000000';

# The bytes of a response up to the end of its headers, and those after it that
# arrived with them.
sub read_head { return read_until($_[0], qr/\r\n\r\n/) }

my $thread = $client->new_thread;
my $run = $client->create_run($thread, 'use gate {} then say good bye',
    assistant_id => 'gated');
my $socket = $client->begin('GET', run_path($run) . '/join');
my $head = read_head($socket);
is $client->get_run($run)->{status}, 'pending',
    'join: the headers are sent while the run executes';
like $head, qr{\AHTTP/1.1 200 }, 'join: the status is 200';
like $head, qr{^Content-Location: \Q@{[ run_path($run) ]}\E\r}m,
    'join: Content-Location is the path of the run';
$gate->wait_calls(1);
$gate->open;
my $rest = read_to_end($socket);
is $client->get_run($run)->{status}, 'success',
    'join: the response ends when the run is final';
my $joined = parse_response($head . $rest);
is $joined->{json}{messages}[0]{content}, 'use gate {} then say good bye',
    'join: the body is the final values';

is_deeply $client->join_run($run), $joined->{json},
    'join: a finished run returns the same values';

subtest 'join: heartbeats are sent while the run executes' => sub {
    my $long = $client->create_run($client->new_thread, 'sleep 60000');
    my $waiting = $client->begin('GET', run_path($long) . '/join');
    read_until($waiting, qr/\r\n\r\n1\r\n\n\r\n/);
    pass 'join: a newline is sent as heartbeat';
    is $client->post(run_path($long) . '/cancel')->{status}, 202,
        'join: its run can be cancelled';
    my $end = read_to_end($waiting);
    like $end, qr/\r\n0\r\n\r\n\z/, 'join: after a cancel the response ends cleanly';
    is $client->get_run($long)->{status}, 'interrupted',
        'join: the run is interrupted when the response ends';
};

subtest 'join: the response never precedes the final status' => sub {
    my $early = 0;
    for my $n (1 .. 100) {
        my $quick = $client->create_run($client->new_thread, "n$n");
        $client->join_run($quick);
        $early++ if $client->get_run($quick)->{status} ne 'success';
    }
    is $early, 0, 'join: all of 100 runs are final after their join';
};

subtest 'join: ten joins of one run all end' => sub {
    my $shared = $client->create_run($client->new_thread, 'sleep 800');
    my @sockets = map { $client->begin('GET', run_path($shared) . '/join') } 1 .. 10;
    my @answers = map { $client->finish($_) } @sockets;
    is scalar(grep { $_->{status} == 200 && $_->{json}{messages} } @answers),
        10, 'join: each of ten joins of one run returns the values';
};

subtest 'join: more joins than AgentMaxWaiters are refused' => sub {
    my $server = AgentTest::Server->new(config => AgentTest::Server::shared_config()
        . "AgentMaxWaiters 1\n");
    $server->start;
    my $there = AgentTest::Client->new(url => $server->url);
    my $long = $there->create_run($there->new_thread,
        'sleep 60000');
    my @waiting = map { $there->begin('GET', run_path($long) . '/join') } 1 .. 8;
    my @heads = map { read_head($_) } @waiting;
    my @refused = grep { /\AHTTP\/1.1 503 / } @heads;
    my @accepted = grep { /\AHTTP\/1.1 200 / } @heads;
    ok @refused >= 8 - 4, 'join: joins beyond AgentMaxWaiters of a child are 503';
    ok @accepted >= 1, 'join: joins within AgentMaxWaiters wait';
    like $refused[0], qr/^Retry-After: \d+\r/m, 'join: the refusal has Retry-After';
    is $there->get('/ok')->{status}, 200, 'join: other requests are served beside refused joins';
    $there->post(run_path($long) . '/cancel?wait=1');
};

is $client->get("/threads/$thread/runs/$UNKNOWN/join")->{json}{code},
    'run_not_found', 'join: an unknown run is run_not_found';

my $rolled = $client->create_run($thread, 'sleep 60000');
my $left = $client->begin('GET', run_path($rolled) . '/join');
read_head($left);
$client->post(run_path($rolled) . '/cancel?action=rollback');
like read_to_end($left), qr/run_not_found/,
    'join: a run that is rolled back is run_not_found';

undef $main;
done_testing;
