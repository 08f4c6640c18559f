# SPDX-License-Identifier: Apache-2.0
# Responses: the 429 with its body and headers, the remaining quota on admitted
# responses, the body of a refused request.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Env qw(slurp);
use AgentTest::Wait;
use RateLimitTest;
use Test::More;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC sleep);

my $MB = 1024 * 1024;

my $server = RateLimitTest->new(config => <<'CONF');
RateLimitRegion us
RateLimitRule once   /once     key=ip us=1/60 "Once"
RateLimitRule short  /short    key=ip us=2/1
RateLimitRule mail   /mail     key=ip us=1/1000
RateLimitRule tick   /tick     key=ip us=1/1
RateLimitRule all    *         key=ip us=1000/10

<Location /once/small>
    LimitRequestBody 10
</Location>
Header always set Access-Control-Allow-Origin *
<Location /once/place>
    Header always set X-Place here
    ErrorDocument 429 "come back later"
</Location>
<Location /other>
    Header always set RateLimit other
    Header always set RateLimit-Policy other
    Header set RateLimit another
</Location>
<VirtualHost *:${PORT_2}>
    RateLimitHeaders Off
</VirtualHost>
LogFormat "%a %D %{RATELIMIT_DECISION}e" times
CustomLog "${DIR}/logs/times_log" times
CONF
$server->put('one.html', "one\n");
$server->start;
my $second = $server->second;

