# SPDX-License-Identifier: Apache-2.0
# The rules of mod_ratelimit_regional/protocol in a simulation with faults: hosts that are slow,
# cut off, killed or stopped, calls that are lost, late or repeated, servers that lose their data
# or whose clock is set, two servers that both answer, hosts that lose their marks or return to a store that has kept
# its data, all together or one before the others, and the loss of the store and all hosts at once, with clocks that differ by up to 1/512.
use strict;
use warnings;
use AgentTest::Env qw(build_dir);
use Test::More;

my $program = build_dir() . '/bench/ratelimit_group';

# The numbers that the simulation prints.
sub simulate {
    my (@options) = @_;
    open my $from, '-|', $program, @options or die "$program: $!\n";
    my $text = do { local $/; <$from> };
    close $from;
    my ($over, $wrongful, $late_ms) = $text =~ /over-admissions (\d+)  wrongful refusals ([\d.]+).*until ([\d.]+) ms/s
        or die "$program @options: $text\n";
    my ($admitted, $local) = $text =~ /admitted (\d+) local (\d+)/;
    return { text => $text, over => $over, wrongful => $wrongful, late_ms => $late_ms, admitted => $admitted, local => $local };
}

my ($admitted, $local, @over) = (0, 0);
for my $seed (1 .. 48) {
    my $result = simulate("seed=$seed", 'seconds=400', 'rate=200', 'hosts=' . (2 + $seed % 4),
        'faults=' . (3 + 5 * ($seed % 4)), 'stops=' . (0, 2, 20)[ $seed % 3 ], 'share=' . (0, 20, 60, 3600)[ $seed % 4 ]);
    push @over, $result->{text} if $result->{over} > 0;
    $admitted += $result->{admitted};
    $local += $result->{local};
}
is "@over", '', 'never more than N in any T over all hosts, through faults of hosts, network and store';
cmp_ok $admitted, '>', 100_000, 'requests were admitted in between';
cmp_ok $local, '>', 1000, 'hosts that were cut off admitted their share';

# Minutes without other faults: another host gets the number of one that is cut off, and is cut off
# before or after its base; hellos alone arrive; marks are lost, and then the store's data.
my ($rare_local, @rare_over) = (0);
for my $seed (1 .. 36) {
    my $result = simulate("seed=$seed", 'seconds=20000', 'rate=20', 'keys=40', 'rare=1', 'hosts=' . (3 + $seed % 3),
        'faults=' . (40, 150, 300)[ $seed % 3 ], 'share=' . (20, 60, 100)[ $seed / 3 % 3 ]);
    push @rare_over, $result->{text} if $result->{over} > 0;
    $rare_local += $result->{local};
}
is "@rare_over", '', 'never more than N in any T over all hosts, through faults that need minutes without others';
cmp_ok $rare_local, '>', 1000, 'hosts admitted their share in these faults';

# A day of four hosts, with a fault every five minutes or every 20 seconds.
for (1 .. 2) {
    for my $faults (300, 20) {
        my $day = simulate("seed=$_", 'seconds=86400', 'rate=20', 'keys=100', "faults=$faults", 'share=600');
        is $day->{over}, 0, "24 hours, a fault every $faults s (seed $_): never more than N in any T" or diag $day->{text};
    }
}

# The longest interval after the first start has passed.
for my $hosts (2, 10) {
    my $quiet = simulate('from=75', 'seconds=190', 'faults=0', 'rate=500', "hosts=$hosts");
    is $quiet->{over}, 0, "without faults, $hosts hosts: never more than N in any T";
    cmp_ok $quiet->{wrongful}, '<', 6, "without faults, $hosts hosts: few wrongful refusals";
    cmp_ok $quiet->{late_ms}, '<', 2, "without faults, $hosts hosts: limits up to 64 refuse wrongfully for less than 2 ms";
}
my $stops = simulate('from=75', 'seconds=190', 'faults=0', 'rate=500', 'stops=3');
is $stops->{over}, 0, 'hosts that stop and start in turn: never more than N in any T';
cmp_ok $stops->{wrongful}, '<', 8, 'hosts that stop and start in turn: the others, and they themselves, go on at once';

my ($changed, @over_changed) = (0);
for my $seed (1 .. 8) {
    my $result = simulate("seed=$seed", 'seconds=600', 'rate=200', 'changes=45', 'faults=' . (0, 20)[ $seed % 2 ],
        'share=' . (20, 3600)[ $seed / 4 % 2 ]);
    push @over_changed, $result->{text} if $result->{over} > 0;
    $changed += $result->{admitted} if $seed % 2 == 0;
}
is "@over_changed", '', 'all hosts stop and start with another configuration, through faults: never more than N in any T';
cmp_ok $changed, '>', 100_000, 'hosts that were started with another configuration admit requests';

my ($set, @over_set) = (0);
for my $seed (1 .. 24) {
    my $result = simulate("seed=$seed", 'seconds=400', 'rate=200', 'hosts=' . (2 + $seed % 4), 'clocks=' . (10, 20)[ $seed % 2 ],
        'faults=' . (0, 20, 40)[ $seed % 3 ], 'changes=' . ($seed % 6 == 0 ? 45 : 1000), 'share=' . (20, 3600)[ $seed / 4 % 2 ]);
    push @over_set, $result->{text} if $result->{over} > 0;
    $set += $result->{admitted};
}
is "@over_set", '', 'the clock of a server is set forward and back while hosts are connected, through faults: never more than N in any T';
cmp_ok $set, '>', 100_000, 'hosts admit requests after that';

my ($returned, @over_returned) = (0);
for my $seed (1 .. 24) {
    my $result = simulate("seed=$seed", 'seconds=1500', 'rate=100', 'keys=60', 'hosts=' . (1 + $seed % 5), 'turns=40',
        'faults=' . (0, 0, 40)[ $seed % 3 ], 'stops=' . (0, 20)[ $seed / 2 % 2 ], 'share=' . (20, 100)[ $seed / 4 % 2 ]);
    push @over_returned, $result->{text} if $result->{over} > 0;
    $returned += $result->{admitted};
}
is "@over_returned", '', 'all hosts turn to another store and back, which has kept running, by reloads and restarts: never more than N in any T';
cmp_ok $returned, '>', 100_000, 'hosts admit requests after that';

my ($behind, @over_behind) = (0);
for my $seed (1 .. 48) {
    my $result = simulate("seed=$seed", 'seconds=2500', 'rate=50', 'keys=30', 'hosts=' . (2 + $seed % 3), 'turns=40', 'behind=1',
        'faults=' . (0, 0, 60)[ $seed % 3 ], 'share=' . (20, 100)[ $seed / 4 % 2 ]);
    push @over_behind, $result->{text} if $result->{over} > 0;
    $behind += $result->{admitted};
}
is "@over_behind", '', 'hosts that were cut off return to the former store before the others: never more than N in any T';
cmp_ok $behind, '>', 100_000, 'hosts admit requests after that';

my $first = simulate('from=6', 'seconds=60', 'faults=0', 'rate=500', 'share=0');
cmp_ok $first->{wrongful}, '>', 6, 'after a first start requests are refused until T has passed';

done_testing;
