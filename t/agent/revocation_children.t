# SPDX-License-Identifier: Apache-2.0
# New requests with a revoked key: each child of an httpd refuses them 2 s after the revocation, also while none of
# them has a LISTEN connection, nor can get one.
use strict;
use warnings;
use AgentTest::ApiKey;
use AgentTest::Client qw(parse_response read_until);
use AgentTest::Conf qw(key_location);
use AgentTest::Database;
use AgentTest::Env qw(slurp);
use AgentTest::Postgres;
use AgentTest::Process qw(httpd_children);
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my $CHILDREN = 3;
# Of the README.
my $PROMISED_SEC = 2;
my $UUID = '01900000-0000-7000-8000-000000000000';
my ($ADMITTED, $REFUSED) = ('404 thread_not_found', '401 unknown_key');

my $postgres = AgentTest::Postgres->new;
local $ENV{PGHOST} = $postgres->host;
my ($shop, @closing) = map { create_account() } 1 .. 3;
# Children with few threads, whose number stays; each keeps a connection of its pool.
my $server = AgentTest::Server->new(database => $postgres->conninfo, config => key_location() . <<"CONF");
StartServers $CHILDREN
ServerLimit $CHILDREN
ThreadsPerChild 10
ThreadLimit 10
MinSpareThreads 10
MaxSpareThreads @{[ 10 * $CHILDREN ]}
MaxRequestWorkers @{[ 10 * $CHILDREN ]}
AgentRunner "\${BUILD_DIR}/agent-runner"
AgentMaxWaitersPerAddress 0
AgentDeployment shop account=$shop
<AgentGraph agent>
    AgentModel demo
</AgentGraph>
<Location "/till">
    AgentPrefix /till
    AgentDeployment till account=$closing[0]
</Location>
<Location "/kiosk">
    AgentPrefix /kiosk
    AgentDeployment kiosk account=$closing[1]
</Location>
CustomLog "\${DIR}/logs/children" "%P %U"
CONF
$server->start;
my $client = AgentTest::Client->new(url => $server->url);
wait_for('all children', sub { httpd_children($server->httpd_pid) == $CHILDREN });

# Outcome of a request on a connection that stays open.
sub ask {
    my ($socket, $key, $path) = @_;
    $path //= "/threads/$UUID";
    syswrite $socket, "GET $path HTTP/1.1\r\nHost: localhost\r\nx-api-key: $key\r\n\r\n";
    my $answer = parse_response(read_until($socket, qr/\r\n\r\n.*\}\z/s));
    return "$answer->{status} $answer->{json}{code}";
}

my $opened = 0;
# A connection to each child: pid => socket. The access log says which child served it.
sub connect_to_children {
    my ($key) = @_;
    my %to;
    while (keys %to < $CHILDREN && $opened < 300) {
        my ($socket, $path) = ($client->connection, '/threads/connection-' . ++$opened);
        ask($socket, $key, $path);
        my ($pid) = wait_for('the line of the access log', sub { slurp("$server->{dir}/logs/children") =~ /^(\d+) \Q$path\E$/m ? $1 : undef });
        $to{$pid} //= $socket;
    }
    return %to;
}

sub now { return clock_gettime(CLOCK_MONOTONIC) }

# Requests with the key on all connections, one after another without a pause, from its end on until each child has refused
# one and the promised time has passed: the latest begin of one that was admitted, after $ended.
sub latest_admitted {
    my ($ended, $key, $path, %to) = @_;
    my ($latest, %refused) = (0);
    while (now() < $ended + $PROMISED_SEC || keys %refused < keys %to) {
        for my $pid (grep { !$refused{$_} } keys %to) {
            my $begun = now() - $ended;
            my $seen = ask($to{$pid}, $key, $path);
            $refused{$pid} = 1 if $seen eq $REFUSED;
            $latest = $begun if $seen eq $ADMITTED && $begun > $latest;
            die "child $pid answered $seen\n" if $seen ne $REFUSED && $seen ne $ADMITTED;
        }
        last if now() > $ended + 30;
    }
    is scalar keys %refused, $CHILDREN, 'each child refuses a revoked key';
    is_deeply { map { ask($to{$_}, $key, $path) => 1 } keys %to }, { $REFUSED => 1 }, 'each child continues to refuse a revoked key';
    return $latest;
}

my $keeper = create_key($shop);
my %to = connect_to_children($keeper);
is scalar keys %to, $CHILDREN, 'revocation: there is a connection to each child' or BAIL_OUT('no children');

sub check_end {
    my ($title, $key, $path, $end) = @_;
    is_deeply { map { ask($to{$_}, $key, $path) => 1 } keys %to }, { $ADMITTED => 1 }, "$title: each child has verified the key";
    $end->();
    # Not before the commit.
    my $latest = latest_admitted(now(), $key, $path, %to);
    cmp_ok $latest, '<', $PROMISED_SEC, sprintf "$title: no request that began later than $PROMISED_SEC s was admitted (the last one: %.2f s)", $latest;
    is_deeply { map { ask($to{$_}, $keeper) => 1 } keys %to }, { $ADMITTED => 1 }, "$title: another key is admitted by each";
    return;
}

sub check_all {
    my ($title, $closed, $deployment) = @_;
    my %path = (open => "/threads/$UUID", closed => "/$deployment/threads/$UUID");
    my $revoked = create_key($shop);
    check_end("$title, revoked", $revoked, $path{open}, sub { revoke_key($revoked) });
    my $expiring = create_key($shop);
    # As if it had been created with this expiry.
    my $expire = sub { sql("update agent.api_keys set expires_at = clock_timestamp() where key_id = '@{[ key_id($expiring) ]}'") };
    check_end("$title, expired", $expiring, $path{open}, $expire);
    my $last = create_key($closed);
    check_end("$title, closed account", $last, $path{closed}, sub { close_account($closed) });
    return;
}

sub count_listeners { return poll(q{select count(*) from pg_stat_activity where application_name = 'mod_agent listener'}) }

subtest 'revocation: a key ends in each child with LISTEN' => sub {
    wait_for('each child to listen', sub { count_listeners() == $CHILDREN });
    check_all('with LISTEN', $closing[0], 'till');
};

subtest 'revocation: a key ends in each child without LISTEN' => sub {
    sql('alter role agent connection limit 0');
    sql(q{select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'mod_agent listener'});
    wait_for('each child to notice', sub {
        my %noticed = map { $_ => 1 } $server->error_log =~ /\[pid (\d+)[^\n]*AGT0201/g;
        return $CHILDREN == grep { $noticed{$_} } keys %to;
    });
    check_all('without LISTEN', $closing[1], 'kiosk');
    is count_listeners(), 0, 'without LISTEN: no child listens at the end';
    sql('alter role agent connection limit -1');
    wait_for('each child to listen again', sub { count_listeners() == $CHILDREN });
};

undef $server;
done_testing;
