# SPDX-License-Identifier: Apache-2.0
# Applications that are laid out as the public templates are: `agentctl build` installs
# their packages, and the line that it prints serves each.
use strict;
use warnings;
use AgentTest::Env qw(is_counted is_sanitized root slurp write_file);
use Cpanel::JSON::XS;
use File::Temp qw(tempdir);
use FindBin;
use lib $FindBin::Bin;
use SdkTest;
use Test::More;

my @languages = qw(python javascript);
# The graphs of the new project, of which one keeps its name.
my %new_of = (python => 'agent', javascript => 'javascript-new');

sub rename_graph {
    my ($folder) = @_;
    my $file = "$folder/javascript/langgraph.json";
    return write_file($file, slurp($file) =~ s/"agent":/"$new_of{javascript}":/r);
}

# With the packages of the examples, as agentctl leaves them: package managers are the
# same in every build.
sub link_applications {
    my $folder = tempdir('agent-test-XXXXXX', TMPDIR => 1, CLEANUP => 1);
    chmod 0755, $folder;
    system('cp', '-R', "$FindBin::Bin/templates/.", $folder) == 0 or die "cp failed\n";
    for my $language (@languages) {
        my $packages = SdkTest::application($language);
        plan skip_all => "the user of runners may not read $packages" if !SdkTest::is_readable($packages);
        SdkTest::link_packages($packages, "$folder/$language");
    }
    rename_graph($folder);
    return join '', map { "AgentApplication $_ $folder/$_\n" } @languages;
}

# The template pins nothing: with the lock file of the example, which has the same packages.
sub lock_packages {
    my ($folder) = @_;
    my $json = Cpanel::JSON::XS->new->utf8->canonical;
    my $lock = $json->decode(slurp(root() . '/conf/quickstart/examples/javascript/package-lock.json'));
    my $package = $json->decode(slurp("$folder/package.json"));
    @{$lock}{qw(name version)} = @{$package}{qw(name version)};
    $lock->{packages}{''} = { map { $_ => $package->{$_} } qw(name version license dependencies) };
    return write_file("$folder/package-lock.json", $json->encode($lock));
}

sub build_applications {
    my ($top, $reason) = SdkTest::workshop();
    plan skip_all => $reason if !$top;
    my $conf = '';
    for my $language (@languages) {
        SdkTest::command('cp', '-R', "$FindBin::Bin/templates/$language", $top);
    }
    lock_packages("$top/javascript");
    rename_graph($top);
    for my $language (@languages) {
        my ($status, $output) = SdkTest::build($top, $language);
        is $status, 0, "$language: agentctl builds the templates" or BAIL_OUT($output);
        is scalar(() = $output =~ /^graph (?:$new_of{$language}|$language-(?:memory|react|made)) /mg), 4, "$language: it names their graphs";
        my ($line, @others) = $output =~ /^(Agent\w+ .*\n)/mg;
        is $line, "AgentApplication $language \"$top/$language\"\n", "$language: it prints the line for httpd.conf";
        is_deeply [ grep { !/^AgentNodeProgram / } @others ], [], "$language: it needs no other, except where Node is";
        $conf .= join '', $line, @others;
    }
    return $conf;
}

my $is_linked = is_sanitized() || is_counted();
my $conf = $is_linked ? link_applications() : build_applications();
my $sdk = SdkTest->new(has_graph => 0, config => $is_linked ? $conf . 'AgentNodeProgram "' . SdkTest::node() . "\"\n" : $conf);
$sdk->wait_reports(map { ($new_of{$_}, "$_-made", "$_-react") } @languages);
$sdk->run_script(SdkTest::python(), 'python_sdk.py', 'templates');
$sdk->finish;
