# SPDX-License-Identifier: Apache-2.0
# The status page: numbers in three formats, questions that do not count, and
# the reset of one key.
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

# ---- who may see it ----
is $server->ask('GET', '/limits')->{status}, 403, 'Require decides who sees the page';
is see('')->{status}, 200, 'who may sees it';
is $server->ask('PUT', '/limits', \%ADMIN)->{status}, 405, 'it is read';
is join(',', sort split /,/, $server->ask('PUT', '/limits', \%ADMIN)->{headers}{allow}),
    'GET,HEAD,POST', 'or asked by GET and POST';

# ---- JSON ----
my $key = next_key();
my $from = next_address();
my $began = clock_gettime(CLOCK_MONOTONIC);
$server->flood(10, 'POST', '/runs/query', { 'x-api-key' => $key });
$server->flood(4, 'GET', '/quiet', { 'X-Forwarded-For' => $from });
$server->second->flood(4, 'GET', '/quiet', { 'X-Forwarded-For' => $from });
is_deeply row('query'), { rule => 'query', match => ['POST /runs/query'],
    key => 'api-key', count => 3, interval_sec => 60, category => 'Run "query" <b>',
    engine => 'on', allowed => 3, refused => 7, would_refuse => 0, overflow => 0,
    live_keys => 1 }, 'a rule with its numbers';
is row('query', 'eu')->{allowed}, 0, 'each region has its own';
is_deeply [ row('quiet')->@{qw(engine allowed refused would_refuse)} ],
    [ 'dry-run', 1, 0, 3 ], 'a dry run is counted apart';
is_deeply [ row('quiet', 'eu')->@{qw(engine allowed refused would_refuse)} ],
    [ 'on', 1, 3, 0 ], 'where it is on it refuses';
my $json = see('')->{json};
is $json->{places}, 65_536, 'the places of the table';
cmp_ok $json->{live_keys}, '>=', 4, 'and how many are in use';

# ---- formats ----
is see('')->{headers}{'content-type'}, 'application/json', 'a program gets JSON';
is see('', undef, Accept => 'text/html,*/*')->{headers}{'content-type'},
    'text/html; charset=utf-8', 'a browser the page';
like see('', undef, Accept => 'application/openmetrics-text;q=0.5,text/plain;q=0.3')
    ->{headers}{'content-type'}, qr{\Atext/plain; version=0.0.4}, 'Prometheus its text';
is see('?format=html', undef, Accept => 'application/json')->{headers}{'content-type'},
    'text/html; charset=utf-8', 'format= decides';
is see('')->{headers}{'cache-control'}, 'no-store', 'no cache keeps it';

my $metrics = see('?format=prometheus')->{body};
like $metrics, qr/^ratelimit_requests_total\{region="us",rule="query",key="api-key",decision="refused"\} 7$/m,
    'a counter of Prometheus';
like $metrics, qr/^ratelimit_requests_total\{region="us",rule="quiet",key="ip",decision="would_refuse"\} 3$/m,
    'of a dry run';
