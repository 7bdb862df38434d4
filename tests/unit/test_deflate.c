/* Deflate streams in pieces: what two inflaters make of them when they are joined, and their bounds. */
#include "base/deflate.h"
#include "t.h"

#include <libdeflate.h>
#include <zlib.h>

enum { MOST = 600000 };
static uint8_t data[MOST], out[2 * MOST], back[MOST + 1];

static uint32_t noise(void) {
    static uint32_t state = 1;
    state = state * 1664525 + 1013904223;
    return state >> 8;
}

static size_t write_pieces(size_t bytes, size_t piece) {
    size_t size = 0, at = 0;
    do {
        const size_t part = bytes - at < piece ? bytes - at : piece, bound = theo_deflate_bound(part);
        memset(out + size + bound, 0xa5, 16);
        const size_t made = theo_deflate_piece(out + size, data + at, part, at + part == bytes);
        CHECK(made > 0 && made <= bound);
        for (size_t i = 0; i < 16; i++)
            if (out[size + bound + i] != 0xa5)
                CHECK_MSG(false, "piece of %zu bytes wrote behind its bound", part);
        size += made;
        at += part;
    } while (at < bytes);
    return size;
}

static void check_stream(size_t size, size_t bytes, const char *what) {
    size_t used, got;
    struct libdeflate_decompressor *inflater = libdeflate_alloc_decompressor();
    memset(back, 0x5a, bytes + 1);
    const int code = (int)libdeflate_deflate_decompress_ex(inflater, out, size, back, bytes, &used, &got);
    CHECK_MSG(code == 0 && got == bytes && used == size && memcmp(back, data, bytes) == 0, "libdeflate, %s, %zu bytes: %d", what,
              bytes, code);
    libdeflate_free_decompressor(inflater);

    z_stream z = {0};
    memset(back, 0x5a, bytes + 1);
    inflateInit2(&z, -15);
    z.next_in = out;
    z.avail_in = (uInt)size;
    z.next_out = back;
    z.avail_out = (uInt)bytes + 1;
    const int end = inflate(&z, Z_FINISH);
    CHECK_MSG(end == Z_STREAM_END && z.total_out == bytes && z.avail_in == 0 && memcmp(back, data, bytes) == 0,
              "zlib, %s, %zu bytes: %s", what, bytes, z.msg ? z.msg : "");
    inflateEnd(&z);
}

static void round_trip(size_t bytes, const char *what) {
    static const size_t pieces[] = {1, 77, 4096, THEO_DEFLATE_PIECE, MOST};
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++)
        if (bytes / pieces[p] < 500)
            check_stream(write_pieces(bytes, pieces[p]), bytes, what);
}

static void test_sizes(void) {
    static const size_t sizes[] = {0,  1,   2,   3,   7,    8,     9,     15,    16,    17,    31,
                                   64, 257, 258, 259, 1000, 65534, 65535, 65536, 65537, 131071};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        memset(data, 0, sizes[s]);
        round_trip(sizes[s], "zeros");
        for (size_t i = 0; i < sizes[s]; i++)
            data[i] = (uint8_t)noise();
        round_trip(sizes[s], "noise");
        for (size_t i = 0; i < sizes[s]; i++)
            data[i] = (uint8_t)(i % 12 < 3 ? noise() : i / 100);
        round_trip(sizes[s], "floats");
    }
}

/* Runs of every length around the longest match, with literals in between. */
static void test_runs(void) {
    size_t at = 0;
    for (size_t length = 1; length < 800; length++) {
        memset(data + at, (int)(length & 255), length);
        at += length;
        data[at++] = (uint8_t)noise();
    }
    round_trip(at, "runs");
    for (size_t i = 0; i < MOST; i++) /* more runs than a block has tokens for */
        data[i] = i % 40 < 24 ? (uint8_t)(i / 40) : (uint8_t)noise();
    round_trip(MOST, "many runs");
}

static void test_gains(void) {
    memset(data, 9, MOST);
    CHECK(write_pieces(MOST, THEO_DEFLATE_PIECE) < MOST / 200);
    for (size_t i = 0; i < MOST; i++)
        data[i] = (uint8_t)noise();
    CHECK(write_pieces(MOST, THEO_DEFLATE_PIECE) < MOST + MOST / 100); /* stored */
    float number = 1;
    for (size_t i = 0; i + 4 <= MOST; i += 4) {
        number *= 1 + 1e-5f * (float)(noise() % 3);
        memcpy(data + i, &number, 4);
    }
    CHECK(write_pieces(MOST, THEO_DEFLATE_PIECE) < MOST * 9 / 10);
}

/* The same bytes again, whatever the memory held that is worked in. */
static void test_repeats(void) {
    static uint8_t first[2 * MOST];
    static float numbers[MOST / 4];
    for (size_t i = 0; i < MOST / 4; i++)
        numbers[i] = 1 + 1e-6f * (float)(noise() % 1000);
    memcpy(data, numbers, sizeof numbers);
    const size_t size = write_pieces(MOST, THEO_DEFLATE_PIECE);
    memcpy(first, out, size);
    for (size_t i = 0; i < MOST; i++)
        data[i] = (uint8_t)(noise() % 3);
    write_pieces(MOST, THEO_DEFLATE_PIECE);
    memcpy(data, numbers, sizeof numbers);
    CHECK(write_pieces(MOST, THEO_DEFLATE_PIECE) == size && memcmp(out, first, size) == 0);
}

int main(void) {
    test_repeats();
    test_sizes();
    test_runs();
    test_gains();
    return t_done("test_deflate");
}
