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

# sql('select ...'): the first value, or in list context the rows, columns
# joined by tabs. Connects as PGUSER (postgres in tests); several statements
# are one transaction.
sub sql {
    my ($statement) = @_;
    my @command = (qw(psql -X -q -A -t -v ON_ERROR_STOP=1 -F), "\t", '-c',
        $statement);
    open my $psql, '-|', @command or croak "psql: $!";
    chomp(my @rows = <$psql>);
    close $psql or croak "psql failed on: $statement";
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
    open my $psql, '|-', "psql -X -q -o /dev/null >$out" or croak "psql: $!";
    $psql->autoflush;
    print {$psql} "begin; $statement;\n\\echo locked\n";
    wait_for("the lock of $statement", sub { read_all("$out") eq "locked\n" });
    return $psql;
}

# Listens as httpd's children do; psql prints notifications after each
# statement.
sub start_listener {
    my $out = File::Temp->new;
    open my $psql, '|-', "psql -XqAt >$out" or croak "psql: $!";
    $psql->autoflush;
    print {$psql} "listen agent_runs; select 'listening';\n";
    wait_for('psql to listen', sub { read_all("$out") =~ /listening/ });
    return { psql => $psql, out => $out };
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
