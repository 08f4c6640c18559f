# SPDX-License-Identifier: Apache-2.0
# Lines of runners that attack the supervisor: odd ones, which keep to the
# protocol, breaches of it, forms of each line that differ in one member, and
# sequences. hostile_runner.pl replaces the words between @.
package HostileLines;
use strict;
use warnings;
use Exporter 'import';

our @EXPORT_OK = qw(odd_lines refused_line breaches forms store_forms call_forms sequences);

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

# A request to the store, with these operations.
sub store_line { my (@ops) = @_; return valid_line('request', op => '"store"', args => '{"ops":[' . join(',', @ops) . ']}') }

# ---- odd lines ----

sub nested { my ($levels) = @_; return '[' x $levels . ']' x $levels }

my @values = (
    'null', 'true', '-0', '1e308', '-1E-308', '9' x 340, '0.' . '3' x 300, '""', '{}', '[]', nested(100),
    '"\\ud83d\\ude00"', "\"\xf0\x9f\x98\x80\xe2\x80\xa8\"", '"\\/\\b\\f\\n\\r\\t\\"\\\\"', '{"":{"":[{"":0}]}}',
    '{"a":1,"A":2,"\\u0061b":3}', '{"$list":{"keep":9,"items":[]}}', '{"$same":true}', '{"$value":{"$value":1}}',
    '{"run_id":0,"epoch":-1,"type":"end"}', '"' . 'x' x 1000 . '"', '[' . join(',', (0) x 400) . ']',
    '"},{\\"d\\":1,\\"s\\":2"', '"\';drop table agent.runs;--"', ' { "a" : [ 1 , 2 ] } ',
);
my @wraps = ('%s', '[%s,null]', '{"":%s}', '[' x 20 . '%s' . ']' x 20);
my @names = ('custom', 'values', 'a|b:c', 'x' x 4096, "\xc3\xa9\xe4\xb8\xad", 'data:', "'", '..', 'error', 'end');

# Members of any value, or of any value inside.
my %places = (
    event => [ [ data => '%s' ] ],
    checkpoint => [ [ values => '{"c":%s}' ], [ values => '{"":%s,"b":[]}' ], [ next => '[%s]' ], [ tasks => '[%s]' ],
        [ tasks => '[{"id":%s}]' ], [ metadata => '{"step":%s}' ] ],
    task => [ map { [ task => "{\"id\":\"t\",\"$_\":%s}" ] } qw(result error interrupts checkpoint state other) ],
    blob => [],
    put => [ [ checkpoint => '{"v":%s}' ], [ metadata => '{"m":%s}' ], [ channels => '{"c":%s}' ] ],
    put_writes => [ [ writes => '[%s]' ], [ writes => '[[0,"c",%s]]' ] ],
);

# Lines that keep to the protocol: of each of these types, by default of all types of output, each value in each place,
# plain and nested, and as an unknown member.
sub odd_lines {
    my @types = @_ ? @_ : sort keys %places;
    my $n = 0;
    my @lines;
    for my $type (@types) {
        for my $place (@{ $places{$type} }, [ unknown => '%s' ]) {
            my ($member, $format) = @{$place};
            for my $wrap (@wraps) {
                for my $value (@values) {
                    my %more = $type eq 'event' ? (event => "\"$names[$n++ % @names]\"") : ();
                    push @lines, valid_line($type, %more, $member => sprintf $format, sprintf $wrap, $value);
                }
            }
        }
    }
    return @lines;
}

# ---- forms ----

# Members that may be left out.
my %optional = (
    event => {}, checkpoint => { ns => '"n"', format => '"f"' }, task => { ns => '"n"' }, blob => { part => '0', parts => '2' },
    put => { ack => '1' }, put_writes => { ack => '1' }, want => {},
    request => { args => '{}', cursor => 'null' }, end => { error => 'null', interrupts => '{}', next => '[]', head => 'null' },
);
# Texts that are not JSON, or that PostgreSQL does not take.
my @invalid = ("\"\xff\"", "\"\xc3\"", "\"\xf0\x9f\x98\"", "\"\xed\xa0\x80\"", "\"\x01\"", '"\\u0000"', '"\\ud83d"', '"\\x"', '"x', '{"a":}',
    '[1,]', '1e999', '01', '-', 'NaN', 'nul', "'x'", '{"a":1', ']', nested(129));
