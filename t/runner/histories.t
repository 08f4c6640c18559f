# SPDX-License-Identifier: Apache-2.0
# Random histories of threads: the states that the runners of both languages send, after each run, resume, command and
# update, at the last checkpoint or at an earlier one, are those of the bare library with its saver in memory.
use strict;
use warnings;
use AgentTest::Applications qw(folder_of python runner_of);
use AgentTest::Env qw(is_sanitized is_counted root slurp);
use Cpanel::JSON::XS;
use FindBin;
use IPC::Open2 qw(open2);
use lib $FindBin::Bin;
use ApplicationTest;
use RunnerTest qw(start_line lines_of new_uuid);
use Test::More;

plan skip_all => 'the runners of applications have no such build' if is_sanitized() || is_counted();

my $HISTORIES = $ENV{AGENT_TEST_HISTORIES} // 12;
my $OPERATIONS = 8;
my $json = Cpanel::JSON::XS->new->utf8->canonical->allow_nonref;
my ($UPDATE, $PENDING) = map { my $digit = $_; join '-', map { $digit x $_ } 8, 4, 4, 4, 12 } 0, 'f';

sub one_of { my (@all) = @_; return $all[ rand @all ] }

# The next operation on a thread, of which the bare library has shown that.
sub operation {
    my ($shown) = @_;
    my @questions = @{ $shown->{questions} };
    my @at = rand() < 0.25 && @{ $shown->{history} } ? (at => int rand @{ $shown->{history} }) : ();
    my @stop = rand() < 0.2 ? (one_of('before', 'after') => [ one_of(qw(b c w join plan)) ]) : ();
    my $update = { log => [ { by => 'client' } ], one_of({ n => int rand 4 }, { fail => \(rand() < 0.3 ? 1 : 0) }, {})->%* };
    my $kind = rand;
    if (@questions && $kind < 0.55) {
        my %answers = map { $_ => "to $_" } rand() < 0.5 ? @questions : one_of(@questions);
        return { op => 'run', command => { resume => @questions == 1 && rand() < 0.5 ? 'one' : \%answers,
            rand() < 0.25 ? (update => $update) : () }, @stop };
    }
    return { op => 'run', input => { log => [ { by => 'input' } ], most => 1 + int rand 4, fail => rand() < 0.1 ? \1 : \0 }, @at, @stop }
        if !@{ $shown->{history} } || $kind < 0.65;
    return { op => 'run', input => undef, @at, @stop } if $kind < 0.75;
    return { op => 'run', command => { update => $update, rand() < 0.6 ? (goto => one_of(qw(plan b join))) : () } } if $kind < 0.85;
    return { op => 'update', values => $update, as_node => one_of(qw(plan b c join)), @at };
}

