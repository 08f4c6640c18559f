# SPDX-License-Identifier: Apache-2.0
# Applications that are laid out as the public templates are: a line of configuration
# serves each.
use strict;
use warnings;
use File::Temp qw(tempdir);
use FindBin;
use lib $FindBin::Bin;
use SdkTest;
use Test::More;

my @languages = qw(python javascript);
my $folder = tempdir('agent-test-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $folder;
system('cp', '-R', "$FindBin::Bin/templates/.", $folder) == 0 or die "cp failed\n";
for my $language (@languages) {
    # With the packages of the example.
    my $packages = SdkTest::application($language);
    plan skip_all => "the user of runners may not read $packages" if !SdkTest::is_readable($packages);
    SdkTest::link_packages($packages, "$folder/$language");
}
my $sdk = SdkTest->serve({ map { $_ => "$folder/$_" } @languages }, [ map { "$_-made" } @languages ]);
$sdk->run_script(SdkTest::python(), 'python_sdk.py', 'templates');
$sdk->finish;
