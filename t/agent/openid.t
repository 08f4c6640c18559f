# SPDX-License-Identifier: Apache-2.0
# mod_auth_openidc in front of the API, as OAuth 2.0 resource server and as OpenID Connect relying party: the subject of a
# token that it has verified, or of the login of a browser, is the user of the run, and no other token, cookie or header is
# believed.
use strict;
use warnings;
use AgentTest::Client qw(parse_response read_to_end run_body);
use AgentTest::Conf qw(demo_graph);
use AgentTest::Env qw(modules_dir);
use AgentTest::Server;
use Cpanel::JSON::XS;
use Digest::SHA qw(hmac_sha256);
use IO::Select;
use IO::Socket::INET;
use MIME::Base64 qw(encode_base64 encode_base64url);
use Test::More;

my $SECRET = 'a-secret-which-the-provider-of-the-tokens-shares-with-httpd';
my $CLIENT_SECRET = 'a-secret-of-httpd-as-a-client-of-the-provider';

# The provider: this process is its authorization endpoint too, where a person logs in; httpd asks for its metadata and its
# token endpoint. Only the metadata may name addresses without TLS.
my $endpoint = IO::Socket::INET->new(Listen => 8, LocalAddr => '127.0.0.1') // die "listen: $!\n";
my $provider = 'http://127.0.0.1:' . $endpoint->sockport;

# Without the module the test fails: deps.sh installs it.
my $server = AgentTest::Server->new(config => join '', demo_graph(), <<"CONF");
LoadModule authn_core_module "\${MODULES}/mod_authn_core.so"
LoadModule authz_user_module "\${MODULES}/mod_authz_user.so"
LoadModule auth_openidc_module "@{[ modules_dir() ]}/mod_auth_openidc.so"
OIDCOAuthVerifySharedKeys plain##$SECRET
OIDCOAuthRemoteUserClaim sub
OIDCOAuthAcceptTokenAs header
OIDCCryptoPassphrase "another secret"
OIDCProviderMetadataURL $provider/metadata
OIDCClientID the-client
OIDCClientSecret $CLIENT_SECRET
OIDCIDTokenSignedResponseAlg HS256
OIDCRedirectURI /portal/callback
OIDCRemoteUserClaim sub
<Location "/">
    SetHandler agent
    AuthType oauth20
    Require valid-user
</Location>
<Location "/staff">
    AgentPrefix /staff
    Require claim group:staff
</Location>
<Location "/portal">
    AgentPrefix /portal
    AuthType openid-connect
    Require valid-user
</Location>
CONF
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

