/* deflate.c - see deflate.h; section numbers are of RFC 1951.
 *
 * A piece is read three times: for runs, which become a list of tokens; for the numbers of its literals; and to be written. Where
 * Huffman codes gain nothing it is stored. */
#include "base/deflate.h"

#include <string.h>

enum {
    LITERALS = 256,
    END_OF_BLOCK = 256,
    LENGTH_SYMBOLS = 29,
    CODES = LITERALS + 1 + LENGTH_SYMBOLS,
    DISTANCE_SYMBOLS = 30,
    LONGEST_CODE = 14, /* 15 are allowed; four of 14 bits, and 7 left over, fit the 64 bits that are written at a time */
    META_CODES = 19,
    LONGEST_META_CODE = 7,
    SHORTEST_RUN = 8, /* bytes compared at a time */
    LONGEST_MATCH = 258,
    STORED_BLOCK = 65535,
    TOKENS = 1 << 12 /* runs of a block, at most */
};

/* ---------------------------------------------------------------- bits, lowest first (3.1.1) */

typedef struct bit_writer {
    uint8_t *at;
    uint64_t bits;
    unsigned count; /* of bits that are not written yet; below 8 after flush */
} bit_writer;

static inline void put(bit_writer *w, uint32_t value, unsigned count) {
    w->bits |= (uint64_t)value << w->count;
    w->count += count;
}

/* Writes whole bytes. 8 bytes are touched. */
static inline void flush(bit_writer *w) {
    memcpy(w->at, &w->bits, 8);
    w->at += w->count >> 3;
    w->bits >>= w->count & 56;
    w->count &= 7;
}

static void align(bit_writer *w) {
    flush(w);
    if (w->count)
        w->at++;
    w->bits = 0;
    w->count = 0;
}

/* ---------------------------------------------------------------- lengths of codes */

