# SPDX-License-Identifier: Apache-2.0
# Create, get, list and delete run: the record and its kwargs field by field.
use strict;
use warnings;
use AgentTest::Client;
use Cpanel::JSON::XS;
use Test::More;

my $client = AgentTest::Client->new;
my $UUID = qr/\A[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\z/;
my $TIME = qr/\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00\z/;
my $ASSISTANT = 'fe096781-5601-53d2-b2f6-0d3403f7e9ca';
my $UNKNOWN = '01890000-0000-7000-8000-000000000000';

my $thread = $client->create_thread->{thread_id};
is_deeply $client->get("/threads/$thread/runs")->{json}, [],
    'a thread without runs has an empty list of them';

my $answer = $client->post("/threads/$thread/runs", {
    assistant_id => 'agent',
    input => { messages => [ { role => 'user', content => 'hello' } ] },
});
is $answer->{status}, 200, 'create run answers at once';
my $run = $answer->{json};
is $answer->{headers}{'content-location'},
    "/threads/$thread/runs/$run->{run_id}", 'and says where the run is';
like $run->{run_id}, $UUID, 'run_id is a UUID';
is $run->{thread_id}, $thread, 'thread_id is the owning thread';
is $run->{assistant_id}, $ASSISTANT,
    'assistant_id is the resolved assistant, also for a graph name';
like $run->{$_}, $TIME, "$_ is ISO 8601" for qw(created_at updated_at);
is_deeply $run->{metadata}, {}, 'metadata is empty by default';
is $run->{status}, 'pending', 'status is pending';
is $run->{multitask_strategy}, 'reject',
    'a run created without a strategy reports reject';

my $kwargs = $run->{kwargs};
is_deeply $kwargs->{input},
    { messages => [ { role => 'user', content => 'hello' } ] },
    'kwargs.input is the input as given';
ok defined $kwargs->{config}{metadata}{created_by},
    'kwargs.config.metadata has created_by';
is_deeply $kwargs->{config}{configurable}, {
    run_id => $run->{run_id}, user_id => '', graph_id => 'agent',
    thread_id => $thread, assistant_id => $ASSISTANT, checkpoint_id => undef,
}, 'kwargs.config.configurable names run, user, graph, thread, assistant';
is $kwargs->{webhook}, undef, 'kwargs.webhook is null by default';
is_deeply $kwargs->{temporary}, Cpanel::JSON::XS::false,
    'kwargs.temporary is false by default';
is_deeply $kwargs->{stream_mode}, ['values'],
    'kwargs.stream_mode is ["values"] by default';
ok exists $kwargs->{$_} && !defined $kwargs->{$_},
    "kwargs.$_ is null by default"
    for qw(webhook feedback_keys interrupt_after interrupt_before);

$client->join_run($run);
my $done = $client->get_run($run);
is $done->{status}, 'success', 'after join the run reports success';
is_deeply $done->{kwargs}, $kwargs, 'its kwargs stay what they were';

# What is given is what is kept, byte for byte where it is the client's own.
my $raw = '{"assistant_id":"' . uc($ASSISTANT) . '",'
    . '"input":{"messages":[{"role":"human","content":"b\u00e4h"}],'
    . '"big":9007199254740993,"z":1.10,"a":[]},'
    . '"metadata":{"k":"v"},"multitask_strategy":"interrupt",'
    . '"config":{"configurable":{"colour":"red"},"tags":["x"],'
    . '"recursion_limit":7},"stream_mode":["values","updates"],'
    . '"interrupt_before":["tools"],"interrupt_after":"*",'
    . '"webhook":"https://hooks.invalid/x","feedback_keys":["good"]}';
my $full = $client->post("/threads/$thread/runs", $raw,
    { 'x-user-id' => 'user-17' });
is $full->{status}, 200, 'an assistant may be named by its id, in any case';
like $full->{body}, qr/"big":9007199254740993,"z":1\.10,"a":\[\]/,
    'input stays the exact text';
my $k = $full->{json}{kwargs};
is $full->{json}{multitask_strategy}, 'interrupt',
    'the strategy is the one asked for';
is_deeply $full->{json}{metadata}, { k => 'v' }, 'metadata is kept';
is $k->{config}{configurable}{colour}, 'red', 'configurable is kept';
is $k->{config}{configurable}{user_id}, 'user-17',
    'x-user-id is the user of the run';
is_deeply $k->{config}{tags}, ['x'], 'tags are kept';
is_deeply $k->{stream_mode}, [qw(values updates)], 'stream_mode is kept';
is_deeply $k->{interrupt_before}, ['tools'], 'interrupt_before is kept';
is $k->{interrupt_after}, '*', 'interrupt_after is kept';
is $k->{webhook}, 'https://hooks.invalid/x', 'webhook is kept';
is_deeply $k->{feedback_keys}, ['good'], 'feedback_keys are kept';
$client->join_run($full->{json});

my $one = $client->post("/threads/$thread/runs",
    { assistant_id => 'agent', stream_mode => 'updates' });
is $one->{status}, 200, 'input may be omitted';
is_deeply $one->{json}{kwargs}{stream_mode}, ['updates'],
    'one stream mode is shown as an array';
$client->join_run($one->{json});

# ---- lists ----
my $list = $client->get("/threads/$thread/runs")->{json};
is_deeply [ map { $_->{run_id} } @$list ],
    [ $one->{json}{run_id}, $full->{json}{run_id}, $run->{run_id} ],
    'runs are listed newest first';
is_deeply $list->[2], $client->get_run($run), 'as get run shows them';
is_deeply [ map { $_->{run_id} }
        @{ $client->get("/threads/$thread/runs?limit=1&offset=1")->{json} } ],
    [ $full->{json}{run_id} ], 'limit and offset cut the list';
is scalar @{ $client->get("/threads/$thread/runs?status=pending")->{json} }, 0,
    'status filters';
for my $select ('select=run_id&select=status', 'select=["run_id","status"]',
    'select=run_id,status') {
    my $rows = $client->get("/threads/$thread/runs?$select")->{json};
    is_deeply [ sort keys %{ $rows->[0] } ], [qw(run_id status)],
        "$select selects fields";
}
for my $bad (qw(limit=0 limit=1001 limit=-1 limit=1e3 limit=5x limit= offset=-1
    offset=4294967296 status=done select=nope select=[1])) {
    my $refused = $client->get("/threads/$thread/runs?$bad");
    is $refused->{status}, 422, "$bad is refused";
    like $refused->{json}{detail}, qr/\A?Query parameter (limit|offset|status|select)/,
        'with the name of the parameter';
}
is $client->get("/threads/$thread/runs?limit=3&unknown=1")->{status}, 200,
    'unknown query parameters are ignored';

# ---- what is not there ----
is $client->get("/threads/$UNKNOWN/runs")->{status}, 404,
    'runs of an unknown thread are 404';
is $client->get("/threads/$thread/runs/$UNKNOWN")->{json}{code},
    'run_not_found', 'an unknown run is 404';
my $other = $client->create_thread->{thread_id};
is $client->get("/threads/$other/runs/$run->{run_id}")->{status}, 404,
    'a run is found on its own thread only';
is $client->post("/threads/$UNKNOWN/runs", { assistant_id => 'agent' })
    ->{json}{code}, 'thread_not_found', 'a run needs its thread';
my $new = sprintf '01890000-0000-7000-8000-%012x', $$;
my $made = $client->post("/threads/$new/runs",
    { assistant_id => 'agent', if_not_exists => 'create' });
is $made->{status}, 200, 'unless if_not_exists is create';
$client->join_run($made->{json});
for my $id ('nobody', $UNKNOWN) {
    my $none = $client->post("/threads/$thread/runs", { assistant_id => $id });
    is $none->{status}, 404, "assistant $id is not found";
    is $none->{json}{code}, 'assistant_not_found', 'with its code';
}

# ---- delete ----
my $busy = $client->create_run($other, 'sleep 60000');
is $client->delete(AgentTest::Client::run_path($busy))->{json}{code},
    'run_active', 'an active run cannot be deleted';
is $client->post(AgentTest::Client::run_path($busy) . '/cancel?wait=1')
    ->{status}, 204, 'it must be cancelled first';
is $client->delete(AgentTest::Client::run_path($busy))->{status}, 204,
    'then it can';
is $client->get(AgentTest::Client::run_path($busy))->{status}, 404,
    'and is gone';

# ---- idempotency ----
my %body = (assistant_id => 'agent', metadata => { n => 1 });
my %key = ('Idempotency-Key' => "key-$$");
my $first = $client->post("/threads/$other/runs", \%body, \%key);
$client->join_run($first->{json});
my $second = $client->post("/threads/$other/runs", \%body, \%key);
is $second->{status}, 200, 'the same Idempotency-Key and body are accepted';
is $second->{json}{run_id}, $first->{json}{run_id}, 'and answer the stored run';
is $second->{headers}{'content-location'},
    "/threads/$other/runs/$first->{json}{run_id}", 'and its place';
is $client->post("/threads/$other/runs", { %body, metadata => { n => 2 } },
    \%key)->{json}{code}, 'idempotency_mismatch',
    'the same key with another body is refused';

done_testing;
