# SPDX-License-Identifier: Apache-2.0
# Models that fail: the errors that are retried, those that end the run, and their
# messages.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Env qw(free_port);
use File::Temp qw(tempdir);
use ModelServer;
use RunnerTest qw(graph human script messages_of last_message lines_of events_of);
use Test::More;

my $server = ModelServer->new;
my @VENDORS = qw(anthropic openai);
my $closed_port = free_port();
# A name that is refused without a resolver.
my $no_host = 'x' x 64 . '.invalid';
my $directory = tempdir(CLEANUP => 1);
system("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 "
    . "-addext subjectAltName=IP:127.0.0.1 -keyout $directory/key "
    . "-out $directory/certificate 2>$directory/log") == 0
    or die "openssl failed\n";
my $strangers = ModelServer->new(arguments => [ "$directory/key", "$directory/certificate" ]);

my %graphs;
for my $vendor (@VENDORS) {
    my %models = (
        ''      => {},
        key     => { key => 'wrong-secret-key' },
        nokey   => { key => undef },
        name    => { name => 'no-such-model' },
        path    => { url => $server->url . '/nowhere' },
        closed  => { url => "http://127.0.0.1:$closed_port" },
        host    => { url => "http://$no_host" },
        scheme  => { url => 'ftp://127.0.0.1' },
        garbage => { url => 'http://[' },
        header  => { key => "a\r\nX-Evil: 1" },
        hasty   => { timeout_ms => 2000 },
        brisk   => { timeout_ms => 4000 },
        tls     => { url => $strangers->url },
    );
    $graphs{"$vendor$_"} = graph(model => $server->model($vendor, %{ $models{$_} })) for keys %models;
}
my $runner = RunnerTest->new(graphs => \%graphs);

# All runs are started at once, since retries wait.
my (@starts, @checks);

# Adds a run; check(@lines) tests its lines.
sub add_run {
    my ($graph, $input, $check) = @_;
    push @starts, RunnerTest::start_line(graph_id => $graph, input => $input);
    push @checks, $check;
    return;
}

# Adds a run that must end with an error; also => code for more checks.
sub add_failing {
    my ($title, $graph, $input, $name, $patterns, $also) = @_;
    return add_run($graph, $input, sub {
        my @lines = @_;
        my ($end) = lines_of('end', @lines);
        is $end->{status}, 'error', "$title: the status is error";
        is $end->{error}{error}, $name, "$title: the error is $name";
        like $end->{error}{message}, $_, "$title: the message matches $_" for @{$patterns};
        is_deeply [ events_of('error', @lines) ], [ $end->{error} ], "$title: the stream has the error";
        is_deeply [ map { $_->{type} } messages_of(@lines) ], ['human'], "$title: the state has the input";
        $also->($end->{error}{message}) if $also;
        return;
    });
}

# Adds a run that must be answered with "fine"; also => code for more checks.
sub add_answered {
    my ($title, $graph, $input, $also) = @_;
    return add_run($graph, $input, sub {
        is last_message(@_)->{content}, 'fine', $title;
        $also->() if $also;
        return;
    });
}

