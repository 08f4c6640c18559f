# SPDX-License-Identifier: Apache-2.0
# Members and parameters of the API that this release does not have or that an
# endpoint cannot honour: refused, unless the value means the default.
use strict;
use warnings;
use AgentTest::Client qw(run_body);
use Cpanel::JSON::XS;
use Test::More;

my $client = AgentTest::Client->new;
my ($TRUE, $FALSE) = (Cpanel::JSON::XS::true, Cpanel::JSON::XS::false);
my $OTHER = '01890000-0000-7000-8000-000000000000';
my $NOT_YET = 'expected none: it is not supported yet.';

my $thread = $client->new_thread;
my $run = $client->create_run($thread, 'hello');
$client->join_run($run);
my $checkpoint = $client->get_state($thread)->{checkpoint_id};

sub text_of { return Cpanel::JSON::XS->new->canonical->allow_nonref->encode($_[0]) }

# The response to a run's body with these members; the run ends before the next
# one is created.
sub create {
    my ($path, %members) = @_;
    my $answer = $client->post($path, run_body('hello', %members));
    $client->join_run($answer->{json}) if $answer->{status} == 200 && $path !~ m{/(?:wait|stream)\z};
    return $answer;
}

sub is_accepted {
    my ($answer, $what) = @_;
    is $answer->{status}, 200, "$what is accepted" or diag $answer->{body};
    return;
}

sub is_refused {
    my ($answer, $detail, $what) = @_;
    my $body = $answer->{json};
    is $answer->{status}, 422, "$what is 422";
    is ref $body eq 'HASH' ? $body->{detail} : undef, $detail, "$what: the detail names the member";
    return;
}

my @runs = ("/threads/$thread/runs", "/threads/$thread/runs/wait", "/threads/$thread/runs/stream",
    '/runs', '/runs/wait', '/runs/stream');

# ---- durability ----
for my $case ([ $TRUE, 'async' ], [ $FALSE, 'exit' ], [ undef, undef ]) {
    my ($during, $durability) = @$case;
    is create($runs[0], checkpoint_during => $during)->{json}{kwargs}{durability}, $durability,
        'checkpoint_during: ' . text_of($during) . ' is durability ' . text_of($durability);
}
is create('/runs', checkpoint_during => $FALSE)->{json}{kwargs}{durability}, 'exit',
    'checkpoint_during: false is durability "exit" of a stateless run too';
for my $case ([ 'async', $TRUE ], [ 'sync', $TRUE ], [ 'exit', $FALSE ]) {
    is create($runs[0], durability => $case->[0], checkpoint_during => $case->[1])->{json}{kwargs}{durability}, $case->[0],
        "checkpoint_during: it may be beside the same durability, $case->[0]";
}
for my $case ([ 'async', $FALSE ], [ 'sync', $FALSE ], [ 'exit', $TRUE ]) {
    is_refused(create($runs[0], durability => $case->[0], checkpoint_during => $case->[1]),
        '/checkpoint_during: expected the same as durability says, or none.',
        "checkpoint_during: another meaning than durability $case->[0]");
}

# ---- the checkpoint to start from ----
my %names = (
    checkpoint_id => sub { checkpoint_id => $_[0] },
    checkpoint    => sub { checkpoint => { checkpoint_id => $_[0], checkpoint_ns => '', checkpoint_map => {}, thread_id => $thread } },
    configurable  => sub { config => { configurable => { checkpoint_id => $_[0] } } },
);
for my $name (sort keys %names) {
    my $answer = create($runs[0], $names{$name}->($checkpoint));
    is $answer->{json}{kwargs}{config}{configurable}{checkpoint_id}, $checkpoint,
        "checkpoints: a run starts from the checkpoint that $name names";
    is scalar @{ $client->join_run($answer->{json})->{messages} }, 4,
        "checkpoints: a run from the checkpoint that $name names adds to its messages";
    is $client->post($runs[0], run_body('hello', $names{$name}->($OTHER)))->{json}{code}, 'checkpoint_not_found',
        "checkpoints: an unknown checkpoint that $name names is checkpoint_not_found";
}
is_accepted(create($runs[0], map { $names{$_}->($_ eq 'checkpoint' ? uc $checkpoint : $checkpoint) } keys %names),
    'checkpoints: the same one named by three members');
is_refused(create($runs[0], $names{checkpoint_id}->($checkpoint), $names{checkpoint}->($OTHER)),
    '/checkpoint/checkpoint_id: expected the checkpoint that another member names.', 'checkpoints: another one in checkpoint');
is_refused(create($runs[0], $names{checkpoint}->($checkpoint), $names{configurable}->($OTHER)),
    '/config/configurable/checkpoint_id: expected the checkpoint that another member names.',
    'checkpoints: another one in configurable');
is_refused(create($runs[0], checkpoint => { thread_id => $OTHER }),
    '/checkpoint/thread_id: expected the thread of the path.', 'checkpoints: one of another thread');
