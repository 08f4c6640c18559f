# SPDX-License-Identifier: Apache-2.0
# Queries of the server's database, past the API.
package AgentTest::Database;
use strict;
use warnings;
use Carp qw(croak);
use Exporter 'import';
use File::Temp;
use IO::Handle;
use IPC::Open2 qw(open2);
use AgentTest::Wait;

our @EXPORT = qw(sql poll literal wait_for_graphs hold_lock start_listener listen_once);
our @EXPORT_OK = qw(psql);

# The program itself: Debian's psql in the search path is a Perl script that chooses
# a version, and takes four times the processor time of a short query.
sub psql {
    return $ENV{AGENT_TEST_PSQL} //= do {
        chomp(my $folder = qx(pg_config --bindir));
        $folder && -x "$folder/psql" ? "$folder/psql" : 'psql';
    };
}

# sql('select ...'): the first value, or in list context the rows, columns
# joined by tabs. Connects as PGUSER (postgres in tests); several statements
# are one transaction.
sub sql {
    my ($statement) = @_;
    my @command = (psql(), qw(-X -q -A -t -v ON_ERROR_STOP=1 -F), "\t", '-c',
        $statement);
    open my $answer, '-|', @command or croak "psql: $!";
    chomp(my @rows = <$answer>);
    close $answer or croak "psql failed on: $statement";
    return @rows if wantarray;
    my ($first) = split /\t/, $rows[0] // '', 2;
    return $first;
}

# The session of poll, of the process and the database that it was opened for.
my %session = (key => '');
my $MARK    = 'agent-test-end-of-rows';

# poll('select ...'): what sql returns, for one select that a condition repeats. Its
# session stays open, which takes a tenth of the processor time; it is opened again
# after a restart of the cluster.
sub poll {
    my ($select) = @_;
    my @rows;
    if (!ask($select, \@rows)) {
        close_session();
        @rows = ();
        ask($select, \@rows) or croak "psql failed on: $select";
    }
    return @rows if wantarray;
    my ($first) = split /\t/, $rows[0] // '', 2;
    return $first;
}

# False if the session ended before the last row.
sub ask {
    my ($select, $rows) = @_;
    open_session();
    local $SIG{PIPE} = 'IGNORE';
    print { $session{in} } "$select;\n\\echo $MARK\n";
    while (defined(my $row = readline $session{out})) {
        chomp $row;
        return 1 if $row eq $MARK;
        push @{$rows}, $row;
    }
    return 0;
}

sub open_session {
    my $key = join ' ', $$, map { $ENV{$_} // '' } qw(PGHOST PGUSER PGDATABASE);
    return if $session{key} eq $key;
    close_session();
    my $pid = open2(my $out, my $in, psql(), qw(-X -q -A -t -v ON_ERROR_STOP=1 -F), "\t");
    $in->autoflush;
    %session = (key => $key, pid => $pid, owner => $$, in => $in, out => $out);
    return;
}

# A fork of the process that opened it closes its own ends only.
sub close_session {
    my %old = %session;
    %session = (key => '');
    close $_ for grep { defined } @old{qw(in out)};
    return if !$old{pid} || $old{owner} != $$;
    local ($?, $!);
    # It may wait for a lock.
    kill TERM => $old{pid};
    waitpid $old{pid}, 0;
    return;
}

END { close_session() }

# Waits until the runners of a deployment have reported that many graphs. Their system
# assistants exist before.
sub wait_for_graphs {
    my ($deployment, $count) = @_;
    my $select = "select count(*) >= $count from agent.graphs join agent.deployments using (deployment_id) where name = '$deployment'";
    return wait_for("the graphs of $deployment to be reported", sub { poll($select) eq 't' });
}

# A text as an SQL literal.
sub literal {
    my ($text) = @_;
    return 'null' if !defined $text;
    $text =~ s/'/''/g;
    return "'$text'";
}

# hold_lock('lock table ...'): the input of a psql in whose transaction the
# statement has been executed. Closing it ends the transaction.
sub hold_lock {
    my ($statement) = @_;
    my $out = File::Temp->new;
    open my $in, '|-', psql() . " -X -q -o /dev/null >$out" or croak "psql: $!";
    $in->autoflush;
    print {$in} "begin; $statement;\n\\echo locked\n";
    wait_for("the lock of $statement", sub { read_all("$out") eq "locked\n" });
    return $in;
}

# Listens as httpd's children do; psql prints notifications after each
# statement.
sub start_listener {
    my $out = File::Temp->new;
    open my $in, '|-', psql() . " -XqAt >$out" or croak "psql: $!";
    $in->autoflush;
    print {$in} "listen agent_runs; select 'listening';\n";
    wait_for('psql to listen', sub { read_all("$out") =~ /listening/ });
    return { psql => $in, out => $out };
}

# All notifications so far.
sub listen_once {
    my ($listener) = @_;
    print { $listener->{psql} } "select 1;\n";
    return read_all("$listener->{out}");
}

sub read_all {
    my ($path) = @_;
    open my $file, '<', $path or croak "$path: $!";
    local $/;
    return <$file> // '';
}

1;
