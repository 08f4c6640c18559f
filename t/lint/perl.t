# SPDX-License-Identifier: Apache-2.0
# Every Perl file compiles without a warning, under strict.
use strict;
use warnings;
use AgentTest::Env qw(root slurp write_file);
use AgentTest::Source;
use File::Temp qw(tempdir);
use Test::More;

chdir root() or die root() . ": $!\n";
my $dir = tempdir(CLEANUP => 1);
# It is loaded in the process that compiles the others.
my $COMPILER = 't/lib/AgentTest/CompileEach.pm';

sub is_perl {
    my ($file) = @_;
    return $file =~ /\.(?:pl|pm|t|PL)\z/ || slurp($file) =~ /\A#!.*\bperl\b/;
}

# A folder's own modules; those below a lib have full names.
sub folder_of {
    my ($file) = @_;
    return $file =~ m{\A(.*?/lib)/} ? $1 : $file =~ s{/[^/]*\z}{}r;
}

# The messages of perl -wc about each file.
sub compile {
    my (@files) = @_;
    my $results = tempdir(DIR => $dir);
    system $^X, qw(-It/lib -wc -MAgentTest::CompileEach - ), $results, map { (folder_of($_), $_) } @files;
    return map { slurp("$results/$_") } 0 .. $#files;
}

# Lines of a file, and perl's message about each.
my %WRONG = (
    'my $a = ;'             => qr/^syntax error at - line 1\b/m,
    'use strict; $b1 = 1;'  => qr/^Global symbol "\$b1" requires explicit package name/m,
    'my @c = 1; $c[0] + 1;' => qr/^Useless use of addition \(\+\) in void context at - line 1\./m,
    '$d::e = 1;'            => qr/^Name "d::e" used only once: possible typo at - line 1\./m,
    'my $f; my $f;'         => qr/^"my" variable \$f masks earlier declaration/m,
    'use FileThatIsNot;'    => qr/^Can't locate FileThatIsNot\.pm /m,
);
my @lines = sort keys %WRONG;
write_file("$dir/$_.pl", "$lines[$_]\n") for 0 .. $#lines;
my @messages = compile(map { "$dir/$_.pl" } 0 .. $#lines);
like $messages[$_], $WRONG{ $lines[$_] }, "perl: `$lines[$_]` is found" for 0 .. $#lines;

my @files = grep { $_ ne $COMPILER && is_perl($_) } source_files();
@messages = compile(@files);
push @files, $COMPILER;
push @messages, qx($^X -It/lib -wc $COMPILER 2>&1) =~ s/\A\Q$COMPILER\E/-/r;
for my $file (@files) {
    is shift @messages, "- syntax OK\n", "$file compiles without a warning";
    like slurp($file), qr/^use strict;\nuse warnings;/m, "$file is strict";
}

done_testing;
