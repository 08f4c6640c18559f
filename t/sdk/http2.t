# SPDX-License-Identifier: Apache-2.0
# The client of the Python SDK, httpx, over HTTP/2: it reads refusals that are sent while
# it sends the body.
use strict;
use warnings;
use AgentTest::Conf qw(demo_graph key_location location);
use AgentTest::Postgres;
use AgentTest::Server;
use FindBin;
use lib $FindBin::Bin;
use SdkTest;
use Test::More;

my $postgres = AgentTest::Postgres->new;
my $server = AgentTest::Server->new(database => $postgres->conninfo, config => join '', demo_graph(), <<'CONF',
LoadModule http2_module "${MODULES}/mod_http2.so"
Protocols h2c http/1.1
CONF
    key_location(), location('/keyed', 'Require agent-scope run'), location('/small', 'AuthType None', 'AgentMaxBody 65536'));
$server->start;
my @paths = ('/keyed/threads', '/small/threads') x 3;
open my $out, '-|', SdkTest::python(), "$FindBin::Bin/http2.py", $server->url, @paths or die "python: $!\n";
is_deeply [ map { chomp; $_ } <$out> ], [ ('/keyed/threads HTTP/2 401 unauthorized', '/small/threads HTTP/2 413 body_too_large') x 3 ],
    'HTTP/2: httpx reads refusals of large bodies, each time';
ok close($out), 'HTTP/2: the script ends well';

undef $server;
done_testing;
