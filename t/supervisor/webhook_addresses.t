# SPDX-License-Identifier: Apache-2.0
# Webhooks: the addresses that a supervisor calls, and those that it must not.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Env qw(free_port);
use AgentTest::Receiver;
use AgentTest::Wait;
use File::Temp qw(tempdir);
use IO::Socket::INET;
use POSIX ();
use Test::More;
use TestSupervisor;
use TestWebhook;

my $pg = start_cluster();

# A command that executes another one in a separate network, in which this host
# has the address; empty without the right to create one.
sub within_network {
    my ($address) = @_;
    my @within = ('unshare', '-n', 'sh', '-c',
        "ip link set lo up && ip address add $address dev lo && exec \"\$@\"", 'sh');
    return system('unshare -n ip link >/dev/null 2>&1') == 0 ? @within : ();
}

behaviour 'addresses: the public address of this host is denied too' => sub {
    my @within = within_network('8.8.8.8/32');
    plan skip_all => 'only root can create a network' if !@within;
    my $sv = start_sender($pg, {}, within => \@within);
    wait_failed(hooked_run($sv, 'http://8.8.8.8:1/'), qr/\Arefused: expected a URL whose host this server may call/);
    wait_failed(hooked_run($sv, 'http://a.8-8-8-8.test:1/'), qr/\Arefused: the address 8\.8\.8\.8 may not be called/);
    $sv->stop;
    # A permitted address: the attempt fails in the empty network, and is repeated.
    $sv = start_sender($pg, { allow => ['8.8.8.8'] }, within => \@within);
    wait_failed(hooked_run($sv, 'http://8.8.8.8:1/'), qr/connect/i);
    $sv->stop;
};

behaviour 'addresses: deny takes precedence over allow' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $sv = start_sender($pg, { allow => ['127.0.0.0/8', 'localhost'], deny => ['127.0.0.1'] });
    for my $host ('127.0.0.1', 'localhost') {
        wait_failed(hooked_run($sv, "http://$host:" . $receiver->port . '/'), qr/\Arefused: /);
    }
    is $receiver->connections, 0, 'no connection is made';
    $sv->stop;
};

behaviour 'addresses: private ones are denied' => sub {
    my $canary = AgentTest::Receiver->new;
    my $port = $canary->port;
    my $sv = start_sender($pg, { allow => [] });
    # The run may have been accepted by a server with other rules.
    for my $host (qw(127.0.0.1 localhost 2130706433 0x7f.1 127.1 0 0.0.0.0 [::1] [::ffff:127.0.0.1])) {
        wait_failed(hooked_run($sv, "http://$host:$port/"), qr/\Arefused: expected a URL whose host this server may call\z/);
    }
    for my $host (qw(a.127-0-0-1.test a.127-8-8-8.test a.10-0-0-1.test a.169-254-169-254.test a.0-0-0-0.test
        a.100-64-0-1.test 127-0-0-1.10-0-0-1.192-168-0-1.test)) {
        my ($first) = reverse map { tr/-/./r } $host =~ /(\d+-\d+-\d+-\d+)/g;
        wait_failed(hooked_run($sv, "http://$host:$port/"),
            qr/\Arefused: the address \Q$first\E may not be called \(AgentWebhookAllow\)\z/);
    }
    is $canary->connections, 0, 'no connection is made';
    $sv->stop;
};

behaviour 'addresses: an allowed host may have any address' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $port = $receiver->port;
    my $sv = start_sender($pg, { allow => ['mine.127-0-0-1.test'] });
    wait_delivered(hooked_run($sv, "http://MINE.127-0-0-1.test:$port/"));
    wait_failed(hooked_run($sv, "http://not.127-0-0-1.test:$port/"), qr/127\.0\.0\.1 may not be called/);
    is $receiver->connections, 1, 'the allowed host alone is called';
    $sv->stop;
};

behaviour 'addresses: of several only the permitted ones are called' => sub {
    my $receiver = AgentTest::Receiver->new;
    my $port = $receiver->port;
    my $sv = start_sender($pg, { allow => ['127.0.0.0/8'] });
    wait_delivered(hooked_run($sv, "http://a.10-0-0-1.127-0-0-1.test:$port/"));
    is $receiver->connections, 1, 'the permitted address is called';
    $sv->stop;
};

behaviour 'addresses: ports that are not configured are denied' => sub {
    my $canary = AgentTest::Receiver->new;
    my $sv = start_sender($pg, { ports => [ 80, '8000-8001' ] });
    wait_failed(hooked_run($sv, $canary->url), qr/expected a URL with one of the ports 80, 8000-8001\z/);
    is $canary->connections, 0, 'no connection is made';
    $sv->stop;
};

behaviour 'proxy: the one of the environment is not used' => sub {
    my $proxy = AgentTest::Receiver->new;
    my $receiver = AgentTest::Receiver->new;
    local @ENV{qw(http_proxy https_proxy all_proxy ALL_PROXY)} = ($proxy->url) x 4;
    my $sv = start_sender($pg);
    wait_delivered(hooked_run($sv, $receiver->url));
    is $proxy->connections, 0, 'no connection to the proxy is made';
    $sv->stop;
};

behaviour 'TLS: an untrusted certificate is refused' => sub {
    my $dir = tempdir('/tmp/agent-test-tls.XXXXXX', CLEANUP => 1);
    my $port = free_port();
    my @key = ('-keyout', "$dir/key", '-out', "$dir/certificate");
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        open STDIN, '<', '/dev/null';
        open $_, '>', "$dir/output" for \*STDOUT, \*STDERR;
        system(qw(openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=mine.127-0-0-1.test), @key) == 0
            and exec qw(openssl s_server -www -accept), "127.0.0.1:$port", '-key', "$dir/key",
            '-cert', "$dir/certificate";
        POSIX::_exit(127);
    }
    wait_for('a TLS server', sub { IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") });
    my $sv = start_sender($pg);
    wait_failed(hooked_run($sv, "https://mine.127-0-0-1.test:$port/"), qr/certificate/i);
    $sv->stop;
    kill KILL => $pid;
    waitpid $pid, 0;
};

done_testing;
