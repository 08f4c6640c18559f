# SPDX-License-Identifier: Apache-2.0
# Create, get, list and delete run: the record and its kwargs field by field.
use strict;
use warnings;
use AgentTest::Client qw(run_body run_path);
use Cpanel::JSON::XS;
use Test::More;

my $client = AgentTest::Client->new;
my $UUID = qr/\A[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\z/;
my $TIME = qr/\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00\z/;
my $ASSISTANT = 'fe096781-5601-53d2-b2f6-0d3403f7e9ca';
my $UNKNOWN = '01890000-0000-7000-8000-000000000000';

my $thread = $client->new_thread;
is_deeply $client->get("/threads/$thread/runs")->{json}, [],
    'list runs: a new thread has none';

my $answer = $client->post("/threads/$thread/runs", run_body('hello'));
is $answer->{status}, 200, 'create run: the response is 200';
my $run = $answer->{json};
is $answer->{headers}{'content-location'},
    "/threads/$thread/runs/$run->{run_id}", 'create run: Content-Location is the path of the run';
like $run->{run_id}, $UUID, 'create run: run_id is a UUID';
is $run->{thread_id}, $thread, 'create run: thread_id is the thread of the path';
is $run->{assistant_id}, $ASSISTANT,
    'create run: a graph name is resolved to its assistant_id';
like $run->{$_}, $TIME, "create run: $_ is ISO 8601" for qw(created_at updated_at);
is_deeply $run->{metadata}, {}, 'create run: metadata is empty by default';
is $run->{status}, 'pending', 'create run: status is pending';
is $run->{multitask_strategy}, 'reject',
    'create run: multitask_strategy is reject by default';

my $kwargs = $run->{kwargs};
is_deeply $kwargs->{input},
    { messages => [ { role => 'user', content => 'hello' } ] },
    'create run: kwargs.input is the input of the request';
ok defined $kwargs->{config}{metadata}{created_by},
    'create run: kwargs.config.metadata has created_by';
is_deeply $kwargs->{config}{configurable}, {
    run_id => $run->{run_id}, user_id => '', graph_id => 'agent',
    thread_id => $thread, assistant_id => $ASSISTANT, checkpoint_id => undef,
}, 'create run: kwargs.config.configurable names run, user, graph, thread and assistant';
is $kwargs->{webhook}, undef, 'create run: kwargs.webhook is null by default';
is_deeply $kwargs->{temporary}, Cpanel::JSON::XS::false,
    'create run: kwargs.temporary is false';
is_deeply $kwargs->{stream_mode}, ['values'],
    'create run: kwargs.stream_mode is ["values"] by default';
ok exists $kwargs->{$_} && !defined $kwargs->{$_},
    "create run: kwargs.$_ is null by default"
    for qw(webhook feedback_keys interrupt_after interrupt_before);

$client->join_run($run);
my $done = $client->get_run($run);
is $done->{status}, 'success', 'get run: status is success after a join';
is_deeply $done->{kwargs}, $kwargs, 'get run: kwargs do not change';

# All members of the request are stored; the client's own JSON byte by byte.
my $raw = '{"assistant_id":"' . uc($ASSISTANT) . '",'
    . '"input":{"messages":[{"role":"human","content":"b\u00e4h"}],'
    . '"big":9007199254740993,"z":1.10,"a":[]},'
    . '"metadata":{"k":"v"},"multitask_strategy":"interrupt",'
    . '"config":{"configurable":{"colour":"red","user_id":"root","langgraph_auth_user_id":"root","langgraph_auth_user":{"identity":"root"}},"tags":["x"],'
    . '"recursion_limit":7},"stream_mode":["values","updates"],'
    . '"interrupt_before":["tools"],"interrupt_after":"*",'
    . '"webhook":"https://hooks.invalid/x","feedback_keys":["good"]}';
my $full = $client->post("/threads/$thread/runs", $raw,
    { 'x-user-id' => 'user-17' });
is $full->{status}, 200, 'create run: assistant_id may be the id of an assistant, in upper case too';
like $full->{body}, qr/"big":9007199254740993,"z":1\.10,"a":\[\]/,
    'create run: input is stored as the exact text';
my $k = $full->{json}{kwargs};
is $full->{json}{multitask_strategy}, 'interrupt',
    'create run: multitask_strategy is that of the request';
is_deeply $full->{json}{metadata}, { k => 'v' }, 'create run: metadata is stored';
is $k->{config}{configurable}{colour}, 'red', 'create run: config.configurable is stored';
is $k->{config}{configurable}{user_id}, 'user-17',
    'create run: x-user-id becomes configurable.user_id';
is_deeply [ grep { /auth/ } keys %{ $k->{config}{configurable} } ], [], 'create run: no client names an authenticated user';
is_deeply $k->{config}{tags}, ['x'], 'create run: config.tags is stored';
is_deeply $k->{stream_mode}, [qw(values updates)], 'create run: stream_mode is stored';
is_deeply $k->{interrupt_before}, ['tools'], 'create run: interrupt_before is stored';
is $k->{interrupt_after}, '*', 'create run: interrupt_after is stored';
is $k->{webhook}, 'https://hooks.invalid/x', 'create run: webhook is stored';
is_deeply $k->{feedback_keys}, ['good'], 'create run: feedback_keys is stored';
$client->join_run($full->{json});

my $one = $client->post("/threads/$thread/runs",
    { assistant_id => 'agent', stream_mode => 'updates' });
is $one->{status}, 200, 'create run: input is optional';
is_deeply $one->{json}{kwargs}{stream_mode}, ['updates'],
    'create run: a single stream_mode is returned as an array';
$client->join_run($one->{json});

# ---- lists ----
my $list = $client->get("/threads/$thread/runs")->{json};
is_deeply [ map { $_->{run_id} } @$list ],
    [ $one->{json}{run_id}, $full->{json}{run_id}, $run->{run_id} ],
    'list runs: the newest is first';
is_deeply $list->[2], $client->get_run($run), 'list runs: the records equal those of get run';
is_deeply [ map { $_->{run_id} }
        @{ $client->get("/threads/$thread/runs?limit=1&offset=1")->{json} } ],
    [ $full->{json}{run_id} ], 'list runs: limit and offset select a page';
is scalar @{ $client->get("/threads/$thread/runs?status=pending")->{json} }, 0,
    'list runs: status filters';
for my $select ('select=run_id&select=status', 'select=["run_id","status"]',
    'select=run_id,status') {
    my $rows = $client->get("/threads/$thread/runs?$select")->{json};
    is_deeply [ sort keys %{ $rows->[0] } ], [qw(run_id status)],
        "list runs: $select selects fields";
}
for my $bad (qw(limit=0 limit=1001 limit=-1 limit=1e3 limit=5x limit= offset=-1
    offset=4294967296 status=done select=nope select=[1])) {
    my $refused = $client->get("/threads/$thread/runs?$bad");
    is $refused->{status}, 422, "list runs: $bad is 422";
    like $refused->{json}{detail}, qr/\A?Query parameter (limit|offset|status|select)/,
        "list runs: the detail names the parameter of $bad";
}
is $client->get("/threads/$thread/runs?limit=3&unknown=1")->{status}, 200,
    'list runs: unknown query parameters are ignored';

# ---- unknown ids ----
is $client->get("/threads/$UNKNOWN/runs")->{status}, 404,
    'list runs: an unknown thread is 404';
is $client->get("/threads/$thread/runs/$UNKNOWN")->{json}{code},
    'run_not_found', 'get run: an unknown run is run_not_found';
my $other = $client->new_thread;
is $client->get("/threads/$other/runs/$run->{run_id}")->{status}, 404,
    'get run: a run of another thread is 404';
is $client->post("/threads/$UNKNOWN/runs", { assistant_id => 'agent' })
    ->{json}{code}, 'thread_not_found', 'create run: an unknown thread is thread_not_found';
my $new = sprintf '01890000-0000-7000-8000-%012x', $$;
my $made = $client->post("/threads/$new/runs",
    { assistant_id => 'agent', if_not_exists => 'create' });
is $made->{status}, 200, 'create run: if_not_exists "create" creates the thread';
$client->join_run($made->{json});
for my $id ('nobody', $UNKNOWN) {
    my $none = $client->post("/threads/$thread/runs", { assistant_id => $id });
    is $none->{status}, 404, "create run: the unknown assistant $id is 404";
    is $none->{json}{code}, 'assistant_not_found', "create run: the code for assistant $id is assistant_not_found";
}

# ---- delete ----
my $busy = $client->create_run($other, 'sleep 60000');
is $client->delete(run_path($busy))->{json}{code},
    'run_active', 'delete run: an active run is refused with run_active';
is $client->post(run_path($busy) . '/cancel?wait=1')
    ->{status}, 204, 'delete run: an active run can be cancelled first';
is $client->delete(run_path($busy))->{status}, 204,
    'delete run: a cancelled run can be deleted';
is $client->get(run_path($busy))->{status}, 404,
    'delete run: a deleted run is 404';

# ---- idempotency ----
my %body = (assistant_id => 'agent', metadata => { n => 1 });
my %key = ('Idempotency-Key' => "key-$$");
my $first = $client->post("/threads/$other/runs", \%body, \%key);
$client->join_run($first->{json});
my $second = $client->post("/threads/$other/runs", \%body, \%key);
is $second->{status}, 200, 'Idempotency-Key: the same request is accepted twice';
is $second->{json}{run_id}, $first->{json}{run_id}, 'Idempotency-Key: the second response is the stored run';
is $second->{headers}{'content-location'},
    "/threads/$other/runs/$first->{json}{run_id}", 'Idempotency-Key: the second Content-Location is that of the stored run';
is $client->post("/threads/$other/runs", { %body, metadata => { n => 2 } },
    \%key)->{json}{code}, 'idempotency_mismatch',
    'Idempotency-Key: another body is refused with idempotency_mismatch';

done_testing;
