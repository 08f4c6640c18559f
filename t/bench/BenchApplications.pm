# SPDX-License-Identifier: Apache-2.0
# The applications of t/bench/applications.pl: installed, measured alone.
package BenchApplications;
use strict;
use warnings;
use AgentTest::Env qw(build_dir root);
use lib root() . '/t/sdk';
use BenchRuns qw(timed_ms);
use Exporter 'import';
use File::Temp qw(tempdir);
use SdkTest;

our @EXPORT_OK = qw(prepare bare_ms start_ms);

my $SOURCE = root() . '/t/bench/applications';

# {directory, program, runner}: a copy that every user may read, with the packages
# of the tests' applications.
sub prepare {
    my ($language) = @_;
    my $packages = SdkTest::application($language);
    my $directory = tempdir('/tmp/agent-bench-application.XXXXXX', CLEANUP => 1);
    chmod 0755, $directory;
    system('cp', '-R', "$SOURCE/$language/.", $directory) == 0 or die "cp failed\n";
    my @links = $language eq 'python' ? ('.agent') : ('node_modules', 'package.json');
    symlink "$packages/$_", "$directory/$_" or die "symlink $_: $!\n" for @links;
    my %of = (
        python     => [ "$directory/.agent/venv/bin/python", 'python', 'bare.py' ],
        javascript => [ SdkTest::node(), 'node/main.mjs', 'bare.mjs' ],
    );
    my ($program, $runner, $bare) = @{ $of{$language} };
    return { directory => $directory, program => $program, runner => build_dir() . "/runners/$runner", bare => $bare };
}

# Milliseconds of processor time of a run in the bare library.
sub bare_ms {
    my ($application, $runs) = @_;
    my $command = "cd '$application->{directory}' && '$application->{program}' $application->{bare} $runs";
    my $output = qx($command);
    die "the bare library failed\n" if $?;
    return 0 + $output;
}

# Milliseconds until a runner has imported its graphs: the median of five.
sub start_ms {
    my ($application) = @_;
    my $command = "cd '$application->{directory}' && '$application->{program}' '$application->{runner}' --check >/dev/null";
    my @times = sort { $a <=> $b } map { timed_ms(sub { system($command) == 0 or die "the runner failed\n" }) } 1 .. 5;
    return $times[2];
}

1;
