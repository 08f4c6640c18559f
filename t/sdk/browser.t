# SPDX-License-Identifier: Apache-2.0
# A page of another origin: its streams with fetch and with the SDK, in headless
# Chromium; and AgentAllowOrigin, which lets it.
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
    # Where esbuild looks for what the page imports.
    local $ENV{NODE_PATH} = $modules;
    SdkTest::command("$modules/.bin/esbuild", "$FindBin::Bin/page.mjs", '--bundle',
        '--platform=browser', '--log-level=warning', "--outfile=$dir/page.js");
}

my $sdk = SdkTest->new(config => <<'CONF');
AgentAllowOrigin http://127.0.0.1:* https://127.0.0.1:* http://localhost:*
CONF
my $client = $sdk->client;

# The headers of an answer that are about origins.
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
is $status, 204, 'a browser may ask before it sends';
is_deeply $asked, {
    'allow-origin'   => 'http://localhost:3000',
    'allow-methods'  => 'GET, POST, PUT, PATCH, DELETE',
    'allow-headers'  => 'content-type,x-api-key',
    'max-age'        => 600,
    'expose-headers' => 'Content-Location, Location, X-Pagination-Total, X-Pagination-Next, Retry-After',
}, 'and is told what it may send';
is +(allowed(GET => '/threads/x', Origin => 'https://127.0.0.1'))[1]{'allow-origin'},
    'https://127.0.0.1', 'an error can be read too';
ok !exists +(allowed(GET => '/ok', Origin => $_))[1]{'allow-origin'}, "$_ may not"
    for qw(http://example.com http://localhost.example.com http://xlocalhost null);
is_deeply +(allowed(GET => '/ok'))[1], {}, 'a client that is not a page gets no CORS headers';

$sdk->run_script(node => 'browser.mjs', "$dir/page.js");
$sdk->finish;