# The second request of a new address; {sec} is how long both took.
sub refusal {
    my ($method, $path, $headers, $body, $where) = @_;
    my %headers = ('X-Forwarded-For' => next_address(), %{ $headers // {} });
    my $began = clock_gettime(CLOCK_MONOTONIC);
    $where //= $server;
    $where->ask('GET', $path, \%headers);
    my $answer = $where->ask($method, $path, \%headers, $body);
    $answer->{sec} = clock_gettime(CLOCK_MONOTONIC) - $began;
    return $answer;
}

# Tests that $given seconds are left of an interval of $all when the refusal
# arrives.
sub is_left_of {
    my ($given, $all, $answer, $title) = @_;
    cmp_ok $given, '>=', int($all - $answer->{sec}), $title;
    return cmp_ok $given, '<=', $all, "$title: at most the interval";
}

# ---- 3.26 ----
my $refusal = refusal('GET', '/once');
is $refusal->{status}, 429, '3.26: a refusal has status 429';
is $refusal->{headers}{'content-type'}, 'application/problem+json', '3.26: a refusal is application/problem+json';
is_deeply $refusal->{json}, {
    type => 'https://iana.org/assignments/http-problem-types#quota-exceeded',
    title => 'Request cannot be satisfied as assigned quota has been exceeded',
    status => 429,
    detail => 'Rate limit exceeded: at most 1 request in 60 seconds (once). '
        . "Try again in $refusal->{headers}{'retry-after'} seconds.",
    'violated-policies' => ['once'],
}, '3.26: the body of a refusal names the policy and the wait';
is $refusal->{headers}{'cache-control'}, 'no-store', '3.26: a refusal is not cacheable';
is refusal('HEAD', '/once')->{body}, '', '3.26: a refused HEAD has no body';

# ---- 3.27 ----
my $answer = $server->ask('GET', '/one.html', { 'X-Forwarded-For' => next_address() });
is $answer->{headers}{'ratelimit-policy'}, '"all";q=1000;w=10',
    '3.27: an admitted response has RateLimit-Policy';
is $answer->{headers}{ratelimit}, '"all";r=999;t=10', '3.27: an admitted response has RateLimit with the remaining quota';
is $refusal->{headers}{'ratelimit-policy'}, '"once";q=1;w=60', '3.27: a refusal has RateLimit-Policy';
my ($left) = ($refusal->{headers}{ratelimit} // '') =~ /\A"once";r=0;t=(\d+)\z/;
is_left_of($left // 0, 60, $refusal, '3.27: a refusal has RateLimit with r=0 and the wait');
my $bare = $second->ask('GET', '/one.html');
is join(' ', grep { /ratelimit/ } keys %{ $bare->{headers} }), '',
    '3.27: RateLimitHeaders Off: an admitted response has no RateLimit header';
$bare = refusal('GET', '/once', {}, undef, $second);
is_deeply [ sort grep { /ratelimit|retry/ } keys %{ $bare->{headers} } ],
    [ 'retry-after', 'retry-after-ms' ],
    '3.27: RateLimitHeaders Off: a refusal has Retry-After and Retry-After-Ms';
for my $path ('/other', '/one.html') {
    my $socket = $server->connection;
    syswrite $socket, $server->request_text('GET', $path, { Connection => 'close' });
    my $text = AgentTest::Client::read_to_end($socket);
    is_deeply [ sort $text =~ /^(RateLimit\S*: "?\w+)/mg ],
        [ 'RateLimit-Policy: "all', 'RateLimit: "all' ], "3.27: each header occurs once if others set it too: $path";
}
my $missing = $server->ask('GET', '/nothing', { 'X-Forwarded-For' => next_address() });
is $missing->{status}, 404, 'a missing file has status 404';
is left($missing), 999, '3.27: an error response has RateLimit';
my $first = $server->ask('GET', '/one.html', { 'X-Forwarded-For' => next_address() });
my $again = $server->ask('GET', '/one.html',
    { 'X-Forwarded-For' => next_address(), 'If-None-Match' => $first->{headers}{etag} });
is $again->{status}, 304, '3.27: a conditional request still gets 304';

# ---- 3.28 ----
# Three requests of a new address and one more: (address, flood, answer).
sub ask_within_a_second {
    # If the machine stalls for a second, no request has to be refused.
    for my $try (1 .. 20) {
        my $from = { 'X-Forwarded-For' => next_address() };
        my $began = clock_gettime(CLOCK_MONOTONIC);
        my %flood = $server->flood(3, 'GET', '/short', $from);
        my $answer = $server->ask('GET', '/short', $from);
        return ($from, \%flood, $answer)
            if clock_gettime(CLOCK_MONOTONIC) - $began < 1 || $try == 20;
    }
    return;
}

for my $round (1 .. 3) {
    my ($from, $flood, $refused) = ask_within_a_second();
    is $flood->{first}, 2, '3.28: the third request in a second is refused';
    my ($sec, $ms) = $refused->{headers}->@{qw(retry-after retry-after-ms)};
    like $sec, qr/\A[12]\z/, '3.28: Retry-After is in whole seconds';
    cmp_ok 1000 * $sec, '>=', $ms, '3.28: Retry-After is Retry-After-Ms rounded up';
    wait_ms($ms);
    is $server->ask('GET', '/short', $from)->{status}, 404,
        '3.28: a client that waits for Retry-After-Ms is admitted';
}
my $long = refusal('GET', '/mail');
is_left_of($long->{headers}{'retry-after'}, 1000, $long,
    '3.28: Retry-After of a long interval is in seconds');
like $long->{headers}{ratelimit}, qr/;t=$long->{headers}{'retry-after'}\z/,
    '3.28: Retry-After equals t of RateLimit';

# Two requests at once, most of them in the same millisecond.
sub refusal_at_once {
    my ($path, $address) = @_;
    my $from = { 'X-Forwarded-For' => $address };
    my $socket = $server->connection;
    syswrite $socket, $server->request_text('GET', $path, $from)
        . $server->request_text('GET', $path, { %{$from}, Connection => 'close' });
    my $text = AgentTest::Client::read_to_end($socket);
    return { $text =~ /^(Retry-After(?:-Ms)?|RateLimit): (.*?)\r$/mg };
}
my @at_once = map { refusal_at_once('/mail', next_address()) } 1 .. 100;
is_deeply [ grep { $_->{'Retry-After'} > 1000 || $_->{'Retry-After-Ms'} > 1_000_000 } @at_once ],
    [], '3.28: Retry-After is at most the interval';
is_deeply [ grep { $_->{RateLimit} ne qq("mail";r=0;t=$_->{'Retry-After'}) } @at_once ],
    [], '3.28: t equals Retry-After right after the admission';
# RLR0201 has the wait as it is counted: more than the interval, by what the
# response is delayed. %D is in microseconds.
sub delays_too_short {
    my %delay_ms = map { /\bip ([\d.]+): .* the next in (\d+) ms/ && $2 > 1_000_000 ? ($1 => $2 - 1_000_000) : () }
        grep { /RLR0201.*rule mail,/ } split /\n/, $server->error_log;
    return if !%delay_ms;
    my %took;
    wait_for('the access log', sub {
        %took = slurp($server->dir . '/logs/times_log') =~ /^(\S+) (\d+) refused$/mg;
        return !grep { !defined $took{$_} } keys %delay_ms;
    });
    return [ map { "$_: $took{$_} us" } grep { $took{$_} < 1000 * $delay_ms{$_} } keys %delay_ms ];
}
my $short = delays_too_short();
# On a machine with other load few requests come in the same millisecond.
for (1 .. 50) {
    last if defined $short;
    refusal_at_once('/mail', next_address()) for 1 .. 100;
    $short = delays_too_short();
}
is_deeply $short, [], '3.28: a refusal in the millisecond of the admission is delayed to the next';
my @early;
for my $round (1 .. 5) {
    my $address = next_address();
    my $refused = refusal_at_once('/tick', $address);
    # Exactly as long as it says: wait_ms() adds a millisecond.
    sleep $refused->{'Retry-After-Ms'} / 1000;
    push @early, $refused
        if $server->ask('GET', '/tick', { 'X-Forwarded-For' => $address })->{status} != 404;
}
is_deeply \@early, [], '3.28: a client refused right after its admission is admitted after the interval';

# ---- 3.17 ----
is $refusal->{headers}{'access-control-allow-origin'}, '*',
    '3.17: a refusal has the CORS headers of the server';
is refusal('OPTIONS', '/once')->{headers}{'access-control-allow-origin'}, '*',
    '3.17: a refused preflight has the CORS headers of the server';
my $place = refusal('GET', '/once/place');
is $place->{headers}{'x-place'}, 'here', '3.17: a refusal has the headers of its location';
is $place->{body}, 'come back later', '3.26: a refusal has the ErrorDocument of its location';
ok $place->{headers}{'retry-after'}, '3.26: an ErrorDocument keeps Retry-After';
is refusal('GET', '//once//place/')->{headers}{'x-place'}, 'here',
    '3.17: the location is found by the normalized path';

# ---- 3.23 ----
# Sends two requests on one connection; returns all responses.
sub answers_to {
    my ($first_text) = @_;
    my $from = next_address();
    $server->ask('GET', '/once', { 'X-Forwarded-For' => $from });
    my $socket = $server->connection;
    local $SIG{PIPE} = 'IGNORE';
    $first_text =~ s/FROM/$from/;
    print {$socket} $first_text, $server->request_text('GET', '/one.html',
        { 'X-Forwarded-For' => $from, Connection => 'close' });
    $socket->flush;
    return AgentTest::Client::read_to_end($socket);
}
# Their statuses.
sub statuses_of { return answers_to(@_) =~ m{^HTTP/1\.1 (\d+)}mg }

my $head = "POST /once HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: FROM\r\n";
sub chunked {
    my ($size) = @_;
    return "${head}Transfer-Encoding: chunked\r\n\r\n" . sprintf("%x\r\n%s\r\n",
        $size / 2, 'x' x ($size / 2)) x 2 . "0\r\n\r\n";
}
sub sized {
    my ($size) = @_;
    return "${head}Content-Length: $size\r\n\r\n" . 'x' x $size;
}

is_deeply [ statuses_of(sized(10)) ], [ 429, 200 ],
    '3.23: the body of a refused request is discarded, the next request is served';
is_deeply [ statuses_of(sized($MB)) ], [ 429, 200 ], '3.23: a body of 1 MB is discarded';
is_deeply [ statuses_of(chunked($MB)) ], [ 429, 200 ], '3.23: a chunked body of 1 MB is discarded';
is_deeply [ statuses_of(sized($MB + 1)) ], [429], '3.23: a body above 1 MB closes the connection';
is_deeply [ statuses_of(chunked($MB + 20)) ], [429],
    '3.23: a chunked body above 1 MB closes the connection';
(my $small = $head) =~ s{/once}{/once/small};
is_deeply [ statuses_of("${small}Content-Length: 11\r\n\r\n12345678901") ], [429],
    '3.23: a body above LimitRequestBody is not read';
my %unreadable = (
    400 => "${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    413 => "${small}Transfer-Encoding: chunked\r\n\r\nb\r\n12345678901\r\n0\r\n\r\n",
);
for my $status (sort keys %unreadable) {
    my $all = answers_to($unreadable{$status});
    is_deeply [ $all =~ m{^HTTP/1\.1 (\d+)}mg ], [$status],
        "3.23: httpd responds to a body that it rejects: $status";
    unlike $all, qr/quota-exceeded/, '3.23: a rejected body gets one response';
}

my $big = refusal('POST', '/once', {}, 'x' x (8 * $MB));
is $big->{status}, 429, '3.23: a client that sends 8 MB receives the 429';
is $big->{headers}{connection}, 'close', '3.23: the 429 to a long body has Connection: close';

my $from = next_address();
$server->ask('GET', '/once', { 'X-Forwarded-For' => $from });
my $socket = $server->connection;
my $expecting = "${head}Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n";
$expecting =~ s/FROM/$from/;
syswrite $socket, $expecting;
my $text = AgentTest::Client::read_to_end($socket);
like $text, qr{\AHTTP/1\.1 429}, '3.23: Expect: 100-continue is refused without 100 (Continue)';

my %refused = $server->flood(500, 'POST', '/once',
    { 'X-Forwarded-For' => next_address() }, 'body');
is $refused{refused}, 499, 'a refused client keeps its connection';

done_testing;
