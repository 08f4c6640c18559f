# SPDX-License-Identifier: Apache-2.0
# Directives: accepted values, and the error messages for others.
use strict;
use warnings;
use AgentTest::Cgroup;
use AgentTest::Client qw(run_body);
use AgentTest::Env qw(root build_dir slurp write_file);
use AgentTest::Server;
use File::Temp qw(tempdir);
use POSIX ();
use Test::More;

my $dir = tempdir(CLEANUP => 1);
my $RUNNER = qq(AgentRunner "@{[build_dir()]}/agent-runner"\n);

sub graph {
    my (@lines) = @_;
    return join "\n", $RUNNER . '<AgentGraph agent>', @lines, "</AgentGraph>\n";
}

# A virtual host with the lines and a graph `other`, alone and after a main server with a graph.
sub bare_host {
    return join "\n", '<VirtualHost *:1>', @_, "<AgentGraph other>\nAgentModel demo\n</AgentGraph>\n</VirtualHost>\n";
}
sub host { return graph('AgentModel demo') . bare_host(@_) }

my $ACCOUNT = '018f2d6e-7c4b-7abc-9def-0123456789ab';
my $AUTHN = qq(LoadModule authn_core_module "\${MODULES}/mod_authn_core.so"\n);
my $AUTHZ_USER = qq(LoadModule authz_user_module "\${MODULES}/mod_authz_user.so"\n);
my $FORENSIC = qq(LoadModule log_forensic_module "\${MODULES}/mod_log_forensic.so"\n);
my $AGENT_KEY = qq(<Location "/">\nAuthType AgentKey\n</Location>\n);

sub file { my ($name, $text) = @_; return write_file("$dir/$name", $text) }

sub check {
    my ($config) = @_;
    return AgentTest::Server->new(config => $config)->check_config;
}

# check() of each, four at a time: [whether it is accepted, httpd's output], ...
sub check_each {
    my (@configs) = @_;
    my @results;
    while (my @batch = splice @configs, 0, 4) {
        my @checks = map { start_check($_) } @batch;
        push @results, map { finish_check($_) } @checks;
    }
    return @results;
}

sub start_check {
    my ($config) = @_;
    my $pid = open(my $check, '-|') // die "fork: $!\n";
    return $check if $pid;
    my ($ok, $output) = check($config);
    print $ok ? "accepted\n" : "refused\n", $output;
    close STDOUT or POSIX::_exit(1);
    POSIX::_exit(0);
}

sub finish_check {
    my ($check) = @_;
    my ($first, @output) = <$check>;
    close $check or die "a check of a configuration ended with $?\n";
    return [ $first eq "accepted\n", join '', @output ];
}

my $cgroup = AgentTest::Cgroup->new;

my $schema = file('schema.json',
    '{"type":"object","description":"weather of a place","properties":{}}');
my $key = file('key', "secret-key-of-the-test\n");
# 32 bytes, with the prefix and without.
my $secret = file('secret', 'whsec_' . 'QUJD' x 10 . "QUI=\nsecond line\n");
my $bare = file('bare', 'QUJD' x 8);
my $short = file('short', 'whsec_' . 'QUJD' x 7 . "\n");
my $long = file('long', 'whsec_' . 'QUJD' x 22 . "\n");
my $odd = file('odd', "whsec_no-base64-but-a-secret\n");

mkdir "$dir/shop" or die "$dir/shop: $!\n";
my $application = (file('shop/langgraph.json', '{"graphs": {"counter": "./counter.py:graph"}}') =~ s{/[^/]+\z}{}r);

# The runner with one of applications beside it.
sub runner_with_python {
    chmod 0755, $dir or die "$dir: $!\n";
    mkdir "$dir/runners" or die "$dir/runners: $!\n";
    file('runners/python', '');
    symlink build_dir() . '/agent-runner', "$dir/agent-runner" or die "symlink: $!\n";
    return "$dir/agent-runner";
}

