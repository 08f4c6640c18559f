# SPDX-License-Identifier: Apache-2.0
# The tables of READMEs name files that exist: sources, SQL functions, tests. A
# row of a table of costs names the code of its bound and the test of it. A cell and a
# paragraph, also of the references in conf/, have no more text than can be scanned.
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use AgentTest::Source;
use File::Basename qw(basename);
use Test::More;

my $COSTS = '| input | costs at most | where | test |';
my $CELL_LENGTH = 300;
my $PARAGRAPH_LENGTH = 500;

# Pages with longer paragraphs, which are to be split.
my $LONG = qr{\Amod_ratelimit_regional/|\Amod_agent/supervisor/lease/};

# All paths from the top, of files and folders.
my %paths = map { $_ => 1 } source_files(), source_folders();

# Names are paths, or end a path: the tables leave out folders that are plain.
my %endings;
for my $path (keys %paths) {
    my @parts = split m{/}, $path;
    $endings{ join '/', @parts[ $_ .. $#parts ] } = 1 for 0 .. $#parts;
}

# The files and folders named in a cell that do not exist. `.run/` is made by a command.
sub missing_files {
    my ($cell) = @_;
    my @names = $cell =~ m{`((?:\.\./)*\w[\w./-]*(?:/|\.(?:c|h|t|sql|pl|pm|js|def|md|conf)))`}g;
    return grep { !$endings{ s{\A(?:\.\./)+|/\z}{}gr } } @names;
}

# The errors of a text of Markdown.
sub faults_of {
    my ($text) = @_;
    my ($in_costs, @faults) = (0);
    for my $line (split /\n/, $text) {
        $in_costs = 0 if $line !~ /\A\|/;
        next if $line !~ /\A\|(.*)\|\s*\z/;
        my @cells = split /\|/, $1, -1;
        push @faults, map { "$_ does not exist" } map { missing_files($_) } @cells;
        push @faults, "an empty cell: $line" if $in_costs && (@cells != 4 || grep { !/\S/ } @cells);
        push @faults, map { 'a cell of ' . length() . " characters: $line" } grep { length > $CELL_LENGTH + 2 } @cells;
        $in_costs = 1 if $line eq $COSTS;
    }
    return @faults;
}

# The beginnings of paragraphs and items of lists that are too long, without tables and examples.
sub long_paragraphs {
    my ($text) = @_;
    my @paragraphs = map { s/\A\s+|\s+\z//gr =~ s/\s+/ /gr }
        split /\n(?:[ \t]*\n)+|\n(?= *(?:[*-]|\d+\.) )/, $text =~ s/^```.*?^```\n/\n/mgsr;
    return map { length() . ' characters: ' . substr $_, 0, 60 } grep { !/\A\|/ && length > $PARAGRAPH_LENGTH } @paragraphs;
}

my $ROW = "$COSTS\n|---|---|---|---|";
my @samples = (
    [ 'a row of costs', "$ROW\n| a | b | `core/scan.c` | `t/guards/costs.t`, `size.t` |", '' ],
    [ 'a folder and its files', '| `core/` (`scan.c`, `raw.c`) | `save_batch.sql` |', '' ],
    [ 'an empty cell of costs', "$ROW\n| a | b |  | c |", 'an empty cell: | a | b |  | c |' ],
    [ 'a missing cell of costs', "$ROW\n| a | b | c |", 'an empty cell: | a | b | c |' ],
    [ 'an empty cell of another table', '| a | | b |', '' ],
    [ 'files that do not exist', '| `t/unit/nothing.c` | `nothing.sql` |',
        't/unit/nothing.c does not exist; nothing.sql does not exist' ],
    [ 'a long cell', '| a | ' . 'x' x 301 . ' |', 'a cell of 303 characters: | a | ' . 'x' x 301 . ' |' ],
    [ 'the longest cell', '| a | ' . 'x' x 300 . ' |', '' ],
    [ 'prose', 'See `nothing.c`.', '' ],
);
is join('; ', faults_of($_->[1])), $_->[2], "the check is right about a sample: $_->[0]" for @samples;

my $long = 'x' x 300;
is join('; ', long_paragraphs("$long\n\n$long\n* $long\n1. $long\n\n```\n$long\n\n$long\n$long\n```\n")), '', 'the check is right about short paragraphs';
is scalar(() = long_paragraphs("$long\n$long\n\n* $long\n  $long\n\n| $long | $long |\n")), 2, 'the check is right about long paragraphs';

# Those of the comments of a configuration file: a blank line of comments, and an item or a
# line of an example after three blanks, begin another one; Context and Default are lines of their own.
sub long_comments {
    my ($text) = @_;
    my ($paragraph, @long) = ('');
    for (split(/\n/, $text), '') {
        my ($comment) = /\A *#(?: {4}#)?(.*)\z/;
        my $ends = !defined $comment || $comment !~ /\S/ || $comment =~ /\A(?:\S| (?:Context|Default|Required)\b)/;
        if ($ends || $comment =~ /\A {3}\S/) {
            push @long, length($paragraph) . ' characters: ' . substr $paragraph, 0, 60 if length $paragraph > $PARAGRAPH_LENGTH;
            $paragraph = '';
        }
        $paragraph = join ' ', grep { length } $paragraph, $comment =~ s/\A\s+|\s+\z//gr if !$ends;
    }
    return @long;
}
my $comment = '# ' . 'x' x 300 . "\n";
is join('; ', long_comments("$comment#\n$comment#   $comment# Context: server config.\n$comment#Directive\n$comment\n$comment")), '',
    'the check is right about short paragraphs of comments';
is scalar(() = long_comments("$comment$comment#Directive\n#    $comment#    $comment")), 2, 'the check is right about long paragraphs of comments';
for my $file (source_files(qr{\Aconf/\w+\.conf\z})) {
    is join("\n", long_comments(slurp(root() . "/$file"))), '', "$file: no paragraph has more than $PARAGRAPH_LENGTH characters";
}

my $tables = 0;
for my $file (grep { basename($_) eq 'README.md' } source_files()) {
    my $text = slurp(root() . "/$file");
    $tables++ while $text =~ /^\Q$COSTS\E$/mg;
    is join("\n", faults_of($text)), '', "$file: its tables name existing files, and have no empty costs and no cell of more than $CELL_LENGTH characters";
    is join("\n", long_paragraphs($text)), '', "$file: no paragraph has more than $PARAGRAPH_LENGTH characters" if $file !~ $LONG;
}
cmp_ok $tables, '>', 2, 'the tables of costs are found';

done_testing;
