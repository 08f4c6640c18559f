# SPDX-License-Identifier: Apache-2.0
# The features of the libraries of both languages through httpd: applications in Python
# and JavaScript with the same graphs, one server for both; and the graphs as nodes of
# graphs elsewhere.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use SdkTest;
use Test::More;

my ($python_folder, $python) = SdkTest::library('python');
my ($node_folder,   $node)   = SdkTest::library('javascript');
for my $packages ($python, $node) {
    plan skip_all => "the user of runners may not read $packages" if !SdkTest::is_readable($packages);
}
my $sdk = SdkTest->serve({ python => $python_folder, javascript => $node_folder }, [qw(python-steps javascript-steps)],
    config => "AgentCallTimeout 120s\n");
$sdk->run_script("$python/.agent/venv/bin/python", 'python_sdk.py', qw(library agents remote));
$sdk->run_script(node => 'javascript.mjs', "$node/node_modules", $_) for qw(library remote);
$sdk->finish;
