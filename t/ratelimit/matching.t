# SPDX-License-Identifier: Apache-2.0
# Which rule a request hits, one test for each decision about it. The decisions
# are those of mod_ratelimit_regional/README.md, by their numbers. A response
# names the rule that was charged.
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
is left($first), 14, '3.1: the first rule that fits is charged';
is left($server->ask('GET', '/other', $who)), 999,
    '3.1: and no other: the default of the same key is untouched';
is left($server->ask('GET', '/other',
    { 'X-Forwarded-For' => $who->{'X-Forwarded-For'} })), 99,
    '3.1: nor is the catch-all of the same address';

# ---- 3.2 ----
hits('3.2', 'runs-stats', 'GET /runs/stats', $KEY,
    '/runs/stats stands before the defaults');
hits('3.2', 'public-download', 'GET /public/download/x', $BOTH,
    'so does /public/download, although a key is sent');

# ---- 3.3 ----
hits('3.3', 'repos-api', 'GET /repos', $BOTH,
    'with both headers the API key is counted');
hits('3.3', 'default-api', 'GET /x', $BOTH, 'under the default rules too');

# ---- 3.4 ----
hits('3.4', 'run-query-user', 'POST /runs/query', $USER,
    'a rule whose header is absent does not match');
hits('3.4', 'public', 'POST /runs/query', $NONE,
    'without any header the catch-all is left');
hits('3.4', 'public', 'POST /runs/query', { 'x-api-key' => '' },
    'an empty header is an absent one');
hits('3.4', 'default-user', 'POST /runs/batch', $USER,
    'a path with an API key rule only falls to the default of users');

# ---- 3.5 ----
my $from = { 'X-Forwarded-For' => next_address() };
$server->ask('OPTIONS', '/anything', $from);
$server->ask('GET', '/info', $from);
is left(hits('3.5', 'ip-high', 'GET /x/v1/metadata/submit', $from,
    'three alternatives are one rule')), 1997, '3.5: with one counter';

# ---- 3.6 ----
hits('3.6', 'repos-api', 'GET /repos/a/b', $KEY, 'a path takes what is below it');
hits('3.6', 'default-api', 'GET /repository', $KEY, 'but ends at a segment');
hits('3.6', 'default-api', 'GET /authorize', $KEY, '/authorize is not /auth');
hits('3.6', 'commits-api', 'GET /commits/owner/repo', $KEY, 'prompts are pulled by it');

# ---- 3.7 ----
hits('3.7', 'run-create', 'POST /runs', $KEY, 'POST /runs is exact');
hits('3.7', 'default-api', 'POST /runs/other', $KEY, 'and leaves what is below it');
hits('3.7', 'runs-stats', 'POST /runs/stats', $KEY, 'to the rules for that');

# ---- 3.8 ----
hits('3.8', 'charts-api', 'POST /a/charts/1/preview', $KEY, 'containing is a substring');
hits('3.8', 'charts-api', 'POST /charts-x', $KEY, 'that begins a segment');
hits('3.8', 'default-api', 'POST /mycharts', $KEY, 'and only there');
hits('3.8', 'default-api', 'GET /charts', $KEY, 'with its method only');

# ---- 3.9 ----
$who = { 'x-api-key' => next_key() };
hits('3.9', 'deletion-api', 'POST /a/b/trigger', $who, '*/trigger is an end');
hits('3.9', 'default-api', 'POST /a/trigger/b', $KEY, 'not a middle');
is left(hits('3.9', 'deletion-api', 'DELETE /sessions/x', $who,
    'DELETE /sessions is the same rule')), 8, '3.9: with the same counter';
hits('3.9', 'default-api', 'GET /sessions', $KEY, 'DELETE is meant for /sessions');
hits('3.9', 'deletion-api', 'GET /x/trigger', $KEY, '*/trigger for all methods');

# ---- 3.10 ----
hits('3.10', 'run-lookup', "GET /runs/$UUID", $KEY, 'a run by its UUID');
hits('3.10', 'run-lookup', 'GET /runs/' . uc $UUID, $KEY, 'in either case');
hits('3.10', 'default-api', "GET /runs/$UUID/share", $KEY, 'nothing behind it');
hits('3.10', 'default-api', 'GET /runs/abc', $KEY, 'nothing else in its place');

# ---- 3.11 ----
$who = { 'x-api-key' => next_key() };
hits('3.11', 'run-lookup', "GET /api/v1/runs/$UUID", $who, '/api/v1 is stripped');
is left(hits('3.11', 'run-lookup', "GET /runs/$UUID", $who,
    'one rule with and without')), 28, '3.11: and one counter';
hits('3.11', 'run-query-api', 'POST /api/v1/runs/query', $KEY, 'so no rule is evaded by it');
hits('3.11', 'default-api', 'POST /api/v1/api/v1/runs/query', $KEY, 'only once');
hits('3.11', 'ip-high', 'POST /api/v1/metadata/submit', $KEY,
    'a star stands for the prefix too');
hits('3.11', 'own', 'POST /api/v1/own/x', $KEY, 'a rule may name the prefix itself');
hits('3.11', 'default-api', 'POST /own', $KEY, 'and means it then');
hits('3.11', 'default-api', 'POST /metadata/submit', $KEY, 'but not for one that is not there');
hits('3.11', 'default-api', 'POST /api/v10/runs/query', $KEY, 'only at a segment');
hits('3.11', 'default-api', 'POST /api/v1/runs/query', $KEY,
    'RateLimitStripPrefix None leaves it', $second);

# ---- 3.12 ----
for my $path ('/runs//query', '/runs/%71uery', '/runs/query/', '/./runs/query',
    '/x/../runs/query', '/runs/x/%2e%2e/query', '//runs/query?a=/../b',
    '/api/v1//runs/./query', '/api/%76%31/runs/query', '/runs/query?',
    '/runs/../../runs/query') {
    hits('3.12', 'run-query-api', "POST $path", $KEY, "$path is /runs/query");
}
for my $path ('/Runs/Query', '/runs%2fquery', '/runs/query%2f', '/runs/%2571uery',
    '/runs/query;x', '/runs/quer', '/x?/runs/query', '/runs\\query',
    '/runs/query%20') {
    hits('3.12', 'default-api', "POST $path", $KEY, "$path is not");
}
hits('3.12', 'run-query-api', 'POST /runs%2fquery', $KEY,
    'an encoded slash is one where httpd is told to decode it', $second);
hits('3.12', 'run-query-api', 'POST http://elsewhere/runs/query', $KEY,
    'the absolute form has the same path');
hits('3.12', 'ip-high', 'OPTIONS *', $KEY, 'the star of OPTIONS is no path');

# ---- 3.13 ----
hits('3.13', 'default-api', "HEAD /runs/$UUID", $KEY, 'HEAD is not GET');
hits('3.13', 'run-lookup', "HEAD /runs/$UUID", $KEY,
    'unless RateLimitHeadAsGet says so', $second);
hits('3.13', 'default-api', 'HEAD /runs', $KEY, 'and then not POST', $second);
hits('3.13', 'default-api', 'post /runs/query', $KEY, 'a method has one spelling');
hits('3.13', 'default-api', 'GET /runs/query',
    { %{$KEY}, 'X-HTTP-Method-Override' => 'POST' },
    'headers that would override it are not looked at');

done_testing;
