# SPDX-License-Identifier: Apache-2.0
# Drives the Python runner: ApplicationTest with the application t/runner/fixtures/python,
# whose packages are installed below .build with the checksums of a requirements file.
package PythonRunner;
use strict;
use warnings;
use AgentTest::Env qw(root slurp write_file is_sanitized is_counted);
use ApplicationTest;
use Cpanel::JSON::XS;
use Digest::SHA qw(sha256_hex);
use Exporter 'import';
use Fcntl qw(LOCK_EX);
use File::Path qw(make_path remove_tree);
use RecordStore;
use RunnerTest qw(start_line);
use Test::More;
use parent -norequire, 'ApplicationTest';

our @EXPORT_OK = qw(python application in_all_versions);

my $FOLDER = root() . '/mod_agent/runners/python';
my $json = Cpanel::JSON::XS->new->utf8->canonical->allow_nonref;

# Nothing of it is compiled: one build is enough.
plan skip_all => 'the runner in Python has no such build' if is_sanitized() || is_counted();

# python('1.0'): a Python with the oldest packages; python(): with the newest.
sub python {
    my ($version) = @_;
    my $name = defined $version ? "python-$version" : 'python';
    my $requirements = root() . "/t/runner/fixtures/$name.txt";
    my $folder = root() . "/.build/runner-packages/$name";
    my $wanted = sha256_hex(slurp($requirements));
    make_path(root() . '/.build/runner-packages');
    open my $lock, '>', "$folder.lock" or die "$folder.lock: $!\n";
    flock $lock, LOCK_EX or die "$folder.lock: $!\n";
    return "$folder/bin/python" if slurp("$folder/installed") eq $wanted;
    remove_tree($folder);
    # All packages are in the list. With an extra of one, pip 23 looks beside it.
    my @steps = ([ interpreter(), qw(-m venv), $folder ], [ "$folder/bin/python", qw(-m pip install --quiet --no-compile
        --disable-pip-version-check --no-deps --require-hashes --only-binary :all:), '-r', $requirements ]);
    for my $step (@steps) {
        system(@{$step}) == 0 or die "@{$step} failed\n";
    }
    write_file("$folder/installed", $wanted);
    return "$folder/bin/python";
}

# Debian's own, if it is there: that of the caller's PATH may be in a folder that the
# user of the runners cannot read.
sub interpreter {
    for my $program ('/usr/bin/python3', 'python3') {
        return $program if system("$program -c 'import ensurepip, venv' >/dev/null 2>&1") == 0;
    }
    die "no python3 has ensurepip and venv\n";
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

# new(version => '1.0', directory => folder, graphs => [names], slots => N, memory => bytes, and what
# ApplicationTest has: records, store)
sub new {
    my ($class, %args) = @_;
    my $directory = delete $args{directory} // application();
    my $python = python(delete $args{version});
    my ($memory, $slots) = delete @args{qw(memory slots)};
    my %paths = %{ $json->decode(slurp("$directory/langgraph.json"))->{graphs} };
    %paths = map { $_ => $paths{$_} } @{ delete $args{graphs} } if $args{graphs};
    local $ENV{PYTHONPYCACHEPREFIX} = root() . '/.build/runner-packages/pycache';
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
