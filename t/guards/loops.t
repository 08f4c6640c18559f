# SPDX-License-Identifier: Apache-2.0
# Texts that grow in a loop: apr_pstrcat() and apr_psprintf() in a loop copy the
# text each time, or leave one in the pool for each round. A comment that begins
# with "Bounded:", in the loop or right before it, gives the bound of the rounds;
# where clients, tools or model servers decide their number, a buffer is used.
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use AgentTest::Source;
use Test::More;

my $GROWS = qr/\bapr_(?:pstrcat|psprintf|pvsprintf)\(/;
# The beginning of a loop: of C, and the macros over rings and JSON objects.
my $LOOP = qr/for \(|while \(|do \{|AGENT_RING_EACH\w*\(|APR_RING_FOREACH\w*\(|json_object_object_foreach\w*\s*\(/;

# The loops of a file formatted by clang-format: [number of the first line, its
# lines with the comment before it, up to the closing brace].
sub loops_of {
    my (@lines) = @_;
    my @loops;
    for my $at (0 .. $#lines) {
        my ($indent) = $lines[$at] =~ /^(\s+)(?:$LOOP)/ or next;
        my $end = $at;
        $end++ while $end < $#lines && $lines[$end] !~ /^$indent\}/;
        my $begin = $at;
        $begin-- while $begin > 0 && $lines[ $begin - 1 ] =~ m{^\s+(?:/\*| \*|   \S.*\*/)};
        push @loops, [ $at + 1, @lines[ $begin .. $end ] ];
    }
    return @loops;
}

sub is_unbounded {
    my (@lines) = @_;
    my $text = join "\n", @lines;
    return $text =~ $GROWS && $text !~ /Bounded:/;
}

# The check itself: cases that it finds and cases that it permits.
my %samples = (
    "    for (;;) {\n        t = apr_pstrcat(p, t, x, NULL);\n    }\n"                     => 1,
    "    while (x) {\n        if (y) {\n            t = apr_psprintf(p, f);\n        }\n    }\n" => 1,
    "    /* Bounded: the table has ten rows. */\n    for (;;) {\n        t = apr_pstrcat(p, t);\n    }\n" => 0,
    "    for (;;) {\n        add(b, x);\n    }\n    t = apr_pstrcat(p, t, x, NULL);\n"      => 0,
    "    AGENT_RING_EACH(a, &r, t, link)\n    {\n        t = apr_pstrcat(p, t, x, NULL);\n    }\n" => 1,
    "    APR_RING_FOREACH_SAFE(a, n, &r, t, link)\n    {\n        t = apr_psprintf(p, f);\n    }\n" => 1,
    "    json_object_object_foreach (o, k, v) {\n        t = apr_pstrcat(p, t, k, NULL);\n    }\n" => 1,
    "    json_object_object_foreach(o, k, v)\n    {\n        t = apr_pstrcat(p, t, k, NULL);\n    }\n" => 1,
);
for my $sample (sort keys %samples) {
    my @found = grep { is_unbounded(@{$_}[ 1 .. $#{$_} ]) } loops_of(split /\n/, $sample);
    is scalar @found, $samples{$sample}, 'the check is right about a sample' or diag $sample;
}

chdir root() or die root() . ": $!\n";
my @found;
for my $file (source_files(qr{^mod_(?:agent|ratelimit_regional)/.*\.[ch]\z})) {
    for my $loop (loops_of(split /\n/, slurp($file))) {
        my ($line, @lines) = @{$loop};
        push @found, "$file:$line" if is_unbounded(@lines);
    }
}
is join("\n", @found), '', 'no text grows in a loop without a comment that bounds it';

done_testing;
