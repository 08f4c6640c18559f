# SPDX-License-Identifier: Apache-2.0
# Applications with the oldest libraries that the runners support, through httpd: parallel nodes, interrupts, a subgraph.
use strict;
use warnings;
use AgentTest::Applications qw(folder_of node_application python serve_applications);
use AgentTest::Client;
use AgentTest::Env qw(root slurp);
use AgentTest::Server;
use Test::More;

my $FOLDER = root() . '/t/runner/histories';
my %SUFFIX = (python => 'py', javascript => 'mjs');

# A folder with the graph of the random histories.
sub application {
    my ($language) = @_;
    my $file = "histories.$SUFFIX{$language}";
    return folder_of($language, { dependencies => ['.'], graphs => { $language => "./$file:graph" } }, $file => slurp("$FOLDER/$file"));
}

my %folder = map { $_ => application($_) } sort keys %SUFFIX;
unlink "$folder{javascript}/node_modules" or die "unlink: $!\n";
symlink node_application('node-1.0') . '/node_modules', "$folder{javascript}/node_modules" or die "symlink: $!\n";
my $oldest = python('1.0');
my $server = AgentTest::Server->new(config => serve_applications(%folder) =~ s/AgentPythonProgram "[^"]*"/AgentPythonProgram "$oldest"/r);
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

sub nodes_of { my ($values) = @_; return join ' ', sort map { $_->{by} } @{ $values->{log} } }

for my $language (sort keys %folder) {
    my $thread = $client->new_thread;
    my $run = sub {
        my $answer = $client->post("/threads/$thread/runs/wait", { assistant_id => $language, @_ });
        return $answer->{json};
    };
    my $values = $run->(input => { log => [ { by => 'input' } ], most => 3 });
    is $values->{__interrupt__}[0]{value}, 'c1', "$language: a run stops at an interrupt";
    my $state = $client->get_state($thread);
    is_deeply [ nodes_of($state->{values}), $state->{next} ], [ 'b input plan', ['c'] ],
        "$language: the state has the update of the node beside it that has ended";
    $values = $run->(command => { resume => 'yes' });
    is $values->{__interrupt__}[0]{value}, 'c2', "$language: an answer leads to the next question of the node";
    $values = $run->(command => { resume => 'yes' });
    is $values->{__interrupt__}[0]{value}, 'w', "$language: a task that Send has made asks";
    is nodes_of($client->get_state($thread)->{values}), 'b b c input join plan plan w', "$language: the state has the update of the other one";
    $values = $run->(command => { resume => 'yes' });
    is $values->{__interrupt__}[0]{value}, 's', "$language: a node of a subgraph asks";
    $values = $run->(command => { resume => 'yes' });
    is_deeply [ $values->{n}, scalar grep { $_->{by} eq 's2' } @{ $values->{log} } ], [ 3, 1 ], "$language: the run ends with its update";
    is $client->get("/threads/$thread")->{json}{status}, 'idle', "$language: the thread has ended";
}

undef $server;
done_testing;
