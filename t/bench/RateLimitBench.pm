# SPDX-License-Identifier: Apache-2.0
# The beginning of the benches of the limiter.
#
#   my ($plan, $run) = begin_bench(full => {...}, quick => {...});   # by BENCH
#   # $run: "full run of t/bench/NAME.pl; load before it 0.1", for the report
#   httpd_version(); processors();
package RateLimitBench;
use strict;
use warnings;
use AgentTest::Env qw(root httpd slurp);
use Exporter 'import';
use File::Basename qw(basename);

our @EXPORT_OK = qw(begin_bench httpd_version processors);

sub begin_bench {
    my (%plans) = @_;
    my $mode = $ENV{BENCH} // 'full';
    my $plan = $plans{$mode} // die "BENCH=$mode: expected one of " . join(', ', sort keys %plans) . "\n";
    my ($load) = split ' ', slurp('/proc/loadavg');
    $| = 1;
    chdir root() or die root() . ": $!\n";
    $ENV{AGENT_TEST_VARIANT} = 'release';
    $ENV{PATH} .= ':/usr/sbin:/sbin';
    $SIG{$_} = sub { exit 1 } for qw(INT TERM HUP);
    $SIG{PIPE} = 'IGNORE';
    return ($plan, "$mode run of t/bench/" . basename($0) . "; load before it $load");
}

sub httpd_version {
    my ($version) = qx(@{[ httpd() ]} -v) =~ m{Apache/(\S+)};
    return $version;
}

sub processors {
    chomp(my $count = qx(nproc));
    return $count;
}

1;
