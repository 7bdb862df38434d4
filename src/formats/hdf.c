/* Layout: HDF5 File Format Specification 3.0; section numbers in the comments are its. Version 2 superblock and object headers,
 * groups that keep their links in the header ("compact"), which HDF5 1.8 and later read. */
#include "formats/hdf.h"

#include "base/error.h"
#include "formats/bytes.h"
#include "formats/dtype.h"
#include "formats/text.h"

#include <string.h>
#include <unistd.h>

enum { SUPERBLOCK_BYTES = 48, ALIGNMENT = 8, DEEPEST = 64, LONGEST_NAME = 4096 };

static const uint64_t undefined = UINT64_MAX; /* "undefined address" */

struct theo_hdf_node {
    const char *name;
    theo_hdf_node *parent;
    theo_hdf_node *first, *last, *next; /* members of a group; next sibling */
    bool is_group;
    int depth;
    uint64_t address; /* of the object header, once written */
};

/* ---------------------------------------------------------------- bytes */

static void add8(theo_text *text, unsigned value) {
    theo_text_add(text, &(uint8_t){(uint8_t)value}, 1);
}

static inline uint32_t rotate(uint32_t x, int by) {
    return x << by | x >> (32 - by);
}

/* Bob Jenkins' lookup3 (hashlittle, 2006): the checksum of all HDF5 metadata. */
static uint32_t lookup3(const uint8_t *key, size_t length) {
    uint32_t a, b, c;
    a = b = c = 0xdeadbeef + (uint32_t)length;
    for (; length > 12; length -= 12, key += 12) {
        a += theo_get32(key);
        b += theo_get32(key + 4);
        c += theo_get32(key + 8);
        a -= c, a ^= rotate(c, 4), c += b;
        b -= a, b ^= rotate(a, 6), a += c;
        c -= b, c ^= rotate(b, 8), b += a;
        a -= c, a ^= rotate(c, 16), c += b;
        b -= a, b ^= rotate(a, 19), a += c;
        c -= b, c ^= rotate(b, 4), b += a;
    }
    if (!length)
        return c;
    uint8_t tail[12] = {0};
    memcpy(tail, key, length);
    a += theo_get32(tail);
    b += theo_get32(tail + 4);
    c += theo_get32(tail + 8);
    c ^= b, c -= rotate(b, 14);
    a ^= c, a -= rotate(c, 11);
    b ^= a, b -= rotate(a, 25);
    c ^= b, c -= rotate(b, 16);
    a ^= c, a -= rotate(c, 4);
    b ^= a, b -= rotate(a, 14);
    c ^= b, c -= rotate(b, 24);
    return c;
}

/* ---------------------------------------------------------------- objects */

static theo_status out_of_memory(const theo_hdf *hdf, theo_error *err) {
    return theo_fail(err, THEO_MEMORY, hdf->file.path, NULL, "out of memory");
}

static theo_status append(theo_hdf *hdf, const void *data, size_t bytes, theo_error *err) {
    hdf->at += bytes;
    return theo_file_append(&hdf->file, data, bytes, err);
}

static theo_status align(theo_hdf *hdf, theo_error *err) {
    static const uint8_t zeros[ALIGNMENT];
    return append(hdf, zeros, (size_t)(-hdf->at % ALIGNMENT), err);
}

/* IV.A.1.b: type, size and flags in front of a message. */
static void add_message(theo_text *messages, unsigned type, const theo_text *body) {
    add8(messages, type);
    theo_text_add16(messages, (unsigned)body->length);
    add8(messages, 0);
    theo_text_add(messages, body->data, body->length);
    messages->failed |= body->failed;
}

/* IV.A.1.b: object header around its messages. Takes the messages. */
static theo_status write_object(theo_hdf *hdf, theo_hdf_node *node, theo_text *messages, theo_error *err) {
    theo_text header = {0};
    theo_text_add(&header, "OHDR", 4);
    add8(&header, 2);    /* version */
    add8(&header, 0x02); /* the size of chunk 0 takes 4 bytes */
    theo_text_add32(&header, messages->length);
    theo_text_add(&header, messages->data, messages->length);
    if (!header.failed)
        theo_text_add32(&header, lookup3((const uint8_t *)header.data, header.length));
    theo_status status = header.failed || messages->failed ? out_of_memory(hdf, err) : align(hdf, err);
    node->address = hdf->at;
    if (!status)
        status = append(hdf, header.data, header.length, err);
    theo_text_free(messages);
    theo_text_free(&header);
    return status;
}

/* IV.A.2.b */
static void make_dataspace(theo_text *body, int rank, const int64_t *shape) {
    add8(body, 2); /* version */
    add8(body, (unsigned)rank);
    add8(body, 0);            /* no maximum sizes */
    add8(body, rank ? 1 : 0); /* simple, scalar */
    for (int i = 0; i < rank; i++)
        theo_text_add64(body, (uint64_t)shape[i]);
}

