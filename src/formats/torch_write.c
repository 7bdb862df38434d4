#include "formats/torch_write.h"

#include "base/error.h"
#include "base/file.h"
#include "formats/arrays.h"
#include "formats/bytes.h"
#include "formats/dtype.h"
#include "formats/json.h"
#include "formats/text.h"
#include "formats/zip_write.h"

#include <stdio.h>
#include <string.h>

/* Memo slots of what every tensor repeats. The storage class of a type has slot MEMO_CLASS + type. */
enum { MEMO_DICT, MEMO_REBUILD, MEMO_STORAGE, MEMO_CPU, MEMO_CLASS };

typedef struct pickler {
    theo_text *out;
    bool legacy;
    uint32_t memoised; /* bit per slot */
} pickler;

/* ---------------------------------------------------------------- opcodes (CPython Lib/pickletools.py) */

static void put_byte(pickler *p, int byte) {
    theo_text_add(p->out, &(char){(char)byte}, 1);
}

static void put_start(pickler *p) {
    theo_text_add(p->out, "\x80\x02", 2);
} /* PROTO 2 */

static void put_string(pickler *p, const char *string) {
    uint8_t head[5] = {'X'};
    theo_put32(head + 1, (uint32_t)strlen(string));
    theo_text_add(p->out, head, sizeof head);
    theo_text_add(p->out, string, strlen(string));
}

static void put_integer(pickler *p, int64_t value) {
    uint8_t bytes[10] = {0x8a, 8}; /* LONG1 */
    if (value >= 0 && value < 256) {
        theo_text_add(p->out, (uint8_t[]){'K', (uint8_t)value}, 2); /* BININT1 */
    } else if (value >= 0 && value < 65536) {
        bytes[0] = 'M'; /* BININT2 */
        theo_put16(bytes + 1, (uint16_t)value);
        theo_text_add(p->out, bytes, 3);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        bytes[0] = 'J'; /* BININT */
        theo_put32(bytes + 1, (uint32_t)value);
        theo_text_add(p->out, bytes, 5);
    } else {
        theo_put64(bytes + 2, (uint64_t)value);
        theo_text_add(p->out, bytes, 10);
    }
}

static void put_float(pickler *p, double value) {
    uint64_t bits;
    uint8_t bytes[9] = {'G'};
    memcpy(&bits, &value, sizeof bits);
    for (int i = 8; i > 0; i--, bits >>= 8) /* big-endian */
        bytes[i] = (uint8_t)bits;
    theo_text_add(p->out, bytes, sizeof bytes);
}

/* Was the slot written? Then fetches it. */
static bool recall(pickler *p, int slot) {
    if (p->memoised >> slot & 1)
        theo_text_add(p->out, (uint8_t[]){'h', (uint8_t)slot}, 2); /* BINGET */
    return p->memoised >> slot & 1;
}

static void memoise(pickler *p, int slot) {
    theo_text_add(p->out, (uint8_t[]){'q', (uint8_t)slot}, 2); /* BINPUT */
    p->memoised |= 1u << slot;
}

static void put_shared_string(pickler *p, const char *string, int slot) {
    if (recall(p, slot))
        return;
    put_string(p, string);
    memoise(p, slot);
}

static void put_global(pickler *p, const char *module, const char *name, int slot) {
    if (recall(p, slot))
        return;
    theo_text_printf(p->out, "c%s\n%s\n", module, name);
    memoise(p, slot);
}

static void put_ordered_dict(pickler *p) {
    put_global(p, "collections", "OrderedDict", MEMO_DICT);
    theo_text_add(p->out, ")R", 2); /* called with () */
}

/* ---------------------------------------------------------------- tensors */

static const char *storage_class(theo_dtype dtype) {
    switch (dtype) {
    case THEO_DTYPE_F64:
        return "DoubleStorage";
    case THEO_DTYPE_F32:
        return "FloatStorage";
    case THEO_DTYPE_F16:
        return "HalfStorage";
    case THEO_DTYPE_BF16:
        return "BFloat16Storage";
    case THEO_DTYPE_I64:
        return "LongStorage";
    case THEO_DTYPE_I32:
        return "IntStorage";
    case THEO_DTYPE_BOOL:
        return "BoolStorage";
    default:
        return NULL;
    }
}

static int64_t elements_of(const theo_array *array) {
    int64_t elements = 1;
    for (int i = 0; i < array->rank; i++)
        elements *= array->shape[i];
    return elements;
}

static size_t bytes_of(const theo_array *array) {
    return (size_t)elements_of(array) * theo_dtype_bytes(array->dtype);
}

/* The first array of the same data, whose number is the key of the storage. */
static int owner_of(const theo_array *arrays, int index) {
    const theo_array *a = &arrays[index];
    for (int i = 0; i < index && bytes_of(a) > 0; i++)
        if (arrays[i].data == a->data && arrays[i].dtype == a->dtype && bytes_of(&arrays[i]) == bytes_of(a))
            return i;
    return index;
}

