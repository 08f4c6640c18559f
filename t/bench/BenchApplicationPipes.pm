# SPDX-License-Identifier: Apache-2.0
# Runners of applications alone on their pipes, beside the bare libraries: on the same
# machine, in the same minutes, with the same number of runs.
package BenchApplicationPipes;
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use lib root() . '/t/runner';
use ApplicationTest;
use BenchApplications qw(bare_ms $ANSWER);
use BenchProcess qw(cpu_ms);
use BenchRuns qw(at);
use Cpanel::JSON::XS;
use Exporter 'import';
use RunnerTest qw(human new_uuid start_line);

our @EXPORT_OK = qw(runner_ms measure_alone);

# The processor time of a run on each of the threads, which may be the same one.
sub mean_ms {
    my ($runner, $graph, @threads) = @_;
    my $begin = cpu_ms($runner->pid);
    for my $thread (@threads) {
        my $start = start_line(graph_id => $graph, input => human('hello'), $runner->next_run($thread));
        $runner->send($start);
        my @lines = $runner->lines_of_run($start->{run_id});
        $lines[-1]{status} eq 'success' && grep({ $_->{' text'} =~ /\Q$ANSWER\E/ } @lines) or die "a run failed: $lines[-1]{' text'}\n";
    }
    return (cpu_ms($runner->pid) - $begin) / @threads;
}

sub new_threads { return map { new_uuid() } 1 .. $_[0] }

# As bare_ms(), and after as many runs to warm up.
sub runner_ms {
    my ($application, $language, $what, $count) = @_;
    my $graphs = Cpanel::JSON::XS->new->utf8->decode(slurp("$application->{directory}/langgraph.json"))->{graphs};
    my $runner = ApplicationTest->new(command => [ @{$application}{qw(program runner)} ], directory => $application->{directory},
        graphs => { $language => $graphs->{$language} });
    my $measure = sub { mean_ms($runner, $language, @_) };
    if ($what eq 'runs') {
        $measure->(new_threads(1 + int($count / 10)));
        return $measure->(new_threads($count));
    }
    $measure->(new_threads(100));
    my ($chat) = new_threads(1);
    $measure->(($chat) x 5);
    my $tenth = $measure->(($chat) x 10);
    $measure->(($chat) x ($count - 25));
    return ($tenth, $measure->(($chat) x 10));
}

# {runner, bare}: the medians of alternating rounds.
sub measure_alone {
    my ($application, $language, $rounds, $runs) = @_;
    my %times;
    my %measures = (runner => sub { runner_ms($application, $language, 'runs', $runs) }, bare => sub { bare_ms($application, 'runs', $runs) });
    for my $round (1 .. $rounds) {
        push @{ $times{$_} }, $measures{$_}->() for $round % 2 ? qw(runner bare) : qw(bare runner);
    }
    return { map { $_ => at(0.5, sort { $a <=> $b } @{ $times{$_} }) } keys %times };
}

1;