/* Orders symbols by how often they occur, rare ones first; returns how many occur at all. */
static int sort_by_number(uint32_t *keys, const uint32_t *numbers, int symbols) {
    int used = 0;
    for (int s = 0; s < symbols; s++) {
        if (!numbers[s])
            continue;
        /* A number is below 2^21 (THEO_DEFLATE_MOST, and end of block), a symbol below 2^9. */
        const uint32_t key = numbers[s] << 9 | (uint32_t)s;
        int at = used++;
        for (; at > 0 && keys[at - 1] > key; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
    return used;
}

/* Huffman's tree over weights in rising order, in place: afterwards depth[i] is the length of the code of weight i. (Moffat and
 * Katajainen 1995: parents, then depths of the inner nodes, then of the leaves.) n >= 2. */
static void make_depths(uint32_t *node, int n) {
    int leaf = 0, root = 0;
    for (int next = 0; next < n - 1; next++) {
        uint32_t sum = 0;
        for (int child = 0; child < 2; child++) {
            if (leaf >= n || (root < next && node[root] < node[leaf])) {
                sum += node[root];
                node[root++] = (uint32_t)next;
            } else {
                sum += node[leaf++];
            }
        }
        node[next] = sum;
    }
    node[n - 2] = 0;
    for (int next = n - 3; next >= 0; next--)
        node[next] = node[node[next]] + 1;
    int free_nodes = 1, inner = n - 2, next = n - 1;
    for (uint32_t depth = 0; free_nodes > 0; depth++) {
        int used = 0;
        for (; inner >= 0 && node[inner] == depth; inner--)
            used++;
        for (int i = used; i < free_nodes; i++)
            node[next--] = depth;
        free_nodes = 2 * used;
    }
}

/* Numbers of codes of each length, brought to `longest` at most: codes that are too long are cut, and for each overflow a shorter
 * code is made longer (the sum of 2^-length must be 1). */
static void limit_lengths(int counts[32], int longest) {
    int64_t sum = 0;
    for (int length = 31; length > longest; length--) {
        counts[longest] += counts[length];
        counts[length] = 0;
    }
    for (int length = 1; length <= longest; length++)
        sum += (int64_t)counts[length] << (longest - length);
    for (; sum > (int64_t)1 << longest; sum--) {
        int length = longest - 1;
        while (!counts[length])
            length--;
        counts[longest]--;
        counts[length]--;
        counts[length + 1] += 2;
    }
}

/* lengths[symbols] of a complete prefix code; 0 for symbols that do not occur. A single symbol gets a code of one bit. */
static void make_lengths(uint8_t *lengths, const uint32_t *numbers, int symbols, int longest) {
    uint32_t keys[CODES], depths[CODES];
    memset(lengths, 0, (size_t)symbols);
    const int used = sort_by_number(keys, numbers, symbols);
    if (used == 0)
        return;
    if (used == 1) {
        lengths[keys[0] & 511] = 1;
        return;
    }
    for (int i = 0; i < used; i++)
        depths[i] = keys[i] >> 9;
    make_depths(depths, used);
    int counts[32] = {0};
    for (int i = 0; i < used; i++)
        counts[depths[i] < 31 ? depths[i] : 31]++;
    limit_lengths(counts, longest);
    int next = 0; /* the rarest symbols get the longest codes */
    for (int length = longest; length > 0; length--)
        for (int i = 0; i < counts[length]; i++)
            lengths[keys[next++] & 511] = (uint8_t)length;
}

/* Codes by their lengths (3.2.2), the first bit lowest: code << 8 | length. */
static void make_codes(uint32_t *codes, const uint8_t *lengths, int symbols) {
    uint32_t counts[16] = {0}, next[16] = {0};
    for (int s = 0; s < symbols; s++)
        counts[lengths[s]]++;
    counts[0] = 0;
    for (int length = 1; length < 16; length++)
        next[length] = (next[length - 1] + counts[length - 1]) << 1;
    for (int s = 0; s < symbols; s++) {
        const unsigned length = lengths[s];
        uint32_t code = length ? next[length]++ : 0, turned = 0;
        for (unsigned bit = 0; bit < length; bit++, code >>= 1)
            turned = turned << 1 | (code & 1);
        codes[s] = turned << 8 | length;
    }
}

/* ---------------------------------------------------------------- runs */

/* Literals, then a run that repeats what lies one distance before. */
typedef struct token {
    uint32_t literals, length; /* length 0: no run, the end */
} token;

static inline uint64_t load(const uint8_t *p) {
    uint64_t x;
    memcpy(&x, p, 8);
    return x;
}

/* The end of a run that is there at `at`. */
static size_t run_end(const uint8_t *data, size_t at, size_t bytes, size_t distance) {
    while (at + 8 <= bytes && load(data + at) == load(data + at - distance))
        at += 8;
    while (at < bytes && data[at] == data[at - distance])
        at++;
    return at;
}

/* Fills tokens[TOKENS]; their number. Every eighth place is looked at, so that a run of 15 bytes is never missed. */
static int find_runs(token *tokens, const uint8_t *data, size_t before, size_t bytes, size_t distance) {
    const size_t first = before >= distance ? 0 : distance - before;
    size_t done = 0;
    int count = 0;
    for (size_t at = first; at + SHORTEST_RUN <= bytes && count < TOKENS - 1;) {
        if (load(data + at) != load(data + at - distance)) {
            at += SHORTEST_RUN;
            continue;
        }
        size_t start = at;
        const size_t earliest = done > first ? done : first;
        while (start > earliest && data[start - 1] == data[start - 1 - distance])
            start--;
        at = run_end(data, at + SHORTEST_RUN, bytes, distance);
        tokens[count++] = (token){(uint32_t)(start - done), (uint32_t)(at - start)};
        done = at;
    }
    if (done < bytes)
        tokens[count++] = (token){(uint32_t)(bytes - done), 0};
    return count;
}

/* The next match of a run: never so long that 1 or 2 bytes are left, which no match can have. */
static inline uint32_t next_match(uint32_t left) {
    if (left <= LONGEST_MATCH)
        return left;
    return left < LONGEST_MATCH + 3 ? left - 3 : LONGEST_MATCH;
}

/* Symbol and extra bits of a length or a distance (3.2.5). */
typedef struct coded {
    uint32_t symbol, extra, extra_count;
} coded;

static inline uint32_t log2_of(uint32_t value) {
    return 31u - (uint32_t)__builtin_clz(value);
}

static inline coded code_length(uint32_t length) {
    const uint32_t l = length - 3;
    if (length == LONGEST_MATCH)
        return (coded){LITERALS + LENGTH_SYMBOLS, 0, 0};
    if (l < 8)
        return (coded){LITERALS + 1 + l, 0, 0};
    const uint32_t extra = log2_of(l) - 2;
    return (coded){LITERALS + 1 + 4 * extra + (l >> extra), l & ((1u << extra) - 1), extra};
}

static coded code_distance(uint32_t distance) {
    const uint32_t d = distance - 1;
    if (d < 4)
        return (coded){d, 0, 0};
    const uint32_t extra = log2_of(d) - 1;
    return (coded){2 * extra + (d >> extra), d & ((1u << extra) - 1), extra};
}

/* ---------------------------------------------------------------- numbers of symbols */

typedef struct census {
    uint32_t numbers[CODES];
    uint32_t matches;
    uint64_t extra_bits;
} census;

/* Four tables, so that equal neighbours do not wait for each other's sum. */
static void count_literals(uint32_t tables[4][LITERALS], const uint8_t *p, size_t count) {
    size_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int k = 0; k < 4; k++)
            tables[k][p[i + (size_t)k]]++;
    for (; i < count; i++)
        tables[0][p[i]]++;
}

static void take_census(census *c, const token *tokens, int count, const uint8_t *data, uint32_t distance_extra) {
    uint32_t tables[4][LITERALS] = {{0}};
    memset(c, 0, sizeof *c);
    for (int t = 0; t < count; t++) {
        count_literals(tables, data, tokens[t].literals);
        data += tokens[t].literals + tokens[t].length;
        for (uint32_t left = tokens[t].length; left;) {
            const uint32_t match = next_match(left);
            const coded length = code_length(match);
            c->numbers[length.symbol]++;
            c->extra_bits += length.extra_count + distance_extra;
            c->matches++;
            left -= match;
        }
    }
    for (int s = 0; s < LITERALS; s++)
        c->numbers[s] = tables[0][s] + tables[1][s] + tables[2][s] + tables[3][s];
    c->numbers[END_OF_BLOCK] = 1;
}

/* ---------------------------------------------------------------- the head of a block: lengths of its codes (3.2.7) */

typedef struct head {
    uint8_t lengths[CODES + DISTANCE_SYMBOLS]; /* of literals and lengths, then of distances */
    int literal_codes, distance_codes;
    uint8_t symbols[CODES + DISTANCE_SYMBOLS], repeats[CODES + DISTANCE_SYMBOLS]; /* the lengths, with their repetitions */
    int symbol_count;
    uint8_t meta_lengths[META_CODES];
    int meta_codes;
} head;

static const uint8_t meta_order[META_CODES] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};

