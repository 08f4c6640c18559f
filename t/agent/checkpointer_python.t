# SPDX-License-Identifier: Apache-2.0
# The checkpointer of the runner in Python, through httpd and PostgreSQL: LangGraph's public
# conformance suite, and the history of delta channels beside that of LangGraph's own saver.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../runner";
use AgentTest::Client;
use AgentTest::Env qw(build_dir write_file);
use AgentTest::Server;
use File::Copy qw(copy);
use File::Temp qw(tempdir);
use PythonRunner qw(python);
use Test::More;

my $dir = tempdir('/tmp/agent-test-python.XXXXXX', CLEANUP => 1);
chmod 0755, $dir or die "$dir: $!\n";
copy("$FindBin::Bin/checkpointers/$_", "$dir/$_") or die "$_: $!\n" for qw(conformance.py held.py);
write_file("$dir/langgraph.json", <<'JSON');
{"dependencies": ["."], "graphs": {"suite": "./conformance.py:suite", "thread": "./conformance.py:thread"}}
JSON

my $server = AgentTest::Server->new(config => <<"CONF");
AgentRunner "@{[ build_dir() ]}/agent-runner"
AgentPythonProgram "@{[ python() ]}"
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
for my $result (@{$results}) {
    ok !defined $result->{reason}, $result->{name} or diag $result->{reason};
}
my %tests = (async => 81, blocking => 53);
for my $form (sort keys %tests) {
    my @of = grep { $_->{name} =~ /\A$form: / } @{$results};
    my $delta = grep { $_->{name} =~ /\A$form: delta:/ } @of;
    is @of - $delta, $tests{$form}, "$form: the conformance suite has $tests{$form} tests";
    is $delta, 22, "$form: history of delta channels has 22 tests";
}
undef $server;
done_testing;
