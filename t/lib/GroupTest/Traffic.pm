# SPDX-License-Identifier: Apache-2.0
# Clients of the hosts of a region, each a process, and an exact log of the decisions by the
# monotonic clock, which all of them share. Each client sends bursts: to a random host, to
# random ones, or to each in turn. All paths have the same limit, each in its own interval.
#
#   my $traffic = GroupTest::Traffic->new(ports => \@ports, limit => 10, intervals => { '/ten' => 10 });
#   $traffic->start; $traffic->stop;      # any number of times
#   my $log = $traffic->log;              # of all clients since the last call
#   $traffic->most, $traffic->wrongful($log)
package GroupTest::Traffic;
use strict;
use warnings;

use AgentTest::Wait;
use Carp qw(croak);
use File::Temp qw(tempdir);
use IO::Socket::INET;
use POSIX ();
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC sleep);

my $CLIENTS = 4;
my $BURST = 12;
my $PAUSE_SEC = 0.15;
# Each is known to all hosts.
my @KEYS = qw(first second);

sub new {
    my ($class, %args) = @_;
    return bless { %args, dir => tempdir('/tmp/agent-test-traffic.XXXXXX', CLEANUP => 1), pids => [], admitted => {}, read => {}, owner => $$ }, $class;
}

sub start {
    my ($self) = @_;
    for my $client (1 .. $CLIENTS) {
        my $pid = fork // croak "fork: $!";
        if ($pid == 0) {
            $self->run($client);
            POSIX::_exit(0);
        }
        push @{ $self->{pids} }, $pid;
    }
    return;
}

# Each client ends with its burst.
sub stop {
    my ($self) = @_;
    kill 'TERM', @{ $self->{pids} };
    waitpid $_, 0 for splice @{ $self->{pids} };
    return;
}

sub DESTROY {
    my ($self) = @_;
    return if $self->{owner} != $$;
    local ($?, $!, $@);
    $self->stop;
    return;
}

# --- A client ----------------------------------------------------------------------

sub run {
    my ($self, $client) = @_;
    my $is_over = 0;
    local $SIG{TERM} = sub { $is_over = 1 };
    local $SIG{PIPE} = 'IGNORE';
    srand;
    open my $log, '>>', "$self->{dir}/$client" or croak "$self->{dir}: $!";
    $log->autoflush(1);
    my $hosts = @{ $self->{ports} };
    my @paths = sort keys %{ $self->{intervals} };
    my $turn = $client;
    # The test may be killed.
    while (!$is_over && getppid == $self->{owner}) {
        my $key = $KEYS[ rand @KEYS ];
        my $path = $paths[ rand @paths ];
        my $way = int rand 3;
        my $one = $way == 1 ? $turn++ % $hosts : int rand $hosts;
        for (1 .. $BURST) {
            my $host = $way == 0 ? int rand $hosts : $one;
            my $before = clock_gettime(CLOCK_MONOTONIC);
            my $status = request($self->{ports}[$host], $path, $key) // next;
            printf {$log} "%.6f %.6f %d %s %s %d\n", $before, clock_gettime(CLOCK_MONOTONIC), $host, $path, $key, $status != 429;
        }
        sleep $PAUSE_SEC;
    }
    return;
}

# Returns the status, undef without an answer.
sub request {
    my ($port, $path, $key) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") // return;
    my $answer = '';
    syswrite $socket, "GET $path HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: $key\r\nConnection: close\r\n\r\n";
    while ($answer !~ /\n/) {
        my $read = sysread $socket, $answer, 4096, length $answer;
        next if !defined $read && $!{EINTR};
        return if !$read;
    }
    return $answer =~ m{\AHTTP/1\.1 (\d+)} ? $1 : undef;
}

# --- The log -----------------------------------------------------------------------

sub log {
    my ($self) = @_;
    my @log;
    for my $client (1 .. $CLIENTS) {
        open my $file, '<', "$self->{dir}/$client" or next;
        seek $file, $self->{read}{$client} // 0, 0;
        while (my $line = <$file>) {
            my %decision;
            @decision{qw(before after host path key admitted)} = split ' ', $line;
            push @log, \%decision;
            push @{ $self->admitted(\%decision) }, \%decision if $decision{admitted};
        }
        $self->{read}{$client} = tell $file;
    }
    return \@log;
}

# All admissions, that were read, with the same path and key.
sub admitted {
    my ($self, $decision) = @_;
    return $self->{admitted}{"$decision->{path} $decision->{key}"} //= [];
}

# The most requests of a path and key, of all that were read, that were certainly admitted in
# one interval: sent and answered in it.
sub most {
    my ($self) = @_;
    my $most = 0;
    for my $admitted (values %{ $self->{admitted} }) {
        my @all = sort { $a->{before} <=> $b->{before} } @{$admitted};
        for my $i (0 .. $#all) {
            my $end = $all[$i]{before} + $self->{intervals}{ $all[$i]{path} };
            my $count = 0;
            for my $j ($i .. $#all) {
                last if $all[$j]{before} >= $end;
                $count++ if $all[$j]{after} < $end;
            }
            $most = $count if $count > $most;
        }
    }
    return $most;
}

# How many of the log were certainly refused wrongly: fewer than the limit can have been
# admitted in the interval before.
sub wrongful {
    my ($self, $log) = @_;
    my $wrongful = 0;
    for my $refused (grep { !$_->{admitted} } @{$log}) {
        my $since = $refused->{before} - $self->{intervals}{ $refused->{path} };
        my $count = grep { $_->{after} > $since && $_->{before} < $refused->{after} } @{ $self->admitted($refused) };
        $wrongful++ if $count < $self->{limit};
    }
    return $wrongful;
}

1;
