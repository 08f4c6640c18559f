# SPDX-License-Identifier: Apache-2.0
# The keys of requests: API keys, user ids, addresses; and attempts to spoof them.
use strict;
use warnings;
use RateLimitTest;
use Test::More;

my $server = RateLimitTest->new(config => table() . <<'CONF');
Redirect 204 /
<VirtualHost *:${PORT_2}>
    RateLimitIPv6Prefix 52
    RateLimitKeyPattern ^lsv2_(pt|sk)_[0-9a-f]+$
    Redirect 204 /
</VirtualHost>
CONF
$server->start;
my $second = $server->second;

# The remaining quota after a request of each.
sub left_of {
    my ($where, @who) = @_;
    return map { left($where->ask('GET', '/x', $_)) } @who;
}

sub same_counter {
    my ($title, $where, @who) = @_;
    my ($first, @others) = left_of($where, @who);
    is_deeply \@others, [ map { $first - $_ } 1 .. @others ], $title;
    return;
}

sub other_counters {
    my ($title, $where, @who) = @_;
    my ($first, @others) = left_of($where, @who);
    is_deeply \@others, [ ($first) x @others ], $title;
    return;
}

sub from { return map { { 'X-Forwarded-For' => $_ } } @_ }

my $bearer = 'Bearer ag1_local_sk_' . '0' x 22 . '_' . '0' x 43 . '_000000';
is rule_of($server->ask('GET', '/x', { Authorization => $bearer })), 'public', '3.4: Authorization is not a key: without x-api-key a request is public';
is rule_of($server->ask('GET', '/x', { Authorization => $bearer, 'x-api-key' => next_key() })), 'default-api', '3.4: beside x-api-key it changes nothing';

# ---- 3.14 ----
my $key = next_key();
same_counter('requests with an API key share a counter', $server, map { { 'x-api-key' => $key } } 1 .. 3);
other_counters('3.14: each API key has its own counter',
    $server, map { { 'x-api-key' => next_key() } } 1 .. 3);
is rule_of($second->ask('GET', '/x', { 'x-api-key' => 'lsv2_pt_0a' })),
    'default-api', '3.14: RateLimitKeyPattern accepts a matching API key';
is rule_of($second->ask('GET', '/x', { 'x-api-key' => 'sprayed' })), 'public',
    '3.14: RateLimitKeyPattern: any other API key counts as absent';

# The ways to match `(a|aa)+` grow exponentially; PCRE gives up after ten
# million steps.
my $nested = RateLimitTest->new(config => table() . "RateLimitKeyPattern ^(a|aa)+\$\nRedirect 204 /\n");
$nested->start;
is rule_of($nested->ask('GET', '/x', { 'x-api-key' => 'a' x 255 . 'b' })), 'public',
    '3.14: RateLimitKeyPattern: an API key for which PCRE exceeds its match limit counts as absent';
is rule_of($nested->ask('GET', '/x', { 'x-api-key' => 'aaaa' })), 'default-api',
    '3.14: RateLimitKeyPattern: other API keys are accepted by such a pattern';

# ---- 3.15 ----
my $host = "Host: localhost\r\nConnection: close\r\n";
is rule_of($server->exchange("GET /x HTTP/1.1\r\n${host}x-api-key: a\r\nx-api-key: b\r\n\r\n")),
    'public', '3.15: two x-api-key headers count as absent';
is rule_of($server->exchange("GET /x HTTP/1.1\r\n${host}x-user-id: a\r\nX-User-Id: a\r\n\r\n")),
    'public', '3.15: two x-user-id headers count as absent';
is rule_of($server->ask('GET', '/x', { 'x-api-key' => 'a,b' })), 'public',
    '3.15: an API key with a comma counts as absent';
is rule_of($server->exchange("GET /x HTTP/1.1\r\n${host}x-api-key: a\r\n  b\r\n\r\n")),
    'public', '3.15: a folded API key counts as absent';
is rule_of($server->exchange(
    "GET /x HTTP/1.1\r\n${host}x-api-key: a\r\nx-api-key: b\r\nx-user-id: u\r\n\r\n")),
    'default-user', '3.15: with two API keys the user id is counted';

# ---- 3.16 ----
my @clients = from(next_address(), next_address());
$_->{'x-user-id'} = 'u' for @clients;
other_counters('3.16: a user id has a counter per address', $server, @clients);
my ($here) = from(next_address());
other_counters('3.16: two user ids at an address have separate counters', $server,
    map { { %{$here}, 'x-user-id' => $_ } } 'u1', 'u2', 'u');
