# SPDX-License-Identifier: Apache-2.0
# The keys of models and webhooks are in the memory of the supervisor and its
# runners only, not in processes that serve clients.
use strict;
use warnings;
no warnings 'portable';    # addresses have 64 bits
use AgentTest::Client;
use AgentTest::Env qw(build_dir free_port is_root write_file);
use AgentTest::Process;
use AgentTest::Server;
use AgentTest::Wait;
use File::Temp qw(tempdir);
use MIME::Base64 qw(encode_base64);
use Test::More;

plan skip_all => "only root reads others' memory" if !is_root();

my $dir = tempdir(CLEANUP => 1);
# Not a literal: the text of this file may be in the memory of other processes.
my $model_key = 'sk-' . join '', map { chr 97 + ($_ * 7 + $$) % 26 } 1 .. 40;
my $other_key = 'sk-' . join '', map { chr 97 + ($_ * 5 + $$) % 26 } 1 .. 40;
my $webhook_key = join '', map { chr 65 + ($_ * 11 + $$) % 26 } 1 .. 40;

# Whether a text is anywhere in the writable memory of the process.
sub has_in_memory {
    my ($pid, $text) = @_;
    open my $maps, '<', "/proc/$pid/maps" or die "maps: $!";
    open my $memory, '<:raw', "/proc/$pid/mem" or die "mem: $!";
    while (my $line = <$maps>) {
        my ($from, $to) = map { hex } $line =~ /^(\w+)-(\w+) rw/ or next;
        next if $to - $from > 1 << 28;
        sysseek $memory, $from, 0;
        my $bytes = '';
        while (length $bytes < $to - $from) {
            sysread $memory, $bytes, $to - $from - length $bytes, length $bytes or last;
        }
        return 1 if index($bytes, $text) >= 0;
    }
    return 0;
}

my $key_file = write_file("$dir/key", "$model_key\n");
my $secret_file = write_file("$dir/secret", 'whsec_' . encode_base64($webhook_key, '') . "\n");
my $other_file = write_file("$dir/other", "$other_key\n");
my $port = free_port();
my $server = AgentTest::Server->new(config =>
    qq(AgentRunner "@{[build_dir()]}/agent-runner"\n)
    . "AgentWebhookSecretFile $secret_file\n"
    . "<AgentGraph agent>\nAgentModel demo\nAgentModelKeyFile $key_file\n</AgentGraph>\n"
    . "<Location />\nSetHandler agent\n</Location>\n"
    . "Listen 127.0.0.1:$port\n<VirtualHost 127.0.0.1:$port>\nAgentDeployment other\n"
    . "<AgentGraph agent>\nAgentModel demo\nAgentModelKeyFile $other_file\n</AgentGraph>\n</VirtualHost>\n");
$server->start;
my $client = AgentTest::Client->new(url => $server->url);
my $other = AgentTest::Client->new(url => "http://127.0.0.1:$port");
$_->join_run($_->start_run('Hello')) for $client, $other;

my $parent = $server->httpd_pid;
my @runners = runner_pids($parent);
my ($runner) = grep { has_in_memory($_, $model_key) } @runners;
my @others = grep { has_in_memory($_, $other_key) } @runners;
is scalar(@runners), 2, 'secrets: each deployment has a runner';
is scalar(@others), 1, 'secrets: one of them has the key of a model of the other deployment';
ok !grep({ has_in_memory($_, $model_key) } @others), 'secrets: a runner has no key of another deployment';

sub children_are_clean {
    my ($when) = @_;
    my @children = httpd_children($server->httpd_pid);
    ok scalar @children, "secrets: httpd has children $when";
    is scalar(grep { has_in_memory($_, $model_key) } @children), 0,
        "secrets: no child has the key of a model $when";
    is scalar(grep { has_in_memory($_, $webhook_key) || has_in_memory($_, encode_base64($webhook_key, '')) }
        @children), 0, "secrets: no child has the secret of webhooks $when";
    return;
}

children_are_clean('after the start');
ok has_in_memory(supervisor_pid($parent), $webhook_key), 'secrets: the supervisor has the secret of webhooks';
ok has_in_memory($runner, $model_key), 'secrets: a runner has the key of its model';
is +(stat "/proc/$runner/mem")[4], 0, 'secrets: other processes of the same user cannot read the memory of a runner';

my %old = map { $_ => 1 } httpd_children($parent);
$server->graceful;
wait_for('new children', sub { grep { !$old{$_} } httpd_children($parent) });
wait_for('old children to end', sub { !grep { $old{$_} } httpd_children($parent) });
children_are_clean('after a restart');
$client->join_run($client->start_run('Hello'));

undef $server;
done_testing;
