# SPDX-License-Identifier: Apache-2.0
# Query strings and headers of the largest size that httpd accepts: the memory and
# time of the child that reads them, and the memory of a request that waits.
use strict;
use warnings;
use AgentTest::Client qw(read_to_end read_until);
use AgentTest::Cost;
use AgentTest::Env qw(is_sanitized);
use AgentTest::Process qw(httpd_children);
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

# httpd's own limits of a line, of a header and of their number.
my ($LINE, $FIELD, $FIELDS) = (8190, 8190, 100);
# A child's memory for any requests of this size.
my $BASE_BYTES = memory_scale() * (4 << 20);
# Some ten times what the slowest takes.
my $CPU_SEC = 0.05 * memory_scale();
my $REQUESTS = 10;
my $WAITERS  = 60;
my $WAITER_BYTES = 200 * 1024;
my $PARAMS = 128;

my ($server, $client) = AgentTest::Server->start_with_client(
    'LogLevel agent:warn', 'AgentMaxWaiters 1000', 'AgentMaxWaitersPerAddress 0',
    'AsyncRequestWorkerFactor 300', 'MaxMemFree 128');
my $thread = $client->new_thread;
my ($child) = httpd_children($server->httpd_pid);

# An item as often as the request line has room for it.
sub fill {
    my ($path, $before, $item, $separator, $after) = @_;
    my $room = $LINE - length("GET $path? HTTP/1.1") - length("$before$after");
    my $times = int(($room + length $separator) / length "$item$separator");
    return $before . join($separator, ($item) x $times) . $after;
}

# title => [ constructor from a path, the expected response ]
my $MANY = qr/"The query string has more than $PARAMS parameters\."/;
my %QUERIES = (
    'names without a value' => [ sub { fill($_[0], '', 'a', '&', '') }, $MANY ],
    'names with an empty value' => [ sub { fill($_[0], '', 'a=', '&', '') }, $MANY ],
    'empty parameters' => [ sub { fill($_[0], '', '', '&', '') }, $MANY ],
    'one parameter, repeated' => [ sub { fill($_[0], '', 'limit=1', '&', '') }, $MANY ],
    'the largest number of parameters' => [ sub {
        join '&', ('a=' . 'b' x 58) x $PARAMS }, qr{\AHTTP/1\.1 200 } ],
    'one long value' => [ sub { fill($_[0], 'a=', 'b', '', '') }, qr{\AHTTP/1\.1 200 } ],
    'one long name' => [ sub { fill($_[0], '', 'b', '', '') }, qr{\AHTTP/1\.1 200 } ],
    'one value of escapes' => [ sub { fill($_[0], 'a=', '%C3%A9', '', '') }, qr{\AHTTP/1\.1 200 } ],
    'bytes that are not UTF-8' => [ sub { fill($_[0], 'a=', '%FF', '', '') }, qr/"The query string is badly encoded\."/ ],
);
# Lists of words, at the routes that take one.
my %LISTS = (
    'words joined by commas' => sub { fill($_[0], "$_[1]=", $_[2], ',', '') },
    'words as JSON' => sub { fill($_[0], "$_[1]=[", "%22$_[2]%22", ',', ']') },
);

