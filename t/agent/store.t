# SPDX-License-Identifier: Apache-2.0
# /store: items that outlive threads, searches with filters and pages, namespaces, expiry, and bodies that are refused.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Database qw(poll sql);
use AgentTest::Wait;
use Cpanel::JSON::XS;
use Test::More;

my $client = AgentTest::Client->new;

sub put {
    my ($namespace, $key, $value, %with) = @_;
    return $client->request('PUT', '/store/items', { namespace => $namespace, key => $key, value => $value, %with })->{status};
}

sub get { return $client->get("/store/items?namespace=$_[0]&key=$_[1]") }

sub found { return [ map { $_->{key} } @{ $client->post('/store/items/search', {@_})->{json}{items} } ] }

sub namespaces { return $client->post('/store/namespaces', {@_})->{json}{namespaces} }

subtest 'store: an item can be put, read and deleted' => sub {
    my $none = get('notes.ann', 'first');
    is_deeply [ @$none{qw(status body)} ], [ 200, 'null' ], 'get: an item that does not exist is null';
    is put([qw(notes ann)], 'first', { text => 'Hällo', n => 1 }), 204, 'put: the status is 204';
    my $item = get('notes.ann', 'first')->{json};
    like delete $item->{$_}, qr/^\d{4}-\d\d-\d\dT[\d:.]+\+00:00$/, "get: $_ is a time" for qw(created_at updated_at);
    is_deeply $item, { namespace => [qw(notes ann)], key => 'first', value => { text => 'Hällo', n => 1 } }, 'get: the item';
    is $client->get('/store/items?namespace=notes&namespace=ann&key=first')->{json}{key}, 'first', 'get: the parameter namespace may be repeated';
    is $client->get('/store/items?namespace=notes.ann&key=first&refresh_ttl=False')->{json}{key}, 'first', 'get: refresh_ttl is a flag';
    is put([qw(notes ann)], 'first', { text => 'x' }, index => undef, ttl => undef), 204, 'put: members may be null';
    is_deeply get('notes.ann', 'first')->{json}{value}, { text => 'x' }, 'put: replaces the value';
    my $gone = $client->delete('/store/items', { namespace => [qw(notes ann)], key => 'first', value => { text => 'x' } });
    is_deeply [ $gone->{status}, $gone->{body} // '' ], [ 204, '' ], 'delete: the status is 204';
    is get('notes.ann', 'first')->{body}, 'null', 'delete: the item is gone, whatever else the body has';
    is $client->delete('/store/items', { namespace => [qw(notes ann)], key => 'first' })->{status}, 204, 'delete: of nothing is 204';
};

subtest 'store: a search finds items by prefix and filter' => sub {
    put([ 'find', $_ % 2 ? 'odd' : 'even' ], "k$_", { n => $_ }) for 1 .. 12;
    is_deeply found(namespace_prefix => ['find']), [ map { "k$_" } reverse 3 .. 12 ], 'search: ten items by default, the last updated first';
    is_deeply found(namespace_prefix => ['find'], limit => 2, offset => 11), ['k1'], 'search: limit and offset select a page';
    is_deeply found(namespace_prefix => [qw(find odd)], filter => { n => { '$gte' => 5, '$lt' => 11 } }), [qw(k9 k7 k5)], 'search: a filter selects items';
    is_deeply found(namespace_prefix => ['fin']), [], 'search: a prefix is matched label by label';
    is_deeply found(namespace_prefix => ['find'], query => 'n', filter => undef, refresh_ttl => undef, limit => 1), ['k12'],
        'search: without an index query changes nothing';
    my $items = $client->post('/store/items/search', { namespace_prefix => ['find'], limit => 1 })->{json}{items};
    is_deeply [ sort keys %{ $items->[0] } ], [qw(created_at key namespace score updated_at value)], 'search: the members of an item';
};

subtest 'store: namespaces are listed by prefix, suffix and depth' => sub {
    put([ split /\./ ], 'k', {}) for qw(tree.a tree.a.b tree.c.b);
    is_deeply namespaces(prefix => ['tree']), [ [qw(tree a)], [qw(tree a b)], [qw(tree c b)] ], 'namespaces: the list is in order';
    is_deeply namespaces(prefix => ['tree'], suffix => ['b'], max_depth => undef), [ [qw(tree a b)], [qw(tree c b)] ], 'namespaces: prefix and suffix';
    is_deeply namespaces(prefix => [qw(tree * b)], max_depth => 2, offset => 1), [ [qw(tree c)] ], 'namespaces: * is any label';
};

subtest 'store: an item expires after its ttl' => sub {
    is put(['brief'], 'k', { a => 1 }, ttl => 0.05), 204, 'ttl: minutes';
    is get('brief', 'k')->{json}{key}, 'k', 'ttl: the item is there before';
    wait_for('the item to expire', sub { $client->get('/store/items?namespace=brief&key=k&refresh_ttl=false')->{body} eq 'null' });
    wait_for('the supervisor to delete it', sub {
        poll("select count(*) from agent.store_items where namespace = '{brief}'") eq '0';
    });
    pass 'ttl: an expired item is deleted';
};

subtest 'store: a large search has several pages' => sub {
    put(['large'], "k$_", { text => 'x' x 1_000_000 }) for 1 .. 18;
    my $page = $client->post('/store/items/search', { namespace_prefix => ['large'], limit => 20 });
    is $page->{status}, 200, 'search: the status is 200';
    cmp_ok length $page->{body}, '<', 17_000_000, 'search: a page has at most 16 MB';
    my $next = $page->{headers}{'x-pagination-next'};
    is $next, scalar @{ $page->{json}{items} }, 'search: X-Pagination-Next is the offset of the next page';
    my $rest = $client->post('/store/items/search', { namespace_prefix => ['large'], limit => 20, offset => 0 + $next });
    is @{ $page->{json}{items} } + @{ $rest->{json}{items} }, 18, 'search: the next page has the others';
    is $rest->{headers}{'x-pagination-next'}, undef, 'search: the last page has no X-Pagination-Next';
};

subtest 'store: an invalid request is 422 with a JSON pointer' => sub {
    my @cases = (
        [ PUT => '/store/items', { namespace => [], key => 'k', value => {} }, qr{^/namespace: } ],
        [ PUT => '/store/items', { namespace => ['a.b'], key => 'k', value => {} }, qr{^/namespace/0: } ],
        [ PUT => '/store/items', { namespace => ['a'], key => 'k' }, qr{^/value: } ],
        [ PUT => '/store/items', { namespace => ['a'], key => 'k', value => [] }, qr{^/value: } ],
        [ PUT => '/store/items', { namespace => ['a'], key => 'k', value => { a => 'x' x 1_048_576 } }, qr{^/value: } ],
        [ PUT => '/store/items', { namespace => ['a'], key => 'k', value => {}, ttl => 0 }, qr{^/ttl: } ],
        [ DELETE => '/store/items', { namespace => ['a'] }, qr{^/key: } ],
        [ POST => '/store/items/search', { namespace_prefix => [''] }, qr{^/namespace_prefix/0: } ],
        [ POST => '/store/items/search', { filter => { a => { '$in' => [1] } } }, qr{^/filter/a: } ],
        [ POST => '/store/items/search', { limit => 0 }, qr{^/limit: } ],
        [ POST => '/store/namespaces', { prefix => 'a' }, qr{^/prefix: } ],
        [ POST => '/store/namespaces', { max_depth => 0 }, qr{^/max_depth: } ],
        [ GET => '/store/items?key=k', undef, qr/namespace/ ],
        [ GET => '/store/items?namespace=a..b&key=k', undef, qr/namespace/ ],
        [ GET => '/store/items?namespace=a', undef, qr/key/ ],
        [ GET => '/store/items?namespace=a&key=k&refresh_ttl=x', undef, qr/refresh_ttl/ ],
    );
    for my $case (@cases) {
        my ($method, $path, $body, $expected) = @$case;
        my $answer = $client->request($method, $path, $body);
        is $answer->{status}, 422, "$method $path: the status is 422";
        like $answer->{json}{detail}, $expected, "$method $path: the detail names the member";
    }
    is $client->request('PUT', '/store/items', '{"namespace":["a"],"key":"k","value":{"a":"\u0000"}}')->{json}{code}, 'nul_character',
        'put: U+0000 is refused';
    my $digits = '{"namespace":["a"],"key":"k","value":{"a":[' . join(',', ('1e300') x 20_000) . ']}}';
    is $client->request('PUT', '/store/items', $digits)->{status}, 422, 'put: numbers count as they are stored, without exponents';
    is $client->post('/store/items/search', { filter => { a => 'x' x 65_536 } })->{status}, 413, 'search: a body has at most 64 KB';
    is get('a', 'k')->{body}, 'null', 'put: what is refused is not stored';
};

subtest 'store: a search that would examine too much is 422' => sub {
    sql("insert into agent.store_items select deployment_id, array['big', (i % 10)::text], i::text, '{}', 2, null, null, now(), now()
        from agent.deployments, generate_series(1, 50001) i where name = 'default'");
    is $client->post('/store/items/search', { namespace_prefix => ['big'] })->{json}{code}, 'too_many_items', 'search: of more than 50,000 items';
    is_deeply namespaces(prefix => ['big'], max_depth => 1), [ ['big'] ], 'namespaces: are found without reading items';
    sql("delete from agent.store_items where namespace[1] in ('big', 'large')");
};

done_testing;
