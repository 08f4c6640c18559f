# SPDX-License-Identifier: Apache-2.0
# Chats with graphs of one node: what a late turn costs, to an early one.
package BenchApplicationChats;
use strict;
use warnings;
use BenchApplications qw(serve bare_ms runner_pids new_thread create_and_join @LANGUAGES);
use BenchHttp;
use BenchProcess qw(cpu_ms);
use BenchRuns qw(timed_ms);
use Exporter 'import';

our @EXPORT_OK = qw(measure_chats);

# The early turns are 6 to 15, and the late ones the last ten.
my @EARLY = (5, 10);

# Bytes of the rows of a thread.
sub thread_bytes {
    my ($server, $thread) = @_;
    my @tables = qw(checkpoints checkpoint_snapshots checkpoint_writes checkpoint_blobs checkpoint_items checkpoint_tasks runs);
    my %of = ((map { $_ => "x.thread_id = '$thread'" } @tables),
        run_events => "x.run_id in (select r.run_id from agent.runs r where r.thread_id = '$thread')");
    return $server->sql('select ' . join ' + ', map {
        "(select coalesce(sum(pg_column_size(x.*)), 0) from agent.$_ x where $of{$_})" } sort keys %of);
}

# {bytes, ms, cpu} of each of ten turns.
sub ten_turns {
    my ($server, $client, $thread, $language) = @_;
    my @runners = runner_pids($language);
    my ($bytes, $cpu) = (thread_bytes($server, $thread), cpu_ms(@runners));
    my $ms = timed_ms(sub { create_and_join($client, $thread, $language) for 1 .. 10 });
    return { bytes => (thread_bytes($server, $thread) - $bytes) / 10, ms => $ms / 10,
        cpu => (cpu_ms(@runners) - $cpu) / 10 };
}

sub chat {
    my ($server, $language, $turns) = @_;
    my $client = BenchHttp->new($server->port);
    my $thread = new_thread($client);
    create_and_join($client, $thread, $language) for 1 .. $EARLY[0];
    my $early = ten_turns($server, $client, $thread, $language);
    create_and_join($client, $thread, $language) for 1 .. $turns - $EARLY[0] - 20;
    return { early => $early, late => ten_turns($server, $client, $thread, $language) };
}

sub ratio {
    my ($format, $chat, $name, $unit) = @_;
    return sprintf "%.2f ($format to $format)", $chat->{late}{$name} / $chat->{early}{$name},
        map { $chat->{$_}{$name} / $unit } qw(late early);
}

# The table.
sub measure_chats {
    my ($applications, $plan) = @_;
    my $server = serve($applications);
    my (@heads, @bytes, @ms, @cpu, @growth);
    for my $language (@LANGUAGES) {
        # Warm: the library's code and PostgreSQL's plans.
        chat($server, $language, 100);
        for my $turns (@{ $plan->{turns} }) {
            my $chat = chat($server, $language, $turns);
            my ($tenth, $last) = bare_ms($applications->{$language}, 'chat', $turns);
            push @heads, "$language, $turns turns";
            push @bytes, ratio('%.1f KB', $chat, 'bytes', 1024);
            push @ms, ratio('%.1f ms', $chat, 'ms', 1);
            push @cpu, ratio('%.1f ms', $chat, 'cpu', 1);
            push @growth, sprintf '%.2f', $chat->{late}{cpu} / $chat->{early}{cpu} / ($last / $tenth);
        }
    }
    $server->stop;
    return join '', map { join(' | ', '|', @{$_}) =~ s/\A\| \| /| /r . " |\n" }
        [ '', @heads ], [ map { '---' } 0 .. @heads ],
        [ 'bytes stored by a turn, last to tenth (aim 1.2)', @bytes ],
        [ 'create -> join, last to tenth', @ms ],
        [ 'processor time of the runner, last to tenth', @cpu ],
        [ '... to the growth of the bare library (aim 1.2)', @growth ];
}

1;
