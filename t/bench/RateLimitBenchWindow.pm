# SPDX-License-Identifier: Apache-2.0
# The most requests that a limiter of 10 per 10 s admits in any interval of 10 s
# from adverse clients. All limiters are tested at once, each with two clients of
# its own, which go to its ports in turn.
package RateLimitBenchWindow;
use strict;
use warnings;
use BenchHttp;
use Exporter 'import';
use POSIX ();
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC sleep);

our @EXPORT_OK = qw(most_admitted);

my $INTERVAL_SEC = 10;
my $BURST = 20;

# The times of a client's requests, in seconds from its start.
my %PATTERN = (
    # One request opens a window, a burst follows before it ends and another
    # after it: the worst case of fixed windows.
    border => [ 0, (9.7) x $BURST, (10.3) x $BURST, (19.7) x $BURST,
        (20.3) x $BURST ],
    # A burst, then a steady rate: the worst case of token buckets.
    trickle => [ (0) x $BURST, map { $_ / 20 } 1 .. 460 ],
);

# {kind => {border => n, trickle => n}} for {kind => server}, a RateLimitBenchServer or alike; a
# server with the method window_delay has its clients start after so many seconds.
sub most_admitted {
    my ($servers) = @_;
    my @clients;
    for my $kind (sort keys %{$servers}) {
        push @clients, map { { kind => $kind, pattern => $_,
            from => start_client($servers->{$kind}, $_) } }
            sort keys %PATTERN;
    }
    my %most;
    for my $client (@clients) {
        my $from = $client->{from};
        my @times = map { [ split ' ' ] } readline $from;
        close $from or die "the client of $client->{kind} failed\n";
        $most{ $client->{kind} }{ $client->{pattern} } = most_of(@times);
    }
    return \%most;
}

# A process that prints the times of sending and response of each admitted
# request.
sub start_client {
    my ($server, $pattern) = @_;
    my $pid = open(my $from, '-|') // die "fork: $!\n";
    return $from if $pid;
    my $ok = eval { run_client($server, $pattern); 1 };
    print {*STDERR} $@ if !$ok;
    close STDOUT;
    # The parent stops the servers.
    POSIX::_exit($ok ? 0 : 1);
}

sub run_client {
    my ($server, $pattern) = @_;
    sleep $server->window_delay if $server->can('window_delay');
    my @clients = map { BenchHttp->new($_) } @{ $server->ports };
    my $text = $server->window_request($pattern);
    my $start = clock_gettime(CLOCK_MONOTONIC);
    for my $at (@{ $PATTERN{$pattern} }) {
        my $early = $start + $at - clock_gettime(CLOCK_MONOTONIC);
        sleep $early if $early > 0;
        my $sent = clock_gettime(CLOCK_MONOTONIC);
        my $status = $clients[0]->call($text)->{status};
        push @clients, shift @clients;
        my $answered = clock_gettime(CLOCK_MONOTONIC);
        die "status $status\n" if $status != 200 && $status != 429;
        printf "%.6f %.6f\n", $sent, $answered if $status == 200;
    }
    return;
}

# The decision fell between sending and response: counts the requests that were
# certainly less than the interval apart.
sub most_of {
    my (@times) = @_;
    my $most = 0;
    for my $first (0 .. $#times) {
        my $count = grep { $_->[1] - $times[$first][0] < $INTERVAL_SEC }
            @times[ $first .. $#times ];
        $most = $count if $count > $most;
    }
    return $most;
}

1;