same_counter('3.16: IPv6 addresses of a /64 share a counter', $server,
    from('2001:db8:1:2::1', '2001:db8:1:2:ffff::9', '2001:db8:1:2:8000::'));
other_counters('3.16: two IPv6 /64 have separate counters', $server,
    from('2001:db8:7:1::1', '2001:db8:7:2::1', '2001:db8:8:1::1'));
same_counter('3.16: RateLimitIPv6Prefix 52: addresses of a /52 share a counter', $second,
    from('2001:db8:9:1000::1', '2001:db8:9:1fff::1'));
other_counters('3.16: RateLimitIPv6Prefix 52: two /52 have separate counters', $second,
    from('2001:db8:a:1000::1', '2001:db8:a:2000::1', '2001:db8:b:1000::1'));
is_deeply [ left_of($server, from('2001:db8:c::1')), left_of($second, from('2001:db8:c::1')) ],
    [ 99, 99 ], '3.16: a /52 and its first /64 have separate counters';
same_counter('3.16: an IPv4-mapped IPv6 address is the IPv4 address', $server,
    from('10.200.0.1', '::ffff:10.200.0.1'));
other_counters('3.16: IPv4 addresses are counted whole', $server,
    from('::ffff:10.200.0.2', '::ffff:10.200.0.3', '10.200.0.4'));
same_counter('equal user ids share a counter', $server,
    map { { %{$here}, 'x-user-id' => 'Same' } } 1, 2);
other_counters('user ids are case-sensitive', $server,
    map { { %{$here}, 'x-user-id' => $_ } } 'anna', 'Anna', 'ANNA');

# Different keys must not have equal identities.
other_counters('an API key and an equal user id have separate counters', $server,
    { 'x-api-key' => 'same', %{$here} }, { 'x-user-id' => 'same', %{$here} });

# ---- spoofing ----
same_counter('addresses that a client puts into X-Forwarded-For are ignored',
    $server, from('192.0.2.1, 10.201.0.1', '192.0.2.2, 10.201.0.1',
        '10.201.0.1', 'x, 10.201.0.1'));
same_counter('untrusted address headers are ignored', $server,
    map { { 'X-Forwarded-For' => '10.202.0.1', %{$_} } } {},
    { 'X-Real-IP' => '1.2.3.4' }, { 'Forwarded' => 'for=1.2.3.4' },
    { 'True-Client-IP' => '1.2.3.4' }, { 'x_api_key' => 'k' });

my $open = RateLimitTest->new(defines => ['NO_PROXY'],
    config => table() . "Redirect 204 /\n");
$open->start;
same_counter('without a trusted proxy X-Forwarded-For is ignored', $open, {},
    from('192.0.2.1', '192.0.2.2', '127.0.0.1'));

# ---- any bytes ----
my %odd = (
    'a blank'           => 'a b',
    'a tab'             => "a\tb",
    'a byte above 127'  => "k\xff",
    'UTF-8'             => "k\xc3\xa9",
    '257 characters'    => 'k' x 257,
    '8,000 characters'  => 'k' x 8_000,
);
for my $name (sort keys %odd) {
    my $answer = $server->ask('GET', '/x',
        { 'x-api-key' => $odd{$name}, 'X-Forwarded-For' => next_address() });
    is rule_of($answer), 'public', "3.15: an API key with $name counts as absent";
    is $answer->{status}, 204, "3.15: a request whose API key has $name is served";
}
is rule_of($server->ask('GET', '/x', { 'x-api-key' => 'k' x 256 })),
    'default-api', '3.15: an API key may have 256 characters';
is rule_of($server->ask('GET', '/x', { 'x-user-id' => 'u' x 128 })),
    'default-user', '3.15: a user id may have 128 characters';
is rule_of($server->ask('GET', '/x', { 'x-user-id' => 'u' x 129 })), 'public',
    '3.15: a user id of 129 characters counts as absent';
