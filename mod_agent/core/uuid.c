/* SPDX-License-Identifier: Apache-2.0 */
/* UUID versions 5 and 7 (RFC 9562) and the strict reader; see uuid.h. */
#include "uuid.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include <apr_general.h>
#include <apr_sha1.h>
#include <apr_time.h>

static const char hex_digits[] = "0123456789abcdef";

/* Differs in one digit from the URL namespace of RFC 9562 (6ba7b811-...), and
 * is the value published for assistants of graphs. */
static const unsigned char assistant_namespace[16] = {
    0x6b, 0xa7, 0xb8, 0x21, 0x9d, 0xad, 0x11, 0xd1,
    0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8};

static void format_uuid(char out[AGENT_UUID_SIZE],
                        const unsigned char bytes[16])
{
    char *p = out;

    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            *p++ = '-';
        }
        *p++ = hex_digits[bytes[i] >> 4];
        *p++ = hex_digits[bytes[i] & 15];
    }
    *p = '\0';
}

/*
 * 48 bits of milliseconds and 12 bits below them: microseconds first, then a
 * counter, so that the value grows with every call of this process even when
 * the clock stands still or goes back.
 */
static uint64_t next_tick(void)
{
    static _Atomic uint64_t last_tick;
    uint64_t now = (uint64_t)apr_time_now();
    uint64_t tick = ((now / 1000) << 12) | (((now % 1000) << 12) / 1000);
    uint64_t last = atomic_load(&last_tick);

    do {
        if (tick <= last) {
            tick = last + 1;
        }
    } while (!atomic_compare_exchange_weak(&last_tick, &last, tick));
    return tick;
}

void agent_uuid_v7(char out[AGENT_UUID_SIZE])
{
    unsigned char bytes[16];
    uint64_t tick = next_tick();

    apr_generate_random_bytes(bytes, sizeof(bytes));
    for (int i = 0; i < 6; i++) {
        bytes[i] = (unsigned char)(tick >> (52 - 8 * i));
    }
    bytes[6] = (unsigned char)(0x70 | ((tick >> 8) & 0x0f));
    bytes[7] = (unsigned char)tick;
    bytes[8] = (unsigned char)(0x80 | (bytes[8] & 0x3f));
    format_uuid(out, bytes);
}

void agent_uuid_v5(char out[AGENT_UUID_SIZE], const char *name)
{
    unsigned char digest[APR_SHA1_DIGESTSIZE];
    apr_sha1_ctx_t context;

    apr_sha1_init(&context);
    apr_sha1_update_binary(&context, assistant_namespace,
                           sizeof(assistant_namespace));
    apr_sha1_update_binary(&context, (const unsigned char *)name,
                           (unsigned int)strlen(name));
    apr_sha1_final(digest, &context);
    digest[6] = (unsigned char)(0x50 | (digest[6] & 0x0f));
    digest[8] = (unsigned char)(0x80 | (digest[8] & 0x3f));
    format_uuid(out, digest);
}

bool agent_uuid_parse(char out[AGENT_UUID_SIZE], const char *text)
{
    if (text == NULL) {
        return false;
    }
    for (int i = 0; i < AGENT_UUID_SIZE - 1; i++) {
        char c = text[i];

        if (c >= 'A' && c <= 'F') {
            c = (char)(c - 'A' + 'a');
        }
        if (i == 8 || i == 13 || i == 18 || i == 23) {
            if (c != '-') {
                return false;
            }
        }
        else if (c == '\0' || strchr(hex_digits, c) == NULL) {
            return false;
        }
        out[i] = c;
    }
    out[AGENT_UUID_SIZE - 1] = '\0';
    return text[AGENT_UUID_SIZE - 1] == '\0';
}
