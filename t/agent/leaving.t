# SPDX-License-Identifier: Apache-2.0
# Clients that leave without closing their TCP connection, or behind HTTP/2: the
# run of one that wanted it cancelled is cancelled, and its place is free, before
# the server has anything to send to it.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Env qw(root);
use AgentTest::Server;
use AgentTest::Tls;
use AgentTest::Wait;
use IO::Select;
use IPC::Open2 qw(open2);
use JSON::PP;
use Test::More;

sub path { return AgentTest::Client::run_path($_[0]) }

sub read_until { return AgentTest::Client::read_until(@_) }

# A client in a process of its own: {say} it what to do, {hears} what it prints.
sub start_client {
    my (@words) = @_;
    my $pid = open2(my $hears, my $say, 'node', root() . '/t/agent/leaving-client.mjs', @words);
    $say->autoflush;
    return { pid => $pid, say => $say, hears => $hears };
}

sub order { my ($who, $line) = @_; print { $who->{say} } "$line\n"; return }

sub end_client {
    my ($who, $signal) = @_;
    kill $signal => $who->{pid};
    waitpid $who->{pid}, 0;
    close $who->{$_} for qw(say hears);
    return;
}

# Whether $leaves ends the run before the server writes to a stream that was
# opened earlier than its client's: heartbeats are sent in the order in which the
# waits began, so no heartbeat can have been what showed that the client has left.
# A client that $leaves returns has not closed its connection.
sub ends_without_heartbeat {
    my ($client, $leaves) = @_;
    my $live = $client->start_run('sleep 600000');
    my $earlier = $client->begin('GET', path($live) . '/stream');
    read_until($earlier, qr/event: metadata/);
    my $run = $client->start_run('sleep 600000');
    my $left = $leaves->(path($run));
    wait_for('the run to end', sub { $client->get_run($run)->{status} eq 'interrupted' });
    end_client($left, 'TERM') if $left;
    my $is_silent = 1;
    while (IO::Select->new($earlier)->can_read(0)) {
        sysread $earlier, my $bytes, 65_536 or last;
        $is_silent = 0 if $bytes =~ /heartbeat/;
    }
    close $earlier;
    $client->post(path($live) . '/cancel');
    return $is_silent;
}

# On a busy machine a heartbeat may come first by chance, but not each time.
sub is_seen {
    my ($client, $title, $leaves) = @_;
    ok wait_for('a client to be seen first', sub { ends_without_heartbeat($client, $leaves) }),
        $title;
    return;
}

my @HTTP2 = ('LoadModule http2_module "${MODULES}/mod_http2.so"', 'Protocols h2c http/1.1');

for my $what (qw(join stream)) {
    subtest "HTTP/2, GET .../$what" => sub {
        my ($server, $client) = AgentTest::Server->start_with_client(@HTTP2);
        my $begin = sub {
            my ($path) = @_;
            my $who = start_client('http2', $server->url);
            order($who, "get waits $path/$what?cancel_on_disconnect=1");
            read_until($who->{hears}, qr/^waits 200\n/m);
            return $who;
        };
        is_seen($client, 'HTTP/2: a client that resets its stream is seen to leave', sub {
            my $who = $begin->(@_);
            order($who, 'reset waits');
            order($who, 'get next /ok');
            read_until($who->{hears}, qr/^next 200\n/m);
            return $who;
        });
        is_seen($client, 'HTTP/2: so is one whose connection ends', sub {
            end_client($begin->(@_), 'KILL');
            return;
        });
    };
}

sub get_request {
    my ($path) = @_;
    return "GET $path HTTP/1.1\r\nHost: localhost\r\n\r\n";
}

my $JSON = JSON::PP->new->allow_nonref;
my $ENDS = qr/\r\n0\r\n\r\n/;

sub ask { my ($who, @paths) = @_;
    return order($who, 'send ' . $JSON->encode(join '', map { get_request($_) } @paths)) }

for my $parking (qw(On Off)) {
    for my $version (qw(TLSv1.2 TLSv1.3)) {
        subtest "$version, AgentParking $parking" => sub {
            my $tls = AgentTest::Tls->new;
            my ($server, $client) = AgentTest::Server->start_with_client($tls->lines,
                "AgentParking $parking");
            for my $what (qw(join stream)) {
                is_seen($client, "a client that ends TLS but not TCP has left its $what", sub {
                    my ($path) = @_;
                    my $who = start_client('tls', $tls->url, $version);
                    ask($who, "$path/$what?cancel_on_disconnect=true");
                    read_until($who->{hears}, qr/\r\n\r\n/);
                    order($who, 'notify');
                    return $who;
                });
            }
            is_seen($client, 'also when it does so with its request', sub {
                my ($path) = @_;
                my $who = start_client('tls', $tls->url, $version);
                order($who, 'leave ' . $JSON->encode(
                    get_request("$path/join?cancel_on_disconnect=true")));
                return $who;
            });
            my $run = $client->start_run('sleep 600000');
            my $who = start_client('tls', $tls->url, $version);
            ask($who, path($run) . '/join?cancel_on_disconnect=true', '/info');
            read_until($who->{hears}, qr/\r\n\r\n/);
            ask($who, '/info');
            $client->post(path($run) . '/cancel');
            like read_until($who->{hears}, qr/"server":"mod_agent".*"server":"mod_agent"/s),
                qr/"messages".*$ENDS/s, 'one that sends its next requests waits for its answers';
            end_client($who, 'TERM');
        };
    }
}

# openssl's own client, which renews its keys when it is told to.
sub start_s_client {
    my ($port) = @_;
    my $pid = open2(my $hears, my $say, 'openssl', 's_client', '-tls1_3', '-connect',
        "127.0.0.1:$port", '-verify_quiet');
    $say->autoflush;
    return { pid => $pid, say => $say, hears => $hears };
}

subtest 'TLSv1.3, new keys' => sub {
    my $tls = AgentTest::Tls->new;
    my ($server, $client) = AgentTest::Server->start_with_client($tls->lines,
        'Timeout 2', 'RequestReadTimeout body=1');
    my $run = $client->start_run('sleep 600000');
    my $who = start_s_client($tls->port);
    my $request = get_request(path($run) . '/stream?cancel_on_disconnect=true');
    print { $who->{say} } $request;
    read_until($who->{hears}, qr/event: metadata/);
    for (1 .. 3) {
        order($who, 'K');
        read_until($who->{hears}, qr/: heartbeat/);
    }
    is $client->get_run($run)->{status}, 'pending',
        'a client that renews its keys while it waits has not left';
    $client->post(path($run) . '/cancel');
    read_until($who->{hears}, qr{^0\r\n\r\n}m);
    print { $who->{say} } get_request('/info');
    like read_until($who->{hears}, qr/"server":"mod_agent"/), qr{HTTP/1\.1 200},
        'and its connection is kept for its next request';
    end_client($who, 'TERM');
};

done_testing;
