# SPDX-License-Identifier: Apache-2.0
# A small C program of the tests, built with libpq in a temporary directory. Needs cc and libpq-dev.
package AgentSQL::Program;

use strict;
use warnings;

use File::Temp ();
use AgentSQL;

sub build {
    my ($class, $source) = @_;
    my $dir = File::Temp->newdir;
    my ($include, $lib) = map { chomp(my $path = `pg_config --$_`); $path } qw(includedir libdir);
    my $program = "$dir/" . $source =~ s/\.c$//r;
    my ($status, $output) = AgentSQL::run(
        {}, $ENV{CC} || 'cc', qw(-std=gnu11 -Wall -Wextra -Werror -O2 -pthread), "-I$include",
        '-o', $program, "$AgentSQL::ROOT/t/sql/$source", "-L$lib", '-lpq');
    die "$source: $output" if $status != 0;
    return bless { dir => $dir, program => $program }, $class;
}

# (exit status, output) of the program against a database, as its owner.
sub run {
    my ($self, $db, @arguments) = @_;
    return AgentSQL::run($db->env, $self->{program}, @arguments);
}

1;
