# SPDX-License-Identifier: Apache-2.0
# A proxy between a supervisor and PostgreSQL. On request it breaks the
# connection at one call of a function: before the server receives the call, or
# before the supervisor receives the result. Or it breaks all connections, and
# refuses new ones for a while.
package TestProxy;
use strict;
use warnings;
use AgentTest::Child;
use AgentTest::Wait;
use Carp qw(croak);
use File::Path qw(remove_tree);
use File::Temp qw(tempdir);
use IO::Select;
use IO::Socket::UNIX;

sub new {
    my ($class, $pg) = @_;
    my $dir = tempdir('/tmp/agent-test-px.XXXXXX', CLEANUP => 0);
    chmod 0755, $dir or croak "$dir: $!";
    my $self = bless { dir => $dir, owner => $$ }, $class;
    my $path = "$dir/.s.PGSQL.5432";
    my $listener = IO::Socket::UNIX->new(Local => $path, Listen => 64) or croak "$path: $!";
    chmod 0777, $path or croak "$path: $!";
    $self->{child} = AgentTest::Child->new(sub { forward($listener, $pg->host . '/.s.PGSQL.5432', $dir) });
    return $self;
}

sub conninfo { return "host=$_[0]{dir} user=agent dbname=agent connect_timeout=30" }

# lose('request' | 'result', NAME, sub { causes the call } [, text]): loses that part of
# the next call of agent.NAME, and returns then. With a text: the next result that has it,
# since a worker also claims when there is nothing for it yet.
sub lose {
    my ($self, $part, $name, $cause, $text) = @_;
    open my $out, '>', "$self->{dir}/lose.new" or croak "$self->{dir}: $!";
    print {$out} "$part $name\0", $text // '';
    close $out or croak "$self->{dir}: $!";
    rename "$self->{dir}/lose.new", "$self->{dir}/lose" or croak "$self->{dir}: $!";
    $cause->();
    return wait_for("$part of $name to be lost", sub { !-e "$self->{dir}/lose" });
}

# Ends all connections, and refuses new ones until admit().
sub refuse {
    my ($self) = @_;
    open my $out, '>', "$self->{dir}/refuse" or croak "$self->{dir}: $!";
    close $out or croak "$self->{dir}: $!";
    # This one is ended after the others.
    my $last = IO::Socket::UNIX->new(Peer => "$self->{dir}/.s.PGSQL.5432") or croak "$self->{dir}: $!";
    return sysread $last, my ($none), 1;
}

sub admit {
    my ($self) = @_;
    return unlink("$self->{dir}/refuse") || croak "$self->{dir}: $!";
}

sub forward {
    my ($listener, $server_path, $dir) = @_;
    my $lose = "$dir/lose";
    my $select = IO::Select->new($listener);
    my (%peer, %is_client, %is_lost);
    while (my @ready = $select->can_read) {
        for my $socket (@ready) {
            if ($socket == $listener) {
                my $client = $listener->accept or next;
                if (-e "$dir/refuse") {
                    close $_ for values %peer;
                    %peer = %is_client = %is_lost = ();
                    $select = IO::Select->new($listener);
                    last;
                }
                my $server = IO::Socket::UNIX->new(Peer => $server_path) or next;
                @peer{ $client, $server } = ($server, $client);
                $is_client{$client} = 1;
                $select->add($client, $server);
                next;
            }
            my $peer = $peer{$socket} or next;
            my $got = sysread $socket, my $bytes, 65536;
            my $cut = $is_lost{$socket} && index($bytes, (wanted($lose))[1]) >= 0;
            # The text of a statement, or the name of a prepared one.
            if ($got && $is_client{$socket} && $bytes =~ /agent\.(\w+)\(|\0agent_(\w+)\0/) {
                my $function = $1 // $2;
                $is_lost{$peer} = 1 if (wanted($lose))[0] eq "result $function";
                $cut = 1 if (wanted($lose))[0] eq "request $function";
            }
            if (!$got || $cut) {
                unlink $lose if $cut;
                $select->remove($socket, $peer);
                delete @peer{ $socket, $peer };
                delete @is_lost{ $socket, $peer };
                close $_ for $socket, $peer;
                next;
            }
            syswrite_all($peer, $bytes);
        }
    }
    return;
}

# (part and name, text); of what was lost already: neither.
sub wanted {
    my ($file) = @_;
    open my $in, '<', $file or return ('', 'nothing');
    return split /\0/, scalar <$in>, 2;
}

sub syswrite_all {
    my ($socket, $bytes) = @_;
    local $SIG{PIPE} = 'IGNORE';
    while (length $bytes) {
        my $put = syswrite $socket, $bytes or return;
        substr $bytes, 0, $put, '';
    }
    return;
}

sub DESTROY {
    my ($self) = @_;
    return if $self->{owner} != $$;
    local ($?, $@, $!);
    delete $self->{child};
    remove_tree($self->{dir});
    return;
}

1;