sub status { return { status => $_[0], headers => { 'retry-after' => '0' }, @_[ 1 .. $#_ ] } }

sub is_called {
    my ($key, $times) = @_;
    return sub {
        is scalar $server->calls($key), $times, "$key: the model is called $times times";
    };
}

# The time between the first two calls with the key.
sub has_waited {
    my ($key, $ms) = @_;
    return sub {
        my @calls = $server->calls($key);
        cmp_ok $calls[1]{at_ms} - $calls[0]{at_ms}, '>=', $ms, "$key: the retry waits $ms ms";
    };
}

for my $vendor (@VENDORS) {

    # --- Refused -------------------------------------------------------------

    add_failing("$vendor: a wrong key", "${vendor}key", human('Hello'), 'AuthenticationError',
        [ qr/model $vendor:$vendor-test at 127\.0\.0\.1:\d+ refused the key/, qr/HTTP 401/,
            qr/Check AgentModelKeyFile/ ], sub {
            unlike $_[0], qr/wrong-secret-key/, "$vendor: the error does not have the key";
            like $_[0], qr/\*\*\*/, "$vendor: the repeated key is replaced by ***";
        });
    add_failing("$vendor: no key", "${vendor}nokey", human('Hello'), 'AuthenticationError');
    add_failing("$vendor: an unknown model", "${vendor}name", human('Hello'), 'NotFoundError',
        [ qr/no-such-model/, qr/HTTP 404/, qr/Check the name in AgentModel/ ]);
    add_failing("$vendor: a wrong path", "${vendor}path", human('Hello'), 'NotFoundError',
        [qr/AgentModelURL/]);
    my %names = (400 => 'BadRequestError', 403 => 'PermissionDeniedError',
        413 => 'RequestTooLargeError', 422 => 'APIStatusError');
    for my $status (sort keys %names) {
        add_failing("$vendor: status $status", $vendor, script(key => "$vendor$status",
            failures => [ status($status, message => 'because') ]),
            $names{$status}, [qr/HTTP $status: because/], is_called("$vendor$status", 1));
    }
    add_failing("$vendor: a redirect", $vendor, script(key => "${vendor}302", failures => [
        { status => 302, body => 'elsewhere', headers => { location => '/v1/messages' } } ]),
        'APIStatusError', [ qr/another address/, qr/HTTP 302/ ], is_called("${vendor}302", 1));
    add_failing("$vendor: an HTML page", $vendor, script(key => "${vendor}html",
        failures => [ { body => '<h1>Hi</h1>' } ]), 'APIResponseError',
        [ qr{got text/html: <h1>Hi</h1>}, qr/AgentModelURL/ ]);
    add_failing("$vendor: a long page", $vendor, script(key => "${vendor}long",
        failures => [ { status => 400, body => '<p>' . 'x' x 100_000 } ]), 'BadRequestError',
        [qr/x\.\.\.\)/]);
    my $key = $server->model($vendor)->{key};
    add_failing("$vendor: a page with the key at the end of the excerpt", $vendor, script(
        key => "${vendor}edge", failures => [ { status => 400, body => 'x' x 290 . "$key</p>" } ]),
        'BadRequestError', [qr{x\*\*\*</p>}]);

    # --- Unreachable ---------------------------------------------------------

    add_failing("$vendor: no server listens", "${vendor}closed", human('Hello'), 'APIConnectionError',
        [ qr/model $vendor:$vendor-test at 127\.0\.0\.1:$closed_port cannot be reached/,
            qr/after 4 attempts/, qr/AgentModelURL/ ]);
    add_failing("$vendor: no such host", "${vendor}host", human('Hello'), 'APIConnectionError',
        [ qr/$no_host/, qr/after 4 attempts/ ]);
    my $once = sub { unlike $_[0], qr/attempts/, "$vendor: there is no retry" };
    add_failing("$vendor: not HTTP", "${vendor}scheme", human('Hello'), 'APIConnectionError', [], $once);
    add_failing("$vendor: no URL", "${vendor}garbage", human('Hello'), 'APIConnectionError', [], $once);
    add_failing("$vendor: a key with a line break", "${vendor}header", human('Hello'),
        'APIConnectionError', [qr/malformed/], $once);
    add_failing("$vendor: a certificate that is not trusted", "${vendor}tls", human('Hello'),
        'APIConnectionError', [qr/certificate/i], $once);
    add_failing("$vendor: a connection that is reset each time", $vendor,
        script(key => "${vendor}reset", failures => [ ({ reset => 1 }) x 99 ]),
        'APIConnectionError', [qr/after 4 attempts/]);

    # --- Silent --------------------------------------------------------------

    add_failing("$vendor: a model without an answer", "${vendor}hasty",
        script(key => "${vendor}silent", hang_after => 0), 'APITimeoutError',
        [ qr/sent nothing for too long \(2000 ms\)/, qr/AgentModelTimeout/ ], sub {
            ok $server->closed("${vendor}silent")->{is_aborted}, "$vendor: the connection to a silent model is closed";
        });
    add_failing("$vendor: a model that stops in its answer", "${vendor}hasty",
        script(text => 'a b c', hang_after => 2), 'APITimeoutError');
    add_answered("$vendor: a slow first byte within the time", $vendor,
        script(text => 'fine', delay_ms => 300));

    # --- Retried -------------------------------------------------------------

    for my $status (429, 500, 502, 503, 529) {
        add_answered("$vendor: status $status is retried", $vendor, script(text => 'fine',
            key => "$vendor-$status", failures => [ status($status), status($status) ]),
            is_called("$vendor-$status", 3));
    }
    add_answered("$vendor: a refusal that repeats the key is retried", $vendor, script(text => 'fine',
        key => "$vendor-key", failures => [ status(500, message => "The key is $key") ]),
        is_called("$vendor-key", 2));
    add_failing("$vendor: 529 each time", $vendor, script(key => "$vendor-over",
        failures => [ (status(529, message => 'Overloaded')) x 9 ]), 'OverloadedError',
        [qr/is overloaded \(HTTP 529 after 4 attempts: Overloaded\)/], is_called("$vendor-over", 4));
    add_answered("$vendor: Retry-After in seconds", $vendor, script(key => "$vendor-after",
        text => 'fine', failures => [ { status => 429, headers => { 'retry-after' => '1' } } ]),
        has_waited("$vendor-after", 990));
    add_answered("$vendor: Retry-After as a date", $vendor, script(key => "$vendor-date",
        text => 'fine', failures => [ { status => 503, date_after_ms => 2000 } ]),
        has_waited("$vendor-date", 900));
    add_answered("$vendor: no Retry-After", $vendor, script(key => "$vendor-own", text => 'fine',
        failures => [ { status => 503 } ]), has_waited("$vendor-own", 350));
    add_failing("$vendor: a Retry-After of an hour", $vendor, script(key => "$vendor-hour",
        failures => [ { status => 429, headers => { 'retry-after' => '3600' } } ]), 'RateLimitError',
        [qr/asks to wait for 3600 s/], is_called("$vendor-hour", 1));

    # --- Broken streams ------------------------------------------------------

    for my $cut (1, 100) {
        add_answered("$vendor: a stream that is cut after $cut bytes is retried", $vendor,
            script(key => "$vendor-cut$cut", text => 'fine', failures => [ { cut_after => $cut } ]),
            is_called("$vendor-cut$cut", 2));
    }
    # A streamed piece of an answer cannot be taken back.
    add_failing("$vendor: a stream that is cut in the middle", $vendor,
        script(key => "$vendor-cut", text => join(' ', 1 .. 100), cut_after => 2000),
        'APIConnectionError', [qr/cut its answer off/], is_called("$vendor-cut", 1));
    add_failing("$vendor: malformed JSON", $vendor, script(text => 'a b c', garble_after => 2),
        'APIResponseError', [qr/did not answer in the form of its API/]);
    add_failing("$vendor: an error inside the stream", $vendor, script(text => 'a b c',
        error_after => { count => 2, status => 400, message => 'too bad' }),
        'BadRequestError', [qr/too bad/]);
    add_failing("$vendor: an overload inside the stream", $vendor, script(text => 'a b c',
        error_after => { count => 0, status => 529, message => 'Overloaded' }),
        $vendor eq 'openai' ? 'InternalServerError' : 'OverloadedError', [qr/after 4 attempts/]);
    add_failing("$vendor: an event that is too large", $vendor,
        script(deltas => ['x'], repeat => 1_100_000), 'APIResponseError', [qr/an event of more than 1 MiB/]);
    add_failing("$vendor: an answer that is too long", $vendor,
        script(deltas => [ ('x') x 5 ], repeat => 500_000), 'APIResponseError', [qr/an answer of more than 2 MiB/]);
}
for my $lines ($runner->run_all(@starts)) {
    (shift @checks)->(@{$lines});
}
for my $vendor (@VENDORS) {
    my @lines = $runner->run(graph_id => "${vendor}brisk",
        input => script(deltas => [ split //, 'fine' ], pace_ms => 700));
    is last_message(@lines)->{content}, 'fine', "$vendor: an answer may take longer than the time-out";
}
$runner->close_input;
$runner->finish;
like $runner->log_text, qr/^run [0-9a-f-]{36}: model anthropic:anthropic-test: attempt 1 failed/m,
    'log: a failed attempt is logged';
unlike $runner->log_text, qr/wrong-secret-key|test-key/, 'log: keys are not logged';
like $runner->log_text, qr/attempt 1 failed \(500 The key is \*\*\*\)/, 'log: a key that a server repeats is replaced by ***';

done_testing;
