# SPDX-License-Identifier: Apache-2.0
# Every source has a test: the table of files in its folder's README names, in
# the row of the source, a test that exists. A C test links with a source of the
# row. The READMEs of t/ name the files of their folders.
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use AgentTest::Source;
use Test::More;

# The rows of a folder's README: [sources, tests in t/].
sub rows_of {
    my ($folder) = @_;
    my @rows;
    for my $row (grep { /\A\|/ } split /\n/, slurp(root() . "/$folder/README.md")) {
        my @names = $row =~ /`([\w.\/*]+)`/g;
        push @rows, [ [ map { s/\.\*\z/.c/r } grep { !m{/} } @names ],
            [ grep { m{/} && -f root() . "/t/$_" } @names ] ];
    }
    return @rows;
}

# The files and folders (with a / at the end) that a C test links with.
sub linked_with {
    my ($test) = @_;
    my @words = map { split } slurp(root() . "/t/$test") =~ m{OBJECTS:(.*)\*/}g;
    return map { m{\A\.\./(.*)} ? $1 : "mod_agent/$_" } @words;
}

sub is_linked {
    my ($source, $test) = @_;
    return grep { $_ eq $source || m{/\z} && $source =~ /\A\Q$_\E/ } linked_with($test);
}

my (%sources, %scripts);
push @{ $sources{ s{/[^/]+\z}{}r } }, s{.*/}{}r for source_files(qr{\Amod_\w+/.*\.c\z});
push @{ $scripts{ s{/[^/]+\z}{}r } }, s{.*/}{}r for source_files(qr{\Amod_\w+/.*\.(?:mjs|py)\z});

for my $folder (sort keys %sources, keys %scripts) {
    my (%is_tested, @unlinked);
    for (rows_of($folder)) {
        my ($names, $tests) = @{$_};
        if (@{$tests}) { $is_tested{$_} = 1 for @{$names} }
        for my $test (grep { /\.c\z/ } @{$tests}) {
            push @unlinked, $test if !grep { is_linked("$folder/$_", $test) } @{$names};
        }
    }
    is join(' ', grep { !$is_tested{$_} } @{ $sources{$folder} || [] }, @{ $scripts{$folder} || [] }), '',
        "$folder: its README names an existing test for every source";
    is join(' ', @unlinked), '', "$folder: C tests link with a source of the row that names them";
}

# The runners of applications have counterparts, in one table.
my %counterparts = map { $_ => 1 } slurp(root() . '/mod_agent/runners/README.md') =~ /`(\w+\.(?:py|mjs))`/g;
for my $folder (qw(mod_agent/runners/node mod_agent/runners/python)) {
    is join(' ', grep { !$counterparts{$_} } @{ $scripts{$folder} }), '', "$folder: the table of ../README.md has every source";
}

# Their pages have the same headings; the text that both share is in runners/README.md.
my @headings = map { join ', ', slurp(root() . "/mod_agent/runners/$_/README.md") =~ /^## (.*)$/mg } qw(node python);
is $headings[0], $headings[1], 'the pages of the runners of applications have the same headings';

# A folder of t/ whose README has a table names each of its files, there or in the text:
# with or without its suffix, or as the end of a module's name, `costs*` and `runs.*` for several.
my %tests;
for (source_files(qr{\At/\w+/(?:AgentTest/)?[^/]+\z})) {
    my ($folder, $file) = m{\A(t/\w+)/(?:AgentTest/)?([^/]+)\z};
    push @{ $tests{$folder} }, $file if $file ne 'README.md';
}
for my $folder (sort keys %tests) {
    my $readme = slurp(root() . "/$folder/README.md");
    next if $readme !~ /^\|/m;
    my @names = map { split } $readme =~ /`([^`\n]+)`/g;
    my %is_named = map { s/\AAgentTest:://r => 1 } @names;
    my @several = map { my $start = $_; qr/\A\Q$start\E/ } map { /\A(\w+\.?)\*\z/ ? $1 : () } @names;
    my @missing = grep {
        my $file = $_;
        my $name = $file =~ s/\.\w+\z//r;
        !$is_named{$file} && !$is_named{$name} && !grep { $file =~ $_ } @several;
    } @{ $tests{$folder} };
    is "@missing", '', "$folder: its README names each file";
}

my %floors = map { $_ => 1 } slurp(root() . '/t/coverage.pl') =~ m{^    '(mod_[\w/]+)' +=> \d+,$}gm;
is join(' ', sort keys %floors), join(' ', sort keys %sources),
    't/coverage.pl has a floor for each folder of sources, and for no other';

done_testing;
