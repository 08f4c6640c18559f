# SPDX-License-Identifier: Apache-2.0
# The published Python SDK against the server through httpd.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use SdkTest;

my $python = SdkTest::python();
my $sdk = SdkTest->new;
$sdk->run_script($python => 'python_sdk.py');
$sdk->finish;
