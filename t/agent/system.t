# SPDX-License-Identifier: Apache-2.0
# GET /ok and GET /info: health and version; routes that do not exist.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Server;
use Test::More;

my $client = AgentTest::Client->new;

my $ok = $client->get('/ok');
is $ok->{status}, 200, 'GET /ok is 200';
is_deeply $ok->{json}, { ok => Cpanel::JSON::XS::true }, 'GET /ok returns {"ok":true}';
like $ok->{headers}{'content-type'}, qr{^application/json}, 'GET /ok is JSON';

my $checked = $client->get('/ok?check_db=1');
is $checked->{status}, 200, 'GET /ok?check_db=1 is 200 when the database is available';

my $info = $client->get('/info');
is $info->{status}, 200, 'GET /info is 200';
ok $info->{json}{version}, 'GET /info has the version';

subtest 'unknown operations: the detail names method and path' => sub {
    my $root = $client->get('/');
    is $root->{status}, 404, 'GET / is 404';
    like $root->{json}{detail}, qr{GET /ok and /info}, 'the detail of GET / names /ok and /info';
    is $client->post("/$_/search", {})->{json}{detail}, "This server has no POST /$_/search.",
        "POST /$_/search is named" for qw(threads assistants);
    my $state = $client->post('/threads/01900000-0000-7000-8000-000000000000/state', {});
    is $state->{status}, 405, 'POST of a state is 405';
    is $state->{json}{detail}, 'This server has no POST'
        . ' /threads/01900000-0000-7000-8000-000000000000/state, only GET, HEAD.',
        'the detail of a 405 names the methods that exist';
    is $client->get($_)->{json}{detail}, 'Not Found', 'a path of unsafe characters, or a long one, is not repeated in the detail'
        for '/%22%3Cx', '/' . 'x' x 200;
};

subtest 'routes: paths of the API are not looked up below DocumentRoot' => sub {
    my $server = AgentTest::Server->new;
    $server->start;
    my $folder = "$server->{dir}/htdocs/threads";
    mkdir $folder or die "$folder: $!\n";
    chmod 0, $folder or die "$folder: $!\n";
    my $to = AgentTest::Client->new(url => $server->url);
    is $to->post('/threads', {})->{status}, 200, 'a folder of the same name is ignored';
    is $to->get('/threads/x/y')->{json}{code}, 'not_found', 'an unreadable folder of the same name is ignored';
};

done_testing;