static unsigned repeat_bits(uint8_t symbol) {
    return symbol == 16 ? 2 : symbol == 17 ? 3 : symbol == 18 ? 7 : 0;
}

static void add_symbol(head *h, int symbol, int repeat) {
    h->symbols[h->symbol_count] = (uint8_t)symbol;
    h->repeats[h->symbol_count++] = (uint8_t)repeat;
}

/* 16 repeats the length before 3 to 6 times, 17 and 18 are 3 to 10 and 11 to 138 zeros. */
static void shorten_lengths(head *h) {
    const int total = h->literal_codes + h->distance_codes;
    for (int i = 0; i < total;) {
        const uint8_t length = h->lengths[i];
        int run = 1;
        while (i + run < total && h->lengths[i + run] == length)
            run++;
        i += run;
        if (length) {
            add_symbol(h, length, 0);
            run--;
        }
        while (run >= 3) {
            const int longest = length ? 6 : 138, taken = run < longest ? run : longest;
            if (length)
                add_symbol(h, 16, taken - 3);
            else
                add_symbol(h, taken < 11 ? 17 : 18, taken < 11 ? taken - 3 : taken - 11);
            run -= taken;
        }
        for (; run > 0; run--)
            add_symbol(h, length, 0);
    }
}

static void make_head(head *h, const census *c, uint32_t distance_symbol) {
    memset(h, 0, sizeof *h);
    make_lengths(h->lengths, c->numbers, CODES, LONGEST_CODE);
    h->literal_codes = CODES;
    while (h->literal_codes > END_OF_BLOCK + 1 && !h->lengths[h->literal_codes - 1])
        h->literal_codes--;
    h->distance_codes = c->matches ? (int)distance_symbol + 1 : 1;
    memset(h->lengths + h->literal_codes, 0, (size_t)h->distance_codes);
    if (c->matches)
        h->lengths[h->literal_codes + (int)distance_symbol] = 1;
    shorten_lengths(h);
    uint32_t numbers[META_CODES] = {0};
    for (int i = 0; i < h->symbol_count; i++)
        numbers[h->symbols[i]]++;
    make_lengths(h->meta_lengths, numbers, META_CODES, LONGEST_META_CODE);
    h->meta_codes = META_CODES;
    while (h->meta_codes > 4 && !h->meta_lengths[meta_order[h->meta_codes - 1]])
        h->meta_codes--;
}

static uint64_t block_bits(const head *h, const census *c) {
    uint64_t bits = 3 + 14 + 3 * (uint64_t)h->meta_codes + c->extra_bits + c->matches; /* a distance's code has one bit */
    for (int i = 0; i < h->symbol_count; i++)
        bits += h->meta_lengths[h->symbols[i]] + repeat_bits(h->symbols[i]);
    for (int s = 0; s < h->literal_codes; s++)
        bits += (uint64_t)c->numbers[s] * h->lengths[s];
    return bits;
}

