#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Conversations with a running agent server, printed as they happen:
#   talk.pl URL RUN_DIR MODEL conversation     with the graph `builtin`
#   talk.pl URL RUN_DIR MODEL sign_up          a customer signs up in region eu
#   talk.pl URL RUN_DIR MODEL deployment       and uses the key, there and in region us
#   talk.pl URL RUN_DIR MODEL approval GRAPH   with an example application
#   talk.pl URL RUN_DIR MODEL next             what the reader can try
# Each step is a curl command that the reader can repeat. MESSAGE replaces the
# question. RUN_DIR/thread stores the thread for the next start, RUN_DIR/eu/demo.key the
# account of region eu and its key, RUN_DIR/step the number of the last step, from which
# the parts after the conversation go on.
use strict;
use warnings;
use JSON::PP;

my ($url, $run_dir, $model, $part, $graph) = @ARGV;
my %PARTS = (conversation => \&conversation, sign_up => \&sign_up, deployment => \&declare_deployment,
    approval => \&approval, next => \&print_what_next);
die "usage: talk.pl URL RUN_DIR MODEL conversation|sign_up|deployment|approval GRAPH|next\n" if !$PARTS{ $part // '' };

my ($host, $port) = $url =~ m{\A(.*):(\d+)\z} or die "$url: expected a URL with a port\n";
my $ASK = $ENV{MESSAGE} || 'What time is it? Please use clock {}';
utf8::decode($ASK);
my $WIDTH = 100;
my %style = -t STDOUT
    ? (bold => "\e[1m", dim => "\e[2m", off => "\e[0m")
    : (bold => '', dim => '', off => '');

binmode STDOUT, ':utf8';
$| = 1;

# The URL of the thread, once created; $T in the printed commands.
my $thread_url = '';
my $number = $part eq 'conversation' ? 0 : (read_lines("$run_dir/step"))[0] // 0;
my $label = '';

sub conversation {
    print "$style{bold}A conversation with the graph `builtin`",
        " (model: $model)$style{off}\n";
    print 'The demo model needs no key and no network; set ANTHROPIC_API_KEY or',
        "\nOPENAI_API_KEY before `run` to use a real model.\n"
        if $model eq 'demo';

    heading('A thread keeps the state of one conversation.');
    my $thread = request('POST', '/threads', '{}');
    print_record($thread->{text});
    my $id = $thread->{json}{thread_id};
    $thread_url = "$url/threads/$id";
    print "$style{dim}  \$ T=$thread_url$style{off}\n";

    heading('A run of the graph starts in the background.');
    my $body = body($ASK, '"stream_mode":["messages-tuple"]');
    my $run = request('POST', "/threads/$id/runs", $body);
    print_record($run->{text});
    my $run_path = "/threads/$id/runs/$run->{json}{run_id}";

    heading('Its output can be streamed while it executes, or later.');
    print_stream("$run_path/stream");

    heading('The run is stored with its status; join waits for its end.');
    request('GET', "$run_path/join");
    my $end = request('GET', $run_path);
    print "    status: $style{bold}$end->{json}{status}$style{off}\n";

    heading('The next run continues from the state of the thread.');
    print_record(request('GET', "/threads/$id/state")->{text});

    heading('The limiter enforces the limits of a region on its platform host.');
    print "    Its own paths are accounts and keys. For this one it is the limiter in front of a service\n",
        "    of yours, which is not there: 404 is a request within the limit, 429 one above it.\n";
    print_limit(platform('us')) for 1 .. 2;
    print "    The other region allows 20 of these:\n";
    print_limit(platform('eu')) for 1 .. 2;

    remember($id);
    exit($end->{json}{status} eq 'success' ? 0 : 1);
}

# The addresses of the platform hosts: platform('us').
sub platform { return "$host:" . ($port + ($_[0] eq 'us' ? 1 : 2)) }

# The first key of the account is shown once: it is kept for the next start.
sub sign_up {
    print "$style{bold}A customer of region eu$style{off}\n",
        'Each region has servers and a database of its own; what a customer of one region',
        "\nstores never leaves it.\n";

    heading('The operator of eu invites a customer.');
    my @invite = ('.build/release/agentctl', qw(invite create), '--database', "host=$run_dir/eu/postgres user=operator dbname=agent");
    print "$style{dim}  \$ @invite[0 .. 3] ", shell_quote($invite[4]), "$style{off}\n";
    open my $answer, '-|', @invite or die "agentctl: $!\n";
    chomp(my $invitation = <$answer> // '');
    close $answer or die "agentctl invite create failed\n";
    print "    $invitation\n";

    heading('With it the customer signs up, and gets an account and its first key.');
    $url = platform('eu');
    my $made = request('POST', '/v1/accounts', qq({"name":"Demo","invitation":"$invitation"}));
    my ($account, $key) = @{ $made->{json} }{qw(account_id key)};
    print "    account_id: $account\n    key:        $key\n";
    umask 077;
    write_lines("$run_dir/eu/demo.key", "$account $key");
    return;
}

# run.sh has given the deployment to the account.
sub declare_deployment {
    my ($kept) = read_lines("$run_dir/eu/demo.key");
    my ($account, $key) = split / /, $kept;
    my @key = ('-H', "x-api-key: $key");
    print "\n$style{bold}A deployment that opens with a key of its account$style{off}\n";

    heading('One line of httpd.conf gives a deployment to the account.');
    print "    AgentDeployment demo account=$account\n";

    heading('Its key opens the deployment, as `api_key` of the SDKs does. Nothing opens without one.');
    $url = platform('eu') . '/deployments/demo';
    print "$style{dim}  \$ KEY=$key$style{off}\n";
    my $end = request('POST', '/runs/wait', body('use calculator {"expression": "6 * 7"}'), @key);
    my $last = $end->{json}{messages}[-1];
    print "    $last->{type}: $style{bold}", plain_text($last->{content}), "$style{off}\n";
    print_head('eu', '/deployments/demo/threads/01900000-0000-7000-8000-000000000000');

    heading('A server of us does not read what it should not have, and says where to go.');
    my $status = print_head('us', '/auth', @key);
    exit($last->{type} eq 'ai' && $status == 403 ? 0 : 1);
}

# Sends a request to a platform host; prints status, the headers of regions and keys, and
# the body. Returns the status.
sub print_head {
    my ($region, $path, @key) = @_;
    my $address = platform($region) . $path;
    print "$style{dim}  \$ curl -si ", (@key ? '-H "x-api-key: $KEY" ' : ''), "$address$style{off}\n";
    open my $curl, '-|', 'curl', '-si', '--max-time', 60, @key, $address or die "curl could not be started: $!\n";
    my $answer = do { local $/; <$curl> };
    close $curl or die "$address: no answer\n";
    print map { "    $_\n" } grep { m{\A(?:HTTP/|X-Agent|WWW-Auth|\{)}i } split /\r?\n/, $answer;
    return $answer =~ m{\AHTTP/\S+ (\d+)} ? $1 : 0;
}

# An application stops, asks, and goes on.
sub approval {
    print "$style{bold}A LangGraph application: the graph `$graph`$style{off}\n",
        "It is in conf/quickstart/examples; httpd.conf has one line for it. The graph is `shop` in Python, `shop-js` in TypeScript.\n";

    heading('A run calls a tool that asks a person before it orders.');
    my $id = request('POST', '/threads', '{}')->{json}{thread_id};
    $thread_url = "$url/threads/$id";
    print "$style{dim}  \$ T=$thread_url$style{off}\n";
    my $asked = request('POST', "/threads/$id/runs/wait", body('order 2 cups', '', $graph));
    my $question = $asked->{json}{__interrupt__}[0]{value}{question} // die "The graph did not ask.\n";
    print "    __interrupt__: $style{bold}$question$style{off}\n";

    heading('The thread waits for the answer, for days if need be.');
    my $thread = request('GET', "/threads/$id");
    print "    status: $style{bold}$thread->{json}{status}$style{off}\n";

    heading('The next run resumes it with the answer.');
    my $end = request('POST', "/threads/$id/runs/wait",
        qq({"assistant_id":"$graph","command":{"resume":"yes"}}));
    my $last = $end->{json}{messages}[-1];
    print "    $last->{type}: $style{bold}", plain_text($last->{content}), "$style{off}\n";
    exit($last->{type} eq 'ai' && $thread->{json}{status} eq 'interrupted' ? 0 : 1);
}

# The body of a run, in the order in which a person would write it.
sub body {
    my ($text, $more, $assistant) = @_;
    my $content = JSON::PP->new->allow_nonref->encode($text);
    return '{' . join(',', sprintf('"assistant_id":"%s"', $assistant // 'builtin'), '"input":{"messages":'
        . "[{\"role\":\"user\",\"content\":$content}]}", $more || ()) . '}';
}

sub heading {
    print "\n$style{bold}", ++$number, ". $_[0]$style{off}\n";
    return write_lines("$run_dir/step", $number);
}

# Prints and executes the command; dies unless the response is 2xx with JSON. The key, if
# there is one, is printed as $KEY.
sub request {
    my ($method, $path, $body, @key) = @_;
    my @data = defined $body ? ('-d', $body) : ();
    my $curl = curl($path, ['-s', @key ? ('-H', '"x-api-key: $KEY"') : ()], [@data],
        ['-s', '-S', '--max-time', 120, '-w', '\n%{http_code}', @key]);
    my $answer = do { local $/; <$curl> };
    close $curl or die "$method $path: no answer from $url\n";
    my ($text, $status) = $answer =~ /\A(.*)\n(\d+)\z/s;
    $status =~ /^2/ or die "$method $path was answered $status: $text\n";
    return { text => $text, json => decode_json($text) };
}

# Prints the command and starts curl, with additional options that are not
# printed.
sub curl {
    my ($path, $options, $data, $hidden) = @_;
    my $shown = "$url$path";
    $shown =~ s/\A\Q$thread_url\E/\$T/ if $thread_url;
    print "$style{dim}  \$ curl @{$options} $shown",
        (map { $_ eq '-d' ? ' -d ' : shell_quote($_) } @{$data}),
        "$style{off}\n";
    utf8::encode($_) for my @bytes = @{$data};
    my @options = grep { !/\A(?:-H|"x-api-key: \$KEY")\z/ } @{$options};
    open my $curl, '-|', 'curl', @options, @{$hidden}, "$url$path", @bytes
        or die "curl could not be started: $!\n";
    return $curl;
}

sub shell_quote {
    my ($word) = @_;
    $word =~ s/'/'\\''/g;
    return "'$word'";
}

# Prints the record as the server sent it, a line per member; long ones are cut.
sub print_record {
    my ($text) = @_;
    utf8::decode($text);
    my $body = $text =~ s/\A\s*\{|\}\s*\z//gr;
    for my $member (split_members($body)) {
        my $line = $member =~ s/\A\s+|\s+\z//gr;
        $line =~ s/\A("[^"]*")\s*:\s*/$1: /;
        $line = substr($line, 0, $WIDTH - 3) . '...' if length $line > $WIDTH;
        print "    $line\n";
    }
    return;
}

# Splits at the commas outside strings and brackets.
sub split_members {
    my ($text) = @_;
    my ($depth, @members) = (0, '');
    for my $token ($text =~ /"(?:[^"\\]|\\.)*"|[^"]/gs) {
        $depth++ if $token =~ /\A[\[{]/;
        $depth-- if $token =~ /\A[\]}]/;
        if ($token eq ',' && !$depth) { push @members, '' }
        else                          { $members[-1] .= $token }
    }
    return @members;
}

# Prints the message chunks of a stream of server-sent events as they arrive.
sub print_stream {
    my ($path) = @_;
    my $curl = curl($path, ['-sN'], [], ['-S', '--max-time', 120]);
    my $event = '';
    while (my $line = <$curl>) {
        $event = $1 if $line =~ /\Aevent: (\S+)/;
        print_chunk(decode_json($1)->[0])
            if $event eq 'messages' && $line =~ /\Adata: (.*)/;
        print "\n    error: $1" if $event eq 'error' && $line =~ /\Adata: (.*)/;
    }
    close $curl or die "$path: the stream broke off\n";
    print "\n";
    return;
}

sub print_chunk {
    my ($chunk) = @_;
    my $speaker = $chunk->{type} eq 'tool' ? 'tool' : 'agent';
    my $text = plain_text($chunk->{content});
    print_part("$speaker $chunk->{id}", $speaker, $text);
    for my $call (@{ $chunk->{tool_call_chunks} || [] }) {
        print_part("call $call->{id}", 'calls', "$call->{name} ")
            if defined $call->{name};
        print $call->{args} // '';
    }
    return;
}

# Begins a new line with the speaker when the speaker changes.
sub print_part {
    my ($part, $speaker, $text) = @_;
    return if !length $text;
    printf "%s    $style{bold}%-6s$style{off} ", length $label ? "\n" : '',
        $speaker if $part ne $label;
    $label = $part;
    print $text;
    return;
}

# A message's content is text or a list of blocks.
sub plain_text {
    my ($content) = @_;
    return $content // '' if !ref $content;
    return join '', map { $_->{text} // '' } @{$content};
}

# Sends a request that the US table allows once in ten seconds; prints the status,
# 404 before it is 429, and the limiter's headers.
sub print_limit {
    my ($host) = @_;
    my @command = ('curl', '-si', '-H', "x-api-key: tour-$$",
        "$host/runs/stats");
    print "$style{dim}  \$ curl -si -H ", shell_quote($command[3]),
        " $command[4]$style{off}\n";
    open my $curl, '-|', @command or die "curl could not be started: $!\n";
    my $answer = do { local $/; <$curl> };
    close $curl or die "$command[4]: no answer\n";
    for my $line (split /\r?\n/, $answer) {
        print "    $line\n"
            if $line =~ m{\A(?:HTTP/|RateLimit|Retry-After|\{.*problem)}i;
    }
    return;
}

sub print_what_next {
    my ($id, $earlier) = remembered();
    my $again = shell_quote(body('use calculator {"expression": "6 * 7"}'));
    my $long = shell_quote(body('sleep 20000'));
    my $eu = platform('eu');
    my $interrupt = shell_quote(body($ASK, '"multitask_strategy":"interrupt"'));
    print <<"TEXT";

$style{bold}The server keeps running on $url$style{off}
  Try next:
    T=$url/threads/$id
    curl -N \$T/runs/stream -d $again
    curl \$T/runs -d $long
    curl \$T/runs -d $interrupt
    curl \$T/runs
    curl \$T/state
    curl $url/ratelimit-status
  In a browser: $url/info
TEXT
    print "  The thread of the last start is still there:\n",
        "    curl $url/threads/$earlier/state\n" if $earlier;
    print <<"TEXT";
  The account of region eu: $run_dir/eu/demo.key has its id and its key
    curl $eu/v1/account -H "x-api-key: \$(cut -d' ' -f2 $run_dir/eu/demo.key)"
  Its log:      $run_dir/logs/error_log, of eu $run_dir/eu/logs/error_log
  End it:       make -f Makefile.apxs stop
TEXT
    return;
}

# The ids of the last thread and of the one before, '' for none.
sub remembered {
    my @ids = read_lines("$run_dir/thread");
    return map { $ids[$_] // '' } 0, 1;
}

# Stores this thread's id, before that of the last start.
sub remember {
    my ($id) = @_;
    my ($earlier) = remembered();
    return write_lines("$run_dir/thread", $id, $earlier);
}

sub read_lines {
    my ($file) = @_;
    open my $in, '<', $file or return;
    chomp(my @lines = <$in>);
    return @lines;
}

sub write_lines {
    my ($file, @lines) = @_;
    open my $out, '>', $file or die "$file: $!\n";
    print {$out} map { "$_\n" } @lines;
    close $out or die "$file: $!\n";
    return;
}

$PARTS{$part}->();
