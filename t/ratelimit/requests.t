# SPDX-License-Identifier: Apache-2.0
# Which requests count, how often and when: caches, proxies,
# redirects, included pages, HTTP/2.
use strict;
use warnings;
use Cpanel::JSON::XS;
use RateLimitTest;
use Test::More;

my $server = RateLimitTest->new(config => modules(qw(dir mime filter include
    negotiation cache cache_disk proxy proxy_http rewrite)) . <<'CONF');
RateLimitRegion us
RateLimitRule cached  /cached   key=ip us=3/60
RateLimitRule proxied /proxied  key=ip us=3/60
RateLimitRule locked  /locked   key=ip us=3/60
RateLimitRule twice   /twice    key=ip us=3/60
RateLimitRule all     *         key=ip us=50/60

ErrorDocument 404 /missing.html
ErrorDocument 429 /refused.html
DirectoryIndex index.html
TypesConfig /dev/null
AddType text/html .html .shtml
AddOutputFilter INCLUDES .shtml
<Directory "${DIR}/htdocs">
    Options +Includes +MultiViews
</Directory>

CacheRoot "${DIR}/cache"
CacheEnable disk /cached
CacheDefaultExpire 3600
CacheIgnoreNoLastMod On
CacheHeader On

ProxyPass /proxied http://127.0.0.1:${PORT_2}/backend
<Location /locked>
    Require all denied
</Location>
RewriteEngine On
RewriteRule ^/rewritten$ /twice/page.html [PT]

<VirtualHost *:${PORT_2}>
    RateLimitEngine Off
    Header set RateLimit backend
</VirtualHost>
CONF
mkdir $server->dir . "/$_" for qw(cache htdocs/twice htdocs/cached htdocs/backend
    htdocs/folder);
chmod 0777, $server->dir . '/cache';
$server->put($_, "$_\n") for qw(missing.html refused.html one.html twice/page.html
    cached/page.html backend/page.html folder/index.html);
