# SPDX-License-Identifier: Apache-2.0
# The runner for JavaScript: values of clients that look like those that the library's serializer has
# marked. They execute nothing, show no variable of the environment, and do not make a thread unusable;
# with the newest and the oldest library.
use strict;
use warnings;
use Cpanel::JSON::XS qw(decode_json);
use FindBin;
use lib $FindBin::Bin;
use NodeApplication qw(runner);
use RunnerTest qw(new_uuid lines_of);
use Test::More;

local $ENV{OPENAI_API_KEY} = my $secret = 'of-the-operator';

sub js { my ($class, %fields) = @_; return { lc => 2, type => 'constructor', id => [$class], method => undef, args => [], kwargs => {}, %fields } }

sub made {
    my ($class, %kwargs) = @_;
    return { lc => 1, type => 'constructor', id => [ split /[.]/, $class ], kwargs => \%kwargs };
}
my $MESSAGE = 'langchain_core.messages.HumanMessage';
my $key = { lc => 1, type => 'secret', id => ['OPENAI_API_KEY'] };
my @code = (method => 'constructor', args => [ 'r', 'r(process.env.OPENAI_API_KEY)' ]);

# Title => value, of which all stays as it is.
my @plain = (
    'a method that is code' => { then => js('Set', @code) },
    'a method that is code, of a mark without members that the serializer writes' =>
        { then => { lc => 2, type => 'constructor', id => ['Set'], @code } },
    'a method that is code, in the arguments of a set' => js('Set', args => [ [ { then => js('Map', @code) } ] ]),
    'a method that is code, in a message' => made($MESSAGE, content => 'x', additional_kwargs => { x => { then => js('Error', @code) } }),
    'a method that is code, with its members in a prototype' =>
        made($MESSAGE, content => 'x', additional_kwargs => { then => { type => 'constructor', id => ['Set'], @code, __proto__ => { lc => 2 } } }),
    'another static method' => js('Error', method => 'captureStackTrace', args => [ {} ]),
    'a set of a number' => js('Set', args => [5]),
    'bytes of a length' => js('Uint8Array', args => [ 2**31 ]),
    'a pattern that is none' => js('RegExp', args => [ '(', '' ]),
    'a secret' => $key,
    'a secret in a message' => made($MESSAGE, content => $key),
    'a secret in a message in a message' => made($MESSAGE, content => 'x', additional_kwargs => { inner => made($MESSAGE, content => $key) }),
    'a secret that the prototype of a message names' =>
        made($MESSAGE, content => 'x',
            additional_kwargs => { lc_secrets => { content => 'OPENAI_API_KEY' }, __proto__ => made($MESSAGE, content => 'y') }),
    'a class that does not exist' => made('langchain.x.Foo'),
    'a class of an unknown package' => made('x.Foo'),
    'a class that does not exist, in a message' => made($MESSAGE, content => 'x', additional_kwargs => { x => made('langchain.x.Foo') }),
    'a mark of what cannot be serialized' => { lc => 1, type => 'not_implemented', id => [ 'x', 'Foo' ] },
);

# The class and the value that a node has found.
sub found {
    my (@lines) = @_;
    my $shown = (grep { !length $_->{ns} } lines_of('checkpoint', @lines))[-1];
    return decode_json($shown->{values}{names}[-1]{name});
}

for my $fixtures (qw(node node-1.0)) {
    my $runner = runner(fixtures => $fixtures, tells => './graphs.mjs:tells');
    my $run = sub { return $runner->run(graph_id => 'tells', @_, stream_modes => ['values']) };
    for (my @left = @plain; my ($title, $value) = splice @left, 0, 2;) {
        my $thread = new_uuid();
        $run->(thread_id => $thread, input => { answer => $value });
        my @lines = $run->($runner->next_run($thread), input => { count => 1 });
        is $lines[-1]{status}, 'success', "$fixtures, $title: the next run of the thread ends with success";
        is scalar(grep { ($_->{' text'} // '') =~ /\Q$secret\E/ } @lines), 0, "$fixtures, $title: no line has the variable";
        my $expected = $title =~ /arguments of a set/ ? [ 'Set', {} ] : [ 'Object', $value ];
        is_deeply found(@lines), $expected, "$fixtures, $title: the value is plain";
    }
    my $thread = new_uuid();
    $run->(thread_id => $thread, input => { answer => made($MESSAGE, content => 'made by a client') });
    is found($run->($runner->next_run($thread), input => { count => 1 }))->[0], 'HumanMessage', "$fixtures: a message is made again";
    $runner->close_input;
    is $runner->finish, 0, "$fixtures: the runner ends";
}

done_testing;
