# SPDX-License-Identifier: Apache-2.0
# POST /runs: a run without a thread of the client's.
use strict;
use warnings;
use AgentTest::Client;
use Cpanel::JSON::XS;
use Test::More;

my $client = AgentTest::Client->new;
my $UUID = qr/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/;

sub body {
    my ($text, %more) = @_;
    return { assistant_id => 'agent', %more,
        input => { messages => [ { role => 'user', content => $text } ] } };
}

sub create { return $client->post('/runs', body(@_)) }

my $answer = create('hello');
is $answer->{status}, 200, 'a run needs no thread';
my $run = $answer->{json};
is $run->{status}, 'pending', 'it is answered at once';
like $run->{thread_id}, qr/\A$UUID\z/, 'its record names the thread it got';
is $answer->{headers}{'content-location'}, "/runs/$run->{run_id}",
    'Content-Location is the run alone';
is_deeply $run->{kwargs}{temporary}, Cpanel::JSON::XS::true, 'it is temporary';
is $client->join_run($run)->{messages}[0]{content}, 'hello',
    'and executed like any other';
is $client->get_run($run)->{status}, 'success', 'its record can still be read';

my $kept = create('hello', on_completion => 'keep')->{json};
is_deeply $kept->{kwargs}{temporary}, Cpanel::JSON::XS::false,
    'on_completion keep makes a thread that stays';
$client->join_run($kept);
is $client->create_run($kept->{thread_id}, 'more')->{thread_id},
    $kept->{thread_id}, 'which takes further runs';

is create('hello', multitask_strategy => 'rollback', if_not_exists => 'reject',
    checkpoint_id => $run->{run_id})->{status}, 200,
    'members that are about a thread have no effect';
for my $bad ([ on_completion => 'burn' ], [ assistant_id => 7 ],
    [ after_seconds => -1 ]) {
    my $refused = create('hello', @$bad);
    is $refused->{status}, 422, "a bad $bad->[0] is refused";
    like $refused->{json}{detail}, qr{\A/$bad->[0]:}, 'with its pointer';
}
is create('hello', assistant_id => 'nobody')->{json}{code},
    'assistant_not_found', 'an unknown assistant is 404';
is $client->post('/runs', '[')->{status}, 400, 'what is not JSON is 400';
my $list = $client->get('/runs');
is $list->{status}, 405, 'runs are listed by thread only';
like $list->{headers}{allow}, qr/\bPOST\b/, 'and Allow says what there is';

my %key = ('Idempotency-Key' => "stateless-$$");
my $first = $client->post('/runs', body('once'), \%key);
my $second = $client->post('/runs', body('once'), \%key);
is $second->{json}{run_id}, $first->{json}{run_id},
    'the same Idempotency-Key and body answer the stored run';
is $second->{headers}{'content-location'}, "/runs/$first->{json}{run_id}",
    'and its place';
is $client->post('/runs', body('twice'), \%key)->{json}{code},
    'idempotency_mismatch', 'another body is refused';
is $client->post("/threads/$first->{json}{thread_id}/runs", body('once'),
    \%key)->{json}{code}, 'idempotency_mismatch', 'another path too';
$client->join_run($first->{json});

done_testing;
