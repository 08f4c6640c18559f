# SPDX-License-Identifier: Apache-2.0
# The length of files and functions, in C, SQL and JavaScript, and the number of
# parameters; those of Python are in python_rules.py.
use strict;
use warnings;
use AgentTest::Env qw(root slurp write_file);
use AgentTest::Source;
use Cpanel::JSON::XS;
use File::Temp qw(tempdir);
use Test::More;

my %LINES = (c => 500, h => 150, sql => 500, pm => 500, pl => 500, sh => 500,
    mjs => 500, js => 500);
# The first page of the project leads to the others.
my $README_LINES = 250;
my $FUNCTION_LINES = 60;
# The longest function of the modules. To exceed it is a decision to be made here.
my $LONGEST = 45;
my $HANDLER_LINES = 25;
# A function of the schema, without its declaration.
my $BODY_LINES = 100;
# The aim is 6: an out-parameter, a subject, inputs, err and pool add up.
my $PARAMETERS = 8;
my $SCRIPT_PARAMETERS = 6;

chdir root() or die root() . ": $!\n";
my @too_long;
for my $file (source_files(qr/\.(?:c|h|sql|pm|pl|sh|m?js)\z/)) {
    my ($kind) = $file =~ /(\w+)\z/;
    my $lines = () = numbered_lines($file);
    push @too_long, "$file has $lines lines" if $lines > $LINES{$kind};
}
is join("\n", @too_long), '', 'no file is too long';
my $readme_lines = () = numbered_lines('README.md');
cmp_ok $readme_lines, '<=', $README_LINES, "README.md has at most $README_LINES lines";

my @c_files = source_files(qr/\.c\z/);
my (@long, @handlers, @wide, @functions);
open my $ctags, '-|', 'ctags', '-f', '-', '--output-format=json',
    '--fields=+neS', '--kinds-C=f', @c_files
    or die "ctags: $!\n";
while (my $line = <$ctags>) {
    my $tag = decode_json($line);
    my $size = $tag->{end} - $tag->{line} + 1;
    my $name = "$tag->{path}:$tag->{line} $tag->{name}";
    push @functions, [ $size, $name ] if $tag->{path} =~ m{\Amod_\w+/};
    push @long, "$name has $size lines" if $size > $FUNCTION_LINES;
    push @handlers, "$name has $size lines"
        if $tag->{name} =~ /\Aagent_handle_/ && $size > $HANDLER_LINES;
    my $parameters = 1 + ($tag->{signature} =~ tr/,//);
    push @wide, "$name has $parameters parameters" if $parameters > $PARAMETERS;
}
close $ctags or die "ctags failed\n";

# The tags of ctags, with `lines` and `parameters`; it knows where functions in C end.
# One in JavaScript ends with the next line that has a brace alone, as far to the right.
sub script_tags {
    my (@files) = @_;
    my @tags;
    open my $from, '-|', 'ctags', '-f', '-', '--output-format=json', '--fields=+nS',
        '--map-JavaScript=+.mjs', '--kinds-JavaScript=fgmGS', @files or die "ctags: $!\n";
    while (my $line = <$from>) {
        my $tag = decode_json($line);
        my @lines = split /\n/, slurp($tag->{path});
        my ($indent) = $lines[ $tag->{line} - 1 ] =~ /\A(\s*)/;
        my ($end) = grep { $lines[$_] =~ /\A$indent\}[;,)]*\z/ } $tag->{line} .. $#lines;
        my $is_open = $lines[ $tag->{line} - 1 ] =~ /[({,]\z/;
        $tag->{lines} = $is_open && defined $end ? $end + 2 - $tag->{line} : 1;
        $tag->{parameters} = parameters_of($tag->{signature} // '()');
        push @tags, $tag;
    }
    close $from or die "ctags failed\n";
    return @tags;
}

# Of a signature in JavaScript: an object that is taken apart is one parameter.
sub parameters_of {
    my ($signature) = @_;
    my ($inner) = $signature =~ /\A\((.*)\)\z/s or return 0;
    1 while $inner =~ s/\{[^{}]*\}|\[[^\[\]]*\]|\([^()]*\)|'[^']*'/x/g;
    return $inner =~ /\S/ ? 1 + ($inner =~ tr/,//) : 0;
}

my $sample = write_file(tempdir(CLEANUP => 1) . '/sample.mjs', <<'JS');
export async function one(a, { b, c } = {}, d = f(1, 2)) {
    if (a) {
        return b;
    }
}
class Two {
    #three(a,
        b) {
        return [a, b];
    }

    get four() { return 4; }
}
JS
is join(' ', map { "$_->{name}:$_->{lines}:$_->{parameters}" } sort { $a->{line} <=> $b->{line} } script_tags($sample)),
    'one:5:3 three:4:2 four:1:0', 'the check is right about functions in JavaScript';

my @script_tags = script_tags(source_files(qr/\.m?js\z/));
cmp_ok scalar(grep { $_->{path} =~ m{\Amod_agent/runners/node/} } @script_tags), '>', 200, 'the functions of the runner for JavaScript are found';
for my $tag (@script_tags) {
    my $name = "$tag->{path}:$tag->{line} $tag->{name}";
    push @long, "$name has $tag->{lines} lines" if $tag->{lines} > $FUNCTION_LINES;
    push @wide, "$name has $tag->{parameters} parameters" if $tag->{parameters} > $SCRIPT_PARAMETERS;
}
is join("\n", @long), '', "no function is longer than $FUNCTION_LINES lines";
is join("\n", @handlers), '', "no handler of an endpoint is longer than $HANDLER_LINES lines";
is join("\n", @wide), '', "no function has more than $PARAMETERS parameters, in JavaScript $SCRIPT_PARAMETERS";

# The ten longest of [lines, name] pairs, which this sorts.
sub longest_of {
    my ($functions) = @_;
    @{$functions} = sort { $b->[0] <=> $a->[0] || $a->[1] cmp $b->[1] } @{$functions};
    return join '', map { sprintf "%3d lines: %s\n", @{$_} } @{$functions}[ 0 .. 9 ];
}

my $longest = longest_of(\@functions);
note "The longest functions of the modules:\n$longest";
cmp_ok $functions[@functions / 2][0] // 0, '<=', 13, 'half of the functions have at most 13 lines';
cmp_ok $functions[0][0], '<=', $LONGEST, "the longest function of the modules has at most $LONGEST lines"
    or diag $longest;

my @bodies;
for my $file (source_files(qr{\Asql/functions/\w+/\w+/\w+\.sql\z})) {
    my ($body) = slurp($file) =~ /^as \$function\$\n(.*?)^\$function\$;/ms
        or die "$file has no body\n";
    push @bodies, [ $body =~ tr/\n//, $file ];
}
$longest = longest_of(\@bodies);
note "The longest functions of the schema:\n$longest";
cmp_ok $bodies[0][0], '<=', $BODY_LINES, "the body of a function of the schema has at most $BODY_LINES lines"
    or diag $longest;

done_testing;
