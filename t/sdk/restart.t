# SPDX-License-Identifier: Apache-2.0
# A graceful restart of the server while SDKs read streams.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Gate;
use AgentTest::Process qw(httpd_children is_alive);
use AgentTest::Wait;
use SdkTest;

# The runs of the streams end after the restart.
my $STREAMS = 4;

my $modules = SdkTest::node_modules();
my $python = SdkTest::python();
my $gate = AgentTest::Gate->new;
my $sdk;
$sdk = SdkTest->new(config => $gate->graph, on_ready => sub {
    my @old = httpd_children($sdk->server->httpd_pid);
    $sdk->server->graceful;
    wait_for('the old children to end', sub { !grep { is_alive($_) } @old });
    $gate->wait_calls($STREAMS);
    $gate->open;
});
$sdk->run_script(node => 'javascript.mjs', $modules, 'restart');
$sdk->run_script($python => 'python_sdk.py', 'restart');
$sdk->finish;
