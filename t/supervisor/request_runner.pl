#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# A runner whose runs send requests, as their input says: {"do": "read"}. A run
# reports each reply in an event.
use strict;
use warnings;
use ScriptedRunner;

sub request {
    my ($run, %members) = @_;
    return send_of($run, type => 'request', id => ++$run->{requests}, op => 'state.get', cursor => undef, %members);
}

# A request to the store: the operations of the input; `fill` is the length of a text in each value.
sub use_store {
    my ($run, %members) = @_;
    my ($ops, $fill) = @{ $run->{input} }{qw(ops fill)};
    $ops = [ map { { %$_, $_->{value} ? (value => { %{ $_->{value} }, text => 'x' x $fill }) : () } } @$ops ] if $fill;
    return request($run, op => 'store', args => { ops => $ops }, %members);
}

# The same with credit, if the line needs it.
sub use_store_with_credit {
    my ($run) = @_;
    my $lines = cut_text(sub { use_store($run) });
    return add_text($lines) if length $lines <= 65_537;
    $run->{line} = $lines;
    return send_of($run, type => 'want', bytes => length $lines);
}

my %actions = (
    noop => \&end_run,
    # Events of these lengths.
    write => sub { my ($run) = @_; event($run, 'x' x $_) for @{ $run->{input}{lengths} }; end_run($run) },
    # Reads the state to its end; `again` then does so once more.
    read => sub { request($_[0]) },
    again => sub { request($_[0]) },
    # Requests, and no longer reads its input.
    mute => sub { request($_[0]); flush(); sleep 3600 while 1 },
    unknown => sub { request($_[0], op => 'state.put') },
    store => \&use_store_with_credit,
    store_without_credit => sub { use_store($_[0]) },
    always_unknown => sub { request($_[0], op => 'state.put') },
    cursor => sub { request($_[0], cursor => '1.2') },
    # Breaches.
    twice => sub { request($_[0]) for 1 .. 2 },
    thousands => sub { request($_[0], op => 'state.put') for 1 .. 10_000 },
    wrong_run => sub { request($_[0], run_id => '00000000-0000-7000-8000-00000000dead') },
    wrong_epoch => sub { request($_[0], epoch => $_[0]{epoch} + 1) },
    no_id => sub { request($_[0], id => 'one') },
    no_op => sub { request($_[0], op => '') },
    long_cursor => sub { request($_[0], cursor => '1' x 128) },
);

# The content of a part: of each list the number of elements, which has to begin where
# the part before ended, or the value itself.
sub describe {
    my ($run, $values) = @_;
    my %part;
    while (my ($name, $value) = each %{$values}) {
        my $list = ref $value eq 'HASH' ? $value->{'$list'} : undef;
        $part{$name} = $list ? @{ $list->{items} } : $value;
        next if !$list;
        die "$name: $list->{keep} elements\n" if $list->{keep} != ($run->{counts}{$name} // 0);
        $run->{counts}{$name} += @{ $list->{items} };
    }
    return \%part;
}

# The results of the store, of each item the key and the length of its text.
sub shorten {
    my ($results) = @_;
    my $short = sub { [ $_[0]{key}, length($_[0]{value}{text} // '') ] };
    return [ map {
        !ref $_ ? $_ : $_->{items} ? { %$_, items => [ map { $short->($_) } @{ $_->{items} } ] } : $_->{key} ? $short->($_) : $_
    } @$results ];
}

sub take_reply {
    my ($reply) = @_;
    my $run = run_of($reply) or return;
    my $action = $run->{input}{do};
    my $results = $reply->{ok} ? $reply->{result}{results} : undef;
    my %data = !$reply->{ok} ? (code => $reply->{error}{code})
        : $results ? (results => shorten($results), more => defined $reply->{cursor} ? 1 : 0)
        : (part => describe($run, $reply->{result}{values}), more => defined $reply->{cursor} ? 1 : 0);
    event($run, { id => $reply->{id}, length => $reply->{length}, %data });
    return use_store($run, cursor => $reply->{cursor}) if $results && defined $reply->{cursor};
    return request($run, cursor => $reply->{cursor}) if defined $reply->{cursor};
    return request($run, op => 'state.put') if $action eq 'always_unknown';
    return request($run) if $action eq 'again' && !$run->{is_again}++;
    return end_run($run);
}

serve(
    hello => sub { die "protocol $_[0]{protocol}\n" if $_[0]{protocol} != 2 },
    start => sub { act($_[0], \%actions) },
    reply => \&take_reply,
    go => sub { my $run = run_of($_[0]) or return; add_text(delete $run->{line} // '') },
);
