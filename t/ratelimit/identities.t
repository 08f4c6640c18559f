# SPDX-License-Identifier: Apache-2.0
# What a request is counted by: API keys, user ids, addresses, and what clients
# try in order to be somebody else.
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

# What is left after a request of each of these.
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

# ---- 3.14 ----
my $key = next_key();
same_counter('a key has one counter', $server, map { { 'x-api-key' => $key } } 1 .. 3);
other_counters('3.14: by default every key has its own',
    $server, map { { 'x-api-key' => next_key() } } 1 .. 3);
is rule_of($second->ask('GET', '/x', { 'x-api-key' => 'lsv2_pt_0a' })),
    'default-api', '3.14: a key that fits RateLimitKeyPattern is one';
is rule_of($second->ask('GET', '/x', { 'x-api-key' => 'sprayed' })), 'public',
    '3.14: one that does not counts as absent';

# ---- 3.15 ----
my $host = "Host: localhost\r\nConnection: close\r\n";
is rule_of($server->exchange("GET /x HTTP/1.1\r\n${host}x-api-key: a\r\nx-api-key: b\r\n\r\n")),
    'public', '3.15: two API keys are none';
is rule_of($server->exchange("GET /x HTTP/1.1\r\n${host}x-user-id: a\r\nX-User-Id: a\r\n\r\n")),
    'public', '3.15: two user ids neither';
is rule_of($server->ask('GET', '/x', { 'x-api-key' => 'a,b' })), 'public',
    '3.15: nor is a list';
is rule_of($server->exchange("GET /x HTTP/1.1\r\n${host}x-api-key: a\r\n  b\r\n\r\n")),
    'public', '3.15: nor what is folded';
is rule_of($server->exchange(
    "GET /x HTTP/1.1\r\n${host}x-api-key: a\r\nx-api-key: b\r\nx-user-id: u\r\n\r\n")),
    'default-user', '3.15: the user id is looked at then';

# ---- 3.16 ----
my @places = from(next_address(), next_address());
$_->{'x-user-id'} = 'u' for @places;
other_counters('3.16: a user id is counted at each address', $server, @places);
my ($here) = from(next_address());
other_counters('3.16: another user id at the same address by itself', $server,
    map { { %{$here}, 'x-user-id' => $_ } } 'u1', 'u2', 'u');
same_counter('3.16: IPv6 clients by their /64', $server,
    from('2001:db8:1:2::1', '2001:db8:1:2:ffff::9', '2001:db8:1:2:8000::'));
other_counters('3.16: the next /64 by itself', $server,
    from('2001:db8:7:1::1', '2001:db8:7:2::1', '2001:db8:8:1::1'));
same_counter('3.16: RateLimitIPv6Prefix chooses another length', $second,
    from('2001:db8:9:1000::1', '2001:db8:9:1fff::1'));
other_counters('3.16: and ends there', $second,
    from('2001:db8:a:1000::1', '2001:db8:a:2000::1', '2001:db8:b:1000::1'));
is_deeply [ left_of($server, from('2001:db8:c::1')), left_of($second, from('2001:db8:c::1')) ],
    [ 99, 99 ], '3.16: a /52 is not the first /64 in it';
same_counter('3.16: IPv4 written as IPv6 is IPv4', $server,
    from('10.200.0.1', '::ffff:10.200.0.1'));
other_counters('3.16: and has all its bits', $server,
    from('::ffff:10.200.0.2', '::ffff:10.200.0.3', '10.200.0.4'));
same_counter('user ids are compared exactly', $server,
    map { { %{$here}, 'x-user-id' => 'Same' } } 1, 2);
other_counters('and with regard to case', $server,
    map { { %{$here}, 'x-user-id' => $_ } } 'anna', 'Anna', 'ANNA');

# No two pairs of parts may make the same identity.
other_counters('no key is mistaken for a user', $server,
    { 'x-api-key' => 'same', %{$here} }, { 'x-user-id' => 'same', %{$here} });

# ---- spoofing ----
same_counter('what a client writes in front of X-Forwarded-For does not count',
    $server, from('192.0.2.1, 10.201.0.1', '192.0.2.2, 10.201.0.1',
        '10.201.0.1', 'x, 10.201.0.1'));
