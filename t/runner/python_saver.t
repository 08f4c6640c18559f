# SPDX-License-Identifier: Apache-2.0
# The Python runner's checkpointer, on records and requests of the protocol: LangGraph's
# conformance suite, and the history of delta channels beside that of LangGraph's own saver.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Env qw(root);
use PythonRunner qw(python);
use RecordHost;
use RunnerTest;
use Test::More;

# A host that begins a run with its first line.
package Host;    ## no critic (Modules::ProhibitMultiplePackages)
use parent -norequire, 'PythonRunner';

my %own = (
    'test.delete_thread' => sub { my ($records, $args) = @_; $records->delete_thread($args->{run_id}); return },
    'test.delete_runs'   => sub { my ($records, $args) = @_; $records->delete_runs(@{ $args->{run_ids} }); return },
    'test.copy'  => sub { my ($records, $args) = @_; $records->copy(@{$args}{qw(source target)}); return },
    'test.prune' => sub { my ($records, $args) = @_; $records->prune(@{$args}{qw(run_id strategy)}); return },
);

sub take_line {
    my ($self, $line) = @_;
    my $records = $self->{records};
    $records->begin({ run_id => $line->{run_id}, thread_id => $line->{run_id}, last => 1 }) if !$records->{runs}{ $line->{run_id} };
    my $answer = $line->{type} eq 'request' && $own{ $line->{op} };
    return $self->SUPER::take_line($line) if !$answer;
    $answer->($records, $line->{args});
    return $self->acknowledge({ %{$line}, ack => $line->{id} });
}

package main;

local $ENV{AGENT_TEST_RUNNER} = python();
local $ENV{PYTHONPYCACHEPREFIX} = root() . '/.build/runner-packages/pycache';
my $host = RunnerTest::new('Host', arguments => [ "$FindBin::Bin/fixtures/conformance.py", root() . '/mod_agent/runners/python' ]);
$host->{records} = RecordHost->new;
is $host->finish, 0, 'the conformance suite ends';
my @results = grep { /\A(?:not )?ok / } split /\n/, $host->log_text;
for (@results) {
    my ($failed, $name, $reason) = /\A(not )?ok (\w+: [^:]+)(?:: (.*))?\z/;
    ok !$failed, $name or diag $reason // $_;
}
my $suite = grep { !/ok delta:/ } @results;
is $suite, 81, 'the conformance suite has 81 tests';
is @results - $suite, 19, 'history of delta channels has 19 tests';
diag $host->log_text if @results != 100;

done_testing;