# conf/agent.conf with everything in it switched on.
sub reference {
    my $text = slurp(root() . '/conf/agent.conf');
    # The last section is commented out as a whole.
    $text =~ s{^#(?=    \S|</?Location)}{}mg;
    $text =~ s/^( *)#(?=Agent)/$1/mg;
    my %file = ('/usr/local/libexec/agent-runner' => runner_with_python(),
        '/srv/agents/shop' => $application,
        '/etc/apache2/webhook.secret' => $secret, '/etc/apache2/model.key' => $key,
        'conf/weather.schema.json' => $schema, '/opt/python/bin/python3' => '/usr/bin/perl', '/opt/node/bin/node' => '/usr/bin/perl');
    $text =~ s{^(AgentRunnerCgroup) .*}{$cgroup ? "$1 " . $cgroup->dir : ''}me;
    for my $name (keys %file) {
        ok $text =~ s/^( *Agent.*)\Q$name\E/$1$file{$name}/mg, "directives: conf/agent.conf names $name";
    }
    return $text;
}

{
    my ($ok, $output) = check(reference());
    ok $ok, 'directives: every line of conf/agent.conf is accepted' or diag $output;
}

# ---- good ----
my @good = (
    graph('AgentModel demo'),
    graph('AgentModel anthropic:some-model', "AgentModelKeyFile $key",
        'AgentModelTimeout 60', 'AgentModelMaxTokens 100'),
    graph('AgentModel openai:some-model', 'AgentModelURL http://127.0.0.1:1/v1',
        'AgentSystemPrompt "Say \"no\"."', 'AgentMaxSteps 3'),
    graph('AgentModel demo', 'AgentTool clock builtin',
        'AgentTool calculator builtin',
        "AgentTool weather POST http://127.0.0.1:9/w $schema",
        "AgentTool other POST https://example.com/o $schema \"described\""),
    graph('AgentModel demo') . join("\n", 'AgentNode a', 'AgentDBPoolSize 5',
        'AgentDBPoolWait 0', 'AgentDBQueryTimeout 100',
        'AgentDBConnectTimeout 100', 'AgentRunners 2', 'AgentRunnerSlots 1',
        'AgentRunnerMemory 64m',
        'AgentRunTimeout 1', 'AgentCallTimeout 1', 'AgentDrainTimeout 0', 'AgentEventRetention 1', 'AgentAuditRetention 30', 'AgentLogRetention 0', 'AgentBackupRetention 0',
        'AgentMaxWaiters 1', 'AgentMaxWaitersPerAddress 0', 'AgentParking Off', 'AgentMaxBody 1024', 'AgentPrefix /agents',
        'AgentMultitaskDefault enqueue', 'AgentDatabase "dbname=x"',
        'AgentFeedbackURL "http://127.0.0.1/{run_id}/{key}"', 'AgentThreadTTL 30d', 'AgentStoreTTL 1d', ''),
    (map { graph('AgentModel demo') . "AgentThreadTTL $_\n" } 'Off', '1', '90s', '5256000', '3650d'),
    (map { graph('AgentModel demo') . "AgentStoreTTL $_\n" } 'Off', '1', '90s', '5256000'),
    host('AgentDeployment shop', 'AgentStoreTTL 1h', 'AgentThreadTTL 1h', 'AgentConfigurableHeaders X-* user-agent', 'AgentConfigurableHeaders !x-secret*'),
    (map { graph('AgentModel demo') . "AgentConfigurableHeaders $_\n" } 'None', '*', 'Authorization', '* !user_id', 'x-a* !x-ab* !x-b'),
    graph('AgentModel demo') . "AgentConfigurableHeaders x-*\n<Location />\nAgentConfigurableHeaders none\n</Location>\n",
    graph('AgentModel demo') . "AgentThreadTTL 1h\n<Location />\nAgentThreadTTL off\n</Location>\n",
    host('AgentRunners 1', 'AgentRunnerSlots 100', 'AgentRunnerMemory 1G'),
    host('AgentDeployment shop', 'AgentRunners 2', 'AgentRunnerSlots 5', 'AgentRunnerMemory 0', 'AgentRunnerUser nobody',
        'AgentRunnerIdleTime 10min', 'AgentRunnerBusyTimeout 0', 'AgentRunnerMaxRuns 1000', 'AgentRunnerRecycleMemory 512M', 'AgentRunnerFiles 64', 'AgentRunnerProcesses 1000',
        'AgentRunTimeout 5', 'AgentCallTimeout 2'),
    graph('AgentModel demo') . "<Location />\nAgentCallTimeout 2\n</Location>\n",
    (map { graph('AgentModel demo') . "AgentDeployment $_\n" } 'shop', '0', 'a' x 63, 'a-b_9', "shop account=$ACCOUNT", 'shop account=' . uc $ACCOUNT),
    # Two deployments of one name.
    host('AgentDeployment shop') . bare_host("AgentDeployment shop account=$ACCOUNT"),
    (map { graph('AgentModel demo') . "AgentSignUp $_\n" } 'Off', 'on', 'Invitation'),
    graph('AgentModel demo') . "AgentSignUp On\n<Location />\nAgentSignUp Off\n</Location>\n",
    graph('AgentModel demo') . "AgentLimit keys 0\nAgentLimit keys 1000000000 account=$ACCOUNT\nAgentLimit queued_runs 5\nAgentLimit streams None\n"
        . "AgentLimit stored_bytes 0\nAgentLimit stored_bytes 1000000g account=$ACCOUNT\nAgentLimit deployments 5\nAgentLimit threads 5\nAgentLimit webhooks 5\n",
    (map { graph('AgentModel demo') . "AgentTrustUserHeader $_\n" } 'None', '192.0.2.1 2001:db8::/32', '10.0.0.0/8', '::ffff:192.0.2.1'),
    (map { graph('AgentModel demo') . "AgentRegion $_\n" } qw(eu us-east-1 r), 'r' x 16),
    (map { graph('AgentModel demo') . "AgentWrongRegion $_\n" } qw(403 421 307)),
    graph('AgentModel demo') . "AgentRegion eu\nAgentRegionURL eu https://eu.example.com HTTPS://eu.api.example.com:8443/v1\n"
        . "AgentRegionURL us http://[::1]:8080 https://us.api.example.com https://us.beacon.example.com\n",
    graph('AgentModel demo') . "AgentTrustUserHeader 192.0.2.1\n<Location />\nAgentTrustUserHeader none\n</Location>\n",
    (map { graph('AgentModel demo') . "<Location />\nRequire $_\n</Location>\n" } "agent-account $ACCOUNT " . uc $ACCOUNT,
        'agent-scope read run deploy admin', 'agent-deployment shop desk_2', 'agent-deployment'),
    graph('AgentModel demo') . "<VirtualHost *:1>\nAgentDeployment shop\n" . graph('AgentModel demo') =~ s/\Q$RUNNER\E//r
        . "</VirtualHost>\n",
    graph('AgentModel openai:m', 'AgentModelURL HTTP://127.0.0.1:1/v1')
        . qq(AgentFeedbackURL "HTTPS://127.0.0.1/{run_id}/{key}"\n),
    graph('AgentModel demo') . join("\n", 'AgentWebhooks Off',
        'AgentWebhookTimeout 300', "AgentWebhookSecretFile $secret",
        'AgentWebhookAllow 10.0.0.0/8 ::1 fd00::/8', 'AgentWebhookAllow Hooks.internal.',
        'AgentWebhookDeny 192.0.2.7 10.9.0.0/16 fd00::/16',
        'AgentAllowOrigin https://app.example.com http://localhost:*',
        'AgentAllowOrigin https://*.example.com:* tauri://localhost',
        'AgentWebhookPorts 80 8000-8999', 'AgentWebhookPorts 1-65535', 'AgentWebhookOrigin https http://*.example.com:*',
        'Define TOKEN secret', 'AgentWebhookHeader Authorization "Bearer ${TOKEN}"', 'AgentWebhookHeader X-A a',
        'AgentWebhookHeader X-B "%{osenv:PATH} %{a}"', ''),
    graph('AgentModel demo') . "AgentWebhookHeader A b\n<VirtualHost *:1>\nAgentWebhookHeader a c\n</VirtualHost>\n"
        . (join '', map { "<VirtualHost *:$_>\nAgentDeployment shop\nAgentWebhookHeader a d\n</VirtualHost>\n" } 2, 3),
    graph('AgentModel demo') . "AgentWebhookSecretFile $bare\n",
    graph('AgentModel demo') . "AgentWebhookSecretFile $secret\n<VirtualHost *:1>\nAgentWebhookSecretFile $bare\n</VirtualHost>\n"
        . (join '', map { "<VirtualHost *:$_>\nAgentDeployment shop\nAgentWebhookSecretFile $secret\n</VirtualHost>\n" } 2, 3),
    (map { graph('AgentModel demo') . "$_\n" } 'AgentAllowOrigin *', 'AgentAllowOrigin None',
        'AgentAllowOriginMatch None', 'AgentAllowOriginMatch "https://pr-[0-9]+\\.example\\.com"',
        'AgentWebhookDeny ::ffff:10.0.0.0/104 ::/0', 'AgentMaxBody 4M', 'AgentMaxBody 1k',
        'AgentMaxBody 7340032'),
    (map { graph('AgentModel demo') . "AgentRunnerMemory $_\n" } '0', '2G', '1048576K', '67108864'),
    # Durations: each unit, up to the limits of the directive.
    (map { graph('AgentModel demo') . "$_\n" } 'AgentDBPoolWait 0s', 'AgentDBPoolWait 1min',
        'AgentDBQueryTimeout 10ms', 'AgentDBConnectTimeout 60s', 'AgentRunTimeout 24h',
        'AgentRunTimeout 1d', 'AgentRunTimeout 1500ms', 'AgentCallTimeout 5min', 'AgentDrainTimeout 1h',
        'AgentWebhookTimeout 5min', 'AgentEventRetention 3650d', 'AgentAuditRetention 3650d', 'AgentEventRetention 48h'),
    map { graph('AgentModel demo', "AgentModelTimeout $_") } '1h', '90s', '1000ms', '2min',
);
my @accepted = check_each(@good);
for my $good (@good) {
    my ($ok, $output) = @{ shift @accepted };
    my ($last) = reverse grep { /^Agent(?!Runner ")/ } split /\n/, $good;
    ok $ok, "directives: $last is accepted" or diag $output;
}

# ---- bad: directive, what was expected, what was given ----
# A location whose lines are in a <RequireAll>, but for AuthMerging and AuthType.
sub excluding {
    my (@lines) = @_;
    my @outer = grep { /\AAuth/ } @lines;
    return $AUTHN . $AUTHZ_USER . join '', map { "$_\n" } '<Location "/x">', 'AuthType AgentKey', @outer, '<RequireAll>', (grep { !/\AAuth/ } @lines), '</RequireAll>', '</Location>';
}

my $NOBODY = 'nobody whom the other lines admit without a key';
my $ALIASES = join '', map { "<AuthzProviderAlias $_>\n</AuthzProviderAlias>\n" } 'agent-scope admins admin', 'agent-deployment this', 'agent-scope crew "deploy admin"', "agent-account banned $ACCOUNT", 'ip nearby 192.0.2.1', 'all everybody granted';

# Lines of other modules that demand a user, with these modules: all words of config/exclusion.c.
my %demands_user = (
    'valid-user'     => [ [], '' ],
    'user'           => [ [], 'carol' ],
    'group'          => [ ['authz_groupfile'], 'staff' ],
    'file-group'     => [ ['authz_groupfile'], '' ],
    'file-owner'     => [ ['authz_owner'], '' ],
    'claim'          => [ ['auth_openidc'], 'sub:carol' ],
    'dbd-group'      => [ [qw(dbd authz_dbd)], 'staff' ],
    'dbm-group'      => [ ['authz_dbm'], 'staff' ],
    'dbm-file-group' => [ ['authz_dbm'], '' ],
    'ldap-user'      => [ [qw(ldap authnz_ldap)], 'carol' ],
    'ldap-group'     => [ [qw(ldap authnz_ldap)], 'cn=staff' ],
    'ldap-attribute' => [ [qw(ldap authnz_ldap)], 'title=clerk' ],
    'ldap-dn'        => [ [qw(ldap authnz_ldap)], 'cn=carol' ],
    'ldap-filter'    => [ [qw(ldap authnz_ldap)], 'cn=carol' ],
);
my ($providers) = slurp(root() . '/mod_agent/config/exclusion.c') =~ /providers\[\] = \{(.*?)\}/s;
my @providers = $providers =~ /"([^"]+)"/g;
is_deeply [ sort keys %demands_user ], [ sort @providers ],
    'directives: each word that demands a user has a test';

# An exclusion beside such a line.
sub beside_user {
    my ($word) = @_;
    my ($modules, $args) = @{ $demands_user{$word} };
    return join '', (map { qq(LoadModule ${_}_module "\${MODULES}/mod_$_.so"\n) } @{$modules}), excluding('Require not agent-scope admin', "Require $word $args");
}

my @bad = (
    [ graph('AgentModel demo') . "AgentParking perhaps\n", 'AgentParking', 'On or Off', '' ],
    [ graph('AgentModel gpt'), 'AgentModel', 'demo, anthropic:NAME', 'gpt' ],
    [ graph('AgentModel anthropic:'), 'AgentModel', 'NAME', 'anthropic:' ],
    [ graph(), '<AgentGraph agent>', 'an AgentModel', 'none' ],
    [ graph('AgentModel demo') . graph('AgentModel demo'), '<AgentGraph>',
        'each name once', 'agent' ],
    [ graph('AgentModel demo') . "<VirtualHost *:1>\n" . graph('AgentModel demo') =~ s/\Q$RUNNER\E//r . "</VirtualHost>\n",
        '<AgentGraph>', q(each name once in a deployment, got 'agent' of 'default' at), 'httpd.conf:' ],
    (map { [ graph('AgentModel demo') . "AgentDeployment '$_'\n", 'AgentDeployment', '1 to 63 lower case letters', "'$_'" ] }
        'Shop', '-a', '_a', 'a.b', 'a/b', 'a b', 'a' x 64),
    (map { [ graph('AgentModel demo') . "AgentLimit $_->[0]\n", 'AgentLimit', @{$_}[ 1, 2 ] ] } [ 'hats 1', 'one of keys, queued_runs,', q('hats') ], [ 'none keys', 'and then its value', q('none') ],
        [ 'keys many', 'from 0 to 1000000000', q('many' for keys; `none` removes a limit) ],
        [ 'keys -1', 'from 0 to 1000000000', q('-1') ], [ 'keys 1000000001', 'from 0 to 1000000000', q('1000000001') ],
        (map { [ "stored_bytes $_", 'bytes from 0 to 1000000G', "'$_'" ] } '-1', '1000001G', '5T'),
        [ 'keys 1 account=shop', 'the id of an account', q('account=shop') ], [ "keys 1 $ACCOUNT", 'account=', "'$ACCOUNT'" ],
        (map { [ "$_\nAgentLimit keys 2", 'once', q('keys') ] } 'keys 1', 'keys none'),
        [ "keys 1 account=$ACCOUNT\nAgentLimit keys 1 account=" . uc $ACCOUNT, 'once', q('keys') ]),
    [ graph('AgentModel demo') . "<VirtualHost *:1>\nAgentLimit keys 1\n</VirtualHost>\n", 'AgentLimit', '', '' ],
    [ graph('AgentModel demo') . "<Location \"/x\">\n" . graph('AgentModel demo') =~ s/\Q$RUNNER\E//r . "</Location>\n",
        '<AgentGraph', 'not allowed in <Location> context', '' ],
    [ $RUNNER . "<AgentGraph \"a b\">\nAgentModel demo\n</AgentGraph>\n",
        '<AgentGraph>', 'letters', 'a b' ],
    [ $RUNNER . "<AgentGraph my agent>\nAgentModel demo\n</AgentGraph>\n",
        '<AgentGraph>', 'letters', q('my agent') ],
    [ graph('AgentModel demo', 'AgentMaxSteps 0'), 'AgentMaxSteps',
        'from 1 to 1000', q('0') ],
    [ graph('AgentModel demo', 'AgentMaxSteps many'), 'AgentMaxSteps',
        'whole number', 'many' ],
    [ graph('AgentModel demo', 'AgentModelURL ftp://x'), 'AgentModelURL',
        'http://', 'ftp://x' ],
    [ graph('AgentModel demo', "AgentModelKeyFile $dir/none"),
        'AgentModelKeyFile', 'readable file', "$dir/none" ],
    [ graph('AgentModel demo', 'AgentTool nothing builtin'), 'AgentTool',
        'clock or calculator', 'nothing' ],
    [ graph('AgentModel demo', 'AgentTool x'), 'AgentTool', 'NAME builtin',
        '1 arguments' ],
    [ graph('AgentModel demo', "AgentTool x GET http://a/ $schema"),
        'AgentTool', 'POST', 'GET' ],
    [ graph('AgentModel demo', "AgentTool x POST http://a/ $key"), 'AgentTool',
        'JSON', $key ],
    [ graph('AgentModel demo') . "AgentRunners 0\n", 'AgentRunners',
        'from 1 to 64', q('0') ],
    [ graph('AgentModel demo') . "AgentRunners 5x\n", 'AgentRunners',
        'whole number', '5x' ],
    (map { [ graph('AgentModel demo') . "AgentRunnerMemory $_\n",
        'AgentRunnerMemory', 'bytes from 64M to 1024G', qq('$_') ] }
        qw(-1 63M 1T 2GB 1025G M 9223372036854775807G)),
    [ graph('AgentModel demo') . "<VirtualHost *:1>\nAgentRunTimeout 25h\n</VirtualHost>\n",
        'AgentRunTimeout', 'from 1s to 1d', q('25h') ],
    [ graph('AgentModel demo') . "<Location />\nAgentRunTimeout 1h\n</Location>\n", 'AgentRunTimeout', 'not allowed', '' ],
    [ graph('AgentModel demo') . "<Location />\nAgentCallTimeout 6min\n</Location>\n", 'AgentCallTimeout', 'from 1s to 5min', q('6min') ],
    [ graph('AgentModel demo') . "<Location />\nAgentRunners 2\n</Location>\n", 'AgentRunners', 'not allowed', '' ],
    [ graph('AgentModel demo') . "<VirtualHost *:1>\nAgentRunners 65\n</VirtualHost>\n", 'AgentRunners',
        'from 1 to 64', q('65') ],
    [ graph('AgentModel demo') . "AgentRunnerFiles 63\n", 'AgentRunnerFiles', 'from 64 to 1048576', q('63') ],
    [ graph('AgentModel demo') . "AgentRunnerProcesses -1\n", 'AgentRunnerProcesses', 'from 0 to 1000000', q('-1') ],
    [ graph('AgentModel demo') . "AgentRunnerCgroup agents\n", 'AgentRunnerCgroup', 'the absolute path of a directory', q('agents') ],
    [ graph('AgentModel demo') . "AgentRunnerCgroup $dir\n", 'AGT0446: AgentRunnerCgroup', 'file system of cgroup v2', "'$dir' (statfs)" ],
    [ graph('AgentModel demo') . "AgentRunnerCgroup $dir/none\n", 'AgentRunnerCgroup', 'file system of cgroup v2', "'$dir/none' (open)" ],
    [ host('AgentRunnerCgroup /sys/fs/cgroup'), 'AgentRunnerCgroup', 'cannot occur within', '' ],
    (map { [ host('AgentDeployment shop', 'Include ' . file('pool.conf.' . (split)[0], "\n$_\n")),
        'AGT0405: ' . (split)[0], 'expected an AgentRunnerCgroup', (split)[0] . ':2 (for the deployment \'shop\')' ] }
        'AgentPoolMemory 1G', 'AgentPoolProcesses 500', 'AgentPoolCPU 150'),
    [ 'Include ' . file('pool.conf', "\n\nAgentPoolCPU 150\n") . "\n$RUNNER" . bare_host(), 'AGT0405: AgentPoolCPU',
        "none for '150'", 'pool.conf:3 (for the deployment \'default\')' ],
    [ graph('AgentModel demo') . "AgentPoolMemory 63M\n", 'AgentPoolMemory', 'bytes from 64M to 1024G', q('63M') ],
    [ graph('AgentModel demo') . "AgentPoolProcesses -1\n", 'AgentPoolProcesses', 'from 0 to 1000000', q('-1') ],
    [ graph('AgentModel demo') . "AgentPoolCPU 150%\n", 'AgentPoolCPU', 'whole number from 0 to 100000', q('150%') ],
    [ graph('AgentModel demo') . "AgentRunnerBusyTimeout 25h\n", 'AgentRunnerBusyTimeout', 'from 0 to 1d', q('25h') ],
    [ graph('AgentModel demo') . "AgentRunnerIdleTime 25h\n", 'AgentRunnerIdleTime', 'from 0 to 1d', q('25h') ],
    [ graph('AgentModel demo') . "AgentRunnerMaxRuns -1\n", 'AgentRunnerMaxRuns', 'whole number from 0 to 1000000000', q('-1') ],
    [ graph('AgentModel demo') . "AgentRunnerRecycleMemory 1M\n", 'AgentRunnerRecycleMemory', 'bytes from 64M to 1024G', q('1M') ],
    (map { [ host('AgentDeployment default', $_), '<AgentGraph>', 'the same directives of runners', q('other' of 'default') ] }
        'AgentRunnerMaxRuns 5', 'AgentRunnerRecycleMemory 1G'),
    [ host('AgentDeployment default', 'AgentRunners 2'), '<AgentGraph>',
        'the same directives of runners in all hosts that declare graphs of a deployment', q('other' of 'default') ],
    [ host('AgentDeployment default', 'AgentRunTimeout 5'), '<AgentGraph>', 'the same directives of runners', q('other' of 'default') ],
    [ join('', graph('AgentModel demo'), map { bare_host("AgentDeployment d$_", 'AgentRunners 48') } 1 .. 3), 'AgentRunners',
        'at most 142 runners of all pools together', 'got 145' ],
    (map { [ graph('AgentModel demo') . "AgentDBPoolWait $_\n", 'AgentDBPoolWait',
        'from 0 to 1min, a number with ms (milliseconds), s, min (minutes), h or d, or without a unit (ms)', qq('$_') ] }
        qw(-1 60001 61s 2min 1.5s 5m 5S 5sec 5x ms 1000000000ms)),
    (map { [ graph('AgentModel demo') . "AgentRunTimeout $_\n", 'AgentRunTimeout',
        'from 1s to 1d', qq('$_') ] } qw(0 999ms 25h 86401 1000001d 99999999999d)),
    (map { [ graph('AgentModel demo') . "AgentCallTimeout $_\n", 'AgentCallTimeout', 'from 1s to 5min', qq('$_') ] } qw(0 301 6min)),
    (map { [ graph('AgentModel demo') . "AgentDeployment shop $_\n", 'AgentDeployment', 'account= and the id of an account', "'$_'" ] }
        'account=Acme', 'account=', $ACCOUNT, "account=$ACCOUNT-1"),
    (map { [ graph('AgentModel demo') . "AgentRegion '$_'\n", 'AgentRegion', 'the name of a region, at most 16', "'$_'" ] }
        'EU', '1', '-', 'e u', 'eu_west', 'r' x 17),
    (map { [ graph('AgentModel demo') . "AgentWrongRegion $_\n", 'AgentWrongRegion', '403, 421 or 307', "'$_'" ] } qw(302 308 On)),
    (map { [ graph('AgentModel demo') . "AgentRegionURL $_->[0]\n", 'AgentRegionURL', $_->[1], $_->[2] ] }
        [ 'eu https://a', 'the name of a region, the URLs', 'got 2 values' ], [ 'eu https://a https://b https://c d', 'the name of a region, the URLs', 'got 5 values' ],
        [ 'EU https://a https://b', 'the name of a region, at most 16', q('EU') ],
        [ "eu https://a https://b\nAgentRegionURL eu https://c https://d", 'each region once', q('eu' twice) ],
        [ 'eu ftp://a https://b', 'http:// or https://', q('ftp://a') ], [ 'eu https://a b', 'http:// or https://', q('b') ],
        map { [ "eu https://a 'https://$_'", 'URLs like https://eu.api.example.com', "'https://$_'" ] }
            '', '/', 'b/', 'b?c', 'b#c', 'u@b', 'b"c', 'b<c', 'b>c', 'b c', ':80', "b;c"),
    (map { [ graph('AgentModel demo') . "AgentEgressAddress $_->[0]\n", 'AgentEgressAddress', $_->[1], $_->[2] ] }
        [ 'eu.example.com', 'addresses like', q('eu.example.com') ], [ '198.51.100.256', 'addresses like', q('198.51.100.256') ], [ '010.1.1.1', 'addresses like', q('010.1.1.1') ],
        [ '198.51.100.1/29', 'a block with no bits after its length', q('198.51.100.1/29') ], [ '[2001:db8::1]', 'without brackets', q('[2001:db8::1]') ],
        [ '2001:db8::1 198.51.100.1 2001:DB8:0::1', 'at most 64 addresses, each once', q('2001:DB8:0::1') ],
        [ join(' ', map { "198.51.100.$_" } 1 .. 65), 'at most 64 addresses, each once', q('198.51.100.65') ],
        [ 'until=2027-01-31', 'at least one address', 'none' ], [ 'until=2027-01-31 198.51.100.1', 'addresses like', q('until=2027-01-31') ],
        (map { [ "198.51.100.1 \"until=$_\"", 'until=YYYY-MM-DD', "'until=$_'" ] } '2027- 1-31', '2027-01- 1', ' 027-01-31'),
        map { [ "198.51.100.1 until=$_", 'until=YYYY-MM-DD', "'until=$_'" ] } '', qw(2027-1-31 2027-02-29 2027-04-31 2027-13-01 27-01-31 2027-01-31x 2027-01-311 tomorrow)),
    [ graph('AgentModel demo') . "AgentIngressAddress a\n", 'AgentIngressAddress', 'addresses like', q('a') ],
    [ graph('AgentModel demo') . "AgentAddressSerial -1\n", 'AgentAddressSerial', '0 to 2147483647', q('-1') ],
    (map { [ bare_host($_), (split)[0], 'cannot occur within', '' ] } 'AgentEgressAddress 198.51.100.1', 'AgentIngressAddress 198.51.100.1', 'AgentAddressSerial 1', 'AgentRegion eu', 'AgentRegionURL eu https://a https://b', 'AgentWrongRegion 403'),
    [ graph('AgentModel demo') . "AgentSignUp Yes\n", 'AgentSignUp', 'Off, On or Invitation', q('Yes') ],
    (map { [ graph('AgentModel demo') . "AgentTrustUserHeader $_\n", 'AgentTrustUserHeader', 'addresses like', "'$_'" ] }
        'proxy.example.com', '192.0.2.0/33', '2001:db8::/x', '192.0.2.256', '10', '192.0.2', '192.0.2.0/255.255.255.0'),
    [ graph('AgentModel demo') . "AgentTrustUserHeader 192.0.2.1/8\n", 'AgentTrustUserHeader', 'a block with no bits after its length', q('192.0.2.1/8') ],
    (map { [ graph('AgentModel demo') . "AgentTrustUserHeader $_\n", 'AgentTrustUserHeader', 'None alone', 'beside another value' ] }
        'None 192.0.2.1', '192.0.2.1 None'),
    (map { [ graph('AgentModel demo') . "<Location />\nRequire agent-$_->[0] $_->[1]\n</Location>\n", "Require agent-$_->[0]", "expected $_->[2]", "'$_->[1]'" ] }
        [ account => 'Acme', 'ids of accounts' ], [ scope => 'all', 'read, run, deploy or admin' ], (map { [ deployment => $_, 'names of deployments' ] } 'Shop', '-shop')),
    (map { [ graph('AgentModel demo') . "AgentConfigurableHeaders $_\n", 'AgentConfigurableHeaders', 'None, or at most 64 names of headers', "'$_'" ] }
        qw(x-*-y *x ! user_id Thread_Id langgraph_auth_user langgraph_* __* x:)),
    (map { [ graph('AgentModel demo') . "AgentConfigurableHeaders $_->[0]\n", 'AgentConfigurableHeaders',
        'names that ! does not leave out again', $_->[1] ] }
        [ 'x-a x-secret !x-secret', q('x-secret' beside '!x-secret') ], [ 'x-a !x-*', q('x-a' beside '!x-*') ],
        [ "x-a !y\nAgentConfigurableHeaders y", q('y' beside '!y') ]),
    [ graph('AgentModel demo') . "AgentConfigurableHeaders !x-* x-a\n", 'AgentConfigurableHeaders', 'a name before those that ! leaves out', q('!x-*' first) ],
    (map { [ graph('AgentModel demo') . "AgentConfigurableHeaders $_\n", 'AgentConfigurableHeaders', 'None alone', 'beside another value' ] }
        'x-* None', 'None x-*'),
    [ graph('AgentModel demo') . 'AgentConfigurableHeaders ' . join(' ', map { "x-$_" } 1 .. 65) . "\n",
        'AgentConfigurableHeaders', 'at most 64 names', q('x-65') ],
    (map { [ graph('AgentModel demo') . "AgentStoreTTL $_\n", 'AgentStoreTTL', 'from 1min to 3650d', qq('$_') ] } qw(0 59s None 30m)),
    [ graph('AgentModel demo') . "<Location />\nAgentStoreTTL 1h\n</Location>\n", 'AgentStoreTTL', 'not allowed', '' ],
    [ host('AgentDeployment default', 'AgentStoreTTL 5'), '<AgentGraph>', 'the same directives of runners', q('other' of 'default') ],
    (map { [ graph('AgentModel demo') . "AgentThreadTTL $_\n", 'AgentThreadTTL',
        'from 1min to 3650d, a number with ms (milliseconds), s, min (minutes), h or d, or without a unit (min), or Off', qq('$_') ] }
        qw(0 59s 5256001 3651d None -1 30m)),
    [ graph('AgentModel demo') . "AgentAuditRetention 29\n", 'AgentAuditRetention', 'from 30d to 3650d in steps of 1d', q('29') ],
    (map { [ graph('AgentModel demo') . "AgentEventRetention $_\n", 'AgentEventRetention',
        'from 1d to 3650d in steps of 1d', qq('$_') ] } qw(0 23h 36h 3651d 1500min)),
    [ graph('AgentModel demo', 'AgentModelTimeout 61min'), 'AgentModelTimeout',
        'from 1s to 1h', q('61min') ],
    [ "AgentModelTimeout 5s\n", 'AgentModelTimeout', 'inside <AgentGraph', 'outside' ],
    [ graph('AgentModel demo') . "<VirtualHost *:1>\nAgentDrainTimeout 1h\n</VirtualHost>\n",
        'AgentDrainTimeout', 'cannot occur within', '' ],
    [ graph('AgentModel demo') . "AgentPrefix x\n", 'AgentPrefix',
        'begins with /', q('x') ],
    (map { [ graph('AgentModel demo') . "AgentMaxBody $_\n", 'AgentMaxBody',
        'bytes from 1K to 7M', $_ ] } qw(0 12 8M 4MB 7340033)),
    [ graph('AgentModel demo') . "AgentMultitaskDefault any\n",
        'AgentMultitaskDefault', 'reject, enqueue', 'any' ],
    [ graph('AgentModel demo') . "AgentFeedbackURL /{run_id}/{key}\n",
        'AgentFeedbackURL', 'a URL with http:// or https://', '/{run_id}/{key}' ],
    [ graph('AgentModel demo') . "AgentFeedbackURL https://x/{key}\n",
        'AgentFeedbackURL', 'with {run_id} and {key}', 'https://x/{key}' ],
    [ graph('AgentModel demo') . "AgentRunner /nowhere/agent-runner\n",
        'AgentRunner', 'the path', "'/nowhere/agent-runner' (No such file or directory)" ],
    [ graph('AgentModel demo') . "AgentRunner /etc/passwd\n",
        'AgentRunner', 'the path', "'/etc/passwd' (not executable)" ],
    [ graph('AgentModel demo') . "AgentRunner /etc\n", 'AgentRunner', 'the path', "'/etc' (not a file)" ],
    [ "AgentMaxSteps 5\n", 'AgentMaxSteps', 'inside <AgentGraph', 'outside' ],
    [ graph('AgentModel demo') . "AgentWebhooks maybe\n", 'AgentWebhooks',
        'On or Off', '' ],
    [ graph('AgentModel demo') . "AgentWebhookTimeout 0\n",
        'AgentWebhookTimeout', 'from 1s to 5min', q('0') ],
    [ graph('AgentModel demo') . "AgentWebhookAllow 10.0.0.0/8 10.0.0.1/8\n",
        'AgentWebhookAllow', 'no bits after its length', q('10.0.0.1/8') ],
    (map { [ graph('AgentModel demo') . "AgentWebhookDeny $_->[0]\n", 'AgentWebhookDeny',
        $_->[1], "'$_->[0]'" ] }
        [ '10.0.0.1/8', 'no bits after its length' ], [ 'hooks.internal', 'addresses, no names' ],
        [ '[::1]', 'without brackets' ], [ '10.0.0.300', 'addresses like' ],
        [ '::ff00:0:0/88', 'an IPv4 block' ]),
    [ graph('AgentModel demo') . "AgentWebhookAllow http://example.com/\n",
        'AgentWebhookAllow', 'a host name', 'http://example.com/' ],
    [ graph('AgentModel demo') . "AgentWebhookDeny 10.0.0.0/8 hooks.internal\n",
        'AgentWebhookDeny', 'addresses, no names', q('hooks.internal') ],
    (map { [ graph('AgentModel demo') . "AgentAllowOrigin https://a.example $_\n",
        'AgentAllowOrigin', 'origins like', $_ ] }
        qw(null app.example.com https://*example.com https://app.example.com/ https://a:b ftp://x)),
    (map { [ graph('AgentModel demo') . "AgentAllowOriginMatch $_\n", 'AgentAllowOriginMatch', 'a regular expression', "got '" ] }
        'https://(', '[a', 'a)|(?:b'),
    (map { [ graph('AgentModel demo') . "AgentAllowOrigin $_\n", 'AgentAllowOrigin',
        'None alone', 'beside another value' ] } 'None https://a.example', 'https://a.example None', '* None', 'None *'),
    (map { [ graph('AgentModel demo') . "AgentAllowOrigin $_\n", 'AgentAllowOrigin', '* alone', 'beside another value' ] }
        '* https://a.example', 'https://a.example *'),
    (map { [ graph('AgentModel demo', "AgentTool x POST http://a/ " . file('other.json', $_)),
        'AgentTool', '"type": "object"', 'other.json' ] } '{}', '[]', '{"type":"string"}'),
    [ graph('AgentModel demo') . "AgentWebhookPorts 80 0\n",
        'AgentWebhookPorts', 'from 1 to 65535', q('0') ],
    (map { [ graph('AgentModel demo') . "AgentWebhookOrigin https://a.example $_\n",
        'AgentWebhookOrigin', 'expected https, or origins like', "'$_'" ] } '*', 'http', 'https://*', 'ftp://a.example', 'tauri://localhost', 'https://a.example/x'),
    [ graph('AgentModel demo') . "AgentWebhookPorts 90-80\n",
        'AgentWebhookPorts', '8000-8999', '90-80' ],
    [ graph('AgentModel demo') . "AgentWebhookSecretFile $dir/none\n",
        'AgentWebhookSecretFile', 'readable file', "$dir/none" ],
    (map { [ graph('AgentModel demo') . "AgentWebhookSecretFile $_\n",
        'AgentWebhookSecretFile', 'whsec_ and 24 to 64 bytes in base64', $_ ] }
        $short, $long, $odd, file('empty', '')),
    [ graph('AgentModel demo') . (join '', map { "<VirtualHost *:1>\nAgentDeployment shop\nAgentWebhookSecretFile $_\n</VirtualHost>\n" }
            $secret, $bare),
        'AgentWebhookSecretFile', 'the same secret in all hosts', q('shop') ],
    (map { [ graph('AgentModel demo') . "AgentWebhookHeader $_->[0] $_->[1]\n", 'AgentWebhookHeader', $_->[2], "'$_->[0]'" ] }
        [ 'Host', 'a', 'a header that deliveries do not have' ], [ 'webhook-id', 'a', 'a header that deliveries do not have' ],
        [ 'a:', 'b', 'a header that deliveries do not have' ], [ 'a', '" b"', 'bytes of one line' ],
        map { [ 'a', $_, 'variables httpd knows' ] } '${NO_SUCH_VARIABLE}', '%{osenv:NO_SUCH_VARIABLE}', '%{osenv:PATH', '%{osenv:PA-TH}', '%{osenv:}'),
    [ graph('AgentModel demo') . (join '', map { "<VirtualHost *:1>\nAgentDeployment shop\nAgentWebhookHeader $_\n</VirtualHost>\n" } 'a b', 'A c'),
        'AgentWebhookHeader', 'one value', q('shop') ],
    [ graph('AgentModel demo')
            . "<VirtualHost *:1>\nAgentWebhookAllow 10.0.0.1\n</VirtualHost>\n",
        'AgentWebhookAllow', 'cannot occur within', '' ],
    [ graph('AgentModel demo')
            . "<VirtualHost *:1>\nAgentRunner /bin/true\n</VirtualHost>\n",
        'AgentRunner', 'cannot occur within', '' ],
    (map { my ($lines, $instead) = @{$_}; [ $ALIASES . excluding(split / ; /, $lines),
        'AGT0405: Require: expected no <AuthzProviderAlias> of agent-', "write $instead in its place", $lines =~ /(banned|crew|this) ?;/ ] }
        [ 'Require not this ; Require agent-scope read', 'Require not agent-deployment' ],
        [ 'Require not banned ; Require agent-scope read', "Require not agent-account $ACCOUNT" ],
        [ 'AuthType Basic ; Require valid-user ; <RequireNone> ; Require banned ; </RequireNone>', "Require agent-account $ACCOUNT" ],
        [ '<RequireNone> ; <RequireAll> ; Require all granted ; Require "not" crew ; </RequireAll> ; </RequireNone> ; Require all granted', 'Require not agent-scope deploy admin' ]),
);
my @refused = check_each(map { $_->[0] } @bad);
for my $case (@bad) {
    my (undef, $name, $expected, $given) = @$case;
    my ($ok, $output) = @{ shift @refused };
    ok !$ok, "directives: $name $given is refused";
    like $output, qr/\Q$name\E.*\Q$expected\E/s, "directives: the error of $name $given names the expected value";
    like $output, qr/\Q$given\E/, "directives: the error of $name $given names the given value";
    unlike $output, qr/no-base64-but-a-secret/, "directives: the error of $name $given contains no secret";
}

SKIP: {
    skip AgentTest::Cgroup::why_not(), 3 if !$cgroup;
    my ($ok, $output) = check(graph('AgentModel demo') . 'AgentRunnerCgroup ' . $cgroup->dir . "\n");
    ok $ok, 'directives: a cgroup without processes is accepted' or diag $output;
    my $pid = open(my $process, '|-') // die "fork: $!\n";
    POSIX::_exit(defined <STDIN> ? 1 : 0) if !$pid;
    write_file($cgroup->dir . '/cgroup.procs', $pid);
    ($ok, $output) = check(graph('AgentModel demo') . 'AgentRunnerCgroup ' . $cgroup->dir . "\n");
    close $process or die "the process in the cgroup ended with $?\n";
    ok !$ok, 'directives: a cgroup with a process is refused without limits too';
    like $output, qr/AGT0446: .*: expected a cgroup without processes/, 'directives: the error says that a process is in the cgroup';
}

SKIP: {
    skip AgentTest::Cgroup::why_not(), 2 if !$cgroup;
    skip 'cgroup v2 of this machine has the controller memory', 2 if grep { $_ eq 'memory' } $cgroup->controllers;
    my ($ok, $output) = check(graph('AgentModel demo') . 'AgentRunnerCgroup ' . $cgroup->dir . "\nAgentPoolMemory 1G\n");
    ok !$ok, 'directives: a limit whose controller is missing is refused';
    like $output, qr/AGT0446: .*the controller memory, which AgentPoolMemory needs, got '\S+' \(cgroup\.controllers\)/, 'directives: the error names the missing controller';
}

SKIP: {
    skip 'runners have a user of their own where httpd is started by root', 8 if $> != 0;
    for my $user (qw(nosuch-user root)) {
        my ($ok, $output) = check(graph('AgentModel demo') . "AgentRunnerUser $user\n");
        ok !$ok, "directives: AgentRunnerUser $user is refused";
        like $output, qr/AGT0403: AgentRunnerUser: expected a user .* other than root, got '$user'/,
            "directives: the error of AgentRunnerUser $user names the expected value";
        unlike $output, qr/AGT0406/, "directives: the error of AgentRunnerUser $user is logged once";
    }
    my ($ok, $output) = check(graph('AgentModel demo') . "AgentRunnerUser nobody\n");
    ok $ok, 'directives: AgentRunnerUser nobody is accepted' or diag $output;
    my $known = AgentTest::Server->new(config => AgentTest::Server::shared_config()
        . "AgentRunnerUser postgres\n"
        . "AgentMaxWaiters 10\nAgentMaxWaitersPerAddress 10\n");
    $known->start;
    like $known->error_log, qr/AGT0440: runners run as postgres/,
        'directives: a user known to PostgreSQL is warned of';
    like $known->error_log, qr/AGT0442: AgentMaxWaitersPerAddress: .* the 10 requests .* got 10/,
        'directives: AgentMaxWaitersPerAddress not below AgentMaxWaiters is warned of';
}

{
    my $silent = file('silent.json', '{"type":"object"}');
    my ($ok, $output) = check(graph('AgentModel demo', "AgentTool x POST http://a/ $silent"));
    ok $ok, 'directives: a tool without a description is accepted';
    like $output, qr/AGT0441: AgentTool x: expected a description/, 'directives: a tool without a description is warned of';
    (undef, $output) = check(graph('AgentModel demo', "AgentTool x POST http://a/ $silent described"));
    unlike $output, qr/AGT0441/, 'directives: a tool with a description is not warned of';
}

# Warnings of a check of the configuration, which httpd makes before it opens its log.
{
    my $server = AgentTest::Server->new(config => AgentTest::Server::shared_config() . excluding('Require not agent-scope admin', 'Require all granted')
        . "AgentRegionURL us https://a https://b\nCustomLog \${DIR}/logs/all %h\nAgentRunnerMemory 512M\nAgentRunnerRecycleMemory 512M\n"
        . "AgentEgressAddress 198.51.100.1 until=2026-01-31\n<VirtualHost *:1>\nAgentDeployment shpo\nAgentRunners 2\n</VirtualHost>\n");
    $server->start;
    my @warnings = $server->error_log =~ /\[agent:warn\] .*?(AGT04(?:4[458]|5[367]|60)): /g;
    is join(' ', sort @warnings), 'AGT0444 AGT0445 AGT0448 AGT0453 AGT0456 AGT0457 AGT0460',
        'directives: the warnings of a start are in the error log, each once';
}

# ---- directives without effect ----

{
    my $demo = "<AgentGraph other>\nAgentModel demo\n</AgentGraph>\n";
    my $shop = graph('AgentModel demo') . "<VirtualHost *:1>\nAgentDeployment shop\n$demo</VirtualHost>\n";
    my $section = qq(<Location "/x">\nAgentDeployment shop\n</Location>\n);
    my @warned = (
        [ 'a deployment whose name is misspelt', "$shop<VirtualHost *:2>\nAgentDeployment shpo\n</VirtualHost>\n",
            qr/AGT0444: AgentDeployment: expected .* a graph, got 'shpo' at \S+httpd\.conf:\d+: .*runs$/m ],
        [ 'the deployment of a location beside <AgentGraph>', graph('AgentModel demo') . $section,
            qr/AGT0444: .*'shop' at \S+:\d+: .*outside of locations$/m ],
        [ 'a deployment that is named twice', "$shop$section<VirtualHost *:2>\nAgentDeployment shpo\n"
                . qq(<Location "/y">\nAgentDeployment shpo\n</Location>\n</VirtualHost>\n),
            qr/AGT0444: .*'shpo' at (\S+):\d+, \1:\d+: only/m ],
        [ 'a deployment of a server without graphs', "AgentDeployment shop\n", qr/AGT0444: .*'shop'/ ],
        [ 'a deployment of an account without AuthType AgentKey', host("AgentDeployment shop account=$ACCOUNT"),
            qr/AGT0450: AgentDeployment: expected AuthType AgentKey .* at \S+httpd\.conf:\d+: it answers 401$/m ],
        [ 'a deployment of an account with AuthType AgentKey in another host', $AUTHN . host("AgentDeployment shop account=$ACCOUNT")
                . "<VirtualHost *:2>\n$AGENT_KEY</VirtualHost>\n", qr/AGT0450/ ],
        (map { [ "$_ in a virtual host without graphs", graph('AgentModel demo') . "<VirtualHost *:1>\n$_ 64\n</VirtualHost>\n",
            qr/AGT0445: $_: expected in a host with a graph.* at \S+httpd\.conf:\d+: it has no effect$/m ] }
            qw(AgentRunners AgentPoolProcesses AgentPoolCPU),
            map { "AgentRunner$_" } qw(User Slots Files Processes IdleTime BusyTimeout MaxRuns)),
        (map { [ "$_ in a virtual host without graphs", graph('AgentModel demo') . "<VirtualHost *:1>\n$_ 1G\n</VirtualHost>\n",
            qr/AGT0445: $_: / ] } qw(AgentRunnerMemory AgentRunnerRecycleMemory AgentPoolMemory)),
        [ 'AgentRunnerRecycleMemory that is AgentRunnerMemory', graph('AgentModel demo') . "AgentRunnerMemory 512M\nAgentRunnerRecycleMemory 512M\n",
            qr/AGT0448: AgentRunnerRecycleMemory: expected less than AgentRunnerMemory \(512M\), got '512M' at \S+httpd\.conf:\d+: / ],
        [ 'AgentRunnerRecycleMemory of more than the default of AgentRunnerMemory, in a host that inherits it',
            "AgentRunnerRecycleMemory 2G\n" . host('AgentDeployment shop', 'AgentRunnerMemory 4G'),
            qr/AGT0448: .* AgentRunnerMemory \(1G by default\), got '2G' at / ],
        [ 'an AgentRegionURL of another region only', graph('AgentModel demo') . "AgentRegionURL us https://a https://b\n",
            qr/AGT0453: AgentRegionURL: expected the URLs of this server's own region too, got none of 'local' \(AgentRegion\)$/m ],
        (map { [ "the access log $_ of a server with regions", "AgentRegion eu\n$FORENSIC" . graph('AgentModel demo') . "$_\n",
            qr/AGT0457: \w+: expected a CustomLog with env=!agent_wrong_region, got none at \S+httpd\.conf:\d+: / ] }
            'CustomLog logs/a "%h %r"', 'CustomLog logs/a "%h" env=!other', 'CustomLog logs/a "%h" env=!agent_wrong_region_x',
            'CustomLog logs/a "%h env=!agent_wrong_region"', 'CustomLog logs/a "%h expr=agent_wrong_region"', 'GlobalLog logs/a "%h" env=agent_wrong_region', 'CustomLog logs/a "%{agent_wrong_region}e"', 'GlobalLog logs/a "%h"', 'TransferLog logs/a',
            'ForensicLog logs/a'),
        [ 'an access log of a virtual host of a server with a platform host', qq(<Location "/p">\nSetHandler agent-platform\n</Location>\n)
            . qq(<VirtualHost *:2>\n<IfModule log_config_module>\nCustomLog logs/a "%h"\n</IfModule>\n</VirtualHost>\n), qr/AGT0457: CustomLog: / ],
        (map { [ "an $_ whose last day is past", graph('AgentModel demo') . "$_ 198.51.100.1 until=2026-01-31\n",
            qr/AGT0456: $_: expected until=\d{4}-\d\d-\d\d or later, got 198\.51\.100\.1 until=2026-01-31: / ] } qw(AgentEgressAddress AgentIngressAddress)),
        (map { [ "the header $_", graph('AgentModel demo') . "AgentConfigurableHeaders x-* $_\n",
            qr/AGT0449: AgentConfigurableHeaders: expected no header with credentials, got '$_' at \S+httpd\.conf:\d+: / ] }
            qw(Authorization cookie)),
        (map { [ "an exclusion with $_", excluding(split / ; /), qr/AGT0460: Require: expected a line that demands a key beside '(?:"?not"? )?"?agent-\w+"? \S+', got none at \S+httpd\.conf:\d+: it excludes $NOBODY$/im ] }
            "Require not agent-account $ACCOUNT ; Require all granted", 'Require "not" "agent-scope" admin ; Require "all" granted', 'require NOT agent-scope admin ; Require local ; Require not ip 192.0.2.1',
            "<RequireNone> ; Require agent-account $ACCOUNT ; </RequireNone> ; Require all granted",
            'Require not agent-scope admin ; <RequireAny> ; Require agent-scope read ; Require local ; </RequireAny>',
            'AuthMerging And ; Require not agent-deployment desk ; Require method GET',
            '<Limit GET> ; <RequireAll> ; Require local ; Require not agent-scope admin ; </RequireAll> ; </Limit>',
            'Require not agent-scope admin ; <RequireAny> ; Require agent-scope read ; Require ip 192.0.2.1 ; </RequireAny>',
            "AuthType Basic ; Require valid-user ; Require not agent-account $ACCOUNT",
            'AuthType AgentKey ; AuthType "Basic" ; <RequireAny> ; Require agent-scope read ; Require user a ; </RequireAny> ; Require not agent-scope admin'),
        (map { [ "an exclusion beside an alias with $_", $ALIASES . excluding(split / ; /), qr/AGT0460: .* beside '(?:not )?agent-scope admin', got none at \S+httpd\.conf:\d+: it excludes $NOBODY$/m ] }
            '<RequireNone> ; Require agent-scope admin ; </RequireNone> ; Require nearby', 'Require not agent-scope admin ; Require everybody'),
        (map { my ($whom, $type, $line) = @{$_}; [ "$line, $type", $ALIASES . excluding('Require all granted', $line) =~ s/^AuthType .*\n/$type/mr, qr/AGT0460: .*\d: it excludes $whom$/m ] }
            (map { [ 'everybody without a user', "AuthType $_->[0]\n", $_->[1] ] } [ 'Basic', "Require not agent-account $ACCOUNT" ], [ 'None', 'Require not agent-scope admin' ]),
            (map { [ "$NOBODY, or everybody without a user where no AuthType AgentKey applies", $_, "Require not agent-account $ACCOUNT" ] }
                '', map { "$_<If \"-n req('x-api-key')\">\nAuthType AgentKey\n</If>\n<Else>\nAuthType Basic\n</Else>\n" } '', "AuthType AgentKey\n", "AuthType Basic\n"),
        ),
    );
    my @silent = (
        (map { [ "an exclusion by an alias with $_", $ALIASES . excluding(split / ; /) ] }
            'Require not agent-scope deploy ; Require admins ; Require nearby', 'Require not nearby ; Require all granted'),
        (map { [ "an exclusion with $_", excluding(split / ; /) ] }
            "Require not agent-account $ACCOUNT ; Require agent-scope read", 'Require not agent-scope admin ; Require all granted ; Require valid-user',
            "<RequireNone> ; Require agent-account $ACCOUNT ; </RequireNone> ; Require agent-scope read",
            'Require not agent-scope admin ; <RequireAny> ; Require agent-scope read ; Require valid-user ; </RequireAny>',
            'Require not agent-scope admin ; Require all denied', 'AuthType Basic ; AuthType "agentkey" ; Require valid-user ; Require not agent-scope admin',
            'AuthType Basic ; Require agent-scope read ; Require not agent-scope admin',
            'AuthType Basic ; Require "agent-scope" read ; Require not agent-scope admin', 'AuthMerging And ; Require not agent-scope admin ; Require agent-scope read',
            'Require agent-scope read ; <RequireAll> ; Require not agent-scope admin ; Require all granted ; </RequireAll>',
            'Require not ip 192.0.2.1 ; Require all granted'),
        (map { [ "an exclusion beside Require $_", beside_user($_) ] } sort keys %demands_user),
        [ 'a deployment with graphs in another virtual host', "$shop<VirtualHost *:2>\nAgentDeployment shop\n</VirtualHost>\n$section" ],
        (map { [ 'a deployment of an account with AuthType AgentKey in its host', $AUTHN . host("AgentDeployment shop account=$ACCOUNT", $_) ] }
            $AGENT_KEY =~ s/\n\z//r, qq(<Location "/x">\nAuthType "agentkey"\n</Location>)),
        [ 'a deployment of an account with AuthType AgentKey in the main server', $AUTHN . $AGENT_KEY . host("AgentDeployment shop account=$ACCOUNT") ],
        [ 'AgentRunners in the host with the graphs', host('AgentDeployment shop', 'AgentRunners 2') ],
        [ 'AgentRunners of a main server without graphs', "AgentRunners 2\n" ],
        [ 'AgentRunners outside of the only host with graphs', "${RUNNER}AgentRunners 2\n" . bare_host() ],
        (map { [ "AgentRunnerRecycleMemory $_->[0] below AgentRunnerMemory $_->[1]",
            graph('AgentModel demo') . "AgentRunnerRecycleMemory $_->[0]\nAgentRunnerMemory $_->[1]\n" ] }
            [ '512M', '1G' ], [ '2G', '0' ], [ '0', '64M' ]),
        [ 'AgentRunnerRecycleMemory in a host with more memory', graph('AgentModel demo') . bare_host(
            'AgentDeployment shop', 'AgentRunnerMemory 2G', 'AgentRunnerRecycleMemory 1G') ],
        [ 'an AgentRegionURL of each region', graph('AgentModel demo') . "AgentRegionURL us https://a https://b\nAgentRegionURL local https://c https://d\n" ],
        (map { [ "an access log with $_", "AgentRegion eu\n" . graph('AgentModel demo') . "CustomLog logs/a %h $_\n" ] }
            'env=!agent_wrong_region', '"ENV=!Agent_Wrong_Region"', q("expr=-z reqenv('agent_wrong_region')")),
        [ 'an access log of a server without regions', graph('AgentModel demo') . "CustomLog logs/a %h\n" ],
        [ 'an address that is in use', graph('AgentModel demo') . "AgentEgressAddress 198.51.100.1 until=9999-12-31\n" ],
        [ 'a header without credentials', graph('AgentModel demo') . "AgentConfigurableHeaders x-* !cookie\n" ],
    );
    my @results = check_each(map { $_->[1] } @warned, @silent);
    for my $case (@warned) {
        my ($ok, $output) = @{ shift @results };
        ok $ok, "directives: $case->[0] is accepted" or diag $output;
        like $output, $case->[2], "directives: $case->[0] is warned of";
        is scalar(() = $output =~ /AGT04(?:4[4589]|5[013679]|60)/g), 1, "directives: $case->[0] is warned of once";
    }
    for my $case (@silent) {
        my ($ok, $output) = @{ shift @results };
        unlike $output, qr/AGT04(?:4[4589]|5[013679]|60)/, "directives: $case->[0] is not warned of";
    }
}

# ---- keys without a database ----
{
    my $bare = AgentTest::Server->new(config => "$AUTHN$AGENT_KEY");
    my $frame = file('frame.conf', slurp(root() . '/t/conf/httpd.conf') =~ s/^DBD.*\n//gmr);
    write_file($bare->{conf}, slurp($bare->{conf}) =~ s{"\$\{ROOT\}/t/conf/httpd.conf"}{"$frame"}r);
    my ($ok, $output) = $bare->check_config;
    ok $ok, 'directives: AuthType AgentKey without a database is accepted' or diag $output;
    like $output, qr/AGT0451: AuthType AgentKey: expected a database of keys/, 'directives: AuthType AgentKey without a database is warned of';
}

# ---- locations, and secrets in the log ----
my $server = AgentTest::Server->new(config => AgentTest::Server::shared_config()
    . qq(<AgentGraph other>\nAgentModel openai:m\nAgentModelKeyFile $key\n)
    . qq(AgentModelURL http://127.0.0.1:1/v1\n</AgentGraph>\n)
    . qq(<Location "/deep">\nAgentPrefix /deep\nAgentMultitaskDefault enqueue\n)
    . qq(</Location>\n<Location "/deep/small">\nAgentPrefix /deep/small\n)
    . qq(AgentMaxBody 1024\n</Location>\n<Location "/deep/limited">\n)
    . qq(AgentPrefix /deep/limited\nLimitRequestBody 200\n</Location>\n)
    . qq(<Location "/deep odd">\nAgentPrefix "/deep odd"\n</Location>\n)
    . "ThreadsPerChild 40\nMaxRequestWorkers 400\nDBDMax 50\n");
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

my $thread = $client->post('/deep/threads', {})->{json}{thread_id};
ok $thread, 'directives: AgentPrefix precedes /threads in paths';
like $client->post('/deep%20odd/runs', { assistant_id => 'agent' })->{headers}{'content-location'},
    qr{\A/deep%20odd/runs/}, 'directives: AgentPrefix is encoded in Content-Location';
my $run = $client->post("/deep/threads/$thread/runs", run_body('sleep 60000'));
is $run->{headers}{'content-location'},
    "/deep/threads/$thread/runs/$run->{json}{run_id}",
    'directives: AgentPrefix precedes paths in responses';
my $second = $client->post("/deep/threads/$thread/runs", { assistant_id => 'agent' });
is $second->{status}, 200, 'directives: AgentMultitaskDefault applies to its location';
is $second->{json}{multitask_strategy}, 'enqueue', 'directives: AgentMultitaskDefault is the strategy of the run';
is $client->post("/threads/$thread/runs", { assistant_id => 'agent' })->{status},
    409, 'directives: AgentMultitaskDefault does not apply to other locations';
is $client->post("/deep/small/threads/$thread/runs", { assistant_id => 'agent' })
    ->{status}, 200, 'directives: an inner location inherits AgentMultitaskDefault';
is $client->post('/deep/small/threads', '{"metadata":{}}' . ' ' x 1100)->{status},
    413, 'directives: AgentMaxBody applies to its location';
is $client->post('/deep/threads', '{"metadata":{}}' . ' ' x 1100)->{status}, 200,
    'directives: AgentMaxBody does not apply to the outer location';
my $limited = $client->post('/deep/limited/threads', '{"metadata":{}}' . ' ' x 300);
is $limited->{status}, 413, "directives: httpd's LimitRequestBody applies as well";
is $limited->{json}{code}, 'body_too_large', 'directives: LimitRequestBody has the error code of AgentMaxBody';

my $keyed = $client->post('/threads', {})->{json}{thread_id};
my $failed = $client->create_run($keyed, 'hello', assistant_id => 'other');
$client->join_run($failed);
my $record = $client->get_run($failed);
is $record->{status}, 'error',
    'directives: a model that is unreachable ends the run in error';
like $record->{error}{message}, qr/127\.0\.0\.1/,
    'directives: the error of an unreachable model names its address';
like $server->error_log, qr/AGT0317: max_connections: expected room for the 413 connections .* \(10 children with 41 each, .* got \d+: lower DBDMax/,
    'directives: more database connections of all children than max_connections are warned of at start';
unlike $server->error_log, qr/secret-key-of-the-test/,
    'directives: the key of a model is not in the log';
$client->delete("/threads/$thread");

undef $server;
undef $cgroup;
done_testing;