/* IV.A.2.d */
static bool make_datatype(theo_text *body, theo_dtype dtype) {
    static const struct {
        theo_dtype dtype;
        uint8_t exponent, mantissa; /* bits */
        uint16_t bias;
    } floats[] = {{THEO_DTYPE_F64, 11, 52, 1023}, {THEO_DTYPE_F32, 8, 23, 127}, {THEO_DTYPE_F16, 5, 10, 15}};
    size_t bytes = theo_dtype_bytes(dtype);
    if (dtype >= THEO_DTYPE_I64 && dtype <= THEO_DTYPE_I8) {
        theo_text_add32(body, 0x10 | 0x08 << 8); /* version 1, fixed-point; little-endian, signed */
        theo_text_add32(body, bytes);
        theo_text_add16(body, 0); /* bit offset */
        theo_text_add16(body, (unsigned)bytes * 8);
        return true;
    }
    for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++) {
        if (floats[i].dtype != dtype)
            continue;
        theo_text_add32(
            body,
            0x11 | 0x20 << 8 |
                (bytes * 8 - 1) << 16); /* version 1, floating-point; little-endian, implied leading bit; place of the sign */
        theo_text_add32(body, bytes);
        theo_text_add16(body, 0); /* bit offset */
        theo_text_add16(body, (unsigned)bytes * 8);
        add8(body, floats[i].mantissa); /* place and size of the exponent */
        add8(body, floats[i].exponent);
        add8(body, 0); /* of the mantissa */
        add8(body, floats[i].mantissa);
        theo_text_add32(body, floats[i].bias);
        return true;
    }
    return false;
}

/* IV.A.2.i, version 3: contiguous */
static void make_layout(theo_text *body, uint64_t address, size_t bytes) {
    add8(body, 3);
    add8(body, 1);
    theo_text_add64(body, bytes ? address : undefined);
    theo_text_add64(body, bytes);
}

/* IV.A.2.c, IV.A.2.k: links in the header, no creation order */
static void add_group_start(theo_text *messages) {
    theo_text info = {0}, group = {0};
    theo_text_add16(&info, 0); /* version, flags */
    theo_text_add64(&info, undefined);
    theo_text_add64(&info, undefined);
    add_message(messages, 0x02, &info);
    theo_text_add16(&group, 0);
    add_message(messages, 0x0a, &group);
    theo_text_free(&info);
    theo_text_free(&group);
}

/* IV.A.2.g: a hard link */
static void add_link(theo_text *messages, const theo_hdf_node *to) {
    theo_text body = {0};
    add8(&body, 1);    /* version */
    add8(&body, 0x11); /* has a character set; the name's length takes 2 bytes */
    add8(&body, 1);    /* UTF-8 */
    theo_text_add16(&body, (unsigned)strlen(to->name));
    theo_text_add(&body, to->name, strlen(to->name));
    theo_text_add64(&body, to->address);
    add_message(messages, 0x06, &body);
    theo_text_free(&body);
}

/* ---------------------------------------------------------------- the tree */

/* Slot of that member, or the free one where it belongs (FNV-1a). */
static theo_hdf_node **find_slot(const theo_hdf *hdf, const theo_hdf_node *parent, const char *name) {
    uint64_t hash = 0xcbf29ce484222325u ^ (uintptr_t)parent;
    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    size_t i = (size_t)(hash ^ hash >> 32) & (hdf->table_size - 1);
    while (hdf->table[i] && (hdf->table[i]->parent != parent || strcmp(hdf->table[i]->name, name) != 0))
        i = (i + 1) & (hdf->table_size - 1);
    return &hdf->table[i];
}

/* Keeps half of the table free. */
static bool grow_table(theo_hdf *hdf) {
    if (2 * (hdf->nodes + 1) <= hdf->table_size)
        return true;
    theo_hdf grown = {.table_size = hdf->table_size ? 2 * hdf->table_size : 256};
    grown.table = theo_alloc(grown.table_size, sizeof *grown.table);
    if (!grown.table)
        return false;
    for (size_t i = 0; i < hdf->table_size; i++)
        if (hdf->table[i])
            *find_slot(&grown, hdf->table[i]->parent, hdf->table[i]->name) = hdf->table[i];
    theo_free(hdf->table);
    hdf->table = grown.table;
    hdf->table_size = grown.table_size;
    return true;
}

static theo_status add_node(theo_hdf *hdf, theo_hdf_node *parent, const char *name, bool is_group, theo_hdf_node **out,
                            theo_error *err) {
    if (!*name || strlen(name) > LONGEST_NAME || strchr(name, '/'))
        return theo_fail(err, THEO_ARGUMENT, hdf->file.path, NULL, "\"%.80s\" cannot be a name in an HDF5 file", name);
    if (parent->depth == DEEPEST)
        return theo_fail(err, THEO_ARGUMENT, hdf->file.path, name, "more than %d groups within each other", DEEPEST);
    theo_hdf_node *node = grow_table(hdf) ? theo_bump_alloc(&hdf->memory, 1, sizeof *node) : NULL;
    char *copy = node ? theo_bump_text(&hdf->memory, name, strlen(name)) : NULL;
    if (!copy)
        return out_of_memory(hdf, err);
    *node = (theo_hdf_node){.name = copy, .parent = parent, .is_group = is_group, .depth = parent->depth + 1};
    *find_slot(hdf, parent, name) = node;
    hdf->nodes++;
    if (parent->last)
        parent->last->next = node;
    else
        parent->first = node;
    parent->last = node;
    *out = node;
    return THEO_OK;
}

