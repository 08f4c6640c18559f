# SPDX-License-Identifier: Apache-2.0
# 32 clients create a run on one thread at the same moment: one is accepted.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Env qw(is_sanitized);
use AgentTest::Storm;
use Test::More;

my $ROUNDS = is_sanitized() ? 100 : 1000;
my $CLIENTS = 32;

my $client = AgentTest::Client->new;
my $storm  = AgentTest::Storm->new($client, $CLIENTS);
my $body   = '{"assistant_id":"agent","multitask_strategy":"reject",'
    . '"input":{"messages":[{"role":"user","content":"sleep 60000"}]}}';
my ($good, %seen) = (0);

for my $round (1 .. $ROUNDS) {
    my $thread = $client->new_thread;
    my %statuses;
    $statuses{$_}++ for $storm->round('POST', "/threads/$thread/runs", $body);
    $good++ if ($statuses{200} // 0) == 1
        && ($statuses{409} // 0) == $CLIENTS - 1;
    $seen{$_} += $statuses{$_} for keys %statuses;
    # The run would keep its slot for a minute.
    $client->delete("/threads/$thread");
}
is $good, $ROUNDS,
    "reject: of 32 concurrent runs one is created, in each of $ROUNDS rounds";
is_deeply [ sort keys %seen ], [ 200, 409 ], 'reject: of concurrent runs, all that are not created are 409';

done_testing;
