# SPDX-License-Identifier: Apache-2.0
# From a folder to a conversation, as a user does it: agentctl build, the lines that it
# prints in httpd.conf, and an application that stops, asks and goes on. The folders are
# laid out as the public templates are; the packages are pinned, and in a cache.
use strict;
use warnings;
use AgentTest::Env qw(build_dir is_counted is_root is_sanitized root slurp write_file);
use AgentTest::Packages qw(install_once);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use FindBin;
use lib $FindBin::Bin;
use SdkTest;
use Test::More;

plan skip_all => 'package managers are the same in every build' if is_sanitized() || is_counted();
my %graph_of = (python => 'shop', javascript => 'shop-js');
my $examples = root() . '/conf/quickstart/examples';
my $user = is_root() ? 'nobody' : getpwuid $>;

# The packages for pip and npm: wheels, and a cache of npm.
sub wheels {
    my @lists = ("$FindBin::Bin/../runner/fixtures/python.txt", "$FindBin::Bin/build-system.txt");
    return install_once(root() . '/.build/sdk/wheels', \@lists, sub {
        SdkTest::command(SdkTest::python(), qw(-m pip download --quiet --disable-pip-version-check --no-deps --require-hashes
            --only-binary :all: --dest), $_[0], map { ('-r', $_) } @lists);
    });
}

sub npm_cache {
    my @sources = ("$examples/javascript", root() . '/mod_agent/runners/node');
    return install_once(root() . '/.build/sdk/npm-cache', [ map { "$_/package-lock.json" } @sources ], sub {
        for my $source (@sources) {
            my $folder = tempdir(CLEANUP => 1);
            SdkTest::command('cp', "$source/package.json", "$source/package-lock.json", $folder);
            SdkTest::command('npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', $folder, '--cache', "$_[0]/cache");
        }
    });
}

my $top = tempdir('/tmp/agent-test-built.XXXXXX', CLEANUP => 1);
chmod 0755, $top;
umask 0022;
SdkTest::command('cp', '-R', wheels(), npm_cache() . '/cache', $top);
# The user who builds may not be able to enter the checkout.
SdkTest::command('cp', '-R', build_dir() . '/agentctl', build_dir() . '/runners', $top);
for my $language (sort keys %graph_of) {
    SdkTest::command('cp', '-R', "$examples/$language", $top);
    my $file = "$top/$language/langgraph.json";
    # Both in one server.
    write_file($file, slurp($file) =~ s/"shop":/"$graph_of{$language}":/r);
}
SdkTest::command('chown', '-R', $user, map { "$top/$_" } 'cache', keys %graph_of) if is_root();

local @ENV{qw(PIP_NO_INDEX PIP_FIND_LINKS PIP_NO_CACHE_DIR npm_config_cache npm_config_offline)} = (1, "$top/wheels", 1, "$top/cache", 'true');
(my $node = SdkTest::node()) =~ s{/[^/]+\z}{};
my $path = "$node:/usr/bin:/bin";
my $conf = '';
for my $language (sort keys %graph_of) {
    my $output = qx(PATH='$path' '$top/agentctl' build --runners '$top/runners' '$top/$language' 2>&1);
    is $?, 0, "$language: agentctl builds the folder" or BAIL_OUT($output);
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
