# SPDX-License-Identifier: Apache-2.0
# The rule that a request matches. The numbers are those of the table in
# mod_ratelimit_regional/README.md. A response names the rule that was charged.
use strict;
use warnings;
use RateLimitTest;
use Test::More;

my $UUID = '018f2d6e-7c4b-7abc-9def-0123456789ab';
my $KEY  = { 'x-api-key' => 'k' };
my $USER = { 'x-user-id' => 'u' };
my $BOTH = { %{$KEY}, %{$USER} };
my $NONE = {};

my $server = RateLimitTest->new(config => <<'CONF' . table() . <<'CONF');
RateLimitRule own /api/v1/own key=ip us=9/60
CONF
Redirect 204 /
<VirtualHost *:${PORT_2}>
    RateLimitHeadAsGet On
    RateLimitStripPrefix None
    AllowEncodedSlashes On
    Redirect 204 /
</VirtualHost>
CONF
$server->start;
my $second = $server->second;

sub hits {
    my ($decision, $rule, $request, $who, $title, $where) = @_;
    my ($method, $path) = split ' ', $request, 2;
    my $answer = ($where // $server)->ask($method, $path, $who);
    is rule_of($answer), $rule, "$decision: $title";
    return $answer;
}

# ---- 3.1 ----
my $who = { 'x-api-key' => next_key(), 'X-Forwarded-For' => next_address() };
my $first = $server->ask('POST', '/runs/query', $who);
is left($first), 14, '3.1: the first matching rule is charged';
is left($server->ask('GET', '/other', $who)), 999,
    '3.1: the default rule of the same key is not charged';
is left($server->ask('GET', '/other',
    { 'X-Forwarded-For' => $who->{'X-Forwarded-For'} })), 99,
    '3.1: the catch-all of the same address is not charged';

# ---- 3.2 ----
hits('3.2', 'runs-stats', 'GET /runs/stats', $KEY,
    '/runs/stats stands before the defaults');
hits('3.2', 'public-download', 'GET /public/download/x', $BOTH,
    '/public/download stands before the defaults, with an API key too');

# ---- 3.3 ----
hits('3.3', 'repos-api', 'GET /repos', $BOTH,
    'a request with both headers is counted by the API key');
hits('3.3', 'default-api', 'GET /x', $BOTH, 'the default rules prefer the API key too');

# ---- 3.4 ----
hits('3.4', 'run-query-user', 'POST /runs/query', $USER,
    'a rule whose header is absent does not match');
hits('3.4', 'public', 'POST /runs/query', $NONE,
    'a request without either header matches the catch-all');
hits('3.4', 'public', 'POST /runs/query', { 'x-api-key' => '' },
    'an empty header counts as absent');
hits('3.4', 'default-user', 'POST /runs/batch', $USER,
    'a user id on a path with an API key rule only matches the default');

# ---- 3.5 ----
my $from = { 'X-Forwarded-For' => next_address() };
$server->ask('OPTIONS', '/anything', $from);
$server->ask('GET', '/info', $from);
is left(hits('3.5', 'ip-high', 'GET /x/v1/metadata/submit', $from,
    'three matches of a rule are one rule')), 1997, '3.5: all matches of a rule share a counter';

# ---- 3.6 ----
hits('3.6', 'repos-api', 'GET /repos/a/b', $KEY, 'a plain path matches the paths below it');
hits('3.6', 'default-api', 'GET /repository', $KEY, 'a plain path ends at a segment');
hits('3.6', 'default-api', 'GET /authorize', $KEY, '/auth does not match /authorize');
hits('3.6', 'commits-api', 'GET /commits/owner/repo', $KEY, '/commits matches /commits/owner/repo');

# ---- 3.7 ----
hits('3.7', 'run-create', 'POST /runs', $KEY, 'POST =/runs matches POST /runs');
hits('3.7', 'default-api', 'POST /runs/other', $KEY, 'POST =/runs does not match paths below it');
hits('3.7', 'runs-stats', 'POST /runs/stats', $KEY, 'a path below /runs matches its own rule');

# ---- 3.8 ----
hits('3.8', 'charts-api', 'POST /a/charts/1/preview', $KEY, '*/charts* matches a part of the path');
hits('3.8', 'charts-api', 'POST /charts-x', $KEY, '*/charts* matches the start of a segment');
hits('3.8', 'default-api', 'POST /mycharts', $KEY, '*/charts* does not match the middle of a segment');
hits('3.8', 'default-api', 'GET /charts', $KEY, 'a rule with a method does not match another method');

# ---- 3.9 ----
$who = { 'x-api-key' => next_key() };
hits('3.9', 'deletion-api', 'POST /a/b/trigger', $who, '*/trigger matches an end of the path');
hits('3.9', 'default-api', 'POST /a/trigger/b', $KEY, '*/trigger does not match the middle of a path');
is left(hits('3.9', 'deletion-api', 'DELETE /sessions/x', $who,
    'DELETE /sessions is a match of the same rule')), 8, '3.9: DELETE /sessions and */trigger share a counter';
hits('3.9', 'default-api', 'GET /sessions', $KEY, 'GET /sessions does not match DELETE /sessions');
hits('3.9', 'deletion-api', 'GET /x/trigger', $KEY, '*/trigger matches all methods');

# ---- 3.10 ----
hits('3.10', 'run-lookup', "GET /runs/$UUID", $KEY, '{uuid} matches a UUID');
hits('3.10', 'run-lookup', 'GET /runs/' . uc $UUID, $KEY, '{uuid} matches upper case');
hits('3.10', 'default-api', "GET /runs/$UUID/share", $KEY, '=/runs/{uuid} does not match a path below it');
hits('3.10', 'default-api', 'GET /runs/abc', $KEY, '{uuid} matches nothing but a UUID');

# ---- 3.11 ----
$who = { 'x-api-key' => next_key() };
hits('3.11', 'run-lookup', "GET /api/v1/runs/$UUID", $who, '/api/v1 is stripped');
is left(hits('3.11', 'run-lookup', "GET /runs/$UUID", $who,
    'the path without the prefix matches the same rule')), 28, '3.11: the path with and without the prefix share a counter';
hits('3.11', 'run-query-api', 'POST /api/v1/runs/query', $KEY, 'the prefix does not evade a rule');
hits('3.11', 'default-api', 'POST /api/v1/api/v1/runs/query', $KEY, 'the prefix is stripped once');
hits('3.11', 'ip-high', 'POST /api/v1/metadata/submit', $KEY,
    'a star matches the prefix');
hits('3.11', 'own', 'POST /api/v1/own/x', $KEY, 'a rule may contain the prefix');
hits('3.11', 'default-api', 'POST /own', $KEY, 'a rule that contains the prefix does not match without it');
hits('3.11', 'default-api', 'POST /metadata/submit', $KEY, 'a star does not match an absent prefix');
hits('3.11', 'default-api', 'POST /api/v10/runs/query', $KEY, 'the prefix ends at a segment');
hits('3.11', 'default-api', 'POST /api/v1/runs/query', $KEY,
    'RateLimitStripPrefix None strips nothing', $second);

# ---- 3.12 ----
for my $path ('/runs//query', '/runs/%71uery', '/runs/query/', '/./runs/query',
    '/x/../runs/query', '/runs/x/%2e%2e/query', '//runs/query?a=/../b',
    '/api/v1//runs/./query', '/api/%76%31/runs/query', '/runs/query?',
    '/runs/../../runs/query') {
    hits('3.12', 'run-query-api', "POST $path", $KEY, "$path matches /runs/query");
}
for my $path ('/Runs/Query', '/runs%2fquery', '/runs/query%2f', '/runs/%2571uery',
    '/runs/query;x', '/runs/quer', '/x?/runs/query', '/runs\\query',
    '/runs/query%20') {
    hits('3.12', 'default-api', "POST $path", $KEY, "$path does not match /runs/query");
}
hits('3.12', 'run-query-api', 'POST /runs%2fquery', $KEY,
    'AllowEncodedSlashes On: %2f matches a slash', $second);
hits('3.12', 'run-query-api', 'POST http://elsewhere/runs/query', $KEY,
    'the absolute form of a request has the same path');
hits('3.12', 'ip-high', 'OPTIONS *', $KEY, 'OPTIONS * matches its own rule');

# ---- 3.13 ----
hits('3.13', 'default-api', "HEAD /runs/$UUID", $KEY, 'HEAD does not match GET');
hits('3.13', 'run-lookup', "HEAD /runs/$UUID", $KEY,
    'RateLimitHeadAsGet On: HEAD matches GET', $second);
hits('3.13', 'default-api', 'HEAD /runs', $KEY, 'RateLimitHeadAsGet On: HEAD does not match POST', $second);
hits('3.13', 'default-api', 'post /runs/query', $KEY, 'methods are case-sensitive');
hits('3.13', 'default-api', 'GET /runs/query',
    { %{$KEY}, 'X-HTTP-Method-Override' => 'POST' },
    'X-HTTP-Method-Override is ignored');

done_testing;