static void put_tuple(pickler *p, const int64_t *values, int count) {
    put_byte(p, count ? '(' : ')');
    for (int i = 0; i < count; i++)
        put_integer(p, values[i]);
    if (count)
        put_byte(p, 't');
}

/* _rebuild_tensor_v2(storage, 0, shape, stride, False, OrderedDict()) */
static void put_tensor(pickler *p, const theo_array *array, int key) {
    char text[16];
    int64_t stride[THEO_MAX_RANK], step = 1;
    for (int i = array->rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= array->shape[i] > 1 ? array->shape[i] : 1;
    }
    put_global(p, "torch._utils", "_rebuild_tensor_v2", MEMO_REBUILD);
    put_byte(p, '(');
    put_byte(p, '(');
    put_shared_string(p, "storage", MEMO_STORAGE);
    put_global(p, "torch", storage_class(array->dtype), MEMO_CLASS + (int)array->dtype);
    snprintf(text, sizeof text, "%d", key);
    put_string(p, text);
    put_shared_string(p, "cpu", MEMO_CPU);
    put_integer(p, elements_of(array));
    if (p->legacy)
        put_byte(p, 'N');
    theo_text_add(p->out, "tQ", 2); /* BINPERSID */
    put_integer(p, 0);
    put_tuple(p, array->shape, array->rank);
    put_tuple(p, stride, array->rank);
    put_byte(p, 0x89); /* NEWFALSE */
    put_ordered_dict(p);
    theo_text_add(p->out, "tR", 2);
}

static void put_state(pickler *p, const theo_array *arrays, int count) {
    put_ordered_dict(p);
    for (int i = 0; i < count; i++) {
        put_string(p, arrays[i].name);
        put_tensor(p, &arrays[i], owner_of(arrays, i));
        put_byte(p, 's'); /* SETITEM */
    }
}

/* ---------------------------------------------------------------- the top object */

static void put_json(pickler *p, const theo_json *value) {
    switch (value->type) {
    case THEO_JSON_NULL:
        put_byte(p, 'N');
        break;
    case THEO_JSON_BOOL:
        put_byte(p, value->truth ? 0x88 : 0x89);
        break;
    case THEO_JSON_NUMBER:
        if (value->is_integer)
            put_integer(p, value->integer);
        else
            put_float(p, value->number);
        break;
    case THEO_JSON_STRING:
        put_string(p, value->string);
        break;
    case THEO_JSON_ARRAY:
    case THEO_JSON_OBJECT:
        put_byte(p, value->type == THEO_JSON_ARRAY ? ']' : '}');
        for (const theo_json *child = value->first; child; child = child->next) {
            if (child->key)
                put_string(p, child->key);
            put_json(p, child);
            put_byte(p, child->key ? 's' : 'a'); /* SETITEM, APPEND */
        }
        break;
    }
}

/* argparse.Namespace, made without a call and given its attributes. */
static void put_namespace(pickler *p, const theo_json *attributes) {
    static const char made[] = "cargparse\nNamespace\n)\x81"; /* GLOBAL, EMPTY_TUPLE, NEWOBJ */
    theo_text_add(p->out, made, sizeof made - 1);
    put_json(p, attributes);
    put_byte(p, 'b');
}

static void put_checkpoint(pickler *p, const theo_array *arrays, int count, const theo_torch_options *options,
                           const theo_json *config) {
    put_start(p);
    if (options->state_key) {
        put_byte(p, '}');
        for (const theo_json *member = config ? config->first : NULL; member; member = member->next) {
            put_string(p, member->key);
            if (options->namespace_key && !strcmp(member->key, options->namespace_key))
                put_namespace(p, member);
            else
                put_json(p, member);
            put_byte(p, 's');
        }
        put_string(p, options->state_key);
        put_state(p, arrays, count);
        put_byte(p, 's');
    } else {
        put_state(p, arrays, count);
    }
    put_byte(p, '.');
}

/* ---------------------------------------------------------------- the two layouts */

static theo_status add_records(theo_zip_writer *zip, const theo_array *arrays, int count, const theo_text *pickle,
                               theo_error *err) {
    char name[32];
    THEO_TRY(theo_zip_add(zip, "archive/data.pkl", NULL, 0, pickle->data, pickle->length, false, err));
    THEO_TRY(theo_zip_add(zip, "archive/byteorder", NULL, 0, "little", 6, false, err));
    for (int i = 0; i < count; i++) {
        if (owner_of(arrays, i) != i)
            continue;
        snprintf(name, sizeof name, "archive/data/%d", i);
        THEO_TRY(theo_zip_add(zip, name, NULL, 0, arrays[i].data, bytes_of(&arrays[i]), false, err));
    }
    return theo_zip_add(zip, "archive/version", NULL, 0, "3\n", 2, false, err);
}

