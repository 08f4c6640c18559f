# SPDX-License-Identifier: Apache-2.0
# Runs test files as prove does and counts across groups: each group adds a line
# "passed failed" to the file that AGENT_TEST_TALLY names, after lines "# ..."
# with the diagnostics of its failed files. A group without tests fails.
# A test is a file, or {name => its title, command => [...]}.
package AgentTest::Harness;
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use Exporter 'import';
use TAP::Harness;

our @EXPORT_OK = qw(run_group command_for print_failed add_to_tally read_tally);

# run_group(tests => [...], jobs => 1, slowest => how many to list, cgroup => an
# AgentTest::Cgroup, in which each test has one of its own): true if all passed
sub run_group {
    my (%args) = @_;
    my @tests = map { ref ? $_ : { name => $_, command => command_for($_) } } @{ $args{tests} };
    my %cgroup = $args{cgroup} ? cgroups_of($args{cgroup}, @tests) : ();
    @tests = map { { %{$_}, command => [ root() . '/t/lib/in-cgroup', $cgroup{ $_->{name} }, @{ $_->{command} } ] } } @tests if %cgroup;
    my %command = map { $_->{name} => $_->{command} } @tests;
    my $harness = TAP::Harness->new({
        verbosity => $args{verbose} ? 1 : 0,
        jobs      => $args{jobs} || 1,
        timer     => 1,
        # A test that hangs must not hang the suite; no test depends on how long it
        # takes, and those of t/lint take half an hour on a busy machine. A file that
        # is ended has a minute to stop its servers.
        exec      => sub { [ qw(timeout -k 60 3600), @{ $command{ $_[1] } } ] },
    });
    $harness->callback(made_parser => \&show_failures) if !$args{verbose};
    my $result = $harness->runtests(map { $_->{name} } @tests);
    print_slowest($result, $args{slowest}) if $args{slowest};
    print_processor_seconds(%cgroup) if %cgroup;
    my $failed = count_failures($result);
    if (!$result->total) {
        print "No test ran.\n";
        $failed ||= 1;
    }
    add_to_tally(scalar $result->passed, $failed);
    return !$failed;
}

# Tests write the reason of a failure to standard output, as comments after the
# line of the test; the harness would drop it with all other output.
sub show_failures {
    my ($parser, $job) = @_;
    my $failed = 0;
    my (@lines, @subtest, @diagnostics);
    $parser->callback(
        ALL => sub {
            my ($line) = @_;
            my $raw = $line->raw . "\n";
            $failed = !$line->is_ok if $line->is_test;
            push @diagnostics, ($line->is_test ? @subtest : ()), $raw if $failed;
            # The lines of a subtest come before its own; its tests that passed say
            # nothing of why it failed.
            @subtest = () if $line->is_test || $failed;
            push @subtest, $raw if !$line->is_test && !$failed && $raw !~ /\A\s+ok /;
            push @lines, $raw;
            shift @lines if @lines > 5;
            shift @subtest if @subtest > 15;
        });
    $parser->callback(
        EOF => sub {
            # The last lines of a file that ended early.
            @diagnostics = (@lines, 'status ' . $parser->exit . "\n")
                if !@diagnostics && $parser->has_problems;
            print_failed($job->[1], @diagnostics) if @diagnostics;
        });
    return;
}

# Printed at once, and again at the end of the suite.
sub print_failed {
    my ($file, @diagnostics) = @_;
    print "\n$file\n", @diagnostics;
    splice @diagnostics, 15, -5, "...\n" if @diagnostics > 20;
    append_tally(map { s/\A(?:# ?)?/# /r } "$file\n", @diagnostics);
    return;
}

# Compiled tests run as they are.
sub command_for {
    my ($file) = @_;
    return [$file] if $file !~ /\.t\z/;
    return [ $^X, '-I' . root() . '/t/lib', '-MAgentTest::Diagnostics', $file ];
}

sub print_slowest {
    my ($result, $count) = @_;
    my %seconds = map { $_->[0] => $_->[1]->end_time - $_->[1]->start_time }
        map { [ $_, $result->parsers($_) ] } $result->descriptions;
    my @names = sort { $seconds{$b} <=> $seconds{$a} } keys %seconds;
    splice @names, $count if @names > $count;
    print "\nSlowest:\n", map { sprintf "%6.1f s  %s\n", $seconds{$_}, $_ } @names;
    return;
}

# Name of a test => a new folder of its cgroup.
sub cgroups_of {
    my ($cgroup, @tests) = @_;
    my %folders = map { $tests[$_]{name} => $cgroup->dir . "/$_" } 0 .. $#tests;
    mkdir $_ or die "$_: $!\n" for values %folders;
    return %folders;
}

# Of each group and each test, with the servers that it has started.
sub print_processor_seconds {
    my (%folders) = @_;
    my (%seconds, %of_group);
    for my $name (keys %folders) {
        my ($microseconds) = slurp("$folders{$name}/cpu.stat") =~ /^usage_usec (\d+)/m;
        $seconds{$name} = ($microseconds // 0) / 1e6;
        $of_group{ $name =~ s{t/(\w+)/.*}{$1}r } += $seconds{$name};
    }
    for my $list (\%of_group, \%seconds) {
        print "\nProcessor time:\n", map { sprintf "%7.1f s  %s\n", $list->{$_}, $_ }
            sort { $list->{$b} <=> $list->{$a} } keys %{$list};
    }
    return;
}

# A file that ended early or missed its plan counts as one failure if none of
# its tests failed.
sub count_failures {
    my ($result) = @_;
    my $failed = 0;
    for my $parser ($result->parsers) {
        my $of_file = scalar $parser->failed;
        $failed += $of_file || ($parser->has_problems ? 1 : 0);
    }
    return $failed;
}

sub add_to_tally {
    my ($passed, $failed) = @_;
    return append_tally("$passed $failed\n");
}

sub append_tally {
    my (@lines) = @_;
    my $file = $ENV{AGENT_TEST_TALLY} or return;
    open my $out, '>>', $file or die "$file: $!\n";
    print {$out} @lines;
    close $out or die "$file: $!\n";
    return;
}

# (passed, failed, lines with the diagnostics of failed files)
sub read_tally {
    my ($passed, $failed, @diagnostics) = (0, 0);
    open my $in, '<', $ENV{AGENT_TEST_TALLY} or return (0, 0);
    while (<$in>) {
        if (/\A#/) { push @diagnostics, $_; next }
        my @counts = split;
        $passed += $counts[0];
        $failed += $counts[1];
    }
    return ($passed, $failed, @diagnostics);
}

1;
