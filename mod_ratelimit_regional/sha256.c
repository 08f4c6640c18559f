/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 as FIPS 180-4 describes it, for short messages; see sha256.h. */
#include "sha256.h"

#include <stdint.h>
#include <string.h>

#define BLOCK_BYTES  64
#define LENGTH_BYTES 8

/* Fractional parts of the cube roots of the first 64 primes (4.2.2). */
static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/* The same of the square roots of the first eight (5.3.3). */
static const uint32_t initial_state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                          0xa54ff53a, 0x510e527f, 0x9b05688c,
                                          0x1f83d9ab, 0x5be0cd19};

static uint32_t rotate(uint32_t x, int bits)
{
    return (x >> bits) | (x << (32 - bits));
}

static uint32_t load_big_endian(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8
        | p[3];
}

static void store_big_endian(unsigned char *p, uint32_t x)
{
    p[0] = (unsigned char)(x >> 24);
    p[1] = (unsigned char)(x >> 16);
    p[2] = (unsigned char)(x >> 8);
    p[3] = (unsigned char)x;
}

/* The message schedule is kept in 16 words: word i replaces word i - 16. */
static uint32_t next_word(uint32_t words[16], int i)
{
    uint32_t a = words[(i + 1) & 15];
    uint32_t b = words[(i + 14) & 15];

    words[i & 15] += words[(i + 9) & 15]
        + (rotate(a, 7) ^ rotate(a, 18) ^ (a >> 3))
        + (rotate(b, 17) ^ rotate(b, 19) ^ (b >> 10));
    return words[i & 15];
}

/* One round of 6.2.2. The names move on instead of the values: a macro,
 * because this runs for each request that carries a key. */
#define ROUND(a, b, c, d, e, f, g, h, i, word)                                 \
    do {                                                                       \
        h += (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25))                    \
            + (g ^ (e & (f ^ g))) + constants[i] + (word);                     \
        d += h;                                                                \
        h += (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22))                    \
            + ((a & b) | (c & (a | b)));                                       \
    } while (0)

#define EIGHT_ROUNDS(i, word)                                                  \
    ROUND(a, b, c, d, e, f, g, h, i, word(i));                                 \
    ROUND(h, a, b, c, d, e, f, g, i + 1, word(i + 1));                         \
    ROUND(g, h, a, b, c, d, e, f, i + 2, word(i + 2));                         \
    ROUND(f, g, h, a, b, c, d, e, i + 3, word(i + 3));                         \
    ROUND(e, f, g, h, a, b, c, d, i + 4, word(i + 4));                         \
    ROUND(d, e, f, g, h, a, b, c, i + 5, word(i + 5));                         \
    ROUND(c, d, e, f, g, h, a, b, i + 6, word(i + 6));                         \
    ROUND(b, c, d, e, f, g, h, a, i + 7, word(i + 7))

#define GIVEN_WORD(i) (words[i] = load_big_endian(block + 4 * (i)))
#define NEXT_WORD(i)  next_word(words, i)

static void add_block(uint32_t state[8], const unsigned char *block)
{
    uint32_t words[16];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];

    EIGHT_ROUNDS(0, GIVEN_WORD);
    EIGHT_ROUNDS(8, GIVEN_WORD);
    for (int i = 16; i < 64; i += 16) {
        EIGHT_ROUNDS(i, NEXT_WORD);
        EIGHT_ROUNDS(i + 8, NEXT_WORD);
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
}

/* The rest of the message, a one bit, zeros, the length in bits (5.1.1). */
static void add_end(uint32_t state[8], const unsigned char *rest, size_t left,
                    size_t length)
{
    unsigned char block[2 * BLOCK_BYTES] = {0};
    size_t total = left + 1 + LENGTH_BYTES > BLOCK_BYTES ? 2 * BLOCK_BYTES
                                                         : BLOCK_BYTES;

    memcpy(block, rest, left);
    block[left] = 0x80;
    store_big_endian(block + total - 8, (uint32_t)((uint64_t)length >> 29));
    store_big_endian(block + total - 4, (uint32_t)(length << 3));
    for (size_t done = 0; done < total; done += BLOCK_BYTES) {
        add_block(state, block + done);
    }
}

void rlr_sha256(unsigned char digest[RLR_SHA256_BYTES], const void *data,
                size_t length)
{
    const unsigned char *rest = data;
    size_t left = length;
    uint32_t state[8];

    memcpy(state, initial_state, sizeof(state));
    for (; left >= BLOCK_BYTES; left -= BLOCK_BYTES) {
        add_block(state, rest);
        rest += BLOCK_BYTES;
    }
    add_end(state, rest, left, length);
    for (int i = 0; i < 8; i++) {
        store_big_endian(digest + 4 * i, state[i]);
    }
}
