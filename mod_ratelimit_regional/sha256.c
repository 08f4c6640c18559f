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
static inline uint32_t next_word(uint32_t words[16], unsigned i)
{
    uint32_t a = words[(i + 1) & 15];
    uint32_t b = words[(i + 14) & 15];

    words[i & 15] += words[(i + 9) & 15]
        + (rotate(a, 7) ^ rotate(a, 18) ^ (a >> 3))
        + (rotate(b, 17) ^ rotate(b, 19) ^ (b >> 10));
    return words[i & 15];
}

/*
 * One round of 6.2.2. s[0..7] are the standard's a..h, which move on by one
 * place after each round; instead of moving them, `turn` says how far they are.
 */
static inline void add_round(uint32_t s[8], unsigned turn, uint32_t input)
{
    uint32_t a = s[(8 - turn) & 7];
    uint32_t b = s[(9 - turn) & 7];
    uint32_t c = s[(10 - turn) & 7];
    uint32_t e = s[(12 - turn) & 7];
    uint32_t f = s[(13 - turn) & 7];
    uint32_t g = s[(14 - turn) & 7];
    uint32_t h = s[(15 - turn) & 7] + input + (g ^ (e & (f ^ g)))
        + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25));

    s[(11 - turn) & 7] += h;
    s[(15 - turn) & 7] = h + ((a & b) | (c & (a | b)))
        + (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22));
}

/* Written out, so that every place is known when it is compiled: this runs for
 * each request that carries a key. */
static inline void add_eight_rounds(uint32_t s[8], uint32_t words[16],
                                    unsigned i)
{
    add_round(s, 0, constants[i] + next_word(words, i));
    add_round(s, 1, constants[i + 1] + next_word(words, i + 1));
    add_round(s, 2, constants[i + 2] + next_word(words, i + 2));
    add_round(s, 3, constants[i + 3] + next_word(words, i + 3));
    add_round(s, 4, constants[i + 4] + next_word(words, i + 4));
    add_round(s, 5, constants[i + 5] + next_word(words, i + 5));
    add_round(s, 6, constants[i + 6] + next_word(words, i + 6));
    add_round(s, 7, constants[i + 7] + next_word(words, i + 7));
}

static void add_block(uint32_t state[8], const unsigned char *block)
{
    uint32_t words[16];
    uint32_t s[8];

    memcpy(s, state, sizeof(s));
    for (unsigned i = 0; i < 16; i++) {
        words[i] = load_big_endian(block + (size_t)4 * i);
    }
    for (unsigned i = 0; i < 16; i += 8) {
        for (unsigned k = 0; k < 8; k++) {
            add_round(s, k, constants[i + k] + words[i + k]);
        }
    }
    for (unsigned i = 16; i < 64; i += 16) {
        add_eight_rounds(s, words, i);
        add_eight_rounds(s, words, i + 8);
    }
    for (int i = 0; i < 8; i++) {
        state[i] += s[i];
    }
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
