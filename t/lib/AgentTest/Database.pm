# SPDX-License-Identifier: Apache-2.0
# Queries of the server's database, past the API.
package AgentTest::Database;
use strict;
use warnings;
use Carp qw(croak);
use Exporter 'import';
use File::Temp;
use IO::Handle;
use AgentTest::Wait;

our @EXPORT = qw(sql literal hold_lock start_listener listen_once);

my $psql;

# The program itself: Debian's psql in the search path is a Perl script that chooses
# a version, and takes four times the processor time of a short query.
sub psql {
    return $psql //= do {
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
