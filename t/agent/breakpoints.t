# SPDX-License-Identifier: Apache-2.0
# interrupt_before and interrupt_after: stop, read the state, resume.
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
    ok exists $values->{__interrupt__}, "$when: join returns __interrupt__";
    is $client->get_run($run)->{status}, 'interrupted',
        "$when: the run is interrupted";
    is $client->get("/threads/$thread")->{json}{status}, 'interrupted',
        "$when: the thread is interrupted";
    is_deeply $client->get_state($thread)->{next}, ['tools'],
        "$when: next is the tools node";
    is types($thread), 'human ai', "$when: the tool has not been called";

    my $resumed = $client->create_run($thread, undef, input => undef);
    $client->join_run($resumed);
    is $client->get_run($resumed)->{status}, 'success',
        "$when: a run without input resumes";
    is types($thread), 'human ai tool ai', "$when: the resumed run calls the tool";
    is $client->get("/threads/$thread")->{json}{status}, 'idle',
        "$when: the thread is idle after the resumed run";
}

done_testing;
