# SPDX-License-Identifier: Apache-2.0
# The published forms of `graphs`, `env` and `dependencies` of langgraph.json, imported by
# the real runner of each language (--check).
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Applications qw(check_folder folder_of);
use AgentTest::Env qw(slurp);
use Cpanel::JSON::XS qw(decode_json);
use PythonRunner;
use Test::More;

# {graphs of the report, status, errors, environment} of a folder with these files.
sub check {
    my ($language, $manifest, %files) = @_;
    my $folder = folder_of($language, $manifest, %files);
    return { %{ check_folder($language, $folder) },
        environment => -e "$folder/environment" ? decode_json(slurp("$folder/environment")) : {} };
}

# ---- graphs ----
my $PYTHON = <<'PY';
import contextlib
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph

builder = StateGraph(MessagesState).add_node("a", lambda state: {}).add_edge(START, "a")
compiled = builder.compile()

def plain(): return compiled
def with_config(config: RunnableConfig): return builder
def with_runtime(runtime: "ServerRuntime"): return compiled
def with_both(config: RunnableConfig, runtime: "ServerRuntime"): return compiled
async def later(config: RunnableConfig): return builder

@contextlib.asynccontextmanager
async def in_context(config: RunnableConfig): yield compiled

@contextlib.contextmanager
def in_plain_context(): yield builder
PY
my @python_names = qw(compiled builder plain with_config with_runtime with_both later in_context in_plain_context);
my $python = check('python', { dependencies => ['.'], graphs => {
    (map { $_ => "./forms.py:$_" } @python_names), bare => 'forms.py:compiled', module => 'pkg.mod:graph', nested => './pkg/mod.py:graph',
    source => './src/shop/graph.py:graph', sourced => 'shop.graph:graph',
    described => { path => './forms.py:compiled', description => 'The text' } } },
    'forms.py' => $PYTHON, 'pkg/__init__.py' => '', 'pkg/mod.py' => "from .other import graph\n", 'pkg/other.py' => "from forms import compiled as graph\n",
    'src/shop/__init__.py' => '', 'src/shop/graph.py' => "from forms import compiled as graph\n");
is $python->{status}, 0, 'python: all forms can be used' or diag $python->{errors};
ok $python->{graphs}{$_}{schemas}{input_schema}, "python: a graph that is given as $_ has schemas"
    for @python_names, qw(bare module nested source sourced described);
is $python->{graphs}{described}{description}, 'The text', 'python: a description is kept';

my $NODE = <<'JS';
import { Annotation, START, StateGraph } from '@langchain/langgraph';
const State = Annotation.Root({ count: Annotation() });
export const builder = new StateGraph(State).addNode('a', () => ({})).addEdge(START, 'a');
export const compiled = builder.compile();
export const plain = () => compiled;
export const withConfig = (config) => (config.configurable ? builder : undefined);
export const withRuntime = async (config, { accessContext }) => (accessContext === 'assistants.read' ? compiled : undefined);
export const agent = { graph: compiled, invoke() {} };
export const promised = Promise.resolve(compiled);
export default compiled;
JS
my @node_names = qw(builder compiled plain withConfig withRuntime agent promised default);
my $node = check('javascript', { node_version => '20', dependencies => ['.'], graphs => {
    (map { $_ => "./forms.mjs:$_" } @node_names), bare => 'forms.mjs:compiled', described => { path => './forms.mjs:compiled', description => 'The text' },
    (map { ($_ => "./as.$_:graph") } qw(js cjs ts mts cts tsx jsx)) } },
    'package.json' => '{"type":"module"}', 'forms.mjs' => $NODE,
    (map { ("as.$_" => "import { compiled } from './forms.mjs';\nexport const graph" . (/ts/ ? ': object' : '') . " = compiled;\n") } qw(js ts mts tsx jsx)),
    (map { ("as.$_" => <<'JS') } qw(cjs cts)));
const { Annotation, START, StateGraph } = require('@langchain/langgraph');
exports.graph = new StateGraph(Annotation.Root({ count: Annotation() })).addNode('a', () => ({})).addEdge(START, 'a').compile();
JS
is $node->{status}, 0, 'javascript: all forms can be used' or diag $node->{errors};
is_deeply [ map { $_->{id} } @{ $node->{graphs}{$_}{drawing}{nodes} || [] } ], [qw(__start__ a __end__)], "javascript: a graph that is given as $_ has a drawing"
    for @node_names, qw(bare described js cjs ts mts cts tsx jsx);
is $node->{graphs}{described}{description}, 'The text', 'javascript: a description is kept';

# ---- folders of dependencies, and what is not there ----
# Outside of the application: by its absolute and by its relative path.
my $outside = folder_of('python', { dependencies => [], graphs => {} }, 'outside_words/__init__.py' => "word = 'outside'\n", 'src/outside_source.py' => '');
for my $path ($outside, '../' . $outside =~ s{.*/}{}r) {
    my $found = check('python', { dependencies => ['.', $path], graphs => { g => './forms.py:compiled' } },
        'forms.py' => "import outside_source, outside_words\n$PYTHON");
    is $found->{status}, 0, "python: a folder of dependencies without a package is on the path: $path" or diag $found->{errors};
}
for my $case ([ python => 'forms.py', $PYTHON ], [ javascript => 'forms.mjs', $NODE ]) {
    my ($language, $file, $text) = @{$case};
    my $missing = check($language, { dependencies => ['.'], graphs => { file => './no/file.py:graph', export => "./$file:none" } }, $file => $text);
    is_deeply [ map { $missing->{graphs}{$_}{error}{error} } qw(file export) ], [qw(FileNotFoundError AttributeError)],
        "$language: a file and an export that are not there have their names";
    is $missing->{graphs}{file}{error}{message}, 'there is no file ./no/file.py', "$language: clients see the file as langgraph.json names it";
}

