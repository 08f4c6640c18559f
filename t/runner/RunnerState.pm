# SPDX-License-Identifier: Apache-2.0
# The states of threads as the supervisor has them: replies to requests for
# them, and the differences of checkpoints.
package RunnerState;
use strict;
use warnings;
use Cpanel::JSON::XS;
use Exporter 'import';

our @EXPORT_OK = qw(set_state resolve place_values reply_line);

my $json = Cpanel::JSON::XS->new->utf8->canonical->allow_nonref;

# The states from which runs start, as JSON text; those of checkpoints.
my (%states, %checkpoints);

# Gives the run of a start message a state, which the runner requests.
sub set_state {
    my ($start, $values) = @_;
    $states{ $start->{run_id} } = $values;
    $start->{checkpoint} = { checkpoint_id => RunnerTest::new_uuid(), step => -2, next => [],
        %{ $start->{checkpoint} || {} }, bytes => length $values };
    $checkpoints{ $start->{checkpoint}{checkpoint_id} } = \$values;
    return;
}

sub values_of {
    my ($id) = @_;
    my $values = $checkpoints{ $id // '' } // {};
    return ref $values eq 'SCALAR' ? $json->decode(${$values}) : $values;
}

# Applies the differences of a checkpoint to its parent: `values` has whole values
# then, and `sent` what was sent.
sub resolve {
    my ($line) = @_;
    my $parent = values_of($line->{parent});
    my %values = %{ $line->{sent} = $line->{values} };
    while (my ($name, $value) = each %values) {
        next if ref $value ne 'HASH' || keys %{$value} != 1;
        if ($value->{'$same'}) {
            die "the parent has no $name\n" if !exists $parent->{$name};
            $values{$name} = $parent->{$name};
        }
        elsif (my $list = $value->{'$list'}) {
            my @old = @{ $parent->{$name} // [] };
            die "the parent has less than $list->{keep} $name\n" if $list->{keep} > @old;
            $values{$name} = [ @old[ 0 .. $list->{keep} - 1 ], @{ $list->{items} } ];
        }
        elsif (exists $value->{'$value'}) {
            $values{$name} = $value->{'$value'};
        }
    }
    $checkpoints{ $line->{checkpoint_id} } = $line->{values} = \%values;
    return;
}

# Puts the values of its checkpoint into the data of an event with a path.
sub place_values {
    my ($line) = @_;
    my @path = @{ $line->{path} };
    my $values = values_of($line->{checkpoint_id});
    my $name = pop @path;
    if (!defined $name) {
        $line->{data} = { %{$values}, %{ $line->{data} } };
        return;
    }
    my $object = $line->{data};
    $object = $object->{$_} // die "the data have no $_\n" for @path;
    die "the data have no $name\n" if !exists $object->{$name};
    die "the data have values already\n" if defined $object->{$name};
    $object->{$name} = $values;
    return;
}

# The reply to a request: half of each list in each part.
sub reply_line {
    my ($request) = @_;
    my %reply = map { $_ => $request->{$_} } qw(run_id epoch id);
    die "$request->{op} is not expected\n" if $request->{op} ne 'state.get';
    my $second = defined $request->{cursor};
    my $state = $states{ $request->{run_id} } // '{}';
    # A large one is not decoded.
    if (length $state > 1_000_000) {
        die "a list is expected\n" if $state !~ /\A\{"messages":\[.*\]\}\z/;
        my $list = '{"$list":{"keep":0,"items":' . substr($state, 12, -1) . '}}';
        return '{"type":"reply","ok":true,"cursor":null,' . substr($json->encode(\%reply), 1, -1)
            . ',"result":{"values":{"messages":' . $list . '}}}' . "\n";
    }
    my %values = %{ $json->decode($state) };
    my $has_more = 0;
    for my $name (keys %values) {
        if (ref $values{$name} eq 'ARRAY') {
            my @items = @{ $values{$name} };
            my $half = int(@items / 2);
            $has_more ||= $half > 0;
            $values{$name} = { '$list' => { keep => $second ? $half : 0,
                items => $second ? [ @items[ $half .. $#items ] ] : $half ? [ @items[ 0 .. $half - 1 ] ] : \@items } };
        }
        elsif ($second) {
            delete $values{$name};
        }
    }
    if ($second) {
        delete @values{ grep { !$values{$_}{'$list'}{keep} } keys %values };
    }
    return $json->encode({ type => 'reply', %reply, ok => \1, result => { values => \%values },
        cursor => $has_more && !$second ? '0.1' : undef }) . "\n";
}

1;
