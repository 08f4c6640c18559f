# SPDX-License-Identifier: Apache-2.0
# The built modules: one exported symbol, hardening, all symbols resolved at load.
use strict;
use warnings;
use AgentTest::Env qw(build_dir);
use Test::More;

my $runner = build_dir() . '/agent-runner';
my @modules = glob build_dir() . '/mod_*.so';
ok scalar @modules, 'the build has modules';

for my $file (@modules) {
    my ($name) = $file =~ m{mod_(\w+)\.so\z};
    my @symbols = map { (split)[-1] } qx(nm -D --defined-only $file);
    is_deeply \@symbols, ["${name}_module"], "mod_$name.so exports one symbol";
}

for my $file (@modules, $runner) {
    my ($name) = $file =~ m{([^/]+)\z};
    my $headers = qx(readelf -W -l -d $file);
    like $headers, qr/GNU_RELRO/, "$name: relocations are read-only";
    like $headers, qr/\(FLAGS(?:_1)?\).*(?:BIND_)?NOW/, "$name: bound at load";
    unlike $headers, qr/GNU_STACK.*RWE/, "$name: the stack is not executable";
    unlike $headers, qr/R(?:UN)?PATH/, "$name: no RPATH or RUNPATH";
    my $imports = qx(nm -D --undefined-only $file);
    like $imports, qr/__stack_chk_fail/, "$name: built with the stack protector";
    like $imports, qr/__\w+_chk\b/, "$name: built with _FORTIFY_SOURCE";
}
like qx(readelf -h $runner), qr/Type:\s+DYN/, 'agent-runner: position independent';

done_testing;
