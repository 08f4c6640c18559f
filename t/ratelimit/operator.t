# SPDX-License-Identifier: Apache-2.0
# Operation: engines, exemptions, overrides, and the logs.
use strict;
use warnings;
use RateLimitTest;
use Test::More;

my ($friend, $tenant, $tenant_user) = map { next_key() } 1 .. 3;

my $CONF = <<"CONF";
RateLimitRegion us
RateLimitRule api   /api   key=api-key us=2/60
RateLimitRule user  /api   key=user+ip us=2/60
RateLimitRule quiet /quiet key=ip      us=2/60
RateLimitRule ip    *      key=ip      us=3/60

RateLimitEngine DryRun quiet
RateLimitExempt 10.9.0.0/16 2001:db8:ffff::/48 @{[hash_of($friend)]}
RateLimitOverride @{[hash_of($tenant)]} api 4/60
RateLimitOverride @{[hash_of($tenant_user)]} user 5/60
Redirect 204 /
<VirtualHost *:\${PORT_2}>
    RateLimitEngine DryRun
    RateLimitEngine On api
    RateLimitEngine Off user
    Redirect 204 /
</VirtualHost>
CONF
my $server = RateLimitTest->new(config => $CONF);
$server->start;
my $second = $server->second;

# How many of five requests are admitted.
sub admitted {
    my ($where, $path, %headers) = @_;
    my %result = $where->flood(5, 'GET', $path,
        { 'X-Forwarded-For' => next_address(), %headers });
    return $result{admitted};
}

# ---- RateLimitEngine ----
is admitted($server, '/api', 'x-api-key' => next_key()), 2, 'RateLimitEngine On: a rule refuses';
is admitted($server, '/quiet'), 5, 'RateLimitEngine DryRun: a rule refuses nothing';
my $log = $server->access_log(qr{(?:/quiet would-refuse.*?){3}}s);
is scalar(() = $log =~ m{204 /quiet admitted quiet ip [01]$}mg), 2,
    'RateLimitEngine DryRun: admitted requests are logged as admitted';
is scalar(() = $log =~ m{204 /quiet would-refuse quiet ip 0$}mg), 3,
    'RateLimitEngine DryRun: further requests are logged as would-refuse';
my $quiet = $server->ask('GET', '/quiet', { 'X-Forwarded-For' => next_address() });
is rule_of($quiet), 'none', 'RateLimitEngine DryRun: responses have no RateLimit headers';
is admitted($second, '/x'), 5, 'RateLimitEngine DryRun: a virtual host refuses nothing';
is admitted($second, '/api', 'x-api-key' => next_key()), 2,
    'RateLimitEngine On RULE overrides DryRun of the virtual host';
is admitted($second, '/api', 'x-user-id' => 'u'), 5, 'RateLimitEngine Off RULE: the rule refuses nothing';
unlike $server->access_log(qr/x/), qr/ user user\+ip /,
    'RateLimitEngine Off RULE: the next rule decides';
is admitted($server, '/api', 'x-user-id' => 'u'), 2, 'RateLimitEngine Off RULE does not apply to other servers';

# ---- RateLimitExempt ----
is admitted($server, '/x', 'X-Forwarded-For' => '10.9.255.1'), 5,
    'RateLimitExempt: a network is not limited';
is admitted($server, '/x', 'X-Forwarded-For' => '10.10.0.1'), 3, 'RateLimitExempt: an address outside of the network is limited';
is admitted($server, '/x', 'X-Forwarded-For' => '2001:db8:ffff:1::1'), 5,
    'RateLimitExempt: an IPv6 network is not limited';
is admitted($server, '/api', 'x-api-key' => $friend), 5, 'RateLimitExempt: an API key is not limited';
is admitted($server, '/x', 'x-user-id' => $friend), 3,
    'RateLimitExempt: a user id equal to an exempt API key is limited';
my $free = $server->ask('GET', '/x', { 'X-Forwarded-For' => '10.9.0.1' });
is rule_of($free), 'none', 'RateLimitExempt: no rule applies';

