# SPDX-License-Identifier: Apache-2.0
# A graceful restart of the server under streams that SDKs read.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use SdkTest;

my $modules = SdkTest::node_modules();
my $python = SdkTest::python();
my $sdk;
$sdk = SdkTest->new(on_ready => sub { $sdk->server->graceful });
$sdk->run_script(node => 'javascript.mjs', $modules, 'restart');
$sdk->run_script($python => 'python_sdk.py', 'restart');
$sdk->finish;