theo_status theo_hdf_group(theo_hdf *hdf, theo_hdf_node *parent, const char *name, theo_hdf_node **group, theo_error *err) {
    *group = hdf->table ? *find_slot(hdf, parent, name) : NULL;
    if (!*group)
        return add_node(hdf, parent, name, true, group, err);
    if (!(*group)->is_group)
        return theo_fail(err, THEO_ARGUMENT, hdf->file.path, name, "a dataset has this name");
    return THEO_OK;
}

bool theo_hdf_is_empty(const theo_hdf_node *group) {
    return !group->first;
}

theo_status theo_hdf_dataset(theo_hdf *hdf, theo_hdf_node *parent, const char *name, theo_dtype dtype, int rank,
                             const int64_t *shape, const void *data, theo_error *err) {
    theo_hdf_node *node;
    int64_t elements;
    size_t bytes;
    if (hdf->table && *find_slot(hdf, parent, name))
        return theo_fail(err, THEO_ARGUMENT, hdf->file.path, name, "exists already in its group");
    theo_text space = {0}, type = {0}, layout = {0}, fill = {0}, messages = {0};
    if (!theo_shape_bytes(shape, rank, dtype, &elements, &bytes) || !make_datatype(&type, dtype)) {
        theo_text_free(&type);
        return theo_fail(err, THEO_ARGUMENT, hdf->file.path, name, "size or type cannot be stored");
    }
    theo_status status = align(hdf, err);
    uint64_t address = hdf->at;
    if (!status)
        status = append(hdf, data, bytes, err);
    make_dataspace(&space, rank, shape);
    make_layout(&layout, address, bytes);
    theo_text_add16(&fill, 3 | 0x0a << 8); /* IV.A.2.f, version 3: none set */
    add_message(&messages, 0x01, &space);
    add_message(&messages, 0x03, &type);
    add_message(&messages, 0x05, &fill);
    add_message(&messages, 0x08, &layout);
    theo_text_free(&space);
    theo_text_free(&type);
    theo_text_free(&layout);
    theo_text_free(&fill);
    if (!status)
        status = add_node(hdf, parent, name, false, &node, err);
    if (!status)
        return write_object(hdf, node, &messages, err);
    theo_text_free(&messages);
    return status;
}

/* Members before their group, whose links need their addresses. As deep as DEEPEST. */
static theo_status write_group(theo_hdf *hdf, theo_hdf_node *group, theo_error *err) {
    theo_text messages = {0};
    for (theo_hdf_node *node = group->first; node; node = node->next)
        if (node->is_group)
            THEO_TRY(write_group(hdf, node, err));
    add_group_start(&messages);
    for (theo_hdf_node *node = group->first; node; node = node->next)
        add_link(&messages, node);
    return write_object(hdf, group, &messages, err);
}

/* ---------------------------------------------------------------- the file */

theo_status theo_hdf_create(theo_hdf *hdf, const char *path, theo_error *err) {
    static const uint8_t room[SUPERBLOCK_BYTES];
    *hdf = (theo_hdf){.at = 0};
    THEO_TRY(theo_file_open(&hdf->file, path, err));
    hdf->root = theo_bump_alloc(&hdf->memory, 1, sizeof *hdf->root);
    theo_status status = hdf->root ? append(hdf, room, sizeof room, err) : out_of_memory(hdf, err);
    if (status) {
        theo_hdf_abandon(hdf);
        return status;
    }
    hdf->root->is_group = true;
    return THEO_OK;
}

/* II.A, version 2; into the room at the start. */
static theo_status write_superblock(theo_hdf *hdf, theo_error *err) {
    uint8_t block[SUPERBLOCK_BYTES] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n', 2, 8, 8}; /* offsets and lengths of 8 bytes */
    theo_put64(block + 20, undefined);                                                        /* no extension */
    theo_put64(block + 28, hdf->at);
    theo_put64(block + 36, hdf->root->address);
    theo_put32(block + 44, lookup3(block, 44));
    if (pwrite(hdf->file.fd, block, sizeof block, 0) != (ssize_t)sizeof block)
        return theo_fail_errno(err, hdf->file.path, "cannot be written (HDF5 needs a file that can be rewritten)");
    return THEO_OK;
}

theo_status theo_hdf_finish(theo_hdf *hdf, theo_error *err) {
    theo_status status = write_group(hdf, hdf->root, err);
    if (!status)
        status = write_superblock(hdf, err);
    if (!status)
        status = theo_file_commit(&hdf->file, err);
    theo_hdf_abandon(hdf);
    return status;
}

void theo_hdf_abandon(theo_hdf *hdf) {
    theo_file_abandon(&hdf->file);
    theo_bump_free(&hdf->memory);
    theo_free(hdf->table);
    hdf->table = NULL;
}
