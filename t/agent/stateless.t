# SPDX-License-Identifier: Apache-2.0
# POST /runs: stateless runs.
use strict;
use warnings;
use AgentTest::Client qw(run_body);
use Cpanel::JSON::XS;
use Test::More;

my $client = AgentTest::Client->new;
my $UUID = qr/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/;

sub create { return $client->post('/runs', run_body(@_)) }

my $answer = create('hello');
is $answer->{status}, 200, 'create stateless run: the response is 200';
my $run = $answer->{json};
is $run->{status}, 'pending', 'create stateless run: status is pending';
like $run->{thread_id}, qr/\A$UUID\z/, 'create stateless run: thread_id is a UUID';
is $answer->{headers}{'content-location'}, "/runs/$run->{run_id}",
    'create stateless run: Content-Location is /runs/{run_id}';
is_deeply $run->{kwargs}{temporary}, Cpanel::JSON::XS::true, 'create stateless run: kwargs.temporary is true';
is $client->join_run($run)->{messages}[0]{content}, 'hello',
    'create stateless run: the run is executed';
is $client->get_run($run)->{status}, 'success', 'create stateless run: the finished run can be read on its thread';

my $kept = create('hello', on_completion => 'keep')->{json};
is_deeply $kept->{kwargs}{temporary}, Cpanel::JSON::XS::false,
    'create stateless run: on_completion "keep" makes kwargs.temporary false';
$client->join_run($kept);
is $client->create_run($kept->{thread_id}, 'more')->{thread_id},
    $kept->{thread_id}, 'create stateless run: a kept thread accepts further runs';

is create('hello', multitask_strategy => 'rollback', if_not_exists => 'reject')->{status}, 200,
    'create stateless run: members about a thread have no effect';
for my $bad ([ on_completion => 'burn' ], [ assistant_id => 7 ],
    [ after_seconds => -1 ]) {
    my $refused = create('hello', @$bad);
    is $refused->{status}, 422, "create stateless run: a bad $bad->[0] is 422";
    like $refused->{json}{detail}, qr{\A/$bad->[0]:}, "create stateless run: the detail points at $bad->[0]";
}
is create('hello', assistant_id => 'nobody')->{json}{code},
    'assistant_not_found', 'create stateless run: an unknown assistant is assistant_not_found';
is $client->post('/runs', '[')->{status}, 400, 'create stateless run: a body that is not JSON is 400';
my $list = $client->get('/runs');
is $list->{status}, 405, 'list runs: GET /runs is 405';
like $list->{headers}{allow}, qr/\bPOST\b/, 'list runs: the 405 of /runs has Allow with POST';

my %key = ('Idempotency-Key' => "stateless-$$");
my $first = $client->post('/runs', run_body('once'), \%key);
my $second = $client->post('/runs', run_body('once'), \%key);
is $second->{json}{run_id}, $first->{json}{run_id},
    'Idempotency-Key: the second response is the stored stateless run';
is $second->{headers}{'content-location'}, "/runs/$first->{json}{run_id}",
    'Idempotency-Key: the second Content-Location is that of the stored run';
is $client->post('/runs', run_body('twice'), \%key)->{json}{code},
    'idempotency_mismatch', 'Idempotency-Key: another body is idempotency_mismatch';
is $client->post("/threads/$first->{json}{thread_id}/runs", run_body('once'),
    \%key)->{json}{code}, 'idempotency_mismatch', 'Idempotency-Key: another path is idempotency_mismatch';
$client->join_run($first->{json});

done_testing;