# A built-in graph has no subgraphs; "" and {} are the root.
for my $case ([ 'a checkpoint_ns', { checkpoint_ns => 'a:b' } ], [ 'a checkpoint_map', { checkpoint_map => { '' => $OTHER } } ],
    [ 'a checkpoint in a namespace', { checkpoint_ns => 'a:b', checkpoint_id => $checkpoint } ],
    [ 'a checkpoint_map of a subgraph', { checkpoint_id => $checkpoint, checkpoint_map => { 'a:b' => $checkpoint } } ]) {
    my ($what, $place) = @$case;
    for my $members ({ checkpoint => $place }, { config => { configurable => $place } }) {
        my ($member) = keys %$members;
        is $client->post($_, run_body('hello', %$members))->{json}{code}, 'checkpoint_not_found',
            "checkpoints: $what in $member that the thread does not have is checkpoint_not_found" for @runs[ 0 .. 2 ];
    }
    is $client->post("/threads/$thread/state", { values => { messages => [] }, checkpoint => $place })->{status}, 404,
        "checkpoints: an update of $what that the thread does not have is 404";
    is_refused($client->post($_, run_body('hello', checkpoint => $place)),
        '/checkpoint/' . (sort keys %$place)[0] . ': expected none: a stateless run begins on a new thread.',
        "checkpoints: $what of POST $_") for '/runs', '/runs/wait', '/runs/stream';
}
for my $place ({ checkpoint_ns => '' }, { checkpoint_ns => undef }, { checkpoint_map => {} }, { checkpoint_map => undef }) {
    is_accepted(create($runs[0], checkpoint => $place), 'checkpoints: ' . text_of($place) . ', which names none');
    is_accepted(create($runs[0], config => { configurable => $place }),
        'checkpoints: ' . text_of($place) . ' in configurable, which names none');
}
my $by_map = create($runs[0], checkpoint => { checkpoint_map => { '' => $checkpoint } });
is $by_map->{json}{kwargs}{config}{configurable}{checkpoint_id}, $checkpoint, 'checkpoints: a run starts from the one of checkpoint_map';
is scalar @{ $client->join_run($by_map->{json})->{messages} }, 4, 'checkpoints: a run from the one of checkpoint_map adds to its messages';
for my $case ([ checkpoint_id => '/checkpoint_id' ], [ checkpoint => '/checkpoint/checkpoint_id' ],
    [ configurable => '/config/configurable/checkpoint_id' ]) {
    my ($name, $pointer) = @$case;
    my $detail = "$pointer: expected none: a stateless run begins on a new thread.";
    is_refused($client->post($_, run_body('hello', $names{$name}->($checkpoint))), $detail, "checkpoints: $name of POST $_")
        for '/runs', '/runs/wait', '/runs/stream';
    is_refused($client->post('/runs/batch', [ run_body('hello', $names{$name}->($checkpoint)) ]), "/0$detail",
        "checkpoints: $name of POST /runs/batch");
}

# ---- members that depend on the endpoint ----
is_refused(create($_, on_disconnect => 'cancel'), '/on_disconnect: expected continue: the request does not wait for the run.',
    "on_disconnect: \"cancel\" of POST $_") for "/threads/$thread/runs", '/runs';
is_refused($client->post('/runs/batch', [ run_body('hello', on_disconnect => 'cancel') ]),
    '/0/on_disconnect: expected continue: the request does not wait for the run.', 'on_disconnect: "cancel" of a batch');
for my $path (@runs) {
    (my $name = $path) =~ s/\Q$thread\E/{thread_id}/;
    is_accepted(create($path, on_disconnect => 'continue', on_completion => 'keep'),
        "on_disconnect, on_completion: the defaults of POST $name");
    next if $path !~ m{\A/threads};
    is_refused(create($path, on_completion => 'delete'),
        '/on_completion: expected keep: only threads of stateless runs are deleted.', "on_completion: \"delete\" of POST $name");
}
is_accepted(create('/runs', multitask_strategy => $_, if_not_exists => 'create'),
    "create stateless run: $_ and if_not_exists, which mean the same on any new thread")
    for qw(reject enqueue interrupt rollback);

# ---- accepted without effect ----
is_accepted(create($runs[0], langsmith_tracer => { project_name => 'p', example_id => $OTHER }), 'langsmith_tracer: it');
is create($runs[0], config => { configurable => { thread_id => $OTHER } })->{json}{kwargs}{config}{configurable}{thread_id},
    $thread, 'config: the identifiers of the server replace those of the client';

# ---- threads ----
is_refused($client->post('/threads', { ttl => { ttl => 5, strategy => 'keep_latest' } }),
    '/ttl/strategy: expected delete: POST /threads/prune deletes all but the latest state.', 'unsupported: /ttl/strategy "keep_latest"');

# ---- parameters ----
is_accepted($client->get("/threads/$thread?include=$_"), "include: \"$_\"") for 'ttl', 'ttl,ttl', '';
is $client->get("/threads/$thread?include=x")->{status}, 422, 'include: an unknown word is 422';

# ---- the event protocol ----
for my $upgrade ('websocket', 'WebSocket') {
    my $answer = $client->request('GET', "/threads/$thread/stream/events", undef, { Upgrade => $upgrade });
    is $answer->{status}, 404, "a request for a WebSocket is 404: $upgrade";
    is $answer->{json}{detail}, 'This server has no WebSockets: POST /threads/{thread_id}/runs/stream answers with an event stream.',
        'the detail says what there is instead';
}

done_testing;
