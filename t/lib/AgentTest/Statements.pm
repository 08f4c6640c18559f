# SPDX-License-Identifier: Apache-2.0
# The statements that httpd's children execute for a request, with those inside of
# functions that read or write rows, from the log of a private cluster:
#
#   my $statements = AgentTest::Statements->new($postgres);    # before httpd starts
#   my @texts = $statements->of(sub { $client->get(...) });
package AgentTest::Statements;
use strict;
use warnings;
use AgentTest::Database;

# Children's connections have no application name; the supervisor's have one.
my $MARK = 'statements-of:';

# The module that logs nested statements is part of PostgreSQL; some packages leave
# it out. Then this is undef.
sub new {
    my ($class, $postgres) = @_;
    chomp(my $folder = qx(pg_config --pkglibdir));
    return if !-e "$folder/auto_explain.so";
    sql("alter system set log_line_prefix = '$MARK%a:'");
    sql("select pg_reload_conf()");
    sql("alter role agent set session_preload_libraries = 'auto_explain'; alter role agent set log_statement = 'all';
        alter role agent set auto_explain.log_min_duration = 0; alter role agent set auto_explain.log_nested_statements = on;
        alter role agent set auto_explain.log_format = 'json'");
    return bless { file => "$postgres->{dir}/postgres.log" }, $class;
}

# Authentication has statements of its own only every 2 s, so these are left out.
sub of {
    my ($self, $action) = @_;
    my $begin = -s $self->{file};
    $action->();
    open my $log, '<', $self->{file} or die "$self->{file}: $!\n";
    seek $log, $begin, 0;
    my $text = do { local $/; <$log> } // '';
    my (@texts, $is_left_out);
    for my $entry (split /^(?=\Q$MARK\E)/m, $text) {
        $entry =~ /\A\Q$MARK\E(?:\[unknown\])?:/ or next;
        if (my ($outer) = $entry =~ /LOG:  (?:execute [^:]*|statement): (.*)/s) {
            $is_left_out = $outer =~ /\bagent\.(?:(?:find|use)_api_key|find_invalid_keys)\b/;
            push @texts, $outer if !$is_left_out;
        } elsif (my ($nested) = $entry =~ /"Query Text": "((?:[^"\\]|\\.)*)"/) {
            push @texts, $nested if !$is_left_out && !is_expression($nested);
        }
    }
    return @texts;
}

# Whether a nested text reads no rows. Those of SQL functions are logged too when the
# planner evaluates them, and so depend on when PostgreSQL makes a plan again.
sub is_expression {
    my ($nested) = @_;
    my $text = $nested =~ s/\\[nrt]/ /gr;
    return $text =~ /\A\s*select\b/i && $text !~ /\bfrom\b/i;
}

1;
