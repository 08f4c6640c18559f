#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# A runner that attacks the supervisor. The input of its run, {"path": a file,
# "times": N}, names lines that it sends N times, but the first one once, and a
# last one that is sent once after them: the breach. It goes on with the first
# lines until it is killed. @RUN@, @EPOCH@ and @LAST@ (the epoch before) stand
# for the lease, @LONG@ for 8 MiB. A later attempt succeeds.
use strict;
use warnings;
use Cpanel::JSON::XS ();

my $json = Cpanel::JSON::XS->new->utf8->canonical;

sub put_text {
    my ($text) = @_;
    my $at = 0;
    while ($at < length $text) {
        $at += syswrite(OUT, $text, 262_144, $at) // exit 1;
    }
    return;
}

sub put_message { my (%message) = @_; return put_text($json->encode(\%message) . "\n") }

sub lines_of {
    my ($run) = @_;
    my %words = (RUN => $run->{run_id}, EPOCH => $run->{epoch}, LAST => $run->{epoch} - 1, LONG => 'x' x 8_388_608);
    open my $file, '<:raw', $run->{input}{path} or die "$run->{input}{path}: $!\n";
    my @lines = <$file>;
    s/\@(RUN|EPOCH|LAST|LONG)\@/$words{$1}/g for @lines;
    return @lines;
}

sub attack {
    my ($run) = @_;
    my ($first, @odd) = lines_of($run);
    my $breach = pop @odd;
    my $all = join '', @odd;
    put_text($first);
    put_text($all) for 1 .. $run->{input}{times};
    put_text($breach);
    put_text($all) while 1;
    return;
}

my %messages = (
    hello => sub { put_message(type => 'ready', graphs => { map { $_ => {} } keys %{ $_[0]{graphs} } }, slots => 1) },
    start => sub {
        my ($run) = @_;
        attack($run) if $run->{attempt} == 1;
        put_message(type => 'end', run_id => $run->{run_id}, epoch => $run->{epoch}, status => 'success', error => undef);
    },
    ping => sub { put_message(type => 'pong', id => $_[0]{id}) },
    cancel => sub { },
    drain => sub { },
);

open IN, '<&=', 3 or die "3: $!\n";
open OUT, '>&=', 4 or die "4: $!\n";
while (my $line = <IN>) {
    my $message = $json->decode($line);
    $messages{ $message->{type} }->($message);
}
