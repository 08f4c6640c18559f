# SPDX-License-Identifier: Apache-2.0
# The end of an API key ends the requests that it has opened: streams, joins, exports.
use strict;
use warnings;
use AgentTest::ApiKey;
use AgentTest::Client qw(parse_response read_events read_to_end read_until run_body run_path);
use AgentTest::Conf qw(demo_graph key_location location one_child platform_location);
use AgentTest::Database;
use AgentTest::Postgres;
use AgentTest::Process qw(runner_pids);
use AgentTest::Server;
use AgentTest::Wait;
use IO::Select;
use Test::More;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

# A separate cluster, which this test stops.
my $postgres = AgentTest::Postgres->new;
local $ENV{PGHOST} = $postgres->host;
my ($shop, $leaver) = map { create_account() } 1, 2;

# Two hosts, each with one child: requests wait without a thread in the first one only.
sub start_server {
    my ($parking) = @_;
    my $server = AgentTest::Server->new(database => $postgres->conninfo, config => join '', one_child(40), demo_graph(), key_location(),
        location('/leaver', "AgentDeployment till account=$leaver"), platform_location(), <<"CONF");
Timeout 600
AgentParking $parking
AgentDeployment shop account=$shop
CONF
    $server->start;
    return $server;
}

my @servers = map { start_server($_) } qw(On Off);
my @clients = map { AgentTest::Client->new(url => $_->url) } @servers;
my $client = $clients[0];
my $keeper = create_key($shop);

sub with { return { 'x-api-key' => $_[0] } }

# A run that begins in an hour.
sub start_run {
    my $thread = $client->post('/threads', {}, with($keeper))->{json}{thread_id};
    return $client->post("/threads/$thread/runs", run_body('hello', after_seconds => 3600), with($keeper))->{json};
}

# Sends a request without Connection: close.
sub open_request {
    my ($at, $method, $path, $key, $body) = @_;
    my $socket = $at->connection;
    my $length = defined $body ? 'Content-Length: ' . length($body) . "\r\n" : '';
    syswrite $socket, "$method $path HTTP/1.1\r\nHost: localhost\r\nx-api-key: $key\r\n$length\r\n" . ($body // '');
    return $socket;
}

# GETs of a path on both hosts, whose headers have arrived.
sub open_path {
    my ($path, $key) = @_;
    return map {
        my $socket = open_request($_, 'GET', $path, $key);
        { path => $path, socket => $socket, head => read_until($socket, qr/\r\n\r\n/) };
    } @clients;
}

# All requests that wait for a run.
sub open_all {
    my ($run, $key) = @_;
    return map { open_path($_, $key) } "/threads/$run->{thread_id}/stream", map { run_path($run) . "/$_" } qw(stream join);
}

# Each ends with the error of a key that is no longer valid.
sub check_ended {
    my ($what, @all) = @_;
    for my $open (@all) {
        my $answer = parse_response($open->{head} . read_to_end($open->{socket}));
        my $name = $open->{path} =~ m{runs/.*/(\w+)} ? "$1 of a run" : 'stream of a thread';
        is $answer->{status}, 200, "$what: the $name had begun";
        if ($name =~ /join/) {
            is $answer->{json}{__error__}{error}, 'unknown_key', "$what: the $name ends with the error";
        }
        else {
            my @events = read_events($answer->{body});
            is $events[-1]{event}, 'error', "$what: the last event of the $name is an error";
            is $events[-1]{data}{error}, 'unknown_key', "$what: it says that the key is no longer valid";
            like $events[-1]{data}{message}, qr/no longer valid/, "$what: also as a sentence";
        }
    }
    return;
}

# Whether a connection is open and has not sent an error.
sub is_open {
    my ($open) = @_;
    while (IO::Select->new($open->{socket})->can_read(0)) {
        my $read = sysread $open->{socket}, my $bytes, 65_536;
        return 0 if !$read || $bytes =~ /error/;
    }
    return 1;
}

sub count_open {
    my (@all) = @_;
    return scalar grep { is_open($_) } @all;
}

sub now { return clock_gettime(CLOCK_MONOTONIC) }

my $run = start_run();
my @kept = open_all($run, $keeper);

# The time in which an end takes effect, with some for a busy machine.
my $MOST_SEC = 6;

subtest 'revocation: a revoked key ends the streams and joins that it has opened, on every host' => sub {
    my $key = create_key($shop);
    my @all = open_all($run, $key);
    my $begun = now();
    revoke_key($key);
    check_ended('revocation', @all);
    cmp_ok now() - $begun, '<', $MOST_SEC, 'revocation: about 2 s after the revocation';
    is count_open(@kept), 6, 'revocation: those of another key go on';
    is sql("select status from agent.runs where run_id = '$run->{run_id}'"), 'pending', 'revocation: the run stays';
};

subtest 'revocation: a request whose response has not begun gets 401' => sub {
    my $key = create_key($shop);
    my $thread = $client->post('/threads', { metadata => { graph_id => 'agent' } }, with($keeper))->{json}{thread_id};
    my @runners = map { runner_pids($_->httpd_pid) } @servers;
    kill STOP => @runners;
    my $socket = open_request($client, 'POST', "/threads/$thread/state", $key, '{"values":{"messages":[]}}');
    wait_for('the update', sub { $client->get("/threads/$thread", undef, with($keeper))->{json}{status} eq 'busy' });
    revoke_key($key);
    my $answer = parse_response(read_to_end($socket));
    is "$answer->{status} $answer->{json}{code}", '401 unknown_key', 'a response that has not begun is 401, in the body of the API';
    is $answer->{headers}{'www-authenticate'}, 'Bearer realm="agent"', 'a response that has not begun has the challenge';
    is $answer->{headers}{connection}, 'close', 'the connection is closed after a response that had not begun';
    kill CONT => @runners;
};

subtest 'revocation: a key is checked again when a body took long' => sub {
    my $key = create_key($shop);
    my $socket = $client->connection;
    syswrite $socket, "POST /threads HTTP/1.1\r\nHost: localhost\r\nx-api-key: $key\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
    read_until($socket, qr/100 Continue/);
    revoke_key($key);
    my $begun = now();
    wait_for('the time to pass', sub { now() > $begun + 2 });
    syswrite $socket, '{}';
    my $answer = parse_response(read_until($socket, qr/\}\z/));
    is "$answer->{status} $answer->{json}{code}", '401 unknown_key', 'body: the request is refused';
};

