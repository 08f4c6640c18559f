#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# A runner that attacks the supervisor. The input of its run is {"path": a file,
# "times": N, "breach": true}: it sends the lines of the file, of which the first
# and the last one are sent once and the others N times. With "breach" it is to
# be killed for the last line, and goes on with the lines before it until it is;
# else it ends the run, unless "is_end" says that the lines do. @RUN@, @EPOCH@
# and @LAST@ (the epoch before) stand for the lease, @LONG@ for 8 MiB. A later
# attempt succeeds. "odd": a file of further lines, sent after the first one.
# "awaits": it ends the run when it has read a reply. A call has such an input
# as the values of its update, else in its config.
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
    my ($run, $path) = @_;
    my %words = (RUN => $run->{run_id}, EPOCH => $run->{epoch}, LAST => $run->{epoch} - 1, LONG => 'x' x 8_388_608);
    open my $file, '<:raw', $path or die "$path: $!\n";
    my @lines = <$file>;
    s/\@(RUN|EPOCH|LAST|LONG)\@/$words{$1}/g for @lines;
    return @lines;
}

my %waiting;

sub attack {
    my ($run, $input) = @_;
    my ($first, @odd) = lines_of($run, $input->{path});
    my $last = pop(@odd) // '';
    my $all = join '', @odd, $input->{odd} ? lines_of($run, $input->{odd}) : ();
    put_text($first // '');
    put_text($all) for 1 .. $input->{times} // 1;
    put_text($last);
    while ($input->{breach}) { put_text($all) }
    return;
}

sub put_end {
    my ($run) = @_;
    my %value = ($run->{op} // 'update') ne 'update' ? (value => {}) : ();
    return put_message(type => 'end', run_id => $run->{run_id}, epoch => $run->{epoch}, status => 'success', error => undef, %value);
}

sub take {
    my ($run, $input) = @_;
    return put_end($run) if $run->{attempt} > 1;
    attack($run, $input);
    $waiting{ $run->{run_id} } = $run if $input->{awaits};
    put_end($run) if !$input->{is_end} && !$input->{awaits};
    return;
}

my %messages = (
    hello => sub { put_message(type => 'ready', graphs => { map { $_ => {} } keys %{ $_[0]{graphs} } }, slots => 1) },
    start => sub { take($_[0], $_[0]{input}) },
    call => sub { take($_[0], $_[0]{op} eq 'update' ? $_[0]{arguments}{supersteps}[0][0]{values} : $_[0]{config}{configurable}) },
    reply => sub { my $run = delete $waiting{ $_[0]{run_id} }; put_end($run) if $run },
    ping => sub { put_message(type => 'pong', id => $_[0]{id}) },
    (map { $_ => sub { } } qw(cancel go)),
    drain => sub { },
);

open IN, '<&=', 3 or die "3: $!\n";
open OUT, '>&=', 4 or die "4: $!\n";
while (my $line = <IN>) {
    my $message = $json->decode($line);
    $messages{ $message->{type} }->($message);
}
