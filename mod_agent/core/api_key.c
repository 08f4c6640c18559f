/* SPDX-License-Identifier: Apache-2.0 */
/* The text of API keys, and their digests by libcrypto; see api_key.h. */
#include "api_key.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#define PREFIX         "ag1_"
#define CHECKSUM_CHARS 6
#define BASE           62

/* In the order of ASCII, so that texts of one length compare as numbers. */
static const char digits[] =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/* The largest numbers of 128 and 256 bits. */
static const char greatest_id[] = "7n42DGM5Tflk9n8mt7Fhc7";
static const char greatest_secret[] =
    "yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp1";

typedef struct kind_name_t {
    agent_api_key_kind_t kind;
    /* In a key, and in PostgreSQL. */
    const char *letters;
    const char *word;
} kind_name_t;

static const kind_name_t kind_names[] = {
    {AGENT_API_KEY_SERVICE, "sk", "service"},
    {AGENT_API_KEY_PERSONAL, "pt", "personal"},
    {AGENT_API_KEY_DEPLOYMENT, "dk", "deployment"}};

#define KINDS (sizeof(kind_names) / sizeof(*kind_names))

/* ---- numbers ---- */

/* Writes a number, most significant byte first, as count digits; number is
 * divided in place. */
static void write_number(char *out, size_t count, unsigned char *number,
                         size_t size)
{
    while (count-- > 0) {
        unsigned rest = 0;

        for (size_t i = 0; i < size; i++) {
            unsigned value = rest * 256 + number[i];

            number[i] = (unsigned char)(value / BASE);
            rest = value % BASE;
        }
        out[count] = digits[rest];
    }
}

/* CRC-32 as in ISO-HDLC, gzip and PNG, four bits at a time. */
static uint32_t compute_crc(const char *text, size_t length)
{
    static const uint32_t of_four_bits[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
        0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < length; i++) {
        crc ^= (unsigned char)text[i];
        crc = (crc >> 4) ^ of_four_bits[crc & 15];
        crc = (crc >> 4) ^ of_four_bits[crc & 15];
    }
    return ~crc;
}

static void write_checksum(char out[CHECKSUM_CHARS], const char *text,
                           size_t length)
{
    uint32_t crc = compute_crc(text, length);

    for (int i = CHECKSUM_CHARS; i-- > 0; crc /= BASE) {
        out[i] = digits[crc % BASE];
    }
}

/* ---- reading ---- */

/* Returns the length of the region that text begins with; 0: none, or one that
 * is too long. */
static size_t measure_region(const char *text)
{
    size_t length = 0;

    if (*text < 'a' || *text > 'z') {
        return 0;
    }
    while (length <= AGENT_API_KEY_REGION_MAX
           && ((text[length] >= 'a' && text[length] <= 'z')
               || (text[length] >= '0' && text[length] <= '9')
               || text[length] == '-')) {
        length++;
    }
    return length <= AGENT_API_KEY_REGION_MAX ? length : 0;
}

bool agent_api_key_is_region(const char *text)
{
    size_t length = measure_region(text);

    return length > 0 && text[length] == '\0';
}

/* Returns the text after the prefix, the region and its underscore; NULL
 * without them. */
static const char *read_region(agent_api_key_t *out, const char *text)
{
    size_t length;

    if (strncmp(text, PREFIX, strlen(PREFIX)) != 0) {
        return NULL;
    }
    text += strlen(PREFIX);
    length = measure_region(text);
    if (length == 0 || text[length] != '_') {
        return NULL;
    }
    memcpy(out->region, text, length);
    out->region[length] = '\0';
    return text + length + 1;
}

bool agent_api_key_begins_with(const char *text, const char *region)
{
    size_t length = strlen(region);

    return strncmp(text, PREFIX, strlen(PREFIX)) == 0
        && strncmp(text + strlen(PREFIX), region, length) == 0
        && text[strlen(PREFIX) + length] == '_';
}

/* Returns the text after the kind and its underscore; NULL without them. */
static const char *read_letters(agent_api_key_t *out, const char *text)
{
    for (size_t i = 0; i < KINDS; i++) {
        if (strncmp(text, kind_names[i].letters, 2) == 0 && text[2] == '_') {
            out->kind = kind_names[i].kind;
            return text + 3;
        }
    }
    return NULL;
}

/* Unlike apr_isalnum(), the same in every locale. */
static bool is_digit(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z')
        || (c >= 'a' && c <= 'z');
}

/* Returns the text after count digits and the character end; NULL: other
 * characters, or a number above greatest, which may be NULL. */
static const char *read_number(const char *text, size_t count, char end,
                               const char *greatest)
{
    for (size_t i = 0; i < count; i++) {
        if (!is_digit(text[i])) {
            return NULL;
        }
    }
    return text[count] == end
            && (greatest == NULL || memcmp(text, greatest, count) <= 0)
        ? text + count + (end != '\0')
        : NULL;
}

