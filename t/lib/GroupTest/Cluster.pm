# SPDX-License-Identifier: Apache-2.0
# A Redis Cluster of three primaries, the first with a replica:
#
#   my $cluster = GroupTest::Cluster->new;
#   $cluster->url; $cluster->run(@words)    # at the node that has the key
#   $cluster->owner($key)                   # its GroupTest::Redis
#   my $move = $cluster->begin_move($key, $to); $move->() # in between the node answers ASK
package GroupTest::Cluster;
use strict;
use warnings;

use AgentTest::Env qw(free_port);
use AgentTest::Wait;
use Carp qw(croak);
use GroupTest::Redis;

my $SLOTS = 16_384;
my $PRIMARIES = 3;

sub new {
    my ($class) = @_;
    my $self = bless { nodes => [] }, $class;
    for (0 .. $PRIMARIES) {
        my $bus = free_port();
        push @{ $self->{nodes} }, GroupTest::Redis->new(bus => $bus, options => [ '--cluster-enabled', 'yes', '--cluster-port', $bus,
            '--cluster-node-timeout', '2000', '--cluster-require-full-coverage', 'no', '--cluster-allow-replica-migration', 'no' ]);
    }
    my @nodes = @{ $self->{nodes} };
    for my $i (0 .. $PRIMARIES - 1) {
        ok_reply($nodes[$i]->run('CLUSTER', 'ADDSLOTSRANGE', int($i * $SLOTS / $PRIMARIES), int(($i + 1) * $SLOTS / $PRIMARIES) - 1));
    }
    for my $i (1 .. $#nodes) {
        ok_reply($nodes[$i]->run('CLUSTER', 'SET-CONFIG-EPOCH', $i + 1));
        ok_reply($nodes[0]->run('CLUSTER', 'MEET', '127.0.0.1', $nodes[$i]{port}, $nodes[$i]{bus}));
    }
    $self->wait_for_state;
    ok_reply($nodes[-1]->run('CLUSTER', 'REPLICATE', id_of($nodes[0])));
    wait_for('the replica', sub { ($nodes[-1]->run('INFO', 'replication') // '') =~ /master_link_status:up/ });
    # Only a replica that the others know as one is elected.
    for my $node (@nodes) {
        wait_for('the nodes to know the replica', sub { ($node->run('CLUSTER', 'NODES') // '') =~ /:$nodes[-1]{port}\@\S+ (?:myself,)?slave/ });
    }
    return $self;
}

sub ok_reply {
    my ($reply) = @_;
    croak 'cluster: ' . ($reply // 'no reply') if ($reply // '') !~ /\A\+OK/;
    return;
}

sub id_of {
    my ($node) = @_;
    my ($id) = ($node->run('CLUSTER', 'MYID') // '') =~ /\r\n(\w+)/;
    return $id;
}

sub wait_for_state {
    my ($self) = @_;
    my $count = @{ $self->{nodes} };
    for my $node (@{ $self->{nodes} }) {
        wait_for('the cluster', sub { ($node->run('CLUSTER', 'INFO') // '') =~ /cluster_state:ok.*cluster_known_nodes:$count\b/s });
    }
    return;
}

sub url {
    my ($self) = @_;
    # Those of the first two nodes: the others are found.
    return 'redis+cluster://' . join ',', map { "127.0.0.1:$_->{port}" } @{ $self->{nodes} }[0, 1];
}

# Sends a command with a key, following redirections; the first node may be away.
sub run {
    my ($self, @words) = @_;
    for my $node (@{ $self->{nodes} }) {
        my $reply = $node->run(@words) // next;
        return $reply if $reply !~ /\A-MOVED \d+ \S+:(\d+)/;
        my $port = $1;
        my ($owner) = grep { $_->{port} == $port } @{ $self->{nodes} };
        $reply = $owner->run(@words);
        return $reply if defined $reply;
    }
    return;
}

sub slot {
    my ($self, $key) = @_;
    my ($slot) = $self->{nodes}[1]->run('CLUSTER', 'KEYSLOT', $key) =~ /:(\d+)/;
    return $slot;
}

# By the answer of the nodes: the owner has the slot. While they learn of a move from each
# other it may be none of them.
sub owner {
    my ($self, $key) = @_;
    return wait_for("an owner of $key", sub {
        my ($owner) = grep { ($_->run('EXISTS', $key) // '-') =~ /\A:/ } @{ $self->{nodes} };
        return $owner;
    });
}

# Moves the key's data to the node, as redis-cli does; the sub that is returned ends the
# move.
sub begin_move {
    my ($self, $key, $to) = @_;
    $self->wait_for_epochs;
    my ($from, $slot) = ($self->owner($key), $self->slot($key));
    ok_reply($to->run('CLUSTER', 'SETSLOT', $slot, 'IMPORTING', id_of($from)));
    ok_reply($from->run('CLUSTER', 'SETSLOT', $slot, 'MIGRATING', id_of($to)));
    $from->run('MIGRATE', '127.0.0.1', $to->{port}, $key, 0, 5000);
    return sub {
        my @words = ('CLUSTER', 'SETSLOT', $slot, 'NODE', id_of($to));
        ok_reply($_->run(@words)) for $to, $from;
        # The others too, except for replicas and nodes that are away.
        $_->run(@words) for grep { $_ != $to && $_ != $from } @{ $self->{nodes} };
        wait_for("all nodes to know the owner of $key", sub { $self->is_owner($key, $to) });
        $self->wait_for_epochs;
    };
}

# The new owner takes a configuration epoch by itself, later than all that it knows. If it
# does not know that of another primary, nodes that do not know of the move make the former
# owner the owner again: the slot has none then, since that one sends all calls to the new one.
sub wait_for_epochs {
    my ($self) = @_;
    wait_for('all nodes to know the configuration epochs of all', sub {
        my %seen;
        for my $node (@{ $self->{nodes} }) {
            my $reply = $node->run('CLUSTER', 'NODES') // next;
            my @primaries = grep { $_->[2] =~ /\bmaster\b/ && $_->[2] !~ /fail/ } map { [split] } grep { /\A\w{40} / } split /\n/, $reply;
            my %epochs = map { $_->[6] => 1 } @primaries;
            return 0 if keys %epochs != @primaries;
            $seen{ join ' ', sort map { "$_->[0]:$_->[6]" } @primaries } = 1;
        }
        return keys %seen == 1;
    });
    return;
}

# Whether all nodes that answer say so.
sub is_owner {
    my ($self, $key, $owner) = @_;
    for my $node (@{ $self->{nodes} }) {
        my $reply = $node->run('EXISTS', $key) // next;
        return 0 if $reply !~ ($node == $owner ? qr/\A:/ : qr/\A-MOVED \d+ \S+:$owner->{port}\r/);
    }
    return 1;
}

1;
