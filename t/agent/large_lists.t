# SPDX-License-Identifier: Apache-2.0
# Large lists, which are composed in turns: other requests and other deployments
# beside several of them, and the cases in which a list cannot wait for its turn.
use strict;
use warnings;
use AgentTest::Client qw(read_all read_until);
use AgentTest::Database;
use AgentTest::Env qw(free_port);
use AgentTest::Server;
use AgentTest::Wait;
use Socket qw(MSG_PEEK SOL_SOCKET SO_RCVBUF);
use Test::More;

# Records of at least 256 KB each, or together.
my $BYTES = 400_000;
my $LISTS = 8;
# The threads that turns may take of the four of a child.
my $TURNS = 2;

my ($server, $client);

sub start {
    my (@directives) = @_;
    undef $server;
    ($server, $client) = AgentTest::Server->start_with_client('AgentDBQueryTimeout 600s', @directives);
    return;
}

# PostgreSQL cannot compress it.
sub noise { return join '', map { sprintf '%08x', rand 2**32 } 1 .. $_[0] / 8 }

# A thread with runs that are due tomorrow.
sub make_runs {
    my ($for, @inputs) = @_;
    my $thread = $for->new_thread;
    my $run;
    for my $input (@inputs) {
        $run = $for->post("/threads/$thread/runs", { assistant_id => 'agent', multitask_strategy => 'enqueue',
            after_seconds => 86_400, input => { text => $input } })->{json}{run_id};
    }
    return ($thread, $run);
}

# Six assistants of 60 KB, of which the first has seven versions; its id and that of the second.
sub make_assistants {
    my @ids = map { $client->post('/assistants', { graph_id => 'agent', name => 'large', context => { x => noise(60_000) } })
        ->{json}{assistant_id} } 1 .. 6;
    $client->request('PATCH', "/assistants/$ids[0]", { context => { x => noise(60_000) } }) for 1 .. 6;
    return @ids[ 0, 1 ];
}

