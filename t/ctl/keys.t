# SPDX-License-Identifier: Apache-2.0
# agentctl account and agentctl key: what they print, their exit statuses, and who may use them.
use strict;
use warnings;
use AgentTest::Database qw(sql);
use AgentTest::Env qw(build_dir root slurp);
use AgentTest::Postgres;
use Cpanel::JSON::XS;
use Digest::SHA qw(sha256_hex);
use Test::More;

my $program = build_dir() . '/agentctl';
my $cluster = AgentTest::Postgres->new;
@ENV{qw(PGHOST PGUSER PGDATABASE)} = ($cluster->host, 'postgres', 'agent');
my $operator = $cluster->conninfo('operator');

# (exit status, standard output, standard error)
sub run {
    my ($conninfo, @words) = @_;
    my $command = join ' ', map { s/'/'\\''/gr =~ s/(.*)/'$1'/sr } $program, @words, defined $conninfo ? ('--database', $conninfo) : ();
    my $errors = $cluster->host . '/errors';
    my $output = qx($command 2>$errors);
    return ($? >> 8, $output, slurp($errors));
}

sub ctl { return run($operator, @_) }

# The output of a command that succeeds, without its end of line.
sub output_of {
    my ($status, $output, $errors) = ctl(@_);
    is $status, 0, "'@_' succeeds" or diag $errors;
    chomp $output;
    return $output;
}

sub records { return map { decode_json($_) } split /\n/, output_of(@_, '--json') }

# A command that is refused prints nothing but the reason.
sub refused {
    my ($expected, $pattern, $title, @words) = @_;
    my ($status, $output, $errors) = ctl(@words);
    is "$status|$output", "$expected|", $title;
    like $errors, $pattern, "$title: the last line says why";
    return;
}

# Like ctl(), with standard input.
sub ctl_with_input {
    my ($input, @words) = @_;
    my $errors = $cluster->host . '/errors';
    pipe my $from, my $to or die "pipe: $!";
    my $pid = open my $output, '-|';
    if (!$pid) {
        close $to;
        open STDIN, '<&', $from or die "stdin: $!";
        open STDERR, '>', $errors or die "$errors: $!";
        exec $program, @words, '--database', $operator or die "exec: $!";
    }
    close $from;
    print {$to} $input;
    close $to;
    my $printed = do { local $/ = undef; <$output> } // '';
    close $output;
    return ($? >> 8, $printed, slurp($errors));
}

