# SPDX-License-Identifier: Apache-2.0
# Each number of a log line belongs to one place in the code and has its row
# in messages.md, and the other way round.
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use AgentTest::Source;
use Test::More;

my (%places, %rows);
for my $file (source_files(qr{\Amod_agent/(?!runners/).*\.c\z})) {
    for (numbered_lines(without_comments($file))) {
        my ($number, $line) = @{$_};
        push @{ $places{$1} }, "$file:$number"
            while $line =~ /(?:AGENT_LOGNO\(|"AGT)(\d{4})[)"]/g;
    }
}
plan skip_all => 'no messages' if !%places;

my $table = slurp(root() . '/mod_agent/messages.md');
$rows{$1}++ while $table =~ /^\|\s*AGT(\d{4})\s*\|/mg;

for my $id (sort keys %places) {
    is "@{ $places{$id} }", $places{$id}[0], "AGT$id is written in one place";
    is $rows{$id}, 1, "AGT$id has one row in messages.md";
}
is join(' ', grep { !$places{$_} } sort keys %rows), '',
    'messages.md has no row for a line that nobody writes';

done_testing;
