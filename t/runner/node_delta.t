# SPDX-License-Identifier: Apache-2.0
# The runner for JavaScript: channels whose checkpoints have their writes only
# (DeltaChannel), over many runs, forks and updates.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use NodeApplication qw(runner);
use RecordStore;
use RunnerTest qw(new_uuid lines_of);
use Test::More;

my $runner = runner(delta => './delta.mjs:graph', records => RecordStore->new(parts => 3));

sub last_checkpoint { return (lines_of('checkpoint', @_))[-1] }

# The messages of the last checkpoint as texts.
sub texts_of {
    return map { $_->{content} } @{ last_checkpoint(@_)->{values}{messages} };
}

sub say_to {
    my ($text, %fields) = @_;
    return $runner->run(graph_id => 'delta', input => { messages => [ { role => 'user', content => $text } ] }, %fields);
}

# Longer than the library goes without a snapshot.
my $TURNS = 60;
my $thread = new_uuid();
my (@ids, @expected, $bytes, $is_right);
for my $turn (1 .. $TURNS) {
    my @lines = say_to("turn $turn", $runner->next_run($thread));
    push @expected, "turn $turn", 2 * $turn - 1;
    $is_right += join(' ', texts_of(@lines)) eq "@expected";
    push @ids, last_checkpoint(@lines)->{checkpoint_id};
    $bytes = 0;
    $bytes += length $_->{' text'} for grep { $_->{type} ne 'blob' } @lines;
}
is $is_right, $TURNS, 'delta: each run has the messages of all runs before it';
my $snapshots = $runner->records->thread($thread)->{snapshots}{''};
my @whole = grep { $snapshots->{$_}{channels}{messages} } keys %{$snapshots};
cmp_ok scalar(@whole), '<', @ids, 'delta: most checkpoints have no messages';
cmp_ok scalar(@whole), '>', 0, 'delta: some checkpoints have messages';

my @lines = say_to('fork', $runner->next_run($thread, $ids[9]));
is_deeply [ texts_of(@lines) ], [ @expected[ 0 .. 19 ], 'fork', 21 ], 'delta: a fork has the messages of its own ancestors';
@lines = say_to('after', $runner->next_run($thread));
is_deeply [ texts_of(@lines) ], [ @expected[ 0 .. 19 ], 'fork', 21, 'after', 23 ], 'delta: a run goes on after the fork';

my $call = { type => 'call', run_id => new_uuid(), epoch => 1, attempt => 1, op => 'update', graph_id => 'delta',
    config => {}, context => {}, $runner->next_run($thread),
    arguments => { supersteps => [ [ { values => { messages => [ { role => 'user', content => 'more' } ] }, as_node => 'agent' } ] ] } };
$runner->send($call);
is +(texts_of($runner->lines_of_run($call->{run_id})))[-1], 'more', 'delta: an update adds to them';
@lines = say_to('last', $runner->next_run($thread));
is scalar(grep { $_->{op} eq 'checkpoint.delta' && !defined $_->{cursor} } $runner->requests_of($lines[-1]{run_id})), 1,
    'delta: a run reads the history of a channel by one request, whatever its length';
is_deeply [ (texts_of(@lines))[ -3 .. -1 ] ], [ 'more', 'last', 26 ], 'delta: a run goes on after the update';

@lines = say_to('exit', thread_id => $thread = new_uuid(), durability => 'exit');
is_deeply [ texts_of(@lines) ], [ 'exit', 1 ], 'delta: durability exit saves the last checkpoint';
# The library puts one of step -2, which has the writes that the last one is made of, and lists it in a history.
is_deeply [ map { $_->{metadata}{step} } lines_of('checkpoint', @lines) ], [ -2, 1 ], 'delta: durability exit saves these checkpoints';
@lines = say_to('again', $runner->next_run($thread), durability => 'exit');
is_deeply [ texts_of(@lines) ], [ 'exit', 1, 'again', 3 ], 'delta: a run reads the checkpoint that durability exit has saved';

done_testing;