# (status, what a terminal shows) of a command on a terminal of its own, into which the
# line is typed after the prompt.
sub ctl_on_terminal {
    my ($prompt, $line, @words) = @_;
    open my $shown, '-|', 'python3', '-c', <<'PYTHON', $prompt, $line, $program, @words, '--database', $operator or die "python3: $!";
import os, pty, sys
prompt, line, *command = [os.fsencode(word) for word in sys.argv[1:]]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(command[0], command)
shown, is_typed = b"", False
while True:
    try:
        shown += os.read(terminal, 4096)
    except OSError:
        break
    if not is_typed and shown.endswith(prompt):
        is_typed = os.write(terminal, line) > 0
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
sys.stdout.flush()
os.write(1, shown)
PYTHON
    chomp(my $status = <$shown>);
    my $text = do { local $/ = undef; <$shown> } // '';
    close $shown;
    return ($status, $text =~ s/\r//gr);
}

# The text that a terminal shows of a command that gets a signal, or a byte of a key, at its first
# prompt, and an empty line at the next one; in brackets how it stopped or ended, and
# whether the terminal had its echo then.
sub ctl_interrupted {
    my ($prompt, $by, @words) = @_;
    open my $shown, '-|', 'python3', '-c', <<'PYTHON', $prompt, $by, $program, @words, '--database', $operator or die "python3: $!";
import os, pty, resource, signal, sys, termios, time
prompt, by, *command = [os.fsencode(word) for word in sys.argv[1:]]
def has_echo(fd):
    return bool(termios.tcgetattr(fd)[3] & termios.ECHO)
# readpassphrase() notices a signal while it reads.
def wait_until_it_reads(pid):
    is_asleep = False
    while not is_asleep:
        time.sleep(0.001)
        with open(f"/proc/{pid}/stat") as file:
            is_asleep = file.read().rpartition(")")[2].split()[0] == "S"
leader, terminal = pty.fork()
if leader == 0:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.execv(command[0], command)
    is_stopped = True
    while is_stopped:
        status = os.waitpid(child, os.WUNTRACED)[1]
        is_stopped = os.WIFSTOPPED(status)
        name = "stopped" if is_stopped else os.waitstatus_to_exitcode(status)
        print(f"[{name}, {'echo' if has_echo(0) else 'no echo'}]", flush=True)
        if is_stopped:
            os.tcsetpgrp(0, child)
            os.kill(child, signal.SIGCONT)
    os._exit(0)
shown, prompts = b"", 0
while True:
    try:
        shown += os.read(terminal, 4096)
    except OSError:
        break
    if shown.endswith(prompt) and shown.count(prompt) > prompts:
        prompts = shown.count(prompt)
        if has_echo(terminal):
            shown += b"(shows what is typed)"
        wait_until_it_reads(os.tcgetpgrp(terminal))
        if prompts > 1:
            os.write(terminal, b"\n")
        elif by.startswith(b"SIG"):
            os.killpg(os.tcgetpgrp(terminal), getattr(signal, os.fsdecode(by)))
        else:
            os.write(terminal, by)
os.waitpid(leader, 0)
os.write(1, shown)
PYTHON
    my $text = do { local $/ = undef; <$shown> } // '';
    close $shown;
    return $text =~ s/\r//gr;
}

my $NIL = '00000000-0000-0000-0000-0000000000ff';
my $KEY = qr/ag1_[a-z][a-z0-9-]{0,15}_(?:sk|pt|dk)_([0-9A-Za-z]{22})_([0-9A-Za-z]{43})_[0-9A-Za-z]{6}/;

# ---- accounts ----
my $shop = output_of('account', 'create', 'Shop');
like $shop, qr/\A[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\z/, 'account create: it prints the id, and nothing else';
my ($desk) = records('account', 'create', "D\xc3\xa9sk");
is_deeply { %{$desk}, account_id => undef, created_at => undef },
    { account_id => undef, name => "D\x{e9}sk", home_region => 'local', created_at => undef, closed_at => undef }, 'account create --json: it prints the record';
is_deeply [ map { $_->{name} } records('account', 'list') ], [ 'default', 'Shop', "D\x{e9}sk" ], 'account list --json: a record a line, in the order of creation';
like output_of('account', 'list'), qr/\AACCOUNT +STATE +CREATED +NAME\n.*^\Q$shop\E  open    2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\dZ  Shop$/ms,
    'account list: a line has the columns of an account';
is output_of('account', 'close', uc $shop), '', 'account close: it prints nothing';
like output_of('account', 'list'), qr/^\Q$shop\E  closed/m, 'account list: an account that is closed';
ok +(records('account', 'close', $shop))[0]{closed_at}, 'account close --json: it prints the record';
refused(1, qr/\Aagentctl: .*\(account_not_found\)\n\z/, 'account close: an unknown account', 'account', 'close', $NIL);
refused(1, qr/cannot be closed\. \(account_is_built_in\)\n\z/, 'account close: the built-in account', 'account', 'close', '00000000-0000-0000-0000-00000000000a');
refused(2, qr/expected the id of an account, got shop/, 'account close: a name', 'account', 'close', 'shop');
refused(1, qr/\(invalid_value\)\n\z/, 'account create: a name with a control character', 'account', 'create', "a\nb");

# ---- deletions ----
my $gone = output_of('account', 'create', 'Gone');
refused(2, qr/once more \(--confirm \Q$gone\E\)/, 'account delete: without the id once more', 'account', 'delete', $gone);
refused(2, qr/once more/, 'account delete: with another id', 'account', 'delete', $gone, '--confirm', $shop);
refused(2, qr/--backup-retention: expected a duration of whole days from 0d to 3650d, a number with s, min, h or d, got '$_'/, "account delete: --backup-retention $_", 'account', 'delete', $gone, '--confirm', $gone, '--backup-retention', $_) for qw(x 35 12h 3651d 86400000ms);
refused(1, qr/\(account_not_found\)/, 'account delete: an unknown account', 'account', 'delete', $NIL, '--confirm', $NIL);
refused(1, qr/\(account_not_found\)/, 'account delete: the longest retention', 'account', 'delete', $NIL, '--confirm', $NIL, '--backup-retention', '3650d');
is sql("select count(*) from agent.account_deletions"), 0, 'account delete: nothing was deleted by those';
my $deletion = output_of('account', 'delete', $gone, '--confirm', uc $gone, '--log-retention', '14d', '--backup-retention', '840h');
like $deletion, qr/\A[0-9a-f-]{36}\z/, 'account delete: it prints the id of the deletion';
is output_of('account', 'delete', $gone, '--confirm', $gone), $deletion, 'account delete: a second one is the first one';
refused(1, qr/logs are kept for 14 days, backups for 35\. \(invalid_value\)/, 'account delete: a second one with other times', 'account', 'delete', $gone, '--confirm', $gone, '--log-retention', '15d');
is_deeply [ map { @{$_}{qw(account_id status backups_expire_at)} } records('account', 'deletions') ], [ $gone, 'deleting', undef ],
    'account deletions --json: the record';
like output_of('account', 'deletions'), qr/^\Q$deletion\E  \Q$gone\E  deleting  2\S+  -  +-\s*$/m, 'account deletions: a line';
sql("insert into agent.accounts select md5(n::text)::uuid, 'many', r.region from agent.region r, generate_series(1, 1500) n");
is scalar(records('account', 'list')), 1504, 'account list: more than one page';
sql("delete from agent.accounts where name = 'many'");

# ---- new keys ----
my $account = $desk->{account_id};
# Statements with their parameters.
sql("alter role operator set log_statement = 'all'");
my $key = output_of('key', 'create', '--account', $account, '--name', 'web');
like $key, qr/\A$KEY\z/, 'key create: it prints the key, and nothing else, as a scanner for secrets finds it';
my ($id, $secret) = $key =~ $KEY;
is sql("select concat_ws(' ', kind, name, scopes, encode(digest, 'hex'), expires_at) from agent.api_keys where key_id = '$id'"),
    'service web {read,run} ' . sha256_hex($secret), 'key create: the database has the digest of the secret, and the default scopes';
like $key, qr/\Aag1_local_sk_/, 'key create: the key names its region and kind';
sub is_stored { return index(join("\n", sql('select k::text from agent.api_keys k'), sql('select a::text from agent.audit_log a')), $_[0]) >= 0 }
ok !is_stored($secret), 'key create: the secret is not in the database';
my $log = slurp($cluster->host . '/postgres.log');
ok index($log, $id) >= 0 && index($log, $secret) < 0, 'key create: the secret is not in the log of statements';
my ($personal) = records('key', 'create', '--account', $account, '--name', 'laptop', '--kind', 'personal', '--user', 'ann', '--scopes', 'deploy,read', '--expires', '90d');
like $personal->{key}, qr/\Aag1_local_pt_$personal->{key_id}_/, 'key create --json: the key is a member of its record';
is_deeply [ @{$personal}{qw(kind user_id)}, @{ $personal->{scopes} } ], [qw(personal ann deploy read)], 'key create: a personal key of a user';
is sql("select expires_at - created_at from agent.api_keys where key_id = '$personal->{key_id}'"), '90 days', 'key create: an end';
sql("select agent.ensure_deployment('demo', '$account')");
my ($bound) = records('key', 'create', '--account', $account, '--name', 'ci', '--kind', 'deployment', '--deployment', 'demo');
is sql("select name from agent.deployments where deployment_id = '$bound->{deployment_id}'"), 'demo', 'key create: a key of a deployment';
like $bound->{key}, qr/\Aag1_local_dk_/, 'key create: the text of a key of a deployment names its kind';
my %bad = (
    'no account'             => [ 2, qr/got none \(--account\)/, '--name', 'x' ],
    'no name'                => [ 2, qr/--name: expected the name .* got none/, '--account', $account ],
    'another kind'           => [ 2, qr/--kind: expected service/, '--account', $account, '--name', 'x', '--kind', 'root' ],
    'a user of no personal key' => [ 2, qr/--user/, '--account', $account, '--name', 'x', '--user', 'ann' ],
    'a personal key without a user' => [ 2, qr/--user/, '--account', $account, '--name', 'x', '--kind', 'personal' ],
    'no deployment'          => [ 2, qr/--deployment/, '--account', $account, '--name', 'x', '--kind', 'deployment' ],
    'another deployment'     => [ 1, qr/\Aagentctl: The account has no deployment none\. .* \(deployment_not_found\)\n\z/, '--account', $account, '--name', 'x', '--deployment', 'none' ],
    'another scope'          => [ 1, qr/\Aagentctl: --scopes: expected one or more of read, .* \(invalid_value\)\n\z/, '--account', $account, '--name', 'x', '--scopes', 'all' ],
    'a blank user'           => [ 1, qr/\Aagentctl: --user: expected a user .* \(invalid_value\)\n\z/, '--account', $account, '--name', 'x', '--kind', 'personal', '--user', ' ' ],
    'a blank name'           => [ 1, qr/\Aagentctl: --name: expected .* \(invalid_value\)\n\z/, '--account', $account, '--name', ' ' ],
    'quotes in scopes'       => [ 1, qr/\(invalid_value\)/, '--account', $account, '--name', 'x', '--scopes', 'run","read' ],
    'an unknown account'     => [ 1, qr/\(account_not_found\)/, '--account', $NIL, '--name', 'x' ],
    'a closed account'       => [ 1, qr/\(account_closed\)/, '--account', $shop, '--name', 'x' ],
    (map { ("--expires $_" => [ 2, qr/--expires: expected a duration from 1s to 3650d, a number with s, min, h or d, got '/, '--account', $account, '--name', 'x', '--expires', $_ ]) }
        '', '90', 'd', '0d', '00s', '-1d', '1.5h', '1500ms', '3651d', '99999999999999999999d', "1d\n", '1 d'),
);
for my $title (sort keys %bad) {
    my ($status, $pattern, @words) = @{ $bad{$title} };
    refused($status, $pattern, "key create: $title", 'key', 'create', @words);
}

# ---- existing keys ----
is_deeply [ sort map { $_->{name} } records('key', 'list', $account) ], [qw(ci laptop web)], 'key list --json: the keys of an account';
is_deeply [ records('key', 'list', '--account', $account) ], [ records('key', 'list', $account) ], 'key list --account: the same';
refused(2, qr/\Aagentctl: key list: expected no word after its options, got $account\n/, 'key list --account: with ACCOUNT too', 'key', 'list', '--account', $account, $account);
ok !(grep { exists $_->{key} || exists $_->{digest} } records('key', 'list', $account)), 'key list: no key is shown again';
like output_of('key', 'list', $account), qr/\AKEY ID +KIND +STATE +EXPIRES +USED +SCOPES +DEPLOYMENT +NAME\n.*^$id  service     valid    -  +-  +read,run  +-  +web$/ms,
    'key list: a line has the columns of a key';
like output_of('key', 'list', $account), qr/^$bound->{key_id}  deployment .*  $bound->{deployment}  +ci$/m, 'key list: the name of the deployment of a key';
sql("update agent.api_keys set last_used_at = '2026-11-28T07:00:00Z' where key_id = '$id'");
like output_of('key', 'list', $account), qr/^$id  service     valid    -  +2026-11-28T07Z  read,run /m, 'key list: the hour of the last use, which is known no better';
is output_of('key', 'revoke', $id), '', 'key revoke: it prints nothing';
like output_of('key', 'list', $account), qr/^$id  service     revoked/m, 'key list: a key that is revoked';
is output_of('key', 'revoke', $bound->{key}), '', 'key revoke: it takes the whole key';
is sql("select count(*) from agent.api_keys where revoked_at is not null"), 2, 'key revoke: both are revoked';
{
    my ($secret) = records('key', 'create', '--account', $desk->{account_id}, '--name', 'secret');
    my ($status, $output, $errors) = ctl_with_input(" $secret->{key}\t \n", 'key', 'rotate', '-');
    like "$status $output", qr/\A0 $KEY\n\z/, 'key rotate -: it takes the key of standard input, without blanks around it' or diag $errors;
    my ($next) = $output =~ $KEY;
    for my $given ($secret->{key_id}, "$output") {
        ($status, $output, $errors) = ctl_with_input($given, 'key', 'revoke', '-');
        is "$status|$output|$errors", '0||', 'key revoke -: it takes the key, or its id, of standard input';
    }
    is sql("select count(*) from agent.api_keys where key_id in ('$secret->{key_id}', '$next') and revoked_at is not null"), 2, 'key revoke -: they are revoked';
    for my $case ([ '', 'expected KEY on standard input, got none' ], [ "web\n", 'expected a key ID' ], [ 'x' x 10_000, 'expected a key ID' ]) {
        ($status, $output, $errors) = ctl_with_input($case->[0], 'key', 'revoke', '-');
        is "$status|$output", '2|', "key revoke -: refused: $case->[1]";
        like $errors, qr/\Aagentctl: \Q$case->[1]\E/, "key revoke -: the line says why: $case->[1]";
    }
}
refused(1, qr/\(key_not_found\)/, 'key revoke: an unknown key', 'key', 'revoke', 'x' x 22);
refused(2, qr/expected a key ID/, 'key revoke: no key', 'key', 'revoke', 'web');
refused(2, qr/expected a key ID/, 'key revoke: a key with a changed character', 'key', 'revoke', $key =~ s/_sk_/_pt_/r);
my $next = output_of('key', 'rotate', $personal->{key_id}, '--overlap', '2h');
like $next, qr/\Aag1_local_pt_/, 'key rotate: it prints a key of the same kind';
ok sql("select expires_at between now() + interval '119 min' and now() + interval '121 min' from agent.api_keys where key_id = '$personal->{key_id}'") eq 't',
    'key rotate: the old key has the overlap';
refused(2, qr/--overlap: expected a duration from 0s to 3650d, a number with s, min, h or d, got '-1s'/, 'key rotate: no time', 'key', 'rotate', $next, '--overlap', '-1s');
my ($last) = records('key', 'rotate', $next, '--overlap', '0s');
is $last->{user_id}, 'ann', 'key rotate: the new key is of the same user';
is sql("select encode(digest, 'hex') from agent.api_keys where key_id = '$last->{key_id}'"), sha256_hex(($last->{key} =~ $KEY)[1]), 'key rotate: its secret is the one that is printed';
refused(1, qr/\(key_revoked\)/, 'key rotate: a key that is no longer valid', 'key', 'rotate', $next);
sql("update agent.api_keys set created_at = now() - interval '2 h', expires_at = now() - interval '1 h' where key_id = '$last->{key_id}'");
like output_of('key', 'list', $account), qr/^$last->{key_id}  personal    expired/m, 'key list: a key that has expired, before a sweep revokes it';
is sql("select string_agg(distinct actor, ' ') from agent.audit_log where action <> 'deployment.open'"), 'operator operator', 'the audit log has the role that logged in';

# ---- invitations ----
{
    my $text = output_of('invite', 'create');
    like $text, qr/\Ainv1_[0-9A-Za-z]{43}\z/, 'invite create: it prints the invitation, and nothing else';
    is sql("select concat_ws(' ', created_by, round(extract(epoch from expires_at - created_at) / 86400), used_at) from agent.invitations
        where digest = decode('@{[ sha256_hex($text) ]}', 'hex')"), 'operator operator 7', 'invite create: the database has the digest, for a week';
    ok index(join("\n", sql('select i::text from agent.invitations i')), substr $text, 5) < 0, 'invite create: the database does not have the text';
    my ($record) = records('invite', 'create', '--expires', '90min');
    is_deeply [ sort keys %{$record} ], [qw(account_id created_at created_by expires_at invitation invitation_id region revoked_at revoked_by used_at)],
        'invite create --json: it prints the record';
    isnt $record->{invitation}, $text, 'invite create: each is another one';
    refused(2, qr/--expires: expected a duration from 1s to 3650d, a number with s, min, h or d, got '/, "invite create: --expires $_", 'invite', 'create', '--expires', $_) for qw(soon 0d 0s 1000ms);

    my $id = sub { return sql("select invitation_id from agent.invitations where digest = decode('@{[ sha256_hex($_[0]) ]}', 'hex')") };
    my $first = $id->($text);
    is_deeply [ map { $_->{invitation_id} } records('invite', 'list') ], [ $first, $record->{invitation_id} ], 'invite list --json: a record a line, in the order of creation';
    is_deeply [ sort keys %{ (records('invite', 'list'))[0] } ], [ grep { $_ ne 'invitation' } sort keys %{$record} ], 'invite list --json: no invitation is shown again';
    like output_of('invite', 'list'), qr/\AINVITATION ID +STATE +CREATED +EXPIRES +ACCOUNT +CREATED BY\n\Q$first\E  valid    2\S+Z  2\S+Z  - +operator operator$/m,
        'invite list: a line has the columns of an invitation';
    is output_of('invite', 'revoke', uc $first), '', 'invite revoke: it prints nothing';
    my $state = sub { return (output_of('invite', 'list') =~ /^\Q$_[0]\E  (\S+) /m)[0] };
    is $state->($first), 'revoked', 'invite list: an invitation that is revoked';
    my ($revoked) = records('invite', 'revoke', $first);
    is "$revoked->{revoked_by} $revoked->{revoked_at}", join(' ', (records('invite', 'list'))[0]->@{qw(revoked_by revoked_at)}),
        'invite revoke --json: a second one prints the record of the first';
    is output_of('invite', 'revoke', $record->{invitation}), '', 'invite revoke: it takes the invitation itself';
    is $state->($record->{invitation_id}), 'revoked', 'invite revoke: the invitation that was given is revoked';
    my ($piped) = records('invite', 'create');
    my ($status, $output, $errors) = ctl_with_input("$piped->{invitation}\n", 'invite', 'revoke', '-');
    is "$status|$output|$errors", '0||', 'invite revoke -: it takes the invitation of standard input';
    is $state->($piped->{invitation_id}), 'revoked', 'invite revoke -: that invitation is revoked';
    ($status, $output, $errors) = ctl_with_input('', 'invite', 'revoke', '-');
    is "$status|$output|$errors", "2||agentctl: expected INVITATION on standard input, got none\n", 'invite revoke -: no line';
    my ($typed) = records('invite', 'create');
    is join('|', ctl_on_terminal('INVITATION: ', "$typed->{invitation}\n", 'invite', 'revoke', '-')), "0|INVITATION: \n", 'invite revoke -: a terminal shows a prompt, and not the invitation';
    is $state->($typed->{invitation_id}), 'revoked', 'invite revoke -: the invitation that was typed is revoked';
    is join('|', ctl_on_terminal('INVITATION: ', "\cD", 'invite', 'revoke', '-')), "2|INVITATION: \nagentctl: expected INVITATION on standard input, got none\n", 'invite revoke -: nothing is typed';
    for my $case ([ "\cC", 2 ], [ "\c\\", 3 ], [ 'SIGINT', 2 ], [ 'SIGTERM', 15 ], [ 'SIGHUP', 1 ], [ 'SIGQUIT', 3 ], [ 'SIGPIPE', 13 ], [ 'SIGALRM', 14 ],
        [ 'SIGUSR1', 10 ], [ 'SIGUSR2', 12 ], [ 'SIGXCPU', 24 ], [ 'SIGVTALRM', 26 ], [ 'SIGPROF', 27 ], [ 'SIGIO', 29 ], [ 'SIGPWR', 30 ], [ 'SIGSYS', 31 ], [ 'SIGRTMIN', 34 ], [ 'SIGRTMAX', 64 ])
    {
        my ($by, $signal) = @{$case};
        is ctl_interrupted('INVITATION: ', $by, 'invite', 'revoke', '-'), "INVITATION: \n[-$signal, echo]\n",
            'invite revoke -: at the prompt, ' . ($by =~ /SIG/ ? $by : sprintf 'the byte %d', ord $by) . ' ends it, and the terminal has its echo again';
    }
    for my $by ("\cZ", 'SIGTSTP') {
        is ctl_interrupted('INVITATION: ', $by, 'invite', 'revoke', '-'),
            "INVITATION: \n[stopped, echo]\nINVITATION: \nagentctl: expected INVITATION on standard input, got none\n[2, echo]\n",
            'invite revoke -: at the prompt, ' . ($by =~ /SIG/ ? $by : '^Z') . ' stops it with echo, and it asks again in the foreground';
    }
    my $used = $id->(output_of('invite', 'create'));
    sql("update agent.invitations set used_at = now(), account_id = '$account' where invitation_id = '$used'");
    like output_of('invite', 'list'), qr/^\Q$used\E  used .*  \Q$account\E  /m, 'invite list: an invitation that was used, and its account';
    refused(1, qr/has created the account \Q$account\E\. \(invitation_used\)\n\z/, 'invite revoke: one that was used', 'invite', 'revoke', $used);
    my $expired = $id->(output_of('invite', 'create'));
    sql("update agent.invitations set created_at = now() - interval '2 h', expires_at = now() - interval '1 h' where invitation_id = '$expired'");
    is $state->($expired), 'expired', 'invite list: an invitation that has expired';
    refused(1, qr/\(invitation_not_found\)\n\z/, 'invite revoke: an unknown id', 'invite', 'revoke', $NIL);
    refused(1, qr/\(invitation_not_found\)\n\z/, 'invite revoke: an unknown invitation', 'invite', 'revoke', $text =~ s/.\z/!/r);
    refused(2, qr/expected the id of an invitation/, "invite revoke: $_", 'invite', 'revoke', $_) for 'shop', substr $text, 0, -1;
    sql("insert into agent.invitations (invitation_id, digest, created_by, created_at, expires_at)
        select md5(n::text)::uuid, sha256(n::text::bytea), 'many', now(), now() from generate_series(1, 1500) n");
    is scalar(records('invite', 'list')), 1506, 'invite list: more than one page';
    sql("delete from agent.invitations where created_by = 'many'");
}

# ---- output that cannot be written ----
{
    my $uuid = '[0-9a-f-]{36}';
    for my $case (
        (map { [ "key create$_ --account $account --name full", 'key revoke [0-9A-Za-z]{22}' ] } '', ' --json'),
        (map { [ "key rotate$_ " . output_of('key', 'create', '--account', $account, '--name', 'old'), 'key revoke [0-9A-Za-z]{22}' ] } '', ' --json'),
        (map { [ "invite create$_", "invite revoke $uuid" ] } '', ' --json'), (map { [ "account create$_ Full", "account close $uuid" ] } '', ' --json'),
    ) {
        my ($words, $end) = @{$case};
        my ($command) = $words =~ /\A(\w+ \w+(?: --json)?)/;
        my $kind = { key => 'key', invite => 'invitation', account => 'account' }->{ $words =~ s/ .*//r };
        my $errors = qx('$program' $words --database '$operator' 2>&1 >/dev/full);
        is $? >> 8, 1, "$command: what cannot be printed is a failure";
        my ($by) = $errors =~ /\(output_failed\)\nagentctl: the $kind exists and was not shown: end it with `agentctl ($end)` \(${kind}_not_shown\)\n\z/;
        ok defined $by, "$command: the last line of one that cannot be printed names the command that ends it" or diag $errors;
        is output_of(split / /, $by // 'region check local'), '', "$command: that command ends what could not be printed";
    }
    like qx('$program' account list --database '$operator' 2>&1 >/dev/full), qr/ \(output_failed\)\n\z/, 'account list: the code of output that cannot be written';
}

# ---- who may ----
for my $command ([ 'account', 'create', 'x' ], [ 'account', 'list' ], [ 'key', 'revoke', $id ]) {
    my ($status, $output, $errors) = run($cluster->conninfo('agent'), @{$command});
    is "$status|$output", '1|', "@{$command}: the role of a server is refused";
    like $errors, qr/must be a member of agent_operator \(42501: permission denied .*\(not_an_operator\)\n\z/, "@{$command}: and the reason is given";
}
{
    my ($status, undef, $errors) = run($cluster->conninfo('postgres'), 'account', 'list');
    is $status, 1, 'a superuser is refused';
    like $errors, qr/is a superuser: connect as a member of agent_operator.* \(not_an_operator\)\n\z/, 'the refusal of a superuser has its reason';
    local $ENV{PGUSER} = 'operator';
    is +(run(undef, 'account', 'list'))[0], 0, 'without --database the environment names the database';
    for my $words ([ 'account', 'list' ], [ 'region', 'check', 'eu' ]) {
        ($status, undef, $errors) = run('host=/nowhere', @{$words});
        is $status, 1, "@{$words}: a database that cannot be reached is a failure";
        like $errors, qr{\Aagentctl: .*/nowhere.*: No such file or directory; Is the server running locally .* \(database_unavailable\)\n\z},
            "@{$words}: and the reason is given, in one line with its code";
    }
    ($status, undef, $errors) = run($cluster->conninfo('stranger'), 'account', 'list');
    is $status, 1, 'a role that does not exist is a failure';
    like $errors, qr/\Aagentctl: the database refuses the role \(.*stranger.*\nagentctl: expected a role of the database that this user may use: .*createuser NAME and grant agent_operator to NAME.* \(role_not_admitted\)\n\z/, 'the error of a role that does not exist says how to create it';
}

# ---- the region of the database ----
is output_of('region', 'check', 'local'), '', 'region check: it prints nothing';
is_deeply [ records('region', 'check', 'local') ], [ { region => 'local' } ], 'region check --json: it prints the region';
refused(1, qr/^agentctl: the database belongs to region local, not to eu \(region_mismatch\)$/m, 'region check: another region', 'region', 'check', 'eu');
refused(2, qr/expected the name of a region, got EU/, 'region check: a text that names no region', 'region', 'check', 'EU');

# ---- the command line, its manual and its completion ----
my $help = qx('$program' --help);
my @commands = $help =~ /^usage: agentctl ([a-z ]+?) \[OPTION/mg;
is "@commands", 'build account create account list account close account delete account deletions key create key list key revoke key rotate region check invite create invite list invite revoke', '--help names the commands';
my $page = slurp(root() . '/mod_agent/ctl/agentctl.8');
for my $command (@commands) {
    my @options = qx('$program' $command --help) =~ /^  --([a-z-]+)/mg;
    my ($synopsis) = $page =~ /^\.Nm\n\.Cm $command\n((?:\.(?:Op|Fl|Ar).*\n)*)/m;
    is join(' ', sort($synopsis =~ /\bFl Fl ([a-z-]+)/g)), join(' ', sort @options), "$command: the manual page has its options";
    is join(' ', $synopsis =~ /^\.Ar (\S+)/mg), join(' ', $help =~ /^usage: agentctl $command \[OPTION\.\.\.\] (\S+)/mg), "$command: the page has the argument of --help";
    is +(run(undef, split(/ /, $command), '--wrong'))[0], 2, "$command: an unknown option has status 2";
}

for my $wrong ([ 'foo', 'expected a command, got foo' ], [ 'key foo', 'expected a command, got key foo' ], [ 'key', 'expected another word after key' ], [ 'invite', 'expected another word after invite' ],
    [ '', 'expected a command, got none' ], [ '--foo', 'expected a command, got --foo' ])
{
    my ($status, $output, $errors) = run(undef, split / /, $wrong->[0]);
    is "$status|$output", '2|', "'$wrong->[0]' is not a command";
    like $errors, qr/\Aagentctl: $wrong->[1]\nusage: agentctl build /, "'$wrong->[0]': the first line says which word is wrong";
}
for my $wrong ([ 'account create', 'expected NAME, got none' ], [ 'key list', 'expected ACCOUNT, got none' ], [ 'key list a b', 'expected no word after its ACCOUNT, got b' ],
    [ 'account list a', 'expected no word after its options, got a' ], [ 'invite create --json a', 'expected no word after its options, got a' ])
{
    my ($status, $output, $errors) = run(undef, split / /, $wrong->[0]);
    my ($command) = grep { $wrong->[0] =~ /\A$_/ } @commands;
    is "$status|$output", '2|', "'$wrong->[0]' is not executed";
    like $errors, qr/\Aagentctl: $command: $wrong->[1]\nusage: agentctl $command /, "'$wrong->[0]': the first line says what is wrong, the second how it is used";
}
like qx('$program' account delete --help), qr/^  --confirm ACCOUNT     the same id once more\n  --log-retention DURATION\n {24}for how long logs are kept, for example 14d\n/m,
    '--help of a command: the text of an option with a long name begins on the next line';
like +(run(undef, '--version'))[1], qr/\Aagentctl \d+\.\d+\.\d+\n\z/, '--version prints the version';

# The completions of bash after these words.
sub completed {
    my @words = ('agentctl', @_);
    my $list = join ' ', map { "'$_'" } @words;
    open my $bash, '-|', 'bash', '-c', '. ' . root() . "/mod_agent/ctl/agentctl.bash; PATH=" . build_dir() . ":\$PATH
        COMP_WORDS=($list) COMP_CWORD=$#words; _agentctl; printf '%s\\n' \"\${COMPREPLY[\@]}\"" or die "bash: $!\n";
    chomp(my @lines = <$bash>);
    close $bash;
    return join ' ', sort grep { $_ ne '' } @lines;
}
is completed(''), '--help --version account build invite key region', 'completion: the first word';
is completed('ke'), 'key', 'completion: the beginning of a word';
is completed('key', ''), 'create list revoke rotate', 'completion: the second word';
is completed('key', 'rotate', '--'), '--database --help --json --overlap', 'completion: the options of a command';
is completed('key', 'create', '--kind', 'p'), 'personal', 'completion: the values of an option';
is completed('invite', 'revoke', '--'), '--database --help --json', 'completion: the options of a command without values';
is completed('nothing', ''), '', 'completion: nothing after an unknown word';

done_testing;
