# SPDX-License-Identifier: Apache-2.0
# The files that the guards check: those of the project that git does not ignore.
package AgentTest::Source;
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use Exporter 'import';
use File::Find qw(find);

our @EXPORT = qw(source_files source_folders numbered_lines without_comments);

# The paths, from the top, of all files or of those that match.
sub source_files {
    my ($pattern) = @_;
    my $root = root();
    my @files;
    find({
        no_chdir   => 1,
        preprocess => sub { grep { !is_ignored($_) } @_ },
        wanted     => sub { push @files, substr $_, length("$root/") if -f },
    }, $root);
    return sort grep { !defined $pattern || /$pattern/ } @files;
}

sub is_ignored {
    my ($name) = @_;
    return $name =~ /\A(?:\.git|\.build|\.run|node_modules|__pycache__)\z/;
}

# The folders that hold files, without the top.
sub source_folders {
    my %folders = map { m{\A(.+)/} ? ($1 => 1) : () } source_files();
    return sort keys %folders;
}

# [number, line] pairs of a file, or of a text given by reference.
sub numbered_lines {
    my ($file) = @_;
    my $number = 0;
    return map { [ ++$number, $_ ] }
        split /\n/, ref $file ? ${$file} : slurp(root() . "/$file");
}

# C without comments; the lines keep their numbers.
sub without_comments {
    my ($file) = @_;
    my $text = slurp(root() . "/$file");
    $text =~ s{("(?:[^"\\\n]|\\.)*")|(/\*.*?\*/|//[^\n]*)}
              {$1 // ($2 =~ tr/\n//cdr)}egs;
    return \$text;
}

1;
