# SPDX-License-Identifier: Apache-2.0
# Graphs on vendors' models, from httpd.conf to the thread's state: the same
# graph with another AgentModel and AgentModelURL.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Env qw(root build_dir write_file);
use AgentTest::Server;
use AgentTest::Wait;
use File::Temp qw(tempdir);
use Test::More;

use lib root() . '/t/runner';
use ModelServer;

my $models = ModelServer->new;
my $dir = tempdir(CLEANUP => 1);

sub graph {
    my ($name, $vendor) = @_;
    my $model = $models->model($vendor);
    my $key = write_file("$dir/$name.key", "$model->{key}\n");
    my $schema = write_file("$dir/$name.json",
        '{"type":"object","properties":{"city":{"type":"string"}}}');
    return "<AgentGraph $name>\nAgentModel $vendor:$model->{name}\n"
        . "AgentModelURL $model->{url}\nAgentModelKeyFile $key\n"
        . "AgentSystemPrompt \"Be brief.\"\n"
        . "AgentTool weather POST $models->{url}/tool/weather $schema \"Weather\"\n"
        . "</AgentGraph>\n";
}

my $server = AgentTest::Server->new(config =>
    qq(AgentRunner "@{[build_dir()]}/agent-runner"\n)
    . graph('claude', 'anthropic') . graph('gpt', 'openai')
    . "<Location />\nSetHandler agent\n</Location>\n");
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

for my $graph (qw(claude gpt)) {
    my $thread = $client->new_thread;
    $client->join_run($client->create_run($thread, 'Hello there',
        assistant_id => $graph));
    my @messages = @{ $client->get_state($thread)->{values}{messages} };
    is scalar @messages, 2, "models: $graph: the model answers once";
    like $messages[1]{content}, qr/You said: Hello there/,
        "models: $graph: the answer depends on the prompt";
    ok $messages[1]{usage_metadata}{total_tokens} > 0,
        "models: $graph: the tokens are counted";
    ok length $messages[1]{response_metadata}{stop_reason},
        "models: $graph: stop_reason is stored";

    $client->join_run($client->create_run($thread,
        'script {"tools":[{"name":"weather","input":{"city":"Oslo"}}]}',
        assistant_id => $graph));
    my @types = map { $_->{type} }
        @{ $client->get_state($thread)->{values}{messages} };
    is "@types", 'human ai human ai tool ai',
        "models: $graph: a tool call reaches the tool, and its result the model";
}

my $thread = $client->new_thread;
my $run = $client->create_run($thread,
    'script {"key":"overload","failures":[{"status":401}]}',
    assistant_id => 'claude');
my $joined = $client->join_run($run);
ok length $joined->{__error__}{message}, 'models: a refusal of the vendor ends the run in error';
is $client->get_run($run)->{status}, 'error', 'models: the record of the refused run is error';
wait_for('a line in the error log', sub {
    $server->error_log =~ /AGT0349: run \Q$run->{run_id}\E ended in error/ });
pass 'models: the error log names the refused run';

undef $server;
done_testing;
