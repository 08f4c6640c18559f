# SPDX-License-Identifier: Apache-2.0
# Requests that wait under the prefork MPM: each holds its process.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Env qw(root slurp);
use AgentTest::Process qw(descendants_of is_alive);
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

sub path { return AgentTest::Client::run_path($_[0]) }

# A changed copy of a configuration file, in the server's folder.
sub write_changed {
    my ($server, $name, $change) = @_;
    local $_ = slurp(root() . "/$name");
    $change->();
    my $file = "$server->{dir}/conf/" . ($name =~ s{/}{-}gr);
    open my $out, '>', $file or die "$file: $!\n";
    print {$out} $_;
    close $out;
    return $file;
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
    open my $out, '>', $server->{conf} or die "$server->{conf}: $!\n";
    print {$out} $conf, "StartServers 8\nMinSpareServers 1\nMaxRequestWorkers 8\n"
        . "ServerLimit 24\nAgentDrainTimeout 1\n";
    close $out;
    $server->start;
    return $server;
}

my $server = start_prefork();
my $client = AgentTest::Client->new(url => $server->url);
my $run = $client->start_run('sleep 600000');
my @joins = map { $client->begin('GET', path($run) . '/join') } 1 .. 2;
my $stream = $client->begin('GET', path($run) . '/stream');
AgentTest::Client::read_until($_, qr/\r\n\r\n/) for @joins, $stream;
is $client->get('/ok')->{status}, 200, 'prefork: other requests are answered while requests wait';

# The supervisor is in a group of its own.
my $parent = $server->httpd_pid;
my @children = grep { getpgrp($_) == getpgrp($parent) } descendants_of($parent);
kill TERM => @children;
AgentTest::Client::read_to_end($_) for @joins, $stream;
wait_for('the children to end', sub { !grep { is_alive($_) } @children });
pass 'prefork: a child ends on SIGTERM while its request waits';

wait_for('new children', sub { eval { $client->get('/ok')->{status} == 200 } });
$run = $client->start_run('sleep 600000');
my $join = $client->begin('GET', path($run) . '/join');
my $thread_stream = $client->begin('GET', "/threads/$run->{thread_id}/stream");
AgentTest::Client::read_until($_, qr/\r\n\r\n/) for $join, $thread_stream;
$server->graceful;
unlike AgentTest::Client::read_to_end($thread_stream), qr/\r\n0\r\n\r\n\z/,
    'prefork: a graceful restart cuts streams';
unlike AgentTest::Client::read_to_end($join), qr/\r\n0\r\n\r\n\z/,
    'prefork: joins are cut when AgentDrainTimeout is over';
is $client->get('/ok')->{status}, 200, 'prefork: the new children serve requests';

undef $server;
done_testing;