# A token with these claims: {} or those of a person.
sub token {
    my ($claims, %with) = @_;
    my $payload = encode_json({ iss => 'https://provider.example', exp => time + 600, iat => time, %{$claims} });
    my $head = encode_json({ alg => $with{alg} // 'HS256', typ => 'JWT' });
    my $text = join '.', map { encode_base64url($_) } $head, $payload;
    return "$text." . ($with{alg} ? '' : encode_base64url(hmac_sha256($text, $with{secret} // $SECRET)));
}

sub create_run {
    my ($token, %with) = @_;
    return $client->post(($with{path} // '') . '/runs', run_body('hello', config => { configurable => { user_id => 'eve' } }),
        { ($token ? (Authorization => "Bearer $token") : ()), %{ $with{headers} // {} } });
}

sub user_of {
    my ($answer) = @_;
    my $configurable = $answer->{json}{kwargs}{config}{configurable} or return "$answer->{status} $answer->{body}";
    return join ' ', @{$configurable}{qw(user_id langgraph_auth_user_id)}, $configurable->{langgraph_auth_user}{identity};
}

my $ann = token({ sub => 'ann' });
is user_of(create_run($ann)), 'ann ann ann', 'openid: the subject of the token is the user of the run';
is user_of(create_run($ann, headers => { 'x-user-id' => 'eve' })), 'ann ann ann', 'openid: x-user-id is not believed beside it';
is user_of(create_run(token({ sub => 'bob' }))), 'bob bob bob', 'openid: that of another token is another one';

for my $case ([ undef, 'no token' ], [ 'text', 'another text' ], [ token({ sub => 'ann' }, secret => 'wrong' x 8), 'a token of another provider' ],
    [ token({ sub => 'ann', exp => time - 600 }), 'one that has expired' ], [ token({ sub => 'ann' }, alg => 'none'), 'one without a signature' ],
    [ $ann =~ s/\.\K\w+/encode_base64url('{"sub":"root"}')/er, 'one with other claims' ])
{
    my ($token, $what) = @{$case};
    my $answer = create_run($token, headers => { 'x-user-id' => 'eve' });
    is $answer->{status}, 401, "openid: $what is 401";
    is ref $answer->{json}, 'HASH', "openid: $what, in the body of the API";
    like $answer->{headers}{'www-authenticate'}, qr/\ABearer/, "openid: $what, with the challenge of mod_auth_openidc";
}

# Its own Require decides too.
is user_of(create_run(token({ sub => 'carol', group => 'staff' }), path => '/staff')), 'carol carol carol', 'openid: a Require of its claims admits who has them';
like create_run($ann, path => '/staff')->{status}, qr/\A40[13]\z/, 'openid: a Require of its claims refuses others';

# ---- a login ----

my ($host) = $server->url =~ m{//(.*)};

# The answer of httpd to a browser.
sub browse {
    my ($path, %headers) = @_;
    return $client->get($path, undef, { Accept => 'text/html', 'User-Agent' => 'browser', %headers });
}

sub cookies_of {
    my ($answer) = @_;
    my $set = $answer->{headers}{'set-cookie'};
    return join '; ', map { /\A([^=]+=[^;]+)/ } ref $set ? @{$set} : $set;
}

sub parameters_of {
    my ($text) = @_;
    return map { my ($name, $value) = split /=/, $_, 2; ($name => $value =~ s/%(..)/chr hex $1/ger) } split /&/, $text =~ s/\A[^?]*\?//r;
}

# The next request of httpd to the provider, (its head, its parameters), after answering it.
sub answer_httpd {
    my ($answer) = @_;
    IO::Select->new($endpoint)->can_read(120) or die "httpd has not asked the provider\n";
    my $connection = $endpoint->accept // die "accept: $!\n";
    my $request = '';
    1 while !is_whole($request) && sysread $connection, $request, 65_536, length $request;
    my $body = encode_json($answer);
    syswrite $connection, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " . length($body) . "\r\n\r\n$body";
    close $connection;
    my ($head, $form) = split /\r\n\r\n/, $request, 2;
    return ($head, parameters_of("?$form"));
}

sub is_whole {
    my ($request) = @_;
    my ($head, $form) = split /\r\n\r\n/, $request, 2;
    return defined $form && length $form >= ($head =~ /^Content-Length: (\d+)/mi ? $1 : 0);
}

# httpd's answer to the browser that comes back from the provider, the session that it sets, and the request for a token.
sub come_back {
    my ($query, $cookies, $claims) = @_;
    my $socket = $client->connection;
    syswrite $socket, "GET /portal/callback?$query HTTP/1.1\r\nHost: $host\r\nAccept: text/html\r\n"
        . "User-Agent: browser\r\nCookie: $cookies\r\nConnection: close\r\n\r\n";
    my @asked = answer_httpd({ access_token => 'x', token_type => 'Bearer',
        id_token => token({ aud => 'the-client', %{$claims} }, secret => $CLIENT_SECRET) });
    my $answer = read_to_end($socket);
    return (parse_response($answer), join('; ', $answer =~ /^Set-Cookie: ([^=]+=[^;\r\n]+)/mgi), @asked);
}

subtest 'openid: the person who has logged in at the provider is the user of the run' => sub {
    my $path = '/portal/threads/01900000-0000-7000-8000-000000000000';
    my $socket = $client->connection;
    syswrite $socket, "GET $path HTTP/1.1\r\nHost: $host\r\nAccept: text/html\r\nUser-Agent: browser\r\nConnection: close\r\n\r\n";
    answer_httpd({ issuer => 'https://provider.example', authorization_endpoint => "$provider/authorize", token_endpoint => "$provider/token",
        response_types_supported => ['code'], token_endpoint_auth_methods_supported => ['client_secret_basic'] });
    my $begun = parse_response(read_to_end($socket));
    is $begun->{status}, 302, 'login: a browser without a session is sent to the provider';
    like $begun->{headers}{location}, qr{\A\Q$provider\E/authorize\?}, 'login: to its authorization endpoint';
    my %asked = parameters_of($begun->{headers}{location});
    is_deeply [ @asked{qw(response_type client_id)} ], [ 'code', 'the-client' ], 'login: for a code';
    like $asked{redirect_uri}, qr{\A\Qhttp://$host\E/portal/callback\z}, 'login: with the address to which it comes back';

    my ($back, $session, $head, %form) = come_back("code=the-code&state=$asked{state}", cookies_of($begun), { sub => 'dora', nonce => $asked{nonce} });
    is_deeply [ @form{qw(grant_type code)} ], [ 'authorization_code', 'the-code' ], 'login: httpd exchanges the code for a token';
    like $head, qr/^Authorization: Basic \Q@{[ encode_base64("the-client:$CLIENT_SECRET", '') ]}\E\r?$/mi, 'login: as the client that it is';
    is $back->{status}, 302, 'login: the browser gets a session, and is sent to the page that it wanted';
    like $back->{headers}{location}, qr{\Q$path\E\z}, 'login: to that page';

    my $create = sub { return $client->post('/portal/runs', run_body('hello', config => { configurable => { user_id => 'eve' } }), { 'x-user-id' => 'eve', @_ }) };
    is user_of($create->(Cookie => $session)), 'dora dora dora', 'login: the user of the run is the subject of the login, and no other member or header';
    is $create->(Cookie => $session, Origin => 'https://elsewhere.example')->{status}, 403, 'login: the session is of no use to a page of another site';
    isnt $create->()->{status}, 200, 'login: without the session there is no run';
    isnt $create->(Cookie => $session =~ s/=./=x/r)->{status}, 200, 'login: with the session of nobody there is no run';
    isnt $create->(Authorization => "Bearer $ann")->{status}, 200, 'login: with a token of the resource server there is no run';
};

subtest 'openid: a token of another login gives no session' => sub {
    my $begun = browse('/portal/ok');
    my %asked = parameters_of($begun->{headers}{location});
    my ($back) = come_back("code=the-code&state=$asked{state}", cookies_of($begun), { sub => 'dora', nonce => 'another' });
    isnt $back->{status}, 302, 'login: with another nonce';
};

undef $server;
done_testing;
