# SPDX-License-Identifier: Apache-2.0
# The directives of the C tables and their reference conf/agent.conf say the
# same, and the README names none that does not exist.
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use AgentTest::Source;
use Test::More;

my $sources = join '', map { ${ without_comments($_) } }
    source_files(qr{\Amod_agent/(?:config/)?[^/]+\.c\z});
my $reference = slurp(root() . '/conf/agent.conf');
# Inside a section that is commented out as a whole.
$reference =~ s/^#    /    /mg;

# Name => help text, pieced together from its literals.
my %help;
while ($sources =~ /AP_INIT_\w+\(\s*"(<?\w+)",(.*?)(?=AP_INIT_|\{\s*NULL)/gs) {
    my ($name, $rest) = ($1, $2);
    $help{$name} = join '', $rest =~ /"((?:[^"\\]|\\.)*)"/g;
}
plan skip_all => 'no directives' if !%help;

for my $name (sort keys %help) {
    like $reference, qr/^\s*#?\s*\Q$name\E\b/m, "conf/agent.conf shows $name";
    next if $name =~ /\A</;
    my ($comment) = $reference =~ /((?:^[ ]*# .*\n)+)[ ]*#?$name\b/m;
    like $comment // '', qr/Default:|Required/,
        "conf/agent.conf says what $name is by default";
    like $help{$name}, qr/\((?:default: .*|required)\)\z/,
        "the help text of $name ends with its default";
}

# Lower case follows in every directive; AgentXyz in prose may be a type.
sub unknown_in {
    my ($text) = @_;
    my %seen;
    return grep { !$help{$_} && !$help{"<$_"} && !$seen{$_}++ } $text =~ /\b(Agent[A-Z]\w+)\b/g;
}
is join(' ', unknown_in($reference)), '', 'conf/agent.conf names no unknown directive';
is join(' ', unknown_in(slurp(root() . '/README.md'))), '',
    'README.md names no unknown directive';

done_testing;
