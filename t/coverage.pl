#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# How many lines of each folder the tests execute (gcov). Fails if a folder is
# below its floor, which is 2 percent less than a share that was measured:
# processes that are killed write no counts. Floors are raised, not lowered.
#   t/coverage.pl prepare    deletes the counts of the build `coverage`
#   t/coverage.pl            prints the table
# Not counted: the supervisor inside httpd, and a runner between fork and exec,
# which leave with _exit(); t/supervisor runs the same code as a program.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AgentTest::Env qw(root slurp);
use Cpanel::JSON::XS;
use File::Find qw(find);

# Percent of the lines.
my %FLOOR = (
    'mod_agent'                            => 81,
    'mod_agent/config'                     => 62,
    'mod_agent/core'                       => 96,
    'mod_agent/db'                         => 91,
    'mod_agent/handlers'                   => 53,
    'mod_agent/http'                       => 59,
    'mod_agent/model'                      => 89,
    'mod_agent/runners/builtin'            => 74,
    'mod_agent/runners/builtin/base'       => 46,
    'mod_agent/runners/builtin/message'    => 47,
    'mod_agent/runners/builtin/model'      => 26,
    'mod_agent/runners/builtin/run'        => 43,
    'mod_agent/runners/builtin/tool'       => 36,
    'mod_agent/stream'                     => 83,
    'mod_agent/supervisor'                 => 79,
    'mod_agent/supervisor/lease'           => 94,
    'mod_agent/supervisor/process'         => 38,
    'mod_agent/supervisor/runner'          => 61,
    'mod_agent/supervisor/statement'       => 79,
    'mod_agent/supervisor/webhook'         => 94,
    'mod_agent/wait'                       => 86,
    'mod_ratelimit_regional'               => 81,
    'mod_ratelimit_regional/config'        => 52,
    'mod_ratelimit_regional/counter'       => 93,
    'mod_ratelimit_regional/decision'      => 64,
    'mod_ratelimit_regional/rules'         => 97,
);

chdir root() or die root() . ": $!\n";
my @notes = notes();
@notes or die "The build was not made: make -f Makefile.apxs all programs VARIANT=coverage\n";
@ARGV && $ARGV[0] eq 'prepare' ? prepare() : report();

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
        my ($source) = $note =~ m{/obj/(.*)\.gcno\z};
        my ($folder) = $source =~ m{(.*)/};
        my ($all, $hit) = count_lines($note, "$source.c");
        $lines{$folder} += $all;
        $executed{$folder} += $hit;
    }
    my $failed = 0;
    for my $folder (sort keys %lines) {
        my $share = 100 * $executed{$folder} / ($lines{$folder} || 1);
        my $floor = $FLOOR{$folder} // 0;
        my $is_low = $share < $floor;
        $failed ||= $is_low;
        printf "%6.1f %%  of %5d lines  %s%s\n", $share, $lines{$folder}, $folder,
            $is_low ? "  below its floor, $floor %" : '';
    }
    exit($failed ? 1 : 0);
}

# (lines that can be executed, lines that were)
sub count_lines {
    my ($note, $source) = @_;
    my $counts = $note =~ s/\.gcno\z/.gcda/r;
    my $text = qx(gcov --stdout --json-format $counts 2>/dev/null);
    my ($all, $hit) = (0, 0);
    for my $file (map { @{ decode_json($_)->{files} } } grep { /\A\{/ } split /\n/, $text) {
        next if $file->{file} ne $source;
        $all += @{ $file->{lines} };
        $hit += grep { $_->{count} } @{ $file->{lines} };
    }
    return ($all, $hit);
}
