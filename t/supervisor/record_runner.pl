#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# A runner whose runs send records of a graph library and request them, as their
# input says: {"first": [steps of the first attempt], "later": [...]}. A step is
# an array, a name in %steps and its arguments. A text "#NAME:TYPE:BYTES" stands
# for the digest of a value with content made from the name; the events of a run
# have such texts too.
use strict;
use warnings;
use Digest::SHA qw(sha256 sha256_hex);
use MIME::Base64 qw(decode_base64 encode_base64);
use ScriptedRunner;

my %names;

# ---- values ----

# Of type json text in UTF-8 with characters that JSON escapes, else any bytes.
sub bytes_of {
    my ($name, $type, $size) = split /:/, $_[0];
    my $bytes = join '', map { sha256("$name $_") } 0 .. $size / 32;
    $bytes = "\"\\\n\xc3\xa9\xf0\x9f\x98\x80" . unpack 'H*', $bytes if $type eq 'json';
    return substr $bytes, 0, $size;
}

sub digest_of_bytes { return sha256_hex("$_[0]\n$_[1]") =~ s/\A(.{8})(.{4})(.{4})(.{4})(.{12}).*/$1-$2-$3-$4-$5/r }

sub digest_of {
    my ($name) = @_;
    my $digest = digest_of_bytes((split /:/, $name)[1], bytes_of($name));
    $names{$digest} = "#$name";
    return $digest;
}

# Replaces texts in a value.
sub replace {
    my ($value, $code) = @_;
    return { map { $_ => replace($value->{$_}, $code) } keys %{$value} } if ref $value eq 'HASH';
    return [ map { replace($_, $code) } @{$value} ] if ref $value eq 'ARRAY';
    return defined $value && !ref $value ? $code->($value) : $value;
}

