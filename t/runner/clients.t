# SPDX-License-Identifier: Apache-2.0
# The model test server is compatible with the vendors' published clients. Installs
# them below .build, with the versions and checksums of package-lock.json, and runs
# vendor-clients.js.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Env qw(root slurp);
use Digest::SHA qw(sha256_hex);
use File::Copy qw(copy);
use File::Path qw(make_path);
use ModelServer;

my $folder = root() . '/.build/model-clients';
my $lock = sha256_hex(slurp("$FindBin::Bin/package-lock.json"));
install() if slurp("$folder/installed") ne $lock;
my $server = ModelServer->new;
open STDERR, '>', '/dev/null' if !$ENV{HARNESS_IS_VERBOSE};
my $status = system 'node', "$FindBin::Bin/vendor-clients.js", $folder, $server->url;
exit($status ? 1 : 0);

sub install {
    make_path($folder);
    for my $file (qw(package.json package-lock.json)) {
        copy("$FindBin::Bin/$file", "$folder/$file") or die "$file: $!\n";
    }
    my $output = qx(cd '$folder' && npm ci --ignore-scripts --no-audit --no-fund 2>&1);
    if ($?) {
        $output =~ s/^/# /gm;
        print "1..1\nnot ok 1 - npm installs the vendors' clients\n$output";
        exit 1;
    }
    open my $out, '>', "$folder/installed" or die "$folder/installed: $!\n";
    print {$out} $lock;
    close $out or die "$folder/installed: $!\n";
    return;
}
