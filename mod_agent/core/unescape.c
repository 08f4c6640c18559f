/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the escapes of JSON strings; see unescape.h. */
#include "unescape.h"

#include <string.h>

/* Returns the value of a hexadecimal digit; -1 for any other byte. */
static int read_digit(unsigned char byte)
{
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    byte |= 32;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

int agent_unescape_unit(const char **at, const char *end)
{
    int unit = 0;

    for (int i = 0; i < 4; i++, ++*at) {
        int digit = *at < end ? read_digit((unsigned char)**at) : -1;

        if (digit < 0) {
            return -1;
        }
        unit = unit * 16 + digit;
    }
    return unit;
}

/* The scan has found all four digits. */
static unsigned read_unit(agent_unescape_t *reader)
{
    return (unsigned)agent_unescape_unit(&reader->at, reader->at + 4);
}

/* After "\u": one unit, or two that are a surrogate pair. */
static unsigned read_code_point(agent_unescape_t *reader)
{
    unsigned unit = read_unit(reader);

    if (unit < 0xd800 || unit > 0xdfff) {
        return unit;
    }
    reader->at += strlen("\\u");
    return 0x10000 + ((unit - 0xd800) << 10) + read_unit(reader) - 0xdc00;
}

unsigned agent_unescape_size(unsigned code_point)
{
    if (code_point < 0x80) {
        return 1;
    }
    if (code_point < 0x800) {
        return 2;
    }
    return code_point < 0x10000 ? 3 : 4;
}

/* Puts the bytes after the first into reader->rest; returns the first. */
static unsigned char encode_utf8(agent_unescape_t *reader, unsigned code_point)
{
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    unsigned size = agent_unescape_size(code_point);

    for (; reader->left < size - 1; code_point >>= 6) {
        reader->rest[reader->left++] = (unsigned char)(0x80
                                                       | (code_point & 0x3f));
    }
    return (unsigned char)(leads[size] | code_point);
}

unsigned char agent_unescape_next(agent_unescape_t *reader)
{
    static const char kinds[] = "bfnrt";
    static const char meanings[] = "\b\f\n\r\t";
    const char *kind;
    char c;

    if (reader->left > 0) {
        return reader->rest[--reader->left];
    }
    c = *reader->at++;
    if (c != '\\') {
        return (unsigned char)c;
    }
    c = *reader->at++;
    if (c == 'u') {
        return encode_utf8(reader, read_code_point(reader));
    }
    kind = strchr(kinds, c);
    return (unsigned char)(kind != NULL ? meanings[kind - kinds] : c);
}