# ---- RateLimitOverride ----
is admitted($server, '/api', 'x-api-key' => $tenant), 4, 'RateLimitOverride: an API key has its own limit';
is admitted($server, '/api', 'x-user-id' => $tenant_user), 5, 'RateLimitOverride: a user id has its own limit';
my $own = $server->ask('GET', '/api', { 'x-api-key' => $tenant });
is $own->{headers}{'ratelimit-policy'}, '"api";q=4;w=60', 'RateLimitOverride: RateLimit-Policy has the own limit';

my $star = RateLimitTest->new(config => <<"CONF");
RateLimitRegion us
RateLimitRule a /a key=api-key us=1/60
RateLimitRule b /b key=api-key us=1/60
RateLimitOverride @{[hash_of($tenant)]} b 2/60
RateLimitOverride @{[hash_of($tenant)]} * 3/60
Redirect 204 /
CONF
$star->start;
is admitted($star, '/a', 'x-api-key' => $tenant), 3, 'RateLimitOverride *: the limit applies to all rules with key=api-key';
is admitted($star, '/b', 'x-api-key' => $tenant), 2, 'RateLimitOverride with a rule wins over *';
is admitted($star, '/a', 'x-api-key' => next_key()), 1, 'RateLimitOverride does not apply to other API keys';

# ---- the access log ----
my $address = next_address();
$server->ask('GET', '/x', { 'X-Forwarded-For' => $address }) for 1 .. 4;
$log = $server->access_log(qr{^\Q$address\E 429}m);
is_deeply [ $log =~ m{^\Q$address\E (.*)}mg ],
    [ '204 /x admitted ip ip 2', '204 /x admitted ip ip 1',
      '204 /x admitted ip ip 0', '429 /x refused ip ip 0' ],
    'access log: a line has the decision, the rule, the key and the remaining quota';
like $server->access_log(qr{10\.9\.0\.1}), qr{10\.9\.0\.1 204 /x exempt - - -},
    'access log: an exempt request is logged as exempt';

# ---- the error log ----
sub lines_for {
    my ($text) = @_;
    return grep { /\Q$text\E/ } split /\n/, $server->error_log;
}
my $noisy = next_key();
$server->flood(50, 'GET', '/api', { 'x-api-key' => $noisy });
my @lines = lines_for(hash_of($noisy));
is scalar @lines, 1, 'error log: one line for the first refusal of a key in a window';
like $lines[0], qr{warn\].*RLR0201: refused: rule api, region us, api-key sha256:[0-9a-f]{32}: limit 2 in 60 s, the next in \d+ ms$},
    'error log: a refusal is logged with rule, region, key, limit and wait';
@lines = lines_for("ip $address");
like $lines[0], qr{rule ip, region us, ip \Q$address\E:}, 'error log: a refusal of an address names the address';
is scalar @lines, 1, 'error log: a refused address has one line';
ok scalar(grep { /dry run: rule quiet/ } split /\n/, $server->error_log),
    'error log: a dry run is logged';
$server->flood(5, 'GET', '/api', { 'x-user-id' => 'secret-user',
    'X-Forwarded-For' => '2001:db8:5:6:7::8' });
ok scalar(lines_for('user ' . hash_of('secret-user') . ' at ip 2001:db8:5:6::/64')),
    'error log: a user is logged by hash and network';
unlike $server->error_log, qr/test-key|secret-user/, 'error log: neither API keys nor user ids are in it';

# A second window, a second line.
my $windows = RateLimitTest->new(config => <<'CONF');
RateLimitRegion us
RateLimitRule all * key=api-key us=2/1
Redirect 204 /
CONF
$windows->start;

# The lines about a key that was refused in two windows.
sub lines_of_two_windows {
    my $who = next_key();
    my $slowest = 0;
    for (1 .. 2) {
        my %flood = $windows->flood(20, 'GET', '/', { 'x-api-key' => $who });
        $slowest = $flood{sec} if $flood{sec} > $slowest;
        wait_ms(($flood{wait_ms} // 0) + 1000);
    }
    my $hash = hash_of($who);
    return ($slowest, scalar(() = $windows->error_log =~ /RLR0201.*\Q$hash\E/g));
}

my ($slowest, $count);
# If the machine stalls, there are more windows, or fewer.
for (1 .. 10) {
    ($slowest, $count) = lines_of_two_windows();
    last if $slowest < 0.9;
}
is $count, 2, 'error log: the next window has another line';

done_testing;
