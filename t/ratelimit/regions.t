# SPDX-License-Identifier: Apache-2.0
# Regions and what virtual hosts share.
use strict;
use warnings;
use RateLimitTest;
use Test::More;

my $server = RateLimitTest->new(config => <<'CONF');
RateLimitRegion us
RateLimitRule both   /both   key=api-key us=10/60 eu=20/60
RateLimitRule only   /only   key=api-key eu=5/60
RateLimitRule third  /both   key=api-key ap=7/60
RateLimitRule all    *       key=ip      us=100/60 eu=100/60 ap=100/60

Redirect 204 /
<VirtualHost *:${PORT}>
    ServerName api.test
    Redirect 204 /
</VirtualHost>
<VirtualHost *:${PORT}>
    ServerName smith.test
    Redirect 204 /
</VirtualHost>
<VirtualHost *:${PORT}>
    ServerName own.test
    RateLimitScope Host
    Redirect 204 /
</VirtualHost>
<VirtualHost *:${PORT}>
    ServerName other.test
    RateLimitScope Host
    Redirect 204 /
</VirtualHost>
<VirtualHost *:${PORT}>
    ServerName ap.test
    RateLimitRegion ap
    Redirect 204 /
</VirtualHost>
<VirtualHost *:${PORT}>
    ServerName open.test
    RateLimitEngine Off
    Redirect 204 /
</VirtualHost>
<VirtualHost *:${PORT_2}>
    RateLimitRegion eu
    Redirect 204 /
</VirtualHost>
CONF
$server->start;
my $eu = $server->second;

my $key = next_key();
sub at { return $server->ask('GET', $_[1] // '/both', { Host => $_[0], 'x-api-key' => $key }) }

# ---- 3.24 ----
is at('api.test')->{headers}{'ratelimit-policy'}, '"both";q=10;w=60',
    '3.24: a virtual host has the limits of its region';
my $answer = $eu->ask('GET', '/both', { 'x-api-key' => $key });
is $answer->{headers}{'ratelimit-policy'}, '"both";q=20;w=60',
    '3.24: a virtual host may have another region';
is left($answer), 19, '3.24: a key has a counter per region';
is rule_of($eu->ask('GET', '/only', { 'x-api-key' => $key })), 'only',
    '3.24: a rule exists in the regions it has a limit for';
is rule_of(at('api.test', '/only')), 'all', '3.24: a rule without a limit for a region does not exist there';
is at('ap.test')->{headers}{'ratelimit-policy'}, '"third";q=7;w=60',
    '3.24: a third region needs no declaration';

# ---- 3.25 ----
is left(at('smith.test')), 8, '3.25: virtual hosts of a region share counters';
is left(at('api.test')), 7, '3.25: virtual hosts of a region share counters in both directions';
is left(at('own.test')), 9, '3.25: RateLimitScope Host: a virtual host has its own counters';
is left(at('other.test')), 9, '3.25: RateLimitScope Host: two virtual hosts have separate counters';
is left(at('own.test')), 8, '3.25: RateLimitScope Host: the counters persist between requests';
my $open = at('open.test');
is $open->{status}, 204, 'RateLimitEngine Off: requests to the virtual host are served';
is rule_of($open), 'none', 'RateLimitEngine Off: no rule applies to the virtual host';

# Virtual hosts without a directive; one pair differs at the end of long names.
my ($long_a, $long_b) = map { join '.', ('long' x 15) x 4, $_ } qw(a b);
my $silent = RateLimitTest->new(config => <<'CONF'
RateLimitRegion us
RateLimitScope Host
RateLimitRule all * key=ip us=10/60
Redirect 204 /
<VirtualHost *:${PORT}>
    ServerName a.test
    Redirect 204 /
</VirtualHost>
<VirtualHost *:${PORT}>
    ServerName b.test
    Redirect 204 /
</VirtualHost>
CONF
    . join '', map { "<VirtualHost *:\${PORT}>\nServerName $_\nRedirect 204 /\n</VirtualHost>\n" } $long_a, $long_b);
$silent->start;
is_deeply [ map { left($silent->ask('GET', '/', { Host => $_ })) } qw(a.test b.test a.test) ],
    [ 9, 9, 8 ], 'RateLimitScope Host is inherited by virtual hosts without a directive';
is_deeply [ map { left($silent->ask('GET', '/', { Host => $_ })) } $long_a, $long_b ],
    [ 9, 9 ], 'RateLimitScope Host distinguishes long names';

done_testing;
