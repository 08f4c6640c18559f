#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# A runner that answers calls as their values say: {"do": "save"}.
use strict;
use warnings;
use Cpanel::JSON::XS ();

my $json = Cpanel::JSON::XS->new->utf8->canonical;
my %calls;
my $count = 0;

sub send_line {
    my ($message) = @_;
    my $text = $json->encode($message) . "\n";
    while (length $text) {
        my $done = syswrite OUT, $text or exit 1;
        substr $text, 0, $done, '';
    }
    return;
}

sub send_of { my ($call, %members) = @_; return send_line({ run_id => $call->{run_id}, epoch => $call->{epoch}, %members }) }

sub save {
    my ($call, @messages) = @_;
    my $id = sprintf '%.8s-%04x-7000-8000-%012x', $call->{run_id}, $call->{epoch}, ++$count;
    my $parent = ($call->{checkpoint} // {})->{checkpoint_id};
    return send_of($call, type => 'checkpoint', checkpoint_id => $id, parent => $parent, values => { messages => \@messages },
        next => [], tasks => [], metadata => { source => 'update', step => 5, writes => undef, parents => {} });
}

sub end {
    my ($call, $status, $error) = @_;
    delete $calls{ $call->{run_id} };
    return send_of($call, type => 'end', status => $status // 'success', error => $error);
}

sub value {
    my ($call, $value) = @_;
    delete $calls{ $call->{run_id} };
    return send_of($call, type => 'end', status => 'success', value => $value);
}

sub save_and_end { my ($call, @messages) = @_; save($call, @messages); return end($call) }

my %actions = (
    save => sub { save_and_end($_[0], { content => 'saved' }) },
    # Reads the state first.
    read => sub { send_of($_[0], type => 'request', id => 1, op => 'state.get', cursor => undef) },
    refuse => sub { end($_[0], 'error', { error => 'InvalidUpdateError', message => 'no such node' }) },
    # Refuses, and calls it an error of the server.
    pretend => sub {
        save($_[0], { content => 'half' });
        delete $calls{ $_[0]{run_id} };
        send_of($_[0], type => 'end', status => 'error', error => { error => 'worker_lost', message => 'm' }, f => \1);
    },
    # Output that the database refuses.
    invalid => sub {
        my $id = $_[0]{run_id};
        send_of($_[0], type => 'put', ns => '', checkpoint_id => $id, parent => undef, checkpoint => {}, metadata => {},
            channels => { messages => $id });
        end($_[0]);
    },
    nothing => sub { end($_[0]) },
    # As if it had been cancelled, before and after it has saved.
    interrupted => sub { end($_[0], 'interrupted') },
    saved_interrupted => sub { save($_[0], { content => 'saved' }); end($_[0], 'interrupted') },
    # Does not answer; `stuck` not even a cancel.
    silent => sub { },
    stuck => sub { },
    # Saves, and does not end.
    half => sub { save($_[0], { content => 'half' }) },
    exit => sub { exit 0 },
    saved_exit => sub { save($_[0], { content => 'saved' }); sleep 3600 },
    # The last of several is the state.
    many => sub { save($_[0], { content => $_ }) for 1 .. 200; end($_[0]) },
    # Asks for credit, and sends 8 MB.
    large => sub { send_of($_[0], type => 'want', bytes => 8_300_000) },
    long_error => sub { send_of($_[0], type => 'want', bytes => 8_300_000) },
    # Breaches.
    event => sub { send_of($_[0], type => 'event', event => 'custom', data => 1) },
    twice => sub { my $call = $_[0]; save_and_end($call, { content => 'once' }); end($call) },
    other => sub { end({ run_id => '00000000-0000-7000-8000-00000000dead', epoch => 1 }) },
    epoch => sub { end({ %{ $_[0] }, epoch => $_[0]{epoch} + 1 }) },
    update_value => sub { save($_[0], { content => 'x' }); send_of($_[0], type => 'end', status => 'success', value => 1) },
    # Of `describe`.
    value => sub { value($_[0], { got => $_[0]{arguments}, config => $_[0]{config}, context => $_[0]{context} }) },
    null => sub { value($_[0], undef) },
    output => sub { save($_[0]) },
    record => sub {
        send_of($_[0], type => 'put', ns => '', checkpoint_id => $_[0]{run_id}, parent => undef, checkpoint => {}, metadata => {},
            channels => {});
    },
    large_value => sub { send_of($_[0], type => 'want', bytes => 8_300_000) },
);

my %messages = (
    hello => sub { send_line({ type => 'ready', graphs => { map { $_ => {} } keys %{ $_[0]{graphs} } }, slots => 2 }) },
    ping => sub { send_line({ type => 'pong', id => $_[0]{id} }) },
    start => sub { end($_[0]) },
    call => sub {
        my ($call) = @_;
        $calls{ $call->{run_id} } = $call;
        my $update = $call->{op} eq 'update' ? $call->{arguments}{supersteps}[0][0] : { values => $call->{config}{configurable} };
        my $values = $call->{values} = $update->{values};
        print {*STDERR} "call $call->{run_id} $values->{do} attempt $call->{attempt} as_node " . ($update->{as_node} // '') . "\n";
        my $action = $values->{once} && $call->{epoch} > 1 ? $call->{op} eq 'update' ? 'save' : 'value' : $values->{do};
        $actions{$action}->($call);
    },
    reply => sub {
        my ($reply) = @_;
        my $call = $calls{ $reply->{run_id} } or return;
        my $list = $reply->{result}{values}{messages};
        save_and_end($call, @{ $list ? $list->{'$list'}{items} : [] }, { content => 'more' });
    },
    go => sub {
        my $call = $calls{ $_[0]{run_id} } or return;
        return save_and_end($call, { content => 'x' x 8_200_000 }) if $call->{values}{do} eq 'large';
        return value($call, 'x' x 8_200_000) if $call->{values}{do} eq 'large_value';
        return end($call, 'error', { error => 'E' x 4_000_000, message => 'm' x 4_000_000 });
    },
    cancel => sub {
        my $call = $calls{ $_[0]{run_id} } or return;
        end($call, 'interrupted') if $call->{values}{do} ne 'stuck';
    },
    stop => sub { end($calls{ $_[0]{run_id} }, 'drained') if $calls{ $_[0]{run_id} } },
    drain => sub { },
);

open IN, '<&=', 3 or die "3: $!\n";
open OUT, '>&=', 4 or die "4: $!\n";
$| = 1;
while (my $line = <IN>) {
    my $message = $json->decode($line);
    $messages{ $message->{type} }->($message);
}