# Six threads with metadata of that length, more than clients may send; the id of the second.
sub make_threads {
    my ($kind, $bytes) = @_;
    my @ids = map { $client->create_thread(metadata => { kind => $kind })->{thread_id} } 1 .. 6;
    sql("update agent.threads set metadata = metadata || jsonb_build_object('x', (select string_agg(md5(n::text), '') from generate_series(1, $bytes / 32) n))
        where metadata ->> 'kind' = '$kind'");
    return $ids[1];
}

# A thread whose states have 400 KB.
sub make_states {
    my $id = $client->new_thread;
    $client->post("/threads/$id/runs/wait", AgentTest::Client::run_body(noise($BYTES)));
    return $id;
}

sub make_items {
    $client->request('PUT', '/store/items', { namespace => ['large'], key => "k$_", value => { x => noise(60_000) } }) for 1 .. 6;
    return;
}

# From here on records are composed while the gate is open; those for which the
# condition does not hold at any time. A run's record has the number in which it
# was composed in place of its error.
sub build_gate {
    my ($function, $member, $condition) = @_;
    my $definition = join "\n", sql("select pg_get_functiondef(('agent.$function')::regproc)");
    $definition =~ s/('$member', |"$member":' \|\| to_json\()(\(?\w+\)?\.$member)/$1(select $2 from public.pass_gate(case when $condition then 7 else 8 end))/ or die;
    $definition =~ s/'error', p_run.error/'error', nextval('public.composed')/;
    sql($definition);
    return;
}

# For the records of these threads.
sub build_gates {
    my (@threads) = @_;
    # A server waits for a lock for a few seconds only.
    sql('create function public.pass_gate(integer) returns void language plpgsql set lock_timeout = 0 as '
        . '$$begin perform pg_advisory_xact_lock_shared($1); end$$; grant execute on function public.pass_gate to public; '
        . 'create sequence public.composed; grant usage on sequence public.composed to public');
    build_gate('render_run', 'run_id', 'p_run.thread_id in (' . join(', ', map { "'$_'" } @threads) . ')');
    return;
}

sub close_gate { return hold_lock('select pg_advisory_xact_lock(7)') }

sub count_composed {
    return poll("select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'advisory'");
}

sub answers { return map { $client->finish($_) } @_ }

# Lists that have begun, each with a small window, all read at the same time.
sub read_slowly {
    my ($count, @request) = @_;
    my @sockets = map { $client->begin(@request) } 1 .. $count;
    setsockopt $_, SOL_SOCKET, SO_RCVBUF, pack 'i', 65_536 for @sockets;
    recv $_, my $byte, 1, MSG_PEEK for @sockets;
    return map { AgentTest::Client::parse_response($_) } read_all(@sockets);
}

sub count_ok { return scalar grep { $_->{status} == 200 && @{ ref $_->{json} eq 'ARRAY' ? $_->{json} : [ $_->{json} ] } } @_ }

start();
my ($thread, $run) = make_runs($client, noise($BYTES), noise($BYTES));
my ($compressed) = make_runs($client, 'a' x $BYTES);
my ($small) = make_runs($client, 'small', 'too');
my ($assistant, $second) = make_assistants();
my ($labelled, $stated) = (make_threads('large', 60_000), make_states());
make_items();
my %large = (
    'a list of runs'                     => [ 'GET', "/threads/$thread/runs" ],
    'a list of runs that are compressed' => [ 'GET', "/threads/$compressed/runs" ],
    'a run'                              => [ 'GET', "/threads/$thread/runs/$run" ],
    'a search of assistants'             => [ 'POST', '/assistants/search', { name => 'large' } ],
    'a list of versions'                 => [ 'POST', "/assistants/$assistant/versions", {} ],
    'a search of threads'                => [ 'POST', '/threads/search', { metadata => { kind => 'large' } } ],
    'a history'                          => [ 'GET', "/threads/$stated/history?limit=2" ],
    'a search of items'                  => [ 'POST', '/store/items/search', { namespace_prefix => ['large'] } ],
);
my %whole = map { $_ => $client->request(@{ $large{$_} }) } keys %large;
is count_ok($whole{$_}), 1, "large lists: $_ is read" for sort keys %large;
is_deeply $whole{'a search of threads'}{json}[4], $client->get("/threads/$labelled")->{json}, 'large lists: a large search has the records of threads';
is_deeply $whole{'a history'}{json}[0], $client->get_state($stated), 'large lists: a large history has the states';
is_deeply $whole{'a search of items'}{json}{items}[4], { %{ $client->get('/store/items?namespace=large&key=k2')->{json} }, score => undef },
    'large lists: a large search has the items of the store';
my $states = $client->post('/threads/search', { ids => [ $stated, $labelled ], sort_by => 'created_at', sort_order => 'asc' });
is_deeply $states->{json}, [ map { $client->get("/threads/$_")->{json} } $labelled, $stated ], 'large lists: a large search has the states of threads';
my $picked = $client->post('/threads/search', { ids => [$stated], select => [ 'values', 'status' ] });
is_deeply $picked->{json}, [ { status => 'idle', values => $states->{json}[1]{values} } ], 'large lists: a large search has the selected members';
build_gates($thread);
# The fifth records of these lists: those before them are composed before it is known that the list is large, and
# those after them when clients have read them.
build_gate('render_assistant', 'assistant_id', "p_assistant.assistant_id = '$second'");
build_gate('render_assistant_version', 'assistant_id', 'p_version.version = 3');
build_gate('render_thread', 'thread_id', "p_thread.thread_id = '$labelled'");
build_gate('render_state', 'checkpoint_id', "p_row.thread_id = '$stated'");
build_gate('render_item', 'key', "(p_item).key = 'k2'");

# Without compressed records: they are composed before their length is known.
for my $what (grep { !/compressed/ } sort keys %large) {
    subtest "large lists: others are served beside $LISTS clients that read $what" => sub {
        my $gate = close_gate();
        my @lists = map { $client->begin(@{ $large{$what} }) } 1 .. $LISTS;
        wait_for('one to be composed', sub { count_composed() });
        is $client->get('/ok')->{status}, 200, "large lists: GET /ok is answered beside $what";
        my $list = $client->get("/threads/$small/runs");
        is scalar @{ $list->{json} }, 2, "large lists: a small list is read beside $what";
        # Not joined: a join takes turns too, and these lists leave none before the gate opens.
        my $executed = $client->start_run('hello');
        wait_for('the run to end', sub { $client->get_run($executed)->{status} ne 'pending' });
        is $client->get_run($executed)->{status}, 'success', "large lists: a run is executed beside $what";
        cmp_ok count_composed(), '<=', $TURNS, "large lists: those that are composed at the same time, of $what, are limited by the number of turns";
        close $gate;
        my @answers = answers(@lists);
        is count_ok(@answers), $LISTS, "large lists: all clients that read $what receive it";
        cmp_ok length($answers[-1]{body}), '>', 0.9 * length $whole{$what}{body}, "large lists: they receive the whole of $what";
        my ($now, $before) = map { $_->{headers}{'x-pagination-total'} } $answers[0], $whole{$what};
        is $now, $before, "large lists: X-Pagination-Total of $what";
    };
}

is $whole{'a search of assistants'}{headers}{'x-pagination-total'}, 6, 'large lists: a large search counts all assistants';
is $client->get("/threads/$thread/runs?limit=1")->{headers}{'x-pagination-next'}, 1, 'large lists: a large page has X-Pagination-Next';
my ($selected) = @{ $client->get("/threads/$thread/runs?select=run_id&status=pending&limit=1")->{json} };
is_deeply $selected, { run_id => $run }, 'large lists: parameters count in a turn as well';

subtest 'large lists: clients that half close or restart the server' => sub {
    my $gate = close_gate();
    my @lists = map { $client->begin(@{ $large{'a list of runs'} }) } 1 .. $LISTS;
    wait_for('one to be composed', sub { count_composed() });
    shutdown $_, 1 for @lists[ 0 .. 3 ];
    $server->graceful;
    close $gate;
    is count_ok(answers(@lists)), $LISTS, 'large lists: all are answered after their clients have closed their sending side, and after a graceful restart';
};

subtest 'large lists: no more requests may wait' => sub {
    start('AgentMaxWaiters 2');
    my ($large, $one) = make_runs($client, noise($BYTES));
    my ($other) = make_runs($client, 'small');
    my @waiting = map { my $socket = $client->begin('GET', "/threads/$other/stream"); read_until($socket, qr/\r\n\r\n/); $socket } 1 .. 2;
    for my $path ("/threads/$large/runs", "/threads/$large/runs/$one") {
        my $answer = $client->get($path);
        is $answer->{status}, 503, 'large lists: a large list or run is refused when it may not wait';
        ok $answer->{headers}{'retry-after'}, 'large lists: the refusal has Retry-After';
    }
    is $client->get("/threads/$other/runs")->{status}, 200, 'large lists: a small list is answered when no request may wait';
};

subtest 'large lists: without parking half of the threads compose them' => sub {
    start('AgentParking Off');
    my ($large) = make_runs($client, noise($BYTES));
    build_gates($large);
    my $gate = close_gate();
    my @lists = map { $client->begin('GET', "/threads/$large/runs") } 1 .. $TURNS;
    wait_for('both to be composed', sub { count_composed() == $TURNS });
    is $client->get("/threads/$large/runs")->{status}, 503, 'large lists: without parking half of the threads may compose lists, and another one is refused';
    is $client->get('/ok')->{status}, 200, 'large lists: without parking other requests are answered beside lists';
    close $gate;
    is count_ok(answers(@lists)), $TURNS, 'large lists: without parking lists are answered';
};

# A refusal that changes nothing shows that no request of the deployment may wait.
sub wait_until_full {
    my ($for, $id) = @_;
    wait_for('the lists to wait', sub { $for->post("/threads/$id/state", '[]')->{status} == 503 });
    return;
}

subtest 'large lists: those of a deployment take their turns as one' => sub {
    my $port = free_port();
    # Half of the slots is for both in equal parts, the other half was there first.
    start('AgentMaxWaiters 16', "Listen 127.0.0.1:$port", "<VirtualHost 127.0.0.1:$port>", 'AgentDeployment desk',
        '<AgentGraph agent>', 'AgentModel demo', '</AgentGraph>', '</VirtualHost>');
    my $desk = AgentTest::Client->new(url => "http://127.0.0.1:$port");
    wait_for_graphs('desk', 1);
    my ($many) = make_runs($client, noise($BYTES));
    my ($few)  = make_runs($desk, noise($BYTES));
    build_gates($many, $few);
    my $gate = close_gate();
    my @many = map { $client->begin('GET', "/threads/$many/runs") } 1 .. 12;
    wait_until_full($client, $many);
    my @few = map { $desk->begin('GET', "/threads/$few/runs") } 1 .. 4;
    wait_until_full($desk, $few);
    close $gate;
    my ($last) = sort { $b <=> $a } map { $_->{json}[0]{error} } answers(@few);
    my @before = grep { $_->{json}[0]{error} < $last } answers(@many);
    cmp_ok scalar @before, '<', 9, 'large lists: four lists of a deployment do not wait for twelve of another one that came first';
};

subtest 'large lists: clients that read more than a child may hold' => sub {
    start('AsyncRequestWorkerFactor 400');
    my ($many) = make_runs($client, map { noise(1_000_000) } 1 .. 12);
    my $whole = length $client->get("/threads/$many/runs?limit=12")->{body};
    my @answers = read_slowly(16, 'GET', "/threads/$many/runs?limit=12");
    is scalar(grep { $_->{status} == 200 && length $_->{body} == $whole } @answers), 16,
        'large lists: all clients receive the whole list when all lists together exceed what a child may hold';
    @answers = ();
    my $stated = $client->new_thread;
    $client->post("/threads/$stated/runs/wait", AgentTest::Client::run_body(noise(3_000_000)));
    make_threads('many', 1_000_000);
    $client->request('PUT', '/store/items', { namespace => ['many'], key => "k$_", value => { x => noise(1_000_000) } }) for 1 .. 6;
    for my $list ([ 'POST', '/threads/search', { metadata => { kind => 'many' } } ], [ 'POST', '/threads/search', { ids => [$stated] } ],
        [ 'GET', "/threads/$stated/history?limit=2" ], [ 'POST', '/store/items/search', { namespace_prefix => ['many'] } ])
    {
        my $bytes = length $client->request(@$list)->{body};
        is scalar(grep { $_->{status} == 200 && length $_->{body} == $bytes } read_slowly(16, @$list)), 16,
            "large lists: all clients receive the whole of $list->[1] in the same case";
    }
    unlike $server->error_log, qr/AGT0202/, 'large lists: no client that reads a list is cut';
};

undef $server;
done_testing;
