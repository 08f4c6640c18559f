# SPDX-License-Identifier: Apache-2.0
# Calls of a client and of a worker that concern webhooks.
package AgentSQL::Outbox;

use strict;
use warnings;
use parent 'AgentSQL::Play';

use Test::More;
use AgentSQL;

our $URL = 'https://hooks.example.com/x?y=1';

sub at { my ($self, $time) = @_; return $self->session->query("set agent.now = '$time'") }

sub cancel { my ($self, @arguments) = @_; return $self->session->call('cancel_run', $self->deployment, @arguments) }

sub run_with_webhook {
    my ($self, $thread, %more) = @_;
    return $self->run($thread, request => { input => { a => 1 }, webhook => $URL }, %more);
}

# A run that has ended, with its row in the outbox.
sub ended_run {
    my ($self) = @_;
    my $thread = $self->thread;
    my $run = $self->run_with_webhook($thread);
    $self->cancel($thread, $run, 'interrupt');
    return $run;
}

# Rows of the outbox as hashes.
sub outbox {
    my ($self) = @_;
    return map { AgentSQL::decode($_->[0]) }
        $self->session->query('select row_to_json(o) from agent.webhook_outbox o order by created_at, run_id');
}

# Removes the only row; its body decoded.
sub only_row {
    my ($self, $run) = @_;
    my @rows = $self->outbox;
    is scalar @rows, 1, 'the outbox has one row';
    is $rows[0]{run_id}, $run, 'the row is that of the run';
    $self->session->query('delete from agent.webhook_outbox');
    return { %{ $rows[0] }, body => AgentSQL::decode($rows[0]{body}) };
}

# A claimed webhook is [deployment, run, attempt, url, body]. deployments: to which `guaranteed` slots and
# `guaranteed_bytes` are guaranteed.
sub claim_webhooks {
    my ($self, $by, %with) = @_;
    return $self->session->query(sprintf "select * from agent.claim_webhooks(%d, %d, %d, %d, 30, '{%s}', %d, %d) order by run_id",
        $by, $with{limit} // 50, $with{free} // 100, $with{max_bytes} // 1_000_000, join(',', @{ $with{deployments} // [] }),
        $with{guaranteed} // 0, $with{guaranteed_bytes} // 0);
}

sub result {
    my ($delivery, $outcome, %more) = @_;
    return { d => $delivery->[0], r => $delivery->[1], n => $delivery->[2] + 0, o => $outcome,
        t => 'status 500', s => undef, %more };
}

# [run, outcome, next_sec] of each.
sub save_webhooks {
    my ($self, $by, @results) = @_;
    my $items = AgentSQL::Session::literal(AgentSQL::encode(\@results));
    return $self->session->query("select * from agent.save_webhooks($by, $items)");
}

1;
