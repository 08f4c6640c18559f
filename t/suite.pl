#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Runs groups of tests and ends with what failed, and one line:
#   N passed, N failed
#   t/suite.pl guards unit sql runner agent asan-unit asan-agent
# A group is a folder of t/; a prefix names the build that it runs against.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AgentTest::Env qw(root variant slurp);
use AgentTest::Harness qw(run_group read_tally);
use AgentTest::Postgres;
use File::Temp qw(tempfile);

# Groups whose files do not disturb each other.
my %parallel = map { $_ => 1 } qw(guards lint unit sql runner supervisor sdk);

# Groups that run without the modules and the runner.
my %needs_no_module = map { $_ => 1 } qw(lint unit sql isolation);

chdir root() or die root() . ": $!\n";
die "usage: t/suite.pl GROUP...; t/README.md lists the groups\n" if !@ARGV;
open STDIN, '<', '/dev/null' or die "/dev/null: $!\n";
# The tests must not use a model key of the caller's environment.
delete @ENV{ grep { /\A(?:ANTHROPIC|OPENAI)_/ } keys %ENV };
(my $handle, $ENV{AGENT_TEST_TALLY}) = tempfile(UNLINK => 1);
$| = 1;

my $failed_groups = 0;
for my $group (@ARGV) {
    my ($variant, $name) = $group =~ /\A(?:(asan|tsan|clang)-)?(\w+)\z/
        or die "unknown group $group\n";
    local $ENV{AGENT_TEST_VARIANT} = $variant || 'release';
    print "\n== $group\n";
    $failed_groups++ if !is_built($name) || !run_one($name);
}
my ($passed, $failed, @said) = read_tally();
$failed ||= $failed_groups;
print "\n", @said, "\n$passed passed, $failed failed\n";
exit($failed ? 1 : 0);

# One line, where each of the group's files would say that a program is missing.
sub is_built {
    my ($name) = @_;
    my $build = '.build/' . variant();
    my @needed = map { s{\At/(.*)\.c\z}{$build/$1}r } linked_programs($name);
    unshift @needed, map { "$build/$_" } qw(mod_agent.so mod_ratelimit_regional.so agent-runner)
        if !$needs_no_module{$name};
    my @missing = grep { !-e } @needed;
    return 1 if !@missing;
    my $command = 'make -f Makefile.apxs all programs'
        . (variant() eq 'release' ? '' : ' VARIANT=' . variant());
    print "$missing[0]", (@missing > 1 ? " and $#missing more" : ''),
        " not built. Run: $command\n";
    return 0;
}

# The C files of a group that the build makes programs of.
sub linked_programs {
    my ($name) = @_;
    return grep { slurp($_) =~ /OBJECTS:/ } glob "t/$name/*.c";
}

sub run_one {
    my ($name) = @_;
    return system($^X, 't/TEST.PL') == 0 if $name eq 'agent';
    return run_sql() if $name eq 'sql';
    # By their sources: one that was not built fails, one that was removed is gone.
    my @tests = sort glob "t/$name/*.t";
    push @tests, unit_programs() if $name eq 'unit';
    return run_group(tests => \@tests, jobs => $parallel{$name} ? 2 : 1);
}

# A program whose name a .t has too is run by that.
sub unit_programs {
    return map { s{\At/(.*)\.c\z}{'.build/' . variant() . "/$1"}er }
        grep { !-e s/c\z/t/r } sort glob 't/unit/*.c';
}

# The SQL tests share a cluster; each makes databases of its own in it.
sub run_sql {
    my $cluster = AgentTest::Postgres->new(schema => 0);
    local @ENV{qw(PGHOST PGUSER PGDATABASE)} =
        ($cluster->host, 'postgres', 'postgres');
    my $passed = run_group(tests => [ sort glob 't/sql/*.t' ], jobs => 2);
    # Alone: its specs compare which session waits for which.
    return run_group(tests => [ glob 't/isolation/*.t' ]) && $passed;
}
