# SPDX-License-Identifier: Apache-2.0
# The records of graph libraries, and the items of their store, in memory: what
# the server keeps for runners of applications. Takes lines of a runner, dies when the
# supervisor would refuse one, and answers its requests as PROTOCOL.md says.
package RecordStore;
use strict;
use warnings;
use Cpanel::JSON::XS;
use Digest::SHA qw(sha256_hex);
use Encode qw(encode);
use MIME::Base64 qw(decode_base64);

my $json = Cpanel::JSON::XS->new->utf8->canonical->allow_nonref;

# parts: in how many parts a reply comes, if there is enough of it; by default in one.
sub new {
    my ($class, %args) = @_;
    return bless { parts => 1, threads => {}, runs => {}, items => {}, %args }, $class;
}

sub thread {
    my ($self, $id) = @_;
    return $self->{threads}{ $id // '' } ||= { blobs => {}, snapshots => {}, writes => {}, head => undef };
}

# An attempt of a run, or a call, begins: it reads and writes the records of its thread.
sub begin {
    my ($self, $message) = @_;
    $self->{runs}{ $message->{run_id} } = { is_exit => ($message->{durability} // '') eq 'exit', thread => $self->thread($message->{thread_id}), known => {}, put => {}, parts => {} };
    return;
}

# --- Lines of a runner -------------------------------------------------------

# Takes blob, put, put_writes and checkpoint.
sub take {
    my ($self, $line) = @_;
    my $take = $self->can("take_$line->{type}") or return;
    my $run = $self->{runs}{ $line->{run_id} } or die "$line->{type} of an unknown run\n";
    $take->($run, $line);
    return;
}

sub take_blob {
    my ($run, $line) = @_;
    die "a blob has a text and base64, or neither\n" if defined $line->{text} == defined $line->{base64};
    my $parts = $run->{parts}{ $line->{digest} } ||= [];
    die "the parts of $line->{digest} are out of order\n" if ($line->{part} // 0) != @{$parts};
    push @{$parts}, defined $line->{text} ? { text => $line->{text} } : { base64 => $line->{base64} };
    return if @{$parts} < ($line->{parts} // 1);
    die "the value $line->{digest} was sent before, or read\n" if $run->{known}{ $line->{digest} }++;
    my $blob = { type => $line->{value_type}, parts => delete $run->{parts}{ $line->{digest} } };
    check_digest($line->{digest}, $blob);
    $run->{thread}{blobs}{ $line->{digest} } = $blob;
    return;
}

sub check_digest {
    my ($digest, $blob) = @_;
    my @parts = map { defined $_->{text} ? encode('UTF-8', $_->{text}) : decode_base64($_->{base64}) } @{ $blob->{parts} };
    die "a part of more than 4 MiB\n" if grep { length > 4_194_304 } @parts;
    my $hex = substr sha256_hex(join '', "$blob->{type}\n", @parts), 0, 32;
    (my $given = $digest) =~ tr/-//d;
    die "the digest $digest is not that of its value\n" if $given ne $hex;
    return;
}

# The digests of a reference, after those that it keeps of another list.
sub digests_of {
    my ($run, $reference, $before) = @_;
    my @items = ref $reference ? @{ $reference->{list}{items} } : ($reference);
    for my $digest (@items) {
        die "a value that the run has neither sent nor read: $digest\n" if !$run->{known}{$digest};
    }
    return { digests => \@items } if !ref $reference;
    my $keep = $reference->{list}{keep};
    my @old = $before && $before->{is_list} ? @{ $before->{digests} } : ();
    die "a list keeps $keep elements of ${\ scalar @old}\n" if $keep > @old;
    return { is_list => 1, digests => [ @old[ 0 .. $keep - 1 ], @items ] };
}

sub take_put {
    my ($run, $line) = @_;
    my $snapshots = $run->{thread}{snapshots}{ $line->{ns} } ||= {};
    my $parent = defined $line->{parent}
        ? $snapshots->{ $line->{parent} } || die "the parent $line->{parent} was not put\n" : undef;
    my ($last) = reverse sort keys %{$snapshots};
    die "the id $line->{checkpoint_id} is not greater than $last\n"
        if defined $last && $line->{checkpoint_id} le $last;
    my %channels = $parent ? %{ $parent->{channels} } : ();
    while (my ($name, $reference) = each %{ $line->{channels} }) {
        my $value = defined $reference ? digests_of($run, $reference, $channels{$name}) : undef;
        if ($value) { $channels{$name} = $value } else { delete $channels{$name} }
    }
    $snapshots->{ $line->{checkpoint_id} } = { %{$line}{qw(ns checkpoint_id parent run_id checkpoint metadata)},
        channels => \%channels };
    $run->{put}{ $line->{ns} } = $line->{checkpoint_id};
    return;
}

sub take_put_writes {
    my ($run, $line) = @_;
    my $writes = $run->{thread}{writes}{ $line->{ns} }{ $line->{checkpoint_id} } ||= {};
    for my $write (@{ $line->{writes} }) {
        my ($index, $channel, $reference) = @{$write};
        my $key = "$line->{task_id} $index";
        next if $index >= 0 && $writes->{$key};
        $writes->{$key} = { task_id => $line->{task_id}, index => $index, channel => $channel,
            task_path => $line->{task_path}, run_id => $line->{run_id}, value => defined $reference ? digests_of($run, $reference) : undef };
    }
    return;
}

sub take_checkpoint {
    my ($run, $line) = @_;
    my ($thread, $ns) = ($run->{thread}, $line->{ns} // '');
    die "a checkpoint without its put\n" if !$thread->{snapshots}{$ns}{ $line->{checkpoint_id} };
    $thread->{head} = $line->{checkpoint_id} if $ns eq '';
    $thread->{checkpoints}{ $line->{checkpoint_id} } = $line;
    return;
}

# Whether a task of a run has stored answers or a question, or with durability exit a subgraph its checkpoint (PROTOCOL.md,
# `answered`).
sub has_answered {
    my ($self, $thread_id, $run_id) = @_;
    my $below = grep { $_->{ns} ne '' && $_->{run_id} eq $run_id } map { values %{$_} } values %{ $self->thread($thread_id)->{snapshots} };
    return 1 if $below && $self->{runs}{$run_id}{is_exit};
    return scalar grep { $_->{run_id} eq $run_id && $_->{channel} =~ /\A__(?:resume|interrupt)__\z/ && $_->{task_id} =~ /[^0-]/ }
        map { values %{$_} } map { values %{$_} } values %{ $self->thread($thread_id)->{writes} };
}

# --- Requests ----------------------------------------------------------------

# The reply to a request, without the members of the run.
sub answer {
    my ($self, $request) = @_;
    my %operations = ('checkpoint.get' => \&get, 'checkpoint.list' => \&list,
        'checkpoint.delta' => \&delta, 'blob.get' => \&blobs, store => \&store);
    my $operation = $operations{ $request->{op} }
        or return { ok => \0, error => { code => 'unknown_op', message => 'there is no such operation' } };
    my $run = $self->{runs}{ $request->{run_id} } or die "$request->{op} of an unknown run\n";
    my ($result, $cursor) = $operation->($self, $run, $request->{args}, $request->{cursor});
    return { ok => \0, error => { code => 'not_found', message => 'a value is gone' } } if !$result;
    return { ok => \1, result => $result, cursor => $cursor };
}

# page($items, $cursor): of the items of a reply those of the part at the cursor, as a
# list; and the cursor of the next part, or undef.
sub page {
    my ($self, $items, $cursor) = @_;
    my $from = $cursor // 0;
    my $until = $from + $self->part_of(scalar @{$items});
    return ([ @{$items}[ $from .. ($until < @{$items} ? $until : @{$items}) - 1 ] ], $until < @{$items} ? "$until" : undef);
}

# The number of items in one part, given that of all.
sub part_of {
    my ($self, $count) = @_;
    return int(($count + $self->{parts} - 1) / $self->{parts}) || 1;
}

# The reference to a value, which the run knows then.
sub reference_of {
    my ($run, $value) = @_;
    return if !$value;
    $run->{known}{$_} = 1 for @{ $value->{digests} };
    return $value->{is_list} ? { list => { keep => 0, items => $value->{digests} } } : $value->{digests}[0];
}

sub tuple_of {
    my ($snapshot) = @_;
    return { map { $_ => $snapshot->{$_} } qw(ns checkpoint_id parent run_id checkpoint metadata) };
}

# That checkpoint, or the last one of the namespace.
sub find {
    my ($run, $ns, $id) = @_;
    my $snapshots = $run->{thread}{snapshots}{$ns} || {};
    $id //= $run->{put}{$ns} // ($ns eq '' ? $run->{thread}{head} : (sort keys %{$snapshots})[-1]);
    return defined $id ? $snapshots->{$id} : undef;
}

# The writes to a checkpoint, in the order of their tasks.
sub writes_of {
    my ($run, $snapshot) = @_;
    return sort { $a->{task_id} cmp $b->{task_id} || $a->{index} <=> $b->{index} }
        values %{ $run->{thread}{writes}{ $snapshot->{ns} }{ $snapshot->{checkpoint_id} } || {} };
}

# Writes of checkpoint.get.
sub write_row {
    my ($run, $write) = @_;
    return [ $write->{task_id}, $write->{index}, $write->{channel}, reference_of($run, $write->{value}), @{$write}{qw(task_path run_id)} ];
}

sub get {
    my ($self, $run, $args, $cursor) = @_;
    my $snapshot = find($run, $args->{ns}, $args->{checkpoint_id}) or return { tuple => undef };
    my @rows = map { elements($_, reference_of($run, $snapshot->{channels}{$_})) } sort keys %{ $snapshot->{channels} };
    push @rows, map { [ undef, write_row($run, $_) ] } writes_of($run, $snapshot);
    my ($page, $next) = $self->page(\@rows, $cursor);
    my %result = (channels => {}, writes => []);
    $result{tuple} = tuple_of($snapshot) if !defined $cursor;
    for my $row (@{$page}) {
        my ($name, $value, $number) = @{$row};
        my $list = defined $number ? $result{channels}{$name} //= { list => { keep => $number, items => [] } } : undef;
        if ($list) { push @{ $list->{list}{items} }, @{$value} }
        elsif (defined $name) { $result{channels}{$name} = $value }
        else { push @{ $result{writes} }, $value }
    }
    return (\%result, $next);
}

# A row for a channel, or for each element of its list: name, value, number. An
# empty list has one without elements.
sub elements {
    my ($name, $reference) = @_;
    return [ $name, $reference ] if !ref $reference;
    my @items = @{ $reference->{list}{items} };
    return @items ? map { [ $name, [ $items[$_] ], $_ ] } 0 .. $#items : [ $name, [], 0 ];
}

# Whether an object has equal members.
sub has_members {
    my ($whole, $part) = @_;
    return !grep { !exists $whole->{$_} || $json->encode([ $whole->{$_} ]) ne $json->encode([ $part->{$_} ]) } keys %{$part};
}

sub list {
    my ($self, $run, $args) = @_;
    my @found;
    my $all = $run->{thread}{snapshots};
    for my $ns (reverse sort keys %{$all}) {
        next if defined $args->{ns} && $ns ne $args->{ns};
        push @found, map { $all->{$ns}{$_} } reverse sort keys %{ $all->{$ns} };
    }
    if (my $after = $args->{after}) {
        shift @found while @found && !($found[0]{ns} eq $after->{ns} && $found[0]{checkpoint_id} eq $after->{checkpoint_id});
        shift @found;
    }
    @found = grep { (!defined $args->{before} || $_->{checkpoint_id} lt $args->{before})
        && has_members($_->{metadata}, $args->{filter} || {}) } @found;
    splice @found, $args->{limit} if defined $args->{limit} && $args->{limit} < @found;
    my @part = splice @found, 0, $self->part_of(scalar @found);
    my $next = @found ? { ns => $part[-1]{ns}, checkpoint_id => $part[-1]{checkpoint_id} } : undef;
    return { tuples => [ map { tuple_of($_) } @part ], next => $next };
}

# The newest ancestors come first.
sub delta {
    my ($self, $run, $args, $cursor) = @_;
    my @ancestors;
    my $snapshot = find($run, @{$args}{qw(ns checkpoint_id)});
    my %open = map { $_ => 1 } @{ $args->{channels} };
    while (%open && $snapshot && defined $snapshot->{parent}) {
        $snapshot = find($run, $args->{ns}, $snapshot->{parent}) or last;
        my %of;
        my @writes = sort { $a->{task_path} cmp $b->{task_path} } writes_of($run, $snapshot);
        for my $write (grep { $open{ $_->{channel} } } @writes) {
            push @{ $of{ $write->{channel} }{writes} },
                [ $write->{task_id}, reference_of($run, $write->{value}), $write->{task_path}, $write->{index} ];
        }
        for my $name (grep { $open{$_} } keys %{ $snapshot->{channels} }) {
            $of{$name}{seed} = reference_of($run, $snapshot->{channels}{$name});
            delete $open{$name};
        }
        push @ancestors, \%of;
    }
    my ($page, $next) = $self->page(\@ancestors, $cursor);
    my %result = map { $_ => { writes => [] } } @{ $args->{channels} };
    for my $of (@{$page}) {
        for my $name (keys %{$of}) {
            unshift @{ $result{$name}{writes} }, @{ $of->{$name}{writes} // [] };
            $result{$name}{seed} = $of->{$name}{seed} if $of->{$name}{seed};
        }
    }
    return (\%result, $next);
}

sub blobs {
    my ($self, $run, $args, $cursor) = @_;
    die "a request has ${\ scalar @{ $args->{digests} }} digests\n" if @{ $args->{digests} } > 100;
    die "the arguments are too long\n" if length $json->encode($args) > 4096;
    my @rows;
    for my $digest (@{ $args->{digests} }) {
        my $blob = $run->{thread}{blobs}{$digest} or return;
        my @parts = @{ $blob->{parts} };
        push @rows, map { { digest => $digest, value_type => $blob->{type}, part => $_, parts => scalar @parts, %{ $parts[$_] } } } 0 .. $#parts;
    }
    my ($page, $next) = $self->page(\@rows, $cursor);
    return ({ blobs => $page }, $next);
}

# --- The store ---------------------------------------------------------------

sub store {
    my ($self, $run, $args) = @_;
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
