# SPDX-License-Identifier: Apache-2.0
# What was built: one exported symbol, hardened, nothing that the loader must
# resolve while requests wait.
use strict;
use warnings;
use AgentTest::Env qw(build_dir);
use Test::More;

my $module = build_dir() . '/mod_agent.so';
my $runner = build_dir() . '/agent-runner';

my @symbols = map { (split)[-1] } qx(nm -D --defined-only $module);
is_deeply \@symbols, ['agent_module'], 'mod_agent.so exports one symbol';

for my $file ($module, $runner) {
    my ($name) = $file =~ m{([^/]+)\z};
    my $headers = qx(readelf -W -l -d $file);
    like $headers, qr/GNU_RELRO/, "$name: relocations are read-only";
    like $headers, qr/\(FLAGS(?:_1)?\).*(?:BIND_)?NOW/, "$name: bound at load";
    unlike $headers, qr/GNU_STACK.*RWE/, "$name: the stack is not executable";
    unlike $headers, qr/R(?:UN)?PATH/, "$name: no search path inside";
    my $imports = qx(nm -D --undefined-only $file);
    like $imports, qr/__stack_chk_fail/, "$name: stack protector";
    like $imports, qr/__\w+_chk\b/, "$name: fortified";
}
like qx(readelf -h $runner), qr/Type:\s+DYN/, 'agent-runner: position independent';

done_testing;
