# SPDX-License-Identifier: Apache-2.0
# TypeScript that the runner for JavaScript compiles ahead (--compile): when it is used,
# when tsx compiles in its place, and which applications are left to tsx.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Applications qw(check_folder folder_of runner_of);
use AgentTest::Env qw(slurp write_file);
use Cpanel::JSON::XS qw(decode_json);
use File::Temp qw(tempdir);
use NodeApplication qw(runner);
use Test::More;

my ($node, $runner) = runner_of('javascript');

my $shown = write_file(tempdir(CLEANUP => 1) . '/show.mjs', "if (process.argv.includes('--check')) {\n"
    . "process.on('exit', () => process._rawDebug(process.env.TSX_DISABLE_CACHE ? 'with tsx' : 'without tsx'));\n}\n");

my %FILES = (
    'package.json' => '{"type":"module","imports":{"#kept":"./src/kept.ts"}}',
    'tsconfig.json' => '{"compilerOptions":{"paths":{"@/*":["./src/*"]}}}',
    'data.txt' => 'text of a file', 'text with blanks.txt' => '',
    'src/kept.ts' => "export const kept: string = 'kept';\n",
    'src/names.ts' => "export class State { static count: number = 0 }\nexport let live: number = 1;\nexport const raise = () => { live += 1; };\n",
    'src/plain.js' => "import { count } from './graph.js';\nexport const plain = () => count;\n",
    'src/late.ts' => "export const late: string = 'late';\n",
    'src/graph.ts' => <<'TS');
import { readFileSync } from 'node:fs';
import { Annotation, START, StateGraph } from '@langchain/langgraph';
import { kept } from '#kept';
import { live, raise, State } from './names.js';
import { plain } from './plain.js';
import type { Missing } from './nowhere.js';
class Own extends State {}
export const count: number = 7;
raise();
const text = readFileSync(new URL('../data.txt', import.meta.url), 'utf8');
const { late } = await import('@/late.js');
const seen: Missing = [kept, live, Own.name, plain(), text, late].join(', ');
const All = Annotation.Root({ seen: Annotation<string> });
export const graph = new StateGraph(All).addNode(seen.replaceAll(/[^a-zA-Z0-9]/g, '_'), function step() {
    throw new RangeError('from the source');
}).addEdge(START, seen.replaceAll(/[^a-zA-Z0-9]/g, '_')).compile();
TS
my $NAME = 'kept__2__Own__7__text_of_a_file__late';

sub application {
    my (%files) = @_;
    my $folder = folder_of('javascript', { graphs => { g => './src/graph.ts:graph' } }, %FILES, %files);
    mkdir "$folder/.agent" or die "$folder: $!\n";
    return $folder;
}

# The nodes of the graph, the error if it has none; "tsx: " before them if the start has
# loaded tsx, which sets a variable first.
sub nodes_of {
    my ($folder) = @_;
    local $ENV{NODE_OPTIONS} = "--import $shown";
    my $check = check_folder('javascript', $folder);
    my $nodes = $check->{graphs}{g}{drawing}{nodes} or return "$check->{errors} $check->{graphs}{g}{error}{message}";
    return ($check->{errors} =~ /^with tsx$/m ? 'tsx: ' : '') . join ' ', grep { !/^__/ } map { $_->{id} } @{$nodes};
}

# (status, errors) of --compile; {graphs} of its output
sub compile {
    my ($folder) = @_;
    my $output = qx(cd '$folder' && '$node' '$runner' --compile 2>'$folder/errors');
    return ($? >> 8, slurp("$folder/errors"), $output);
}

my $folder = application();
is nodes_of($folder), "tsx: $NAME", 'sources: tsx imports them';
my ($status, $errors, $report) = compile($folder);
is $status, 0, 'compile: the application is compiled' or diag $errors;
is_deeply decode_json($report)->{graphs}, check_folder('javascript', $folder)->{graphs}, 'compile: its report is that of a start';
is nodes_of($folder), $NAME, 'compiled: its modules are as the sources are, without tsx';
is_deeply [ grep { !m{/(?:src|\.agent|node_modules|[\w ]+\.(?:txt|json|mjs)|errors)\z} } glob "$folder/* $folder/.agent" ], [],
    'compile: nothing is written beside the sources';

