# SPDX-License-Identifier: Apache-2.0
# The examples of the READMEs, run as they stand there; only the address differs.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Env qw(root slurp);
use SdkTest;
use Test::More;

my $python = SdkTest::python();
my $modules = SdkTest::node_modules();
my $sdk = SdkTest->new;

# Writes the README's first example of that language to a file.
sub example {
    my ($language, $file) = @_;
    my ($code) = slurp(root() . '/README.md') =~ /^```$language\n(.*?)^```$/ms;
    my $url = $sdk->url;
    is $code =~ s{http://127\.0\.0\.1:8123}{$url}g, 1,
        "the README has an example in $language for the quick start's address";
    open my $out, '>', $file or die "$file: $!\n";
    print {$out} $code;
    close $out or die "$file: $!\n";
    return $file;
}

my $folder = $modules =~ s{/node_modules\z}{}r;
# Modules are found from where the file is.
my $python_file = example(python => "$folder/readme.$$.py");
my $js_file = example(js => "$folder/readme.$$.mjs");
my $time = qr/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00/;
like SdkTest::command($python, $python_file), qr/\AThe tool clock answered: $time\n\z/,
    'the one in Python prints what it is there for';
like SdkTest::command(node => $js_file), qr/\AI am the demo model: .* You said "Hello" \(1 words\)/,
    'so does the one in JavaScript';

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
    "the commands of mod_agent's README create a thread and stream a run";
unlink $python_file, $js_file;
$sdk->finish;
