# SPDX-License-Identifier: Apache-2.0
# No cycle of files: the files of a folder call and include each other one way, folders
# include each other one way, and files in JavaScript import each other one way. Calls
# are read from the objects of the build: who needs a function that another file defines.
# Covered folders stand in @FOLDERS; each is a graph of its own with everything below it.
use strict;
use warnings;
use AgentTest::Env qw(root build_dir slurp);
use AgentTest::Source;
use Test::More;

my @FOLDERS = qw(mod_ratelimit_regional mod_agent);

# ---- The check itself ----

# The files of one cycle of a graph {file => {file => 1}}, the first file again
# at the end; nothing if there is none.
sub find_cycle {
    my ($graph) = @_;
    my %state;
    for my $file (sort keys %{$graph}) {
        my @cycle = visit($graph, \%state, $file);
        return @cycle if @cycle;
    }
    return;
}

# Depth first. A file is 'open' while it is on the path, 'done' afterwards.
sub visit {
    my ($graph, $state, @path) = @_;
    my $file = $path[-1];
    return if ($state->{$file} // '') eq 'done';
    $state->{$file} = 'open';
    for my $next (sort keys %{ $graph->{$file} // {} }) {
        if (($state->{$next} // '') eq 'open') {
            shift @path while $path[0] ne $next;
            return (@path, $next);
        }
        my @cycle = visit($graph, $state, @path, $next);
        return @cycle if @cycle;
    }
    $state->{$file} = 'done';
    return;
}

is_deeply [ find_cycle({ a => { b => 1, c => 1 }, b => { c => 1 } }) ], [],
    'the check accepts a graph without a cycle';
is_deeply [ find_cycle({ a => { b => 1 }, b => { c => 1 }, c => { b => 1 } }) ],
    [qw(b c b)], 'the check finds a cycle';

# ---- The graphs ----

# File => the files of the same folder that it includes.
sub includes_of {
    my ($top) = @_;
    my %graph;
    for my $file (source_files(qr{\A\Q$top\E/.*\.[ch]\z})) {
        my ($folder) = $file =~ m{\A(.+)/};
        for (numbered_lines(without_comments($file))) {
            $_->[1] =~ /\A\s*#\s*include\s*"([^"]+)"/ or next;
            my ($found) = grep { -f root() . "/$_" }
                map { resolve($_) } "$folder/$1", "mod_agent/$1";
            $graph{$file}{$found} = 1 if defined $found && $found =~ m{\A\Q$top\E/};
        }
    }
    return \%graph;
}

sub resolve {
    my ($path) = @_;
    1 while $path =~ s{[^/]+/\.\./}{};
    return $path;
}

# Folder => the folders whose headers it includes, from the includes of files. private.h
# is left out: the module's record, which includes no file of the module.
sub folders_of {
    my ($includes) = @_;
    my %graph;
    for my $file (keys %{$includes}) {
        my $folder = $file =~ s{/[^/]+\z}{}r;
        $graph{$folder}{$_} = 1
            for grep { $_ ne $folder } map { s{/[^/]+\z}{}r } grep { !m{/private\.h\z} } keys %{ $includes->{$file} };
    }
    return \%graph;
}

# Source => its object in the build.
sub objects_of {
    my ($top) = @_;
    return map { $_ => build_dir() . '/obj/' . s/c\z/o/r }
        source_files(qr{\A\Q$top\E/.*\.c\z});
}

# Sources without an object, or with one of an older version.
sub unbuilt {
    my (%object) = @_;
    return grep { !-e $object{$_} || -M $object{$_} > -M root() . "/$_" } sort keys %object;
}

# File => the files of the same folder whose functions it calls. The record of a
# module is data that every file may name.
sub calls_of {
    my (%object) = @_;
    my %file = reverse %object;
    my (%defines, %needs, %graph);
    for (split /\n/, qx(nm -gA @{[ sort values %object ]})) {
        my ($object, $kind, $symbol) = /\A(.+?):.* (\w) (\w+)\z/ or next;
        next if $symbol =~ /_module\z/;
        if ($kind eq 'U') { push @{ $needs{ $file{$object} } }, $symbol }
        else              { $defines{$symbol} = $file{$object} }
    }
    for my $file (keys %needs) {
        $graph{$file}{$_} = 1
            for grep { defined && $_ ne $file } map { $defines{$_} } @{ $needs{$file} };
    }
    return \%graph;
}

# The files that a text in JavaScript, of a file in this folder, imports by their path.
sub imports_of {
    my ($folder, $text) = @_;
    my @paths = $text =~ /(?:\bfrom|\bimport)\s*\(?\s*['"](\.[^'"]+)['"]/g;
    return map { resolve("$folder/" . s{\A\./}{}r) } @paths;
}

is join(' ', imports_of('a/b', "import { x } from './c.mjs';\nimport '../d.mjs';\nexport {\n    y,\n} from \"./e/f.js\";\n"
    . "await import('./g.mjs');\nimport fs from 'node:fs';\n")), 'a/b/c.mjs a/d.mjs a/b/e/f.js a/b/g.mjs',
    'the check finds the files that a file in JavaScript imports';

my %imports;
for my $file (source_files(qr{/[^/]+\.m?js\z})) {
    my ($folder) = $file =~ m{\A(.+)/};
    $imports{$file} = { map { $_ => 1 } imports_of($folder, slurp(root() . "/$file")) };
}
cmp_ok scalar keys %{ $imports{'mod_agent/runners/node/runner.mjs'} }, '>', 3, 'the imports of the runner for JavaScript are found';
is join(' -> ', find_cycle(\%imports)), '', 'no cycle of imports in JavaScript';

for my $top (@FOLDERS) {
    my $includes = includes_of($top);
    is join(' -> ', find_cycle($includes)), '', "$top: no cycle of includes";
    is join(' -> ', find_cycle(folders_of($includes))), '', "$top: no cycle of folders";
    my %object = objects_of($top);
    is join(' ', unbuilt(%object)), '', "$top: its objects are built from these sources";
    is join(' -> ', find_cycle(calls_of(%object))), '', "$top: no cycle of calls";
}

done_testing;
