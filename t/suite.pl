#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Runs groups of tests; prints the diagnostics of failed files and a last line
#   N passed, N failed
#
#   t/suite.pl guards unit sql runner agent asan-unit asan-agent
#   t/suite.pl --count=20 --load=8 t/agent/parking.t t/unit/core_json.c
#
# A group is a folder of t/. Its prefix names the build that it runs against, for
# files AGENT_TEST_VARIANT does. memcheck-unit: the release build under valgrind.
# --load: the second half of the rounds runs beside that many busy loops.
# --account: lists the processor time of each group and file, with the servers that
# they start, where a cgroup can be made; not that of the servers that files share.
# The files of all groups are one queue. AGENT_TEST_JOBS of them run at the same
# time, by default two more than there are processors, since most of them wait for
# half of their time or more.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AgentTest::Cgroup;
use AgentTest::Database qw(psql);
use AgentTest::Env qw(root variant build_dir httpd modules_dir slurp);
use AgentTest::Harness qw(run_group command_for add_to_tally read_tally);
use AgentTest::Node qw(use_node);
use AgentTest::Postgres;
use AgentTest::Process qw(children_of);
use AgentTest::ServerPool;
use File::Path qw(remove_tree);
use File::Temp qw(tempfile);
use Getopt::Long qw(GetOptions);
use POSIX ();

# Groups that run without the modules and the runner.
my %needs_no_module = map { $_ => 1 } qw(lint unit sql isolation);

# Valgrind executes 20 to 50 times slower: the tests that repeat a step at random
# do so less often (t/unit/ratelimit_sim.h).
my @VALGRIND = qw(env RATELIMIT_TEST_EFFORT=0.04 valgrind -q --error-exitcode=1 --leak-check=full
    --errors-for-leak-kinds=definite);

# Files that take more than a minute begin first, and so do the longest of the last
# group, so that none of them runs alone at the end.
my $LONG = join '|', qw(lint/(?:clang_tidy|gcc_analyzer)
    agent/(?:application_faults|benches|broken_graphs|costs|costs_query|database|directives|parking|slow_bodies|slow_readers|webhooks)
    ctl/package_managers ratelimit/(?:group|group_(?:bench|cluster|faults|sentinel|writes)|restart|table) runner/(?:costs|library_use|own_states|python_faults|python_threads)
    sdk/(?:applications|browser|built|javascript|large_values|library|own_states|python|restart|templates) sql/(?:differences|plans|records)
    supervisor/(?:costs|database|hostile|many|webhooks));

chdir root() or die root() . ": $!\n";
my ($count, $load) = (1, 0);
GetOptions('count=i' => \$count, 'load=i' => \$load, account => \my $is_accounted) && @ARGV
    or die "usage: t/suite.pl [--count=N] [--load=N] [--account] GROUP|FILE...; t/README.md lists the groups\n";
chomp(my $processors = qx(nproc));
my $jobs = $ENV{AGENT_TEST_JOBS} || $processors + 2;
open STDIN, '<', '/dev/null' or die "/dev/null: $!\n";
# The tests must not use a model key of the caller's environment.
delete @ENV{ grep { /\A(?:ANTHROPIC|OPENAI)_/ } keys %ENV };
(my $handle, $ENV{AGENT_TEST_TALLY}) = tempfile(UNLINK => 1);
$SIG{$_} = \&end_early for qw(INT TERM HUP);
$| = 1;
use_node();
# Found here once, for all tests: they are kept in the environment. A group that does not
# need them runs where there are none.
eval { httpd(); modules_dir(); psql(); 1 } or print "Tests with httpd cannot run: $@";

# Clusters and servers that the tests share while they run, by variant.
my (%cluster, %pool);
my @tests = map { tests_of($_) } @ARGV;
@tests = ((grep { is_long($_) } @tests), grep { !is_long($_) } @tests);
my $quiet_rounds = $load ? int(($count + 1) / 2) : $count;
run_rounds(1 .. $quiet_rounds);
my @loops = map { start_loop() } 1 .. $load;
run_rounds($quiet_rounds + 1 .. $count);
kill KILL => @loops;
AgentTest::ServerPool::stop(values %pool);
my ($passed, $failed, @diagnostics) = read_tally();
print "\n", @diagnostics, "\n$passed passed, $failed failed\n";
exit($failed ? 1 : 0);

sub run_rounds {
    my (@rounds) = @_;
    return if !@rounds;
    my @queue = map { my $round = $_;
        map { { %{$_}, name => $_->{name} . ($count > 1 ? " ($round)" : '') } } @tests } @rounds;
    my ($busy, $all) = processor_seconds();
    my $cgroup = $is_accounted ? AgentTest::Cgroup->new || die AgentTest::Cgroup::why_not(), "\n" : undef;
    run_group(jobs => $jobs, tests => \@queue, slowest => 25, cgroup => $cgroup);
    my ($busy_after, $all_after) = processor_seconds();
    printf "\nThe machine's processors: busy for %d of %d s\n", $busy_after - $busy, $all_after - $all;
    return;
}

