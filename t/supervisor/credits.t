# SPDX-License-Identifier: Apache-2.0
# Builds and runs credits.c, which speaks TAP itself.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use TestSupervisor;

build('credits');
exec program('credits') or die "credits: $!\n";
