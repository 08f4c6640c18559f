# SPDX-License-Identifier: Apache-2.0
# Reloads of hosts with a store: another table while the store is away, and the lines of the
# store removed and put back.
use strict;
use warnings;
use AgentTest::Process;
use AgentTest::Wait;
use RateLimitTest;
use GroupTest;
use IO::Socket::INET;
use Test::More;

my $rules = "RateLimitRegion us\nRateLimitRule ten =/ten key=api-key us=10/10\n";
my $region = GroupTest->new(hosts => 2, rules => "RateLimitRule ten =/ten key=api-key us=10/10\n")->start;
my ($host, $other) = @{ $region->{hosts} };
my $store = <<"CONF";
RateLimitStore redis://127.0.0.1:$region->{redis}{port}
RateLimitStoreHosts 2
RateLimitStoreTimeout 1s
CONF

# Returns the children of before.
sub reload {
    my ($server, $config) = @_;
    my @old = httpd_children($server->httpd_pid);
    my %old = map { $_ => 1 } @old;
    $server->configure($config);
    my ($status, $output) = $server->control('-k', 'graceful');
    $status == 0 or BAIL_OUT $output;
    # Those of before accept no connection once new ones have begun.
    wait_for('new children', sub { 2 <= grep { !$old{$_} } httpd_children($server->httpd_pid) });
    return @old;
}

sub wait_for_end {
    my ($server, @old) = @_;
    my %old = map { $_ => 1 } @old;
    wait_for('the end of the children of before', sub { !grep { $old{$_} } httpd_children($server->httpd_pid) });
    return;
}

# --- The lines of the store ----------------------------------------------------------

for my $server ($host, $other) {
    wait_for_end($server, reload($server, $rules));
}
is scalar(grep { $region->send(0, '/ten', 'back') } 1 .. 12), 10, 'without the lines of the store a host admits N by itself';
for my $server ($host, $other) {
    wait_for_end($server, reload($server, $rules . $store));
}
wait_for('admissions by the store', sub { $region->send($_, '/ten', 'back') for 0, 1; @{ $region->{log}{'/ten back'} } >= 15 });
cmp_ok $region->most('/ten', 'back', 10), '<=', 10, 'once they are put back the store grants nothing while these admissions count';

# --- Another table -------------------------------------------------------------------

$region->{redis}->stop;
wait_for('the share of a host', sub { $region->send(0, '/ten', 'probe') });
# A request of which the children of before have the first half.
my @halves = map {
    my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$host->{port}") // BAIL_OUT "connect: $@";
    syswrite $socket, "GET /ten HTTP/1.1\r\nHost: localhost\r\n";
    $socket;
} 1 .. 8;
my @old = reload($host, "RateLimitTable 131072\n$rules$store");
my $admitted = 0;
for my $socket (@halves) {
    my $answer = '';
    syswrite $socket, "X-Api-Key: half\r\nConnection: close\r\n\r\n";
    while ($answer !~ /\n/ && sysread $socket, $answer, 4096, length $answer) { }
    $admitted += $answer =~ m{\AHTTP/1\.1 (?!429)};
}
is $admitted, 0, 'children with the table of before admit nothing of the share';
wait_for('the share of the host', sub { $region->send(0, '/ten', 'half') });
$region->send(0, '/ten', 'half') for 1 .. 8;
cmp_ok $region->most('/ten', 'half', 10), '<=', 5, 'children with another table admit the share once';

done_testing;
