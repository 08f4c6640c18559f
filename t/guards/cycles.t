# SPDX-License-Identifier: Apache-2.0
# No cycle of files: the files of a folder call and include each other one way.
# Calls are read from the objects of the build: who needs a function that
# another file defines. Covered folders stand in @FOLDERS; each is a graph of
# its own with everything below it.
use strict;
use warnings;
use AgentTest::Env qw(root build_dir);
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

# File => the files of the same folder whose functions it calls. The record of a
# module is data that every file may name.
sub calls_of {
    my ($top) = @_;
    my (%defines, %needs, %graph);
    my @files = source_files(qr{\A\Q$top\E/.*\.c\z});
    for my $file (@files) {
        my $object = build_dir() . '/obj/' . $file =~ s/c\z/o/r;
        next if !-e $object;
        for (split /\n/, qx(nm -g $object)) {
            my ($kind, $symbol) = / (\w) (\w+)\z/ or next;
            next if $symbol =~ /_module\z/;
            if ($kind eq 'U') { push @{ $needs{$file} }, $symbol }
            else              { $defines{$symbol} = $file }
        }
    }
    for my $file (keys %needs) {
        $graph{$file}{$_} = 1
            for grep { defined && $_ ne $file } map { $defines{$_} } @{ $needs{$file} };
    }
    return \%graph;
}

for my $top (@FOLDERS) {
    is join(' -> ', find_cycle(includes_of($top))), '', "$top: no cycle of includes";
    my $calls = calls_of($top);
    ok scalar %{$calls}, "$top: its files call each other";
    is join(' -> ', find_cycle($calls)), '', "$top: no cycle of calls";
}

done_testing;
