# SPDX-License-Identifier: Apache-2.0
# A wall clock of httpd's host that is set back by an hour revives no key that the child has verified before.
use strict;
use warnings;
use AgentTest::ApiKey;
use AgentTest::Client;
use AgentTest::Conf qw(demo_graph key_location one_child);
use AgentTest::Database;
use AgentTest::Env qw(is_sanitized root write_file);
use AgentTest::Postgres;
use AgentTest::Server;
use AgentTest::Wait;
use File::Temp qw(tempdir);
use HTTP::Date qw(str2time);
use Test::More;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

plan skip_all => 'httpd is preloaded with a sanitizer' if is_sanitized();

my $UUID = '01900000-0000-7000-8000-000000000000';
my $dir = tempdir(CLEANUP => 1);
chmod 0755, $dir or die "$dir: $!\n";
my ($library, $flag) = map { "$dir/$_" } qw(shift_clock.so back);
system($ENV{CC} // 'cc', '-shared', '-fPIC', '-o', $library, root() . '/t/agent/shift_clock.c', '-ldl') == 0 or die "cc failed\n";

my $postgres = AgentTest::Postgres->new;
local $ENV{PGHOST} = $postgres->host;
my $account = create_account();
my $server = AgentTest::Server->new(database => $postgres->conninfo,
    config => join '', one_child(8), demo_graph(), "AgentDeployment shop account=$account\n", key_location("Require agent-account $account"));
{
    local @ENV{qw(LD_PRELOAD AGENT_TEST_SHIFT_CLOCK)} = ($library, $flag);
    $server->start;
}
my $client = AgentTest::Client->new(url => $server->url);

sub try_key {
    my ($key) = @_;
    my $answer = $client->get("/threads/$UUID", undef, { 'x-api-key' => $key });
    return ("$answer->{status} $answer->{json}{code}", str2time($answer->{headers}{date}));
}

my $ADMITTED = '404 thread_not_found';
my ($revoked, $expiring, $valid) = (create_key($account), create_key($account, lifetime => '1500 ms'), create_key($account));
my @seen = map { (try_key($_))[0] } $revoked, $expiring, $valid;
is $seen[0], $ADMITTED, 'clock: a key is admitted before it is revoked';
is $seen[2], $ADMITTED, 'clock: so is one that stays valid';
# Under load it may have expired before.
diag 'the key had expired before its first request' if $seen[1] ne $ADMITTED;

write_file($flag, '');
revoke_key($revoked);
my $revoked_at = clock_gettime(CLOCK_MONOTONIC);
my ($outcome, $date) = try_key($valid);
is $outcome, $ADMITTED, 'clock: a valid key is admitted when the clock has gone back';
cmp_ok abs($date + 3600 - time), '<', 600, 'clock: that of httpd has gone back by an hour';
wait_for('2 s to pass', sub { clock_gettime(CLOCK_MONOTONIC) >= $revoked_at + 2 });
is +(try_key($revoked))[0], '401 unknown_key', 'clock: a key that was revoked since is refused after 2 s';
is +(try_key($expiring))[0], '401 unknown_key', 'clock: a key that has expired since is refused';
is +(try_key($valid))[0], $ADMITTED, 'clock: the valid one is still admitted';
unlink $flag;
is +(try_key($revoked))[0], '401 unknown_key', 'clock: when the clock is right again, the revoked key is refused';
is +(try_key($expiring))[0], '401 unknown_key', 'clock: when the clock is right again, the expired key is refused';

undef $server;
done_testing;
