# SPDX-License-Identifier: Apache-2.0
# The tree: the entries of the top level, no backup files, a README in each folder, the
# licence line first, no tabs, no blanks at the end of a line.
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use AgentTest::Source;
use Test::More;

my %top = map { $_ => 1 } qw(Makefile.apxs mod_agent mod_ratelimit_regional
    sql conf t README.md LICENSE);
my @strangers = grep { !$top{$_} && !/\A\./ } map { m{([^/]+)\z} } glob root() . '/*';
is "@strangers", '', 'the top level has only the entries of the README';

is join(' ', grep { /(?:\.(?:orig|rej|bak|swp)|~)\z/ } source_files()), '', 'no backup files of editors and patches';

# Folders whose files belong to the folder above; the table of its README has each
# subject of SQL functions (sql.t).
my $data = qr{/(?:corpus|fixtures|specs|expected|(?:examples|applications|templates)(?=/))(?:/|\z)|\A\.|\Asql/functions/\w+/|\At/lib/|\At/\w+/lib(?:/|\z)};
for my $folder (grep { !/$data/ } source_folders()) {
    ok -s root() . "/$folder/README.md", "$folder has a README.md";
}

my $code = qr/(?:\.(?:c|h|def|sql|sh|pl|pm|t|PL|conf|py|m?js|m?ts|apxs)|run)\z/;
for my $file (grep { /$code/ } source_files()) {
    my ($first, $second) = split /\n/, slurp(root() . "/$file");
    my $line = ($first // '') =~ /\A#!/ ? $second : $first;
    like $line, qr/SPDX-License-Identifier: Apache-2\.0/,
        "$file begins with its licence";
}

my (@tabs, @blanks, @ends);
# Inputs and outputs of programs are kept as they are.
my $kept = qr{/(?:corpus|expected)/};
for my $file (grep { -T root() . "/$_" && !/$kept/ } source_files()) {
    push @ends, $file if slurp(root() . "/$file") !~ /(?:\A|[^\n]\n)\z/;
    for (numbered_lines($file)) {
        my ($number, $line) = @{$_};
        push @blanks, "$file:$number" if $line =~ /[ \t]\z/;
        push @tabs, "$file:$number" if $line =~ /\t/ && $file ne 'Makefile.apxs';
    }
}
is "@tabs", '', 'no tabs outside the Makefile';
is "@blanks", '', 'no blanks at the end of a line';
is "@ends", '', 'every file ends with one line end';

done_testing;
