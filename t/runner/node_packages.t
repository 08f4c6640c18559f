# SPDX-License-Identifier: Apache-2.0
# Where the runner for JavaScript finds the library: in the links that pnpm makes, for
# applications that do not name it, and in several versions.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Env qw(root slurp write_file);
use ApplicationTest;
use Cpanel::JSON::XS qw(encode_json);
use File::Basename qw(basename dirname);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use NodeApplication qw(program);
use RunnerTest qw(lines_of);
use Test::More;

my $top = tempdir('/tmp/agent-test-packages.XXXXXX', CLEANUP => 1);
my $fixture = NodeApplication::application('node') . '/node_modules';
my $oldest = NodeApplication::application('node-1.0') . '/node_modules';

# A package with a graph, which says whether its checkpointer is of the package's own library.
my $GRAPH = <<'JS';
import { Annotation, BaseCheckpointSaver, START, StateGraph } from '@langchain/langgraph';
export const graph = new StateGraph(Annotation.Root({ answer: Annotation() }))
    .addNode('tell', (state, { configurable }) =>
        ({ answer: configurable.__pregel_checkpointer instanceof BaseCheckpointSaver ? 'own' : 'of another' }))
    .addEdge(START, 'tell').compile();
JS

sub link_to {
    my ($target, $path) = @_;
    make_path(dirname($path));
    symlink $target, $path or die "$path: $!\n";
    return;
}

# An application as pnpm lays it out. packages: the folder of a package, or undef for one
# with that graph; each real one has beside it links to all that it may import, and the
# application has links to those alone. links: further ones in its node_modules.
sub application {
    my ($name, %args) = @_;
    my $modules = "$top/$name/node_modules";
    for my $package (sort keys %{ $args{packages} }) {
        my $store = "$modules/.pnpm/$package\@1.0.0/node_modules";
        make_path($store);
        if (my $source = $args{packages}{$package}) {
            system('cp', '-R', $source, "$store/$package") == 0 or die "cp failed\n";
        }
        else {
            make_path("$store/$package");
            write_file("$store/$package/package.json", qq({"name":"$package","version":"1.0.0","type":"module","exports":"./index.js"}\n));
            write_file("$store/$package/index.js", $GRAPH);
        }
        link_to($_, "$store/" . basename($_)) for grep { basename($_) ne $package } glob "$fixture/*";
        link_to(".pnpm/$package\@1.0.0/node_modules/$package", "$modules/$package");
    }
    link_to($args{links}{$_}, "$modules/$_") for keys %{ $args{links} };
    my %files = (%{ $args{files} }, 'langgraph.json' => encode_json({ graphs => $args{graphs} }));
    write_file("$top/$name/$_", $files{$_}) for keys %files;
    my $runner = ApplicationTest->new(command => [ 'node', program() ], directory => "$top/$name", graphs => $args{graphs});
    my %errors = map { $_ => $runner->{ready}{graphs}{$_}{error} } keys %{ $args{graphs} };
    is_deeply [ grep { $_ } values %errors ], [], "$name: the graphs are loaded";
    return $runner;
}

# The answer of a run, with the version of the library that the runner reports.
sub answer_of {
    my ($runner, $graph) = @_;
    my @lines = $runner->run(graph_id => $graph, input => { answer => '' });
    return "$runner->{ready}{runtime}{library_version} " . ((lines_of('checkpoint', @lines))[-1]{values}{answer} // '');
}

my $agent = application('langchain', packages => { langchain => "$fixture/langchain" },
    links => { '@langchain/core' => "$fixture/\@langchain/core", zod => "$fixture/zod" },
    files => { 'agent.mjs' => slurp(root() . '/t/runner/fixtures/node/agent.mjs') }, graphs => { agent => './agent.mjs:agent' });
my @lines = $agent->run(graph_id => 'agent', input => { messages => [ { role => 'user', content => 'add 2 3' } ] });
is +(lines_of('checkpoint', @lines))[-1]{values}{messages}[-1]{content}, 'sum: 5',
    'langchain: an application that names it and not the library runs with the library of langchain';

my %of_deepagents = (files => { 'g.mjs' => "export { graph } from 'deepagents';\n" }, graphs => { deep => './g.mjs:graph' });
is answer_of(application('deepagents', packages => { deepagents => undef }, %of_deepagents), 'deep'), '1.7.3 own',
    'deepagents: an application that names it and not the library runs with the library of deepagents';

is answer_of(application('another', packages => { another => undef },
    links => { '.pnpm/node_modules/@langchain/langgraph' => "$fixture/\@langchain/langgraph" },
    files => { 'g.mjs' => "export { graph } from 'another';\n" }, graphs => { another => './g.mjs:graph' }), 'another'), '1.7.3 own',
    'pnpm: a package that the runner does not know has the library that pnpm shares';

my $both = application('versions', packages => { deepagents => undef },
    links => { '@langchain/langgraph' => "$oldest/\@langchain/langgraph" },
    files => { %{ $of_deepagents{files} }, 'own.mjs' => $GRAPH }, graphs => { %{ $of_deepagents{graphs} }, own => './own.mjs:graph' });
is answer_of($both, $_), '1.0.0 own', "versions: the graph $_ has the checkpointer of its own version"
    for 'own', 'deep';

done_testing;
