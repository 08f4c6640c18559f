# SPDX-License-Identifier: Apache-2.0
# API keys that are forged, cut, changed, expired, revoked or of another kind, at both APIs:
# none is admitted, none is an internal error, and a valid key is served beside them.
use strict;
use warnings;
use AgentTest::ApiKey;
use AgentTest::Client qw(read_all);
use AgentTest::Conf qw(key_location one_child platform_location);
use AgentTest::Cost;
use AgentTest::Database;
use AgentTest::Env qw(is_sanitized);
use AgentTest::Postgres;
use AgentTest::Process qw(httpd_children);
use AgentTest::Server;
use Test::More;

my $COUNT = is_sanitized() ? 20_000 : 100_000;
# Requests of a connection, which has an address of its own: a child counts refused keys by
# address, and answers 429 without a query after 20.
my $EACH = 22;
my $CONNECTIONS = 25;
# Of allocators and full tables; each key that was kept would take 200 bytes.
my $MOST_BYTES = 8 << 20;
my $UUID = '01900000-0000-7000-8000-000000000000';

my $postgres = AgentTest::Postgres->new;
local $ENV{PGHOST} = $postgres->host;
my ($mine, $theirs, $closed) = map { create_account() } 1 .. 3;
# One child, whose memory is compared.
my $server = AgentTest::Server->new(database => $postgres->conninfo, config => join '', one_child(40), key_location(), platform_location(), <<"CONF");
AgentRegionURL us https://us.example.com https://us.api.example.com
AgentDeployment shop account=$mine
LogLevel warn
CONF
$server->start;
my $client = AgentTest::Client->new(url => $server->url);
my $key = create_key($mine);
my $served = sub { return $client->get("/threads/$UUID", undef, { 'x-api-key' => $key })->{json}{code} eq 'thread_not_found' };
ok $served->(), 'forged keys: a valid key is admitted before';

sql("select agent.ensure_deployment('desk', '$mine')");
my ($id, $secret) = map { key_id($key, $_) } 3, 4;
my %real = (revoked => create_key($mine), expired => create_key($mine, lifetime => '1 ms'), closed => create_key($closed),
    theirs => create_key($theirs), desk => create_key($mine, kind => 'deployment', deployment => 'desk'));
revoke_key($real{revoked});
close_account($closed);

my @DIGITS = ('0' .. '9', 'A' .. 'Z', 'a' .. 'z');
sub changed {
    my ($text) = @_;
    my $at = int rand length $text;
    my $digit;
    do { $digit = $DIGITS[ rand @DIGITS ] } while $digit eq substr $text, $at, 1;
    substr $text, $at, 1, $digit;
    return $text;
}
sub kind { return (qw(sk pt dk))[ rand 3 ] }

# Each returns a key that opens neither API; where it is sent is chosen after that.
my @FORGE = (
    sub { return print_key(kind(), random_digits(22), random_digits(43)) },
    sub { return print_key(kind(), random_digits(22), $secret) },
    sub { return print_key('sk', $id, random_digits(43)) },
    sub { return print_key((qw(pt dk))[ rand 2 ], $id, $secret) },
    # A checksum that fits, over a changed part.
    sub { return rand() < 0.5 ? print_key('sk', changed($id), $secret) : print_key('sk', $id, changed($secret)) },
    sub { return print_key('sk', lc $id eq $id ? uc $id : lc $id, $secret) },
    # Numbers of more bits than an id and a secret have.
    sub { return rand() < 0.5 ? print_key('sk', 'z' x 22, $secret) : print_key('sk', $id, 'z' x 43) },
    sub { return print_key('sk', $id, $secret, 'mars') },
    # Other texts.
    sub { return changed($key) },
    sub { return substr $key, 0, 1 + int rand(length($key) - 1) },
    sub { return substr $key, 1 + int rand(length($key) - 1) },
    sub { return $key . $DIGITS[ rand @DIGITS ] x (1 + rand 200) },
    sub { return "$key, $key" },
    sub { return uc $key },
    sub { return join '', map { chr(33 + rand 94) } 1 .. 1 + rand 120 },
    sub { return $real{ (keys %real)[ rand keys %real ] } },
);
my @PATHS = ("/threads/$UUID", '/platform/auth', '/platform/v1/account', '/platform/v1/account/keys', "/threads/$UUID/runs");

