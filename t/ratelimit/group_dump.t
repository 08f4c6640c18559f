# SPDX-License-Identifier: Apache-2.0
# DUMP_RATELIMIT of hosts that share a store: the rules of each, and their differences.
use strict;
use warnings;
use AgentTest::Wait;
use RateLimitTest;
use GroupTest;
use Test::More;

my $region = GroupTest->new(hosts => 2, rules => <<'CONF')->begin;
RateLimitRule ten  =/ten  key=api-key us=10/10
RateLimitRule hour =/hour key=api-key us=7/1h eu=8/1h
CONF
my @hosts = @{ $region->{hosts} };

sub dump_of { return ($_[0]->control('-t', '-D', 'DUMP_RATELIMIT'))[1] }

my $output = wait_for('the rules of both', sub {
    my $text = dump_of($hosts[1]);
    return $text =~ /(?:the same rules.*){2}/s && $text;
});
like $output, qr/^RateLimitStore, for 2 hosts\n(?:  \S+, \d+ s ago: the same rules\n){2}/m, 'all hosts have the same rules';
unlike $output, qr/WARNING/, 'while all hosts have the same rules there is no warning';
my @names = map { my $port = $_->{port}; $output =~ m{^  (\S+:$port), \d+ s ago}m } @hosts;
is scalar @names, 2, 'two hosts on one machine have different names, with their ports';

my $rules = <<"CONF";
RateLimitRegion us
RateLimitStore redis://127.0.0.1:$region->{redis}{port}
RateLimitStoreHosts 2
CONF
$hosts[1]->configure(<<"CONF");
RateLimitRule ten  =/ten  key=api-key us=20/10
RateLimitRule hour =/hour key=api-key us=7/1h eu=8/1h
$rules
CONF
$output = dump_of($hosts[1]);
like $output, qr{WARNING: other rules, and all hosts need the same\n    there: ten =/ten api-key us=10/10\n    here: ten =/ten api-key us=20/10\n(?!    )},
    'a rule that differs is shown, as it is there and here';
$hosts[1]->configure(<<"CONF");
RateLimitRule hour =/hour key=api-key us=7/1h eu=8/1h
RateLimitRule ten  =/ten  key=api-key us=10/10
$rules
CONF
like dump_of($hosts[1]), qr/WARNING: other rules.*\n    the order differs\n/, 'another order is a difference, too';

my $table = <<"CONF";
RateLimitRule ten  =/ten  key=api-key us=10/10
RateLimitRule hour =/hour key=api-key us=7/1h eu=8/1h
$rules
CONF
my $digest = 'sha256:' . 'ab' x 16;
for (
    [ "RateLimitOverride $digest ten 20/10",     "RateLimitOverride $digest ten 20/10" ],
    [ "RateLimitOverride $digest * 20/10",       "RateLimitOverride $digest * 20/10" ],
    [ 'RateLimitNewIdentities 50/60',            'RateLimitNewIdentities 50/60' ],
    [ 'RateLimitStripPrefix /v1',                'RateLimitRegion us RateLimitStripPrefix /v1' ],
    [ 'RateLimitKeyPattern ^k',                  'RateLimitRegion us RateLimitKeyPattern ^k' ],
    [ "RateLimitExempt 10.0.0.0/8 $digest",      "RateLimitRegion us RateLimitExempt 10.0.0.0/8 $digest" ],
    [ 'RateLimitScope Host',                     qr/RateLimitRegion us RateLimitScope Host \(\S+:\d+\)/ ],
    [ 'RateLimitIPv6Prefix 56',                  'RateLimitRegion us RateLimitIPv6Prefix 56' ],
    [ 'RateLimitEngine DryRun',                  'RateLimitRegion us RateLimitEngine DryRun' ],
    [ 'RateLimitEngine Off ten',                 'RateLimitRegion us RateLimitEngine Off ten' ],
    [ 'RateLimitHeadAsGet On',                   'RateLimitRegion us RateLimitHeadAsGet On' ],
    [ 'AllowEncodedSlashes On',                  'RateLimitRegion us AllowEncodedSlashes On' ],
    [ 'MergeSlashes Off',                        'RateLimitRegion us MergeSlashes Off' ],
) {
    my ($line, $expected) = @{$_};
    $hosts[1]->configure("$table$line\n");
    my $pattern = ref $expected ? $expected : quotemeta $expected;
    like dump_of($hosts[1]), qr/WARNING: other rules, and all hosts need the same\n(?:    there: RateLimitRegion us\n)?    here: $pattern\n(?!    )/,
        "$line on one host is a difference";
}
for my $line ('RateLimitStripPrefix None', 'RateLimitIPv6Prefix 64', 'RateLimitEngine On', 'RateLimitHeaders Off') {
    $hosts[1]->configure("$table$line\n");
    unlike dump_of($hosts[1]), qr/WARNING/, "$line, a default or without effect on what is counted, does not count as a difference";
}
$hosts[1]->configure("${table}RateLimitIPv6Prefix 56\n");
like dump_of($hosts[1]), qr/^  \Q$names[1]\E, \d+ s ago: this host, which has other rules until it is reloaded\n/m,
    'the rules of this host from before a reload are named as such';
$hosts[1]->control('-k', 'graceful');
wait_for('the rules of the reloaded host', sub { dump_of($hosts[0]) =~ /^  \Q$names[1]\E, .* other rules/m });
pass 'a host sends its rules at once when it is reloaded';

$hosts[0]->stop;
like dump_of($hosts[1]), qr/^  1 of 2 hosts have not sent their rules/m, 'a host that has left is not listed';

$region->{redis}->stop;
my ($status, $text) = $hosts[1]->control('-t', '-D', 'DUMP_RATELIMIT');
like $text, qr/^  WARNING: the store does not answer: connect: /m, 'a store that is away is a warning';
is $status, 0, 'a store that is away is not an error of the configuration';

done_testing;
