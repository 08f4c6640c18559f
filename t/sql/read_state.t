# SPDX-License-Identifier: Apache-2.0
# Reading a state part by part, as the supervisor does for a runner.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Play;

my $db = AgentSQL->new;
my $play = AgentSQL::Play->new($db->session);
my $worker = $play->worker;

# Saves a state; returns its thread and checkpoint.
sub save_state {
    my ($values) = @_;
    my $claim = $play->leased($worker, $play->thread);
    my $id = AgentSQL::uuid();
    $play->save($worker, AgentSQL::Play::checkpoint($claim, id => $id, values => $values), AgentSQL::Play::finish($claim));
    return ($claim->{thread_id}, $id);
}

# The parts of a state: their JSON, decoded and as text.
sub read_parts {
    my ($thread, $id, $max) = @_;
    my (@parts, $cursor);
    do {
        my $after = defined $cursor ? "'$cursor'" : 'null';
        my ($row) = $play->session->query(
            "select code, body, cursor from agent.read_state('${\$play->deployment}', '$thread', '$id', $after, $max)")
            or return @parts;
        return $row->[0] if $row->[0] ne 'ok';
        push @parts, $row->[1];
        $cursor = length($row->[2] // '') ? $row->[2] : undef;
    } while defined $cursor;
    return @parts;
}

# The values that the parts make.
sub join_parts {
    my (%values, $channels);
    for my $part (map { AgentSQL::decode($_)->{values} } @_) {
        for my $name (keys %{$part}) {
            my $value = $part->{$name};
            my $list = ref $value eq 'HASH' && keys %{$value} == 1 ? $value->{'$list'} : undef;
            if ($list) {
                is scalar @{ $values{$name} ||= [] }, $list->{keep}, "$name continues at its end" if $list->{keep};
                push @{ $values{$name} ||= [] }, @{ $list->{items} };
            }
            else {
                $values{$name} = ref $value eq 'HASH' && exists $value->{'$value'} ? $value->{'$value'} : $value;
            }
        }
    }
    return \%values;
}

my %VALUES = (
    messages => [ map { { content => "message $_ " . 'x' x 100, id => "$_" } } 1 .. 50 ],
    empty    => [],
    short    => [ 1, 2, 3 ],
    object   => { 'a"b' => "line\nbreak", list => [ {} ] },
    nothing  => undef,
    text     => 'y' x 3000,
    'na"me'  => 'z',
    like      => { '$list' => { keep => 0, items => [] } },
);

subtest 'the parts of a state make its values, whatever their length' => sub {
    my ($thread, $id) = save_state(\%VALUES);
    for my $max (1, 150, 1000, 5000, 1_000_000) {
        my @parts = read_parts($thread, $id, $max);
        is_deeply join_parts(@parts), \%VALUES, "parts of $max bytes";
        is scalar(grep { /[\r\n]/ } @parts), 0, 'a part has no line break';
        cmp_ok scalar(grep { length > $max + 400 && length > 3200 } @parts), '==', 0, 'none is longer, but for one element';
    }
    is scalar(read_parts($thread, $id, 1_000_000)), 1, 'a small state is one part';
};

subtest 'a state without channels is one empty part, an unknown checkpoint has none' => sub {
    my ($thread, $id) = save_state({});
    is_deeply [ read_parts($thread, $id, 1000) ], ['{"values":{}}'], 'an empty part';
    is_deeply [ read_parts($thread, AgentSQL::uuid(), 1000) ], ['checkpoint_not_found'], 'no part';
    is_deeply [ read_parts($play->thread, $id, 1000) ], ['checkpoint_not_found'], 'nor of another thread';
};

done_testing;
