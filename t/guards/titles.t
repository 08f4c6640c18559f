# SPDX-License-Identifier: Apache-2.0
# Titles of tests stand alone, since a failed test prints no other line: one of a
# subtest, or outside of subtests, does not begin with a word that refers to the title
# before it. Inside a subtest the failed test also prints the title of that. Nowhere does
# a title continue the one before it after a subject, as keys: and the challenge does,
# or is the rest of a sentence that another title begins.
use strict;
use warnings;
use AgentTest::Env qw(root);
use AgentTest::Source;
use Test::More;

my $REFERS = qr/(?:it|its|and|nor|none|those|what)\b/i;
my $CONTINUES = qr/(?:and|but|nor|which)\b/;
my $ELLIPTIC = qr/(?:again|also|and|beyond|but|if|nor|not|or|so|still|that|then|too|until|which)\b/;

my (@subtests, @titles, @continued, @elliptic);
for my $file (source_files(qr{\At/.*\.(?:t|pm)\z})) {
    my $end;
    for (numbered_lines($file)) {
        my ($number, $line) = @{$_};
        if ($line =~ /\A(\s*)subtest\s+(["'])(.*?)\2/) {
            my ($indent, $title) = ($1, $3);
            $end //= qr/\A$indent\};/;
            push @subtests, "$file:$number: $title" if $title =~ /\A$REFERS/;
        }
        elsif ($end && $line =~ $end) {
            undef $end;
        }
        push @continued, "$file:$number: $2" if $line =~ /(["'])([\w \/.,\$\{\}-]+: $CONTINUES (?:(?!\1).)*)\1/;
        # The last argument of a call, or a line of its own.
        push @elliptic, "$file:$number: $2" if $line =~ /(?:,|\A)\s*(["'])($ELLIPTIC (?:(?!\1).)*)\1\s*\)?\s*(?:;|for\b|if\b|\z)/;
        next if $end;
        # The last argument of a call, that of pass, or a line of its own.
        push @titles, "$file:$number: $2" if $line =~ /(?:,|\A|\bpass\b\s*\(?)\s*(["'])($REFERS (?:(?!\1).)*)\1\s*\)?\s*(?:;|for\b|if\b)/;
    }
}
is join("\n", @subtests), '', 'titles of subtests begin with their subject';
is join("\n", @titles), '', 'titles outside of subtests begin with their subject';
is join("\n", @continued), '', 'titles do not continue those before them';
is join("\n", @elliptic), '', 'titles have a subject, in subtests too';

done_testing;
