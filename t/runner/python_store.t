# SPDX-License-Identifier: Apache-2.0
# The Python runner: the store of graphs, as requests and their results in parts.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cpanel::JSON::XS;
use File::Temp qw(tempdir);
use POSIX qw(mkfifo);
use PythonRunner qw(in_all_versions);
use RunnerTest qw(lines_of);
use Test::More;

my $json = Cpanel::JSON::XS->new->utf8->canonical;

sub item {
    my ($key, $value) = @_;
    return { namespace => [ 'notes', 'shared' ], key => $key, value => $value,
        created_at => '2026-11-23T10:00:00.5+00:00', updated_at => '2026-11-23T10:00:01+00:00' };
}

my (@ops, $value);

# A search has its items in two parts.
my %results = (
    put => sub { $value = $_[0]{value}; return { results => [undef] } },
    get => sub { return { results => [ $value ? item('last', $value) : undef ] } },
    search => sub {
        my ($op, $cursor) = @_;
        return { results => [ { items => [ { %{ item('second', {}) }, score => undef } ] } ] } if defined $cursor;
        return ({ results => [ { items => [ { %{ item('last', $value) }, score => undef } ], more => \1 } ] }, 'c');
    },
    list => sub { return { results => [ { namespaces => [ [ 'notes', 'shared' ] ] } ] } },
);

sub answer {
    my ($request) = @_;
    my ($op) = @{ $request->{args}{ops} };
    push @ops, $op if !defined $request->{cursor};
    my ($result, $cursor) = $results{ $op->{op} }->($op, $request->{cursor});
    return $json->encode({ type => 'reply', (map { $_ => $request->{$_} } qw(run_id epoch id)), ok => \1,
        result => $result, cursor => $cursor }) . "\n";
}

in_all_versions(sub {
    my ($version) = ($_[1]);
    my $runner = PythonRunner->new(version => $version eq 'newest' ? undef : $version, graphs => [qw(notes notes_on_own_loop notes_elsewhere careless)], store => \&answer);
    @ops = ();
    my @lines = $runner->run(graph_id => 'notes', input => { n => 3, steps => [] });
    is $lines[-1]{status}, 'success', 'store: a run that uses the store succeeds';
    my ($first, $second) = @{ (lines_of('checkpoint', @lines))[-1]{values}{steps} };
    is_deeply $first, { value => { n => 3 }, found => [qw(last second)], names => [ [ 'notes', 'shared' ] ] },
        'store: a node gets the results, also one that comes in parts';
    is_deeply $second, { left => undef }, 'store: the blocking form works in a thread';
    is_deeply [ map { $_->{op} } @ops ], [qw(put get search list put get)], 'store: each operation of a node is requested, in their order';
    is_deeply $ops[0], { op => 'put', namespace => [ 'notes', 'shared' ], key => 'last', value => { n => 3 }, ttl => undef },
        'store: a put has its namespace, key and value';
    is_deeply $ops[2]{filter}, { n => { '$gte' => 0 } }, 'store: a search has its filter';
    is_deeply [ @{ $ops[3] }{qw(prefix suffix limit)} ], [ ['notes'], undef, 100 ], 'store: a list of namespaces has its prefix, suffix and limit';
    is $ops[4]{value}, undef, 'store: an item is deleted by putting null';

    my @own_loop = $runner->run(graph_id => 'notes_on_own_loop', input => { n => 4, steps => [] });
    is_deeply +(lines_of('checkpoint', @own_loop))[-1]{values}{steps},
        [ { value => { n => 4 }, found => [qw(last second)], names => [ [ 'notes', 'shared' ] ] } ],
        'store: the async form works in a thread, on a loop of the thread';

    my @elsewhere = $runner->run(graph_id => 'notes_elsewhere', input => { n => 5, steps => [] });
    is_deeply +(lines_of('checkpoint', @elsewhere))[-1]{values}{steps}, [ { n => 5 } ],
        'store: a thread without the context of the run uses the store that the run was given';

    @ops = ();
    my @wrong = $runner->run(graph_id => 'careless', input => { n => 0, steps => [] });
    is_deeply +(lines_of('checkpoint', @wrong))[-1]{values}{steps}, [ { admitted => [] } ],
        'store: operations that the server would refuse are errors of the node';
    is scalar(@ops), 0, 'store: operations that the server would refuse are not sent';
});

# Requests whose replies the test withholds.
{
    my @held;
    my $runner = PythonRunner->new(graphs => [qw(requester impatient impatient_thread)], store => sub { push @held, $_[0]; return '' });
    my $start = $runner->start_of('requester', input => {});
    $runner->send($start);
    $runner->wait_for_io while !@held;
    $runner->send({ type => 'cancel', run_id => $start->{run_id}, epoch => 1 });
    is +($runner->lines_of_run($start->{run_id}))[-1]{status}, 'interrupted', 'requests: a run that waits for a reply is cancelled';
    $runner->wait_for_io while $runner->log_text !~ /no reply: (\w+)/;
    like $runner->log_text, qr/no reply: RunEndedError/, 'requests: the thread of a run that has ended gets RunEndedError for its request';

    for my $graph (qw(impatient impatient_thread)) {
        @held = ();
        my $pipe = tempdir('/tmp/agent-test-store.XXXXXX', CLEANUP => 1) . '/pipe';
        mkfifo($pipe, oct 600) or die "$pipe: $!\n";
        $start = $runner->start_of($graph, input => { do => $pipe }, stream_modes => ['custom']);
        $runner->send($start);
        $runner->wait_for_io while !@held;
        open my $end, '>', $pipe or die "$pipe: $!\n";
        close $end;
        $runner->lines_until(sub { $_[0]{type} eq 'event' });
        is scalar(@held), 1, "requests: a node of $graph that no longer waits for its request sends no second one before the reply";
        $value = undef;
        $runner->send_raw(answer(shift @held));
        $runner->wait_for_io while !@held;
        $runner->send_raw(answer(shift @held));
        is +($runner->lines_of_run($start->{run_id}))[-1]{status}, 'success',
            "requests: a node of $graph that no longer waits sends its second one after the reply";
    }
}

done_testing;
