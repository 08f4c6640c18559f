# SPDX-License-Identifier: Apache-2.0
# Names of C: the headers of a module define a type once, and a function is declared in
# the header that its name begins with, where a reader looks for it: module_file_verb,
# or module_folder_file_verb. Two headers do not share such a prefix.
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

# ---- Functions ----

# Headers whose functions begin with another word, with the reason.
my %OTHER = (
    # The prefix of the folder, in which no header has its name: all that speaks to libpq.
    'mod_agent/db/'                     => qr/\Adb_/,
    # One list of the handlers of all routes, each in the file of its resource.
    'mod_agent/handlers/handlers.h'     => qr/\A(?:handle|sign_up)_/,
    # As the functions of stdio and err(3).
    'mod_agent/ctl/base/output.h'       => qr/\A(?:directive|error|print|relay|step|warn)\z/,
    # One table, in batch.h; these two move its lines.
    'mod_agent/supervisor/lease/batch_' => qr/\Abatch_/,
    # The pair of each lock_.
    'mod_ratelimit_regional/counter/lock.h'    => qr/\Aunlock_/,
    # One window: its decisions, its words in memory, and its rebuilding.
    'mod_ratelimit_regional/counter/window_'   => qr/\Awindow_/,
    # Functions without a subject.
    'mod_agent/supervisor/base/order.h' => qr/\A(?:earlier|larger|later|smaller)\z/,
);

# Whether a name, without the module's word, begins with that of a header; a plural stands for it too.
sub is_of {
    my ($name, $file) = @_;
    my @parts = split m{/}, $file =~ s/(?:_private)?\.h\z//r;
    my $header = pop @parts;
    for ($header, map { "${_}_$header" } @parts) {
        my $several = s/y\z/ies/r;
        return 1 if $name =~ /\A(?:\Q$_\E(?:e?s)?|\Q$several\E)(?:_|\z)/ || /s\z/ && $name =~ /\A\Q@{[ s{s\z}{}r ]}\E(?:_|\z)/;
    }
    return grep { $file =~ /\A\Q$_\E/ && $name =~ $OTHER{$_} } keys %OTHER;
}

# The functions of a header whose names do not begin with its own: the text without comments.
sub strangers_of {
    my ($file, $text) = @_;
    # Declarations and inline functions; calls in a body are indented.
    return grep { !is_of($_, $file) && !is_of(s/\A[a-z]+_//r, $file) } $text =~ /^(?! )[^(){};=#]*?\b((?:agent|ctl|rlr|runner)_[a-z]\w*)\(/mg;
}

my @samples = (
    [ 'mod_agent/supervisor/io/line.h', 'bool agent_line_take(int a);', '' ],
    [ 'mod_agent/supervisor/io/line.h', "static inline int\nagent_io_line_take(int a)\n{\n    agent_raw_read(a);\n}", '' ],
    [ 'mod_agent/supervisor/io/line.h', 'bool agent_lines_take(int a);', '' ],
    [ 'mod_agent/http/body_private.h',  'void agent_bodies_create(int);', '' ],
    [ 'mod_agent/supervisor/io/line.h', 'bool agent_take_line(int a);', 'agent_take_line' ],
    [ 'mod_agent/supervisor/io/line.h', "int agent_line_a(int);\nconst char *agent_io_take(int a);", 'agent_io_take' ],
    [ 'mod_agent/db/query.h',           'int agent_db_rows(int);', '' ],
);
is join(' ', strangers_of(@{$_}[ 0, 1 ])), $_->[2], "the check is right about a sample: $_->[1]" for @samples;

my $functions = 0;
my @strangers;
for my $file (source_files(qr{\Amod_\w+/.*\.h\z})) {
    my $text = ${ without_comments($file) };
    $functions += () = $text =~ /^(?! )[^(){};=#]*?\b(?:agent|ctl|rlr|runner)_[a-z]\w*\(/mg;
    push @strangers, map { "$file: $_" } strangers_of($file, $text);
}
cmp_ok $functions, '>', 800, 'the functions of headers are found';
is join("\n", @strangers), '', 'the name of a function begins with that of its header';

done_testing;
