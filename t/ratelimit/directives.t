# SPDX-License-Identifier: Apache-2.0
# Directives: what is accepted, the sentence for what is not, rules that can
# never match, and the table as `httpd -t -D DUMP_RATELIMIT` prints it.
use strict;
use warnings;
use AgentTest::Env qw(httpd is_sanitized root slurp);
use RateLimitTest;
use Test::More;

my $RULE = "RateLimitRule all * key=ip us=1/1 eu=2/1\n";
my $BASE = "RateLimitRegion us\n$RULE";
my $HASH = 'sha256:' . '0' x 32;

my $server = RateLimitTest->new;
sub check {
    my ($config) = @_;
    $server->configure($config);
    return $server->check_config;
}

# conf/ratelimit_directives.conf with everything in it switched on, behind the
# table, which has a rule of that name.
sub reference {
    my $text = slurp(root() . '/conf/ratelimit_directives.conf');
    $text =~ s{^#(?=RateLimit|Log|</?Location|    \w)}{}mg;
    $text =~ s/^RateLimitRule /RateLimitRule my-/m;
    return $text;
}

# ---- good ----
for my $good (
    '', table(), $BASE, table() . reference(),
    "${BASE}RateLimitRule more \"POST =/a/{uuid}\" */b \"GET */c*\" key=api-key us=1000000/86400",
    "${BASE}RateLimitTable 16", "${BASE}RateLimitTable 1000000",
    "${BASE}RateLimitEngine Off", "${BASE}RateLimitEngine dryrun all",
    "${BASE}RateLimitHeaders off", "${BASE}RateLimitHeadAsGet On",
    "${BASE}RateLimitIPv6Prefix 128", "${BASE}RateLimitStripPrefix none",
    "${BASE}RateLimitStripPrefix /api/v1", "${BASE}RateLimitScope host",
    "${BASE}RateLimitKeyPattern ^lsv2_", "${BASE}RateLimitNewIdentities 100/60",
    "${BASE}RateLimitNewIdentities Off",
    "${BASE}RateLimitExempt 127.0.0.1 10.0.0.0/8 ::1 2001:db8::/32 $HASH sha256:" . 'A' x 64,
    "RateLimitRegion us\nRateLimitRule k * key=api-key us=1/1\nRateLimitOverride $HASH k 5/1",
    "${BASE}RateLimitOverride $HASH * 5/1",
    "$RULE<VirtualHost *:\${PORT}>\nRateLimitRegion eu\n</VirtualHost>",
    "${RULE}RateLimitEngine Off",
) {
    my ($ok, $output) = check($good);
    ok $ok, 'accepted: ' . ($good =~ /(\S[^\n]*)\n?\z/ ? substr $1, 0, 70 : 'nothing')
        or diag $output;
}

# ---- bad: directive, what was expected, what was given ----
for my $bad (
    [ 'RateLimitRule', 'RateLimitRule', 'a name of letters', q('') ],
    [ 'RateLimitRule a b key=ip us=1/1', 'RateLimitRule: a', 'begins with /', q('b') ],
    [ 'RateLimitRule a /b key=cookie us=1/1', 'RateLimitRule: a', 'key=api-key', q('key=cookie') ],
    [ 'RateLimitRule a /b key=ip us=15-10', 'RateLimitRule: a', 'COUNT/SECONDS', q('15-10') ],
    [ 'RateLimitRule a /b key=ip us=1000001/10', 'RateLimitRule: a', '1 to 1000000', '1000001' ],
    [ 'RateLimitRule a /b key=ip', 'RateLimitRule: a', 'REGION=COUNT/SECONDS', 'none' ],
    [ $RULE, 'RateLimitRule', "each rule's name once", q('all') ],
    [ "<VirtualHost *:1>\n$RULE</VirtualHost>", 'RateLimitRule', 'cannot occur', 'VirtualHost' ],
    [ 'RateLimitTable 15', 'RateLimitTable', 'from 16 to', q('15') ],
    [ 'RateLimitTable many', 'RateLimitTable', 'whole number', q('many') ],
    [ 'RateLimitRegion u/s', 'RateLimitRegion', 'letters, digits', q('u/s') ],
    [ 'RateLimitRegion mars', 'RateLimitRegion', '(us eu)', q('mars') ],
    [ 'RateLimitEngine Maybe', 'RateLimitEngine', 'On, Off or DryRun', q('Maybe') ],
    [ 'RateLimitEngine', 'RateLimitEngine', 'On, Off or DryRun', q('') ],
    [ 'RateLimitEngine On nobody', 'RateLimitEngine', 'name of a RateLimitRule', q('nobody') ],
    [ 'RateLimitHeaders Perhaps', 'RateLimitHeaders', 'On or Off', '' ],
    [ 'RateLimitHeadAsGet 1', 'RateLimitHeadAsGet', 'On or Off', '' ],
    [ 'RateLimitIPv6Prefix 129', 'RateLimitIPv6Prefix', 'from 1 to 128', q('129') ],
    [ 'RateLimitStripPrefix api', 'RateLimitStripPrefix', 'begins with /', q('api') ],
    [ 'RateLimitStripPrefix /api/', 'RateLimitStripPrefix', 'does not end', q('/api/') ],
    [ 'RateLimitScope World', 'RateLimitScope', 'Region or Host', q('World') ],
    [ 'RateLimitKeyPattern (', 'RateLimitKeyPattern', 'regular expression', q{'('} ],
    [ 'RateLimitNewIdentities 5', 'RateLimitNewIdentities', 'COUNT/SECONDS', q('5') ],
    [ 'RateLimitExempt localhost', 'RateLimitExempt', 'ADDRESS', q('localhost') ],
    [ 'RateLimitExempt 10.0.0.0/33', 'RateLimitExempt', 'ADDRESS', q('10.0.0.0/33') ],
    [ 'RateLimitExempt sha256:12', 'RateLimitExempt', '32 hex digits', q('sha256:12') ],
    [ 'RateLimitOverride key all 1/1', 'RateLimitOverride', 'sha256:', q('key') ],
    [ "RateLimitOverride $HASH all 1/1", 'RateLimitOverride', 'key=api-key', q('all') ],
    [ "RateLimitOverride $HASH nobody 1/1", 'RateLimitOverride', 'key=api-key', q('nobody') ],
    [ "RateLimitOverride $HASH * 1", 'RateLimitOverride', 'COUNT/SECONDS', q('1') ],
) {
    my ($line, @parts) = @{$bad};
    my ($ok, $output) = check("$BASE$line");
    ok !$ok, 'refused: ' . $line =~ tr/\n/ /r;
    like $output, qr/\Q$_\E/, "and says $_" for @parts;
    like $output, qr/line \d+ of \S+httpd\.conf/, 'and where';
}
my ($ok, $output) = check($RULE);
ok !$ok, 'rules need a region';
like $output, qr/RateLimitRegion: expected one of us eu, or RateLimitEngine Off, got none/,
    'and the start says so';

sub many { return join '', $BASE, map { "RateLimitRule x$_ /x$_ key=ip us=1/1\n" } 1 .. $_[0] }
($ok) = check(many(1020));
ok $ok, '1024 rows are a table';
($ok, $output) = check(many(1021));
ok !$ok, 'one more is said beforehand, not at a restart';
like $output, qr/RateLimitRule: expected at most 1024 rules.*, and 3 more for each region, got 1025/,
    'with their number';

# ---- inherited ----
my $inherit = RateLimitTest->new(config => <<"CONF");
RateLimitRegion us
RateLimitRule all  *     key=ip us=100/60
RateLimitRule deep =/b   key=ip us=100/60
RateLimitExempt 10.1.0.0/16
RateLimitHeaders Off
Redirect 204 /
<VirtualHost *:\${PORT_2}>
    RateLimitExempt 10.2.0.0/16
    Redirect 204 /
    <Location />
        Require all granted
    </Location>
</VirtualHost>
CONF
$inherit->start;
sub variables {
    my ($where, $address) = @_;
    $where->ask('GET', '/', { 'X-Forwarded-For' => $address });
    return ($inherit->access_log(qr/^\Q$address\E/m) =~ /^\Q$address\E 204 \/ (\S+)/m)[0];
}
is variables($inherit, '10.1.0.1'), 'exempt', 'an exemption of the server';
is variables($inherit->second, '10.1.0.2'), 'exempt', 'holds in its virtual hosts';
is variables($inherit->second, '10.2.0.1'), 'exempt', 'beside their own';
is variables($inherit, '10.2.0.2'), 'admitted', 'which hold only there';

# ---- many servers ----
my $apart = RateLimitTest->new(config => <<'CONF' . join '', map { <<"HOST" } qw(first second first));
RateLimitRegion us
RateLimitRule first  * key=ip us=100/60
RateLimitRule second * key=ip us=100/60
CONF
<VirtualHost *:\${PORT}>
    ServerName no-$_.test
    RateLimitEngine Off $_
</VirtualHost>
HOST
$apart->start;
is_deeply [ map { rule_of($apart->ask('GET', '/', { Host => "no-$_.test" })) } qw(first second first) ],
    [ qw(second first second) ], 'servers have their own rules';

SKIP: {
    skip 'a sanitizer takes more by itself', 1 if is_sanitized();
    $server->configure(join '', "RateLimitRegion us\n",
        (map { "RateLimitRule r$_ /" . chr(ord('a') + $_ % 26) . "/$_ key=api-key us=9/9\n" } 1 .. 500),
        map { "<VirtualHost *:\${PORT}>\nServerName h$_.test\n</VirtualHost>\n" } 1 .. 200);
    # Of which httpd alone takes a quarter.
    is system('/bin/sh', '-c', 'ulimit -v 250000; exec "$@" 2>/dev/null', 'sh',
        httpd(), '-t', '-f', $server->{conf}), 0, 'or share them: 500 rules in 200 servers fit into 250 MB';
}

# ---- rules that can never match ----
like $inherit->error_log, qr/warn\].*RLR0104: line \d+ of \S+: RateLimitRule deep can never match in region us: all of its requests are taken before by all\b/,
    'the start names a rule that can never match, and the one before it';
