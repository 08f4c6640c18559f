#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# How many lines of each folder the tests execute (gcov). Fails if a folder has no
# floor, or is below it. A floor is 2 percent less than a share that was measured:
# processes that are killed write no counts. Floors are raised, not lowered.
#   t/coverage.pl prepare    deletes the counts of the build `coverage`
#   t/coverage.pl            prints the table
#   t/coverage.pl missed     prints the lines of each file that were not executed
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AgentTest::Env qw(root slurp);
use Cpanel::JSON::XS;
use File::Find qw(find);

# Percent of the lines.
my %FLOOR = (
    'mod_agent'                         => 91,
    'mod_agent/auth'                    => 93,
    'mod_agent/config'                  => 89,
    'mod_agent/core'                    => 97,
    'mod_agent/ctl'                     => 82,
    'mod_agent/ctl/base'                => 97,
    'mod_agent/ctl/build'               => 92,
    'mod_agent/ctl/operator'            => 94,
    'mod_agent/db'                      => 94,
    'mod_agent/handlers'                => 96,
    'mod_agent/http'                    => 96,
    'mod_agent/model'                   => 97,
    'mod_agent/runners/builtin'         => 95,
    'mod_agent/runners/builtin/base'    => 94,
    'mod_agent/runners/builtin/io'      => 94,
    'mod_agent/runners/builtin/message' => 96,
    'mod_agent/runners/builtin/model'   => 96,
    'mod_agent/runners/builtin/run'     => 97,
    'mod_agent/runners/builtin/tool'    => 95,
    'mod_agent/stream'                  => 95,
    'mod_agent/supervisor'              => 94,
    'mod_agent/supervisor/base'         => 94,
    'mod_agent/supervisor/lease'        => 97,
    'mod_agent/supervisor/process'      => 78,
    'mod_agent/supervisor/runner'       => 94,
    'mod_agent/supervisor/runner/io'    => 90,
    'mod_agent/supervisor/runner/pool'  => 90,
    'mod_agent/supervisor/runner/protocol' => 90,
    'mod_agent/supervisor/runner/run'   => 90,
    'mod_agent/supervisor/statement'    => 90,
    'mod_agent/supervisor/webhook'      => 94,
    'mod_agent/wait'                    => 97,
    'mod_ratelimit_regional'            => 90,
    'mod_ratelimit_regional/config'     => 97,
    'mod_ratelimit_regional/counter'    => 95,
    'mod_ratelimit_regional/decision'   => 97,
    'mod_ratelimit_regional/protocol'  => 95,
    'mod_ratelimit_regional/rules'      => 97,
    'mod_ratelimit_regional/status'     => 95,
    'mod_ratelimit_regional/store'      => 85,
);

chdir root() or die root() . ": $!\n";
my @notes = notes();
@notes or die "The build was not made: make -f Makefile.apxs all programs VARIANT=coverage\n";
my %ACTIONS = (prepare => \&prepare, report => \&report, missed => \&print_missed);
my $action = $ACTIONS{ $ARGV[0] // 'report' } or die "usage: t/coverage.pl [prepare|missed]\n";
$action->();

# Of the modules' objects: one for each source.
sub notes {
    my @found;
    my $top = '.build/coverage/obj';
    find({ no_chdir => 1, wanted => sub { push @found, $_ if m{/mod_\w+/.*\.gcno\z} } }, $top)
        if -d $top;
    return sort @found;
}

# The processes that write counts have several users: the files are there before
# them, open to all.
sub prepare {
    for my $note (@notes) {
        my $counts = $note =~ s/\.gcno\z/.gcda/r;
        open my $out, '>', $counts or die "$counts: $!\n";
        close $out or die "$counts: $!\n";
        chmod 0666, $counts or die "$counts: $!\n";
    }
    return;
}

sub report {
    my (%lines, %executed);
    for my $note (@notes) {
        my ($source, @found) = lines_of($note);
        my ($folder) = $source =~ m{(.*)/};
        $lines{$folder} += @found;
        $executed{$folder} += grep { $_->{count} } @found;
    }
    my $failed = 0;
    for my $folder (sort keys %lines) {
        my $share = 100 * $executed{$folder} / ($lines{$folder} || 1);
        my $floor = $FLOOR{$folder};
        my $problem = !defined $floor ? '  has no floor'
            : $share < $floor ? "  below its floor, $floor %" : '';
        $failed ||= $problem ne '';
        printf "%6.1f %%  of %5d lines  %s%s\n", $share, $lines{$folder}, $folder, $problem;
    }
    exit($failed ? 1 : 0);
}

sub print_missed {
    for my $note (@notes) {
        my ($source, @found) = lines_of($note);
        my @missed = map { $_->{line_number} } grep { !$_->{count} } @found;
        printf "%s: %d of %d: %s\n", $source, scalar @missed, scalar @found, "@missed" if @missed;
    }
    return;
}

# (source, its lines that can be executed, as gcov's objects)
sub lines_of {
    my ($note) = @_;
    my ($source) = $note =~ m{/obj/(.*)\.gcno\z};
    my $counts = $note =~ s/\.gcno\z/.gcda/r;
    my $text = qx(gcov --stdout --json-format $counts 2>/dev/null);
    return ("$source.c", map { @{ $_->{lines} } } grep { $_->{file} eq "$source.c" }
        map { @{ decode_json($_)->{files} } } grep { /\A\{/ } split /\n/, $text);
}
