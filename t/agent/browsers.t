# SPDX-License-Identifier: Apache-2.0
# Host, Origin, Sec-Fetch-Site and CORS, and errors that httpd generates. Requests
# are raw bytes here; t/sdk/pages.t sends them from a browser.
use strict;
use warnings;
use AgentTest::Client qw(parse_response read_to_end run_path);
use AgentTest::Database;
use AgentTest::Env qw(free_port slurp);
use AgentTest::Server;
use AgentTest::Wait;
use Cpanel::JSON::XS;
use IO::Socket::IP;
use Test::More;

my $EVIL = 'https://evil.example';
my $port_2 = free_port();
my $IPV6 = -e '/proc/net/if_inet6' && slurp('/proc/net/if_inet6') =~ /^0{31}1 /m ? "[::1]:$port_2" : undef;
my $listen_ipv6 = $IPV6 ? "Listen $IPV6" : '';
my $server = AgentTest::Server->new(config => AgentTest::Server::shared_config() . <<"CONF");
Listen 127.0.0.1:$port_2
$listen_ipv6
AllowEncodedSlashes Off
<Location "/">
    AgentAllowOrigin https://app.example.com http://localhost:* https://*.pages.example
    AgentAllowOriginMatch "https://pr-[0-9]+\\.example\\.com|.*/x"
</Location>
<Location "/everybody">
    AgentPrefix /everybody
    AgentAllowOrigin *
</Location>
<Location "/nobody">
    AgentPrefix /nobody
    AgentAllowOrigin None
    AgentAllowOriginMatch None
</Location>
<Location "/closed">
    AgentPrefix /closed
    Require all denied
</Location>
<Location "/document">
    AgentPrefix /document
    Require all denied
    ErrorDocument 403 "go away"
</Location>
<Location "/files">
    SetHandler none
</Location>
<VirtualHost 127.0.0.1:$port_2>
    ServerName https://agents.example.com
    ServerAlias alias.example.com *.wild.example.com
</VirtualHost>
CONF
$server->start;
my $client = AgentTest::Client->new(url => $server->url);
my $front = AgentTest::Client->new(url => "http://127.0.0.1:$port_2");
my $HOST = "127.0.0.1:$server->{port}";

