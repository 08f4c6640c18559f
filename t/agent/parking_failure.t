# SPDX-License-Identifier: Apache-2.0
# The MPM cannot poll a connection whose request waits: epoll_ctl() fails.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Env qw(is_sanitized root slurp);
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
sub path { return AgentTest::Client::run_path($_[0]) }

# The number of eventfds in epoll sets of the only child.
sub count_polled {
    my ($child) = httpd_children($server->httpd_pid);
    my @sets = grep { (readlink($_) // '') =~ /eventpoll/ } glob "/proc/$child/fd/*";
    my @polled = map { slurp(s{/fd/}{/fdinfo/}r) =~ /^tfd:\s+(\d+)/mg } @sets;
    return scalar grep { (readlink("/proc/$child/fd/$_") // '') =~ /eventfd/ } @polled;
}

my $run = $client->start_run('sleep 600000');
my $before = count_polled();
my $join = $client->begin('GET', path($run) . '/join');
AgentTest::Client::read_until($join, qr/\r\n\r\n/);
wait_for('the MPM to poll the join', sub { count_polled() > $before });

open my $file, '>', $flag or die "$flag: $!\n";
close $file;
my $refused = $client->begin('GET', path($run) . '/join');
my $answer = AgentTest::Client::read_to_end($refused);
unlink $flag;
unlike $answer, qr/\r\n0\r\n\r\n\z/,
    'parking: a connection that cannot be polled is cut';

# httpd stops such a child when its requests have ended.
wait_for('a new child', sub { eval { $client->post(path($run) . '/cancel')->{status} } });
like AgentTest::Client::read_to_end($join), qr/\r\n0\r\n\r\n\z/,
    'parking: other waiting requests of the same child are answered';

undef $server;
done_testing;