sub get_raw {
    my ($path, $headers) = @_;
    return $client->exchange("GET $path HTTP/1.1\r\nHost: localhost\r\n"
        . "Connection: close\r\n" . ($headers // '') . "\r\n");
}

sub check_cost {
    my ($title, $path, $expected) = @_;
    get_raw($path);
    my $answer;
    my $cost = cost_of([$child], sub { $answer = get_raw($path) for 1 .. $REQUESTS });
    my $shown = $path =~ s/\?.*//sr =~ s/[0-9a-f-]{36}/{id}/r;
    subtest "GET $shown: $title takes little memory and time" => sub {
        like substr($answer, 0, 2000), $expected, "query: $title is answered as documented";
        cmp_ok $cost->{peak_bytes}, '<', $BASE_BYTES, "query: $title takes less than 4 MB";
        cmp_ok $cost->{cpu_sec} / $REQUESTS, '<', $CPU_SEC, "query: $title takes less than 50 ms";
    };
    return;
}

for my $path ('/ok', '/info', "/threads/$thread", "/threads/$thread/runs") {
    for my $title (sort keys %QUERIES) {
        my ($make, $expected) = @{ $QUERIES{$title} };
        check_cost($title, "$path?" . $make->($path), $expected);
    }
}
for my $title (sort keys %LISTS) {
    my $path = "/threads/$thread/runs";
    check_cost($title, "$path?" . $LISTS{$title}->($path, 'select', 'run_id'), qr{\AHTTP/1\.1 200 });
    check_cost("unknown $title", "$path?" . $LISTS{$title}->($path, 'select', 'x'),
        qr/"Query parameter select: expected /);
}

served_beside($client, 10, 'query: other requests and runs are served beside large query strings', sub {
    my $path = "/threads/$thread/runs";
    my @paths = ((map { "$path?" . $QUERIES{$_}[0]->($path) } sort keys %QUERIES),
        (map { "$path?" . $LISTS{$_}->($path, 'select', 'run_id') } sort keys %LISTS));
    for (1 .. 5) {
        my @sockets = map { $client->connection } @paths;
        syswrite $sockets[$_], "GET $paths[$_] HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            for 0 .. $#paths;
        read_to_end($_) for @sockets;
    }
});

# ---- Requests that wait ------------------------------------------------------

# A stream of the thread, whose next event never comes.
sub park {
    my ($query, $headers) = @_;
    my $socket = $client->connection;
    syswrite $socket, "GET /threads/$thread/stream$query HTTP/1.1\r\nHost: localhost\r\n$headers\r\n";
    read_until($socket, qr{\AHTTP/1\.1 200 .*\r\n\r\n}s);
    return $socket;
}

sub make_headers {
    my ($count, $bytes) = @_;
    return join '', map { "X-$_: " . 'h' x ($bytes - 10) . "\r\n" } 1 .. $count;
}

my $stream = "/threads/$thread/stream";
my %WAITERS = (
    'a query string of many parameters' => [ '?' . $QUERIES{'the largest number of parameters'}[0]->($stream), '' ],
    'a long query string' => [ '?' . $QUERIES{'one long value'}[0]->($stream), '' ],
    'many words' => [ '?' . $LISTS{'words joined by commas'}->($stream, 'stream_mode', 'run_modes'), '' ],
    'many words as JSON' => [ '?' . $LISTS{'words as JSON'}->($stream, 'stream_mode', 'lifecycle'), '' ],
    'large headers' => [ '', make_headers(4, $FIELD - 100) ],
    'many headers' => [ '', make_headers($FIELDS - 10, 350) ],
    'a long query string and large headers' =>
        [ '?' . $QUERIES{'one long value'}[0]->($stream), make_headers(3, $FIELD - 100) ],
);
# A sanitizer's own memory for each request exceeds the bound.
for my $title (is_sanitized() ? () : sort keys %WAITERS) {
    subtest "query: a request that waits, with $title, takes little memory" => sub {
        my @warm = park(@{ $WAITERS{$title} });
        my $before = resident_bytes($child);
        my @waiting = map { park(@{ $WAITERS{$title} }) } 1 .. $WAITERS;
        my $each = (resident_bytes($child) - $before) / $WAITERS;
        note sprintf '%.0f KB', $each / 1024;
        cmp_ok $each, '<', $WAITER_BYTES, "query: a request that waits, with $title, keeps at most 200 KB";
        close $_ for @warm, @waiting;
        wait_for('all connections to end', sub { !@{ $server->connections->{server} } });
    };
}

# ---- The headers of a request ------------------------------------------------

my $TOO_LARGE = qr/"code":"request_header_fields_too_large"/;

subtest 'query: a request line and headers of more than 32 KB are refused' => sub {
    like get_raw('/ok', make_headers(4, $FIELD - 100)), qr{\AHTTP/1\.1 200 }, 'query: a request with 32 KB of headers is answered';
    my $answer = get_raw('/ok', make_headers(5, $FIELD - 100));
    like $answer, qr{\AHTTP/1\.1 431 }, 'query: a request with 40 KB of headers is refused with 431';
    like $answer, $TOO_LARGE, 'query: the response to large headers has an error code';
    like get_raw('/ok', make_headers($FIELDS - 10, 400)), qr{\AHTTP/1\.1 431 },
        'query: many small headers of 40 KB in total are refused with 431';
    like get_raw('/ok?' . 'a' x 8000, make_headers(4, $FIELD - 600)), qr{\AHTTP/1\.1 431 },
        'query: the request line and headers have one limit';
};

subtest 'query: a request with large headers is refused without its body' => sub {
    my $socket = $client->connection;
    syswrite $socket, "POST /threads HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n"
        . make_headers(5, $FIELD - 100) . "\r\n";
    my $answer = read_until($socket, qr/\}/);
    like $answer, qr{\AHTTP/1\.1 431 }, 'query: a request with large headers is 431 before its body arrives';
    like $answer, qr/^Connection: close\r$/mi, 'query: the connection of a request with large headers is closed';
    close $socket;
};

undef $server;
done_testing;
