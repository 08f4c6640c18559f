# SPDX-License-Identifier: Apache-2.0
# The library's public suite for checkpointers against that of the runner for
# JavaScript. Each of its tests is one here.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Env qw(root);
use Cpanel::JSON::XS;
use NodeApplication qw(application);
use RecordStore;
use Test::More;

# It skips one of them for the library's own saver.
my $TESTS = 718;

binmode Test::More->builder->$_, ':encoding(UTF-8)' for qw(output failure_output);
my $directory = application('node');
my $report = "$directory/validation.$$.json";
local $ENV{RUNNER} = root() . '/mod_agent/runners/node';
# Small parts, so that replies have several.
my $runner = ValidationTest->new(directory => $directory, store => RecordStore->new(part_size => 2, is_unordered => 1),
    command => [ 'node', 'node_modules/vitest/vitest.mjs', 'run', '--globals', '--pool=threads', '--no-file-parallelism',
        '--reporter=json', "--outputFile=$report", 'validation.test.mjs' ]);
my $status = $runner->finish;
open my $in, '<', $report or die "$report: $!\n", $runner->log_text;
my $result = decode_json(do { local $/; <$in> });
close $in;
unlink $report;
for my $test (map { @{ $_->{assertionResults} } } @{ $result->{testResults} }) {
    next if $test->{status} eq 'skipped' || $test->{status} eq 'pending';
    is $test->{status}, 'passed', "validation: $test->{fullName}" or diag @{ $test->{failureMessages} };
}
is $result->{numPassedTests}, $TESTS, 'validation: all tests of the suite are there';
is $status, 0, 'validation: the suite succeeds';
done_testing;

# The id of a run is that of its thread; one operation deletes it.
package ValidationTest;
use parent -norequire, 'ApplicationTest';

sub take_line {
    my ($self, $line) = @_;
    $self->{threads}{ $line->{run_id} } //= $line->{run_id};
    return $self->SUPER::take_line($line);
}

sub answer {
    my ($self, $request) = @_;
    return $self->SUPER::answer($request) if $request->{op} ne 'test.delete';
    $self->{store}->delete_thread($request->{run_id});
    return $self->reply_to($request, $request->{id}, { ok => \1, result => undef, cursor => undef });
}
