# SPDX-License-Identifier: Apache-2.0
# The features of the libraries of both languages through httpd: applications in Python
# and JavaScript with the same graphs, one server for both.
use strict;
use warnings;
use AgentTest::Wait;
use FindBin;
use lib $FindBin::Bin;
use SdkTest;
use Test::More;

my @languages = qw(python javascript);
my %folder = map { $_ => SdkTest::beside($_, "$FindBin::Bin/library/$_") } @languages;
for my $packages (map { SdkTest::application($_) } @languages) {
    plan skip_all => "the user of runners may not read $packages" if !SdkTest::is_readable($packages);
}
my $sdk = SdkTest->new(config => <<"CONF");
AgentApplication python $folder{python}
AgentApplication javascript $folder{javascript}
AgentNodeProgram "@{[SdkTest::node()]}"
AgentCallTimeout 120s
CONF
wait_for('the reports', sub { @{ $sdk->client->post('/assistants/search', { graph_id => "$_-steps" })->{json} } }) for @languages;
my ($python, $node) = map { SdkTest::application($_) } @languages;
$sdk->run_script("$python/.agent/venv/bin/python", 'python_sdk.py', 'library');
$sdk->run_script(node => 'javascript.mjs', "$node/node_modules", 'library');
$sdk->finish;
