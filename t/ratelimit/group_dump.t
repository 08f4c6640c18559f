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

$hosts[0]->stop;
like dump_of($hosts[1]), qr/^  1 of 2 hosts have not sent their rules/m, 'a host that has left is not listed';

$region->{redis}->stop;
my ($status, $text) = $hosts[1]->control('-t', '-D', 'DUMP_RATELIMIT');
like $text, qr/^  WARNING: the store does not answer: connect: /m, 'a store that is away is a warning';
is $status, 0, 'a store that is away is not an error of the configuration';

done_testing;
