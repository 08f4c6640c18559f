# SPDX-License-Identifier: Apache-2.0
# Executes an application of this folder through httpd and PostgreSQL: the graph `suite`
# of a module, whose result is the list of the tests that it has made.
package CheckpointerTest;
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Env qw(build_dir root write_file);
use AgentTest::Server;
use Cpanel::JSON::XS;
use Exporter 'import';
use File::Copy qw(copy);
use File::Temp qw(tempdir);

our @EXPORT_OK = qw(results_of);

# results_of(files => [the module, another], links => {name => what it is in the application},
#     settings => {of langgraph.json}, directives => text): a list of what the suite says of each test
sub results_of {
    my (%args) = @_;
    my $directory = tempdir('/tmp/agent-test-checkpointer.XXXXXX', CLEANUP => 1);
    chmod 0755, $directory or die "$directory: $!\n";
    for my $file (@{ $args{files} }) {
        copy(root() . "/t/agent/checkpointers/$file", "$directory/$file") or die "$file: $!\n";
    }
    for my $name (keys %{ $args{links} // {} }) {
        symlink $args{links}{$name}, "$directory/$name" or die "symlink: $!\n";
    }
    write_file("$directory/langgraph.json", encode_json({ dependencies => ['.'], %{ $args{settings} // {} },
        graphs => { map { $_ => "./$args{files}[0]:$_" } qw(suite thread) } }));
    my $server = AgentTest::Server->new(config => <<"CONF");
AgentRunner "@{[ build_dir() ]}/agent-runner"
@{[ $args{directives} // '' ]}
AgentApplication suites $directory
<Location "/">
    SetHandler agent
</Location>
CONF
    $server->start;
    # As long as the suite takes.
    my $client = AgentTest::Client->new(url => $server->url, timeout => 3600);
    my $run = $client->create_run($client->new_thread, undef, assistant_id => 'suite', input => { url => $server->url });
    return @{ $client->join_run($run)->{results} // [] };
}

1;
