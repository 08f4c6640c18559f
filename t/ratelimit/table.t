# SPDX-License-Identifier: Apache-2.0
# The shipped table, row by row, for both regions: the published number of
# requests is admitted, the next is refused, another identity is admitted, and a client
# that waits for Retry-After is admitted.
use strict;
use warnings;
use RateLimitTest;
use Test::More;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my $UUID = '018f2d6e-7c4b-7abc-9def-0123456789ab';

# rule, a request for it, its key, US limit, EU limit: SPEC's table
my @ROWS = (
    [ 'ip-high',         'GET /info',                 'ip',      '2000/10',  '2000/10' ],
    [ 'auth-api',        'GET /auth',                 'api-key', '2000/10',  '2000/10' ],
    [ 'auth-user',       'GET /auth',                 'user+ip', '2000/10',  '2000/10' ],
    [ 'beacon',          'POST /v1/beacon',           'ip',      '2000/10',  '2000/10' ],
    [ 'repos-api',       'GET /repos',                'api-key', '100/60',   '100/60' ],
    [ 'repos-user',      'GET /repos',                'user+ip', '100/60',   '100/60' ],
    [ 'runs-batch',      'POST /runs/batch',          'api-key', '2000/10',  '2000/10' ],
    [ 'otel-traces',     'POST /otel/v1/traces',      'api-key', '2000/10',  '2000/10' ],
    [ 'charts-api',      'POST /a/charts/1/preview',  'api-key', '750/600',  '750/600' ],
    [ 'charts-user',     'POST /charts',              'user+ip', '750/600',  '750/600' ],
    [ 'runs-multipart',  'POST /runs/multipart',      'api-key', '6000/10',  '6000/10' ],
    [ 'run-query-api',   'POST /runs/query',          'api-key', '15/10',    '15/10' ],
    [ 'run-query-user',  'POST /runs/query',          'user+ip', '300/10',   '300/10' ],
    [ 'generate-api',    'POST /generate',            'api-key', '30/3600',  '30/3600' ],
    [ 'generate-user',   'POST /generate',            'user+ip', '30/3600',  '30/3600' ],
    [ 'commits-api',     'GET /commits/o/r',          'api-key', '10000/60', '2000/60' ],
    [ 'commits-user',    'GET /commits',              'user+ip', '10000/60', '2000/60' ],
    [ 'deletion-api',    'DELETE /sessions',          'api-key', '10/60',    '10/60' ],
    [ 'deletion-user',   'POST /rules/1/trigger',     'user+ip', '30/60',    '30/60' ],
    [ 'run-create',      'POST /runs',                'api-key', '2000/10',  '2000/10' ],
    [ 'run-update',      "PATCH /runs/$UUID",         'api-key', '2000/10',  '2000/10' ],
    [ 'feedback',        'POST /feedback',            'api-key', '2000/10',  '2000/10' ],
    [ 'run-lookup',      "GET /runs/$UUID",           'api-key', '30/60',    '30/60' ],
    [ 'examples',        'GET /datasets/1/examples',  'api-key', '5000/60',  '5000/60' ],
    [ 'default-api',     'GET /anything',             'api-key', '1000/10',  '1000/10' ],
    [ 'default-user',    'GET /anything',             'user+ip', '1000/10',  '1000/10' ],
    [ 'public-download', 'GET /public/download/x',    'ip',      '5000/60',  '5000/60' ],
    [ 'runs-stats',      'POST /runs/stats',          'api-key', '1/10',     '20/10' ],
    [ 'public',          'GET /anything',             'ip',      '100/60',   '100/60' ],
);

is scalar @ROWS, 29, 'the published table has 29 rows';

my $us = RateLimitTest->new(config => table() . <<'CONF');
Redirect 204 /
<VirtualHost *:${PORT_2}>
    RateLimitRegion eu
    Redirect 204 /
</VirtualHost>
CONF
$us->start;
my %server = (us => $us, eu => $us->second);

# Each identity is used for one row of one region only.
sub identity {
    my ($key) = @_;
    my %headers = ('X-Forwarded-For' => next_address());
    $headers{'x-api-key'} = next_key() if $key eq 'api-key';
    $headers{'x-user-id'} = next_key() if $key eq 'user+ip';
    return \%headers;
}

my @waiting;

sub check_row {
    my ($region, $name, $request, $key, $limit) = @_;
    my ($method, $path) = split ' ', $request;
    my ($count, $interval) = split m{/}, $limit;
    my $server = $server{$region};
    my $who = identity($key);
    my %result;
    # If the machine stalls for the interval, no request has to be refused.
    for (1 .. 10) {
        %result = $server->flood($count + 1, $method, $path, $who);
        last if $result{sec} < $interval;
        $who = identity($key);
    }
    is $result{admitted}, $count, "$region $name: $limit requests by $key are admitted";
    is $result{first}, $count, "$region $name: the next request is refused";
    my $other = $server->ask($method, $path, identity($key));
    is $other->{headers}{'ratelimit-policy'}, qq("$name";q=$count;w=$interval),
        "$region $name: another identity is charged by the same rule";
    is $other->{status}, 204, "$region $name: another identity is served";
    push @waiting, [ $region, $name, $method, $path, $who,
        $result{refused_at} + $result{wait_ms} / 1000 ] if $interval <= 10;
    return;
}

for my $row (@ROWS) {
    my ($name, $request, $key, $us_limit, $eu_limit) = @{$row};
    check_row('us', $name, $request, $key, $us_limit);
    check_row('eu', $name, $request, $key, $eu_limit);
}

my $last = 0;
for (@waiting) {
    $last = $_->[5] if $_->[5] > $last;
}
my $left = $last - clock_gettime(CLOCK_MONOTONIC);
wait_ms($left * 1000) if $left > 0;
for (@waiting) {
    my ($region, $name, $method, $path, $who) = @{$_};
    is $server{$region}->ask($method, $path, $who)->{status}, 204,
        "$region $name: a client that waits for Retry-After is admitted";
}

done_testing;