subtest 'revocation: a key that is checked again is not refused for wrong keys of its address' => sub {
    my $address = '127.0.0.9';
    my $guesser = AgentTest::Client->new(url => $servers[0]->url, local_address => $address);
    my $ask = sub { my $answer = $guesser->get('/threads/none', undef, with($_[0])); return "$answer->{status} $answer->{json}{code}" };
    my $key = create_key($shop);
    my $socket = $guesser->connection(LocalAddr => $address);
    syswrite $socket, "POST /threads HTTP/1.1\r\nHost: localhost\r\nx-api-key: $key\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
    read_until($socket, qr/100 Continue/);
    my $begun = now();
    wait_for('the time to pass', sub { now() > $begun + 2 });
    wait_for('other keys to be refused', sub { $ask->(print_key('sk', random_digits(22), random_digits(43))) eq '429 too_many_failures' });
    syswrite $socket, '{}';
    is parse_response(read_until($socket, qr/\}\z/))->{status}, 200, 'body: the request is served';
};

subtest 'revocation: the expiry of a key ends them' => sub {
    my $key = create_key($shop, lifetime => '3 s');
    check_ended('expiry', open_all($run, $key));
    my ($id) = key_id($key);
    is sql("select expires_at <= clock_timestamp() from agent.api_keys where key_id = '$id'"), 't', 'expiry: not before the key expires';
};

subtest 'revocation: the end of an account ends them' => sub {
    my $key = create_key($leaver);
    my $thread = $client->post('/leaver/threads', {}, with($key))->{json}{thread_id};
    my @all = open_path("/leaver/threads/$thread/stream", $key);
    close_account($leaver);
    check_ended('account', @all);
    is count_open(@kept), 6, 'account: those of another account go on';
};

subtest 'revocation: it ends exports' => sub {
    my $deployment = sql("select agent.ensure_deployment('shop', '$shop')");
    # 30 MB, which do not compress.
    sql("insert into agent.store_items (deployment_id, namespace, key, value, value_bytes, created_at, updated_at)
        select '$deployment', '{a}', 'k' || n, to_jsonb((select string_agg(md5(random()::text), '') from generate_series(1, 320 + 0 * n))), 10240, now(), now()
          from generate_series(1, 3000) n");
    my $key = create_key($shop);
    my $export = open_request($client, 'GET', '/platform/v1/account/export', $key);
    read_until($export, qr/\r\n\r\n/);
    my ($stream) = open_all($run, $key);
    revoke_key($key);
    check_ended('export', $stream);
    my $rest = read_to_end($export);
    unlike $rest, qr/\r\n0\r\n\r\n\z/, 'export: the client sees that it is incomplete';
    cmp_ok length $rest, '<', 20_000_000, 'export: most of it is not sent';
};

subtest 'revocation: it ends them while there are no notifications' => sub {
    my $key = create_key($shop);
    my @all = open_all($run, $key);
    sql('alter role agent connection limit 0');
    sql(q{select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'mod_agent listener'});
    wait_for('the hosts to notice', sub { 2 == grep { $_->error_log =~ /AGT0201/ } @servers });
    revoke_key($key);
    check_ended('without LISTEN', @all);
    sql('alter role agent connection limit -1');
};

subtest 'revocation: while the database is down they stay open, until their key expires' => sub {
    my $key = create_key($shop, lifetime => '8 s');
    my @all = open_all($run, $key);
    $postgres->stop('immediate');
    check_ended('database', @all);
    is count_open(@kept), 6, 'database: those of a key that does not expire are open';
    $postgres->start;
    my $begun = wait_for('a key to be admitted again', sub { $client->get(run_path($run), undef, with($keeper))->{status} == 200 });
    is count_open(@kept), 6, 'database: also afterwards';
    revoke_key($keeper);
    check_ended('database', @kept);
};

undef @servers;
done_testing;
