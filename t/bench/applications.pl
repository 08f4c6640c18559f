#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Measures LangGraph applications in Python and JavaScript, beside the JavaScript server
# and the bare libraries. Prints one block of Markdown.
#   t/bench/applications.pl               everything, some ten minutes
#   t/bench/applications.pl runs chats    some of the parts that @PARTS names
# BENCH=smoke shows only that each part works.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;
use AgentTest::Node qw(use_node);
use BenchApplicationChats qw(measure_chats);
use BenchApplicationLoad qw(measure_streams measure_processes);
use BenchApplicationRuns qw(measure_runs);
use BenchApplications qw(prepare @LANGUAGES);

my %PLANS = (
    full  => { rounds => 3, alone_rounds => 7, runs => 300, peer_runs => 10, warm_up => 50, rate_sec => 10, turns => [ 200, 2000 ],
        streams => 1000, streams_sec => 20 },
    smoke => { rounds => 1, alone_rounds => 1, runs => 10, peer_runs => 5, warm_up => 5, rate_sec => 2, turns => [30],
        streams => 10, streams_sec => 5 },
);
my @PARTS = (
    [ runs      => \&measure_runs ],
    [ chats     => \&measure_chats ],
    [ streams   => \&measure_streams ],
    [ processes => \&measure_processes ],
);
my %asked = map { $_ => 1 } @ARGV ? @ARGV : map { $_->[0] } @PARTS;
my $plan = $PLANS{ $ENV{BENCH} // 'full' } // die "BENCH is full or smoke\n";

delete @ENV{ grep { /\APG/ } keys %ENV };
$SIG{$_} = sub { exit 1 } for qw(INT TERM HUP);

use_node();
my %applications = map { $_ => prepare($_) } @LANGUAGES;
my $failed = 0;
for my $part (grep { $asked{ $_->[0] } } @PARTS) {
    my ($name, $measure) = @{$part};
    print {*STDERR} "measuring $name ...\n";
    my $table = eval { $measure->(\%applications, $plan) };
    if (defined $table) {
        print "$table\n";
    }
    else {
        print {*STDERR} "$name failed: $@";
        $failed = 1;
    }
}
exit $failed;
