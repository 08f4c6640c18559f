# SPDX-License-Identifier: Apache-2.0
# The lines that agentctl build prints for http.cors, in httpd: what pages get.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Client qw(parse_response);
use AgentTest::Postgres;
use AgentTest::Server;
use CtlTest qw(application build_python);
use Test::More;

my $cluster = AgentTest::Postgres->new;
my $PAGE = 'https://app.example.com';

# A server with the lines of a langgraph.json, but AgentApplication.
sub serve {
    my (%http) = @_;
    my $output = build_python(application({ http => \%http }))->{output};
    my ($lines) = $output =~ /^AgentApplication .*\n((?:.*\n)+?)(?:\z|==>)/m;
    my $server = AgentTest::Server->new(database => $cluster->conninfo('agent', 'agent'),
        config => AgentTest::Server::shared_config() . qq(LoadModule headers_module "\${MODULES}/mod_headers.so"\n$lines));
    $server->start;
    return ($server, AgentTest::Client->new(url => $server->url), $lines);
}

sub ask {
    my ($client, $what, %headers) = @_;
    my $lines = join '', map { "$_: $headers{$_}\r\n" } sort keys %headers;
    return parse_response($client->exchange("$what HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n$lines\r\n"));
}

sub cors { my ($answer) = @_; return { map { /\Aaccess-control-(.*)/ ? ($1 => $answer->{headers}{$_}) : () } keys %{ $answer->{headers} } } }

my %PREFLIGHT = ('Access-Control-Request-Method' => 'POST', 'Access-Control-Request-Headers' => 'content-type, x-one');
my $EXPOSED = 'Content-Location, Location, X-Pagination-Total, X-Pagination-Next, Retry-After';

subtest 'cors: all members' => sub {
    my ($server, $client) = serve(mount_prefix => '/v1.0', cors => { allow_origins => [$PAGE], allow_methods => [qw(GET POST)],
        allow_headers => ['X-One'], expose_headers => ['X-Trace'], allow_credentials => \1, max_age => 60 });
    my %own = (Origin => $PAGE);
    my %always = ('allow-origin' => $PAGE, 'allow-credentials' => 'true', 'expose-headers' => "$EXPOSED, X-Trace");
    is_deeply cors(ask($client, 'OPTIONS /v1.0/threads', %own, %PREFLIGHT)), { %always, 'allow-methods' => 'GET, POST', 'max-age' => 60,
        'allow-headers' => 'Accept, Accept-Language, Content-Language, Content-Type, X-One' }, 'cors: a preflight';
    is_deeply cors(ask($client, 'GET /v1.0/info', %own)), \%always, 'cors: a response';
    my $missing = ask($client, 'GET /v1.0/threads/01890000-0000-7000-8000-000000000000', %own);
    is_deeply [ $missing->{status}, cors($missing) ], [ 404, \%always ], 'cors: an error';
    is_deeply cors(ask($client, 'GET /v1.0/info', Origin => 'https://evil.example')), {}, 'cors: another origin gets nothing';
    is_deeply cors(ask($client, 'OPTIONS /v1.0/threads', Origin => 'https://evil.example', %PREFLIGHT)), {}, 'cors: a preflight of another origin gets nothing';
    is_deeply cors(ask($client, 'GET /v1.0/info')), {}, 'cors: a client without an origin gets nothing';
    is cors(ask($client, 'GET /v1x0/info', %own))->{'allow-credentials'}, undef, 'cors: paths beside the prefix are not changed';
};

subtest 'cors: origins alone' => sub {
    my ($server, $client, $lines) = serve(cors => { allow_origins => [ 'https://a.example', '*' ], allow_methods => ['*'], allow_headers => ['*'] });
    unlike $lines, qr/Header/, 'cors: * needs no line of mod_headers';
    is_deeply cors(ask($client, 'OPTIONS /threads', Origin => 'https://any.example', %PREFLIGHT)), { 'allow-origin' => 'https://any.example',
        'expose-headers' => $EXPOSED, 'allow-methods' => 'GET, POST, PUT, PATCH, DELETE', 'max-age' => 600,
        'allow-headers' => 'content-type, x-one' }, 'cors: * admits any page';
};

done_testing;
