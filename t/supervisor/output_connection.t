# SPDX-License-Identifier: Apache-2.0
# The output connection is lost, and the database accepts no other one.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Wait;
use Test::More;
use TestSupervisor;

my $pg = start_cluster();
my $CONNECTIONS = "from pg_stat_activity where application_name = 'agent supervisor'";

# Ends the connection that has sent nothing after the first statement of its session.
sub end_output_connection {
    return sql("select count(pg_terminate_backend(pid)) $CONNECTIONS and query like '%agent.database_region()%'");
}

my $sv = TestSupervisor->start($pg, runner => scripted_runner('request_runner.pl'), lease_sec => 120);
$sv->wait_ready;
wait_for('other statements on two connections', sub {
    sql("select count(*) $CONNECTIONS and state = 'idle' and query not like '%agent.database_region()%'") == 2
});
ok wait_for('three connections', sub { sql("select count(*) $CONNECTIONS") == 3 }), 'the output connection is open before there is output for it';

sql('alter role agent connection limit 2');
is end_output_connection(), 1, 'the output connection ends';
$sv->wait_log(qr/AGT0310: .*too many connections.* \(output connection\)/);
pass 'the log has its name';
my @runs = map { create_run({ do => 'write', lengths => [ 100_000, 100_000, 100 ] }) } 1 .. 3;
$sv->wake;
wait_all_final('success', @runs);
is sql("select count(*) $CONNECTIONS"), 2, 'two connections are enough';

sql('alter role agent connection limit -1');
$sv->wait_log(qr/AGT0312: .* \(output connection\)/);
pass 'the output connection is made again';
wait_status($sv->start_run({ do => 'write', lengths => [100_000] }), 'success');
is $sv->stop, 0, 'the supervisor exits with status 0';

done_testing;
