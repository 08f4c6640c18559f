# SPDX-License-Identifier: Apache-2.0
# The end of a run: its final status can be read before any response about it
# ends. The test plays the worker; the server's own supervisor has no runner.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../sql/lib";
use AgentSQL::Play;
use AgentSQL::Session;
use AgentTest::Client qw(read_to_end read_until run_path);
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

# Timeout 2: a heartbeat each second.
my ($server, $client) = AgentTest::Server->start_with_client(
    'AgentRunner /bin/false', 'Timeout 2', 'AsyncRequestWorkerFactor 20');
my $session = AgentSQL::Session->new({});
my $play = AgentSQL::Play->new($session);
my $worker = $play->worker(node => 'test', lease_sec => 3600);
my $notifier = AgentSQL::Session->new({});

# The heartbeats of streams and of joins.
my %HEARTBEAT = (stream => qr/: heartbeat\n/, join => qr/\r\n1\r\n\n\r\n/);

sub notify {
    my ($run) = @_;
    $notifier->query("select agent.notify_runs('{$run->{run_id}!,$run->{thread_id}}')");
    return;
}

sub event { return AgentSQL::Play::event(@_) }
sub status_of { return $client->get_run($_[0])->{status} }

# A run that this worker executes, and all responses that wait for it: the
# request that creates it, and those that join it.
sub begin_run {
    my $thread = $client->new_thread;
    my %waiting = ('POST runs/stream' => $client->begin(POST => "/threads/$thread/runs/stream",
        { assistant_id => 'agent', input => {}, stream_mode => 'custom' }));
    my $claim;
    wait_for('a run', sub { ($claim) = $play->claim($worker) });
    my $run = { thread_id => $thread, run_id => $claim->{run_id} };
    my $path = run_path($run);
    $waiting{"GET $_->[0]"} = $client->begin(GET => $_->[1])
        for [ 'thread stream' => "/threads/$thread/stream" ],
        map { [ "run $_" => "$path/$_" ], [ "stateless $_" => "/runs/$run->{run_id}/$_" ] } qw(stream join);
    return ($claim, $run, \%waiting);
}

# Reads a response until it has sent so many heartbeats; dies when it ends.
sub read_heartbeats {
    my ($what, $socket, $count) = @_;
    my $one = $HEARTBEAT{ $what =~ /(stream|join)\z/ ? $1 : '' };
    return read_until($socket, qr/(?:$one.*?){$count}/s);
}

my $ERROR = { error => 'SomeError', message => 'of a graph' };
for my $status (qw(success error timeout interrupted)) {
    subtest "end of a run: no response ends before status $status is committed" => sub {
        my ($claim, $run, $waiting) = begin_run();
        my $has_error = $status eq 'error' || $status eq 'timeout';
        $client->post(run_path($run) . '/cancel') if $status eq 'interrupted';
        $play->save($worker, event($claim, 0, 'metadata', {}),
            event($claim, 1, $has_error ? ('error', $ERROR) : ('custom', 1)));
        notify($run);
        for my $what (sort keys %{$waiting}) {
            read_heartbeats($what, $waiting->{$what}, 1);
            pass "end of a run: $what does not end after the last event";
        }
        is status_of($run), 'pending', "end of a run: a run is pending before it ends in $status";

        $session->query('begin');
        $play->save($worker, AgentSQL::Play::finish($claim, $status, $has_error ? $ERROR : undef));
        notify($run);
        for my $what (sort keys %{$waiting}) {
            unlike read_heartbeats($what, $waiting->{$what}, 2), qr/run_done/,
                "end of a run: $what does not end before $status is committed";
        }
        is status_of($run), 'pending', "end of a run: a run is pending until $status is committed";

        $session->query('commit');
        notify($run);
        for my $what (sort keys %{$waiting}) {
            $what eq 'GET thread stream'
                ? read_until($waiting->{$what}, qr/event: run_done/)
                : read_to_end($waiting->{$what});
            is status_of($run), $status, "end of a run: status $status can be read when $what ends";
        }
    };
}

undef $server;
done_testing;