# JSON of any type, for members that have one of their own.
my @other = ('null', 'true', '0', '-1', '1.5', '1e308', '-0', '9' x 19, '2147483648', '""', '"x"', '"x y"', '"\\n"', '"\\u00e9"', "\"\xc2\x85\"",
    '"' . 'x' x 5000 . '"', '"' . 'x' x 70_000 . '"', '"' . uc($ID =~ tr/"//dr) . '"', $ID, "\"\xc3\xa9\"", '[]', '{}', '[[]]', '[null]', '{"a":null}',
    '{"":{}}', nested(20), '"@RUN@"', '@EPOCH@');

# A line of these members in this order: [name, JSON text], ...
sub ordered_line { return '{' . join(',', map { "\"$_->[0]\":$_->[1]" } @_) . '}' }

# The forms of a line that differ in its member $at, each [line, whether it is a breach, undef where that depends].
sub forms_of_member {
    my ($at, @members) = @_;
    my ($name, $value) = @{ $members[$at] };
    my @before = @members[ 0 .. $at - 1 ];
    my @after = @members[ $at + 1 .. $#members ];
    my $with = sub { return ordered_line(@before, @_, @after) };
    my $escaped = sprintf '\\u%04x%s', ord $name, substr $name, 1;
    return (
        [ $with->(), undef ],
        [ $with->([ $name, $value ], [ $name, $value ]), 1 ], [ $with->([ $name, $value ], [ $name, 'null' ]), 1 ],
        [ $with->([ $escaped, $value ]), 1 ], [ $with->([ $name, $value ], [ $escaped, $value ]), 1 ],
        [ $with->([ uc $name, $value ]), undef ], [ $with->([ "$name ", $value ]), undef ],
        [ $with->([ $name, $value ], [ uc $name, '{}' ]), 0 ], [ $with->([ "x$name", nested(50) ], [ $name, " $value\t" ]), 0 ],
        [ $with->([ $name, "[$value]" ]), undef ], [ $with->([ $name, "{\"$name\":$value}" ]), undef ],
        [ ordered_line(@before, [ $name, $value ]) =~ s/\}\z//r, 1 ], [ ordered_line(@before) =~ s/\}\z/,"$name"/r, 1 ],
        [ $with->([ $name, $value ]) =~ s/"$name":/"$name"/r, 1 ],
        (map { [ $with->([ $name, $_ ]), 1 ], [ $with->([ $name, $value ], [ x => $_ ]), 1 ] } @invalid),
        map { [ $with->([ $name, $_ ]), undef ] } @other,
    );
}

# A line of that type with each of its members left out, repeated, of each other type and of each invalid text, as
# forms_of_member().
sub forms_of_type {
    my ($type, %more) = @_;
    my %members = (%{ $valid{$type} }, %{ $optional{$type} }, %more);
    my @members = ([ type => "\"$type\"" ], [ run_id => '"@RUN@"' ], [ epoch => '@EPOCH@' ],
        map { [ $_ => $members{$_} ] } sort keys %members);
    my %seen;
    return grep { !$seen{ $_->[0] }++ } map { forms_of_member($_, @members) } 0 .. $#members;
}

# The forms of each type: [line, whether it is a breach, undef where that depends, whether it may end the run].
sub forms {
    return map { my $type = $_; map { [ @{$_}[ 0, 1 ], $type eq 'end' ] } forms_of_type($type) } sort keys %valid;
}

# Operations of the store, with all their members.
my %store = (
    get => { namespace => '["n"]', key => '"k"', refresh_ttl => 'true' },
    put => { namespace => '["n"]', key => '"k"', value => '{"a":1}', ttl => '5', index => 'null' },
    search => { namespace_prefix => '["n"]', filter => '{"a":{"$gt":0}}', limit => '10', offset => '0', query => 'null', refresh_ttl => 'false' },
    list => { prefix => '["n"]', suffix => '["*"]', max_depth => '1', limit => '10', offset => '0' },
);

# The forms of an operation that differ in its member $at, each [JSON text, whether a line with it is a breach]: the
# supervisor reads the line, and only the database the operation.
sub forms_of_operation {
    my ($at, @members) = @_;
    my ($name, $value) = @{ $members[$at] };
    my $with = sub { return ordered_line(@members[ 0 .. $at - 1 ], @_, @members[ $at + 1 .. $#members ]) };
    return (
        [ $with->(), 0 ], [ $with->([ uc $name, $value ]), 0 ], [ $with->([ $name, "[$value]" ]), 0 ],
        [ $with->([ $name, $value ], [ $name, 'null' ]), undef ], [ $with->([ $name, $value ]) =~ s/\}\z//r, 1 ],
        (map { [ $with->([ $name, $_ ]), 1 ] } @invalid),
        map { [ $with->([ $name, $_ ]), 0 ] } @other, @values, '["a.b"]', '["*"]', '[""]', '["n","n"]', '["n",1]', '[' . join(',', ('"n"') x 33) . ']',
        '{"$in":[1]}', '{"a":{"$eq":{"b":[]}}}', '{"a":{"$gt":"x","$lt":1}}', '{"":""}',
    );
}

# Requests to the store: [line, whether it is a breach, undef where that depends, false, true: a reply follows one that
# is none].
sub store_forms {
    my @lines = forms_of_type('request', op => '"store"', args => '{"ops":[' . ordered_line([ op => '"list"' ]) . ']}');
    my @all;
    for my $op (sort keys %store) {
        my @members = ([ op => "\"$op\"" ], map { [ $_ => $store{$op}{$_} ] } sort keys %{ $store{$op} });
        push @all, ordered_line(@members);
        push @lines, map { [ store_line($_->[0]), $_->[1] ] } map { forms_of_operation($_, @members) } 0 .. $#members;
    }
    push @lines, map { [ store_line(@{$_}), 0 ] } \@all, [ (@all) x 20 ], [], ['1'], ['null', @all], [ ($all[0]) x 1000 ], [ ($all[1]) x 1001 ], [ ($all[2]) x 5000 ];
    my %seen;
    return map { [ @{$_}[ 0, 1 ], 0, 1 ] } grep { !$seen{ $_->[0] }++ } @lines;
}

# Lines of calls: [operation, line, whether it is a breach, undef where that depends, whether it may end the call].
sub call_forms {
    my @forms;
    for my $op (qw(describe update)) {
        for my $type (sort keys %valid) {
            my $is_refused = $type eq 'event' || $op ne 'update' && $type !~ /\A(?:want|request|end)\z/;
            push @forms, [ $op, valid_line($type), $is_refused ? 1 : 0, $type eq 'end' ];
        }
        push @forms, [ $op, store_line('{"op":"list"}'), 0, 0 ], [ $op, valid_line('end', value => '1'), $op eq 'update' ? 1 : 0, 1 ];
    }
    push @forms, map { [ 'describe', @{$_}[ 0, 1 ], 1 ] } forms_of_type('end', value => '{"a":1}');
    for my $wrap (@wraps) {
        push @forms, map { [ 'describe', valid_line('end', value => sprintf $wrap, $_), 0, 1 ] } @values;
    }
    push @forms, map { [ 'describe', valid_line('end', value => $_), 1, 1 ] } @invalid;
    push @forms, map { [ 'update', @{$_}[ 0, 1 ], 0 ] } map { forms_of_type($_) } qw(checkpoint put);
    return @forms;
}

# Valid lines in an order that has no meaning: [lines, whether they end the run, its status and whether its runner is ended
# before; without that success].
sub sequences {
    my ($event, $checkpoint, $put, $end) = map { valid_line($_) } qw(event checkpoint put end);
    my $request = valid_line('request');
    my $store = store_line('{"op":"put","namespace":["n"],"key":"k","value":{}}');
    # The second one may come in time, or in another batch.
    my ($may_end, $may_fail, $fails) = (qr/\Asuccess(?: ended)?\z/, qr/\A(?:success|error)\z/, qr/\Aerror\z/);
    return (
        [ [ $end, $event ], 1 ], [ [ $end, $end ], 1 ], [ [ $end, $checkpoint ], 1 ], [ [ $end, valid_line('want') ], 1 ], [ [ $end, $request ], 1 ],
        [ [ (valid_line('want')) x 2 ], 0, $may_end ], [ [ ($request) x 2 ], 0, $may_end ],
        [ [ map { valid_line('request', id => $_, op => '"none"') } 1 .. 17 ], 0, qr/\Asuccess ended\z/ ],
        [ [ map { valid_line('put', ack => $_) } 1 .. 17 ], 0, $may_end ], [ [ ($put) x 2 ] ], [ [ ($checkpoint) x 2 ], 0, $may_fail ],
        [ [ ($store) x 2 ], 0, $may_end ], [ [ $end, $store ], 1 ], [ [ valid_line('want'), $store ] ], [ [ $put, $store, $put ] ],
        [ [ valid_line('put_writes'), $put ] ], [ [ valid_line('task'), $checkpoint ] ],
        [ [ valid_line('event', checkpoint_id => $ID, data => '{}', path => '["a"]'), $checkpoint ], 0, $fails ],
        [ [ map { valid_line('blob', part => $_, parts => 3) } 2, 0, 0, 1 ], 0, $may_fail ],
        [ [ map { valid_line('blob', parts => $_, part => 0) } 2, 3 ] ],
        [ [ valid_line('checkpoint', parent => $ID, values => '{"c":{"$same":true}}'), $event ], 0, $fails ],
        [ [ valid_line('put', channels => "{\"c\":$ID}"), valid_line('blob') ], 0, $may_fail ],
    );
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
    [ '{"type":"importing","graph_id":null}', qr/imported a graph after it was ready/ ], [ '{"type":"importing","graph_id":7}', qr/no valid graph_id/ ],
    [ '{"type":"pong","id":[]}', qr/no valid id/ ], [ '{"type":"pong","id":1,"busy_ms":-1}', qr/no valid busy_ms/ ],
    [ '{"type":"pong","id":1,"spent":1}', qr/no valid spent/ ],
    [ valid_line('end', status => '"drained"'), qr/ended as drained/ ], [ valid_line('end', status => '"failed"'), qr/no valid status/ ],
    [ valid_line('end', error => '[]'), qr/an error that is not an object/ ],
    [ valid_line('want', bytes => 8_388_610), qr/no valid bytes/ ], [ valid_line('want', bytes => 0), qr/no valid bytes/ ],
    [ valid_line('request', op => '"' . 'o' x 65 . '"'), qr/no valid op/ ], [ valid_line('request', args => '{"a":"' . 'x' x 4096 . '"}'), qr/4 KiB/ ],
    [ valid_line('request', op => '"store"', args => '{"ops":"' . 'x' x 4_194_304 . '"}'), qr/4 MiB/ ], [ valid_line('end', value => 'null'), qr/with a value/ ],
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