# The checkpoints of the root graph.
sub ids_of {
    my ($checkpoints) = $_[0]{checkpoints} // {};
    return sort grep { ($checkpoints->{$_}{ns} // '') eq '' } keys %{$checkpoints};
}

# Performs it by the runner. Returns the lines.
sub perform {
    my ($runner, $thread, $operation) = @_;
    my @ids = ids_of($runner->records->thread($thread->{id}));
    my $named = defined $operation->{at} ? $ids[ $operation->{at} ] : undef;
    my %fields = (graph_id => 'graph', config => { configurable => { defined $named ? (checkpoint_id => $named) : () } },
        thread_id => $thread->{id}, $runner->next_run($thread->{id}, $named));
    my $message;
    if ($operation->{op} eq 'update') {
        $message = { type => 'call', run_id => new_uuid(), epoch => 1, attempt => 1, op => 'update', ns => '', context => {}, checkpoint => undef, %fields,
            arguments => { supersteps => [ [ { %{$operation}{qw(values as_node)}, command => undef } ] ] } };
    }
    else {
        my $command = $operation->{command} && { %{ $operation->{command} } };
        my $resume = $command && $command->{resume};
        $command->{resume} = { map { $thread->{ids}{$_} => $resume->{$_} } keys %{$resume} } if ref $resume;
        $message = start_line(%fields, input => $operation->{input}, command => $command, durability => $thread->{durability},
            interrupt_before => $operation->{before}, interrupt_after => $operation->{after});
    }
    $runner->send($message);
    my @lines = $runner->lines_of_run($message->{run_id});
    my @tasks = map { $_->{type} eq 'checkpoint' ? @{ $_->{tasks} } : $_->{type} eq 'task' ? $_->{task} : () } @lines;
    $thread->{ids}{ $_->{value} } = $_->{id} for map { @{ $_->{interrupts} // [] } } @tasks;
    return @lines;
}

# The values of a difference from those of a checkpoint.
sub resolved {
    my ($before, $values) = @_;
    my %resolved;
    for my $name (keys %{$values}) {
        my $value = $values->{$name};
        my $list = ref $value eq 'HASH' && $value->{'$list'};
        $resolved{$name} = ref $value eq 'HASH' && $value->{'$same'} ? $before->{$name}
            : $list ? [ @{ $before->{$name} }[ 0 .. $list->{keep} - 1 ], @{ $list->{items} } ] : $value;
    }
    return \%resolved;
}

# The state and the history of a thread, as the server shows them.
sub shown {
    my ($runner, $thread, @lines) = @_;
    for my $line (grep { ($_->{ns} // '') eq '' } lines_of('task', @lines)) {
        my ($id, $task) = @{$line}{qw(checkpoint_id task)};
        $thread->{updates}{$id} = $task if $task->{id} eq $UPDATE;
        delete $thread->{pending}{$id} if $task->{id} eq $UPDATE;
        $thread->{pending}{$id} = $task if $task->{id} eq $PENDING;
    }
    my $stored = $runner->records->thread($thread->{id});
    my @ids = ids_of($stored);
    my %number_of = map { $ids[$_] => $_ } 0 .. $#ids;
    my @history;
    for my $id (@ids) {
        my ($line, $update) = ($stored->{checkpoints}{$id}, $thread->{updates}{$id} // {});
        push @history, { values => { %{ $line->{values} }, %{ $update->{values} // {} } }, next => [ sort @{ $update->{next} // $line->{next} } ],
            %{ $line->{metadata} }{qw(source step)}, parent => $number_of{ $line->{parent} // '' } };
    }
    my $head = $stored->{head} // return { values => {}, next => [], history => [] };
    my $pending = $thread->{pending}{$head};
    return { %{ $history[ $number_of{$head} ] }{qw(values next)},
        $pending ? (values => resolved($stored->{checkpoints}{$head}{values}, $pending->{values}), next => [ sort @{ $pending->{next} } ]) : (),
        history => \@history };
}

for my $language ('python', 'javascript') {
    my ($interpreter, $program) = runner_of($language);
    my $file = 'histories.' . ($language eq 'python' ? 'py' : 'mjs');
    my $folder = folder_of($language, { graphs => { graph => "./$file:graph" } }, $file => slurp("$FindBin::Bin/histories/$file"));
    my $runner = ApplicationTest->new(command => [ $interpreter, $program ], graphs => { graph => "./$file:graph" }, directory => $folder);
    my $pid = open2(my $from_bare, my $to_bare, $interpreter, "$folder/$file");
    for my $seed (1 .. $HISTORIES) {
        srand $seed;
        my $thread = { id => new_uuid(), durability => one_of(qw(async sync exit)) };
        my $expected = { questions => [], history => [] };
        my @operations;
        for (1 .. $OPERATIONS) {
            push @operations, my $operation = operation($expected);
            $to_bare->print($json->encode({ %{$operation}, thread => "$seed", durability => $thread->{durability} }) . "\n");
            $to_bare->flush;
            $expected = $json->decode(scalar readline $from_bare);
            last if !$expected;
            my @lines = perform($runner, $thread, $operation);
            my $got = shown($runner, $thread, @lines);
            $got->{error} = $lines[-1]{error} && $lines[-1]{error}{error};
            my %wanted = %{$expected}{qw(error values next history)};
            if ($json->encode($got) ne $json->encode(\%wanted)) {
                is_deeply $got, \%wanted, "$language, history $seed: the states are those of the bare library"
                    or diag join "\n", map { $json->encode($_) } @operations;
                last;
            }
        }
        pass "$language, history $seed: the states are those of the bare library";
    }
    close $to_bare;
    waitpid $pid, 0;
}

done_testing;
