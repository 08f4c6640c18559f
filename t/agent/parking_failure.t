# SPDX-License-Identifier: Apache-2.0
# The MPM cannot poll a connection whose request waits: epoll_ctl() fails.
use strict;
use warnings;
use AgentTest::Client qw(read_to_end run_path);
use AgentTest::Env qw(is_sanitized root slurp write_file);
use AgentTest::Process qw(httpd_children);
use AgentTest::Server;
use AgentTest::Wait;
use File::Temp qw(tempdir);
use Test::More;

plan skip_all => 'httpd is preloaded with a sanitizer' if is_sanitized();

my $dir = tempdir(CLEANUP => 1);
chmod 0755, $dir;
my $library = "$dir/fail_epoll.so";
system('cc', '-shared', '-fPIC', '-o', $library, root() . '/t/agent/fail_epoll.c', '-ldl') == 0
    or die "cc failed\n";
my $flag = "$dir/fail";

sub start_server {
    local $ENV{LD_PRELOAD} = $library;
    local $ENV{AGENT_TEST_FAIL_EPOLL} = $flag;
    return AgentTest::Server->start_with_client();
}

# The number of eventfds in epoll sets of the only child.
sub count_polled {
    my ($server) = @_;
    my ($child) = httpd_children($server->httpd_pid);
    my @sets = grep { (readlink($_) // '') =~ /eventpoll/ } glob "/proc/$child/fd/*";
    my @polled = map { slurp(s{/fd/}{/fdinfo/}r) =~ /^tfd:\s+(\d+)/mg } @sets;
    return scalar grep { (readlink("/proc/$child/fd/$_") // '') =~ /eventfd/ } @polled;
}

# The connections of a request that waits, and of the same one made when the MPM
# can poll no more.
sub begin_twice {
    my ($server, $begin) = @_;
    my $before = count_polled($server);
    my $waiting = $begin->();
    wait_for('the MPM to poll the request', sub { count_polled($server) > $before });
    write_file($flag);
    my $refused = $begin->();
    my $answer = read_to_end($refused);
    unlink $flag;
    return ($waiting, $answer);
}

subtest 'parking: a join whose connection cannot be polled' => sub {
    my ($server, $client) = start_server();
    my $run = $client->start_run('sleep 600000');
    my ($join, $answer) = begin_twice($server,
        sub { $client->begin('GET', run_path($run) . '/join') });
    like $answer, qr{\AHTTP/1\.1 200 }, 'parking: a join is accepted before its connection is polled';
    unlike $answer, qr/\r\n0\r\n\r\n\z/,
        'parking: a connection that cannot be polled is cut';
    # httpd stops such a child when its requests have ended.
    wait_for('a new child', sub { eval { $client->post(run_path($run) . '/cancel')->{status} } });
    like read_to_end($join), qr/\r\n0\r\n\r\n\z/,
        'parking: other waiting requests of the same child are answered';
};

subtest 'parking: a body whose connection cannot be polled' => sub {
    my ($server, $client) = start_server();
    my ($slow, $answer) = begin_twice($server, sub {
        my $socket = $client->connection;
        syswrite $socket, "POST /threads HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            . "Content-Length: 2\r\n\r\n";
        return $socket;
    });
    is $answer, '', 'parking: a connection that cannot be polled for its body is cut';
    syswrite $slow, '{}';
    like read_to_end($slow), qr{\AHTTP/1\.1 200 },
        'parking: other bodies of the same child are received';
};

done_testing;
