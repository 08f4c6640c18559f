# SPDX-License-Identifier: Apache-2.0
# A chat whose state is longer than a line of the runner protocol.
use strict;
use warnings;
use AgentTest::Client qw(run_body);
use AgentTest::Cost;
use AgentTest::Process qw(httpd_children);
use AgentTest::Server;
use Cpanel::JSON::XS;
use Test::More;

my ($server, $client) = AgentTest::Server->start_with_client;
my $json = Cpanel::JSON::XS->new->utf8;
my $thread = $client->new_thread;

# Runs of 5,000 messages each.
for my $part (1 .. 3) {
    my @messages = map { { role => $_ % 2 ? 'user' : 'assistant', content => "$part $_ " . 'x' x 450 } } 1 .. 5_000;
    my $run = $client->create_run($thread, undef, input => { messages => \@messages });
    ok $client->join_run($run)->{messages}, "long chat: part $part of its messages";
    is $client->get_run($run)->{status}, 'success', "long chat: run $part is success";
}
my $before = $client->get_state($thread)->{values};
cmp_ok length $json->encode($before), '>', 8_500_000, 'long chat: the state is longer than a line';

# The modes of a stream; the last event of each with the state.
my @modes = qw(values updates messages-tuple tasks checkpoints debug);
my ($child) = httpd_children($server->httpd_pid);
my $resident = resident_bytes($child);
my %last;
my $answer = $client->post("/threads/$thread/runs/stream", run_body('use clock {}', stream_mode => \@modes, interrupt_before => ['tools']));
is $answer->{status}, 200, 'long chat: a turn is streamed in all modes';
while ($answer->{body} =~ /^event: (\S+)\ndata: (.*)$/mg) {
    my ($name, $data) = ($1, $2);
    next if length $data < 1_000_000;
    $name .= " $1" if $name eq 'debug' && $data =~ /"type":"(\w+)","payload"/;
    $last{$name} = $data;
}
is_deeply [ sort keys %last ], [ 'checkpoints', 'debug checkpoint', 'debug task', 'tasks', 'values' ],
    'long chat: the events with the state have all of it';
$last{$_} = $json->decode($last{$_}) for keys %last;
my $state = $client->get_state($thread)->{values};
is scalar @{ $state->{messages} }, @{ $before->{messages} } + 2, 'long chat: a turn has been added';
is_deeply $last{values}, { %{$state}, __interrupt__ => [] }, 'long chat: a breakpoint has the values with __interrupt__';
is_deeply $last{checkpoints}{values}, $state, 'long chat: checkpoints has the values';
is_deeply $last{'debug checkpoint'}{payload}{values}, $state, 'long chat: debug has the values';
is scalar @{ $last{$_->[0]}{ $_->[1] }{messages} }, @{ $state->{messages} } - 1, "long chat: $_->[0] has the input of the node"
    for [ tasks => 'input' ];
is_deeply $last{'debug task'}{payload}{input}, $last{tasks}{input}, 'long chat: debug has the input of the node';
# Events are composed and sent one after the other.
cmp_ok resident_bytes($child) - $resident, '<', memory_scale() * 8 * length($json->encode($state)),
    'long chat: the child holds a few of the events at a time';

my $resumed = $client->create_run($thread, undef, input => undef);
$client->join_run($resumed);
is $client->get_run($resumed)->{status}, 'success', 'long chat: it continues after a breakpoint';
is scalar @{ $client->get_state($thread)->{values}{messages} }, @{ $state->{messages} } + 2, 'long chat: the tool and the answer have been added';
is $client->delete("/threads/$thread")->{status}, 204, 'long chat: it can be deleted';

done_testing;
