# SPDX-License-Identifier: Apache-2.0
# POST, GET and DELETE /threads: the record field by field, ids, metadata.
use strict;
use warnings;
use AgentTest::Client;
use Cpanel::JSON::XS;
use Test::More;

my $client = AgentTest::Client->new;
my $UUID = qr/\A[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\z/;
my $TIME = qr/\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00\z/;
my $UNKNOWN = '01890000-0000-7000-8000-000000000000';

my $created = $client->post('/threads', {});
is $created->{status}, 200, 'an empty object creates a thread';
my $thread = $created->{json};
like $thread->{thread_id}, $UUID, 'thread_id is a UUID';
like $thread->{$_}, $TIME, "$_ is ISO 8601 with its UTC offset"
    for qw(created_at updated_at);
is_deeply $thread->{metadata}, {}, 'metadata is an empty object on creation';
is_deeply $thread->{config}, {}, 'config is an empty object on creation';
is $thread->{status}, 'idle', 'status is idle on creation';
ok exists $thread->{values} && !defined $thread->{values},
    'values is null on creation';

is $client->post('/threads')->{status}, 200, 'no body is an empty object';
is $client->post('/threads', '{}', { 'Content-Type' => 'text/plain' })->{status},
    200, 'the content type of the request does not matter';

my $read = $client->get("/threads/$thread->{thread_id}");
is $read->{status}, 200, 'a thread can be read';
is_deeply $read->{json}, $thread, 'as it was created';
is $client->get("/threads/\U$thread->{thread_id}")->{status}, 200,
    'its id is read in either case';

my $given = $client->post('/threads', {
    thread_id => '018F2D6E-7C4B-7ABC-9DEF-' . sprintf('%012X', $$),
    metadata  => { purpose => 'test', nested => { a => [ 1, 2 ] } },
});
is $given->{status}, 200, 'a client may choose the id';
is $given->{json}{thread_id},
    '018f2d6e-7c4b-7abc-9def-' . sprintf('%012x', $$),
    'which is kept in lower case';
is_deeply $given->{json}{metadata},
    { purpose => 'test', nested => { a => [ 1, 2 ] } },
    'metadata is what was given';

my $again = $client->post('/threads',
    { thread_id => $given->{json}{thread_id} });
is $again->{status}, 409, 'an id that exists is refused';
is $again->{json}{code}, 'thread_exists', 'with its code';
my $same = $client->post('/threads', {
    thread_id => $given->{json}{thread_id},
    if_exists => 'do_nothing',
});
is $same->{status}, 200, 'or, when asked to, answered';
is_deeply $same->{json}{metadata}, $given->{json}{metadata},
    'with the thread that is there';

is $client->delete("/threads/$thread->{thread_id}")->{status}, 204,
    'a thread can be deleted';
my $gone = $client->get("/threads/$thread->{thread_id}");
is $gone->{status}, 404, 'and is gone then';
is_deeply [ sort keys %{ $gone->{json} } ], [qw(code detail)],
    'an error has detail and code';
is $client->delete("/threads/$thread->{thread_id}")->{status}, 404,
    'also for a second delete';
is $client->get("/threads/$UNKNOWN")->{status}, 404, 'an unknown thread is 404';

my $busy = $client->create_thread;
my $run = $client->create_run($busy->{thread_id}, 'sleep 60000');
is $client->get("/threads/$busy->{thread_id}")->{json}{status}, 'busy',
    'a thread with an active run is busy';
is $client->delete("/threads/$busy->{thread_id}")->{status}, 204,
    'a thread can be deleted while a run is active';
is $client->get(AgentTest::Client::run_path($run))->{status}, 404,
    'and its run is gone with it';

done_testing;