is rule_of($server->ask('GET', '/x', { 'x-api-key' => q(!"#$%&'()*+-./:;<=>?@[]^_`{|}~) })),
    'default-api', '3.15: an API key may have all printable ASCII characters but the comma';

# The last credential of a connection is cached.
sub rules_on_a_connection {
    my (@headers) = @_;
    $headers[-1] = { %{ $headers[-1] }, Connection => 'close' };
    my $socket = $server->connection;
    syswrite $socket, join '',
        map { $server->request_text('GET', '/x', $_) } @headers;
    return [ AgentTest::Client::read_to_end($socket)
            =~ /^RateLimit-Policy: "([^"]+)"/mg ];
}

my $again = next_key();
is_deeply rules_on_a_connection({ 'x-api-key' => $again }, { 'x-user-id' => $again },
    {}, { 'x-api-key' => '' }, { 'x-api-key' => "$again," }, { 'x-user-id' => $again },
    { 'x-api-key' => $again }),
    [ qw(default-api default-user public public public default-user default-api) ],
    'credentials may change between requests of a connection';
is_deeply rules_on_a_connection({ 'x-api-key' => 'u' x 200 }, { 'x-user-id' => 'u' x 200 },
    { 'x-api-key' => 'u' x 200 }), [ qw(default-api public default-api) ],
    'a cached API key is not a valid user id';
for my $name ('NUL', 'a control byte') {
    my $byte = $name eq 'NUL' ? "\0" : "\x01";
    is $server->exchange("GET /x HTTP/1.1\r\n${host}x-api-key: a${byte}b\r\n\r\n")
        ->{status}, 400, "httpd rejects $name in a header";
}

unlike $server->error_log, qr/test-key|lsv2_pt|sprayed/,
    'no API key is in the error log';

# ---- 3.14: RateLimitNewIdentities ----
my $limited = RateLimitTest->new(config => <<'CONF');
RateLimitRegion us
RateLimitRule api  *  key=api-key  us=1000/60
RateLimitRule user *  key=user+ip  us=1000/60
RateLimitRule ip   *  key=ip       us=1000/60
RateLimitNewIdentities 5/60
Redirect 204 /
CONF
$limited->start;
my ($sprayer) = from(next_address());
my @keys = map { next_key() } 1 .. 8;
sub rules_of { return map { rule_of($limited->ask('GET', '/x', $_)) } @_ }

is_deeply [ rules_of(map { { %{$sprayer}, 'x-api-key' => $_ } } @keys) ],
    [ ('api') x 5, ('ip') x 3 ],
    '3.14: RateLimitNewIdentities limits the new keys of an address';
is_deeply [ rules_of(map { { %{$sprayer}, 'x-api-key' => $_ } } @keys) ],
    [ ('api') x 5, ('ip') x 3 ], '3.14: RateLimitNewIdentities does not limit known keys';
is_deeply [ rules_of({ %{$sprayer}, 'x-user-id' => 'new' }) ], ['ip'],
    '3.14: RateLimitNewIdentities limits user ids';
is_deeply [ rules_of({ (from(next_address()))[0]->%*, 'x-api-key' => $keys[7] }) ],
    ['api'], '3.14: a limited key is admitted from another address';
is_deeply [ rules_of({ %{$sprayer}, 'x-api-key' => $keys[7] }) ], ['api'],
    '3.14: a key admitted from one address is known at every address';
is left($limited->ask('GET', '/x', { %{$sprayer}, 'x-api-key' => next_key() })),
    1000 - 8, '3.14: requests with limited keys are charged to the address';

my $tried = RateLimitTest->new(config => <<'CONF');
RateLimitRegion us
RateLimitEngine DryRun
RateLimitRule api * key=api-key us=1000/60
RateLimitNewIdentities 5/60
<Location /limits>
    SetHandler ratelimit-status
</Location>
CONF
$tried->start;
$tried->ask('GET', '/x', { %{$sprayer}, 'x-api-key' => $_ }) for @keys;
my ($region) = $tried->ask('GET', '/limits')->{json}{regions}->@*;
is_deeply $region->{new_identities}, { count => 5, interval_sec => 60, admitted => 5,
    refused => 0, would_refuse => 3 }, '3.14: RateLimitNewIdentities in a dry run counts and limits no key';
like $tried->ask('GET', '/limits?format=prometheus')->{body},
    qr/^ratelimit_new_identities_total\{region="us",decision="would_refuse"\} 3$/m,
    '3.14: Prometheus shows the keys that a dry run would limit';
like $tried->ask('GET', '/limits?format=html')->{body},
    qr/5 admitted, 0 refused, 3 would be refused \(dry run\)/, '3.14: the status page shows the keys that a dry run would limit';

done_testing;
