# SPDX-License-Identifier: Apache-2.0
# Drives the Python runner: RunnerTest with the application t/runner/fixtures/python,
# whose packages are installed below .build with the checksums of a requirements file,
# and with a host for the library's records.
package PythonRunner;
use strict;
use warnings;
use AgentTest::Env qw(root slurp write_file is_sanitized is_counted);
use Cpanel::JSON::XS;
use Digest::SHA qw(sha256_hex);
use Exporter 'import';
use Fcntl qw(LOCK_EX);
use File::Path qw(make_path remove_tree);
use RecordHost;
use Test::More;
use RunnerTest qw(start_line lines_of);
use parent -norequire, 'RunnerTest';

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
    my @steps = ([ interpreter(), qw(-m venv), $folder ], [ "$folder/bin/python", qw(-m pip install --quiet --no-compile
        --disable-pip-version-check --require-hashes --only-binary :all:), '-r', $requirements ]);
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

# new(version => '1.0', directory => folder, graphs => [names], slots => N, memory => bytes, records => those of another runner,
#     store => sub { my ($request) = @_; ...; return the line of the reply })
sub new {
    my ($class, %args) = @_;
    my $directory = $args{directory} // application();
    # As RLIMIT_DATA of the spawner.
    my @limit = $args{memory} ? ("--data=$args{memory}", python($args{version})) : ();
    local $ENV{AGENT_TEST_RUNNER} = @limit ? '/usr/bin/prlimit' : python($args{version});
    local $ENV{PYTHONPYCACHEPREFIX} = root() . '/.build/runner-packages/pycache';
    my $self = $class->SUPER::new(arguments => [ @limit, $FOLDER, $args{slots} ? ('--slots', $args{slots}) : () ]);
    $self->{records} = $args{records} // RecordHost->new;
    $self->{store} = $args{store};
    my $config = $json->decode(slurp("$directory/langgraph.json"));
    my @names = @{ $args{graphs} // [ keys %{ $config->{graphs} } ] };
    $self->send({ type => 'hello', protocol => 2, limits => { line => 8_388_608, blob_part => 4_194_304 },
        application => { name => 'test', directory => $directory },
        graphs => { map { $_ => { kind => 'langgraph', path => $config->{graphs}{$_}, description => undef } } @names } });
    $self->{ready} = $self->expect('ready');
    return $self;
}

sub records { return shift->{records} }

sub send {    ## no critic (Subroutines::ProhibitBuiltinHomonyms)
    my ($self, @messages) = @_;
    for (@messages) { $self->{records}->begin($_) if $_->{type} =~ /\A(?:start|call)\z/ }
    return $self->SUPER::send(@messages);
}

# The host takes records and answers requests; a test sees blobs not at all.
sub take_line {
    my ($self, $line) = @_;
    my $run_id = $line->{run_id} // '';
    die "a line of a run that has ended: $line->{' text'}\n" if $self->{ended}{$run_id};
    $self->{ended}{$run_id} = 1 if $line->{type} eq 'end';
    if ($line->{type} eq 'request' && $line->{op} eq 'store' && $self->{store}) {
        $self->send_raw($self->{store}->($line));
        return;
    }
    if ($line->{type} eq 'request' && RecordHost->is_known($line->{op})) {
        $self->send_raw($self->{records}->reply_line($line));
        return;
    }
    # Reports about graphs need no credit.
    return push @{ $self->{lines} }, $line if $line->{type} eq 'ready';
    my $count = @{ $self->{lines} };
    $self->SUPER::take_line($line);
    if ($line->{type} =~ /\A(?:blob|put|put_writes)\z/) {
        $self->{records}->take($line);
        splice @{ $self->{lines} }, $count if $line->{type} eq 'blob';
        $self->acknowledge($line) if defined $line->{ack} && !$self->{is_withholding_acks};
    }
    elsif ($line->{type} eq 'checkpoint') {
        my $space = $self->{records}{runs}{ $line->{run_id} }{thread}{ns}{ $line->{ns} // '' };
        die "a checkpoint without its put\n" if !$space->{checkpoints}{ $line->{checkpoint_id} };
        $self->{records}->show($line);
    }
    return;
}

# Records are no longer acknowledged.
sub withhold_acks {
    my ($self) = @_;
    $self->{is_withholding_acks} = 1;
    return;
}

sub acknowledge {
    my ($self, $line) = @_;
    return $self->send_raw($json->encode({ type => 'reply', ok => \1, result => undef, cursor => undef,
        id => $line->{ack}, run_id => $line->{run_id}, epoch => $line->{epoch} }) . "\n");
}

# start_of(graph => {fields of start}): a start message of a new thread.
sub start_of {
    my ($self, $graph, %fields) = @_;
    return start_line(graph_id => $graph, %fields);
}

# next_of(thread_id, @lines): the fields of the next run of the thread.
sub next_of {
    my ($self, $thread_id, @lines) = @_;
    my ($last) = reverse grep { !defined $_->{ns} } lines_of('checkpoint', @lines);
    return (thread_id => $thread_id, checkpoint => { checkpoint_id => $last->{checkpoint_id}, bytes => 100,
        run_id => $last->{run_id}, step => $last->{metadata}{step}, next => $last->{next} });
}

1;
