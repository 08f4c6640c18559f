# SPDX-License-Identifier: Apache-2.0
# The example applications in Python and JavaScript, served through httpd beside
# built-in graphs, with both published SDKs.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use SdkTest;
use Test::More;

my ($modules, $python) = (SdkTest::node_modules(), SdkTest::python());

for my $language (qw(python javascript)) {
    my $directory = SdkTest::application($language);
    subtest $language => sub {
        plan skip_all => "the user of runners may not read $directory" if !SdkTest::is_readable($directory);
        my $sdk = SdkTest->serve({ example => $directory }, ['shop']);
        $sdk->run_script(node => 'javascript.mjs', $modules, 'shop');
        $sdk->run_script($python => 'python_sdk.py', 'shop');
        my $input = { messages => [ { role => 'user', content => 'price of a kettle' } ] };
        my $thread = $sdk->client->new_thread;
        $sdk->client->post("/threads/$thread/runs/wait", { assistant_id => 'agent', input => $input });
        is $sdk->client->post("/threads/$thread/runs/wait", { assistant_id => 'shop', input => $input })->{json}{__error__}{error},
            'ForeignStateError', 'the state of a built-in graph is not continued';
        like $sdk->client->post("/threads/$thread/state", { values => $input })->{json}{detail}, qr/ForeignStateError/, 'the state of a built-in graph is not updated';
        my $own = $sdk->client->new_thread;
        $sdk->client->post("/threads/$own/runs/wait", { assistant_id => 'shop', input => $input });
        my $before = $sdk->client->get("/threads/$own/state")->{json};
        is $sdk->client->post("/threads/$own/runs/wait", { assistant_id => 'agent', input => $input })->{json}{__error__}{error},
            'ForeignStateError', 'a built-in graph does not continue the state of an application';
        is_deeply $sdk->client->get("/threads/$own/state")->{json}, $before, 'a refused run leaves the state of an application unchanged';
        $sdk->finish;
    };
}
done_testing;