static void write_head(bit_writer *w, const head *h, bool last) {
    uint32_t codes[META_CODES];
    make_codes(codes, h->meta_lengths, META_CODES);
    put(w, last ? 1 : 0, 1);
    put(w, 2, 2);
    put(w, (uint32_t)(h->literal_codes - 257), 5);
    put(w, (uint32_t)(h->distance_codes - 1), 5);
    put(w, (uint32_t)(h->meta_codes - 4), 4);
    flush(w);
    for (int i = 0; i < h->meta_codes; i++) {
        put(w, h->meta_lengths[meta_order[i]], 3);
        flush(w);
    }
    for (int i = 0; i < h->symbol_count; i++) {
        const uint32_t code = codes[h->symbols[i]];
        put(w, code >> 8, code & 255);
        put(w, h->repeats[i], repeat_bits(h->symbols[i]));
        flush(w);
    }
}

/* ---------------------------------------------------------------- the body of a block */

static inline void put_code(bit_writer *w, uint32_t code) {
    put(w, code >> 8, code & 255);
}

/* Codes are joined by twos and fours before they meet the bits before them, so that only one step in four waits for the last. */
static inline void write_literals(bit_writer *w, const uint32_t *codes, const uint8_t *p, size_t count) {
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        const uint32_t a = codes[p[i]], b = codes[p[i + 1]], c = codes[p[i + 2]], d = codes[p[i + 3]];
        const unsigned front = (a & 255) + (b & 255), back = (c & 255) + (d & 255);
        const uint64_t ab = (a >> 8) | (uint64_t)(b >> 8) << (a & 255), cd = (c >> 8) | (uint64_t)(d >> 8) << (c & 255);
        w->bits |= (ab | cd << front) << w->count;
        w->count += front + back;
        flush(w);
    }
    for (; i < count; i++) {
        put_code(w, codes[p[i]]);
        flush(w);
    }
}

static inline void write_run(bit_writer *w, const uint32_t *codes, uint32_t left, coded distance) {
    while (left) {
        const uint32_t match = next_match(left);
        const coded length = code_length(match);
        put_code(w, codes[length.symbol]);
        put(w, length.extra, length.extra_count);
        put(w, 0, 1); /* the only code of a distance */
        put(w, distance.extra, distance.extra_count);
        flush(w);
        left -= match;
    }
}

static uint8_t *write_block(uint8_t *out, const head *h, const token *tokens, int count, const uint8_t *data, coded distance,
                            bool last) {
    uint32_t codes[CODES];
    bit_writer w = {.at = out};
    make_codes(codes, h->lengths, h->literal_codes);
    write_head(&w, h, last);
    for (int t = 0; t < count; t++) {
        write_literals(&w, codes, data, tokens[t].literals);
        write_run(&w, codes, tokens[t].length, distance);
        data += tokens[t].literals + tokens[t].length;
    }
    put_code(&w, codes[END_OF_BLOCK]);
    flush(&w);
    if (!last) { /* an empty stored block ends on a byte */
        put(&w, 0, 3);
        align(&w);
        memcpy(w.at, "\0\0\xff\xff", 4);
        w.at += 4;
    }
    align(&w);
    return w.at;
}

/* ---------------------------------------------------------------- pieces */

static uint8_t *write_stored(uint8_t *out, const uint8_t *data, size_t bytes, bool last) {
    do {
        const size_t part = bytes < STORED_BLOCK ? bytes : STORED_BLOCK;
        bytes -= part;
        *out++ = last && bytes == 0;
        *out++ = (uint8_t)part;
        *out++ = (uint8_t)(part >> 8);
        *out++ = (uint8_t)~part;
        *out++ = (uint8_t)(~part >> 8);
        memcpy(out, data, part);
        out += part;
        data += part;
    } while (bytes);
    return out;
}

static size_t stored_bytes(size_t bytes) {
    return bytes + 5 * (bytes / STORED_BLOCK + 1);
}

size_t theo_deflate_bound(size_t bytes) {
    return stored_bytes(bytes) + 16; /* the end of a piece, and what flush touches */
}

size_t theo_deflate_piece(uint8_t *out, const uint8_t *data, size_t before, size_t bytes, size_t distance, bool last) {
    token tokens[TOKENS];
    census c;
    head h;
    if (bytes == 0)
        return last ? (size_t)(write_stored(out, data, 0, true) - out) : 0;
    const int count = find_runs(tokens, data, before, bytes, distance);
    const coded coded_distance = code_distance((uint32_t)distance);
    take_census(&c, tokens, count, data, coded_distance.extra_count);
    make_head(&h, &c, coded_distance.symbol);
    const bool gains = block_bits(&h, &c) / 8 + 8 < stored_bytes(bytes);
    uint8_t *end = gains ? write_block(out, &h, tokens, count, data, coded_distance, last) : write_stored(out, data, bytes, last);
    return (size_t)(end - out);
}
