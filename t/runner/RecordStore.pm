# SPDX-License-Identifier: Apache-2.0
# The records of graph libraries, and the items of their store, in memory: what
# the server keeps for runners of applications. Takes lines of a runner, checks
# that what they refer to exists, and answers its requests as PROTOCOL.md says, in
# parts when `part_size` is set.
package RecordStore;
use strict;
use warnings;
use Cpanel::JSON::XS;
use Digest::SHA qw(sha256_hex);
use Encode qw(encode);
use MIME::Base64 qw(decode_base64);

my $json = Cpanel::JSON::XS->new->utf8->canonical->allow_nonref;

# part_size: channels, writes and digests of a part of a reply; by default all.
sub new {
    my ($class, %args) = @_;
    return bless { part_size => 1_000_000, threads => {}, items => {}, %args }, $class;
}

sub thread {
    my ($self, $id) = @_;
    return $self->{threads}{$id} ||= { blobs => {}, snapshots => {}, writes => {}, head => undef };
}

# --- Lines of a runner -------------------------------------------------------

# Takes blob, put, put_writes and checkpoint of a run of the thread.
sub take {
    my ($self, $thread_id, $line) = @_;
    my $take = $self->can("take_$line->{type}");
    $take->($self, $self->thread($thread_id), $line) if $take;
    return;
}

sub take_blob {
    my ($self, $thread, $line) = @_;
    my $blob = $thread->{blobs}{ $line->{digest} } ||= { type => $line->{value_type}, parts => [] };
    my $part = $line->{part} // 0;
    die "a blob has a text and base64, or neither\n" if defined $line->{text} == defined $line->{base64};
    die "the parts of $line->{digest} are out of order\n" if $part > @{ $blob->{parts} };
    $blob->{parts}[$part] = defined $line->{text} ? { text => $line->{text} } : { base64 => $line->{base64} };
    $blob->{count} = $line->{parts} // 1;
    check_digest($line->{digest}, $blob) if @{ $blob->{parts} } == $blob->{count};
    return;
}

sub check_digest {
    my ($digest, $blob) = @_;
    my $bytes = join '', map { defined $_->{text} ? encode('UTF-8', $_->{text}) : decode_base64($_->{base64}) }
        @{ $blob->{parts} };
    my $hex = substr sha256_hex("$blob->{type}\n$bytes"), 0, 32;
    (my $given = $digest) =~ tr/-//d;
    die "the digest $digest is not that of its value\n" if $given ne $hex;
    return;
}

# The digests of a reference, after those that it keeps of another list.
sub digests_of {
    my ($thread, $reference, $before) = @_;
    my @items = ref $reference ? @{ $reference->{list}{items} } : ($reference);
    for my $digest (@items) {
        my $blob = $thread->{blobs}{$digest} or die "the thread has no value $digest\n";
        die "the value $digest has not all parts\n" if @{ $blob->{parts} } != $blob->{count};
    }
    return { digests => \@items } if !ref $reference;
    my $keep = $reference->{list}{keep};
    my @old = $before && $before->{is_list} ? @{ $before->{digests} } : ();
    die "a list keeps $keep elements of ${\ scalar @old}\n" if $keep > @old;
    return { is_list => 1, digests => [ @old[ 0 .. $keep - 1 ], @items ] };
}

sub take_put {
    my ($self, $thread, $line) = @_;
    my $snapshots = $thread->{snapshots}{ $line->{ns} } ||= {};
    my $parent = defined $line->{parent}
        ? $snapshots->{ $line->{parent} } || die "the parent $line->{parent} was not put\n" : undef;
    my ($last) = reverse sort keys %{$snapshots};
    die "the id $line->{checkpoint_id} is not greater than $last\n"
        if defined $last && $line->{checkpoint_id} le $last;
    my %channels = $parent ? %{ $parent->{channels} } : ();
    while (my ($name, $reference) = each %{ $line->{channels} }) {
        $channels{$name} = defined $reference ? digests_of($thread, $reference, $channels{$name}) : undef;
    }
    $snapshots->{ $line->{checkpoint_id} } = { %{$line}{qw(ns checkpoint_id parent run_id checkpoint metadata)},
        channels => \%channels };
    return;
}

sub take_put_writes {
    my ($self, $thread, $line) = @_;
    my $writes = $thread->{writes}{ $line->{ns} }{ $line->{checkpoint_id} } ||= {};
    for my $write (@{ $line->{writes} }) {
        my ($index, $channel, $reference) = @{$write};
        my $key = "$line->{task_id} $index";
        next if $index >= 0 && $writes->{$key};
        $writes->{$key} = { task_id => $line->{task_id}, index => $index, channel => $channel,
            task_path => $line->{task_path}, value => defined $reference ? digests_of($thread, $reference) : undef };
    }
    return;
}

