# SPDX-License-Identifier: Apache-2.0
# GET /ok and GET /info: is the server there, and what is it.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Server;
use Test::More;

my $client = AgentTest::Client->new;

my $ok = $client->get('/ok');
is $ok->{status}, 200, 'GET /ok is answered 200';
is_deeply $ok->{json}, { ok => Cpanel::JSON::XS::true }, 'GET /ok says ok';
like $ok->{headers}{'content-type'}, qr{^application/json}, 'as JSON';

my $checked = $client->get('/ok?check_db=1');
is $checked->{status}, 200, 'GET /ok?check_db=1 reaches the database';

my $info = $client->get('/info');
is $info->{status}, 200, 'GET /info is answered 200';
ok $info->{json}{version}, 'GET /info names the version';

subtest 'what the server does not have is named' => sub {
    my $root = $client->get('/');
    is $root->{status}, 404, 'GET / is 404: the API has no page there';
    like $root->{json}{detail}, qr{GET /ok and /info}, 'but addresses that a browser can open';
    is $client->post('/threads/search', {})->{json}{detail}, 'This server has no POST /threads/search.';
    is $client->post('/assistants/search', {})->{json}{detail}, 'This server has no POST /assistants/search.';
    my $state = $client->post('/threads/01900000-0000-7000-8000-000000000000/state', {});
    is $state->{status}, 405;
    is $state->{json}{detail}, 'This server has no POST'
        . ' /threads/01900000-0000-7000-8000-000000000000/state, only GET, HEAD.';
    is $client->get($_)->{json}{detail}, 'Not Found', 'but no path in an odd notation'
        for '/%22%3Cx', '/' . 'x' x 200;
};

subtest 'the paths of the API are not looked for below DocumentRoot' => sub {
    my $server = AgentTest::Server->new;
    $server->start;
    my $folder = "$server->{dir}/htdocs/threads";
    mkdir $folder or die "$folder: $!\n";
    chmod 0, $folder or die "$folder: $!\n";
    my $to = AgentTest::Client->new(url => $server->url);
    is $to->post('/threads', {})->{status}, 200, 'a folder of that name is in nobody\'s way';
    is $to->get('/threads/x/y')->{json}{code}, 'not_found', 'nor is one that nobody may enter';
};

done_testing;