$server->put('includes.shtml',
    join '', map { qq(<!--#include virtual="/twice/page.html" -->\n) } 1 .. 5);
# Old enough to be fresh for a while.
utime 1e9, 1e9, $server->dir . '/htdocs/cached/page.html';
$server->start;

sub get {
    my ($path, $from, %more) = @_;
    return $server->ask('GET', $path, { 'X-Forwarded-For' => $from, %more });
}

# ---- 3.18 ----
my $from = next_address();
my @cached = map { get('/cached/page.html', $from) } 1 .. 4;
is_deeply [ map { $_->{status} } @cached ], [ 200, 200, 200, 429 ],
    '3.18: cached responses are counted';
like $cached[1]{headers}{'x-cache'}, qr/HIT/, '3.18: the response came from the cache';
is left($cached[1]), 1, '3.18: a cached response has the current quota';
is left(get('/cached/page.html', next_address())), 2,
    '3.18: a cached response has the quota of its client';
$from = next_address();
my @proxied = map { get('/proxied/page.html', $from) } 1 .. 4;
is_deeply [ map { $_->{status} } @proxied ], [ 200, 200, 200, 429 ],
    '3.18: proxied responses are counted';
like $proxied[0]{body}, qr/backend/, '3.18: the response came from the proxied server';
$from = next_address();
is_deeply [ map { get('/locked/x', $from)->{status} } 1 .. 4 ],
    [ 403, 403, 403, 429 ], '3.18: the limit is applied before authorization';
$from = next_address();
is rule_of(get('/rewritten', $from)), 'all',
    '3.18: rules are tested on the path before rewriting';

# ---- 3.19 ----
$from = next_address();
my $page = get('/includes.shtml', $from);
is scalar(() = $page->{body} =~ /page.html/g), 5, '3.19: the page includes five subrequests';
is left($page), 49, '3.19: a page with subrequests is one request';
is left(get('/twice/page.html', $from)), 2, '3.19: a subrequest is not charged to its rule';
is left(get('/folder/', $from)), 48, '3.19: a directory with its index is one request';
is left(get('/one', $from)), 47, '3.19: a file chosen by MultiViews is one request';
is left(get('/nothing', $from)), 46, '3.19: an error document is not charged';
like $server->access_log(qr{ 404 /nothing}), qr{404 /nothing admitted all ip 46},
    '3.19: the access log has the decision of the original request';
get('/twice/page.html', $from) for 1 .. 2;
my $refused = get('/twice/page.html', $from);
is $refused->{status}, 429, '3.19: a request over the limit is refused';
is $refused->{body}, "refused.html\n",
    '3.19: the error document of a refusal is not refused';
ok $refused->{headers}{'retry-after'}, '3.19: the error document of a refusal has Retry-After';
is left(get('/one.html', $from)), 45, '3.19: the error document of a refusal is not charged';

# ---- 3.20 ----
my %keep_alive = $server->flood(60, 'GET', '/one.html',
    { 'X-Forwarded-For' => next_address() });
is $keep_alive{admitted}, 50, '3.20: each request of a connection is counted';

# ---- 3.21 ----
$from = next_address();
get('/twice/page.html', $from) for 1 .. 3;
my @waits = map { get('/twice/page.html', $from)->{headers}{'retry-after-ms'} } 1 .. 20;
my @grown = grep { $waits[$_] > $waits[ $_ - 1 ] } 1 .. $#waits;
is "@grown", '', '3.21: refused requests do not prolong the wait';

# ---- 3.22 ----
$from = next_address();
get('/one.html', $from, 'If-Match' => '"x"');
get('/%00', $from);
$server->exchange("GET /one.html HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: $from\r\n"
    . "Connection: close\r\nRange: bytes=9-\r\n\r\n");
is left(get('/one.html', $from)), 46,
    '3.22: failed requests are counted';
my $cut = $server->connection;
syswrite $cut, "POST /one.html HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: $from\r\n"
    . "Content-Length: 100\r\n\r\nhalf";
close $cut;
$server->access_log(qr{$from \S+ /one.html admitted all ip 45\n});
is left(get('/one.html', $from)), 44, '3.22: an aborted request is counted';

# ---- 3.20: HTTP/2 ----
my $h2 = RateLimitTest->new(config => modules('http2') . <<'CONF');
Protocols h2c http/1.1
RateLimitRegion us
RateLimitRule user * key=user+ip us=3/60
RateLimitRule all * key=ip us=6/60
Redirect 204 /gone
CONF
$h2->put('one.html', "one\n");
$h2->start;
sub streams {
    my (@words) = @_;
    my ($script) = __FILE__ =~ m{(.*/)};
    return map { decode_json($_) } qx(node ${script}http2.js @{[$h2->url]}/one.html @words);
}

# A request that is upgraded to HTTP/2: status, version and remaining quota by curl.
sub upgraded {
    my ($user) = @_;
    my $format = '%{http_code} HTTP/%{http_version} %header{ratelimit}';
    return qx(curl -s --http2 -o /dev/null -H 'x-user-id: $user' -w '$format' @{[$h2->url]}/one.html);
}
like upgraded('a'), qr{\A200 HTTP/2 "user";r=2}, '3.20: a request that is upgraded to HTTP/2 counts once';
like upgraded('a'), qr{\A200 HTTP/2 "user";r=1}, '3.20: the next upgraded request counts once';
like upgraded('a'), qr{\A200 HTTP/2 "user";r=0}, '3.20: the last upgraded request counts once';
like upgraded('a'), qr{\A429 HTTP/1.1 "user";r=0}, '3.20: a refused request is not upgraded';

# The first byte of each header block (0x88: status 200) of the responses to an
# upgraded request and to $more equal ones after it on its connection.
sub frame { my ($type, $flags, $id, $text) = @_; return pack('Cn CCN', 0, length $text, $type, $flags, $id) . $text }
sub upgrade_and {
    my ($user, $more) = @_;
    my $like_it = "\x82\x86" . join '', map { pack 'a1 C/a*', @{$_} } [ "\x04", '/one.html' ], [ "\x01", 'x' ];
    $like_it .= pack 'C C/a* C/a*', 0, 'x-user-id', $user;
    my $socket = $h2->connection;
    print {$socket} "GET /one.html HTTP/1.1\r\nHost: x\r\nx-user-id: $user\r\nUpgrade: h2c\r\n"
        . "Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"
        . "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" . frame(4, 0, 0, ''),
        map { frame(1, 5, 1 + 2 * $_, $like_it) } 1 .. $more;
    $socket->flush;
    my ($answer, $end, @heads) = ('');
    sysread $socket, $answer, 65_536, length $answer or die "no upgrade: $answer"
        while ($end = index $answer, "\r\n\r\n") < 0;
    substr $answer, 0, $end + 4, '';
    while (@heads <= $more) {
        my $length = length $answer < 9 ? 0 : unpack 'N', "\0" . substr $answer, 0, 3;
        if (length $answer < 9 + $length) {
            sysread $socket, $answer, 65_536, length $answer or die 'the connection has ended';
            next;
        }
        my $frame = substr $answer, 0, 9 + $length, '';
        push @heads, ord substr $frame, 9, 1 if ord(substr $frame, 3, 1) == 1;
    }
    return @heads;
}
is scalar(grep { $_ == 0x88 } upgrade_and('b', 4)), 3,
    '3.20: streams equal to the upgraded request are counted';

my @streams = streams(8);
is_deeply [ sort map { $_->{status} } @streams ], [ (200) x 6, (429) x 2 ],
    '3.20: each stream of an HTTP/2 connection is counted';
my ($refusal) = streams(1, 'body');
is $refusal->{status}, 429, '3.20: a stream with a body is refused';
like $refusal->{headers}{'retry-after'}, qr/\A\d+\z/,
    '3.20: a refused stream has Retry-After';
like $refusal->{text}, qr/violated-policies/, '3.20: a refused stream has the problem as its body';

done_testing;
