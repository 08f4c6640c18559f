# SPDX-License-Identifier: Apache-2.0
# The store: items, searches, namespaces, expiry.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Play;

my $db = AgentSQL->new;
my $session = $db->session;
my $play = AgentSQL::Play->new($session);

sub at { return $session->query("set agent.now = '" . $session->value("select now() + interval '$_[0]'") . "'") }

sub put {
    my ($namespace, $key, $value, %with) = @_;
    my ($code) = $play->api('put_item', AgentSQL::encode({ namespace => $namespace, key => $key, value => $value, %with }));
    return $code;
}

sub get { return $play->body('get_item', $_[0], $_[1], $_[2] // 'true') }

sub found { return $play->body('search_items', AgentSQL::encode({@_}), undef)->{items} }

sub keys_of { return [ map { $_->{key} } @{ found(@_) } ] }

sub namespaces { return $play->body('list_namespaces', AgentSQL::encode({@_}))->{namespaces} }

sub clear { return $session->query('delete from agent.store_items') }

subtest 'an item is what was put last, and keeps its creation time' => sub {
    is get('a.b', 'k'), 'null', 'an item that does not exist is null';
    is put([qw(a b)], 'k', { x => 1 }), 'ok';
    my $first = get('a.b', 'k');
    is_deeply { map { $_ => $first->{$_} } qw(namespace key value) }, { namespace => [qw(a b)], key => 'k', value => { x => 1 } };
    like $first->{$_}, qr/^\d{4}-\d\d-\d\dT[\d:.]+\+00:00$/, "$_ is a time" for qw(created_at updated_at);
    $session->query("set agent.now = '$first->{created_at}'");
    put([qw(a b)], 'k', { y => [ 'ä', undef ] });
    my $second = get('a.b', 'k');
    is_deeply $second->{value}, { y => [ 'ä', undef ] }, 'a second put replaces the value';
    is $second->{created_at}, $first->{created_at}, 'created_at stays';
    cmp_ok $second->{updated_at}, 'gt', $first->{updated_at}, 'updated_at grows, also when the clock does not';
    $session->query('reset agent.now');
    is get('a', 'k'), 'null', 'a namespace is matched whole';
    my $request = AgentSQL::encode({ namespace => [qw(a b)], key => 'k', value => { z => 1 } });
    is +($play->api('delete_item', $request))[0], 'ok';
    is get('a.b', 'k'), 'null', 'a deletion has no value';
    is +($play->api('delete_item', $request))[0], 'ok', 'deleting nothing is ok';
};

subtest 'a search matches whole labels, the last updated first' => sub {
    clear();
    my $second = 0;
    for my $item ([ ['a'], '1' ], [ [qw(a b)], '2' ], [ ['a_'], '3' ], [ ['a%'], '4' ], [ ['ab'], '5' ], [ ["a\x{1}"], '6' ], [ [qw(b a)], '7' ],
        [ ["\x{10fffd}" x 256], '8' ]) {
        at(++$second . ' seconds');
        put(@$item, { n => $second });
    }
    is_deeply keys_of(namespace_prefix => ['a']), [ 2, 1 ], 'a prefix is matched label by label';
    is_deeply keys_of(namespace_prefix => ['a_']), [3], '_ is literal';
    is_deeply keys_of(namespace_prefix => ['a%']), [4], '% is literal';
    is_deeply keys_of(), [ reverse 1 .. 8 ], 'without a prefix all are found';
    is_deeply keys_of(limit => 2, offset => 3), [ 5, 4 ], 'limit and offset select a part';
    at('20 seconds');
    put(['a'], '1', { n => 1 });
    is_deeply keys_of(namespace_prefix => ['a']), [ 1, 2 ], 'a put moves an item to the front';
    is found(namespace_prefix => ['a'])->[0]{score}, undef, 'without an index there is no score';
    ok exists found(namespace_prefix => ['a'])->[0]{score}, 'score is a member';
    $session->query('reset agent.now');
};

subtest 'filters' => sub {
    clear();
    put(['f'], 'one', { n => 1, s => 'apple', o => { p => 1 }, l => [ 1, 2 ], z => undef });
    put(['f'], 'two', { n => 10, s => 'Banana' });
    put(['f'], 'text', { n => '5' });
    put(['f'], 'names', { n => undef, s => undef, l => undef, qq(a "b" \\ \t'c' \x{1F600}) => 2 });
    my @cases = (
        [ { n => 1 }, ['one'], 'a value equals' ],
        [ { n => 1, s => 'Banana' }, [], 'all members must match' ],
        [ { o => { p => 1 } }, ['one'], 'an object equals' ],
        [ { l => [ 1, 2 ] }, ['one'], 'an array equals' ],
        [ { z => undef }, ['one'], 'null equals null, and not an absent member' ],
        [ { n => { '$eq' => 10 } }, ['two'], '$eq' ],
        [ { n => { '$ne' => 10 } }, [qw(names one text)], '$ne' ],
        [ { s => { '$ne' => 'apple' } }, [qw(names text two)], '$ne holds for an absent member' ],
        [ { n => { '$gt' => 1 } }, ['two'], '$gt compares numbers as numbers, and not with a string' ],
        [ { n => { '$gte' => 1 } }, [qw(one two)], '$gte' ],
        [ { n => { '$lt' => 10 } }, ['one'], '$lt' ],
        [ { n => { '$lte' => 10, '$gt' => 1 } }, ['two'], 'several operators' ],
        [ { s => { '$gt' => 'Z' } }, ['one'], 'strings are compared byte by byte' ],
        [ { x => { '$lt' => 1 } }, [], 'an absent member is not less' ],
        [ { o => { p => 1, q => 1 } }, [], 'an object equals as a whole' ],
        [ { o => {} }, [], 'and not in part' ],
        [ { l => [1] }, [], 'so does an array' ],
        [ { l => { '$gt' => 0 } }, [], 'an array is not compared element by element' ],
        [ { l => { '$ne' => [ 1, 2 ] } }, [qw(names text two)], '$ne of an array' ],
        [ { n => { '$gt' => -1.5, '$lt' => 1e3 } }, [qw(one two)], 'negative numbers, fractions and exponents' ],
        [ { s => { '$gte' => qq("\\'\n) } }, [qw(one two)], 'strings with quotes and escapes' ],
        [ { qq(a "b" \\ \t'c' \x{1F600}) => { '$gt' => 1 } }, ['names'], 'names with quotes and escapes' ],
        [ { n => { '$gt' => undef } }, [], 'an operand that is neither a number nor a string' ],
        [ {}, [qw(names one text two)], 'an empty filter' ],
    );
    for my $case (@cases) {
        my ($filter, $expected, $title) = @$case;
        is_deeply [ sort @{ keys_of(namespace_prefix => ['f'], filter => $filter) } ], $expected, $title;
    }
    # As parts of the value's they would be compared with each of its elements.
    is_deeply [ $session->query(q(select equal, exact from agent.split_filter('{"a":[1],"b":{"$eq":{"c":[1]}},"d":1}'))) ],
        [ [ '{"d": 1}', '{"a": [1], "b": {"c": [1]}}' ] ], 'arrays and objects are compared as a whole only';
};

subtest 'namespaces' => sub {
    clear();
    put([ split /\./ ], 'k', {}) for qw(a a.b.c a.b.d a.x.c b.b.c ab.c);
    is_deeply namespaces(), [ ['a'], [qw(a b c)], [qw(a b d)], [qw(a x c)], [qw(ab c)], [qw(b b c)] ], 'all, in order';
    is_deeply namespaces(prefix => ['a']), [ ['a'], [qw(a b c)], [qw(a b d)], [qw(a x c)] ], 'prefix';
    is_deeply namespaces(prefix => [qw(a * c)]), [ [qw(a b c)], [qw(a x c)] ], '* is any label';
    is_deeply namespaces(suffix => ['c']), [ [qw(a b c)], [qw(a x c)], [qw(ab c)], [qw(b b c)] ], 'suffix';
    is_deeply namespaces(suffix => [qw(* b c)]), [ [qw(a b c)], [qw(b b c)] ], '* in a suffix';
    is_deeply namespaces(max_depth => 2), [ ['a'], [qw(a b)], [qw(a x)], [qw(ab c)], [qw(b b)] ], 'max_depth cuts, each once';
    is_deeply namespaces(max_depth => 1, suffix => ['d']), [ ['a'] ], 'a suffix is that of the whole namespace';
    is_deeply namespaces(max_depth => 2, limit => 2, offset => 1), [ [qw(a b)], [qw(a x)] ], 'limit and offset count results';
    is_deeply namespaces(prefix => ['c']), [], 'none';
};

subtest 'an item expires, and a read begins its time again' => sub {
    clear();
    put(['t'], 'k', { a => 1 }, ttl => 1);
    put(['t'], 'l', { a => 1 }, ttl => 1);
    put(['t'], 'm', { a => 1 }, ttl => 1);
    put(['t'], 'n', { a => 1 });
    at('50 seconds');
    is get('t', 'k')->{key}, 'k', 'it is read before';
    is get('t', 'l', 'false')->{key}, 'l', 'a read may leave its time';
    is_deeply keys_of(namespace_prefix => ['t'], filter => { a => 1 }, limit => 1, offset => 1), ['m'];
    my $rows = sub { return join ' ', map { $_->[0] } $session->query("select ctid from agent.store_items where key in ('k', 'm') order by key") };
    my $before = $rows->();
    get('t', 'k');
    keys_of(namespace_prefix => ['t'], filter => { a => 1 }, limit => 1, offset => 1);
    is $rows->(), $before, 'a read right after it writes nothing';
    at('51 seconds');
    get('t', 'k');
    keys_of(namespace_prefix => ['t'], filter => { a => 1 }, limit => 1, offset => 1);
    isnt((split / /, $rows->())[$_], (split / /, $before)[$_], 'a hundredth of its time later it does') for 0, 1;
    at('70 seconds');
    is get('t', 'k')->{key}, 'k', 'the read began its time again';
    is get('t', 'm')->{key}, 'm', 'a search began the time of its items again';
    is get('t', 'l'), 'null', 'it is not read after its time';
    is_deeply [ sort @{ keys_of(namespace_prefix => ['t'], refresh_ttl => \0) } ], [qw(k m n)], 'a search does not find it';
    is $session->value('select agent.sweep_store()'), 1, 'it is deleted';
    put(['t'], 'k', { a => 2 });
    at('10 minutes');
    is get('t', 'k')->{key}, 'k', 'a put without ttl ends the expiry';
    is $session->value('select agent.sweep_store()'), 1;
    is $session->value('select agent.sweep_store()'), 0, 'nothing is left';
    is_deeply namespaces(), [ ['t'] ];
    put(['t'], 'n', { a => 1 }, ttl => 1);
    my $created = get('t', 'n')->{created_at};
    at('12 minutes');
    is_deeply namespaces(), [ ['t'] ];
    put(['t'], 'n', { a => 1 });
    cmp_ok get('t', 'n')->{created_at}, 'gt', $created, 'an item that is put after it expired is a new one';
    $session->query('reset agent.now');
};

subtest 'an item that is put without a ttl has that of the server' => sub {
    clear();
    my $put = sub {
        my ($key, @rest) = @_;
        return $play->api('put_item', AgentSQL::encode({ namespace => ['t'], key => $key, value => {}, @rest }), '1 hour');
    };
    $put->('a');
    $put->('b', ttl => 10);
    $put->('c', ttl => undef);
    put(['t'], 'd', {});
    at('30 minutes');
    is_deeply [ sort @{ keys_of(namespace_prefix => ['t']) } ], [qw(a c d)], 'the ttl of the put counts';
    at('80 minutes');
    is_deeply [ sort @{ keys_of(namespace_prefix => ['t']) } ], [qw(a c d)], 'a read began the time again';
    at('150 minutes');
    is_deeply keys_of(namespace_prefix => ['t']), ['d'], 'the others have expired';
    $session->query('reset agent.now');
};

subtest 'a sweep deletes 4 MB at most' => sub {
    clear();
    put(['t'], "$_", { a => 'x' x 1_000_000 }, ttl => 1) for 1 .. 5;
    at('2 minutes');
    is $session->value('select agent.sweep_store()'), 3;
    is $session->value('select agent.sweep_store()'), 2;
    $session->query('reset agent.now');
};

subtest 'items that expire together are deleted, also one that is larger than 4 MB' => sub {
    clear();
    put(['t'], "$_", { a => 'x' x 900_000 }, ttl => 1) for 1 .. 6;
    $session->query("update agent.store_items set expires_at = '2000-01-01', value_bytes = case key when '1' then 4200000 else value_bytes end");
    my ($deleted, $rounds) = (0, 0);
    while ($rounds++ < 10 && (my $count = $session->value('select agent.sweep_store()'))) { $deleted += $count }
    is $deleted, 6;
};

subtest 'invalid items and searches of the store are refused' => sub {
    for my $case ([ [], 'k', {} ], [ ['a.b'], 'k', {} ], [ [''], 'k', {} ], [ 'a', 'k', {} ], [ [1], 'k', {} ], [ [ ('a') x 33 ], 'k', {} ],
        [ ['a' x 1025], 'k', {} ], [ ['a'], '', {} ], [ ['a'], 1, {} ], [ ['a'], 'a' x 1025, {} ], [ ['a'], 'k', [] ], [ ['a'], 'k', 'x' ],
        [ ['a'], 'k', { a => 'x' x 1_048_576 } ], [ ['a'], 'k', {}, ttl => 0 ], [ ['a'], 'k', {}, ttl => -1 ], [ ['a'], 'k', {}, ttl => 6e6 ]) {
        my ($namespace, $key, $value, %with) = @$case;
        my $put = AgentSQL::encode({ namespace => $namespace, key => $key, value => $value, %with });
        like $session->error("select agent.put_items('@{[ $play->deployment ]}', '[$put]')"), qr/\A22/, substr $put, 0, 60;
    }
    my $long = '[' . join(',', ('1e300') x 20_000) . ']';
    like $session->error(qq(select agent.put_items('@{[ $play->deployment ]}', '[{"namespace":["a"],"key":"k","value":{"a":$long}}]'))),
        qr/\A22/, 'numbers that are long as digits';
    my $label = 'a' x 32;
    is put([ ($label) x 32 ], 'k' x 1024, {}), 'ok', 'the longest namespace and key can be stored';
    is_deeply keys_of(namespace_prefix => [ ($label) x 32 ]), [ 'k' x 1024 ];
    is put([ map { substr(join('', map { chr 33 + ($_ * 7919) % 90 + ($_ % 3) * 200 } $_ .. $_ + 40), 0, 20) =~ tr/./x/r } 1 .. 25 ], 'k', {}), 'ok',
        'a key that does not compress can be stored';
};

subtest 'puts of several items wait for each other without a deadlock, and reads wait for none' => sub {
    clear();
    my $other = $db->session;
    my $puts = sub {
        my (@keys) = @_;
        return sprintf "select agent.put_items('%s', '%s')", $play->deployment,
            AgentSQL::encode([ map { { namespace => ['d'], key => $_, value => { by => $keys[0] }, ttl => 10 } } @keys ]);
    };
    $session->query($puts->(qw(a b)));
    $session->query('begin');
    $session->query($puts->('a'));
    $other->send($puts->(qw(b a)));
    my $third = $db->session;
    ok $other->waits_for($session), 'the second one waits for the first';
    my $found = AgentSQL::Play->new($third)->body('search_items', '{"namespace_prefix":["d"]}', undef)->{items};
    is_deeply $found->[0]{value}, { by => 'a' },
        'a search does not wait for a put of an item whose time it begins again';
    $session->query($puts->('b'));
    $session->query('commit');
    $other->receive;
    is_deeply [ map { get('d', $_)->{value}{by} } qw(a b) ], [qw(b b)], 'the second one has put both items after the first one';
    $_->close for $other, $third;
};

subtest 'a search that would examine too much is refused' => sub {
    clear();
    $session->query("insert into agent.store_items select '@{[ $play->deployment ]}', array['big', (i % 10)::text], i::text, '{}', 2, null, null, now(), now()
        from generate_series(1, 50001) i");
    is +($play->api('search_items', '{"namespace_prefix":["big"]}', undef))[0], 'too_many_items', 'of more than 50,000 items';
    is scalar @{ keys_of(namespace_prefix => [qw(big 1)], limit => 3) }, 3, 'a longer prefix finds some';
    is_deeply namespaces(max_depth => 1), [ ['big'] ], 'namespaces are found without reading their items';
    $session->query("update agent.store_items set namespace = array['big', key] where key::integer <= 20001");
    is +($play->api('list_namespaces', '{"suffix":["x"]}'))[0], 'too_many_items', 'a list of more than 20,000 namespaces';
    is_deeply namespaces(prefix => [qw(big 7)]), [ [qw(big 7)] ], 'a longer prefix finds some';
    clear();
    put(['f'], "$_", { n => 0 + $_, text => 'x' x 1_000_000 }) for 1 .. 5;
    $session->query('update agent.store_items set value_bytes = 20000000');
    is +($play->api('search_items', '{"filter":{"n":1}}', undef))[0], 'too_many_items', 'a filter of more than 64 MB of values';
    is scalar @{ keys_of() }, 5, 'without a filter no value is examined';
};

done_testing;
