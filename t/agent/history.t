# SPDX-License-Identifier: Apache-2.0
# GET and POST /threads/{thread_id}/history, POST .../state/checkpoint, and select.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Database;
use Test::More;

my $client = AgentTest::Client->new;
my $thread = $client->new_thread;
$client->join_run($client->create_run($thread, 'First'));
my $run = $client->create_run($thread, 'use clock {}');
$client->join_run($run);
my $path = "/threads/$thread/history";
my $missing = '01990000-0000-7000-8000-000000000000';

my $all = $client->get("$path?limit=1000")->{json};
my @ids = map { $_->{checkpoint_id} } @{$all};

sub ids { my ($answer) = @_; return [ map { $_->{checkpoint_id} } @{ $answer->{json} } ] }

subtest 'history: it has a state for each step, newest first' => sub {
    is scalar @ids, 8, 'history: runs of one and of three nodes have 3 and 5 states';
    is_deeply $all->[0], $client->get_state($thread), 'history: the first one is the state of the thread';
    is_deeply $all->[$_], $client->get("/threads/$thread/state/$ids[$_]")->{json}, "history: state $_ is that at its checkpoint" for 1 .. $#ids;
    is_deeply [ map { $_->{parent_checkpoint_id} } @{$all} ], [ @ids[ 1 .. $#ids ], undef ], 'history: each one follows the next one';
    is_deeply $all->[-1]{next}, ['__start__'], 'history: the oldest is before the first input';
    is_deeply $client->get($path)->{json}, $all, 'history: the default of limit is 10';
    is_deeply $client->post($path)->{json}, $all, 'history: POST without a body has the defaults';
    is_deeply $client->get('/threads/' . $client->new_thread . '/history')->{json}, [], 'history: a new thread has none';
};

subtest 'history: limit and before page through it' => sub {
    my $first = $client->get("$path?limit=3");
    is_deeply ids($first), [ @ids[ 0 .. 2 ] ], 'history: limit';
    is $first->{headers}{'x-pagination-next'}, $ids[2], 'history: X-Pagination-Next is before of the next page';
    is_deeply ids($client->get("$path?limit=3&before=$ids[2]")), [ @ids[ 3 .. 5 ] ], 'history: before in the query string';
    for my $before ($ids[5], { checkpoint_id => $ids[5], thread_id => $thread }, { configurable => { checkpoint_id => $ids[5] } }) {
        my $answer = $client->post($path, { limit => 3, before => $before });
        is_deeply ids($answer), [ @ids[ 6, 7 ] ], 'history: before in the body';
        is $answer->{headers}{'x-pagination-next'}, undef, 'history: the last page has no X-Pagination-Next';
    }
};

subtest 'history: filters' => sub {
    is_deeply ids($client->post($path, { metadata => { run_id => $run->{run_id} } })), [ @ids[ 0 .. 4 ] ], 'history: metadata of a run';
    is_deeply ids($client->post($path, { metadata => { source => 'input' } })), [ @ids[ 4, 7 ] ], 'history: metadata of a step';
    is_deeply ids($client->post($path, { metadata => { x => 1 } })), [], 'history: metadata that no state has';
    is_deeply ids($client->post($path, { checkpoint => $all->[3]{checkpoint} })), [ $ids[3] ], 'history: one checkpoint';
    is_deeply ids($client->post($path, { checkpoint => { checkpoint_ns => 'sub:1' } })), [], 'history: a namespace without states';
};

subtest 'history: a state is found with its checkpoint' => sub {
    my $at = sub { return $client->post("/threads/$thread/state/checkpoint", { checkpoint => $_[0] }) };
    is_deeply $at->($all->[2]{checkpoint})->{json}, $all->[2], 'state/checkpoint: the state at a checkpoint';
    is_deeply $at->({})->{json}, $all->[0], 'state/checkpoint: without an id the newest state';
    is_deeply $at->({ checkpoint_ns => '', checkpoint_map => { '' => $ids[1] } })->{json}, $all->[1], 'state/checkpoint: checkpoint_map';
    is $at->({ checkpoint_id => $missing })->{json}{code}, 'checkpoint_not_found', 'state/checkpoint: an unknown id';
    is $at->({ checkpoint_ns => 'sub:1' })->{json}{code}, 'checkpoint_not_found', 'state/checkpoint: an unknown namespace';
};

subtest 'history: select returns only the named members' => sub {
    for my $case ([ 'a list' => 'select=values&select=next' ], [ 'a JSON list' => 'select=["values","next"]' ], [ 'words' => 'select=next,values' ]) {
        my ($title, $query) = @{$case};
        my %of = map { $_ => $all->[0]{$_} } qw(values next);
        is_deeply $client->get("$path?limit=1&$query")->{json}, [ \%of ], "history: select as $title";
        is_deeply $client->get("/threads/$thread/state?$query")->{json}, \%of, "state: select as $title";
        is_deeply $client->get("/threads/$thread/state/$ids[0]?$query")->{json}, \%of, "state at a checkpoint: select as $title";
    }
    is_deeply $client->post($path, { limit => 1, select => ['tasks'] })->{json}, [ { tasks => [] } ], 'history: select of a body';
    is_deeply $client->post("/threads/$thread/state/checkpoint", { checkpoint => {}, select => ['next'] })->{json}, { next => [] },
        'state/checkpoint: select';
};

subtest 'state: with subgraphs a built-in graph has the same state' => sub {
    my $state = $client->get_state($thread);
    is_deeply $client->get("/threads/$thread/state?subgraphs=true")->{json}, $state, 'state: subgraphs of the newest state';
    is_deeply $client->get("/threads/$thread/state/$ids[2]?subgraphs=1")->{json}, $all->[2], 'state: subgraphs of an older state';
    is_deeply $client->post("/threads/$thread/state/checkpoint", { checkpoint => {}, subgraphs => \1 })->{json}, $state,
        'state/checkpoint: subgraphs';
    is_deeply $client->get("/threads/$thread/state?subgraphs=true&select=next")->{json}, { next => [] }, 'state: subgraphs and select';
    is $client->get("/threads/$thread/state/$missing?subgraphs=true")->{json}{code}, 'checkpoint_not_found', 'state: subgraphs of an unknown checkpoint';
    is $client->get("/threads/$thread/state?subgraphs=x")->{status}, 422, 'state: subgraphs is a flag';
};

subtest 'history: wrong requests' => sub {
    is $client->get("/threads/$missing/history")->{json}{code}, 'thread_not_found', 'history: an unknown thread';
    is $client->post("/threads/$missing/state/checkpoint", { checkpoint => {} })->{json}{code}, 'thread_not_found',
        'state/checkpoint: an unknown thread';
    is $client->get("$path?$_")->{status}, 422, "history: $_ is 422"
        for qw(limit=0 limit=1001 limit=x before=x select=x select=values.messages);
    for my $case ([ limit => 0 ], [ limit => '1' ], [ before => 'x' ], [ before => { checkpoint_id => 1 } ], [ metadata => [] ],
        [ checkpoint => 'x' ], [ checkpoint => { checkpoint_id => 'x' } ], [ checkpoint => { checkpoint_ns => 'x' x 2049 } ],
        [ checkpoint => { thread_id => $missing } ], [ select => 'x' ], [ select => [1] ]) {
        my $answer = $client->post($path, {@{$case}});
        is $answer->{status}, 422, "history: a wrong $case->[0] is 422";
        like $answer->{json}{detail}, qr{\A/$case->[0]}, "history: the pointer of $case->[0]";
    }
    is $client->post("/threads/$thread/state/checkpoint", {})->{status}, 422, 'state/checkpoint: checkpoint is required';
    is $client->post($path, { metadata => { map { $_ => 'x' x 500 } 1 .. 64 }, other => 'x' x 40_000 })->{status}, 413,
        'history: a body of more than 64 KB is 413';
};

subtest 'history: a large one is composed in a turn, in pages' => sub {
    my $large = $client->new_thread;
    my $text = 'x' x 3_000_000;
    for (1 .. 2) {
        $client->join_run($client->create_run($large, $text));
    }
    is_deeply $client->get("/threads/$large/state?subgraphs=true")->{json}, $client->get_state($large),
        'state: a large one with subgraphs is composed in a turn';
    my ($pages, $before, %seen) = (0, '');
    for (;; $pages++) {
        my $answer = $client->get("/threads/$large/history?limit=100$before");
        is $answer->{status}, 200, 'history: a page of large states';
        cmp_ok length $answer->{body}, '<', 40_000_000, 'history: a page is bounded';
        $seen{$_}++ for @{ ids($answer) };
        my $next = $answer->{headers}{'x-pagination-next'} // last;
        $before = "&before=$next";
    }
    cmp_ok $pages, '>', 0, 'history: large states take several pages';
    is_deeply [ values %seen ], [ (1) x 6 ], 'history: all pages together have each state once';
};

done_testing;
