# SPDX-License-Identifier: Apache-2.0
# Chats of many turns through a server: the first turn of a runner that does not
# have the state, from end to end. Processor time is that of the kernel's
# scheduler, as in BenchChatRunner.
package BenchChatServer;
use strict;
use warnings;
use AgentTest::Wait;
use BenchHttp qw(request);
use BenchProcess qw(cpu_ms);
use BenchRuns qw(call_200 make_threads timed_ms);
use BenchServer;
use List::Util qw(sum0);
use Time::HiRes qw(usleep);

my $ROUNDS = 5;
# A runner that ends within a second of its start has failed to start: the next
# one is delayed.
my $LIFE_USEC = 1_100_000;
my @ROLES = qw(postgres supervisor runner);
# Without the values: the whole chat would be sent with each turn.
my $TURN = '{"assistant_id":"agent","stream_mode":["updates"],"input":{"messages":[{"role":"user","content":"'
    . ('Please tell me a bit more. ' x 8) . '"}]}}';

sub turn {
    my ($client, $thread) = @_;
    my $answer = call_200($client, request('POST', "/threads/$thread/runs/stream", $TURN));
    die "a run failed: $answer->{bytes}\n" if $answer->{bytes} !~ /^event: updates/m || $answer->{bytes} =~ /^event: error/m;
    return;
}

# {role => milliseconds of processor time, ms => those that passed} of a turn. A
# process that begins or ends in it does not count.
sub measure_turn {
    my ($server, @turn) = @_;
    my $pids = $server->processes;
    my %before = map { $_ => cpu_of($_) } map { @{ $pids->{$_} } } @ROLES;
    my $ms = timed_ms(sub { turn(@turn) });
    my %used = map { my $now = cpu_of($_); ($_ => $now ? $now - $before{$_} : 0) } keys %before;
    return { ms => $ms, map { $_ => sum0 @used{ @{ $pids->{$_} } } } @ROLES };
}

# 0: it has ended.
sub cpu_of {
    my ($pid) = @_;
    return eval { cpu_ms($pid) } // 0;
}

# Ends the runner; returns when another one has executed a run.
sub replace_runner {
    my ($server, $client) = @_;
    usleep($LIFE_USEC);
    my ($old) = @{ $server->processes->{runner} };
    kill KILL => $old or die "kill $old: $!\n";
    wait_for('another runner', sub {
        my @runners = @{ $server->processes->{runner} };
        return @runners == 1 && $runners[0] != $old;
    });
    turn($client, make_threads($server, 1));
    return;
}

# The milliseconds that a turn takes longer without the state, as measure_turn: of
# the round that took the least processor time.
sub measure {
    my ($turns) = @_;
    my $server = BenchServer->new;
    my $client = BenchHttp->new($server->port);
    my ($thread) = make_threads($server, 1);
    turn($client, $thread) for 1 .. $turns;
    my $best;
    for (1 .. $ROUNDS) {
        replace_runner($server, $client);
        my ($cold, $warm) = map { measure_turn($server, $client, $thread) } 1, 2;
        my %more = map { $_ => $cold->{$_} - $warm->{$_} } @ROLES, 'ms';
        $best = \%more if !$best || sum0(@more{@ROLES}) < sum0(@{$best}{@ROLES});
    }
    $server->stop;
    return $best;
}

1;
