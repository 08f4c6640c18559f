# SPDX-License-Identifier: Apache-2.0
# Graphs whose module blocks or ends its process at the import, in both languages, through httpd: their runs
# end with the reason, and the other graphs of the application are served. Runs of an application that does not
# start at all end too, until it starts.
use strict;
use warnings;
use AgentTest::Applications qw(folder_of serve_applications);
use AgentTest::Client;
use AgentTest::Env qw(write_file);
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

my %GRAPH = (
    python => "from langgraph.graph import START, MessagesState, StateGraph\n"
        . "graph = StateGraph(MessagesState).add_node('a', lambda state: {}).add_edge(START, 'a').compile()\n",
    javascript => "import { closeSync } from 'node:fs';\nimport { MessagesAnnotation, START, StateGraph } from '\@langchain/langgraph';\n"
        . "export const graph = new StateGraph(MessagesAnnotation).addNode('a', () => ({})).addEdge(START, 'a').compile();\n");
my %FAULT = (
    python => { loops => "while True:\n    pass\n", closes => "import os\nos.close(4)\n", leaves => "import os\nos._exit(3)\n",
        factory => "def graph():\n    while True:\n        pass\n" },
    javascript => { loops => "for (;;);\n", closes => "closeSync(4);\n", leaves => "process.reallyExit(3);\n",
        factory => "export const factory = () => { for (;;); };\n" });
my %REASON = (loops => 'did not become ready', factory => 'did not become ready',
    closes => 'process ended unexpectedly', leaves => 'process ended unexpectedly');

my %folder;
for my $language (sort keys %GRAPH) {
    my $suffix = $language eq 'python' ? 'py' : 'mjs';
    for my $fault (sort keys %{ $FAULT{$language} }) {
        my $name = "$language-$fault";
        my $export = $fault eq 'factory' && $language eq 'javascript' ? 'factory' : 'graph';
        $folder{$name} = folder_of($language, { dependencies => ['.'], graphs => {
            "$name-bad" => "./bad.$suffix:$export", map { ("$name-$_" => "./$_.$suffix:graph") } qw(good late) } },
            "bad.$suffix" => $GRAPH{$language} . $FAULT{$language}{$fault}, map { ("$_.$suffix" => $GRAPH{$language}) } qw(good late));
    }
}
# Applications that cannot be used before they are repaired.
my %unusable = map {
    my $file = $_ eq 'python' ? 'good.py' : 'good.mjs';
    ("$_-broken" => folder_of($_, { dependencies => ['.'], env => 'late.env', graphs => { "$_-broken" => "./$file:graph" } }, $file => $GRAPH{$_}))
} sort keys %GRAPH;
my $server = AgentTest::Server->new(config => serve_applications(%folder, %unusable));
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

sub start { my ($graph) = @_; return $client->start_run(undef, assistant_id => $graph, input => { messages => [] }) }

my %run = map { my $name = $_; map { ("$name-$_" => start("$name-$_")) } qw(good bad late) } sort keys %folder;
for my $name (sort keys %unusable) {
    my $run = start($name);
    my $error = $client->join_run($run)->{__error__};
    is $error->{error}, 'RunnerStartError', "$name: a run of an application that does not start ends with an error";
    like $error->{message}, qr/\ANo process of the program of the graph starts \((?:exit status 2|the runner process ended unexpectedly)\): /, "$name: the message says why";
    write_file("$unusable{$name}/late.env", "A=1\n");
}
for my $name (sort keys %folder) {
    my ($fault) = $name =~ /(\w+)\z/;
    for my $graph (qw(good late)) {
        $client->join_run($run{"$name-$graph"});
        is $client->get_run($run{"$name-$graph"})->{status}, 'success', "$name: the run of the graph '$graph' beside it succeeds";
    }
    my $error = $client->join_run($run{"$name-bad"})->{__error__};
    is $client->get_run($run{"$name-bad"})->{status}, 'error', "$name: a run of the graph that cannot be imported ends";
    is $error->{error}, 'GraphImportError', "$name: with its error";
    like $error->{message}, qr/ended while they imported the graph: the runner $REASON{$fault}\. /, "$name: the message says why";
    like $server->error_log, qr/AGT0376: .* of pool default\/\Q$name\E ended while it imported graph $name-bad \(.*\): the graph is not imported again/,
        "$name: the log names the graph";
}
for my $name (sort keys %unusable) {
    wait_for('a process', sub { $server->error_log =~ m{runner \d+ of pool default/$name is ready} });
    my $run = start($name);
    $client->join_run($run);
    is $client->get_run($run)->{status}, 'success', "$name: once it starts its runs are executed";
}
undef $server;
done_testing;
