# SPDX-License-Identifier: Apache-2.0
# Directives: valid and invalid configurations, inheritance, rules that can never
# match, and the table that `httpd -t -D DUMP_RATELIMIT` prints.
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

# conf/ratelimit_directives.conf with all examples enabled, after the table, which
# has a rule of the same name.
sub reference {
    my $text = slurp(root() . '/conf/ratelimit_directives.conf');
    $text =~ s{^#(?=RateLimit|Log|</?Location|    \w)}{}mg;
    $text =~ s/^RateLimitRule /RateLimitRule my-/m;
    # Any file with a first line.
    $text =~ s{^(RateLimitStorePasswordFile) .*}{"$1 " . root() . '/README.md'}me;
    # Whether hiredis has TLS depends on the system: group_tls.t has the directive.
    $text =~ s{^RateLimitStoreTLS .*\n}{}mg;
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
    "${BASE}RateLimitRule unit * key=ip us=600/1m eu=10/10s ap=30/1h sa=1/1d af=1/1MIN",
    "${BASE}RateLimitNewIdentities 100/1min", "${BASE}RateLimitOverride $HASH * 5/24h",
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
    [ 'RateLimitRule a /b key=ip us=15-10', 'RateLimitRule: a', 'COUNT/INTERVAL', q('15-10') ],
    [ 'RateLimitRule a /b key=ip us=1000001/10', 'RateLimitRule: a', '1 to 1000000', '1000001' ],
    [ 'RateLimitRule a /b key=ip', 'RateLimitRule: a', 'REGION=COUNT/INTERVAL', 'none' ],
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
    [ 'RateLimitNewIdentities 5', 'RateLimitNewIdentities', 'COUNT/INTERVAL', q('5') ],
    [ 'RateLimitExempt localhost', 'RateLimitExempt', 'ADDRESS', q('localhost') ],
    [ 'RateLimitExempt 10.0.0.0/33', 'RateLimitExempt', 'ADDRESS', q('10.0.0.0/33') ],
    [ 'RateLimitExempt sha256:12', 'RateLimitExempt', '32 hex digits', q('sha256:12') ],
    [ 'RateLimitOverride key all 1/1', 'RateLimitOverride', 'sha256:', q('key') ],
    [ "RateLimitOverride $HASH all 1/1", 'RateLimitOverride', 'key=api-key', q('all') ],
    [ "RateLimitOverride $HASH nobody 1/1", 'RateLimitOverride', 'key=api-key', q('nobody') ],
    [ 'RateLimitRule a /b key=ip us=15/500ms', 'RateLimitRule: a', '1 to 86400 seconds', q('15/500ms') ],
    [ 'RateLimitRule a /b key=ip us=15/2d', 'RateLimitRule: a', '1 to 86400 seconds', q('15/2d') ],
    [ 'RateLimitRule a /b key=ip us=15/10x', 'RateLimitRule: a', '10s, 1min, 1h, 1d', q('15/10x') ],
    [ 'RateLimitNewIdentities 5/0s', 'RateLimitNewIdentities', '1 to 86400 seconds', q('5/0s') ],
    [ "RateLimitOverride $HASH * 5/m", 'RateLimitOverride', 'COUNT/INTERVAL', q('5/m') ],
    [ "RateLimitOverride $HASH * 1", 'RateLimitOverride', 'COUNT/INTERVAL', q('1') ],
) {
    my ($line, @parts) = @{$bad};
    my ($ok, $output) = check("$BASE$line");
    my $title = $line =~ s/\s+/ /gr;
    ok !$ok, "refused: $title";
    like $output, qr/\Q$_\E/, "$title: the error contains $_" for @parts;
    like $output, qr/line \d+ of \S+httpd\.conf/, "$title: the error has file and line";
}
my ($ok, $output) = check($RULE);
ok !$ok, 'rules without a region are refused';
like $output, qr/RateLimitRegion: expected one of us eu, or RateLimitEngine Off, got none/,
    'rules without a region: the error names RateLimitRegion';
($ok, $output) = check(table() =~ s/^RateLimitRegion.*\n//mr);
like $output, qr/RateLimitRegion: expected one of us eu/, 'the shipped table chooses no region: no server enforces the wrong one';

sub many { return join '', $BASE, map { "RateLimitRule x$_ /x$_ key=ip us=1/1\n" } 1 .. $_[0] }
($ok) = check(many(1019));
ok $ok, '1024 rows are accepted';
($ok, $output) = check(many(1020));
ok !$ok, '1025 rows are refused by httpd -t';
like $output, qr/RateLimitRule: expected at most 1024 rules.*, and 4 more for each region, got 1025/,
    '1025 rows: the error has their number';

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
is variables($inherit, '10.1.0.1'), 'exempt', 'RateLimitExempt of the server applies to it';
is variables($inherit->second, '10.1.0.2'), 'exempt', 'RateLimitExempt of the server is inherited by virtual hosts';
is variables($inherit->second, '10.2.0.1'), 'exempt', 'RateLimitExempt of a virtual host is added to the inherited ones';
is variables($inherit, '10.2.0.2'), 'admitted', 'RateLimitExempt of a virtual host does not apply to the server';

my $minute = RateLimitTest->new(config => <<'CONF');
RateLimitRegion us
RateLimitRule all * key=ip us=100/1min
<VirtualHost *:${PORT_2}>
    Redirect 204 /
</VirtualHost>
CONF
$minute->start;
is $minute->second->ask('GET', '/')->{headers}{'ratelimit-policy'}, '"all";q=100;w=60',
    'an interval with a unit is inherited by virtual hosts';

# ---- many virtual hosts ----
my $disabled = RateLimitTest->new(config => <<'CONF' . join '', map { <<"HOST" } qw(first second first));
RateLimitRegion us
RateLimitRule first  * key=ip us=100/60
RateLimitRule second * key=ip us=100/60
CONF
<VirtualHost *:\${PORT}>
    ServerName no-$_.test
    RateLimitEngine Off $_
</VirtualHost>
HOST
$disabled->start;
is_deeply [ map { rule_of($disabled->ask('GET', '/', { Host => "no-$_.test" })) } qw(first second first) ],
    [ qw(second first second) ], 'virtual hosts may disable different rules';

SKIP: {
    skip 'a sanitizer needs more memory', 1 if is_sanitized();
    $server->configure(join '', "RateLimitRegion us\n",
        (map { "RateLimitRule r$_ /" . chr(ord('a') + $_ % 26) . "/$_ key=api-key us=9/9\n" } 1 .. 500),
        map { "<VirtualHost *:\${PORT}>\nServerName h$_.test\n</VirtualHost>\n" } 1 .. 200);
    # httpd alone needs a quarter of it.
    is system('/bin/sh', '-c', 'ulimit -v 250000; exec "$@" 2>/dev/null', 'sh',
        httpd(), '-t', '-f', $server->{conf}), 0, '500 rules in 200 virtual hosts fit into 250 MB';
}

# ---- rules that can never match ----
like $inherit->error_log, qr/warn\].*RLR0104: line \d+ of \S+: RateLimitRule deep can never match in region us: all of its requests match all first\b/,
    'a rule that can never match is logged with the earlier rule';
($ok, $output) = check(<<'CONF');
RateLimitRegion us
RateLimitRule a "POST /x" /y  key=ip      us=1/1
RateLimitRule b "POST /x/y" /z key=api-key us=1/1
RateLimitRule c /y /z/w       key=api-key us=1/1
RateLimitRule d /y            key=ip      eu=1/1
RateLimitRule e /z            key=user+ip us=1/1
CONF
ok $ok, 'rules that can never match are accepted';
like $output, qr{RLR0105: line \d+ of \S+: RateLimitRule b: the match 'POST /x/y' can never decide in region us: all of its requests match a first$}m,
    'a match that can never decide is logged';
like $output, qr/RLR0104: .*RateLimitRule c can never match in region us: all of its requests match a b first$/m,
    'a rule none of whose matches can decide is logged';
unlike $output, qr/RateLimitRule [de]/, 'a rule of another region or key is not logged';
($ok, $output) = check(table());
unlike $output, qr/RLR/, 'all rules of the shipped table can match';
(my $published = slurp(root() . '/conf/ratelimit_regional.conf'))
    =~ s/^(RateLimitRule\s+runs-stats[^\n]*\n)(.*?)(?=^RateLimitRule\s+public\s)/$2$1/ms;
($ok, $output) = check("${published}RateLimitRegion us\n");
like $output, qr/RateLimitRule runs-stats can never match in region us: .* match default-api first$/m,
    '3.2: in the published order runs-stats can never match';
($ok, $output) = check("$RULE<VirtualHost *:\${PORT}>\nRateLimitRegion us\n</VirtualHost>");
like $output, qr/RLR0106: 1 server without RateLimitRegion: nothing is limited at localhost/,
    'a server without a region is logged';

# ---- DUMP_RATELIMIT ----
$server->configure(table());
(my $status, $output) = $server->control('-t', '-D', 'DUMP_RATELIMIT');
is $status, 0, 'DUMP_RATELIMIT: httpd -t succeeds';
is scalar(() = $output =~ /^\| (?!Match).* \|$/mg), 29, 'DUMP_RATELIMIT: all 29 rows';
like $output, qr{^\| POST /runs/query\s+\| api-key\s+\| 15 / 10\s+\| 15 / 10\s+\| Run query \(API\)\s+\| run-query-api\s+\|$}m,
    'DUMP_RATELIMIT: a row as published';
my ($difference) = $output =~ /^us -> eu\n(.*?)\n  (?=\d)/ms;
is $difference, join("\n",
    '  runs-stats                 1 / 10 -> 20 / 10',
    '  commits-api            10000 / 60 -> 2000 / 60',
    '  commits-user           10000 / 60 -> 2000 / 60'),
    'DUMP_RATELIMIT: the differences between the regions';
my @wide = map { '/' . $_ x 30 } 'a' .. 'f';
$server->configure("RateLimitRegion us\nRateLimitRule wide @wide key=ip us=1/1\n");
($status, $output) = $server->control('-t', '-D', 'DUMP_RATELIMIT');
my %widths = map { length() => 1 } $output =~ /^(\|.*\|)$/mg;
is keys %widths, 1, 'DUMP_RATELIMIT: all lines of the table have the same width';
($status, $output) = $server->control('-t');
unlike $output, qr/Match/, 'httpd -t alone does not print the table';

done_testing;
