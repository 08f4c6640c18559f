# SPDX-License-Identifier: Apache-2.0
# The directives of the store: good, bad, and a store that cannot be used.
use strict;
use warnings;
use AgentTest::Env qw(slurp write_file);
use AgentTest::Wait;
use File::Temp qw(tempdir);
use RateLimitTest;
use GroupTest::OldRedis;
use GroupTest::Redis;
use Test::More;

my $rule = <<'CONF';
RateLimitRule ten  =/ten  key=api-key us=10/10
RateLimitRule hour =/hour key=api-key us=10/1h
RateLimitRegion us
CONF
my $store = "RateLimitStore redis://127.0.0.1:1\nRateLimitStoreHosts 4\n";

sub check {
    my ($lines) = @_;
    my (undef, $output) = RateLimitTest->new(config => $rule . $lines)->check_config;
    return $output;
}

like check($store), qr/Syntax OK/, 'a store and the number of its hosts';

# Of the interval, W is six seconds and a 64th more, at most one.
my $long = <<'CONF';
RateLimitRule day  =/day  key=api-key us=10/1d
RateLimitRule near =/near key=api-key us=10/3590
RateLimitRule less =/less key=api-key us=10/3570
CONF
my @warnings = check("$long$store") =~ /RLR0125: line \d+ of \S+: RateLimitRule (\S+): a host that is cut off from the store never admits its share/g;
is "@warnings", 'hour day near', 'rules whose share a host can never admit are named at start';
like check("$long${store}RateLimitStoreShareTime 1d\n"), qr/RLR0125: .* RateLimitRule day: (?!.*RLR0125)/s,
    'a longer RateLimitStoreShareTime lets hosts admit the shares of all rules but those of a day';
my $override = 'RateLimitOverride sha256:' . '0' x 32;
like check("$long$store$override ten 20/2h\n"),
    qr/RLR0125: .* RateLimitRule ten with a RateLimitOverride: a host that is cut off .* than the interval, 7200 s, .* RateLimitRule day:/s,
    'a rule with an override whose share a host can never admit is named at start';
unlike check("$long$store$override ten 20/1min\n"), qr/RLR0125: .* RateLimitRule ten/, 'an override with a share is not named';
for ('RateLimitStoreFailure closed', 'RateLimitStoreFailure open') {
    unlike check("$long$store$_\n"), qr/RLR0125/, "$_: no share, and no warning of rules without one";
}
unlike check($long), qr/RLR0125/, 'without a store there is no warning of shares';
for ('redis://[::1]:7000/2', 'redis+sentinel://a.example,10.0.0.1:26380,[::1]:1/region/3', 'redis+cluster://a.example:7000,b.example') {
    like check("RateLimitStore $_\nRateLimitStoreHosts 4\n"), qr/Syntax OK/, "$_ is an address";
}
like check("RateLimitStore redis://127.0.0.1:1\n"), qr/RateLimitStoreHosts: expected the number of hosts/,
    'a store needs the number of hosts';
