# SPDX-License-Identifier: Apache-2.0
# The checkpointer of the runner for JavaScript, through httpd and PostgreSQL: the library's
# public suite, and the history of delta channels beside that of the library's own saver.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../runner";
use AgentTest::Client;
use AgentTest::Env qw(build_dir write_file);
use AgentTest::Server;
use File::Copy qw(copy);
use File::Temp qw(tempdir);
use NodeApplication qw(application);
use Test::More;

# It skips one of them for the library's own saver.
my $TESTS = 718;

binmode Test::More->builder->$_, ':encoding(UTF-8)' for qw(output failure_output);
my $dir = tempdir('/tmp/agent-test-node.XXXXXX', CLEANUP => 1);
chmod 0755, $dir or die "$dir: $!\n";
my $packages = application('node');
copy("$FindBin::Bin/checkpointers/$_", "$dir/$_") or die "$_: $!\n" for qw(validation.mjs held.mjs);
copy("$packages/package.json", "$dir/package.json") or die "package.json: $!\n";
symlink "$packages/node_modules", "$dir/node_modules" or die "symlink: $!\n";
write_file("$dir/langgraph.json", <<'JSON');
{"node_version": "20", "dependencies": ["."], "graphs": {"suite": "./validation.mjs:suite", "thread": "./validation.mjs:thread"}}
JSON

my $server = AgentTest::Server->new(config => <<"CONF");
AgentRunner "@{[ build_dir() ]}/agent-runner"
AgentApplication suites $dir
<Location "/">
    SetHandler agent
</Location>
CONF
$server->start;
# As long as the suite takes.
my $client = AgentTest::Client->new(url => $server->url, timeout => 3600);
my $run = $client->create_run($client->new_thread, undef, assistant_id => 'suite', input => { url => $server->url });
my $results = $client->join_run($run)->{results} // [];
my %count;
for my $result (@{$results}) {
    next if $result->{state} eq 'skip';
    is $result->{state}, 'pass', $result->{name} or diag $result->{message};
    $count{ $result->{name} =~ /\Adelta / ? 'delta' : 'suite' }++;
}
is $count{suite}, $TESTS, 'all tests of the public suite are there';
is $count{delta}, 20, 'history of delta channels has 20 tests';
undef $server;
done_testing;
