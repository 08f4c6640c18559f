# SPDX-License-Identifier: Apache-2.0
# Requests of runners to the store: parts, one transaction, the fence.
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
my $worker = $play->worker;

sub put {
    my ($namespace, $key, $value) = @_;
    return $play->api('put_item', AgentSQL::encode({ namespace => $namespace, key => $key, value => $value }));
}

sub get { return $play->body('get_item', $_[0], $_[1], 'true') }

sub clear { return $session->query('delete from agent.store_items') }

my $thread = $play->thread;
my $claim = $play->leased($worker, $thread);

# (code, body, cursor)
sub request {
    my ($ops, $cursor, $bytes, %with) = @_;
    my ($row) = $session->query(sprintf("select code, body, cursor from agent.use_store(%d, '%s', '%s', %d, %s, %s, %d, %s)",
        $worker, $with{deployment} // $play->deployment, $claim->{run_id}, $with{epoch} // $claim->{epoch},
        AgentSQL::Session::literal(AgentSQL::encode({ ops => $ops })), AgentSQL::Session::literal($cursor), $bytes // 1_000_000,
        AgentSQL::Session::literal($with{ttl})));
    return ($row->[0], $row->[1] ? AgentSQL::decode($row->[1])->{results} : undef, $row->[2] || undef);
}

# All parts, joined as a runner joins them, and their number.
sub read_all {
    my ($ops, $bytes) = @_;
    my ($code, $results, $cursor, $more, @joined);
    my $parts = 0;
    do {
        ($code, $results, $cursor) = request($ops, $cursor, $bytes);
        is $code, 'ok' or return;
        for my $result (@$results) {
            if ($more) { push @{ $joined[-1]{items} }, @{ $result->{items} } }
            else { push @joined, $result }
            $more = delete $result->{more} if ref $result eq 'HASH';
        }
        $parts++;
    } while (defined $cursor && $parts < 100);
    return (\@joined, $parts);
}

sub op_put { return { op => 'put', namespace => $_[0], key => $_[1], value => $_[2] } }
sub op_get { return { op => 'get', namespace => $_[0], key => $_[1] } }

subtest 'an item that a run puts without a ttl has that of its pool' => sub {
    clear();
    request([ op_put(['t'], 'a', {}), { %{ op_put(['t'], 'b', {}) }, ttl => 1 }, { %{ op_put(['t'], 'c', {}) }, ttl => undef } ], undef, undef, ttl => '1 hour');
    request([ op_put(['t'], 'd', {}) ]);
    is_deeply { map { @{$_} } $session->query("select key, coalesce(ttl::text, '') from agent.store_items") },
        { a => '01:00:00', b => '00:01:00', c => '01:00:00', d => '' };
};

subtest 'a request reads in order, and puts afterwards' => sub {
    clear();
    put(['r'], 'old', { v => 1 });
    my ($results) = read_all([
        op_put(['r'], 'new', { v => 1 }), op_get(['r'], 'new'), op_get(['r'], 'old'), op_put(['r'], 'new', { v => 2 }), op_put(['r'], 'old', undef),
        { op => 'search', namespace_prefix => ['r'] }, { op => 'list', prefix => ['r'] } ]);
    is_deeply [ map { ref $_ eq 'HASH' && $_->{value} ? $_->{value} : $_ } @{$results}[ 0 .. 4 ] ], [ undef, undef, { v => 1 }, undef, undef ],
        'reads see the store before the puts';
    is_deeply [ map { $_->{key} } @{ $results->[5]{items} } ], ['old'];
    is_deeply $results->[6], { namespaces => [ ['r'] ] };
    is_deeply get('r', 'new')->{value}, { v => 2 }, 'of several puts of one item the last one counts';
    is get('r', 'old'), 'null', 'a put of null deletes';
};

