# SPDX-License-Identifier: Apache-2.0
# Every published member of langgraph.json in agentctl build, in both languages: served
# without a word, a directive, a warning that says what to do instead, or refused.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Env qw(root slurp write_file);
use Cpanel::JSON::XS;
use CtlTest qw($top $interpreter application build);
use Test::More;

my $json = Cpanel::JSON::XS->new->utf8->canonical->allow_nonref;

# The result of a build with these members in a language, 'python' or 'javascript'.
sub build_with {
    my ($language, $members, %files) = @_;
    my $is_node = $language eq 'javascript';
    my $graph = $is_node ? './g.mjs:graph' : './g.py:graph';
    my $directory = application({ graphs => { g => $graph }, %{$members} }, 'package.json' => '{"name":"a"}',
        'package-lock.json' => $json->encode({ name => 'a', lockfileVersion => 3, requires => \1, packages => { '' => { name => 'a' } } }),
        '.env' => "A=b\n", ($is_node ? (version => '24.1.0') : ()), %files);
    return build($directory, ($is_node ? '--node' : '--python'), $interpreter, '--ignore-auth');
}

# The object with a value at a path with dots.
sub nest { my ($path, $value) = @_; $value = { $_ => $value } for reverse split /\./, $path; return $value }

# [path, value, how: served | warned | python (warned in JavaScript) | refused, a pattern
# of the directive, the warning or the reason]
my @MEMBERS = (
    [ '$schema', 'https://langgra.ph/schema.json', 'served' ],
    [ 'dependencies', ['.'], 'served' ],
    [ 'env', '.env', 'served' ],
    [ 'env', './missing.env', 'refused', qr/^agentctl: langgraph\.json: env: \.\/missing\.env: No such file or directory\n\z/m ],
    [ 'env', { A => 'b', N => 1 }, 'served' ],
    [ 'env', ['A'], 'warned', qr/env names variables, and runners have none of httpd's/ ],
    [ 'python_version', '3.11', 'served' ],
    (map { [ 'python_version', $_, 'refused', qr/expected a version as python_version, got "\Q$_\E"/ ] }
        '3.x', '3.11abc', '3.', '3..11', '.11', '', ' 3.11', '>=3.11'),
    [ 'node_version', '22', 'served' ],
    (map { [ 'node_version', $_, 'refused', qr/expected a version as node_version, got "\Q$_\E"/ ] } 'lts', '20x', 'v20'),
    [ 'pip_config_file', './pip.conf', 'python', qr/pip_config_file has no effect: it applies to applications in Python only/ ],
    [ 'pip_installer', 'pip', 'python', qr/pip_installer has no effect: it applies to/ ],
    [ 'source', { kind => 'uv', root => '.' }, 'python', qr/source has no effect: it applies to/ ],
    [ 'checkpointer.serde', { allowed_msgpack_modules => [ [ 'a', 'B' ] ] }, 'python', qr/checkpointer\.serde has no effect: JavaScript has no such lists/ ],
    [ 'checkpointer.path', './c.py:make', 'warned', qr/checkpointer\.path has no effect: checkpoints are stored in PostgreSQL/ ],
    [ 'checkpointer.ttl', { strategy => 'delete', default_ttl => 43200 }, 'served', qr/^AgentThreadTTL 43200min$/m ],
    [ 'checkpointer.ttl.strategy', 'keep_latest', 'warned', qr/checkpointer\.ttl has no effect: expected delete as checkpointer\.ttl\.strategy/ ],
    [ 'checkpointer.ttl.default_ttl', 1.5, 'served', qr/^AgentThreadTTL 90s$/m ],
    [ 'checkpointer.ttl.default_ttl', 0, 'warned', qr/checkpointer\.ttl\.default_ttl is left out: expected from 1 to 5256000 minutes, got 0/ ],
    [ 'checkpointer.ttl.default_ttl', '60', 'refused', qr/a number as checkpointer\.ttl\.default_ttl/ ],
    (map { [ "checkpointer.ttl.$_", 5, 'warned', qr/checkpointer\.ttl\.$_ has no effect: what has expired is deleted within seconds/ ] }
        qw(sweep_interval_minutes sweep_limit)),
    [ 'store.index', { dims => 3, embed => 'x' }, 'warned', qr/items are searched by their members.*vector store/ ],
    [ 'store.ttl', { default_ttl => 60 }, 'served', qr/^AgentStoreTTL 60min$/m ],
    [ 'store.ttl.default_ttl', 6e6, 'warned', qr/store\.ttl\.default_ttl is left out: expected from 1 to 5256000 minutes/ ],
    [ 'store.ttl.refresh_on_read', \0, 'warned', qr/reads restart the time to live unless their refresh_ttl is false/ ],
    [ 'store.ttl.sweep_interval_minutes', 5, 'warned', qr/what has expired is deleted within seconds/ ],
    [ 'auth', { path => './a.py:auth' }, 'warned', qr/auth has no effect: httpd decides/ ],
    [ 'encryption', { path => './e.py:e' }, 'refused', qr/expected no encryption, which is not supported/ ],
    [ 'priority', { path => './p.py:p' }, 'warned', qr/priority has no effect/ ],
    [ 'http.app', './x.py:app', 'warned', qr/mount it with ProxyPass/ ],
    [ 'http.middleware_order', 'auth_first', 'warned', qr/belongs to http\.app/ ],
    [ 'http.enable_custom_route_auth', \1, 'warned', qr/belongs to http\.app/ ],
    [ 'http.mount_prefix', '/shop', 'served', qr{^AgentPrefix /shop$}m ],
    (map { [ 'http.mount_prefix', $_, 'warned', qr/http\.mount_prefix is left out/ ] } 'shop', '/shop/', '/', '/a b'),
    [ 'http.disable_assistants', \1, 'served', qr{^<LocationMatch "\^/assistants\(/\|\$\)">\n    Require all denied\n</LocationMatch>$}m ],
    [ 'http.disable_threads', \1, 'served', qr{^<LocationMatch "\^/threads\(}m ],
    [ 'http.disable_runs', \1, 'served', qr{^<LocationMatch "\^\(/threads/\[\^/\]\+\)\?/runs\(}m ],
    [ 'http.disable_store', \1, 'served', qr{^<LocationMatch "\^/store\(}m ],
    [ 'http.disable_meta', \1, 'served', qr{^<LocationMatch "\^/\(info\|metrics\|docs\|openapi\\\.json\)\(}m ],
    [ 'http.disable_webhooks', \1, 'served', qr/^AgentWebhooks Off$/m ],
    (map { [ "http.disable_$_", \1, 'warned', qr/http\.disable_\w+ has no effect/ ] } qw(mcp a2a ui)),
    [ 'http.configurable_headers', { includes => [ 'x-*', 'User-Agent' ], excludes => ['x-secret'] }, 'served',
        qr/^AgentConfigurableHeaders x-\* User-Agent !x-secret$/m ],
    [ 'http.configurable_headers', {}, 'served' ],
    [ 'http.configurable_headers.includes', ['x-*-id'], 'warned', qr/"x-\*-id" cannot be an argument of AgentConfigurableHeaders/ ],
    [ 'http.configurable_headers.includes', ["x-a\nAgentPrefix /"], 'warned', qr/cannot be an argument of AgentConfigurableHeaders/ ],
    (map { [ 'http.configurable_headers', $_, 'warned', qr/http\.configurable_headers is left out: "[^"]*" cannot be an argument of AgentConfigurableHeaders: expected / ] }
        { includes => ['None'] }, { includes => [ 'x-a', '!x-b' ] }, { includes => ['x-a'], excludes => ['X-*'] }, { includes => [ map { "x-$_" } 1 .. 65 ] },
        { includes => ['user_id'] }),
    [ 'http.configurable_headers', { includes => [ map { "x-$_" } 1 .. 60 ], excludes => ['y-*'] }, 'served', qr/^AgentConfigurableHeaders x-1 .* x-60 !y-\*$/m ],
    [ 'http.configurable_headers.excludes', ['x-*'], 'served' ],
    [ 'http.configurable_headers.excludes', 'x-*', 'refused', qr/a list of texts as http\.configurable_headers\.excludes/ ],
    [ 'http.logging_headers', { excludes => ['*'] }, 'warned', qr/CustomLog/ ],
    [ 'http.cors.allow_origins', [ 'https://a.example', 'http://localhost:*' ], 'served', qr{^AgentAllowOrigin https://a\.example http://localhost:\*$}m ],
    [ 'http.cors.allow_origins', [ 'https://a.example', '*' ], 'served', qr{^AgentAllowOrigin \*$}m ],
    (map { [ 'http.cors.allow_origins', [$_], 'warned', qr/cannot be an argument of AgentAllowOrigin/ ] }
        'https://a.example/path', 'null', 'None', "https://a.example\nAgentPrefix /", '${HOME}'),
    [ 'http.cors.allow_origin_regex', 'https://.*\\.a\\.example', 'served', qr{^AgentAllowOriginMatch "https://\.\*\\\\\.a\\\\\.example"$}m ],
    (map { [ 'http.cors.allow_origin_regex', $_, 'warned', qr/cannot be an argument of AgentAllowOriginMatch$/m ] } 'a${b}', "a\nb", 'none'),
    (map { [ 'http.cors.allow_origin_regex', $_->[0], 'warned', qr/cannot be an argument of AgentAllowOriginMatch: [^:]*(?:$_->[1])[^:]*, at its byte (?:$_->[2])$/m ] }
        [ 'https://(', 'missing closing parenthesis', 9 ], [ 'https://[a', 'missing terminating \\]', 10 ], [ 'a)|(?:b', 'unmatched closing parenthesis', 1 ],
        [ '*.example.com', 'quantifier', 0 ], [ 'a\\u0062', '\\\\u', 3 ], [ '(?a)b', 'unrecognized character', 2 ], [ 'a\\Q', 'missing', '\\d+' ]),
    [ 'http.cors.allow_origin_regex', '(?P<a>x)(?P=a)\\Z', 'served', qr/^AgentAllowOriginMatch "\(\?P<a>x\)\(\?P=a\)\\\\Z"$/m ],
    (map { [ 'http.cors', { allow_credentials => \1, allow_origin_regex => $_ }, 'warned', qr/allow_credentials is left out/ ] }
        '.*', '^.*$', '(.*)', '.*?', 'https?://.*', 'https://.*|https://a\\.example', 'https://.*.example', 'https://a\\.(example)?',
        'https://.*\\.com', 'https://.*\\.com$', 'https://.*example\\.com', 'https://[^/]+-example\\.com', 'https://.*.example\\.com', 'https://.*\\.?example\\.com',
        'https://.*\\\\.example\\.com', 'https://.*\\.0\\.1', '(?x)https://.*#\\.example\\.com', 'https://.*(*ACCEPT)\\.example\\.com', '//example\\.com',
        'https://.*\\..\\.com', 'https://.*\\.example\\.'),
    (map { [ 'http.cors', { allow_credentials => \1, allow_origin_regex => $_ }, 'served', qr/set Access-Control-Allow-Credentials true/ ] }
        'https://.*\\.a\\.example', '^https://[ab]\\.a\\.example$', '^https?://a-1\\.example', 'https://(.+\\.)?app\\.a\\.example'),
    (map { [ 'http.cors', { allow_credentials => \1, allow_origins => [ 'https://a.example', $_ ] }, 'warned', qr/allow_credentials is left out/ ] }
        '*', 'https://*.com', 'https://*.com:*', 'http://*.0.0.1', 'https://*.com.'),
    (map { [ 'http.cors', { allow_credentials => \1, allow_origins => [ $_, 'https://b.example' ] }, 'served', qr/set Access-Control-Allow-Credentials true/ ] }
        'https://*.a.example', 'http://localhost:*', 'http://127.0.0.1'),
    [ 'http.cors.allow_methods', [qw(GET POST)], 'served', qr{^<LocationMatch "\^\(/\|\$\)">\n    Header always edit Access-Control-Allow-Methods \^\.\*\$ "GET, POST"\n</LocationMatch>$}m ],
    [ 'http.cors.allow_headers', ['X-One'], 'served', qr/edit Access-Control-Allow-Headers \^\.\*\$ "Accept, Accept-Language, Content-Language, Content-Type, X-One"$/m ],
    [ 'http.cors.expose_headers', [qw(X-A X-B)], 'served', qr/edit Access-Control-Expose-Headers \$ ", X-A, X-B"$/m ],
    [ 'http.cors.max_age', 60, 'served', qr/edit Access-Control-Max-Age \^\.\*\$ 60$/m ],
    [ 'http.cors.max_age', -1, 'warned', qr/http\.cors\.max_age is left out: expected from 0 to 86400 seconds, got -1/ ],
    [ 'http.cors.allow_credentials', \1, 'served', qr/set Access-Control-Allow-Credentials true "expr=-n resp\('Access-Control-Allow-Origin'\)"$/m ],
    [ 'http.cors.allow_credentials', \0, 'served' ],
    [ 'http.cors', { allow_credentials => \1, allow_origins => ['*'] }, 'warned', qr/allow_credentials is left out: with the origin \*, .* any page might act/ ],
    (map { [ "http.cors.$_", ['*'], 'served' ] } qw(allow_methods allow_headers expose_headers)),
    (map { [ "http.cors.$_", ['a"b'], 'warned', qr/"a\\"b" cannot be an argument of Header/ ] } qw(allow_methods allow_headers expose_headers)),
    (map { [ "http.cors.$_", 'x', 'refused', qr/expected (?:a list of texts|true or false|a number) as http\.cors\.$_/ ] }
        qw(allow_methods allow_headers allow_credentials expose_headers max_age)),
    [ 'webhooks.url.allowed_ports', [ 443, 8443 ], 'served', qr/^AgentWebhookPorts 443 8443$/m ],
    [ 'webhooks.url.require_https', \1, 'served', qr/^AgentWebhookOrigin https$/m ],
    [ 'webhooks.url.require_https', \0, 'served' ],
    [ 'webhooks.url', { allowed_domains => [ 'a.example', '*.b.example' ], require_https => \1 }, 'served',
        qr{^AgentWebhookOrigin https://a\.example:\* https://\*\.b\.example:\*$}m ],
    [ 'webhooks.url.allowed_domains', ['a.example'], 'served', qr{^AgentWebhookOrigin https://a\.example:\* http://a\.example:\*$}m ],
    [ 'webhooks.url.allowed_domains', [], 'served' ],
    (map { [ 'webhooks.url.allowed_domains', ["$_"], 'warned', qr/allowed_domains is left out, expected at most 4096 bytes of names of hosts/ ],
        [ 'webhooks.url.allowed_domains', ["$_"], 'warned', qr/^AgentWebhooks Off$/m ] }
        'a.example/x', 'a b', '${HOME}', 'https://a.example', "a\nListen 1", 'a' x 3000),
    [ 'webhooks.url.allowed_domains', [ 'a.example', 'b/x', 'c.example', 'd' x 3000 ], 'warned',
        qr{^AgentWebhookOrigin https://a\.example:\* http://a\.example:\* https://c\.example:\* http://c\.example:\*$}m ],
    [ 'webhooks.url.allowed_domains', [ 'a.example', 'b/x' ], 'warned', qr{allowed_domains is left out, .* got "b\\?/x"$}m ],
    [ 'webhooks.url.allowed_domains', 'a.example', 'refused', qr/a list of texts as webhooks\.url\.allowed_domains/ ],
    (map { [ "webhooks.url.$_", 'x', 'warned', qr/webhooks\.url\.$_ has no effect/ ] } qw(disable_loopback max_url_length)),
    [ 'webhooks.env_prefix', 'HOOK_', 'served' ],
    [ 'webhooks.env_prefix', 1, 'refused', qr/a text as webhooks\.env_prefix/ ],
    [ 'webhooks.headers', { 'X-From' => 'a "b" \\c $d' }, 'served', qr/^AgentWebhookHeader X-From "a \\"b\\" \\\\c \$d"$/m ],
    [ 'webhooks', { url => { allowed_domains => ['a.example'] }, headers => { Authorization => 'Bearer ${{ env.LG_WEBHOOK_A }}-${{env.LG_WEBHOOK_B}}.' } }, 'served',
        qr/^AgentWebhookHeader Authorization "Bearer %\{osenv:LG_WEBHOOK_A\}-%\{osenv:LG_WEBHOOK_B\}\."\n# Set %\{osenv:\.\.\.\} in httpd's environment/m ],
    (map { [ 'webhooks', { headers => $_ }, 'warned', qr/webhooks\.headers has what seems to be a secret, .* limit these URLs with AgentWebhookOrigin \(webhooks\.url\.allowed_domains\)/ ] }
        { a => 'x ${{ env.LG_WEBHOOK_A }}' }, { a => 'b', 'X-Api-Key' => 'c' }, { authorization => 'Bearer c' }),
    [ 'webhooks', { url => { require_https => \1, allowed_domains => [] }, headers => { Cookie => 'c' } }, 'warned', qr/limit these URLs with AgentWebhookOrigin/ ],
    [ 'webhooks', { url => { allowed_domains => ['a.example'] }, headers => { Authorization => 'c' } }, 'served', qr/^AgentWebhookHeader Authorization "c"$/m ],
    [ 'webhooks', { env_prefix => 'H_', url => { allowed_domains => ['*.a.example'] }, headers => { a => '${{ env.H_A }}' } }, 'served', qr/^AgentWebhookHeader a "%\{osenv:H_A\}"$/m ],
    (map { [ 'webhooks.headers', $_, 'warned', qr/webhooks\.headers is left out for "[^"]*": expected a header that deliveries do not have/ ] }
        { a => '${{ env.HOME }}' }, { a => '${HOME}' }, { a => '${{ secrets.A }}' }, { a => '${{ env.LG_WEBHOOK_A ' }, { a => "b\nListen 1" },
        { a => '' }, { a => 1 }, { 'a b' => 'c' }, { Host => 'c' }, { 'webhook-id' => 'c' }),
    [ 'webhooks.headers', ['a'], 'refused', qr/an object as webhooks\.headers/ ],
    [ 'ui', { g => './ui.tsx' }, 'warned', qr/ui has no effect: serve its files with httpd/ ],
    [ 'ui_config', { shared => [] }, 'warned', qr/ui_config has no effect/ ],
    [ 'api_version', '0.3', 'warned', qr/the version is that of the installed module/ ],
    [ 'node_loader', 'tsx', 'warned', qr/imported with tsx/ ],
    (map { [ $_, 'x', 'warned', qr/\Q$_\E has no effect: no image is built/ ] }
        qw(dockerfile_lines base_image image_distro keep_pkg_tools docker_compose_file)),
    [ 'graph', { g => 'x' }, 'warned', qr/graph has no effect: it is unknown/ ],
    [ 'http.cros', { allow_origins => [] }, 'warned', qr/http\.cros has no effect: it is unknown/ ],
);

for my $language (qw(python javascript)) {
    for my $member (@MEMBERS) {
        my ($path, $value, $how, $pattern) = @{$member};
        next if $language eq 'python' && $path eq 'node_version' && $how eq 'served';
        my $built = build_with($language, nest($path, $value), 'pyproject.toml' => '');
        my ($title, $output) = ("$language: $path", $built->{output});
        $how = $how ne 'python' ? $how : $language eq 'python' ? 'served' : 'warned';
        $pattern = undef if $how eq 'served' && $member->[2] eq 'python';
        is $built->{status}, $how eq 'refused' ? 2 : 0, "$title: " . ($how eq 'refused' ? 'it is refused' : 'the application is built') or diag $output;
        if ($how eq 'served') {
            unlike $output, qr/warning: langgraph\.json: /, "$title: there is nothing to warn of";
        } else {
            like $output, $how eq 'warned' ? qr/^agentctl: warning: langgraph\.json: /m : qr/^agentctl: /m, "$title: it is said";
        }
        like $output, $pattern, "$title: the output says what becomes of it" if $pattern;
    }
}

# ---- values ----
like build_with('python', nest('http', { mount_prefix => '/shop', disable_store => \1 }))->{output},
    qr{^<LocationMatch "\^/shop/store\(}m, 'http: closed paths are below the prefix';
like build_with('python', nest('http', { mount_prefix => '/v1.0*', disable_store => \1 }))->{output},
    qr{^<LocationMatch "\^/v1\\\.0\\\*/store\(}m, 'http: a prefix closes no paths but its own';
like build_with('python', { map { ("unknown$_" => 1) } 1 .. 25 })->{output}, qr/warning: langgraph\.json: 5 more members are unknown/,
    'unknown: twenty are named, the others are counted';
for my $name ('checkpointer.ttl', 'http.cors', 'store.ttl') {
    my $dotted = build_with('python', { $name => [1], http => { 'cors.allow_origins' => 5 } });
    is $dotted->{status}, 0, "$name as one name: the application is built" or diag $dotted->{output};
    like $dotted->{output}, qr/^agentctl: warning: langgraph\.json: $_ has no effect: it is unknown$/m, "$name as one name: $_ is unknown, not that path"
        for map { quotemeta } $name, 'http.cors.allow_origins';
}
my $quiet = build_with('javascript', { ui => undef, priority => undef });
unlike $quiet->{output}, qr/warning/, 'null: it is as if the member were absent';

# ---- installers ----
like build_with('python', { pip_installer => 'conda' })->{output}, qr/^agentctl: langgraph\.json: expected auto, pip or uv as pip_installer, got conda$/m,
    'pip_installer: another word is refused';
SKIP: {
    skip 'uv is on this machine', 2 if grep { -x "$_/uv" } split(/:/, $ENV{PATH}), '/usr/local/bin', '/usr/bin';
    my $missing = build_with('python', { pip_installer => 'uv', dependencies => ['x'] });
    like $missing->{output}, qr/pip_installer: uv is not in PATH \([^)]+\): pip installs/, 'pip_installer: uv that is missing is a warning';
    like $missing->{said}, qr/-m pip install .* x$/m, 'pip_installer: pip installs then';
}
like build_with('python', { env => './my.env' }, 'my.env.example' => '')->{output},
    qr{^agentctl: langgraph\.json: env: \./my\.env: No such file or directory: copy \./my\.env\.example to it, and set the values\n\z}m,
    'env: the error names an example that is there';
like build_with('python', { graphs => { bad => 'g.py' } })->{output},
    qr/^agentctl: langgraph\.json: expected FILE:NAME as graphs\.bad, got "g\.py"\n\z/m,
    'graphs: the error names the file and the member';
my $source = build_with('python', { source => { kind => 'uv', root => './project' } });
like $source->{output}, qr/^agentctl: langgraph\.json: expected uv in PATH and a uv\.lock, or a pyproject\.toml .* got \.\/project$/m,
    'source: a folder without a project is refused';
like build_with('python', { source => { kind => 'uv' } }, 'pyproject.toml' => '')->{said}, qr/-m pip install .* -e \.$/m,
    'source: pip installs a project that it can build';
like build_with('python', { source => { kind => 'uv', package => 'x' } }, 'pyproject.toml' => '')->{output},
    qr/or a pyproject\.toml without source\.package/, 'source: one package of a workspace needs uv';
like build_with('python', { source => { kind => 'poetry' } })->{output}, qr/expected uv as source\.kind/, 'source: another kind is refused';
like build_with('python', { source => { kind => 'uv', root => '--index-url=x' } })->{output}, qr/expected uv as source\.kind/,
    'source: an option as folder is refused';
my $config = build_with('python', { pip_config_file => './pip.conf', dependencies => ['x'] });
like $config->{environment}, qr/^PIP_CONFIG_FILE=\.\/pip\.conf$/m, 'pip_config_file: pip gets it';

# ---- TypeScript ----
for my $ending (qw(ts tsx mts cts jsx)) {
    my $built = build_with('javascript', { graphs => { g => "./g.$ending:graph" } });
    like $built->{output}, qr/^==> Installing tsx/m, "graphs: a file .$ending gets tsx";
    like $built->{folders}, qr{/\.agent/tsx$}m, "graphs: npm installs it in its folder";
    unlike $built->{said}, qr/--prefix/, 'graphs: npm keeps its global configuration';
}
unlike build_with('javascript', { graphs => { g => './a.ts.mjs:graph' } })->{output}, qr/tsx/, 'graphs: another does not';

# ---- the table ----
my $table = slurp(root() . '/mod_agent/ctl/build/README.md');
my %effect = slurp(root() . '/mod_agent/config/member.def') =~ /^MEMBER\("([^"]+)", [A-Z| ]+, ([A-Z]+),/mg;
cmp_ok scalar keys %effect, '>', 60, 'the members of member.def are found';
# Members of these are in the row of their parent.
my $described = qr/\A(?:source|checkpointer\.serde)\./;
for my $path (grep { $effect{$_} ne 'PARENT' && !/$described/ } sort keys %effect) {
    ok index($table, "`$path`") >= 0, "README: the table has $path";
    ok +(grep { $_->[0] eq $path || $_->[0] =~ /\A\Q$path\E\./ } @MEMBERS) || $path eq 'graphs', "$path: a build with it is tried above";
}

done_testing;
