# SPDX-License-Identifier: Apache-2.0
# Accounts with limits, and what is counted and measured of them:
#
#   use_accounts($session, $operator);    # of a server, of an operator
#   my ($account, $client) = account();
#   limit($account, threads => 3);
package AgentSQL::Accounts;

use strict;
use warnings;

use AgentSQL;
use AgentSQL::Outbox;
use Exporter 'import';

our @EXPORT_OK = qw(use_accounts account deployment limit kept_count counted_anew count_all measure measured);

my ($session, $operator);

sub use_accounts {
    ($session, $operator) = @_;
    return;
}

# An account with a deployment: (id, its client).
sub account {
    my $account = AgentSQL::uuid();
    $operator->call('create_account', $account, 'Shop');
    return ($account, deployment($account, 'shop'));
}

# A deployment of the account with a graph: its client.
sub deployment {
    my ($account, $name) = @_;
    my $id = $session->value("select agent.ensure_deployment('$name', '$account')");
    $session->query("select agent.save_graphs('$id', '[{\"graph_id\":\"agent\",\"assistant_id\":\"$AgentSQL::ASSISTANT\"}]')");
    return AgentSQL::Outbox->new($session, deployment => $id);
}

# Sets limits of the account; undef removes one.
sub limit {
    my ($account, %limits) = @_;
    my $limits = AgentSQL::encode([ map { { account_id => $account, name => $_, value => $limits{$_} } } sort keys %limits ]);
    $session->query('select * from agent.set_limits(' . AgentSQL::Session::literal($limits) . ', \'' . AgentSQL::uuid() . '\', 0)');
    return;
}

# The count of a name as it is kept; null for one that is not counted.
sub kept_count {
    my ($account, $name) = @_;
    return $session->value("select sum(value) from agent.account_counts where account_id = '$account' and name = '$name'");
}

# As it should be.
sub counted_anew {
    my ($account, $name) = @_;
    return $session->value($name eq 'threads' ? "select value from agent.count_next_threads('$account', null, null, 1000000)"
        : "select coalesce((select value from agent.count_used(array['$account'::uuid], '$name', null)), 0)");
}

# Counts the accounts that are due.
sub count_all {
    1 while $session->value('select agent.count_accounts()');
    return;
}

# The bytes of the last measure, and of one that is made now.
sub measured {
    my ($account) = @_;
    return $session->value("select bytes from agent.account_measures where account_id = '$account'");
}

sub measure {
    my ($account) = @_;
    $session->query("update agent.account_measures set due_at = now() where account_id = '$account'");
    1 while $session->value('select agent.measure_accounts()');
    return measured($account);
}

1;
