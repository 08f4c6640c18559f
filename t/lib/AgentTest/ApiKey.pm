# SPDX-License-Identifier: Apache-2.0
# Accounts and API keys for tests, made past agentctl:
#
#   my $account = create_account();                       # its id
#   my $key = create_key($account, scopes => ['read']);   # its text
#   revoke_key($key);
package AgentTest::ApiKey;
use strict;
use warnings;
use AgentTest::Database;
use Compress::Raw::Zlib ();
use Digest::SHA qw(sha256_hex);
use Exporter 'import';

our @EXPORT = qw(create_account close_account create_key revoke_key key_id print_key random_digits);

my @DIGITS = ('0' .. '9', 'A' .. 'Z', 'a' .. 'z');
my $accounts = 0;

# The id of a new account; create_account($id): with that id.
sub create_account {
    my ($id) = @_;
    $id //= sprintf '018f2d6e-7c4b-7abc-9def-%012x', $$ * 1000 + ++$accounts;
    my ($code) = sql("select code from agent.create_account('$id', 'test')");
    die "create_account: $code\n" if $code ne 'ok';
    return $id;
}

sub close_account { return sql("select code from agent.close_account('$_[0]')") }

# Digits of base 62, below every limit: the first one is 0.
sub random_digits {
    my ($count) = @_;
    return join '', '0', map { $DIGITS[ rand @DIGITS ] } 2 .. $count;
}

sub checksum {
    my ($text) = @_;
    my $crc = Compress::Raw::Zlib::crc32($text);
    my $digits = '';
    for (1 .. 6) {
        $digits = $DIGITS[ $crc % 62 ] . $digits;
        $crc = int($crc / 62);
    }
    return $digits;
}

# print_key($letters, $id, $secret): a text with a correct checksum.
sub print_key {
    my ($letters, $id, $secret, $region) = @_;
    my $text = join '_', 'ag1', $region // 'local', $letters, $id, $secret;
    return $text . '_' . checksum($text);
}

# The id, or with 4 the secret.
sub key_id {
    my ($key, $part) = @_;
    return (split /_/, $key)[ $part // 3 ];
}

my %letters = (service => 'sk', personal => 'pt', deployment => 'dk');

# create_key($account, kind => 'personal', user => 'ann', deployment => 'shop',
# scopes => [...], lifetime => '1 hour')
sub create_key {
    my ($account, %with) = @_;
    my $kind = $with{kind} // 'service';
    my ($id, $secret) = (random_digits(22), random_digits(43));
    my $scopes = join ',', map { "'$_'" } @{ $with{scopes} // [qw(read run deploy admin)] };
    my ($row) = sql("select code, body::json->>'region' from agent.create_api_key('$id', '$account', '\\x@{[ sha256_hex($secret) ]}', '$kind', 'test', "
        . literal($with{user}) . ', ' . literal($with{deployment}) . ", array[$scopes], "
        . literal($with{lifetime}) . ')');
    my ($code, $region) = split /\t/, $row;
    die "create_api_key: $code\n" if $code ne 'ok';
    return print_key($letters{$kind}, $id, $secret, $region);
}

sub revoke_key { return sql('select code from agent.revoke_api_key(' . literal(key_id($_[0])) . ')') }

1;
