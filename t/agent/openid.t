# SPDX-License-Identifier: Apache-2.0
# mod_auth_openidc in front of the API, as OAuth 2.0 resource server: the subject of a token that it has verified is the
# user of the run, and no other token or header is believed.
use strict;
use warnings;
use AgentTest::Client qw(run_body);
use AgentTest::Conf qw(demo_graph);
use AgentTest::Env qw(modules_dir);
use AgentTest::Server;
use Cpanel::JSON::XS;
use Digest::SHA qw(hmac_sha256);
use MIME::Base64 qw(encode_base64url);
use Test::More;

my $SECRET = 'a-secret-which-the-provider-of-the-tokens-shares-with-httpd';

# Without the module the test fails: deps.sh installs it.
my $server = AgentTest::Server->new(config => join '', demo_graph(), <<"CONF");
LoadModule authn_core_module "\${MODULES}/mod_authn_core.so"
LoadModule authz_user_module "\${MODULES}/mod_authz_user.so"
LoadModule auth_openidc_module "@{[ modules_dir() ]}/mod_auth_openidc.so"
OIDCOAuthVerifySharedKeys plain##$SECRET
OIDCOAuthRemoteUserClaim sub
OIDCOAuthAcceptTokenAs header
OIDCCryptoPassphrase "another secret"
<Location "/">
    SetHandler agent
    AuthType oauth20
    Require valid-user
</Location>
<Location "/staff">
    AgentPrefix /staff
    Require claim group:staff
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

undef $server;
done_testing;