# Refusals; the last two are those of valid keys of others.
my $REFUSED = qr/\A(?:401 (?:invalid_key|unknown_key|unauthorized)|429 too_many_failures|403 scope_required|404 deployment_not_found)\z/;

# A valid key of another account opens its own account on a platform host, and a key of a
# deployment says who it is.
sub is_own_use {
    my ($text, $path) = @_;
    return $path =~ /platform/ && ($text eq $real{theirs} || ($text eq $real{desk} && $path =~ /auth/));
}

sub request_with {
    my ($text, $path) = @_;
    my $way = int rand 4;
    # x-api-key decides where both are present.
    my @headers = $way == 0 ? "Authorization: Bearer $text" : $way == 1 ? ("x-api-key: $text", "Authorization: Bearer $key")
        : $way == 2 ? ("x-api-key: $text", "x-api-key: $text") : "x-api-key: $text";
    return join "\r\n", "GET $path HTTP/1.1", 'Host: localhost', @headers, '', '';
}

# The requests of one connection.
sub requests {
    my @all;
    while (@all < $EACH) {
        my ($text, $path) = ($FORGE[ rand @FORGE ]->(), $PATHS[ rand @PATHS ]);
        push @all, [ $text, request_with($text, $path) ] if !is_own_use($text, $path);
    }
    # It is answered before it is read, and ends the connection.
    push @all, [ 'of us', request_with(print_key('sk', random_digits(22), random_digits(43), 'us'), $PATHS[0]) ];
    return @all;
}

my (%seen, @wrong);
my ($sent, $beside, $address) = (0, 0, 0);

# Sends on $CONNECTIONS at the same time; a valid key, of another address, before the answers are read.
sub round {
    my (@sockets, @of);
    for (1 .. $CONNECTIONS) {
        my @requests = requests();
        $address++;
        my $socket = $client->connection(LocalAddr => join '.', 127, 2 + int($address / 62_500), int($address / 250) % 250, $address % 250 + 1);
        syswrite $socket, join '', map { $_->[1] } @requests;
        push @sockets, $socket;
        push @of, \@requests;
    }
    $beside++ if !$served->();
    my @answers = read_all(@sockets);
    for my $index (0 .. $#sockets) {
        my @outcomes = $answers[$index] =~ m{HTTP/1\.1 (\d+) .*?"code":\s*"(\w+)"}sg;
        my @pairs = map { "$outcomes[ 2 * $_ ] $outcomes[ 2 * $_ + 1 ]" } 0 .. @outcomes / 2 - 1;
        my $last = pop @pairs // 'no answer';
        $seen{$_}++ for @pairs, $last;
        push @wrong, "$last to a key of another region" if $last ne '403 wrong_region';
        push @wrong, @pairs . " answers to $EACH requests: $answers[$index]" if @pairs != $EACH;
        push @wrong, map { "$pairs[$_] to $of[$index][$_][1]" } grep { $pairs[$_] !~ $REFUSED } 0 .. $#pairs;
    }
    $sent += @sockets * (1 + $EACH);
    return;
}

srand(my $seed = $ENV{AGENT_TEST_SEED} // time);
round() for 1 .. 4;
my ($child, @others) = httpd_children($server->httpd_pid);
my $bytes = resident_bytes($child);
round() while $sent < $COUNT;
is scalar @wrong, 0, "forged keys: each of $COUNT is refused" or diag "AGENT_TEST_SEED=$seed\n", map { substr($_, 0, 600) . "\n" } @wrong[ 0 .. 3 ];
is $beside, 0, 'forged keys: a valid key of another address is admitted beside them';
cmp_ok $seen{$_} // 0, '>', 0, "forged keys: some are answered $_"
    for '401 invalid_key', '401 unknown_key', '403 scope_required', '404 deployment_not_found', '403 wrong_region';
is_deeply [ httpd_children($server->httpd_pid) ], [ $child, @others ], 'forged keys: the child lives on';
cmp_ok resident_bytes($child) - $bytes, '<', memory_scale() * $MOST_BYTES, 'forged keys: its memory is bounded';
is sql('select count(*) from agent.api_keys where last_used_at is not null and (revoked_at is not null or expires_at is not null)'), 0,
    'forged keys: revoked and expired keys were not used';
ok $served->(), 'forged keys: a valid key is admitted after them';
unlike $server->error_log, qr/\Q$secret\E/, 'forged keys: no log line has the secret of the valid key';
note join ', ', map { "$_: $seen{$_}" } sort keys %seen;

undef $server;
done_testing;
