# SPDX-License-Identifier: Apache-2.0
# A new API key with each request: the share of an address, and the service for
# all other addresses.
use strict;
use warnings;
use RateLimitTest;
use Test::More;

my $STATUS = <<'CONF';
<Location /limits>
    SetHandler ratelimit-status
</Location>
RedirectMatch 204 ^/(?!limits)
CONF

# Sends $count requests from the address, each with a new key.
sub spray {
    my ($server, $count, $path, $address) = @_;
    return $server->flood_with($count, sub {
        return $server->request_text('GET', $path,
            { 'x-api-key' => next_key(), 'X-Forwarded-For' => $address });
    });
}

sub status_of {
    my ($server, $path, $address, $key) = @_;
    return $server->ask('GET', $path, { 'x-api-key' => $key // next_key(),
        'X-Forwarded-For' => $address })->{status};
}

# How many of 40 new keys, each from an address of its own, are admitted.
sub admitted_of_40 {
    my ($server, $path) = @_;
    return scalar grep { status_of($server, $path, next_address()) == 204 } 1 .. 40;
}

sub others_are_served {
    my ($server, $title) = @_;
    is admitted_of_40($server, $_), 40, "$title: 40 of 40 new keys at $_"
        for '/generate', '/runs/stats';
    return;
}

# ---- one address, the shipped table ----
my $server = RateLimitTest->new(config => table() . $STATUS);
$server->start;
my $sprayer = next_address();
my $first_key = next_key();
status_of($server, '/generate', $sprayer, $first_key);
my %sprayed = spray($server, 70_000, '/generate', $sprayer);
is $sprayed{admitted}, 65_536 / 16 - 1 + 30,
    'an address gets a sixteenth of the slots, and one counter for its other keys';
others_are_served($server, 'beside 70,000 keys of one address others are served');
is status_of($server, '/generate', $sprayer), 429,
    'a further key of an address with its share is refused';
is status_of($server, '/generate', $sprayer, $first_key), 204,
    'keys with a slot keep their own counters';
is_deeply [ map { status_of($server, '/runs/stats', $sprayer) } 1 .. 3 ], [ 204, 429, 429 ],
    'keys without a slot share a counter per rule';
is scalar(() = $server->error_log =~ /RLR0206: an address has its share/g), 1,
    'an address with its share is logged once a minute';
unlike $server->error_log, qr/RLR0202/, 'an address with its share does not fill the table';

# ---- many addresses at once ----
for my $sprayers (16, 100) {
    my $small = RateLimitTest->new(config => "RateLimitTable 4096\n" . table() . $STATUS);
    $small->start;
    spray($small, 300, '/generate', next_address()) for 1 .. $sprayers;
    others_are_served($small, "beside $sprayers addresses that fill the table others are served");
    my $live = $small->ask('GET', '/limits')->{json}{live_keys};
    cmp_ok $live, '<=', 4096 * 5 / 8 + 400, "keys of long intervals leave a part of the table free: $live";
}

# ---- no attack ----
my $honest = RateLimitTest->new(config => table() . $STATUS);
$honest->start;
my @addresses = map { next_address() } 1 .. 4096;
my $turn = 0;
my %admitted = $honest->flood_with(65_536, sub {
    return $honest->request_text('GET', '/generate', { 'x-api-key' => next_key(),
        'X-Forwarded-For' => $addresses[ $turn++ % @addresses ] });
});
is $admitted{admitted}, 65_536, '65,536 keys of an hour from 4,096 addresses are all admitted';
others_are_served($honest, 'beside 65,536 keys of 4,096 addresses others are served');

# ---- afterwards ----
my $brief = RateLimitTest->new(config => <<'CONF');
RateLimitTable 64
RateLimitRegion us
RateLimitRule brief /brief key=api-key us=1/1
RateLimitRule ip    *      key=ip      us=1000/1
Redirect 204 /
<VirtualHost *:${PORT_2}>
    RateLimitIPv6Prefix 128
    Redirect 204 /
</VirtualHost>
CONF
$brief->start;
my %burst;
# If the machine stalls for a second, the interval is over.
for my $try (1 .. 20) {
    %burst = spray($brief, 20, '/brief', $sprayer);
    last if $burst{sec} < 1;
}
is $burst{admitted}, 64 / 16 + 1, 'an address gets a sixteenth of a small table, and one counter';
wait_ms($burst{wait_ms} + 1000);
my %again = spray($brief, 4, '/brief', $sprayer);
is $again{admitted}, 4, 'after the interval an address gets its share again';

# ---- IPv6 ----
my $number = 0;
my $second = $brief->second;
wait_ms(1000);
my %network;
for my $try (1 .. 20) {
    my $network = sprintf '2001:db8:%x', $try;
    %network = $second->flood_with(20, sub {
        return $second->request_text('GET', '/brief', { 'x-api-key' => next_key(),
            'X-Forwarded-For' => sprintf '%s::%x', $network, ++$number });
    });
    last if $network{sec} < 1;
}
is $network{admitted}, 64 / 16 + 1,
    'the addresses of an IPv6 /64 have one share, whatever RateLimitIPv6Prefix is';

done_testing;
