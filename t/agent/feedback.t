# SPDX-License-Identifier: Apache-2.0
# feedback_keys: the URLs that receive feedback about a run.
use strict;
use warnings;
use AgentTest::Client qw(read_events run_body);
use AgentTest::Server;
use Test::More;

my $server = AgentTest::Server->new(config => AgentTest::Server::shared_config()
    . qq(AgentFeedbackURL "https://f.example.com/r/{run_id}?k={key}"\n)
    . qq(<Location /other>\nAgentPrefix /other\nAgentFeedbackURL "https://other.example.com/{run_id}/{key}"\n</Location>\n)
    . qq(<Location /silent>\nAgentPrefix /silent\nAgentFeedbackURL None\n</Location>\n));
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

sub body {
    my ($text, @keys) = @_;
    return run_body($text, feedback_keys => \@keys);
}

sub url { my ($run, $key) = @_; return "https://f.example.com/r/$run?k=$key" }

# (event, data) of the last event of a stream.
sub last_event {
    my ($body) = @_;
    return @{ (read_events($body))[-1] }{qw(event data)};
}

my $thread = $client->new_thread;
my $stream = $client->post("/threads/$thread/runs/stream", body('hello', 'good', "a b/\x{e4}", 'good'));
my ($run) = $stream->{headers}{'content-location'} =~ m{([^/]+)\z};
my %urls = (good => url($run, 'good'), "a b/\x{e4}" => url($run, 'a%20b%2F%C3%A4'));
my ($event, $data) = last_event($stream->{body});
is $event, 'feedback', 'feedback: a stream ends with a feedback event';
is_deeply $data, \%urls, 'feedback: the event has a URL for each key, percent-encoded';
my ($id) = $stream->{body} =~ /^id: (\d+)\n\n\z/m;
is_deeply [ last_event($client->get("/threads/$thread/runs/$run/stream", undef, { 'Last-Event-ID' => $id - 1 })->{body}) ],
    [ 'feedback', \%urls ], 'feedback: the event is replayed';
my $joined = $client->get("/threads/$thread/runs/$run/join")->{json};
is_deeply $joined->{__feedback__}, \%urls, 'feedback: join returns the URLs as __feedback__';
is $joined->{messages}[0]{content}, 'hello', 'feedback: join returns the values too';
ok !exists $client->get_state($thread)->{values}{__feedback__}, 'feedback: the state has no __feedback__';
like $client->post('/runs/wait', body('hello', 'k'))->{json}{__feedback__}{k}, qr{\?k=k\z},
    'feedback: wait of a stateless run returns __feedback__';
my ($batched) = @{ $client->post('/runs/batch', [ body('hello', 'k') ])->{json} };
ok $client->join_run($batched)->{__feedback__}{k}, 'feedback: join of a batch run returns __feedback__';

for my $case ([ 'fail', 'error', 'a failed run' ], [ 'hello', 'values', 'a run without feedback_keys' ]) {
    my ($text, $last, $what) = @$case;
    my $other = $client->post("/threads/$thread/runs/stream", body($text, $last eq 'error' ? 'k' : ()));
    is +(last_event($other->{body}))[0], $last, "feedback: $what has no feedback event";
}
for my $bad ([ ('k') x 65 ], [''], [ 'k' x 65 ], [7], 'k') {
    my $refused = $client->post("/threads/$thread/runs", { assistant_id => 'agent', feedback_keys => $bad });
    is $refused->{status}, 422, 'feedback: invalid feedback_keys are 422';
    like $refused->{json}{detail}, qr{\A/feedback_keys}, 'feedback: the detail points at feedback_keys';
}

# ---- the directive of a location ----
is $client->post('/other/runs/wait', body('hello', 'k'))->{json}{__feedback__}{k}
    =~ s{/[0-9a-f-]{36}/}{/ID/}r, 'https://other.example.com/ID/k', 'feedback: a location may have its own AgentFeedbackURL';
ok !exists $client->post('/silent/runs/wait', body('hello', 'k'))->{json}{__feedback__},
    'feedback: AgentFeedbackURL None takes that of the server away from a location';
undef $server;

# ---- without the directive ----
my $plain = AgentTest::Client->new;
$thread = $plain->new_thread;
$stream = $plain->post("/threads/$thread/runs/stream", body('hello', 'good'));
isnt +(last_event($stream->{body}))[0], 'feedback', 'feedback: without AgentFeedbackURL there is no feedback event';
my ($record) = @{ $plain->get("/threads/$thread/runs")->{json} };
is_deeply $record->{kwargs}{feedback_keys}, ['good'], 'feedback: without AgentFeedbackURL the keys are stored';
ok !exists $plain->join_run($record)->{__feedback__}, 'feedback: without AgentFeedbackURL join has no __feedback__';

done_testing;
