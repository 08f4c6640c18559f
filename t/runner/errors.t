# SPDX-License-Identifier: Apache-2.0
# The names of errors (PROTOCOL.md, "Errors"): the same failure has the same name and
# the same limit in a graph of either language.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cpanel::JSON::XS qw(encode_json);
use NodeApplication;
use PythonRunner;
use RunnerTest qw(lines_of events_of);
use Test::More;

# The server refuses each request to the store.
sub refuse {
    my ($request) = @_;
    return encode_json({ type => 'reply', %{$request}{qw(id run_id epoch)}, ok => \0,
        error => { code => 'run_taken', message => 'the run was taken' } }) . "\n";
}

my %runner = (
    python => PythonRunner->new(graphs => [qw(faulty quoted unsaved broken notes)], store => \&refuse),
    javascript => NodeApplication::runner(store => \&refuse, broken => './absent.mjs:graph',
        map { $_ => "./graphs.mjs:$_" } qw(act quoted unsaved)),
);

# A run of the node that does so, or of another graph.
sub run_of {
    my ($language, $do, $graph, %fields) = @_;
    my %run = $language eq 'python' ? (graph_id => $graph // 'faulty', input => { do => $do, n => 1 })
        : (graph_id => $graph // 'act', input => { answer => $do });
    return $runner{$language}->run(%run, stream_modes => ['custom'], %fields);
}

# [what, the node's name, graph, name of the error, pattern of its message, other fields of the run]
my @cases = (
    [ 'a value of more than 110 levels', '111 levels', undef, 'NotRenderedError', qr/\Aa value has more than 110 levels\z/ ],
    [ 'an event that JSON cannot hold', 'strange event', undef, 'NotRenderedError', qr/JSON/ ],
    [ 'a value that cannot be stored', 'strange value', undef, 'NotRenderedError', qr/BigInt|Strange/ ],
    [ 'a subgraph in a node whose name a line cannot have', 'x', 'quoted', 'NotRenderedError', qr/a "/ ],
    [ 'an event of a subgraph in such a node', 'x', 'unsaved', 'NotRenderedError', qr/\Aa name of more than 4096 bytes, or with characters that are not admitted: .*a /,
        stream_modes => ['updates'], stream_subgraphs => \1 ],
    [ 'the error of a drain that the server has not asked for', 'drained', undef, 'GraphDrained', qr/\Aby itself\z/ ],
    [ 'a graph that was not reported', 'x', 'none', 'GraphNotFound', qr/\Athe application has no graph none\z/ ],
    [ 'a graph that was reported with an error', 'x', 'broken', undef, qr/./ ],
);
for my $language (sort keys %runner) {
    for my $case (@cases) {
        my ($what, $do, $graph, $name, $message, %fields) = @{$case};
        my @lines = run_of($language, $do, $graph, %fields);
        my $error = $lines[-1]{error};
        is "$lines[-1]{status} $error->{error}", 'error ' . ($name // $runner{$language}{ready}{graphs}{$graph}{error}{error}),
            "$language: $what ends the run";
        like $error->{message}, $message, "$language: the message says so";
        is_deeply [ events_of('error', @lines) ], [$error], "$language: the event has it";
    }
    my @levels = run_of($language, '110 levels');
    is $levels[-1]{status}, 'success', "$language: a value may have 110 levels";
    my @tiny = run_of($language, 'tiny numbers');
    is_deeply [ @{ (events_of('custom', @tiny))[0] }[ 0 .. 3 ] ], [ 0, 0, 1e-308, -1.5e-308 ],
        "$language: numbers below 1e-308 are 0, others are not";
    my @refused = run_of($language, 'store', $language eq 'python' ? 'notes' : undef);
    is_deeply $refused[-1]{error}, { error => 'run_taken', message => 'the run was taken' },
        "$language: a request that the server refuses has its code";
    $runner{$language}->send({ type => 'drain' });
    is $runner{$language}->finish, 0, "$language: the runner goes on after all of them";
}
done_testing;
