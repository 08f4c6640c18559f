# SPDX-License-Identifier: Apache-2.0
# Each number of a log line belongs to one place in the code and has its row
# in its module's messages.md, and the other way round.
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use AgentTest::Source;
use Test::More;

# A module's folder, its macro, and what its numbers begin with.
my @modules = (
    ['mod_agent',              'AGENT_LOGNO', 'AGT'],
    ['mod_ratelimit_regional', 'RLR_LOGNO',   'RLR'],
);
check_module(@{$_}) for @modules;
done_testing;

sub check_module {
    my ($folder, $macro, $prefix) = @_;
    my (%places, %rows);
    for my $file (source_files(qr{\A$folder/(?!runners/).*\.c\z})) {
        for (numbered_lines(without_comments($file))) {
            my ($number, $line) = @{$_};
            push @{ $places{$1} }, "$file:$number"
                while $line =~ /(?:$macro\(|"$prefix)(\d{4})[)"]/g;
        }
    }
    ok scalar %places, "$folder writes messages";

    my $table = slurp(root() . "/$folder/messages.md");
    $rows{$1}++ while $table =~ /^\|\s*$prefix(\d{4})\s*\|/mg;
    for my $id (sort keys %places) {
        is "@{ $places{$id} }", $places{$id}[0], "$prefix$id is written in one place";
        is $rows{$id}, 1, "$prefix$id has one row in messages.md";
    }
    is join(' ', grep { !$places{$_} } sort keys %rows), '',
        "$folder/messages.md has no row without a log line";
    return;
}
