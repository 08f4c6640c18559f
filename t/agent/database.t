# SPDX-License-Identifier: Apache-2.0
# Losing the database: what the client sees, and that it passes.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Database;
use AgentTest::Env qw(slurp);
use AgentTest::Gate;
use AgentTest::Postgres;
use AgentTest::Process qw(is_alive);
use AgentTest::Server;
use AgentTest::Wait;
use IO::Socket::INET;
use Test::More;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

# This test breaks its database: it brings its own.
my $postgres = AgentTest::Postgres->new;
local $ENV{PGHOST} = $postgres->host;
my $gate = AgentTest::Gate->new;
my $server = AgentTest::Server->new(database => $postgres->conninfo,
    config => AgentTest::Server::shared_config() . $gate->graph);
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

# How many there were; they are gone.
sub terminate_all {
    # offset: which they are is known before any of them is terminated.
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

my $thread = $client->create_thread->{thread_id};

# How long the slowest of 20 requests took, and how often there was each answer.
sub ask_in_vain {
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

subtest 'after every connection was terminated requests are answered' => sub {
    # Both children get connections first.
    $client->get('/ok?check_db=1') for 1 .. 60;
    for my $round (1 .. 5) {
        ok terminate_all() > 0, 'all backends are terminated';
        my %seen;
        $seen{ $client->get('/ok?check_db=1')->{status} }++ for 1 .. 20;
        $seen{ $client->post('/threads', {})->{status} }++ for 1 .. 20;
        is_deeply \%seen, { 200 => 40 }, 'the next 40 requests are answered 200';
    }
    $client->join_run($client->create_run($thread, 'during'));
    pass 'and runs execute';
};

subtest 'while PostgreSQL is down requests are answered 503' => sub {
    my $run = $client->create_run($thread, 'use gate {} and say it all',
        assistant_id => 'gated');
    my $waiting = $client->begin('GET',
        AgentTest::Client::run_path($run) . '/join');
    my $head = AgentTest::Client::read_until($waiting, qr/\r\n\r\n/);
    $gate->wait_calls(1);
    $postgres->stop('immediate');
    my $slowest;
    # A machine that stood still for so long is no answer that was slow.
    for my $round (1 .. 5) {
        ($slowest, my %seen) = ask_in_vain();
        is_deeply \%seen, { '503 1' => 20 }, 'each with Retry-After';
        last if $slowest < 2;
    }
    cmp_ok $slowest, '<', 2, 'within two seconds';
    is $client->get('/ok')->{status}, 200,
        'requests that need no database are answered';
    $postgres->start;
    wait_for('the server to recover',
        sub { $client->get('/ok?check_db=1')->{status} == 200 });
    pass 'afterwards they are answered again';
    $gate->open;
    my $joined = AgentTest::Client::parse_response(
        $head . AgentTest::Client::read_to_end($waiting));
    is $joined->{status}, 200, 'a join that was waiting goes on waiting';
    like $joined->{body}, qr/"type"\s*:\s*"ai"/, 'and gets its values';
    is $client->get_run($run)->{status}, 'success',
        'the run that was executing succeeds';
};

subtest 'a pool without a free connection is waited for, then 503' => sub {
    my $tight = AgentTest::Server->new(
        database => $postgres->conninfo,
        config   => AgentTest::Server::shared_config()
            . "AgentDBPoolSize 1\nAgentDBPoolWait 300\n",
    );
    $tight->start;
    my $there = AgentTest::Client->new(url => $tight->url);
    my $victim = $there->create_thread->{thread_id};
    # A lock on the thread's row holds whoever wants to write it, for as long
    # as lock_timeout allows.
    my $locker = open(my $pipe, '|-', 'psql -X -q >/dev/null');
    print {$pipe} "begin; select from agent.threads where thread_id = '$victim'"
        . " for update;\n";
    $pipe->flush;
    wait_for('the lock', sub { sql(
        "select count(*) from pg_stat_activity where state = 'idle in transaction' "
            . "and application_name = 'psql'") });
    my @sockets = map {
        $there->begin('POST', "/threads/$victim/runs", { assistant_id => 'agent' })
    } 1 .. 6;
    my @answers = map { $there->finish($_) } @sockets;
    my %codes;
    $codes{"$_->{status} $_->{json}{code}"}++ for @answers;
    ok $codes{'503 pool_exhausted'}, 'those without a connection get 503';
    ok !grep({ $_->{status} >= 500 && $_->{status} != 503 } @answers),
        'nobody gets anything worse';
    print {$pipe} "rollback;\n";
    close $pipe;
    is $there->get("/threads/$victim")->{status}, 200, 'and it passes';
};

subtest 'what a role has set for other programs does no harm' => sub {
    my @settings = ("client_encoding = 'LATIN1'",
        "default_transaction_isolation = 'repeatable read'", 'idle_session_timeout = 200');
    $postgres->make_database('other');
    local $ENV{PGDATABASE} = 'other';
    sql(join '; ', map { "alter role agent in database other set $_" } @settings);
    my $other = AgentTest::Server->new(database => $postgres->conninfo('agent', 'other'));
    $other->start;
    my $there = AgentTest::Client->new(url => $other->url);
    my $mine = "usename = 'agent' and datname = 'other'";
    my $steady = "select string_agg(pid::text, ' ' order by pid) from pg_stat_activity "
        . "where $mine and application_name in ('agent supervisor', 'mod_agent listener')";
    my $place = $there->create_thread->{thread_id};
    my $text = "\x{17e}lu\x{165}ou\x{10d}k\x{fd} \x{1f40e}";
    my $run = $there->create_run($place, $text);
    $there->join_run($run);
    is $there->get_state($place)->{values}{messages}[0]{content}, $text, 'text comes back';
    utf8::decode(my $stored = sql("select input #>> '{messages,0,content}' from agent.runs "
        . "where run_id = '$run->{run_id}'"));
    is $stored, $text, 'and is the same in the database';

    my $locker = open(my $pipe, '|-', 'psql -X -q >/dev/null');
    print {$pipe} "begin; update agent.threads set updated_at = updated_at "
        . "where thread_id = '$place';\n";
    $pipe->flush;
    my $waits = 'select count(*) from pg_stat_activity where state = ';
    wait_for('the lock', sub { sql("$waits 'idle in transaction' and application_name = 'psql'") });
    my $socket = $there->begin('POST', "/threads/$place/runs", { assistant_id => 'agent' });
    wait_for('a request to wait', sub { sql("$waits 'active' and wait_event_type = 'Lock' and $mine") });
    print {$pipe} "commit;\n";
    close $pipe;
    is $there->finish($socket)->{status}, 200, 'who waited for a lock sees what it waited for';
    unlike slurp($postgres->host . '/postgres.log'), qr/could not serialize/, 'at once';

    my $before = sql($steady);
    $there->get('/ok?check_db=1');
    wait_for('idle connections to be ended', sub { sql("select count(*) from pg_stat_activity "
        . "where $mine and application_name not in ('agent supervisor', 'mod_agent listener')") == 0 });
    is sql($steady), $before, 'what is idle by its nature is not ended';
};

# A port that does not answer who connects, as a machine that is off: its queue
# is full.
sub silent_port {
    my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1)
        // die "no socket: $!";
    listen $socket, 0 or die "listen: $!";
    my @queue = map { IO::Socket::INET->new(PeerAddr => '127.0.0.1',
        PeerPort => $socket->sockport, Blocking => 0) } 1 .. 4;
    return ($socket, @queue);
}

subtest 'of several hosts one that is off does not keep anybody from the others' => sub {
    $postgres->make_database('second');
    local $ENV{PGDATABASE} = 'second';
    my @off = silent_port();
    my $conninfo = $postgres->conninfo('agent', 'second') . ' target_session_attrs=read-write'
        . ' connect_timeout=1 port=' . $off[0]->sockport . ',5432';
    $conninfo =~ s/host=/host=127.0.0.1,/;
    my $other = AgentTest::Server->new(database => $conninfo);
    $other->start;
    my $there = AgentTest::Client->new(url => $other->url);
    my $run = $there->create_run($there->create_thread->{thread_id}, 'go on');
    $there->join_run($run);
    is $there->get_run($run)->{status}, 'success', 'the supervisor finds the one that answers';
    wait_for('a listener', sub { sql('select count(*) from pg_stat_activity '
        . "where datname = 'second' and application_name = 'mod_agent listener'") });
    pass 'so do those who listen';
    for my $round (1 .. 3) {
        terminate_all();
        is $there->get('/ok?check_db=1')->{status}, 200, 'so does the pool, after its connections were lost';
    }
};

subtest 'another schema than the module knows is 503 with a clear line' => sub {
    sql('insert into agent.schema_version (version, name) '
        . "select max(version) + 1, 'of_tomorrow' from agent.schema_version");
    my $newer = AgentTest::Server->new(database => $postgres->conninfo);
    $newer->start;
    my $there = AgentTest::Client->new(url => $newer->url);
    my $answer = $there->get("/threads/$thread");
    is $answer->{status}, 503, 'requests are answered 503';
    is $answer->{json}{code}, 'schema_mismatch', 'with the code';
    wait_for('the log to name both versions', sub {
        $newer->error_log =~ /schema agent has version \d+, this module needs \d+/ });
    pass 'the log names both versions';
    sql("delete from agent.schema_version where name = 'of_tomorrow'");
    is $there->get("/threads/$thread")->{status}, 200,
        'when the schema is right, requests are answered without a restart';
};

undef $server;
done_testing;
