# SPDX-License-Identifier: Apache-2.0
# The Python runner: channels whose checkpoints have their writes only (DeltaChannel), which
# LangGraph 1.0 does not have.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PythonRunner;
use RecordStore;
use RunnerTest qw(new_uuid lines_of);
use Test::More;

my $runner = PythonRunner->new(paths => { delta => './delta.py:graph' }, records => RecordStore->new(parts => 3));
my $thread = new_uuid();
my (@lines, @expected, $is_right);
for my $turn (1 .. 12) {
    @lines = $runner->run(graph_id => 'delta', input => { messages => [ { role => 'user', content => "turn $turn" } ] },
        $runner->next_run($thread));
    push @expected, "turn $turn", 2 * $turn - 1;
    my $values = (lines_of('checkpoint', @lines))[-1]{values};
    $is_right += join(' ', map { $_->{content} } @{ $values->{messages} }) eq "@expected";
}
is $is_right, 12, 'delta: each run has the messages of all runs before it';
my %asked;
$asked{ $_->{op} }++ for grep { !defined $_->{cursor} } $runner->requests_of($lines[-1]{run_id});
is $asked{'checkpoint.delta'}, 1, 'delta: a run reads the history of a channel by one request, whatever its length';
is $asked{'checkpoint.get'}, 1, 'delta: it reads the last checkpoint only';
done_testing;
