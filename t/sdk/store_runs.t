# SPDX-License-Identifier: Apache-2.0
# The store of a deployment, used by graphs in Python and JavaScript and by clients.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use SdkTest;
use Test::More;

my %file_of = (python => 'store_graph.py', javascript => 'store_graph.mjs');

for my $language (sort keys %file_of) {
    my ($folder, $packages) = SdkTest::with_graph($language, $file_of{$language}, 'notes');
    subtest $language => sub {
        plan skip_all => "the user of runners may not read $packages" if !SdkTest::is_readable($packages);
        my $sdk = SdkTest->serve({ notes => $folder }, ['notes']);
        my $client = $sdk->client;
        my $run = sub {
            my (%input) = @_;
            my $values = $client->post('/runs/wait', { assistant_id => 'notes', input => \%input })->{json};
            return $values->{seen} // $values;
        };
        my $seen = $run->(key => 'k', size => 10);
        is_deeply [ @{$seen}{qw(value found)} ], [ undef, [] ], "$language: a store is empty at first";
        is_deeply $client->get("/store/items?namespace=notes.$language&key=k-b")->{json}{value}, { n => 1, text => 'x' x 10 },
            "$language: a client reads what a run has put";
        $client->request('PUT', '/store/items', { namespace => [ 'notes', $language ], key => 'k', value => { n => 7 } });
        $seen = $run->(key => 'k', size => 900_000);
        is_deeply [ @{$seen}{qw(value found)} ], [ 7, [qw(k k-b k-c)] ], "$language: a run reads what a client has put";
        is_deeply $seen->{namespaces} // [ [ 'notes', $language ] ], [ [ 'notes', $language ] ], "$language: namespaces";
        $seen = $run->(key => 'l', size => 1);
        is_deeply [ @{$seen}{qw(queried both neither)} ], [ 1, [ [ 'options', $language, 'a' ] ], [] ],
            "$language: a query is a plain search, and all conditions of a list hold";
        like $seen->{refused}, qr/a namespace has 1 to 32 labels/, "$language: a wrong namespace is an error of the library's class";
        my @warned = $sdk->server->error_log =~ /the store has no index: (.*?) has no effect/g;
        is_deeply [ sort @warned ], [ 'index of a put', 'query of a search' ], "$language: the log says once what has no effect";
        is_deeply $seen->{sizes}, [ (900_000) x 3 ], "$language: large values are put and read in several parts";
        my $items = $client->post('/store/items/search', { namespace_prefix => ['notes'], filter => { text => 'x' } })->{json}{items};
        is_deeply [ sort map { $_->{key} } @$items ], [qw(l l-b l-c)], "$language: a search of a client finds items of runs";
        $sdk->finish;
    };
}
done_testing;