# Busy, and in all, since the machine's start. The harness counts less: the servers that
# a test starts are not its children.
sub processor_seconds {
    my (undef, @ticks) = split ' ', slurp('/proc/stat');
    my ($user, $nice, $system, $idle, $waiting, $irq, $softirq, $stolen) =
        map { $_ / POSIX::sysconf(POSIX::_SC_CLK_TCK()) } @ticks[ 0 .. 7 ];
    my $busy = $user + $nice + $system + $irq + $softirq + $stolen;
    return ($busy, $busy + $idle + $waiting);
}

# Ends the tests and the pools, and waits until they have stopped their servers.
sub end_early {
    $SIG{$_} = 'IGNORE' for qw(INT TERM HUP);
    my @children = children_of($$);
    kill TERM => @children;
    waitpid $_, 0 for @children;
    exit 130;
}

# It ends with this process.
sub start_loop {
    my $parent = $$;
    my $pid = fork // die "fork: $!\n";
    return $pid if $pid;
    $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);
    while (getppid == $parent) { 1 for 1 .. 1_000_000 }
    POSIX::_exit(0);
}

sub is_long { return $_[0]{name} =~ m{\bt/(?:$LONG)\.t\z} }

# The tests of a group, or a file as one. A group that was not built counts as a
# failure.
sub tests_of {
    my ($word) = @_;
    my ($variant, $name, $file) = $word =~ m{\A(?:(asan|tsan|clang|coverage|memcheck)-)?(?:(\w+)|(t/\w+/\w+\.[ct]))\z};
    $file || grep { $_ eq ($name // '') } groups()
        or die "unknown group $word; expected a file of t/ or one of: @{[ groups() ]}\n";
    my $is_memcheck = ($variant // '') eq 'memcheck';
    local $ENV{AGENT_TEST_VARIANT} = $is_memcheck ? 'release' : $variant // variant();
    ($name) = $file =~ m{/(\w+)/} if $file;
    my @files = !is_built($name) ? () : $file ? $file =~ s{\At/(.*)\.c\z}{'.build/' . variant() . "/$1"}er
        : files_of($name);
    if (!@files) {
        print "$word: no test can run.\n";
        add_to_tally(0, 1);
        return;
    }
    remove_tree(build_dir() . '/logs');
    my $prefix = $is_memcheck ? 'memcheck ' : variant() eq 'release' ? '' : variant() . ' ';
    @files = grep { runs_under_valgrind($_) } @files if $is_memcheck;
    my @valgrind = $is_memcheck ? @VALGRIND : ();
    return map { {
        name    => $prefix . s{\A\.build/\w+/}{t/}r,
        command => [ 'env', environment_of($_), wrapper_of($_), @valgrind,
            @{ command_for($_) } ],
    } } @files;
}

# The source of a program that does not has a comment with the reason.
sub runs_under_valgrind {
    my ($program) = @_;
    my ($source) = map { "t/$_.c" } $program =~ m{(unit/\w+)\z} or return 0;
    return slurp($source) !~ m{^/\* Not under valgrind: }m;
}

# Prints one line if a program is missing, instead of one for each file.
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

sub groups { return grep { files_of($_) } map { m{(\w+)/\z} } glob 't/*/' }

# The names come from the sources: a program that was not built fails, and one
# without a source is not run.
sub files_of {
    my ($name) = @_;
    my @files = sort glob "t/$name/*.t";
    push @files, unit_programs() if $name eq 'unit';
    push @files, sort glob 't/isolation/*.t' if $name eq 'sql';
    return @files;
}

# A .t of the same name runs its program.
sub unit_programs {
    return map { s{\At/(.*)\.c\z}{'.build/' . variant() . "/$1"}er }
        grep { !-e s/c\z/t/r } sort glob 't/unit/*.c';
}

# The SQL tests share a cluster; each creates its databases in it.
sub environment_of {
    my ($file) = @_;
    my @all = 'AGENT_TEST_VARIANT=' . variant();
    return @all if $file !~ m{\At/sql/};
    my $cluster = $cluster{ variant() } //= AgentTest::Postgres->new(schema => 0);
    return @all, 'PGHOST=' . $cluster->host, 'PGUSER=postgres', 'PGDATABASE=postgres';
}

# Files of t/agent need a server; the specs of t/isolation a cluster of their
# own, because they compare which session waits for which.
sub wrapper_of {
    my ($file) = @_;
    return 't/sql/with-cluster' if $file =~ m{\At/isolation/};
    return if $file !~ m{\At/agent/};
    my $pool = $pool{ variant() } //= AgentTest::ServerPool->new($jobs);
    return 't/agent/with-server', $pool->dir;
}