my @odd = grep { !/\A(?:# (?:HELP|TYPE) ratelimit_\w+ .+|ratelimit_\w+(?:\{(?:\w+="[^"\\]*",?)+\})? \d+)\z/ }
    split /\n/, $metrics;
is "@odd", '', 'every line is one that Prometheus reads';
my %type;
$type{$1}++ while $metrics =~ /^# TYPE (\w+)/mg;
is join(' ', grep { $type{$_} != 1 } keys %type), '', 'each metric is described once';

my $html = see('?format=html')->{body};
like $html, qr{<b>query</b>.*?Run &quot;query&quot; &lt;b&gt;}s, 'the page escapes what it shows';
like $html, qr{<td class="n bad">7</td>}, 'and shows what was refused';
unlike $html, qr/<script|https?:/, 'without scripts and foreign addresses';
like see('?format=html')->{headers}{'content-security-policy'}, qr/default-src 'none'/,
    'which its policy forbids too';
is scalar(() = $html =~ /<h2>Region/g), 2, 'all regions are on it';

# ---- questions ----
sub answer { return see($_[0])->{json} }
my $hash = hash_of($key);
my $other = hash_of(next_key());
is_deeply answer("?method=POST&path=/runs/query&api-key=$other"), {
    region => 'us', method => 'POST', path => '/runs/query', outcome => 'admitted',
    rule => 'query', key => 'api-key', identity => "api-key $other", count => 3,
    interval_sec => 60, remaining => 3, wait_ms => 0, reset_ms => 0,
    overflow => Cpanel::JSON::XS::false() }, 'which rule would this request hit, and what is left?';
my $asked = answer("?method=POST&path=/runs/query&api-key=$hash");
is $asked->{outcome}, 'refused', 'a key that has used up its limit';
my $passed_sec = clock_gettime(CLOCK_MONOTONIC) - $began;
cmp_ok $asked->{wait_ms}, '>', 1000 * (59 - $passed_sec), 'and for how long';
my @asked = map { answer("?method=POST&path=/runs/query&api-key=$other")->{remaining} } 1 .. 5;
is "@asked", '3 3 3 3 3', 'the question does not count';
is row('query')->{refused}, 7, 'nor is it counted';
is answer('?path=/api/v1//x/%2e/y&method=GET')->{path}, '/x/y', 'the path as rules see it';
is answer('?path=/x?y=/runs')->{path}, '/x', 'without the query';
is answer('?path=/x&user=' . hash_of('u') . '&ip=2001:db8::1')->{identity},
    'user ' . hash_of('u') . ' at ip 2001:db8::/64', 'a user at an address';
is answer('?path=/x')->{identity}, 'ip 127.0.0.1', 'without an address: who asks';
is answer('?path=/x&ip=::ffff:10.7.0.1')->{identity}, 'ip 10.7.0.1',
    '3.16: IPv4 written as IPv6 is IPv4';
is answer('?path=/x&ip=10.8.0.1')->{outcome}, 'exempt', 'an exempt address';
is answer('?path=/x&region=eu')->{count}, 1000, 'another region';
is answer("?method=POST&path=/runs/query&api-key=$other&region=eu")->{count}, 4,
    'with its limits';
is answer("?path=/quiet&ip=$from")->{outcome}, 'would-refuse', 'a dry run';
for my $bad ([ 'path=x', 'path: expected a path' ], [ 'action=ask', 'path: expected' ],
    [ 'path=/x&ip=nowhere.example', 'ip: expected an IPv4 or IPv6 address' ],
    [ 'path=/x&api-key=clear-key', 'api-key: expected sha256:' ],
    [ 'path=/x&user=clear-user', 'user: expected sha256:' ],
    [ 'path=/x&region=mars', 'region: expected a region' ],
    [ 'action=jump', 'action: expected ask or reset' ],
    [ 'action=reset&ip=1.2.3.4', 'reset: expected a POST' ]) {
    my $answer = see("?$bad->[0]");
    is $answer->{status}, 422, "a question that cannot be answered: $bad->[0]";
    like $answer->{json}{error}, qr/\A\Q$bad->[1]/, 'says why';
    unlike $answer->{body}, qr/clear/, 'and repeats no key';
}
is post("action=ask&method=POST&path=/runs/query&api-key=$key")->{json}{outcome},
    'refused', 'a POST may have the key itself';
like post("action=ask&method=POST&path=/runs/query&api-key=$key&format=html")->{body},
    qr{<div class="answer no"><code>POST /runs/query</code> in us: <b>refused</b>},
    'the page answers in words';

# ---- reset ----
$from = next_address();
my %second = ('x-user-id' => 'anna', 'X-Forwarded-For' => $from);
$server->flood(3, 'GET', '/x', \%second);
is post("action=reset&api-key=$hash")->{json}{reset}, 1, 'a key is reset by its hash';
is left($server->ask('POST', '/runs/query', { 'x-api-key' => $key })), 2,
    'and begins anew';
is $server->ask('GET', '/x', \%second)->{status}, 429, 'others do not';
is post("action=reset&user=anna&ip=$from&rule=users")->{json}{reset}, 1,
    'a user at an address, by one rule';
is left($server->ask('GET', '/x', \%second)), 2, 'begins anew too';
my $address = next_address();
$server->flood(3, 'GET', '/a', { 'X-Forwarded-For' => $address });
is post("action=reset&ip=$address")->{json}{reset}, 1, 'an address';
is left($server->ask('GET', '/a', { 'X-Forwarded-For' => $address })), 999, 'as well';
is post('action=reset&api-key=' . hash_of('never seen'))->{json}{reset}, 0,
    'a key that has no counter has none to reset';
like $server->error_log, qr/RLR0203: reset: api-key \Q$hash\E, rule \(all\), region us, 1 counters/,
    'the error log tells of it';
# ---- an operator who is over the limit ----
$from = next_address();
my %mine = ('X-Forwarded-For' => $from);
$server->flood(1000, 'GET', '/a', \%mine);
is $server->ask('GET', '/limits-not', \%mine)->{status}, 429, 'his requests are refused';
is see('', undef, %mine)->{status}, 200, 'but not the page';
is $server->ask('GET', '/limits', \%mine)->{status}, 403, 'for whom it is';
like $server->access_log(qr{^\Q$from\E 200 /limits}m), qr{^\Q$from\E 200 /limits exempt }m,
    'the access log tells why';
is post("action=reset&ip=$from", %mine)->{json}{reset}, 1, 'he resets himself';
is left($server->ask('GET', '/a', \%mine)), 999, 'and begins anew';

# Whatever else the site does with all of its paths.
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
is front('/x'), 204, 'a site that is proxied as a whole';
is front('/x'), 429, 'refuses';
is front('/limits'), 200, 'but has the page';
is front('/limits/app/x'), 429, 'and it alone: what is rewritten from there is refused';
like $front->access_log(qr{ /app/x}), qr{ 429 /app/x refused }, 'and logged as that';
my $closed = $front->ask('GET', '/limits/closed');
is "$closed->{status} $closed->{body}", "403 sorry\n", 'who may not see it is told so';
like $front->access_log(qr{ /limits/closed}), qr{ 403 /limits/closed exempt }, 'and was not refused';

for my $bad ('', "api-key=$hash&ip=1.2.3.4", 'user=anna', "api-key=$hash&user=anna&ip=1.2.3.4",
    "api-key=$hash&rule=public", 'ip=1.2.3.4&rule=nothing', 'ip=x') {
    is post("action=reset&$bad")->{status}, 422, "no reset: $bad";
}
for my $page ([ Origin => 'https://evil.example' ], [ Origin => 'null' ],
    [ Origin => 'http://localhost:1' ], [ Origin => 'https://localhost' ],
    [ 'Sec-Fetch-Site' => 'cross-site' ], [ 'Sec-Fetch-Site' => 'same-site' ]) {
    is post("action=reset&api-key=$hash", @{$page})->{status}, 403,
        "no form of another site resets (@{$page})";
}
# DNS rebinding: the page's own name leads here.
is post("action=reset&api-key=$hash", Origin => 'http://evil.example', Host => 'evil.example',
    'Sec-Fetch-Site' => 'same-origin')->{status}, 421, 'nor does one that calls us by its own name';
is $server->ask('GET', '/limits', { %ADMIN, Host => $_ })->{status}, 421,
    "who calls us $_ reads nothing" for qw(evil.example localhost.evil.example 127.0.0.2);
is $server->ask('GET', '/limits', { %ADMIN, Host => $_ })->{status}, 200,
    "who calls us $_ may" for ('localhost', 'LOCALHOST.', '127.0.0.1', "localhost:$server->{port}");
like $server->error_log, qr/RLR0204: refused: Host evil\.example is not a name/, 'the log has the name';
like $server->error_log, qr/RLR0205: refused: a POST .* Origin \S+; \d+ in the last minute/,
    'and the origin, and how often this happened';
for my $number (qw(RLR0204 RLR0205)) {
    my @warnings = $server->error_log =~ /^.*:warn\].*$number: refused:.*$/mg;
    is scalar @warnings, 1, "one $number a minute is a warning";
}
is post("action=reset&api-key=$hash", Origin => 'http://localhost')->{status}, 200,
    'one of our own does';
is post('x' x 20_000)->{status}, 413, 'a form has a size';
is $server->ask('POST', '/limits', { %ADMIN, 'Content-Type' => 'text/plain' }, 'x')->{status},
    415, 'a body that is no form is not passed over';
is $server->ask('POST', "/limits?action=reset&api-key=$hash", \%ADMIN)->{json}{reset}, 1,
    'without one the query has the fields';
unlike $server->error_log . $server->access_log(qr/x/), qr/test-key|anna/,
    'no key is in a log';

done_testing;
