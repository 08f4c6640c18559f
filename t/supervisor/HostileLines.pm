# SPDX-License-Identifier: Apache-2.0
# Lines of runners that attack the supervisor: odd ones, which keep to the
# protocol, and breaches of it. hostile_runner.pl replaces the words between @.
package HostileLines;
use strict;
use warnings;
use Exporter 'import';

our @EXPORT_OK = qw(odd_lines refused_line breaches);

my $ID = '"01890000-0000-7000-8000-00000000000f"';

# A line of a run from its members, names and JSON texts.
sub line_of {
    my ($type, %members) = @_;
    %members = (run_id => '"@RUN@"', epoch => '@EPOCH@', %members);
    return join(',', "{\"type\":$type", map { "\"$_\":$members{$_}" } sort keys %members) . '}';
}

# The messages of a run, and their required members.
my %valid = (
    event => { event => '"custom"', data => '1' },
    checkpoint => { checkpoint_id => $ID, parent => 'null', values => '{}', next => '[]', tasks => '[]', metadata => '{}' },
    task => { checkpoint_id => $ID, task => '{"id":"t"}' },
    blob => { digest => $ID, value_type => '"json"', text => '"1"' },
    put => { ns => '""', checkpoint_id => $ID, parent => 'null', checkpoint => '{}', metadata => '{}', channels => '{}' },
    put_writes => { ns => '""', checkpoint_id => $ID, task_id => '"t"', task_path => '""', writes => '[]' },
    want => { bytes => '10' },
    request => { id => '1', op => '"state.get"' },
    end => { status => '"success"' },
);

sub valid_line { my ($type, %members) = @_; return line_of("\"$type\"", %{ $valid{$type} }, %members) }

# ---- odd lines ----

sub nested { my ($levels) = @_; return '[' x $levels . ']' x $levels }

my @values = (
    'null', 'true', '-0', '1e308', '-1E-308', '9' x 340, '0.' . '3' x 300, '""', '{}', '[]', nested(120),
    '"\\ud83d\\ude00"', "\"\xf0\x9f\x98\x80\xe2\x80\xa8\"", '"\\/\\b\\f\\n\\r\\t\\"\\\\"', '{"":{"":[{"":0}]}}',
    '{"a":1,"A":2,"\\u0061b":3}', '{"$list":{"keep":9,"items":[]}}', '{"$same":true}', '{"$value":{"$value":1}}',
    '{"run_id":0,"epoch":-1,"type":"end"}', '"' . 'x' x 1000 . '"', '[' . join(',', (0) x 400) . ']',
    '"},{\\"d\\":1,\\"s\\":2"', '"\';drop table agent.runs;--"', ' { "a" : [ 1 , 2 ] } ',
);
my @names = ('custom', 'values', 'a|b:c', 'x' x 4096, "\xc3\xa9\xe4\xb8\xad", 'data:', "'", '%s%n', '..', 'error', 'end');

my %odd = (
    event => sub { my ($n, $value) = @_; return (event => "\"$names[$n % @names]\"", data => $value, d => $value, s => '[]') },
    checkpoint => sub {
        my ($n, $value) = @_;
        return (values => "{\"c\":$value,\"\":$value}", next => "[$value]", tasks => "[$value]", metadata => "{\"step\":$value}",
            opaque => $value, ns => "\"$names[$n % 2]\"");
    },
    task => sub { my ($n, $value) = @_; return (task => "{\"id\":\"$n\",\"result\":$value,\"error\":$value}") },
    blob => sub { my ($n) = @_; return (text => "\"$n\"", part => $n % 16, parts => 16) },
    put => sub {
        my ($n, $value) = @_;
        return (ns => "\"$n\"", checkpoint => "{\"v\":$value}", metadata => "{\"m\":$value}", channels => "{\"c\":$value}");
    },
    put_writes => sub { my ($n, $value) = @_; return (task_path => "\"$n\"", writes => "[$value]") },
);

# A line of each of these types, by default all types of output, with each value.
sub odd_lines {
    my @types = @_ ? @_ : sort keys %odd;
    my $n = 0;
    return map { my $value = $_; map { $n++; valid_line($_, $odd{$_}->($n, $value)) } @types } @values;
}

# The database refuses it, and with it the run.
sub refused_line { return valid_line('put', parent => $ID) }

# ---- breaches ----

