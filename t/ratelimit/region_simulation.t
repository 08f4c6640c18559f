# SPDX-License-Identifier: Apache-2.0
# The rules of mod_ratelimit_regional/region in a simulation with faults: hosts that are slow,
# cut off or killed, calls that are lost, late or repeated, servers that lose their data, and
# two servers that both answer.
use strict;
use warnings;
use AgentTest::Env qw(build_dir);
use Test::More;

my $program = build_dir() . '/bench/ratelimit_region';

# The numbers that the simulation prints.
sub simulate {
    my (@options) = @_;
    open my $from, '-|', $program, @options or die "$program: $!\n";
    my $text = do { local $/; <$from> };
    close $from;
    my ($over, $wrongful) = $text =~ /over-admissions (\d+)  wrongful refusals ([\d.]+)/
        or die "$program @options: $text\n";
    my ($admitted, $local) = $text =~ /admitted (\d+) local (\d+)/;
    return { text => $text, over => $over, wrongful => $wrongful, admitted => $admitted, local => $local };
}

my ($admitted, $local, @over) = (0, 0);
for my $seed (1 .. 48) {
    my $result = simulate("seed=$seed", 'seconds=200', 'rate=200', 'hosts=' . (2 + $seed % 4),
        'faults=' . (3 + 5 * ($seed % 4)), 'share=' . (0, 20, 60, 3600)[ $seed % 4 ]);
    push @over, $result->{text} if $result->{over} > 0;
    $admitted += $result->{admitted};
    $local += $result->{local};
}
is "@over", '', 'never more than N in any T over all hosts, through faults of hosts, network and store';
cmp_ok $admitted, '>', 100_000, 'requests were admitted in between';
cmp_ok $local, '>', 1000, 'hosts that were cut off admitted their share';

my $quiet = simulate('seconds=120', 'faults=0', 'rate=500', 'hosts=10');
is $quiet->{over}, 0, 'without faults: never more than N in any T';
cmp_ok $quiet->{wrongful}, '<', 6, 'without faults: few wrongful refusals';

done_testing;
