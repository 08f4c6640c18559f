# SPDX-License-Identifier: Apache-2.0
# Invalid requests: a 4xx with detail and code, never 500, and no row written.
use strict;
use warnings;
use AgentTest::Client qw(read_to_end);
use AgentTest::Database;
use Test::More;

my $client = AgentTest::Client->new;
my $thread = $client->new_thread;
my $RUNS = "/threads/$thread/runs";
my $HOST = "Host: $client->{address}";

# The status of the response to raw bytes; the requests end the connection.
sub raw_status {
    my ($bytes) = @_;
    my ($status) = $client->exchange($bytes) =~ m{\AHTTP/\d\.\d (\d+)};
    return $status // 0;
}

sub raw_post {
    my ($path, $headers, $body) = @_;
    return raw_status("POST $path HTTP/1.1\r\n$HOST\r\nConnection: close\r\n"
            . "$headers\r\n\r\n$body");
}

sub is_refused {
    my ($answer, $status, $what) = @_;
    is $answer->{status}, $status, "$what is $status";
    ok length $answer->{json}{detail} && length $answer->{json}{code},
        "$what: the response has detail and code";
    return;
}

# ---- JSON ----
# Temporary threads of other tests expire while this one runs.
my $COUNT = 'select count(*) from agent.threads where not temporary';
my $count = sql($COUNT);
my @not_json = (
    '{', '[', '"', '{"a":1,}', "{'a':1}", '{"a":NaN}', '{"a":01}', '{"a":1.}',
    '{"a":.5}', '{"a":+1}', '{"a":TRUE}', '{}x', '{}{}', '// c', "{\"a\":\"\t\"}",
    "{\"a\":\"\n\"}", '{"a":"\x41"}', '{"a":"\u12"}', "\xef\xbb\xbf{}",
    "{\"a\":\"\xff\"}", "{\"a\":\"\xc0\xaf\"}", "{\"a\":\"\xed\xa0\x80\"}",
    "{\"a\":\"\xf4\x90\x80\x80\"}", "\0", "{}\0", 'a=1&b=2',
);
is_refused($client->post('/threads', $_), 400, 'create thread: body ' . printable($_))
    for @not_json;
my @not_storable = (
    '{"metadata":{"a":"\u0000"}}', '{"metadata":{"a\u0000b":1}}',
    '{"metadata":{"a":"\ud800"}}', '{"metadata":{"a":"\udc00\ud800"}}',
    '{"metadata":{"a":1e131071}}', '{"metadata":{"a":1e309}}',
    '{"metadata":{"a":' . '9' x 41 . '}}', '{"a":1,"a":2}',
    '[' x 129 . ']' x 129, '[' x 20_000, '[]', '"x"', '5', 'null', 'true',
    '{"metadata":[]}', '{"metadata":{"":1}}', '{"thread_id":"x"}',
    '{"thread_id":5}', '{"thread_id":"{018f2d6e-7c4b-7abc-9def-0123456789ab}"}',
    '{"if_exists":"maybe"}',
    '{"metadata":{' . join(',', map { "\"k$_\":1" } 1 .. 65) . '}}',
    '{"metadata":{"' . 'k' x 300 . '":1}}',
    '{"metadata":{"a":"' . 'v' x 600 . '"}}',
);
is_refused($client->post('/threads', $_), 422, 'create thread: body ' . printable($_))
    for @not_storable;
is_refused($client->post('/threads', '{"metadata":{"a":' . '[' x 119 . ']' x 119 . '}}'),
    422, 'create thread: a body of 121 levels');
is sql($COUNT), $count,
    'create thread: a refused body creates no thread';

like $client->post('/threads', '{"metadata":{"a":["\u0000"]}}')->{json}{detail},
    qr{\A/metadata/a/0: }, 'create thread: the detail points at the value';

# Unusual JSON that is valid.
for my $good ('{"metadata":{"a":9007199254740993}}',
    '{"metadata":{"a":"\ud83d\ude00 \u2028"}}', '{"metadata":{"a":-0.0e-5}}',
    " \r\n{}\t") {
    is $client->post('/threads', $good)->{status}, 200,
        'create thread: body ' . printable($good) . ' is accepted';
}

# ---- runs ----
my $long = '{"assistant_id":"agent","input":{"messages":[{"role":"user","content":"'
    . "a'); drop table agent.runs; --" . '"}]}}';
