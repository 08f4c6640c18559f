# SPDX-License-Identifier: Apache-2.0
# Requests that wait under the prefork MPM: each holds its process.
use strict;
use warnings;
use AgentTest::Client qw(read_to_end read_until run_path);
use AgentTest::Database;
use AgentTest::Env qw(root slurp write_file);
use AgentTest::Process qw(httpd_children is_alive);
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

# A changed copy of a configuration file, in the server's folder.
sub write_changed {
    my ($server, $name, $change) = @_;
    local $_ = slurp(root() . "/$name");
    $change->();
    return write_file("$server->{dir}/conf/" . ($name =~ s{/}{-}gr), $_);
}

sub start_prefork {
    my $server = AgentTest::Server->new;
    my $modules = write_changed($server, 'conf/quickstart/modules.conf',
        sub { s/mpm_event/mpm_prefork/g });
    my $frame = write_changed($server, 't/conf/httpd.conf', sub {
        s{"\$\{ROOT\}/conf/quickstart/modules.conf"}{"$modules"};
        s/^(?:Threads|M\w+SpareThreads|AsyncRequest|ServerLimit|StartServers|MaxRequestWorkers).*//mg;
    });
    my $conf = slurp($server->{conf}) =~ s{"\$\{ROOT\}/t/conf/httpd.conf"}{"$frame"}r;
    write_file($server->{conf}, $conf, "StartServers 8\nMinSpareServers 1\nMaxRequestWorkers 8\n"
        . "ServerLimit 24\nAgentDrainTimeout 1\n");
    $server->start;
    return $server;
}

my $server = start_prefork();
my $client = AgentTest::Client->new(url => $server->url);
my $run = $client->start_run('sleep 600000');
my @joins = map { $client->begin('GET', run_path($run) . '/join') } 1 .. 2;
my $stream = $client->begin('GET', run_path($run) . '/stream');
read_until($_, qr/\r\n\r\n/) for @joins, $stream;
is $client->get('/ok')->{status}, 200, 'prefork: other requests are answered while requests wait';

# A request that is within a statement, and the lock that it waits for.
sub begin_statement {
    my $lock = hold_lock('lock table agent.threads');
    my $read = $client->begin('GET', "/threads/$run->{thread_id}");
    wait_for('the statement', sub {
        sql("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%get_thread(%'") == 1
    });
    return ($read, $lock);
}

# One of the children is within a statement: it ends when it has the answer. Were
# its connection of mod_dbd still in use, APR's resource list would abort it.
my @children = httpd_children($server->httpd_pid);
my ($read, $lock) = begin_statement();
kill TERM => @children;
close $lock;
read_to_end($_) for @joins, $stream, $read;
wait_for('the children to end', sub { !grep { is_alive($_) } @children });
pass 'prefork: a child ends on SIGTERM while its request waits, or is within a statement';

wait_for('new children', sub { eval { $client->get('/ok')->{status} == 200 } });
@children = httpd_children($server->httpd_pid);
($read, $lock) = begin_statement();
kill HUP => $server->httpd_pid;
wait_for('the restart', sub { grep { !is_alive($_) } @children });
close $lock;
read_to_end($read);
wait_for('the children to end', sub { !grep { is_alive($_) } @children });
pass 'prefork: a child that is within a statement ends on a restart';

wait_for('new children', sub { eval { $client->get('/ok')->{status} == 200 } });
$run = $client->start_run('sleep 600000');
my $join = $client->begin('GET', run_path($run) . '/join');
my $thread_stream = $client->begin('GET', "/threads/$run->{thread_id}/stream");
read_until($_, qr/\r\n\r\n/) for $join, $thread_stream;
$server->graceful;
unlike read_to_end($thread_stream), qr/\r\n0\r\n\r\n\z/,
    'prefork: a graceful restart cuts streams';
unlike read_to_end($join), qr/\r\n0\r\n\r\n\z/,
    'prefork: joins are cut when AgentDrainTimeout is over';
is $client->get('/ok')->{status}, 200, 'prefork: the new children serve requests';

undef $server;
done_testing;
