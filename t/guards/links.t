# SPDX-License-Identifier: Apache-2.0
# The pages of the project lead somewhere: a relative link names a file or folder
# that exists, and a heading of it, and so does a path in backticks, from the
# folder of the page, from that of its module, from t/ or from the top.
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use AgentTest::Source;
use Test::More;

my %exists = map { $_ => 1 } source_files(), source_folders(), '';

# Paths of other trees: Apache's on Debian, and what `make run` creates.
my $ELSEWHERE = qr{\A(?:\.run|(?:conf|sites|mods)-(?:available|enabled))/};
# NAME stands for any name.
my $PLACEHOLDER = qr{(?:\A|/)[A-Z]+(?:[/.]|\z)};
my $EXTENSION = qr{\.(?:c|h|t|sql|pl|pm|py|mjs|js|def|md|conf|lua|json|sh|txt)};

# A path from the top, without . and ..; undef: it leaves the tree.
sub normal {
    my @parts;
    for (grep { length && $_ ne '.' } split m{/}, $_[0]) {
        if ($_ ne '..') { push @parts, $_ }
        elsif (!defined pop @parts) { return }
    }
    return join '/', @parts;
}

# Whether a path from a folder names something.
sub leads {
    my ($folder, $path) = @_;
    my $to = normal("$folder/$path");
    return defined $to && $exists{$to};
}

# The name that Markdown gives to a heading.
sub anchor {
    return lc($_[0]) =~ s/[^\w\- ]//gr =~ tr/ /-/r;
}

sub text_of {
    my ($page) = @_;
    return slurp(root() . '/' . $page) =~ s/^```.*?^```//msgr;
}

sub anchors_of {
    my ($path) = @_;
    my $page = -d root() . "/$path" ? "$path/README.md" : $path;
    return map { anchor($_) => 1 } text_of($page) =~ /^#+ (.*)$/mg;
}

sub is_link {
    my ($page, $folder, $link) = @_;
    my ($path, $heading) = split /#/, $link, 2;
    my $to = $path eq '' ? $page : normal("$folder/$path");
    return defined $to && $exists{$to} && (!defined $heading || { anchors_of($to) }->{$heading});
}

sub is_path {
    my ($folder, $path) = @_;
    return 1 if $path =~ $ELSEWHERE || $path =~ $PLACEHOLDER;
    my ($module) = $folder =~ m{\A(mod_\w+)};
    return grep { leads($_, $path) } $folder, '', 't', defined $module ? $module : ();
}

# The links and paths of a text that lead nowhere.
sub faults_of {
    my ($page, $text) = @_;
    my ($folder) = $page =~ m{\A(.*)/[^/]*\z} ? $1 : '';
    return (grep { !/\A\w+:/ && !is_link($page, $folder, $_) } $text =~ /\]\(([^)\s]+)\)/g),
        (grep { !is_path($folder, $_) } $text =~ m{`((?:\.\./)*\w[\w.-]*/(?:[\w./-]*[\w-])?(?:$EXTENSION|/))`}g);
}

my @samples = (
    [ 'a link to a file, and to a folder',     '[a](../README.md), [b](../core)',         '' ],
    [ 'a link to a heading',                   '[a](#one-b), [b](../../README.md#nothing)', '#one-b ../../README.md#nothing' ],
    [ 'a link to nothing',                     '[a](nothing.md), [b](https://x.org/y)',   'nothing.md' ],
    [ 'paths from the folder, the module, t/ and the top',
        '`../core/raw.h` `core/raw.h` `guards/links.t` `mod_agent/core/raw.h`', '' ],
    [ 'a path from no folder',                 '`links/raw.h` `t/raw.h`',                 'links/raw.h t/raw.h' ],
    [ 'a path of another module',              '`rules/table.h`',                         'rules/table.h' ],
    [ 'a path of Debian, one of any name',     '`sites-enabled/x.conf` `conf/NAME.conf`', '' ],
);
is join(' ', faults_of('mod_agent/auth/README.md', $_->[1])), $_->[2], "the check is right about a sample: $_->[0]" for @samples;

is join(' ', faults_of($_, text_of($_))), '', "$_: its links and paths lead somewhere" for source_files(qr{\.md\z});

done_testing;
