# SPDX-License-Identifier: Apache-2.0
# Looking into the database of the server under test, past the API.
package AgentTest::Database;
use strict;
use warnings;
use Carp qw(croak);
use Exporter 'import';

our @EXPORT = qw(sql literal);

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

1;
