# SPDX-License-Identifier: Apache-2.0
# interrupt_before and interrupt_after: stop, look, go on.
use strict;
use warnings;
use AgentTest::Client;
use Test::More;

my $client = AgentTest::Client->new;

sub types {
    my ($thread) = @_;
    return join ' ', map { $_->{type} }
        @{ $client->get_state($thread)->{values}{messages} };
}

for my $case ([ interrupt_before => 'tools' ], [ interrupt_after => 'agent' ]) {
    my ($when, $node) = @$case;
    my $thread = $client->create_thread->{thread_id};
    my $run = $client->create_run($thread, 'use clock {}', $when => [$node]);
    my $values = $client->join_run($run);
    ok exists $values->{__interrupt__}, "$when: join says that it stopped";
    is $client->get_run($run)->{status}, 'interrupted',
        "$when: the run is interrupted";
    is $client->get("/threads/$thread")->{json}{status}, 'interrupted',
        "$when: so is the thread";
    is_deeply $client->get_state($thread)->{next}, ['tools'],
        "$when: the state says what is next";
    is types($thread), 'human ai', "$when: the tool was not called";

    my $resumed = $client->create_run($thread, undef, input => undef);
    $client->join_run($resumed);
    is $client->get_run($resumed)->{status}, 'success',
        "$when: a run without input goes on";
    is types($thread), 'human ai tool ai', "$when: from where it stopped";
    is $client->get("/threads/$thread")->{json}{status}, 'idle',
        "$when: and leaves the thread idle";
}

done_testing;
