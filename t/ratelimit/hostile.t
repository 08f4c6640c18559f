# SPDX-License-Identifier: Apache-2.0
# Paths and requests made to evade limits: the limiter uses the path that httpd
# routes on, however it is written, and no request crashes a child.
use strict;
use warnings;
use AgentTest::Process;
use RateLimitTest;
use Test::More;

# Every path that httpd serves ends in the same location, whose log line has the
# path that was routed on.
my $CONF = <<'CONF';
RateLimitRegion us
RateLimitRule all * key=ip us=1000000/60
LogFormat "%{Referer}i %U" paths
CustomLog "${DIR}/logs/paths_log" paths
<Location />
    SetHandler ratelimit-status
</Location>
<VirtualHost *:${PORT_2}>
    AllowEncodedSlashes On
</VirtualHost>
CONF
my $server = RateLimitTest->new(config => $CONF);
my $keeping = RateLimitTest->new(config => "MergeSlashes Off\n$CONF");
$_->start for $server, $keeping;

sub paths_log {
    my ($where) = @_;
    open my $in, '<', $where->dir . '/logs/paths_log' or die "paths_log: $!";
    my %path = map { /\A(\d+) (.*)/s ? ($1 => $2) : () } <$in>;
    chomp %path;
    return \%path;
}

sub url_encode { my ($text) = @_; $text =~ s/([^\w\/])/sprintf '%%%02X', ord $1/ge; return $text }

# ---- the same path ----
srand 20_260;
my @pieces = ('/', '/', '/', 'runs', 'query', '.', '..', '%2e', '%2E', '%71', '%2f', '%2F',
    '%25', '%252e', ';x', '//', '/./', '/../', '%c3%a9', '\\', '%5c', '%20', '+', '~', '...',
    '%7e', ':', '@', '=', '&', '%0a', '%3f', '%23', "'", '*', '%2e%2e', '/%2e./');
my @paths = ('/', '/runs/query', '/..', '/a/..', '/a/../..', '/.', '/./', '/%2e%2e/x');
push @paths, '/' . join '', map { $pieces[ rand @pieces ] } 1 .. 1 + rand 9 for 1 .. 1500;

my $id = 0;
sub same_paths {
    my ($where, $title) = @_;
    my (%asked, @wrong);
    for my $path (@paths) {
        my $answer = $where->ask('GET', $path, { Referer => ++$id });
        $asked{$id} = $path if $answer->{status} == 200;
    }
    my $routed = paths_log($where);
    for my $number (grep { defined $routed->{$_} } sort { $a <=> $b } keys %asked) {
        my $query = $where->ask('GET', '/?path=' . url_encode($asked{$number}));
        # The limiter also merges slashes and removes one at the end.
        (my $expected = $routed->{$number}) =~ s{//+}{/}g;
        $expected =~ s{(?<=.)/\z}{};
        my $seen = $query->{json}{path};
        utf8::encode($seen);
        $expected =~ s/\\x([0-9a-f]{2})/chr hex $1/ge;
        $expected =~ s/\\n/\n/g;
        $expected =~ s/\\\\/\\/g;
        push @wrong, "$asked{$number}: $seen, httpd: $expected" if $seen ne $expected;
    }
    is join("\n", @wrong), '', $title;
    cmp_ok scalar(keys %asked), '>', 300, $title . ': ' . keys(%asked) . ' paths are compared';
    return;
}
same_paths($server, '3.12: rules are tested on the path that httpd routes on');
same_paths($server->second, '3.12: AllowEncodedSlashes On: rules are tested on the path that httpd routes on');
same_paths($keeping, '3.12: MergeSlashes Off: rules are tested on the path that httpd routes on');
same_paths($keeping->second, '3.12: with both directives rules are tested on the path that httpd routes on');

# ---- no way around ----
my $table = RateLimitTest->new(config => table() . "Redirect 204 /\n");
$table->start;
my @spellings = ('/runs/query', '/runs//query', '/runs/%71uery', '/runs/query/',
    '/x/../runs/query', '/api/v1/runs/query', '/api/v1/%72uns/./query', '/runs/query?',
    '/runs/query?a=1', '//runs/query//', '/runs/a/%2e%2e/query',
    'http://localhost/runs/query', '/api//v1/runs/query', '/%61pi/v1/runs/query');
my $key = next_key();
my $admitted = 0;
for my $path ((@spellings) x 10) {
    my $answer = $table->ask('POST', $path, { 'x-api-key' => $key, 'x-user-id' => "u$admitted",
        'X-Forwarded-For' => next_address() });
    $admitted++ if $answer->{status} == 204;
}
is $admitted, 15, 'all spellings of a path share a counter';

# ---- any bytes ----
my @before = httpd_children($table->httpd_pid);
my @methods = qw(GET POST get OPTIONS TRACE CONNECT FOO PATCH HEAD);
my @names = ('x-api-key', 'x-user-id', 'X-Forwarded-For', 'Content-Length',
    'Transfer-Encoding', 'Expect', 'Host', 'Connection', 'Upgrade');
sub bytes { return join '', map { chr rand 256 } 1 .. rand $_[0] }
sub one_of { return $_[ rand @_ ] }
my %statuses;
for (1 .. 600) {
    my $text = one_of(@methods) . ' ' . one_of('/', '/runs', '*', 'x:1', '') . bytes(30)
        . " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n";
    $text .= one_of(@names) . ': ' . bytes(one_of(3, 40, 9_000)) . "\r\n" for 1 .. rand 4;
    $statuses{ $table->exchange("$text\r\n" . bytes(200))->{status} }++;
}
ok !$statuses{500}, 'random bytes are never answered 500: '
    . join ' ', map { "$_ ($statuses{$_})" } sort keys %statuses;
is_deeply [ grep { !is_alive($_) } @before ], [], 'random bytes kill no child';

# ---- many keys in a small table ----
my $small = RateLimitTest->new(config => <<'CONF');
RateLimitTable 64
RateLimitRegion us
RateLimitRule api * key=api-key us=3/60
RateLimitRule ip  * key=ip      us=1000000/60
Redirect 204 /
CONF
$small->start;
my $steady = next_key();
$small->ask('GET', '/', { 'x-api-key' => $steady }) for 1 .. 3;
my $socket = $small->connection;
my %result = (admitted => 0, refused => 0, index => 0);
my $buffer = '';
for my $round (1 .. 50) {
    print {$socket} map { $small->request_text('GET', '/', { 'x-api-key' => next_key(),
        'X-Forwarded-For' => next_address() }) } 1 .. 40;
    $socket->flush;
    RateLimitTest::take_answer(\%result, $socket, \$buffer) for 1 .. 40;
}
close $socket;
cmp_ok $result{refused}, '>', 0, 'keys without a slot are refused by a shared counter';
cmp_ok $result{admitted}, '<=', 64 * 3 + 16 * 3, 'keys without a slot get no more than the shared counters admit';
is $small->ask('GET', '/', { 'x-api-key' => $steady })->{status}, 429,
    'a key keeps its slot in a full table';
is scalar(() = $small->error_log =~ /RLR0202: the table is full/g), 1,
    'a full table is logged once a minute';

done_testing;