($ok, $output) = check(<<'CONF');
RateLimitRegion us
RateLimitRule a "POST /x" /y  key=ip      us=1/1
RateLimitRule b "POST /x/y" /z key=api-key us=1/1
RateLimitRule c /y /z/w       key=api-key us=1/1
RateLimitRule d /y            key=ip      eu=1/1
RateLimitRule e /z            key=user+ip us=1/1
CONF
ok $ok, 'they do not stop it';
like $output, qr{RLR0105: line \d+ of \S+: RateLimitRule b: the match 'POST /x/y' can never decide in region us: all of its requests are taken by a$}m,
    'a pattern that never decides is named';
like $output, qr/RLR0104: .*RateLimitRule c can never match in region us: all of its requests are taken before by a b$/m,
    'a rule whose patterns all never do';
unlike $output, qr/RateLimitRule [de]/, 'but not one of another region or key';
($ok, $output) = check(table());
unlike $output, qr/RLR/, 'the shipped table has no such rule';
(my $published = slurp(root() . '/conf/ratelimit_regional.conf'))
    =~ s/^(RateLimitRule\s+runs-stats[^\n]*\n)(.*?)(?=^RateLimitRule\s+public\s)/$2$1/ms;
($ok, $output) = check($published);
like $output, qr/RateLimitRule runs-stats can never match in region us: .* by default-api$/m,
    '3.2: in the published order it had one';
($ok, $output) = check("$RULE<VirtualHost *:\${PORT}>\nRateLimitRegion us\n</VirtualHost>");
like $output, qr/RLR0106: 1 servers have no RateLimitRegion and limit nothing: localhost/,
    'a server that was forgotten is named';

# ---- DUMP_RATELIMIT ----
$server->configure(table());
(my $status, $output) = $server->control('-t', '-D', 'DUMP_RATELIMIT');
is $status, 0, 'the table can be printed';
is scalar(() = $output =~ /^\| (?!Match).* \|$/mg), 29, 'all 29 rows';
like $output, qr{^\| POST /runs/query\s+\| api-key\s+\| 15 / 10\s+\| 15 / 10\s+\| Run query \(API\)\s+\| run-query-api\s+\|$}m,
    'as they are published';
my ($difference) = $output =~ /^us -> eu\n(.*?)\n  (?=\d)/ms;
is $difference, join("\n",
    '  runs-stats                 1 / 10 -> 20 / 10',
    '  commits-api            10000 / 60 -> 2000 / 60',
    '  commits-user           10000 / 60 -> 2000 / 60'),
    'with what differs between the regions';
($status, $output) = $server->control('-t');
unlike $output, qr/Match/, 'only when it is asked for';

done_testing;
