# SPDX-License-Identifier: Apache-2.0
# The features of the libraries of both languages through httpd: applications in Python
# and JavaScript with the same graphs, one server for both; and the graphs as nodes of
# graphs elsewhere.
use strict;
use warnings;
use AgentTest::Wait;
use FindBin;
use lib $FindBin::Bin;
use SdkTest;
use Test::More;

my ($python_folder, $python) = SdkTest::library('python');
my ($node_folder,   $node)   = SdkTest::library('javascript');
for my $packages ($python, $node) {
    plan skip_all => "the user of runners may not read $packages" if !SdkTest::is_readable($packages);
}
my $sdk = SdkTest->new(config => <<"CONF");
AgentApplication python $python_folder
AgentApplication javascript $node_folder
AgentNodeProgram "@{[SdkTest::node()]}"
AgentCallTimeout 120s
CONF
for my $language (qw(python javascript)) {
    wait_for('the reports', sub { @{ $sdk->client->post('/assistants/search', { graph_id => "$language-steps" })->{json} } });
}
$sdk->run_script("$python/.agent/venv/bin/python", 'python_sdk.py', qw(library agents remote));
$sdk->run_script(node => 'javascript.mjs', "$node/node_modules", $_) for qw(library remote);
$sdk->finish;
