# SPDX-License-Identifier: Apache-2.0
# POST /runs/batch: many stateless runs, all or none.
use strict;
use warnings;
use AgentTest::Client qw(run_body);
use Cpanel::JSON::XS;
use Test::More;

my $client = AgentTest::Client->new;

sub batch { return $client->post('/runs/batch', [@_]) }

my $answer = batch(map { run_body("text $_", on_completion => 'keep') } 1 .. 20);
is $answer->{status}, 200, 'batch: the response is 200';
my @runs = @{ $answer->{json} };
is_deeply [ map { $_->{kwargs}{input}{messages}[0]{content} } @runs ],
    [ map { "text $_" } 1 .. 20 ], 'batch: the records are in the order of the request';
is_deeply [ map { $_->{status} } @runs ], [ ('pending') x 20 ], 'batch: the records are pending';
my %threads = map { $_->{thread_id} => 1 } @runs;
is scalar keys %threads, 20, 'batch: each run has its own thread';
is_deeply [ map { $client->join_run($_)->{messages}[0]{content} } @runs ],
    [ map { "text $_" } 1 .. 20 ], 'batch: all runs are executed';

my ($one) = @{ batch(run_body('alone'))->{json} };
is_deeply $one->{kwargs}{temporary}, Cpanel::JSON::XS::true, 'batch: threads are temporary by default';

my $raw = '[{"assistant_id":"agent","input":{"a":1.10,"b":9007199254740993}},'
    . '{"assistant_id":"agent","input":[1,2]}]';
like $client->post('/runs/batch', $raw)->{body},
    qr/"a":1\.10,"b":9007199254740993\}.*\[1,2\]/, 'batch: inputs are stored as the exact text';

# ---- refused as a whole ----
for my $case (
    [ [], qr{\A/: expected an array of 1 to 1000 runs}, 'an empty batch' ],
    [ {}, qr{\A/: expected an array}, 'an object' ],
    [ [ (run_body('x')) x 1001 ], qr{\A/: expected an array of 1 to 1000 runs}, 'more than 1000 runs' ],
    [ [ run_body('x'), { assistant_id => 'agent', stream_mode => 'nope' } ],
        qr{\A/1/stream_mode: }, 'a bad member' ],
    [ [ run_body('x'), run_body('y', config => { tags => [7] }) ],
        qr{\A/1/config/tags/0: }, 'a bad member deep inside' ],
    [ [ run_body('x'), 'run' ], qr{\A/1: expected an object}, 'an item that is not an object' ],
    [ [ {} ], qr{\A/0/assistant_id: }, 'an item without an assistant' ],
    [ [ run_body('x'), run_body('y', command => {}) ], qr{\A/1/command: }, 'input beside command' ],
) {
    my ($body, $detail, $what) = @$case;
    my $refused = $client->post('/runs/batch', $body);
    is $refused->{status}, 422, "batch: $what is 422";
    like $refused->{json}{detail}, $detail, "batch: the detail points at $what";
}
my $unknown = '01890000-0000-7000-8000-000000000000';
for my $id ('nobody', $unknown) {
    my $none = batch(run_body('x'), run_body('y', assistant_id => $id));
    is $none->{status}, 404, "batch: the unknown assistant $id is 404";
    like $none->{json}{detail}, qr/No assistant found for "$id"/, "batch: the detail names the assistant $id";
}
for my $case ([ 'nobody', undef, 404, qr{\A/1: No assistant} ], [ 'agent', 'http://127.0.0.1/', 422, qr{\A/1/webhook: } ]) {
    my ($assistant, $webhook, $status, $detail) = @$case;
    my $refused = batch(run_body('x'), run_body('y', assistant_id => $assistant, webhook => $webhook));
    is $refused->{status}, $status, "batch: a check of an item against the configuration is $status";
    like $refused->{json}{detail}, $detail, "batch: the detail of a $status points at the item";
}
is $client->post('/runs/batch', '[{]')->{status}, 400, 'batch: a body that is not JSON is 400';
my $keyed = $client->post('/runs/batch', [ run_body('x') ], { 'Idempotency-Key' => 'k' });
is $keyed->{status}, 422, 'batch: an Idempotency-Key is 422';
like $keyed->{json}{detail}, qr/Idempotency-Key/, 'batch: the detail names Idempotency-Key';
is $client->get('/runs/batch')->{status}, 405, 'batch: GET is 405';

my $many = batch((run_body('many')) x 1000)->{json};
is scalar @$many, 1000, 'batch: 1000 runs are accepted';
$client->join_run($_) for @$many[ 0, 500, 999 ];

done_testing;
