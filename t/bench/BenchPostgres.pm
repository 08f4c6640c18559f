# SPDX-License-Identifier: Apache-2.0
# The cluster of the benchmark: as the tests have it, but as durable as a real
# one, because a commit that is not flushed costs nothing like a commit.
package BenchPostgres;
use strict;
use warnings;
use parent 'AgentTest::Postgres';

use AgentTest::Env qw(server_user);

# The rest is PostgreSQL's default: a figure that needs tuning says so in its
# name, and ours do not.
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