sub with_digests { return replace($_[0], sub { $_[0] =~ /\A#(.*)/ ? digest_of($1) : $_[0] }) }
sub with_names   { return replace($_[0], sub { $names{ $_[0] } // $_[0] }) }

# ---- lines ----

sub blob_line {
    my ($run, $name, $part, $parts, $bytes) = @_;
    my $type = (split /:/, $name)[1];
    utf8::decode($bytes) if $type eq 'json';
    return encode({ type => 'blob', run_id => $run->{run_id}, epoch => $run->{epoch}, digest => digest_of($name),
        value_type => $type, ($parts > 1 ? (part => $part, parts => $parts) : ()),
        $type eq 'json' ? (text => $bytes) : (base64 => encode_base64($bytes, '')) });
}

# ---- steps: true when the run waits ----

# A long line waits for its credit.
sub send_long {
    my ($run) = @_;
    my $line = $run->{long}[0] // return 0;
    if (length $line > 65_536) {
        send_of($run, type => 'want', bytes => 1 + length $line);
        return 1;
    }
    add_text(shift(@{ $run->{long} }) . "\n");
    return send_long($run);
}

sub blob {
    my ($run, $name, $parts) = @_;
    my $bytes = bytes_of($name);
    $parts //= 1;
    my $size = int((length($bytes) + $parts - 1) / $parts);
    $run->{long} = [ map { blob_line($run, $name, $_, $parts, substr $bytes, $_ * $size, $size) } 0 .. $parts - 1 ];
    return send_long($run);
}

sub request {
    my ($run, $op, $args, $cursor) = @_;
    $run->{asked} = [ $op, $args ];
    send_of($run, type => 'request', id => ++$run->{requests}, op => $op, args => with_digests($args), cursor => $cursor);
    return 1;
}

sub end { end_run($_[0]); return 1 }

my %steps = (
    blob => \&blob,
    request => \&request,
    end => \&end,
    event => \&event,
    # Sends a line; `ack` waits for the reply with that number.
    send => sub { my ($run, %members) = @_; send_of($run, %{ with_digests(\%members) }); return 0 },
    ack => sub { my ($run, $id, %members) = @_; send_of($run, %{ with_digests(\%members) }, ack => $id); $run->{ack} = $id; return 1 },
    # Waits until the gate is opened; so does the whole runner.
    gate => sub { my ($run, $path) = @_; flush(); open my $gate, '<', $path or die "$path: $!\n"; readline $gate; return 0 },
    die => sub { flush(); exit 1 },
    mute => sub { flush(); sleep 3600 while 1 },
);

sub proceed {
    my ($run) = @_;
    while (my $step = shift @{ $run->{steps} }) {
        my ($name, @args) = @{$step};
        my $waits = $steps{$name}->($run, @args);
        return if $waits;
    }
    return end($run);
}

# ---- replies ----

# Joins the parts of values, and compares each with its digest.
sub check_blobs {
    my ($run, $blobs) = @_;
    my %seen;
    for my $blob (@{$blobs}) {
        my $value = $run->{values}{ $blob->{digest} } //= { type => $blob->{value_type}, bytes => '', parts => 0 };
        die "part $blob->{part}\n" if ($blob->{part} // 0) != $value->{parts};
        my $bytes = $blob->{text};
        utf8::encode($bytes) if defined $bytes;
        $value->{bytes} .= $bytes // decode_base64($blob->{base64});
        next if ++$value->{parts} < ($blob->{parts} // 1);
        $seen{ $names{ $blob->{digest} } // $blob->{digest} } =
            digest_of_bytes($value->{type}, $value->{bytes}) eq $blob->{digest} ? $value->{type} : 'damaged';
        delete $run->{values}{ $blob->{digest} };
    }
    return \%seen;
}

# Adds a part of a checkpoint to those before it: a list continues where it ended.
sub merge_checkpoint {
    my ($whole, $part) = @_;
    $whole->{tuple} = $part->{tuple} if exists $part->{tuple};
    push @{ $whole->{writes} }, @{ $part->{writes} // [] };
    while (my ($name, $ref) = each %{ $part->{channels} // {} }) {
        my $known = $whole->{channels}{$name};
        if ($known) {
            die "$name: $ref->{list}{keep}\n" if $ref->{list}{keep} != @{ $known->{list}{items} };
            push @{ $known->{list}{items} }, @{ $ref->{list}{items} };
        }
        $whole->{channels}{$name} //= $ref;
    }
    return $whole;
}

sub take_reply {
    my ($reply) = @_;
    print {*STDERR} "reply $reply->{id}\n";
    my $run = run_of($reply) or return;
    if (defined $run->{ack} && $reply->{id} == $run->{ack}) {
        delete $run->{ack};
        return proceed($run);
    }
    return if !$run->{asked};
    my ($op, $args) = @{ delete $run->{asked} };
    my %data = (op => $op, length => $reply->{length});
    if    (!$reply->{ok}) { $data{code} = $reply->{error}{code} }
    elsif ($op eq 'blob.get') { $data{blobs} = check_blobs($run, $reply->{result}{blobs}) }
    elsif ($op eq 'checkpoint.get') { $run->{whole} = merge_checkpoint($run->{whole} // {}, $reply->{result}) }
    else { $data{result} = with_names($reply->{result}) }
    $data{result} = with_names(delete $run->{whole}) if $run->{whole} && !defined $reply->{cursor};
    event($run, \%data);
    return request($run, $op, $args, $reply->{cursor}) if defined $reply->{cursor};
    return proceed($run);
}

STDERR->autoflush(1);
serve(
    hello => sub {
        my $limits = $_[0]{limits};
        die "limits\n" if $limits->{line} != 8_388_608 || $limits->{blob_part} != 4_194_304;
    },
    start => sub {
        my ($run) = @_;
        # The names of values that an earlier process has sent.
        with_digests($run->{input}) if $run->{attempt} > 1;
        $run->{steps} = $run->{input}{ $run->{attempt} > 1 ? 'later' : 'first' } // [];
        proceed($run);
    },
    go => sub {
        my $run = run_of($_[0]) or return;
        add_text(shift(@{ $run->{long} }) . "\n");
        proceed($run) if !send_long($run);
    },
    reply => \&take_reply,
);
