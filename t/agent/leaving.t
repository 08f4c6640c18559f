# SPDX-License-Identifier: Apache-2.0
# Clients that leave over HTTP/2, or over TLS without closing TCP: the server
# notices it, and cancels their runs if asked to, before it has anything to send.
use strict;
use warnings;
use AgentTest::Client qw(read_to_end read_until run_path);
use AgentTest::Env qw(root);
use AgentTest::Server;
use AgentTest::Tls;
use AgentTest::Wait;
use Cpanel::JSON::XS;
use IO::Select;
use IPC::Open2 qw(open2);
use Test::More;

# A client in another process: {stdin} takes commands, {stdout} has its
# output.
sub start_client {
    my (@words) = @_;
    my $pid = open2(my $stdout, my $stdin, 'node', root() . '/t/agent/leaving-client.mjs', @words);
    $stdin->autoflush;
    return { pid => $pid, stdin => $stdin, stdout => $stdout };
}

sub send_command { my ($process, $line) = @_; print { $process->{stdin} } "$line\n"; return }

sub end_client {
    my ($process, $signal) = @_;
    kill $signal => $process->{pid};
    waitpid $process->{pid}, 0;
    close $process->{$_} for qw(stdin stdout);
    return;
}

# Requests that wait without parking hold a thread each. A request whose client has
# left may do so for a moment longer, while the next one needs a thread.
my @THREADS = ('ThreadLimit 16', 'ThreadsPerChild 16', 'MaxSpareThreads 16', 'MaxRequestWorkers 16');

# The head of a response that waits: a refusal would not cancel the run.
sub read_head {
    my ($process) = @_;
    my $head = read_until($process->{stdout}, qr/\r\n\r\n/);
    die "refused: $head\n" if $head !~ m{\AHTTP/1\.1 200 };
    return;
}

# Whether the run of a client that leaves ends before the server writes to a stream
# that was opened earlier: heartbeats are sent in the order in which the waits began,
# so without one the server has noticed the client by itself. $leaves is called with
# the path of the run; it returns the client if its connection is still open.
sub ends_without_heartbeat {
    my ($client, $leaves) = @_;
    my $live = $client->start_run('sleep 600000');
    my $earlier = $client->begin('GET', run_path($live) . '/stream');
    read_until($earlier, qr/event: metadata/);
    my $run = $client->start_run('sleep 600000');
    my $left = $leaves->(run_path($run));
    wait_for('the run to end', sub { $client->get_run($run)->{status} eq 'interrupted' });
    end_client($left, 'TERM') if $left;
    my $is_silent = 1;
    while (IO::Select->new($earlier)->can_read(0)) {
        sysread $earlier, my $bytes, 65_536 or last;
        $is_silent = 0 if $bytes =~ /heartbeat/;
    }
    $client->post(run_path($live) . '/cancel');
    read_to_end($earlier);
    return $is_silent;
}

# On a busy machine a heartbeat may precede it by chance, but not each time.
sub is_noticed {
    my ($client, $title, $leaves) = @_;
    ok wait_for('the server to notice a client before a heartbeat',
        sub { ends_without_heartbeat($client, $leaves) }), $title;
    return;
}

my @HTTP2 = ('LoadModule http2_module "${MODULES}/mod_http2.so"', 'Protocols h2c http/1.1');

for my $what (qw(join stream)) {
    subtest "HTTP/2: a client of a $what that leaves is noticed" => sub {
        my ($server, $client) = AgentTest::Server->start_with_client(@HTTP2, @THREADS);
        my $begin = sub {
            my ($path) = @_;
            my $process = start_client('http2', $server->url);
            send_command($process, "get waits $path/$what?cancel_on_disconnect=1");
            read_until($process->{stdout}, qr/^waits 200\n/m);
            return $process;
        };
        is_noticed($client, "HTTP/2: a client that resets the stream of a $what is noticed", sub {
            my $process = $begin->(@_);
            send_command($process, 'reset waits');
            send_command($process, 'get next /ok');
            read_until($process->{stdout}, qr/^next 200\n/m);
            return $process;
        });
        is_noticed($client, "HTTP/2: a client that closes the connection of a $what is noticed", sub {
            end_client($begin->(@_), 'KILL');
            return;
        });
    };
}

