# SPDX-License-Identifier: Apache-2.0
# Clients that leave without closing their TCP connection, or behind HTTP/2: the
# run of one that wanted it cancelled is cancelled, and its place is free, before
# the server has anything to send to it.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Env qw(root);
use AgentTest::Server;
use AgentTest::Wait;
use IO::Select;
use IPC::Open2 qw(open2);
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
sub ends_without_heartbeat {
    my ($client, $leaves) = @_;
    my $live = $client->start_run('sleep 600000');
    my $earlier = $client->begin('GET', path($live) . '/stream');
    read_until($earlier, qr/event: metadata/);
    my $run = $client->start_run('sleep 600000');
    $leaves->(path($run));
    wait_for('the run to end', sub { $client->get_run($run)->{status} eq 'interrupted' });
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
            end_client($who, 'TERM');
        });
        is_seen($client, 'HTTP/2: so is one whose connection ends', sub {
            end_client($begin->(@_), 'KILL');
        });
    };
}

done_testing;