# ask($client, 'POST /threads', { Origin => ... }, $body): HTTP/1.1, one request.
sub ask {
    my ($to, $what, $headers, $body) = @_;
    my %headers = (Host => 'localhost', Connection => 'close', %{ $headers // {} });
    $headers{'Content-Length'} = length $body if defined $body;
    my $lines = join '', map { my $name = $_;
        map { "$name: $_\r\n" } ref $headers{$name} ? @{ $headers{$name} } : $headers{$name} }
        sort keys %headers;
    return parse_response(
        $to->exchange("$what HTTP/1.1\r\n$lines\r\n" . ($body // '')));
}

sub error_of {
    my ($answer) = @_;
    return "$answer->{status} " . (ref $answer->{json} eq 'HASH' ? $answer->{json}{code} // '' : '?');
}

sub cors {
    my ($answer) = @_;
    return { map { /\Aaccess-control-(.*)/ ? ($1 => $answer->{headers}{$_}) : () }
        keys %{ $answer->{headers} } };
}

my $JSON = 'application/json';
my $RUN = encode_json({ assistant_id => 'agent', input => { messages => 'x' } });

sub count_runs { return sql('select count(*) from agent.runs') }

subtest 'cross-site requests: POST and DELETE of another origin are refused' => sub {
    my $before = count_runs();
    my $thread = $client->new_thread;
    my %text = ('Content-Type' => 'text/plain');
    my @pages = (
        { Origin => $EVIL, %text },
        { Origin => $EVIL, 'Sec-Fetch-Site' => 'cross-site', %text },
        { 'Sec-Fetch-Site' => 'cross-site', %text },
        { 'Sec-Fetch-Site' => 'same-site', %text },
        { Origin => $EVIL, 'Content-Type' => $JSON },
        { Origin => $EVIL, 'Sec-Fetch-Site' => 'same-site', 'Content-Type' => $JSON },
        { Origin => 'null', %text },
        { Origin => '', %text },
        { Origin => [ "http://localhost:3000", $EVIL ], 'Content-Type' => $JSON },
        { Origin => 'http://localhost:3000', 'Sec-Fetch-Site' => [ 'same-origin', 'x' ],
            Host => $HOST, Origin => $EVIL },
        { Origin => "http://localhost.evil.example:$server->{port}", 'Content-Type' => $JSON },
        { Origin => "https://localhost", Host => 'localhost', 'Content-Type' => $JSON },
        { Origin => "http://localhost/", 'Content-Type' => $JSON },
    );
    for my $page (@pages) {
        my $what = join ', ', map { "$_: " . (ref $page->{$_} ? "@{ $page->{$_} }" : $page->{$_}) }
            sort keys %{$page};
        for my $path ("/threads/$thread/runs", '/runs', '/runs/wait', '/runs/cancel?action=interrupt',
            '/no-such-path') {
            is error_of(ask($client, "POST $path", $page, $RUN)), '403 cross_site_request',
                "cross-site requests: POST $path with $what is refused";
        }
    }
    is error_of(ask($client, "DELETE /threads/$thread", { Origin => $EVIL })),
        '403 cross_site_request', 'cross-site requests: DELETE is refused';
    is $client->get("/threads/$thread")->{status}, 200, 'cross-site requests: a refused DELETE deletes no thread';
    is count_runs(), $before, 'cross-site requests: a refused POST creates no run';
};

subtest 'cross-site requests: GET is served without CORS headers' => sub {
    my $answer = ask($client, 'GET /info', { Origin => $EVIL, 'Sec-Fetch-Site' => 'cross-site' });
    is $answer->{status}, 200, 'cross-site requests: a GET is 200';
    is_deeply cors($answer), {}, 'cross-site requests: the response to a GET has no CORS headers';
    my $asked = ask($client, 'OPTIONS /threads', { Origin => $EVIL,
        'Access-Control-Request-Method' => 'POST' });
    is_deeply cors($asked), {}, 'cross-site requests: the response to a preflight has no CORS headers';
    my $run = $client->start_run('sleep 600000');
    my $path = run_path($run);
    for my $how ('join', 'stream') {
        is error_of(ask($client, "GET $path/$how?cancel_on_disconnect=true",
            { 'Sec-Fetch-Site' => 'cross-site' })), '403 cross_site_request',
            "cross-site requests: a $how with cancel_on_disconnect=true is refused";
    }
    is $client->get_run($run)->{status}, 'pending', 'cross-site requests: a refused join or stream does not cancel the run';
    $client->post("$path/cancel");
};

subtest 'origins: pages of the server and of AgentAllowOrigin are served' => sub {
    my %own = (Host => $HOST, Origin => "http://$HOST");
    my @pages = (
        { %own },
        { Host => 'localhost', Origin => 'http://localhost' },
        { Host => 'LOCALHOST.:80', Origin => 'http://localhost' },
        { %own, 'Sec-Fetch-Site' => 'same-origin' },
        { Origin => 'https://behind.a.proxy.example', 'Sec-Fetch-Site' => 'same-origin' },
        { 'Sec-Fetch-Site' => 'none' },
        { Origin => 'https://app.example.com', 'Sec-Fetch-Site' => 'cross-site' },
        { Origin => 'http://localhost:3000', 'Sec-Fetch-Site' => 'same-site' },
        { Origin => 'https://a.pages.example' },
        { Origin => 'https://pr-17.example.com' },
        {},
    );
    for my $page (@pages) {
        my $what = join(', ', map { "$_: $page->{$_}" } sort keys %{$page}) || 'no header';
        is ask($client, 'POST /threads', { %{$page}, 'Content-Type' => $JSON }, '{}')->{status},
            200, "origins: $what is served";
    }
    is ask($front, 'POST /threads', { Host => 'agents.example.com', 'Content-Type' => $JSON,
        Origin => 'https://agents.example.com' }, '{}')->{status}, 200,
        'origins: behind a TLS proxy, the scheme of ServerName is that of the own origin';
    is error_of(ask($front, 'POST /threads', { Host => 'agents.example.com', 'Content-Type' => $JSON,
        Origin => 'http://agents.example.com' }, '{}')), '403 cross_site_request',
        'origins: another scheme is another origin';
    for my $origin ($EVIL, 'null') {
        is ask($client, 'POST /everybody/threads', { Origin => $origin,
            'Content-Type' => $JSON }, '{}')->{status}, 200,
            "origins: AgentAllowOrigin * allows $origin";
    }
    is error_of(ask($client, 'POST /nobody/threads', { Origin => 'https://app.example.com',
        'Content-Type' => $JSON }, '{}')), '403 cross_site_request',
        "origins: AgentAllowOrigin None overrides the server's origins";
    my %preflight = ('Access-Control-Request-Method' => 'POST');
    is ask($client, 'OPTIONS /threads', { Origin => 'https://pr-17.example.com', %preflight })->{headers}{'access-control-allow-origin'},
        'https://pr-17.example.com', 'origins: AgentAllowOriginMatch admits what it matches';
    for my $origin ('https://pr-17.example.com.evil.example', 'https://a.pr-17.example.com', 'https://pr-17xexample.com', 'null/x') {
        is ask($client, 'OPTIONS /threads', { Origin => $origin, %preflight })->{headers}{'access-control-allow-origin'}, undef,
            "origins: it does not admit $origin";
    }
    is ask($client, 'OPTIONS /nobody/threads', { Origin => 'https://pr-17.example.com', %preflight })->{headers}{'access-control-allow-origin'},
        undef, 'origins: AgentAllowOriginMatch None takes back that of the server';
};

subtest 'Content-Type: bodies of pages must be application/json' => sub {
    my %page = (Origin => 'https://app.example.com');
    for my $type (undef, 'text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data',
        'application/jsonp', 'text/plain; application/json') {
        my %type = defined $type ? ('Content-Type' => $type) : ();
        is error_of(ask($client, 'POST /threads', { %page, %type }, '{}')),
            '415 unsupported_media_type', 'Content-Type: ' . ($type // 'a page without one') . ' is refused';
    }
    for my $type ('application/json', 'APPLICATION/JSON', 'application/json; charset=utf-8') {
        is ask($client, 'POST /threads', { %page, 'Content-Type' => $type }, '{}')->{status},
            200, "Content-Type: $type of a page is served";
    }
    my $run = $client->start_run('sleep 600000');
    is ask($client, 'POST ' . run_path($run) . '/cancel', \%page)->{status}, 202,
        'Content-Type: a POST without a body needs none';
    is ask($client, 'POST /threads', { 'Content-Type' => 'text/plain' }, '{}')->{status}, 200,
        'Content-Type: clients without Origin may send any';
};

subtest 'CORS: preflights and responses have the headers' => sub {
    my %page = (Origin => 'https://app.example.com');
    my $exposed = 'Content-Location, Location, X-Pagination-Total, X-Pagination-Next, Retry-After';
    my $asked = ask($client, 'OPTIONS /threads', { %page, 'Access-Control-Request-Method' => 'POST',
        'Access-Control-Request-Headers' => 'content-type,x-api-key' });
    is $asked->{status}, 204, 'CORS: the preflight of an allowed origin is 204';
    is_deeply cors($asked), {
        'allow-origin'   => 'https://app.example.com',
        'allow-methods'  => 'GET, POST, PUT, PATCH, DELETE',
        'allow-headers'  => 'content-type,x-api-key',
        'max-age'        => 600,
        'expose-headers' => $exposed,
    }, 'CORS: the response to a preflight lists methods and headers';
    is $asked->{headers}{vary}, 'Origin', 'CORS: responses vary by Origin';
    is_deeply cors(ask($client, 'GET /threads/x', \%page)),
        { 'allow-origin' => 'https://app.example.com', 'expose-headers' => $exposed },
        'CORS: errors have the headers';
    for my $what ('GET /closed/ok', 'GET /threads%2Fx') {
        is cors(ask($client, $what, \%page))->{'allow-origin'}, 'https://app.example.com',
            "CORS: errors of httpd have the headers: $what";
    }
    is_deeply cors(ask($client, 'GET /ok')), {}, 'CORS: the response to a request without Origin has no CORS headers';
    is ask($client, 'GET /ok')->{headers}{vary}, 'Origin', 'CORS: the response to a request without Origin has Vary';
    is ask($client, 'GET /nobody/ok')->{headers}{vary}, undef,
        'CORS: where no origin is allowed, responses have no Vary';
};

subtest 'Host: foreign names are 421' => sub {
    my $thread = $client->new_thread;
    for my $host ('evil.example', 'localhost.evil.example', "evil.example:$server->{port}",
        '127.0.0.2', '[::1]', '10.0.0.1', 'localhostx', '127.0.0.1.evil.example') {
        for my $what ('GET /info', "GET /threads/$thread", 'POST /threads', 'OPTIONS /threads',
            'GET /no-such-path') {
            is error_of(ask($client, $what, { Host => $host, Origin => "http://$host",
                'Sec-Fetch-Site' => 'same-origin', 'Content-Type' => $JSON })),
                '421 misdirected_request', "Host: $what at $host is refused";
        }
    }
    is error_of(ask($client, 'GET http://evil.example/info', { Host => 'localhost' })),
        '421 misdirected_request', 'Host: a foreign name in an absolute request target is refused';
    is ask($client, 'GET http://localhost/info', { Host => 'evil.example' })->{status}, 200,
        'Host: the own name in an absolute request target overrides Host';
    for my $host ('localhost', 'LocalHost', 'localhost.', 'localhost:1', $HOST, '127.0.0.1') {
        is ask($client, 'GET /info', { Host => $host })->{status}, 200, "Host: $host is served";
    }
    for my $host (qw(agents.example.com alias.example.com ALIAS.example.com. a.wild.example.com
        127.0.0.1 localhost)) {
        is ask($front, 'GET /info', { Host => $host })->{status}, 200,
            "Host: $host is served by its virtual host";
    }
    is error_of(ask($front, 'GET /info', { Host => 'wild.example.com' })), '421 misdirected_request',
        'Host: a name that no ServerAlias matches is 421';
    like $client->exchange("GET /info HTTP/1.0\r\n\r\n"), qr{\AHTTP/1.1 200 },
        'Host: HTTP/1.0 without it is served';
    is error_of(ask($client, 'GET /info', { Host => '' })), '400 bad_request',
        'Host: an empty name is 400';
    like $server->error_log, qr{AGT0104: GET /info: misdirected_request: Host: evil\.example$}m,
        'Host: the log has a refused name';
};

subtest 'Host: at an IPv6 address, only that address and localhost are local names' => sub {
    plan skip_all => 'no IPv6' if !$IPV6;
    my %expected = ('[::1]' => 200, $IPV6 => 200, localhost => 200, '[::2]' => 421, 'evil.example' => 421);
    for my $host (sort keys %expected) {
        my $socket = IO::Socket::IP->new(PeerAddr => $IPV6) // die "$IPV6: $@\n";
        syswrite $socket, "GET /info HTTP/1.1\r\nHost: $host\r\nConnection: close\r\n\r\n";
        is parse_response(read_to_end($socket))->{status}, $expected{$host},
            "Host: $host at $IPV6 is $expected{$host}" =~ s/:$port_2/:port/gr;
    }
};

subtest 'CORS: a 429 of the limiter has the headers' => sub {
    my $limited = AgentTest::Server->new(config => AgentTest::Server::shared_config() . <<'CONF');
LoadModule ratelimit_regional_module "${BUILD_DIR}/mod_ratelimit_regional.so"
RateLimitRule once =/info key=ip us=1/3600
RateLimitRegion us
<Location "/">
    AgentAllowOrigin https://app.example.com
</Location>
CONF
    $limited->start;
    my $to = AgentTest::Client->new(url => $limited->url);
    my ($served, $refused) = map { ask($to, 'GET /info', { Origin => 'https://app.example.com' }) } 1 .. 2;
    is_deeply [ $served->{status}, $refused->{status} ], [ 200, 429 ], 'CORS: the limiter refuses the second request with 429';
    is $refused->{headers}{'content-type'}, 'application/problem+json', 'CORS: the 429 of the limiter is application/problem+json';
    is $refused->{headers}{'access-control-allow-origin'}, 'https://app.example.com',
        'CORS: the 429 of the limiter has the headers of the API';
};

subtest 'Host: HTTP/2 sends it as :authority' => sub {
    my $h2 = AgentTest::Server->new(config => AgentTest::Server::shared_config()
        . qq(LoadModule http2_module "\${MODULES}/mod_http2.so"\nProtocols h2c http/1.1\n));
    $h2->start;
    my $curl = sub {
        my (@words) = @_;
        open my $out, '-|', qw(curl -s --http2-prior-knowledge -o /dev/null -w), '%{http_code}',
            @words, $h2->url . '/info' or die "curl: $!\n";
        return scalar <$out>;
    };
    is $curl->(), 200, 'Host: the own :authority is served';
    is $curl->('-H', 'Host: evil.example'), 421, 'Host: a foreign :authority is 421';
    is $curl->('-X', 'POST', '-H', "Origin: $EVIL"), 403, 'cross-site requests: a POST over HTTP/2 is 403';
};

subtest 'Host: StrictHostCheck refuses foreign names with 400' => sub {
    my $strict = AgentTest::Server->new(config => AgentTest::Server::shared_config() . <<'CONF');
<Location "/files">
    SetHandler none
</Location>
StrictHostCheck On
<VirtualHost 127.0.0.1:${PORT}>
    ServerName localhost
    ServerAlias 127.0.0.1 ::1
</VirtualHost>
CONF
    $strict->start;
    my $to = AgentTest::Client->new(url => $strict->url);
    is ask($to, 'GET /files', { Host => 'evil.example' })->{status}, 400, 'Host: with StrictHostCheck, a foreign name outside the API is 400';
    is error_of(ask($to, 'GET /ok', { Host => 'evil.example' })), '400 bad_request',
        'Host: with StrictHostCheck, a foreign name is 400 as JSON';
    like ask($to, 'GET /ok', { Host => 'evil.example' })->{json}{detail}, qr{ServerAlias},
        'Host: with StrictHostCheck, the detail of a foreign name points to ServerAlias';
    for my $host ("localhost:$strict->{port}", "127.0.0.1:$strict->{port}", 'LOCALHOST.', '[::1]') {
        is ask($to, 'GET /ok', { Host => $host })->{status}, 200, "Host: with StrictHostCheck, $host is served";
    }
    like $to->exchange("GET /ok HTTP/1.0\r\n\r\n"), qr{\AHTTP/1.1 200 },
        'Host: with StrictHostCheck, HTTP/1.0 without it is served';
};

subtest 'errors of httpd: bodies are JSON' => sub {
    my %errors = (
        "GET /ok HTTP/1.1\r\n" => '400 bad_request',
        "GET /ok HTTP/1.1\r\nHost: localhost\r\nX: " . 'x' x 9000 . "\r\n" => '400 bad_request',
        "GET /ok HTTP/1.1\r\nHost: localhost\r\nExpect: foo\r\n" => '417 expectation_failed',
        "FOO /ok HTTP/1.1\r\nHost: localhost\r\n" => '501 not_implemented',
        "GET /threads%2Fx HTTP/1.1\r\nHost: localhost\r\n" => '404 not_found',
        "GET /closed/ok HTTP/1.1\r\nHost: localhost\r\n" => '403 forbidden',
        "TRACE /ok HTTP/1.1\r\nHost: localhost\r\n" => '405 method_not_allowed',
        'GET /' . 'x' x 9000 . " HTTP/1.1\r\nHost: localhost\r\n" => '414 request_uri_too_long',
        "GET\r\n" => '400 bad_request',
        "GET /ok HTTP/9.9\r\n" => '400 bad_request',
    );
    for my $request (sort keys %errors) {
        my $answer = parse_response(
            $client->exchange("${request}Connection: close\r\n\r\n"));
        my $title = 'errors of httpd: ' . substr $request =~ s/\r\n/ | /gr, 0, 60;
        is error_of($answer), $errors{$request}, "$title is $errors{$request}";
        ok length($answer->{json}{detail} // ''), "$title has a detail";
        is $answer->{headers}{'content-type'}, 'application/json', "$title is application/json";
        is $answer->{headers}{'content-length'}, length $answer->{body}, "$title has its Content-Length";
    }
    my $head = $client->exchange("HEAD /closed/ok HTTP/1.1\r\nHost: localhost\r\n"
        . "Connection: close\r\n\r\n");
    like $head, qr{^Content-Type: application/json\r$}m, 'errors of httpd: the response to a HEAD has the same headers';
    like $head, qr{\r\n\r\n\z}, 'errors of httpd: the response to a HEAD has no body';
    is ask($client, 'GET /document/ok')->{body}, 'go away', 'errors of httpd: an ErrorDocument is sent as it is';
    like ask($client, 'GET /files/none')->{body}, qr/<html>/i, 'errors of httpd: other locations keep HTML';
    my $again = $client->connection;
    syswrite $again, "GET /closed/ok HTTP/1.1\r\nHost: localhost\r\n\r\n"
        . "GET /ok HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    my $both = read_to_end($again);
    like $both, qr{"forbidden"\}HTTP/1\.1 200 .*\{"ok":}s, 'errors of httpd: the connection serves the next request';
};

done_testing;
