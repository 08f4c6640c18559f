# SPDX-License-Identifier: Apache-2.0
# A run whose process is lost after it has reached a breakpoint, before its end: the next attempt stops there, in both
# languages, and goes on when a client continues the thread.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/faulty";
use AgentTest::Applications qw(serve_applications);
use AgentTest::Client;
use AgentTest::Server;
use AgentTest::Wait;
use FaultyJob qw(application start_job release executed);
use Test::More;

my @LANGUAGES = qw(javascript python);
my %folder = map { $_ => application($_, 'exits', $_ => 'graph') } @LANGUAGES;
my $server = AgentTest::Server->new(config => serve_applications(%folder));
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

for my $language (@LANGUAGES) {
    for my $breakpoint ([ interrupt_before => ['danger'] ], [ interrupt_after => ['plan'] ]) {
        my $title = "$language, $breakpoint->[0]";
        my $run = start_job($client, $language, 'go', @{$breakpoint});
        my $next = sub { join ' ', @{ $client->get_state($run->{thread_id})->{next} // [] } };
        wait_for('the state of the breakpoint', sub { $next->() eq 'danger' });
        release($run);
        $client->join_run($run);
        is $client->get_run($run)->{status}, 'success', "$title: a run whose process is lost at a breakpoint ends with success";
        is executed($run), 'plan', "$title: no node after the breakpoint is executed";
        is $client->get("/threads/$run->{thread_id}")->{json}{status}, 'interrupted', "$title: the thread waits at the breakpoint";
        is $client->post("/threads/$run->{thread_id}/runs/wait", { assistant_id => $language, input => undef, @{$breakpoint} })->{status}, 200,
            "$title: the thread is continued";
        is executed($run), 'plan danger', "$title: the next run passes the breakpoint";
        is $next->(), '', "$title: the thread has ended";
    }
}

undef $server;
done_testing;
