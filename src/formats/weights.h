/* weights.h - one view of every checkpoint container: named, shaped, typed, strided tensors over a mapped file.
 *
 * theo_weights_open tells the container by its first bytes: safetensors, torch zip (.pt, .pth), torch legacy (2018). Everything
 * is checked before a tensor is handed out: offsets, lengths, types, shapes, strides, overlap, CRC of zip entries. Nothing in a
 * file is ever executed: pickles go through a parser with an allow-list of opcodes and globals. */
#ifndef THEO_FORMATS_WEIGHTS_H
#define THEO_FORMATS_WEIGHTS_H

#include "base/pool.h"
#include <theo/files.h>
#include <theo/theo.h>

typedef struct theo_weights theo_weights;

typedef struct theo_weight {
    const char *name;
    theo_dtype dtype;
    int rank;
    int64_t shape[THEO_MAX_RANK];
    int64_t stride[THEO_MAX_RANK]; /* in elements; row-major contiguous for safetensors */
    int64_t elements;
    const void *data; /* may be unaligned, and strides may overlap: theo_weight_to_f32 copes with both */
} theo_weight;

typedef struct theo_weights_options {
    bool verify_checksums; /* CRC-32 of zip entries */
    theo_pool *pool;       /* that computes them; NULL: the caller alone */
} theo_weights_options;

theo_status theo_weights_open(theo_weights **weights, const char *path, const theo_weights_options *options, theo_error *err);
void theo_weights_close(theo_weights *weights);

const char *theo_weights_path(const theo_weights *weights);
const char *theo_weights_source(const theo_weights *weights); /* "safetensors", "torch-zip", "torch-legacy" */
int64_t theo_weights_file_bytes(const theo_weights *weights);
int theo_weights_count(const theo_weights *weights);
const theo_weight *theo_weights_at(const theo_weights *weights, int index);
const theo_weight *theo_weights_find(const theo_weights *weights, const char *name); /* NULL when absent */

/* What stands beside the tensors: safetensors __metadata__ values, and for torch files the non-tensor part of the pickle (a
 * dict or argparse.Namespace) as JSON text. NULL when absent. */
const char *theo_weights_metadata(const theo_weights *weights, const char *key);
const char *theo_weights_config_json(const theo_weights *weights);

/* A file of text in the folder of the weights. */
typedef struct theo_text_beside {
    char *text; /* to be released by theo_free; NULL: there is none */
    char path[4096];
} theo_text_beside;
theo_status theo_weights_read_beside(theo_text_beside *beside, const theo_weights *weights, const char *name, theo_error *err);

/* F32, F16, BF16, F64 to float32 in row-major order: out[elements]. THEO_SHAPE for other types. */
theo_status theo_weight_to_f32(const theo_weights *weights, const theo_weight *weight, float *out, theo_error *err);

/* The tensor's pages are not needed any more. */
void theo_weights_release(const theo_weights *weights, const theo_weight *weight);

#endif
