# SPDX-License-Identifier: Apache-2.0
# The messages of a runner written in Perl, and its loop. TestSupervisor puts this
# module into the program of the runner, which its user may not find in the tree.
package ScriptedRunner;
use strict;
use warnings;
use Cpanel::JSON::XS ();
use Exporter 'import';

our @EXPORT = qw(encode send_line send_of event end_run run_of runs add_text cut_text flush act serve);

my $json = Cpanel::JSON::XS->new->utf8->canonical->allow_nonref;
my %runs;

# Lines that are not written yet.
my $text = '';

sub encode { return $json->encode($_[0]) }
sub send_line { my ($message) = @_; $text .= encode($message) . "\n"; return }
sub send_of { my ($run, %members) = @_; return send_line({ run_id => $run->{run_id}, epoch => $run->{epoch}, %members }) }
sub event { my ($run, $data) = @_; return send_of($run, type => 'event', event => 'custom', data => $data) }

sub end_run {
    my ($run) = @_;
    delete $runs{ $run->{run_id} };
    return send_of($run, type => 'end', status => 'success', error => undef);
}

# The run that a message names, while it executes.
sub run_of { return $runs{ $_[0]{run_id} } }
sub runs   { return values %runs }

sub add_text { $text .= $_[0]; return }

# Takes back the lines that the code has sent.
sub cut_text {
    my ($code) = @_;
    my $before = length $text;
    $code->();
    return substr $text, $before, length($text) - $before, '';
}

# The lines that answer a message are written at once, so that the supervisor
# reads short ones together.
sub flush {
    while (length $text) {
        my $done = syswrite OUT, $text or exit 1;
        substr $text, 0, $done, '';
    }
    return;
}

# Does the action that the input of the run names; `once`: later attempts are noop.
sub act {
    my ($run, $actions) = @_;
    return $actions->{ $run->{input}{once} && $run->{attempt} > 1 ? 'noop' : $run->{input}{do} }->($run);
}

# Handles messages until the supervisor closes the pipe. start => sub { run }, and
# by their type other messages that the runner handles.
sub serve {
    my (%with) = @_;
    my $start = delete $with{start};
    my $hello = delete $with{hello};
    my %messages = (
        hello => sub {
            $hello->($_[0]) if $hello;
            send_line({ type => 'ready', graphs => { map { $_ => {} } keys %{ $_[0]{graphs} } }, slots => 100 });
        },
        ping => sub { send_line({ type => 'pong', id => $_[0]{id} }) },
        start => sub { my ($run) = @_; $runs{ $run->{run_id} } = $run; event($run, 'begun'); $start->($run) },
        cancel => sub { my $run = run_of($_[0]); end_run($run) if $run },
        drain => sub { },
        %with,
    );
    open IN, '<&=', 3 or die "3: $!\n";
    open OUT, '>&=', 4 or die "4: $!\n";
    while (my $line = <IN>) {
        my $message = $json->decode($line);
        $message->{length} = length $line;
        $messages{ $message->{type} }->($message);
        flush();
    }
    return;
}

1;