/* Returns the checksum in the text, with the members of *out set; NULL: the
 * text does not have the form of a key. */
static const char *read_parts(agent_api_key_t *out, const char *text)
{
    const char *id = NULL;
    const char *rest = read_region(out, text);

    if (rest != NULL) {
        id = read_letters(out, rest);
    }
    out->secret = id != NULL
        ? read_number(id, AGENT_API_KEY_ID_CHARS, '_', greatest_id)
        : NULL;
    if (out->secret == NULL) {
        return NULL;
    }
    memcpy(out->id, id, AGENT_API_KEY_ID_CHARS);
    out->id[AGENT_API_KEY_ID_CHARS] = '\0';
    rest = read_number(out->secret, AGENT_API_KEY_SECRET_CHARS, '_',
                       greatest_secret);
    return rest != NULL && read_number(rest, CHECKSUM_CHARS, '\0', NULL) != NULL
        ? rest
        : NULL;
}

agent_api_key_result_t agent_api_key_parse(agent_api_key_t *out,
                                           const char *text)
{
    agent_api_key_t key;
    char expected[CHECKSUM_CHARS];
    const char *checksum = read_parts(&key, text);

    if (checksum == NULL) {
        return AGENT_API_KEY_MALFORMED;
    }
    write_checksum(expected, text, (size_t)(checksum - 1 - text));
    /* No secret: the client sends both the text and its checksum. */
    if (memcmp(expected, checksum, CHECKSUM_CHARS) != 0) {
        return AGENT_API_KEY_CHECKSUM;
    }
    *out = key;
    return AGENT_API_KEY_OK;
}

/* ---- writing ---- */

/* Returns the end of the text. */
static char *write_text(char *out, const char *text)
{
    size_t length = strlen(text);

    memcpy(out, text, length);
    return out + length;
}

bool agent_api_key_format(
    char out[AGENT_API_KEY_SIZE], const char *region, agent_api_key_kind_t kind,
    const unsigned char id[AGENT_API_KEY_ID_BYTES],
    const unsigned char secret[AGENT_API_KEY_SECRET_BYTES])
{
    unsigned char number[AGENT_API_KEY_SECRET_BYTES];
    char *end;

    if (!agent_api_key_is_region(region)) {
        return false;
    }
    end = write_text(write_text(out, PREFIX), region);
    *end++ = '_';
    end = write_text(end, kind_names[kind - AGENT_API_KEY_SERVICE].letters);
    *end++ = '_';
    memcpy(number, id, AGENT_API_KEY_ID_BYTES);
    write_number(end, AGENT_API_KEY_ID_CHARS, number, AGENT_API_KEY_ID_BYTES);
    end += AGENT_API_KEY_ID_CHARS;
    *end++ = '_';
    memcpy(number, secret, AGENT_API_KEY_SECRET_BYTES);
    write_number(end, AGENT_API_KEY_SECRET_CHARS, number,
                 AGENT_API_KEY_SECRET_BYTES);
    OPENSSL_cleanse(number, sizeof(number));
    end += AGENT_API_KEY_SECRET_CHARS;
    write_checksum(end + 1, out, (size_t)(end - out));
    *end = '_';
    end[1 + CHECKSUM_CHARS] = '\0';
    return true;
}

/* ---- digests and kinds ---- */

/* Fetched once, since that takes longer than a digest. */
static EVP_MD *sha256;
static pthread_once_t sha256_once = PTHREAD_ONCE_INIT;

static void fetch_sha256(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
}

bool agent_api_key_digest(unsigned char out[AGENT_API_KEY_DIGEST_BYTES],
                          const char *text, size_t length)
{
    pthread_once(&sha256_once, fetch_sha256);
    return sha256 != NULL
        && EVP_Digest(text, length, out, NULL, sha256, NULL) == 1;
}

bool agent_api_key_is_digest(const unsigned char a[AGENT_API_KEY_DIGEST_BYTES],
                             const unsigned char b[AGENT_API_KEY_DIGEST_BYTES])
{
    return CRYPTO_memcmp(a, b, AGENT_API_KEY_DIGEST_BYTES) == 0;
}

const char *agent_api_key_kind_word(agent_api_key_kind_t kind)
{
    return kind_names[kind - AGENT_API_KEY_SERVICE].word;
}

bool agent_api_key_read_kind(agent_api_key_kind_t *out, const char *word)
{
    for (size_t i = 0; i < KINDS; i++) {
        if (strcmp(kind_names[i].word, word) == 0) {
            *out = kind_names[i].kind;
            return true;
        }
    }
    return false;
}
