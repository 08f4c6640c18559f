# SPDX-License-Identifier: Apache-2.0
# httpd -X: a single httpd process, for debuggers.
use strict;
use warnings;
use AgentTest::Client qw(run_path);
use AgentTest::Postgres;
use AgentTest::Process qw(descendants_of is_alive);
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

my $server = AgentTest::Server->new;
AgentTest::Postgres->shared->make_database($server->{own_database});
my $pid = fork // die "fork: $!\n";
if (!$pid) {
    open STDOUT, '>', '/dev/null';
    open STDERR, '>&', \*STDOUT;
    exec AgentTest::Server::program(), '-f', $server->{conf}, '-X'
        or CORE::exit(127);
}
wait_for('httpd to write its pid', sub { $server->httpd_pid });
my $client = AgentTest::Client->new(url => $server->url);
wait_for('httpd to answer', sub { eval { $client->get('/ok')->{status} == 200 } });

my $run = $client->start_run('hello');
is $client->join_run($run)->{messages}[-1]{type}, 'ai', 'httpd -X: a run is executed and joined';
like $client->get(run_path($run) . '/stream')->{body},
    qr/event: values/, 'httpd -X: a run is streamed';

my @started = descendants_of($server->httpd_pid);
ok scalar @started, 'httpd -X: supervisor and runners are processes of their own';
kill TERM => $server->httpd_pid;
waitpid $pid, 0;
wait_for('supervisor and runners to end', sub { !grep { is_alive($_) } @started });
pass 'httpd -X: supervisor and runners end with httpd';

undef $server;
done_testing;
