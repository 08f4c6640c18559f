# SPDX-License-Identifier: Apache-2.0
# Pages of other origins, and names that lead to the server by DNS rebinding,
# against the API and against the limiter's status page, in headless Chromium.
# t/agent/browsers.t has the same as raw requests.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use RateLimitTest;
use SdkTest;

my $limiter = RateLimitTest->new(config => <<'CONF', defines => ['NO_PROXY']);
RateLimitRegion us
RateLimitRule counted =/counted key=ip us=10/3600
Redirect 204 /counted
<Location /limits>
    SetHandler ratelimit-status
</Location>
CONF
$limiter->start;
$limiter->ask('GET', '/counted') for 1 .. 4;

my $sdk = SdkTest->new(config => "AgentAllowOrigin http://app.example:*\n");
$sdk->run_script(node => 'pages.mjs', $limiter->url . '/limits');
$sdk->finish;
