# SPDX-License-Identifier: Apache-2.0
# GET /ok and GET /info: health, version and region; routes that do not exist.
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
is $info->{json}{region}, 'local', 'GET /info has the region';
ok $info->{json}{flags}{$_}, "GET /info has the flag $_" for qw(assistants strict_resume);

subtest 'unknown operations: the detail names method and path' => sub {
    my $root = $client->get('/');
    is $root->{status}, 404, 'unknown operations: GET / is 404';
    like $root->{json}{detail}, qr{GET /ok and /info}, 'unknown operations: the detail of GET / names /ok and /info';
    is $client->post("/$_", {})->{json}{detail}, "This server has no POST /$_.",
        "unknown operations: the detail names POST /$_" for qw(threads/crons crons);
    my %not_uuid = ('/threads/xyz' => 'thread_id', '/threads/01900000-0000-7000-8000-000000000000x/state' => 'thread_id',
        '/threads/01900000-0000-7000-8000-000000000000/runs/7/join' => 'run_id');
    for my $path (sort keys %not_uuid) {
        my $answer = $client->get($path);
        is $answer->{status}, 404, "unknown operations: GET $path is 404";
        is $answer->{json}{detail}, "This server has no GET $path: $not_uuid{$path} must be a UUID.",
            "unknown operations: the detail of GET $path names the parameter that is not a UUID";
    }
    is $client->get('/threads/xyz/none')->{json}{detail}, 'This server has no GET /threads/xyz/none.',
        'unknown operations: the detail of a path without an operation names no parameter';
    my $stream = $client->post('/threads/01900000-0000-7000-8000-000000000000/stream', {});
    is $stream->{status}, 405, 'unknown operations: POST of a stream is 405';
    is $stream->{json}{detail}, 'This server has no POST'
        . ' /threads/01900000-0000-7000-8000-000000000000/stream, only GET, HEAD.',
        'unknown operations: the detail of a 405 names the methods that exist';
    is $client->get($_)->{json}{detail}, 'Not Found', 'unknown operations: the detail does not repeat ' . substr $_, 0, 10
        for '/%22%3Cx', '/' . 'x' x 200;
};

subtest 'routes: paths of the API are not looked up below DocumentRoot' => sub {
    my $server = AgentTest::Server->new;
    $server->start;
    my $folder = "$server->{dir}/htdocs/threads";
    mkdir $folder or die "$folder: $!\n";
    chmod 0, $folder or die "$folder: $!\n";
    my $to = AgentTest::Client->new(url => $server->url);
    is $to->post('/threads', {})->{status}, 200, 'routes: a folder named like a path is ignored';
    is $to->get('/threads/x/y')->{json}{code}, 'not_found', 'routes: the permissions of a folder named like a path are ignored';
};

done_testing;