sub take_checkpoint {
    my ($self, $thread, $line) = @_;
    $thread->{head} = $line->{checkpoint_id} if !length($line->{ns} // '');
    $thread->{checkpoints}{ $line->{checkpoint_id} } = $line;
    return;
}

# --- Requests ----------------------------------------------------------------

# The reply to a request of a run of the thread, without the members of the run.
sub answer {
    my ($self, $thread_id, $request) = @_;
    my %operations = ('checkpoint.get' => \&get, 'checkpoint.list' => \&list,
        'checkpoint.delta' => \&delta, 'blob.get' => \&blobs, store => \&store);
    my $operation = $operations{ $request->{op} }
        or return { ok => \0, error => { code => 'unknown_op', message => 'there is no such operation' } };
    my ($result, $cursor) = $operation->($self, $self->thread($thread_id), $request->{args}, $request->{cursor});
    return { ok => \0, error => { code => 'not_found', message => 'a value is gone' } } if !$result;
    return { ok => \1, result => $result, cursor => $cursor };
}

sub reference_of {
    my ($value) = @_;
    return if !$value;
    return $value->{is_list} ? { list => { keep => 0, items => $value->{digests} } } : $value->{digests}[0];
}

sub tuple_of {
    my ($snapshot) = @_;
    return { map { $_ => $snapshot->{$_} } qw(ns checkpoint_id parent run_id checkpoint metadata) };
}

sub find {
    my ($thread, $ns, $id) = @_;
    my $snapshots = $thread->{snapshots}{$ns} || {};
    ($id) = reverse sort keys %{$snapshots} if !defined $id;
    return defined $id ? $snapshots->{$id} : undef;
}

# The writes to a checkpoint, in the order of their paths, tasks and indexes.
sub writes_of {
    my ($thread, $ns, $id) = @_;
    return sort { $a->{task_path} cmp $b->{task_path} || $a->{task_id} cmp $b->{task_id} || $a->{index} <=> $b->{index} }
        values %{ $thread->{writes}{$ns}{$id} || {} };
}

sub get {
    my ($self, $thread, $args, $cursor) = @_;
    my $snapshot = find($thread, $args->{ns}, $args->{checkpoint_id}) or return { tuple => undef };
    my @rows = map { [ channel => $_, reference_of($snapshot->{channels}{$_}) ] }
        grep { $snapshot->{channels}{$_} } sort keys %{ $snapshot->{channels} };
    push @rows, map { [ write => $_ ] } writes_of($thread, @{$snapshot}{qw(ns checkpoint_id)});
    @rows = map { pieces($self->{part_size}, $_) } @rows;
    my $from = $cursor // 0;
    my %result = (channels => {}, writes => []);
    $result{tuple} = tuple_of($snapshot) if !$from;
    my $until = $from + $self->{part_size};
    for my $row (grep { $_ } @rows[ $from .. $until - 1 ]) {
        if ($row->[0] eq 'channel') {
            $result{channels}{ $row->[1] } = $row->[2];
        }
        else {
            my $write = $row->[1];
            push @{ $result{writes} }, [ $write->{task_id}, $write->{index}, $write->{channel},
                reference_of($write->{value}), $write->{task_path} ];
        }
    }
    return (\%result, $until < @rows ? "$until" : undef);
}

# A channel with a list as rows of a part's size.
sub pieces {
    my ($size, $row) = @_;
    return $row if $row->[0] ne 'channel' || !ref $row->[2] || @{ $row->[2]{list}{items} } <= $size;
    my @items = @{ $row->[2]{list}{items} };
    my @rows;
    for (my $from = 0; $from < @items; $from += $size) {
        my $until = $from + $size < @items ? $from + $size : @items;
        push @rows, [ channel => $row->[1], { list => { keep => $from, items => [ @items[ $from .. $until - 1 ] ] } } ];
    }
    return @rows;
}

# Whether an object has equal members.
sub has_members {
    my ($whole, $part) = @_;
    return !grep { !exists $whole->{$_} || $json->encode([ $whole->{$_} ]) ne $json->encode([ $part->{$_} ]) } keys %{$part};
}

sub list {
    my ($self, $thread, $args) = @_;
    my @found;
    for my $ns (reverse sort keys %{ $thread->{snapshots} }) {
        next if defined $args->{ns} && $ns ne $args->{ns};
        push @found, map { $thread->{snapshots}{$ns}{$_} } reverse sort keys %{ $thread->{snapshots}{$ns} };
    }
    if (my $after = $args->{after}) {
        shift @found while @found && !($found[0]{ns} eq $after->{ns} && $found[0]{checkpoint_id} eq $after->{checkpoint_id});
        shift @found;
    }
    @found = grep { (!defined $args->{before} || $_->{checkpoint_id} lt $args->{before})
        && has_members($_->{metadata}, $args->{filter} || {}) } @found;
    my $count = $args->{limit} // @found;
    my $is_limited = $count <= $self->{part_size};
    $count = $self->{part_size} if !$is_limited;
    my @part = splice @found, 0, $count;
    my $next = @part && @found && !($is_limited && defined $args->{limit})
        ? { ns => $part[-1]{ns}, checkpoint_id => $part[-1]{checkpoint_id} } : undef;
    return { tuples => [ map { tuple_of($_) } @part ], next => $next };
}

sub delta {
    my ($self, $thread, $args) = @_;
    my %result = map { $_ => { writes => [] } } @{ $args->{channels} };
    my $snapshot = find($thread, @{$args}{qw(ns checkpoint_id)});
    my %open = map { $_ => 1 } @{ $args->{channels} };
    while (%open && $snapshot && defined $snapshot->{parent}) {
        $snapshot = find($thread, $args->{ns}, $snapshot->{parent}) or last;
        for my $write (reverse writes_of($thread, $args->{ns}, $snapshot->{checkpoint_id})) {
            next if !$open{ $write->{channel} };
            unshift @{ $result{ $write->{channel} }{writes} },
                [ $write->{task_id}, reference_of($write->{value}), $write->{task_path}, $write->{index} ];
        }
        for my $name (grep { $snapshot->{channels}{$_} } keys %open) {
            $result{$name}{seed} = reference_of($snapshot->{channels}{$name});
            delete $open{$name};
        }
    }
    return \%result;
}

sub blobs {
    my ($self, $thread, $args, $cursor) = @_;
    die "a request has ${\ scalar @{ $args->{digests} }} digests\n" if @{ $args->{digests} } > 100;
    die "the arguments are too long\n" if length $json->encode($args) > 4096;
    my @rows;
    for my $digest (@{ $args->{digests} }) {
        my $blob = $thread->{blobs}{$digest} or return;
        push @rows, map { { digest => $digest, value_type => $blob->{type}, part => $_, parts => $blob->{count},
            %{ $blob->{parts}[$_] } } } 0 .. $blob->{count} - 1;
    }
    my $from = $cursor // 0;
    my $until = $from + $self->{part_size};
    return ({ blobs => [ grep { $_ } @rows[ $from .. ($until < @rows ? $until : scalar @rows) - 1 ] ] },
        $until < @rows ? "$until" : undef);
}

# --- The store ---------------------------------------------------------------

sub store {
    my ($self, $thread, $args) = @_;
    die "more than 1,000 operations or results\n" if grep { $_ > 1000 } scalar @{ $args->{ops} }, map { $_->{limit} // 0 } @{ $args->{ops} };
    my @results = map { $_->{op} eq 'put' ? undef : $self->can("store_$_->{op}")->($self, $_) } @{ $args->{ops} };
    for my $op (grep { $_->{op} eq 'put' } @{ $args->{ops} }) {
        my $key = $json->encode([ @{$op}{qw(namespace key)} ]);
        if (defined $op->{value}) {
            $self->{items}{$key} = { %{$op}{qw(namespace key value)}, created_at => '2026-11-23T00:00:00Z',
                updated_at => '2026-11-23T00:00:00Z' };
        }
        else {
            delete $self->{items}{$key};
        }
    }
    return { results => \@results };
}

sub store_get {
    my ($self, $op) = @_;
    return $self->{items}{ $json->encode([ @{$op}{qw(namespace key)} ]) };
}

sub starts_with {
    my ($list, $prefix) = @_;
    return @{$list} >= @{$prefix} && !grep { $prefix->[$_] ne '*' && $list->[$_] ne $prefix->[$_] } 0 .. $#{$prefix};
}

sub store_search {
    my ($self, $op) = @_;
    my @found = grep { starts_with($_->{namespace}, $op->{namespace_prefix})
        && has_members($_->{value}, $op->{filter} || {}) } map { $self->{items}{$_} } sort keys %{ $self->{items} };
    splice @found, 0, $op->{offset} // 0;
    my @part = splice @found, 0, $op->{limit} // 10;
    return { items => [ map { { %{$_}, score => undef } } @part ] };
}

sub store_list {
    my ($self, $op) = @_;
    my %found;
    for my $item (values %{ $self->{items} }) {
        my @labels = @{ $item->{namespace} };
        next if !starts_with(\@labels, $op->{prefix} || []);
        next if !starts_with([ reverse @labels ], [ reverse @{ $op->{suffix} || [] } ]);
        splice @labels, $op->{max_depth} if defined $op->{max_depth} && @labels > $op->{max_depth};
        $found{ $json->encode(\@labels) } = [@labels];
    }
    my @names = map { $found{$_} } sort keys %found;
    splice @names, 0, $op->{offset} // 0;
    return { namespaces => [ splice @names, 0, $op->{limit} // 100 ] };
}

1;
