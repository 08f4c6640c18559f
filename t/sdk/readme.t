# SPDX-License-Identifier: Apache-2.0
# The examples of the READMEs, with the address of the test server.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Env qw(root slurp write_file);
use SdkTest;
use Test::More;

my $python = SdkTest::python();
my $modules = SdkTest::node_modules();
# The graph of the quick start.
my $sdk = SdkTest->new(config => <<'CONF');
<AgentGraph builtin>
    AgentModel demo
    AgentTool clock builtin
</AgentGraph>
CONF

# Writes the README's first example of that language to a file.
sub example {
    my ($language, $file) = @_;
    my ($code) = slurp(root() . '/README.md') =~ /^```$language\n(.*?)^```$/ms;
    my $url = $sdk->url;
    is $code =~ s{http://127\.0\.0\.1:8123}{$url}g, 1,
        "README: it has an example in $language for the address of the quick start";
    return write_file($file, $code);
}

my $folder = $modules =~ s{/node_modules\z}{}r;
# Imports are resolved from the folder of the file.
my $python_file = example(python => "$folder/readme.$$.py");
my $js_file = example(js => "$folder/readme.$$.mjs");
my $time = qr/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00/;
like SdkTest::command($python, $python_file), qr/\AThe tool clock answered: $time\n\z/,
    'README: the example in Python prints the result of the tool';
like SdkTest::command(node => $js_file), qr/\AI am the demo model: .* You said "Hello" \(1 words\)/,
    'README: the example in JavaScript prints the answer of the model';

# The commands after each `$ ` of the first console example of a README.
sub commands {
    my ($readme) = @_;
    my ($console) = slurp(root() . "/$readme") =~ /^```console\n(.*?)^```$/ms;
    my $url = $sdk->url;
    $console =~ s{http://127\.0\.0\.1:8123}{$url}g;
    return join '', $console =~ /^\$ (.*\n)/mg;
}

like SdkTest::command(sh => -c => commands('mod_agent/README.md')),
    qr/\Aevent: metadata\n.*You said \\"Hello\\"/s,
    'mod_agent/README.md: the commands create a thread and stream a run';
unlink $python_file, $js_file;
$sdk->finish;
