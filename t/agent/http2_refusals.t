# SPDX-License-Identifier: Apache-2.0
# Refusals over HTTP/2 of requests whose bodies have not arrived: clients read them.
use strict;
use warnings;
use AgentTest::ApiKey;
use AgentTest::Client qw(read_until);
use AgentTest::Conf qw(location);
use AgentTest::Database;
use AgentTest::Env qw(root write_file);
use AgentTest::Process;
use AgentTest::Server;
use AgentTest::Wait;
use Cpanel::JSON::XS qw(decode_json);
use File::Path qw(make_path);
use File::Temp;
use IPC::Open2 qw(open2);
use Test::More;

my ($server, $client) = AgentTest::Server->start_with_client('LoadModule http2_module "${MODULES}/mod_http2.so"', 'Protocols h2c http/1.1',
    # The child may discard two bodies at a time. If it waited for the clients of this test it would not go on.
    'ThreadLimit 16', 'ThreadsPerChild 16', 'MaxSpareThreads 16', 'MaxRequestWorkers 16', 'Timeout 3600',
    'LoadModule authn_core_module "${MODULES}/mod_authn_core.so"',
    location('/keyed', 'AuthType AgentKey', 'AuthzSendForbiddenOnFailure On', 'Require agent-scope run'),
    location('/either', 'AuthType AgentKey', '<RequireAny>', 'Require agent-scope admin', 'Require agent-scope run', '</RequireAny>'),
    'LoadModule asis_module "${MODULES}/mod_asis.so"',
    location('/unread', 'SetHandler send-as-is', 'AuthType AgentKey', '<RequireAny>', 'Require agent-scope admin', 'Require agent-scope run', '</RequireAny>'),
    location('/small', 'AgentMaxBody 65536'),
    (map { location($_, 'AuthType AgentKey', 'AuthzSendForbiddenOnFailure On', 'Require agent-scope admin', 'ErrorDocument 403 /explained/file') } qw(/refused /files)),
    '<Location "/files">', 'SetHandler None', '</Location>',
    location('/own', 'SetHandler None', 'AgentDeployment shop account=' . create_account(), 'AuthType AgentKey', 'AuthzSendForbiddenOnFailure On', 'Require agent-deployment',
        'ErrorDocument 403 /explained/file'),
    'LoadModule include_module "${MODULES}/mod_include.so"',
    location('/including', 'SetHandler send-as-is', 'Options +Includes', 'SetOutputFilter INCLUDES'),
    # A filter of the request is in front of those of its protocol, from the start.
    'LoadModule ratelimit_regional_module "${BUILD_DIR}/mod_ratelimit_regional.so"', 'RateLimitRegion eu', 'RateLimitRule all /indexed key=ip eu=100000/1h',
    'LoadModule dir_module "${MODULES}/mod_dir.so"',
    '<Location "/indexed/">', 'SetHandler None', 'AuthType AgentKey', 'Require agent-scope read', 'DirectoryIndex a1.html a2.html ok.html', '</Location>',
    '<LocationMatch "^/indexed/a">', 'AuthType AgentKey', 'Require agent-scope admin', '</LocationMatch>',
    location('/excluded', 'SetHandler None', 'AuthType None', '<RequireAll>', 'Require all granted', 'Require not agent-account 00000000-0000-0000-0000-00000000000a', '</RequireAll>',
        'ErrorDocument 403 /open/file'),
    location('/open', 'SetHandler None', 'AuthType None', 'Require all granted'),
    location('/explained', 'SetHandler None', 'AuthType AgentKey', '<RequireAny>', 'Require agent-scope admin', 'Require agent-scope read', '</RequireAny>'));
my $reader = create_key('00000000-0000-0000-0000-00000000000a', scopes => ['read']);

# More than the window of a stream, so that a client is still sending when the response arrives.
my $dir = File::Temp->newdir;
my $body = write_file("$dir/body", 'x' x 4_000_000);

# "401 unauthorized"
sub refusal {
    my ($path, @words) = @_;
    open my $out, '-|', qw(curl -s --http2-prior-knowledge -w), "\n%{http_code}", '-H', 'Content-Type: application/json', '--data-binary', "\@$body", @words,
        $server->url . $path or die "curl: $!\n";
    my ($json, $status) = do { local $/ = undef; split /\n/, <$out> };
    close $out or return 'curl failed: ' . ($? >> 8);
    return "$status " . decode_json($json)->{code};
}

# Of a GET.
sub index_of {
    my ($path) = @_;
    open my $out, '-|', qw(curl -s --http2-prior-knowledge -H), "x-api-key: $reader", $server->url . $path or die "curl: $!\n";
    my $text = do { local $/ = undef; <$out> };
    close $out or return 'curl failed: ' . ($? >> 8);
    return $text;
}