subtest 'results come in parts; the puts are in the last one' => sub {
    clear();
    put(['p'], "$_", { text => 'x' x 1000 }) for 1 .. 10;
    my @ops = (op_put(['p'], 'new', { a => 1 }), { op => 'search', namespace_prefix => ['p'], limit => 9, offset => 1 }, op_get(['p'], '1'),
        { op => 'search', namespace_prefix => ['p'], filter => { text => 'y' } }, op_get(['q'], 'none'));
    my ($whole, $one) = read_all(\@ops);
    is $one, 1, 'a short result is one part';
    $session->query("delete from agent.store_items where key = 'new'");
    my ($results, $parts) = read_all(\@ops, 2500);
    cmp_ok $parts, '>', 3, 'a long one has several';
    is_deeply $results, $whole, 'the parts are the whole result';
    is_deeply get('p', 'new')->{value}, { a => 1 }, 'the puts were executed';
    $session->query("delete from agent.store_items where key = 'new'");
    my ($code, undef, $cursor) = request(\@ops, undef, 2500);
    is get('p', 'new'), 'null', 'a part that is not the last one puts nothing';
    is_deeply [ request(\@ops, undef, 0) ], [ 'ok', [undef], '1.0' ], 'a runner without room gets an empty part';
    is_deeply [ request([ op_put(['p'], 'new', {}) ], undef, 0) ], [ 'ok', [undef], undef ], 'puts need no room';
    is +(request(\@ops, $_))[0], 'invalid_cursor', "the cursor $_ is refused" for '', 'x', '1', '1.x', '1.1.1', '99999.0';
};

subtest 'the puts of a run that was taken are not executed' => sub {
    clear();
    is +(request([ op_put(['f'], 'k', {}), op_get(['f'], 'k') ], undef, undef, epoch => $claim->{epoch} + 1))[0], 'run_taken';
    is +(request([ op_put(['f'], 'k', {}) ], undef, undef, deployment => '00000000-0000-0000-0000-000000000002'))[0], 'run_taken',
        'puts under another deployment are not executed';
    is get('f', 'k'), 'null';
    is +(request([ op_get(['f'], 'k') ], undef, undef, epoch => $claim->{epoch} + 1))[0], 'ok', 'reads need no lease';
};

subtest 'a request is one transaction' => sub {
    clear();
    my $ops = AgentSQL::encode({ ops => [ op_put(['x'], 'a', {}), op_put(['x'], 'b', []) ] });
    like $session->error("select agent.use_store($worker, '@{[ $play->deployment ]}', '$claim->{run_id}', $claim->{epoch}, '$ops', null, 1000)"), qr/\A22/;
    is get('x', 'a'), 'null', 'a put that is not valid undoes the others';
};

subtest 'wrong arguments are refused' => sub {
    for my $args ('{}', '{"ops":{}}', '{"ops":[]}', '{"ops":[1]}', '{"ops":[{"op":"drop"}]}', '{"ops":[{"op":"get","namespace":"a","key":"k"}]}',
        '{"ops":[{"op":"search","limit":1001}]}', '{"ops":[{"op":"search","limit":"x"}]}', '{"ops":[{"op":"search","offset":-1}]}',
        '{"ops":[{"op":"search","filter":[]}]}', '{"ops":[{"op":"search","filter":{"a":{"$in":[1]}}}]}',
        '{"ops":[{"op":"search","filter":{' . join(',', map { qq("a$_":1) } 1 .. 33) . '}}]}',
        '{"ops":[{"op":"search","filter":{"a":"' . 'x' x 16_384 . '"}}]}', '{"ops":[{"op":"list","max_depth":0}]}', '{"ops":[{"op":"list","prefix":[null]}]}',
        '{"ops":[' . join(',', ('{"op":"get","namespace":["a"],"key":"k"}') x 1001) . ']}') {
        like $session->error("select agent.use_store($worker, '@{[ $play->deployment ]}', '$claim->{run_id}', $claim->{epoch}, '$args', null, 1000)"),
            qr/\A22/, substr $args, 0, 60;
    }
};

subtest 'a search that would examine too much is refused' => sub {
    clear();
    $session->query("insert into agent.store_items select '@{[ $play->deployment ]}', array['big', (i % 10)::text], i::text, '{}', 2, null, null, now(), now()
        from generate_series(1, 50001) i");
    is +(request([ { op => 'search', namespace_prefix => ['big'] } ]))[0], 'too_many_items';
    my ($results, $parts) = read_all([ map { { op => 'search', namespace_prefix => [ 'big', "$_" ], limit => 1 } } 0 .. 9 ]);
    is scalar @$results, 10;
    is $parts, 1, 'searches of 50,000 items fit into one part';
    ($results, $parts) = read_all([ map { { op => 'search', namespace_prefix => [ 'big', '' . $_ % 10 ], limit => 1 } } 0 .. 19 ]);
    is $parts, 2, 'those of 100,000 items need two';
};

done_testing;
