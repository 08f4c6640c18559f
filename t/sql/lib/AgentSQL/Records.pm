# SPDX-License-Identifier: Apache-2.0
# Records of a graph's library: one worker saves and reads them, in threads of one deployment.
package AgentSQL::Records;

use strict;
use warnings;

use Exporter qw(import);
use List::Util qw(uniq);
use MIME::Base64 qw(decode_base64);
use AgentSQL;
use AgentSQL::Play;

our @EXPORT_OK = qw(list leased finish value_of saved count_of read_part tuple_of blobs_of values_of orphans sweep
    set_deletion_bytes prune left_of);

my ($play, $session, $worker);

# (database, client and worker as AgentSQL::Play, id of the worker): a new database, which the functions below use.
sub start {
    my $db = AgentSQL->new;
    $play = AgentSQL::Play->new($db->session);
    $session = $play->session;
    $worker = $play->worker;
    return ($db, $play, $worker);
}

sub list {
    my ($keep, @digests) = @_;
    return { list => { keep => $keep, items => \@digests } };
}

sub leased { return $play->leased($worker, $_[0] // $play->thread) }
sub finish { return $play->save($worker, map { AgentSQL::Play::finish($_) } @_) }

# The digest of a text, whose blob is added to the batch.
sub value_of {
    my ($claim, $batch, $text) = @_;
    my ($digest, $item) = AgentSQL::Play::blob($claim, $text);
    push @$batch, $item;
    return $digest;
}

# Saves a snapshot whose channels are texts, or [keep, texts], and returns its id. An unchanged channel is not named.
sub saved {
    my ($claim, $parent, %with) = @_;
    my ($id, @batch, %channels) = ($with{id} // AgentSQL::uuid());
    my $values = $with{values} // {};
    for my $name (sort keys %$values) {
        my $value = $values->{$name};
        if (ref $value) {
            my ($keep, @texts) = @$value;
            $channels{$name} = list($keep, map { value_of($claim, \@batch, $_) } @texts);
        } else {
            $channels{$name} = defined $value ? value_of($claim, \@batch, $value) : undef;
        }
    }
    $play->save($worker, @batch, AgentSQL::Play::put($claim, %with, id => $id, parent => $parent, channels => \%channels));
    return $id;
}

sub count_of {
    my ($table, $thread) = @_;
    return $session->value("select count(*) from agent.$table where thread_id = '$thread'");
}

# Calls a read function: (code, decoded body, cursor).
sub read_part {
    my ($function, $thread, $args, $cursor, $bytes) = @_;
    my ($row) = $session->query(sprintf("select code, body, cursor from agent.%s('%s', '%s', %s, %s, %d)", $function,
        $play->deployment, $thread, AgentSQL::Session::literal(AgentSQL::encode($args)),
        AgentSQL::Session::literal($cursor), $bytes // 1_000_000));
    my ($code, $body, $next) = @$row;
    die 'a part is more than one line' if $body =~ /[\r\n]/;
    return ($code, $code eq 'ok' ? AgentSQL::decode($body) : undef, $next eq '' ? undef : $next);
}

# A snapshot read in parts: {tuple, channels, writes} and the number of parts; undef for none.
sub tuple_of {
    my ($thread, $ns, $id, $bytes) = @_;
    my (%got, $cursor, $parts);
    do {
        (my $code, my $body, $cursor) = read_part('read_checkpoint', $thread, { ns => $ns, checkpoint_id => $id }, $cursor, $bytes);
        die "read_checkpoint: $code" if $code ne 'ok';
        return if exists $body->{tuple} && !$body->{tuple};
        $got{tuple} = $body->{tuple} if $body->{tuple};
        push @{ $got{writes} }, @{ $body->{writes} // [] };
        for my $name (keys %{ $body->{channels} // {} }) {
            my $value = $body->{channels}{$name};
            if (ref $value) {
                die "a list continues at $value->{list}{keep}" if $value->{list}{keep} != @{ $got{channels}{$name} // [] };
                push @{ $got{channels}{$name} }, @{ $value->{list}{items} };
            } else {
                $got{channels}{$name} = $value;
            }
        }
        $parts++;
    } while (defined $cursor);
    return wantarray ? (\%got, $parts) : \%got;
}

# The contents of blobs by digest.
sub blobs_of {
    my ($thread, $digests, $bytes) = @_;
    my (%text, $cursor, $parts);
    do {
        (my $code, my $body, $cursor) = read_part('read_blobs', $thread, { digests => $digests }, $cursor, $bytes);
        die "read_blobs: $code" if $code ne 'ok';
        for my $blob (@{ $body->{blobs} }) {
            $text{ $blob->{digest} } .= exists $blob->{text} ? $blob->{text} : decode_base64($blob->{base64});
        }
        $parts++;
    } while (defined $cursor);
    return wantarray ? (\%text, $parts) : \%text;
}

# The values of a snapshot: texts by channel, lists as arrays.
sub values_of {
    my ($thread, $id, $ns, $bytes) = @_;
    my $channels = tuple_of($thread, $ns // '', $id, $bytes)->{channels};
    my @digests = uniq grep { defined } map { ref ? @$_ : $_ } values %$channels;
    my $text = @digests ? blobs_of($thread, \@digests, $bytes) : {};
    return { map { my $v = $channels->{$_}; ($_ => ref $v ? [ map { $text->{$_} } @$v ] : defined $v ? $text->{$v} : undef) } keys %$channels };
}

# Rows of a thread that nothing refers to, and blobs whose count of uses is wrong.
sub orphans {
    my ($thread) = @_;
    return $session->value("
        with used as (
            select d.digest, count(*) as uses
              from (select (translate('{' || content || '}', '\"', ''))::uuid[] as digests from agent.checkpoint_items
                     where thread_id = '$thread' and is_digests
                    union all
                    select digests from agent.checkpoint_writes where thread_id = '$thread') r, unnest(r.digests) d (digest)
             group by d.digest
        )
        select (select count(*) from agent.checkpoint_items i where thread_id = '$thread' and not exists (
                    select from (select thread_id, channels from agent.checkpoint_snapshots
                                 union all select thread_id, channels from agent.checkpoints) c,
                           unnest(c.channels) v, unnest(v.list_ids, v.ends) s (list_id, until)
                     where c.thread_id = i.thread_id and s.list_id = i.list_id and i.position < s.until))
               + (select count(*) from agent.checkpoint_blobs b left join used u using (digest)
                   where b.thread_id = '$thread' and b.part = 0 and b.uses <> coalesce(u.uses, 0))
               + (select count(*) from used u where not exists (
                    select from agent.checkpoint_blobs b where b.thread_id = '$thread' and b.digest = u.digest))");
}

# All sweeps, each call two minutes after the last one.
my $minutes = 0;

sub sweep {
    $minutes += 2;
    $session->query("set agent.now = '" . $session->value("select now() + interval '$minutes minutes'") . "'");
    my $count = 0;
    $count++ while $session->value('select agent.sweep_state()');
    $session->query('reset agent.now');
    return $count;
}

# The most that one transaction deletes from now on; 4,000,000 as installed.
sub set_deletion_bytes {
    my ($bytes) = @_;
    return $session->query(
        "create or replace function agent.deletion_bytes() returns bigint language sql immutable parallel safe as 'select ${bytes}::bigint'");
}

# Prunes a thread: the number of calls; between is called after each piece.
sub prune {
    my ($thread, $between) = @_;
    my ($calls, $cursor) = (0);
    do {
        my ($row) = $session->query(sprintf "select code, body from agent.prune_thread('%s', '%s', %s)",
            $play->deployment, $thread, AgentSQL::Session::literal($cursor));
        die "prune_thread: $row->[0]" if $row->[0] ne 'ok';
        $cursor = $row->[1] eq '' ? undef : $row->[1];
        $calls++;
        $between->() if $between;
    } while (defined $cursor);
    return $calls;
}

# The ids that a namespace has in a table.
sub left_of {
    my ($table, $thread, $ns) = @_;
    return [ map { $_->[0] } $session->query("select checkpoint_id from agent.$table
        where thread_id = '$thread' and checkpoint_ns = '" . ($ns // '') . "' order by checkpoint_id") ];
}

1;
