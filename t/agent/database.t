# SPDX-License-Identifier: Apache-2.0
# Loss of the database: the responses to clients, and the recovery.
use strict;
use warnings;
use AgentTest::Client qw(parse_response read_to_end read_until run_path);
use AgentTest::Database;
use AgentTest::Env qw(slurp);
use AgentTest::Gate;
use AgentTest::Postgres;
use AgentTest::Process qw(httpd_children is_alive);
use AgentTest::Server;
use AgentTest::Wait;
use IO::Socket::INET;
use Test::More;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

# A separate cluster, which this test stops.
my $postgres = AgentTest::Postgres->new;
local $ENV{PGHOST} = $postgres->host;
my $gate = AgentTest::Gate->new;
my $server = AgentTest::Server->new(database => $postgres->conninfo,
    config => AgentTest::Server::shared_config() . $gate->graph);
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

# Terminates all other backends, waits for their end and returns their number.
sub terminate_all {
    # offset 0: the list is complete before the first backend is terminated.
    my @pids = sql('select pid from (select pid from pg_stat_activity '
        . 'where pid <> pg_backend_pid() and datname = current_database() offset 0) b '
        . 'where pg_terminate_backend(pid)');
    wait_for('the backends to end', sub { !grep { is_alive($_) } @pids });
    return scalar @pids;
}

sub seconds_of {
    my ($code) = @_;
    my $begin = clock_gettime(CLOCK_MONOTONIC);
    $code->();
    return clock_gettime(CLOCK_MONOTONIC) - $begin;
}

my $thread = $client->new_thread;

