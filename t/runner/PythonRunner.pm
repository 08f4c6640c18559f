# SPDX-License-Identifier: Apache-2.0
# Drives the Python runner: ApplicationTest with the application t/runner/fixtures/python.
package PythonRunner;
use strict;
use warnings;
use AgentTest::Applications qw(python);
use AgentTest::Env qw(root slurp is_sanitized is_counted);
use ApplicationTest;
use Cpanel::JSON::XS;
use Exporter ();
use RecordStore;
use RunnerTest qw(start_line);
use Test::More;
use parent -norequire, qw(ApplicationTest Exporter);

our @EXPORT_OK = qw(python application in_all_versions);

my $FOLDER = root() . '/mod_agent/runners/python';
my $json = Cpanel::JSON::XS->new->utf8->canonical->allow_nonref;

# Nothing of it is compiled: one build is enough for the tests that drive it, not for those of servers that start it.
sub import {
    my ($class, @names) = @_;
    plan skip_all => 'the runner in Python has no such build'
        if (is_sanitized() || is_counted()) && (!@names || grep { !/\A(?:python|application)\z/ } @names);
    return $class->export_to_level(1, $class, @names);
}

sub application { return root() . '/t/runner/fixtures/python' }

# in_all_versions(sub { my ($runner, $version) = @_; ... }): for the newest and the oldest packages.
sub in_all_versions {
    my ($code) = @_;
    for my $version (undef, '1.0') {
        subtest('langgraph ' . ($version // 'newest') => sub {
            my $runner = PythonRunner->new(version => $version);
            $code->($runner, $version // 'newest');
        });
    }
    return;
}

# new(version => '1.0', directory => folder, graphs => [names], paths => {name => path} in place of
# those of langgraph.json, slots => N, memory => bytes, and what
# ApplicationTest has: records, store)
sub new {
    my ($class, %args) = @_;
    my $directory = delete $args{directory} // application();
    my $python = python(delete $args{version});
    my ($memory, $slots) = delete @args{qw(memory slots)};
    my %paths = %{ delete $args{paths} // $json->decode(slurp("$directory/langgraph.json"))->{graphs} };
    %paths = map { $_ => $paths{$_} } @{ delete $args{graphs} } if $args{graphs};
    return $class->SUPER::new(directory => $directory, graphs => \%paths,
        # As RLIMIT_DATA of the spawner.
        command => [ $memory ? ('/usr/bin/prlimit', "--data=$memory") : (), $python, $FOLDER, $slots ? ('--slots', $slots) : () ],
        records => RecordStore->new(parts => 2), %args);
}

# start_of(graph => {fields of start}): a start message of a new thread.
sub start_of {
    my ($self, $graph, %fields) = @_;
    return start_line(graph_id => $graph, %fields);
}

1;
