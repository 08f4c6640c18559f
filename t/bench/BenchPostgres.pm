# SPDX-License-Identifier: Apache-2.0
# The cluster of the benchmark: that of the tests, but durable, because a commit
# without a flush costs much less.
package BenchPostgres;
use strict;
use warnings;
use parent 'AgentTest::Postgres';

use AgentTest::Env qw(server_user);

# Other settings are PostgreSQL's defaults.
my @SETTINGS = qw(fsync=on full_page_writes=on synchronous_commit=on
    max_connections=200 log_statement=none);

sub start {
    my ($self) = @_;
    my @settings = (@SETTINGS, split ' ', $ENV{BENCH_POSTGRES} // '');
    local $ENV{SERVER_USER}     = server_user();
    local $ENV{CLUSTER_OPTIONS} = join ' ', map { "-c $_" } @settings;
    return $self->command('start', $self->{dir});
}

1;
