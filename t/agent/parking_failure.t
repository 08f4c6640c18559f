# SPDX-License-Identifier: Apache-2.0
# A connection that the MPM cannot poll while its request waits: the kernel may
# refuse to add to an epoll set.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Env qw(is_sanitized root);
use AgentTest::Process qw(httpd_children);
use AgentTest::Server;
use AgentTest::Wait;
use File::Temp qw(tempdir);
use Test::More;

plan skip_all => 'httpd is preloaded with a sanitizer' if is_sanitized();

my $dir = tempdir(CLEANUP => 1);
chmod 0755, $dir;
my $library = "$dir/fail_epoll.so";
system('cc', '-shared', '-fPIC', '-o', $library, root() . '/t/lib/fail_epoll.c', '-ldl') == 0
    or die "cc failed\n";
my $flag = "$dir/fail";

my ($server, $client);
{
    local $ENV{LD_PRELOAD} = $library;
    local $ENV{AGENT_TEST_FAIL_EPOLL} = $flag;
    ($server, $client) = AgentTest::Server->start_with_client();
}
my ($child) = httpd_children($server->httpd_pid);

sub path { return AgentTest::Client::run_path($_[0]) }
sub count_sockets { return scalar grep { (readlink($_) // '') =~ /socket/ } glob "/proc/$child/fd/*" }

my $run = $client->start_run('sleep 600000');
my $join = $client->begin('GET', path($run) . '/join');
AgentTest::Client::read_until($join, qr/\r\n\r\n/);
my $before = count_sockets();

open my $file, '>', $flag or die "$flag: $!\n";
close $file;
for (1 .. 20) {
    my $socket = $client->begin('GET', path($run) . '/join');
    AgentTest::Client::read_to_end($socket);
}
pass 'parking: a connection that cannot be polled is closed';
unlink $flag;

# Connections to the database come and go.
wait_for('the sockets to be closed', sub { count_sockets() <= $before + 8 }, 20);
pass 'parking: its descriptors are closed';
my @joins = map { $client->begin('GET', path($run) . '/join') } 1 .. 20;
AgentTest::Client::read_until($_, qr/\r\n\r\n/) for @joins;
$client->post(path($run) . '/cancel');
my @ends = map { AgentTest::Client::read_to_end($_) } $join, @joins;
is scalar(grep { /\r\n0\r\n\r\n\z/ } @ends), 21,
    'parking: and nobody else\'s: the others get their answers';

undef $server;
done_testing;