# ---- what it was made of has changed, or it is damaged ----
sub changed {
    my ($what, $file, $text, $expected) = @_;
    my ($path) = glob "$folder/$file";
    my $old = slurp($path);
    defined $text ? write_file($path, ref $text ? $text->($old) : $text) : unlink $path;
    is nodes_of($folder), 'tsx: ' . ($expected // $NAME), "$what: tsx compiles the sources";
    write_file($path, $old);
    return;
}
my $index = '.agent/compiled/index.json';
my $cut = sub { substr $_[0], 0, 200 };
changed('a source that changed', 'src/kept.ts', "export const kept: string = 'new';\n", $NAME =~ s/kept/new/r);
changed('a source that is imported late', 'src/late.ts', "export const late: string = 'later';\n", $NAME =~ s/late/later/r);
changed('another tsconfig.json', 'tsconfig.json', sub { "$_[0]\n" });
changed('another Node', $index, sub { $_[0] =~ s/"node":"[^"]+"/"node":"v0.1"/r });
changed('a folder that was moved', $index, sub { $_[0] =~ s/"directory":"[^"]+"/"directory":"\/elsewhere"/r });
changed('an index that was cut', $index, $cut);
changed('a module that was cut', '.agent/compiled/graph-*.mjs', $cut);
changed('a module that is gone', '.agent/compiled/late-*.mjs');
changed('a graph that was added', 'langgraph.json', '{"graphs":{"g":"./src/graph.ts:graph","other":"./src/kept.ts:kept"}}');
is nodes_of($folder), $NAME, 'compiled: they are used again when all is as it was';

# ---- a folder that cannot be written ----
my $full = application();
rmdir "$full/.agent" or die "$full: $!\n";
write_file("$full/.agent", 'not a folder');
($status, $errors) = compile($full);
is $status, 3, 'no folder: the status says that nothing is compiled';
like $errors, qr/^TypeScript is not compiled ahead: /m, 'no folder: so does the log';
is nodes_of($full), "tsx: $NAME", 'no folder: tsx compiles';

# ---- what is left to tsx ----
for my $case (
    [ 'imports a name that is computed', 'src/names.ts' => "$FILES{'src/names.ts'}const name = './late.js';\nawait import(name);\n" ],
    [ 'uses import.meta', 'src/names.ts' => "$FILES{'src/names.ts'}import.meta.resolve('./late.js');\n" ],
    [ 'uses names of CommonJS', 'src/names.ts' => "import { createRequire } from 'node:module';\nconst require = createRequire(import.meta.url);\n$FILES{'src/names.ts'}" ],
    [ 'has a package.json of its own', 'src/package.json' => '{"type":"module","imports":{"#kept":"./kept.ts"}}' ],
    [ 'imports ./a.json', 'src/a.json' => '{}', 'src/kept.ts' => "import a from './a.json' with { type: 'json' };\nexport const kept: string = a ? 'kept' : '';\n" ],
    [ 'extends another file', 'base.json' => '{}', 'tsconfig.json' => '{"extends":"./base.json","compilerOptions":{"paths":{"@/*":["./src/*"]}}}' ]) {
    my ($reason, %files) = @{$case};
    my $left = application(%files);
    ($status, $errors) = compile($left);
    is $status, 3, "$reason: the application is not compiled";
    like $errors, qr/^TypeScript is not compiled ahead: \S+ \Q$reason\E$/m, "$reason: the log says why";
    ok !-e "$left/.agent/compiled", "$reason: nothing is left";
    is nodes_of($left), "tsx: $NAME", "$reason: tsx compiles";
}

# ---- errors name the lines of the sources ----
my $application = ApplicationTest->new(command => [ $node, $runner ], directory => $folder, graphs => { g => './src/graph.ts:graph' });
my @lines = $application->run(graph_id => 'g', input => { seen => 'x' });
is $lines[-1]{error}{error}, 'RangeError', 'errors: a run of a compiled graph ends with its error';
like $application->{log_text}, qr{\($folder/src/graph\.ts:15}, 'errors: the log names the line of the source';
done_testing;