# The time of the slowest of 20 requests, and the number of each answer.
sub ask_while_down {
    my ($slowest, %seen) = (0);
    for (1 .. 20) {
        my $answer;
        my $took = seconds_of(sub { $answer = $client->get("/threads/$thread") });
        $slowest = $took if $took > $slowest;
        $seen{"$answer->{status} " . ($answer->{headers}{'retry-after'} // '')}++;
    }
    return ($slowest, %seen);
}

$client->join_run($client->create_run($thread, 'before'));

subtest 'database: requests are answered after all backends were terminated' => sub {
    # Both children have connections.
    $client->get('/ok?check_db=1') for 1 .. 60;
    for my $round (1 .. 5) {
        ok terminate_all() > 0, "database: all backends are terminated, round $round";
        my %seen;
        $seen{ $client->get('/ok?check_db=1')->{status} }++ for 1 .. 20;
        $seen{ $client->post('/threads', {})->{status} }++ for 1 .. 20;
        is_deeply \%seen, { 200 => 40 }, "database: requests are answered after all backends were terminated, round $round";
    }
    $client->join_run($client->create_run($thread, 'during'));
    pass 'database: runs execute after all backends were terminated';
};

subtest 'database: while PostgreSQL is down, requests are answered 503' => sub {
    my $run = $client->create_run($thread, 'use gate {} and say it all',
        assistant_id => 'gated');
    my $waiting = $client->begin('GET',
        run_path($run) . '/join');
    my $head = read_until($waiting, qr/\r\n\r\n/);
    $gate->wait_calls(1);
    $postgres->stop('immediate');
    my $slowest;
    # A pause of the machine is not a slow answer: several rounds.
    for my $round (1 .. 5) {
        ($slowest, my %seen) = ask_while_down();
        is_deeply \%seen, { '503 1' => 20 }, 'database: while PostgreSQL is down, requests are answered 503 with Retry-After';
        last if $slowest < 2;
    }
    cmp_ok $slowest, '<', 2, 'database: while PostgreSQL is down, requests are answered within two seconds';
    is $client->get('/ok')->{status}, 200,
        'database: while PostgreSQL is down, GET /ok is answered';
    $postgres->start;
    wait_for('the server to recover',
        sub { $client->get('/ok?check_db=1')->{status} == 200 });
    pass 'database: requests are answered when PostgreSQL is back';
    $gate->open;
    my $joined = parse_response(
        $head . read_to_end($waiting));
    is $joined->{status}, 200, 'database: a join continues to wait while PostgreSQL is down';
    like $joined->{body}, qr/"type"\s*:\s*"ai"/, 'database: a join receives its values when PostgreSQL is back';
    is $client->get_run($run)->{status}, 'success',
        'database: a run that was executing when PostgreSQL went down succeeds';
};

subtest 'database: AgentDBPoolSize limits the connections of a child' => sub {
    my $tight = AgentTest::Server->new(
        database => $postgres->conninfo,
        config   => AgentTest::Server::shared_config()
            . "AgentDBPoolSize 1\nAgentDBPoolWait 300\n",
    );
    $tight->start;
    my $there = AgentTest::Client->new(url => $tight->url);
    my $victim = $there->new_thread;
    # A lock on the thread's row delays its writers, up to lock_timeout.
    my $lock = hold_lock("select from agent.threads where thread_id = '$victim' for update");
    my @sockets = map {
        $there->begin('POST', "/threads/$victim/runs", { assistant_id => 'agent' })
    } 1 .. 6;
    my @answers = map { $there->finish($_) } @sockets;
    my %codes;
    $codes{"$_->{status} $_->{json}{code}"}++ for @answers;
    ok $codes{'503 pool_exhausted'}, 'database: requests without a free connection are answered 503 after AgentDBPoolWait';
    ok !grep({ $_->{status} >= 500 && $_->{status} != 503 } @answers),
        'database: no request gets another server error than 503';
    close $lock;
    is $there->get("/threads/$victim")->{status}, 200, 'database: requests are answered when a connection is free again';
};

# A stream's turns wait for this lock as they would for a slow statement.
for my $parking (qw(On Off)) {
    subtest "database: streams leave connections to others, AgentParking $parking" => sub {
        my $small = AgentTest::Server->new(
            database => $postgres->conninfo,
            config   => AgentTest::Server::shared_config() . "AgentParking $parking\n"
                . "AgentDBPoolSize 2\nAgentDBPoolWait 0\nAgentDBQueryTimeout 60s\n",
        );
        $small->start;
        my $there = AgentTest::Client->new(url => $small->url);
        my $thread = $there->create_thread->{thread_id};
        my $run = $there->create_run($thread, 'hello');
        $there->join_run($run);
        my $locker = open(my $pipe, '|-', 'psql -X -q >/dev/null');
        print {$pipe} "begin; lock agent.run_events in access exclusive mode;\n";
        $pipe->flush;
        wait_for('the lock', sub { sql(
            "select count(*) from pg_stat_activity where state = 'idle in transaction' "
                . "and application_name = 'psql'") });
        my @streams = map {
            $there->begin('GET', AgentTest::Client::run_path($run) . '/stream')
        } 1 .. 6;
        wait_for('a turn', sub { sql('select count(*) from pg_locks where not granted') });
        my %statuses;
        $statuses{ $there->get("/threads/$thread")->{status} }++ for 1 .. 20;
        is_deeply \%statuses, { 200 => 20 },
            "database: requests have a connection while streams wait for theirs, AgentParking $parking";
        print {$pipe} "rollback;\n";
        close $pipe;
        is_deeply [ map { $there->finish($_)->{status} } @streams ], [ (200) x 6 ],
            "database: streams wait for a connection, AgentParking $parking";
    };
}

subtest 'database: settings of a role do not change results' => sub {
    my @settings = ("client_encoding = 'LATIN1'",
        "default_transaction_isolation = 'repeatable read'", 'idle_session_timeout = 200',
        'search_path = decoy, pg_catalog');
    $postgres->make_database('other');
    local $ENV{PGDATABASE} = 'other';
    # They fail when a statement uses them.
    sql('create schema decoy; grant usage on schema decoy to public');
    sql("create domain decoy.$_ as pg_catalog.$_ check (false)") for qw(uuid json text);
    sql('create function decoy.fail(text, text) returns boolean language sql as $$ select 1 / 0 > 0 $$');
    sql("create operator decoy.$_ (function = decoy.fail, leftarg = text, rightarg = text)") for qw(= ||);
    sql(join '; ', map { "alter role agent in database other set $_" } @settings);
    my $other = AgentTest::Server->new(database => $postgres->conninfo('agent', 'other'));
    $other->start;
    my $there = AgentTest::Client->new(url => $other->url);
    my $mine = "usename = 'agent' and datname = 'other'";
    my $lasting = "select string_agg(pid::text, ' ' order by pid) from pg_stat_activity "
        . "where $mine and application_name in ('agent supervisor', 'mod_agent listener')";
    my $own = $there->new_thread;
    my $text = "\x{17e}lu\x{165}ou\x{10d}k\x{fd} \x{1f40e}";
    my $run = $there->create_run($own, $text);
    is $there->join_run($run)->{messages}[0]{content}, $text,
        'database: types and operators that hide those of the catalog are not used';
    is $there->get_state($own)->{values}{messages}[0]{content}, $text, 'database: text is unchanged with client_encoding LATIN1';
    utf8::decode(my $stored = sql("select input #>> '{messages,0,content}' from agent.runs "
        . "where run_id = '$run->{run_id}'"));
    is $stored, $text, 'database: text is stored unchanged with client_encoding LATIN1';

    my $lock = hold_lock("update agent.threads set updated_at = updated_at where thread_id = '$own'");
    my $socket = $there->begin('POST', "/threads/$own/runs", { assistant_id => 'agent' });
    wait_for('a request to wait', sub { sql(
        "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and $mine") });
    print {$lock} "commit;\n";
    close $lock;
    is $there->finish($socket)->{status}, 200, 'database: a request that waited for a lock succeeds with repeatable read';
    unlike slurp($postgres->host . '/postgres.log'), qr/could not serialize/, 'database: no serialization failure with repeatable read';

    # A session may end while its next statement is on the way.
    sql('create sequence agent.endings; grant usage on sequence agent.endings to public');
    sql(q{create function agent.end_once() returns trigger language plpgsql set search_path = '' as $$ begin }
        . q{if nextval('agent.endings') = 1 then raise exception 'idle' using errcode = '57P05'; end if; return new; end $$});
    sql('create trigger end_once before insert on agent.threads for each row execute function agent.end_once()');
    is $there->post('/threads', {})->{status}, 200, 'database: a request whose session was ended by idle_session_timeout succeeds';
    is sql('select last_value from agent.endings'), 2, 'database: its statement was executed again';

    # Each child's listener connects on its own.
    my @children = httpd_children($other->httpd_pid);
    wait_for('all listeners to connect', sub { sql("select count(*) from pg_stat_activity where $mine "
        . "and application_name = 'mod_agent listener'") == @children });
    my $before = sql($lasting);
    $there->get('/ok?check_db=1');
    wait_for('idle connections to be ended', sub { sql("select count(*) from pg_stat_activity "
        . "where $mine and application_name not in ('agent supervisor', 'mod_agent listener')") == 0 });
    is sql($lasting), $before, 'database: idle_session_timeout does not end the supervisor or listeners';
};

# A port that does not answer, like that of a machine that is switched off: its
# queue of connections is full.
sub silent_port {
    my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1)
        // die "no socket: $!";
    listen $socket, 0 or die "listen: $!";
    my @queue = map { IO::Socket::INET->new(PeerAddr => '127.0.0.1',
        PeerPort => $socket->sockport, Blocking => 0) } 1 .. 4;
    return ($socket, @queue);
}

subtest 'database: the host that answers is used while another is switched off' => sub {
    $postgres->make_database('second');
    local $ENV{PGDATABASE} = 'second';
    my @off = silent_port();
    my $conninfo = $postgres->conninfo('agent', 'second') . ' target_session_attrs=read-write'
        . ' connect_timeout=1 port=' . $off[0]->sockport . ',5432';
    $conninfo =~ s/host=/host=127.0.0.1,/;
    my $other = AgentTest::Server->new(database => $conninfo);
    $other->start;
    my $there = AgentTest::Client->new(url => $other->url);
    my $run = $there->create_run($there->new_thread, 'go on');
    $there->join_run($run);
    is $there->get_run($run)->{status}, 'success', 'database: the supervisor connects to the host that answers';
    wait_for('a listener to connect', sub { sql('select count(*) from pg_stat_activity '
        . "where datname = 'second' and application_name = 'mod_agent listener'") });
    pass 'database: listeners connect to the host that answers';
    for my $round (1 .. 3) {
        terminate_all();
        is $there->get('/ok?check_db=1')->{status}, 200, "database: the pool connects to the host that answers, round $round";
    }
};

subtest 'database: a statement whose function returns other types than before is repeated once' => sub {
    sql('create sequence public.tries; grant usage on sequence public.tries to public');
    my ($source) = join "\n", sql("select pg_get_functiondef('agent.get_thread'::regproc)");
    my ($types) = sql("select pg_get_function_identity_arguments('agent.get_thread'::regproc)");
    my $one = AgentTest::Server->new(database => $postgres->conninfo,
        config => AgentTest::Server::shared_config() . "AgentDBPoolSize 1\n");
    $one->start;
    my $there = AgentTest::Client->new(url => $one->url);
    $there->get("/threads/$thread") for 1 .. 20;
    sql("drop function agent.get_thread($types)");
    sql($source =~ s/\bbody text\b/body character varying/r);
    is $there->get("/threads/$thread")->{status}, 200, 'database: the types of a result may change';
    sql("drop function agent.get_thread($types)");
    sql($source =~ s/^begin$/begin perform pg_catalog.nextval('public.tries'); raise using errcode = '0A000';/mr);
    is $there->get("/threads/$thread")->{status}, 500, 'database: another error with the same SQLSTATE is one of the request';
    is sql('select last_value from public.tries'), 1, 'database: a statement that fails with such an error is not repeated';
    sql("drop function agent.get_thread($types)");
    sql($source);
    sql('drop sequence public.tries');
};

subtest 'database: requests are answered 503 with a newer schema' => sub {
    sql('insert into agent.schema_version (version, name) '
        . "select max(version) + 1, 'of_tomorrow' from agent.schema_version");
    my $newer = AgentTest::Server->new(database => $postgres->conninfo);
    $newer->start;
    my $there = AgentTest::Client->new(url => $newer->url);
    my $answer = $there->get("/threads/$thread");
    is $answer->{status}, 503, 'database: requests are answered 503 with a newer schema';
    is $answer->{json}{code}, 'schema_mismatch', 'database: the code with a newer schema is schema_mismatch';
    wait_for('the log to name both versions', sub {
        $newer->error_log =~ /schema agent has version \d+, this module needs \d+/ });
    pass 'database: the log names both versions of the schema';
    sql("delete from agent.schema_version where name = 'of_tomorrow'");
    is $there->get("/threads/$thread")->{status}, 200,
        'database: requests are answered without a restart when the schema matches';
};

undef $server;
done_testing;
