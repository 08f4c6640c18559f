# SPDX-License-Identifier: Apache-2.0
# A server that says in INFO that it is a Redis of some version, and OK to all else:
#
#   my $old = GroupTest::OldRedis->new('6.0.16'); $old->{port}
package GroupTest::OldRedis;
use strict;
use warnings;

use Carp qw(croak);
use IO::Socket::INET;
use POSIX ();

sub new {
    my ($class, $version) = @_;
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 64) // croak "listen: $@";
    my $self = bless { port => $listener->sockport, owner => $$ }, $class;
    $self->{pid} = fork // croak "fork: $!";
    if ($self->{pid} == 0) {
        local $SIG{CHLD} = 'IGNORE';
        while (my $client = $listener->accept) {
            my $pid = fork // next;
            next if $pid;
            answer($client, $version);
            POSIX::_exit(0);
        }
        POSIX::_exit(0);
    }
    return $self;
}

# Commands are arrays of texts without line ends, but for the script.
sub answer {
    my ($client, $version) = @_;
    while (defined(my $line = <$client>)) {
        my ($count) = $line =~ /\A\*(\d+)/ or return;
        my @words;
        for (1 .. $count) {
            my ($length) = (<$client> // '') =~ /\A\$(\d+)/ or return;
            read $client, my ($word), $length + 2 or return;
            push @words, $word;
        }
        my $info = "# Server\r\nredis_version:$version\r\n";
        print {$client} $words[0] =~ /\AINFO/i ? '$' . length($info) . "\r\n$info\r\n" : "+OK\r\n";
        $client->flush;
    }
    return;
}

sub DESTROY {
    my ($self) = @_;
    return if $self->{owner} != $$;
    local ($?, $!, $@);
    kill 'KILL', $self->{pid};
    waitpid $self->{pid}, 0;
    return;
}

1;
