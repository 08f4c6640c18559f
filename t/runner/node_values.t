# SPDX-License-Identifier: Apache-2.0
# The runner for JavaScript: values that the library's serializer cannot encode are neither stored nor
# shown, and the next run goes on from the state before them; with the newest and the oldest library.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use NodeApplication qw(runner);
use RunnerTest qw(new_uuid lines_of);
use Test::More;

sub last_checkpoint { return (grep { !length $_->{ns} } lines_of('checkpoint', @_))[-1] }

# The serializer gives it instead of such a value.
my $TEXT = '[unable to serialize, circular reference is too complex to analyze]';
my @values = ('a BigInt', 'a nested BigInt', 'an object', 'a list of objects', 'a message', 'a cycle', 'a toJSON', 'a Send');

for my $fixtures (qw(node node-1.0)) {
    my $runner = runner(fixtures => $fixtures, notes => './graphs.mjs:notes');
    # A run with one more note: its lines.
    my $run = sub {
        my ($thread, $note, @options) = @_;
        my @next = $runner->records->thread($thread)->{head} ? $runner->next_run($thread) : (thread_id => $thread);
        return $runner->run(graph_id => 'notes', @next, input => { notes => [$note] }, stream_modes => [qw(values updates)], @options);
    };
    for my $durability (qw(async sync exit)) {
        for my $value (@values) {
            # With `exit` it is in no checkpoint that is stored.
            next if $durability eq 'exit' && $value eq 'a Send';
            my ($thread, $title) = (new_uuid(), "$fixtures, $durability, $value");
            $run->($thread, 'one');
            my @lines = $run->($thread, $value, durability => $durability);
            # The error of toJSON() may come first, where the value is shown.
            my $error = $value eq 'a toJSON' ? qr/(?:NotRenderedError|Error)/ : qr/NotRenderedError/;
            like "$lines[-1]{status} " . ($lines[-1]{error}{error} // ''), qr/\Aerror $error\z/, "$title: the run ends with the error";
            is_deeply [ grep { /unable to serialize/ } map { $_->{' text'} } @lines ], [], "$title: no line has another value in its place";
            my $shown = last_checkpoint(@lines);
            my $kept = $shown ? $shown->{values}{notes} : [qw(one reply)];
            is_deeply [ @{$kept}[ 0, 1 ] ], [qw(one reply)], "$title: the state is that before it";
            is_deeply [ grep { $_ ne $value } @{$kept} ], [qw(one reply)], "$title: the state has nothing but the input more";
            my @after = $run->($thread, 'after');
            is_deeply [ $after[-1]{status}, last_checkpoint(@after)->{values}{notes} ], [ 'success', [ @{$kept}, 'after', 'reply' ] ],
                "$title: the next run goes on from there";
        }
    }
    my $thread = new_uuid();
    $run->($thread, 'a text');
    is_deeply last_checkpoint($run->($thread, 'after'))->{values}{notes}, [ 'a text', $TEXT, 'after', 'reply' ],
        "$fixtures: a text that is the serializer's is a text";
    $runner->close_input;
    is $runner->finish, 0, "$fixtures: the runner ends";
}

done_testing;
