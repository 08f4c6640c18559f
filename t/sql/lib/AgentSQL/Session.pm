# SPDX-License-Identifier: Apache-2.0
# One psql process: a session that tests talk to, also while another session waits.
package AgentSQL::Session;

use strict;
use warnings;

use AgentTest::Wait;
use IO::Select;
use IPC::Open2 ();

my $MARK = 'agent-sql-end-of-answer';

sub new {
    my ($class, $env) = @_;
    local %ENV = (%ENV, %$env);
    my $self = bless {}, $class;
    $self->{pid} = IPC::Open2::open2(
        $self->{out}, $self->{in}, 'sh', '-c',
        'exec "$0" -XAtq -F "$1" -R "$2" 2>&1',
        AgentSQL::bindir() . '/psql', "\x1f", "\x1e");
    $self->{in}->autoflush(1);
    binmode $self->{in}, ':encoding(UTF-8)';
    binmode $self->{out}, ':encoding(UTF-8)';
    $self->query('set client_min_messages = warning');
    $self->send("\\set VERBOSITY verbose\n\\set SHOW_CONTEXT never\nselect 1");
    $self->receive;
    $self->{backend} = $self->value('select pg_backend_pid()');
    return $self;
}

# Starts a statement; receive waits for its answer.
sub send {
    my ($self, $sql) = @_;
    print { $self->{in} } "$sql\n;\n\\echo\n\\echo $MARK\n";
    return;
}

sub receive {
    my ($self) = @_;
    my $text = '';
    while (defined(my $line = readline $self->{out})) {
        if ($line eq "$MARK\n") {
            $text =~ s/\n+\z//;
            return $text;
        }
        $text .= $line;
    }
    die "psql ended: $text";
}

# Whether the statement that was sent waits for a lock of another session, which asks: false when it has ended
# without that.
sub waits_for {
    my ($self, $holder) = @_;
    my $answer = IO::Select->new($self->{out});
    my $waits = "select $holder->{backend} = any (pg_blocking_pids($self->{backend}))";
    return wait_for('a statement to wait for another session, or to end', sub {
        return $holder->value($waits) eq 't' ? 'waits' : $answer->can_read(0) && 'ends';
    }) eq 'waits';
}

# Rows as arrays of text; an error of the server dies.
sub query {
    my ($self, $sql) = @_;
    $self->send($sql);
    my $text = $self->receive;
    die "$text\n" if $text =~ /^(?:ERROR|FATAL): /m;
    return map { [ split /\x1f/, $_, -1 ] } split /\x1e/, $text;
}

sub value {
    my ($self, $sql) = @_;
    my ($row) = $self->query($sql);
    return defined $row ? $row->[0] : undef;
}

# The SQLSTATE that a statement fails with, '' when it does not fail.
sub error {
    my ($self, $sql) = @_;
    return eval { $self->query($sql); 1 } ? '' : ($@ =~ /^(?:ERROR|FATAL):  (\w{5}):/m)[0];
}

sub literal {
    my ($value) = @_;
    return 'null' if !defined $value;
    $value = '{' . join(',', map { '"' . s/(["\\])/\\$1/gr . '"' } @$value) . '}' if ref $value eq 'ARRAY';
    $value =~ s/'/''/g;
    return $value =~ /\\/ ? "E'" . $value =~ s/\\/\\\\/gr . "'" : "'$value'";
}

# A function of the schema: (code, body) or the rows. extra returns its third column.
sub call {
    my ($self, $name, @arguments) = @_;
    my @rows = $self->query("select * from agent.$name(" . join(', ', map { literal($_) } @arguments) . ')');
    return @rows if @rows != 1 || @{ $rows[0] } < 2 || @{ $rows[0] } > 4;
    $self->{extra} = $rows[0][2];
    return @{ $rows[0] }[ 0, 1 ];
}

# The third column of the last call; for a write, the changed ids.
sub extra { return $_[0]{extra} }

sub close {
    my ($self) = @_;
    close $self->{in};
    close $self->{out};
    waitpid $self->{pid}, 0;
    return;
}

1;
