# SPDX-License-Identifier: Apache-2.0
# The model test server is compatible with the vendors' published clients. Installs
# them below .build, with the versions and checksums of package-lock.json, and runs
# vendor-clients.js.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Env qw(root is_sanitized is_counted);
use AgentTest::Packages qw(install_once install_npm);
use ModelServer;

# Nothing of it is compiled: one build is enough.
if (is_sanitized() || is_counted()) {
    print "1..0 # SKIP the model test server has no such build\n";
    exit 0;
}
my $folder = eval {
    install_once(root() . '/.build/model-clients', ["$FindBin::Bin/package-lock.json"], sub { install_npm($FindBin::Bin, $_[0]) });
};
if (!defined $folder) {
    print "1..1\nnot ok 1 - npm installs the vendors' clients\n", $@ =~ s/^/# /gmr;
    exit 1;
}
my $server = ModelServer->new;
open STDERR, '>', '/dev/null' if !$ENV{HARNESS_IS_VERBOSE};
my $status = system 'node', "$FindBin::Bin/vendor-clients.js", $folder, $server->url;
exit($status ? 1 : 0);
