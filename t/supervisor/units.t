# SPDX-License-Identifier: Apache-2.0
# Builds and runs units.c, which speaks TAP itself.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use TestSupervisor;

build('units');
exec program('units') or die "units: $!\n";
