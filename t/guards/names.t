# SPDX-License-Identifier: Apache-2.0
# Names of C: the headers of a module define a type once, and two of them do not share
# the prefix of their functions, module_file_, since a reader finds a function by it.
use strict;
use warnings;
use AgentTest::Env qw(root);
use AgentTest::Source;
use Test::More;

my (%types, %prefixes);
for my $file (source_files(qr{\Amod_\w+/.*\.h\z})) {
    my ($module, $name) = $file =~ m{\A(\w+)/.*?(\w+)\.h\z};
    my $text = ${ without_comments($file) };
    $types{"$module: $_"}{$file} = 1
        for $text =~ /^\}[^;{}\n]*?\b(\w+_t)\s*;/mg, $text =~ /^typedef\s[^;{}()]*?\b(\w+_t)\s*;/mg, $text =~ /^typedef\s[^;{}]*?\(\*(\w+_t)\)/mg;
    # agent_page_read() of page.h; a plural in the name of the file may be dropped.
    $prefixes{"$module: $1"}{$file} = 1 while $text =~ /\b((?:agent|rlr|runner|ctl)_(??{ $name =~ s{s\z}{s?}r })_)[a-z]\w*\(/g;
}

sub shared {
    my ($found) = @_;
    return join "\n", map { "$_: " . join ' ', sort keys %{ $found->{$_} } }
        grep { keys %{ $found->{$_} } > 1 } sort keys %{$found};
}

# Types that a file declares in advance: `typedef struct x_t x_t;`.
for my $type (keys %types) {
    my ($name) = $type =~ /(\w+)\z/;
    for my $file (keys %{ $types{$type} }) {
        my $text = ${ without_comments($file) };
        delete $types{$type}{$file} if $text =~ /^typedef\s+(?:struct|union|enum)\s+$name\s+$name\s*;/m;
    }
}
is shared(\%types), '', 'the headers of a module define a type once';
my %bodies;
for my $file (source_files(qr{\Amod_\w+/.*\.[ch]\z})) {
    my ($module) = $file =~ m{\A(\w+)/};
    my $text = ${ without_comments($file) };
    $bodies{"$module: $1"}{$file} = 1 while $text =~ /^(?:typedef\s+)?(?:struct|union)\s+((?:agent|rlr|runner|ctl)_\w+_t)\s*\{/mg;
}
is shared(\%bodies), '', 'a module has one struct of a name, in all its files';
is shared(\%prefixes), '', 'two headers do not share the prefix of their functions';

done_testing;
