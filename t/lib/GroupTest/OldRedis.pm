# SPDX-License-Identifier: Apache-2.0
# A server that says in INFO that it is a Redis of some version, and OK to all else:
#
#   my $old = GroupTest::OldRedis->new('6.0.16'); $old->{port}
package GroupTest::OldRedis;
use strict;
use warnings;

use AgentTest::Child;
use Carp qw(croak);
use IO::Socket::INET;

sub new {
    my ($class, $version) = @_;
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 64) // croak "listen: $@";
    my $child = AgentTest::Child->serve($listener, sub { answer($_[0], $version) });
    return bless { port => $listener->sockport, child => $child }, $class;
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

1;
