/* pickle.h - reads the pickles of torch checkpoints into plain values. Nothing is ever called or imported.
 *
 * Protocol 2, with the opcodes that torch.save writes and no others. A GLOBAL is looked up in a fixed list (THEO_SECURITY if it
 * is not there) and REDUCE, NEWOBJ and BUILD know what these few names mean. Stack, memo, strings and nesting of marks are
 * limited, and a pickle cannot unfold into more items than it has bytes. */
#ifndef THEO_FORMATS_PICKLE_H
#define THEO_FORMATS_PICKLE_H

#include "formats/bump.h"

#include <theo/files.h>

typedef enum theo_value_type {
    THEO_VALUE_NONE,
    THEO_VALUE_BOOL,
    THEO_VALUE_INTEGER,
    THEO_VALUE_FLOAT,
    THEO_VALUE_STRING,
    THEO_VALUE_TUPLE,
    THEO_VALUE_LIST,
    THEO_VALUE_DICT,      /* dict and OrderedDict */
    THEO_VALUE_NAMESPACE, /* argparse.Namespace: a DICT of its attributes */
    THEO_VALUE_CLASS,     /* a name of the allow-list by itself */
    THEO_VALUE_STORAGE,
    THEO_VALUE_TENSOR
} theo_value_type;

/* Numbers of one type, stored beside the pickle under a key. */
typedef struct theo_storage {
    const char *key;
    theo_dtype dtype;
    int64_t count;                   /* elements, as the pickle says */
    const struct theo_storage *next; /* all storages of a pickle, the newest first */
} theo_storage;

/* A view of a storage. The sizes are as the pickle says: neither signs nor bounds are checked yet. */
typedef struct theo_tensor {
    const theo_storage *storage;
    int64_t offset;
    int rank;
    int64_t shape[THEO_MAX_RANK], stride[THEO_MAX_RANK];
} theo_tensor;

typedef struct theo_value {
    theo_value_type type;
    union {
        bool truth;
        int64_t integer;
        double number;
        const char *string; /* UTF-8, terminated, no zero byte inside */
        int class_index;    /* private to pickle.c */
        const theo_storage *storage;
        const theo_tensor *tensor;
        struct {
            struct theo_item *first, *last; /* TUPLE, LIST, DICT, NAMESPACE */
            int count;
        };
    };
} theo_value;

/* An element of a sequence, or a key and its value. Lists may contain themselves: whoever walks a value must limit the depth. */
typedef struct theo_item {
    const theo_value *key; /* NULL in sequences */
    const theo_value *value;
    struct theo_item *next;
} theo_item;

typedef struct theo_pickle {
    const theo_value *root;
    const theo_storage *storages;
    size_t bytes; /* length of this pickle: up to and with its STOP */
} theo_pickle;

/* Reads the pickle at data[0..bytes). Values live in `memory`. `file` and `record` ("data.pkl") are for messages.
 * THEO_PICKLE, THEO_SECURITY, THEO_UNSUPPORTED (more than THEO_MAX_RANK dimensions, storage views), THEO_MEMORY. */
theo_status theo_pickle_parse(theo_pickle *pickle, theo_bump *memory, const uint8_t *data, size_t bytes, const char *file,
                              const char *record, theo_error *err);

/* Value of a string key of a DICT or NAMESPACE; the last one where a key was set twice. NULL when absent or not a dict. */
const theo_value *theo_value_get(const theo_value *dict, const char *key);

#endif
