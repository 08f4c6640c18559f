# SPDX-License-Identifier: Apache-2.0
# The process of a run is lost after questions of a subgraph were answered: the next attempt gives no answer to a question
# that nobody has seen, not even the one that an earlier run has left, in both languages.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/faulty";
use AgentTest::Applications qw(serve_applications);
use AgentTest::Client;
use AgentTest::Database qw(poll);
use AgentTest::Server;
use AgentTest::Wait;
use FaultyJob qw(application start_job release executed);
use Test::More;

my @LANGUAGES = qw(javascript python);
my %folder = map { $_ => application($_, 'asking', $_ => 'graph') } @LANGUAGES;
my $server = AgentTest::Server->new(config => serve_applications(%folder));
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

# Executes a run of the thread. Returns the values of the questions that wait then, and the ids.
sub answer {
    my ($language, $thread, %body) = @_;
    my $values = $client->post("/threads/$thread/runs/wait", { assistant_id => $language, %body })->{json};
    return map { @{$_}{qw(value id)} } @{ $values->{__interrupt__} // [] };
}

sub test_loss {
    my ($language, $title, $command) = @_;
    my $first = start_job($client, $language, 'ask');
    my $thread = $first->{thread_id};
    $client->join_run($first);
    my ($question, $id) = answer($language, $thread, command => { resume => 'yes' });
    is $question, 'second', "$title: the second question waits";
    my $run = $client->create_run($thread, undef, assistant_id => $language, input => undef, command => scalar $command->($id));
    wait_for('the step of the subgraph', sub {
        executed($first) eq 'later'
            && poll("select count(*) from agent.checkpoint_snapshots where run_id = '$run->{run_id}' and checkpoint_ns <> ''") > 0 });
    release($first);
    is_deeply [ map { $_->{value} } @{ $client->join_run($run)->{__interrupt__} } ], ['later'], "$title: the next question waits after the loss";
    is executed($first), 'later later', "$title: its node was executed once more";
    is_deeply [ answer($language, $thread, command => { resume => 'no' }) ], [], "$title: the next run answers it";
    return $client->get_state($thread)->{values}{done};
}

for my $language (@LANGUAGES) {
    is_deeply test_loss($language, "$language: a run without a command", sub { return }), [ 'yes yes', 'no' ],
        "$language: each answer was given to the questions that the library gives it to without a loss";
}
is_deeply test_loss('javascript', 'javascript: an answer by id', sub { return { resume => { $_[0] => 'too' } } }), [ 'yes too', 'no' ],
    'javascript: the answer by id is that of its question';
undef $server;
done_testing;