same_counter('headers that are not trusted do not count', $server,
    map { { 'X-Forwarded-For' => '10.202.0.1', %{$_} } } {},
    { 'X-Real-IP' => '1.2.3.4' }, { 'Forwarded' => 'for=1.2.3.4' },
    { 'True-Client-IP' => '1.2.3.4' }, { 'x_api_key' => 'k' });

my $open = RateLimitTest->new(defines => ['NO_PROXY'],
    config => table() . "Redirect 204 /\n");
$open->start;
same_counter('without a trusted proxy X-Forwarded-For is nothing', $open, {},
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
    is rule_of($answer), 'public', "an API key with $name is none";
    is $answer->{status}, 204, 'and the request is served';
}
is rule_of($server->ask('GET', '/x', { 'x-api-key' => 'k' x 256 })),
    'default-api', 'one of 256 characters is one';
is rule_of($server->ask('GET', '/x', { 'x-user-id' => 'u' x 128 })),
    'default-user', 'a user id has at most 128';
is rule_of($server->ask('GET', '/x', { 'x-user-id' => 'u' x 129 })), 'public',
    'and not more';
is rule_of($server->ask('GET', '/x', { 'x-api-key' => q(!"#$%&'()*+-./:;<=>?@[]^_`{|}~) })),
    'default-api', 'every visible sign but the comma may stand in a key';

# What one connection sends, request after request, is remembered.
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
    'a connection may change who it speaks for';
is_deeply rules_on_a_connection({ 'x-api-key' => 'u' x 200 }, { 'x-user-id' => 'u' x 200 },
    { 'x-api-key' => 'u' x 200 }), [ qw(default-api public default-api) ],
    'what was an API key is not for that a user id';
for my $name ('NUL', 'a control byte') {
    my $byte = $name eq 'NUL' ? "\0" : "\x01";
    is $server->exchange("GET /x HTTP/1.1\r\n${host}x-api-key: a${byte}b\r\n\r\n")
        ->{status}, 400, "$name in a header is httpd's business";
}

unlike $server->error_log, qr/test-key|lsv2_pt|sprayed/,
    'no key is in the error log';

# ---- 3.14: the brake ----
my $brake = RateLimitTest->new(config => <<'CONF');
RateLimitRegion us
RateLimitRule api  *  key=api-key  us=1000/60
RateLimitRule user *  key=user+ip  us=1000/60
RateLimitRule ip   *  key=ip       us=1000/60
RateLimitNewIdentities 5/60
Redirect 204 /
CONF
$brake->start;
my ($sprayer) = from(next_address());
my @keys = map { next_key() } 1 .. 8;
sub rules_of { return map { rule_of($brake->ask('GET', '/x', $_)) } @_ }

is_deeply [ rules_of(map { { %{$sprayer}, 'x-api-key' => $_ } } @keys) ],
    [ ('api') x 5, ('ip') x 3 ],
    '3.14: RateLimitNewIdentities lets so many new keys of an address in';
is_deeply [ rules_of(map { { %{$sprayer}, 'x-api-key' => $_ } } @keys) ],
    [ ('api') x 5, ('ip') x 3 ], '3.14: known keys are untouched';
is_deeply [ rules_of({ %{$sprayer}, 'x-user-id' => 'new' }) ], ['ip'],
    '3.14: a user id is a key too';
is_deeply [ rules_of({ (from(next_address()))[0]->%*, 'x-api-key' => $keys[7] }) ],
    ['api'], '3.14: another address may bring the same key';
is_deeply [ rules_of({ %{$sprayer}, 'x-api-key' => $keys[7] }) ], ['api'],
    '3.14: then it is known everywhere';
is left($brake->ask('GET', '/x', { %{$sprayer}, 'x-api-key' => next_key() })),
    1000 - 8, '3.14: what is held back is charged to the address';

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
is_deeply $region->{new_identities}, { count => 5, interval_sec => 60, let_in => 5,
    held_back => 0, would_hold_back => 3 }, '3.14: a dry run holds nobody back, and tells whom it would';
like $tried->ask('GET', '/limits?format=prometheus')->{body},
    qr/^ratelimit_new_identities_total\{region="us",decision="would_hold_back"\} 3$/m,
    '3.14: Prometheus too';
like $tried->ask('GET', '/limits?format=html')->{body},
    qr/5 let in, 0 held back, 3 would have been \(dry run\)/, '3.14: and people';

done_testing;
