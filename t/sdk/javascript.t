# SPDX-License-Identifier: Apache-2.0
# The published JavaScript SDK against the server through httpd.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use SdkTest;

my $modules = SdkTest::node_modules();
my $sdk = SdkTest->new;
$sdk->run_script(node => 'javascript.mjs', $modules);
$sdk->finish;
