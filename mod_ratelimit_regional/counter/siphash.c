/* SPDX-License-Identifier: Apache-2.0 */
/* Computes SipHash-2-4 with 128 bits, after section 2 of the paper and the
 * published constants of the 128-bit variant (0xee, 0xee, 0xdd). */
#include "siphash.h"

typedef struct sip_state_t {
    uint64_t v0, v1, v2, v3;
} sip_state_t;

static inline uint64_t rotate(uint64_t value, unsigned bits)
{
    return (value << bits) | (value >> (64 - bits));
}

/* Compiled to one load on little-endian machines. */
static inline uint64_t read_le64(const unsigned char *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16
        | (uint64_t)p[3] << 24 | (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40
        | (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
}

static inline void mix_round(sip_state_t *s)
{
    s->v0 += s->v1;
    s->v2 += s->v3;
    s->v1 = rotate(s->v1, 13) ^ s->v0;
    s->v3 = rotate(s->v3, 16) ^ s->v2;
    s->v0 = rotate(s->v0, 32);
    s->v2 += s->v1;
    s->v0 += s->v3;
    s->v1 = rotate(s->v1, 17) ^ s->v2;
    s->v3 = rotate(s->v3, 21) ^ s->v0;
    s->v2 = rotate(s->v2, 32);
}

static inline void mix_word(sip_state_t *s, uint64_t word)
{
    s->v3 ^= word;
    mix_round(s);
    mix_round(s);
    s->v0 ^= word;
}

static inline uint64_t mix_final(sip_state_t *s)
{
    for (int i = 0; i < 4; i++) {
        mix_round(s);
    }
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

/* The last word: the remaining bytes, and the low byte of the length on top. */
static inline uint64_t read_tail(const unsigned char *p, size_t length)
{
    uint64_t word = (uint64_t)(length & 0xff) << 56;

    for (size_t i = 0; i < (length & 7); i++) {
        word |= (uint64_t)p[i] << (8 * i);
    }
    return word;
}

rlr_siphash_t rlr_siphash_compute(const unsigned char key[RLR_SIPHASH_KEY_SIZE],
                                  const void *data, size_t length)
{
    const unsigned char *p = data;
    uint64_t k0 = read_le64(key);
    uint64_t k1 = read_le64(key + 8);
    /* The paper's constants ("somepseudorandomlygeneratedbytes"); 0xee selects
     * the 128-bit function. */
    sip_state_t s = {k0 ^ 0x736f6d6570736575U, k1 ^ 0x646f72616e646f6dU ^ 0xee,
                     k0 ^ 0x6c7967656e657261U, k1 ^ 0x7465646279746573U};
    rlr_siphash_t hash;

    for (size_t left = length; left >= 8; left -= 8, p += 8) {
        mix_word(&s, read_le64(p));
    }
    mix_word(&s, read_tail(p, length));
    s.v2 ^= 0xee;
    hash.first = mix_final(&s);
    s.v1 ^= 0xdd;
    hash.second = mix_final(&s);
    return hash;
}