static theo_status write_zip(const char *path, const theo_array *arrays, int count, const theo_text *pickle, theo_error *err) {
    theo_zip_writer zip;
    THEO_TRY(theo_zip_create(&zip, path, THEO_ZIP_TORCH, err));
    theo_status status = add_records(&zip, arrays, count, pickle, err);
    if (status == THEO_OK)
        return theo_zip_finish(&zip, err);
    theo_zip_abandon(&zip);
    return status;
}

/* Magic number, protocol 1001 and the machine, as torch wrote them. */
static void put_legacy_head(pickler *p) {
    static const uint8_t magic[] = {0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, '.'};
    static const char *const sizes[] = {"short", "int", "long"};
    put_start(p);
    theo_text_add(p->out, magic, sizeof magic);
    put_start(p);
    put_integer(p, 1001);
    put_byte(p, '.');
    put_start(p);
    theo_text_add(p->out, "}(", 2);
    put_string(p, "protocol_version");
    put_integer(p, 1001);
    put_string(p, "little_endian");
    put_byte(p, 0x88);
    put_string(p, "type_sizes");
    theo_text_add(p->out, "}(", 2);
    for (int i = 0; i < 3; i++) {
        put_string(p, sizes[i]);
        put_integer(p, i ? 4 : 2);
    }
    theo_text_add(p->out, "uu.", 3);
}

static void put_legacy_keys(pickler *p, const theo_array *arrays, int count) {
    char key[16];
    put_start(p);
    put_byte(p, ']');
    for (int i = 0; i < count; i++) {
        if (owner_of(arrays, i) != i)
            continue;
        snprintf(key, sizeof key, "%d", i);
        put_string(p, key);
        put_byte(p, 'a');
    }
    put_byte(p, '.');
}

static theo_status append_storages(theo_file *file, const theo_array *arrays, int count, theo_error *err) {
    for (int i = 0; i < count; i++) {
        uint8_t elements[8];
        if (owner_of(arrays, i) != i)
            continue;
        theo_put64(elements, (uint64_t)elements_of(&arrays[i]));
        THEO_TRY(theo_file_append(file, elements, sizeof elements, err));
        THEO_TRY(theo_file_append(file, arrays[i].data, bytes_of(&arrays[i]), err));
    }
    return THEO_OK;
}

static theo_status write_legacy(const char *path, const theo_array *arrays, int count, const theo_text *pickles,
                                theo_error *err) {
    theo_file file;
    THEO_TRY(theo_file_open(&file, path, err));
    theo_status status = theo_file_append(&file, pickles->data, pickles->length, err);
    if (status == THEO_OK)
        status = append_storages(&file, arrays, count, err);
    if (status == THEO_OK)
        return theo_file_commit(&file, err);
    theo_file_abandon(&file);
    return status;
}

/* ---------------------------------------------------------------- */

static theo_status write_checkpoint(const char *path, const theo_array *arrays, int count, const theo_torch_options *options,
                                    const theo_json *config, theo_error *err) {
    theo_text text = {0};
    pickler p = {.out = &text, .legacy = options->legacy};
    if (options->legacy)
        put_legacy_head(&p);
    put_checkpoint(&p, arrays, count, options, config);
    if (options->legacy)
        put_legacy_keys(&p, arrays, count);
    theo_status status = text.failed       ? theo_fail(err, THEO_MEMORY, path, NULL, "out of memory for the pickle")
                         : options->legacy ? write_legacy(path, arrays, count, &text, err)
                                           : write_zip(path, arrays, count, &text, err);
    theo_text_free(&text);
    return status;
}

theo_status theo_torch_write(const char *path, const theo_array *arrays, int count, const theo_torch_options *options,
                             theo_error *err) {
    static const theo_torch_options defaults = {0};
    const theo_json *config = NULL;
    theo_bump memory = {0};
    options = options ? options : &defaults;
    THEO_TRY(theo_arrays_check(arrays, count, path, err));
    for (int i = 0; i < count; i++)
        if (!storage_class(arrays[i].dtype))
            return theo_fail(err, THEO_ARGUMENT, path, arrays[i].name, "torch has no storage for %s here",
                             theo_dtype_name(arrays[i].dtype));
    if (options->config_json && !options->state_key)
        return theo_fail(err, THEO_ARGUMENT, path, "config_json", "needs a state_key beside which it stands");
    theo_status status = THEO_OK;
    if (options->config_json)
        status = theo_json_parse(&config, &memory, options->config_json, strlen(options->config_json),
                                 &(theo_json_options){.allow_nonfinite = true}, err);
    if (!status && config && config->type != THEO_JSON_OBJECT)
        status = theo_fail(err, THEO_ARGUMENT, path, "config_json", "expected an object, found %s", theo_json_type_name(config));
    if (!status)
        status = write_checkpoint(path, arrays, count, options, config, err);
    theo_bump_free(&memory);
    return status;
}
