# SPDX-License-Identifier: Apache-2.0
# The status page: numbers in three formats, queries, the reset of a key.
use strict;
use warnings;
use RateLimitTest;
use Test::More;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my $server = RateLimitTest->new(config => <<'CONF');
RateLimitRegion us
RateLimitRule query  "POST /runs/query" key=api-key us=3/60 eu=4/60 "Run \"query\" <b>"
RateLimitRule users  /x                 key=user+ip us=3/60 eu=4/60
RateLimitRule quiet  /quiet             key=ip      us=1/60 eu=1/60
RateLimitRule public *                  key=ip      us=1000/60 eu=1000/60 "Public"
RateLimitEngine DryRun quiet
RateLimitExempt 10.8.0.0/16
RateLimitStripPrefix /api/v1
Redirect 204 /served
<Location /limits>
    SetHandler ratelimit-status
    Require expr "%{HTTP:X-Admin} == 'yes'"
</Location>
<VirtualHost *:${PORT_2}>
    RateLimitRegion eu
    RateLimitEngine On quiet
</VirtualHost>
CONF
$server->start;

my %ADMIN = ('X-Admin' => 'yes');
sub see {
    my ($query, $where, %headers) = @_;
    return ($where // $server)->ask('GET', "/limits$query", { %ADMIN, %headers });
}
sub post {
    my ($form, %headers) = @_;
    return $server->ask('POST', '/limits', { %ADMIN,
        'Content-Type' => 'application/x-www-form-urlencoded', %headers }, $form);
}
sub row {
    my ($rule, $region) = @_;
    my ($found) = grep { $_->{region} eq ($region // 'us') } see('')->{json}{regions}->@*;
    return (grep { $_->{rule} eq $rule } $found->{rules}->@*)[0];
}

# ---- access ----
is $server->ask('GET', '/limits')->{status}, 403, 'access: Require controls the status page';
is see('')->{status}, 200, 'access: an authorized client sees the status page';
is $server->ask('PUT', '/limits', \%ADMIN)->{status}, 405, 'access: PUT is not allowed';
is join(',', sort split /,/, $server->ask('PUT', '/limits', \%ADMIN)->{headers}{allow}),
    'GET,HEAD,POST', 'access: Allow is GET, HEAD and POST';

# ---- JSON ----
my $key = next_key();
my $from = next_address();
my $began = clock_gettime(CLOCK_MONOTONIC);
$server->flood(10, 'POST', '/runs/query', { 'x-api-key' => $key });
$server->flood(4, 'GET', '/quiet', { 'X-Forwarded-For' => $from });
$server->second->flood(4, 'GET', '/quiet', { 'X-Forwarded-For' => $from });
is_deeply row('query'), { rule => 'query', match => ['POST /runs/query'],
    key => 'api-key', count => 3, interval_sec => 60, category => 'Run "query" <b>',
    engine => 'on', admitted => 3, refused => 7, would_refuse => 0, overflow => 0,
    live_keys => 1 }, 'JSON: a rule has its limit, its engine and its counters';
is row('query', 'eu')->{admitted}, 0, 'JSON: a rule has numbers per region';
is_deeply [ row('quiet')->@{qw(engine admitted refused would_refuse)} ],
    [ 'dry-run', 1, 0, 3 ], 'JSON: a dry run counts would_refuse';
is_deeply [ row('quiet', 'eu')->@{qw(engine admitted refused would_refuse)} ],
    [ 'on', 1, 3, 0 ], 'JSON: a rule that is on in one region counts refused';
my $json = see('')->{json};
is $json->{slots}, 65_536, 'JSON: the table has its number of slots';
cmp_ok $json->{live_keys}, '>=', 4, 'JSON: the table has its number of live keys';

# ---- formats ----
is see('')->{headers}{'content-type'}, 'application/json', 'format: JSON is the default';
is see('', undef, Accept => 'text/html,*/*')->{headers}{'content-type'},
    'text/html; charset=utf-8', 'format: browsers get HTML';
like see('', undef, Accept => 'application/openmetrics-text;q=0.5,text/plain;q=0.3')
    ->{headers}{'content-type'}, qr{\Atext/plain; version=0.0.4}, 'format: Prometheus gets its text format';
is see('?format=html', undef, Accept => 'application/json')->{headers}{'content-type'},
    'text/html; charset=utf-8', 'format: the parameter overrides Accept';
is see('')->{headers}{'cache-control'}, 'no-store', 'format: responses are not cacheable';

my $metrics = see('?format=prometheus')->{body};
like $metrics, qr/^ratelimit_requests_total\{region="us",rule="query",key="api-key",decision="refused"\} 7$/m,
    'Prometheus: a rule has its refused requests';
like $metrics, qr/^ratelimit_requests_total\{region="us",rule="quiet",key="ip",decision="would_refuse"\} 3$/m,
    'Prometheus: a rule in dry run has the requests that it would refuse';
my @odd = grep { !/\A(?:# (?:HELP|TYPE) ratelimit_\w+ .+|ratelimit_\w+(?:\{(?:\w+="[^"\\]*",?)+\})? \d+)\z/ }
    split /\n/, $metrics;
is "@odd", '', 'Prometheus: every line is valid';
my %type;
$type{$1}++ while $metrics =~ /^# TYPE (\w+)/mg;
is join(' ', grep { $type{$_} != 1 } keys %type), '', 'Prometheus: each metric has one TYPE';

my $html = see('?format=html')->{body};
like $html, qr{<b>query</b>.*?Run &quot;query&quot; &lt;b&gt;}s, 'HTML: text is escaped';
like $html, qr{<td class="n bad">7</td>}, 'HTML: a rule shows its refused requests';
unlike $html, qr/<script|https?:/, 'HTML: the page has neither scripts nor external resources';
like see('?format=html')->{headers}{'content-security-policy'}, qr/default-src 'none'/,
    'HTML: the page has a Content-Security-Policy';
is scalar(() = $html =~ /<h2>Region/g), 2, 'HTML: the page shows all regions';

# ---- queries ----
sub answer { return see($_[0])->{json} }
my $hash = hash_of($key);
my $other = hash_of(next_key());
is_deeply answer("?method=POST&path=/runs/query&api-key=$other"), {
    region => 'us', method => 'POST', path => '/runs/query', outcome => 'admitted',
    rule => 'query', key => 'api-key', identity => "api-key $other", count => 3,
    interval_sec => 60, remaining => 3, wait_ms => 0, reset_ms => 0,
    overflow => Cpanel::JSON::XS::false() }, 'query: the result has the rule of a request and the remaining quota';
my $asked = answer("?method=POST&path=/runs/query&api-key=$hash");
is $asked->{outcome}, 'refused', 'query: a key over its limit is refused';
my $passed_sec = clock_gettime(CLOCK_MONOTONIC) - $began;
cmp_ok $asked->{wait_ms}, '>', 1000 * (59 - $passed_sec), 'query: the result has the wait of a refused key';
my @asked = map { answer("?method=POST&path=/runs/query&api-key=$other")->{remaining} } 1 .. 5;
is "@asked", '3 3 3 3 3', 'query: a query consumes no quota';
is row('query')->{refused}, 7, 'query: a query is not counted as refused';
is answer('?path=/api/v1//x/%2e/y&method=GET')->{path}, '/x/y', 'query: the path is normalized';
is answer('?path=/x?y=/runs')->{path}, '/x', 'query: the query string of the path is removed';
is answer('?path=/x&user=' . hash_of('u') . '&ip=2001:db8::1')->{identity},
    'user ' . hash_of('u') . ' at ip 2001:db8::/64', 'query: a user id is counted with its address';
is answer('?path=/x')->{identity}, 'ip 127.0.0.1', 'query: the default address is that of the client';
is answer('?path=/x&ip=::ffff:10.7.0.1')->{identity}, 'ip 10.7.0.1',
    '3.16: query: an IPv4-mapped IPv6 address is the IPv4 address';
is answer('?path=/x&ip=10.8.0.1')->{outcome}, 'exempt', 'query: an exempt address is reported as exempt';
is answer('?path=/x&region=eu')->{count}, 1000, 'query: the region is chosen by a parameter';
is answer("?method=POST&path=/runs/query&api-key=$other&region=eu")->{count}, 4,
    'query: a key has the limits of the queried region';
is answer("?path=/quiet&ip=$from")->{outcome}, 'would-refuse', 'query: a key over the limit of a rule in dry run is reported as would-refuse';
for my $bad ([ 'path=x', 'path: expected a path' ], [ 'action=ask', 'path: expected' ],
    [ 'path=/x&ip=nowhere.example', 'ip: expected an IPv4 or IPv6 address' ],
    [ 'path=/x&api-key=clear-key', 'api-key: expected sha256:' ],
    [ 'path=/x&user=clear-user', 'user: expected sha256:' ],
    [ 'path=/x&region=mars', 'region: expected a region' ],
    [ 'action=jump', 'action: expected ask or reset' ],
    [ 'action=reset&ip=1.2.3.4', 'reset: expected a POST' ]) {
    my $answer = see("?$bad->[0]");
    is $answer->{status}, 422, "query: invalid: $bad->[0]";
    like $answer->{json}{error}, qr/\A\Q$bad->[1]/, "query: the error of $bad->[0]";
    unlike $answer->{body}, qr/clear/, "query: the error repeats no key: $bad->[0]";
}
is post("action=ask&method=POST&path=/runs/query&api-key=$key")->{json}{outcome},
    'refused', 'query: a POST may have the key in clear';
like post("action=ask&method=POST&path=/runs/query&api-key=$key&format=html")->{body},
    qr{<div class="result no"><code>POST /runs/query</code> in us: <b>refused</b>},
    'query: the result is available as HTML';

# ---- reset ----
$from = next_address();
my %second = ('x-user-id' => 'anna', 'X-Forwarded-For' => $from);
$server->flood(3, 'GET', '/x', \%second);
is post("action=reset&api-key=$hash")->{json}{reset}, 1, 'reset: an API key is named by its hash';
is left($server->ask('POST', '/runs/query', { 'x-api-key' => $key })), 2,
    'reset: the counter of an API key is empty';
is $server->ask('GET', '/x', \%second)->{status}, 429, 'reset: other keys keep their counters';
is post("action=reset&user=anna&ip=$from&rule=users")->{json}{reset}, 1,
    'reset: a user id is named with its address, for one rule';
is left($server->ask('GET', '/x', \%second)), 2, 'reset: the counter of a user is empty';
my $address = next_address();
$server->flood(3, 'GET', '/a', { 'X-Forwarded-For' => $address });
is post("action=reset&ip=$address")->{json}{reset}, 1, 'reset: an address has its own counters';
is left($server->ask('GET', '/a', { 'X-Forwarded-For' => $address })), 999, 'reset: the counter of an address is empty';
is post('action=reset&api-key=' . hash_of('never seen'))->{json}{reset}, 0,
    'reset: an unknown key has no counter';
like $server->error_log, qr/RLR0203: reset: api-key \Q$hash\E, rule \(all\), region us, 1 counters/,
    'reset: the error log has the key, the rule, the region and the number of counters';
# ---- an operator who is over the limit ----
$from = next_address();
my %mine = ('X-Forwarded-For' => $from);
$server->flood(1000, 'GET', '/a', \%mine);
is $server->ask('GET', '/limits-not', \%mine)->{status}, 429, 'operator over the limit: other pages are refused';
is see('', undef, %mine)->{status}, 200, 'operator over the limit: the status page is served';
is $server->ask('GET', '/limits', \%mine)->{status}, 403, 'operator over the limit: Require still controls the status page';
like $server->access_log(qr{^\Q$from\E 200 /limits}m), qr{^\Q$from\E 200 /limits exempt }m,
    'operator over the limit: the access log has exempt';
is post("action=reset&ip=$from", %mine)->{json}{reset}, 1, 'operator over the limit: the own address can be reset';
is left($server->ask('GET', '/a', \%mine)), 999, 'operator over the limit: the own counter is empty after the reset';

# With directives that apply to all paths.
my $front = RateLimitTest->new(config => modules(qw(rewrite proxy proxy_http)) . <<'CONF');
RateLimitRegion us
RateLimitRule all * key=ip us=1/60
<VirtualHost *:${PORT}>
    RewriteEngine On
    RewriteRule ^/limits/app(.*) /app$1 [PT]
    ProxyPass /sorry.html !
    ProxyPass / http://127.0.0.1:${PORT_2}/
    ErrorDocument 403 /sorry.html
    <Location /limits>
        SetHandler ratelimit-status
    </Location>
    <Location /limits/closed>
        Require all denied
    </Location>
</VirtualHost>
<VirtualHost *:${PORT_2}>
    RateLimitEngine Off
    Redirect 204 /
</VirtualHost>
CONF
$front->put('sorry.html', "sorry\n");
$front->start;
sub front { return $front->ask('GET', $_[0])->{status} }
is front('/x'), 204, 'ProxyPass /: requests are proxied';
is front('/x'), 429, 'ProxyPass /: requests over the limit are refused';
is front('/limits'), 200, 'ProxyPass /: the status page is served';
is front('/limits/app/x'), 429, 'a request that is rewritten from the status page to another handler is refused';
like $front->access_log(qr{ /app/x}), qr{ 429 /app/x refused }, 'a request that is rewritten from the status page is logged as refused';
my $closed = $front->ask('GET', '/limits/closed');
is "$closed->{status} $closed->{body}", "403 sorry\n", 'a client over the limit without access to the status page gets 403';
like $front->access_log(qr{ /limits/closed}), qr{ 403 /limits/closed exempt }, 'a client without access to the status page is logged as exempt';

for my $bad ('', "api-key=$hash&ip=1.2.3.4", 'user=anna', "api-key=$hash&user=anna&ip=1.2.3.4",
    "api-key=$hash&rule=public", 'ip=1.2.3.4&rule=nothing', 'ip=x') {
    is post("action=reset&$bad")->{status}, 422, "reset: invalid: $bad";
}
for my $page ([ Origin => 'https://evil.example' ], [ Origin => 'null' ],
    [ Origin => 'http://localhost:1' ], [ Origin => 'https://localhost' ],
    [ 'Sec-Fetch-Site' => 'cross-site' ], [ 'Sec-Fetch-Site' => 'same-site' ]) {
    is post("action=reset&api-key=$hash", @{$page})->{status}, 403,
        "cross-site POST is refused: @{$page}";
}
# DNS rebinding: the name of a foreign page resolves to this server.
is post("action=reset&api-key=$hash", Origin => 'http://evil.example', Host => 'evil.example',
    'Sec-Fetch-Site' => 'same-origin')->{status}, 421, 'DNS rebinding: a POST under a foreign name is refused';
is $server->ask('GET', '/limits', { %ADMIN, Host => $_ })->{status}, 421,
    "Host $_ is refused" for qw(evil.example localhost.evil.example 127.0.0.2);
is $server->ask('GET', '/limits', { %ADMIN, Host => $_ })->{status}, 200,
    "Host $_ is accepted" for ('localhost', 'LOCALHOST.', '127.0.0.1', "localhost:$server->{port}");
like $server->error_log, qr/RLR0204: refused: Host evil\.example is not a name/, 'a foreign name is logged';
like $server->error_log, qr/RLR0205: refused: a cross-site POST, Origin \S+; \d+ in the last minute/,
    'a cross-site POST is logged with its origin and number';
for my $number (qw(RLR0204 RLR0205)) {
    my @warnings = $server->error_log =~ /^.*:warn\].*$number: refused:.*$/mg;
    is scalar @warnings, 1, "$number: one a minute is a warning";
}
is post("action=reset&api-key=$hash", Origin => 'http://localhost')->{status}, 200,
    'a same-origin POST resets';
is post('x' x 20_000)->{status}, 413, 'a form above the maximum size gets 413';
is $server->ask('POST', '/limits', { %ADMIN, 'Content-Type' => 'text/plain' }, 'x')->{status},
    415, 'a body that is not a form gets 415';
is $server->ask('POST', "/limits?action=reset&api-key=$hash", \%ADMIN)->{json}{reset}, 1,
    'a POST without a body has its fields in the query string';
unlike $server->error_log . $server->access_log(qr/x/), qr/test-key|anna/,
    'no key is in the logs';

done_testing;