# ---- env ----
# [what, lines of the file with NAME for the name, the value]: the rule of mod_agent/runners/README.md. Lines
# that set no variable are last, and so is a quote without its end.
my @env = (
    [ 'a word', 'NAME=word', 'word' ],
    [ 'blanks around the name and the value', " \tNAME \t= \ttwo words \t", 'two words' ],
    [ 'export and a tab', "export\tNAME=v", 'v' ],
    [ 'no value', 'NAME=', '' ],
    [ 'a comment after a tab', "NAME=v\t# text", 'v' ],
    [ 'a comment in place of the value', 'NAME= # text', '' ],
    [ '# in a word', 'NAME=a#b', 'a#b' ],
    [ 'quotes in a word', q(NAME=it's "so"), q(it's "so") ],
    [ '= in a word', 'NAME=a=b', 'a=b' ],
    [ '\\n in a word', 'NAME=a\\nb', 'a\\nb' ],
    [ 'double quotes', 'NAME=" a # b " # text', ' a # b ' ],
    [ 'escapes in double quotes', 'NAME="a\\nb\\rc\\"d\\\\n\\t"', "a\nb\rc\"d\\n\\t" ],
    [ 'single quotes', q(NAME='a\\n"b" # c' # text), q(a\\n"b" # c) ],
    [ 'backquotes', q(NAME=`it's "so"`), q(it's "so") ],
    [ 'several lines in double quotes', qq(NAME="-----BEGIN KEY-----\nab=c # d\nX=1\n-----END KEY-----\n"), "-----BEGIN KEY-----\nab=c # d\nX=1\n-----END KEY-----\n" ],
    [ 'several lines in single quotes', qq(NAME='a\nb'), "a\nb" ],
    [ 'lines that end with CR LF', qq(NAME="a\r\nb"\r), "a\nb" ],
    [ 'a word after the quote', 'NAME="a" b', '"a" b' ],
    [ 'no interpolation', 'NAME=${C0}', '${C0}' ],
    [ 'the last of several lines', "NAME=first\nNAME=last", 'last' ],
    [ 'a line separator of Unicode', qq(NAME=a\xe2\x80\xa8b), "a\x{2028}b" ],
    [ 'a name without =', 'NAME', undef ],
    [ 'a comment', '# NAME=v', undef ],
    [ 'a quote without its end', 'NAME="one', '"one' ],
);
$env[$_][1] =~ s/NAME/C$_/g for 0 .. $#env;

my %reader = (
    python => [ './e.py:graph', 'e.py' => $PYTHON . "import os\ndef graph(): return compiled\nassert os.environ['A_NAME'] == 'its value', os.environ['A_NAME']\n" ],
    javascript => [ './e.mjs:compiled', 'e.mjs' => "$NODE\nif (process.env.A_NAME !== 'its value') throw new Error(`A_NAME is \${process.env.A_NAME}`);\n" ],
);
for my $language (sort keys %reader) {
    my ($path, %files) = @{ $reader{$language} };
    my $with = sub { my ($env, %more) = @_; return check($language, { graphs => { g => $path }, env => $env }, %files, %more) };
    is $with->({ A_NAME => 'its value' })->{status}, 0, "$language: env can be an object";
    is $with->('.env', '.env' => "# text\nexport A_NAME=\"its value\" # text\n")->{status}, 0, "$language: env can be a file";
    {
        local $ENV{A_NAME} = 'its value';
        is $with->(['A_NAME'])->{status}, 0, "$language: env can be a list of names that are set";
        is $with->({ A_NAME => 'another' })->{status}, 0, "$language: a variable that is set stays";
    }
    my $report = $language eq 'python' ? "import json, os\njson.dump(dict(os.environ), open('environment', 'w'))\n"
        : "import { writeFileSync } from 'node:fs';\nwriteFileSync('environment', JSON.stringify(process.env));\n";
    my ($file) = keys %files;
    my $found = $with->('.env', '.env' => join('', map { "$_->[1]\n" } @env), %files, $file => $report . $files{$file})->{environment};
    is $found->{"C$_"}, $env[$_][2], "$language: env: $env[$_][0]" for 0 .. $#env;
    my $numbers = '"I":-5,"F":1.5,"W":1.0,"Z":-0,"L":999999999999999,"S":0.0001,"E":1.2e3';
    $found = check($language, qq({"graphs":{"g":"$path"},"env":{"A_NAME":"its value",$numbers}}), $file => $report . $files{$file})->{environment};
    is_deeply [ map { $found->{$_} } qw(I F W Z L S E) ], [qw(-5 1.5 1 0 999999999999999 0.0001 1200)],
        "$language: numbers in the object of env are written alike";
    my $missing = $with->('.env');
    is $missing->{status}, 2, "$language: a missing file of env ends the runner";
    like $missing->{errors}, qr{\A/\S+/langgraph\.json: env: \.env: no such file or directory\n\z}i, "$language: one line names the file and the folder";
}
done_testing;