# Texts that take the place of a line of that type, and the reason of the
# refusal.
my @broken = (
    [ sub { substr $_[0], 0, length($_[0]) - 1 }, qr/is not JSON/ ],
    [ sub { "$_[0]$_[0]" }, qr/is not JSON/ ],
    [ sub { substr $_[0], 20 }, qr/is not JSON/ ],
    [ sub { $_[0] =~ s/\}\z/,}/r }, qr/is not JSON/ ],
    [ sub { "[$_[0]]" }, qr/is not an object/ ],
    [ sub { '' }, qr/is not JSON/ ],
    [ sub { "\0$_[0]" }, qr/is not JSON/ ],
    (map { my $more = $_->[0]; [ sub { $_[0] =~ s/\}\z/,"more":$more}/r }, $_->[1] ] }
        [ "\"\xff\"", qr/is not valid UTF-8/ ], [ "\"\xed\xa0\x80\"", qr/is not valid UTF-8/ ], [ "\"\xc0\xaf\"", qr/is not valid UTF-8/ ],
        [ "\"\x01\"", qr/is not JSON/ ], [ '"\\u0000"', qr/U\+0000/ ], [ '"\\ud800"', qr/unpaired surrogate/ ],
        [ '"\\x"', qr/is not JSON/ ], [ nested(129), qr/deeper than 128/ ], [ '[' x 100_000, qr/deeper than 128/ ],
        [ '9' x 349, qr/a number of more/ ], [ '1e999', qr/a number of more/ ], [ 'NaN', qr/is not JSON/ ], [ '01', qr/is not JSON/ ],
        [ '"@LONG@"', qr/more than 8 MiB/ ], [ '1,"\\u0074ype":"end"', qr/escaped member name/ ],
        [ '1,"type":"end"', qr/a member twice/ ], [ '1,"run_id":"@RUN@"', qr/a member twice/ ]),
    (map { my $type = $_; [ sub { $_[0] =~ s/"type":"\w+"/"type":$type/r }, qr/has no known type/ ] }
        '"START"', '"reply"', '1', 'null', '"' . 'x' x 10_000 . '"', '["event"]'),
    (map { my $id = $_->[0]; [ sub { $_[0] =~ s/"run_id":"[^"]*"/"run_id":$id/r }, $_->[1] ] }
        [ $ID, qr/a run that it does not execute/ ], [ '1', qr/no valid run_id/ ], [ '""', qr/no valid run_id/ ],
        [ '"@RUN@0"', qr/no valid run_id/ ], [ '"../../../../../../../../../../etc/passwd"', qr/no valid run_id/ ]),
    (map { my $epoch = $_->[0]; [ sub { $_[0] =~ s/"epoch":[^,}]*/"epoch":$epoch/r }, $_->[1] ] }
        [ '@LAST@', qr/a run that it does not execute/ ], [ '2147483647', qr/a run that it does not execute/ ],
        [ '2147483648', qr/no valid epoch/ ], [ '-1', qr/no valid epoch/ ], [ '1.0', qr/no valid epoch/ ], [ '"1"', qr/no valid epoch/ ],
        [ '9' x 300, qr/no valid epoch/ ], [ 'null', qr/no valid epoch/ ]),
);

# Breaches with correct members.
my @states = (
    [ '{"type":"ready","graphs":{},"slots":1}', qr/ready twice/ ], [ '{"type":"ready","graphs":[],"slots":1}', qr/no graphs/ ],
    [ '{"type":"ready","graphs":{},"slots":99999}', qr/no valid slots/ ], [ '{"type":"pong","id":7}', qr/a pong without a ping/ ],
    [ '{"type":"ready","graphs":{},"slots":1,"features":[]}', qr/features, a reserved name/ ],
    [ '{"type":"pong","id":[]}', qr/no valid id/ ], [ '{"type":"pong","id":1,"busy_ms":-1}', qr/no valid busy_ms/ ],
    [ valid_line('end', status => '"drained"'), qr/ended as drained/ ], [ valid_line('end', status => '"failed"'), qr/no valid status/ ],
    [ valid_line('end', error => '[]'), qr/an error that is not an object/ ],
    [ valid_line('want', bytes => 8_388_610), qr/no valid bytes/ ], [ valid_line('want', bytes => 0), qr/no valid bytes/ ],
    [ valid_line('request', op => '"' . 'o' x 65 . '"'), qr/no valid op/ ], [ valid_line('request', args => '{"a":"' . 'x' x 4096 . '"}'), qr/4 KiB/ ],
    [ valid_line('blob', parts => 17, part => 0), qr/no valid part/ ], [ valid_line('blob', base64 => '"AAAA"'), qr/not one of text/ ],
    [ valid_line('put', ack => -1), qr/no valid ack/ ], [ valid_line('event', event => '"a\\nb"'), qr/no valid event name/ ],
    [ valid_line('event', checkpoint_id => $ID), qr/data but no path/ ],
);

# Each type without each of its members, and with a value of no valid type.
sub member_breaches {
    my ($type) = @_;
    my %members = %{ $valid{$type} };
    my @lines;
    for my $name (sort keys %members) {
        my %others = map { $_ => $members{$_} } grep { $_ ne $name } keys %members;
        push @lines, [ line_of("\"$type\"", %others), qr/its line has/ ] if $name ne 'data';
        push @lines, [ valid_line($type, $name => 'true'), qr/its line has/ ] if $name ne 'data';
    }
    return @lines;
}

# [line, reason in the log]. All, or each kind with one type of message; the
# longest line first.
sub breaches {
    my ($is_all) = @_;
    my @types = sort keys %valid;
    my @lines;
    for my $i (0 .. $#broken) {
        my ($break, $reason) = @{ $broken[$i] };
        push @lines, map { [ $break->(valid_line($_)), $reason ] } $is_all ? @types : $types[ $i % @types ];
    }
    push @lines, @states, $is_all ? map { member_breaches($_) } @types : ();
    my @long = grep { $_->[0] =~ /\@LONG\@/ } @lines;
    return (@long, grep { $_->[0] !~ /\@LONG\@/ } @lines);
}

1;