for (
    [ 'RateLimitStore http://127.0.0.1' => qr/expected redis:/ ],
    [ 'RateLimitStore valkey://127.0.0.1' => qr{expected redis://, redis\+sentinel:// or redis\+cluster://, or rediss} ],
    [ 'RateLimitStore redis://::1' => qr{expected redis://HOST:PORT/DB, got 'redis://::1'} ],
    [ 'RateLimitStore redis://127.0.0.1/x' => qr/expected redis:/ ],
    (map { [ "RateLimitStore redis://127.0.0.1:$_" => qr/expected redis:/ ] } 0, 65536, 99999),
    [ 'RateLimitStore redis://:secret@127.0.0.1' => qr/without a password \(RateLimitStorePasswordFile has it\), got 'redis:\/\/\.\.\./ ],
    [ 'RateLimitStore redis://127.0.0.1,127.0.0.2' => qr/expected redis:/ ],
    [ 'RateLimitStore redis+sentinel://127.0.0.1' => qr/expected redis\+sentinel:\/\/HOST:PORT,...\/NAME\/DB, got/ ],
    [ 'RateLimitStore redis+sentinel://127.0.0.1,/region' => qr/expected redis\+sentinel:/ ],
    [ 'RateLimitStore redis+sentinel://127.0.0.1/region/x' => qr/expected redis\+sentinel:/ ],
    [ 'RateLimitStore redis+cluster://127.0.0.1/1' => qr/expected redis\+cluster:\/\/HOST:PORT,..., got/ ],
    [ 'RateLimitStore redis+cluster://' . join(',', map { "10.0.0.$_" } 1 .. 17) => qr/expected redis\+cluster:/ ],
    [ 'RateLimitStoreHosts 0' => qr/expected a whole number from 1 to 500, got '0'/ ],
    [ 'RateLimitStoreHosts 501' => qr/expected a whole number from 1 to 500/ ],
    [ 'RateLimitStoreTimeout 2s' => qr/expected a time from 1ms to 1s \(seconds without a unit\), got '2s'/ ],
    [ 'RateLimitStoreFailure perhaps' => qr/expected local, closed or open, got 'perhaps'/ ],
    [ 'RateLimitStoreShareTime 2d' => qr/expected a time from 1s to 1d \(seconds without a unit\), got '2d'/ ],
    [ 'RateLimitStorePasswordFile /nonexistent' => qr{RateLimitStorePasswordFile: expected a file with a password.*'/nonexistent': No such file} ],
    [ 'RateLimitStorePasswordFile /' => qr{RateLimitStorePasswordFile: .*'/': Is a directory} ],
    [ 'RateLimitStorePasswordFile /dev/null' => qr{RateLimitStorePasswordFile: .*'/dev/null': the line is empty} ],
    [ 'RateLimitStorePasswordFile ' . write_file(tempdir('/tmp/agent-test-password.XXXXXX', CLEANUP => 1) . '/long', 'x' x 513) => qr{/long': a line has more than 512} ],
    (map { [ $_ => qr/\Q@{[ (split)[0] ]}\E: expected RateLimitStore with the address of the store, got none/ ] }
        'RateLimitStoreHosts 4', 'RateLimitStoreTimeout 5ms', 'RateLimitStoreFailure local', 'RateLimitStoreShareTime 1h'),
    [ "<VirtualHost *:1>\nRateLimitStoreHosts 4\n</VirtualHost>" => qr/RateLimitStoreHosts cannot occur within <VirtualHost>/ ],
) {
    my ($line, $error) = @{$_};
    like check("$line\n"), $error, "$line is refused, and the error says why";
}

# --- Passwords -------------------------------------------------------------------------

my $redis = GroupTest::Redis->new(password => 'good');
sub start {
    my ($password, $more) = @_;
    my $server = RateLimitTest->new(config => '');
    my $file = write_file($server->dir . '/conf/password', "$password\n");
    $server->configure($rule . <<"CONF" . ($more // ''));
RateLimitStore redis://127.0.0.1:$redis->{port}/3
RateLimitStoreHosts 1
RateLimitStoreTimeout 1s
RateLimitStorePasswordFile $file
CONF
    $server->start;
    return $server;
}

my $good = start('good');
wait_for('a grant', sub { $good->ask('GET', '/ten', { 'x-api-key' => 'first' })->{status} != 429 });
pass 'with the right password the store is used';

my $bad = start('bad');
wait_for('the log', sub { slurp($bad->dir . '/logs/error_log') =~ /RLR0115: .*AUTH: / });
is $bad->ask('GET', '/ten', { 'x-api-key' => 'first' })->{status}, 429, 'with a wrong password the store is away: nothing is admitted before a share';
unlike slurp($bad->dir . '/logs/error_log'), qr/RLR0115: .*\bbad\b/, 'the log does not show the password';

my $open = start('bad', "RateLimitStoreFailure open\n");
my %count = $open->flood(30, 'GET', '/hour', { 'x-api-key' => 'third' });
is $count{admitted}, 10, 'open: the host counts by itself';

my $fifth = start('good');
wait_for('the log', sub { slurp($fifth->dir . '/logs/error_log') =~ /RLR0121: the store refuses this host: as many hosts as RateLimitStoreHosts use it/ });
is $fifth->ask('GET', '/ten', { 'x-api-key' => 'first' })->{status}, 429, 'a host more than RateLimitStoreHosts admits nothing';

my $folder = tempdir('/tmp/agent-test-sentinel.XXXXXX', CLEANUP => 1);
my $watched = GroupTest::Redis->new(password => 'good');
my $sentinel = GroupTest::Redis->new(password => 'good', dir => $folder, options => ['--sentinel'],
    config => write_file("$folder/sentinel.conf", "sentinel monitor region 127.0.0.1 $watched->{port} 1\nsentinel auth-pass region good\n"));
my $by_sentinel = RateLimitTest->new(config => '');
my $password = write_file($by_sentinel->dir . '/conf/password', "good\n");
$by_sentinel->configure($rule . <<"CONF");
RateLimitStore redis+sentinel://127.0.0.1:$sentinel->{port}/region/2
RateLimitStoreHosts 1
RateLimitStoreTimeout 1s
RateLimitStorePasswordFile $password
CONF
$by_sentinel->start;
wait_for('a grant', sub { $by_sentinel->ask('GET', '/ten', { 'x-api-key' => 'first' })->{status} != 429 });
pass 'Sentinel gets the password too';

# --- A user of the server's access control list ------------------------------------------

my $acl = GroupTest::Redis->new;
$acl->run('ACL', 'SETUSER', 'limiter', 'on', '>mine', '~rlr:*',
    map { "+$_" } qw(evalsha script|load info time echo hget hmget hset hdel hrandfield unlink pexpire));
my $as_user = RateLimitTest->new(config => '');
my $credentials = write_file($as_user->dir . '/conf/password', "mine\nlimiter\n");
$as_user->configure($rule . <<"CONF");
RateLimitStore redis://127.0.0.1:$acl->{port}
RateLimitStoreHosts 1
RateLimitStoreTimeout 1s
RateLimitStorePasswordFile $credentials
CONF
$acl->run('ACL', 'SETUSER', 'default', 'off');
$as_user->start;
wait_for('a grant', sub { $as_user->ask('GET', '/ten', { 'x-api-key' => 'first' })->{status} != 429 });
pass 'a user with the documented rights is enough';

# --- An old server -----------------------------------------------------------------------

my $old = GroupTest::OldRedis->new('6.0.16');
my $with_old = RateLimitTest->new(config => $rule . "RateLimitStore redis://127.0.0.1:$old->{port}\nRateLimitStoreHosts 1\n");
$with_old->start;
wait_for('the log', sub { slurp($with_old->dir . '/logs/error_log') =~ /RLR0115: .*expected Redis 6\.2 or later, got: 6\.0\.16/ });
is $with_old->ask('GET', '/ten', { 'x-api-key' => 'first' })->{status}, 429, 'a server older than Redis 6.2 is not used';

done_testing;