sub get_request {
    my ($path) = @_;
    return "GET $path HTTP/1.1\r\nHost: localhost\r\n\r\n";
}

my $JSON = Cpanel::JSON::XS->new->allow_nonref;
my $LAST_CHUNK = qr/\r\n0\r\n\r\n/;

sub ask {
    my ($process, @paths) = @_;
    return send_command($process, 'send ' . $JSON->encode(join '', map { get_request($_) } @paths));
}

for my $parking (qw(On Off)) {
    for my $version (qw(TLSv1.2 TLSv1.3)) {
        subtest "$version: a client that sends close_notify is noticed, AgentParking $parking" => sub {
            my $tls = AgentTest::Tls->new;
            my ($server, $client) = AgentTest::Server->start_with_client($tls->lines,
                "AgentParking $parking", @THREADS);
            for my $what (qw(join stream)) {
                is_noticed($client, "$version: a client that sends close_notify during a $what is noticed, AgentParking $parking", sub {
                    my ($path) = @_;
                    my $process = start_client('tls', $tls->url, $version);
                    ask($process, "$path/$what?cancel_on_disconnect=true");
                    read_head($process);
                    send_command($process, 'notify');
                    return $process;
                });
            }
            is_noticed($client, "$version: a client that sends close_notify with its request is noticed, AgentParking $parking", sub {
                my ($path) = @_;
                my $process = start_client('tls', $tls->url, $version);
                send_command($process, 'leave ' . $JSON->encode(
                    get_request("$path/join?cancel_on_disconnect=true")));
                return $process;
            });
            my $run = $client->start_run('sleep 600000');
            my $process = start_client('tls', $tls->url, $version);
            ask($process, run_path($run) . '/join?cancel_on_disconnect=true', '/info');
            read_head($process);
            ask($process, '/info');
            $client->post(run_path($run) . '/cancel');
            like read_until($process->{stdout}, qr/"server":"mod_agent".*"server":"mod_agent"/s),
                qr/"messages".*$LAST_CHUNK/s, "$version: a client that pipelines requests receives all answers, AgentParking $parking";
            end_client($process, 'TERM');
        };
    }
}

# openssl's own client, which sends a KeyUpdate on command.
sub start_s_client {
    my ($port) = @_;
    my $pid = open2(my $stdout, my $stdin, 'openssl', 's_client', '-tls1_3', '-connect',
        "127.0.0.1:$port", '-verify_quiet');
    $stdin->autoflush;
    return { pid => $pid, stdin => $stdin, stdout => $stdout };
}

subtest 'TLSv1.3: a client that sends KeyUpdate has not left' => sub {
    my $tls = AgentTest::Tls->new;
    my ($server, $client) = AgentTest::Server->start_with_client($tls->lines,
        'Timeout 2', 'RequestReadTimeout body=1');
    my $run = $client->start_run('sleep 600000');
    my $process = start_s_client($tls->port);
    my $request = get_request(run_path($run) . '/stream?cancel_on_disconnect=true');
    print { $process->{stdin} } $request;
    read_until($process->{stdout}, qr/event: metadata/);
    for (1 .. 3) {
        send_command($process, 'K');
        read_until($process->{stdout}, qr/: heartbeat/);
    }
    is $client->get_run($run)->{status}, 'pending',
        'TLSv1.3: a client that sends KeyUpdate while it waits has not left';
    $client->post(run_path($run) . '/cancel');
    read_until($process->{stdout}, qr{^0\r\n\r\n}m);
    print { $process->{stdin} } get_request('/info');
    like read_until($process->{stdout}, qr/"server":"mod_agent"/), qr{HTTP/1\.1 200},
        'TLSv1.3: the connection is kept after KeyUpdate';
    end_client($process, 'TERM');
};

done_testing;
