#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# A runner of applications for applications.t: the values of its runs say what
# hello, its arguments and its environment were. One whose directory has a file
# `broken` ends instead.
use strict;
use warnings;
use Cpanel::JSON::XS ();
use Cwd qw(getcwd);

my $json = Cpanel::JSON::XS->new->utf8->canonical;
my ($hello, $count);

sub send_line {
    my ($message) = @_;
    my $text = $json->encode($message) . "\n";
    while (length $text) {
        my $done = syswrite OUT, $text or exit 1;
        substr $text, 0, $done, '';
    }
    return;
}

sub report {
    open my $file, '<', '/proc/self/cmdline' or die "cmdline: $!\n";
    my ($program, @arguments) = split /\0/, <$file>;
    return { application => $hello->{application}, graphs => $hello->{graphs}, directory => getcwd(), user => $>,
        environment => {%ENV}, program => $program, arguments => \@arguments };
}

sub execute {
    my ($run) = @_;
    my @ids = (run_id => $run->{run_id}, epoch => $run->{epoch});
    my $id = sprintf '%.8s-%04x-7000-8000-%012x', $run->{run_id}, $run->{epoch}, ++$count;
    send_line({ @ids, type => 'checkpoint', checkpoint_id => $id, parent => undef, values => { messages => [], report => report() },
        next => [], tasks => [], metadata => { source => 'loop', step => 0, writes => undef, parents => {} } });
    return send_line({ @ids, type => 'end', status => 'success', error => undef });
}

my %messages = (
    hello => sub {
        ($hello) = @_;
        exit 1 if -e 'broken';
        my $graphs = $hello->{graphs};
        send_line({ type => 'ready', slots => 100,
            graphs => { map { $_ => { description => $graphs->{$_}{description} } } keys %{$graphs} } });
    },
    ping => sub { send_line({ type => 'pong', id => $_[0]{id} }) },
    start => \&execute,
);

open IN, '<&=', 3 or die "3: $!\n";
open OUT, '>&=', 4 or die "4: $!\n";
while (my $line = <IN>) {
    my $message = $json->decode($line);
    my $action = $messages{ $message->{type} };
    $action->($message) if $action;
}
