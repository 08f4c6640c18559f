# SPDX-License-Identifier: Apache-2.0
# From a folder to a conversation, as a user does it: agentctl build, the lines that it
# prints in httpd.conf, and an application that stops, asks and goes on. The folders are
# laid out as the public templates are; the packages are pinned, and in a cache.
use strict;
use warnings;
use AgentTest::Env qw(is_counted is_sanitized root slurp write_file);
use FindBin;
use lib $FindBin::Bin;
use SdkTest;
use Test::More;

plan skip_all => 'package managers are the same in every build' if is_sanitized() || is_counted();
my %graph_of = (python => 'shop', javascript => 'shop-js');
my $examples = root() . '/conf/quickstart/examples';
my ($top, $reason) = SdkTest::workshop();
plan skip_all => $reason if !$top;
for my $language (sort keys %graph_of) {
    SdkTest::command('cp', '-R', "$examples/$language", $top);
    my $file = "$top/$language/langgraph.json";
    # Both in one server.
    write_file($file, slurp($file) =~ s/"shop":/"$graph_of{$language}":/r);
}
my $conf = '';
for my $language (sort keys %graph_of) {
    my ($status, $output) = SdkTest::build($top, $language);
    is $status, 0, "$language: agentctl builds the folder" or BAIL_OUT($output);
    like $output, qr/^graph $graph_of{$language} \(\S+\): Finds products/m, "$language: it names the graph";
    like $output, qr/^AgentApplication \S+ "?$top\/$language"?$/m, "$language: it prints the line for httpd.conf";
    $conf .= join '', $output =~ /^(Agent\w+ .*\n)/mg;
}
my $sdk = SdkTest->new(config => $conf);
for my $language (sort keys %graph_of) {
    my $said = qx($^X '$examples/../talk.pl' @{[ $sdk->url ]} '$top' demo approval $graph_of{$language} 2>&1);
    is $?, 0, "$language: the application stops, asks and goes on" or diag $said;
    like $said, qr/__interrupt__: .*Order 2 x cup/, "$language: it asks";
    like $said, qr/status: \S*interrupted/, "$language: its thread waits for the answer";
    like $said, qr/^    ai: .*\bordered\b/im, "$language: with the answer it goes on";
}
$sdk->finish;
