# SPDX-License-Identifier: Apache-2.0
# The records of a graph library as the supervisor keeps them (PROTOCOL.md, "Records of
# the library"), in memory: takes blob, put and put_writes, answers the requests for
# them. Results come in two parts where they can.
package RecordHost;
use strict;
use warnings;
use Cpanel::JSON::XS;
use Digest::SHA qw(sha256_hex);
use MIME::Base64 qw(decode_base64);

my $json = Cpanel::JSON::XS->new->utf8->canonical->allow_nonref;

sub new { return bless { threads => {}, runs => {} }, shift }

# A run reads and writes the records of its thread.
sub begin {
    my ($self, $start) = @_;
    $self->{runs}{ $start->{run_id} } = {
        thread => $self->{threads}{ $start->{thread_id} // '' } //= { blobs => {}, ns => {} },
        known => {}, put => {}, parts => {} };
    return;
}

# A checkpoint of the root graph was shown: it is the head of the thread.
sub show {
    my ($self, $line) = @_;
    $self->{runs}{ $line->{run_id} }{thread}{head} = $line->{checkpoint_id} if !defined $line->{ns};
    return;
}

sub thread { my ($self, $id) = @_; return $self->{threads}{$id} }

# --- Records -------------------------------------------------------------------

# Takes a line; dies when the supervisor would refuse it.
sub take {
    my ($self, $line) = @_;
    my $run = $self->{runs}{ $line->{run_id} } or die "$line->{type} of an unknown run\n";
    my $take = { blob => \&take_blob, put => \&take_put, put_writes => \&take_writes }->{ $line->{type} };
    $take->($run, $line);
    return;
}

sub take_blob {
    my ($run, $line) = @_;
    my $parts = $run->{parts}{ $line->{digest} } //= [];
    die "part $line->{part} comes after part $#{$parts}\n" if ($line->{part} // 0) != @{$parts};
    my $bytes = defined $line->{base64} ? decode_base64($line->{base64}) : $line->{text};
    die "a part of more than 4 MiB\n" if length $bytes > 4_194_304;
    push @{$parts}, $bytes;
    return if @{$parts} < ($line->{parts} // 1);
    my $hex = sha256_hex("$line->{value_type}\n" . join '', @{$parts});
    $hex =~ s/\A(.{8})(.{4})(.{4})(.{4})(.{12}).*/$1-$2-$3-$4-$5/;
    die "the digest is $hex\n" if $hex ne $line->{digest};
    die "the value $hex was sent before\n" if $run->{known}{$hex}++;
    $run->{thread}{blobs}{$hex} = { type => $line->{value_type}, parts => delete $run->{parts}{$hex} };
    return;
}

# The digests of a reference, as a text or an array; dies on one of a value that is not there.
sub resolve {
    my ($run, $reference, $before) = @_;
    return if !defined $reference;
    my $list = ref $reference ? $reference->{list} : undef;
    my @items = $list ? @{ $list->{items} } : $reference;
    for (@items) { die "a value that the run has not sent: $_\n" if !$run->{known}{$_} }
    return $reference if !$list;
    die "more elements than the parent has\n" if $list->{keep} > @{ $before // [] };
    return [ @{ $before // [] }[ 0 .. $list->{keep} - 1 ], @items ];
}

sub take_put {
    my ($run, $line) = @_;
    my $space = $run->{thread}{ns}{ $line->{ns} } //= { checkpoints => {}, writes => {} };
    my $checkpoints = $space->{checkpoints};
    die "a checkpoint twice\n" if $checkpoints->{ $line->{checkpoint_id} };
    my $parent = defined $line->{parent} ? $checkpoints->{ $line->{parent} } : undef;
    die "an unknown parent\n" if defined $line->{parent} && !$parent;
    my %channels = %{ $parent ? $parent->{channels} : {} };
    for my $name (keys %{ $line->{channels} }) {
        my $new = resolve($run, $line->{channels}{$name}, ref $channels{$name} ? $channels{$name} : undef);
        if (defined $new) { $channels{$name} = $new } else { delete $channels{$name} }
    }
    $checkpoints->{ $line->{checkpoint_id} } = { own => [ grep { exists $channels{$_} } keys %{ $line->{channels} } ],
        channels => \%channels, map { $_ => $line->{$_} } qw(ns checkpoint_id parent checkpoint metadata run_id) };
    $run->{put}{ $line->{ns} } = $line->{checkpoint_id};
    return;
}

sub take_writes {
    my ($run, $line) = @_;
    my $space = $run->{thread}{ns}{ $line->{ns} } //= { checkpoints => {}, writes => {} };
    my $writes = $space->{writes}{ $line->{checkpoint_id} }{ $line->{task_id} } //= {};
    for (@{ $line->{writes} }) {
        my ($index, $channel, $reference) = @{$_};
        next if $index >= 0 && $writes->{$index};
        $writes->{$index} = [ $line->{task_id}, $index, $channel, resolve($run, $reference), $line->{task_path} ];
    }
    return;
}

# --- Requests -------------------------------------------------------------------

sub is_known { return $_[1] =~ /\A(?:checkpoint\.(?:get|list|delta)|blob\.get)\z/ }

# The reply to a request, as JSON text.
sub reply_line {
    my ($self, $request) = @_;
    my $run = $self->{runs}{ $request->{run_id} };
    my %answer = ('checkpoint.get' => \&get, 'checkpoint.list' => \&list, 'checkpoint.delta' => \&delta,
        'blob.get' => \&blobs);
    my ($result, $cursor) = $answer{ $request->{op} }->($run, $request->{args}, $request->{cursor});
    return $json->encode({ type => 'reply', (map { $_ => $request->{$_} } qw(run_id epoch id)), ok => \1,
        result => $result, cursor => $cursor }) . "\n";
}

sub reference {
    my ($run, $stored) = @_;
    $run->{known}{$_} = 1 for ref $stored ? @{$stored} : $stored // ();
    return ref $stored ? { list => { keep => 0, items => $stored } } : $stored;
}

sub sorted_writes {
    my ($space, $id) = @_;
    my @all = map { values %{$_} } values %{ $space->{writes}{$id} || {} };
    return sort { $a->[4] cmp $b->[4] || $a->[0] cmp $b->[0] || $a->[1] <=> $b->[1] } @all;
}

# As the server has them in a checkpoint.
sub writes_of {
    return sort { $a->[0] cmp $b->[0] || $a->[1] <=> $b->[1] } sorted_writes(@_);
}

sub tuple_of {
    my ($run, $space, $found) = @_;
    return {
        tuple => { map { $_ => $found->{$_} } qw(ns checkpoint_id parent run_id checkpoint metadata) },
        channels => { map { $_ => reference($run, $found->{channels}{$_}) } keys %{ $found->{channels} } },
        writes => [ map { [ @{$_}[ 0 .. 2 ], reference($run, $_->[3]), $_->[4] ] }
            writes_of($space, $found->{checkpoint_id}) ] };
}

# Half of each list and no writes, then the rest.
sub get {
    my ($run, $args, $cursor) = @_;
    my $space = $run->{thread}{ns}{ $args->{ns} } // { checkpoints => {} };
    my $last = $run->{put}{ $args->{ns} }
        // ($args->{ns} eq '' ? $run->{thread}{head} : (sort keys %{ $space->{checkpoints} })[-1]);
    my $found = $space->{checkpoints}{ $args->{checkpoint_id} // $last // '' } or return { tuple => undef };
    my $whole = tuple_of($run, $space, $found);
    my (%first, %second);
    for my $name (keys %{ $whole->{channels} }) {
        my $list = ref $whole->{channels}{$name} ? $whole->{channels}{$name}{list}{items} : undef;
        my $half = $list ? int(@{$list} / 2) : 0;
        $first{$name} = $half ? { list => { keep => 0, items => [ @{$list}[ 0 .. $half - 1 ] ] } } : $whole->{channels}{$name};
        $second{$name} = { list => { keep => $half, items => [ @{$list}[ $half .. $#{$list} ] ] } } if $half;
    }
    return { channels => \%second, writes => $whole->{writes} } if defined $cursor;
    return ({ tuple => $whole->{tuple}, channels => \%first }, '1');
}

sub has_members {
    my ($value, $part) = @_;
    return !grep { !exists $value->{$_} || $json->encode([ $value->{$_} ]) ne $json->encode([ $part->{$_} ]) } keys %{$part};
}

# At most two in a part.
sub list {
    my ($run, $args) = @_;
    my @found;
    for my $ns (reverse sort keys %{ $run->{thread}{ns} }) {
        next if defined $args->{ns} && $ns ne $args->{ns};
        my $space = $run->{thread}{ns}{$ns};
        for my $id (reverse sort keys %{ $space->{checkpoints} }) {
            next if defined $args->{before} && $id ge $args->{before};
            next if $args->{after} && ($ns gt $args->{after}{ns}
                || $ns eq $args->{after}{ns} && $id ge $args->{after}{checkpoint_id});
            next if $args->{filter} && !has_members($space->{checkpoints}{$id}{metadata}, $args->{filter});
            push @found, tuple_of($run, $space, $space->{checkpoints}{$id})->{tuple};
        }
    }
    my $limit = $args->{limit} // @found;
    my $has_more = @found > 2 && $limit > 2;
    @found = splice @found, 0, $limit < 2 ? $limit : 2;
    my $last = $has_more ? $found[-1] : undef;
    return { tuples => \@found, next => $last && { ns => $last->{ns}, checkpoint_id => $last->{checkpoint_id} } };
}

# A part for each ancestor: the newest first.
sub delta {
    my ($run, $args, $cursor) = @_;
    my $space = $run->{thread}{ns}{ $args->{ns} };
    my $checkpoints = $space->{checkpoints};
    my %wanted = map { $_ => 1 } @{ $args->{channels} };
    my @parts;
    for (my $id = ($checkpoints->{ $args->{checkpoint_id} } // {})->{parent}; defined $id;
        $id = $checkpoints->{$id}{parent}) {
        my %part;
        for my $write (sorted_writes($space, $id)) {
            my ($task, $index, $name, $stored, $path) = @{$write};
            push @{ $part{$name}{writes} }, [ $task, reference($run, $stored), $path, $index ] if $wanted{$name};
        }
        for my $name (grep { $wanted{$_} } keys %{ $checkpoints->{$id}{channels} }) {
            $part{$name}{seed} = reference($run, $checkpoints->{$id}{channels}{$name});
            delete $wanted{$name};
        }
        push @parts, \%part;
        last if !%wanted;
    }
    my $number = $cursor // 0;
    return ($parts[$number] // {}, $number < $#parts ? $number + 1 . '' : undef);
}

# Half of the values in each part.
sub blobs {
    my ($run, $args, $cursor) = @_;
    my @digests = @{ $args->{digests} };
    die "more than 100 digests\n" if @digests > 100;
    my $half = int(@digests / 2);
    my @wanted = defined $cursor ? @digests[ $half .. $#digests ] : $half ? @digests[ 0 .. $half - 1 ] : @digests;
    my @blobs;
    for my $digest (@wanted) {
        my $blob = $run->{thread}{blobs}{$digest} or die "an unknown value is read: $digest\n";
        my @parts = @{ $blob->{parts} };
        push @blobs, map { { digest => $digest, value_type => $blob->{type}, part => $_, parts => scalar @parts,
            base64 => MIME::Base64::encode_base64($parts[$_], '') } } 0 .. $#parts;
    }
    return ({ blobs => \@blobs }, $half && !defined $cursor ? '1' : undef);
}

1;