my $kept = $client->post($RUNS, $long);
is $kept->{status}, 200, 'create run: SQL in an input is text';
$client->join_run($kept->{json});
# Numbers that jsonb writes in full, and nesting that a run's config deepens.
for my $metadata ('{"a":1e300,"b":-1.5e-300}', '{"a":' . '[' x 118 . ']' x 118 . '}') {
    my $unusual = $client->post('/threads', qq({"metadata":$metadata}))->{json};
    my $run = $client->post("/threads/$unusual->{thread_id}/runs",
        $long =~ s/\{/{"metadata":$metadata,/r)->{json};
    $client->join_run($run);
    is $client->get_run($run)->{status}, 'success',
        'create run: a run with metadata ' . printable($metadata) . ' succeeds';
}
my %bad_runs = (
    '{}' => '/assistant_id', '{"assistant_id":7}' => '/assistant_id',
    '{"assistant_id":"agent","multitask_strategy":"x"}' => '/multitask_strategy',
    '{"assistant_id":"agent","config":[]}' => '/config',
    '{"assistant_id":"agent","metadata":7}' => '/metadata',
    '{"assistant_id":"agent","stream_mode":["x"]}' => '/stream_mode/0',
    '{"assistant_id":"agent","checkpoint_id":"x"}' => '/checkpoint_id',
    '{"assistant_id":"agent","after_seconds":-1}' => '/after_seconds',
    '{"assistant_id":"agent","input":{},"command":{}}' => '/command',
);
for my $body (sort keys %bad_runs) {
    my $answer = $client->post($RUNS, $body);
    is_refused($answer, 422, "create run: body $body");
    like $answer->{json}{detail}, qr/\A\Q$bad_runs{$body}\E: /, "create run: the detail points at $bad_runs{$body}";
}
is sql("select count(*) from agent.runs where thread_id = '$thread'"), 1,
    'create run: a refused body creates no run';

my $checkpoint = $client->post($RUNS, {
    assistant_id  => 'agent',
    checkpoint_id => '01890000-0000-7000-8000-000000000000',
});
is_refused($checkpoint, 404, 'create run: an unknown checkpoint');

# Only the graph can check the shape of an input: the run fails, not the request.
my $odd = $client->post($RUNS,
    { assistant_id => 'agent', input => { messages => 'x y' } });
is $odd->{status}, 200, 'create run: an input that the graph may refuse is accepted';
$client->join_run($odd->{json});
like $client->get_run($odd->{json})->{status}, qr/\A(?:success|error)\z/,
    'create run: a run with an odd input ends';

# ---- sizes and codings ----
my $max = 4 * 1024 * 1024;
is raw_post('/threads', 'Content-Length: ' . ($max + 1), ''), 413,
    'body: Content-Length above AgentMaxBody is 413';
is raw_post('/threads', "Transfer-Encoding: chunked",
    sprintf("%x\r\n%s\r\n0\r\n\r\n", $max + 1, ' ' x ($max + 1))), 413,
    'body: a chunked body above AgentMaxBody is 413';
is raw_post('/threads', "Content-Length: 2\r\nContent-Encoding: gzip", '{}'), 415,
    'body: Content-Encoding gzip is 415';
is raw_post('/threads', "Transfer-Encoding: gzip, chunked",
    "2\r\n{}\r\n0\r\n\r\n"), 415, 'body: Transfer-Encoding gzip is 415';
is raw_post('/threads', "Transfer-Encoding: chunked", "2\r\n{}\r\n0\r\n\r\n"),
    200, 'body: a chunked body is accepted';
for my $bad ("2\n{}\r\n0\r\n\r\n", "0x2\r\n{}\r\n0\r\n\r\n",
    "-1\r\n{}\r\n0\r\n\r\n") {
    like raw_post('/threads', 'Transfer-Encoding: chunked', $bad),
        qr/\A4/, 'body: bad chunking is refused: ' . printable($bad);
}

# RFC 9112, 6.3: the chunks delimit the body, and the connection is closed.
{
    my $answers = $client->exchange("POST /threads HTTP/1.1\r\n$HOST\r\n"
        . "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n"
        . "2\r\n{}\r\n0\r\n\r\nGET /ok HTTP/1.1\r\n$HOST\r\n\r\n");
    is scalar(() = $answers =~ m{^HTTP/1\.1 }mg), 1,
        'body: with Content-Length and Transfer-Encoding no further request is served';
    like $answers, qr/^Connection: close\r$/m, 'body: with Content-Length and Transfer-Encoding the connection is closed';
}
is raw_post('/threads', "Content-Length: $_", '{}'), 400,
    "body: Content-Length $_ is 400" for ('-1', '+2', '0x2', '2, 2', '1e1', '9' x 20);

my $runs = sql("select count(*) from agent.runs where thread_id = '$thread'");
my $cut = $client->connection;
syswrite $cut, "POST $RUNS HTTP/1.1\r\n$HOST\r\nTransfer-Encoding: chunked\r\n\r\n"
    . "19\r\n{\"assistant_id\":\"agent\"}\r\n";
shutdown $cut, 1;
read_to_end($cut);
is sql("select count(*) from agent.runs where thread_id = '$thread'"), $runs,
    'body: a cut chunked body creates no run even if its JSON is complete';

# ---- headers ----
for my $name (qw(x-user-id x-api-key Idempotency-Key)) {
    for my $value ("a b", "\xff", "a,b", 'x' x 300, "\xc3\xa9") {
        is raw_post($RUNS, "Content-Length: 24\r\n$name: $value",
            '{"assistant_id":"agent"}'), 400, "headers: $name: " . printable($value) . ' is 400';
    }
    is raw_post($RUNS, "Content-Length: 24\r\n$name: k1\r\n$name: k2",
        '{"assistant_id":"agent"}'), 400, "headers: $name sent twice is 400";
}
is raw_status("GET /ok HTTP/1.1\r\n$HOST\r\nConnection: close\r\nx-a: "
        . 'x' x 9000 . "\r\n\r\n"), 400, 'headers: a header of 9,000 bytes is 400';

# ---- paths and methods ----
for my $path ('/', '/thread', '/threads/', "/threads/$thread/", '/threads/x',
    "/threads/{$thread}", "/threads/$thread/runs/x", "/threads/$thread/run",
    "/threads/$thread/state/x", '/threads/' . 'a' x 4000, '/Threads',
    '/threads/%c0%ae', "/threads/$thread%00", '/threads%2f' . $thread,
    "/threads/$thread/runs/..;/x", '/%0d%0aX:y', "/\xc3\xa9", '/threads\\x') {
    my $status = raw_status("GET $path HTTP/1.1\r\n$HOST\r\nConnection: close\r\n\r\n");
    like $status, qr/\A40[04]\z/, 'paths: ' . printable(substr $path, 0, 60)
        . " is $status";
}
my %methods = ("/threads" => [qw(GET PUT DELETE PATCH)],
    "/threads/$thread" => [qw(POST PUT)],
    $RUNS => [qw(PUT DELETE PATCH)], '/ok' => [qw(POST PUT DELETE)]);
for my $path (sort keys %methods) {
    for my $method (@{ $methods{$path} }) {
        my $answer = $client->request($method, $path);
        is_refused($answer, 405, "methods: $method $path");
        ok $answer->{headers}{allow}, "methods: the 405 of $method $path has Allow";
    }
}
like raw_status("$_ /ok HTTP/1.1\r\n$HOST\r\nConnection: close\r\n\r\n"),
    qr/\A(?:400|405|501)\z/, "methods: $_ is refused" for qw(get FOO! TRACE CONNECT BREW);
is $client->request('OPTIONS', $RUNS)->{status}, 204, 'methods: OPTIONS is 204';
my $head = $client->request('HEAD', '/ok');
is $head->{status}, 200, 'methods: HEAD is 200';
is $head->{body} // '', '', 'methods: HEAD has no body';

is $client->get("/threads/$thread/runs?$_")->{status}, 400,
    "query: $_ is 400" for ('limit=%zz', 'limit=%00', 'limit=%ff', '%ff=1');

is $client->get('/ok?check_db=1')->{status}, 200, 'bad input: the server still serves requests';

sub printable {
    my ($text) = @_;
    $text = substr($text, 0, 60) . '...' if length $text > 63;
    $text =~ s/([^ -~])/sprintf '\\x%02x', ord $1/ge;
    return $text;
}

done_testing;
