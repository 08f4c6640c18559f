# SPDX-License-Identifier: Apache-2.0
# A page of an origin that AgentAllowOrigin names: its streams with fetch and with
# the SDK, in headless Chromium.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use File::Temp qw(tempdir);
use SdkTest;
use Test::More;

my $modules = SdkTest::node_modules();
my $dir = tempdir(CLEANUP => 1);
{
    # Where esbuild finds the imports of the page.
    local $ENV{NODE_PATH} = $modules;
    SdkTest::command("$modules/.bin/esbuild", "$FindBin::Bin/page.mjs", '--bundle',
        '--platform=browser', '--log-level=warning', "--outfile=$dir/page.js");
}

my $sdk = SdkTest->new(config => <<'CONF');
AgentAllowOrigin http://127.0.0.1:* https://127.0.0.1:* http://localhost:*
CONF
my $client = $sdk->client;

# The status of a response and its CORS headers.
sub allowed {
    my ($method, $path, %headers) = @_;
    my $answer = $client->request($method, $path, undef, \%headers);
    my %found = map { /\Aaccess-control-(.*)/ ? ($1 => $answer->{headers}{$_}) : () }
        keys %{ $answer->{headers} };
    return ($answer->{status}, \%found);
}

my ($status, $asked) = allowed(OPTIONS => '/threads', Origin => 'http://localhost:3000',
    'Access-Control-Request-Method' => 'POST',
    'Access-Control-Request-Headers' => 'content-type,x-api-key');
is $status, 204, 'CORS: a preflight is 204';
is_deeply $asked, {
    'allow-origin'   => 'http://localhost:3000',
    'allow-methods'  => 'GET, POST, PUT, PATCH, DELETE',
    'allow-headers'  => 'content-type,x-api-key',
    'max-age'        => 600,
    'expose-headers' => 'Content-Location, Location, X-Pagination-Total, X-Pagination-Next, Retry-After',
}, 'CORS: the response to a preflight lists methods and headers';
is +(allowed(GET => '/threads/x', Origin => 'https://127.0.0.1'))[1]{'allow-origin'},
    'https://127.0.0.1', 'CORS: errors have the headers';
ok !exists +(allowed(GET => '/ok', Origin => $_))[1]{'allow-origin'}, "CORS: $_ is not allowed"
    for qw(http://example.com http://localhost.example.com http://xlocalhost null);
is_deeply +(allowed(GET => '/ok'))[1], {}, 'CORS: the response to a request without Origin has no headers';

$sdk->run_script(node => 'browser.mjs', "$dir/page.js");
$sdk->finish;
