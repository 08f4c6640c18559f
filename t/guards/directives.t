# SPDX-License-Identifier: Apache-2.0
# The tables of directives in C and their reference in conf/ agree, and READMEs and
# examples name only existing directives.
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use AgentTest::Source;
use Test::More;

# For each module: the prefix of its directives, their definitions, their
# reference, and other files that name them.
is join(' ', placeholders_in_lower_case(syntax_of("# X path (1s..1d; unit: s)\n# X 0..5 name=NAME\n# X NUMBER (1..5) none|PATH\n# X path of it.\n", 'X'))), 'path unit 0..5',
    'the check is right about a syntax';
check_module('Agent', qr{\Amod_agent/(?:config/)?[^/]+\.c\z},
    'conf/agent.conf', 'README.md', source_files(qr{\Amod_agent/[A-Z]+\.md\z}));
check_module('RateLimit', qr{\Amod_ratelimit_regional/config/[^/]+\.c\z},
    'conf/ratelimit_directives.conf', 'conf/ratelimit_regional.conf',
    'mod_ratelimit_regional/README.md', 'mod_ratelimit_regional/STORE.md', 'mod_ratelimit_regional/messages.md',
    'README.md', 'mod_agent/PLATFORM.md');
done_testing;

sub check_module {
    my ($prefix, $sources, $reference, @others) = @_;
    my %help = find_directives($sources);
    ok scalar %help, "$prefix... has directives";
    check_reference(\%help, $prefix, $reference);
    for my $file ($reference, @others) {
        is join(' ', unknown_in(\%help, $prefix, slurp(root() . "/$file"))), '',
            "$file names no unknown directive $prefix...";
    }
    return;
}

# Name => help text, pieced together from its literals.
sub find_directives {
    my ($sources) = @_;
    my $text = join '', map { ${ without_comments($_) } } source_files($sources);
    my $runner = installed_runner();
    $text =~ s/\bAGENT_RUNNER_PATH\b/"$runner"/g;
    my %help;
    while ($text =~ /AP_INIT_\w+\(\s*"(<?\w+)",(.*?)(?=AP_INIT_|\{\s*(?:\.name = )?NULL)/gs) {
        my ($name, $rest) = ($1, $2);
        $help{$name} = join '', $rest =~ /"((?:[^"\\]|\\.)*)"/g;
    }
    return %help;
}

# The build's definition of AGENT_RUNNER_PATH.
sub installed_runner {
    my $makefile = slurp(root() . '/Makefile.apxs');
    my ($prefix) = $makefile =~ /^PREFIX\s*\?=\s*(\S+)$/m;
    my ($path) = $makefile =~ /-DAGENT_RUNNER_PATH='"\$\(PREFIX\)(\S+?)"'/;
    return $prefix . $path;
}

sub check_reference {
    my ($help, $prefix, $file) = @_;
    my $reference = slurp(root() . "/$file");
    # Inside a section that is commented out as a whole.
    $reference =~ s/^#    (?=#|$prefix)/    /mg;
    for my $name (sort keys %{$help}) {
        like $reference, qr/^\s*#?\s*\Q$name\E\b/m, "$file shows $name";
        next if $name =~ /\A</;
        my ($comment) = $reference =~ /((?:^[ ]*# .*\n)+)[ ]*#?$name\b/m;
        like $comment // '', qr/^[ ]*# Context: (?:server config|<AgentGraph>).*\.$/m,
            "$file states the context of $name";
        my ($default) = $help->{$name} =~ /\((default: .+|required)\)\z/;
        ok $default, "the help text of $name ends with its default";
        is join(' ', placeholders_in_lower_case(syntax_of($comment // '', $name))), '', "$file: the syntax of $name has capitals for what is replaced";
        like last_sentence($comment // ''), qr/\A\Q$default\E(?:,|\z)/i,
            "$file states the same default of $name";
    }
    return;
}

# The lines of a comment that begin with the directive's name, its syntax.
sub syntax_of {
    my ($comment, $name) = @_;
    return join "\n", $comment =~ /^[ ]*# (?:\Q$name\E )(.*[^.\n])$/mg;
}

# The words of a syntax that stand for a value, as the references wrote them in several ways.
sub placeholders_in_lower_case {
    my ($syntax) = @_;
    return $syntax =~ /\b(name|path|size|duration|time|url|text|regex|address|block|host|origin|number|port|directory|value|slots|bits|unit)\b(?!=)/g,
        $syntax =~ /(?<![(.\d])(\d+\.\.\d+)/g;
}

# The last word of a comment, without the full stop.
sub last_sentence {
    my ($comment) = @_;
    my $text = join ' ', map { s/\A[ ]*# //r } split /\n/, $comment;
    $text =~ s/\.\z//;
    return $text =~ s/.*(?=(?:Default:|Required\b))//sr;
}

# Lower case follows in every directive, or IPv6; AgentXyz in prose may be a
# type, and after AuthType it is its value.
sub unknown_in {
    my ($help, $prefix, $text) = @_;
    my %seen;
    return grep { !$help->{$_} && !$help->{"<$_"} && !$seen{$_}++ }
        $text =~ /(?<!AuthType )\b($prefix[A-Z]\w+)\b/g;
}