make_path("$server->{dir}/htdocs/$_") for qw(explained open);
write_file("$server->{dir}/htdocs/explained/file", '{"code":"explained"}');
write_file("$server->{dir}/htdocs/open/file", '{"code":"excluded"}');
my %refusals = (
    'with an ErrorDocument that a second line admits' => [ '403 explained', '/refused/threads', '-H', "x-api-key: $reader" ],
    'of another handler, with the key of another account' => [ '403 explained', '/own/x', '-H', "x-api-key: $reader" ],
    'of another handler, with such an ErrorDocument' => [ '403 explained', '/files/x', '-H', "x-api-key: $reader" ],
    'that an exclusion denies where no key is read' => [ '403 excluded', '/excluded/x' ],
    'without a key' => [ '401 unauthorized', '/keyed/threads' ],
    'with a key without the scope' => [ '403 scope_required', '/keyed/threads', '-H', "x-api-key: $reader" ],
    'with a body that is too large' => [ '413 body_too_large', '/small/threads' ],
);
for my $title (sort keys %refusals) {
    my ($expected, @request) = @{ $refusals{$title} };
    is refusal(@request), $expected, "HTTP/2: the answer to a request $title is read, each time" for 1 .. 5;
}

# A first line denies, a second one grants: the body is read by the handler.
my $writer = create_key('00000000-0000-0000-0000-00000000000a', scopes => [qw(read run)]);
is refusal('/either/threads', '-H', "x-api-key: $writer"), '400 invalid_json', 'HTTP/2: a body that is admitted is read';

sub start_client {
    my ($scenario, @path) = @_;
    my $pid = open2(my $out, my $in, 'node', root() . '/t/agent/refused-client.mjs', $server->url, $writer, $scenario, @path);
    chomp(my $line = read_until($out, qr/\n/));
    return ($line, $pid, $in);
}

sub end_client {
    my ($pid, $in) = @_;
    close $in;
    waitpid $pid, 0;
    return;
}

make_path("$server->{dir}/htdocs/$_") for qw(unread including);
write_file("$server->{dir}/htdocs/unread/file", "Content-Type: text/plain\n\ntext\n");
{
    my ($line, @client) = start_client('unread');
    is $line, '200 window', 'HTTP/2: nothing is discarded of a body that an admitted handler does not read, though a Require has denied the request';
    end_client(@client);
}

write_file("$server->{dir}/htdocs/including/file", qq(Content-Type: text/plain\n\n<!--#include virtual="/files/x" -->\n));
{
    my ($line, @client) = start_client('unread', '/including/file');
    is $line, '200 window', 'HTTP/2: nothing is discarded of such a body though a Require has denied a subrequest';
    end_client(@client);
}

make_path("$server->{dir}/htdocs/indexed");
write_file("$server->{dir}/htdocs/indexed/$_.html", qq({"code":"$_"})) for qw(a1 a2 ok);
is index_of('/indexed/'), '{"code":"ok"}', 'HTTP/2: a directory whose first indexes a Require denies has the next one, each time' for 1 .. 5;

my @scenarios = (
    [ 'silent', '401', 'a client that sends nothing more' ],
    [ 'trickling', '401', 'a client that sends a byte now and then, as long as it likes' ],
);
for my $scenario (@scenarios) {
    my ($name, $expected, $title) = @$scenario;
    my ($line, @client) = start_client($name);
    is $line, $expected, "HTTP/2: $title: the request ends";
    end_client(@client);
}
for my $round (1 .. 3) {
    my ($line, @client) = start_client('customer');
    is $line, '200', 'HTTP/2: bodies that are discarded take no thread from those that are admitted';
    end_client(@client);
}
{
    # A client that has just left may hold up the next one, if its end has not been processed yet.
    my ($line, @client) = start_client('leaving');
    cmp_ok $line, '>=', 5, 'HTTP/2: clients that leave with the answer hold up no body of the next client';
    end_client(@client);
}
{
    my ($line, @client) = start_client('same');
    is $line, '404', 'HTTP/2: bodies that are discarded hold up no other request of their connection';
    end_client(@client);
}
{
    my @old = AgentTest::Process::httpd_children($server->httpd_pid);
    my ($line, @client) = start_client('held');
    is $line, '401', 'HTTP/2: the answer comes before the body has';
    $server->graceful;
    ok wait_for('the child to end', sub {
        my %left = map { $_ => 1 } AgentTest::Process::httpd_children($server->httpd_pid);
        return !grep { $left{$_} } @old;
    }), 'HTTP/2: a silent client holds up no graceful restart';
    end_client(@client);
}

my $too_many = '';
for (1 .. 40) {
    last if $too_many =~ /\A429/;
    $too_many = refusal('/keyed/threads', '-H', 'x-api-key: ' . print_key('sk', random_digits(22), random_digits(43)));
}
is $too_many, '429 too_many_failures', 'HTTP/2: so is the one to too many wrong keys';

undef $server;
done_testing;
