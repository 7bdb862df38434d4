/* The zip reader: archives as others lay them out, and one for every structural lie. */
#include "base/map.h"
#include "formats/bytes.h"
#include "formats/zip.h"
#include "formats/zip_write.h"
#include "scratch.h"
#include "t.h"

static uint8_t archive[4096];
static size_t archive_bytes;
static uint8_t body[600]; /* zeros */

/* Entries "a" and "b", or twice the same name. */
static void make(const char *first, const char *second, bool deflate) {
    theo_zip_writer writer;
    theo_map map;
    theo_error err;
    CHECK(theo_zip_create(&writer, scratch("x.zip"), THEO_ZIP_PLAIN, &err) == THEO_OK);
    CHECK(theo_zip_add(&writer, first, "head", 4, body, sizeof body, deflate, &err) == THEO_OK);
    CHECK(theo_zip_add(&writer, second, NULL, 0, "xyz", 3, deflate, &err) == THEO_OK);
    CHECK(theo_zip_finish(&writer, &err) == THEO_OK);
    CHECK(theo_map_open(&map, scratch("x.zip"), &err) == THEO_OK);
    memcpy(archive, map.data, map.bytes);
    archive_bytes = map.bytes;
    theo_map_close(&map);
}

/* The central directory's entry, or its end record (number 2). */
static uint8_t *central(int number) {
    uint8_t *end = archive + archive_bytes - 22, *at = archive + theo_get32(end + 16);
    if (number == 2)
        return end;
    return number ? at + 46 + theo_get16(at + 28) + theo_get16(at + 30) : at;
}

static void expect(theo_status wanted, const char *says) {
    theo_zip zip;
    theo_bump memory = {0};
    theo_error err = {0};
    uint8_t *exact = malloc(archive_bytes);
    memcpy(exact, archive, archive_bytes);
    theo_status status = theo_zip_parse(&zip, &memory, exact, archive_bytes, "x.zip", &err);
    for (int i = 0; i < zip.count && !status; i++) {
        uint8_t *out = malloc((size_t)zip.entries[i].bytes + 1);
        status = theo_zip_unpack(&zip, &zip.entries[i], out, &err);
        free(out);
    }
    CHECK_MSG(status == wanted && (!wanted || strstr(err.message, says)), "%s: %s: %s", says, theo_status_name(status),
              err.message);
    theo_bump_free(&memory);
    free(exact);
}

static void test_good(void) {
    for (int deflate = 0; deflate < 2; deflate++) {
        make("a", "b", deflate);
        expect(THEO_OK, "");
        theo_put16(central(2) + 20, 5); /* a comment at the end */
        memcpy(archive + archive_bytes, "hello", 5);
        archive_bytes += 5;
        expect(THEO_OK, "");
    }
    archive_bytes = 22; /* empty archive */
    memset(archive, 0, archive_bytes);
    memcpy(archive, "PK\5\6", 4);
    expect(THEO_OK, "");
}

static void test_lies(void) {
    make("a", "a", false);
    expect(THEO_CONTAINER, "two entries have this name");
    make("a\n", "b", false);
    expect(THEO_CONTAINER, "control characters");
    make("\xff", "b", false);
    expect(THEO_CONTAINER, "UTF-8");

    make("a", "b", false);
    archive[archive_bytes++] = 0;
    expect(THEO_CONTAINER, "no end record");
    make("a", "b", false);
    memmove(archive + 4, archive, archive_bytes); /* a prefix, as self-extracting archives have it */
    archive_bytes += 4;
    expect(THEO_CONTAINER, "central directory");

    make("a", "b", false);
    central(0)[8] |= 1;
    expect(THEO_UNSUPPORTED, "encrypted");
    make("a", "b", false);
    central(0)[10] = 12;
    expect(THEO_UNSUPPORTED, "method 12");
    make("a", "b", false);
    central(0)[10] = 8;
    expect(THEO_CONTAINER, "disagree");
    make("a", "b", false);
    archive[30] = 'c';
    expect(THEO_CONTAINER, "disagree");
    make("a", "b", false);
    central(0)[16] ^= 1;
    expect(THEO_CHECKSUM, "damaged");
    make("a", "b", false);
    archive[40] ^= 1;
    expect(THEO_CHECKSUM, "damaged");

    make("a", "b", false);
    theo_put32(central(0) + 20, 604 + 8); /* over the next entry */
    theo_put32(central(0) + 24, 604 + 8);
    expect(THEO_CONTAINER, "inside of another");
    make("a", "b", false);
    theo_put32(central(0) + 20, 603);
    expect(THEO_CONTAINER, "belong together");
    make("a", "b", false);
    theo_put32(central(1) + 20, 5000);
    theo_put32(central(1) + 24, 5000);
    expect(THEO_CONTAINER, "past the end");
    make("a", "b", false);
    theo_put32(central(1) + 42, 5000);
    expect(THEO_CONTAINER, "local header");
    make("a", "b", false);
    theo_put32(central(1) + 42, UINT32_MAX); /* zip64 without its field */
    expect(THEO_CONTAINER, "extra field");
    make("a", "b", false);
    theo_put16(central(1) + 32, 9); /* a comment that is not there */
    expect(THEO_CONTAINER, "cut");

    make("a", "b", true);
    theo_put32(central(0) + 24, 605); /* one more than there is */
    expect(THEO_CONTAINER, "deflate stream");
    make("a", "b", true);
    theo_put32(central(0) + 24, 603);
    expect(THEO_CONTAINER, "deflate stream");
    make("a", "b", true);
    theo_put32(central(0) + 24, 0x7fffffff); /* more than deflate can pack into so few bytes */
    expect(THEO_CONTAINER, "belong together");
    make("a", "b", true);
    archive[31 + 5 + 4] ^= 0x06; /* the type of the body's first block */
    expect(THEO_CONTAINER, "deflate stream");

    make("a", "b", false);
    central(1)[0] ^= 1;
    expect(THEO_CONTAINER, "entry is missing");
    make("a", "b", false);
    theo_put16(central(2) + 8, 60000);
    theo_put16(central(2) + 10, 60000);
    expect(THEO_CONTAINER, "too short");
    make("a", "b", false);
    theo_put16(central(2) + 4, 1);
    expect(THEO_CONTAINER, "several parts");
    make("a", "b", false);
    theo_put32(central(2) + 16, UINT32_MAX - 1);
    expect(THEO_CONTAINER, "outside");
}

int main(void) {
    test_good();
    test_lies();
    scratch_remove();
    return t_done("zip");
}
